"""Statistics of several methods over several data sets: ranks, Friedman's test, critical difference.

All take the figures of finished comparisons, of shape (n_data_sets, n_methods), larger is better; `summary` decides
what is compared. Tests of two methods are in `toprank.metrics.comparison`.

References
----------
J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Figures = NDArray[np.float64]


class FriedmanTest(NamedTuple):
    """The outcome of Friedman's test of several methods over several data sets."""

    chi_square: float  # Friedman's statistic, corrected for ties
    statistic: float  # Iman and Davenport's F; infinite if all data sets rank the methods alike
    p_value: float  # of `statistic`


def mean_ranks(values: Figures) -> Figures:
    """Mean rank of each method over data sets: 1 is the best, ties share the mean of their ranks.

    Examples
    --------
    >>> mean_ranks(np.array([[0.9, 0.8, 0.7], [0.6, 0.6, 0.5]]))
    array([1.25, 1.75, 3.  ])
    """
    from scipy.stats import rankdata

    return rankdata(-values, axis=1).mean(axis=0)


def friedman_test(values: Figures) -> FriedmanTest:
    """Friedman's test of whether at least 3 methods are equally good on at least 2 data sets.

    With Iman and Davenport's correction: F has k - 1 and (k - 1)(N - 1) degrees of freedom. Unlike in Demšar 2006,
    section 3.2.2, the statistic is corrected for ties. p is 1 where all figures of each data set are equal.

    Examples
    --------
    >>> values = np.array([[0.9, 0.8, 0.7], [0.7, 0.6, 0.5], [0.8, 0.6, 0.7], [0.9, 0.5, 0.4]])
    >>> [round(figure, 4) for figure in friedman_test(values)]
    [6.5, 13.0, 0.0066]
    """
    if not np.ptp(values, axis=1).any():
        return FriedmanTest(0.0, 0.0, 1.0)
    from scipy.special import fdtrc
    from scipy.stats import friedmanchisquare, rankdata  # takes half a second to import: only when needed

    n_data_sets, n_methods = values.shape
    chi_square = float(friedmanchisquare(*rankdata(-values, axis=1).T).statistic)  # of ranks: figures may be subnormal
    rest = n_data_sets * (n_methods - 1) - chi_square
    if rest <= 1e-9 * n_data_sets:  # all rank alike: the sign would be rounding error
        return FriedmanTest(chi_square, float("inf"), 0.0)
    statistic = (n_data_sets - 1) * chi_square / rest
    p_value = float(fdtrc(n_methods - 1, (n_methods - 1) * (n_data_sets - 1), max(statistic, 0.0)))
    return FriedmanTest(chi_square, statistic, p_value)


def nemenyi_difference(n_methods: int, n_data_sets: int, level: float = 0.05) -> float:
    """Critical difference of two mean ranks by Nemenyi's test; `level` is that of all pairs together.

    Demšar 2006, section 3.2.2: q sqrt(k (k + 1) / (6 N)), q the studentised range over the square root of 2.

    Examples
    --------
    >>> round(nemenyi_difference(4, 14), 2), round(nemenyi_difference(4, 14, 0.1), 2)
    (1.25, 1.12)
    """
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - level, n_methods, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_data_sets)))
