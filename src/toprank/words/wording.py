"""Conditions in words: numbers, ranges, lists of categories, weighted sums.

The wording is the same wherever a condition is shown: in reasons, rules and text trees. `Detail` says how much of it
is shown: `SHORT` for reading, `EXACT` for applying; `shortenings` says what a short text leaves out. Whole paths are
put together elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from toprank._core.dtypes import CATEGORY, OBLIQUE
from toprank.tree.columns import Category, Column, span_text
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import (
    DIGITS,
    EXACT_DIGITS,
    PLAIN,
    bound_decimal,
    decimal_text,
    lift_text,
    number_text,
    percent_text,
    rounded,
)
from toprank.words.visible import visible

WEIGHT_DIGITS = 3
"""Significant digits of a weight or of points, in short."""

PLAIN_NAME = re.compile(r"[^\W\d][\w./-]*(?: \w[\w./-]*)*")
"""Names that need no quotes in an exact text, unless they contain one of its own words."""

WORDS = frozenset({
    "above", "all", "and", "any", "false", "inf", "infinity", "is", "leaf", "missing", "nan", "neither", "no", "none",
    "nor", "not", "of", "or", "true", "x", "yes",
})  # fmt: skip
"""Words of the texts themselves, and Python's names of values."""


@dataclass(frozen=True)
class Detail:
    """How much of a condition is shown.

    Attributes
    ----------
    names : int or None
        Names, or terms of a sum, to list before the rest is counted; None lists all.
    characters : int or None
        Characters of a category's name before it is cut off; in quotes if it could be read as several names. None gives
        full names, in quotes (as in JSON) if they are ambiguous.
    digits : int
        Significant digits of a number, if these suffice; 17 are all, written as in Python.

    Examples
    --------
    >>> SHORT.number(1234567.891), EXACT.number(1234567.891)
    ('1,234,568', '1234567.891')
    >>> SHORT.label("fish, chips or both"), EXACT.label("fish, chips or both"), EXACT.label("fish")
    ('"fish, chips or both"', '"fish, chips or both"', 'fish')
    """

    names: int | None = 3
    characters: int | None = 40
    digits: int = DIGITS

    @property
    def is_exact(self) -> bool:
        """True if nothing is left out, so that the text can be applied."""
        return self.digits == EXACT_DIGITS

    def number(self, value: float, digits: int | None = None) -> str:
        """Return a number; in short form with the given number of digits."""
        return repr(float(value)) if self.is_exact else number_text(value, digits or self.digits)

    def count(self, number: int) -> str:
        """Return a whole number; in short form with thousands separators."""
        return str(int(number)) if self.is_exact else f"{number:,}"

    def name(self, name: str) -> str:
        """Return the name of a column, never cut off."""
        return _quoted(name) if self.is_exact else one_line(name)

    def label(self, label: Category) -> str:
        """Return the name of a category or class; in short form on one line and cut off if very long."""
        if self.is_exact:
            return _quoted(label) if isinstance(label, str) else repr(label)
        quote = isinstance(label, str) and is_ambiguous(label)
        text = str(label) if quote else one_line(label)
        if self.characters is not None and len(text) > self.characters:
            text = f"{text[: self.characters - 3]}..."
        return _in_quotes(text) if quote else text


SHORT = Detail()
"""For reading: in reasons, plots and on a terminal."""

EXACT = Detail(names=None, characters=None, digits=EXACT_DIGITS)
"""For applying: answering the questions of an exact text leads to the same leaf as the model."""


def _quoted(name: str) -> str:
    """Return a name, in quotes as in JSON if it is ambiguous."""
    if PLAIN_NAME.fullmatch(name) and WORDS.isdisjoint(name.lower().split()):
        return name
    return _in_quotes(name)


def _in_quotes(name: str) -> str:
    """Return a name in quotes, as in JSON."""
    return json.dumps(name, ensure_ascii=not name.isprintable())


def is_ambiguous(name: str) -> bool:
    """Return True if a name in a text could be read as several, or as the next condition, or has spaces at an end.

    Examples
    --------
    >>> [is_ambiguous(name) for name in ("bar, small", "bar; small", "tea or coffee", "tea and coffee", "bar ")]
    [True, True, True, True, True]
    >>> is_ambiguous("tea room")
    False
    """
    return any(mark in one_line(name) for mark in (",", ";", " or ", " and ")) or name != name.strip()


