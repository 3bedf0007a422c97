import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.data.number_text import NumberForm, learn_number_form, numbers_of, read_number

POINT, COMMA = "1,234.56", "1.234,56"


@pytest.mark.parametrize(
    ("text", "form", "value", "unit"),
    [
        ("7", POINT, 7.0, ""),
        (" 1,234.56 ", POINT, 1234.56, ""),
        ("1,234,567", POINT, 1234567.0, ""),
        ("1.234.567,8", COMMA, 1234567.8, ""),
        ("1'234.50", POINT, 1234.5, ""),
        ("10 000 EUR", POINT, 10000.0, "EUR"),
        ("10\u00a0000,5\u00a0\u20ac", COMMA, 10000.5, "\u20ac"),
        ("$1,200", POINT, 1200.0, "$"),
        ("-$1,200", POINT, -1200.0, "$"),
        ("EUR 12", POINT, 12.0, "EUR"),
        ("12.3 %", POINT, 12.3, "%"),
        ("12,3%", COMMA, 12.3, "%"),
        ("(123)", POINT, -123.0, ""),
        ("($1,234.50)", POINT, -1234.5, "$"),
        ("\u22125", POINT, -5.0, ""),
        ("5-", POINT, -5.0, ""),
        ("+5", POINT, 5.0, ""),
        (".5", POINT, 0.5, ""),
        ("1.5e-3", POINT, 0.0015, ""),
        ("36 months", POINT, 36.0, "months"),
        ("5kg", POINT, 5.0, "kg"),
    ],
)
def test_numbers_in_text(text, form, value, unit):
    assert read_number(text, form) == (value, unit)


@pytest.mark.parametrize(
    "text",
    ["", "abc", "12,34", "1,2345", "1.2.3", "10-20", "<5", "5+", "12:30", "2024-01-31", "31.12.2024", "Q1", "A12", "(5",
     "-(5)", "--5", "555 123 4567", "+49 170 1234567", "nan", "inf", "1e999", "1st", "12a", "$5 EUR", "1 234,5 6"],
)  # fmt: skip
def test_text_that_is_no_number(text):
    assert read_number(text, POINT) is None


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["1,234.56", "12.3", "7"], NumberForm(POINT, "")),
        (["1.234,56", "12,3", "7"], NumberForm(COMMA, "")),
        (["1,234", "5,678"], NumberForm(POINT, "")),
        (["1,234", "0,5"], NumberForm(COMMA, "")),
        (["10 000 EUR", "5 EUR"], NumberForm(POINT, "EUR")),
        (["36 months", "60 months"], NumberForm(POINT, "months")),
        ([str(i) for i in range(21)], NumberForm(POINT, "")),
        ([str(i) for i in range(21)] + ["unknown", ""], NumberForm(POINT, "")),
        ([str(i) for i in range(20)], None),  # few: 1, 2, 3 may be codes
        ([f"{i}.0" for i in range(5)], None),  # codes that went through a float
        ([str(i) for i in range(10_000, 10_100)], None),  # post codes
        ([f"0{i}" for i in range(100)], None),
        (["00273", *(str(i) for i in range(100))], None),
        ([str(10**9 + i * 10**8) for i in range(100)], None),  # telephone numbers
        (["5 EUR", "6 USD", "7 EUR", "8 USD"], None),
        (["1.5", "2.5", "low"], None),
        (["red", "green"], None),
        ([], None),
        (["", " "], None),
    ],
)
def test_forms_of_columns(texts, found):
    assert learn_number_form(texts) == found


def test_a_large_column_is_judged_as_a_small_one():
    texts = [f"{i:,}.25 EUR" for i in range(5_000)]
    assert learn_number_form(texts) == NumberForm(POINT, "EUR")
    assert learn_number_form([*texts, "00273"]) == NumberForm(POINT, "EUR")
    assert learn_number_form([f"code {i}" for i in range(5_000)]) is None
    assert learn_number_form([*(str(i) for i in range(5_000)), "0007"]) is None


def test_other_units_and_words_are_missing():
    found = numbers_of(["5 EUR", "6 USD", "n/a", "7"], NumberForm(POINT, "EUR"))
    assert found[0] == 5.0
    assert all(math.isnan(value) for value in found[1:])


@given(
    value=st.decimals(-(10**9), 10**9, places=2),
    style=st.sampled_from(["{:,.2f}", "{:,.2f} EUR", "${:,.2f}", "{:.2f} %"]),
    comma=st.booleans(),
)
def test_what_is_written_is_read(value, style, comma):
    text = style.format(value)
    if comma:
        text = text.translate(str.maketrans(",.", ".,"))
    read = read_number(text, COMMA if comma else POINT)
    assert read is not None
    assert read[0] == float(value)
