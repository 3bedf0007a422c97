"""The scorings inside leaves that `leaf_score` names, fitted on training rows; for trees and forests.

The linear one, and oblique splits, are L1 logistic regressions on standardised columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank.data.binned_cases import BinnedCases
from toprank.data.cases import sample_cases
from toprank.tree.bin_mapper import center_and_spread, distinct_values, short_between
from toprank.tree.categories import CategorySearch, levels_worth_points
from toprank.tree.rows import find_equal_rows
from toprank.tree.scoring import TIES, LeafScorecard, Margin, Scoring
from toprank.tree.tao.logistic import fit_l1_logistic
from toprank.tree.weights import integer_weights

LINEAR_ROWS = 50_000
"""Most rows to fit the linear score on: all positives that fit in half of it, and random negatives. Their weights do
not exceed this in total either, so that the penalty means the same on larger tables."""

ADDITIVE_ROWS = 20_000
"""The same for additive scores, whose steps make the table of a fit a dozen times wider."""

LINEAR_CELLS = 2**26
"""Most cells in the table of a fit, which has one column per category: 512 MiB. Wide tables use fewer rows."""

STEPS_TRIED = 11
"""Quantiles of a number at which its points may change, in an additive score."""

TOLERANCE = 1e-5
"""Relative accuracy of a fit; a ranking does not need the last digits."""

Fit = Callable[[BinnedCases, np.ndarray | None, float, CategorySearch], Scoring]
"""Fits a scoring on the rows that have weight, with an inverse penalty and a way to treat categories."""

LEAF_SCORES: dict[str, Fit] = {
    "constant": lambda data, weight, C, categories: TIES,
    "margin": lambda data, weight, C, categories: Margin(data.column_scales()),
    "linear": lambda data, weight, C, categories: fit_linear_scoring(data, weight, C, 0, categories),
    "additive": lambda data, weight, C, categories: fit_linear_scoring(data, weight, C, STEPS_TRIED, categories),
}
"""Names of `leaf_score` for meta-trees."""


def fit_leaf_score(
    name: str, data: BinnedCases, weight: np.ndarray | None, C: float, categories: CategorySearch
) -> Scoring:
    """Return the scoring inside leaves; fitted once for all fits on the same data with their own weights."""
    if weight is not data.weight:
        return LEAF_SCORES[name](data, weight, C, categories)
    return data.once(("leaf score", name, C, categories), lambda: LEAF_SCORES[name](data, weight, C, categories))


def fit_linear_direction(data: BinnedCases, weight: np.ndarray, C: float, allowed: np.ndarray) -> np.ndarray:
    """Return the slope of each numeric column in an L1 logistic regression, 0 elsewhere; missing values count as means.

    Both classes have equal weight, balanced after equal rows are merged, so that weight 2 is the row twice. Rows of
    weight 0 are left out; `allowed`, uint8 (n_features,), marks the columns that may have a slope.
    """
    numeric = np.flatnonzero((data.is_categorical == 0) & (allowed > 0))
    rows, row_weight = _choose_rows(data.is_positive, weight, len(numeric))
    slope = np.zeros(data.X.shape[1])
    if len(numeric) == 0:
        return slope
    X, is_positive, row_weight = _merge_equal_rows(data.X[rows][:, numeric], data.is_positive[rows], row_weight)
    half = row_weight.sum() / 2
    for of_class in (is_positive, ~is_positive):
        row_weight[of_class] *= half / row_weight[of_class].sum()
    center, spread = _center_and_spread(X, row_weight)
    found = fit_l1_logistic(_standardised(X, center, spread), is_positive, row_weight, 1.0 / C, tolerance=TOLERANCE)
    slope[numeric] = found.weight / spread
    return slope


def fit_linear_scoring(
    data: BinnedCases,
    weight: np.ndarray | None,
    C: float,
    n_steps: int = 0,
    categories: CategorySearch | None = None,
) -> LeafScorecard:
    """Return the scorecard of an L1 logistic regression with penalty 1 / C; rows of weight 0 are left out.

    With `n_steps`, a number also gets points for each of that many quantiles it is above: an additive model in which
    the penalty keeps the steps that matter. Rare categories, and all categories of a column no better than noise, have
    0 points (`levels_worth_points`).
    """
    n_features, points_at = data.X.shape[1], np.append(0, np.cumsum(data.n_categories))
    n_columns, most = (2 + n_steps) * n_features + int(points_at[-1]), ADDITIVE_ROWS if n_steps else LINEAR_ROWS
    rows, row_weight = _choose_rows(data.is_positive, weight, n_columns, most)
    X, is_positive, row_weight = _merge_equal_rows(data.X[rows], data.is_positive[rows], row_weight)
    numeric = np.flatnonzero(data.is_categorical == 0)
    center, spread = _center_and_spread(X, row_weight)
    known = ~np.isnan(X)
    gaps = np.flatnonzero(known.any(axis=0) & ~known.all(axis=0))
    n_plain, n_points = len(numeric) + len(gaps), int(points_at[-1])
    edges = [_step_edges(X[:, f], row_weight, n_steps) for f in numeric]
    of_edge = np.repeat(numeric, [len(each) for each in edges])
    above = np.concatenate([*edges, np.zeros(0)])
    table = np.zeros((len(X), n_plain + n_points + len(above)), order="F")
    table[:, : len(numeric)] = _standardised(X, center, spread)[:, numeric]
    table[:, len(numeric) : n_plain] = ~known[:, gaps]
    for f in np.flatnonzero(data.is_categorical):
        part = table[:, n_plain + points_at[f] : n_plain + points_at[f + 1]]
        _mark_categories(X[:, f], part, _levels_with_points(data, weight, rows, int(f), categories or CategorySearch()))
    for j, (f, edge) in enumerate(zip(of_edge, above, strict=True), n_plain + n_points):
        table[:, j] = X[:, f] > edge  # a missing value is above nothing
    # Without the intercept, which does not change an order. Constant columns get 0.
    coefficients = fit_l1_logistic(table, is_positive, row_weight, 1.0 / C, tolerance=TOLERANCE).weight

    slope, missing = np.zeros(n_features), np.zeros(n_features)
    slope[numeric] = coefficients[: len(numeric)] / spread[numeric]
    missing[gaps] = coefficients[len(numeric) : n_plain]
    steps = coefficients[n_plain + n_points :]
    is_kept = steps != 0
    return LeafScorecard(
        center=np.where(slope != 0, center, 0.0),
        weight=slope,
        missing=missing,
        points_at=points_at,
        category_points=coefficients[n_plain : n_plain + n_points],
        step_at=np.append(0, np.cumsum(np.bincount(of_edge[is_kept], minlength=n_features))),
        step_above=above[is_kept],
        step_points=steps[is_kept],
    )


def _step_edges(values: np.ndarray, weight: np.ndarray, n_steps: int) -> np.ndarray:
    """Return at most n_steps quantiles of the known values at which points may change; none if the slope is enough."""
    distinct, weights = distinct_values(values, weight)
    if n_steps == 0 or len(distinct) < 3:
        return np.zeros(0)
    below = np.cumsum(weights)[:-1] / weights.sum()
    last = np.searchsorted(below, np.arange(1, n_steps + 1) / (n_steps + 1))
    last = np.unique(np.minimum(last, len(distinct) - 2))
    return short_between(distinct[last], distinct[last + 1])


def _choose_rows(
    is_positive: np.ndarray, weight: np.ndarray | None, n_columns: int, most: int = LINEAR_ROWS
) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `most` rows to fit on, and their weights, which sum to at most `most`."""
    weights = integer_weights(is_positive, weight)
    rows, row_weight = sample_cases(is_positive, weights.total, min(most, LINEAR_CELLS // max(n_columns, 1)))
    chosen = row_weight[rows]
    return rows, chosen * min(weights.unit, most / chosen.sum())


def _merge_equal_rows(
    X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct rows in a fixed order, labels and summed weights, so that row order does not affect the fit."""
    key = np.column_stack((is_positive, X)).astype(np.float64, order="C")
    first, which = find_equal_rows(key)
    return key[first, 1:], is_positive[first], np.bincount(which, weight)


def _center_and_spread(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and standard deviation of each column, ignoring missing values.

    A constant column has an infinite spread, so that its standardised values, and its weight, are 0.
    """
    center, spread = np.array([center_and_spread(*distinct_values(column, weight)) for column in X.T]).T
    return center, np.where(spread > 1e-12 * (1.0 + np.abs(center)), spread, np.inf)


def _standardised(X: np.ndarray, center: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return columns with mean 0 and standard deviation 1; missing values are 0."""
    return np.where(np.isnan(X), 0.0, (0.5 * X - 0.5 * center) / (0.5 * spread))  # halved, so that nothing overflows


def _levels_with_points(
    data: BinnedCases, weight: np.ndarray | None, rows: np.ndarray, feature: int, search: CategorySearch
) -> np.ndarray:
    """Return the categories of a column that may get points, bool (n_levels,), judged by the cases of a fit.

    Cases count once each, since the weights of a fit also stand for other rows and are capped.
    """
    n_levels, codes = int(data.n_categories[feature]), data.X[rows, feature]
    known = np.flatnonzero((codes >= 0) & (codes < n_levels))
    level, cases = codes[known].astype(np.int64), np.ones(len(rows)) if weight is None else weight[rows]
    total = np.bincount(level, cases[known], n_levels)
    positive = np.bincount(level, (cases * data.is_positive[rows])[known], n_levels)
    return levels_worth_points(positive, total, search)


def _mark_categories(codes: np.ndarray, table: np.ndarray, has_points: np.ndarray) -> None:
    """Write 1 to the column of each row's category, if that may get points."""
    known = np.flatnonzero((codes >= 0) & (codes < table.shape[1]))
    level = codes[known].astype(np.int64)
    used = has_points[level]
    table[known[used], level[used]] = 1.0
