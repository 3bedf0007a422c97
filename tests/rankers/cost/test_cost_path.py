"""fit_at_costs: weights and samples beside what they stand for, and the points they lead to."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from toprank import CostTree, TAOTree
from toprank.rankers.cost.cost_path import copies, cost_ratios_around, fit_at_costs, last_step

RATIOS = [0.1, 0.25, 1.0, 2.5]
SAMPLES = ["oversample", "undersample", "smote"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b"]),
    "pyarrow": lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
}


def overlapping(n=200, seed=0):
    """Two overlapping classes, 40 positives."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 5 == 0).astype(int)
    return rng.normal(size=(n, 2)) + y[:, None], y


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it is given and calls everything positive."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, np.asarray(y), sample_weight
        self.classes_ = np.unique(self.y_)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[-1])


# --- weights -----------------------------------------------------------------------------------------------------


def test_a_row_weighs_what_a_mistake_on_it_costs():
    X, y = overlapping()
    own = np.random.default_rng(0).random(len(y))
    for weight in (None, own):
        path = fit_at_costs(Recorder(), X, y, RATIOS, sample_weight=weight)
        for ratio, model in zip(RATIOS, path.models, strict=True):
            assert model.X_ is X
            assert model.weight_ == pytest.approx(np.where(y == 1, 1.0, ratio) * (1.0 if weight is None else weight))


def test_weights_reach_the_last_step_of_a_pipeline():
    X, y = overlapping()
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    path = fit_at_costs(make_pipeline(StandardScaler(), inner), X, y, RATIOS)
    scaled = StandardScaler().fit_transform(X)
    for ratio, called in zip(RATIOS, path.predict(X), strict=True):
        plain = LogisticRegression().fit(scaled, y, sample_weight=np.where(y == 1, 1.0, ratio))
        assert np.array_equal(called, plain.predict(scaled))
    assert path.n_leaves is None
    points = path.points(X, y)
    assert points.cost_ratio.tolist() == RATIOS
    assert np.all(np.diff(points.false_positives) <= 0)
    assert np.all(np.diff(points.false_negatives) >= 0)
    assert points.false_positives[0] > points.false_positives[-1]


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_trees_that_know_costs_are_told_the_cost(wrap):
    X, y = overlapping()
    X = StandardScaler().fit_transform(X)
    weight = np.random.default_rng(0).integers(1, 3, len(y))
    path = fit_at_costs(wrap(TAOTree(max_depth=2, fn_cost=7.0)), X, y, RATIOS, sample_weight=weight)
    alone = [TAOTree(max_depth=2, fp_cost=ratio).fit(X, y, weight) for ratio in RATIOS]
    assert np.array_equal(path.predict(X), [model.predict(X) for model in alone])
    assert path.n_leaves.tolist() == [model.n_leaves_ for model in alone]
    assert path.points(X, y, weight).false_positives == pytest.approx([model.n_fp_ for model in alone])


def test_labels_of_any_kind_come_back():
    X, y = overlapping()
    named = np.where(y == 1, "bad", "good")
    for estimator in (DecisionTreeClassifier(max_depth=2, random_state=0), CostTree(max_depth=2, ccp_alpha=0)):
        plain = fit_at_costs(estimator, X, y, [0.2, 0.5])
        path = fit_at_costs(estimator, X, named, [0.2, 0.5], pos_label="bad")
        assert path.pos_label == "bad"
        assert np.array_equal(path.predict(X) == "bad", plain.predict(X) == 1)
        assert path.points(X, named).to_dict() == plain.points(X, y).to_dict()
        assert np.array_equal(path.n_leaves, plain.n_leaves)


@pytest.mark.parametrize("estimator", [TAOTree(max_depth=1), CostTree(max_depth=1, ccp_alpha=0)])
@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_the_classifiers_own_positive_label_counts_unless_another_is_named(estimator, wrap):
    X, y = overlapping()
    plain = fit_at_costs(wrap(estimator), X, y, [0.2, 5.0]).predict(X)
    own = clone(estimator).set_params(pos_label=0)
    path = fit_at_costs(wrap(own), X, 1 - y, [0.2, 5.0])
    assert path.pos_label == 0
    assert plain[0].sum() > plain[1].sum()
    assert np.array_equal(path.predict(X), 1 - plain)
    named = fit_at_costs(wrap(own), X, y, [0.2, 5.0], pos_label=1)
    assert np.array_equal(named.predict(X), plain)
    assert [last_step(model)[1].pos_label for model in named.models] == [1, 1]


