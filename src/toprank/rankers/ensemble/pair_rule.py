"""`PairRule`: the weighted vote of trees on which of two cases ranks higher, and the score that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._core.threads import CHUNK_ROWS, Threads
from toprank._core.votes import pair_votes
from toprank.errors import InputError

PLACE = np.int16
"""Place in a tree: TreeRankBoost's trees have at most 2 ** 14 leaves."""

CASES_A_CALL = 16
"""Distinct cases per batch of a thread; each is compared with all negatives."""


@dataclass(frozen=True, eq=False)
class PairRule:
    """Voting trees, and the negatives to compare cases with, by their places in the trees.

    Negatives with the same places in all trees are stored once, with their count; the score is exact.

    Attributes
    ----------
    weight : float64 array of shape (n_trees,)
        Vote of each tree; sums of them must not round.
    places : int16 array of shape (n_tuples, n_trees)
        Distinct places of the negatives, 0 is the top of a tree.
    count : int64 array of shape (n_tuples,)
        Weight of the negatives at these places, in integer units.
    """

    weight: np.ndarray
    places: np.ndarray
    count: np.ndarray

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
        >>> from toprank.rankers.ensemble.pair_rule import PairRule
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
