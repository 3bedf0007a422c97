"""Cost-complexity pruning: merges siblings, the weakest link first, or any neighbours in the ranking.

`link_penalties` prunes by any measure that is a sum over leaves, such as the weighted 0/1 loss. Training AP and AUC
with constant leaves are such sums, too: what a leaf adds (`Objective.share`) depends only on the leaves to its left,
and merging other subtrees does not change that. So weakest-link pruning (Breiman et al., 1984) is exact for the measure
of the meta-tree's own order of leaves, and its sequence is nested: remark 18 of the TreeRank paper. If leaves are
sorted by rate afterwards, the sequence is the same and its value a close approximation.

`merge_path` merges any neighbours, siblings or not: section V-A of the TreeRank paper. The paper's theta gives each
cell k, in the order of the ranking, a place theta(k) with theta(0) = 0 and theta(k) - theta(k - 1) in {0, 1}: cells at
the same place are merged. (The paper has ">= 1" for the difference, a misprint: it would allow no merge at all.) Its
size, #theta = theta(last), is the number of groups minus one. Here a group is a place, and AUC - penalty * (number of
groups) is maximised: the same problem, as one group always remains.

The knots of a merged ranking are some of the knots of its ROC curve. With cumulative weights P_i, N_i and totals P, N,
an edge from knot i to knot j adds (P_i N_j - P_j N_i) / (2 P N) to the area: the best groups are a best chain of knots.
Only knots of the concave hull matter: all knots of a chain under one edge of the hull can be lifted onto it and then
moved along it to its ends, because the area is linear in their places there. On the hull, dynamic programming over
chains of 1, 2, ... edges is exact in O(n_cells**2), and each further group adds at most as much as the one before, so
the best groups for all penalties come out at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toprank._core.cells import best_chains, upper_hull
from toprank._core.dtypes import NODE
from toprank.errors import InputError
from toprank.tree.flatten import part_of_tree
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, Objective
from toprank.tree.meta.shake import check_cells
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
    """`prune` for a plain tree, without its order of leaves."""
    return part_of_tree(tree, 0, np.flatnonzero(penalty <= alpha))[0] if alpha > 0 else tree


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
    before = np.zeros(len(meta.left)), np.zeros(len(meta.left))
    for node in np.flatnonzero(~meta.is_leaf):  # parents first
        left, right = meta.left[node], meta.right[node]
        for weight, sums in zip((meta.positive, meta.total), before, strict=True):
            sums[left], sums[right] = sums[node], sums[node] + weight[left]
    return objective.share((meta.positive, meta.total), before, (meta.positive[0], meta.total[0]))


# --- merging neighbours -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MergePath:
    """Best merges of neighbouring cells for every penalty.

    Unlike with weakest links, the groups at one penalty need not be unions of those at a smaller one.

    Attributes
    ----------
    penalties : float64 array of shape (n_steps,)
        Smallest penalty that gives each number of groups, increasing; the first is 0.
    n_groups : int64 array of shape (n_steps,)
        Decreasing to 1. The first is the smallest number that reaches the largest area.
    auc : float64 array of shape (n_steps,)
        Area under the ROC curve of the merged cells, decreasing to 1/2.
    best_auc : float64 array of shape (n_cells,)
        Largest area with at most 1, 2, ..., n_cells groups.
    knots : int64 array
        Corners of the concave hull: group boundaries without a penalty, the number of cells before each.
    """

    penalties: np.ndarray
    n_groups: np.ndarray
    auc: np.ndarray
    best_auc: np.ndarray
    knots: np.ndarray
    _positive: np.ndarray
    _negative: np.ndarray

    def groups(self, penalty: float) -> np.ndarray:
        """Group of each cell that maximises AUC - penalty * (number of groups); ties go to the fewest groups.

        int32 (n_cells,), from 0, in the order of the ranking. Cells without weight are in the group of the cell before
        them.
        """
        if not penalty >= 0:
            raise InputError(
                f"The 'penalty' parameter of MergePath.groups must be a float in the range [0, inf]. Got {penalty!r} "
                "instead. Hint: MergePath.penalties lists the penalties at which groups change."
            )
        n_groups = int(self.n_groups[np.searchsorted(self.penalties, penalty, side="right") - 1])
        boundaries = self.knots[self._best_chain(n_groups)][1:-1]
        return np.searchsorted(boundaries, np.arange(len(self.best_auc)), side="right").astype(NODE)

    def _best_chain(self, n_edges: int) -> np.ndarray:
        """Corners of the hull on the best chain with this many edges."""
        n_corners = len(self.knots)
        if n_edges == n_corners - 1:
            return np.arange(n_corners)
        start = np.empty((n_edges, n_corners), NODE)
        best_chains(self._positive, self._negative, n_edges, np.empty(n_edges), start)
        chain = [n_corners - 1]
        for row in start[::-1]:
            chain.append(int(row[chain[-1]]))
        return np.array(chain[::-1])


def merge_path(positive: ArrayLike, negative: ArrayLike) -> MergePath:
    """Best merges of neighbouring cells for every penalty at once.

    Weights of the cells are in the order of the ranking and non-negative; both classes have weight.

    Examples
    --------
    >>> from toprank.tree.meta.prune import merge_path
    >>> path = merge_path([4, 2, 2, 0], [0, 1, 2, 5])
    >>> path.n_groups, path.penalties.round(4), path.auc.round(4)
    (array([4, 3, 2, 1]), array([0.    , 0.0156, 0.0938, 0.3125]), array([0.9219, 0.9062, 0.8125, 0.5   ]))
    >>> path.groups(0.05)
    array([0, 1, 1, 2], dtype=int32)
    """
    positive, negative = check_cells(positive, negative, "merge_path")
    found, passed = (np.append(0.0, np.cumsum(values)) for values in (positive, negative))
    hull = np.empty(len(found), np.int64)
    knots = hull[: upper_hull(found, passed, hull)].copy()
    found, passed = found[knots], passed[knots]
    n_corners = len(knots)
    area = np.empty(n_corners - 1)
    best_chains(found, passed, n_corners - 1, area, np.empty((1, n_corners), NODE))
    unit = 2 * found[-1] * passed[-1]
    # Gain of the second, third, ... group; rounding must not make it increase.
    added = np.minimum.accumulate(np.diff(area) / unit)
    penalties = np.append(0.0, np.unique(added[added > 0]))
    n_groups = 1 + np.searchsorted(-added, -penalties, side="left")
    best_auc = np.append(0.5 + area / unit, np.full(len(positive) - len(area), 0.5 + area[-1] / unit))
    return MergePath(penalties, n_groups, best_auc[n_groups - 1], best_auc, knots, found, passed)
