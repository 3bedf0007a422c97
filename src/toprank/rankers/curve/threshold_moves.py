"""Trees between those of two costs: a neighbour with one threshold moved.

The trees of cost ratios are corners of a hull, and there may be a wide gap between two of them. The constrained form
of the problem, the fewest false negatives for a given limit on false positives (appendix B of the paper), has
solutions there too. They are searched among the trees that differ from a neighbour in one threshold, which one sort
per node finds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.curve.path import ThresholdMove, votes_of
from toprank.tree.tao.alternating_tree import AlternatingTree, pruned
from toprank.tree.tao.moves import Move, Moves, undominated, with_threshold
from toprank.tree.tao.problem import CostProblem

SLACK = 1e-9
"""Tolerance for rounding in a number of parts, or in a share."""

MOST_PARTS = 2.0**40
"""Most parts of a gap; there are never more than distinct false positives in it."""


class Place(NamedTuple):
    """Where a tree lies between two neighbours of a path."""

    gap: int  # position of the neighbour with more false positives
    rate: float  # false positives of the tree, as a share of the negatives


class FoundTree(NamedTuple):
    """The tree of a path, by its position, whose threshold to move, and how."""

    at: int
    move: Move


@dataclass(frozen=True)
class ThresholdMoves:
    """Finds trees between the neighbours of a path."""

    models: Sequence[TAOTree]  # by ascending cost of a false positive
    data: BinnedCases  # the data that the models were fitted on
    problem: CostProblem  # of `data`, at some cost
    trees: Sequence[AlternatingTree]  # of the models
    moves: Sequence[Moves]  # of each tree

    @classmethod
    def from_trees(cls, models: Sequence[TAOTree], data: BinnedCases, threads: Threads) -> ThresholdMoves:
        """Prepare the search between these models, which were fitted on `data`."""
        problem = models[0]._problem(np.array([[0.0, 1.0], [1.0, 0.0]]), data, Threads())
        trees = [model._alternating(problem) for model in models]
        return cls(models, data, problem, trees, threads.run(lambda tree: Moves.from_tree(tree, problem), trees))

    def fill(self, gap: int, max_point_gap: float) -> list[FoundTree]:
        """Return the trees between a model and the next one, by falling false positives.

        The gap is divided evenly in false positives, into parts no wider than `max_point_gap` in either error rate.
        The end of each part limits the false positives, and the tree with the fewest missed positives within the limit
        is taken; trees that do not miss fewer than the next model are left out.
        """
        many, few = self.moves[gap].now, self.moves[gap + 1].now
        width = many.false_positives - few.false_positives
        positives, negatives = (max(weight, 1) for weight in self._classes)
        widest = max(width / negatives, (few.false_negatives - many.false_negatives) / positives)
        n_parts = math.ceil(min(widest / max_point_gap, MOST_PARTS) - SLACK)
        if width <= 0 or n_parts < 2:
            return []
        at, index, fp, fn = self._best_moves[gap]
        is_between = (fp < many.false_positives) & (fn < few.false_negatives)
        at, index, fp = at[is_between], index[is_between], fp[is_between]
        # The first part whose end allows this many false positives, and the last one whose end allows no better tree.
        first = np.ceil((fp - few.false_positives) * (n_parts / width) - SLACK)
        last = np.append(first[1:] - 1, n_parts - 1)
        is_taken = np.maximum(first, 1) <= np.minimum(last, n_parts - 1)
        taken = zip(at[is_taken].tolist(), index[is_taken].tolist(), strict=True)
        return [FoundTree(which, self.moves[which][place]) for which, place in taken][::-1]

    def find(self, place: Place) -> FoundTree | None:
        """Return the tree with the fewest missed positives within the false positives of a place; None without one.

        For places of a path fitted on other rows.
        """
        most = place.rate * self._classes[1] * (1 + SLACK)
        at, index, fp, _ = self._best_moves[place.gap]
        allowed = int(np.searchsorted(fp, most, side="right")) - 1
        return None if allowed < 0 else FoundTree(int(at[allowed]), self.moves[at[allowed]][int(index[allowed])])

    def place(self, gap: int, found: FoundTree) -> Place:
        """Return the place of a tree that `fill` found."""
        return Place(gap, found.move.mistakes.false_positives / max(self._classes[1], 1))

    def moved(self, found: FoundTree, position: np.ndarray) -> ThresholdMove:
        """Return how a found tree comes from another one, whose position in the whole path is given."""
        before = float(self.models[found.at].tree_.threshold[found.move.node])
        return ThresholdMove(int(position[found.at]), before, found.move.threshold)

    def fitted(self, found: FoundTree, ratio: float) -> TAOTree:
        """Return the model of a found tree; its cost lies between those of its neighbours."""
        return self.models[found.at]._with_threshold(found.move.node, found.move.threshold, ratio, self.data)

    def votes(self, place: Place, matrix: np.ndarray) -> np.ndarray:
        """Return whether the tree for a place, or else the next model, flags each row, bool (n,)."""
        found = self.find(place)
        if found is None:
            return votes_of(self.models[place.gap + 1], matrix, Threads())
        tree = pruned(with_threshold(self.trees[found.at], found.move.node, found.move.threshold), self.problem)
        return tree.labels_of(matrix) == 1

    @cached_property
    def _classes(self) -> tuple[int, int]:
        """Return the weight of the positives and of the negatives."""
        rows = self.problem.rows
        positives = int(rows.weight[rows.label == 1].sum())
        return positives, int(rows.weight.sum()) - positives

    @cached_property
    def _best_moves(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Return, per gap, the undominated moves of its two models, by ascending false positives and falling misses.

        Position of the tree, of the move among its moves, and the mistakes; ties go to the first model.
        """
        found = []
        for both in pairwise(range(len(self.moves))):
            at = np.repeat(both, [len(self.moves[i]) for i in both])
            index = np.concatenate([np.arange(len(self.moves[i])) for i in both])
            fp = np.concatenate([self.moves[i].false_positives for i in both])
            fn = np.concatenate([self.moves[i].false_negatives for i in both])
            best = undominated(fp, fn)
            found.append((at[best], index[best], fp[best], fn[best]))
        return found


