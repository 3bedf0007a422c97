import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import clone

from cli_files import run
from ranker_cases import make_cases
from toprank import (
    KNN,
    CostOptimalForest,
    GammaKNN,
    MetaAP,
    MetaAPForest,
    RankBoost,
    RankingTree,
    RedFlags,
    StackedRanker,
    TAOTree,
    TreeRankForest,
    load,
)
from toprank.data.binned_cases import BinnedCases
from toprank.datasets import make_audit
from toprank.errors import InputError, InputTypeError
from toprank.files.model_file import ModelFileError
from toprank.metrics import average_precision
from toprank.rankers.ensemble import stacked
from toprank.rankers.ensemble.stacked import PULL, Blend
from toprank.rankers.log_odds import LogOddsMap, fit_log_odds_map, fit_logistic, with_gentle_ends
from toprank.rankers.unseen import held_out_folds
from toprank.words.numbers import number_text

MEMBERS = [("tree", MetaAP(max_depth=2, leaf_depth=2)), ("forest", MetaAPForest(n_estimators=10)),
           ("boost", RankBoost(n_estimators=10, cv=3))]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    X, y = make_cases(500)
    return StackedRanker(MEMBERS, cv=3, random_state=0).fit(X, y)


def test_the_score_is_the_weighted_sum_of_the_members_log_odds(model):
    X, _ = make_cases(60, seed=3)
    total = np.full(60, model.blend_.intercept)
    for member, weight, each in zip(model.members_.values(), model.blend_.weights, model.blend_.maps, strict=True):
        total += weight * each.at(member.decision_function(X))
    assert np.array_equal(model.decision_function(X), total)
    assert list(model.weights_) == ["tree", "forest", "boost"]
    assert set(model.members_) == {name for name, weight in model.weights_.items() if weight > 0}


def test_members_are_those_of_a_fit_of_their_own(model):
    X, y = make_cases(500)
    new, _ = make_cases(60, seed=3)
    for name, ranker in MEMBERS:
        if name in model.members_:
            alone = ranker.__class__(**ranker.get_params() | {"random_state": 0}).fit(X, y)
            assert np.array_equal(model.members_[name].decision_function(new), alone.decision_function(new)), name
            assert np.array_equal(model.members_[name].rates_.rate, alone.rates_.rate), name


def test_the_table_is_binned_once(monkeypatch):
    made = []
    start = BinnedCases.__init__
    monkeypatch.setattr(BinnedCases, "__init__", lambda self, *a, **k: made.append(k) or start(self, *a, **k))
    X, y = make_cases(200)
    StackedRanker([MetaAP(cv=0), MetaAPForest(n_estimators=2), RankingTree(cv=0), RankingTree(splitter="exact", cv=0)],
                  cv=2).fit(X, y)  # fmt: skip
    assert [each["splitter"] for each in made] == ["hist", "exact"]


