"""`NeighbourRanker`: what the rankers by neighbours share, from points to reasons and files.

A subclass says what it needs to know about a row (`_evidence`: distances to known cases), how that becomes a score
(`_scores_of`), and what it learns from rows that were left out of the search (`_learn_rule`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from toprank._compat import HasMethods, Interval, Options, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases, sample_cases
from toprank.data.encoding import original_values
from toprank.data.shared_table import plain_table
from toprank.errors import InputError
from toprank.explain.reasons import Reason
from toprank.explain.rows import figures_of
from toprank.explain.values import Originals
from toprank.files.model_file import with_prefix, without_prefix
from toprank.rankers.alerts import log_odds_gain
from toprank.rankers.base import RANKER_CONSTRAINTS, Ranker
from toprank.rankers.neighbours.facts import column_weights, distance_facts, weights_text
from toprank.rankers.neighbours.known import CaseSet, DecidingCounts, KnownCases, most_neighbours, ratios
from toprank.rankers.neighbours.nearby import (
    DIFFERENCES,
    Nearby,
    NeighbourExplanation,
    index_names,
    names_from_array,
    names_to_array,
    nearby_cases,
    neighbour_reasons,
)
from toprank.rankers.neighbours.search import ALGORITHMS, METRICS, mapped
from toprank.rankers.neighbours.space import SCALINGS, Space
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, has_folds, held_out_folds
from toprank.words.counts import plural
from toprank.words.plain import plain

LEFT_OUT_ROWS = 100_000
"""Most training rows that are scored without themselves: all positives that fit in half of it, and random negatives.
Their neighbours are searched among all rows."""

MOST_NEIGHBOURS = 100_000
"""Largest k: a vote of more takes memory and decides nothing."""

LEAVE_ONE_OUT = "leave-one-out cross-validation"
"""How left-out rows were scored, in words: by all other rows."""

NEIGHBOUR_CONSTRAINTS: dict[str, list[Any]] = {
    **RANKER_CONSTRAINTS,
    "n_neighbors": [Interval(Integral, 1, MOST_NEIGHBOURS, closed="both")],
    "metric": [StrOptions(set(METRICS)), HasMethods("learn_components"), "array-like"],
    "scaling": [StrOptions(set(SCALINGS)), None],
    "category_distance": [Interval(Real, 0, None, closed="left")],
    "algorithm": [StrOptions(set(ALGORITHMS))],
    "cv": ["cv_object", Options(Integral, {0})],
    "random_state": ["random_state"],
}
"""scikit-learn's checks of the parameters that all rankers by neighbours share."""


@dataclass(frozen=True)
class LeftOut:
    """Training rows that were compared with other rows only.

    Of a sample, `weight` is also that of the rows that each row stands for; `n_cases` is the number of cases that it is
    itself. `evidence` has arrays of shape (n, ...), and `source` says how the rows were left out, in words.
    """

    rows: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray
    n_cases: np.ndarray
    evidence: tuple[np.ndarray, ...]
    source: str


