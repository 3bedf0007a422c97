"""The meta-tree engine: grow an inner tree, order its cells, cut them in two, repeat.

One engine serves both papers; they differ in the objective. The result keeps the meta structure for pruning;
`toprank.tree.flatten` turns it into one `Tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._core.dtypes import NODE, WEIGHT
from toprank.tree.grower import GrownTrees, Limits, grow
from toprank.tree.meta.objectives import Objective
from toprank.tree.splitters import Batch, Splits, Splitter, parts_of


@dataclass(frozen=True)
class InnerTree:
    """One greedy tree between a meta-node and its two children; is_left is the side of each cell."""

    nodes: GrownTrees
    index: np.ndarray
    is_left: np.ndarray


@dataclass(frozen=True)
class ObliqueCut:
    """A weighted sum of columns between a meta-node and its two children: `sum <= threshold` is the low side.

    Attributes
    ----------
    feature, weight, fill : int32 and float64 arrays of shape (n_terms,)
        fill: replacement of a missing value; NaN if rows with a missing value go to one side.
    threshold : float
    missing_low : bool
        Rows with a missing value go to the low side.
    low_is_left : bool
        The low side is the left, better, meta-child.
    gain : float
        Gain of the cut, in the units of the split criterion.
    """

    feature: np.ndarray
    weight: np.ndarray
    fill: np.ndarray
    threshold: float
    missing_low: bool
    low_is_left: bool
    gain: float


@dataclass(frozen=True)
class MetaTree:
    """Meta-nodes in breadth-first order; left = right = -1 at meta-leaves.

    `inner[i]` splits meta-node i: an inner tree, a weighted sum, or another rule that only its grower can apply; None
    at a leaf. Weights are in integer units.
    """

    left: np.ndarray
    right: np.ndarray
    depth: np.ndarray
    positive: np.ndarray
    total: np.ndarray
    inner: list[Any]

    @property
    def is_leaf(self) -> np.ndarray:
        """Meta-nodes without children."""
        return self.left < 0

    def preorder(self) -> list[int]:
        """Meta-nodes, each before its children, left before right."""
        order, stack = [], [0]
        while stack:
            node = stack.pop()
            order.append(node)
            if self.left[node] >= 0:
                stack += [int(self.right[node]), int(self.left[node])]
        return order

    def leaves(self) -> list[int]:
        """Meta-leaves from left to right: the ranking, best first."""
        return [node for node in self.preorder() if self.left[node] < 0]

    def is_above(self, nodes: np.ndarray) -> np.ndarray:
        """Meta-nodes that remain if the given ones become leaves: bool (n_meta_nodes,)."""
        keep, child = np.ones(len(self.left), bool), ~self.is_leaf
        child[nodes] = False
        for node in range(len(self.left)):
            if not self.is_leaf[node] and (not keep[node] or not child[node]):
                keep[self.left[node]] = keep[self.right[node]] = False
        return keep

    def collapsed(self, nodes: np.ndarray) -> MetaTree:
        """The meta-tree with the given meta-nodes turned into leaves."""
        keep, has_children = self.is_above(nodes), ~self.is_leaf
        has_children[nodes] = False
        new_index = np.cumsum(keep) - 1
        left, right = (np.where(has_children, new_index[child], -1)[keep] for child in (self.left, self.right))
        inner = [tree if has else None for tree, has, k in zip(self.inner, has_children, keep, strict=True) if k]
        rest = self.depth[keep], self.positive[keep], self.total[keep], inner
        return MetaTree(left.astype(NODE), right.astype(NODE), *rest)

    def with_areas_as_gains(self) -> MetaTree:
        """The same meta-tree; the gain of a condition is the area it adds under the ROC curve of the whole tree."""
        all_negative = self.total[0] - self.positive[0]
        unit = 0.5 / (self.positive[0] * float(all_negative))
        found: dict[int, GrownTrees] = {}

        def measured(tree: InnerTree | None) -> InnerTree | None:
            if tree is None:
                return None
            if id(tree.nodes) not in found:
                found[id(tree.nodes)] = replace(tree.nodes, gain=tree.nodes.areas * unit)
            return replace(tree, nodes=found[id(tree.nodes)])

        return replace(self, inner=[measured(tree) for tree in self.inner])

    def with_weights(self, positive: np.ndarray, total: np.ndarray) -> MetaTree:
        """The same meta-tree with other leaf weights; a parent gets the sum of its children."""
        positive, total = positive.astype(WEIGHT), total.astype(WEIGHT)
        for node in np.flatnonzero(~self.is_leaf)[::-1]:  # children first
            for weight in (positive, total):
                weight[node] = weight[self.left[node]] + weight[self.right[node]]
        return replace(self, positive=positive, total=total)


class MetaTable:
    """Meta-nodes of one or several meta-trees so far, the roots first; children come in pairs."""

    def __init__(self, roots: Batch):
        self.tree = list(range(len(roots)))
        self.left, self.right, self.depth = ([value] * len(roots) for value in (-1, -1, 0))
        self.positive, self.total = roots.positive.tolist(), roots.total.tolist()
        self.inner: list[Any] = [None] * len(roots)

    def add(self, parents: np.ndarray, trees: list[Any], children: Batch) -> np.ndarray:
        """Give meta-nodes their inner trees and children; return the children's indices, left and right alternating."""
        first = len(self.left)
        for i, (node, tree) in enumerate(zip(parents.tolist(), trees, strict=True)):
            self.inner[node] = tree
            self.left[node], self.right[node] = first + 2 * i, first + 2 * i + 1
            self.depth += [self.depth[node] + 1] * 2
            self.tree += [self.tree[node]] * 2
        self.left += [-1] * len(children)
        self.right += [-1] * len(children)
        self.inner += [None] * len(children)
        self.positive += children.positive.tolist()
        self.total += children.total.tolist()
        return np.arange(first, first + len(children), dtype=NODE)

    def freeze(self) -> list[MetaTree]:
        """The meta-tree of each root, its nodes in the order in which they would have grown on their own."""
        left, right, depth = (np.array(values, NODE) for values in (self.left, self.right, self.depth))
        positive, total = np.array(self.positive, WEIGHT), np.array(self.total, WEIGHT)
        grown = []
        for root in range(max(self.tree) + 1):
            own = np.flatnonzero(np.array(self.tree) == root)
            new_index = np.full(len(left) + 1, -1, NODE)  # the last entry is for child index -1
            new_index[own] = np.arange(len(own))
            inner = [self.inner[i] for i in own.tolist()]
            grown.append(MetaTree(new_index[left[own]], new_index[right[own]], depth[own], positive[own], total[own],
                                  inner))  # fmt: skip
        return grown


