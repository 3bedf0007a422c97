"""`CriticalDifferenceDisplay`: mean ranks on a line, with bars joining methods that do not differ clearly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, read_columns
from toprank.plots.style import (
    FAINT,
    INK,
    TEXT_SIZE,
    MethodStyle,
    annotate,
    complete_styles,
    drawing,
    short_names,
    text_width,
    write_title,
)
from toprank.words.counts import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE_WIDTH = 5.6  # inches of the rank axis
ROW_HEIGHT = 0.31  # inches of a label, and the unit of the y-axis
BAR_STEP = 0.55  # rows between two bars
HEAD = 2.3  # rows above the axis


@dataclass(frozen=True, eq=False, repr=False)
class CriticalDifferenceDisplay(Display):
    """Demšar's diagram: the mean rank of every method over data sets, and which differences are clear.

    Parameters
    ----------
    mean_rank : dict of str to float
        By method; 1 is best.
    critical_difference : float, optional
        Two methods whose mean ranks differ by at least this differ clearly.
    cliques : sequence of collections of str, optional
        Groups of methods without a clear difference among them, such as those of Holm's tests. By default they follow
        from the critical difference: the largest groups of neighbours that it spans.
    n_data_sets : int, optional
        Named in the title.
    title : str, optional
        Replaces the title; "" leaves it out.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, section 3.2.4.

    Examples
    --------
    >>> display = CriticalDifferenceDisplay({"Gini": 2.9, "MetaAP": 1.2, "Entropy": 2.1}, 1.0, n_data_sets=28)
    >>> display.cliques
    (('MetaAP', 'Entropy'), ('Entropy', 'Gini'))
    >>> display.columns()["method"]
    ['MetaAP', 'Entropy', 'Gini']
    >>> display.plot().figure_.get_suptitle()
    'Mean rank over 28 data sets, 1 is best; bars join methods too close to call'
    """

    _methods_in = "mean_rank"

    mean_rank: Mapping[str, float]
    critical_difference: float | None = None
    cliques: Sequence[Collection[str]] | None = None
    n_data_sets: int | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        caller = type(self).__name__
        if not isinstance(self.mean_rank, Mapping) or len(self.mean_rank) < 2:
            raise InputError(f"'mean_rank' of {caller} must be a dictionary with the rank of at least two methods.")
        ranks = check_figures(list(self.mean_rank.values()), "mean_rank", caller=caller)
        names = [str(name) for name in self.mean_rank]
        if np.isnan(ranks).any():
            name = names[int(np.isnan(ranks).argmax())]
            raise InputError(f"{caller} needs the mean rank of {name!r}. Hint: leave out methods that did not finish.")
        cd = self.critical_difference
        if cd is not None and not 0 < cd < np.inf:
            raise InputError(f"'critical_difference' of {caller} must be a number above 0. Got {cd!r} instead.")
        by_name = dict(zip(names, ranks.tolist(), strict=True))
        cliques = _spanned(by_name, cd) if self.cliques is None else _checked(self.cliques, by_name, caller)
        self._set(mean_rank=by_name, cliques=cliques)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        critical_difference: float | None = None,
        *,
        cliques: Sequence[Collection[str]] | None = None,
        n_data_sets: int | None = None,
        title: str | None = None,
    ) -> CriticalDifferenceDisplay:
        """Display of a frame with the columns method and mean_rank, one row per method."""
        caller = f"{cls.__name__}.from_frame"
        columns = read_columns(frame, ["method", "mean_rank"], caller=caller)
        ranks = dict(zip(columns["method"], columns["mean_rank"], strict=True))
        if len(ranks) < len(columns["method"]):
            raise InputError(
                f"{caller} needs one row per method, but some have several. Hint: average the ranks first."
            )
        return cls(ranks, critical_difference, cliques, n_data_sets, title)

    def columns(self) -> dict[str, Any]:
        """Columns method, mean_rank and cliques (numbers of the bars it is under, such as "1, 2"), best first."""
        order = _best_first(self.mean_rank)
        bars = [[number for number, clique in enumerate(self.cliques or (), 1) if name in clique] for name in order]
        return {
            "method": order,
            "mean_rank": np.array([self.mean_rank[name] for name in order]),
            "cliques": [", ".join(map(str, numbers)) for numbers in bars],
        }

    def plot(
        self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None
    ) -> CriticalDifferenceDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`, as large as the names need. If you pass axes, leave
            room for names on both sides, and about a third of an inch for every two methods.
        styles : dict of str to MethodStyle, optional
            From `method_styles`, so that a method looks the same in all plots.
        """
        order = _best_first(self.mean_rank)
        low, high = self._range()
        margin = 0.01 * (high - low)  # bars extend beyond the ranks, so that tied ones have a bar too
        inside = [[self.mean_rank[name] for name in clique] for clique in self.cliques or ()]
        bars = [(min(ranks) - margin, max(ranks) + margin) for ranks in inside]
        levels = stack_bars(bars)
        first_row = 1.0 + BAR_STEP * (max(levels, default=-1) + 1)
        bottom = first_row + (len(order) + 1) // 2
        chosen = complete_styles(self.methods, styles)
        with drawing(ax, (LINE_WIDTH + 3, (bottom + HEAD) * ROW_HEIGHT + 0.9), type(self).__name__) as axes:
            labels = {name: f"{text}  {self.mean_rank[name]:.2f}" for name, text in short_names(order).items()}
            if ax is None:
                sides = 2 * text_width(axes.figure.figure, labels.values(), TEXT_SIZE)
                axes.figure.figure.set_figwidth(LINE_WIDTH + sides + 0.6)
            self._draw_line(axes, low, high)
            for (start, end), level in zip(bars, levels, strict=True):
                y = 0.6 + BAR_STEP * level
                axes.plot(
                    [start, end], [y, y], color=INK, linewidth=5, alpha=0.85, zorder=3, gid="clique", clip_on=False
                )
            # The better half on the left, the best on top, and the rest on the right, the worst on top: so no line
            # crosses a name or another line.
            for position, name in enumerate(order):
                is_left, colour = position < (len(order) + 1) // 2, chosen[name].colour
                y = first_row + (position if is_left else len(order) - 1 - position)
                edge, rank = (low if is_left else high), self.mean_rank[name]
                axes.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=1.5, zorder=2, clip_on=False)
                axes.plot([rank], [0], marker="o", markersize=6, color=colour, zorder=4, clip_on=False)
                look: dict[str, Any] = {"ha": "right" if is_left else "left", "va": "center", "fontsize": TEXT_SIZE}
                shift = (-6 if is_left else 6, 0)
                annotate(axes, labels[name], (edge, y), shift, gid=f"label: {name}", annotation_clip=False, **look)
            axes.set_xlim(low, high)
            axes.set_ylim(bottom - 0.4, -HEAD)  # downwards
            axes.set_axis_off()
            write_title(axes, self._title() if self.title is None else self.title, is_own=ax is None)
        return self._keep(axes)

    def _title(self) -> str:
        over = "" if self.n_data_sets is None else f" over {plural(self.n_data_sets, 'data set')}"
        joined = "; bars join methods too close to call" if self.cliques else ""
        return f"Mean rank{over}, 1 is best{joined}"

    def _range(self) -> tuple[float, float]:
        """Ends of the axis: whole ranks around those of the methods, at least the critical difference apart."""
        ranks = list(self.mean_rank.values())
        low = float(np.floor(min(ranks)))
        return low, max(float(np.ceil(max(ranks))), low + float(np.ceil(self.critical_difference or 1.0)))

    def _draw_line(self, ax: Axes, low: float, high: float) -> None:
        """The rank axis with its ticks, and the critical difference above it."""
        ax.plot([low, high], [0, 0], color=INK, linewidth=1.4, clip_on=False)
        step = max(1, round((high - low) / 10))
        for rank in np.arange(low, high + 0.5, step):
            ax.plot([rank, rank], [0, -0.25], color=INK, linewidth=1.2, clip_on=False)
            ax.text(rank, -0.35, f"{rank:g}", ha="center", va="bottom", fontsize=TEXT_SIZE, color=INK)
        if self.critical_difference is not None:
            y, end = -1.8, low + self.critical_difference
            ax.plot([low, end], [y, y], color=FAINT, linewidth=2.5, gid="critical difference")
            for x in (low, end):
                ax.plot([x, x], [y - 0.18, y + 0.18], color=FAINT, linewidth=1.5, clip_on=False)
            text = f"critical difference {self.critical_difference:.2f}"
            annotate(ax, text, (end, y), (7, 0), va="center", color=FAINT, gid="critical difference")


