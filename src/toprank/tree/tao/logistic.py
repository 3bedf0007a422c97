"""Weighted logistic regression with an L1 penalty and a free intercept: the fit of an oblique node.

Minimises sum_i c_i log(1 + exp(-y_i (x_i . w + b))) + penalty * |w|_1, y_i in {-1, +1}: the surrogate of the reduced
problem of a decision node (section 4 of the paper on cost-optimal curves), which weighs each row by its cost. A node is
refitted many times to rows that change little, so every fit accepts a warm start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from toprank._core.logistic import GRAM_COLUMNS, Goal, Model, Rows, State, Sums, damp, improve, start
from toprank._core.quadratic import GRAM_ROWS, centred_gram, correlate, gram_sums
from toprank._core.threads import CHUNK_ROWS, Threads, cut_evenly
from toprank.errors import InputError

ONE_CLASS_INTERCEPT = 30.0
"""Intercept if one class has all the weight: the loss, 1e-13 of the weight, has no minimum."""

LARGEST_PENALTY = 1e300
"""Largest penalty relative to rows of weight at most 1: anything above has the same, empty, solution."""

COPIED_ROWS = 2_048
"""Rows converted from row-major to feature-major at once, so that they stay in the cache."""


@dataclass(frozen=True)
class LinearFit:
    """Weights and intercept of a fit, and its quality.

    Attributes
    ----------
    weight : float64 array of shape (n_features,)
        0 for columns that are left out, constant, or not worth their penalty.
    intercept : float
    objective : float
        Loss plus penalty.
    n_iter : int
        Number of Newton steps.
    is_converged : bool
        True if the gap is at most tolerance * objective.
    gap : float
        Upper bound of the distance to the minimum of the objective, by duality.
    """

    weight: np.ndarray
    intercept: float
    objective: float
    n_iter: int
    is_converged: bool
    gap: float


Start = LinearFit | tuple[np.ndarray, float]


def fit_l1_logistic(
    X: np.ndarray,
    is_positive: np.ndarray,
    weight: np.ndarray | None,
    penalty: float,
    *,
    start: Start | None = None,
    tolerance: float = 1e-6,
    max_iter: int = 100,
    rows: np.ndarray | None = None,
    threads: Threads | None = None,
) -> LinearFit:
    """Weights and intercept that minimise the weighted logistic loss plus penalty * |w|_1.

    Parameters
    ----------
    X : float64 or float32 array of shape (n, n_features)
        Finite, preferably standardised: the penalty treats all columns alike. Column-major float64 with all rows
        selected is fastest: it is not copied. Anything else is copied once.
    is_positive : bool array of shape (n,), or (len(rows),) if `rows` is given
    weight : float array of the same shape, or None for weight 1
        Rows of weight 0 are ignored.
    penalty : float above 0
    start : LinearFit or (weights, intercept), optional
        Warm start, such as the fit of a similar problem; dropped if zero weights are better.
    tolerance : float
        The fit stops when the duality gap is at most this share of the objective.
    max_iter : int
        Largest number of Newton steps.
    rows : int array, optional
        Selected rows; all others are not read.
    threads : Threads, optional
        Run a large fit in parallel; the result is the same without them.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.tao.logistic import fit_l1_logistic
    >>> X = np.array([[-1.0, 1.0], [0.0, -1.0], [0.5, -1.0], [1.0, 1.0]])
    >>> fit = fit_l1_logistic(X, np.array([False, True, False, True]), None, penalty=0.2)
    >>> fit.weight.round(2).tolist(), round(fit.intercept, 2), fit.is_converged
    ([1.11, 0.0], -0.16, True)
    """
    if not 0.0 < penalty < math.inf:
        raise InputError(
            f"penalty must be a finite number above 0, got {penalty}. "
            "Hint: without one, weights may be unbounded; 1e-6 * penalty_max(...) is almost none."
        )
    threads = threads or Threads()
    columns, target, weight = _prepare(X, is_positive, weight, rows, threads)
    value, intercept = _check_start(start, X.shape[1])
    positive, negative = _class_weights(target, weight)
    if min(positive, negative) == 0.0:
        intercept = math.copysign(ONE_CLASS_INTERCEPT, positive - negative) if positive + negative > 0.0 else 0.0
        objective = gap = (positive + negative) * math.log1p(math.exp(-ONE_CLASS_INTERCEPT))
        return LinearFit(np.zeros(len(value)), intercept, objective, 0, True, gap)
    unit = math.ldexp(1.0, math.frexp(weight.max())[1])  # products of small weights must not underflow
    goal = Goal(min(float(penalty) / unit, LARGEST_PENALTY), float(tolerance), max_iter)
    end = solve(columns, target, weight / unit, goal, value, intercept, threads)
    _check_finite(math.isfinite(end.gap))
    is_converged = bool(end.gap <= tolerance * end.objective)
    return LinearFit(value, end.intercept, unit * end.objective, end.n_iter, is_converged, unit * max(end.gap, 0.0))


def penalty_max(X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None) -> float:
    """Smallest penalty at which all weights are 0; 0.0 if one class has all the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.tao.logistic import penalty_max
    >>> penalty_max(np.array([[-1.0], [0.0], [2.0], [3.0]]), np.array([False, False, True, True]), None)
    3.0
    """
    columns, target, weight = _prepare(X, is_positive, weight, None, Threads())
    positive, negative = _class_weights(target, weight)
    if min(positive, negative) == 0.0 or len(columns) == 0:
        return 0.0
    correlation = np.empty(len(columns))
    residual = weight * (target - positive / (positive + negative))
    correlate(columns, np.arange(len(columns)), residual, correlation)
    largest = float(np.abs(correlation).max())
    _check_finite(math.isfinite(largest))
    return largest


def _class_weights(target: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weight of the positive rows and of the negative ones."""
    is_positive = target > 0.5
    return float(weight[is_positive].sum()), float(weight[~is_positive].sum())


