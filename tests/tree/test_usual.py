import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.tree import usual as module
from toprank.tree.columns import Column
from toprank.tree.usual import with_usual

VALUES = st.lists(st.sampled_from([np.nan, -2.0, 0.0, 0.5, 1.0, 3.0, 1e300]), min_size=1, max_size=40)


def usual_of(values, weight=None, categories=None):
    X = np.array(values, np.float64)[:, None]
    weight = None if weight is None else np.asarray(weight, np.float64)
    return with_usual([Column("x", categories)], X, np.zeros(len(X), bool), weight)[0].usual


@given(VALUES)
def test_numbers_lie_where_most_of_the_cases_are(values):
    found, known = usual_of(values), np.array([value for value in values if not np.isnan(value)])
    if len(known) == 0:
        assert found is None
        return
    assert found.missing == pytest.approx(1 - len(known) / len(values))
    assert min(np.mean(known <= found.value), np.mean(known >= found.value)) >= 0.5
    assert found.share == pytest.approx(np.mean(known == found.value))
    if found.is_one_value:
        assert found.low == found.value == found.high
    else:
        assert min(np.mean(known >= found.low), np.mean(known <= found.high)) >= 0.9 - 1e-9
        assert np.unique(known, return_counts=True)[1].max() <= len(known) / 2


@given(VALUES, st.data())
def test_weight_2_is_the_row_twice_and_weight_0_leaves_it_out(values, data):
    weight = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    if not any(weight):
        return
    assert usual_of(values, weight) == usual_of(np.repeat(values, weight))
    assert usual_of(values, np.ones(len(values))) == usual_of(values)


def test_the_commonest_category():
    found = usual_of([2, 2, 1, np.nan, 0, 2], categories=("a", "b", "c"))
    assert (found.value, found.share, found.missing) == (2.0, pytest.approx(0.6), pytest.approx(1 / 6))
    assert usual_of([1, 0, 0, 1], categories=("a", "b")).value == 0.0
    assert usual_of([1, 0, 0, 1], [3, 1, 1, 1], categories=("a", "b")).value == 1.0
    assert usual_of([np.nan, np.nan], categories=("a", "b")) is None


def test_many_rows_and_columns_are_sampled_and_cut_into_pieces(monkeypatch):
    X = np.column_stack([np.arange(1000.0), np.arange(1000.0) % 2, np.arange(1000.0) * -1])
    columns = [Column("a"), Column("b", ("x", "y")), Column("c")]
    whole = with_usual(columns, X, np.zeros(1000, bool), None)
    assert [whole[0].usual.low, whole[0].usual.value, whole[0].usual.high] == [99.0, 499.0, 899.0]
    monkeypatch.setattr(module, "USUAL_CELLS", 1)
    assert with_usual(columns, X, np.zeros(1000, bool), None) == whole
    monkeypatch.setattr(module, "USUAL_ROWS", 400)
    some = with_usual(columns, X, np.zeros(1000, bool), None)
    assert some[0].usual.low == pytest.approx(99, abs=50)
    assert with_usual(columns, X, np.zeros(1000, bool), np.arange(1000) < 300)[0].usual.high == 269.0
