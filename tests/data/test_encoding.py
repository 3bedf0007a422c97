import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import CostOptimalCurve, RankingTree, TAOTree
from toprank.data.column_roles import learn_columns
from toprank.data.encoding import ChangedColumnWarning, ManyCategoriesWarning, encode, original_values
from toprank.data.table import is_missing, read_table
from toprank.tree.columns import Column


def read(X, categorical_features=None, keep_columns=None):
    table = read_table(X)
    columns = learn_columns(table, categorical_features, keep_columns).columns
    return columns, encode(table, columns)


words = st.one_of(st.none(), st.sampled_from(["", "a", "b", "B", "ä", "nan", "None", "1"]))


@given(values=st.lists(words, min_size=1, max_size=12))
def test_categories_and_codes_give_the_values_back(values):
    known = sorted({v for v in values if v is not None})
    for frame in (
        pd.DataFrame({"c": pd.Series(values, dtype=object)}),
        pd.DataFrame({"c": pd.Series(values, dtype="category")}),
        pl.DataFrame({"c": values}, schema={"c": pl.String}),
        pl.DataFrame({"c": values}, schema={"c": pl.Categorical}),
        pa.table({"c": pa.array(values, pa.string())}),
        pa.table({"c": pa.array(values, pa.string()).dictionary_encode()}),
    ):
        (column,), matrix = read(frame)
        if known:
            assert column == Column("c", tuple(known))
        back = [None if np.isnan(code) else column.categories[int(code)] for code in matrix[:, 0]]
        assert back == values


@given(trained=st.lists(words, min_size=1, max_size=8), values=st.lists(words, min_size=1, max_size=12))
@pytest.mark.filterwarnings("ignore:Column 'c' holds:UserWarning")
def test_text_of_polars_gets_the_codes_of_other_frames(trained, values):
    columns, _ = read(pl.DataFrame({"c": trained}, schema={"c": pl.String}))
    frames = pl.DataFrame({"c": values}, schema={"c": pl.String}), pd.DataFrame({"c": pd.Series(values, dtype=object)})
    ours, theirs = (encode(read_table(frame), columns) for frame in frames)
    np.testing.assert_array_equal(ours, theirs)


def test_places_of_text_are_for_columns_whose_cells_are_all_known():
    frame = pl.DataFrame({"a": ["x", None, "y"], "b": ["y", "x", "y"], "new": ["x", "?", "y"], "n": [1, 2, 3]})
    found = read_table(frame).places_among({i: ["x", "y"] for i in range(4)})
    assert sorted(found) == [0, 1]
    np.testing.assert_array_equal(found[0], [0, np.nan, 1])
    assert found[1].tolist() == [1, 0, 1]


@given(values=st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=12))
def test_numbers_stay_what_they_are(values):
    expected = np.array([np.nan if v is None else v for v in values])
    for frame in (
        pd.DataFrame({"x": pd.Series(values, dtype="float64")}),
        pd.DataFrame({"x": pd.Series(values, dtype="Float64")}),
        pl.DataFrame({"x": values}, schema={"x": pl.Float64}),
        pa.table({"x": pa.array(values, pa.float64())}),
        expected.reshape(-1, 1),
    ):
        (column,), matrix = read(frame)
        assert not column.is_categorical
        assert matrix.dtype == np.float64
        assert np.array_equal(matrix[:, 0], expected, equal_nan=True)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Series([1, 2, None], dtype="Int64")}),
        pd.DataFrame({"x": pd.Series([1, 2, None], dtype=object)}),
        pd.DataFrame({"x": pd.Series([np.int64(1), np.float32(2), np.nan], dtype=object)}),
        pd.DataFrame({"x": pd.Series([1, 2, None], dtype="int64[pyarrow]")}),
        pl.DataFrame({"x": [1, 2, None]}, schema={"x": pl.UInt8}),
        pl.DataFrame({"x": [decimal.Decimal(1), decimal.Decimal(2), None]}),
        pa.table({"x": pa.array([1, 2, None], pa.int16())}),
        np.array([[1], [2], [None]], dtype=object),
    ],
    ids=["Int64", "object", "numpy scalars", "arrow in pandas", "polars", "decimal", "pyarrow", "numpy"],
)
def test_whole_numbers_with_gaps_are_numbers(frame):
    (column,), matrix = read(frame)
    assert not column.is_categorical
    assert np.array_equal(matrix[:, 0], [1.0, 2.0, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"f": [True, False, True]}),
        pd.DataFrame({"f": pd.Series([True, False, True], dtype="boolean")}),
        pl.DataFrame({"f": [True, False, True]}),
        pa.table({"f": [True, False, True]}),
        np.array([[True], [False], [True]], dtype=object),
    ],
    ids=["pandas", "boolean", "polars", "pyarrow", "numpy"],
)
def test_booleans_are_two_categories(frame):
    (column,), matrix = read(frame)
    assert column.categories == (False, True)
    assert matrix[:, 0].tolist() == [1.0, 0.0, 1.0]


