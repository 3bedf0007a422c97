"""Distillation: a readable ranker that is taught by a better one, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from toprank._compat import take_rows
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.budget import alerts_of_budget
from toprank.data.cases import Cases
from toprank.errors import InputError, InputTypeError
from toprank.metrics import average_precision
from toprank.rankers.alerts import count_of_alerts
from toprank.rankers.base import Ranker
from toprank.rankers.curve.cost_curve import CostOptimalCurve
from toprank.rankers.neighbours.mixing import mix_neighbours
from toprank.rankers.neighbours.neighbour_ranker import NeighbourRanker
from toprank.rankers.unseen import Fold, HeldOut, Unseen, by_folds, held_out_folds
from toprank.rankers.validation import check_labels
from toprank.words.counts import plural
from toprank.words.numbers import percent_text


@dataclass(frozen=True, eq=False)
class Distillation:
    """A student, its teacher, and both on cases that neither has seen.

    Attributes
    ----------
    student, teacher : Ranker
        Fitted; on the training part if no test cases were given.
    k : int
        Number of alerts that are compared.
    fidelity : float
        Share of the teacher's first k cases that are among the student's first k.
    teacher_ap, student_ap, plain_ap : float
        Average precision on the test cases, of the teacher, the student, and a student of the same settings that was
        taught by the outcomes alone.
    n_test, n_test_positives : int
        Test cases behind these figures.
    n_new : int
        Rows that were made by mixing neighbours.
    size : str
        Size of the student in words.
    figures : dict
        Size of the student in numbers, such as leaves and conditions.
    """

    student: Ranker
    teacher: Ranker
    k: int
    fidelity: float
    teacher_ap: float
    student_ap: float
    plain_ap: float
    n_test: int
    n_test_positives: int
    n_new: int
    size: str
    figures: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, without the models."""
        names = ("k", "fidelity", "teacher_ap", "student_ap", "plain_ap", "n_test", "n_test_positives", "n_new", "size")
        rankers = {name: type(getattr(self, name)).__name__ for name in ("teacher", "student")}
        return rankers | {name: getattr(self, name) for name in names} | {"figures": dict(self.figures)}

    def __str__(self) -> str:
        teacher, student = type(self.teacher).__name__, type(self.student).__name__
        return "\n".join(
            [
                f"{student} taught by {teacher}: {self.size}",
                f"on {plural(self.n_test, 'test case')}, {self.n_test_positives:,} positive:",
                f"  average precision {self.student_ap:.3f}; teacher {self.teacher_ap:.3f}, without a teacher "
                f"{self.plain_ap:.3f}",
                f"  {percent_text(self.fidelity)} of the teacher's first {plural(self.k, 'case')} are among the "
                "student's",
            ]
        )


