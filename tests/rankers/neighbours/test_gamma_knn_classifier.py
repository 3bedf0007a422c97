"""gamma-kNN with several classes: the vote, the exact search for gammas, edge cases, files, text."""

import itertools
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score, recall_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranker_cases import FORMS, cases, fewer, make_cases
from toprank import GammaKNN, GammaKNNClassifier, InputError, load
from toprank.data.cases import sample_cases, sample_classes
from toprank.rankers.neighbours import gamma_knn_classifier
from toprank.rankers.neighbours.tuning import CLASS_MEASURES, ClassVotes, class_gamma_curve, tune_gammas

SCORES = {
    "f1_macro": lambda y, called: f1_score(y, called, average="macro", zero_division=0.0),
    "balanced_accuracy": balanced_accuracy_score,
    "g_mean": lambda y, called: np.prod(recall_score(y, called, average=None)) ** (1 / len(np.unique(y))),
}


def vote(distance, y, k, gammas):
    """The class of one row by algorithm 2.1 with a gamma per class, step by step; y from 0 to K - 1."""
    total = Counter(y.tolist())
    common = sorted(total, key=lambda c: (-total[c], c))  # the reference first
    nearest = [
        (gammas[c] * d, common.index(c), c) for c in range(len(gammas)) for d in np.sort(distance[y == c])[:k].tolist()
    ]
    votes = Counter(c for _, _, c in sorted(nearest)[:k])
    return max(votes, key=lambda c: (votes[c], common.index(c)))


def left_out_votes(X, y, k, gammas):
    """How each row is called by the others; the classes keep their order, as only one row is gone."""
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return np.array([vote(distance[i], y, k, gammas) for i in range(len(X))])


def value(scoring, y, called):
    """A measure of decisions, faster than scikit-learn's; test_measures_are_those_of_scikit_learn compares them."""
    n = y.max() + 1
    return CLASS_MEASURES[scoring].of_confusion(
        np.bincount(y * n + called, minlength=n * n).reshape(n, n).astype(float)
    )


def blobs(sizes=(60, 25, 15), seed=0, d=2, shift=1.3):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(size=(len(sizes), d)) * shift
    return rng.normal(size=(len(y), d)) + centres[y], y


# The vote


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("gammas", [(1.0, 1.0, 1.0), (1.0, 0.6, 0.3), (1.0, 0.8, 1.7)])
def test_decisions_are_those_of_algorithm_2_1_with_a_gamma_per_class(k, gammas):
    X, y = blobs()
    new = np.random.default_rng(1).normal(size=(200, 2)) * 2
    model = GammaKNNClassifier(n_neighbors=k, gamma=gammas, scaling=None).fit(X, y)
    expected = [vote(np.linalg.norm(X - x, axis=1), y, k, gammas) for x in new]
    assert len({*expected}) > 1
    assert model.predict(new).tolist() == expected
    assert model.reference_ == 0
    assert model.gammas_.tolist() == list(gammas)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_gamma_1_is_plain_knn(k):
    X, y = blobs(d=4)
    new = np.random.default_rng(1).normal(size=(300, 4))
    plain = KNeighborsClassifier(k).fit(X, y)
    share = np.sort(plain.predict_proba(new), axis=1)
    is_clear = share[:, -1] > share[:, -2]  # ties go to the rarer class here, to the first label there
    assert is_clear.mean() > 0.7
    ours = GammaKNNClassifier(n_neighbors=k, gamma=1.0, scaling=None).fit(X, y).predict(new)
    assert np.array_equal(ours[is_clear], plain.predict(new)[is_clear])


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(1, 3)), min_size=6),
    k=st.integers(1, 5),
    gamma=st.sampled_from([0.25, 0.5, 1.0, 1 / 3, 0.1, 2.0]),
    is_weighted=st.booleans(),
)
def test_two_classes_decide_as_gamma_knn_with_the_same_gamma(rows, k, gamma, is_weighted):
    """Also bit for bit at ties: the points lie on a grid."""
    X = np.array([row[:2] for row in rows], float)
    y = np.array([row[2] for row in rows])
    weight = np.array([float(row[3]) for row in rows]) if is_weighted else np.ones(len(rows))
    assume(0 < y.sum() < len(y))
    y = y if weight[y].sum() <= weight[~y].sum() else ~y  # GammaKNN does not look which class is the rarer one
    rule = {"n_neighbors": k, "gamma": gamma, "scaling": None, "keep_columns": "all"}
    ours = GammaKNNClassifier(**rule).fit(X, y, weight)
    binary = GammaKNN(**rule).fit(X, y, weight)
    new = np.array(list(itertools.product(np.arange(-1, 5) / 2, repeat=2)))
    assert np.array_equal(ours.predict(new), binary.predict(new))
    assert ours.n_neighbors_ == binary.n_neighbors_


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "g_mean"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_two_classes_are_tuned_to_the_gamma_of_gamma_knn(scoring, k):
    X, y = make_cases(300)
    ours, binary = (make(n_neighbors=k, scoring=scoring).fit(X, y) for make in (GammaKNNClassifier, GammaKNN))
    assert ours.gammas_.tolist() == [1.0, binary.gamma_]
    assert ours.tuned_score_ == pytest.approx(binary.tuned_score_)
    assert np.array_equal(ours.predict(X), binary.predict(X))


