"""How much each step of a path, and so each feature, raised the chance of a positive; gain importance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from toprank._core.dtypes import LEAF, OBLIQUE
from toprank.explain.conditions import Condition, path_conditions
from toprank.tree.columns import Column
from toprank.tree.structure import Tree


def node_log_odds(tree: Tree) -> np.ndarray:
    """Return the log-odds of a positive in each node: float64 (n_nodes,), always finite.

    The rate is an m-estimate: the node's cases plus one with the rate of the root.
    """
    total = tree.positive + tree.negative
    base = tree.positive[0] / total[0] if tree.positive[0] > 0 and tree.negative[0] > 0 else np.nan
    if np.isnan(base):  # one class only
        base = (tree.positive[0] + 0.5) / (total[0] + 1.0)
    return np.log(tree.positive + base) - np.log(tree.negative + (1.0 - base))


def feature_contributions(tree: Tree, X: np.ndarray, typical: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return how much each feature raised the log-odds of each row, float64 (n, n_features), and those of the root.

    A step's change belongs to the feature of its condition; for a weighted sum it is shared by the features that push
    the row to its side, in proportion. The base plus the sum of a row's contributions is the log-odds of its leaf,
    except for nodes whose sides lead to the same child, where no feature matters. `typical` are usual values, NaN if
    unknown, for weighted sums without the means of their columns.
    """
    nodes, _ = tree.paths(X)
    log_odds = node_log_odds(tree)
    out = np.zeros((len(X), tree.n_features))
    for step in range(nodes.shape[1] - 1):
        row = np.flatnonzero(nodes[:, step + 1] >= 0)
        start = nodes[row, step]
        change = log_odds[nodes[row, step + 1]] - log_odds[start]
        change[tree.left[start] == tree.right[start]] = 0.0  # no condition there
        is_sum = tree.kind[start] == OBLIQUE
        out[row[~is_sum], tree.feature[start[~is_sum]]] += change[~is_sum]
        for node in np.unique(start[is_sum]).tolist():
            here = start == node
            goes_left = nodes[row[here], step + 1] == tree.left[node]
            out[row[here]] += change[here, None] * push_shares(tree, node, X[row[here]], goes_left, typical)
    return out, float(log_odds[0])


def push_shares(
    tree: Tree, node: int, X: np.ndarray, goes_left: np.ndarray, typical: np.ndarray | None = None
) -> np.ndarray:
    """Return the share of each feature in pushing rows to their side of a weighted sum: float64 (n, n_features).

    A number pushes by its weight times its distance from the mean of its column (what a missing one counts as), a
    category by its weight. Features that push the other way get no share. If no feature pushes to the row's side,
    shares are those of the weights. If a missing number makes the sum missing, the mean is unknown: the distance is
    then from the typical value, and if that is unknown too, shares are those of the weights. For rows whose sum is
    missing, the missing values get the shares.

    X has rows that reach the node; `typical` is as in `feature_contributions`.
    """
    own = slice(tree.oblique_at[node], tree.oblique_at[node + 1])
    feature, code, weight = tree.oblique_feature[own], tree.oblique_code[own], tree.oblique_weight[own]
    fill, value = tree.oblique_fill[own], X[:, feature].astype(np.float64)
    is_gap = np.isnan(value) & np.isnan(fill) & (code < 0)
    if typical is not None:
        fill = np.where(np.isnan(fill), typical[feature], fill)
    push = np.zeros((len(X), tree.n_features))
    if is_gap.any():  # a missing value without a fill decides the side, whatever the others are
        lacks = is_gap.any(axis=1)
        for term, own_feature in enumerate(feature.tolist()):
            push[:, own_feature] += is_gap[:, term]
        push[lacks] /= push[lacks].sum(axis=1, keepdims=True)
        if not lacks.all():
            push[~lacks] = push_shares(tree, node, X[~lacks], goes_left[~lacks], typical)
        return push
    if np.isnan(fill[code < 0]).any():
        return push + weight_shares(tree, node)
    # Half of each distance and small weights, which change no share: sums of large numbers stay finite.
    weight = weight / (float(np.abs(weight).max()) * len(weight) or 1.0)
    distance = np.where(code >= 0, 0.5 * (value == code), np.where(np.isnan(value), 0.0, 0.5 * value - 0.5 * fill))
    towards = np.where(goes_left, -1.0, 1.0)[:, None] * weight * distance
    for term, own_feature in enumerate(feature.tolist()):
        push[:, own_feature] += towards[:, term]
    push = np.maximum(push, 0.0)
    total = push.sum(axis=1, keepdims=True)
    return np.where(total > 0, push / np.where(total > 0, total, 1.0), weight_shares(tree, node))


