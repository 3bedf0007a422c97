"""Checkerboards and boxes: against a loop over the fields, by hand, and for any layout."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from toprank.datasets import (
    BoxPopulation,
    CheckerboardPopulation,
    make_boxes,
    make_checkerboard,
    optimal_auc,
    optimal_roc,
)


def middles(n_fields, n_features):
    """One row in the middle of every field."""
    side = (np.arange(n_fields) + 0.5) / n_fields
    return np.array(list(itertools.product(side, repeat=n_features)))


@pytest.mark.parametrize(("n_fields", "n_features"), [(2, 2), (4, 2), (2, 3), (6, 3)])
def test_neighbouring_fields_differ(n_fields, n_features):
    board = CheckerboardPopulation(n_features, n_fields, positive_rate=0.25, contrast=0.6)
    rows = middles(n_fields, n_features)
    expected = [0.4 if sum(int(x * n_fields) for x in row) % 2 == 0 else 0.1 for row in rows]
    assert board.probability(rows) == pytest.approx(expected)


@pytest.mark.parametrize(("n_fields", "n_features"), [(2, 2), (4, 3), (2, 4)])
def test_no_set_of_fewer_features_says_anything(n_fields, n_features):
    """The mean of eta over any one feature is the positive rate, whatever the others are."""
    board = CheckerboardPopulation(n_features, n_fields, positive_rate=0.3)
    table = board.probability(middles(n_fields, n_features)).reshape((n_fields,) * n_features)
    for axis in range(n_features):
        assert table.mean(axis=axis) == pytest.approx(0.3)


def test_single_features_rank_no_better_than_chance():
    data = make_checkerboard(50_000, random_state=0)
    found = [roc_auc_score(data.y, data.X[:, j]) for j in range(2)]
    assert found == pytest.approx([0.5, 0.5], abs=0.015)
    assert roc_auc_score(data.y, data.probability) == pytest.approx(optimal_auc(data), abs=0.01)


@given(positive_rate=st.floats(0.01, 0.5), contrast=st.floats(0.01, 1.0))
def test_board_curve_by_hand(positive_rate, contrast):
    curve = optimal_roc(CheckerboardPopulation(positive_rate=positive_rate, contrast=contrast))
    assert curve.beta == pytest.approx([0.0, (1.0 + contrast) / 2.0, 1.0])
    assert curve.alpha == pytest.approx(
        [0.0, (1.0 - positive_rate * (1.0 + contrast)) / (2.0 * (1.0 - positive_rate)), 1.0]
    )
    assert curve.area == pytest.approx(0.5 + contrast / (4.0 * (1.0 - positive_rate)))


def test_the_edges_of_the_board():
    assert CheckerboardPopulation().probability([[0.0, 0.0], [1.0, 1.0], [0.5, 0.49]]).round(9).tolist() == [
        0.9,
        0.9,
        0.1,
    ]


@settings(max_examples=40)
@given(
    n_features=st.integers(1, 4),
    n_boxes=st.integers(1, 6),
    noise=st.integers(0, 2),
    seed=st.integers(0, 10**6),
)
def test_boxes_have_their_volume_and_never_overlap(n_features, n_boxes, noise, seed):
    data = make_boxes(
        200, n_features=n_features, n_boxes=n_boxes, layout_seed=seed, n_noise_features=noise, random_state=seed
    )
    boxes = data.population
    assert isinstance(boxes, BoxPopulation)  # which refuses boxes that overlap
    assert boxes.cell_share[:-1] == pytest.approx(0.01)
    assert boxes.cell_share.sum() == pytest.approx(1.0)
    assert boxes.positive_rate == pytest.approx(0.02)
    assert boxes.box_rate[0] / boxes.background_rate == pytest.approx(50.0)
    centres = np.c_[(boxes.lower + boxes.upper) / 2.0, np.full((n_boxes, noise), 0.5)]
    assert np.array_equal(boxes.probability(centres), boxes.box_rate)


def test_the_layout_does_not_change_with_the_rows():
    a, b, c = (
        make_boxes(5, layout_seed=layout, random_state=rows).population for layout, rows in ((1, 0), (1, 9), (2, 0))
    )
    assert np.array_equal(a.lower, b.lower)
    assert not np.array_equal(a.lower, c.lower)


def test_box_curve_by_hand():
    """Half of the cube at 0.4, a quarter at 0.2, the rest at 0.1: three pieces."""
    boxes = BoxPopulation([[0.5, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.5, 0.5]], [0.4, 0.2], 0.1, n_noise_features=1)
    assert boxes.positive_rate == pytest.approx(0.275)
    curve = boxes.optimal_roc()
    assert curve.beta == pytest.approx(np.array([0.0, 0.2, 0.25, 0.275]) / 0.275)
    assert curve.alpha == pytest.approx(np.array([0.0, 0.3, 0.5, 0.725]) / 0.725)


def test_boxes_of_one_rate_share_a_piece_and_may_leave_no_background():
    halves = BoxPopulation([[0.0], [0.5]], [[0.5], [1.0]], [0.3, 0.1], 0.9)
    assert len(halves.optimal_roc().alpha) == 3
    assert halves.positive_rate == pytest.approx(0.2)
    same = BoxPopulation([[0.0], [0.5]], [[0.2], [0.7]], [0.3, 0.3], 0.1)
    assert len(same.optimal_roc().alpha) == 3


def test_a_box_may_be_safer_than_the_background():
    boxes = BoxPopulation([[0.0]], [[0.5]], [0.0], 0.4)
    assert boxes.optimal_roc().beta.tolist() == [0.0, 1.0, 1.0]
    assert boxes.optimal_auc() == pytest.approx(1.0 - 0.375 / 2.0)


@pytest.mark.parametrize(
    ("make", "arguments", "sentence"),
    [
        (make_checkerboard, {"n_features": 1}, "The 'n_features' parameter of make_checkerboard must be an int"),
        (make_checkerboard, {"n_fields": 3}, "'n_fields' parameter of make_checkerboard must be even, so that"),
        (make_checkerboard, {"contrast": 0.0}, "in the range (0, 1]. Got 0.0 instead."),
        (make_checkerboard, {"positive_rate": 0.7}, "give 1.26. Hint: lower one of them."),
        (make_checkerboard, {"n_noise_features": -1}, "'n_noise_features'"),
        (make_boxes, {"n_boxes": 0}, "'n_boxes'"),
        (make_boxes, {"n_samples": 0}, "The 'n_samples' parameter of make_boxes must be"),
        (make_checkerboard, {"random_state": "a"}, "The 'random_state' parameter of make_checkerboard must be"),
        (make_boxes, {"box_volume": 1.0}, "in the range (0, 1). Got 1.0 instead."),
        (
            make_boxes,
            {"box_volume": 0.2},
            "cannot place 3 boxes of volume 0.2 in 3 dimensions: with 2 fields per side",
        ),
        (make_boxes, {"rate_ratio": 1.0}, "in the range (1, inf). Got 1.0 instead."),
        (make_boxes, {"positive_rate": 0.2}, "in the best box. Hint: lower one of them, or raise box_volume."),
        (make_boxes, {"layout_seed": -1}, "'layout_seed'"),
    ],
)
def test_bad_parameters_get_a_sentence(make, arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make(**arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[0.0]], [[0.5, 0.5]], [0.1], 0.2), "Got shapes (1, 1), (1, 2) and (1,). Hint:"),
        (([[0.0]], [[0.5]], [0.1, 0.2], 0.2), "one rate for each box"),
        (([[0.5]], [[0.5]], [0.1], 0.2), "needs 0 <= lower < upper <= 1"),
        (([[0.5]], [[1.5]], [0.1], 0.2), "needs 0 <= lower < upper <= 1"),
        (([[0.0]], [[0.5]], [1.1], 0.2), "The 'box_rate' parameter of BoxPopulation must be numbers in [0, 1]."),
        (([[0.0]], [[0.5]], [0.1], -0.2), "'background_rate'"),
        (([[0.0]], [[0.5]], [0.0], 0.0), "needs cases of both classes, but all rates are 0. Hint:"),
        (([[0.0], [0.4]], [[0.5], [0.6]], [0.1, 0.2], 0.2), "boxes 0 and 1 do. Hint: shrink one of them."),
    ],
)
def test_bad_boxes_get_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        BoxPopulation(*arguments)
