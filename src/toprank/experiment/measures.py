"""Measures by their names in plans and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from toprank import metrics
from toprank.errors import InputError
from toprank.words.nearest import did_you_mean

SHARES = (1, *range(5, 101, 5))
"""Shares of the positives, in %, at which precision is recorded (figures 4 and 6 of the MetaAP paper)."""


class Measure(NamedTuple):
    """One or more figures of a ranking, from labels and scores of test rows; `columns` are their names in results."""

    columns: tuple[str, ...]
    compute: Callable[[np.ndarray, np.ndarray], tuple[float, ...]]


MEASURES = {
    "average_precision": Measure(
        ("average_precision",), lambda y, score: (float(metrics.average_precision(y, score)),)
    ),
    "roc_auc": Measure(("roc_auc",), lambda y, score: (float(metrics.roc_auc(y, score)),)),
    "pos_at_top": Measure(("pos_at_top",), lambda y, score: (float(metrics.pos_at_top(y, score)),)),
    "precision_at_positives": Measure(
        tuple(f"p_at_{share}" for share in SHARES),
        lambda y, score: tuple(float(metrics.precision_at_k(y, score, share / 100)) for share in SHARES),
    ),
}

AT_CASES = "precision_at:"
"""Prefix of a measure with a number in it: "precision_at:0.02" is the precision among the first 2 % of the cases."""


RESAMPLED = "average_precision_resampled:"
"""Prefix of a measure with a number in it: average precision on that many bootstrap samples of the test cases."""


def resampled_columns(n: int) -> tuple[str, ...]:
    """Columns of `RESAMPLED`, one per bootstrap."""
    return tuple(f"average_precision_resampled_{i}" for i in range(n))


def _resampled_precisions(y: np.ndarray, score: np.ndarray, n: int) -> tuple[float, ...]:
    """Average precision on stratified bootstrap samples.

    The samples depend only on the labels, so the figures of two methods are paired.
    """
    rng, classes = np.random.default_rng(0), [np.flatnonzero(y == label) for label in (0, 1)]
    out = []
    for _ in range(n):
        drawn = np.concatenate([rng.choice(rows, len(rows)) for rows in classes])
        weight = np.bincount(drawn, minlength=len(y)).astype(np.float64)
        out.append(float(metrics.average_precision(y, score, sample_weight=weight)))
    return tuple(out)


def find_measure(name: str) -> Measure:
    """The measure with this name; KeyError if there is none."""
    if name.startswith(RESAMPLED):
        n = int(name.removeprefix(RESAMPLED))
        if n < 1:
            raise KeyError(name)
        return Measure(resampled_columns(n), lambda y, score: _resampled_precisions(y, score, n))
    if not name.startswith(AT_CASES):
        return MEASURES[name]
    share = float(name.removeprefix(AT_CASES))
    if not 0 < share <= 1:
        raise KeyError(name)
    return Measure((name,), lambda y, score: (float(metrics.precision_at_k(y, score, share, of="cases")),))


def check_measure(name: str, owner: str) -> None:
    """Raise ValueError if there is no such measure."""
    try:
        find_measure(name)
    except (KeyError, ValueError, AttributeError):
        hint = did_you_mean(str(name), MEASURES) or f" Hint: known are {', '.join(MEASURES)}, {AT_CASES}SHARE."
        raise InputError(f"{owner} asks for the unknown measure {name!r}.{hint}") from None


def figures_of(names: Iterable[str], y: np.ndarray, score: np.ndarray) -> dict[str, float]:
    """Figures of all measures by column."""
    found = [find_measure(name) for name in names]
    return {c: figure for m in found for c, figure in zip(m.columns, m.compute(y, score), strict=True)}


def score_of(name: str, y: np.ndarray, score: np.ndarray) -> float:
    """The first figure of a measure, by which settings are compared."""
    return find_measure(name).compute(y, score)[0]
