"""Reasons: per row the values that speak for it, in words, each with its strength, strongest first.

Contributions are in log-odds of a positive, per column: those of the conditions on the path plus the points of a
scorecard inside the leaf. A weighted sum is shared by the columns that push the row to its side. So conditions, sums,
scorecards and votes of many trees all give reasons of the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import NUMERIC
from toprank.explain.contributions import feature_contributions
from toprank.explain.values import Originals, originals_by_feature, value_of, value_text
from toprank.tree.columns import Category, Column
from toprank.tree.scoring import LeafScorecard
from toprank.tree.structure import Tree

MAX_REASONS = 100
"""Most reasons per case in a table of alerts; nobody reads more."""

LEAST_STRENGTH = 1.005
"""A factor below this is not a reason: it would print as 1."""

MOST_STRENGTH = 1000.0
"""Larger factors are capped: far outside the training data the exact factor of a scorecard means nothing."""

LEAST_KEPT = 0.1
"""Contributions are shrunk to match the hit rate of new cases, but to no less than this share."""

MOST_STRETCHED = 10.0
"""Contributions to a score are stretched to match the hit rate, but by no more than this factor."""


@dataclass(frozen=True)
class Reason:
    """One value that speaks for a case.

    Attributes
    ----------
    feature : str
        Name of the column.
    value : str, number, bool or None
        The value of the case, a category as the caller wrote it; None = missing.
    strength : float
        Factor by which the value multiplies the odds of a positive, above 1.
    text : str
        The value in words, next to what is usual.
    low, high : float
        Bounds that the conditions on the path set for a number: low < value <= high; infinite if there are none.
    """

    feature: str
    value: Category | None
    strength: float
    text: str
    low: float = -np.inf
    high: float = np.inf


def reasons(
    tree: Tree,
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int = 3,
    *,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
) -> list[list[Reason]]:
    """Return at most `n_reasons` values that speak most for each row, strongest first.

    X is as the tree reads it: category columns hold codes, NaN = missing. `originals` gives categories as the caller
    wrote them. `gain` is the log-odds of each row's hit rate among new cases, minus those of all cases: contributions
    of a row that add up to more are shrunk to it; None keeps those of training.
    """
    if n_reasons < 1 or len(X) == 0:
        return [[] for _ in range(len(X))]
    return strongest(row_contributions(tree, columns, X), columns, X, n_reasons, originals, gain, path_bounds(tree, X))


def row_contributions(tree: Tree, columns: Sequence[Column], X: np.ndarray) -> np.ndarray:
    """Return how much each value raised the log-odds of its row: float64 (n, n_features).

    Conditions count against the node that they divide, points of a scorecard against the usual points of the column.
    """
    typical = typical_row(columns)
    out = feature_contributions(tree, X, typical)[0]
    card = tree.scoring.card
    if card is not None:
        out += card.points(X) - usual_points(card, columns, typical)
    return out


def usual_points(card: LeafScorecard, columns: Sequence[Column], typical: np.ndarray) -> np.ndarray:
    """Points to compare a value of each column with, 0 where nothing is known: float64 (n_features,).

    For a number those of the usual value. For a category the mean over cases, all categories but the most frequent one
    counted alike: a category of half of the cases may still be a reason.
    """
    out = np.where([column.usual is not None for column in columns], card.points(typical[None])[0], 0.0)
    for feature in np.flatnonzero(np.diff(card.points_at)).tolist():
        usual, code = columns[feature].usual, typical[feature]
        if usual is not None and not np.isnan(code):
            points = card.category_points[card.points_at[feature] : card.points_at[feature + 1]]
            others = np.delete(points, int(code))
            out[feature] = usual.share * points[int(code)] + (1.0 - usual.share) * (
                others.mean() if len(others) else 0.0
            )
    return out


def typical_row(columns: Sequence[Column]) -> np.ndarray:
    """Return the usual value of each column, NaN if unknown or usually missing: float64 (n_features,)."""
    usual = [column.usual for column in columns]
    return np.array([np.nan if known is None or known.missing > 0.5 else known.value for known in usual])


def path_bounds(tree: Tree, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds on each number along each row's path: low < value <= high, both float64 (n, n_features)."""
    nodes, _ = tree.paths(X)
    low, high = np.full((len(X), tree.n_features), -np.inf), np.full((len(X), tree.n_features), np.inf)
    for step in range(nodes.shape[1] - 1):
        node, child = nodes[:, step], nodes[:, step + 1]
        asks = (child >= 0) & (tree.kind[node] == NUMERIC) & (tree.left[node] != tree.right[node])
        for is_left, bound, nearer in ((True, high, np.minimum), (False, low, np.maximum)):
            row = np.flatnonzero(asks & ((child == tree.left[node]) == is_left))
            feature = tree.feature[node[row]]
            bound[row, feature] = nearer(bound[row, feature], tree.threshold[node[row]])
    return low, high


