"""Conditions in words: numbers, ranges, lists of categories, and the question that one node asks.

The wording is the same wherever a condition is shown: in reasons, rules and text trees. What a whole path
says is put together elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank.tree.columns import Category, Column
from toprank.tree.structure import Tree

MAX_NAMES = 4
"""Names listed before the rest is counted."""

MAX_LABEL = 40
"""Characters of a category's name before it is cut off."""

DIGITS = 4
"""Significant digits of a number where they suffice."""

EXACT_DIGITS = 17
NOISE_FREE = Context(prec=12)
"""0.7999999999999999 is 0.8: the trace of an addition, not a digit worth showing."""


def rounded(value: float, digits: int = DIGITS, *, down: bool = False) -> Decimal:
    """Decimal of at most `digits` significant digits, but never short of the whole part below 1e15."""
    exact = Decimal(repr(float(value)))
    if digits >= EXACT_DIGITS or not exact.is_finite():
        return exact
    if digits < NOISE_FREE.prec:
        exact = NOISE_FREE.plus(exact) if abs(exact) < 1e11 else exact
    size = exact.adjusted()
    last = size - digits + 1 if size >= 15 else min(size - digits + 1, 0)
    return exact.quantize(Decimal(1).scaleb(last), rounding=ROUND_FLOOR if down else ROUND_HALF_EVEN)


def decimal_text(number: Decimal) -> str:
    """Digits with thousands separators; powers of ten for the very large and the very small."""
    if number == 0:
        return "0"
    if not number.is_finite() or not Decimal("1e-4") <= abs(number) < Decimal("1e15"):
        return f"{number.normalize():e}" if number.is_finite() else str(float(number))
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_text(value: float, digits: int = DIGITS) -> str:
    """Return a number to read.

    Examples
    --------
    >>> number_text(1234567.8), number_text(0.123456), number_text(12.0)
    ('1,234,568', '0.1235', '12')
    """
    return decimal_text(rounded(value, digits))


def percent_text(share: float) -> str:
    """Return a share as a percentage of two or three significant digits: 29.4 %, 0.22 %."""
    return f"{number_text(100 * share, 2 if share < 0.01 else 3)} %"


def lift_text(lift: float) -> str:
    """Return a lift in two or three significant digits: 14.7, 0.91."""
    return number_text(lift, 2 if lift < 1 else 3)


def _consistent(bounds: Sequence[float], value: float | None) -> tuple[list[str], str]:
    """Bounds and value with as many digits as tell them apart.

    Bounds are rounded down: a threshold midway between two values of a grid then names the lower one, and
    `x <= threshold` stays true of the grid as it is written.
    """
    for digits in range(DIGITS, EXACT_DIGITS + 1):
        shown = [rounded(bound, digits, down=True) for bound in bounds]
        number = None if value is None else rounded(value, digits)
        agrees = len(shown) < 2 or shown[0] < shown[1] or bounds[0] >= bounds[1]
        if value is not None and number is not None:
            agrees &= all((value <= bound) == (number <= seen) for bound, seen in zip(bounds, shown, strict=True))
        if agrees:
            break
    return [decimal_text(seen) for seen in shown], "" if number is None else decimal_text(number)


def range_text(name: str, low: float, high: float, missing: bool, value: float | None = None) -> str:
    """Words for `low < name <= high`; with a value, that value and the bounds it meets.

    Parameters
    ----------
    name : str
    low, high : float
        Infinite where open. Where low >= high no number qualifies.
    missing : bool
        Whether a missing value qualifies.
    value : float or None
        The value of one case, NaN for missing.

    Examples
    --------
    >>> range_text("age", 3, 12, False), range_text("age", -np.inf, 1200.5, True)
    ('3 < age <= 12', 'age <= 1,200 or missing')
    >>> range_text("age", 3, np.inf, True, value=7.0), range_text("age", -np.inf, np.inf, False)
    ('age = 7 (> 3)', 'age is not missing')
    """
    name = one_line(name)
    if value is not None and np.isnan(value):
        return f"{name} is missing"
    bounds = [(sign, bound) for sign, bound in ((">", low), ("<=", high)) if np.isfinite(bound)]
    numbers, shown = _consistent([bound for _, bound in bounds], value)
    signed = [f"{sign} {number}" for (sign, _), number in zip(bounds, numbers, strict=True)]
    if value is not None:
        told = " and ".join(signed) or ("" if missing else "not missing")
        return f"{name} = {shown} ({told})" if told else f"{name} = {shown}"
    if low >= high:
        return f"{name} is missing" if missing else f"no {name} at all"
    if not bounds:
        return f"any {name}" if missing else f"{name} is not missing"
    words = f"{numbers[0]} < {name} <= {numbers[1]}" if len(bounds) == 2 else f"{name} {signed[0]}"
    return f"{words} or missing" if missing else words


