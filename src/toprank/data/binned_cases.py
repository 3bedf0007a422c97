"""Training data prepared once: bins or sorted columns, shared by all trees grown on the same rows.

`shared_training_data` also shares it between fits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

import numpy as np

from toprank._core.dtypes import MAX_BINS
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.tree.batch import Batch, Splitter
from toprank.tree.bin_mapper import SAMPLE_ROWS, BinMapper, Binned, center_and_spread, distinct_values
from toprank.tree.columns import Column
from toprank.tree.exact_splitter import ExactSplitter, Presorted
from toprank.tree.histogram_splitter import HistogramSplitter
from toprank.tree.weights import RowWeights, integer_weights

TABLES_KEPT = 2
"""Number of prepared tables kept by `shared_training_data`, for training and for scoring each."""


class BinnedCases(Cases):
    """Binned cases, or cases with sorted values: ready to grow trees from.

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
        threads: Threads | None = None,
    ):
        super().__init__(X, is_positive, weight, columns)
        self._presorted: Presorted | None = None
        if splitter in ("exact", "midpoint"):
            self._presorted = Presorted(X, self.n_categories, midpoints=splitter == "midpoint")
            has_missing = self._presorted.has_missing
        else:
            self.mapper = BinMapper(max_bins).fit(X, self.n_categories, weight, threads)
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
        own = np.ones(len(weight)) if self.weight is None else self.weight
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


@dataclass
class _Shelf:
    """A small cache of values made from given objects, which are compared by identity."""

    entries: list[tuple[tuple[Any, ...], Hashable, Any]] = field(default_factory=list)

    def find(self, objects: tuple[Any, ...], settings: Hashable) -> Any:
        """The value cached for these objects and equal settings; None if there is none."""
        for i, (others, same, value) in enumerate(self.entries):
            if settings == same and len(objects) == len(others) and all(map(is_, objects, others)):
                self.entries.append(self.entries.pop(i))
                return value
        return None

    def keep(self, objects: tuple[Any, ...], settings: Hashable, value: Any) -> None:
        """Cache a value and its objects, so that no other object can get the same identity; drop the oldest entry."""
        self.entries.append((objects, settings, value))
        del self.entries[:-TABLES_KEPT]


@dataclass(frozen=True)
class SharedTables:
    """Tables prepared by fits inside one `shared_training_data`: for training, and matrices for scoring."""

    leaf_depths: tuple[int, ...] = ()
    training: _Shelf = field(default_factory=_Shelf)
    encoded: _Shelf = field(default_factory=_Shelf)

    def clear(self) -> None:
        """Release all tables."""
        self.training.entries.clear()
        self.encoded.entries.clear()


_SHARED: ContextVar[SharedTables | None] = ContextVar("toprank shared training data", default=None)


def shared_tables() -> SharedTables | None:
    """The tables shared here; None outside `shared_training_data`."""
    return _SHARED.get()


@contextmanager
def shared_training_data(leaf_depths: Iterable[int | None] = ()) -> Iterator[None]:
    """Let fits on the same table share its preparation: reading, encoding, bins or sorted columns.

    Inside the context, a fit on the same objects X, y and sample_weight with equal `splitter`, `max_bins`,
    `categorical_features` and `pos_label` as one of the last two prepared tables reuses that table, and with it the
    linear score inside leaves for the same `logistic_C`. Scoring reuses a matrix that a model of the same table made
    from the same X. Models and scores are the same, bit for bit; warnings about a table's content are issued once.

    Objects are compared by identity: do not change X, y or sample_weight inside the context. All are released at its
    end. Each context has its own tables, also inside another one; other threads and processes are not affected.

    Parameters
    ----------
    leaf_depths : iterable of int
        Values of `leaf_depth` with which `MetaAP` will be fitted here, with equal other parameters. On a small table
        the first fit grows all these trees at once, which is cheaper than one after the other; None and other values
        are grown in their own fit. List only values that will be fitted.

    Examples
    --------
    >>> from toprank import MetaAP
    >>> from toprank.datasets import make_audit
    >>> from toprank.data.binned_cases import shared_training_data
    >>> data = make_audit(4000, random_state=0)
    >>> with shared_training_data(leaf_depths=[1, 2, 3]):
    ...     models = [MetaAP(max_depth=3, leaf_depth=depth).fit(data.X, data.y) for depth in (1, 2, 3)]
    >>> [model.n_leaves_ for model in models]
    [8, 6, 6]
    """
    tables = SharedTables(tuple(sorted({depth for depth in leaf_depths if depth is not None})))
    token = _SHARED.set(tables)
    try:
        yield
    finally:
        _SHARED.reset(token)
        tables.clear()  # a copy of the context may live on
