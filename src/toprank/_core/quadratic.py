"""Products, Gram matrix and coordinate descent for a quadratic function of column weights.

Minimises slope . d + sum_i h_i (x_i . d + shift)**2 / 2 + penalty * |w + d|_1 over the change d of weights w. The
shift, the change of a free intercept, is eliminated exactly: the curvature is that of columns centred by h.

With a free intercept, columns may have any origin. They are measured from their first entry, so that a constant column
is exactly 0, and a mean far from 0 costs no digits.

Data is feature-major: X[j] holds column j of all rows. Sums are taken in a fixed order: same input, same bits.
"""

import math

import numpy as np

from toprank._core.jit import kernel

CHUNK = 2048
"""Rows processed together, so that their values stay in the L1 cache while looping over columns."""

GRAM_ROWS = 64
"""Rows transposed together for a Gram matrix."""

CONSTANT = 1e-13
"""Share of a column's curvature below which only rounding is left of it after eliminating the intercept."""

RIDGE = 1e-10
"""Share of a diagonal entry of a Gram matrix that counts as rounding."""

MAX_ROUNDS = 5
"""Rounds on a Gram matrix: if they are not enough, the step would be too long anyway, and the next one is better spent
on a new matrix."""

MAX_SWEEPS = 100
"""Sweeps over the columns themselves, which are much more expensive."""


@kernel
def dot(a, origin, b):
    """Return the sum of (a - origin) * b, in eight partial sums that the compiler keeps in one vector."""
    n = a.shape[0]
    whole = n - n % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for i in range(0, whole, 8):
        s0 += (a[i] - origin) * b[i]
        s1 += (a[i + 1] - origin) * b[i + 1]
        s2 += (a[i + 2] - origin) * b[i + 2]
        s3 += (a[i + 3] - origin) * b[i + 3]
        s4 += (a[i + 4] - origin) * b[i + 4]
        s5 += (a[i + 5] - origin) * b[i + 5]
        s6 += (a[i + 6] - origin) * b[i + 6]
        s7 += (a[i + 7] - origin) * b[i + 7]
    for i in range(whole, n):
        s0 += (a[i] - origin) * b[i]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@kernel
def correlate(X, columns, residual, out):
    """Write the sum of (X[j] - X[j, 0]) * residual to out[j] for each j in columns; other entries are unchanged.

    Cost: n_rows * len(columns) multiplications.
    """
    for j in columns:
        out[j] = 0.0
    for start in range(0, X.shape[1], CHUNK):
        part = residual[start : start + CHUNK]
        for j in columns:
            out[j] += dot(X[j, start : start + CHUNK], X[j, 0], part)


@kernel
def add_columns(X, columns, factor, out):
    """Add factor[a] * X[columns[a]] to out, for all a with a non-zero factor."""
    for start in range(0, X.shape[1], CHUNK):
        part = out[start : start + CHUNK]
        for a in range(columns.shape[0]):
            if factor[a] != 0.0:
                x = X[columns[a], start : start + CHUNK]
                for i in range(part.shape[0]):
                    part[i] += factor[a] * x[i]


