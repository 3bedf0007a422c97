"""`TreeRank`: a tree of trees that optimises the area under the ROC curve."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank._compat import HasMethods, Interval, StrOptions
from toprank._core.dtypes import CRITERIA
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.explain import PathCounts, Reason, auc_importance, gain_importance
from toprank.explain.values import Originals
from toprank.files.model_file import with_prefix, without_prefix
from toprank.metrics import RocCurve, roc_auc
from toprank.rankers.ensemble.ensemble import negatives_above
from toprank.rankers.growth import (
    CCP_ALPHA,
    DEPTH,
    FOLD_CONSTRAINTS,
    GROWTH_CONSTRAINTS,
    PUBLISHED_CATEGORIES,
    GrowthSettings,
)
from toprank.rankers.leaf_rates import recounted
from toprank.rankers.leaf_scores import LEAF_SCORES
from toprank.rankers.meta.leaf_rankers import grow_node_by_node, is_grown_by_level
from toprank.rankers.meta.meta_ranker import GrownMeta, MetaRanker
from toprank.rankers.meta.ordering import ClassifierTree, LeafOrder, order_leaves
from toprank.rankers.meta.pruning import CellPruner, Pruner, SiblingPruner
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.scoring import TIES, Scoring
from toprank.tree.structure import Tree, check_columns
from toprank.tree.weights import integer_weights

AUTO_DEPTH = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRank(MetaRanker):
    """A readable tree of trees that optimises the area under the ROC curve, to order all cases.

    Every cell of the ranking is split in two where that adds most area (the entropic measure Lambda of section IV-A),
    the richer part first, `max_depth` levels deep: a piecewise-linear approximation of the optimal ROC curve that adds
    a knot inside every piece. If no subset adds area, the cell is not split; ties go to the larger subset (remark 10).

    Parameters
    ----------
    max_depth : int, "auto" or None, default 4
        Levels; at most 2 ** max_depth cells. "auto" = the square root of the logarithm of the number of cases, rounded
        up: the rate of theorem 23.
    leaf_depth : int or None, default 4
        Depth of the inner trees with leaf_ranker="tree"; None = max_depth.
    leaf_ranker : {"tree", "stump", "oblique"} or classifier, default "tree"
        How a cell is split. tree: an inner tree is grown, its cells are ordered by beta / alpha and merged into two
        where beta - alpha is largest (the enriched rule of section VI). stump: one condition on one column (orthogonal
        splits). oblique: a sparse weighted sum of the numeric columns (L1 logistic regression, then the best threshold
        along it), or one condition if that adds as much. A scikit-learn classifier whose fit takes sample_weight:
        what it predicts positive is the richer part; it sees numbers, and categories as codes. Such a model ranks, but
        has no tree: it offers no reasons, rules, text or files, and rows of a cell tie whatever `leaf_score` is.
    criterion : {"auc", "error"}, default "auc"
        Criterion for the splits of inner trees. auc: the area they add, with the classes of the node weighted equally.
        error: the mistakes if one side is predicted positive and the other negative, with the classes weighted equally
        in the whole cell that the inner tree splits; MetaAP's authors compared with this one.
    leaf_order : {"rate", "meta", "training", "held-out", "growth"}, default "rate"
        Order of the cells. meta: from left to right in the meta-tree, as in section IV-A. The others reorder the
        cells ("shaking", section V-B). training: by beta / alpha, which maximises the training AUC over all
        permutations. held-out: by the rate on `held_out_size` of the cases, which are not used for growing (the rate of
        all cases counts as one more case; which rows are drawn depends on their order). rate: by positive rate,
        strongly shrunk along the meta-tree, as in `MetaAP`. growth: already while growing; a cell is split where that
        adds most area to all cells together, and both parts move to their place.
    held_out_size : float, default 0.3
        Share of the cases of each class that orders the cells with leaf_order="held-out".
    leaf_score : {"margin", "constant", "linear", "additive"}, default "margin"
        How rows are ordered inside a cell, as in `MetaAP`; constant = they tie, as published.
    logistic_C : float, default 1.0
        Inverse penalty, C of the L1 logistic regression, of weighted sums and of the linear score inside cells.
    pruning : {"siblings", "cells"}, default "siblings"
        What `ccp_alpha` merges: two parts of one cell (weakest link, remark 18), or any neighbours in the ranking
        (section V-A, solved exactly by dynamic programming).
    ccp_alpha : float or "cv", default 0.0
        Lambda of section V-A: what a cell must add to the training AUC to stay. "cv" chooses it by stratified
        cross-validation of the AUC on held-out folds.
    cv
        As in `MetaAP`.
    min_samples_leaf, min_samples_split, min_gain, max_leaf_nodes, smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`.
    categorical_features, cat_smooth, min_data_per_group, max_cat_threshold, keep_columns, budget, pos_label, n_jobs
        As in `MetaAP`.
    random_state : int, RandomState or None
        Seed of the folds of ccp_alpha="cv" and of the rows of leaf_order="held-out", fixed for None.

    Attributes
    ----------
    tree_ : Tree
    full_tree_ : Tree
        The tree before pruning; `tree_` itself if nothing was pruned.
    roc_ : RocCurve
        The training ROC curve of the cells; `roc_.alpha` and `roc_.beta` are its knots, `auc_` its area.
    importances_ : float64 array of shape (n_features,)
        Sum of squared AUC gains of the conditions on each column. A condition of an inner tree counts by the area that
        it adds inside that tree.
    ccp_alpha_ : float
    ccp_path_ : dict
        With ccp_alpha="cv": penalties tried and their cross-validated AUC.
    max_depth_ : int or None
        The depth used.

    References
    ----------
    .. [1] Clémençon, Vayatis. Tree-based ranking methods. 2008. Sections IV to VI.

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> model = TreeRank(max_depth=2, leaf_depth=3).fit(data.X, data.y)
    >>> model.n_leaves_, bool(0.5 < model.auc_ == model.roc_.area)
    (4, True)
    """

    _measure_name = "roc_auc"

    _parameter_constraints = {
        **GROWTH_CONSTRAINTS,
        "max_depth": [*DEPTH, StrOptions({AUTO_DEPTH})],
        "leaf_depth": DEPTH,
        "leaf_ranker": [StrOptions({"tree", "stump", "oblique"}), HasMethods(["fit", "predict"])],
        "criterion": [StrOptions({"auc", "error"})],
        "leaf_order": [StrOptions({"rate", "meta", "training", "held-out", "growth"})],
        "held_out_size": [Interval(Real, 0, 1, closed="neither")],
        "leaf_score": [StrOptions(set(LEAF_SCORES))],
        "logistic_C": [Interval(Real, 0, None, closed="neither")],
        "pruning": [StrOptions({"siblings", "cells"})],
        "ccp_alpha": CCP_ALPHA,
        **FOLD_CONSTRAINTS,
    }

    max_depth: int | str | None = 4
    leaf_depth: int | None = 4
    leaf_ranker: Any = "tree"
    criterion: str = "auc"
    leaf_order: str = "rate"
    held_out_size: float = 0.3
    leaf_score: str = "margin"
    logistic_C: float = 1.0
    pruning: str = "siblings"
    ccp_alpha: float | str = 0.0
    cv: Any = 5
    min_samples_leaf: int = 20
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
    max_cat_threshold: int | None = 3
    keep_columns: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    @classmethod
    def paper(cls, depth: int, **parameters: Any) -> Self:
        """TreeRank as compared in the MetaAP paper: one depth for both levels, down to single cases, no reordering."""
        published = {"max_depth": depth, "leaf_depth": None, "criterion": "error", "leaf_order": "meta",
                     "leaf_score": "constant", "min_samples_leaf": 1, "min_gain": -np.inf, "smoothing": None,
                     "splitter": "midpoint"}  # fmt: skip
        return cls(**(published | PUBLISHED_CATEGORIES | parameters))

    # --- growing ------------------------------------------------------------------------------------------------

    def _depth(self) -> int | None:
        if isinstance(self.max_depth, str):  # "auto"
            return max(1, math.ceil(math.sqrt(math.log(max(self.n_cases_, 1.0)))))
        return None if self.max_depth is None else int(self.max_depth)

    def _settings(self) -> GrowthSettings:
        depth = self._depth()
        leaf_depth = 1 if self.leaf_ranker == "stump" else self.leaf_depth or depth
        order = {"held-out": "training", "growth": "training"}.get(self.leaf_order, self.leaf_order)
        return GrowthSettings.from_estimator(
            self, CRITERIA[self.criterion], leaf_depth, max_depth=depth, leaf_order=order, objective=ROC_AREA
        )

    def _grow(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray | None, threads: Threads
    ) -> GrownMeta:
        if self.leaf_order == "held-out":
            return self._grow_on_a_part(settings, data, weight, threads)
        intercalates = self.leaf_order == "growth"
        if not is_grown_by_level(self.leaf_ranker, intercalates):
            return GrownMeta(*grow_node_by_node(settings, data, weight, self.leaf_ranker, self.logistic_C,
                                                intercalates=intercalates, random_state=self.random_state))  # fmt: skip
        grown = super()._grow(settings, data, weight, threads)
        return replace(grown, meta=grown.meta.with_areas_as_gains())

    def _grow_on_a_part(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray | None, threads: Threads
    ) -> GrownMeta:
        """Grow a meta-tree on some of the rows, then fill it with all of them."""
        own = np.ones(len(data.X)) if weight is None else weight
        aside = self._set_aside(data.is_positive, own)
        growing = own.copy()
        growing[aside] = 0.0
        part = clone(self).set_params(leaf_order="training")
        grown = part._grow(settings, data, growing, threads)
        leaf = self._leaves_of(settings, grown, data, np.arange(len(own)))
        weights = integer_weights(data.is_positive, own)
        n_nodes = len(grown.meta.left)
        sums = [np.bincount(leaf, values, n_nodes) for values in (weights.positive, weights.total)]
        return GrownMeta(grown.meta.with_weights(*sums), weights.unit, aside, own)

    def _set_aside(self, is_positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Draw the rows that order the cells and are not grown on; at least one row per class is left to grow on."""
        random = check_random_state(0 if self.random_state is None else self.random_state)
        chosen = []
        for of_class in (is_positive, ~is_positive):
            rows = np.flatnonzero(of_class & (weight > 0))
            n_aside = min(round(self.held_out_size * len(rows)), len(rows) - 1)
            chosen.append(random.permutation(rows)[:n_aside])
        return np.sort(np.concatenate(chosen))

    # --- finishing ----------------------------------------------------------------------------------------------

    def _pruner(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases) -> Pruner:
        def arrange(meta: MetaTree) -> LeafOrder:
            own = order_leaves(settings, meta, grown.unit)
            return own if grown.aside is None else self._shaken(settings, replace(grown, meta=meta), data, own)

        if self.pruning == "cells":
            return CellPruner(grown.meta, arrange)
        return SiblingPruner(grown.meta, arrange, ROC_AREA)

    def _shaken(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, own: LeafOrder) -> LeafOrder:
        """Order the cells by the positive rate of the held-out rows; the rate of all rows counts as one more case.

        So cells without held-out rows, and cells that tie, keep the order of training.
        """
        aside, meta = grown.aside, grown.meta
        assert aside is not None
        assert grown.weight is not None
        leaf, weight = self._leaves_of(settings, grown, data, aside), grown.weight[aside]
        total = np.bincount(leaf, weight, len(meta.left))[own.leaves]
        positive = np.bincount(leaf, weight * data.is_positive[aside], len(meta.left))[own.leaves]
        expected = meta.positive[own.leaves] / meta.total[own.leaves]
        return LeafOrder.apart(own.leaves[np.argsort(-(positive + expected) / (total + 1.0), kind="stable")])

    def _leaves_of(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, rows: Any) -> np.ndarray:
        """Return the meta-leaf of each row."""
        own = order_leaves(settings, grown.meta, grown.unit)
        tree, _ = self._finish(settings, replace(grown, weight=None), data, TIES, own)
        return own.leaves[tree.leaf[tree.apply(data.X[rows])]]

    def _finish(
        self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, scoring: Scoring, order: LeafOrder
    ) -> tuple[Any, Any]:
        if not isinstance(self.leaf_ranker, str):
            return ClassifierTree(grown.meta, grown.unit, settings, order), None
        tree, entry = super()._finish(settings, grown, data, scoring, order)
        if grown.weight is not None:  # conditions know only the rows that they were grown on
            tree = recounted(tree, data.X, data.is_positive, grown.weight)
        return tree, entry

    def _remember(
        self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases, scoring: Scoring, pruner: Pruner
    ) -> None:
        self.max_depth_, self.full_tree_ = self._depth(), self.tree_
        if self.ccp_alpha_ > 0:
            meta, order = pruner.at(0.0)
            self.full_tree_ = self._finish(settings, replace(grown, meta=meta), data, scoring, order)[0]

    def subtree(self, nodes: Any) -> Self:
        """A copy of the model whose ranking ends in the given meta-nodes, as in `MetaAP`."""
        part = super().subtree(nodes)
        part.full_tree_ = part.tree_
        return part

    def _measure(self, is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        return roc_auc(is_positive, score, sample_weight=weight)

    def _score_training_rows(self, data: BinnedCases, threads: Threads) -> tuple[slice, np.ndarray]:
        if self._has_no_tree:
            self.path_counts_ = PathCounts.none(self.tree_)
            return slice(None), self.tree_.decision_function(data.X)
        return super()._score_training_rows(data, threads)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of models with max_depth 1, 2, ... up to `max_depth`.

        As in `MetaAP`; refused with leaf_order="held-out", and for cells split by classifiers.
        """
        check_is_fitted(self)
        if self.leaf_order == "held-out" or self._has_no_tree:
            found = "leaf_order='held-out'" if self.leaf_order == "held-out" else "cells split by classifiers"
            raise InputError(
                "TreeRank.staged_decision_function needs an order of cells that growing gives at every depth, but this "
                f"model has {found}. Hint: use leaf_order='training' and leaf_ranker='tree', 'stump' or 'oblique'."
            )
        return super().staged_decision_function(X)

    # --- the ROC curve of the cells -----------------------------------------------------------------------------

    @property
    def roc_(self) -> RocCurve:
        """Training ROC curve of the cells in their order; its knots are those of step 3 of the algorithm."""
        check_is_fitted(self)
        ends = np.flatnonzero(self.tree_.is_leaf)
        place = self.tree_.leaf[ends]
        return RocCurve.from_cells(
            np.bincount(place, self.tree_.positive[ends]), np.bincount(place, self.tree_.negative[ends])
        )

    @property
    def auc_(self) -> float:
        """Training estimate of the AUC of the cells, as in step 3 of the algorithm."""
        return self.roc_.area

    def cell_scores(self, X: Any, scale: str = "level") -> np.ndarray:
        """Return the score of each row's cell, float64 (n,); rows of one cell tie.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        scale : {"level", "rate", "step"}
            level: s-tilde of remark 8, one minus the share of training negatives ranked before the cell, an estimate
            of H*(eta(x)); a cell without negatives ties with the next one. rate: eta-tilde, the positive rate of the
            cell in training, without smoothing; it is not monotone unless cells are ordered by rate. step: s_D
            of section IV-A, the number of cells from this one on; cells that were never split count once.

        Examples
        --------
        >>> from toprank import TreeRank
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = TreeRank(max_depth=2).fit(data.X, data.y)
        >>> sorted(set(model.cell_scores(data.X, "step").tolist()))
        [1.0, 2.0, 3.0, 4.0]
        """
        matrix = self._encode(X)
        roc = self.roc_
        if scale == "level":
            values = 1.0 - negatives_above(self.tree_)[:-1]
        elif scale == "rate":
            positive, negative = (
                np.diff(roc.beta) * self.n_positives_,
                np.diff(roc.alpha) * (self.n_cases_ - self.n_positives_),
            )
            values = positive / (positive + negative)
        elif scale == "step":
            values = np.arange(self.tree_.n_leaves, 0.0, -1.0)
        else:
            raise InputError(f"scale must be 'level', 'rate' or 'step', got {scale!r}. Hint: 'level' is s-tilde.")
        return values[self.tree_.leaf[self.tree_.apply(matrix)]]

    @property
    def importances_(self) -> np.ndarray:
        """Sum of squared AUC gains of the conditions on each column, float64 (n_features,); 0 for classifiers."""
        check_is_fitted(self)
        return np.zeros(len(self.columns_)) if self._has_no_tree else auc_importance(self.tree_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column's conditions in the total gain, float64 (n_features,); 0 for classifiers."""
        check_is_fitted(self)
        return np.zeros(len(self.columns_)) if self._has_no_tree else gain_importance(self.tree_)

    @property
    def _has_no_tree(self) -> bool:
        return isinstance(self.tree_, ClassifierTree)

    def _readable_tree(self) -> Tree:
        if self._has_no_tree:
            raise InputError(
                "This TreeRank is split by classifiers, so it has no conditions to read or to save. "
                "Hint: use leaf_ranker='tree', 'stump' or 'oblique'; decision_function and top_k work with any."
            )
        return self.tree_

    def _reasons(
        self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: np.ndarray | None
    ) -> list[list[Reason]]:
        return [[] for _ in matrix] if self._has_no_tree else super()._reasons(matrix, n_reasons, originals, gain)

    def _contributions(self, matrix: np.ndarray) -> np.ndarray | None:
        return None if self._has_no_tree else super()._contributions(matrix)

    # --- files --------------------------------------------------------------------------------------------------

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = super()._to_arrays()
        if self.full_tree_ is not self.tree_:
            arrays |= with_prefix(self.full_tree_.to_arrays(), "full_")
        return arrays

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self.max_depth_ = self._depth()
        full = without_prefix(arrays, "full_")
        self.full_tree_ = Tree.from_arrays(full) if full else self.tree_
        check_columns(self.full_tree_, self.columns_)
