from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import Table, check_same_tree, criteria, limits, make_splitter, plain_tree, rows_of, tables
from toprank._core.dtypes import CRITERIA
from toprank.tree.flatten import flatten_tree
from toprank.tree.grower import UNLIMITED, FeatureSampler, Limits, columns_wanted, grow

MODES = ["histogram", "exact"]
NAMES = {code: name for name, code in CRITERIA.items()}


def grown(table, limits, **how):
    splitter = make_splitter(table, **how)
    return splitter, grow(splitter, splitter.root(), limits)


def leaf_sets(splitter, trees):
    return sorted(rows_of(splitter, trees.segment, node) for node in np.flatnonzero(trees.is_leaf))


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(max_rows=14, weights=("none", "whole")), criterion=criteria, min_leaf=st.integers(1, 3))
def test_every_condition_is_the_best_of_its_node_and_every_leaf_has_a_reason(mode, table, criterion, min_leaf):
    """Gains are compared, not conditions: ties are common. Subsets of categories have tests of their own."""
    table = replace(table, n_categories=np.zeros_like(table.n_categories))
    rule = Limits(CRITERIA[criterion], max_depth=3, min_leaf=min_leaf, min_split=4)
    splitter, trees = grown(table, rule, mode=mode)
    rows = {}
    for node in reversed(range(len(trees.root))):  # a node's rows are those of its leaves
        if trees.is_leaf[node]:
            rows[node] = rows_of(splitter, trees.segment, node)
        else:
            rows[node] = rows[trees.left[node]] + rows[trees.right[node]]
    positive, total = table.weights.positive, table.weights.total
    whole = int(positive.sum()), int(total.sum())
    for node, own in rows.items():
        n_positive, n = positive[own].sum(), total[own].sum()
        assert (trees.segment.positive[node], trees.segment.total[node]) == (n_positive, n)
        if n_positive in (0, n) or n < max(4, 2 * min_leaf) or trees.depth[node] == 3:
            assert trees.is_leaf[node]
            continue
        best = reference.best_split(table.for_reference, own, criterion, min_leaf, whole)
        if best is None:
            assert trees.is_leaf[node]
            continue
        left = rows[trees.left[node]]
        found = float(
            reference.gain(criterion, *(int(w[left].sum()) for w in (positive, total)), int(n_positive), int(n), whole)
        )
        assert found == pytest.approx(best[0], rel=1e-9, abs=1e-9), (found, trees.feature[node], left, best)
        assert trees.gain[node] == pytest.approx(best[0], rel=1e-9, abs=1e-9)
    assert sorted(rows[0]) == table.rows


