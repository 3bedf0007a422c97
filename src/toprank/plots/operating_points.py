"""Drawing of operating points: markers, the line that joins them, their hull, the cost ratios beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.metrics.operating_points import OperatingPoints
from toprank.plots.inputs import Floats
from toprank.plots.lines import draw_diagonal
from toprank.plots.roc import HANDLE, LEGEND, LINE_HEIGHT, draw_curve
from toprank.plots.style import (
    FAINT,
    SMALL_SIZE,
    TEXT_SIZE,
    MethodStyle,
    annotate,
    axes_width,
    dress_axes,
    settle_layout,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[Floats, Floats]
SIDE = 5.6  # inches of a panel
BORDER = 0.07  # inches below everything
HULL_LINE = (0, (4, 2.5))
DOMINATED, HULL = "hollow: dominated by another point", "hull of the points"
MOST_RATIOS = 7  # cost ratios written beside points
FINENESS = 2.0  # pixels between points of a line that a text must not touch
AWAY = 9.0  # points from the centre of a marker to the nearest edge of its text
MARGIN = 2.5  # least distance of a text from anything else, in points
DISTANCES = (1.0, 2.2, 3.5, 5.0)  # in units of AWAY; from the second on, a thin line leads to the point
DIRECTIONS = ((1, -1), (1, 0), (-1, 1), (0, -1), (1, 1), (0, 1), (-1, 0), (-1, -1))
"""Directions of a text from its point, best first: there is most room below a curve."""


def check_limits(xlim: Any, caller: str, highest: float = 1.0) -> tuple[float, float] | None:
    """A pair of rates, or of numbers up to `highest`, the lower one first, or None."""
    if xlim is None:
        return None
    try:
        low, high = (float(end) for end in xlim)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 <= low < high <= highest:  # NaN fails here too
        what, hint = ("rates from 0 to 1", "(0, 0.1) shows false positive rates up to 10 %") if highest == 1 else (
            "numbers of alerts", "(0, 500) shows up to 500 alerts")  # fmt: skip
        raise InputError(
            f"The 'xlim' parameter of {caller} must be two {what}, the lower one first. Got {xlim!r} "
            f"instead. Hint: {hint}."
        )
    return low, high


def alerts_of_rates(ax: Axes, points: OperatingPoints) -> Any:
    """Transform of the axes from a pair of rates, in %, to its number of alerts, which is linear in them."""
    from matplotlib.transforms import Affine2D

    per_percent = points.negatives / 100, points.positives / 100
    return Affine2D([[*per_percent, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) + ax.transData


def prepare_alerts(ax: Axes, panel: Sequence[OperatingPoints], limits: tuple[float, float] | None) -> None:
    """Axes from no alert to all cases, or of a part, as high as the hulls there; with a random order."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    dress_axes(ax)
    first, top = panel[0], 100.0
    low, high = (0.0, first.positives + first.negatives) if limits is None else limits
    if limits is not None:
        hulls = [(points, points.hull()) for points in panel]
        top = max(100 * float(np.interp(high, hull.alpha * points.negatives + hull.beta * points.positives, hull.beta))
                  for points, hull in hulls)  # fmt: skip
    ax.set_xlim(low - 0.01 * (high - low), high + 0.01 * (high - low))
    ax.set_ylim(-0.01 * top, min(1.08 * top, 101))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    draw_diagonal(ax, transform=alerts_of_rates(ax, first))


def prepare_zoom(ax: Axes, limits: tuple[float, float]) -> None:
    """Axes of a part of the false positive rates, with the diagonal of a random order."""
    dress_axes(ax)
    low, high = (100 * end for end in limits)
    ax.set_xlim(low - 0.01 * (high - low), high + 0.01 * (high - low))
    ax.set_ylim(-1, 101)
    draw_diagonal(ax)


