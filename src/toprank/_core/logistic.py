"""Weighted logistic loss with an L1 penalty: proximal Newton steps on the columns that matter.

The problem is to minimise, over weights w and a free intercept b,

    F(w, b) = sum_i c_i (log(1 + exp(z_i)) - t_i z_i) + penalty * |w|_1,    z_i = x_i . w + b,

with targets t_i in {0, 1} and c_i > 0. The residual is e_i = c_i (t_i - p_i), p_i = 1 / (1 + exp(-z_i)), the curvature
h_i = c_i p_i (1 - p_i). A Newton step minimises the quadratic model of the loss plus the penalty by coordinate descent
(`toprank._core.quadratic`), over the columns that have a weight or want one (Friedman, Hastie and Tibshirani, 2010;
Yuan, Ho and Lin, 2012). The intercept is optimal at every step, so that the residuals add up to 0 and, scaled until no
column's correlation with them is above the penalty, are a point of the dual problem: its value is a bound of F from
below, and the gap says when to stop.
"""

import math

import numpy as np

from toprank._core.jit import kernel
from toprank._core.quadratic import add_columns, correlate, step_on_columns, step_on_gram

GRAM_COLUMNS = 1024
"""Columns up to which a Newton step forms their Gram matrix; above, its cost outgrows sweeps over the columns."""

NEW_COLUMNS = 64
"""Columns that may always join a Newton step; beyond them as many as have a weight already, the worst first."""

WATCHED = 0.5
"""Columns whose correlation with the residual is below this share of the penalty are set aside until the end."""

NEAR = 1e-3
"""Relative fall of F in one step below which columns may be set aside: above, correlations still move too much."""

LARGEST_STEP = 4.0
"""Limit of one move of the intercept: where all rows are saturated the curvature says nothing."""

SHORT_STEP = 0.2
"""A line search that ends below this mistrusts the curvature: the next step uses one that cannot overshoot."""


@kernel
def weigh_rows(z, target, weight, residual, curvature):
    """Write residuals and curvatures at z; return five sums: loss, e, |e|, h, and |e| times minus log(|e| / c)."""
    loss = 0.0
    balance = 0.0
    size = 0.0
    total = 0.0
    surprise = 0.0
    for i in range(z.shape[0]):
        small = math.exp(-abs(z[i]))
        near = 1.0 / (1.0 + small)
        c = weight[i]
        margin = z[i] if target[i] > 0.5 else -z[i]
        far = math.log1p(small)
        loss += c * (far + max(-margin, 0.0))
        e = c * (near if margin < 0.0 else small * near)
        surprise += e * (far + max(margin, 0.0))
        h = c * (small * near * near)
        size += e
        if target[i] < 0.5:
            e = -e
        residual[i] = e
        curvature[i] = h
        balance += e
        total += h
    return loss, balance, size, total, surprise


@kernel
def bound_curvature(z, weight, curvature):
    """Write curvatures of the quadratic function above the loss that touches it at z; return their sum.

    A step to its minimum never raises the loss (Jaakkola and Jordan, 2000): tanh(z / 2) / (2 z), at least p (1 - p).
    """
    total = 0.0
    for i in range(z.shape[0]):
        half = 0.5 * abs(z[i])
        h = weight[i] * (0.25 * math.tanh(half) / half if half > 1e-4 else 0.25)
        curvature[i] = h
        total += h
    return total


@kernel
def balance_intercept(z, target, weight, residual, curvature, sums):
    """Move z by the constant that makes the residuals add up to 0; return that constant and the sums at the new z.

    Pre:  residual, curvature and sums are those of weigh_rows at z; both targets have weight.
    Cost: one to three passes over the rows, unless z is far off: steps are Newton's, held inside the bracket.
    """
    moved = 0.0
    low = -np.inf
    high = np.inf
    for _ in range(200):
        _, balance, size, total, _ = sums
        if abs(balance) <= 1e-11 * size:
            break
        if balance > 0.0:
            low = moved
        else:
            high = moved
        step = LARGEST_STEP if balance > 0.0 else -LARGEST_STEP
        if abs(balance) < LARGEST_STEP * total:
            step = balance / total
        goal = moved + step
        if not low < goal < high:
            goal = 0.5 * (low + high)
            if not low < goal < high:
                break
        for i in range(z.shape[0]):
            z[i] += goal - moved
        moved = goal
        sums = weigh_rows(z, target, weight, residual, curvature)
    return moved, sums


@kernel
def dual_value(weight, residual, sums, scale):
    """Return sum_i c_i H(scale * |e_i| / c_i), with H the entropy.

    F is nowhere below, where the residuals add up to 0 and no column's correlation with them is above penalty / scale.

    Pre:  residual and sums are those of weigh_rows; 0 < scale <= 1.
    """
    value = scale * (sums[4] - math.log(scale) * sums[2])
    for i in range(weight.shape[0]):
        share = scale * abs(residual[i]) / weight[i]
        if share < 1.0:
            value -= weight[i] * (1.0 - share) * math.log1p(-share)
    return value


@kernel
def duality_gap(objective, correlation, watched, weight, residual, sums, penalty):
    """Return how far the objective is above the value of the dual problem of the watched columns."""
    largest = penalty
    for j in watched:
        largest = max(largest, abs(correlation[j]))
    return objective - max(0.0, dual_value(weight, residual, sums, penalty / largest))


