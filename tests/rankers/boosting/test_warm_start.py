"""SGBAP(init=...): boosting that starts from the out-of-fold scores of another model."""

import io
import json
import pickle
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from ranker_cases import make_cases
from toprank import (
    KNN,
    SGBAP,
    CostOptimalForest,
    ExtraTrees,
    InputError,
    LogisticBoost,
    MetaAPForest,
    RankBoost,
    StackedRanker,
    TAOTree,
    load,
)
from toprank._core.threads import Threads
from toprank.data.cases import Cases
from toprank.errors import InputTypeError
from toprank.files import model_file
from toprank.files.model_file import ModelFileError
from toprank.rankers.base import Ranker
from toprank.rankers.boosting import sgbap
from toprank.rankers.boosting.start import InitFits, Start
from toprank.rankers.unseen import held_out_folds
from toprank.tree.columns import Column

QUICK = {"n_estimators": 6, "warm_up": 2, "learning_rate": 0.3, "random_state": 0}
INITS = {
    "boosted": LogisticBoost(n_estimators=4, cv=0),
    "neighbours": KNN(cv=0),
    "forest": MetaAPForest(n_estimators=2, max_depth=2),
    "nested": SGBAP(n_estimators=2, cv=0, init=RankBoost(n_estimators=3, cv=0)),
    "scikit-learn": RandomForestClassifier(5),
}
X, Y = make_cases(300)


@pytest.fixture(scope="module", params=INITS)
def model(request):
    return SGBAP(init=clone(INITS[request.param]), cv=3, budget=30, **QUICK).fit(X, Y)


