"""`Display`, the base class of all displays, and `save_figure`, which writes a file whole or not at all."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from toprank.data.frames import make_frame
from toprank.errors import InputError, InputTypeError
from toprank.plots.style import RESOLUTION, import_matplotlib
from toprank.words.counts import plural
from toprank.words.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Metadata that would record when, or by which version, a file was written.
METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
FILE_LOOK: dict[str, Any] = {
    "svg.hashsalt": "toprank",  # for names of clip paths, which are random otherwise
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # TrueType, as publishers require
    "savefig.bbox": None,
    "savefig.facecolor": "auto",
    "savefig.transparent": False,
    "text.usetex": False,
}


@dataclass(frozen=True, eq=False, repr=False)
class Display(ABC):
    """The data of a plot; `figure_` and `ax_` are set when it is drawn.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure or None
        The figure it was last drawn on.
    ax_ : matplotlib.axes.Axes or None
    """

    figure_: Any = field(init=False, default=None)
    ax_: Any = field(init=False, default=None)
    _methods_in: ClassVar[str]  # the field with the methods
    _noun: ClassVar[str] = "method"  # what is drawn

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(getattr(self, self._methods_in))

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The data as columns by name, all of the same length."""

    def frame(self, backend: str | None = None) -> Any:
        """The data as a frame of the named library, or of the first one installed.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
        """
        return make_frame(self.columns(), backend)

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Display:
        """Draw the data, on a new figure if no axes are given."""

    def _keep(self, ax: Axes) -> Self:
        """Remember what the data were drawn on."""
        self._set(ax_=ax, figure_=ax.figure.figure)  # for a subfigure, the whole figure
        return self

    def _set(self, **values: Any) -> None:
        """Replace the given values by checked ones; the class is frozen for its users."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _repr_png_(self) -> bytes | None:
        """The drawing for a notebook; None, so that the text is shown, if nothing is drawn yet."""
        return None if self.figure_ is None else figure_bytes(self.figure_, ".png")

    def __repr__(self) -> str:
        names = self.methods
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        return f"<{type(self).__name__} of {plural(len(names), self._noun)}: {shown}>"


def save_figure(what: Display | Figure, path: str | Path) -> Path:
    """Write a display or a figure as .png, .svg or .pdf, and return the path.

    Parameters
    ----------
    what : Display or matplotlib.figure.Figure
        A display that is not drawn yet is drawn first, on its own figure.
    path : str or path-like
        The extension sets the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from toprank.plots import PrecisionAtKDisplay
    >>> display = PrecisionAtKDisplay.from_scores([1, 0, 1, 0], {"mine": [0.9, 0.8, 0.7, 0.6]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_figure(display, pathlib.Path(folder, "precision.png"))
    ...     path.name, path.stat().st_size > 1000
    ('precision.png', True)
    """
    from toprank.files.atomic import write_atomically

    import_matplotlib("save_figure")
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in METADATA:
        raise InputError(
            f"save_figure writes {', '.join(METADATA)}, but the name {path.name!r} ends in none of them. "
            "Hint: the ending sets the format."
        )
    if isinstance(what, Display) and what.figure_ is None:
        what.plot()
    figure: Any = what.figure_ if isinstance(what, Display) else what
    if not hasattr(figure, "savefig"):
        raise InputTypeError(
            f"save_figure takes a display or a matplotlib Figure. Got {type(figure).__name__} instead. "
            "Hint: for axes, pass ax.figure."
        )
    write_atomically(path, figure_bytes(figure, ending))
    return path


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """The content of a file with this extension."""
    matplotlib = import_matplotlib("save_figure")
    buffer = io.BytesIO()
    with matplotlib.rc_context(FILE_LOOK), _visible_texts(figure):
        figure.savefig(buffer, format=ending[1:], dpi=RESOLUTION, metadata=METADATA[ending])
    return buffer.getvalue()


@contextmanager
def _visible_texts(figure: Figure) -> Iterator[None]:
    """Escape control characters in texts and element names while a figure is saved.

    An SVG contains both unchanged, and no program reads a file with a control character.
    """
    from matplotlib.text import Text

    changed: list[tuple[Any, str, str]] = []
    for part in figure.findobj():
        for what in ("text", "gid") if isinstance(part, Text) else ("gid",):
            value = getattr(part, f"get_{what}")()
            if isinstance(value, str) and visible(value) != value:
                changed.append((part, what, value))
                getattr(part, f"set_{what}")(visible(value))
    try:
        yield
    finally:
        for part, what, value in changed:
            getattr(part, f"set_{what}")(value)
