"""The best that any ranking can do when the true P(y = 1 | row) is known.

The labels are seen as independent draws with these probabilities. Sorting by the probability is then optimal
for the ROC curve at every point (Neyman-Pearson) and for average precision: swapping two neighbours ranked i
and i + 1 with probabilities a > b changes the expected numerator by (a - b)(1 + S) / (i (i + 1)) > 0 in
favour of a first, where S is the sum of the probabilities ranked above them.
"""

from __future__ import annotations

import numpy as np


def expected_average_precision(probability, score):
    """Return the average precision that ``score`` reaches on average over labels and orders of ties.

    With rows in score order, a positive at rank i finds an expected 1 + sum(p[:i-1]) positives among the
    first i, so the expectation of the numerator of average precision, sum(p[i] * (1 + sum(p[:i-1])) / i), is
    exact. The number of positives in the denominator is replaced by its expectation: the result is the
    population value, from which the average precision on one draw of n labels differs by O(1 / sqrt(n *
    rate)).

    Parameters
    ----------
    probability : array-like of shape (n,)
        The true P(y = 1 | row).
    score : array-like of shape (n,)
        Any score; larger is more suspicious.

    Returns
    -------
    value : float

    Examples
    --------
    >>> from toprank.datasets import expected_average_precision
    >>> round(expected_average_precision([0.9, 0.1, 0.5], [3.0, 1.0, 2.0]), 3)
    0.97
    >>> round(expected_average_precision([0.9, 0.1, 0.5], [1.0, 3.0, 2.0]), 3)
    0.57
    """
    probability = _check_probability(probability, "expected_average_precision")
    score = np.asarray(score, dtype=np.float64)
    if score.shape != probability.shape or np.isnan(score).any():
        raise ValueError(
            "expected_average_precision needs one score without NaN for each probability. "
            f"Got scores of shape {score.shape}, {int(np.isnan(score).sum())} of them NaN, "
            f"and probabilities of shape {probability.shape}."
        )
    order = np.argsort(-score, kind="stable")
    ranked, score = probability[order], score[order]
    starts = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    sizes = np.diff(np.r_[starts, ranked.size])

    # Inside a block of ties every order is equally likely: a rank holds the block's mean probability, and any
    # two ranks together the mean product of two different rows.
    sums = np.add.reduceat(ranked, starts)
    squares = np.add.reduceat(ranked**2, starts)
    above = np.cumsum(sums) - sums
    pair = (sums**2 - squares) / np.maximum(sizes * (sizes - 1), 1)
    ranks = np.arange(1, ranked.size + 1)
    ahead_in_block = ranks - 1 - np.repeat(starts, sizes)
    hits = np.repeat(sums / sizes * (1.0 + above), sizes) + ahead_in_block * np.repeat(pair, sizes)
    return float((hits / ranks).sum() / probability.sum())


def optimal_average_precision(probability):
    """Return the average precision of the best ranking, the one by the true probability.

    No other ranking has a larger expected numerator.

    See `expected_average_precision` for the formula and its accuracy: on one draw of labels the best ranking
    reaches this value up to O(1 / sqrt(n * rate)), so a model may exceed it by luck on a small sample.

    Parameters
    ----------
    probability : array-like of shape (n,)
        The true P(y = 1 | row), such as ``AuditData.probability``.

    Returns
    -------
    value : float

    Examples
    --------
    >>> from toprank.datasets import make_audit, optimal_average_precision
    >>> data = make_audit(5_000, random_state=0)
    >>> 0.4 < optimal_average_precision(data.probability) < 0.7
    True
    """
    probability = _check_probability(probability, "optimal_average_precision")
    return expected_average_precision(probability, probability)


def optimal_roc(probability):
    """Return the best ROC curve any ranking can have, as points from (0, 0) to (1, 1).

    The population curve, like `optimal_average_precision`: both rates are ratios of expected counts.

    Parameters
    ----------
    probability : array-like of shape (n,)
        The true P(y = 1 | row), such as ``AuditData.probability``; not all 0 and not all 1.

    Returns
    -------
    fpr, tpr : ndarray of shape (n_distinct + 1,), float64
        False and true positive rate after each distinct probability, best first.

    Examples
    --------
    >>> from toprank.datasets import optimal_roc
    >>> fpr, tpr = optimal_roc([0.75, 0.25, 0.25, 0.75])
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.25, 1.0], [0.0, 0.75, 1.0])
    """
    probability = _check_probability(probability, "optimal_roc")
    if probability.min() == 1.0:
        raise ValueError("optimal_roc needs probabilities that are not all 1: there is no negative case to rank.")
    ranked = np.sort(probability)[::-1]
    last_of_value = np.flatnonzero(np.r_[np.diff(ranked) != 0.0, True])
    hits = np.cumsum(ranked)[last_of_value]
    misses = np.cumsum(1.0 - ranked)[last_of_value]
    return np.r_[0.0, misses / misses[-1]], np.r_[0.0, hits / hits[-1]]


def _check_probability(probability, owner):
    """Return the probabilities as a float64 vector, or a ValueError in the name of ``owner``."""
    probability = np.asarray(probability, dtype=np.float64)
    expected = f"The 'probability' parameter of {owner} must be a vector of numbers in [0, 1], not all 0."
    if probability.ndim != 1 or probability.size == 0:
        raise ValueError(f"{expected} Got an array of shape {probability.shape} instead.")
    outside = ~((probability >= 0.0) & (probability <= 1.0))  # NaN is outside too
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{expected} Got {probability[row]!s} in row {row} instead.")
    if not probability.any():
        raise ValueError(f"{expected} Got {probability.size:,} zeros instead.")
    return probability
