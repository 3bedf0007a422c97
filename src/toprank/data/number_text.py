"""Numbers and bands written as text: the format of a column, the number in a cell, the order of bands.

"1,234.56", "1.234,56", "0,103", "10 000 EUR", "12.3 %", "$1,200", "(123)" are numbers. Codes are not: "00273", post
codes, telephone numbers. Bands are ranges of numbers, such as "15-19", "< 18", "65+" or "(0.5, 10.0]".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from toprank.tree.columns import NUMBER_FORMS, Column
from toprank.words.counts import plural
from toprank.words.visible import quoted

NEARLY_ALL = 0.9
"""Share of a column's distinct values that must have one form."""

FEW_DISTINCT = 20
"""Plain integers are codes if a column has at most this many of them."""

CODE_DIGITS, LONG_CODE_DIGITS = 4, 9
"""Digits from which plain integers are codes if all have the same length, and if they do not."""

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
LEADING_ZERO = re.compile(r"0\d+")


class NumberForm(NamedTuple):
    """How the numbers of a column are written: form, unit and zero_groups as in `Column`."""

    form: str
    unit: str
    zero_groups: bool = False

    @classmethod
    def from_column(cls, column: Column) -> NumberForm:
        """How a trained model reads the numbers of a column."""
        return cls(column.form, column.unit, column.zero_groups)

    @property
    def as_written(self) -> str:
        """The format in words: 1,234.56 EUR."""
        return f"{self.form} {self.unit}".rstrip()


def _pattern(decimal: str, *, zero_groups: bool) -> re.Pattern[str]:
    group = ("," if decimal == "." else ".") + SPACES
    first = r"\d{1,3}" if zero_groups else r"[1-9]\d{0,2}"  # "0,103" has a decimal comma, not a group of thousands
    digits = rf"{first}(?:(?P<group>[{re.escape(group)}])\d{{3}})(?:(?P=group)\d{{3}})*|\d+"
    number = rf"(?:{digits})(?:{re.escape(decimal)}\d+)?(?:[eE][+-]?\d+)?|{re.escape(decimal)}\d+"
    sign = rf"[{re.escape(SIGNS)}]"
    return re.compile(
        rf"(?P<open>\()?(?P<sign>{sign})?\s*(?P<before>{CURRENCIES})?\s*(?P<sign2>{sign})?"
        rf"(?P<number>{number})(?P<sign3>-)?[\s\u00a0\u202f]?(?P<after>{SUFFIXES})?(?P<close>\))?"
    )


PATTERNS = {
    (form, zero_groups): _pattern(decimal, zero_groups=zero_groups)
    for form, decimal in zip(NUMBER_FORMS, ".,", strict=True)
    for zero_groups in (False, True)
}


def read_number(text: str, form: str, *, zero_groups: bool = False) -> tuple[float, str] | None:
    """Return the number in a cell and its unit; None if the cell is not a number.

    `zero_groups` is that of `Column`.

    Examples
    --------
    >>> read_number("1,234.56", "1,234.56"), read_number("10 000 EUR", "1,234.56"), read_number("12,3 %", "1.234,56")
    ((1234.56, ''), (10000.0, 'EUR'), (12.3, '%'))
    >>> read_number("(123)", "1,234.56"), read_number("12 to 15", "1,234.56")
    ((-123.0, ''), None)
    >>> read_number("0,103", "1.234,56"), read_number("0,103", "1,234.56")
    ((0.103, ''), None)
    """
    match = PATTERNS[form, zero_groups].fullmatch(text.strip())
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


