"""`GainsDisplay`: the share of positives found by the share of cases checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.errors import InputError
from toprank.plots.curves import long_columns, thinned
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, check_scores, check_series, check_share, read_columns, series_of
from toprank.plots.labels import FEW, add_legend, check_naming, name_lines
from toprank.plots.lines import draw_lines, in_percent, line_figure, without_figures, write_axis_labels
from toprank.plots.style import FAINT, INK, SMALL_SIZE, MethodStyle, complete_styles, percent, short_names, write_title
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class GainsDisplay(Display):
    """Cumulative gains by method: the share of all positives found, by the share of cases checked.

    Parameters
    ----------
    checked : array-like of shape (n_points,)
        Shares of the cases checked, highest scores first; increasing, in [0, 1].
    found : dict of str to array-like of shape (n_points,)
        Share of the positives among them, by method.
    budget : float, optional
        The share of cases that can be checked; marked in the plot and named in the title.
    n_cases : int, optional
        Number of cases, to show the budget in cases too.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> y, score = [1, 0, 1, 0, 0, 0, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    >>> display = GainsDisplay.from_scores(y, {"mine": score}, budget=2)
    >>> display.at_budget()
    {'mine': 0.5}
    >>> display.plot().figure_.get_suptitle()
    'Checking 25 % of the cases finds 50 % of the positives'
    """

    checked: Any
    found: Mapping[str, Any]
    budget: float | None = None
    n_cases: int | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        checked = check_figures(self.checked, "checked", caller=caller, rising=True)
        if checked[0] < 0 or checked[-1] > 1:
            raise InputError(f"'checked' of {caller} must be shares in [0, 1]. Hint: 5 % is 0.05.")
        if self.budget is not None:
            check_share(self.budget, "budget", caller=caller)
        self._set(checked=checked, found=check_series(self.found, len(checked), "found", caller=caller))

    @classmethod
    def from_scores(
        cls,
        y_true: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        budget: int | float | None = None,
        pos_label: Any = None,
        title: str | None = None,
    ) -> GainsDisplay:
        """Display of several models' scores of the same cases.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two values.
        scores : dict of str to array-like of shape (n,)
            Scores by name of the model; larger is more suspicious.
        budget : int or float, optional
            How many cases can be checked: an int is a number of cases, a float a share of them, rounded up.
        pos_label : optional
            The positive label; the larger of the two by default.
        """
        from toprank.metrics import recall_at_k_curve

        caller = f"{cls.__name__}.from_scores"
        curves = {}
        for name, score in check_scores(scores, caller=caller).items():
            k, curves[name] = recall_at_k_curve(y_true, score, pos_label=pos_label)
        n = len(k)
        n_checked = None if budget is None else _cases_of(budget, n, caller=caller)
        # Finer at the top, where the curves bend; the budget is one of the points, so that its figure is exact.
        chosen = np.unique(np.concatenate([thinned(max(n // 20, 1)), thinned(n), [n_checked or n]]))
        found = {name: np.concatenate([[0.0], curve[chosen - 1]]) for name, curve in curves.items()}
        checked = np.concatenate([[0.0], chosen / n])
        return cls(checked, found, None if n_checked is None else n_checked / n, n, title)

    @classmethod
    def from_frame(
        cls, frame: Any, *, budget: float | None = None, n_cases: int | None = None, title: str | None = None
    ) -> GainsDisplay:
        """Display of a frame with the columns method, checked and found, as returned by `frame`."""
        caller = f"{cls.__name__}.from_frame"
        columns = read_columns(frame, ["method", "checked", "found"], caller=caller)
        checked, series = series_of(columns, "checked", ["found"], caller=caller)
        return cls(checked, series["found"], budget, n_cases, title)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(self.found)

    def columns(self) -> dict[str, Any]:
        """Columns method, checked and found; one row per method and point."""
        return long_columns(self.checked, "checked", found=self.found)

    def at_budget(self) -> dict[str, float]:
        """Share of the positives found within the budget, by method, interpolated between the points."""
        if self.budget is None:
            raise InputError(f"{type(self).__name__} has no budget. Hint: give it one, such as budget=0.05.")
        return {name: float(np.interp(self.budget, self.checked, values)) for name, values in self.found.items()}

    def plot(
        self,
        ax: Axes | None = None,
        *,
        up_to: float = 1.0,
        styles: Mapping[str, MethodStyle] | None = None,
        labels: str = "auto",
    ) -> GainsDisplay:
        """Draw one curve per method, the diagonal of a random order and the budget.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        up_to : float, default=1.0
            Share of the cases at which the x-axis ends.
        styles : dict of str to MethodStyle, optional
            From `method_styles`, so that a method looks the same in all plots.
        labels : {"auto", "direct", "legend", "none"}
            Names beside the ends of the curves, in a legend or nowhere. With all cases, the curves end in one point, so
            "auto" writes a legend.
        """
        caller = type(self).__name__
        check_naming(labels, caller=f"{caller}.plot")
        check_share(up_to, "up_to", caller=f"{caller}.plot")
        chosen = complete_styles(self.methods, styles)
        points = np.append(self.checked[self.checked < up_to], min(up_to, self.checked[-1]))
        found = in_percent({name: np.interp(points, self.checked, values) for name, values in self.found.items()})
        meet = up_to >= 0.9
        names = self.methods if labels == "direct" or not meet or len(found) > FEW else []
        with line_figure(ax, names, caller) as (axes, is_own):
            ends = draw_lines(axes, 100 * points, found, chosen)
            axes.set_xlim(0, 100 * up_to)
            axes.set_ylim(0, 101)  # so that a line at 100 % is not clipped
            _draw_random(axes, 100 * up_to, self.budget)
            if self.budget is not None and self.budget <= up_to:
                self._draw_budget(axes, chosen)
            write_axis_labels(axes, "Cases checked (%)", "Positives found (%)", without_figures(found))
            write_title(axes, self._title() if self.title is None else self.title, is_own=is_own)
            if labels == "legend" or (labels == "auto" and meet):
                best_first = self._order(ends)
                add_legend(axes, best_first, outside=is_own and len(ends) > FEW, place="center right")
            else:
                name_lines(axes, ends, chosen, labels, is_own=is_own)
        self._keep(axes)
        return self

    def _order(self, names: Mapping[str, Any]) -> list[str]:
        """The names, best first: within the budget, or over all cases if there is none."""
        mean = {name: float(np.nanmean(self.found[name])) for name in names}
        value = mean if self.budget is None else self.at_budget()
        return sorted(names, key=lambda name: -value[name] if np.isfinite(value[name]) else np.inf)

    def _title(self) -> str:
        if self.budget is None:
            return "Positives found, by the share of cases checked"
        values = {name: value for name, value in self.at_budget().items() if np.isfinite(value)}
        if not values:
            return "Positives found, by the share of cases checked"
        best = max(values, key=lambda name: values[name])
        by = f" ({short_names(values)[best]})" if len(self.found) > 1 else ""
        most = "up to " if len(self.found) > 1 else ""
        return f"Checking {percent(self.budget)} of the cases finds {most}{percent(values[best])} of the positives{by}"

    def _draw_budget(self, ax: Axes, styles: Mapping[str, MethodStyle]) -> None:
        at = 100 * float(self.budget or 0)
        ax.axvline(at, color=INK, linewidth=1.2, zorder=1.5)
        for name, value in self.at_budget().items():
            ax.plot([at], [100 * value], marker="o", markersize=7, color=styles[name].colour, zorder=4, clip_on=False)
        cases = "" if self.n_cases is None else f"{plural(round(at / 100 * self.n_cases), 'case')}, "
        is_left = at > 0.6 * ax.get_xlim()[1]
        ax.annotate(
            f"budget: {cases}{percent(at / 100)}",
            xy=(at, 0),
            xytext=(-6 if is_left else 6, 6),
            textcoords="offset points",
            ha="right" if is_left else "left",
            va="bottom",
            fontsize=SMALL_SIZE,
            gid="budget",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
        )


def _draw_random(ax: Axes, end: float, budget: float | None) -> None:
    """The diagonal: the positives found in a random order, with its name along the line.

    The name avoids that of the budget, and is above the line if there is no room below.
    """
    is_near = budget is not None and 0.2 < 100 * budget / end < 0.7
    at, is_flat = (0.8 if is_near else 0.5) * end, end < 60
    ax.plot([0, end], [0, end], color=FAINT, linestyle=(0, (2, 2)), linewidth=1.3, zorder=1.8, gid="random")
    ax.text(
        at,
        at + (1.5 if is_flat else -1.5),
        "random order",
        rotation=45,  # along the line, whatever the shape of the axes
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="center",
        va="bottom" if is_flat else "top",
        fontsize=SMALL_SIZE,
        color=FAINT,
    )


def _cases_of(budget: Any, n: int, *, caller: str) -> int:
    """Number of cases of a budget."""
    if isinstance(budget, int | np.integer) and not isinstance(budget, bool):
        if 1 <= budget <= n:
            return int(budget)
        raise InputError(
            f"The 'budget' parameter of {caller} must be at most the number of cases, {n:,}, and at least 1. "
            f"Got {budget:,} instead. Hint: a share is a float, such as 0.02."
        )
    check_share(budget, "budget", caller=caller)
    return min(max(int(np.ceil(budget * n * (1 - 1e-9))), 1), n)
