"""Batches of nodes, and the interface of a splitter.

A splitter owns the order of the rows. A node is a contiguous segment of that order; `split` splits segments by
conditions, `regroup` by the cells of a finished inner tree. The grower sees neither rows nor bins, only batches of
nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from toprank._core.dtypes import SPLIT, WEIGHT
from toprank._core.threads import Threads, cut_evenly
from toprank.tree.categories import PLAIN, Rules


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


class Splitter(Protocol):
    """Interface between the grower and a splitter."""

    n_features: int
    is_categorical: np.ndarray

    def root(self) -> Batch:
        """All rows with weight, as one node."""
        ...

    def best_splits(
        self, batch: Batch, criterion: int, min_leaf: int, allowed: np.ndarray | None, roots: Batch | None = None,
        categories: Rules = PLAIN, direction: np.ndarray | None = None,
    ) -> Splits:  # fmt: skip
        """Best condition of each node; `allowed` (n_nodes, n_features) says which features it may use.

        `roots` holds the root of each node's tree, for criteria that use its class weights; None: the nodes are the
        roots. `categories` says how conditions on categories are searched, `direction` int8 (n_features,) in which
        direction rates may go along each number; None: in any.
        """
        ...

    def split(self, batch: Batch, splits: Splits) -> Batch:
        """Split the nodes' rows by their conditions; children alternate left and right, without statistics."""
        ...

    def with_statistics(self, parents: Batch, children: Batch, needed: np.ndarray) -> Batch:
        """The children marked in `needed`, ready for `best_splits`."""
        ...

    def remember(self) -> None:
        """Save the current row order for `regroup`."""
        ...

    def regroup(self, parents: Batch, cells: Batch, parent: np.ndarray, is_left: np.ndarray) -> Batch:
        """Split the parents' rows, in the saved order, by the side of each row's cell."""
        ...

    def thresholds(self, splits: Splits) -> np.ndarray:
        """Threshold of each numeric condition, NaN for the others."""
        ...


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
