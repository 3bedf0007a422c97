"""Meta-trees grown node by node: by weighted sums, by any classifier, or with cells that may move while growing.

`toprank.tree.meta.meta_tree` grows the inner trees of a whole meta-level together. What stands here looks at one
meta-node at a time, because it fits a model on its rows or needs to know the other cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank._core.dtypes import WEIGHT
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.meta.leaf_rankers import (
    ClassifierLeafRanker,
    InnerTreeLeafRanker,
    LeafRanker,
    ObliqueLeafRanker,
    StumpLeafRanker,
    Worth,
    area_unit,
    weight_keyword,
)
from toprank.tree.feature_sampler import FeatureSampler
from toprank.tree.grower import UNLIMITED, Limits
from toprank.tree.meta.meta_tree import MetaTable, MetaTree
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.meta.shake import intercalation_gain
from toprank.tree.splitters import Batch
from toprank.tree.weights import RowWeights


@dataclass(frozen=True)
class CellRule:
    """How the cells of a ranking are split, if not by whole levels of inner trees.

    Attributes
    ----------
    leaf_ranker : {"tree", "stump", "oblique"} or classifier
    logistic_C : float
        Inverse penalty of weighted sums.
    intercalates : bool
        As in `grow_node_by_node`.
    random_state : int, RandomState or None
        Seeds of classifiers, the same each time for None.
    """

    leaf_ranker: Any
    logistic_C: float
    intercalates: bool = False
    random_state: Any = None

    @property
    def is_needed(self) -> bool:
        """False where `GrowthSettings.grow_meta` grows the same meta-tree, and faster."""
        return self.intercalates or self.leaf_ranker not in ("tree", "stump")

    def grow(
        self,
        settings: GrowthSettings,
        data: BinnedCases,
        weight: np.ndarray | None,
        sampler: FeatureSampler | None = None,
    ) -> tuple[MetaTree, float]:
        """One meta-tree on the rows that have weight, its gains in units of area, and the unit of its weights."""
        weights = data.row_weights(weight)
        limits = settings.limits(weights, sampler)
        meta = grow_node_by_node(
            weights, limits, settings.max_depth or UNLIMITED, self._leaf_ranker(data, weights, limits),
            intercalates=self.intercalates,
        )  # fmt: skip
        return meta, weights.unit

    def _leaf_ranker(self, data: BinnedCases, weights: RowWeights, limits: Limits) -> LeafRanker:
        if self.leaf_ranker == "tree":
            return InnerTreeLeafRanker(data, weights, limits)
        if self.leaf_ranker == "stump":
            return StumpLeafRanker(data, weights, limits)
        if self.leaf_ranker == "oblique":
            return ObliqueLeafRanker(data, weights, limits, self.logistic_C)
        weight_keyword(self.leaf_ranker)  # complains before the work begins
        random = check_random_state(0 if self.random_state is None else self.random_state)
        return ClassifierLeafRanker(data, weights, limits, self.leaf_ranker, random)


def grow_node_by_node(
    weights: RowWeights, limits: Limits, max_depth: int, leaf_ranker: LeafRanker, *, intercalates: bool
) -> MetaTree:
    """Grow a meta-tree of at most max_depth levels, one node at a time.

    Parameters
    ----------
    weights : RowWeights
    limits : Limits
        Lightest node that may be split, and lightest child.
    max_depth : int
    leaf_ranker : LeafRanker
    intercalates : bool
        A cut is worth the area that the whole partition gains when both children may stand anywhere among the other
        cells, as section V-B of the TreeRank paper suggests; otherwise what they add in their parent's place
        (Lambda of section IV-A).
    """
    table = MetaTable(_batch([weights.sum_of_positive], [weights.sum_of_total]))
    cells = {0: (weights.sum_of_positive, weights.sum_of_total)}
    level = [(0, np.flatnonzero(weights.total))]
    unit = area_unit(weights)
    for _ in range(max_depth):
        if not level:
            break
        below: list[tuple[int, np.ndarray]] = []
        for node, rows in level:
            if not limits.may_split(_batch(*_pairs([cells[node]])), np.zeros(1))[0]:
                continue
            worth = _worth_among(cells, node) if intercalates else _worth_alone(cells[node], unit)
            found = leaf_ranker.split(rows, worth)
            if found is not None and found.value >= limits.min_gain * unit:
                sides = [rows[found.is_left], rows[~found.is_left]]
                sums = [(int(weights.positive[side].sum()), int(weights.total[side].sum())) for side in sides]
                children = table.add(np.array([node]), [found.rule], _batch(*_pairs(sums))).tolist()
                del cells[node]
                cells.update(zip(children, sums, strict=True))
                below += zip(children, sides, strict=True)
        level = below
    return table.freeze()[0]


def _pairs(sums: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [positive for positive, _ in sums], [total for _, total in sums]


def _batch(positive: list[int], total: list[int]) -> Batch:
    """Nodes of which only the weights matter."""
    nowhere = np.zeros(len(positive), np.int64)
    return Batch(nowhere, nowhere, np.array(positive, WEIGHT), np.array(total, WEIGHT))


def _worth_alone(cell: tuple[int, int], unit: float) -> Worth:
    """Area that the two parts add in the place of the cell, whichever of them is the richer."""
    return lambda positive, total: np.abs(ROC_AREA.value(positive, total, *cell)).astype(np.float64) * unit


def _worth_among(cells: dict[int, tuple[int, int]], node: int) -> Worth:
    """Area that all cells gain, optimally ordered."""
    positive, total = cells[node]
    others = np.array([pair for other, pair in cells.items() if other != node], np.float64).reshape(-1, 2)

    def worth(left_positive: np.ndarray, left_total: np.ndarray) -> np.ndarray:
        gain = intercalation_gain(
            left_positive,
            left_total - left_positive,
            positive,
            total - positive,
            others[:, 0],
            others[:, 1] - others[:, 0],
        )
        return np.where(gain > 1e-12, gain, 0.0)

    return worth
