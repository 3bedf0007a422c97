import numpy as np
import pytest
from hypothesis import example, given
from sklearn.base import clone

from ranker_cases import Case, cases, fewer, make_cases
from toprank import TreeRankBoost, load
from toprank.datasets import make_audit
from toprank.explain import gain_importance
from toprank.metrics import roc_auc
from toprank.rankers.ensemble import treerank_boost
from toprank.rankers.ensemble.pairs import STEP_UNIT
from toprank.rankers.ensemble.treerank_boost import values_of_places

SMALL = TreeRankBoost(n_estimators=6, max_depth=2, leaf_depth=2, min_samples_leaf=1, cv=0)
ONE_POSITIVE = Case({"number0": [1.0, 2.0, 2.0, 3.0, None]}, np.array([0, 1, 0, 0, 0]), None)
SEPARATED = Case({"number0": [1.0, 2.0, 3.0, 4.0]}, np.array([0, 0, 1, 1]), None)
NOTHING = Case({"number0": [1.0, 1.0, 1.0]}, np.array([0, 1, 0]), np.array([1.0, 0.25, 3.0]))


def fit(n=300, weight=None, **parameters):
    X, y = make_cases(n)
    return clone(SMALL).set_params(**parameters).fit(X, y, weight), X, y


def places_of(model, X):
    matrix = model._encode(X)
    return np.column_stack([tree.leaf[tree.apply(matrix)] for tree in model.trees_])


def criterion(score, y, weight):
    """J by its definition: the mean over pairs of exp(-(S(positive) - S(negative)))."""
    pairs = np.outer(weight[y == 1], weight[y == 0])
    return (pairs * np.exp(score[y == 0] - score[y == 1][:, None])).sum() / pairs.sum()


# The criterion and its steps


@fewer(1)
@given(case=cases(weights=("none", "whole", "quarters")))
@example(case=ONE_POSITIVE)
@example(case=SEPARATED)
@example(case=NOTHING)
def test_the_criterion_falls_and_is_that_of_the_definition(case):
    model = clone(SMALL).set_params(output="additive").fit(case.pandas(), case.y, case.weight)
    weight = np.ones(len(case)) if case.weight is None else case.weight
    assert np.all(np.diff(model.criterion_) < 0)
    assert model.criterion_[0] <= 1.0 + 1e-12
    for score, value in zip(model.staged_decision_function(case.pandas()), model.criterion_, strict=True):
        assert value == pytest.approx(criterion(score, case.y, weight))
    assert np.array_equal(model.weights_ / STEP_UNIT, np.rint(model.weights_ / STEP_UNIT))


