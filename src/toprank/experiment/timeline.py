"""Rows in the order of their times, and lengths of time measured in the unit of these times.

Owns everything `PrequentialSplit` knows about dates, durations and column types. All arithmetic is exact: times are
whole numbers of a unit or floats, lengths are fractions, and rows are counted by comparing the two.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import is_missing, is_real
from toprank.words.nearest import did_you_mean

_SECONDS = {
    "W": Fraction(604_800),
    "D": Fraction(86_400),
    "h": Fraction(3_600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_UNIT_OF_WORD = {"w": "W", "d": "D", "h": "h", "min": "m", "s": "s"}
_NAMES = {"D": "day", "h": "hour", "m": "minute", "s": "second"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(w|d|h|min|s)")


@dataclass(frozen=True)
class Length:
    """A length of time as the caller gave it: `size` in seconds for a duration, otherwise a plain number."""

    given: Any
    size: Fraction
    is_duration: bool


def read_length(given: Any, name: str, *, may_be_zero: bool = False, caller: str) -> Length:
    """Return the length given by a number, a timedelta or a string such as "180d"."""
    size = _seconds(given)
    is_duration = size is not None
    is_number = is_real(given) and not isinstance(given, np.timedelta64)  # numpy treats a timedelta64 as an integer
    if is_number and np.isfinite(given):
        size = Fraction(given.item() if isinstance(given, np.generic) else given)
    if size is None or size < 0 or (size == 0 and not may_be_zero):
        least = "of at least 0" if may_be_zero else "above 0"
        raise (InputError if is_number or isinstance(given, str | timedelta | np.timedelta64) else InputTypeError)(
            f"The '{name}' parameter of {caller} must be a length of time {least}: a number in the unit of the times, "
            f"a numpy.timedelta64 or a string such as '180d'. Got {given!r} instead. Hint: the units are w, d, h, min "
            "and s; months and years differ in length."
        )
    return Length(given, size, is_duration)


def _seconds(given: Any) -> Fraction | None:
    """Return the seconds of a duration, None for anything else."""
    if isinstance(given, str):
        match = _DURATION.fullmatch(given.strip())
        return Fraction(match[1]) * _SECONDS[_UNIT_OF_WORD[match[2]]] if match else None
    if isinstance(given, timedelta) and given == given:  # NaT of pandas differs from itself
        return Fraction(given // timedelta(microseconds=1), 10**6)
    if isinstance(given, np.timedelta64) and not np.isnat(given):
        unit, count = np.datetime_data(given.dtype)
        return int(given.astype(np.int64)) * count * _SECONDS[unit] if unit in _SECONDS else None
    return None


@dataclass(frozen=True)
class Timeline:
    """Rows in the order of their times."""

    order: NDArray[np.intp]  # positions of the rows, earliest first
    times: NDArray[Any]  # int64 or float64, ascending; dates as whole numbers of `unit` since 1970
    unit: str | None  # numpy's name of the unit of dates; None for numbers
    # Step from the last time to the end of the data: for dates the coarsest unit (a day, an hour, ...) of which all
    # differences are multiples; 1 for whole numbers; otherwise the distance to the next float.
    tick: Fraction

    @property
    def start(self) -> Fraction:
        """The first time."""
        return Fraction(self.times[0].item())

    @property
    def end(self) -> Fraction:
        """The first moment after the last time."""
        return Fraction(self.times[-1].item()) + self.tick

    def count_before(self, moment: Fraction) -> int:
        """Return the number of rows before a moment."""
        return bisect_left(self.times, moment, key=np.generic.item)  # Python's numbers compare with fractions exactly

    def count_through(self, moment: Fraction) -> int:
        """Return the number of rows before or at a moment."""
        return bisect_right(self.times, moment, key=np.generic.item)

    def measure(self, length: Length, name: str, *, caller: str) -> Fraction:
        """Return a length in the unit of the times."""
        if length.size and length.is_duration != (self.unit is not None):
            found, wanted = ("numbers", "a number") if self.unit is None else ("dates", "a duration such as '180d'")
            raise InputTypeError(
                f"The '{name}' parameter of {caller} must be {wanted}, as the times are {found}. Got {length.given!r} "
                "instead. Hint: windows and times are in the same unit."
            )
        return length.size / _SECONDS[self.unit] if self.unit is not None else length.size

    def say(self, length: Fraction) -> str:
        """Return a length in words."""
        if self.unit is None:
            return f"{float(length):g}"
        seconds = length * _SECONDS[self.unit]
        unit = next((unit for unit in _NAMES if seconds >= _SECONDS[unit]), "s")
        size = f"{float(seconds / _SECONDS[unit]):g}"
        return f"{size} {_NAMES[unit]}{'' if size == '1' else 's'}"

    def moment(self, moment: Fraction) -> Any:
        """Return a moment as a date or a number; rounded up to a whole number of the unit of dates."""
        if self.unit is not None:
            return np.array(ceil(moment)).astype(f"datetime64[{self.unit}]")[()]
        return int(moment) if moment.denominator == 1 else float(moment)


def read_times(times: Any, X: Any, *, caller: str) -> Timeline:
    """Return the timeline of the rows of X; `times` are their times, or the name of their column."""
    if isinstance(times, str):
        times = read_column(X, times, caller=caller)
    elif times is None:
        raise InputError(
            f"{caller} needs the times of the rows, but 'times' is None. Hint: pass the name of a column of X, or an "
            "array with a time per row."
        )
    values = _numbers_or_dates(times, caller)
    n = None if X is None else X.shape[0] if hasattr(X, "shape") else len(X)
    if n is not None and len(values) != n:
        raise InputError(
            f"'times' of {caller} must have one value per row of X ({n:,} rows). Got {len(values):,} values. Hint: in "
            "nested searches name a column of X instead, so that the times are split along with the rows."
        )
    is_bad = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if is_bad.any():
        raise InputError(
            f"'times' of {caller} must have a time for every row, but {int(is_bad.sum()):,} of {len(values):,} are "
            f"missing or infinite (the first in row {int(is_bad.argmax())}). Hint: drop the rows without a time."
        )
    unit = None
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        values = values.astype(np.int64)
    order = np.argsort(values, kind="stable")
    return Timeline(order, values[order], unit, _tick(values, unit))


def read_column(X: Any, name: str, *, caller: str) -> nw.Series:
    """Return a column of a data frame."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise InputTypeError(
            f"{caller} reads the column {name!r} of X, so X must be a data frame. Got {type(X).__name__} instead. "
            "Hint: use a frame of pandas, polars or pyarrow."
        )
    if name not in frame.columns:
        hint = did_you_mean(name, map(str, frame.columns)) or " Hint: columns that are not features must be in X too."
        raise InputError(
            f"{caller} reads the column {name!r} of X, which is not among its {len(frame.columns):,} columns.{hint}"
        )
    return frame[name]


