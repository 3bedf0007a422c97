"""`Table`: columns of a data frame or an array, each read once: as floats, or as codes of its distinct values.

Costs per call and column are avoided where there may be many columns: all plain numbers of a frame come in one block.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from toprank.errors import InputTypeError

PLAIN_NUMBERS = frozenset(
    {nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64}
)
"""Types that numpy has, too."""

DENSE = 10_000
"""Integers are coded by a lookup table if their range exceeds the number of rows by at most this much."""

DATE_TYPES = ("date", "datetime", "Timestamp")
"""Python and pandas types of dates."""


class _Type(NamedTuple):
    """Type of a column in narwhals; whether it is numeric, and whether numpy can hold it unchanged."""

    dtype: Any
    is_numeric: bool
    is_plain: bool


class Coded(NamedTuple):
    """Values of one column as codes of its distinct values.

    Attributes
    ----------
    codes : int array of shape (n,)
        Index in `distinct`, -1 for missing.
    distinct : list
        Python values, without missing ones, each once.
    """

    codes: np.ndarray
    distinct: list[Any]

    @property
    def counts(self) -> np.ndarray:
        """Number of occurrences of each distinct value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))

    def mapped(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Floats of shape (n,): the value given for each distinct value, NaN for missing."""
        return np.append(np.asarray(values, np.float64), np.nan)[self.codes]


@dataclass(frozen=True)
class Table:
    """A table as given by the caller: a narwhals frame, or a two-dimensional numpy array."""

    names: list[str]
    frame: nw.DataFrame | None = None
    array: np.ndarray | None = None
    _coded: dict[int, Coded] = field(default_factory=dict)
    _read: dict[tuple[int, str], np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.array) if self.array is not None else len(self.frame)  # type: ignore[arg-type]

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each column, by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _keys(self) -> list[Any]:
        """Names of the columns in the frame, which need not be text."""
        assert self.frame is not None
        return self.frame.columns

    @cached_property
    def _types(self) -> list[_Type]:
        """Type of each column; equal types are analysed once, because wide tables have few."""
        assert self.frame is not None
        native, library = self.frame.to_native(), self.frame.implementation
        if library.is_pandas():
            theirs = native.dtypes.to_list()
        elif library.is_polars() or library.is_pyarrow():
            theirs = native.dtypes if library.is_polars() else native.schema.types
        else:
            return [_Type(dtype, dtype.is_numeric(), False) for dtype in self.frame.schema.values()]
        known: dict[Any, _Type] = {}
        out = []
        for key, own in zip(self._keys, theirs, strict=True):
            found = known.get(own)
            if found is None:
                dtype = self.frame.get_column(key).dtype
                # pandas' nullable number types come as objects; columns of pyarrow come one by one anyway.
                fits = isinstance(own, np.dtype) if library.is_pandas() else library.is_polars()
                found = _Type(dtype, dtype.is_numeric(), fits and dtype in PLAIN_NUMBERS)
                if own != np.dtype(object):  # the values decide for objects
                    known[own] = found
            out.append(found)
        return out

    def series(self, i: int) -> nw.Series:
        """Column i of the frame."""
        assert self.frame is not None
        return self.frame.get_column(self._keys[i])

    def dtype(self, i: int) -> Any:
        """Type of column i of the frame; None for an array."""
        return None if self.frame is None else self._types[i].dtype

    # --- numbers ------------------------------------------------------------------------------------------------

    def is_numeric(self, i: int) -> bool:
        """True if column i is stored as numbers."""
        if self.array is not None:
            return self.array.dtype.kind in "fiu"
        return self._types[i].is_numeric

    @cached_property
    def _plain(self) -> dict[int, int]:
        """Columns of the frame that numpy can hold unchanged: their position in the block."""
        if self.frame is None:
            return {}
        plain = [i for i, each in enumerate(self._types) if each.is_plain]
        return {i: place for place, i in enumerate(plain)}

    @cached_property
    def _block(self) -> np.ndarray:
        """All plain numbers of the frame at once, float32 if all of them are, else float64."""
        assert self.frame is not None
        native, chosen = self.frame.to_native(), list(self._plain)
        narrow = self._are_narrow(chosen)
        if self.frame.implementation.is_pandas():
            some = native if len(chosen) == len(self.names) else native.iloc[:, chosen]
            return some.to_numpy(dtype=np.float32 if narrow else np.float64)
        some = native.select([self._keys[i] for i in chosen]).to_numpy()
        return some.astype(np.float32 if narrow else np.float64, copy=False)

    def block(self, positions: Sequence[int]) -> np.ndarray:
        """Columns stored as numbers as a matrix of floats, NaN = missing: float32 if all of them are."""
        if self.array is not None:
            whole = len(positions) == self.array.shape[1] and list(positions) == list(range(len(positions)))
            return self.array if whole else self.array[:, list(positions)]
        if self._plain and all(i in self._plain for i in positions):
            places = [self._plain[i] for i in positions]
            matrix = self._block if places == list(range(self._block.shape[1])) else self._block[:, places]
            return matrix.astype(np.float32, copy=False) if self._are_narrow(positions) else matrix
        parts = [self.numbers(i) for i in positions]
        narrow = len(parts) > 0 and all(part.dtype == np.float32 for part in parts)
        matrix = np.empty((len(self), len(parts)), np.float32 if narrow else np.float64, order="F")
        for place, part in enumerate(parts):
            matrix[:, place] = part
        return matrix

    def head(self, positions: Sequence[int], n_rows: int) -> np.ndarray:
        """First rows of columns stored as numbers, as a matrix of floats."""
        return self.block(positions)[:n_rows]

    def write_numbers(self, positions: Sequence[int], matrix: np.ndarray, places: Sequence[int]) -> None:
        """Write columns stored as numbers into columns of a matrix in Fortran order, NaN = missing."""
        for i, place in zip(positions, places, strict=True):
            # Data frames expose a plain column as an array without a copy; a block would be one more copy.
            matrix[:, place] = self.series(i).to_numpy() if i in self._plain else self.numbers(i)

    def _are_narrow(self, positions: Sequence[int]) -> bool:
        return all(dtype == nw.Float32 for dtype in {self._types[i].dtype for i in positions})

    def numbers(self, i: int) -> np.ndarray:
        """Column i, stored as numbers, as floats, NaN = missing."""
        if self.array is not None:
            return self.array[:, i]
        if i in self._plain:
            column = self._block[:, self._plain[i]]
            return column.astype(np.float32) if self.dtype(i) == nw.Float32 else column
        values = self.series(i).to_numpy()
        return values if values.dtype == np.float32 else values.astype(np.float64)

    # --- other values -------------------------------------------------------------------------------------------

    def coded(self, i: int) -> Coded:
        """Column i as codes of its distinct values.

        Raises TypeError if the values are not hashable, such as lists.
        """
        if i not in self._coded:
            try:
                self._coded[i] = _code(self.array[:, i] if self.array is not None else self.series(i))
            except TypeError:  # unhashable values are not supported
                kind = next((type(v).__name__ for v in self.cells(i) if not isinstance(v, Hashable)), "object")
                raise not_a_category(self.names[i], kind) from None
        return self._coded[i]

    def cells(self, i: int) -> list[Any]:
        """Column i as Python values, with the missing markers of its library.

        `coded` takes dates of several zones as one value if they are the same moment; here, each has its own zone.
        """
        return self.array[:, i].tolist() if self.array is not None else self.series(i).to_list()

    def places_among(self, texts: dict[int, list[str]]) -> dict[int, np.ndarray]:
        """Place of each cell of columns of text among known texts, by column: integers, or floats with NaN for missing.

        A shortcut for frames whose library compares text faster than `coded` does. Columns of other types, and those
        with a cell that is not known, are left out.
        """
        if self.frame is None or not self.frame.implementation.is_polars():
            return {}
        polars, native = self.frame.implementation.to_native_namespace(), self.frame.to_native()
        casts = [
            polars.col(self._keys[i]).cast(polars.Enum(known), strict=False).alias(str(i))
            for i, known in texts.items()
            if self.dtype(i) == nw.String
        ]
        out = {}
        for found in native.select(casts):  # all columns in one call, which runs in parallel
            i = int(found.name)
            if found.null_count() == native.get_column(self._keys[i]).null_count():
                out[i] = found.to_physical().to_numpy()
        return out

    def read_distinct(self, i: int, form: str, read: Callable[[list[str]], Sequence[float] | np.ndarray]) -> np.ndarray:
        """Result of `read` for the distinct values of column i, all text: float64. Cached per form."""
        if (i, form) not in self._read:
            self._read[i, form] = np.array(read(self.coded(i).distinct), np.float64)
        return self._read[i, form]

    def values(self, i: int) -> list[Any]:
        """Column i as Python values, None for missing ones."""
        codes, distinct = self.coded(i)
        known = [*distinct, None]
        return [known[code] for code in codes.tolist()]

    def counts(self, i: int) -> Counter[Any]:
        """Number of occurrences of each value of column i, without missing ones."""
        coded = self.coded(i)
        return Counter(dict(zip(coded.distinct, coded.counts.tolist(), strict=True)))


def is_missing(value: Any) -> bool:
    """True for None, NaN and the missing markers of data frame libraries."""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def not_a_category(name: str, kind: str) -> TypeError:
    """The error for a column whose values are neither numbers nor categories nor dates."""
    return InputTypeError(
        f"Column {name!r} holds values of type {kind}; each argument must be a string or a real number. "
        "Hint: drop the column, or convert it to strings."
    )


def kind_of_values(table: Table, i: int) -> str:
    """Kind of the values of a column that is not stored as numbers: "category", "number" or "date".

    Raises TypeError if values are of several kinds, or of an unsupported one.
    """
    name, dtype = table.names[i], table.dtype(i)
    if dtype in (nw.String, nw.Boolean):
        return "category"
    kinds = {kind_of_value(v) for v in table.coded(i).distinct}
    if len(kinds) > 1:
        raise InputTypeError(
            f"Column {name!r} mixes {' and '.join(sorted(kinds))}, expected one kind of value. "
            "Hint: convert the column to numbers or to strings first."
        )
    kind = kinds.pop() if kinds else "numbers"
    if kind == "dates":
        return "date"
    if kind not in ("numbers", "strings", "booleans"):
        raise not_a_category(name, kind)
    return "number" if kind == "numbers" and dtype not in (nw.Categorical, nw.Enum) else "category"


def kind_of_value(value: Any) -> str:
    """Kind of a value, in words; the name of its type if it is not supported."""
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, str):
        return "strings"
    if isinstance(value, int | float | np.integer | np.floating):
        return "numbers"
    return "dates" if type(value).__name__ in DATE_TYPES else type(value).__name__


def _code(values: nw.Series | np.ndarray) -> Coded:
    """Codes of the distinct values of a column, in the fastest way its library offers."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biuf":
            return _code_plain(values, values != values)
        return _code_list(values.tolist())
    library, native = values.implementation, values.to_native()
    if library.is_pandas():
        codes, distinct = native.factorize()
        return Coded(codes, distinct.tolist())
    if library.is_polars() and values.dtype in (nw.String, nw.Categorical, nw.Enum):
        return _code_polars_text(values)
    if library.is_pyarrow() and values.dtype in (nw.Categorical, nw.Enum):  # a dictionary may hold a value twice
        return _code(nw.from_native(native.cast(native.type.value_type), series_only=True))
    if library.is_pyarrow() and values.dtype == nw.String:
        coded = native.combine_chunks().dictionary_encode()
        return Coded(coded.indices.fill_null(-1).to_numpy().astype(np.int64), coded.dictionary.to_pylist())
    if values.dtype == nw.Boolean or values.dtype in PLAIN_NUMBERS:
        is_null = values.is_null().to_numpy()
        filled = values.fill_null(False if values.dtype == nw.Boolean else 0).to_numpy()
        return _code_plain(filled, is_null | (filled != filled))
    return _code_list(values.to_list())


def _code_polars_text(values: nw.Series) -> Coded:
    """Codes of polars strings or categories: polars numbers the categories of a column, but in no particular order."""
    physical = (values.cast(nw.Categorical) if values.dtype == nw.String else values).to_native().to_physical()
    is_null = physical.is_null().to_numpy() if physical.null_count() else None
    codes, first = _number_by_first(physical.fill_null(0).to_numpy(), is_null)
    distinct = nw.from_native(values.to_native()[first], series_only=True)
    return Coded(codes, distinct.cast(nw.String).to_list())


def _code_plain(values: np.ndarray, is_null: np.ndarray) -> Coded:
    """Codes of numbers or booleans."""
    numbers = values.view(np.uint8) if values.dtype.kind == "b" else values  # booleans cannot be subtracted
    codes, first = _number_by_first(numbers, is_null if is_null.any() else None)
    return Coded(codes, values[first].tolist())


def _number_by_first(values: np.ndarray, is_null: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the distinct values, in order of first occurrence, -1 if null; and the row of each first occurrence."""
    n = len(values)
    low, high = (int(values.min()), int(values.max())) if n and values.dtype.kind in "iu" else (0, math.inf)
    if high - low <= n + DENSE:
        wide = values.astype(np.int64, copy=False) if values.dtype.kind == "i" else values  # 127 - -128 overflows int8
        place = (wide - wide.dtype.type(low) if low else wide).astype(np.int64, copy=False)
        n_places = int(high - low) + 1
    else:
        distinct, place = np.unique(values, return_inverse=True)
        n_places = len(distinct)
    if is_null is not None:
        place = np.where(is_null, n_places, place)
    first = np.full(n_places + 1, n)
    first[place[::-1]] = np.arange(n - 1, -1, -1)  # the last write wins: the first row
    first = first[:-1]
    present = np.flatnonzero(first < n)
    order = present[np.argsort(first[present])]
    number = np.full(n_places + 1, -1)
    number[order] = np.arange(len(order))
    return number[place], first[order]


def _code_list(values: list[Any]) -> Coded:
    place: dict[Any, int] = {}
    codes = np.fromiter((-1 if is_missing(v) else place.setdefault(v, len(place)) for v in values), np.int64)
    return Coded(codes, list(place))


def read_table(X: Any) -> Table:
    """Table from a data frame or from a two-dimensional array checked by scikit-learn."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return Table([str(name) for name in frame.columns], frame=frame)
    return Table([f"x{i}" for i in range(X.shape[1])], array=X)
