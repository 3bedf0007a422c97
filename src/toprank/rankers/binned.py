"""What estimators with trees share: a binned table to grow them from (`BinnedRanker`), the paths of one (`OneTree`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.base import Ranker
from toprank.rankers.reading import TableReader
from toprank.rankers.validation import check_finite, warn_of_light_weights
from toprank.tree.structure import Tree


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


class OneTree(TableReader):
    """An estimator that is one tree."""

    tree_: Tree  # conditions, leaves and weights
    n_jobs: int | None

    def _readable_tree(self) -> Tree:
        """Return the tree to read and to save; an estimator that may have none raises InputError here."""
        return self.tree_

    @property
    def n_leaves_(self) -> int:
        """Number of leaves."""
        check_is_fitted(self)
        return int(self.tree_.is_leaf.sum())

    @property
    def n_conditions_(self) -> int:
        """Number of conditions in the tree."""
        check_is_fitted(self)
        return int((~self.tree_.is_leaf).sum())

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf node of `tree_` that each row reaches, int32 (n,)."""
        matrix = self._encode(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return self.tree_.apply(matrix, threads)

    def decision_path(self, X: Any) -> sp.csr_array:
        """Return the nodes of `tree_` on each row's path: sparse indicator of shape (n, n_nodes)."""
        matrix = self._encode(X)
        return path_indicator(self._readable_tree(), matrix)


def path_indicator(tree: Tree, matrix: np.ndarray) -> sp.csr_array:
    """Return the nodes on the path of each encoded row: sparse indicator of shape (n, n_nodes)."""
    nodes, length = tree.paths(matrix)
    column = nodes[np.arange(nodes.shape[1]) < length[:, None]]
    offset = np.append(0, np.cumsum(length))
    return sp.csr_array((np.ones(len(column), np.int64), column, offset), shape=(len(nodes), len(tree)))
