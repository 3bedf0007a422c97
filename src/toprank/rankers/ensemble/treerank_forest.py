"""`TreeRankForest`: bagged TreeRank trees, by the mean or the median of their scores."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from toprank._compat import Interval, StrOptions
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.metrics import average_precision, roc_auc
from toprank.rankers.ensemble.ensemble import negatives_above
from toprank.rankers.ensemble.forest import (
    COLUMNS_DRAWN,
    Forest,
    Judgement,
    MeanOfVotes,
    MedianOfVotes,
    Vote,
    median_votes,
)
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.meta.leaf_rankers import grow_node_by_node, is_grown_by_level
from toprank.tree.grower import FeatureSampler
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.structure import Tree


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRankForest(Forest):
    """TreeRank trees on bootstrap samples of the training data: bagging, or a ranking forest if columns are drawn too.

    A tree scores a row by the share of its negatives that do not rank above the row's cell; the forest takes the mean
    over the trees (section V-C of the paper) or the median. So a cell without negatives ties with the cell below it.

    Parameters
    ----------
    n_estimators, max_depth, leaf_depth
        As in `MetaAPForest`.
    leaf_ranker : {"tree", "stump", "oblique"}, default "tree"
        How a cell is split, as in `TreeRank`. Weighted sums follow slanted boundaries, for which trees need many steps.
    logistic_C : float, default 1.0
        Inverse penalty, C of the L1 logistic regression, of weighted sums.
    leaf_order : {"rate", "meta", "training"}, default "rate"
        Order of a tree's cells: by positive rate, strongly shrunk along the meta-tree; from left to right in the
        meta-tree, as published; or by the unshrunk positive rate.
    leaf_score
        As in `MetaAPForest`; the paper has "constant".
    aggregation : {"mean", "median-rank"}, default "mean"
        Mean over the trees, as published, or median: a row's rank among the negatives in the median tree.
    max_features : {"sqrt", "log2"}, int, float or None, default None
        Columns drawn at random per condition: a number, or a share of all columns; None = all, as published.
    max_meta_features : {"sqrt", "log2"}, int, float or None, default None
        Columns drawn once per meta-node, which limit its whole inner tree; its conditions then draw
        from these.
    bootstrap, max_samples
        As in `MetaAPForest`.
    min_samples_leaf, min_samples_split, min_gain, max_leaf_nodes, smoothing, smoothing_strength, splitter, max_bins
        As in `TreeRank`.
    categorical_features, cat_smooth, min_data_per_group
        As in `TreeRank`.
    max_cat_threshold, keep_columns, budget, pos_label, n_jobs, random_state, verbose
        As in `MetaAPForest`.

    Attributes
    ----------
    oob_decision_function_ : float64 array of shape (n,)
        Score by the trees that did not see the row; NaN if all did, as with bootstrap=False.
    oob_score_ : float
        Area under the ROC curve of these scores; NaN if a class has none.
    oob_average_precision_ : float
        Their average precision.
    trees_, feature_importances_
        As in `MetaAPForest`.

    References
    ----------
    .. [1] Clémençon, Vayatis. Tree-based ranking methods. 2008.
       Remark 8 and section V-C.

    Examples
    --------
    >>> from toprank import TreeRankForest
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> forest = TreeRankForest(n_estimators=20, max_depth=2, max_meta_features="sqrt", random_state=0)
    >>> bool(forest.fit(data.X, data.y).oob_score_ > 0.5)
    True
    """

    _parameter_constraints = Forest._parameter_constraints | {
        "leaf_ranker": [StrOptions({"tree", "stump", "oblique"})],
        "logistic_C": [Interval(Real, 0, None, closed="neither")],
        "leaf_order": [StrOptions({"rate", "meta", "training"})],
        "aggregation": [StrOptions({"mean", "median-rank"})],
        "max_meta_features": COLUMNS_DRAWN,
    }
    _judgements: ClassVar[tuple[Judgement, ...]] = (
        Judgement("oob_score_", "oob_roc_auc", "AUC", roc_auc),
        Judgement("oob_average_precision_", "oob_average_precision", "average precision", average_precision),
    )

    n_estimators: int = 100
    max_depth: int | None = 4
    leaf_depth: int | None = 4
    leaf_ranker: str = "tree"
    logistic_C: float = 1.0
    leaf_order: str = "rate"
    leaf_score: str = "additive"
    aggregation: str = "mean"
    max_features: str | int | float | None = None
    max_meta_features: str | int | float | None = None
    bootstrap: bool = True
    max_samples: int | float | None = None
    min_samples_leaf: int = 1
    min_samples_split: int = 2
    min_gain: float = 0.0
    max_leaf_nodes: int | None = None
    smoothing: str | None = "hierarchical"
    smoothing_strength: float = 10.0
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    cat_smooth: float | None = 10.0
    min_data_per_group: int = 10
    max_cat_threshold: int | None = 32
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def _settings(self) -> GrowthSettings:
        leaf_depth = 1 if self.leaf_ranker == "stump" else self.leaf_depth or self.max_depth
        return GrowthSettings.from_estimator(self, ROC_AREA.criterion, leaf_depth, objective=ROC_AREA)

    def _grow(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray, sampler: FeatureSampler | None
    ) -> tuple[MetaTree, float]:
        if is_grown_by_level(self.leaf_ranker):
            return super()._grow(settings, data, weight, sampler)
        return grow_node_by_node(settings, data, weight, self.leaf_ranker, self.logistic_C, sampler=sampler)

    def _vote(self, tree: Tree, score: np.ndarray) -> np.ndarray:
        return share_not_above(tree, score)

    def _out_of_bag_votes(self, vote: Vote, n_rows: int) -> MeanOfVotes | MedianOfVotes:
        return (MeanOfVotes if self.aggregation == "mean" else MedianOfVotes)(vote, n_rows)

    def _how(self) -> str:
        return "mean of {}" if self.aggregation == "mean" else "median of {}"

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        if self.aggregation == "mean":
            return super()._score_rows(matrix, threads)
        return median_votes(self._voter(matrix, self._points(matrix)), self.trees_, len(matrix), threads)


def share_not_above(tree: Tree, score: np.ndarray) -> np.ndarray:
    """Return s-tilde of remark 8 from tree scores: the share of negatives that do not rank above the row's cell.

    With R_j the cells 0 to j, best first, a row in cell k is in R_j for j >= k, so the sum of remark 8 telescopes:
    the sum over j of (alpha_{j+1} - alpha_j) 1{x in R_j} = the sum over j >= k of the differences = 1 - alpha_k.
    """
    # A tree scores cell k of L in ((L - k - 1) / L, (L - k) / L]; between the ends of that range the order inside the
    # cell is kept, and a constant cell lies at the upper end, where the result is 1 - alpha_k to the last bit.
    n_places = tree.n_leaves
    level = (1.0 - negatives_above(tree))[::-1]
    return np.interp(score, np.arange(n_places + 1) / n_places, level)
