"""A model's ranking compared with the known outcomes: average precision, figures at k, gains down the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from toprank.metrics import (
    Interval,
    average_precision,
    bootstrap_interval,
    gains_table,
    lift_at_k,
    precision_at_k,
    proportion_interval,
    recall_at_k,
    roc_auc,
)
from toprank.metrics.at_k import cases_of_share
from toprank.metrics.hit_rates import HitRates, has_few_positives, random_order_limit
from toprank.rankers.alerts import count_of_alerts
from toprank.rankers.validation import positives_of

DEPTHS = (0.01, 0.02, 0.05, 0.10)
MAX_RESAMPLES, MIN_RESAMPLES, ROWS_RESAMPLED = 1000, 100, 20_000_000
"""Number of bootstrap samples: fewer for long tables, so that an interval takes seconds."""


@dataclass(frozen=True)
class AtDepth:
    """Figures of the first k cases of a ranking; `_worst` and `_best` are the bounds over the orders of ties.

    `claimed` is the precision that the model expected of them; None if it has no hit rates of new cases.
    """

    k: int
    precision: float
    precision_worst: float
    precision_best: float
    recall: float
    recall_worst: float
    recall_best: float
    lift: float
    lift_worst: float
    lift_best: float
    claimed: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Gains:
    """Positives found down a ranking, one entry per depth; see `toprank.metrics.gains_table` for the columns.

    The columns about amounts are None unless amounts were given.
    """

    depth: np.ndarray
    cases: np.ndarray
    positives: np.ndarray
    hit_rate: np.ndarray
    cumulative_positives: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    lift: np.ndarray
    amount: np.ndarray | None = None
    cumulative_amount: np.ndarray | None = None
    amount_recall: np.ndarray | None = None

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists by column; columns that are None are left out."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column.tolist() for name, column in columns.items() if column is not None}


@dataclass(frozen=True)
class FlaggedCases:
    """The cases flagged by the chosen point of a curve, compared with the outcomes.

    Attributes
    ----------
    target : str
        The target that the point was chosen for.
    point : int
        Its position in the path.
    alerts, found : int
        Flagged cases, and how many of them are positive.
    precision, recall, false_positive_rate : Interval
        With Wilson's intervals; NaN if the denominator is 0.
    """

    target: str
    point: int
    alerts: int
    found: int
    precision: Interval
    recall: Interval
    false_positive_rate: Interval

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None if the denominator is 0."""
        out: dict[str, Any] = {name: getattr(self, name) for name in ("target", "point", "alerts", "found")}
        for name in ("precision", "recall", "false_positive_rate"):
            share = getattr(self, name)
            value = None if np.isnan(share.value) else share.value
            out[name] = {"value": value, "low": share.low, "high": share.high}
        return out


