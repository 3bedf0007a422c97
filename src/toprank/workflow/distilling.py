"""Distillation: a readable ranker that is taught by a better one, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from toprank._compat import n_samples, take_rows
from toprank._core.threads import Threads, resolve_n_jobs
from toprank.data.cases import Cases
from toprank.errors import InputError, InputTypeError
from toprank.metrics import Interval, average_precision
from toprank.metrics.checks import is_real
from toprank.metrics.comparison import precision_gain
from toprank.rankers.alerts import count_of_alerts
from toprank.rankers.base import Ranker
from toprank.rankers.neighbours.mixing import mix_neighbours
from toprank.rankers.neighbours.neighbour_ranker import NeighbourRanker
from toprank.rankers.points.red_flags import RedFlags
from toprank.rankers.progress import progress, stage
from toprank.rankers.seeds import seed_of
from toprank.rankers.unseen import (
    Fold,
    HeldOut,
    Unseen,
    by_folds,
    has_folds,
    held_out_folds,
    is_partition,
    predict_left_out,
)
from toprank.rankers.validation import (
    check_classes,
    check_labels,
    check_shares_table,
    check_split_groups,
    check_weights,
    positives_of,
)
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
        Share of the teacher's first k cases that are among the student's first k; expected, if ties are broken at
        random.
    teacher_ap, student_ap, plain_ap : float
        Average precision on the test cases, of the teacher, the student, and a model with the settings of the student
        as `fit` makes it: from the outcomes and, if it has a teacher of its own, as `RedFlags` does, with that.
    gain : Interval
        student_ap - plain_ap, with its 95 % interval: a bootstrap of the test cases, the same for both.
    n_test, n_test_positives : int
        Test cases behind these figures; with weights, the weight of all and of the positives, rounded.
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
    gain: Interval
    n_test: int
    n_test_positives: int
    n_new: int
    size: str
    figures: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, without the models."""
        names = ("k", "fidelity", "teacher_ap", "student_ap", "plain_ap", "n_test", "n_test_positives", "n_new", "size")
        rankers = {name: type(getattr(self, name)).__name__ for name in ("teacher", "student")}
        gain = {"value": self.gain.value, "low": self.gain.low, "high": self.gain.high}
        return rankers | {name: getattr(self, name) for name in names} | {"gain": gain, "figures": dict(self.figures)}

    @property
    def gain_text(self) -> str:
        """What teaching gains or loses, with its interval, in words: better by 0.012 than without a teacher (...)."""
        value, low, high = self.gain.value, self.gain.low, self.gain.high
        size = f"{abs(value):.3f}"
        is_change = float(size) > 0
        change = f"{'better' if value > 0 else 'worse'} by {size} than" if is_change else "as good as"
        chance = ", which may be chance" if is_change and low <= 0 <= high else ""
        return f"{change} without a teacher (95 % interval of the gain {low:+.3f} to {high:+.3f}){chance}"

    def __str__(self) -> str:
        teacher, student = type(self.teacher).__name__, type(self.student).__name__
        return (
            f"{student} taught by {teacher}: {self.size}\n"
            f"on {plural(self.n_test, 'test case')}, {self.n_test_positives:,} positive:\n"
            f"  average precision {self.student_ap:.3f}; teacher {self.teacher_ap:.3f}; as `fit` makes it "
            f"{self.plain_ap:.3f}\n"
            f"  the taught model is {self.gain_text}\n"
            f"  {percent_text(self.fidelity)} of the teacher's first {self.k:,} of these {self.n_test:,} are among the "
            "student's"
        )


