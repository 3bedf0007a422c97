"""Data sets from files: by name from a folder, or any CSV, CSV.gz or Parquet file by its path.

Owns the reading rules: an empty cell is missing, the string ``None`` is a category, the label column has two
values. Files are read with polars, which is imported only here and only when needed.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.words.counts import plural
from toprank.words.nearest import did_you_mean

from .frames import build_frame, import_optional, is_missing

FOLDER_VARIABLE = "TOPRANK_DATA"
SUFFIXES = (".csv.gz", ".csv", ".parquet")
TEXT_TYPES = ("String", "Categorical", "Enum", "Boolean", "Date", "Datetime", "Time")  # kept as text
UNREADABLE = (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error)  # in addition to polars' own errors
# Label pairs whose positive value is known.
PLAIN_LABELS = ({0, 1}, {-1, 1}, {"0", "1"}, {"false", "true"})
PLAIN_POSITIVES = (1, "1", "true")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table with a yes/no label, as read by `load`.

    Attributes
    ----------
    name : str
    columns : dict of str to ndarray of shape (n,)
        The features: float64 with NaN for missing, or object arrays of str with None.
    y : ndarray of shape (n,), int8
        1 = the positive class.
    label : str
        Name of the label column in the file.
    path : pathlib.Path
    """

    name: str
    columns: dict[str, np.ndarray]
    y: np.ndarray
    label: str
    path: Path

    def __len__(self) -> int:
        return self.y.shape[0]

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name!r}: {plural(len(self), 'row')}, {plural(len(self.columns), 'feature')} "
            f"({len(self.categorical_features)} categorical), {int(self.y.sum()):,} positive>"
        )

    @property
    def X(self) -> Any:
        """The features as a pandas DataFrame, rebuilt on each access."""
        return build_frame(self.columns, "pandas", owner="Dataset.X")

    @property
    def categorical_features(self) -> list[str]:
        """Names of the columns that hold text."""
        return [name for name, values in self.columns.items() if values.dtype == object]

    def frame(self, backend: str = "pandas") -> Any:
        """Return the features and, last, the label (0 or 1) in the caller's kind of frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        """
        return build_frame(self.columns | {self.label: self.y}, backend, owner="Dataset.frame")


def load(
    name_or_path: str | os.PathLike[str],
    *,
    label: str = "label",
    pos_label: Any = None,
    folder: str | os.PathLike[str] | None = None,
) -> Dataset:
    r"""Read a data set by its name in a folder, or any CSV, CSV.gz or Parquet file by its path.

    Parameters
    ----------
    name_or_path : str or path-like
        A name such as ``"sick"``, looked up as ``<folder>/<name>.csv.gz``, ``.csv`` or ``.parquet``; or a
        path, if it contains a separator or one of these endings.
    label : str, default="label"
        The label column.
    pos_label : str, int or float, default=None
        The label value that counts as positive. Not needed for 0/1, -1/1 and false/true.
    folder : str or path-like, default=None
        Folder of the names. Defaults to the environment variable ``TOPRANK_DATA``.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from toprank.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "tiny.csv").write_text("size,colour,label\n1.5,red,0\n,None,1\n")
    ...     tiny = load("tiny", folder=folder)
    >>> tiny.columns["size"].tolist(), tiny.columns["colour"].tolist(), tiny.y.tolist()
    ([1.5, nan], ['red', 'None'], [0, 1])
    """
    path = find_file(name_or_path, folder)
    table = _read(path)
    if label not in table.columns:
        raise InputError(
            f"The label column {label!r} is missing from {path.name} ({plural(len(table.columns), 'column')} read)."
            + did_you_mean(label, table.columns)
        )
    if table.height == 0 or table.width == 1:
        found = f"{plural(table.height, 'row')} and {plural(table.width, 'column')}"
        raise InputError(f"{path.name} must have rows, and columns besides the label. Got {found}.")
    y = _binary_labels(_to_array(table[label], path), pos_label, label, path)
    columns = {name: _to_array(table[name], path) for name in table.columns if name != label}
    return Dataset(name=_stem(path), columns=columns, y=y, label=label, path=path)


def list_datasets(folder: str | os.PathLike[str] | None = None) -> dict[str, dict[str, str]]:
    r"""Return the data sets of a folder by name, each with its row of ``index.csv``.

    Parameters
    ----------
    folder : str or path-like, default=None
        Defaults to the environment variable ``TOPRANK_DATA``.

    Returns
    -------
    datasets : dict of str to dict of str to str
        Name to facts, in the order of the index; files that the index does not list come last, with no facts.
        Names in the index without a file are left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from toprank.datasets import list_datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "tiny.csv").write_text("size,label\n1.5,0\n2.5,1\n")
    ...     list_datasets(folder)
    {'tiny': {}}
    """
    place = _folder(folder)
    index = place / "index.csv"
    names = sorted({_stem(path) for path in place.iterdir() if _is_table(path.name) and path != index})
    facts = {}
    if index.is_file():
        with index.open(newline="", encoding="utf-8-sig") as lines:
            rows = csv.DictReader(lines)
            if "name" not in (rows.fieldnames or ()):
                raise InputError(f"{index} must have a column 'name'. Got the columns {rows.fieldnames} instead.")
            facts = {row.pop("name"): row for row in rows}
    listed = {name: row for name, row in facts.items() if name in names}
    return listed | {name: {} for name in names if name not in listed}