def one_line(label: Category) -> str:
    """Return a name on one line; numbers as numbers, nothing as ''."""
    if isinstance(label, float):
        return decimal_text(rounded(label, EXACT_DIGITS))
    return " ".join(str(label).split()) or "''"


def label_text(label: Category) -> str:
    """Return a category's name, on one line and cut off where it is very long."""
    text = one_line(label)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 3]}..."


def names_text(labels: Sequence[Category], *others: str) -> str:
    """Words for a choice: at most four names, then how many more, then `others`."""
    names = [*_short_list(labels), *others]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def exclusion_text(labels: Sequence[Category]) -> str:
    """Words for what is ruled out: not a; neither a nor b; none of a, b and c."""
    names = _short_list(labels)
    if len(names) == 1:
        return f"not {names[0]}"
    if len(names) == 2:
        return f"neither {names[0]} nor {names[1]}"
    return f"none of {', '.join(names[:-1])} and {names[-1]}"


def _short_list(labels: Sequence[Category]) -> list[str]:
    """At most four names, then how many more."""
    names = [label_text(label) for label in labels[:MAX_NAMES]]
    return names if len(labels) <= MAX_NAMES else [*names, f"{len(labels) - MAX_NAMES:,} more"]


def labels_of(column: Column, codes: Collection[int]) -> list[Category]:
    """Categories that the codes stand for, in the order of the codes."""
    return [label for code in sorted(codes) for label in column.labels(code)]


def category_text(column: Column, codes: Collection[int], missing: bool, value: float | None = None) -> str:
    """Words for a choice of categories; the rest is named where it is shorter. With a value, that value.

    Parameters
    ----------
    column : Column
    codes : collection of int
        Codes that qualify.
    missing : bool
        Whether a missing value qualifies.
    value : float or None
        The code of one case, NaN for missing.

    Examples
    --------
    >>> sector = Column("sector", ("retail", "catering", "construction"))
    >>> category_text(sector, {1}, True), category_text(sector, {1, 2}, False)
    ('sector is catering or missing', 'sector is not retail')
    >>> category_text(sector, {1, 2}, False, value=2.0)
    'sector = construction'
    """
    assert column.categories is not None
    name, n = one_line(column.name), len(column.categories)
    if value is not None:
        if not 0 <= value < n:
            return f"{name} is missing"
        labels = column.labels(int(value))
        return f"{name} = {label_text(labels[0])}" if len(labels) == 1 else f"{name} is {names_text(labels)}"
    inside = labels_of(column, [code for code in codes if code < n])
    outside = labels_of(column, set(range(n)).difference(codes))
    if not inside:
        return f"{name} is missing" if missing else f"no {name} at all"
    if not outside:
        return f"any {name}" if missing else f"{name} is not missing"
    if len(outside) < len(inside):
        return f"{name} is {exclusion_text(outside)}" + (", or is missing" if missing else "")
    return f"{name} is {names_text(inside, *(['missing'] if missing else []))}"


def projection_text(columns: Sequence[Column], features: Sequence[int], weights: Sequence[float]) -> str:
    """Words for a weighted sum, in the order of its terms: 0.8 x turnover_gap - 0.3 x age.

    Trees hold the term that moves their rows most first. A weight alone does not tell: it is small where units are.
    """
    words = ""
    for feature, weight in list(zip(features, weights, strict=True))[:MAX_NAMES]:
        sign = ("-" if weight < 0 else "") if not words else (" - " if weight < 0 else " + ")
        words += f"{sign}{number_text(abs(weight), 3)} x {one_line(columns[feature].name)}"
    left_out = len(weights) - MAX_NAMES
    return (words or "0") + (f" + {left_out} smaller term{'s' if left_out > 1 else ''}" if left_out > 0 else "")


def question_text(tree: Tree, columns: Sequence[Column], node: int) -> str:
    """Words for what holds on the left side of an inner node."""
    missing = bool(tree.missing_left[node])
    if tree.kind[node] == CATEGORY:
        column = columns[tree.feature[node]]
        return category_text(column, tree.categories_left(node).tolist(), missing and column.has_missing)
    high = float(tree.threshold[node])
    if tree.kind[node] == NUMERIC:
        column = columns[tree.feature[node]]
        return range_text(column.name, -np.inf, high, missing and column.has_missing)
    own = slice(tree.oblique_at[node], tree.oblique_at[node + 1])
    name = projection_text(columns, tree.oblique_feature[own].tolist(), tree.oblique_weight[own].tolist())
    return range_text(name, -np.inf, high, missing and bool(np.isnan(tree.oblique_fill[own]).any()))


def hits_text(positive: float, total: float, base_rate: float) -> str:
    """Words for what a group held in training: 118 of 402 positive (29.4 %, lift 14.7)."""
    words = f"{number_text(positive)} of {number_text(total)} positive"
    if total <= 0:
        return words
    rate = positive / total
    lift = f", lift {lift_text(rate / base_rate)}" if base_rate > 0 else ""
    return f"{words} ({percent_text(rate)}{lift})"
