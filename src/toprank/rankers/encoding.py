"""Tables to matrices: what a column is, and the float matrix that trees read.

Numbers stay numbers; strings, booleans and category columns become codes; missing values become NaN. numpy arrays of
numbers pass through uncopied.
"""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from toprank.tree.columns import Column

MAX_CATEGORIES = 254
"""Categories of one column; beyond that the rarest share one code."""

DATE = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}(?::?\d{2})?))?)?"
)
"""A date of ISO 8601, with or without a time."""

DATES_SHARE = 0.95
"""A column of text with at least this share of dates among its distinct values is one of dates."""

PACKAGE = str(Path(__file__).parents[1]) + os.sep
"""Folder of toprank's own files."""


@dataclass(frozen=True)
class Table:
    """A table as its caller gave it: a narwhals frame, or a two-dimensional numpy array."""

    names: list[str]
    frame: nw.DataFrame | None = None
    array: np.ndarray | None = None
    _counts: dict[int, Counter[Any]] = field(default_factory=dict)

    def series(self, i: int) -> nw.Series:
        """Column i of the frame."""
        assert self.frame is not None
        return self.frame[:, i]

    def __len__(self) -> int:
        return len(self.array) if self.array is not None else len(self.frame)  # type: ignore[arg-type]

    def is_numeric(self, i: int) -> bool:
        """True where column i is stored as numbers."""
        if self.array is not None:
            return self.array.dtype.kind in "fiu"
        return self.series(i).dtype.is_numeric()

    def numbers(self, i: int) -> np.ndarray:
        """Column i as floats, NaN = missing."""
        if self.array is not None:
            return self.array[:, i]
        values = self.series(i).to_numpy()
        return values if values.dtype == np.float32 else values.astype(np.float64)

    def values(self, i: int) -> list[Any]:
        """Column i as Python values, missing ones as their library marks them."""
        return self.array[:, i].tolist() if self.array is not None else self.series(i).to_list()

    def counts(self, i: int) -> Counter[Any]:
        """How often each value of column i occurs, missing ones left out."""
        if i not in self._counts:
            values = self.values(i)
            try:
                counts = Counter(values)
            except TypeError:  # values that cannot be counted are none of ours
                kind = next(type(v).__name__ for v in values if not isinstance(v, Hashable))
                raise _not_a_category(self.names[i], kind) from None
            self._counts[i] = Counter({v: n for v, n in counts.items() if not is_missing(v)})
        return self._counts[i]


def is_missing(value: Any) -> bool:
    """True for None, NaN and the missing markers of data frame libraries."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


class ManyCategoriesWarning(UserWarning):
    """A column has more categories than a tree tells apart; `column` is its name."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


def look_like_dates(values: Collection[Any]) -> bool:
    """True where nearly all of the distinct values of a column are texts that hold dates of ISO 8601."""
    n_dates = sum(isinstance(value, str) and DATE.fullmatch(value.strip()) is not None for value in values)
    return 0 < n_dates >= DATES_SHARE * len(values)


def warn_caller(message: str | UserWarning) -> None:
    """Warn with a UserWarning that points to the first line outside toprank on the way to here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def read_table(X: Any) -> Table:
    """Table of a data frame or of a two-dimensional array that scikit-learn has checked."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Table([str(name) for name in frame.columns], frame=frame)
    return Table([f"x{i}" for i in range(X.shape[1])], array=X)


def learn_columns(table: Table, categorical_features: Any = None) -> list[Column]:
    """Name, kind and categories of each column.

    Raises TypeError for columns of mixed or unsupported types; warns where rare categories have to share a code.
    """
    chosen = _chosen_columns(categorical_features, table.names)
    columns = []
    for i, name in enumerate(table.names):
        if table.is_numeric(i) and i not in chosen:
            columns.append(Column(name))
            continue
        kind = _kind_of_values(table, i)
        columns.append(_learn_categories(name, table.counts(i)) if kind == "category" or i in chosen else Column(name))
    return columns


def _chosen_columns(chosen: Any, names: Sequence[str]) -> set[int]:
    """Positions of the columns that the user declared categorical, by name, position or mask."""
    if chosen is None:
        return set()
    chosen = list(chosen)
    if len(chosen) == len(names) and all(isinstance(c, bool | np.bool_) for c in chosen):
        return set(np.flatnonzero(chosen).tolist())
    positions = set()
    for c in chosen:
        position = names.index(c) if c in names else c
        if not isinstance(position, int | np.integer) or not 0 <= position < len(names):
            raise ValueError(
                f"categorical_features names {c!r}, but X has no such column (its {len(names)} columns begin with "
                f"{', '.join(map(repr, names[:5]))}). Hint: use column names, positions from 0, or a mask."
            )
        positions.add(int(position))
    return positions


def _kind_of_values(table: Table, i: int) -> str:
    """Kind of the values of a column that is not stored as numbers: "category" or "number"."""
    name = table.names[i]
    if table.frame is not None:
        dtype = table.series(i).dtype
        if dtype.is_temporal():
            raise TypeError(
                f"Column {name!r} holds dates ({dtype}), expected numbers or categories. "
                "Hint: derive numbers from it, such as an age in days or the month."
            )
        if dtype in (nw.String, nw.Boolean):
            return "category"
    kinds = {_kind_of_value(v) for v in table.counts(i)}
    if len(kinds) > 1:
        raise TypeError(
            f"Column {name!r} mixes {' and '.join(sorted(kinds))}, expected one kind of value. "
            "Hint: convert the column to numbers or to strings first."
        )
    kind = kinds.pop() if kinds else "numbers"
    if kind not in ("numbers", "strings", "booleans"):
        raise _not_a_category(name, kind)
    is_declared = table.frame is not None and table.series(i).dtype in (nw.Categorical, nw.Enum)
    return "number" if kind == "numbers" and not is_declared else "category"


