"""Conditions from histograms over bins: the default, for any number of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank._core.dtypes import NODE, ROW, WEIGHT
from toprank._core.histogram import packed_histograms, wide_histograms
from toprank._core.partition import join_chunks, mark_rows, split_chunks
from toprank._core.splitting import histogram_splits
from toprank._core.threads import CHUNK_ROWS, Threads, cut_evenly, cut_into_chunks, share_out
from toprank.tree.batch import Batch, Splits, children_of, sum_of_cells, sweep_features
from toprank.tree.bin_mapper import BinMapper, Binned, Codes
from toprank.tree.categories import PLAIN, Rules, coins
from toprank.tree.weights import RowWeights

HISTOGRAM_MEMORY = 2**29
"""Bytes of histograms kept for subtraction; beyond that, histograms are computed when nodes are searched."""


class HistogramSplitter:
    """Conditions from two-channel histograms over binned columns.

    Parameters
    ----------
    binned : Binned
    mapper : BinMapper
        The mapper that made `binned`.
    weights : RowWeights
    threads : Threads
    """

    def __init__(self, binned: Binned, mapper: BinMapper, weights: RowWeights, threads: Threads):
        self.binned, self.mapper, self.weights, self.threads = binned.by_row, mapper, weights, threads
        self.codes = binned.strided
        self.n_features = self.binned.shape[1]
        self.is_categorical = mapper.is_categorical
        self.packed = weights.packed
        self.rows = np.arange(len(weights.total), dtype=ROW)
        if not weights.total.all():
            self.rows = self.rows[weights.total > 0]
        self.left_rows, self.right_rows = np.empty_like(self.rows), np.empty_like(self.rows)
        self.mark = np.zeros(len(self.binned), np.uint8)
        sizes = mapper.n_bins.astype(np.int64) + 1
        self.offsets = (np.cumsum(sizes) - sizes).astype(np.uintp)
        self.total_bins = int(sizes.sum())

    def root(self) -> Batch:
        """All rows with weight, as one node."""
        batch = Batch(
            np.zeros(1, np.int64),
            np.array([len(self.rows)], np.int64),
            np.array([self.weights.sum_of_positive], WEIGHT),
            np.array([self.weights.sum_of_total], WEIGHT),
        )
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
        """The children marked in `needed`, with histograms: the smaller sibling is summed, the other is the difference.

        Parameters
        ----------
        parents : Batch of n nodes
        children : Batch of 2n nodes, left and right alternating
        needed : bool array of shape (2n,)
        """
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

    def best_splits(
        self, batch: Batch, criterion: int, min_leaf: int, allowed: np.ndarray | None, roots: Batch | None = None,
        categories: Rules = PLAIN, direction: np.ndarray | None = None,
    ) -> Splits:  # fmt: skip
        """Best condition of each node; `allowed` (n_nodes, n_features) says which features it may use."""
        if allowed is None:
            allowed = np.ones((len(batch), self.n_features), np.uint8)
        roots = batch if roots is None else roots
        direction = np.zeros(self.n_features, np.int8) if direction is None else direction
        if batch.histograms is not None and batch.slot is not None:
            return self._sweep(
                batch, roots, batch.histograms, batch.slot, criterion, min_leaf, allowed, categories, direction
            )
        whole = Splits(len(batch))
        step = max(1, HISTOGRAM_MEMORY // (self.total_bins * 16))
        for first in range(0, len(batch), step):
            index = np.arange(first, min(first + step, len(batch)))
            part = batch.take(index)
            found = self._sweep(part, roots.take(index), self._histograms(part),
                                np.arange(len(part), dtype=NODE), criterion, min_leaf, allowed[index],
                                categories, direction)  # fmt: skip
            whole.record[index], whole.goes_left[index] = found.record, found.goes_left
        return whole

    def _sweep(
        self,
        batch: Batch,
        roots: Batch,
        histograms: np.ndarray,
        slot: np.ndarray,
        criterion: int,
        min_leaf: int,
        allowed: np.ndarray,
        categories: Rules,
        direction: np.ndarray,
    ) -> Splits:
        """Best condition of each node from its histogram, with the side of every bin."""
        heads = coins()

        def sweep(first: int, last: int, record: np.ndarray, goes_left: np.ndarray) -> None:
            histogram_splits(criterion, histograms, slot, self.offsets, self.mapper.n_bins, self.is_categorical,
                             allowed, first, last, batch.positive, batch.total, roots.positive, roots.total, min_leaf,
                             categories, heads, direction, record, goes_left)  # fmt: skip

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
        n_left = self._part_rows(batch, self.codes, np.ascontiguousarray(record["feature"]), splits.goes_left)
        return children_of(batch, n_left, record["positive_left"], record["total_left"])

    def _part_rows(self, batch: Batch, codes: Codes, column: np.ndarray, goes_left: np.ndarray) -> np.ndarray:
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

    def remember(self) -> None:
        """Save the current row order for `regroup`."""
        self.remembered = self.rows.copy()

    def regroup(self, parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
        """Split the parents' rows, in the saved order, by the side of each row's cell."""
        side = is_left.astype(np.uint8)
        runs = share_out(cells.stop - cells.start, self.threads.n_threads)
        self.threads.run(
            lambda run: mark_rows(self.rows, cells.start[run], cells.stop[run], side[run], self.mark), runs
        )
        self.rows = self.remembered
        no_column, answers = np.zeros(len(parents), NODE), np.tile(np.arange(256, dtype=np.uint8), (len(parents), 1))
        n_left = self._part_rows(parents, (self.mark, 1, 0), no_column, answers)
        return children_of(parents, n_left, *sum_of_cells(cells, parent, is_left, len(parents)))

    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others."""
        cut = self.mapper.thresholds(*(splits.record[name] for name in ("feature", "last_left", "first_right")))
        return np.where(self.is_categorical[splits.record["feature"]], np.nan, cut)
