"""Surrogates of average precision against their definitions and against numerical derivatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker_cases import fewer
from toprank.metrics import average_precision
from toprank.rankers.boosting.losses import THIS_PROCESS, Blend, ExponentialAP, Logistic, SigmoidAP

PAIRWISE = SigmoidAP(1.5, exact_pairs=10**9)
LOSSES = [Logistic(), ExponentialAP(), ExponentialAP(0.5), ExponentialAP(3.0), PAIRWISE, SigmoidAP(5.0)]

TOY_X = np.arange(-6.0, 8.0)
TOY_Y = np.isin(TOY_X, (-3.0, -2.0, 6.0))
"""Table 1 of the paper."""


def some_scores(n, seed, scale=2.0):
    rng = np.random.default_rng(seed)
    is_positive = rng.random(n) < 0.25
    is_positive[:2] = True, False
    return rng.normal(size=n) * scale, is_positive, rng.random(n) + 0.1


def derivatives(loss, score, is_positive, weight):
    """First and second derivatives by differences of high order."""
    first, second = np.zeros(len(score)), np.zeros(len(score))
    steps, h = np.arange(-3, 4), 3e-3
    for i in range(len(score)):
        values = []
        for step in steps:
            moved = score.copy()
            moved[i] += step * h
            values.append(loss.value(moved, is_positive, weight))
        first[i] = np.dot([-1, 9, -45, 0, 45, -9, 1], values) / (60 * h)
        second[i] = np.dot([2, -27, 270, -490, 270, -27, 2], values) / (180 * h * h)
    return first, second


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@fewer(3)
@given(seed=st.integers(0, 10_000))
def test_slopes_are_the_derivatives_up_to_one_factor(loss, seed):
    score, is_positive, weight = some_scores(25, seed)
    slopes = loss.slopes(score, is_positive, weight)
    first, second = derivatives(loss, score, is_positive, weight)
    factor = np.abs(first).sum() / np.abs(slopes.gradient).sum()
    np.testing.assert_allclose(factor * slopes.gradient, first, atol=1e-6 * np.abs(first).max())
    assert np.all(second <= factor * slopes.curvature + 1e-6 * factor * slopes.curvature.max())
    assert np.all(slopes.curvature > 0)
    if isinstance(loss, Logistic):
        np.testing.assert_allclose(factor * slopes.curvature, second, atol=1e-7)


def test_the_bound_of_the_exponential_is_the_curvature_itself_where_shares_are_small():
    score, is_positive, weight = some_scores(400, 0)
    loss = ExponentialAP()
    slopes = loss.slopes(score, is_positive, weight)
    first, second = derivatives(loss, score[:400], is_positive, weight)
    share = slopes.curvature / slopes.curvature.sum()
    factor = np.abs(first).sum() / np.abs(slopes.gradient).sum()
    small = (share < 1e-3) & ~is_positive
    np.testing.assert_allclose(second[small] / (factor * slopes.curvature[small]), 1.0, atol=0.01)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_weight_2_is_the_case_twice_and_weight_0_none(loss):
    score, is_positive, _ = some_scores(30, 1)
    weight = np.random.default_rng(2).integers(0, 3, 30).astype(float)
    weight[:2] = 2.0
    times = weight.astype(int)
    twice = [np.repeat(values, times) for values in (score, is_positive)]
    kept = weight > 0
    assert loss.slopes(score, is_positive, weight).gradient[weight == 0].tolist() == [0.0] * int((weight == 0).sum())
    if not isinstance(loss, SigmoidAP):  # to which a copy of a positive is another case, above it by one half
        one = loss.slopes(score, is_positive, weight).gradient
        two = loss.slopes(*twice, np.ones(times.sum())).gradient
        at = np.cumsum(times) - times
        np.testing.assert_allclose(one[kept], two[at[kept]] * weight[kept], rtol=1e-5)
        assert loss.value(score, is_positive, weight) == pytest.approx(loss.value(*twice, np.ones(times.sum())))


@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.3, 1.0, 4.0]), scale=st.sampled_from([0.1, 2.0, 30.0]))
def test_the_grid_is_the_sum_over_pairs_within_its_bound(seed, alpha, scale):
    score, is_positive, weight = some_scores(600, seed, scale)
    pairs, grid = (SigmoidAP(alpha, exact_pairs=n) for n in (10**9, 0))
    exact, fast = (loss._sums(score, is_positive, weight, THIS_PROCESS) for loss in (pairs, grid))
    most = grid.grid_error * weight.sum() * 1.001 + 1e-9
    assert np.abs(exact.negative - fast.negative).max() <= most
    assert np.abs(exact.all - fast.all).max() <= 2 * most
    one, two = (loss.slopes(score, is_positive, weight) for loss in (pairs, grid))
    np.testing.assert_allclose(two.gradient, one.gradient, atol=2e-4 * np.abs(one.gradient).max())
    np.testing.assert_allclose(two.curvature, one.curvature, atol=2e-4 * one.curvature.max())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("shift", [-1e6, 0.0, 1e6])
def test_no_range_of_scores_overflows(loss, shift):
    score, is_positive, weight = some_scores(50, 3, scale=300.0)
    slopes = loss.slopes(score + shift, is_positive, weight)
    assert np.isfinite(slopes.gradient).all()
    assert np.isfinite(slopes.curvature).all()
    if isinstance(loss, ExponentialAP):  # sums of shares do not vanish, however far apart the classes are
        assert slopes.gradient[is_positive].sum() == pytest.approx(-weight[is_positive].sum() / 2)


@pytest.mark.parametrize("loss", [ExponentialAP(), SigmoidAP(), SigmoidAP(exact_pairs=0)], ids=str)
def test_weights_that_differ_by_a_million_millions(loss):
    score, is_positive, weight = some_scores(40, 4)
    weight[5:8] = 1e12
    slopes = loss.slopes(score, is_positive, weight)
    assert np.isfinite(slopes.gradient).all()
    assert np.abs(slopes.gradient).max() > 0


def test_a_light_case_far_above_the_others_has_its_share():
    score, is_positive = np.array([10.0, -40.0, 0.0, 1.0]), np.array([True, True, False, False])
    gradient = ExponentialAP().slopes(score, is_positive, np.array([1e-12, 1.0, 1.0, 1.0])).gradient
    np.testing.assert_allclose(gradient[:2], [-0.5, 0.0], atol=1e-6)
    light = ExponentialAP().slopes(score, is_positive, np.array([1e-13, 1e-13, 1.0, 1.0])).gradient
    assert light[:2].sum() == pytest.approx(-light[2:].sum())


def test_the_sigmoid_comes_near_average_precision_as_it_gets_steeper():
    score, is_positive, _ = some_scores(200, 5)
    ones = np.ones(200)
    far = [abs(SigmoidAP(a).value(score, is_positive, ones) - (1 - average_precision(is_positive, score)))
           for a in (1.0, 10.0, 1000.0)]  # fmt: skip
    assert far[0] > far[1] > far[2]
    assert far[2] < 0.05  # a positive counts itself by one half


def test_the_three_orders_of_the_toy():
    """Section 3.4 prints 0.33, 0.29 and 0.22."""
    found = [average_precision(TOY_Y, theta * TOY_X) for theta in (1.0, -1.0, 0.0)]
    assert found == pytest.approx([0.3238, 0.2937, 0.2143], abs=5e-4)


@pytest.mark.parametrize("loss", [ExponentialAP(), SigmoidAP()], ids=str)
def test_both_surrogates_of_the_toy_are_lowest_where_average_precision_is_highest(loss):
    theta = np.linspace(-3, 3, 601)
    values = [loss.value(t * TOY_X, TOY_Y, np.ones(14)) for t in theta]
    assert theta[int(np.argmin(values))] > 0
    shifted = [loss.value(5.0 + t * TOY_X, TOY_Y, np.ones(14)) for t in theta]
    np.testing.assert_allclose(shifted, values, atol=1e-12)  # theta_0 changes nothing


@pytest.mark.parametrize("score", [9.5, 10.5, 20.0, 60.0])
def test_logistic_slopes_are_exact_where_rates_are_nearly_1(score):
    """In single precision the rate is 1, and 1 minus the rate was 0: trees of heavy positives could not split."""
    weight = np.array([1e9, 1.0])
    slopes = Logistic().slopes(np.array([score, -score]), np.array([True, False]), weight)
    miss = weight / (1 + np.exp(np.float64(score)))
    np.testing.assert_allclose(slopes.gradient, [-miss[0], miss[1]], rtol=1e-3)
    np.testing.assert_allclose(slopes.curvature, miss, rtol=1e-3)


def test_a_blend_gives_each_loss_its_share_of_the_curvature():
    score, is_positive, weight = some_scores(100, 6)
    plain = Logistic().slopes(score, is_positive, weight)
    both = Blend(ExponentialAP(), 0.8).slopes(score, is_positive, weight)
    assert plain.curvature.sum() / both.curvature.sum() == pytest.approx(0.2)
