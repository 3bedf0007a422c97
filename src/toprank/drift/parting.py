"""Which rows are learned from and which are held out: at random, but both copies of a row together.

A row that is in both tables, as in windows that overlap, must not be learned from in one and tested on in the other:
what was learned as a reference row would come back as a new one, and the held-out half would be the mirror image of the
learned one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from toprank.data.table import Table

BY_CHANCE = 0.01
"""Level of the test that tells rows that two tables share from rows that are alike by chance."""


def row_keys(table: Table) -> NDArray[np.uint64]:
    """One number for each row, the same for rows of the same values; missing equals missing.

    Values are mixed bit by bit, so that different rows share a key with a chance of about n**2 / 2**65: never in
    practice, and then two rows go to the same part that need not.

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
    """Values of column i as whole numbers: the bits of numbers, the place of a category among those that occur.

    Categories are not encoded as for a tree: there, the rarest of very many share a code.
    """
    if table.is_numeric(i):
        values = table.numbers(i).astype(np.float64) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan  # there are many
        return values.view(np.uint64)
    return (table.coded(i).codes + 1).astype(np.uint64)  # missing is 0


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits spread over the whole word, one to one: the last step of the generator splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def shared_rows(key: NDArray[np.uint64], is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Rows that are in both samples: pairs of a reference row and a new row, of shape (n_shared, 2).

    Only rows that occur once in either sample are paired. In tables of few different rows every row has its like in the
    other table, which says nothing: to pair these would make the parts of two independent samples alike. Rows that
    differ more are alike by chance now and then; but then two rows of the same sample are alike as often or more (for
    n reference and m new rows and a row of chances p and q, n m p q <= (n**2 p**2 + m**2 q**2) / 2). So there have to
    be clearly more pairs across the samples than within; where no two rows of a sample are alike, one is enough.
    Samples of just the same rows are paired whatever they hold.

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
    are_all_different = n_within == 0 and size.max() <= 2  # within either sample
    if not are_all_different and binom.sf(n_across - 1, n_across + n_within, 0.5) > BY_CHANCE:
        return np.empty((0, 2), np.int64)
    return pairs[is_across]


def held_out_size(n_rows: int, test_size: float) -> int:
    """Rows of a table that are held out: at least one, and all but one at most."""
    return min(max(round(test_size * n_rows), 1), n_rows - 1)


def draw_held_out(
    is_new: NDArray[np.bool_],
    test_size: float,
    rng: np.random.Generator,
    shared: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Rows to test on: the same share of both samples, at least one row of each on either side.

    Both rows of a shared pair are held out or neither is; the share of the pairs is that of all rows as nearly as the
    other rows allow.
    """
    held_out = np.zeros(len(is_new), bool)
    samples = [np.flatnonzero(~is_new), np.flatnonzero(is_new)]
    sizes = [held_out_size(len(rows), test_size) for rows in samples]
    n_pairs = 0
    if shared is not None and len(shared):
        samples = [np.setdiff1d(rows, shared, assume_unique=True) for rows in samples]
        # Never empty: of a table of more rows, as many are held out or more, and as many are not or more.
        least = max(0, *(size - len(rows) for size, rows in zip(sizes, samples, strict=True)))
        n_pairs = int(np.clip(round(test_size * len(shared)), least, min(len(shared), *sizes)))
        held_out[shared[rng.choice(len(shared), n_pairs, replace=False)]] = True
    for rows, size in zip(samples, sizes, strict=True):
        if size > n_pairs:
            held_out[rng.choice(rows, size - n_pairs, replace=False)] = True
    return held_out


def balanced_weights(is_new: NDArray[np.bool_], held_out: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights to learn with: both samples weigh the same, a row of the smaller one 1, a row held out nothing."""
    n_rows = np.bincount(is_new[~held_out], minlength=2)
    return np.where(held_out, 0.0, (n_rows.min() / n_rows)[is_new.astype(int)])
