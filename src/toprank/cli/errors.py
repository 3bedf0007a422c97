"""Bad input as one message: what is wrong, with what, what was expected, what was found, one hint."""

from __future__ import annotations

import traceback

from toprank.errors import InputError

__all__ = ["InputError", "is_bad_input", "sentence_of"]

OF_THE_WORLD = (OSError, ImportError, MemoryError)
"""Errors from files, missing packages and lack of memory."""

CHECKS_OF_SKLEARN = "sklearn.utils"
"""The package in which scikit-learn checks parameters and tables; it raises errors of several classes."""


def is_bad_input(error: BaseException) -> bool:
    """Return True if an error is about user input; all others are bugs in toprank.

    The library refuses input with `InputError`. A plain ValueError or TypeError comes from Python or numpy, for example
    when our own code adds arrays of different lengths.
    """
    if isinstance(error, (InputError, *OF_THE_WORLD)):
        return True
    return isinstance(error, ValueError | TypeError) and _is_of_sklearn(error)


def _is_of_sklearn(error: BaseException) -> bool:
    """Return True if a check of scikit-learn raised the error, judged by its class and by where it was raised."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    origin = frames[-1].f_globals.get("__name__", "") if frames else ""
    return any(f"{module}.".startswith(f"{CHECKS_OF_SKLEARN}.") for module in (type(error).__module__, origin))


def sentence_of(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        place = f" {str(error.filename)!r}" if error.filename else ""
        return f"The file{place} cannot be read or written: {error.strerror}."
    if isinstance(error, MemoryError):
        return "Out of memory. Hint: use fewer rows or columns, or Parquet."
    return " ".join(str(error).split()) or type(error).__name__
