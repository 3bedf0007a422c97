"""Blending of rankers: each score on the scale of log-odds, then a sum with non-negative weights.

It knows held-out scores and outcomes, but no models. Equal rows are merged and sorted first, so that neither the order
of the rows nor copies change a bit of the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank.rankers.log_odds import LogOddsMap, fit_log_odds_map, fit_logistic

PULL = 30.0
"""Penalty of the squared distance to equal weights, in cases. The members of a stack agree on most cases, so weights
are poorly determined, and equal ones are hard to beat. On 16 development tables 30, 100 and 300 ranked new cases
equally well, and better than 1; the smallest of them gives a bad member the least weight if positives are few."""


@dataclass(frozen=True, eq=False)
class Blend:
    """A weighted sum of log-odds, one term per ranker.

    Attributes
    ----------
    maps : list of LogOddsMap
    weights : float64 array of shape (n_rankers,), at least 0
    intercept : float
    """

    maps: list[LogOddsMap]
    weights: np.ndarray
    intercept: float

    @classmethod
    def fit(cls, scores: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> Blend:
        """Learn maps and weights from held-out cases.

        Parameters
        ----------
        scores : float array of shape (n, n_rankers)
        is_positive : bool array of shape (n,), both classes
        weight : float array of shape (n,), all above 0
        """
        maps = [fit_log_odds_map(score, is_positive, weight) for score in scores.T]
        distinct, which = np.unique(scores, axis=0, return_inverse=True)
        which = which.reshape(-1)
        total, positive = np.bincount(which, weight), np.bincount(which, weight * is_positive)
        features = np.column_stack([each.at(score) for each, score in zip(maps, distinct.T, strict=True)])
        equal = np.full(len(maps), 1.0 / len(maps))
        weights, intercept = fit_logistic(features, positive, total, np.zeros(len(maps)), PULL, equal)
        if not weights.any():  # no member knows more than chance
            return cls(maps, equal, 0.0)
        return cls(maps, weights, intercept)

    @classmethod
    def from_training(cls, scores: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> Blend:
        """Blend of equal weights with maps learned from training scores, which say nothing about weights."""
        maps = [fit_log_odds_map(score, is_positive, weight) for score in scores.T]
        return cls(maps, np.full(len(maps), 1.0 / len(maps)), 0.0)

    def in_use(self) -> Blend:
        """The same sum without terms of weight 0."""
        used = self.weights > 0
        maps = [each for each, is_used in zip(self.maps, used, strict=True) if is_used]
        return Blend(maps, self.weights[used], self.intercept)

    def score(self, scores: list[np.ndarray] | np.ndarray) -> np.ndarray:
        """Sum of the rankers' log-odds, float64 (n,); `scores` has one array per ranker, ignored at weight 0."""
        terms = [w * each.at(score) for w, each, score in zip(self.weights, self.maps, scores, strict=True) if w > 0]
        total = np.full(len(terms[0]), self.intercept)
        for term in terms:
            total += term
        return total
