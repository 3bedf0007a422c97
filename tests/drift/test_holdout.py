"""Rows that two tables share: how they are found, and that both copies go to the same part."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.data.encoding import read_table
from toprank.drift.holdout import draw_held_out, row_keys, shared_rows

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
