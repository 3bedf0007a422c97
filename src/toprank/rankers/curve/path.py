"""The path of a cost-optimal curve: one tree a cost, each improved from its neighbour (figure 7 of the paper)."""

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
from toprank.rankers.cost.tao_tree import DEEPEST, TAOTree
from toprank.tree.tao.problem import WEIGHT_BITS
from toprank.words.numbers import EXACT_DIGITS, number_text
from toprank.words.wording import SHORT


class Moved(NamedTuple):
    """How the tree of a point comes from that of a neighbour: one threshold is another.

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
            before, after = number_text(self.before, digits), number_text(self.after, digits)
            if before != after:
                break
        return f"the tree of point {self.point} with a threshold moved from {before} to {after}"


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """One tree of a cost-optimal curve, and the mistakes it makes.

    Attributes
    ----------
    cost_ratio : float
        What a false positive costs when a false negative costs 1: lambda of the paper. Of a tree between two costs, a
        number between them.
    tree : TAOTree
        Fitted at that cost; in a `CostOptimalForest` the `Bag` of that cost.
    false_positives, false_negatives : float
        On the training data.
    held_out_false_positives, held_out_false_negatives : float or None
        On the validation data, or out of fold; None where there are neither.
    is_dominated : bool
        Whether another tree of the curve makes no more mistakes of either kind on the training data, and fewer of one.
    held_out_is_dominated : bool or None
        The same on the validation data, or out of fold; None where there are neither.
    moved : Moved or None
        How the tree comes from that of a neighbour, where it stands between those of two costs.
    """

    cost_ratio: float
    tree: TAOTree
    false_positives: float
    false_negatives: float
    held_out_false_positives: float | None = None
    held_out_false_negatives: float | None = None
    is_dominated: bool = False
    held_out_is_dominated: bool | None = None
    moved: Moved | None = None

    @property
    def is_between(self) -> bool:
        """Whether the tree stands between those of two costs: one of them with a threshold moved."""
        return self.moved is not None


@dataclass(frozen=True)
class Start:
    """Size of the trees and penalty of their weights: what is chosen on the base tree."""

    max_depth: int
    alpha: float


NEGLIGIBLE = 2.0**-WEIGHT_BITS
"""Share of the weight of a class below which its mistakes are none: lighter cases cost a tree nothing."""

FitTree = Callable[[TAOTree], TAOTree]
"""Fits a tree on one table, the preparation of which is shared."""


def starts_to_try(base: TAOTree, depths: Sequence[int] | None, alphas: Sequence[float] | None) -> list[Start]:
    """All pairs of a depth and a penalty, the smallest models first."""
    all_depths = [base.max_depth] if depths is None else sorted({_check_depth(depth) for depth in depths})
    all_alphas = [base.alpha] if alphas is None else sorted({_check_alpha(alpha) for alpha in alphas}, reverse=True)
    for name, values in (("depths", all_depths), ("alphas", all_alphas)):
        if not values:
            raise InputError(
                f"{name} of a CostOptimalCurve is empty. Hint: give values to try, or None for the base's own."
            )
    return [Start(*pair) for pair in product(all_depths, all_alphas)]


def _check_depth(value: Any) -> int:
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not is_int or not 1 <= value <= DEEPEST:
        raise InputError(
            f"depths of a CostOptimalCurve must be ints from 1 to {DEEPEST}, got {value!r}. Hint: depths=[1, 2, 3]."
        )
    return int(value)


def _check_alpha(value: Any) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)
    if not is_number or not 0 <= value < np.inf:
        raise InputError(
            f"alphas of a CostOptimalCurve must be numbers of 0 or more, got {value!r}. Hint: alphas=[1, 10]."
        )
    return float(value)


def fit_start(base: TAOTree, start: Start, ratio: float, fit: FitTree) -> TAOTree:
    """The base tree of a curve, at the base cost."""
    return fit(clone(base).set_params(max_depth=start.max_depth, alpha=start.alpha, fp_cost=ratio, fn_cost=1.0))


@dataclass(frozen=True)
class Follower:
    """Finds the trees of a path, each from its neighbour.

    Attributes
    ----------
    fit : callable
    max_iter : int
        Passes over a tree at most. A neighbour's tree is nearly right already: one pass takes it most of the way, and
        the next cost goes on from there.
    """

    fit: FitTree
    max_iter: int

    def tree_at(self, ratio: float, start: TAOTree) -> TAOTree:
        """The tree at another cost that is found from this one."""
        new = self.fit(clone(start).set_params(fp_cost=ratio, init=start, n_init=1, max_iter=self.max_iter))
        # As the base has them; a tree that held its start would hold all those before it.
        return new.set_params(init=start.init, max_iter=start.max_iter)

    def follow(self, base: TAOTree, ratios: Iterable[float], is_last: Callable[[TAOTree], bool]) -> list[TAOTree]:
        """Trees at the costs, each started from the one before; ends with the first that is the last one.

        Parameters
        ----------
        base : TAOTree
            Where the path begins; not among the trees returned.
        ratios : iterable of float
            Costs of a false positive.
        is_last : callable
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
        """The whole path: costlier false positives until there are none, and cheaper ones until no positive is missed.

        Trees beyond the first ones, seen from the base, that have reached this repeat them, and are left out; the base
        stays.

        Returns
        -------
        ratios : float64 array of shape (n,), ascending
        trees : list of TAOTree
        base_point : int
            Position of the base cost.
        """
        ends = {
            1: lambda tree: tree.n_fp_ <= NEGLIGIBLE * (tree.n_cases_ - tree.n_positives_),
            -1: lambda tree: tree.n_fn_ <= NEGLIGIBLE * tree.n_positives_,
        }

        def one_way(sign: int) -> list[TAOTree]:
            if ends[sign](base):
                return []
            # One case costs more than all others of the other class long before the last of these.
            n_steps = math.ceil(2 * WEIGHT_BITS / math.log2(cost_factor))
            return self.follow(
                base, (ratio * cost_factor ** (sign * step) for step in range(1, n_steps + 1)), ends[sign]
            )

        up, down = threads.run(one_way, (1, -1))
        ratios = np.array([ratio * cost_factor**step for step in range(-len(down), len(up) + 1)])
        trees, at = self.settle([*reversed(down), base, *up], ratios), len(down)
        # Trees that settled anew may have reached an end before the last one of their way did.
        first = next((i for i in range(at, -1, -1) if ends[-1](trees[i])), 0)
        last = next((i for i in range(at, len(trees)) if ends[1](trees[i])), len(trees) - 1)
        return ratios[first : last + 1], trees[first : last + 1], at - first

    def same_path(self, base: TAOTree, ratios: np.ndarray, at: int) -> list[TAOTree]:
        """A path over given ascending costs from the one at position `at`, which is that of the base tree."""
        down = self.follow(base, ratios[:at][::-1], lambda tree: False)
        up = self.follow(base, ratios[at + 1 :], lambda tree: False)
        return self.settle([*reversed(down), base, *up], ratios)

    def settle(self, trees: Sequence[TAOTree], ratios: Sequence[float] | np.ndarray) -> list[TAOTree]:
        """The trees of a path, each improved anew from another one where that is cheaper at its cost than itself.

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
    """Eq. (3) of a tree where a false positive costs `ratio` false negatives."""
    penalty = tree.objective_ - tree.fp_cost_ * tree.n_fp_ - tree.n_fn_
    return ratio * tree.n_fp_ + tree.n_fn_ + penalty


def votes_of(tree: TAOTree, matrix: np.ndarray, threads: Threads) -> np.ndarray:
    """What a tree of a path calls each row, bool (n,)."""
    return tree._label[tree.tree_.apply(matrix, threads)] == 1


def votes_and_scores(trees: Sequence[TAOTree], matrix: np.ndarray, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
    """What the trees of a path call each row, bool (n_trees, n), and the mean of their scores, float64 (n,)."""
    votes, total = np.empty((len(trees), len(matrix)), bool), np.zeros(len(matrix))
    for i, tree in enumerate(trees):
        score, leaf = tree.tree_.scores_and_leaves(matrix, threads)
        votes[i] = tree._label[leaf] == 1
        total += score
    return votes, total / len(trees)


def order_of(votes: np.ndarray, score: np.ndarray) -> np.ndarray:
    """One score in (0, 1] a row: by the number of costs at which it is positive, inside by the mean score in (0, 1].

    Where the positives of a cost are among those of all lower ones, this is the order of the costs at which rows turn
    positive.
    """
    return (votes.sum(axis=0) + (1 - 1e-9) * score) / (len(votes) + 1)


def points_of_path(
    trees: Sequence[TAOTree], seen: OperatingPoints, held_out: OperatingPoints | None, moved: Sequence[Moved | None]
) -> list[CurvePoint]:
    """Trees with their costs and mistakes, on the training data and on rows that they have not seen."""
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
    """Columns of a table of the path, one row a point."""
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
    """Training data of some rows."""
    weight = None if data.weight is None else data.weight[rows]
    return BinnedCases(
        data.X[rows], data.is_positive[rows], weight, data.columns, splitter=base.splitter, max_bins=base.max_bins
    )
