"""Checks of drawings: everything inside the figure, nothing over anything else; and ways to find what was drawn."""

import itertools

import matplotlib
from matplotlib.text import Text

PIXEL = 1.0


def texts_of(figure, start=("label:", "mean (%):", "size:", "time:", "note:", "critical difference", "budget")):
    """Texts that we placed ourselves: those with a name of ours."""
    return [text for text in figure.findobj(Text) if text.get_text() and (text.get_gid() or "").startswith(start)]


def assert_inside(figure):
    """Nothing that is drawn leaves the figure, tick labels and titles included."""
    figure.draw_without_rendering()
    box = figure.get_tightbbox()  # in inches
    assert box.x0 * figure.dpi >= -PIXEL
    assert box.y0 * figure.dpi >= -PIXEL
    assert box.x1 * figure.dpi <= figure.bbox.width + PIXEL
    assert box.y1 * figure.dpi <= figure.bbox.height + PIXEL


def assert_apart(texts):
    """No two of the texts overlap."""
    boxes = {text.get_gid() + text.get_text(): Text.get_window_extent(text) for text in texts}
    for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
        apart = a.x1 <= b.x0 + PIXEL or b.x1 <= a.x0 + PIXEL or a.y1 <= b.y0 + PIXEL or b.y1 <= a.y0 + PIXEL
        assert apart, f"{one!r} overlaps {other!r}"


def lines_of(ax):
    """Lines with a name of ours, by that name."""
    return {line.get_gid(): line for line in ax.get_lines() if line.get_gid()}


def legend_of(ax):
    """Texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def settings():
    """All settings but the backend, which is chosen when it is first looked at."""
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