def learn_number_form(distinct: Sequence[str], may_be_few: bool = False) -> NumberForm | None:
    """Return how the numbers of a column are written; None if it is not a column of numbers.

    Nearly all distinct values must be numbers of one form and one unit. If both forms fit equally well, as for "1,234"
    alone, the point is the decimal mark; "0,103" beside it makes it the comma. Integers without sign, unit or separator
    may be codes, if the column holds nothing else: they are if one begins with a zero, if the column has few of them
    (unless `may_be_few`), if all have the same length of four digits or more, and if they are very long.

    Examples
    --------
    >>> learn_number_form(["1.234,50", "12,3", "7"])
    NumberForm(form='1.234,56', unit='', zero_groups=False)
    >>> learn_number_form(["00273", "10115", "80331"]) is None
    True
    >>> learn_number_form(["0.14", "2.29", "05"])
    NumberForm(form='1,234.56', unit='', zero_groups=False)
    """
    known = [text.strip() for text in distinct if text.strip()]
    found = _form_of_nearly_all(known)
    if found is None:
        return None
    numbers = [text for text in known if (read := read_number(text, found.form)) is not None and read[1] == found.unit]
    if all(PLAIN.fullmatch(text) for text in numbers):
        lengths = sorted(len(text.partition(".")[0]) for text in numbers)
        one_length = lengths[0] == lengths[-1] >= CODE_DIGITS
        is_few = len(numbers) <= FEW_DISTINCT and not may_be_few
        is_padded = any(LEADING_ZERO.fullmatch(text) for text in numbers)
        if is_few or is_padded or one_length or lengths[len(lengths) // 2] >= LONG_CODE_DIGITS:
            return None
    return found


def commonest_form(distinct: Sequence[str]) -> tuple[NumberForm, int] | None:
    """Return the form and unit of most of the texts that are numbers, and how many texts have it; None without numbers.

    If both forms fit equally well, the point is the decimal mark.

    Examples
    --------
    >>> commonest_form(["12.5", "7", "3,5 EUR", "n/a"])
    (NumberForm(form='1,234.56', unit='', zero_groups=False), 2)
    """
    return _commonest(distinct, len(distinct))


def _form_of_nearly_all(known: Sequence[str]) -> NumberForm | None:
    """Return the form and unit of nearly all texts, in whatever order they come; None if they have none."""
    best = _commonest(known, math.floor((1 - NEARLY_ALL) * len(known)) + 1)  # one more, as the product may be too small
    return None if best is None or best[1] < NEARLY_ALL * len(known) else best[0]


def _commonest(distinct: Sequence[str], most_others: int) -> tuple[NumberForm, int] | None:
    """Return `commonest_form`; forms are given up at more than `most_others` texts that are no numbers in them."""
    best: tuple[NumberForm, int] | None = None
    for form in NUMBER_FORMS:
        units: Counter[str] = Counter()
        n_others = 0
        for text in distinct:
            read = read_number(text, form)
            if read is not None:
                units[read[1]] += 1
                continue
            n_others += 1
            if n_others > most_others:
                break
        if n_others <= most_others and units:
            unit, n = units.most_common(1)[0]
            if best is None or n > best[1]:
                best = NumberForm(form, unit), n
    return best


def numbers_of(distinct: Sequence[str], found: NumberForm) -> list[float]:
    """Return the number in each text, NaN if it has another form or unit."""
    read = [read_number(text, found.form, zero_groups=found.zero_groups) for text in distinct]
    return [math.nan if each is None or each[1] != found.unit else each[0] for each in read]


def why_no_numbers(distinct: Sequence[str], counts: Sequence[int]) -> str:
    """Return why a column that looks like numbers is none, in words; empty if it looks like names or codes.

    It looks like numbers if at least half of its distinct values are numbers of one form, most of them with a unit, a
    sign, a separator or decimals; `counts` says how many cells hold each.

    Examples
    --------
    >>> why_no_numbers(["$5.25", "$1,200.00", "$7.10", "(55.70)"], [1, 1, 1, 2])
    "looks like numbers, but 2 of 5 cells are not written as 1,234.56 $, such as '(55.70)'"
    >>> why_no_numbers(["1.7k", "12.4k"], [1, 1])
    "looks like numbers with k or M, such as '1.7k', which are not read"
    >>> why_no_numbers(["A12", "A13"], [1, 1])
    ''
    """
    texts = {text: n for text, n in zip(distinct, counts, strict=True) if text.strip()}
    sizes = [match for text in texts if (match := MAGNITUDE.fullmatch(text.strip())) is not None]
    if any(
        2 * sum(read_number(size["number"], form) is not None for size in sizes) > len(texts) for form in NUMBER_FORMS
    ):
        return f"looks like numbers with k or M, such as {quoted(sizes[0].string)}, which are not read"
    best = commonest_form(list(texts))
    if best is None:
        return ""
    form = best[0]
    numbers = [text for text in texts if read_number(text, form.form) is not None]
    n_plain = sum(PLAIN.fullmatch(text.strip()) is not None for text in numbers)
    if 2 * len(numbers) < len(texts) or 2 * n_plain >= len(numbers):
        return ""
    others = [text for text, value in zip(texts, numbers_of(list(texts), form), strict=True) if math.isnan(value)]
    if not others:
        return ""
    example = min(others, key=lambda text: (-texts[text], text))
    n_others, n_cells = sum(texts[text] for text in others), sum(texts.values())
    are = "is" if n_others == 1 else "are"
    return (
        f"looks like numbers, but {n_others:,} of {plural(n_cells, 'cell')} {are} not written as {form.as_written}, "
        f"such as {quoted(example)}"
    )


# --- bands --------------------------------------------------------------------------------------------------------

LEAST_BANDS = 3
"""Two values have no order that matters."""

BELOW = r"<=?|\u2264|under|below|less than|up to|at most"
ABOVE = r">=?|\u2265|over|above|more than|at least"
END_BELOW = r"(?:or|and) (?:less|fewer|under|below|younger|lower)"
END_ABOVE = r"(?:or|and) (?:more|over|above|older|up|higher)"

BRACKETS = re.compile(r"[\[(]\s*(?P<low>[^,;\[\]()]+)[,;]\s*(?P<high>[^,;\[\]()]+)[\])]")
OPEN_BELOW = re.compile(rf"(?:{BELOW})\s*(?P<before>.+)|(?P<after>.+?)\s+{END_BELOW}", re.IGNORECASE)
OPEN_ABOVE = re.compile(
    rf"(?:{ABOVE})\s*(?P<before>.+)|(?P<after>.+?)\s+{END_ABOVE}|(?P<plus>.*\d\S*?)\s*\+(?P<unit>\s*[^\W\d_]*)",
    re.IGNORECASE,
)
CLOSED = re.compile(r"(?P<low>.+?)\s*(?:[-\u2013\u2014]|\.{2,3}|\bto\b)\s*(?P<high>.+)", re.IGNORECASE)
NOTHING = frozenset({"none", "nil", "zero", "never", "new"})
"""Words for a count or an age of zero, below all bands."""
MAGNITUDE = re.compile(r"(?P<number>.*\d)\s?(?P<letter>[kKM])")
MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6}


