"""A tree as text that a person reads, also where nodes have several parents."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.tree.wording import hits_text, number_text, percent_text, question_text

WIDTH = 100
INDENT = "|   "
MAX_NESTING = 10
"""Levels drawn nested; what lies deeper gets a number and a block of its own, so that lines stay short."""


def to_text(tree: Tree, columns: Sequence[Column], title: str | None = None, max_leaves: int | None = None) -> str:
    """Readable text of a tree, in 100 columns.

    Conditions are questions with a yes and a no branch. A node with several parents is numbered and printed
    once, in a block of its own below; branches refer to it as `-> [2]`. Leaves with several parents are
    listed at the end; branches refer to them as `-> leaf 3`.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    title : str or None
        First line.
    max_leaves : int or None
        Show only what leads to the best leaves, and the rest in one line a branch. None shows all.
    """
    return "\n".join(_Drawing(tree, columns, max_leaves).lines(title))


class _Drawing:
    """One tree being written: which nodes are shown, which of them in blocks of their own."""

    def __init__(self, tree: Tree, columns: Sequence[Column], max_leaves: int | None):
        self.tree, self.columns = tree, columns
        self.total = tree.positive + tree.negative
        self.base_rate = float(tree.positive[0] / self.total[0]) if self.total[0] > 0 else 0.0
        self.n_shown = tree.n_leaves if max_leaves is None else min(max(max_leaves, 1), tree.n_leaves)
        self.is_shown = self._leads_to_shown()
        self.n_nodes_at = np.bincount(tree.leaf[tree.is_leaf], minlength=tree.n_leaves)
        self.n_parents = self._count_parents()
        heads = self._block_heads()
        self.number = {node: i for i, node in enumerate(heads)}

    def _leads_to_shown(self) -> np.ndarray:
        """Nodes from which a leaf that is shown can be reached."""
        tree = self.tree
        shown = tree.is_leaf & (tree.leaf < self.n_shown)
        for node in np.flatnonzero(~tree.is_leaf)[::-1]:
            shown[node] = shown[tree.left[node]] or shown[tree.right[node]]
        return shown

    def _count_parents(self) -> np.ndarray:
        """Branches that are shown and lead into each node."""
        tree = self.tree
        inner = np.flatnonzero(~tree.is_leaf & self.is_shown)
        return np.bincount(np.concatenate((tree.left[inner], tree.right[inner])), minlength=len(tree))

    def _block_heads(self) -> list[int]:
        """Nodes that start a block, parents before children: the root, shared and deeply nested nodes."""
        tree = self.tree
        depth = np.zeros(len(tree), np.int64)
        heads = [0]
        for node in np.flatnonzero(~tree.is_leaf & self.is_shown).tolist():
            if node and (self.n_parents[node] > 1 or depth[node] > MAX_NESTING):
                heads.append(node)
                depth[node] = 0
            for child in (tree.left[node], tree.right[node]):
                depth[child] = depth[node] + 1
        return heads

    def is_shared_leaf(self, node: int) -> bool:
        """Tell whether a leaf is listed at the end: several branches lead to it, or several nodes are it."""
        return bool(self.n_parents[node] > 1 or self.n_nodes_at[self.tree.leaf[node]] > 1)

    def lines(self, title: str | None) -> list[str]:
        """All lines."""
        tree, out = (
            self.tree,
            []
            if title is None
            else [*(part for line in title.splitlines() for part in textwrap.wrap(line, WIDTH)), ""],
        )
        n_leaves = tree.n_leaves
        shown = "" if self.n_shown == n_leaves else f", the best {self.n_shown:,} shown"
        out.append(
            f"{number_text(self.total[0])} training cases, {number_text(tree.positive[0])} positive "
            f"({percent_text(self.base_rate)}); {n_leaves:,} {'leaf' if n_leaves == 1 else 'leaves'}{shown}; "
            "leaf 1 ranks highest"
        )
        for node in self.number:
            out.append("")
            if node:
                hits = hits_text(tree.positive[node], self.total[node], self.base_rate)
                n_parents = int(self.n_parents[node])
                origin = "one branch" if n_parents == 1 else f"{n_parents:,} branches"
                out.append(f"[{self.number[node]}] from {origin}: {hits}")
            out += self.block(node)
        return out + self.leaf_lines()

    def block(self, head: int) -> list[str]:
        """Lines of a node and all that is nested in it."""
        out: list[str] = []
        stack = [(head, 0, "")]
        while stack:
            node, level, answer = stack.pop()
            out += _wrapped(INDENT * level + answer, self.node_text(node, head))
            if self.is_opened(node, head):
                stack += [
                    (int(self.tree.right[node]), level + 1, "no:  "),
                    (int(self.tree.left[node]), level + 1, "yes: "),
                ]
        return out

    def is_opened(self, node: int, head: int) -> bool:
        """Tell whether a node's branches are drawn below it, in the block of `head`."""
        return bool(not self.tree.is_leaf[node] and self.is_shown[node] and (node == head or node not in self.number))

    def node_text(self, node: int, head: int) -> str:
        """Return what stands on a node's own line."""
        tree = self.tree
        if not self.is_shown[node]:
            name = f"below leaf {self.n_shown:,}"
            if self.n_parents[node] > 1:  # the node's figures are not those of this branch
                return f"-> {name}"
            return f"{name}: {hits_text(tree.positive[node], self.total[node], self.base_rate)}"
        if tree.is_leaf[node]:
            name = f"leaf {tree.leaf[node] + 1:,}"
            if self.is_shared_leaf(node):
                return f"-> {name}"
            return f"{name}: {hits_text(tree.positive[node], self.total[node], self.base_rate)}"
        if not self.is_opened(node, head):
            return f"-> [{self.number[node]}]"
        return f"{question_text(tree, self.columns, node)}?"

    def leaf_lines(self) -> list[str]:
        """List the leaves that branches refer to, best first, then those not shown, all together."""
        tree = self.tree
        ends = [node for node in np.flatnonzero(tree.is_leaf & self.is_shown).tolist() if self.is_shared_leaf(node)]
        out: list[str] = []
        for leaf in sorted({int(tree.leaf[node]) for node in ends}):
            here = tree.is_leaf & (tree.leaf == leaf)
            hits = hits_text(tree.positive[here].sum(), self.total[here].sum(), self.base_rate)
            out.append(f"leaf {leaf + 1:,}: {hits}")
        rest = tree.is_leaf & ~self.is_shown
        if rest.any():
            hits = hits_text(tree.positive[rest].sum(), self.total[rest].sum(), self.base_rate)
            out.append(f"all below leaf {self.n_shown:,}: {hits}")
        return ["", *out] if out else []


def _wrapped(prefix: str, text: str) -> list[str]:
    """Prefix and text, broken at the width; further lines keep the bars of the prefix."""
    room = max(WIDTH - len(prefix), 20)
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    bars = prefix[: prefix.rfind("|") + 1].ljust(len(prefix))
    return [prefix + first, *(bars + line for line in rest)]
