"""What a plot of a tree shows: which nodes, and the text of each. No layout, no drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from toprank._core.dtypes import OBLIQUE
from toprank.explain import TreeWalk, side_condition
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.numbers import lift_text, number_text, percent_text
from toprank.words.wording import sum_terms, term_text

CONDITION, LEAF, MORE, CHIP, JUMP = "condition", "leaf", "more", "chip", "jump"


@dataclass(frozen=True)
class Content:
    """The content of one box.

    Attributes
    ----------
    kind : str
        "condition", "leaf", "more" (folded nodes), "chip" (a leaf that is listed below) or "jump" (a node that is drawn
        elsewhere).
    node : int
    title : str
        In bold.
    lines : tuple of str
        Below the title.
    share : float
        Share of positives, NaN if it is not shown.
    """

    kind: str
    node: int
    title: str = ""
    lines: tuple[str, ...] = ()
    share: float = float("nan")


class ShownNodes:
    """Nodes of a tree that a plot shows: those with at most `max_depth` conditions above them.

    Parameters
    ----------
    tree : Tree
    max_depth : int or None
    max_conditions : int or None
        Show only this many conditions of a larger tree: from the root on, those that most positives reach, upper ones
        first; the rest is folded.

    Attributes
    ----------
    nodes : list of int
        All shown nodes, parents first.
    is_open : bool array
        Conditions shown with their branches; the other shown nodes are ends.
    n_parents : int array
        Shown branches that lead to a node.
    walk : TreeWalk
        Order of drawing: conditions, open or not, that several branches lead to have their own blocks.
    lists_leaves : bool
        True if several branches lead to one leaf; leaves are then listed.
    """

    def __init__(self, tree: Tree, max_depth: int | None, max_conditions: int | None = None):
        self.tree = tree
        depth = np.full(len(tree), len(tree), np.int64)
        depth[0] = 0
        self.is_open = np.zeros(len(tree), bool)
        for node in np.flatnonzero(~tree.is_leaf):
            if depth[node] < (len(tree) if max_depth is None else max_depth):
                self.is_open[node] = True
                for child in (tree.left[node], tree.right[node]):
                    depth[child] = min(depth[child], depth[node] + 1)
        if max_conditions is not None and self.is_open.sum() > max_conditions:
            self._fold(depth, max_conditions)
        self.walk = TreeWalk(tree, self.is_open, may_head=~tree.is_leaf)
        self.n_parents = self.walk.n_parents
        self.nodes = np.flatnonzero((self.n_parents > 0) | (np.arange(len(tree)) == 0)).tolist()
        shared = [node for node in self.nodes if self.n_parents[node] > 1]
        self.lists_leaves = any(tree.is_leaf[node] for node in shared)
        self.total = tree.positive + tree.negative
        self.base_rate = float(tree.positive[0] / self.total[0]) if self.total[0] > 0 else 0.0

    def _fold(self, depth: np.ndarray, max_conditions: int) -> None:
        """Keep only the main conditions open: those that most positives reach; deeper ones need more."""
        tree, may_open = self.tree, self.is_open
        self.is_open = np.zeros(len(tree), bool)
        queue = [(0.0, 0)]
        while queue and self.is_open.sum() < max_conditions:
            node = heappop(queue)[1]
            if self.is_open[node] or not may_open[node]:
                continue
            self.is_open[node] = True
            for child in (int(tree.left[node]), int(tree.right[node])):
                heappush(queue, (-float(tree.positive[child]) / 2.0 ** float(depth[child]), child))

    @property
    def leaves(self) -> list[int]:
        """Leaves that are shown, best first."""
        leaves = [node for node in self.nodes if self.tree.is_leaf[node]]
        return sorted(leaves, key=lambda node: (self.tree.leaf[node], node))

    @property
    def n_conditions(self) -> int:
        """Conditions that are shown."""
        return int(self.is_open.sum())

    @property
    def is_cut(self) -> bool:
        """True if some nodes are folded."""
        return any(not self.is_open[node] and not self.tree.is_leaf[node] for node in self.nodes)

    def share(self, node: int) -> float:
        """Return the share of positives among the training cases of a node, NaN if it has none."""
        return float(self.tree.positive[node] / self.total[node]) if self.total[node] > 0 else float("nan")

    def lift(self, node: int) -> float:
        """Return the share of positives over that of all cases."""
        return self.share(node) / self.base_rate if self.base_rate > 0 else float("nan")

    def figures(self, node: int) -> tuple[str, ...]:
        """Return the lines on the training cases of a node."""
        if not self.total[node] > 0:
            return ("no training cases",)
        lift = f", lift {lift_text(self.lift(node))}" if self.base_rate > 0 else ""
        held = f"{number_text(self.tree.positive[node])} of {number_text(self.total[node])} positive"
        return held, f"{percent_text(self.share(node))}{lift}"

    def leaf(self, node: int) -> Content:
        """Return a leaf with all its figures."""
        return Content(LEAF, node, f"leaf {self.tree.leaf[node] + 1:,}", self.figures(node), self.share(node))

    def end(self, node: int) -> Content:
        """Return the text of a leaf, or of folded nodes, at the end of a branch."""
        if not self.tree.is_leaf[node]:
            return Content(MORE, node, "…", (self._rest(node), *self.figures(node)), self.share(node))
        leaf = self.leaf(node)
        if not self.lists_leaves:
            return leaf
        rate = (percent_text(leaf.share),) if self.total[node] > 0 else ()
        return Content(CHIP, node, leaf.title, rate, leaf.share)

    def jump(self, node: int) -> Content:
        """Return a reference to a condition that is drawn under its number."""
        return Content(JUMP, node, f"→ [{self.walk.number[node]}]")

    def _rest(self, node: int) -> str:
        """Return a count of the hidden conditions that can be reached from a node, in words."""
        n = int((self.walk.below(node) & ~self.tree.is_leaf & ~self.is_open).sum())
        return "1 more condition" if n == 1 else f"{n:,} more conditions"

    def origin(self, node: int) -> tuple[str, str]:
        """Return the number of a condition that several branches lead to, and where its cases come from."""
        figures = self.figures(node)
        words = f"{figures[0]} ({figures[1]})" if len(figures) == 2 else figures[0]
        return f"[{self.walk.number[node]}]", f"from {self.n_parents[node]:,} branches: {words}"


def condition_lines(tree: Tree, columns: Sequence[Column], node: int, terms: int) -> list[str]:
    """Return the question of a node; a weighted sum has one term per line."""
    condition = side_condition(tree, columns, node)
    asked = condition.text()
    if not condition.is_sum or not asked.startswith(f"{condition.column.name} "):  # the latter: a sum without a bound
        return [f"{asked}?"]
    lines: list[str] = []
    for term, column in zip(condition.terms[:terms], condition.summands, strict=False):
        sign = ("- " if term.weight < 0 else "") if not lines else ("- " if term.weight < 0 else "+ ")
        lines.append(sign + term_text(column, term))
    if len(condition.terms) > terms:
        lines.append(f"+ {len(condition.terms) - terms:,} smaller")
    return [*(lines or ["0"]), f"{asked.removeprefix(f'{condition.column.name} ')}?"]


def missing_side(tree: Tree, columns: Sequence[Column], node: int) -> str:
    """Return the branch of missing values: "yes" or "no"; "" if training had none, or if they count as values."""
    if tree.kind[node] == OBLIQUE:
        asked = [term.feature for term in sum_terms(tree, node) if term.makes_missing]
    else:
        asked = [int(tree.feature[node])]
    if not any(columns[feature].has_missing for feature in asked):
        return ""
    return "yes" if tree.missing_left[node] else "no"


def fills_missing(tree: Tree, columns: Sequence[Column], node: int) -> bool:
    """Return True if a missing value in the weighted sum of a node counts as the mean of its column."""
    return any(columns[term.feature].has_missing for term in sum_terms(tree, node) if term.fill is not None)


def branch_labels(tree: Tree, columns: Sequence[Column], node: int) -> tuple[str, str]:
    """Return the labels of a condition's branches; the condition itself says if missing values go with yes."""
    is_said = missing_side(tree, columns, node) != "no" or side_condition(tree, columns, node).text().endswith(
        "not missing"
    )
    return "yes", "no" if is_said else "no, or\nmissing"
