"""`RocLevelsDisplay`: the ROC curve of a tree level by level, and its area by depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.roc import RocCurve
from toprank.plots.display import Display
from toprank.plots.inputs import Floats, check_figures
from toprank.plots.lines import write_axis_labels
from toprank.plots.roc import LEGEND, OPTIMAL_LINE, RATES, SIDE, check_optimal, draw_curve, draw_optimal, prepare_rates
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    dress_axes,
    house_style,
    new_figure,
    write_over,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPTIMAL_COLOUR = PALETTE[3]  # different from the blues of the depths


@dataclass(frozen=True, eq=False, repr=False)
class RocLevelsDisplay(Display):
    """ROC curve of a tree level by level, and its area by depth.

    Parameters
    ----------
    curves : sequence of RocCurve
        One per depth, the smallest first.
    optimal : RocCurve, optional
        The best possible curve, if known.
    depths : sequence of int, optional
        The depths, increasing; 1, 2, ... by default.
    title : str, optional
        Replaces the title; "" leaves it out.

    References
    ----------
    S. Clémençon, N. Vayatis, "Tree-based ranking methods", IEEE Transactions on Information Theory 55, 2009,
    figures 1, 4 and 5.

    Examples
    --------
    >>> from toprank.metrics import RocCurve
    >>> levels = [RocCurve([0, 0.3, 1], [0, 0.7, 1]), RocCurve([0, 0.1, 0.3, 1], [0, 0.5, 0.7, 1])]
    >>> display = RocLevelsDisplay.from_curves(levels)
    >>> display
    <RocLevelsDisplay of 2 depths, AUC 0.700 to 0.740>
    >>> [ax.get_ylabel() for ax in display.plot().ax_]
    ['True positive rate (%)', 'Area under the curve']
    """

    curves: Sequence[RocCurve]
    optimal: RocCurve | None = None
    depths: Any = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        curves = list(self.curves) if isinstance(self.curves, Sequence) else []
        if not curves or not all(isinstance(curve, RocCurve) for curve in curves):
            raise InputTypeError(
                f"'curves' of {caller} must be a list of RocCurve, one per depth. Got {self.curves!r} instead."
            )
        check_optimal(self.optimal, caller)
        given = range(1, len(curves) + 1) if self.depths is None else self.depths
        depths = check_figures(given, "depths", caller=caller, n=len(curves), rising=True)
        self._set(curves=curves, depths=depths)

    @classmethod
    def from_curves(
        cls,
        curves: Sequence[RocCurve],
        *,
        optimal: RocCurve | None = None,
        depths: Sequence[int] | None = None,
        title: str | None = None,
    ) -> RocLevelsDisplay:
        """Display of one curve per depth; parameters as in the class."""
        return cls(curves, optimal, depths, title)

    @property
    def methods(self) -> list[str]:
        """Names of the curves: their depths."""
        return [f"depth {depth:g}" for depth in self.depths]

    @property
    def areas(self) -> Floats:
        """Area under each curve, shape (n_depths,)."""
        return np.array([curve.area for curve in self.curves])

    def columns(self) -> dict[str, Any]:
        """Columns method, depth (NaN for the optimal curve), alpha and beta; one row per knot."""
        parts = list(zip(self.methods, self.depths, self.curves, strict=True))
        if self.optimal is not None:
            parts.append(("optimal", np.nan, self.optimal))
        return {
            "method": [name for name, _, curve in parts for _ in curve.alpha],
            "depth": np.concatenate([np.full(len(curve.alpha), depth) for _, depth, curve in parts]),
            "alpha": np.concatenate([curve.alpha for *_, curve in parts]),
            "beta": np.concatenate([curve.beta for *_, curve in parts]),
        }

    def plot(self, ax: Any = None) -> RocLevelsDisplay:
        """Draw the curves, from pale to dark with depth, and the areas beside them in the same colours.

        Parameters
        ----------
        ax : pair of matplotlib.axes.Axes, optional
            For the curves and for the areas. By default the display makes its own figure, `figure_`; `ax_` is the
            pair of axes.
        """
        with house_style(f"{type(self).__name__}.plot"):
            left, right = self._axes(ax)
            colours = _shades(len(self.curves))
            prepare_rates(left)
            handles = [
                draw_curve(left, curve, color=colour, linewidth=1.8, gid=f"method: {name}")
                for name, curve, colour in zip(self.methods, self.curves, colours, strict=True)
            ]
            named = [(handles[place], self.methods[place]) for place in sorted({0, len(handles) - 1})]
            if self.optimal is not None:
                named.append((draw_optimal(left, self.optimal, OPTIMAL_COLOUR), "optimal"))
            write_axis_labels(left, *RATES)
            left.legend([line for line, _ in named], [text for _, text in named], loc="lower right", **LEGEND)
            self._draw_areas(right, colours)
            title = "ROC curve, level by level" if self.title is None else self.title
            if ax is None and title:
                write_over(left.figure.figure, title)
            elif ax is not None:
                write_title(left, title, is_own=False)
        self._keep(left)
        self._set(ax_=(left, right))
        return self

    def _axes(self, ax: Any) -> tuple[Axes, Axes]:
        if ax is None:
            figure = new_figure((2 * SIDE - 0.4, SIDE - 0.4))
            return figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
        pair = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(pair) != 2:
            raise InputError(
                f"The 'ax' parameter of {type(self).__name__}.plot must be a pair of axes, for the curves and for "
                f"the areas. Got {len(pair)} instead. Hint: figure.subplots(1, 2)."
            )
        return pair[0], pair[1]

    def _draw_areas(self, ax: Axes, colours: Sequence[Any]) -> None:
        from matplotlib.ticker import MaxNLocator

        dress_axes(ax)
        areas = self.areas
        ax.plot(self.depths, areas, color=FAINT, linewidth=1.3, zorder=2, gid="areas")
        ax.scatter(self.depths, areas, s=62, c=colours, edgecolors=INK, linewidths=0.6, zorder=3)
        values = areas if self.optimal is None else np.append(areas, self.optimal.area)
        low, high = float(values.min()), float(values.max())
        margin = max(0.1 * (high - low), 0.005)
        ax.set_ylim(low - margin, high + margin)
        reach = max(0.04 * float(np.ptp(self.depths)), 0.4)
        ax.set_xlim(self.depths[0] - reach, self.depths[-1] + reach)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        write_axis_labels(ax, "Depth", "Area under the curve")
        if self.optimal is None:
            return
        best = self.optimal.area
        ax.axhline(best, color=OPTIMAL_COLOUR, linestyle=OPTIMAL_LINE, linewidth=2.0, zorder=1.9, gid="optimal")
        ax.annotate(
            f"optimal {best:.3f}",
            xy=(0, best),
            xycoords=ax.get_yaxis_transform(),
            xytext=(6, -5),
            textcoords="offset points",
            va="top",
            fontsize=SMALL_SIZE,
            color=INK,
            gid="label: optimal",
        )

    def __repr__(self) -> str:
        areas = self.areas
        depths = f"{len(areas):,} depths" if len(areas) > 1 else "1 depth"
        return f"<{type(self).__name__} of {depths}, AUC {areas[0]:.3f} to {areas[-1]:.3f}>"


def _shades(n: int) -> list[Any]:
    """Blues from pale to dark."""
    from matplotlib import colormaps

    return [colormaps["Blues"](share) for share in (np.linspace(0.32, 1.0, n) if n > 1 else [0.8])]
