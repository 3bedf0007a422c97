"""Mean average precision along a coarse scale: by imbalance (`ImbalanceDisplay`), by depth (`DepthDisplay`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.plots.display import Display
from toprank.plots.inputs import Floats, check_figures, check_series, long_columns, read_columns, series_of
from toprank.plots.lines import draw_series, in_percent
from toprank.plots.style import MethodStyle
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURE = "Mean average precision (%)"
MOST_TICKS = 12


def _draw_steps(
    display: Any, ax: Axes | None, places: Floats, ticks: Sequence[str], x: str, title: str, styles: Any, labels: str
) -> Any:
    """Draw lines with a marker at every position."""
    step, width = -(-len(ticks) // MOST_TICKS), max(float(np.ptp(places)), 1.0)
    limits = places[0] - 0.05 * width, places[-1] + 0.025 * width
    shown, texts = in_percent(display.average_precision), (x, MEASURE, title)
    marks = places[::step], ticks[::step]
    return draw_series(display, ax, places, shown, limits, texts, styles, labels, ticks=marks)


@dataclass(frozen=True, eq=False, repr=False)
class ImbalanceDisplay(Display):
    r"""Mean average precision by method, over the data sets with at most `level` % positives.

    Parameters
    ----------
    level : array-like of shape (n_levels,)
        Upper limits on the percentage of positives, increasing: 10, 20, ..., 50.
    average_precision : dict of str to array-like of shape (n_levels,)
        The mean over these data sets, a share, by method.
    n_data_sets : array-like of int, shape (n_levels,), optional
        Number of data sets at each level; written below it.
    title : str, optional
        Replaces the title; "" leaves it out.

    References
    ----------
    MetaAP paper, figure 3.

    Examples
    --------
    >>> display = ImbalanceDisplay([10, 50], {"MetaAP": [0.52, 0.75], "Gini": [0.45, 0.71]}, [6, 28])
    >>> display.columns()["n_data_sets"].tolist()
    [6, 28, 6, 28]
    >>> [label.get_text() for label in display.plot().ax_.get_xticklabels()]
    ['10 %\n6 data sets', '50 %\n28 data sets']
    """

    _methods_in = "average_precision"

    level: Any
    average_precision: Mapping[str, Any]
    n_data_sets: Sequence[int] | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        level = check_figures(self.level, "level", caller=caller, rising=True)
        counts = None
        if self.n_data_sets is not None:
            counts = check_figures(self.n_data_sets, "n_data_sets", caller=caller, n=len(level)).astype(np.int64)
        values = check_series(self.average_precision, len(level), "average_precision", caller=caller)
        self._set(level=level, average_precision=values, n_data_sets=counts)

    @classmethod
    def from_frame(cls, frame: Any, *, title: str | None = None) -> ImbalanceDisplay:
        """Display of a frame with the columns method, level, average_precision (or mean) and perhaps n_data_sets.

        If methods differ in the number of data sets, the largest is shown.
        """
        caller = f"{cls.__name__}.from_frame"
        needed, also = ["method", "level", "average_precision"], {"average_precision": "mean"}
        columns = read_columns(frame, needed, ["n_data_sets"], caller=caller, also=also)
        names = [name for name in ("average_precision", "n_data_sets") if name in columns]
        level, series = series_of(columns, "level", names, caller=caller)
        counts = series.get("n_data_sets")
        n_data_sets = None if counts is None else np.nanmax(list(counts.values()), axis=0)
        return cls(level, series["average_precision"], n_data_sets, title)

    def columns(self) -> dict[str, Any]:
        """Columns method, level, average_precision and, if known, n_data_sets; one row per method and level."""
        columns = long_columns(self.level, "level", average_precision=self.average_precision)
        if self.n_data_sets is not None:
            columns["n_data_sets"] = np.tile(self.n_data_sets, len(self.methods))
        return columns

    def plot(
        self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None, labels: str = "auto"
    ) -> ImbalanceDisplay:
        """Draw one line per method; parameters as in `PrecisionAtKDisplay.plot`."""
        ticks = [f"{level:g} %" for level in self.level]
        if self.n_data_sets is not None:
            counts = (plural(n, "data set") for n in self.n_data_sets)
            ticks = [f"{tick}\n{count}" for tick, count in zip(ticks, counts, strict=True)]
        title = "Average precision by imbalance: the rarest positives at the left"
        x, places = "Data sets with at most this share of positives", np.arange(len(ticks), dtype=np.float64)
        return _draw_steps(self, ax, places, ticks, x, title, styles, labels)


@dataclass(frozen=True, eq=False, repr=False)
class DepthDisplay(Display):
    r"""Mean average precision by method and depth: meta-trees of depth p beside plain trees of depth p².

    A meta-tree of depth p with inner trees of depth p tests up to p² conditions per case, so a plain tree of depth p²
    is comparable. Both are at the same position on the x-axis, which has a line of numbers for each.

    Parameters
    ----------
    depth : array-like of int, shape (n_depths,)
        The depths p, rising.
    average_precision : dict of str to array-like of shape (n_depths,)
        The mean over data sets, a share, by method.
    squared : collection of str, default=()
        The methods whose depth is p² where the others have p.
    kinds : (str, str), default=("plain trees", "meta-trees")
        What the methods in `squared`, and the others, are called.
    title : str, optional
        Replaces the title; "" leaves it out.

    References
    ----------
    MetaAP paper, figure 5.

    Examples
    --------
    >>> display = DepthDisplay([2, 3], {"MetaAP": [0.5, 0.6], "Gini": [0.4, 0.5]}, squared=["Gini"])
    >>> display.columns()["depth"].tolist()
    [2, 3, 4, 9]
    >>> [label.get_text() for label in display.plot().ax_.get_xticklabels()]
    ['4\n2', '9\n3']
    """

    _methods_in = "average_precision"

    depth: Any
    average_precision: Mapping[str, Any]
    squared: Collection[str] = ()
    kinds: tuple[str, str] = ("plain trees", "meta-trees")
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        depth = check_figures(self.depth, "depth", caller=caller, rising=True)
        if depth[0] < 1 or (depth != depth.round()).any():
            raise InputError(f"'depth' of {caller} must be whole numbers of at least 1. Got {self.depth!r} instead.")
        values = check_series(self.average_precision, len(depth), "average_precision", caller=caller)
        self._set(depth=depth.astype(np.int64), average_precision=values, squared=_known(self.squared, values, caller))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        squared: Collection[str] = (),
        kinds: tuple[str, str] = ("plain trees", "meta-trees"),
        title: str | None = None,
    ) -> DepthDisplay:
        """Display of a frame with the columns method, depth (or value) and average_precision (or mean).

        The depth is each method's own. Rows of the methods in `squared` whose depth is not the square of a whole number
        are left out.
        """
        caller = f"{cls.__name__}.from_frame"
        needed, also = ["method", "depth", "average_precision"], {"depth": "value", "average_precision": "mean"}
        columns = read_columns(frame, needed, caller=caller, also=also)
        methods, own = columns["method"], check_figures(columns["depth"], "depth", caller=caller)
        _known(squared, dict.fromkeys(methods), caller)
        is_squared = np.array([method in squared for method in methods])
        place = np.where(is_squared, np.sqrt(own), own)
        kept = np.flatnonzero(~is_squared | (place == place.round()))
        if len(kept) == 0:
            raise InputError(f"{caller} needs depths that are squares for the methods in 'squared'. Got none.")
        chosen = {name: [values[row] for row in kept] for name, values in columns.items()}
        chosen["depth"] = place[kept].tolist()
        depth, series = series_of(chosen, "depth", ["average_precision"], caller=caller)
        return cls(depth, series["average_precision"], squared, kinds, title)

    def columns(self) -> dict[str, Any]:
        """Columns method, p, depth (the method's own: p or p²) and average_precision; one row per method and p."""
        columns = long_columns(self.depth, "p", average_precision=self.average_precision)
        is_squared = np.array([method in self.squared for method in columns["method"]])
        p = columns["p"]
        return {
            "method": columns["method"],
            "p": p,
            "depth": np.where(is_squared, p**2, p),
            "average_precision": columns["average_precision"],
        }

    def plot(
        self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None, labels: str = "auto"
    ) -> DepthDisplay:
        """Draw one line per method; parameters as in `PrecisionAtKDisplay.plot`."""
        has_both = 0 < len(self.squared) < len(self.methods)
        if has_both:
            ticks = [f"{p**2}\n{p}" for p in self.depth]
        else:
            ticks = [str(p**2 if self.squared else p) for p in self.depth]
        x = f"Depth of {self.kinds[0]} (first line) and of {self.kinds[1]} (second line)" if has_both else "Depth"
        places = self.depth.astype(np.float64)
        return _draw_steps(self, ax, places, ticks, x, "Average precision by depth", styles, labels)


def _known(squared: Collection[str], methods: Mapping[str, Any], caller: str) -> tuple[str, ...]:
    """The names in `squared`, which must be methods."""
    if isinstance(squared, str):
        raise InputTypeError(f"'squared' of {caller} must be a list of names. Hint: squared=[{squared!r}].")
    unknown = [name for name in squared if name not in methods]
    if unknown:
        raise InputError(
            f"'squared' of {caller} names {unknown[0]!r}, which is not one of the methods. "
            f"Hint: they are {', '.join(map(str, methods))}."
        )
    return tuple(squared)
