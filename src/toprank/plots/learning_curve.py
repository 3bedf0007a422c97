"""`LearningCurveDisplay`: how boosting ranks held-out cases, round by round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.curves import long_columns
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, check_series, read_columns, series_of
from toprank.plots.labels import name_lines
from toprank.plots.lines import draw_lines, in_percent, line_figure, line_limits, write_axis_labels
from toprank.plots.style import INK, SMALL_SIZE, MethodStyle, complete_styles, write_title
from toprank.rankers.boosting.additive_ranker import best_round

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = {"average_precision": "average precision", "precision_at_k": "precision at k"}


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
            raise InputError(
                f"{type(model).__name__} has no learning curve. Hint: fit a booster such as SGBAP, with cv=5."
            )
        values = {shown: curve[name] for name, shown in SHOWN.items()}
        return cls(curve["round"], values, best_round(curve["average_precision"]), title)

    @classmethod
    def from_frame(cls, frame: Any, *, chosen: int | None = None, title: str | None = None) -> LearningCurveDisplay:
        """Display of a frame with the columns method, rounds and value, as returned by `frame`."""
        caller = f"{cls.__name__}.from_frame"
        columns = read_columns(frame, ["method", "rounds", "value"], caller=caller)
        rounds, series = series_of(columns, "rounds", ["value"], caller=caller)
        return cls(rounds, series["value"], chosen, title)

    @property
    def methods(self) -> list[str]:
        """Names of the measures, in the order given."""
        return list(self.values)

    def columns(self) -> dict[str, Any]:
        """Columns method, rounds and value; one row per measure and round."""
        return long_columns(self.rounds, "rounds", value=self.values)

    def plot(self, ax: Axes | None = None, *, styles: Mapping[str, MethodStyle] | None = None) -> LearningCurveDisplay:
        """Draw one line per measure, and the chosen number of rounds.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        styles : dict of str to MethodStyle, optional
            From `method_styles`.
        """
        chosen, shown = complete_styles(self.methods, styles), in_percent(self.values)
        with line_figure(ax, self.methods, type(self).__name__) as (axes, is_own):
            ends = draw_lines(axes, self.rounds, shown, chosen)
            axes.set_xlim(float(self.rounds[0]), max(float(self.rounds[-1]), float(self.rounds[0]) + 1.0))
            axes.set_ylim(*line_limits(shown))
            if self.chosen is not None:
                self._mark(axes)
            write_axis_labels(axes, "Rounds (trees)", "Held-out cases (%)")
            write_title(axes, self._title() if self.title is None else self.title, is_own=is_own)
            name_lines(axes, ends, chosen, "direct", is_own=is_own)
        self._keep(axes)
        return self

    def _title(self) -> str:
        if self.chosen is None:
            return "Ranking of held-out cases, by round"
        return f"Held-out cases are ranked best after {self.chosen:,} rounds"

    def _mark(self, ax: Axes) -> None:
        at = float(self.chosen or 0)
        ax.axvline(at, color=INK, linewidth=1.2, zorder=1.5)
        is_left = at > np.mean(ax.get_xlim())
        ax.annotate(
            "best", xy=(at, ax.get_ylim()[0]), xytext=(-6 if is_left else 6, 6), textcoords="offset points",
            ha="right" if is_left else "left", va="bottom", fontsize=SMALL_SIZE, gid="best",
        )  # fmt: skip
