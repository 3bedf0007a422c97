"""Columns as numpy arrays, and their conversion to the caller's kind of data frame.

The frame package is imported only here, and only when a frame is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.errors import InputError

BACKENDS = ("pandas", "polars", "pyarrow")
_NONE = np.array(None, dtype=object)


def is_missing(values: np.ndarray) -> np.ndarray:
    """Return where a column is missing: NaN in numbers, None in strings; bool of shape (n,)."""
    return values == _NONE if values.dtype == object else np.isnan(values)


def import_optional(package: str, *, needed_for: str, hint: str) -> Any:
    """Return the module ``package``, or an ImportError that says why it is needed and how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        message = f"{needed_for} needs the package {package!r}, which is not installed. Hint: {hint}."
        raise ImportError(message) from error


def build_frame(columns: Mapping[str, np.ndarray], backend: str, *, owner: str) -> Any:
    """Return a pandas DataFrame, polars DataFrame or pyarrow Table of the columns, in their order.

    Columns are numbers, or strings in an object array; NaN and None become the frame's own missing value.
    """
    if backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS[:-1])) + f" or {BACKENDS[-1]!r}"
        raise InputError(f"The 'backend' parameter of {owner} must be {known}. Got {backend!r} instead.")
    others = " or ".join(f".frame({other!r})" for other in BACKENDS if other != backend)
    module = import_optional(
        backend, needed_for=f"A frame of type {backend!r}", hint=f"pip install {backend}, or ask for {others}"
    )
    if backend == "pyarrow":
        kinds = {name: module.string() if values.dtype == object else None for name, values in columns.items()}
        return module.table({n: module.array(v, type=kinds[n], from_pandas=True) for n, v in columns.items()})
    made = {}
    for name, values in columns.items():
        is_text = values.dtype == object
        if backend == "pandas":
            made[name] = module.Series(values, dtype="str" if is_text else None)
        else:
            kind = module.String if is_text else None
            made[name] = module.Series(
                name, values.tolist() if is_text else values, dtype=kind, nan_to_null=not is_text
            )
    return module.DataFrame(made)
