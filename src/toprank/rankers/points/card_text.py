"""Tables of points in words: bins and categories with their points below, two lines per feature."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.tree.columns import RESOLUTIONS, Category, Column
from toprank.words.numbers import EXACT_DIGITS, bound_decimal, decimal_text
from toprank.words.wording import EXACT, PLAIN, SHORT, WEIGHT_DIGITS, Detail, names_text, one_line

if TYPE_CHECKING:
    from toprank.rankers.points.card import Card, Shape

GAP = "   "
"""Between the cells of a table."""

NAME_WIDTH = 28
"""Most characters of a column's name beside its table; longer names have a line of their own."""

MOST_CATEGORIES = 10
"""Cells of categories in a short table; the other categories, with fewer points, share a cell."""

CELL = Detail(characters=24)
"""Names in the head of a table."""


Cell = tuple[str, str]
"""What a value is, and its points."""


def card_lines(
    shapes: Sequence[Shape], columns: Sequence[Column], width: int, detail: Detail = SHORT, indent: str = ""
) -> list[str]:
    """Return the tables of some features, one below the other; names take the same width in all of them.

    Parameters
    ----------
    shapes : sequence of Shape
    columns : sequence of Column, one per feature
    width : int
        Where tables are broken; exact ones are not.
    detail : Detail
    indent : str, default ""
    """
    names = [detail.name(columns[shape.feature].name) for shape in shapes]
    room = max((len(name) for name in names if len(name) <= NAME_WIDTH), default=0)
    lines = []
    for name, shape in zip(names, shapes, strict=True):
        cells = cells_of(shape, columns[shape.feature], detail)
        if len(name) > room:
            lines.append(f"{indent}{name}")
            name = ""
        left = len(indent) + room
        for part in _broken(cells, None if detail.is_exact else max(width - left, 20)):
            lines += _two_lines(part, f"{indent}{name:{room}}", " " * left)
            name = ""
    return lines


def cells_of(shape: Shape, column: Column, detail: Detail = SHORT) -> list[Cell]:
    """Return the bins or categories of a feature in words, with their points; missing values last.

    Missing values are left out if training had none and they have no points.
    """
    cells = _category_cells(shape, column, detail) if shape.is_categorical else _bin_cells(shape, column, detail)
    if column.has_missing or shape.missing or detail.is_exact:
        cells.append(("missing", points_text(shape.missing, detail)))
    return cells


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
            values = [*(f"<= {edge}" for edge in edges), f"> {edges[-1]}" if edges else "any"]
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
    points = [
        _span_text(a, b, detail) for a, b in zip(shape.points.tolist(), shape.ends.tolist(), strict=True)
    ]  # fmt: skip
    if len(shape.edges) == 0:
        return [("any", points[0])]
    edges = edge_texts(shape.edges, column, detail)
    return list(zip([*(f"<= {edge}" for edge in edges), f"> {edges[-1]}"], points, strict=True))


def edge_texts(edges: np.ndarray, column: Column, detail: Detail = SHORT) -> list[str]:
    """Return edges as text, with enough digits to tell them apart; dates as dates.

    Examples
    --------
    >>> edge_texts(np.array([0.25, 1 / 3, 12000]), Column("share"))
    ['0.25', '0.3333', '12,000']
    """
    texts: list[str] = []
    if column.is_date:
        for resolution in list(RESOLUTIONS)[-1:] if detail.is_exact else RESOLUTIONS:
            texts = [column.date_text(edge, resolution) for edge in edges.tolist()]
            if len(set(texts)) == len(texts):
                break
        return texts
    if detail.is_exact:
        return [detail.number(edge) for edge in edges.tolist()]
    for digits in range(detail.digits, EXACT_DIGITS + 1):
        texts = [decimal_text(bound_decimal(edge, digits), PLAIN) for edge in edges.tolist()]
        if len(set(texts)) == len(texts):
            break
    return texts


def _category_cells(shape: Shape, column: Column, detail: Detail) -> list[Cell]:
    """Return categories, most points first; in short form those that share points share a cell."""
    by_points = sorted(range(len(shape.points)), key=lambda code: -shape.points[code])
    if detail.is_exact:
        each = [(label, float(shape.points[code])) for code in by_points for label in column.labels(code)]
        return [(EXACT.label(label), points_text(points, EXACT)) for label, points in each]
    groups = [
        (points, [label for code in codes for label in column.labels(code)])
        for points, codes in groupby(by_points, key=lambda code: float(shape.points[code]))
    ]
    most = max(len(labels) for _, labels in groups)
    cells = [(_labels_text(labels, len(labels) == most), points) for points, labels in groups]
    if len(cells) <= MOST_CATEGORIES:
        return [(text, points_text(points)) for text, points in cells]
    smallest = sorted(range(len(cells)), key=lambda i: abs(cells[i][1]))[: len(cells) - MOST_CATEGORIES + 1]
    rest = sorted(cells[i][1] for i in smallest)
    n_rest = sum(len(groups[i][1]) for i in smallest)
    kept = [(text, points_text(points)) for i, (text, points) in enumerate(cells) if i not in set(smallest)]
    return [*kept, (f"{n_rest:,} others", _span_text(rest[0], rest[-1], SHORT))]


def _labels_text(labels: Sequence[Category], is_rest: bool) -> str:
    """Return categories with the same points; many of them, if no others share points, are "others"."""
    if len(labels) <= 3:
        return names_text(labels, detail=CELL)
    return f"{len(labels):,} others" if is_rest else f"{one_line(labels[0])} and {len(labels) - 1:,} more"


def _broken(cells: list[Cell], width: int | None) -> list[list[Cell]]:
    """Return the cells of each table line, none wider than `width` unless it has one cell."""
    parts: list[list[Cell]] = [[]]
    used = 0
    for cell in cells:
        size = len(GAP) + max(map(len, cell))
        if parts[-1] and width is not None and used + size > width:
            parts.append([])
            used = 0
        parts[-1].append(cell)
        used += size
    return parts


def _two_lines(cells: Sequence[Cell], first: str, second: str) -> tuple[str, str]:
    """Return the head of a table and the points below it, right-aligned."""
    sizes = [max(map(len, cell)) for cell in cells]
    head = "".join(f"{GAP}{text:>{size}}" for (text, _), size in zip(cells, sizes, strict=True))
    body = "".join(f"{GAP}{points:>{size}}" for (_, points), size in zip(cells, sizes, strict=True))
    return first + head, second + body
