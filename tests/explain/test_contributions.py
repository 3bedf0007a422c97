from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from grown_trees import audit_tree, grown_cases, make_tree, node, oblique_tree, shared_tree
from toprank.explain import feature_contributions, gain_importance
from toprank.explain.contributions import node_log_odds
from toprank.tree.scoring import Margin


@given(grown_cases())
def test_contributions_add_up_to_the_log_odds_of_the_leaf(case):
    contributions, base = feature_contributions(case.tree, case.X)
    assert contributions.shape == case.X.shape
    expected = node_log_odds(case.tree)[case.tree.apply(case.X)]
    np.testing.assert_allclose(base + contributions.sum(axis=1), expected, atol=1e-9)
    paths, length = case.tree.paths(case.X)
    for row in range(min(len(case.X), 5)):
        steps = np.diff(node_log_odds(case.tree)[paths[row, : length[row]]])
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
    np.testing.assert_allclose(share, [[0.8 / 1.1, 0, 0, 0.3 / 1.1], [1, 0, 0, 0]])  # the sum of row 1 is missing
    np.testing.assert_allclose(base + contributions.sum(axis=1), node_log_odds(tree)[[4, 3]])


def test_columns_of_a_weighted_sum_share_it_by_how_far_they_took_the_row_that_way():
    """1 x a - 2 x b + 3 x (c is 0) - 1 x (c is 1) > 4, means 10 and 5."""
    tree = make_tree(
        [node(kind=3, threshold=4.0, left=1, right=2, positive=5, negative=9, gain=4),
         node(leaf=1, positive=1, negative=5), node(leaf=0, positive=4, negative=4)],
        n_features=4, oblique_at=[0, 4, 4, 4], oblique_feature=[0, 1, 2, 2], oblique_code=[-1, -1, 0, 1],
        oblique_weight=[1.0, -2.0, 3.0, -1.0], oblique_fill=[10.0, 5.0, 0.0, 0.0],
    ).check()  # fmt: skip
    X = np.array([
        [14.0, 1.0, 1.0, 0.0],  # right: a pushes by 4, b by 8, the category away by 1
        [np.nan, 1.0, 0.0, 0.0],  # right: b by 8, the category by 3
        [8.0, 6.0, 1.0, 0.0],  # left: a by 2, b by 2, the category by 1
        [8.0, 4.0, 2.0, 0.0],  # left: a by 2, b away
        [12.0, 5.0, 2.0, 0.0],  # left, though nobody pushes that way
    ])  # fmt: skip
    contributions, _ = feature_contributions(tree, X)
    rise = np.diff(node_log_odds(tree)[[1, 0, 2]])
    np.testing.assert_allclose(contributions[0], rise[1] * np.array([4, 8, 0, 0]) / 12)
    np.testing.assert_allclose(contributions[1], rise[1] * np.array([0, 8, 3, 0]) / 11)
    np.testing.assert_allclose(contributions[2], -rise[0] * np.array([2, 2, 1, 0]) / 5)
    np.testing.assert_allclose(contributions[3], -rise[0] * np.array([1, 0, 0, 0]))
    np.testing.assert_allclose(contributions[4], -rise[0] * np.array([1, 2, 2, 0]) / 5)


def test_sums_that_know_no_means_compare_with_the_typical_row():
    """Both columns of 0.8 x vat_gap - 0.3 x age_years take the first row up, vat_gap alone the second."""
    X, typical = np.array([[9.0, 0, 0, 1.0], [9.0, 0, 0, 7.0]]), np.array([5.0, 0, 0, 5.0])
    contributions, base = feature_contributions(oblique_tree(), X, typical)
    share = contributions / contributions.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share, [[3.2 / 4.4, 0, 0, 1.2 / 4.4], [1, 0, 0, 0]])
    np.testing.assert_allclose(base + contributions.sum(axis=1), node_log_odds(oblique_tree())[[4, 4]])


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


def test_categories_in_a_sum_count_half_of_what_they_move_it_by():
    """Column 1 moves the sum by 0.5 to -1.5, as much as column 0, of spread 10, in a standard deviation."""
    tree = make_tree(
        [node(kind=3, threshold=0.0, left=1, right=2, positive=5, negative=9, gain=4),
         node(leaf=1, positive=1, negative=5), node(leaf=0, positive=4, negative=4)],
        n_features=2, oblique_at=[0, 4, 4, 4], oblique_feature=[0, 1, 1, 1], oblique_code=[-1, 0, 2, 3],
        oblique_weight=[0.1, 0.5, -1.5, -1.0], oblique_fill=np.zeros(4),
    )  # fmt: skip
    tree = replace(tree, scoring=Margin(np.array([10.0, 7.0]))).check()
    np.testing.assert_allclose(gain_importance(tree), [0.5, 0.5])
