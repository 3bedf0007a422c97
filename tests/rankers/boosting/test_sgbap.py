"""SGBAP: XGBoost's trees with our scores, rounds by folds, reasons that add up, interruptions."""

import json
import math
import signal

import numpy as np
import pandas as pd
import pytest
import xgboost

from ranker_cases import make_cases
from toprank import SGBAP, InputError, LambdaMART, LogisticBoost, RankBoost, load
from toprank.datasets import make_audit
from toprank.metrics import average_precision, precision_at_k
from toprank.rankers.boosting import booster, rounds
from toprank.rankers.boosting.boosted_ranker import FoldRun, Followed, best_round
from toprank.rankers.boosting.losses import ExponentialAP, SigmoidAP, Slopes
from toprank.rankers.boosting.rounds import Rounds, to_fixed_points
from toprank.rankers.boosting.sgbap import Setup
from toprank.rankers.boosting.xgboost_trees import largest_below, trees_from_json
from toprank.tree.additive import AdditiveTrees
from toprank.tree.columns import Column

QUICK = {"n_estimators": 12, "warm_up": 4, "learning_rate": 0.2, "init": None, "random_state": 0}


@pytest.fixture(scope="module")
def audit():
    return make_audit(1500, random_state=3)


@pytest.fixture(scope="module")
def model(audit):
    return SGBAP(cv=2, budget=30, **QUICK).fit(audit.X, audit.y)


def table_for_xgboost(model, X):
    types = ["c" if column.categories else "q" for column in model.columns_]
    return xgboost.DMatrix(model._encode(X).astype(np.float32), feature_types=types, enable_categorical=True, nthread=1)


def test_scores_are_those_of_xgboost_bit_for_bit(model, audit):
    X = audit.X.copy()
    X.loc[::5, "age_years"] = np.nan
    X.loc[::7, "sector"] = None
    theirs = model.booster_.predict(table_for_xgboost(model, X), output_margin=True)
    assert np.array_equal(model.decision_function(X).astype(np.float32), theirs)


def test_contributions_are_those_of_xgboost_for_its_own_weights(model, audit):
    trees = trees_from_json(model._json, len(model.columns_))
    theirs = model.booster_.predict(table_for_xgboost(model, audit.X), pred_contribs=True)
    np.testing.assert_allclose(trees.contributions(model._encode(audit.X)), theirs[:, :-1], atol=1e-5)


def test_thresholds_send_every_double_where_xgboost_sends_it():
    rng = np.random.default_rng(0)
    threshold = np.concatenate((rng.normal(size=200), [0.0, -0.0, 1e-45, 3e38, -3e38, 1.0, 2.0**24])).astype(np.float32)
    limit = largest_below(threshold)
    for value in (limit, np.nextafter(limit, np.inf), np.nextafter(limit, -np.inf), threshold.astype(float)):
        assert np.array_equal(value <= limit, value.astype(np.float32) < threshold)


def test_explanations_add_up_to_the_score(model, audit):
    X = audit.X.head(20)
    contributions = model.trees_.contributions(model._encode(X))
    base = model.decision_function(X) - contributions.sum(axis=1)
    np.testing.assert_allclose(base, base[0], atol=1e-5)
    explanation = model.explain(X)[0]
    assert sum(step.contribution for step in explanation.steps) == pytest.approx(contributions[0].sum())
    assert "sum of" in str(explanation)
    assert explanation.base == pytest.approx(base[0], abs=1e-5)
    _, equation, *lines = str(explanation).splitlines()
    score, base = (float(part.split()[0]) for part in equation.split("="))
    shown = [float(line.split()[0]) for line in lines if line.strip()[0] in "+-"]
    assert score == pytest.approx(explanation.score, abs=0.005)
    assert base + sum(shown) == pytest.approx(score, abs=0.005 * (len(shown) + 2))
    assert lines[-1] == "the score is not the log-odds of the rate, which is that of held-out cases with such scores"


