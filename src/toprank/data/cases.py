"""`Cases`: encoded rows with labels and weights, the training input of every ranker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from toprank._core.dtypes import MAX_ROWS
from toprank.errors import InputError
from toprank.tree.bin_mapper import sample_rows
from toprank.tree.columns import Column

FINGERPRINT_ROWS = 5_000

FINDINGS_KEPT = 8
"""Number of results cached per table."""


class Cases:
    """Encoded rows with labels and weights.

    Attributes
    ----------
    X : float array of shape (n, n_features)
        Categories are codes; NaN is a missing value.
    is_positive : bool array of shape (n,)
    weight : float64 array of shape (n,) or None
    columns : list of Column
    n_categories : int32 array of shape (n_features,)
        0 for numbers.
    is_categorical : uint8 array of shape (n_features,)
    groups : int64 array of shape (n,) or None
        Rows of one group, such as the visits of one person, are never on both sides of a split.
    """

    columns: list[Column]
    groups: np.ndarray | None = None
    shared_depths: tuple[int, ...] | None = None  # of a `SharedTable`, its `leaf_depths`

    def __init__(self, X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, columns: Sequence[Column]):
        if len(X) > MAX_ROWS:
            raise InputError(f"X has {len(X):,} rows, at most {MAX_ROWS:,} are supported. Hint: train on a sample.")
        self.X, self.is_positive, self.weight, self.columns = X, is_positive, weight, list(columns)
        self.n_categories = np.array([len(c.categories or ()) for c in columns], np.int32)
        # A categorical column without known categories is a numeric column of missing values.
        self.is_categorical = (self.n_categories > 0).astype(np.uint8)
        self._known: dict[Hashable, Any] = {}

    @property
    def all_weights(self) -> np.ndarray:
        """Weight of each row, float64 (n,): 1 if none are given."""
        return np.ones(len(self.X)) if self.weight is None else self.weight

    def with_weight(self, weight: np.ndarray) -> Self:
        """The same rows with other weights and an empty cache."""
        other = copy(self)
        other.weight, other._known = weight, {}
        return other

    def once(self, name: Hashable, find: Callable[[], Any]) -> Any:
        """The result of `find`, computed once and cached with the data; only the last few are kept."""
        if name not in self._known:
            self._known[name] = find()
            for oldest in list(self._known)[:-FINDINGS_KEPT]:
                del self._known[oldest]
        return self._known[name]

    def sample(self, n_rows: int) -> np.ndarray:
        """Positions of at most n_rows rows with weight, drawn at random, the same ones each time."""
        rows = sample_rows(len(self.X), n_rows, self.weight)
        return np.arange(len(self.X)) if rows is None else rows

    def fingerprint(self) -> str:
        """Hash of the training data: its size and at most 5,000 evenly spaced rows with labels and weights."""
        rows = np.linspace(0, len(self.X) - 1, min(len(self.X), FINGERPRINT_ROWS)).astype(np.int64)
        digest = hashlib.blake2b(repr((self.X.shape, [c.to_dict() for c in self.columns])).encode(), digest_size=16)
        parts = [self.X[rows], self.is_positive[rows]] + ([] if self.weight is None else [self.weight[rows]])
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def sample_cases(is_positive: np.ndarray, weight: np.ndarray | None, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """At most n_rows rows with weight: as many positives as fit into half of that, and random negatives.

    Returns the rows, increasing, and float64 weights of all rows: a row that represents others has their total weight,
    one that was not chosen 0.
    """
    return sample_classes(np.where(is_positive, 0, 1), 2, weight, n_rows)


def sample_classes(
    label: np.ndarray, n_classes: int, weight: np.ndarray | None, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """`sample_cases` for any number of classes: an equal share of each, and what rare classes leave for the others."""
    weight = np.ones(len(label)) if weight is None else weight.astype(np.float64)
    present = np.flatnonzero(weight)
    if len(present) <= n_rows:
        return present, weight
    of_class = [present[label[present] == c] for c in range(n_classes)]
    sizes, left = [0] * n_classes, n_rows
    for n_done, c in enumerate(sorted(range(n_classes), key=lambda c: len(of_class[c]))):
        sizes[c] = min(len(of_class[c]), left // (n_classes - n_done))
        left -= sizes[c]
    rng = np.random.default_rng(0)
    chosen, factor = [], np.zeros(len(label))
    for rows, size in zip(of_class, sizes, strict=True):
        picked = rng.choice(rows, size, replace=False)
        factor[picked] = len(rows) / max(len(picked), 1)
        chosen.append(picked)
    return np.sort(np.concatenate(chosen)), weight * factor