def test_arrays_of_floats_are_not_copied():
    X = np.zeros((5, 2))
    assert read(X)[1] is X
    assert read(X.astype(np.float32))[1].dtype == np.float32


def test_frames_of_float32_stay_narrow_and_mixed_ones_widen():
    frame = pd.DataFrame({"a": np.zeros(3, np.float32), "b": np.zeros(3, np.float32)})
    assert read(frame)[1].dtype == np.float32
    assert read(frame.assign(c=[0.1, 0.2, 0.3]))[1].dtype == np.float64
    assert read(frame.assign(c=["x", "y", "x"]))[1].dtype == np.float64


@pytest.mark.parametrize("value", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT], ids=repr)
def test_missing_markers(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, 0.0, "", "nan", False, np.bool_(False), [], np.ones(2), np.inf], ids=repr)
def test_values_that_are_not_missing(value):
    assert not is_missing(value)


def test_columns_with_many_categories_keep_the_commonest():
    values = [f"{i:03d}" for i in range(300)] + [f"{i:03d}" for i in range(0, 300, 2)]
    with pytest.warns(ManyCategoriesWarning, match="Column 'c' has 300 categories; the 47 rarest share one bin"):
        (column,), matrix = read(pd.DataFrame({"c": values}))
    assert len(column.categories) == 254
    assert {*(f"{i:03d}" for i in range(0, 300, 2))} <= {*column.categories[:-1]}
    assert len({code for value, code in zip(values, matrix[:, 0], strict=True) if value in column.labels(253)}) == 1
    assert matrix[:, 0].max() == 253
    with pytest.warns(UserWarning, match="share one bin"):
        assert Column.from_dict(read(pd.DataFrame({"c": values[::-1]}))[0][0].to_dict()) == column


def test_254_categories_need_no_warning():
    (column,), matrix = read(pd.DataFrame({"c": [f"{i:03d}" for i in range(254)]}), keep_columns=["c"])
    assert len(column.categories) == 254
    assert column.shared == ()
    assert matrix[:, 0].tolist() == list(range(254))


def test_chosen_columns_by_name_position_or_mask():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [3.0, 1.0, None]})
    for chosen in (["b"], [1], [False, True], np.array([False, True]), (np.int64(1),)):
        (a, b), matrix = read(frame, chosen)
        assert a.categories is None
        assert b.categories == (1.0, 3.0)
        assert np.array_equal(matrix[:, 1], [1.0, 0.0, np.nan], equal_nan=True)


def test_unseen_categories_of_a_column_without_known_ones():
    (column,), _ = read(pl.DataFrame({"c": [None, None]}, schema={"c": pl.String}))
    assert column.categories == ()
    sentence = (
        "'c' holds 2 categories in 2 rows that training never saw, such as 'x'; they are scored like missing values"
    )
    with pytest.warns(UserWarning, match=sentence):
        matrix = encode(read_table(pl.DataFrame({"c": ["x", "y"]})), [column])
    assert np.isnan(matrix).all()


def test_a_category_in_another_spelling_is_named_beside_the_known_one():
    known = Column("c", ("Female", "Male"))
    sentence = "such as 'Female\u00a0' \\(it saw 'Female': check spaces and capitals\\); it is scored"
    with pytest.warns(UserWarning, match=sentence):
        encode(read_table(pl.DataFrame({"c": ["Female\u00a0", "Male"]})), [known])


@pytest.mark.parametrize("method", ["decision_function", "predict", "top_k", "explain"])
def test_warnings_of_unseen_categories_point_to_the_caller(method):
    X = pd.DataFrame({"c": ["a", "b"] * 20})
    model = RankingTree(max_depth=1, min_samples_leaf=1).fit(X, [0, 1] * 20)
    with pytest.warns(UserWarning, match="training never saw") as caught:
        getattr(model, method)(pd.DataFrame({"c": ["z"]}), *([1] if method == "top_k" else []))
    assert {warning.filename for warning in caught} == {__file__}


