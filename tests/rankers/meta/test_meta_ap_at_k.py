"""`MetaAP(objective="ap@k")`: the budget decides what counts."""

import numpy as np
import pytest
from sklearn.base import clone

from ranker_cases import make_cases
from toprank import MetaAP, StackedRanker, load
from toprank.metrics import average_precision
from toprank.tree.meta.objectives import TopPrecision, top_precision

SMALL = {"max_depth": 3, "leaf_depth": 2, "min_samples_leaf": 5, "leaf_order": "meta", "leaf_score": "constant"}


def pockets(n=4000, seed=0):
    """A broad group with many positives at a rate of 30 %, and a small one at 80 %."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    broad, small = X[:, 0] > 0.7, X[:, 1] > 0.97
    rate = np.where(small, 0.8, np.where(broad, 0.3, 0.02))
    return X, (rng.random(n) < rate).astype(int)


def test_a_budget_of_all_cases_is_average_precision():
    X, y = make_cases(500)
    same = {"ccp_alpha": 0.0, "cv": 0}
    plain = MetaAP(**same).fit(X, y)
    whole = MetaAP(objective="ap@k", budget=500, **same).fit(X, y)
    assert np.array_equal(plain.decision_function(X), whole.decision_function(X))


def test_a_small_budget_is_spent_on_the_richest_cases():
    X, y = pockets()
    found, size = {}, {}
    for objective in ("ap", "ap@k"):
        model = MetaAP(objective=objective, budget=60, ccp_alpha=0.0, cv=0, **SMALL).fit(X, y)
        new, outcome = pockets(20_000, seed=1)
        score = model.decision_function(new)
        found[objective] = top_precision(outcome == 1, score, np.ones(len(score)), 60 / 4000)
        size[objective] = model.n_leaves_
    assert found["ap@k"] >= found["ap"]
    assert size["ap@k"] < size["ap"], "what ranks below the budget is not split"


def test_weights_and_shares_mean_the_same_as_rows_and_counts():
    X, y = make_cases(400)
    settings = {"objective": "ap@k", "ccp_alpha": 0.0, "cv": 0, **SMALL}
    twice = MetaAP(budget=40, **settings).fit(X, y, np.full(400, 2.0))
    copies = MetaAP(budget=40, **settings).fit(X.loc[np.repeat(X.index, 2)], np.repeat(y, 2))
    share = MetaAP(budget=0.05, **settings).fit(X, y, np.full(400, 2.0))
    assert np.array_equal(twice.decision_function(X), copies.decision_function(X))
    assert np.array_equal(twice.decision_function(X), share.decision_function(X))


@pytest.mark.parametrize("kind", [clone, lambda ranker: StackedRanker([ranker.set_params(cv=0)], cv=3)])
def test_a_budget_is_the_same_share_in_folds(kind, monkeypatch):
    """A count was a share of the cases of a fold: 40 of 200 cases became 40 of 133."""
    depths, make = [], TopPrecision.from_share
    monkeypatch.setattr(TopPrecision, "from_share", lambda depth: depths.append(depth) or make(depth))
    X, y = make_cases(200)
    kind(MetaAP(objective="ap@k", budget=40, ccp_alpha=0.0, cv=3, **SMALL)).fit(X, y)
    assert len(depths) >= 4
    assert set(depths) == {0.2}


def test_pruning_chooses_by_ap_at_k(tmp_path):
    X, y = pockets()
    model = MetaAP(objective="ap@k", budget=60, cv=3).fit(X, y)
    assert model.rates_.is_for_new_cases
    path = model.ccp_path_
    chosen = path["average_precision"][np.flatnonzero(path["ccp_alpha"] == model.ccp_alpha_)[0]]
    assert chosen == pytest.approx(path["average_precision"].max())
    plain = MetaAP(budget=60, cv=3).fit(X, y).ccp_path_
    assert path["average_precision"].max() != pytest.approx(plain["average_precision"].max(), abs=1e-3)
    model.save(tmp_path / "m.toprank")
    assert np.array_equal(load(tmp_path / "m.toprank").decision_function(X), model.decision_function(X))
    assert average_precision(y, model.decision_function(X)) > y.mean()


def test_an_objective_that_does_not_exist():
    with pytest.raises(ValueError, match="objective"):
        MetaAP(objective="p@k").fit(*make_cases(60))
