"""`MetaAPForest`: MetaAP trees on bootstraps, averaged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads
from toprank.explain import (
    PathCounts,
    VoteExplanation,
    count_paths,
    explain_votes,
    gain_importance,
    leaf_rules,
    vote_reasons,
)
from toprank.export import to_text
from toprank.metrics import average_precision
from toprank.rankers.base import BaseRanker
from toprank.rankers.frames import make_frame
from toprank.rankers.growth import DEPTH, GROWTH_CONSTRAINTS, Growth
from toprank.rankers.progress import progress
from toprank.rankers.training import TrainingData
from toprank.rankers.tree_ranker import path_indicator, without_prefix
from toprank.tree.objectives import AVERAGE_PRECISION
from toprank.tree.scoring import Scoring
from toprank.tree.structure import Tree

PATH_ROWS = 5_000
"""Training rows, drawn at random, whose paths tell how each leaf of a tree is usually reached."""

MAX_REDRAWS = 20
"""Bootstraps drawn again at most where one missed a class altogether."""


class MetaAPForest(BaseRanker):
    """MetaAP trees on bootstraps of the training data; the score is the mean of theirs.

    Parameters
    ----------
    n_estimators : int, default 100
    max_depth, leaf_depth : int or None
        Meta-levels and depth of the inner trees; leaf_depth=None = max_depth, as published.
    leaf_order : {"rate", "meta"}, default "rate"
        As in `MetaAP`.
    leaf_score : {"margin", "constant"}, default "margin"
        What orders the rows inside a leaf of a tree.
    max_features : {"sqrt", "log2"}, int, float or None, default None
        Columns drawn at random for each condition: a number, or a share; None = all, as published.
    bootstrap : bool, default True
        Draw rows with replacement; False = every tree sees all rows.
    max_samples : int, float or None, default None
        Rows drawn for each tree: a number, or a share; None = as many as there are.
    min_samples_leaf, min_samples_split, min_gain, max_leaf_nodes, smoothing, smoothing_strength, splitter, max_bins
        As in `MetaAP`.
    categorical_features, budget, pos_label
        As in `MetaAP`.
    n_jobs : int or None
        Trees grown side by side; results are the same for any number.
    random_state : int, RandomState or None
    verbose : int, default 0
        1 shows progress on standard error.

    Attributes
    ----------
    trees_ : list of Tree
    oob_decision_function_ : float64 array of shape (n,)
        Mean score of the trees that did not see the row; NaN where all did, as with bootstrap=False.
    oob_score_ : float
        Average precision of these scores; NaN where there are none of one class.
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

    _cutoff_rows = 100_000

    _parameter_constraints: dict[str, list[Any]] = {
        **GROWTH_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_depth": DEPTH,
        "leaf_depth": DEPTH,
        "leaf_order": [StrOptions({"rate", "meta"})],
        "leaf_score": [StrOptions({"constant", "margin"})],
        "max_features": [StrOptions({"sqrt", "log2"}), Interval(Integral, 1, None, closed="left"),
                         Interval(Real, 0, 1, closed="right"), None],
        "bootstrap": ["boolean"],
        "max_samples": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }  # fmt: skip

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_depth: int | None = 4,
        leaf_depth: int | None = 4,
        leaf_order: str = "rate",
        leaf_score: str = "margin",
        max_features: str | int | float | None = None,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        min_samples_leaf: int = 1,
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
        verbose: int = 0,
    ):
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.leaf_depth = leaf_depth
        self.leaf_order = leaf_order
        self.leaf_score = leaf_score
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.max_samples = max_samples
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
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------

    def _fit_model(self, data: TrainingData, threads: Threads) -> None:
        growth = Growth.of(
            self,
            AVERAGE_PRECISION.criterion,
            self.leaf_depth or self.max_depth,
            max_depth=self.max_depth,
            leaf_order=self.leaf_order,
        )
        scoring = Scoring("margin", scale=data.column_scales()) if self.leaf_score == "margin" else Scoring()
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_estimators)

        sampled = data.sample(PATH_ROWS)
        sample, sample_weight = data.X[sampled], None if data.weight is None else data.weight[sampled]

        def grow_one(seed: int) -> tuple[Tree, PathCounts, np.ndarray, np.ndarray]:
            rng = np.random.default_rng(int(seed))
            weight = self._draw_weights(data, rng)
            meta, unit = growth.grow_meta(data, weight, Threads(), self._feature_sampler(data.X.shape[1], rng))
            tree = growth.finish_meta(meta, unit, data, scoring)
            unseen = np.flatnonzero(weight == 0) if self.bootstrap else np.arange(len(weight))
            return tree, count_paths(tree, sample, sample_weight), unseen, tree.decision_function(data.X[unseen])

        votes, total = np.zeros(len(data.X), np.int64), np.zeros(len(data.X))
        self.trees_, self._path_counts = [], []
        grown = threads.map(grow_one, seeds)
        for tree, paths, rows, score in progress(grown, self.n_estimators, type(self).__name__, bool(self.verbose)):
            self.trees_.append(tree)
            self._path_counts.append(paths)
            total[rows] += score
            votes[rows] += 1
        self._judge_out_of_bag(data, total, votes)

    def _draw_weights(self, data: TrainingData, rng: np.random.Generator) -> np.ndarray:
        """Weights of one tree's rows: how often each was drawn, times its own weight."""
        weight = np.ones(len(data.X)) if data.weight is None else data.weight
        if not self.bootstrap:
            return weight
        present = np.flatnonzero(weight)
        size = len(present) if self.max_samples is None else self.max_samples
        if not isinstance(size, int | np.integer):
            size = max(1, round(size * len(present)))
        for _ in range(MAX_REDRAWS):
            drawn = present[rng.integers(0, len(present), min(int(size), len(present)))]
            if 0 < data.is_positive[drawn].sum() < len(drawn):
                break
        return weight * np.bincount(drawn, minlength=len(weight))

    def _feature_sampler(self, n_features: int, rng: np.random.Generator) -> Callable[[int], np.ndarray] | None:
        """Random choice of columns for each of a number of nodes; None where all are allowed."""
        wanted = self.max_features
        if wanted is None:
            return None
        if isinstance(wanted, str):
            wanted = int({"sqrt": np.sqrt, "log2": np.log2}[wanted](n_features))
        elif not isinstance(wanted, int | np.integer):
            wanted = int(wanted * n_features)
        n_chosen = max(1, min(int(wanted), n_features))

        def sample(n_nodes: int) -> np.ndarray:
            chosen = np.argsort(rng.random((n_nodes, n_features)), axis=1)[:, :n_chosen]
            allowed = np.zeros((n_nodes, n_features), np.uint8)
            np.put_along_axis(allowed, chosen, 1, axis=1)
            return allowed

        return sample

    def _judge_out_of_bag(self, data: TrainingData, total: np.ndarray, votes: np.ndarray) -> None:
        """Out-of-bag scores, their AP, and the expected hit rate by score."""
        with np.errstate(invalid="ignore"):
            self.oob_decision_function_ = total / votes
        weight = np.ones(len(votes)) if data.weight is None else data.weight
        rows = np.flatnonzero((votes > 0) & (weight > 0))
        positive = data.is_positive[rows]
        if 0 < positive.sum() < len(rows):
            judged = self.oob_decision_function_[rows]
            self.oob_score_ = average_precision(positive, judged, sample_weight=weight[rows], pos_label=True)
            self._rate_score, self._rate_value = rates_by_score(
                judged, positive, weight[rows], self.smoothing_strength if self.smoothing else 0.0, self.base_rate_
            )
        else:  # too few rows for any to be left out
            self.oob_score_ = float("nan")
            self._rate_score, self._rate_value = np.zeros(1), np.array([self.base_rate_])
        if not self.bootstrap:  # the rates are those of the training rows, but no row was left out
            self.oob_score_ = float("nan")
            self.oob_decision_function_ = np.full(len(votes), np.nan)

    # --- scoring ------------------------------------------------------------------------------------------------

    def _decide(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        total = np.zeros(len(matrix))
        for tree in self.trees_:
            total += tree.decision_function(matrix, threads)
        return total / len(self.trees_)

    def _rates(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        score = self._decide(matrix, threads)
        place = np.searchsorted(self._rate_score, score, side="right") - 1
        return self._rate_value[np.maximum(place, 0)]

    def _reasons(self, matrix: np.ndarray, n_reasons: int) -> list[list[str]]:
        return vote_reasons(self.trees_, self.columns_, matrix, n_reasons)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean over the trees of the share of gain that each column brought, float64 (n_features,); sums to 1."""
        check_is_fitted(self)
        shares = np.sum([gain_importance(tree) for tree in self.trees_], axis=0)
        return shares / shares.sum() if shares.any() else shares  # a tree without conditions has no say

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of all trees."""
        check_is_fitted(self)
        return sum(int(tree.is_leaf.sum()) for tree in self.trees_)

    def _figures(self) -> dict[str, Any]:
        n_conditions = sum(int((~tree.is_leaf).sum()) for tree in self.trees_)
        oob = None if np.isnan(self.oob_score_) else self.oob_score_
        return {"n_trees": len(self.trees_), "n_conditions": n_conditions, "oob_average_precision": oob}

    def _size_in_words(self) -> str:
        judged = "" if np.isnan(self.oob_score_) else f"; out-of-bag average precision {self.oob_score_:.3f}"
        return f"{len(self.trees_)} trees, {self.n_leaves_:,} leaves in all{judged}"

    def apply(self, X: Any) -> np.ndarray:
        """Leaf node that each row reaches in each tree, int32 (n, n_trees)."""
        matrix = self._encode(X)
        return np.column_stack([tree.apply(matrix) for tree in self.trees_])

    def decision_path(self, X: Any) -> tuple[sp.csr_array, np.ndarray]:
        """Nodes on each row's paths: sparse indicator (n, nodes of all trees), and where each tree's nodes begin."""
        matrix = self._encode(X)
        offset = np.append(0, np.cumsum([len(tree) for tree in self.trees_]))
        return sp.hstack([path_indicator(tree, matrix) for tree in self.trees_], format="csr"), offset

    def rules(self) -> Any:
        """One row a leaf of a tree, best first: tree, rule, n, positives, hit_rate with its interval, lift."""
        check_is_fitted(self)
        parts = [leaf_rules(*each) for each in zip(self.trees_, repeat(self.columns_), self._path_counts, strict=False)]
        columns: dict[str, Any] = {"tree": np.repeat(np.arange(1, len(parts) + 1), [len(p["leaf"]) for p in parts])}
        columns |= {name: np.concatenate([np.asarray(p[name]) for p in parts]) for name in parts[0]}
        order = np.argsort(-columns["hit_rate_low"], kind="stable")
        return make_frame({name: values[order].tolist() for name, values in columns.items()}, self._backend)

    def explain(self, X: Any) -> list[VoteExplanation]:
        """Why each row stands where it stands: what each column did for it, on average over the trees."""
        matrix = self._encode(X)
        score = self._decide(matrix, Threads())
        return explain_votes(self.trees_, self.columns_, matrix, score, self._rates(matrix, Threads()), self.base_rate_)

    def to_text(self, tree: int = 0) -> str:
        """One of the trees as text, below the summary of the forest."""
        check_is_fitted(self)
        title = f"{self.summary()}\ntree {tree + 1} of {len(self.trees_)}:"
        return to_text(self.trees_[tree], self.columns_, title=title)

    def to_dict(self) -> dict[str, Any]:
        """The model as plain values: class, columns, trees."""
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "columns": [column.to_dict() for column in self.columns_],
            "trees": [tree.to_dict() for tree in self.trees_],
        }

    def _to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {
            f"tree{i}_{name}": array for i, tree in enumerate(self.trees_) for name, array in tree.to_arrays().items()
        }
        arrays |= {f"paths{i}_{name}": array for i, paths in enumerate(self._path_counts)
                   for name, array in paths.to_arrays().items()}  # fmt: skip
        return arrays | {"rate_score": self._rate_score, "rate_value": self._rate_value,
                         "oob_score": np.array(self.oob_score_), "n_trees": np.array(len(self.trees_)),
                         "oob_decision_function": self.oob_decision_function_}  # fmt: skip

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        count = int(arrays["n_trees"])
        self.trees_ = [Tree.from_arrays(without_prefix(arrays, f"tree{i}_")) for i in range(count)]
        if count == 0 or any(tree.n_features != len(self.columns_) for tree in self.trees_):
            raise ValueError("The model's trees and its list of columns do not fit together.")
        self._path_counts = [
            PathCounts.from_arrays(without_prefix(arrays, f"paths{i}_"), tree) for i, tree in enumerate(self.trees_)
        ]
        self._rate_score, self._rate_value = arrays["rate_score"], arrays["rate_value"]
        if self._rate_score.shape != self._rate_value.shape or self._rate_value.ndim != 1 or not len(self._rate_value):
            raise ValueError("The model's rates and their scores do not fit together.")
        self.oob_score_, self.oob_decision_function_ = float(arrays["oob_score"]), arrays["oob_decision_function"]


def rates_by_score(
    score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, strength: float, base_rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Steps of the positive rate as a non-decreasing function of the score: where each begins, and its height.

    Isotonic regression, each step pulled towards the base rate by `strength` cases.
    """
    from scipy.optimize import isotonic_regression

    distinct, which = np.unique(score, return_inverse=True)  # rows that tie share one rate
    positive, total = np.bincount(which, weight * is_positive), np.bincount(which, weight)
    first = isotonic_regression(positive / total, weights=total).blocks[:-1]
    positive, total = np.add.reduceat(positive, first), np.add.reduceat(total, first)
    smoothed = (positive + strength * base_rate) / (total + strength)
    return distinct[first], isotonic_regression(smoothed, weights=total).x
