"""A tree as text that a person reads, also where nodes have several parents, and the scorecard inside its leaves."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from toprank.tree.columns import Category, Column
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree
from toprank.tree.wording import hits_text, label_text, number_text, one_line, percent_text, question_text

WIDTH = 100
INDENT = "|   "
MAX_NESTING = 10
"""Levels drawn nested; what lies deeper gets a number and a block of its own, so that lines stay short."""

CARD_TITLE = "Inside a leaf, cases with more points come first"
CARD_DIGITS = 3
CARD_CATEGORIES = 12
"""Categories of a column whose points are told; the others, of fewer points, are counted."""

CARD_NAMES = 5
GLUE = "\xa0"
"""Keeps a category and its points on one line."""

SMALL_WEIGHT = 1e-3
"""Points of a unit below which they are told per 1,000 units, or more."""


def to_text(
    tree: Tree,
    columns: Sequence[Column],
    title: str | None = None,
    max_leaves: int | None = None,
    spread: np.ndarray | None = None,
) -> str:
    """Readable text of a tree, in 100 columns.

    Conditions are questions with a yes and a no branch. A node with several parents is numbered and printed
    once, in a block of its own below; branches refer to it as `-> [2]`. Leaves with several parents are
    listed at the end; branches refer to them as `-> leaf 3`. Where a scorecard orders the rows inside leaves, it
    follows.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    title : str or None
        First line.
    max_leaves : int or None
        Show only what leads to the best leaves, and the rest in one line a branch. None shows all.
    spread : float array of shape (n_features,) or None
        Standard deviation of each column's points, by which the lines of the scorecard are ordered.
    """
    lines = _Drawing(tree, columns, max_leaves).lines(title)
    card = scorecard_lines(tree.scoring, columns, spread, WIDTH)
    return "\n".join([*lines, "", f"{CARD_TITLE}:", *card] if card else lines)


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


# --- the scorecard inside leaves ----------------------------------------------------------------------------


def scorecard_features(scoring: Scoring, spread: np.ndarray | None = None) -> list[int]:
    """Features that have points in a scorecard, by falling spread of their points; without it as the model has them."""
    if scoring.kind != "linear":
        return []
    used = (scoring.weight != 0) | (scoring.missing != 0)
    for feature in np.flatnonzero(np.diff(scoring.points_at)).tolist():
        used[feature] |= bool(_category_points(scoring, feature).any())
    features = np.flatnonzero(used)
    if spread is not None:
        features = features[np.argsort(-spread[features], kind="stable")]
    return [int(feature) for feature in features]


def scorecard_table(
    scoring: Scoring, columns: Sequence[Column], spread: np.ndarray | None = None
) -> dict[str, list[Any]]:
    """Columns of a table with one row a part of a scorecard that has points, most influential column first.

    Parameters
    ----------
    scoring : Scoring
    columns : sequence of Column, one a feature
    spread : float array of shape (n_features,) or None
        Standard deviation of each column's points; None leaves the columns in the order of the model.

    Returns
    -------
    dict of lists
        column, category (None but in rows of categories), counts ("per unit", "category" or "missing"), points, center
        (NaN but in rows of numbers): a number x is worth points * (x - center).

    Examples
    --------
    >>> card = Scoring("linear", center=[2, 0], weight=[0.5, 0], missing=[-0.1, 0], points_at=[0, 0, 2], points=[0, 1])
    >>> table = scorecard_table(card, [Column("age"), Column("sector", ("retail", "catering"))])
    >>> for row in zip(*table.values()):
    ...     print(*row)
    age None per unit 0.5 2.0
    age None missing -0.1 nan
    sector catering category 1.0 nan
    """
    rows: list[tuple[str, str | None, str, float, float]] = []
    for feature in scorecard_features(scoring, spread):
        name = columns[feature].name
        if scoring.weight[feature]:
            rows.append((name, None, "per unit", float(scoring.weight[feature]), float(scoring.center[feature])))
        for labels, points in _category_parts(scoring, columns[feature], feature):
            rows += [(name, one_line(label), "category", points, math.nan) for label in labels]
        if scoring.missing[feature]:
            rows.append((name, None, "missing", float(scoring.missing[feature]), math.nan))
    names = ("column", "category", "counts", "points", "center")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def scorecard_lines(
    scoring: Scoring, columns: Sequence[Column], spread: np.ndarray | None = None, width: int = WIDTH
) -> list[str]:
    r"""Words for a scorecard, indented, one line a column that has points; none without a scorecard.

    Parameters
    ----------
    scoring : Scoring
    columns : sequence of Column, one a feature
    spread : float array of shape (n_features,) or None
        Standard deviation of each column's points: the most influential column stands first. None leaves the columns
        in the order of the model.
    width : int, default 100
        Where lines are broken.

    Examples
    --------
    >>> card = Scoring("linear", center=[2, 0], weight=[0.5, 0], missing=[-0.1, 0], points_at=[0, 0, 2], points=[0, 1])
    >>> print(*scorecard_lines(card, [Column("age"), Column("sector", ("retail", "catering"))]), sep="\n")
      +0.5 a unit of age above 2; missing: -0.1
      sector = catering +1
    """
    return [
        line.replace(GLUE, " ")
        for feature in scorecard_features(scoring, spread)
        for line in textwrap.wrap(
            _card_line(scoring, columns[feature], feature),
            max(width, 20),
            initial_indent="  ",
            subsequent_indent=" " * 6,
            break_on_hyphens=False,
        )
    ]


def scorecard_summary(scoring: Scoring, columns: Sequence[Column], spread: np.ndarray | None = None) -> str:
    """Words for what a scorecard reads: scorecard of 2 columns: age, sector. Nothing without a scorecard."""
    if scoring.kind != "linear":
        return ""
    names = [one_line(columns[feature].name) for feature in scorecard_features(scoring, spread)]
    if not names:
        return "scorecard without points: cases of a leaf tie"
    listed = ", ".join(names[:CARD_NAMES])
    rest = f" and {len(names) - CARD_NAMES:,} more" if len(names) > CARD_NAMES else ""
    return f"scorecard of {len(names):,} column{'' if len(names) == 1 else 's'}: {listed}{rest}"


def checked_spread(spread: np.ndarray | None, n_features: int) -> np.ndarray | None:
    """Spread of a scorecard's points, from a file, as float64; ValueError where it cannot be one."""
    if spread is None:
        return None
    array = np.asarray(spread, np.float64)
    if array.shape != (n_features,) or not np.all(array >= 0):
        raise ValueError(f"The spread of the scorecard's points is not {n_features} numbers of at least 0.")
    return array


