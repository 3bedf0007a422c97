"""Every reason of an alert is true of its case: on a simulated table, and on five real ones where they are at hand."""

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from ranker_cases import EVERY, variant
from reason_reader import ReasonReader, alert_problems
from toprank import (
    CostOptimalCurve,
    MetaAP,
    MetaAPForest,
    RankingTree,
    TAOTree,
    TreeRank,
    TreeRankForest,
)

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("TOPRANK_DATA", ROOT.parent / "shared" / "data"))
TABLES = ["vehicle_claim_fraud", "telco_churn", "bankmarketing", "sick", "solar_flare_m0"]
NEW: dict[str, Any] = {"criterion": "entropy", "min_samples_leaf": 5, "leaf_score": "linear", "ccp_alpha": "cv"}
WHOLE = {
    "MetaAP": MetaAP(cv=0),
    "MetaAP-linear": MetaAP(**NEW),
    "TreeRank": TreeRank(cv=0),
    "TreeRank-oblique": TreeRank(leaf_ranker="oblique", cv=0),
    "RankingTree": RankingTree(cv=0),
    "MetaAPForest": MetaAPForest(n_estimators=20, random_state=0),
    "TreeRankForest": TreeRankForest(n_estimators=20, random_state=0),
    "CostOptimalCurve": CostOptimalCurve(TAOTree(max_depth=3), depths=None, alphas=None, cv=2),
    "TAOTree": TAOTree(max_depth=3, cv=0),
}
SMALL = ["rate", "constant", "linear", "treerank", "oblique", "tao", "cost-curve", "forest", "treerank-forest",
         "sgbap"]  # fmt: skip


def simulated(n, seed, *, is_new=False):
    """Numbers with gaps, ties and a commonest value; categories with unseen, pooled, long and odd names."""
    rng = np.random.default_rng(seed)
    gap, staff, alarms = rng.gamma(2.0, 0.1, n), rng.integers(0, 12, n).astype(float), rng.poisson(0.3, n).astype(float)
    sectors = np.array(["retail", "bar, small", "tea or coffee", "construction (new)", "a name of " + "many " * 9])
    sector = rng.choice(sectors, n, p=[0.55, 0.2, 0.1, 0.1, 0.05]).astype(object)
    town = np.array([f"town {int(t)}" for t in 500 * rng.power(2, n)], object)
    town[rng.random(n) < 0.3] = "town 499"  # the usual one
    odds = -4.0 + 8 * gap + 1.5 * (sector == "bar, small") + 1.2 * (alarms > 0) - 0.2 * staff
    odds += 2.5 * np.array([int(name[5:]) < 200 for name in town])  # rare ones
    gone = rng.random((n, 3)) < (0.08, 0.2, 0.1)
    odds += 1.5 * gone[:, 1] + 2.0 * gone[:, 2]
    y = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    gap[gone[:, 0]], staff[gone[:, 1]], sector[gone[:, 2]] = np.nan, np.nan, None
    if is_new:
        sector[rng.random(n) < 0.1] = "mining"
        town[rng.random(n) < 0.2] = "new town"
        gap[::50] *= 1e6
    return pl.DataFrame({
        "gap": pl.Series(gap).fill_nan(None), "gap share": rng.random(n), "staff": pl.Series(staff).fill_nan(None),
        "alarms": alarms, "is_new": rng.random(n) < 0.3, "sector": pl.Series(sector.tolist(), dtype=pl.String),
        "town": pl.Series(town.tolist(), dtype=pl.String),
    }), y  # fmt: skip


