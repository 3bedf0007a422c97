"""Leaf order, scores and smoothed rates: the last step of every tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank.tree.bin_mapper import row_blocks
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree, parents_of


def smoothed_rates(
    positive: np.ndarray, total: np.ndarray, parent: np.ndarray, smoothing: str | None, strength: float
) -> np.ndarray:
    """Return the positive rate of each node of a tree, shrunk towards its ancestors; `parent` is -1 at the root.

    "m-estimate": (positive + m * root rate) / (total + m), where m is `strength`, in cases. "hierarchical": each step
    from parent to child counts 1 / (1 + m / total of the parent) (Agarwal et al., 2022). Parents come before children.
    """
    raw = positive / total
    if smoothing is None:
        return raw
    if smoothing == "m-estimate":
        return (positive + strength * raw[0]) / (total + strength)
    rate, own, weight = raw.tolist(), raw.tolist(), total.tolist()  # plain floats: the same sums, ten times faster
    for node, above in enumerate(parent.tolist()):
        if above >= 0:
            rate[node] = rate[above] + (own[node] - own[above]) / (1.0 + strength / weight[above])
    return np.clip(rate, 0.0, 1.0)


def node_rates(tree: Tree, smoothing: str | None, strength: float) -> np.ndarray:
    """Return the smoothed rate of each node of a plain tree; it depends only on the node and its ancestors."""
    parent = parents_of(np.where(tree.is_leaf, -1, tree.left), tree.right)
    return smoothed_rates(tree.positive, tree.positive + tree.negative, parent, smoothing, strength)


def meta_rates(meta: MetaTree, unit: float, smoothing: str | None, strength: float) -> np.ndarray:
    """Return the smoothed rate of each meta-node."""
    parent = parents_of(meta.left, meta.right)
    return smoothed_rates(meta.positive * unit, meta.total * unit, parent, smoothing, strength)


def finish_tree(tree: Tree, position: np.ndarray, rate: np.ndarray, scoring: Scoring) -> Tree:
    """Return the tree with leaf positions, scores (L - i) / L and rates that do not rise along the positions.

    `position` is -1 at inner nodes, `rate` the smoothed rate of each position.
    """
    n_leaves = len(rate)
    is_leaf = position >= 0
    falling = falling_rates(rate, np.bincount(position[is_leaf], (tree.positive + tree.negative)[is_leaf], n_leaves))
    score = np.where(is_leaf, (n_leaves - position) / n_leaves, np.nan)
    return replace(tree, leaf=position, score=score, rate=np.where(is_leaf, falling[position], np.nan), scoring=scoring)


def recounted(tree: Tree, X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> Tree:
    """Return the tree with the weights of other rows in its nodes."""
    positive, total = np.zeros(len(tree)), np.zeros(len(tree))
    for rows in row_blocks(*X.shape):
        path, length = tree.paths(X[rows])
        node, of_row = path[path >= 0], np.repeat(weight[rows], length)
        total += np.bincount(node, of_row, len(tree))
        positive += np.bincount(node, of_row * np.repeat(is_positive[rows], length), len(tree))
    return replace(tree, positive=positive, negative=total - positive)


def falling_rates(rate: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the nearest rates that do not rise along the positions, weighted by `total`."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(rate, weights=np.maximum(total, 1e-12), increasing=False).x


def order_by_rate(tree: Tree, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the leaf positions by falling rate, where equal rates share one, and the rate of each position."""
    leaves = np.flatnonzero(tree.is_leaf)
    distinct, inverse = np.unique(-rate[leaves], return_inverse=True)
    position = np.full(len(tree), -1, np.int32)
    position[leaves] = inverse
    return position, -distinct
