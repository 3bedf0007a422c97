import numpy as np
import pytest
from hypothesis import given

from grown_trees import audit_tree, grown_cases, make_tree, node, oblique_tree, shared_tree
from toprank.explain import feature_contributions, gain_importance, path_contributions
from toprank.explain.contributions import node_log_odds


@given(grown_cases())
def test_contributions_add_up_to_the_log_odds_of_the_leaf(case):
    contributions, base = feature_contributions(case.tree, case.X)
    assert contributions.shape == case.X.shape
    expected = node_log_odds(case.tree)[case.tree.apply(case.X)]
    np.testing.assert_allclose(base + contributions.sum(axis=1), expected, atol=1e-9)
    paths, length = case.tree.paths(case.X)
    for row in range(min(len(case.X), 5)):
        steps = path_contributions(case.tree, paths[row])
        assert len(steps) == length[row] - 1
        by_feature = np.bincount(case.tree.feature[paths[row, : length[row] - 1]], steps, case.tree.n_features)
        np.testing.assert_allclose(by_feature, contributions[row], atol=1e-9)


def test_the_root_is_not_smoothed_away_and_empty_nodes_are_finite():
    log_odds = node_log_odds(audit_tree())
    assert log_odds[0] == pytest.approx(np.log(40 / 1960))
    one_class = make_tree([node(leaf=0, positive=0, negative=3)])
    assert np.isfinite(node_log_odds(one_class)).all()


def test_features_of_a_weighted_sum_share_its_contribution():
    tree = oblique_tree()
    contributions, base = feature_contributions(tree, np.array([[9.0, 0, 0, 1.0], [np.nan, 0, 0, 1.0]]))
    share = contributions / contributions.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share, [[0.8 / 1.1, 0, 0, 0.3 / 1.1]] * 2)
    np.testing.assert_allclose(base + contributions.sum(axis=1), node_log_odds(tree)[[4, 3]])


@given(grown_cases())
def test_importances_are_shares(case):
    importance = gain_importance(case.tree)
    assert importance.shape == (case.tree.n_features,)
    assert (importance >= 0).all()
    assert importance.sum() == pytest.approx(1.0) or not (case.tree.gain > 0).any()


def test_importances_of_fixed_trees():
    np.testing.assert_allclose(gain_importance(shared_tree()), [0.6, 0.3, 0.0, 0.1])
    np.testing.assert_allclose(gain_importance(oblique_tree()), [0.8 / 1.1, 0, 0, 0.3 / 1.1])
    assert gain_importance(make_tree([node(leaf=0, positive=1, negative=3)])).tolist() == [0, 0, 0, 0]