@dataclass(frozen=True, eq=False)
class Judgement:
    """A model's ranking of cases with known outcomes.

    Attributes
    ----------
    n_cases, n_positives : int
    average_precision : Interval
        With a reproducible bootstrap interval.
    roc_auc : float
    at_k : tuple of AtDepth
    gains : Gains
    chosen : FlaggedCases or None
        For a curve with a chosen point.
    is_training_data : bool
        Whether the model was trained on these cases: then the figures are optimistic.
    """

    n_cases: int
    n_positives: int
    average_precision: Interval
    roc_auc: float
    at_k: tuple[AtDepth, ...]
    gains: Gains
    chosen: FlaggedCases | None = None
    is_training_data: bool = False

    @property
    def is_near_chance(self) -> bool:
        """True if a random order of these cases often, in more than 5 %, has such an average precision."""
        return self.average_precision.value <= self.random_order_limit

    @property
    def random_order_limit(self) -> float:
        """Average precision that a random order of these cases exceeds in 5 % of the draws."""
        return random_order_limit(self.n_cases, self.n_positives)

    @property
    def has_few_positives(self) -> bool:
        """True if the positives are too few to tell a useful order from a random one, unless it is very good."""
        return has_few_positives(self.n_cases, self.n_positives)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `chosen` only if there is a chosen point."""
        out = {
            "n_cases": self.n_cases,
            "n_positives": self.n_positives,
            "average_precision": asdict(self.average_precision),
            "is_near_chance": self.is_near_chance,
            "has_few_positives": self.has_few_positives,
            "random_order_limit": self.random_order_limit,
            "roc_auc": self.roc_auc,
            "at_k": [each.to_dict() for each in self.at_k],
            "gains": self.gains.to_dict(),
            "is_training_data": self.is_training_data,
        }
        return out if self.chosen is None else out | {"chosen": self.chosen.to_dict()}


def judge(
    model: Any, X: Any, y: Any, *, k: int | float | Sequence[int | float] | None = None, amount: Any = None
) -> Judgement:
    """Evaluate a fitted model on cases with known outcomes.

    Parameters
    ----------
    model : fitted ranker
    X : data frame or array of shape (n, n_features)
        Cases that the model has not seen; otherwise the figures are optimistic.
    y : array of shape (n,)
        Their outcomes, in the labels that the model was trained with.
    k : int, float, sequence of these, or None
        Numbers of cases to check, or shares of the cases; None = the model's budget.
    amount : array of shape (n,) or None
        What a case is worth if it is positive: adds the amounts found to `gains`.

    Returns
    -------
    Judgement

    Examples
    --------
    >>> from toprank import RankingTree
    >>> from toprank.datasets import make_audit
    >>> from toprank.workflow import judge
    >>> past, new = make_audit(2000, random_state=0).split()
    >>> model = RankingTree(max_depth=3, budget=50, cv=0).fit(past.X, past.y)
    >>> judgement = judge(model, new.X, new.y)
    >>> judgement.n_cases, judgement.at_k[0].k
    (666, 50)
    >>> sorted(judgement.to_dict())
    ['at_k', 'average_precision', 'gains', 'has_few_positives', 'is_near_chance', 'is_training_data', 'n_cases',
     'n_positives', 'random_order_limit', 'roc_auc']
    """
    score = model.decision_function(X)
    is_positive = positives_of(model, y, len(score), "judge")
    if k is None:
        k = model._budget_in(len(score))
    asked = [k] if isinstance(k, int | float | np.number) else k
    depths = [count_of_alerts(each, len(score)) for each in asked]
    return Judgement(
        n_cases=len(score),
        n_positives=int(is_positive.sum()),
        average_precision=precision_interval(is_positive, score),
        roc_auc=roc_auc(is_positive, score),
        at_k=tuple(figures_at(is_positive, score, depth, model.rates_) for depth in depths),
        gains=gains(is_positive, score, amount),
        chosen=None if getattr(model, "selected_", None) is None else _flagged_cases(model, X, is_positive),
        is_training_data=model._has_trained_on(model._encode(X), is_positive),
    )


def gains(y: Any, score: Any, amount: Any = None, depths: Sequence[float] = DEPTHS) -> Gains:
    """Positives found down a ranking, at shares of the cases; shares that round up to the same number count once.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of two values; positive is that of a usual pair, such as yes of yes/no, else the larger.
    score : array of shape (n,)
        Larger is more suspicious.
    amount : array of shape (n,) or None
        What a case is worth if it is positive.
    depths : shares of the cases

    Examples
    --------
    >>> from toprank.workflow import gains
    >>> gains([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.1], depths=(1 / 3, 1.0)).recall.round(2).tolist()
    [0.67, 1.0]
    """
    cases = sorted({int(cases_of_share(share, len(score))) for share in depths})
    return Gains(**gains_table(y, score, depths=cases, amount=amount))


def precision_interval(is_positive: np.ndarray, score: np.ndarray) -> Interval:
    """Average precision with a reproducible bootstrap interval."""
    n_resamples = min(max(ROWS_RESAMPLED // len(score), MIN_RESAMPLES), MAX_RESAMPLES)
    return bootstrap_interval(average_precision, is_positive, score, n_resamples=n_resamples, random_state=0)


def figures_at(is_positive: np.ndarray, score: np.ndarray, k: int, rates: HitRates) -> AtDepth:
    """Precision, recall and lift of the first k cases, with bounds over the orders of ties, and the rate to expect."""
    out: dict[str, float] = {}
    for name, measure in (("precision", precision_at_k), ("recall", recall_at_k), ("lift", lift_at_k)):
        for ties, ending in (("expected", ""), ("worst", "_worst"), ("best", "_best")):
            out[name + ending] = measure(is_positive, score, k, ties=ties)
    first = -np.sort(-score)[:k]
    return AtDepth(k, **out, claimed=rates.of_group(first)[0] if rates.is_for_new_cases else None)


def _flagged_cases(curve: Any, X: Any, is_positive: np.ndarray) -> FlaggedCases:
    is_flagged = curve.predict(X) == curve.classes_[curve.positive_index_]
    hits, alerts = int((is_flagged & is_positive).sum()), int(is_flagged.sum())
    return FlaggedCases(
        target=curve.selected_.target,
        point=curve.selected_.position,
        alerts=alerts,
        found=hits,
        precision=_share(hits, alerts),
        recall=_share(hits, int(is_positive.sum())),
        false_positive_rate=_share(alerts - hits, int((~is_positive).sum())),
    )


def _share(part: int, whole: int) -> Interval:
    low, high = proportion_interval(part, whole)
    return Interval(part / whole if whole else np.nan, float(low), float(high), 0.95)
