"""Newton steps of an L1 logistic regression: serial kernels, with the expensive part run in parallel.

The Gram matrix is the expensive part of a step. It is summed over chunks of rows, and then over the chunks in order:
they depend only on the number of rows, so weights are the same for any number of threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from toprank._core.logistic import GRAM_COLUMNS, Goal, Model, Rows, State, Sums, damp, improve, start
from toprank._core.quadratic import GRAM_ROWS, centred_gram, gram_sums
from toprank._core.threads import Threads

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

    Parameters
    ----------
    X : float64 array of shape (n_columns, n)
    target, weight : float64 arrays of shape (n,)
        Weights above 0; both targets, 0 and 1, occur.
    goal : Goal
        Penalty above 0.
    value : float64 array of shape (n_columns,)
        Initial weights; overwritten with the final ones.
    intercept : float
    threads : Threads

    Returns
    -------
    State
        A NaN gap means that X has non-finite entries.
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
