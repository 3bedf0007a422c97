from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone

import reference
from tables import make_splitter, plain_tree, ranked, tables
from toprank import MetaAP
from toprank._core.dtypes import GINI
from toprank.errors import InputError
from toprank.metrics import RocCurve, average_precision
from toprank.rankers.meta.pruning import PENALTIES_TRIED, penalties_to_try
from toprank.tree.grower import Limits
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA
from toprank.tree.meta.prune import collapse_penalties, link_penalties, merge_path, prune, prune_tree
from toprank.tree.meta.shake import optimal_order

objectives = st.sampled_from([AVERAGE_PRECISION, ROC_AREA])


@st.composite
def meta_trees(draw):
    """A small meta-tree with at least one meta-split; min_gain=-inf also lets splits in that lower the AP."""
    table = draw(tables(max_rows=25, weights=("none", "whole", "quarters")))
    objective, min_gain = draw(objectives), draw(st.sampled_from([0.0, -np.inf]))
    limits = Limits(objective.criterion, max_depth=draw(st.integers(1, 2)), min_leaf=1, min_split=2, min_gain=min_gain)
    meta = grow_meta_tree(make_splitter(table), objective, 3, limits)
    assume(len(meta.left) > 1)
    return meta


def ranking_ap(meta, leaves):
    """AP of the leaves in this order, cases of a leaf tied, from equation (2) of the paper, exactly."""
    found = seen = 0
    value = Fraction(0)
    for leaf in leaves:
        found, seen = found + int(meta.positive[leaf]), seen + int(meta.total[leaf])
        value += Fraction(int(meta.positive[leaf]), int(meta.positive[0])) * Fraction(found, seen)
    return value


def ranking_auc(meta, leaves):
    """AUC of the leaves in this order, from pairs of cases, exactly."""
    return reference.area_under_roc([(p := int(meta.positive[i]), int(meta.total[i]) - p) for i in leaves])


MEASURES = {"ap": ranking_ap, "auc": ranking_auc}


def prunings(meta, node=0):
    """Leaves, from left to right, of every tree that turning nodes into leaves can give."""
    yield [node]
    if meta.left[node] >= 0:
        for left, right in product(prunings(meta, meta.left[node]), prunings(meta, meta.right[node])):
            yield left + right


def kept_leaves(meta, penalty, alpha, node=0):
    """Leaves that the rule `penalty <= alpha becomes a leaf` gives, without `MetaTree.collapsed`."""
    if meta.left[node] < 0 or penalty[node] <= alpha:
        return [int(node)]
    return [leaf for child in (meta.left[node], meta.right[node]) for leaf in kept_leaves(meta, penalty, alpha, child)]


def interesting_penalties(penalty):
    steps = np.unique(penalty[np.isfinite(penalty)])
    return sorted({0.0, *np.maximum(steps, 0), *np.maximum((steps[:-1] + steps[1:]) / 2, 0), 2 * abs(steps[-1]) + 0.1})


@given(meta=meta_trees(), objective=objectives)
def test_the_pruned_tree_is_the_best_of_all_prunings(meta, objective):
    """For both objectives, whichever one the meta-tree was grown for."""
    penalty, measure = collapse_penalties(meta, objective), MEASURES[objective.name]
    everything = [(measure(meta, leaves), len(leaves)) for leaves in prunings(meta)]
    for alpha in interesting_penalties(penalty):
        leaves = kept_leaves(meta, penalty, alpha)
        best = max(value - Fraction(alpha) * size for value, size in everything)
        found = measure(meta, leaves) - Fraction(alpha) * len(leaves)
        assert float(best - found) <= 1e-12, (alpha, leaves, penalty)


@given(meta=meta_trees(), objective=objectives, alpha=st.floats(0, 0.5, exclude_min=True))
def test_prune_turns_nodes_into_leaves_and_keeps_the_rest(meta, objective, alpha):
    penalty = collapse_penalties(meta, objective)
    expected = kept_leaves(meta, penalty, alpha)
    pruned = prune(meta, penalty, alpha)
    leaves = pruned.leaves()
    assert pruned.positive[leaves].tolist() == meta.positive[expected].tolist()
    assert pruned.total[leaves].tolist() == meta.total[expected].tolist()
    assert [tree is None for tree in pruned.inner] == pruned.is_leaf.tolist()
    assert len(pruned.left) == 2 * len(leaves) - 1


