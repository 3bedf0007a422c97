"""Votes between several classes, each with a gamma of its own, and the exact search for the best gammas.

Algorithm 2.1 for K classes: the distances to the cases of class c are multiplied by gamma_c, and the k nearest of all
cases vote. Only ratios of gammas matter, so that the gamma of one class, the reference, is 1 (section 2.4.1: K - 1
values). While one gamma moves and the others are fixed, the class it belongs to gets its i-th place among the k exactly
below the ratio

    scaled distance to the (k - i + 1)-th nearest case of the other classes / distance to its own i-th nearest case.

So k ratios per row say for every value of that gamma how the row is decided, and one sort gives any measure of the
decisions for all of its values. With two classes this is the rule of `known.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toprank._core.class_votes import class_votes
from toprank.rankers.neighbours.tuning import GAIN, GammaCurve, Measure, climb, f1, intervals, recall

LEAST_GAMMA = 1e-9
"""Smallest gamma: with 0, several classes would be at distance 0 from everywhere."""

NEAREST = 1e-290
"""Stands for distance 0: two classes at distance 0 are compared by their gammas, as at any other equal distance."""


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
        """Return the measure of a confusion matrix: row i, column j has the cases of class i that were called j."""
        hits, actual, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
        rest = np.maximum(confusion.sum() - actual - called + hits, 0.0)
        values = self.of_class(hits, np.maximum(called - hits, 0.0), np.maximum(actual - hits, 0.0), rest)
        return float(self.mean(list(values)))


CLASS_MEASURES = {
    "f1_macro": ClassMeasure(f1),
    "balanced_accuracy": ClassMeasure(recall),
    "g_mean": ClassMeasure(recall, is_geometric=True),
}
"""What the gammas of several classes can be tuned for, by name."""


@dataclass(frozen=True)
class Move:
    """The decisions on rows for every factor of the distances to some classes, while the others are fixed.

    Attributes
    ----------
    threshold : float64 array of shape (n, k)
        The moving classes have as many places among the k nearest as there are thresholds above the factor.
    winner : int64 array of shape (n, k + 1)
        Class that a row is called with 0, 1, ..., k such places.
    rest : int64 array of shape (n, k)
        Classes of the k nearest cases of the other classes, nearest first; -1 where there are fewer.
    """

    threshold: np.ndarray
    winner: np.ndarray
    rest: np.ndarray

    def places(self, gamma: float) -> np.ndarray:
        """Return the number of places of the moving classes at a factor, int64 (n,)."""
        return (self.threshold > gamma).sum(axis=1)

    def at(self, gamma: float) -> np.ndarray:
        """Return the class that each row is called at a factor, int64 (n,)."""
        return np.take_along_axis(self.winner, self.places(gamma)[:, None], axis=1)[:, 0]


class ClassVotes:
    """The distances that decide how rows are called, whatever the gammas.

    Parameters
    ----------
    distance : float64 array of shape (n, K, k)
        Distance within which a row has 1, 2, ..., k cases of each class; infinite where a class has fewer.
    n_cases : float64 array of shape (K,)
        Training cases of each class. Ties between classes go to the rarer one, as half of an even k is enough for a
        positive in algorithm 2.1; of cases at equal distances, that of the more common class comes first.

    Attributes
    ----------
    reference : int
        The class with gamma 1: the most common one, the first of several.
    rarest_first : list of int
        All classes, the reference last.
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
        """Return the class that each row is called, int64 (n,)."""
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


def confusion_matrix(label: np.ndarray, called: np.ndarray, weight: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the weight of the rows of each class (row) that were called each class (column), float64 (K, K)."""
    cell = label * n_classes + called
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
        called, hits = (
            np.maximum(first + np.concatenate(([0.0], np.cumsum(changes)))[passed], 0.0)
            for first, changes in (
                (confusion[:, c].sum(), change[own]), (confusion[c, c], np.where(is_own[own], change[own], 0.0)),
            )
        )  # fmt: skip
        actual = confusion[c].sum()
        false, missed = np.maximum(called - hits, 0.0), np.maximum(actual - hits, 0.0)
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
