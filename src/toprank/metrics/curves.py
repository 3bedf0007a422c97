"""Measures at every depth of a ranking: curves over all k, and the gains table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics._ties import TIES, found_curve
from toprank.metrics._validation import CheckedRows, as_vector, check_choice, check_count, check_rows
from toprank.metrics.at_k import depth_of


def precision_at_k_curve(
    y_true: ArrayLike, score: ArrayLike, *, ties: str = "expected", pos_label: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Precision at every k, at the cost of one.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    ties : {"expected", "best", "worst"}
        As in `precision_at_k`.
    pos_label : optional
        The positive label; the larger of the two by default.

    Returns
    -------
    k : ndarray of shape (n,), int64
        1, 2, ..., n.
    precision : ndarray of shape (n,), float64
        ``precision_at_k(y_true, score, k)`` for each k.

    References
    ----------
    MetaAP paper, figures 4 and 6.

    Examples
    --------
    >>> k, precision = precision_at_k_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6])
    >>> precision.round(3).tolist()
    [1.0, 0.5, 0.667, 0.5]
    """
    _, k, found = _found_at_every_k("precision_at_k_curve", y_true, score, None, ties, pos_label)
    return k, found / k


def recall_at_k_curve(
    y_true: ArrayLike, score: ArrayLike, *, ties: str = "expected", pos_label: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Recall at every k, at the cost of one; parameters and shapes as in `precision_at_k_curve`.

    Examples
    --------
    >>> k, recall = recall_at_k_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6])
    >>> recall.tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    rows, k, found = _found_at_every_k("recall_at_k_curve", y_true, score, None, ties, pos_label)
    return k, found / rows.total_positive


def gain_at_k_curve(
    y_true: ArrayLike, score: ArrayLike, amount: ArrayLike, *, ties: str = "expected", pos_label: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Money found at every k, at the cost of one.

    `amount` is as in `gain_at_k`; the rest, and the shapes, are as in `precision_at_k_curve`.

    Examples
    --------
    >>> k, gain = gain_at_k_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6], [100.0, 70.0, 50.0, 0.0])
    >>> gain.tolist()
    [100.0, 100.0, 150.0, 150.0]
    """
    _, k, found = _found_at_every_k("gain_at_k_curve", y_true, score, amount, ties, pos_label)
    return k, found


def _found_at_every_k(
    caller: str, y_true: ArrayLike, score: ArrayLike, amount: ArrayLike | None, ties: str, pos_label: Any
) -> tuple[CheckedRows, NDArray[np.int64], NDArray[np.float64]]:
    check_choice(ties, "ties", TIES, caller=caller)
    rows = check_rows(y_true, score, amount=amount, pos_label=pos_label, caller=caller)
    k = np.arange(1, len(rows.score) + 1)
    return rows, k, found_curve(rows, rows.positive * rows.amount, ties).at(k)


def gains_table(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    n_groups: int = 10,
    depths: ArrayLike | None = None,
    amount: ArrayLike | None = None,
    ties: str = "expected",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> dict[str, NDArray[Any]]:
    """Table of what is found down the ranking, one row per depth.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    n_groups : int, default=10
        Cuts the ranking into this many slices of equal size; at most n. Ignored if `depths` is given.
    depths : array-like of int or of float, shape (n_depths,), optional
        Depths in increasing order: ints are numbers of cases, floats shares of all cases, rounded up.
    amount : array-like of shape (n,), optional
        Value of a case if it is positive; adds the three columns on money.
    ties : {"expected", "best", "worst"}
        As in `precision_at_k`: with "expected" the counts of positives are means and may be fractions.
    sample_weight : array-like of shape (n,), optional
        Copies of a row; all counts are then sums of weights.
    pos_label : optional
        The positive label; the larger of the two by default.

    Returns
    -------
    dict of str to ndarray of shape (n_depths,)
        Per slice, since the previous depth: ``cases``, ``positives``, ``hit_rate``. From the top down to the depth:
        ``depth`` (cases), ``cumulative_positives``, ``precision``, ``recall``, ``lift``. With `amount` also ``amount``
        (found in the slice), ``cumulative_amount`` and ``amount_recall`` (its share of the total).

    Examples
    --------
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.6, 0.1]
    >>> table = gains_table(y, score, n_groups=3)
    >>> table["depth"].tolist(), table["positives"].tolist(), table["lift"].tolist()
    ([2, 4, 6], [2.0, 0.5, 0.5], [2.0, 1.25, 1.0])
    """
    caller = "gains_table"
    check_choice(ties, "ties", TIES, caller=caller)
    rows = check_rows(y_true, score, sample_weight=sample_weight, amount=amount, pos_label=pos_label, caller=caller)
    depth = _even_depths(n_groups, rows, caller) if depths is None else _given_depths(depths, rows, caller)
    positives = found_curve(rows, rows.positive, ties).at(depth)
    cases_in_slice, positives_in_slice = np.diff(depth, prepend=0), np.diff(positives, prepend=0.0)
    precision = positives / depth
    table: dict[str, NDArray[Any]] = {
        "depth": depth,
        "cases": cases_in_slice,
        "positives": positives_in_slice,
        "hit_rate": positives_in_slice / cases_in_slice,
        "cumulative_positives": positives,
        "precision": precision,
        "recall": positives / rows.total_positive,
        "lift": precision / (rows.total_positive / rows.total),
    }
    if amount is not None:
        table.update(_money_columns(rows, depth, ties))
    return table


def _money_columns(rows: CheckedRows, depth: NDArray[Any], ties: str) -> dict[str, NDArray[np.float64]]:
    curve = found_curve(rows, rows.positive * rows.amount, ties)
    found, to_find = curve.at(depth), curve.found[-1]
    share = found / to_find if to_find > 0 else np.zeros(len(found))  # nothing to find
    return {"amount": np.diff(found, prepend=0.0), "cumulative_amount": found, "amount_recall": share}


def _even_depths(n_groups: int, rows: CheckedRows, caller: str) -> NDArray[Any]:
    n_groups = check_count(n_groups, "n_groups", caller=caller, high=int(rows.total))
    shares = np.arange(1, n_groups + 1) / n_groups
    return _as_depths([depth_of(float(share), "cases", rows, caller=caller) for share in shares], rows)


def _given_depths(depths: ArrayLike, rows: CheckedRows, caller: str) -> NDArray[Any]:
    given = as_vector(depths, "depths", caller=caller)
    if len(given) == 0 or given.dtype.kind not in "iuf":
        raise InputError(
            f"'depths' of {caller} must be a list of ints (cases) or of floats (shares of the cases). Got "
            f"{depths!r}. Hint: n_groups=10 cuts into tenths."
        )
    found = _as_depths([depth_of(k.item(), "cases", rows, caller=caller) for k in given], rows)
    if (np.diff(found) <= 0).any():
        raise InputError(
            f"'depths' of {caller} must increase, each by at least one case. Got {found.tolist()}. Hint: "
            f"sort them, and leave out shares that round up to the same number of cases."
        )
    return found


def _as_depths(depths: list[float], rows: CheckedRows) -> NDArray[Any]:
    """Whole numbers of cases, unless weights can end a depth inside a case."""
    return np.array(depths, dtype=np.float64 if rows.is_weighted else np.int64)
