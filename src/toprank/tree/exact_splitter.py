"""Conditions from rows sorted by value: every distinct value is a possible cut. For small tables and papers."""

from __future__ import annotations

import numpy as np

from toprank._core.dtypes import NODE, ROW, WEIGHT
from toprank._core.partition import mark_left, mark_rows, split_by_mark
from toprank._core.splitting import exact_splits
from toprank._core.threads import Threads, cut_evenly
from toprank.errors import InputError
from toprank.tree.batch import Batch, Splits, children_of, sum_of_cells, sweep_features
from toprank.tree.bin_mapper import between, short_between
from toprank.tree.categories import PLAIN, Rules, coins
from toprank.tree.weights import RowWeights


class Presorted:
    """Columns as dense ranks, and the rows of each column in rank order; shared by all trees on the same rows.

    Attributes
    ----------
    codes : int32 array of shape (n_features, n): rank of each value among the column's distinct values
    order : int32 array of shape (n_features, n): rows by ascending code, missing last
    values : list of float arrays, the distinct values of each column
    n_codes : int32 array of shape (n_features,): number of distinct values; code n_codes means missing
    midpoints : bool: thresholds midway between two values, as in the papers; else short numbers
    """

    def __init__(self, X: np.ndarray, n_categories: np.ndarray | None = None, *, midpoints: bool = False):
        n, d = X.shape
        self.midpoints = midpoints
        self.n_categories = np.zeros(d, NODE) if n_categories is None else np.asarray(n_categories, NODE)
        self.codes = np.empty((d, n), NODE)
        self.order = np.empty((d, n), ROW)
        self.values: list[np.ndarray] = []
        self.n_codes = np.empty(d, NODE)
        for f in range(d):
            self._sort_column(f, X[:, f])
        self.has_missing = (self.codes == self.n_codes[:, None]).any(axis=1)

    def _sort_column(self, f: int, column: np.ndarray) -> None:
        if np.isinf(column).any():
            raise InputError(
                f"Column {f} of X holds infinite values, expected finite numbers or NaN for missing. "
                "Hint: replace them with NaN, or clip the column."
            )
        if self.n_categories[f]:
            values = np.arange(self.n_categories[f], dtype=float)
            column = np.where((column >= 0) & (column < len(values)), column, np.nan)
        order = np.argsort(column, kind="stable")  # missing values last
        known = column[order].astype(float)
        known = known[: len(known) - int(np.isnan(known).sum())]
        codes = known
        if not self.n_categories[f]:
            is_new = np.append(True, known[1:] != known[:-1])[: len(known)]
            values, codes = known[is_new], np.cumsum(is_new) - 1
        self.values.append(values)
        self.n_codes[f] = len(values)
        self.order[f] = order
        self.codes[f, order[: len(known)]] = codes
        self.codes[f, order[len(known) :]] = len(values)


class ExactSplitter:
    """Conditions from sorted rows; the same sweep as `HistogramSplitter`, over the values present in each node.

    Parameters
    ----------
    presorted : Presorted
    weights : RowWeights
    threads : Threads
    """

    def __init__(self, presorted: Presorted, weights: RowWeights, threads: Threads):
        self.presorted, self.weights, self.threads = presorted, weights, threads
        self.n_features = len(presorted.codes)
        self.is_categorical = (presorted.n_categories > 0).astype(np.uint8)
        present = weights.total[presorted.order] > 0
        self.order = presorted.order[present].reshape(self.n_features, -1)
        self.mark = np.zeros(presorted.codes.shape[1], np.uint8)

    def root(self) -> Batch:
        """All rows with weight, as one node."""
        return Batch(
            np.zeros(1, np.int64),
            np.array([self.order.shape[1]], np.int64),
            np.array([self.weights.sum_of_positive], WEIGHT),
            np.array([self.weights.sum_of_total], WEIGHT),
        )

    def with_statistics(self, parents: Batch, children: Batch, needed: np.ndarray) -> Batch:
        """The children marked in `needed`; sorted rows need no statistics."""
        return children.take(np.flatnonzero(needed))

    def best_splits(
        self, batch: Batch, criterion: int, min_leaf: int, allowed: np.ndarray | None, roots: Batch | None = None,
        categories: Rules = PLAIN, direction: np.ndarray | None = None,
    ) -> Splits:  # fmt: skip
        """Best condition of each node; `allowed` (n_nodes, n_features) says which features it may use."""
        if allowed is None:
            allowed = np.ones((len(batch), self.n_features), np.uint8)
        whole, heads = batch if roots is None else roots, coins()
        towards = np.zeros(self.n_features, np.int8) if direction is None else direction

        def sweep(first: int, last: int, record: np.ndarray, goes_left: np.ndarray) -> None:
            exact_splits(criterion, self.presorted.codes, self.order, batch.start, batch.stop, self.weights.positive,
                         self.weights.total, self.presorted.n_codes, self.is_categorical, allowed, first, last,
                         batch.positive, batch.total, whole.positive, whole.total, min_leaf, categories, heads,
                         towards, record, goes_left)  # fmt: skip

        return sweep_features(sweep, len(batch), self.n_features, self.threads)

    def split(self, batch: Batch, splits: Splits) -> Batch:
        """Split the nodes' rows by their conditions; children alternate left and right."""
        mark_left(self.presorted.codes, self.order[0], batch.start, batch.stop, splits.record, self.presorted.n_codes,
                  self.is_categorical, splits.goes_left, self.mark)  # fmt: skip
        n_left = self._part_by_mark(batch)
        return children_of(batch, n_left, splits.record["positive_left"], splits.record["total_left"])

    def _part_by_mark(self, batch: Batch) -> np.ndarray:
        """Split every column's row order by `mark`; return the number of left rows of each node."""
        n_left = np.zeros(len(batch), np.int64)

        def part(run: slice) -> None:
            counts, buffer = np.zeros(len(batch), np.int64), np.empty(self.order.shape[1], ROW)
            for f in range(run.start, run.stop):
                split_by_mark(self.order[f], buffer, batch.start, batch.stop, self.mark, counts)
            n_left[:] = counts

        self.threads.run(part, cut_evenly(self.n_features, self.threads.n_threads, least=1))
        return n_left

    def remember(self) -> None:
        """Save the current row order for `regroup`."""
        self.remembered = self.order.copy()

    def regroup(self, parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
        """Split the parents' rows, in the saved order, by the side of each row's cell."""
        mark_rows(self.order[0], cells.start, cells.stop, is_left.astype(np.uint8), self.mark)
        self.order = self.remembered
        n_left = self._part_by_mark(parents)
        return children_of(parents, n_left, *sum_of_cells(cells, parent, is_left, len(parents)))

    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others; infinity if only missing values go right."""
        feature, left, right = (splits.record[name] for name in ("feature", "last_left", "first_right"))
        out = np.full(len(feature), np.nan)
        numeric = np.flatnonzero(self.is_categorical[feature] == 0)
        out[numeric[right[numeric] < 0]] = np.inf
        at = numeric[right[numeric] >= 0]
        low, high = (
            np.array([self.presorted.values[f][i] for f, i in zip(feature[at], place[at], strict=True)], np.float64)
            for place in (left, right)
        )
        out[at] = between(low, high) if self.presorted.midpoints else short_between(low, high)
        return out
