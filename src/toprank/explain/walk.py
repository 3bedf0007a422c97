"""`TreeWalk`: the order in which a tree is written or drawn, block by block, for texts, plots and exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from toprank.tree.structure import Tree


@dataclass(frozen=True)
class Visit:
    """One step of a walk.

    Attributes
    ----------
    node : int
    level : int
        Conditions above it in its block; 0 at the head.
    answer : bool or None
        The answer to the question of its parent: True = yes, the left side; None at the head of a block.
    is_open : bool
        True if its branches follow: "yes", with all below it, then "no".
    block : int or None
        Number of the block that continues from here, if the node heads a block elsewhere.
    """

    node: int
    level: int
    answer: bool | None
    is_open: bool
    block: int | None = None


class TreeWalk:
    """Walk over a tree whose nodes may have several parents; each node is expanded once.

    A node that several branches lead to heads its own block; branches refer to it by number.

    Parameters
    ----------
    tree : Tree
    is_open : bool array of shape (n_nodes,), optional
        Conditions whose branches to follow; by default all.
    may_head : bool array of shape (n_nodes,), optional
        Nodes that may head a block; by default the open ones.
    max_level : int, optional
        Deepest level inside a block; conditions below get their own blocks.

    Attributes
    ----------
    n_parents : int array of shape (n_nodes,)
        Branches that lead to each node.
    number : dict of int to int
        Number of each head's block, parents before children; the root has 0.

    Examples
    --------
    >>> from toprank import RankingTree
    >>> model = RankingTree(max_depth=1, min_samples_leaf=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> walk = TreeWalk(model.tree_)
    >>> [(visit.node, visit.level, visit.answer, visit.is_open) for visit in walk.block(0)]
    [(0, 0, None, True), (1, 1, True, False), (2, 1, False, False)]
    """

    def __init__(
        self,
        tree: Tree,
        is_open: np.ndarray | None = None,
        may_head: np.ndarray | None = None,
        max_level: int | None = None,
    ):
        self.tree = tree
        self.is_open = ~tree.is_leaf if is_open is None else is_open
        opened = np.flatnonzero(self.is_open)
        self.n_parents = np.bincount(np.concatenate((tree.left[opened], tree.right[opened])), minlength=len(tree))
        heads = (self.is_open if may_head is None else may_head) & (self.n_parents > 0)
        level, self.number = np.zeros(len(tree), np.int64), {0: 0}
        for node in np.flatnonzero(heads | self.is_open).tolist():  # parents come before their children
            if heads[node] and (self.n_parents[node] > 1 or (max_level is not None and level[node] > max_level)):
                self.number[node] = len(self.number)
                level[node] = 0
            if self.is_open[node]:
                level[[tree.left[node], tree.right[node]]] = level[node] + 1

    def block(self, head: int = 0) -> Iterator[Visit]:
        """Visit a head and everything nested in it, each condition before its "yes" and its "no"."""
        stack: list[tuple[int, int, bool | None]] = [(head, 0, None)]
        while stack:
            node, level, answer = stack.pop()
            block = self.number.get(node) if node != head else None
            is_open = block is None and bool(self.is_open[node])
            yield Visit(node, level, answer, is_open, block)
            if is_open:
                stack += [(int(self.tree.right[node]), level + 1, False), (int(self.tree.left[node]), level + 1, True)]

    def below(self, node: int) -> np.ndarray:
        """Return the nodes that can be reached from a node, including itself, open or not: bool (n_nodes,)."""
        tree, out = self.tree, np.zeros(len(self.tree), bool)
        out[node] = True
        for inner in range(node, len(tree)):
            if out[inner] and not tree.is_leaf[inner]:
                out[[tree.left[inner], tree.right[inner]]] = True
        return out


def passed_up(tree: Tree, marks: np.ndarray) -> np.ndarray:
    """Return the marks of nodes, bool (n_nodes, ...), extended to all nodes that lead to a marked one."""
    out = marks.copy()
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        out[node] |= out[tree.left[node]] | out[tree.right[node]]
    return out