def test_warnings_of_fit_point_to_the_caller():
    y, many = [0, 1] * 150, pd.DataFrame({"c": [f"{i:03d}" for i in range(300)]})
    tree = RankingTree(max_depth=1, keep_columns=["c"])
    curve = CostOptimalCurve(TAOTree(), depths=[1], alphas=[1.0], cost_factor=9.0, cv=0, keep_columns=["c"])
    for model in (tree, curve):
        with pytest.warns(UserWarning, match="300 categories") as caught:
            model.fit(many, y)
        assert {warning.filename for warning in caught} == {__file__}
    numbers = np.arange(300.0).reshape(-1, 1)
    for weight, labels, words in (
        (np.full(300, 1e-6), y, "weights add up to"),
        (None, ["no", "yes", "yes"] * 100, "'yes' is taken as the positive label"),
    ):
        with pytest.warns(UserWarning, match=words) as caught:
            curve.set_params(keep_columns=None).fit(numbers, labels, sample_weight=weight)
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_original_values_of_frames(convert):
    table = convert({"a": ["x", None, "z"], "b": [1.0, 2.0, float("nan")]})
    look_up = original_values(table, ["b", "a", "a (month)"], np.array([2, 1]))
    assert look_up("a") == ["z", None]
    assert look_up("b") == [None, 2.0]
    assert look_up("a (month)") is None
    assert original_values(table, ["x0", "x1"])("x0") == ["x", None, "z"]


def test_original_values_of_arrays():
    rows = [["x", 1.0], [None, 2.0], ["z", 3.0]]
    for table in (np.array(rows, object), rows):
        assert original_values(table, ["x0", "x1"])("x0") == ["x", None, "z"]
        assert original_values(table, ["sector", "age"], np.array([2]))("age") == [3.0]
        assert original_values(table, ["sector", "age"])("town") is None
    frame = pd.DataFrame({0: ["x", "y"]})
    assert original_values(frame, ["0"])("0") == ["x", "y"]


# --- cells of new tables ------------------------------------------------------------------------------------


def fitted_tree():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.integers(18, 90, 200) * 1.0, "flag": rng.integers(0, 2, 200), "kind": ["a", "b"] * 100}
    )
    X.loc[:149, "rare"] = np.nan
    X.loc[150:, "rare"] = 1.0 * np.arange(50)
    return RankingTree(max_depth=2, cv=0).fit(X, X["age"] > 60), X


@pytest.mark.parametrize(("column", "n_words"), [("age", 1), ("age", 40), ("flag", 20)])
def test_a_few_words_among_numbers_count_as_missing(column, n_words):
    model, X = fitted_tree()
    new, empty = X.copy(), X.copy()
    new[column] = new[column].astype(str)
    new.loc[: n_words - 1, column] = "unknown"
    empty[column] = empty[column].astype(float)
    empty.loc[: n_words - 1, column] = np.nan
    with pytest.warns(UserWarning, match=f"Column '{column}' is read as numbers, but {n_words} cell.* 'unknown'"):
        found = model.decision_function(new)
    assert np.array_equal(found, model.decision_function(empty))


@pytest.mark.parametrize(
    ("cell", "n_words"), [(lambda i: f"about {i}" if i % 5 else str(i), 160), (lambda i: "1_0", 200)]
)
def test_a_column_that_became_text_is_named(cell, n_words):
    model, X = fitted_tree()
    sentence = f"'age' was a number in training, but {n_words} of 200 cells cannot be read as numbers"
    with pytest.warns(ChangedColumnWarning, match=sentence):
        model.decision_function(X.assign(age=[cell(i) for i in range(200)]))


def test_one_row_with_a_word_is_scored_as_in_a_table():
    model, X = fitted_tree()
    X = X.assign(age=["n/a" if i == 7 else str(i) for i in range(len(X))])
    with pytest.warns(UserWarning, match="1 cell holds none, such as 'n/a'"):
        expected = model.decision_function(X)[7]
    with pytest.warns(UserWarning, match="1 cell holds none, such as 'n/a'"):
        assert model.decision_function(X.iloc[[7]]) == [expected]


def test_columns_that_lost_their_values_are_named_in_one_warning():
    model, X = fitted_tree()
    lost = X.assign(age=np.nan, kind=None, rare=np.nan)  # most training cases had no value of `rare`
    with pytest.warns(UserWarning, match="empty in all 200 rows") as told:
        model.decision_function(lost)
    assert [str(each.message).partition(" Hint:")[0] for each in told] == [
        "Columns 'age' and 'kind' are empty in all 200 rows, but had values in training."
    ]
    model.decision_function(lost.head(9))  # too few rows to call it a fault
    model.decision_function(X.assign(rare=np.nan))


def test_numbers_on_another_scale_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"amount": rng.lognormal(3, 1, 400), "change": rng.normal(size=400), "alarms": 0.0})
    X.loc[:90, "alarms"] = 1.0
    model = RankingTree(max_depth=2).fit(X, X["amount"] > 30)
    for factor in (0.01, 100.0):
        with pytest.warns(
            UserWarning, match="Column 'amount' has other values than in training: its median is"
        ) as told:
            model.decision_function(X.assign(amount=factor * X["amount"]))
        assert len(told) == 1
    model.decision_function(X.assign(amount=0.01 * X["amount"]).head(9))  # too few rows to call it a fault
    model.decision_function(X[X["amount"] > X["amount"].quantile(0.95)])  # cases picked by it
    model.decision_function(X.assign(alarms=5.0))  # nearly all had one value
