"""Reads the bytes of a CSV file into records, exactly as Python's csv module does; errors name the line.

Most files are plain: every quote begins or ends a cell, lines end in LF or CRLF, and every record has as many fields
as the header. Plain text is passed on unchanged, since polars reads it as Python does. All other text goes through
the csv module, which is slow but exact, and is rewritten as plain text. Text that neither reads is refused: a quote
that is never closed, text after a closing quote, NUL bytes, records of another length.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass

import numpy as np

from toprank.errors import InputError
from toprank.words.counts import plural

SEPARATORS = ",;\t|"
SEPARATOR_NAMES = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|", "space": " "}
CHUNK = 1 << 23
NEWLINE, RETURN, QUOTE = ord("\n"), ord("\r"), ord('"')
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""Byte order marks, and the encoding that each stands for."""

SEPARATOR_LINE = re.compile(rb"""\A"?sep=([^\w"\r\n])"?(?:\r\n?|\n|\Z)""", re.IGNORECASE | re.ASCII)
"""First line with which Excel finds the separator, such as sep=; before the column names."""

QUOTED = re.compile(r'"[^"]*"')
SAMPLE = 1 << 20


@dataclass(frozen=True)
class CsvFormat:
    """Format of a text file: the character between two cells, and a Python codec; None means detect it."""

    separator: str | None = None
    encoding: str | None = None

    @classmethod
    def from_options(cls, sep: str | None, encoding: str | None) -> CsvFormat:
        """Return the format given by --sep and --encoding; raise InputError if either is invalid."""
        if sep is not None:
            separator = SEPARATOR_NAMES.get(sep.lower(), sep)
            if len(separator) != 1 or not separator.isascii() or separator.isalnum() or separator in '"\r\n\0':
                raise InputError(
                    f"--sep must be one character, not a letter, digit or quote, or a name such as tab, got {sep!r}. "
                    "Hint: for example --sep ';' or --sep tab."
                )
            sep = separator
        given = encoding
        try:
            if encoding is not None:
                encoding = codecs.lookup(encoding).name
                "a".encode(encoding)  # fails for codecs that are not text encodings, such as hex
        except (LookupError, UnicodeError, ValueError):
            raise InputError(
                f"--encoding must be a text encoding that Python knows, got {given!r}. "
                "Hint: utf-8, cp1252 (Windows), latin-1 and utf-16 are the usual ones."
            ) from None
        return cls(sep, encoding)


@dataclass(frozen=True)
class CsvText:
    """The records of a CSV file as plain UTF-8 text; `body` has all but the header, without the final line end."""

    header: list[str]
    body: bytes
    separator: str
    n_records: int


def read_csv_text(data: bytes, csv_format: CsvFormat, file: str) -> CsvText:
    """Return the records of a CSV file; raise InputError, with the line, if one is not as long as the header.

    A line before the header that only names the separator, as Excel knows it, is not part of the table.
    """
    data = _as_utf8(data, csv_format.encoding, file).rstrip(b"\r\n")
    named = SEPARATOR_LINE.match(data)
    first = 1 if named is None else 2
    if named is not None:
        data = data[named.end() :]
    if not data.strip():
        raise InputError(f"{file} is empty, expected column names and rows. Hint: was it fully written?")
    separator = csv_format.separator or (_separator(data) if named is None else named[1].decode())
    header = _header(data, separator, first, file)
    has_lone_return = data.count(b"\r") != data.count(b"\r\n")
    n_records = None if has_lone_return else count_records(data, ord(separator), len(header))
    if n_records is None:
        data = _rewritten(data, separator, len(header), first, file)
        n_records = count_records(data, ord(separator), len(header))
        assert n_records is not None
    return CsvText(header, data[_end_of_first(data) :], separator, n_records - 1)


# --- encodings ----------------------------------------------------------------------------------------------


def _as_utf8(data: bytes, encoding: str | None, file: str) -> bytes:
    """Return the text of a file as UTF-8 without a byte order mark."""
    known = encoding or next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    if known in ("utf-8", "utf-8-sig"):
        data = data.removeprefix(codecs.BOM_UTF8)
    if not (data.isascii() and known in ("utf-8", "utf-8-sig")):
        data = _recoded(data, known, encoding is not None, file)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(
            f"Line {line:,} of {file} holds a NUL character, expected text. Hint: is it a CSV file? For UTF-16 "
            "use --encoding utf-16."
        )
    return data


