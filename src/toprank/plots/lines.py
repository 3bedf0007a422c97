"""Lines of several methods over one grid, with bands and sensible limits; names at their ends, else in a legend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.plots.inputs import Floats
from toprank.plots.style import (
    FAINT,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    MethodStyle,
    axes_width,
    complete_styles,
    drawing,
    dress_axes,
    settle_layout,
    short_names,
    text_width,
    wrap,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = Mapping[str, Floats]
NO_SERIES: Series = MappingProxyType({})
PLOT_WIDTH, PLOT_HEIGHT = 6.4, 5.0  # size of a figure in inches, without the names beside it
LABELS = ("auto", "direct", "legend", "none")
LINE_HEIGHT = 1.3  # height of a label, in units of its font size
CONNECTOR = 26.0  # points from the axes to the label
FEW = 8  # most entries of a legend inside the axes
FARTHEST = 0.2  # most distance of a name from its line, as a share of the height of the axes


def draw_lines(
    ax: Axes,
    grid: NDArray[np.float64],
    series: Series,
    styles: Mapping[str, MethodStyle],
    *,
    low: Series = NO_SERIES,
    high: Series = NO_SERIES,
    has_markers: bool = False,
) -> dict[str, tuple[float, float]]:
    """Draw one line per method and return the last point of each; methods without figures are skipped.

    The first method is on top. Bands are drawn for methods in `low` and `high`.
    """
    dress_axes(ax)
    ends = {}
    for position, (name, values) in enumerate(series.items()):
        is_there = np.isfinite(values)
        if not is_there.any():
            continue
        style, order = styles[name], 3 - position / 100
        ax.plot(
            grid,
            values,
            color=style.colour,
            linestyle=style.line,
            linewidth=2.2,
            marker=style.marker if has_markers or is_there.sum() == 1 else None,
            markersize=6.5,
            zorder=order,
            gid=f"method: {name}",
            label=name,
            clip_on=not has_markers,
        )
        if name in low and name in high:
            ax.fill_between(grid, low[name], high[name], color=style.colour, alpha=0.15, linewidth=0, zorder=order - 1)
        last = int(np.flatnonzero(is_there)[-1])
        ends[name] = (float(grid[last]), float(values[last]))
    return ends


def draw_diagonal(ax: Axes, end: float = 100.0, **look: Any) -> None:
    """Draw the diagonal of a random order, up to `end` %."""
    options: dict[str, Any] = {"color": FAINT, "linestyle": (0, (2, 2)), "linewidth": 1.3, "zorder": 1.8} | look
    ax.plot([0, end], [0, end], gid="random", **options)


def name_diagonal(ax: Axes, at: float, *, is_above: bool = False) -> None:
    """Write the name of the diagonal along it, below the line or above."""
    look: dict[str, Any] = {"ha": "center", "va": "bottom" if is_above else "top", "color": FAINT}
    turned: dict[str, Any] = {"rotation": 45, "rotation_mode": "anchor", "transform_rotates_text": True}
    ax.text(at, at + (1.5 if is_above else -1.5), "random order", fontsize=SMALL_SIZE, **look, **turned)


def line_limits(*families: Series) -> tuple[float, float]:
    """Limits of the y-axis in %, multiples of 5 around all figures, in the range of a share."""
    values = np.concatenate([array for family in families for array in family.values()])
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 101.0
    margin = max(0.04 * float(np.ptp(values)), 0.5)
    low = max(5 * np.floor((values.min() - margin) / 5), 0.0)
    high = 5 * np.ceil((values.max() + margin) / 5)
    return float(low), 101.0 if high >= 100 else float(high)  # so that a line at 100 % is not clipped


@contextmanager
def line_figure(ax: Axes | None, names: Sequence[str], owner: str) -> Iterator[tuple[Axes, bool]]:
    """Axes for lines and whether they are our own, on a figure with room for `names` beside them."""
    with drawing(ax, (PLOT_WIDTH, PLOT_HEIGHT), owner) as axes:
        if ax is None and names:
            room = text_width(axes.figure.figure, short_names(names).values(), TEXT_SIZE) + CONNECTOR / 72
            axes.figure.figure.set_size_inches(PLOT_WIDTH + room, PLOT_HEIGHT)
        yield axes, ax is None


def draw_series(
    display: Any,
    ax: Axes | None,
    grid: NDArray[np.float64],
    shown: Series,
    xlim: tuple[float, float],
    texts: tuple[str, str, str],
    styles: Mapping[str, MethodStyle] | None,
    labels: str,
    *,
    low: Series = NO_SERIES,
    high: Series = NO_SERIES,
    ticks: tuple[Any, Sequence[str]] | None = None,
    draw_more: Callable[[Axes], None] = lambda axes: None,
) -> Any:
    """Draw the lines of a display, in %, and return it.

    `texts` are those of the x-axis, of the y-axis and of the title. With `ticks`, positions and texts on the x-axis,
    lines have a marker at every point.
    """
    owner = type(display).__name__
    check_naming(labels, caller=f"{owner}.plot")
    chosen = complete_styles(display.methods, styles)
    with line_figure(ax, display.methods, owner) as (axes, is_own):
        ends = draw_lines(axes, grid, shown, chosen, low=low, high=high, has_markers=ticks is not None)
        if ticks is not None:
            axes.set_xticks(*ticks, fontsize=TEXT_SIZE, color=INK, parse_math=False)
        axes.set_xlim(*xlim)
        axes.set_ylim(*line_limits(shown, low, high))
        draw_more(axes)
        write_axis_labels(axes, *texts[:2], without_figures(shown))
        write_title(axes, texts[2] if display.title is None else display.title, is_own=is_own)
        name_lines(axes, ends, chosen, labels, is_own=is_own)
    return display._keep(axes)


def write_axis_labels(ax: Axes, x: str, y: str, note: str = "") -> None:
    """Label both axes; a note goes below on separate lines, and no line is wider than the axes."""
    lines = [wrap(ax.figure.figure, text, axes_width(ax), TEXT_SIZE) for text in (x, note) if text]
    ax.set_xlabel("\n".join(lines), fontsize=TEXT_SIZE, color=INK, parse_math=False)
    ax.set_ylabel(y, fontsize=TEXT_SIZE, color=INK, parse_math=False)


def without_figures(series: Series) -> str:
    """A note on methods without any figures, or nothing."""
    names = [name for name, values in series.items() if not np.isfinite(values).any()]
    return f"No figures: {', '.join(names)}" if names else ""


def in_percent(series: Series) -> dict[str, Floats]:
    """Shares as percentages."""
    return {name: 100 * values for name, values in series.items()}


def check_naming(labels: Any, *, caller: str) -> None:
    """Raise ValueError unless `labels` is one of the ways to name lines."""
    if labels not in LABELS:
        known = ", ".join(map(repr, LABELS))
        raise InputError(f"The 'labels' parameter of {caller} must be one of {known}. Got {labels!r} instead.")


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Positions nearest to those wanted, in the same order, at least `gap` apart, all between low and high.

    Isotonic least squares: after subtracting `gap` times their index, the positions must be non-decreasing. If `gap` is
    too large for the room, positions exceed it.

    Examples
    --------
    >>> spread([0.5, 0.5, 0.9], 0.2, 0.0, 1.0).round(3).tolist()
    [0.4, 0.6, 0.9]
    """
    from scipy.optimize import isotonic_regression  # slow to import

    wanted = np.asarray(wanted, dtype=np.float64)
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    level = isotonic_regression(wanted[order] - steps).x
    room = high - low - gap * (len(wanted) - 1)
    placed = np.empty(len(wanted))
    placed[order] = np.clip(level, low, low + max(room, 0.0)) + steps
    return placed


