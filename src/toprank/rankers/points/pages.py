"""Whole pages of models of points: what scores mean, then rules with points and hits, then points of values.

Every page begins with where a score starts, what doubles the odds, hit rates by score and the cutoff. The tables of
points are those of `card_text`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toprank.explain.conditions import Condition
from toprank.metrics.hit_rates import HitRates
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
from toprank.words.counts import count, plural
from toprank.words.numbers import hit_rate_text, number_text
from toprank.words.wording import EXACT, SHORT, WEIGHT_DIGITS, Detail, category_sides, is_rounded
from toprank.words.wrapping import GLUE, wrapped

MOST_SCORES = 8
"""Most scores in the table of hit rates."""

LEAST_ABOVE = 10.0
"""The table ends where fewer cases have a higher score."""

NEAR = 0.1
"""A round score is shown if a case is above it by less than this share of a step."""

STEPS = (1.0, 2.0, 2.5, 5.0)
"""Round steps between scores, times a power of ten."""

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

START = "A case starts at {} and gets the points of each of its values"

SMALL_SHARE = 0.01
"""Columns with a smaller share in the variance of points share the last line of a short text, if it is long."""

PAGE_LINES = 60
"""Lines of a short text, if leaving out such columns can make it so short."""


OVERVIEW_LINES = 43
"""Lines of the overview of a longer page: with what the command line prints around it, it fits on a screen."""

GROUPS = "Each case is in one group, which adds points, and points for some of its values:"
GROUP_LINES = 14
"""Most lines of groups of cases in an overview."""


# --- head ---------------------------------------------------------------------------------------------------------


def head_lines(model: Any, start: str, width: int, detail: Detail = SHORT) -> list[str]:
    """Return the head of the page of a fitted model with a card; `start` says how points add up, in a sentence."""
    positive = model.classes_[model.positive_index_]
    label = SHORT.label(positive.item() if isinstance(positive, np.generic) else positive)
    hits = f"hit = {label}: {count(model.n_positives_)} of {count(model.n_cases_)}"
    lines = [
        *wrapped(start, width),
        *wrapped(f"The sum is its score; in training {model.card_.scale_text()} ({hits}).", width),
        "",
    ]
    return [*lines, *rate_lines(model.rates_, width), *wrapped(cutoff_text(model, detail), width)]


def rate_lines(rates: HitRates, width: int = 100) -> list[str]:
    r"""Return a small table: scores from the usual one to the top, their hit rates, and how many cases reach them.

    Examples
    --------
    >>> rates = HitRates([-50, -20, 10], [0.001, 0.05, 0.6], [1000, 100, 10], 2.0, "out of bag", 0.3, float("nan"))
    >>> print(*rate_lines(rates), sep="\n")
      score                                -50     -20     10
      hit rate at this score, new cases  0.1 %   5.0 %  60.0 %
      cases with this score or more      100 %  10.0 %  1.0 %
    """
    scores, found = shown_scores(rates)
    share = np.interp(found, rates.score, rates.share)
    title = "hit rate at this score, new cases" if rates.is_for_new_cases else "training rate at this score"
    rows = [
        ("score", [number_text(score) for score in scores.tolist()]),
        (title, [rate_text(rate, rates.is_for_new_cases) for rate in rates.at(found).tolist()]),
        ("cases with this score or more", [share_of_cases_text(each) for each in share.tolist()]),
    ]
    room = max(len(title) for title, _ in rows)
    size = max(len(cell) for _, cells in rows for cell in cells)
    gap = "  " if len(scores) * (size + 2) <= width - 2 - room else " "
    n = max(1, (width - 2 - room) // (size + len(gap)))
    return [f"  {title:{room}}{''.join(f'{gap}{cell:>{size}}' for cell in cells[-n:])}" for title, cells in rows]


def shown_scores(rates: HitRates) -> tuple[np.ndarray, np.ndarray]:
    """Return a few scores from the median of the cases to the top, as they are shown, and as the next case has them.

    Scores are round where a case is near. In a gap, the next score that occurs takes the place of the round one: as
    many cases have at least the one as the other, and nothing is said of scores that no case has.
    """
    known = rates.scores_of_cases
    share = np.interp(known, rates.score, rates.share)
    usual = known[share >= 0.5][-1]
    top = known[share >= min(LEAST_ABOVE / rates.n_cases, 0.5)][-1]
    steps, step = round_steps(float(usual), float(top))
    last = dict(zip(np.searchsorted(known, steps).tolist(), steps.tolist(), strict=True))  # of steps in the same gap
    found, steps = known[list(last)], np.array(list(last.values()))
    return np.where(found - steps < NEAR * step, steps, found), found


def round_steps(usual: float, top: float) -> tuple[np.ndarray, float]:
    """Return round scores in round steps, the last one up to `usual` and those up to `top`, and the step."""
    room = top - usual
    if not room > 1e-9 * max(abs(top), abs(usual), 1e-9):
        return np.array([top]), 0.0
    power = math.floor(math.log10(room / MOST_SCORES))
    for step in (step * 10.0**p for p in (power, power + 1) for step in STEPS):
        first, last = math.floor(usual / step + 1e-9), math.floor(top / step + 1e-9)
        if last - first < MOST_SCORES:
            break
    return np.minimum(np.round(np.arange(first, last + 1) * step, 12) + 0.0, top), step


def rate_text(rate: float, is_for_new_cases: bool = True) -> str:
    """Return a hit rate, or a training rate, in percent with one decimal, the same for all rates of a page.

    Examples
    --------
    >>> rate_text(0.0634), rate_text(0.48), rate_text(0.0002), rate_text(0.999), rate_text(0.0)
    ('6.3 %', '48.0 %', '< 0.1 %', '> 99 %', '0.0 %')
    """
    return hit_rate_text(rate, share_of_cases_text, is_for_new_cases=is_for_new_cases)


def share_of_cases_text(share: float) -> str:
    """Return a share of the cases in percent with one decimal; all cases are 100 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "100 %" if share > 0.9995 else f"{100 * share:.1f} %"


