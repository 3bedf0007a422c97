"""Measures per entity (a card with its transactions, a company with its declarations) and per period.

Owns the step from rows to entities, which returns ordinary cases, one per entity, for every other measure, curve and
interval of this folder; and the mean of a measure over days, weeks or years.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.at_k import depth_of, gain_at_k, lift_at_k, precision_at_k, recall_at_k
from toprank.metrics.checks import (
    CheckedRows,
    as_vector,
    check_choice,
    check_nonnegative,
    check_rows,
    check_score,
    check_weight,
    is_int,
    is_missing,
    is_real,
    mark_positives,
)
from toprank.metrics.ties import TIES, found_at

ROW_KEYWORDS = ("sample_weight", "amount", "entities")


class EntityCases(NamedTuple):
    """Cases of `per_entity`, one per entity, in the order of its first row.

    Attributes
    ----------
    entities : ndarray of shape (n_entities,)
    y_true : ndarray of shape (n_entities,), bool
        True if any row of the entity is positive.
    score : ndarray of shape (n_entities,)
        The highest score of its rows.
    """

    entities: NDArray[Any]
    y_true: NDArray[np.bool_]
    score: NDArray[Any]


def per_entity(y_true: ArrayLike, score: ArrayLike, entities: ArrayLike, *, pos_label: Any = None) -> EntityCases:
    """One case per entity: its highest score, positive if any of its rows is.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two values.
    score : array-like of shape (n,)
        Larger is more suspicious.
    entities : array-like of shape (n,)
        The entity of each row: numbers, strings or other hashable values, none missing.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.

    Returns
    -------
    EntityCases
        Its labels and scores work with any measure, as in
        ``bootstrap_interval(precision_at_k, cases.y_true, cases.score, k=100)``, which draws entities, not rows.

    Examples
    --------
    >>> cases = per_entity([0, 1, 0, 0], [0.9, 0.2, 0.5, 0.6], ["ann", "ann", "bob", "bob"])
    >>> cases.entities.tolist(), cases.y_true.tolist(), cases.score.tolist()
    (['ann', 'bob'], [True, False], [0.9, 0.6])
    """
    return _entity_cases(y_true, score, entities, pos_label, caller="per_entity")


def distinct_entity_precision_at_k(
    y_true: ArrayLike,
    score: ArrayLike,
    entities: ArrayLike,
    k: int | float = 1.0,
    *,
    of: str = "positives",
    ties: str = "expected",
    pos_label: Any = None,
) -> float:
    """Precision at k distinct entities: the share of the first k entities that have a positive row.

    Entities are ranked by their highest score, and an entity is a hit if any of its rows is positive, not necessarily
    the one with the highest score: checking a card shows all its transactions. For payment cards this is known as card
    precision, CP@k, computed per day: see `per_period`.

    Parameters
    ----------
    y_true, score, entities, pos_label
        As in `per_entity`. There is no sample_weight: an entity counts once, however many rows it has.
    k : int or float, default=1.0
        An int in [1, number of entities] is a number of entities. A float in (0, 1] is a share, by default of the
        number of positive entities, rounded up and at least one.
    of : {"positives", "cases"}
        What a float `k` is a share of: positive entities or all entities.
    ties : {"expected", "best", "worst"}
        Entities tied at the cut are taken at random, all equally likely whatever their number of rows (the
        exact mean over all orders of the entities), positives first, or last.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    A. Dal Pozzolo, G. Boracchi, O. Caelen, C. Alippi, G. Bontempi, "Credit card fraud detection: a realistic
    modeling and a novel learning strategy", IEEE Transactions on Neural Networks and Learning Systems 29(8), 2018.

    Examples
    --------
    >>> y, score = [1, 1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> cards = ["ann", "ann", "bob", "cid", "bob"]
    >>> distinct_entity_precision_at_k(y, score, cards, 2)
    1.0
    >>> distinct_entity_precision_at_k(y, score, cards, 1.0, of="cases")
    0.6666666666666666
    """
    caller = "distinct_entity_precision_at_k"
    check_choice(ties, "ties", TIES, caller=caller)
    cases = _entity_cases(y_true, score, entities, pos_label, caller=caller)
    n = len(cases.entities)
    if is_int(k) and k > n:
        raise InputError(
            f"The 'k' parameter of {caller} must be at most the number of distinct entities ({n:,}). Got {k!r} "
            "instead. Hint: k counts entities, not rows."
        )
    # Not check_rows: the entities may all be of one class even if the rows are not.
    rows = CheckedRows(cases.y_true, cases.score, np.ones(n), np.ones(n), is_weighted=False)
    depth = depth_of(k, of, rows, caller=caller)
    return float(found_at(rows, rows.positive, ties, depth)) / depth


def encode_identifiers(
    identifiers: ArrayLike, name: str, n: int, *, caller: str
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the index of each row's identifier, in order of first appearance, and the distinct identifiers."""
    values = as_vector(identifiers, name, caller=caller, n=n)
    if values.dtype.kind not in "biufMmUS":
        return _encode_objects(values, name, caller)
    if values.dtype.kind in "fMm":  # NaN and NaT differ from themselves
        _check_none_missing(values != values, name, caller)
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[codes], distinct[order]


def _encode_objects(values: NDArray[Any], name: str, caller: str) -> tuple[NDArray[np.intp], NDArray[Any]]:
    listed = values.tolist()
    _check_none_missing(np.fromiter(map(is_missing, listed), bool, len(listed)), name, caller)
    seen: dict[Any, int] = {}
    try:
        codes = [seen.setdefault(value, len(seen)) for value in listed]
    except TypeError:
        raise InputTypeError(
            f"'{name}' of {caller} must be numbers, strings or other hashable values. Got something else. "
            "Hint: join the parts of an identifier into one string."
        ) from None
    distinct = np.empty(len(seen), dtype=object)
    distinct[:] = list(seen)
    return np.array(codes, dtype=np.intp), distinct


def _check_none_missing(is_missing: NDArray[np.bool_], name: str, caller: str) -> None:
    if is_missing.any():
        raise InputError(
            f"'{name}' of {caller} must have a value for every row, but {int(is_missing.sum()):,} of "
            f"{len(is_missing):,} are missing (the first in row {int(is_missing.argmax())}). Hint: drop these rows, or "
            "give each a value of its own."
        )


def _entity_cases(
    y_true: ArrayLike, score: ArrayLike, entities: ArrayLike, pos_label: Any, *, caller: str
) -> EntityCases:
    rows = check_rows(y_true, score, pos_label=pos_label, caller=caller)
    codes, distinct = encode_identifiers(entities, "entities", len(rows.score), caller=caller)
    positive = np.bincount(codes[rows.positive], minlength=len(distinct)) > 0
    highest = np.full(len(distinct), rows.score.min(), dtype=rows.score.dtype)
    np.maximum.at(highest, codes, rows.score)
    return EntityCases(distinct, positive, highest)


class PeriodValues(NamedTuple):
    """Values of `values_per_period`, one per period, in the order of the periods.

    Attributes
    ----------
    periods : ndarray of shape (n_periods,)
        Sorted if possible, else in order of first appearance.
    values : ndarray of shape (n_periods,), float64
    """

    periods: NDArray[Any]
    values: NDArray[np.float64]


def per_period(
    metric: Callable[..., float],
    y_true: ArrayLike,
    score: ArrayLike,
    periods: ArrayLike,
    *,
    empty: float | None = 0.0,
    pos_label: Any = None,
    **metric_kwargs: Any,
) -> float:
    """Mean of a measure over the periods: what k checks per day find on an average day.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, score, **metric_kwargs)`` on the rows of one period. A period may be all-positive
        for precision, recall and gain at k and for `distinct_entity_precision_at_k`.
    y_true : array-like of shape (n,)
        Labels of two values; with `pos_label` one of them is enough.
    score : array-like of shape (n,)
        Larger is more suspicious.
    periods : array-like of shape (n,)
        The day, week or year of each row; equal values are one period.
    empty : float or None, default=0.0
        The value of a period without positives, where most measures are undefined. 0 is right for precision and money:
        the checks of that day found nothing, and leaving such days out would be optimistic. None leaves these periods
        out, which suits recall and average precision.
    pos_label : optional
        The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.
    **metric_kwargs
        Passed to `metric`. `sample_weight`, `amount` and `entities` follow their rows. An int `k` is a number of
        checks per period; in a period with fewer cases (or entities, if given) all are checked.

    Returns
    -------
    float

    Examples
    --------
    >>> from toprank.metrics import precision_at_k
    >>> y, score = [1, 0, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
    >>> day = [1, 1, 1, 2, 2, 2]
    >>> per_period(precision_at_k, y, score, day, k=2)
    0.75
    """
    values = _period_values("per_period", metric, y_true, score, periods, empty, pos_label, metric_kwargs).values
    return float(values.mean())


def values_per_period(
    metric: Callable[..., float],
    y_true: ArrayLike,
    score: ArrayLike,
    periods: ArrayLike,
    *,
    empty: float | None = 0.0,
    pos_label: Any = None,
    **metric_kwargs: Any,
) -> PeriodValues:
    """The measure of every period; `per_period` is their mean.

    Parameters are those of `per_period`.

    Returns
    -------
    PeriodValues

    Examples
    --------
    >>> from toprank.metrics import gain_at_k
    >>> y, score, amount = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6], [50.0, 60.0, 70.0, 80.0]
    >>> found = values_per_period(gain_at_k, y, score, ["Mon", "Mon", "Tue", "Tue"], amount=amount, k=1)
    >>> dict(zip(found.periods.tolist(), found.values.tolist()))
    {'Mon': 50.0, 'Tue': 70.0}
    """
    return _period_values("values_per_period", metric, y_true, score, periods, empty, pos_label, metric_kwargs)


COUNT_POSITIVES_ONLY = (precision_at_k, recall_at_k, gain_at_k, distinct_entity_precision_at_k)
"""Measures that need no negative cases: they say what k checks find, not how positives compare with negatives."""


AT_K = (precision_at_k, recall_at_k, gain_at_k, lift_at_k)
"""Measures whose k may be a share of the cases."""


def _period_values(
    caller: str,
    metric: Callable[..., float],
    y_true: ArrayLike,
    score: ArrayLike,
    periods: ArrayLike,
    empty: float | None,
    pos_label: Any,
    metric_kwargs: dict[str, Any],
) -> PeriodValues:
    if empty is not None and not is_real(empty):
        raise InputTypeError(f"The 'empty' parameter of {caller} must be a number or None. Got {empty!r} instead.")
    labels = as_vector(y_true, "y_true", caller=caller)
    if pos_label is not None and len(labels) and (labels == labels[0]).all():  # one class is enough
        positive = labels == pos_label
    else:
        positive = mark_positives(labels, pos_label=pos_label, caller=caller)
    n = len(labels)
    columns = {"score": as_vector(score, "score", caller=caller, n=n)}
    for name in ROW_KEYWORDS:
        if metric_kwargs.get(name) is not None:
            columns[name] = as_vector(metric_kwargs[name], name, caller=caller, n=n)
    constant = {name: value for name, value in metric_kwargs.items() if name not in columns}
    if pos_label is not None:
        constant["pos_label"] = pos_label
    codes, distinct = _encode_periods(periods, n, caller)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(1, len(distinct)))
    kept, values = [], []
    for code, rows in enumerate(np.split(order, starts)):
        if "sample_weight" in columns:
            rows = rows[columns["sample_weight"][rows] != 0]  # weight 0 is no row
            if not len(rows):
                continue
        if not positive[rows].any():
            if empty is not None:
                kept.append(code)
                values.append(float(empty))
            continue
        inside = {name: column[rows] for name, column in columns.items()}
        options = constant | (_checks(metric, constant["k"], inside, len(rows)) if "k" in constant else {})
        y = labels[rows]
        if positive[rows].all():
            if metric not in COUNT_POSITIVES_ONLY:
                raise InputError(
                    f"{caller} needs a negative case in every period with a positive one for this metric, but all "
                    f"{len(rows):,} cases of period {distinct[code]} are positive. Hint: use longer periods."
                )
            y, inside, options = _add_negative(inside, options, len(rows), metric.__name__)
        kept.append(code)
        values.append(float(metric(y, inside.pop("score"), **inside, **options)))
    if not kept:
        raise InputError(
            f"{caller} needs a period with a positive case, but none of the {len(distinct):,} has one. Hint: empty=0.0 "
            "counts such periods as 0."
        )
    return PeriodValues(distinct[kept], np.array(values))


