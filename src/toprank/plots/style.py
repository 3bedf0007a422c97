"""One look for all plots: the palette, the sizes, the figure, and texts that fit.

Colours are those of Okabe and Ito without yellow, which is illegible on white: seven colours that people with any kind
of colour vision can distinguish. The eighth method gets the first colour again with another line style and marker.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from toprank.words.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#444444")
LINES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.3, 1.3)), (0, (6, 1.4, 1.3, 1.4)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

INK, FAINT, GRID = "#222222", "#6B6B6B", "#E4E4E4"
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 14.0, 12.0, 10.5
RESOLUTION = 150  # pixels per inch: sharp on a screen and in a document
LONGEST_NAME = 40

LOOK: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # ships with matplotlib: the same text widths on every machine
    "font.size": TEXT_SIZE,
    "text.usetex": False,
    "text.parse_math": False,  # a method may have a $ in its name
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.unicode_minus": True,
}


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn.

    Attributes
    ----------
    colour : str
        As "#RRGGBB".
    line : str or tuple
        A matplotlib line style.
    marker : str
        A matplotlib marker.
    """

    colour: str
    line: Any
    marker: str


def method_styles(names: Iterable[str]) -> dict[str, MethodStyle]:
    """Style of every method, in the order given; pass the result to every `.plot` of a page.

    Examples
    --------
    >>> styles = method_styles(["MetaAP", "Gini", "Entropy"])
    >>> styles["MetaAP"].colour, styles["Gini"].marker
    ('#0072B2', 's')
    """
    return {name: _style(position) for position, name in enumerate(dict.fromkeys(names))}


def complete_styles(names: Iterable[str], given: Mapping[str, MethodStyle] | None) -> dict[str, MethodStyle]:
    """Styles of `names`: those given, and for other names the first unused ones."""
    if given is None:
        return method_styles(names)
    names, styles = list(names), dict(given)
    free = (style for style in map(_style, range(len(styles) + len(names))) if style not in given.values())
    for name in names:
        if name not in styles:
            styles[name] = next(free)
    return {name: styles[name] for name in names}


def _style(position: int) -> MethodStyle:
    line = LINES[position // len(PALETTE) % len(LINES)]
    return MethodStyle(PALETTE[position % len(PALETTE)], line, MARKERS[position % len(MARKERS)])


@contextmanager
def drawing(ax: Axes | None, size: tuple[float, float], owner: str) -> Iterator[Axes]:
    """Axes to draw on in the house style, on a new figure of `size` inches if none are given."""
    with house_style(f"{owner}.plot"):
        yield new_figure(size).add_subplot() if ax is None else ax


@contextmanager
def house_style(caller: str) -> Iterator[None]:
    """Matplotlib's defaults with our settings on top; the caller's settings are restored at the end."""
    import_matplotlib(caller)
    import matplotlib.style

    with matplotlib.style.context(LOOK, after_reset=True):
        yield


def import_matplotlib(caller: str) -> Any:
    """The matplotlib module, or an ImportError that says what needs it and how to install it."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            f"{caller} needs the package 'matplotlib', which is not installed. Hint: pip install \"toprank[plots]\"."
        ) from error
    return matplotlib


def new_figure(size: tuple[float, float]) -> Figure:
    """A white figure of `size` inches with room for text beside its axes.

    pyplot does not know it: it is never shown automatically, and is freed with the last reference.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.07)
    figure = Figure(figsize=size, dpi=RESOLUTION, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)  # it keeps what measures texts, which the default canvas makes anew for each of them
    return figure


def dress_axes(ax: Axes, *, grid: Any = "both") -> None:
    """Keep a frame of two faint lines, a light grid behind the data, and readable tick labels."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#B0B0B0")
    ax.set_axisbelow(True)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.9)
    ax.tick_params(labelsize=TEXT_SIZE, labelcolor=INK, color="#B0B0B0", length=3.5)


def write_title(ax: Axes, text: str, *, is_own: bool) -> None:
    """Write the title on the left: above the whole figure if it is our own, else above the axes."""
    if not text:
        return
    if is_own:
        write_over(ax.figure.figure, text)
    else:
        text = wrap(ax.figure.figure, text, axes_width(ax), TEXT_SIZE, "bold")
        ax.set_title(text, loc="left", fontsize=TEXT_SIZE, weight="bold", color=INK, parse_math=False)


def annotate(ax: Axes, text: str, xy: tuple[float, float], shift: tuple[float, float] = (0, 0), **look: Any) -> None:
    """Write a small text, moved from a position by `shift` printer's points."""
    options: dict[str, Any] = {"textcoords": "offset points", "fontsize": SMALL_SIZE, "color": INK} | look
    ax.annotate(text, xy, xytext=shift, **options)


def settle_layout(figure: Figure) -> None:
    """Give the axes of a figure the size that its current layout, if any, leaves them."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()


def axes_width(ax: Axes) -> float:
    """Width of the axes in inches."""
    return ax.get_window_extent().width / ax.figure.figure.dpi


def write_over(figure: Figure, text: str) -> None:
    """Write a title above a whole figure, in as many lines as needed."""
    text = wrap(figure, text, figure.get_figwidth() - 0.3, TITLE_SIZE, "bold")
    figure.suptitle(text, x=0.012, ha="left", fontsize=TITLE_SIZE, weight="bold")


def wrap(figure: Figure, text: str, width: float, size: float, weight: str = "normal") -> str:
    """The text in as few lines of at most `width` inches as possible, of similar length."""
    text = visible(text)
    lines, letters = [text], len(text)
    width_of = cache(lambda line: text_width(figure, [line], size, weight))  # most lines come back many times
    while letters > 10 and max(map(width_of, lines)) > width:
        letters -= 1
        lines = textwrap.wrap(text, letters)
    shorter = lines
    while len(shorter) == len(lines) and letters > 10:
        lines, letters = shorter, letters - 1
        shorter = textwrap.wrap(text, letters)
    return "\n".join(lines)


def text_width(figure: Figure, texts: Iterable[str], size: float, weight: str = "normal") -> float:
    """Inches of the widest text."""
    widest = 0.0
    for text in texts:
        probe = figure.text(0, 0, visible(text), fontsize=size, weight=weight, parse_math=False)
        widest = max(widest, probe.get_window_extent().width)
        probe.remove()
    return widest / figure.dpi


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Names for a plot: on one line, with the middle of very long ones cut out if they still differ."""
    plain = {name: visible(" ".join(name.split())) for name in names}
    half = (LONGEST_NAME - 1) // 2
    short = {
        name: text if len(text) <= LONGEST_NAME else f"{text[:half].rstrip()}…{text[-half:].lstrip()}"
        for name, text in plain.items()
    }
    return short if len(set(short.values())) == len(set(plain.values())) else plain


def percent(share: float) -> str:
    """A share as text, such as "5 %" or "0.25 %".

    Examples
    --------
    >>> percent(0.05), percent(0.0025), percent(0.61803)
    ('5 %', '0.25 %', '61.8 %')
    """
    return f"{100 * share:.3g} %"
