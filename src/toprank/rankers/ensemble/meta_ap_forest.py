"""`MetaAPForest`: bagged MetaAP trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from toprank._compat import StrOptions
from toprank._core.dtypes import CRITERIA
from toprank.metrics import average_precision
from toprank.rankers.ensemble.forest import Forest, Judgement
from toprank.rankers.growth import PUBLISHED_CATEGORIES, GrowthSettings


@dataclass(kw_only=True, eq=False, repr=False)
class MetaAPForest(Forest):
    """MetaAP trees on bootstrap samples of the training data; the score is the mean over the trees.

    Parameters
    ----------
    n_estimators : int, default 100
    max_depth, leaf_depth : int or None
        Levels of the meta-trees and depth of the inner trees; leaf_depth=None = max_depth, as published.
    criterion : {"entropy", "ap", "auc", "gini", "error"}, default "entropy"
        As in `MetaAP`.
    leaf_order : {"rate", "meta"}, default "rate"
        As in `MetaAP`.
    leaf_score : {"additive", "margin", "constant"}, default "additive"
        How rows are ordered inside a leaf of a tree; with "additive" all trees share one scorecard, as in `MetaAP`.
    max_features : {"sqrt", "log2"}, int, float or None, default 0.3
        Columns drawn at random per condition: a number, or a share; None = all, as published.
    bootstrap : bool, default True
        Draw rows with replacement; False = every tree sees all rows.
    max_samples : int, float or None, default None
        Rows drawn per tree: a number, or a share; None = as many as there are.
    min_samples_leaf, min_samples_split, min_gain, max_leaf_nodes, smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`.
    categorical_features, cat_smooth, min_data_per_group
        As in `MetaAP`.
    max_cat_threshold : int or None, default 32
        As in `MetaAP`; nobody reads all conditions of many trees, so the limit is higher.
    keep_columns, budget, pos_label
        As in `MetaAP`.
    n_jobs : int or None
        Trees grown in parallel; the results do not depend on it.
    random_state : int, RandomState or None
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    trees_ : list of Tree
    oob_decision_function_ : float64 array of shape (n,)
        Mean score of the trees that did not see the row; NaN if all did, as with bootstrap=False.
    oob_score_ : float
        Average precision of these scores; NaN if a class has none.
    feature_importances_ : float64 array of shape (n_features,)

    References
    ----------
    .. [1] Viola, Gautheron, Habrard, Sebban. MetaAP: a meta-tree-based ranking algorithm optimizing the average
       precision from imbalanced data. Pattern Recognition Letters 161, 2022. Sections 4 and 5.4.

    Examples
    --------
    >>> from toprank import MetaAPForest
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(4000, random_state=0)
    >>> forest = MetaAPForest(n_estimators=20, max_depth=2, random_state=0).fit(data.X, data.y)
    >>> bool(forest.oob_score_ > data.y.mean())
    True
    """

    _judgements: ClassVar[tuple[Judgement, ...]] = (
        Judgement("oob_score_", "oob_average_precision", "average precision", average_precision),
    )

    _parameter_constraints = Forest._parameter_constraints | {"criterion": [StrOptions(set(CRITERIA))]}

    n_estimators: int = 100
    max_depth: int | None = 4
    leaf_depth: int | None = 4
    criterion: str = "entropy"
    leaf_order: str = "rate"
    leaf_score: str = "additive"
    max_features: str | int | float | None = 0.3
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

    @classmethod
    def paper(cls, depth: int, **parameters: Any) -> Self:
        """MetaAPForest as published: 100 trees grown as in `MetaAP.paper`, on bootstrap samples as large as the table.

        Every condition may use any column, and the score is the mean of the trees' scores. `depth` is that of the
        meta-trees and of the inner trees; `parameters` replace published ones: `splitter="hist"` is faster on long
        tables.

        Examples
        --------
        >>> from toprank import MetaAPForest
        >>> forest = MetaAPForest.paper(3, random_state=0)
        >>> forest.n_estimators, forest.max_depth, forest.leaf_depth, forest.max_features, forest.splitter
        (100, 3, None, None, 'midpoint')
        """
        published = {"n_estimators": 100, "max_depth": depth, "leaf_depth": None, "criterion": "ap",
                     "leaf_order": "meta", "leaf_score": "margin", "max_features": None, "bootstrap": True,
                     "max_samples": None, "min_samples_leaf": 1, "min_gain": -np.inf, "smoothing": None,
                     "splitter": "midpoint"}  # fmt: skip
        return cls(**(published | PUBLISHED_CATEGORIES | parameters))

    def _settings(self) -> GrowthSettings:
        return GrowthSettings.from_estimator(self, CRITERIA[self.criterion], self.leaf_depth or self.max_depth)
