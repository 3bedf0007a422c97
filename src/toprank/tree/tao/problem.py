"""The input of tree alternating optimisation: distinct rows, and the cost of each label for each of them.

Costs are integers in units of `unit`, so that every sum is exact: an objective that must never increase can be compared
to the last bit, and nothing depends on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from toprank._core.dtypes import VALUE, WEIGHT
from toprank._core.tao import write_sums
from toprank._core.threads import Threads, cut_evenly
from toprank.tree.bin_mapper import SAMPLE_ROWS
from toprank.tree.categories import CategorySearch, levels_worth_points
from toprank.tree.rows import find_equal_rows
from toprank.tree.weights import RowWeights

WEIGHT_BITS = 30
COST_BITS = 60
"""The total weight fits into the first number of bits, the total cost into the second: the difference is left to
distinguish costs, and sums stay exact in int64, even doubled."""

CONSTANT = 1e-12
"""Standard deviation, relative to the size of its values, below which a column counts as constant in weighted sums."""

SMALLEST_SPREAD = 1e-290
"""Standard deviation below which weights in original units could overflow: weighted sums leave out such columns,
too."""

RARE = 0.002
"""Smallest share of the weight for a category, and for all others, to be a term of weighted sums."""

MOST_CATEGORIES = 32
"""Largest number of categories per column in weighted sums, most frequent first: each takes n numbers."""

MOST_TERMS = 256
"""Largest number of categories of all columns together: 2 GB with a million rows."""


class StandardColumns(NamedTuple):
    """Terms of weighted sums: mean 0 over the weight of the rows, numbers with standard deviation 1.

    Categories keep their unit, 1 if a row has them, else 0. In standard deviations, rare categories would have cheap
    weights and overfit: curves got worse where effects of categories are not additive.

    Attributes
    ----------
    feature, code : int32 arrays of shape (p,)
        Column, and which of its categories; -1 = the number itself. Numbers come first.
    spread : float64 array of shape (p,)
        Standard deviation of a number in original units; 1 for a category.
    values : float64 array of shape (n, p), Fortran order
        Missing numbers are 0, the mean; a missing category is none of the categories.
    """

    feature: np.ndarray
    code: np.ndarray
    spread: np.ndarray
    values: np.ndarray

    @property
    def can_add_up(self) -> bool:
        """Whether there are at least two columns: a sum over one column is a condition on it."""
        return len(np.unique(self.feature)) > 1


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a table with their labels, in a canonical order that does not depend on the table's order.

    Attributes
    ----------
    X : float64 array of shape (n, n_features), C order
        Original units, NaN = missing, categories as codes.
    label : int64 array of shape (n,)
        Class of each row, 0 to K - 1.
    weight : int64 array of shape (n,)
        Weight of each row in units of `unit` cases, above 0.
    unit : float
    is_categorical : uint8 array of shape (n_features,)
    codes : list of integer arrays of shape (n,)
        Bins or ranks of each column, in the order of its values; n_codes[f] = missing.
    n_codes : list of int
    categories : CategorySearch
        Which categories may be terms of weighted sums.
    """

    X: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    unit: float
    is_categorical: np.ndarray
    codes: list[np.ndarray]
    n_codes: list[int]
    categories: CategorySearch = field(default_factory=CategorySearch)

    @classmethod
    def from_rows(
        cls,
        X: np.ndarray,
        label: np.ndarray,
        weights: RowWeights,
        is_categorical: np.ndarray,
        codes_of: Callable[[int], tuple[np.ndarray, int]],
        categories: CategorySearch | None = None,
    ) -> DistinctRows:
        """Merge equal rows with equal labels; drop rows without weight. `codes_of` gives the codes of a column."""
        present = np.flatnonzero(weights.total)
        coded = [codes_of(f) for f in range(X.shape[1])]
        key = np.empty((len(present), X.shape[1] + 1))
        key[:, 0] = label[present]
        # Numbers decide first, then the places of categories by weight, so that renaming categories, which changes
        # their codes, hardly ever changes the order.
        for j, f in enumerate(np.argsort(is_categorical, kind="stable").tolist(), 1):
            key[:, j] = X[present, f]
            if is_categorical[f]:
                codes, n_codes = coded[f]
                key[:, j] = places_by_weight(codes[present], label[present], weights.total[present], n_codes + 1)
        first, which = find_equal_rows(key)
        chosen = present[first]
        return cls(
            np.ascontiguousarray(X[chosen], VALUE),
            np.asarray(label, np.int64)[chosen],
            np.bincount(which, weights.total[present]).astype(WEIGHT),
            weights.unit,
            is_categorical,
            [codes[chosen] for codes, _ in coded],
            [n_codes for _, n_codes in coded],
            categories or CategorySearch(),
        )

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def standard(self) -> StandardColumns:
        """Columns for weighted sums; n float64 for each number and each category.

        Leaves out constant columns and rare categories; of two complementary categories it leaves out the more frequent
        one, so that a missing or unknown category counts as that one.
        """
        exponent, known, scaled, mass = self._scaled()
        center = np.ldexp(self.means, -exponent)
        scaled -= center
        scaled[~known] = 0.0
        spread = np.sqrt(np.divide(self.weight @ scaled**2, mass, out=np.zeros_like(mass), where=mass > 0))
        original = np.ldexp(spread, exponent)
        varies = (spread > CONSTANT * (1.0 + np.abs(center))) & (original > SMALLEST_SPREAD)
        number = np.flatnonzero(varies & (self.is_categorical == 0))
        named = self._terms()
        feature = np.array([*number, *(f for f, _ in named)], np.int32)
        code = np.array([-1] * len(number) + [c for _, c in named], np.int32)
        deviation = np.append(original[number], np.ones(len(named)))
        values = np.empty((len(self), len(feature)), order="F")
        np.divide(scaled[:, number], spread[number], out=values[:, : len(number)])
        for j, (f, c) in enumerate(named, len(number)):
            values[:, j] = (self.codes[f] == c) - self._shares(f)[c]
        return StandardColumns(feature, code, deviation, values)

    def _terms(self) -> list[tuple[int, int]]:
        """Columns and categories in weighted sums, column by column."""
        named = [(f, c) for f in np.flatnonzero(self.is_categorical).tolist() for c in self._frequent(f)]
        if len(named) <= MOST_TERMS:
            return named
        share = np.array([self._shares(f)[c] for f, c in named])
        return [named[i] for i in np.sort(np.argsort(-share, kind="stable")[:MOST_TERMS])]

    def _shares(self, feature: int) -> np.ndarray:
        """Share of the weight of each category of a column: float64 (n_codes[feature],)."""
        mass = np.bincount(self.codes[feature], self.weight, self.n_codes[feature] + 1)
        return mass[:-1] / int(self.weight.sum())

    def _worth_terms(self, feature: int) -> np.ndarray:
        """Categories of a column that separate a class from the others better than chance: bool (n_codes[feature],)."""
        n_codes, cases = self.n_codes[feature], self.weight * self.unit
        total = np.bincount(self.codes[feature], cases, n_codes + 1)[:n_codes]
        classes = np.unique(self.label)
        if self.categories.cat_smooth is None or len(classes) < 2:
            return total > 0
        worth = np.zeros(n_codes, bool)
        for each in classes[1:]:  # with two classes one is enough
            of_class = np.bincount(self.codes[feature], cases * (self.label == each), n_codes + 1)[:n_codes]
            worth |= levels_worth_points(of_class, total, self.categories)
        return worth

    def _frequent(self, feature: int) -> list[int]:
        """Categories of a column in weighted sums, most frequent first, whatever their codes."""
        share = np.where(self._worth_terms(feature), self._shares(feature), 0.0)
        present, first = np.unique(self.codes[feature], return_index=True)
        order = present[np.lexsort((first, -np.append(share, 0.0)[present]))]
        found = [int(code) for code in order if code < len(share) and min(share[code], 1.0 - share[code]) >= RARE]
        if len(found) == 2 and np.isin(self.codes[feature], found).all():  # complementary categories
            found = found[1:]
        return found[:MOST_CATEGORIES]

    @cached_property
    def means(self) -> np.ndarray:
        """Mean of each number over its known values, 0 if there are none, and 0 for categories: (n_features,)."""
        exponent, _, scaled, mass = self._scaled()
        mean = np.ldexp(np.divide(self.weight @ scaled, mass, out=np.zeros_like(mass), where=mass > 0), exponent)
        return np.where(self.is_categorical, 0.0, mean)

    @cached_property
    def has_missing(self) -> np.ndarray:
        """Columns with missing values: bool (n_features,)."""
        return np.isnan(self.X).any(axis=0)

    def _scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns scaled by a power of 2 near their size, so that squares do not overflow.

        Returns the exponents, (n_features,); which values are known, bool (n, n_features); the scaled values, 0 if
        missing; and the weight of the rows with a known value, (n_features,).
        """
        with np.errstate(invalid="ignore"):
            size = np.nan_to_num(np.nanmax(np.abs(self.X), axis=0, initial=0.0))
        exponent = np.frexp(size)[1]
        known = ~np.isnan(self.X)
        return (
            exponent,
            known,
            np.where(known, np.ldexp(self.X, -exponent), 0.0),
            self.weight.astype(np.float64) @ known,
        )

    @cached_property
    def sample(self) -> np.ndarray:
        """Rows used to estimate the standard deviation of a weighted sum."""
        if len(self) <= SAMPLE_ROWS:
            return np.arange(len(self))
        return np.sort(np.random.default_rng(0).choice(len(self), SAMPLE_ROWS, replace=False))

    def sums(
        self,
        rows: np.ndarray,
        feature: np.ndarray,
        code: np.ndarray,
        weight: np.ndarray,
        fill: np.ndarray,
        threads: Threads | None = None,
    ) -> np.ndarray:
        """Weighted sum of terms for some rows, bit for bit as in a tree; missing numbers are replaced by `fill`."""
        threads, out = threads or Threads(), np.empty(len(rows))
        threads.run(
            lambda part: write_sums(self.X, rows[part], 0, len(feature), feature, code, weight, fill, out[part]),
            cut_evenly(len(rows), threads.n_threads),
        )
        return out

    def spread_of_sum(
        self, feature: np.ndarray, code: np.ndarray, weight: np.ndarray, threads: Threads | None = None
    ) -> float:
        """Standard deviation of a weighted sum of terms, with missing numbers at their means; 1 if it is 0."""
        value = self.sums(self.sample, feature, code, weight, self.means[feature], threads)
        known = np.isfinite(value)
        if not known.any():
            return 1.0
        mass, value = self.weight[self.sample][known], value[known]
        spread = float(np.sqrt(np.average((value - np.average(value, weights=mass)) ** 2, weights=mass)))
        return spread if 0 < spread < np.inf else 1.0


def places_by_weight(codes: np.ndarray, label: np.ndarray, weight: np.ndarray, n_codes: int) -> np.ndarray:
    """Place of each row's code among all codes, sorted by its weight per class: int64 (n,).

    Examples
    --------
    >>> import numpy as np
    >>> places_by_weight(np.array([0, 0, 2, 1]), np.array([0, 0, 0, 1]), np.ones(4), 3)
    array([2, 2, 1, 0])
    """
    mass = [np.bincount(codes[label == each], weight[label == each], n_codes) for each in np.unique(label)]
    place = np.empty(n_codes, np.int64)
    place[np.lexsort(mass[::-1])] = np.arange(n_codes)
    return place[codes]


@dataclass(frozen=True)
class CostProblem:
    """Distinct rows, and the cost of each label for each of them.

    Attributes
    ----------
    rows : DistinctRows
    cost : int64 array of shape (n, K)
        Cost of each label for each row, in units of `unit`.
    unit : float
    alpha : float
        Cost of a weight of 1 on a standardised column or a category: alpha of eq. (3).
    is_oblique : bool
        Whether conditions may be weighted sums of columns.
    threads : Threads
        Run work in parallel; no result depends on them.
    categories : CategorySearch
        How conditions on categories are searched.
    """

    rows: DistinctRows
    cost: np.ndarray
    unit: float
    alpha: float
    is_oblique: bool
    threads: Threads = field(default_factory=Threads)
    categories: CategorySearch = field(default_factory=CategorySearch)

    @classmethod
    def from_costs(
        cls, rows: DistinctRows, costs: np.ndarray, alpha: float, is_oblique: bool, threads: Threads | None = None,
        categories: CategorySearch | None = None,
    ) -> CostProblem:  # fmt: skip
        """Problem of a cost matrix (K, K): labelling a case of class i (row) as j (column); 0 on the diagonal."""
        weight, whole, unit = integer_costs(rows.weight, costs)
        cost = weight[:, None] * whole[rows.label]
        return cls(
            rows, cost, unit * rows.unit, alpha, is_oblique, threads or Threads(), categories or CategorySearch()
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.cost.shape[1]


def integer_costs(weight: np.ndarray, costs: np.ndarray, bits: int = COST_BITS) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights and costs as integers whose products sum to at most 2**bits, and the unit of the products.

    Whole weights are unchanged, so weight 2 costs exactly as much as two rows.

    Examples
    --------
    >>> import numpy as np
    >>> weight, costs, unit = integer_costs(np.array([1, 3]), np.array([[0.0, 0.5], [1.0, 0.0]]))
    >>> weight, costs * unit
    (array([1, 3]), array([[0. , 0.5],
           [1. , 0. ]]))
    """
    surplus = max(int(weight.sum()).bit_length() - WEIGHT_BITS, 0)
    if surplus:
        weight = np.rint(np.ldexp(weight.astype(np.float64), -surplus)).astype(WEIGHT)
    room = bits - int(weight.sum()).bit_length() - math.frexp(float(np.max(costs)))[1]
    whole = np.rint(np.ldexp(np.asarray(costs, np.float64), room)).astype(WEIGHT)
    return weight, whole, math.ldexp(1.0, surplus - room)
