"""Weighted logistic loss with an L1 penalty: proximal Newton steps on an active set of columns.

The problem is to minimise, over weights w and a free intercept b,

    F(w, b) = sum_i c_i (log(1 + exp(z_i)) - t_i z_i) + penalty * |w|_1,    z_i = x_i . w + b,

with targets t_i in {0, 1} and c_i > 0. The residual is e_i = c_i (t_i - p_i), p_i = 1 / (1 + exp(-z_i)), the curvature
h_i = c_i p_i (1 - p_i). A Newton step minimises the quadratic model of the loss plus the penalty by coordinate descent
(`toprank._core.quadratic`), over the columns that have a weight or want one (Friedman, Hastie and Tibshirani, 2010;
Yuan, Ho and Lin, 2012). The intercept is kept optimal, so that the residuals sum to 0. Scaled until no column's
correlation with them exceeds the penalty, they are a feasible point of the dual problem: its value is a lower bound of
F, and the duality gap is the stopping criterion.
"""

import math
from typing import NamedTuple

import numpy as np

from toprank._core.jit import kernel
from toprank._core.quadratic import add_columns, correlate, descend_on_columns, descend_on_gram

GRAM_COLUMNS = 1024
"""Columns up to which a Newton step forms their Gram matrix; beyond that, sweeps over the columns are cheaper."""

NEW_COLUMNS = 64
"""Columns that may always join a Newton step; more join only up to the number of non-zero weights, worst first."""

WATCHED = 0.7
"""Columns whose correlation with the residual is below this share of the penalty are screened out until the end."""

FEW_COLUMNS = 50
"""Columns up to which none is screened out: a final check of all of them would cost more than it saves."""

NEAR = 1e-3
"""Relative decrease of F in one step below which columns may be screened out: above it, correlations still change."""

BALANCED = 0.01
"""Largest sum of the residuals relative to their size, as a share of the tolerance or of the next expected gap."""

KEPT = 0.2
"""A Gram matrix is reused for the next step if the last one left less than this share of the gap and F hardly fell."""

LARGEST_MOVE = 4.0
"""Limit of one move of the intercept: the curvature says nothing if all rows are saturated."""

SHORT_STEP = 0.2
"""If a line search ends below this, the curvature is not trusted, and the next step damps it."""

SHORTEST_STEP = 1e-3
"""A line search gives up below this."""

LEAST_DAMPING = 1e-6


class Rows(NamedTuple):
    """Arrays of the rows, float64 (n,): the input, and what kernels keep up to date with z."""

    target: np.ndarray
    weight: np.ndarray
    z: np.ndarray
    residual: np.ndarray
    curvature: np.ndarray


class Model(NamedTuple):
    """The quadratic model of the loss over some columns; it has no Gram matrix above GRAM_COLUMNS columns."""

    columns: np.ndarray
    gram: np.ndarray
    pull: np.ndarray
    total: float


class Sums(NamedTuple):
    """Sums over the rows: c * loss, e, |e|, h, and |e| times minus log(|e| / c)."""

    loss: float
    balance: float
    size: float
    curvature: float
    surprise: float


class Goal(NamedTuple):
    """Penalty, tolerance and the largest number of steps of a fit."""

    penalty: float
    tolerance: float
    max_iter: int


class State(NamedTuple):
    """State of a fit: objective and gap of the last check, share of the last step taken."""

    intercept: float
    sums: Sums
    objective: float
    gap: float
    share: float
    damping: float
    n_iter: int
    keeps_model: bool
    is_done: bool


@kernel
def weigh_rows(rows):
    """Write residuals and curvatures at z; return their sums."""
    loss = 0.0
    balance = 0.0
    size = 0.0
    curvature = 0.0
    surprise = 0.0
    for i in range(rows.z.shape[0]):
        margin = rows.z[i] if rows.target[i] > 0.5 else -rows.z[i]
        small = math.exp(-abs(margin))
        near = 1.0 / (1.0 + small)
        log_near = math.log1p(small)
        c = rows.weight[i]
        e = c * (near if margin < 0.0 else small * near)
        h = c * (small * near * near)
        loss += c * (log_near + max(-margin, 0.0))
        surprise += e * (log_near + max(margin, 0.0))
        size += e
        curvature += h
        if rows.target[i] < 0.5:
            e = -e
        balance += e
        rows.residual[i] = e
        rows.curvature[i] = h
    return Sums(loss, balance, size, curvature, surprise)


