import numpy as np
import pytest

from toprank.tree.categories import N_COINS, N_HALVINGS, PLAIN, CategorySearch, coins
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
