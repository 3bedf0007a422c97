import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.tree import columns as module
from toprank.tree.columns import Column, Usual, with_usual

COLUMNS = [
    Column("amount"),
    Column("amount", has_missing=False),
    Column("sector", ("farms", "banks")),
    Column("is_new", (False, True), has_missing=False),
    Column("amount", usual=Usual(3.0, -1.5, 1e9, 0.1, 0.25)),
    Column("sector", ("farms", "banks"), usual=Usual(1.0, 1.0, 1.0, 0.7, 0.0)),
    Column("age", ("< 18", "18-64", "65+"), is_ordered=True),
    Column("opened", form="dmy"),
    Column("opened", form="date", has_time=True),
    Column("opened (month)", ("Jan", "Mar"), source="opened", form="dmy", part="month"),
    Column("price", form="1,234.56", unit="EUR"),
    Column("town", ("A", "B", "C"), ("D", "E")),
]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_dictionary_gives_an_equal_column_back(column):
    assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column
    assert sum(Column.from_dict(column.to_dict()) == other for other in COLUMNS) == 1


def test_a_code_stands_for_its_category_and_the_last_one_for_the_shared_ones_too():
    town = COLUMNS[-1]
    assert town.is_categorical
    assert town.labels(0) == ("A",)
    assert town.labels(2) == ("C", "D", "E")
    assert not COLUMNS[0].is_categorical


def test_kinds_and_sources():
    assert [column.kind for column in COLUMNS[-5:]] == ["date", "date", "category", "number", "category"]
    assert [column.input_name for column in COLUMNS[-5:]] == ["opened", "opened", "opened", "price", "town"]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0.0, "1970-01-01"),
        (18691.0, "2021-03-05"),
        (18691.5, "2021-03-05 12:00"),
        (18691 + 1 / 86_400, "2021-03-05 00:00:01"),
        (18691 + 1 / 86_400_000, "2021-03-05 00:00:00.001"),
        (-0.25, "1969-12-31 18:00"),
        (1e9, "day 1,000,000,000"),
    ],
)
def test_dates_are_written_as_iso_8601_rounded_down(days, text):
    assert Column("opened", form="date", has_time=True).date_text(days) == text


def test_columns_without_times_show_days():
    assert Column("opened", form="ymd").date_text(18691.5) == "2021-03-05"


def test_every_millisecond_is_told_from_its_neighbours():
    column = Column("at", form="date", has_time=True)
    for moment in (1_614_947_401_500, 1_614_947_401_501, 253_402_300_799_999, -1):
        low, high = (column.date_text(m / 86_400_000) for m in (moment, moment + 1))
        assert low < high or moment > 253_402_300_799_998
        assert column.date_text((moment + 0.5) / 86_400_000) == low


@pytest.mark.parametrize(
    "change",
    [{"kind": "date"}, {"form": "xyz"}, {"part": "month"}, {"part": "year"}, {"form": "dmy"}, {"source": 1}],
    ids=str,
)
def test_dictionaries_of_no_column_are_refused(change):
    with pytest.raises(ValueError, match="Column 'amount'"):
        Column.from_dict(Column("amount").to_dict() | change)


@pytest.mark.parametrize(
    "usual",
    [[1.0, 0.0, 2.0, 0.1], [1.0, 0.0, 2.0, 0.1, 2.0], [1.0, 0.0, float("nan"), 0.1, 0.0], [1.0, 2.0, 3.0, 0.1, 0.0],
     ["1", 0.0, 2.0, 0.1, 0.0], [True, 0, 2, 0, 0], 3.0],
    ids=repr,
)  # fmt: skip
def test_what_is_usual_is_checked(usual):
    with pytest.raises((ValueError, TypeError)):
        Column.from_dict({"name": "amount", "kind": "number", "has_missing": True, "usual": usual})


@pytest.mark.parametrize("code", [2.0, -1.0, 0.5])
def test_the_commonest_category_is_one_of_the_column(code):
    data = {"name": "town", "kind": "category", "categories": ["A", "B"], "has_missing": True}
    with pytest.raises(ValueError, match="town"):
        Column.from_dict(data | {"usual": [code, code, code, 0.5, 0.0]})


def test_limits_of_dates_with_times_have_the_time_of_day():
    at, on = Column("at", form="date", has_time=True), Column("on", form="date")
    assert [at.bound_text(days) for days in (18691.8, 18691.0, 18691 + 1 / 86_400, 1e9)] == [
        "2021-03-05 19:12", "2021-03-05 00:00", "2021-03-05 00:00:01", "day 1,000,000,000",
    ]  # fmt: skip
    assert [on.bound_text(days) for days in (18691.8, 18691.0)] == ["2021-03-05", "2021-03-05"]


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
