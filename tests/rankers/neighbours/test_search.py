"""Searches against all pairs: exact ones find what these find, approximate ones nearly."""

import builtins
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank import GammaKNN, InputError
from toprank._core.distances import along_graph
from toprank._core.threads import Threads
from toprank.rankers.neighbours import search
from toprank.rankers.neighbours.search import PointSet, mapped


def all_pairs(queries, points, k, power, left_out=None):
    """Distances to the k nearest points, by the obvious way."""
    out = np.full((len(queries), k), np.inf)
    for i, query in enumerate(queries):
        kept = [j for j in range(len(points)) if left_out is None or j != left_out[i]]
        gaps = np.abs(points[kept] - query)
        found = np.sort(np.sqrt((gaps**2).sum(axis=1)) if power == 2 else gaps.sum(axis=1))[:k]
        out[i, : len(found)] = found
    return out


def exact_graph(points, degree=12):
    """The graph of an approximate search without pynndescent, which takes a minute to compile."""
    own = np.arange(len(points))
    near = PointSet(points, algorithm="brute").nearest(points, degree, Threads(1), own).position.astype(np.int32)
    return np.hstack((near, search._reversed(near, degree // 2)))


@pytest.fixture
def fake_pynndescent(monkeypatch):
    """A pynndescent that needs no compiler; as the real one, it refuses more threads than cores."""

    class NNDescent:
        def __init__(self, points, *, metric, n_neighbors, random_state, n_jobs):
            if n_jobs > 2:
                raise ValueError("The number of threads must be between 1 and 2")
            near = PointSet(points, algorithm="brute").nearest(points, 3 * n_jobs, Threads(1)).position
            self.neighbor_graph = near, None

    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=NNDescent))
    monkeypatch.setattr(search, "EXACT_POINTS", 1_000)


def rare_cases(n=1_500, n_positives=60):
    rng = np.random.default_rng(0)
    y = np.arange(n) < n_positives
    return rng.normal(size=(n, 4)) + y[:, None], y


@pytest.mark.slow
def test_the_graph_does_not_depend_on_the_number_of_threads(fake_pynndescent):
    one, two, many = (GammaKNN(algorithm="approximate", n_jobs=n_jobs).fit(*rare_cases()) for n_jobs in (1, 2, 64))
    graphs = [model._known.negatives.points.graph for model in (one, two, many)]
    assert graphs[0] is not None
    assert np.array_equal(graphs[0], graphs[1])
    assert np.array_equal(graphs[0], graphs[2])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 5), st.integers(1, 6), st.sampled_from(["euclidean", "manhattan"]),
    st.sampled_from(["kd_tree", "brute"]), st.booleans(), st.integers(0, 10**6),
)  # fmt: skip
def test_exact_searches_find_the_nearest_points(m, d, k, metric, algorithm, has_ties, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (m, d)).astype(float) if has_ties else rng.normal(size=(m, d))
    points_set = PointSet(points, metric=metric, algorithm=algorithm)
    expected = all_pairs(points, points, k, search.METRICS[metric])
    found = points_set.nearest(points, k, Threads(1))
    assert np.allclose(found.distance, expected)
    assert np.array_equal(found.position == -1, np.isinf(found.distance))
    own = np.arange(m)
    alone = points_set.nearest(points, k, Threads(1), left_out=own)
    assert np.allclose(alone.distance, all_pairs(points, points, k, search.METRICS[metric], own))
    assert not np.any(alone.position == own[:, None])
    at = alone.position[alone.position >= 0]
    assert len(np.unique(at)) <= m
    assert np.all(at < m)


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "approximate"])
def test_a_query_finds_the_same_alone_in_a_batch_and_on_any_threads(algorithm, monkeypatch):
    monkeypatch.setattr(search, "EXACT_POINTS", 1_000)
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(3_000, 7)), rng.normal(size=(600, 7))
    points_set = PointSet(points, algorithm=algorithm, graph=exact_graph(points))
    assert points_set.algorithm == algorithm
    one = points_set.nearest(queries, 4, Threads(1))
    with Threads(3) as threads:
        many = points_set.nearest(queries, 4, threads)
    assert np.array_equal(one.distance, many.distance)
    assert np.array_equal(one.position, many.position)
    for i in range(0, 600, 97):
        alone = points_set.nearest(queries[i : i + 1], 4, Threads(1))
        assert np.array_equal(alone.distance[0], one.distance[i])
        assert np.array_equal(alone.position[0], one.position[i])