@given(meta=meta_trees(), objective=objectives)
def test_the_sequence_is_nested_and_ends_at_the_root(meta, objective):
    penalty = collapse_penalties(meta, objective)
    inner = np.flatnonzero(~meta.is_leaf)
    assert np.isinf(penalty[meta.is_leaf]).all()
    assert np.isfinite(penalty[inner]).all()
    for node in inner:
        for child in (meta.left[node], meta.right[node]):
            assert meta.is_leaf[child] or penalty[child] <= penalty[node]
    for small, large in pairwise(interesting_penalties(penalty)):
        assert {*inner[penalty[inner] <= small]} <= {*inner[penalty[inner] <= large]}
    assert len(prune(meta, penalty, max(penalty[0], 1e-300)).left) == 1
    assert prune(meta, penalty, 0.0) is meta


@given(meta=meta_trees())
def test_a_last_link_costs_half_the_cross_product_of_the_two_parts(meta):
    """Of the AUC: 1/2 (p_l n_r - p_r n_l) / (P N)."""
    stump = meta.collapsed(np.flatnonzero(meta.depth == 1))
    (p_left, p_right), (t_left, t_right) = stump.positive[1:].tolist(), stump.total[1:].tolist()
    cross = p_left * (t_right - p_right) - p_right * (t_left - p_left)
    cost = Fraction(cross, 2 * (p_left + p_right) * (t_left + t_right - p_left - p_right))
    assert collapse_penalties(stump, ROC_AREA)[0] == pytest.approx(float(cost), abs=1e-15)


@given(meta=meta_trees())
def test_penalties_tried_give_every_tree_of_the_sequence(meta):
    penalty = collapse_penalties(meta)
    tried = penalties_to_try(penalty[np.isfinite(penalty)])
    assert tried[0] == 0.0
    assert np.all(np.diff(tried) > 0)
    steps = np.unique(np.maximum(penalty[np.isfinite(penalty)], 0.0))
    apart = np.diff(steps) > 1e-9  # steps that floats can hold a value between
    sizes = {len(kept_leaves(meta, penalty, alpha)) for alpha in tried}
    expected = {len(kept_leaves(meta, penalty, steps[i])) for i in np.flatnonzero(np.append(apart, True))}
    assert expected <= sizes


@given(meta=meta_trees(), values=st.lists(st.integers(-8, 8), min_size=64, max_size=64))
def test_links_of_any_sum_over_leaves_give_the_best_pruning_and_of_the_best_the_smallest(meta, values):
    value = np.resize(np.array(values, float), len(meta.left))
    penalty = link_penalties(meta.left, meta.right, value)
    everything = [(value[leaves].sum(), len(leaves)) for leaves in prunings(meta)]
    for alpha in np.arange(1, 24) / 8:
        best = max(total - alpha * size for total, size in everything)
        leaves = kept_leaves(meta, penalty, alpha)
        assert value[leaves].sum() - alpha * len(leaves) == best
        assert len(leaves) == min(size for total, size in everything if total - alpha * size == best)


@given(table=tables(max_rows=20))
def test_a_plain_tree_is_pruned_as_its_links_say(table):
    tree = plain_tree(table, Limits(GINI))
    penalty = link_penalties(tree.left, tree.right, -np.minimum(tree.positive, tree.negative))
    where = tree.apply(table.X)
    for alpha in interesting_penalties(penalty) if len(tree) > 1 else [0.5]:
        pruned = prune_tree(tree, penalty, alpha)
        if alpha == 0:
            assert pruned is tree
            continue
        kept = kept_leaves(tree, penalty, alpha)
        below = {int(node): leaf for leaf in kept for node in _nodes_below(tree, leaf)}
        reached = pruned.apply(table.X)
        assert len(pruned) == 2 * len(kept) - 1
        assert len(pruned.category_bits) == (pruned.category_at >= 0).sum()
        assert len({*zip(reached, (below[int(leaf)] for leaf in where), strict=True)}) == len({*reached})
        for row, leaf in enumerate(where):
            assert pruned.positive[reached[row]] == tree.positive[below[int(leaf)]]
            assert pruned.negative[reached[row]] == tree.negative[below[int(leaf)]]
        ranked(pruned)  # checks every invariant