def test_rates_come_from_members_and_weights_that_did_not_see_the_case():
    """On noise, held-out scores must not rank better than chance, however closely the members fit."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 5)), (rng.random(600) < 0.2).astype(int)
    model = StackedRanker([RankingTree(max_depth=8, min_samples_leaf=1, cv=0), MetaAPForest(n_estimators=30)],
                          random_state=0).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.8
    assert model.rates_.average_precision < 0.3
    assert model.predict_proba(X)[:, 1].mean() < 0.45
    assert model.rates_.source == "5-fold cross-validation"


def test_a_member_without_held_out_scores_is_fitted_in_the_folds(monkeypatch):
    X, y = make_cases(300)
    model = StackedRanker([RankingTree(cv=0), MetaAPForest(n_estimators=1)], cv=3, random_state=0).fit(X, y)
    assert model.members_["RankingTree"].rates_.source == "3-fold cross-validation"
    assert model.members_["MetaAPForest"].rates_.source == "3-fold cross-validation"  # a third is out of bag: too few
    more = StackedRanker([RankingTree(cv=0), MetaAPForest(n_estimators=30)], cv=3, random_state=0).fit(X, y)
    assert more.members_["MetaAPForest"].rates_.source == "out of bag"


def test_without_folds_weights_are_equal_and_rates_those_of_training():
    X, y = make_cases(200)
    model = StackedRanker([RankingTree(cv=0), MetaAP(cv=0, max_depth=2)], cv=0).fit(X, y)
    assert list(model.weights_.values()) == [0.5, 0.5]
    assert not model.rates_.is_for_new_cases


def test_a_stack_of_one_ranks_as_its_member():
    X, y = make_cases(400)
    forest = MetaAPForest(n_estimators=20, random_state=1)
    model = StackedRanker([forest]).fit(X, y)
    score, alone = model.decision_function(X), forest.fit(X, y).decision_function(X)
    assert np.array_equal(np.argsort(score, kind="stable"), np.argsort(alone, kind="stable"))
    assert len(np.unique(score)) == len(np.unique(alone))


@pytest.mark.slow
def test_a_stack_is_about_as_good_as_its_best_member_on_a_campaign():
    data, new = make_audit(4000, random_state=3), make_audit(20_000, random_state=4)
    members = [("trees", MetaAPForest(n_estimators=30)), ("areas", TreeRankForest(n_estimators=30))]
    model = StackedRanker(members, cv=3, random_state=0).fit(data.X, data.y)
    alone = [member.score(new.X, new.y) for member in model.members_.values()]
    assert len(alone) == 2
    assert model.score(new.X, new.y) > np.mean(alone)
    assert model.score(new.X, new.y) > max(alone) - 0.01


def test_weights_and_seeds(model):
    X, y = make_cases(500)
    weight = np.where(np.arange(500) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    plain = [RankingTree(cv=0), RankBoost(n_estimators=5, cv=2)]
    one = StackedRanker(plain, cv=2).fit(X, y, weight)
    other = StackedRanker(plain, cv=2).fit(X[kept], y[kept])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    again = StackedRanker(MEMBERS, cv=3, random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert MEMBERS[1][1].random_state is None, "the members given are not changed"


def test_reasons_are_those_of_the_members(model):
    X, _ = make_cases(300, seed=2)
    alerts = model.top_k(X, 10, reasons=3)
    assert alerts["reason_1"].notna().all()
    assert (alerts["strength_1"] >= alerts["strength_2"].fillna(1)).all()
    explained = model.explain(X.iloc[alerts["row"][:3]])
    for each in explained:
        assert each.score == pytest.approx(each.intercept + sum(m.weight * m.log_odds for m in each.members))
        assert str(each).splitlines()[1].startswith(f"= {number_text(each.intercept, 3)} + ")
    for each, row in zip(explained, alerts.iloc[:3].itertuples(), strict=True):
        assert each.score == row.score
        assert each.score == pytest.approx(
            model.blend_.intercept + sum(share.weight * share.log_odds for share in each.members)
        )
        best = max(each.steps, key=lambda step: step.contribution)
        assert row.reason_1.startswith(best.feature)
        assert "(weight x log-odds of each member)" in str(each)
        assert each.to_dict()["members"][0]["name"] == each.members[0].name


def test_rules_of_several_columns_are_reasons():
    """A member's rules over several columns were no reasons: their names are those of no column."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (400, 3)), columns=["a", "b", "c"]).astype(float)
    y = ((X["a"] == 3) & (X["b"] == 3) | (rng.random(400) < 0.02)).to_numpy().astype(int)
    rules = RedFlags(max_features=0, max_rules=3, teacher=None, cv=0)
    explained = StackedRanker([rules], cv=0).fit(X, y).explain(X[(X["a"] == 3) & (X["b"] == 3)][:1])[0]
    steps = {step.feature: step.contribution for step in explained.steps}
    assert min(steps["a"], steps["b"]) > 0
    own, base = explained.members[0].log_odds, np.log(y.mean() / (1 - y.mean()))
    assert sum(steps.values()) == pytest.approx(own - base)


@pytest.mark.parametrize("total", [0.01, 1.0])
def test_weights_may_add_up_to_1_or_less(total):
    """The log-odds of members were NaN."""
    X, y = make_cases(200)
    model = StackedRanker([GammaKNN(), KNN()], cv=2).fit(X, y, np.full(200, total / 200))
    assert model.score(X, y) > 1.3 * y.mean()


