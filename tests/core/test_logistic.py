import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toprank._core.logistic import (
    GRAM_COLUMNS,
    LEAST_DAMPING,
    NEW_COLUMNS,
    SHORT_STEP,
    Model,
    Rows,
    adapt_damping,
    balance_intercept,
    begin,
    choose_columns,
    covers,
    damp,
    dual_value,
    duality_gap,
    evaluate,
    newton_step,
    restrict,
    search_line,
    weigh_rows,
)
from toprank._core.quadratic import centred_gram, gram_sums

SEEDS = st.integers(0, 2**32 - 1)


def make_rows(seed, n=20, spread=2.0):
    """Rows of both targets with weights and any z."""
    rng = np.random.default_rng(seed)
    target = (rng.random(n) < 0.4).astype(float)
    target[:2] = 0.0, 1.0
    return Rows(target, rng.random(n) + 0.1, spread * rng.standard_normal(n), np.empty(n), np.empty(n)), rng


def loss_of(rows, z=None):
    """Weighted logistic loss, by its definition."""
    z = rows.z if z is None else z
    return float(rows.weight @ (np.logaddexp(0.0, z) - rows.target * z))


def entropy(share):
    return -share * np.log(share) - (1 - share) * np.log1p(-share)


@given(SEEDS)
def test_residuals_and_curvatures_are_the_derivatives_of_the_loss(seed):
    rows, _ = make_rows(seed)
    sums = weigh_rows(rows)
    rate = 1 / (1 + np.exp(-rows.z))
    np.testing.assert_allclose(rows.residual, rows.weight * (rows.target - rate), rtol=1e-10)
    np.testing.assert_allclose(rows.curvature, rows.weight * rate * (1 - rate), rtol=1e-10)
    size = np.abs(rows.residual)
    surprise = -size @ np.log(size / rows.weight)
    expected = [loss_of(rows), rows.residual.sum(), size.sum(), rows.curvature.sum(), surprise]
    np.testing.assert_allclose(list(sums), expected, rtol=1e-10, atol=1e-12)


def test_saturated_rows_stay_finite_and_keep_their_digits():
    rows = Rows(np.array([1.0, 1.0, 0.0]), np.ones(3), np.array([800.0, 40.0, 800.0]), np.empty(3), np.empty(3))
    sums = weigh_rows(rows)
    assert sums.loss == pytest.approx(800.0)
    assert rows.residual.tolist() == [0.0, pytest.approx(math.exp(-40), rel=1e-14), -1.0]
    assert all(map(math.isfinite, sums))


@given(SEEDS, st.floats(-30, 30))
@example(0, 0.0)
def test_a_step_with_damping_one_is_below_a_function_above_the_loss(seed, there):
    """The loss nowhere rises above its tangent plus the damping's own curvature."""
    rows, _ = make_rows(seed, spread=5.0)
    rows.z[0] = 0.0
    weigh_rows(rows)
    own = rows.curvature.copy()
    total = damp(rows, 1.0)
    assert total == pytest.approx(rows.curvature.sum())
    added = rows.curvature - own
    assert np.all(added >= own - 1e-12)
    change = there - rows.z
    above = loss_of(rows) - rows.residual @ change + added @ change**2 / 2
    assert loss_of(rows, np.full(len(change), there)) <= above + 1e-9 * abs(above)


@given(SEEDS, st.sampled_from([0.0, 5.0, -300.0, 700.0]))
def test_the_best_intercept_leaves_residuals_that_add_up_to_nothing(seed, offset):
    rows, _ = make_rows(seed)
    rows.z[:] += offset
    start = rows.z.copy()
    moved, sums = balance_intercept(rows, weigh_rows(rows), 1e-10)
    np.testing.assert_allclose(rows.z, start + moved, rtol=0, atol=1e-9)
    assert abs(rows.residual.sum()) <= 1e-9 * np.abs(rows.residual).sum()
    assert sums.loss == pytest.approx(loss_of(rows))
    assert all(loss_of(rows) <= loss_of(rows, rows.z + shift) + 1e-12 for shift in (-1e-3, 1e-3))