def _numbers_or_dates(times: Any, caller: str) -> NDArray[Any]:
    """Return the times as integers, floats or datetime64; with a time zone, in UTC."""
    series = nw.from_native(times, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        values = series.to_numpy()
    else:
        values = np.asarray(times)
    if values.dtype == object and values.ndim == 1:
        values = _from_objects(values)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"'times' of {caller} must be one column with at least one row. Got an array of shape {values.shape}. "
            "Hint: pass a list, an array or one column of a table."
        )
    if values.dtype.kind not in "iufM":
        raise InputTypeError(
            f"'times' of {caller} must be numbers or dates. Got dtype {values.dtype} instead. Hint: text becomes dates "
            "with pandas.to_datetime, or with str.to_date in polars."
        )
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        unit = "D" if unit in ("Y", "M", "W") else unit if unit in _SECONDS else "ns"
        return values.astype(f"datetime64[{unit}]")
    return values


def _from_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return Python dates as datetime64, numbers as numbers, anything else unchanged."""
    listed: Sequence[Any] = [None if is_missing(value) else value for value in values]
    known = [value for value in listed if value is not None]
    if known and all(isinstance(value, date) for value in known):
        has_zone = [isinstance(value, datetime) and value.tzinfo is not None for value in listed]
        plain = [value.astimezone(UTC).replace(tzinfo=None) if has else value
                 for value, has in zip(listed, has_zone, strict=True)]  # fmt: skip
        return np.array(plain, dtype="datetime64[us]")
    if known and all(is_real(value) for value in known):
        return np.array([np.nan if value is None else value for value in listed])
    return values


def _tick(values: NDArray[Any], unit: str | None) -> Fraction:
    """Return the step to the first moment after the last time."""
    if unit is None:
        if values.dtype.kind != "f" or bool((values == np.floor(values)).all()):
            return Fraction(1)
        last = values.max()
        return Fraction(np.nextafter(last, np.inf).item()) - Fraction(last.item())
    for coarse in ("D", "h", "m", "s", "ms", "us"):
        step = _SECONDS[coarse] / _SECONDS[unit]
        if step.denominator == 1 and bool(((values.max() - values) % step.numerator == 0).all()):
            return step
    return Fraction(1)
