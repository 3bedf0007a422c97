"""`RocDisplay`: ROC curves by method with their areas, bands and, if known, the optimal curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.errors import InputError, InputTypeError
from toprank.metrics.roc import RocCurve, roc_curve
from toprank.metrics.roc_bands import RocBand, roc_band
from toprank.plots.display import Display
from toprank.plots.inputs import Floats, check_scores
from toprank.plots.labels import check_naming
from toprank.plots.lines import write_axis_labels
from toprank.plots.style import (
    FAINT,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    MethodStyle,
    axes_width,
    complete_styles,
    drawing,
    dress_axes,
    percent,
    short_names,
    text_width,
    write_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 6.0  # inches of a square figure
MOST_KNOTS = 1500  # per curve: more would not be visible
OPTIMAL_LINE = (0, (6, 1.8))
LINE_HEIGHT = 1.55 * TEXT_SIZE / 72  # inches of an entry of a legend
HANDLE = 0.85  # inches of a legend without its texts
LEGEND: dict[str, Any] = {"fontsize": TEXT_SIZE, "handlelength": 2.2, "framealpha": 0.9, "edgecolor": "none"}
RATES = ("False positive rate (%)", "True positive rate (%)")


@dataclass(frozen=True, eq=False, repr=False)
class RocDisplay(Display):
    """ROC curves by method, with their areas.

    Parameters
    ----------
    curves : dict of str to RocCurve
        By method.
    optimal : RocCurve, optional
        The best possible curve, if known.
    bands : dict of str to RocBand, optional
        Of all methods or of some.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> display = RocDisplay.from_scores([1, 0, 1, 0], {"mine": [0.9, 0.8, 0.7, 0.6]})
    >>> display
    <RocDisplay of 1 method: mine>
    >>> display.columns()["beta"].tolist()
    [0.0, 0.5, 0.5, 1.0, 1.0]
    >>> [text.get_text() for text in display.plot().ax_.get_legend().get_texts()]
    ['AUC 0.750  mine']
    """

    curves: Mapping[str, RocCurve]
    optimal: RocCurve | None = None
    bands: Mapping[str, RocBand] | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        curves = _check_each(self.curves, RocCurve, "curves", caller)
        bands = {} if not self.bands else _check_each(self.bands, RocBand, "bands", caller)
        unknown = [name for name in bands if name not in curves]
        if unknown:
            raise InputError(
                f"'bands' of {caller} names {unknown[0]!r}, which is not one of the curves. "
                f"Hint: they are {', '.join(curves)}."
            )
        check_optimal(self.optimal, caller)
        self._set(curves=curves, bands=bands)

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, RocCurve],
        *,
        optimal: RocCurve | None = None,
        bands: Mapping[str, RocBand] | None = None,
        title: str | None = None,
    ) -> RocDisplay:
        """Display of given curves; parameters as in the class."""
        return cls(curves, optimal, bands, title)

    @classmethod
    def from_scores(
        cls,
        y_true: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        band: str | None = None,
        level: float = 0.95,
        optimal: RocCurve | None = None,
        pos_label: Any = None,
        random_state: Any = 0,
        title: str | None = None,
    ) -> RocDisplay:
        """Display of several models' scores of the same cases.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two values.
        scores : dict of str to array-like of shape (n,)
            Scores by name of the model; larger is more suspicious.
        band : {"bootstrap", "dkw"}, optional
            Draws a band around every curve that contains the whole curve with probability `level`; as in
            `toprank.metrics.roc_band`.
        level : float, default=0.95
        optimal : RocCurve, optional
        pos_label : optional
            The positive label; the larger of the two by default.
        random_state : int, numpy.random.Generator or None, default=0
            For the bootstrap.
        """
        named = check_scores(scores, caller=f"{cls.__name__}.from_scores")
        curves = {name: roc_curve(y_true, score, pos_label=pos_label) for name, score in named.items()}
        options: dict[str, Any] = {"level": level, "pos_label": pos_label, "random_state": random_state}
        bands = band and {name: roc_band(y_true, s, method=band, **options) for name, s in named.items()}
        return cls(curves, optimal, bands or None, title)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(self.curves)

    def columns(self) -> dict[str, Any]:
        """Columns method, kind ("curve", "band" or "optimal"), alpha, beta, low and high; one row per point."""
        parts: list[tuple[Any, ...]] = [
            (name, "curve", curve.alpha, curve.beta, None, None) for name, curve in self.curves.items()
        ]
        parts += [(name, "band", b.alpha, b.value, b.low, b.high) for name, b in (self.bands or {}).items()]
        if self.optimal is not None:
            parts.append(("optimal", "optimal", self.optimal.alpha, self.optimal.beta, None, None))
        columns: dict[str, Any] = {
            "method": [name for name, _, alpha, *_ in parts for _ in alpha],
            "kind": [kind for _, kind, alpha, *_ in parts for _ in alpha],
        }
        for place, name in enumerate(("alpha", "beta", "low", "high"), 2):
            arrays: list[Any] = [part[place] for part in parts]
            columns[name] = np.concatenate(
                [np.full(len(part[2]), np.nan) if a is None else a for a, part in zip(arrays, parts, strict=True)]
            )
        return columns

    def plot(
        self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None, labels: str = "auto"
    ) -> RocDisplay:
        """Draw the curves, the diagonal of a random order and, if given, bands and the optimal curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        styles : dict of str to MethodStyle, optional
            From `method_styles`, so that a method looks the same in all plots.
        labels : {"auto", "direct", "legend", "none"}
            All curves end in one point, so names go into a legend: all but "none" write one, with the areas.
        """
        caller = type(self).__name__
        check_naming(labels, caller=f"{caller}.plot")
        chosen = complete_styles(self.methods, styles)
        with drawing(ax, (SIDE, SIDE), caller) as axes:
            handles = {}
            prepare_rates(axes)
            for position, (name, curve) in enumerate(self.curves.items()):
                look: dict[str, Any] = {"color": chosen[name].colour, "zorder": 3 - position / 100}
                band = (self.bands or {}).get(name)
                if band is not None:
                    _draw_band(axes, band, look["color"], is_one_of_many=len(self.bands or {}) > 2)
                handles[name] = draw_curve(axes, curve, linestyle=chosen[name].line, gid=f"method: {name}", **look)
            optimal = None if self.optimal is None else draw_optimal(axes, self.optimal)
            write_axis_labels(axes, *RATES, self._note())
            default = "ROC curve" if len(self.curves) == 1 else "ROC curves"
            write_title(axes, default if self.title is None else self.title, is_own=ax is None)
            if labels != "none":
                self._add_legend(axes, handles, optimal, is_own=ax is None)
        self._keep(axes)
        return self

    def _note(self) -> str:
        """A note on what the bands mean, or nothing."""
        kinds = {(band.level, band.is_simultaneous) for band in (self.bands or {}).values()}
        if len(kinds) != 1:
            return "Shaded: bands of different kinds" if kinds else ""
        level, is_simultaneous = kinds.pop()
        return f"Shaded: {percent(level)} band of {'the whole curve' if is_simultaneous else 'each point by itself'}"

    def _add_legend(self, ax: Axes, handles: Mapping[str, Any], optimal: Any, *, is_own: bool) -> None:
        """Names and areas, the largest area first: below the diagonal, or beside the axes if there is no room."""
        short = short_names(self.curves)
        order = sorted(self.curves, key=lambda name: -self.curves[name].area)
        entries = [(handles[name], f"AUC {self.curves[name].area:.3f}  {short[name]}") for name in order]
        if optimal is not None and self.optimal is not None:
            entries.insert(0, (optimal, f"AUC {self.optimal.area:.3f}  optimal"))
        texts = [text for _, text in entries]
        figure = ax.figure.figure
        width = text_width(figure, texts, TEXT_SIZE) + HANDLE
        lines, height = [line for line, _ in entries], LINE_HEIGHT * len(entries)
        # In the triangle below the diagonal, which useful curves never enter, if it is large enough.
        if not is_own or width + height <= 1.05 * axes_width(ax):
            ax.legend(lines, texts, loc="lower right", **LEGEND)
            return
        figure.set_size_inches(SIDE + width, max(SIDE, height + 1.4))
        ax.set_anchor("W")
        ax.legend(lines, texts, loc="upper left", bbox_to_anchor=(1.02, 1.01), **LEGEND)


def _check_each(given: Any, kind: type, name: str, caller: str) -> dict[str, Any]:
    """A dictionary of objects of one kind with text keys."""
    if not isinstance(given, Mapping) or not given:
        found = "an empty one" if isinstance(given, Mapping) else type(given).__name__
        raise InputTypeError(
            f"'{name}' of {caller} must be a dictionary with a {kind.__name__} for every method. Got {found} instead."
        )
    for method, value in given.items():
        if not isinstance(value, kind):
            raise InputTypeError(
                f"'{name}[{method!r}]' of {caller} must be a {kind.__name__}. Got {type(value).__name__} instead."
            )
    return {str(method): value for method, value in given.items()}


def check_optimal(optimal: Any, caller: str) -> None:
    """Raise TypeError unless the optimal curve is a RocCurve or None."""
    if optimal is not None and not isinstance(optimal, RocCurve):
        raise InputTypeError(f"'optimal' of {caller} must be a RocCurve. Got {type(optimal).__name__} instead.")


def prepare_rates(ax: Axes) -> None:
    """Make the axes square, in %, with the diagonal of a random order."""
    dress_axes(ax)
    ax.set_aspect("equal")
    ax.set_xlim(-1, 101)  # so that lines along the edges are not clipped
    ax.set_ylim(-1, 101)
    ax.plot([0, 100], [0, 100], color=FAINT, linestyle=(0, (2, 2)), linewidth=1.3, zorder=1.8, gid="random")
    ax.text(
        80,
        78.5,
        "random order",
        rotation=45,
        rotation_mode="anchor",
        ha="center",
        va="top",
        fontsize=SMALL_SIZE,
        color=FAINT,
    )


def draw_curve(ax: Axes, curve: RocCurve, **look: Any) -> Any:
    """Draw a curve in %, and return its line."""
    alpha, beta = drawn_knots(curve)
    options: dict[str, Any] = {"linewidth": 2.2, "solid_joinstyle": "round"} | look
    return ax.plot(100 * alpha, 100 * beta, **options)[0]


def draw_optimal(ax: Axes, curve: RocCurve, colour: str = INK) -> Any:
    """Draw the optimal curve over the others, and return its line."""
    return draw_curve(ax, curve, color=colour, linestyle=OPTIMAL_LINE, zorder=3.5, gid="optimal")


def _draw_band(ax: Axes, band: RocBand, colour: str, *, is_one_of_many: bool) -> None:
    """Shade a band; if several overlap, in a paler shade with edges."""
    alpha, low, high = 100 * band.alpha, 100 * band.low, 100 * band.high
    ax.fill_between(alpha, low, high, color=colour, alpha=0.06 if is_one_of_many else 0.14, linewidth=0, zorder=1.5)
    if is_one_of_many:
        for edge in (low, high):
            ax.plot(alpha, edge, color=colour, alpha=0.5, linewidth=0.8, zorder=1.6)


def drawn_knots(curve: RocCurve) -> tuple[Floats, Floats]:
    """Knots at which a curve bends; if there are very many, an evenly spaced selection with both ends."""
    run, rise = np.diff(curve.alpha), np.diff(curve.beta)
    bends = np.abs(run[:-1] * rise[1:] - rise[:-1] * run[1:]) > 1e-15
    chosen = np.flatnonzero(np.concatenate([[True], bends, [True]]))
    if len(chosen) > MOST_KNOTS:
        along = (curve.alpha + curve.beta)[chosen]
        chosen = chosen[np.unique(np.searchsorted(along, np.linspace(0, 2, MOST_KNOTS)).clip(0, len(chosen) - 1))]
    return curve.alpha[chosen], curve.beta[chosen]
