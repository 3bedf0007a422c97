"""Statistics of several methods over several data sets: ranks, Friedman's test, critical difference, Holm's correction.

All take the figures of finished comparisons; `summary` decides what is compared. Tests of two methods
are in `toprank.metrics.comparison`.

References
----------
J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics.checks import check_count, is_real


@dataclass(frozen=True)
class FriedmanTest:
    """The outcome of Friedman's test of several methods over several data sets.

    Attributes
    ----------
    chi_square : float
        Friedman's statistic, corrected for ties.
    statistic : float
        Iman and Davenport's F, with k - 1 and (k - 1)(N - 1) degrees of freedom; infinite if all data sets rank the
        methods alike.
    p_value : float
        Of `statistic`.
    """

    chi_square: float
    statistic: float
    p_value: float


def mean_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Mean rank of each method over data sets: 1 is the best, ties share the mean of their ranks.

    Parameters
    ----------
    values : array-like of shape (n_data_sets, n_methods)
        Larger is better.

    Examples
    --------
    >>> mean_ranks([[0.9, 0.8, 0.7], [0.6, 0.6, 0.5]])
    array([1.25, 1.75, 3.  ])
    """
    return _ranks(_grid(values, "mean_ranks")).mean(axis=0)


def friedman_test(values: ArrayLike) -> FriedmanTest:
    """Friedman's test of whether all methods are equally good, with Iman and Davenport's correction.

    Parameters
    ----------
    values : array-like of shape (n_data_sets, n_methods)
        Larger is better; at least 2 data sets and 3 methods.

    Returns
    -------
    FriedmanTest
        The p-value is 1 where all figures of each data set are equal.

    References
    ----------
    Demšar 2006, section 3.2.2. Unlike there, the statistic is corrected for ties.

    Examples
    --------
    >>> result = friedman_test([[0.9, 0.8, 0.7], [0.7, 0.6, 0.5], [0.8, 0.6, 0.7], [0.9, 0.5, 0.4]])
    >>> round(result.chi_square, 3), round(result.statistic, 3), round(result.p_value, 4)
    (6.5, 13.0, 0.0066)
    """
    grid = _grid(values, "friedman_test")
    n_data_sets, n_methods = grid.shape
    if n_methods < 3 or n_data_sets < 2:
        raise InputError(
            f"friedman_test needs at least 3 methods on at least 2 data sets. Got {n_methods} on {n_data_sets}. "
            "Hint: compare two methods with wilcoxon_test, methods on one data set with corrected_resampled_t_test."
        )
    if not np.ptp(grid, axis=1).any():
        return FriedmanTest(0.0, 0.0, 1.0)
    from scipy.special import fdtrc
    from scipy.stats import friedmanchisquare  # takes half a second to import: only when needed

    chi_square = float(friedmanchisquare(*_ranks(grid).T).statistic)  # of ranks: figures may be subnormal
    rest = n_data_sets * (n_methods - 1) - chi_square
    if rest <= 1e-9 * n_data_sets:  # all rank alike: the sign would be rounding error
        return FriedmanTest(chi_square, float("inf"), 0.0)
    statistic = (n_data_sets - 1) * chi_square / rest
    p_value = float(fdtrc(n_methods - 1, (n_methods - 1) * (n_data_sets - 1), max(statistic, 0.0)))
    return FriedmanTest(chi_square, statistic, p_value)


def nemenyi_difference(n_methods: int, n_data_sets: int, level: float = 0.05) -> float:
    """Critical difference of two mean ranks by Nemenyi's test.

    Two methods differ significantly if their mean ranks differ by at least this much.

    Parameters
    ----------
    n_methods : int
        At least 2.
    n_data_sets : int
        At least 1.
    level : float, default=0.05
        Probability of any false difference, in (0, 1).

    References
    ----------
    Demšar 2006, section 3.2.2: q sqrt(k (k + 1) / (6 N)), q the studentised range over the square root of 2.

    Examples
    --------
    >>> round(nemenyi_difference(4, 14), 2), round(nemenyi_difference(4, 14, 0.1), 2)
    (1.25, 1.12)
    """
    n_methods = check_count(n_methods, "n_methods", low=2, caller="nemenyi_difference")
    n_data_sets = check_count(n_data_sets, "n_data_sets", caller="nemenyi_difference")
    if not is_real(level) or not 0 < level < 1:
        raise InputError(
            f"The 'level' parameter of nemenyi_difference must be a number in the range (0, 1). Got {level!r} instead."
        )
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - level, n_methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))


def cliques(mean_ranks: ArrayLike, difference: float) -> list[tuple[int, ...]]:
    """Largest groups of methods that do not differ significantly, best first.

    Parameters
    ----------
    mean_ranks : array-like of shape (n_methods,)
    difference : float
        Critical difference: closer ranks do not differ significantly.

    Returns
    -------
    list of tuple of int
        Positions of the methods, by mean rank. A group has at least two methods and none is part of another:
        the bars of a critical-difference diagram.

    References
    ----------
    Demšar 2006, section 3.2.4.

    Examples
    --------
    >>> cliques([3.143, 2.0, 2.893, 1.964], 1.12)
    [(3, 1, 2), (2, 0)]
    """
    ranks = np.asarray(mean_ranks, dtype=np.float64)
    if ranks.ndim != 1 or not np.isfinite(ranks).all():
        raise InputError(f"'mean_ranks' of cliques must be a list of finite numbers. Got {mean_ranks!r} instead.")
    order = np.argsort(ranks, kind="stable")
    ordered = ranks[order]
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and ordered[stop] - ordered[start] < difference:
            stop += 1
        if stop - start > 1 and stop > reached:  # otherwise part of the group before
            groups.append(tuple(order[start:stop].tolist()))
            reached = stop
    return groups


def _ranks(grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank of each method on each data set, 1 for the largest figure."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(-grid, axis=1)
    return ranks


def _grid(values: ArrayLike, caller: str) -> NDArray[np.float64]:
    grid = np.asarray(values, dtype=np.float64)
    is_finite = bool(np.isfinite(grid).all())
    if grid.ndim != 2 or 0 in grid.shape or not is_finite:
        found = f"shape {grid.shape}" if is_finite else "missing or infinite figures"
        raise InputError(
            f"'values' of {caller} must be finite numbers of shape (n_data_sets, n_methods). Got {found} instead. "
            "Hint: leave out what a method did not finish."
        )
    return grid
