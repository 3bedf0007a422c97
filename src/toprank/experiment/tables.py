"""Tables of summaries as text, Markdown, LaTeX, HTML, CSV or Parquet, always the same bytes for the same frame.

Usage: `to_text(leaderboard(results))`; `layout` formats the figures. CSV and Parquet hold the unformatted figures.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from toprank.errors import InputError
from toprank.experiment.layout import MISSING, Cell, ShownColumn, ShownTable, as_table, cells_of, make_table, spread

if TYPE_CHECKING:
    import polars

__all__ = [
    "ShownColumn",
    "ShownTable",
    "make_table",
    "spread",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_text",
    "write_table",
]

WIDTH = 100
MAX_TEXT = 30
"""Width at which text columns are wrapped: two of them and one more column always fit in WIDTH."""

MIN_HEADER = 6
"""Headers are wrapped no narrower than this."""

GAP = "  "


def to_text(table: ShownTable | polars.DataFrame) -> str:
    """Plain text of at most 100 columns.

    Headers of a wider table are wrapped; if that is not enough, it is split into blocks that repeat the first column
    (or two, if both are text).
    """
    table = as_table(table)
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


def to_markdown(table: ShownTable | polars.DataFrame) -> str:
    """A pipe table, the best figures bold."""
    table = as_table(table)

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


def to_latex(table: ShownTable | polars.DataFrame) -> str:
    """A tabular with the rules of the package booktabs; in a table environment where it has a title or a note."""
    table = as_table(table)

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


def to_html(table: ShownTable | polars.DataFrame) -> str:
    """One table element that needs no other file."""
    table = as_table(table)

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
ENDINGS = (*WRITERS, ".csv", ".parquet")


def write_table(table: ShownTable | polars.DataFrame, path: str | Path) -> None:
    """Write a table in the format that the ending names; the file appears whole or not at all."""
    from toprank.files.atomic import write_atomically

    path, table = Path(path), as_table(table)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"The table {path.name} has an ending that is not supported, expected one of {', '.join(ENDINGS)}. Hint: "
            "the ending sets the format."
        )
    if ending in WRITERS:
        write_atomically(path, WRITERS[ending](table).encode())
        return
    buffer = io.BytesIO()
    if ending == ".csv":
        table.frame.write_csv(buffer)
    else:
        table.frame.write_parquet(buffer)
    write_atomically(path, buffer.getvalue())
