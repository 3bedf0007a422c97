from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from tables import Table, check_same_tree, criteria, limits, make_splitter, plain_tree, row_order, rows_of, tables
from toprank._core.dtypes import CRITERIA
from toprank._core.threads import Threads
from toprank.tree import splitters
from toprank.tree.grower import Limits, grow
from toprank.tree.splitters import Batch, Presorted, Splits, children_of, parts_of, sum_of_cells, sweep_features

MODES = ["histogram", "exact"]


@pytest.fixture
def two_columns():
    """Six rows, the fourth without weight: a number with a missing value and a category."""
    X = np.array([[1.0, 0], [2.0, 1], [2.0, 0], [9.0, 1], [np.nan, 2], [3.0, np.nan]])
    labels = np.array([True, False, True, True, False, False])
    return Table(X, np.array([0, 3], np.int32), labels, np.array([1.0, 2, 1, 0, 1, 3]))


def test_presorted_columns_are_dense_ranks_in_order(two_columns):
    presorted = Presorted(two_columns.X, two_columns.n_categories)
    assert presorted.codes.tolist() == [[0, 1, 1, 3, 4, 2], [0, 1, 0, 1, 2, 3]]
    assert presorted.n_codes.tolist() == [4, 3]
    assert presorted.values[0].tolist() == [1.0, 2.0, 3.0, 9.0]
    assert presorted.order.tolist() == [[0, 1, 2, 5, 3, 4], [0, 2, 1, 3, 4, 5]]


def test_presorted_takes_unknown_categories_as_missing():
    codes = Presorted(np.array([[0.0], [3.0], [-1.0], [np.nan], [1.0]]), np.array([2])).codes
    assert codes.tolist() == [[0, 2, 2, 2, 1]]


def test_presorted_refuses_infinite_values():
    with pytest.raises(ValueError, match="Column 1 of X holds infinite values"):
        Presorted(np.array([[1.0, np.inf]]))


@pytest.mark.parametrize("mode", MODES)
def test_the_root_holds_the_rows_with_weight(two_columns, mode):
    splitter = make_splitter(two_columns, mode)
    root = splitter.root()
    assert len(root) == 1
    assert rows_of(splitter, root, 0) == [0, 1, 2, 4, 5]
    assert (root.positive[0], root.total[0]) == (2, 8)


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), criterion=criteria)
def test_a_split_parts_the_rows_as_its_weights_say(mode, table, criterion):
    splitter = make_splitter(table, mode)
    root, positive, total = splitter.root(), table.weights.positive, table.weights.total
    assume(0 < root.positive[0] < root.total[0])
    splits = splitter.best_splits(root, CRITERIA[criterion], 1, None)
    assume(splits.record["feature"][0] >= 0)
    before = row_order(splitter).tolist()
    children = splitter.split(root, splits)
    left, right = (rows_of(splitter, children, i) for i in (0, 1))
    assert sorted(left + right) == table.rows
    assert left
    assert right
    for rows, child in ((left, 0), (right, 1)):
        assert children.positive[child] == positive[rows].sum()
        assert children.total[child] == total[rows].sum()
    assert row_order(splitter).tolist() == reference.stable_partition(before, set(left).__contains__)
    if mode == "exact":
        for f, column in enumerate(splitter.rows):
            for start, stop in zip(children.start, children.stop, strict=True):
                codes = splitter.presorted.codes[f, column[start:stop]]
                assert (np.diff(codes) >= 0).all(), "every column stays sorted inside its node"


def histograms_of(splitter, batch):
    return [batch.histograms[slot].tolist() for slot in batch.slot]


@given(tables())
def test_statistics_by_subtraction_are_those_of_the_rows(table):
    splitter = make_splitter(table)
    root, weights = splitter.root(), table.weights
    assume(0 < root.positive[0] < root.total[0])
    splits = splitter.best_splits(root, CRITERIA["gini"], 1, None)
    assume(splits.record["feature"][0] >= 0)
    children = splitter.split(root, splits)
    for needed in ([True, True], [True, False], [False, True]):
        found = splitter.with_statistics(root, children, np.array(needed))
        assert len(found) == sum(needed)
        for batch, node, histogram in zip(
            [found] * 2, np.flatnonzero(needed), histograms_of(splitter, found), strict=False
        ):
            rows = rows_of(splitter, children, node)
            assert batch.start.tolist() == children.start[needed].tolist()
            expected = reference.histogram(
                splitter.binned, rows, weights.positive, weights.total, splitter.mapper.n_bins
            )
            assert histogram == [cell for feature in expected for cell in feature]


@given(tables(weights=("none", "whole")), criteria, st.integers(0, 2000))
def test_little_histogram_memory_gives_the_same_tree(table, criterion, memory):
    limits = Limits(CRITERIA[criterion], max_depth=5)
    expected = plain_tree(table, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitters, "HISTOGRAM_MEMORY", memory)
        check_same_tree(plain_tree(table, limits), expected)