def _folder(folder: Any) -> Path:
    """Return the folder to look in, checked."""
    given = folder if folder is not None else os.environ.get(FOLDER_VARIABLE)
    if not given:
        raise InputError(
            "A data set is looked up by name in a folder, but none was given. "
            f"Hint: pass folder=, set the environment variable {FOLDER_VARIABLE}, or pass the path of a file."
        )
    path = Path(given).expanduser()
    if not path.is_dir():
        origin = "folder=" if folder is not None else FOLDER_VARIABLE
        raise FileNotFoundError(f"The data folder {str(path)!r} given by {origin} does not exist or is not a folder.")
    return path


def find_file(name_or_path, folder):
    """Return the path of an existing file."""
    text = os.fspath(name_or_path)
    has_separator = os.sep in text or (os.altsep is not None and os.altsep in text)
    if isinstance(name_or_path, Path) or _is_table(text) or has_separator:
        path = Path(text).expanduser()
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {str(path)!r}.")
        if not _is_table(path.name):
            raise InputError(f"{path.name} must end in {', '.join(SUFFIXES)} to be read as a data set.")
        return path
    folder = _folder(folder)
    for suffix in SUFFIXES:
        if (folder / (text + suffix)).is_file():
            return folder / (text + suffix)
    names = list(list_datasets(folder))
    hint = did_you_mean(text, names)
    raise InputError(f"There is no data set {text!r} in {str(folder)!r} ({len(names)} found).{hint}")


def _read(path):
    """Return the file as a polars DataFrame."""
    polars = import_optional("polars", needed_for="Reading a data set from a file", hint='pip install "toprank[cli]"')
    try:
        if path.name.endswith(".parquet"):
            return polars.read_parquet(path)
        _check_header(path)
        # Python notices a gzip file that was cut off; some versions of polars read what is there.
        source = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path
        return polars.read_csv(source, infer_schema_length=None, null_values=[""])
    except (polars.exceptions.PolarsError, *UNREADABLE) as error:
        kind = "Parquet" if path.name.endswith(".parquet") else "UTF-8 CSV with as many cells in every row"
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".") if lines else type(error).__name__
        raise InputError(f"{path.name} cannot be read as {kind}: {reason}.") from error


def _check_header(path):
    """Raise ValueError if column names are empty or repeated: polars would rename them silently."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines), [])
    if not any(header):
        raise InputError(f"{path.name} must start with a row of column names. Got an empty file or an empty first row.")
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated or "" in header:
        found = f"the name {repeated[0]!r} {header.count(repeated[0])} times" if repeated else "an empty name"
        raise InputError(f"Column names must be unique and not empty. {path.name} has {found}.")


def _to_array(series, path):
    """Return float64 with NaN if the column is numeric or all missing, else object (str) with None."""
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if series.dtype.is_numeric():
        return series.cast(float).to_numpy().astype(np.float64)
    if series.dtype.base_type().__name__ not in TEXT_TYPES:
        raise InputError(f"Column {series.name!r} of {path.name} must hold numbers or text. Got {series.dtype}.")
    return np.array(series.cast(str).to_list(), dtype=object)


def _binary_labels(values, pos_label, label, path):
    """Return the labels as int8, or a ValueError that says what was found."""
    where = f"The label column {label!r} of {path.name}"
    missing = is_missing(values)
    if missing.any():
        row = int(np.argmax(missing)) + 1
        count = f"{int(missing.sum()):,} missing values, the first in row {row:,}"
        raise InputError(f"{where} has {count}. Hint: drop these rows, or fix lines that are too short.")
    found = np.unique(values).tolist()
    found = [int(value) if isinstance(value, float) and value.is_integer() else value for value in found]
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        raise InputError(f"{where} must have exactly two values. Got {len(found):,}: {shown}.")
    both = f"{found[0]!r} and {found[1]!r}"
    if pos_label is None:
        if set(found) not in PLAIN_LABELS:
            raise InputError(f"{where} has the values {both}. Hint: say which is positive with pos_label=.")
        pos_label = next(value for value in PLAIN_POSITIVES if value in found)
    if pos_label not in found:
        raise InputError(f"The 'pos_label' parameter of load must be one of {both}. Got {pos_label!r} instead.")
    return (values == pos_label).astype(np.int8)


def _is_table(name):
    return name.endswith(SUFFIXES)


def _stem(path):
    return next(path.name.removesuffix(suffix) for suffix in SUFFIXES if path.name.endswith(suffix))
