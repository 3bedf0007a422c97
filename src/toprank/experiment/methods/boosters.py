"""`MarginRanker`, `GroupRanker`: boosters of scikit-learn, XGBoost, LightGBM and CatBoost behind one small estimator.

Scores are raw margins. Probabilities in single precision saturate, which would tie the rows at the top.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from toprank.errors import InputError
from toprank.experiment.methods.threads import limited_threads

TRUNCATION = "lambdarank_truncation_level"


class MarginRanker(ClassifierMixin, BaseEstimator):
    """A booster that ranks by its raw margin.

    Parameters
    ----------
    booster : estimator of sklearn, xgboost, lightgbm or catboost
        An unfitted classifier.
    n_threads : int or None
        Threads of OpenMP, for a booster without a thread parameter.

    Attributes
    ----------
    booster_ : the fitted booster
    classes_ : array of shape (2,)
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
            return np.asarray(_MARGINS[library_of(self.booster_)](self.booster_, X, n_rounds), np.float64)

    def predict(self, X: Any) -> np.ndarray:
        """The second class if the margin is positive."""
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(int)]


class GroupRanker(MarginRanker):
    """A booster with a ranking loss, all rows in one group, or in as few as its library allows.

    By default LightGBM only uses pairs with one row among the first 30 of a group, which suits a page of search
    results. Here the limit is the number of positives in a group, unless set explicitly.

    Parameters
    ----------
    booster : estimator of xgboost, lightgbm or catboost
        An unfitted ranker.
    n_threads : int or None
    max_group_rows : int or None, default None
        Maximum number of rows per group. Rows are assigned at random, stratified by class.
    random_state : int or None
        For the assignment to groups.

    Attributes
    ----------
    n_groups_ : int
    """

    def __init__(
        self,
        booster: Any = None,
        n_threads: int | None = None,
        max_group_rows: int | None = None,
        random_state: Any = None,
    ):
        super().__init__(booster, n_threads)
        self.max_group_rows = max_group_rows
        self.random_state = random_state

    def _fit_booster(self, booster: Any, X: np.ndarray, label: np.ndarray) -> Any:
        group = deal_out(label, self.max_group_rows, self.random_state)
        order = np.argsort(group, kind="stable")
        group = group[order]
        self.n_groups_ = int(group[-1]) + 1
        library = library_of(booster)
        if library != "lightgbm":
            return booster.fit(X[order], label[order], **{_GROUP_WORDS[library]: group})
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


def _sklearn_margin(booster: Any, X: np.ndarray, n_rounds: int | None) -> np.ndarray:
    if n_rounds is None:
        return booster.decision_function(X)
    return next(islice(booster.staged_decision_function(X), n_rounds - 1, None))


def _xgboost_margin(booster: Any, X: np.ndarray, n_rounds: int | None) -> np.ndarray:
    return booster.predict(X, output_margin=True, iteration_range=(0, n_rounds or 0))


def _lightgbm_margin(booster: Any, X: np.ndarray, n_rounds: int | None) -> np.ndarray:
    return booster.predict(X, raw_score=True, num_iteration=n_rounds or -1)


def _catboost_margin(booster: Any, X: np.ndarray, n_rounds: int | None) -> np.ndarray:
    raw = {"prediction_type": "RawFormulaVal"} if hasattr(booster, "predict_proba") else {}  # all that rankers give
    return booster.predict(X, ntree_end=n_rounds or 0, **raw)


_MARGINS = {"sklearn": _sklearn_margin, "xgboost": _xgboost_margin, "lightgbm": _lightgbm_margin,
            "catboost": _catboost_margin}  # fmt: skip
_GROUP_WORDS = {"xgboost": "qid", "catboost": "group_id"}
