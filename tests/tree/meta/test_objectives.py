from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import reference
from toprank.tree.meta.objectives import AVERAGE_PRECISION, ROC_AREA, TopPrecision, top_precision


@st.composite
def cells(draw):
    """(positive, total) of the cells of one impure node."""
    total = draw(st.lists(st.integers(1, 12), min_size=2, max_size=8))
    positive = [draw(st.integers(0, n)) for n in total]
    assume(0 < sum(positive) < sum(total))
    return np.array(positive), np.array(total)


def rows_of_cells(positive, total):
    """The cells as lists of rows of weight 1, and the two weights of each row."""
    stop = np.cumsum(total)
    groups = [list(range(b - n, b)) for b, n in zip(stop, total, strict=True)]
    label = np.concatenate([np.arange(n) < p for p, n in zip(positive, total, strict=True)]).astype(int)
    return groups, label, np.ones(stop[-1], int)


@given(cells())
def test_ap_orders_cells_by_one_minus_precision_over_recall(data):
    positive, total = data
    groups, *weights = rows_of_cells(positive, total)
    expected = reference.meta_order(groups, *weights)
    found = [groups[i] for i in AVERAGE_PRECISION.order(positive, total)]
    key = [(weights[0][cell].sum(), len(cell)) for cell in expected]
    slopes = [np.inf if p == 0 else (1 - p / n) / p for p, n in key]
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))
    ours = [np.inf if p == 0 else (1 - p / n) / p for p, n in ((weights[0][c].sum(), len(c)) for c in found)]
    assert ours == pytest.approx(slopes)


def test_pure_cells_come_first_the_largest_of_them_ahead_and_cells_without_positives_last():
    positive, total = np.array([0, 2, 5, 1, 0]), np.array([9, 2, 5, 4, 1])
    assert AVERAGE_PRECISION.order(positive, total).tolist() == [2, 1, 3, 0, 4]


@given(cells())
def test_ap_cuts_where_the_average_precision_of_the_left_part_is_largest(data):
    positive, total = data
    groups, *weights = rows_of_cells(positive, total)
    cut = AVERAGE_PRECISION.cut(positive, total)
    assert 1 <= cut < len(positive)
    _, best = reference.meta_cut(groups, *weights)
    found = reference.two_leaf_average_precision(
        int(positive[:cut].sum()), int(total[:cut].sum()), int(positive.sum()), int(total.sum())
    )
    assert float(found) == pytest.approx(float(best))


def test_ap_cut_of_a_written_out_example():
    """AP_left of 1, 2, 3 cells: 0.6 * 3/3 + 0.4 * 5/15 = 0.733; 0.8 * 4/8 + 0.2 / 3 = 0.467; 5/14."""
    positive, total = np.array([3, 1, 1, 0]), np.array([3, 5, 6, 1])
    found = AVERAGE_PRECISION.value(np.array([3, 4, 5]), np.array([3, 8, 14]), 5, 15)
    assert found == pytest.approx([0.6 + 0.4 / 3, 0.4 + 0.2 / 3, 5 / 14])
    assert AVERAGE_PRECISION.cut(positive, total) == 1


@given(cells(), st.sampled_from([1, 10**12]))
@example((np.array([3, 1, 0]), np.array([4, 2, 2])), 10**12)
def test_roc_orders_cells_by_rate_and_takes_the_larger_of_the_cuts_of_largest_excess(data, factor):
    """Remark 10 of the TreeRank paper, from fractions: the whole node is a candidate too, and the larger one of equals.

    With the large factor products of weights do not fit 64 bits.
    """
    positive, total = data[0] * factor, data[1] * factor
    order = ROC_AREA.order(positive, total)
    positive, total = positive[order], total[order]
    rates = [Fraction(int(p), int(n)) for p, n in zip(positive, total, strict=True)]
    assert rates == sorted(rates, reverse=True)
    all_positive, all_negative = int(positive.sum()), int((total - positive).sum())
    found = np.cumsum(positive).tolist()
    passed = np.cumsum(total - positive).tolist()
    excess = [Fraction(p, all_positive) - Fraction(n, all_negative) for p, n in zip(found, passed, strict=True)]
    assert ROC_AREA.cut(positive, total) == max(k + 1 for k, value in enumerate(excess) if value == max(excess))


def test_the_larger_of_equal_cuts_for_the_roc_and_the_smaller_for_ap():
    assert ROC_AREA.cut(np.array([3, 1, 0]), np.array([4, 2, 2])) == 2
    assert ROC_AREA.cut(np.array([1, 2, 3]), np.array([2, 4, 6])) == 3, "no cut adds area"
    positive, total = np.array([2, 1, 1]), np.array([2, 2, 12])
    assert AVERAGE_PRECISION.value(np.array([2, 3]), np.array([2, 4]), 4, 16).tolist() == [0.625, 0.625]
    assert AVERAGE_PRECISION.cut(positive, total) == 1


