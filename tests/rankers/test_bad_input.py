"""Each kind of bad input gets its sentence: what is wrong, with what, what was expected, and a hint."""

import datetime as dt
import re
from contextlib import nullcontext
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from ranker_cases import CLASSES, RANKERS, TREES, make_cases, variant
from toprank import MetaAP, MetaAPForest, RankingTree, TAOTree, TreeRankForest

FAST = MetaAP(max_depth=2, leaf_depth=2, min_samples_leaf=5, cv=0)


def numbers(n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), (np.arange(n) % 4 == 0).astype(int)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_cases(200)
    return clone(FAST).fit(X, y)


@pytest.fixture
def rows():
    return make_cases(200)[0].copy()


# Labels


@pytest.mark.parametrize("kind", ["rate", "margin", "forest"])
@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (
            np.zeros(40, int),
            r"fit needs both classes in y, but all 40 labels equal 0: only one class\. Hint: check that y",
        ),
        (np.arange(40) % 3, r"Only binary classification.*fit found 3 label values in y, expected 2\. Hint:"),
        (
            np.where(np.arange(40) < 3, np.nan, np.arange(40) % 2),
            r"but 3 of 40 labels are missing \(NaN\)\. Hint: drop",
        ),
        (np.array([None, *["a", "b"] * 19, "a"], object), r"but 1 of 40 labels are missing \(NaN\)\. Hint:"),
        (
            np.where(np.arange(40) < 3, np.inf, np.arange(40) % 2),
            r"y contains infinity.*labels with two values.*Hint: drop",
        ),
        (np.linspace(0, 1, 40), r"two values, but y holds numbers with fractions\. Hint: .*y > 0"),
        (np.repeat([0.5, 1.5], 20).astype(object), "two values, but y holds numbers with fractions"),
        (np.arange(30) % 2, r"one label per row.*\[40, 30\]\. Hint: were rows dropped"),
        (None, r"requires y to be passed.*Hint: fit\(X, y\)"),
    ],
    ids=["one class", "three values", "NaN", "None", "infinite", "fractions", "objects", "length", "none at all"],
)
def test_labels(kind, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        clone(RANKERS[kind]).fit(numbers()[0], y)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, list], ids=["pandas", "polars", "pyarrow", "list"])
def test_labels_of_any_library(make):
    X, y = numbers()
    expected = clone(FAST).fit(X, y)
    assert clone(FAST).fit(X, make(y.tolist())).tree_ == expected.tree_
    with pytest.raises(ValueError, match=r"1 of 40 labels are missing"):
        clone(FAST).fit(X, make([None, *y.tolist()[1:]]))


def test_labels_of_mixed_types():
    X, y = numbers()
    with pytest.raises(TypeError, match=r"MetaAP\.fit needs labels of one kind, but y mixes int and str\. Hint:"):
        clone(FAST).fit(X, np.where(y, "yes", y.astype(object)))


def test_pos_label_that_is_not_there():
    X, y = numbers()
    with pytest.raises(ValueError, match=r"pos_label='yes' is not a label: y holds 0 and 1\. Hint:"):
        clone(FAST).set_params(pos_label="yes").fit(X, y)
    with pytest.raises(ValueError, match=r"pos_label=7 is not a label: y holds 'no' and 'yes'\. Hint:"):
        clone(FAST).set_params(pos_label=np.int64(7)).fit(X, np.where(y, "yes", "no"))


def test_labels_of_score():
    X, y = numbers()
    model = clone(FAST).fit(X, y)
    with pytest.raises(
        ValueError, match=r"MetaAP\.score found the label 2 in y, but the model was trained with 0 and 1\. Hint:"
    ):
        model.score(X, y * 2)
    with pytest.raises(ValueError, match=r"MetaAP\.score needs one label per row"):
        model.score(X, y[:-1])
    with pytest.raises(ValueError, match=r"MetaAP\.score .*missing \(NaN\)"):
        model.score(X, np.where(y, np.nan, 0.0))
    with pytest.raises(ValueError, match=r"MetaAP\.score needs both classes in y, but all 3 labels equal 0: .*Hint:"):
        model.score(X[:3], [0, 0, 0])
    assert model.score(X, y.astype(bool)) == model.score(X, y)


