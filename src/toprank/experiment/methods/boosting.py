"""Gradient boosting of scikit-learn, XGBoost, LightGBM and CatBoost: logistic losses, and losses on pairs or lists.

`MarginRanker` and `GroupRanker` put all of them behind one small estimator. Scores are raw margins: probabilities in
single precision saturate, which would tie the rows at the top.

For a ranking loss the whole table is one group. The libraries' defaults are made for search results (many short groups)
and rank one long list badly:

- XGBoost builds pairs with one of the first 32 rows only (lambdarank_pair_method="topk"). Here every row is paired with
  a random row of the other class in every round ("mean"), which costs no more than a pass over the rows. NDCG and MAP
  give pairs so little weight that min_child_weight must be 0 for any split to be allowed. rank:pairwise and rank:map
  are estimators of this library (`toprank.PairwiseBoost`, `toprank.MAPBoost`), registered in `own`.
- LightGBM does the same with the first 30 rows (see `GroupRanker`), and refuses groups of more than 10,000 rows.
- CatBoost's YetiRank lets the weight of pairs fade within about 30 rows. Its mode MAP does not, but its cost is
  quadratic in the rows of a group, at most 1,000 here. QuerySoftMax takes any number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from toprank.errors import InputError
from toprank.experiment.registry import Method, Sweep, recipe

TRUNCATION = "lambdarank_truncation_level"


def limited_threads(n_jobs: int | None) -> Any:
    """Context in which OpenMP and linear algebra use at most n_jobs threads; None and -1: no limit."""
    return threadpool_limits(n_jobs if n_jobs is not None and n_jobs > 0 else None)


class MarginRanker(ClassifierMixin, BaseEstimator):
    """A booster of sklearn, xgboost, lightgbm or catboost that ranks by its raw margin.

    `n_threads` limits OpenMP, for a booster without a thread parameter.
    """

    def __init__(self, booster: Any = None, n_threads: int | None = None):
        self.booster = booster
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any) -> MarginRanker:
        """Fit a copy of the booster."""
        X, y = validate_data(self, X, y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise InputError(
                f"{type(self).__name__} needs labels of two values, but y has {len(self.classes_)}. "
                "Hint: pass y == value for the positive outcome."
            )
        with limited_threads(self.n_threads):
            self.booster_ = self._fit_booster(clone(self.booster), X, label)
        return self

    def _fit_booster(self, booster: Any, X: np.ndarray, label: np.ndarray) -> Any:
        return booster.fit(X, label)

    def decision_function(self, X: Any, n_rounds: int | None = None) -> np.ndarray:
        """Raw margin after the first `n_rounds` rounds, None = all; float64 (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        with limited_threads(self.n_threads):
            return np.asarray(margin_of(self.booster_, X, n_rounds), np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """The second class if the margin is positive."""
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(int)]


class WeightedMarginRanker(MarginRanker):
    """XGBoost's classifier with equal total weight of positives and negatives, unless set otherwise."""

    def _fit_booster(self, booster: Any, X: np.ndarray, label: np.ndarray) -> Any:
        if booster.scale_pos_weight is None:
            booster.set_params(scale_pos_weight=float(np.sum(label == 0) / np.sum(label == 1)))
        return super()._fit_booster(booster, X, label)


class GroupRanker(MarginRanker):
    """A booster with a ranking loss, all rows in one group, or in as few as its library allows.

    By default LightGBM only uses pairs with one row among the first 30 of a group, which suits a page of search
    results. Here the limit is the number of positives in a group, unless set explicitly. Groups have at most
    `max_group_rows` rows, assigned at random, stratified by class.
    """

    def __init__(self, booster: Any = None, max_group_rows: int | None = None, random_state: Any = None):
        super().__init__(booster)
        self.max_group_rows = max_group_rows
        self.random_state = random_state

    def _fit_booster(self, booster: Any, X: np.ndarray, label: np.ndarray) -> Any:
        group = deal_out(label, self.max_group_rows, self.random_state)
        order = np.argsort(group, kind="stable")
        group = group[order]
        self.n_groups_ = int(group[-1]) + 1
        library = library_of(booster)
        if library != "lightgbm":
            return booster.fit(X[order], label[order], **{"qid" if library == "xgboost" else "group_id": group})
        if booster.get_params().get(TRUNCATION) is None:
            booster.set_params(**{TRUNCATION: max(30, int(np.bincount(group, label).max()))})
        return booster.fit(X[order], label[order], group=np.bincount(group))


def deal_out(label: np.ndarray, max_group_rows: int | None, random_state: Any) -> np.ndarray:
    """Group of each row, int64 (n,): as few groups as the limit allows, at random, stratified by class."""
    n_groups = 1 if max_group_rows is None else -(-len(label) // max_group_rows)
    group = np.zeros(len(label), np.int64)
    if n_groups > 1:
        rng = np.random.default_rng(random_state)
        shuffled = rng.permutation(len(label))
        by_class = shuffled[np.argsort(label[shuffled], kind="stable")]
        group[by_class] = np.arange(len(label)) % n_groups
    return group


def scores_by_rounds(ranker: MarginRanker, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores after each number of rounds, float64 (n_values, n)."""
    return np.stack([ranker.decision_function(X, n_rounds=value) for value in values])


def leaves_of_booster(ranker: MarginRanker) -> tuple[int, str]:
    """Leaves of all trees."""
    booster = ranker.booster_
    library = library_of(booster)
    if library == "sklearn":
        count = sum(int(tree.get_n_leaf_nodes()) for trees in booster._predictors for tree in trees)
    elif library == "xgboost":
        count = sum(tree.count("leaf=") for tree in booster.get_booster().get_dump())
    elif library == "lightgbm":
        count = sum(map(int, re.findall(r"^num_leaves=(\d+)$", booster.booster_.model_to_string(), re.MULTILINE)))
    else:
        count = int(booster.get_tree_leaf_counts().sum())
    return count, "leaves"


def library_of(booster: Any) -> str:
    """Name of the package that a booster comes from."""
    return type(booster).__module__.partition(".")[0]


def margin_of(booster: Any, X: np.ndarray, n_rounds: int | None) -> np.ndarray:
    """Raw margin of rows after the first `n_rounds` rounds, None = all."""
    library = library_of(booster)
    if library == "sklearn":
        if n_rounds is None:
            return booster.decision_function(X)
        return next(islice(booster.staged_decision_function(X), n_rounds - 1, None))
    if library == "xgboost":
        return booster.predict(X, output_margin=True, iteration_range=(0, n_rounds or 0))
    if library == "lightgbm":
        return booster.predict(X, raw_score=True, num_iteration=n_rounds or -1)
    raw = {"prediction_type": "RawFormulaVal"} if hasattr(booster, "predict_proba") else {}  # all that rankers give
    return booster.predict(X, ntree_end=n_rounds or 0, **raw)


# --- methods ------------------------------------------------------------------------------------------------------


def make_hist(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
    """scikit-learn's gradient boosting; its threads are those of OpenMP."""
    fixed = {"early_stopping": False, "random_state": random_state}
    return MarginRanker(HistGradientBoostingClassifier(**fixed | setting), n_threads=n_jobs)


def margin(booster: str, ranker: type[MarginRanker] = MarginRanker, **fixed: Any) -> Callable[..., MarginRanker]:
    """`make` of a classifier that ranks by its margin."""
    make_booster = recipe(booster, **fixed)

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
        return ranker(make_booster(random_state, n_jobs, **setting))

    return make


def grouped(booster: str, max_group_rows: int | None = None, **fixed: Any) -> Callable[..., GroupRanker]:
    """`make` of a booster with a ranking loss, in groups of at most `max_group_rows` rows."""
    make_booster = recipe(booster, **fixed)

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
        made = make_booster(random_state, n_jobs, **setting)
        return GroupRanker(made, max_group_rows, random_state)

    return make


XGBOOST: dict[str, Any] = {"verbosity": 0, "tree_method": "hist"}
LIGHTGBM: dict[str, Any] = {"verbosity": -1, "deterministic": True, "force_row_wise": True}
CATBOOST: dict[str, Any] = {"words": ("random_seed", "thread_count"), "verbose": False, "allow_writing_files": False}
PAIRS = XGBOOST | {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1}  # one per row
PUBLISHED = {"lambdarank_normalization": False, "lambdarank_score_normalization": False, "n_estimators": 100}
"""XGBRanker up to XGBoost 1.7, and in the MetaAP paper: 100 trees, random pairs of equal weight, without the
normalisations of later versions. Bins rank no differently from exact trees, and are many times faster."""

ROUNDS, RATES = (50, 100, 200), {"learning_rate": (0.03, 0.1)}
HIST_SPACE = {"max_iter": ROUNDS} | RATES | {"max_leaf_nodes": (7, 31)}
XGBOOST_SPACE = {"n_estimators": ROUNDS} | RATES | {"max_depth": (3, 6)}
LIGHTGBM_SPACE = {"n_estimators": ROUNDS} | RATES | {"num_leaves": (7, 31)}
CATBOOST_SPACE = {"iterations": ROUNDS} | RATES | {"depth": (4, 6)}


def booster(
    name: str, title: str, make: Callable[..., Any], space: Any, summary: str, package: str = "xgboost",
) -> Method:  # fmt: skip
    """A booster; one fit gives the scores for all numbers of rounds."""
    rounds = {"sklearn": "max_iter", "catboost": "iterations"}.get(package, "n_estimators")
    packages = () if package == "sklearn" else (package,)
    return Method(name, title, "boosting", make, space, "numbers", packages, size=leaves_of_booster,
                  sweep=Sweep(rounds, scores_by_rounds), summary=summary)  # fmt: skip


METHODS = [
    booster("hist-gradient-boosting", "HistGradientBoosting", make_hist, HIST_SPACE,
            "scikit-learn's gradient boosting on bins.", "sklearn"),
    booster("xgboost", "XGBoost", margin("xgboost:XGBClassifier", **XGBOOST), XGBOOST_SPACE,
            "XGBoost with the logistic loss."),
    booster("xgboost-weighted", "XGBoost weighted",
            margin("xgboost:XGBClassifier", WeightedMarginRanker, **XGBOOST), XGBOOST_SPACE,
            "The same; scale_pos_weight is the ratio of negatives to positives."),
    booster("lightgbm", "LightGBM", margin("lightgbm:LGBMClassifier", **LIGHTGBM, is_unbalance=False), LIGHTGBM_SPACE,
            "LightGBM with the logistic loss.", "lightgbm"),
    booster("lightgbm-unbalanced", "LightGBM is_unbalance",
            margin("lightgbm:LGBMClassifier", **LIGHTGBM, is_unbalance=True), LIGHTGBM_SPACE,
            "The same with is_unbalance: classes of equal weight.", "lightgbm"),
    booster("catboost", "CatBoost", margin("catboost:CatBoostClassifier", **CATBOOST, auto_class_weights=None),
            CATBOOST_SPACE, "CatBoost with the logistic loss.", "catboost"),
    booster("catboost-balanced", "CatBoost balanced",
            margin("catboost:CatBoostClassifier", **CATBOOST, auto_class_weights="Balanced"), CATBOOST_SPACE,
            "The same with auto_class_weights: classes of equal weight.", "catboost"),
    booster("xgb-ranker", "XGBRanker", grouped("xgboost:XGBRanker", **PAIRS, **PUBLISHED, objective="rank:pairwise"),
            {"max_depth": (2, 4, 6), "learning_rate": (0.05, 0.1, 0.2, 0.5)},
            "XGBRanker as in the MetaAP paper: random pairs of equal weight, 100 trees."),
    booster("xgb-ndcg", "XGBoost NDCG",
            grouped("xgboost:XGBRanker", **PAIRS, objective="rank:ndcg", min_child_weight=0), XGBOOST_SPACE,
            "XGBoost's rank:ndcg, pairs over the whole list."),
    booster("lightgbm-ranker", "LightGBM lambdarank", grouped("lightgbm:LGBMRanker", 10_000, **LIGHTGBM),
            LIGHTGBM_SPACE, "LightGBM's lambdarank, in groups of at most 10,000 rows.", "lightgbm"),
    booster("catboost-ranker", "CatBoost YetiRank",
            grouped("catboost:CatBoostRanker", 1_000, **CATBOOST, loss_function="YetiRank:mode=MAP"), CATBOOST_SPACE,
            "CatBoost's YetiRank for mean average precision, in groups of at most 1,000 rows.", "catboost"),
    booster("catboost-softmax", "CatBoost QuerySoftMax",
            grouped("catboost:CatBoostRanker", **CATBOOST, loss_function="QuerySoftMax"), CATBOOST_SPACE,
            "CatBoost's listwise loss.", "catboost"),
]  # fmt: skip
