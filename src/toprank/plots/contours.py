"""Labels of the contour lines of a map, without overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toprank.plots.inputs import Floats
from toprank.plots.style import INK, SMALL_SIZE, settle_layout, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.contour import ContourSet

SIZE = SMALL_SIZE - 1
STEP = 0.03  # inches between candidate positions along a line
MARGIN = 0.03  # inches around a label
HEIGHT = 1.3 * SIZE / 72  # inches of a label


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
        half = np.array([text_width(figure, [text], SIZE), HEIGHT]) / 2 + MARGIN
        others = np.concatenate([np.empty((0, 2)), *tracks[:number], *tracks[number + 1 :]])
        place = _freest(track, half, room, others, taken)
        if place is None:
            continue
        taken.append((place, half))
        x, y = (place / room).tolist()
        ax.text(
            x,
            y,
            text,
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=SIZE,
            color=INK,
            gid=f"level: {number}",
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0},
            zorder=4,
        )


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