def test_a_classifier_with_a_positive_label_is_told_the_one_that_costs_are_about():
    X, y = overlapping()
    model = fit_at_costs(TAOTree(max_depth=1), X, y, [0.5]).models[0]
    assert repr(model.pos_label) == "1"
    with pytest.raises(ValueError, match="pos_label=7 is not a label"):
        fit_at_costs(TAOTree(max_depth=1, pos_label=7), X, y, [0.5])


# --- samples -----------------------------------------------------------------------------------------------------


@given(
    is_positive=st.lists(st.booleans(), min_size=2, max_size=30).filter(lambda rows: 0 < sum(rows) < len(rows)),
    ratio=st.floats(0.05, 20.0),
    seed=st.integers(0, 3),
)
def test_classes_are_taken_in_the_ratio_of_their_costs(is_positive, ratio, seed):
    is_positive = np.array(is_positive)
    n_positive, n_negative = is_positive.sum(), (~is_positive).sum()
    for by in ("oversample", "undersample"):
        times = copies(is_positive, ratio, by, seed)
        positive, negative = times[is_positive], times[~is_positive]
        changed, fixed = (positive, negative) if (ratio < 1) == (by == "oversample") else (negative, positive)
        assert np.all(fixed == 1)
        assert changed.max() - changed.min() <= 1
        exact = len(changed) * (max(ratio, 1 / ratio) if by == "oversample" else min(ratio, 1 / ratio))
        assert abs(changed.sum() - exact) <= 0.5 or (exact < 0.5 and changed.sum() == 1)
        assert (by == "oversample") == (changed.min() >= 1) or ratio == 1 or changed.sum() == len(changed)
    assert np.all(copies(is_positive, ratio / 2, "undersample", seed)[~is_positive] <= 1)
    if ratio < 1:  # the negatives of a lower ratio are among those of a higher one
        fewer, more = (copies(is_positive, r, "undersample", seed) for r in (ratio / 2, ratio))
        assert np.all(fewer <= more)
    assert copies(is_positive, 1.0, "oversample", seed).sum() == n_positive + n_negative


def test_repeating_rows_is_weighting_them():
    X, y = overlapping()
    for estimator in (CostTree(max_depth=3, ccp_alpha=0), DecisionTreeClassifier(max_depth=3, random_state=0)):
        weighted = fit_at_costs(estimator, X, y, [0.25, 1.0, 3.0])
        sampled = fit_at_costs(estimator, X, y, [0.25, 1.0, 3.0], by="oversample")
        assert np.array_equal(weighted.predict(X), sampled.predict(X))


@pytest.mark.parametrize("by", SAMPLES)
@pytest.mark.parametrize("frame", [None, *FRAMES])
def test_samples_have_the_ratio_of_the_costs_in_any_table(by, frame):
    X, y = overlapping()
    table = X if frame is None else FRAMES[frame](X)
    path = fit_at_costs(Recorder(), table, y, [0.1, 1.0, 8.0], by=by)
    expected = [(160, 400), (160, 40), (1280, 40)] if by != "undersample" else [(16, 40), (160, 40), (160, 5)]
    assert [tuple(np.bincount(model.y_)) for model in path.models] == expected
    for model in path.models:
        assert type(model.X_) is type(table)
        rows = np.asarray(model.X_) if frame is None else np.column_stack([np.asarray(model.X_[name]) for name in "ab"])
        assert len(rows) == len(model.y_)
        assert model.weight_ is None
        known = {*map(tuple, X)}
        assert all(tuple(row) in known for row in rows) == (by != "smote" or model is path.models[1])
        for label in (0, 1):  # new rows lie between others of their class
            assert np.all(rows[model.y_ == label] >= X[y == label].min(axis=0))
            assert np.all(rows[model.y_ == label] <= X[y == label].max(axis=0))


def test_rows_keep_their_weights_in_samples():
    X, y = overlapping()
    weight = 1.0 + np.arange(len(y))
    for by in ("oversample", "undersample"):
        for model in fit_at_costs(Recorder(), X, y, [0.3, 4.0], by=by, sample_weight=weight).models:
            row = (model.weight_ - 1).astype(int)
            assert np.array_equal(model.X_, X[row])
            assert np.array_equal(model.y_, y[row])


def test_trees_that_know_costs_count_sampled_rows_alike():
    X, y = overlapping()
    for model in fit_at_costs(CostTree(ccp_alpha=1.0), X, y, [0.2, 2.0], by="undersample").models:
        assert (model.fp_cost, model.fn_cost) == (1.0, 1.0)


