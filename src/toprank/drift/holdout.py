"""Which rows are training rows and which are held out: at random, but both copies of a row together.

A row that is in both tables, as in overlapping windows, must not be a training row in one and a held-out row in the
other: a row learned as reference would return as a new one, and the held-out half would be the mirror image of the
training half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from toprank.data.table import Table

BY_CHANCE = 0.01
"""Level of the test that distinguishes rows shared by two tables from rows that are equal by chance."""


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
