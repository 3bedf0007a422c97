"""`toprank explain`: why one case of a file has its score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toprank.cli.csv_text import CsvFormat
from toprank.cli.options import Encoding, ModelFile, Separator
from toprank.cli.reading import check_readable
from toprank.cli.terminal import Terminal
from toprank.cli.topk import load_and_read
from toprank.errors import InputError
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean

if TYPE_CHECKING:
    from toprank.cli.reading import TableFile

MOST_COMPARED = 10_000
"""Most ids that a mistyped one is compared with."""


def explain(
    terminal: Terminal,
    model: ModelFile,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="File with the case: CSV, TSV or Parquet.")],
    row: Annotated[
        int | None, typer.Option(metavar="N", help="The case, as in column `row` of `topk`, which counts from 0.")
    ] = None,
    case: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN=VALUE", help="The case, by the value of a column.")
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Explain the score of one case: what raises it, what lowers it, and by how much.

    \b
    toprank explain model.toprank new.csv --id case_id=C0042
    toprank explain model.toprank new.csv --row 41
    """
    check_readable(table)
    if (row is None) == (case is None):
        got = "neither --row nor --id" if row is None else "both --row and --id"
        raise InputError(
            f"`toprank explain` explains one case, got {got}; expected "
            "one of them. Hint: for example --row 41, or --id case_id=C0042."
        )
    csv_format = CsvFormat.from_options(sep, encoding)
    ranker, source, frame, features = load_and_read(model, table, terminal, csv_format=csv_format)
    place = row if case is None else _row_of(case, source, frame.columns)
    if place is None or not 0 <= place < frame.height:
        raise InputError(
            f"--row must be from 0 to {frame.height - 1:,}, as {table.name} has {plural(frame.height, 'row')}, got "
            f"{row}. Hint: rows are counted from 0, as in column `row` of `topk`."
        )
    with terminal.working(f"Explaining row {place:,}"):
        found = ranker.explain(features[[place]])[0]
    terminal.finish({"file": str(table), "row": place, "explanation": found.to_dict(), "text": str(found)})
    if not terminal.as_json:
        named = "" if case is None else f", {case}"
        terminal.show(f"Row {place:,} of {table.name} (counted from 0){named}")
        terminal.write(str(found))


def _row_of(case: str, source: TableFile, columns: list[str]) -> int:
    """Return the only row with a value in a column, given as COLUMN=VALUE."""
    import polars as pl

    file = source.path.name
    at = [i for i, character in enumerate(case) if character == "="]
    if not at:
        raise InputError(f"--id must be COLUMN=VALUE, got {case!r}. Hint: for example --id case_id=C0042.")
    split = next((i for i in at if case[:i] in columns), at[0])  # names may hold an equals sign
    name, value = case[:split], case[split + 1 :]
    if name not in columns:
        raise InputError(
            f"--id names the column {name!r}, but {file} has no such column ({plural(len(columns), 'column')} read)."
            + did_you_mean(name, columns)
        )
    texts = source.as_written([name])[name].cast(pl.String)
    rows = (texts == value).fill_null(False).arg_true().to_list()
    if not rows:
        known = texts.drop_nulls().unique()
        near = did_you_mean(value, known.to_list()) if len(known) <= MOST_COMPARED else ""
        raise InputError(f"No row of {file} has {value!r} in column {name!r}.{near}")
    if len(rows) > 1:
        raise InputError(
            f"{len(rows):,} rows of {file} have {value!r} in column {name!r}, the first two are {rows[0]:,} and "
            f"{rows[1]:,}; expected one. Hint: choose one with --row {rows[0]}."
        )
    return rows[0]