@pytest.mark.parametrize("surrogate", ["exp", "sigmoid"])
def test_it_ranks_far_better_than_chance_as_published_too(surrogate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 0.5 * rng.normal(size=4000) > 2.5
    for model in (SGBAP(surrogate, cv=0, **QUICK), SGBAP.paper(surrogate, cv=0, n_estimators=15, random_state=0)):
        precision = average_precision(y[2000:], model.fit(X[:2000], y[:2000]).decision_function(X[2000:]))
        assert precision > 0.25 > 5 * y.mean()


def test_the_number_of_rounds_is_the_best_of_the_learning_curve(model):
    curve = model.learning_curve_
    assert curve["round"].tolist() == list(range(1, len(curve["round"]) + 1))
    assert model.n_rounds_ == min(round(1.25 * best_round(curve["average_precision"])), model.n_estimators)
    assert np.all((curve["precision_at_k"] >= 0) & (curve["precision_at_k"] <= 1))


@pytest.mark.parametrize("budget", [60, 0.01])
def test_the_learning_curve_has_precision_within_the_budget(audit, monkeypatch, budget):
    """k was the number of positives, whatever the budget."""
    held_out = []
    step = FoldRun.step

    def watched(run):
        step(run)
        held_out.append((run.data.is_positive[run.fold.held_out], run.growing.other_score.copy()))

    monkeypatch.setattr(FoldRun, "step", watched)
    model = SGBAP(cv=2, blend=0.8, budget=budget, **QUICK).fit(audit.X, audit.y)
    share = budget / len(audit.y) if isinstance(budget, int) else budget
    expected = [precision_at_k(y, score, k=math.ceil(share * len(y))) for y, score in held_out[-2:]]
    assert model.learning_curve_["precision_at_k"][-1] == pytest.approx(np.mean(expected))


def test_folds_stop_early(audit):
    model = SGBAP(cv=2, early_stopping_rounds=3, **QUICK | {"n_estimators": 200, "learning_rate": 1.0})
    model.fit(audit.X, audit.y)
    assert len(model.learning_curve_["round"]) < 60


def test_without_folds_there_are_as_many_rounds_as_asked_for(audit):
    model = SGBAP(cv=0, **QUICK).fit(audit.X, audit.y)
    assert model.n_rounds_ == 12
    assert model.learning_curve_ == {}
    assert not model.rates_.is_for_new_cases


def noisy_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    return X, 0.3 * X[:, 0] + rng.normal(size=2000) > 1.5


def rounds_of(model, X, is_positive):
    model.n_positives_, model.columns_ = float(is_positive.sum()), [Column(f"x{f}") for f in range(X.shape[1])]
    model.max_depth_, model.blend_ = model.max_depth, model.blend
    return Rounds(rounds.Rows(X, is_positive, np.ones(len(X)), ["q"] * X.shape[1]), model._settings())


@pytest.mark.parametrize("loss", [ExponentialAP(), SigmoidAP()], ids=str)
def test_a_step_of_the_line_search_is_the_best_along_its_tree(loss):
    X, is_positive = noisy_rows()
    model = SGBAP.paper("exp" if isinstance(loss, ExponentialAP) else "sigmoid", subsample=1.0, max_depth=1)
    grown, weight = rounds_of(model, X, is_positive), np.ones(2000)
    before, n_inside = loss.value(grown.score, is_positive, weight), 0
    for _ in range(8):
        old = grown.score
        grown.step()
        step = grown.score - old
        at = [loss.value(old + factor * step, is_positive, weight) for factor in (0.9, 1.0, 1.1)]
        is_longest = np.abs(step).max() > 0.99 * rounds.STEPS[1]
        assert at[1] <= min(at[0], at[2] + is_longest) + 1e-6
        n_inside += not is_longest
        assert at[1] < before
        before = at[1]
    # Exponentials fall along most trees for ever: the purest leaf outgrows the others.
    assert n_inside >= 3 or isinstance(loss, ExponentialAP)
    np.testing.assert_allclose(trees_from_json(grown.to_json(), 3).decision_function(X), grown.score, atol=1e-4)


def test_a_round_that_was_interrupted_does_not_count(monkeypatch):
    X, is_positive = noisy_rows()
    grown = rounds_of(SGBAP.paper(), X, is_positive)
    for _ in range(2):
        grown.step()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "minimize_scalar", interrupt)
    with pytest.raises(KeyboardInterrupt):
        grown.step()
    assert grown.n_rounds == 2
    assert len(grown.trees()) == 2
    np.testing.assert_allclose(grown.trees().decision_function(X), grown.score, atol=1e-4)