def test_exact_searches_agree_bit_for_bit():
    rng = np.random.default_rng(1)
    points, queries = rng.normal(size=(2_000, 9)), rng.normal(size=(200, 9))
    tree, brute = (PointSet(points, algorithm=a).nearest(queries, 5, Threads(1)) for a in ("kd_tree", "brute"))
    assert np.array_equal(tree.distance, brute.distance)
    assert np.array_equal(tree.position, brute.position)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("built", ["exactly", pytest.param("by pynndescent", marks=pytest.mark.slow)])
def test_the_approximate_search_reports_its_recall(metric, built, monkeypatch):
    monkeypatch.setattr(search, "EXACT_POINTS", 1_000)
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(size=(2_000, 5)), rng.normal(size=(2_000, 5)) + 40])  # two islands
    graph = exact_graph(points) if built == "exactly" else None
    points_set = PointSet(points, algorithm="approximate", metric=metric, graph=graph)
    own = np.arange(len(points))
    recall = points_set.recall(points, 5, Threads(1), own)
    assert 0.97 < recall <= 1
    found = points_set.nearest(points, 5, Threads(1), own)
    exact = PointSet(points, algorithm="brute", metric=metric).nearest(points, 5, Threads(1), own)
    share = np.mean(found.distance <= exact.distance[:, -1:])
    assert abs(share - recall) < 0.02, "the recall of the sample is that of all points"
    assert np.all(found.distance >= exact.distance), "a search finds nothing nearer than the nearest"
    assert not np.any(found.position == own[:, None])
    assert PointSet(points, algorithm="brute").recall(points, 5, Threads(1)) == 1


@pytest.mark.parametrize("entries", [[1], [0, 1]])
def test_a_search_does_not_pass_through_the_point_that_is_left_out(entries):
    """Points 1 and 2 meet only at point 0, which would be the entry as well."""
    points, graph = np.array([[0.0], [1.0], [-2.0]]), np.array([[1, 2], [0, -1], [0, -1]], np.int32)
    found = {}
    for left_out in (-1, 0):
        distance, position = np.empty((1, 2)), np.empty((1, 2), np.int64)
        along_graph(
            points[:1], points, graph, np.array(entries), 1, 3, np.array([left_out]), 2, distance, position
        )  # fmt: skip
        found[left_out] = position[0].tolist()
    assert found == {-1: [0, 1], 0: [1, -1]}


def test_the_recall_of_a_model_is_measured_on_rows_that_are_not_in_the_graph(fake_pynndescent):
    X, y = rare_cases()
    model = GammaKNN(algorithm="approximate", scaling=None).fit(X, y)
    own = np.where(y, -1, np.cumsum(~y) - 1)
    points = model._known.negatives.points
    assert model.recall_ == points.recall(X, 3, Threads(1), own)
    assert model.recall_ < points.recall(X, 3, Threads(1)), "a row that is in the graph finds its neighbours there"


def test_a_graph_has_the_way_back():
    near = np.array([[1, 2], [0, 2], [1, -1], [0, 1]], np.int32)
    assert search._reversed(near, 2).tolist() == [[1, 3], [0, 2], [0, 1], [-1, -1]]


def test_small_sets_are_searched_exactly():
    points = np.random.default_rng(0).normal(size=(500, 3))
    assert PointSet(points, algorithm="approximate").algorithm == "brute"


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(search, "EXACT_POINTS", 10)
    load = builtins.__import__

    def refuse(name, *arguments, **named):
        if name == "pynndescent":
            raise ImportError(name)
        return load(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r"toprank\[neighbours\]"):
        PointSet(np.zeros((50, 2)), algorithm="approximate")


def test_a_linear_map_is_the_same_for_one_row_and_for_many():
    rng = np.random.default_rng(0)
    points, components = rng.normal(size=(300, 20)), rng.normal(size=(6, 20))
    images = mapped(points, components)
    assert np.allclose(images, points @ components.T)
    assert np.array_equal(images[17:18], mapped(points[17:18], components))
    assert mapped(points, None) is points
