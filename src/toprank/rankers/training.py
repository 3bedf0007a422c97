"""Training data prepared once: bins or sorted columns, shared by all trees that are grown on the same rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toprank._core.dtypes import MAX_BINS, MAX_ROWS
from toprank._core.threads import Threads
from toprank.tree.batch import Splitter
from toprank.tree.bin_mapper import SAMPLE_ROWS, BinMapper, center_and_spread, distinct_values, sample_rows
from toprank.tree.columns import Column
from toprank.tree.exact_splitter import ExactSplitter, Presorted
from toprank.tree.histogram_splitter import HistogramSplitter
from toprank.tree.weights import RowWeights, integer_weights

FINGERPRINT_ROWS = 5_000


class TrainingData:
    """Encoded rows with labels and weights, ready to grow trees from.

    Attributes
    ----------
    X : float array of shape (n, n_features)
    is_positive : bool array of shape (n,)
    weight : float64 array of shape (n,) or None
    columns : list of Column
    is_categorical : uint8 array of shape (n_features,)
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
        if len(X) > MAX_ROWS:
            raise ValueError(f"X has {len(X):,} rows, at most {MAX_ROWS:,} fit. Hint: train on a sample.")
        self.X, self.is_positive, self.weight = X, is_positive, weight
        self.n_categories = np.array([len(c.categories or ()) for c in columns], np.int32)
        # A categorical column without any known category is a numeric column of missing values.
        self.is_categorical = (self.n_categories > 0).astype(np.uint8)
        self._presorted: Presorted | None = None
        if splitter == "exact":
            self._presorted = Presorted(X, self.n_categories)
            has_missing = self._presorted.has_missing
        else:
            self.mapper = BinMapper(max_bins).fit(X, self.n_categories, weight, threads)
            self.binned = self.mapper.transform(X, threads)
            has_missing = self.binned.has_missing
        self.columns = [replace(c, has_missing=bool(m)) for c, m in zip(columns, has_missing, strict=True)]

    def splitter(self, weights: RowWeights, threads: Threads) -> Splitter:
        """A fresh splitter over the rows that have weight."""
        if self._presorted is not None:
            return ExactSplitter(self._presorted, weights, threads)
        return HistogramSplitter(self.binned, self.mapper, weights, threads)

    def sample(self, n_rows: int) -> np.ndarray:
        """Positions of at most n_rows rows that have weight, drawn at random, the same ones each time."""
        rows = sample_rows(len(self.X), n_rows, self.weight)
        return np.arange(len(self.X)) if rows is None else rows

    def column_scales(self) -> np.ndarray:
        """Standard deviation of each numeric column, 1 where it has none: the unit of margins."""
        if self._presorted is None:
            spread = self.mapper.spread
        else:
            rows = self.sample(SAMPLE_ROWS)
            weight = None if self.weight is None else integer_weights(self.is_positive, self.weight).total[rows]
            columns = np.asfortranarray(self.X[rows], np.float64).T
            spread = np.array([center_and_spread(*distinct_values(column, weight))[1] for column in columns])
        return np.where(spread > 0, spread, 1.0)

    def fingerprint(self) -> str:
        """Hash of the training data: its size and at most 5,000 rows at equal distances with labels and weights."""
        rows = np.linspace(0, len(self.X) - 1, min(len(self.X), FINGERPRINT_ROWS)).astype(np.int64)
        digest = hashlib.blake2b(repr((self.X.shape, [c.to_dict() for c in self.columns])).encode(), digest_size=16)
        parts = [self.X[rows], self.is_positive[rows]] + ([] if self.weight is None else [self.weight[rows]])
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()