def linear_cases(n=600, seed=0):
    """Cases whose log-odds are a sum of twelve columns: easy for a linear model, hard for a few trees."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 12))
    return rows, rng.random(n) < 1 / (1 + np.exp(3.0 - rows.sum(axis=1)))


def cases_of(rows, y, weight=None):
    return Cases(rows, y, weight, [Column(f"x{i}") for i in range(rows.shape[1])])


class Counting(ClassifierMixin, BaseEstimator):
    """A linear score, and a list of the rows of every fit."""

    fits: list = []

    def fit(self, X, y, sample_weight=None):
        type(self).fits.append((len(X), sample_weight))
        self.weights_ = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        return self

    def decision_function(self, X):
        return np.array([sum(row * self.weights_) for row in X])


class Echo:
    """A fitted model whose score is the first column."""

    def decision_function(self, X):
        return X[:, 0]


# --- what boosting starts from --------------------------------------------------------------------------------------


def test_a_score_is_that_of_init_in_log_odds_plus_the_trees(model):
    matrix = model._encode(X)
    start = model.start_
    given = start.score(matrix, Threads())
    if start.least > 0:
        kept = np.clip(given, start.least, 1 - start.least)
        given = np.log(kept / (1 - kept))
    expected = start.slope * given + start.intercept + model.trees_.decision_function(matrix)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(list(model.staged_decision_function(X))[-1], model.decision_function(X))
    assert model.init_ is start.model


def test_margins_are_out_of_fold_in_every_fold():
    rows, y = linear_cases(200)
    data, init = cases_of(rows, y), LogisticRegression()
    booster = SGBAP(init=init, random_state=0)
    fits, folds = InitFits(booster, init, data, Threads()), held_out_folds(data, 4, 0)
    fits.folds = folds
    for inside in [np.arange(200), *(fold.inside for fold in folds)]:
        start, margin = fits.start(inside, np.ones(200))
        score = np.full(200, np.nan)
        for fold in folds:
            part, others = np.intersect1d(fold.held_out, inside), np.setdiff1d(inside, fold.held_out)
            if len(part):
                score[part] = clone(init).fit(rows[others], y[others]).decision_function(rows[part])
        np.testing.assert_allclose(margin, start.slope * score[inside] + start.intercept, atol=1e-9)
        whole = clone(init).fit(rows[inside], y[inside]).decision_function(rows)
        np.testing.assert_allclose(start.margin(rows, Threads()), start.slope * whole + start.intercept, atol=1e-9)


@pytest.mark.parametrize(("cv", "n_fits"), [(5, 16), (3, 7), (0, 6), ([(np.arange(150), np.arange(150, 300))], 12)])
def test_no_part_of_the_table_is_fitted_twice(cv, n_fits):
    Counting.fits = []
    rows, y = linear_cases(300)
    SGBAP(init=Counting(), cv=cv, **QUICK).fit(rows, y)
    assert len(Counting.fits) == n_fits
    assert Counting.fits[-1][0] == 300 or any(n == 300 for n, _ in Counting.fits)


def test_an_init_that_learns_by_heart_is_not_trusted():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(400, 5)), rng.random(400) < 0.2
    found = SGBAP(init=DecisionTreeClassifier(random_state=0), **QUICK).fit(rows, y)
    assert found.init_.score(rows, y) == 1.0
    assert np.abs(found.start_.slope * np.ptp(found.start_.score(rows, Threads()))) < 0.5
    assert found.rates_.average_precision < 0.35  # 0.2 by chance; with training scores it would be 1


def test_it_ranks_better_where_init_knows_what_trees_learn_slowly():
    rows, y = linear_cases(1200)
    plain = SGBAP(cv=0, **QUICK).fit(rows[:600], y[:600])
    warm = SGBAP(cv=0, init=LogisticRegression(), **QUICK).fit(rows[:600], y[:600])
    assert warm.score(rows[600:], y[600:]) > plain.score(rows[600:], y[600:]) + 0.1


@pytest.mark.parametrize("settings", [{"surrogate": "sigmoid"}, {"line_search": True}, {"subsample": 1.0, "blend": 1}])
def test_all_kinds_of_rounds_start_from_init(settings):
    rows, y = linear_cases(400)
    warm = SGBAP(init=LogisticRegression(), cv=2, **QUICK | settings).fit(rows, y)
    assert warm.score(rows, y) > 0.5
    assert warm.learning_curve_["average_precision"][0] > 0.5


# --- the scale of log-odds ------------------------------------------------------------------------------------------


def test_the_scale_is_the_line_that_made_the_outcomes():
    rng = np.random.default_rng(0)
    score = rng.normal(5.0, 10.0, 40_000)
    y = rng.random(40_000) < 1 / (1 + np.exp(-(0.3 * score - 2.0)))
    start = Start.from_held_out(None, score, y, np.ones(40_000))
    assert (start.slope, start.intercept) == (pytest.approx(0.3, rel=0.05), pytest.approx(-2.0, rel=0.05))
    assert start.least == 0
    rate = 1 / (1 + np.exp(-(0.3 * score - 2.0)))  # rates that are right stay as they are
    start = Start.from_held_out(None, rate, y, np.ones(40_000))
    assert (start.slope, start.intercept) == (pytest.approx(1.0, rel=0.05), pytest.approx(0.0, abs=0.1))
    assert start.least == pytest.approx(0.5 / 40_001)


def test_weights_count_in_the_scale_like_copies():
    rng = np.random.default_rng(0)
    score, y, weight = rng.normal(size=200), rng.random(200) < 0.3, rng.integers(1, 4, 200)
    one = Start.from_held_out(None, score, y, weight.astype(float))
    other = Start.from_held_out(None, np.repeat(score, weight), np.repeat(y, weight), np.ones(weight.sum()))
    assert [one.slope, one.intercept] == pytest.approx([other.slope, other.intercept], rel=1e-4)


@pytest.mark.parametrize(
    ("score", "slope"),
    [(np.zeros(40), 0.0), (np.array([1.5] * 40), 0.0), (-np.repeat([0.0, 3.0], 20), 0.0), (np.array([]), 0.0)],
    ids=["all-0", "all-equal", "the-wrong-way-round", "none"],
)
def test_scores_that_say_nothing_have_no_slope(score, slope):
    y = np.repeat([False, True], 20)[: len(score)]
    start = Start.from_held_out(None, score, y, np.ones(len(y)))
    assert start.slope == slope
    assert start.log_odds(np.array([-1.0, 0.5, 7.0])) == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


def test_scores_that_separate_the_classes_have_a_finite_slope():
    y = np.repeat([False, True], 20)
    start = Start.from_held_out(None, np.repeat([0.0, 100.0], 20), y, np.ones(40))
    assert start.log_odds(np.array([0.0, 100.0])) == pytest.approx([-np.log(21), np.log(21)], abs=1e-2)


# --- one model, however it is used ----------------------------------------------------------------------------------


def test_a_row_alone_scores_as_in_a_batch_and_threads_change_nothing(model):
    score = model.decision_function(X)
    assert [model.decision_function(X.iloc[i : i + 1])[0] for i in range(0, 300, 41)] == score[::41].tolist()
    again = clone(model).set_params(n_jobs=2).fit(X, Y)
    assert np.array_equal(again.decision_function(X), score)
    assert np.array_equal(again.rates_.rate, model.rates_.rate)


def test_explanations_add_up_with_the_contribution_of_init(model):
    matrix = model._encode(X)
    found, columns, values = model._score_parts(matrix)
    assert found.shape == values.shape == (300, len(columns))
    rest = model.decision_function(X) - found.sum(axis=1)
    np.testing.assert_allclose(rest, rest[0], atol=1e-5)
    own = [column.name for column in columns[len(model.columns_) :]]
    is_sum = isinstance(model.init_, LogisticBoost | SGBAP)
    assert own == ([] if is_sum else [f"score of {type(model.init_).__name__}"])
    steps = model.explain(X.head(1))[0].steps
    assert sum(step.contribution for step in steps) == pytest.approx(found[0].sum(), abs=1e-9)
    assert len(model.top_k(X, 5)) == 5
    assert type(model.init_).__name__ in model.summary()


def test_the_score_of_init_is_a_reason():
    rows, y = linear_cases(400)
    warm = SGBAP(init=LogisticRegression(), cv=0, **QUICK).fit(rows, y)
    first = warm.top_k(rows, 1)
    assert first["reason_1"].iloc[0].startswith("score of LogisticRegression = ")
    assert "usually at most" in first["reason_1"].iloc[0]


def test_files_hold_the_ranker_inside(model, tmp_path):
    path = tmp_path / "model.toprank"
    if isinstance(model.init, RandomForestClassifier):
        with pytest.raises(InputTypeError, match="RandomForestClassifier"):
            model.save(path)
        assert not path.exists()
        back = pickle.loads(pickle.dumps(model))
    else:
        model.save(path)
        back = load(path)
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    matrix = model._encode(X)
    assert np.array_equal(back.start_.score(matrix, Threads()), model.start_.score(matrix, Threads()))
    if isinstance(model.init_, Ranker):
        assert np.array_equal(back.init_.predict(X), model.init_.predict(X))
    assert back.summary() == model.summary()
    assert [str(each) for each in back.explain(X.head(3))] == [str(each) for each in model.explain(X.head(3))]
    assert {*vars(back)} == {*vars(model)}
    again = clone(back).fit(X, Y)  # the loaded model knows its init
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def change(path, name, value):
    """A copy of a model file in which one array is another one, signed."""
    with zipfile.ZipFile(path) as archive:
        info, raw = json.loads(archive.read("model.json")), archive.read("arrays.npz")
    with np.load(io.BytesIO(raw)) as archive:
        arrays = dict(archive)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays | {name: value(arrays[name])})
    info["checksum"] = model_file._checksum(info, buffer.getvalue())
    other = path.with_suffix(".changed")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("model.json", json.dumps(info))
        archive.writestr("arrays.npz", buffer.getvalue())
    return other


def in_json(**changes):
    """A change of the JSON of the ranker inside."""
    return lambda array: np.frombuffer(json.dumps(json.loads(array.tobytes()) | changes).encode(), np.uint8)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("init_scale", lambda array: array[:5]),
        ("init_scale", lambda array: array * np.nan),
        ("init_scale", lambda array: -np.abs(array)),
        ("init_scale", lambda array: array.astype(np.float32)),
        ("init_of_model_json", lambda array: array[:-9]),
        ("init_of_model_json", in_json(**{"class": "Popen"})),
        ("init_of_model_json", in_json(**{"class": "TAOClassifier"})),
        ("init_of_model_json", in_json(columns=[])),
        ("init_of_model_json", in_json(parameters={"n_neighbors": -3})),
        ("init_of_hit_rates_rate", lambda array: array[:-1]),
    ],
)
def test_a_damaged_ranker_inside_is_refused(name, value, tmp_path):
    path = tmp_path / "model.toprank"
    SGBAP(init=KNN(cv=0), cv=0, **QUICK).fit(X, Y).save(path)
    load(change(path, name, lambda array: array))
    with pytest.raises(ModelFileError, match="damaged"):
        load(change(path, name, value))


def test_a_ranker_inside_with_other_columns_is_refused(tmp_path):
    path = tmp_path / "model.toprank"
    SGBAP(init=KNN(cv=0), cv=0, **QUICK).fit(X, Y).save(path)

    def renamed(array):
        info = json.loads(array.tobytes())
        info["columns"][0]["name"] = "other"
        return np.frombuffer(json.dumps(info).encode(), np.uint8)

    with pytest.raises(ModelFileError, match="columns"):
        load(change(path, "init_of_model_json", renamed))


def test_a_file_keeps_the_init_of_a_member(tmp_path):
    """`rankers` of a loaded stack showed a booster without its init: a refit was another model."""
    stack = StackedRanker([SGBAP(init=KNN(n_neighbors=7, cv=0), cv=0, n_estimators=2)], cv=0).fit(X, Y)
    stack.save(tmp_path / "stack.toprank")
    back = load(tmp_path / "stack.toprank")
    assert back.rankers[0].init.n_neighbors == 7
    assert np.array_equal(back.decision_function(X), stack.decision_function(X))


# --- weights and bad input ------------------------------------------------------------------------------------------


def test_init_gets_the_weights_of_cases_and_no_row_of_weight_0():
    rows, y = linear_cases(300)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    Counting.fits = []
    warm = SGBAP(init=Counting(), cv=0, **QUICK).fit(rows, y, sample_weight=weight)
    assert max(n for n, _ in Counting.fits) == (weight > 0).sum()
    assert all(set(given.tolist()) == {1.0, 2.0} for _, given in Counting.fits)
    kept = weight > 0
    alone = SGBAP(init=Counting(), cv=0, **QUICK | {"subsample": 1.0}).fit(rows[kept], y[kept], weight[kept])
    same = SGBAP(init=Counting(), cv=0, **QUICK | {"subsample": 1.0}).fit(rows, y, weight)
    assert np.array_equal(alone.decision_function(rows), same.decision_function(rows))
    assert warm.n_cases_ == weight.sum()


def test_the_scale_of_init_counts_weights_and_not_rows():
    """The least rate and the usual scores were those of rows, whatever they weighed."""
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 9, 60).astype(float)
    copies = np.repeat(np.arange(60), weight.astype(int))
    score, y = rng.random(60), rng.random(60) < 0.4
    starts = []
    for rows, own in ((np.arange(60), weight), (copies, np.ones(len(copies)))):
        start = Start.from_held_out(Echo(), score[rows], y[rows], own)
        starts.append(start.with_usual(score[rows][:, None], y[rows], own, Threads()))
    assert starts[0].least == starts[1].least == 0.5 / (weight.sum() + 1)
    assert starts[0].usual == starts[1].usual
    assert starts[0].mean == pytest.approx(starts[1].mean)


def test_an_init_with_settings_for_the_table_is_refused():
    """They were ignored: the booster reads the table."""
    with pytest.raises(InputError, match="pos_label of the init is 0"):
        SGBAP(init=KNN(pos_label=0), **QUICK).fit(X, Y)
    SGBAP(init=KNN(pos_label=1, cv=0), pos_label=1, cv=0, n_estimators=2).fit(X, Y)


def test_an_init_without_weights_is_refused_only_where_weights_differ():
    rows, y = linear_cases(200)
    warm = SGBAP(init=KNeighborsClassifier(), cv=0, **QUICK)
    with pytest.raises(InputTypeError, match="KNeighborsClassifier takes no sample_weight"):
        warm.fit(rows, y, sample_weight=np.where(y, 2.0, 1.0))
    assert not hasattr(warm, "classes_")
    assert warm.fit(rows, y, sample_weight=np.full(200, 2.0)).score(rows, y) > y.mean()


@pytest.mark.parametrize("init", ["forest", 5, LinearRegression()])
def test_what_cannot_score_cases_is_no_init(init):
    with pytest.raises(ValueError if not isinstance(init, LinearRegression) else InputTypeError, match="init"):
        SGBAP(init=init, **QUICK).fit(X, Y)


def test_an_init_with_odd_scores_is_refused():
    class Odd(Counting):
        def decision_function(self, X):
            return np.full(len(X), np.inf)

    with pytest.raises(InputError, match="init Odd"):
        SGBAP(init=Odd(), cv=0, **QUICK).fit(*linear_cases(200))


@pytest.mark.parametrize("n_positives", [1, 2])
def test_with_too_few_positives_for_folds_all_rows_start_alike(n_positives):
    rows, y = linear_cases(100)[0], np.arange(100) < n_positives
    rows[y] = 9.0  # equal rows are never on both sides of a fold
    warm = SGBAP(init=LogisticRegression(), **QUICK).fit(rows, y)
    assert warm.start_.slope == 0
    assert np.argmax(warm.decision_function(rows)) < n_positives


def test_a_cluster_takes_no_init():
    pytest.importorskip("dask.distributed")
    from toprank.distributed import SGBAP as OnACluster

    with pytest.raises(InputTypeError, match="KNN"):
        OnACluster(init=KNN()).fit(X, Y)


def test_a_curve_can_be_init():
    curve = CostOptimalForest(TAOTree(max_depth=1), n_estimators=2, cost_factor=50.0)
    warm = SGBAP(init=curve, cv=0, **QUICK).fit(X, Y)
    assert np.isfinite(warm.decision_function(X)).all()
    assert isinstance(warm.init_, CostOptimalForest)


def test_a_search_reaches_the_parameters_of_init():
    warm = SGBAP(init=KNN(cv=0), cv=0, **QUICK).set_params(init__n_neighbors=7).fit(X, Y)
    assert warm.init_.n_neighbors == 7
    assert warm.init is not warm.init_


# --- init="auto" ----------------------------------------------------------------------------------------------------


def rare_cases(n_positives, n=1000, seed=0):
    """Positives that differ from the others a little in six of twelve columns."""
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(n, 12)), np.arange(n) < n_positives
    rows[y, :6] += 0.9
    return rows, y


SHORT = {"n_estimators": 4, "cv": 2, "random_state": 0}


@pytest.fixture
def small_forest(monkeypatch):
    monkeypatch.setattr(sgbap, "ExtraTrees", partial(ExtraTrees, n_estimators=15))


@pytest.mark.parametrize(
    ("n_positives", "weight", "given", "is_forest"),
    [(99, 1.0, {}, True), (100, 1.0, {}, False), (50, 2.0, {}, False), (99, 1.0, {"cv": 0}, False),
     (99, 1.0, {"init": None}, False)],
)  # fmt: skip
def test_few_positives_start_from_a_forest(n_positives, weight, given, is_forest, small_forest):
    """A weight of 2 is the row twice."""
    rows, y = rare_cases(n_positives, 400)
    model = SGBAP(**SHORT | given).fit(rows, y, sample_weight=np.full(400, weight))
    assert isinstance(model.init_, ExtraTrees) == is_forest
    assert (model.init_ is None) != is_forest


def test_after_a_forest_folds_choose_the_rounds_alone(capsys, small_forest):
    rows, y = rare_cases(40, 400)
    model = SGBAP(**SHORT, verbose=1).fit(rows, y)
    assert "\rfolds [" in capsys.readouterr().err
    assert (model.max_depth_, model._facts()["trees"]) == (6, "of up to 6 conditions in a row")
    assert model._facts()["blend"] == "the logistic loss alone"
    assert model._facts()["start"] == "a forest, as fewer than 100 cases are positive"
    assert SGBAP(**SHORT, max_depth=3).fit(rows, y).max_depth_ == 3


def test_a_forest_is_explained_column_by_column(tmp_path, small_forest):
    rows, y = rare_cases(40, 400)
    model = SGBAP(**SHORT).fit(rows, y)
    matrix = model._encode(rows)
    assert model._contributions(matrix).shape == rows.shape
    together = model._contributions(matrix).sum(axis=1) - model.decision_function(rows)
    np.testing.assert_allclose(together, together[0], atol=1e-4)
    assert {step.feature for step in model.explain(rows[:1])[0].steps} <= {f"x{i}" for i in range(12)}
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_[:6].sum() > 0.5
    assert model._figures()["n_trees"] == 15 + model.n_rounds_
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert loaded.init == "auto"
    assert np.array_equal(loaded.decision_function(rows), model.decision_function(rows))
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)


def test_a_sum_of_trees_is_never_read_as_a_rate():
    """Log-odds between 0 and 1 are log-odds; read as rates, columns had no shares in them."""
    y = np.arange(100) < 60
    score = np.linspace(0.2, 0.8, 100)
    start = Start.from_held_out(ExtraTrees(), score, y, np.ones(100))
    assert start.is_sum
    assert Start.from_held_out(LogisticRegression(), score, y, np.ones(100)).least > 0


def test_a_forest_first_ranks_better_where_positives_are_few(small_forest):
    precision = []
    for seed in range(3):
        (rows, y), (new, of_new) = rare_cases(30, 600, seed), rare_cases(300, 4000, seed + 100)
        fits = [SGBAP(init=init, cv=3, n_estimators=60, random_state=0).fit(rows, y) for init in ("auto", None)]
        precision.append([model.score(new, of_new) for model in fits])
    assert np.mean(precision, axis=0)[0] > np.mean(precision, axis=0)[1]


def test_files_from_before_the_forest_are_of_boosting_from_scratch():
    folder = Path(__file__).parents[2] / "files" / "formats" / "version_3"
    model = load(folder / "sgbap.toprank")
    assert (model.init, model.init_) == (None, None)
    assert model.n_positives_ < 100


def test_one_positive_has_no_forest():
    """Without folds, the scale of a forest is flat, and its scores say nothing."""
    rows, y = rare_cases(1, 200)
    model = SGBAP(**SHORT).fit(rows, y)
    assert model.init_ is None
    assert "start" not in model._facts()
