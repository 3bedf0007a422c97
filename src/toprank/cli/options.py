"""Options shared by several commands, and how their values are parsed."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.terminal import Terminal
from toprank.errors import InputError
from toprank.register import BY_COMMAND, Entry
from toprank.words.counts import count, plural
from toprank.words.nearest import column_hint, did_you_mean

History = Annotated[Path, typer.Argument(metavar="FILE", help="Past cases: CSV, TSV or Parquet.")]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="CASES", help="How many cases can be checked: 500, or a share: 2% (default: as many as positives)."
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="Column with the outcome.")]
Positive = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="Outcome to look for; not needed for pairs such as 0/1, yes/no, Ja/Nein."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column that identifies the case; copied to the output, not used as a feature."
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column that says who the cases belong to, if they have several each: folds keep them together, and "
        "hit rates are for persons or companies not seen in training (default: the column of --id, if it repeats).",
    ),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out: a,b; may be repeated.")]
Separator = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHARACTER", help="Separator of a text file, such as ; or tab (default: detected)."),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of a text file: cp1252, latin-1, utf-16 (default: UTF-8).")
]
RawText = Annotated[
    bool,
    typer.Option(
        "--raw-text",
        help="Write text unchanged, even if a spreadsheet would run it as a formula (starts with =, +, -, @).",
    ),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file written by `toprank fit`.")]


def split_names(given: Sequence[str] | None, known: Sequence[str], option: str, file: str) -> list[str]:
    """Columns named by an option, which may be repeated and may list names separated by commas."""
    names: list[str] = []
    for text in given or ():
        parts = [text] if text in known else [part.strip() for part in text.split(",") if part.strip()]
        for name in parts:
            if name not in known:
                raise InputError(
                    f"{option} names the column {name!r}, but {file} has no such column "
                    f"({plural(len(known), 'column')} read).{column_hint(name, known)}"
                )
        names += parts
    return list(dict.fromkeys(names))


def find_model(option: str, name: str) -> Entry:
    """Return the entry of a model that an option names; InputError if the register has none."""
    if name not in BY_COMMAND:
        raise InputError(
            f"{option} must be one of {', '.join(BY_COMMAND)}, got {name!r}.{did_you_mean(name, BY_COMMAND)}"
        )
    return BY_COMMAND[name]


def repeat_ids(given: Sequence[str] | None) -> str:
    """Option --id as given, for the suggested next command; empty if it was not given."""
    return "".join(f" --id {shlex.quote(text)}" for text in given or ())


def parse_budget(text: str | None, option: str = "--budget") -> int | float | None:
    """Return a number of cases as an int, a share as a float; "2%" is 0.02."""
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
    """Add a note if the budget exceeds the number of cases, so that all of them are used."""
    if isinstance(budget, int) and budget > n_cases:
        terminal.note(f"{option} is {plural(budget, 'case')}, but {table} has {count(n_cases)}: using all of them.")


def parse_share(text: str, option: str) -> float:
    """Return a share from 0 to 1; "5%" is 0.05."""
    number = _share(text)
    if 0 <= number <= 1:
        return number
    raise InputError(f"{option} must be a share from 0 to 1 such as 0.05 or 5%, got {text!r}. Hint: 5% is 0.05.")


def _share(text: str) -> float:
    """Return the number in a text, percentages as a share; NaN if there is none."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return float("nan")


def parse_settings(given: Sequence[str] | None, parameters: Sequence[str], owner: str) -> dict[str, Any]:
    """Return the parameters of an estimator from name=value texts."""
    settings: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals:
            raise InputError(f"--set needs name=value, got {text!r}. Hint: for example --set max_rules=10.")
        if name not in parameters:
            raise InputError(
                f"{owner} has no parameter {name!r} (its parameters: {', '.join(parameters)})."
                + (did_you_mean(name, parameters) or " Hint: use one of these, or another --model.")
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
    """Return a text as a Python value: numbers, true/false, none, lists; anything else is a string."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if text.lower() in ("inf", "-inf"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
