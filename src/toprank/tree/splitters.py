"""Splitters: what finds conditions and splits rows, for batches of nodes; from histograms or from sorted rows.

A splitter owns the order of the rows. A node is a contiguous segment of that order; `split` splits segments by
conditions, `regroup` by the cells of a finished inner tree. The grower sees neither rows nor bins, only batches of
nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toprank._core.dtypes import NODE, ROW, SPLIT, WEIGHT
from toprank._core.histogram import packed_histograms, wide_histograms
from toprank._core.partition import join_chunks, mark_left, mark_rows, split_by_mark, split_chunks
from toprank._core.splitting import exact_splits, histogram_splits
from toprank._core.threads import CHUNK_ROWS, Threads, cut_evenly, cut_into_chunks, share_out
from toprank.errors import InputError
from toprank.tree.bin_mapper import BinMapper, Binned, Codes, between, short_between
from toprank.tree.categories import PLAIN, Rules, coins
from toprank.tree.weights import RowWeights

HISTOGRAM_MEMORY = 2**29
"""Bytes of histograms kept for subtraction; beyond that, histograms are computed when nodes are searched."""


@dataclass(frozen=True)
class Batch:
    """Nodes processed together: their segments of the row order and their weights."""

    start: np.ndarray
    stop: np.ndarray
    positive: np.ndarray
    total: np.ndarray
    histograms: np.ndarray | None = None
    slot: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: np.ndarray) -> Batch:
        """Some of the nodes; histograms are shared, not copied."""
        slot = None if self.slot is None else self.slot[index]
        return Batch(
            self.start[index], self.stop[index], self.positive[index], self.total[index], self.histograms, slot
        )


class Splits:
    """Best condition of each node of a batch."""

    def __init__(self, n_nodes: int):
        self.record = np.zeros(n_nodes, SPLIT)
        self.record["gain"] = -np.inf
        self.record["feature"] = -1
        self.goes_left = np.zeros((n_nodes, 256), np.uint8)

    def take(self, index: np.ndarray) -> Splits:
        """Conditions of some of the nodes."""
        part = Splits(0)
        part.record, part.goes_left = self.record[index], self.goes_left[index]
        return part

    def improve(self, other: Splits) -> None:
        """Keep the better of two conditions per node; ties go to the lower feature, as in a serial sweep."""
        gain, richer = self.record["gain"], self.record["richer"]
        is_equal = other.record["gain"] == gain
        better = (other.record["gain"] > gain) | (is_equal & (other.record["richer"] > richer))
        self.record[better] = other.record[better]
        self.goes_left[better] = other.goes_left[better]


class Splitter(ABC):
    """Base of both splitters; `rows` is the order of the rows with weight, one for all columns or one per column."""

    def __init__(self, rows: np.ndarray, is_categorical: np.ndarray, weights: RowWeights, threads: Threads):
        self.rows, self.is_categorical, self.weights, self.threads = rows, is_categorical, weights, threads
        self.n_features = len(is_categorical)
        self.mark = np.zeros(len(weights.total), np.uint8)

    def root(self) -> Batch:
        """All rows with weight, as one node."""
        return Batch(
            np.zeros(1, np.int64),
            np.array([self.rows.shape[-1]], np.int64),
            np.array([self.weights.sum_of_positive], WEIGHT),
            np.array([self.weights.sum_of_total], WEIGHT),
        )

    def best_splits(
        self, batch: Batch, criterion: int, min_leaf: int, allowed: np.ndarray | None, roots: Batch | None = None,
        categories: Rules = PLAIN, direction: np.ndarray | None = None,
    ) -> Splits:  # fmt: skip
        """Best condition of each node; `allowed` (n_nodes, n_features) says which features it may use.

        `roots` holds the root of each node's tree, for criteria that use its class weights; None: the nodes are the
        roots. `categories` says how conditions on categories are searched, `direction` int8 (n_features,) in which
        direction rates may go along each number; None: in any.
        """
        allowed = np.ones((len(batch), self.n_features), np.uint8) if allowed is None else allowed
        direction = np.zeros(self.n_features, np.int8) if direction is None else direction
        rule = min_leaf, categories, coins(), direction
        return self._search(batch, batch if roots is None else roots, criterion, allowed, rule)

    @abstractmethod
    def _search(self, batch: Batch, roots: Batch, criterion: int, allowed: np.ndarray, rule: tuple[Any, ...]) -> Splits:
        """`best_splits` with all defaults filled in; `rule` goes to the kernel as it is."""

    @abstractmethod
    def split(self, batch: Batch, splits: Splits) -> Batch:
        """Split the nodes' rows by their conditions; children alternate left and right, without statistics."""

    @abstractmethod
    def with_statistics(self, parents: Batch, children: Batch, needed: np.ndarray) -> Batch:
        """The children marked in `needed`, bool (n_children,), ready for `best_splits`."""

    @abstractmethod
    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others; infinity if only missing values go right."""

    def remember(self) -> None:
        """Save the current row order for `regroup`."""
        self.remembered = self.rows.copy()

    def regroup(self, parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
        """Split the parents' rows, in the saved order, by the side of each row's cell."""
        rows, side = np.atleast_2d(self.rows)[0], is_left.astype(np.uint8)
        runs = share_out(cells.stop - cells.start, self.threads.n_threads)
        self.threads.run(lambda run: mark_rows(rows, cells.start[run], cells.stop[run], side[run], self.mark), runs)
        self.rows = self.remembered
        return children_of(parents, self._split_by_mark(parents), *sum_of_cells(cells, parent, is_left, len(parents)))

    @abstractmethod
    def _split_by_mark(self, batch: Batch) -> np.ndarray:
        """Split the rows of each node by `mark`; return the number of rows on the left, int64 (n_nodes,)."""


class HistogramSplitter(Splitter):
    """Conditions from two-channel histograms over binned columns: the default, for any number of rows."""

    def __init__(self, binned: Binned, mapper: BinMapper, weights: RowWeights, threads: Threads):
        rows = np.arange(len(weights.total), dtype=ROW)
        if not weights.total.all():
            rows = rows[weights.total > 0]
        super().__init__(rows, mapper.is_categorical, weights, threads)
        self.binned, self.mapper, self.codes = binned.by_row, mapper, binned.strided
        self.packed = weights.packed
        self.left_rows, self.right_rows = np.empty_like(rows), np.empty_like(rows)
        sizes = mapper.n_bins.astype(np.int64) + 1
        self.offsets = (np.cumsum(sizes) - sizes).astype(np.uintp)
        self.total_bins = int(sizes.sum())

    def root(self) -> Batch:
        """All rows with weight, as one node."""
        batch = super().root()
        return replace(batch, histograms=self._histograms(batch), slot=np.zeros(1, NODE))

    def _histograms(self, batch: Batch, room: int = 0) -> np.ndarray:
        """Histograms of the nodes, from their rows: int64 (n_nodes + room, total_bins, 2), followed by zeros."""
        out = np.zeros((len(batch) + room, self.total_bins, 2), WEIGHT)
        chunks = cut_into_chunks(batch.start, batch.stop, CHUNK_ROWS)
        runs = share_out(chunks[:, 2] - chunks[:, 1], self.threads.n_threads)

        def add_up(run: slice) -> tuple[int, np.ndarray]:
            part = chunks[run]
            node = int(part[0, 0])
            shared = np.zeros((self.total_bins, 2), WEIGHT)
            if self.packed is not None:
                packed_histograms(self.binned, self.rows, part, self.offsets, self.packed,
                                  np.empty(self.total_bins, np.int64), node, shared, out)  # fmt: skip
            else:
                wide_histograms(self.binned, self.rows, part, self.offsets, self.weights.positive,
                                self.weights.total, node, shared, out)  # fmt: skip
            return node, shared

        for node, shared in self.threads.run(add_up, runs):
            out[node] += shared
        return out

    def with_statistics(self, parents: Batch, children: Batch, needed: np.ndarray) -> Batch:
        """The children marked in `needed`, with histograms: the smaller sibling is summed, the other the difference."""
        family = np.flatnonzero(needed.reshape(-1, 2).any(axis=1))
        bytes_needed = 2 * len(family) * self.total_bins * 16
        if parents.histograms is None or parents.slot is None or bytes_needed > HISTOGRAM_MEMORY:
            return children.take(np.flatnonzero(needed))
        size = (children.stop - children.start).reshape(-1, 2)[family]
        smaller = 2 * family + (size[:, 1] < size[:, 0])
        histograms = self._histograms(children.take(smaller), room=len(family))
        whole, slot_of = parents.histograms, parents.slot[family]

        def subtract(run: slice) -> None:
            for i in range(run.start, run.stop):
                np.subtract(whole[slot_of[i]], histograms[i], out=histograms[len(family) + i])

        self.threads.run(subtract, cut_evenly(len(family), self.threads.n_threads, least=1))
        slot = np.full(len(children), -1, NODE)
        slot[smaller] = np.arange(len(family))
        slot[smaller ^ 1] = np.arange(len(family)) + len(family)
        return replace(children, histograms=histograms, slot=slot).take(np.flatnonzero(needed))

    def _search(self, batch: Batch, roots: Batch, criterion: int, allowed: np.ndarray, rule: tuple[Any, ...]) -> Splits:
        if batch.histograms is not None and batch.slot is not None:
            return self._sweep(batch, roots, criterion, allowed, rule, batch.histograms, batch.slot)
        whole = Splits(len(batch))
        step = max(1, HISTOGRAM_MEMORY // (self.total_bins * 16))
        for first in range(0, len(batch), step):
            index = np.arange(first, min(first + step, len(batch)))
            part = batch.take(index)
            found = self._sweep(part, roots.take(index), criterion, allowed[index], rule, self._histograms(part),
                                np.arange(len(part), dtype=NODE))  # fmt: skip
            whole.record[index], whole.goes_left[index] = found.record, found.goes_left
        return whole

    def _sweep(
        self, batch: Batch, roots: Batch, criterion: int, allowed: np.ndarray, rule: tuple[Any, ...],
        histograms: np.ndarray, slot: np.ndarray,
    ) -> Splits:  # fmt: skip
        """Best condition of each node from its histogram, with the side of every bin."""

        def sweep(first: int, last: int, record: np.ndarray, goes_left: np.ndarray) -> None:
            histogram_splits(criterion, histograms, slot, self.offsets, self.mapper.n_bins, self.is_categorical,
                             allowed, first, last, batch.positive, batch.total, roots.positive, roots.total, *rule,
                             record, goes_left)  # fmt: skip

        splits = sweep_features(sweep, len(batch), self.n_features, self.threads)
        record = splits.record
        numeric = np.flatnonzero((record["feature"] >= 0) & (self.is_categorical[record["feature"]] == 0))
        splits.goes_left[numeric] = np.arange(256) <= record["last_left"][numeric, None]
        missing_bin = self.mapper.n_bins[record["feature"][numeric]]
        splits.goes_left[numeric, missing_bin] = record["missing_left"][numeric]
        return splits

    def split(self, batch: Batch, splits: Splits) -> Batch:
        """Split the nodes' rows by their conditions; children alternate left and right, without histograms."""
        record = splits.record
        n_left = self._split_rows(batch, self.codes, np.ascontiguousarray(record["feature"]), splits.goes_left)
        return children_of(batch, n_left, record["positive_left"], record["total_left"])

    def _split_rows(self, batch: Batch, codes: Codes, column: np.ndarray, goes_left: np.ndarray) -> np.ndarray:
        """Split the rows of each node by their code in one of its columns; return the number of rows on the left."""
        chunks = cut_into_chunks(batch.start, batch.stop, CHUNK_ROWS)
        runs = share_out(chunks[:, 2] - chunks[:, 1], self.threads.n_threads)
        left = np.zeros(len(chunks), np.int64)

        def part(run: slice) -> None:
            split_chunks(*codes, self.rows, self.left_rows, self.right_rows, chunks[run], column, goes_left, left[run])

        self.threads.run(part, runs)
        node = chunks[:, 0]
        n_left = np.bincount(node, left, len(batch)).astype(np.int64)
        right = chunks[:, 2] - chunks[:, 1] - left
        first = np.searchsorted(node, np.arange(len(batch)))
        left_before, right_before = np.cumsum(left) - left, np.cumsum(right) - right
        left_at = batch.start[node] + left_before - left_before[first][node]
        right_at = batch.start[node] + n_left[node] + right_before - right_before[first][node]

        def join(run: slice) -> None:
            join_chunks(self.left_rows, self.right_rows, self.rows, chunks[run], left[run], left_at[run], right_at[run])

        self.threads.run(join, runs)
        return n_left

    def _split_by_mark(self, batch: Batch) -> np.ndarray:
        no_column, answers = np.zeros(len(batch), NODE), np.tile(np.arange(256, dtype=np.uint8), (len(batch), 1))
        return self._split_rows(batch, (self.mark, 1, 0), no_column, answers)

    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others."""
        cut = self.mapper.thresholds(*(splits.record[name] for name in ("feature", "last_left", "first_right")))
        return np.where(self.is_categorical[splits.record["feature"]], np.nan, cut)


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


class ExactSplitter(Splitter):
    """Conditions from rows sorted by value: every distinct value is a possible cut. For small tables and papers.

    The same sweep as in `HistogramSplitter`, over the values present in each node.
    """

    def __init__(self, presorted: Presorted, weights: RowWeights, threads: Threads):
        self.presorted = presorted
        rows = presorted.order[weights.total[presorted.order] > 0].reshape(len(presorted.codes), -1)
        super().__init__(rows, (presorted.n_categories > 0).astype(np.uint8), weights, threads)

    def with_statistics(self, parents: Batch, children: Batch, needed: np.ndarray) -> Batch:
        """The children marked in `needed`; sorted rows need no statistics."""
        return children.take(np.flatnonzero(needed))

    def _search(self, batch: Batch, roots: Batch, criterion: int, allowed: np.ndarray, rule: tuple[Any, ...]) -> Splits:
        def sweep(first: int, last: int, record: np.ndarray, goes_left: np.ndarray) -> None:
            exact_splits(criterion, self.presorted.codes, self.rows, batch.start, batch.stop, self.weights.positive,
                         self.weights.total, self.presorted.n_codes, self.is_categorical, allowed, first, last,
                         batch.positive, batch.total, roots.positive, roots.total, *rule, record,
                         goes_left)  # fmt: skip

        return sweep_features(sweep, len(batch), self.n_features, self.threads)

    def split(self, batch: Batch, splits: Splits) -> Batch:
        """Split the nodes' rows by their conditions; children alternate left and right."""
        mark_left(self.presorted.codes, self.rows[0], batch.start, batch.stop, splits.record, self.presorted.n_codes,
                  self.is_categorical, splits.goes_left, self.mark)  # fmt: skip
        n_left = self._split_by_mark(batch)
        return children_of(batch, n_left, splits.record["positive_left"], splits.record["total_left"])

    def _split_by_mark(self, batch: Batch) -> np.ndarray:
        n_left = np.zeros(len(batch), np.int64)

        def part(run: slice) -> None:
            counts, buffer = np.zeros(len(batch), np.int64), np.empty(self.rows.shape[1], ROW)
            for f in range(run.start, run.stop):
                split_by_mark(self.rows[f], buffer, batch.start, batch.stop, self.mark, counts)
            n_left[:] = counts

        self.threads.run(part, cut_evenly(self.n_features, self.threads.n_threads, least=1))
        return n_left

    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others."""
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


def children_of(batch: Batch, n_left: np.ndarray, positive_left: np.ndarray, total_left: np.ndarray) -> Batch:
    """Batch of children, left and right alternating."""
    middle = batch.start + n_left

    def paired(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.column_stack((left, right)).ravel()

    return Batch(
        paired(batch.start, middle),
        paired(middle, batch.stop),
        paired(positive_left, batch.positive - positive_left),
        paired(total_left, batch.total - total_left),
    )


def sweep_features(sweep: Callable[..., None], n_nodes: int, n_features: int, threads: Threads) -> Splits:
    """Best conditions over all features: each thread sweeps a run of features; the runs are merged in feature order."""
    runs = cut_evenly(n_features, threads.n_threads, least=1)
    found = [Splits(n_nodes) for _ in runs]
    threads.run(lambda run, out: sweep(run.start, run.stop, out.record, out.goes_left), runs, found)
    for other in found[1:]:
        found[0].improve(other)
    return found[0]


def sum_of_cells(
    cells: Batch, parent: np.ndarray, is_left: np.ndarray, n_parents: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positive and total weight of each parent's left cells; exact, because totals stay below 2**52."""

    def sums(values: np.ndarray) -> np.ndarray:
        return np.bincount(parent[is_left], values[is_left], n_parents).astype(WEIGHT)

    return sums(cells.positive), sums(cells.total)


def parts_of(parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
    """The result of `Splitter.regroup` without moving any rows, for parts that will not be split."""
    n_left = np.bincount(parent[is_left], (cells.stop - cells.start)[is_left], len(parents)).astype(np.int64)
    return children_of(parents, n_left, *sum_of_cells(cells, parent, is_left, len(parents)))
