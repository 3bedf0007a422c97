from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import reference
from tables import limits, make_splitter, tables
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION
from toprank.tree.meta.shake import intercalation_gain, optimal_order


@st.composite
def rankings(draw, max_size=6, largest=9):
    """(positive, negative) of cells in order, some empty; both classes are there."""
    weight = st.integers(0, largest)
    cells = draw(st.lists(st.tuples(weight, weight), min_size=1, max_size=max_size))
    positive, negative = np.array(cells).T
    assume(positive.any() and negative.any())
    return positive, negative


def exact_area(positive, negative):
    """AUC from pairs of rows, as a fraction."""
    return reference.area_under_roc(list(zip(positive.tolist(), negative.tolist(), strict=True)))


def best_area(positive, negative):
    """Largest AUC over all orders of the cells."""
    return max(exact_area(positive[list(o)], negative[list(o)]) for o in permutations(range(len(positive))))


@given(rankings())
@example((np.array([0, 3, 0, 1]), np.array([0, 0, 2, 3])))
def test_no_order_has_a_larger_area_than_the_optimal_one(cells):
    positive, negative = cells
    order = optimal_order(positive, negative)
    assert sorted(order.tolist()) == list(range(len(positive)))
    assert exact_area(positive[order], negative[order]) == best_area(positive, negative)


@given(rankings(max_size=12, largest=3))
def test_ties_keep_the_given_order_and_empty_cells_come_last(cells):
    positive, negative = cells
    order = optimal_order(positive, negative).tolist()

    def key(cell):
        p, n = int(positive[cell]), int(negative[cell])
        return (p + n == 0, -Fraction(p, p + n) if p + n else 0, cell)

    assert order == sorted(range(len(positive)), key=key)


@given(rankings(max_size=12), st.sampled_from([2.0**-40, 3.0, 2.0**40]))
def test_the_unit_of_weights_changes_nothing(cells, unit):
    positive, negative = cells
    assert optimal_order(positive * unit, negative).tolist() == optimal_order(positive, negative).tolist()


@given(tables(), limits())
def test_shaking_a_meta_tree_never_lowers_its_training_area(table, rule):
    meta = grow_meta_tree(make_splitter(table), AVERAGE_PRECISION, 3, rule)
    leaves = np.array(meta.leaves())
    positive = meta.positive[leaves]
    negative = meta.total[leaves] - positive
    assume(positive.any() and negative.any())
    order = optimal_order(positive, negative)
    assert exact_area(positive[order], negative[order]) >= exact_area(positive, negative)


@st.composite
def splits(draw):
    """Other cells, the cell to be split, and ways to split it."""
    weight = st.integers(0, 6)
    others = np.array(draw(st.lists(st.tuples(weight, weight), max_size=4)), int).reshape(-1, 2)
    cell = draw(st.tuples(weight, weight))
    assume(others[:, 0].sum() + cell[0] > 0 and others[:, 1].sum() + cell[1] > 0)
    lefts = draw(st.lists(st.tuples(st.integers(0, cell[0]), st.integers(0, cell[1])), min_size=1, max_size=3))
    return others, cell, np.array(lefts)


@given(splits())
@example((np.array([[2, 2]]), (4, 4), np.array([[4, 0], [2, 2], [0, 0], [4, 4]])))
def test_the_gain_of_a_split_is_that_of_the_best_orders_before_and_after(data):
    others, cell, lefts = data
    gain = intercalation_gain(*lefts.T, *cell, *others.T)
    before = best_area(*np.array([*others.tolist(), cell]).T)
    for left, found in zip(lefts.tolist(), gain, strict=True):
        right = [cell[0] - left[0], cell[1] - left[1]]
        after = best_area(*np.array([*others.tolist(), left, right]).T)
        assert found == pytest.approx(float(after - before), abs=1e-12)


def test_a_split_without_a_part_gains_nothing_at_all():
    rng = np.random.default_rng(0)
    gain = intercalation_gain([0.0, 0.7], [0.0, 0.3], 0.7, 0.3, rng.random(50), rng.random(50))
    assert gain.tolist() == [0.0, 0.0]


def test_a_split_between_other_cells_gains_more_than_its_own_two_parts_show():
    """(5, 5) parts into (3, 2) and (2, 3) around (4, 4): |l x r| = 5, and the cell in between counts twice 4."""
    alone = intercalation_gain([3], [2], 5, 5, [], [])
    assert alone == pytest.approx([5 / 2 / 25])
    assert intercalation_gain([3], [2], 5, 5, [4], [4]) == pytest.approx([(5 + 4 + 4) / 2 / 81])


def test_wrong_weights_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"'positive' and 'negative' of optimal_order .* shapes \(2,\) and \(1,\)"):
        optimal_order([1, 2], [1])
    with pytest.raises(ValueError, match=r"'negative' of optimal_order .* Got -1\.0 for cell 1\. Hint"):
        optimal_order([1, 2], [1, -1])
    with pytest.raises(ValueError, match=r"'positive' of optimal_order .* Got nan for cell 0\. Hint"):
        optimal_order([np.nan], [1])
    with pytest.raises(ValueError, match=r"'negative_left' of intercalation_gain .* negative=2\. Got 3\. Hint"):
        intercalation_gain([1, 1], [2, 3], 2, 2, [1], [1])
    with pytest.raises(ValueError, match="'others_positive' of intercalation_gain"):
        intercalation_gain([1], [2], 2, 2, [np.inf], [1])