class NeighbourRanker(Ranker):
    """Base of the rankers that compare a row with known cases."""

    n_neighbors: int
    metric: Any
    scaling: str | None
    category_distance: float
    algorithm: str
    n_neighbors_: int
    recall_: float
    _space: Space
    _known: KnownCases
    _case_names: list[str] | None = None
    _left_out_score: np.ndarray | None = None

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit to past cases.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features), or a SharedTable of it
            numpy, pandas, polars or pyarrow; categories and missing values as they are. The index of a pandas frame
            names the known cases in reasons, if it is not just 0, 1, 2, ...
        y : array of shape (n,)
            The outcome: two values; `pos_label` is positive, or 1, True, yes and the like, or the larger one.
        sample_weight : array of shape (n,), optional
            Non-negative weights. Weight 2 is the row twice, weight 0 leaves it out.
        groups : array of shape (n,), optional
            Who or what each row belongs to, as in the other rankers. With groups and cv=None there are 5 folds: a row
            left out alone would be judged by the other rows of its group.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight, groups)
        self._case_names = index_names(plain_table(X))
        return self

    def _fit_model(self, data: Cases, threads: Threads) -> Unseen | None:
        left_out, points = self._learn(data, threads)
        score = self._scores_of(left_out.evidence, points[left_out.rows])
        n_cases = len(data.X) if data.weight is None else np.count_nonzero(data.weight)
        if len(np.unique(left_out.rows)) == len(left_out.rows) == n_cases:  # so was each row, once
            self._left_out_score = np.zeros(len(data.X))
            self._left_out_score[left_out.rows] = score
        return self._unseen(data, left_out, score, threads)

    def _unseen(self, data: Cases, left_out: LeftOut, score: np.ndarray, threads: Threads) -> Unseen | None:
        """Return the rows that were left out as held-out cases; None for cv=0."""
        if not has_folds(self.cv):
            return None
        part = HeldOut(score, left_out.is_positive, left_out.weight, n_cases=left_out.n_cases, rows=left_out.rows)
        return Unseen([part], left_out.source)

    def _learn(self, data: Cases, threads: Threads) -> tuple[LeftOut, np.ndarray]:
        """Learn space, known cases and rule; return the rows that were left out, and all rows as points."""
        weight = data.all_weights
        self._space = Space.learn(
            data.X, data.n_categories, data.weight, scaling=self.scaling, category_distance=self.category_distance
        )
        points = self._space.points(data.X)
        totals = weight[data.is_positive].sum(), weight[~data.is_positive].sum()
        self.n_neighbors_ = self._used_neighbours(*totals)
        components = self._learn_metric(points, data, threads)
        self._known = self._known_cases(points, data.is_positive, data.weight, components)
        self.n_neighbors_ = min(self.n_neighbors_, self._used_neighbours(*self._known.totals))  # samplers remove cases
        left_out = self._leave_out(data, points, components, threads)
        self.recall_ = self._measure_recall(points, left_out, threads)
        self._learn_rule(left_out, data, points, threads)
        return left_out, points

    def _used_neighbours(self, n_positives: float, n_negatives: float) -> int:
        """Return the k used for this number of cases."""
        return int(max(1, min(self.n_neighbors, self._most_neighbours(n_positives, n_negatives))))

    def _most_neighbours(self, n_positives: float, n_negatives: float) -> float:
        """Return the largest k that is of use with so many cases."""
        return most_neighbours((n_positives, n_negatives))

    def _learn_metric(self, points: np.ndarray, data: Cases, threads: Threads) -> np.ndarray | None:
        """Return the linear map of the metric towards positives, float64 (p, n_dims); None for plain distances."""
        if isinstance(self.metric, str):
            return None
        if hasattr(self.metric, "learn_components"):
            components = self.metric.learn_components(points, data.is_positive, data.weight, threads)
        else:
            components = np.asarray(self.metric, np.float64)
        if components.ndim != 2 or components.shape[1] != points.shape[1] or not np.all(np.isfinite(components)):
            raise InputError(
                f"metric must be a finite matrix with one column per coordinate, (p, {points.shape[1]}), got the shape "
                f"{components.shape}. Hint: a category has one coordinate per category."
            )
        return components

    @property
    def _seed(self) -> int:
        return seed_of(self.random_state)

    @property
    def _metric_name(self) -> str:
        """Name of the distance after the linear map, if there is one."""
        return self.metric if isinstance(self.metric, str) else "euclidean"

    def _known_cases(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None, components: np.ndarray | None,
        rows: np.ndarray | None = None,
    ) -> KnownCases:  # fmt: skip
        """Return training points as known cases; `rows` are their rows in the training table."""
        return KnownCases.learn(
            points, is_positive, weight, metric=self._metric_name, algorithm=self.algorithm, components=components,
            seed=self._seed, rows=rows,
        )  # fmt: skip

    def _leave_out(self, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads) -> LeftOut:
        """Compare training rows with all other rows, or with those of the other folds."""
        if not has_folds(self.cv) or (self.cv is None and data.groups is None):
            return self._leave_one_out(data, points, threads)
        folds = self._folds_to_tune(data, 5 if self.cv is None else self.cv)
        return self._leave_folds_out(data, points, components, threads, folds)

    def _leave_one_out(self, data: Cases, points: np.ndarray, threads: Threads) -> LeftOut:
        """Compare training rows, or a sample of them, with all other rows."""
        rows, weight = sample_cases(data.is_positive, data.weight, LEFT_OUT_ROWS)
        evidence = self._evidence(self._known, points[rows], threads, rows)
        return LeftOut(rows, data.is_positive[rows], weight[rows], data.all_weights[rows], evidence, LEAVE_ONE_OUT)

    def _folds_to_tune(self, data: Cases, cv: Any) -> list[Fold]:
        """Return the folds of the rule; InputError if there are none."""
        folds = held_out_folds(data, cv, self.random_state)
        if not folds and data.groups is not None:
            raise InputError(
                f"{type(self).__name__}.fit needs two groups with positives and two with negatives to tune its rule, "
                "but there are fewer. Hint: set gamma to a number, or leave groups out."
            )
        if not folds:
            raise InputError(
                f"{type(self).__name__}.fit needs folds with two distinct cases of each class to tune its rule, but "
                f"there are none with cv={cv!r}. Hint: use cv=None, which leaves one case out at a time, or a number "
                "for gamma."
            )
        return folds

    def _leave_folds_out(
        self, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads, folds: list[Fold]
    ) -> LeftOut:
        """Compare the rows of each fold with those of the others."""
        found = [self._compare_fold(fold, data, points, components, threads) for fold in folds]
        rows = np.concatenate([fold.held_out for fold in folds])
        weight = np.concatenate([fold.weight[fold.held_out] for fold in folds])
        own = np.concatenate([fold.own_weight[fold.held_out] for fold in folds])
        evidence = tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
        return LeftOut(rows, data.is_positive[rows], weight, own, evidence, by_folds(len(folds)))

    def _compare_fold(
        self, fold: Fold, data: Cases, points: np.ndarray, components: np.ndarray | None, threads: Threads
    ) -> tuple[np.ndarray, ...]:
        """Compare the held-out rows of a fold with its training rows."""
        inside = fold.inside
        cases = points[inside], data.is_positive[inside], fold.weight[inside]
        known = self._known_cases(*cases, self._metric_of_fold(*cases, components, threads), inside)
        return self._evidence(known, points[fold.held_out], threads, None)

    def _metric_of_fold(
        self, points: np.ndarray, is_positive: np.ndarray, weight: np.ndarray, components: np.ndarray | None,
        threads: Threads,
    ) -> np.ndarray | None:  # fmt: skip
        """Return the linear map for the points of a fold: learned again, if it is learned at all."""
        if not hasattr(self.metric, "learn_components"):
            return components
        learned: np.ndarray = self.metric.learn_components(points, is_positive, weight, threads)
        return learned

    def _measure_recall(self, points: np.ndarray, left_out: LeftOut, threads: Threads) -> float:
        """Return the share of the nearest negatives and positives that the search finds, the lower of both.

        Rows are left out of their own search, as new cases are not in the graph.
        """
        k, rows = max(self.n_neighbors_, 1), left_out.rows
        queries = mapped(points[rows], self._known.components), points[rows]
        sets = self._known.positives, self._known.negatives
        return min(
            cases.points.recall(at, k, threads, cases.positions(rows)) for cases, at in zip(sets, queries, strict=True)
        )

    def _evidence(
        self, known: KnownCases, points: np.ndarray, threads: Threads, own: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        """Return what the search finds about points, one entry per point: the ratio of the two deciding distances.

        `own` as in `KnownCases.distances`.
        """
        return (ratios(*known.distances(points, DecidingCounts.from_k(self.n_neighbors_), threads, own)),)

    @abstractmethod
    def _learn_rule(self, left_out: LeftOut, data: Cases, points: np.ndarray, threads: Threads) -> None:
        """Learn what turns evidence into decisions, from training rows that were left out of the search."""

    @abstractmethod
    def _scores_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        """Return scores from evidence, float64 (n,)."""

    @abstractmethod
    def _flags_of(self, evidence: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
        """Return which rows the vote flags, bool (n,)."""

    # --- scoring ------------------------------------------------------------------------------------------------

    def _score_rows(self, matrix: np.ndarray, threads: Threads) -> np.ndarray:
        points = self._space.points(matrix)
        return self._scores_of(self._evidence(self._known, points, threads, None), points)

    def _score_training_rows(self, data: Cases, threads: Threads) -> tuple[slice | np.ndarray, np.ndarray]:
        """Score training rows without themselves: each is its own nearest neighbour."""
        if self._left_out_score is not None:
            score, self._left_out_score = self._left_out_score, None
            return slice(None), score
        rows = np.arange(len(data.X)) if len(data.X) <= LEFT_OUT_ROWS else data.sample(LEFT_OUT_ROWS)
        points = self._space.points(data.X[rows])
        return rows, self._scores_of(self._evidence(self._known, points, threads, rows), points)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row by the vote of its neighbours.

        With a `budget`, positive above its cutoff instead, as in all rankers.
        """
        if self.budget_ is not None:
            return super().predict(X)
        points = self._space_points(X)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            is_positive = self._flags_of(self._evidence(self._known, points, threads, None), points)
        return self.classes_[np.where(is_positive, self.positive_index_, 1 - self.positive_index_)]

    def _space_points(self, X: Any) -> np.ndarray:
        """Return the rows of a table as points."""
        matrix = self._encode(X)  # first, as it checks that the model is fitted
        return self._space.points(matrix)

    # --- reasons ------------------------------------------------------------------------------------------------

    def _reasons(self, matrix: np.ndarray, n_reasons: int, originals: Originals, gain: Any) -> list[list[Reason]]:
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            near = self._nearby(self._space.points(matrix), n_reasons, threads)[0]
            if gain is None:  # without rates of new cases, those of training: the rate that the alert shows
                gain = log_odds_gain(self.rates_.at(self._score_rows(matrix, threads)), self.base_rate_)
        return [list(each) for each in neighbour_reasons(near, self.columns_, matrix, originals, gain)]

    def explain(self, X: Any) -> list[NeighbourExplanation]:
        """Explain the score of each row by the known positives and negatives nearest to it, and what differs most.

        The text of an explanation lists both sides; `positives` and `negatives` have the same as data.
        """
        matrix = self._encode(X)
        originals = original_values(X, self._input_names)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            near = self._nearby(self._space.points(matrix), self.n_neighbors_, threads)
            score = self._score_rows(matrix, threads)
        sides = [nearby_cases(side, self.columns_, matrix, originals, DIFFERENCES) for side in near]
        figures = figures_of(score, self.rates_, self.base_rate_)
        return [NeighbourExplanation(*found, **known) for *found, known in zip(*sides, figures, strict=True)]

    def _nearby(self, points: np.ndarray, k: int, threads: Threads) -> tuple[Nearby, Nearby]:
        """Return the k nearest positives and negatives of each point, with what is needed to describe them."""

        def near(cases: CaseSet, queries: np.ndarray) -> Nearby:
            found = cases.points.nearest(queries, min(k, len(cases)), threads)
            return Nearby(found, cases, points, self._space, self._case_names)

        known = self._known
        return near(known.positives, mapped(points, known.components)), near(known.negatives, points)

    # --- files and text -----------------------------------------------------------------------------------------

    def _plain_parts(self) -> dict[str, Any]:
        return plain({name: array for name, array in self._to_arrays().items() if not name.startswith("hit_rates_")})

    def _size_in_words(self) -> str:
        known = self._known
        cases = f"{plural(len(known.positives), 'positive')} and {plural(len(known.negatives), 'negative')}"
        recall = "" if self.recall_ == 1 else f", {self.recall_:.1%} of the nearest found"
        return f"{plural(self.n_neighbors_, 'neighbour')} among {cases}{recall}"

    def _line_in_words(self) -> str:
        return "" if self.budget_ is None else super()._line_in_words()

    def _facts(self) -> dict[str, str]:
        components, metric = self._known.components, self._metric_name
        out = {}
        if components is not None:
            out["weights"] = weights_text(self.columns_, column_weights(components, self._space))
            metric = "learned towards positives, euclidean towards negatives"
        return out | distance_facts(self.columns_, self._space, metric, self.scaling, self.category_distance)

    def _figures(self) -> dict[str, Any]:
        return {"n_neighbors": self.n_neighbors_, "recall": self.recall_}

    def _to_arrays(self) -> dict[str, np.ndarray]:
        known = self._known
        out = super()._to_arrays() | with_prefix(self._space.to_arrays(), "space_")
        out |= with_prefix(known.positives.to_arrays(), "positive_")
        out |= with_prefix(known.negatives.to_arrays(), "negative_")
        out["neighbours"] = np.array([self.n_neighbors_, self.recall_], np.float64)
        out["case_names"] = names_to_array(self._case_names)
        if known.components is not None:
            out["components"] = known.components
        return out

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        super()._from_arrays(arrays)
        n_categories = np.array([len(column.categories or ()) for column in self.columns_])
        self._space = Space.from_arrays(without_prefix(arrays, "space_"), n_categories)
        components = arrays.get("components")
        n_dims = self._space.n_dims
        if components is not None and (
            components.dtype != np.float64 or components.ndim != 2 or components.shape[1] != n_dims
            or not np.all(np.isfinite(components))
        ):  # fmt: skip
            raise InputError("The model's metric and its columns do not fit together.")
        positives, negatives = (
            CaseSet.from_arrays(without_prefix(arrays, prefix), n_dims, image, self._metric_name, self.algorithm)
            for prefix, image in (("positive_", components), ("negative_", None))
        )
        self._known = KnownCases(positives, negatives, components)
        n_neighbors, self.recall_ = arrays["neighbours"].tolist()
        self.n_neighbors_ = int(n_neighbors)
        most = self._used_neighbours(*self._known.totals)
        if not 1 <= self.n_neighbors_ <= most or not 0 <= self.recall_ <= 1:
            raise InputError("The model's number of neighbours does not fit its parameters and its known cases.")
        self._case_names = names_from_array(arrays["case_names"], max(positives.rows.max(), negatives.rows.max()))
