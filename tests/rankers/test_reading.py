"""What a person reads of a fitted model: alerts, rules, explanations, texts; in the caller's frame type."""

import json
import math
import sys
from itertools import pairwise

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from ranker_cases import ENSEMBLES, RANKERS, TREES, make_cases, variant
from toprank import MetaAP, RankingTree
from toprank.data import frames
from toprank.data.frames import backend_of, make_frame
from toprank.datasets import make_audit
from toprank.tree.structure import Tree
from toprank.words.numbers import percent_text
from toprank.words.wording import EXACT

LIBRARIES = {
    "pandas": (lambda f: f, pd.DataFrame),
    "polars": (lambda f: pl.DataFrame({name: f[name].tolist() for name in f}, nan_to_null=True), pl.DataFrame),
    "pyarrow": (lambda f: pa.table({name: f[name].tolist() for name in f}), pa.Table),
}


@pytest.fixture(scope="module", params=list(RANKERS))
def fitted(request):
    X, y = make_cases(400)
    model = variant(request.param, min_samples_leaf=10, budget=40).fit(X, y)
    model.kind = request.param
    return model


def rate_name(model):
    """The column of alerts that holds their rate."""
    return "hit_rate" if model.rates_.is_for_new_cases else "training_rate"


@pytest.fixture(scope="module")
def rows():
    return make_cases(60, seed=1)[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_alerts_come_in_the_frame_type_of_the_table(fitted, rows, library):
    convert, frame_type = LIBRARIES[library]
    alerts = fitted.top_k(convert(rows), 5, reasons=2)
    assert isinstance(alerts, frame_type)
    leaf = [] if fitted.kind in ENSEMBLES else ["leaf"]
    expected = [
        "rank",
        "row",
        "score",
        rate_name(fitted),
        "lift",
        *leaf,
        "reason_1",
        "strength_1",
        "reason_2",
        "strength_2",
    ]
    assert list(alerts.column_names if library == "pyarrow" else alerts.columns) == expected
    plain = fitted.top_k(rows, 5, reasons=2)
    for name in expected:
        column = alerts[name].to_pylist() if library == "pyarrow" else list(alerts[name])
        given = [None if value is None or value != value else value for value in column]
        assert given == [None if value != value else value for value in plain[name].tolist()]


def test_alerts_are_as_many_as_the_budget_or_a_share(rows):
    X, y = make_cases(400)

    def n_alerts(budget, *k):
        return len(variant("margin", budget=budget).fit(X, y).top_k(rows, *k, reasons=0))

    assert [n_alerts(7), n_alerts(10_000), n_alerts(0.1)] == [7, 60, 6]
    assert n_alerts(None) == math.ceil(60 * y.mean())
    assert [n_alerts(7, k) for k in (0.11, 0.001, np.float32(0.5), np.int64(3))] == [7, 1, 30, 3]


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_carried_as_they_are(library):
    X, y = make_cases(300)
    model = variant("margin").fit(X, y)
    cases = X.assign(case=[f"case {i}" for i in range(300)], day=pd.date_range("2024-01-01", periods=300), n=range(300))
    table = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[library](cases)
    alerts, frame = (nw.from_native(t, eager_only=True) for t in
                     (model.top_k(table, 9, reasons=1, id=["case"], keep=["day", "size", "case"]), table))  # fmt: skip
    plain = nw.from_native(model.top_k(table, 9, reasons=1), eager_only=True)
    assert alerts.columns == ["case", *plain.columns, "day", "size"]
    for name in ("case", "day", "size"):
        assert alerts[name].dtype == frame[name].dtype
        assert alerts[name].to_list() == frame[name][plain["row"].to_list()].to_list()
    assert alerts["score"].to_list() == plain["score"].to_list()
    single = nw.from_native(model.top_k(table, 2, reasons=0, id="n"), eager_only=True)
    assert single["n"].to_list() == single["row"].to_list()


def test_the_index_of_a_pandas_frame_is_kept():
    X, y = make_cases(100)
    model = variant("margin").fit(X, y)
    for index in (pd.Index([f"case {i // 2}" for i in range(100)], name="case"),
                  pd.MultiIndex.from_product([range(20), list("abcde")], names=["year", "case"])):  # fmt: skip
        frame = X.set_index(index)
        alerts = model.top_k(frame, 10, keep="size")
        assert alerts.index.equals(frame.index[alerts["row"]])
        assert alerts.index.names == index.names
        assert alerts["size"].equals(frame["size"].iloc[alerts["row"]])
    assert isinstance(model.rules().index, pd.RangeIndex)


def test_columns_that_cannot_be_carried():
    X, y = make_cases(100)
    model = variant("margin").fit(X, y)
    with pytest.raises(ValueError, match=r"id names the column 'Size', but X has no such column .*'size'"):
        model.top_k(X, 3, id="Size")
    with pytest.raises(ValueError, match="'rank' of X has the same name as a column of the alerts"):
        model.top_k(X.assign(rank=1), 3, keep=["rank"])
    numbers = X[["size", "age"]].to_numpy()
    with pytest.raises(ValueError, match="keep names columns of X, but X is an array"):
        variant("margin").fit(numbers, y).top_k(numbers, 3, keep="x0")


def test_alerts_say_how_much_and_why(fitted, rows):
    alerts = fitted.top_k(rows, 20, reasons=3)
    assert np.allclose(alerts["lift"], alerts[rate_name(fitted)] / fitted.base_rate_)
    assert alerts["lift"].iloc[0] > 1
    assert any(name in alerts["reason_1"].iloc[0] for name in rows.columns)
    assert list(fitted.top_k(rows, 3, reasons=0).columns)[-1] == ("lift" if fitted.kind in ENSEMBLES else "leaf")
    if fitted.kind not in ENSEMBLES:
        assert np.array_equal(alerts["leaf"], fitted.tree_.leaf[fitted.apply(rows)][alerts["row"]] + 1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rules_come_in_the_frame_type_of_the_training_table(library):
    convert, frame_type = LIBRARIES[library]
    X, y = make_cases(300)
    rules = variant("margin", cv=2).fit(convert(X), y).rules()
    assert isinstance(rules, frame_type)
    names = rules.column_names if library == "pyarrow" else list(rules.columns)
    rates = ["hit_rate", "hit_rate_low", "hit_rate_high"]
    figures = ["lift", "n", "positives", "training_rate", "score"]
    assert names == ["leaf", "rule", "coverage", "precision", *rates, *figures]


def test_arrays_give_the_first_library_installed_or_plain_columns(monkeypatch):
    X, y = make_cases(100)
    model = clone(RANKERS["margin"]).fit(X[["size", "age"]].to_numpy(), y)
    assert isinstance(model.rules(), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)  # an import of it fails
    assert isinstance(make_frame({"a": [1]}, None), pl.DataFrame)
    monkeypatch.setattr(frames, "BACKENDS", ("no_such_library",))
    assert make_frame({"a": [1]}, None) == {"a": [1]}


def test_backends_are_known_by_name():
    frame = pd.DataFrame({"a": [1]})
    assert [backend_of(convert(frame)) for convert, _ in LIBRARIES.values()] == list(LIBRARIES)
    assert [backend_of(X) for X in (np.zeros((2, 2)), [[1]], pd.Series([1]), pl.LazyFrame({"a": [1]}))] == [None] * 4


def test_the_training_rows_are_scored_once_for_the_cutoff_and_the_rates_of_leaves(monkeypatch):
    X, y = make_cases(300)
    sizes, score = [], Tree.scores_and_leaves
    monkeypatch.setattr(Tree, "scores_and_leaves", lambda self, X, *rest: sizes.append(len(X)) or score(self, X, *rest))
    model = RankingTree(max_depth=2, cv=2).fit(X, y)
    assert "hit_rate" in model.rules()
    assert sizes.count(300) == 1
    assert model._training_leaf is None  # a model keeps nothing of the training rows


def test_rules_as_data_are_those_of_the_table(fitted):
    table, rules = fitted.rules(), fitted.rule_list()
    assert [rule.text() for rule in rules] == table["rule"].tolist()
    for name in set(table.columns) - {"rule"}:
        assert [getattr(rule, name) for rule in rules] == pytest.approx(table[name].tolist(), rel=0, nan_ok=True)
    data = [rule.to_dict() for rule in rules]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    exact = fitted.rule_list(exact=True)
    assert [rule.text(EXACT) for rule in exact] == fitted.rules(exact=True)["rule"].tolist()


def test_rules_are_best_first_and_say_their_columns(fitted):
    rules = fitted.rules()
    assert len(rules) == (fitted.n_leaves_ if fitted.kind in ENSEMBLES else fitted.tree_.n_leaves)
    assert np.all(rules["training_rate"] == rules["positives"] / rules["n"])
    assert rules["rule"].str.contains("size|age|place|all cases|all other cases").all()
    if fitted.kind not in ENSEMBLES:
        if fitted.rates_.is_for_new_cases:
            assert rules["hit_rate"].is_monotonic_decreasing
            assert np.all(rules["hit_rate_low"] <= rules["hit_rate"])
            assert np.all(rules["hit_rate"] <= rules["hit_rate_high"])
        assert rules["score"].is_monotonic_decreasing
        assert rules["n"].sum() == 400
        assert np.allclose(
            rules["lift"], rules[rate_name(fitted)] / fitted.base_rate_
        )  # a forest's trees have bootstraps' rates


def test_explanations_agree_with_the_scores(fitted, rows):
    explanations = fitted.explain(rows)
    assert [e.score for e in explanations] == fitted.decision_function(rows).tolist()
    assert [e.rate for e in explanations] == fitted.predict_proba(rows)[:, 1].tolist()
    for i in (0, 1, 2):
        text = str(explanations[i])
        assert "log-odds" in text
        assert any(name in text for name in rows.columns)
        assert json.loads(json.dumps(explanations[i].to_dict()))["score"] == explanations[i].score
    known = {step.feature: step.value for step in explanations[0].steps}
    for name, value in known.items():
        if name not in rows:  # a weighted sum
            assert " x " in name
            continue
        expected = rows[name].iloc[0]
        assert value == (None if pd.isna(expected) else expected)


def test_the_text_shows_the_summary_and_the_conditions(fitted):
    text = fitted.to_text()
    assert text.startswith(fitted.summary().splitlines()[0])
    if fitted.kind == "cost-curve":
        tree = fitted.path_[fitted.base_point_].tree.tree_
    else:
        tree = fitted.trees_[0] if fitted.kind in ENSEMBLES else fitted.tree_
    if fitted.kind == "cost-forest":  # whose first tree, at one end of a path, may call all cases the same
        at = next(i for i, tree in enumerate(fitted.trees_) if tree.n_leaves > 1)
        text, tree = text + fitted.to_text(at + 1), fitted.trees_[at]
    used = {fitted.columns_[f].name for f in tree.feature[~tree.is_leaf]}
    assert used
    assert all(name in text for name in used)
    if fitted.kind in ENSEMBLES and fitted.kind != "cost-curve":  # which shows a tree by its point
        n_trees = len(fitted.trees_)
        assert f"tree 1 of {n_trees}" in text
        assert f"tree 3 of {n_trees}" in fitted.to_text(3)
        for wrong in (n_trees + 1, 0, True, "first"):
            message = rf"{type(fitted).__name__}.to_text needs the number of a tree, from 1 to {n_trees}, got .*Hint"
            with pytest.raises(ValueError, match=message):
                fitted.to_text(wrong)


def test_the_summary_names_size_training_figures_budget_and_columns(fitted):
    summary = fitted.summary()
    assert summary.startswith(f"{type(fitted).__name__}: ")
    assert f"{fitted.n_leaves_} leaves" in summary
    positives = int(fitted.n_positives_)
    assert (
        f"trained on 400 cases, {positives} positive ({percent_text(positives / 400)}), 3 columns (1 categorical)"
        in summary
    )
    assert "budget 40 cases: score >= " in summary
    best = fitted.columns_[int(np.argmax(fitted.feature_importances_))].name
    assert f"main columns: {best} " in summary


def test_the_summary_of_a_scorecard_alone_names_its_columns():
    data = make_audit(600, positive_rate=0.1, random_state=0)
    model = MetaAP(leaf_score="linear", min_samples_leaf=500).fit(data.X, data.y)
    assert model.n_leaves_ == 1
    first = model.scorecard()["column"][0]
    assert f"\nmain columns: of the scorecard, as there are no conditions: {first} " in model.summary()
    model.set_params(leaf_score="constant").fit(data.X, data.y)
    assert model.summary().endswith("\nmain columns: none")


def test_the_summary_and_the_text_round_the_same_share_alike():
    X, y = np.arange(4000.0).reshape(-1, 1), (np.arange(4000) < 87).astype(int)
    model = RankingTree(max_depth=1, cv=0).fit(X, y)
    assert "87 positive (2.18 %), 1 column" in model.summary()
    assert "87 positive (2.18 %);" in model.to_text(tree=True)


def test_the_dictionary_holds_the_model_in_plain_values(fitted):
    data = json.loads(json.dumps(fitted.to_plain(), allow_nan=False))
    assert data["class"] == type(fitted).__name__
    assert [column["name"] for column in data["columns"]] == ["size", "age", "place"]
    if fitted.kind in ENSEMBLES:
        assert [Tree.from_dict(tree) for tree in data["trees"]] == fitted.trees_
    else:
        assert Tree.from_dict(data["tree"]) == fitted.tree_


@pytest.mark.parametrize("kind", TREES)
def test_decision_paths_run_from_the_root_to_the_leaf(kind, rows):
    model = clone(RANKERS[kind]).fit(*make_cases(300))
    paths, leaf = model.decision_path(rows).toarray(), model.apply(rows)
    tree = model.tree_
    assert paths.shape == (60, len(tree))
    for indicator, end in zip(paths, leaf, strict=True):
        nodes = np.flatnonzero(indicator)
        assert (nodes[0], nodes[-1]) == (0, end)
        assert tree.is_leaf[nodes].tolist() == [False] * (len(nodes) - 1) + [True]
        for parent, child in pairwise(nodes):
            assert child in (tree.left[parent], tree.right[parent])
