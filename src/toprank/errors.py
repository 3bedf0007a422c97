"""The errors that the library raises for input it cannot use."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used: the message says what, what was expected and what was found.

    All refusals of the library are of this class. It is a ValueError, so that `except ValueError` works as with other
    libraries; a ValueError or TypeError of another class is a mistake in toprank.

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
    """An argument has a type that cannot be used; both an `InputError` and a TypeError."""