@kernel
def gram_sums(X, columns, curvature, first, last):
    """Return sum_i h_i x_ia x_ib over the rows from first to last for b <= a < k, and in row k sum_i h_i x_ib.

    Returned: float64 (k + 1, k + 1), or one more; entries above the diagonal are undefined.
    Cost: (last - first) * k**2 / 2 multiplications, 0.06 to 0.4 ns each.
    """
    k = columns.shape[0]
    width = k + 1 + (k + 1) % 2  # a column of ones gives the totals; columns are read in pairs
    plain = np.zeros((GRAM_ROWS, width))
    scaled = np.zeros((GRAM_ROWS, width))
    sums = np.zeros((width, width))
    plain[:, k] = 1.0
    for start in range(first, last, GRAM_ROWS):
        m = min(GRAM_ROWS, last - start)
        h = curvature[start : start + m]
        for a in range(k):
            x = X[columns[a], start : start + m]
            origin = X[columns[a], 0]
            for i in range(m):
                plain[i, a] = x[i] - origin
                scaled[i, a] = h[i] * (x[i] - origin)
        scaled[:m, k] = h
        scaled[m:] = 0.0
        for i in range(0, m, 4):
            p0, p1, p2, p3 = plain[i], plain[i + 1], plain[i + 2], plain[i + 3]
            for a in range(0, width, 2):
                s0, s1, s2, s3 = scaled[i, a], scaled[i + 1, a], scaled[i + 2, a], scaled[i + 3, a]
                t0, t1, t2, t3 = scaled[i, a + 1], scaled[i + 1, a + 1], scaled[i + 2, a + 1], scaled[i + 3, a + 1]
                row = sums[a]
                next_row = sums[a + 1]
                for b in range(a + 2):
                    row[b] += (s0 * p0[b] + s1 * p1[b]) + (s2 * p2[b] + s3 * p3[b])
                    next_row[b] += (t0 * p0[b] + t1 * p1[b]) + (t2 * p2[b] + t3 * p3[b])
    return sums


@kernel
def centred_gram(sums, k, curvature_sum):
    """Return the Gram matrix of k columns with the intercept eliminated: float64 (k, k).

    Pre:  sums are those of gram_sums over all rows.
    """
    gram = np.empty((k, k))
    total = sums[k]
    for a in range(k):
        for b in range(a + 1):
            gram[a, b] = sums[a, b] - total[a] * (total[b] / curvature_sum)
            gram[b, a] = gram[a, b]
        if gram[a, a] <= CONSTANT * sums[a, a]:
            gram[a, a] = 0.0
    return gram


@kernel
def shrink(value, slope, curvature, penalty):
    """Return the v that minimises slope * (v - value) + curvature / 2 * (v - value)**2 + penalty * |v|."""
    goal = curvature * value - slope
    if goal > penalty:
        return (goal - penalty) / curvature
    if goal < -penalty:
        return (goal + penalty) / curvature
    return 0.0


@kernel
def sweep_gram(gram, slope, value, penalty, is_full):
    """Move each coordinate in turn, or each non-zero one, to its optimum; return the largest slope error.

    A coordinate without curvature becomes 0.
    """
    worst = 0.0
    for a in range(value.shape[0]):
        if not is_full and value[a] == 0.0:
            continue
        new = 0.0
        if gram[a, a] > 0.0:
            new = shrink(value[a], slope[a], gram[a, a], penalty)
        change = new - value[a]
        if change != 0.0:
            value[a] = new
            row = gram[a]
            for b in range(row.shape[0]):
                slope[b] += change * row[b]
            worst = max(worst, abs(change) * gram[a, a])
    return worst


