"""`BinTable`: a table in few bins with short edges, as rules and cards are learned from it."""

from __future__ import annotations

from typing import Self

import numpy as np

from toprank._core.threads import Threads
from toprank.explain.conditions import Condition
from toprank.tree.bin_mapper import BinMapper
from toprank.tree.columns import Column


class BinTable:
    """Codes of a table in bins.

    Attributes
    ----------
    codes : uint8 array of shape (n, n_features)
        Bin, or category code; the number of bins means missing.
    by_column : uint8 array of shape (n_features, n)
    n_bins : int64 array of shape (n_features,)
    at : int64 array of shape (n_features + 1,)
        First of each feature's bins, the one of missing values included, in one list of all bins.
    is_categorical : uint8 array of shape (n_features,)
    edges : list of float64 arrays
        Upper edges of all bins of a number but the last; empty for categories.
    """

    def __init__(self, mapper: BinMapper, codes: np.ndarray):
        self.codes, self.by_column = codes, np.ascontiguousarray(codes.T)
        self.n_bins = mapper.n_bins.astype(np.int64)
        self.is_categorical = mapper.is_categorical
        self.at = np.append(0, np.cumsum(self.n_bins + 1))
        self.edges = [
            np.zeros(0) if categorical else mapper.edges[f, : max(n - 1, 0)]
            for f, (n, categorical) in enumerate(zip(self.n_bins.tolist(), self.is_categorical.tolist(), strict=True))
        ]

    @classmethod
    def from_rows(
        cls, X: np.ndarray, n_categories: np.ndarray, weight: np.ndarray, max_bins: int, threads: Threads
    ) -> Self:
        """Bins of the rows of a matrix, all with weight."""
        mapper = BinMapper(max_bins).fit(X, n_categories, weight, threads)
        return cls(mapper, mapper.transform(X, threads).by_row)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.n_bins)

    def n_conditions(self, feature: int, mask: np.ndarray) -> int:
        """Conditions that a set of codes takes: both ends of a range count; 0 if it holds all codes."""
        if mask.all():
            return 0
        if self.is_categorical[feature]:
            return 1
        bins = np.flatnonzero(mask[:-1])
        if len(bins) == 0:
            return 1
        return max(int(bins[0] > 0) + int(bins[-1] < len(mask) - 2), 1)

    def condition(self, feature: int, mask: np.ndarray, column: Column) -> Condition:
        """The condition that a value is in a set of codes."""
        missing = bool(mask[-1])
        if self.is_categorical[feature]:
            return Condition(feature, column, missing=missing, codes=tuple(np.flatnonzero(mask[:-1]).tolist()))
        bins, edges = np.flatnonzero(mask[:-1]), self.edges[feature]
        if len(bins) == 0:
            return Condition(feature, column, low=np.inf, high=-np.inf, missing=missing)
        low = float(edges[bins[0] - 1]) if bins[0] > 0 else -np.inf
        high = float(edges[bins[-1]]) if bins[-1] < len(edges) else np.inf
        return Condition(feature, column, low=low, high=high, missing=missing)
