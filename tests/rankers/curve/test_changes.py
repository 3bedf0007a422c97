"""Rules that come, go, change and stay between two trees: names may hold digits, texts may be equal."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from grown_trees import make_tree, node
from toprank import TAOTree
from toprank.explain import PathCounts
from toprank.rankers.curve.changes import changes_table, leaf_rule_changes, positive_rules
from toprank.tree.columns import Column


def labelled(tree, columns, positive_nodes):
    """What `leaf_rule_changes` looks at in a tree whose nodes are written down."""
    label = np.where(tree.is_leaf, np.isin(np.arange(len(tree)), positive_nodes), -1)
    return SimpleNamespace(tree_=tree, columns_=columns, _label=label, path_counts_=PathCounts.none(tree))


def stump(feature, threshold=5.0, **values):
    root = node(kind=1, feature=feature, threshold=threshold, left=1, right=2, positive=10, negative=30) | values
    return make_tree([root, node(leaf=1, positive=1, negative=24), node(leaf=0, positive=9, negative=6)])


def changes_of(before, after, columns, positive=((2,), (2,))):
    trees = (labelled(tree, columns, nodes) for tree, nodes in zip((before, after), positive, strict=True))
    return changes_table(leaf_rule_changes(*trees))


NUMBERED = tuple(Column(f"x{i}") for i in range(4))


def test_digits_of_names_are_no_numbers():
    changes = changes_of(stump(0), stump(1), NUMBERED)
    assert changes["change"] == ["dropped", "added"]
    assert [rule.split()[0] for rule in changes["rule"]] == ["x0", "x1"]
    assert changes_of(stump(1), stump(1, 7.0), NUMBERED)["change"] == ["changed"]
    assert changes_of(stump(1), stump(1), NUMBERED)["change"] == ["kept"]


def test_the_other_side_of_a_column_is_another_rule():
    assert changes_of(stump(0), stump(0, 6.0), NUMBERED, ((1,), (2,)))["change"] == ["dropped", "added"]


def test_digits_of_categories_are_no_numbers():
    X = pd.DataFrame({"group": ["age 10", "age 12", "age 14"] * 12})
    trees = [
        TAOTree(split="axis", max_depth=1, cv=0).fit(X, (X["group"] == name).astype(int))
        for name in ("age 10", "age 12")
    ]
    changes = changes_table(leaf_rule_changes(*trees))
    assert changes["change"] == ["dropped", "added"]
    assert ["age 10" in rule for rule in changes["rule"]] == [True, False]


def weighted(features, weights, threshold=1.0):
    return make_tree(
        [
            node(kind=3, threshold=threshold, left=1, right=2, positive=10, negative=30),
            node(leaf=1, positive=1, negative=24),
            node(leaf=0, positive=9, negative=6),
        ],
        oblique_at=[0, 2, 2, 2], oblique_feature=features, oblique_weight=weights,
    )  # fmt: skip


def test_of_weighted_sums_the_columns_count():
    before = weighted([0, 1], [0.8, -0.3])
    assert changes_of(before, weighted([0, 1], [0.3, 0.9], 2.0), NUMBERED)["change"] == ["changed"]
    assert changes_of(before, weighted([0, 2], [0.8, -0.3]), NUMBERED)["change"] == ["dropped", "added"]


def two_alike():
    """A tree with two leaves whose rules read the same, for two columns have one name."""
    tree = make_tree(
        [
            node(kind=1, feature=0, threshold=5.0, left=1, right=2, positive=20, negative=60),
            node(kind=1, feature=1, threshold=5.0, left=3, right=4, positive=10, negative=30),
            node(kind=1, feature=1, threshold=5.0, left=5, right=6, positive=10, negative=30),
            node(leaf=2, positive=1, negative=25),
            node(leaf=0, positive=9, negative=5),
            node(leaf=1, positive=9, negative=6),
            node(leaf=3, positive=1, negative=24),
        ]
    )
    return labelled(tree, (Column("gap"), Column("gap"), Column("c"), Column("d")), (4, 5))


def test_rules_that_read_the_same_are_kept_apart(monkeypatch):
    # Conditions of a way stand by what they contribute: here both leaves are told in the same words.
    tree = two_alike()
    monkeypatch.setattr("toprank.explain.conditions.range_text", lambda name, *_: name)
    rules = positive_rules(tree)
    assert rules[0].text() == rules[1].text()
    assert [(rule.leaf, rule.n) for rule in rules] == [(1, 14), (2, 15)]
    changes = changes_table(leaf_rule_changes(tree, tree))
    assert changes["change"] == ["kept", "kept"]
    assert changes["n_before"] == changes["n_after"] == [14, 15]
    gone = changes_table(leaf_rule_changes(tree, labelled(stump(2), tree.columns_, (2,))))
    assert gone["change"] == ["dropped", "dropped", "added"]
    assert gone["n_before"][:2] == [14, 15]
    assert gone["training_rate_after"][2] == pytest.approx(0.6)
