import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import SGBAP, LogisticBoost, RankingTree, load
from toprank._core.dtypes import CATEGORY
from toprank.data.column_roles import learn_columns
from toprank.data.number_text import (
    Band,
    NumberForm,
    learn_number_form,
    numbers_of,
    ordered_bands,
    read_band,
    read_number,
)
from toprank.data.table import read_table
from toprank.tree.columns import Column

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
        (["0,103", "0,678"], NumberForm(COMMA, "")),  # 103 and 678 once
        (["1,234", "12,345", "0,103"], NumberForm(COMMA, "")),
        (["1.234", "0.103"], NumberForm(POINT, "")),
        (["10 000 EUR", "5 EUR"], NumberForm(POINT, "EUR")),
        (["36 months", "60 months"], NumberForm(POINT, "months")),
        ([str(i) for i in range(21)], NumberForm(POINT, "")),
        ([str(i) for i in range(21)] + ["unknown", ""], NumberForm(POINT, "")),
        ([str(i) for i in range(20)], None),  # few: 1, 2, 3 may be codes
        ([f"{i}.0" for i in range(5)], None),  # codes that went through a float
        ([str(i) for i in range(10_000, 10_100)], None),  # post codes
        ([f"0{i}" for i in range(100)], None),
        (["00273", *(str(i) for i in range(100))], None),
        (["05", "0.14", "2.29"], NumberForm(POINT, "")),  # an amount, not a code
        (["-05", *(str(i) for i in range(100))], NumberForm(POINT, "")),
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


