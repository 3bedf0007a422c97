"""The exact tuning of gamma: every decision of every gamma, from one sort.

A row is flagged by every gamma below its ratio (`known.py`), so decisions change only where gamma passes the ratio of a
row. Sorted ratios and running counts of positives and negatives give true and false positives for all gammas, and with
them any measure of these counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

GAIN = 1e-12
"""Least gain of a step in a search for several gammas: smaller ones are rounding."""

Measure = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From true positives, false positives, false negatives and true negatives to a value: larger is better."""


def f1(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """F-measure: harmonic mean of precision and recall."""
    return _ratio(2 * tp, 2 * tp + fp + fn)


def g_measure(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """G-measure: geometric mean of precision and recall."""
    return np.sqrt(_ratio(tp, tp + fp) * _ratio(tp, tp + fn))


def g_mean(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """G-mean: geometric mean of the true positive and the true negative rate."""
    return np.sqrt(_ratio(tp, tp + fn) * _ratio(tn, tn + fp))


def balanced_accuracy(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Balanced accuracy: mean of the true positive and the true negative rate."""
    return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2


def recall(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Recall: the true positive rate."""
    return _ratio(tp, tp + fn)


def average_precision(tp: np.ndarray, fp: np.ndarray, fn: np.ndarray, tn: np.ndarray) -> np.ndarray:
    """Average precision of the decisions: of the ranking that has the flagged cases first, in ties."""
    found = recall(tp, fp, fn, tn)
    return found * _ratio(tp, tp + fp) + (1 - found) * _ratio(tp + fn, tp + fp + fn + tn)


MEASURES: dict[str, Measure] = {
    "f1": f1,
    "g_mean": g_mean,
    "g_measure": g_measure,
    "balanced_accuracy": balanced_accuracy,
    "average_precision": average_precision,
}
"""What gamma can be tuned for, by name."""


@dataclass(frozen=True)
class GammaCurve:
    """A measure for every gamma.

    Attributes
    ----------
    start, stop : float64 arrays of shape (n_intervals,)
        All gammas from `start` up to, but not including, `stop` decide alike; the last interval includes its end.
    value : float64 array of shape (n_intervals,)
        The measure of these decisions.
    """

    start: np.ndarray
    stop: np.ndarray
    value: np.ndarray

    @property
    def best(self) -> float:
        """The middle of the widest of the best intervals; ties go to the largest gamma."""
        best = np.flatnonzero(self.value >= self.value.max() - 1e-12)
        width = self.stop[best] - self.start[best]
        chosen = best[len(best) - 1 - np.argmax(width[::-1])]
        middle = (self.start[chosen] + self.stop[chosen]) / 2
        is_last = chosen == len(self.start) - 1
        return float(middle if is_last or middle < self.stop[chosen] else self.start[chosen])

    @property
    def is_valid(self) -> bool:
        """True if the arrays fit together, for curves from a file."""
        arrays = (self.start, self.stop, self.value)
        return (
            all(array.dtype == np.float64 and array.ndim == 1 and len(array) == len(self.start) for array in arrays)
            and len(self.start) > 0
            and bool(np.all(np.diff(self.start) > 0))
            and bool(np.all(self.start <= self.stop))
        )

    def at(self, gamma: np.ndarray) -> np.ndarray:
        """Return the measure at given gammas within the range of the curve."""
        return self.value[np.maximum(np.searchsorted(self.start, gamma, side="right") - 1, 0)]


def gamma_curve(
    ratio: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, measure: Measure, high: float = 1.0
) -> GammaCurve:
    """Return the measure of the decisions of every gamma from 0 to `high`; of one gamma if that is 0.

    The ratios, float64 (n,), are those of rows that were not among their own neighbours (`ratios`).
    """
    weight = np.ones(len(ratio)) if weight is None else weight
    order = np.lexsort((weight, is_positive, ratio))  # sums in an order that does not depend on that of the rows
    ratio, is_positive, weight = ratio[order], is_positive[order], weight[order]
    start, stop = intervals(ratio, high)
    below = np.searchsorted(ratio, start, side="right")  # rows that gamma = start does not flag
    sums = [
        np.concatenate(([0.0], np.cumsum(np.where(of_class, weight, 0.0)))) for of_class in (is_positive, ~is_positive)
    ]
    fn, tn = sums[0][below], sums[1][below]
    tp, fp = sums[0][-1] - fn, sums[1][-1] - tn
    return GammaCurve(start, stop, measure(tp, fp, fn, tn))


def climb(
    start: np.ndarray,
    which: Iterable[int],
    curve_of: Callable[[np.ndarray, int], GammaCurve],
    value: float = -np.inf,
    *,
    least: float = 0.0,
) -> tuple[np.ndarray, float]:
    """Return several gammas of which no single one can be improved, and their measure.

    Each of `which` in turn goes to its best value beside the others, at least to `least`, until none gains. `curve_of`
    leads from all gammas and the one that moves to the measure at all its values. `value` is the measure at the start.
    If it is not known, every gamma goes to the widest of its best intervals once, also where that gains nothing.
    """
    gammas, best, coordinates = start.copy(), value, list(which)
    is_first, gains = not np.isfinite(value), True
    while gains:
        gains = False
        for c in coordinates:
            curve = curve_of(gammas, c)
            reached = float(curve.value.max())
            if is_first or reached > best + GAIN:
                gains |= reached > best + GAIN
                gammas[c], best = max(curve.best, least), reached
        is_first = False
    return gammas, best


def tune_regions(
    ratio: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, region: np.ndarray, start: np.ndarray,
    which: Iterable[int], measure: Measure, high: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Return a gamma for each region, float64 (n_regions,), for the measure on the rows of all regions together.

    The gammas of the regions `which` are tuned; one keeps its `start` unless another gamma gains. `region` is that of
    each row, the other parameters are those of `gamma_curve`.
    """

    def curve_of(gammas: np.ndarray, c: int) -> GammaCurve:
        here, is_flagged = region == c, ratio > gammas[region]
        beside = decision_counts(is_flagged[~here], is_positive[~here], weight[~here])

        def of_all(*counts: np.ndarray) -> np.ndarray:
            return measure(*(own + other for own, other in zip(counts, beside, strict=True)))

        return gamma_curve(ratio[here], is_positive[here], weight[here], of_all, high)

    value = float(measure(*decision_counts(ratio > start[region], is_positive, weight))[0])
    return climb(start, which, curve_of, value)[0]


def intervals(cuts: np.ndarray, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return where the intervals of gammas from 0 to `high` that decide alike start and stop, both float64 (n,)."""
    inside = np.unique(cuts[(cuts > 0) & (cuts <= high)])
    return np.concatenate(([0.0], inside)), np.append(inside, high)


def decision_counts(is_flagged: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return true positives, false positives, false negatives and true negatives, float64 (1,), for any row order."""
    return tuple(
        np.array([math.fsum(weight[(is_flagged == flag) & (is_positive == label)])])
        for flag, label in ((True, True), (True, False), (False, True), (False, False))
    )


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) > 0)