def shares(objective, positive, total):
    """What each cell adds, behind those before it."""
    before = np.cumsum(positive) - positive, np.cumsum(total) - total
    return objective.share((positive, total), before, (positive.sum(), total.sum()))


@given(cells())
def test_shares_of_the_cells_add_up_to_the_measure_of_the_ranking(data):
    positive, total = data
    groups = list(zip(positive.tolist(), (total - positive).tolist(), strict=True))
    assert shares(ROC_AREA, positive, total).sum() == pytest.approx(float(reference.area_under_roc(groups)))
    recall = np.cumsum(positive) / positive.sum()
    precision = np.cumsum(positive) / np.cumsum(total)
    points = list(zip(np.append(0, recall), np.append(1, precision), strict=True))
    assert shares(AVERAGE_PRECISION, positive, total).sum() == pytest.approx(reference.average_precision(points))


@pytest.mark.parametrize("objective", [AVERAGE_PRECISION, ROC_AREA])
def test_equal_cells_keep_their_order(objective):
    assert objective.order(np.array([1, 1, 1]), np.array([2, 2, 2])).tolist() == [0, 1, 2]


@given(cells(), st.integers(1, 60))
def test_ap_at_k_is_that_of_its_definition(data, k):
    positive, total = data
    n, groups = int(total.sum()), list(zip(positive.tolist(), total.tolist(), strict=True))
    k = min(k, n)
    expected = float(reference.average_precision_at(groups, k))
    assert shares(TopPrecision.from_share(k / n), positive, total).sum() == pytest.approx(expected)
    score, is_positive = np.repeat(-np.arange(len(total)), total), rows_of_cells(positive, total)[1] == 1
    assert top_precision(is_positive, score, np.ones(n), k / n) == pytest.approx(expected)
    assert expected <= 1 + 1e-12


@given(cells())
def test_ap_at_all_cases_is_ap(data):
    positive, total = data
    whole, room = TopPrecision.from_share(1.0), float(total.sum())
    assert shares(whole, positive, total) == pytest.approx(shares(AVERAGE_PRECISION, positive, total))
    order = AVERAGE_PRECISION.order(positive, total)
    assert whole.order(positive, total, room).tolist() == order.tolist()
    positive, total = positive[order], total[order]
    values = [objective._values(positive, total, room) for objective in (whole, AVERAGE_PRECISION)]
    assert values[0] == pytest.approx(values[1])


@given(cells(), st.integers(1, 40))
def test_ap_at_k_cuts_where_the_two_parts_have_most_of_it(data, room):
    positive, total = data
    cut = TopPrecision.from_share(0.1).cut(positive, total, room)
    parts = [((int(positive[:i].sum()), int(total[:i].sum())), (int(positive[i:].sum()), int(total[i:].sum())))
             for i in range(1, len(total))]  # fmt: skip
    value = [float(reference.average_precision_at(each, min(room, int(total.sum())))) for each in parts]
    assert value[cut - 1] == pytest.approx(max(value))


def test_a_large_cell_counts_by_what_fits_into_the_budget():
    """The large cell has most of the positives, but only 5 of its 100 cases can be checked: the small one is first."""
    positive, total = np.array([60, 4, 0]), np.array([100, 5, 50])
    assert AVERAGE_PRECISION.order(positive, total).tolist() == [0, 1, 2]
    assert TopPrecision.from_share(0.03).order(positive, total, 5.0).tolist() == [1, 0, 2]
    assert TopPrecision.from_share(0.03).cut(positive[[1, 0, 2]], total[[1, 0, 2]], 5.0) == 1


def test_top_precision_of_a_written_out_ranking():
    label = np.array([1, 0, 1, 1, 0, 0], bool)
    score = np.array([6.0, 5, 4, 3, 2, 1])
    assert top_precision(label, score, np.ones(6), 0.5) == pytest.approx((1 + 2 / 3) / 3)
    assert top_precision(label, score, np.ones(6), 1.0) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    tied = top_precision(label, np.zeros(6), np.ones(6), 0.5)
    assert tied == pytest.approx(1.5 / 3 * 0.5)  # half of the positives are within the first three, at precision 1/2
    weighted = top_precision(label, score, np.array([2.0, 1, 1, 1, 1, 1]), 3 / 7)
    assert weighted == pytest.approx(2 / 3)  # k = 3 cases: the first row is two positives, then a negative
