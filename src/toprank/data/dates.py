"""Dates: the format of a column of text, the days since 1970-01-01 in a cell, and the months and weekdays of dates.

A time with a zone is the local time that its cell shows, so that midnight in Paris keeps its date, weekday and hour.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from toprank.data.number_text import NEARLY_ALL
from toprank.tree.columns import MILLISECONDS

TIME = (
    r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?: ?(?:Z|UTC|[+-]\d{2}(?::?\d{2})?))?)?"
)
YEAR_FIRST = re.compile(r"(?P<a>\d{4})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{1,2})" + TIME)
YEAR_LAST = re.compile(r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{2})" + TIME)
NAMED = {
    "dmy": re.compile(
        r"(?P<day>\d{1,2})(?:[-/. ]|\. | of )?(?P<month>[A-Za-z]{3,9})\.?[-/., ]{0,2}(?P<year>\d{4}|\d{2})" + TIME
    ),
    "mdy": re.compile(r"(?P<month>[A-Za-z]{3,9})\.?[-/ ](?P<day>\d{1,2})[-/, ]{1,2}(?P<year>\d{4}|\d{2})" + TIME),
}
"""Dates with the name of a month: 10-Mar-2022, 25 September 2022, March 10, 2022."""
ORDERS = {"ymd": "year first (2024-12-31)", "dmy": "day first (31.12.2024)", "mdy": "month first (12/31/2024)"}
"""Forms of dates written as text, in words."""
FIRST_YEAR = 69
"""Two-digit years from here on belong to the 20th century, below to the 21st."""

MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
               "november", "december")  # fmt: skip
DAY_ZERO = date(1970, 1, 1).toordinal()
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NAMES = {"month": MONTHS, "weekday": WEEKDAYS}

YEAR, MIN_MONTHS = 366, 12
"""The month gets a column if dates span more than a year and this many months, counted per year."""
MIN_DAYS, MIN_WEEKDAYS = 28, 5
"""The weekday gets a column if there are this many distinct days, on this many weekdays."""


class DateForm(NamedTuple):
    """How the dates of a column are written.

    Attributes
    ----------
    form : "ymd", "dmy" or "mdy"
    is_ambiguous : bool
        Whether day first and month first fit equally well.
    """

    form: str
    is_ambiguous: bool


def read_date(text: str, form: str) -> float:
    """Return the days since 1970-01-01 in a cell, NaN if it is not a date of that form.

    A date with the year first is of any form: it can be read in only one way. The zone of a time changes nothing.

    Examples
    --------
    >>> read_date("1970-01-02", "dmy"), read_date("02.01.1970 12:00", "dmy"), read_date("13/01/1970", "mdy")
    (1.0, 1.5, nan)
    >>> read_date("2-Jan-1970", "dmy"), read_date("January 2, 1970", "mdy")
    (1.0, 1.0)
    """
    text = text.strip()
    match = YEAR_FIRST.fullmatch(text)
    if match is not None:
        form = "ymd"
    elif form != "ymd":
        match = YEAR_LAST.fullmatch(text)
    if match is not None:
        a, b, c = match["a"], match["b"], match["c"]
        year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}[form]
    else:
        match = NAMED[form].fullmatch(text) if form in NAMED else None
        if match is None:
            return math.nan
        year, month, day = match["year"], str(_month_of(match["month"])), match["day"]
    full = int(year) if len(year) == 4 else int(year) + (1900 if int(year) >= FIRST_YEAR else 2000)
    try:
        days = date(full, int(month), int(day)).toordinal() - DAY_ZERO
    except ValueError:
        return math.nan
    return days + _time_of_day(match) if match["hour"] is not None else float(days)


def _month_of(name: str) -> int:
    """Return the month that a name or its beginning stands for, 0 if it is none: Sep, Sept and September are 9."""
    found = [k for k, each in enumerate(MONTH_NAMES, 1) if each.startswith(name.lower())]
    return found[0] if len(found) == 1 else 0


def _time_of_day(match: re.Match[str]) -> float:
    """Share of a day, NaN if it is not a time."""
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return math.nan
        hour = hour % 12 + (12 if match["half"] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return math.nan
    thousandths = int((match["fraction"] or "")[:3].ljust(3, "0"))
    return ((((hour * 60 + minute) * 60) + second) * 1000 + thousandths) / MILLISECONDS


def learn_date_form(distinct: Sequence[str], read: Callable[[str], np.ndarray] | None = None) -> DateForm | None:
    """Return how the dates of a column are written; None if it is not a column of dates.

    Nearly all distinct values must be dates of one form, or with the year first. One value that fits only one order
    decides between day first and month first; if all fit both, the day is first. `read` returns the days in all
    distinct values for a form; by default they are read here.

    Examples
    --------
    >>> learn_date_form(["03/04/2024", "12/31/2024"]), learn_date_form(["03/04/2024"])
    (DateForm(form='mdy', is_ambiguous=False), DateForm(form='dmy', is_ambiguous=True))
    """
    read = read or (lambda form: read_dates(distinct, form))
    n_known = sum(bool(text.strip()) for text in distinct)
    if not n_known or not _may_be_dates(distinct, n_known):
        return None
    count = {"ymd": int(np.count_nonzero(~np.isnan(read("ymd"))))}
    if count["ymd"] < n_known:  # the other forms read the year first, too
        count |= {form: int(np.count_nonzero(~np.isnan(read(form)))) for form in ORDERS if form != "ymd"}
    best = max(count, key=lambda form: count[form])  # ties go to the first: year, day, month
    if count[best] < NEARLY_ALL * n_known:
        return None
    return DateForm(best, best == "dmy" and count["dmy"] == count["mdy"] > 0)


def _may_be_dates(distinct: Sequence[str], n_known: int) -> bool:
    """Return False if too many texts look like no date; most columns of text are ruled out by their first tenth."""
    n_others, most_others = 0, (1 - NEARLY_ALL) * n_known + 1
    patterns = (YEAR_LAST, YEAR_FIRST, *NAMED.values())
    for text in map(str.strip, distinct):
        if text and not any(pattern.fullmatch(text) for pattern in patterns):
            n_others += 1
            if n_others > most_others:
                return False
    return True


def read_dates(texts: Sequence[str], form: str) -> np.ndarray:
    """Return `read_date` of each text: float64."""
    return np.array([read_date(text, form) for text in texts], np.float64)


def days_of_values(values: Sequence[Any]) -> list[float]:
    """Return the days since 1970-01-01 of dates and times from Python and data frame libraries; NaN for others."""
    return [_days_of(value) for value in values]


def _days_of(value: Any) -> float:
    if not isinstance(value, date) or value != value:  # NaT of pandas
        return math.nan
    days = float(value.toordinal() - DAY_ZERO)
    if not isinstance(value, datetime):
        return days
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return days + (seconds * 1000 + value.microsecond // 1000) / MILLISECONDS


def days_of_series(series: nw.Series) -> np.ndarray:
    """Return the days since 1970-01-01 of a column of a date type, NaN for missing."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return series.dt.timestamp("ms").to_numpy().astype(np.float64) / MILLISECONDS