@pytest.mark.parametrize("learning_rate", [1.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_round_is_that_of_the_corrected_algorithm(learning_rate, weighted):
    """Weights of cases by the update itself, errors by one pair at a time, steps by trying others."""
    given_weight = np.random.default_rng(0).integers(0, 4, 300) / 2 if weighted else np.ones(300)
    model, X, y = fit(weight=given_weight if weighted else None, learning_rate=learning_rate, min_samples_leaf=5)
    omega = np.where(y == 1, given_weight / given_weight[y == 1].sum(), given_weight / given_weight[y == 0].sum())
    before = 1.0
    rounds = zip(model.trees_, model.weights_, model.errors_, model.strict_errors_, model.criterion_, strict=True)
    for place, (tree, step, error, strict, after) in zip(places_of(model, X).T, rounds, strict=True):
        pairs = np.outer(omega[y == 1], omega[y == 0])
        below = place[y == 1][:, None] > place[y == 0]
        beside = place[y == 1][:, None] == place[y == 0]
        assert strict == pytest.approx(pairs[below].sum())
        assert error == pytest.approx(pairs[below].sum() + pairs[beside].sum() / 2)
        rule = np.sign(place[y == 0] - place[:, None])  # r(x, X') for every row and every negative
        value = values_of_places(tree)[place]
        assert value == pytest.approx(rule @ omega[y == 0], abs=1e-9)
        assert after == pytest.approx(before * (pairs * np.exp(step * (value[y == 0] - value[y == 1][:, None]))).sum())
        best = step / learning_rate
        for other in (0.9 * best, 1.1 * best):
            worse = (pairs * np.exp(other * (value[y == 0] - value[y == 1][:, None]))).sum()
            assert worse > (pairs * np.exp(best * (value[y == 0] - value[y == 1][:, None]))).sum()
        omega = omega * np.exp(np.where(y == 1, -step, step) * value)
        omega = np.where(y == 1, omega / omega[y == 1].sum(), omega / omega[y == 0].sum())
        before = after
    assert len(model.trees_) == 6


def boost_as_printed(X, y, n_rounds):
    """Section V-D to the letter: a = log((1 - L) / L), and exp(-L s) for both classes; J after each round."""
    omega = np.where(y == 1, 1 / y.sum(), 1 / (1 - y).sum())
    score, values = np.zeros(len(y)), []
    for _ in range(n_rounds):
        weight = omega * np.where(y == 1, y.sum(), (1 - y).sum())
        model = clone(SMALL).set_params(n_estimators=1, min_samples_leaf=5).fit(X, y, weight)
        place, error = places_of(model, X)[:, 0], model.strict_errors_[0]
        value = values_of_places(model.trees_[0])[place]
        score = score + np.log((1 - error) / error) * value
        values.append(criterion(score, y, np.ones(len(y))))
        omega = omega * np.exp(-error * value)
        omega = np.where(y == 1, omega / omega[y == 1].sum(), omega / omega[y == 0].sum())
    return values


def test_with_the_printed_update_the_criterion_rises():
    """Why the update was changed: negatives that stand high become lighter, so the same mistakes come again."""
    X, y = make_cases(300)
    printed = boost_as_printed(X, y, 6)
    assert np.diff(printed).max() > 0.1
    assert printed[-1] > 1.0  # worse than no ranking at all
    model, *_ = fit(min_samples_leaf=5)
    assert np.all(np.diff(model.criterion_) < 0)
    assert model.criterion_[-1] < min(printed)


# The scores


@fewer(2)
@given(case=cases(weights=("none", "whole", "quarters")))
@example(case=ONE_POSITIVE)
@example(case=NOTHING)
def test_pairs_are_the_mean_over_the_training_negatives_of_the_sign_of_the_vote(case):
    model = clone(SMALL).set_params(output="pairs").fit(case.pandas(), case.y, case.weight)
    places = places_of(model, case.pandas())
    weight = np.ones(len(case)) if case.weight is None else case.weight
    negative = (case.y == 0) & (weight > 0)
    rule = np.sign(np.sign(places[negative] - places[:, None]) @ model.weights_)
    score = model.decision_function(case.pandas())
    assert score == pytest.approx(rule @ weight[negative] / weight[negative].sum(), abs=1e-15)
    assert (score * weight)[negative].sum() == pytest.approx(0.0, abs=1e-12)  # what one wins the other loses


def test_a_rule_of_one_tree_is_the_tree():
    model, X, y = fit(n_estimators=1, min_samples_leaf=10)
    place = places_of(model, X)[:, 0]
    assert model.decision_function(X) == pytest.approx(values_of_places(model.trees_[0])[place])
    assert 1 - model.errors_[0] == pytest.approx(roc_auc(y, model.decision_function(X)))


@pytest.mark.parametrize("output", ["pairs", "additive"])
def test_stages_are_models_of_fewer_rounds(output, tmp_path):
    model, X, _ = fit(output=output, n_jobs=2)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == 6
    for n, stage in enumerate(stages, 1):
        fewer_rounds, *_ = fit(output=output, n_estimators=n)
        assert fewer_rounds.trees_ == model.trees_[:n]
        assert np.array_equal(fewer_rounds.decision_function(X), stage)
    model.save(tmp_path / "m")
    assert np.array_equal(list(load(tmp_path / "m").staged_decision_function(X)), stages)


def test_auto_compares_pairs_where_that_is_cheap(monkeypatch):
    model, X, _ = fit(output="auto")
    assert model.output_ == "pairs"
    size = model._rule.places.size
    assert len(model._rule.count) < 242
    monkeypatch.setattr(treerank_boost, "PAIR_LIMIT", size - 1)
    additive, *_ = fit(output="auto")
    assert additive.output_ == "additive"
    forced, *_ = fit(output="pairs")
    assert np.array_equal(forced.decision_function(X), model.decision_function(X))
    assert "score: additive" in additive.summary()
    assert additive._figures()["output"] == "additive"


@pytest.mark.parametrize("output", ["pairs", "additive"])
def test_blocks_of_rows_change_nothing(output, monkeypatch):
    model, X, _ = fit(output=output)
    whole = model.decision_function(X)
    monkeypatch.setattr(treerank_boost, "BLOCK_ROWS", 64)
    assert np.array_equal(model.decision_function(X), whole)


# Ends


def test_boosting_ends_where_all_pairs_are_in_order():
    model = clone(SMALL).fit(SEPARATED.pandas(), SEPARATED.y)
    assert len(model.trees_) < 6
    assert (model.errors_[0], model.strict_errors_[0]) == (0.0, 0.0)
    assert roc_auc(SEPARATED.y, model.decision_function(SEPARATED.pandas())) == 1.0


def test_where_there_is_nothing_to_find_all_cases_tie():
    model = clone(SMALL).fit(NOTHING.pandas(), NOTHING.y, NOTHING.weight)
    assert (len(model.trees_), model.weights_.tolist(), model.criterion_.tolist()) == (1, [0.0], [1.0])
    assert model.decision_function(NOTHING.pandas()).tolist() == [0.0, 0.0, 0.0]
    assert model.feature_importances_.tolist() == [0.0]
    assert model.summary().startswith("TreeRankBoost: 1 tree, 1 leaf in all")


def test_boosting_ranks_better_than_its_first_tree():
    """A slanting boundary, which one small tree cannot follow."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y = (X.sum(axis=1) + rng.normal(size=4000) > 2.5).astype(int)
    model = TreeRankBoost(n_estimators=20).fit(X[:2000], y[:2000])
    scores = list(model.staged_decision_function(X[2000:]))
    assert roc_auc(y[2000:], scores[-1]) > roc_auc(y[2000:], scores[0]) + 0.1


# Reading


def test_importances_are_weighted_by_the_steps():
    model, *_ = fit()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    model.weights_ = np.array([1.0, 0, 0, 0, 0, 0])
    assert model.feature_importances_ == pytest.approx(gain_importance(model.trees_[0]))


def test_progress_goes_to_standard_error(capsys):
    fit(verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "TreeRankBoost [" in shown.err


@pytest.mark.parametrize("name", ["weights", "errors", "strict_errors", "criterion", "pair_places", "pair_count"])
def test_damaged_arrays_are_refused(name):
    model, *_ = fit(50)
    arrays = model._to_arrays()
    model._from_arrays(dict(arrays))
    for damaged in (arrays[name][:-1], arrays[name].astype(np.float32)):
        with pytest.raises(ValueError, match=r"fit together|not those of pairs"):
            model._from_arrays(arrays | {name: damaged})
    with pytest.raises(ValueError, match="fit together"):
        model._from_arrays(arrays | {"weights": np.full(6, np.nan)})


def test_hit_rates_are_those_of_cases_that_were_not_seen():
    """The model puts its own cases in nearly perfect order, which says nothing about new ones."""
    train, test = make_audit(4000, random_state=0), make_audit(8000, random_state=5)
    model = TreeRankBoost().fit(train.X, train.y)
    own, new = model.top_k(train.X, 40, reasons=0), model.top_k(test.X, 80, reasons=0)
    assert train.y[own["row"]].mean() > 0.9
    assert new["hit_rate"].mean() == pytest.approx(test.y[new["row"]].mean(), abs=0.15)