# Tuning


@pytest.mark.parametrize("scoring", CLASS_MEASURES)
@pytest.mark.parametrize("k", [1, 3])
def test_no_other_value_of_a_single_gamma_is_better(scoring, k):
    """All values between two ratios of distances decide alike: one of each is tried, by brute force."""
    X, y = blobs((22, 9, 6), seed=k)
    model = GammaKNNClassifier(n_neighbors=k, scoring=scoring, scaling=None).fit(X, y)
    called = left_out_votes(X, y, k, model.gammas_)
    assert model.tuned_score_ == pytest.approx(SCORES[scoring](y, called))
    assert np.array_equal(model.confusion_, confusion_matrix(y, called))
    assert model.gammas_[0] == 1
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    for c in (1, 2):
        ratios = []
        for i, row in enumerate(distance):
            far = np.delete(row * model.gammas_[y], i)
            near, other = np.delete(row, i)[np.delete(y, i) == c], far[np.delete(y, i) != c]
            ratios += (np.sort(other)[:k, None] / np.sort(near)[None, :k]).ravel().tolist()
        cuts = np.unique([0.0, *(r for r in ratios if r < 1), 1.0])
        for middle in ((cuts[1:] + cuts[:-1]) / 2)[:: 1 + len(cuts) // 150].tolist():
            gammas = model.gammas_.copy()
            gammas[c] = middle
            assert value(scoring, y, left_out_votes(X, y, k, gammas)) <= model.tuned_score_ + 1e-12


@pytest.mark.parametrize("scoring", CLASS_MEASURES)
def test_the_search_finds_the_best_of_all_gammas_of_three_classes(scoring):
    """For these tables; in general no single gamma can be improved."""
    for seed in range(4):
        X, y = blobs((30, 12, 8), seed=seed)
        model = GammaKNNClassifier(n_neighbors=1, scoring=scoring, scaling=None).fit(X, y)
        distance = np.linalg.norm(X[:, None] - X[None], axis=2)
        np.fill_diagonal(distance, np.inf)
        nearest = np.array([distance[:, y == c].min(axis=1) for c in range(3)])
        grid = np.linspace(0.02, 1, 50)
        best = max(
            value(scoring, y, np.argmin(nearest * np.array([[1.0], [a], [b]]), axis=0))
            for a, b in itertools.product(grid, grid[::2])
        )  # fmt: skip
        assert model.tuned_score_ >= best - 1e-12


@settings(max_examples=60, deadline=None)
@given(data=st.data(), k=st.integers(1, 3), n_classes=st.integers(2, 4), name=st.sampled_from(sorted(CLASS_MEASURES)))
def test_the_curve_of_a_move_counts_right_at_ties_and_zeros(data, k, n_classes, name):
    n = data.draw(st.integers(1, 8))
    value = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 8.0, np.inf])
    drawn = data.draw(st.lists(value, min_size=n * n_classes * k, max_size=n * n_classes * k))
    distance = np.sort(np.array(drawn).reshape(n, n_classes, k), axis=2)
    distance[:, 0] = np.minimum(distance[:, 0], 8.0)  # as many cases as places
    label = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    weight = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 0.3]), min_size=n, max_size=n)))
    votes = ClassVotes(distance, np.arange(n_classes, 0, -1.0))
    gammas = np.array([1.0, *data.draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=n_classes - 1,
                                                max_size=n_classes - 1))])  # fmt: skip
    measure = CLASS_MEASURES[name]
    for c in range(1, n_classes):
        curve = class_gamma_curve(votes.moving(gammas, [c]), label, weight, measure, n_classes, 1.0)
        for gamma in (0.1, 0.25, 0.3, 0.5, 0.75, 1.0):
            changed = gammas.copy()
            changed[c] = gamma
            called = np.array([naive_call(row, changed) for row in distance])
            assert np.array_equal(votes.decide(changed), called)
            confusion = np.zeros((n_classes, n_classes))
            np.add.at(confusion, (label, called), weight)
            assert curve.at(np.array([gamma]))[0] == pytest.approx(measure.of_confusion(confusion), abs=1e-9)


