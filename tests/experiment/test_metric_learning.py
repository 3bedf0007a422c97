"""GMML, ImbML and MLFP as methods."""

import numpy as np
import pytest
import scipy.linalg

from toprank.errors import InputError
from toprank.experiment.methods.neighbours import GMML, ImbML, choose_rows, nearest_pairs, pair_scatters
from toprank.experiment.registry import find_method


def make_rows(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (np.arange(n) < n // 4).astype(int)
    X[y == 1, 0] += 2
    return X, y


def test_scatters_are_those_of_all_pairs():
    X, y = make_rows(14)
    expected = [np.zeros((4, 4)), np.zeros((4, 4))]
    counts = [0, 0]
    for i in range(14):
        for j in range(14):
            if i != j:
                kind = int(y[i] != y[j])
                expected[kind] += np.outer(X[i] - X[j], X[i] - X[j])
                counts[kind] += 1
    for found, total, count in zip(pair_scatters(X, y == 1), expected, counts, strict=True):
        assert found == pytest.approx(total / count)


def test_gmml_is_the_geometric_mean():
    """At t = 1/2 the mean M solves M S M = D; at t = 0 it is the inverse of S."""
    X, y = make_rows()
    similar, dissimilar = pair_scatters(X, y == 1)

    def matrix(t):
        components = GMML(t).fit(X, y).components_
        return components.T @ components

    assert matrix(0.5) @ similar @ matrix(0.5) == pytest.approx(dissimilar, rel=0.02, abs=0.02)
    assert matrix(0.0) == pytest.approx(scipy.linalg.inv(similar), rel=0.02, abs=0.02)
    assert matrix(1.0) == pytest.approx(dissimilar, rel=0.02, abs=0.02)


def test_imbml_lowers_its_objective():
    X, y = make_rows()
    model = ImbML(margin=1.0, penalty=0.1, a=0.7).fit(X, y)
    difference, weight, is_similar = nearest_pairs(X, y == 1, 3, 0.7)
    assert weight[is_similar].sum() == pytest.approx(1.0)
    assert len(difference) == 2 * 3 * 60

    def objective(components):
        square = np.sum((difference @ components.T) ** 2, axis=1)
        loss = np.where(is_similar, np.maximum(square - 1, 0), np.maximum(2 - square, 0))
        return weight @ loss + 0.1 * np.sum((components.T @ components - np.eye(4)) ** 2)

    assert objective(model.components_) < objective(np.eye(4)) - 0.01
    rng = np.random.default_rng(0)
    near = [objective(model.components_ + 0.05 * rng.normal(size=(4, 4))) for _ in range(20)]
    assert objective(model.components_) < min(near)


def test_rows_are_drawn_from_both_classes():
    rows = choose_rows(np.arange(1000) < 30, 100, 0)
    assert len(rows) == 100
    assert np.sum(rows < 30) == 30
    with pytest.raises(InputError, match="two"):
        GMML().fit(np.eye(3), [0, 0, 1])


@pytest.mark.parametrize("name", ["mlfp", "gmml", "imbml"])
def test_methods_rank(name):
    X, y = make_rows(120)
    method = find_method(name)
    setting = {parameter: values[0] for parameter, values in method.space.items()}
    model = method.make(**setting | ({"n_neighbors": 5} if name != "mlfp" else {})).fit(X, y)
    score = model.decision_function(X)
    assert score[y == 1].mean() > score[y == 0].mean() + 0.1
    assert method.size(model) == (120, "rows")
