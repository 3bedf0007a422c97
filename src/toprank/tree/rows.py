"""Equal rows of a table."""

from __future__ import annotations

import numpy as np


def find_equal_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in an order of their own: the same for any order of the table.

    Parameters
    ----------
    table : float64 array of shape (n, n_columns), C order
        Changed in place: NaN and zero get one pattern of bits each, so that NaN equals NaN, and 0 equals -0.

    Returns
    -------
    first : int64 array of shape (m,)
        Position of the first row of each kind.
    which : int64 array of shape (n,)
        Kind of each row.

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
    # Big-endian bytes sort category codes as numbers, so codes that no row uses do not change the order either.
    keys = table.astype(">f8").view(f"V{table.shape[1] * 8}").ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which
