"""Searches on a GPU: NumPy in its place does the same steps, and finds what brute force finds, bit for bit."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import KNN, GammaKNN, InputError, load
from toprank._core.distances import brute_force
from toprank._core.threads import Threads
from toprank.rankers.neighbours import gpu, search
from toprank.rankers.neighbours.search import PointSet


@pytest.fixture
def numpy_as_gpu(monkeypatch):
    """A machine whose GPU is NumPy, with blocks small enough that tests have several."""
    for module in (gpu, search):
        monkeypatch.setattr(module, "cupy_or_why", lambda: (np, ""))
    monkeypatch.setattr(search, "SCREEN_SIZE", 1)
    monkeypatch.setattr(search, "QUERIES", 7)
    monkeypatch.setattr(gpu, "POINTS", 50)
    for module in (gpu, search):
        monkeypatch.setattr(module, "GROUPS", 16)


def check_same_neighbours(points, queries, k, left_out=None):
    own = PointSet(points, algorithm="gpu")
    found = own.nearest(queries, k, Threads(2), left_out)
    distance, position = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)
    left_out = np.full(len(queries), -1) if left_out is None else left_out
    brute_force(queries, np.ascontiguousarray(points.T), left_out, 2, distance, position)
    assert own._screen_for(k) is not None
    assert np.array_equal(found.distance, np.sqrt(distance))
    assert np.array_equal(found.position, position)


@pytest.mark.usefixtures("numpy_as_gpu")
@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), k=st.integers(1, 16), scale=st.sampled_from([1e-30, 1.0, 1e8]))
def test_the_nearest_points_are_those_of_brute_force(seed, d, k, scale):
    rng = np.random.default_rng(seed)
    points = scale * np.round(rng.normal(size=(int(rng.integers(1, 230)), d)), int(rng.integers(0, 8)))
    n_left_out = min(len(points), 20)
    queries = np.vstack((points[:n_left_out], scale * rng.normal(size=(10, d))))
    check_same_neighbours(points, queries, k, np.r_[np.arange(n_left_out), np.full(10, -1)])


@pytest.mark.usefixtures("numpy_as_gpu")
def test_many_equal_points_and_queries_that_are_far_away():
    rng = np.random.default_rng(0)
    points = np.vstack((np.zeros((400, 3)), rng.normal(size=(100, 3))))  # more candidates than fit
    check_same_neighbours(points, np.vstack((points[::9], [[1e9, 0, 0], [1e200, -1e200, 0]])), 3)


@pytest.mark.usefixtures("numpy_as_gpu")
def test_rankers_are_the_same_with_and_without_a_gpu(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    y = np.arange(600) < 60
    X = rng.normal(size=(600, 4)) + y[:, None]
    for ranker in (GammaKNN, KNN):
        model = ranker(algorithm="gpu").fit(X, y)
        score = ranker(algorithm="auto").fit(X, y).decision_function(X)
        assert np.array_equal(model.decision_function(X), score)
        model.save(tmp_path / "model.toprank")
        pickled = pickle.dumps(model)
        with monkeypatch.context() as patch:
            patch.setattr(search, "cupy_or_why", lambda: (None, "CUDA finds no GPU"))
            assert np.array_equal(load(tmp_path / "model.toprank").decision_function(X), score)
            assert np.array_equal(pickle.loads(pickled).decision_function(X), score)


def test_a_machine_without_a_gpu_says_so(monkeypatch):
    monkeypatch.setattr(gpu, "cupy_or_why", lambda: (None, "the package cupy is not installed"))
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) < 5
    with pytest.raises(InputError, match=r"algorithm='gpu' needs .* cupy is not installed\. Hint: pip install cupy"):
        GammaKNN(algorithm="gpu").fit(X, y)


@pytest.mark.usefixtures("numpy_as_gpu")
def test_other_distances_than_the_euclidean_one_are_refused():
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) < 5
    with pytest.raises(InputError, match="metric is 'manhattan'"):
        GammaKNN(algorithm="gpu", metric="manhattan").fit(X, y)


@pytest.mark.usefixtures("numpy_as_gpu")
def test_products_that_are_rounded_more_get_wider_bounds(monkeypatch):
    """As with TensorFloat-32, whatever turned it on: a known product shows it."""

    def rounded(array):
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        return bits.view(np.float32)

    rng = np.random.default_rng(0)
    points = 5 + rng.normal(size=(200, 8))
    monkeypatch.setattr(gpu.Screen, "_product", lambda self, queries, points: rounded(queries) @ rounded(points))
    check_same_neighbours(points, 5 + rng.normal(size=(60, 8)), 3)
    screen = gpu.Screen(np.zeros((8, 2), np.float32), np.zeros(2), np)
    assert screen._relative_error(1) > gpu.TF32
    monkeypatch.undo()
    assert screen._relative_error(1) == gpu.relative_error(8)
