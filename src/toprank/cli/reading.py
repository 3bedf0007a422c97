"""Reads files into polars frames; a file that cannot be read gets a clear message.

An empty cell is missing; the strings `None` and `NA` are categories like any other. Codes are text: whole numbers, some
with leading zeros, such as 000273. Columns that are only copied to the output are read a second time, as text.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toprank.cli.csv_text import SAMPLE, CsvFormat, CsvText, read_csv_text
from toprank.data.number_text import LEADING_ZERO, PLAIN
from toprank.errors import InputError
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean

if TYPE_CHECKING:
    import polars

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
DECIMAL_COMMA = re.compile(rb"(?:^|;)-?\d+,\d+(?:;|\r?$)", re.MULTILINE)
DECIMAL_POINT = re.compile(rb"(?:^|;)-?\d+\.\d+(?:;|\r?$)", re.MULTILINE)
CODE, WHOLE_NUMBER = rf"^\s*{LEADING_ZERO.pattern}\s*$", rf"^\s*(?:{PLAIN.pattern})?\s*$"
FIRST_ROWS = 1_000


def check_readable(path: Path, suffixes: Collection[str] = TABLE_SUFFIXES) -> None:
    """Raise InputError unless the path is a file of a supported kind."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, expected a file. Hint: name one of the files in it.")
    if not path.exists():
        folder = path.parent
        hint = f" Hint: there is no folder {folder} either."
        if folder.is_dir():
            hint = did_you_mean(path.name, (each.name for each in folder.iterdir() if each.is_file()))
        raise InputError(f"There is no file {path}.{hint}")
    if path.name.lower().endswith(SPREADSHEETS) and not set(SPREADSHEETS) & set(suffixes):
        raise InputError(
            f"{path.name} is a spreadsheet, which is not supported; expected one of {', '.join(suffixes)}. "
            "Hint: save the sheet as CSV UTF-8 in the spreadsheet program."
        )
    if not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(
            f"{path.name} has an ending that is not supported, expected one of {', '.join(suffixes)}. "
            "Hint: save the table as CSV (UTF-8) or Parquet."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty, expected column names and rows. Hint: was it fully written?")


class TableFile:
    """A table file, which can be read as numbers and categories, or as the text that was written.

    It is CSV, TSV or TXT, also compressed with gzip, or Parquet; `csv_format` is for text files.
    """

    def __init__(self, path: Path, csv_format: CsvFormat | None = None) -> None:
        check_readable(path)
        self.path = path
        self._text: CsvText | None = None
        self._frame: polars.DataFrame | None = None
        if path.name.lower().endswith(".parquet"):
            self._frame = _read_parquet(path)
        else:
            csv_format = csv_format or CsvFormat()
            if csv_format.separator is None and path.name.lower().endswith((".tsv", ".tsv.gz")):
                csv_format = replace(csv_format, separator="\t")
            self._text = read_csv_text(_bytes_of(path), csv_format, path.name)

    def frame(self, text_columns: Collection[str] = ()) -> polars.DataFrame:
        """Return the table; empty cells are missing.

        Columns of numbers are numeric, unless they are in `text_columns` or hold codes with leading zeros.
        """
        import polars as pl

        frame = self._frame
        if frame is None:
            frame = self._with_codes(_unpadded(self._cells(None, text_columns), text_columns))
        if frame.height == 0:
            n_columns = plural(frame.width, "column")
            raise InputError(f"{self.path.name} has {n_columns} but no rows. Hint: did a filter drop them all?")
        if frame.width == 0:
            raise InputError(f"{self.path.name} has no columns. Hint: was it fully written?")
        # Decimals, integers too long for numpy and all-null columns are floats.
        types = {name: dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128) for name, dtype in frame.schema.items()}
        wide = [name for name, is_wide in types.items() if is_wide or frame[name].null_count() == frame.height]
        return frame.with_columns(pl.col(wide).cast(pl.Float64, strict=False)) if wide else frame

    def _with_codes(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Return the table with columns of whole numbers as text if one has a leading zero."""
        import polars as pl

        assert self._text is not None
        names = [column.name for column in frame if column.dtype.is_numeric()]
        begins_with_zero = rb'(?:^|["%b])[ \t]*0\d' % re.escape(self._text.separator.encode())
        if not names or not re.search(begins_with_zero, self._text.body, re.MULTILINE):
            return frame  # the usual case, decided without reading the cells twice
        written = self._cells(names, names)
        codes = [c.name for c in written if c.str.contains(CODE).any() and c.str.contains(WHOLE_NUMBER).all()]
        return frame.with_columns(written.select(pl.col(codes).replace("", None)))

    def as_written(self, names: Sequence[str]) -> polars.DataFrame:
        """Return columns as they were written: as text from a text file, with their type from Parquet.

        An empty cell is null, a pair of quotes is an empty string.
        """
        return self._frame.select(names) if self._frame is not None else self._cells(names, names)

    def _cells(self, names: Sequence[str] | None, text_columns: Collection[str]) -> polars.DataFrame:
        """Return columns of a text file, those of `text_columns` as text.

        If names is None, return all columns, with empty text as missing.
        """
        import polars as pl

        assert self._text is not None
        header, text = self._text.header, self._text
        place_of = {name: i for i, name in enumerate(header)}
        places = list(place_of.values()) if names is None else [place_of[name] for name in names]
        if not (text.n_records and places):
            return pl.DataFrame({header[i]: [] for i in places})
        # Our own names, as polars renames or trims some.
        own = [f"c{i}" for i in range(len(header))]
        content = f"{text.separator.join(own)}\n".encode() + text.body
        texts, missing = set(text_columns), [""] if names is None else None
        is_text = [name in texts for name in header]
        has_commas = self._has_decimal_commas()

        def parsed(is_text: list[bool]) -> polars.DataFrame:
            return pl.read_csv(
                content, separator=text.separator, columns=[own[i] for i in places], null_values=missing,
                infer_schema_length=0 if all(is_text[i] for i in places) else None,  # 0: nothing to infer
                schema_overrides={own[i]: pl.String for i in places if is_text[i]}, decimal_comma=has_commas,
            )  # fmt: skip

        try:
            frame = parsed(is_text)
        except pl.exceptions.PolarsError:  # an integer of 40 digits, which no type of polars holds
            frame = parsed([True] * len(header))
            frame = frame.with_columns(guessed(frame[own[i]], has_commas) for i in places if not is_text[i])
        if frame.height != text.n_records:
            raise InputError(
                f"{self.path.name} cannot be read as CSV: it has {plural(text.n_records, 'record')}, but "
                f"{frame.height:,} were read. Hint: save it again as CSV with quotes around all text."
            )
        return frame.select(pl.col(own[i]).alias(header[i]) for i in places)

    def _has_decimal_commas(self) -> bool:
        assert self._text is not None
        if self._text.separator != ";":
            return False
        sample = self._text.body[:SAMPLE]
        return bool(DECIMAL_COMMA.search(sample)) and not DECIMAL_POINT.search(sample)


def _read_parquet(path: Path) -> polars.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"{path.name} cannot be read as Parquet: {_reason(error)}. Hint: was it copied completely?"
        ) from error


def _bytes_of(path: Path) -> bytes:
    """Return the content of a text file, decompressed."""
    if not path.name.lower().endswith(".gz"):
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path.name} cannot be decompressed: {_reason(error)}. Hint: was it copied completely?"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".: ") if lines else type(error).__name__


def guessed(column: polars.Series, decimal_comma: bool = False) -> polars.Series:
    """Return a text column as integers, floats or booleans if all of its cells are."""
    import polars as pl

    numbers = as_numbers(column.str.replace(",", ".", literal=True) if decimal_comma else column)
    as_bool = column.replace_strict({"true": True, "false": False}, default=None)
    for read in (as_bool, column.cast(pl.Int64, strict=False), numbers):
        if read.null_count() == column.null_count():
            return read.alias(column.name)
    return column


def _unpadded(frame: polars.DataFrame, text_columns: Collection[str]) -> polars.DataFrame:
    """Return text columns that hold only numbers with spaces around them as numbers."""
    import polars as pl

    texts, found = set(text_columns), []
    for column in frame:
        if column.dtype != pl.String or column.name in texts or column.null_count() == len(column):
            continue
        first = column.head(FIRST_ROWS)
        if as_numbers(first).null_count() > first.null_count():  # the usual case, decided without reading all rows
            continue
        numbers = as_numbers(column)
        if numbers.null_count() == column.null_count():
            found.append(numbers)
    return frame.with_columns(found)


def as_numbers(column: polars.Series) -> polars.Series:
    """Return the numbers in a text column; cells without one are missing."""
    import polars as pl

    return column.str.strip_chars().cast(pl.Float64, strict=False)
