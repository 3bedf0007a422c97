"""Checked input of displays: columns of a frame, and one series of figures per method.

Owns the error messages about them. NaN means "no figure" and passes; infinities do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from toprank.errors import InputError, InputTypeError
from toprank.metrics.checks import is_real, read_only, shown
from toprank.words.nearest import did_you_mean

Floats = NDArray[np.float64]


def read_columns(
    frame: Any,
    needed: Sequence[str],
    optional: Sequence[str] | None = (),
    *,
    caller: str,
    also: Mapping[str, str] | None = None,
) -> dict[str, list[Any]]:
    """Columns of any kind of frame, or of a dictionary of lists: those needed, and any of `optional` (None: all).

    `also` gives an alternative name for a missing column, such as {"precision": "mean"}.
    """
    if isinstance(frame, Mapping):
        columns = {str(name): list(values) for name, values in frame.items()}
    else:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            raise InputTypeError(
                f"{caller} needs a data frame or a dictionary of columns. Got {type(frame).__name__} instead."
            )
        columns = {name: table[name].to_list() for name in table.columns}
    for name, other in (also or {}).items():
        if name not in columns and other in columns:
            columns[name] = columns[other]
    for name in needed:
        if name not in columns:
            hint = did_you_mean(name, columns) or f" Hint: found are {', '.join(columns) or 'no columns'}."
            raise InputError(f"{caller} needs a column {name!r}, which is missing.{hint}")
    if len({len(values) for values in columns.values()}) > 1:
        raise InputError(f"{caller} needs columns of one length. Hint: check the dictionary.")
    if optional is None:
        return columns
    return {name: columns[name] for name in [*needed, *optional] if name in columns}


def check_dictionary(
    given: Any, name: str, content: str, *, caller: str, may_be_empty: bool = False, hint: str = ""
) -> None:
    """Raise TypeError unless it is a dictionary; `content` and `hint` are words for the error message."""
    if not isinstance(given, Mapping) or not (given or may_be_empty):
        found = "an empty one" if isinstance(given, Mapping) else type(given).__name__
        raise InputTypeError(f"'{name}' of {caller} must be a dictionary with {content}. Got {found} instead.{hint}")


def check_series(values: Any, n: int, name: str, *, caller: str) -> dict[str, Floats]:
    """One read-only array of `n` figures per method, in the order given."""
    check_dictionary(values, name, "an array for every method", caller=caller)
    return {
        str(method): check_figures(array, f"{name}[{method!r}]", caller=caller, n=n) for method, array in values.items()
    }


def check_objects(
    given: Any, kind: type, name: str, *, caller: str, article: str = "", may_be_empty: bool = True
) -> Any:
    """A dictionary of objects of one kind with text keys."""
    content = f"{article}{kind.__name__} for every method"
    check_dictionary(given, name, content, caller=caller, may_be_empty=may_be_empty)
    for method, value in given.items():
        if not isinstance(value, kind):
            found = type(value).__name__
            raise InputTypeError(
                f"'{name}[{method!r}]' of {caller} must be {article}{kind.__name__}. Got {found} instead."
            )
    return {str(method): value for method, value in given.items()}


def check_figures(values: Any, name: str, *, caller: str, n: int | None = None, rising: bool = False) -> Floats:
    """A read-only array of figures; None counts as NaN."""
    try:
        array = read_only([np.nan if value is None else value for value in values])
    except (TypeError, ValueError):
        raise InputTypeError(f"'{name}' of {caller} must be a list of numbers. Got {shown(values)} instead.") from None
    if array.ndim != 1 or len(array) == 0 or np.isinf(array).any():
        raise InputError(
            f"'{name}' of {caller} must be a list of at least one number, none infinite. Got {shown(values)} instead."
        )
    if n is not None and len(array) != n:
        raise InputError(f"'{name}' of {caller} must have {n:,} values, one per point. Got {len(array):,} instead.")
    if rising and not (np.diff(array) > 0).all():  # NaN fails here too
        raise InputError(f"'{name}' of {caller} must rise from each value to the next. Got {shown(values)} instead.")
    return array


def check_texts(values: Any, name: str, n: int, *, caller: str) -> list[str]:
    """A list of `n` texts; None and NaN count as no text."""
    texts = ["" if value is None or value != value else str(value) for value in values]
    if len(texts) != n:
        raise InputError(f"'{name}' of {caller} must have {n:,} values, one per method. Got {len(texts):,} instead.")
    return texts


def read_series(
    frame: Any, along: str, names: Sequence[str], *, caller: str, also: Mapping[str, str] | None = None
) -> tuple[Floats, dict[str, dict[str, Floats]]]:
    """`series_of` the columns method, `along` and `names` of a frame; parameters as in `read_columns`."""
    columns = read_columns(frame, ["method", along, *names], caller=caller, also=also)
    return series_of(columns, along, names, caller=caller)


def series_of(
    columns: Mapping[str, Sequence[Any]], along: str, names: Sequence[str], *, caller: str
) -> tuple[Floats, dict[str, dict[str, Floats]]]:
    """Long columns method, `along` and `names` as a grid of the distinct values of `along`, and arrays on it by name.

    Arrays have NaN if a method has no row; methods are in the order in which they appear.
    """
    methods = [str(method) for method in columns["method"]]
    points = check_figures(columns[along], along, caller=caller)
    grid, position = np.unique(points, return_inverse=True)
    order = list(dict.fromkeys(methods))
    seen: set[tuple[str, int]] = set()
    series = {name: {method: np.full(len(grid), np.nan) for method in order} for name in names}
    for row, (method, column) in enumerate(zip(methods, position.tolist(), strict=True)):
        if (method, column) in seen:
            raise InputError(
                f"{caller} needs one row for each method and {along}, but {method!r} at {grid[column]:g} has several. "
                "Hint: take the mean over data sets and splits first."
            )
        seen.add((method, column))
        for name in names:
            value = columns[name][row]
            series[name][method][column] = np.nan if value is None else value
    return grid, series


def long_columns(grid: Floats, along: str, **series: Mapping[str, Floats] | None) -> dict[str, Any]:
    """Columns method, `along` and one per series, one row per method and point."""
    given = {name: by_method for name, by_method in series.items() if by_method is not None}
    methods = list(next(iter(given.values())))
    none = np.full(len(grid), np.nan)
    columns: dict[str, Any] = {
        "method": [method for method in methods for _ in grid],
        along: np.tile(grid, len(methods)),
    }
    for name, by_method in given.items():
        columns[name] = np.concatenate([by_method.get(method, none) for method in methods])
    return columns


def check_scores(scores: Any, *, caller: str) -> dict[str, Any]:
    """The scores by name of the model; the measures check the arrays."""
    hint = " Hint: {'mine': score}."
    check_dictionary(scores, "scores", "the scores of every model", caller=caller, hint=hint)
    return {str(name): score for name, score in scores.items()}


def check_share(value: Any, name: str, *, caller: str) -> None:
    """Raise ValueError unless `value` is a number in (0, 1]."""
    if not is_real(value) or not 0 < value <= 1:
        raise InputError(
            f"The '{name}' parameter of {caller} must be a share in the range (0, 1]. Got {value!r} instead. "
            "Hint: 5 % is 0.05."
        )
