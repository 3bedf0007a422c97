"""The path of a cost-optimal curve: one tree per cost, each a warm start from its neighbour (figure 7 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.metrics import OperatingPoints
from toprank.metrics.checks import is_int, is_real
from toprank.rankers.cost.tao_tree import DEEPEST, TAOTree
from toprank.tree.tao.problem import WEIGHT_BITS
from toprank.words.numbers import EXACT_DIGITS, PLAIN, bound_decimal, decimal_text
from toprank.words.wording import SHORT


class ThresholdMove(NamedTuple):
    """How the tree of a point comes from that of a neighbour: by moving one threshold.

    Attributes
    ----------
    point : int
        Position of the neighbour in the path.
    before, after : float
        The threshold there and here.
    """

    point: int
    before: float
    after: float

    def __str__(self) -> str:
        for digits in range(SHORT.digits, EXACT_DIGITS + 1):
            before, after = (decimal_text(bound_decimal(each, digits), PLAIN) for each in (self.before, self.after))
            if before != after:
                break
        return f"the tree of point {self.point} with a threshold moved from {before} to {after}"


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """One tree of a cost-optimal curve, and the mistakes it makes.

    Attributes
    ----------
    cost_ratio : float
        Cost of a false positive, where a false negative costs 1: lambda of the paper. For a tree between two costs, a
        number between them.
    tree : TAOTree
        Fitted at that cost; in a `CostOptimalForest` the `Bag` of that cost.
    false_positives, false_negatives : float
        On the training data.
    held_out_false_positives, held_out_false_negatives : float or None
        On the validation data, or out of fold; None without either.
    is_dominated : bool
        Whether another tree of the curve makes no more mistakes of either kind on the training data, and fewer of one.
    held_out_is_dominated : bool or None
        The same on the validation data, or out of fold; None without either.
    moved : ThresholdMove or None
        How the tree comes from a neighbour, if it lies between two costs.
    """

    cost_ratio: float
    tree: TAOTree
    false_positives: float
    false_negatives: float
    held_out_false_positives: float | None = None
    held_out_false_negatives: float | None = None
    is_dominated: bool = False
    held_out_is_dominated: bool | None = None
    moved: ThresholdMove | None = None

    @property
    def is_between(self) -> bool:
        """Whether the tree lies between those of two costs: one of them with a threshold moved."""
        return self.moved is not None


@dataclass(frozen=True)
class Start:
    """Depth of the trees and penalty of their weights, both chosen on the base tree."""

    max_depth: int
    alpha: float


NEGLIGIBLE = 2.0**-WEIGHT_BITS
"""Share of the weight of a class below which its mistakes are none: lighter cases cost a tree nothing."""

FitTree = Callable[[TAOTree], TAOTree]
"""Fits trees on one table, which is prepared only once."""


def starts_to_try(base: TAOTree, depths: Sequence[int] | None, alphas: Sequence[float] | None) -> list[Start]:
    """Return all pairs of a depth and a penalty, smallest models first."""
    all_depths = [base.max_depth] if depths is None else sorted({_check_depth(depth) for depth in depths})
    all_alphas = [base.alpha] if alphas is None else sorted({_check_alpha(alpha) for alpha in alphas}, reverse=True)
    for name, values in (("depths", all_depths), ("alphas", all_alphas)):
        if not values:
            raise InputError(
                f"{name} of a CostOptimalCurve is empty. Hint: give values to try, or None for that of the base."
            )
    return [Start(*pair) for pair in product(all_depths, all_alphas)]


def _check_depth(value: Any) -> int:
    if not is_int(value) or not 1 <= value <= DEEPEST:
        raise InputError(
            f"depths of a CostOptimalCurve must be ints from 1 to {DEEPEST}, got {value!r}. Hint: depths=[1, 2, 3]."
        )
    return int(value)


def _check_alpha(value: Any) -> float:
    if not is_real(value) or not 0 <= value < np.inf:
        raise InputError(
            f"alphas of a CostOptimalCurve must be numbers of 0 or more, got {value!r}. Hint: alphas=[1, 10]."
        )
    return float(value)


def fit_start(base: TAOTree, start: Start, ratio: float, fit: FitTree) -> TAOTree:
    """Return the base tree of a curve, at the base cost."""
    return fit(clone(base).set_params(max_depth=start.max_depth, alpha=start.alpha, fp_cost=ratio, fn_cost=1.0))


@dataclass(frozen=True)
class PathFitter:
    """Fits the trees of a path, each with a warm start from its neighbour."""

    fit: FitTree
    # Most passes over a tree. A neighbour's tree is nearly right already: one pass takes it most of the way, and the
    # next cost continues from there.
    max_iter: int

    def tree_at(self, ratio: float, start: TAOTree) -> TAOTree:
        """Return the tree at another cost, started from this one."""
        new = self.fit(clone(start).set_params(fp_cost=ratio, init=start, n_init=1, max_iter=self.max_iter))
        # As in the base; a tree that kept its start would keep all those before it.
        return new.set_params(init=start.init, max_iter=start.max_iter)

    def follow(self, base: TAOTree, ratios: Iterable[float], is_last: Callable[[TAOTree], bool]) -> list[TAOTree]:
        """Return the trees at the costs, each started from the one before, up to the first that `is_last` accepts.

        The first is started from `base`, which is not among them.
        """
        found: list[TAOTree] = []
        tree = base
        for ratio in ratios:
            tree = self.tree_at(ratio, tree)
            found.append(tree)
            if is_last(tree):
                break
        return found

    def both_ways(
        self, base: TAOTree, ratio: float, cost_factor: float, threads: Threads
    ) -> tuple[np.ndarray, list[TAOTree], int]:
        """Return the whole path: costlier false positives until there are none, cheaper ones until none is missed.

        Trees beyond the first one on each side that has reached its end repeat it and are left out; the base stays.
        Returns the ascending costs, their trees, and the position of the base.
        """
        ends = {
            1: lambda tree: tree.n_fp_ <= NEGLIGIBLE * (tree.n_cases_ - tree.n_positives_),
            -1: lambda tree: tree.n_fn_ <= NEGLIGIBLE * tree.n_positives_,
        }

        def one_way(sign: int) -> list[TAOTree]:
            if ends[sign](base):
                return []
            # Long before the last of these, one case costs more than all cases of the other class.
            n_steps = math.ceil(2 * WEIGHT_BITS / math.log2(cost_factor))
            return self.follow(
                base, (ratio * cost_factor ** (sign * step) for step in range(1, n_steps + 1)), ends[sign]
            )

        up, down = threads.run(one_way, (1, -1))
        ratios = np.array([ratio * cost_factor**step for step in range(-len(down), len(up) + 1)])
        trees, at = self.settle([*reversed(down), base, *up], ratios), len(down)
        # Refitted trees may reach an end before the last one of their side does.
        first = next((i for i in range(at, -1, -1) if ends[-1](trees[i])), 0)
        last = next((i for i in range(at, len(trees)) if ends[1](trees[i])), len(trees) - 1)
        return ratios[first : last + 1], trees[first : last + 1], at - first

    def same_path(self, base: TAOTree, ratios: np.ndarray, at: int) -> list[TAOTree]:
        """Return a path over given ascending costs, starting at position `at`, the cost of the base tree."""
        down = self.follow(base, ratios[:at][::-1], lambda tree: False)
        up = self.follow(base, ratios[at + 1 :], lambda tree: False)
        return self.settle([*reversed(down), base, *up], ratios)

    def settle(self, trees: Sequence[TAOTree], ratios: Sequence[float] | np.ndarray) -> list[TAOTree]:
        """Return the trees of a path; a tree that another one beats at its own cost is refitted from that one.

        A path ends in a poor place where the tree it came from was one. What a tree costs at another's price is known
        from its mistakes and the norm of its weights, without a look at the data, so bad ones are found at once. Both
        ends stay, where one kind of mistake is gone.
        """
        settled = list(trees)
        tried: list[tuple[int, TAOTree]] = []
        for i in (*range(len(settled)), *reversed(range(len(settled)))):
            costs = [_cost_at(tree, float(ratios[i])) for tree in settled]
            best = int(np.argmin(costs))
            is_new = not any(i == place and settled[best] is tree for place, tree in tried)
            if 0 < i < len(settled) - 1 and costs[best] < costs[i] and is_new:
                tried.append((i, settled[best]))
                new = self.tree_at(float(ratios[i]), settled[best])
                if new.objective_ < costs[i]:
                    settled[i] = new
        return settled


def _cost_at(tree: TAOTree, ratio: float) -> float:
    """Return eq. (3) of a tree if a false positive costs `ratio` false negatives."""
    penalty = tree.objective_ - tree.fp_cost_ * tree.n_fp_ - tree.n_fn_
    return ratio * tree.n_fp_ + tree.n_fn_ + penalty


def votes_of(tree: TAOTree, matrix: np.ndarray, threads: Threads) -> np.ndarray:
    """Return whether a tree of a path flags each row, bool (n,)."""
    return tree._label[tree.tree_.apply(matrix, threads)] == 1


def votes_and_scores(trees: Sequence[TAOTree], matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the trees of a path flag each row, bool (n_trees, n), and their mean score, float64 (n,)."""
    votes, total = np.empty((len(trees), len(matrix)), bool), np.zeros(len(matrix))
    for i, tree in enumerate(trees):
        score, leaf = tree.tree_.scores_and_leaves(matrix, threads)
        votes[i] = tree._label[leaf] == 1
        total += score
    return votes, total / len(trees)