def grow_meta_tree(splitter: Splitter, objective: Objective, max_depth: int, limits: Limits) -> MetaTree:
    """Grow a meta-tree of at most max_depth meta-levels; `limits` bound the inner trees.

    The inner trees of a meta-level grow together. A meta-node becomes a leaf if it is pure, too light or too deep, if
    its inner tree finds no condition, if no cut of that tree's cells is worthwhile, or if it ranks below the depth that
    counts.
    """
    return grow_meta_trees(splitter, splitter.root(), objective, max_depth, limits)[0]


def grow_meta_trees(
    splitter: Splitter, roots: Batch, objective: Objective, max_depth: int, limits: Limits
) -> list[MetaTree]:
    """One meta-tree per root, the same as each would be on its own; a level of all of them grows together."""
    level, node = roots, np.arange(len(roots), dtype=NODE)
    table = MetaTable(roots)
    room = objective.depth * roots.total.astype(np.float64)
    for meta_depth in range(max_depth):
        worth = np.flatnonzero(limits.may_split(level, np.zeros(len(level))) & (room > 0))
        level, node, room = level.take(worth), node[worth], room[worth]
        if len(level) == 0:
            break
        is_last = meta_depth + 1 == max_depth
        if not is_last:
            splitter.remember()
        trees = grow(splitter, level, limits)
        is_left, is_parted = _sides(trees, objective, room)
        parted, cells = np.flatnonzero(is_parted), np.flatnonzero(trees.is_leaf & is_parted[trees.root])
        parents = level.take(parted)
        part = parts_of if is_last else splitter.regroup
        position = np.searchsorted(parted, trees.root[cells])
        children = part(parents, trees.segment.take(cells), position, is_left[cells])
        order = np.argsort(trees.root, kind="stable")
        index = np.split(order, np.searchsorted(trees.root[order], np.arange(1, len(level))))
        child = table.add(node[parted], [InnerTree(trees, index[root], is_left) for root in parted], children)
        if is_last:
            break
        needed = limits.may_split(children, np.zeros(len(children)))
        room = np.repeat(room[parted], 2)
        room[1::2] -= children.total[::2]  # the left child ranks before the right one
        level, node, room = splitter.with_statistics(parents, children, needed), child[needed], room[needed]
    return table.freeze()