def draw_points(ax: Axes, points: OperatingPoints, style: MethodStyle, name: str, zorder: float, transform: Any) -> Any:
    """Draw points (dominated ones hollow, the others joined) and their hull; return the line for a legend.

    `transform` maps rates, in %, to positions on the axes.
    """
    draw_curve(
        ax,
        points.hull(),
        color=style.colour,
        linestyle=HULL_LINE,
        linewidth=1.0,
        zorder=zorder - 0.5,
        gid=f"hull: {name}",
        transform=transform,
    )
    alpha, beta = 100 * points.false_positive_rate, 100 * points.true_positive_rate
    hidden = points.is_dominated
    shape: dict[str, Any] = {"marker": style.marker, "color": style.colour, "markersize": 5.8, "zorder": zorder}
    shape["transform"] = transform
    ax.plot(
        alpha[hidden],
        beta[hidden],
        linestyle="none",
        markerfacecolor="white",
        gid=f"dominated: {name}",
        **{**shape, "zorder": zorder - 0.1},
    )
    kept = np.flatnonzero(~hidden)
    kept = kept[np.argsort(points.false_positives[kept], kind="stable")]
    options: dict[str, Any] = {"linestyle": "-", "linewidth": 1.5, "markeredgecolor": "white", "markeredgewidth": 0.6}
    return ax.plot(alpha[kept], beta[kept], gid=f"method: {name}", **options, **shape)[0]


def draw_ring(ax: Axes, place: tuple[float, float], style: MethodStyle, name: str, transform: Any) -> Any:
    """Draw a ring around a pair of rates, and return it."""
    look: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": style.colour}
    look |= {"markeredgewidth": 1.8, "markersize": 13, "transform": transform}
    x, y = ([100 * rate] for rate in place)
    return ax.plot(x, y, marker="o", linestyle="none", zorder=4, gid=f"selected: {name}", **look)[0]


def label_ratios(ax: Axes, points: OperatingPoints, chosen: int | None, transform: Any) -> None:
    """Write the cost ratio beside a few points along the curve where there is room, the chosen one first.

    The layout of the figure must be final: positions are measured in pixels.
    """
    scale = ax.figure.figure.dpi / 72
    obstacles = np.vstack(list(_drawn(ax)))
    artists: list[Any] = [artist for artist in (*ax.texts, ax.get_legend()) if artist is not None]
    extents = [artist.get_window_extent() for artist in artists]
    boxes = [(np.array([box.x0, box.y0]), np.array([box.x1, box.y1])) for box in extents]
    for place, ratio in zip(*_apart(ax, points, chosen, transform), strict=True):
        text = f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"
        size = np.array([text_width(ax.figure.figure, [text], SMALL_SIZE) * 72, SMALL_SIZE]) * scale
        found = _free_place(ax, place, size / 2, obstacles, boxes)
        if found is None:
            continue
        boxes.append(_box(found, size / 2, scale))
        is_far = bool((np.abs(found - place) > size / 2 + AWAY * scale).any())
        thread = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "gid": "label: ratio", "zorder": 4}
        at, shift = ax.transData.inverted().transform(place).tolist(), ((found - place) / scale).tolist()
        annotate(ax, text, tuple(at), tuple(shift), arrowprops=thread if is_far else None, **look)


def _free_place(ax: Axes, place: Floats, half: Floats, obstacles: Floats, boxes: list[Box]) -> Floats | None:
    """Centre of a text of that half size beside a point, inside the axes and touching nothing; in pixels."""
    scale = ax.figure.figure.dpi / 72
    frame = ax.get_window_extent()
    for distance in DISTANCES:
        for direction in np.array(DIRECTIONS, float):
            middle = place + direction * (distance * AWAY * scale / np.hypot(*direction) + half)
            low, high = _box(middle, half, scale)
            is_inside = (low >= (frame.x0, frame.y0)).all() and (high <= (frame.x1, frame.y1)).all()
            is_free = not ((obstacles > low) & (obstacles < high)).all(axis=1).any()
            if is_inside and is_free and not any((low < top).all() and (high > bottom).all() for bottom, top in boxes):
                return middle
    return None


def _box(middle: Floats, half: Floats, scale: float) -> Box:
    """Lower left and upper right corner of a text with a margin around it."""
    return middle - half - MARGIN * scale, middle + half + MARGIN * scale


