"""`MetaAP`: a tree of trees that optimises average precision."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from toprank._compat import Interval, StrOptions
from toprank._core.dtypes import CRITERIA
from toprank.budget import cases_of_budget
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.metrics import average_precision
from toprank.rankers.growth import (
    CCP_ALPHA,
    DEPTH,
    FOLD_CONSTRAINTS,
    GROWTH_CONSTRAINTS,
    PUBLISHED_CATEGORIES,
    GrowthSettings,
)
from toprank.rankers.leaf_scores import LEAF_SCORES
from toprank.rankers.meta.meta_ranker import GrownMeta, MetaRanker
from toprank.rankers.meta.ordering import order_leaves
from toprank.rankers.meta.pruning import Pruner, SiblingPruner
from toprank.tree.meta.objectives import AVERAGE_PRECISION, Objective, TopPrecision, top_precision


@dataclass(kw_only=True, eq=False, repr=False)
class MetaAP(MetaRanker):
    """A readable tree of trees that optimises average precision, to put positives at the very top.

    An inner tree is grown with the AP criterion; its cells are ordered by (1 - precision) / recall and split in two
    where the AP of the left part is largest. Both parts are split in the same way, `max_depth` levels deep. The result
    is flattened into one `Tree`, in which several paths may lead to the same leaf.

    Parameters
    ----------
    max_depth : int or None, default 4
        Levels of the meta-tree; at most 2 ** max_depth leaves.
    leaf_depth : int or None, default 4
        Depth of the inner trees; None = max_depth, as published.
    criterion : {"entropy", "ap", "auc", "gini", "error"}, default "entropy"
        Criterion for the splits of inner trees; their cells are always ordered and cut by AP. "ap", as published,
        favours conditions that most of the positives meet. If positives form several small clusters, "entropy" and
        "auc" find more of them.
    objective : {"ap", "ap@k"}, default "ap"
        What orders and cuts the cells of inner trees, and what pruning keeps. "ap@k": average precision of which only
        positives within the first k cases count, k being the `budget`; parts of the meta-tree beyond it are not split.
    leaf_order : {"rate", "meta"}, default "rate"
        Order of the leaves: by positive rate, strongly shrunk along the meta-tree, or from left to right in the
        meta-tree, as published. If positives form several clusters, the published order can rank a rich leaf below
        poor ones.
    leaf_score : {"additive", "linear", "margin", "constant"}, default "additive"
        How rows are ordered inside a leaf; the order of the leaves stays. constant: all rows tie. margin: distance to
        the nearest threshold on the path, in standard deviations of the column. linear: one sparse scorecard shared by
        all leaves (L1 logistic regression on standardised columns). additive: the same, but a number may also get
        points for being above some of its quantiles.
    logistic_C : float, default 1.0
        Inverse penalty of the scorecard, C of its L1 logistic regression.
    ccp_alpha : float or "cv", default "cv"
        Cost-complexity pruning on AP: what a leaf must add to the training AP to stay. "cv" chooses the penalty by
        stratified cross-validation.
    cv : int, splitter or iterable of splits, default 5
        Folds for the hit rates of new cases and for ccp_alpha="cv"; an int means stratified folds. 0: training rates
        only, and ccp_alpha="cv" uses 5 folds.
    min_samples_leaf : int, default 20
        Minimum weight of a cell of an inner tree.
    min_samples_split : int, default 2
        Minimum weight of a node to split.
    min_gain : float, default 0
        Minimum gain of a split, as a share of the largest possible gain at the root.
    stop_at_ap_loss : bool, default False
        For criterion "ap": do not split a node of an inner tree if the best split has less AP than its parent's
        split gave this side, a rule of the published code. It mostly stops sides with few positives.
    max_leaf_nodes : int or None
        Grow inner trees best first up to this number of cells.
    smoothing : {"hierarchical", "m-estimate"} or None
        How leaf rates are shrunk towards the rate of their parent.
    smoothing_strength : float
        Strength of the shrinkage, in cases.
    splitter : {"hist", "exact", "midpoint"}
        Split on bins or on every distinct value. Thresholds are the shortest decimals between two values; "midpoint"
        is "exact" with thresholds midway, as in the papers.
    max_bins : int
    categorical_features : list of names, positions or a mask
        Columns to treat as categories besides strings, booleans and category columns; their text is not read as
        dates or numbers.
    cat_smooth : float or None, default 10
        Strength, in cases, of shrinking the rate of a category towards its node's before categories are ordered. Splits
        on many categories are judged on other cases than those that ordered them, so that noise brings no gain. None
        turns both off and orders categories by their training rate, as in the papers.
    min_data_per_group : int, default 10
        Categories with fewer cases in a node are grouped.
    max_cat_threshold : int or None, default 3
        Most categories that a condition names; all others go to the other side. None = no limit.
    keep_columns : list of names, positions, a mask, or "all"
        Columns to keep even if they look like identifiers, free text or constants, which are otherwise left out.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` flags; None = as many as training positives.
    pos_label : label of the positive class, default that of a usual pair, such as yes of yes/no, else the larger
    n_jobs : int or None
        Threads; the results do not depend on it.
    random_state : int, RandomState or None
        Seed of the folds of ccp_alpha="cv", fixed for None; nothing else is random.

    Attributes
    ----------
    tree_ : Tree
    ccp_alpha_ : float
        The penalty used.
    ccp_path_ : dict
        With ccp_alpha="cv": penalties tried and their cross-validated AP (NaN if there are too few rows for folds).

    References
    ----------
    .. [1] Viola, Gautheron, Habrard, Sebban. MetaAP: a meta-tree-based ranking algorithm optimizing the average
       precision from imbalanced data. Pattern Recognition Letters 161, 2022. Section 4.

    Examples
    --------
    >>> from toprank import MetaAP
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> model = MetaAP(max_depth=2, leaf_depth=3, budget=50).fit(data.X, data.y)
    >>> alerts = model.top_k(data.X, 50, reasons=2)
    >>> len(alerts), model.n_leaves_ <= 4
    (50, True)
    """

    _measure_name = "average_precision"

    _parameter_constraints = {
        **GROWTH_CONSTRAINTS,
        "max_depth": DEPTH,
        "leaf_depth": DEPTH,
        "criterion": [StrOptions(set(CRITERIA))],
        "objective": [StrOptions({"ap", "ap@k"})],
        "leaf_order": [StrOptions({"rate", "meta"})],
        "leaf_score": [StrOptions(set(LEAF_SCORES))],
        "logistic_C": [Interval(Real, 0, None, closed="neither")],
        "ccp_alpha": CCP_ALPHA,
        "stop_at_ap_loss": ["boolean"],
        **FOLD_CONSTRAINTS,
    }

    max_depth: int | None = 4
    leaf_depth: int | None = 4
    criterion: str = "entropy"
    objective: str = "ap"
    leaf_order: str = "rate"
    leaf_score: str = "additive"
    logistic_C: float = 1.0
    ccp_alpha: float | str = "cv"
    cv: Any = 5
    min_samples_leaf: int = 20
    min_samples_split: int = 2
    min_gain: float = 0.0
    stop_at_ap_loss: bool = False
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
        """MetaAP as published: one depth for both levels, exact greedy inner trees down to single cases, no smoothing.

        The published code orders rows inside a leaf by a distance scaled over the scored batch; `leaf_score="margin"`
        is its counterpart that depends on the row alone. It also stops inner trees by a rule that the paper does not
        mention: `stop_at_ap_loss=True`.
        """
        published = {"max_depth": depth, "leaf_depth": None, "criterion": "ap", "leaf_order": "meta",
                     "leaf_score": "margin", "ccp_alpha": 0.0, "min_samples_leaf": 1, "min_gain": -np.inf,
                     "smoothing": None, "splitter": "midpoint"}  # fmt: skip
        return cls(**(published | PUBLISHED_CATEGORIES | parameters))

    def _settings(self) -> GrowthSettings:
        if self.stop_at_ap_loss and self.criterion != "ap":
            raise InputError(
                f"MetaAP with stop_at_ap_loss=True needs conditions chosen by criterion='ap', but criterion is "
                f"{self.criterion!r}, whose gains are not AP. Hint: use min_gain to stop inner trees early."
            )
        leaf_depth, objective = self.leaf_depth or self.max_depth, self._objective_of_budget()
        return GrowthSettings.from_estimator(self, CRITERIA[self.criterion], leaf_depth, objective=objective)

    def _objective_of_budget(self) -> Objective:
        """Return the objective; the budget is a share of the whole table, so that it means the same in folds."""
        if self.objective == "ap":
            return AVERAGE_PRECISION
        n_cases, n_positives = self._table_counts or (self.n_cases_, self.n_positives_)
        return TopPrecision.from_share(min(cases_of_budget(self.budget, n_cases, n_positives) / n_cases, 1.0))

    def _pruner(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases) -> Pruner:
        return SiblingPruner(grown.meta, lambda meta: order_leaves(settings, meta, grown.unit), settings.objective)

    def _measure(self, is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        if self.objective == "ap":
            return average_precision(is_positive, score, sample_weight=weight)
        return top_precision(is_positive, score, weight, self._objective_of_budget().depth)
