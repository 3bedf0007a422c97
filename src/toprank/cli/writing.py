"""Output files: checked before the work begins, written whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toprank.cli.errors import InputError
from toprank.cli.reading import TABLE_SUFFIXES

if TYPE_CHECKING:
    import polars


def check_output(path: Path, suffixes: Sequence[str] = (), inputs: Sequence[Path] = ()) -> None:
    """Raise InputError where a file could not be written there, or would replace one of the inputs."""
    if suffixes and not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(
            f"The output {path.name} has an ending that is not supported, expected one of "
            f"{', '.join(suffixes)}. "
            "Hint: the ending says which format to write."
        )
    if path.is_dir():
        raise InputError(f"The output {path} is a folder, expected a file. Hint: add a file name.")
    if not path.parent.is_dir():
        what = "is not a folder" if path.parent.exists() else "does not exist"
        raise InputError(f"Cannot write {path}: {path.parent} {what}. Hint: create the folder first.")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"Cannot write {path}: no permission to write in {path.parent}. Hint: choose another folder.")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise InputError(f"The output {path} is also an input and would be replaced. Hint: choose another name.")


def write_table(frame: polars.DataFrame, path: Path) -> None:
    """Write a frame as CSV, CSV.gz or Parquet, by the ending of the name."""
    from toprank.rankers.model_file import write_atomically

    assert path.name.lower().endswith(TABLE_SUFFIXES)
    buffer = io.BytesIO()
    if path.name.lower().endswith(".parquet"):
        frame.write_parquet(buffer)
    else:
        frame.write_csv(buffer)
    content = buffer.getvalue()
    write_atomically(path, gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content)


def write_text(text: str, path: Path) -> None:
    """Write a text file."""
    from toprank.rankers.model_file import write_atomically

    write_atomically(path, text.encode())