@pytest.mark.parametrize("by", SAMPLES)
def test_samples_depend_on_the_seed_alone(by):
    X, y = overlapping()
    forest = RandomForestClassifier(5, random_state=0)
    ratios = [0.37, 2.9]
    one, two, other = (fit_at_costs(forest, X, y, ratios, by=by, random_state=seed) for seed in (None, 0, 1))
    with parallel_config("threading"):
        parallel = fit_at_costs(forest, X, y, ratios, by=by, n_jobs=2)
    X_new = overlapping(seed=1)[0]
    assert np.array_equal(one.predict(X_new), two.predict(X_new))
    assert np.array_equal(one.predict(X_new), parallel.predict(X_new))
    assert not np.array_equal(one.predict(X_new), other.predict(X_new))


# --- ratios and errors -------------------------------------------------------------------------------------------


def test_ratios_stand_around_the_one_that_balances_the_classes():
    y = np.repeat(["no", "yes"], [30, 10])
    ratios = cost_ratios_around(y)
    assert len(ratios) == 15
    assert ratios[7] == pytest.approx(1 / 3)
    assert ratios[1:] / ratios[:-1] == pytest.approx(1.5)
    assert cost_ratios_around(y, n=2, cost_factor=3.0, pos_label="no") == pytest.approx([1.0, 3.0])
    assert cost_ratios_around(y, n=1, sample_weight=np.repeat([1.0, 6.0], [30, 10])) == pytest.approx([2.0])
    for wrong in ({"n": 0}, {"n": 2.5}, {"cost_factor": 1.0}, {"cost_factor": np.nan}):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of cost_ratios_around must be"):
            cost_ratios_around(y, **wrong)


def test_a_path_says_what_it_holds():
    X, y = overlapping()
    path = fit_at_costs(DecisionTreeClassifier(max_depth=1), X, y, RATIOS)
    assert len(path) == 4
    assert repr(path) == "<CostPath: 4 models of DecisionTreeClassifier, cost ratios 0.1 to 2.5>"
    assert path.n_leaves.tolist() == [2, 2, 2, 2]
    assert path.predict(X).shape == (4, 200)


@pytest.mark.parametrize(
    ("estimator", "how", "message"),
    [
        (Recorder(), {"by": "adasyn"}, "'by' parameter of fit_at_costs must be one of weight, oversample"),
        (Recorder(), {"cost_ratios": [1.0, 0.0]}, "finite numbers above 0"),
        (Recorder(), {"cost_ratios": []}, "finite numbers above 0"),
        (KNeighborsClassifier(), {}, "takes sample_weight, but that of KNeighborsClassifier does not"),
        (Recorder(), {"by": "smote", "sample_weight": np.arange(200.0)}, "by='smote' takes no sample_weight"),
        (Recorder(), {"y": np.arange(200) == 3, "by": "smote", "cost_ratios": [0.5]}, "positive class has only one"),
        (Recorder(), {"y": np.arange(200) != 3, "by": "smote", "cost_ratios": [2.0]}, "negative class has only one"),
        (Recorder(), {"y": np.zeros(200)}, "fit_at_costs needs both classes in y"),
        (Recorder(), {"pos_label": "yes"}, "pos_label='yes' is not a label"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(estimator, how, message):
    X, y = overlapping()
    with pytest.raises(ValueError, match=message):
        fit_at_costs(estimator, X, **({"y": y, "cost_ratios": [0.5]} | how))


@pytest.mark.parametrize("frame", [None, *FRAMES])
def test_smote_names_a_column_that_has_no_numbers(frame):
    X, y = overlapping()
    X = X.astype(object)
    X[:, 1] = np.where(np.arange(len(X)) > 3, "north", None)
    table, name = (X, "1") if frame is None else (FRAMES[frame](X), "'b'")
    with pytest.raises(ValueError, match=rf"needs a table of numbers, but column {name} of X has the value 'north'\."):
        fit_at_costs(Recorder(), table, y, [0.5], by="smote")


def test_smote_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "imblearn", None)
    X, y = overlapping()
    with pytest.raises(
        ImportError, match=r"needs the package 'imbalanced-learn'.*pip install \"toprank\[experiment\]\""
    ):
        fit_at_costs(Recorder(), X, y, [0.5], by="smote")
    assert len(fit_at_costs(KNeighborsClassifier(), X, y, [0.5], by="oversample")) == 1