def without_ties(seed, n_categories=4):
    """A table on which no two partitions have the same gain; its last column holds categories, or none."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(40, 3)), 1)
    X[:, 2] = rng.integers(0, 4, 40)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(10**3, 10**4, 40).astype(float)
    return Table(X, np.array([0, 0, n_categories], np.int32), rng.random(40) < 0.3, weight)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("criterion", sorted(CRITERIA))
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_the_one_of_the_reference(mode, criterion, seed):
    table = without_ties(seed, 0 if criterion == "ap" else 4)  # for ap, subsets are taken in rate order only
    splitter, trees = grown(table, Limits(CRITERIA[criterion], max_depth=3, min_leaf=1), mode=mode)
    expected = reference.greedy_leaves(table.for_reference, table.rows, criterion, 3)
    assert leaf_sets(splitter, trees) == sorted(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("labels", ["+++--+", "+--+++"])
@pytest.mark.parametrize("limit", [{}, {"max_leaf_nodes": 3}], ids=["level-wise", "best-first"])
def test_a_side_stays_whole_where_its_best_condition_has_less_ap_than_the_one_above_gave_it(mode, labels, limit):
    """The root parts three positives from --+, whose AP as a side is 1/12 + 3/6: 3 AP = 7/4.

    Its own best condition parts - - from +: 2 (0 + 1/3) + 1 (1 + 0) = 5/3, which is less, but more than n+ = 1.
    """
    is_positive = np.array([label == "+" for label in labels])
    table = Table(np.arange(6.0)[:, None], np.zeros(1, np.int32), is_positive, None)
    rule = Limits(CRITERIA["ap"], min_gain=0.0, **limit)
    side = [3, 4, 5] if labels[0] == labels[1] else [0, 1, 2]
    assert leaf_sets(*grown(table, replace(rule, stop_at_ap_loss=True), mode=mode)) == [[0, 1, 2], [3, 4, 5]]
    without = leaf_sets(*grown(table, rule, mode=mode))
    assert side not in without
    assert len(without) == 3


@pytest.mark.parametrize("mode", MODES)
def test_a_side_of_equal_ap_is_parted_whatever_rounding_says(mode):
    """Right of 1.5 the AP as a side is 1/9 + 2/6, 3 AP = 4/3; the best condition there has 1 (1/3) + 2 (1/2), too."""
    X, labels = np.array([[0.0], [0.0], [1.0], [2.0], [3.0], [3.0]]), np.array([1, 0, 1, 0, 1, 0], bool)
    rule = Limits(CRITERIA["ap"], stop_at_ap_loss=True)
    for weight in (None, np.full(6, 0.1), np.full(6, 3.0)):
        splitter, trees = grown(Table(X, np.zeros(1, np.int32), labels, weight), rule, mode=mode)
        assert [3] in leaf_sets(splitter, trees)
        assert [4, 5] in leaf_sets(splitter, trees)
    side = trees.segment.take(np.flatnonzero(trees.segment.start == 3)[:1])
    assert rule.accept(side, np.array([1.0]), np.array([1.0 + 1e-15])).all()
    assert not rule.accept(side, np.array([1.0]), np.array([1.0 + 1e-9])).any()


@pytest.mark.parametrize("mode", MODES)
def test_the_tree_that_keeps_its_ap_is_the_one_of_the_reference(mode):
    n_stopped = 0
    for seed in range(6):
        table = without_ties(seed, 0)
        splitter, trees = grown(table, Limits(CRITERIA["ap"], max_depth=4, stop_at_ap_loss=True), mode=mode)
        rate = Fraction(table.weights.sum_of_positive, table.weights.sum_of_total)
        expected = reference.greedy_leaves(table.for_reference, table.rows, "ap", 4, carried=rate)
        assert leaf_sets(splitter, trees) == sorted(expected)
        n_stopped += len(reference.greedy_leaves(table.for_reference, table.rows, "ap", 4)) - len(expected)
    assert n_stopped > 0


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(max_rows=14, weights=("none", "whole")), best_first=st.booleans())
def test_whether_a_node_keeps_its_ap_is_told_by_fractions(mode, table, best_first):
    """Node by node, as conditions tie: a node is parted where its best gain reaches what its side was given."""
    table = replace(table, n_categories=np.zeros_like(table.n_categories))
    rule = Limits(CRITERIA["ap"], stop_at_ap_loss=True, max_leaf_nodes=UNLIMITED - best_first)
    splitter, trees = grown(table, rule, mode=mode)
    rows, carried = {}, {}
    for node in reversed(range(len(trees.root))):
        below = [] if trees.is_leaf[node] else rows[trees.left[node]] + rows[trees.right[node]]
        rows[node] = below or rows_of(splitter, trees.segment, node)
    for node in range(len(trees.root)):
        positive, total = (int(weight[node]) for weight in (trees.segment.positive, trees.segment.total))
        if not trees.is_leaf[node]:
            children = trees.left[node], trees.right[node]
            aps = reference.side_average_precisions(table.for_reference, [rows[child] for child in children])
            carried |= dict(zip(children, aps, strict=True))
        if 0 < positive < total:
            best = reference.best_split(table.for_reference, rows[node], "ap")
            needed = total * carried.get(node, Fraction(positive, total)) - positive
            assert trees.is_leaf[node] == (best is None or best[0] < float(needed) - 1e-9), (node, best, needed)


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), random=st.randoms())
def test_row_order_changes_nothing(mode, table, rule, random):
    shuffled = table.take(np.array(random.sample(range(len(table.X)), len(table.X))))
    check_same_tree(plain_tree(table, rule, mode=mode), plain_tree(shuffled, rule, mode=mode))


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(weights=("whole",)), rule=limits())
def test_a_weight_is_a_number_of_rows(mode, table, rule):
    """Weight 2 is the row twice, weight 0 the row left out: the same tree, node by node."""
    repeated = replace(
        table.take(np.repeat(np.arange(len(table.X)), table.sample_weight.astype(int))), sample_weight=None
    )
    check_same_tree(plain_tree(table, rule, mode=mode), plain_tree(repeated, rule, mode=mode))


@given(tables(weights=("quarters",)), criteria)
def test_half_the_weight_on_the_row_twice_is_the_same_tree(table, criterion):
    rule = Limits(CRITERIA[criterion], max_depth=4)
    twice = table.take(np.repeat(np.arange(len(table.X)), 2))
    twice = replace(twice, sample_weight=twice.sample_weight / 2)
    check_same_tree(plain_tree(table, rule), plain_tree(twice, rule), ignore=("gain",))


@given(tables(), limits())
def test_exact_and_histogram_trees_are_equal_where_bins_suffice(table, rule):
    check_same_tree(plain_tree(table, rule, mode="exact"), plain_tree(table, rule, mode="histogram"))


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits(), how=st.sampled_from([{}, {"max_bins": 3}, {"sample_rows": 4}]))
def test_raw_values_follow_the_partition_that_bins_made(mode, table, rule, how):
    """Thresholds part the rows as growing did, also with few bins or bins made from some of the rows."""
    splitter, trees = grown(table, rule, mode=mode, **(how if mode == "histogram" else {}))
    found = flatten_tree(trees, table.weights.unit, table.is_categorical).apply(table.X)
    for node in np.flatnonzero(trees.is_leaf):
        rows = rows_of(splitter, trees.segment, node)
        assert (found[rows] == node).all(), (node, found[rows], table.X[rows])


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(kinds=("neighbours32", "ties", "spread", "category")), rule=limits())
def test_float32_tables_are_widened_and_nothing_else(mode, table, rule):
    narrow = replace(table, X=table.X.astype(np.float32))
    wide = replace(table, X=narrow.X.astype(float))
    tree = plain_tree(narrow, rule, mode=mode)
    check_same_tree(tree, plain_tree(wide, rule, mode=mode))
    splitter, trees = grown(narrow, rule, mode=mode)
    leaves = tree.apply(narrow.X)
    for node in np.flatnonzero(trees.is_leaf):
        assert (leaves[rows_of(splitter, trees.segment, node)] == node).all()


@pytest.mark.parametrize("mode", MODES)
@given(table=tables(), rule=limits())
def test_children_partition_their_parent_and_weights_are_those_of_traversal(mode, table, rule):
    tree = plain_tree(table, rule, mode=mode).check()
    weights, reached = table.weights, [set() for _ in range(len(tree))]
    for row in table.rows:
        for node in reference.path(tree, table.X[row]):
            reached[node].add(row)
    for node in range(len(tree)):
        rows = list(reached[node])
        assert tree.positive[node] == weights.positive[rows].sum() * weights.unit
        assert tree.positive[node] + tree.negative[node] == weights.total[rows].sum() * weights.unit
        if not tree.is_leaf[node]:
            left, right = reached[tree.left[node]], reached[tree.right[node]]
            assert left | right == reached[node]
            assert left
            assert right
            assert not left & right


@given(tables(), limits())
def test_limits_hold(table, rule):
    _, trees = grown(table, rule)
    child, inner = trees.depth > 0, ~trees.is_leaf
    assert (trees.segment.total[child] >= rule.min_leaf).all()
    assert (trees.segment.total[inner] >= rule.min_split).all()
    assert (trees.gain[inner] >= rule.min_gain).all()
    assert trees.depth.max() <= rule.max_depth
    assert (trees.segment.positive[inner] > 0).all()
    assert (trees.segment.positive[inner] < trees.segment.total[inner]).all()


@given(tables(), limits())
def test_best_first_without_a_limit_gives_the_same_leaves(table, rule):
    splitter, trees = grown(table, rule)
    other, best_first = grown(table, replace(rule, max_leaf_nodes=UNLIMITED - 1))
    assert leaf_sets(splitter, trees) == leaf_sets(other, best_first)
    assert sorted(trees.gain) == sorted(best_first.gain)


@given(tables(), limits(), st.integers(1, 6))
def test_best_first_splits_the_largest_gains_first(table, rule, max_leaf_nodes):
    rule = replace(rule, max_leaf_nodes=max_leaf_nodes)
    _, trees = grown(table, rule)
    _, full = grown(table, replace(rule, max_leaf_nodes=UNLIMITED))
    assert trees.is_leaf.sum() == min(max_leaf_nodes, full.is_leaf.sum())
    steps = trees.left[~trees.is_leaf]  # children are numbered in the order of the splits
    order = np.flatnonzero(~trees.is_leaf)[np.argsort(steps)]
    for step, node in enumerate(order):
        later = [other for other in order[step:] if trees.left[other] > trees.left[node]]
        open_now = [other for other in later if other < trees.left[node]]
        assert all(trees.gain[node] >= trees.gain[other] for other in open_now)


def test_best_first_takes_the_larger_of_two_gains():
    """The right child has a clean cut, the left one has not: with three leaves the right one is split."""
    X = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [9, 0], [9, 0], [9, 1], [9, 1]], float)
    labels = np.array([1, 0, 0, 0, 1, 1, 0, 0], bool)
    table = Table(X, np.zeros(2, np.int32), labels, np.array([1, 1, 1, 9, 9, 9, 9, 9.0]))
    _, trees = grown(table, Limits(CRITERIA["gini"], max_leaf_nodes=3))
    _, full = grown(table, Limits(CRITERIA["gini"]))
    assert trees.is_leaf.sum() == 3
    children = full.gain[[full.left[0], full.right[0]]]
    assert trees.gain[~trees.is_leaf].tolist() == [full.gain[0], children.max()]
    assert children.min() < children.max()


@given(tables(max_columns=3), limits())
def test_only_sampled_features_are_used(table, rule):
    class LastFeatureOnly:
        def begin(self, n_roots):
            assert n_roots == 1

        def draw(self, root):
            assert not root.any()
            allowed = np.zeros((len(root), table.X.shape[1]), np.uint8)
            allowed[:, -1] = 1
            return allowed

    last = table.X.shape[1] - 1
    _, trees = grown(table, replace(rule, sample_features=LastFeatureOnly()))
    assert set(trees.feature) <= {-1, last}
    alone = replace(table, X=table.X[:, -1:], n_categories=table.n_categories[-1:])
    _, expected = grown(alone, rule)
    assert np.array_equal(trees.gain, expected.gain)


@pytest.mark.parametrize("leaves", [UNLIMITED, 5])
def test_every_node_asks_for_the_columns_of_its_root(leaves):
    class ColumnOfRoot:
        """Root i may ask for column i alone."""

        def begin(self, n_roots):
            self.n_roots = n_roots

        def draw(self, root):
            assert np.all(root < self.n_roots)
            return np.eye(3, dtype=np.uint8)[root]

    table = without_ties(7)
    assert table.X.shape[1] == 3
    rule = Limits(CRITERIA["gini"], max_leaf_nodes=leaves, sample_features=ColumnOfRoot())
    splitter = make_splitter(table, MODES[0])
    root = splitter.root()
    halves = splitter.split(root, splitter.best_splits(root, rule.criterion, 1, None))
    halves = splitter.with_statistics(root, halves, np.array([True, True]))
    trees = grow(splitter, halves, rule)
    inner = ~trees.is_leaf
    assert {*trees.root[inner]} == {0, 1}
    assert np.array_equal(trees.feature[inner], trees.root[inner])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("criterion", ["gini", "error"])
def test_several_roots_grow_the_trees_they_would_grow_alone(mode, criterion):
    table = without_ties(7)
    rule = Limits(CRITERIA[criterion], max_depth=2)
    splitter = make_splitter(table, mode)
    root = splitter.root()
    halves = splitter.split(root, splitter.best_splits(root, rule.criterion, 1, None))
    halves = splitter.with_statistics(root, halves, np.array([True, True]))
    members = [rows_of(splitter, halves, i) for i in (0, 1)]
    trees = grow(splitter, halves, rule)
    assert trees.root[:2].tolist() == [0, 1]
    for i in (0, 1):
        own = [n for n in np.flatnonzero(trees.root == i) if trees.is_leaf[n]]
        expected = reference.greedy_leaves(table.for_reference, members[i], criterion, 2)
        assert sorted(rows_of(splitter, trees.segment, n) for n in own) == sorted(expected)


@pytest.mark.parametrize("max_leaf_nodes", [UNLIMITED, 4])
def test_a_table_of_one_class_is_one_leaf(max_leaf_nodes):
    table = Table(np.arange(4.0)[:, None], np.zeros(1, np.int32), np.zeros(4, bool), None)
    _, trees = grown(table, Limits(CRITERIA["ap"], max_leaf_nodes=max_leaf_nodes))
    assert trees.is_leaf.tolist() == [True]


@pytest.mark.parametrize("mode", MODES)
def test_training_rows_with_unknown_categories_are_missing_when_scored_too(mode):
    """Code 7 of a column with three categories is missing to the grower, so it must be to the tree."""
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [7.0]])
    labels = np.array([True, True, False, False, False, True])
    table = Table(X, np.array([3], np.int32), labels, np.array([1, 1, 9, 9, 9, 1.0]))
    tree = plain_tree(table, Limits(CRITERIA["gini"]), mode=mode)
    assert tree.apply(X)[5] == tree.apply(np.array([[np.nan]]))[0] == tree.apply(X)[0]


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
