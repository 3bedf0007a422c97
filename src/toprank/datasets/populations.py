"""Populations whose best possible ranking is known, and the samples drawn from them.

A population is the distribution of a pair (X, Y). It knows eta(x) = P(Y = 1 | X = x), and the share of each class where
eta exceeds a threshold; the optimal ROC curve is read off these two functions. This file owns what all populations
share: the sample, the curve of a distribution without atoms and that of a distribution with a few values of eta. The
distributions themselves are in ``gaussians`` and ``cells``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from toprank.errors import InputError
from toprank.metrics.checks import check_count, is_int, is_real
from toprank.metrics.roc import RocCurve
from toprank.words.counts import plural

STREAM = 20_080_908  # any constant, never changed
LAYOUT_STREAM = 20_080_909
CURVE_TOLERANCE = 2e-5  # largest distance of a straight line between two knots from the curve


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedData:
    """Rows drawn from a population whose best ranking is known, as made by `make_gaussians` and similar functions.

    Attributes
    ----------
    X : ndarray of shape (n, n_features), float64
    y : ndarray of shape (n,), int8
        1 = positive.
    probability : ndarray of shape (n,), float64
        The true P(y = 1 | row).
    population : Population
        Draws more rows, and gives the optimal ROC curve.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int8]
    probability: NDArray[np.float64]
    population: Population

    def __len__(self) -> int:
        return self.y.shape[0]

    def __repr__(self) -> str:
        return (
            f"<SimulatedData: {plural(len(self), 'row')}, {plural(self.X.shape[1], 'feature')}, "
            f"{int(self.y.sum()):,} positive, from {type(self.population).__name__}>"
        )

    def take(self, rows: Any) -> SimulatedData:
        """Return the rows picked by an index array, a boolean mask or a slice, as `SimulatedData`."""
        return replace(self, X=self.X[rows], y=self.y[rows], probability=self.probability[rows])