@kernel
def damp(rows, damping):
    """Add damping times the curvature of the quadratic majorant of the loss that touches it at z; return the sum.

    A step to the minimum of the majorant never raises the loss (Jaakkola and Jordan, 2000): its curvature is
    tanh(z / 2) / (2 z), at least p (1 - p), and far from 0 where rows are saturated.
    """
    total = 0.0
    for i in range(rows.z.shape[0]):
        half = 0.5 * abs(rows.z[i])
        bound = 0.25 * math.tanh(half) / half if half > 1e-4 else 0.25
        rows.curvature[i] += damping * rows.weight[i] * bound
        total += rows.curvature[i]
    return total


@kernel
def balance_intercept(rows, sums, tolerance):
    """Shift z by the constant at which the residuals sum to 0, up to a share `tolerance` of their size.

    Pre:  sums are those of weigh_rows at z; both targets have weight.
    Cost: one to three passes over the rows, unless z is far off: bracketed Newton steps.
    Returned: that constant and the sums at the new z.
    """
    moved = 0.0
    low = -np.inf
    high = np.inf
    for _ in range(200):
        if not abs(sums.balance) > max(tolerance, 1e-12) * sums.size:
            break
        if sums.balance > 0.0:
            low = moved
        else:
            high = moved
        goal = moved + math.copysign(LARGEST_MOVE, sums.balance)
        if abs(sums.balance) < LARGEST_MOVE * sums.curvature:
            goal = moved + sums.balance / sums.curvature
        if not low < goal < high:
            goal = 0.5 * (low + high)
        if goal in (low, high):  # adjacent floats
            break
        for i in range(rows.z.shape[0]):
            rows.z[i] += goal - moved
        moved = goal
        sums = weigh_rows(rows)
    return moved, sums


@kernel
def dual_value(rows, sums, scale):
    """Return sum_i c_i H(scale * |e_i| / c_i), with H the entropy.

    It is a lower bound of F if the residuals sum to 0 and no column's correlation with them exceeds penalty / scale.

    Pre:  sums are those of weigh_rows at z; 0 < scale <= 1.
    """
    value = scale * (sums.surprise - math.log(scale) * sums.size)
    for i in range(rows.weight.shape[0]):
        share = scale * abs(rows.residual[i]) / rows.weight[i]
        if share < 1.0:
            value -= rows.weight[i] * (1.0 - share) * math.log1p(-share)
    return value


@kernel
def duality_gap(rows, sums, objective, correlation, watched, penalty):
    """Return the gap between the objective and the dual value of the watched columns; NaN if one of them is NaN."""
    largest = penalty
    for j in watched:
        if not abs(correlation[j]) < np.inf:
            return np.nan
        largest = max(largest, abs(correlation[j]))
    return objective - max(0.0, dual_value(rows, sums, penalty / largest))


@kernel
def evaluate(X, rows, sums, watched, correlation, penalty, value):
    """Write the correlations of the watched columns with the residual; return the objective and the gap."""
    correlate(X, watched, rows.residual, correlation)
    objective = sums.loss + penalty * np.sum(np.abs(value))
    return objective, duality_gap(rows, sums, objective, correlation, watched, penalty)


@kernel
def choose_columns(correlation, value, watched, penalty):
    """Return the columns of a Newton step, ascending: those with a weight, and the worst of those that want one."""
    is_chosen = np.zeros(correlation.shape[0], np.uint8)
    n_held = 0
    n_new = 0
    for j in watched:
        if value[j] != 0.0:
            is_chosen[j] = 1
            n_held += 1
        elif abs(correlation[j]) > penalty:
            n_new += 1
    room = max(NEW_COLUMNS, n_held)
    if n_new <= room:
        for j in watched:
            if abs(correlation[j]) > penalty:
                is_chosen[j] = 1
        return np.flatnonzero(is_chosen)
    for _ in range(room):
        worst = -1
        largest = penalty
        for j in watched:
            if is_chosen[j] == 0 and abs(correlation[j]) > largest:
                worst = j
                largest = abs(correlation[j])
        is_chosen[worst] = 1
    return np.flatnonzero(is_chosen)


