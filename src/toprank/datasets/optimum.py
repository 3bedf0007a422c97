"""The best that any ranking can do when the true P(y = 1 | row) is known.

For rows with known probabilities the labels are independent draws. Sorting by the probability is then optimal for the
ROC curve at every point (Neyman-Pearson) and for average precision: swapping two neighbours ranked i and i + 1 with
probabilities a > b changes the expected numerator by (a - b)(1 + S) / (i (i + 1)) > 0 in favour of a first, where S is
the sum of the probabilities ranked above them.

For a `Population` the curve is that of its distribution, without any rows: see the population for its computation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import check_count
from toprank.metrics.roc import RocCurve

from .populations import Population, SimulatedData


def expected_average_precision(probability: ArrayLike, score: ArrayLike) -> float:
    """Return the expected average precision of ``score`` over labels and orders of ties.

    With rows in score order, a positive at rank i has an expected 1 + sum(p[:i-1]) positives among the first i, so the
    expectation of the numerator of average precision, sum(p[i] * (1 + sum(p[:i-1])) / i), is
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
        raise InputError(
            "expected_average_precision needs one score without NaN for each probability. "
            f"Got scores of shape {score.shape}, {int(np.isnan(score).sum())} of them NaN, "
            f"and probabilities of shape {probability.shape}."
        )
    order = np.argsort(-score, kind="stable")
    ranked, score = probability[order], score[order]
    starts = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    sizes = np.diff(np.r_[starts, ranked.size])

    # Within a block of ties every order is equally likely: each rank has the block's mean probability, and any two
    # ranks the mean product of two different rows.
    sums = np.add.reduceat(ranked, starts)
    squares = np.add.reduceat(ranked**2, starts)
    above = np.cumsum(sums) - sums
    pair = (sums**2 - squares) / np.maximum(sizes * (sizes - 1), 1)
    ranks = np.arange(1, ranked.size + 1)
    ahead_in_block = ranks - 1 - np.repeat(starts, sizes)
    hits = np.repeat(sums / sizes * (1.0 + above), sizes) + ahead_in_block * np.repeat(pair, sizes)
    return float((hits / ranks).sum() / probability.sum())


