"""Settings of an estimator to grown, finished trees; one place for single trees, meta-trees and forests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from toprank._core.criteria import split_gain
from toprank._core.threads import Threads
from toprank.data.training import TrainingData, shared_tables
from toprank.errors import InputError
from toprank.rankers.leaf_rates import finish_tree, meta_rates, parents_of, smoothed_rates
from toprank.tree.categories import CategorySearch
from toprank.tree.feature_sampler import FeatureSampler
from toprank.tree.flatten import flatten_tree, flatten_with_entries
from toprank.tree.grower import UNLIMITED, Limits, grow
from toprank.tree.meta.meta_tree import MetaTree, grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, Objective
from toprank.tree.meta.shake import optimal_order
from toprank.tree.meta.stack import RootMemory, StackLimits, grow_meta_trees
from toprank.tree.meta.stages import Stages
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
    "splitter": [StrOptions({"hist", "exact", "midpoint"})],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "categorical_features": ["array-like", None],
    "cat_smooth": [Interval(Real, 0, None, closed="left"), None],
    "min_data_per_group": [Interval(Integral, 1, None, closed="left")],
    "max_cat_threshold": [Interval(Integral, 1, None, closed="left"), None],
    "keep_columns": ["array-like", StrOptions({"all"}), None],
    "budget": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither"), None],
    "pos_label": [Real, str, bool, None],
    "n_jobs": [Integral, None],
}
"""What scikit-learn checks of the parameters that all tree rankers share."""

PUBLISHED_CATEGORIES: dict[str, Any] = {"cat_smooth": None, "min_data_per_group": 1, "max_cat_threshold": None}
"""Categories as the papers search them: levels by their training rate, any subset, judged on the same cases."""

ORDER_STRENGTH = 300.0
"""Cases of hierarchical shrinkage behind leaf_order="rate": a leaf overtakes the order of the meta-tree only on
evidence. Of 10, 30, 100, 300, 1000 this was the best on simulated and real tables together; the differences are
small."""

STACK_CELLS = 2**20
"""Cells up to which copies of a table, one for each of several leaf depths, are grown side by side: beyond that the
rows cost more than the calls, and one tree at a time stays in the cache."""

DEPTH = [Interval(Integral, 1, None, closed="left"), None]
CV: list[Any] = ["cv_object", Options(int, {0})]
CCP_ALPHA = [Interval(Real, 0, None, closed="left"), Options(str, {"cv"})]


@dataclass(frozen=True)
class Arrangement:
    """Meta-leaves best first, and the place in the ranking of each: 0, 1, ... without gaps; several may share one."""

    leaves: np.ndarray
    place: np.ndarray

    @classmethod
    def apart(cls, leaves: np.ndarray) -> Arrangement:
        """A place of its own for each leaf."""
        return cls(leaves, np.arange(len(leaves)))

    @property
    def n_places(self) -> int:
        """Number of places in the ranking."""
        return int(self.place[-1]) + 1


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
    categories: CategorySearch
    max_depth: int | None = None
    leaf_order: str = "rate"
    objective: Objective = AVERAGE_PRECISION
    keeps_ap: bool = False

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
        categories = category_search(estimator)
        return cls(criterion=criterion, leaf_depth=leaf_depth, categories=categories, **parameters, **others)

    def limits(self, weights: RowWeights, sample_features: FeatureSampler | None) -> Limits:
        """Limits in integer weights; min_gain is a share of the most that the criterion could gain at the root."""
        positive, total = float(weights.sum_of_positive), float(weights.sum_of_total)
        # All positives alone on one side.
        whole = split_gain(self.criterion, positive, positive, positive, total, positive, total)
        return Limits(
            criterion=self.criterion,
            max_depth=self.leaf_depth or UNLIMITED,
            min_leaf=_in_units(self.min_samples_leaf, weights),
            min_split=_in_units(self.min_samples_split, weights),
            min_gain=self.min_gain * whole,
            max_leaf_nodes=self.max_leaf_nodes or UNLIMITED,
            sample_features=sample_features,
            keeps_ap=self.keeps_ap,
            categories=self.categories.rules(weights),
        )

    def grow_tree(self, data: TrainingData, threads: Threads, direction: np.ndarray | None = None) -> Tree:
        """One greedy tree without scores; `direction` as `Limits` takes it."""
        weights = integer_weights(data.is_positive, data.weight)
        splitter = data.splitter(weights, threads)
        limits = replace(self.limits(weights, None), direction=direction)
        trees = grow(splitter, splitter.root(), limits)
        return flatten_tree(trees, weights.unit, data.is_categorical)

    def node_rates(self, tree: Tree) -> np.ndarray:
        """Smoothed rate of each node of a plain tree; it depends on what stands above the node alone."""
        parent = parents_of(np.where(tree.is_leaf, -1, tree.left), tree.right)
        total = tree.positive + tree.negative
        return smoothed_rates(tree.positive, total, parent, self.smoothing, self.smoothing_strength)

    def grow_meta(
        self,
        data: TrainingData,
        weight: np.ndarray | None,
        threads: Threads,
        sample_features: FeatureSampler | None = None,
    ) -> tuple[MetaTree, float]:
        """One meta-tree on the rows that have weight, and the unit of its integer weights."""
        weights = data.row_weights(weight)
        splitter = data.splitter(weights, threads)
        limits = self.limits(weights, sample_features)
        return grow_meta_tree(splitter, self.objective, self.max_depth or UNLIMITED, limits), weights.unit

    def grow_shared_meta(self, data: TrainingData, threads: Threads) -> tuple[MetaTree, float]:
        """`grow_meta` on all rows; inside `shared_training_data` with what other leaf depths have in common."""
        tables = shared_tables()
        if tables is None or self.max_leaf_nodes is not None:
            return self.grow_meta(data, data.weight, threads)
        depths = tables.leaf_depths
        alike = replace(self, leaf_depth=None, smoothing=None, smoothing_strength=0.0, leaf_order="rate")
        if self.leaf_depth in depths and len(depths) > 1 and data.X.size * len(depths) <= STACK_CELLS:
            grown, unit = data.once((alike, depths), lambda: self._grow_stack(data, depths, threads))
            return grown[self.leaf_depth], unit
        weights = integer_weights(data.is_positive, data.weight)
        splitter = RootMemory(
            data.splitter(weights, threads), data.once(("root", replace(alike, max_depth=None)), list)
        )
        limits = self.limits(weights, None)
        return grow_meta_tree(splitter, self.objective, self.max_depth or UNLIMITED, limits), weights.unit

    def _grow_stack(
        self, data: TrainingData, depths: tuple[int, ...], threads: Threads
    ) -> tuple[dict[int, MetaTree], float]:
        """Meta-trees by the depth of their inner trees, and the unit of their integer weights."""
        weights = integer_weights(data.is_positive, data.weight)
        splitter, roots = data.stacked_splitter(weights, threads, len(depths))
        one = replace(self, leaf_depth=max(depths)).limits(weights, None)
        limits = StackLimits(**vars(one), depths=depths, n_rows=int(roots.stop[0]))
        grown = grow_meta_trees(splitter, roots, self.objective, self.max_depth or UNLIMITED, limits)
        return dict(zip(depths, grown, strict=True)), weights.unit

    def arrange(self, meta: MetaTree, unit: float) -> Arrangement:
        """The meta-leaves in the order that `leaf_order` asks for, each at a place of its own."""
        order = self._order(meta, unit)
        return Arrangement.apart(order[meta.is_leaf[order]])

    def _order(self, meta: MetaTree, unit: float) -> np.ndarray:
        """All meta-nodes, best first: wherever the meta-tree ends, its leaves stand in this order.

        The rate of a meta-node depends on what stands above it alone, so one order serves all depths.
        """
        order = np.array(meta.preorder())
        if self.leaf_order == "meta":
            return order
        if self.leaf_order == "training":
            return order[optimal_order(meta.positive[order], (meta.total - meta.positive)[order])]
        shrunk = meta_rates(meta, unit, "hierarchical", ORDER_STRENGTH)
        return order[np.argsort(-shrunk[order], kind="stable")]

    def finish_meta(
        self, meta: MetaTree, unit: float, data: TrainingData, scoring: Scoring, arrangement: Arrangement | None = None
    ) -> Tree:
        """The flattened meta-tree with leaf order, scores and rates; `arrangement` overrules `leaf_order`."""
        return self.finish(meta, unit, data.is_categorical, scoring, arrangement or self.arrange(meta, unit))[0]

    def finish(
        self, meta: MetaTree, unit: float, is_categorical: np.ndarray, scoring: Scoring, arrangement: Arrangement
    ) -> tuple[Tree, np.ndarray]:
        """The flattened meta-tree, and the node of it at which each meta-node begins."""
        tree, entry = flatten_with_entries(meta, unit, is_categorical)
        position = np.full(len(tree), -1)
        position[entry[arrangement.leaves]] = arrangement.place
        return finish_tree(tree, position, self.place_rates(meta, unit, arrangement), scoring), entry

    def stages(self, meta: MetaTree, unit: float, entry: np.ndarray) -> Stages:
        """What the finished tree would be at every lower meta-depth, in the order of leaves that `arrange` gives."""
        return Stages.of(entry, meta.depth, np.argsort(self._order(meta, unit)), self.max_depth)

    def place_rates(self, meta: MetaTree, unit: float, arrangement: Arrangement) -> np.ndarray:
        """Smoothed rate of each place in the ranking; leaves that share one share the mean of their rates."""
        leaves, place = arrangement.leaves, arrangement.place
        rates, total = meta_rates(meta, unit, self.smoothing, self.smoothing_strength)[leaves], meta.total[leaves]
        if arrangement.n_places == len(leaves):
            return rates
        return np.bincount(place, rates * total) / np.bincount(place, total)


def category_search(estimator: Any) -> CategorySearch:
    """How an estimator's parameters say that conditions on categories are searched."""
    return CategorySearch(estimator.cat_smooth, estimator.min_data_per_group, estimator.max_cat_threshold)


def _in_units(cases: int, weights: RowWeights) -> int:
    """Cases in integer weights, rounded up; where all rows together weigh less, a little more than they do."""
    return min(math.ceil(min(cases / weights.unit, 2.0**62)), weights.sum_of_total + 1)


def stages_of(ranker: Any) -> Stages:
    """Stages of a fitted ranker; raises ValueError where it has none."""
    stages = getattr(ranker, "_stages", None)
    if stages is None:
        raise InputError(
            f"{type(ranker).__name__}.staged_decision_function needs the stages of growing, but this model comes from "
            "a file, and files do not hold them. Hint: fit it again, or pickle a fitted model."
        )
    return stages
