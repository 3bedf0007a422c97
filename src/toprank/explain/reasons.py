"""Reasons in words: for each row the conditions that put it where it is, most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from toprank.explain.conditions import Condition
from toprank.explain.contributions import distinct_paths, node_log_odds, ranked_conditions
from toprank.tree.columns import Column
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree

INSIDE = "(adds to the score inside the group)"


def reasons(tree: Tree, columns: Sequence[Column], X: np.ndarray, n_reasons: int = 3) -> list[list[str]]:
    """Return the most important reasons of each row, in words, with the row's values.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    X : float array of shape (n, n_features)
        As the tree reads it: category columns hold codes, NaN = missing.
    n_reasons : int, default=3

    Returns
    -------
    list of n lists of n_reasons str
        Conditions of the path, merged by feature, by how much they raised the log-odds: first those that
        speak for the case, then the others. Where they are too few and the tree has a scorecard, the features
        with the most points follow. What is still lacking is "".
    """
    out = [[""] * n_reasons for _ in range(len(X))]
    if n_reasons < 1 or len(X) == 0:
        return out
    for rows, conditions in rows_by_path(tree, columns, X):
        shown = conditions[:n_reasons]
        values = [condition.values(X[rows]).tolist() for condition, _ in shown]
        for i, row in enumerate(rows.tolist()):
            for place, (condition, _) in enumerate(shown):
                out[row][place] = condition.text(values[place][i])
        if len(shown) < n_reasons and tree.scoring.kind == "linear":
            used = {condition.feature for condition, _ in shown}
            points = feature_points(tree.scoring, X[rows])
            points[:, [feature for feature in used if feature >= 0]] = 0.0
            for i, row in enumerate(rows.tolist()):
                best = np.argsort(-points[i], kind="stable")[: n_reasons - len(shown)]
                for place, feature in enumerate(best[points[i, best] > 0].tolist(), len(shown)):
                    out[row][place] = f"{value_text(columns[feature], feature, X[row, feature])} {INSIDE}"
    return out


def rows_by_path(
    tree: Tree, columns: Sequence[Column], X: np.ndarray
) -> Iterator[tuple[np.ndarray, list[tuple[Condition, float]]]]:
    """Rows of X that share a path, and the path's merged conditions with contributions, largest first."""
    log_odds = node_log_odds(tree)
    paths, which = distinct_paths(tree.paths(X)[0])
    order = np.argsort(which, kind="stable")
    stops = np.cumsum(np.bincount(which, minlength=len(paths)))
    for path, rows in zip(paths, np.split(order, stops[:-1]), strict=True):
        yield rows, ranked_conditions(tree, columns, path, log_odds)


def value_text(column: Column, feature: int, value: float) -> str:
    """Words for a value alone: payroll_share = 0.05."""
    codes = None if column.categories is None else tuple(range(len(column.categories)))
    return Condition(feature, column, codes=codes).text(float(value))


def feature_points(scoring: Scoring, X: np.ndarray) -> np.ndarray:
    """Points that a scorecard gives to each value of X: float64 of X's shape; rows add up to their points.

    A number x is worth weight * (x - center) and its steps, a category its own points, a missing value `missing`.
    """
    out = np.empty(X.shape)
    for feature in range(X.shape[1]):
        values = X[:, feature].astype(np.float64)
        points = scoring.points[scoring.points_at[feature] : scoring.points_at[feature + 1]]
        if len(points):
            known = (values >= 0) & (values < len(points))
            out[:, feature] = scoring.missing[feature]
            out[known, feature] = points[values[known].astype(np.intp)]
        else:
            with np.errstate(over="ignore"):  # infinite points are points, too
                number = scoring.weight[feature] * (values - scoring.center[feature])
            for j in range(scoring.step_at[feature], scoring.step_at[feature + 1]):
                number = number + scoring.step_points[j] * (values > scoring.step_above[j])
            out[:, feature] = np.where(np.isnan(values), scoring.missing[feature], number)
    return out
