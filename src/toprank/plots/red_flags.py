"""`RedFlagsDisplay`: the rules of a model as bars of points, with their hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, read_columns
from toprank.plots.style import FAINT, INK, PALETTE, SMALL_SIZE, drawing, dress_axes, write_title
from toprank.words.counts import plural
from toprank.words.numbers import percent_text
from toprank.words.wrapping import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LINE_HEIGHT, MARGIN = 11.0, 0.21, 1.3
"""Inches: of the figure, per line of text, and for title and axis."""

TEXT_WIDTH = 58
"""Characters per line of a rule."""

FOR, AGAINST = PALETTE[3], PALETTE[0]


@dataclass(frozen=True, eq=False, repr=False)
class RedFlagsDisplay(Display):
    """Rules as bars of points; beside each the cases for which it holds and the rate of positives.

    Parameters
    ----------
    rules : sequence of str
    points : array-like of shape (n_rules,)
    hit_rate : array-like of shape (n_rules,)
        Rates to expect of new cases, or of training; NaN if unknown.
    n : array-like of shape (n_rules,)
        Training cases for which each rule holds.
    title : str, optional
        Replaces the title; "" leaves it out.

    Examples
    --------
    >>> display = RedFlagsDisplay(["cash_share > 0.5", "age <= 2"], [20, -5], [0.3, 0.01], [120, 900])
    >>> display.plot().ax_.get_xlabel()
    'Points'
    """

    rules: Sequence[str]
    points: Any
    hit_rate: Any
    n: Any
    title: str | None = None

    def __post_init__(self) -> None:
        caller, rules = type(self).__name__, [str(rule) for rule in self.rules]
        if not rules:
            raise InputError(
                f"{caller} needs at least one rule, got none. Hint: a model without rules has a card alone."
            )
        checked = {
            name: check_figures(getattr(self, name), name, caller=caller, n=len(rules))
            for name in ("points", "hit_rate", "n")
        }
        self._set(rules=rules, **checked)

    @classmethod
    def from_estimator(cls, model: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a fitted `RedFlags`."""
        flags = getattr(model, "flags_", None)
        if flags is None:
            raise InputError(f"{type(model).__name__} has no rules with points. Hint: fit RedFlags.")
        rates = [flag.rate(model.rates_.is_for_new_cases) for flag in flags]
        texts = [flags.rule_text(flag).strip() for flag in flags]
        return cls(texts, [flag.points for flag in flags], rates, [flag.n for flag in flags], title)

    @classmethod
    def from_frame(cls, frame: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a frame with the columns rule, points, hit_rate and n, as returned by `frame`."""
        columns = read_columns(frame, ["rule", "points", "hit_rate", "n"], caller=f"{cls.__name__}.from_frame")
        return cls(columns["rule"], columns["points"], columns["hit_rate"], columns["n"], title)

    @property
    def methods(self) -> list[str]:
        """The rules in words."""
        return list(self.rules)

    def columns(self) -> dict[str, Any]:
        """Columns rule, points, hit_rate and n; one row per rule."""
        return {"rule": list(self.rules), "points": self.points, "hit_rate": self.hit_rate, "n": self.n}

    def plot(self, ax: Axes | None = None) -> RedFlagsDisplay:
        """Draw one bar per rule, the first at the top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        """
        texts = ["\n".join(wrapped(rule, TEXT_WIDTH)) for rule in self.rules]
        heights = np.array([1.0 + text.count("\n") for text in texts]) + 0.7
        at = -(np.cumsum(heights) - heights / 2)
        size = WIDTH, MARGIN + LINE_HEIGHT * float(heights.sum())
        with drawing(ax, size, type(self).__name__) as axes:
            dress_axes(axes, grid="x")
            axes.barh(at, self.points, height=heights - 0.6, color=np.where(self.points >= 0, FOR, AGAINST), zorder=2)
            axes.axvline(0, color=INK, linewidth=1.0, zorder=3)
            axes.set_yticks(at, texts, fontsize=SMALL_SIZE)
            axes.tick_params(axis="y", length=0)
            axes.set_ylim(-float(heights.sum()) - 0.2, 0.2)
            low, high = min(0.0, float(self.points.min())), max(0.0, float(self.points.max()))
            axes.set_xlim(low * 1.1, high + 1.2 * max(high - low, 1e-9))
            self._write_figures(axes, at)
            axes.set_xlabel("Points")
            write_title(axes, self._title() if self.title is None else self.title, is_own=ax is None)
        self._keep(axes)
        return self

    def _write_figures(self, ax: Axes, at: np.ndarray) -> None:
        for place, points, rate, n in zip(at, self.points, self.hit_rate, self.n, strict=True):
            hits = "" if np.isnan(rate) else f"hit rate {percent_text(float(rate))}"
            cases = "" if np.isnan(n) else plural(float(n), "training case")
            ax.annotate(
                f"{points:+,.4g}   {', '.join(filter(None, (hits, cases)))}",
                xy=(max(float(points), 0.0), float(place)),
                xytext=(6, 0), textcoords="offset points", va="center", fontsize=SMALL_SIZE, color=FAINT,
            )  # fmt: skip

    def _title(self) -> str:
        return f"{plural(len(self.rules), 'red flag')}, and the hits to expect among such cases"
