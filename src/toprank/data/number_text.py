"""Numbers written as text: the format of a column, and the number in a cell.

"1,234.56", "1.234,56", "10 000 EUR", "12.3 %", "$1,200", "(123)" are numbers. Codes are not: "00273", post codes,
telephone numbers.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from toprank.tree.columns import NUMBER_FORMS

NEARLY_ALL = 0.9
"""Share of a column's distinct values that must have one form."""

FEW_DISTINCT = 20
"""Plain integers are codes if a column has at most this many of them."""

CODE_DIGITS, LONG_CODE_DIGITS = 4, 9
"""Digits from which plain integers are codes if all have the same length, and if they do not."""

SAMPLE = 200
"""Distinct values checked first; they rule out most columns of text."""

SIGNS = "+-\u2212"
SPACES = " \u00a0\u202f'\u2019"
"""Separators of groups of digits, besides the point or the comma."""
CURRENCIES = (
    r"[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20ba\u20a9]|(?:EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|TRY|RUB|"
    r"KRW|SGD|HKD)"
)
SUFFIXES = rf"{CURRENCIES}|%|\u2030|(?:kg|g|mg|t|km|m|cm|mm|l|ml|kWh|kW|h|min|s)\b|(?<= )[^\W\d_]+\.?"
"""Units after a number; other words need a space before them."""

PLAIN = re.compile(r"\d+(?:\.0+)?")
LEADING_ZERO = re.compile(r"[+-]?0\d+")


class NumberForm(NamedTuple):
    """How the numbers of a column are written: the form, one of `NUMBER_FORMS`, and their unit."""

    form: str
    unit: str


def _pattern(decimal: str) -> re.Pattern[str]:
    group = ("," if decimal == "." else ".") + SPACES
    digits = rf"\d{{1,3}}(?:(?P<group>[{re.escape(group)}])\d{{3}})(?:(?P=group)\d{{3}})*|\d+"
    number = rf"(?:{digits})(?:{re.escape(decimal)}\d+)?(?:[eE][+-]?\d+)?|{re.escape(decimal)}\d+"
    sign = rf"[{re.escape(SIGNS)}]"
    return re.compile(
        rf"(?P<open>\()?(?P<sign>{sign})?\s*(?P<before>{CURRENCIES})?\s*(?P<sign2>{sign})?"
        rf"(?P<number>{number})(?P<sign3>-)?[\s\u00a0\u202f]?(?P<after>{SUFFIXES})?(?P<close>\))?"
    )


PATTERNS = {form: _pattern(decimal) for form, decimal in zip(NUMBER_FORMS, ".,", strict=True)}


def read_number(text: str, form: str) -> tuple[float, str] | None:
    """Return the number in a cell and its unit; None if the cell is not a number.

    Examples
    --------
    >>> read_number("1,234.56", "1,234.56"), read_number("10 000 EUR", "1,234.56"), read_number("12,3 %", "1.234,56")
    ((1234.56, ''), (10000.0, 'EUR'), (12.3, '%'))
    >>> read_number("(123)", "1,234.56"), read_number("12 to 15", "1,234.56")
    ((-123.0, ''), None)
    """
    match = PATTERNS[form].fullmatch(text.strip())
    if match is None:
        return None
    part = match.groupdict()
    signs = [part[name] for name in ("sign", "sign2", "sign3") if part[name]]
    if (part["open"] is None) != (part["close"] is None) or len(signs) + (part["open"] is not None) > 1:
        return None
    if part["before"] and part["after"]:
        return None
    decimal = "." if form == NUMBER_FORMS[0] else ","
    digits = "".join(c for c in part["number"] if c.isdigit() or c in "eE+-" or c == decimal).replace(",", ".")
    value = float(digits)
    if not math.isfinite(value):
        return None
    is_negative = part["open"] is not None or (bool(signs) and signs[0] != "+")
    return -value if is_negative else value, part["before"] or part["after"] or ""


def learn_number_form(distinct: Sequence[str]) -> NumberForm | None:
    """Return how the numbers of a column are written; None if it is not a column of numbers.

    Nearly all distinct values must be numbers of one form and one unit. If both forms fit equally well, as for "1,234"
    alone, the point is the decimal mark. Integers without sign, unit or separator may be codes: they are if one begins
    with a zero, if the column has few of them, if all have the same length of four digits or more, and if they are very
    long.

    Examples
    --------
    >>> learn_number_form(["1.234,50", "12,3", "7"])
    NumberForm(form='1.234,56', unit='')
    >>> learn_number_form(["00273", "10115", "80331"]) is None
    True
    """
    if len(distinct) > 2 * SAMPLE:
        step = len(distinct) // SAMPLE
        if _learn(distinct[::step], may_be_few=True) is None:
            return None
    return _learn(distinct)


def _learn(distinct: Sequence[str], may_be_few: bool = False) -> NumberForm | None:
    known = [text.strip() for text in distinct if text.strip()]
    best: tuple[int, NumberForm] | None = None
    for form in NUMBER_FORMS:
        units = Counter(read[1] for text in known if (read := read_number(text, form)) is not None)
        if units:
            unit, n = units.most_common(1)[0]
            if best is None or n > best[0]:
                best = n, NumberForm(form, unit)
    if best is None or best[0] < NEARLY_ALL * len(known):
        return None
    found = best[1]
    if not found.unit and any(LEADING_ZERO.fullmatch(text) for text in known):
        return None
    numbers = [text for text in known if (read := read_number(text, found.form)) is not None and read[1] == found.unit]
    if all(PLAIN.fullmatch(text) for text in numbers):
        lengths = sorted(len(text.partition(".")[0]) for text in numbers)
        one_length = lengths[0] == lengths[-1] >= CODE_DIGITS
        is_few = len(numbers) <= FEW_DISTINCT and not may_be_few
        if is_few or one_length or lengths[len(lengths) // 2] >= LONG_CODE_DIGITS:
            return None
    return found


def numbers_of(distinct: Sequence[str], found: NumberForm) -> list[float]:
    """Return the number in each text, NaN if it has another form or unit."""
    read = [read_number(text, found.form) for text in distinct]
    return [math.nan if each is None or each[1] != found.unit else each[0] for each in read]
