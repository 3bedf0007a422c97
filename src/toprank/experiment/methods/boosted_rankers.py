"""Gradient boosting with ranking losses on pairs or lists; the whole table is one group.

The libraries' defaults are made for search results (many short groups) and rank one long list badly:

- XGBoost builds pairs with one of the first 32 rows only (lambdarank_pair_method="topk"). Here every row is paired with
  a random row of the other class in every round ("mean"), which costs no more than a pass over the rows. NDCG and MAP
  give pairs so little weight that min_child_weight must be 0 for any split to be allowed. rank:pairwise and rank:map
  are estimators of this library (`toprank.PairwiseBoost`, `toprank.MAPBoost`), registered in `own_boosters`.
- LightGBM does the same with the first 30 rows (see `GroupRanker`), and refuses groups of more than 10,000 rows.
- CatBoost's YetiRank lets the weight of pairs fade within about 30 rows. Its mode MAP does not, but its cost is
quadratic in the rows of a group, at most 1,000 here. QuerySoftMax takes any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toprank.experiment.methods.boosters import GroupRanker, leaves_of_booster, scores_by_rounds
from toprank.experiment.methods.boosting import (
    CATBOOST_SPACE,
    LIGHTGBM_SPACE,
    QUIET_CATBOOST,
    QUIET_LIGHTGBM,
    QUIET_XGBOOST,
    ROUNDS,
    XGBOOST_SPACE,
)
from toprank.experiment.registry import Method, Sweep, register

LIGHTGBM_GROUP_ROWS = 10_000
YETI_GROUP_ROWS = 1_000
PAIR_A_ROW = {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1}


def make_published_xgb_ranker(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
    """XGBRanker as it was up to XGBoost 1.7, and in the MetaAP paper: 100 trees, random pairs of equal weight.

    That is rank:pairwise without the normalisations of later versions. Bins rank no differently from exact trees, and
    are many times faster.
    """
    old = PAIR_A_ROW | {"lambdarank_normalization": False, "lambdarank_score_normalization": False,
                        "n_estimators": 100}  # fmt: skip
    return make_xgb_ranker("rank:pairwise")(random_state, n_jobs, **(old | setting))


def make_xgb_ranker(objective: str) -> Callable[..., GroupRanker]:
    """`make` of XGBoost's ranker with an objective."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
        from xgboost import XGBRanker

        fixed = QUIET_XGBOOST | PAIR_A_ROW | {"objective": objective, "random_state": random_state, "n_jobs": n_jobs}
        return GroupRanker(XGBRanker(**fixed | setting))

    return make


def make_light_xgb_ranker(objective: str) -> Callable[..., GroupRanker]:
    """`make` of XGBoost's ranker with an objective that gives pairs little weight."""
    plain = make_xgb_ranker(objective)

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
        return plain(random_state, n_jobs, **({"min_child_weight": 0} | setting))

    return make


def make_lightgbm_ranker(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
    """LightGBM's lambdarank, in groups of at most 10,000 rows."""
    from lightgbm import LGBMRanker

    booster = LGBMRanker(**QUIET_LIGHTGBM | {"random_state": random_state, "n_jobs": n_jobs} | setting)
    return GroupRanker(booster, max_group_rows=LIGHTGBM_GROUP_ROWS, random_state=random_state)


def make_catboost_ranker(loss: str, max_group_rows: int | None) -> Callable[..., GroupRanker]:
    """`make` of CatBoost's ranker with a loss."""

    def make(random_state: Any = 0, n_jobs: int | None = 1, **setting: Any) -> GroupRanker:
        from catboost import CatBoostRanker

        fixed = {"loss_function": loss, "random_seed": random_state, "thread_count": n_jobs}
        booster = CatBoostRanker(**QUIET_CATBOOST | fixed | setting)
        return GroupRanker(booster, max_group_rows=max_group_rows, random_state=random_state)

    return make


def register_ranker(name: str, title: str, make: Callable[..., Any], rounds: str, space: Any, **others: Any) -> None:
    """Register a boosted ranker; one fit gives the scores for all numbers of rounds."""
    sweep = Sweep(rounds, scores_by_rounds)
    register(Method(name, title, "boosting", make, space, "numbers", size=leaves_of_booster, sweep=sweep, **others))


register_ranker(
    "xgb-ranker", "XGBRanker", make_published_xgb_ranker, "n_estimators",
    {"max_depth": (2, 4, 6), "learning_rate": (0.05, 0.1, 0.2, 0.5)}, packages=("xgboost",),
    summary="XGBRanker as in the MetaAP paper: random pairs of equal weight, 100 trees.",
)  # fmt: skip
register_ranker(
    "xgb-ndcg", "XGBoost NDCG", make_light_xgb_ranker("rank:ndcg"), "n_estimators",
    {"n_estimators": ROUNDS} | XGBOOST_SPACE, packages=("xgboost",),
    summary="XGBoost's rank:ndcg, pairs over the whole list.",
)  # fmt: skip
register_ranker(
    "lightgbm-ranker", "LightGBM lambdarank", make_lightgbm_ranker, "n_estimators",
    {"n_estimators": ROUNDS} | LIGHTGBM_SPACE, packages=("lightgbm",),
    summary="LightGBM's lambdarank, in groups of at most 10,000 rows.",
)  # fmt: skip
register_ranker(
    "catboost-ranker", "CatBoost YetiRank", make_catboost_ranker("YetiRank:mode=MAP", YETI_GROUP_ROWS), "iterations",
    {"iterations": ROUNDS} | CATBOOST_SPACE, packages=("catboost",),
    summary="CatBoost's YetiRank for mean average precision, in groups of at most 1,000 rows.",
)  # fmt: skip
register_ranker(
    "catboost-softmax", "CatBoost QuerySoftMax", make_catboost_ranker("QuerySoftMax", None), "iterations",
    {"iterations": ROUNDS} | CATBOOST_SPACE, packages=("catboost",),
    summary="CatBoost's listwise loss.",
)  # fmt: skip
