"""Shapes on bins: steps, cuts and Newton sums, against slow and obvious versions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._core.shapes import add_newton_sums, add_step, best_step, cut_into_groups, log_loss, rates_of


def deviation(value, weight, group):
    total = 0.0
    for g in np.unique(group):
        own = group == g
        if weight[own].sum() > 0:
            mean = np.average(value[own], weights=weight[own])
            total += (weight[own] * (value[own] - mean) ** 2).sum()
    return total


@given(
    value=st.lists(st.integers(-5, 5), min_size=1, max_size=7),
    weight=st.lists(st.integers(0, 4), min_size=7, max_size=7),
    most=st.integers(1, 4),
)
def test_groups_have_the_least_deviation_of_all_cuts(value, weight, most):
    value = np.array(value, float)
    weight = np.array(weight[: len(value)], float)
    group = np.empty(len(value), np.int64)
    cut_into_groups(value, weight, most, group)
    assert np.all(np.diff(group) >= 0)
    assert group.max() < most
    found = {
        cuts: deviation(value, weight, np.searchsorted(cuts, np.arange(len(value)), side="right"))
        for n in range(min(most, len(value)))
        for cuts in combinations(range(1, len(value)), n)
    }
    least = min(found.values())
    assert deviation(value, weight, group) == pytest.approx(least, abs=1e-9)
    assert group.max() == min(len(cuts) for cuts, each in found.items() if each < least + 1e-9)


def test_rounding_errors_move_no_group():
    value, weight = np.array([-1.0, -1.0, -1.0, 2.0, 2.0]) / 3, np.ones(5)
    noise = np.array([0, 1e-17, -1e-17, 0, 1e-16])
    groups = np.empty((2, 5), np.int64)
    for each, group in zip((value, value + noise), groups, strict=True):
        cut_into_groups(each, weight, 4, group)
    assert groups.tolist() == [[0, 0, 0, 1, 1]] * 2


@given(seed=st.integers(0, 10_000), direction=st.sampled_from([-1, 0, 1]))
def test_a_step_has_the_best_gain_and_the_wanted_direction(seed, direction):
    rng = np.random.default_rng(seed)
    sums = np.column_stack((rng.normal(size=6), rng.uniform(0.1, 2, 6)))
    step = np.empty(6)
    best_step(sums, np.arange(6), 5, 0.3, 1.0, 0.5, direction, step)
    found = {}
    for cut in range(4):
        sides = sums[: cut + 1].sum(axis=0), sums[cut + 1 : 5].sum(axis=0)
        values = [g / (h + 1.0) for g, h in sides]
        if min(h for _, h in sides) >= 0.3 and (values[1] - values[0]) * direction >= 0:
            found[cut] = sum(g * v for (g, _), v in zip(sides, values, strict=True)), values
    if found:
        cut = max(found, key=lambda c: found[c][0])
        assert step[:5] == pytest.approx(0.5 * np.repeat(found[cut][1], [cut + 1, 4 - cut]))
    else:
        assert not step[:5].any()
    assert step[5] == pytest.approx(0.5 * sums[5, 0] / (sums[5, 1] + 1.3))


def test_scores_and_sums_follow_a_step():
    rng = np.random.default_rng(0)
    codes, others = rng.integers(0, 3, (2, 20)).astype(np.uint8)
    weight, target = rng.uniform(0, 2, 20), rng.uniform(0, 1, 20)
    score, rate = rng.normal(size=20), np.empty(20)
    rates_of(score, rate)
    before, step = score.copy(), np.array([0.01, 0.0, -0.01])
    sums = np.empty((3, 2))
    add_step(codes, step, weight, target, score, rate, others, sums)
    assert score == pytest.approx(before + step[codes])
    assert rate == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-4)
    for code in range(3):
        own = others == code
        assert sums[code, 0] == pytest.approx((weight * (target - rate))[own].sum())
        assert sums[code, 1] == pytest.approx((weight * rate * (1 - rate))[own].sum())


def test_the_loss_is_that_of_soft_targets():
    score, target, weight = np.array([-800.0, 0.3, 800.0]), np.array([0.0, 0.4, 1.0]), np.array([1.0, 2.0, 0.5])
    rate = 1 / (1 + np.exp(-0.3))
    wanted = -2 * (0.4 * np.log(rate) + 0.6 * np.log(1 - rate))
    assert log_loss(score, target, weight) == pytest.approx(wanted)


def test_newton_sums_are_those_of_a_dense_design():
    rng = np.random.default_rng(1)
    dense = np.column_stack((np.ones(30), rng.random((30, 3)) < 0.5)).astype(float)
    active = np.full((30, 4), -1, np.int32)
    for i, row in enumerate(dense):
        terms = np.flatnonzero(row)
        active[i, : len(terms)] = terms
    weight, target, beta = rng.uniform(0, 2, 30), rng.random(30), rng.normal(size=4)
    weight[:3] = 0
    gradient, curvature = np.zeros(4), np.zeros((4, 4))
    add_newton_sums(active, weight, target, beta, gradient, curvature)
    rate = 1 / (1 + np.exp(-(dense @ beta)))
    assert gradient == pytest.approx(dense.T @ (weight * (target - rate)))
    full = dense.T @ (dense * (weight * rate * (1 - rate))[:, None])
    assert curvature == pytest.approx(np.triu(full))