def optimal_average_precision(probability: ArrayLike) -> float:
    """Return the average precision of the best ranking, the one by the true probability.

    No other ranking has a larger expected numerator.

    See `expected_average_precision` for the formula and its accuracy: on one draw of labels the best ranking
    reaches this value up to O(1 / sqrt(n * rate)), so a model may exceed it by luck in a small sample.

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


def optimal_roc(probability: Any) -> Any:
    """Return the best ROC curve any ranking can have.

    For rows with known probabilities, the population curve, like `optimal_average_precision`: both rates are ratios of
    expected counts. For a population, the curve of its distribution.

    Parameters
    ----------
    probability : array-like of shape (n,), AuditData, SimulatedData or Population
        The true P(y = 1 | row), or data with it; not all 0 and not all 1. Or a population, or data drawn from one.

    Returns
    -------
    fpr, tpr : ndarray of shape (n_distinct + 1,), float64
        For probabilities: false and true positive rate after each distinct one, best first, from (0, 0)
        to (1, 1).
    curve : RocCurve
        For a population: exact if the curve is piecewise linear, else within 1e-4.

    Examples
    --------
    >>> from toprank.datasets import make_gaussians, optimal_roc
    >>> fpr, tpr = optimal_roc([0.75, 0.25, 0.25, 0.75])
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.25, 1.0], [0.0, 0.75, 1.0])
    >>> curve = optimal_roc(make_gaussians(random_state=0))
    >>> round(curve.area, 3), curve([0.1, 0.5]).round(3).tolist()
    (0.871, [0.625, 0.945])
    """
    population = _population_of(probability)
    if population is not None:
        return population.optimal_roc()
    return _roc_of_rows(getattr(probability, "probability", probability), "optimal_roc")


def optimal_auc(probability: Any) -> float:
    """Return the area under the best ROC curve any ranking can have.

    Parameters
    ----------
    probability : array-like of shape (n,), SimulatedData or Population
        As in `optimal_roc`.

    Returns
    -------
    value : float
        In closed form for two gaussians with one covariance, exact for rows and for cells, else within 1e-4.

    Examples
    --------
    >>> from toprank.datasets import make_checkerboard, optimal_auc
    >>> optimal_auc([0.75, 0.25, 0.25, 0.75])
    0.75
    >>> round(optimal_auc(make_checkerboard(100, contrast=0.6, random_state=0)), 9)
    0.8
    """
    population = _population_of(probability)
    if population is not None:
        return population.optimal_auc()
    return RocCurve(*_roc_of_rows(getattr(probability, "probability", probability), "optimal_auc")).area


def approximate_roc(population: Population | SimulatedData, depth: int) -> list[RocCurve]:
    """Return the piecewise linear curves with which an ideal TreeRank approaches the optimal ROC curve, one per level.

    The recursion of section III-D of the TreeRank paper, shown in its figure 1. Between adjacent knots of level d, a
    new knot is placed where the optimal curve is parallel to the line between them: where eta equals

        Delta* = p (beta_{k+1} - beta_k) / ((1 - p) (alpha_{k+1} - alpha_k) + p (beta_{k+1} - beta_k)),

    the positive rate among the rows between them. No split of a cell of level d adds more to the AUC. For a smooth
    curve the missing area at level d decreases by a factor that tends to 4 per level (Proposition 15).

    Parameters
    ----------
    population : Population or SimulatedData
    depth : int
        The last level, at most 20.

    Returns
    -------
    curves : list of RocCurve, of length depth + 1
        ``curves[d]`` has 2^d + 1 knots, all on the optimal curve; ``curves[0]`` is the diagonal. A piece that
        is itself on the optimal curve is not split: there is nothing to gain.

    References
    ----------
    S. Clémençon, N. Vayatis, "Tree-based ranking methods", section III-D and Proposition 15.

    Examples
    --------
    >>> from toprank.datasets import approximate_roc, make_gaussians, optimal_auc
    >>> population = make_gaussians(random_state=0).population
    >>> [round(curve.area, 4) for curve in approximate_roc(population, 4)]
    [0.5, 0.7881, 0.8509, 0.866, 0.8698]
    >>> round(optimal_auc(population), 4)
    0.8711
    """
    law = _population_of(population)
    if law is None:
        raise InputTypeError(
            f"The 'population' parameter of approximate_roc must be a Population or SimulatedData. Got "
            f"{type(population).__name__} instead. Hint: make_gaussians(...).population is one."
        )
    check_count(depth, "depth", caller="approximate_roc", low=0, high=20)
    alpha = beta = np.array([0.0, 1.0])
    curves = [RocCurve(alpha, beta)]
    for _ in range(depth):
        hits, misses = law.positive_rate * np.diff(beta), (1.0 - law.positive_rate) * np.diff(alpha)
        new_alpha, new_beta = law.rates_above(hits / (hits + misses))
        alpha, beta = _interleave(alpha, new_alpha), _interleave(beta, new_beta)
        is_new = np.r_[True, (np.diff(alpha) > 0.0) | (np.diff(beta) > 0.0)]
        alpha, beta = alpha[is_new], beta[is_new]
        curves.append(RocCurve(alpha, beta))
    return curves


def _interleave(knots: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Put one value between adjacent knots; rounding errors must not carry it outside."""
    merged = np.empty(2 * knots.size - 1)
    merged[::2] = knots
    merged[1::2] = np.clip(between, knots[:-1], knots[1:])
    return merged


def _population_of(source: Any) -> Population | None:
    """Return the given population, or the one that the given data were drawn from; None for anything else."""
    if isinstance(source, SimulatedData):
        return source.population
    return source if isinstance(source, Population) else None


def _roc_of_rows(probability: ArrayLike, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Return false and true positive rates after each distinct probability, best first."""
    probability = _check_probability(probability, owner)
    if probability.min() == 1.0:
        raise InputError(f"{owner} needs probabilities that are not all 1: there is no negative case to rank.")
    ranked = np.sort(probability)[::-1]
    last_of_value = np.flatnonzero(np.r_[np.diff(ranked) != 0.0, True])
    hits = np.cumsum(ranked)[last_of_value]
    misses = np.cumsum(1.0 - ranked)[last_of_value]
    return np.r_[0.0, misses / misses[-1]], np.r_[0.0, hits / hits[-1]]


def _check_probability(probability: ArrayLike, owner: str) -> np.ndarray:
    """Return the probabilities as a float64 vector, or raise a ValueError on behalf of ``owner``."""
    probability = np.asarray(probability, dtype=np.float64)
    expected = f"The 'probability' parameter of {owner} must be a vector of numbers in [0, 1], not all 0."
    if probability.ndim != 1 or probability.size == 0:
        raise InputError(f"{expected} Got an array of shape {probability.shape} instead.")
    outside = ~((probability >= 0.0) & (probability <= 1.0))  # NaN is outside too
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"{expected} Got {probability[row]!s} in row {row} instead.")
    if not probability.any():
        raise InputError(f"{expected} Got {probability.size:,} zeros instead.")
    return probability