def distill(
    teacher: Ranker,
    student: Ranker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    k: int | float | None = None,
    cv: Any = 5,
    teacher_share: float = 0.5,
    new_rows: float = 1.0,
    new_weight: float = 0.3,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Distillation:
    """Teach a readable ranker what a better one has learned.

    The teacher scores every case without having seen it, in folds. The student learns from soft labels: a case enters
    twice, as a positive of weight q and as a negative of weight 1 - q, with q = (1 - teacher_share) outcome +
    teacher_share times the teacher's rate. New rows, mixed from neighbours of the same class and fold, have the rate of
    the teacher that saw neither of them; all weights are scaled to the number of cases. What the student chooses by
    folds, and its hit rates, come from known outcomes.

    Parameters
    ----------
    teacher, student : Ranker
        Fitted or not; both are copied and fitted anew. A teacher with hit rates of new cases (cv is not 0) has rates to
        teach.
    X, y, sample_weight
        Past cases, as in `fit`.
    X_test, y_test : optional
        Cases to report on. Without them a quarter of the cases is held out, and neither model is fitted on it.
    k : int, float or None
        Alerts to compare; None: the budget of the student, or as many as there are positives.
    cv : int, splitter or iterable of splits, default 5
        Folds of the teacher.
    teacher_share : float from 0 to 1, default 0.5
    new_rows : float, default 1.0
        New rows per known row, half of them of each class; 0 for none.
    new_weight : float, default 0.3
        Weight of the new rows of a class, relative to the known rows of that class.
    random_state : int, RandomState or None
        Seed of the held-out quarter, of the folds, and of mixing; fixed for None.
    n_jobs : int or None
        Threads; None: that of the student.

    Returns
    -------
    Distillation

    Examples
    --------
    >>> from toprank import MetaAP, MetaAPForest, distill
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(3000, random_state=0)
    >>> found = distill(MetaAPForest(n_estimators=20, random_state=0), MetaAP(max_depth=3), data.X, data.y, cv=3)
    >>> found.n_test, found.student.n_leaves_ <= 8, 0 <= found.fidelity <= 1
    (750, True, True)
    """
    limits = {"teacher_share": teacher_share, "new_rows": new_rows, "new_weight": new_weight}
    _check(teacher, student, limits, X_test, y_test)
    seed = check_random_state(0 if random_state is None else random_state).randint(2**31 - 1)
    if X_test is None:
        X, y, sample_weight, X_test, y_test = _split(X, y, sample_weight, seed)
    taught: Ranker = clone(student)
    taught._validate_params()
    with Threads(resolve_n_jobs(student.n_jobs if n_jobs is None else n_jobs)) as threads:
        data = taught._read_training(X, y, sample_weight, threads)
        lesson = Lesson(data, taught, held_out_folds(data, cv, seed), seed, threads)
        lesson.ask(teacher, teacher_share, new_rows, new_weight)
        final = clone(teacher)._fit_prepared(_cases(clone(teacher), taught, data, threads), taught, threads,
                                             with_rates=True)  # fmt: skip
        plain = clone(student)._fit_prepared(data, taught, threads)
        lesson.teach(taught)
    return _report(final, taught, plain, X_test, y_test, k, lesson.n_new)


def _check(teacher: Any, student: Any, limits: dict[str, Any], X_test: Any, y_test: Any) -> None:
    """Raise InputError or InputTypeError unless the arguments of `distill` can be used."""
    for name, ranker in (("teacher", teacher), ("student", student)):
        if not isinstance(ranker, Ranker):
            raise InputTypeError(
                f"distill needs a ranker of this library as its {name}, got {ranker!r}. "
                "Hint: for example distill(MetaAPForest(), MetaAP(), X, y)."
            )
    if isinstance(student, NeighbourRanker):
        raise InputError(
            f"distill cannot teach {type(student).__name__}, which keeps the cases themselves; expected a student with "
            "rules, trees or points. Hint: for example RedFlags or RankingTree."
        )
    for name, value in limits.items():
        most = 1.0 if name == "teacher_share" else np.inf
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= most or value == np.inf:
            expected = "a number from 0 to 1" if most == 1.0 else "a number of 0 or more"
            raise InputError(f"{name} of distill must be {expected}, got {value!r}. Hint: the default works well.")
    if (X_test is None) != (y_test is None):
        given, lacking = ("X_test", "y_test") if y_test is None else ("y_test", "X_test")
        raise InputError(f"distill got {given} but no {lacking}. Hint: test data are cases and outcomes.")


def _split(X: Any, y: Any, sample_weight: Any, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """A quarter of the cases held out, with a quarter of each class."""
    labels = check_labels(y, len(X), "distill")
    counts = np.unique(labels, return_counts=True)[1]
    if counts.min() < 4:
        raise InputError(
            f"distill holds a quarter of the cases out and needs at least 4 of each class, got {counts.min()}. "
            "Hint: pass X_test and y_test."
        )
    inside, test = train_test_split(np.arange(len(labels)), test_size=0.25, stratify=labels, random_state=seed)
    inside, test = np.sort(inside), np.sort(test)
    weight = None if sample_weight is None else np.asarray(sample_weight)[inside]
    return take_rows(X, inside), labels[inside], weight, take_rows(X, test), labels[test]


def _cases(ranker: Ranker, owner: Ranker, data: Cases, threads: Threads) -> Any:
    """Training data in the form that another ranker is fitted on."""
    ranker._know_table(owner)
    return ranker._make_cases(data.X, data.is_positive, data.weight, threads)


class Lesson:
    """What a teacher says about the cases of a table and about new rows between them.

    Attributes
    ----------
    q : float64 array of shape (n,)
        Soft labels of the known rows.
    new_X, new_q, new_weight, new_fold : arrays with one entry per new row
    """

    def __init__(self, data: Cases, owner: Ranker, folds: list[Fold], seed: int, threads: Threads):
        self.data, self._owner, self._folds, self._threads = data, owner, folds, threads
        self._seed = seed
        if not folds:
            raise InputError(
                "distill needs folds with two distinct cases of each class, in which the teacher scores cases that it "
                "has not seen, but there are none. Hint: use cv=5, and more cases."
            )
        self._fold = np.full(len(data.X), -1, np.int64)
        for i, fold in enumerate(folds):
            self._fold[fold.held_out] = i

    @property
    def n_new(self) -> int:
        """Number of new rows."""
        return len(self.new_q)

    def ask(self, teacher: Ranker, teacher_share: float, new_rows: float, new_weight: float) -> None:
        """Let copies of the teacher, one per fold, say their rates of known and of new rows."""
        data, weight = self.data, self._folds[0].weight
        group = np.where(self._fold >= 0, 2 * self._fold + data.is_positive, -1)
        n_rows = np.bincount(self._fold[self._fold >= 0], minlength=len(self._folds))
        n_new = np.repeat(np.round(n_rows * new_rows / 2).astype(np.int64), 2)
        rng = np.random.default_rng(self._seed)
        mixed = mix_neighbours(data.X, data.n_categories, group, n_new, rng, self._threads)
        self.new_X, self.new_fold = mixed.X, self._fold[mixed.origin]
        known = np.bincount(group[group >= 0], weight[group >= 0], 2 * len(self._folds))
        made = np.bincount(group[mixed.origin], minlength=len(known))
        self.new_weight = (new_weight * known / np.maximum(made, 1))[group[mixed.origin]]
        self.q, self.new_q = data.is_positive.astype(np.float64), np.zeros(len(mixed.X))
        cases = _cases(clone(teacher), self._owner, data, self._threads)
        for i, fold in enumerate(self._folds):
            part = clone(teacher)
            part._fit_prepared(cases.with_weight(fold.inside_weight), self._owner, self._threads, with_rates=True)
            rates = [part.rates_.at(part._score_rows(X, self._threads))
                     for X in (data.X[fold.held_out], self.new_X[self.new_fold == i])]  # fmt: skip
            self.q[fold.held_out] += teacher_share * (rates[0] - self.q[fold.held_out])
            self.new_q[self.new_fold == i] = rates[1]

    def teach(self, student: Ranker) -> None:
        """Fit the student on soft labels; its hit rates come from known outcomes."""
        unseen = []
        for i, fold in enumerate(self._folds):
            part = student._unfitted_copy()
            with _own_folds(part, self._splits(without=i)):
                part._fit_prepared(self._soft(part, without=i), student, self._threads)
            score = partial(part._score_rows, threads=self._threads)
            unseen.append(HeldOut.from_fold(self.data, fold, score))
        soft = self._soft(student)
        with _own_folds(student, self._splits()):
            student._fit_model(soft, self._threads)
        student._set_cutoff(self.data, self._threads, Unseen(unseen, by_folds(len(unseen))))

    def _soft(self, ranker: Ranker, without: int = -2) -> Any:
        """Known and new rows, each as a positive and as a negative, without one fold."""
        X = np.concatenate((self.data.X, self.new_X))
        q = np.concatenate((self.q, self.new_q))
        weight = self._weights(without)
        n = len(X)
        is_positive = np.repeat([True, False], n)
        weights = np.concatenate((weight * q, weight * (1.0 - q)))
        return ranker._make_cases(np.concatenate((X, X)), is_positive, weights, self._threads)

    def _weights(self, without: int) -> np.ndarray:
        """Weights of known and new rows, scaled to the number of cases."""
        known = np.where((self._fold >= 0) & (self._fold != without), self._folds[0].weight, 0.0)
        new = np.where(self.new_fold != without, self.new_weight, 0.0)
        return np.concatenate((known, new)) * (known.sum() / (known.sum() + new.sum()))

    def _splits(self, without: int = -2) -> list[tuple[np.ndarray, np.ndarray]]:
        """Folds of the rows of `_soft`: nothing that comes from the cases of a fold is in training.

        Only the copies of known rows that have the true label are held out: what is chosen by folds, such as the size
        of a tree, is then chosen by outcomes. Rates of a percent in soft labels would add up to more than the positives
        at the top, and reward an order of the many low cases.
        """
        fold = np.tile(np.concatenate((self._fold, self.new_fold)), 2)
        is_positive, none = self.data.is_positive, np.zeros(self.n_new, bool)
        is_true = np.concatenate((is_positive, none, ~is_positive, none))
        used = [i for i in range(len(self._folds)) if i != without]
        kept = (fold >= 0) & (fold != without)
        return [(np.flatnonzero(kept & (fold != i)), np.flatnonzero(is_true & (fold == i)))
                for i in used if len(used) > 1]  # fmt: skip


@contextmanager
def _own_folds(ranker: Ranker, splits: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[None]:
    """Let a ranker that chooses by folds use these, so that copies of a case are never on both sides."""
    if "cv" not in ranker.get_params(deep=False):
        yield
        return
    given = ranker.cv
    has_folds = given is None or not (isinstance(given, int | np.integer) and given == 0)
    no_folds = None if isinstance(ranker, CostOptimalCurve) else 0
    ranker.set_params(cv=splits if splits and has_folds else no_folds)
    try:
        yield
    finally:
        ranker.set_params(cv=given)


def _report(
    teacher: Ranker, student: Ranker, plain: Ranker, X_test: Any, y_test: Any, k: Any, n_new: int
) -> Distillation:
    """Both models on test cases."""
    scores = [model.decision_function(X_test) for model in (teacher, student, plain)]
    labels = check_labels(y_test, len(scores[0]), "distill (y_test)")
    is_positive = labels == student.classes_[student.positive_index_]
    if is_positive.all() or not is_positive.any():
        raise InputError("y_test of distill needs cases of both classes. Hint: take more test cases.")
    if k is None:
        k = alerts_of_budget(student.budget, student.cutoff_, student.n_cases_, len(labels))
    k = count_of_alerts(k, len(labels))
    first = [set(np.argsort(-score, kind="stable")[:k].tolist()) for score in scores[:2]]
    teacher_ap, student_ap, plain_ap = (average_precision(is_positive, score, pos_label=True) for score in scores)
    return Distillation(
        student=student,
        teacher=teacher,
        k=k,
        fidelity=len(first[0] & first[1]) / k,
        teacher_ap=teacher_ap,
        student_ap=student_ap,
        plain_ap=plain_ap,
        n_test=len(labels),
        n_test_positives=int(is_positive.sum()),
        n_new=n_new,
        size=student._size_in_words(),
        figures=student._figures(),
    )
