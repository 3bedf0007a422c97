"""Random columns: per meta-node, per condition, or both."""

from __future__ import annotations

import numpy as np


class FeatureSampler:
    """Draws the columns that each node of a level may use.

    The grower announces new roots, each the root of an inner tree, and asks for the columns of nodes by their roots, in
    an order that does not depend on threads, so the draws are the same for any number of threads.

    Parameters
    ----------
    n_features : int
    n_per_split : int or None
        Columns redrawn for each condition; None = all.
    n_per_tree : int or None
        Columns drawn once per root, to which its whole tree is limited; None = all.
    rng : numpy Generator

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.feature_sampler import FeatureSampler
    >>> sampler = FeatureSampler(5, 1, 2, np.random.default_rng(0))
    >>> sampler.begin(1)
    >>> drawn = sampler.draw(np.zeros(100, int))  # a hundred conditions in the tree of root 0
    >>> int(drawn.sum(axis=1).max()), int(drawn.any(axis=0).sum())
    (1, 2)
    """

    def __init__(self, n_features: int, n_per_split: int | None, n_per_tree: int | None, rng: np.random.Generator):
        self.n_features, self.n_per_split, self.n_per_tree, self.rng = n_features, n_per_split, n_per_tree, rng
        self._of_root: np.ndarray | None = None

    def begin(self, n_roots: int) -> None:
        """Draw the columns of this many new roots."""
        if self.n_per_tree is not None:
            self._of_root = _smallest(self.rng.random((n_roots, self.n_features)), self.n_per_tree)

    def draw(self, root: np.ndarray) -> np.ndarray:
        """Columns that each node may use, uint8 (n_nodes, n_features), given the root of each node."""
        confined = None if self._of_root is None else self._of_root[root]
        if self.n_per_split is None:
            return np.ones((len(root), self.n_features), np.uint8) if confined is None else confined
        key = self.rng.random((len(root), self.n_features))
        if confined is None:
            return _smallest(key, self.n_per_split)
        key[confined == 0] = 1.0  # above every draw, so they come last; if taken, the next line drops them
        return _smallest(key, self.n_per_split) & confined


def _smallest(key: np.ndarray, count: int) -> np.ndarray:
    """Mark the `count` smallest keys of each row: uint8, the shape of `key`."""
    chosen = np.argsort(key, axis=1)[:, :count]
    marked = np.zeros(key.shape, np.uint8)
    np.put_along_axis(marked, chosen, 1, axis=1)
    return marked


def columns_wanted(wanted: str | int | float | None, n_features: int) -> int | None:
    """Number of columns for "sqrt", "log2", a number or a share; None stays None.

    Examples
    --------
    >>> from toprank.tree.feature_sampler import columns_wanted
    >>> [columns_wanted(wanted, 30) for wanted in ("sqrt", 0.5, 99, None)]
    [5, 15, 30, None]
    """
    if wanted is None:
        return None
    if isinstance(wanted, str):
        wanted = float({"sqrt": np.sqrt, "log2": np.log2}[wanted](n_features))
    elif not isinstance(wanted, int | np.integer):
        wanted = wanted * n_features
    return max(1, min(int(wanted), n_features))
