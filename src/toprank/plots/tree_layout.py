"""Layout of the boxes of trees, in inches, downwards; nothing here draws.

Within a tree, leaves are side by side and a parent is centred over its children; subtrees are as close as their
outlines allow. Trees of one figure are packed like sheets of paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

SIDE_GAP = 0.16  # inches between neighbours
BAR_GAP = 0.13  # between a row of boxes and the bar that its branches start from
LABEL_GAP = 0.06  # above and below the label of a branch
SHEET_GAP = 0.5
SHAPE = 1.5  # width over height of a good page

Outline = list[tuple[float, float]]


@dataclass(eq=False)
class Box:
    """A drawn node: its size, its branches, and, after layout, its position."""

    width: float
    height: float
    children: list[Box] = field(default_factory=list)  # none, or two: yes, no
    label: str = ""  # of the branch to it
    label_size: tuple[float, float] = (0.0, 0.0)
    content: Any = None
    x: float = 0.0  # middle of its upper edge
    y: float = 0.0  # upper edge, downwards
    bar: float = 0.0  # height at which its branches split

    def walk(self) -> Iterator[Box]:
        """Yield the box and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def lay_out(root: Box) -> tuple[float, float]:
    """Lay out all boxes of a tree, the upper left corner at (0, 0); return the total width and height.

    Examples
    --------
    >>> tree = Box(2, 1, [Box(1, 1), Box(1, 1)])
    >>> width, height = lay_out(tree)
    >>> round(width, 2), [round(box.x, 2) for box in tree.walk()]
    (2.16, [1.08, 0.5, 1.66])
    """
    outline = _spread(root)
    left, right = min(low for low, _ in outline), max(high for _, high in outline)
    rows: list[list[Box]] = [[root]]
    root.x = -left
    while rows[-1]:
        for box in rows[-1]:
            for child in box.children:
                child.x += box.x
        rows.append([child for box in rows[-1] for child in box.children])
    top = 0.0
    for row, below in pairwise(rows):
        bottom = top + max(box.height for box in row)
        for box in row:
            box.y, box.bar = top, bottom + BAR_GAP
        if not below:
            return right - left, bottom
        top = bottom + BAR_GAP + 2 * LABEL_GAP + max(box.label_size[1] for box in below)
    raise AssertionError


def _spread(box: Box) -> Outline:
    """Space the children of a box, with `x` relative to it; return the left and right end of each row below."""
    half = max(box.width, box.label_size[0]) / 2
    outline = [(-half, half)]
    if not box.children:
        return outline
    one, other = (_spread(child) for child in box.children)
    apart = max(a[1] - b[0] for a, b in zip(one, other, strict=False)) + SIDE_GAP
    box.children[0].x, box.children[1].x = -apart / 2, apart / 2
    for level in range(max(len(one), len(other))):
        ends = [side[level][0] + shift for side, shift in ((one, -apart / 2), (other, apart / 2)) if level < len(side)]
        stop = [side[level][1] + shift for side, shift in ((one, -apart / 2), (other, apart / 2)) if level < len(side)]
        outline.append((min(ends), max(stop)))
    return outline


def pack(sizes: Sequence[tuple[float, float]]) -> tuple[list[tuple[float, float]], float, float]:
    """Return upper left corners of sheets that do not overlap, roughly in order, and the total width and height.

    Examples
    --------
    >>> places, width, height = pack([(3, 2), (1, 1)])
    >>> places, width, height
    ([(0.0, 0.0), (3.5, 0.0)], 4.5, 2.0)
    """
    widest, total = max(width for width, _ in sizes), sum(width + SHEET_GAP for width, _ in sizes)
    best: tuple[float, Any] | None = None
    for room in np.linspace(widest, max(widest, total), 12):
        places = _shelve(sizes, float(room) + 1e-9)
        width = max(x + size[0] for (x, _), size in zip(places, sizes, strict=True))
        height = max(y + size[1] for (_, y), size in zip(places, sizes, strict=True))
        badness = max(width / SHAPE, height) + 0.02 * (width + height)
        if best is None or badness < best[0] - 1e-9:
            best = badness, (places, width, height)
    assert best is not None
    return best[1]


def _shelve(sizes: Sequence[tuple[float, float]], room: float) -> list[tuple[float, float]]:
    """Place each sheet as high, then as far left, as it fits."""
    taken = np.zeros((0, 4))  # left, top, right, bottom, with the gap
    places = []
    for width, height in sizes:
        corners = [(y, x) for y in {0.0, *taken[:, 3].tolist()} for x in {0.0, *taken[:, 2].tolist()}]
        for y, x in sorted(corners):
            is_beside = (x >= taken[:, 2]) | (taken[:, 0] >= x + width + SHEET_GAP)
            is_below = (y >= taken[:, 3]) | (taken[:, 1] >= y + height + SHEET_GAP)
            if (x == 0 or x + width <= room) and np.all(is_beside | is_below):
                break
        places.append((x, y))
        taken = np.vstack((taken, [x, y, x + width + SHEET_GAP, y + height + SHEET_GAP]))
    return places
