"""Two tables as one: the same columns, of the same kinds, with the categories of both; and which rows are held out.

Rows are held out at random, but both copies of a row together. A row that is in both tables, as in overlapping windows,
must not be a training row in one and a held-out row in the other: a row learned as reference would return as a new one,
and the held-out half would be the mirror image of the training half.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import clone

from toprank.data.column_roles import learn_columns
from toprank.data.frames import backend_of, make_frame
from toprank.data.table import Table, read_table
from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import is_int
from toprank.rankers.base import Ranker
from toprank.tree.columns import TEXT_FORMS, Column
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean

MIN_ROWS = 4
"""Smallest number of rows of a sample: two to train on and two to test on."""

BY_CHANCE = 0.01
"""Level of the test that distinguishes rows shared by two tables from rows that are equal by chance."""


@dataclass(frozen=True)
class TwoSamples:
    """Rows of two tables, the reference first."""

    table: Any  # array or data frame of shape (n, n_features)
    is_new: NDArray[np.bool_]
    categorical: list[int]  # columns of numbers that are categories
    shared: NDArray[np.int64]  # (n_shared, 2): a reference row and a new row that count as the same case
    is_constant: bool  # whether no column has two values; missing counts as a value
    backend: str | None  # data frame library of the reference


def join_samples(X: Any, Y: Any, ranker: Ranker) -> TwoSamples:
    """Rows of X and Y in one table, as the ranker will read it.

    Columns of data frames are matched by name, those of arrays by position. Raises ValueError or TypeError if the
    tables do not have the same columns of the same kinds.
    """
    reference, new = _read(X, "X", ranker), _read(Y, "Y", ranker)
    order = _matching(reference, new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fit warns about the columns of both tables
        ours = _learn(reference, ranker.categorical_features)
        theirs = _learn(new, _of_reordered(ranker.categorical_features, order))
    categorical = []
    for i, j in enumerate(order):
        kinds = _kind(reference, i, ours[i]), _kind(new, j, theirs[j])
        if None not in kinds and kinds[0] != kinds[1]:
            raise InputTypeError(
                f"Column {ours[i].name!r} holds {kinds[0]} in X but {kinds[1]} in Y, expected the same kind of values "
                "in both. Hint: convert one of them; a stray word turns a whole CSV column into text."
            )
        if "numbers" in kinds and (ours[i].is_categorical or theirs[j].is_categorical):
            categorical.append(i)
    is_new = np.arange(len(reference) + len(new)) >= len(reference)
    backend = backend_of(X)
    table = _joined(reference, new, order, backend)
    key = row_keys(read_table(table))
    return TwoSamples(table, is_new, categorical, shared_rows(key, is_new), bool(np.all(key == key[0])), backend)


def _learn(table: Table, categorical_features: Any) -> list[Column]:
    """The column made from each column of the table, with none left out; for a date, the date itself."""
    learned = learn_columns(table, categorical_features, keep_columns="all").columns
    return [column for column in learned if not column.source]


def _read(table: Any, name: str, ranker: Ranker) -> Table:
    """Table as rankers read it; error messages say which of the two tables it was."""
    shape = np.shape(table) if isinstance(table, list | tuple | np.ndarray) else getattr(table, "shape", (0, 0))
    if len(shape) != 2:  # scikit-learn's message would print all values
        raise InputError(
            f"two_sample_test needs a table of shape (n, n_features) as {name}, found values of shape {shape}. "
            f"Hint: pass a single column as a data frame, or as an array of shape (n, 1)."
        )
    try:
        read = clone(ranker)._read(table, reset=True)
    except (ValueError, TypeError) as error:
        raise type(error)(f"two_sample_test cannot read {name}: {error}") from None
    if len(read) < MIN_ROWS:
        raise InputError(
            f"two_sample_test needs at least {MIN_ROWS} rows in {name}, found {len(read)}. "
            "Hint: one part of the rows is used for training, the other for testing."
        )
    return read


def _matching(reference: Table, new: Table) -> list[int]:
    """Position in the new table of each column of the reference."""
    if (reference.array is None) != (new.array is None):
        frame, array = ("X", "Y") if reference.array is None else ("Y", "X")
        raise InputTypeError(
            f"{frame} is a data frame but {array} is an array without column names, expected the same type. "
            "Hint: make both data frames."
        )
    if reference.array is not None and len(reference.names) != len(new.names):
        raise InputError(
            f"X has {plural(len(reference.names), 'column')} but Y has {len(new.names)}, expected the same columns in "
            "both. Hint: use data frames to match columns by name."
        )
    for (here, names), (there, others) in (
        (("X", reference.names), ("Y", new.names)),
        (("Y", new.names), ("X", reference.names)),
    ):
        for name in names:
            if name not in others:
                hint = did_you_mean(name, [other for other in others if other not in names])
                raise InputError(
                    f"Column {name!r} is in {here} but missing from {there} ({plural(len(others), 'column')} read)."
                    + (hint or " Hint: drop it, or select the columns that both have.")
                )
    return [new.names.index(name) for name in reference.names]


def _of_reordered(chosen: Any, order: Sequence[int]) -> Any:
    """Categorical features of the reference, as positions or a mask in a table with another order of columns."""
    if chosen is None:
        return None
    chosen = list(chosen)
    if len(chosen) == len(order) and all(isinstance(c, bool | np.bool_) for c in chosen):
        return [j for i, j in enumerate(order) if chosen[i]]
    return [order[int(c)] if is_int(c) and 0 <= c < len(order) else c for c in chosen]


def _kind(table: Table, i: int, column: Column) -> str | None:
    """What the values of a column are, in words; None if all are missing. What text holds depends on both tables."""
    if column.form in TEXT_FORMS:
        return "text"
    if column.is_date:
        return None if table.series(i).null_count() == len(table) else "dates"
    if column.categories is None:
        is_empty = bool(np.isnan(table.numbers(i)).all()) if table.is_numeric(i) else not table.counts(i)
        return None if is_empty else "numbers"
    if not column.categories:
        return None
    return {str: "text", bool: "booleans"}.get(type(column.categories[0]), "numbers")


def _joined(reference: Table, new: Table, order: Sequence[int], backend: str | None) -> Any:
    """Rows of both tables, stacked, with the columns in the order of the reference."""
    if reference.array is not None and new.array is not None:
        arrays = [reference.array, new.array]
        if any(array.dtype.kind == "O" for array in arrays):
            arrays = [array.astype(object) for array in arrays]  # else numbers next to text become text
        return np.concatenate(arrays)
    columns: dict[str, Any] = {}
    for (i, name), j in zip(enumerate(reference.names), order, strict=True):
        # Value by value, because types that agree for a reader need not agree for a data frame library: integers and
        # fractions, categories of different sets, text and all-missing columns.
        are_numeric = reference.is_numeric(i) and new.is_numeric(j)
        columns[name] = (np.concatenate((reference.numbers(i), new.numbers(j))) if are_numeric
                         else [*reference.values(i), *new.values(j)])  # fmt: skip
    return make_frame(columns, backend)


# --- rows in both tables ------------------------------------------------------------------------------------


def row_keys(table: Table) -> NDArray[np.uint64]:
    """A hash per row, the same for rows with the same values; missing equals missing.

    Values are mixed bit by bit, so that different rows share a key with probability about n**2 / 2**65: never in
    practice, and then two rows needlessly go to the same part.

    Examples
    --------
    >>> from toprank.data.table import read_table
    >>> keys = row_keys(read_table(np.array([[1.0, np.nan], [np.nan, 1.0], [1.0, np.nan]])))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    key = np.zeros(len(table), np.uint64)
    for i in range(len(table.names)):
        key = _mixed((key + np.uint64(0x9E3779B97F4A7C15)) ^ _bits(table, i))
    return key