def naive_call(distance, gammas):
    """The class of one row with more cases of class 0 than of 1, and so on; distance 0 is a tiny one."""
    k = distance.shape[1]
    nearest = sorted(
        (gammas[c] * max(d, 1e-200), c) for c in range(len(gammas)) for d in distance[c].tolist() if d < np.inf
    )
    votes = Counter(c for _, c in nearest[:k])
    return max(votes, key=lambda c: (votes[c], c))


def test_measures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, called = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    for name, measure in CLASS_MEASURES.items():
        assert measure.of_confusion(confusion_matrix(y, called).astype(float)) == pytest.approx(SCORES[name](y, called))


def test_the_order_of_the_search_ends_above_plain_knn_and_above_the_best_common_gamma():
    X, y = blobs((150, 30, 20, 8), seed=3, d=3)
    tuned = GammaKNNClassifier(scaling=None).fit(X, y).tuned_score_
    for gamma in np.arange(1, 21) / 20:
        assert tuned >= GammaKNNClassifier(gamma=gamma, scaling=None).fit(X, y).tuned_score_ - 1e-12


def test_rare_classes_get_small_gammas_and_are_found_more_often():
    X, y = blobs((1500, 60, 30), seed=1, d=3, shift=0.9)
    new, truth = blobs((500, 500, 500), seed=1, d=3, shift=0.9)
    plain, tuned = (GammaKNNClassifier(gamma=g, scoring="balanced_accuracy").fit(X, y) for g in (1.0, "cv"))
    assert np.all(tuned.gammas_[1:] < 0.9)
    recalls = [recall_score(truth, model.predict(new), average=None) for model in (plain, tuned)]
    assert np.all(recalls[1][1:] > recalls[0][1:] + 0.1)
    assert np.mean(recalls[1]) > np.mean(recalls[0]) + 0.05


def test_max_gamma_limits_all_gammas():
    X, y = blobs()
    model = GammaKNNClassifier(max_gamma=0.3).fit(X, y)
    assert np.all(model.gammas_[1:] <= 0.3)
    assert model.gammas_[0] == 1


def test_large_tables_are_tuned_on_a_sample_of_each_class(monkeypatch):
    X, y = blobs((900, 80, 40), shift=2.0)
    whole = GammaKNNClassifier().fit(X, y)
    monkeypatch.setattr(gamma_knn_classifier, "LEFT_OUT_ROWS", 300)
    part = GammaKNNClassifier().fit(X, y)
    assert part.confusion_.sum(axis=1) == pytest.approx([900, 80, 40])
    assert part.confusion_[1].tolist() == np.round(part.confusion_[1]).tolist()  # all 80: they fit into a third of 300
    assert part.tuned_score_ == pytest.approx(whole.tuned_score_, abs=0.1)


