"""From a budget to a cutoff: how many cases can be checked, and the lowest score of an alert."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.errors import InputError, InputTypeError
from toprank.metrics.at_k import cases_of_share
from toprank.metrics.checks import is_int, is_real
from toprank.words.counts import hits_in_words, plural

if TYPE_CHECKING:
    from toprank.metrics.hit_rates import HitRates

SAMPLE_ROWS = 10_000
"""Scores sampled to estimate the top of the list."""


@dataclass(frozen=True)
class Cutoff:
    """The end of the alerts.

    Attributes
    ----------
    k : float
        Cases of the training data that the budget allows.
    n_above : float
        Cases of the training data above the cutoff: close to k, because ties are not split.
    threshold : float
        Rows with a score of at least this are alerts.
    training_rate : float
        Share of positives among the training rows above it.
    hit_rate, hit_rate_low, hit_rate_high : float
        Expected share of hits among as many new cases above it, and its interval; NaN if no cases were held out to
        estimate it.
    n_tied : float
        Cases of the training data that tie at the cutoff.
    """

    k: float
    n_above: float
    threshold: float
    training_rate: float
    hit_rate: float = math.nan
    hit_rate_low: float = math.nan
    hit_rate_high: float = math.nan
    n_tied: float = 1.0

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, ready for JSON; None for unknown ones."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cutoff:
        """Cutoff from the values of `to_dict`."""
        return cls(**{name: math.nan if value is None else float(value) for name, value in values.items()})

    @property
    def is_for_new_cases(self) -> bool:
        """True if the hit rate of new cases is known."""
        return not math.isnan(self.hit_rate)

    @property
    def expected_hits(self) -> tuple[float, float, float]:
        """Expected hits among as many new cases above the cutoff, and both ends of the interval."""
        n = self.n_above
        return n * self.hit_rate, n * self.hit_rate_low, n * self.hit_rate_high


def fewer_text(training_rate: float, base_rate: float) -> str:
    """What to expect of new cases where only a training rate is known: no fewer hits if it is that of all cases.

    Examples
    --------
    >>> fewer_text(0.61, 0.05), fewer_text(0.05, 0.05)
    ('expect fewer hits', 'as many as among all cases')
    """
    return "as many as among all cases" if math.isclose(training_rate, base_rate) else "expect fewer hits"


def hits_of_first(cutoff: Cutoff, rates: HitRates, n_cases: float) -> tuple[float, float, float]:
    """Hits to expect among the first k of as many new cases as in training, and both ends of the interval.

    Ties at the cutoff count in part: a list of k cases takes only some of them.
    """
    above = rates.share * n_cases
    weight = np.clip(cutoff.k - np.append(above[1:], 0.0), 0.0, -np.diff(above, append=0.0))
    rate, low, high = rates.of_group(rates.score[weight > 0], weight[weight > 0])
    return cutoff.k * rate, cutoff.k * low, cutoff.k * high


def budget_text(
    cutoff: Cutoff, rates: HitRates | None = None, *, is_default: bool = False, base_rate: float = math.nan,
    n_cases: float = math.nan,
) -> str:  # fmt: skip
    """A budget in words: the cutoff, why it lets more or fewer cases through, and the expected hits.

    `rates` and `n_cases`: hit rates and training cases of the model, for the hits of the budget where ties let more
    cases reach the cutoff. `is_default`: no budget was given, so it is the number of positives. `base_rate`: the share
    of positives in training.

    Examples
    --------
    >>> budget_text(Cutoff(200.0, 200.0, 0.875, 0.61, 0.48, 0.41, 0.55))
    'budget 200 cases: score >= 0.8750; expect 96 hits in 200 new cases (82 to 110)'
    >>> print(budget_text(Cutoff(200.0, 203.0, 0.875, 0.61, 0.48, 0.41, 0.55, n_tied=12.0)))
    budget 200 cases: score >= 0.8750, which 203 training cases reach (12 tie at the cutoff, and ties are not split); expect 97 hits in as many new cases (83 to 112)
    >>> budget_text(Cutoff(7.5, 7.0, 0.875, 0.61, 0.48, 0.41, 0.55))
    'budget 8 cases: score >= 0.8750, which 7 training cases reach; expect 3 hits in as many new cases (3 to 4)'
    >>> budget_text(Cutoff(200.0, 200.0, 0.875, 0.61))
    'budget 200 cases: score >= 0.8750; in training 122 of 200 positive: expect fewer hits'
    """  # noqa: E501
    k, n_above, n_tied = round(cutoff.k), round(cutoff.n_above), round(cutoff.n_tied)
    digits = 0 if cutoff.threshold.is_integer() else 4  # points are whole numbers
    chosen = " (the number of positives, as no budget was given)" if is_default else ""
    text = f"budget {plural(k, 'case')}{chosen}: score >= {cutoff.threshold:.{digits}f}"
    if n_above != k:
        who = f"{n_tied:,} tie at the cutoff" if n_above > k else "the next ones tie"
        reach = "reaches" if n_above == 1 else "reach"
        text += f", which {plural(n_above, 'training case')} {reach}"
        if abs(n_above - cutoff.k) > 1.0:  # less is the rounding of a share, or of weights
            text += f" ({who}, and ties are not split)"
    if cutoff.is_for_new_cases:
        hits, low, high = cutoff.expected_hits
        among = plural(n_above, "new case") if n_above == k else "as many new cases"
        if rates is not None and n_above > k:
            (hits, low, high), among = hits_of_first(cutoff, rates, n_cases), plural(k, "new case")
        return f"{text}; expect {hits_in_words(hits)} in {among} ({round(low):,} to {round(high):,})"
    found = round(cutoff.training_rate * cutoff.n_above)
    return f"{text}; in training {found:,} of {n_above:,} positive: {fewer_text(cutoff.training_rate, base_rate)}"


def least_cost_text(n_positives: float, n_fp: float, n_fn: float) -> str:
    """What labels of lowest cost flag in training, in words: a model that has them needs no budget.

    Examples
    --------
    >>> least_cost_text(34.0, 86.0, 10.0)
    'flags 110 training cases at lowest cost, 24 of them correctly: expect fewer among new cases'
    """
    hits = n_positives - n_fn
    flagged = plural(round(hits + n_fp), "training case")
    return f"flags {flagged} at lowest cost, {hits:,.0f} of them correctly: expect fewer among new cases"


def curve_text(*, is_chosen: bool) -> str:
    """What a curve flags if it follows no budget, in words."""
    return f"flags the cases that are positive at its {'chosen' if is_chosen else 'base'} point"


def cases_of_budget(budget: Any, n_cases: float, n_positives: float) -> float:
    """Number of training cases in a budget: an int is a count, a float a share, None = the number of positives."""
    if budget is None:
        return n_positives
    if not is_real(budget):
        raise InputTypeError(f"budget must be an int (cases), a float (share of cases) or None, got {budget!r}.")
    if is_int(budget):
        if budget < 1:
            raise InputError(f"budget must be at least 1 case, got {budget}. Hint: a share is a float, such as 0.02.")
        return float(min(budget, n_cases))
    if not 0.0 < budget < 1.0:
        raise InputError(f"A float budget must be a share between 0 and 1, got {budget}. Hint: use an int for cases.")
    return float(budget * n_cases)


def alerts_of_budget(budget: Any, cutoff: Cutoff, n_cases: float, n_rows: int) -> int:
    """Number of alerts of a model's budget in a table: a count is unchanged, else the training share is used."""
    if is_int(budget):
        return min(int(budget), n_rows)
    return int(cases_of_share(cutoff.k / n_cases, n_rows))


