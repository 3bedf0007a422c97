"""Ensembles on balanced samples: EasyEnsemble, BalanceCascade, RUSBoost, balanced bagging."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from toprank.experiment.methods.balance_cascade import BalanceCascade
from toprank.experiment.methods.sizes import leaves
from toprank.experiment.registry import Method, register

BOOSTS = {"max_depth": (1, 3), "n_rounds": (10, 50)}


def boost(max_depth: int, n_rounds: int) -> AdaBoostClassifier:
    """AdaBoost of small trees."""
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=max_depth), n_estimators=n_rounds)


def make_easy_ensemble(
    random_state: Any = 0, n_jobs: int | None = 1, max_depth: int = 1, n_rounds: int = 50, **setting: Any
) -> Any:
    """10 boosters, each on all positives and as many negatives."""
    from imblearn.ensemble import EasyEnsembleClassifier

    fixed = {"estimator": boost(max_depth, n_rounds), "random_state": random_state, "n_jobs": n_jobs}
    return EasyEnsembleClassifier(**fixed | setting)


def make_balance_cascade(
    random_state: Any = 0, n_jobs: int | None = 1, max_depth: int = 1, n_rounds: int = 50, **setting: Any
) -> BalanceCascade:
    """10 boosters in sequence; negatives classified correctly are removed. Rounds are sequential: one thread."""
    return BalanceCascade(**{"estimator": boost(max_depth, n_rounds), "random_state": random_state} | setting)


def make_rus_boost(random_state: Any = 0, n_jobs: int | None = 1, max_depth: int = 1, **setting: Any) -> Any:
    """AdaBoost with as many negatives as positives in every round. Rounds are sequential: one thread."""
    from imblearn.ensemble import RUSBoostClassifier

    fixed = {"estimator": DecisionTreeClassifier(max_depth=max_depth), "random_state": random_state}
    return RUSBoostClassifier(**fixed | setting)


def make_balanced_bagging(
    random_state: Any = 0, n_jobs: int | None = 1, min_samples_leaf: int = 1, **setting: Any
) -> Any:
    """50 trees, each on a bootstrap sample reduced to as many negatives as positives."""
    from imblearn.ensemble import BalancedBaggingClassifier

    tree = DecisionTreeClassifier(min_samples_leaf=min_samples_leaf)
    fixed = {"estimator": tree, "n_estimators": 50, "random_state": random_state, "n_jobs": n_jobs}
    return BalancedBaggingClassifier(**fixed | setting)


register(
    Method("easy-ensemble", "EasyEnsemble", "balanced", make_easy_ensemble, BOOSTS, "numbers", ("imblearn",),
           size=leaves, summary="10 AdaBoosts on balanced samples (imbalanced-learn).")
)  # fmt: skip
register(
    Method("balance-cascade", "BalanceCascade", "balanced", make_balance_cascade, BOOSTS, "numbers", size=leaves,
           summary="10 AdaBoosts in sequence; negatives classified correctly are removed (Liu, Wu, Zhou 2009).")
)  # fmt: skip
register(
    Method("rus-boost", "RUSBoost", "balanced", make_rus_boost,
           {"max_depth": (1, 3), "n_estimators": (50, 200), "learning_rate": (0.1, 1.0)}, "numbers", ("imblearn",),
           size=leaves, summary="AdaBoost with random under-sampling in every round (imbalanced-learn).")
)  # fmt: skip
register(
    Method("balanced-bagging", "Balanced bagging", "balanced", make_balanced_bagging, {"min_samples_leaf": (1, 3, 10)},
           "numbers", ("imblearn",), size=leaves, summary="50 trees on balanced bootstraps (imbalanced-learn).")
)  # fmt: skip
