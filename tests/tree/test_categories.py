import numpy as np
import pytest

from toprank.tree.categories import N_COINS, N_HALVINGS, PLAIN, CategorySearch, coins, levels_worth_points
from toprank.tree.weights import RowWeights, integer_weights


def test_coins_are_fair_and_always_the_same():
    heads = coins()
    assert heads.shape == (N_HALVINGS, 256, 2, N_COINS + 1)
    assert heads[0, 0, 0, :9].tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 6]
    flips = np.diff(heads, axis=-1)
    assert set(np.unique(flips)) == {0, 1}
    share = flips.reshape(-1, N_COINS).mean(axis=1)
    assert share.mean() == pytest.approx(0.5, abs=0.005)
    assert share.std() == pytest.approx(0.5 / np.sqrt(N_COINS), rel=0.1)


def test_rules_are_in_cases_and_none_means_the_plain_search():
    weights = integer_weights(np.array([True, False]), np.array([0.25, 0.5]))
    assert CategorySearch().rules(weights) == PLAIN
    smooth, least, most, *case = CategorySearch(5.0, 20, 3).rules(weights)
    assert (smooth, least, most) == (5.0, 20.0, 3.0)
    assert np.array(case) * weights.unit == pytest.approx([1.0, 1.0])
    assert CategorySearch(0.0).rules(weights)[2] == np.inf
    costly = RowWeights(np.array([8, 0]), np.array([8, 2]), 0.5, (4.0, 1.0))
    assert CategorySearch(0.0).rules(costly)[3:] == (8.0, 2.0)


def test_levels_of_noise_get_no_points_and_real_ones_do():
    rng, search = np.random.default_rng(0), CategorySearch(10.0, 10)
    total = np.append(rng.integers(20, 60, 120), [5, 0]).astype(float)
    noise = rng.binomial(total.astype(int), 0.2)
    real = rng.binomial(total.astype(int), np.resize([0.1, 0.4], 122))
    assert not levels_worth_points(noise, total, search).any()
    assert levels_worth_points(real, total, search).tolist() == [True] * 120 + [False] * 2
    assert levels_worth_points(noise, total, CategorySearch()).tolist() == [True] * 121 + [False]
    assert levels_worth_points(np.zeros(122), total, search).tolist() == [True] * 120 + [False] * 2  # one class only