def test_parameters_of_members_have_names():
    """get_params showed no members, and set_params(t__max_depth=2) failed."""
    model = StackedRanker([("t", RankingTree()), KNN()])
    assert model.get_params()["t__max_depth"] == RankingTree().max_depth
    model.set_params(t__max_depth=2, KNN=KNN(n_neighbors=9), cv=3)
    assert [ranker.get_params() for _, ranker in model.rankers] == [
        RankingTree(max_depth=2).get_params(), KNN(n_neighbors=9).get_params()
    ]  # fmt: skip
    assert model.cv == 3
    assert clone(model).get_params()["KNN__n_neighbors"] == 9
    with pytest.raises(ValueError, match="unknown"):
        model.set_params(unknown=1)
    assert "t" not in StackedRanker().get_params()
    model.set_params(cv=2)
    assert model.cv == 2


@pytest.mark.parametrize("name", ["cv", "rankers", "a__b"])
def test_a_member_has_no_name_that_set_params_cannot_tell_from_a_parameter(name):
    """A member named cv: set_params(cv=...) replaced the folds of the stack."""
    X, y = make_cases(60)
    with pytest.raises(ValueError, match=f"name '{name}'"):
        StackedRanker([(name, RankingTree())]).fit(X, y)


def test_members_without_contributions_count_by_their_reasons():
    X, y = make_cases(300)
    model = StackedRanker([("near", KNN(n_neighbors=3))], cv=3).fit(X, y)
    explained = model.explain(X.iloc[:20])
    assert any(each.steps for each in explained)
    assert model.top_k(X, 5)["reason_1"].notna().any()


def test_importances_are_weighted_shares(model):
    total = sum(weight * member._importances() for member, weight
                in zip(model.members_.values(), model.blend_.weights, strict=True))  # fmt: skip
    assert model.feature_importances_ == pytest.approx(total / total.sum())
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_a_file_keeps_the_stack(model, tmp_path):
    X, _ = make_cases(60, seed=3)
    model.save(tmp_path / "stack.toprank")
    found = load(tmp_path / "stack.toprank")
    assert np.array_equal(found.decision_function(X), model.decision_function(X))
    assert found.weights_ == model.weights_
    assert found.summary() == model.summary()
    for name, member in model.members_.items():
        assert np.array_equal(found.members_[name].predict_proba(X), member.predict_proba(X))
        assert found.members_[name].top_k(X, 5).equals(member.top_k(X, 5))
    found._kinds[0] = "TreeRank"
    found.save(tmp_path / "other.toprank")
    with pytest.raises(ModelFileError, match="members of a stack are its rankers"):
        load(tmp_path / "other.toprank")


def test_the_default_leaves_boosters_out_without_xgboost(monkeypatch):
    monkeypatch.setattr(stacked, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"leaves out boosting and logistic boosting.*toprank\[boosting\]"):
        members = stacked.default_members()
    assert "forest" in members
    assert not {"boosting", "logistic boosting"} & set(members)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"forest", "boosting", "logistic boosting"} <= set(stacked.default_members())


