"""`LocalGammaKNN`: gamma-kNN with a gamma for each region of the space (sections 2.4.4 and 2.5.4)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from toprank._compat import Interval, Options, StrOptions
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputError
from toprank.rankers.neighbours.facts import gammas_text, vote_text
from toprank.rankers.neighbours.known import shares
from toprank.rankers.neighbours.neighbour_ranker import NEIGHBOUR_CONSTRAINTS, LeftOut, NeighbourRanker
from toprank.rankers.neighbours.search import PointSet
from toprank.rankers.neighbours.tuning import LEAST_GAMMA, MEASURES, Measure, decision_counts, gamma_curve, tune_regions
from toprank.rankers.unseen import HeldOut, Unseen, by_folds, held_out_folds

FOLDS = 10
"""Folds in which version 2 clusters and tunes, as in the thesis."""


@dataclass(kw_only=True, eq=False, repr=False)
class LocalGammaKNN(NeighbourRanker):
    """gamma-kNN with one gamma for each of several clusters of the training cases.

    A row belongs to the cluster with the nearest centre (k-means) and takes its gamma; its neighbours are searched
    among all known cases. The score is d- / (gamma d+ + d-): above one half, a row is flagged.

    Parameters
    ----------
    n_neighbors : int, default 3
        k. At most 2 m - 3 are used, where m is the number of cases of the smaller class (`n_neighbors_`).
    n_clusters : int, default 5
        Regions; at most as many as there are different cases.
    version : {1, 2}, default 2
        1 tunes the gamma of a cluster on its own cases, each left out of the search alone (the thesis tunes in 10
        folds). 2 repeats clustering and tuning in 10 folds: the cases of a fold are compared with the others, and tune
        one gamma for each cluster of these. Every case then has the gammas of the clusters it was in, and a final
        cluster gets the mean over its cases: gammas of neighbouring clusters differ less, and few cases decide less.
    measured_on : {"all", "cluster"}, default "all"
        What the gamma of a cluster is tuned for: the measure on all cases, while other clusters keep their gammas, each
        in turn until none gains; or the measure on the cases of the cluster alone, as in the thesis. No measure of all
        cases is a mean of those of clusters, so that the best gammas of clusters alone are not the best together.
    min_positives : int, default 5
        A cluster with fewer positives to tune on, or without negatives, takes the gamma of all cases together. The
        thesis has no such limit (1): single positives then decide the gamma of a cluster.
    scoring, max_gamma, metric, scaling, category_distance, algorithm
        See `GammaKNN`.
    cv : int, splitter, iterable of splits or None, default None
        Folds in which the whole model is refitted to estimate the hit rates of new cases, 5 for None, none for 0:
        scores depend on the gammas, so the cases that these were tuned on would be too optimistic.
    budget, pos_label, categorical_features, keep_columns
        See `GammaKNN`.
    random_state : int, RandomState or None
        Seed of clusters, folds and the approximate search, fixed for None.
    n_jobs : int or None

    Attributes
    ----------
    gamma_ : float
        The best gamma for all cases together; used for clusters with fewer than `min_positives` positives.
    gammas_ : float64 array of shape (n_clusters,)
    centres_ : float64 array of shape (n_clusters, n_dims)
        In the scaled space.
    held_out_score_ : float or None
        The measure of the decisions on the cases of held-out folds, by models fitted on the others; None for cv=0.
    n_neighbors_, recall_
        As in `GammaKNN`.

    Examples
    --------
    >>> from toprank import LocalGammaKNN
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(600, random_state=0)
    >>> model = LocalGammaKNN(n_clusters=3, random_state=0).fit(data.X, data.y)
    >>> model.gammas_.shape
    (3,)
    """

    _parameter_constraints = {
        **NEIGHBOUR_CONSTRAINTS,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "version": [Options(Integral, {1, 2})],
        "measured_on": [StrOptions({"all", "cluster"})],
        "min_positives": [Interval(Integral, 1, None, closed="left")],
        "scoring": [StrOptions(set(MEASURES)), callable],
        "max_gamma": [Interval(Real, 0, None, closed="neither")],
    }

    n_neighbors: int = 3
    n_clusters: int = 5
    version: int = 2
    measured_on: str = "all"
    min_positives: int = 5
    scoring: str | Callable[..., Any] = "f1"
    max_gamma: float = 1.0
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

    # --- fitting ------------------------------------------------------------------------------------------------

    @property
    def _measure(self) -> Measure:
        return self.scoring if callable(self.scoring) else MEASURES[self.scoring]

    def _leave_out(self, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads) -> LeftOut:
        return self._leave_one_out(data, points, threads)  # `cv` is for the rates

    @threadpool_limits.wrap(limits=1)  # threads of k-means would change the order of sums
    def _learn_rule(self, left_out: LeftOut, data: Cases, points: np.ndarray, threads: Threads) -> None:
        """Cluster the cases and tune a gamma for each cluster."""
        (ratio,) = left_out.evidence
        is_known = np.ones(len(points), bool) if data.weight is None else data.weight > 0
        own = None if data.weight is None else data.weight[is_known]
        known = points[is_known]
        self.gamma_ = gamma_curve(ratio, left_out.is_positive, left_out.weight, self._measure, self.max_gamma).best
        self.centres_ = self._centres(known, own)
        if self.version == 1:
            cluster = nearest_centre(points[left_out.rows], self.centres_, threads)
            self.gammas_ = self._tune(ratio, left_out.is_positive, left_out.weight, cluster, self.centres_)
            return
        gamma = self._gamma_of_rows(data, points, threads)[is_known]
        cluster = nearest_centre(known, self.centres_, threads)
        weight = np.ones(len(known)) if own is None else own
        self.gammas_ = np.full(len(self.centres_), self.gamma_)
        for c in np.unique(cluster).tolist():  # sums that do not depend on the order of the rows
            here = cluster == c
            self.gammas_[c] = math.fsum(gamma[here] * weight[here]) / math.fsum(weight[here])

    def _gamma_of_rows(self, data: Cases, points: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the mean gamma of each training row over the folds that it trained (version 2), float64 (n,)."""
        sums, counts = np.zeros(len(points)), np.zeros(len(points))
        for fold in held_out_folds(data, FOLDS, self.random_state):
            (ratio,) = self._compare_fold(fold, data, points, self._known.components, threads)
            weight, is_positive = fold.weight[fold.held_out], data.is_positive[fold.held_out]
            centres = self._centres(points[fold.inside], fold.weight[fold.inside])
            cluster = nearest_centre(points[fold.held_out], centres, threads)
            gammas = self._tune(ratio, is_positive, weight, cluster, centres)
            sums[fold.inside] += gammas[nearest_centre(points[fold.inside], centres, threads)]
            counts[fold.inside] += 1
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.gamma_)

    def _tune(
        self, ratio: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, cluster: np.ndarray, centres: np.ndarray
    ) -> np.ndarray:
        """Return the best gamma of each cluster, float64 (n_clusters,); that of all cases where positives are few."""
        out = np.full(len(centres), self.gamma_)
        sizes, positives = (np.bincount(of, minlength=len(out)) for of in (cluster, cluster[is_positive]))
        which = np.flatnonzero((positives >= self.min_positives) & (positives < sizes)).tolist()
        if self.measured_on == "all":
            return tune_regions(ratio, is_positive, weight, cluster, out, which, self._measure, self.max_gamma)
        for c in which:
            here = cluster == c
            out[c] = gamma_curve(ratio[here], is_positive[here], weight[here], self._measure, self.max_gamma).best
        return out

    def _centres(self, points: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return the centres of the clusters of points, float64 (n_clusters, n_dims)."""
        if points.shape[1] == 0:
            return np.zeros((1, 0))
        weight = np.ones(len(points)) if weight is None else weight
        order = np.lexsort((weight, *points.T[::-1]))  # so that the order of the rows means nothing
        points, weight = points[order], weight[order]
        n_clusters = min(self.n_clusters, len(np.unique(points, axis=0)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = KMeans(n_clusters, n_init=1, random_state=self._seed).fit(points, sample_weight=weight)
        return np.ascontiguousarray(found.cluster_centers_, np.float64)

    def _unseen(self, data: Cases, left_out: LeftOut, score: np.ndarray, threads: Threads) -> Unseen | None:
        """Refit in folds: gammas must not have seen the cases that they are judged on."""
        self.held_out_score_ = None
        parts = []
        for fold in held_out_folds(data, self.cv, self.random_state):
            part = self._unfitted_copy()
            part._learn(data.with_weight(fold.inside_weight), threads)
            rows = fold.held_out
            found = part._score_rows(data.X[rows], threads)
            parts.append(HeldOut(found, data.is_positive[rows], fold.weight[rows], n_cases=fold.own_weight[rows],
                                 rows=rows))  # fmt: skip
        if not parts:
            return None
        counts = decision_counts(
            np.concatenate([part.score > 0.5 for part in parts]), *(
                np.concatenate([getattr(part, name) for part in parts]) for name in ("is_positive", "weight")
            )
        )  # fmt: skip
        self.held_out_score_ = float(self._measure(*counts)[0])
        return Unseen(parts, by_folds(len(parts)))

    # --- scoring ------------------------------------------------------------------------------------------------

    def _relative(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        """Return the ratio of each row over the gamma of its cluster: flagged above 1."""
        gamma = self.gammas_[nearest_centre(points, self.centres_, Threads(1))]
        return evidence[0] / np.maximum(gamma, LEAST_GAMMA)

    def _scores_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return shares(self._relative(evidence, points))

    def _flags_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        return self._relative(evidence, points) > 1.0

    # --- files and text -----------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, str]:
        measure = self.scoring if isinstance(self.scoring, str) else "measure"
        value = "" if self.held_out_score_ is None else f" {self.held_out_score_:.3f} on cases of held-out folds"
        return {
            "gamma": gammas_text(self.gammas_),
            "tuned for": f"{measure}{value}",
            "vote": vote_text(0.5, self.budget_),
        } | super()._facts()

    def _figures(self) -> dict[str, Any]:
        return super()._figures() | {"gamma": self.gamma_, "gammas": self.gammas_.tolist()}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        held_out = np.nan if self.held_out_score_ is None else self.held_out_score_
        rule = {"gamma": np.array([self.gamma_]), "gammas": self.gammas_, "centres": self.centres_,
                "held_out_score": np.array([held_out])}  # fmt: skip
        return super()._to_arrays() | rule

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        (self.gamma_,) = arrays["gamma"].tolist()
        self.gammas_, self.centres_ = arrays["gammas"], arrays["centres"]
        (held_out,) = arrays.get("held_out_score", np.array([np.nan])).tolist()
        self.held_out_score_ = None if math.isnan(held_out) else float(held_out)
        q = len(self.gammas_)
        if (
            q == 0 or self.gammas_.shape != (q,) or self.centres_.shape != (q, self._space.n_dims)
            or self.gammas_.dtype != np.float64 or self.centres_.dtype != np.float64
            or not np.all(np.isfinite(self.gammas_) & (self.gammas_ >= 0)) or not 0 <= self.gamma_ < np.inf
            or not np.all(np.isfinite(self.centres_))
        ):  # fmt: skip
            raise InputError("The model's clusters and their gammas do not fit together.")


def nearest_centre(points: np.ndarray, centres: np.ndarray, threads: Threads) -> np.ndarray:
    """Return the cluster of each point, int64 (n,); ties go to the first."""
    return PointSet(centres, algorithm="brute").nearest(points, 1, threads).position[:, 0]