def test_as_many_new_cases_are_alerts_as_the_budget_says():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 8))
    y = X[:, 0] + X[:, 1] + 2 * rng.normal(size=6000) > 5
    model = SGBAP(cv=3, blend=0.8, budget=0.03, n_estimators=40, random_state=0).fit(X[:3000], y[:3000])
    assert 50 <= np.sum(model.predict(X[3000:]) == 1) <= 135  # 90 of 3,000


def test_one_positive_is_enough_for_a_ranking():
    X, y = make_cases(200)
    y = np.arange(200) == 7
    assert len(np.unique(SGBAP(cv=0, n_estimators=30).fit(X, y).decision_function(X))) > 5


def test_sums_of_slopes_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    slopes = Slopes(rng.normal(size=5000) * rng.lognormal(size=5000) * 1e-7, rng.random(5000))
    to_fixed_points(slopes)
    for values in (slopes.gradient, slopes.curvature):
        shuffled = rng.permutation(values.astype(np.float64))
        assert np.cumsum(values.astype(np.float64))[-1] == np.cumsum(shuffled)[-1]
        assert values.dtype == np.float32


@pytest.mark.parametrize("surrogate", ["exp", "sigmoid"])
def test_the_model_does_not_depend_on_threads(audit, surrogate):
    models = [SGBAP(surrogate, cv=0, n_jobs=n, **QUICK).fit(audit.X, audit.y) for n in (1, 3)]
    assert models[0]._json == models[1]._json


def test_a_loaded_model_scores_and_explains_without_xgboost(model, audit, tmp_path, monkeypatch):
    model.save(tmp_path / "model.toprank")

    def refuse():
        raise AssertionError("XGBoost was asked for")

    monkeypatch.setattr(booster, "import_xgboost", refuse)
    monkeypatch.setattr(rounds, "import_xgboost", refuse)
    loaded = load(tmp_path / "model.toprank")
    assert loaded.top_k(audit.X, 5).equals(model.top_k(audit.X, 5))


def test_categories_are_split_in_sets_and_one_by_one_in_turn():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 12, 2000)
    X = pd.DataFrame({"kind": np.array(list("abcdefghijkl"))[kind]})
    y = rng.random(2000) < 0.02 + 0.3 * (kind % 2)
    model = SGBAP(n_estimators=4, max_depth=1, cv=0, random_state=0).fit(X, y)
    trees = json.loads(model._json)["learner"]["gradient_booster"]["model"]["trees"]
    assert [tree["categories_sizes"] == [1] for tree in trees] == [False, True, False, True]


def test_numbers_out_of_single_precision_are_ranked(audit):
    X, y = make_cases(200)
    X.loc[::3, "size"] = 1e300
    model = SGBAP(cv=0, **QUICK).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    before = model.decision_function(X)
    X.loc[::3, "size"] = 2e300
    assert np.array_equal(model.decision_function(X), before)


def test_a_progress_line_tells_the_average_precision(audit, capsys):
    SGBAP(cv=2, verbose=1, **QUICK).fit(audit.X, audit.y)
    shown = capsys.readouterr().err
    assert "average precision 0." in shown
    assert "s left" in shown
    passes = ("folds (1 of 2) [", "folds without the surrogate (2 of 2) [", "trees [")  # one more with more positives
    places = [shown.index(label) for label in passes]
    assert places == sorted(places)