# Weights


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (np.where(np.arange(40) < 2, -1.0, 1.0), r"must not be negative, but 2 weights are\. Hint: use 0"),
        (np.zeros(40), r"MetaAP\.fit needs rows with a weight above zero, but all 40 weights are 0\. Hint:"),
        (np.arange(40) % 4 != 0, r"every positive row is zero: only one class is left\. Hint:"),
        (np.arange(40) % 4 == 0, r"every negative row is zero"),
        (np.where(np.arange(40) % 4 == 0, 1e-30, 1.0), r"every positive row is zero"),
        (np.full(40, np.nan), r"sample_weight holds NaN or infinite values, expected finite numbers\. Hint:"),
        (np.full(40, np.inf), r"sample_weight holds NaN or infinite values"),
        (np.full(40, 1e308), r"sample_weight adds up to inf, which is too much, .* Hint:"),
        (np.full(40, 1e200), r"sample_weight adds up to 4e\+201, which is too much, .* Hint:"),
        (np.full(40, 1e-310), r"sample_weight adds up to 4e-309, which is too little, .* Hint:"),
        (np.full(40, 5e-324), r"sample_weight adds up to 1\.976e-322, which is too little, .* Hint:"),
        (np.ones(39), r"MetaAP\.fit needs one weight per row, but sample_weight has 39 for 40 rows\. Hint: were rows"),
        (np.ones((40, 2)), r"Sample weights must be 1D array or scalar, one weight per row"),
        (["a"] * 40, r"MetaAP\.fit needs weights that are numbers, but sample_weight holds something else\. Hint:"),
    ],
    ids=[
        "negative",
        "all zero",
        "no positive",
        "no negative",
        "tiny",
        "NaN",
        "infinite",
        "endless sum",
        "huge",
        "denormal",
        "smallest",
        "length",
        "2-D",
        "text",
    ],
)
def test_weights(weight, sentence):
    with pytest.raises(ValueError, match=sentence):
        clone(FAST).fit(*numbers(), weight)


@pytest.mark.parametrize("scale", [1e-140, 1e-10, 1e140])
def test_weights_of_any_scale_work(scale):
    X, y = numbers()
    model = clone(FAST).set_params(leaf_score="linear")
    light = (
        pytest.warns(UserWarning, match=r"weights add up to .* Hint: weights are copies")
        if scale < 1
        else nullcontext()
    )
    with light:
        model.fit(X, y, np.full(40, scale))
    assert np.isfinite(model.decision_function(X)).all()
    assert model.n_cases_ == pytest.approx(40 * scale)


# Values


@pytest.mark.parametrize("splitter", ["hist", "exact"])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values(splitter, value, rows):
    sentence = r"Column 'size' of X holds infinite values.*, expected finite numbers or NaN.*Hint:"
    y = make_cases(200)[1]
    model = clone(FAST).set_params(splitter=splitter).fit(rows, y)
    rows.loc[3, "size"] = value
    for call in (
        lambda: clone(model).fit(rows, y),
        lambda: model.decision_function(rows),
        lambda: model.top_k(rows, 3),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    X = numbers()[0]
    X[0, 1] = value
    with pytest.raises(ValueError, match="Column 'x1' of X holds infinite values"):
        clone(model).fit(X, numbers()[1])


def test_infinite_category():
    X, y = numbers()
    X[0, 0] = np.inf
    with pytest.raises(
        ValueError, match=r"Column 'x0' holds infinite values, expected finite numbers or categories.*Hint:"
    ):
        clone(FAST).set_params(categorical_features=[0]).fit(X, y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda c: np.column_stack(list(c.values()))])
