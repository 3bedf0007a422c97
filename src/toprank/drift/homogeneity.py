"""Do the held-out rows of two samples come from one distribution? Tests of their scores, of every leaf, and of both.

The null hypothesis: given leaves and scores, every choice of the new rows among all rows is equally likely. Rank tests
of the scores share one statistic, the sum of the midranks of the new rows. They differ in how they compute its
distribution: by counting (exact), by drawing (permutation), or by its mean and variance (normal).

One p-value for scores and leaves: both tests depend only on the number of new rows in each group of rows with the same
leaf and score, and these counts are multivariate hypergeometric. So counts are drawn, and the p-value is the share of
draws that are at least as extreme in the better of the two tests: no level is lost to a bound on their dependence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

TESTS = ("rank-sum", "permutation")

EXACT_ROWS = 60
"""Rows up to which a rank-sum test counts all choices: about ten million additions."""

FEW = 10
"""Expected rows of the smaller sample outside the largest tied group below which a normal approximation is too coarse
for a sum of ranks."""

CELLS_DRAWN = 4_000_000
"""Numbers that permutations hold in memory at once."""

ROWS_PER_GROUP = 20
"""Mean size of tied groups from which drawing group by group is cheaper than row by row."""

DRAWS, FEWER_DRAWS = 9_999, 999
MANY_GROUPS = 5_000
"""Default number of draws, and the smaller default above this number of tied groups."""

CELL_SHARE = 0.1
"""Share of the level spent on single cells; the test of the scores gets the rest. A small pocket hardly changes the
order of all rows, but is obvious in its own cell, so a tenth is enough for it."""


@dataclass(frozen=True)
class HomogeneityTest:
    """A one-sided test of whether the new rows score higher."""

    auc: float  # probability that a new row scores higher than a reference row, ties counting one half
    p_value: float
    method: str  # how the distribution of the statistic was computed: "exact", "normal" or "permutation"


def homogeneity_test(
    score: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    *,
    test: str = "rank-sum",
    n_permutations: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> HomogeneityTest:
    """Test whether new rows score higher than reference rows; one-sided, corrected for ties.

    rank-sum is Mann and Whitney's test: exact for at most 60 rows, by permutation if fewer than ten rows of the smaller
    sample are expected outside the largest tied group, and normal otherwise. permutation redraws the labels
    `n_permutations` times (None: `automatic_draws`): p is (b + 1) / (n_permutations + 1), b draws at least as extreme.

    References
    ----------
    H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the
    other", Annals of Mathematical Statistics 18, 1947. B. Phipson, G. K. Smyth, "Permutation p-values should never be
    zero", Statistical Applications in Genetics and Molecular Biology 9, 2010.

    Examples
    --------
    >>> outcome = homogeneity_test(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    >>> outcome.auc, outcome.p_value, outcome.method
    (0.875, 0.3333333333333333, 'exact')
    """
    group, size, rank = tied_groups(score)
    n, n_new = len(score), int(np.count_nonzero(is_new))
    observed = int(rank[group[is_new]].sum())
    auc = (observed / 2 - n_new * (n_new + 1) / 2) / (n_new * (n - n_new))
    if len(size) == 1:
        return HomogeneityTest(0.5, 1.0, "exact")  # every choice of new rows gives the same sum
    if test == "rank-sum" and n <= EXACT_ROWS:
        return HomogeneityTest(auc, _exact_p_value(np.repeat(rank, size), n_new, observed), "exact")
    if test == "rank-sum" and min(n_new, n - n_new) * (n - int(size.max())) >= FEW * n:
        return HomogeneityTest(auc, float(normal_p_values(size, n_new, observed)), "normal")
    n_draws = n_permutations or automatic_draws(len(size))
    drawn = draw_counts(size, n_new, n_draws, np.random.default_rng(random_state))
    n_beyond = sum(int(np.count_nonzero(counts @ rank >= observed)) for counts in drawn)
    return HomogeneityTest(auc, (n_beyond + 1) / (n_draws + 1), "permutation")


def tied_groups(score: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Tied group of each row, lowest score first; rows per group; twice its midrank, a whole number.

    Examples
    --------
    >>> [part.tolist() for part in tied_groups(np.array([0.5, 0.1, 0.5]))]
    [[1, 0, 1], [1, 2], [2, 5]]
    """
    group, size = np.unique(score, return_inverse=True, return_counts=True)[1:]
    return group, size, 2 * np.cumsum(size) - size + 1


def _exact_p_value(rank: NDArray[np.int64], n_new: int, observed: int) -> float:
    """Share of all choices of n_new rows whose doubled midranks sum to at least the observed value."""
    # ways[k, s] is the number of choices of k rows, among those visited, with sum s.
    ways = np.zeros((n_new + 1, int(rank.sum()) + 1))
    ways[0, 0] = 1.0
    for r in rank.tolist():
        ways[1:, r:] += ways[:-1, :-r]
    return float(ways[n_new, observed:].sum() / ways[n_new].sum())


def normal_p_values(size: NDArray[np.int64], n_new: int, doubled: int | NDArray[np.int64]) -> NDArray[np.float64]:
    """Upper tail of the normal approximation of the rank sum, corrected for ties and continuity.

    size holds the sizes of the tied groups, at least two; doubled is twice the sum of the ranks.
    """
    n = int(size.sum())
    share_tied = float((size.astype(float) ** 3 - size).sum()) / (n * (n - 1))
    deviation = np.sqrt(n_new * (n - n_new) / 12 * (n + 1 - share_tied))
    excess = np.asarray(doubled) / 2 - n_new * (n + 1) / 2
    return ndtr(-(excess - 0.5) / deviation)


def automatic_draws(n_groups: int) -> int:
    """Default number of draws."""
    return DRAWS if n_groups <= MANY_GROUPS else FEWER_DRAWS


def draw_counts(
    size: NDArray[np.int64], n_new: int, n_draws: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Random choices of n_new rows, as counts per group of equal rows: arrays of shape (some, n_groups)."""
    by_group = ROWS_PER_GROUP * len(size) <= int(size.sum())
    method: Literal["marginals", "count"] = "marginals" if by_group else "count"
    at_once = max(1, CELLS_DRAWN // len(size))
    for first in range(0, n_draws, at_once):
        yield rng.multivariate_hypergeometric(size, n_new, size=min(at_once, n_draws - first), method=method)


# --- leaves -------------------------------------------------------------------------------------------------


def fisher_p_values(reference: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.float64]:
    """Fisher's exact test, two-sided, of each cell against all others together."""
    n_new, size = int(new.sum()), reference + new
    return np.array([fisher_by_count(int(s), int(size.sum()), n_new)[k] for s, k in zip(size, new, strict=True)])


def fisher_by_count(size: int, n: int, n_new: int) -> NDArray[np.float64]:
    """p-values of Fisher's test of a cell of `size` among n rows, for 0, 1, 2, ... of the n_new new rows in it.

    Two-sided: the probability of all counts no more likely than the given one. 1 for impossible counts.

    Examples
    --------
    >>> fisher_by_count(2, 5, 2).round(2).tolist()
    [0.4, 1.0, 0.1]
    """
    low, high = max(0, size + n_new - n), min(size, n_new)
    k = np.arange(low, high + 1)
    chance = -gammaln(k + 1) - gammaln(size - k + 1) - gammaln(n_new - k + 1) - gammaln(n - size - n_new + k + 1)
    chance = np.exp(chance - chance.max())
    chance /= chance.sum()
    order = np.sort(chance)
    no_more_likely = np.searchsorted(order, chance * (1 + 1e-7), side="right")  # ties may differ by rounding
    p_value = np.ones(high + 1)
    p_value[low:] = np.minimum(np.cumsum(order)[no_more_likely - 1], 1.0)
    return p_value


# --- scores and leaves together -----------------------------------------------------------------------------


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
    and it is the smaller of 1 / (m + 1) and `bound`, a p-value that is valid on its own (`union_bound`). That keeps
    every level a: below 1 / (m + 1), p <= a only if bound <= a; from there on, p <= a exactly if
    (b + 1) / (m + 1) <= a; and under the null hypothesis each has probability at most a. `n_leaves` counts all leaves
    of the tree.

    Examples
    --------
    >>> leaf, is_new = np.repeat([0, 1], 50), np.arange(100) % 50 < np.repeat([25, 14], 50)
    >>> round(combined_p_value(-leaf.astype(float), leaf, is_new, n_leaves=2, bound=1.0), 3)
    0.022
    """
    groups = HeldOutGroups(score, leaf, n_leaves, int(np.count_nonzero(is_new)))
    n_draws = n_permutations or automatic_draws(len(groups.size))
    at_most = groups.statistic(groups.count(is_new)) * (1 + 1e-9)  # ties may differ by rounding
    drawn = draw_counts(groups.size, groups.n_new, n_draws, np.random.default_rng(random_state))
    n_beyond = sum(int(np.count_nonzero(groups.statistic(counts) <= at_most)) for counts in drawn)
    p_value = (n_beyond + 1) / (n_draws + 1)
    return p_value if n_beyond else min(p_value, bound)


class HeldOutGroups:
    """Held-out rows grouped by leaf and score, without their labels; the groups of a leaf are contiguous.

    `n_leaves` counts all leaves of the tree, `n_new` the new rows.
    """

    def __init__(self, score: NDArray[np.float64], leaf: NDArray[np.integer[Any]], n_leaves: int, n_new: int) -> None:
        tie, self.tied, doubled_rank = tied_groups(score)  # tied: rows of each score
        n_scores = len(self.tied)
        code = leaf.astype(np.int64) * n_scores + tie
        code, self.group, self.size = np.unique(code, return_inverse=True, return_counts=True)
        self.doubled_rank = doubled_rank[code % n_scores]
        self.start = np.unique(code // n_scores, return_index=True)[1]  # first group of each leaf that has rows
        of_leaf = [fisher_by_count(int(rows), len(score), n_new) for rows in np.add.reduceat(self.size, self.start)]
        self.p_value = np.concatenate(of_leaf)  # Fisher's, of all leaves for every count of new rows
        self.offset = np.cumsum([0, *map(len, of_leaf[:-1])])  # where those of a leaf start
        self.n_leaves, self.n_new = n_leaves, n_new

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
