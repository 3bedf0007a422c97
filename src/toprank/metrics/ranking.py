"""Measures of a whole ranking: average precision, area under the ROC curve, Pos@Top."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics.checks import check_choice, check_rows
from toprank.metrics.ties import TieGroups, tie_groups


def average_precision(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    ties: str = "grouped",
    pos_label: Any = None,
) -> float:
    r"""Average precision: the mean, over the positives, of the precision at their rank.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious; NaN is an error, infinities are allowed.
    sample_weight : array-like of shape (n,), optional
        Any weights with ``ties="grouped"``. The other choices order single cases, so weights are numbers of copies and
        must be whole.
    ties : {"grouped", "expected", "best", "worst"}
        "grouped" counts a tied group as a whole: equation (2) of [1]_, AP = sum over thresholds t of (R_t -
        R_{t-1}) P_t, which is ``sklearn.metrics.average_precision_score``. "expected" is the exact mean over
        all orders of the tied rows; "best" and "worst" put positives first or last among them. Without ties
        all four are equal.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    float
        Between 0 and 1; about the share of positives for a random ranking.

    Notes
    -----
    Take a group of g cases with p positives, after M cases with A positives. Under random order its j-th
    position holds a positive with probability p / g, with (j - 1)(p - 1) / (g - 1) positives of the group
    above it on average, so that the group adds

    .. math:: \sum_{j=1}^{g} \frac{p}{g} \, \frac{A + 1 + (j-1)(p-1)/(g-1)}{M + j}

    to the sum of precisions. The quotient of a linear function and M + j sums to harmonic numbers, so that there is one
    expression per group and no loop. "grouped" gives every positive the precision at the end of its group: never below
    "worst", but above "best" if many tied positives follow negatives.

    References
    ----------
    .. [1] R. Viola, L. Gautheron, A. Habrard, M. Sebban, "MetaAP: a meta-tree-based ranking algorithm
       optimizing the average precision from imbalanced data", Pattern Recognition Letters 161, 2022,
       equation (2).

    Examples
    --------
    >>> y, score = [1, 0, 0, 1], [0.9, 0.5, 0.5, 0.5]
    >>> average_precision(y, score)
    0.75
    >>> [round(average_precision(y, score, ties=ties), 3) for ties in ("worst", "expected", "best")]
    [0.75, 0.861, 1.0]
    """
    caller = "average_precision"
    check_choice(ties, "ties", ("grouped", "expected", "best", "worst"), caller=caller)
    rows = check_rows(y_true, score, sample_weight=sample_weight, pos_label=pos_label, caller=caller)
    is_bad = rows.weight != np.floor(rows.weight)
    if ties != "grouped" and is_bad.any():
        raise InputError(
            f"'sample_weight' of {caller} must be whole numbers (copies of a row) with ties={ties!r}. "
            f"Got {rows.weight[is_bad.argmax()]} instead. Hint: ties='grouped' accepts any weights."
        )
    groups = tie_groups(rows)
    return float(np.clip(_precision_sums(groups, ties).sum() / groups.positives_through[-1], 0.0, 1.0))


def _precision_sums(groups: TieGroups, ties: str) -> NDArray[np.float64]:
    """Sum of the precision at the positives of each tied group."""
    p, g = groups.positives, groups.cases
    above, before = groups.positives_through - p, groups.cases_through - g  # A, M
    if ties == "grouped":
        return p * groups.positives_through / groups.cases_through
    if ties == "expected":
        slope = np.where(g > 1, (p - 1) / np.maximum(g - 1, 1), 0.0)
        intercept = above + 1 - slope * (1 + before)  # the numerator is slope (M + j) + intercept
        return p / g * (slope * g + intercept * harmonic_difference(before, g))
    # A run of p positives after `before` cases: the sum of (A + i) / (before + i) for i = 1..p.
    before = before if ties == "best" else groups.cases_through - p
    return p + (groups.positives_through - p - before) * harmonic_difference(before, p)


_N_TABLE = 32
_HARMONIC = np.append(0.0, np.cumsum(1 / np.arange(1, _N_TABLE + 1)))


def harmonic_difference(start: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of 1 / (start + j) for j = 1..n, to full relative precision; both hold whole numbers.

    A difference of two harmonic numbers loses digits if n is much smaller than start. So: a table up to 32, and
    beyond it the expansion in x = k + 1/2, H_k = log x + gamma + 1/(24 x^2) - 7/(960 x^4) + 31/(8064 x^6) -
    ..., where the logarithms are subtracted as log1p(n / x). The first term left out is below 1e-17.
    """
    low, high = np.minimum(start, _N_TABLE), np.minimum(start + n, _N_TABLE)
    in_table = _HARMONIC[high.astype(np.intp)] - _HARMONIC[low.astype(np.intp)]
    x = np.maximum(start, _N_TABLE) + 0.5
    length = np.maximum(start + n, _N_TABLE) + 0.5 - x
    return in_table + np.log1p(length / x) + (_correction(x + length) - _correction(x))


def _correction(x: NDArray[np.float64]) -> NDArray[np.float64]:
    u = 1 / (x * x)
    return u * (1 / 24 - u * (7 / 960 - u * (31 / 8064 - u * 127 / 30720)))


def roc_auc(
    y_true: ArrayLike, score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> float:
    """Area under the ROC curve: the probability that a positive is above a negative, ties counting one half.

    Counting ties one half is the expectation over random tie order, so there is no ``ties`` choice.

    Parameters
    ----------
    y_true, score, sample_weight, pos_label
        As in `average_precision`.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a random ranking. Equal to ``sklearn.metrics.roc_auc_score``.

    References
    ----------
    MetaAP paper, equation (1) for the axes of the curve; R. Viola's thesis, section 1.5.1, for the sum over
    pairs.

    Examples
    --------
    >>> roc_auc([1, 0, 0, 1], [0.9, 0.5, 0.4, 0.5])
    0.875
    """
    rows = check_rows(y_true, score, sample_weight=sample_weight, pos_label=pos_label, caller="roc_auc")
    groups = tie_groups(rows)
    negatives = groups.cases - groups.positives
    pairs_won = negatives * (groups.positives_through - groups.positives / 2)
    # From the same sums as the pairs, so that a perfect ranking gives exactly 1 with any weights.
    return float(np.clip(pairs_won.sum() / (negatives.sum() * groups.positives_through[-1]), 0.0, 1.0))


def pos_at_top(
    y_true: ArrayLike, score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
) -> float:
    """Pos@Top: the share of the positives ranked above every negative.

    It is the recall before the precision drops below 1 [1]_. A positive tied with the first negative is not
    above it.

    Parameters
    ----------
    y_true, score, sample_weight, pos_label
        As in `average_precision`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    .. [1] J. Frery, A. Habrard, M. Sebban, O. Caelen, L. He-Guelton, "Efficient top rank optimization with
       gradient boosting for supervised anomaly detection", ECML PKDD 2017, section on experiments.

    Examples
    --------
    >>> pos_at_top([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.7, 0.1])
    0.6666666666666666
    """
    rows = check_rows(y_true, score, sample_weight=sample_weight, pos_label=pos_label, caller="pos_at_top")
    is_above = rows.score > rows.score[~rows.positive].max()
    return float(rows.weight[is_above].sum() / rows.total_positive)
