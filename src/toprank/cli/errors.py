"""Bad input as one sentence: what is wrong, with what, what was expected, what was found, one hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message is the sentence to print."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, led by a space, or nothing."""
    names = [str(each) for each in known]
    lowered = {each.lower(): each for each in reversed(names)}
    match = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f" Hint: did you mean {lowered[match[0]]!r}?" if match else ""


def sentence_of(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        place = f" {str(error.filename)!r}" if error.filename else ""
        return f"The file{place} cannot be read or written: {error.strerror}."
    if isinstance(error, MemoryError):
        return "The memory of this machine does not suffice. Hint: use fewer rows or columns, or Parquet."
    return " ".join(str(error).split()) or type(error).__name__
