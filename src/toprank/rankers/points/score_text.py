"""What a score of points means, in words: where it starts, what doubles the odds, hit rates by score, the cutoff.

The head of every page with points, and the notes below it. Knows scores and rates, but neither rules nor cards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.budget import Cutoff
from toprank.metrics.hit_rates import HitRates
from toprank.words.counts import count
from toprank.words.numbers import hit_rate_text, number_text
from toprank.words.wording import SHORT, Detail
from toprank.words.wrapping import wrapped

MOST_SCORES = 8
"""Most scores in the table of hit rates."""

LEAST_ABOVE = 10.0
"""The table ends where fewer cases have a higher score."""

NEAR = 0.1
"""A round score is shown if a case is above it by less than this share of a step."""

STEPS = (1.0, 2.0, 2.5, 5.0)
"""Round steps between scores, times a power of ten."""


@dataclass(frozen=True)
class Meaning:
    """All that a page says of scores, apart from how they add up.

    Attributes
    ----------
    scale : str
        What points mean: "about 7 points double the odds".
    rates : HitRates
    cutoff : Cutoff
    n_cases, n_positives : float
        Of training.
    positive : label
        The outcome of a hit.
    """

    scale: str
    rates: HitRates
    cutoff: Cutoff
    n_cases: float
    n_positives: float
    positive: Any


def meaning_of(model: Any) -> Meaning:
    """What the scores of a fitted model with a card mean."""
    positive = model.classes_[model.positive_index_]
    return Meaning(model.card_.scale_text(), model.rates_, model.cutoff_, model.n_cases_, model.n_positives_,
                   positive.item() if isinstance(positive, np.generic) else positive)  # fmt: skip


def head_lines(meaning: Meaning, start: str, width: int, detail: Detail = SHORT) -> list[str]:
    """Return the head of a page.

    Parameters
    ----------
    meaning : Meaning
    start : str
        How points add up, a sentence.
    width : int
    detail : Detail
    """
    hits = f"hit = {SHORT.label(meaning.positive)}: {count(meaning.n_positives)} of {count(meaning.n_cases)}"
    lines = [
        *wrapped(start, width),
        *wrapped(f"The sum is its score; in training {meaning.scale} ({hits}).", width),
        "",
    ]
    return [*lines, *rate_lines(meaning.rates, width), *wrapped(cutoff_text(meaning, detail), width)]


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
        ("cases with this score or more", [share_text(each) for each in share.tolist()]),
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
    return hit_rate_text(rate, share_text, is_for_new_cases=is_for_new_cases)


def share_text(share: float) -> str:
    """Return a share of the cases in percent with one decimal; all cases are 100 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return "100 %" if share > 0.9995 else f"{100 * share:.1f} %"


def cutoff_text(meaning: Meaning, detail: Detail = SHORT) -> str:
    """Return from which score cases are flagged, and how many hits to expect among them."""
    cutoff = meaning.cutoff
    base = f"{share_text(meaning.n_positives / meaning.n_cases)} overall"
    if cutoff.is_for_new_cases:
        hits = f"expect {rate_text(cutoff.hit_rate)} hits among them, {base}"
    else:
        hits = f"in training {share_text(cutoff.training_rate)} were hits, {base}; expect fewer"
    share = share_text(cutoff.n_above / meaning.n_cases)
    return f"Flagged: a score of {detail.number(cutoff.threshold)} or more, {share} of cases; {hits}."
