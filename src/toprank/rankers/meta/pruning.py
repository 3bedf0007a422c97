"""Pruning of meta-trees: pruners for both kinds of merges, and the penalties to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toprank.errors import InputError
from toprank.rankers.meta.ordering import LeafOrder
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import Objective
from toprank.tree.meta.prune import MergePath, collapse_penalties, merge_path, prune

PENALTIES_TRIED = 40
"""Most penalties that cross-validated pruning compares."""


@dataclass(frozen=True)
class SiblingPruner:
    """Weakest links of a grown meta-tree: a meta-node's two children become one leaf."""

    meta: MetaTree
    arrange: Callable[[MetaTree], LeafOrder]  # orders the leaves of what is left
    objective: Objective

    @cached_property
    def _penalty(self) -> np.ndarray:
        return collapse_penalties(self.meta, self.objective)

    @property
    def steps(self) -> np.ndarray:
        """Penalties at which the pruned tree changes."""
        return self._penalty[np.isfinite(self._penalty)]

    def at(self, penalty: float) -> tuple[MetaTree, LeafOrder]:
        """The pruned tree at a penalty per leaf, and the order of its leaves."""
        meta = prune(self.meta, self._penalty, penalty) if penalty > 0 else self.meta
        return meta, self.arrange(meta)


@dataclass(frozen=True)
class CellPruner:
    """Merges of any neighbours in the ranking: leaves share a place, conditions stay."""

    meta: MetaTree
    arrange: Callable[[MetaTree], LeafOrder]

    @cached_property
    def _order(self) -> np.ndarray:
        return self.arrange(self.meta).leaves

    @cached_property
    def _path(self) -> MergePath:
        positive, total = self.meta.positive[self._order], self.meta.total[self._order]
        return merge_path(positive, total - positive)

    @property
    def steps(self) -> np.ndarray:
        """Penalties at which the pruned tree changes."""
        return self._path.penalties

    def at(self, penalty: float) -> tuple[MetaTree, LeafOrder]:
        """Return the tree pruned at a penalty per leaf, and the places of its leaves."""
        if penalty <= 0:
            return self.meta, LeafOrder.apart(self._order)
        return self._without_idle_nodes(self._path.groups(penalty))

    def _without_idle_nodes(self, group: np.ndarray) -> tuple[MetaTree, LeafOrder]:
        """Return the meta-tree with nodes merged whose leaves all share a place, and the places of its leaves."""
        meta = self.meta
        place = np.full(len(meta.left), -1)
        place[self._order] = group
        for node in np.flatnonzero(~meta.is_leaf)[::-1]:  # children first
            left, right = place[meta.left[node]], place[meta.right[node]]
            place[node] = left if left == right else -1
        idle = np.flatnonzero(~meta.is_leaf & (place >= 0))
        meta, place = meta.collapsed(idle), place[meta.is_above(idle)]
        leaves = np.flatnonzero(meta.is_leaf)
        leaves = leaves[np.argsort(place[leaves], kind="stable")]
        return meta, LeafOrder(leaves, place[leaves])


Pruner = SiblingPruner | CellPruner


def penalties_to_try(steps: np.ndarray, limit: int = PENALTIES_TRIED) -> np.ndarray:
    """Return penalties between the steps of a pruning sequence: 0, geometric means of neighbours, and the last step.

    If any penalty above 0 merges something, half of the first such step is included. More than `limit` penalties are
    thinned evenly.
    """
    steps = np.unique(np.maximum(steps, 0.0))
    if len(steps) == 0:
        return np.zeros(1)
    between = np.sqrt(steps[:-1] * steps[1:])
    if steps[0] == 0 and len(steps) > 1:
        between[0] = steps[1] / 2
    tried = np.unique(np.concatenate(([0.0], between, steps[-1:])))
    if len(tried) > limit:
        tried = tried[np.linspace(0, len(tried) - 1, limit).astype(int)]
    return tried


def best_penalty(tried: np.ndarray, scores: np.ndarray) -> float:
    """Return the penalty with the best mean of scores (n_folds, n_tried); ties go to the largest."""
    mean = scores.mean(axis=0)
    return float(tried[np.flatnonzero(mean >= mean.max() - 1e-12)[-1]])


def checked_penalties(path: dict[str, np.ndarray], measure: str) -> dict[str, np.ndarray]:
    """Return penalties and their measure from a file; raise ValueError if they are invalid."""
    shapes = {array.shape for array in path.values()}
    is_whole = path.keys() == {"ccp_alpha", measure} and len(shapes) == 1 and len(shapes.pop()) == 1
    if not is_whole or any(array.dtype != np.float64 for array in path.values()):
        raise InputError("The model's penalties and their measures do not fit together.")
    return path