def cutoff_text(model: Any, detail: Detail = SHORT) -> str:
    """Return from which score cases are flagged, and how many hits to expect among them."""
    cutoff = model.cutoff_
    base = f"{share_of_cases_text(model.n_positives_ / model.n_cases_)} overall"
    if cutoff.is_for_new_cases:
        hits = f"expect {rate_text(cutoff.hit_rate)} hits among them, {base}"
    else:
        hits = f"in training {share_of_cases_text(cutoff.training_rate)} were hits, {base}"
        if not math.isclose(cutoff.training_rate, model.n_positives_ / model.n_cases_):
            hits += "; expect fewer"
    share = share_of_cases_text(cutoff.n_above / model.n_cases_)
    return f"Flagged: a score of {detail.number(cutoff.threshold)} or more, {share} of cases; {hits}."


# --- red flags ----------------------------------------------------------------------------------------------------


def flags_page(model: Any, *, exact: bool = False, full_text: str = FULL_TEXT) -> str:
    """Return a fitted `RedFlags` as text; `full_text` is how to get the exact text, which a shortened page names."""
    detail, flags, card, columns = EXACT if exact else SHORT, model.flags_, model.card_, model.columns_
    parts = ["\n".join(head_lines(model, start_text(len(flags) > 0, card, detail), WIDTH, detail))]
    has_rates = model.rates_.is_for_new_cases
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
        shown = [joined(texts)] if exact else wrapped_conditions(texts, left - len(indent))
        first, *rest = [indent + line for line in shown]
        lines.append(f"{place + 1:>2}  {value:>{room}}   {first:{left}}{_right(row, sizes)}")
        lines += [f"{'':{room + 7}}{line}" for line in rest]
    return [line.rstrip() for line in lines]


def own_conditions(flags: Flags, flag: Flag) -> tuple[Condition, ...]:
    """Return the conditions of a rule; of a correction, those beyond the conditions of the flag around it."""
    return flag.conditions if flag.inside == TOP else flag.beside(flags[flag.inside])


