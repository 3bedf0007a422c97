"""`Space`: encoded rows as points, so that distances between mixed rows mean something.

The rules, per column:

- a number is scaled: to [-1, 1] by its smallest and largest training value (the protocol of the thesis), to mean 0 and
  standard deviation 1, or not at all. New values outside the training range lie outside [-1, 1];
- a category has one coordinate per category, such that two rows of different categories are `category_distance` apart;
- a missing number lies at the median of the column. If training had missing values, a second coordinate keeps missing
  and known values one unit apart: half the range, or one standard deviation;
- a missing or unknown category is category_distance / sqrt(2) from every category;
- a column that has the same value in all training rows carries nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from toprank.errors import InputError

SCALINGS = ("minmax", "standard")
"""Scalings by name; None keeps the numbers as they are."""

CATEGORY_DISTANCE = 2.0
"""Distance of two categories: as far apart as the smallest and the largest number of a column."""

FARTHEST = 1e100
"""Coordinates are cut off here, so that no squared distance overflows."""


@dataclass(frozen=True)
class Space:
    """How encoded rows become points. All arrays have one entry per column of the encoded matrix."""

    n_categories: np.ndarray  # int64 (n_features,): 0 for numbers
    centre: np.ndarray  # float64 (n_features,): what is subtracted from a number
    # float64 (n_features,): what a number is divided by; coordinate of a category; 0 for a column that carries nothing
    scale: np.ndarray
    fill: np.ndarray  # float64 (n_features,): coordinate of a missing number
    # float64 (n_features,): distance of missing from known numbers, on a coordinate of its own; 0 without one
    gap: np.ndarray

    @classmethod
    def learn(
        cls,
        X: np.ndarray,
        n_categories: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        scaling: str | None = "minmax",
        category_distance: float = CATEGORY_DISTANCE,
    ) -> Self:
        """Return the space of training rows; it is the same for any row order, and weight 2 is the row twice.

        In X, categories are codes and NaN is missing; `n_categories` is 0 for numbers. Rows of weight 0 are left out.
        """
        weight = np.ones(len(X)) if weight is None else weight
        X, weight = X[weight > 0], weight[weight > 0]
        learned = np.zeros((4, X.shape[1]))
        for f in range(X.shape[1]):
            is_known = ~np.isnan(X[:, f])
            values = X[is_known, f]
            if n_categories[f] > 0:
                n_kinds = len(np.unique(values)) + (len(values) < len(X))
                learned[:, f] = 0.0, category_distance / math.sqrt(2) if n_kinds > 1 else 0.0, 0.0, 0.0
            elif len(values):
                learned[:, f] = _learn_number(values, weight[is_known], scaling, len(values) < len(X))
        return cls(np.asarray(n_categories, np.int64), *learned)

    @property
    def n_dims(self) -> int:
        """Number of coordinates of a point."""
        return len(self.column_of)

    @property
    def column_of(self) -> np.ndarray:
        """Return the column that each coordinate comes from, int64 (n_dims,)."""
        return np.repeat(np.arange(len(self.scale)), self._widths)

    @property
    def _widths(self) -> np.ndarray:
        """Return the number of coordinates of each column, int64 (n_features,)."""
        carries = (self.scale > 0).astype(np.int64)
        return np.where(self.n_categories > 0, self.n_categories * carries, carries + (self.gap > 0))

    def points(self, X: np.ndarray) -> np.ndarray:
        """Return encoded rows as points, float64 (n, n_dims), finite."""
        out = np.zeros((len(X), self.n_dims))
        at = 0
        for f, width in enumerate(self._widths.tolist()):
            column = X[:, f].astype(np.float64)
            is_known = ~np.isnan(column)
            if width and self.n_categories[f]:
                codes = column[is_known].astype(np.int64)
                out[np.flatnonzero(is_known), at + codes] = self.scale[f]
            elif width:
                if self.scale[f] > 0:
                    scaled = np.clip(_scaled(column, self.centre[f], self.scale[f]), -FARTHEST, FARTHEST)
                    out[:, at] = np.where(is_known, scaled, self.fill[f])
                if self.gap[f] > 0:
                    out[~is_known, at + width - 1] = self.gap[f]
            at += width
        return out

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the encoded rows that points stand for, float64 (n, n_features); NaN in columns that carry nothing."""
        out = np.full((len(points), len(self.scale)), np.nan)
        at = 0
        for f, width in enumerate(self._widths.tolist()):
            own = points[:, at : at + width]
            if width and self.n_categories[f]:
                out[:, f] = np.where(own.any(axis=1), own.argmax(axis=1), np.nan)
            elif width and self.scale[f] > 0:
                is_missing = own[:, -1] > 0 if self.gap[f] > 0 else np.zeros(len(points), bool)
                largest = np.finfo(np.float64).max
                with np.errstate(over="ignore"):
                    value = np.clip(own[:, 0] * self.scale[f] + self.centre[f], -largest, largest)
                out[:, f] = np.where(is_missing, np.nan, value)
            at += width
        return out

    def by_column(self, differences: np.ndarray) -> np.ndarray:
        """Return squared distances per column, float64 (n, n_features), of differences of points (n, n_dims)."""
        out = np.zeros((len(differences), len(self.scale)))
        np.add.at(out.T, self.column_of, np.square(differences).T)
        return out

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the space for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_categories: np.ndarray) -> Self:
        """Return the space of a file, checked against the categories of the model's columns."""
        space = cls(**{field.name: arrays[field.name] for field in fields(cls)})
        is_valid = space.n_categories.dtype == np.int64 and np.array_equal(space.n_categories, n_categories)
        for array in (space.centre, space.scale, space.fill, space.gap):
            is_valid &= array.dtype == np.float64 and array.shape == n_categories.shape
            is_valid &= bool(np.all(np.isfinite(array)))
        if not is_valid or np.any(space.scale < 0) or np.any(space.gap < 0) or np.any(np.abs(space.fill) > FARTHEST):
            raise InputError("The model's scaling and its columns do not fit together.")
        return space


