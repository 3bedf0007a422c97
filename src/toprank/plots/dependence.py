"""`DependenceDisplay`: the mean score by the values of one or two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputTypeError
from toprank.plots.display import Display
from toprank.plots.inputs import Floats
from toprank.plots.lines import write_axis_labels
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    TEXT_SIZE,
    annotate,
    axes_width,
    drawing,
    dress_axes,
    percent,
    settle_layout,
    short_names,
    text_width,
    wrap,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.contour import ContourSet

    from toprank.explain.dependence import Dependence

SIZE = (6.4, 4.6)  # inches of a figure with a line or a map
BAR = 0.36  # inches of a bar and the gap to the next
CELL, LARGEST_MAP = (0.42, 0.3), 30.0  # inches of a category along the axes of a map, and of the map
LINE = 0.2  # inches that a line of text needs
NUMBER = 0.9  # inches that a number beside an axis needs
MOST_CELLS = 60  # of a map with its figures written in the cells
MOST_NUMBERS = 8  # beside an axis of a map
MEASURE, OVERALL = "Mean score", "dotted: mean"
NO_EFFECT = "no effect: the same mean score for every value"
ROUNDING = 1e-9  # relative difference below which means count as equal
BELOW, ABOVE = PALETTE[5], PALETTE[0]
LEVEL_SIZE = SMALL_SIZE - 1  # of the labels of contour lines
STEP = 0.03  # inches between candidate positions of a label along its line
MARGIN = 0.03  # inches around a label
HEIGHT = 1.3 * LEVEL_SIZE / 72  # inches of a label


@dataclass(frozen=True, eq=False, repr=False)
class DependenceDisplay(Display):
    """Mean score by the values of a column (a line; bars for categories), or of two columns (a map).

    Parameters
    ----------
    dependence : Dependence
        From `dependence` of a fitted model, or from `toprank.explain.partial_dependence`.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.explain import partial_dependence
    >>> from toprank.tree.columns import Column
    >>> rows = np.array([[1.0], [2.0], [4.0]])
    >>> display = DependenceDisplay(partial_dependence(lambda X: X[:, 0] ** 2, rows, [Column("age")], "age"))
    >>> display
    <DependenceDisplay of 1 column: age>
    >>> display.columns()["mean"].tolist()
    [1.0, 4.0, 16.0]
    >>> display.plot().ax_.get_xlabel()
    'age'
    """

    _noun = "column"

    dependence: Dependence
    title: str | None = None

    def __post_init__(self) -> None:
        from toprank.explain.dependence import Dependence  # compiles kernels: other plots need not wait for it

        if not isinstance(self.dependence, Dependence):
            raise InputTypeError(
                f"'dependence' of {type(self).__name__} must be a Dependence. Got {type(self.dependence).__name__} "
                "instead. Hint: model.dependence(X, features) makes one."
            )

    @property
    def methods(self) -> list[str]:
        """Names of the columns."""
        return list(self.dependence.names)

    def columns(self) -> dict[str, Any]:
        """Columns value (or value_1 and value_2), mean and share; one row per point."""
        return self.dependence.columns()

    def plot(self, ax: Axes | None = None) -> DependenceDisplay:
        """Draw a line over the values of a number, bars for categories, a map for two columns.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        """
        shown = self.dependence
        lines = None
        with drawing(ax, self._size(), type(self).__name__) as axes:
            if len(shown.names) == 2:
                lines = self._draw_map(axes)
            elif shown.is_categorical[0]:
                self._draw_bars(axes)
            else:
                self._draw_line(axes)
            if self._is_flat():
                settle_layout(axes.figure.figure)
                text = wrap(axes.figure.figure, NO_EFFECT, 0.9 * axes_width(axes), TEXT_SIZE)
                plate = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 4.0}
                look: dict[str, Any] = {
                    "ha": "center",
                    "va": "bottom",
                    "fontsize": TEXT_SIZE,
                    "color": INK,
                    "zorder": 4,
                }
                axes.text(0.5, 0.57, text, transform=axes.transAxes, gid="no effect", bbox=plate, **look)
            by = " and ".join(self._axis_names())
            write_title(axes, f"Mean score by {by}" if self.title is None else self.title, is_own=ax is None)
            if lines is not None:
                label_levels(axes, lines)
        return self._keep(axes)

    def _size(self) -> tuple[float, float]:
        """Size of our own figure in inches, with room for every category."""
        shown = self.dependence
        if len(shown.names) == 1:
            return (SIZE[0], BAR * len(shown.values[0]) + 1.9) if shown.is_categorical[0] else SIZE
        width, height = (
            min(max(least, cell * n + 1.8), LARGEST_MAP) if is_named else least
            for least, cell, n, is_named in zip(SIZE, CELL, shown.mean.shape, shown.is_categorical, strict=True)
        )
        return width, height

    def _draw_line(self, ax: Axes) -> None:
        dress_axes(ax)
        values, mean = np.array(self.dependence.values[0], dtype=np.float64), self.dependence.mean
        look: dict[str, Any] = {"color": PALETTE[0], "linewidth": 2.2, "marker": "o", "markersize": 5.5, "zorder": 3}
        ax.plot(values, mean, **look, gid="mean", clip_on=False)
        # Values are quantiles: ticks below are close together where there are many rows.
        ax.plot(values, np.zeros(len(values)), transform=ax.get_xaxis_transform(), color=INK, marker="|",
                markersize=11, linestyle="none", alpha=0.6, clip_on=False, gid="values")  # fmt: skip
        _draw_mean(ax.axhline, self._overall())
        self._set_measure(ax, "y")
        ax.locator_params(axis="x", nbins=_room_for_numbers(ax))
        write_axis_labels(ax, self._axis_names()[0], f"{MEASURE} ({OVERALL})", self._note())

    def _draw_bars(self, ax: Axes) -> None:
        """Bars from the overall mean to that of each category, the highest on top, with the shares of the rows."""
        dress_axes(ax, grid="x")
        mean, overall = self.dependence.mean, self._overall()
        order = np.argsort(mean, kind="stable")
        length = mean[order] - overall
        colours = [ABOVE if step > 0 else BELOW for step in length]
        ax.barh(range(len(order)), length, left=overall, height=0.68, zorder=2.5, color=colours)
        _draw_mean(ax.axvline, overall)
        self._set_measure(ax, "x")
        words = self._words(0)
        ax.set_yticks(range(len(order)), [words[row] for row in order], fontsize=TEXT_SIZE, parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.6, len(order) - 0.4)
        shares = [percent(self.dependence.share[row]) for row in order]
        for place, text in enumerate([*shares, "of the rows"]):
            look: dict[str, Any] = {"va": "center", "color": FAINT, "annotation_clip": False, "gid": f"share: {place}"}
            annotate(ax, text, (1.02, place), xycoords=ax.get_yaxis_transform(), **look)
        write_axis_labels(ax, f"{MEASURE}\n({OVERALL})", self._axis_names()[0])

    def _draw_map(self, ax: Axes) -> ContourSet | None:
        """Draw cells of equal size and return the contour lines, if any.

        Values are quantiles, so each cell represents about as many rows.
        """
        dress_axes(ax)
        ax.grid(False)
        shown = self.dependence
        mesh = ax.pcolormesh(shown.mean.T, cmap="Blues", gid="map")
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
        bar.set_label(MEASURE, fontsize=TEXT_SIZE, color=INK)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, length=0)
        lines = None
        if self._is_flat():
            bar.set_ticks([self._overall()], labels=[f"{self._overall():.3g}"])
        elif not any(shown.is_categorical) and min(shown.mean.shape) > 1:
            middles = [np.arange(n) + 0.5 for n in shown.mean.shape]
            lines = ax.contour(*middles, shown.mean.T, levels=5, colors=INK, linestyles="-", linewidths=0.9, alpha=0.75)
            bar.add_lines(lines)
        elif shown.mean.size <= MOST_CELLS:
            is_dark = shown.mean - shown.mean.min() > 0.55 * max(np.ptp(shown.mean), 1e-12)  # white is readable there
            for row, column in np.ndindex(*shown.mean.shape):
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL_SIZE, "gid": "cell"}
                look["color"] = "white" if is_dark[row, column] else INK
                ax.text(row + 0.5, column + 0.5, f"{shown.mean[row, column]:.3g}", **look)
        self._name_cells(ax)
        x, y = self._axis_names()
        write_axis_labels(ax, x, y, self._note())
        return lines

    def _name_cells(self, ax: Axes) -> None:
        """Write the values along both axes of a map: rotated if they are long, and only some if not all fit."""
        figure = ax.figure.figure
        self._name_values(ax.yaxis, 1, ax.get_window_extent().height / figure.dpi)
        settle_layout(figure)  # the names beside the map take up width
        step = self._name_values(ax.xaxis, 0, axes_width(ax)) * axes_width(ax) / self.dependence.mean.shape[0]
        labels = ax.get_xticklabels()
        if text_width(figure, [label.get_text() for label in labels], TEXT_SIZE) < 0.9 * step:
            return
        # The distance of rotated lines of text scales with the sine of their angle, here one half.
        look: dict[str, Any] = {"rotation": 30} if step > 2 * LINE else {"rotation": 90, "va": "center"}
        for label in labels:
            label.set(ha="right", rotation_mode="anchor", **look)

    def _name_values(self, side: Any, axis: int, room: float) -> int:
        """Write the values along one axis, `room` inches long, and return the number of cells per value."""
        n, most = self.dependence.mean.shape[axis], max(int(room / LINE), 1)
        step = -(-n // (most if self.dependence.is_categorical[axis] else min(most, MOST_NUMBERS)))
        side.set_ticks(np.arange(n)[::step] + 0.5, self._words(axis)[::step], fontsize=TEXT_SIZE, parse_math=False)
        return step

    def _set_measure(self, ax: Axes, axis: Any) -> None:
        """Limits and ticks of the axis of scores; if all are equal, that score is in the middle."""
        overall = self._overall()
        if self._is_flat():
            around = 0.1 * abs(overall) or 0.1
            ax.set(**{f"{axis}lim": (overall - around, overall + around), f"{axis}ticks": [overall]})
            ax.set(**{f"{axis}ticklabels": [f"{overall:.3g}"]})
        elif axis == "x":
            ax.locator_params(axis="x", nbins=_room_for_numbers(ax))

    def _is_flat(self) -> bool:
        """Whether the score does not depend on the columns."""
        mean = self.dependence.mean
        return bool(np.ptp(mean) <= ROUNDING * np.abs(mean).max())

    def _note(self) -> str:
        """A note on what is left out: rows with a missing number cannot be shown on an axis of numbers."""
        shown = self.dependence
        if not shown.missing_share:
            return ""
        numbers = [name for name, named in zip(self._axis_names(), shown.is_categorical, strict=True) if not named]
        return f"Not shown: {' or '.join(numbers)} missing, {percent(round(shown.missing_share, 3))} of the rows"

    def _overall(self) -> float:
        """Mean over the points, weighted by their share of the rows."""
        shown = self.dependence
        return float(np.average(shown.mean, weights=shown.share if shown.share.sum() > 0 else None))

    def _words(self, axis: int) -> list[str]:
        """The texts of the values along an axis."""
        from toprank.words.numbers import value_text

        values = self.dependence.values[axis]
        words = [str(value) if self.dependence.is_categorical[axis] else value_text(value, 3) for value in values]
        short = short_names(words)
        return [short[word] for word in words]

    def _axis_names(self) -> list[str]:
        short = short_names(self.dependence.names)
        return [short[name] for name in self.dependence.names]


def _draw_mean(draw: Any, value: float) -> None:
    draw(value, color=FAINT, linestyle=(0, (2, 2)), linewidth=1.3, zorder=2.8, gid="overall")


def _room_for_numbers(ax: Axes) -> int:
    """Number of steps of an x-axis at which the numbers below it do not touch."""
    return min(max(int(axes_width(ax) / NUMBER), 1), 6)


def label_levels(ax: Axes, lines: ContourSet) -> None:
    """Label each level once, where its line is farthest from the others and from the frame.

    A level that is close to others everywhere gets no label: the marks of the colour bar show it. Call this last,
    because labels go where there is room.
    """
    figure = ax.figure.figure
    settle_layout(figure)
    frame = ax.get_window_extent()
    corner, room = np.array([frame.x0, frame.y0]) / figure.dpi, np.array([frame.width, frame.height]) / figure.dpi
    tracks = [_track([ax.transData.transform(part) / figure.dpi - corner for part in parts]) for parts in lines.allsegs]
    taken: list[tuple[Floats, Floats]] = []  # (centre, half the size) of the labels written
    for number, (level, track) in enumerate(zip(lines.levels, tracks, strict=True)):
        text = f"{level:.3g}"
        half = np.array([text_width(figure, [text], LEVEL_SIZE), HEIGHT]) / 2 + MARGIN
        others = np.concatenate([np.empty((0, 2)), *tracks[:number], *tracks[number + 1 :]])
        place = _freest(track, half, room, others, taken)
        if place is None:
            continue
        taken.append((place, half))
        plate = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0}
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": LEVEL_SIZE, "color": INK, "zorder": 4}
        x, y = (place / room).tolist()
        ax.text(x, y, text, transform=ax.transAxes, gid=f"level: {number}", bbox=plate, **look)


def _track(parts: list[Floats]) -> Floats:
    """Dense points along the segments of a line, in inches: float64 (n, 2)."""
    points = [np.empty((0, 2))]
    for part in parts:
        if len(part) == 0:  # a level that no cell reaches
            continue
        length = np.append(0.0, np.cumsum(np.hypot(*np.diff(part, axis=0).T)))
        at = np.linspace(0.0, length[-1], int(length[-1] / STEP) + 2)
        points.append(np.column_stack([np.interp(at, length, values) for values in part.T]))
    return np.concatenate(points)


def _freest(
    track: Floats, half: Floats, room: Floats, others: Floats, taken: list[tuple[Floats, Floats]]
) -> Floats | None:
    """The point with the most room for a box of half the size `half`, or None if no box fits."""
    if len(track) == 0:
        return None
    # In units of the box: below 1 it overlaps.
    distance = (np.minimum(track, room - track) / half).min(axis=1)
    if len(others):
        from scipy.spatial import KDTree

        distance = np.minimum(distance, KDTree(others / half).query(track / half, p=np.inf)[0])
    for middle, size in taken:
        distance = np.minimum(distance, (np.abs(track - middle) / (half + size)).max(axis=1))
    best = int(distance.argmax())
    return track[best] if distance[best] > 1 else None
