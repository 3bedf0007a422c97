"""`HitRates`: the share of hits to expect among new cases, as a function of the score.

Made from cases that a model scored without training on them: out of fold or out of bag. It knows scores and outcomes,
but no models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from toprank.errors import InputError
from toprank.metrics.checks import read_only

SMALLEST_BIN = 20.0
"""Cases in the first bin, at the very top of the list."""

BIN_GROWTH = 1.5
"""Growth factor of the bins from the top down: rates change fastest at the top of the list."""

PRIOR_CASES = 40.0
"""Cases by which bins are shrunk towards the smooth curve: a few hits more or fewer at the top say little."""

FINE_BINS = 10
"""Bins per factor e of the place in the list, used to fit the smooth curve."""

KNOTS = 512
"""Largest number of scores at which rates are kept."""

SPREAD_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Top shares of the list on which the folds are compared."""

FEW_HITS = 2.0
"""Smallest number of expected hits in a top share of one fold for comparing the fold there."""

LEAST_SPREAD, LARGEST_SPREAD = 2.0, 4.0
"""Bounds of the spread of folds. Few folds say little about it, and the models of folds share most of their cases, so
they differ less from each other than from a model of other cases."""

CHANCE_LEVEL = 0.95
"""Share of random orders that an average precision must beat to be better than chance."""

FAR_ABOVE = 1.5
"""Positives are few if `random_order_limit` is more than so many times the mean of random orders."""

DRAWS, FEWEST_DRAWS, CELLS_DRAWN, MOST_DRAWN = 2_000, 200, 1_000_000, 5_000
"""Most and fewest random orders drawn, positives drawn in all of them, and in one."""

MOST_FOLDS = 1_000_000
"""Most folds that a file may claim."""

FILE_FOLDS = 5
"""Folds of models in older files, which do not say how many they had: the default."""

OF_TRAINING = "training"
"""Source of rates from the training cases of a model: they are optimistic."""


def random_average_precision(n_cases: float, n_positives: float) -> float:
    """Expected average precision of a random order: a little more than the share of positives if cases are few.

    Examples
    --------
    >>> round(random_average_precision(400, 20), 3), round(random_average_precision(400_000, 20_000), 3)
    (0.063, 0.05)
    """
    if n_cases <= 1.0:
        return 1.0
    harmonic = math.log(n_cases) + 0.5772156649015329 + 0.5 / n_cases
    return ((max(n_positives, 1.0) - 1.0) / (n_cases - 1.0) * (n_cases - harmonic) + harmonic) / n_cases


