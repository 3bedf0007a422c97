"""From an estimator's parameters to grown trees, for single trees, meta-trees and forests."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from toprank._compat import Interval, Options, StrOptions
from toprank._core.splitting import split_gain
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.base import RANKER_CONSTRAINTS
from toprank.tree.categories import CategorySearch
from toprank.tree.flatten import flatten_tree
from toprank.tree.grower import UNLIMITED, FeatureSampler, Limits, grow
from toprank.tree.meta.meta_tree import MetaTree, RootMemory, StackLimits, grow_meta_tree, grow_meta_trees
from toprank.tree.meta.objectives import AVERAGE_PRECISION, Objective
from toprank.tree.structure import Tree
from toprank.tree.weights import RowWeights, integer_weights

GROWTH_CONSTRAINTS: dict[str, list[Any]] = {
    **RANKER_CONSTRAINTS,
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "min_samples_split": [Interval(Integral, 2, None, closed="left")],
    "min_gain": [Interval(Real, None, None, closed="both")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "smoothing": [StrOptions({"hierarchical", "m-estimate"}), None],
    "smoothing_strength": [Interval(Real, 0, None, closed="left")],
    "splitter": [StrOptions({"hist", "exact", "midpoint"})],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "cat_smooth": [Interval(Real, 0, None, closed="left"), None],
    "min_data_per_group": [Interval(Integral, 1, None, closed="left")],
    "max_cat_threshold": [Interval(Integral, 1, None, closed="left"), None],
}
"""scikit-learn's checks of the parameters that all tree rankers share."""

PUBLISHED_CATEGORIES: dict[str, Any] = {"cat_smooth": None, "min_data_per_group": 1, "max_cat_threshold": None}
"""Categories as in the papers: ordered by training rate, any subset, judged on the same cases."""

STACK_CELLS = 2**20
"""Most cells for which copies of a table, one per leaf depth, are grown together. Beyond that the rows cost more than
the calls, and one tree at a time stays in the cache."""

DEPTH = [Interval(Integral, 1, None, closed="left"), None]
CV: list[Any] = ["cv_object", Options(int, {0})]
FOLD_CONSTRAINTS: dict[str, list[Any]] = {"cv": CV, "random_state": ["random_state"]}
CCP_ALPHA = [Interval(Real, 0, None, closed="left"), Options(str, {"cv"})]


@dataclass(frozen=True)
class GrowthSettings:
    """How trees grow and how their leaves are ordered and smoothed, from an estimator's parameters."""

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
    objective: Objective = AVERAGE_PRECISION  # orders and cuts the cells of a meta-tree
    stop_at_ap_loss: bool = False

    @classmethod
    def from_estimator(cls, estimator: Any, criterion: int, leaf_depth: int | None, **others: Any) -> GrowthSettings:
        """Make the settings from an estimator's parameters; `others` override them."""
        own = {field.name: getattr(estimator, field.name) for field in fields(cls) if hasattr(estimator, field.name)}
        given = {"criterion": criterion, "leaf_depth": leaf_depth, "objective": AVERAGE_PRECISION}
        return cls(**own | given | {"categories": category_search(estimator)} | others)

    def limits(self, weights: RowWeights, sample_features: FeatureSampler | None) -> Limits:
        """Return the limits in integer weights; min_gain is a share of the largest possible gain at the root."""
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
            stop_at_ap_loss=self.stop_at_ap_loss,
            categories=self.categories.rules(weights),
        )


def grow_tree(
    settings: GrowthSettings, data: BinnedCases, threads: Threads, direction: np.ndarray | None = None
) -> Tree:
    """Return one greedy tree without scores; `direction` as in `Limits`."""
    weights = integer_weights(data.is_positive, data.weight)
    splitter = data.splitter(weights, threads)
    limits = replace(settings.limits(weights, None), direction=direction)
    trees = grow(splitter, splitter.root(), limits)
    return flatten_tree(trees, weights.unit, data.is_categorical)


def grow_meta(
    settings: GrowthSettings,
    data: BinnedCases,
    weight: np.ndarray | None,
    threads: Threads,
    sample_features: FeatureSampler | None = None,
) -> tuple[MetaTree, float]:
    """Return one meta-tree on the rows with weight, and the unit of its integer weights."""
    weights = data.row_weights(weight)
    splitter = data.splitter(weights, threads)
    limits = settings.limits(weights, sample_features)
    return grow_meta_tree(splitter, settings.objective, settings.max_depth or UNLIMITED, limits), weights.unit


def grow_shared_meta(settings: GrowthSettings, data: BinnedCases, threads: Threads) -> tuple[MetaTree, float]:
    """`grow_meta` on all rows; of a shared table with what other leaf depths have in common."""
    depths = data.shared_depths
    if depths is None or settings.max_leaf_nodes is not None or settings.objective.depth < 1:
        return grow_meta(settings, data, data.weight, threads)
    alike = replace(settings, leaf_depth=None, smoothing=None, smoothing_strength=0.0, leaf_order="rate")
    if settings.leaf_depth in depths and len(depths) > 1 and data.X.size * len(depths) <= STACK_CELLS:
        grown, unit = data.once((alike, depths), lambda: _grow_stack(settings, data, depths, threads))
        return grown[settings.leaf_depth], unit
    weights = integer_weights(data.is_positive, data.weight)
    known = data.once(("root", replace(alike, max_depth=None)), list)
    splitter: Any = RootMemory(data.splitter(weights, threads), known)
    limits = settings.limits(weights, None)
    return grow_meta_tree(splitter, settings.objective, settings.max_depth or UNLIMITED, limits), weights.unit


def _grow_stack(
    settings: GrowthSettings, data: BinnedCases, depths: tuple[int, ...], threads: Threads
) -> tuple[dict[int, MetaTree], float]:
    """Return meta-trees by the depth of their inner trees, and the unit of their integer weights."""
    weights = integer_weights(data.is_positive, data.weight)
    splitter, roots = data.stacked_splitter(weights, threads, len(depths))
    one = replace(settings, leaf_depth=max(depths)).limits(weights, None)
    limits = StackLimits(**vars(one), depths=depths, n_rows=int(roots.stop[0]))
    grown = grow_meta_trees(splitter, roots, settings.objective, settings.max_depth or UNLIMITED, limits)
    return dict(zip(depths, grown, strict=True)), weights.unit


def category_search(estimator: Any) -> CategorySearch:
    """Return how conditions on categories are searched, from an estimator's parameters."""
    return CategorySearch(estimator.cat_smooth, estimator.min_data_per_group, estimator.max_cat_threshold)


def _in_units(cases: int, weights: RowWeights) -> int:
    """Return cases in integer weights, rounded up; capped just above the weight of all rows."""
    return min(math.ceil(min(cases / weights.unit, 2.0**62)), weights.sum_of_total + 1)
