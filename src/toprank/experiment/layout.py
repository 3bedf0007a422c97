"""What a table shows: a frame of figures and the format of each column.

Columns made by `summary` get their format from their name; `spread` turns one row per method into one column per
method. `tables` writes the result to a file format.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from toprank.errors import InputError
from toprank.experiment.panel import check_columns

if TYPE_CHECKING:
    import polars

Kind = Literal["text", "flag", "count", "points", "change", "rank", "number", "p_value", "seconds"]

COMPANIONS = ("error", "unit", "bold", "star")
MISSING = "-"


@dataclass(frozen=True)
class ShownColumn:
    """How a column of a frame is shown.

    Attributes
    ----------
    name : str
        In the frame.
    header : str
    kind : str
        "points": a share times 100, two decimals; "change": the same with its sign; "rank",
        "seconds", "number", "count" (1,234), "p_value" (< 0.001), "flag" (yes, no) or "text".
    error, unit, bold, star : str or None
        Further columns of the frame that end up in the same cell: what follows ±, a unit, and flags that make the cell
        bold (in Markdown, LaTeX and HTML) or add a star.
    """

    name: str
    header: str
    kind: Kind = "text"
    error: str | None = None
    unit: str | None = None
    bold: str | None = None
    star: str | None = None

    @property
    def companions(self) -> list[str]:
        """Further columns of the frame shown in the same cell."""
        return [name for name in (getattr(self, role) for role in COMPANIONS) if name is not None]

    def renamed(self, rename: Callable[[str], str | None], header: str | None = None) -> ShownColumn:
        """The same format of other columns; a companion that becomes None is forgotten."""
        parts: dict[str, Any] = {role: rename(name) for role in COMPANIONS if (name := getattr(self, role)) is not None}
        name, header = rename(self.name) or self.name, self.header if header is None else header
        return replace(self, name=name, header=header, **parts)


@dataclass(frozen=True)
class ShownTable:
    """A frame with the columns to show, a title above and a note below."""

    frame: polars.DataFrame
    columns: tuple[ShownColumn, ...]
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """Text of a cell, not yet escaped."""

    text: str
    is_bold: bool = False


KNOWN = {
    column.name: column
    for column in (
        ShownColumn("method", "method"), ShownColumn("dataset", "data set"),
        ShownColumn("n_data_sets", "data sets", "count"),
        ShownColumn("n_splits", "splits", "count"), ShownColumn("n_trials", "trials", "count"),
        ShownColumn("n_left_out", "left out", "count"), ShownColumn("n_below", "sets below", "count"),
        ShownColumn("mean", "mean", "points", error="std", bold="is_best"), ShownColumn("std", "std", "points"),
        ShownColumn("mean_rank", "mean rank", "rank"), ShownColumn("size", "size", "number", unit="size_unit"),
        ShownColumn("is_readable", "readable", "flag"), ShownColumn("positive_rate", "% pos.", "points"),
        ShownColumn("level", "% pos. up to", "number"), ShownColumn("percent", "k, % of pos.", "number"),
        ShownColumn("ours", "ours", "points", star="is_below"), ShownColumn("published", "published", "points"),
        ShownColumn("difference", "difference", "change", error="standard_error"), ShownColumn("low", "low", "change"),
        ShownColumn("high", "high", "change"), ShownColumn("p_value", "p", "p_value"),
        ShownColumn("p_holm", "p, Holm", "p_value"),
        ShownColumn("rival", "best other"), ShownColumn("seconds_tune", "tune, s", "seconds"),
        ShownColumn("seconds_fit", "fit, s", "seconds"), ShownColumn("seconds_score", "score, s", "seconds"),
        ShownColumn("seconds_total", "all trials, s", "seconds"),
    )
}  # fmt: skip
"""Format of the columns of summaries; the format of other columns depends on their type."""

MEASURE = re.compile(r"average_precision.*|roc_auc|p_at_\d+|pos_at_top|tuning_score")


def make_table(frame: polars.DataFrame, title: str = "", note: str = "") -> ShownTable:
    """The frame with the usual format of each column."""
    columns = [_column(frame, name) for name in frame.columns]
    taken = {name for column in columns for name in column.companions}
    return ShownTable(frame, tuple(column for column in columns if column.name not in taken), title, note)


def _column(frame: polars.DataFrame, name: str) -> ShownColumn:
    """Format of one column; companions that the frame lacks are forgotten."""
    if name in KNOWN:
        return KNOWN[name].renamed(lambda part: part if part in frame.columns else None)
    kind: Kind = "text"
    if frame.schema[name].is_integer():
        kind = "count"
    elif frame.schema[name].is_float():
        kind = "points" if MEASURE.fullmatch(name) else "number"
    elif str(frame.schema[name]) == "Boolean":
        kind = "flag"
    return ShownColumn(name, name.replace("_", " "), kind)


def spread(
    frame: polars.DataFrame,
    cells: Sequence[str] = ("mean",),
    by: str = "method",
    keep: Sequence[str] | None = None,
    title: str = "",
    note: str = "",
) -> ShownTable:
    """Table of one column per method from a frame of one row per method.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns before `by` identify the rows of the table.
    cells : sequence of str
        The columns shown for each method, with their ±, star and bold flag. If there is a single one without a bold
        flag, the highest of each row is bold.
    by : str
    keep : sequence of str or None
        Columns after `by` to show on the right; the same for all methods of a row. None: the test of `by_imbalance`
        against the best other method, if the frame has it.
    """
    import polars as pl

    if keep is None:
        keep = ("rival", "difference", "p_value") if "rival" in frame.columns else ()
    check_columns(frame, [by, *cells, *keep])
    keys, labels = frame.columns[: frame.columns.index(by)], list(dict.fromkeys(frame[by].to_list()))
    rows: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        found = rows.setdefault(tuple(row[key] for key in keys), {})
        if row[by] in found or any(row[name] != other[name] for name in keep for other in found.values()):
            raise InputError(
                f"The rows of {', '.join(map(str, (row[key] for key in keys)))} cannot be spread by {by!r}: it must be "
                f"different in each, and {', '.join(keep) or 'what is kept'} the same. Hint: keep fewer columns."
            )
        found[row[by]] = row
    made = {key: pl.Series([values[i] for values in rows], dtype=frame.schema[key]) for i, key in enumerate(keys)}
    columns = [_column(frame, key) for key in keys]
    for label, cell in itertools.product(labels, cells):
        form = _column(frame, cell)
        for name in (cell, *form.companions):
            values = [found.get(label, {}).get(name) for found in rows.values()]
            made[_below(label, name)] = pl.Series(values, dtype=frame.schema[name])
        if form.bold is None and len(cells) == 1 and form.kind == "points":
            form = replace(form, bold="is_best")
            values = [_is_highest(found, label, cell) for found in rows.values()]
            made[_below(label, "is_best")] = pl.Series(values, dtype=pl.Boolean)
        header = format_value(label, "text") + ("" if len(cells) == 1 else f" {form.header}")
        columns.append(form.renamed(partial(_below, label), header))
    for name in keep:
        values = [next(iter(found.values()))[name] for found in rows.values()]
        made[name] = pl.Series(values, dtype=frame.schema[name])
        columns.append(_column(frame, name))
    return ShownTable(pl.DataFrame(made), tuple(columns), title, note)


def _below(label: Any, name: str) -> str:
    """Name of a column for a label; unique, because names of summary columns have no blank."""
    return f"{label} {name}"


def _is_highest(found: dict[str, dict[str, Any]], label: str, cell: str) -> bool:
    """Whether a label has the highest figure of its row."""
    figures = [row[cell] for row in found.values() if row[cell] is not None]
    return label in found and found[label][cell] is not None and found[label][cell] == max(figures)


# --- one cell ---------------------------------------------------------------------------------------------------


def format_value(value: Any, kind: Kind) -> str:
    """A value as text, "-" if there is none.

    Examples
    --------
    >>> format_value(0.68532, "points"), format_value(-0.0123, "change"), format_value(0.0002, "p_value")
    ('68.53', '-1.23', '< 0.001')
    >>> format_value(12345, "count"), format_value(14.5, "number"), format_value(None, "rank")
    ('12,345', '14.5', '-')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    return FORMATS[kind](value)


