"""ROC curves: by method with their areas and bands (`RocDisplay`), of a tree level by level (`RocLevelsDisplay`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.errors import InputError, InputTypeError
from toprank.metrics.roc import RocBand, RocCurve, roc_band, roc_curve
from toprank.plots.display import Display
from toprank.plots.inputs import Floats, check_figures, check_objects, check_scores
from toprank.plots.lines import check_naming, draw_diagonal, name_diagonal, write_axis_labels
from toprank.plots.style import (
    FAINT,
    INK,
    PALETTE,
    TEXT_SIZE,
    MethodStyle,
    annotate,
    axes_width,
    complete_styles,
    drawing,
    dress_axes,
    house_style,
    new_figure,
    percent,
    short_names,
    text_width,
    write_title,
)
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 6.0  # inches of a square figure
MOST_KNOTS = 1500  # per curve: more would not be visible
OPTIMAL_LINE = (0, (6, 1.8))
LINE_HEIGHT = 1.55 * TEXT_SIZE / 72  # inches of an entry of a legend
HANDLE = 0.85  # inches of a legend without its texts
LEGEND: dict[str, Any] = {"fontsize": TEXT_SIZE, "handlelength": 2.2, "framealpha": 0.9, "edgecolor": "none"}
RATES = ("False positive rate (%)", "True positive rate (%)")
OPTIMAL_COLOUR = PALETTE[3]  # different from the blues of the depths


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

    _methods_in = "curves"

    curves: Mapping[str, RocCurve]
    optimal: RocCurve | None = None
    bands: Mapping[str, RocBand] | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        curves = check_objects(self.curves, RocCurve, "curves", caller=caller, article="a ", may_be_empty=False)
        bands = check_objects(self.bands or {}, RocBand, "bands", caller=caller, article="a ")
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
        y_true, scores, pos_label
            As in `PrecisionAtKDisplay.from_scores`.
        band : {"bootstrap", "dkw"}, optional
            Draws a band around every curve that contains the whole curve with probability `level`; as in
            `toprank.metrics.roc_band`.
        level : float, default=0.95
        optimal : RocCurve, optional
        random_state : int, numpy.random.Generator or None, default=0
            For the bootstrap.
        """
        named = check_scores(scores, caller=f"{cls.__name__}.from_scores")
        curves = {name: roc_curve(y_true, score, pos_label=pos_label) for name, score in named.items()}
        options: dict[str, Any] = {"level": level, "pos_label": pos_label, "random_state": random_state}
        bands = band and {name: roc_band(y_true, s, method=band, **options) for name, s in named.items()}
        return cls(curves, optimal, bands or None, title)

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
        ax, styles
            As in `PrecisionAtKDisplay.plot`.
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
                if band is not None:  # if several overlap, in a paler shade with edges
                    is_pale, colour = len(self.bands or {}) > 2, chosen[name].colour
                    ends = 100 * band.low, 100 * band.high
                    shade: dict[str, Any] = {"color": colour, "alpha": 0.06 if is_pale else 0.14, "linewidth": 0}
                    axes.fill_between(100 * band.alpha, *ends, zorder=1.5, **shade)
                    for edge in ends if is_pale else ():
                        axes.plot(100 * band.alpha, edge, color=colour, alpha=0.5, linewidth=0.8, zorder=1.6)
                handles[name] = draw_curve(axes, curve, linestyle=chosen[name].line, gid=f"method: {name}", **look)
            optimal = None if self.optimal is None else draw_optimal(axes, self.optimal)
            write_axis_labels(axes, *RATES, self._note())
            default = "ROC curve" if len(self.curves) == 1 else "ROC curves"
            write_title(axes, default if self.title is None else self.title, is_own=ax is None)
            if labels != "none":
                self._add_legend(axes, handles, optimal, is_own=ax is None)
        return self._keep(axes)

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


def axes_row(ax: Any, n: int, size: tuple[float, float], wanted: str, hint: str, owner: str) -> list[Axes]:
    """The given axes, n of them, or n axes side by side on a new figure of `size` inches."""
    if ax is None:
        figure = new_figure(size)
        return [figure.add_subplot(1, n, place + 1) for place in range(n)]
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != n:
        raise InputError(
            f"The 'ax' parameter of {owner}.plot must be {wanted}. Got {len(given)} instead. Hint: {hint}."
        )
    return given


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
    draw_diagonal(ax)
    name_diagonal(ax, 80)


def draw_curve(ax: Axes, curve: RocCurve, **look: Any) -> Any:
    """Draw a curve in %, and return its line."""
    alpha, beta = drawn_knots(curve)
    options: dict[str, Any] = {"linewidth": 2.2, "solid_joinstyle": "round"} | look
    return ax.plot(100 * alpha, 100 * beta, **options)[0]


def draw_optimal(ax: Axes, curve: RocCurve, colour: str = INK) -> Any:
    """Draw the optimal curve over the others, and return its line."""
    return draw_curve(ax, curve, color=colour, linestyle=OPTIMAL_LINE, zorder=3.5, gid="optimal")


def drawn_knots(curve: RocCurve) -> tuple[Floats, Floats]:
    """Knots at which a curve bends; if there are very many, an evenly spaced selection with both ends."""
    run, rise = np.diff(curve.alpha), np.diff(curve.beta)
    bends = np.abs(run[:-1] * rise[1:] - rise[:-1] * run[1:]) > 1e-15
    chosen = np.flatnonzero(np.concatenate([[True], bends, [True]]))
    if len(chosen) > MOST_KNOTS:
        along = (curve.alpha + curve.beta)[chosen]
        chosen = chosen[np.unique(np.searchsorted(along, np.linspace(0, 2, MOST_KNOTS)).clip(0, len(chosen) - 1))]
    return curve.alpha[chosen], curve.beta[chosen]


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
            from matplotlib import colormaps

            wanted, hint = "a pair of axes, for the curves and for the areas", "figure.subplots(1, 2)"
            left, right = axes_row(ax, 2, (2 * SIDE - 0.4, SIDE - 0.4), wanted, hint, type(self).__name__)
            n = len(self.curves)  # blues from pale to dark
            colours = [colormaps["Blues"](share) for share in (np.linspace(0.32, 1.0, n) if n > 1 else [0.8])]
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
            write_title(left, title, is_own=ax is None)
        self._keep(left)
        self._set(ax_=(left, right))
        return self

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
        look: dict[str, Any] = {"va": "top", "gid": "label: optimal", "xycoords": ax.get_yaxis_transform()}
        annotate(ax, f"optimal {best:.3f}", (0, best), (6, -5), **look)

    def __repr__(self) -> str:
        areas = self.areas
        return f"<{type(self).__name__} of {plural(len(areas), 'depth')}, AUC {areas[0]:.3f} to {areas[-1]:.3f}>"
