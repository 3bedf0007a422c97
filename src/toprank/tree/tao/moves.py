"""Moves of one threshold of a tree: the trees that differ only in it, and the mistakes of each.

A cost ratio leads to a corner of the convex hull of all trees' mistakes. Between two corners there is also a best tree
for every number of false positives (the constrained form, appendix B of the paper), but no ratio leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from toprank._core.dtypes import CATEGORY
from toprank.tree.bin_mapper import between
from toprank.tree.tao.alternating_tree import AlternatingTree
from toprank.tree.tao.problem import CostProblem
from toprank.tree.tao.splits import values_of


class Mistakes(NamedTuple):
    """False positives and false negatives, in integer weights."""

    false_positives: int
    false_negatives: int


class Move(NamedTuple):
    """A node of a tree, its new threshold, and the resulting mistakes of the tree."""

    node: int
    threshold: float
    mistakes: Mistakes


@dataclass(frozen=True, eq=False)
class Moves:
    """The trees that moving one threshold of a tree with two labels leads to, without dominated ones.

    Ties go to the first node, then to the lowest threshold.

    Attributes
    ----------
    now : Mistakes
        Mistakes of the unchanged tree.
    node : int64 array of shape (m,)
    low, high : float64 arrays of shape (m,)
        The threshold is between these two values of rows of the node.
    false_positives, false_negatives : int64 arrays of shape (m,)
        Mistakes of the whole tree, in integer weights, ascending and descending.
    """

    now: Mistakes
    node: np.ndarray
    low: np.ndarray
    high: np.ndarray
    false_positives: np.ndarray
    false_negatives: np.ndarray

    @classmethod
    def from_tree(cls, tree: AlternatingTree, problem: CostProblem) -> Moves:
        """Moves of the thresholds on numbers and weighted sums; rows with a missing number keep their side.

        One sort per node, of the rows whose side matters.
        """
        everything = np.arange(len(problem))
        now = _mistakes(problem, everything, tree.labels(problem, everything))
        reached = tree.reduced_sets(problem)
        found = [np.zeros((5, 0))]
        for node, split in enumerate(tree.splits):
            if split is not None and split.kind != CATEGORY:
                moves = _moves_at(tree, problem, node, reached[node], now)
                found.append(moves[:, undominated(moves[3], moves[4])])
        together = np.concatenate(found, axis=1)
        node, low, high, fp, fn = together[:, undominated(together[3], together[4])]
        return cls(now, node.astype(np.int64), low, high, fp.astype(np.int64), fn.astype(np.int64))

    def __len__(self) -> int:
        return len(self.node)

    def __getitem__(self, at: int) -> Move:
        with np.errstate(invalid="ignore"):  # sums may have overflowed
            threshold = float(between(self.low[at], self.high[at]))
        mistakes = Mistakes(int(self.false_positives[at]), int(self.false_negatives[at]))
        return Move(int(self.node[at]), threshold, mistakes)


def with_threshold(tree: AlternatingTree, node: int, threshold: float) -> AlternatingTree:
    """The tree with another threshold at one node."""
    other, split = tree.copy(), tree.splits[node]
    assert split is not None
    other.splits[node] = replace(split, threshold=threshold)
    return other


def _mistakes(problem: CostProblem, rows: np.ndarray, called: np.ndarray) -> Mistakes:
    """Mistakes if rows get these labels."""
    weight, label = problem.rows.weight[rows], problem.rows.label[rows]
    wrong = called != label
    return Mistakes(int(weight[wrong & (label == 0)].sum()), int(weight[wrong & (label == 1)].sum()))


def _moves_at(tree: AlternatingTree, problem: CostProblem, node: int, reached: np.ndarray, now: Mistakes) -> np.ndarray:
    """All moves of one threshold, one per column: node, low, high, false positives and false negatives of the tree."""
    split = tree.splits[node]
    assert split is not None
    at_left, at_right = (tree.labels(problem, reached, int(child[node])) for child in (tree.left, tree.right))
    cares = at_left != at_right
    rows, at_left = reached[cares], at_left[cares]
    value = values_of(problem, split, rows)
    known = ~np.isnan(value)
    rows, at_left, value = rows[known], at_left[known], value[known]
    goes_left = tree.goes_left(problem, node, rows)
    here = _mistakes(problem, rows, np.where(goes_left, at_left, 1 - at_left))
    order = np.argsort(value, kind="stable")
    rows, below, ascending = rows[order], at_left[order], value[order]
    cut = np.flatnonzero(ascending[1:] != ascending[:-1])
    weight, label = problem.rows.weight[rows], problem.rows.label[rows]
    found = [np.full(len(cut), node), ascending[cut], ascending[cut + 1]]
    for of_class, elsewhere in ((0, now.false_positives - here.false_positives),
                                (1, now.false_negatives - here.false_negatives)):  # fmt: skip
        # Below the threshold a row gets the label of the left child, above it the opposite: one of them is wrong.
        wrong_below = np.cumsum(weight * ((label == of_class) & (below != label)))
        wrong_above = np.cumsum((weight * ((label == of_class) & (below == label)))[::-1])[::-1]
        found.append(wrong_below[cut] + wrong_above[cut + 1] + elsewhere)
    return np.array(found, np.float64)  # weights stay below 2**52


def undominated(false_positives: np.ndarray, false_negatives: np.ndarray) -> np.ndarray:
    """Positions of pairs that no other one dominates, false positives ascending; ties go to the first.

    Examples
    --------
    >>> import numpy as np
    >>> undominated(np.array([3, 1, 2, 2]), np.array([0, 2, 2, 1]))
    array([1, 3, 0])
    """
    order = np.lexsort((false_negatives, false_positives))
    ordered = false_negatives[order]
    fewest = np.minimum.accumulate(np.append(np.inf, ordered))[:-1]
    return order[ordered < fewest]
