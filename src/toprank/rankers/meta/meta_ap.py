"""`MetaAP`: a tree of trees that optimises average precision."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np

from toprank._compat import Interval, StrOptions
from toprank._core.dtypes import CRITERIA
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.errors import InputError
from toprank.metrics import average_precision
from toprank.rankers.growth import (
    CCP_ALPHA,
    CV,
    DEPTH,
    GROWTH_CONSTRAINTS,
    PUBLISHED_CATEGORIES,
    GrowthSettings,
    grow_meta,
    grow_shared_meta,
)
from toprank.rankers.meta.meta_ranker import GrownMeta, MetaRanker
from toprank.rankers.meta.ordering import order_leaves
from toprank.rankers.meta.pruning import Pruner, SiblingPruner
from toprank.tree.meta.objectives import AVERAGE_PRECISION


class MetaAP(MetaRanker):
    """A readable tree of trees that puts positives at the very top, by optimising average precision.

    An inner tree is grown with the AP criterion; its cells are ordered by (1 - precision) / recall and cut in two where
    the AP of the left part is largest; both parts are treated the same way, `max_depth` levels deep. The result is
    flattened into one `Tree`, in which several paths may lead to the same leaf.

    Parameters
    ----------
    max_depth : int or None, default 4
        Meta-levels; at most 2 ** max_depth leaves.
    leaf_depth : int or None, default 4
        Depth of the inner trees; None = max_depth, as published.
    criterion : {"entropy", "ap", "auc", "gini", "error"}, default "entropy"
        What the conditions of inner trees are chosen by; their cells are ordered and cut by AP in any case. "ap", as
        published, asks for conditions that most of the positives meet. Where positives live in several small pockets
        "entropy" and "auc" find more of them.
    leaf_order : {"rate", "meta"}, default "rate"
        Order of the leaves: by positive rate, strongly shrunk along the meta-tree, or from left to right in the
        meta-tree, as published. The published order can leave a rich leaf behind poor ones where positives live in
        several separate pockets.
    leaf_score : {"additive", "linear", "margin", "constant"}, default "additive"
        What orders the rows inside a leaf; leaves are never crossed. constant: nothing. margin: distance to the
        nearest threshold on the path, in standard deviations of the column. linear: one sparse scorecard shared by
        all leaves (L1 logistic regression on standardised columns). additive: the same, where a number may also get
        points for being above some of its quantiles.
    logistic_C : float, default 1.0
        Inverse penalty of the scorecard: C of its L1 logistic regression.
    ccp_alpha : float or "cv", default "cv"
        Cost-complexity pruning on AP: what a leaf must add to the training AP to stay. "cv" chooses the penalty by
        stratified cross-validation.
    cv : int, splitter or iterable of splits, default 5
        Folds for the hit rates of new cases and for ccp_alpha="cv"; an int means stratified folds. 0: rates are those
        of training, and ccp_alpha="cv" takes 5 folds.
    min_samples_leaf : int, default 20
        Least weight of a cell of an inner tree.
    min_samples_split : int, default 2
        Least weight of a node that may be split.
    min_gain : float, default 0
        Least gain of a split, as a share of the most that the criterion could gain at the root.
    stop_at_ap_loss : bool, default False
        For criterion "ap": an inner tree stops where its best condition has less AP than the condition above it gave
        this side, a rule of the published code. What it stops are mostly sides that are poor in positives.
    max_leaf_nodes : int or None
        Grow inner trees best first up to this number of cells.
    smoothing : {"hierarchical", "m-estimate"} or None
        How leaf rates are pulled towards the rate above them.
    smoothing_strength : float
        In cases.
    splitter : {"hist", "exact", "midpoint"}
        Bins, or every distinct value. Thresholds are the shortest decimals between two values; with "midpoint", which
        is otherwise "exact", they lie midway, as in the papers.
    max_bins : int
    categorical_features : list of names, positions or a mask
        Columns to treat as categories besides strings, booleans and category columns; text among them is not read as
        dates or numbers.
    cat_smooth : float or None, default 10
        Cases by which the rate of a category is pulled to that of its node before categories are ordered. A condition
        on many categories is judged on other cases than those that ordered them, so that chance buys no gain; None
        turns that off, too: categories by their training rate, as the papers have it.
    min_data_per_group : int, default 10
        Categories of fewer cases in a node go together.
    max_cat_threshold : int or None, default 3
        Categories that a condition names at most; all others are on its other side. None = no limit.
    keep_columns : list of names, positions, a mask, or "all"
        Columns to learn from although they look like identifiers, free text or constants, which are left out.
    budget : int, float or None
        Cases (int) or share of cases (float) that `predict` lets through; None = as many as training positives.
    pos_label : label of the positive class, default the larger one
    n_jobs : int or None
        Threads; results are the same for any number.
    random_state : int, RandomState or None
        Folds of ccp_alpha="cv", the same each time for None; nothing else is random.

    Attributes
    ----------
    tree_ : Tree
    ccp_alpha_ : float
        The penalty used.
    ccp_path_ : dict
        With ccp_alpha="cv": penalties tried and their cross-validated AP (NaN where too few rows allow no folds).

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

    _objective = AVERAGE_PRECISION
    _measure_name = "average_precision"

    _parameter_constraints: dict[str, list[Any]] = {
        **GROWTH_CONSTRAINTS,
        "max_depth": DEPTH,
        "leaf_depth": DEPTH,
        "criterion": [StrOptions(set(CRITERIA))],
        "leaf_order": [StrOptions({"rate", "meta"})],
        "leaf_score": [StrOptions({"constant", "margin", "linear", "additive"})],
        "logistic_C": [Interval(Real, 0, None, closed="neither")],
        "ccp_alpha": CCP_ALPHA,
        "stop_at_ap_loss": ["boolean"],
        "cv": CV,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        max_depth: int | None = 4,
        leaf_depth: int | None = 4,
        criterion: str = "entropy",
        leaf_order: str = "rate",
        leaf_score: str = "additive",
        logistic_C: float = 1.0,
        ccp_alpha: float | str = "cv",
        cv: Any = 5,
        min_samples_leaf: int = 20,
        min_samples_split: int = 2,
        min_gain: float = 0.0,
        stop_at_ap_loss: bool = False,
        max_leaf_nodes: int | None = None,
        smoothing: str | None = "hierarchical",
        smoothing_strength: float = 10.0,
        splitter: str = "hist",
        max_bins: int = 255,
        categorical_features: Any = None,
        cat_smooth: float | None = 10.0,
        min_data_per_group: int = 10,
        max_cat_threshold: int | None = 3,
        keep_columns: Any = None,
        budget: int | float | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_depth = max_depth
        self.leaf_depth = leaf_depth
        self.criterion = criterion
        self.leaf_order = leaf_order
        self.leaf_score = leaf_score
        self.logistic_C = logistic_C
        self.ccp_alpha = ccp_alpha
        self.cv = cv
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_gain = min_gain
        self.stop_at_ap_loss = stop_at_ap_loss
        self.max_leaf_nodes = max_leaf_nodes
        self.smoothing = smoothing
        self.smoothing_strength = smoothing_strength
        self.splitter = splitter
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.cat_smooth = cat_smooth
        self.min_data_per_group = min_data_per_group
        self.max_cat_threshold = max_cat_threshold
        self.keep_columns = keep_columns
        self.budget = budget
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, depth: int, **parameters: Any) -> Self:
        """MetaAP as published: one depth for both levels, exact greedy inner trees down to single cases, no smoothing.

        The published code orders rows inside a leaf by a distance scaled over the scored batch; `leaf_score="margin"`
        is its counterpart that depends on the row alone. It also stops inner trees by a rule that the paper does not
        tell: `stop_at_ap_loss=True`.
        """
        published = {"max_depth": depth, "leaf_depth": None, "criterion": "ap", "leaf_order": "meta",
                     "leaf_score": "margin", "ccp_alpha": 0.0, "min_samples_leaf": 1, "min_gain": -np.inf,
                     "smoothing": None, "splitter": "midpoint"}  # fmt: skip
        return cls(**(published | PUBLISHED_CATEGORIES | parameters))

    def _settings(self) -> GrowthSettings:
        if self.stop_at_ap_loss and self.criterion != "ap":
            raise InputError(
                f"MetaAP with stop_at_ap_loss=True needs conditions chosen by criterion='ap', but criterion is "
                f"{self.criterion!r}, whose gains are no AP. Hint: use min_gain to stop inner trees early."
            )
        return GrowthSettings.from_estimator(
            self,
            CRITERIA[self.criterion],
            self.leaf_depth or self.max_depth,
            max_depth=self.max_depth,
            leaf_order=self.leaf_order,
            stop_at_ap_loss=self.stop_at_ap_loss,
        )

    def _grow(
        self, settings: GrowthSettings, data: BinnedCases, weight: np.ndarray | None, threads: Threads
    ) -> GrownMeta:
        if weight is data.weight:
            return GrownMeta(*grow_shared_meta(settings, data, threads))
        return GrownMeta(*grow_meta(settings, data, weight, threads))

    def _pruner(self, settings: GrowthSettings, grown: GrownMeta, data: BinnedCases) -> Pruner:
        return SiblingPruner(grown.meta, AVERAGE_PRECISION, lambda meta: order_leaves(settings, meta, grown.unit))

    def _measure(self, is_positive: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
        return average_precision(is_positive, score, sample_weight=weight)