def _prepare(
    X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, rows: np.ndarray | None, threads: Threads
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows with weight in the layout of the kernels: X feature-major, target and weight, all above 0."""
    n = len(X) if rows is None else len(rows)
    target = np.array(is_positive, dtype=np.float64)
    c = np.ones(n) if weight is None else np.array(weight, dtype=np.float64)
    for name, values in (("is_positive", target), ("weight", c)):
        if values.shape != (n,):
            raise InputError(
                f"{name} must have one entry for each of the {n:,} rows used, but has shape {values.shape}. "
                "Hint: with rows given, entry i belongs to row rows[i]."
            )
    if not (np.all(c >= 0.0) and np.all(c < np.inf)):
        raise InputError(
            f"weight must hold finite numbers of at least 0, but goes from {c.min()} to {c.max()}. "
            "Hint: rows of weight 0 are ignored."
        )
    if not np.all(c):
        present = np.flatnonzero(c)
        target, c = target[present], c[present]
        rows = present if rows is None else rows[present]
    return _feature_major(X, rows, threads), target, c


def _feature_major(X: np.ndarray, rows: np.ndarray | None, threads: Threads) -> np.ndarray:
    """Selected rows, float64, each column contiguous: X itself if possible."""
    # A read-only array would be another type for the compiler.
    if rows is None and X.dtype == np.float64 and X.flags.f_contiguous and X.flags.writeable:
        return X.T
    n = len(X) if rows is None else len(rows)
    out = np.empty((X.shape[1], n))
    if not X.flags.f_contiguous:
        for start in range(0, n, COPIED_ROWS):
            stop = min(start + COPIED_ROWS, n)
            out[:, start:stop] = (X[start:stop] if rows is None else X[rows[start:stop]]).T
        return out

    def copy_columns(part: slice) -> None:
        for j in range(part.start, part.stop):
            out[j] = X[:, j] if rows is None else X[rows, j]

    threads.run(copy_columns, cut_evenly(len(out), threads.n_threads, least=1 + CHUNK_ROWS // max(n, 1)))
    return out


def _check_start(start: Start | None, n_features: int) -> tuple[np.ndarray, float]:
    """Weights and intercept of the warm start: 0 by default."""
    if start is None:
        return np.zeros(n_features), 0.0
    weight, intercept = (start.weight, start.intercept) if isinstance(start, LinearFit) else start
    weight = np.array(weight, dtype=np.float64)  # a copy: the fit overwrites it
    if weight.shape != (n_features,) or not (np.all(np.isfinite(weight)) and math.isfinite(intercept)):
        raise InputError(
            f"start must hold {n_features} finite weights and a finite intercept, got weights of shape {weight.shape} "
            f"and intercept {intercept}. Hint: start from a fit on the same columns."
        )
    return weight, float(intercept)


def _check_finite(is_finite: bool) -> None:
    """Raise if the kernels found non-finite entries of X: they notice, so X is not checked up front."""
    if not is_finite:
        raise InputError(
            "X must hold finite numbers that can be added up, but a column has missing, infinite or too large values. "
            "Hint: impute missing values and standardise the columns first."
        )


# --- Newton steps -------------------------------------------------------------------------------------------------
#
# Kernels are serial, with the expensive part of a step, the Gram matrix, run in parallel. It is summed over chunks of
# rows, and then over the chunks in order: they depend only on the number of rows, so weights are the same for any
# number of threads.

GRAM_PARTS = 8
"""Largest number of chunks: each has a matrix of its own."""

PART_ROWS = 2_048
"""Smallest number of rows per chunk: below that, its matrix costs more than it saves."""


def solve(
    X: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    goal: Goal,
    value: np.ndarray,
    intercept: float,
    threads: Threads,
) -> State:
    """Minimise the loss plus penalty from the given weights and intercept; return the final state.

    `value` is overwritten with the final weights. X is float64 (n_columns, n); rows have weights above 0, and both
    targets, 0 and 1, occur. A NaN gap means that X has non-finite entries.
    """
    n_columns, n = X.shape
    rows = Rows(target, weight, np.empty(n), np.empty(n), np.empty(n))
    correlation = np.empty(n_columns)
    is_chosen, is_watched = np.empty((2, n_columns), np.uint8)
    state = named(start(X, rows, goal, value, intercept, correlation, is_chosen, is_watched))
    while not state.is_done:
        model = fit_model(X, rows, np.flatnonzero(is_chosen), state, threads)
        state = named(improve(X, rows, goal, state, value, correlation, model, is_chosen, is_watched))
    return state


def named(figures: tuple[Any, ...]) -> State:
    """The state from the plain numbers returned by a kernel."""
    intercept, sums, *others = figures
    return State(intercept, Sums(*sums), *others)


def fit_model(X: np.ndarray, rows: Rows, columns: np.ndarray, state: State, threads: Threads) -> Model:
    """The damped quadratic model of the loss at a state."""
    total = state.sums.curvature if state.damping == 0.0 else damp(rows, state.damping)
    if len(columns) > GRAM_COLUMNS:
        return Model(columns, np.empty((0, 0)), np.empty(0), total)
    bounds = part_bounds(X.shape[1])
    run = map if threads.n_threads == 1 else threads.run  # with one thread, only one matrix is held at a time
    parts = iter(run(partial(gram_sums, X, columns, rows.curvature), bounds[:-1], bounds[1:]))
    sums = next(parts)
    for part in parts:
        sums += part
    k = len(columns)
    return Model(columns, centred_gram(sums, k, total), sums[k, :k].copy(), total)


def part_bounds(n: int) -> list[int]:
    """Bounds of chunks of n rows, of equal size except the last one, which is up to half larger or smaller.

    Examples
    --------
    >>> part_bounds(100)
    [0, 100]
    >>> part_bounds(20_000)
    [0, 2496, 4992, 7488, 9984, 12480, 14976, 17472, 20000]
    """
    size = max(PART_ROWS, GRAM_ROWS * round(n / (GRAM_PARTS * GRAM_ROWS)))
    return [*range(0, max(n - size // 2, 1), size), n]