class Population(ABC):
    """The distribution of a row and its label.

    Noise features come last: they are independent of everything else, and no function here uses them.

    Attributes
    ----------
    positive_rate : float
        p = P(Y = 1).
    n_noise_features : int
    """

    positive_rate: float
    n_noise_features: int

    @property
    @abstractmethod
    def n_signal_features(self) -> int:
        """Number of features that are not noise."""

    @property
    def n_features(self) -> int:
        """Number of columns of a sample, noise included."""
        return self.n_signal_features + self.n_noise_features

    @abstractmethod
    def rates_above(self, threshold: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the share of each class where eta exceeds a threshold.

        Parameters
        ----------
        threshold : array-like of any shape
            Numbers in [0, 1].

        Returns
        -------
        alpha, beta : ndarray of the shape of `threshold`, float64
            P(eta(X) > t | Y = 0) and P(eta(X) > t | Y = 1), the two coordinates of the optimal ROC curve
            (section II-B of the TreeRank paper).
        """

    @abstractmethod
    def optimal_roc(self) -> RocCurve:
        """Return the ROC curve of eta, which is above that of any other score (Proposition 6)."""

    @abstractmethod
    def optimal_auc(self) -> float:
        """Return the area under the optimal ROC curve."""

    @abstractmethod
    def _probability(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return eta of checked rows without noise features."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, n_samples: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return rows without noise features, and whether each is positive."""

    @abstractmethod
    def _draw_noise(self, rng: np.random.Generator, n_samples: int) -> NDArray[np.float64]:
        """Return the noise features: shape (n_samples, n_noise_features)."""

    def probability(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return eta(x) = P(Y = 1 | X = x) of each row of `X`, an array of shape (n, n_features)."""
        return self._probability(self._check_rows(X)[:, : self.n_signal_features])

    def sample(self, n_samples: int, random_state: Any = None) -> SimulatedData:
        """Draw independent rows.

        Parameters
        ----------
        n_samples : int
        random_state : int, numpy.random.Generator or None, default=None
            The same int gives the same rows.

        Returns
        -------
        data : SimulatedData
        """
        caller = f"{type(self).__name__}.sample"
        check_count(n_samples, "n_samples", caller=caller)
        rng = check_random_state(random_state, caller=caller)
        signal, is_positive = self._draw(rng, n_samples)
        X = np.ascontiguousarray(np.hstack([signal, self._draw_noise(rng, n_samples)]))
        return SimulatedData(X=X, y=is_positive.astype(np.int8), probability=self._probability(signal), population=self)

    def _check_rows(self, X: ArrayLike) -> NDArray[np.float64]:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            n_features = plural(self.n_features, "feature")
            raise InputError(
                f"{type(self).__name__}.probability needs rows of {n_features}, including noise. Got an "
                f"array of shape {rows.shape} instead. Hint: one row is X[[0]]."
            )
        if not np.isfinite(rows).all():
            n_bad = int((~np.isfinite(rows)).sum())
            raise InputError(
                f"{type(self).__name__}.probability needs finite numbers, but {plural(n_bad, 'cell')} of X "
                f"{'is' if n_bad == 1 else 'are'} not. "
                "Hint: a population has no missing values; drop such rows."
            )
        return rows


class SmoothPopulation(Population):
    """A population in which eta(X) has no atoms, given by the distribution of the log likelihood ratio.

    The ratio of the two class densities at x, l(x), orders rows like eta: logit eta = logit p + log l.
    """

    @abstractmethod
    def _rates_above_log_ratio(self, log_ratio: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return P(log l(X) > v | Y = 0) and P(log l(X) > v | Y = 1) for each v, infinities included."""

    @abstractmethod
    def _positive_range(self) -> tuple[float, float]:
        """Return an interval that the log ratio of a positive leaves with probability below 1e-9."""

    @abstractmethod
    def _log_ratio(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log l of rows without noise features."""

    def _probability(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return expit(self._log_ratio(X) + logit(self.positive_rate))

    def _draw_noise(self, rng: np.random.Generator, n_samples: int) -> NDArray[np.float64]:
        return rng.standard_normal((n_samples, self.n_noise_features))

    def rates_above(self, threshold: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return P(eta(X) > t | Y = 0) and P(eta(X) > t | Y = 1); see `Population.rates_above`."""
        threshold = check_threshold(threshold, caller=f"{type(self).__name__}.rates_above")
        return self._rates_above_log_ratio(logit(threshold) - logit(self.positive_rate))

    def optimal_roc(self) -> RocCurve:
        """Return the optimal ROC curve by knots that are close enough for straight lines between them.

        Returns
        -------
        curve : RocCurve
            Interpolation between knots is at most 2e-5 below the true curve.
        """
        low, high = self._positive_range()
        n_steps = 1024
        while True:
            log_ratio = np.linspace(high, low, n_steps + 1)
            alpha, beta = self._rates_above_log_ratio(log_ratio)
            # The slope of the curve is the likelihood ratio (Proposition 8), so between two knots the curve
            # stays under tangents of slopes s and r = s * exp(-step). A chord of slope m is below their intersection
            # by (s - m)(m - r) / (s - r) <= (s - r) / 4 per unit of alpha; with m >= r, this is
            # (exp(step) - 1) / 4 per unit of beta. Before the first and after the last knot beta hardly moves.
            gap = np.abs(np.diff(beta)).max() * np.expm1((high - low) / n_steps) / 4.0
            if gap <= CURVE_TOLERANCE:
                # Neighbours too close to be ordered despite rounding are merged.
                alpha, beta = np.maximum.accumulate(alpha), np.maximum.accumulate(beta)
                return RocCurve(alpha=np.r_[0.0, alpha, 1.0], beta=np.r_[0.0, beta, 1.0])
            n_steps *= 2


class SteppedPopulation(Population):
    """A population in which eta is constant on each of a few cells: its ROC curve is piecewise linear."""

    @property
    @abstractmethod
    def cell_share(self) -> NDArray[np.float64]:
        """P(X in cell) of each cell, or of each group of cells with the same rate; they sum to 1."""

    @property
    @abstractmethod
    def cell_rate(self) -> NDArray[np.float64]:
        """P(Y = 1 | X in cell), in the order of `cell_share`."""

    @property
    def positive_rate(self) -> float:  # type: ignore[override]
        """P(Y = 1), the mean of the rates."""
        return float(self.cell_share @ self.cell_rate)

    @abstractmethod
    def _cell_of(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the index into `cell_rate` of each row without noise features."""

    def _probability(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.cell_rate[self._cell_of(X)]

    def _draw(self, rng: np.random.Generator, n_samples: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        X = rng.random((n_samples, self.n_signal_features))
        return X, rng.random(n_samples) < self._probability(X)

    def _draw_noise(self, rng: np.random.Generator, n_samples: int) -> NDArray[np.float64]:
        return rng.random((n_samples, self.n_noise_features))

    def _check_rows(self, X: ArrayLike) -> NDArray[np.float64]:
        rows = super()._check_rows(X)
        is_outside = ~((rows >= 0.0) & (rows <= 1.0)).all(axis=1)
        if is_outside.any():
            n_outside = int(is_outside.sum())
            raise InputError(
                f"{type(self).__name__}.probability needs numbers in [0, 1], like all rows of the population, but "
                f"{n_outside:,} of {plural(len(rows), 'row')} {'is' if n_outside == 1 else 'are'} outside (the first "
                f"in row {int(is_outside.argmax())}). Hint: do not scale the features."
            )
        return rows

    def _distinct_rates(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distinct values of eta, best first, and P(eta(X) = value) of each."""
        is_there = self.cell_share > 0.0
        minus_rate, value = np.unique(-self.cell_rate[is_there], return_inverse=True)
        return -minus_rate, np.bincount(value, self.cell_share[is_there]).astype(np.float64, copy=False)

    def rates_above(self, threshold: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return P(eta(X) > t | Y = 0) and P(eta(X) > t | Y = 1); see `Population.rates_above`."""
        threshold = check_threshold(threshold, caller=f"{type(self).__name__}.rates_above")
        n_above = np.searchsorted(-self._distinct_rates()[0], -threshold, side="left")
        curve = self.optimal_roc()
        return curve.alpha[n_above], curve.beta[n_above]

    def optimal_roc(self) -> RocCurve:
        """Return the exact optimal ROC curve: piecewise linear, with one piece per distinct rate."""
        rate, share = self._distinct_rates()
        return RocCurve.from_cells(share * rate, share * (1.0 - rate))

    def optimal_auc(self) -> float:
        """Return the area under the optimal ROC curve, exactly."""
        return self.optimal_roc().area


def check_random_state(random_state: Any, *, caller: str, stream: int = STREAM) -> np.random.Generator:
    """Return a Generator seeded by `random_state`, or `random_state` itself if it is one."""
    if is_int(random_state) and random_state >= 0:
        # A stream of its own, so that default_rng(0) in a caller's split does not replay our draws.
        return np.random.default_rng([int(random_state), stream])
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    raise InputError(
        f"The 'random_state' parameter of {caller} must be an int in the range [0, inf), a numpy.random.Generator or "
        f"None. Got {random_state!r} instead."
    )


def layout_generator(seed: Any, name: str, *, caller: str) -> np.random.Generator:
    """Return the Generator for the layout of a population, separate from the one that draws its rows."""
    check_count(seed, name, caller=caller, low=0)
    return np.random.default_rng([int(seed), LAYOUT_STREAM])


def check_number(value: Any, name: str, interval: str, *, caller: str) -> float:
    """Return `value` as a float inside an interval such as ``"(0, 1]"``."""
    low, high = map(float, interval[1:-1].split(","))
    is_inside = is_real(value) and low <= value <= high
    is_open_end = is_inside and ((value == low and interval[0] == "(") or (value == high and interval[-1] == ")"))
    if not is_inside or is_open_end:
        raise InputError(
            f"The '{name}' parameter of {caller} must be a float in the range {interval}. Got {value!r} instead."
        )
    return float(value)


def check_threshold(threshold: ArrayLike, *, caller: str) -> NDArray[np.float64]:
    """Return the thresholds as float64, all in [0, 1]."""
    values = np.asarray(threshold, dtype=np.float64)
    is_bad = ~((values >= 0.0) & (values <= 1.0))  # NaN is bad too
    if is_bad.any():
        raise InputError(
            f"The 'threshold' parameter of {caller} must be numbers in [0, 1]. Got {values[is_bad].flat[0]} instead. "
            "Hint: a threshold is a probability, not a score."
        )
    return values
