"""Short decimals: the number with the fewest digits between two others."""

import numpy as np

from toprank._core.jit import kernel

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that a float64 holds exactly: a whole number times or by one of them is rounded once, so that Python
writes it in as few digits as it has."""

LEAST, MOST = 1e-5, 1e15
"""Sizes of numbers for which `POWERS` suffice."""

MARGIN = 2.0**-10
"""Share of a gap that is kept clear below its upper end: 0.3 is not put between 0.2 and 0.30000000000000004."""


@kernel
def shortest_between(low, high, powers, out):
    """Write for each pair the shortest decimal in the gap: low <= out < high.

    Shortest is a multiple of the largest power of ten, nearest to the middle; the lower end itself where all others
    need more decimals, so that whole numbers next to each other are parted by a whole number. NaN where an end is
    missing, too large or too small for this, or where the gap is too small for a decimal of 17 digits.

    Pre:  low < high, out float64 of the same shape; powers is POWERS.
    Cost: at most 18 steps a pair.
    """
    for i in range(low.shape[0]):
        a, b = low[i], high[i]
        out[i] = np.nan
        largest = max(abs(a), abs(b))
        if not LEAST <= largest < MOST:  # also NaN
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
