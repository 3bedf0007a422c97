"""Weights as integers, so that every sum is exact and no result depends on the order of additions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toprank._core.dtypes import PACKED_LIMIT, WEIGHT

FIXED_POINT_BITS = 52
FIXED_POINT_LIMIT = 2**FIXED_POINT_BITS
"""Largest total of scaled weights: sums stay exact in int64 and in the float64 of the criteria."""


@dataclass(frozen=True)
class RowWeights:
    """Positive and total weight of each row, in integer units of `unit` cases.

    `case_weights` is the weight of one positive and one negative case, if weights are more than counts of cases, as
    with costs and bootstraps: the variance of sums depends on it.
    """

    positive: np.ndarray
    total: np.ndarray
    unit: float
    case_weights: tuple[float, float] = (1.0, 1.0)

    @cached_property
    def sum_of_positive(self) -> int:
        """Weight of all positive rows."""
        return int(self.positive.sum())

    @cached_property
    def sum_of_total(self) -> int:
        """Weight of all rows."""
        return int(self.total.sum())

    @property
    def cases(self) -> tuple[float, float]:
        """Weight of one positive and of one negative case in integer units."""
        return self.case_weights[0] / self.unit, self.case_weights[1] / self.unit

    @property
    def packed(self) -> np.ndarray | None:
        """Both channels in one int64 per row, or None if the total does not fit into 31 bits."""
        if self.sum_of_total >= PACKED_LIMIT:
            return None
        packed = self.positive << 32
        packed |= self.total
        return packed


def integer_weights(is_positive: np.ndarray, sample_weight: np.ndarray | None = None) -> RowWeights:
    """Weights of rows as integers: unchanged if they are whole numbers, else in fixed point; 1 without weights."""
    if sample_weight is None:
        total = np.ones(len(is_positive), WEIGHT)
        return RowWeights(is_positive.astype(WEIGHT), total, 1.0)
    whole = np.all(sample_weight == np.rint(sample_weight)) and sample_weight.sum() < FIXED_POINT_LIMIT
    if whole:
        return RowWeights(*_both(is_positive, sample_weight), 1.0)
    # fsum rounds once, so the unit does not depend on the order of the rows either.
    exponent = math.frexp(math.fsum(sample_weight[sample_weight > 0]))[1] - FIXED_POINT_BITS
    unit = math.ldexp(1.0, max(exponent, -1074))  # at least the smallest float
    return RowWeights(*_both(is_positive, sample_weight / unit), unit)


def balanced_weights(is_positive: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    """Weights with which all positives together count as much as all negatives, float64 (n,).

    Examples
    --------
    >>> balanced_weights(np.array([True, False, False, False])).tolist()
    [3.0, 1.0, 1.0, 1.0]
    """
    weights = integer_weights(is_positive, sample_weight)
    positive = weights.sum_of_positive
    negative = weights.sum_of_total - positive
    if not positive or not negative:
        return weights.total.astype(np.float64)
    common = math.gcd(positive, negative)  # whole weights stay whole, and their sums exact
    return weights.total * np.where(is_positive, float(negative // common), float(positive // common))


def _both(is_positive: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positive and total weight of each row, rounded."""
    total = np.rint(weight).astype(WEIGHT)
    return np.where(is_positive, total, 0), total


def weight_unit(weight: np.ndarray | None) -> float:
    """What all weights are multiplied by: 1 over their mean, in which a row counts by its weight; never below 1.

    Penalties are in cases, and weights that add up to 1 would leave nothing to learn from. So equal weights below 1
    count as 1 each. Weights of 1 or more are copies of rows and stay as they are, also beside a few
    light rows.

    Examples
    --------
    >>> weight_unit(np.full(8, 0.125)), weight_unit(np.array([1.0, 3.0, 1.0]))
    (8.0, 1.0)
    >>> round(weight_unit(np.array([1.0, 1.0, 1e-9, 1e-9])), 6), weight_unit(np.array([1.0, *[0.25] * 16]))
    (1.0, 2.5)
    """
    if weight is None:
        return 1.0
    most = float(weight.max())
    part = weight / most
    return max(1.0, math.fsum(part) / math.fsum(part * part) / most)