@pytest.mark.parametrize("n_others", [100, 121])
def test_the_order_of_the_rows_does_not_decide_what_a_column_holds(n_others):
    texts = [f"${i}.25" for i in range(1_200 - n_others)]
    others = [f"({i}.75)" for i in range(n_others)]  # no unit
    spread = texts.copy()
    for place, text in enumerate(others):
        spread.insert(6 * place * (120 // n_others + 1), text)  # a sample of every sixth text finds many others
    expected = NumberForm(POINT, "$") if n_others <= 120 else None
    for order in (texts + others, others + texts, spread):
        assert learn_number_form(order) == expected


def test_cells_that_do_not_fit_the_form_of_their_column_are_missing():
    texts = [*(f"{i},{i}00.5" for i in range(1, 10)), "0,103"]
    found = learn_number_form(texts)
    assert found == NumberForm(POINT, "")
    assert numbers_of(texts[-2:], found) == [9900.5, pytest.approx(math.nan, nan_ok=True)]


def test_models_of_older_files_read_cells_as_when_they_were_trained():
    old = {"name": "share", "kind": "number", "has_missing": False, "form": POINT}
    column = Column.from_dict(old)
    assert numbers_of(["0,103"], NumberForm.from_column(column)) == [103.0]
    assert column.to_dict() == old
    new = Column("share", form=COMMA)
    assert Column.from_dict(new.to_dict()) == new
    assert numbers_of(["0,103"], NumberForm.from_column(new)) == [0.103]


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


POINT, COMMA = "1,234.56", "1.234,56"


AGES = ["< 18", "18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+"]


@pytest.mark.parametrize(
    ("text", "band"),
    [
        ("15-19", Band(15.0, 19.0, "")),
        (" 15 \u2013 19 ", Band(15.0, 19.0, "")),
        ("20000 to 29000", Band(20000.0, 29000.0, "")),
        ("0..9", Band(0.0, 9.0, "")),
        ("-10--5", Band(-10.0, -5.0, "")),
        ("1,000-1,999 EUR", Band(1000.0, 1999.0, "EUR")),
        ("$50k-$75k", Band(50000.0, 75000.0, "$")),
        ("[0, 10)", Band(0.0, 10.0, "")),
        ("(20.5, inf]", Band(20.5, math.inf, "")),
        ("<18", Band(-math.inf, 18.0, "")),
        ("\u2264 18", Band(-math.inf, 18.0, "")),
        ("Under 18", Band(-math.inf, 18.0, "")),
        ("17 or younger", Band(-math.inf, 17.0, "")),
        ("65+", Band(65.0, math.inf, "")),
        ("10+ years", Band(10.0, math.inf, "year")),
        ("more than 4", Band(4.0, math.inf, "")),
        ("65 and over", Band(65.0, math.inf, "")),
        ("1 year", Band(1.0, 1.0, "year", is_range=False)),
        ("none", Band(-math.inf, -math.inf, "", is_range=False)),
    ],
)
def test_bands_in_text(text, band):
    assert read_band(text, POINT) == band


@pytest.mark.parametrize(
    "text", ["", "abc", "3-1", "5-5", "5-", "2024-01-31", "10-A", "A+", "to 5", "5 EUR-9 USD", "+"]
)
def test_text_that_is_no_band(text):
    assert read_band(text, POINT) is None


def test_a_decimal_comma_is_read_as_such():
    assert read_band("0,5-1,5", COMMA) == Band(0.5, 1.5, "")
    assert ordered_bands(["2,5-3", "0,5-1,5", "1,5-2,5"]) == ("0,5-1,5", "1,5-2,5", "2,5-3")


@pytest.mark.parametrize(
    "names",
    [
        ["1", "2", "3"],  # codes, no band among them
        ["18-24", "25-34"],  # the order of two does not matter
        ["10-19", "15-24", "25-34"],
        ["1-0", "2-1", "0-3"],  # results of games
        ["18-24", "25-34", "35+", "student"],
        ["1-2 kg", "3-4 kg", "5-6 km"],
    ],
)
def test_values_without_an_order(names):
    assert ordered_bands(names) is None


@given(st.lists(st.integers(-1000, 1000), min_size=4, max_size=12, unique=True), st.randoms())
def test_any_cut_of_a_line_is_found_again_in_its_order(cuts, random):
    cuts = sorted(cuts)
    names = [
        f"under {cuts[0]}",
        *(f"{low} to {high}" for low, high in pairwise(cuts)),
        f"{cuts[-1]}+",
    ]
    shuffled = random.sample(names, len(names))
    assert ordered_bands(shuffled) == tuple(names)


def make_ages(n=600, seed=0):
    """Cases of which only those of high age are positive, and often."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, len(AGES), n)
    frame = pd.DataFrame({"age": np.array(AGES)[place], "size": rng.normal(size=n)})
    return frame, (place >= 5) & (rng.random(n) < 0.8)


def test_bands_are_categories_in_ascending_order_unless_the_caller_calls_them_categories():
    X, _ = make_ages()
    column = learn_columns(read_table(X)).columns[0]
    assert (column.kind, column.is_ordered, column.categories) == ("category", True, tuple(AGES))
    assert column.reading_text == "8 bands, from < 18 to 75+"
    chosen = learn_columns(read_table(X), categorical_features=["age"]).columns[0]
    declared = learn_columns(read_table(X.astype({"age": "category"}))).columns[0]
    assert not chosen.is_ordered
    assert not declared.is_ordered


def test_conditions_on_bands_in_a_row_are_written_as_a_range():
    X, y = make_ages()
    model = RankingTree(max_depth=1).fit(X, y)
    assert "age is 55-64 or more" in model.to_text()
    assert 'age is "55-64", "65-74" or "75+"' in model.to_text(exact=True)


@pytest.mark.parametrize("kind", [SGBAP, LogisticBoost])
def test_boosters_cut_bands_in_order(kind, tmp_path):
    X, y = make_ages()
    parameters = {"n_estimators": 20, "cv": 0, "random_state": 0}
    model = kind(**parameters).fit(X, y)
    of_age = model.trees_.feature[~model.trees_.is_leaf] == 0
    assert of_age.any()
    assert not np.any(model.trees_.kind == CATEGORY)
    scores = [model.decision_function(pd.DataFrame({"age": [age], "size": [0.0]}))[0] for age in AGES]
    assert min(scores[5:]) > max(scores[:5])
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").decision_function(X), model.decision_function(X))
    as_categories = kind(**parameters, categorical_features=["age"]).fit(X, y)
    assert np.any(as_categories.trees_.kind == CATEGORY)
