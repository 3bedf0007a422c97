"""Models of points: a card, one small panel per column (`CardDisplay`); rules as bars of points (`RedFlagsDisplay`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, read_columns
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    annotate,
    drawing,
    dress_axes,
    house_style,
    new_figure,
    settle_layout,
    short_names,
    text_width,
    wrap,
    write_over,
    write_title,
)
from toprank.rankers.points.card import Card, Shape
from toprank.rankers.points.card_text import card_columns, edge_texts, points_text
from toprank.rankers.points.flags import flags_text, joined
from toprank.rankers.points.pages import (
    CORRECTIONS,
    condition_texts,
    own_conditions,
    rate_text,
    start_text,
    wrapped_conditions,
)
from toprank.tree.columns import Column
from toprank.words.counts import count, plural
from toprank.words.visible import visible
from toprank.words.wording import SHORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (2.9, 2.3)  # inches of a panel
TITLE_MARGIN = 0.05  # inches beside the title of a panel
MOST_PANELS = 24
MOST_CATEGORIES = 8
"""Categories of a panel: those with the most and the fewest points."""

FOR, AGAINST = PALETTE[3], PALETTE[0]
"""Bars that raise and lower the score."""

ROOM = 0.3
"""Share of the scale beside its largest points, for their text."""

WIDTH, LINE_HEIGHT, MARGIN = 11.0, 0.21, 1.5
"""Inches: of the figure, per line of text, and for title, heads and axis."""

TEXT_WIDTH = 58
"""Characters per line of a rule."""

GAP, INDENT, RATE_AT, CASES_AT = 10.0, 16.0, 74.0, 132.0
"""Printer's points: between text and bars, of corrections, and from the bars to the ends of the figures."""

BAR, ROW_GAP = 0.8, 0.6
"""Lines of text: thickness of a bar, and space between rules."""