def distill(
    teacher: Ranker,
    student: Ranker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    sample_weight_test: Any = None,
    k: int | float | None = None,
    cv: Any = 5,
    teacher_share: float = 0.5,
    new_rows: float = 1.0,
    new_weight: float = 0.3,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Distillation:
    """Teach a readable ranker what a better one has learned.

    The teacher scores every case without having seen it, in folds. The student learns from soft labels: a case enters
    twice, as a positive of weight q and as a negative of weight 1 - q, with q = (1 - teacher_share) outcome +
    teacher_share times the teacher's rate. New rows, mixed from neighbours of the same class and fold, have the rate of
    the teacher that saw neither of them; all weights are scaled to the number of cases.

    Hit rates of the student come from the outcomes of cases that neither it nor its teachers have seen: the student of
    a fold learns from teachers that left out this fold as well, 15 fits of the teacher for 5 folds. What the student
    chooses by folds, such as a penalty, is chosen by outcomes, a positive counted by its q, a negative by 1 - q.

    The given teacher takes the place of one that the student has of its own (`RedFlags`).

    Parameters
    ----------
    teacher, student : Ranker
        Fitted or not; both are copied and refitted. A teacher with hit rates of new cases (cv is not 0) has rates to
        teach. The student reads the table: its categorical_features, keep_columns and pos_label hold for the teacher.
    X, y, sample_weight, groups
        Past cases, as in `fit`.
    X_test, y_test, sample_weight_test : optional
        Cases to report on. Without them a quarter of the cases is held out, and neither model is fitted on it.
    k : int, float or None
        Alerts to compare; None: the budget of the student, or as many as there are positives.
    cv : int, splitter or iterable of splits, default 5
        Folds of the teacher, at least 3; each case is held out once, and is in the training part of the other folds.
    teacher_share : float from 0 to 1, default 0.5
    new_rows : float, default 1.0
        New rows per known row, half of them of each class; 0 for none.
    new_weight : float, default 0.3
        Weight of the new rows of a class, relative to the known rows of that class.
    random_state : int, RandomState or None
        Seed of the held-out quarter, of the folds, and of mixing; fixed for None.
    n_jobs : int or None
        Threads; None: that of the student.
    verbose : int, default 0
        1 shows progress.

    Returns
    -------
    Distillation

    Examples
    --------
    >>> from toprank import MetaAP, MetaAPForest, distill
    >>> from toprank.datasets import make_audit
    >>> data = make_audit(1000, random_state=0)
    >>> found = distill(MetaAPForest(n_estimators=5, random_state=0), MetaAP(max_depth=3), data.X, data.y, cv=3)
    >>> found.n_test, found.student.n_leaves_ <= 8, 0 <= found.fidelity <= 1
    (250, True, True)
    """
    limits = {"teacher_share": teacher_share, "new_rows": new_rows, "new_weight": new_weight}
    _check(teacher, student, limits, X_test, y_test, sample_weight_test)
    seed = seed_of(random_state)
    if X_test is None:
        known, held_out = _split(student, X, y, sample_weight, groups, seed)
        (X, y, sample_weight, groups), (X_test, y_test, sample_weight_test, _) = known, held_out
    taught: Ranker = clone(student)
    taught._validate_params()
    with Threads(resolve_n_jobs(student.n_jobs if n_jobs is None else n_jobs)) as threads:
        data = taught._read_training(X, y, sample_weight, threads, groups)
        test = NewCases.from_input(taught, X_test, y_test, sample_weight_test)
        k = None if k is None else count_of_alerts(k, test.n_cases)
        lesson = Lesson(data, taught, held_out_folds(data, cv, seed), seed, threads, verbose > 0)
        lesson.ask(teacher, teacher_share, new_rows, new_weight)
        stage(f"{type(teacher).__name__} on all cases", verbose > 0)
        final = clone(teacher)._fit_prepared(_cases(clone(teacher), taught, data, threads), taught, threads,
                                             with_rates=True)  # fmt: skip
        stage(f"{type(student).__name__} as `fit` makes it", verbose > 0)
        plain = clone(student)._fit_prepared(data, taught, threads)
        lesson.teach(taught)
    return _report(final, taught, plain, test, k, len(lesson.new_X))


def _check(
    teacher: Any, student: Any, limits: dict[str, Any], X_test: Any, y_test: Any, sample_weight_test: Any
) -> None:
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
    check_shares_table(teacher, "the teacher", student, "the student")
    for name, value in limits.items():
        most = 1.0 if name == "teacher_share" else np.inf
        if not is_real(value) or not 0 <= value <= most or value == np.inf:
            expected = "a number from 0 to 1" if most == 1.0 else "a number of 0 or more"
            raise InputError(f"{name} of distill must be {expected}, got {value!r}. Hint: the default works well.")
    given = {"X_test": X_test, "y_test": y_test, "sample_weight_test": sample_weight_test}
    lacking = [name for name in ("X_test", "y_test") if given[name] is None]
    present = [name for name, value in given.items() if value is not None]
    if lacking and present:
        raise InputError(f"distill got {present[0]} but no {lacking[0]}. Hint: test data are cases and outcomes.")


def _split(
    student: Ranker, X: Any, y: Any, sample_weight: Any, groups: Any, seed: int
) -> list[tuple[Any, Any, Any, Any]]:
    """Cases, outcomes, weights and groups of three quarters of the cases, and of the quarter held out, stratified."""
    labels = check_labels(y, n_samples(X), "distill")
    classes, positive = check_classes(labels, student.pos_label, "distill")
    weight = check_weights(sample_weight, labels == classes[positive], "distill")
    rows = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)  # weight 0 means no row
    counts = np.unique(labels[rows], return_counts=True)[1]
    if counts.min() < 4:
        raise InputError(
            f"distill holds a quarter of the cases out and needs at least 4 of each class, got {counts.min()}. "
            "Hint: pass X_test and y_test."
        )
    codes = check_split_groups(groups, len(labels), "distill")
    if codes is None:
        drawn = train_test_split(rows, test_size=0.25, stratify=labels[rows], random_state=seed)
        parts = [np.sort(part) for part in drawn]
    else:
        folds = StratifiedGroupKFold(4, shuffle=True, random_state=seed)
        parts = [rows[part] for part in next(folds.split(rows[:, None], labels[rows], codes[rows]))]
    return [
        (take_rows(X, part), labels[part], *(None if each is None else each[part] for each in (weight, codes)))
        for part in parts
    ]