def _zero(text: str) -> str:
    """Drop the sign of a figure that rounds to 0."""
    return text if re.search("[1-9a-z]", text) else text.lstrip("+-")


def _number(value: float) -> str:
    if not 100 <= abs(value) < 1e15:
        return f"{value:.4g}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


FORMATS: dict[str, Callable[[Any], str]] = {
    "text": lambda value: " ".join(str(value).split()) or MISSING,
    "flag": lambda value: "yes" if value else "no",
    "count": lambda value: f"{value:,}",
    "points": lambda value: _zero(f"{100 * value:.2f}"),
    "change": lambda value: _zero(f"{100 * value:+.2f}"),
    "rank": lambda value: f"{value:.2f}",
    "number": _number,
    "p_value": lambda value: "< 0.001" if value < 0.001 else f"{value:.3f}",
    "seconds": _seconds,
}


def _cell(row: dict[str, Any], column: ShownColumn, plus_minus: str) -> Cell:
    text = format_value(row[column.name], column.kind)
    if text != MISSING:
        if column.error and row[column.error] is not None:
            text += plus_minus + format_value(row[column.error], "points")
        if column.unit and row[column.unit] is not None:
            text += f" {format_value(row[column.unit], 'text')}"
        if column.star and row[column.star]:
            text += " *"
    return Cell(text, bool(column.bold and row[column.bold]))


def cells_of(table: ShownTable, plus_minus: str = " ± ") -> list[list[Cell]]:
    """Cells of each row."""
    return [[_cell(row, column, plus_minus) for column in table.columns] for row in table.frame.iter_rows(named=True)]


def as_table(table: ShownTable | polars.DataFrame) -> ShownTable:
    """The table, checked; a frame gets the usual format of each column."""
    table = table if isinstance(table, ShownTable) else make_table(table)
    for column in table.columns:
        for name in (column.name, *column.companions):
            if name not in table.frame.columns:
                raise InputError(
                    f"The table shows a column {name!r} that its frame lacks. Hint: it has "
                    f"{', '.join(table.frame.columns)}."
                )
    return table
