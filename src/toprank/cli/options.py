"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.errors import InputError
from toprank.cli.terminal import Terminal
from toprank.words.counts import count, plural
from toprank.words.nearest import did_you_mean

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="On an error, show the traceback too.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, notes or hints.")]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column with the outcome.")]
Positive = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="The outcome to look for; understood for 0/1, true/false, yes/no."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="COLUMN", help="A column that names the case; carried along, not learned from."),
]
Separator = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="Between the cells of a text file: ; or tab (default: as found)."),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a text file: cp1252, latin-1, utf-16 (default: UTF-8).")
]
RawText = Annotated[
    bool,
    typer.Option(
        "--raw-text", help="Write text as it is, also what a spreadsheet would run as a formula (=, +, -, @ first)."
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `toprank fit` wrote.")]


def split_names(given: Sequence[str] | None, known: Sequence[str], option: str, file: str) -> list[str]:
    """Columns named by an option that may be repeated and may hold several names with commas between them."""
    names: list[str] = []
    for text in given or ():
        parts = [text] if text in known else [part.strip() for part in text.split(",") if part.strip()]
        for name in parts:
            if name not in known:
                raise InputError(
                    f"{option} names the column {name!r}, but {file} has no such column "
                    f"({plural(len(known), 'column')} read).{did_you_mean(name, known)}"
                )
        names += parts
    return list(dict.fromkeys(names))


def repeat_ids(given: Sequence[str] | None) -> str:
    """Option --id as it was given, for the next command that is suggested; empty where it was not."""
    return "".join(f" --id {shlex.quote(text)}" for text in given or ())


def parse_budget(text: str | None, option: str = "--budget") -> int | float | None:
    """Cases as an int, a share as a float; "2%" is 0.02."""
    if text is None:
        return None
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    number = _share(text)
    if 0 < number < 1:
        return number
    raise InputError(
        f"{option} must be a number of cases such as 500 or a share such as 0.02 or 2%, got {text!r}. "
        "Hint: the budget is how many cases you can check."
    )


def note_large_budget(budget: int | float | None, n_cases: float, option: str, table: str, terminal: Terminal) -> None:
    """Note where there are fewer cases than can be checked, so that all of them are within the budget."""
    if isinstance(budget, int) and budget > n_cases:
        terminal.note(f"{option} is {plural(budget, 'case')}, but {table} has {count(n_cases)}: using all of them.")


def parse_share(text: str, option: str) -> float:
    """Share from 0 to 1; "5%" is 0.05."""
    number = _share(text)
    if 0 <= number <= 1:
        return number
    raise InputError(f"{option} must be a share from 0 to 1 such as 0.05 or 5%, got {text!r}. Hint: 5% is 0.05.")


def _share(text: str) -> float:
    """Number in a text, percents as a share; NaN where there is none."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return float("nan")


def parse_settings(given: Sequence[str] | None, parameters: Sequence[str], owner: str) -> dict[str, Any]:
    """Parameters of an estimator from name=value texts."""
    settings: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise InputError(f"--set needs name=value, got {text!r}. Hint: for example --set max_depth=3.")
        if name not in parameters:
            raise InputError(
                f"{owner} has no parameter {name!r} (its parameters: {', '.join(parameters)})."
                + did_you_mean(name, parameters)
            )
        settings[name] = parse_value(value.strip())
    for parameter in ("categorical_features", "keep_columns"):
        names = settings.get(parameter)
        if isinstance(names, str) and (parameter, names) != ("keep_columns", "all"):
            settings[parameter] = [part.strip() for part in names.split(",")]
        elif isinstance(names, int):
            settings[parameter] = [names]
    return settings


def parse_value(text: str) -> Any:
    """Return the Python value of a text: numbers, true/false, none, lists; anything else is a string."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if text.lower() in ("inf", "-inf"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