def _not_a_category(name: str, kind: str) -> TypeError:
    return TypeError(
        f"Column {name!r} holds values of type {kind}; each argument must be a string or a real number. "
        "Hint: drop the column, or convert it to strings."
    )


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, str):
        return "strings"
    if isinstance(value, int | float | np.integer | np.floating):
        return "numbers"
    return type(value).__name__


def _learn_categories(name: str, counts: Counter[Any]) -> Column:
    """Column with the categories of its values in sorted order, the rarest sharing the last code if there are many."""
    if any(isinstance(c, float) and math.isinf(c) for c in counts):
        raise ValueError(
            f"Column {name!r} holds infinite values, expected finite numbers or categories. "
            "Hint: replace them with NaN for missing."
        )
    counts = Counter({c.item() if isinstance(c, np.generic) else c: n for c, n in counts.items()})
    if len(counts) <= MAX_CATEGORIES:
        return Column(name, tuple(sorted(counts)))
    by_count = sorted(counts, key=lambda c: (-counts[c], c))
    kept, rare = sorted(by_count[: MAX_CATEGORIES - 1]), sorted(by_count[MAX_CATEGORIES - 1 :])
    which, hint = "", "drop the column if it is an identifier, or group its values"
    if look_like_dates(counts):
        which, hint = " that look like dates", "derive numbers from it, such as an age in days or the month, or drop it"
    message = f"Column {name!r} has {len(counts):,} categories{which}; the {len(rare):,} rarest share one bin."
    warn_caller(ManyCategoriesWarning(f"{message} Hint: {hint}.", name))
    return Column(name, (*kept, rare[0]), tuple(rare[1:]))


def encode(table: Table, columns: Sequence[Column]) -> np.ndarray:
    """Float matrix of a table: numbers as they are, categories as codes, NaN = missing or unseen category.

    Raises TypeError where a column changed its kind; warns of categories that training never saw.
    """
    if table.array is not None and table.array.dtype.kind == "f" and not any(c.is_categorical for c in columns):
        return table.array
    encoded = [_encode_column(table, i, column) for i, column in enumerate(columns)]
    narrow = len(encoded) > 0 and all(values.dtype == np.float32 for values in encoded)
    matrix = np.empty((len(table), len(columns)), np.float32 if narrow else np.float64, order="F")
    for i, values in enumerate(encoded):
        matrix[:, i] = values
    return matrix


def _encode_column(table: Table, i: int, column: Column) -> np.ndarray:
    if column.categories is None:
        if table.is_numeric(i):
            return table.numbers(i)
        if not table.counts(i) or _kind_of_values(table, i) == "number":
            return np.array([np.nan if is_missing(v) else v for v in table.values(i)], np.float64)
        raise TypeError(
            f"Column {column.name!r} was a number in training but holds text or categories now. "
            "Hint: convert it to numbers; a stray word turns a whole CSV column into text."
        )
    counts = table.counts(i)
    code: dict[Any, float] = {c: float(k) for k in range(len(column.categories)) for c in column.labels(k)}
    _check_same_kind(column, counts)
    lookup = code.get
    encoded = np.fromiter((lookup(v, np.nan) for v in table.values(i)), np.float64, len(table))
    unseen = [v for v in counts if v not in code]
    if unseen:
        rows = sum(counts[v] for v in unseen)
        warn_caller(
            f"Column {column.name!r} holds {len(unseen):,} categories in {rows:,} rows that training never saw, "
            f"such as {min(unseen, key=str)!r}; they are scored like missing values."
        )
    return encoded


def _check_same_kind(column: Column, values: Iterable[Any]) -> None:
    """Raise TypeError where strings became numbers or the other way round."""
    assert column.categories is not None
    trained = {_kind_of_value(c) for c in column.categories}
    now = {_kind_of_value(v) for v in values}
    if trained and now - trained and not (trained | now) <= {"numbers", "booleans"}:
        raise TypeError(
            f"Column {column.name!r} held categories that are {' and '.join(sorted(trained))} in training, but holds "
            f"{' and '.join(sorted(now))} now. Hint: convert the column to the type it was trained with."
        )


def original_values(X: Any, names: Sequence[str], rows: np.ndarray | None = None) -> Callable[[str], list[Any] | None]:
    """Look up the values of a column of X by its name, as the caller gave them; of some rows, in their order.

    `names` are those of the training table: a table that has none of them is read by position. Missing values
    are None. Nothing is read before a column is asked for. None for a column that X does not have: one that was derived
    in reading.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    own = [str(name) for name in frame.columns] if is_frame else list(names)
    known = list(names) if len(own) == len(names) and not set(own) & set(names) else own

    def values(name: str) -> list[Any] | None:
        if name not in known:
            return None
        if is_frame:
            column = frame[:, known.index(name)]
            given = (column if rows is None else column[rows.tolist()]).to_list()
        else:
            array = np.asarray(X, dtype=None if isinstance(X, np.ndarray) else object)
            given = array[slice(None) if rows is None else rows, known.index(name)].tolist()
        return [None if is_missing(value) else value for value in given]

    return values
