"""Files to polars frames, checked: every file that cannot be read gets a sentence.

An empty cell is missing; the strings `None` and `NA` are categories like any other. polars fills short rows
and renames repeated columns without a word, so both are checked here first.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toprank.cli.errors import InputError, nearest
from toprank.tree.counts import plural

if TYPE_CHECKING:
    import polars

CSV_SUFFIXES = (".csv", ".csv.gz")
TABLE_SUFFIXES = (*CSV_SUFFIXES, ".parquet")
SEPARATORS = ",;\t|"
CHUNK = 1 << 23
NEWLINE, QUOTE = ord("\n"), ord('"')
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
DECIMAL_COMMA = re.compile(rb"(?:^|;)-?\d+,\d+(?:;|\r?$)", re.MULTILINE)
DECIMAL_POINT = re.compile(rb"(?:^|;)-?\d+\.\d+(?:;|\r?$)", re.MULTILINE)
SAMPLE = 1 << 20
FIRST_ROWS = 1_000


def check_readable(path: Path, suffixes: Collection[str] = TABLE_SUFFIXES) -> None:
    """Raise InputError unless the path is a file of a kind that can be read."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, expected a file. Hint: name one of the files in it.")
    if not path.exists():
        raise InputError(f"There is no file {path}.{_near_file(path)}")
    if not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(
            f"{path.name} has an ending that is not supported, expected one of {', '.join(suffixes)}. "
            "Hint: save the table as CSV (UTF-8) or Parquet."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty, expected column names and rows. Hint: was it fully written?")


def _near_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" Hint: there is no folder {folder} either."
    return nearest(path.name, (each.name for each in folder.iterdir() if each.is_file()))


def read_table(path: Path, text_columns: Collection[str] = ()) -> polars.DataFrame:
    """Read a CSV, CSV.gz or Parquet file.

    Parameters
    ----------
    path : Path
    text_columns : names
        Columns whose cells of a CSV file are taken as text even where they look like numbers.
    """
    check_readable(path)
    frame = _read_parquet(path) if path.name.lower().endswith(".parquet") else _read_csv(path, text_columns)
    if frame.height == 0:
        n_columns = plural(frame.width, "column")
        raise InputError(f"{path.name} has {n_columns} but no rows. Hint: did a filter drop them all?")
    if frame.width == 0:
        raise InputError(f"{path.name} has no columns. Hint: was it fully written?")
    return _widened(frame)


def _read_parquet(path: Path) -> polars.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"{path.name} cannot be read as Parquet: {_reason(error)}. Hint: was it copied whole?"
        ) from error


def _read_csv(path: Path, text_columns: Collection[str]) -> polars.DataFrame:
    import polars as pl

    data = _bytes_of(path).rstrip(b"\r\n")
    _check_text(data, path.name)
    separator = _separator(data)
    header = _check_header(data, separator, path.name)
    _check_field_counts(data, separator, len(header), path.name)
    sample = data[:SAMPLE]
    decimal_comma = separator == ";" and bool(DECIMAL_COMMA.search(sample)) and not DECIMAL_POINT.search(sample)
    try:
        frame = pl.read_csv(
            data,
            separator=separator,
            infer_schema_length=None,
            null_values=[""],
            schema_overrides={name: pl.String for name in header if name in text_columns},
            decimal_comma=decimal_comma,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path.name} cannot be read as CSV: {_reason(error)}. "
            "Hint: a cell that holds a quote must be in quotes, with the quote doubled."
        ) from error
    return _unpadded(frame, text_columns)


def _bytes_of(path: Path) -> bytes:
    """Return the content of a CSV file, unpacked."""
    if not path.name.lower().endswith(".gz"):
        return path.read_bytes()
    try:
        with gzip.open(path) as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} cannot be unpacked: {_reason(error)}. Hint: was it copied whole?") from error


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".: ") if lines else type(error).__name__


def _check_text(data: bytes, file: str) -> None:
    """Raise InputError unless the bytes are UTF-8 text."""
    if not data.strip():
        raise InputError(f"{file} is empty, expected column names and rows. Hint: was it fully written?")
    if data.startswith(UTF16_MARKS):
        raise InputError(f"{file} is encoded as UTF-16, expected UTF-8. Hint: save it as CSV UTF-8.")
    if b"\0" in data[:SAMPLE]:
        raise InputError(f"{file} is not a text file, expected CSV. Hint: check the ending of the name.")
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{file} is not encoded as UTF-8: byte 0x{data[error.start]:02X} at position {error.start:,} "
            f"(line {line:,}). Hint: save it as CSV UTF-8, or convert it, for example with iconv -f latin1 "
            "-t utf-8."
        ) from None


