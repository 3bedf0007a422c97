"""The value of one case in words, next to what is usual in its column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from toprank.tree.columns import Category, Column, Usual
from toprank.words.numbers import EXACT_DIGITS, PLAIN, decimal_text, percent_text, rounded
from toprank.words.wording import SHORT

MANY = 10_000
"""Numbers from here on are also rounded before the decimal point if they only say what is usual."""

Originals = Callable[[str], Sequence[Any] | None]
"""Returns a column's original values by its name, one per row, None for missing; or None if not available. Trees use
codes, so only the original says what an unseen or pooled category is."""


def value_of(column: Column, value: float, original: Any = None) -> Category | None:
    """Return a value as data: a number, a date as text, a category by name, None for missing.

    `original` is the value as the caller gave it, which names categories that have no code of their own.
    """
    if column.is_date:
        return None if np.isnan(value) else column.date_text(value)
    if column.categories is None:
        return None if np.isnan(value) else float(value)
    if original is not None:
        return original
    return column.categories[int(value)] if 0 <= value < len(column.categories) else None


def originals_by_feature(
    columns: Sequence[Column], X: np.ndarray, is_used: np.ndarray, originals: Originals | None
) -> dict[int, Sequence[Any]]:
    """Return original values, by feature, of the columns whose codes are ambiguous.

    Those are category columns where a used cell (`is_used`, bool of X's shape) is missing, unseen or pooled.
    """
    found: dict[int, Sequence[Any]] = {}
    for f, column in enumerate(columns):
        if originals is None or column.categories is None:
            continue
        values, last = X[is_used[:, f], f], len(column.categories) - 1
        is_plain = (values >= 0) & (values <= (last - 1 if column.shared else last))
        given = None if bool(np.all(is_plain)) else originals(column.name)
        if given is not None:
            found[f] = given
    return found


def value_text(
    column: Column,
    value: float,
    original: Any = None,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    with_usual: bool = True,
) -> str:
    """Return the value of one case in words: payroll_share = 0.05 (usually at least 0.15).

    `original` is the category as the caller gave it; None if missing or not available. `low` and `high` are bounds that
    the value meets: they are shown if the value is a usual one, or if it is not known what is usual.

    Examples
    --------
    >>> age = Column("age", usual=Usual(35.0, 21.0, 60.0, share=0.03, missing=0.02))
    >>> value_text(age, 17.0), value_text(age, 23.0, high=25.5), value_text(age, np.nan)
    ('age = 17 (usually at least 21)', 'age = 23 (<= 25.5, median 35)', 'age is missing (as in 2 % of cases)')
    >>> sector = Column("sector", ("bar", "shop"), usual=Usual(1.0, 1.0, 1.0, share=0.8, missing=0.0))
    >>> value_text(sector, 0.0), value_text(sector, np.nan, "zoo")
    ('sector = bar (usually shop)', 'sector = zoo (never seen in training)')
    """
    name = SHORT.name(column.name)
    usual = column.usual if with_usual else None
    if column.categories is None:
        if np.isnan(value):
            return f"{name} is missing{_missing_remark(column, usual)}"
        remarks_of = _date_remarks if column.is_date else _number_remarks
        shown, remarks = remarks_of(column, float(value), low, high, usual)
        return f"{name} = {shown}" + (f" ({', '.join(remarks)})" if remarks else "")
    if not 0 <= value < len(column.categories):
        if original is not None:
            return f"{name} = {SHORT.label(original)} (never seen in training)"
        return f"{name} is missing{_missing_remark(column, usual)}"
    labels = column.labels(int(value))
    label = labels[0] if original is None else original
    if len(labels) > 1:
        one = f"one of {len(labels):,} rare values"
        return f"{name} = {SHORT.label(label)} ({one})" if original is not None else f"{name} is {one}"
    return f"{name} = {SHORT.label(label)}{_category_remark(column, value, usual)}"


def _date_remarks(column: Column, value: float, low: float, high: float, usual: Usual | None) -> tuple[str, list[str]]:
    """Return a date and its remark: what is usual, if it is unusual, else the bounds that it meets."""
    if usual is not None and not usual.low <= value <= usual.high:
        is_early = value < usual.low
        end = column.date_text(usual.low if is_early else usual.high)
        return column.date_text(value), [f"usually {'from' if is_early else 'until'} {end}"]
    bounds = [f"{sign} {column.bound_text(bound)}" for sign, bound in ((">", low), ("<=", high)) if np.isfinite(bound)]
    return column.date_text(value), [" and ".join(bounds)] if bounds else []


def _number_remarks(
    column: Column, value: float, low: float, high: float, usual: Usual | None
) -> tuple[str, list[str]]:
    """Return a number and its remark.

    The remark says what is usual, if the value is unusual, else a bound that it meets and the median.
    """
    if usual is not None and not usual.low <= value <= usual.high:
        shown, side = _beside_usual(value, usual)
        return shown, [side]
    bounds = [(sign, bound) for sign, bound in ((">", low), ("<=", high)) if np.isfinite(bound)]
    if usual is not None and len(bounds) == 2:  # the bound nearer to the usual value says more
        bounds = bounds[:1] if value >= usual.value else bounds[1:]
    for digits in range(SHORT.digits, EXACT_DIGITS + 1):
        number = rounded(value, digits)
        # Rounded down, as in rules: a threshold midway between two values of a grid names the lower one.
        ends = [rounded(bound, digits, down=True) for _, bound in bounds]
        if all((value <= bound) == (number <= end) for (_, bound), end in zip(bounds, ends, strict=True)):
            break
    remarks = [" and ".join(f"{sign} {_shown(end)}" for (sign, _), end in zip(bounds, ends, strict=True))]
    if usual is not None:
        remarks.append(_how_often(usual) if usual.is_one_value else f"median {_shown(rounded(usual.value))}")
    return _shown(number), [remark for remark in remarks if remark]


def _shown(number: Decimal) -> str:
    """Return a number as conditions have it: thousands separators only from `PLAIN` on, so that years have none."""
    return decimal_text(number, PLAIN)


def _beside_usual(value: float, usual: Usual) -> tuple[str, str]:
    """Return an unusual number and the usual one, or the end of the usual range, with enough digits to differ.

    Ends are rounded outwards, to two digits if these suffice, so that no case changes sides.
    """
    for digits in range(SHORT.digits, EXACT_DIGITS + 1):
        number = rounded(value, digits)
        if usual.low == usual.high:
            if number != (one := rounded(usual.value, digits)):
                return _shown(number), f"usually {_shown(one)}"
            continue
        for few in range(2, digits + 1):
            if value < usual.low and (end := _outwards(usual.low, few, ROUND_FLOOR)) > number:
                return _shown(number), f"usually at least {_shown(end)}"
            if value > usual.high and (end := _outwards(usual.high, few, ROUND_CEILING)) < number:
                return _shown(number), f"usually at most {_shown(end)}"
    raise AssertionError("17 digits tell any two numbers apart")


def _outwards(value: float, digits: int, rounding: str) -> Decimal:
    """Return an end of a range in this many digits; years keep all digits, large amounts are rounded."""
    exact = Decimal(repr(float(value)))
    last = exact.adjusted() - digits + 1
    return exact.quantize(Decimal(1).scaleb(min(last, 0) if abs(exact) < MANY else last - 1), rounding)


def _category_remark(column: Column, value: float, usual: Usual | None) -> str:
    """Return the remark on a category: which one is the most common."""
    if usual is None or column.categories is None:
        return ""
    if value == usual.value:
        return f" ({_how_often(usual)})"
    labels = column.labels(int(usual.value))
    if len(labels) > 1:
        return f" (most often one of {len(labels):,} rare values)"
    return f" ({'usually' if usual.is_one_value else 'most often'} {SHORT.label(labels[0])})"


def _how_often(usual: Usual) -> str:
    """Return the remark on the usual value: how many cases have it."""
    return f"as in {percent_text(usual.share * (1.0 - usual.missing))} of cases"


def _missing_remark(column: Column, usual: Usual | None) -> str:
    """Return the remark on a missing value: how often it is missing."""
    if usual is None:
        return ""
    if usual.missing > 0:
        return f" (as in {percent_text(usual.missing)} of cases)"
    return " (rarely in training)" if column.has_missing else " (never in training)"
