"""Tables of points in words: ranges of a number with their points below, categories with their points behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.tree.columns import Category, Column
from toprank.words.numbers import EXACT_DIGITS, PLAIN, bound_decimal, decimal_text
from toprank.words.wording import SHORT, WEIGHT_DIGITS, Detail, is_rounded, names_text
from toprank.words.wrapping import GLUE, wrapped

if TYPE_CHECKING:
    from toprank.rankers.points.card import Card, Shape

GAP, SMALL_GAP = "   ", "  "
"""Between the cells of a table, and of one that takes several lines."""

NAME_WIDTH = 28
"""Most characters of a column's name beside its table; longer names have a line of their own."""

MOST_NAMES = 12
"""Categories that a cell names; of more, it says how many there are."""

MOST_CELLS = 12
"""Cells of categories in a short table; the categories with the smallest points share the last one."""

OTHERS = "all others"
FEWEST_OTHERS = 4
"""So many categories may be "all others", in one cell of a table."""

NAMED = Detail(names=MOST_NAMES, characters=60)
"""Categories and conditions on a page: a reader must find his case without guessing."""

FULL_TEXT = "to_text(exact=True)"
"""How to get the full text from Python; the command line has its own way."""

RANGES = "'to 8' means above the value before it, up to and including 8."
LINES = "'-12 to +4': the points change evenly from one end of the range to the other."
VALUES = "Points of values: each case gets one entry per column."
MISSING = "An unknown category counts as missing; missing values get 0 points unless listed"
CONDITIONS = "and meet a condition only if it says so"

Cell = tuple[str, str]
"""What a value is, and its points."""


@dataclass(frozen=True)
class Group:
    """Categories of a column that share a cell, and their points.

    `low` and `high` are the same unless the text leaves out which category has how many; with `is_rest` the cell names
    none of them.
    """

    labels: list[Category]
    low: float
    high: float
    is_rest: bool = False


def shortened_hint(full_text: str) -> str:
    """Return the last line of a shortened page, given how to get the full text."""
    return f"Shortened: {full_text} has every column and category, with all digits."


def card_lines(
    shapes: Sequence[Shape], columns: Sequence[Column], width: int, detail: Detail = SHORT, indent: str = ""
) -> list[str]:
    """Return the tables of some features, one below the other; names take the same width in all of them.

    Tables are broken at `width`, exact ones are not.
    """
    names = [detail.name(columns[shape.feature].name) for shape in shapes]
    below = [  # points of a missing number have their place below the name of the column
        f"  missing: {points_text(s.missing)}" if s.missing and not (s.is_categorical or detail.is_exact) else ""
        for s in shapes
    ]
    room = max((len(name) for name in [*names, *below] if len(name) <= NAME_WIDTH), default=0)
    lines = []
    for name, missing, shape in zip(names, below, shapes, strict=True):
        cells = cells_of(shape, columns[shape.feature], detail)
        if len(name) > room:
            lines.append(f"{indent}{name}")
            name = ""
        first, second, left = f"{indent}{name:{room}}", f"{indent}{missing:{room}}", " " * (len(indent) + room)
        space = None if detail.is_exact else max(width - len(left), 20)
        if shape.is_categorical:
            for line in _list_lines(cells, space):
                lines.append(f"{first}{GAP}{line}")
                first = left
        else:
            gap, parts = _broken(cells, space)
            for part in parts:
                lines += _two_lines(part, first, second, gap)
                first = second = left
    return lines


def cells_of(shape: Shape, column: Column, detail: Detail = SHORT) -> list[Cell]:
    """Return the ranges or categories of a feature in words, with their points; missing values last.

    Short cells leave missing numbers out, which stand below the name of the column. They leave missing categories out
    if these have no points, unless a reader could take them for "all others".
    """
    if not shape.is_categorical:
        missing = [("missing", points_text(shape.missing, detail))] if detail.is_exact else []
        return [*_bin_cells(shape, column, detail), *missing]
    groups = _groups(shape, column, detail)
    cells = []
    for group in groups:
        low, high = points_text(group.low, detail), points_text(group.high, detail)
        cells.append((_names_text(group, detail), low if group.low == group.high else f"between {low} and {high}"))
    if shape.missing or detail.is_exact or any(each.is_rest and (each.low or each.high) for each in groups):
        cells.append(("missing", points_text(shape.missing, detail)))
    return cells


