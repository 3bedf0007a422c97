import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.data.dates import (
    DateForm,
    days_of_values,
    learn_date_form,
    part_codes,
    read_date,
    useful_parts,
)
from toprank.data.encoding import encode
from toprank.data.table import read_table
from toprank.tree.columns import Column

DAY = 1 / 86_400_000
WRITTEN = {"ymd": ("%Y-%m-%d", "%Y/%m/%d"), "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y"), "mdy": ("%m/%d/%Y",)}
moments = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)).map(
    lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000)
)


def days_since_1970(moment):
    return (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)


@given(moment=moments, form=st.sampled_from(list(WRITTEN)), data=st.data())
def test_what_is_written_is_read(moment, form, data):
    style = data.draw(st.sampled_from(WRITTEN[form]))
    day = dt.datetime(moment.year, moment.month, moment.day)
    assert read_date(day.strftime(style), form) == days_since_1970(day)
    text = f"{moment.strftime(style)} {moment.time().isoformat('milliseconds')}"
    assert abs(read_date(text, form) - days_since_1970(moment)) < DAY / 2


@pytest.mark.parametrize(
    ("text", "form", "days"),
    [
        (" 1970-01-02 ", "ymd", 1.0),
        ("1970-01-02T12:00", "ymd", 1.5),
        ("1970-01-02 12:00:00Z", "ymd", 1.5),
        ("1970-01-02T00:00:00+02:00", "ymd", 1.0),
        ("1970-01-02T12:00:00-0600", "ymd", 1.5),
        ("1/2/1970 6:00 PM", "mdy", 1.75),
        ("1/2/1970 12:00 am", "mdy", 1.0),
        ("02.01.70", "dmy", 1.0),
        ("01.01.24", "dmy", 19723.0),
        ("29.02.2024", "dmy", 19782.0),
        ("1970-01-02", "dmy", 1.0),
        ("1970/01/02", "mdy", 1.0),
    ],
)
def test_dates_in_text(text, form, days):
    assert read_date(text, form) == days


@pytest.mark.parametrize(
    "text",
    ["", "2024-13-01", "2024-02-30", "2024-03-01 24:01", "2024-03-01-17", "2024-03", "20240301", "2024-03/01", "soon",
     "0000-01-01", "1/2/1970 13:00 PM"],
)  # fmt: skip
def test_text_that_is_no_date(text):
    assert all(math.isnan(read_date(text, form)) for form in WRITTEN)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["2024-03-01", "2024-12-31"], DateForm("ymd", False)),
        (["03/04/2024", "31/12/2024"], DateForm("dmy", False)),
        (["03/04/2024", "12/31/2024"], DateForm("mdy", False)),
        (["03/04/2024", "05/06/2024"], DateForm("dmy", True)),
        (["2024-03-01"] * 9 + ["unknown"], DateForm("ymd", False)),
        (["2024-03-01"] * 8 + ["unknown"], None),
        (["2024-03-01", "03/04/2024"], DateForm("dmy", True)),
        (["2024-03-01"] * 9 + ["31.12.2024"], DateForm("dmy", False)),
        (["31/12/2024", "12/31/2024"], None),
        ([], None),
        ([""], None),
        (["12.5", "1.25"], None),
    ],
)
def test_forms_of_columns(texts, found):
    assert learn_date_form(texts) == found


