"""A student learns from a better ranker, and the report says what it costs."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, TimeSeriesSplit

from ranker_cases import make_cases
from toprank import KNN, CostTree, MetaAP, MetaAPForest, RankingTree, RedFlags, TreeRank, distill, load
from toprank._core.threads import Threads
from toprank.datasets import make_audit
from toprank.errors import InputError, InputTypeError
from toprank.metrics import Interval, average_precision
from toprank.rankers.neighbours.mixing import mix_neighbours
from toprank.rankers.progress import reported_to
from toprank.rankers.unseen import held_out_folds
from toprank.workflow.distilling import Lesson

TEACHER = MetaAPForest(n_estimators=5, random_state=0)


class Unfittable(KNN):
    """A teacher that must not be asked."""

    def _fit_model(self, data, threads):
        raise AssertionError("fitted before the test cases were checked")


@pytest.fixture(scope="module")
def found():
    X, y = make_cases(800)
    return distill(TEACHER, RankingTree(max_depth=3), X, y, cv=3)


def test_the_report_is_about_cases_that_neither_model_has_seen(found):
    y = make_cases(800)[1]
    assert (found.n_test, found.n_test_positives) == (200, round(y.sum() / 4))
    assert found.student.n_cases_ == found.teacher.n_cases_ == 600
    assert found.size == found.student._size_in_words()
    assert found.figures["n_leaves"] == found.student.n_leaves_
    assert 0 < found.n_new <= 600
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["teacher"], told["student"]) == ("MetaAPForest", "RankingTree")
    for value in (f"{found.student_ap:.3f}", f"{found.teacher_ap:.3f}", f"{found.plain_ap:.3f}", "200 test cases"):
        assert value in str(found)


def test_figures_on_given_test_cases():
    X, y = make_cases(500)
    new, outcome = make_cases(300, seed=1)
    found = distill(TEACHER, TreeRank(max_depth=2), X, y, X_test=new, y_test=outcome, k=40, cv=3)
    scores = [model.decision_function(new) for model in (found.teacher, found.student)]
    # The order of test cases, which broke ties, changed the fidelity; now it is the mean over random orders.
    rng, overlap = np.random.default_rng(0), []
    for _ in range(500):
        first, second = (set(np.lexsort((rng.random(300), -score))[:40]) for score in scores)
        overlap.append(len(first & second) / 40)
    assert found.fidelity == pytest.approx(np.mean(overlap), abs=0.005)
    assert found.student_ap == average_precision(outcome, scores[1])
    assert found.teacher_ap == average_precision(outcome, scores[0])
    assert np.array_equal(scores[0], clone(TEACHER).fit(X, y).decision_function(new)), "the teacher sees all of X"
    plain = TreeRank(max_depth=2).fit(X, y)
    assert found.plain_ap == average_precision(outcome, plain.decision_function(new))


def test_the_student_is_a_whole_model(found, tmp_path):
    X, y = make_cases(800)
    student = found.student
    assert student.cv == RankingTree().cv
    assert student.rates_.source == "3-fold cross-validation"
    assert student.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.04), "rates are those of outcomes"
    assert len(student.top_k(X, 20)) == 20
    assert len(student.rules()) == student.n_leaves_
    student.save(tmp_path / "m.toprank")
    assert np.array_equal(load(tmp_path / "m.toprank").decision_function(X), student.decision_function(X))


def test_without_the_teacher_and_new_rows_the_student_is_the_plain_one():
    X, y = make_cases(400)
    new, outcome = make_cases(200, seed=1)
    alone = {"teacher_share": 0.0, "new_rows": 0.0, "X_test": new, "y_test": outcome, "cv": 3}
    found = distill(TEACHER, RankingTree(max_depth=3), X, y, **alone)
    assert found.n_new == 0
    plain = RankingTree(max_depth=3).fit(X, y)
    assert np.array_equal(found.student.decision_function(new), plain.decision_function(new))
    assert found.student_ap == found.plain_ap


class Counted(DummyClassifier):
    """A teacher of `RedFlags` that counts its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.n_fits += 1
        return super().fit(X, y, sample_weight)


def test_the_given_teacher_takes_the_place_of_the_students_own():
    """The student ran its own teacher in every fit, which took most of the time."""
    X, y = make_cases(400)
    own = RedFlags(teacher=Counted(), max_rules=2, max_features=2, cv=3)
    plain = clone(own).fit(X, y)
    of_one_fit, Counted.n_fits = Counted.n_fits, 0
    found = distill(TEACHER, own, X, y, X_test=X, y_test=y, cv=3)
    assert Counted.n_fits == of_one_fit, "those of the model as `fit` makes it"
    assert isinstance(found.student.teacher, Counted), "settings are as given"
    assert (found.student.cv, found.student.rates_.source) == (3, "3-fold cross-validation")
    assert found.plain_ap == average_precision(y, plain.decision_function(X))


