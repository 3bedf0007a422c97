"""Cost-complexity pruning of trees and meta-trees: merges siblings, the weakest link first.

`link_penalties` prunes by any measure that is a sum over leaves, such as the weighted 0/1 loss. Training AP and AUC
with constant leaves are such sums, too: what a leaf adds (`Objective.share`) depends only on the leaves to its left,
and merging other subtrees does not change that. So weakest-link pruning (Breiman et al., 1984) is exact for the measure
of the meta-tree's own order of leaves, and its sequence is nested: remark 18 of the TreeRank paper. If leaves are
sorted by rate afterwards, the sequence is the same and its value a close approximation.

`toprank.tree.meta.merge` merges any neighbours, siblings or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toprank._core.dtypes import NODE
from toprank.tree.flatten import BLANK
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, Objective
from toprank.tree.structure import Tree, parents_of

SMALLEST_PENALTY = float(np.nextafter(0.0, 1.0))
"""Nodes that add nothing are pruned at any positive penalty."""


def collapse_penalties(meta: MetaTree, objective: Objective = AVERAGE_PRECISION) -> np.ndarray:
    """Penalty per leaf at which each meta-node becomes a leaf: infinity at leaves, non-decreasing towards the root.

    The pruned tree for a penalty alpha turns every meta-node with a value <= alpha into a leaf; it maximises
    the objective's measure - alpha * (number of leaves) over all prunings.

    Examples
    --------
    Six positives and six negatives in three leaves: (4, 0), (2, 2) and (0, 4). Merging the first two loses
    1/2 (4 * 2 - 2 * 0) / 36 of the AUC, merging all three 1/2.

    >>> import numpy as np
    >>> from toprank.tree.meta.meta_tree import MetaTree
    >>> from toprank.tree.meta.objectives import ROC_AREA
    >>> from toprank.tree.meta.prune import collapse_penalties
    >>> left, right, depth = np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1]), np.array([0, 1, 1, 2, 2])
    >>> meta = MetaTree(left, right, depth, np.array([6, 6, 0, 4, 2]), np.array([12, 8, 4, 4, 4]), [None] * 5)
    >>> collapse_penalties(meta, ROC_AREA).round(4)
    array([0.3333, 0.1111,    inf,    inf,    inf])
    """
    return link_penalties(meta.left, meta.right, _shares_as_leaves(meta, objective))


def link_penalties(left: np.ndarray, right: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Penalty per leaf at which each node becomes a leaf: infinity at leaves, non-decreasing towards the root.

    The pruned tree for a penalty alpha turns every node with a result <= alpha into a leaf; it maximises the sum of
    its leaves' values - alpha * (number of leaves) over all prunings; ties go to the smallest tree.

    Parameters
    ----------
    left, right : int arrays of shape (n_nodes,)
        Children, larger than their parent, -1 at leaves.
    value : float64 array of shape (n_nodes,)
        What each node adds to the measure as a leaf; whole numbers below 2**52 give exact sums.

    Examples
    --------
    A root with 4 mistakes; its left child, with 2, has two leaves without any; its right child is a leaf with 1.

    >>> import numpy as np
    >>> from toprank.tree.meta.prune import link_penalties
    >>> left, right = np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1])
    >>> link_penalties(left, right, -np.array([4.0, 2.0, 1.0, 0.0, 0.0]))
    array([1.5, 1.5, inf, inf, inf])
    """
    sequence = _Sequence(left, right, value)
    penalty = np.full(len(left), np.inf)
    floor = -np.inf
    while sequence.is_open[0]:
        link, weakest = sequence.weakest_links()
        floor = max(link, floor)
        penalty[weakest] = floor
        for node in weakest[::-1].tolist():  # children first
            sequence.collapse(node)
    for node in np.flatnonzero(left >= 0):  # nodes below a collapsed node go with it
        for child in (left[node], right[node]):
            if left[child] >= 0:
                penalty[child] = min(penalty[child], penalty[node])
    return penalty


