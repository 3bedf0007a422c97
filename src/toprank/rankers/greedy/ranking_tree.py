"""`RankingTree`: one greedy tree used as a ranker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, StrOptions
from toprank._core.dtypes import CRITERIA
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.greedy.monotone import MONOTONIC_CST, bounded_rates, directions_of_tree
from toprank.rankers.growth import DEPTH, FOLD_CONSTRAINTS, GROWTH_CONSTRAINTS, GrowthSettings, grow_tree
from toprank.rankers.leaf_rates import finish_tree, node_rates, order_by_rate
from toprank.rankers.tree_ranker import TreeRanker
from toprank.tree.meta.stages import Stages, node_depths, truncated_tree
from toprank.tree.scoring import TIES, Margin, Scoring, Votes

MAJORITY = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class RankingTree(TreeRanker):
    """One greedy tree used as a ranker, with the three scores of section 3 of the MetaAP paper.

    Parameters
    ----------
    criterion : {"gini", "entropy", "ap", "auc"}, default "gini"
        Criterion for the splits.
    leaf_score : {"constant", "margin", "votes"}, default "constant"
        constant: the smoothed positive rate of the leaf; its rows tie. margin: signed distance to the nearest threshold
        on the path, positive in leaves with a majority of positives, negative in the others (the geometric score of
        Alvarez & Bernard, 2005). votes: all leaves vote; a leaf counts `vote_decay` to the power of the number of
        conditions on its path that the row breaks (the confusion factor of Ling & Yan, 2003). Leaves that tie share a
        place in the ranking: with constant and votes, those of equal rate; with margin, where distances order rows
        across leaves, those with a majority of positives share the first place, all others the second. `rules`, the
        leaf numbers in texts and alerts, and `predict_proba` refer to places (`n_places_`).
    distance : {"scaled", "raw"}, default "scaled"
        Unit of the distance of leaf_score="margin": standard deviations of the column, or its own unit, which gives
        columns of large numbers more weight; the baselines of the MetaAP paper are raw.
    vote_decay : float from 0 to 1, default 0.3
        Factor by which each broken condition reduces a leaf's vote with leaf_score="votes"; 0 gives the leaf rate.
    max_depth : int or None, default 6
        Most conditions on a path; None = no limit.
    min_samples_leaf : int, default 5
        Minimum weight of a leaf.
    min_samples_split, min_gain
        As in `MetaAP`.
    max_leaf_nodes : int or None
        Grow best first up to this number of leaves.
    smoothing, smoothing_strength
        As in `MetaAP`; here by default rates are m-estimates, with a strength of 2 cases.
    splitter, max_bins, categorical_features, cat_smooth, min_data_per_group, max_cat_threshold
        As in `MetaAP`.
    monotonic_cst : array-like of -1, 0, 1 per column, dict of names, or None
        Number columns in which the score must be monotone, as in scikit-learn: 1 = it never falls as the column rises,
        -1 = it never rises. Needs leaf_score="constant", as other scores depend on distances and votes.
    keep_columns, budget, pos_label, n_jobs
        As in `MetaAP`.
    cv : int, splitter or iterable of splits, default 5
        Folds for the hit rates of new cases; 0 = training rates only.
    random_state : int, RandomState or None
        Seed of the folds, fixed for None; nothing else is random.

    References
    ----------
    .. [1] Viola, Gautheron, Habrard, Sebban. MetaAP: a meta-tree-based ranking algorithm optimizing the average
       precision from imbalanced data. Pattern Recognition Letters 161, 2022. Section 3.

    Examples
    --------
    >>> from toprank import RankingTree
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> tree = RankingTree(criterion="entropy", max_depth=3).fit(data.X, data.y)
    >>> tree.n_leaves_
    8
    """

    _parameter_constraints = {
        **GROWTH_CONSTRAINTS,
        "criterion": [StrOptions({"gini", "entropy", "ap", "auc"})],
        "leaf_score": [StrOptions({"constant", "margin", "votes"})],
        "distance": [StrOptions({"scaled", "raw"})],
        "vote_decay": [Interval(Real, 0, 1, closed="both")],
        "max_depth": DEPTH,
        **FOLD_CONSTRAINTS,
        "monotonic_cst": MONOTONIC_CST,
    }

    criterion: str = "gini"
    leaf_score: str = "constant"
    distance: str = "scaled"
    vote_decay: float = 0.3
    max_depth: int | None = 6
    min_samples_leaf: int = 5
    min_samples_split: int = 2
    min_gain: float = 0.0
    max_leaf_nodes: int | None = None
    smoothing: str | None = "m-estimate"
    smoothing_strength: float = 2.0
    splitter: str = "hist"
    max_bins: int = 255
    categorical_features: Any = None
    cat_smooth: float | None = 10.0
    min_data_per_group: int = 10
    max_cat_threshold: int | None = 3
    monotonic_cst: Any = None
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    cv: Any = 5
    random_state: Any = None

    def _fit_model(self, data: BinnedCases, threads: Threads) -> None:
        direction = directions_of_tree(self, data)
        settings = GrowthSettings.from_estimator(self, CRITERIA[self.criterion], self.max_depth)
        tree = grow_tree(settings, data, threads, direction)
        node_rate = bounded_rates(tree, node_rates(tree, settings.smoothing, settings.smoothing_strength), direction)
        position, rate = order_by_rate(tree, node_rate)
        key = np.unique(-node_rate, return_inverse=True)[1]
        scoring: Scoring = TIES
        if self.leaf_score == "votes":
            scoring = Votes(self.vote_decay)
        elif self.leaf_score == "margin":
            # Two places in the ranking: leaves with a majority of positives, and the others; margins order rows within.
            scale = data.column_scales() if self.distance == "scaled" else np.ones(data.X.shape[1])
            scoring = Margin(scale, MAJORITY)
            total = tree.positive + tree.negative
            position, rate = _rich_and_poor(tree.positive, total, position)
            key = np.unique(_is_poor(tree.positive, total), return_inverse=True)[1]
        self.tree_ = finish_tree(tree, position, rate, scoring)
        self._stages: Stages | None = None
        if self.max_leaf_nodes is None:
            depth = node_depths(tree)
            self._stages = Stages.from_nodes(np.arange(len(tree)), depth, key, self.max_depth, rate=node_rate)

    def _to_arrays(self) -> dict[str, np.ndarray]:
        stages = {} if self._stages is None else self._stages.to_arrays()
        return super()._to_arrays() | with_prefix(stages, "stages_")

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        stages = without_prefix(arrays, "stages_")
        self._stages = Stages.from_arrays(stages, self.tree_) if stages else None

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of trees with max_depth 1, 2, ... up to `max_depth`.

        All depths come from the one fitted tree, with the same bits as a refit; if growing stopped early, the last
        scores repeat. With max_depth=None there are as many as the tree has levels. Raises ValueError if the tree was
        grown best first, with `max_leaf_nodes`.

        Examples
        --------
        >>> from toprank import RankingTree
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> tree = RankingTree(max_depth=3).fit(data.X, data.y)
        >>> shallow = RankingTree(max_depth=2).fit(data.X, data.y)
        >>> stages = list(tree.staged_decision_function(data.X))
        >>> len(stages), (stages[1] == shallow.decision_function(data.X)).all()
        (3, np.True_)
        """
        check_is_fitted(self)
        stages = self._stages
        if stages is None:
            raise InputError(
                "RankingTree.staged_decision_function needs a tree that was grown level by level, but this one was "
                "grown best first, with max_leaf_nodes: such trees are not nested. Hint: limit max_depth "
                "instead."
            )
        matrix = self._encode(X)
        if self.tree_.scoring.vote_decay is not None:
            return self._vote_in_stages(matrix, stages)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return stages.scores(self.tree_, matrix, threads)

    def _vote_in_stages(self, matrix: np.ndarray, stages: Stages) -> Iterator[np.ndarray]:
        """Yield the scores of each depth with leaf_score="votes", where each depth needs its own tree."""
        for stage in range(1, stages.n_stages + 1):
            if stage <= stages.n_distinct:
                tree = truncated_tree(self.tree_, stages.depth, stage)
                position, rate = order_by_rate(tree, stages.rate[: len(tree)])
                with Threads(resolve_n_jobs(self.n_jobs)) as threads:
                    score = finish_tree(tree, position, rate, self.tree_.scoring).decision_function(matrix, threads)
            yield score.copy()


def _is_poor(positive: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the nodes without a majority of positives."""
    return positive <= MAJORITY * total


def _rich_and_poor(positive: np.ndarray, total: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return position 0 for leaves with a majority of positives and 1 for the others, and both rates."""
    is_leaf = position >= 0
    poor = _is_poor(positive, total)
    if poor[is_leaf].all() or not poor[is_leaf].any():
        return np.where(is_leaf, 0, -1), positive[:1] / total[:1]
    side = np.where(is_leaf, poor.astype(np.int32), -1)
    sums = [np.bincount(side[is_leaf], values[is_leaf], 2) for values in (positive, total)]
    return side, sums[0] / sums[1]
