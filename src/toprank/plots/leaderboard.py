"""Methods compared on a table: best on top (`LeaderboardDisplay`), and by their size (`PriceOfReadingDisplay`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, check_texts, read_columns
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    SMALL_SIZE,
    TEXT_SIZE,
    annotate,
    axes_width,
    drawing,
    dress_axes,
    percent,
    short_names,
    text_width,
    wrap,
    write_title,
)
from toprank.words.counts import in_units, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS_WIDTH = 4.6  # inches between the names and the columns of text
ROW_HEIGHT = 0.4  # inches
GAP = 16.0  # points between two columns of text
READABLE: dict[str, Any] = {"color": PALETTE[0], "marker": "D", "markersize": 8.0}
OTHER: dict[str, Any] = {"color": "#7F7F7F", "marker": "o", "markersize": 7.5}
OPTIONAL = ("low", "high", "is_readable", "size", "size_unit", "seconds", "note")
PRICE_SIZE = (8.4, 5.0)  # inches of the figure of the price of reading
LEAST_GAP = 0.045
"""Least distance between two names, as a share of the height of the axes."""


@dataclass(frozen=True, eq=False, repr=False)
class LeaderboardDisplay(Display):
    """How good each method is on a table, how certain that is, and what it costs.

    Parameters
    ----------
    method : sequence of str
        Names, each once.
    mean : array-like of shape (n_methods,)
        The measure as a share; NaN for a method without a result, which comes last.
    low, high : array-like of shape (n_methods,), optional
        Ends of the interval around the mean.
    is_readable : sequence of bool, optional
        True if a person can read the model; these have their own colour and marker.
    size : array-like of shape (n_methods,), optional
        Such as the number of leaves; NaN if unknown.
    size_unit : sequence of str or None, optional
        "leaves".
    seconds : array-like of shape (n_methods,), optional
        To learn the model.
    note : sequence of str or None, optional
        A few words at the end of the row, such as "within noise of the best" or why there is no result.
    measure : str, default="average precision"
    level : float, default=0.95
        Confidence level of the intervals.
    chance : float, optional
        The value for a random order: for average precision, the share of positives.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> display = LeaderboardDisplay(
    ...     ["Gini tree", "MetaAP", "XGBoost"], [0.61, 0.70, 0.72], low=[0.58, 0.67, 0.70], high=[0.64, 0.73, 0.74],
    ...     is_readable=[True, True, False], size=[40, 14, 900], size_unit=["leaves"] * 3, seconds=[0.2, 1.5, 75],
    ... )
    >>> display.columns()["method"], display.columns()["rank"]
    (['XGBoost', 'MetaAP', 'Gini tree'], [1, 2, 3])
    >>> [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    ['XGBoost', 'MetaAP', 'Gini tree']
    """

    _methods_in = "method"

    method: Sequence[str]
    mean: Any
    low: Any = None
    high: Any = None
    is_readable: Any = None
    size: Any = None
    size_unit: Any = None
    seconds: Any = None
    note: Any = None
    measure: str = "average precision"
    level: float = 0.95
    chance: float | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        method = [str(name) for name in self.method]
        if not method or len(set(method)) < len(method):
            raise InputError(f"'method' of {caller} must be a list of at least one name, each once. Got {method}.")
        if (self.low is None) != (self.high is None):
            raise InputError(f"{caller} needs both ends of the intervals, 'low' and 'high', or neither.")
        n = len(method)
        figures = {
            name: check_figures(getattr(self, name), name, caller=caller, n=n)
            for name in ("mean", "low", "high", "size", "seconds")
            if getattr(self, name) is not None
        }
        texts = {
            name: check_texts(getattr(self, name), name, n, caller=caller)
            for name in ("size_unit", "note")
            if getattr(self, name) is not None
        }
        if self.is_readable is not None:
            readable = check_figures(self.is_readable, "is_readable", caller=caller, n=n)
            self._set(is_readable=readable == 1)  # unknown counts as not readable
        self._set(method=method, **figures, **texts)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        mean: str = "mean",
        measure: str = "average precision",
        level: float = 0.95,
        chance: float | None = None,
        title: str | None = None,
    ) -> LeaderboardDisplay:
        """Display of a frame with one row per method.

        Parameters
        ----------
        frame : data frame or dict of lists
            With the columns method and `mean`, and any of low, high, is_readable, size, size_unit, seconds and note.
        mean : str, default="mean"
            The column with the measure.
        measure, level, chance, title
            As in the class.
        """
        columns = read_columns(frame, ["method", mean], OPTIONAL, caller=f"{cls.__name__}.from_frame")
        method, values = columns.pop("method"), columns.pop(mean)
        return cls(method, values, **columns, measure=measure, level=level, chance=chance, title=title)

    def columns(self) -> dict[str, Any]:
        """Columns rank, method, mean and the optional ones given; best first."""
        order = self._order()
        columns: dict[str, Any] = {"rank": list(range(1, len(order) + 1))}
        for name in ("method", "mean", *OPTIONAL):
            values = getattr(self, name)
            if values is not None:
                columns[name] = [values[row] for row in order] if isinstance(values, list) else values[order]
        return columns

    def plot(self, ax: Axes | None = None) -> LeaderboardDisplay:
        """Draw a dot with its interval for every method, and its figures beside it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`, as large as its texts need. If you pass axes, leave
            room for names on the left and for figures on the right.
        """
        order = self._order()
        names = short_names(self.method[row] for row in order)
        with drawing(ax, (AXIS_WIDTH + 4, ROW_HEIGHT * len(order) + 1.9), type(self).__name__) as axes:
            if ax is None:
                figure, columns = axes.figure.figure, self._texts(order).values()
                left = text_width(figure, names.values(), TEXT_SIZE, "bold")
                right = sum(text_width(figure, texts, SMALL_SIZE) + GAP / 72 for texts in columns)
                figure.set_figwidth(AXIS_WIDTH + left + right + 0.45)
            dress_axes(axes, grid="x")
            self._draw_dots(axes, order)
            axes.set_ylim(len(order) - 0.5, -0.5)
            axes.set_yticks(range(len(order)), list(names.values()), fontsize=TEXT_SIZE, parse_math=False)
            axes.tick_params(axis="y", length=0)
            for row, label in zip(order, axes.get_yticklabels(), strict=True):
                label.set_fontweight("bold" if self._reads(row) else "normal")
            _write_columns(axes, self._texts(order))
            axes.set_xlabel(self._axis_label(axes, is_own=ax is None), fontsize=TEXT_SIZE, color=INK, parse_math=False)
            if ax is None and self._has_both_kinds():
                from matplotlib.lines import Line2D

                handles = [Line2D([], [], linestyle="none", **look) for look in (READABLE, OTHER)]
                texts, legend = ["a person can read the model", "a person cannot"], axes.figure.figure.legend
                legend(handles, texts, loc="outside lower left", ncols=2, frameon=False, fontsize=TEXT_SIZE)
            default = f"{self._measure()} of {plural(len(self.method), 'method')}, best on top"
            write_title(axes, default if self.title is None else self.title, is_own=ax is None)
        return self._keep(axes)

    def _order(self) -> list[int]:
        """Rows best first; ties in the order given, those without a result last."""
        return np.argsort(np.where(np.isnan(self.mean), np.inf, -self.mean), kind="stable").tolist()

    def _measure(self) -> str:
        return f"{self.measure[:1].upper()}{self.measure[1:]}"

    def _reads(self, row: int) -> bool:
        return self.is_readable is not None and bool(self.is_readable[row])

    def _draw_dots(self, ax: Axes, order: Sequence[int]) -> None:
        low = self.mean if self.low is None else np.fmin(self.low, self.mean)
        high = self.mean if self.high is None else np.fmax(self.high, self.mean)
        if np.isfinite(self.mean).any():
            ax.set_xlim(*_limits(low, high, self.chance))
            ax.axvline(100 * float(np.nanmax(self.mean)), color="#B0B0B0", linewidth=1.0, zorder=1)
        for place, row in enumerate(order):
            look = READABLE if self._reads(row) else OTHER
            if np.isnan(self.mean[row]):
                ax.text(0.02, place, "no result", transform=ax.get_yaxis_transform(), va="center_baseline", color=FAINT)
                continue
            ax.plot([100 * low[row], 100 * high[row]], [place, place], color=look["color"], linewidth=2.4, zorder=2)
            ax.plot(
                [100 * self.mean[row]], [place], linestyle="none", zorder=3, gid=f"method: {self.method[row]}", **look
            )
        if self.chance is not None and ax.get_xlim()[0] <= 100 * self.chance:
            ax.axvline(100 * self.chance, color=FAINT, linestyle=(0, (2, 2)), linewidth=1.3, zorder=1, gid="chance")

    def _texts(self, order: Sequence[int]) -> dict[str, list[str]]:
        """Columns of text on the right, header first; empty columns are left out."""
        means = [f"{100 * self.mean[row]:.1f}" if np.isfinite(self.mean[row]) else "–" for row in order]
        columns = {"mean (%)": means}
        if self.size is not None:
            units = self.size_unit or [""] * len(order)
            sizes = [(self.size[row], units[row]) for row in order]
            columns["size"] = [
                in_units(round(n) if n >= 10 else n, unit).strip() if np.isfinite(n) else "" for n, unit in sizes
            ]
        if self.seconds is not None:
            columns["time"] = [duration(self.seconds[row]) for row in order]
        if self.note is not None:
            columns["note"] = [self.note[row] for row in order]
        return {name: ["" if name == "note" else name, *texts] for name, texts in columns.items() if any(texts)}

    def _axis_label(self, ax: Axes, *, is_own: bool) -> str:
        lines = [f"{self._measure()} (%)"]
        if self.low is not None:
            lines[0] += f", with its {percent(self.level)} interval"
        if self.chance is not None:
            is_drawn = ax.get_xlim()[0] <= 100 * self.chance
            lines.append(f"{'Dotted line: a' if is_drawn else 'A'} random order has {percent(self.chance)}")
        if not is_own and self._has_both_kinds():
            lines.append("Diamond: a person can read the model")
        width = AXIS_WIDTH + 0.4 if is_own else axes_width(ax)
        return "\n".join(wrap(ax.figure.figure, line, width, TEXT_SIZE) for line in lines)

    def _has_both_kinds(self) -> bool:
        return self.is_readable is not None and bool(self.is_readable.any()) and not self.is_readable.all()


def duration(seconds: float) -> str:
    """A time as text in at most two units; empty if unknown.

    Examples
    --------
    >>> duration(0.034), duration(12.3), duration(75), duration(7500)
    ('0.03 s', '12 s', '1 min 15 s', '2 h 5 min')
    """
    if not np.isfinite(seconds):
        return ""
    if seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = round(seconds / 60)
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def _limits(low: Any, high: Any, chance: float | None) -> tuple[float, float]:
    """Limits of the x-axis in %, with a margin; including a random order if that takes less than half the width."""
    start, end = 100 * float(np.nanmin(low)), 100 * float(np.nanmax(high))
    if chance is not None and start - 100 * chance <= end - start:
        start = min(start, 100 * chance)
    margin = max(0.06 * (end - start), 0.5)
    return max(start - margin, 0.0 - margin / 2), min(end + margin, 100.0 + margin / 2)


def _write_columns(ax: Axes, columns: Mapping[str, Sequence[str]]) -> None:
    """Write columns of text to the right of the axes, numbers flush right, each as wide as its widest text."""
    offset = GAP
    for name, texts in columns.items():
        width = 72 * text_width(ax.figure.figure, texts, SMALL_SIZE)
        is_right = name != "note"
        for place, text in enumerate(texts):
            annotate(
                ax,
                text,
                (1.0, place - 1.0 if place else -0.5),
                (offset + (width if is_right else 0), 0 if place else 3),
                xycoords=ax.get_yaxis_transform(),
                ha="right" if is_right else "left",
                va="center_baseline" if place else "bottom",
                color=INK if place else FAINT,
                annotation_clip=False,
                gid=f"{name}: {place}",
            )
        offset += width + GAP


@dataclass(frozen=True, eq=False, repr=False)
class PriceOfReadingDisplay(Display):
    """Average precision of readable models against their size, and the best model that cannot be read as a line.

    Parameters
    ----------
    method : sequence of str
        Names of the readable models.
    size : array-like of shape (n_methods,)
        What a person has to read: conditions, coefficients, bins. At least 1 is drawn.
    mean, low, high : array-like of shape (n_methods,)
        Average precision with its interval.
    black_box : str, optional
        Name of the best model that cannot be read.
    black_box_mean, black_box_low, black_box_high : float, optional
        Its average precision with its interval.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> display = PriceOfReadingDisplay(
    ...     ["RedFlags", "CART"], [45, 31], [0.41, 0.30], [0.38, 0.27], [0.44, 0.33], "LightGBM", 0.42, 0.39, 0.45
    ... )
    >>> display.plot().figure_.get_suptitle()
    'Reading costs 0.010 of average precision: RedFlags against LightGBM'
    """

    _methods_in = "method"

    method: Sequence[str]
    size: Any
    mean: Any
    low: Any
    high: Any
    black_box: str | None = None
    black_box_mean: float = float("nan")
    black_box_low: float = float("nan")
    black_box_high: float = float("nan")
    title: str | None = None

    def __post_init__(self) -> None:
        caller, method = type(self).__name__, [str(name) for name in self.method]
        if not method:
            raise InputError(
                f"{caller} needs at least one readable model, got none. Hint: compare one, such as red-flags."
            )
        figures = {
            name: check_figures(getattr(self, name), name, caller=caller, n=len(method))
            for name in ("size", "mean", "low", "high")
        }
        rows = list(zip(method, *figures.values(), strict=True))
        if self.black_box is not None:
            rows.append((self.black_box, 1.0, self.black_box_mean, self.black_box_low, self.black_box_high))
        for name, size, mean, low, high in rows:
            # NaN, an unknown end of an interval, is neither above nor below.
            if not np.isfinite([size, mean]).all() or mean < low or mean > high:
                raise InputError(
                    f"{caller} needs a size and a mean inside its interval for every model, but {name} has size "
                    f"{size:g}, mean {mean:g}, low {low:g} and high {high:g}. Hint: leave models without figures out."
                )
        self._set(method=method, **figures)

    @classmethod
    def from_frame(cls, frame: Any, *, title: str | None = None) -> PriceOfReadingDisplay:
        """Display of a leaderboard: columns method, mean, low, high, is_readable and size."""
        names = ["method", "mean", "low", "high", "is_readable", "size"]
        columns = read_columns(frame, names, caller=f"{cls.__name__}.from_frame")
        mean = np.asarray(columns["mean"], np.float64)
        readable = np.asarray(columns["is_readable"], bool)
        has_size = ~np.isnan(np.array([np.nan if size is None else size for size in columns["size"]], np.float64))
        rows = np.flatnonzero(readable & has_size & np.isfinite(mean)).tolist()
        others = np.flatnonzero(~readable & np.isfinite(mean))
        given: dict[str, Any] = {
            name: [columns[name][row] for row in rows] for name in ("method", "size", "mean", "low", "high")
        }
        if len(others) == 0:
            return cls(**given, title=title)
        best = int(others[np.argmax(mean[others])])
        bounds: dict[str, Any] = {
            f"black_box_{name}": float(np.asarray(columns[name], np.float64)[best]) for name in ("mean", "low", "high")
        }
        return cls(**given, black_box=str(columns["method"][best]), **bounds, title=title)

    def columns(self) -> dict[str, Any]:
        """Columns method, size, mean, low, high and is_readable; the black box is the last row."""
        out = {name: [*getattr(self, name)] for name in ("method", "size", "mean", "low", "high")}
        out["is_readable"] = [True] * len(self.method)
        if self.black_box is not None:
            last = [self.black_box, np.nan, self.black_box_mean, self.black_box_low, self.black_box_high, False]
            for values, value in zip(out.values(), last, strict=True):
                values.append(value)
        return out

    def plot(self, ax: Axes | None = None) -> PriceOfReadingDisplay:
        """Draw a dot with its interval for every readable model, and the black box as a line with a band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        """
        size = np.maximum(self.size, 1.0)
        with drawing(ax, PRICE_SIZE, type(self).__name__) as axes:
            dress_axes(axes)
            axes.set_xscale("log")
            if self.black_box is not None:
                axes.axhspan(self.black_box_low, self.black_box_high, color="#F3F3F3", zorder=0)
                axes.axhline(self.black_box_mean, color=FAINT, linewidth=1.4, zorder=1)
                look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "color": FAINT}
                annotate(axes, f"{self.black_box}, not readable", (1, self.black_box_mean), (-6, 4), **look)
            error = np.vstack((self.mean - self.low, self.high - self.mean))
            axes.errorbar(
                size, self.mean, yerr=error, fmt="D", color=PALETTE[0], ecolor="#A9CCE3", markersize=7, zorder=3
            )
            axes.set_xlim(size.min() / 1.6, size.max() * 4.0)
            ticks = [m * 10**p for p in range(9) for m in (1, 2, 5) if size.min() / 1.6 <= m * 10**p <= size.max() * 4]
            axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.minorticks_off()
            self._write_names(axes, size)
            axes.set_xlabel("To read: conditions, coefficients, bins")
            axes.set_ylabel("Average precision")
            write_title(axes, self._title() if self.title is None else self.title, is_own=ax is None)
        return self._keep(axes)

    def _write_names(self, ax: Axes, size: np.ndarray) -> None:
        """Names right of their dots, moved down where they would be over another name; the others stay."""
        low, high = ax.get_ylim()
        left, right = np.log(ax.get_xlim())
        taken: list[tuple[float, float, float]] = []  # start and end of a name, and its height, as shares of the axes
        for row in np.argsort(-self.mean, kind="stable").tolist():
            place = (float(self.mean[row]) - low) / (high - low)
            start = float((np.log(size[row] * 1.12) - left) / (right - left))
            end = start + text_width(ax.figure.figure, [self.method[row]], SMALL_SIZE) / axes_width(ax)
            for _, _, other in (each for each in taken if start <= each[1] and each[0] <= end):  # highest first
                place = other - LEAST_GAP if abs(place - other) < LEAST_GAP else place
            taken = sorted([*taken, (start, end, place)], key=lambda name: -name[2])
            ax.annotate(
                self.method[row], xy=(size[row], self.mean[row]), xytext=(size[row] * 1.12, low + place * (high - low)),
                textcoords="data", va="center", fontsize=SMALL_SIZE, color=INK,
            )  # fmt: skip

    def _title(self) -> str:
        best = int(np.argmax(self.mean))
        if self.black_box is None:
            return f"{self.method[best]} ranks best of the models that people can read"
        price = self.black_box_mean - float(self.mean[best])
        if price <= 0:
            return f"Reading costs nothing: {self.method[best]} ranks at least as well as {self.black_box}"
        cost = f"{price:.3f}" if price >= 0.001 else "less than 0.001"
        return f"Reading costs {cost} of average precision: {self.method[best]} against {self.black_box}"