def _nodes_below(tree, node):
    yield node
    if not tree.is_leaf[node]:
        for child in (tree.left[node], tree.right[node]):
            yield from _nodes_below(tree, child)


def test_many_penalties_are_thinned_out_from_end_to_end():
    tried = penalties_to_try(np.linspace(0.001, 1.0, 500))
    assert len(tried) == PENALTIES_TRIED
    assert len(penalties_to_try(np.linspace(0.001, 1.0, 500), 1000)) == 501
    assert (tried[0], tried[-1]) == (0.0, 1.0)
    assert penalties_to_try(np.array([])).tolist() == [0.0]


def noisy_rows(n=250):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    return X, (rng.random(n) < 0.05 + 0.4 * (X[:, 0] > 1)).astype(int)


def test_a_larger_penalty_gives_fewer_leaves_and_the_stated_training_ap():
    X, y = noisy_rows()
    sizes = []
    for alpha in (0.0, 0.001, 0.01, 0.05, 1.0):
        model = MetaAP(
            criterion="ap", leaf_order="meta", leaf_score="constant", min_samples_leaf=5, ccp_alpha=alpha, cv=0
        ).fit(X, y)
        assert model.ccp_alpha_ == alpha
        sizes.append(model.n_leaves_)
        leaves = np.flatnonzero(model.tree_.is_leaf)
        order = leaves[np.argsort(model.tree_.leaf[leaves])]
        found, seen = (
            np.cumsum(model.tree_.positive[order]),
            np.cumsum((model.tree_.positive + model.tree_.negative)[order]),
        )
        expected = (model.tree_.positive[order] / y.sum() * found / seen).sum()
        assert average_precision(y, model.decision_function(X)) == pytest.approx(expected)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2] > sizes[-1] == 1


@pytest.mark.parametrize("leaf_score", ["constant", "margin", "linear"])
def test_cross_validation_picks_a_penalty_of_its_path(leaf_score):
    X, y = noisy_rows()
    ranker = MetaAP(criterion="ap", leaf_score=leaf_score, min_samples_leaf=5, ccp_alpha=0.0, cv=3, random_state=0)
    full, model = clone(ranker).fit(X, y), clone(ranker).set_params(ccp_alpha="cv").fit(X, y)
    tried, mean = model.ccp_path_["ccp_alpha"], model.ccp_path_["average_precision"]
    best = np.flatnonzero(tried == model.ccp_alpha_)
    assert len(best) == 1
    assert mean[best[0]] == pytest.approx(mean.max(), abs=1e-12)
    assert not np.any(mean[best[0] + 1 :] >= mean.max() - 1e-12)  # of equals the largest penalty
    assert model.n_leaves_ < full.n_leaves_  # the table is mostly noise
    again = clone(ranker).set_params(ccp_alpha=model.ccp_alpha_).fit(X, y)
    assert again.tree_ == model.tree_


def test_folds_may_be_given_as_row_positions_of_the_whole_table():
    X, y = noisy_rows(300)
    weight = np.ones(300)
    weight[::3] = 0.0
    halves = [(np.arange(0, 300, 2), np.arange(1, 300, 2)), (np.arange(1, 300, 2), np.arange(0, 300, 2))]
    model = MetaAP(ccp_alpha="cv", cv=halves, min_samples_leaf=5).fit(X, y, weight)
    keep = np.flatnonzero(weight)
    kept = [tuple(np.flatnonzero(np.isin(keep, rows)) for rows in half) for half in halves]
    assert MetaAP(ccp_alpha="cv", cv=kept, min_samples_leaf=5).fit(X[keep], y[keep]).tree_ == model.tree_


