"""The known name that is most like one that is not known, for hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, upper and lower case alike, led by a space; or nothing.

    Examples
    --------
    >>> did_you_mean("turnover", ["age", "TURNOVER"])
    " Hint: did you mean 'TURNOVER'?"
    """
    match = nearest_name(name, known)
    return "" if match is None else f" Hint: did you mean {match!r}?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, upper and lower case alike; None where there is none."""
    lowered = {each.lower(): each for each in reversed(list(known))}
    match = difflib.get_close_matches(name.lower(), lowered, n=1)
    return lowered[match[0]] if match else None
