"""`Column`: name, kind and categories of a column of a tree's input matrix, the source of its values, usual values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.tree.bin_mapper import sample_rows
from toprank.tree.weights import integer_weights

Category = str | bool | int | float

AS_IT_IS = ""
DATE_FORMS = ("date", "ymd", "dmy", "mdy")
"""Dates of a date type, and dates written as text: year, day or month first."""
NUMBER_FORMS = ("1,234.56", "1.234,56")
"""Numbers written as text, with a decimal point or with a decimal comma."""
TEXT_FORMS = (*DATE_FORMS[1:], *NUMBER_FORMS)
FORMS = (AS_IT_IS, *DATE_FORMS, *NUMBER_FORMS)
PARTS = ("", "month", "weekday")

EPOCH = datetime(1970, 1, 1)
MILLISECONDS = 86_400_000
"""Milliseconds per day. Dates are days since 1970-01-01, to the millisecond."""
USUAL_SHARE = 0.5
"""A value that more than this share of the cases have is the usual one."""
TAILS = 0.1
"""Share of the values on either side of the usual range of a number."""
USUAL_ROWS = 10_000
"""Rows used to find usual values; more would change only the last printed digit."""
USUAL_CELLS = 2**20
"""Cells sorted at once."""


def span_text(first: str, last: str) -> str:
    """Return a range of bands in words, in quotes if a band holds the word that joins the ends.

    Examples
    --------
    >>> span_text("15-19", "65+"), span_text("16 to 17", "over 65")
    ('from 15-19 to 65+', "from '16 to 17' to 'over 65'")
    """
    return f"from '{first}' to '{last}'" if " to " in first + last else f"from {first} to {last}"


@dataclass(frozen=True)
class Usual:
    """Usual values of a column in training, ignoring missing ones.

    Attributes
    ----------
    value : float
        The median, which is the value of more than half of the cases, if there is one; for categories the most frequent
        code.
    low, high : float
        Range of the middle 80 % of a number; both are `value` for categories, and if one value is the usual one.
    share : float
        Share of the known values that equal `value`.
    missing : float
        Share of missing values among all cases.
    """

    value: float
    low: float
    high: float
    share: float
    missing: float

    def __post_init__(self) -> None:
        numbers = astuple(self)
        if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
            raise InputError(f"The usual values of a column must be five finite numbers, got {numbers}.")
        if not self.low <= self.value <= self.high or not 0 <= self.share <= 1 or not 0 <= self.missing <= 1:
            raise InputError(f"The usual value of a column must be between its bounds, got {numbers}.")

    @property
    def is_one_value(self) -> bool:
        """True if more than half of the cases have the same value."""
        return self.share > USUAL_SHARE


@dataclass(frozen=True)
class Column:
    """One column: a number, a date as days since 1970-01-01, or a category code.

    Attributes
    ----------
    name : str
    categories : tuple or None
        None for numbers and dates. Otherwise code i means categories[i].
    shared : tuple
        Rare categories that share the last code with categories[-1].
    has_missing : bool
        False if training saw no missing value; then short texts do not mention missing values.
    source : str
        The source column in the table if its name differs, as for the month of a date.
    form : str
        How cells of the table become values: "" unchanged; "date" from a date type; "ymd", "dmy", "mdy" from dates
        written as text; "1,234.56", "1.234,56" from numbers written as text.
    part : str
        Part of a date: "month", "weekday", or "" for the date itself.
    unit : str
        Unit next to numbers written as text, such as "EUR" or "%".
    zero_groups : bool
        Whether a group of thousands may start with 0, so that "0,103" is 103 where the point is the decimal mark. True
        only in files written when all columns were read so.
    has_time : bool
        Whether dates have a time of day; if not, a date is a whole number of days.
    usual : Usual or None
        Usual values in training; None if unknown.
    is_ordered : bool
        Whether the categories are bands in ascending order, such as 15-19 and 20-24.

    Examples
    --------
    >>> opened = Column("opened", form="dmy")
    >>> opened.kind, opened.date_text(18691.5)
    ('date', '2021-03-05')
    """

    name: str
    categories: tuple[Category, ...] | None = None
    shared: tuple[Category, ...] = ()
    has_missing: bool = True
    source: str = ""
    form: str = AS_IT_IS
    part: str = ""
    unit: str = ""
    has_time: bool = False
    usual: Usual | None = None
    is_ordered: bool = False
    zero_groups: bool = False

    @property
    def is_categorical(self) -> bool:
        """True if the column holds category codes."""
        return self.categories is not None

    @property
    def is_date(self) -> bool:
        """True if the column holds days since 1970-01-01."""
        return self.categories is None and self.form in DATE_FORMS

    @property
    def kind(self) -> str:
        """Kind of values: "number", "category" or "date"."""
        return "category" if self.is_categorical else "date" if self.is_date else "number"

    @property
    def reading_text(self) -> str:
        """How cells of the table are read, in words; empty if they are used unchanged."""
        if self.part:
            return f"{self.part} of {self.source}"
        if self.form in NUMBER_FORMS:
            comma = ", decimal comma" if self.form == NUMBER_FORMS[1] else ""
            return f"number written as text{f' ({self.unit})' if self.unit else ''}{comma}"
        if self.is_ordered and self.categories:
            return f"{len(self.categories):,} bands, {span_text(str(self.categories[0]), str(self.categories[-1]))}"
        return {"dmy": "date, day first", "mdy": "date, month first", "ymd": "date, year first"}.get(self.form, "")

    @property
    def input_name(self) -> str:
        """Name of the source column in the table."""
        return self.source or self.name

    def labels(self, code: int) -> tuple[Category, ...]:
        """Categories with this code."""
        assert self.categories is not None
        last = code == len(self.categories) - 1
        return (self.categories[code], *self.shared) if last else (self.categories[code],)

    def date_text(self, days: float) -> str:
        """Return a date, as days since 1970-01-01, in ISO 8601, rounded down to the millisecond.

        A date at midnight has no time; columns without times show days.
        """
        size = 1 if self.has_time else MILLISECONDS
        # Days and milliseconds are not exact in binary: a value just below a whole millisecond means that millisecond.
        try:
            whole = math.floor((days * MILLISECONDS + 0.01) / size) * size
            moment = EPOCH + timedelta(milliseconds=whole)
        except OverflowError:
            return f"day {days:,.0f}"
        if whole % MILLISECONDS == 0:
            return f"{moment:%Y-%m-%d}" if moment.year >= 1000 else moment.date().isoformat()
        if whole % 60_000 == 0:
            return moment.isoformat(" ", "minutes")
        return moment.isoformat(" ", "milliseconds" if whole % 1_000 else "seconds")

    def bound_text(self, days: float) -> str:
        """Return a limit of dates in ISO 8601, with the time of day to the millisecond if the dates have times.

        Rounded down, a threshold midway between two dates is still between them. A limit at midnight says so: up to
        2021-03-05 00:00 is not all of that day.

        Examples
        --------
        >>> Column("at", form="ymd", has_time=True).bound_text(18691.8), Column("on", form="ymd").bound_text(18691.8)
        ('2021-03-05 19:12', '2021-03-05')
        >>> Column("at", form="ymd", has_time=True).bound_text(18691.0)
        '2021-03-05 00:00'
        """
        text = self.date_text(days)
        return f"{text} 00:00" if self.has_time and text.count(":") == 0 and not text.startswith("day") else text

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` returns an equal column."""
        out: dict[str, Any] = {"name": self.name, "kind": self.kind, "has_missing": self.has_missing}
        if self.usual is not None:
            out["usual"] = list(astuple(self.usual))
        if self.categories is not None:
            out["categories"] = list(self.categories)
        if self.form in NUMBER_FORMS and not self.zero_groups:  # files that do not say so are older
            out["zero_groups"] = False
        rest = ("shared", "source", "form", "part", "unit", "has_time", "is_ordered")
        values = {name: getattr(self, name) for name in rest}
        return out | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        """Column from a dictionary made by `to_dict`; raise ValueError if it is invalid."""
        texts = {name: data.get(name, "") for name in ("source", "form", "part", "unit")}
        if not all(isinstance(text, str) for text in (data["name"], *texts.values())):
            raise InputError(f"Column {data['name']!r} has a name or a form that is not text.")
        zero_groups = data.get("zero_groups", texts["form"] in NUMBER_FORMS)
        flags = data["has_missing"], data.get("has_time", False), data.get("is_ordered", False), zero_groups
        if not all(isinstance(flag, bool) for flag in flags):
            raise InputError(f"Column {data['name']!r} has a flag that is neither true nor false.")
        named = [*data.get("categories", ()), *data.get("shared", ())]
        if not all(isinstance(name, Category) for name in named):
            raise InputError(f"Column {data['name']!r} has a category that is neither text nor a number.")
        usual = None if data.get("usual") is None else Usual(*data["usual"])
        column = cls(
            data["name"],
            None if data["kind"] != "category" else tuple(data["categories"]),
            tuple(data.get("shared", ())),
            data["has_missing"],
            has_time=bool(data.get("has_time", False)),
            is_ordered=bool(data.get("is_ordered", False)),
            usual=usual,
            zero_groups=zero_groups,
            **texts,
        )
        is_known = column.form in FORMS and column.part in PARTS and column.kind == data["kind"]
        if not is_known or (column.part and not (column.is_categorical and column.form in DATE_FORMS)):
            raise InputError(
                f"Column {column.name!r} has an unknown kind: {data['kind']!r} from {column.form!r} {column.part!r}."
            )
        if column.is_ordered and (column.shared or not column.categories or column.form):
            raise InputError(f"Column {column.name!r} is ordered, but is not a column of bands.")
        if usual is not None and column.categories is not None and usual.value not in range(len(column.categories)):
            raise InputError(f"The most frequent category of column {column.name!r} is not one of its categories.")
        return column