@kernel
def factor_in_place(matrix):
    """Overwrite the lower triangle of a positive definite matrix with its Cholesky factor."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[i, j] = (matrix[i, j] - dot(matrix[i, :j], 0.0, matrix[j, :j])) / matrix[j, j]
        # rounding may make the pivot of a linearly dependent column negative: RIDGE is its lower bound
        matrix[i, i] = math.sqrt(max(matrix[i, i] - dot(matrix[i, :i], 0.0, matrix[i, :i]), RIDGE * matrix[i, i]))


@kernel
def leap_on_gram(gram, slope, value, penalty):
    """Move the non-zero coordinates straight towards their joint optimum, until the first of them becomes 0.

    Coordinate descent is slow if columns are nearly collinear; one linear system is not. If columns are identical, the
    ridge makes the leap long, and one of them ends at 0.
    """
    held = np.flatnonzero(value)
    k = held.shape[0]
    factor = np.empty((k, k))
    change = np.empty(k)
    for i in range(k):
        a = held[i]
        for j in range(i + 1):
            factor[i, j] = gram[a, held[j]]
        factor[i, i] *= 1.0 + RIDGE
        change[i] = -slope[a] - math.copysign(penalty, value[a])
    factor_in_place(factor)
    for i in range(k):
        change[i] = (change[i] - dot(factor[i, :i], 0.0, change[:i])) / factor[i, i]
    for i in range(k - 1, -1, -1):
        change[i] /= factor[i, i]
        for j in range(i):
            change[j] -= factor[i, j] * change[i]
    share = 1.0
    first = -1
    for i in range(k):
        now = value[held[i]]
        if now * change[i] < 0.0 and abs(now) < share * abs(change[i]):
            share = abs(now) / abs(change[i])
            first = i
    for i in range(k):
        a = held[i]
        new = value[a] + share * change[i]
        if i == first or new * value[a] < 0.0:
            new = 0.0
        row = gram[a]
        for b in range(row.shape[0]):
            slope[b] += (new - value[a]) * row[b]
        value[a] = new


@kernel
def descend_on_gram(gram, slope, value, penalty, target):
    """Minimise slope . d + d . gram . d / 2 + penalty * |value|_1 over value, with change d; return the sweeps.

    Sweeps over all coordinates alternate with sweeps over non-zero ones, and with leaps where sweeps are slow,
    until no coordinate's slope error exceeds `target`.

    Pre:  gram float64 (k, k). slope float64 (k,): at the given values; updated to that at the final values.
    Cost: k per coordinate that moves, k**3 / 6 for a leap.
    """
    n_sweeps = 0
    for _ in range(MAX_ROUNDS):
        worst = sweep_gram(gram, slope, value, penalty, True)
        n_sweeps += 1
        if worst <= target:
            break
        for _ in range(10 + np.count_nonzero(value) // 4):  # about the cost of a leap
            worst = sweep_gram(gram, slope, value, penalty, False)
            n_sweeps += 1
            if worst <= target:
                break
        else:
            leap_on_gram(gram, slope, value, penalty)
    return n_sweeps


@kernel
def descend_on_columns(X, columns, curvature, curvature_sum, balance, slope, value, penalty, target):
    """Minimise as descend_on_gram does, without a Gram matrix: by sweeps over the columns; return sum_i h_i x_ia.

    Pre:  slope float64 (k,): at the given values, with the intercept fixed; the slope of the intercept is -balance.
    Cost: 2 * n_rows per visited coordinate that moves, half of that if it does not; at most 100 sweeps.
    """
    k = columns.shape[0]
    n = X.shape[1]
    total = np.empty(k)
    own = np.empty(k)
    for a in range(k):
        x = X[columns[a]]
        s0 = 0.0
        s1 = 0.0
        for i in range(n):
            scaled = curvature[i] * (x[i] - x[0])
            s0 += scaled
            s1 += scaled * (x[i] - x[0])
        total[a] = s0
        own[a] = s1 - s0 * (s0 / curvature_sum)
        if own[a] <= CONSTANT * s1:
            own[a] = 0.0
    pulled = np.zeros(n)  # h_i times the change of z_i, without the intercept
    pulled_sum = -balance
    is_full = True
    for _ in range(MAX_SWEEPS):
        worst = 0.0
        for a in range(k):
            if not is_full and value[a] == 0.0:
                continue
            x = X[columns[a]]
            new = 0.0
            if own[a] > 0.0:
                now = slope[a] + dot(x, x[0], pulled) - total[a] * (pulled_sum / curvature_sum)
                new = shrink(value[a], now, own[a], penalty)
            change = new - value[a]
            if change != 0.0:
                value[a] = new
                for i in range(n):
                    pulled[i] += change * (curvature[i] * (x[i] - x[0]))
                pulled_sum += change * total[a]
                worst = max(worst, abs(change) * own[a])
        if worst <= target and is_full:
            break
        is_full = worst <= target
    return total
