"""Losses of boosting: smooth surrogates of average precision (SGBAP), and the logistic loss.

Each gives the value, the gradient and a positive bound on the curvature of a loss of all scores. The derivations are in
the documentation, "Boosting on average precision".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import expit

from toprank._core.surrogates import (
    UNIT,
    add_scaled,
    add_to_grid,
    below_top,
    class_sums,
    class_tops,
    logistic_slopes,
    negative_slopes,
    plain_below_top,
    plain_tops,
    read_grid,
    signed_shares,
    sum_in_units,
)
from toprank._core.threads import Threads

EXACT_PAIRS = 500_000
"""Up to this many pairs of a positive and another case, the sigmoid surrogate is summed pair by pair."""

GRID_STEP = 1 / 64
"""Distance between the points of the grid of scores, times alpha; see `SigmoidAP.grid_error`."""

CHUNK = 2**17
"""Rows of one call of a kernel."""

MAX_POINTS = 2**21
REACH = 40.0
"""Scores that are this far apart, times alpha, count as infinitely far apart: the sigmoid is 0 or 1."""

SURE = 10.0
"""Log-odds above which 1 minus a rate is computed by itself: the rate, in single precision, is nearly or exactly 1."""


class RowSums:
    """Sums over the rows of this process; `toprank.distributed` has one over all workers."""

    has_all_rows = True  # False if other processes have rows too

    def __init__(self, threads: Threads | None = None):
        self.threads = threads or Threads()

    def over(self, n_rows: int, function: Callable[[slice], Any]) -> list[Any]:
        """Results of a function of a slice, over all rows of this process."""
        return self.threads.run(function, [slice(at, min(at + CHUNK, n_rows)) for at in range(0, n_rows, CHUNK)])

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
        values, per_unit = np.ascontiguousarray(values), math.ldexp(UNIT, -unit)
        whole = sum(self.over(len(values), lambda rows: sum_in_units(values[rows], per_unit)))
        return math.ldexp(float(self.total(np.array([whole]))[0]) / UNIT, unit)

    def gather(self, values: np.ndarray) -> tuple[np.ndarray, slice | np.ndarray]:
        """Values of the rows of all processes, in the order of the table, and where the own rows are.

        `values`, float64 (n, n_values), has one row per row of this process.
        """
        return values, slice(0, len(values))


THIS_PROCESS = RowSums()


@dataclass(frozen=True)
class Slopes:
    """First derivatives of a loss by each score, and positive bounds on the second ones.

    Both are float32 (n,), as XGBoost takes them.
    """

    gradient: np.ndarray
    curvature: np.ndarray

    def __post_init__(self) -> None:
        for name in ("gradient", "curvature"):
            object.__setattr__(self, name, getattr(self, name).astype(np.float32, copy=False))


class Loss(ABC):
    """A loss of the scores of all cases, to be minimised.

    Rows of weight 0 do not count; their slopes are 0.
    """

    @abstractmethod
    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The loss; arrays of shape (n,)."""

    @abstractmethod
    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Derivatives of the loss by each score, up to a factor that all of them share."""


@dataclass(frozen=True)
class Logistic(Loss):
    """Mean logistic loss."""

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The mean of log(1 + exp(-margin))."""
        margin = np.where(is_positive, score, -score)
        return float(np.average(np.logaddexp(0.0, -margin), weights=weight))

    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Derivatives of the sum of the losses, exact."""
        n = len(score)
        slopes = Slopes(np.empty(n, np.float32), np.empty(n, np.float32))

        def write(rows: slice) -> None:
            log_odds = score[rows].astype(np.float32)
            rate = expit(log_odds)
            rest = 1 - rate
            if log_odds.max() > SURE:
                is_sure = log_odds > SURE
                rest[is_sure] = expit(-log_odds[is_sure])
            parts = weight[rows], is_positive[rows], slopes.gradient[rows], slopes.curvature[rows]
            logistic_slopes(rate, rest, *parts)

        all_rows.over(n, write)
        return slopes


@dataclass(frozen=True)
class ExponentialAP(Loss):
    """1 - AP with exponentials in place of indicators: the share of the negatives in the sum of all exponentials.

    In the paper's terms 1 - AP_exp (eq. 11), and its gradient (eq. 12), with the misprint there mended: the sum in the
    denominator runs over all M cases.
    """

    # Steepness: I(a <= b) becomes exp(alpha (b - a)); 1 in the paper. The larger, the more only the top counts.
    alpha: float = 1.0

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The surrogate, between 0 and 1."""
        logs = [_log_sum(self.alpha * score[rows], weight[rows]) for rows in (~is_positive, is_positive)]
        return float(expit(logs[0] - logs[1]))

    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Derivatives divided by alpha L (1 - L), where L is the loss, and times half of the positives' weight.

        So divided, they are those of the log-odds of L, the logarithm of the negatives' sum minus that of the
        positives' sum: exponentials as shares of their own class, which never vanish or overflow. The second derivative
        is at most alpha times the size of the first.
        """
        n, values = len(score), np.empty(len(score), np.float32)

        def tops_of(rows: slice) -> tuple[float, float, bool]:
            """The largest alpha * score + log(weight) of each class, and whether all weights are 0 or 1."""
            parts = score[rows], weight[rows], is_positive[rows], self.alpha
            *plain, others = plain_tops(*parts)
            return (*class_tops(*parts), False) if others else (*plain, True)

        found = all_rows.over(n, tops_of)
        tops = all_rows.largest(np.array([(-np.inf, -np.inf), *(part[:2] for part in found)]).max(axis=0))

        def exponentials(rows: slice) -> tuple[int, int]:
            write = plain_below_top if found[rows.start // CHUNK][2] else below_top
            write(score[rows], weight[rows], is_positive[rows], self.alpha, *tops, values[rows])
            np.exp(values[rows], out=values[rows])  # numpy's own takes several at a time
            return class_sums(values[rows], is_positive[rows])

        sums = all_rows.total(np.array([(0, 0), *all_rows.over(n, exponentials)]).sum(axis=0))
        half = all_rows.sum(weight[is_positive]) / 2
        factors = [half * UNIT / total if total > 0 else 0.0 for total in sums]
        slopes = Slopes(np.empty(n, np.float32), np.empty(n, np.float32))
        parts, bound = (is_positive, slopes.gradient, slopes.curvature), max(self.alpha, 1.0)
        all_rows.over(n, lambda rows: signed_shares(values[rows], *factors, bound, *(part[rows] for part in parts)))
        return slopes


def _log_sum(score: np.ndarray, weight: np.ndarray) -> float:
    """The logarithm of the weighted sum of exponentials."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(score + np.log(weight))) if len(score) else -np.inf


