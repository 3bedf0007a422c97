"""Losses of boosting: smooth surrogates of average precision (SGBAP), and the logistic loss.

Each gives the value, the gradient and a positive bound on the curvature of a loss of all scores. The derivations are in
the documentation, "Boosting on average precision".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit

from toprank._core.surrogates import UNIT, add_to_grid, exponentials, read_grid, sum_in_units

EXACT_PAIRS = 500_000
"""Up to this many pairs of a positive and another case, the sigmoid surrogate is summed pair by pair."""

GRID_STEP = 1 / 64
"""Distance between the points of the grid of scores, times alpha; see `SigmoidAP.grid_error`."""

MAX_POINTS = 2**21
REACH = 40.0
"""Scores that are this far apart, times alpha, are as good as infinitely far: the sigmoid is 0 or 1."""


class Here:
    """Sums over the rows of this process; `toprank.distributed` has one over all workers."""

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum of an array over all processes, element by element."""
        return values

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The maximum of an array over all processes, element by element."""
        return values

    def sum(self, values: np.ndarray) -> float:
        """The sum of non-negative numbers, one per row, over the rows of all processes.

        It is in fixed point, so it does not depend on how the rows are spread.
        """
        most = float(self.largest(np.array([values.max(initial=0.0)]))[0])
        if not 0 < most < math.inf:
            return most
        unit = math.frexp(most)[1]
        whole = sum_in_units(np.ascontiguousarray(values), math.ldexp(UNIT, -unit))
        return math.ldexp(float(self.total(np.array([whole]))[0]) / UNIT, unit)

    def gather(self, values: np.ndarray) -> tuple[np.ndarray, slice | np.ndarray]:
        """Values of the rows of all processes, in the order of the table, and where the own rows are.

        Parameters
        ----------
        values : float64 array of shape (n, n_values)
            One row per row of this process.
        """
        return values, slice(0, len(values))


HERE = Here()


@dataclass(frozen=True)
class Slopes:
    """First derivatives of a loss by each score, and positive bounds on the second ones: float64 (n,) both."""

    gradient: np.ndarray
    curvature: np.ndarray


class Loss(ABC):
    """A loss of the scores of all cases, to be minimised.

    Rows of weight 0 do not count; their slopes are 0.
    """

    @abstractmethod
    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The loss; arrays of shape (n,)."""

    @abstractmethod
    def slopes(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here = HERE) -> Slopes:
        """Derivatives of the loss by each score, up to a factor that all of them share."""


class Logistic(Loss):
    """Mean logistic loss."""

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The mean of log(1 + exp(-margin))."""
        margin = np.where(is_positive, score, -score)
        return float(np.average(np.logaddexp(0.0, -margin), weights=weight))

    def slopes(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here = HERE) -> Slopes:
        """Derivatives of the sum of the losses, exact."""
        rate = expit(score)
        return Slopes(weight * (rate - is_positive), weight * (rate * (1.0 - rate)))


@dataclass(frozen=True)
class ExponentialAP(Loss):
    """1 - AP with exponentials in place of indicators: the share of the negatives in the sum of all exponentials.

    In the paper's terms 1 - AP_exp (eq. 11), and its gradient (eq. 12), with the misprint there mended: the sum in the
    denominator runs over all M cases.

    Attributes
    ----------
    alpha : float
        Steepness: I(a <= b) becomes exp(alpha (b - a)); 1 in the paper. The larger, the more only the top counts.
    """

    alpha: float = 1.0

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The surrogate, between 0 and 1."""
        logs = [_log_sum(self.alpha * score[rows], weight[rows]) for rows in (~is_positive, is_positive)]
        return float(expit(logs[0] - logs[1]))

    def slopes(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here = HERE) -> Slopes:
        """Derivatives divided by alpha L (1 - L), where L is the loss, and times half of the total weight.

        So divided, they are those of the log-odds of L, the logarithm of the negatives' sum minus that of the
        positives' sum: exponentials as shares of their own class, which never vanish or overflow. The second derivative
        is at most alpha times the size of the first.
        """
        score = self.alpha * score
        scale = float(all_rows.largest(np.array([weight.max(initial=0.0)]))[0])
        has_weight = weight > 0
        tops = np.array([score[has_weight & rows].max(initial=-np.inf) for rows in (~is_positive, is_positive)])
        tops = all_rows.largest(tops)
        share = np.empty(len(score))
        sums = all_rows.total(np.array(exponentials(score, weight / scale, is_positive, *tops, share)))
        with np.errstate(divide="ignore", invalid="ignore"):  # a class without cases
            share /= np.where(is_positive, sums[1], sums[0]) / UNIT
        share[~has_weight] = 0.0
        share *= all_rows.sum(weight) / 2
        return Slopes(np.where(is_positive, -share, share), max(self.alpha, 1.0) * share)


