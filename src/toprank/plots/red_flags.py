"""`RedFlagsDisplay`: the rules of a model as bars of points, with their hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError
from toprank.plots.display import Display
from toprank.plots.inputs import check_figures, read_columns
from toprank.plots.style import FAINT, INK, PALETTE, SMALL_SIZE, drawing, dress_axes, text_width, wrap, write_title
from toprank.rankers.points.card_text import points_text
from toprank.rankers.points.flags import flags_text, joined
from toprank.rankers.points.pages import CORRECTIONS, condition_texts, own_conditions, rate_text, rule_lines, start_text
from toprank.words.counts import count
from toprank.words.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LINE_HEIGHT, MARGIN = 11.0, 0.21, 1.5
"""Inches: of the figure, per line of text, and for title, heads and axis."""

TEXT_WIDTH = 58
"""Characters per line of a rule."""

GAP, INDENT, RATE_AT, CASES_AT = 10.0, 16.0, 74.0, 132.0
"""Printer's points: between text and bars, of corrections, and from the bars to the ends of the figures."""

BAR, ROW_GAP = 0.8, 0.6
"""Lines of text: thickness of a bar, and space between rules."""

FOR, AGAINST = PALETTE[3], PALETTE[0]


@dataclass(frozen=True, eq=False, repr=False)
class RedFlagsDisplay(Display):
    """Rules as bars of points; beside each the rate of hits, and the cases for which it holds.

    Parameters
    ----------
    rules : sequence of str
        Conditions, separated by "; "; those of a correction without the conditions of the flag around it.
    points : array-like of shape (n_rules,)
    hit_rate : array-like of shape (n_rules,)
        Rates to expect of new cases, or of training; NaN if unknown.
    n : array-like of shape (n_rules,)
        Training cases for which each rule holds.
    title : str, optional
        Replaces the title; "" leaves it out.
    inside : array-like of shape (n_rules,), optional
        Number of the rule, from 1, that each rule corrects; 0 if it stands on its own.
    note : str, default ""
        How a score adds up; below the bars.
    is_for_new_cases : bool, default True
        Whether rates are those of new cases.

    Examples
    --------
    >>> display = RedFlagsDisplay(["cash_share > 0.5", "age <= 2"], [20, -5], [0.3, 0.01], [120, 900], inside=[0, 1])
    >>> display.plot().figure_.get_suptitle()
    '1 red flag, 1 correction'
    """

    rules: Sequence[str]
    points: Any
    hit_rate: Any
    n: Any
    title: str | None = None
    inside: Any = None
    note: str = ""
    is_for_new_cases: bool = True

    def __post_init__(self) -> None:
        caller, rules = type(self).__name__, [str(rule) for rule in self.rules]
        if not rules:
            raise InputError(
                f"{caller} needs at least one rule, got none. Hint: a model without rules has a card alone."
            )
        inside = np.zeros(len(rules)) if self.inside is None else self.inside
        checked = {
            name: check_figures(values, name, caller=caller, n=len(rules))
            for name, values in (("points", self.points), ("hit_rate", self.hit_rate), ("n", self.n),
                                 ("inside", inside))
        }  # fmt: skip
        if not np.isin(checked["inside"], np.arange(len(rules) + 1)).all():
            raise InputError(
                f"'inside' of {caller} must have numbers of rules, from 0 to {len(rules)}, got {inside!r}. "
                "Hint: 0 is a rule that stands on its own."
            )
        self._set(rules=rules, **checked)

    @classmethod
    def from_estimator(cls, model: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a fitted `RedFlags`."""
        flags = getattr(model, "flags_", None)
        if flags is None:
            raise InputError(f"{type(model).__name__} has no rules with points. Hint: fit RedFlags.")
        has_rates = model.rates_.is_for_new_cases
        texts = [joined(condition_texts(own_conditions(flags, flag))) for flag in flags]
        note = start_text(True, model.card_)
        return cls(
            texts, [flag.points for flag in flags], [flag.rate(has_rates) for flag in flags],
            [flag.n for flag in flags], title, [flag.inside + 1 for flag in flags],
            f"{note[:-1]} (not shown here)." if len(model.card_) else note, has_rates,
        )  # fmt: skip

    @classmethod
    def from_frame(cls, frame: Any, *, title: str | None = None) -> RedFlagsDisplay:
        """Display of a frame with the columns rule, points, hit_rate and n, and perhaps inside, as from `frame`."""
        needed = ["rule", "points", "hit_rate", "n"]
        columns = read_columns(frame, needed, ["inside"], caller=f"{cls.__name__}.from_frame")
        rules, points, hit_rate, n = (columns[name] for name in needed)
        return cls(rules, points, hit_rate, n, title, columns.get("inside"))

    @property
    def methods(self) -> list[str]:
        """The rules in words."""
        return list(self.rules)

    def columns(self) -> dict[str, Any]:
        """Columns number, rule, points, inside, hit_rate and n; one row per rule."""
        return {
            "number": list(range(1, len(self.rules) + 1)), "rule": list(self.rules), "points": self.points,
            "inside": self.inside.astype(np.int64), "hit_rate": self.hit_rate, "n": self.n,
        }  # fmt: skip

    @property
    def _is_correction(self) -> np.ndarray:
        return (self.inside > 0) | (self.points < 0)

    def plot(self, ax: Axes | None = None) -> RedFlagsDisplay:
        """Draw one bar per rule, the first at the top; corrections are indented below the rule that they correct.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the display makes its own figure, `figure_`.
        """
        texts = ["\n".join(rule_lines(visible(rule).split("; "), TEXT_WIDTH)) for rule in self.rules]
        is_first = [
            number > 0 and number != self.inside[place - 1] for place, number in enumerate(self.inside.tolist())
        ]
        heights = np.array([1.0 + text.count("\n") for text in texts]) + ROW_GAP
        tops = np.cumsum(heights + 1.2 * np.array(is_first)) - heights
        at, bottom = -(tops + heights / 2), float(tops[-1] + heights[-1])
        with drawing(ax, (WIDTH, MARGIN + LINE_HEIGHT * bottom), type(self).__name__) as axes:
            dress_axes(axes)
            axes.grid(False)
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelsize=SMALL_SIZE)
            axes.barh(at, self.points, height=BAR, color=np.where(self.points >= 0, FOR, AGAINST), zorder=2)
            axes.axvline(0, color=INK, linewidth=1.0, zorder=3)
            axes.set_yticks([])
            axes.set_ylim(-bottom - 0.2, 0.2)
            low, high = min(0.0, float(self.points.min())), max(0.0, float(self.points.max()))
            room = 0.2 * max(high - low, 1e-9)  # for the points beside the bars
            axes.set_xlim(low - room * (low < 0), high + room * (high > 0))
            axes.set_xlabel("Points", fontsize=SMALL_SIZE)
            self._write_rules(axes, at, texts, -tops - 0.55, is_first)
            self._write_figures(axes, at)
            if self.points.min() < 0:
                _explain_colours(axes)
            if ax is None and self.note:
                figure = axes.figure.figure
                note = wrap(figure, self.note, WIDTH - 0.3, SMALL_SIZE)
                figure.supxlabel(note, x=0.012, ha="left", fontsize=SMALL_SIZE, color=INK, parse_math=False)
            title = flags_text(len(texts), int(self._is_correction.sum())) if self.title is None else self.title
            write_title(axes, title, is_own=ax is None)
        self._keep(axes)
        return self

    def _write_rules(
        self, ax: Axes, at: np.ndarray, texts: Sequence[str], above: np.ndarray, is_first: Sequence[bool]
    ) -> None:
        """Write numbers and rules to the left of the bars, left-aligned, and what corrections are above the first."""
        figure = ax.figure.figure
        indents = np.where(self.inside > 0, INDENT, 0.0)
        sizes = [72 * text_width(figure, text.split("\n"), SMALL_SIZE) for text in texts]
        notes = [
            CORRECTIONS.format(int(number)) if first else ""
            for number, first in zip(self.inside, is_first, strict=True)
        ]
        sizes += [72 * text_width(figure, [note], SMALL_SIZE) for note in notes if note]
        left = -GAP - max(np.append(indents, np.zeros(len(sizes) - len(texts))) + sizes)
        numbers = left - 72 * text_width(figure, ["  "], SMALL_SIZE)
        for place, (text, note) in enumerate(zip(texts, notes, strict=True)):
            y = float(at[place])
            _write(ax, str(place + 1), 0.0, y, numbers, f"label: number {place + 1}", ha="right", color=FAINT)
            _write(ax, text, 0.0, y, left + float(indents[place]), f"label: rule {place + 1}")
            if note:
                _write(ax, note, 0.0, float(above[place]) + 1.2, left, f"label: inside {place + 1}", color=FAINT)
        _write(ax, "red flag (all its conditions must hold)", 0.0, 0.9, left, "label: head", color=FAINT)

    def _write_figures(self, ax: Axes, at: np.ndarray) -> None:
        """Write points beside the bars, and rates and cases in columns to the right of them."""
        name = "hit rate,\nnew cases" if self.is_for_new_cases else "hit rate,\ntraining"
        _write(ax, name, 1.0, 1.1, RATE_AT, "label: head of rates", ha="right", color=FAINT)
        _write(ax, "past\ncases", 1.0, 1.1, CASES_AT, "label: head of cases", ha="right", color=FAINT)
        for place, (y, points) in enumerate(zip(at.tolist(), self.points.tolist(), strict=True)):
            rate, n = float(self.hit_rate[place]), float(self.n[place])
            side = -1 if points < 0 else 1
            ax.annotate(
                points_text(points), xy=(points, y), xytext=(5 * side, 0), textcoords="offset points", va="center",
                ha="left" if side > 0 else "right", fontsize=SMALL_SIZE, gid=f"label: points {place + 1}",
            )  # fmt: skip
            shown = "" if np.isnan(rate) else rate_text(rate, self.is_for_new_cases), "" if np.isnan(n) else count(n)
            for text, x in zip(shown, (RATE_AT, CASES_AT), strict=True):
                _write(ax, text, 1.0, y, x, f"label: {x} {place + 1}", ha="right")


def _write(
    ax: Axes, text: str, side: float, y: float, shift: float, gid: str, *, ha: Any = "left", color: str = INK
) -> None:
    """Write beside the axes: from their left (0) or right (1) side, shifted by printer's points."""
    ax.annotate(
        text, xy=(side, y), xycoords=("axes fraction", "data"), xytext=(shift, 0), textcoords="offset points",
        va="center", ha=ha, fontsize=SMALL_SIZE, color=color, gid=gid, annotation_clip=False, parse_math=False,
    )  # fmt: skip


def _explain_colours(ax: Axes) -> None:
    from matplotlib.patches import Patch

    ax.legend(
        handles=[Patch(color=FOR, label="raises the score"), Patch(color=AGAINST, label="lowers the score")],
        loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, frameon=False, fontsize=SMALL_SIZE,
        handlelength=1.0, labelcolor=FAINT,
    )  # fmt: skip
