"""`MetaNodes`: inspection of a fitted meta-tree: its table of nodes, its sub-trees, the rule at one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._core.dtypes import NODE, WEIGHT
from toprank.errors import InputError
from toprank.export import to_text
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.meta.leaf_rankers import ClassifierRule
from toprank.rankers.meta.ordering import ClassifierTree, LeafOrder, order_leaves, rank_leaves
from toprank.tree.columns import Column
from toprank.tree.flatten import part_of_tree
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.scoring import TIES
from toprank.tree.structure import Tree, parents_of
from toprank.words.counts import plural

MAX_WEIGHT = 2**53
"""Integer weights are exact in float64 up to this."""

ARRAYS = ("left", "right", "depth", "positive", "total", "entry")


@dataclass(frozen=True)
class MetaNodes:
    """The meta-tree behind a final tree: its nodes, and where each begins in the tree."""

    meta: MetaTree  # without inner trees, as `tree` has their conditions; classifiers are kept as rules
    unit: float  # cases that a weight of 1 in `meta` stands for
    settings: GrowthSettings
    tree: Any  # Tree or ClassifierTree: the final tree
    entry: np.ndarray  # int32 (n_meta_nodes,): node of the tree at which each meta-node begins; empty for classifiers
    order: LeafOrder | None = None  # order of the leaves, if it is not the one of `settings`

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays by name, for a file; `from_arrays` restores an equal object."""
        nodes = {name: getattr(self.meta, name) for name in ARRAYS[:-1]} | {"entry": self.entry}
        order = {} if self.order is None else {"leaves": self.order.leaves, "place": self.order.place}
        return nodes | {"unit": np.array(self.unit)} | order

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], settings: GrowthSettings, tree: Tree) -> MetaNodes:
        """Restore from arrays made by `to_arrays`, for their tree; ValueError if they do not fit together."""
        known = {*ARRAYS, "unit"}
        if not known <= set(arrays) or set(arrays) - known not in (set(), {"leaves", "place"}):
            raise InputError("The model's meta-tree is incomplete.")
        order = LeafOrder(arrays["leaves"], arrays["place"]) if "leaves" in arrays else None
        if not all(_invariants(arrays, order, tree)):
            raise InputError("The model's meta-tree and its tree do not fit together.")
        left, right, depth, positive, total, entry = (arrays[name] for name in ARRAYS)
        meta = MetaTree(left, right, depth, positive, total, [None] * len(left))
        return cls(meta, float(arrays["unit"]), settings, tree, entry, order)

    def table(self) -> dict[str, np.ndarray]:
        """Return one row per meta-node: node, parent, depth, is_leaf, n, positives, alpha, beta, auc_gain.

        alpha and beta are the shares of all negatives and of all positives in the node; auc_gain is the area under the
        ROC curve that its two children add.
        """
        meta = self.meta
        parent, inner = parents_of(meta.left, meta.right), np.flatnonzero(~meta.is_leaf)
        negative = meta.total - meta.positive
        alpha, beta = negative / max(negative[0], 1), meta.positive / max(meta.positive[0], 1)
        gain = np.zeros(len(meta.left))
        left, right = meta.left[inner], meta.right[inner]
        gain[inner] = 0.5 * (beta[left] * alpha[right] - beta[right] * alpha[left])
        return {"node": np.arange(len(parent)), "parent": parent, "depth": meta.depth, "is_leaf": meta.is_leaf,
                "n": meta.total * self.unit, "positives": meta.positive * self.unit, "alpha": alpha, "beta": beta,
                "auc_gain": gain}  # fmt: skip

    def check(self, nodes: Iterable[int], caller: str) -> np.ndarray:
        """Return the meta-nodes of a list; raises ValueError if one does not exist."""
        chosen = np.asarray(list(nodes) if isinstance(nodes, Iterable) else [nodes])
        n = len(self.meta.left)
        known = len(chosen) == 0 or (chosen.dtype.kind in "iu" and bool(np.all((chosen >= 0) & (chosen < n))))
        if not known:
            raise InputError(
                f"{caller} needs meta-nodes from 0 to {n - 1}, got {chosen.tolist()!r}. Hint: `nodes_` lists them."
            )
        return chosen.astype(NODE)

    def ending_in(self, nodes: np.ndarray) -> MetaNodes:
        """Return the sub-tree that ends in the given meta-nodes."""
        ends = nodes[~self.meta.is_leaf[nodes]]
        meta, is_kept = self.meta.collapsed(ends), self.meta.is_above(ends)
        order = self.order and self._rearranged(ends, meta)
        in_order = order or order_leaves(self.settings, meta, self.unit)
        if self._is_classifiers:
            return replace(self, meta=meta, tree=ClassifierTree(meta, self.unit, self.settings, in_order), order=order)
        bare, new = part_of_tree(self.tree, 0, self.entry[ends])
        entry = new[self.entry[is_kept]]
        tree = rank_leaves(self.settings, bare, meta, self.unit, entry, self.tree.scoring, in_order)
        return replace(self, meta=meta, tree=tree, entry=entry, order=order)

    @property
    def _is_classifiers(self) -> bool:
        return isinstance(self.tree, ClassifierTree)

    def _rearranged(self, ends: np.ndarray, meta: MetaTree) -> LeafOrder:
        """Return the leaf order of a sub-tree: leaves keep their place, a merged node gets its leaves' mean place."""
        assert self.order is not None
        whole, n = self.meta, len(self.meta.left)
        weight, place = np.zeros(n), np.zeros(n)
        leaves = self.order.leaves
        weight[leaves], place[leaves] = whole.total[leaves], self.order.place
        for node in np.flatnonzero(~whole.is_leaf)[::-1]:  # children first
            left, right = whole.left[node], whole.right[node]
            weight[node] = weight[left] + weight[right]
            place[node] = (weight[left] * place[left] + weight[right] * place[right]) / weight[node]
        is_kept = whole.is_above(ends)
        key, was_leaf = place[is_kept], whole.is_leaf[is_kept]
        order = np.flatnonzero(meta.is_leaf)
        order = order[np.argsort(key[order], kind="stable")]
        shares = (np.diff(key[order]) == 0) & was_leaf[order][1:] & was_leaf[order][:-1]
        return LeafOrder(order, np.append(0, np.cumsum(~shares)))

    def rule_at(self, node: int) -> Tree | ClassifierRule:
        """Return what splits one meta-node: a tree of two leaves, the better one first, or a fitted classifier."""
        if self._is_classifiers:
            return self.meta.inner[node]
        three = [node, int(self.meta.left[node]), int(self.meta.right[node])]
        single = MetaTree(
            np.array([1, -1, -1], NODE),
            np.array([2, -1, -1], NODE),
            np.array([0, 1, 1], NODE),
            self.meta.positive[three],
            self.meta.total[three],
            [None] * 3,
        )
        bare, new = part_of_tree(self.tree, int(self.entry[node]), self.entry[three[1:]])
        in_order = LeafOrder.apart(np.array([1, 2]))
        return rank_leaves(self.settings, bare, single, self.unit, new[self.entry[three]], TIES, in_order)


