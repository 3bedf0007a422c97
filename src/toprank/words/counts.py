"""Numbers with their nouns: 1 case, 2 cases. The same wherever a count is printed."""

from __future__ import annotations


def count(value: float) -> str:
    """Return a count: 1,234, or 12.5 if weights make it a fraction.

    Examples
    --------
    >>> count(1234), count(12.5), count(0.58 * 100)
    ('1,234', '12.5', '58')
    """
    rounded = round(float(value), 6)  # 0.58 * 100 is 57.99999999999999
    return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,.1f}"


def plural(n: float, noun: str, nouns: str = "") -> str:
    """Return a number and its noun.

    Examples
    --------
    >>> plural(1, "case"), plural(2000, "case"), plural(1, "leaf", "leaves"), plural(0, "leaf", "leaves")
    ('1 case', '2,000 cases', '1 leaf', '0 leaves')
    """
    return f"{count(n)} {noun if count(n) == '1' else nouns or f'{noun}s'}"


def in_units(n: float, units: str) -> str:
    """Return a number and its units, which are given in the plural.

    Examples
    --------
    >>> in_units(1, "leaves"), in_units(1, "conditions"), in_units(2000, "conditions")
    ('1 leaf', '1 condition', '2,000 conditions')
    """
    return plural(n, "leaf" if units == "leaves" else units.removesuffix("s"), units)


def hits_in_words(hits: float) -> str:
    """Return an expected number of hits, rounded; a small one is not called none.

    Examples
    --------
    >>> hits_in_words(97.3), hits_in_words(1.2), hits_in_words(0.4)
    ('97 hits', '1 hit', 'fewer than 1 hit')
    """
    return plural(round(hits), "hit") if round(hits) else "fewer than 1 hit"


def row_text(place: int) -> str:
    """Return a row of a file in words, given its place from 0; the line with the names of the columns does not count.

    Examples
    --------
    >>> row_text(3)
    'row 4 (counted from 1)'
    """
    return f"row {place + 1:,} (counted from 1)"


def every(n: int, of_one: str, of_several: str) -> str:
    """Return a subject with its verb for all of n things.

    Examples
    --------
    >>> every(1200, "row holds", "rows hold"), every(1, "row holds", "rows hold")
    ('all 1,200 rows hold', 'the only row holds')
    """
    return f"the only {of_one}" if n == 1 else f"all {n:,} {of_several}"