def stack_bars(ends: Sequence[tuple[float, float]]) -> list[int]:
    """Level of each bar: the lowest at which it touches no earlier bar.

    Examples
    --------
    >>> stack_bars([(1.0, 3.0), (2.0, 4.0), (3.5, 5.0)])
    [0, 1, 0]
    """
    levels: list[int] = []
    for number, (start, end) in enumerate(ends):
        before = zip(ends[:number], levels, strict=True)
        taken = {level for (other_start, other_end), level in before if start <= other_end and other_start <= end}
        levels.append(next(level for level in range(number + 1) if level not in taken))
    return levels


def _best_first(ranks: Mapping[str, float]) -> list[str]:
    return sorted(ranks, key=lambda name: ranks[name])


def _spanned(ranks: Mapping[str, float], cd: float | None) -> tuple[tuple[str, ...], ...]:
    """The largest groups of neighbours whose ranks differ by less than `cd`, with at least two methods."""
    if cd is None:
        return ()
    order, groups, reached = _best_first(ranks), [], 0
    for start, name in enumerate(order):
        end = max(place for place, other in enumerate(order) if ranks[other] - ranks[name] < cd) + 1
        if end > max(reached, start + 1):
            groups.append(tuple(order[start:end]))
            reached = end
    return tuple(groups)


def _checked(
    cliques: Sequence[Collection[str]], ranks: Mapping[str, float], caller: str
) -> tuple[tuple[str, ...], ...]:
    """The cliques of two or more methods, each best first."""
    for clique in cliques:
        unknown = [name for name in clique if name not in ranks]
        if isinstance(clique, str) or unknown:
            found = repr(clique if isinstance(clique, str) else unknown[0])
            raise InputError(
                f"'cliques' of {caller} must be groups of the methods in 'mean_rank'. Got {found}. "
                "Hint: [['MetaAP', 'Gini'], ...]."
            )
    order = {name: place for place, name in enumerate(_best_first(ranks))}
    return tuple(tuple(sorted(clique, key=order.__getitem__)) for clique in cliques if len(clique) > 1)
