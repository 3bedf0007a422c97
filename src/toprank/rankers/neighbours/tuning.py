"""The exact tuning of gamma: every decision of every gamma, from one sort.

A row is flagged by every gamma below its ratio (`known.py`), so decisions change only where gamma passes the ratio of a
row. Sorted ratios and running counts of positives and negatives give true and false positives for all gammas, and with
them any measure of these counts.

With several classes, each has a gamma of its own: the distances to the cases of class c are multiplied by gamma_c, and
the k nearest of all cases vote (algorithm 2.1). Only ratios of gammas matter, so that the gamma of one class, the
reference, is 1 (section 2.4.1: K - 1 values). While one gamma moves and the others are fixed, the class it belongs to
gets its i-th place among the k exactly below the ratio

    scaled distance to the (k - i + 1)-th nearest case of the other classes / distance to its own i-th nearest case.

So k ratios per row say for every value of that gamma how the row is decided, and one sort gives any measure of the
decisions for all of its values. With two classes this is the rule of `known.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from toprank._core.class_votes import class_votes
from toprank.metrics.confusion_counts import average_precision, balanced_accuracy, f_beta, g_mean, g_measure, recall

GAIN = 1e-12
"""Least gain of a step in a search for several gammas: smaller ones are rounding."""

LEAST_GAMMA = 1e-9
"""Stands for gamma = 0, with which several classes would be at distance 0 from everywhere, and all cases of a region
would have the same score."""

NEAREST = 1e-290
"""Stands for distance 0: two classes at distance 0 are compared by their gammas, as at any other equal distance."""

Measure = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From true positives, false positives, false negatives and true negatives to a value: larger is better."""