def _category_points(scoring: Scoring, feature: int) -> np.ndarray:
    return scoring.points[scoring.points_at[feature] : scoring.points_at[feature + 1]]


def _category_parts(scoring: Scoring, column: Column, feature: int) -> list[tuple[tuple[Category, ...], float]]:
    """Categories that have points, most points first; those that share a code together."""
    points = _category_points(scoring, feature)
    return [
        (column.labels(int(code)), float(points[code])) for code in np.argsort(-points, kind="stable") if points[code]
    ]


def _card_line(scoring: Scoring, column: Column, feature: int) -> str:
    """Words for what one column is worth."""
    name, weight, missing = one_line(column.name), float(scoring.weight[feature]), float(scoring.missing[feature])
    parts = _category_parts(scoring, column, feature)
    if weight:
        words = f"{_weight_text(weight)} of {name} above {number_text(float(scoring.center[feature]))}"
    elif parts:
        least = sorted((abs(points) for _, points in parts), reverse=True)[:CARD_CATEGORIES][-1]
        told = [part for part in parts if abs(part[1]) >= least][:CARD_CATEGORIES]
        listed = [f"{_labels_text(labels)} {_signed(points)}".replace(" ", GLUE) for labels, points in told]
        words = f"{name} = {', '.join(listed)}"
        if len(parts) > len(told):
            words += f" and {len(parts) - len(told):,} more"
    else:
        return f"{name} missing:{GLUE}{_signed(missing)}"
    return f"{words}; missing:{GLUE}{_signed(missing)}" if missing else words


def _weight_text(weight: float) -> str:
    """Points of a unit: +0.8 a unit; of a round number of units where one counts little: -0.12 per 10,000."""
    if abs(weight) >= SMALL_WEIGHT:
        return f"{_signed(weight)} a unit"
    zeros = min(-math.floor(math.log10(abs(weight))) - 1, 300)
    return f"{_signed(weight * 10.0**zeros)} per {number_text(10.0**zeros)}"


def _labels_text(labels: Sequence[Category]) -> str:
    """Return a category, or the first of those that share a code and the number of the others."""
    first, n_others = label_text(labels[0]), len(labels) - 1
    return f"{first} and {n_others:,} rare other{'' if n_others == 1 else 's'}" if n_others else first


def _signed(points: float) -> str:
    return f"{'-' if points < 0 else '+'}{number_text(abs(points), CARD_DIGITS)}"
