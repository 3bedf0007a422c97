import time

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import RankingTree
from toprank.data.table import _code_list, read_table

VALUES = {"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": ["x", None, "x"], "d": [True, False, None], "e": [7, None, 9]}
FRAMES = {
    "pandas": pd.DataFrame(VALUES),
    "nullable": pd.DataFrame(VALUES).convert_dtypes(),
    "polars": pl.DataFrame(VALUES),
    "pyarrow": pa.table(VALUES),
}


@pytest.mark.parametrize("library", FRAMES)
def test_numbers_come_in_a_block_or_one_by_one(library):
    table = read_table(FRAMES[library])
    numeric = [i for i in range(5) if table.is_numeric(i)]
    assert numeric == [0, 1, 4]
    block = table.block(numeric)
    assert block.dtype == np.float64
    expected = np.array([[1, 0.5, 7], [2, np.nan, np.nan], [3, 1.5, 9]])
    assert np.array_equal(block, expected, equal_nan=True)
    assert np.array_equal(table.block([4, 0]), expected[:, [2, 0]], equal_nan=True)
    for place, i in enumerate(numeric):
        assert np.array_equal(table.numbers(i), expected[:, place], equal_nan=True)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_float32_stays_narrow_where_all_columns_are(make):
    table = read_table(make({"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32), "c": np.zeros(2)}))
    assert [table.block(columns).dtype for columns in ([0, 1], [0, 2], [2])] == [np.float32, np.float64, np.float64]
    assert [table.numbers(i).dtype for i in range(3)] == [np.float32, np.float32, np.float64]


words = st.one_of(st.none(), st.sampled_from(["", "a", "b", "B", "nan", "None", "1"]))


@given(values=st.lists(words, min_size=1, max_size=12))
def test_codes_give_the_values_back_in_every_library(values):
    for frame in (
        pd.DataFrame({"c": pd.Series(values, dtype=object)}),
        pd.DataFrame({"c": pd.Series(values, dtype="category")}),
        pl.DataFrame({"c": values}, schema={"c": pl.String}),
        pl.DataFrame({"c": values}, schema={"c": pl.Categorical}),
        pa.table({"c": pa.chunked_array([values[:3], values[3:]], pa.string())}),
        np.array(values, object).reshape(-1, 1),
    ):
        table = read_table(frame)
        coded = table.coded(0)
        assert table.values(0) == values
        assert len(set(coded.distinct)) == len(coded.distinct) == len({v for v in values if v is not None})
        assert coded.counts.sum() == sum(v is not None for v in values)
        assert table.counts(0) == {v: values.count(v) for v in values if v is not None}


ODD_NUMBERS = {
    "dense": [3, None, -2, 3, 0, -2],
    "sparse": [10**17, None, -(10**17), 10**17],
    "fractions": [0.5, None, float("nan"), -0.0, 0.0, 0.5],
    "booleans": [True, None, False, True],
    "all true": [True, True],
    "no values": [None, None],
}


@pytest.mark.parametrize("kind", ODD_NUMBERS)
def test_numbers_and_booleans_as_categories_are_counted_as_they_first_occur(kind):
    values = ODD_NUMBERS[kind]
    expected = _code_list(values)
    types = {"fractions": (pl.Float64, pa.float64()), "booleans": (pl.Boolean, pa.bool_()),
             "all true": (pl.Boolean, pa.bool_())}  # fmt: skip
    polars_type, arrow_type = types.get(kind, (pl.Int64, pa.int64()))
    frames = [
        pl.DataFrame({"c": pl.Series(values, dtype=polars_type)}),
        pa.table({"c": pa.chunked_array([values[:1], values[1:]], arrow_type)}),
        pa.table({"c": pa.array(values, arrow_type).dictionary_encode()}),
        np.array(values, object).reshape(-1, 1),
    ]
    for frame in frames:
        coded = read_table(frame).coded(0)
        assert coded.codes.tolist() == expected.codes.tolist()
        assert list(map(repr, coded.distinct)) == list(map(repr, expected.distinct))


def test_large_numbers_without_a_sign_and_arrays_of_numbers():
    values = [2**64 - 1, 2**64 - 3, 2**64 - 1]
    assert read_table(pl.DataFrame({"c": pl.Series(values, dtype=pl.UInt64)})).coded(0).distinct == values[:2]
    coded = read_table(pl.DataFrame({"c": pl.Series([-128, 127, 0, 127], dtype=pl.Int8)})).coded(0)
    assert (coded.codes.tolist(), coded.distinct) == ([0, 1, 2, 1], [-128, 127, 0])
    coded = read_table(np.array([[7.0], [np.nan], [-1.0], [7.0]])).coded(0)
    assert (coded.codes.tolist(), coded.distinct) == ([0, -1, 1, 0], [7.0, -1.0])


def test_categories_of_a_library_need_not_occur_nor_be_in_order():
    values = ["b", None, "a", "b"]
    chunks = [pa.array(part, pa.string()).dictionary_encode() for part in (values[:3], values[3:])]
    for frame in (
        pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(["z", "a", "b"]))}),
        pl.DataFrame({"c": pl.Series(["other", *values], dtype=pl.Categorical)})[1:],
        pd.DataFrame({"c": pd.Categorical(values, categories=["z", "a", "b"])}),
        pa.table({"c": pa.chunked_array(chunks)}),
        pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 0]), pa.array(["b", "a", "b"]))}),
    ):
        coded = read_table(frame).coded(0)
        assert (coded.codes.tolist(), coded.distinct) == ([0, -1, 1, 0], ["b", "a"])


def test_objects_are_told_apart_column_by_column():
    table = read_table(pd.DataFrame({"a": pd.Series(["x", "y"], dtype=object), "b": pd.Series([1, 2], dtype=object)}))
    assert [table.dtype(i) == nw.String for i in range(2)] == [True, False]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_the_cost_of_a_wide_table_is_linear(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4_000))
    names = [f"column {i}" for i in range(4_000)]
    frame = pd.DataFrame(X, columns=names) if make is pd.DataFrame else pl.DataFrame(X, schema=names)
    started = time.process_time()
    model = RankingTree(max_depth=1, cv=0).fit(frame, X[:, 0] > 1)
    fitted = time.process_time() - started
    row = frame[:1]
    model.decision_function(row)
    times = []
    for _ in range(3):
        started = time.process_time()
        model.decision_function(row)
        times.append(time.process_time() - started)
    assert min(times) < 0.1
    assert fitted < 10  # 40 s where each column looks at the names of all
