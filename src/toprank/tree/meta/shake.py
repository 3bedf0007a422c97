"""Shaking a ranking: the best order of its cells, and the gain of a split whose two parts may go anywhere.

Section V-B of the TreeRank paper. A cell is the rows of one leaf, which tie. With positive weights p_i, sum P, and
negative weights n_i, sum N, the area under the ROC curve of the cells in a given order is

    AUC = 1/2 + 1/2 sum over i before j of (p_i n_j - p_j n_i) / (P N).

Every pair adds at most |p_i n_j - p_j n_i|, and all pairs do if cells are in order of decreasing p / n: remark 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from toprank._core.cells import sort_by_slope, sum_of_cross_products
from toprank.errors import InputError


def optimal_order(positive: ArrayLike, negative: ArrayLike) -> np.ndarray:
    """The order of the cells with the largest area under the ROC curve: by decreasing positive / negative weight.

    Slopes are compared by exact cross products. Ties keep the given order; cells without weight come last, in the given
    order.

    Examples
    --------
    >>> from toprank.tree.meta.shake import optimal_order
    >>> optimal_order([1, 0, 5, 2, 0], [9, 4, 0, 3, 0])
    array([2, 3, 0, 1, 4])
    """
    positive, negative = _weights(positive, negative, "optimal_order")
    return _by_slope(positive, negative)


def intercalation_gain(
    positive_left: ArrayLike,
    negative_left: ArrayLike,
    positive: float,
    negative: float,
    others_positive: ArrayLike,
    others_negative: ArrayLike,
) -> np.ndarray:
    """Gain in area of each way to split one cell, if both parts may go anywhere among the other cells.

    The area of cells in their best order is 1/2 + 1/2 sum over pairs of |p_i n_j - p_j n_i| / (P N). So a split of
    cell c into l and r gains the sum over other cells j of |l x j| + |r x j| - |c x j|, plus |l x r|, over 2 P N,
    where a x b = p_a n_b - p_b n_a.

    The left weights have one entry per way, and the right part is the rest of the cell. The other cells are in any
    order; there may be none. Gains are non-negative, except for rounding.

    Examples
    --------
    A cell with 4 positives and 4 negatives beside one with 2 and 2: splitting into (4, 0) and (0, 4) gains
    1/2 (16 + 8 + 8) / 36, splitting into (2, 2) and (2, 2) gains nothing.

    >>> from toprank.tree.meta.shake import intercalation_gain
    >>> intercalation_gain([4, 2], [0, 2], 4, 4, [2], [2]).round(4)
    array([0.4444, 0.    ])
    """
    caller = "intercalation_gain"
    left = _weights(positive_left, negative_left, caller, "positive_left", "negative_left")
    others = _weights(others_positive, others_negative, caller, "others_positive", "others_negative")
    right = float(positive) - left[0], float(negative) - left[1]
    for name, rest, whole in zip(("positive", "negative"), right, (positive, negative), strict=True):
        if not (rest >= 0).all():
            raise InputError(
                f"'{name}_left' of {caller} must not exceed the weight of the cell, {name}={float(whole):g}. "
                f"Got {float(whole) - rest.min():g}. Hint: use the same unit for both, cases or integer weights."
            )
    all_positive, all_negative = check_cells(np.append(others[0], positive), np.append(others[1], negative), caller)
    n = len(left[0])
    sums = _sums_of_cross_products(
        np.concatenate((left[0], right[0], [positive])), np.concatenate((left[1], right[1], [negative])), *others
    )
    apart = np.abs(left[0] * right[1] - right[0] * left[1])
    return (sums[:n] + sums[n:-1] - sums[-1] + apart) / (2 * all_positive.sum() * all_negative.sum())


def check_cells(positive: ArrayLike, negative: ArrayLike, caller: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the cells of a ranking as float64 arrays; both classes have weight."""
    positive, negative = _weights(positive, negative, caller)
    if not (positive.sum() > 0 and negative.sum() > 0):
        raise InputError(
            f"{caller} needs cells with positive and with negative weight, but the weights sum to {positive.sum():g} "
            f"and {negative.sum():g}. Hint: an area under the ROC curve needs both classes."
        )
    return positive, negative


def _weights(
    positive: ArrayLike, negative: ArrayLike, caller: str, first: str = "positive", second: str = "negative"
) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors of equal length, finite and non-negative, as float64."""
    both = np.asarray(positive, np.float64), np.asarray(negative, np.float64)
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise InputError(
            f"'{first}' and '{second}' of {caller} must be vectors of equal length. Got arrays of shapes "
            f"{both[0].shape} and {both[1].shape}. Hint: both need one entry per cell."
        )
    for name, values in zip((first, second), both, strict=True):
        is_wrong = ~((values >= 0) & (values < np.inf))
        if is_wrong.any():
            raise InputError(
                f"'{name}' of {caller} must hold finite, non-negative weights. Got {values[is_wrong][0]} for "
                f"cell {np.flatnonzero(is_wrong)[0]}. Hint: weights are sums over the rows of a cell."
            )
    return both


def _by_slope(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Cells by decreasing slope, those without weight last."""
    has_weight = (positive > 0) | (negative > 0)
    order = np.flatnonzero(has_weight)
    sort_by_slope(positive, negative, order, np.empty_like(order))
    return np.append(order, np.flatnonzero(~has_weight))


def _sums_of_cross_products(
    positive: np.ndarray, negative: np.ndarray, others_positive: np.ndarray, others_negative: np.ndarray
) -> np.ndarray:
    """Sum of |cross product| of each cell with all others; float64 (n_cells,)."""
    order = _by_slope(others_positive, others_negative)
    ordered = others_positive[order], others_negative[order]
    before = [np.append(0.0, np.cumsum(values)) for values in ordered]
    out = np.empty(len(positive))
    sum_of_cross_products(positive, negative, *ordered, *before, out)
    return out
