"""What is usual in each column of the training rows: the median, the middle 80 %, the commonest category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toprank.tree.bin_mapper import sample_rows
from toprank.tree.columns import USUAL_SHARE, Column, Usual
from toprank.tree.weights import integer_weights

USUAL_ROWS = 10_000
"""Rows that say what is usual; more would change the last printed digit."""

USUAL_CELLS = 2**22
"""Cells that are sorted at once."""

TAILS = 0.1
"""Share of the values on either side of what is usual of a number."""


def with_usual(
    columns: Sequence[Column], X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> list[Column]:
    """Columns that know what is usual among the rows of X, a sample of them where there are many.

    Parameters
    ----------
    columns : sequence of Column, one per feature
    X : float array of shape (n, n_features)
        Category columns hold codes, NaN = missing.
    is_positive : bool array of shape (n,)
    weight : float array of shape (n,) or None

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [7.0, np.nan]])
    >>> alarms, sector = with_usual([Column("alarms"), Column("sector", ("bar", "shop"))], X, X[:, 0] > 0, None)
    >>> alarms.usual
    Usual(value=0.0, low=0.0, high=0.0, share=0.75, missing=0.0)
    >>> sector.categories[int(sector.usual.value)], sector.usual.missing
    ('shop', 0.25)
    """
    drawn = sample_rows(len(X), USUAL_ROWS, weight)
    rows = np.arange(len(X)) if drawn is None else drawn
    mass = np.ones(len(rows)) if weight is None else integer_weights(is_positive, weight).total[rows].astype(np.float64)
    rows, mass = rows[mass > 0], mass[mass > 0]
    usual: list[Usual | None] = [None] * len(columns)
    numbers = [f for f, column in enumerate(columns) if column.categories is None]
    step = max(1, USUAL_CELLS // max(len(rows), 1))
    for start in range(0, len(numbers), step):
        some = numbers[start : start + step]
        for f, found in zip(some, _usual_numbers(X[np.ix_(rows, some)].astype(np.float64), mass), strict=True):
            usual[f] = found
    for f, column in enumerate(columns):
        if column.categories:
            usual[f] = _usual_category(X[rows, f], mass, len(column.categories))
    return [replace(column, usual=found) for column, found in zip(columns, usual, strict=True)]


def _usual_numbers(X: np.ndarray, mass: np.ndarray) -> list[Usual | None]:
    """What is usual in each column of numbers; None where no value is finite."""
    X = np.where(np.isfinite(X), X, np.nan)
    order = np.argsort(X, axis=0, kind="stable")  # NaN last
    values = np.take_along_axis(X, order, axis=0)
    weight = np.where(np.isnan(values), 0.0, mass[order])
    up_to = np.cumsum(weight, axis=0)
    known = weight.sum(axis=0)

    def quantile(share: float) -> np.ndarray:
        place = np.minimum((up_to < share * known).sum(axis=0), len(values) - 1)
        return np.take_along_axis(values, place[None], axis=0)[0]

    low, middle, high = quantile(TAILS), quantile(0.5), quantile(1.0 - TAILS)
    # A value that half of the cases have is their median.
    share = np.where(values == middle, weight, 0.0).sum(axis=0) / np.maximum(known, 1.0)
    is_one = share >= USUAL_SHARE
    low, high = np.where(is_one, middle, low), np.where(is_one, middle, high)
    missing = 1.0 - known / mass.sum()
    figures = np.column_stack((middle, low, high, share, np.clip(missing, 0.0, 1.0)))
    return [Usual(*row) if n > 0 else None for row, n in zip(figures.tolist(), known.tolist(), strict=True)]


def _usual_category(codes: np.ndarray, mass: np.ndarray, n_categories: int) -> Usual | None:
    """The commonest category of a column, ties go to the first; None where no category is known."""
    is_known = (codes >= 0) & (codes < n_categories)
    counts = np.bincount(codes[is_known].astype(np.intp), mass[is_known], n_categories)
    known = float(counts.sum())
    if known <= 0:
        return None
    code = float(np.argmax(counts))
    return Usual(code, code, code, float(counts.max()) / known, min(max(1.0 - known / float(mass.sum()), 0.0), 1.0))