def test_steps_are_counted():
    X, y = make_cases(200)
    told = []
    with reported_to(told.append):
        distill(KNN(cv=0), RankingTree(max_depth=1), X, y, cv=3, new_rows=0)
        assert not told
        distill(KNN(cv=0), RankingTree(max_depth=1), X, y, cv=3, new_rows=0, verbose=1)
    counted = [text.partition(" done")[0] for text in told]
    assert counted == [
        *(f"KNN in folds, {i} of 6" for i in range(7)), "KNN on all cases", "RankingTree as `fit` makes it",
        *(f"RankingTree in folds, {i} of 3" for i in range(4)), "RankingTree on all cases",
    ]  # fmt: skip


def test_the_gain_has_a_paired_interval(found):
    assert found.gain.value == pytest.approx(found.student_ap - found.plain_ap)
    assert found.gain.low <= found.gain.value <= found.gain.high
    is_clear = found.gain.low > 0 or found.gain.high < 0
    is_level = abs(found.gain.value) < 0.0005
    assert ("may be chance" in str(found)) is not (is_clear or is_level)


@pytest.mark.parametrize(
    ("value", "words", "chance"),
    [
        (-0.0021, "worse by 0.002 than", ", which may be chance"),
        (0.012, "better by 0.012 than", ", which may be chance"),
        (-0.0001, "as good as", ""),
    ],
)
def test_a_loss_is_not_called_a_gain_and_no_difference_is_not_called_chance(found, value, words, chance):
    changed = replace(found, gain=Interval(value, value - 0.02, value + 0.02, 0.95))
    low, high = f"{value - 0.02:+.3f}", f"{value + 0.02:+.3f}"
    interval = f"(95 % interval of the gain {low} to {high})"
    assert changed.gain_text == f"{words} without a teacher {interval}{chance}"


def test_soft_labels_are_those_of_teachers_that_did_not_see_the_case():
    X, y = make_cases(400)
    owner = RankingTree(cv=0)
    with Threads(1) as threads:
        data = owner._read_training(X, y, None, threads)
        folds = held_out_folds(data, 3, 0)
        lesson = Lesson(data, owner, folds, 0, threads)
        lesson.ask(TEACHER, 0.5, 1.0, 0.3)
        fold = folds[1]
        apart = clone(TEACHER).fit(X.iloc[fold.inside], y[fold.inside])
        rate = apart.predict_proba(X.iloc[fold.held_out])[:, 1]
        taught = 2 * lesson.q[fold.held_out] - y[fold.held_out]
        assert np.corrcoef(taught, rate)[0, 1] > 0.95, "but for bins, which know all cases"
        soft = lesson._soft(owner)
    assert soft.weight.sum() == pytest.approx(400)
    n = 400 + len(lesson.new_X)
    assert len(soft.X) == 2 * n
    assert np.array_equal(soft.X[:n], soft.X[n:], equal_nan=True)
    known = slice(0, 400)
    ratio = soft.weight[known] / (soft.weight[known] + soft.weight[n : n + 400])
    assert ratio == pytest.approx(lesson.q[known])
    for inside, held_out in lesson._splits():
        assert not set(inside % n) & set(held_out % n), "copies of a case are on one side"
        assert np.array_equal(soft.is_positive[held_out], y[held_out % n] == 1)


def test_outcomes_of_a_fold_change_nothing_that_its_student_learns():
    """The student of a fold learned the rates of teachers that had seen the fold: on noise its AP was up to .39."""
    rng = np.random.default_rng(0)
    X, y = rng.random((90, 1)), (rng.random(90) < 0.3).astype(int)
    splits = list(StratifiedKFold(3).split(X, y))
    other = y.copy()
    other[splits[0][1]] = 1 - y[splits[0][1]]
    q = []
    for outcomes in (y, other):
        owner = RankingTree(cv=0)
        with Threads(1) as threads:
            data = owner._read_training(X, outcomes, None, threads)
            lesson = Lesson(data, owner, held_out_folds(data, splits, 0), 0, threads)
            lesson.ask(KNN(n_neighbors=3, cv=0), 1.0, 0.0, 0.0)
        q.append((lesson.q, lesson.q_without[0]))
    inside = splits[0][0]
    assert np.array_equal(q[0][1][inside], q[1][1][inside])
    assert not np.array_equal(q[0][0][inside], q[1][0][inside]), "the final student learns from all outcomes"


def test_weights_count_on_test_cases_too():
    """The held-out quarter had no weights, and rows of weight 0 were in it."""
    X, y = make_cases(400)
    weight = np.where(np.arange(400) < 200, 2.0, 0.0)
    given = {"new_rows": 0, "cv": 3, "k": 20}
    found = distill(KNN(cv=0), RankingTree(cv=0), X, y, weight, **given)
    assert (found.n_test, found.student.n_cases_) == (100, 300)
    teach = partial(distill, KNN(cv=0), RankingTree(cv=0), X[:200], y[:200], **given)
    twice = teach(X_test=X[200:], y_test=y[200:], sample_weight_test=np.full(200, 2.0))
    copies = teach(X_test=pd.concat([X[200:]] * 2), y_test=np.tile(y[200:], 2))
    for name in ("student_ap", "teacher_ap", "fidelity", "n_test", "n_test_positives"):
        assert getattr(twice, name) == pytest.approx(getattr(copies, name)), name
    with pytest.raises(InputError, match="399"):
        distill(KNN(), RankingTree(), X, y, weight[:-1])


