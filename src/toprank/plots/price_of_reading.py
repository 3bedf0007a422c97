"""`PriceOfReadingDisplay`: how well readable models rank, by their size, beside the best black box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, read_columns
from toprank.plots.style import FAINT, INK, PALETTE, SMALL_SIZE, drawing, dress_axes, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (8.4, 5.0)
LEAST_GAP = 0.045
"""Least distance between two names, as a share of the height of the axes."""


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
        bounds: dict[str, Any] = {f"black_box_{name}": float(columns[name][best]) for name in ("mean", "low", "high")}
        return cls(**given, black_box=str(columns["method"][best]), **bounds, title=title)

    @property
    def methods(self) -> list[str]:
        """Names of the readable models, in the order given."""
        return list(self.method)

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
        with drawing(ax, SIZE, type(self).__name__) as axes:
            dress_axes(axes)
            axes.set_xscale("log")
            if self.black_box is not None:
                self._draw_black_box(axes)
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
        self._keep(axes)
        return self

    def _draw_black_box(self, ax: Axes) -> None:
        ax.axhspan(self.black_box_low, self.black_box_high, color="#F3F3F3", zorder=0)
        ax.axhline(self.black_box_mean, color=FAINT, linewidth=1.4, zorder=1)
        ax.annotate(
            f"{self.black_box}, not readable", xy=(1, self.black_box_mean), xycoords=("axes fraction", "data"),
            xytext=(-6, 4), ha="right", textcoords="offset points", fontsize=SMALL_SIZE, color=FAINT,
        )  # fmt: skip

    def _write_names(self, ax: Axes, size: np.ndarray) -> None:
        """Names right of their dots, moved apart where dots are close to each other."""
        low, high = ax.get_ylim()
        taken: list[float] = []
        for row in np.argsort(-self.mean, kind="stable").tolist():
            place = (float(self.mean[row]) - low) / (high - low)
            place = min([place, *(other - LEAST_GAP for other in taken[-1:])])
            taken.append(place)
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
