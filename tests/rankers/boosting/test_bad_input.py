"""Bad input to every boosted ranker: a clear sentence or a sane result, and nothing lost."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cli_files import run
from ranker_cases import BOOSTERS, make_cases
from toprank import SGBAP, InputError, LambdaMART, LogisticBoost, MAPBoost, PairwiseBoost, RankBoost, load
from toprank.rankers.additive_ranker import AdditiveRanker
from toprank.rankers.boosting.booster import Booster

KINDS = {kind: model for kind, model in BOOSTERS.items() if isinstance(model, AdditiveRanker)}
GROWN = {kind: model for kind, model in KINDS.items() if isinstance(model, Booster)}
CLASSES = [SGBAP, LogisticBoost, PairwiseBoost, MAPBoost, LambdaMART, RankBoost]


def test_every_boosted_ranker_is_tried():
    assert {type(model) for model in KINDS.values()} == set(CLASSES)


@pytest.mark.parametrize("kind", KINDS)
def test_one_positive_is_ranked_first(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.zeros(60)
    X[7, 0], y[7] = 9.0, 1
    model = clone(KINDS[kind]).set_params(n_estimators=20).fit(X, y)
    score = model.decision_function(X)
    assert np.isfinite(score).all()
    assert score[7] == score.max()
    assert not model.rates_.is_for_new_cases, "one positive cannot be held out"
    assert model.n_rounds_ == 20


@pytest.mark.filterwarnings("ignore:No tree found a split")  # the logistic loss has too little curvature
@pytest.mark.parametrize("kind", KINDS)
def test_one_negative_is_ranked_last(kind):
    X, y = np.arange(30.0)[:, None], np.ones(30)
    y[0] = 0
    score = clone(KINDS[kind]).set_params(n_estimators=20).fit(X, y).decision_function(X)
    assert np.isfinite(score).all()
    assert score[0] == score.min()


@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns_rank_nobody_and_do_not_disturb_others(kind):
    y = (np.arange(80) % 5 == 0).astype(int)
    constant = np.full((80, 2), 3.0)
    score = clone(KINDS[kind]).set_params(keep_columns="all").fit(constant, y).decision_function(constant)
    assert np.isfinite(score).all()
    assert np.ptp(score) == 0
    both = np.column_stack((constant, y + 0.1 * np.sin(np.arange(80))))
    model = clone(KINDS[kind]).set_params(keep_columns="all", n_estimators=20).fit(both, y)
    assert model.score(both, y) > 0.9
    assert model.feature_importances_.tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_may_differ_by_a_factor_of_a_trillion(kind):
    X, y = make_cases(200)
    weight = np.random.default_rng(0).choice([1e-6, 1.0, 1e6], 200)
    weight[np.flatnonzero(y)[0]], weight[np.flatnonzero(y == 0)[0]] = 1e6, 1e-6
    model = clone(KINDS[kind]).fit(X, y, weight)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    heavy = weight == 1e6
    alone = clone(KINDS[kind]).fit(X[heavy], y[heavy])
    assert model.score(X[heavy], y[heavy]) > 0.8 * alone.score(X[heavy], y[heavy])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [(0.0, 1.0), (-1.0, 1.0), (2.0, 5.0)], ids=str)
def test_labels_may_be_floats(kind, labels):
    X, y = make_cases(150)
    plain = clone(KINDS[kind]).fit(X, y)
    model = clone(KINDS[kind]).fit(X, np.array(labels)[y])
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert set(model.predict(X).tolist()) <= set(labels)


@pytest.mark.parametrize("kind", KINDS)
def test_fractions_in_the_labels_are_refused(kind):
    X, _ = make_cases(60)
    with pytest.raises(InputError, match="fractions"):
        clone(KINDS[kind]).fit(X, np.linspace(0.0, 1.0, 60))


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_no_round_draws_takes_part_as_a_whole(kind):
    model = clone(KINDS[kind])
    if "subsample" not in model.get_params():
        pytest.skip(f"{kind} sees all rows in every round")
    X, y = np.arange(50.0)[:, None], np.arange(50) >= 48
    model.set_params(subsample=0.02, n_estimators=60, min_child_weight=0.0, learning_rate=0.3, cv=0).fit(X, y)
    score = model.decision_function(X)
    assert np.isfinite(score).all()
    assert score[-1] > score[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_fit_leaves_an_unfitted_model(kind):
    X, y = make_cases(60)
    model = clone(KINDS[kind]).fit(X, y)
    with pytest.raises(InputError, match="both classes"):
        model.fit(X, np.zeros(60))
    with pytest.raises(NotFittedError):
        model.decision_function(X)


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_values_are_refused_by_name(kind):
    X, y = make_cases(60)
    X.loc[3, "size"] = np.inf
    with pytest.raises(ValueError, match="size"):
        clone(KINDS[kind]).fit(X, y)


# --- what is not installed ----------------------------------------------------------------------------------


@pytest.fixture
def without_xgboost(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)


@pytest.mark.parametrize("kind", GROWN)
def test_without_xgboost_the_message_names_the_extra(kind, without_xgboost):
    X, y = make_cases(60)
    model = clone(GROWN[kind])
    with pytest.raises(ImportError, match=r"XGBoost.*not installed.*toprank\[boosting\]"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.decision_function(X)


@pytest.mark.parametrize("kind", KINDS)
def test_without_xgboost_a_file_still_scores_and_explains(kind, tmp_path, monkeypatch):
    X, y = make_cases(100)
    model = clone(KINDS[kind]).fit(X, y)
    model.save(tmp_path / "model.toprank")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert load(tmp_path / "model.toprank").top_k(X, 5).equals(model.top_k(X, 5))


def test_rankboost_needs_no_xgboost(without_xgboost):
    X, y = make_cases(100)
    assert RankBoost(n_estimators=5).fit(X, y).score(X, y) > y.mean()


def test_the_command_line_without_xgboost(without_xgboost, tmp_path):
    X, y = make_cases(100)
    X.assign(label=y).to_csv(tmp_path / "cases.csv", index=False)
    out = tmp_path / "model.toprank"
    done = run("fit", tmp_path / "cases.csv", "--label", "label", "--model", "lambdamart-ap", "-o", out)
    assert (done.code, out.exists()) == (2, False)
    assert "toprank[boosting]" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("ranker", [type(model) for model in GROWN.values()], ids=lambda ranker: ranker.__name__)
def test_a_gpu_that_is_not_there_is_told(ranker):
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a GPU")
    X, y = make_cases(60)
    with pytest.raises(InputError, match=r"'cuda'.*GPU.*Hint: leave device at 'cpu'"):
        ranker(device="cuda").fit(X, y)
    with pytest.raises(InputError, match="'gpu'"):
        ranker(device="gpu").fit(X, y)


@pytest.mark.parametrize("ranker", CLASSES, ids=lambda ranker: ranker.__name__)
@pytest.mark.parametrize(
    "setting", [{"n_estimators": 0}, {"learning_rate": 0.0}, {"early_stopping_rounds": 0}, {"on_interrupt": "stop"}],
    ids=str,
)  # fmt: skip
def test_bad_settings_are_refused_by_name(ranker, setting):
    X, y = make_cases(60)
    with pytest.raises(ValueError, match=next(iter(setting))):
        ranker(**setting).fit(X, y)


def test_columns_of_nothing_but_missing_values_rank_nobody():
    X = pd.DataFrame({"a": [np.nan] * 40, "b": np.arange(40.0)})
    y = (np.arange(40) >= 30).astype(int)
    for kind in KINDS:
        model = clone(KINDS[kind]).set_params(n_estimators=10, keep_columns="all").fit(X, y)
        assert np.isfinite(model.decision_function(X)).all(), kind


def test_a_comparison_without_xgboost_names_the_extra_and_goes_on(tmp_path, monkeypatch):
    from toprank.experiment import registry

    known = registry.find_spec
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "xgboost" else known(name))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    X, y = make_cases(200)
    X.assign(label=y).to_csv(tmp_path / "cases.csv", index=False)
    done = run("compare", tmp_path / "cases.csv", "--label", "label", "--methods", "rankboost,sgbap,lambdamart-ap",
               "--folds", 2, "--jobs", 1, "-o", tmp_path / "board")  # fmt: skip
    assert done.code == 0, done.err
    assert "RankBoost" in done.out
    told = " ".join(done.out.split())
    assert "SGBAP, LambdaMART-AP: pip install" in told
    assert "toprank[boosting]" in told
