"""Equal rows of a table."""

from __future__ import annotations

import numpy as np


def find_equal_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in a canonical order, which does not depend on the order of the table.

    Parameters
    ----------
    table : float64 array of shape (n, n_columns), C order
        Changed in place: NaN and zero get one bit pattern each, so that NaN equals NaN, and 0 equals -0.

    Returns
    -------
    first : int64 array of shape (m,)
        Position of the first of each set of equal rows.
    which : int64 array of shape (n,)
        Set of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.rows import find_equal_rows
    >>> first, which = find_equal_rows(np.array([[2.0, np.nan], [1.0, -0.0], [2.0, np.nan], [1.0, 0.0]]))
    >>> first, which
    (array([1, 0]), array([1, 0, 1, 0]))
    """
    table[np.isnan(table)] = np.nan
    table += 0.0
    # Big-endian bytes sort category codes as numbers, so unused codes do not change the order either.
    keys = table.astype(">f8").view(f"V{table.shape[1] * 8}").ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which


def row_hashes(X: np.ndarray, seed: int) -> np.ndarray:
    """A hash of each row that depends only on its values and the seed: uint64 (n,). NaN equals NaN, and 0 equals -0.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.tree.rows import row_hashes
    >>> hashes = row_hashes(np.array([[2.0, np.nan], [1.0, -0.0], [2.0, np.nan], [1.0, 0.0]]), 0)
    >>> hashes[0] == hashes[2], hashes[1] == hashes[3], hashes[0] == hashes[1]
    (np.True_, np.True_, np.False_)
    """
    mixed = np.full(len(X), seed, np.uint64)
    for j in range(X.shape[1]):
        value = X[:, j].astype(np.float64) + 0.0
        value[np.isnan(value)] = np.nan
        # The steps of splitmix64: each value is mixed into all bits before the next one.
        mixed = (mixed ^ value.view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
