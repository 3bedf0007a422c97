"""The distribution of a quadratic form in independent normal variables, with an error bound.

The log likelihood ratio of two gaussians is such a form. Its distribution has no closed form in general; it is computed
by inverting the characteristic function, after Imhof (1961) and Davies (1973, 1980), at all points of a grid at once.
Both errors of the method, from the step and from the truncation of the sum, have simple bounds, and the sum is long
enough for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from toprank.errors import InputError

NEGLIGIBLE = 1e-8  # coefficients this small relative to the largest count as zero
TAIL = 1e-10  # probability of a value outside the grid, on each side
ACCURACY = 2e-5  # largest accepted error bound of a table
GOOD_ACCURACY = 1e-9  # no longer sum is tried below this bound
MIN_NODES, MAX_NODES = 2**18, 2**21


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """The random variable constant + sum_i (square_i z_i^2 + 2 linear_i z_i), with z_i independent N(0, 1).

    Attributes
    ----------
    square, linear : ndarray of shape (n,), float64
    constant : float

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.datasets.quadratic_form import QuadraticForm
    >>> chi_square = QuadraticForm(np.ones(3), np.zeros(3), 0.0)
    >>> chi_square.survival([0.0, 7.815]).round(4).tolist()
    [1.0, 0.05]
    """

    square: NDArray[np.float64]
    linear: NDArray[np.float64]
    constant: float

    def __post_init__(self) -> None:
        largest = max(np.abs(self.square).max(), np.abs(self.linear).max())
        square = np.where(np.abs(self.square) > NEGLIGIBLE * largest, self.square, 0.0)
        linear = np.where(np.abs(self.linear) > NEGLIGIBLE * largest, self.linear, 0.0)
        is_active = (square != 0.0) | (linear != 0.0)
        object.__setattr__(self, "square", square[is_active])
        object.__setattr__(self, "linear", linear[is_active])

    def minus(self, other: QuadraticForm) -> QuadraticForm:
        """Return this variable minus an independent one."""
        return QuadraticForm(
            np.r_[self.square, -other.square], np.r_[self.linear, -other.linear], self.constant - other.constant
        )

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return P(form > value) for each value, with an error below 2e-5, usually far below.

        Exact for a normal variable and for a form in one variable. The error of interpolation in the grid, of
        order (range / 2^18)^2, is not included in the bound.
        """
        values = np.asarray(values, dtype=np.float64)
        if self.is_exact:
            if not self.square.any():
                return ndtr((self.constant - values) / (2.0 * np.sqrt((self.linear**2).sum())))
            return self._survival_of_one(values)
        return np.interp(values, self._grid, self._table, left=1.0, right=0.0)

    def discounted_survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return E(exp(-form); form > value) for each value of 0 or more, from the table of `survival`.

        The error is at most 2 exp(-value) times that of `survival`, so that it stays small on a curve whose slope is
        exp(value).
        """
        return np.interp(np.asarray(values, dtype=np.float64), *self._discounted_table, right=0.0)

    @property
    def is_exact(self) -> bool:
        """Whether the distribution function has a closed form: for a normal variable and for a form in one variable."""
        return self.square.size == 1 or not self.square.any()

    def _survival_of_one(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        square, linear = self.square[0], self.linear[0]
        shift = linear / square  # the form is square * (z + shift)^2 plus a number
        root = np.sqrt(np.maximum((values - self.constant) / square + shift**2, 0.0))
        beyond = ndtr(shift - root) + ndtr(-shift - root)
        return beyond if square > 0.0 else 1.0 - beyond

    @cached_property
    def range(self) -> tuple[float, float]:
        """An interval that the form leaves with probability at most 1e-10 on each side.

        Chernoff: P(form > v) <= exp(K(s) - s v) for any s > 0, with K the logarithm of the moment generating
        function; the best of many s is used, likewise on the other side.
        """
        deviation = np.sqrt((2.0 * self.square**2 + 4.0 * self.linear**2).sum())
        rates = np.geomspace(1e-3, 1e3, 600) / deviation

        def end(side: float) -> float:
            is_finite = 2.0 * rates * (side * self.square).max() < 0.999
            s = rates[is_finite, None]
            shrink = 1.0 - 2.0 * s * side * self.square
            log_moment = (-0.5 * np.log(shrink) + 2.0 * (s * self.linear) ** 2 / shrink).sum(axis=1)
            return side * float(((log_moment - np.log(TAIL)) / s[:, 0]).min()) + self.constant

        return end(-1.0), end(1.0)

    def _truncation_bound(self, end: float) -> float:
        """Return a bound on (1 / pi) times the integral of |phi(t)| / t over t > `end`.

        |phi(t)| is the product of (1 + 4 t^2 a^2)^(-1/4) exp(-2 t^2 b^2 / (1 + 4 t^2 a^2)) over the squares a and
        linear coefficients b. The second factor decreases in t; the first is at most (2 |a| t)^(-1/2), and at
        most 1. Keeping the m largest |a|, the integral of t^(-1 - m/2) is (2 / m) end^(-m/2).
        """
        squares = np.sort(np.abs(self.square[self.square != 0.0]))[::-1]
        m = np.arange(1, squares.size + 1)
        log_power = -0.5 * np.cumsum(np.log(2.0 * squares * end)) + np.log(2.0 / (np.pi * m))
        decay = (2.0 * (end * self.linear) ** 2 / (1.0 + 4.0 * (end * self.square) ** 2)).sum()
        return float(np.exp(np.minimum(log_power.min() - decay, 0.0)))

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        """P(form > v) at the points low + j (high - low) / n of the range.

        Davies (1973): 1/2 + (1 / pi) sum_k Im(phi(t_k) exp(-i t_k v)) / (k + 1/2) at t_k = (k + 1/2) step is
        P(form > v) up to the probability that the form is farther than 2 pi / step from v. With 2 pi / step the
        length of the range, this probability is below 1e-10 for every v in the range, and the sums for all v
        together are one Fourier transform.
        """
        low, high = self.range
        step = 2.0 * np.pi / (high - low)
        n_nodes = MIN_NODES
        while self._truncation_bound((n_nodes - 1) * step) > GOOD_ACCURACY and n_nodes < MAX_NODES:
            n_nodes *= 2
        bound = self._truncation_bound((n_nodes - 1) * step)
        if bound > ACCURACY:
            raise InputError(
                f"The optimal ROC curve of these two gaussians cannot be computed to {ACCURACY:g}: {n_nodes:,} terms "
                f"leave an error of up to {bound:.1g}. Hint: let the covariances differ clearly in two directions or "
                "more, or be equal."
            )
        half = np.arange(n_nodes) + 0.5  # in steps
        t = half * step
        log_phi = 1j * t * (self.constant - low)
        for square, linear in zip(self.square, self.linear, strict=True):
            shrink = 1.0 - 2j * square * t
            log_phi += -0.5 * np.log(shrink) - 2.0 * (linear * t) ** 2 / shrink
        sums = np.fft.fft(np.exp(log_phi) / half) * np.exp(-1j * np.pi * np.arange(n_nodes) / n_nodes)
        # The remaining error is a ripple; a survival function has none.
        return np.minimum.accumulate(np.clip(0.5 + sums.imag / np.pi, 0.0, 1.0))

    @property
    def _grid(self) -> NDArray[np.float64]:
        return np.linspace(*self.range, self._table.size, endpoint=False)

    @cached_property
    def _discounted_table(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The part of the grid from the last point below 0, and E(exp(-form); form > v) at its points."""
        grid = self._grid
        first = max(int(np.searchsorted(grid, 0.0)) - 1, 0)
        grid, survival = grid[first:], self._table[first:]
        # The mass between two points of the grid counts at their middle, the mass beyond at the last point.
        middle = np.append(grid[:-1] + np.diff(grid) / 2.0, grid[-1:])
        pieces = -np.diff(survival, append=0.0) * np.exp(-middle)
        return grid, np.cumsum(pieces[::-1])[::-1]