def weight_shares(tree: Tree, node: int) -> np.ndarray:
    """Return the share of each feature in a node's weighted sum, by the size of its weights: float64 (n_features,).

    Weights of numbers are multiplied by the standard deviation of their column, if the tree knows it, so that units do
    not matter. A category column counts half of the range of its weights: for two equally frequent categories that is a
    standard deviation too.
    """
    own = slice(tree.oblique_at[node], tree.oblique_at[node + 1])
    feature, weight, is_named = tree.oblique_feature[own], tree.oblique_weight[own], tree.oblique_code[own] >= 0
    size: np.ndarray = np.bincount(feature[~is_named], np.abs(weight[~is_named]), tree.n_features)
    if len(tree.scoring.margin_units):
        size = size * tree.scoring.margin_units
    low, high = np.zeros(tree.n_features), np.zeros(tree.n_features)
    np.minimum.at(low, feature[is_named], weight[is_named])
    np.maximum.at(high, feature[is_named], weight[is_named])
    size = size + (high - low) / 2
    return size / size.sum() if size.sum() > 0 else np.full(tree.n_features, 1.0 / tree.n_features)


def gain_importance(tree: Tree) -> np.ndarray:
    """Return the share of each feature in the gain of the conditions: float64 (n_features,).

    Sums to 1, or is 0 throughout if no condition has a gain. Losses count as 0; features of a
    weighted sum share its gain by the size of their weights.
    """
    out = _by_feature(tree, np.where(tree.gain > 0, tree.gain, 0.0))
    return out / out.sum() if out.sum() > 0 else out


def auc_importance(tree: Tree) -> np.ndarray:
    """Return the sum of squared gains per feature, float64 (n_features,); features of a weighted sum share its gain."""
    return _by_feature(tree, tree.gain**2)


def _by_feature(tree: Tree, gain: np.ndarray) -> np.ndarray:
    """Return the sum of the gains of conditions per feature; features of a weighted sum share its gain."""
    single = (tree.kind != LEAF) & (tree.kind != OBLIQUE)
    out = np.bincount(tree.feature[single], gain[single], tree.n_features).astype(np.float64)
    for node in np.flatnonzero(tree.kind == OBLIQUE):
        out += gain[node] * weight_shares(tree, int(node))
    return out


def ranked_conditions(
    tree: Tree, columns: Sequence[Column], nodes: Sequence[int] | np.ndarray, log_odds: np.ndarray
) -> list[tuple[Condition, float]]:
    """Return a path's merged conditions with their contributions, largest first; open ones are left out.

    `log_odds` is `node_log_odds(tree)`, passed in so that many paths share it.
    """
    path = np.asarray(nodes)
    change = np.diff(log_odds[path[path >= 0]])
    weighed = [
        (condition, float(change[list(condition.steps)].sum()))
        for condition in path_conditions(tree, columns, path)
        if not condition.is_open
    ]
    return sorted(weighed, key=lambda pair: -pair[1])


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


def distinct_paths(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a padded path matrix, and the index of each row among them: int64 (n,).

    Paths are numbers in base (nodes + 1), replaced by their rank whenever the next digit would overflow.
    """
    base = int(nodes.max(initial=0)) + 2
    key, size = np.zeros(len(nodes), np.int64), 1
    for column in nodes.T:
        if size * base >= 2**63:
            ranks, key = np.unique(key, return_inverse=True)
            size = len(ranks)
        key, size = key * base + (column + 1), size * base
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return nodes[first], which
