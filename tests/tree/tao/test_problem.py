import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranker_cases import fewer
from tables import tables
from tao_cases import make_problem
from toprank.tree.tao import problem as tao_problem
from toprank.tree.tao.problem import CostProblem, integer_costs

BINARY = [[0.0, 0.3], [1.0, 0.0]]


def problem_of(table, order=None, weight="own"):
    order = np.arange(len(table.X)) if order is None else order
    taken = table.take(order)
    weight = taken.sample_weight if isinstance(weight, str) else weight
    return make_problem(taken.X, taken.is_positive, BINARY, 0.5, True, weight, taken.n_categories)


def check_same_rows(one, other):
    for name in ("X", "label", "weight"):
        assert np.array_equal(getattr(one.rows, name), getattr(other.rows, name), equal_nan=name == "X")
    assert np.array_equal(one.cost, other.cost)
    assert one.unit == other.unit
    for mine, theirs in zip(one.rows.standard, other.rows.standard, strict=True):
        assert np.array_equal(mine, theirs)


@fewer(2)
@given(tables(), st.data())
def test_neither_the_order_of_rows_nor_copies_of_them_matter(table, data):
    order = np.array(data.draw(st.permutations(range(len(table.X)))))
    if table.weights.total.any():
        check_same_rows(problem_of(table), problem_of(table, order))


@fewer(2)
@given(tables(weights=("whole",)))
def test_weight_two_is_the_row_twice(table):
    repeated = np.repeat(np.arange(len(table.X)), table.sample_weight.astype(int))
    check_same_rows(problem_of(table), problem_of(table, repeated, None))


@fewer(2)
@given(tables())
def test_rows_are_distinct_and_keep_all_weight(table):
    rows = problem_of(table).rows
    assert (rows.weight > 0).all()
    assert rows.weight.sum() == table.weights.sum_of_total
    assert rows.weight[rows.label == 1].sum() == table.weights.sum_of_positive
    keys = {(int(label), *("missing" if np.isnan(v) else v + 0.0 for v in x))
            for label, x in zip(rows.label, rows.X, strict=True)}  # fmt: skip
    assert len(keys) == len(rows)


@fewer(2)
@given(tables(kinds=("ties", "spread", "category", "constant")))
def test_standardised_columns_have_mean_0_and_numbers_spread_1(table):
    rows = problem_of(table).rows
    feature, code, spread, standard = rows.standard
    assert np.array_equal(table.is_categorical[feature] == 1, code >= 0)
    assert (np.diff(code >= 0) >= 0).all(), "numbers come first"
    assert (spread > 0).all()
    for j, f in enumerate(feature):
        if code[j] >= 0:
            value, known = (rows.X[:, f] == code[j]).astype(float), np.ones(len(rows), bool)
        else:
            value, known = rows.X[:, f], ~np.isnan(rows.X[:, f])
        assert not standard[~known, j].any()
        assert np.average(standard[known, j], weights=rows.weight[known]) == pytest.approx(0, abs=1e-9)
        if code[j] < 0:
            assert np.average(standard[known, j] ** 2, weights=rows.weight[known]) == pytest.approx(1)
        else:
            assert spread[j] == 1
        assert np.ptp(value[known]) == pytest.approx(np.ptp(standard[known, j]) * spread[j])


def categories_of(codes, n_categories, weight=None, number=None):
    """(column, code) of the categories that sums over one column of codes may use."""
    X = np.column_stack((np.asarray(codes, float), np.arange(len(codes)) if number is None else number))
    label = np.zeros(len(codes), int)
    sizes = np.array([n_categories, 0], np.int32)
    feature, code, _, _ = make_problem(X, label, BINARY, weight=weight, n_categories=sizes).rows.standard
    return code[feature == 0].tolist()


def test_categories_are_terms_of_sums_the_most_frequent_first_but_not_rare_ones():
    assert categories_of([2] * 3 + [0] * 5 + [1] * 4, 3) == [0, 1, 2]
    assert categories_of([0] * 499 + [1] * 498 + [2] * 2 + [3], 4) == [0, 1, 2]
    assert categories_of([0, 1, 2], 3, weight=np.array([1.0, 0.0, 1.0])) == [2]  # two are left, and one says it all
    assert categories_of([0] * 10, 1) == []
    assert categories_of([0] * 5 + [1] * 3 + [np.nan], 2) == [0, 1]
    assert categories_of([0] * 5 + [1] * 3, 2) == [1]  # a missing or unknown one counts as the frequent one
    assert len(categories_of(np.repeat(np.arange(40), 3), 40)) == tao_problem.MOST_CATEGORIES
    # Of equally frequent ones the first in the order of the rows, whatever the code.
    number = np.arange(6.0)
    assert categories_of([0, 1, 2, 2, 1, 0], 3, number=number) == [0, 1, 2]
    assert categories_of([2, 1, 0, 0, 1, 2], 3, number=number) == [2, 1, 0]