def name_lines(
    ax: Axes, ends: Mapping[str, tuple[float, float]], styles: Mapping[str, MethodStyle], labels: str, *, is_own: bool
) -> None:
    """Name every line: `ends` holds its last point. A legend lists them from top to bottom.

    Set the limits of the axes first: they determine where the names go.
    """
    if labels == "none" or not ends:
        return
    wanted, places = _places(ax, ends)
    has_room = is_own or ax.figure.figure.get_layout_engine() is not None
    is_near = places.min() >= 0 and places.max() <= 1 and np.abs(places - wanted[:, 1]).max() <= FARTHEST
    if labels == "direct" or (labels == "auto" and has_room and is_near):
        _name_at_ends(ax, ends, wanted, places, styles)
    else:
        add_legend(ax, sorted(ends, key=lambda name: -ends[name][1]), outside=is_own and len(ends) > FEW)


def add_legend(ax: Axes, names: Sequence[str], *, outside: bool, place: Any = "best") -> None:
    """Write a legend of the lines with these names, in this order; beside our own axes if `outside`."""
    lines = {str(line.get_gid()): line for line in ax.get_lines() if line.get_gid()}
    short = short_names(names)
    handles = [lines[f"method: {name}"] for name in names]
    texts = [short[name] for name in names]
    look: dict[str, Any] = {"fontsize": TEXT_SIZE, "handlelength": 2.6, "framealpha": 0.9, "edgecolor": "none"}
    if not outside:
        ax.legend(handles, texts, loc=place, **look)
        return
    figure = ax.figure.figure
    figure.set_figheight(max(figure.get_figheight(), 1.55 * TEXT_SIZE / 72 * len(names) + 1.4))
    ax.legend(handles, texts, loc="upper left", bbox_to_anchor=(1.01, 1.02), **look)