def is_shortened(shape: Shape, column: Column) -> bool:
    """Return True if the short cells of a feature leave names or digits out that matter for a score."""
    points = [*shape.points.tolist(), *shape.ends.tolist(), shape.missing]
    if any(is_rounded(each, WEIGHT_DIGITS) for each in points) or hides_digits(shape.edges.tolist(), column):
        return True
    groups = _groups(shape, column, SHORT) if shape.is_categorical else []
    return any(each.low != each.high or (not each.is_rest and hides_names(each.labels)) for each in groups)


def hides_names(labels: Sequence[Category]) -> bool:
    """Return True if a page leaves out some of these names, or cuts one off."""
    return len(labels) > MOST_NAMES or any(len(str(label)) > (NAMED.characters or 0) for label in labels)


def hides_digits(bounds: Sequence[float], column: Column) -> bool:
    """Return True if a page rounds one of these bounds."""
    if column.is_date:
        return False
    return any(bound_decimal(bound) != Decimal(repr(float(bound))) for bound in bounds)


def table_notes(
    shapes: Sequence[Shape], columns: Sequence[Column], width: int, *, has_conditions: bool = False
) -> list[str]:
    """Return what a reader of some tables needs to know: how ranges and lines are read, and missing values."""
    numbers = [shape for shape in shapes if not shape.is_categorical]
    notes = [f"{MISSING}, {CONDITIONS}." if has_conditions else f"{MISSING}."]
    ranged = next((shape for shape in numbers if len(shape.edges) > 1), None)
    if ranged is not None:
        edge = edge_texts(ranged.edges, columns[ranged.feature])[1]
        notes.append(RANGES.replace("8", edge))
    line = next((shape for shape in numbers if not shape.is_stepped), None)
    if line is not None:
        at = int(np.flatnonzero(line.points != line.ends)[0])
        notes.append(LINES.replace("-12 to +4", _span_text(line.points[at], line.ends[at], SHORT).replace(" ", GLUE)))
    return wrapped(" ".join([*([VALUES] if shapes else []), *notes]), width)


def card_columns(card: Card, columns: Sequence[Column], order: Sequence[int]) -> dict[str, list[Any]]:
    """Return a card as columns of a frame: column, value, points and points_at_end, one row per bin or category."""
    out: dict[str, list[Any]] = {"column": [], "value": [], "points": [], "points_at_end": []}
    for feature in order:
        shape = card.shape_of(feature)
        if shape is None:
            continue
        column, points, ends = columns[feature], shape.points.tolist(), shape.ends.tolist()
        if shape.is_categorical:
            values = [names_text(column.labels(code)) for code in range(len(points))]
        else:
            edges = edge_texts(shape.edges, column)
            inner = [f"> {low} and <= {high}" for low, high in pairwise(edges)]
            values = [f"<= {edges[0]}", *inner, f"> {edges[-1]}"] if edges else ["any"]
        values.append("missing")
        out["column"] += [column.name] * len(values)
        out["value"] += values
        out["points"] += [*points, shape.missing]
        out["points_at_end"] += [*ends, shape.missing]
    return out


def points_text(points: float, detail: Detail = SHORT) -> str:
    """Return points with their sign: +12, -3, 0.

    Examples
    --------
    >>> points_text(12.0), points_text(-0.1234), points_text(0.0)
    ('+12', '-0.123', '0')
    """
    if points == 0:
        return "0"
    return f"{'-' if points < 0 else '+'}{detail.number(abs(points), WEIGHT_DIGITS)}"


def _span_text(first: float, last: float, detail: Detail) -> str:
    """Return the points of a bin: one number, or those at its two ends."""
    low, high = points_text(first, detail), points_text(last, detail)
    return low if low == high else f"{low} to {high}"


def _bin_cells(shape: Shape, column: Column, detail: Detail) -> list[Cell]:
    points = [_span_text(a, b, detail) for a, b in zip(shape.points.tolist(), shape.ends.tolist(), strict=True)]
    if len(shape.edges) == 0:
        return [("any", points[0])]
    edges = edge_texts(shape.edges, column, detail)
    heads = [f"<= {edges[0]}", *(f"to {edge}" for edge in edges[1:]), f"> {edges[-1]}"]
    return list(zip(heads, points, strict=True))