def find_cutoff(
    k: float, n_cases: float, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None
) -> Cutoff:
    """Cutoff that lets about k of n_cases through, estimated on (a sample of) the training rows.

    Ties are not split: of the two scores around the k-th case, the one whose number of cases is closer to k wins.
    """
    total = float(len(score)) if weight is None else float(weight.sum())
    wanted = k / n_cases * total
    if weight is None:  # sort only the top of the list
        near = _rows_near_top(score, min(len(score), int(1.5 * wanted) + 1000))
        score, is_positive = score[near], is_positive[near]
    order = np.argsort(-score, kind="stable")
    sorted_weight = np.ones(len(score)) if weight is None else weight[order]
    sorted_score, cumulated = score[order], np.cumsum(sorted_weight)
    last_of_tie = np.append(np.flatnonzero(np.diff(sorted_score)), len(score) - 1)
    best = last_of_tie[np.argmin(np.abs(cumulated[last_of_tie] - wanted))]
    hits = np.cumsum(sorted_weight * is_positive[order])[best] / cumulated[best]
    threshold, scale = float(sorted_score[best]), n_cases / total
    n_tied = float(sorted_weight[sorted_score == threshold].sum() * scale)
    return Cutoff(float(k), float(cumulated[best] * scale), threshold, float(hits), n_tied=n_tied)


def _rows_near_top(score: np.ndarray, size: int) -> np.ndarray:
    """Positions of at least `size` of the highest scores, without splitting ties."""
    sample = np.sort(score[:: max(1, len(score) // SAMPLE_ROWS)])
    place = len(sample) - 100 - int(1.5 * size / len(score) * len(sample))
    near = np.flatnonzero(score >= sample[max(place, 0)])
    return near if len(near) >= size else np.arange(len(score))
