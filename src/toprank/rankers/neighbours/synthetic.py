"""Positives that a sampler makes up, and a gamma of their own (section 2.5.1).

A row is flagged if enough real positives, at gamma times their distance, or synthetic ones, at gamma_s times theirs,
come before the deciding negative. For a fixed gamma_s every row therefore has a ratio of its own that gamma must stay
below, and the other way round: each of the two is tuned exactly while the other is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from toprank.errors import InputError
from toprank.rankers.neighbours.known import ratios
from toprank.rankers.neighbours.tuning import GammaCurve, Measure, gamma_curve

MAX_SYNTHETIC = 2.0
"""Largest gamma of synthetic positives: above 1 they count as farther away than they are (section 2.5.1)."""

GRID = np.arange(21) / 10
"""Where the search for both gammas begins: the grid of the thesis."""


@dataclass(frozen=True)
class Resampled:
    """Training points after a sampler.

    Attributes
    ----------
    points : float64 array of shape (n, n_dims)
    is_positive, is_synthetic : bool arrays of shape (n,)
    rows : int64 array of shape (n,)
        Position of each point among those given to the sampler, increasing; -1 for synthetic ones, which come first.
    """

    points: np.ndarray
    is_positive: np.ndarray
    is_synthetic: np.ndarray
    rows: np.ndarray


def resample(points: np.ndarray, is_positive: np.ndarray, sampler: Any, seed: int) -> Resampled:
    """Return what a sampler of imbalanced-learn makes of training points.

    A point of the result that equals a given point of its class is that point; all others are synthetic. So real points
    that a sampler removes are gone, and copies of a point count as often as they occur.
    """
    sampler = clone(sampler)
    if sampler.get_params().get("random_state", 0) is None:
        sampler.set_params(random_state=seed)
    try:
        found, label = sampler.fit_resample(points, is_positive.astype(np.int64))
    except ValueError as error:
        raise InputError(
            f"{type(sampler).__name__} cannot sample from {int(is_positive.sum()):,} positives and "
            f"{int((~is_positive).sum()):,} negatives: {error} Hint: fewer neighbours in the sampler, or fewer folds."
        ) from error
    found, label = np.ascontiguousarray(found, np.float64), np.asarray(label) == 1
    known: dict[bytes, int] = {}
    for i in range(len(points)):
        known.setdefault(points[i].tobytes() + is_positive[i].tobytes(), i)
    rows = np.array([known.get(point.tobytes() + own.tobytes(), -1) for point, own in zip(found, label, strict=True)])
    order = np.argsort(rows, kind="stable")
    rows = rows[order].astype(np.int64)
    return Resampled(found[order], label[order], rows < 0, rows)


def joint_ratio(real: np.ndarray, synthetic: np.ndarray, negative: np.ndarray, share: float) -> np.ndarray:
    """Return the ratio that gamma must stay below, for a fixed share gamma_s / gamma, float64 (n,).

    `real` and `synthetic` are the distances to the j nearest positives of either kind, float64 (n, j), `negative` those
    to the deciding negative, float64 (n,).
    """
    j = real.shape[1]
    both = np.concatenate(
        (real, np.where(np.isfinite(synthetic), share * np.minimum(synthetic, 1e300), np.inf)), axis=1
    )
    return ratios(np.sort(both, axis=1)[:, j - 1], negative)


def ratio_beside(moving: np.ndarray, fixed: np.ndarray, negative: np.ndarray, gamma: float) -> np.ndarray:
    """Return the ratio that the gamma of one kind of positive must stay below while that of the other kind is fixed.

    `moving` and `fixed` are the distances to the j nearest positives of either kind, float64 (n, j); `gamma` is that of
    the fixed kind.
    """
    n, j = moving.shape
    n_before = (ratios(fixed, negative[:, None]) > gamma).sum(axis=1)
    needed = np.maximum(j - n_before, 1)
    ratio = ratios(moving[np.arange(n), needed - 1], negative)
    return np.where(n_before >= j, np.inf, ratio)


def tune_both(
    evidence: tuple[np.ndarray, ...], is_positive: np.ndarray, weight: np.ndarray, measure: Measure, high: float,
    gamma: float | None, gamma_synthetic: float | None,
) -> tuple[float, float, GammaCurve]:  # fmt: skip
    """Return gamma, gamma_s, and the measure at every gamma beside that gamma_s.

    Every gamma_s of the grid gets its best gamma; from the best pair on, each is tuned in turn until neither gains. The
    result is at least as good as the best pair of the grid of the thesis. A gamma that is given stays as it is.
    """
    real, synthetic, negative = evidence
    high = high if gamma is None else gamma

    def curve_of(moving: np.ndarray, fixed: np.ndarray, at: float, top: float) -> GammaCurve:
        return gamma_curve(ratio_beside(moving, fixed, negative, at), is_positive, weight, measure, top)

    starts = GRID if gamma_synthetic is None else np.array([gamma_synthetic])
    best, pair, chosen = -np.inf, (1.0, 1.0), None
    for start in starts.tolist():
        curve = curve_of(real, synthetic, start, high)
        own = curve.best if gamma is None else gamma
        value = float(curve.at(np.array([own]))[0])
        if value > best:
            best, pair, chosen = value, (own, start), curve
    assert chosen is not None
    while gamma_synthetic is None:
        other = curve_of(synthetic, real, pair[0], MAX_SYNTHETIC)
        if float(other.value.max()) <= best + 1e-12:
            break
        curve = curve_of(real, synthetic, other.best, high)
        own = curve.best if gamma is None else gamma
        best, pair, chosen = float(curve.at(np.array([own]))[0]), (own, other.best), curve
    return (*pair, chosen)