class NewCases(NamedTuple):
    """Cases to report on, checked before anything is fitted."""

    X: Any
    is_positive: np.ndarray
    weight: np.ndarray

    @classmethod
    def from_input(cls, owner: Ranker, X: Any, y: Any, sample_weight: Any) -> NewCases:
        """Test cases in the labels of a ranker that has read its training table."""
        name = "distill (y_test)"
        is_positive = positives_of(owner, y, n_samples(X), name)
        weight = check_weights(sample_weight, is_positive, name)
        return cls(X, is_positive, np.ones(len(is_positive)) if weight is None else weight)

    @property
    def n_cases(self) -> int:
        """Number of cases; their weight, rounded, at least 1."""
        return max(round(self.weight.sum()), 1)


def _cases(ranker: Ranker, owner: Ranker, data: Cases, threads: Threads) -> Any:
    """Training data in the form that another ranker is fitted on."""
    ranker._know_table(owner)
    return ranker._remake_cases(data, threads)


class Lesson:
    """What a teacher says about the cases of a table and about new rows between them.

    `fold` and `new_fold` are the fold that a row is held out with, -1 for rows in none. `q` has the soft labels of
    known and new rows, `q_without` those for the student without a fold: no teacher behind them has seen the fold.
    """

    def __init__(
        self, data: Cases, owner: Ranker, folds: list[Fold], seed: int, threads: Threads, shows_progress: bool = False
    ):
        self.data, self._owner, self._folds, self._threads = data, owner, folds, threads
        self._seed, self._shows_progress = seed, shows_progress
        rows = np.flatnonzero(folds[0].weight) if folds else np.zeros(0, np.int64)
        is_whole = all(is_partition((fold.inside, fold.held_out), rows) for fold in folds)
        if len(folds) < 3 or not is_whole or not is_partition([fold.held_out for fold in folds], rows):
            raise InputError(
                "distill needs at least 3 folds, with both classes in each, that hold every case out once and train on "
                f"all others, but the {plural(len(folds), 'usable fold')} of cv do not. "
                "Hint: use cv=5 or StratifiedKFold, and at least 3 distinct cases of each class."
            )
        self.fold = np.full(len(data.X), -1, np.int64)
        for i, fold in enumerate(folds):
            self.fold[fold.held_out] = i

    def ask(self, teacher: Ranker, teacher_share: float, new_rows: float, new_weight: float) -> None:
        """Let copies of the teacher, which leave out one or two folds, say their rates of known and of new rows."""
        data, weight = self.data, self._folds[0].weight
        self._mix(new_rows, new_weight)
        n, X = len(data.X), np.concatenate((data.X, self.new_X))
        cases = _cases(clone(teacher), self._owner, data, self._threads)

        def rates(inside: np.ndarray, left_out: list[np.ndarray]) -> list[np.ndarray]:
            known, inside_weight = inside[inside < n], np.zeros(n)
            inside_weight[known] = weight[known]
            part = clone(teacher)
            part._fit_prepared(cases.with_weight(inside_weight), self._owner, self._threads, with_rates=True)
            return [part.rates_.at(part._score_rows(X[rows], self._threads)) for rows in left_out]

        fold = np.concatenate((self.fold, self.new_fold))
        parts = [np.flatnonzero(fold == i) for i in range(len(self._folds))]
        label = f"{type(teacher).__name__} in folds"
        of_all, of_parts = predict_left_out(
            parts,
            len(X),
            lambda tasks: [rates(*task) for task in progress(tasks, len(tasks), label, self._shows_progress)],
        )
        outcome = np.concatenate((data.is_positive, np.zeros(len(self.new_X))))
        share = np.concatenate((np.full(n, teacher_share), np.ones(len(self.new_X))))
        # Rows without a rate have no weight.
        self.q, *self.q_without = (np.where(np.isnan(rate), outcome, outcome + share * (rate - outcome))
                                   for rate in (of_all, *of_parts))  # fmt: skip

    def _mix(self, new_rows: float, new_weight: float) -> None:
        """Make new rows, each from two neighbours of one class and fold."""
        data, weight = self.data, self._folds[0].weight
        group = np.where(self.fold >= 0, 2 * self.fold + data.is_positive, -1)
        n_rows = np.bincount(self.fold[self.fold >= 0], minlength=len(self._folds))
        n_new = np.repeat(np.round(n_rows * new_rows / 2).astype(np.int64), 2)
        rng = np.random.default_rng(self._seed)
        mixed = mix_neighbours(data.X, data.n_categories, group, n_new, rng, self._threads)
        self.new_X, self.new_fold = mixed.X, self.fold[mixed.origin]
        known = np.bincount(group[group >= 0], weight[group >= 0], 2 * len(self._folds))
        made = np.bincount(group[mixed.origin], minlength=len(known))
        self.new_weight = (new_weight * known / np.maximum(made, 1))[group[mixed.origin]]

    def teach(self, student: Ranker) -> None:
        """Fit the student on soft labels; its hit rates come from known outcomes."""
        unseen, name = [], type(student).__name__
        for i, fold in progress(enumerate(self._folds), len(self._folds), f"{name} in folds", self._shows_progress):
            part = student._unfitted_copy()
            with _while_taught(part, self._splits(without=i)):
                part._fit_prepared(self._soft(part, without=i), student, self._threads)
            score = partial(part._score_rows, threads=self._threads)
            unseen.append(HeldOut.from_fold(self.data, fold, score))
        stage(f"{name} on all cases", self._shows_progress)
        soft = self._soft(student)
        with _while_taught(student, self._splits()):
            student._fit_model(soft, self._threads)
        student._set_cutoff(self.data, self._threads, Unseen(unseen, by_folds(len(unseen))))

    def _soft(self, ranker: Ranker, without: int | None = None) -> Any:
        """Known and new rows, each as a positive and as a negative, without one fold."""
        X = np.concatenate((self.data.X, self.new_X))
        q = self.q if without is None else self.q_without[without]
        known = np.where((self.fold >= 0) & (self.fold != without), self._folds[0].weight, 0.0)
        new = np.where(self.new_fold != without, self.new_weight, 0.0)
        scale = known.sum() / (known.sum() + new.sum())  # weights add up to the number of cases
        weight = scale * np.concatenate((known, new))
        is_positive = np.repeat([True, False], len(X))
        weights = np.concatenate((weight * q, weight * (1.0 - q)))
        return ranker._make_cases(np.concatenate((X, X)), is_positive, weights, self._threads)

    def _splits(self, without: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Folds of the rows of `_soft`: nothing that comes from the cases of a fold is in training.

        Only the copies of known rows that have the true label are held out: what is chosen by folds, such as the size
        of a tree, is then chosen by outcomes. Rates of a percent in soft labels would add up to more than the positives
        at the top, and reward an order of the many low cases. Soft labels of the other folds still come from teachers
        that saw the held-out fold; hit rates are not affected, as the whole choice is made without their fold.
        """
        fold = np.tile(np.concatenate((self.fold, self.new_fold)), 2)
        is_positive, none = self.data.is_positive, np.zeros(len(self.new_X), bool)
        is_true = np.concatenate((is_positive, none, ~is_positive, none))
        used = [i for i in range(len(self._folds)) if i != without]
        kept = (fold >= 0) & (fold != without)
        return [(np.flatnonzero(kept & (fold != i)), np.flatnonzero(is_true & (fold == i))) for i in used]


@contextmanager
def _while_taught(ranker: Ranker, splits: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[None]:
    """Let a ranker that chooses by folds use these, so that copies of a case are never on both sides.

    `RedFlags` gets neither a teacher of its own nor folds, which would only give hit rates that the lesson replaces.
    """
    given = ranker.get_params(deep=False)
    settings: dict[str, Any] = {}
    if isinstance(ranker, RedFlags):
        settings = {"teacher": None, "cv": []}
    elif "cv" in given:
        settings = {"cv": splits if has_folds(given["cv"]) else 0}
    ranker.set_params(**settings)
    try:
        yield
    finally:
        ranker.set_params(**{name: given[name] for name in settings})


def _report(teacher: Ranker, student: Ranker, plain: Ranker, test: NewCases, k: Any, n_new: int) -> Distillation:
    """Both models on test cases."""
    scores = [model.decision_function(test.X) for model in (teacher, student, plain)]
    if k is None:
        k = student._budget_in(test.n_cases)
    shares = [_shares_in_top(score, test.weight, k) for score in scores[:2]]
    teacher_ap, student_ap, plain_ap = (
        average_precision(test.is_positive, score, sample_weight=test.weight, pos_label=True) for score in scores
    )
    return Distillation(
        student=student,
        teacher=teacher,
        k=k,
        fidelity=float(np.sum(test.weight * shares[0] * shares[1]) / np.sum(test.weight * shares[0])),
        teacher_ap=teacher_ap,
        student_ap=student_ap,
        plain_ap=plain_ap,
        gain=precision_gain(test.is_positive, scores[2], scores[1], test.weight),
        n_test=test.n_cases,
        n_test_positives=round(test.weight[test.is_positive].sum()),
        n_new=n_new,
        size=student._size_in_words(),
        figures=student._figures(),
    )


def _shares_in_top(score: np.ndarray, weight: np.ndarray, k: float) -> np.ndarray:
    """Chance of each case to be among the first k if ties are broken at random, float64 (n,).

    Examples
    --------
    >>> _shares_in_top(np.array([3.0, 1.0, 1.0, 0.0]), np.ones(4), 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    _, which = np.unique(-score, return_inverse=True)
    total = np.bincount(which, weight)
    room = np.clip(k - (np.cumsum(total) - total), 0.0, total)
    return (room / np.where(total > 0, total, 1.0))[which]