def _consistent(bounds: Sequence[float], value: float | None, detail: Detail) -> tuple[list[str], str]:
    """Return bounds and value as text; in short form with enough digits to differ."""
    if detail.is_exact:
        return [detail.number(bound) for bound in bounds], "" if value is None else detail.number(value)
    for digits in range(detail.digits, EXACT_DIGITS + 1):
        shown = [bound_decimal(bound, digits) for bound in bounds]
        number = None if value is None else rounded(value, digits)
        agrees = len(shown) < 2 or shown[0] < shown[1] or bounds[0] >= bounds[1]
        if value is not None and number is not None:
            agrees &= all((value <= bound) == (number <= seen) for bound, seen in zip(bounds, shown, strict=True))
        if agrees:
            break
    return [decimal_text(seen, PLAIN) for seen in shown], "" if number is None else decimal_text(number, PLAIN)


def range_text(
    name: str,
    low: float,
    high: float,
    missing: bool,
    value: float | None = None,
    detail: Detail = SHORT,
    nothing: str = "missing",
    column: Column | None = None,
) -> str:
    """Return `low < name <= high` in words; with a value, that value and the bounds it meets.

    `name` is that of a column, as returned by `Detail.name`, or a sum; bounds are infinite if open, and if low >= high,
    no number qualifies. `missing` says whether a missing value qualifies, which an exact text says for each range.
    `nothing` is the word for a value that is not a number, "" if there is none, see `sum_gap`. Of a date column, bounds
    and value are days since 1970-01-01, and are written as dates.

    Examples
    --------
    >>> range_text("age", 3, 12, False), range_text("age", -np.inf, 1200.5, True)
    ('3 < age <= 12', 'age <= 1200.5 or missing')
    >>> range_text("age", 3, np.inf, True, value=7.0), range_text("age", -np.inf, np.inf, False)
    ('age = 7 (> 3)', 'age is not missing')
    >>> range_text("age", 3, 12, False, detail=EXACT)
    '3.0 < age <= 12.0 and not missing'
    """
    if value is not None and np.isnan(value):
        return f"{name} is missing"
    bounds = [(sign, bound) for sign, bound in ((">", low), ("<=", high)) if np.isfinite(bound)]
    finite = [bound for _, bound in bounds]
    if column is not None and column.is_date:
        numbers = [column.bound_text(bound) for bound in finite]
        shown = "" if value is None else column.date_text(value)
    else:
        numbers, shown = _consistent(finite, value, detail)
    signed = [f"{sign} {number}" for (sign, _), number in zip(bounds, numbers, strict=True)]
    if value is not None:
        met = " and ".join(signed) or ("" if missing else "not missing")
        return f"{name} = {shown} ({met})" if met else f"{name} = {shown}"
    if low >= high:
        return f"{name} is missing" if missing else f"no {name} at all"
    if not bounds:
        return f"any {name}" if missing else f"{name} is not missing"
    words = f"{numbers[0]} < {name} <= {numbers[1]}" if len(bounds) == 2 else f"{name} {signed[0]}"
    if missing and nothing:
        return f"{words} or {nothing}"
    return f"{words} and not missing" if detail.is_exact and nothing == "missing" else words


def one_line(label: Category) -> str:
    """Return a name on one line, with control characters escaped; numbers as numbers, None as ''."""
    if isinstance(label, float):
        return decimal_text(rounded(label, EXACT_DIGITS))
    return visible(" ".join(str(label).split())) or "''"


def names_text(labels: Sequence[Category], *others: str, detail: Detail = SHORT) -> str:
    """Return a choice of names, then `others`: a; a or b; a, b or c; in short form one of 5 (a, b, c, ...).

    Examples
    --------
    >>> names_text("ab", "missing"), names_text("abcde")
    ('a, b or missing', 'one of 5 (a, b, c, ...)')
    """
    names = [*([_group(labels, detail)] if _is_long(labels, detail) else map(detail.label, labels)), *others]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def exclusion_text(labels: Sequence[Category], detail: Detail = SHORT) -> str:
    """Return an exclusion: not a; neither a nor b; none of a, b and c; in short form not one of 5 (a, b, c, ...)."""
    if _is_long(labels, detail):
        return f"not {_group(labels, detail)}"
    names = [detail.label(label) for label in labels]
    if len(names) == 1:
        return f"not {names[0]}"
    if len(names) == 2:
        return f"neither {names[0]} nor {names[1]}"
    return f"none of {', '.join(names[:-1])} and {names[-1]}"


def _is_long(labels: Sequence[Category], detail: Detail) -> bool:
    return detail.names is not None and len(labels) > detail.names


def _group(labels: Sequence[Category], detail: Detail) -> str:
    """Return many names in short form: one of 12 (a, b, c, ...)."""
    return f"one of {len(labels):,} ({', '.join(map(detail.label, labels[: detail.names]))}, ...)"


def labels_of(column: Column, codes: Collection[int]) -> list[Category]:
    """Return the categories of the codes, in the order of the codes."""
    return [label for code in sorted(codes) for label in column.labels(code)]