def _checks(metric: Callable[..., float], k: Any, inside: dict[str, NDArray[Any]], n: int) -> dict[str, Any]:
    """Return the options that say how many cases of one period are checked: k if it is an int, but at most all."""
    if not is_int(k):
        return {"k": k}
    if "entities" in inside:
        n = len(set(inside["entities"].tolist()))
    elif "sample_weight" in inside:
        total = inside["sample_weight"].sum()
        if total < k and total % 1:  # all cases, whose weight no int says; other metrics may know no shares
            return {"k": 1.0, "of": "cases"} if metric in AT_K else {"k": math.ceil(total)}
        n = int(min(k, total))
    return {"k": min(k, n)}


def _add_negative(
    inside: dict[str, NDArray[Any]], options: dict[str, Any], n: int, caller: str
) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the labels, columns and options of n positives plus a negative below them, which changes no value.

    It is an entity of its own. A share refers to the positives, which are all real cases; an int k is already within
    these.
    """
    score = check_score(inside["score"], "score", n, caller=caller)
    below = {"score": np.append(np.unique(score, return_inverse=True)[1], -1)}  # ranks: no score is below -inf
    if "entities" in inside:
        below["entities"] = np.append(encode_identifiers(inside["entities"], "entities", n, caller=caller)[0], -1)
    if "amount" in inside:
        below["amount"] = np.append(check_nonnegative(inside["amount"], "amount", n, caller=caller), 0.0)
    if "sample_weight" in inside:  # tiny weight: the depth may end at a fractional total
        weight = check_weight(inside["sample_weight"], n, caller=caller)
        below["sample_weight"] = np.append(weight, np.finfo(np.float64).tiny)
    share = {"of": "positives"} if options.get("of") == "cases" else {}
    return np.arange(n + 1) < n, below, options | share | {"pos_label": True}


def _encode_periods(periods: ArrayLike, n: int, caller: str) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the index of each row's period and the distinct periods, sorted if possible."""
    codes, distinct = encode_identifiers(periods, "periods", n, caller=caller)
    try:
        order = np.argsort(distinct)
    except TypeError:
        return codes, distinct
    return np.argsort(order)[codes], distinct[order]
