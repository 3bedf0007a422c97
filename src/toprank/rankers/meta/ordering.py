"""From a grown meta-tree to a ranking tree: the order of its leaves, their rates, the flattened tree.

A meta-tree whose nodes are split by fitted classifiers becomes a `ClassifierTree`: it ranks, but cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import NODE
from toprank._core.threads import Threads
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.leaf_rates import falling_rates, finish_tree, meta_rates
from toprank.tree.flatten import flatten_meta_tree
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.shake import optimal_order
from toprank.tree.meta.stages import Stages
from toprank.tree.scoring import TIES, Scoring
from toprank.tree.structure import Tree

ORDER_STRENGTH = 300.0
"""Strength, in cases, of the hierarchical shrinkage of leaf_order="rate": a leaf leaves the order of the meta-tree
only with enough evidence. Of 10, 30, 100, 300, 1000 this was the best on simulated and real tables together; the
differences are small."""


@dataclass(frozen=True)
class LeafOrder:
    """Meta-leaves, best first, and the place of each in the ranking: 0, 1, ... without gaps; several may share one."""

    leaves: np.ndarray
    place: np.ndarray

    @classmethod
    def apart(cls, leaves: np.ndarray) -> LeafOrder:
        """Return an order with one place per leaf."""
        return cls(leaves, np.arange(len(leaves)))

    @property
    def n_places(self) -> int:
        """Number of places in the ranking."""
        return int(self.place[-1]) + 1


def order_leaves(settings: GrowthSettings, meta: MetaTree, unit: float) -> LeafOrder:
    """Return the meta-leaves in the order of `leaf_order`, one place each."""
    order = _order_nodes(settings, meta, unit)
    return LeafOrder.apart(order[meta.is_leaf[order]])


def _order_nodes(settings: GrowthSettings, meta: MetaTree, unit: float) -> np.ndarray:
    """Return all meta-nodes, best first: wherever the meta-tree ends, its leaves are in this order.

    The rate of a meta-node depends only on the node and its ancestors, so one order serves all depths.
    """
    order = np.array(meta.preorder())
    if settings.leaf_order == "meta":
        return order
    if settings.leaf_order == "training":
        return order[optimal_order(meta.positive[order], (meta.total - meta.positive)[order])]
    shrunk = meta_rates(meta, unit, "hierarchical", ORDER_STRENGTH)
    return order[np.argsort(-shrunk[order], kind="stable")]


def finish_meta(
    settings: GrowthSettings,
    meta: MetaTree,
    unit: float,
    is_categorical: np.ndarray,
    scoring: Scoring,
    order: LeafOrder | None = None,
) -> tuple[Tree, np.ndarray]:
    """Return the flattened meta-tree with leaf order, scores and rates, and the node at which each meta-node begins."""
    order = order or order_leaves(settings, meta, unit)
    tree, entry = flatten_meta_tree(meta, unit, is_categorical)
    return rank_leaves(settings, tree, meta, unit, entry, scoring, order), entry


def rank_leaves(
    settings: GrowthSettings,
    tree: Tree,
    meta: MetaTree,
    unit: float,
    entry: np.ndarray,
    scoring: Scoring,
    order: LeafOrder,
) -> Tree:
    """Return a flattened meta-tree with leaf order, scores and rates; `entry` is where each meta-node begins."""
    position = np.full(len(tree), -1)
    position[entry[order.leaves]] = order.place
    return finish_tree(tree, position, place_rates(settings, meta, unit, order), scoring)


def stages_of(settings: GrowthSettings, meta: MetaTree, unit: float, entry: np.ndarray) -> Stages:
    """Return the final tree at every lower meta-depth, in the order of `order_leaves`."""
    return Stages.from_nodes(entry, meta.depth, np.argsort(_order_nodes(settings, meta, unit)), settings.max_depth)


def place_rates(settings: GrowthSettings, meta: MetaTree, unit: float, order: LeafOrder) -> np.ndarray:
    """Return the smoothed rate of each place in the ranking; leaves that share one get the mean of their rates."""
    leaves, place = order.leaves, order.place
    rates, total = meta_rates(meta, unit, settings.smoothing, settings.smoothing_strength)[leaves], meta.total[leaves]
    if order.n_places == len(leaves):
        return rates
    return np.bincount(place, rates * total) / np.bincount(place, total)


class ClassifierTree:
    """Scores, leaves and weights of a meta-tree of classifiers, per meta-node, named as in `Tree`; no conditions."""

    scoring = TIES

    def __init__(self, meta: MetaTree, unit: float, settings: GrowthSettings, order: LeafOrder):
        leaves, place = order.leaves, order.place
        n = order.n_places
        self.meta, self.n_leaves, self.is_leaf = meta, n, meta.is_leaf
        self.depth = int(meta.depth.max())
        self.positive, self.negative = meta.positive * unit, (meta.total - meta.positive) * unit
        self.leaf = np.full(len(meta.left), -1, NODE)
        self.leaf[leaves] = place
        self.score = np.where(self.is_leaf, (n - self.leaf) / n, np.nan)
        rates = falling_rates(place_rates(settings, meta, unit, order), np.bincount(place, meta.total[leaves]))
        self.rate = np.where(self.is_leaf, rates[self.leaf], np.nan)

    def apply(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the meta-leaf of each row of X: int32 (n,)."""
        out = np.zeros(len(X), NODE)
        stack = [(0, np.arange(len(X)))]
        while stack:
            node, rows = stack.pop()
            out[rows] = node
            if not self.is_leaf[node] and len(rows):
                is_left = self.meta.inner[node].is_left(X[rows])
                stack += [(int(self.meta.left[node]), rows[is_left]), (int(self.meta.right[node]), rows[~is_left])]
        return out

    def decision_function(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the score of each row of X, float64 (n,): that of its cell."""
        return self.score[self.apply(X)]

    def scores_and_leaves(self, X: np.ndarray, threads: Threads | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return score, float64 (n,), and meta-leaf, int32 (n,), of each row of X."""
        leaf = self.apply(X)
        return self.score[leaf], leaf
