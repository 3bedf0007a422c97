import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grown_trees import AUDIT_COLUMNS, audit_tree, oblique_tree
from toprank.explain import side_condition
from toprank.tree.columns import Column
from toprank.words.numbers import number_text, percent_text
from toprank.words.wording import (
    EXACT,
    SHORT,
    Term,
    category_text,
    hits_text,
    is_cut,
    one_line,
    projection_text,
    range_text,
)

SECTOR = Column("sector", ("retail", "catering", "construction", "transport", "health", "farming", "media"))
INF = np.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (-0.0, "0"), (12.0, "12"), (0.31, "0.31"), (0.123456, "0.1235"), (1200.0, "1,200"),
        (1234567.8, "1,234,568"), (-98765.4321, "-98,765"), (0.7999999999999999, "0.8"), (1e-7, "1e-7"),
        (1.23456e-7, "1.235e-7"), (1.5e20, "1.5e+20"), (1e300, "1e+300"), (5e-324, "5e-324"), (np.inf, "inf"),
        (999999999999999.0, "999,999,999,999,999"), (0.1 + 0.2, "0.3"), (9999.6, "10,000"),
        (0.00099996, "0.001"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("low", "high", "missing", "text"),
    [
        (0.31, INF, False, "x > 0.31"),
        (3, 12, False, "3 < x <= 12"),
        (3, 12, True, "3 < x <= 12 or missing"),
        (-INF, 1200, True, "x <= 1200 or missing"),
        (-INF, INF, False, "x is not missing"),
        (INF, INF, True, "x is missing"),
        (5, 5, False, "no x at all"),
        (-INF, INF, True, "any x"),
        (1.00001, 1.00002, False, "1.00001 < x <= 1.00002"),
        (-INF, 12.345, False, "x <= 12.345"),  # thresholds have all their digits
        (-INF, 1995, False, "x <= 1995"),  # it may be a year
        (-INF, 123457.5, False, "x <= 123,457.5"),
        (-INF, 12.3456789012345, False, "x <= 12.34"),  # noise, as of a sum, is rounded down
    ],
)
def test_ranges(low, high, missing, text):
    assert range_text("x", low, high, missing) == text


@pytest.mark.parametrize(
    ("low", "high", "missing", "value", "text"),
    [
        (0.31, INF, True, 0.42, "x = 0.42 (> 0.31)"),
        (0.31, INF, False, 0.3100001, "x = 0.3100001 (> 0.31)"),
        (-INF, 1235.5, False, 1235.5, "x = 1235.5 (<= 1235.5)"),
        (3, 12, False, 7, "x = 7 (> 3 and <= 12)"),
        (-INF, INF, False, 7, "x = 7 (not missing)"),
        (-INF, INF, True, 7, "x = 7"),
        (-INF, 4, True, np.nan, "x is missing"),
    ],
)
def test_ranges_with_a_value(low, high, missing, value, text):
    assert range_text("x", low, high, missing, value) == text


finite = st.floats(-1e300, 1e300)


@given(finite, finite | st.integers(-3, 3))
def test_a_threshold_never_contradicts_its_value(threshold, value):
    if isinstance(value, int):  # a few floats away
        steps, value = value, threshold
        for _ in range(abs(steps)):
            value = np.nextafter(value, steps * INF)
    low, high = (threshold, INF) if value > threshold else (-INF, threshold)
    text = range_text("x", low, high, False, float(value)).replace(",", "")
    shown, bound = text.removeprefix("x = ").removesuffix(")").split(" (")
    sign, number = bound.split()
    assert float(shown) > float(number) if sign == ">" else float(shown) <= float(number)


@pytest.mark.parametrize(
    ("codes", "missing", "text"),
    [
        ([2], False, "sector is construction"),
        ([1, 2], False, "sector is catering or construction"),
        ([1, 2], True, "sector is catering, construction or missing"),
        ([0, 1, 2], False, "sector is retail, catering or construction"),
        ([1, 2, 3, 4, 5, 6], False, "sector is not retail"),
        ([1, 2, 3, 4, 5, 6], True, "sector is not retail, or is missing"),
        ([2, 3, 4, 5, 6], False, "sector is neither retail nor catering"),
        ([3, 4, 5, 6], False, "sector is none of retail, catering and construction"),
        ([], True, "sector is missing"),
        ([], False, "no sector at all"),
        (range(7), False, "sector is not missing"),
        (range(7), True, "any sector"),
        ([2, 200], False, "sector is construction"),  # codes beyond the categories say nothing
    ],
)
def test_categories(codes, missing, text):
    assert category_text(SECTOR, codes, missing) == text


def test_long_lists_of_categories_are_counted():
    many = Column("town", tuple(f"t{i}" for i in range(30)))
    assert category_text(many, range(11), False) == "town is one of 11 (t0, t1, t2, ...)"
    assert category_text(many, range(11), True) == "town is one of 11 (t0, t1, t2, ...) or missing"
    assert category_text(many, range(11, 30), False) == "town is not one of 11 (t0, t1, t2, ...)"