def test_a_sample_of_classes_has_equal_shares_and_the_weight_of_all():
    label = np.repeat([0, 1, 2], [1000, 30, 400])
    rows, weight = sample_classes(label, 3, None, 330)
    assert np.bincount(label[rows]).tolist() == [150, 30, 150]
    assert [weight[label == c].sum() for c in range(3)] == pytest.approx([1000, 30, 400])
    both = sample_cases(label == 1, None, 100)
    assert np.bincount(label[both[0]] == 1).tolist() == [70, 30]


# What holds on every table


@parametrize_with_checks(
    [GammaKNNClassifier()],
    expected_failed_checks=lambda _: {
        "check_dataframe_column_names_consistency": "columns of a data frame are matched by name, in any order"
    },
)
def test_scikit_learn_check(estimator, check, request):
    expected = request.node.get_closest_marker("xfail")
    if expected is not None:
        pytest.xfail(expected.kwargs["reason"])
    check(estimator)


def third_class(case):
    """Labels of a table with a third class, that of the first row of the common class."""
    y = case.y.astype(int)
    y[np.flatnonzero(y == 0)[0]] = 2
    return y


@fewer(6)
@given(case=cases(), data=st.data())
def test_rows_are_called_alike_alone_in_another_order_after_a_file_and_from_any_library(case, data):
    order = np.array(data.draw(st.permutations(range(len(case)))))
    y = third_class(case)
    model = GammaKNNClassifier().fit(case.pandas(), y, case.weight)
    frame = case.pandas()
    called = model.predict(frame)
    assert np.array_equal(model.predict(frame.iloc[order]), called[order])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an array has no names
        for i in order[:4]:
            assert model.predict(case.take(np.array([i])).polars())[0] == called[i]
        for form in FORMS:
            assert np.array_equal(model.predict(getattr(case, form)()), called), form
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.toprank")
        assert np.array_equal(load(Path(folder) / "model.toprank").predict(frame), called)
    moved = case.take(order)
    other = GammaKNNClassifier().fit(moved.pandas(), y[order], moved.weight)
    assert np.array_equal(other.gammas_, model.gammas_)
    assert np.array_equal(other.predict(frame), called)


@fewer(6)
@given(case=cases(weights=("whole",)))
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(case):
    y = third_class(case)
    index = np.repeat(np.arange(len(case)), case.weight.astype(int))
    repeated = case.take(index)
    assume(len(np.unique(y[index])) > 1)
    one = GammaKNNClassifier().fit(case.pandas(), y, case.weight)
    other = GammaKNNClassifier().fit(repeated.pandas(), y[index])
    assert np.array_equal(one.gammas_, other.gammas_)
    assert np.array_equal(one.predict(repeated.pandas()), other.predict(repeated.pandas()))
    assert np.array_equal(one.class_counts_, other.class_counts_)
    assert one.confusion_ == pytest.approx(other.confusion_)


def mixed(n=200):
    X, y = make_cases(n)
    return X, np.where(y, "fraud", np.where(np.nan_to_num(X["size"]) > 0.5, "large", "small"))


def test_threads_and_algorithms_change_nothing():
    X, y = mixed(400)
    one = GammaKNNClassifier(n_jobs=1).fit(X, y)
    for other in ({"n_jobs": 2}, {"algorithm": "kd_tree"}, {"algorithm": "brute"}):
        model = GammaKNNClassifier(**other).fit(X, y)
        assert np.array_equal(model.gammas_, one.gammas_)
        assert np.array_equal(model.predict(X), one.predict(X))


# Edge cases