def test_mixed_rows_lie_between_neighbours_of_their_group():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=200), rng.integers(0, 3, 200), rng.normal(size=200)))
    X[rng.random(200) < 0.2, 2] = np.nan
    group = rng.integers(-1, 2, 200)
    new = mix_neighbours(X, np.array([0, 3, 0]), group, np.array([150, 50]), rng, Threads())
    assert np.bincount(group[new.origin]).tolist() == [150, 50]
    assert np.array_equal(group[new.origin], group[new.partner])
    assert (new.origin != new.partner).all()
    a, b = X[new.origin], X[new.partner]
    assert np.all((new.X[:, 0] >= np.minimum(a, b)[:, 0]) & (new.X[:, 0] <= np.maximum(a, b)[:, 0]))
    assert np.all((new.X[:, 1] == a[:, 1]) | (new.X[:, 1] == b[:, 1]))
    both = ~np.isnan(a[:, 2]) & ~np.isnan(b[:, 2])
    assert not np.isnan(new.X[both, 2]).any()
    lone = np.isnan(a[:, 2]) & np.isnan(b[:, 2])
    assert np.isnan(new.X[lone, 2]).all()
    assert 0 < np.isnan(new.X[~both & ~lone, 2]).mean() < 1
    distance = np.abs(X[new.origin, 0] - X[new.partner, 0])
    assert np.median(distance) < np.median(np.abs(rng.choice(X[:, 0], 500) - rng.choice(X[:, 0], 500)))
    assert len(mix_neighbours(X, np.array([0, 3, 0]), np.where(np.arange(200) == 0, 0, -1), np.array([5]), rng,
                              Threads()).X) == 0  # fmt: skip


@pytest.mark.slow
def test_a_taught_tree_ranks_a_campaign_better_than_a_plain_one():
    gains = []
    for seed in (1, 2):
        data, new = make_audit(5000, random_state=seed), make_audit(15_000, random_state=90 + seed)
        teacher = MetaAPForest(n_estimators=30, random_state=0)
        found = distill(teacher, RankingTree(), data.X, data.y, X_test=new.X, y_test=new.y, cv=3)
        assert found.teacher_ap > found.plain_ap
        gains.append(found.student_ap - found.plain_ap)
    assert np.mean(gains) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("student", [MetaAP(max_depth=2), CostTree(), TreeRank(max_depth=2, cv=0)])
def test_any_readable_ranker_can_be_taught_on_any_frame(student):
    X, y = make_cases(300)
    weight = np.where(np.arange(300) % 5 == 0, 2.0, 1.0)
    found = distill(TEACHER, student, pl.DataFrame(X.to_dict("list")), y, weight, cv=3)
    assert np.isfinite(found.student.decision_function(X)).all()
    assert found.student.n_leaves_ >= 1
    again = distill(TEACHER, student, pl.DataFrame(X.to_dict("list")), y, weight, cv=3, n_jobs=2)
    assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        ({"teacher": object()}, InputTypeError, "teacher"),
        ({"student": "metaap"}, InputTypeError, "'metaap'"),
        ({"student": KNN()}, InputError, "cannot teach KNN"),
        ({"teacher_share": 1.5}, InputError, "1.5"),
        ({"new_rows": -1}, InputError, "new_rows"),
        ({"new_weight": True}, InputError, "True"),
        ({"X_test": [[1.0]]}, InputError, "y_test"),
        ({"cv": 0}, InputError, "3 folds"),
        ({"cv": 2}, InputError, "2 usable folds"),
        # Rows held out twice were trained on, and their soft labels updated twice; rows never held out were dropped.
        ({"cv": StratifiedShuffleSplit(5, test_size=0.4, random_state=0)}, InputError, "5 usable folds"),
        ({"cv": TimeSeriesSplit(3)}, InputError, "folds"),
        # The teacher silently ignored what it says about the table.
        ({"teacher": KNN(pos_label=0)}, InputError, "pos_label of the teacher is 0"),
        # What cannot be reported on was found after all fits.
        ({"k": 0, "teacher": Unfittable()}, InputError, "k must be"),
        (
            {
                "y": np.r_[np.ones(50), np.zeros(50)],
                "X_test": np.zeros((2, 1)),
                "y_test": [0, 2],
                "teacher": Unfittable(),
            },
            InputError,
            "label 2",
        ),
        ({"X_test": np.zeros((2, 1)), "y_test": [0, 0], "teacher": Unfittable()}, InputError, "both classes"),
        ({"y": np.r_[np.ones(3), np.zeros(97)]}, InputError, "4 of each class, got 3"),
        ({"k": 500}, InputError, "500"),
    ],
)
def test_what_cannot_be_distilled(change, kind, word):
    X, y = make_cases(100)
    given = {"teacher": MetaAPForest(n_estimators=2), "student": RankingTree(), "X": X, "y": y, "cv": 3} | change
    with pytest.raises(kind, match=word):
        distill(**given)
