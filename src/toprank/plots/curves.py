"""`PrecisionAtKDisplay`: how many of the first k cases are positive, by k and by method."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import Floats, check_figures, check_scores, check_series, check_share, read_columns, series_of
from toprank.plots.labels import check_naming, name_lines
from toprank.plots.lines import draw_lines, in_percent, line_figure, line_limits, without_figures, write_axis_labels
from toprank.plots.style import MethodStyle, complete_styles, write_title

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
            The positive label; the larger of the two by default.
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
            columns = _to_long(columns, wide)
        has_bands = "low" in columns and "high" in columns
        names = ["precision", "low", "high"] if has_bands else ["precision"]
        columns = read_columns(columns, ["method", "percent", *names], caller=caller, also={"precision": "mean"})
        percent, series = series_of(columns, "percent", names, caller=caller)
        return cls(percent, **series, of=of, title=title)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(self.precision)

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
        caller = type(self).__name__
        check_naming(labels, caller=f"{caller}.plot")
        chosen = complete_styles(self.methods, styles)
        precision, low, high = (in_percent(series or {}) for series in (self.precision, self.low, self.high))
        with line_figure(ax, self.methods, caller) as (axes, is_own):
            ends = draw_lines(axes, self.percent, precision, chosen, low=low, high=high)
            axes.set_xlim(0, max(float(self.percent[-1]), 1e-9))
            axes.set_ylim(*line_limits(precision, low, high))
            whole = "number of positives" if self.of == "positives" else "number of cases"
            write_axis_labels(axes, f"k, in % of the {whole}", "Precision at k (%)", without_figures(precision))
            default = "Share of positives among the k highest scores"
            write_title(axes, default if self.title is None else self.title, is_own=is_own)
            name_lines(axes, ends, chosen, labels, is_own=is_own)
        self._keep(axes)
        return self


def check_of(of: Any, *, caller: str) -> None:
    """Raise ValueError unless `of` names what k is a percentage of."""
    if of not in ("positives", "cases"):
        raise InputError(f"The 'of' parameter of {caller} must be 'positives' or 'cases'. Got {of!r} instead.")


def thinned(n: int) -> NDArray[np.int64]:
    """Up to `MOST_POINTS` of 1, ..., n, evenly spaced, with both ends."""
    return np.unique(np.linspace(1, n, min(n, MOST_POINTS)).round().astype(np.int64))


def long_columns(grid: Floats, along: str, **series: Mapping[str, Floats] | None) -> dict[str, Any]:
    """Columns method, `along` and one per series, one row per method and point."""
    given = {name: by_method for name, by_method in series.items() if by_method is not None}
    methods = list(next(iter(given.values())))
    none = np.full(len(grid), np.nan)
    columns: dict[str, Any] = {
        "method": [method for method in methods for _ in grid],
        along: np.tile(grid, len(methods)),
    }
    for name, by_method in given.items():
        columns[name] = np.concatenate([by_method.get(method, none) for method in methods])
    return columns


def _to_long(columns: Mapping[str, list[Any]], wide: Mapping[str, float]) -> dict[str, list[Any]]:
    methods = columns["method"]
    return {
        "method": [method for method in methods for _ in wide],
        "percent": [percent for _ in methods for percent in wide.values()],
        "precision": [columns[name][row] for row in range(len(methods)) for name in wide],
    }
