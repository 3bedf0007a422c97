"""Values in the notation of plans: "2-10", "20-100 by 10", lists of both, ranges for Optuna."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toprank.errors import InputError

SPAN = re.compile(r"\s*(-?\d+)(?:\s*-\s*(-?\d+)\s*(?:by\s+(\d+))?)?\s*")
MAX_VALUES = 10_000
"""Maximum number of values of a list, with spans expanded; more are probably a typo."""

RANGE_KEYS = ("low", "high", "log", "step")


def parse_values(given: Any, owner: str) -> Any:
    """List of values; "2-5" is 2, 3, 4, 5 and may be part of a list. A mapping with low and high is a range.

    Examples
    --------
    >>> parse_values(["2-4", "20-40 by 10", None], "search")
    [2, 3, 4, 20, 30, 40, None]
    """
    if isinstance(given, Mapping):
        if not {"low", "high"} <= set(given) <= set(RANGE_KEYS):
            raise InputError(f"A range in the {owner} must have low and high (log, step), found {dict(given)}.")
        return dict(given)
    entries = given if isinstance(given, list | tuple) else [given]
    values: list[Any] = []
    for entry in entries:
        span = SPAN.fullmatch(entry) if isinstance(entry, str) else None
        if span is None:
            values.append(list(entry) if isinstance(entry, tuple) else entry)
            continue
        low, high, step = int(span[1]), int(span[2] or span[1]), int(span[3] or 1)
        if low > high or step < 1:
            raise InputError(f"The {owner} holds {entry!r}, expected a span such as 2-10 or 20-100 by 10.")
        if (high - low) // step >= MAX_VALUES:
            n_values = (high - low) // step + 1  # len() may overflow for a range this long
            raise InputError(
                f"The {owner} holds {entry!r}, which is {n_values:,} values, expected at most {MAX_VALUES:,}. "
                "Hint: use a shorter span, or steps such as 0-1000 by 100."
            )
        values += range(low, high + 1, step)
    if not values:
        raise InputError(f"The {owner} holds an empty list, expected values. Hint: leave the parameter out.")
    return values


def parse_seeds(given: Any, owner: str) -> tuple[int, ...]:
    """Seeds: an int, a list, or "1-10"."""
    values = parse_values(given, f"seeds of {owner}")
    if isinstance(values, dict) or not all(type(value) is int and 0 <= value < 2**32 for value in values):
        raise InputError(f"The seeds of {owner} must be ints from 0 to 2**32 - 1 such as 1-10, found {given!r:.60}.")
    return tuple(dict.fromkeys(values))


def read_yaml(path: Path) -> Any:
    """Content of a YAML file; duplicate keys are refused."""
    from toprank.datasets.frames import import_optional

    import_optional("yaml", needed_for=f"Reading {path.name}", hint='pip install "toprank[experiment]"')
    import yaml

    class Loader(yaml.SafeLoader):
        """A safe loader that refuses duplicate keys, which others drop silently."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = [name for i, name in enumerate(names) if name in names[:i]]
            if twice:
                raise yaml.MarkedYAMLError(problem=f"{twice[0]!r} is given twice", problem_mark=node.start_mark)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not encoded as UTF-8 ({error.reason}). Hint: save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        where = f" in line {mark.line + 1}" if mark else ""
        hint = "use spaces, not tabs" if "\\t" in str(problem) else "check the indentation and the brackets"
        raise InputError(f"{path.name} cannot be read as YAML{where}: {problem}. Hint: {hint}.") from None