def order_of(votes: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return one score in (0, 1] per row: by the number of costs at which it is flagged, ties by the mean score.

    If the rows flagged at a cost are also flagged at all lower ones, this orders rows by the cost at which they are
    first flagged.
    """
    return (votes.sum(axis=0) + (1 - 1e-9) * score) / (len(votes) + 1)


def points_of_path(
    trees: Sequence[TAOTree],
    seen: OperatingPoints,
    held_out: OperatingPoints | None,
    moved: Sequence[ThresholdMove | None],
) -> list[CurvePoint]:
    """Return the trees with their costs and mistakes, on the training data and on held-out rows."""
    dominated, beaten = seen.is_dominated, None if held_out is None else held_out.is_dominated
    return [
        CurvePoint(
            float(ratio),
            tree,
            float(seen.false_positives[i]),
            float(seen.false_negatives[i]),
            None if held_out is None else float(held_out.false_positives[i]),
            None if held_out is None else float(held_out.false_negatives[i]),
            bool(dominated[i]),
            None if beaten is None else bool(beaten[i]),
            moved[i],
        )
        for i, (ratio, tree) in enumerate(zip(seen.cost_ratio, trees, strict=True))
    ]


def path_table(path: Sequence[CurvePoint], seen: OperatingPoints, held_out: OperatingPoints | None) -> dict[str, Any]:
    """Return the columns of a table of the path, one row per point."""
    columns: dict[str, Any] = {
        "point": np.arange(len(path)),
        "cost_ratio": [point.cost_ratio for point in path],
        "leaves": [point.tree.n_leaves_ for point in path],
        "is_between": [point.is_between for point in path],
        "is_dominated": seen.is_dominated,
    }
    for prefix, points in (("", seen), ("held_out_", held_out)):
        if points is not None:
            columns |= {
                f"{prefix}false_positives": points.false_positives,
                f"{prefix}false_negatives": points.false_negatives,
                f"{prefix}false_positive_rate": points.false_positive_rate,
                f"{prefix}recall": points.true_positive_rate,
            }
    if held_out is not None:
        columns["held_out_is_dominated"] = held_out.is_dominated
    return columns


def subset(data: BinnedCases, rows: np.ndarray, base: TAOTree) -> BinnedCases:
    """Return the training data of some rows."""
    weight = None if data.weight is None else data.weight[rows]
    return BinnedCases(
        data.X[rows], data.is_positive[rows], weight, data.columns, splitter=base.splitter, max_bins=base.max_bins
    )
