"""Laws that hold for every ranker on every table: the same row, the same score; the same rows, the same model."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone

from ranker_cases import (
    CLASSES,
    ENSEMBLES,
    EVERY,
    FORMS,
    RANKERS,
    TREES,
    UNDRAWN,
    Case,
    cases,
    fewer,
    make_cases,
    scores_of,
    variant,
)
from tables import check_same_tree
from toprank import MetaAP, MetaAPForest, RankingTree, load
from toprank.rankers.growth import PUBLISHED_CATEGORIES
from toprank.tree import bin_mapper

ONE_OF_EACH = Case(
    {"number0": [1.0, None, 2.0, 2.0, 5.0, 0.5], "text1": ["a", "b", None, "a", "c", "b"]},
    np.array([1, 0, 0, 1, 0, 0]),
    None,
)
UNUSED_CODE = Case(
    {"text0": list("acdb")}, np.array([1, 0, 0, 0]), np.array([3.0, 3.0, 1.0, 0.0])
)  # a category that only rows of weight 0 hold


def fit(kind, case, form="pandas", **parameters):
    return variant(kind, **parameters).fit(getattr(case, form)(), case.y, case.weight)


HUGE = Case({"number0": [-1.7e308] * 5 + [1.5e308]}, np.array([0, 0, 0, 0, 0, 1]), None)
# The distance of two numbers overflowed in reasons of weighted sums.
FAR_APART = Case(
    {"number0": [-1.0] * 4 + [0.0] + [None] * 9 + [-1.0, None], "number1": [-1.7e308] * 14 + [-1.6e308, 1.5e308]},
    np.array([1] + [0] * 15),
    None,
)
HUGE_CONSTANT = Case({"number0": [1.7e308, None, None]}, np.array([0, 1, 0]), np.array([3.0, 1.0, 1.0]))


# A score depends on the row and the model alone


@pytest.mark.filterwarnings("ignore:No tree found a split")
@pytest.mark.parametrize("kind", EVERY)
@fewer(10)
@given(case=cases(), data=st.data())
@example(case=ONE_OF_EACH, data=None)
@example(case=HUGE, data=None)
@example(case=HUGE_CONSTANT, data=None)
def test_a_row_scores_the_same_alone_in_a_batch_in_another_order_after_a_file_and_from_any_library(kind, case, data):
    trained_on = "pandas" if data is None else data.draw(st.sampled_from(FORMS))
    order = np.arange(len(case))[::-1] if data is None else np.array(data.draw(st.permutations(range(len(case)))))
    model = fit(kind, case, trained_on)
    frame = case.pandas()
    score = scores_of(model, frame)
    assert np.isfinite(score).all()
    assert np.array_equal(scores_of(model, frame.iloc[order]), score[order])
    for i in order[:4]:
        assert scores_of(model, case.take(np.array([i])).polars())[0] == score[i]
    for form in FORMS:
        assert np.array_equal(scores_of(model, getattr(case, form)()), score), form
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.toprank")
        assert np.array_equal(scores_of(load(Path(folder) / "model.toprank"), frame), score)


@pytest.mark.parametrize("kind", ["rate", "additive", "forest"])  # a table is read before a model grows
@fewer(8)
@given(case=cases())
def test_every_library_trains_the_same_model(kind, case):
    first, *others = (fit(kind, case, form).to_plain() for form in FORMS)
    for other in others:
        assert tree_parts(other) == tree_parts(first)


def tree_parts(model):
    return model.get("tree", model.get("trees"))


def test_float32_scores_like_the_same_numbers_in_float64():
    X, y = make_cases(300)
    narrow = X[["size", "age"]].to_numpy(np.float32)
    for kind in CLASSES:
        model = clone(RANKERS[kind]).fit(narrow, y)
        assert np.array_equal(model.decision_function(narrow), model.decision_function(narrow.astype(np.float64)))
        assert np.array_equal(model.decision_function(narrow), model.decision_function(np.asfortranarray(narrow)))


# The model depends on what the rows are, not on how they are given


@pytest.mark.parametrize("kind", UNDRAWN)
@fewer(6)
@given(case=cases(), data=st.data())
def test_the_order_of_training_rows_changes_nothing(kind, case, data):
    order = np.array(data.draw(st.permutations(range(len(case)))))
    one, other = fit(kind, case), fit(kind, case.take(order))
    check_same_tree(one.tree_, other.tree_)
    assert one.columns_ == other.columns_
    assert (one.n_cases_, one.n_positives_) == (other.n_cases_, other.n_positives_)


@pytest.mark.parametrize("kind", UNDRAWN)
@fewer(6)
@given(case=cases(weights=("whole",)))
@example(case=UNUSED_CODE)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(kind, case):
    repeated = case.take(np.repeat(np.arange(len(case)), case.weight.astype(int)))
    one = fit(kind, case)
    other = fit(kind, Case(repeated.columns, repeated.y, None))
    frame = repeated.pandas()
    assert np.array_equal(one.decision_function(frame), other.decision_function(frame))
    assert np.array_equal(one.predict_proba(frame), other.predict_proba(frame))
    assert one.cutoff_ == other.cutoff_
    assert one.n_leaves_ == other.n_leaves_


@pytest.mark.parametrize("kind", ["rate", "geometric", "confusion", "paper"])  # the others shrink by a number of cases
@fewer(6)
@given(case=cases(weights=("none",)), weight=st.sampled_from([1.0, 2.0, 32.0]))
def test_a_common_weight_changes_nothing_where_nothing_counts_cases(kind, case, weight):
    uncounted = PUBLISHED_CATEGORIES | {"smoothing": None}
    plain = fit(kind, case, **uncounted)
    weighted = fit(kind, Case(case.columns, case.y, np.full(len(case), weight)), **uncounted)
    assert np.array_equal(plain.decision_function(case.pandas()), weighted.decision_function(case.pandas()))
    assert np.array_equal(plain.tree_.rate, weighted.tree_.rate, equal_nan=True)  # `rates_` count cases
    assert weighted.n_cases_ == weight * len(case)


@pytest.mark.parametrize("kind", EVERY)
def test_one_thread_is_two_threads(kind, monkeypatch):
    monkeypatch.setattr(bin_mapper, "BLOCK_CELLS", 200)  # so that few rows make several pieces of work
    X, y = make_cases(400)
    weight = np.random.default_rng(0).random(400)
    one, two = (variant(kind, n_jobs=n, min_samples_leaf=5).fit(X, y, weight) for n in (1, 2))
    assert one.to_plain() == two.to_plain()
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    assert one.cutoff_ == two.cutoff_


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind in UNDRAWN])  # names are codes before a model grows
@fewer(8)
@given(case=cases())
def test_new_names_in_the_same_order_change_nothing(kind, case):
    renamed = {
        name: [None if v is None else f"z {v} z" for v in values] if case.is_text(name) else values
        for name, values in case.columns.items()
    }
    other = Case(renamed, case.y, case.weight)
    assert np.array_equal(
        fit(kind, case).decision_function(case.pandas()), fit(kind, other).decision_function(other.pandas())
    )


@pytest.mark.parametrize("kind", [k for k in UNDRAWN if k not in ("linear", "additive")])
def test_new_names_in_another_order_change_nothing(kind):
    """Only where two categories tie in rate could their order matter; here none do."""
    X, y = make_cases(600)
    turned = X.assign(place=X["place"].map({"centre": "e", "east": "d", "north": "c", "south": "b", "west": "a"}))
    one = variant(kind, min_samples_leaf=20).fit(X, y)
    other = variant(kind, min_samples_leaf=20).fit(turned, y)
    assert np.array_equal(one.decision_function(X), other.decision_function(turned))
    assert one.feature_importances_[2] > 0


# Leaves, rates and alerts


@pytest.mark.parametrize("kind", ["rate", "constant", "margin", "linear", "pruned", "paper"])
@fewer(4)
@given(case=cases())
def test_the_place_inside_a_leaf_never_crosses_leaves(kind, case):
    model = fit(kind, case)
    frame = case.pandas()
    position, score = model.tree_.leaf[model.apply(frame)], model.decision_function(frame)
    for better in np.unique(position)[:-1]:
        assert score[position == better].min() > score[position > better].max()
    assert np.all((score > 0) & (score <= 1))


@pytest.mark.filterwarnings("ignore:No tree found a split")
@pytest.mark.parametrize("kind", EVERY)
@fewer(5)
@given(case=cases(), data=st.data())
@example(case=HUGE, data=None)
@example(case=FAR_APART, data=None)
def test_alerts_rates_importances_and_rules_agree_with_the_scores(kind, case, data):
    model = fit(kind, case)
    check_rates_fall_along_the_ranking(model, case)
    check_k_alerts_are_k_alerts(model, case, len(case) if data is None else data.draw(st.integers(1, len(case))))
    if kind in CLASSES:
        check_importances_are_shares(model, case, model.trees_ if kind in ENSEMBLES else [model.tree_])
    if kind in TREES and (case.weight is None or not np.any(4 * case.weight % 1)):  # others are rounded
        check_rules_account_for_every_training_case(model, case)


def check_rates_fall_along_the_ranking(model, case):
    frame = case.pandas()
    rate = model.predict_proba(frame)
    assert np.all((rate >= 0) & (rate <= 1))
    assert np.array_equal(rate.sum(axis=1), np.ones(len(case)))
    score = model.decision_function(frame)
    assert np.all(np.diff(rate[np.argsort(-score, kind="stable"), 1]) <= 0)


def check_k_alerts_are_k_alerts(model, case, k):
    alerts = model.top_k(case.pandas(), k, reasons=2)
    score = model.decision_function(case.pandas())
    assert len(alerts) == k
    assert alerts["rank"].tolist() == list(range(1, k + 1))
    assert len(set(alerts["row"])) == k
    assert np.array_equal(alerts["score"], score[alerts["row"]])
    assert np.array_equal(np.sort(score)[::-1][:k], alerts["score"])
    rate = "hit_rate" if model.rates_.is_for_new_cases else "training_rate"
    assert np.array_equal(alerts[rate], model.predict_proba(case.pandas())[alerts["row"], 1])
    for score_, rows in alerts.groupby("score", sort=False)["row"]:
        assert rows.is_monotonic_increasing, score_


def check_importances_are_shares(model, case, trees):
    shares = model.feature_importances_
    assert shares.shape == (len(case.columns),)
    assert np.all(shares >= 0)
    if any((tree.gain > 0).any() for tree in trees):
        assert shares.sum() == pytest.approx(1.0)
    else:
        assert not shares.any()


def check_rules_account_for_every_training_case(model, case):
    rules = model.rules()
    assert rules["leaf"].tolist() == list(range(1, model.tree_.n_leaves + 1))
    assert rules["n"].sum() == pytest.approx(model.n_cases_)
    assert rules["positives"].sum() == pytest.approx(model.n_positives_)
    assert rules["rule"].str.len().min() > 0
    weight = np.ones(len(case)) if case.weight is None else case.weight
    position = model.tree_.leaf[model.apply(case.pandas())]
    for leaf, n in zip(rules["leaf"], rules["n"], strict=True):
        assert weight[position == leaf - 1].sum() == pytest.approx(n)


# Categories


@pytest.mark.filterwarnings("ignore:Column.* empty in all")
@pytest.mark.parametrize("kind", EVERY)
def test_an_unseen_category_is_scored_like_a_missing_value_with_a_warning(kind):
    X, y = make_cases(600)
    X.loc[::7, "place"] = None
    model = variant(kind, min_samples_leaf=3).fit(X, y)
    new, missing = X.copy(), X.copy()
    rows = X.index[X["place"].notna()]
    new.loc[rows, "place"], missing.loc[rows, "place"] = ["atlantis", *["moon"] * (len(rows) - 1)], None
    sentence = rf"Column 'place' holds 2 categories in {len(rows)} rows that training never saw, such as 'atlantis'"
    with pytest.warns(UserWarning, match=sentence) as caught:
        score = model.decision_function(new)
    assert len(caught) == 1
    assert np.array_equal(score, model.decision_function(missing))
    assert not np.array_equal(score, model.decision_function(X))


@pytest.mark.parametrize(
    "ranker", [RankingTree(cv=0), MetaAP(leaf_score="linear", cv=0), MetaAPForest(n_estimators=3)], ids=str
)
def test_many_categories_share_a_bin_with_a_warning(ranker, tmp_path):
    rng = np.random.default_rng(0)
    shop = np.append(rng.integers(0, 50, 1500), np.arange(400))
    y = (rng.random(1900) < np.where(shop < 10, 0.5, 0.05)).astype(int)
    X = pd.DataFrame({"shop": [f"shop {s:03d}" for s in shop]})
    sentence = r"Column 'shop' has 400 categories; the 147 rarest share one bin\. Hint:"
    with pytest.warns(UserWarning, match=sentence):
        model = clone(ranker).fit(X, y)
    (column,) = model.columns_
    assert (len(column.categories), len(column.shared)) == (254, 146)
    assert {*column.categories, *column.shared} == {*X["shop"]}
    assert model.score(X, y) > 0.3
    rare = pd.DataFrame({"shop": [column.categories[-1], *column.shared]})
    assert len(np.unique(model.decision_function(rare))) == 1
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").decision_function(X), model.decision_function(X))


def test_numbers_declared_as_categories_split_as_subsets():
    code = np.tile(np.arange(6.0), 50)
    y = np.isin(code, [0, 3, 5]).astype(int)
    frame = pd.DataFrame({"code": code})
    for declared in (["code"], [0], [True]):
        tree = RankingTree(max_depth=1, categorical_features=declared).fit(frame, y)
        assert tree.score(frame, y) == 1.0
        assert tree.columns_[0].categories == tuple(range(6))
    assert RankingTree(max_depth=1).fit(frame, y).score(frame, y) < 1.0


def test_booleans_are_categories():
    flag = np.arange(200) % 2 == 0
    y = (np.random.default_rng(0).random(200) < np.where(flag, 0.4, 0.05)).astype(int)
    models = [clone(RANKERS["constant"]).fit(X, y) for X in (pd.DataFrame({"x0": flag}), flag.reshape(-1, 1))]
    assert models[0].columns_[0].categories == models[1].columns_[0].categories == (False, True)
    assert models[0].tree_ == models[1].tree_
