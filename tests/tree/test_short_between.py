"""`short_between`: the shortest decimal in a gap, exact, for numbers of any size."""

import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toprank import RankingTree
from toprank._core.decimals import MARGIN
from toprank.tree.bin_mapper import _short_decimal, at_short_edges, short_between

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def step_of(value: float) -> int:
    """Exponent of the last digit of a number as Python writes it."""
    return int(Decimal(repr(value)).normalize().as_tuple().exponent) if value else 400


def obvious(low: float, high: float) -> float:
    """Go from coarse to fine, in fractions, until a multiple of a power of ten lies in the gap."""
    a, b = Fraction(low), Fraction(high)
    most, middle = b - Fraction(MARGIN) * (b - a), (a + b) / 2
    place = max(abs(Decimal(low)), abs(Decimal(high))).adjusted()
    for step in range(place, place - 18, -1):
        unit = Fraction(10) ** step
        first, last = a // unit + 1, most // unit
        exact = min(max(round(middle / unit), first), last) * unit
        found = float(exact) if abs(exact) <= Fraction(sys.float_info.max) else np.inf
        if first <= last and low < found < high:
            return low if step < 0 and step_of(low) > step else found
    return low


def assert_as_good(found: float, expected: float, low: float, high: float) -> None:
    """The same number; or one of as many decimals and, but for rounding, as near to the middle of the gap."""
    if found != expected:
        assert step_of(found) == step_of(expected)
        middle = (Fraction(low) + Fraction(high)) / 2
        distances = [abs(Fraction(each) - middle) for each in (found, expected)]
        assert abs(distances[0] - distances[1]) <= Fraction(2.0**-50) * max(abs(Fraction(low)), abs(Fraction(high)))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (17, 18, "17.0"),  # whole numbers next to each other: a whole number
        (17, 19, "18.0"),
        (10, 20, "15.0"),
        (1000, 2000, "1500.0"),
        (0, 1, "0.0"),
        (-1, 0, "-1.0"),
        (-0.0, 5e-324, "0.0"),
        (-3, 5, "1.0"),
        (99, 101, "100.0"),
        (0.97, 1.02, "1.0"),
        (0.1234, 0.1299, "0.127"),
        (3, 900, "500.0"),
        (0.2, 0.1 + 0.2, "0.2"),  # 0.30000000000000004 is read as 0.3
        (np.float32(0.1), np.float32(0.2), "0.15"),
        (np.float32(16777216), np.float32(16777218), "16777217.0"),
        (2**53, 2**53 + 2, "9007199254740992.0"),
        (0.1, np.nextafter(0.1, 1), "0.1"),
        (5e-324, 1e-323, "5e-324"),
        (1e-300, 7e-300, "4e-300"),
        (-1.7e308, 1.7e308, "0.0"),
        (1.1e308, 1.7e308, "1.4e+308"),
    ],
)
def test_a_gap_has_one_short_number(low, high, expected):
    assert repr(float(short_between(float(low), float(high)))) == expected


@given(st.lists(st.tuples(FINITE, FINITE).filter(lambda pair: pair[0] < pair[1]), min_size=1, max_size=5))
@example([(0.7, 0.8), (1e15, 1e15 + 0.5), (1e-5, 2e-5), (-1e-5, 9.99e-6)])
@example([(-1.46e-98, 3.0), (-5e-324, 1000.0)])
@example([(1e22, 1.0000000000000001e23), (0.1, 0.30000000000000004), (4.35, 4.36), (1.005, 1.015)])
def test_thresholds_part_the_two_values_and_none_is_shorter(pairs):
    low, high = np.array(pairs).T
    found = short_between(low, high)
    assert ((low <= found) & (found < high)).all()
    for (a, b), own in zip(pairs, found.tolist(), strict=True):
        assert_as_good(own, obvious(a, b), a, b)


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e5))
@example(0.1, 0.3)
def test_the_kernel_does_what_decimal_arithmetic_does(low, gap):
    high = low + gap
    assert_as_good(float(short_between(low, high)), _short_decimal(low, high), low, high)


@given(st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4, unique=True).map(sorted))
@example([1.9999, 2.0, 2.8, 2.9])
def test_a_wider_gap_has_a_threshold_between_those_of_its_ends(values):
    """Then a row goes to the same side by its bin and by its value, also where bins between are empty."""
    a, b, c, d = values
    assert short_between(a, b) <= short_between(a, d) <= short_between(c, d)


def test_missing_ends_have_no_threshold():
    assert np.isnan(short_between(np.array([np.nan, 1.0]), np.array([1.0, np.nan]))).all()


def test_ends_of_bins_move_little_and_to_short_numbers():
    values = np.sort(np.random.default_rng(0).normal(1000, 200, 20_000))
    last = np.arange(99, 20_000, 100)
    moved = at_short_edges(values, last)
    assert moved[-1] == last[-1]
    assert np.abs(moved - last).max() <= 10
    assert (np.diff(moved) >= 80).all()
    digits = [
        np.mean([len(repr(edge)) for edge in short_between(values[ends[:-1]], values[ends[:-1] + 1]).tolist()])
        for ends in (last, moved)
    ]
    assert digits[1] < digits[0] - 0.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("splitter", ["hist", "exact"])
def test_short_thresholds_part_the_training_rows_as_midpoints_do(splitter, dtype):
    generator = np.random.default_rng(1)
    X = generator.normal(0, [1, 1e-7, 1e9, 30], size=(200, 4)).astype(dtype)
    X[:, 3] = np.round(X[:, 3])
    y = X[:, 0] + X[:, 1] * 1e7 + X[:, 3] / 30 + generator.normal(size=200) > 1
    how = {"max_depth": 5, "min_samples_leaf": 2}
    short = RankingTree(splitter=splitter, **how).fit(X, y)
    midway = RankingTree(splitter="midpoint", **how).fit(X, y)
    assert np.array_equal(short.apply(X), midway.apply(X))
    inner = ~short.tree_.is_leaf
    assert np.array_equal(short.tree_.feature, midway.tree_.feature)
    lengths = [
        np.mean([len(repr(threshold)) for threshold in model.tree_.threshold[inner].tolist()])
        for model in (short, midway)
    ]
    assert lengths[0] < 9 < lengths[1]
    whole = inner & (short.tree_.feature == 3)
    assert (short.tree_.threshold[whole] % 1 == 0).all()
