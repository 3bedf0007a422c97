"""Data frames of any library: its name, column names, and results in the caller's frame type."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals as nw

from toprank.errors import InputError

BACKENDS = ("pandas", "polars", "pyarrow")


def backend_of(X: Any) -> str | None:
    """Name of the data frame library of X, None for anything else."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    name = frame.implementation.value
    return name if name in BACKENDS else None


def names_of(X: Any) -> list[str]:
    """Column names of a data frame of any library; empty for anything else."""
    is_arrow = type(X).__module__.startswith("pyarrow")
    names = getattr(X, "column_names" if is_arrow else "columns", None)
    if names is None or callable(names):
        return []
    return [str(name) for name in (names.tolist() if hasattr(names, "tolist") else names)]


def check_names(X: Any) -> None:
    """Raise ValueError if two columns have the same name, before data frame libraries raise errors of their own."""
    twice = [name for name, count in Counter(names_of(X)).items() if count > 1]
    if twice:
        raise InputError(f"Column {twice[0]!r} appears twice in X. Hint: rename or drop one of them.")


def make_frame(columns: dict[str, Any], backend: str | None, floats: Sequence[str] = ()) -> Any:
    """Frame of columns by name; without a backend the first installed library, else the dictionary itself.

    Columns in `floats` are floats even if all of their values are None.
    """
    for name in (backend,) if backend else BACKENDS:
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        frame = nw.from_dict(columns, backend=library)
        return (
            frame.with_columns(nw.col(name).cast(nw.Float64) for name in floats).to_native()
            if floats
            else frame.to_native()
        )
    return columns