def test_no_rows_and_no_columns(make):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1 is required"):
        clone(FAST).fit(make({"a": np.zeros(0), "b": np.zeros(0)}), [])
    sentence = r"X has 0 feature\(s\).*minimum of 1 is required: MetaAP needs columns\. Hint: did a selection"
    with pytest.raises(ValueError, match=sentence):
        clone(FAST).fit(np.zeros((5, 0)) if isinstance(make({"a": np.zeros(2)}), np.ndarray) else make({}), [0, 1])
    model = clone(FAST).fit(make({"a": numbers()[0][:, 0], "b": numbers()[0][:, 1]}), numbers()[1])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.decision_function(make({"a": np.zeros(0), "b": np.zeros(0)}))


SILENT: dict[str, Any] = {
    "constant": np.full(40, 3.0),
    "missing": np.full(40, np.nan),
    "text": ["same"] * 40,
    "all text missing": pd.Series([None] * 40, dtype="string"),
}


@pytest.mark.parametrize("kind", RANKERS)
def test_columns_that_say_nothing_do_no_harm(kind):
    X, y = numbers()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]} | SILENT)
    model = clone(RANKERS[kind]).fit(frame, y)
    plain = clone(RANKERS[kind]).fit(frame[["a", "b"]], y)
    assert not model.feature_importances_[2:].any()
    score, expected = model.decision_function(frame), plain.decision_function(frame[["a", "b"]])
    np.testing.assert_allclose(score, expected, rtol=1e-12)  # sums of more columns are rounded in another order


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("column", SILENT)
def test_a_column_that_says_nothing_is_ranked_by_one_leaf(kind, column):
    frame, y = pd.DataFrame({"silent": SILENT[column]}), numbers()[1]
    only = clone(RANKERS[kind]).fit(frame, y)
    trees = [only.tree_] if kind in TREES else only.trees_
    assert all(len(tree) == 1 for tree in trees)  # a leaf each
    assert len(np.unique(only.decision_function(frame[["silent"]]))) == 1
    assert len(only.top_k(frame[["silent"]], 5)) == 5


def test_duplicate_names():
    X, y = numbers()
    for frame in (pd.DataFrame(X, columns=["a", "a"]), pa.table([X[:, 0], X[:, 1]], names=["a", "a"])):
        with pytest.raises(ValueError, match=r"Column 'a' appears twice in X\. Hint: rename or drop"):
            clone(FAST).fit(frame, y)


@pytest.mark.parametrize("as_frame", [True, False])
def test_mixed_values(as_frame):
    X, y = numbers()
    mixed = X.astype(object)
    mixed[4, 1] = "n/a"
    name = "b" if as_frame else "x1"
    data = pd.DataFrame(mixed, columns=["a", "b"]) if as_frame else mixed
    with pytest.raises(
        TypeError, match=rf"Column '{name}' mixes numbers and strings, expected one kind of value\. Hint:"
    ):
        clone(FAST).fit(data, y)
    mixed[4, 1] = True
    with pytest.raises(TypeError, match=rf"Column '{name}' mixes booleans and numbers"):
        clone(FAST).fit(pd.DataFrame(mixed, columns=["a", "b"]) if as_frame else mixed, y)


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], np.ones(2), 1j, b"x", dt.time(12)], ids=repr)
def test_values_of_other_types(value):
    y = numbers()[1]
    frame = pd.DataFrame({"a": pd.Series([value] * 40, dtype=object)})
    with pytest.raises(TypeError, match=rf"Column 'a' holds values of type {type(value).__name__}; .*Hint:"):
        clone(FAST).fit(frame, y)


