"""What holds for every ranker by neighbours on every table, and scikit-learn's own checks."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ranker_cases import FORMS, NEIGHBOURS, Case, cases, fewer, make_cases, scores_of
from sklearn_checks import OF_EVERY_CLASS, sklearn_checks
from toprank import KNN, MLFP, GammaKNN, LocalGammaKNN, load

HUGE = Case({"number0": [-1.7e308] * 5 + [1.5e308]}, np.array([0, 0, 0, 0, 0, 1]), None)
CONSTANT = Case({"number0": [3.0] * 4}, np.array([0, 1, 0, 0]), None)
MIXED = Case(
    {"number0": [1.0, None, 2.0, 2.0, 5.0, 0.5], "text1": ["a", "b", None, "a", "c", "b"]},
    np.array([1, 0, 0, 1, 0, 0]),
    None,
)

ANY_ORDER = "columns of a data frame are matched by name, in any order"
VOTE = "the score lives in [0, 1], and predict follows the vote at gamma; test_predict_follows_the_vote checks it"


ONE_OF_EACH_KIND = ["gamma-knn", "local-gamma-knn", "knn-weighted", "krnn", "mlfp", "mlfp-full"]
"""What generated tables are tried on; other rules share all their lines but a formula."""


def fit(kind, case, form="pandas"):
    return clone(NEIGHBOURS[kind]).fit(getattr(case, form)(), case.y, case.weight)


def expected_failures(estimator):
    """Checks that cannot hold, and why."""
    votes = ("check_classifiers_train", "check_classifiers_classes", "check_decision_proba_consistency")
    return {"check_dataframe_column_names_consistency": ANY_ORDER, **dict.fromkeys(votes, VOTE)}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *sklearn_checks([GammaKNN(), MLFP(cv=2)], expected_failures),
        *sklearn_checks([KNN(), LocalGammaKNN(n_clusters=2, version=1, cv=2)], expected_failures, only=OF_EVERY_CLASS),
    ],
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
@fewer(10)
@given(case=cases(), data=st.data())
@example(case=MIXED, data=None)
@example(case=HUGE, data=None)
@example(case=CONSTANT, data=None)
def test_a_row_scores_the_same_alone_in_a_batch_in_another_order_after_a_file_and_from_any_library(kind, case, data):
    order = np.arange(len(case))[::-1] if data is None else np.array(data.draw(st.permutations(range(len(case)))))
    model = fit(kind, case)
    frame = case.pandas()
    score = scores_of(model, frame)
    assert np.isfinite(score).all()
    assert np.all((score >= 0) & (score <= 1))
    assert np.array_equal(scores_of(model, frame.iloc[order]), score[order])
    for i in order[:4]:
        assert scores_of(model, case.take(np.array([i])).polars())[0] == score[i]
    for form in FORMS:
        assert np.array_equal(scores_of(model, getattr(case, form)()), score), form
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.toprank")
        loaded = load(Path(folder) / "model.toprank")
    assert np.array_equal(scores_of(loaded, frame), score)
    assert np.array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
@fewer(8)
@given(case=cases(), data=st.data())
def test_the_order_of_training_rows_changes_nothing(kind, case, data):
    order = np.array(data.draw(st.permutations(range(len(case)))))
    one, other = fit(kind, case), fit(kind, case.take(order))
    frame = case.pandas()
    # Weights are added up in the order of the rows, so sums differ in the last digits.
    np.testing.assert_allclose(one.decision_function(frame), other.decision_function(frame), rtol=1e-12)
    assert np.array_equal(one.predict(frame), other.predict(frame))


@pytest.mark.parametrize("kind", [kind for kind in ONE_OF_EACH_KIND if not kind.startswith("local")])
@fewer(8)
@given(case=cases(weights=("whole",)))
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(kind, case):
    repeated = case.take(np.repeat(np.arange(len(case)), case.weight.astype(int)))
    one = fit(kind, case)
    other = fit(kind, Case(repeated.columns, repeated.y, None))
    frame = repeated.pandas()
    assert np.array_equal(one.decision_function(frame), other.decision_function(frame))
    assert np.array_equal(one.predict(frame), other.predict(frame))
    assert np.allclose(one.predict_proba(frame), other.predict_proba(frame))
    assert one.cutoff_.threshold == other.cutoff_.threshold


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_one_thread_is_two_threads_and_float32_is_float64(kind):
    X, y = make_cases(700)
    one, two = (clone(NEIGHBOURS[kind]).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.to_plain() == two.to_plain()
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    assert one.cutoff_ == two.cutoff_
    narrow = np.nan_to_num(X[["size", "age"]].to_numpy(np.float32))
    model = clone(NEIGHBOURS[kind]).fit(narrow, y)
    assert np.array_equal(model.decision_function(narrow), model.decision_function(narrow.astype(float)))


@pytest.mark.parametrize("kind", ONE_OF_EACH_KIND)
@fewer(10)
@given(case=cases(), data=st.data())
def test_k_alerts_are_k_alerts_and_rates_fall_along_the_ranking(kind, case, data):
    k = data.draw(st.integers(1, len(case)))
    model, frame = fit(kind, case), case.pandas()
    alerts = model.top_k(frame, k, reasons=2)
    score = model.decision_function(frame)
    assert len(alerts) == k
    assert np.array_equal(np.sort(score)[::-1][:k], alerts["score"])
    rate = model.predict_proba(frame)[:, 1]
    assert np.all(np.diff(rate[np.argsort(-score, kind="stable")]) <= 0)


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_a_budget_draws_the_line_and_files_keep_everything(kind, tmp_path):
    X, y = make_cases(300)
    model = clone(NEIGHBOURS[kind]).set_params(budget=40).fit(X, np.where(y, "yes", "no"))
    score = model.decision_function(X)
    assert np.array_equal(model.predict(X) == "yes", score >= model.cutoff_.threshold)
    assert model.rates_.is_for_new_cases
    assert "budget 40 cases" in model.summary()
    model.save(tmp_path / "model.toprank")
    back = load(tmp_path / "model.toprank")
    assert back.to_plain() == model.to_plain()
    assert back.summary() == model.summary()
    assert back.top_k(X, 7).equals(model.top_k(X, 7))
    assert [str(e) for e in back.explain(X.head(3))] == [str(e) for e in model.explain(X.head(3))]
    assert {*vars(back)} - {"_left_out_score"} == {*vars(model)} - {"_left_out_score"}


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_nothing_works_before_fit(kind, tmp_path):
    X, _ = make_cases(50)
    model = clone(NEIGHBOURS[kind])
    for use in (
        model.decision_function,
        model.predict,
        model.predict_proba,
        model.explain,
        lambda x: model.top_k(x, 3),
    ):
        with pytest.raises(NotFittedError):
            use(X)
    with pytest.raises(NotFittedError):
        model.to_plain()
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.toprank")


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_labels_of_any_kind_come_back(kind):
    X, y = make_cases(200)
    plain = clone(NEIGHBOURS[kind]).fit(X, y)
    named = clone(NEIGHBOURS[kind]).set_params(pos_label="a").fit(X, np.where(y, "a", "b"))
    assert np.array_equal(named.decision_function(X), plain.decision_function(X))
    assert np.array_equal(named.predict(X) == "a", plain.predict(X) == 1)
    assert named.score(X, np.where(y, "a", "b")) == plain.score(X, y)


def test_unseen_categories_and_missing_values_are_scored():
    X, y = make_cases(200)
    new = pd.DataFrame({"size": [np.nan, 1.0], "age": [np.nan, np.nan], "place": ["nowhere", None]})
    with pytest.warns(UserWarning, match="place"):
        score = GammaKNN().fit(X, y).decision_function(new)
    assert np.all(np.isfinite(score))
