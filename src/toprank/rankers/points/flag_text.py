"""The page of a model with red flags: rules with points and hits, then the card."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toprank.metrics.hit_rates import HitRates
from toprank.rankers.points.card import Card
from toprank.rankers.points.card_text import points_text
from toprank.rankers.points.flags import Flag, Flags
from toprank.tree.columns import Column
from toprank.words.counts import count
from toprank.words.numbers import percent_text
from toprank.words.wording import EXACT, SHORT
from toprank.words.wrapping import wrapped

WIDTH = 100


def page(flags: Flags, card: Card, columns: Sequence[Column], rates: HitRates, *, exact: bool = False) -> str:
    """Return a model as text.

    Parameters
    ----------
    flags : Flags
    card : Card
    columns : sequence of Column
    rates : HitRates
    exact : bool, default False
    """
    parts = []
    base = points_text(card.base, EXACT if exact else SHORT).removeprefix("+")
    start = f"score = {base} + points; {card.scale_text()}"
    if len(flags):
        parts.append("\n".join(flag_lines(flags, rates.is_for_new_cases, exact=exact)))
    if len(card):
        title = "points of all cases" if len(flags) else "points"
        parts.append(f"{title}\n{card.to_text(columns, exact=exact, width=WIDTH, indent='  ')}")
    return "\n\n".join([start, *(parts or ["no rules, no points: every case has the same score"])])


def flag_lines(flags: Flags, has_rates: bool, *, exact: bool = False) -> list[str]:
    """Return the table of rules: number, points, rule, and on its right cases, hits and the rate of new cases."""
    detail = EXACT if exact else SHORT
    figures = [_figures(flag, has_rates) for flag in flags]
    head = ("cases", "hits", "hit rate" if has_rates else "training rate")
    sizes = [max(len(row[i]) for row in [head, *figures]) for i in range(3)]
    points = [points_text(flag.points, detail) for flag in flags]
    room = max(len("points"), *map(len, points))
    left = WIDTH - sum(sizes) - 3 * len(sizes)
    lines = [f"{'':4}{'points':>{room}}   {'red flag':{left - room - 7}}{_right(head, sizes)}"]
    for number, (flag, value, row) in enumerate(zip(flags, points, figures, strict=True), start=1):
        text = flags.rule_text(flag, detail)
        indent = len(text) - len(text.lstrip())
        shown = wrapped(text.strip(), left - room - 7 - indent) if not exact else [text.strip()]
        first, *rest = [" " * indent + line for line in shown]
        lines.append(f"{number:>2}  {value:>{room}}   {first:{left - room - 7}}{_right(row, sizes)}")
        lines += [f"{'':{room + 7}}{line}" for line in rest]
    return [line.rstrip() for line in lines]


def _figures(flag: Flag, has_rates: bool) -> tuple[str, str, str]:
    """Cases, hits and rate; empty where unknown, as for a rule that was added by hand."""
    rate = flag.rate(has_rates)
    n, positives = ("" if math.isnan(value) else count(value) for value in (flag.n, flag.positives))
    return n, positives, "" if math.isnan(rate) else percent_text(rate)


def _right(cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "".join(f"   {cell:>{size}}" for cell, size in zip(cells, sizes, strict=True))