def part_codes(days: np.ndarray, part: str) -> np.ndarray:
    """Return the month, 0 to 11, or the weekday, 0 (Monday) to 6, of dates: float64, NaN for missing."""
    out = np.full(len(days), np.nan)
    known = np.isfinite(days)
    whole = np.floor(days[known] + 0.01 / MILLISECONDS).astype(np.int64)
    if part == "weekday":
        out[known] = (whole + 3) % 7  # 1970-01-01 was a Thursday
    else:
        out[known] = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return out


def useful_parts(days: np.ndarray) -> list[str]:
    """Return which of "month" and "weekday" may add information to the date itself.

    The month, if dates span more than a year and at least twelve months; within one year a range of dates is
    equivalent. The weekday, if there are at least 28 distinct days, at least two per month, on at least five weekdays.
    """
    whole = np.unique(np.floor(days[np.isfinite(days)]).astype(np.int64))
    if len(whole) == 0:
        return []
    months = np.unique(whole.astype("datetime64[D]").astype("datetime64[M]"))
    parts = ["month"] if whole[-1] - whole[0] > YEAR and len(months) >= MIN_MONTHS else []
    # One day per month, such as the first, may be any weekday.
    enough = len(whole) >= max(MIN_DAYS, 2 * len(months)) and len(np.unique((whole + 3) % 7)) >= MIN_WEEKDAYS
    return [*parts, *(["weekday"] if enough else [])]
