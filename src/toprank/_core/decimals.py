"""Short decimals: the number with the fewest digits between two others."""

import numpy as np

from toprank._core.jit import kernel

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that a float64 holds exactly: an integer multiplied or divided by one of them is rounded only once, so
that Python prints it with as few digits as it has."""

LEAST, MOST = 1e-5, 1e15
"""Range of numbers for which `POWERS` suffice."""

TINY = 1e-290
"""Negative numbers nearer to 0 vanish when they are divided by a power of ten: they are left to decimal arithmetic."""

MARGIN = 2.0**-10
"""Share of a gap kept free below its upper end, so that 0.3 is not put between 0.2 and 0.30000000000000004."""


@kernel
def shortest_between(low, high, powers, out):
    """Write the shortest decimal in the gap of each pair: low <= out < high.

    The shortest decimal is a multiple of the largest power of ten, nearest to the middle (rounding decides
    between two that are equally near); or the lower end itself if all others need more decimals, so that a whole number
    separates adjacent whole numbers. NaN if an end is missing, too large or too small, or if the gap is too small for a
    decimal with 17 digits.

    Pre:  low < high, out float64 of the same shape; powers is POWERS.
    Cost: at most 18 steps per pair.
    """
    for i in range(low.shape[0]):
        a, b = low[i], high[i]
        out[i] = np.nan
        largest = max(abs(a), abs(b))
        if not LEAST <= largest < MOST or -TINY < a < 0:  # also NaN
            continue
        gap = b - a
        most, middle = b - MARGIN * gap, a + gap / 2
        place = 15
        while place > -6 and largest < (powers[place] if place >= 0 else 1.0 / powers[-place]):
            place -= 1
        for step in range(place, place - 18, -1):
            if step >= 0:
                first, last = np.floor(a / powers[step]) + 1, np.floor(most / powers[step])
                nearest = np.rint(middle / powers[step])
            else:
                if -step >= powers.shape[0]:
                    break
                first, last = np.floor(a * powers[-step]) + 1, np.floor(most * powers[-step])
                nearest = np.rint(middle * powers[-step])
            if first > last:
                continue
            nearest = min(max(nearest, first), last) + 0.0  # never -0.0
            found = nearest * powers[step] if step >= 0 else nearest / powers[-step]
            if not a < found < b:
                continue
            if step < 0 and np.rint(a * powers[-step - 1]) / powers[-step - 1] == a:
                found = a + 0.0
            out[i] = found
            break