def strongest(
    contributions: np.ndarray,
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
) -> list[list[Reason]]:
    """Return the reasons of rows from the contribution of each value; parameters as in `reasons`."""
    if gain is not None:
        contributions = contributions * kept_shares(contributions, gain)[:, None]
    order = np.argsort(-contributions, axis=1, kind="stable")[:, :n_reasons]
    best = np.minimum(np.take_along_axis(contributions, order, axis=1), np.log(MOST_STRENGTH))
    strength = np.exp(best)
    is_reason = strength >= LEAST_STRENGTH
    is_used = np.zeros(X.shape, bool)
    np.put_along_axis(is_used, order, is_reason, axis=1)
    named = originals_by_feature(columns, X, is_used, originals)
    out: list[list[Reason]] = []
    for row in range(len(X)):
        found = []
        for place in np.flatnonzero(is_reason[row]).tolist():
            f = int(order[row, place])
            column, value = columns[f], float(X[row, f])
            given = named[f][row] if f in named else None
            low, high = (float(end[row, f]) for end in bounds) if bounds is not None else (-np.inf, np.inf)
            text = value_text(column, value, given, low, high)
            found.append(
                Reason(column.name, value_of(column, value, given), float(strength[row, place]), text, low, high)
            )
        out.append(found)
    return out


def kept_shares(contributions: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Return the share of each row's contributions that its gain in log-odds supports: float64 (n,), from 0.1 to 1."""
    total = contributions.sum(axis=1)
    with np.errstate(invalid="ignore"):
        share = np.where(total > 0, gain / np.where(total > 0, total, 1.0), 1.0)
    return np.clip(np.nan_to_num(share, nan=1.0), LEAST_KEPT, 1.0)


# --- ensembles ----------------------------------------------------------------------------------------------


def mean_contributions(
    trees: Sequence[Tree], columns: Sequence[Column], X: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return how much each value raised the log-odds of its row, averaged over the trees: float64 (n, n_features).

    `weights` are those of the trees, non-negative; None = all equal.
    """
    total = np.zeros(X.shape)
    if weights is None:
        for tree in trees:
            total += row_contributions(tree, columns, X)
        return total / len(trees)
    for tree, weight in zip(trees, weights, strict=True):
        total += weight * row_contributions(tree, columns, X)
    return total / weights.sum() if weights.any() else total


def vote_reasons(
    trees: Sequence[Tree],
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    weights: np.ndarray | None = None,
    *,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
) -> list[list[Reason]]:
    """Return the values that speak most for each row, strongest first; `weights` as in `mean_contributions`.

    The other parameters are those of `toprank.explain.reasons`.
    """
    contributions = mean_contributions(trees, columns, X, weights)
    return strongest(contributions, columns, X, n_reasons, originals, gain)


def sum_reasons(
    contributions: np.ndarray,
    columns: Sequence[Column],
    X: np.ndarray,
    n_reasons: int,
    originals: Originals | None = None,
    gain: np.ndarray | None = None,
) -> list[list[Reason]]:
    """Return the values that speak most for each row, of a score that is not in log-odds, strongest first.

    A row's contributions are multiplied by one factor so that they add up to its gain in log-odds; without gains they
    stay as they are. The other parameters are those of `toprank.explain.reasons`.
    """
    if gain is not None:
        total = contributions.sum(axis=1)
        factor = np.where((total > 0) & (gain > total), gain / np.where(total > 0, total, 1.0), 1.0)
        contributions = contributions * np.minimum(factor, MOST_STRETCHED)[:, None]
    return strongest(contributions, columns, X, n_reasons, originals, gain)
