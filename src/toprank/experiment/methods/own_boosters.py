"""Boosted rankers of this library as methods: SGBAP, and the losses it is compared with.

With its defaults a ranker chooses its number of trees by folds of its own, as `SGBAP().fit` does. Methods with
settings to try fit exactly `n_estimators` trees (cv=0), and their number is tuned like any other, from one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toprank.experiment.methods.own import RANKING_ALONE
from toprank.experiment.registry import Method, Sweep, register
from toprank.rankers.boosting.lambdamart import LambdaMART
from toprank.rankers.boosting.plain_booster import LogisticBoost
from toprank.rankers.boosting.rankboost import RankBoost
from toprank.rankers.boosting.sgbap import SGBAP
from toprank.rankers.boosting.xgboost_rankers import MAPBoost, PairwiseBoost
from toprank.rankers.ensemble.stacked import StackedRanker

ROUNDS = (50, 100, 200, 400)
SIZES: dict[str, Sequence[Any]] = {"n_estimators": ROUNDS, "max_depth": (3, 6)}
LIKE_XGBOOST: dict[str, Any] = {"subsample": 1.0, "colsample_bytree": 1.0}
"""XGBoost's own defaults: all rows and all columns in every round."""


def make_boosted(ranker: Callable[..., Any], *given: Any, **fixed: Any) -> Callable[..., Any]:
    """`make` of a boosted ranker with some parameters other than its defaults."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> Any:
        alone = RANKING_ALONE if "n_estimators" in setting else {}
        return ranker(*given, **alone | fixed | {"random_state": random_state, "n_jobs": n_jobs} | setting)

    return make


def scores_by_round(ranker: Any, X: Any, values: Sequence[int]) -> np.ndarray:
    """Scores after each number of rounds, float64 (n_values, n)."""
    asked = [min(value, ranker.n_rounds_) for value in values]
    found = {n: score for n, score in enumerate(ranker.staged_decision_function(X), 1) if n in asked}
    return np.stack([found[n] for n in asked])


def leaves_of_sum(ranker: Any) -> tuple[int, str]:
    """Leaves of all trees of a fitted sum."""
    return ranker.trees_.n_leaves, "leaves"


def members_of_stack(ranker: Any) -> tuple[int, str]:
    """Members in use of a fitted stack."""
    return len(ranker.members_), "rankers"


def register_boosted(name: str, title: str, make: Callable[..., Any], summary: str, space: Any, **others: Any) -> None:
    """Register a boosted ranker of this library."""
    sweep = Sweep("n_estimators", scores_by_round)
    register(Method(name, title, "toprank", make, space, size=leaves_of_sum, sweep=sweep, summary=summary, **others))


XGBOOST: dict[str, Any] = {"packages": ("xgboost",)}

register_boosted(
    "sgbap", "SGBAP", make_boosted(SGBAP),
    "Boosting on average precision with exponentials, with the defaults of SGBAP().", {},
    **XGBOOST,
)  # fmt: skip
register_boosted(
    "sgbap-sigmoid", "SGBAP sigmoid", make_boosted(SGBAP, "sigmoid"),
    "The same with sigmoids, with the defaults of SGBAP('sigmoid').", {}, **XGBOOST,
)  # fmt: skip
register_boosted(
    "sgbap-paper", "SGBAP as published", make_boosted(SGBAP.paper),
    "SGBAP as published: the surrogate alone, half of the cases per round, line search.",
    {"n_estimators": ROUNDS, "max_depth": (2, 4, 6)}, **XGBOOST,
)  # fmt: skip
register_boosted(
    "logistic-boost", "Logistic boosting", make_boosted(LogisticBoost),
    "Boosting on the logistic loss, with the defaults of LogisticBoost().", {}, **XGBOOST,
)  # fmt: skip
register_boosted(
    "lambdamart-ap", "LambdaMART-AP", make_boosted(LambdaMART),
    "Boosting on pairs, weighted by the change of average precision, with the defaults of LambdaMART().",
    {}, **XGBOOST,
)  # fmt: skip
register(
    Method("stacked", "Stack", "toprank", make_boosted(StackedRanker), size=members_of_stack,
           summary="Forests and boosters added up on the scale of log-odds, with the defaults of StackedRanker().",
           **XGBOOST)
)  # fmt: skip
register_boosted(
    "rankboost", "RankBoost", make_boosted(RankBoost),
    "Thresholds on single columns, boosted on pairs (Freund et al. 2003).", {},
)  # fmt: skip
register_boosted(
    "xgb-pairwise", "XGBoost pairwise", make_boosted(PairwiseBoost, min_child_weight=1.0, **LIKE_XGBOOST),
    "XGBoost's current rank:pairwise, pairs over the whole list.", {**SIZES, "learning_rate": (0.03, 0.1)}, **XGBOOST,
)  # fmt: skip
register_boosted(
    "xgb-map", "XGBoost MAP", make_boosted(MAPBoost, **LIKE_XGBOOST),
    "XGBoost's rank:map, pairs over the whole list.", {**SIZES, "learning_rate": (0.03, 0.1)}, **XGBOOST,
)  # fmt: skip