def with_usual(
    columns: Sequence[Column], X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> list[Column]:
    """Columns with their usual values among the rows of X, or a sample of them.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [7.0, np.nan]])
    >>> alarms, sector = with_usual([Column("alarms"), Column("sector", ("bar", "shop"))], X, X[:, 0] > 0, None)
    >>> alarms.usual
    Usual(value=0.0, low=0.0, high=0.0, share=0.75, missing=0.0)
    >>> sector.categories[int(sector.usual.value)], sector.usual.missing
    ('shop', 0.25)
    """
    rows = sample_rows(len(X), USUAL_ROWS, weight)
    mass = None if weight is None else integer_weights(is_positive, weight).total.astype(np.float64)
    if mass is not None:
        rows = np.flatnonzero(mass) if rows is None else rows
        mass = mass[rows]
    sample = X if rows is None else X[rows]
    usual: list[Usual | None] = [None] * len(columns)
    numbers = [f for f, column in enumerate(columns) if column.categories is None]
    step = max(1, USUAL_CELLS // max(len(sample), 1))
    for start in range(0, len(numbers), step):
        some = numbers[start : start + step]
        by_column = np.array(sample.T[some], np.float64, order="C")
        for f, found in zip(some, _usual_numbers(by_column, mass), strict=True):
            usual[f] = found
    for f, column in enumerate(columns):
        if column.categories:
            usual[f] = _usual_category(sample[:, f], mass, len(column.categories))
    return [replace(column, usual=found) for column, found in zip(columns, usual, strict=True)]


def _usual_numbers(values: np.ndarray, mass: np.ndarray | None) -> list[Usual | None]:
    """Usual values in each row of an array of numbers, one row per column; None if no value is finite.

    `mass` holds the weights of the cases; None = equal weights.
    """
    values[~np.isfinite(values)] = np.nan
    n = values.shape[1]
    if mass is None:
        values.sort(axis=1)  # NaN last
        known = n - np.isnan(values).sum(axis=1).astype(np.float64)
        places = [np.ceil(share * known).astype(np.intp) - 1 for share in (TAILS, 0.5, 1.0 - TAILS)]
    else:
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        weight = np.where(np.isnan(values), 0.0, mass[order])
        up_to = np.cumsum(weight, axis=1)
        known = up_to[:, -1]
        places = [(up_to < (share * known)[:, None]).sum(axis=1) for share in (TAILS, 0.5, 1.0 - TAILS)]
    row = np.arange(len(values))
    low, middle, high = (values[row, np.clip(place, 0, n - 1)] for place in places)
    # A value of more than half of the cases is their median.
    is_middle = values == middle[:, None]
    share = (is_middle.sum(axis=1) if mass is None else (is_middle * weight).sum(axis=1)) / np.maximum(known, 1.0)
    is_one = share > USUAL_SHARE
    low, high = np.where(is_one, middle, low), np.where(is_one, middle, high)
    missing = 1.0 - known / (n if mass is None else mass.sum())
    figures = np.column_stack((middle, low, high, share, np.clip(missing, 0.0, 1.0)))
    return [Usual(*row) if n > 0 else None for row, n in zip(figures.tolist(), known.tolist(), strict=True)]


def _usual_category(codes: np.ndarray, mass: np.ndarray | None, n_categories: int) -> Usual | None:
    """The most frequent category of a column, ties go to the first; None if no category is known."""
    is_known = (codes >= 0) & (codes < n_categories)
    weight = None if mass is None else mass[is_known]
    counts = np.bincount(codes[is_known].astype(np.intp), weight, n_categories)
    known, total = float(counts.sum()), float(len(codes) if mass is None else mass.sum())
    if known <= 0:
        return None
    code = float(np.argmax(counts))
    return Usual(code, code, code, float(counts.max()) / known, min(max(1.0 - known / total, 0.0), 1.0))
