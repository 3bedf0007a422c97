"""Pairs of cases in `TreeRankBoost`: the vote on which of two ranks higher, and the weights that boosting gives them.

The exponential criterion of pairs is J(S) = sum over positives i and negatives j of v_i v_j exp(-(S(x_i) - S(x_j))) /
(V+ V-), with v the weights of the cases and V their sum in each class. The exponential of a difference is a product, so
the weights of pairs are products of weights of cases, and J is a product of one sum over the positives and one over the
negatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toprank._core.threads import CHUNK_ROWS, Threads
from toprank._core.votes import pair_votes
from toprank.errors import InputError

PLACE = np.int16
"""Place in a tree: TreeRankBoost's trees have at most 2 ** 14 leaves."""

CASES_A_CALL = 16
"""Distinct cases per batch of a thread; each is compared with all negatives."""

LARGEST_STEP = 16.0
"""Largest weight of a tree, reached if the tree puts no positive below a negative, so that J has no minimum."""

STEP_UNIT = 2.0**-32
"""Weights of trees are multiples of this: sums of up to 2 ** 17 of them are exact, and so is every tie."""

TOLERANCE = 1e-13
"""Newton's method stops below this change of the step."""


@dataclass(frozen=True, eq=False)
class PairRule:
    """Voting trees, and the negatives to compare cases with, by their places in the trees.

    Negatives with the same places in all trees are stored once, with their count; the score is exact.
    """

    weight: np.ndarray  # float64 (n_trees,): vote of each tree; sums of them must not round
    places: np.ndarray  # int16 (n_tuples, n_trees): distinct places of the negatives, 0 is the top of a tree
    count: np.ndarray  # int64 (n_tuples,): weight of the negatives at these places, in integer units

    def __post_init__(self) -> None:
        n_tuples, n_trees = self.places.shape
        if self.weight.shape != (n_trees,) or self.count.shape != (n_tuples,):
            raise InputError("The trees' weights, the places of the negatives and their numbers do not fit together.")

    @classmethod
    def from_places(cls, weight: np.ndarray, places: np.ndarray, count: np.ndarray) -> PairRule:
        """Rule over negatives that may share their places."""
        distinct, which = distinct_places(places)
        total = np.zeros(len(distinct), np.int64)
        np.add.at(total, which, count)
        return cls(weight, distinct, total)

    def first(self, n_trees: int) -> PairRule:
        """Return the rule of the first trees only."""
        return PairRule.from_places(self.weight[:n_trees], self.places[:, :n_trees], self.count)

    def scores(self, places: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the mean over the negatives of the sign of the vote, float64 (n,) in [-1, 1]; ties count 0.

        Examples
        --------
        >>> import numpy as np
        >>> from toprank._core.threads import Threads
        >>> from toprank.rankers.ensemble.pairs import PairRule
        >>> negatives = np.array([[0, 1], [1, 1], [1, 1]], np.int16)
        >>> rule = PairRule.from_places(np.array([1.0, 0.5]), negatives, np.ones(3, np.int64))
        >>> rule.scores(np.array([[0, 0], [1, 1]], np.int16), Threads())  # above all; below one, level with two
        array([ 1.        , -0.33333333])
        """
        out = np.empty(len(places))
        other = np.ascontiguousarray(self.places.T)
        for start in range(0, len(places), CHUNK_ROWS):
            cases, which = distinct_places(places[start : start + CHUNK_ROWS])
            votes = np.empty(len(cases), np.int64)
            parts = [slice(a, a + CASES_A_CALL) for a in range(0, len(cases), CASES_A_CALL)]
            threads.run(lambda p, c=cases, v=votes: pair_votes(c[p], other, self.count, self.weight, v[p]), parts)
            out[start : start + CHUNK_ROWS] = votes[which] / self.count.sum()
        return out


def distinct_places(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of an array of places, in a fixed order, and which of them each row is."""
    whole = np.ascontiguousarray(places, PLACE)
    keys = whole.view(np.dtype((np.void, whole.shape[1] * whole.itemsize))).ravel()  # compared as strings of bytes
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return whole[first], which


class PairWeights:
    """Weights of the cases during boosting, from those given.

    `score` is S, the sum of the steps so far; `omega` are the weights: omega+ proportional to v exp(-S), omega- to
    v exp(S), the sum is 1 in each class; `criterion` is J(S), 1 before the first step.
    """

    def __init__(self, is_positive: np.ndarray, weight: np.ndarray | None):
        self.given = np.ones(len(is_positive)) if weight is None else weight
        self.score = np.zeros(len(is_positive))
        self._rows = [np.flatnonzero((is_positive == side) & (self.given > 0)) for side in (False, True)]
        self._sums = [math.fsum(self.given[rows]) for rows in self._rows]
        self._reweigh()

    def _reweigh(self) -> None:
        self.omega, log_criterion = np.zeros(len(self.score)), 0.0
        for rows, total, sign in zip(self._rows, self._sums, (1.0, -1.0), strict=True):
            exponent = sign * self.score[rows]
            largest = exponent.max()  # factored out, so that nothing overflows
            mass = self.given[rows] * np.exp(exponent - largest)
            whole = math.fsum(mass)
            self.omega[rows] = mass / whole
            log_criterion += largest + math.log(whole / total)
        self.criterion = math.exp(log_criterion)

    @property
    def smallest_pair(self) -> float:
        """Smallest share of a pair in J: once J is below it, no exponential exceeds 1, and all pairs are in order."""
        return math.prod(self.given[rows].min() / total for rows, total in zip(self._rows, self._sums, strict=True))

    def for_growing(self) -> np.ndarray:
        """Return the weights to grow a tree with, float64 (n,): omega, scaled per class to the given sum."""
        if not self.score.any():
            return self.given  # the first tree uses the given weights, without rounding
        weight = np.zeros(len(self.omega))
        for rows, total in zip(self._rows, self._sums, strict=True):
            weight[rows] = self.omega[rows] * total
        return weight

    def by_place(self, place: np.ndarray, n_places: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of omega+ and of omega- at each place of a tree."""
        negative, positive = (np.bincount(place[rows], self.omega[rows], n_places) for rows in self._rows)
        return positive, negative

    def moved(self, step: np.ndarray) -> PairWeights:
        """Return the weights after adding `step` to S, float64 (n,)."""
        other = object.__new__(PairWeights)
        other.given, other._rows, other._sums = self.given, self._rows, self._sums
        other.score = self.score + step
        other._reweigh()
        return other


def best_step(value: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the a that minimises Z(a) = (sum of positive exp(-a value)) (sum of negative exp(a value)), 0 <= a <= 16.

    `value` is what a tree adds to the score at each place, `positive` and `negative` are the weights of the classes
    there. log Z is convex: its slope is the mean of the values under the tilted negatives minus that under the tilted
    positives, its curvature the sum of their variances. Newton's method, kept inside a bracket of the root.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.ensemble.pairs import best_step
    >>> step = best_step(np.array([1.0, 0.0]), np.array([0.8, 0.2]), np.array([0.3, 0.7]))
    >>> bool(np.isclose(step, 0.5 * np.log(0.8 * 0.7 / (0.2 * 0.3))))  # RankBoost's closed form for two values
    True
    """

    def derivatives(step: float) -> tuple[float, float]:
        tilted = positive * np.exp(-step * value), negative * np.exp(step * value)
        shares = [part / part.sum() for part in tilted]
        means = [float((share * value).sum()) for share in shares]
        curvature = sum(float((s * (value - m) ** 2).sum()) for s, m in zip(shares, means, strict=True))
        return means[1] - means[0], curvature

    low, high = 0.0, LARGEST_STEP
    if derivatives(low)[0] >= 0.0:
        return low
    if derivatives(high)[0] <= 0.0:
        return high
    step = low
    for _ in range(200):
        slope, curvature = derivatives(step)
        if slope < 0.0:
            low = step
        else:
            high = step
        newton = step - slope / curvature if curvature > 0.0 else high
        following = newton if low < newton < high else (low + high) / 2
        if abs(following - step) <= TOLERANCE * max(1.0, step):
            return following
        step = following
    return step


def discordant_pairs(positive: np.ndarray, negative: np.ndarray) -> tuple[float, float]:
    """Return the weighted rates of pairs with the negative above the positive, and of ties; places best first."""
    above = np.cumsum(negative) - negative
    return float((positive * above).sum()), float((positive * negative).sum())
