"""Two tables read as one: kinds of frames, columns that do not match, categories of both."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toprank import MetaAP
from toprank.data.column_roles import learn_columns
from toprank.data.encoding import encode, read_table
from toprank.drift.samples import join_samples

REFERENCE = {"amount": [1.5, None, 3.0, 4.0], "sector": ["a", "b", None, "a"], "flag": [True, False, True, None]}
NEW = {"sector": ["c", "a", "a", "b", "c"], "flag": [False] * 5, "amount": [1, 2, 3, 4, 5]}


def frame_of(library, columns):
    return pa.table(columns) if library == "pyarrow" else {"pandas": pd, "polars": pl}[library].DataFrame(columns)


def encoded(samples):
    table = read_table(samples.table)
    return encode(table, learn_columns(table, samples.categorical).columns)


@pytest.mark.parametrize("first", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("second", ["pandas", "polars", "pyarrow"])
def test_frames_go_together_by_name_whatever_their_library(first, second):
    samples = join_samples(frame_of(first, REFERENCE), frame_of(second, NEW), MetaAP())
    expected = [[1.5, 0, 1], [np.nan, 1, 0], [3, np.nan, 1], [4, 0, np.nan],
                [1, 2, 0], [2, 0, 0], [3, 0, 0], [4, 1, 0], [5, 2, 0]]  # fmt: skip
    np.testing.assert_array_equal(encoded(samples), expected)
    assert samples.is_new.tolist() == [False] * 4 + [True] * 5
    assert type(samples.table) is type(frame_of(first, REFERENCE))


def test_types_that_libraries_keep_apart_are_one_kind():
    ours = pl.DataFrame({"a": ["x", "y", "x", "x"], "b": [1, 2, 3, 4], "c": [None] * 4},
                        schema={"a": pl.Enum(["x", "y"]), "b": pl.Int8, "c": pl.Null})  # fmt: skip
    theirs = pl.DataFrame({"a": ["z"] * 4, "b": [0.5] * 4, "c": ["k"] * 4},
                          schema={"a": pl.Categorical, "b": pl.Float32, "c": pl.String})  # fmt: skip
    samples = join_samples(ours, theirs, MetaAP())
    assert samples.table["a"].to_list() == ["x", "y", "x", "x"] + ["z"] * 4
    assert samples.table["b"].to_list() == [1, 2, 3, 4] + [0.5] * 4
    assert samples.table["c"].to_list() == [None] * 4 + ["k"] * 4


def test_numbers_that_are_categories_stay_so():
    ours = pd.DataFrame({"shop": pd.Categorical([3, 1, 1, 2]), "n": [1.0, 2, 3, 4]})
    theirs = pd.DataFrame({"n": [1.0] * 4, "shop": pd.Categorical([9] * 4)})
    samples = join_samples(ours, theirs, MetaAP())
    assert samples.categorical == [0]
    assert encoded(samples)[:, 0].tolist() == [2, 0, 0, 1, 3, 3, 3, 3]
    for chosen in (["n"], [1], [False, True]):
        assert join_samples(ours, theirs, MetaAP(categorical_features=chosen)).categorical == [0, 1]


def test_arrays_go_together_by_position():
    samples = join_samples(np.arange(8).reshape(4, 2), np.full((5, 2), np.nan), MetaAP())
    assert samples.table.shape == (9, 2)
    assert samples.table.dtype == np.float64
    words = join_samples(np.array([["a", "b"]] * 4), np.array([["c", None]] * 4, object), MetaAP())
    assert words.table[0].tolist() == ["a", "b"]
    assert words.table[7].tolist() == ["c", None]


NUMBERS = np.zeros((4, 2))


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        (NUMBERS, np.zeros((4, 3)), ValueError, "X has 2 columns but Y has 3, expected the same columns"),
        (NUMBERS, np.zeros((3, 2)), ValueError, "needs at least 4 rows in Y, found 3"),
        (NUMBERS[:0], NUMBERS, ValueError, "cannot read X: .*minimum of 1 is required"),
        (NUMBERS, np.zeros(4), ValueError,
         r"table of shape .n, n_features. as Y, found values of shape .4,.. Hint: pass a single column as"),
        ([1.0] * 500, NUMBERS, ValueError, r"as X, found values of shape .500,.. Hint"),
        (pl.Series([1.0] * 4), NUMBERS, ValueError, r"as X, found values of shape .4,.. Hint"),
        (pd.DataFrame(NUMBERS, columns=["a", "b"]), NUMBERS, TypeError, "X is a data frame but Y is an array"),
        (NUMBERS, pd.DataFrame(NUMBERS, columns=["a", "b"]), TypeError, "Y is a data frame but X is an array"),
        (pd.DataFrame({"amount": [1] * 4}), pd.DataFrame({"Amount": [1] * 4}), ValueError,
         "'amount' is in X but missing from Y .1 column read.. Hint: did you mean 'Amount'"),
        (pd.DataFrame({"a": [1] * 4}), pd.DataFrame({"a": [1] * 4, "zzz": [1] * 4}), ValueError,
         "'zzz' is in Y but missing from X .1 column read.. Hint: drop it"),
        (pd.DataFrame({"a": [1] * 4}), pd.DataFrame({"a": ["x"] * 4}), TypeError, "'a' holds numbers in X but text"),
        (pl.DataFrame({"a": [True] * 4}), pl.DataFrame({"a": [1] * 4}), TypeError, "booleans in X but numbers in Y"),
        (np.array([[1, 2]] * 4, object), np.array([["1", 2]] * 4, object), TypeError, "'x0' holds numbers in X but"),
        (pd.DataFrame(NUMBERS, columns=["a", "a"]), NUMBERS, ValueError, "cannot read X: Column 'a' appears twice"),
        (pl.DataFrame({"a": [1] * 4}).cast(pl.Date), pl.DataFrame({"a": [1] * 4}), TypeError, "'a' holds dates in X"),
    ],
)  # fmt: skip
def test_tables_that_do_not_match_get_a_sentence(X, Y, error, message):
    with pytest.raises(error, match=message):
        join_samples(X, Y, MetaAP())
