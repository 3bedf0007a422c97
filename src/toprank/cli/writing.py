"""Output files: checked before any work is done, written completely or not at all, safe to open in a spreadsheet.

A spreadsheet runs text that begins like a formula, even from an untrusted table. In CSV such cells get a leading
apostrophe; in Excel files text is marked as text and stays unchanged.
"""

from __future__ import annotations

import datetime
import gzip
import importlib.util
import io
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprank.errors import InputError
from toprank.files.atomic import check_target, write_atomically
from toprank.words.counts import plural

if TYPE_CHECKING:
    import polars

OUTPUT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".xlsx", ".parquet")

FORMULA = "^[=+\\-@\t\r\n＝＋－＠]"
"""What begins a formula, or is skipped before one; the wide forms come from Chinese and Japanese keyboards."""

PLAIN_NUMBER = r"^[+-](?:[0-9][0-9.,]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?%?$"
"""Signed numbers, which are not formulas."""

MAX_SHEET = (1_048_576, 16_384)
MAX_CELL = 32_767
"""Excel's limits on rows, columns and characters per cell."""

EXACT_INTEGER = 2**53
"""Excel stores numbers as floats; larger integers are written as text."""

MAX_WIDTH = 60
ROWS_MEASURED = 200


def check_output(path: Path, suffixes: Sequence[str] = (), inputs: Sequence[Path] = ()) -> None:
    """Raise InputError if the file cannot be written, or would overwrite one of the inputs."""
    if suffixes and not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(
            f"The output {path.name} has an ending that is not supported, expected one of "
            f"{', '.join(suffixes)}. "
            "Hint: the ending selects the format."
        )
    try:
        check_target(path)
    except OSError as error:
        raise InputError(str(error)) from None
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"The output {path} is also an input and would be overwritten. Hint: choose another name.")


def check_table_output(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Raise InputError if a table cannot be written there."""
    check_output(path, OUTPUT_SUFFIXES, inputs)
    if path.name.lower().endswith(".xlsx") and importlib.util.find_spec("xlsxwriter") is None:
        raise InputError(
            f"Writing {path.name} needs the package xlsxwriter, which is not installed. "
            'Hint: pip install "toprank[excel]", or write .csv.'
        )


def write_table(frame: polars.DataFrame, path: Path, *, raw: bool = False, shares: Collection[str] = ()) -> None:
    """Write a frame as CSV, TSV, Excel or Parquet, depending on the ending of the name.

    `raw` leaves text in CSV and TSV unchanged, even if a spreadsheet would run it; Excel shows `shares` as percentages.
    """
    name = path.name.lower()
    assert name.endswith(OUTPUT_SUFFIXES)
    buffer = io.BytesIO()
    if name.endswith(".parquet"):
        frame.write_parquet(buffer)
    elif name.endswith(".xlsx"):
        _write_excel(_flat(frame, path), buffer, shares, path)
    else:
        frame = _flat(frame, path)
        is_tsv = name.endswith((".tsv", ".tsv.gz"))
        (frame if raw else without_formulas(frame)).write_csv(buffer, separator="\t" if is_tsv else ",")
    content = buffer.getvalue()
    write_atomically(path, gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def _flat(frame: polars.DataFrame, path: Path) -> polars.DataFrame:
    """Return categories as text; raise InputError if a column holds values that no cell can."""
    import polars as pl

    for column in frame:
        if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
            raise InputError(
                f"Column {column.name!r} holds values of type {column.dtype}, which {path.name} cannot hold. "
                "Hint: leave it out, or write .parquet."
            )
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def without_formulas(frame: polars.DataFrame) -> polars.DataFrame:
    """Return a frame with an apostrophe before text and column names that a spreadsheet would run."""
    import polars as pl

    text = pl.col(pl.String)
    is_formula = text.str.contains(FORMULA) & ~text.str.contains(PLAIN_NUMBER)
    frame = frame.with_columns(pl.when(is_formula).then(pl.lit("'") + text).otherwise(text).name.keep())
    names = pl.Series(frame.columns, dtype=pl.String)
    runs = names.str.contains(FORMULA) & ~names.str.contains(PLAIN_NUMBER)
    return frame.rename({name: f"'{name}" for name, run in zip(names, runs, strict=True) if run})


# --- Excel --------------------------------------------------------------------------------------------------


def _write_excel(frame: polars.DataFrame, buffer: io.BytesIO, shares: Collection[str], path: Path) -> None:
    """Write one sheet: names in bold in a frozen row, text as text, shares as percentages."""
    import xlsxwriter

    if frame.height >= MAX_SHEET[0] or frame.width > MAX_SHEET[1]:
        raise InputError(
            f"{path.name} would have {plural(frame.height, 'row')} and {plural(frame.width, 'column')}, but an Excel "
            f"sheet takes {MAX_SHEET[0] - 1:,} and {MAX_SHEET[1]:,}. Hint: write .csv or .parquet."
        )
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
        formats = {
            "name": book.add_format({"bold": True, "bottom": 1}),
            "share": book.add_format({"num_format": "0.0%"}),
            "date": book.add_format({"num_format": "yyyy-mm-dd"}),
            "time": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        sheet = book.add_worksheet()
        for place, column in enumerate(frame):
            sheet.write_string(0, place, column.name[:MAX_CELL], formats["name"])
            sheet.set_column(place, place, _width(column), formats["share"] if column.name in shares else None)
            for row, value in enumerate(column, 1):
                if isinstance(value, str) and len(value) > MAX_CELL:
                    raise InputError(
                        f"Column {column.name!r} holds text of {len(value):,} characters in row {row:,}, but a cell of "
                        f"{path.name} takes {MAX_CELL:,}. Hint: leave the column out, or write .csv."
                    )
                _write_cell(sheet, row, place, value, formats)
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, frame.height, frame.width - 1)


def _width(column: polars.Series) -> float:
    """Return the width of a sheet column in characters, with room for the filter button."""
    lengths = [len(f"{value:.6g}" if isinstance(value, float) else str(value)) for value in column.head(ROWS_MEASURED)]
    return min(max([len(column.name) + 2, *lengths]) + 2, MAX_WIDTH)


def _write_cell(sheet: Any, row: int, place: int, value: Any, formats: dict[str, Any]) -> None:
    """Write a value with its type, never as a formula or a link."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return
    largest = EXACT_INTEGER if isinstance(value, int) else math.inf
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    elif isinstance(value, int | float) and math.isfinite(value) and abs(value) <= largest:
        sheet.write_number(row, place, value)
    elif isinstance(value, datetime.datetime) and value.year >= 1900 and value.tzinfo is None:
        sheet.write_datetime(row, place, value, formats["time"])
    elif isinstance(value, datetime.date) and value.year >= 1900 and not isinstance(value, datetime.datetime):
        sheet.write_datetime(row, place, value, formats["date"])
    else:
        sheet.write_string(row, place, str(value))