def test_dates():
    X, y = numbers()
    days = [dt.datetime(2024, 1, 1) + dt.timedelta(days=i) for i in range(40)]
    for frame in (pd.DataFrame({"day": days}), pl.DataFrame({"day": days}), pa.table({"day": days})):
        with pytest.raises(TypeError, match=r"Column 'day' holds values of type Datetime.*Hint:"):
            clone(FAST).set_params(categorical_features=["day"]).fit(frame, y)
    lengths = pd.DataFrame({"a": X[:, 0], "wait": pd.to_timedelta(np.arange(40), unit="D")})
    with pytest.raises(TypeError, match="Column 'wait' holds values of type Duration"):
        clone(FAST).fit(lengths, y)
    with pytest.raises(TypeError, match=r"X holds dates \(datetime64.*Hint: pass them in a data frame"):
        clone(FAST).fit(np.array(days, "datetime64[s]").reshape(-1, 1), y)


def test_categorical_features_that_are_not_there():
    X, y = numbers()
    for wrong in (["b"], [2], [-1], [None]):
        with pytest.raises(
            ValueError, match=r"categorical_features names .*but X has no such column .*'x0', 'x1'.*Hint:"
        ):
            clone(FAST).set_params(categorical_features=wrong).fit(X, y)


# Columns when scoring


SCORING = ["decision_function", "predict", "predict_proba", "apply", "decision_path", "explain"]


@pytest.mark.parametrize("method", SCORING)
def test_a_missing_column_is_named_with_the_nearest_match(fitted, rows, method):
    sentence = (
        r"Column 'place' was used to train .* is missing from X \(3 columns read\)\. Hint: did you mean 'Place'\?"
    )
    with pytest.raises(ValueError, match=sentence):
        getattr(fitted, method)(rows.rename(columns={"place": "Place"}))
    with pytest.raises(
        ValueError, match=r"Column 'age' was used to train this model but is missing from X \(2 columns read\)"
    ):
        getattr(fitted, method)(rows.drop(columns="age"))


@pytest.mark.parametrize("name", ["PLACE", "pLaCe", "PLACES"])
def test_the_nearest_match_is_blind_to_case(fitted, rows, name):
    with pytest.raises(ValueError, match=rf"'place' was used .* Hint: did you mean '{name}'\?"):
        fitted.decision_function(rows.rename(columns={"place": name}))


def test_a_frame_that_has_not_been_read(fitted, rows):
    lazy = pl.LazyFrame(rows.to_dict("list"))
    sentence = r"^X is a LazyFrame, expected a table in memory\. Hint: pass X\.collect\(\)\.$"
    for call in (
        lambda: clone(FAST).fit(lazy, make_cases(200)[1]),
        lambda: fitted.decision_function(lazy),
        lambda: fitted.top_k(lazy, 3),
    ):
        with pytest.raises(TypeError, match=sentence):
            call()
    assert np.array_equal(fitted.decision_function(lazy.collect()), fitted.decision_function(rows))


@pytest.mark.parametrize("form", [pd.DataFrame, lambda f: pl.DataFrame(f.to_dict("list")), pa.Table.from_pandas])
def test_columns_are_matched_by_name(fitted, rows, form):
    expected = fitted.decision_function(rows)
    more = form(rows.assign(extra="unknown to the model")[["place", "extra", "size", "age"]])
    assert np.array_equal(fitted.decision_function(more), expected)
    assert [str(each) for each in fitted.explain(more)] == [str(each) for each in fitted.explain(rows)]
    alerts, again = fitted.top_k(rows, 5), nw.from_native(fitted.top_k(more, 5), eager_only=True)
    assert alerts["reason_1"].tolist() == again["reason_1"].to_list()
    with pytest.raises(ValueError, match=r"2 columns .* missing from X .*'size', 'place'\. Hint: .*'SIZE' for 'size'"):
        fitted.decision_function(form(rows.rename(columns={"place": "town", "size": "SIZE"})))


