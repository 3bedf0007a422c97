from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import reference
from tables import make_splitter, tables
from toprank.errors import InputError
from toprank.metrics import RocCurve
from toprank.tree.grower import Limits
from toprank.tree.meta.merge import merge_path
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import ROC_AREA
from toprank.tree.meta.prune import collapse_penalties, prune
from toprank.tree.meta.shake import optimal_order


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
        area = RocCurve.of_cells(*(np.bincount(group, values) for values in (positive, negative))).area
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
    assert path.best_auc[2] == pytest.approx(RocCurve.of_cells(positive, negative).area)


def test_wrong_arguments_are_refused_in_one_sentence():
    for penalty in (-1, float("nan")):
        with pytest.raises(InputError, match=rf"'penalty' parameter of MergePath\.groups .* Got {penalty} instead"):
            merge_path([1], [1]).groups(penalty)
    with pytest.raises(ValueError, match=r"merge_path needs cells .* sum to 0 and 2\. Hint"):
        merge_path([0, 0], [1, 1])
    with pytest.raises(ValueError, match="merge_path must be vectors of equal length"):
        merge_path([[1]], [[1]])
