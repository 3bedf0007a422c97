"""Measures of the first k cases of a ranking: precision, recall, lift and money, at one k, at all k and in a table.

They are read off the curve of what is found by depth, at the depths given by `k`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import CheckedRows, as_vector, check_choice, check_count, check_rows, is_int, is_real
from toprank.metrics.ties import TIES, found_at

_ROUNDING = 1e-9  # 0.07 * 100 is 7.000000000000001: the ceiling of a share must ignore the last bits


def cases_of_share(share: float, total: float) -> float:
    """Return the number of cases in a share of a total: rounded up, at least 1.

    Examples
    --------
    >>> cases_of_share(0.07, 100), cases_of_share(0.02, 120), cases_of_share(0.001, 5)
    (7.0, 3.0, 1.0)
    """
    return max(float(np.ceil(share * total * (1 - _ROUNDING))), 1.0)


def depth_of(k: Any, of: str, rows: CheckedRows, *, caller: str) -> float:
    """Return the number of cases for `k`: an int, or a share rounded up to at least 1."""
    check_choice(of, "of", ("positives", "cases"), caller=caller)
    total = rows.total
    if is_int(k) and 1 <= k <= total:
        return float(k)
    if is_real(k) and not is_int(k) and 0 < k <= 1:
        return min(cases_of_share(k, rows.total_positive if of == "positives" else total), total)
    counted = "the sum of sample_weight" if rows.is_weighted else "the number of cases"
    raise (InputError if is_real(k) else InputTypeError)(
        f"The 'k' parameter of {caller} must be an int in the range [1, {total:,.10g}] ({counted}) or a "
        f"float in the range (0, 1] (a share of the {of}). Got {k!r} instead. Hint: k=1.0 means as many cases "
        f"as there are {of}."
    )


def precision_at_k(
    y_true: ArrayLike,
    score: ArrayLike,
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Precision at k: the share of positives among the first k cases (the hit rate of k checks).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    k : int or float, default=1.0
        An int in [1, n] is a number of cases. A float in (0, 1] is a share, by default of the number of
        positives, rounded up and at least one case: 1.0 checks as many cases as there are positives, where
        precision and recall are equal. Note that ``k=1`` is one case and ``k=1.0`` is not.
    of : {"positives", "cases"}
        What a float `k` is a share of.
    ties : {"expected", "best", "worst"}
        Cases tied at the cut are taken at random (the exact mean over all orders), positives first, or last.
    sample_weight : array-like of shape (n,), optional
        Copies of a row: `k` then counts weight, and may end inside a row.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    MetaAP paper, section 2 (Precision@k) and section 5 (k as a percentage of the positives); Frery et al.
    2017, equation (4).

    Examples
    --------
    >>> y, score = [1, 0, 1, 0, 0], [0.9, 0.9, 0.5, 0.5, 0.1]
    >>> precision_at_k(y, score, 1), precision_at_k(y, score, 1, ties="best")
    (0.5, 1.0)
    >>> precision_at_k(y, score, 0.6, of="cases")
    0.5
    """
    _, depth, found = _found_at_k("precision_at_k", y_true, score, k, of, ties, sample_weight, pos_label)
    return found / depth


def recall_at_k(
    y_true: ArrayLike,
    score: ArrayLike,
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Recall at k: the share of the positives that are among the first k cases.

    Parameters are those of `precision_at_k`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    MetaAP paper, equation (1), with the first k cases as the predicted positives.

    Examples
    --------
    >>> recall_at_k([1, 0, 1, 0, 0], [0.9, 0.8, 0.5, 0.5, 0.1], 3)
    0.75
    """
    rows, _, found = _found_at_k("recall_at_k", y_true, score, k, of, ties, sample_weight, pos_label)
    return found / rows.total_positive


def lift_at_k(
    y_true: ArrayLike,
    score: ArrayLike,
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Lift at k: precision at k over the share of positives in all cases.

    Parameters are those of `precision_at_k`.

    Returns
    -------
    float
        1 is as good as random; at most n / max(k, number of positives).

    Examples
    --------
    >>> lift_at_k([1, 0, 1, 0, 0], [0.9, 0.8, 0.5, 0.5, 0.1], 1)
    2.5
    """
    rows, depth, found = _found_at_k("lift_at_k", y_true, score, k, of, ties, sample_weight, pos_label)
    return (found / depth) / (rows.total_positive / rows.total)


def gain_at_k(
    y_true: ArrayLike,
    score: ArrayLike,
    amount: ArrayLike,
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Gain at k: the sum of the amounts of the positives among the first k cases (money found by k checks).

    Parameters
    ----------
    y_true, score, k, of, sample_weight, pos_label
        As in `precision_at_k`.
    amount : array-like of shape (n,)
        Value of a case if it is positive, at least 0; amounts of negatives are not counted, but must be numbers.
    ties : {"expected", "best", "worst"}
        Cases tied at the cut are taken at random (the exact mean over all orders), largest gain first, or
        last.

    Returns
    -------
    float
        In the unit of `amount`.

    Examples
    --------
    >>> gain_at_k([1, 0, 1, 0], [0.9, 0.8, 0.8, 0.1], [100.0, 70.0, 50.0, 0.0], k=2)
    125.0
    """
    _, _, found = _found_at_k("gain_at_k", y_true, score, k, of, ties, sample_weight, pos_label, amount)
    return found


def _found_at_k(
    caller: str,
    y_true: ArrayLike,
    score: ArrayLike,
    k: int | float,
    of: str,
    ties: str,
    sample_weight: ArrayLike | None,
    pos_label: Any,
    amount: ArrayLike | None = None,
) -> tuple[CheckedRows, float, float]:
    """Return the checked rows, the depth, and the total value of the positives down to that depth."""
    check_choice(ties, "ties", TIES, caller=caller)
    rows = check_rows(y_true, score, sample_weight=sample_weight, amount=amount, pos_label=pos_label, caller=caller)
    depth = depth_of(k, of, rows, caller=caller)
    return rows, depth, float(found_at(rows, rows.positive * rows.amount, ties, depth))


def precision_at_k_curve(
    y_true: ArrayLike, score: ArrayLike, *, ties: str = "expected", pos_label: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Precision at every k, at the cost of one.

    Parameters
    ----------
    y_true, score, ties, pos_label
        As in `precision_at_k`.

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
    return rows, k, found_at(rows, rows.positive * rows.amount, ties, k)


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
    y_true, score, pos_label
        As in `precision_at_k`.
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
    if depths is None:
        n_groups = check_count(n_groups, "n_groups", caller=caller, high=int(rows.total))
        shares = (np.arange(1, n_groups + 1) / n_groups).tolist()
        depth = _as_depths([depth_of(share, "cases", rows, caller=caller) for share in shares], rows)
    else:
        depth = _given_depths(depths, rows, caller)
    positives = found_at(rows, rows.positive, ties, depth)
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
        value = rows.positive * rows.amount
        found, to_find = found_at(rows, value, ties, depth), float(rows.weight @ value)
        table["amount"], table["cumulative_amount"] = np.diff(found, prepend=0.0), found
        table["amount_recall"] = found / (to_find or 1.0)  # 0 where there is nothing to find
    return table


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
