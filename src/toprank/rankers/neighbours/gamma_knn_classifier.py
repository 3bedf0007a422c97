"""`GammaKNNClassifier`: gamma-kNN for two or more classes, with K - 1 gammas (section 2.4.1 of the thesis)."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from toprank._compat import Interval, Options, StrOptions
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases, sample_classes
from toprank.data.encoding import original_values
from toprank.data.shared_table import plain_table
from toprank.errors import InputError
from toprank.files.model_file import numbered_parts, with_prefix, without_prefix
from toprank.rankers.base import RANKER_CONSTRAINTS
from toprank.rankers.neighbours.facts import distance_facts, gamma_text
from toprank.rankers.neighbours.known import CaseSet, most_neighbours
from toprank.rankers.neighbours.nearby import (
    DIFFERENCES,
    ClassExplanation,
    ClassVote,
    Nearby,
    index_names,
    names_from_array,
    names_to_array,
    nearby_cases,
)
from toprank.rankers.neighbours.neighbour_ranker import LEFT_OUT_ROWS, NEIGHBOUR_CONSTRAINTS
from toprank.rankers.neighbours.search import METRICS
from toprank.rankers.neighbours.space import Space
from toprank.rankers.neighbours.tuning import CLASS_MEASURES, LEAST_GAMMA, ClassVotes, confusion_matrix, tune_gammas
from toprank.rankers.reading import TableReader
from toprank.rankers.seeds import seed_of
from toprank.rankers.validation import check_class_labels
from toprank.tree.bin_mapper import row_blocks
from toprank.words.counts import every, plural
from toprank.words.numbers import percent_text
from toprank.words.wording import SHORT

CV = "cv"

CLASSES = 20
"""Most classes that a summary describes one by one."""


@dataclass(kw_only=True, eq=False, repr=False)
class GammaKNNClassifier(ClassifierMixin, TableReader):
    """Nearest neighbours for two or more classes, of which the rare ones count as if they were nearer.

    Algorithm 2.1 with a gamma per class: distances to the cases of a class are multiplied by its gamma, and the k
    nearest of all cases vote. The most common class is the reference, with gamma 1; the other K - 1 gammas are tuned.
    Ties between classes go to the rarer one, as half of an even k is enough for a positive in algorithm 2.1. With two
    classes it decides as `GammaKNN` does with the same gamma. It predicts classes and does not rank.

    Training rows vote without themselves (leave-one-out), from one search. While one gamma moves, a row is decided
    otherwise only where it passes one of k ratios, so all values of a gamma are compared at once; each in turn goes to
    the best of all its values until none gains (`toprank.rankers.neighbours.tuning`).

    Parameters
    ----------
    n_neighbors : int, default 3
        k. At most 2 m - 3 are used, where m is the number of cases of the smallest class (`n_neighbors_`).
    gamma : float, array of shape (K,) or "cv", default "cv"
        A number is the gamma of all classes but the reference. An array has one per class, in the order of `classes_`;
        only ratios matter, and they are divided by that of the reference. At least 1e-9. "cv" tunes them.
    scoring : {"f1_macro", "balanced_accuracy", "g_mean"}, default "f1_macro"
        What the gammas are tuned for: the mean F-measure of the classes, the mean of their recalls, or the geometric
        mean of their recalls, which is 0 if one class is never found.
    max_gamma : float, default 1.0
        Largest gamma to consider: rare classes count as nearer than they are, never as farther away.
    metric : {"euclidean", "manhattan"}, default "euclidean"
    scaling, category_distance, algorithm, categorical_features, keep_columns, random_state, n_jobs
        As in `GammaKNN`.

    Attributes
    ----------
    classes_ : array of shape (K,)
    gammas_ : float64 array of shape (K,)
        In the order of `classes_`; 1 for the reference.
    reference_ : label
        The most common class, the first of several.
    class_counts_ : float64 array of shape (K,)
        Training cases of each class.
    confusion_ : float64 array of shape (K, K)
        Training cases of class i (row) that were predicted as class j (column) when left out. Above 100,000 training
        cases, a sample stands for all of them.
    tuned_score_ : float
        The measure of `confusion_`; slightly optimistic, as the gammas were tuned on the same decisions.
    n_neighbors_, recall_
        As in `GammaKNN`.

    References
    ----------
    R. Viola, R. Emonet, A. Habrard, G. Metzler, S. Riou, M. Sebban: An Adjusted Nearest Neighbor Algorithm Maximizing
    the F-Measure from Imbalanced Data, ICTAI 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from toprank import GammaKNNClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = GammaKNNClassifier(n_neighbors=3).fit(X, y)
    >>> model.reference_, bool(model.tuned_score_ > 0.95)
    (1, True)
    >>> model.explain(X.head(1))[0].label
    0
    """

    _parameter_constraints = {
        **{name: RANKER_CONSTRAINTS[name] for name in ("categorical_features", "keep_columns", "n_jobs")},
        **{
            name: NEIGHBOUR_CONSTRAINTS[name]
            for name in ("n_neighbors", "scaling", "category_distance", "algorithm", "random_state")
        },
        "gamma": [Interval(Real, LEAST_GAMMA, None, closed="left"), Options(str, {CV}), "array-like"],
        "scoring": [StrOptions(set(CLASS_MEASURES))],
        "max_gamma": [Interval(Real, LEAST_GAMMA, None, closed="left")],
        "metric": [StrOptions(set(METRICS))],
    }

    _case_names = None

    n_neighbors: int = 3
    gamma: Any = CV
    scoring: str = "f1_macro"
    max_gamma: float = 1.0
    metric: str = "euclidean"
    scaling: str | None = "minmax"
    category_distance: float = 2.0
    algorithm: str = "auto"
    categorical_features: Any = None
    keep_columns: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to past cases.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            numpy, pandas, polars or pyarrow; categories and missing values as they are. The index of a pandas frame
            names the known cases in `explain`, if it is not just 0, 1, 2, ...
        y : array of shape (n,)
            Two or more classes.
        sample_weight : array of shape (n,), optional
            Non-negative weights. Weight 2 is the row twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        with self._fitting():
            table = self._read(X, reset=True)
            label, weight = self._read_labels(y, sample_weight, len(table))
            is_rare = label != np.argmax(np.bincount(label, weight))
            with Threads(resolve_n_jobs(self.n_jobs)) as threads:
                self._learn(self._learn_table(table, is_rare, weight, threads), label, threads)
            self._case_names = index_names(plain_table(X))
        return self

    def _read_labels(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the classes of the rows as positions in `classes_`, any for rows without weight, and the weights."""
        owner = f"{type(self).__name__}.fit"
        labels, weight = check_class_labels(y, sample_weight, n_rows, owner)
        is_known = np.ones(n_rows, bool) if weight is None else weight > 0
        label = np.zeros(n_rows, np.int64)
        self.classes_, label[is_known] = np.unique(labels[is_known], return_inverse=True)
        if len(self.classes_) == 1:
            found = every(int(is_known.sum()), "label equals", "labels equal")
            raise InputError(
                f"{owner} needs two or more classes in y, but {found} {self.classes_[0]}: only one class. "
                "Hint: check y and sample_weight, or use StratifiedKFold."
            )
        return label, weight

    def _learn(self, data: Cases, label: np.ndarray, threads: Threads) -> None:
        """Learn the space, the known cases of each class and the gammas."""
        self._space = Space.learn(
            data.X, data.n_categories, data.weight, scaling=self.scaling, category_distance=self.category_distance
        )
        points, rows = self._space.points(data.X), np.arange(len(data.X))
        seed = seed_of(self.random_state)
        n_classes = len(self.classes_)
        self._sets = [
            CaseSet.learn(
                points, label == c, data.weight, rows, metric=self.metric, algorithm=self.algorithm, seed=seed
            )
            for c in range(n_classes)
        ]
        self.n_neighbors_ = self._used_neighbours()
        rows, weight = sample_classes(label, n_classes, data.weight, max(LEFT_OUT_ROWS, n_classes))
        votes = self._votes(points[rows], threads, rows)
        measure, label, weight = CLASS_MEASURES[self.scoring], label[rows], weight[rows]
        if isinstance(self.gamma, str):
            self.gammas_ = tune_gammas(votes, label, weight, measure, self.max_gamma)
        else:
            self.gammas_ = self._given_gammas()
        self.confusion_ = confusion_matrix(label, votes.decide(self.gammas_), weight, n_classes)
        self.recall_ = min(
            known.points.recall(points[rows], self.n_neighbors_, threads, known.positions(rows)) for known in self._sets
        )

    def _used_neighbours(self) -> int:
        """Return k as used with the known cases."""
        return int(max(1, min(self.n_neighbors, most_neighbours(self.class_counts_.tolist()))))

    def _given_gammas(self) -> np.ndarray:
        """Return the user's gammas, float64 (K,), over that of the reference."""
        n = len(self.classes_)
        if np.ndim(self.gamma) == 0:
            return np.where(np.arange(n) == self._reference, 1.0, float(self.gamma))
        given = np.asarray(self.gamma)
        is_valid = given.shape == (n,) and given.dtype.kind in "iuf"
        if is_valid and np.all(np.isfinite(given) & (given > 0)):
            gammas = given.astype(np.float64) / float(given[self._reference])
            if np.all(np.isfinite(gammas) & (gammas >= LEAST_GAMMA)):
                return gammas
        raise InputError(
            f"gamma must be a number, or {n} numbers above 0, one per class, none of them less than {LEAST_GAMMA:g} "
            f"times that of the most common class, got {reprlib.repr(self.gamma)}. "
            f"Hint: the classes are ordered as in classes_, here {reprlib.repr(self.classes_.tolist())}."
        )

    # --- classes and votes --------------------------------------------------------------------------------------

    @property
    def class_counts_(self) -> np.ndarray:
        """Training cases of each class, float64 (K,)."""
        return np.array([math.fsum(known.weights) for known in self._sets])

    @property
    def _reference(self) -> int:
        return int(np.argmax(self.class_counts_))

    @property
    def reference_(self) -> Any:
        """The class with gamma 1: the most common one, the first of several."""
        return self.classes_.tolist()[self._reference]

    @property
    def tuned_score_(self) -> float:
        """The measure of left-out training cases at `gammas_`."""
        return CLASS_MEASURES[self.scoring].of_confusion(self.confusion_)

    def _votes(self, points: np.ndarray, threads: Threads, own: np.ndarray | None = None) -> ClassVotes:
        """Return the distances that decide about points; `own` are their rows in training, to leave them out."""
        counts = np.arange(1, self.n_neighbors_ + 1)
        distance = np.empty((len(points), len(self._sets), len(counts)))
        for c, known in enumerate(self._sets):
            distance[:, c] = known.at_count(points, counts, threads, own, is_bounded=False)
        return ClassVotes(distance, self.class_counts_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row by the vote of its neighbours; it depends on the row and the model only."""
        matrix = self._encode(X)
        points = self._space.points(matrix)
        out = np.empty(len(points), np.int64)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            for rows in row_blocks(len(points), len(self._sets) * self.n_neighbors_):
                out[rows] = self._votes(points[rows], threads).decide(self.gammas_)
        return self.classes_[out]

    def explain(self, X: Any) -> list[ClassExplanation]:
        """Explain the class of each row by the known cases that vote, and what differs most.

        The text of an explanation lists the cases by class; `classes` has the same as data.
        """
        matrix = self._encode(X)
        points, originals = self._space.points(matrix), original_values(X, self._input_names)
        with Threads(resolve_n_jobs(self.n_jobs)) as threads:
            votes = self._votes(points, threads)
            count, predicted = votes.count(self.gammas_), votes.decide(self.gammas_)
            near = [
                Nearby(known.points.nearest(points, min(self.n_neighbors_, len(known)), threads), known, points,
                       self._space, self._case_names)
                for known in self._sets
            ]  # fmt: skip
        cases = [nearby_cases(each, self.columns_, matrix, originals, DIFFERENCES) for each in near]
        n_voting = [each.cases.n_within(each.found, count[:, c]) for c, each in enumerate(near)]
        labels = self.classes_.tolist()
        out = []
        for i in range(len(points)):
            order = np.lexsort((-count[i], np.arange(len(labels)) != predicted[i])).tolist()
            out.append(
                ClassExplanation(
                    labels[predicted[i]],
                    tuple(
                        ClassVote(labels[c], int(count[i, c]), float(self.gammas_[c]), cases[c][i][: n_voting[c][i]])
                        for c in order
                        if count[i, c]
                    ),
                )
            )
        return out

    # --- files and text -----------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return a few lines about the fitted model: neighbours, classes with their gammas, decisions when left out."""
        check_is_fitted(self)
        first = [
            f"{type(self).__name__}: {self._size_in_words()}",
            f"trained on {plural(round(self.class_counts_.sum()), 'case')}, {plural(len(self.columns_), 'column')} "
            f"({sum(c.is_categorical for c in self.columns_)} categorical)",
        ]
        return "\n".join([*first, *(f"{name}: {text}" for name, text in self._facts().items())])

    def _size_in_words(self) -> str:
        n_cases, n_classes = sum(len(known) for known in self._sets), len(self._sets)
        recall = "" if self.recall_ == 1 else f", {self.recall_:.1%} of the nearest found"
        known = f"{plural(n_cases, 'case')} of {n_classes} classes"
        return f"{plural(self.n_neighbors_, 'neighbour')} among {known}{recall}"

    def _facts(self) -> dict[str, str]:
        """Return what a person wants to know of the model, by name, in words."""
        is_tuned = isinstance(self.gamma, str)
        out, labels = {}, self.classes_.tolist()
        order = np.argsort(-self.class_counts_, kind="stable").tolist()
        for c in order[:CLASSES]:
            found, n = self.confusion_[c, c], self.confusion_[c].sum()
            gamma = "the reference" if c == self._reference else f"gamma {gamma_text(self.gammas_[c], 'a case counts')}"
            out[f"class {SHORT.label(labels[c])}"] = (
                f"{plural(round(self.class_counts_[c]), 'case')}, {percent_text(found / n) if n else 'none'} of them "
                f"recognised when left out; {gamma}"
            )
        if len(order) > CLASSES:
            out["other classes"] = f"{len(order) - CLASSES} more, with fewer cases"
        verb = "tuned for" if is_tuned else "measured"
        out[verb] = f"{self.scoring}: {self.tuned_score_:.3f} on left-out training cases" + (
            ", slightly optimistic" if is_tuned else ""
        )
        return out | distance_facts(self.columns_, self._space, self.metric, self.scaling, self.category_distance)

    def _figures(self) -> dict[str, Any]:
        """Return figures of the fitted model for its file."""
        counts = self.class_counts_
        return {
            "n_cases": math.fsum(counts),
            "class_counts": counts.tolist(),
            "n_neighbors": self.n_neighbors_,
            "recall": self.recall_,
            "gammas": self.gammas_.tolist(),
            "tuned_score": self.tuned_score_,
        }

    def _to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the fitted model for a file."""
        arrays = with_prefix(self._space.to_arrays(), "space_")
        for c, known in enumerate(self._sets):
            arrays |= with_prefix(known.to_arrays(), f"class{c}_")
        return arrays | {
            "gammas": self.gammas_,
            "confusion": self.confusion_,
            "neighbours": np.array([self.n_neighbors_, self.recall_], np.float64),
            "case_names": names_to_array(self._case_names),
        }

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the fitted model from the arrays of a file, checked."""
        n_categories = np.array([len(column.categories or ()) for column in self.columns_])
        self._space = Space.from_arrays(without_prefix(arrays, "space_"), n_categories)
        n_classes = len(self.classes_)
        self._sets = [
            CaseSet.from_arrays(part, self._space.n_dims, None, self.metric, self.algorithm)
            for part in numbered_parts(arrays, "class", n_classes)
        ]
        self.gammas_, self.confusion_ = arrays["gammas"], arrays["confusion"]
        n_neighbors, self.recall_ = arrays["neighbours"].tolist()
        self.n_neighbors_ = int(n_neighbors)
        for array, shape in ((self.gammas_, (n_classes,)), (self.confusion_, (n_classes, n_classes))):
            if array.dtype != np.float64 or array.shape != shape or not np.all(np.isfinite(array) & (array >= 0)):
                raise InputError("The model's gammas and its classes do not fit together.")
        if n_classes < 2 or np.any(self.gammas_ < LEAST_GAMMA) or self.gammas_[self._reference] != 1:
            raise InputError("The model's gammas and its classes do not fit together.")
        if not 1 <= self.n_neighbors_ <= self._used_neighbours() or not 0 <= self.recall_ <= 1:
            raise InputError("The model's number of neighbours does not fit its parameters and its known cases.")
        last = max(int(known.rows.max()) for known in self._sets)
        self._case_names = names_from_array(arrays["case_names"], last)