@kernel
def search_line(rows, sums, direction, slope, old_norm, new_norm):
    """Move z along a direction, halving the step until F falls as predicted; return the share moved and the sums there.

    Pre:  slope is the slope of the loss along the direction; the penalty is old_norm at its start and new_norm at its
          end; in between it is at most the linear interpolation, by convexity.
    Post: a share of 0 means that F did not fall.
    """
    start = rows.z.copy()
    before = sums.loss + old_norm
    expected = slope + new_norm - old_norm
    share = 1.0
    while share > SHORTEST_STEP:
        for i in range(start.shape[0]):
            rows.z[i] = start[i] + share * direction[i]
        sums = weigh_rows(rows)
        after = sums.loss + old_norm + share * (new_norm - old_norm)
        if after <= before + 0.01 * share * expected + 1e-15 * before:
            return share, sums
        share *= 0.5
    rows.z[:] = start
    return 0.0, weigh_rows(rows)


@kernel
def covers(model, columns):
    """Return whether the Gram matrix of a model contains all these columns; both are ascending."""
    if model.gram.shape[0] == 0:
        return columns.shape[0] == 0
    at = np.searchsorted(model.columns, columns)
    for a in range(columns.shape[0]):
        if at[a] == model.columns.shape[0] or model.columns[at[a]] != columns[a]:
            return False
    return True


@kernel
def restrict(model, columns):
    """Return the model restricted to some of its columns."""
    k = columns.shape[0]
    at = np.searchsorted(model.columns, columns)
    gram = np.empty((k, k))
    for a in range(k):
        for b in range(k):
            gram[a, b] = model.gram[at[a], at[b]]
    return Model(columns, gram, model.pull[at], model.total)


@kernel
def newton_step(X, rows, sums, model, correlation, penalty, value, aim):
    """Move value and z by one step on the model; return the shift of the intercept, the share taken and the sums."""
    slope = -correlation[model.columns]
    old = value[model.columns]
    new = old.copy()
    pull = model.pull
    if model.columns.shape[0] <= GRAM_COLUMNS:
        descend_on_gram(model.gram, slope + pull * (sums.balance / model.total), new, penalty, aim)
    else:
        pull = descend_on_columns(X, model.columns, rows.curvature, model.total, sums.balance, slope, new, penalty, aim)
    change = new - old
    shift = (sums.balance - np.sum(pull * change)) / model.total
    expected = np.sum(slope * change) - sums.balance * shift
    shift -= np.sum(X[:, 0][model.columns] * change)  # the model measures columns from their first entry
    direction = np.full(rows.z.shape[0], shift)
    add_columns(X, model.columns, change, direction)
    old_norm = penalty * np.sum(np.abs(old))
    new_norm = penalty * np.sum(np.abs(new))
    share, sums = search_line(rows, sums, direction, expected, old_norm, new_norm)
    value[model.columns] = new if share == 1.0 else old + share * change
    return share * shift, share, sums


@kernel
def adapt_damping(damping, share, mean_curvature):
    """Return the damping after a step that took `share` of its length: more if it was short, less if it was full."""
    if share == 1.0:
        damping = 0.1 * damping if damping > LEAST_DAMPING else 0.0
    elif share < SHORT_STEP:
        damping = max((8.0 if share > 0.0 else 64.0) * damping, 4.0 * mean_curvature, LEAST_DAMPING)
    if mean_curvature < 1e-14:  # all rows are saturated
        damping = max(damping, LEAST_DAMPING)
    return min(damping, 1.0)


@kernel
def begin(X, rows, penalty, value, intercept):
    """Write z at the start, with the best intercept there; return the intercept and the sums.

    A start worse than zero weights, as after labels were swapped, is dropped: value becomes 0.
    """
    rows.z[:] = intercept
    add_columns(X, np.arange(value.shape[0]), value, rows.z)
    moved, sums = balance_intercept(rows, weigh_rows(rows), BALANCED)
    positive = np.sum(rows.target * rows.weight)
    negative = np.sum((1.0 - rows.target) * rows.weight)
    at_zero = positive * math.log1p(negative / positive) + negative * math.log1p(positive / negative)
    if not sums.loss + penalty * np.sum(np.abs(value)) > at_zero:
        return intercept + moved, sums
    value[:] = 0.0
    intercept = math.log(positive / negative)
    rows.z[:] = intercept
    return intercept, weigh_rows(rows)


