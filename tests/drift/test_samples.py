"""Two tables read as one: frames, columns, categories; rows that both have, whose copies go to the same part."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import MetaAP
from toprank.data.column_roles import learn_columns
from toprank.data.encoding import encode
from toprank.data.table import read_table
from toprank.drift.samples import draw_held_out, join_samples, row_keys, shared_rows

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


def test_what_text_holds_is_decided_on_both_tables():
    numbers, few = [str(i) for i in range(60)], [*"012345"] * 10  # these would be codes by themselves
    for ours, theirs in ((numbers, few), (few, numbers)):
        samples = join_samples(pl.DataFrame({"a": ours}), pl.DataFrame({"a": theirs}), MetaAP())
        assert encoded(samples)[:, 0].tolist() == [float(text) for text in (*ours, *theirs)]


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


# --- rows in both tables ------------------------------------------------------------------------------------


CELL = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan])


def keys_and_labels(reference, new):
    return np.array([*reference, *new], np.uint64), np.arange(len(reference) + len(new)) >= len(reference)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=12))
def test_keys_are_equal_where_rows_are(rows):
    keys = row_keys(read_table(np.array(rows)))
    plain = [tuple("missing" if value != value else value for value in row) for row in rows]
    for i, row in enumerate(plain):
        assert [key == keys[i] for key in keys] == [other == row for other in plain]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_keys_of_categories_and_missing_values(make):
    table = make({
        "sector": ["a", None, "b", "a", None],
        "flag": [True, False, True, True, False],
        "amount": [1.0, None, 1.0, 1.0, None],
    })  # fmt: skip
    keys = row_keys(read_table(table))
    assert (keys[0], keys[1]) == (keys[3], keys[4])
    assert len(set(keys.tolist())) == 3


def test_rare_categories_that_share_a_code_stay_different():
    keys = row_keys(read_table(pd.DataFrame({"case": [f"C{i}" for i in range(2000)]})))
    assert len(np.unique(keys)) == 2000


def test_keys_of_values_that_differ_in_few_bits_are_different():
    grid = np.stack(np.meshgrid(np.arange(300.0), np.arange(300.0)), -1).reshape(-1, 2)
    assert len(np.unique(row_keys(read_table(grid)))) == len(grid)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.lists(st.integers(0, 60), min_size=1, max_size=30))
def test_rows_that_occur_once_in_either_sample_are_paired(reference, new):
    pairs = shared_rows(*keys_and_labels(reference, new))
    ours, theirs = Counter(reference), Counter(new)
    if ours == theirs:
        assert sorted(pairs[:, 0].tolist()) == list(range(len(reference)))
        assert sorted(pairs[:, 1].tolist()) == list(range(len(reference), 2 * len(reference)))
        return
    singles = [i for i, value in enumerate(reference) if ours[value] == theirs[value] == 1]
    expected = [[i, len(reference) + new.index(reference[i])] for i in singles]
    n_within = sum(n == 2 and (ours[value], theirs[value]) != (1, 1) for value, n in (ours + theirs).items())
    are_all_different = max([*ours.values(), *theirs.values()]) == 1
    if are_all_different or len(expected) >= 7 + 4 * n_within:
        assert pairs.tolist() == expected
    elif len(expected) <= n_within + 3:
        assert not len(pairs)
    else:
        assert pairs.tolist() in ([], expected)


def test_rows_alike_by_chance_are_not_paired():
    """Of independent tables of the same whole numbers, one in a hundred is mistaken at most."""
    rng = np.random.default_rng(0)
    n_pairs = [len(shared_rows(*keys_and_labels(*rng.integers(0, 1500, (2, 300))))) for _ in range(200)]
    assert np.count_nonzero(n_pairs) <= 7
    table = rng.integers(0, 1500, 600)
    pairs = shared_rows(*keys_and_labels(table[:400], table[200:]))  # 200 are the same cases
    assert len(pairs) > 80


@given(st.integers(2, 40), st.integers(2, 40), st.floats(0, 1), st.floats(0.01, 0.99), st.integers(0, 5))
def test_copies_go_to_the_same_part(n, m, overlap, test_size, seed):
    is_new = np.arange(n + m) >= n
    rng = np.random.default_rng(seed)
    n_shared = round(overlap * min(n, m))
    shared = np.column_stack((rng.permutation(n)[:n_shared], n + rng.permutation(m)[:n_shared]))
    held_out = draw_held_out(is_new, test_size, np.random.default_rng(seed), shared)
    np.testing.assert_array_equal(held_out[shared[:, 0]], held_out[shared[:, 1]])
    alone = draw_held_out(is_new, test_size, np.random.default_rng(seed))
    for rows, size in ((~is_new, n), (is_new, m)):
        assert held_out[rows].sum() == alone[rows].sum()
        assert 1 <= held_out[rows].sum() <= size - 1


def test_without_shared_rows_the_draw_is_the_same():
    is_new = np.arange(90) >= 40
    none = np.empty((0, 2), np.int64)
    np.testing.assert_array_equal(
        draw_held_out(is_new, 0.3, np.random.default_rng(1)), draw_held_out(is_new, 0.3, np.random.default_rng(1), none)
    )
