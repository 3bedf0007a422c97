"""The page of a model with red flags: what scores mean, rules with points and hits, points of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from toprank.explain.conditions import Condition
from toprank.rankers.points.card import Card
from toprank.rankers.points.card_text import (
    FULL_TEXT,
    NAMED,
    hides_digits,
    hides_names,
    is_shortened,
    points_text,
    shortened_hint,
    table_notes,
)
from toprank.rankers.points.flags import TOP, Flag, Flags, joined
from toprank.rankers.points.score_text import Meaning, head_lines, rate_text
from toprank.tree.columns import Column
from toprank.words.counts import count
from toprank.words.wording import EXACT, SHORT, WEIGHT_DIGITS, Detail, category_sides, is_rounded
from toprank.words.wrapping import GLUE, wrapped

WIDTH = 100

FIGURES = (
    "cases, hits: past cases for which all its conditions hold, and hits among them. hit rate: estimate for new cases; "
    "it differs from hits / cases, as the rules were chosen on those cases, and counts all points that such cases have."
)
TRAINING = (
    "cases, hits: past cases for which all its conditions hold, and hits among them. training rate: hits / cases; "
    "expect less of new cases, as the rules were chosen on the past ones."
)
TITLE = "red flag (all its conditions must hold)"
CORRECTIONS = "Where {} holds, also add the points of each of these that holds:"
NOTHING = "nothing else: every case has the same score"


def page(
    flags: Flags,
    card: Card,
    columns: Sequence[Column],
    meaning: Meaning,
    *,
    exact: bool = False,
    full_text: str = FULL_TEXT,
) -> str:
    """Return a model as text.

    Parameters
    ----------
    flags : Flags
    card : Card
    columns : sequence of Column
    meaning : Meaning
    exact : bool, default False
    full_text : str
        How to get the exact text, which a shortened page names.
    """
    detail = EXACT if exact else SHORT
    parts = ["\n".join(head_lines(meaning, start_text(len(flags) > 0, card, detail), WIDTH, detail))]
    has_rates = meaning.rates.is_for_new_cases
    if len(flags):
        parts.append("\n".join(
            flag_lines(flags, has_rates, exact=exact) + wrapped(FIGURES if has_rates else TRAINING, WIDTH)
        ))  # fmt: skip
    if len(card) or len(flags):
        notes = table_notes(card.shapes, columns, WIDTH, has_conditions=len(flags) > 0)
        tables = [card.to_text(columns, exact=exact, width=WIDTH, indent="  ")] if len(card) else []
        parts.append("\n".join([*notes, *tables]))
    if not exact and (
        any(is_shortened(shape, columns[shape.feature]) for shape in card.shapes) or any(map(_is_shortened, flags))
    ):
        parts.append(shortened_hint(full_text))
    return "\n\n".join(parts)


def start_text(has_flags: bool, card: Card, detail: Detail = SHORT) -> str:
    """Return how the score of a case adds up: where it starts, and what it gets."""
    base = points_text(card.base, detail).removeprefix("+")
    of_flags = ["of every red flag that holds"] if has_flags else []
    gets = of_flags + (["of each of its values"] if len(card) else [])
    return f"A case starts at {base} and gets {'the points ' + ' and '.join(gets) if gets else NOTHING}."


def flag_lines(flags: Flags, has_rates: bool, *, exact: bool = False) -> list[str]:
    """Return the table of rules: number, points, rule, and on its right cases, hits and the rate of new cases."""
    detail = EXACT if exact else SHORT
    figures = [_figures(flag, has_rates) for flag in flags]
    head = ("cases", "hits", "hit rate" if has_rates else "training rate")
    sizes = [max(len(row[i]) for row in [head, *figures]) for i in range(3)]
    points = [points_text(flag.points, detail) for flag in flags]
    room = max(len("points"), *map(len, points))
    left = WIDTH - sum(sizes) - 3 * len(sizes) - room - 7
    lines = [f"{'':4}{'points':>{room}}   {TITLE:{left}}{_right(head, sizes)}"]
    for place, (flag, value, row) in enumerate(zip(flags, points, figures, strict=True)):
        if flag.inside not in (TOP, flags[place - 1].inside):
            lines.append(f"{'':{room + 7}}{CORRECTIONS.format(flag.inside + 1)}")
        indent = "" if flag.inside == TOP else "  "
        texts = condition_texts(own_conditions(flags, flag), exact=exact)
        shown = [joined(texts)] if exact else rule_lines(texts, left - len(indent))
        first, *rest = [indent + line for line in shown]
        lines.append(f"{place + 1:>2}  {value:>{room}}   {first:{left}}{_right(row, sizes)}")
        lines += [f"{'':{room + 7}}{line}" for line in rest]
    return [line.rstrip() for line in lines]


def own_conditions(flags: Flags, flag: Flag) -> tuple[Condition, ...]:
    """Return the conditions of a rule; of a correction, those beyond the conditions of the flag around it."""
    return flag.conditions if flag.inside == TOP else flag.beside(flags[flag.inside])


def rule_lines(conditions: Sequence[str], width: int) -> list[str]:
    """Return the conditions of a rule in lines that end between them; inside only where one is too long for a line.

    Examples
    --------
    >>> rule_lines(["sector is bar, book shop or night club", "-3 < margin <= 5"], 24)
    ['sector is bar, book shop', 'or night club;', '-3 < margin <= 5']
    """
    return wrapped(joined([_glued(text, width) for text in conditions]), width)


def _glued(condition: str, width: int) -> str:
    """Return a condition whose lines do not end inside it, or else not inside a name; anywhere if all is too long."""
    whole = condition.replace(" ", GLUE)
    if len(whole) < width:
        return whole
    parts = whole.replace(f",{GLUE}", ", ").replace(f"{GLUE}or{GLUE}", f" or{GLUE}")
    return parts if max(map(len, parts.split(" "))) < width else condition


def condition_texts(conditions: Sequence[Condition], *, exact: bool = False) -> list[str]:
    """Return conditions in words that name their categories, with "or missing" wherever a missing value qualifies."""
    whole = [replace(each, column=replace(each.column, has_missing=True)) if each.missing else each
             for each in conditions]  # fmt: skip
    return [condition.text(detail=EXACT if exact else NAMED) for condition in whole]


def _is_shortened(flag: Flag) -> bool:
    """Return True if the page shortens a condition of a rule, or its points."""
    for each in flag.conditions:
        bounds = [bound for bound in (each.low, each.high) if math.isfinite(bound)] if each.has_values else []
        names = min(category_sides(each.column, each.codes), key=len) if each.codes is not None else []
        if hides_names(names) or hides_digits(bounds, each.column):
            return True
    return is_rounded(flag.points, WEIGHT_DIGITS)


def _figures(flag: Flag, has_rates: bool) -> tuple[str, str, str]:
    """Cases, hits and rate; empty where unknown, as for a rule that was added by hand."""
    rate = flag.rate(has_rates)
    n, positives = ("" if math.isnan(value) else count(value) for value in (flag.n, flag.positives))
    return n, positives, "" if math.isnan(rate) else rate_text(rate, has_rates)


def _right(cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "".join(f"   {cell:>{size}}" for cell, size in zip(cells, sizes, strict=True))