def prune(meta: MetaTree, penalty: np.ndarray, alpha: float) -> MetaTree:
    """The meta-tree with every node of penalty <= alpha turned into a leaf; unchanged for alpha = 0."""
    if alpha <= 0:
        return meta
    return meta.collapsed(np.flatnonzero(penalty <= alpha))


def prune_tree(tree: Tree, penalty: np.ndarray, alpha: float) -> Tree:
    """`prune` for a plain tree of conditions on one column, without its order of leaves."""
    if alpha <= 0:
        return tree
    parent = parents_of(tree.left, tree.right)
    # Penalties do not decrease towards the root: a node remains if its parent does not collapse.
    kept = np.flatnonzero((parent < 0) | (penalty[parent] > alpha))
    is_end = penalty[kept] <= alpha
    new_index = np.zeros(len(tree), NODE)
    new_index[kept] = np.arange(len(kept))
    columns: dict[str, Any] = {
        name: np.where(is_end, BLANK[name], getattr(tree, name)[kept])
        for name in ("kind", "feature", "threshold", "missing_left", "category_at", "gain")
    }
    for name in ("left", "right"):
        child = getattr(tree, name)[kept]
        columns[name] = np.where(is_end | (child < 0), -1, new_index[child])
    has_categories = columns["category_at"] >= 0
    columns["category_bits"] = tree.category_bits[columns["category_at"][has_categories]]
    columns["category_at"][has_categories] = np.arange(has_categories.sum())
    columns |= {name: np.full(len(kept), BLANK[name]) for name in ("leaf", "score", "rate")}
    columns |= {name: getattr(tree, name)[kept] for name in ("positive", "negative")}
    return replace(tree, **columns, oblique_at=np.zeros(len(kept) + 1, NODE))


class _Sequence:
    """The remaining tree during pruning: each subtree's value and number of leaves, and the open nodes."""

    def __init__(self, left: np.ndarray, right: np.ndarray, whole: np.ndarray):
        self.left, self.right, self.parent = left.tolist(), right.tolist(), parents_of(left, right).tolist()
        self.whole, self.value, self.leaves = whole, whole.copy(), np.ones(len(whole))
        self.is_open = left >= 0
        for node in np.flatnonzero(self.is_open)[::-1].tolist():  # children first
            self._sum(node)

    def weakest_links(self) -> tuple[float, np.ndarray]:
        """The smallest loss per removed leaf, and the open nodes that have it."""
        nodes = np.flatnonzero(self.is_open)
        link = (self.value[nodes] - self.whole[nodes]) / (self.leaves[nodes] - 1)
        return float(link.min()), nodes[link <= link.min()]

    def collapse(self, node: int) -> None:
        """Turn a node into a leaf and update the counts above it."""
        self.value[node], self.leaves[node] = self.whole[node], 1
        below = [node]
        while below:
            closed = below.pop()
            self.is_open[closed] = False
            below += [child for child in (self.left[closed], self.right[closed]) if self.is_open[child]]
        above = self.parent[node]
        while above >= 0:
            self._sum(above)
            above = self.parent[above]

    def _sum(self, node: int) -> None:
        for sums in (self.value, self.leaves):
            sums[node] = sums[self.left[node]] + sums[self.right[node]]


def _shares_as_leaves(meta: MetaTree, objective: Objective) -> np.ndarray:
    """What each meta-node would add to the measure as a leaf."""
    before_positive, before_total = np.zeros(len(meta.left)), np.zeros(len(meta.left))
    for node in np.flatnonzero(~meta.is_leaf):  # parents first
        left, right = meta.left[node], meta.right[node]
        before_positive[left], before_total[left] = before_positive[node], before_total[node]
        before_positive[right] = before_positive[node] + meta.positive[left]
        before_total[right] = before_total[node] + meta.total[left]
    return objective.share(meta.positive, meta.total, before_positive, before_total, meta.positive[0], meta.total[0])
