"""Cells of a ranking as steps (negative weight, positive weight) of its ROC curve: slopes, hulls, chains of knots.

A cell is steeper than another if its positive / negative is larger. Slopes are compared by exact cross products, so
that the order does not depend on the scale of the weights, and cells with equal rates tie.
"""

import numpy as np

from toprank._core.jit import kernel

HALF = 134217729.0  # 2**27 + 1: splits a float into two halves whose products are exact


@kernel
def rounding_error(a, b, product):
    """Return a * b - product, where product is a * b rounded to a float; exact (Dekker, 1971)."""
    scaled = HALF * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = HALF * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def is_steeper(positive, negative, other_positive, other_negative):
    """Return whether positive / negative > other_positive / other_negative, by exact cross products.

    Rounding either keeps the order of two products or makes them equal; if they are equal, the rounding errors decide.
    """
    own = positive * other_negative
    other = other_positive * negative
    if own != other:
        return own > other
    return rounding_error(positive, other_negative, own) > rounding_error(other_positive, negative, other)


@kernel
def sort_by_slope(positive, negative, order, buffer):
    """Sort the cells in `order` from steepest to flattest, by a stable merge sort.

    Pre:  each cell in order has weight; buffer has the length of order, both int64.
    Cost: n log n comparisons.
    """
    n = order.shape[0]
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            left = start
            right = middle
            for k in range(start, stop):
                takes_right = left >= middle
                if left < middle and right < stop:
                    a = order[right]
                    b = order[left]
                    takes_right = is_steeper(positive[a], negative[a], positive[b], negative[b])
                if takes_right:
                    buffer[k] = order[right]
                    right += 1
                else:
                    buffer[k] = order[left]
                    left += 1
        order[:] = buffer
        width *= 2


@kernel
def sum_of_cross_products(positive, negative, other_positive, other_negative, before_positive, before_negative, out):
    """Write the sum of |positive * other_negative - other_positive * negative| over the other cells, for each cell.

    Pre:  the m other cells go from steepest to flattest, each with weight; before_* float64 (m + 1,) are their
          cumulative weights, starting at 0.
    Cost: log m comparisons per cell: terms of steeper cells have one sign, those of the rest the opposite one.
    """
    m = other_positive.shape[0]
    for c in range(positive.shape[0]):
        low = 0
        high = m
        while low < high:
            middle = (low + high) // 2
            if is_steeper(other_positive[middle], other_negative[middle], positive[c], negative[c]):
                low = middle + 1
            else:
                high = middle
        steeper_positive = before_positive[low] - (before_positive[m] - before_positive[low])
        steeper_negative = before_negative[low] - (before_negative[m] - before_negative[low])
        out[c] = steeper_positive * negative[c] - positive[c] * steeper_negative


@kernel
def upper_hull(positive, negative, hull):
    """Write the knots of the concave majorant of a curve to hull, both ends included; return how many.

    Pre:  positive, negative float64 (n,): the knots, both non-decreasing; hull int64 (n,).
    Post: slopes decrease strictly along the hull. Of several knots at the same point only the last is kept.
    Cost: 2 n comparisons.
    """
    size = 0
    for c in range(positive.shape[0]):
        while size >= 2:
            a = hull[size - 2]
            b = hull[size - 1]
            if is_steeper(positive[b] - positive[a], negative[b] - negative[a],
                          positive[c] - positive[b], negative[c] - negative[b]):  # fmt: skip
                break
            size -= 1
        hull[size] = c
        size += 1
    return size


@kernel
def best_chains(positive, negative, n_edges, area, start):
    """Find the chains of 1, 2, ..., n_edges edges with the largest areas through knots of a concave curve.

    A chain goes from knot 0 to the last one. With knots (N_i, P_i), an edge from i to j adds P_i N_j - P_j N_i, twice
    the area of the triangle with the origin. On a concave curve this satisfies the quadrangle inequality, so the best
    knot before j moves right as j grows, and with the number of edges (Knuth, 1971; Yao, 1980).

    Pre:  positive, negative float64 (n,), both 0 at knot 0, slopes decreasing; n_edges < n; area float64 (n_edges,).
          start int32 (n_rows, n) with one row, or with one per number of edges.
    Post: area[m - 1] is the largest area of m edges; start[(m - 1) % n_rows, j] the knot before j on the best chain of
          m edges to j, ties go to the first.
    Cost: n**2 areas at most.
    """
    n = positive.shape[0]
    n_rows = start.shape[0]
    value = np.zeros(n)
    start[0, :] = 0
    area[0] = 0.0
    for m in range(2, n_edges + 1):
        row = (m - 1) % n_rows
        before = (m - 2) % n_rows
        last = n - 2
        for j in range(n - 1, m - 1, -1):  # value[i] for i < j is still the value with m - 1 edges
            first = max(start[before, j], m - 1)
            last = max(min(last, j - 1), first)
            best = -np.inf
            best_start = first
            for i in range(first, last + 1):
                found = value[i] + (positive[i] * negative[j] - positive[j] * negative[i])
                if found > best:
                    best = found
                    best_start = i
            value[j] = best
            start[row, j] = best_start
            last = best_start
        area[m - 1] = value[n - 1]
