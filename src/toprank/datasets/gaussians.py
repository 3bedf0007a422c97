"""Two classes of gaussian vectors: with one covariance, or with two.

With one covariance the likelihood ratio is linear in x and everything is closed form: this is the toy example of the
TreeRank paper. With two it is quadratic, with the distribution of a `QuadraticForm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from toprank.errors import InputError
from toprank.metrics.checks import check_choice, check_count

from .populations import SimulatedData, SmoothPopulation, check_number, check_random_state, layout_generator

SEPARATORS = ("axis", "arbitrary")
DEVIATIONS = 6.5  # a normal variable is farther from its mean with probability 8e-11
NEGLIGIBLE = 1e-8  # coefficients this small relative to the largest count as zero
TAIL = 1e-10  # probability of a value outside the grid, on each side
ACCURACY = 2e-5  # largest accepted error bound of a table
GOOD_ACCURACY = 1e-9  # no longer sum is tried below this bound
MIN_NODES, MAX_NODES = 2**18, 2**21


class TwoGaussians(SmoothPopulation):
    """What both populations of gaussians share: the checks and the draw."""

    negative_mean: NDArray[np.float64]
    positive_mean: NDArray[np.float64]
    _covariances: ClassVar[tuple[str, ...]]  # fields: one for both classes, or that of negatives and that of positives

    def __post_init__(self) -> None:
        _check_gaussians(self, self._covariances)

    @property
    def n_signal_features(self) -> int:
        """Length of the means."""
        return self.negative_mean.size

    def _draw(self, rng: np.random.Generator, n_samples: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        is_positive = rng.random(n_samples) < self.positive_rate
        normal = rng.standard_normal((n_samples, self.n_signal_features))
        roots = [np.linalg.cholesky(getattr(self, name)).T for name in self._covariances]
        negative, positive = self.negative_mean + normal @ roots[0], self.positive_mean + normal @ roots[-1]
        return np.where(is_positive[:, None], positive, negative), is_positive


@dataclass(frozen=True, eq=False)
class GaussianPopulation(TwoGaussians):
    """Two gaussians with the same covariance: the best separators are parallel hyperplanes.

    With D the Mahalanobis distance of the means, the log likelihood ratio is normal with variance D^2 and mean
    -D^2 / 2 in the negative class, D^2 / 2 in the positive one. Hence ROC*(a) = Phi(D + Phi^-1(a)) and
    AUC* = Phi(D / sqrt(2)).

    Parameters
    ----------
    negative_mean, positive_mean : array-like of shape (d,)
    covariance : array-like of shape (d, d)
        Symmetric and positive definite.
    positive_rate : float in (0, 1), default=0.5
    n_noise_features : int, default=0
        Independent standard normal features after the others.

    Examples
    --------
    >>> from toprank.datasets import GaussianPopulation
    >>> population = GaussianPopulation([0.0, 0.0], [1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> round(population.distance, 4), round(population.optimal_auc(), 4)
    (1.4142, 0.8413)
    >>> population.probability([[0.5, 0.5]]).tolist()
    [0.5]
    """

    _covariances = ("covariance",)

    negative_mean: NDArray[np.float64]
    positive_mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    positive_rate: float = 0.5
    n_noise_features: int = 0

    @property
    def direction(self) -> NDArray[np.float64]:
        """The normal of the separating hyperplanes: the inverse covariance times the difference of the means."""
        difference = self.positive_mean - self.negative_mean
        return np.linalg.solve(self.covariance, difference).astype(np.float64, copy=False)

    @property
    def distance(self) -> float:
        """Mahalanobis distance of the two means."""
        return float(np.sqrt((self.positive_mean - self.negative_mean) @ self.direction))

    def optimal_auc(self) -> float:
        """Return the area under the optimal ROC curve, in closed form."""
        return float(ndtr(self.distance / np.sqrt(2.0)))

    def _rates_above_log_ratio(self, log_ratio: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scaled, half = log_ratio / self.distance, self.distance / 2.0
        return ndtr(-half - scaled), ndtr(half - scaled)

    def _positive_range(self) -> tuple[float, float]:
        middle, reach = self.distance**2 / 2.0, DEVIATIONS * self.distance
        return middle - reach, middle + reach

    def _log_ratio(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return (X - (self.negative_mean + self.positive_mean) / 2.0) @ self.direction


@dataclass(frozen=True, eq=False)
class QuadraticGaussianPopulation(TwoGaussians):
    """Two gaussians with different covariances: the best separators are quadrics.

    In coordinates z in which the negative class is standard normal and the positive one is normal with independent
    components of means b and variances 1 / d, the log likelihood ratio is half the sum of z^2 - d (z - b)^2 + log d:
    a quadratic form in normal variables under either class.

    Parameters
    ----------
    negative_mean, positive_mean : array-like of shape (d,)
    negative_covariance, positive_covariance : array-like of shape (d, d)
        Symmetric and positive definite.
    positive_rate : float in (0, 1), default=0.5
    n_noise_features : int, default=0
        Independent standard normal features after the others.

    Examples
    --------
    >>> from toprank.datasets import QuadraticGaussianPopulation
    >>> identity = [[1.0, 0.0], [0.0, 1.0]]
    >>> population = QuadraticGaussianPopulation([0.0, 0.0], [0.0, 0.0], identity, [[4.0, 0.0], [0.0, 4.0]])
    >>> round(population.optimal_auc(), 6)  # a ratio of two exponential variables: 4 / (4 + 1)
    0.8
    """

    _covariances = ("negative_covariance", "positive_covariance")

    negative_mean: NDArray[np.float64]
    positive_mean: NDArray[np.float64]
    negative_covariance: NDArray[np.float64]
    positive_covariance: NDArray[np.float64]
    positive_rate: float = 0.5
    n_noise_features: int = 0

    @cached_property
    def _coordinates(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The matrix from x - negative_mean to z, and d and b of the class docstring."""
        root = np.linalg.cholesky(self.negative_covariance)
        inverse_variance, rotation = np.linalg.eigh(root.T @ np.linalg.solve(self.positive_covariance, root))
        to_z = rotation.T @ np.linalg.inv(root)
        return to_z, inverse_variance, to_z @ (self.positive_mean - self.negative_mean)

    @cached_property
    def _negative_form(self) -> QuadraticForm:
        """The log ratio of a negative: z is standard normal."""
        _, d, b = self._coordinates
        return QuadraticForm((1.0 - d) / 2.0, d * b / 2.0, float((np.log(d) - d * b**2).sum() / 2.0))

    @cached_property
    def _positive_form(self) -> QuadraticForm:
        """The log ratio of a positive: z = b + w / sqrt(d) with w standard normal."""
        _, d, b = self._coordinates
        return QuadraticForm((1.0 / d - 1.0) / 2.0, b / np.sqrt(d) / 2.0, float((np.log(d) + b**2).sum() / 2.0))

    @cached_property
    def _difference_form(self) -> QuadraticForm:
        """The log ratio of a positive minus that of an independent negative."""
        return self._positive_form.minus(self._negative_form)

    def optimal_auc(self) -> float:
        """Return the area under the optimal ROC curve, to 2e-5 or better.

        It is the probability that a positive has a larger log ratio than a negative (Proposition 11), and the
        difference of the two is again a quadratic form.
        """
        return float(self._difference_form.survival(0.0))

    def _rates_above_log_ratio(self, log_ratio: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        alpha, beta = self._negative_form.survival(log_ratio), self._positive_form.survival(log_ratio)
        if not self._positive_form.is_exact:
            # The curve is as steep as the likelihood ratio, which amplifies errors of alpha. So where the ratio exceeds
            # 1, alpha is computed from the positives: the density of negatives is exp(-log ratio) times theirs.
            above_one = self._positive_form.discounted_survival(np.maximum(log_ratio, 0.0))
            alpha = np.where(log_ratio > 0.0, above_one, np.maximum(alpha, above_one))
        return alpha, beta

    def _positive_range(self) -> tuple[float, float]:
        return self._positive_form.range

    def _log_ratio(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        to_z, d, b = self._coordinates
        z = (X - self.negative_mean) @ to_z.T
        return (z**2 - d * (z - b) ** 2 + np.log(d)).sum(axis=1) / 2.0


def make_gaussians(
    n_samples: int = 1000,
    *,
    n_features: int = 5,
    positive_rate: float = 0.5,
    separator: str = "axis",
    distance: float = 1.6,
    direction_seed: int = 0,
    n_noise_features: int = 0,
    random_state: Any = None,
) -> SimulatedData:
    """Draw two classes of gaussian vectors with the same covariance: the toy example of the TreeRank paper.

    The optimal ROC curve depends only on ``distance``, so that the two kinds of separator differ only in how well a
    tree with one feature per split can follow them.

    Parameters
    ----------
    n_samples : int, default=1000
    n_features : int, default=5
    positive_rate : float in (0, 1), default=0.5
        P(y = 1); the share of positives varies around it by chance.
    separator : {"axis", "arbitrary"}, default="axis"
        "axis": the covariance is the identity and the classes differ only in the first feature, situation (i) of the
        paper. "arbitrary": the features are correlated, the classes differ in all of them by the same amount up to
        sign, and the separator is a hyperplane in general position, situation (ii).
    distance : float in (0, 30], default=1.6
        Mahalanobis distance of the two means. The optimal AUC is Phi(distance / sqrt(2)): 0.871 by default.
    direction_seed : int, default=0
        Seed of the correlations and signs of "arbitrary", separate from the rows: the same population for every
        ``random_state``.
    n_noise_features : int, default=0
        Independent standard normal features after the others.
    random_state : int, numpy.random.Generator or None, default=None
        The same int gives the same rows.

    Returns
    -------
    data : SimulatedData
        ``data.population`` is a `GaussianPopulation`.

    References
    ----------
    S. Clémençon, N. Vayatis, "Tree-based ranking methods", section VI, figures 4 and 5.

    Examples
    --------
    >>> from toprank.datasets import make_gaussians, optimal_auc
    >>> data = make_gaussians(separator="arbitrary", random_state=0)
    >>> data.X.shape, round(optimal_auc(data), 3)
    ((1000, 5), 0.871)
    """
    caller = "make_gaussians"
    check_count(n_samples, "n_samples", caller=caller)
    check_count(n_features, "n_features", caller=caller)
    check_choice(separator, "separator", SEPARATORS, caller=caller)
    check_number(distance, "distance", "(0, 30]", caller=caller)
    _check_shared_parameters(positive_rate, n_noise_features, caller=caller)
    layout = layout_generator(direction_seed, "direction_seed", caller=caller)
    if separator == "axis":
        covariance = np.eye(n_features)
        difference = np.r_[1.0, np.zeros(n_features - 1)]
    else:
        spread = _random_covariance(layout, n_features, 4.0)
        deviation = np.sqrt(np.diag(spread))
        covariance = spread / np.outer(deviation, deviation)
        # Each feature alone separates the classes equally well: no first split is obvious.
        difference = layout.choice([-1.0, 1.0], n_features)
    difference = difference * distance / np.sqrt(difference @ np.linalg.solve(covariance, difference))
    population = GaussianPopulation(np.zeros(n_features), difference, covariance, positive_rate, n_noise_features)
    return population.sample(n_samples, check_random_state(random_state, caller=caller))


def make_quadratic_gaussians(
    n_samples: int = 1000,
    *,
    n_features: int = 5,
    positive_rate: float = 0.5,
    distance: float = 1.0,
    spread: float = 3.0,
    direction_seed: int = 0,
    n_noise_features: int = 0,
    random_state: Any = None,
) -> SimulatedData:
    """Draw two classes of gaussian vectors with different covariances: the best separator is curved.

    Negatives are standard normal. Positives vary more in some directions and less in others.

    Parameters
    ----------
    n_samples, n_features, positive_rate, n_noise_features, random_state
        As in `make_gaussians`.
    distance : float in [0, 30], default=1.0
        Distance of the two means; with 0 only the covariances differ.
    spread : float in (1, 100], default=3.0
        The variances of the positives along their main directions go from 1 / spread to spread.
    direction_seed : int, default=0
        Seed of these directions and that of the means, separate from the rows: the same population for every
        ``random_state``.

    Returns
    -------
    data : SimulatedData
        ``data.population`` is a `QuadraticGaussianPopulation`.

    Examples
    --------
    >>> from toprank.datasets import make_quadratic_gaussians, optimal_auc
    >>> data = make_quadratic_gaussians(500, random_state=0)
    >>> 0.8 < optimal_auc(data) < 0.9
    True
    """
    caller = "make_quadratic_gaussians"
    check_count(n_samples, "n_samples", caller=caller)
    check_count(n_features, "n_features", caller=caller)
    check_number(distance, "distance", "[0, 30]", caller=caller)
    check_number(spread, "spread", "(1, 100]", caller=caller)
    _check_shared_parameters(positive_rate, n_noise_features, caller=caller)
    layout = layout_generator(direction_seed, "direction_seed", caller=caller)
    covariance = _random_covariance(layout, n_features, spread)
    direction = layout.standard_normal(n_features)
    population = QuadraticGaussianPopulation(
        negative_mean=np.zeros(n_features),
        positive_mean=distance * direction / np.linalg.norm(direction),
        negative_covariance=np.eye(n_features),
        positive_covariance=covariance,
        positive_rate=positive_rate,
        n_noise_features=n_noise_features,
    )
    return population.sample(n_samples, check_random_state(random_state, caller=caller))


def _random_covariance(layout: np.random.Generator, n_features: int, spread: float) -> NDArray[np.float64]:
    """Return a covariance with variances from 1 / spread to spread along random orthogonal directions."""
    rotation, triangle = np.linalg.qr(layout.standard_normal((n_features, n_features)))
    rotation *= np.sign(np.diag(triangle))  # makes the directions uniform
    variances = np.geomspace(spread, 1.0 / spread, n_features)
    covariance = rotation * variances @ rotation.T
    return (covariance + covariance.T) / 2.0


def _check_shared_parameters(positive_rate: Any, n_noise_features: Any, *, caller: str) -> None:
    check_number(positive_rate, "positive_rate", "(0, 1)", caller=caller)
    check_count(n_noise_features, "n_noise_features", caller=caller, low=0)


def _check_gaussians(population: Any, covariances: tuple[str, ...]) -> None:
    """Turn the arrays of a population into float64, and raise unless they are two different gaussians."""
    caller = type(population).__name__
    _check_shared_parameters(population.positive_rate, population.n_noise_features, caller=caller)
    n_features = np.size(population.negative_mean)
    for name in ("negative_mean", "positive_mean"):
        mean = np.array(getattr(population, name), dtype=np.float64)
        if mean.shape != (n_features,) or n_features == 0 or not np.isfinite(mean).all():
            raise InputError(
                f"The '{name}' parameter of {caller} must be a vector of finite numbers, as long as the other mean. "
                f"Got an array of shape {mean.shape} instead. Hint: one number per feature, without noise features."
            )
        object.__setattr__(population, name, mean)
    for name in covariances:
        matrix = np.array(getattr(population, name), dtype=np.float64)
        is_square = matrix.shape == (n_features, n_features) and np.isfinite(matrix).all()
        is_symmetric = is_square and np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0)
        if not is_symmetric or np.linalg.eigvalsh(matrix)[0] <= 1e-12 * np.abs(matrix).max():
            found = f"an array of shape {matrix.shape}" if not is_square else "a matrix that is not"
            raise InputError(
                f"The '{name}' parameter of {caller} must be a symmetric positive definite matrix of {n_features} "
                f"rows. Got {found} instead. Hint: np.eye({n_features}) is one."
            )
        object.__setattr__(population, name, matrix)
    matrices = [getattr(population, name) for name in covariances]
    if np.array_equal(matrices[0], matrices[-1]) and np.array_equal(population.negative_mean, population.positive_mean):
        raise InputError(
            f"{caller} needs two classes that differ, but their means and covariances are the same. "
            "Hint: move positive_mean."
        )


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """The random variable constant + sum_i (square_i z_i^2 + 2 linear_i z_i), with z_i independent N(0, 1).

    The log likelihood ratio of two gaussians is such a form. Its distribution has no closed form in general; it is
    computed by inverting the characteristic function, after Imhof (1961) and Davies (1973, 1980), at all points of a
    grid at once. Both errors of the method, from the step and from the truncation of the sum, have simple bounds, and
    the sum is long enough for them.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.datasets.gaussians import QuadraticForm
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
            square, linear = self.square[0], self.linear[0]
            shift = linear / square  # the form is square * (z + shift)^2 plus a number
            root = np.sqrt(np.maximum((values - self.constant) / square + shift**2, 0.0))
            beyond = ndtr(shift - root) + ndtr(-shift - root)
            return beyond if square > 0.0 else 1.0 - beyond
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