def _places(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of the lines, shape (n, 2), and the heights of their names, shape (n,), as shares of the axes."""
    root = ax.figure.figure
    settle_layout(root)
    gap = LINE_HEIGHT * TEXT_SIZE / 72 * root.dpi / ax.get_window_extent().height
    points = ax.transAxes.inverted().transform(ax.transData.transform(list(ends.values())))
    return points, spread(points[:, 1], gap, gap / 2, 1 - gap / 2)


def _name_at_ends(
    ax: Axes,
    ends: Mapping[str, tuple[float, float]],
    points: NDArray[np.float64],
    places: NDArray[np.float64],
    styles: Mapping[str, MethodStyle],
) -> None:
    """Write the names to the right of the axes, each joined to its line by a short piece in the same style."""
    from matplotlib.transforms import ScaledTranslation

    short = short_names(ends)
    last = max(x for x, _ in ends.values())
    beside = ax.transAxes + ScaledTranslation(CONNECTOR / 72, 0, ax.figure.dpi_scale_trans)
    for (name, end), start, place in zip(ends.items(), points.tolist(), places.tolist(), strict=True):
        style = styles[name]
        if end[0] < last:  # it ends early: a faint line to the edge, which cannot be mistaken for data
            thread = [[start[0], 1.0], [start[1], place]]
            ax.plot(*thread, transform=ax.transAxes, color=FAINT, linewidth=0.9, linestyle=(0, (1, 3)), zorder=1.9)
            start = [1.0, place]
        ax.annotate(
            short[name],
            xy=start,
            xycoords="axes fraction",
            xytext=(1.0, place),
            textcoords=beside,
            va="center",
            ha="left",
            fontsize=TEXT_SIZE,
            color=INK,
            annotation_clip=False,
            gid=f"label: {name}",
            arrowprops={
                "arrowstyle": "-",
                "color": style.colour,
                "linewidth": 1.5,
                "linestyle": style.line,
                "shrinkA": 2,
                "shrinkB": 2,
                "patchA": None,
                "relpos": (0.0, 0.5),
            },
        )
