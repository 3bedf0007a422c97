"""When a test has no power, whatever the data: too few rows, or no column that varies."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from toprank.drift.holdout import held_out_size
from toprank.drift.samples import MIN_ROWS, TwoSamples


def find_obstacle(
    samples: TwoSamples,
    held_out: NDArray[np.bool_],
    score: NDArray[np.float64],
    *,
    min_leaf: int,
    test_size: float,
    level: float,
) -> str | None:
    """Why no difference could have been found, in one sentence; None if one could, or if the rows are the same.

    Parameters
    ----------
    samples : TwoSamples
    held_out : bool array of shape (n,)
    score : array of the held-out rows
    min_leaf : int
        Smallest number of rows of each sample for the ranker to find a condition.
    test_size, level : float
        As given to the test.
    """
    if samples.is_constant:
        return "There is nothing to compare: every column has a single value in both tables."
    if 2 * len(samples.shared) == len(samples.is_new):
        return None  # identical tables, however small
    n_rows, n_tested = np.bincount(samples.is_new), np.bincount(samples.is_new[held_out])
    has_order = score.min() < score.max()  # a forest may find conditions in fewer rows, by drawing them more than once
    is_learnable = has_order or min(n_rows - n_tested) >= min_leaf
    if is_learnable and is_decisive(int(n_tested[0]), int(n_tested[1]), level):
        return None
    return (
        f"There are too few rows to say anything: the smaller table has {min(n_rows):,}, and at least "
        f"{rows_needed(min_leaf, test_size, level):,} in each are needed."
    )


def is_decisive(n_reference: int, n_new: int, level: float) -> bool:
    """Whether the clearest outcome of a test on this many rows has a p-value of at most `level`.

    That outcome is one of all equally likely choices of the new rows.

    Examples
    --------
    >>> is_decisive(2, 2, 0.05), is_decisive(3, 3, 0.05)
    (False, True)
    """
    n = n_reference + n_new
    choices = math.lgamma(n + 1) - math.lgamma(n_reference + 1) - math.lgamma(n_new + 1)
    return choices >= -math.log(level) - 1e-9  # 3 of 6 rows: 20 choices, just enough for 0.05


def rows_needed(min_leaf: int, test_size: float, level: float) -> int:
    """Smallest number of rows, the same in both tables, with which a difference can be found.

    Examples
    --------
    >>> rows_needed(5, 0.5, 0.05), rows_needed(5, 0.1, 0.05)
    (9, 26)
    """

    def is_enough(n_rows: int) -> bool:
        n_tested = held_out_size(n_rows, test_size)
        return n_rows - n_tested >= min_leaf and is_decisive(n_tested, n_tested, level)

    # More rows are never worse, so bisection finds the smallest sufficient number.
    numbers = range(MIN_ROWS, sys.maxsize)
    return numbers[bisect_left(numbers, True, key=is_enough)]
