"""Brute force that screens with a matrix product finds what plain brute force finds, bit for bit."""

import numpy as np
import pytest

from toprank._core.threads import Threads
from toprank.rankers.neighbours import search
from toprank.rankers.neighbours.search import PointSet


def both(points, queries, k, left_out, monkeypatch):
    """The neighbours with and without screening."""
    known = PointSet(points, algorithm="brute")
    found = []
    for size in (1, 10**12):
        monkeypatch.setattr(search, "SCREEN_SIZE", size)
        with Threads(2) as threads:
            found.append(known.nearest(queries, k, threads, left_out))
    return found


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_screening_changes_no_bit(k, decimals, monkeypatch):
    """Rounded points have many ties, and copies; one query is so far away that single precision overflows."""
    rng = np.random.default_rng(decimals)
    points = np.round(rng.normal(size=(700, 13)), decimals)
    points[30:60] = points[30]
    queries = np.vstack((points[:300], np.round(rng.normal(size=(100, 13)), decimals)))
    queries[7] *= 1e30
    left_out = np.where(np.arange(400) < 300, np.arange(400), -1)
    screened, plain = both(points, queries, k, left_out, monkeypatch)
    assert np.array_equal(screened.distance, plain.distance)
    assert np.array_equal(screened.position, plain.position)


@pytest.mark.parametrize("scale", [1e-170, 1e-90, 1e-22, 1e-19, 1e16, 1e90, 1e140])
def test_screening_changes_no_bit_at_small_and_huge_scales(scale, monkeypatch):
    """Squares of numbers below 1e-19 vanish in single precision, those below 1e-162 in double precision as well."""
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=(700, 13)) * scale, rng.normal(size=(80, 13)) * scale
    screened, plain = both(points, queries, 3, None, monkeypatch)
    assert np.array_equal(screened.distance, plain.distance)
    assert np.array_equal(screened.position, plain.position)


@pytest.mark.parametrize("tiny", [1e-15, 1e-22, 1e-40])
def test_screening_changes_no_bit_where_small_and_large_points_meet(tiny, monkeypatch):
    rng = np.random.default_rng(1)
    points, queries = rng.normal(size=(700, 5)), rng.normal(size=(80, 5))
    points[:350] *= tiny
    queries[:40] *= tiny
    queries[0] *= 1e300
    screened, plain = both(points, queries, 3, None, monkeypatch)
    assert np.array_equal(screened.distance, plain.distance)
    assert np.array_equal(screened.position, plain.position)


def test_fewer_points_than_neighbours_and_huge_points(monkeypatch):
    points = np.arange(12.0).reshape(4, 3)
    screened, plain = both(points, points, 6, None, monkeypatch)
    assert np.array_equal(screened.position, plain.position)
    assert screened.position[0].tolist() == [0, 1, 2, 3, -1, -1]
    screened, plain = both(points * 1e90, points * 1e90, 2, None, monkeypatch)
    assert np.array_equal(screened.distance, plain.distance)