class StopsAfter:
    """`Rounds` whose step raises KeyboardInterrupt once, after so many steps of all boosters."""

    def __init__(self, monkeypatch, n_steps):
        self.n_left, step = n_steps, Rounds.step

        def interrupted(grown):
            self.n_left -= 1
            if self.n_left == -1:
                raise KeyboardInterrupt
            step(grown)

        monkeypatch.setattr(Rounds, "step", interrupted)


def test_an_interrupted_fit_leaves_nothing_behind(audit, monkeypatch):
    StopsAfter(monkeypatch, 5)
    model = SGBAP(cv=0, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        model.fit(audit.X, audit.y)
    assert not hasattr(model, "trees_")


def test_an_interrupted_fit_keeps_its_rounds_when_asked_to(audit, monkeypatch):
    StopsAfter(monkeypatch, 5)
    with pytest.warns(UserWarning, match="interrupted"):
        model = SGBAP(cv=0, on_interrupt="keep", **QUICK).fit(audit.X, audit.y)
    assert model.n_rounds_ == 5
    assert len(model.top_k(audit.X, 3)) == 3


def test_interrupted_folds_choose_among_the_rounds_so_far(audit, monkeypatch):
    StopsAfter(monkeypatch, 13)  # the seventh round of the first of two folds
    with pytest.warns(UserWarning, match="interrupted after 6 rounds"):
        model = SGBAP(cv=2, on_interrupt="keep", **QUICK).fit(audit.X, audit.y)
    assert len(model.learning_curve_["round"]) == 6
    assert model.rates_.is_for_new_cases


@pytest.mark.parametrize(
    ("blend", "n_starts", "what"),
    [("auto", 3, "interrupted before all settings were tried"), (0.8, 2, "interrupted after its folds")],
    ids=["second pass", "last fit"],
)
def test_an_interrupt_while_boosters_are_set_up_keeps_what_folds_have_found(audit, monkeypatch, blend, n_starts, what):
    """Before the first round of the second pass, or of the last fit, Ctrl-C lost the finished folds."""
    settings = {"cv": 2, "blend": blend, "on_interrupt": "keep", **QUICK}
    expected = SGBAP(**settings | {"blend": 0.8}).fit(audit.X, audit.y)
    start, left = SGBAP._start, [n_starts]

    def interrupted(self, *args):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        return start(self, *args)

    monkeypatch.setattr(SGBAP, "_start", interrupted)
    with pytest.warns(UserWarning, match=what):
        model = SGBAP(**settings).fit(audit.X, audit.y)
    assert model.blend_ == 0.8
    assert np.array_equal(model.decision_function(audit.X), expected.decision_function(audit.X))
    assert model.rates_.is_for_new_cases
    left[0] = n_starts
    with pytest.raises(KeyboardInterrupt):
        SGBAP(**settings | {"on_interrupt": "raise"}).fit(audit.X, audit.y)


@pytest.mark.parametrize("blend", [0.8, "auto"])
def test_an_interrupt_while_folds_are_read_off_keeps_them(audit, monkeypatch, blend):
    """Ctrl-C just after the folds of the first setting was followed by those of all the others."""
    scorer, n_calls = SGBAP._scorer, []

    def interrupted(self, *args):
        n_calls.append(1)
        if len(n_calls) == 2:
            raise KeyboardInterrupt
        return scorer(self, *args)

    monkeypatch.setattr(SGBAP, "_scorer", interrupted)
    with pytest.warns(UserWarning, match="interrupted after 12 rounds"):
        model = SGBAP(cv=2, blend=blend, on_interrupt="keep", **QUICK).fit(audit.X, audit.y)
    assert model.rates_.is_for_new_cases
    assert len(n_calls) == 4  # both folds, the first one twice: no other setting was tried


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("on_interrupt", ["raise", "keep"])
def test_an_interrupt_while_a_table_of_xgboost_is_built_is_not_lost(audit, monkeypatch, on_interrupt):
    """XGBoost asks for rows in a callback, which swallowed the interrupt: the fit ended with an XGBoostError."""
    ask, n_asked = xgboost.data.SingleBatchInternalIter.next, []

    def interrupted(self, *args):
        n_asked.append(1)
        if len(n_asked) == n_before:
            press_ctrl_c()
        return ask(self, *args)

    n_before = 0
    monkeypatch.setattr(xgboost.data.SingleBatchInternalIter, "next", interrupted)
    settings = {"cv": 2, "on_interrupt": on_interrupt, **QUICK}
    expected = SGBAP(**settings).fit(audit.X, audit.y)
    n_all = len(n_asked)
    for n_before in (1, n_all - 1):  # in the first fold, in the last fit
        n_asked.clear()
        if on_interrupt == "raise" or n_before == 1:
            with pytest.raises(KeyboardInterrupt):
                SGBAP(**settings).fit(audit.X, audit.y)
        else:
            with pytest.warns(UserWarning, match="interrupted after its folds"):
                model = SGBAP(**settings).fit(audit.X, audit.y)
            assert model._json == expected._json


@pytest.mark.parametrize("ranker", [SGBAP, RankBoost], ids=lambda ranker: ranker.__name__)
@pytest.mark.parametrize("step", ["_take", "_set_cutoff"])
def test_an_interrupt_after_the_last_tree_leaves_the_model_complete(audit, monkeypatch, ranker, step):
    """Ctrl-C while trees were converted or training rows scored lost all of them, although they were to be kept."""
    settings = {"n_estimators": 5, "cv": 0}
    expected = ranker(**settings).fit(audit.X, audit.y).decision_function(audit.X)
    owner = ranker if step == "_take" else AdditiveTrees
    name = step if step == "_take" else "decision_function"
    work = getattr(owner, name)

    def interrupted(*args):
        for _ in range(n_presses):
            press_ctrl_c()
        return work(*args)

    n_presses = 1
    monkeypatch.setattr(owner, name, interrupted)
    with pytest.warns(UserWarning, match="after the last tree was ignored") as caught:
        model = ranker(on_interrupt="keep", **settings).fit(audit.X, audit.y)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(KeyboardInterrupt):
        ranker(**settings).fit(audit.X, audit.y)
    n_presses = 2
    with pytest.raises(KeyboardInterrupt):
        ranker(on_interrupt="keep", **settings).fit(audit.X, audit.y)
    n_presses = 0
    assert np.array_equal(model.decision_function(audit.X), expected)


def test_an_interrupted_second_pass_that_is_worse_leaves_those_of_the_first(audit, monkeypatch):
    """The warning said that the number of trees is the best so far, but it was that of the complete first pass."""
    complete = SGBAP(cv=2, blend=0.8, **QUICK).fit(audit.X, audit.y)
    StopsAfter(monkeypatch, 2 * 12 + 2)  # the second round of the second pass
    with pytest.warns(UserWarning, match="interrupted before all settings were tried") as caught:
        model = SGBAP(cv=2, on_interrupt="keep", **QUICK).fit(audit.X, audit.y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model._json == complete._json
    assert model.blend_ == 0.8


def test_no_surrogate_is_claimed_where_all_rounds_are_warm_up(audit, tmp_path):
    """Rounds of the warm-up lower the logistic loss: with few rounds, SGBAP is LogisticBoost, and says so."""
    given = {"n_estimators": 8, "cv": 2, "random_state": 0}
    settings = given | {"init": None}
    model, plain = SGBAP(**settings).fit(audit.X, audit.y), LogisticBoost(**given).fit(audit.X, audit.y)
    assert model._json == plain._json
    assert (model.blend_, SGBAP(**settings | {"cv": 0}).fit(audit.X, audit.y).blend_) == (0.0, 0.0)
    assert model._facts()["blend"] == "the logistic loss alone, chosen by folds"
    model.save(tmp_path / "model.toprank")
    assert load(tmp_path / "model.toprank").blend_ == 0.0


def test_a_depth_of_numpy_survives_the_file(audit, tmp_path):
    model = SGBAP(max_depth=np.int32(3), cv=0, **QUICK).fit(audit.X, audit.y)
    model.save(tmp_path / "model.toprank")
    assert load(tmp_path / "model.toprank").max_depth_ == 3


def test_single_conditions_must_rank_better_and_the_surrogate_too():
    """Ties went to depth 1, although it has to win."""

    def found(best):
        return Followed(1, None, {"average_precision": np.array([best])}, True)

    deep, plain, single = Setup(6, 0.8), Setup(6, 0.0), Setup(1, 0.0)
    is_better = {setup: SGBAP._is_better(found(0.5), setup, found(0.5), deep) for setup in (plain, single)}
    assert is_better == {plain: True, single: False}
    assert SGBAP._is_better(found(0.6), single, found(0.5), deep)


def test_facts_name_the_warm_up(audit):
    said = {blend: SGBAP(blend=blend, cv=0, **QUICK).fit(audit.X, audit.y)._facts()["blend"] for blend in (0.8, 1, 0)}
    assert said[0.8] == (
        "4 rounds of the logistic loss, then 0.8 of the surrogate of average precision and 0.2 of the logistic loss"
    )
    assert said[1] == "4 rounds of the logistic loss, then the surrogate of average precision alone"
    assert said[0] == "the logistic loss alone"


@pytest.mark.parametrize("ranker", [SGBAP, LogisticBoost], ids=lambda ranker: ranker.__name__)
def test_a_model_without_a_split_says_so(ranker):
    X, y, weight = np.arange(200.0)[:, None], np.arange(200) % 10 == 0, np.ones(200)
    weight[1] = 1e12  # next to it, all others have no curvature
    with pytest.warns(UserWarning, match="No tree found a split") as caught:
        ranker(n_estimators=3, cv=0).fit(X, y, weight)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("ranker", [SGBAP, LambdaMART], ids=lambda ranker: ranker.__name__)
def test_weights_that_add_up_to_1_give_the_same_model(audit, ranker):
    """XGBoost's penalties are in cases: weights of 1 / n left nothing to learn from."""
    n = len(audit.y)
    models = [ranker(n_estimators=8, cv=0).fit(audit.X, audit.y, weight) for weight in (None, np.full(n, 1 / n))]
    scores = [model.decision_function(audit.X) for model in models]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_light_rows_change_the_weight_of_others_no_more_than_rows_of_weight_0():
    X, is_positive = noisy_rows()
    weight = np.where(np.arange(2000) < 1000, 1.0, 1e-9)
    fits = [LogisticBoost(n_estimators=10, cv=0).fit(X.round(), is_positive, each) for each in (weight, weight.round())]
    np.testing.assert_allclose(*[model.decision_function(X) for model in fits], atol=1e-4)


def test_heavy_positives_can_be_ranked():
    """Their rates were 1.0 in single precision, and no tree found a split."""
    X, is_positive = noisy_rows()
    model = LogisticBoost(n_estimators=20, cv=0).fit(X, is_positive, np.where(is_positive, 1e9, 1.0))
    assert average_precision(is_positive, model.decision_function(X)) > 2 * is_positive.mean()


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b"\xff", b'{"learner": {"learner_model_param": {"base_score": "1"}}}',
     b'{"learner": {"learner_model_param": {"base_score": "0"}, "gradient_booster": {"model": {"trees": []}}}}'],
    ids=str,
)  # fmt: skip
def test_what_is_no_booster_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        trees_from_json(text, 3)