@kernel
def choose_columns(correlation, value, watched, penalty):
    """Return the columns of a Newton step, ascending: those with a weight, and of those that want one the worst."""
    chosen = np.empty(watched.shape[0], np.int64)
    new = np.empty(watched.shape[0], np.int64)
    n_held = 0
    n_new = 0
    for j in watched:
        if value[j] != 0.0:
            chosen[n_held] = j
            n_held += 1
        elif abs(correlation[j]) > penalty:
            new[n_new] = j
            n_new += 1
    new = new[:n_new]
    room = max(NEW_COLUMNS, n_held)
    if n_new > room:
        new = new[np.argsort(-np.abs(correlation[new]), kind="mergesort")[:room]]
    return np.sort(np.concatenate((chosen[:n_held], new)))


@kernel
def search_line(z, direction, target, weight, residual, curvature, sums, slope, old_norm, new_norm):
    """Move z along a direction, half as far until F falls as the model says; return the share moved and the sums there.

    Pre:  slope < 0 is that of the loss along the direction; the penalty is old_norm at its start and at most
          new_norm at its end, for convex in between.
    """
    before = sums[0] + old_norm
    expected = slope + new_norm - old_norm
    share = 0.0
    goal = 1.0
    while goal > 1e-12:
        for i in range(z.shape[0]):
            z[i] += (goal - share) * direction[i]
        share = goal
        sums = weigh_rows(z, target, weight, residual, curvature)
        after = sums[0] + old_norm + goal * (new_norm - old_norm)
        if after <= before + 0.01 * goal * expected + 1e-15 * before:
            break
        goal *= 0.5
    return share, sums


@kernel
def newton_step(X, columns, penalty, value, z, target, weight, residual, curvature, sums, correlation, aim, is_safe):
    """Move value and z by one Newton step over some columns; return the intercept's move, the share taken, the sums."""
    total = sums[3]
    if is_safe:
        total = bound_curvature(z, weight, curvature)
    slope = -correlation[columns]
    old = value[columns]
    new = old.copy()
    if columns.shape[0] <= GRAM_COLUMNS:
        pull = step_on_gram(X, columns, curvature, total, slope.copy(), new, penalty, aim)
    else:
        pull = step_on_columns(X, columns, curvature, total, slope.copy(), new, penalty, aim)
    change = new - old
    shift = (sums[1] - np.sum(pull * change)) / total
    direction = np.full(z.shape[0], shift)
    add_columns(X, columns, change, direction)
    expected = np.sum(slope * change) - sums[1] * shift
    old_norm = penalty * np.sum(np.abs(old))
    new_norm = penalty * np.sum(np.abs(new))
    share, sums = search_line(z, direction, target, weight, residual, curvature, sums, expected, old_norm, new_norm)
    value[columns] = new if share == 1.0 else old + share * change
    return share * shift, share, sums


@kernel
def solve(X, target, weight, penalty, value, intercept, tolerance, max_iter):
    """Minimise F from the given weights and intercept; return intercept, objective, gap and the steps made.

    Pre:  X float64 (d, n); target and weight float64 (n,), weight above 0 and both targets there; penalty > 0.
    Post: value float64 (d,) holds the weights. A gap that is not a number says that X has entries that are none.
    Cost: each step one pass over the columns that are watched, and n * k**2 / 2 for the k columns it moves.
    """
    n_columns, n = X.shape
    residual = np.empty(n)
    curvature = np.empty(n)
    correlation = np.empty(n_columns)
    every = np.arange(n_columns)
    z = np.full(n, intercept)
    add_columns(X, every, value, z)
    sums = weigh_rows(z, target, weight, residual, curvature)
    moved, sums = balance_intercept(z, target, weight, residual, curvature, sums)
    intercept += moved
    watched = every
    objective = np.inf
    is_safe = False
    n_iter = 0
    while True:
        before = objective
        objective = sums[0] + penalty * np.sum(np.abs(value))
        correlate(X, watched, residual, correlation)
        gap = duality_gap(objective, correlation, watched, weight, residual, sums, penalty)
        is_last = not gap > tolerance * objective or n_iter == max_iter
        if is_last and watched.shape[0] < n_columns:
            watched = every
            correlate(X, watched, residual, correlation)
            gap = duality_gap(objective, correlation, watched, weight, residual, sums, penalty)
            is_last = not gap > tolerance * objective or n_iter == max_iter
        if is_last:
            return intercept, objective, gap, n_iter
        columns = choose_columns(correlation, value, watched, penalty)
        watched = every
        if before - objective < NEAR * objective:
            watched = np.flatnonzero((value != 0.0) | (np.abs(correlation) > WATCHED * penalty))
        relative = gap / objective
        aim = penalty * max(0.1 * tolerance, min(0.1, math.sqrt(relative)) * relative)
        moved, share, sums = newton_step(
            X, columns, penalty, value, z, target, weight, residual, curvature, sums, correlation, aim, is_safe
        )
        is_safe = share < SHORT_STEP
        intercept += moved
        moved, sums = balance_intercept(z, target, weight, residual, curvature, sums)
        intercept += moved
        n_iter += 1
