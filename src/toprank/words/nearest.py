"""The known name that is most like one that is not known, for hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

COLUMNS_HINTED = 8
"""Most columns that a hint names."""

NEAR = 0.65
"""Least likeness of a suggested name, as difflib measures it: 0.67 for amt and amount, 0.6 for nope and opened."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, upper and lower case alike, led by a space; or nothing.

    Examples
    --------
    >>> did_you_mean("turnover", ["age", "TURNOVER"])
    " Hint: did you mean 'TURNOVER'?"
    """
    match = nearest_name(name, known)
    return "" if match is None else f" Hint: did you mean {match!r}?"


def column_hint(name: str, known: Sequence[str]) -> str:
    """Return a hint with the column that was probably meant, else with the first columns, led by a space.

    Examples
    --------
    >>> column_hint("amt", ["opened", "amount"]), column_hint("nope", ["opened", "amount"])
    (" Hint: did you mean 'amount'?", ' Hint: its columns are opened, amount.')
    """
    listed = ", ".join(known[:COLUMNS_HINTED]) + (", ..." if len(known) > COLUMNS_HINTED else "")
    return did_you_mean(name, known) or f" Hint: its columns are {listed}."


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar, or else of the same letters, whatever their case; None if none is near.

    Examples
    --------
    >>> nearest_name("amt", ["opened", "amount"]), nearest_name("nope", ["opened", "amount"])
    ('amount', None)
    >>> nearest_name("sgpab", ["metaap", "sgbap"])
    'sgbap'
    """
    lowered = {each.lower(): each for each in reversed(list(known))}
    match = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=NEAR)
    match = match or [each for each in lowered if sorted(each) == sorted(name.lower())]
    return lowered[match[0]] if match else None