def test_bad_settings_are_refused(audit):
    with pytest.raises(ValueError, match="surrogate"):
        SGBAP("hinge").fit(audit.X, audit.y)
    with pytest.raises(InputError, match="device is 'tpu'"):
        SGBAP(device="tpu").fit(audit.X, audit.y)


@pytest.mark.parametrize("seed", [0, 2])  # it pays in the first table alone, and clearly
def test_folds_choose_whether_the_surrogate_pays(seed):
    data = make_audit(1500, random_state=seed)
    settings = {"max_depth": 3, "n_estimators": 30, "warm_up": 5, "learning_rate": 0.2, "init": None, "cv": 2}
    fits = {blend: SGBAP(blend=blend, **settings).fit(data.X, data.y) for blend in (0.8, 0.0, "auto")}
    best = {blend: model.learning_curve_["average_precision"].max() for blend, model in fits.items()}
    chosen = 0.0 if best[0.0] >= best[0.8] else 0.8
    assert fits["auto"].n_rounds_ > 5
    assert fits["auto"].blend_ == chosen
    assert best["auto"] == max(best[0.0], best[0.8])
    assert np.array_equal(fits["auto"].decision_function(data.X), fits[chosen].decision_function(data.X))


STEEP = {"n_estimators": 30, "learning_rate": 0.3, "cv": 2, "random_state": 0}
"""Enough for trees of one condition to show what they can do."""


