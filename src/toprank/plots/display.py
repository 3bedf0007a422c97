"""`Display`: what all displays have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toprank.data.frames import make_frame
from toprank.plots.style import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Display:
    """The data of a plot; `figure_` and `ax_` are there once it was drawn.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure or None
        What the display was last drawn on.
    ax_ : matplotlib.axes.Axes or None
    """

    figure_: Any = field(init=False, default=None)
    ax_: Any = field(init=False, default=None)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        raise NotImplementedError

    def columns(self) -> dict[str, Any]:
        """The data as columns by name, all of one length."""
        raise NotImplementedError

    def frame(self, backend: str | None = None) -> Any:
        """The data as a frame: of the library named, else of the first that is installed.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
        """
        return make_frame(self.columns(), backend)

    def plot(self, ax: Axes | None = None) -> Display:
        """Draw the data, on a figure of its own where no axes are given."""
        raise NotImplementedError

    def _keep(self, ax: Axes) -> None:
        self._set(ax_=ax, figure_=ax.figure.figure)  # of a subfigure, the whole figure

    def _set(self, **values: Any) -> None:
        """Put checked values in the place of those given; the class is frozen to its users."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _repr_png_(self) -> bytes | None:
        """The drawing for a notebook; None, and with it the text, as long as nothing is drawn."""
        from toprank.plots.saving import figure_bytes

        return None if self.figure_ is None else figure_bytes(self.figure_, ".png")

    def __repr__(self) -> str:
        names = self.methods
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        return f"<{type(self).__name__} of {counted(len(names), 'method')}: {shown}>"
