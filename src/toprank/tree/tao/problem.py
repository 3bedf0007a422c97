"""What tree alternating optimisation works on: distinct rows, and what each label costs each of them.

Costs are integers in units of `unit`, so that every sum is exact: an objective that must never rise can be compared to
the last bit, and nothing depends on the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from toprank._core.dtypes import VALUE, WEIGHT
from toprank._core.tao import sums_at
from toprank._core.threads import Threads, cut_evenly
from toprank.tree.bin_mapper import SAMPLE_ROWS
from toprank.tree.categories import CategorySearch, levels_worth_points
from toprank.tree.rows import find_equal_rows
from toprank.tree.weights import RowWeights

WEIGHT_BITS = 30
COST_BITS = 60
"""Weights of all rows together fit the first, costs of all rows together the second: what is between them is left to
tell costs apart, and sums stay exact in int64, twice as large ones too."""

CONSTANT = 1e-12
"""Spread, as a share of the size of its values, below which a column counts as constant in weighted sums."""

SMALLEST_SPREAD = 1e-290
"""Spread below which weights in original units could overflow: such a column is left out of weighted sums, too."""

RARE = 0.002
"""Share of the weight that a category and all others must have to be a term of weighted sums."""

MOST_CATEGORIES = 32
"""Categories of one column that may be terms of weighted sums, the most frequent ones: each takes n numbers."""

MOST_TERMS = 256
"""Categories of all columns together, likewise: 2 GB where there are a million rows."""


class StandardColumns(NamedTuple):
    """What weighted sums may add up: mean 0 over the weight of the rows, numbers with spread 1.

    Categories keep their unit, 1 where a row has them, else 0. In standard deviations their weights would cost less,
    the rarer the less, and fit the sample: that made curves worse where categories do not add up.

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
        """Whether there are two columns: a sum over one column is a condition on it."""
        return len(np.unique(self.feature)) > 1


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a table with their labels, in an order of their own: the same for any order of the table.

    Attributes
    ----------
    X : float64 array of shape (n, n_features), C order
        Original units, NaN = missing, categories as codes.
    label : int64 array of shape (n,)
        Class of each row, 0 to K - 1.
    weight : int64 array of shape (n,)
        Weight of each row in units of `unit` cases, more than 0.
    unit : float
    is_categorical : uint8 array of shape (n_features,)
    codes : list of integer arrays of shape (n,)
        Bins or ranks of each column, ascending with its values; n_codes[f] = missing.
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
    def of(
        cls,
        X: np.ndarray,
        label: np.ndarray,
        weights: RowWeights,
        is_categorical: np.ndarray,
        codes_of: Callable[[int], tuple[np.ndarray, int]],
        categories: CategorySearch | None = None,
    ) -> DistinctRows:
        """Merge equal rows of equal label; rows without weight are left out.

        Parameters
        ----------
        X : float array of shape (n, n_features)
        label : int array of shape (n,)
        weights : RowWeights
        is_categorical : uint8 array of shape (n_features,)
        codes_of : callable
            Codes of one column and their number.
        categories : CategorySearch, optional
        """
        present = np.flatnonzero(weights.total)
        coded = [codes_of(f) for f in range(X.shape[1])]
        key = np.empty((len(present), X.shape[1] + 1))
        key[:, 0] = label[present]
        # Numbers decide first, then the places of categories by weight, so that renamed categories, whose codes change,
        # hardly ever change the order.
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
        """Columns that weighted sums may use; n float64 for each, also for each category.

        Constant columns are left out, rare categories too; of two categories that are each other's complement the more
        frequent one, so that a missing or unknown category counts as that one.
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
        """Columns and categories that are terms of weighted sums, column by column."""
        named = [(f, c) for f in np.flatnonzero(self.is_categorical).tolist() for c in self._frequent(f)]
        if len(named) <= MOST_TERMS:
            return named
        share = np.array([self._shares(f)[c] for f, c in named])
        return [named[i] for i in np.sort(np.argsort(-share, kind="stable")[:MOST_TERMS])]

    def _shares(self, feature: int) -> np.ndarray:
        """Share of the weight that each category of a column has: float64 (n_codes[feature],)."""
        mass = np.bincount(self.codes[feature], self.weight, self.n_codes[feature] + 1)
        return mass[:-1] / int(self.weight.sum())

    def _worth_terms(self, feature: int) -> np.ndarray:
        """Categories of a column that tell any class from the others by more than chance: bool (n_codes[feature],)."""
        n_codes, cases = self.n_codes[feature], self.weight * self.unit
        total = np.bincount(self.codes[feature], cases, n_codes + 1)[:n_codes]
        classes = np.unique(self.label)
        if self.categories.cat_smooth is None or len(classes) < 2:
            return total > 0
        worth = np.zeros(n_codes, bool)
        for each in classes[1:]:  # of two classes one says it all
            of_class = np.bincount(self.codes[feature], cases * (self.label == each), n_codes + 1)[:n_codes]
            worth |= levels_worth_points(of_class, total, self.categories)
        return worth

    def _frequent(self, feature: int) -> list[int]:
        """Categories of a column that are terms of weighted sums, the most frequent first, whatever their codes."""
        share = np.where(self._worth_terms(feature), self._shares(feature), 0.0)
        present, first = np.unique(self.codes[feature], return_index=True)
        order = present[np.lexsort((first, -np.append(share, 0.0)[present]))]
        found = [int(code) for code in order if code < len(share) and min(share[code], 1.0 - share[code]) >= RARE]
        if len(found) == 2 and np.isin(self.codes[feature], found).all():  # the one is where the other is not
            found = found[1:]
        return found[:MOST_CATEGORIES]

    @cached_property
    def means(self) -> np.ndarray:
        """Mean of each number over the rows that have it, 0 where none has, and 0 of categories: (n_features,)."""
        exponent, _, scaled, mass = self._scaled()
        mean = np.ldexp(np.divide(self.weight @ scaled, mass, out=np.zeros_like(mass), where=mass > 0), exponent)
        return np.where(self.is_categorical, 0.0, mean)

    @cached_property
    def has_missing(self) -> np.ndarray:
        """Columns that a row lacks: bool (n_features,)."""
        return np.isnan(self.X).any(axis=0)

    def _scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns in units of a power of 2 near their size, so that squares do not overflow.

        Returns the exponents, (n_features,); known values, bool (n, n_features); the scaled ones, missing ones 0; and
        the weight of the rows that have a value, (n_features,).
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
        """Rows from which the spread of a weighted sum is taken."""
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
        """Weighted sum of terms for some rows, to the last bit as in a tree; missing numbers count as `fill`."""
        threads, out = threads or Threads(), np.empty(len(rows))
        threads.run(
            lambda part: sums_at(self.X, rows[part], feature, code, weight, fill, out[part]),
            cut_evenly(len(rows), threads.n_threads),
        )
        return out

    def spread_of_sum(
        self, feature: np.ndarray, code: np.ndarray, weight: np.ndarray, threads: Threads | None = None
    ) -> float:
        """Standard deviation of a weighted sum of terms, missing numbers at their means; 1 where it has none."""
        value = self.sums(self.sample, feature, code, weight, self.means[feature], threads)
        known = np.isfinite(value)
        if not known.any():
            return 1.0
        mass, value = self.weight[self.sample][known], value[known]
        spread = float(np.sqrt(np.average((value - np.average(value, weights=mass)) ** 2, weights=mass)))
        return spread if 0 < spread < np.inf else 1.0


def places_by_weight(codes: np.ndarray, label: np.ndarray, weight: np.ndarray, n_codes: int) -> np.ndarray:
    """Place of each row's code among all codes, by the weight of each class that has it: int64 (n,).

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
    """Distinct rows, and what each label costs each of them.

    Attributes
    ----------
    rows : DistinctRows
    cost : int64 array of shape (n, K)
        Cost of each label for each row, in units of `unit`.
    unit : float
    alpha : float
        What a weight of 1 on a standardised column, or on a category, costs: alpha of eq. (3).
    is_oblique : bool
        Whether conditions may be weighted sums of columns.
    threads : Threads
        Share the work on it; no result depends on them.
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
    def of(
        cls, rows: DistinctRows, costs: np.ndarray, alpha: float, is_oblique: bool, threads: Threads | None = None,
        categories: CategorySearch | None = None,
    ) -> CostProblem:  # fmt: skip
        """Problem of a cost matrix.

        Parameters
        ----------
        rows : DistinctRows
        costs : float array of shape (K, K)
            Cost of calling a case of class i (row) class j (column); 0 on the diagonal.
        alpha : float
        is_oblique : bool
        threads : Threads, optional
        categories : CategorySearch, optional
        """
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
    """Weights and costs as integers whose products add up to 2**bits at most, and the unit of the products.

    Whole weights stay as they are, so weight 2 costs what two rows cost, exactly.

    Parameters
    ----------
    weight : int64 array of shape (n,)
    costs : float array
    bits : int

    Returns
    -------
    weight : int64 array of shape (n,)
    costs : int64 array
    unit : float

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
