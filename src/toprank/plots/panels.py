"""Several displays side by side, with one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toprank.errors import InputTypeError
from toprank.plots.curves import GainsDisplay, PrecisionAtKDisplay
from toprank.plots.levels import DepthDisplay, ImbalanceDisplay
from toprank.plots.style import (
    TEXT_SIZE,
    MethodStyle,
    complete_styles,
    house_style,
    new_figure,
    short_names,
    text_width,
    write_over,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_LINES = (PrecisionAtKDisplay, GainsDisplay, ImbalanceDisplay, DepthDisplay)
PANEL = (4.4, 4.2)  # inches of one panel


def plot_panels(
    displays: Sequence[Any],
    *,
    title: str = "",
    n_columns: int = 3,
    styles: Mapping[str, MethodStyle] | None = None,
) -> Figure:
    """Figure with one panel per display, each under its own title, and one legend below for all.

    Parameters
    ----------
    displays : sequence of PrecisionAtKDisplay, GainsDisplay, ImbalanceDisplay or DepthDisplay
    title : str, optional
        Title of the whole figure.
    n_columns : int, default=3
        Panels per row.
    styles : dict of str to MethodStyle, optional
        From `method_styles`; by default methods get styles in order of appearance.

    Examples
    --------
    >>> from toprank.plots import ImbalanceDisplay
    >>> panels = [ImbalanceDisplay([10, 50], {"MetaAP": [0.5, 0.7]}, title=name) for name in ("seed 1", "seed 2")]
    >>> [ax.get_title(loc="left") for ax in plot_panels(panels).axes]
    ['seed 1', 'seed 2']
    """
    wrong = [type(display).__name__ for display in displays if not isinstance(display, OF_LINES)]
    if wrong or not displays:
        raise InputTypeError(
            f"plot_panels needs a list of displays of lines. Got {wrong[0] if wrong else 'an empty one'} instead. "
            f"Hint: these are {', '.join(kind.__name__ for kind in OF_LINES)}."
        )
    names = list(dict.fromkeys(name for display in displays for name in display.methods))
    chosen = complete_styles(names, styles)
    width = min(n_columns, len(displays))
    height = -(-len(displays) // width)
    with house_style("plot_panels"):
        figure = new_figure((PANEL[0] * width, PANEL[1] * height))
        axes = [figure.add_subplot(height, width, place + 1) for place in range(len(displays))]
        lines: dict[str, Any] = {}
        for place, (display, ax) in enumerate(zip(displays, axes, strict=True)):
            display.plot(ax, styles=chosen, labels="none")
            if place % width:
                ax.set_ylabel("")
            lines |= {str(line.get_gid()): line for line in ax.get_lines() if line.get_gid()}
        if title:
            write_over(figure, title)
        # One legend below all panels, in as many columns as fit the width; the figure grows by its height.
        known = {name: lines[f"method: {name}"] for name in names if f"method: {name}" in lines}
        short = short_names(known)
        widest = text_width(figure, short.values(), TEXT_SIZE) + 0.9  # the line before it and the gap after
        n_entries = max(min(int((figure.get_figwidth() - 0.3) / widest), len(known)), 1)  # per row
        figure.set_figheight(figure.get_figheight() + 1.7 * TEXT_SIZE / 72 * -(-len(known) // n_entries))
        look: dict[str, Any] = {"frameon": False, "fontsize": TEXT_SIZE, "handlelength": 2.6}
        entries = list(known.values()), list(short.values())
        figure.legend(*entries, loc="outside lower center", ncols=n_entries, **look)
    return figure
