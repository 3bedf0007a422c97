"""Numbers as people read them: digits that matter, thousands separators, percentages."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

DIGITS = 4
"""Default number of significant digits."""

EXACT_DIGITS = 17
"""Digits that represent any float exactly."""

PLAIN = 10_000
"""Values of columns below this, in conditions too, have no thousands separator: they may be years. Counts have one."""

NOISE_FREE = Context(prec=12)
"""0.7999999999999999 is shown as 0.8: rounding errors of an addition are not worth showing."""


MOST_RATE = 0.99
"""Larger estimates of a hit rate for new cases are shown as `ALMOST_SURE`: no estimate makes a case certain."""

ALMOST_SURE = "> 99 %"

LEAST_RATE = 0.001
"""Smaller hit rates are shown as `ALMOST_NONE`: no table has the cases to tell them apart."""

ALMOST_NONE = "< 0.1 %"

LEAST_LIFT = 0.01
"""Smaller lifts are not shown with their digits."""


def rounded(value: float, digits: int = DIGITS, *, down: bool = False) -> Decimal:
    """Decimal with at most `digits` significant digits, but with all digits of the integer part below 1e15."""
    exact = Decimal(repr(float(value)))
    if digits >= EXACT_DIGITS or not exact.is_finite():
        return exact
    if digits < NOISE_FREE.prec:
        exact = NOISE_FREE.plus(exact) if abs(exact) < 1e11 else exact
    size = exact.adjusted()
    last = size - digits + 1 if size >= 15 else min(size - digits + 1, 0)
    return exact.quantize(Decimal(1).scaleb(last), rounding=ROUND_FLOOR if down else ROUND_HALF_EVEN)


def decimal_text(number: Decimal, plain: int = 0) -> str:
    """Digits with thousands separators from `plain` on; powers of ten for very large and very small numbers."""
    if number == 0:
        return "0"
    if not number.is_finite() or not Decimal("1e-4") <= abs(number) < Decimal("1e15"):
        return f"{number.normalize():e}" if number.is_finite() else str(float(number))
    text = f"{number:f}" if abs(number) < plain else f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_text(value: float, digits: int = DIGITS) -> str:
    """Return a number as readable text.

    Examples
    --------
    >>> number_text(1234567.8), number_text(0.123456), number_text(12.0)
    ('1,234,568', '0.1235', '12')
    """
    return decimal_text(rounded(value, digits))


def value_text(value: float, digits: int = DIGITS) -> str:
    """Return a value of a column as readable text, as conditions have it: thousands separators only from `PLAIN` on.

    Examples
    --------
    >>> value_text(2024.0), value_text(1848.25), value_text(12345.6)
    ('2024', '1848', '12,346')
    """
    return decimal_text(rounded(value, digits), PLAIN)


def percent_text(share: float) -> str:
    """Return a share as a percentage with two or three significant digits: 29.4 %, 0.22 %."""
    return f"{number_text(100 * share, 2 if share < 0.01 else 3)} %"


def three_decimals(share: float) -> str:
    """Return a share of 0 to 1 with three decimals, such as an average precision; a small one is not called zero.

    Rounding errors of a sum do not change how a number is rounded.

    Examples
    --------
    >>> three_decimals(0.0974), three_decimals(1 / 8000), three_decimals(3e-6), three_decimals(0.0)
    ('0.097', '0.0001', '< 0.0001', '0.000')
    >>> three_decimals(0.0575), three_decimals(0.05749999999999999)
    ('0.058', '0.058')
    """
    share = round(share, 12)
    if 0 < share < 0.0005:
        return f"{share:.4f}" if share >= 0.00005 else "< 0.0001"
    return f"{share:.3f}"


def hit_rate_text(rate: float, shown: Callable[[float], str] = percent_text, *, is_for_new_cases: bool = True) -> str:
    """Return a hit rate as `shown` writes shares; an estimate for new cases is never certain, a training rate may be.

    Examples
    --------
    >>> hit_rate_text(0.294), hit_rate_text(0.9951), hit_rate_text(1.0), hit_rate_text(7.6e-13)
    ('29.4 %', '> 99 %', '> 99 %', '< 0.1 %')
    >>> hit_rate_text(1.0, is_for_new_cases=False), hit_rate_text(0.0)
    ('100 %', '0 %')
    """
    if is_for_new_cases and rate > MOST_RATE:
        return ALMOST_SURE
    return ALMOST_NONE if 0 < rate < LEAST_RATE else shown(rate)


def expected_rate_text(rate: float, lift: float, *, is_for_new_cases: bool) -> str:
    """Return the hit rate of cases with one score in words, and its lift if that is known.

    Examples
    --------
    >>> expected_rate_text(0.294, 14.7, is_for_new_cases=True)
    'expected hit rate 29.4 %, 14.7 times that of all cases'
    >>> expected_rate_text(1e-20, 1e-18, is_for_new_cases=False)
    'training rate < 0.1 %, less than 0.01 times that of all cases'
    >>> expected_rate_text(0.05, 1.0, is_for_new_cases=True)
    'expected hit rate 5 %, the same as that of all cases'
    """
    what = "expected hit rate" if is_for_new_cases else "training rate"
    times = "the same as" if lift_text(lift) == "1" else f"{lift_text(lift)} times"
    compared = f", {times} that of all cases" if math.isfinite(lift) else ""
    return f"{what} {hit_rate_text(rate, is_for_new_cases=is_for_new_cases)}{compared}"


def lift_text(lift: float) -> str:
    """Return a lift with two or three significant digits.

    Examples
    --------
    >>> lift_text(14.72), lift_text(0.913), lift_text(5.1e-12), lift_text(0.0)
    ('14.7', '0.91', 'less than 0.01', '0')
    """
    return f"less than {LEAST_LIFT}" if 0 < lift < LEAST_LIFT else number_text(lift, 2 if lift < 1 else 3)


def bound_decimal(bound: float, digits: int = DIGITS) -> Decimal:
    """A threshold as shown to users: all its digits, unless they are noise, as in the threshold of a sum.

    Noise is rounded down: a threshold midway between two values of a grid then shows the lower one, and `x <=
    threshold` stays true for the grid as printed.

    Examples
    --------
    >>> print(bound_decimal(172050.25), bound_decimal(1 / 3))
    172050.25 0.3333
    """
    exact = Decimal(repr(float(bound)))
    if not exact.is_finite() or len(exact.normalize().as_tuple().digits) <= NOISE_FREE.prec:
        return exact
    return rounded(bound, digits, down=True)