@pytest.mark.parametrize(
    ("text", "form", "day"),
    [
        ("10-Mar-2022", "dmy", "2022-03-10"),
        ("25 September 2022", "dmy", "2022-09-25"),
        ("5. Sept. 2022", "dmy", "2022-09-05"),
        ("10MAR22", "dmy", "2022-03-10"),
        ("March 10, 2022", "mdy", "2022-03-10"),
        ("Mar-10-2022", "mdy", "2022-03-10"),
    ],
)
def test_names_of_months(text, form, day):
    expected = (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days
    assert read_date(text, form) == expected
    assert read_date(f"{text} 6:00 PM", form) == expected + 0.75
    assert all(math.isnan(read_date(text, other)) for other in {"ymd", "dmy", "mdy"} - {form})
    assert learn_date_form([text, "n/a", *[text.replace("10", "11"), text.replace("5", "6")] * 20]) == (form, False)


@pytest.mark.parametrize(
    "text", ["12 monkeys 2022", "31-Feb-2022", "10 Ma 2022", "March 2022", "Mar 2022 5", "10-M\u00e4r-2022"]
)
def test_names_that_are_no_months(text):
    assert math.isnan(read_date(text, "dmy"))
    assert math.isnan(read_date(text, "mdy"))


def test_one_value_of_a_large_column_decides():
    texts = [f"{i % 12 + 1:02d}/{i % 11 + 1:02d}/{1900 + i // 10}" for i in range(1_000)]
    assert learn_date_form(texts) == DateForm("dmy", True)
    assert learn_date_form([*texts, "02/28/2024"]) == DateForm("mdy", False)
    assert learn_date_form([*texts, "28/02/2024"]) == DateForm("dmy", False)


@pytest.mark.parametrize("n_others", [100, 121])
def test_the_order_of_the_rows_does_not_decide_what_a_column_holds(n_others):
    texts = [f"{1900 + i // 300}-{i // 28 % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(1_200 - n_others)]
    others = [f"unknown {i}" for i in range(n_others)]
    spread = texts.copy()
    for place, text in enumerate(others):
        spread.insert(6 * place * (120 // n_others + 1), text)  # a sample of every sixth text finds many others
    expected = DateForm("ymd", False) if n_others <= 120 else None
    for order in (texts + others, others + texts, spread):
        assert learn_date_form(order) == expected


FRAMES = {
    "pandas": lambda m: pd.DataFrame({"d": pd.to_datetime(pd.Series(m))}),
    "pandas objects": lambda m: pd.DataFrame({"d": pd.Series(m, dtype=object)}),
    "pandas zone": lambda m: pd.DataFrame({"d": pd.to_datetime(pd.Series(m)).dt.tz_localize("UTC")}),
    "polars": lambda m: pl.DataFrame({"d": m}),
    "polars zone": lambda m: pl.DataFrame({"d": m}).select(pl.col("d").dt.replace_time_zone("UTC")),
    "pyarrow": lambda m: pa.table({"d": m}),
    "text": lambda m: pl.DataFrame({"d": [None if each is None else each.isoformat(" ") for each in m]}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_every_library_gives_the_same_days(library):
    known = [dt.datetime(2021, 3, 5, 12, 30, 1, 500_000), dt.datetime(1950, 1, 1), dt.datetime(2024, 2, 29, 23, 59)]
    matrix = encode(read_table(FRAMES[library]([*known, None])), [Column("d", form="date", has_time=True)])
    assert np.allclose(matrix[:3, 0], [days_since_1970(moment) for moment in known], rtol=0, atol=DAY / 2)
    assert np.isnan(matrix[3, 0])


def test_columns_without_times_stay_whole_days():
    rows = read_table(pl.DataFrame({"d": ["2021-03-05 18:00", "2021-03-05"]}))
    assert encode(rows, [Column("d", form="ymd")])[:, 0].tolist() == [18691.0, 18691.0]


MIDNIGHTS = pd.to_datetime(["2021-03-01", "2021-07-01", "2021-12-31"]).tz_localize("Europe/Paris")  # +1 and +2 hours
LOCAL = {
    "pandas": lambda m: pd.DataFrame({"d": m}),
    "pandas objects": lambda m: pd.DataFrame({"d": pd.Series([*m[:2], m[2].to_pydatetime()], dtype=object)}),
    "polars": lambda m: pl.from_pandas(pd.DataFrame({"d": m})),
    "pyarrow": lambda m: pa.Table.from_pandas(pd.DataFrame({"d": m})),
    "array": lambda m: np.array([[each] for each in m], object),
    "text": lambda m: pl.DataFrame({"d": [each.isoformat() for each in m]}),
    "day first": lambda m: pl.DataFrame({"d": [f"{each:%d.%m.%Y %H:%M %z}" for each in m]}),
}


@pytest.mark.parametrize("library", LOCAL)
def test_local_midnights_keep_their_date(library):
    table = read_table(LOCAL[library](MIDNIGHTS))
    column = Column(table.names[0], form="dmy" if library == "day first" else "date", has_time=True)
    assert encode(table, [column])[:, 0].tolist() == [18687.0, 18809.0, 18992.0]


def test_each_cell_keeps_its_own_zone():
    in_paris = MIDNIGHTS[0]
    moments = [in_paris, in_paris.tz_convert("UTC"), pd.NaT, in_paris.tz_convert("Asia/Tokyo")]  # the same moment
    table = read_table(pd.DataFrame({"d": pd.Series(moments, dtype=object)}))
    days = encode(table, [Column("d", form="date", has_time=True)])[:, 0]
    assert np.allclose(days, [18687, 18687 - 1 / 24, np.nan, 18687 + 8 / 24], equal_nan=True)


def test_dates_of_python_and_other_values():
    zoned = dt.datetime(1970, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    found = days_of_values([dt.date(1970, 1, 2), pd.Timestamp("1970-01-02 12:00"), zoned, "1970-01-02"])
    assert found[:3] == [1.0, 1.5, 1 + 1 / 24]
    assert math.isnan(found[3])


@given(moment=moments)
def test_months_and_weekdays_are_those_of_the_calendar(moment):
    days = np.array([days_since_1970(moment), np.nan])
    for part, code in (("month", moment.month - 1), ("weekday", moment.weekday())):
        codes = part_codes(days, part)
        assert codes[0] == code
        assert np.isnan(codes[1])


@pytest.mark.parametrize(
    ("days", "parts"),
    [
        (np.arange(0, 800, 3), ["month", "weekday"]),
        (np.arange(0, 300, 3), ["weekday"]),  # within one year a range of dates says as much
        (np.arange(20), []),
        (np.arange(0, 4000, 7), ["month"]),  # always the same weekday
        ([(np.datetime64("2015-01") + m).astype("datetime64[D]").astype(int) for m in range(60)], ["month"]),
        ([], []),
    ],
    ids=["years", "months", "weeks", "weekly", "monthly", "none"],
)
def test_parts_that_may_help(days, parts):
    assert useful_parts(np.array([*days, np.nan], np.float64)) == parts