@given(SEEDS, st.floats(0.01, 1.0))
def test_the_dual_value_is_the_sum_of_entropies(seed, scale):
    rows, _ = make_rows(seed)
    sums = weigh_rows(rows)
    expected = rows.weight @ entropy(scale * np.abs(rows.residual) / rows.weight)
    assert dual_value(rows, sums, scale) == pytest.approx(expected, rel=1e-9)


def make_problem(seed, n=20, d=4):
    """Feature-major columns with rows at z = the best intercept, a penalty, and any weights."""
    rows, rng = make_rows(seed, n)
    X = rng.standard_normal((d, n))
    value = np.where(rng.random(d) < 0.5, rng.standard_normal(d), 0.0)
    return X, rows, float(rng.choice([3.0, 0.5, 0.01])), value


def objective_of(X, rows, penalty, value, intercept):
    return loss_of(rows, value @ X + intercept) + penalty * np.abs(value).sum()


def model_at(X, rows, columns, damping=0.0):
    """The quadratic model at z, after weigh_rows; very many columns have no Gram matrix."""
    total = float(damp(rows, damping))
    if len(columns) > GRAM_COLUMNS:
        return Model(columns, np.empty((0, 0)), np.empty(0), total)
    sums, k = gram_sums(X, columns, rows.curvature, 0, X.shape[1]), len(columns)
    return Model(columns, centred_gram(sums, k, total), sums[k, :k].copy(), total)


@given(SEEDS, SEEDS)
def test_the_gap_is_no_less_than_what_any_other_weights_gain(seed, other):
    X, rows, penalty, value = make_problem(seed)
    intercept, sums = begin(X, rows, penalty, value, 0.0)
    moved, sums = balance_intercept(rows, sums, 1e-12)
    correlation = np.empty(len(X))
    objective, gap = evaluate(X, rows, sums, np.arange(len(X)), correlation, penalty, value)
    assert objective == pytest.approx(objective_of(X, rows, penalty, value, intercept + moved))
    np.testing.assert_allclose(correlation, X @ rows.residual, atol=1e-8)
    rng = np.random.default_rng(other)
    for size in (0.01, 0.3, 2.0):
        there = objective_of(X, rows, penalty, value + size * rng.standard_normal(len(X)), intercept + moved)
        assert there >= objective - gap - 1e-9


def test_the_gap_sees_columns_without_numbers():
    rows, _ = make_rows(0)
    sums = weigh_rows(rows)
    for bad in (np.nan, np.inf):
        gap = duality_gap(rows, sums, sums.loss, np.array([0.1, bad]), np.arange(2), 1.0)
        assert math.isnan(gap)


@given(SEEDS)
def test_a_step_takes_columns_with_a_weight_and_the_worst_without(seed):
    rng = np.random.default_rng(seed)
    d = 300
    value = np.where(rng.random(d) < rng.choice([0.0, 0.1, 0.4]), 1.0, 0.0)
    correlation = np.rint(4 * rng.standard_normal(d)) / 2  # with ties
    watched = np.flatnonzero(rng.random(d) < 0.9)
    chosen = choose_columns(correlation, value, watched, 1.0)
    held = [j for j in watched if value[j]]
    wanting = sorted(
        (j for j in watched if not value[j] and abs(correlation[j]) > 1), key=lambda j: -abs(correlation[j])
    )
    assert chosen.tolist() == sorted(held + wanting[: max(NEW_COLUMNS, len(held))])


@given(SEEDS, st.sampled_from([0.1, 1.0, 30.0, 1e4]))
def test_the_line_search_ends_lower_or_where_it_began(seed, length):
    X, rows, penalty, value = make_problem(seed)
    _, sums = begin(X, rows, penalty, value, 0.0)
    start, before = rows.z.copy(), sums.loss
    direction = length * (rows.target - 0.5)
    slope = float(-rows.residual @ direction)
    share, sums = search_line(rows, sums, direction, slope, 0.0, 0.0)
    np.testing.assert_allclose(rows.z, start + share * direction)
    assert sums.loss == pytest.approx(loss_of(rows))
    assert share > 0.0
    assert sums.loss <= before + 0.01 * share * slope + 1e-12
    share, sums = search_line(rows, sums, -1e3 * direction, slope, 0.0, 0.0)  # up the hill, with a promise of down
    assert share == 0.0
    assert sums.loss == pytest.approx(loss_of(rows))


