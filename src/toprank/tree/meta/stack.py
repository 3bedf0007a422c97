"""Several meta-trees from the same rows that differ only in the depth of their inner trees: shared work is done once.

On a small table the overhead of calls dominates. So the table is stacked, one copy per tree, and each call serves all
copies; every copy yields the same tree as on its own. On a large table trees grow one after the other, and the first
inner tree of each is a part of the deepest one, so its conditions are not searched again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toprank._core.dtypes import NODE
from toprank.tree.batch import Batch, Splits, Splitter
from toprank.tree.categories import PLAIN, Rules
from toprank.tree.grower import GrownTrees, Limits, grow
from toprank.tree.meta.meta_tree import InnerTree, MetaTree, _sides
from toprank.tree.meta.objectives import Objective


class RootMemory:
    """A splitter that caches the best conditions of the first inner tree, level by level, for later trees.

    Parameters
    ----------
    splitter : Splitter
        Over the same rows for all trees.
    known : list of (Batch, Splits)
        Levels searched so far, by this tree or by others with the same search settings; it grows.
    """

    def __init__(self, splitter: Splitter, known: list[tuple[Batch, Splits]]):
        self.splitter, self.known, self.level, self.is_first = splitter, known, 0, True
        self.n_features, self.is_categorical = splitter.n_features, splitter.is_categorical
        self.root, self.split, self.thresholds = splitter.root, splitter.split, splitter.thresholds
        self.with_statistics, self.remember = splitter.with_statistics, splitter.remember

    def best_splits(
        self, batch: Batch, criterion: int, min_leaf: int, allowed: np.ndarray | None, roots: Batch | None = None,
        categories: Rules = PLAIN, direction: np.ndarray | None = None,
    ) -> Splits:  # fmt: skip
        """Best condition of each node."""
        if self.is_first and self.level < len(self.known):
            before, found = self.known[self.level]
            if np.array_equal(before.start, batch.start) and np.array_equal(before.stop, batch.stop):
                self.level += 1
                return found
        found = self.splitter.best_splits(batch, criterion, min_leaf, allowed, roots, categories, direction)
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


def grow_meta_trees(
    splitter: Splitter, roots: Batch, objective: Objective, max_depth: int, limits: Limits
) -> list[MetaTree]:
    """One meta-tree per root, the same as from `grow_meta_tree`.

    Parameters
    ----------
    splitter : Splitter
        Over stacked rows.
    roots : Batch
        The copies of the rows.
    objective : Objective
    max_depth : int
        Largest number of meta-levels.
    limits : Limits
        Limits of the inner trees.
    """
    level, node = roots, np.arange(len(roots), dtype=NODE)
    table = _StackTable(roots)
    for meta_depth in range(max_depth):
        worth = np.flatnonzero(limits.may_split(level, np.zeros(len(level))))
        level, node = level.take(worth), node[worth]
        if len(level) == 0:
            break
        splitter.remember()
        trees = grow(splitter, level, limits)
        is_left, is_parted = _sides(trees, len(level), objective)
        cells = np.flatnonzero(trees.is_leaf & is_parted[trees.root])
        parents = level.take(np.flatnonzero(is_parted))
        position = (np.cumsum(is_parted) - 1)[trees.root[cells]]
        children = splitter.regroup(parents, trees.segment.take(cells), position, is_left[cells])
        child = table.add(node[is_parted], _inner_trees(trees, is_left, is_parted), children)
        needed = limits.may_split(children, np.zeros(len(children))) & (meta_depth + 1 < max_depth)
        level, node = splitter.with_statistics(parents, children, needed), child[needed]
    return table.freeze()


def _inner_trees(trees: GrownTrees, is_left: np.ndarray, is_parted: np.ndarray) -> list[InnerTree]:
    """Inner tree of each root that was split."""
    order = np.argsort(trees.root, kind="stable")
    index = np.split(order, np.searchsorted(trees.root[order], np.arange(1, len(is_parted))))
    return [InnerTree(trees, index[root], is_left) for root in np.flatnonzero(is_parted)]


class _StackTable:
    """Meta-nodes of all copies so far, level by level; the roots come first."""

    def __init__(self, roots: Batch):
        self.tree = np.arange(len(roots), dtype=NODE)
        self.levels = [(self.tree, np.zeros(len(roots), NODE), roots.positive, roots.total)]
        self.parents: list[tuple[np.ndarray, np.ndarray]] = []
        self.inner: list[InnerTree | None] = [None] * len(roots)

    def add(self, node: np.ndarray, trees: list[InnerTree], children: Batch) -> np.ndarray:
        """Give meta-nodes their inner trees and children; return the children's indices, left and right alternating."""
        for i, inner in zip(node.tolist(), trees, strict=True):
            self.inner[i] = inner
        child = np.arange(len(self.inner), len(self.inner) + len(children), dtype=NODE)
        self.inner += [None] * len(children)
        tree = np.repeat(self.tree[node], 2)
        self.tree = np.append(self.tree, tree)
        self.levels.append((tree, np.full(len(children), len(self.levels), NODE), children.positive, children.total))
        self.parents.append((node, child))
        return child

    def freeze(self) -> list[MetaTree]:
        """The meta-tree of each copy, its nodes in the order in which they would have grown on their own."""
        tree, depth, positive, total = (np.concatenate(part) for part in zip(*self.levels, strict=True))
        left, right = np.full(len(tree), -1, NODE), np.full(len(tree), -1, NODE)
        for node, child in self.parents:
            left[node], right[node] = child[::2], child[1::2]
        grown = []
        for copy in range(len(self.levels[0][0])):
            own = np.flatnonzero(tree == copy)
            new_index = np.full(len(tree) + 1, -1, NODE)  # the last entry is for child index -1
            new_index[own] = np.arange(len(own))
            grown.append(
                MetaTree(new_index[left[own]], new_index[right[own]], depth[own], positive[own], total[own],
                         [self.inner[i] for i in own.tolist()])
            )  # fmt: skip
        return grown
