"""Do the scores of two samples come from one distribution? Rank tests with ties.

All tests use the same statistic, the sum of the midranks of the new rows, under the same null hypothesis: given the
scores, every choice of the new rows among all rows is equally likely. They differ in how they compute its distribution:
by counting (exact), by drawing (permutation), or by its mean and variance (normal).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

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


@dataclass(frozen=True)
class HomogeneityTest:
    """The outcome of a one-sided test of whether the new rows score higher.

    Attributes
    ----------
    auc : float
        Probability that a new row scores higher than a reference row, ties counting one half.
    p_value : float
    method : {"exact", "normal", "permutation"}
        How the distribution of the statistic was computed.
    """

    auc: float
    p_value: float
    method: str


def homogeneity_test(
    score: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    *,
    test: str = "rank-sum",
    n_permutations: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> HomogeneityTest:
    """Test whether new rows score higher than reference rows; one-sided, corrected for ties.

    Parameters
    ----------
    score : array of shape (n,)
    is_new : bool array of shape (n,), both values present
    test : {"rank-sum", "permutation"}
        rank-sum: Mann and Whitney's test; exact for at most 60 rows, by permutation if fewer than ten rows of the
        smaller sample are expected outside the largest tied group, and normal otherwise. permutation: labels redrawn
        `n_permutations` times, p-value (b + 1) / (n_permutations + 1) with b draws at least as extreme.
    n_permutations : int or None
        None: 9,999, or 999 if there are more than 5,000 different scores.
    random_state : int or Generator
        For permutations; nothing else is random.

    Returns
    -------
    HomogeneityTest

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