def _bits(table: Table, i: int) -> NDArray[np.uint64]:
    """Values of column i as integers: the bits of numbers, or the index of a category among those that occur.

    Categories are not encoded as for a tree: there, the rarest of very many share a code.
    """
    if table.is_numeric(i):
        values = table.numbers(i).astype(np.float64) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan  # there are many bit patterns of NaN
        return values.view(np.uint64)
    return (table.coded(i).codes + 1).astype(np.uint64)  # missing is 0


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits mixed over the whole word, one to one: the last step of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def shared_rows(key: NDArray[np.uint64], is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows that are in both samples: pairs of a reference row and a new row, of shape (n_shared, 2).

    Only rows that occur once in each sample are paired. In tables with few distinct rows every row has a match in the
    other table, which means nothing: pairing these would make the parts of two independent samples similar. Rows of
    other tables match by chance now and then; but then two rows of the same sample match at least as often (for n
    reference and m new rows and a row with probabilities p and q, n m p q <= (n**2 p**2 + m**2 q**2) / 2). So there
    must be clearly more pairs across the samples than within; if no two rows of a sample match, one is enough. Samples
    of exactly the same rows are always paired.

    Examples
    --------
    >>> shared_rows(np.array([7, 8, 9, 3, 5, 8], np.uint64), np.array([False] * 4 + [True] * 2)).tolist()
    [[1, 5]]
    """
    reference, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    ours, theirs = (rows[np.argsort(key[rows], kind="stable")] for rows in (reference, new))
    if np.array_equal(key[ours], key[theirs]):
        return np.column_stack((ours, theirs))
    order = np.argsort(key, kind="stable")
    first, size = np.unique(key[order], return_index=True, return_counts=True)[1:]
    pairs = np.column_stack((order[first[size == 2]], order[first[size == 2] + 1]))
    pairs = pairs[np.argsort(pairs[:, 0])]
    is_across = is_new[pairs[:, 0]] != is_new[pairs[:, 1]]
    n_across, n_within = int(np.count_nonzero(is_across)), int(np.count_nonzero(~is_across))
    are_all_different = n_within == 0 and size.max() <= 2  # within each sample
    if not are_all_different and binom.sf(n_across - 1, n_across + n_within, 0.5) > BY_CHANCE:
        return np.empty((0, 2), np.int64)
    return pairs[is_across]


# --- the parts ----------------------------------------------------------------------------------------------


def held_out_size(n_rows: int, test_size: float) -> int:
    """Number of held-out rows of a table: at least one, and at most all but one."""
    return min(max(round(test_size * n_rows), 1), n_rows - 1)


def draw_held_out(
    is_new: NDArray[np.bool_],
    test_size: float,
    rng: np.random.Generator,
    shared: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Rows to test on: the same share of both samples, with at least one row of each in both parts.

    Both rows of a shared pair are held out, or neither; the share of held-out pairs is as close to that of all rows as
    the other rows allow.
    """
    held_out = np.zeros(len(is_new), bool)
    samples = [np.flatnonzero(~is_new), np.flatnonzero(is_new)]
    sizes = [held_out_size(len(rows), test_size) for rows in samples]
    n_pairs = 0
    if shared is not None and len(shared):
        samples = [np.setdiff1d(rows, shared, assume_unique=True) for rows in samples]
        # Never empty: a table with more rows has at least as many held-out and at least as many training rows.
        least = max(0, *(size - len(rows) for size, rows in zip(sizes, samples, strict=True)))
        n_pairs = int(np.clip(round(test_size * len(shared)), least, min(len(shared), *sizes)))
        held_out[shared[rng.choice(len(shared), n_pairs, replace=False)]] = True
    for rows, size in zip(samples, sizes, strict=True):
        if size > n_pairs:
            held_out[rng.choice(rows, size - n_pairs, replace=False)] = True
    return held_out


def balanced_weights(is_new: NDArray[np.bool_], held_out: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Training weights: both samples weigh the same, a row of the smaller one 1, a held-out row 0."""
    n_rows = np.bincount(is_new[~held_out], minlength=2)
    return np.where(held_out, 0.0, (n_rows.min() / n_rows)[is_new.astype(int)])