@dataclass(frozen=True, eq=False)
class DensePath:
    """A path with the trees between its neighbours, from many false positives to few."""

    # float64 (n,): costs of a false positive, ascending; for a tree between two costs, a number between them
    ratios: np.ndarray
    trees: list[TAOTree]
    moved: list[ThresholdMove | None]  # how trees between two costs come from others
    places: list[Place]  # places of the trees between two costs; positions count only the trees of costs

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[TAOTree],
        ratios: np.ndarray,
        data: BinnedCases,
        max_point_gap: float | None,
        threads: Threads,
    ) -> DensePath:
        """Fill the gaps of a path fitted on `data`; max_point_gap = None leaves them."""
        if max_point_gap is None:
            return cls(ratios, list(trees), [None] * len(trees), [])
        between = ThresholdMoves.from_trees(trees, data, threads)
        found = [between.fill(gap, max_point_gap) for gap in range(len(trees) - 1)]
        places = [between.place(gap, each) for gap, some in enumerate(found) for each in some]
        gaps = zip(ratios[:-1], ratios[1:], found, strict=True)
        costs = np.concatenate(
            [np.zeros(0), *(np.geomspace(low, high, len(some) + 2)[1:-1] for low, high, some in gaps)]
        )
        fitted = threads.run(between.fitted, [each for some in found for each in some], costs.tolist())
        position = np.append(0, np.cumsum([len(some) + 1 for some in found]))
        moved: list[ThresholdMove | None] = []
        for some in [*found, []]:
            moved += [None, *(between.moved(each, position) for each in some)]
        is_between = np.array([each is not None for each in moved])
        all_ratios = np.empty(len(moved))
        all_ratios[~is_between], all_ratios[is_between] = ratios, costs
        old, new = iter(trees), iter(fitted)
        return cls(all_ratios, [next(old if each is None else new) for each in moved], moved, places)

    @property
    def is_between(self) -> np.ndarray:
        """Return which trees lie between two costs, bool (n,)."""
        return np.array([each is not None for each in self.moved])

    @property
    def at_costs(self) -> list[TAOTree]:
        """Return only the trees of costs."""
        return [tree for tree, is_between in zip(self.trees, self.is_between, strict=True) if not is_between]