def test_too_few_rows_for_folds_prune_what_adds_nothing():
    X = np.arange(12.0).reshape(-1, 1)
    model = MetaAP(ccp_alpha="cv", min_samples_leaf=1).fit(X, np.arange(12) == 5)
    assert model.ccp_alpha_ == 0.0
    assert np.isnan(model.ccp_path_["average_precision"]).all()
    assert not hasattr(model.set_params(ccp_alpha=0.0).fit(X, np.arange(12) == 5), "ccp_path_")


def test_rows_of_weight_zero_do_not_count_for_folds():
    X, y = noisy_rows(60)
    weight = np.where((y == 1) & (np.arange(60) > np.flatnonzero(y)[1]), 0.0, 1.0)  # two positives are left
    model = MetaAP(ccp_alpha="cv", min_samples_leaf=1).fit(X, y, weight)
    assert model.ccp_alpha_ in model.ccp_path_["ccp_alpha"]


@st.composite
def rankings(draw, max_size=8, largest=6):
    """(positive, negative) of cells in any order or the best one, some empty; both classes are there."""
    weight = st.integers(0, largest)
    cells = draw(st.lists(st.tuples(weight, weight), min_size=1, max_size=max_size))
    positive, negative = np.array(cells).T
    assume(positive.any() and negative.any())
    order = optimal_order(positive, negative) if draw(st.booleans()) else slice(None)
    return positive[order], negative[order]


def merged(positive, negative, group):
    """Weights of the groups."""
    return tuple(np.bincount(group, values).astype(int) for values in (positive, negative))


def exact_area(positive, negative):
    return reference.area_under_roc(list(zip(positive.tolist(), negative.tolist(), strict=True)))


def every_merge(positive, negative):
    """(AUC, number of groups, group of each cell) of every partition into neighbours."""
    n = len(positive)
    for size in range(1, n + 1):
        for boundaries in combinations(range(1, n), size - 1):
            group = np.searchsorted(boundaries, np.arange(n), side="right")
            yield exact_area(*merged(positive, negative, group)), size, group


def penalties_between(path):
    """Penalties strictly between the steps, and one behind the last."""
    steps = path.penalties
    return [*((a + b) / 2 for a, b in pairwise(steps)), 2 * steps[-1] + 0.1]


def step(positive, negative, whole):
    """The penalty at which the difference of some areas in units of 1 / (2 P N) does not pay any more."""
    return float(Fraction(whole, 2 * int(positive.sum()) * int(negative.sum())))


@given(rankings(), st.integers(0, 60))
@example((np.array([0, 2, 0, 2, 0]), np.array([0, 0, 0, 2, 0])), 0)
@example((np.array([1, 3, 0]), np.array([1, 1, 2])), 0)
def test_the_best_merge_is_the_best_of_all_and_has_the_fewest_groups_of_the_best(cells, whole):
    positive, negative = cells
    penalty = step(positive, negative, whole)  # ties between sizes happen at such penalties
    exact = Fraction(whole, 2 * int(positive.sum()) * int(negative.sum()))
    found = merge_path(positive, negative).groups(penalty)
    assert found.dtype == np.int32
    assert found[0] == 0
    assert set(np.diff(found)) <= {0, 1}
    merges = list(every_merge(positive, negative))
    best = max(auc - exact * size for auc, size, _ in merges)
    size = found[-1] + 1
    assert exact_area(*merged(positive, negative, found)) - exact * int(size) == best
    assert size == min(size for auc, size, _ in merges if auc - exact * size == best)
    is_empty = positive + negative == 0
    assert (np.diff(found)[is_empty[1:]] == 0).all(), "an empty cell stays with the one before it"


@given(rankings())
def test_the_path_has_the_largest_area_for_every_number_of_groups(cells):
    path = merge_path(*cells)
    best = [Fraction(0)] * len(cells[0])
    for auc, size, _ in every_merge(*cells):
        best[size - 1] = max(best[size - 1], auc)
    at_most = np.maximum.accumulate(np.array(best, object)).astype(float)
    assert path.best_auc == pytest.approx(at_most)
    assert path.best_auc[path.n_groups - 1].tolist() == path.auc.tolist()


