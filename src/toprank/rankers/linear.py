"""The sparse linear score inside leaves: L1 logistic regression on standardised columns, through liblinear."""

from __future__ import annotations

import warnings
from threading import Lock

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from toprank.rankers.training import TrainingData
from toprank.tree.bin_mapper import center_and_spread, distinct_values
from toprank.tree.scoring import Scoring
from toprank.tree.weights import integer_weights

_WARNINGS = Lock()

LINEAR_ROWS = 50_000
"""Rows that the linear score is fitted on at most: all positives that fit in half of it, negatives at random. Their
weight adds up to no more than this either, so that the penalty keeps its meaning on larger tables."""


def fit_linear_direction(data: TrainingData, weight: np.ndarray, C: float, allowed: np.ndarray) -> np.ndarray:
    """Slope of each numeric column in an L1-penalised logistic regression, 0 elsewhere; missing values count as means.

    Both classes weigh the same. They are balanced after equal rows are merged: weight 2 is the row twice.

    Parameters
    ----------
    data : TrainingData
    weight : float array of shape (n,); rows of weight 0 are left out
    C : float
        Inverse penalty.
    allowed : uint8 array of shape (n_features,): columns that may have a slope
    """
    rows, row_weight = _choose_rows(data.is_positive, weight)
    numeric = np.flatnonzero((data.is_categorical == 0) & (allowed > 0))
    slope = np.zeros(data.X.shape[1])
    if len(numeric) == 0:
        return slope
    X, is_positive, row_weight = _merge_equal_rows(data.X[rows][:, numeric], data.is_positive[rows], row_weight)
    half = row_weight.sum() / 2
    for of_class in (is_positive, ~is_positive):
        row_weight[of_class] *= half / row_weight[of_class].sum()
    center, spread = _center_and_spread(X, row_weight)
    slope[numeric] = _fit_logistic(sp.csr_array(_standardised(X, center, spread)), is_positive, row_weight, C) / spread
    return slope


def fit_linear_scoring(data: TrainingData, weight: np.ndarray | None, C: float) -> Scoring:
    """Scorecard of an L1-penalised logistic regression with penalty 1 / C; rows of weight 0 are left out."""
    rows, row_weight = _choose_rows(data.is_positive, weight)
    X, is_positive, row_weight = _merge_equal_rows(data.X[rows], data.is_positive[rows], row_weight)
    numeric = np.flatnonzero(data.is_categorical == 0)
    categorical = np.flatnonzero(data.is_categorical)
    center, spread = _center_and_spread(X, row_weight)
    known = ~np.isnan(X)
    standard = _standardised(X, center, spread)[:, numeric]
    gaps = np.flatnonzero(known.any(axis=0) & ~known.all(axis=0))
    blocks = [sp.csr_array(standard), sp.csr_array((~known[:, gaps]).astype(float))]
    blocks += [_one_hot(X[:, f], int(data.n_categories[f])) for f in categorical]
    coefficients = _fit_logistic(sp.hstack(blocks, format="csr"), is_positive, row_weight, C)

    n_features = X.shape[1]
    slope, missing = np.zeros(n_features), np.zeros(n_features)
    slope[numeric] = coefficients[: len(numeric)] / spread[numeric]
    missing[gaps] = coefficients[len(numeric) : len(numeric) + len(gaps)]
    return Scoring(
        "linear",
        center=np.where(slope != 0, center, 0.0),
        weight=slope,
        missing=missing,
        points_at=np.append(0, np.cumsum(data.n_categories)),
        points=coefficients[len(numeric) + len(gaps) :],
    )


def _choose_rows(is_positive: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit on, and their weights, which add up to at most LINEAR_ROWS."""
    weights = integer_weights(is_positive, weight)
    present = np.flatnonzero(weights.total)
    row_weight = weights.total.astype(np.float64)
    if len(present) > LINEAR_ROWS:
        rng = np.random.default_rng(0)
        chosen, factor = [], np.zeros(len(is_positive))
        positive, negative = present[is_positive[present]], present[~is_positive[present]]
        n_positive = min(len(positive), max(LINEAR_ROWS // 2, LINEAR_ROWS - len(negative)))
        for rows, size in ((positive, n_positive), (negative, LINEAR_ROWS - n_positive)):
            picked = rng.choice(rows, min(size, len(rows)), replace=False)
            factor[picked] = len(rows) / len(picked)
            chosen.append(picked)
        present = np.sort(np.concatenate(chosen))
        row_weight = row_weight * factor
    chosen_weight = row_weight[present]
    return present, chosen_weight * min(weights.unit, LINEAR_ROWS / chosen_weight.sum())


def _merge_equal_rows(
    X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct rows in an order of their own, labels and summed weights: the fit depends on what the rows are alone."""
    key = np.column_stack((is_positive, X)).astype(np.float64, order="C")
    key[np.isnan(key)] = np.nan  # one pattern of bits for missing,
    key += 0.0  # and one for zero
    # Big-endian bytes sort category codes as numbers, so codes that no row uses do not change the order either.
    sortable = key.astype(">f8").view(f"V{key.strides[0]}").ravel()
    _, first, which = np.unique(sortable, return_index=True, return_inverse=True)
    return key[first, 1:], is_positive[first], np.bincount(which, weight)


def _center_and_spread(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each column, missing values aside.

    A constant column has an infinite spread, so that its standardised values, and its weight, are 0.
    """
    center, spread = np.array([center_and_spread(*distinct_values(column, weight)) for column in X.T]).T
    return center, np.where(spread > 1e-12 * (1.0 + np.abs(center)), spread, np.inf)


def _standardised(X: np.ndarray, center: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1; missing values are 0."""
    return np.where(np.isnan(X), 0.0, (0.5 * X - 0.5 * center) / (0.5 * spread))  # halves do not overflow


def _one_hot(codes: np.ndarray, n_categories: int) -> sp.csr_array:
    """Indicators of the categories; none where all rows hold the same one, which would be a second intercept."""
    known = np.flatnonzero((codes >= 0) & (codes < n_categories))
    if len(known) == len(codes) and np.all(codes == codes[0]):
        known = known[:0]
    entries = (np.ones(len(known)), (known, codes[known].astype(np.int64)))
    return sp.csr_array(entries, shape=(len(codes), n_categories))


def _narrow(X: sp.csr_array) -> sp.csr_array:
    """The same matrix with 32-bit indices, which liblinear asks for."""
    return sp.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def _fit_logistic(X: sp.csr_array, y: np.ndarray, weight: np.ndarray, C: float) -> np.ndarray:
    """Coefficients, without the intercept: a constant does not change an order. Columns of zeros get 0."""
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    coefficients = np.zeros(X.shape[1])
    if len(used) == 0:
        return coefficients
    model = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", max_iter=300, random_state=0)
    with _WARNINGS, warnings.catch_warnings():  # filters belong to the whole process
        warnings.simplefilter("ignore", ConvergenceWarning)  # a ranking needs no last digits
        model.fit(_narrow(X[:, used]), y, sample_weight=weight)
    coefficients[used] = model.coef_[0]
    return coefficients
