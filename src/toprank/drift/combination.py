"""One p-value from two tests of the held-out rows: of their order by score, and of every leaf on its own.

If both samples come from one population, every choice of the new rows among the held-out ones is equally likely. Both
tests depend only on the number of new rows in each group of rows with the same leaf and score, and these counts are
multivariate hypergeometric. So counts are drawn, and the p-value is the share of draws that are at least as extreme in
the better of the two tests: no level is lost to a bound on their dependence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.drift.cells import fisher_by_count
from toprank.drift.homogeneity import automatic_draws, draw_counts, normal_p_values, tied_groups

CELL_SHARE = 0.1
"""Share of the level spent on single cells; the test of the scores gets the rest. A small pocket hardly changes the
order of all rows, but is obvious in its own cell, so a tenth is enough for it."""


def union_bound(of_scores: float, of_cells: float) -> float:
    """p-value of two tests with any dependence, by Bonferroni with unequal shares of the level.

    Examples
    --------
    >>> round(union_bound(0.018, 0.5), 3), round(union_bound(0.9, 0.003), 3)
    (0.02, 0.03)
    """
    return min(1.0, of_scores / (1 - CELL_SHARE), of_cells / CELL_SHARE)


def combined_p_value(
    score: NDArray[np.float64],
    leaf: NDArray[np.integer[Any]],
    is_new: NDArray[np.bool_],
    *,
    n_leaves: int,
    bound: float,
    n_permutations: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> float:
    """p-value of both tests of the held-out rows, from random draws of the new ones among them.

    With b of m draws at least as extreme, p is (b + 1) / (m + 1) if b > 0. If b = 0, draws only say that p is small,
    and it is the smaller of 1 / (m + 1) and `bound`. That keeps every level a: below 1 / (m + 1), p <= a only if bound
    <= a; from there on, p <= a exactly if (b + 1) / (m + 1) <= a; and under the null hypothesis each has probability at
    most a.

    Parameters
    ----------
    score : array of shape (n,)
    leaf : int array of shape (n,)
    is_new : bool array of shape (n,), both values present
    n_leaves : int
        Leaves of the tree, including those without any of these rows.
    bound : float
        A p-value of the same rows that is valid on its own: see `union_bound`.
    n_permutations : int or None
        m; None is 9,999, or 999 if there are more than 5,000 groups with equal leaf and score.
    random_state : int or Generator

    Examples
    --------
    >>> leaf, is_new = np.repeat([0, 1], 50), np.arange(100) % 50 < np.repeat([25, 14], 50)
    >>> round(combined_p_value(-leaf.astype(float), leaf, is_new, n_leaves=2, bound=1.0), 3)
    0.022
    """
    groups = HeldOutGroups.from_scores(score, leaf, n_leaves, int(np.count_nonzero(is_new)))
    n_draws = n_permutations or automatic_draws(len(groups.size))
    at_most = groups.statistic(groups.count(is_new)) * (1 + 1e-9)  # ties may differ by rounding
    drawn = draw_counts(groups.size, groups.n_new, n_draws, np.random.default_rng(random_state))
    n_beyond = sum(int(np.count_nonzero(groups.statistic(counts) <= at_most)) for counts in drawn)
    p_value = (n_beyond + 1) / (n_draws + 1)
    return p_value if n_beyond else min(p_value, bound)


@dataclass(frozen=True)
class HeldOutGroups:
    """Held-out rows grouped by leaf and score, without their labels; the groups of a leaf are contiguous.

    Attributes
    ----------
    group : int array of shape (n,)
        Group of each row.
    size, doubled_rank : int arrays of shape (n_groups,)
        Rows of each group, and twice their midrank.
    tied : int array of shape (n_scores,)
        Rows of each score.
    start : int array of shape (n_present,)
        First group of each leaf that has rows.
    p_value : float array
        Fisher's p-values of all leaves for every count of new rows, concatenated.
    offset : int array of shape (n_present,)
        Start of each leaf's p-values.
    n_leaves, n_new : int
    """

    group: NDArray[np.int64]
    size: NDArray[np.int64]
    doubled_rank: NDArray[np.int64]
    tied: NDArray[np.int64]
    start: NDArray[np.int64]
    p_value: NDArray[np.float64]
    offset: NDArray[np.int64]
    n_leaves: int
    n_new: int

    @classmethod
    def from_scores(
        cls, score: NDArray[np.float64], leaf: NDArray[np.integer[Any]], n_leaves: int, n_new: int
    ) -> HeldOutGroups:
        """Groups of rows by their leaves and scores."""
        tie, tied, doubled_rank = tied_groups(score)
        code, group, size = np.unique(leaf.astype(np.int64) * len(tied) + tie, return_inverse=True, return_counts=True)
        start = np.unique(code // len(tied), return_index=True)[1]
        p_values = [fisher_by_count(int(rows), len(score), n_new) for rows in np.add.reduceat(size, start)]
        return cls(
            group=group,
            size=size,
            doubled_rank=doubled_rank[code % len(tied)],
            tied=tied,
            start=start,
            p_value=np.concatenate(p_values),
            offset=np.cumsum([0, *map(len, p_values[:-1])]),
            n_leaves=n_leaves,
            n_new=n_new,
        )

    def count(self, is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
        """New rows per group, of shape (1, n_groups)."""
        return np.bincount(self.group[is_new], minlength=len(self.size))[None]

    def statistic(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The smaller of both tests' p-values, each divided by its share of the level, for each row of counts.

        It is the union bound, except that the test of the scores is always the normal one: to compare draws it need not
        be a p-value, only decrease with the evidence.
        """
        in_leaf = np.add.reduceat(counts, self.start, axis=1)
        of_cells = self.n_leaves * self.p_value[self.offset + in_leaf].min(axis=1)
        if len(self.tied) == 1:
            return of_cells / CELL_SHARE
        of_scores = normal_p_values(self.tied, self.n_new, counts @ self.doubled_rank)
        return np.minimum(of_scores / (1 - CELL_SHARE), of_cells / CELL_SHARE)
