"""The meta-tree engine: inner tree, order of its cells, cut into two, repeat.

One engine serves both papers; the objective says which. The result keeps the meta structure for pruning;
`toprank.tree.flatten` turns it into one `Tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toprank._core.dtypes import NODE
from toprank.tree.batch import Batch, Splitter
from toprank.tree.grower import GrownTrees, Limits, grow
from toprank.tree.objectives import Objective


@dataclass(frozen=True)
class InnerTree:
    """One greedy tree between a meta-node and its two children; is_left tells each cell's side."""

    nodes: GrownTrees
    index: np.ndarray
    is_left: np.ndarray


@dataclass(frozen=True)
class MetaTree:
    """Meta-nodes in breadth-first order; left = right = -1 at meta-leaves.

    `inner[i]` is the inner tree of meta-node i, None at a leaf. Weights are in integer units.
    """

    left: np.ndarray
    right: np.ndarray
    depth: np.ndarray
    positive: np.ndarray
    total: np.ndarray
    inner: list[InnerTree | None]

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

    def truncated(self, depth: int) -> MetaTree:
        """The meta-tree that growing would have given with this meta-depth."""
        keep = self.depth <= depth
        new_index = np.cumsum(keep) - 1
        child = keep & (self.depth < depth) & ~self.is_leaf
        return self._restricted(keep, child, new_index)

    def collapsed(self, nodes: np.ndarray) -> MetaTree:
        """The meta-tree with the given meta-nodes turned into leaves."""
        keep = np.ones(len(self.left), bool)
        child = ~self.is_leaf
        child[nodes] = False
        for node in range(len(self.left)):
            if not self.is_leaf[node] and (not keep[node] or not child[node]):
                keep[self.left[node]] = keep[self.right[node]] = False
        return self._restricted(keep, child & keep, np.cumsum(keep) - 1)

    def _restricted(self, keep: np.ndarray, has_children: np.ndarray, new_index: np.ndarray) -> MetaTree:
        left = np.where(has_children, new_index[self.left], -1)[keep]
        right = np.where(has_children, new_index[self.right], -1)[keep]
        inner = [tree if has else None for tree, has, k in zip(self.inner, has_children, keep, strict=True) if k]
        return MetaTree(
            left.astype(NODE), right.astype(NODE), self.depth[keep], self.positive[keep], self.total[keep], inner
        )


def grow_meta_tree(splitter: Splitter, objective: Objective, max_depth: int, limits: Limits) -> MetaTree:
    """Grow a meta-tree of at most max_depth meta-levels; `limits` bound the inner trees.

    Every meta-level grows its inner trees together. A meta-node becomes a leaf where it is pure, too light, too deep,
    or where its inner tree finds no condition.
    """
    level, level_node = splitter.root(), np.zeros(1, NODE)
    left, right, inner = [-1], [-1], [None]
    depth, positive, total = [0], [int(level.positive[0])], [int(level.total[0])]
    root_limits = replace(limits, max_depth=max(limits.max_depth, 1))
    for meta_depth in range(max_depth):
        worth = np.flatnonzero(limits.may_split(level, np.zeros(len(level))))
        level, level_node = level.take(worth), level_node[worth]
        if len(level) == 0:
            break
        splitter.remember()
        trees = grow(splitter, level, root_limits)
        is_left = _sides(trees, len(level), objective)
        parted = np.flatnonzero(~trees.is_leaf[: len(level)])
        cells = np.flatnonzero(trees.is_leaf & ~np.isin(trees.root, np.flatnonzero(trees.is_leaf[: len(level)])))
        parents = level.take(parted)
        position = np.searchsorted(parted, trees.root[cells])
        children = splitter.regroup(parents, trees.segment.take(cells), position, is_left[cells])
        for i, root in enumerate(parted):
            index = np.flatnonzero(trees.root == root)
            node = int(level_node[root])
            inner[node] = InnerTree(trees, index, is_left)
            left[node], right[node] = len(left), len(left) + 1
            left, right, inner = left + [-1, -1], right + [-1, -1], inner + [None, None]
            depth += [meta_depth + 1] * 2
            positive += children.positive[2 * i : 2 * i + 2].tolist()
            total += children.total[2 * i : 2 * i + 2].tolist()
        level_node = np.arange(len(left) - len(children), len(left), dtype=NODE)
        needed = limits.may_split(children, np.zeros(len(children))) & (meta_depth + 1 < max_depth)
        level, level_node = splitter.with_statistics(parents, children, needed), level_node[needed]
    arrays = (np.array(values, dtype) for values, dtype in
              ((left, NODE), (right, NODE), (depth, NODE), (positive, np.int64), (total, np.int64)))  # fmt: skip
    return MetaTree(*arrays, inner)


def _sides(trees: GrownTrees, n_roots: int, objective: Objective) -> np.ndarray:
    """Side of every cell: True where it goes to the left meta-child."""
    is_left = np.zeros(len(trees.root), bool)
    leaf = np.flatnonzero(trees.is_leaf)
    for root in range(n_roots):
        cells = leaf[trees.root[leaf] == root]
        if len(cells) < 2:
            continue
        segment: Batch = trees.segment
        order = objective.order(segment.positive[cells], segment.total[cells])
        ordered = cells[order]
        cut = objective.cut(segment.positive[ordered], segment.total[ordered])
        is_left[ordered[:cut]] = True
    return is_left