@lru_cache(maxsize=128)
def random_order_limit(n_cases: float, n_positives: float, n_folds: int = 1) -> float:
    """Average precision that a random order of so many cases exceeds in 5 % of the draws.

    With folds it is the mean over the folds, which share the cases and the positives equally. Found from `DRAWS` random
    orders, always the same ones. Weighted cases count as copies. Ties make the average precision of a random order vary
    less, which is ignored.

    Examples
    --------
    >>> round(random_order_limit(1000, 50), 3), round(random_order_limit(1000, 50, n_folds=5), 3)
    (0.076, 0.105)
    """
    scale = min(1.0, MOST_DRAWN / max(n_positives, 1.0))  # more positives vary less still
    in_fold = max(1, round(scale * n_cases / n_folds))
    at_least, more = divmod(max(n_folds, round(scale * n_positives)), n_folds)
    rng = np.random.default_rng(0)
    n_draws = int(np.clip(CELLS_DRAWN // (n_folds * at_least), FEWEST_DRAWS, DRAWS))
    folds = []  # average precision of random orders
    for fold in range(n_folds):
        n_found = min(at_least + (fold < more), in_fold)
        # Negatives before, between and after the positives: every order of the cases is equally likely.
        shares = rng.standard_exponential((n_draws, n_found + 1))
        gaps = rng.multinomial(in_fold - n_found, shares / shares.sum(axis=1, keepdims=True))
        found = np.arange(1, n_found + 1)
        folds.append(np.mean(found / (np.cumsum(gaps[:, :-1], axis=1) + found), axis=1))
    return float(np.quantile(np.mean(folds, axis=0), CHANCE_LEVEL))


def has_few_positives(n_cases: float, n_positives: float, n_folds: int = 1) -> bool:
    """True if a random order often has an average precision far above its mean: then only a high one says much.

    Examples
    --------
    >>> has_few_positives(1000, 5), has_few_positives(1000, 50)
    (True, False)
    """
    mean = random_average_precision(n_cases / n_folds, max(1.0, n_positives / n_folds))
    return random_order_limit(n_cases, n_positives, n_folds) > FAR_ABOVE * mean


@dataclass(frozen=True, eq=False)
class HitRates:
    """Hit rate expected among new cases: a non-decreasing function of the score.

    Attributes
    ----------
    score : float64 array of shape (m,), increasing
    rate : float64 array of shape (m,), non-decreasing
        Between two scores the rate is interpolated.
    above : float64 array of shape (m,)
        Unseen cases with at least this score.
    spread : float
        How much more the hits of models vary than sampling of cases explains: models of other cases differ, too.
    source : str
        Origin of the unseen cases, in words: "5-fold cross-validation", "out of bag".
    average_precision : float
        Average precision on the unseen cases, the mean over the folds.
    deviation : float
        Standard deviation over the folds; NaN without folds.
    share : float64 array of shape (m,)
        Share of the model's training cases with at least this score, counted, not estimated; that of the unseen cases
        if none is given. A score that no case has has the share of the next one.
    n_folds : int
        Folds of which `average_precision` is the mean; 1 without folds.
    """

    score: np.ndarray
    rate: np.ndarray
    above: np.ndarray
    spread: float
    source: str
    average_precision: float
    deviation: float
    share: np.ndarray = field(default_factory=lambda: np.zeros(0))
    n_folds: int = 1

    def __post_init__(self) -> None:
        if len(self.share) == 0:
            object.__setattr__(self, "share", np.array(self.above, np.float64) / max(float(self.above[0]), 1e-300))
        for name in ("score", "rate", "above", "share"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def is_for_new_cases(self) -> bool:
        """False if the rates come from the training cases of the model."""
        return self.source != OF_TRAINING

    @property
    def n_cases(self) -> float:
        """Number of unseen cases behind the rates."""
        return float(self.above[0])

    @property
    def scores_of_cases(self) -> np.ndarray:
        """The kept scores that training cases have, increasing: float64."""
        return self.score[np.diff(self.share, append=0.0) < 0]

    def is_near_chance(self, base_rate: float, n_positives: float) -> bool:
        """True if a random order of the unseen cases often has such an average precision.

        Often means more than 5 %; see `random_order_limit`. False for rates of training cases, which say nothing about
        it.

        Parameters
        ----------
        base_rate : float
            Share of positives.
        n_positives : float
            Positives among the unseen cases.

        Examples
        --------
        >>> from toprank.metrics import HitRates
        >>> def rates(found):
        ...     return HitRates([0.0, 1.0], [0.1, 0.5], [1000.0, 0.0], 1.0, "5-fold cross-validation", found, 0.04)
        >>> rates(0.11).is_near_chance(0.1, 100), rates(0.2).is_near_chance(0.1, 100)
        (True, False)
        """
        return self.is_for_new_cases and self.average_precision <= self.random_order_limit(base_rate, n_positives)

    def random_order_limit(self, base_rate: float, n_positives: float) -> float:
        """Average precision that a random order of the unseen cases exceeds in 5 % of the draws."""
        return random_order_limit(max(1.0, n_positives / base_rate), n_positives, self.n_folds)

    def has_few_positives(self, base_rate: float, n_positives: float) -> bool:
        """True if the positives are too few to tell a useful order from a random one, unless it is very good.

        Arguments as those of `is_near_chance`.
        """
        return has_few_positives(max(1.0, n_positives / base_rate), n_positives, self.n_folds)

    def at(self, score: np.ndarray) -> np.ndarray:
        """Expected rate of new cases with these scores, float64."""
        return np.interp(score, self.score, self.rate)

    def interval(self, rate: float, n_unseen: float, n_new: float, level: float = 0.95) -> tuple[float, float]:
        """Ends of the interval for the share of hits among `n_new` new cases.

        There are two sources of error: the rate, estimated from `n_unseen` cases (effectively fewer if folds differ),
        and the sampling of the new cases. Their variances add up; the ends are quantiles of a beta distribution with
        that variance.

        Parameters
        ----------
        rate : float
        n_unseen, n_new : float
            Number of cases behind the estimate, and of new cases.
        level : float, default 0.95

        Examples
        --------
        >>> import numpy as np
        >>> from toprank.metrics import HitRates
        >>> rates = HitRates([0.0, 1.0], [0.1, 0.5], [1000.0, 0.0], 1.0, "out of bag", 0.3, float("nan"))
        >>> low, high = rates.interval(0.4, 100, 50)
        >>> round(low, 2), round(high, 2)
        (0.24, 0.58)
        """
        from scipy.special import betaincinv

        cases = 1.0 / (self.spread / max(n_unseen, 1.0) + 1.0 / max(n_new, 1.0))
        tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        low, high = betaincinv(rate * cases + 0.5, (1.0 - rate) * cases + 0.5, tails).tolist()
        n = max(1, round(n_new))  # hits are whole numbers
        return min(math.floor(low * n) / n, rate), max(math.ceil(high * n) / n, rate)

    def of_group(self, score: np.ndarray, weight: np.ndarray | None = None) -> tuple[float, float, float]:
        """Rate of the cases at the top of a list, and both ends of its interval for as many new cases."""
        # By distinct scores, so that a row of weight 2 and two equal rows have the same rate to the last digit.
        distinct, which = np.unique(score, return_inverse=True)
        rate = float(np.average(self.at(distinct), weights=np.bincount(which, weight)))
        n_new = len(score) if weight is None else float(weight.sum())
        return rate, *self.interval(rate, float(np.interp(score.min(), self.score, self.above)), n_new)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Arrays by name, for a file; `from_arrays` returns an equal object."""
        return {name: np.array(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> HitRates:
        """Rates from arrays made by `to_arrays`; checked."""
        numbers = {name: float(arrays[name]) for name in ("spread", "average_precision", "deviation")}
        n_folds = arrays.get("n_folds", 1 if np.isnan(numbers["deviation"]) else FILE_FOLDS)
        rates = cls(
            arrays["score"], arrays["rate"], arrays["above"], source=str(arrays["source"]),
            share=arrays.get("share", np.zeros(0)), n_folds=int(n_folds), **numbers,
        )  # fmt: skip
        rules = [
            (rates.score.ndim == 1 and len(rates.score) > 0, "has scores"),
            (rates.score.shape == rates.rate.shape == rates.above.shape, "has a rate for every score"),
            (bool(np.isfinite(rates.score).all() and np.all(np.diff(rates.score) > 0)), "has increasing scores"),
            (bool(np.all((rates.rate >= 0) & (rates.rate <= 1) & (np.diff(rates.rate, prepend=0) >= 0))),
             "has non-decreasing rates from 0 to 1"),
            (bool(np.isfinite(rates.above).all() and np.all(rates.above >= 0) and np.all(np.diff(rates.above) <= 0)),
             "counts cases above each score"),
            (rates.share.shape == rates.score.shape and bool(np.all(rates.share >= 0))
             and bool(np.all(np.diff(rates.share, prepend=1.0) <= 0)), "has a non-increasing share of cases by score"),
            (np.isnan(rates.average_precision) or 0 <= rates.average_precision <= 1,
             "has an average precision from 0 to 1"),
            (np.isnan(rates.deviation) or 0 <= rates.deviation <= 1, "has a deviation from 0 to 1"),
            (1.0 <= rates.spread <= LARGEST_SPREAD, "has a spread from 1 to 4"),
            (1 <= rates.n_folds <= MOST_FOLDS, f"has from 1 to {MOST_FOLDS:,} folds"),
        ]  # fmt: skip
        for holds, rule in rules:
            if not holds:
                raise InputError(f"The model's hit rates break the rule that a model {rule}.")
        return rates


def fit_hit_rates(
    score: np.ndarray,
    is_positive: np.ndarray,
    weight: np.ndarray,
    fold: np.ndarray | None,
    knots: np.ndarray,
    source: str,
    n_cases: np.ndarray | None = None,
    knot_weight: np.ndarray | None = None,
) -> HitRates:
    """Hit rate by score, from cases scored by models that did not see them.

    A curve with three parameters (beta calibration, of the place in the list) is the prior; bins that grow from the top
    of the list downwards correct it as far as their cases support it. Cases of a single class have one rate, and no
    average precision.

    `score` is on the scale of the final model, `knots` are scores of that model at which rates are needed, thinned out
    if there are many, and `knot_weight` the weights of its training cases, if `knots` are their scores. `fold` is the
    model that scored a case; None if all may have different ones (out of bag). `n_cases` are the cases behind each row,
    for intervals, where `weight` also counts cases that were not drawn.
    """
    from toprank.metrics.ranking import average_precision

    distinct, which = np.unique(score, return_inverse=True)
    total = np.bincount(which, weight)
    positive = np.bincount(which, weight * is_positive)
    from_top = _from_top(total)
    n = float(from_top[0])
    place = (from_top - total / 2) / n  # middle of the tie, 0 = top
    centers, rates = _binned_rates(place, positive, total, n)
    trained, trained_weight = knots, knot_weight
    knots = _thinned(np.append(knots, distinct[[0, -1]]), knot_weight)
    knot_place = np.interp(knots, distinct, place)
    value = np.interp(np.log(knot_place), np.log(centers), rates)
    folds = [] if fold is None else [np.flatnonzero(fold == f) for f in np.unique(fold)]
    precisions = [
        average_precision(is_positive[rows], score[rows], sample_weight=weight[rows], pos_label=True)
        for rows in folds or [np.arange(len(score))]
        if 0 < is_positive[rows].sum() < len(rows)
    ]
    return HitRates(
        knots,
        np.maximum.accumulate(np.clip(value, 0.0, 1.0)),
        np.interp(knots, distinct, from_top if n_cases is None else _from_top(np.bincount(which, n_cases))),
        _spread(score, is_positive, weight, folds),
        source,
        float(np.mean(precisions)) if precisions else float("nan"),
        float(np.std(precisions, ddof=1)) if len(precisions) > 1 else float("nan"),
        np.zeros(0) if trained_weight is None else _shares(knots, trained, trained_weight),
        max(1, len(precisions)),
    )


def _shares(at: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Share of cases with at least each of some scores."""
    distinct, which = np.unique(score, return_inverse=True)
    from_top = np.append(_from_top(np.bincount(which, weight)), 0.0)
    return from_top[np.searchsorted(distinct, at)] / from_top[0]


def _from_top(total: np.ndarray) -> np.ndarray:
    """Cases with at least each score, of those with each score, rising."""
    return np.cumsum(total[::-1])[::-1]


def _binned_rates(
    place: np.ndarray, positive: np.ndarray, total: np.ndarray, n: float
) -> tuple[np.ndarray, np.ndarray]:
    """Place of each bin, increasing, and its non-increasing rate; from tied cases by increasing score."""
    from scipy.optimize import isotonic_regression

    place, positive, total = place[::-1], positive[::-1], total[::-1]  # top first
    smooth = _smooth_rates(place, positive, total)
    bins = np.searchsorted(_bin_edges(n), np.cumsum(total) - total / 2, side="right")
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    cases = np.add.reduceat(total, first)
    found = np.add.reduceat(positive, first)
    expected = np.add.reduceat(smooth * total, first)
    rate = (found + PRIOR_CASES * expected / cases) / (cases + PRIOR_CASES)
    falling = isotonic_regression(rate, weights=cases, increasing=False).x
    return np.add.reduceat(place * total, first) / cases, falling


def _bin_edges(n: float) -> np.ndarray:
    """Number of cases above each edge between two bins."""
    edges, width = [SMALLEST_BIN], SMALLEST_BIN
    while edges[-1] < n:
        width *= BIN_GROWTH
        edges.append(edges[-1] + width)
    return np.array(edges)


def _smooth_rates(place: np.ndarray, positive: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Rates of the maximum-likelihood curve logit = c - a log(place) + b log(1 - place) with a, b >= 0.

    This is beta calibration (Kull, Silva Filho and Flach, 2017) of the place in the list; it is non-increasing in the
    place.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    def features_of(place: np.ndarray) -> np.ndarray:
        return np.column_stack((-np.log(place), np.log1p(-np.minimum(place, 1.0 - 1e-9)), np.ones(len(place))))

    # The sums of a hundred neighbourhoods are as informative as all cases.
    first = np.flatnonzero(np.diff(np.floor(FINE_BINS * np.log(np.cumsum(total) / total[0])), prepend=-1))
    fine_total, fine_positive = np.add.reduceat(total, first), np.add.reduceat(positive, first)
    features = features_of(np.add.reduceat(place * total, first) / fine_total)
    n = total.sum()
    base = positive.sum() / n

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        logit = features @ parameters
        value = np.sum(fine_total * np.logaddexp(0.0, logit) - fine_positive * logit) / n
        return value, features.T @ (fine_total * expit(logit) - fine_positive) / n

    if not 0.0 < base < 1.0:  # cases of one class
        return np.full(len(place), base)
    start = np.array([0.0, 0.0, np.log(base / (1.0 - base))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 20.0), (0.0, 20.0), (None, None)])
    return expit(features_of(place) @ found.x)


def _thinned(knots: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """At most KNOTS of the distinct scores, increasing and denser towards the top, and those that many cases share.

    Next to a score that many cases share, rates may change fast: its rate must not be interpolated. `weight` is that of
    the first knots; the others count for nothing.
    """
    distinct, which = np.unique(knots, return_inverse=True)
    if len(distinct) <= KNOTS:
        return distinct
    from_top = len(distinct) - np.geomspace(1, len(distinct), KNOTS // 2).astype(np.int64)
    evenly = np.linspace(0, len(distinct) - 1, KNOTS // 2).astype(np.int64)
    kept = [from_top, evenly]
    if weight is not None:
        cases = np.bincount(which[: len(weight)], weight, minlength=len(distinct))
        kept.append(np.flatnonzero(cases * KNOTS >= cases.sum()))
    return distinct[np.unique(np.concatenate(kept))]


def _spread(score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, folds: list[np.ndarray]) -> float:
    """Variance of the hits in the top shares of the folds relative to sampling of cases, within bounds."""
    ratios = []
    for share in SPREAD_SHARES if len(folds) > 1 else ():
        hits, cases = np.array([_top_of(score[f], is_positive[f], weight[f], share) for f in folds]).T
        rate = hits.sum() / cases.sum()
        if rate * cases.min() >= FEW_HITS and rate < 1.0:
            ratios.append(np.sum((hits - rate * cases) ** 2 / (cases * rate * (1.0 - rate))) / (len(folds) - 1))
    return float(np.clip(np.mean(ratios), LEAST_SPREAD, LARGEST_SPREAD)) if ratios else LEAST_SPREAD


def _top_of(score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, share: float) -> tuple[float, float]:
    """Hits and cases in the top share of one fold; the last tie counts in proportion."""
    order = np.argsort(-score, kind="stable")
    ordered, weights = score[order], weight[order]
    wanted = share * weights.sum()
    threshold = ordered[np.searchsorted(np.cumsum(weights), wanted)]
    above, tied = ordered > threshold, ordered == threshold
    part = (wanted - weights[above].sum()) / weights[tied].sum()
    hits = weights * is_positive[order]
    return float(hits[above].sum() + part * hits[tied].sum()), float(wanted)


def on_final_scale(
    score: np.ndarray, seen: np.ndarray, seen_weight: np.ndarray, final: np.ndarray, final_weight: np.ndarray
) -> np.ndarray:
    """Scores of the final model at the same places of its list as these cases have in the list of another model.

    The place of a case is relative to the training cases of the model: a fold's model relates to its held-out cases as
    the final model to new cases.

    `score` are those of the other model, for cases that it has not seen, `seen` those of its own training cases;
    `final` are those of the final model for its training cases.
    """
    distinct, place = _places(seen, seen_weight)
    final_distinct, final_place = _places(final, final_weight)
    return np.interp(np.interp(score, distinct, place), final_place, final_distinct)


def _places(score: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores, increasing, and the share of cases below the middle of each tie."""
    distinct, which = np.unique(score, return_inverse=True)
    total = np.bincount(which, weight)
    below = np.cumsum(total) - total / 2
    return distinct, below / total.sum()
