"""The votes that gamma-kNN is compared with, against scikit-learn and against counting by hand."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.neighbors import KNeighborsClassifier

from toprank import KNN, GammaKNN
from toprank.rankers.neighbours.knn import rare_class_share


def blobs(n=200, n_positives=30, seed=0, d=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) < n_positives
    return rng.normal(size=(n, d)) + y[:, None], y.astype(int)


@pytest.mark.parametrize(("rule", "weights"), [("plain", "uniform"), ("weighted", "distance")])
@pytest.mark.parametrize("k", [1, 4, 31])
def test_votes_are_those_of_scikit_learn(rule, weights, k):
    X, y = blobs()
    new = np.vstack((blobs(seed=1)[0][:50], X[:5]))  # the last ones are training rows: distance 0
    ours = KNN(n_neighbors=k, rule=rule, scaling=None).fit(X, y)
    theirs = KNeighborsClassifier(k, weights=weights).fit(X, y)
    assert np.allclose(ours.decision_function(new), theirs.predict_proba(new)[:, 1], rtol=1e-12)
    assert np.array_equal(ours.predict(new) == 1, theirs.predict_proba(new)[:, 1] >= 0.5)


def test_more_neighbours_than_cases_are_all_cases():
    X, y = blobs(30, 6)
    model = KNN(n_neighbors=101).fit(X, y)
    assert model.n_neighbors_ == 30
    assert np.allclose(model.decision_function(X), 0.2)


def test_copies_of_a_row_count_alone():
    X, y = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([1, 1, 0, 0])
    model = KNN(n_neighbors=4, rule="weighted").fit(X, y)
    assert model.decision_function([[0.0]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_duplicated_positives_are_positives_given_several_times(k):
    X, y = blobs(120, 30)  # three negatives per positive
    new = blobs(seed=2)[0]
    copied = np.concatenate((np.repeat(X[y == 1], 3, axis=0), X[y == 0]))
    label = np.repeat([1, 0], [90, 90])
    theirs = KNeighborsClassifier(k).fit(copied, label).predict_proba(new)[:, 1]
    model = KNN(n_neighbors=k, rule="duplicated", scaling=None).fit(X, y)
    assert np.allclose(model.decision_function(new), theirs)
    if k == 1:
        assert np.array_equal(model.predict(new), KNN(n_neighbors=1, scaling=None).fit(X, y).predict(new))


def test_class_weighted_votes_are_gamma_knn_with_a_fixed_gamma():
    X, y = blobs()
    new = blobs(seed=2)[0]
    gamma = (30 / 170) ** (1 / 3)
    for k in (1, 3):
        weighted = KNN(n_neighbors=k, rule="class_weighted").fit(X, y).predict(new)
        assert np.array_equal(weighted, GammaKNN(n_neighbors=k, gamma=gamma).fit(X, y).predict(new))


@pytest.mark.parametrize("k", [1, 3])
def test_krnn_counts_the_neighbourhood_of_k_positives(k):
    X, y = blobs(150, 30)
    new = blobs(60, seed=2)[0]
    found = KNN(n_neighbors=k, rule="krnn", scaling=None).fit(X, y).decision_function(new)
    for x, score in zip(new, found, strict=True):
        label = y[np.argsort(np.linalg.norm(X - x, axis=1))]
        end = np.flatnonzero(np.cumsum(label) == k)[0] + 1
        while end < len(label) and label[end] == 1:
            end += 1
        p, n = label[:end].sum(), (1 - label[:end]).sum()
        assert score == pytest.approx(rare_class_share(np.array([p]), np.array([n]), 30, 120)[0])


def test_krnn_raises_the_share_where_positives_are_frequent():
    m, z = 1000, norm.ppf(0.95)
    few = rare_class_share(np.array([1.0]), np.array([12.0]), 100, 900)[0]
    assert few == pytest.approx((1 + 1 / m) / (13 + 2 / m)), "as everywhere: nothing is adjusted"
    p, n = 5.0, 7.0
    here = p / (p + n)
    r = p + n
    wilson = (here + z**2 / (2 * r) - z * np.sqrt(here * (1 - here) / r + z**2 / (4 * r**2))) / (1 + z**2 / r)
    assert wilson > 0.1 + z * np.sqrt(0.09 / m)
    factor = (p / n) / (100 / 900)
    assert rare_class_share(np.array([p]), np.array([n]), 100, 900)[0] == pytest.approx(
        (p + 1 / m) / (p + n / factor + 2 / m)
    )


@pytest.mark.parametrize("rule", ["plain", "weighted", "class_weighted", "duplicated", "krnn"])
def test_left_out_rows_do_not_vote_for_themselves(rule):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), (rng.random(300) < 0.3).astype(int)
    model = KNN(n_neighbors=1, rule=rule).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.rates_.average_precision < 0.5, "noise: rows that voted for themselves would be right"
    for k, score in zip((1, 5), model._scores_by_k(X, (1, 5)), strict=True):
        assert np.array_equal(score, KNN(n_neighbors=k, rule=rule).fit(X, y).decision_function(X))
