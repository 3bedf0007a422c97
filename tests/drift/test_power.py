"""Where nothing can be found: too few rows, and columns of one value."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import MetaAPForest, RankingTree, TreeRank, two_sample_test
from toprank.drift.holdout import held_out_size
from toprank.drift.power import is_decisive, rows_needed

TOO_FEW = "There are too few rows to say anything: the smaller table has {}, and at least {} in each are needed."


def gaussian(seed, n, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0.001, 0.5))
def test_the_clearest_outcome_is_one_of_all_choices(n, m, level):
    assert is_decisive(n, m, level) == (math.comb(n + m, n) * level >= 1 - 1e-9)


@given(st.integers(1, 30), st.floats(0.05, 0.95), st.floats(1e-6, 0.5))
def test_rows_needed_are_the_first_number_that_is_enough(min_leaf, test_size, level):
    def is_enough(n):
        n_tested = held_out_size(n, test_size)
        return n - n_tested >= min_leaf and math.comb(2 * n_tested, n_tested) * level >= 1 - 1e-9

    needed = rows_needed(min_leaf, test_size, level)
    assert needed == next(n for n in range(4, 10_000) if is_enough(n))


def test_rows_needed_of_a_tiny_share_take_no_time():
    assert rows_needed(5, 1e-9, 0.05) > 10**9


@pytest.mark.parametrize("sizes", [(1000, 5), (5, 1000), (5, 8)])
def test_too_few_rows_are_told_without_a_warning(sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = two_sample_test(gaussian(0, sizes[0]), gaussian(1, sizes[1]) + 100)
    assert result.obstacle == str(result) == TOO_FEW.format(5, 9)
    assert (result.is_different, result.p_value) == (False, 1.0)


def test_with_the_rows_that_are_needed_a_difference_is_found():
    assert two_sample_test(gaussian(0, 8), gaussian(1, 8) + 100).obstacle == TOO_FEW.format(8, 9)
    result = two_sample_test(gaussian(0, 9), gaussian(1, 9) + 100)
    assert result.obstacle is None
    assert result.is_different


def test_the_level_asks_for_rows_too():
    result = two_sample_test(gaussian(0, 12), gaussian(1, 12) + 100, level=1e-4)
    assert result.obstacle == TOO_FEW.format(12, 15)
    assert not result.is_different
    assert two_sample_test(gaussian(0, 15), gaussian(1, 15) + 100, level=1e-4).obstacle is None


def test_the_ranker_asks_for_rows_too():
    X, Y = gaussian(0, 60), gaussian(1, 30)
    assert two_sample_test(X, Y, ranker=RankingTree(min_samples_leaf=20)).obstacle == TOO_FEW.format(30, 40)
    assert two_sample_test(X, Y, ranker=RankingTree(min_samples_leaf=5)).obstacle is None
    assert two_sample_test(X, Y[:6], ranker=MetaAPForest(n_estimators=5)).obstacle is None  # its trees have conditions


@pytest.mark.parametrize("size", [50, 80])
def test_columns_of_one_value_are_told(size):
    tables = [pd.DataFrame({"a": [1.0] * n, "b": ["x"] * n, "c": [np.nan] * n}) for n in (50, size)]
    result = two_sample_test(*tables)
    assert str(result) == "There is nothing to compare: every column has a single value in both tables."
    assert result.to_dict()["obstacle"] == result.obstacle
    tables[1]["b"] = "y"  # one value in either, but not in both
    assert two_sample_test(*tables).is_different


def test_identifiers_are_left_out_with_a_warning():
    tables = [pd.DataFrame({"x": np.arange(n) % 7, "case_id": [f"{start}{i}" for i in range(n)]})
              for n, start in ((60, "old"), (70, "new"))]  # fmt: skip
    with pytest.warns(UserWarning, match=r"leaves out 1 column: 'case_id' \(identifier\). Hint: ranker=TreeRank\("):
        result = two_sample_test(*tables)
    assert not result.is_different
    kept = two_sample_test(*tables, ranker=TreeRank(keep_columns=["case_id"], cv=0))
    assert kept.ranker.left_out_ == {}
