"""Tables of summaries as text, Markdown, LaTeX, HTML, CSV or Parquet, always the same bytes for the same frame.

`make_table` formats the columns of `summary` by their name; `spread` turns one row per method into one column per
method. CSV and Parquet hold the unformatted figures.
"""

from __future__ import annotations

import html
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import polars

Kind = Literal["text", "flag", "count", "points", "change", "rank", "number", "p_value", "seconds"]
"""Points are a share times 100, two decimals; a change is the same with its sign."""

COMPANIONS = ("error", "unit", "bold", "star")
MISSING = "-"


@dataclass(frozen=True)
class ShownColumn:
    """How a column of a frame is shown."""

    name: str  # in the frame
    header: str
    kind: Kind = "text"
    # Further columns of the frame that end up in the same cell: what follows ±, a unit, and flags that make the cell
    # bold (in Markdown, LaTeX and HTML) or add a star.
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


class Cell(NamedTuple):
    """Text of a cell, not yet escaped."""

    text: str
    is_bold: bool


KNOWN = {
    column.name: column
    for column in (
        ShownColumn("method", "method"), ShownColumn("dataset", "data set"),
        ShownColumn("n_data_sets", "data sets", "count"),
        ShownColumn("n_splits", "splits", "count"), ShownColumn("n_trials", "trials", "count"),
        ShownColumn("n_below", "sets below", "count"),
        ShownColumn("mean", "mean", "points", error="std", bold="is_best"), ShownColumn("std", "std", "points"),
        ShownColumn("mean_rank", "mean rank", "rank"), ShownColumn("size", "size", "number", unit="size_unit"),
        ShownColumn("is_readable", "readable", "flag"), ShownColumn("positive_rate", "% pos.", "points"),
        ShownColumn("level", "% pos. up to", "number"), ShownColumn("percent", "k, % of pos.", "number"),
        ShownColumn("ours", "ours", "points", star="is_below"), ShownColumn("published", "published", "points"),
        ShownColumn("difference", "difference", "change", error="standard_error"),
        ShownColumn("p_value", "p", "p_value"), ShownColumn("p_holm", "p, Holm", "p_value"),
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


def spread(frame: polars.DataFrame, cells: Sequence[str] = ("mean",), title: str = "", note: str = "") -> ShownTable:
    """Table of one column per method from a frame of one row per method; columns before it identify the rows.

    `cells` are the columns shown for each method, with their ±, star and bold flag. If there is a single one without a
    bold flag, the highest of each row is bold. The test of `by_imbalance` is on the right, if the frame has it.
    """
    import polars as pl

    kept = ("rival", "difference", "p_value") if "rival" in frame.columns else ()
    keys, labels = frame.columns[: frame.columns.index("method")], list(dict.fromkeys(frame["method"].to_list()))
    rows: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        rows.setdefault(tuple(row[key] for key in keys), {})[row["method"]] = row
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
    for name in kept:
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


# --- files --------------------------------------------------------------------------------------------------------

WIDTH = 100
MAX_TEXT = 30
"""Width at which text columns are wrapped: two of them and one more column always fit in WIDTH."""

MIN_HEADER = 6
"""Headers are wrapped no narrower than this."""

GAP = "  "


def to_text(table: ShownTable) -> str:
    """Plain text of at most 100 columns.

    Headers of a wider table are wrapped; if that is not enough, it is split into blocks that repeat the first column
    (or two, if both are text).
    """
    rows = cells_of(table, "±")
    cells = [_cell_lines([row[i].text for row in rows]) for i in range(len(table.columns))]
    columns = [[_wrap(column.header), *lines] for column, lines in zip(table.columns, cells, strict=True)]
    if sum(map(_width, columns)) + len(GAP) * (len(columns) - 1) > WIDTH:
        narrow = [max(_width(lines), *map(len, column.header.split()), MIN_HEADER)
                  for column, lines in zip(table.columns, cells, strict=True)]  # fmt: skip
        columns = [[_wrap(column.header, min(width, MAX_TEXT)), *lines]
                   for column, width, lines in zip(table.columns, narrow, cells, strict=True)]  # fmt: skip
    widths = [_width(lines) for lines in columns]
    n_keys = 2 if all(column.kind == "text" for column in table.columns[:2]) else 1
    blocks: list[list[int]] = [[]]
    for i in range(len(columns)):
        if sum(widths[j] + len(GAP) for j in blocks[-1]) + widths[i] > WIDTH:
            blocks.append(list(range(min(n_keys, i))))
        blocks[-1].append(i)
    parts = ["\n".join(_block(table, columns, widths, chosen)) for chosen in blocks]
    above, below = (["\n".join(textwrap.wrap(text, WIDTH))] if text else [] for text in (table.title, table.note))
    return "\n\n".join([*above, *parts, *below]) + "\n"


def _wrap(text: str, width: int = MAX_TEXT) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _width(cells: list[list[str]]) -> int:
    return max((len(line) for lines in cells for line in lines), default=0)


def _cell_lines(texts: list[str]) -> list[list[str]]:
    """Lines of each cell of a column; if some have a star, the others leave room for it."""
    if any(text.endswith(" *") for text in texts):
        texts = [text if text.endswith(" *") else f"{text}  " for text in texts]
    return [_wrap(text) if len(text) > MAX_TEXT else [text] for text in texts]


def _block(table: ShownTable, columns: list[list[list[str]]], widths: list[int], chosen: list[int]) -> list[str]:
    """Lines of some of the columns: the header at the bottom of its lines, a rule, the rows."""
    lines = []
    for place in range(len(columns[chosen[0]]) if chosen else 0):
        height = max(len(columns[i][place]) for i in chosen)
        for k in range(height):
            parts = []
            for i in chosen:
                cell = columns[i][place]
                at = k - (height - len(cell)) if place == 0 else k
                text = cell[at] if 0 <= at < len(cell) else ""
                parts.append(text.ljust(widths[i]) if table.columns[i].kind == "text" else text.rjust(widths[i]))
            lines.append(GAP.join(parts).rstrip())
        if place == 0:
            lines.append(GAP.join("-" * widths[i] for i in chosen))
    return lines


def to_markdown(table: ShownTable) -> str:
    """A pipe table, the best figures bold."""

    def line(texts: list[str]) -> str:
        return "| " + " | ".join(texts) + " |"

    def escape(text: str) -> str:
        return re.sub(r"([\\`*_<\[|~#]|&(?=#?\w+;))", r"\\\1", text)

    lines = [line([escape(column.header) for column in table.columns])]
    lines.append("|" + "|".join("---" if column.kind == "text" else "---:" for column in table.columns) + "|")
    lines += [line([f"**{escape(c.text)}**" if c.is_bold else escape(c.text) for c in row]) for row in cells_of(table)]
    above, below = ([f"**{escape(table.title)}**", ""] if table.title else []), ["", escape(table.note)]
    return "\n".join([*above, *lines, *(below if table.note else [])]) + "\n"


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$",
    "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip
"""Characters special to LaTeX; a bracket or star at the start of a row would belong to the line break before it."""


def to_latex(table: ShownTable) -> str:
    """A tabular with the rules of the package booktabs; in a table environment where it has a title or a note."""

    def escape(text: str) -> str:
        return "".join(LATEX.get(letter, letter) for letter in text)

    def shown(cell: Cell, column: ShownColumn) -> str:
        text = escape(cell.text)
        if column.kind != "text" and text != MISSING:
            text = re.sub(r"(?<!\d)-(?=\d)", "$-$", text)
        return rf"\textbf{{{text}}}" if cell.is_bold else text

    alignment = "".join("l" if column.kind == "text" else "r" for column in table.columns)
    lines = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    lines += [" & ".join(escape(column.header) for column in table.columns) + r" \\", r"\midrule"]
    for row in cells_of(table):
        lines.append(" & ".join(shown(c, column) for c, column in zip(row, table.columns, strict=True)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.title or table.note:
        title = [rf"\caption{{{escape(table.title)}}}"] if table.title else []
        note = [rf"\par\smallskip {escape(table.note)}"] if table.note else []
        lines = [r"\begin{table}", r"\centering", *title, *lines, *note, r"\end{table}"]
    return "\n".join(lines) + "\n"


def to_html(table: ShownTable) -> str:
    """One table element that needs no other file."""

    def tag(name: str, text: str, column: ShownColumn) -> str:
        align = "left" if column.kind == "text" else "right"
        return f'<{name} style="text-align:{align};padding:2px 8px">{text}</{name}>'

    lines = ['<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">']
    if table.title:
        lines.append(f'<caption style="text-align:left">{html.escape(table.title)}</caption>')
    headers = "".join(tag("th", html.escape(column.header), column) for column in table.columns)
    lines += [f'<thead style="border-bottom:1px solid"><tr>{headers}</tr></thead>', "<tbody>"]
    for row in cells_of(table):
        texts = [f"<b>{html.escape(c.text)}</b>" if c.is_bold else html.escape(c.text) for c in row]
        cells = "".join(tag("td", text, column) for text, column in zip(texts, table.columns, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody>")
    if table.note:
        lines.append(f'<tfoot><tr><td colspan="{len(table.columns)}">{html.escape(table.note)}</td></tr></tfoot>')
    return "\n".join([*lines, "</table>"]) + "\n"


WRITERS: dict[str, Callable[[ShownTable], str]] = {
    ".txt": to_text, ".md": to_markdown, ".tex": to_latex, ".html": to_html,
}  # fmt: skip


def write_table(table: ShownTable, path: Path) -> None:
    """Write a table in the format that the ending names; the file appears whole or not at all."""
    from toprank.files.atomic import write_atomically

    buffer = io.BytesIO()
    if path.suffix == ".csv":
        table.frame.write_csv(buffer)
    elif path.suffix == ".parquet":
        table.frame.write_parquet(buffer)
    else:
        buffer.write(WRITERS[path.suffix](table).encode())
    write_atomically(path, buffer.getvalue())
