"""Settings of an estimator to grown, finished trees; one place for single trees, meta-trees and forests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from toprank._core.splitting import split_gain
from toprank._core.threads import Threads
from toprank.rankers.leaf_rates import finish_tree, meta_leaf_rates, order_by_rate, parents_of, smoothed_rates
from toprank.rankers.training import TrainingData
from toprank.tree.flatten import flatten_meta_tree, flatten_tree
from toprank.tree.grower import UNLIMITED, Limits, grow
from toprank.tree.meta import MetaTree, grow_meta_tree
from toprank.tree.objectives import AVERAGE_PRECISION, Objective
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree
from toprank.tree.weights import RowWeights, integer_weights

GROWTH_CONSTRAINTS: dict[str, list[Any]] = {
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "min_samples_split": [Interval(Integral, 2, None, closed="left")],
    "min_gain": [Interval(Real, None, None, closed="both")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "smoothing": [StrOptions({"hierarchical", "m-estimate"}), None],
    "smoothing_strength": [Interval(Real, 0, None, closed="left")],
    "splitter": [StrOptions({"hist", "exact"})],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "categorical_features": ["array-like", None],
    "budget": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), None],
    "pos_label": [Real, str, bool, None],
    "n_jobs": [Integral, None],
}
"""What scikit-learn checks of the parameters that all tree rankers share."""

ORDER_STRENGTH = 300.0
"""Cases of hierarchical shrinkage behind leaf_order="rate": a leaf overtakes the order of the meta-tree only on
evidence. Of 10, 30, 100, 300, 1000 this was the best on simulated and real tables together; the differences are
small."""

DEPTH = [Interval(Integral, 1, None, closed="left"), None]
CCP_ALPHA = [Interval(Real, 0, None, closed="left"), Options(str, {"cv"})]


@dataclass(frozen=True)
class Growth:
    """How trees grow and how their leaves are smoothed, as an estimator's parameters say."""

    criterion: int
    leaf_depth: int | None
    min_samples_leaf: int
    min_samples_split: int
    min_gain: float
    max_leaf_nodes: int | None
    smoothing: str | None
    smoothing_strength: float
    max_depth: int | None = None
    leaf_order: str = "rate"
    objective: Objective = AVERAGE_PRECISION

    @classmethod
    def of(cls, estimator: Any, criterion: int, leaf_depth: int | None, **others: Any) -> Growth:
        """Growth of an estimator's parameters; a meta-tree's `objective` orders and cuts the cells."""
        names = (
            "min_samples_leaf",
            "min_samples_split",
            "min_gain",
            "max_leaf_nodes",
            "smoothing",
            "smoothing_strength",
        )
        parameters = {name: getattr(estimator, name) for name in names}
        return cls(criterion=criterion, leaf_depth=leaf_depth, **parameters, **others)

    def _limits(self, weights: RowWeights, sample_features: Callable[[int], np.ndarray] | None) -> Limits:
        """Limits in integer weights; min_gain is a share of the most that the criterion could gain at the root."""
        positive, total = float(weights.sum_of_positive), float(weights.sum_of_total)
        whole = split_gain(self.criterion, positive, positive, positive, total)  # all positives alone on one side
        return Limits(
            criterion=self.criterion,
            max_depth=self.leaf_depth or UNLIMITED,
            min_leaf=_in_units(self.min_samples_leaf, weights),
            min_split=_in_units(self.min_samples_split, weights),
            min_gain=self.min_gain * whole,
            max_leaf_nodes=self.max_leaf_nodes or UNLIMITED,
            sample_features=sample_features,
        )

    def grow_tree(self, data: TrainingData, threads: Threads) -> Tree:
        """One greedy tree without scores."""
        weights = integer_weights(data.is_positive, data.weight)
        splitter = data.splitter(weights, threads)
        trees = grow(splitter, splitter.root(), self._limits(weights, None))
        return flatten_tree(trees, weights.unit, data.is_categorical)

    def rank_by_rate(self, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Leaf positions of a plain tree by falling smoothed rate, and the rates."""
        parent = parents_of(np.where(tree.is_leaf, -1, tree.left), tree.right)
        total = tree.positive + tree.negative
        rate = smoothed_rates(tree.positive, total, parent, self.smoothing, self.smoothing_strength)
        return order_by_rate(tree, rate)

    def grow_meta(
        self,
        data: TrainingData,
        weight: np.ndarray | None,
        threads: Threads,
        sample_features: Callable[[int], np.ndarray] | None = None,
    ) -> tuple[MetaTree, float]:
        """One meta-tree on the rows that have weight, and the unit of its integer weights."""
        weights = integer_weights(data.is_positive, weight)
        splitter = data.splitter(weights, threads)
        limits = self._limits(weights, sample_features)
        return grow_meta_tree(splitter, self.objective, self.max_depth or UNLIMITED, limits), weights.unit

    def finish_meta(self, meta: MetaTree, unit: float, data: TrainingData, scoring: Scoring) -> Tree:
        """The flattened meta-tree with leaf order, scores and rates."""
        tree = flatten_meta_tree(meta, unit, data.is_categorical)
        rates = meta_leaf_rates(meta, unit, self.smoothing, self.smoothing_strength)
        if self.leaf_order == "meta":
            return finish_tree(tree, tree.leaf, rates, scoring)
        shrunk = meta_leaf_rates(meta, unit, "hierarchical", ORDER_STRENGTH)
        order = np.argsort(-shrunk, kind="stable")
        position = np.argsort(order)
        return finish_tree(tree, np.where(tree.leaf >= 0, position[tree.leaf], -1), rates[order], scoring)


def _in_units(cases: int, weights: RowWeights) -> int:
    """Cases in integer weights, rounded up; where all rows together weigh less, a little more than they do."""
    return min(math.ceil(min(cases / weights.unit, 2.0**62)), weights.sum_of_total + 1)