def rows_that_add_up(n, works_together):
    """Answers of yes and no that make a case positive one by one; or where the first two agree."""
    X = np.random.default_rng(0).integers(0, 2, size=(n, 20)).astype(float)
    score = 4 * (X[:, 0] == X[:, 1]) if works_together else X.sum(axis=1) - 9
    return X, np.random.default_rng(1).logistic(size=n) < score - 3


@pytest.mark.parametrize("works_together", [False, True])
def test_folds_choose_between_single_conditions_and_several(tmp_path, works_together):
    X, y = rows_that_add_up(1500, works_together)
    model = SGBAP(**STEEP).fit(X, y)
    assert model.max_depth_ == (6 if works_together else 1)
    given = SGBAP(max_depth=model.max_depth_, blend=model.blend_, **STEEP).fit(X, y)
    assert given._json == model._json
    said = "of up to 6 conditions in a row" if works_together else "of one condition each, so that columns add up"
    assert model._facts()["trees"] == f"{said}, chosen by folds"
    assert given._facts()["trees"] == said
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert (loaded.max_depth_, loaded.max_depth) == (model.max_depth_, "auto")


@pytest.mark.parametrize(("n_positives", "weight", "n_passes"), [(49, 1.0, 2), (49, 2.0, 3), (50, 1.0, 3)])
def test_few_positives_do_not_choose_the_depth(capsys, n_positives, weight, n_passes):
    """A weight of 2 is the row twice."""
    X, y = rows_that_add_up(600, works_together=False)
    rows = np.sort(np.r_[np.flatnonzero(~y), np.flatnonzero(y)[:n_positives]])
    model = SGBAP(n_estimators=3, init=None, verbose=1).fit(X[rows], y[rows], np.full(len(rows), weight))
    assert model._facts()["trees"].endswith(", chosen by folds") == (n_passes == 3)
    shown = capsys.readouterr().err
    assert f"folds (1 of {n_passes}) [" in shown
    assert ("folds with single conditions (3 of 3) [" in shown) == (n_passes == 3)


def test_an_interrupted_third_pass_leaves_the_best_of_the_others(monkeypatch):
    X, y = rows_that_add_up(1500, works_together=False)
    assert SGBAP(**STEEP).fit(X, y).max_depth_ == 1
    expected = SGBAP(max_depth=6, **STEEP).fit(X, y)
    StopsAfter(monkeypatch, 2 * STEEP["cv"] * STEEP["n_estimators"] + 2)
    with pytest.warns(UserWarning, match="interrupted before all settings were tried"):
        model = SGBAP(on_interrupt="keep", **STEEP).fit(X, y)
    assert (model.max_depth_, model._json) == (6, expected._json)


@pytest.mark.parametrize("ranker", [LogisticBoost, SGBAP])
def test_two_columns_that_count_only_together_are_learned(ranker):
    """Half of each column's range has the same rate; 0.8 of two columns, rounded down, would be one."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(2400, 2))
    y = X.prod(axis=1) > 0.55
    model = ranker(n_estimators=50, cv=0).fit(X[:1200], y[:1200])
    assert average_precision(y[1200:], model.decision_function(X[1200:])) > 0.9