def _log_sum(score: np.ndarray, weight: np.ndarray) -> float:
    """The logarithm of the weighted sum of exponentials."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(score + np.log(weight))) if len(score) else -np.inf


@dataclass(frozen=True)
class SigmoidAP(Loss):
    """1 - AP with sigmoids in place of indicators: 1 - AP_sig of the paper (eq. 9).

    The gradient (eq. 10) is derived anew: the printed one lacks the factor alpha, has the sign of the sigmoid's
    derivative the wrong way round, and sums over the N negatives where all M cases are meant.

    Attributes
    ----------
    alpha : float
        Steepness: the larger, the nearer the surrogate is to 1 - AP, and the more gradients vanish.
    exact_pairs : int
        Most pairs of a positive and another case to sum one by one. With more, masses are put on a grid of scores
        (`GRID_STEP`) and sums over them are convolutions, which takes n + B log B steps instead of P n.
    """

    alpha: float = 1.0
    exact_pairs: int = EXACT_PAIRS

    @property
    def grid_error(self) -> float:
        """The most by which a sum of sigmoids over cases is off on the grid, as a share of their total weight.

        Linear interpolation of a function K between points at a distance d is off by d^2/8 max |K''|, and mass is
        shared between points with the same error; the second derivative of the sigmoid is at most
        alpha^2 / (6 sqrt(3)).
        """
        return 2 * GRID_STEP**2 / 8 / (6 * math.sqrt(3))

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The surrogate, between 0 and 1."""
        sums = self._sums(score, is_positive, weight, HERE)
        return float(np.average(sums.negative / sums.all, weights=weight[is_positive]))

    def slopes(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here = HERE) -> Slopes:
        """Derivatives of the surrogate, times one factor; the bound on the curvature is proved in the documentation."""
        if all_rows is not HERE and self._is_exact(score, is_positive, all_rows):  # few rows: each process has them all
            whole, here = all_rows.gather(np.column_stack((score, is_positive, weight)))
            slopes = self.slopes(whole[:, 0].copy(), whole[:, 1] == 1, whole[:, 2].copy())
            return Slopes(slopes.gradient[here], slopes.curvature[here])
        rank = self._sums(score, is_positive, weight, all_rows)
        own = weight[is_positive] / all_rows.sum(weight[is_positive])
        ratio = rank.negative / rank.all
        pulls = own * (1.0 - ratio) / rank.all, own * ratio / rank.all
        to_negatives, to_positives = self._spread(score, is_positive, pulls, rank, all_rows)
        gradient, curvature = np.zeros(len(score)), np.zeros(len(score))
        down = weight[~is_positive] * to_negatives
        gradient[~is_positive], curvature[~is_positive] = down, self.alpha * down
        # A positive raises the precision at the positives below it, and loses negatives above itself.
        others = weight[is_positive] * to_positives
        above = own * rank.negative_slope / rank.all
        along = own * ratio * (rank.negative_slope + rank.positive_slope) / rank.all
        gradient[is_positive] = along - above - others
        curvature[is_positive] = self.alpha * (above + 3.0 * along + 1.6 * others)
        # As with the exponentials, so that XGBoost's penalties mean the same: bounds add up to the weight of all cases.
        total = all_rows.sum(curvature)
        scale = all_rows.sum(weight) / total if total > 0 else 1.0
        return Slopes(scale * gradient, scale * curvature)

    def _is_exact(self, score: np.ndarray, is_positive: np.ndarray, all_rows: Here) -> bool:
        """Whether pairs are summed one by one."""
        counts = all_rows.total(np.array([len(score), is_positive.sum()], np.float64))
        return bool(counts[0] * counts[1] <= self.exact_pairs)

    def _sums(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here) -> _Sums:
        """Sums of sigmoids and of their derivatives over the cases above each positive."""
        if self._is_exact(score, is_positive, all_rows):
            return self._sums_of_pairs(score, is_positive, weight, all_rows)
        return self._sums_on_grid(score, is_positive, weight, all_rows)

    def _sums_of_pairs(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here) -> _Sums:
        """Sums pair by pair, of cases of all processes."""
        others, _ = all_rows.gather(np.column_stack((score, weight, is_positive)))
        sigmoid = expit(self.alpha * (others[:, 0] - score[is_positive, None]))
        slope = self.alpha * sigmoid * (1.0 - sigmoid)
        masses = [np.where(others[:, 2] == sign, others[:, 1], 0.0) for sign in (0, 1)]
        above, slopes = [sigmoid @ mass for mass in masses], [slope @ mass for mass in masses]
        own = weight[is_positive]
        slopes[1] -= own * self.alpha / 4  # a case is never above or below itself
        return _Sums(above[0], above[0] + above[1], slopes[0], np.maximum(slopes[1], 0.0), None)

    def _sums_on_grid(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here) -> _Sums:
        """Sums by convolution of masses on a grid of scores around the positives."""
        at = score[is_positive]
        ends = all_rows.largest(np.array([-at.min(initial=np.inf), at.max(initial=-np.inf)]))
        reach = REACH / self.alpha
        start, length = -ends[0] - reach, ends[0] + ends[1] + 2 * reach
        n_points = int(min(math.ceil(length / (GRID_STEP / self.alpha)), MAX_POINTS)) + 1
        grid = _Grid(start, length / (n_points - 1), n_points, self.alpha)
        masses = [np.zeros(n_points), np.zeros(n_points)]
        for mass, rows in zip(masses, (~is_positive, is_positive), strict=True):
            grid.add(score[rows], weight[rows], mass)
        masses = list(all_rows.total(np.array(masses)))
        above = [grid.read(grid.above(mass), at) for mass in masses]
        slopes = [grid.read(grid.slope(mass), at) for mass in masses]
        slopes[1] -= weight[is_positive] * self.alpha / 4
        negative = np.maximum(above[0], 0.0)
        return _Sums(negative, negative + np.maximum(above[1], weight[is_positive] / 2), np.maximum(slopes[0], 0.0),
                     np.maximum(slopes[1], 0.0), grid)  # fmt: skip

    def _spread(
        self, score: np.ndarray, is_positive: np.ndarray, pulls: tuple[np.ndarray, np.ndarray], sums: _Sums,
        all_rows: Here,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Sums over all positives of their pulls times the sigmoid's slope: at negatives and at other positives."""
        at = score[is_positive]
        own = pulls[1] * self.alpha / 4
        if sums.grid is None:
            positives, _ = all_rows.gather(np.column_stack((at, *pulls)))
            sigmoid = expit(self.alpha * (score[:, None] - positives[:, 0]))
            slope = self.alpha * sigmoid * (1.0 - sigmoid)
            to_positives = slope[is_positive] @ positives[:, 2]
            return slope[~is_positive] @ positives[:, 1], np.maximum(to_positives - own, 0.0)
        masses = [np.zeros(sums.grid.n_points), np.zeros(sums.grid.n_points)]
        for mass, pull in zip(masses, pulls, strict=True):
            sums.grid.add(at, pull, mass)
        fields = [sums.grid.slope(mass) for mass in all_rows.total(np.array(masses))]
        to_negatives = np.maximum(sums.grid.read(fields[0], score[~is_positive]), 0.0)
        return to_negatives, np.maximum(sums.grid.read(fields[1], at) - own, 0.0)


@dataclass(frozen=True)
class Blend(Loss):
    """The logistic loss and a surrogate of average precision together.

    Attributes
    ----------
    surrogate : Loss
    share : float
        Share of the surrogate in the curvature, between 0 and 1: as scores change, each of the two keeps its say.
    """

    surrogate: Loss
    share: float

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """Both values, each with its share."""
        parts = [loss.value(score, is_positive, weight) for loss in (self.surrogate, Logistic())]
        return self.share * parts[0] + (1.0 - self.share) * parts[1]

    def slopes(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: Here = HERE) -> Slopes:
        """Slopes of the logistic loss, and those of the surrogate scaled so that it has its share of the curvature."""
        plain = Logistic().slopes(score, is_positive, weight, all_rows)
        top = self.surrogate.slopes(score, is_positive, weight, all_rows)
        total = all_rows.sum(top.curvature)
        scale = all_rows.sum(plain.curvature) / total * self.share / (1.0 - self.share) if total > 0 else 0.0
        return Slopes(plain.gradient + scale * top.gradient, plain.curvature + scale * top.curvature)


@dataclass(frozen=True)
class _Sums:
    """Soft counts at each positive of this process: negatives above it, all cases above it, and their slopes.

    `all` counts the positive itself by one half, as the paper does.
    """

    negative: np.ndarray
    all: np.ndarray
    negative_slope: np.ndarray
    positive_slope: np.ndarray
    grid: _Grid | None


@dataclass(frozen=True)
class _Grid:
    """Equally spaced scores, and sums of sigmoids over masses that stand on them."""

    start: float
    step: float
    n_points: int
    alpha: float

    def add(self, score: np.ndarray, mass: np.ndarray, grid: np.ndarray) -> None:
        """Put masses on the grid."""
        add_to_grid(np.ascontiguousarray(score), np.ascontiguousarray(mass), self.start, self.step, grid)

    def read(self, values: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Values of a function of the grid's points at given scores."""
        out = np.empty(len(score))
        read_grid(np.ascontiguousarray(score), self.start, self.step, values, out)
        return out

    def above(self, mass: np.ndarray) -> np.ndarray:
        """At each point, the sum of masses times the sigmoid of their distance above it."""
        # Whole masses above plus what the sigmoid differs from a step, which fades, so that no large sums are rounded.
        whole = np.cumsum(mass[::-1])[::-1] - mass / 2
        lag = np.arange(-self.n_points + 1, self.n_points)
        soft = np.sign(lag) * expit(-self.alpha * self.step * np.abs(lag))
        return whole - self._convolve(mass, soft[::-1])

    def slope(self, mass: np.ndarray) -> np.ndarray:
        """At each point, the sum of masses times the slope of the sigmoid of their distance."""
        lag = np.arange(-self.n_points + 1, self.n_points)
        sigmoid = expit(-self.alpha * self.step * np.abs(lag))
        return self._convolve(mass, self.alpha * sigmoid * (1.0 - sigmoid))

    def _convolve(self, mass: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        """The sum over points j of mass[j] * kernel[i - j], where the middle of the kernel is at distance 0."""
        size = next_fast_len(len(mass) + len(kernel) - 1, real=True)
        whole = irfft(rfft(mass, size) * rfft(kernel, size), size)
        return whole[len(mass) - 1 : 2 * len(mass) - 1]
