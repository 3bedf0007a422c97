"""Grown trees and meta-trees to one `Tree`, without nodes that decide nothing."""

from __future__ import annotations

import numpy as np

from toprank._core.dtypes import CATEGORY, LEAF, NUMERIC
from toprank.tree.grower import GrownTrees
from toprank.tree.meta import InnerTree, MetaTree
from toprank.tree.structure import Tree


class _Builder:
    """Nodes of a tree to be; edges are targets: ("node", i) or a key of `labels`, resolved at the end."""

    def __init__(self, unit: float):
        self.unit = unit
        self.rows: list[dict] = []
        self.labels: dict[object, int] = {}
        self.bits: list[np.ndarray] = []

    def add(self, positive: int, total: int, **values: object) -> int:
        row = dict(kind=LEAF, feature=-1, threshold=np.nan, left=-1, right=-1, missing_left=0, leaf=-1, score=np.nan,
                   rate=np.nan, category_at=-1, entry=0, sign=0)  # fmt: skip
        row |= values | {"positive": positive * self.unit, "negative": (total - positive) * self.unit}
        self.rows.append(row)
        return len(self.rows) - 1

    def condition(self, trees: GrownTrees, node: int, is_categorical: np.ndarray) -> dict[str, object]:
        """Columns of a condition."""
        feature = int(trees.feature[node])
        if not is_categorical[feature]:
            return {"kind": NUMERIC, "feature": feature, "threshold": float(trees.threshold[node]),
                    "missing_left": int(trees.missing_left[node])}  # fmt: skip
        self.bits.append(np.packbits(trees.goes_left[node], bitorder="little").view(np.uint64))
        return {"kind": CATEGORY, "feature": feature, "missing_left": int(trees.missing_left[node]),
                "category_at": len(self.bits) - 1}  # fmt: skip

    def freeze(self, n_features: int) -> Tree:
        for row in self.rows:
            for side in ("left", "right"):
                if not isinstance(row[side], int):
                    row[side] = self.labels[row[side]]
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        bits = np.array(self.bits, np.uint64).reshape(-1, 4)
        return Tree(**columns, n_features=n_features, category_bits=bits)


def flatten_meta_tree(meta: MetaTree, unit: float, is_categorical: np.ndarray, signed: bool = False) -> Tree:
    """One tree of a meta-tree: cells become edges into meta-children; nodes that decide nothing disappear.

    Leaf `i` from the left gets position i. With `signed`, a meta-leaf has up to two leaf nodes at the same position:
    one for the cells of its parent where positives are the majority (sign +1), one for the others (sign -1).
    """
    builder = _Builder(unit)
    position = {node: i for i, node in enumerate(meta.leaves())}
    parent = {int(child): node for node in range(len(meta.left)) if meta.left[node] >= 0
              for child in (meta.left[node], meta.right[node])}  # fmt: skip
    for node in meta.preorder():
        if meta.left[node] >= 0:
            _add_inner_tree(builder, meta, node, is_categorical, signed)
            continue
        weights = {0: (int(meta.positive[node]), int(meta.total[node]))}
        if signed and node in parent:
            inner = meta.inner[parent[node]]
            weights = _weights_by_sign(inner, node == meta.left[parent[node]])
        for sign, (positive, total) in weights.items():
            index = builder.add(positive, total, leaf=position[node], sign=sign or _majority(positive, total))
            builder.labels[("meta", node, sign)] = index
    return builder.freeze(len(is_categorical))


def _majority(positive: int, total: int) -> int:
    return 1 if 2 * positive > total else -1


def _weights_by_sign(inner: InnerTree, left: bool) -> dict[int, tuple[int, int]]:
    """Positive and total weight of one side's cells, apart by the majority in the cell."""
    segment = inner.nodes.segment
    cells = [i for i in inner.index if inner.nodes.feature[i] < 0 and inner.is_left[i] == left]
    sums: dict[int, tuple[int, int]] = {}
    for cell in cells:
        p, t = int(segment.positive[cell]), int(segment.total[cell])
        before = sums.get(_majority(p, t), (0, 0))
        sums[_majority(p, t)] = (before[0] + p, before[1] + t)
    return dict(sorted(sums.items(), reverse=True))


def _add_inner_tree(builder: _Builder, meta: MetaTree, node: int, is_categorical: np.ndarray, signed: bool) -> None:
    """Add the nodes of one inner tree whose two sides lead to different places."""
    inner = meta.inner[node]
    trees = inner.nodes
    target: dict[int, object] = {}
    for i in inner.index[::-1]:
        if trees.feature[i] < 0:
            child = int(meta.left[node] if inner.is_left[i] else meta.right[node])
            at_leaf = meta.left[child] < 0
            sign = _majority(trees.segment.positive[i], trees.segment.total[i]) if signed and at_leaf else 0
            target[i] = ("meta", child, sign)
        else:
            left, right = target[trees.left[i]], target[trees.right[i]]
            target[i] = left if left == right else ("inner", node, int(i))
    for i in inner.index:
        if trees.feature[i] >= 0 and target[i] == ("inner", node, int(i)):
            index = builder.add(
                int(trees.segment.positive[i]), int(trees.segment.total[i]), left=target[trees.left[i]],
                right=target[trees.right[i]], **builder.condition(trees, i, is_categorical),
            )  # fmt: skip
            builder.labels[("inner", node, int(i))] = index
    root = builder.labels[target[inner.index[0]]]
    builder.rows[root]["entry"] = 1
    builder.labels[("meta", node, 0)] = root


def flatten_tree(trees: GrownTrees, unit: float, is_categorical: np.ndarray) -> Tree:
    """One tree of a single greedy tree; leaf positions and scores are still to be given."""
    builder = _Builder(unit)
    for i in range(len(trees.root)):
        p, t = int(trees.segment.positive[i]), int(trees.segment.total[i])
        if trees.feature[i] < 0:
            builder.add(p, t, sign=_majority(p, t))
        else:
            builder.add(p, t, left=int(trees.left[i]), right=int(trees.right[i]), entry=int(i == 0),
                        **builder.condition(trees, i, is_categorical))  # fmt: skip
    return builder.freeze(len(is_categorical))
