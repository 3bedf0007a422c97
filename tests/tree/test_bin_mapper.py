import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tables import COLUMNS, tables
from toprank._core.threads import Threads
from toprank.tree import bin_mapper
from toprank.tree.bin_mapper import BinMapper, as_block, between, distinct_values, row_blocks
from toprank.tree.splitters import Presorted

finite = st.floats(allow_nan=False, allow_infinity=False)


def check_same_bins(one, other):
    for name in ("n_bins", "lower", "upper", "edges", "guide", "guide_low", "guide_scale"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def same_codes(one, other):
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


def test_codes_by_column_are_those_by_row_unless_the_table_is_large(monkeypatch):
    X = np.random.default_rng(4).normal(size=(100, 3))
    mapper = BinMapper().fit(X)
    binned = mapper.transform(X)
    monkeypatch.setattr(bin_mapper, "BY_COLUMN_CELLS", 299)
    large = mapper.transform(X)
    assert np.array_equal(binned.by_row, binned.by_column.T)
    assert np.array_equal(binned.by_row, large.by_row)
    assert large.by_column.size == 0
    for codes, row_step, column_step in (binned.strided, large.strided):
        at = np.arange(100)[:, None] * row_step + np.arange(3) * column_step
        assert np.array_equal(codes[at], binned.by_row)


@given(finite, finite)
@example(-1.7e308, 1.7e308)
@example(0.0, 5e-324)
@example(1.0, np.nextafter(1.0, 2))
def test_a_threshold_lies_between_its_neighbours(one, other):
    assume(one != other)
    low, high = np.float64(min(one, other)), np.float64(max(one, other))
    assert low <= between(low, high) < high


@given(tables(), st.sampled_from([2, 3, 255]))
def test_bins_order_the_values_and_thresholds_part_them_as_bins_do(table, max_bins):
    mapper = BinMapper(max_bins).fit(table.X, table.n_categories)
    binned = mapper.transform(table.X).by_row
    for f in np.flatnonzero(table.n_categories == 0):
        present = ~np.isnan(table.X[:, f])
        values, codes, n_bins = table.X[present, f], binned[present, f], mapper.n_bins[f]
        assert (binned[~present, f] == n_bins).all()
        assert n_bins == min(max_bins, len(np.unique(values))) or n_bins < max_bins < len(np.unique(values))
        assert sorted(set(codes)) == list(range(n_bins)), "every bin has values"
        for b in range(n_bins):
            assert mapper.lower[f, b] == values[codes == b].min()
            assert mapper.upper[f, b] == values[codes == b].max()
        for b in range(n_bins - 1):
            assert np.array_equal(values <= mapper.edges[f, b], codes <= b)
            for later in range(b + 1, n_bins):
                outside = (codes <= b) | (codes >= later)
                threshold = float(mapper.thresholds(f, b, later))
                assert np.array_equal((values <= threshold)[outside], (codes <= b)[outside])


@given(tables(kinds=("category",)))
def test_category_codes_are_their_bins(table):
    mapper = BinMapper().fit(table.X, table.n_categories)
    assert mapper.n_bins.tolist() == table.n_categories.tolist()
    assert np.array_equal(mapper.transform(table.X).by_row, np.where(np.isnan(table.X), 5, table.X))


@given(tables(weights=("none", "whole", "quarters", "any")), st.sampled_from([2, 4, 255]), st.randoms())
def test_row_order_changes_nothing(table, max_bins, random):
    shuffled = table.take(np.array(random.sample(range(len(table.X)), len(table.X))))
    check_same_bins(*(BinMapper(max_bins).fit(t.X, t.n_categories, t.sample_weight) for t in (table, shuffled)))


def test_row_order_changes_nothing_where_sums_of_weights_are_rounded():
    """0.3 + 0.3 + 0.7 depends on the order in floats; whether value 1 fills its share must not."""
    weight = np.array([0.3, 0.3, 0.7, 1.2, 0.1])
    X = np.array([[1.0], [1.0], [1.0], [2.0], [3.0]])
    orders = [[0, 1, 2, 3, 4], [0, 2, 1, 3, 4], [2, 0, 1, 3, 4]]
    first, *others = (BinMapper(2).fit(X[order], None, weight[order]) for order in orders)
    for other in others:
        check_same_bins(first, other)


@given(tables(weights=("whole",)), st.sampled_from([2, 4, 255]))
def test_a_weight_is_a_number_of_rows(table, max_bins):
    """Weight 2 is the row twice, weight 0 the row left out."""
    repeated = np.repeat(table.X, table.sample_weight.astype(int), axis=0)
    check_same_bins(
        BinMapper(max_bins).fit(table.X, table.n_categories, table.sample_weight),
        BinMapper(max_bins).fit(repeated, table.n_categories),
    )


def test_many_values_make_bins_of_about_equal_weight():
    X = np.random.default_rng(0).normal(size=(5000, 1))
    mapper = BinMapper(50).fit(X)
    counts = np.bincount(mapper.transform(X).by_row[:, 0])
    assert mapper.n_bins[0] == 50
    assert counts.min() >= 80  # each end moves by at most a tenth, to a short number
    assert counts.max() <= 120


def test_bins_of_a_sample_cover_all_rows():
    X = np.random.default_rng(1).normal(size=(3000, 2))
    mapper = BinMapper(sample_rows=100).fit(X)
    assert (mapper.n_bins == 100).all()
    binned = mapper.transform(X).by_row
    for f in range(2):
        for b in range(99):
            assert np.array_equal(X[:, f] <= mapper.thresholds(f, b, b + 1), binned[:, f] <= b)


def test_a_sample_keeps_the_weights_of_its_rows():
    X = np.repeat(np.arange(4.0), 500)[:, None]
    weight = np.where(X[:, 0] < 2, 0.0, 1.5)
    assert BinMapper(sample_rows=100).fit(X, None, weight).n_bins[0] == 2


@pytest.mark.parametrize("column", [[0.0, 1.0], [3.0, 3.0], [np.nan, np.nan], list(range(300))])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_are_refused(column, bad):
    mapper = BinMapper().fit(np.array(column)[:, None])
    with pytest.raises(ValueError, match="infinite values"):
        mapper.transform(np.array([[0.5], [bad]]))


def test_infinite_values_do_not_make_bins():
    assert BinMapper().fit(np.array([[1.0], [np.inf], [2.0], [-np.inf]])).n_bins[0] == 2


def test_values_near_the_end_of_the_floats():
    X = np.array([[-1.7e308], [-1.6e308], [-1.5e308], [1.5e308], [1.6e308], [1.7e308]])
    assert BinMapper().fit(X).transform(X).by_row[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_column_of_missing_values_has_no_bins():
    mapper = BinMapper().fit(np.full((3, 1), np.nan))
    assert mapper.n_bins[0] == 0
    assert mapper.transform(np.array([[np.nan], [7.0]])).by_row[:, 0].tolist() == [0, 0]


def test_columns_with_missing_values_are_known():
    X = np.array([[1.0, np.nan, 0.0, np.nan], [2.0, 3.0, 1.0, 0.0]])
    n_categories = np.array([0, 0, 2, 2])
    binned = BinMapper().fit(X, n_categories).transform(X)
    assert binned.has_missing.tolist() == [False, True, False, True]
    assert Presorted(X, n_categories).has_missing.tolist() == [False, True, False, True]


def test_only_missing_values_right_is_an_infinite_threshold():
    assert BinMapper().fit(np.array([[1.0], [np.nan]])).thresholds(0, 0, -1) == np.inf


@given(st.lists(COLUMNS["neighbours32"], min_size=1, max_size=10))
def test_float32_is_widened_exactly(values):
    narrow = np.array(values, np.float32)[:, None]
    one, other = BinMapper().fit(narrow), BinMapper().fit(narrow.astype(float))
    check_same_bins(one, other)
    same_codes(one.transform(narrow), other.transform(narrow.astype(float)))


@pytest.mark.parametrize("form", [np.asfortranarray, lambda X: X.astype(int), lambda X: np.repeat(X, 2, axis=0)[::2]])
def test_any_memory_layout_gives_the_same_bins(form):
    X = np.random.default_rng(2).integers(0, 400, (500, 3)).astype(float)
    one, other = BinMapper().fit(X), BinMapper().fit(form(X))
    check_same_bins(one, other)
    same_codes(one.transform(X), other.transform(form(X)))


def test_blocks_and_threads_change_nothing(monkeypatch):
    X = np.random.default_rng(3).normal(size=(1000, 3))
    whole = BinMapper().fit(X)
    monkeypatch.setattr(bin_mapper, "BLOCK_CELLS", 300)
    assert len(row_blocks(*X.shape)) == 10
    with Threads(2) as threads:
        parts = BinMapper().fit(X, threads=threads)
        check_same_bins(whole, parts)
        same_codes(whole.transform(X), parts.transform(X, threads))


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_blocks_cover_the_rows_once(n_rows, n_features):
    rows = [row for block in row_blocks(n_rows, n_features) for row in range(block.start, block.stop)]
    assert rows == list(range(n_rows))


def test_a_block_is_a_view_where_it_can_be():
    X = np.zeros((4, 2))
    assert np.shares_memory(as_block(X, slice(1, 3)), X)
    assert as_block(X.astype(np.float32), slice(1, 3)).dtype == np.float64


def test_distinct_values_leave_out_missing_and_weightless_rows():
    column = np.array([2.0, np.nan, 1.0, 2.0, 5.0, np.inf])
    values, mass = distinct_values(column, None)
    assert (values.tolist(), mass.tolist()) == ([1.0, 2.0, 5.0], [1.0, 2.0, 1.0])
    values, mass = distinct_values(column, np.array([3, 9, 1, 4, 0, 1]))
    assert (values.tolist(), mass.tolist()) == ([1.0, 2.0], [1.0, 7.0])
    assert distinct_values(column[1:2], None)[0].size == 0
