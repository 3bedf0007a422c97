"""Curves by method: precision by k, positives found by cases checked, held-out cases by round of boosting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.metrics.at_k import cases_of_share
from toprank.metrics.checks import is_int
from toprank.plots.display import Display
from toprank.plots.inputs import (
    check_figures,
    check_scores,
    check_series,
    check_share,
    long_columns,
    read_columns,
    read_series,
)
from toprank.plots.lines import (
    FEW,
    add_legend,
    check_naming,
    draw_diagonal,
    draw_lines,
    draw_series,
    in_percent,
    line_figure,
    name_diagonal,
    name_lines,
    without_figures,
    write_axis_labels,
)
from toprank.plots.style import (
    INK,
    MethodStyle,
    annotate,
    complete_styles,
    percent,
    short_names,
    write_title,
)
from toprank.rankers.boosting.boosted_ranker import best_round
from toprank.rankers.unseen import has_folds
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 400  # per curve: more would not be visible


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionAtKDisplay(Display):
    """Precision at k by method: the share of positives among the k cases with the highest scores.

    Parameters
    ----------
    percent : array-like of shape (n_points,)
        k as a percentage, rising.
    precision : dict of str to array-like of shape (n_points,)
        A share for every k, by method; NaN if missing.
    low, high : dict of str to array-like of shape (n_points,), optional
        Ends of the bands, of all methods or of some.
    of : {"positives", "cases"}
        What k is a percentage of.
    title : str, optional
        Replaces the title; "" leaves it out.

    References
    ----------
    MetaAP paper, figures 4 and 6.

    Examples
    --------
    >>> display = PrecisionAtKDisplay.from_scores([1, 0, 1, 0], {"mine": [0.9, 0.8, 0.7, 0.6]})
    >>> display
    <PrecisionAtKDisplay of 1 method: mine>
    >>> display.columns()["percent"].tolist(), display.columns()["precision"].tolist()
    ([50.0, 100.0], [1.0, 0.5])
    >>> display.plot().ax_.get_ylabel()
    'Precision at k (%)'
    """

    _methods_in = "precision"

    percent: Any
    precision: Mapping[str, Any]
    low: Mapping[str, Any] | None = None
    high: Mapping[str, Any] | None = None
    of: str = "positives"
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        percent = check_figures(self.percent, "percent", caller=caller, rising=True)
        check_of(self.of, caller=caller)
        if (self.low is None) != (self.high is None):
            raise InputError(f"{caller} needs both ends of the bands, 'low' and 'high', or neither.")
        bands = {
            name: None if ends is None else check_series(ends, len(percent), name, caller=caller)
            for name, ends in (("low", self.low), ("high", self.high))
        }
        precision = check_series(self.precision, len(percent), "precision", caller=caller)
        self._set(percent=percent, precision=precision, **bands)

    @classmethod
    def from_scores(
        cls,
        y_true: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        of: str = "positives",
        up_to: float = 1.0,
        pos_label: Any = None,
        title: str | None = None,
    ) -> PrecisionAtKDisplay:
        """Display of several models' scores of the same cases.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two values.
        scores : dict of str to array-like of shape (n,)
            Scores by name of the model; larger is more suspicious.
        of : {"positives", "cases"}
            What k is a percentage of.
        up_to : float, default=1.0
            The largest k, as a share of the positives or of the cases.
        pos_label : optional
            The positive label; by default that of a usual pair, such as yes of yes/no, else the larger.
        """
        from toprank.metrics import precision_at_k_curve

        caller = f"{cls.__name__}.from_scores"
        check_of(of, caller=caller)
        check_share(up_to, "up_to", caller=caller)
        curves = {}
        for name, score in check_scores(scores, caller=caller).items():
            k, curves[name] = precision_at_k_curve(y_true, score, pos_label=pos_label)
        n_positives = round(float(curves[name][-1]) * len(k))
        whole = n_positives if of == "positives" else len(k)
        chosen = thinned(min(int(np.ceil(up_to * whole)), len(k)))
        precision = {name: curve[chosen - 1] for name, curve in curves.items()}
        return cls(100 * chosen / whole, precision, of=of, title=title)

    @classmethod
    def from_frame(cls, frame: Any, *, of: str = "positives", title: str | None = None) -> PrecisionAtKDisplay:
        """Display of a frame with one row per method, or per method and k.

        Parameters
        ----------
        frame : data frame or dict of lists
            Either the column method and one column for each k, named p_at_1, p_at_5, ..., p_at_100; or the columns
            method, percent, precision (or mean) and, for bands, low and high, as returned by `frame`.
        """
        caller = f"{cls.__name__}.from_frame"
        columns = read_columns(frame, ["method"], None, caller=caller)
        wide = {name: float(match[1]) for name in columns if (match := re.fullmatch(r"p_at_(\d+(?:\.\d+)?)", name))}
        if wide:
            methods = columns["method"]
            columns = {
                "method": [method for method in methods for _ in wide],
                "percent": [percent for _ in methods for percent in wide.values()],
                "precision": [columns[name][row] for row in range(len(methods)) for name in wide],
            }
        has_bands = "low" in columns and "high" in columns
        names = ["precision", "low", "high"] if has_bands else ["precision"]
        percent, series = read_series(columns, "percent", names, caller=caller, also={"precision": "mean"})
        return cls(percent, **series, of=of, title=title)

    def columns(self) -> dict[str, Any]:
        """Columns method, percent, precision and, with bands, low and high; one row per method and k."""
        return long_columns(self.percent, "percent", precision=self.precision, low=self.low, high=self.high)

    def plot(
        self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None, labels: str = "auto"
    ) -> PrecisionAtKDisplay:
        """Draw one curve per method.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        styles : dict of str to MethodStyle, optional
            From `method_styles`, so that a method looks the same in all plots.
        labels : {"auto", "direct", "legend", "none"}
            Names beside the ends of the curves, in a legend or nowhere; "auto" puts them beside the curves if they fit.
        """
        precision, low, high = (in_percent(series or {}) for series in (self.precision, self.low, self.high))
        whole = "number of positives" if self.of == "positives" else "number of cases"
        default = "Share of positives among the k highest scores"
        texts = f"k, in % of the {whole}", "Precision at k (%)", default
        xlim = 0.0, max(float(self.percent[-1]), 1e-9)
        return draw_series(self, ax, self.percent, precision, xlim, texts, styles, labels, low=low, high=high)


def check_of(of: Any, *, caller: str) -> None:
    """Raise ValueError unless `of` names what k is a percentage of."""
    if of not in ("positives", "cases"):
        raise InputError(f"The 'of' parameter of {caller} must be 'positives' or 'cases'. Got {of!r} instead.")


def thinned(n: int) -> NDArray[np.int64]:
    """Up to `MOST_POINTS` of 1, ..., n, evenly spaced, with both ends."""
    return np.unique(np.linspace(1, n, min(n, MOST_POINTS)).round().astype(np.int64))


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

    _methods_in = "found"

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
        y_true, scores, pos_label
            As in `PrecisionAtKDisplay.from_scores`.
        budget : int or float, optional
            How many cases can be checked: an int is a number of cases, a float a share of them, rounded up.
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
        checked, series = read_series(frame, "checked", ["found"], caller=f"{cls.__name__}.from_frame")
        return cls(checked, series["found"], budget, n_cases, title)

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
        ax, styles
            As in `PrecisionAtKDisplay.plot`.
        up_to : float, default=1.0
            Share of the cases at which the x-axis ends.
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
            end = 100 * up_to
            draw_diagonal(axes, end)
            # The name avoids that of the budget, and is above the line if there is no room below.
            is_near = self.budget is not None and 0.2 < 100 * self.budget / end < 0.7
            name_diagonal(axes, (0.8 if is_near else 0.5) * end, is_above=end < 60)
            if self.budget is not None and self.budget <= up_to:
                self._draw_budget(axes, chosen)
            write_axis_labels(axes, "Cases checked (%)", "Positives found (%)", without_figures(found))
            write_title(axes, self._title() if self.title is None else self.title, is_own=is_own)
            if labels == "legend" or (labels == "auto" and meet):
                best_first = self._order(ends)
                add_legend(axes, best_first, outside=is_own and len(ends) > FEW, place="center right")
            else:
                name_lines(axes, ends, chosen, labels, is_own=is_own)
        return self._keep(axes)

    def _order(self, names: Mapping[str, Any]) -> list[str]:
        """The names, best first: within the budget, or over all cases if there is none."""
        mean = {name: float(np.nanmean(self.found[name])) for name in names}
        value = mean if self.budget is None else self.at_budget()
        return sorted(names, key=lambda name: -value[name] if np.isfinite(value[name]) else np.inf)

    def _title(self) -> str:
        found = {} if self.budget is None else self.at_budget()
        values = {name: value for name, value in found.items() if np.isfinite(value)}
        if self.budget is None or not values:
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
        plate = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
        _name_mark(ax, at, f"budget: {cases}{percent(at / 100)}", is_left=is_left, gid="budget", bbox=plate)


def _name_mark(ax: Axes, at: float, text: str, *, is_left: bool, **look: Any) -> None:
    """Write a text at the foot of a vertical line, on its left or on its right."""
    side = -6 if is_left else 6
    annotate(ax, text, (at, ax.get_ylim()[0]), (side, 6), ha="right" if is_left else "left", va="bottom", **look)


def _cases_of(budget: Any, n: int, *, caller: str) -> int:
    """Number of cases of a budget."""
    if is_int(budget):
        if 1 <= budget <= n:
            return int(budget)
        raise InputError(
            f"The 'budget' parameter of {caller} must be at most the number of cases, {n:,}, and at least 1. "
            f"Got {budget:,} instead. Hint: a share is a float, such as 0.02."
        )
    check_share(budget, "budget", caller=caller)
    return min(int(cases_of_share(budget, n)), n)


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurveDisplay(Display):
    """Measures of held-out cases after each round of boosting.

    Parameters
    ----------
    rounds : array-like of shape (n_rounds,)
        Numbers of trees, increasing.
    values : dict of str to array-like of shape (n_rounds,)
        Measures by name, as shares.
    chosen : int, optional
        The round after which held-out cases are ranked best, marked in the plot.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> display = LearningCurveDisplay([1, 2, 3], {"average precision": [0.2, 0.4, 0.3]}, chosen=2)
    >>> display.plot().figure_.get_suptitle()
    'Held-out cases are ranked best after 2 rounds'
    """

    _methods_in = "values"

    rounds: Any
    values: Mapping[str, Any]
    chosen: int | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        rounds = check_figures(self.rounds, "rounds", caller=caller, rising=True)
        self._set(rounds=rounds, values=check_series(self.values, len(rounds), "values", caller=caller))

    @classmethod
    def from_estimator(cls, model: Any, *, title: str | None = None) -> LearningCurveDisplay:
        """Display of a fitted booster, such as `SGBAP`; it needs the folds of `cv`."""
        curve = getattr(model, "learning_curve_", None)
        if not curve:
            why = "" if curve is None or has_folds(model.cv) else ": it was fitted with cv=0"
            raise InputError(
                f"{type(model).__name__} has no learning curve{why}. Hint: fit a booster such as SGBAP, with cv=5."
            )
        k = "positives" if model.budget_ is None else "budget"
        values = {"average precision": curve["average_precision"], f"precision at k = {k}": curve["precision_at_k"]}
        return cls(curve["round"], values, best_round(curve["average_precision"]), title)

    @classmethod
    def from_frame(cls, frame: Any, *, chosen: int | None = None, title: str | None = None) -> LearningCurveDisplay:
        """Display of a frame with the columns method, rounds and value, as returned by `frame`."""
        rounds, series = read_series(frame, "rounds", ["value"], caller=f"{cls.__name__}.from_frame")
        return cls(rounds, series["value"], chosen, title)

    def columns(self) -> dict[str, Any]:
        """Columns method, rounds and value; one row per measure and round."""
        return long_columns(self.rounds, "rounds", value=self.values)

    def plot(self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None) -> LearningCurveDisplay:
        """Draw one line per measure, and the chosen number of rounds; parameters as in `PrecisionAtKDisplay.plot`."""
        title = "Ranking of held-out cases, by round"
        if self.chosen is not None:
            title = f"Held-out cases are ranked best after {plural(self.chosen, 'round')}"
        texts, first, last = ("Rounds (trees)", "Held-out cases (%)", title), self.rounds[0], self.rounds[-1]
        xlim, shown = (float(first), max(float(last), float(first) + 1.0)), in_percent(self.values)
        return draw_series(self, ax, self.rounds, shown, xlim, texts, styles, "direct", draw_more=self._mark)

    def _mark(self, ax: Axes) -> None:
        if self.chosen is None:
            return
        at = float(self.chosen)
        ax.axvline(at, color=INK, linewidth=1.2, zorder=1.5)
        _name_mark(ax, at, "best", is_left=bool(at > np.mean(ax.get_xlim())), gid="best")
