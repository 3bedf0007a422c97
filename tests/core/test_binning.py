import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference
from toprank._core.binning import GUIDE_CELLS, TILE_ROWS, fill_guide, greedy_cuts, guide_cell, map_to_bins

finite = st.floats(allow_nan=False, allow_infinity=False)


def runs(mass, max_bins):
    cut_after = np.zeros(len(mass), np.uint8)
    greedy_cuts(np.array(mass, float), max_bins, cut_after)
    return np.flatnonzero(cut_after).tolist()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=60), st.integers(1, 12))
def test_cuts_are_those_of_the_reference_and_never_too_many(mass, max_bins):
    ends = runs(mass, max_bins)
    assert ends == reference.greedy_cuts(mass, max_bins)
    assert len(ends) < max_bins


def test_equal_mass_gives_equal_runs():
    assert runs([1] * 12, 4) == [2, 5, 8]


def test_a_heavy_value_has_a_run_of_its_own():
    assert runs([1, 1, 100, 1, 1, 1, 1], 4) == [1, 2, 4]


@given(st.lists(finite, min_size=2, max_size=8), finite, st.floats(0, 1e300))
@example([-1.7e308, 1.7e308], -1.6e308, 0.0)
def test_guide_cells_never_fall_as_values_rise(values, low, inverse_width):
    with np.errstate(all="ignore"):
        cells = [guide_cell(np.float64(value), low, inverse_width) for value in sorted(values)]
    assert cells == sorted(cells)
    assert cells[0] >= 0
    assert cells[-1] < GUIDE_CELLS


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.7e308])
def test_a_column_without_a_scale_has_one_guide_cell(value):
    """An infinite distance times a scale of 0 is NaN, which has no cell of its own."""
    with np.errstate(all="ignore"):
        assert guide_cell(np.float64(value), -1.7e308, 0.0) == 0


def edges_and_guide(values):
    """Arguments of map_to_bins for one numeric column with the given edges."""
    edges = np.unique(values)
    low = float(edges[0])
    width = float(edges[-1]) - low
    scale = GUIDE_CELLS / width if width > 0 else 0.0
    scale = scale if np.isfinite(scale) else 0.0
    guide = np.zeros(GUIDE_CELLS + 1, np.uint8)
    with np.errstate(all="ignore"):
        fill_guide(edges, low, scale, guide)
    return edges, low, scale, guide


@given(st.lists(finite, min_size=1, max_size=30))
def test_the_guide_lists_the_edges_of_every_cell(values):
    edges, low, scale, guide = edges_and_guide(values)
    assert guide[0] == 0
    assert guide[-1] == len(edges)
    with np.errstate(all="ignore"):
        cells = [guide_cell(edge, low, scale) for edge in edges]
    for cell in set(cells):
        assert [i for i, c in enumerate(cells) if c == cell] == list(range(guide[cell], guide[cell + 1]))


def bins(column, edges, low, scale, guide):
    padded = np.full((1, 255), np.inf)
    padded[0, : len(edges)] = edges
    out, has_missing = np.zeros((len(column), 1), np.uint8), np.zeros(1, np.uint8)
    by_column = np.zeros((1, len(column)), np.uint8)
    n_bins, is_categorical = np.array([len(edges) + 1], np.int32), np.zeros(1, np.uint8)
    with np.errstate(all="ignore"):
        n_infinite = map_to_bins(np.array(column)[:, None], n_bins, is_categorical, padded, np.array([low]),
                                 np.array([scale]), guide[None], has_missing, out, by_column)  # fmt: skip
    assert has_missing[0] == np.isnan(column).any()
    assert np.array_equal(by_column, out.T)
    return out[:, 0].tolist(), n_infinite


@given(st.lists(finite, min_size=1, max_size=30), st.lists(st.floats(), min_size=1, max_size=10))
@example([-1.7e308, 0.0, 1.7e308], [1.6e308])
@example([0.5], [np.inf, -np.inf])
def test_a_value_gets_the_number_of_edges_below_it(edge_values, values):
    edges, *rest = edges_and_guide(edge_values)
    with np.errstate(all="ignore"):
        beside = [np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)]
    column = np.concatenate((values, edges, *beside)).tolist()
    expected = [len(edges) + 1 if np.isnan(v) else reference.bin_of(v, edges) for v in column]
    found, n_infinite = bins(column, edges, *rest)
    assert n_infinite == np.isinf(column).sum()
    finite_or_missing = [i for i, v in enumerate(column) if not np.isinf(v)]
    assert [found[i] for i in finite_or_missing] == [expected[i] for i in finite_or_missing]


def test_a_full_set_of_edges_uses_every_bin():
    edges, *rest = edges_and_guide(np.arange(254.0))
    assert bins(np.arange(-0.5, 254).tolist(), edges, *rest)[0] == list(range(255))


def test_rows_beyond_one_tile_are_mapped_too():
    edges, *rest = edges_and_guide([0.5, 1.5])
    column = (np.arange(3 * TILE_ROWS + 5) % 3).astype(float)
    assert bins(column.tolist(), edges, *rest)[0] == column.tolist()


def test_category_codes_are_their_bins_and_unknown_codes_are_missing():
    block = np.array([[0.0], [2.0], [3.0], [-1.0], [np.nan], [300.0]])
    out, has_missing, no_columns = (np.zeros(shape, np.uint8) for shape in ((6, 1), 1, (0, 0)))
    map_to_bins(block, np.array([3], np.int32), np.ones(1, np.uint8), np.full((1, 255), np.inf), np.zeros(1),
                np.zeros(1), np.zeros((1, GUIDE_CELLS + 1), np.uint8), has_missing, out, no_columns)  # fmt: skip
    assert out[:, 0].tolist() == [0, 2, 3, 3, 3, 3]