def _apart(ax: Axes, points: OperatingPoints, chosen: int | None, transform: Any) -> tuple[Floats, Floats]:
    """Pixels and cost ratios of the chosen point, and of some undominated ones far apart along the curve."""
    kept = np.flatnonzero(~points.is_dominated & np.isfinite(points.cost_ratio))
    _, first = np.unique(points.false_positives[kept], return_index=True)  # one of several equal points
    kept = kept[first]
    rates = np.column_stack((points.false_positive_rate, points.true_positive_rate))
    places = transform.transform(100 * rates)
    low, high = ax.get_xlim()
    x = ax.transData.inverted().transform(places)[:, 0]
    is_shown = (x >= low) & (x <= high)
    kept = kept[is_shown[kept]]
    special = np.array([] if chosen is None else [chosen], np.int64)
    special = special[is_shown[special] & np.isfinite(points.cost_ratio[special])]
    for each in special:  # an equal point would show another cost at the same position
        kept = kept[(rates[kept] != rates[each]).any(axis=1)]
    most = MOST_RATIOS - len(special)
    if len(kept) > most:
        along = np.append(0.0, np.cumsum(np.hypot(*np.diff(places[kept], axis=0).T)))
        wanted = np.linspace(0, along[-1], most)
        kept = kept[np.unique(np.abs(along[:, np.newaxis] - wanted).argmin(axis=0))]
    kept = np.append(special, kept)
    return places[kept], points.cost_ratio[kept]


def _drawn(ax: Axes) -> Iterator[Floats]:
    """Pixels that lines and markers of the axes go through, (n, 2) each."""
    for line in ax.get_lines():
        corners = line.get_transform().transform(np.column_stack(line.get_data()).astype(np.float64))
        yield corners
        if line.get_linestyle() in ("None", "none"):
            continue
        for start, stop in pairwise(corners):
            n_steps = int(np.hypot(*(stop - start)) / FINENESS) + 1
            yield start + np.linspace(0, 1, n_steps)[:, np.newaxis] * (stop - start)


def signs(points: Mapping[str, OperatingPoints]) -> Iterator[tuple[Any, str]]:
    """Handles and texts of what looks the same for all methods: hollow points, if any, and hulls."""
    from matplotlib.lines import Line2D

    if any(what.is_dominated.any() for what in points.values()):
        look: dict[str, Any] = {"marker": "o", "markersize": 5.8, "markerfacecolor": "white", "linestyle": "none"}
        yield Line2D([], [], color=FAINT, **look), DOMINATED
    if points:
        yield Line2D([], [], color=FAINT, linestyle=HULL_LINE, linewidth=1.0), HULL


def add_legend(ax: Axes, entries: Sequence[tuple[Any, str]], *, is_own: bool, is_zoomed: bool) -> None:
    """Write a legend below the diagonal, or below the axes if there is no room."""
    lines, texts = [line for line, _ in entries], [text for _, text in entries]
    width = text_width(ax.figure.figure, texts, TEXT_SIZE) + HANDLE
    height = LINE_HEIGHT * len(entries)
    fits = width + height <= 1.05 * axes_width(ax)
    if not is_own or (fits and not is_zoomed):
        ax.legend(lines, texts, loc="best" if is_zoomed else "lower right", **LEGEND)
        return
    figure = ax.figure.figure
    figure.set_figheight(max(figure.get_figheight(), SIDE + 0.6 + height))
    n_panels = len(figure.axes)
    figure.set_figwidth(max(figure.get_figwidth(), n_panels * (width + 0.6)))  # else a legend would squeeze the axes
    ax.set_anchor("N")  # space left over by square axes goes to the legend
    ax.legend(lines, texts, loc="upper left", bbox_to_anchor=(-0.12, -0.2), borderaxespad=0, **LEGEND)


def make_room_below(figure: Figure) -> None:
    """Make a figure taller if a legend below its axes would not fit: square axes do not shrink to make room."""
    settle_layout(figure)
    lacking = BORDER - figure.get_tightbbox().y0
    if lacking > 0:
        figure.set_figheight(figure.get_figheight() + lacking)
