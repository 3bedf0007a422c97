"""Measures per entity instead of per row: a card with its transactions, a company with its declarations.

Owns the step from rows to entities. It returns ordinary cases, one per entity, for every other measure, curve and
interval of this folder.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics._ties import TIES, found_curve
from toprank.metrics._validation import CheckedRows, _is_missing, as_vector, check_choice, check_rows, is_int
from toprank.metrics.at_k import depth_of


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
        The positive label; the larger of the two by default.

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
    return float(found_curve(rows, rows.positive, ties).at(depth)) / depth


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
    _check_none_missing(np.fromiter(map(_is_missing, listed), bool, len(listed)), name, caller)
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
