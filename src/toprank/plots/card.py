"""`CardDisplay`: the points of a card, one small panel per column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputTypeError
from toprank.plots.display import Display
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    annotate,
    dress_axes,
    house_style,
    new_figure,
    settle_layout,
    short_names,
    wrap,
    write_over,
)
from toprank.rankers.points.card import Card, Shape
from toprank.rankers.points.card_text import card_columns, edge_texts, points_text
from toprank.tree.columns import Column
from toprank.words.counts import plural
from toprank.words.wording import SHORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = (2.9, 2.3)  # inches of a panel
MARGIN = 0.05
MOST_PANELS = 24
MOST_CATEGORIES = 8
"""Categories of a panel: those with the most and the fewest points."""

FOR, AGAINST = PALETTE[3], PALETTE[0]
"""Bars that raise and lower the score, as in the picture of red flags."""

ROOM = 0.3
"""Share of the scale beside its largest points, for their text."""


@dataclass(frozen=True, eq=False, repr=False)
class CardDisplay(Display):
    """Points by value, one panel per column: lines for numbers, bars for categories, a dot for missing numbers.

    All panels have the same scale of points, so that large differences look large.

    Parameters
    ----------
    card : Card
        `card_` of a `Scorecard`, a `ScorecardTree` or `RedFlags`.
    table : sequence of Column
        `columns_` of the model.
    order : sequence of int, optional
        Columns to draw, by position, the first 24 at most; by default those of the card.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> from toprank.rankers.points.card import Card, Shape
    >>> from toprank.tree.columns import Column
    >>> card = Card((Shape(0, [2, 10], [8, 3, 0], missing=3),), scale=10)
    >>> display = CardDisplay(card, [Column("age")])
    >>> display
    <CardDisplay of 1 column: age>
    >>> display.plot().ax_.get_title(loc="left")
    'age'
    """

    card: Card
    table: Sequence[Column]
    order: Sequence[int] | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.card, Card):
            raise InputTypeError(
                f"'card' of {type(self).__name__} must be a Card. Got {type(self.card).__name__} instead. "
                "Hint: CardDisplay.from_estimator(model) draws the card of a Scorecard."
            )
        chosen = self.card.features.tolist() if self.order is None else [int(f) for f in self.order]
        self._set(order=[f for f in chosen if self.card.shape_of(f) is not None])

    @classmethod
    def from_estimator(cls, model: Any, *, title: str | None = None) -> CardDisplay:
        """Display of a fitted `Scorecard`, `ScorecardTree` or `RedFlags`, columns as on its page."""
        card = getattr(model, "card_", None)
        if not isinstance(card, Card):
            raise InputTypeError(
                f"CardDisplay.from_estimator needs a fitted Scorecard. Got {type(model).__name__} instead. "
                "Hint: fit a Scorecard, a ScorecardTree or RedFlags."
            )
        spread = getattr(model, "spread_", np.zeros(len(model.columns_)))  # a small card is in order already
        order = sorted(card.features.tolist(), key=lambda f: -spread[f])
        return cls(card, model.columns_, order, title)

    @property
    def methods(self) -> list[str]:
        """Names of the columns."""
        return [self.table[f].name for f in self.order or ()]

    def columns(self) -> dict[str, Any]:
        """Columns column, value, points and points_at_end; one row per bin or category."""
        return card_columns(self.card, self.table, self.order or ())

    def plot(self, ax: Axes | None = None) -> CardDisplay:
        """Draw one panel per column.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Draws the first column alone on it. By default the display makes its own figure, `figure_`.
        """
        shown = list(self.order or ())[:MOST_PANELS]
        if ax is not None:
            with house_style(type(self).__name__):
                for feature in shown[:1]:
                    self._draw(ax, feature)
            return self._keep(ax)
        width = min(4, max(len(shown), 1))
        height = -(-max(len(shown), 1) // width)
        with house_style(type(self).__name__):
            figure = new_figure((PANEL[0] * width, PANEL[1] * height + 0.8))
            axes = [figure.add_subplot(height, width, place + 1) for place in range(max(len(shown), 1))]
            for panel, feature in zip(axes, shown, strict=False):
                self._draw(panel, feature)
            title = f"Points per column: {self.card.scale_text()}" if self.title is None else self.title
            if title:
                write_over(figure, title)
            note = wrap(figure, self._note(len(shown)), PANEL[0] * width - 0.3, SMALL_SIZE)
            figure.supxlabel(note, x=0.012, ha="left", fontsize=SMALL_SIZE, color=INK, parse_math=False)
            settle_layout(figure)
            for panel in axes:
                _thin_ticks(panel)
                _fit_title(panel)
        return self._keep(axes[0])

    def _note(self, n_shown: int) -> str:
        """Return how a score adds up, and what is not drawn."""
        base, n_left_out = points_text(self.card.base).removeprefix("+"), len(self.order or ()) - n_shown
        rest = f" {plural(n_left_out, 'column')} with smaller points not drawn." if n_left_out else ""
        return f"A case starts at {base}; the points of its values are added. A dot is a missing value.{rest}"

    def _scale(self) -> tuple[float, float]:
        """Least and most points of all columns, with room for text."""
        shapes = [shape for f in self.order or () if (shape := self.card.shape_of(f)) is not None]
        every = np.concatenate([np.zeros(1), *(np.r_[each.points, each.ends, each.missing] for each in shapes)])
        low, high = float(every.min()), float(every.max())
        room = ROOM * max(high - low, 1e-9)
        return low - room * (low < 0), high + room * (high > 0)

    def _draw(self, ax: Axes, feature: int) -> None:
        shape, column = self.card.shape_of(feature), self.table[feature]
        assert shape is not None
        name = short_names([column.name])[column.name]
        if shape.is_categorical:
            n_drawn = _draw_bars(ax, shape, column)
            ax.set_xlim(self._scale())
            name += f" ({n_drawn} of {shape.n_bins})" if n_drawn < shape.n_bins else ""
        else:
            _draw_line(ax, shape, column)
            ax.set_ylim(self._scale())
        ax.set_title(name, fontsize=SMALL_SIZE + 1, loc="left", color=INK, parse_math=False)
        ax.tick_params(labelsize=SMALL_SIZE)

    def __repr__(self) -> str:
        names = self.methods
        columns = "1 column" if len(names) == 1 else f"{len(names)} columns"
        return f"<{type(self).__name__} of {columns}: {', '.join(names)}>"


def _draw_line(ax: Axes, shape: Shape, column: Column) -> None:
    """Points over the values of a number, and a dot at the right for missing values.

    The ends are drawn as wide as the bins next to them; edges far out on one side are drawn by their order.
    """
    dress_axes(ax)
    edges = shape.edges if len(shape.edges) else np.zeros(1)
    is_even = _is_skewed(edges)
    places = np.arange(float(len(edges))) if is_even else edges
    room = max(float(places[-1] - places[0]) / max(len(places) - 1, 1), 0.5 if is_even or len(places) == 1 else 0.0)
    x = np.repeat(np.concatenate(([places[0] - room], places, [places[-1] + room])), 2)[1:-1]
    y = np.column_stack((shape.points, shape.ends)).ravel() if len(shape.edges) else np.repeat(shape.points, 4)
    ax.plot(x, y, color=PALETTE[0], linewidth=1.8, gid="points")
    ax.axhline(0.0, color=FAINT, linewidth=0.9, zorder=1)
    if column.has_missing or shape.missing:
        ax.plot([x[-1] + room], [shape.missing], color=INK, marker="o", markersize=4, linestyle="none", gid="missing")
    ticks = np.unique(np.linspace(0, len(edges) - 1, min(3, len(edges))).astype(int))
    texts = edge_texts(edges, column)
    ax.set_xticks(places[ticks], [texts[tick] for tick in ticks], parse_math=False)


def _is_skewed(edges: np.ndarray) -> bool:
    """Whether most edges would be drawn on top of each other."""
    if len(edges) < 3:
        return False
    middle, span = float(np.median(edges)), 0.5 * float(edges[-1]) - 0.5 * float(edges[0])
    share = (0.5 * middle - 0.5 * float(edges[0])) / span
    return not 0.15 <= share <= 0.85


def _draw_bars(ax: Axes, shape: Shape, column: Column) -> int:
    """Bars for the categories with the most points and those with the fewest, most on top; return how many.

    Bars are as thick in every panel. Missing values with points are the last bar.
    """
    dress_axes(ax)
    ax.grid(False)
    order = np.argsort(shape.points, kind="stable")
    if len(order) > MOST_CATEGORIES:
        half = MOST_CATEGORIES // 2
        order = np.concatenate((order[:half], order[-half:]))
    names = [SHORT.label(column.labels(int(code))[0]) for code in order]
    short = short_names(names)
    bars = [(short[name], float(shape.points[code])) for name, code in zip(names, order, strict=True)]
    bars = [*([("missing", shape.missing)] if shape.missing else []), *bars]
    at, points = np.arange(len(bars)), np.array([each for _, each in bars])
    ax.barh(at, points, height=0.7, color=np.where(points > 0, FOR, AGAINST), zorder=2.5)
    ax.axvline(0.0, color=FAINT, linewidth=0.9, zorder=1)
    for y, value in zip(at.tolist(), points.tolist(), strict=True):
        side = -1 if value < 0 else 1
        look: dict[str, Any] = {"va": "center", "ha": "left" if side > 0 else "right", "fontsize": SMALL_SIZE - 2}
        annotate(ax, points_text(value), (value, y), (3 * side, 0), **look)
    ax.set_yticks(at, [name for name, _ in bars], parse_math=False)
    ax.set_ylim(len(bars) - MOST_CATEGORIES - 1.5, len(bars) - 0.5)
    return len(order)


def _thin_ticks(ax: Axes) -> None:
    """Hide labels of the axis below that would run into others; its ends stay."""
    labels = [label for label in ax.get_xticklabels() if label.get_text()]
    kept: list[Any] = []
    for label in [*labels[:1], *labels[:0:-1]]:
        box = label.get_window_extent()
        if any(box.x0 < other.x1 + 4 and other.x0 < box.x1 + 4 for other in kept):
            label.set_visible(False)
        else:
            kept.append(box)


def _fit_title(ax: Axes) -> None:
    """Begin a title that is wider than its panel further to the left, over the names of the values; cut huge ones."""
    title, panel = ax._left_title, ax.get_window_extent()  # type: ignore[attr-defined]
    widest = min(panel.x1 - MARGIN * ax.figure.figure.dpi, PANEL[0] * ax.figure.figure.dpi)
    whole = title.get_text()
    half = len(whole) // 2
    while title.get_window_extent().width > widest and half > 1:
        half -= 1
        title.set_text(f"{whole[:half].rstrip()}…{whole[-half:].lstrip()}")
    room = 1.0 - title.get_window_extent().width / panel.width
    if room < 0:
        title.set_x(room)
