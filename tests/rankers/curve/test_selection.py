"""The first alerts of a tree: how many hits they hold, where they end, and that files are checked."""

import numpy as np
import pytest

from toprank.rankers.curve.selection import TopLabels

SCORE = np.array([0.2, 0.9, 0.5, 0.5, 0.7, 0.1])
CALLED = np.array([[True] * 6, [False, True, True, True, False, False], [False] * 6])
POSITIVE = np.array([False, True, True, False, False, True])


def top(weight=None):
    return TopLabels.from_labels(SCORE, CALLED, POSITIVE, weight)


def test_hits_among_the_first_alerts():
    calls = top()
    assert calls.score.tolist() == [0.9, 0.7, 0.5, 0.5, 0.2, 0.1]
    assert [calls.first_alerts(0, k) for k in (1, 2, 4, 6, 9)] == [(1, 1), (2, 1), (4, 2), (6, 3), (6, 3)]
    assert calls.first_alerts(0, 3) == (3, 1.5)  # one of two rows that tie, of which one is positive
    assert calls.first_alerts(1, 3) == (3, 2)
    assert calls.first_alerts(2, 3) == (0, 0)


def test_where_the_first_alerts_end():
    calls = top()
    assert [calls.threshold(0, k) for k in (1, 2, 3, 4)] == [0.9, 0.7, 0.7, 0.5]  # ties are not split
    assert calls.threshold(1, 3) == 0.5
    assert np.isnan(calls.threshold(0, 0.5))
    assert np.isnan(calls.threshold(2, 3))


def test_weights_are_counts():
    weight = np.array([1, 2, 1, 0, 3, 1.0])
    calls = top(weight)
    rows = np.repeat(np.arange(6), weight.astype(int))
    often = TopLabels.from_labels(SCORE[rows], CALLED[:, rows], POSITIVE[rows], None)
    assert calls.total == often.total == 8
    for k in (1, 2, 5, 6, 7.5):
        assert calls.first_alerts(0, k) == pytest.approx(often.first_alerts(0, k))
        assert calls.threshold(0, k) == pytest.approx(often.threshold(0, k), nan_ok=True)


def test_only_the_top_is_kept_and_nothing_is_said_of_what_lies_below(monkeypatch):
    monkeypatch.setattr("toprank.rankers.curve.selection.ROWS_KEPT", 3)
    calls = top()
    assert (len(calls.score), calls.total) == (3, 6)
    assert calls.first_alerts(0, 3) == (3, 2)
    assert calls.first_alerts(0, 4) is None
    assert np.isnan(calls.threshold(0, 5))
    assert calls.threshold(0, 2) == 0.7


def test_files():
    calls = top(np.array([1, 2, 1, 0, 3, 1.0]))
    back = TopLabels.from_arrays(calls.to_arrays(), 3)
    for name in ("score", "is_flagged", "is_positive", "weight", "total"):
        assert np.array_equal(getattr(back, name), getattr(calls, name))


@pytest.mark.parametrize(
    "broken",
    [
        {"score": np.array([1.0, 2.0, 0.5, 0.4, 0.3, 0.2])},
        {"score": np.array([1.0, np.nan, 0.5, 0.4, 0.3, 0.2])},
        {"weight": np.zeros(6)},
        {"weight": np.ones(5)},
        {"is_positive": np.ones(6)},
        {"called": np.zeros((3, 2), np.uint8)},
        {"called": np.zeros((2, 1), np.uint8)},
        {"total": np.array(3.0)},
    ],
)
def test_broken_files_are_refused(broken):
    with pytest.raises(ValueError, match="do not fit together"):
        TopLabels.from_arrays(top().to_arrays() | broken, 3)