def _invariants(arrays: Mapping[str, np.ndarray], order: LeafOrder | None, tree: Tree) -> Iterator[bool | np.bool]:
    """Yield whether each invariant of a meta-tree in a file holds; one may rely on those before it."""
    left, right, depth, positive, total, entry = (arrays[name] for name in ARRAYS)
    unit, shape = arrays["unit"], (len(left),) if left.ndim == 1 else (0,)
    yield shape[0] > 0 and all(a.shape == shape and a.dtype == NODE for a in (left, right, depth, entry))
    yield all(a.shape == shape and a.dtype == WEIGHT for a in (positive, total))
    yield unit.shape == () and unit.dtype == np.float64 and 0 < float(unit) < np.inf
    inner, ends = np.flatnonzero(left >= 0), np.flatnonzero(left < 0)
    first, second = left[inner], right[inner]
    yield (
        np.array_equal(np.sort(np.append(first, second)), np.arange(1, len(left)))
        and np.all(left[ends] == -1)
        and np.all(right[ends] == -1)
    )
    yield np.all(first > inner) and np.all(second > inner)
    yield depth[0] == 0 and all(np.array_equal(depth[child], depth[inner] + 1) for child in (first, second))
    yield np.all((positive >= 0) & (positive <= total) & (total > 0)) and total[0] <= MAX_WEIGHT
    yield all(np.array_equal(weight[inner], weight[first] + weight[second]) for weight in (positive, total))
    yield np.all((entry >= 0) & (entry < len(tree))) and len(np.unique(entry)) == len(entry) and entry[0] == 0
    yield np.array_equal(tree.is_leaf[entry], left < 0) and np.all(np.isin(np.flatnonzero(tree.is_leaf), entry))
    yield np.all(entry[first] > entry[inner]) and np.all(entry[second] > entry[inner])
    yield order is None or _is_order(order, ends)


def _is_order(order: LeafOrder, ends: np.ndarray) -> bool:
    """Return True if an order of leaves names each of them once, with places 0, 1, ... that do not fall."""
    leaves, place = order.leaves, order.place
    if leaves.ndim != 1 or place.shape != leaves.shape or not leaves.dtype == place.dtype == np.int64:
        return False
    if not np.array_equal(np.sort(leaves), ends) or place.min() < 0 or place.max() >= len(ends):
        return False
    steps = place[1:] - place[:-1]
    return place[0] == 0 and bool(np.all((steps == 0) | (steps == 1)))


@dataclass(frozen=True)
class NodeClassifier:
    """What splits one meta-node of a ranker: which of the rows that reach it belong to the better half.

    Attributes
    ----------
    node : int
    rule : Tree or ClassifierRule
    alpha, beta : float
        Shares of the node's negatives and positives in the better half, in training.
    """

    node: int
    rule: Any
    alpha: float
    beta: float
    columns: list[Column]
    encode: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Return True for rows in the better half: bool (n,)."""
        matrix = self.encode(X)
        if isinstance(self.rule, Tree):
            return self.rule.leaf[self.rule.apply(matrix)] == 0
        return self.rule.is_left(matrix)

    def to_text(self, *, exact: bool = False) -> str:
        """Return the rule in words; with `exact`, in full."""
        title = f"node {self.node}: leaf 1 is the better half"
        if isinstance(self.rule, Tree):
            return to_text(self.rule, self.columns, title=title, exact=exact)
        side = "negative" if self.rule.turned else "positive"
        return f"node {self.node}: the better half is what this classifier predicts as {side}\n{self.rule.model!r}"

    def __repr__(self) -> str:
        if isinstance(self.rule, ClassifierRule):
            by = type(self.rule.model).__name__
        else:
            by = plural(int((~self.rule.is_leaf).sum()), "condition")
        return f"<NodeClassifier of node {self.node}, {by}, alpha {self.alpha:.4g}, beta {self.beta:.4g}>"
