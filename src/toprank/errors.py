"""The errors that the library raises for bad input."""

from __future__ import annotations


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
