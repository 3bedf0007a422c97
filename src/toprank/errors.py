"""The errors that the library raises for bad input, and how it warns."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Invariant: TypeAlias = "tuple[bool | np.bool, str]"
"""Whether an invariant holds, and its text."""


class InputError(ValueError):
    """Bad input: the message says what is wrong, what was expected and what was found.

    All input errors of the library are of this class. It is a ValueError, so that `except ValueError` works as with
    other libraries; any other ValueError or TypeError is a bug in toprank.

    Examples
    --------
    >>> from toprank import InputError
    >>> from toprank.metrics import average_precision
    >>> try:
    ...     average_precision([0, 0], [0.3, 0.7])
    ... except InputError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class InputTypeError(InputError, TypeError):
    """An argument of the wrong type; both an `InputError` and a TypeError."""


def check_invariants(invariants: Iterable[Invariant], message: str) -> None:
    """Raise InputError at the first invariant that does not hold, with its text in place of the {} of the message."""
    for holds, text in invariants:
        if not holds:
            raise InputError(message.format(text))


PACKAGE = str(Path(__file__).parent) + os.sep
"""Folder of toprank's own files."""


def warn_caller(message: str | UserWarning) -> None:
    """Issue a UserWarning that points to the first caller outside toprank."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
