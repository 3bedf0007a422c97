"""Bands: ranges of numbers written as text, such as "15-19", "< 18", "65+" or "(0.5, 10.0]", and their order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from toprank.data.number_text import read_number
from toprank.tree.columns import NUMBER_FORMS

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