def test_of_too_many_categories_the_most_frequent_of_all_columns_are_terms(monkeypatch):
    X = np.column_stack(([0] * 6 + [1] * 3 + [2] * 3, [0] * 5 + [1] * 4 + [2] * 3, np.arange(12.0)))
    sizes = np.array([3, 3, 0], np.int32)
    for most, expected in ((6, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]), (3, [(0, 0), (1, 0), (1, 1)])):
        monkeypatch.setattr(tao_problem, "MOST_TERMS", most)
        feature, code, _, _ = make_problem(X, np.zeros(12, int), BINARY, n_categories=sizes).rows.standard
        assert [*zip(feature.tolist(), code.tolist(), strict=True)] == [(2, -1), *expected]


def test_a_missing_category_is_none_of_the_categories_and_categories_have_no_mean():
    X = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 4.0], [0.0, np.nan]])
    rows = make_problem(X, np.zeros(4, int), BINARY, n_categories=np.array([2, 0], np.int32)).rows
    feature, code, spread, standard = rows.standard
    assert (feature.tolist(), code.tolist()) == ([1, 0, 0], [-1, 0, 1])
    assert rows.means.tolist() == [0.0, 7 / 3]
    assert spread[1:].tolist() == [1.0, 1.0]
    assert standard[np.isnan(rows.X[:, 0]), 1:].tolist() == [[-0.5, -0.25]]
    assert standard[rows.X[:, 0] == 1, 1:].tolist() == [[-0.5, 0.75]]


def test_columns_that_no_sum_can_use_are_left_out():
    X = np.array([[1.0, 0.0, 2.0, np.nan, -1.7e308], [np.nextafter(1.0, 2.0), 5e-324, 2.0, np.nan, 1.7e308]])
    feature, _, spread, standard = make_problem(X, np.array([0, 1]), BINARY).rows.standard
    assert feature.tolist() == [4]
    assert spread[0] == pytest.approx(1.7e308)
    assert np.sort(standard[:, 0]) == pytest.approx([-1, 1])


def test_a_sum_has_the_spread_that_it_has(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[5, 0] = np.nan
    for size in (10_000, 200):
        monkeypatch.setattr(tao_problem, "SAMPLE_ROWS", size)
        rows = make_problem(X, np.arange(300) % 2, BINARY).rows
        first = np.where(np.isnan(rows.X[:, 0]), np.nanmean(rows.X[:, 0]), rows.X[:, 0])
        value = 3.0 * first - rows.X[:, 1]
        found = rows.spread_of_sum(np.array([0, 1], np.int32), np.full(2, -1, np.int32), np.array([3.0, -1.0]))
        assert found == pytest.approx(np.nanstd(value), rel=1e-12 if size > 300 else 0.2)
    missing = make_problem(np.full((2, 1), np.nan), np.array([0, 1]), BINARY).rows
    assert missing.spread_of_sum(np.zeros(1, np.int32), np.full(1, -1, np.int32), np.ones(1)) == 1.0
    one_hot = make_problem(np.array([[0.0], [1.0], [1.0], [np.nan]]), np.array([0, 0, 1, 1]), BINARY,
                           n_categories=np.array([2], np.int32)).rows  # fmt: skip
    assert one_hot.spread_of_sum(np.zeros(1, np.int32), np.ones(1, np.int32), np.full(1, 4.0)) == pytest.approx(2.0)


COST = st.one_of(st.sampled_from([0.0, 0.1, 1.0]), st.floats(1e-6, 1e6))


@given(st.lists(st.integers(1, 2**50), min_size=1, max_size=6), st.lists(COST, min_size=2, max_size=4))
@example([2**52 - 1], [1e6, 1.0])
@example([1], [1e-300, 5e-301])
def test_costs_are_exact_sums_that_fit_and_are_near_the_true_ones(weight, costs):
    if not max(costs) > 0:
        costs = [*costs, 1.0]
    weight, costs = np.array(weight), np.array(costs)
    small, whole, unit = integer_costs(weight, costs)
    assert int(small.sum()) * int(whole.max()) <= 2**60
    error = np.abs(np.outer(small, whole) * unit - np.outer(weight, costs))
    assert error.max() <= 1e-8 * weight.sum() * costs.max()
    if weight.sum() < 2**30:
        assert np.array_equal(small, weight)


def test_a_cost_matrix_charges_each_row_for_the_label_it_gets():
    X, label = np.arange(3.0).reshape(-1, 1), np.array([0, 1, 2])
    costs = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 0.5], [1.0, 8.0, 0.0]])
    problem = make_problem(X, label, costs, weight=np.array([1.0, 2.0, 3.0]))
    assert isinstance(problem, CostProblem)
    assert problem.n_classes == 3
    expected = costs[problem.rows.label] * problem.rows.weight[:, None]
    assert np.array_equal(problem.cost * problem.unit, expected)