@given(SEEDS, st.sampled_from([0.0, 1e-3, 1.0]))
def test_a_newton_step_lowers_the_objective_and_keeps_the_books(seed, damping):
    X, rows, penalty, value = make_problem(seed)
    intercept, sums = begin(X, rows, penalty, value, 0.0)
    correlation = np.empty(len(X))
    before, _ = evaluate(X, rows, sums, np.arange(len(X)), correlation, penalty, value)
    model = model_at(X, rows, np.arange(len(X)), damping)
    moved, share, sums = newton_step(X, rows, sums, model, correlation, penalty, value, 1e-9)
    np.testing.assert_allclose(rows.z, value @ X + intercept + moved, atol=1e-9)
    after = objective_of(X, rows, penalty, value, intercept + moved)
    assert after <= before + 1e-9 * before
    assert damping < 1.0 or share == 1.0, "a step with full damping never overshoots"


def test_a_step_over_very_many_columns_needs_no_gram_matrix():
    X, rows, _, _ = make_problem(8, n=12, d=GRAM_COLUMNS + 1)
    steps = []
    for d in (GRAM_COLUMNS, GRAM_COLUMNS + 1):
        value = np.zeros(d)
        X[GRAM_COLUMNS] = 1.0  # constant: it adds nothing but its number
        _, sums = begin(X[:d], rows, 2.0, value, 0.0)
        correlation = np.empty(d)
        evaluate(X[:d], rows, sums, np.arange(d), correlation, 2.0, value)
        model = model_at(X[:d], rows, np.arange(d))
        newton_step(X[:d], rows, sums, model, correlation, 2.0, value, 1e-9)
        steps.append(objective_of(X[:d], rows, 2.0, value, 0.0))
    assert np.count_nonzero(value) > 1
    assert steps[0] == pytest.approx(steps[1], rel=1e-6)


def test_a_model_of_fewer_columns_is_part_of_the_model_of_more():
    X, rows, _, _ = make_problem(4, d=6)
    weigh_rows(rows)
    model = model_at(X, rows, np.array([0, 2, 3, 5]))
    few = np.array([2, 5])
    assert covers(model, few)
    for other in ([1], [2, 4], [5, 6], [0, 1, 2, 3]):
        assert not covers(model, np.array(other))
    part = restrict(model, few)
    expected = model_at(X, rows, few)
    np.testing.assert_allclose(part.gram, expected.gram)
    np.testing.assert_allclose(part.pull, expected.pull)
    assert part.total == expected.total
    nothing = Model(few[:0], np.empty((0, 0)), np.empty(0), 0.0)
    assert not covers(nothing, few)


def test_damping_grows_after_short_steps_and_goes_after_full_ones():
    assert adapt_damping(0.0, 1.0, 0.1) == 0.0
    assert adapt_damping(0.01, 0.5, 0.1) == 0.01
    assert adapt_damping(0.0, SHORT_STEP / 2, 0.01) == pytest.approx(0.04)
    assert adapt_damping(0.01, 0.0, 1e-9) == pytest.approx(0.64)
    assert adapt_damping(0.5, 0.0, 0.1) == 1.0
    assert adapt_damping(0.0, 1.0, 0.0) == LEAST_DAMPING, "there is no curvature to step on"
    damping, n_steps = 1.0, 0
    while damping > 0.0:
        damping, n_steps = adapt_damping(damping, 1.0, 0.1), n_steps + 1
    assert n_steps < 10


def test_a_start_worse_than_none_is_dropped():
    X, rows, penalty, value = make_problem(1)
    value[:] = 100.0
    intercept, sums = begin(X, rows, penalty, value, 3.0)
    positive, negative = rows.weight @ rows.target, rows.weight @ (1 - rows.target)
    assert not value.any()
    assert intercept == pytest.approx(math.log(positive / negative))
    assert abs(sums.balance) < 1e-12
