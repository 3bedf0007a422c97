"""Lines of several methods over one grid, with bands, names and sensible limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toprank.plots.inputs import Floats
from toprank.plots.labels import label_room
from toprank.plots.style import INK, TEXT_SIZE, MethodStyle, axes_width, drawing, dress_axes, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = Mapping[str, Floats]
NO_SERIES: Series = MappingProxyType({})
PLOT_WIDTH, PLOT_HEIGHT = 6.4, 5.0  # size of a figure in inches, without the names beside it


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
            axes.figure.figure.set_size_inches(PLOT_WIDTH + label_room(axes, names), PLOT_HEIGHT)
        yield axes, ax is None


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