@given(tables(weights=("whole",)), criteria)
def test_wide_weights_give_the_same_tree_as_packed_ones(table, criterion):
    limits = Limits(CRITERIA[criterion], max_depth=5)
    heavy = replace(table, sample_weight=table.sample_weight * 2.0**31)
    assert make_splitter(table).packed is not None
    assert make_splitter(heavy).packed is None
    narrow, wide = plain_tree(table, limits), plain_tree(heavy, limits)
    check_same_tree(narrow, wide, ignore=("positive", "negative", "gain"))
    assert np.array_equal(narrow.positive * 2.0**31, wide.positive)
    assert np.array_equal(narrow.negative * 2.0**31, wide.negative)


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), criterion=criteria, chunk=st.integers(1, 9))
def test_threads_and_chunks_change_nothing(mode, table, criterion, chunk):
    limits = Limits(CRITERIA[criterion], max_depth=5)
    expected = plain_tree(table, limits, mode=mode)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitters, "CHUNK_ROWS", chunk)
        for n_threads in (1, 2, 3):
            with Threads(n_threads) as threads:
                check_same_tree(plain_tree(table, limits, mode=mode, threads=threads), expected)


@pytest.mark.parametrize("mode", MODES)
def test_only_allowed_features_are_used(two_columns, mode):
    splitter = make_splitter(two_columns, mode)
    for feature in (0, 1):
        allowed = np.zeros((1, 2), np.uint8)
        allowed[0, feature] = 1
        found = splitter.best_splits(splitter.root(), CRITERIA["gini"], 1, allowed)
        assert found.record["feature"].tolist() == [feature]


@pytest.mark.parametrize("memory", [0, 2**29])
def test_every_node_has_its_own_allowed_features(two_columns, memory, monkeypatch):
    monkeypatch.setattr(splitters, "HISTOGRAM_MEMORY", memory)
    splitter = make_splitter(two_columns)
    root = splitter.root()
    twice = replace(root.take(np.array([0, 0])), histograms=None, slot=None)
    found = splitter.best_splits(twice, CRITERIA["gini"], 1, np.array([[0, 1], [1, 0]], np.uint8))
    assert found.record["feature"].tolist() == [1, 0]


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), data=st.data())
def test_regroup_keeps_the_remembered_order_inside_both_parts(mode, table, rule, data):
    splitter = make_splitter(table, mode)
    root = splitter.root()
    splitter.remember()
    before = [order.tolist() for order in np.atleast_2d(splitter.rows)]
    trees = grow(splitter, root, rule)
    cells = trees.segment.take(np.flatnonzero(trees.is_leaf))
    is_left = np.array(data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells))))
    left = {row for cell in np.flatnonzero(is_left) for row in rows_of(splitter, cells, cell)}
    in_place = parts_of(root, cells, np.zeros(len(cells), int), is_left)
    parts = splitter.regroup(root, cells, np.zeros(len(cells), int), is_left)
    for name in ("start", "stop", "positive", "total"):
        assert np.array_equal(getattr(in_place, name), getattr(parts, name))
    after = [order.tolist() for order in np.atleast_2d(splitter.rows)]
    assert after == [reference.stable_partition(order, left.__contains__) for order in before]
    assert parts.total.tolist() == [cells.total[is_left].sum(), cells.total[~is_left].sum()]
    assert parts.positive.tolist() == [cells.positive[is_left].sum(), cells.positive[~is_left].sum()]


@pytest.mark.parametrize("mode", MODES)
def test_regroup_parts_the_remembered_order_by_the_cells_sides(two_columns, mode):
    splitter = make_splitter(two_columns, mode)
    root = splitter.root()
    splitter.remember()
    before = row_order(splitter).tolist()
    cells = splitter.split(root, splitter.best_splits(root, CRITERIA["gini"], 1, None))
    right = rows_of(splitter, cells, 1)
    swapped = splitter.regroup(root, cells, np.zeros(2, int), np.array([False, True]))
    assert row_order(splitter).tolist() == reference.stable_partition(before, set(right).__contains__)
    assert rows_of(splitter, swapped, 0) == right
    assert (swapped.positive.tolist(), swapped.total.tolist()) == (
        cells.positive[::-1].tolist(),
        cells.total[::-1].tolist(),
    )


def test_splits_keep_the_earlier_of_equals():
    one, other = Splits(3), Splits(3)
    one.record["gain"], one.record["feature"] = [1, 1, 1], 0
    other.record["gain"], other.record["feature"] = [0, 1, 2], 1
    other.goes_left[:] = 1
    one.improve(other)
    assert one.record["feature"].tolist() == [0, 0, 1]
    assert one.goes_left[:, 0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_sweep_visits_every_feature_once_in_order(n_threads):
    visited = []

    def sweep(first, last, record, goes_left):
        visited.append((first, last))
        record["gain"], record["feature"] = 1.0, first

    with Threads(n_threads) as threads:
        found = sweep_features(sweep, 2, 3, threads)
    assert [f for first, last in sorted(visited) for f in range(first, last)] == [0, 1, 2]
    assert found.record["feature"].tolist() == [0, 0]


def test_children_share_their_parents_segment():
    batch = Batch(*(np.array(v) for v in ([0, 10], [10, 15], [4, 3], [12, 5])))
    children = children_of(batch, np.array([4, 1]), np.array([3, 0]), np.array([5, 2]))
    assert children.start.tolist() == [0, 4, 10, 11]
    assert children.stop.tolist() == [4, 10, 11, 15]
    assert children.positive.tolist() == [3, 1, 0, 3]
    assert children.total.tolist() == [5, 7, 2, 3]


def test_sums_of_cells_are_exact_beyond_what_floats_of_24_bits_hold():
    big = 2**51
    cells = Batch(*(np.array(v) for v in ([0, 0, 0], [0, 0, 0], [big, 1, 5], [big, 3, 5])))
    positive, total = sum_of_cells(cells, np.array([1, 1, 0]), np.array([True, True, False]), 2)
    assert positive.tolist() == [0, big + 1]
    assert total.tolist() == [0, big + 3]
