"""Partial dependence: the mean score of cases with one or two columns set to given values.

Works with any model that scores encoded rows; knows nothing of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.metrics.checks import check_count, is_int
from toprank.tree.columns import Column
from toprank.words.nearest import did_you_mean
from toprank.words.wording import names_text

MISSING = "missing"
ROUNDING = 1e-9  # of a sum of shares


@dataclass(frozen=True)
class Dependence:
    """Mean score by the values of one or two columns.

    Attributes
    ----------
    names : tuple of str
        Names of the columns, one or two: the axes.
    values : tuple of tuple
        Values along each axis: ascending numbers, or names of categories.
    is_categorical : tuple of bool
        Whether an axis holds categories.
    mean : ndarray of float64, shape (n_1,) or (n_1, n_2)
        Mean score of the rows with these values.
    share : ndarray of float64, of the same shape
        Share of the rows nearest to these values; a mean without rows nearby says little. Rows with a missing number
        are not counted.
    n_rows : int
        Rows averaged over.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    is_categorical: tuple[bool, ...]
    mean: np.ndarray
    share: np.ndarray
    n_rows: int

    @property
    def missing_share(self) -> float:
        """Share of the rows that `share` does not count: those with a missing number."""
        left_out = 1.0 - float(self.share.sum())
        return left_out if left_out > ROUNDING else 0.0

    def columns(self) -> dict[str, Any]:
        """Return columns value (or value_1 and value_2), mean and share; one row per point."""
        places = np.indices(self.mean.shape).reshape(self.mean.ndim, -1)
        names = ["value"] if len(self.names) == 1 else ["value_1", "value_2"]
        columns: dict[str, Any] = {
            name: [values[place] for place in axis]
            for name, values, axis in zip(names, self.values, places.tolist(), strict=True)
        }
        return columns | {"mean": self.mean.ravel(), "share": self.share.ravel()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "names": list(self.names),
            "values": [list(values) for values in self.values],
            "is_categorical": list(self.is_categorical),
            "mean": self.mean.tolist(),
            "share": self.share.tolist(),
            "n_rows": self.n_rows,
        }

    def __repr__(self) -> str:
        size = " x ".join(f"{n:,}" for n in self.mean.shape)
        return (
            f"<Dependence of the score on {' and '.join(self.names)}: {size} values, mean {self.mean.min():.4g} to "
            f"{self.mean.max():.4g}, over {self.n_rows:,} rows>"
        )


def partial_dependence(
    decide: Callable[[np.ndarray], np.ndarray],
    matrix: np.ndarray,
    columns: Sequence[Column],
    features: str | int | Sequence[str | int],
    *,
    n_values: int = 20,
    max_rows: int = 500,
    random_state: Any = 0,
) -> Dependence:
    """Return the mean score of the rows with one or two columns set to each of a range of values.

    Parameters
    ----------
    decide : callable
        Maps encoded rows, shape (m, n_features), to scores, shape (m,).
    matrix : float array of shape (n, n_features)
        Encoded rows: numbers as they are, categories as codes, NaN = missing.
    columns : sequence of Column
        Names and categories of the columns of `matrix`.
    features : str, int, or a list of one or two of them
        Columns to vary, by name or by position.
    n_values : int, default=20
        Values of a number to try: its quantiles, or all values if it has no more. Categories are all tried, and
        missing if it occurs.
    max_rows : int, default=500
        Most rows to average over; from more rows, this many are drawn.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of that draw.

    Notes
    -----
    `model.dependence(X, features)` of a fitted ranker takes a table as it is.

    The other columns keep their values, so if columns are correlated the mean may include impossible rows.
    Cost: one score for each row and value, or for each row and pair of values.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001,
    section 8.2.

    Examples
    --------
    >>> columns = [Column("age"), Column("sector", ("retail", "catering"))]
    >>> rows = np.array([[1.0, 0], [2.0, 1], [3.0, 1]])
    >>> result = partial_dependence(lambda X: X[:, 0] + 10 * X[:, 1], rows, columns, "sector")
    >>> result.values, result.mean.tolist(), result.share.round(2).tolist()
    ((('retail', 'catering'),), [2.0, 12.0], [0.33, 0.67])
    """
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or matrix.shape[1] != len(columns) or len(matrix) == 0:
        raise InputError(
            f"'matrix' of partial_dependence must hold encoded rows, floats with {len(columns)} columns. Got shape "
            f"{matrix.shape} of {matrix.dtype} instead. Hint: categories are codes, NaN is missing; "
            "model.dependence(X, features) encodes a table by itself."
        )
    n_values = check_count(n_values, "n_values", low=2, caller="partial_dependence")
    max_rows = check_count(max_rows, "max_rows", caller="partial_dependence")
    chosen = _positions(features, columns)
    axes = [_Axis.from_column(columns[feature], matrix[:, feature], n_values) for feature in chosen]
    rows = matrix
    if len(matrix) > max_rows:
        drawn = np.random.default_rng(random_state).choice(len(matrix), max_rows, replace=False)
        rows = matrix[np.sort(drawn)]
    return Dependence(
        names=tuple(columns[feature].name for feature in chosen),
        values=tuple(axis.words for axis in axes),
        is_categorical=tuple(columns[feature].is_categorical for feature in chosen),
        mean=_mean_scores(decide, rows, chosen, [axis.codes for axis in axes]),
        share=_shares([axis.nearest(matrix[:, feature]) for axis, feature in zip(axes, chosen, strict=True)], axes),
        n_rows=len(rows),
    )


