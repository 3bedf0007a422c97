"""Pruning by merging neighbours in the ranking, siblings or not: section V-A of the TreeRank paper.

The paper's theta gives each cell k, in the order of the ranking, a place theta(k) with theta(0) = 0 and
theta(k) - theta(k - 1) in {0, 1}: cells at the same place are merged. (The paper has ">= 1" for the difference, a
misprint: it would allow no merge at all.) Its size, #theta = theta(last), is the number of groups minus one. Here a
group is a place, and AUC - penalty * (number of groups) is maximised: the same problem, as one group always remains.

The knots of a merged ranking are some of the knots of its ROC curve. With cumulative weights P_i, N_i and totals P, N,
an edge from knot i to knot j adds (P_i N_j - P_j N_i) / (2 P N) to the area: the best groups are a best chain of knots.
Only knots of the concave hull matter: all knots of a chain under one edge of the hull can be lifted onto it and then
moved along it to its ends, because the area is linear in their places there. On the hull, dynamic programming over
chains of 1, 2, ... edges is exact in O(n_cells**2), and each further group adds at most as much as the one before, so
the best groups for all penalties come out at once.

`toprank.tree.meta.prune` merges only siblings, which leaves a tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from toprank._core.cells import best_chains, upper_hull
from toprank._core.dtypes import NODE
from toprank.errors import InputError
from toprank.tree.meta.shake import check_cells


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

        Parameters
        ----------
        penalty : float
            Non-negative.

        Returns
        -------
        group : int32 array of shape (n_cells,)
            From 0, in the order of the ranking. Cells without weight are in the group of the cell before them.
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

    Parameters
    ----------
    positive, negative : arrays of shape (n_cells,)
        Weights of the cells in the order of the ranking, non-negative; both classes have weight.

    Returns
    -------
    path : MergePath

    Examples
    --------
    >>> from toprank.tree.meta.merge import merge_path
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