def check_alerts(model, train, new, k, n_reasons=5):
    """Assert that all reasons of the first k alerts are true; return what they spoke of."""
    reader = ReasonReader(train.to_dict(as_series=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unseen categories are told as reasons
        alerts = model.top_k(new, k, reasons=n_reasons).to_dicts()
    found = {
        alert["rank"]: alert_problems(reader, alert, new.row(alert["row"], named=True), n_reasons) for alert in alerts
    }
    assert not {rank: problems for rank, problems in found.items() if problems}
    sure = alerts[:20] if hasattr(model, "trees_") else alerts
    assert [alert["rank"] for alert in sure if alert["lift"] > 1.5 and not alert["reason_1"]] == []
    return reader.kinds


@pytest.mark.filterwarnings("ignore::UserWarning")  # many categories
@pytest.mark.parametrize("kind", SMALL)
def test_reasons_of_a_simulated_table_are_true(kind):
    (train, y), (new, _) = simulated(1500, 0), simulated(800, 1, is_new=True)
    kinds = check_alerts(clone(EVERY[kind]).fit(train, y), train, new, 300)
    assert len(kinds) >= 3
    if kind == "linear":
        assert set(kinds) >= {"missing", "median", "usual range", "unseen", "pooled", "other category"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", TABLES)
def test_reasons_of_real_tables_are_true(name):
    """500 alerts of cases kept apart, with a column of 400 branches added, of which some are pooled, some new."""
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"there is no {path.name} in {DATA}: set TOPRANK_DATA")
    table = pl.read_csv(path, infer_schema_length=None).sample(fraction=1.0, shuffle=True, seed=0)[:4500]
    rng = np.random.default_rng(0)
    branch = pl.Series("branch", [f"branch {b}" for b in 400 * rng.power(2, len(table)) // 1])
    train, new = table.with_columns(branch)[: len(table) * 3 // 5], table.with_columns(branch)[len(table) * 3 // 5 :]
    is_new = pl.Series(rng.random(len(new)) < 0.1)
    new = new.with_columns(branch=pl.when(is_new).then(pl.lit("branch 999")).otherwise("branch"))
    kinds = {}
    for model in WHOLE.values():
        fitted = clone(model).fit(train.drop("label"), train["label"].to_numpy())
        for kind, n in check_alerts(fitted, train.drop("label"), new.drop("label"), 500, 3).items():
            kinds[kind] = kinds.get(kind, 0) + n
    assert sum(kinds.values()) > 100 * len(WHOLE)
    assert {"other category", "how often"} <= set(kinds)


def naive_strengths(tree, row):
    """Odds factor of each feature of a row, by walking a dictionary of the tree."""
    total = [p + n for p, n in zip(tree["positive"], tree["negative"], strict=True)]
    base = tree["positive"][0] / total[0]

    def log_odds(node):
        return math.log(tree["positive"][node] + base) - math.log(tree["negative"][node] + 1 - base)

    gains, node = {}, 0
    while tree["leaf"][node] < 0:
        feature, value = tree["feature"][node], row[tree["feature"][node]]
        if math.isnan(value):
            goes_left = bool(tree["missing_left"][node])
        elif tree["category_at"][node] >= 0:
            bits = tree["category_bits"][tree["category_at"][node]]
            goes_left = bool(int(bits[int(value) // 64]) >> (int(value) % 64) & 1)
        else:
            goes_left = value <= float(tree["threshold"][node])
        child = tree["left"][node] if goes_left else tree["right"][node]
        gains[feature] = gains.get(feature, 0.0) + log_odds(child) - log_odds(node)
        node = child
    return {feature: math.exp(gain) for feature, gain in gains.items()}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["rate", "constant", "treerank"])
def test_strengths_are_those_of_a_walk_down_the_tree(kind):
    train, y = simulated(2000, 0)
    model = variant(kind, cv=0).fit(train, y)  # rates of new cases shrink strengths
    alerts, tree, matrix = model.top_k(train, 60, reasons=7), model.tree_.to_dict(), model._encode(train)
    for alert in alerts.to_dicts():
        expected = {
            train.columns[feature]: strength
            for feature, strength in naive_strengths(tree, matrix[alert["row"]].tolist()).items()
            if strength >= 1.005
        }
        texts = [alert[f"reason_{i}"] for i in range(1, 8) if alert[f"reason_{i}"]]
        found = {
            max((name for name in train.columns if text.startswith((f"{name} =", f"{name} is"))), key=len):
            alert[f"strength_{i}"]
            for i, text in enumerate(texts, 1)
        }  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-3)


def test_models_from_files_give_the_same_reasons(tmp_path):
    from toprank import load

    train, y = simulated(800, 0)
    train = train.drop("town")
    model = MetaAP(max_depth=2, leaf_depth=2, leaf_score="linear", cv=2).fit(train, y)
    model.save(tmp_path / "model.toprank")
    assert load(tmp_path / "model.toprank").top_k(train, 50).equals(model.top_k(train, 50))
