"""`KNN`: the votes of nearest neighbours that gamma-kNN is compared with in section 2.5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from toprank._compat import StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.rankers.neighbours.facts import vote_text
from toprank.rankers.neighbours.known import KnownCases
from toprank.rankers.neighbours.neighbour_ranker import NEIGHBOUR_CONSTRAINTS, LeftOut, NeighbourRanker
from toprank.rankers.neighbours.search import mapped

RULES = {
    "plain": "each of the nearest cases has one vote",
    "weighted": "a case at distance d has 1 / d votes",
    "class_weighted": "distances to the rarer class are shortened by its share of the cases",
    "duplicated": "every positive counts as often as there are negatives per positive",
    "krnn": "k rare-class nearest neighbours: the neighbourhood grows until it has k positives",
}

CONFIDENCE = 0.1
"""Level of both intervals of kRNN: they leave out this share."""


@dataclass(kw_only=True, eq=False, repr=False)
class KNN(NeighbourRanker):
    """Nearest neighbours that vote, by one of five rules.

    The score is the share of the vote for the positives; a case is flagged if it is one half or more. Few neighbours
    give few different scores: `GammaKNN` ranks by distances instead.

    Parameters
    ----------
    n_neighbors : int, default 3
        k. All cases if there are fewer; all positives for "krnn" (`n_neighbors_`).
    rule : {"plain", "weighted", "class_weighted", "duplicated", "krnn"}, default "plain"
        - "plain": each of the k nearest cases has one vote;
        - "weighted": a case at distance d has 1 / d votes (Dudani, 1976); cases at distance 0 outvote all others;
        - "class_weighted": distances to a class with m_i of the m cases are multiplied by (m_i / m) ** (1 / n_dims)
          (Barandela et al., 2003);
        - "duplicated": every positive counts as often as there are negatives per positive, rounded; for k = 1 that is
          "plain";
        - "krnn": k rare-class nearest neighbours, see the notes.
    metric, scaling, category_distance, algorithm, cv, budget, pos_label, categorical_features, keep_columns
        See `GammaKNN`. "krnn" counts all cases within a distance, which is always brute force.
    random_state, n_jobs
        See `GammaKNN`.

    Attributes
    ----------
    n_neighbors_, recall_
        As in `GammaKNN`.

    Notes
    -----
    "krnn" computes the following. The neighbourhood of a case grows until it has k positives, and on up to, but not
    including, the next negative: p positives and n negatives. With m+ positives and m- negatives among the m training
    cases, the score is

        (p + 1 / m) / (p + n / c + 2 / m).

    c is 1, unless positives are clearly more frequent in the neighbourhood than overall: if the lower end of the Wilson
    interval of p / (p + n) is above the upper end of the normal interval of m+ / m, both at 90 %, c is
    (p / n) / (m+ / m-).

    This is not taken from the paper of Zhang et al. (2017), which was not available to us. The thesis of Viola
    describes the rule in words; the equations and the level of the intervals are those that a public implementation
    (gykovacs/krnn_with_spatial_features on GitHub) gives as equations 1 to 4 of the paper. We depart from it in two
    places where its code contradicts its own formulas or the usual ones: n counts negatives, not all cases of the
    neighbourhood, and the centre of the Wilson interval has z^2 / (2 r), not z^2 r / 2. So figures of "krnn" here can
    differ from published ones.

    References
    ----------
    S. A. Dudani: The Distance-Weighted k-Nearest-Neighbor Rule, IEEE Transactions on Systems, Man, and Cybernetics,
    1976.
    R. Barandela, J. S. Sánchez, V. García, E. Rangel: Strategies for learning in class imbalance problems, Pattern
    Recognition, 2003.
    X. Zhang, Y. Li, R. Kotagiri, L. Wu, Z. Tari, M. Cheriet: KRNN: k Rare-class Nearest Neighbour classification,
    Pattern Recognition, 2017.

    Examples
    --------
    >>> from toprank import KNN
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(2000, random_state=0)
    >>> model = KNN(n_neighbors=3).fit(data.X, data.y)
    >>> sorted(set(model.decision_function(data.X).round(2).tolist()))
    [0.0, 0.33, 0.67]
    """

    _parameter_constraints = {**NEIGHBOUR_CONSTRAINTS, "rule": [StrOptions(set(RULES))]}

    n_neighbors: int = 3
    rule: str = "plain"
    metric: Any = "euclidean"
    scaling: str | None = "minmax"
    category_distance: float = 2.0
    algorithm: str = "auto"
    cv: Any = None
    budget: int | float | None = None
    pos_label: Any = None
    categorical_features: Any = None
    keep_columns: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _most_neighbours(self, n_positives: float, n_negatives: float) -> float:
        return float(np.floor(n_positives if self.rule == "krnn" else n_positives + n_negatives))

    def _evidence(
        self, known: KnownCases, points: np.ndarray, threads: Threads, own: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Return the share of the vote for the positives."""
        return (self._shares(known, points, [self.n_neighbors_], threads, own)[0],)

    def _shares(
        self, known: KnownCases, points: np.ndarray, values: Sequence[int], threads: Threads, own: np.ndarray | None
    ) -> np.ndarray:
        """Return the share of the vote for the positives for each k, from one search, float64 (n_values, n)."""
        totals = known.totals
        if self.rule == "krnn":
            return np.array(
                [rare_class_share(*self._neighbourhoods(known, points, k, threads, own), *totals) for k in values]
            )
        positive, negative = self._nearest_of_both(known, points, max(values), threads, own)
        if self.rule == "duplicated":
            copies = max(1, round(totals[1] / totals[0]))
            positive = positive[:, np.arange(max(values)) // copies]
        elif self.rule == "class_weighted":
            n_dims = max(points.shape[1], 1)
            positive = positive * (totals[0] / sum(totals)) ** (1 / n_dims)
            negative = negative * (totals[1] / sum(totals)) ** (1 / n_dims)
        return np.array([self._share(positive[:, :k], negative[:, :k]) for k in values])

    def _share(self, positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
        """Return the share of the vote for the positives, given the k nearest of each class, float64 (n, k) each."""
        # The i-th positive is among the k nearest if it comes before the (k - i + 1)-th negative.
        near = positive < negative[:, ::-1], (negative <= positive[:, ::-1]) & np.isfinite(negative)
        if self.rule == "weighted":
            distances = [np.where(*pair, np.inf) for pair in zip(near, (positive, negative), strict=True)]
            with np.errstate(divide="ignore", over="ignore"):  # infinite votes at distance 0
                return _weighted_share(*(1.0 / distance for distance in distances))
        votes = [side.sum(axis=1) for side in near]
        return votes[0] / np.maximum(votes[0] + votes[1], 1)

    def _scores_by_k(self, X: Any, values: Sequence[int]) -> np.ndarray:
        """Return the scores with each number of neighbours, float64 (n_values, n), from one search."""
        points = self._space_points(X)
        most = max(1, int(self._most_neighbours(*self._known.totals)))
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            return self._shares(self._known, points, [min(k, most) for k in values], threads, None)

    def _nearest_of_both(
        self, known: KnownCases, points: np.ndarray, k: int, threads: Threads, own: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Return the distances to the k nearest positives and to the k nearest negatives, float64 (n, k) each."""
        counts = np.arange(1, k + 1)
        return tuple(
            cases.at_count(mapped(points, image), counts, threads, own, is_bounded=False)
            for cases, image in ((known.positives, known.components), (known.negatives, None))
        )

    def _neighbourhoods(
        self, known: KnownCases, points: np.ndarray, k: int, threads: Threads, own: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many positives and negatives are in the neighbourhood of kRNN, float64 (n,) each."""
        image = mapped(points, known.components)
        place = [cases.positions(own) for cases in (known.positives, known.negatives)]
        radius = known.positives.at_count(image, np.array([k]), threads, own)[:, 0]
        weights = [known.positives.weights, known.negatives.weights]
        n, following = known.negatives.points.count_within(points, radius, weights[1], threads)
        p, _ = known.positives.points.count_within(image, following, weights[0], threads, is_open=True)
        for count, at, weight, is_inside in zip((p, n), place, weights, (following > 0, radius >= 0), strict=True):
            if at is not None:  # the row itself, at distance 0
                count -= np.where((at >= 0) & is_inside, np.minimum(weight[at], 1.0), 0.0)
        return np.maximum(p, 0.0), np.maximum(n, 0.0)

    def _learn_rule(self, left_out: LeftOut, data: Cases, points: np.ndarray, threads: Threads) -> None:
        """Nothing is tuned."""

    def _scores_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return evidence[0]

    def _flags_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return evidence[0] >= 0.5

    def _facts(self) -> dict[str, str]:
        flags = vote_text(0.5, self.budget_, "with a score of at least")
        return {"rule": f"{self.rule}: {RULES[self.rule]}", "vote": flags} | super()._facts()


def rare_class_share(p: np.ndarray, n: np.ndarray, n_positives: float, n_negatives: float) -> np.ndarray:
    """Return the probability of a positive by kRNN, float64 (n,).

    p and n are the positives and negatives in the neighbourhood of each row, `n_positives` and `n_negatives` those in
    training.
    """
    m, z = n_positives + n_negatives, -float(norm.ppf(CONFIDENCE / 2))
    overall = n_positives / m
    most_overall = overall + z * math.sqrt(overall * (1 - overall) / m)
    r = np.maximum(p + n, 1.0)
    here = p / r
    least_here = (here + z * z / (2 * r) - z * np.sqrt(here * (1 - here) / r + z * z / (4 * r * r))) / (1 + z * z / r)
    factor = np.where(least_here > most_overall, p / np.maximum(n, 1.0) / (n_positives / n_negatives), 1.0)
    return (p + 1 / m) / (p + n / factor + 2 / m)


def _weighted_share(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Return the share of the votes for positives; where some votes are infinite, only these count."""
    votes = np.concatenate((positive, negative), axis=1)
    is_infinite = np.isinf(votes).any(axis=1, keepdims=True)
    votes = np.where(is_infinite, np.isinf(votes), votes)
    total = votes.sum(axis=1)
    return np.divide(votes[:, : positive.shape[1]].sum(axis=1), total, out=np.zeros(len(total)), where=total > 0)
