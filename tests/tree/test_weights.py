import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from toprank.tree.weights import FIXED_POINT_LIMIT, integer_weights

labels = np.array([True, False, True])


def test_no_weights_are_ones():
    weights = integer_weights(labels)
    assert weights.total.tolist() == [1, 1, 1]
    assert weights.positive.tolist() == [1, 0, 1]
    assert weights.unit == 1
    assert weights.total.dtype == weights.positive.dtype == np.int64


def test_whole_weights_stay_as_they_are():
    weights = integer_weights(labels, np.array([0.0, 3.0, 7.0]))
    assert weights.total.tolist() == [0, 3, 7]
    assert weights.positive.tolist() == [0, 0, 7]
    assert weights.unit == 1


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
@example([0.1] * 10)
@example([1e-320, 5e-324])
@example([2.0**60, 2.0])
@example([0.5, 0.25])
def test_fractions_are_kept_to_one_part_in_the_limit(values):
    values = np.array(values)
    assume(values.sum() > 0)
    weights = integer_weights(np.ones(len(values), bool), values)
    assert np.log2(weights.unit) == np.rint(np.log2(weights.unit)), "units are powers of two: scaling is exact"
    assert weights.total.sum() <= FIXED_POINT_LIMIT + len(values)
    assert np.abs(weights.total * weights.unit - values).max() <= weights.unit / 2
    assert weights.unit in (1.0, 5e-324) or weights.unit <= 4 * values.sum() / FIXED_POINT_LIMIT
    assert ((weights.total > 0) <= (values > 0)).all()


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.randoms())
@example([0.3, 0.6, 0.7, 0.4], None)  # a sum of 2 in this order, a little less in the other
def test_the_unit_does_not_depend_on_the_order(values, random):
    shuffled = sorted(values) if random is None else random.sample(values, len(values))
    one, other = (integer_weights(np.ones(len(values), bool), np.array(v)) for v in (values, shuffled))
    assert one.unit == other.unit
    assert sorted(one.total.tolist()) == sorted(other.total.tolist())


def test_packed_weights_hold_both_channels():
    packed = integer_weights(labels, np.array([5.0, 3.0, 2.0**30])).packed
    assert (packed >> 32).tolist() == [5, 0, 2**30]
    assert (packed & 0xFFFFFFFF).tolist() == [5, 3, 2**30]


@pytest.mark.parametrize(("largest", "fits"), [(2**31 - 3, True), (2**31 - 2, False)])
def test_weights_are_packed_below_two_to_the_31(largest, fits):
    weights = integer_weights(labels, np.array([1.0, 1.0, float(largest)]))
    assert (weights.packed is not None) == fits