class Band(NamedTuple):
    """A range of numbers, with infinite ends if it is open, and the unit of its ends; a plain number is its own range.

    `is_range` is False for a plain number.
    """

    low: float
    high: float
    unit: str
    is_range: bool = True


def read_band(text: str, form: str) -> Band | None:
    """Return the band that a text names, None if it names none; `form` is one of `NUMBER_FORMS`.

    Examples
    --------
    >>> read_band("15-19", "1,234.56")
    Band(low=15.0, high=19.0, unit='', is_range=True)
    >>> read_band("< 1 year", "1,234.56"), read_band("$50k+", "1,234.56")
    (Band(low=-inf, high=1.0, unit='year', is_range=True), Band(low=50000.0, high=inf, unit='$', is_range=True))
    >>> read_band("3-1", "1,234.56") is None
    True
    """
    text = text.strip()
    if text.lower() in NOTHING:
        return Band(-math.inf, -math.inf, "", is_range=False)
    if (number := _read_end(text, form)) is not None:
        return Band(number[0], number[0], number[1], is_range=False)
    if (match := BRACKETS.fullmatch(text)) is not None:
        return _between(match["low"], match["high"], form)
    if (match := OPEN_BELOW.fullmatch(text)) is not None:
        end = _read_end(match["before"] or match["after"], form)
        return None if end is None else Band(-math.inf, *end)
    if (match := OPEN_ABOVE.fullmatch(text)) is not None:
        end = _read_end(match["before"] or match["after"] or match["plus"] + match["unit"], form)
        return None if end is None else Band(end[0], math.inf, end[1])
    match = CLOSED.fullmatch(text)
    return None if match is None else _between(match["low"], match["high"], form)


def _between(low: str, high: str, form: str) -> Band | None:
    """Return the band between two ends; None if they are no numbers, not ascending, or of two units."""
    first, last = _read_end(low, form), _read_end(high, form)
    if first is None or last is None or not first[0] < last[0] or (first[1] and last[1] and first[1] != last[1]):
        return None
    return Band(first[0], last[0], first[1] or last[1])


def _read_end(text: str, form: str) -> tuple[float, str] | None:
    """Return the number at the end of a band and its unit, in the singular; None if there is none."""
    text = text.strip()
    if text.lower().lstrip("+-") == "inf":
        return (-math.inf if text.startswith("-") else math.inf), ""
    size = 1.0
    if (match := MAGNITUDE.fullmatch(text)) is not None:
        text, size = match["number"], MAGNITUDES[match["letter"]]
    number = read_number(text, form)
    if number is None or text.endswith("-"):  # "5-" is a number elsewhere
        return None
    value, unit = number
    return value * size, unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit


def ordered_bands(names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the distinct values of a column in ascending order if they are bands, else None.

    All values must be bands or numbers of one unit that do not overlap, with at least one band among them. Words such
    as "none" and "new" are below all bands; with other words the values have no order.

    Examples
    --------
    >>> ordered_bands(["more than 4", "1", "none", "2 to 4"])
    ('none', '1', '2 to 4', 'more than 4')
    >>> ordered_bands(["32-34", "32-36", "34-36"]) is None  # these overlap
    True
    """
    if len(names) < LEAST_BANDS:
        return None
    for form in NUMBER_FORMS:
        read = {name: band for name in names if (band := read_band(name, form)) is not None}
        ordered = sorted(read, key=lambda name: read[name][:2])
        if len(read) == len(names) and _are_bands([read[name] for name in ordered]):
            return tuple(ordered)
    return None


def _are_bands(bands: Sequence[Band]) -> bool:
    """Return True if sorted bands do not overlap and have one unit, and some are ranges."""
    return (
        len({band.unit for band in bands if band.unit}) <= 1
        and any(band.is_range for band in bands)
        and all(a.high <= b.low and a[:2] != b[:2] for a, b in pairwise(bands))
    )
