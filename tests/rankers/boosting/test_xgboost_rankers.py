"""PairwiseBoost and MAPBoost are XGBoost's rankers on one list, with copies for weights; LogisticBoost is plain."""

import inspect

import numpy as np
import pytest
import xgboost

from ranker_cases import make_cases
from toprank import SGBAP, LambdaMART, LogisticBoost, MAPBoost, PairwiseBoost
from toprank.datasets import make_audit
from toprank.rankers.boosting.rounds import Rows
from toprank.rankers.boosting.xgboost_rankers import copies_of, repeated

WHOLE = {"n_estimators": 12, "subsample": 1.0, "colsample_bytree": 1.0, "cv": 0, "random_state": 4}


def make_numbers(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 2).astype(int)


@pytest.mark.parametrize(("ranker", "objective"), [(PairwiseBoost, "rank:pairwise"), (MAPBoost, "rank:map")])
def test_scores_are_those_of_xgboost_alone(ranker, objective):
    X, y = make_numbers()
    model = ranker(**WHOLE, learning_rate=0.1).fit(X, y)
    theirs = xgboost.XGBRanker(
        objective=objective, n_estimators=12, learning_rate=0.1, max_depth=6, min_child_weight=0, n_jobs=1,
        lambdarank_pair_method="mean", lambdarank_num_pair_per_sample=1, random_state=model._settings().seed,
        base_score=0.0, tree_method="hist",
    ).fit(X, y, qid=np.zeros(len(y)))  # fmt: skip
    assert np.array_equal(model.decision_function(X), theirs.predict(X).astype(np.float64))


def test_logistic_boosting_is_xgboosts_up_to_the_rounding_of_gradients():
    X, y = make_numbers()
    model = LogisticBoost(**WHOLE, learning_rate=0.1).fit(X, y)
    theirs = xgboost.XGBClassifier(
        n_estimators=12, learning_rate=0.1, max_depth=6, base_score=float(y.mean()), n_jobs=1, tree_method="hist"
    ).fit(X, y)
    margin = theirs.predict(X, output_margin=True)
    base = np.log(y.mean() / (1 - y.mean()))
    np.testing.assert_allclose(model.decision_function(X), margin - base, atol=1e-4)


@pytest.mark.parametrize("ranker", [PairwiseBoost, MAPBoost])
def test_the_model_does_not_depend_on_threads(ranker):
    X, y = make_numbers(20_000)
    X[::7, 2] = np.nan
    models = [ranker(n_estimators=8, cv=0, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    assert models[0]._json == models[1]._json == models[2]._json


@pytest.mark.parametrize("ranker", [PairwiseBoost, MAPBoost])
def test_they_rank_new_cases(ranker):
    data, new = make_audit(3000, random_state=0), make_audit(4000, random_state=5)
    model = ranker(n_estimators=60, cv=0, random_state=0).fit(data.X, data.y)
    assert model.score(new.X, new.y) > 3 * np.mean(new.y)


# --- weights ------------------------------------------------------------------------------------------------


def test_whole_weights_are_numbers_of_copies():
    X, y = make_cases(300)
    weight = np.random.default_rng(0).integers(0, 4, 300)
    at = np.repeat(np.arange(300), weight)
    one = PairwiseBoost(**WHOLE).fit(X, y, weight)
    other = PairwiseBoost(**WHOLE).fit(X.iloc[at], y[at])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_other_weights_draw_copies_in_proportion_in_both_classes():
    weight, is_positive = np.random.default_rng(0).lognormal(size=500), np.arange(500) < 100
    copies = copies_of(weight, is_positive, 3)
    share = 4 * 500 * weight / weight.sum()
    assert abs(copies.sum() - 2000) <= 2
    assert np.all(np.abs(copies - share) < 1.1)
    mean = np.mean([copies_of(weight, is_positive, seed) for seed in range(300)], axis=0)
    np.testing.assert_allclose(mean, share, atol=0.15)


def test_weights_far_apart_leave_a_case_of_each_class():
    weight = np.array([1e-12, 1.0, 1e12, 1e-12, 1.0])
    is_positive = np.array([True, True, False, False, False])
    rows = repeated(Rows(np.arange(5.0)[:, None], is_positive, weight, ["q"]), 0)
    assert set(rows.X[:, 0].tolist()) == {1.0, 2.0}
    assert np.array_equal(rows.is_positive, rows.X[:, 0] < 2)
    assert np.all(rows.weight == 1.0)


def test_rows_of_equal_weight_are_not_copied():
    X = np.arange(6.0)[:, None]
    rows = repeated(Rows(X, np.arange(6) < 2, np.full(6, 19.9), ["q"]), 0)
    assert rows.X is X


def test_a_little_more_weight_of_one_case_changes_little():
    weight, is_positive = np.ones(200), np.arange(200) < 20
    weight[3] = 1.0001
    copies = copies_of(weight, is_positive, 0)
    assert copies[is_positive].sum() / copies.sum() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("ranker", [LogisticBoost, LambdaMART, PairwiseBoost, MAPBoost])
def test_defaults_are_those_of_sgbap(ranker):
    """So that a comparison with `SGBAP(max_depth=6)` shows the loss alone."""
    own, theirs = (dict(inspect.signature(each).parameters) for each in (ranker, SGBAP))
    other = {name for name in own if own[name].default != theirs[name].default}
    assert other - {"min_child_weight"} == {"max_depth"}
    assert ("min_child_weight" in other) == (ranker in (PairwiseBoost, MAPBoost))