def test_names_that_are_not_text_are_matched_too_and_models_of_arrays_go_by_position():
    X, y = numbers()
    frame = pd.DataFrame(X)
    named, plain = clone(FAST).fit(frame, y), clone(FAST).fit(X, y)
    assert np.array_equal(named.decision_function(frame[[1, 0]]), named.decision_function(frame))
    assert np.array_equal(named.decision_function(frame.assign(more=0.0)), named.decision_function(frame))
    assert np.array_equal(plain.decision_function(frame[[1, 0]]), plain.decision_function(X[:, ::-1]))
    with pytest.raises(ValueError, match="3 features"):
        plain.decision_function(pd.DataFrame(X[:, [0, 1, 1]]))


def test_an_array_of_another_width():
    X, y = numbers()
    model = clone(FAST).fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but MetaAP is expecting 2 features"):
        model.decision_function(X[:, :1])


def test_numbers_written_as_text_are_numbers(fitted, rows):
    written = rows.assign(size=rows["size"].map(repr))
    assert np.array_equal(fitted.decision_function(written), fitted.decision_function(rows))


def test_retyped_columns(fitted, rows):
    with pytest.raises(TypeError, match=r"Column 'size' was a number in training but holds categories now\. Hint:"):
        fitted.decision_function(rows.assign(size=rows["size"] > 1))
    with pytest.raises(
        TypeError, match=r"Column 'place' held categories that are strings in training, but holds numbers now\. Hint:"
    ):
        fitted.decision_function(rows.assign(place=np.arange(200)))
    with pytest.raises(TypeError, match="Column 'size' was a number in training but holds dates"):
        fitted.decision_function(rows.assign(size=pd.Timestamp("2024-01-01")))
    with pytest.raises(TypeError, match="Column 'size' mixes numbers and strings"):
        fitted.decision_function(rows.assign(size=pd.Series([1.0, "x"] * 100, dtype=object)))


@pytest.mark.parametrize(
    "retyped",
    [
        lambda f: f.assign(age=f["age"].astype(object)),
        lambda f: f.assign(age=f["age"].astype("Int64")),
        lambda f: f.assign(age=f["age"].astype("float32")),  # whole numbers: nothing is lost
        lambda f: f.assign(place=f["place"].astype("category")),
        lambda f: f.assign(place=f["place"].astype(object)),
    ],
    ids=["object", "Int64", "float32", "category", "object text"],
)
def test_the_same_values_in_another_type_score_the_same(fitted, rows, retyped):
    assert np.array_equal(fitted.decision_function(retyped(rows)), fitted.decision_function(rows))


def test_a_column_that_lost_all_its_values_is_missing(fitted, rows):
    for name in rows.columns:
        typed = rows.assign(**{name: rows[name].where(np.zeros(200, bool))})
        untyped = rows.assign(**{name: pd.Series([None] * 200, dtype=object)})
        with pytest.warns(UserWarning, match=f"Column '{name}' is empty in all 200 rows") as caught:
            scores = [fitted.decision_function(each) for each in (typed, untyped)]
        assert len(caught) == 2
        assert np.array_equal(*scores)


# Numbers asked for


@pytest.mark.parametrize("kind", ["rate", "margin", "forest"])
@pytest.mark.parametrize("k", [0, -1, 41, 2.0, 1.0, 0.0, -0.1, "3", True, np.nan], ids=repr)
def test_k_out_of_range(kind, k):
    X, y = numbers()
    with pytest.raises(ValueError, match=rf"k must be .* \(40\) .*, got {re.escape(repr(k))}\. Hint:"):
        clone(RANKERS[kind]).fit(X, y).top_k(X, k)


@pytest.mark.parametrize("reasons", [-1, 1.5, "2", None, True], ids=repr)
def test_reasons_out_of_range(reasons):
    X, y = numbers()
    with pytest.raises(ValueError, match=r"reasons must be an int, 0 or more, got .*Hint:"):
        clone(FAST).fit(X, y).top_k(X, 3, reasons=reasons)