def test_duplicates_a_class_of_one_case_and_constant_columns():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [5.0], [2.0], [2.0]])
    y = np.array(["a", "a", "b", "b", "b", "c", "a", "a"])
    model = GammaKNNClassifier(n_neighbors=9, gamma=0.5, keep_columns="all").fit(X, y)
    assert model.n_neighbors_ == 1
    assert model.predict(X).tolist() == ["b", "b", "b", "b", "b", "c", "a", "a"]  # at distance 0 from both: the rarer
    assert GammaKNNClassifier(gamma=1.0, keep_columns="all").fit(X, y).predict(X[:1]) == "a"
    tuned = GammaKNNClassifier(keep_columns="all").fit(X, y)
    assert tuned.confusion_[2, 2] == 0  # left out, the only case of its class finds no other
    same = GammaKNNClassifier(gamma=0.9, keep_columns="all").fit(np.zeros((8, 1)), y)
    assert same.predict([[0.0], [7.0]]).tolist() == ["b", "b"]  # of the gammas below 1, the more common class


def test_unseen_categories_and_missing_values_are_called():
    X, y = mixed()
    new = pd.DataFrame({"size": [np.nan, 1.0], "age": [np.nan, np.nan], "place": ["nowhere", None]})
    with pytest.warns(UserWarning, match="place"):
        called = GammaKNNClassifier().fit(X, y).predict(new)
    assert {*called} <= {"fraud", "large", "small"}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"gamma": [0.5, 0.5]}, "3 numbers above 0, one per class"),
        ({"gamma": [1.0, 0.0, 0.5]}, "one per class"),
        ({"gamma": [1.0, np.nan, 0.5]}, "one per class"),
        ({"gamma": ["a", "b", "c"]}, "one per class"),
        ({"gamma": [[1.0, 0.5, 0.5]]}, "one per class"),
        ({"gamma": [1e-12, 1.0, 1.0]}, "1e-09 times"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": "auto"}, "gamma"),
        ({"scoring": "f1"}, "scoring"),
        ({"max_gamma": 0}, "max_gamma"),
        ({"metric": "cosine"}, "metric"),
        ({"n_neighbors": 0}, "n_neighbors"),
    ],
)
def test_bad_parameters_are_refused(parameters, said):
    X, y = mixed(60)
    model = GammaKNNClassifier(**parameters)
    with pytest.raises(ValueError, match=said):
        model.fit(X, y)
    assert not hasattr(model, "gammas_")


def test_bad_labels_are_refused():
    X, y = mixed(60)
    for labels, weight in (
        (np.full(60, "a"), None),
        (y, (y == "small").astype(float)),
        (np.linspace(0, 1, 60), None),
        (y[:50], None),
        ([None, *y[1:]], None),
    ):
        with pytest.raises(InputError):
            GammaKNNClassifier().fit(X, labels, weight)
    with pytest.raises(InputError, match="needs rows with a weight above zero"):
        GammaKNNClassifier().fit(X, y, np.zeros(60))
    with pytest.raises(InputError, match="only one class"):
        GammaKNNClassifier().fit(X, np.full(60, "a"))
    with pytest.raises(NotFittedError):
        GammaKNNClassifier().predict(X)
    for use in ("summary", "class_counts_"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(GammaKNNClassifier(), use)()


# Reasons, text, files


def test_an_explanation_lists_the_cases_that_vote():
    X, y = mixed()
    X.index = [f"case {i}" for i in range(len(X))]
    model = GammaKNNClassifier(n_neighbors=5).fit(X, y)
    called = model.predict(X)
    for i, why in enumerate(model.explain(X)):
        assert why.label == called[i] == why.classes[0].label
        assert sum(each.votes for each in why.classes) == 5
        assert max(each.votes for each in why.classes) == why.classes[0].votes
        assert all(len(each.cases) == each.votes for each in why.classes)
        assert all(y[int(case.name[5:])] == each.label for each in why.classes for case in each.cases)
        assert why.to_dict()["label"] == called[i]
    why = model.explain(X.head(1))[0]
    assert str(why).startswith(f"class {called[0]}, {why.classes[0].votes} of 5 votes\n")
    assert "  case 0, distance 0: equal in all columns" in str(why)


def test_only_cases_that_vote_are_listed():
    """With weights as many rows as votes were listed, although the nearest one alone had all three votes."""
    X, y = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]]), np.array([0, 0, 0, 1, 1, 1])
    model = GammaKNNClassifier(n_neighbors=3, gamma=1.0, algorithm="brute").fit(X, y, np.array([3.0, 1, 1, 1, 1, 1]))
    vote = model.explain(X[:1])[0].classes[0]
    assert (vote.label, vote.votes, [case.row for case in vote.cases]) == (0, 3, [0])
    vote = model.explain(X[-1:])[0].classes[0]
    assert (vote.label, vote.votes, [case.row for case in vote.cases]) == (1, 3, [5, 4, 3])


