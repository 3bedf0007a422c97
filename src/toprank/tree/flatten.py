"""Grown trees and meta-trees to one `Tree`, without redundant nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._core.dtypes import CATEGORY, LEAF, NODE, NUMERIC, OBLIQUE
from toprank.tree.grower import GrownTrees
from toprank.tree.meta.meta_tree import InnerTree, MetaTree, ObliqueCut
from toprank.tree.structure import Tree

Target = tuple[str, int, int]
"""Target of an edge: ("meta", meta-node, 0) or ("inner", meta-node, node of its inner tree)."""

BLANK: dict[str, Any] = {
    "kind": LEAF, "feature": -1, "threshold": np.nan, "left": -1, "right": -1, "missing_left": 0, "leaf": -1,
    "score": np.nan, "rate": np.nan, "category_at": -1, "gain": 0.0,
}  # fmt: skip
"""Columns of a leaf without a position in the ranking yet."""

TERMS = ("oblique_feature", "oblique_code", "oblique_weight", "oblique_fill")


class _Builder:
    """Nodes of a tree under construction; edges are node indices, or targets that are resolved at the end."""

    def __init__(self, unit: float):
        self.unit = unit
        self.rows: list[dict[str, Any]] = []
        self.labels: dict[Target, int] = {}
        self.bits: list[np.ndarray] = []
        self.sums: dict[int, ObliqueCut] = {}

    def add(self, positive: int, total: int, values: dict[str, Any] | None = None) -> int:
        """Add a node, a leaf unless `values` say otherwise; return its index."""
        weights = {"positive": positive * self.unit, "negative": (total - positive) * self.unit}
        self.rows.append(BLANK | weights | (values or {}))
        return len(self.rows) - 1

    def condition(self, trees: GrownTrees, node: int, is_categorical: np.ndarray) -> dict[str, Any]:
        """Columns of a condition."""
        feature = int(trees.feature[node])
        common = {"feature": feature, "missing_left": int(trees.missing_left[node]), "gain": float(trees.gain[node])}
        if not is_categorical[feature]:
            return common | {"kind": NUMERIC, "threshold": float(trees.threshold[node])}
        self.bits.append(np.packbits(trees.goes_left[node], bitorder="little").view(np.uint64))
        return common | {"kind": CATEGORY, "category_at": len(self.bits) - 1}

    def add_sum(self, cut: ObliqueCut, positive: int, total: int, low: Target, high: Target) -> int:
        """Add a condition on a weighted sum with its two targets; return its index."""
        condition = {"kind": OBLIQUE, "threshold": cut.threshold, "missing_left": int(cut.missing_low),
                     "gain": cut.gain, "left": low, "right": high}  # fmt: skip
        node = self.add(positive, total, condition)
        self.sums[node] = cut
        return node

    def freeze(self, n_features: int) -> Tree:
        for row in self.rows:
            for side in ("left", "right"):
                if not isinstance(row[side], int):
                    row[side] = self.labels[row[side]]
        columns: dict[str, Any] = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        bits = np.array(self.bits, np.uint64).reshape(-1, 4)
        n_terms = [len(self.sums[node].feature) if node in self.sums else 0 for node in range(len(self.rows))]
        cuts = [self.sums[node] for node in sorted(self.sums)]
        return Tree(
            **columns,
            n_features=n_features,
            category_bits=bits,
            oblique_at=np.append(0, np.cumsum(n_terms)),
            oblique_feature=np.concatenate([cut.feature for cut in cuts]) if cuts else np.zeros(0),
            oblique_weight=np.concatenate([cut.weight for cut in cuts]) if cuts else np.zeros(0),
            oblique_fill=np.concatenate([cut.fill for cut in cuts]) if cuts else np.zeros(0),
        )


def flatten_meta_tree(meta: MetaTree, unit: float, is_categorical: np.ndarray) -> tuple[Tree, np.ndarray]:
    """One tree from a meta-tree, and the first node of each meta-node: int32, increasing in its preorder.

    Cells become edges into meta-children; redundant nodes disappear. The i-th meta-leaf from the left gets position i.
    Scores and rates are not set yet.
    """
    builder = _Builder(unit)
    n_leaves = 0
    for node in meta.preorder():
        if meta.left[node] < 0:
            leaf = builder.add(int(meta.positive[node]), int(meta.total[node]), {"leaf": n_leaves})
            builder.labels["meta", node, 0] = leaf
            n_leaves += 1
        else:
            _add_inner_tree(builder, meta, node, is_categorical)
    entries = np.array([builder.labels["meta", node, 0] for node in range(len(meta.left))], NODE)
    return builder.freeze(len(is_categorical)), entries


def _add_inner_tree(builder: _Builder, meta: MetaTree, node: int, is_categorical: np.ndarray) -> None:
    """Add the nodes of one inner tree whose two sides lead to different targets."""
    inner = meta.inner[node]
    if isinstance(inner, ObliqueCut):
        sides: list[Target] = [("meta", int(child), 0) for child in (meta.left[node], meta.right[node])]
        low, high = sides if inner.low_is_left else sides[::-1]
        weights = int(meta.positive[node]), int(meta.total[node])
        builder.labels["meta", node, 0] = builder.add_sum(inner, *weights, low, high)
        return
    assert isinstance(inner, InnerTree)
    trees = inner.nodes
    target: dict[int, Target] = {}
    for i in inner.index[::-1].tolist():
        if trees.feature[i] < 0:
            target[i] = ("meta", int(meta.left[node] if inner.is_left[i] else meta.right[node]), 0)
        else:
            left, right = target[int(trees.left[i])], target[int(trees.right[i])]
            target[i] = left if left == right else ("inner", node, i)
    for i in inner.index.tolist():
        if trees.feature[i] >= 0 and target[i] == ("inner", node, i):
            edges = {"left": target[int(trees.left[i])], "right": target[int(trees.right[i])]}
            weights = int(trees.segment.positive[i]), int(trees.segment.total[i])
            condition = builder.condition(trees, i, is_categorical)
            builder.labels["inner", node, i] = builder.add(*weights, condition | edges)
    builder.labels["meta", node, 0] = builder.labels[target[int(inner.index[0])]]


def flatten_tree(trees: GrownTrees, unit: float, is_categorical: np.ndarray) -> Tree:
    """One tree from a single greedy tree; leaf positions, scores and rates are not set yet."""
    builder = _Builder(unit)
    for i in range(len(trees.root)):
        weights = int(trees.segment.positive[i]), int(trees.segment.total[i])
        if trees.feature[i] < 0:
            builder.add(*weights)
        else:
            edges = {"left": int(trees.left[i]), "right": int(trees.right[i])}
            builder.add(*weights, builder.condition(trees, i, is_categorical) | edges)
    return builder.freeze(len(is_categorical))


def part_of_tree(tree: Tree, start: int, ends: np.ndarray) -> tuple[Tree, np.ndarray]:
    """The part of a tree between a node and some nodes below it, which become leaves; scores are not set yet.

    Returns it, and the new index of each node of the tree, int32 (n_nodes,), -1 for nodes outside the part.
    """
    is_end = tree.is_leaf.copy()
    is_end[ends] = True
    is_kept = np.zeros(len(tree), bool)
    is_kept[start] = True
    for node in range(start, len(tree)):  # children come after their parents
        if is_kept[node] and not is_end[node]:
            is_kept[[tree.left[node], tree.right[node]]] = True
    kept = np.flatnonzero(is_kept)
    new = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(NODE)
    blank = is_end[kept]
    columns: dict[str, Any] = {name: np.where(blank, value, getattr(tree, name)[kept]) for name, value in BLANK.items()}
    columns |= {name: np.full(len(kept), value) for name, value in BLANK.items() if name in ("leaf", "score", "rate")}
    columns |= {side: np.where(blank, -1, new[columns[side]]) for side in ("left", "right")}
    columns |= {name: getattr(tree, name)[kept] for name in ("positive", "negative")}
    has_set = columns["kind"] == CATEGORY
    bits = tree.category_bits[columns["category_at"][has_set]]
    columns["category_at"] = np.where(has_set, np.cumsum(has_set) - 1, -1)
    n_terms = np.where(blank, 0, np.diff(tree.oblique_at)[kept])
    term = np.concatenate([np.arange(tree.oblique_at[n], tree.oblique_at[n + 1]) for n in kept[~blank]] + [[]])
    terms = {name: getattr(tree, name)[term.astype(np.intp)] for name in TERMS}
    at = np.append(0, np.cumsum(n_terms))
    return Tree(**columns, **terms, n_features=tree.n_features, category_bits=bits, oblique_at=at), new
