import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.tree.feature_sampler import FeatureSampler, columns_wanted

counts = st.integers(1, 5)


@given(n_features=st.integers(1, 6), n_per_split=counts | st.none(), n_per_tree=counts | st.none(), data=st.data())
def test_conditions_draw_from_the_columns_of_their_root(n_features, n_per_split, n_per_tree, data):
    sampler = FeatureSampler(n_features, n_per_split, n_per_tree, np.random.default_rng(0))
    for n_roots in data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)):
        sampler.begin(n_roots)
        root = np.array(data.draw(st.lists(st.integers(0, n_roots - 1), min_size=1, max_size=40)))
        drawn = np.concatenate([sampler.draw(root), sampler.draw(root)])
        assert drawn.dtype == np.uint8
        most = [count for count in (n_per_split, n_per_tree, n_features) if count is not None]
        assert np.all(drawn.sum(axis=1) == min(most))
        for one in np.unique(root):
            used = drawn[np.tile(root, 2) == one].any(axis=0)
            assert used.sum() <= min(n_per_tree or n_features, n_features)


def test_every_level_and_every_root_draws_anew():
    sampler = FeatureSampler(8, None, 2, np.random.default_rng(0))
    seen = []
    for _ in range(20):
        sampler.begin(3)
        seen += [tuple(row) for row in sampler.draw(np.arange(3))]
    assert len(set(seen)) > 15
    assert np.all(np.sum(seen, axis=0) > 5)


def test_all_columns_of_a_root_come_up_in_its_conditions():
    sampler = FeatureSampler(6, 1, 3, np.random.default_rng(1))
    sampler.begin(2)
    root = np.repeat([0, 1], 200)
    drawn = sampler.draw(root)
    for one in (0, 1):
        times = drawn[root == one].sum(axis=0, dtype=int)
        assert np.count_nonzero(times) == 3
        assert times[times > 0].min() > 40


def test_without_columns_of_roots_a_level_draws_nothing():
    """Forests that draw for conditions alone keep the draws they had before there were columns of roots."""
    sampler, rng = FeatureSampler(4, 2, None, np.random.default_rng(3)), np.random.default_rng(3)
    for n_nodes in (3, 1, 4):
        sampler.begin(5)
        chosen = np.argsort(rng.random((n_nodes, 4)), axis=1)[:, :2]
        drawn = sampler.draw(np.arange(n_nodes))
        assert [sorted(row) for row in chosen.tolist()] == [np.flatnonzero(row).tolist() for row in drawn]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(None, None), ("sqrt", 5), ("log2", 4), (3, 3), (99, 30), (np.int64(4), 4), (0.5, 15), (1.0, 30), (0.001, 1)],
)
def test_columns_wanted(wanted, expected):
    assert columns_wanted(wanted, 30) == expected
