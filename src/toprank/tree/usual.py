"""Usual values of each column of the training rows: the median, the middle 80 %, the most frequent category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toprank.tree.bin_mapper import sample_rows
from toprank.tree.columns import USUAL_SHARE, Column, Usual
from toprank.tree.weights import integer_weights

USUAL_ROWS = 10_000
"""Rows used to find usual values; more would change only the last printed digit."""

USUAL_CELLS = 2**20
"""Cells sorted at once."""

TAILS = 0.1
"""Share of the values on either side of the usual range of a number."""


def with_usual(
    columns: Sequence[Column], X: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> list[Column]:
    """Columns with their usual values among the rows of X, or a sample of them.

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
    rows = sample_rows(len(X), USUAL_ROWS, weight)
    mass = None if weight is None else integer_weights(is_positive, weight).total.astype(np.float64)
    if mass is not None:
        rows = np.flatnonzero(mass) if rows is None else rows
        mass = mass[rows]
    sample = X if rows is None else X[rows]
    usual: list[Usual | None] = [None] * len(columns)
    numbers = [f for f, column in enumerate(columns) if column.categories is None]
    step = max(1, USUAL_CELLS // max(len(sample), 1))
    for start in range(0, len(numbers), step):
        some = numbers[start : start + step]
        by_column = np.array(sample.T[some], np.float64, order="C")
        for f, found in zip(some, _usual_numbers(by_column, mass), strict=True):
            usual[f] = found
    for f, column in enumerate(columns):
        if column.categories:
            usual[f] = _usual_category(sample[:, f], mass, len(column.categories))
    return [replace(column, usual=found) for column, found in zip(columns, usual, strict=True)]


def _usual_numbers(values: np.ndarray, mass: np.ndarray | None) -> list[Usual | None]:
    """Usual values in each row of an array of numbers, one row per column; None if no value is finite.

    `mass` holds the weights of the cases; None = equal weights.
    """
    values[~np.isfinite(values)] = np.nan
    n = values.shape[1]
    if mass is None:
        values.sort(axis=1)  # NaN last
        known = n - np.isnan(values).sum(axis=1).astype(np.float64)
        places = [np.ceil(share * known).astype(np.intp) - 1 for share in (TAILS, 0.5, 1.0 - TAILS)]
    else:
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        weight = np.where(np.isnan(values), 0.0, mass[order])
        up_to = np.cumsum(weight, axis=1)
        known = up_to[:, -1]
        places = [(up_to < (share * known)[:, None]).sum(axis=1) for share in (TAILS, 0.5, 1.0 - TAILS)]
    row = np.arange(len(values))
    low, middle, high = (values[row, np.clip(place, 0, n - 1)] for place in places)
    # A value of more than half of the cases is their median.
    is_middle = values == middle[:, None]
    share = (is_middle.sum(axis=1) if mass is None else (is_middle * weight).sum(axis=1)) / np.maximum(known, 1.0)
    is_one = share > USUAL_SHARE
    low, high = np.where(is_one, middle, low), np.where(is_one, middle, high)
    missing = 1.0 - known / (n if mass is None else mass.sum())
    figures = np.column_stack((middle, low, high, share, np.clip(missing, 0.0, 1.0)))
    return [Usual(*row) if n > 0 else None for row, n in zip(figures.tolist(), known.tolist(), strict=True)]


def _usual_category(codes: np.ndarray, mass: np.ndarray | None, n_categories: int) -> Usual | None:
    """The most frequent category of a column, ties go to the first; None if no category is known."""
    is_known = (codes >= 0) & (codes < n_categories)
    weight = None if mass is None else mass[is_known]
    counts = np.bincount(codes[is_known].astype(np.intp), weight, n_categories)
    known, total = float(counts.sum()), float(len(codes) if mass is None else mass.sum())
    if known <= 0:
        return None
    code = float(np.argmax(counts))
    return Usual(code, code, code, float(counts.max()) / known, min(max(1.0 - known / total, 0.0), 1.0))