MEASURES: dict[str, Measure] = {
    "f1": f_beta,
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

    def at(self, gamma: np.ndarray | float) -> np.ndarray:
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


# --- several classes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassMeasure:
    """A measure of decisions between several classes: the mean of the measures of each class against the rest.

    `is_geometric`: the geometric mean instead of the arithmetic one.
    """

    of_class: Measure
    is_geometric: bool = False

    def mean(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the mean of arrays, one per class."""
        stacked = np.array(values)
        if not self.is_geometric:
            return stacked.sum(axis=0) / len(stacked)
        with np.errstate(divide="ignore"):
            return np.exp(np.log(stacked).sum(axis=0) / len(stacked))

    def of_confusion(self, confusion: np.ndarray) -> float:
        """Return the measure of a confusion matrix: row i, column j has the cases of class i predicted as j."""
        hits, actual, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
        rest = np.maximum(confusion.sum() - actual - predicted + hits, 0.0)
        values = self.of_class(hits, np.maximum(predicted - hits, 0.0), np.maximum(actual - hits, 0.0), rest)
        return float(self.mean(list(values)))


CLASS_MEASURES = {
    "f1_macro": ClassMeasure(f_beta),
    "balanced_accuracy": ClassMeasure(recall),
    "g_mean": ClassMeasure(recall, is_geometric=True),
}
"""What the gammas of several classes can be tuned for, by name."""


@dataclass(frozen=True)
class Move:
    """The decisions on rows for every factor of the distances to some classes, while the others are fixed."""

    # float64 (n, k): the moving classes have as many places among the k nearest as there are thresholds above the
    # factor
    threshold: np.ndarray
    winner: np.ndarray  # int64 (n, k + 1): class predicted for a row with 0, 1, ..., k such places
    # int64 (n, k): classes of the k nearest cases of the other classes, nearest first; -1 where there are fewer
    rest: np.ndarray

    def places(self, gamma: float) -> np.ndarray:
        """Return the number of places of the moving classes at a factor, int64 (n,)."""
        return (self.threshold > gamma).sum(axis=1)

    def at(self, gamma: float) -> np.ndarray:
        """Return the predicted class of each row at a factor, int64 (n,)."""
        return np.take_along_axis(self.winner, self.places(gamma)[:, None], axis=1)[:, 0]


class ClassVotes:
    """The distances that decide the class of each row, whatever the gammas.

    `distance`, float64 (n, K, k), is that within which a row has 1, 2, ..., k cases of each class, infinite where a
    class has fewer. Ties between classes go to the rarer one by `n_cases`, as half of an even k is enough for a
    positive in algorithm 2.1; of cases at equal distances, that of the more common class comes first. The `reference`,
    with gamma 1, is the most common class, the first of several, and the last of `rarest_first`.
    """

    def __init__(self, distance: np.ndarray, n_cases: np.ndarray):
        self.distance = np.maximum(distance, NEAREST)
        self.rarest_first: list[int] = np.lexsort((-np.arange(len(n_cases)), n_cases)).tolist()
        self.reference = self.rarest_first[-1]
        self._tie_rank = np.argsort(self.rarest_first)

    def moving(self, gammas: np.ndarray, classes: Sequence[int]) -> Move:
        """Return the decisions for every common factor of the distances to some classes; the others have `gammas`."""
        n, n_classes, k = self.distance.shape
        is_moving = np.zeros(n_classes, bool)
        is_moving[list(classes)] = True
        move = Move(np.empty((n, k)), np.empty((n, k + 1), np.int64), np.empty((n, k), np.int64))
        fixed = np.where(is_moving, 1.0, gammas)
        with np.errstate(over="ignore"):
            class_votes(self.distance, fixed, is_moving, self._tie_rank, move.threshold, move.winner, move.rest)
        return move

    def decide(self, gammas: np.ndarray) -> np.ndarray:
        """Return the predicted class of each row, int64 (n,)."""
        rarest = self.rarest_first[0]
        return self.moving(gammas, [rarest]).at(float(gammas[rarest]))

    def count(self, gammas: np.ndarray) -> np.ndarray:
        """Return the votes for each class, int64 (n, K)."""
        rarest = self.rarest_first[0]
        move = self.moving(gammas, [rarest])
        places, (n, n_classes, k) = move.places(float(gammas[rarest])), self.distance.shape
        out = np.zeros((n, n_classes), np.int64)
        out[:, rarest] = places
        for i in range(k):
            votes = (i < k - places) & (move.rest[:, i] >= 0)
            out[votes, move.rest[votes, i]] += 1
        return out


def confusion_matrix(label: np.ndarray, predicted: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the weight of the rows of each class (row) that were predicted as each class (column), float64 (K, K)."""
    cell = label * n_classes + predicted
    order = np.lexsort((weight, cell))  # sums in an order that does not depend on that of the rows
    return np.bincount(cell[order], weight[order], n_classes**2).reshape(n_classes, n_classes)


def class_gamma_curve(
    move: Move, label: np.ndarray, weight: np.ndarray, measure: ClassMeasure, n_classes: int, high: float
) -> GammaCurve:
    """Return the measure of the decisions at every factor of a move, up to `high`.

    The rows were not among their own neighbours; their labels are int64 (n,).
    """
    at_first = move.at(0.0)
    row, place = np.nonzero((move.winner[:, 1:] != move.winner[:, :-1]) & (move.threshold > 0))
    cut, before, after = move.threshold[row, place], move.winner[row, place + 1], move.winner[row, place]
    is_within = cut <= high
    row, cut, before, after = row[is_within], cut[is_within], before[is_within], after[is_within]
    start, stop = intervals(cut, high)
    # Each change takes a row from one class and gives it to another. The counts of a class change only there.
    kind = np.concatenate((before, after))
    change = np.concatenate((-weight[row], weight[row]))
    cut, is_own = np.concatenate((cut, cut)), np.concatenate((label[row], label[row])) == kind
    order = np.lexsort((is_own, change, cut, kind))
    kind, cut, change, is_own = kind[order], cut[order], change[order], is_own[order]
    ends = np.searchsorted(kind, np.arange(n_classes + 1))
    confusion = confusion_matrix(label, at_first, weight, n_classes)
    total, values = confusion.sum(), []
    for c in range(n_classes):
        own = slice(ends[c], ends[c + 1])
        passed = np.searchsorted(cut[own], start, side="right")
        predicted, hits = (
            np.maximum(first + np.concatenate(([0.0], np.cumsum(changes)))[passed], 0.0)
            for first, changes in (
                (confusion[:, c].sum(), change[own]), (confusion[c, c], np.where(is_own[own], change[own], 0.0)),
            )
        )  # fmt: skip
        actual = confusion[c].sum()
        false, missed = np.maximum(predicted - hits, 0.0), np.maximum(actual - hits, 0.0)
        values.append(measure.of_class(hits, false, missed, np.maximum(total - actual - false, 0.0)))
    return GammaCurve(start, stop, measure.mean(values))


def tune_gammas(
    votes: ClassVotes, label: np.ndarray, weight: np.ndarray, measure: ClassMeasure, high: float = 1.0
) -> np.ndarray:
    """Return the gammas of the classes, float64 (K,), such that no other value of a single one is better.

    Each gamma in turn goes to its best value beside the others, over all values from 0 to `high` at which a decision
    changes, until none gains. The search begins twice, at plain kNN and at the best common gamma of all classes but the
    reference, and the better end counts. With two classes the result is the best of all gammas.
    """
    n_classes = votes.distance.shape[1]
    others = votes.rarest_first[:-1]

    def curve_of(gammas: np.ndarray, classes: Sequence[int]) -> GammaCurve:
        return class_gamma_curve(votes.moving(gammas, classes), label, weight, measure, n_classes, high)

    plain = np.ones(n_classes)
    plain[others] = min(1.0, high)
    common = plain.copy()
    common[others] = max(curve_of(plain, others).best, LEAST_GAMMA)
    ends = [
        climb(start, others, lambda gammas, c: curve_of(gammas, [c]), least=LEAST_GAMMA) for start in (plain, common)
    ]
    (first, value), (second, other_value) = ends
    return second if other_value > value + GAIN else first
