"""`MetaAP`: a tree of trees that optimises average precision."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.metrics import average_precision
from toprank.rankers.growth import CCP_ALPHA, DEPTH, GROWTH_CONSTRAINTS, Growth, stages_of
from toprank.rankers.linear import fit_linear_scoring
from toprank.rankers.training import TrainingData
from toprank.rankers.tree_ranker import TreeRanker, without_prefix
from toprank.tree.meta import MetaTree
from toprank.tree.objectives import AVERAGE_PRECISION
from toprank.tree.prune import collapse_penalties, prune
from toprank.tree.scoring import Scoring
from toprank.tree.stages import Stages

PENALTIES_TRIED = 40
"""Penalties that cross-validated pruning compares at most."""


class MetaAP(TreeRanker):
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
    leaf_order : {"rate", "meta"}, default "rate"
        Order of the leaves: by positive rate, strongly shrunk along the meta-tree, or from left to right in the
        meta-tree, as published. The published order can leave a rich leaf behind poor ones where positives live in
        several separate pockets.
    leaf_score : {"margin", "constant", "linear"}, default "margin"
        What orders the rows inside a leaf; leaves are never crossed. constant: nothing. margin: distance to the
        nearest threshold on the path, in standard deviations of the column. linear: one sparse linear score shared by
        all leaves (L1 logistic regression on standardised columns).
    linear_C : float, default 1.0
        Inverse penalty of the linear score.
    ccp_alpha : float or "cv", default 0.0
        Cost-complexity pruning on AP: what a leaf must add to the training AP to stay. "cv" chooses the penalty by
        stratified cross-validation.
    cv : int, splitter or iterable of splits, default 5
        Folds for ccp_alpha="cv"; an int means stratified folds.
    min_samples_leaf : int, default 20
        Least weight of a cell of an inner tree.
    min_samples_split : int, default 2
        Least weight of a node that may be split.
    min_gain : float, default 0
        Least gain of a split, as a share of the most that the criterion could gain at the root.
    max_leaf_nodes : int or None
        Grow inner trees best first up to this number of cells.
    smoothing : {"hierarchical", "m-estimate"} or None
        How leaf rates are pulled towards the rate above them.
    smoothing_strength : float
        In cases.
    splitter : {"hist", "exact"}
        Bins, or every distinct value.
    max_bins : int
    categorical_features : list of names, positions or a mask
        Columns to treat as categories besides strings, booleans and category columns.
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
    >>> len(alerts), model.n_leaves_
    (50, 4)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **GROWTH_CONSTRAINTS,
        "max_depth": DEPTH,
        "leaf_depth": DEPTH,
        "leaf_order": [StrOptions({"rate", "meta"})],
        "leaf_score": [StrOptions({"constant", "margin", "linear"})],
        "linear_C": [Interval(Real, 0, None, closed="neither")],
        "ccp_alpha": CCP_ALPHA,
        "cv": ["cv_object"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        max_depth: int | None = 4,
        leaf_depth: int | None = 4,
        leaf_order: str = "rate",
        leaf_score: str = "margin",
        linear_C: float = 1.0,
        ccp_alpha: float | str = 0.0,
        cv: Any = 5,
        min_samples_leaf: int = 20,
        min_samples_split: int = 2,
        min_gain: float = 0.0,
        max_leaf_nodes: int | None = None,
        smoothing: str | None = "hierarchical",
        smoothing_strength: float = 10.0,
        splitter: str = "hist",
        max_bins: int = 255,
        categorical_features: Any = None,
        budget: int | float | None = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_depth = max_depth
        self.leaf_depth = leaf_depth
        self.leaf_order = leaf_order
        self.leaf_score = leaf_score
        self.linear_C = linear_C
        self.ccp_alpha = ccp_alpha
        self.cv = cv
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_gain = min_gain
        self.max_leaf_nodes = max_leaf_nodes
        self.smoothing = smoothing
        self.smoothing_strength = smoothing_strength
        self.splitter = splitter
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.budget = budget
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, depth: int, **parameters: Any) -> Self:
        """MetaAP as published: one depth for both levels, exact greedy inner trees down to single cases, no smoothing.

        The published code orders rows inside a leaf by a distance scaled over the scored batch; `leaf_score="margin"`
        is its counterpart that depends on the row alone.
        """
        published = {"max_depth": depth, "leaf_depth": None, "leaf_order": "meta", "leaf_score": "margin",
                     "min_samples_leaf": 1, "min_gain": -np.inf, "smoothing": None, "splitter": "exact"}  # fmt: skip
        return cls(**(published | parameters))

    def _fit_model(self, data: TrainingData, threads: Threads) -> None:
        growth = Growth.of(
            self,
            AVERAGE_PRECISION.criterion,
            self.leaf_depth or self.max_depth,
            max_depth=self.max_depth,
            leaf_order=self.leaf_order,
        )
        meta, unit = growth.grow_shared_meta(data, threads)
        self.ccp_alpha_ = 0.0
        if hasattr(self, "ccp_path_"):  # of an earlier fit
            del self.ccp_path_
        if self.ccp_alpha != 0.0:
            penalty = collapse_penalties(meta)
            self.ccp_alpha_ = self._choose_penalty(growth, data, penalty, threads)
            meta = prune(meta, penalty, self.ccp_alpha_)
        self.tree_, stages = growth.finish_in_stages(meta, unit, data, self._fit_scoring(data, data.weight))
        self._stages: Stages | None = stages if self.ccp_alpha == 0.0 else None

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores for the meta-depths 1, 2, ... up to `max_depth`: what MetaAP fitted with that `max_depth` would score.

        All depths are read off the one fitted model, bit for bit as if it had been fitted anew with the same
        `leaf_depth`. With leaf_depth=None the inner trees are as deep as the fitted `max_depth` says, after each stage.
        Where growing stopped earlier the last scores repeat. With max_depth=None there are as many as the meta-tree
        has levels.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)

        Yields
        ------
        score : float64 array of shape (n,)

        Raises
        ------
        ValueError
            Where the meta-tree was pruned, or where the model comes from a file.

        Examples
        --------
        >>> from toprank import MetaAP
        >>> from toprank.datasets import make_audit
        >>> data = make_audit(4000, random_state=0)
        >>> model = MetaAP(max_depth=3, leaf_depth=3).fit(data.X, data.y)
        >>> shallow = MetaAP(max_depth=2, leaf_depth=3).fit(data.X, data.y)
        >>> stages = list(model.staged_decision_function(data.X))
        >>> len(stages), (stages[1] == shallow.decision_function(data.X)).all()
        (3, np.True_)
        """
        check_is_fitted(self)
        if self.ccp_alpha != 0.0:
            raise ValueError(
                "MetaAP.staged_decision_function needs a meta-tree that was not pruned, but ccp_alpha is "
                f"{self.ccp_alpha!r}: pruned trees do not contain those of lower depth. Hint: fit with ccp_alpha=0."
            )
        stages = stages_of(self)
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return stages.scores(self.tree_, matrix, threads)

    def _size_in_words(self) -> str:
        pruned = f"; ccp_alpha {self.ccp_alpha_:.3g}" if self.ccp_alpha != 0.0 else ""
        return f"{super()._size_in_words()}; inside leaves: {self.leaf_score}{pruned}"

    def _fit_scoring(self, data: TrainingData, weight: np.ndarray | None) -> Scoring:
        """What orders rows inside leaves, from the rows that have weight."""
        if self.leaf_score == "margin":
            return Scoring("margin", scale=data.column_scales())
        if self.leaf_score == "linear":
            if weight is not data.weight:
                return fit_linear_scoring(data, weight, self.linear_C)
            return data.once(("linear", self.linear_C), lambda: fit_linear_scoring(data, weight, self.linear_C))
        return Scoring()

    def _to_arrays(self) -> dict[str, np.ndarray]:
        path = {f"ccp_{name}": values for name, values in getattr(self, "ccp_path_", {}).items()}
        return super()._to_arrays() | {"penalty": np.array(self.ccp_alpha_)} | path

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        self._stages = None  # files hold the finished tree
        self.ccp_alpha_, path = float(arrays["penalty"]), without_prefix(arrays, "ccp_")
        if path:
            self.ccp_path_ = path

    def _choose_penalty(self, growth: Growth, data: TrainingData, penalty: np.ndarray, threads: Threads) -> float:
        """The penalty given, or the one of best cross-validated AP; of equals the largest."""
        if self.ccp_alpha != "cv":
            return float(self.ccp_alpha)
        tried = penalties_to_try(penalty)
        folds = self._folds(data)
        if len(tried) == 1 or len(folds) == 0:
            self.ccp_path_ = {"ccp_alpha": tried[:1], "average_precision": np.full(1, np.nan)}
            return float(tried[0])
        weight = np.ones(len(data.X)) if data.weight is None else data.weight
        scores = np.zeros((len(folds), len(tried)))
        for i, held_out in enumerate(folds):
            inside = weight.copy()
            inside[held_out] = 0.0
            meta, unit = growth.grow_meta(data, inside, threads)
            scores[i] = self._held_out_scores(growth, data, meta, unit, tried, inside, held_out, weight[held_out])
        mean = scores.mean(axis=0)
        self.ccp_path_ = {"ccp_alpha": tried, "average_precision": mean}
        return float(tried[np.flatnonzero(mean >= mean.max() - 1e-12)[-1]])

    def _folds(self, data: TrainingData) -> list[np.ndarray]:
        """Held-out rows of each fold that leaves both classes on both sides."""
        has_weight = np.ones(len(data.X), bool) if data.weight is None else data.weight > 0
        position = np.arange(len(data.X))
        cv: Any = 5 if self.cv is None else self.cv
        if isinstance(cv, int | np.integer):
            position = np.flatnonzero(has_weight)  # weight 0 is no row at all
            n_folds = min(int(cv), int(np.bincount(data.is_positive[position], minlength=2).min()))
            if n_folds < 2:
                return []
            seed = 0 if self.random_state is None else self.random_state
            cv = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        splits = check_cv(cv, classifier=True).split(position.reshape(-1, 1), data.is_positive[position])
        folds = [(position[np.asarray(inside)], position[np.asarray(held_out)]) for inside, held_out in splits]
        return [held_out[has_weight[held_out]] for inside, held_out in folds
                if all(_has_both(data.is_positive[rows[has_weight[rows]]]) for rows in (inside, held_out))]  # fmt: skip

    def _held_out_scores(
        self, growth: Growth, data: TrainingData, meta: MetaTree, unit: float, tried: np.ndarray, inside: np.ndarray,
        held_out: np.ndarray, weight: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """AP on the held-out rows for each penalty."""
        penalty = collapse_penalties(meta)
        scoring = self._fit_scoring(data, inside)
        values, done = np.zeros(len(tried)), {}
        for j, alpha in enumerate(tried):
            pruned = prune(meta, penalty, alpha)
            size = len(pruned.left)  # the sequence is nested: one tree a size
            if size not in done:
                score = growth.finish_meta(pruned, unit, data, scoring).decision_function(data.X[held_out])
                done[size] = average_precision(data.is_positive[held_out], score, sample_weight=weight)
            values[j] = done[size]
        return values


def _has_both(is_positive: np.ndarray) -> bool:
    """True where both classes are there."""
    return 0 < is_positive.sum() < len(is_positive)


def penalties_to_try(penalty: np.ndarray) -> np.ndarray:
    """Penalties between the steps of a pruning sequence: 0, geometric means of neighbours, and the last step."""
    steps = np.unique(np.maximum(penalty[np.isfinite(penalty)], 0.0))
    if len(steps) == 0:
        return np.zeros(1)
    between = np.sqrt(steps[:-1] * steps[1:])
    tried = np.unique(np.concatenate(([0.0], between, steps[-1:])))
    if len(tried) > PENALTIES_TRIED:
        tried = tried[np.linspace(0, len(tried) - 1, PENALTIES_TRIED).astype(int)]
    return tried