def test_a_stack_of_default_members_needs_no_xgboost_from_a_file(tmp_path, monkeypatch):
    X, y = make_cases(200)
    monkeypatch.setattr(stacked, "default_members", lambda: {"forest": MetaAPForest(n_estimators=3)})
    model = StackedRanker(cv=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m.toprank")
    monkeypatch.setattr(stacked, "find_spec", lambda name: None)
    assert np.array_equal(load(tmp_path / "m.toprank").decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("rankers", "kind", "word"),
    [
        ([], InputError, "empty"),
        ([("a", RankingTree()), ("a", MetaAP())], InputError, "'a'"),
        ([(1, RankingTree())], InputError, "1"),
        ([RankingTree], InputTypeError, "pairs"),
        (["metaap"], InputTypeError, "'metaap'"),
        ([("a", object())], InputTypeError, "pairs"),
        ([RankingTree(pos_label=1)], InputError, "pos_label"),
        ([MetaAP(categorical_features=["a"])], InputError, "categorical_features"),
    ],
)
def test_members_that_cannot_be_stacked(rankers, kind, word):
    X, y = make_cases(60)
    with pytest.raises(kind, match=word):
        StackedRanker(rankers).fit(X, y)


def test_rankers_without_names_get_those_of_their_classes():
    X, y = make_cases(200)
    model = StackedRanker([RankingTree(cv=0), RankingTree(max_depth=2, cv=0)], cv=0).fit(X, y)
    assert list(model.weights_) == ["RankingTree", "RankingTree 2"]


def test_curves_and_their_forests_can_be_members():
    X, y = make_cases(200)
    forest = CostOptimalForest(TAOTree(max_depth=2), n_estimators=3, cost_factor=20.0)
    model = StackedRanker([forest, RankingTree(cv=0)], cv=2, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.members_["CostOptimalForest"].rates_.source == "2-fold cross-validation"


def test_folds_are_those_of_the_seed():
    X, y = make_cases(300)
    model = StackedRanker([RankingTree(cv=0), MetaAPForest(n_estimators=30, random_state=0)], cv=3)
    model.set_params(random_state=4).fit(X, y)
    data = model._make_cases(model._encode(X), y == 1, None, None)
    first, second = (held_out_folds(data, 3, seed)[0].held_out.tolist() for seed in (4, 5))
    assert first != second


def test_the_command_line_fits_and_reads_a_stack(tmp_path, monkeypatch):
    small = {"forest": MetaAPForest(n_estimators=3), "treerank forest": TreeRankForest(n_estimators=3)}
    monkeypatch.setattr(stacked, "default_members", lambda: small)
    X, y = make_cases(300)
    X.assign(label=y).to_csv(tmp_path / "cases.csv", index=False)
    table, model = tmp_path / "cases.csv", tmp_path / "model.toprank"
    for command, words in (
        (("fit", table, "--label", "label", "--model", "stacked", "--cv", 2, "-o", model), "StackedRanker"),
        (("describe", model), "main columns"),
        (("topk", model, table, "--k", 3), "reasons"),
        (("evaluate", model, table, "--label", "label"), "AP"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
        assert words in done.out


def held_out(n=2000, seed=0, n_rankers=2, noise=(0.5, 2.0)):
    """Scores of rankers that see the true log-odds with more or less noise, and outcomes."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-2.5, 1.5, n)
    scores = np.column_stack([logit + noise[i % len(noise)] * rng.normal(size=n) for i in range(n_rankers)])
    return scores, rng.random(n) < expit(logit), np.ones(n)


@given(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=30))
def test_a_map_keeps_the_order_of_any_scores_and_stays_finite(scores):
    found = LogOddsMap(np.array([-1.0, 0.0, 0.5, 2.0]), np.array([-4.0, -3.0, -1.0, 2.0]))
    ordered = np.sort(np.array(scores))
    value = found.at(ordered)
    assert np.isfinite(value).all()
    assert np.all(np.diff(value) >= -1e-12)
    assert np.array_equal(value, [found.at(ordered[i : i + 1])[0] for i in range(len(ordered))])


def test_a_map_has_its_knots_and_goes_on_beyond_them():
    found = LogOddsMap(np.array([0.0, 1.0, 3.0]), np.array([-2.0, 0.0, 1.0]))
    assert found.at(np.array([0.0, 1.0, 3.0, 0.5, 2.0])).tolist() == [-2.0, 0.0, 1.0, -1.0, 0.5]
    assert found.at(np.array([-1.0, 4.0])) == pytest.approx([-2.0 - np.log1p(2.0), 1.0 + np.log1p(0.5)])
    assert LogOddsMap(np.array([1.0]), np.array([-3.0])).at(np.array([1.0, 2.0])) == pytest.approx([-3, -3 + np.log(2)])


def test_knots_as_far_apart_or_as_close_as_floats_are():
    """A score of 1e308 was NaN between such knots, and 0.1 beyond two close ones added 25 log-odds."""
    wide = LogOddsMap(np.array([-1e308, 1e308]), np.array([-1.0, 1.0]))
    assert wide.at(np.array([-1e308, 0.0, 1e308, 1.7e308])) == pytest.approx([-1, 0, 1, 1 + np.log1p(0.7)])
    score = np.array([0.0, 1e-12, 0.5, 1.0 - 1e-12, 1.0])
    close = with_gentle_ends(LogOddsMap(score, np.array([-4.0, -3.0, -2.0, 0.0, 0.5])))
    tenth = 0.5 - (-2 + 0.8 * 2)  # between 0.9 and 1
    assert close.at(np.array([1.05, 1.1, 1.2])) == pytest.approx(
        0.5 + np.array([tenth / 2, tenth, tenth + np.log1p(tenth)])
    )
    assert close.at(np.array([-0.1])) == pytest.approx([-4 - (1 + 0.2)])
    assert close.at(score).tolist() == [-4.0, -3.0, -2.0, 0.0, 0.5]
    even = LogOddsMap(np.arange(5.0), np.arange(5.0))
    assert len(with_gentle_ends(even).check().score) == 5
    tiny = LogOddsMap(np.array([0.0, 5e-324]), np.array([0.0, 1.0]))
    assert np.isfinite(tiny.at(np.array([-1.0, 0.0, 5e-324, 1.0]))).all()


def test_a_map_learns_the_log_odds_and_never_ties():
    scores, is_positive, weight = held_out(20_000)
    found = fit_log_odds_map(np.exp(scores[:, 0]), is_positive, weight)
    assert np.all(np.diff(found.score) > 0)
    assert np.all(np.diff(found.log_odds) > 0)
    rng = np.random.default_rng(1)
    new, truth, _ = held_out(200_000, seed=2)
    value = found.at(np.exp(new[:, 0]))
    for low, high in ((-4, -3), (-3, -2), (-1, 0), (0.5, 1.5)):
        some = (value > low) & (value < high)
        assert truth[some].mean() == pytest.approx(expit(value[some]).mean(), rel=0.15)
    pure = rng.normal(size=500)
    assert len(np.unique(fit_log_odds_map(pure, rng.random(500) < 0.2, np.ones(500)).at(pure))) == 500


def test_the_order_of_rows_and_copies_change_nothing():
    scores, is_positive, weight = held_out(400)
    scores = scores.round(1)
    weight = np.random.default_rng(0).integers(1, 4, 400).astype(float)
    first = Blend.fit(scores, is_positive, weight)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(400), weight.astype(int)))
    other = Blend.fit(scores[order], is_positive[order], np.ones(len(order)))
    assert np.array_equal(first.weights, other.weights)
    assert first.intercept == other.intercept
    assert all(np.array_equal(a.log_odds, b.log_odds) for a, b in zip(first.maps, other.maps, strict=True))


def test_weights_are_those_of_the_penalised_likelihood():
    scores, is_positive, weight = held_out(3000)
    blend = Blend.fit(scores, is_positive, weight)
    features = np.column_stack([each.at(score) for each, score in zip(blend.maps, scores.T, strict=True)])

    def loss(weights, intercept):
        t = features @ weights + intercept
        return np.sum(np.logaddexp(0, t) - is_positive * t) + PULL / 2 * np.sum((weights - 0.5) ** 2)

    least = loss(blend.weights, blend.intercept)
    for step in np.random.default_rng(0).normal(0, 0.05, (200, 3)):
        moved = np.maximum(blend.weights + step[:2], 0.0)
        assert loss(moved, blend.intercept + step[2]) >= least - 1e-6 * abs(least)


def test_the_better_ranker_weighs_more_and_a_blend_beats_both():
    scores, is_positive, weight = held_out(6000, noise=(0.7, 1.2))
    blend = Blend.fit(scores, is_positive, weight)
    assert blend.weights[0] > blend.weights[1] > 0
    new, truth, _ = held_out(40_000, seed=5, noise=(0.7, 1.2))
    assert average_precision(truth, blend.score(new.T)) > max(average_precision(truth, s) for s in new.T)


def test_a_ranker_that_harms_gets_no_weight_and_is_not_asked():
    scores, is_positive, weight = held_out(20_000)
    features = np.column_stack((scores[:, 0], -scores[:, 0])) / 4  # the second one ranks the other way round
    slopes, _ = fit_logistic(features, is_positive.astype(float), weight, np.zeros(2), 0.1, np.full(2, 0.5))
    assert slopes[1] == 0.0 < slopes[0]
    blend = Blend([LogOddsMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]))] * 2, np.array([2.0, 0.0]), -1.0)
    assert blend.score([np.array([0.5]), np.array([np.nan])]).tolist() == [0.0]
    assert len(blend.in_use().maps) == 1


@pytest.mark.parametrize(
    ("score", "log_odds", "word"),
    [([0.0, 1.0], [0.0], "every score"), ([1.0, 0.0], [0.0, 1.0], "increase"), ([0.0, 1.0], [1.0, 1.0], "increase"),
     ([0.0, np.nan], [0.0, 1.0], "every score"), ([], [], "every score")],
)  # fmt: skip
def test_a_damaged_map_is_refused(score, log_odds, word):
    with pytest.raises(InputError, match=word):
        LogOddsMap(np.array(score, np.float64), np.array(log_odds, np.float64)).check()
