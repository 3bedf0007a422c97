"""Bad input as one sentence: what is wrong, with what, what was expected, what was found, one hint."""

from __future__ import annotations

import difflib
import dis
from collections.abc import Iterable

OF_THE_WORLD = (OSError, ImportError, MemoryError)
"""What files, packages and memory have to do with."""

CHECKED_BY = ("toprank", "sklearn.utils")
"""Modules that look at what the user gave: ours, and scikit-learn's checks of parameters and tables."""

RAISE = dis.opmap["RAISE_VARARGS"]


class InputError(ValueError):
    """Something the user gave cannot be used; the message is the sentence to print."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, led by a space, or nothing."""
    match = nearest_name(name, known)
    return "" if match is None else f" Hint: did you mean {match!r}?"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar, or None where none is."""
    names = [str(each) for each in known]
    lowered = {each.lower(): each for each in reversed(names)}
    match = difflib.get_close_matches(name.lower(), lowered, n=1)
    return lowered[match[0]] if match else None


def is_bad_input(error: BaseException) -> bool:
    """Tell whether an error is about what the user gave; all others are mistakes of ours.

    The library refuses input with `raise ValueError(...)` or `raise TypeError(...)`. The same errors come from Python
    and numpy where our own code adds a number to a text or arrays of different lengths: there no `raise` was executed.
    """
    if isinstance(error, OF_THE_WORLD):
        return True
    if not isinstance(error, ValueError | TypeError) or error.__traceback__ is None:
        return False
    origin = error.__traceback__
    while origin.tb_next is not None:
        origin = origin.tb_next
    module = f"{origin.tb_frame.f_globals.get('__name__', '')}."
    is_raised = origin.tb_frame.f_code.co_code[origin.tb_lasti] == RAISE
    return is_raised and module.startswith(tuple(f"{name}." for name in CHECKED_BY))


def sentence_of(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        place = f" {str(error.filename)!r}" if error.filename else ""
        return f"The file{place} cannot be read or written: {error.strerror}."
    if isinstance(error, MemoryError):
        return "The memory of this machine does not suffice. Hint: use fewer rows or columns, or Parquet."
    return " ".join(str(error).split()) or type(error).__name__