def edge_texts(edges: np.ndarray, column: Column, detail: Detail = SHORT) -> list[str]:
    """Return edges as text, with enough digits to tell them apart; dates with all of their time of day.

    Examples
    --------
    >>> edge_texts(np.array([0.25, 1 / 3, 12000]), Column("share"))
    ['0.25', '0.3333', '12,000']
    """
    texts: list[str] = []
    if column.is_date:
        return [column.bound_text(edge) for edge in edges.tolist()]
    if detail.is_exact:
        return [detail.number(edge) for edge in edges.tolist()]
    for digits in range(detail.digits, EXACT_DIGITS + 1):
        texts = [decimal_text(bound_decimal(edge, digits), PLAIN) for edge in edges.tolist()]
        if len(set(texts)) == len(texts):
            break
    return texts


def _groups(shape: Shape, column: Column, detail: Detail) -> list[Group]:
    """Return categories by their points, most first; of a short list, at most one group has no names."""
    by_points = sorted(range(len(shape.points)), key=lambda code: -shape.points[code])
    if detail.is_exact:
        each = [(label, float(shape.points[code])) for code in by_points for label in column.labels(code)]
        return [Group([label], points, points) for label, points in each]
    groups = [
        Group([label for code in codes for label in column.labels(code)], points, points)
        for points, codes in groupby(by_points, key=lambda code: float(shape.points[code]))
    ]
    if len(groups) > MOST_CELLS:
        largest = sorted(groups, key=lambda group: -abs(group.low))
        rest = largest[MOST_CELLS - 1 :]
        points = [group.low for group in rest]
        labels = [label for group in rest for label in group.labels]
        kept = [group for group in groups if group not in rest]
        return [*kept, Group(labels, min(points), max(points), is_rest=True)]
    most = max(groups, key=lambda group: (len(group.labels), group.low == 0))
    if len(most.labels) < FEWEST_OTHERS:
        return groups
    named = [group for group in groups if group is not most]
    return [*named, Group(most.labels, most.low, most.high, is_rest=True)]


def _names_text(group: Group, detail: Detail) -> str:
    """Return the names in a cell, with spaces at which lines do not wrap inside a name."""
    if group.is_rest:
        return (OTHERS if group.low == group.high else f"{len(group.labels):,} others").replace(" ", GLUE)
    names = [_name(label, detail) for label in group.labels[:MOST_NAMES]]
    if len(group.labels) > MOST_NAMES:
        return f"one{GLUE}of {len(group.labels):,} ({', '.join(names)}, ...)"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or{GLUE}{names[-1]}"


def _name(label: Category, detail: Detail) -> str:
    """Return a category in a list; in quotes if it could be read as the end of a cell."""
    text = detail.label(label) if detail.is_exact else NAMED.label(label)
    if isinstance(label, str) and (":" in text or text in ("missing", OTHERS)) and not text.startswith('"'):
        text = json.dumps(text, ensure_ascii=not text.isprintable())
    return text.replace(" ", GLUE)


def _list_lines(cells: Sequence[Cell], width: int | None) -> list[str]:
    """Return cells as "names: points", one after the other; lines end between cells, else between names."""
    texts = []
    for names, points in cells:
        text = f"{names}:{GLUE}{points.replace(' ', GLUE)}"
        texts.append(text.replace(" ", GLUE) if width is None or len(text) + len(GAP) <= width else text)
    if width is None:
        return [GAP.join(texts).replace(GLUE, " ")]
    return wrapped(GAP.join(texts), width - len(GAP))


def _broken(cells: list[Cell], width: int | None) -> tuple[str, list[list[Cell]]]:
    """Return the gap between cells, and the cells of each table line, none wider than `width` unless it has one cell.

    The gap is smaller if the table takes more than one line.
    """
    sizes = [max(map(len, cell)) for cell in cells]
    if width is None or sum(sizes) + len(GAP) * len(cells) <= width:
        return GAP, [cells]
    parts: list[list[Cell]] = [[]]
    used = len(GAP) - len(SMALL_GAP)
    for cell, size in zip(cells, sizes, strict=True):
        if parts[-1] and used + len(SMALL_GAP) + size > width:
            parts.append([])
            used = len(GAP) - len(SMALL_GAP)
        parts[-1].append(cell)
        used += len(SMALL_GAP) + size
    return SMALL_GAP, parts


def _two_lines(cells: Sequence[Cell], first: str, second: str, gap: str) -> tuple[str, str]:
    """Return the head of a table and the points below it, right-aligned."""
    sizes = [max(map(len, cell)) for cell in cells]
    head = gap.join(f"{text:>{size}}" for (text, _), size in zip(cells, sizes, strict=True))
    body = gap.join(f"{points:>{size}}" for (_, points), size in zip(cells, sizes, strict=True))
    return first + GAP + head, second + GAP + body