def test_the_summary_says_what_the_gammas_mean_and_how_classes_were_recognised():
    X, y = mixed()
    model = GammaKNNClassifier(gamma=[0.5, 1.0, 0.25], scoring="g_mean").fit(X, y)
    counts = dict(zip(model.classes_, model.class_counts_, strict=True))
    assert counts == Counter(y.tolist())
    recall = model.confusion_[0, 0] / counts["fraud"]
    text = model.summary()
    assert f"class fraud: {counts['fraud']:.0f} cases, {100 * recall:.3g} % of them recognised when left out; " in text
    assert f"measured: g_mean: {model.tuned_score_:.3f} on left-out training cases\n" in text
    order = np.argsort(-model.class_counts_, kind="stable")
    assert text.index("the reference") < text.index(f"class {model.classes_[order[1]]}: ")
    for c in order[1:]:
        assert f"gamma {model.gammas_[c]:.4g}: a case counts as if it were " in text
    assert "two different categories are 2 apart" in text
    many = GammaKNNClassifier().fit(np.arange(90.0)[:, None], np.repeat(np.arange(30), 3))
    assert "other classes: 10 more" in many.summary()


def test_a_file_keeps_everything(tmp_path):
    X, y = mixed()
    X.index = [f"case {i}" for i in range(len(X))]
    model = GammaKNNClassifier(n_neighbors=2).fit(X, y, np.linspace(0.5, 2, len(X)))
    model.save(tmp_path / "model.toprank")
    back = load(tmp_path / "model.toprank")
    assert back.summary() == model.summary()
    assert [str(each) for each in back.explain(X.head(4))] == [str(each) for each in model.explain(X.head(4))]
    assert np.array_equal(back.confusion_, model.confusion_)
    assert clone(back).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gammas", lambda a: a[:-1]),
        ("gammas", lambda a: -a),
        ("gammas", lambda a: a * 0.5),
        ("gammas", lambda a: np.full_like(a, np.nan)),
        ("confusion", lambda a: a[:1]),
        ("confusion", lambda a: -a - 1),
        ("neighbours", lambda a: np.array([1000.0, 1.0])),
        ("neighbours", lambda a: np.array([0.0, 1.0])),
        ("neighbours", lambda a: np.array([3.0, 2.0])),
        ("class1_places", lambda a: a[:, :-1]),
        ("class1_rows", lambda a: a[::-1].copy()),
        ("class2_weight", lambda a: np.zeros(3)),
        ("case_names", lambda a: np.frombuffer(b'["a"]', np.uint8)),
        ("space_scale", lambda a: -a),
    ],
)
def test_damaged_arrays_are_refused(name, change):
    X, y = mixed()
    model = GammaKNNClassifier().fit(X, y)
    arrays = model._to_arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(InputError, match="fit"):
        model._from_arrays(arrays)


def test_the_search_for_gammas_begins_within_the_range():
    rng = np.random.default_rng(0)
    distance = np.sort(rng.random((40, 3, 1)), axis=2)
    label, weight = rng.integers(0, 3, 40), np.ones(40)
    votes = ClassVotes(distance, np.array([30.0, 6.0, 4.0]))
    measure = CLASS_MEASURES["f1_macro"]
    for high in (0.2, 1.0, 3.0):
        gammas = tune_gammas(votes, label, weight, measure, high)
        assert np.all((gammas[1:] > 0) & (gammas[1:] <= high))
        assert gammas[0] == 1
