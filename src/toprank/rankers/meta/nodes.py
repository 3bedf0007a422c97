"""`MetaNodes`: the meta-tree behind a fitted ranker, node by node: its table, its sub-trees, the rule at one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._core.dtypes import NODE
from toprank.errors import InputError
from toprank.export import to_text
from toprank.rankers.growth import Arrangement, Growth
from toprank.rankers.meta.classifier_tree import ClassifierTree
from toprank.rankers.meta.cutters import ClassifierRule
from toprank.tree.columns import Column
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree


@dataclass(frozen=True)
class MetaNodes:
    """A meta-tree with what it takes to finish parts of it."""

    meta: MetaTree
    unit: float
    growth: Growth
    scoring: Scoring
    is_categorical: np.ndarray
    arrangement: Arrangement | None = None
    """Order of the leaves, where it is not the one that `growth` gives."""

    def table(self) -> dict[str, np.ndarray]:
        """One row a meta-node: node, parent, depth, is_leaf, n, positives, alpha, beta, auc_gain.

        alpha and beta are the shares of all negatives and of all positives in the node; auc_gain is what its two
        children add to the area under the ROC curve in its place.
        """
        meta = self.meta
        parent = np.full(len(meta.left), -1)
        inner = np.flatnonzero(~meta.is_leaf)
        parent[meta.left[inner]] = parent[meta.right[inner]] = inner
        negative = meta.total - meta.positive
        alpha, beta = negative / max(negative[0], 1), meta.positive / max(meta.positive[0], 1)
        gain = np.zeros(len(meta.left))
        left, right = meta.left[inner], meta.right[inner]
        gain[inner] = 0.5 * (beta[left] * alpha[right] - beta[right] * alpha[left])
        return {"node": np.arange(len(parent)), "parent": parent, "depth": meta.depth, "is_leaf": meta.is_leaf,
                "n": meta.total * self.unit, "positives": meta.positive * self.unit, "alpha": alpha, "beta": beta,
                "auc_gain": gain}  # fmt: skip

    def check(self, nodes: Iterable[int], caller: str) -> np.ndarray:
        """Meta-nodes of a list; raises ValueError where one does not exist."""
        chosen = np.asarray(list(nodes) if isinstance(nodes, Iterable) else [nodes])
        n = len(self.meta.left)
        known = len(chosen) == 0 or (chosen.dtype.kind in "iu" and bool(np.all((chosen >= 0) & (chosen < n))))
        if not known:
            raise InputError(
                f"{caller} needs meta-nodes from 0 to {n - 1}, got {chosen.tolist()!r}. Hint: `nodes_` lists them."
            )
        return chosen.astype(NODE)

    def ending_in(self, nodes: np.ndarray) -> MetaNodes:
        """The part that ends in the given meta-nodes."""
        ends = nodes[~self.meta.is_leaf[nodes]]
        meta = self.meta.collapsed(ends)
        return replace(self, meta=meta, arrangement=self.arrangement and self._rearranged(ends, meta))

    def _rearranged(self, ends: np.ndarray, meta: MetaTree) -> Arrangement:
        """Leaves of a part where those of the whole stand; a node that was none, at the mean place of its leaves."""
        assert self.arrangement is not None
        whole, n = self.meta, len(self.meta.left)
        weight, place = np.zeros(n), np.zeros(n)
        leaves = self.arrangement.leaves
        weight[leaves], place[leaves] = whole.total[leaves], self.arrangement.place
        is_kept = np.ones(n, bool)
        for node in np.flatnonzero(~whole.is_leaf)[::-1]:  # children first
            left, right = whole.left[node], whole.right[node]
            weight[node] = weight[left] + weight[right]
            place[node] = (weight[left] * place[left] + weight[right] * place[right]) / weight[node]
        for node in np.flatnonzero(~whole.is_leaf):  # parents first
            if node in ends or not is_kept[node]:
                is_kept[[whole.left[node], whole.right[node]]] = False
        key, was_leaf = place[is_kept], whole.is_leaf[is_kept]
        order = np.flatnonzero(meta.is_leaf)
        order = order[np.argsort(key[order], kind="stable")]
        shares = (np.diff(key[order]) == 0) & was_leaf[order][1:] & was_leaf[order][:-1]
        return Arrangement(order, np.append(0, np.cumsum(~shares)))

    def finished(self) -> Any:
        """A tree of the meta-tree."""
        arrangement = self.arrangement or self.growth.arrange(self.meta, self.unit)
        if any(isinstance(rule, ClassifierRule) for rule in self.meta.inner):
            return ClassifierTree(self.meta, self.unit, self.growth, arrangement)
        return self.growth.finish(self.meta, self.unit, self.is_categorical, self.scoring, arrangement)[0]

    def rule_at(self, node: int) -> Tree | ClassifierRule:
        """What parts one meta-node: a tree of two leaves, the better one at position 0, or a fitted classifier."""
        rule = self.meta.inner[node]
        if isinstance(rule, ClassifierRule):
            return rule
        three = [node, int(self.meta.left[node]), int(self.meta.right[node])]
        single = MetaTree(
            np.array([1, -1, -1], NODE),
            np.array([2, -1, -1], NODE),
            np.array([0, 1, 1], NODE),
            self.meta.positive[three],
            self.meta.total[three],
            [rule, None, None],
        )
        in_order = Arrangement.apart(np.array([1, 2]))
        return self.growth.finish(single, self.unit, self.is_categorical, Scoring(), in_order)[0]


@dataclass(frozen=True)
class NodeClassifier:
    """What parts one meta-node of a ranker: which of the rows that reach it belong to the better half.

    Attributes
    ----------
    node : int
    rule : Tree or ClassifierRule
    alpha, beta : float
        Shares of the node's negatives and positives that it calls positive, in training.
    """

    node: int
    rule: Any
    alpha: float
    beta: float
    columns: list[Column]
    encode: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """True where a row belongs to the better half: bool (n,)."""
        matrix = self.encode(X)
        if isinstance(self.rule, Tree):
            return self.rule.leaf[self.rule.apply(matrix)] == 0
        return self.rule.is_left(matrix)

    def to_text(self, *, exact: bool = False) -> str:
        """The rule in words; with `exact`, in full."""
        title = f"node {self.node}: leaf 1 is the better half"
        if isinstance(self.rule, Tree):
            return to_text(self.rule, self.columns, title=title, exact=exact)
        called = "negative" if self.rule.turned else "positive"
        return f"node {self.node}: the better half is what this classifier calls {called}\n{self.rule.model!r}"

    def __repr__(self) -> str:
        by = type(self.rule.model).__name__ if isinstance(self.rule, ClassifierRule) else self._size_in_words()
        return f"<NodeClassifier of node {self.node}, {by}, alpha {self.alpha:.4g}, beta {self.beta:.4g}>"

    def _size_in_words(self) -> str:
        n = int((~self.rule.is_leaf).sum())
        return "1 condition" if n == 1 else f"{n:,} conditions"
