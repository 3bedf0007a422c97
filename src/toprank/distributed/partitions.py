"""Dask collections as partitions of rows: read where they are, with the roles of columns that the whole table has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from toprank.data.cases import Cases
from toprank.data.column_roles import ROWS_CHECKED
from toprank.data.table import Coded, Table, is_missing, read_table
from toprank.errors import InputError, InputTypeError
from toprank.tree.columns import Column


def import_dask() -> Any:
    """The package `distributed`; raises ImportError, which names the extras, if it is not installed."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "Fitting on a cluster needs Dask, which is not installed. Hint: pip install 'toprank[dask,boosting]'."
        ) from None
    return distributed


def is_dask(X: Any) -> bool:
    """True for arrays and data frames of Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def blocks_of(X: Any) -> list[Any]:
    """The partitions of a Dask array or data frame, as delayed objects; each has all columns."""
    if not is_dask(X) or not hasattr(X, "to_delayed") or getattr(X, "ndim", 0) != 2:
        kind = type(X).__module__.partition(".")[0] + "." + type(X).__name__
        raise InputTypeError(
            f"X is a {kind}, expected an array or a data frame of Dask with rows and columns. "
            "Hint: toprank.SGBAP fits tables in memory."
        )
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    return list(np.ravel(np.array(X.to_delayed(), dtype=object)))


@dataclass
class Partitions:
    """Values on the workers, a future per partition, in the order of the table."""

    client: Any
    futures: list[Any]

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any], **shared: Any) -> Partitions:
        """The function of each partition, with one more argument per partition from each iterable."""
        return Partitions(self.client, self.client.map(function, self.futures, *arguments, pure=False, **shared))

    def of(self, function: Callable[..., Any], *arguments: Iterable[Any], **shared: Any) -> list[Any]:
        """The function of each partition, here."""
        return self.client.gather(self.map(function, *arguments, **shared).futures)


# --- the table as it comes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionedTable(Table):
    """A table whose rows are on workers. What the roles of columns depend on is asked for when it is needed.

    Of columns that are not numbers, workers send each distinct value and how often it occurs. Of numbers, they send
    the first rows, and all values of the few columns that look constant or like an identifier there.
    """

    parts: Partitions = field(kw_only=True)  # frames of pandas, or arrays
    n_rows: int = field(kw_only=True)
    first: Table = field(kw_only=True)  # the first rows

    @classmethod
    def from_parts(cls, parts: Partitions, sizes: Sequence[int]) -> tuple[PartitionedTable, Any]:
        """The table, and its first rows as frame or array."""
        wanted, here = ROWS_CHECKED, []
        for size in sizes:
            here.append(min(wanted, size))
            wanted -= here[-1]
        heads = parts.of(lambda block, n: block[:n] if isinstance(block, np.ndarray) else block.iloc[:n], here)
        X = _concatenated(heads)
        first = read_table(X)
        table = cls(first.names, first.frame, None if first.array is None else first.array[:0], parts=parts,
                    n_rows=int(sum(sizes)), first=first)  # fmt: skip
        return table, X

    def __len__(self) -> int:
        return self.n_rows

    def head(self, positions: Sequence[int], n_rows: int) -> np.ndarray:
        """First rows of columns stored as numbers."""
        return self.first.head(positions, n_rows)

    def numbers(self, i: int) -> np.ndarray:
        """Column i, sent by all workers."""
        return np.concatenate(self.parts.of(lambda block: read_table(block).numbers(i)))

    def series(self, i: int) -> nw.Series:
        """Column i of a frame, sent by all workers."""
        whole = _concatenated(self.parts.of(lambda block: block.iloc[:, [i]]))
        return nw.from_native(whole, eager_only=True).get_column(self._keys[i])

    def cells(self, i: int) -> list[Any]:
        """Column i as Python values, sent by all workers."""
        return [cell for part in self.parts.of(lambda block: read_table(block).cells(i)) for cell in part]

    def coded(self, i: int) -> Coded:
        """Column i with equal values side by side: where they stand in the table plays no role."""
        if i not in self._coded:
            self._coded.clear()  # one column at a time
            place: dict[Any, int] = {}
            counts: list[int] = []
            n_missing = 0
            for distinct, count, missing in self.parts.of(distinct_of_part, position=i):
                n_missing += missing
                for value, n in zip(distinct, count, strict=True):
                    k = place.setdefault(value, len(place))
                    if k == len(counts):
                        counts.append(0)
                    counts[k] += n
            codes = np.repeat(np.arange(len(counts)), np.array(counts, np.int64))
            self._coded[i] = Coded(np.append(codes, np.full(n_missing, -1)), list(place))
            for known in [key for key in self._read if key[0] == i]:
                del self._read[known]
        return self._coded[i]


def _concatenated(heads: list[Any]) -> Any:
    """Frames or arrays in one, as Dask does it: categories are united."""
    if isinstance(heads[0], np.ndarray):
        return np.concatenate(heads)
    from dask.dataframe.dispatch import concat

    return concat([head for head in heads if len(head)] or heads[:1])


def distinct_of_part(block: Any, position: int) -> tuple[list[Any], list[int], int]:
    """Distinct values of a column, in order of first occurrence, their counts, and the number of missing ones."""
    if not len(block):
        return [], [], 0
    coded = read_table(block).coded(position)
    known = [k for k, value in enumerate(coded.distinct) if not is_missing(value)]
    counts = coded.counts[known].tolist()
    return [coded.distinct[k] for k in known], counts, len(coded.codes) - sum(counts)


# --- encoded rows -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Encoded rows of one partition, with outcomes and weights."""

    X: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray | None

    @cached_property
    def kept(self) -> np.ndarray:
        """Positions of the rows with weight."""
        return np.arange(len(self.X)) if self.weight is None else np.flatnonzero(self.weight > 0)