def category_text(
    column: Column, codes: Collection[int], missing: bool, value: float | None = None, detail: Detail = SHORT
) -> str:
    """Return a choice of categories in words, by the excluded ones if these are fewer. With a value, that value.

    In exact form the excluded ones are named if missing values qualify, else the choice: so an unknown category, which
    the model treats as missing, gets the right answer.

    `codes` are those that qualify, `value` is the code of one case, NaN for missing.

    Examples
    --------
    >>> sector = Column("sector", ("retail", "catering", "construction"))
    >>> category_text(sector, {1}, True), category_text(sector, {1, 2}, False)
    ('sector is catering or missing', 'sector is not retail')
    >>> age = Column("age", ("< 18", "18-24", "25-64", "65+"), is_ordered=True)
    >>> category_text(age, {1, 2, 3}, False), category_text(age, {1, 2}, False), category_text(age, {0, 1}, True)
    ('age is 18-24 or more', 'age is 18-24 or 25-64', 'age is < 18, 18-24 or missing')
    >>> category_text(sector, {1, 2}, False, value=2.0)
    'sector = construction'
    >>> category_text(sector, {1}, True, detail=EXACT), category_text(sector, {1, 2}, False, detail=EXACT)
    ('sector is neither retail nor construction, or is missing', 'sector is catering or construction')
    """
    assert column.categories is not None
    name, n = detail.name(column.name), len(column.categories)
    if value is not None:
        if not 0 <= value < n:
            return f"{name} is missing"
        labels = column.labels(int(value))
        return f"{name} = {detail.label(labels[0])}" if len(labels) == 1 else f"{name} is {names_text(labels)}"
    inside, outside = category_sides(column, codes)
    if not inside and not missing:
        return f"no {name} at all"
    if not outside and missing:
        return f"any {name}"
    if not detail.is_exact and not inside:
        return f"{name} is missing"
    if not detail.is_exact and not outside:
        return f"{name} is not missing"
    in_order = sorted(code for code in codes if code < n)
    are_neighbours = len(in_order) > 2 and in_order[-1] - in_order[0] == len(in_order) - 1  # two are simply listed
    if column.is_ordered and not detail.is_exact and are_neighbours:
        return f"{name} is {_bands_text(column, in_order)}{', or missing' if missing else ''}"
    if missing if detail.is_exact else len(outside) < len(inside):
        return f"{name} is {exclusion_text(outside, detail)}" + (", or is missing" if missing else "")
    return f"{name} is {names_text(inside, *(['missing'] if missing else []), detail=detail)}"


def _bands_text(column: Column, codes: Sequence[int]) -> str:
    """Return several bands in a row in words: 18-24 or more; 18-24 or less; from 18-24 to 35-44."""
    assert column.categories is not None
    start, end = SHORT.label(column.categories[codes[0]]), SHORT.label(column.categories[codes[-1]])
    if codes[-1] == len(column.categories) - 1:
        return f"{start} or more"
    if codes[0] == 0:
        return f"{end} or less"
    return span_text(start, end)


def category_sides(column: Column, codes: Collection[int]) -> tuple[list[Category], list[Category]]:
    """Return the categories of the codes, and the others."""
    n = len(column.categories or ())
    inside = labels_of(column, [code for code in codes if code < n])
    return inside, labels_of(column, set(range(n)).difference(codes))


class Term(NamedTuple):
    """One term of a weighted sum: a number, or 1 if the row has one category and 0 if not."""

    feature: int
    weight: float
    fill: float | None = None  # what a missing number counts as; None if it makes the sum missing
    code: int | None = None  # the category; None for a number

    @property
    def makes_missing(self) -> bool:
        """True if a missing value makes the sum missing."""
        return self.fill is None and self.code is None


def sum_terms(tree: Tree, node: int) -> tuple[Term, ...]:
    """Return the terms of a node's weighted sum, in the order of summation."""
    own = slice(tree.oblique_at[node], tree.oblique_at[node + 1])
    arrays = (tree.oblique_feature, tree.oblique_weight, tree.oblique_fill, tree.oblique_code)
    return tuple(
        Term(feature, weight, None if code >= 0 or np.isnan(fill) else fill, code if code >= 0 else None)
        for feature, weight, fill, code in zip(*(array[own].tolist() for array in arrays), strict=True)
    )


def sum_gap(terms: Sequence[Term], detail: Detail = SHORT) -> str:
    """Return the word for a weighted sum that is not a number: "missing" if it may lack a value, else "".

    In exact form "undefined" if nothing can be missing, but huge terms may overflow both ways.
    """
    if any(term.makes_missing for term in terms):
        return "missing"
    n_numbers = sum(term.code is None for term in terms)
    return "undefined" if detail.is_exact and n_numbers > 1 else ""