@dataclass(frozen=True)
class _Axis:
    """Values of a column to try, as in the matrix and as shown to users."""

    codes: np.ndarray
    words: tuple[Any, ...]
    is_categorical: bool

    @classmethod
    def from_column(cls, column: Column, cells: np.ndarray, n_values: int) -> _Axis:
        if column.categories is not None:
            codes = np.arange(len(column.categories), dtype=np.float64)
            words = [names_text(column.labels(code)) for code in range(len(codes))]
            if np.isnan(cells).any():
                codes, words = np.append(codes, np.nan), [*words, MISSING]
            return cls(codes, tuple(words), True)
        known = cells[np.isfinite(cells)].astype(np.float64)
        if len(known) == 0:
            raise InputError(
                f"Column {column.name!r} has no finite value in the {len(cells):,} rows of partial_dependence. "
                "Hint: choose another column, or more rows."
            )
        distinct = np.unique(known)
        if len(distinct) > n_values:
            # Values that occur, not means of two, so that integers stay integers.
            distinct = np.unique(np.quantile(known, np.linspace(0, 1, n_values), method="inverted_cdf"))
        return cls(distinct, tuple(distinct.tolist()), False)

    def nearest(self, cells: np.ndarray) -> np.ndarray:
        """Return the index of the value nearest to each cell, -1 for none: intp (n,)."""
        is_missing = np.isnan(cells)
        if not self.is_categorical:
            middles = (self.codes[1:] + self.codes[:-1]) / 2
            return np.where(is_missing, -1, np.searchsorted(middles, cells))
        has_missing = bool(np.isnan(self.codes[-1]))
        last = len(self.codes) - 1
        known = np.where(is_missing, last if has_missing else -1, cells).astype(np.intp)
        return np.where((known >= 0) & (known <= last), known, -1)


def _mean_scores(
    decide: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, features: list[int], codes: list[np.ndarray]
) -> np.ndarray:
    """Return the mean score per value or pair of values. The last axis takes one call, the first a loop."""
    n_last = len(codes[-1])
    block = np.tile(rows, (n_last, 1))
    block[:, features[-1]] = np.repeat(codes[-1], len(rows))
    if len(features) == 1:
        return _scores(decide, block).reshape(n_last, -1).mean(axis=1)
    mean = np.empty((len(codes[0]), n_last))
    for place, code in enumerate(codes[0]):
        block[:, features[0]] = code
        mean[place] = _scores(decide, block).reshape(n_last, -1).mean(axis=1)
    return mean


def _scores(decide: Callable[[np.ndarray], np.ndarray], block: np.ndarray) -> np.ndarray:
    scores = np.asarray(decide(block), dtype=np.float64)
    if scores.shape != (len(block),):
        raise InputError(
            f"'decide' of partial_dependence must return one score per row, shape ({len(block)},). "
            f"Got shape {scores.shape} instead. Hint: take one column of predict_proba."
        )
    return scores


def _shares(places: list[np.ndarray], axes: list[_Axis]) -> np.ndarray:
    """Return the share of the rows at each point; rows without a nearest value do not count."""
    shape = tuple(len(axis.codes) for axis in axes)
    is_placed = np.all([place >= 0 for place in places], axis=0)
    flat = np.ravel_multi_index([place[is_placed] for place in places], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape) / len(places[0])


def _positions(features: Any, columns: Sequence[Column]) -> list[int]:
    """Return the positions of the requested columns: one, or two different ones."""
    asked: list[Any] = [features] if isinstance(features, str) or not isinstance(features, Iterable) else list(features)
    names = [column.name for column in columns]
    found = []
    for feature in asked:
        if is_int(feature) and 0 <= feature < len(names):
            found.append(int(feature))
        elif feature in names:
            found.append(names.index(feature))
        else:
            hint = did_you_mean(str(feature), names) or f" Hint: positions go from 0 to {len(names) - 1}."
            raise InputError(f"partial_dependence finds no column {feature!r} among {len(names):,}.{hint}")
    if len(found) not in (1, 2) or len(set(found)) != len(found):
        raise InputError(
            f"'features' of partial_dependence must name one column, or two that differ. Got {features!r} instead."
        )
    return found