@given(rankings(max_size=30, largest=20))
def test_the_path_and_its_groups_agree(cells):
    path = merge_path(*cells)
    assert (path.penalties[0], path.n_groups[-1], path.auc[-1]) == (0.0, 1, pytest.approx(0.5))
    assert (np.diff(path.penalties) > 0).all()
    assert (np.diff(path.n_groups) < 0).all()
    assert (np.diff(path.auc) < 0).all()
    for i, penalty in enumerate(penalties_between(path)):
        for value in (path.penalties[i], penalty):
            group = path.groups(value)
            assert group[-1] + 1 == path.n_groups[i]
            assert path.auc[i] == pytest.approx(float(exact_area(*merged(*cells, group))))
        values = path.auc - penalty * path.n_groups
        assert values[i] == pytest.approx(values.max())
    assert path.groups(np.inf).tolist() == [0] * len(cells[0])


@given(rankings(max_size=30, largest=20))
def test_without_a_penalty_the_merged_curve_is_the_concave_hull(cells):
    positive, negative = merged(*cells, merge_path(*cells).groups(0.0))
    order = optimal_order(positive, negative)
    assert order.tolist() == list(range(len(order)))
    assert len({Fraction(int(p), int(p + n)) for p, n in zip(positive, negative, strict=True)}) == len(order)


@pytest.mark.parametrize("sort", [True, False])
def test_many_cells_with_weights_that_are_no_whole_numbers(sort):
    """Against the textbook dynamic programme over all pairs of knots."""
    rng = np.random.default_rng(0)
    positive, negative = rng.random(60) ** 3, rng.random(60)
    order = optimal_order(positive, negative) if sort else np.arange(60)
    positive, negative = positive[order], negative[order]
    P, N = (np.append(0, np.cumsum(values)) for values in (positive, negative))
    for penalty in (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1):
        best = np.zeros(61)
        for j in range(1, 61):
            trapezoid = (N[j] - N[:j]) * (P[j] + P[:j]) / 2 / (P[-1] * N[-1])
            best[j] = (best[:j] + trapezoid).max() - penalty
        group = merge_path(positive, negative).groups(penalty)
        area = RocCurve.from_cells(*(np.bincount(group, values) for values in (positive, negative))).area
        assert area - penalty * (group[-1] + 1) == pytest.approx(best[-1], abs=1e-12)


@given(table=tables(max_rows=25), inner_depth=st.integers(1, 2), depth=st.integers(1, 3))
def test_merging_neighbours_is_at_least_as_good_as_merging_siblings(table, inner_depth, depth):
    meta = grow_meta_tree(make_splitter(table), ROC_AREA, depth, Limits(ROC_AREA.criterion, max_depth=inner_depth))
    leaves = meta.leaves()
    positive = meta.positive[leaves]
    negative = meta.total[leaves] - positive
    assume(positive.any() and negative.any())
    links, neighbours = collapse_penalties(meta, ROC_AREA), merge_path(positive, negative)
    for penalty in {0.0, *links[~meta.is_leaf].tolist(), *penalties_between(neighbours)}:
        pruned = prune(meta, links, penalty)
        ends = pruned.leaves()
        area = float(exact_area(pruned.positive[ends], pruned.total[ends] - pruned.positive[ends]))
        found = (neighbours.auc - penalty * neighbours.n_groups).max()
        assert found >= area - penalty * len(ends) - 1e-12


def test_neighbours_that_are_no_siblings_can_be_the_better_merge():
    """Of four cells the two in the middle are alike: with three groups nothing is lost."""
    positive, negative = [6, 3, 3, 0], [1, 3, 3, 5]
    path = merge_path(positive, negative)
    assert path.groups(0.0).tolist() == [0, 1, 1, 2]
    assert path.best_auc[2] == pytest.approx(RocCurve.from_cells(positive, negative).area)


def test_wrong_arguments_are_refused_in_one_sentence():
    for penalty in (-1, float("nan")):
        with pytest.raises(InputError, match=rf"'penalty' parameter of MergePath\.groups .* Got {penalty} instead"):
            merge_path([1], [1]).groups(penalty)
    with pytest.raises(ValueError, match=r"merge_path needs cells .* sum to 0 and 2\. Hint"):
        merge_path([0, 0], [1, 1])
    with pytest.raises(ValueError, match="merge_path must be vectors of equal length"):
        merge_path([[1]], [[1]])
