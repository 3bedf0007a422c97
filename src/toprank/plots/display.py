"""`Display`: the base class of all displays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toprank.data.frames import make_frame
from toprank.plots.style import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    @property
    @abstractmethod
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""

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

    def _keep(self, ax: Axes) -> None:
        self._set(ax_=ax, figure_=ax.figure.figure)  # for a subfigure, the whole figure

    def _set(self, **values: Any) -> None:
        """Replace the given values by checked ones; the class is frozen for its users."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _repr_png_(self) -> bytes | None:
        """The drawing for a notebook; None, so that the text is shown, if nothing is drawn yet."""
        from toprank.plots.saving import figure_bytes

        return None if self.figure_ is None else figure_bytes(self.figure_, ".png")

    def __repr__(self) -> str:
        names = self.methods
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        return f"<{type(self).__name__} of {counted(len(names), 'method')}: {shown}>"
