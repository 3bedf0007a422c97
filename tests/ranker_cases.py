"""Estimators of every kind, and small awkward tables with names, strings and weights to fit them on."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import assume, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tables import tables
from toprank import (
    KNN,
    MLFP,
    SGBAP,
    CostOptimalCurve,
    CostOptimalForest,
    CostTree,
    ExtraTrees,
    GammaKNN,
    LambdaMART,
    LocalGammaKNN,
    LogisticBoost,
    MAPBoost,
    MetaAP,
    MetaAPForest,
    PairwiseBoost,
    RankBoost,
    RankingTree,
    RedFlags,
    Scorecard,
    ScorecardTree,
    StackedRanker,
    TAOTree,
    TreeRank,
    TreeRankBoost,
    TreeRankForest,
)

SMALL: dict[str, Any] = {"max_depth": 2, "leaf_depth": 2, "min_samples_leaf": 1}
META: dict[str, Any] = {"criterion": "ap", "ccp_alpha": 0.0} | SMALL

# One of each shape with rates of new cases (cv): a tree, a meta-tree, a curve, an ensemble. Folds take most of the time
# of a small fit, and the rates of the others come from the same lines.
RANKERS = {
    "rate": RankingTree(max_depth=3, min_samples_leaf=1, cv=2),
    "geometric": RankingTree(leaf_score="margin", max_depth=3, min_samples_leaf=1, cv=0),
    "confusion": RankingTree(leaf_score="votes", max_depth=3, min_samples_leaf=1, cv=0),
    "constant": MetaAP(leaf_score="constant", cv=0, **META),
    "margin": MetaAP(leaf_score="margin", cv=0, **META),
    "linear": MetaAP(leaf_score="linear", cv=0, **META),
    "additive": MetaAP(ccp_alpha=0.0, cv=2, **SMALL),
    "pruned": MetaAP(leaf_score="margin", criterion="ap", ccp_alpha="cv", cv=2, **SMALL),
    "paper": MetaAP.paper(2, cv=0),
    "treerank": TreeRank(cv=0, **SMALL),
    "oblique": TreeRank(leaf_ranker="oblique", cv=0, **SMALL),
    "cost": CostTree(max_depth=3, ccp_alpha=0.1, cv=0),
    "tao": TAOTree(max_depth=2, min_samples_leaf=1, alpha=0.1, cv=0),
    "cost-curve": CostOptimalCurve(
        TAOTree(max_depth=2, min_samples_leaf=1), depths=None, alphas=None, cv=2, cost_factor=16.0
    ),
    "cost-forest": CostOptimalForest(
        TAOTree(max_depth=2, min_samples_leaf=1), n_estimators=2, cost_factor=50.0, random_state=0
    ),
    "forest": MetaAPForest(n_estimators=3, max_features=None, random_state=0, **SMALL),
    "treerank-forest": TreeRankForest(n_estimators=3, random_state=0, **SMALL),
    "median-rank": TreeRankForest(n_estimators=3, aggregation="median-rank", random_state=0, **SMALL),
    "boost": TreeRankBoost(n_estimators=3, cv=2, **SMALL),
    "additive-boost": TreeRankBoost(n_estimators=3, output="additive", cv=0, **SMALL),
}
BOOSTERS = {
    "sgbap": SGBAP(n_estimators=6, warm_up=2, learning_rate=0.3, init=None, cv=2, random_state=0),
    "sgbap-sigmoid": SGBAP.paper("sigmoid", n_estimators=3, cv=0, random_state=0),
    "logistic-boost": LogisticBoost(n_estimators=4, cv=0, random_state=0),
    "pairwise-boost": PairwiseBoost(n_estimators=4, cv=2, random_state=0),
    "map-boost": MAPBoost(n_estimators=4, cv=0, random_state=0),
    "lambdamart": LambdaMART(n_estimators=4, cv=0, random_state=0),
    "rankboost": RankBoost(n_estimators=6, cv=2, random_state=0),
    "rankboost-side": RankBoost(n_estimators=4, missing="side", cv=0),
}
STACKS = {
    "stacked": StackedRanker(
        [RankingTree(max_depth=3, min_samples_leaf=1, cv=0), ("forest", MetaAPForest(n_estimators=4, **SMALL)),
         ("sums", RankBoost(n_estimators=4, cv=2))], cv=2, random_state=0,
    ),
    "stacked-equal": StackedRanker([TreeRank(**SMALL), RankingTree(max_depth=2, min_samples_leaf=1)], cv=0),
}  # fmt: skip
OTHERS = STACKS | {"extra-trees": ExtraTrees(n_estimators=4, min_samples_leaf=1, cv=2, random_state=0)}
EVERY = RANKERS | OTHERS | {kind: BOOSTERS[kind] for kind in ("sgbap", "sgbap-sigmoid", "pairwise-boost", "rankboost")}
"""What laws are tested on: boosters with a loss of their own alone are not in it, as they share all other lines."""

NEIGHBOURS = {
    "gamma-knn": GammaKNN(n_neighbors=3),
    "gamma-knn-fixed": GammaKNN(n_neighbors=2, gamma=0.5, metric="manhattan", scaling="standard"),
    "local-gamma-knn": LocalGammaKNN(n_neighbors=1, n_clusters=2, cv=2),
    "local-gamma-knn-1": LocalGammaKNN(n_clusters=3, version=1, cv=2, scoring="g_mean"),
    "knn": KNN(),
    "knn-weighted": KNN(rule="weighted"),
    "knn-class-weighted": KNN(rule="class_weighted", n_neighbors=2),
    "knn-duplicated": KNN(rule="duplicated"),
    "krnn": KNN(rule="krnn", n_neighbors=2),
    "mlfp": MLFP(cv=2, tol=0.01),
    "mlfp-full": MLFP(form="full", n_neighbors=1, mu=0.1, tol=0.01, cv=2),
    "mlfp-all": MLFP(triplets="all", mu=0.1, tol=0.01, cv=2, normalization="cases", scaling="minmax"),
}
"""Rankers without trees, which are not in EVERY: what holds for them is tested in rankers/neighbours/."""

POINTS = {
    "red-flags": RedFlags(teacher=None, max_rules=4, max_features=4, cv=2),
    "scorecard": Scorecard(cv=2),
    "scorecard-log-odds": Scorecard(points=None, alpha=3.0, max_features=3, cv=0),
    "scorecard-tree": ScorecardTree(min_class_leaf=1, cv=0),
}
"""Rankers of points, which are not in EVERY either: what holds for them is tested in rankers/points/."""

FORESTS = ["forest", "treerank-forest", "median-rank"]
ENSEMBLES = [*FORESTS, "boost", "additive-boost", "cost-curve", "cost-forest"]
TREES = [kind for kind in RANKERS if kind not in ENSEMBLES]
# One of each class, for what is decided before a model grows or after it scores: reading, labels, cutoffs.
CLASSES = [
    "rate",
    "additive",
    "treerank",
    "cost",
    "tao",
    "forest",
    "treerank-forest",
    "boost",
    "cost-curve",
    "cost-forest",
]
UNDRAWN = TREES  # no bootstraps draw rows, and folds depend on what the rows are


def variant(kind, **parameters):
    """A ranker with other parameters, which are those of its base where it has none of that name."""
    model = clone(EVERY[kind])
    own = model.get_params(deep=False)
    given = {name if name in own else f"base__{name}": value for name, value in parameters.items()}
    if kind not in RANKERS:
        given = {name: value for name, value in given.items() if name in own}
    return model.set_params(**given)


def fewer(factor):
    """Settings with a part of the examples of the profile, for laws that fit several models an example."""
    return settings(max_examples=max(3, settings().max_examples // factor))


@dataclass(frozen=True)
class Case:
    """A table of numbers (None = missing) and strings, with labels and weights."""

    columns: dict[str, list]
    y: np.ndarray
    weight: np.ndarray | None

    def __len__(self):
        return len(self.y)

    def take(self, index):
        columns = {name: [values[i] for i in index] for name, values in self.columns.items()}
        return Case(columns, self.y[index], None if self.weight is None else self.weight[index])

    def is_text(self, name):
        return name.startswith("text")

    def pandas(self):
        return pd.DataFrame(
            {
                name: pd.Series(values, dtype="object" if self.is_text(name) else "float64")
                for name, values in self.columns.items()
            }
        )

    def polars(self):
        schema = {name: pl.String if self.is_text(name) else pl.Float64 for name in self.columns}
        return pl.DataFrame(self.columns, schema=schema)

    def pyarrow(self):
        return pa.table(
            {
                name: pa.array(values, pa.string() if self.is_text(name) else pa.float64())
                for name, values in self.columns.items()
            }
        )

    def numpy(self):
        if any(map(self.is_text, self.columns)):
            return np.array(list(zip(*self.columns.values(), strict=True)), dtype=object)
        return np.array(list(self.columns.values()), dtype=np.float64).T.copy()


FORMS = ["pandas", "polars", "pyarrow", "numpy"]


@st.composite
def cases(draw, **how):
    """A case with weight in both classes."""
    table = draw(tables(**({"max_rows": 20} | how)))
    weight = np.ones(len(table.X)) if table.sample_weight is None else table.sample_weight
    assume(weight[table.is_positive].any() and weight[~table.is_positive].any())
    columns = {}
    for f, n_categories in enumerate(table.n_categories):
        known = [None if np.isnan(v) else float(v) for v in table.X[:, f]]
        if n_categories:
            columns[f"text{f}"] = [None if v is None else "abcde"[int(v)] for v in known]
        else:
            columns[f"number{f}"] = known
    return Case(columns, table.is_positive.astype(int), table.sample_weight)


def scores_of(model, X):
    """Scores without scikit-learn's remark that an array has no column names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have valid|has) feature names")
        return model.decision_function(X)


def make_cases(n=600, seed=0):
    """A larger table with structure: two numbers, one with missing values, a text column; about 15 % positives."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    age = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.gamma(2.0, 10.0, n)))
    place = rng.choice(["north", "south", "east", "west", "centre"], n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    logit = -3.5 + 1.5 * (size > 0.5) + 2.0 * (np.nan_to_num(age) > 25) + 2.0 * np.isin(place, ["east", "centre"])
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return pd.DataFrame({"size": size, "age": age, "place": place}), y
