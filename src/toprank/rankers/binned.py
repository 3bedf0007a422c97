"""`BinnedRanker`: a ranker whose trees are grown from a binned table."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.base import Ranker
from toprank.rankers.reading import TableReader
from toprank.rankers.validation import check_finite, warn_of_light_weights


class BinnedReader(TableReader):
    """An estimator that grows trees from a binned table."""

    @property
    def _binning(self) -> Any:
        """The estimator whose `splitter`, `max_bins` and `min_samples_leaf` apply: this one, unless it has a base."""
        return self

    def _make_cases(
        self, matrix: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, threads: Threads
    ) -> BinnedCases:
        """Return the encoded rows in bins, or with their values sorted."""
        try:
            return BinnedCases(matrix, is_positive, weight, self.columns_, splitter=self._binning.splitter,
                                max_bins=self._binning.max_bins, threads=threads)  # fmt: skip
        except ValueError:
            check_finite(matrix, self.columns_)  # names the column
            raise


class BinnedRanker(BinnedReader, Ranker):
    """Base of the rankers that grow trees."""

    @property
    def _table_settings(self) -> tuple[Any, ...]:
        return self._binning.splitter, self._binning.max_bins, *super()._table_settings

    def _check_cases(self, weight: np.ndarray | None) -> None:
        warn_of_light_weights(self.n_cases_, self._binning.min_samples_leaf, weight)
        super()._check_cases(weight)
