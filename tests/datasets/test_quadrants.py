"""Images of strokes: the rule of their labels against a loop over pixels, what they look like, parameters."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toprank.datasets import QuadrantPopulation, make_quadrants, optimal_auc
from toprank.datasets.quadrants import diagonal_excess, draw_strokes


def excess_by_hand(image, size):
    """Ink on one diagonal less ink on the other, pixel by pixel."""
    excess = 0.0
    for row in range(size):
        for column in range(size):
            on_diagonal = (row < size // 2) == (column < size // 2)
            excess += image[row * size + column] * (1 if on_diagonal else -1)
    return abs(excess)


def test_labels_follow_the_ink_of_the_quadrants():
    data = make_quadrants(300, size=10, noise=0.0, ratio=2.0, random_state=0)
    expected = [excess_by_hand(image, 10) for image in data.X]
    assert diagonal_excess(data.X, 10) == pytest.approx(expected)
    assert np.array_equal(data.y == 1, np.array(expected) >= data.population.least_excess)
    assert np.array_equal(data.probability, data.population.probability(data.X))
    assert np.array_equal(data.probability, data.y)


def test_images_look_like_digits():
    X = draw_strokes(np.random.default_rng(0), 400, 28)
    assert X.shape == (400, 784)
    assert X.min() == 0.0
    assert X.max() == 1.0
    assert np.mean(X == 0.0) == pytest.approx(0.8, abs=0.03)
    images = X.reshape(-1, 28, 28)
    assert np.corrcoef(images[:, :, 1:].ravel(), images[:, :, :-1].ravel())[0, 1] > 0.7
    assert not images[:, [0, -1]].any(axis=(1, 2)).mean() > 0.1  # the frame is empty
    half = diagonal_excess(X, 28) >= QuadrantPopulation().least_excess
    assert half.mean() == pytest.approx(0.5, abs=0.08)


def test_classes_have_their_ratio_and_labels_their_noise():
    data = make_quadrants(6000, size=8, ratio=4.0, noise=0.2, random_state=1)
    is_dominated = data.probability == 0.8
    assert is_dominated.mean() == pytest.approx(0.2, abs=0.02)
    assert data.y[is_dominated].mean() == pytest.approx(0.8, abs=0.04)
    assert data.y[~is_dominated].mean() == pytest.approx(0.2, abs=0.02)
    assert data.y.mean() == pytest.approx(data.population.positive_rate, abs=0.02)
    # Of the positives 0.2 * 0.8 / 0.32 = 1/2 come first, of the negatives 0.2 * 0.2 / 0.68 = 1/17.
    assert optimal_auc(data) == pytest.approx(0.5 + (1 / 2 - 1 / 17) / 2)


def test_the_same_state_gives_the_same_rows():
    one, two, other = (make_quadrants(50, size=8, random_state=state) for state in (3, 3, 4))
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.y, two.y)
    assert not np.array_equal(one.X, other.X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_samples": 0}, "The 'n_samples' parameter of make_quadrants must be"),
        ({"size": 6}, "The 'size' parameter of make_quadrants must be"),
        ({"size": 9}, "must be even, so that quadrants have whole pixels. Got 9 instead."),
        ({"ratio": 0.5}, "in the range [1, inf). Got 0.5 instead."),
        ({"noise": 0.5}, "in the range [0, 0.5). Got 0.5 instead."),
        ({"random_state": -1}, "The 'random_state' parameter of make_quadrants must be"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_quadrants(**parameters)
