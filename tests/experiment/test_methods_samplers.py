"""Samplers in front of methods: only training rows are resampled, and small tables do not break them."""

import numpy as np
import pytest

from toprank.experiment.methods.samplers import TITLES, Resampler, with_sampler
from toprank.experiment.registry import find_method
from toprank.experiment.search import scores_of
from toprank.metrics import average_precision

imblearn = pytest.importorskip("imblearn", reason="samplers need imbalanced-learn")

ADDS = ["smote", "borderline-smote", "svm-smote", "adasyn", "kmeans-smote", "random-over"]


def make_table(n=120, n_positives=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.zeros(n, int)
    y[np.argsort(-(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)))[:n_positives]] = 1
    return X, y


@pytest.mark.parametrize("sampler", TITLES)
@pytest.mark.parametrize("base", ["logistic-l2", "metaap", "plain-knn"])
def test_only_training_rows_are_resampled(sampler, base):
    X, y = make_table()
    method = find_method(f"{sampler}+{base}")
    setting = {parameter: values[0] for parameter, values in method.space.items()} | {"n_neighbors": 9}
    setting = {p: v for p, v in setting.items() if p in find_method(base).space}
    model = method.make(random_state=0, **setting).fit(X[:80], y[:80])
    new = scores_of(model, X[80:])
    assert new.shape == (40,)
    assert np.isfinite(new).all()
    assert average_precision(y[80:], new) > y[80:].mean()
    assert np.array_equal(new, scores_of(method.make(random_state=0, **setting).fit(X[:80], y[:80]), X[80:]))
    # What the model behind it was fitted on is what the sampler made of the training rows, and nothing else.
    drawn = Resampler(sampler, 0).fit_resample(X[:80], y[:80])
    alone = find_method(base).make(random_state=0, **setting).fit(*drawn)
    assert np.array_equal(new, scores_of(alone, X[80:]))
    assert method.size(model)[0] > 0


@pytest.mark.parametrize("sampler", TITLES)
def test_classes_come_nearer(sampler):
    X, y = make_table()
    _, label = Resampler(sampler, 0).fit_resample(X, y)
    negatives, positives = np.bincount(label)
    assert positives / negatives > 20 / 100
    assert positives >= 20 if sampler in ADDS else negatives <= 100


@pytest.mark.parametrize("sampler", TITLES)
@pytest.mark.parametrize("n_positives", [1, 2, 4])
def test_few_positives_are_enough(sampler, n_positives):
    X, y = make_table(60, n_positives)
    new_X, label = Resampler(sampler, 0).fit_resample(X, y)
    assert len(new_X) == len(label)
    assert set(label) == {0, 1}
    if n_positives == 1 and not sampler.startswith("random"):
        assert np.array_equal(new_X, X)


@pytest.mark.parametrize("sampler", ["adasyn", "kmeans-smote", "svm-smote"])
def test_rows_stay_where_a_sampler_finds_no_place_for_new_ones(sampler):
    X, y = make_table(60, 3)
    X[y == 1] = 100 + 50 * np.arange(18).reshape(3, 6)  # three positives far from all, and from one another
    _, label = Resampler(sampler, 0).fit_resample(X, y)
    assert np.bincount(label).min() >= 3


def test_rows_stay_where_a_sampler_leaves_one_class():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)  # every row twice, once of each class: all are noise
    y = np.tile([0, 1], 20)
    new_X, label = Resampler("smote-enn", 0).fit_resample(X, y)
    assert set(label) == {0, 1}
    assert len(new_X) == len(label)


def test_missing_values_are_an_error_for_all():
    X, y = make_table()
    X[0, 0] = np.nan
    for sampler in TITLES:
        with pytest.raises(ValueError, match="NaN"):
            Resampler(sampler, 0).fit_resample(X, y)


def test_a_composite_keeps_what_it_can():
    plain, method = find_method("logistic-l2"), find_method("smote+logistic-l2")
    assert method.name == "smote+logistic-l2"
    assert method.title == "SMOTE + Logistic L2"
    assert method.space == plain.space
    assert method.reads == "scaled"
    assert method.packages == ("imblearn",)
    assert method.is_readable
    assert find_method("smote+metaap").reads == "numbers"
    assert find_method("near-miss+xgboost").packages == ("imblearn", "xgboost")
    assert find_method("near-miss+xgboost").title == "NearMiss + XGBoost"


def test_samplers_chain():
    X, y = make_table()
    method = find_method("tomek+smote+cart")
    assert method.title == "Tomek links + SMOTE + CART"
    model = method.make(random_state=0, min_samples_leaf=5).fit(X, y)
    assert method.size(model)[1] == "conditions"
    cleaned = Resampler("tomek", 0).fit_resample(X, y)
    alone = find_method("smote+cart").make(random_state=0, min_samples_leaf=5).fit(*cleaned)
    assert np.array_equal(model.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("name", ["smote+gini", "random-under+plain-knn", "smote+hist-gradient-boosting"])
def test_sweeps_pass_through(name):
    X, y = make_table()
    method = find_method(name)
    values = {"gini": (2, 5), "plain-knn": (3, 15)}.get(name.partition("+")[2], (5, 20))
    models = [method.make(random_state=0, **{method.sweep.parameter: value}).fit(X, y) for value in values]
    swept = method.sweep.scores(models[1], X, values)
    for score, model in zip(swept, models, strict=True):
        assert np.allclose(score, scores_of(model, X), rtol=1e-12, atol=1e-12)
    assert not np.array_equal(*swept)


def test_unknown_samplers_give_a_hint():
    with pytest.raises(ValueError, match=r"no sampler 'smot' .* 'plain-knn'\. Hint: did you mean 'smote'\?"):
        find_method("smot+plain-knn")
    with pytest.raises(ValueError, match=r"Hint: known are smote, borderline-smote, .*near-miss\."):
        with_sampler("zzz", find_method("plain-knn"))
    with pytest.raises(ValueError, match=r"There is no method 'knnn'\. Hint: did you mean 'knn'\?"):
        find_method("smote+knnn")