def term_text(column: Column, term: Term, detail: Detail = SHORT) -> str:
    """Return a term without its sign in words: 0.8 x age; 0.5 x (sector is retail).

    In exact form it says what a missing number counts as, if that is a number.
    """
    what = detail.name(column.name)
    if term.code is not None:
        what = f"({what} is {names_text(column.labels(term.code), detail=detail)})"
    elif detail.is_exact and term.fill is not None:
        what += f" (missing: {detail.number(term.fill)})"
    return f"{detail.number(abs(term.weight), WEIGHT_DIGITS)} x {what}"


def projection_text(summands: Sequence[Column], terms: Sequence[Term], detail: Detail = SHORT) -> str:
    """Return a weighted sum in words, in the order of its terms: 0.8 x turnover_gap - 0.3 x age.

    `summands` has the column of each term. Trees store the term that moves their rows most first; the weight alone is
    misleading: it depends on the unit of the column.

    Examples
    --------
    >>> terms = [Term(0, 0.81234, fill=0.5), Term(1, -0.3)]
    >>> projection_text([Column("gap"), Column("age")], terms)
    '0.812 x gap - 0.3 x age'
    >>> projection_text([Column("gap"), Column("age")], terms, EXACT)
    '0.81234 x gap (missing: 0.5) - 0.3 x age'
    """
    words = ""
    listed = terms[: detail.names]
    for term, column in zip(listed, summands, strict=False):
        sign = ("-" if term.weight < 0 else "") if not words else (" - " if term.weight < 0 else " + ")
        words += sign + term_text(column, term, detail)
    left_out = len(terms) - len(listed)
    return (words or "0") + (f" + {left_out} smaller term{'s' if left_out > 1 else ''}" if left_out else "")


def hits_text(positive: float, total: float, base_rate: float) -> str:
    """Return the training figures of a group in words: 118 of 402 positive (29.4 %, lift 14.7)."""
    words = f"{number_text(positive)} of {number_text(total)} positive"
    if total <= 0:
        return words
    rate = positive / total
    lift = f", lift {lift_text(rate / base_rate)}" if base_rate > 0 else ""
    return f"{words} ({percent_text(rate)}{lift})"


def is_rounded(value: float, digits: int = SHORT.digits) -> bool:
    """Return True if a short text shows a rounded number.

    Examples
    --------
    >>> is_rounded(0.25), is_rounded(0.123456)
    (False, True)
    """
    return bool(np.isfinite(value)) and rounded(value, digits) != Decimal(repr(float(value)))


def is_cut(labels: Sequence[Category]) -> bool:
    """Return True if a short text cuts this list or some of its names."""
    return len(labels) > len(labels[: SHORT.names]) or any(
        isinstance(label, str) and SHORT.label(label) not in (label, EXACT.label(label)) for label in labels
    )


def shortenings(tree: Tree, columns: Sequence[Column], nodes: Sequence[int]) -> list[str]:
    """Return what the short questions of these nodes leave out, in words: 3 lists, 2 sums, 1 number, missing values."""
    n_lists = n_sums = n_numbers = 0
    hides_missing = False
    for node in nodes:
        threshold = float(tree.threshold[node])
        threshold_is_rounded = bool(np.isfinite(threshold)) and bound_decimal(threshold) != Decimal(repr(threshold))
        if tree.kind[node] == OBLIQUE:
            n_sums += threshold_is_rounded or _is_short(columns, sum_terms(tree, node))
            continue
        column = columns[tree.feature[node]]
        hides_missing |= not column.has_missing
        if tree.kind[node] == CATEGORY:
            n_lists += is_cut(min(category_sides(column, tree.categories_left(node).tolist()), key=len))
        else:
            n_numbers += threshold_is_rounded and not column.is_date
    counted = [(n_lists, "list"), (n_sums, "sum"), (n_numbers, "number")]
    words = [plural(n, noun) for n, noun in counted if n]
    return [*words, "missing values"] if hides_missing else words


def _is_short(columns: Sequence[Column], terms: Sequence[Term]) -> bool:
    """Return True if a sum has unlisted terms, rounded weights, or fills for missing values."""
    return len(terms) > len(terms[: SHORT.names]) or any(
        is_rounded(term.weight, WEIGHT_DIGITS)
        or term.fill is not None
        or (term.code is not None and is_cut(columns[term.feature].labels(term.code)))
        for term in terms
    )


def shortened_lines(parts: Sequence[str]) -> list[str]:
    """Return the last lines of a short text: what it leaves out, and how to get it; none if nothing is left out.

    Examples
    --------
    >>> shortened_lines(["3 lists", "missing values"])
    ['', 'Shortened: 3 lists, missing values; use to_text(exact=True) for the full text.']
    """
    return ["", f"Shortened: {', '.join(parts)}; use to_text(exact=True) for the full text."] if parts else []