def _separator(data: bytes) -> str:
    """Return the character that parts the names in the first line."""
    line = data.split(b"\n", 1)[0].decode("utf-8")
    return max(SEPARATORS, key=line.count)


def _records(data: bytes, separator: str) -> csv._reader:  # type: ignore[name-defined]
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
    return csv.reader(text, delimiter=separator)


def _check_header(data: bytes, separator: str, file: str) -> list[str]:
    """Return the column names: none empty, none twice."""
    try:
        header: list[str] = next(_records(data, separator), [])
    except csv.Error as error:
        raise InputError(f"The first line of {file} cannot be read as CSV: {_reason(error)}.") from error
    for place, name in enumerate(header, 1):
        if not name.strip():
            raise InputError(
                f"Column {place:,} of {file} has no name, expected one in the first line. "
                "Hint: pandas writes such a column for its index; use to_csv(..., index=False)."
            )
        if name in header[: place - 1]:
            first = header.index(name) + 1
            raise InputError(
                f"Column {name!r} appears twice in {file} (columns {first:,} and {place:,}). Hint: rename one of them."
            )
    return header


def _check_field_counts(data: bytes, separator: str, n_fields: int, file: str) -> None:
    """Raise InputError that names the first line with more or fewer fields than the header."""
    if _counts_agree(data, ord(separator), n_fields):
        return
    reader, begin = _records(data, separator), 1
    try:
        for record in reader:
            if len(record) != n_fields and not (n_fields == 1 and not record):
                hint = (
                    f"put a cell that holds a {separator!r} in quotes"
                    if len(record) > n_fields
                    else "was the line cut off?"
                )
                raise InputError(
                    f"Line {begin:,} of {file} has {plural(len(record), 'field')}, expected {n_fields:,} as in the "
                    f"header. Hint: {hint}" + ("." if not hint.endswith("?") else "")
                )
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"Line {begin:,} of {file} cannot be read as CSV: {_reason(error)}.") from error


def _counts_agree(data: bytes, separator: int, n_fields: int) -> bool:
    """Tell whether every record has `n_fields` fields, judged by the separators outside quotes."""
    wanted, is_inside, open_fields = n_fields - 1, 0, 0
    for start in range(0, len(data), CHUNK):
        chunk = np.frombuffer(data, np.uint8, min(CHUNK, len(data) - start), start)
        # Parity of the quotes so far; uint8 wraps around at 256, which is even.
        inside = (np.cumsum(chunk == QUOTE, dtype=np.uint8) + np.uint8(is_inside)) & 1
        outside = inside == 0
        ends = np.flatnonzero((chunk == NEWLINE) & outside)
        separators = np.flatnonzero((chunk == separator) & outside)
        through = np.searchsorted(separators, ends)
        counts = np.diff(through, prepend=0)
        if len(ends):
            counts[0] += open_fields
            open_fields = len(separators) - int(through[-1])
        else:
            open_fields += len(separators)
        if (counts != wanted).any():
            return False
        is_inside = int(inside[-1])
    return open_fields == wanted and not is_inside


def _unpadded(frame: polars.DataFrame, text_columns: Collection[str]) -> polars.DataFrame:
    """Numbers where text columns hold nothing but numbers with spaces around them."""
    import polars as pl

    for name in frame.columns:
        column = frame[name]
        if column.dtype != pl.String or name in text_columns or column.null_count() == len(column):
            continue
        first = column.head(FIRST_ROWS)
        if as_numbers(first).null_count() > first.null_count():  # the usual case, found without a look at all rows
            continue
        numbers = as_numbers(column)
        if numbers.null_count() == column.null_count():
            frame = frame.with_columns(numbers.alias(name))
    return frame


def as_numbers(column: polars.Series) -> polars.Series:
    """Return the numbers in a text column, missing where a cell holds none."""
    import polars as pl

    return column.str.strip_chars().cast(pl.Float64, strict=False)


def _widened(frame: polars.DataFrame) -> polars.DataFrame:
    """Return floats in place of decimals, of integers too long for numpy, and of nothing at all."""
    import polars as pl

    wide = [name for name, dtype in frame.schema.items() if dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128)]
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    return frame.with_columns(pl.col(wide + empty).cast(pl.Float64, strict=False)) if wide or empty else frame