@dataclass(frozen=True)
class SigmoidAP(Loss):
    """1 - AP with sigmoids in place of indicators: 1 - AP_sig of the paper (eq. 9).

    The gradient (eq. 10) is derived anew: the printed one lacks the factor alpha, has the sign of the sigmoid's
    derivative the wrong way round, and sums over the N negatives where all M cases are meant.
    """

    alpha: float = 1.0  # steepness: the larger, the nearer the surrogate is to 1 - AP, and the more gradients vanish
    # Most pairs of a positive and another case to sum one by one. With more, masses are put on a grid of scores
    # (`GRID_STEP`) and sums over them are convolutions, which takes n + B log B steps instead of P n.
    exact_pairs: int = EXACT_PAIRS

    @property
    def grid_error(self) -> float:
        """The most by which a sum of sigmoids over cases is off on the grid, as a share of their total weight.

        That is so unless the scores of positives lie more than MAX_POINTS * GRID_STEP / alpha apart.

        Linear interpolation of a function K between points at a distance d is off by d^2/8 max |K''|, and mass is
        shared between points with the same error; the second derivative of the sigmoid is at most
        alpha^2 / (6 sqrt(3)).
        """
        return 2 * GRID_STEP**2 / 8 / (6 * math.sqrt(3))

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The surrogate, between 0 and 1."""
        sums = self._sums(score, is_positive, weight, THIS_PROCESS)
        return float(np.average(sums.negative / sums.all, weights=weight[is_positive]))

    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Derivatives of the surrogate, times one factor; the bound on the curvature is proved in the documentation."""
        if not all_rows.has_all_rows and self._is_exact(
            score, is_positive, all_rows
        ):  # few: all processes have them all
            whole, here = all_rows.gather(np.column_stack((score, is_positive, weight)))
            slopes = self.slopes(whole[:, 0].copy(), whole[:, 1] == 1, whole[:, 2].copy())
            return Slopes(slopes.gradient[here], slopes.curvature[here])
        rank = self._sums(score, is_positive, weight, all_rows)
        own = weight[is_positive] / all_rows.sum(weight[is_positive])
        ratio = rank.negative / rank.all
        pulls = own * (1.0 - ratio) / rank.all, own * ratio / rank.all
        gradient, curvature = np.zeros(len(score)), np.zeros(len(score))
        spread = self._spread_pairs if rank.grid is None else rank.grid.spread
        to_positives = spread(score, is_positive, weight, pulls, all_rows, gradient, curvature)
        # A positive raises the precision at the positives below it, and loses negatives above itself.
        others = weight[is_positive] * to_positives
        above = own * rank.negative_slope / rank.all
        along = own * ratio * (rank.negative_slope + rank.positive_slope) / rank.all
        gradient[is_positive] = along - above - others
        curvature[is_positive] = self.alpha * (above + 3.0 * along + others)
        # As with the exponentials, so that XGBoost's penalties mean the same: bounds add up to the positives' weight.
        total = all_rows.sum(curvature)
        scale = all_rows.sum(weight[is_positive]) / total if total > 0 else 1.0
        return Slopes(scale * gradient, scale * curvature)

    def _is_exact(self, score: np.ndarray, is_positive: np.ndarray, all_rows: RowSums) -> bool:
        """Whether pairs are summed one by one."""
        counts = all_rows.total(np.array([len(score), is_positive.sum()], np.float64))
        return bool(counts[0] * counts[1] <= self.exact_pairs)

    def _sums(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums) -> _Sums:
        """Sums of sigmoids and of their derivatives over the cases above each positive."""
        if self._is_exact(score, is_positive, all_rows):
            return self._sums_of_pairs(score, is_positive, weight)
        return self._sums_on_grid(score, is_positive, weight, all_rows)

    def _sums_of_pairs(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> _Sums:
        """Sums pair by pair; all cases are in this process."""
        sigmoid = expit(self.alpha * (score - score[is_positive, None]))
        slope = self.alpha * sigmoid * (1.0 - sigmoid)
        masses = [np.where(rows, weight, 0.0) for rows in (~is_positive, is_positive)]
        above, slopes = [sigmoid @ mass for mass in masses], [slope @ mass for mass in masses]
        own = weight[is_positive]
        slopes[1] -= own * self.alpha / 4  # a case is never above or below itself
        return _Sums(above[0], above[0] + above[1], slopes[0], np.maximum(slopes[1], 0.0), None)

    def _sums_on_grid(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums) -> _Sums:
        """Sums by convolution of masses on a grid of scores around the positives."""
        at = score[is_positive]
        ends = all_rows.largest(np.array([-at.min(initial=np.inf), at.max(initial=-np.inf)]))
        reach = REACH / self.alpha
        start, length = -ends[0] - reach, ends[0] + ends[1] + 2 * reach
        n_points = int(min(math.ceil(length / (GRID_STEP / self.alpha)), MAX_POINTS)) + 1
        grid = _Grid(start, length / (n_points - 1), n_points, self.alpha)
        masses = all_rows.total(grid.masses(score, weight, is_positive))
        above = [grid.read(grid.above(mass), at) for mass in masses]
        slopes = [grid.read(grid.slope(mass), at) for mass in masses]
        slopes[1] -= weight[is_positive] * self.alpha / 4
        negative = np.maximum(above[0], 0.0)
        return _Sums(negative, negative + np.maximum(above[1], weight[is_positive] / 2), np.maximum(slopes[0], 0.0),
                     np.maximum(slopes[1], 0.0), grid)  # fmt: skip

    def _spread_pairs(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, pulls: tuple[np.ndarray, np.ndarray],
        all_rows: RowSums, gradient: np.ndarray, curvature: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """As `_Grid.spread`, pair by pair; all cases are in this process."""
        sigmoid = expit(self.alpha * (score[:, None] - score[is_positive]))
        slope = self.alpha * sigmoid * (1.0 - sigmoid)
        down = weight[~is_positive] * (slope[~is_positive] @ pulls[0])
        gradient[~is_positive], curvature[~is_positive] = down, self.alpha * down
        return np.maximum(slope[is_positive] @ pulls[1] - pulls[1] * self.alpha / 4, 0.0)


@dataclass(frozen=True)
class Blend(Loss):
    """The logistic loss and a surrogate of average precision together."""

    surrogate: Loss
    share: float  # of the surrogate in the curvature, 0 to 1: as scores change, each of the two keeps its say

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """Both values, each with its share."""
        parts = [loss.value(score, is_positive, weight) for loss in (self.surrogate, Logistic())]
        return self.share * parts[0] + (1.0 - self.share) * parts[1]

    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Slopes of the logistic loss, and those of the surrogate scaled so that it has its share of the curvature."""
        plain = Logistic().slopes(score, is_positive, weight, all_rows)
        top = self.surrogate.slopes(score, is_positive, weight, all_rows)
        own, total = (all_rows.sum(slopes.curvature) for slopes in (plain, top))
        scale = np.float32(own / total * self.share / (1.0 - self.share) if total > 0 else 0.0)

        def add(rows: slice) -> None:
            add_scaled(plain.gradient[rows], scale, top.gradient[rows])
            add_scaled(plain.curvature[rows], scale, top.curvature[rows])

        all_rows.over(len(score), add)
        return plain


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

    def masses(self, score: np.ndarray, mass: np.ndarray, is_positive: np.ndarray) -> np.ndarray:
        """Masses of negatives and of positives on the points, float64 (2, n_points)."""
        grid = np.zeros((2, self.n_points))
        add_to_grid(score, mass, is_positive, self.start, self.step, grid)
        return grid

    def spread(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, pulls: tuple[np.ndarray, np.ndarray],
        all_rows: RowSums, gradient: np.ndarray, curvature: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Sum the pulls of all positives, times the sigmoid's slope, at each case.

        Write the slopes of negatives, and return the sum of the second pulls over the other positives at each positive.
        """
        at = score[is_positive]
        masses = all_rows.total(np.array([self.masses(at, pull, np.zeros(len(at), np.bool_))[0] for pull in pulls]))
        fields = [self.slope(mass) for mass in masses]
        negative_slopes(score, weight, is_positive, self.start, self.step, fields[0], self.alpha, gradient, curvature)
        return np.maximum(self.read(fields[1], at) - pulls[1] * self.alpha / 4, 0.0)

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