def _recoded(data: bytes, encoding: str, is_given: bool, file: str) -> bytes:
    """Return the bytes of a text as UTF-8."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = (
            "try another --encoding; latin-1 reads every byte"
            if is_given
            else "give its encoding, for example --encoding cp1252 (Windows) or --encoding latin-1"
        )
        name = encoding.upper() if encoding.startswith("utf") else encoding
        raise InputError(
            f"{file} is not encoded as {name}: byte 0x{data[error.start]:02X} at position {error.start:,} "
            f"(line {line:,}). Hint: {hint}."
        ) from None
    except (UnicodeError, ValueError) as error:
        raise InputError(f"{file} is not encoded as {encoding}: {error}. Hint: try another --encoding.") from None
    try:
        return text.removeprefix("\ufeff").encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(
            f"Line {line:,} of {file} holds half a character, read as {encoding}. Hint: try another --encoding."
        ) from None


# --- records ------------------------------------------------------------------------------------------------


def _separator(data: bytes) -> str:
    """Return the separator of the first line, ignoring text inside quotes."""
    first = re.split(r"[\r\n]", QUOTED.sub("", data[:SAMPLE].decode("utf-8", errors="ignore")), maxsplit=1)[0]
    return max(SEPARATORS, key=first.count)


def _records(data: bytes, separator: str) -> csv._reader:  # type: ignore[name-defined]
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    return csv.reader(text, delimiter=separator, strict=True)


def _header(data: bytes, separator: str, line: int, file: str) -> list[str]:
    """Return the column names, which are in this line: none empty, none twice."""
    try:
        header: list[str] = next(_records(data, separator), [])
    except csv.Error as error:
        raise InputError(_no_csv(error, line, separator, file)) from error
    seen: dict[str, int] = {}
    for place, name in enumerate(header, 1):
        if not name.strip():
            hint = "name it, or delete the column"
            if place == 1:
                hint = "pandas writes such a column for its index; use to_csv(..., index=False)"
            raise InputError(f"Column {place:,} of {file} has no name, expected one in the first line. Hint: {hint}.")
        if name in seen:
            raise InputError(
                f"Column {name!r} appears twice in {file} (columns {seen[name]:,} and {place:,}). "
                "Hint: rename one of them."
            )
        seen[name] = place
    if not header:
        raise InputError(f"The first line of {file} is empty, expected column names. Hint: delete it.")
    return header


def _end_of_first(data: bytes) -> int:
    """Return where the second record of plain text begins."""
    end = -1
    while (end := data.find(b"\n", end + 1)) >= 0:
        if data.count(b'"', 0, end) % 2 == 0:
            return end + 1
    return len(data)


def _no_csv(error: csv.Error, line: int, separator: str, file: str) -> str:
    """Return the message for text that the csv module refuses."""
    reason = str(error)
    if "end of data" in reason:
        return (
            f"Line {line:,} of {file} opens a quote that is never closed. Hint: was the file cut off? A cell that "
            "holds a quote must be in quotes, with the quote doubled."
        )
    if "field limit" in reason:
        return (
            f"Line {line:,} of {file} holds a cell of more than {csv.field_size_limit():,} characters. "
            "Hint: is there a quote that is never closed?"
        )
    if "expected after" in reason:
        return (
            f"Line {line:,} of {file} holds text after the closing quote of a cell, expected {separator!r} or the "
            "end of the line. Hint: a cell that holds a quote must be in quotes, with the quote doubled."
        )
    return f"Line {line:,} of {file} cannot be read as CSV: {reason.rstrip('.')}. Hint: was it fully written?"


def _rewritten(data: bytes, separator: str, n_fields: int, first: int, file: str) -> bytes:
    """Return the records as plain text; raise InputError at the first line, counted from `first`, that is not valid."""
    text = io.StringIO(newline="")
    # With this line end the writer also quotes cells that hold a CR, in every version of Python.
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n")
    reader, begin = _records(data, separator), first
    try:
        for record in reader:
            if n_fields == 1 and not record:
                record = [""]
            if len(record) != n_fields:
                hint = "was the line cut off?"
                if len(record) > n_fields:
                    hint = f"put a cell that holds a {separator!r} in quotes."
                raise InputError(
                    f"Line {begin:,} of {file} has {plural(len(record), 'field')}, expected {n_fields:,} as in the "
                    f"header. Hint: {hint}"
                )
            writer.writerow(record)
            begin = reader.line_num + first
    except csv.Error as error:
        raise InputError(_no_csv(error, begin, separator, file)) from error
    return text.getvalue().encode().removesuffix(b"\r\n")


def count_records(data: bytes, separator: int, n_fields: int) -> int | None:
    """Return the number of records of plain text; None if a quote is misplaced or the number of fields is wrong.

    Pre:  no CR in `data` but before LF.
    Cost: a few passes over the bytes, in chunks.
    """
    view = np.frombuffer(data, np.uint8)
    has_quotes = QUOTE in data
    wanted, n_open, n_fields_open, n_records = n_fields - 1, 0, 0, 1
    for start in range(0, len(view), CHUNK):
        chunk = view[start : start + CHUNK]
        is_end, is_separator = chunk == NEWLINE, chunk == separator
        if has_quotes:
            is_quote = chunk == QUOTE
            # Parity of the quotes so far; uint8 wraps around at 256, which is even.
            inside = (np.cumsum(is_quote, dtype=np.uint8) + np.uint8(n_open)) & 1
            quotes = np.flatnonzero(is_quote)
            if not _are_in_place(view, quotes + start, inside[quotes] == 1, separator):
                return None
            is_outside = inside == 0
            is_end &= is_outside
            is_separator &= is_outside
            n_open = int(inside[-1])
        ends, separators = np.flatnonzero(is_end), np.flatnonzero(is_separator)
        through = np.searchsorted(separators, ends)
        counts = np.diff(through, prepend=0)
        if len(ends):
            counts[0] += n_fields_open
            n_fields_open = len(separators) - int(through[-1])
        else:
            n_fields_open += len(separators)
        if (counts != wanted).any():
            return None
        n_records += len(ends)
    return n_records if n_fields_open == wanted and not n_open else None


def _are_in_place(view: np.ndarray, quotes: np.ndarray, opens: np.ndarray, separator: int) -> bool:
    """Return True if every quote begins or ends a cell, or is doubled (it ends the cell and begins it again)."""
    first, last = quotes[opens], quotes[~opens]
    before, after = view[np.maximum(first - 1, 0)], view[np.minimum(last + 1, len(view) - 1)]
    begins = (first == 0) | (before == separator) | (before == NEWLINE) | (before == QUOTE)
    ends = (last == len(view) - 1) | (after == separator) | (after == NEWLINE) | (after == RETURN) | (after == QUOTE)
    return bool(begins.all() and ends.all())
