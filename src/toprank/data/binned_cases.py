"""Training data prepared once: bins or sorted columns, shared by all trees grown on the same rows.

`toprank.data.shared_table` also shares it between fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from toprank._core.dtypes import MAX_BINS
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.tree.bin_mapper import SAMPLE_ROWS, BinMapper, Binned, center_and_spread, distinct_values
from toprank.tree.columns import Column
from toprank.tree.splitters import Batch, ExactSplitter, HistogramSplitter, Presorted, Splitter
from toprank.tree.weights import RowWeights, balanced_weights, integer_weights


class BinnedCases(Cases):
    """Binned cases, or cases with sorted values: ready to grow trees from.

    With `classes_alike` positives count as much as negatives for the bins, which are then narrow where positives are.

    Attributes
    ----------
    mapper, binned : BinMapper, Binned
        With splitter "hist".
    """

    def __init__(
        self,
        X: np.ndarray,
        is_positive: np.ndarray,
        weight: np.ndarray | None,
        columns: Sequence[Column],
        *,
        splitter: str = "hist",
        max_bins: int = MAX_BINS,
        classes_alike: bool = False,
        threads: Threads | None = None,
    ):
        super().__init__(X, is_positive, weight, columns)
        self._presorted: Presorted | None = None
        if splitter in ("exact", "midpoint"):
            self._presorted = Presorted(X, self.n_categories, midpoints=splitter == "midpoint")
            has_missing = self._presorted.has_missing
        else:
            counted = balanced_weights(is_positive, weight) if classes_alike else weight
            self.mapper = BinMapper(max_bins).fit(X, self.n_categories, counted, threads)
            self.binned = self.mapper.transform(X, threads)
            has_missing = self.binned.has_missing
        self.columns = [replace(c, has_missing=bool(m)) for c, m in zip(columns, has_missing, strict=True)]

    def codes(self, feature: int) -> tuple[np.ndarray, int]:
        """Bins or ranks of one column's values, and their number, which is the code of missing values."""
        if self._presorted is not None:
            return self._presorted.codes[feature], int(self._presorted.n_codes[feature])
        by_row, by_column, _ = self.binned
        return (by_column[feature] if by_column.size else by_row[:, feature]), int(self.mapper.n_bins[feature])

    def row_weights(self, weight: np.ndarray | None) -> RowWeights:
        """Integer weights of the rows for one tree: their own, or those of a fold, a bootstrap or a boosting round.

        The weight of one case is the mean of (weight / own weight) over the weight of its class: 1 if rows are only
        left out, 2 in a bootstrap, where copies of a row are one case.
        """
        weights = integer_weights(self.is_positive, weight)
        if weight is None or weight is self.weight or not self.is_categorical.any():
            return weights
        own = self.all_weights
        drawn = np.divide(weight, own, out=np.zeros(len(weight)), where=own > 0)
        cases = [
            math.fsum((weight * drawn)[of_class]) / math.fsum(weight[of_class]) if weight[of_class].any() else 1.0
            for of_class in (self.is_positive, ~self.is_positive)
        ]  # fsum rounds once, whatever the order of the rows
        return replace(weights, case_weights=(cases[0], cases[1]))

    def splitter(self, weights: RowWeights, threads: Threads) -> Splitter:
        """A new splitter over the rows with weight."""
        if self._presorted is not None:
            return ExactSplitter(self._presorted, weights, threads)
        return HistogramSplitter(self.binned, self.mapper, weights, threads)

    def stacked_splitter(self, weights: RowWeights, threads: Threads, n_copies: int) -> tuple[Splitter, Batch]:
        """A new splitter over copies of the rows with weight, and the copies, as one node each."""
        root = self.splitter(weights, threads).root()
        n, n_present = len(self.X), int(root.stop[0])
        roots = root.take(np.zeros(n_copies, np.int64))
        first = np.arange(n_copies, dtype=np.int64)
        roots = replace(roots, start=first * n_present, stop=(first + 1) * n_present)
        whole = RowWeights(np.tile(weights.positive, n_copies), np.tile(weights.total, n_copies), weights.unit,
                           weights.case_weights)  # fmt: skip
        if self._presorted is None:
            by_row, by_column, has_missing = self.binned
            binned = Binned(np.tile(by_row, (n_copies, 1)), np.tile(by_column, n_copies), has_missing)
            return HistogramSplitter(binned, self.mapper, whole, threads), roots
        presorted = copy(self._presorted)
        presorted.codes = np.tile(presorted.codes, n_copies)
        shift = np.repeat(first * n, n).astype(presorted.order.dtype)
        presorted.order = np.tile(presorted.order, n_copies) + shift
        return ExactSplitter(presorted, whole, threads), roots

    def column_scales(self) -> np.ndarray:
        """Standard deviation of each numeric column, 1 if it is 0: the unit of margins."""
        return self.once("column scales", self._column_scales)

    def _column_scales(self) -> np.ndarray:
        if self._presorted is None:
            spread = self.mapper.spread
        else:
            rows = self.sample(SAMPLE_ROWS)
            weight = None if self.weight is None else integer_weights(self.is_positive, self.weight).total[rows]
            columns = np.asfortranarray(self.X[rows], np.float64).T
            spread = np.array([center_and_spread(*distinct_values(column, weight))[1] for column in columns])
        return np.where(spread > 0, spread, 1.0)
