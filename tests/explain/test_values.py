from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.explain.conditions import Condition
from toprank.explain.values import originals_by_feature, value_of, value_text
from toprank.tree.columns import Column, Usual

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


def number(name="x", *, value=5.0, low=1.0, high=9.0, share=0.1, missing=0.0, **column):
    return Column(name, usual=Usual(value, low, high, share, missing), **column)


@pytest.mark.parametrize(("value", "expected"), [(9302, "x = 9302 (> 8400)"), (10_869, "x = 10,869 (> 8400)")])
def test_numbers_read_alike_in_values_and_in_conditions(value, expected):
    """The same amount was 9302 in a red flag and 9,302 in `explain`."""
    column = Column("x")
    assert value_text(column, value, low=8400) == expected
    assert Condition(0, column, low=8400, missing=False).text(value) == expected


@pytest.mark.parametrize(
    ("column", "value", "bounds", "expected"),
    [
        (number(), 0.5, {"high": 3}, "x = 0.5 (usually at least 1)"),
        (number(high=9.123), 12345.0, {}, "x = 12,345 (usually at most 9.2)"),
        (number(high=9.123), 9.15, {}, "x = 9.15 (usually at most 9.13)"),
        (number(high=3_250_850), 9_124_400, {}, "x = 9,124,400 (usually at most 3,260,000)"),
        (number(value=1994, low=1993, high=1995), 1996, {}, "x = 1996 (usually at most 1995)"),
        (number(), 3.0, {"high": 3.75}, "x = 3 (<= 3.75, median 5)"),
        (number(), 6.0, {"low": 4, "high": 7}, "x = 6 (> 4, median 5)"),
        (number(), 4.5, {"low": 4, "high": 7}, "x = 4.5 (<= 7, median 5)"),
        (number(), 4.5, {}, "x = 4.5 (median 5)"),
        (number(value=0, low=0, high=0, share=0.8), 2.0, {}, "x = 2 (usually 0)"),
        (number(value=0, low=0, high=0, share=0.8, missing=0.5), 0, {"high": 1}, "x = 0 (<= 1, as in 40 % of cases)"),
        (number(missing=0.125), np.nan, {}, "x is missing (as in 12.5 % of cases)"),
        (number(has_missing=False), np.nan, {}, "x is missing (never in training)"),
        (number(), np.nan, {}, "x is missing (rarely in training)"),
        (Column("x"), np.nan, {}, "x is missing"),
        (Column("x"), 4.0, {"low": 2, "high": 5}, "x = 4 (> 2 and <= 5)"),
        (Column("x"), 4.0, {}, "x = 4"),
    ],
)
def test_numbers(column, value, bounds, expected):
    assert value_text(column, value, **bounds) == expected


@given(NUMBERS, NUMBERS, NUMBERS)
def test_an_unusual_number_looks_unusual(one, two, value):
    low, high = min(one, two), max(one, two)
    text = value_text(number(value=low, low=low, high=high), value)
    shown, _, remark = text.removeprefix("x = ").removesuffix(")").partition(" (")
    if low <= value <= high:
        assert remark.startswith("median ")
        return
    end = Decimal(remark.split()[-1].replace(",", ""))
    assert (Decimal(shown.replace(",", "")) < end) == (value < low)
    if "at" in remark:
        assert end <= Decimal(repr(low)) if value < low else end >= Decimal(repr(high))


SECTOR = Column("sector", ("bar", "shop", "tea, coffee"), usual=Usual(1.0, 1.0, 1.0, 0.6, 0.5))
POOLED = Column("town", ("A", "B"), ("C", "D"), usual=Usual(1.0, 1.0, 1.0, 0.4, 0.0))


@pytest.mark.parametrize(
    ("column", "code", "original", "expected"),
    [
        (SECTOR, 0.0, None, "sector = bar (usually shop)"),
        (SECTOR, 1.0, None, "sector = shop (as in 30 % of cases)"),
        (SECTOR, 2.0, None, 'sector = "tea, coffee" (usually shop)'),
        (SECTOR, np.nan, None, "sector is missing (as in 50 % of cases)"),
        (SECTOR, np.nan, "zoo", "sector = zoo (never seen in training)"),
        (POOLED, 0.0, None, "town = A (most often one of 3 rare values)"),
        (POOLED, 1.0, "D", "town = D (one of 3 rare values)"),
        (POOLED, 1.0, None, "town is one of 3 rare values"),
        (
            Column("new", (False, True), usual=Usual(0.0, 0.0, 0.0, 0.4, 0.4)),
            1.0,
            None,
            "new = True (most often False)",
        ),
        (Column("new", (False, True)), 1.0, None, "new = True"),
    ],
)
def test_categories(column, code, original, expected):
    assert value_text(column, code, original) == expected


def test_values_as_data():
    assert value_of(SECTOR, 2.0) == "tea, coffee"
    assert value_of(SECTOR, np.nan) is None
    assert value_of(SECTOR, np.nan, "zoo") == "zoo"
    assert value_of(POOLED, 1.0, "D") == "D"
    assert value_of(Column("x"), np.nan) is None
    assert value_of(Column("x"), 2.5) == 2.5


def test_originals_are_asked_for_only_where_a_code_says_too_little():
    asked = []
    X = np.array([[0.0, 0.0, 1.0], [1.0, np.nan, 0.0], [2.0, 1.0, 0.0]])
    columns = [SECTOR, POOLED, Column("x")]

    def originals(name):
        asked.append(name)
        return ["A", "E", "C"]

    found = originals_by_feature(columns, X, np.ones(X.shape, bool), originals)
    assert (asked, found) == (["town"], {1: ["A", "E", "C"]})
    unused = np.zeros(X.shape, bool)
    unused[0] = True
    assert originals_by_feature(columns, X, unused, originals) == {}
    assert originals_by_feature(columns, X, np.ones(X.shape, bool), None) == {}
    assert originals_by_feature(columns, X, np.ones(X.shape, bool), lambda name: None) == {}