def test_rare_categories_are_named_with_the_code_they_share():
    column = Column("town", ("a", "b", "c"), shared=("d", "e"))
    assert category_text(column, [2], False) == "town is neither a nor b"
    assert category_text(column, [0], False) == "town is a"
    assert category_text(column, [2], False, value=2.0) == "town is c, d or e"


def test_odd_names_stay_on_one_line():
    column = Column("a\nb", ("", "x\ty", 1.5, 7, True, "z" * 50))
    assert category_text(column, [0, 1, 2], False) == "a b is '', x y or 1.5"
    assert category_text(column, [3, 4], False) == "a b is 7 or True"
    assert category_text(column, [5], False, 5.0) == f"a b = {'z' * 37}..."
    assert category_text(column, [5], True, np.nan) == category_text(column, [5], True, 99.0) == "a b is missing"


def test_names_that_could_be_several_are_in_quotes():
    column = Column("sector", ("Café/Bar", "construction, small", "tea or coffee", " media", "bed and breakfast"))
    assert category_text(column, [0, 1], True) == 'sector is Café/Bar, "construction, small" or missing'
    assert category_text(column, [0, 1, 4], False) == 'sector is neither "tea or coffee" nor " media"'
    assert category_text(column, [4], False, 4.0) == 'sector = "bed and breakfast"'  # "and" joins conditions
    assert category_text(column, [1], False, 1.0) == 'sector = "construction, small"'
    assert category_text(Column("sector", ("bar; age > 3", "shop")), [0], False) == 'sector is "bar; age > 3"'
    assert SHORT.label("a,\n" + "b" * 60) == f'"a,\\n{"b" * 34}..."'
    assert [SHORT.label(label) for label in ("x ", "or", "for all", 1234.5)] == ['"x "', "or", "for all", "1,234.5"]
    assert [is_cut([label]) for label in ("a, b", " a", "a, " + "b" * 60, "a\tb")] == [False, False, True, True]


def terms(features, weights):
    return [Term(feature, weight) for feature, weight in zip(features, weights, strict=True)]


def test_weighted_sums_keep_the_order_of_their_terms():
    columns = [Column(name) for name in ("age", "turnover_gap", "c", "d", "e", "f")]
    assert projection_text(columns[1::-1], terms([1, 0], [0.8, -0.3])) == "0.8 x turnover_gap - 0.3 x age"
    assert projection_text(columns[1::-1], terms([1, 0], [3e-7, -0.3])) == "3e-7 x turnover_gap - 0.3 x age"
    assert projection_text(columns, terms([0], [-0.3])) == "-0.3 x age"
    assert projection_text(columns, []) == "0"
    six = projection_text(columns, terms(range(6), [6, 5, -4, 3, 2, 1]))
    assert six == "6 x age + 5 x turnover_gap - 4 x c + 3 smaller terms"
    assert projection_text(columns, terms(range(4), [5, 4, 3, 2])).endswith("+ 3 x c + 1 smaller term")
    assert projection_text(columns, terms(range(3), [5, 4, 3])).endswith("+ 3 x c")


def test_terms_of_categories_name_them():
    column = Column("town", ("a", "b"), shared=("c", "d, e"))
    sums = [Term(0, 0.5, code=0), Term(0, -1 / 3, code=1), Term(1, 2.0, fill=0.1)]
    columns = [column, column, Column("age")]
    assert projection_text(columns, sums) == '0.5 x (town is a) - 0.333 x (town is b, c or "d, e") + 2 x age'
    assert projection_text(columns, sums, EXACT) == (
        '0.5 x (town is a) - 0.3333333333333333 x (town is b, c or "d, e") + 2.0 x age (missing: 0.1)'
    )


def test_figures():
    assert hits_text(118, 402, 0.02) == "118 of 402 positive (29.4 %, lift 14.7)"
    assert hits_text(0.25, 12.5, 0.02) == "0.25 of 12.5 positive (2 %, lift 1)"
    assert hits_text(0, 0, 0.02) == "0 of 0 positive"
    assert hits_text(0, 5, 0.0) == "0 of 5 positive (0 %)"
    assert percent_text(0.0022222) == "0.22 %"


def test_questions_are_asked_of_every_kind_of_node():
    questions = [side_condition(audit_tree(), AUDIT_COLUMNS, node).text() for node in (0, 1, 2, 4)]
    assert questions == [
        "vat_gap <= 0.31 or missing",
        "turnover <= 1200.5 or missing",
        "sector is catering or construction",
        "age_years is not missing",
    ]
    assert side_condition(oblique_tree(), AUDIT_COLUMNS, 0).text() == "0.8 x vat_gap - 0.3 x age_years <= 1.2"


def test_control_characters_in_names_are_visible():
    assert one_line("red\x1b[31m\u202e\tname\n") == r"red\x1b[31m\u202e name"