def _scaled(values: np.ndarray, centre: float, scale: float) -> np.ndarray:
    """Return (values - centre) / scale; a difference that overflows is taken between halves, of which none does."""
    with np.errstate(over="ignore"):
        difference = values - centre
        return np.where(np.isinf(difference), (values / 2 - centre / 2) / scale * 2, difference / scale)


def _learn_number(
    values: np.ndarray, weight: np.ndarray, scaling: str | None, has_missing: bool
) -> tuple[float, float, float, float]:
    """Return centre, scale, fill and gap of a number column from its known values."""
    low, high = float(values.min()), float(values.max())
    middle, half = low / 2 + high / 2, high / 2 - low / 2  # so that no difference overflows
    if half == 0:
        return 0.0, 0.0, 0.0, float(has_missing)
    unit = (values - middle) / half
    mean = _weighted_sum(unit, weight) / math.fsum(weight)
    deviation = math.sqrt(_weighted_sum(np.square(unit - mean), weight) / math.fsum(weight))
    centre, scale = {
        "minmax": (middle, half),
        "standard": (middle + mean * half, deviation * half),
        None: (0.0, 1.0),
    }[scaling]
    if scale == 0:  # the deviation of numbers next to 0 can vanish
        return 0.0, 0.0, 0.0, float(has_missing)
    fill = _scaled(np.array(_median(values, weight)), centre, scale)
    gap = deviation * half if scaling is None else 1.0
    return centre, scale, float(np.clip(fill, -FARTHEST, FARTHEST)), min(gap, FARTHEST) if has_missing else 0.0


def _weighted_sum(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the sum of values times weight, rounded once: with weight 3, to the bit that of three rows."""
    product = values * weight
    with np.errstate(over="ignore", invalid="ignore"):
        (value_high, value_low), (weight_high, weight_low) = _halves(values), _halves(weight)
        rest = value_high * weight_high - product
        rest = rest + value_high * weight_low + value_low * weight_high + value_low * weight_low  # Dekker's product
    return math.fsum(np.concatenate((product, np.where(np.isfinite(rest), rest, 0.0))))


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of 26 bits each that add up to the values (Veltkamp's split)."""
    scaled = values * (2.0**27 + 1.0)
    high = scaled - (scaled - values)
    return high, values - high


def _median(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the smallest value that at least half of the weight does not exceed."""
    distinct, which = np.unique(values, return_inverse=True)
    order = np.lexsort((weight, which))  # sums that do not depend on the order of the rows
    total = np.bincount(which[order], weight[order], len(distinct))
    below = np.cumsum(total)
    return float(distinct[np.searchsorted(below, below[-1] / 2)])