def test_more_reasons_than_a_table_may_have():
    X, y = numbers()
    with pytest.raises(ValueError, match=r"at most 100, got 3,000,000\. Hint:"):
        clone(FAST).fit(X, y).top_k(X, 3, reasons=3_000_000)


@pytest.mark.parametrize("budget", [0, -1, 1.5, 0.0, "many"], ids=repr)
@pytest.mark.parametrize("kind", ["rate", "margin", "forest"])
def test_budgets_out_of_range(kind, budget):
    with pytest.raises(ValueError, match=rf"The 'budget' parameter of \w+ must be .*Got {budget!r} instead"):
        variant(kind, budget=budget).fit(*numbers())


def test_a_budget_of_true_is_refused_before_anything_grows():
    model = MetaAPForest(n_estimators=2, budget=True)
    with pytest.raises(TypeError, match="The 'budget' parameter of MetaAPForest must be a number"):
        model.fit(*numbers())
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize(
    ("ranker", "name", "value"),
    [
        (MetaAP(), "max_depth", 0),
        (MetaAP(), "leaf_depth", -1),
        (MetaAP(), "leaf_score", "quadratic"),
        (MetaAP(), "leaf_order", "random"),
        (MetaAP(), "logistic_C", 0.0),
        (MetaAP(), "ccp_alpha", -0.1),
        (MetaAP(), "ccp_alpha", "auto"),
        (MetaAP(), "min_samples_leaf", 0),
        (MetaAP(), "min_samples_split", 1),
        (MetaAP(), "max_leaf_nodes", 1),
        (MetaAP(), "smoothing", "laplace"),
        (MetaAP(), "smoothing_strength", -1),
        (MetaAP(), "splitter", "best"),
        (MetaAP(), "max_bins", 256),
        (MetaAP(), "n_jobs", 1.5),
        (RankingTree(), "criterion", "f1"),
        (RankingTree(), "leaf_score", "linear"),
        (RankingTree(), "vote_decay", 1.1),
        (RankingTree(), "max_depth", 2.5),
        (MetaAPForest(), "n_estimators", 0),
        (MetaAPForest(), "leaf_score", "linear"),
        (MetaAPForest(), "max_features", 0),
        (MetaAPForest(), "max_features", 1.5),
        (MetaAPForest(), "max_samples", 0.0),
        (MetaAPForest(), "bootstrap", "no"),
        (MetaAP(), "stop_at_ap_loss", 1),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_parameters_out_of_range(ranker, name, value):
    sentence = rf"The '{name}' parameter of {type(ranker).__name__} must be .*Got {re.escape(repr(value))} instead"
    with pytest.raises(ValueError, match=sentence):
        clone(ranker).set_params(**{name: value}).fit(*numbers())


def test_no_threads_at_all():
    with pytest.raises(ValueError, match=r"n_jobs must not be 0\. Hint:"):
        clone(FAST).set_params(n_jobs=0).fit(*numbers())


def test_a_common_word_taken_as_the_label_to_look_for_is_pointed_out():
    X, y = numbers()
    words = np.where(np.arange(len(y)) < 5, "fraud", "legit")
    with pytest.warns(UserWarning, match=r"'legit' is taken as the positive label.* Hint: pass pos_label='fraud'"):
        clone(FAST).fit(X, words)
    assert clone(FAST).set_params(pos_label="fraud").fit(X, words).n_positives_ == 5


@pytest.mark.parametrize(
    "model",
    [TreeRankForest(n_estimators=True), MetaAP(max_depth=True), TAOTree(alpha=False)],
    ids=lambda model: type(model).__name__,
)
def test_a_truth_value_is_no_number(model):
    X, y = make_cases(40)
    with pytest.raises(ValueError, match=r"parameter of \w+ must be a number\. Got (True|False) instead\. Hint:"):
        model.fit(X, y)