def _sides(trees: GrownTrees, objective: Objective, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Side of every cell, True for the left meta-child, and the roots whose cells are on both sides.

    `room` is the weight of the cases of each root that count, from the top.
    """
    is_left, is_parted = np.zeros(len(trees.root), bool), np.zeros(len(room), bool)
    leaf, segment = np.flatnonzero(trees.is_leaf), trees.segment
    for root in range(len(room)):
        cells = leaf[trees.root[leaf] == root]
        if len(cells) < 2:
            continue
        order = objective.order(segment.positive[cells], segment.total[cells], room[root])
        ordered = cells[order]
        cut = objective.cut(segment.positive[ordered], segment.total[ordered], room[root])
        is_left[ordered[:cut]] = True
        is_parted[root] = cut < len(cells)
    return is_left, is_parted


# --- meta-trees of the same rows that differ only in the depth of their inner trees ----------------------------
#
# On a small table the overhead of calls dominates: the table is stacked, one copy per tree, and each call serves all
# copies. On a large one the trees grow one after the other, and the first inner tree of each is a part of the deepest
# one, so its conditions are not searched again.


class RootMemory:
    """A splitter that caches the best conditions of the first inner tree, level by level, for later trees.

    `known`, which grows, holds the levels searched so far, by this tree or by others with the same rows and settings.
    """

    def __init__(self, splitter: Splitter, known: list[tuple[Batch, Splits]]):
        self.splitter, self.known, self.level, self.is_first = splitter, known, 0, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.splitter, name)

    def best_splits(self, batch: Batch, *search: Any) -> Splits:
        """Best condition of each node."""
        if self.is_first and self.level < len(self.known):
            before, found = self.known[self.level]
            if np.array_equal(before.start, batch.start) and np.array_equal(before.stop, batch.stop):
                self.level += 1
                return found
        found = self.splitter.best_splits(batch, *search)
        if self.is_first and self.level == len(self.known):
            self.known.append((replace(batch, histograms=None, slot=None), found))
            self.level += 1
        return found

    def regroup(self, parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
        """Split the parents' rows by the side of each row's cell; levels after the first regrouping are not cached."""
        self.is_first = False
        return self.splitter.regroup(parents, cells, parent, is_left)


@dataclass(frozen=True)
class StackLimits(Limits):
    """Stopping rules with one depth per copy of the rows; a copy has `n_rows` rows."""

    depths: tuple[int, ...] = ()
    n_rows: int = 1

    def may_split(self, batch: Batch, depth: np.ndarray) -> np.ndarray:
        """Nodes worth searching: impure, heavy enough and not too deep for their copy."""
        return super().may_split(batch, depth) & (depth < np.array(self.depths)[batch.start // self.n_rows])