@kernel
def look(X, rows, goal, state, value, correlation, watched):
    """Check how good the weights are and choose the next step; return the state, its columns, and those to watch.

    Post: correlation holds those of the watched columns with the residual; a state that is done needs no step.
    Cost: one pass over the watched columns, at the end one over all.
    """
    n_columns, n = X.shape
    every = np.arange(n_columns)
    intercept, sums = state.intercept, state.sums
    objective, gap = evaluate(X, rows, sums, watched, correlation, goal.penalty, value)
    is_stuck = state.n_iter == goal.max_iter or (state.share == 0.0 and state.damping == 1.0)
    if is_stuck or gap <= goal.tolerance * objective:  # check again, with all columns
        is_full = watched.shape[0] == n_columns
        moved, sums = balance_intercept(rows, sums, BALANCED * goal.tolerance)
        intercept += moved
        if moved != 0.0 or not is_full:
            watched = every
            objective, gap = evaluate(X, rows, sums, watched, correlation, goal.penalty, value)
    is_done = is_stuck or not gap > goal.tolerance * objective
    columns = choose_columns(correlation, value, watched, goal.penalty)
    is_near = state.objective - objective < NEAR * objective
    watched = every
    if is_near and n_columns > FEW_COLUMNS:
        watched = np.flatnonzero((value != 0.0) | (np.abs(correlation) > WATCHED * goal.penalty))
    damping = adapt_damping(state.damping, state.share, sums.curvature / (n * np.mean(rows.weight)))
    keeps_model = is_near and damping == 0.0 and gap < KEPT * state.gap
    now = State(intercept, sums, objective, gap, state.share, damping, state.n_iter, keeps_model, is_done)
    return now, columns, watched


@kernel
def hand_over(state, columns, watched, is_chosen, is_watched):
    """Write which columns a step moves and which are watched; return the state as plain numbers.

    Ctrl-C while Numba builds a named tuple or a tuple of arrays as a return value goes unnoticed, so kernels return a
    number, one array, or a tuple of numbers to Python.
    """
    is_chosen[:] = 0
    is_chosen[columns] = 1
    is_watched[:] = 0
    is_watched[watched] = 1
    sums = state.sums
    return (
        state.intercept,
        (sums.loss, sums.balance, sums.size, sums.curvature, sums.surprise),
        state.objective,
        state.gap,
        state.share,
        state.damping,
        state.n_iter,
        state.keeps_model,
        state.is_done,
    )


@kernel
def start(X, rows, goal, value, intercept, correlation, is_chosen, is_watched):
    """Begin a fit and check it; return the value of `hand_over`.

    Pre:  is_chosen and is_watched uint8 (n_columns,).
    """
    intercept, sums = begin(X, rows, goal.penalty, value, intercept)
    state = State(intercept, sums, np.inf, np.inf, 1.0, 0.0, 0, False, False)
    state, columns, watched = look(X, rows, goal, state, value, correlation, np.arange(X.shape[0]))
    return hand_over(state, columns, watched, is_chosen, is_watched)


@kernel
def improve(X, rows, goal, state, value, correlation, model, is_chosen, is_watched):
    """Take the step of a model, and further ones it can be reused for; return `hand_over` of the last check.

    Pre:  state, correlation and is_watched are those of the last check.
    Post: value, z, residuals, curvatures and correlations are those after the steps.
    Cost: per step one pass over the columns it moves, one over the watched ones, and the descent on the model.
    """
    watched = np.flatnonzero(is_watched)
    while True:
        relative = min(state.gap / state.objective, 1.0)
        aim = goal.penalty * max(0.1 * goal.tolerance, min(0.1, math.sqrt(relative)) * relative)
        moved, share, sums = newton_step(X, rows, state.sums, model, correlation, goal.penalty, value, aim)
        rest, sums = balance_intercept(rows, sums, BALANCED * max(goal.tolerance, relative * relative))
        state = State(
            state.intercept + moved + rest,
            sums,
            state.objective,
            state.gap,
            share,
            state.damping,
            state.n_iter + 1,
            False,
            False,
        )
        state, columns, watched = look(X, rows, goal, state, value, correlation, watched)
        if state.is_done or not (state.keeps_model and covers(model, columns)):
            return hand_over(state, columns, watched, is_chosen, is_watched)
        model = restrict(model, columns)
