"""Gradient boosting with the logistic loss, plain and with each library's option for imbalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from toprank.experiment.methods.boosters import MarginRanker, leaves_of_booster, scores_by_rounds
from toprank.experiment.registry import Method, Sweep, register

ROUNDS = (50, 100, 200)
RATES = (0.03, 0.1)
QUIET_XGBOOST: dict[str, Any] = {"verbosity": 0, "tree_method": "hist"}
QUIET_LIGHTGBM: dict[str, Any] = {"verbosity": -1, "deterministic": True, "force_row_wise": True}
QUIET_CATBOOST: dict[str, Any] = {"verbose": False, "allow_writing_files": False}


def make_hist(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
    """scikit-learn's gradient boosting; its threads are those of OpenMP."""
    fixed = {"early_stopping": False, "random_state": random_state}
    return MarginRanker(HistGradientBoostingClassifier(**fixed | setting), n_threads=n_jobs)


def make_xgboost(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
    """XGBoost's classifier."""
    from xgboost import XGBClassifier

    return MarginRanker(XGBClassifier(**QUIET_XGBOOST | {"random_state": random_state, "n_jobs": n_jobs} | setting))


def make_weighted_xgboost(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
    """XGBoost's classifier with scale_pos_weight set to the ratio of negatives to positives in training."""
    return WeightedMarginRanker(make_xgboost(random_state, n_jobs, **setting).booster)


class WeightedMarginRanker(MarginRanker):
    """XGBoost's classifier with equal total weight of positives and negatives, unless set otherwise."""

    def _fit_booster(self, booster: Any, X: np.ndarray, label: np.ndarray) -> Any:
        if booster.scale_pos_weight is None:
            booster.set_params(scale_pos_weight=float(np.sum(label == 0) / np.sum(label == 1)))
        return booster.fit(X, label)


def make_lightgbm(is_unbalance: bool) -> Callable[..., MarginRanker]:
    """`make` of LightGBM's classifier, with classes of equal weight or not."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
        from lightgbm import LGBMClassifier

        fixed = QUIET_LIGHTGBM | {"is_unbalance": is_unbalance, "random_state": random_state, "n_jobs": n_jobs}
        return MarginRanker(LGBMClassifier(**fixed | setting))

    return make


def make_catboost(balance: str | None) -> Callable[..., MarginRanker]:
    """`make` of CatBoost's classifier, with class weights chosen by the library or none."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> MarginRanker:
        from catboost import CatBoostClassifier

        fixed = QUIET_CATBOOST | {"auto_class_weights": balance, "random_seed": random_state, "thread_count": n_jobs}
        return MarginRanker(CatBoostClassifier(**fixed | setting))

    return make


def register_booster(name: str, title: str, make: Callable[..., Any], rounds: str, space: Any, **others: Any) -> None:
    """Register a booster; one fit gives the scores for all numbers of rounds."""
    sweep = Sweep(rounds, scores_by_rounds)
    register(
        Method(name, title, "boosting", make, {rounds: ROUNDS} | space, "numbers", size=leaves_of_booster, sweep=sweep,
               **others)
    )  # fmt: skip


XGBOOST_SPACE = {"learning_rate": RATES, "max_depth": (3, 6)}
LIGHTGBM_SPACE = {"learning_rate": RATES, "num_leaves": (7, 31)}
CATBOOST_SPACE = {"learning_rate": RATES, "depth": (4, 6)}

register_booster(
    "hist-gradient-boosting", "HistGradientBoosting", make_hist, "max_iter",
    {"learning_rate": RATES, "max_leaf_nodes": (7, 31)}, summary="scikit-learn's gradient boosting on bins.",
)  # fmt: skip
register_booster(
    "xgboost", "XGBoost", make_xgboost, "n_estimators", XGBOOST_SPACE, packages=("xgboost",),
    summary="XGBoost with the logistic loss.",
)  # fmt: skip
register_booster(
    "xgboost-weighted", "XGBoost weighted", make_weighted_xgboost, "n_estimators", XGBOOST_SPACE,
    packages=("xgboost",), summary="The same; scale_pos_weight is the ratio of negatives to positives.",
)  # fmt: skip
register_booster(
    "lightgbm", "LightGBM", make_lightgbm(False), "n_estimators", LIGHTGBM_SPACE, packages=("lightgbm",),
    summary="LightGBM with the logistic loss.",
)  # fmt: skip
register_booster(
    "lightgbm-unbalanced", "LightGBM is_unbalance", make_lightgbm(True), "n_estimators", LIGHTGBM_SPACE,
    packages=("lightgbm",), summary="The same with is_unbalance: classes of equal weight.",
)  # fmt: skip
register_booster(
    "catboost", "CatBoost", make_catboost(None), "iterations", CATBOOST_SPACE, packages=("catboost",),
    summary="CatBoost with the logistic loss.",
)  # fmt: skip
register_booster(
    "catboost-balanced", "CatBoost balanced", make_catboost("Balanced"), "iterations", CATBOOST_SPACE,
    packages=("catboost",), summary="The same with auto_class_weights: classes of equal weight.",
)  # fmt: skip