def wrapped_conditions(conditions: Sequence[str], width: int) -> list[str]:
    """Return the conditions of a rule in lines that end between them; inside only where one is too long for a line.

    Examples
    --------
    >>> wrapped_conditions(["sector is bar, book shop or night club", "-3 < margin <= 5"], 24)
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


# --- scorecards ---------------------------------------------------------------------------------------------------


def card_page(
    model: Any,
    start: str,
    exact: bool,
    width: int,
    groups: Sequence[str] = (),
    corrections: Sequence[Card] = (),
    *,
    full_text: str = FULL_TEXT,
) -> str:
    """Return a scorecard as text: where points start, with {} for the base; the card; groups of cases below it.

    `groups` are texts of groups of cases with points of their own, `corrections` these points.
    """
    detail, card, order = EXACT if exact else SHORT, model.card_, model._order()
    base = points_text(card.base, detail).removeprefix("+")
    head = head_lines(model, start.format(base), width, detail)
    notes = table_notes(card.shapes, model.columns_, width, has_conditions=len(groups) > 0)

    variance = model.spread_**2
    n_small = 0 if exact or groups else sum(variance[f] < SMALL_SHARE * variance.sum() for f in order)

    def tables(n: int) -> list[str]:
        return table_lines(model, len(order) - n, width, exact=exact)

    room = PAGE_LINES - len(head) - len(notes) - 3
    # The last columns, which move scores least, are left out: no more than a page needs.
    n_left_out = min(bisect_left(range(n_small + 1), True, key=lambda n: len(tables(n)) <= room), n_small)
    shapes = [*card.shapes, *(shape for each in corrections for shape in each.shapes)]
    is_short = n_left_out > 0 or any(is_shortened(shape, model.columns_[shape.feature]) for shape in shapes)
    hints = [shortened_hint(full_text)] if is_short and not exact else []
    return "\n\n".join(["\n".join(head), "\n".join(notes + tables(n_left_out)), *groups, *hints])


def card_overview(model: Any, start: str, groups: Sequence[tuple[str, list[str]]], full_text: str) -> str:
    """Return the beginning of a scorecard: its head, the columns that move scores most, and its groups of cases.

    `groups` have their points and their conditions in words; `full_text` is how to get the whole page.
    """
    card = model.card_
    head = head_lines(model, start.format(points_text(card.base).removeprefix("+")), WIDTH)
    notes = table_notes(card.shapes, model.columns_, WIDTH, has_conditions=len(groups) > 0)
    below = group_lines(groups)
    what = "every column and group of cases" if groups else "every column"
    parts = [*(["\n".join(below)] if below else []), f"Shortened: {full_text} has the points of {what}."]
    room = OVERVIEW_LINES - len(head) - len(notes) - sum(1 + len(part.splitlines()) for part in parts) - 1
    n_shown = bisect_left(range(1, len(card) + 1), True, key=lambda n: len(table_lines(model, n, WIDTH)) > room)
    return "\n\n".join(["\n".join(head), "\n".join(notes + table_lines(model, max(n_shown, 1), WIDTH)), *parts])


def group_lines(groups: Sequence[tuple[str, list[str]]]) -> list[str]:
    r"""Return groups of cases, given by their points and conditions, one below the other; a last line counts the rest.

    Examples
    --------
    >>> print(*group_lines([("-50", ["sector is bar", "age <= 3"]), ("+4", ["sector is not bar"])]), sep="\n")
    Each case is in one group, which adds points, and points for some of its values:
      -50   sector is bar; age <= 3
       +4   sector is not bar
    """
    room = max((len(points) for points, _ in groups), default=0)
    lines = [GROUPS] if groups else []
    for place, (points, conditions) in enumerate(groups):
        first, *rest = wrapped_conditions(conditions, WIDTH - room - 5)
        if len(lines) + len(rest) >= GROUP_LINES:
            return [*lines, f"  and {plural(len(groups) - place, 'more group', 'more groups')}"]
        lines += [f"  {points:>{room}}   {first}", *(f"{'':{room + 5}}{line}" for line in rest)]
    return lines


def table_lines(model: Any, n: int, width: int, *, exact: bool = False) -> list[str]:
    """Return the tables of the first n columns, then which others there are, and how many points they have at most."""
    card, order, columns = model.card_, model._order(), model.columns_
    lines = card.to_text(columns, order=order[:n], exact=exact, width=width).splitlines()
    if n >= len(order):
        return lines
    most = max(card.shape_of(f).largest for f in order[n:])
    names = [SHORT.name(columns[f].name).replace(" ", GLUE) for f in order[n:]]
    columns_with = f"{plural(len(names), 'column')} with at most {points_text(most).removeprefix('+')} points"
    return lines + wrapped(f"and {columns_with}{' each' if len(names) > 1 else ''}: {', '.join(names)}", width)
