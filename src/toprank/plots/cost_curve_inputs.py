"""Checked input of a display of cost-optimal curves: points and curves by method, and the selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.operating_points import OperatingPoints


def check_objects(given: Any, kind: type, name: str, caller: str) -> dict[str, Any]:
    """A dictionary of objects of one kind with text keys; empty if nothing is given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"'{name}' of {caller} must be a dictionary with {kind.__name__} for every method. "
            f"Got {type(given).__name__} instead."
        )
    for method, value in given.items():
        if not isinstance(value, kind):
            raise InputTypeError(
                f"'{name}[{method!r}]' of {caller} must be {kind.__name__}. Got {type(value).__name__} instead."
            )
    return {str(method): value for method, value in given.items()}


def check_selected(
    selected: Any, points: Mapping[str, OperatingPoints], test_points: Mapping[str, OperatingPoints], caller: str
) -> None:
    """Raise unless the selected points belong to the given methods."""
    if not isinstance(selected, Mapping):
        raise InputTypeError(
            f"'selected' of {caller} must be a dictionary of positions. Got {type(selected).__name__} instead."
        )
    for name, position in selected.items():
        sizes = [len(part[name]) for part in (points, test_points) if name in part]
        if not sizes:
            raise InputError(
                f"'selected' of {caller} names {name!r}, which is not one of the methods with points. "
                f"Hint: they are {', '.join({**points, **test_points})}."
            )
        if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < min(sizes):
            raise InputError(
                f"'selected[{name!r}]' of {caller} must be a position from 0 to {min(sizes) - 1}. Got {position!r} "
                "instead."
            )


def check_free_names(others: Mapping[str, Any], taken: Mapping[str, Any], caller: str) -> None:
    """Raise if a further model has the name of one of the curve's own lines."""
    for name in others:
        if str(name) in taken:
            raise InputError(
                f"'others' of {caller} has a model named {name!r}, which is the name of a line of the curve itself. "
                "Hint: give it another name."
            )