def encode_part(block: Any, is_positive: np.ndarray, weight: np.ndarray | None, reader: Any) -> Part:
    """A partition as a model reads it."""
    X = reader._encode(block) if len(block) else np.empty((0, len(reader.columns_)))
    return Part(X, is_positive, weight)


class SomeRows:
    """The matrix of a table, of that shape, of which only some rows are here; asking for others is an error."""

    def __init__(self, n_rows: int, numbers: np.ndarray, values: np.ndarray):
        self.shape = (n_rows, values.shape[1])
        self._numbers, self._values = numbers, values

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._numbers, rows)
        if not np.array_equal(self._numbers[np.minimum(place, len(self._numbers) - 1)], rows):
            raise IndexError("These rows are on the workers.")
        return self._values[place]


class PartitionedCases(Cases):
    """Cases whose rows are on workers; outcomes, weights and a sample of the rows are here.

    `parts` has a `Part` each, `sizes` the number of rows of each.
    """

    def __init__(
        self, parts: Partitions, sizes: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None,
        columns: Sequence[Column],
    ):  # fmt: skip
        nothing = SomeRows(len(is_positive), np.zeros(0, np.int64), np.empty((0, len(columns))))
        super().__init__(nothing, is_positive, weight, columns)  # type: ignore[arg-type]
        self.parts, self.sizes = parts, sizes

    def bring(self, rows: np.ndarray) -> None:
        """Send rows here, given by increasing numbers; `X` has them from then on."""
        ends = np.cumsum(self.sizes)
        inside = [rows[(rows >= end - size) & (rows < end)] - (end - size)
                  for end, size in zip(ends, self.sizes, strict=True)]  # fmt: skip
        values = np.concatenate(self.parts.of(lambda part, some: np.asarray(part.X[some]), inside))
        n_rows = len(self.is_positive)
        self.X = values if len(rows) == n_rows else SomeRows(n_rows, rows, values)  # type: ignore[assignment]

    @property
    def first_numbers(self) -> list[int]:
        """Of each partition, the number of rows with weight before it."""
        has_weight = np.ones(len(self.is_positive), bool) if self.weight is None else self.weight > 0
        before = np.append(0, np.cumsum(has_weight))
        return before[np.cumsum(self.sizes) - self.sizes].tolist()


def computed(client: Any, blocks: list[Any], *others: Any) -> tuple[Partitions, list[Any]]:
    """Partitions on the workers, and other collections here, computed together so that nothing is read twice."""
    lazy = [other for other in others if is_dask(other)]
    futures = client.compute([*blocks, *lazy])
    found = iter(client.gather(futures[len(blocks) :]))
    return Partitions(client, futures[: len(blocks)]), [next(found) if is_dask(other) else other for other in others]


def sending_much() -> Any:
    """Let outcomes and weights travel with the tasks, without Dask's warning: so they are never lost with a worker."""
    import dask.config

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 GB"})


def size_of(block: Any) -> int:
    """Number of rows; raises InputTypeError unless it is an array or a frame of pandas."""
    if not isinstance(block, np.ndarray) and not hasattr(block, "iloc"):
        raise InputTypeError(
            f"A partition of X is a {type(block).__module__}.{type(block).__name__}, expected numpy arrays or frames "
            "of pandas. Hint: sparse matrices can be turned into arrays with map_blocks."
        )
    return len(block)


def current_client(client: Any) -> Any:
    """The given client, or the current one; raises InputError if there is none."""
    distributed = import_dask()
    if client is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise InputError(
                "There is no Dask client. Hint: client = dask.distributed.Client() starts workers on this machine; "
                "Client('address:8786') connects to a cluster."
            ) from None
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise InputTypeError(
            f"client is a {type(client).__name__}, expected a dask.distributed.Client that is not asynchronous. "
            "Hint: leave it out to use the current one."
        )
    return client