@dataclass(frozen=True, eq=False, repr=False)
class CardDisplay(Display):
    """Points by value, one panel per column: lines for numbers, bars for categories, a dot for missing numbers.

    All panels have the same scale of points, so that large differences look large.

    Parameters
    ----------
    card : Card
        `card_` of a `Scorecard`, a `ScorecardTree` or `RedFlags`.
    schema : sequence of Column
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

    _noun = "column"

    card: Card
    schema: Sequence[Column]
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
        return [self.schema[f].name for f in self.order or ()]

    def columns(self) -> dict[str, Any]:
        """Columns column, value, points and points_at_end; one row per bin or category."""
        return card_columns(self.card, self.schema, self.order or ())

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
            _write_under(figure, self._note(len(shown)))
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
        shape, column = self.card.shape_of(feature), self.schema[feature]
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
        _write_points(ax, value, y, 3, fontsize=SMALL_SIZE - 2)
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
    widest = min(panel.x1 - TITLE_MARGIN * ax.figure.figure.dpi, PANEL[0] * ax.figure.figure.dpi)
    whole = title.get_text()
    half = len(whole) // 2
    while title.get_window_extent().width > widest and half > 1:
        half -= 1
        title.set_text(f"{whole[:half].rstrip()}…{whole[-half:].lstrip()}")
    room = 1.0 - title.get_window_extent().width / panel.width
    if room < 0:
        title.set_x(room)


@dataclass(frozen=True, eq=False, repr=False)
class RedFlagsDisplay(Display):
    """Rules as bars of points; beside each the rate of hits, and the cases for which it holds.

    Parameters
    ----------
    rules : sequence of str
        Conditions, separated by "; "; those of a correction without the conditions of the flag around it.
    points : array-like of shape (n_rules,)
    hit_rate : array-like of shape (n_rules,)
        Rates to expect of new cases, or of training; NaN if unknown.
    n : array-like of shape (n_rules,)
        Training cases for which each rule holds.
    title : str, optional
        Replaces the title; "" leaves it out.
    inside : array-like of shape (n_rules,), optional
        Number of the rule, from 1, that each rule corrects; 0 if it stands on its own.
    note : str, default ""
        How a score adds up; below the bars.
    is_for_new_cases : bool, default True
        Whether rates are those of new cases.

    Examples
    --------
    >>> display = RedFlagsDisplay(["cash_share > 0.5", "age <= 2"], [20, -5], [0.3, 0.01], [120, 900], inside=[0, 1])
    >>> display.plot().figure_.get_suptitle()
    '1 red flag, 1 correction'
    """

    _methods_in = "rules"
    _noun = "rule"

    rules: Sequence[str]
    points: Any
    hit_rate: Any
    n: Any
    title: str | None = None
    inside: Any = None
    note: str = ""
    is_for_new_cases: bool = True

    def __post_init__(self) -> None:
        caller, rules = type(self).__name__, [str(rule) for rule in self.rules]
        if not rules:
            raise InputError(
                f"{caller} needs at least one rule, got none. Hint: a model without rules has a card alone."
            )
        inside = np.zeros(len(rules)) if self.inside is None else self.inside
        checked = {
            name: check_figures(values, name, caller=caller, n=len(rules))
            for name, values in (("points", self.points), ("hit_rate", self.hit_rate), ("n", self.n),
                                 ("inside", inside))
        }  # fmt: skip
        if not np.isin(checked["inside"], np.arange(len(rules) + 1)).all():
            raise InputError(
                f"'inside' of {caller} must have numbers of rules, from 0 to {len(rules)}, got {inside!r}. "
                "Hint: 0 is a rule that stands on its own."
            )
        self._set(rules=rules, **checked)

    @classmethod
    def from_estimator(cls, model: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a fitted `RedFlags`."""
        flags = getattr(model, "flags_", None)
        if flags is None:
            raise InputError(f"{type(model).__name__} has no rules with points. Hint: fit RedFlags.")
        has_rates = model.rates_.is_for_new_cases
        texts = [joined(condition_texts(own_conditions(flags, flag))) for flag in flags]
        note = start_text(True, model.card_)
        return cls(
            texts, [flag.points for flag in flags], [flag.rate(has_rates) for flag in flags],
            [flag.n for flag in flags], title, [flag.inside + 1 for flag in flags],
            f"{note[:-1]} (not shown here)." if len(model.card_) else note, has_rates,
        )  # fmt: skip

    @classmethod
    def from_frame(cls, frame: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a frame with the columns rule, points, hit_rate and n, and perhaps inside, as from `frame`."""
        needed = ["rule", "points", "hit_rate", "n"]
        columns = read_columns(frame, needed, ["inside"], caller=f"{cls.__name__}.from_frame")
        rules, points, hit_rate, n = (columns[name] for name in needed)
        return cls(rules, points, hit_rate, n, title, columns.get("inside"))

    def columns(self) -> dict[str, Any]:
        """Columns number, rule, points, inside, hit_rate and n; one row per rule."""
        return {
            "number": list(range(1, len(self.rules) + 1)), "rule": list(self.rules), "points": self.points,
            "inside": self.inside.astype(np.int64), "hit_rate": self.hit_rate, "n": self.n,
        }  # fmt: skip

    def plot(self, ax: Axes | None = None) -> RedFlagsDisplay:
        """Draw one bar per rule, the first at the top; corrections are indented below the rule that they correct.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        """
        texts = ["\n".join(wrapped_conditions(visible(rule).split("; "), TEXT_WIDTH)) for rule in self.rules]
        is_first = [
            number > 0 and number != self.inside[place - 1] for place, number in enumerate(self.inside.tolist())
        ]
        heights = np.array([1.0 + text.count("\n") for text in texts]) + ROW_GAP
        tops = np.cumsum(heights + 1.2 * np.array(is_first)) - heights
        at, bottom = -(tops + heights / 2), float(tops[-1] + heights[-1])
        with drawing(ax, (WIDTH, MARGIN + LINE_HEIGHT * bottom), type(self).__name__) as axes:
            dress_axes(axes)
            axes.grid(False)
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelsize=SMALL_SIZE)
            axes.barh(at, self.points, height=BAR, color=np.where(self.points >= 0, FOR, AGAINST), zorder=2)
            axes.axvline(0, color=INK, linewidth=1.0, zorder=3)
            axes.set_yticks([])
            axes.set_ylim(-bottom - 0.2, 0.2)
            low, high = min(0.0, float(self.points.min())), max(0.0, float(self.points.max()))
            room = 0.2 * max(high - low, 1e-9)  # for the points beside the bars
            axes.set_xlim(low - room * (low < 0), high + room * (high > 0))
            axes.set_xlabel("Points", fontsize=SMALL_SIZE)
            self._write_rules(axes, at, texts, -tops - 0.55, is_first)
            self._write_figures(axes, at)
            if self.points.min() < 0:
                from matplotlib.patches import Patch

                meanings = {FOR: "raises the score", AGAINST: "lowers the score"}
                axes.legend(
                    handles=[Patch(color=colour, label=label) for colour, label in meanings.items()],
                    loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, frameon=False,
                    fontsize=SMALL_SIZE, handlelength=1.0, labelcolor=FAINT,
                )  # fmt: skip
            if ax is None and self.note:
                _write_under(axes.figure.figure, self.note)
            n_corrections = int(((self.inside > 0) | (self.points < 0)).sum())
            title = flags_text(len(texts), n_corrections) if self.title is None else self.title
            write_title(axes, title, is_own=ax is None)
        return self._keep(axes)

    def _write_rules(
        self, ax: Axes, at: np.ndarray, texts: Sequence[str], above: np.ndarray, is_first: Sequence[bool]
    ) -> None:
        """Write numbers and rules to the left of the bars, left-aligned, and what corrections are above the first."""
        figure = ax.figure.figure
        indents = np.where(self.inside > 0, INDENT, 0.0)
        sizes = [72 * text_width(figure, text.split("\n"), SMALL_SIZE) for text in texts]
        notes = [
            CORRECTIONS.format(int(number)) if first else ""
            for number, first in zip(self.inside, is_first, strict=True)
        ]
        sizes += [72 * text_width(figure, [note], SMALL_SIZE) for note in notes if note]
        left = -GAP - max(np.append(indents, np.zeros(len(sizes) - len(texts))) + sizes)
        numbers = left - 72 * text_width(figure, ["  "], SMALL_SIZE)
        for place, (text, note) in enumerate(zip(texts, notes, strict=True)):
            y = float(at[place])
            _write(ax, str(place + 1), 0.0, y, numbers, f"label: number {place + 1}", ha="right", color=FAINT)
            _write(ax, text, 0.0, y, left + float(indents[place]), f"label: rule {place + 1}")
            if note:
                _write(ax, note, 0.0, float(above[place]) + 1.2, left, f"label: inside {place + 1}", color=FAINT)
        _write(ax, "red flag (all its conditions must hold)", 0.0, 0.9, left, "label: head", color=FAINT)

    def _write_figures(self, ax: Axes, at: np.ndarray) -> None:
        """Write points beside the bars, and rates and cases in columns to the right of them."""
        name = "hit rate,\nnew cases" if self.is_for_new_cases else "hit rate,\ntraining"
        _write(ax, name, 1.0, 1.1, RATE_AT, "label: head of rates", ha="right", color=FAINT)
        _write(ax, "past\ncases", 1.0, 1.1, CASES_AT, "label: head of cases", ha="right", color=FAINT)
        for place, (y, points) in enumerate(zip(at.tolist(), self.points.tolist(), strict=True)):
            rate, n = float(self.hit_rate[place]), float(self.n[place])
            _write_points(ax, points, y, 5, gid=f"label: points {place + 1}")
            shown = "" if np.isnan(rate) else rate_text(rate, self.is_for_new_cases), "" if np.isnan(n) else count(n)
            for text, x in zip(shown, (RATE_AT, CASES_AT), strict=True):
                _write(ax, text, 1.0, y, x, f"label: {x} {place + 1}", ha="right")


def _write_points(ax: Axes, points: float, y: float, gap: float, **look: Any) -> None:
    """Write points beside the end of their bar, `gap` printer's points away."""
    side, ha = (-gap, "right") if points < 0 else (gap, "left")
    annotate(ax, points_text(points), (points, y), (side, 0), va="center", ha=ha, **look)


def _write_under(figure: Figure, note: str) -> None:
    """Write a note below a whole figure."""
    note = wrap(figure, note, figure.get_figwidth() - 0.3, SMALL_SIZE)
    figure.supxlabel(note, x=0.012, ha="left", fontsize=SMALL_SIZE, color=INK, parse_math=False)


def _write(
    ax: Axes, text: str, side: float, y: float, shift: float, gid: str, *, ha: Any = "left", color: str = INK
) -> None:
    """Write beside the axes: from their left (0) or right (1) side, shifted by printer's points."""
    look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center", "ha": ha, "color": color}
    annotate(ax, text, (side, y), (shift, 0), gid=gid, annotation_clip=False, parse_math=False, **look)
