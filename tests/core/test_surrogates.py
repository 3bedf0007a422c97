"""Passes of boosting over all rows: those without branches give what the obvious ones do, bit for bit."""

import numpy as np
import pytest

from toprank._core.sampling import draw_rows
from toprank._core.surrogates import (
    add_scaled,
    below_top,
    class_tops,
    logistic_slopes,
    plain_below_top,
    plain_tops,
    sum_in_units,
)

N = 700  # more than the lanes of `plain_tops`, and no multiple of them


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    score = rng.normal(scale=10.0, size=N)
    return score, (rng.random(N) < 0.8).astype(float), rng.random(N) < 0.1


@pytest.mark.parametrize("alpha", [1.0, 0.7])
def test_weights_0_and_1_take_the_way_without_logarithms(rows, alpha):
    score, weight, is_positive = rows
    tops = class_tops(score, weight, is_positive, alpha)
    assert plain_tops(score, weight, is_positive, alpha) == (*tops, 0)
    plain, general = np.empty(N, np.float32), np.empty(N, np.float32)
    plain_below_top(score, weight, is_positive, alpha, *tops, plain)
    below_top(score, weight, is_positive, alpha, *tops, general)
    assert np.array_equal(plain, general)
    assert plain[weight == 0].max() == -np.inf
    assert plain.max() == 0


def test_other_weights_are_counted(rows):
    score, weight, is_positive = rows
    weight[[3, 5]] = 0.5, 2.0
    assert plain_tops(score, weight, is_positive, 1.0)[2] == 2


def test_a_class_without_weight_has_no_top(rows):
    score, weight, is_positive = rows
    weight[is_positive] = 0.0
    out = np.empty(N, np.float32)
    tops = class_tops(score, weight, is_positive, 1.0)
    assert tops[1] == -np.inf
    plain_below_top(score, weight, is_positive, 1.0, *tops, out)
    assert np.all(out[is_positive] == -np.inf)


def lot(seed, turn, row):
    """SplitMix64 of a row in whole numbers, as a share of 1."""
    wrap = 2**64
    z = (seed * 0xA0761D6478BD642F + turn * 0xD1B54A32D192ED03 + (row + 1) * 0x9E3779B97F4A7C15) % wrap
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % wrap
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % wrap
    return ((z ^ (z >> 31)) >> 11) / 2**53


@pytest.mark.parametrize("share", [0.8, 0.3, 2.0**-53])
def test_rows_are_drawn_by_their_lot(rows, share):
    _, weight, is_positive = rows
    weight[::7] = 2.5
    out = np.empty(N)
    with np.errstate(over="ignore"):  # numpy warns of what is meant, with the compiler off
        counts = draw_rows(11, 3, 40, share, weight, is_positive, out)
    expected = np.array([weight[i] if lot(11, 3, 40 + i) < share else 0.0 for i in range(N)])
    assert np.array_equal(out, expected)
    assert counts == ((out[~is_positive] > 0).sum(), (out[is_positive] > 0).sum())


def test_slopes_are_rounded_to_single_precision_as_numpy_rounds_them(rows):
    rng = np.random.default_rng(1)
    _, weight, is_positive = rows
    rate, rest, factor = rng.random(N, np.float32), rng.random(N, np.float32), np.float32(0.37)
    own = 3.3 * weight
    gradient, curvature = np.empty(N, np.float32), np.empty(N, np.float32)
    logistic_slopes(rate, rest, own, is_positive, gradient, curvature)
    assert np.array_equal(gradient, (own * np.where(is_positive, -rest, rate)).astype(np.float32))
    assert np.array_equal(curvature, (own * (rate * rest)).astype(np.float32))
    total = gradient.copy()
    add_scaled(total, factor, curvature)
    assert np.array_equal(total, gradient + factor * curvature)


def test_sums_in_units_are_the_same_for_both_precisions():
    values = np.random.default_rng(0).random(N, np.float32)
    assert sum_in_units(values, 2.0**32) == sum_in_units(values.astype(np.float64), 2.0**32)
