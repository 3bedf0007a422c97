"""`LambdaMART`: boosting on pairs, each weighted by what a swap would change in average precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from toprank._core.lambdas import ap_lambdas, ap_pair_loss
from toprank.rankers.boosting.losses import THIS_PROCESS, Loss, RowSums, Slopes
from toprank.rankers.boosting.plain_booster import PlainBooster

EXACT_PAIRS = 2_000_000
"""Up to this many pairs of a positive and a negative, a round uses all of them; otherwise a sample of about
this size."""

LEAST_NEGATIVES = 64
"""Each positive is paired with at least this many negatives, however many positives there are."""


@dataclass(frozen=True)
class LambdaAP(Loss):
    """Logistic loss of pairs, weighted by |delta AP|: the change of average precision if the two change places.

    Equation 7 of the SGBAP paper. Its gradient takes |delta AP| for a constant, so it is that of no function; it still
    raises average precision, because pairs at the top count most.

    With weights, places count weight instead of cases, a pair counts by the product of its weights, and |delta AP| is
    that of one case of each. Ties are broken at random, always in the same way, never by label.
    """

    turn: int = 0  # number of the round, which decides which pairs are drawn
    # Most pairs of a positive and a negative to sum up in full. If there are more, the negatives are divided: the
    # highest ones, half of those that can be afforded per positive, meet every positive; of the others, each positive
    # meets every s-th one, a different s-th from positive to positive and from round to round, counted s times.
    exact_pairs: int = EXACT_PAIRS

    def value(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> float:
        """The sum of the losses of all pairs; weights in units of their mean."""
        rows = self._ranked(score, weight)
        if len(np.unique(is_positive[rows])) < 2:
            return 0.0
        return float(ap_pair_loss(score[rows], weight[rows] / weight[rows].mean(), is_positive[rows]))

    def slopes(
        self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, all_rows: RowSums = THIS_PROCESS
    ) -> Slopes:
        """Derivatives of the value with |delta AP| held fixed, times one factor."""
        cases, own = all_rows.gather(np.column_stack((score, is_positive, weight)))
        gradient, curvature = self._lambdas(cases[:, 0], cases[:, 1] > 0, cases[:, 2])
        # As with the surrogates, so that XGBoost's penalties mean the same: curvatures add up to the weight.
        scale = cases[:, 2].sum() / curvature.sum() if curvature.any() else 1.0
        return Slopes(scale * gradient[own], scale * curvature[own])

    def _lambdas(self, score: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and curvature of the value, float64 (n,) both."""
        gradient, curvature = np.zeros(len(score)), np.zeros(len(score))
        rows = self._ranked(score, weight)
        positive = is_positive[rows]
        n_positives, n_negatives = int(positive.sum()), int((~positive).sum())
        if n_positives and n_negatives:
            parts = np.empty(len(rows)), np.empty(len(rows))
            units = weight[rows] / weight[rows].mean()
            ap_lambdas(score[rows], units, positive, *self._design(n_positives, n_negatives), self.turn, *parts)
            gradient[rows], curvature[rows] = parts
        return gradient, curvature

    def _ranked(self, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Rows with weight, the highest score first; ties in an order that knows no labels."""
        rows = _shuffled(len(score))
        rows = rows[weight[rows] > 0]
        return rows[np.argsort(-score[rows], kind="stable")]

    def _design(self, n_positives: int, n_negatives: int) -> tuple[int, int]:
        """How many of the highest negatives meet every positive, and every which one of the others does."""
        if n_positives * n_negatives <= self.exact_pairs:
            return n_negatives, 1
        affordable = max(self.exact_pairs // n_positives, LEAST_NEGATIVES)
        if affordable >= n_negatives:
            return n_negatives, 1
        exact = affordable // 2
        return exact, -(-(n_negatives - exact) // (affordable - exact))


@lru_cache(maxsize=4)
def _shuffled(n: int) -> np.ndarray:
    """Numbers of rows in random order, always the same one."""
    return np.random.default_rng(0).permutation(n)


class LambdaMART(PlainBooster):
    """LambdaMART for average precision (LambdaMART-AP of the SGBAP paper).

    Each pair of a positive and a negative pulls the two apart, the more so the more average precision would change if
    they changed places. Trees are grown by XGBoost. Up to 2,000,000 pairs, a round sums up all of them; of more, it
    draws about so many, with all of the negatives at the top (`LambdaAP`).

    Parameters
    ----------
    n_estimators, learning_rate, max_depth, min_child_weight, reg_lambda, subsample, colsample_bytree, max_bin
        As in `LogisticBoost`.
    early_stopping_rounds, cv, budget, pos_label, categorical_features, keep_columns, device, on_interrupt, n_jobs
        As in `LogisticBoost`.
    random_state, verbose
        As in `LogisticBoost`.

    Attributes
    ----------
    trees_, n_rounds_, learning_curve_, booster_
        As in `SGBAP`.
    rates_, cutoff_, columns_, classes_
        As in all rankers.

    References
    ----------
    .. [1] Burges. From RankNet to LambdaRank to LambdaMART: an overview. Microsoft Research MSR-TR-2010-82, 2010.
    .. [2] Donmez, Svore, Burges. On the local optimality of LambdaRank. SIGIR 2009.

    Examples
    --------
    >>> from toprank import LambdaMART
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = LambdaMART(n_estimators=30, cv=0, budget=20).fit(data.X, data.y)
    >>> len(model.top_k(data.X)), model.n_rounds_
    (20, 30)
    """

    def _loss_of(self, turn: int) -> Loss:
        return LambdaAP(turn)
