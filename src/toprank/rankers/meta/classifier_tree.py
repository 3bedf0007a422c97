"""`ClassifierTree`: a meta-tree whose nodes are split by fitted classifiers. It ranks, but cannot be read."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank._core.dtypes import NODE
from toprank._core.threads import Threads
from toprank.errors import InputError
from toprank.rankers.growth import GrowthSettings
from toprank.rankers.leaf_rates import falling_rates
from toprank.rankers.meta.ordering import LeafOrder, place_rates
from toprank.tree.meta.meta_tree import MetaTree
from toprank.tree.scoring import TIES


class ClassifierTree:
    """Scores, leaves and weights of a meta-tree of classifiers, under the same names as in `Tree`.

    Anything else that a `Tree` has, conditions above all, raises an error.

    Attributes
    ----------
    is_leaf, positive, negative, leaf, score, rate
        As in `Tree`, one entry per meta-node.
    """

    scoring = TIES

    def __init__(self, meta: MetaTree, unit: float, settings: GrowthSettings, order: LeafOrder):
        leaves, place = order.leaves, order.place
        n = order.n_places
        self.meta, self.n_leaves, self.is_leaf = meta, n, meta.is_leaf
        self.depth = int(meta.depth.max())
        self.positive, self.negative = meta.positive * unit, (meta.total - meta.positive) * unit
        self.leaf = np.full(len(meta.left), -1, NODE)
        self.leaf[leaves] = place
        self.score = np.where(self.is_leaf, (n - self.leaf) / n, np.nan)
        rates = falling_rates(place_rates(settings, meta, unit, order), np.bincount(place, meta.total[leaves]))
        self.rate = np.where(self.is_leaf, rates[self.leaf], np.nan)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InputError(
            "This TreeRank is split by classifiers, so it has no readable conditions: reasons, rules, text "
            f"and files need them ({name!r} of a tree). Hint: use leaf_ranker='tree' or 'oblique', or top_k with "
            "reasons=0."
        )

    def apply(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the meta-leaf of each row of X: int32 (n,)."""
        out = np.zeros(len(X), NODE)
        stack = [(0, np.arange(len(X)))]
        while stack:
            node, rows = stack.pop()
            out[rows] = node
            if not self.is_leaf[node] and len(rows):
                is_left = self.meta.inner[node].is_left(X[rows])
                stack += [(int(self.meta.left[node]), rows[is_left]), (int(self.meta.right[node]), rows[~is_left])]
        return out

    def decision_function(self, X: np.ndarray, threads: Threads | None = None) -> np.ndarray:
        """Return the score of each row of X, float64 (n,): that of its cell."""
        return self.score[self.apply(X)]

    def scores_and_leaves(self, X: np.ndarray, threads: Threads | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return score, float64 (n,), and meta-leaf, int32 (n,), of each row of X."""
        leaf = self.apply(X)
        return self.score[leaf], leaf
