import math
import signal
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from toprank._core.logistic import GRAM_COLUMNS, Goal, Rows, Sums
from toprank._core.threads import Threads
from toprank.tree.tao import logistic
from toprank.tree.tao.logistic import (
    GRAM_PARTS,
    ONE_CLASS_INTERCEPT,
    LinearFit,
    fit_l1_logistic,
    fit_model,
    part_bounds,
    penalty_max,
    solve,
)

SEEDS = st.integers(0, 2**32 - 1)
SHARES = st.sampled_from([0.7, 0.2, 0.02])


@dataclass(frozen=True)
class Case:
    """A table with labels and weights, and the objective by its definition."""

    X: np.ndarray
    is_positive: np.ndarray
    weight: np.ndarray

    @property
    def arguments(self):
        return self.X, self.is_positive, self.weight

    def objective(self, penalty, weight, intercept):
        z = self.X @ weight + intercept
        return self.weight @ np.logaddexp(0.0, np.where(self.is_positive, -z, z)) + penalty * np.abs(weight).sum()

    def correlation(self, fit):
        rate = 1 / (1 + np.exp(-(self.X @ fit.weight + fit.intercept)))
        return self.X.T @ (self.weight * (self.is_positive - rate))

    def take(self, index):
        return Case(self.X[index], self.is_positive[index], self.weight[index])


def make_case(seed, n=24, d=4):
    """Small awkward problems: ties, equal or constant columns, columns far from 0, weights of 0 and far apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    kind = rng.choice(["plain", "whole", "twins", "constant", "far", "one-hot"])
    if kind == "whole":
        X = np.rint(X)
    if kind == "twins":
        X[:, 1] = X[:, 0]
    if kind == "constant":
        X[:, 0] = 0.1
    if kind == "far":
        X += 100.0
    if kind == "one-hot":
        X = np.eye(d)[rng.integers(0, d, n)]
    is_positive = X[:, -1] + rng.choice([0.0, 1.0, 5.0]) * rng.standard_normal(n) > np.median(X[:, -1])
    weight = (
        rng.choice([[1.0, 1.0, 1.0], [0.0, 1.0, 2.0], [0.01, 1.0, 30.0]], n)[:, 0] if kind == "plain" else np.ones(n)
    )
    weight = weight * rng.choice([1.0, 0.0, 3.0], n, p=[0.6, 0.2, 0.2])
    return Case(X, is_positive, weight)


def check_optimal(case, penalty, fit, slack=2e-3):
    """The conditions of the optimum: correlations are the penalty where there is a weight, and nowhere above it."""
    pull, held = case.correlation(fit), fit.weight != 0
    scale = slack * penalty + 1e-5 * np.abs(case.X.T @ case.weight).max()
    assert np.all(np.abs(pull[held] - penalty * np.sign(fit.weight[held])) <= scale)
    assert np.all(np.abs(pull[~held]) <= penalty + scale)


def has_both_classes(case):
    return min(case.weight[case.is_positive].sum(), case.weight[~case.is_positive].sum()) > 0


def usable(case, share):
    """The penalty at a share of the largest, of a problem that has something to fit."""
    assume(has_both_classes(case))
    largest = penalty_max(*case.arguments)
    assume(largest > 1e-6)
    return share * largest


@given(SEEDS, SHARES)
def test_a_fit_meets_the_conditions_of_the_optimum(seed, share):
    case = make_case(seed)
    penalty = usable(case, share)
    fit = fit_l1_logistic(*case.arguments, penalty, tolerance=1e-9)
    assert fit.is_converged
    assert 0.0 <= fit.gap <= 1e-9 * fit.objective
    assert fit.objective == pytest.approx(case.objective(penalty, fit.weight, fit.intercept), rel=1e-9)
    check_optimal(case, penalty, fit)


def best_of_scipy(case, penalty):
    """The least objective by L-BFGS-B, weights as differences of two that are at least 0."""
    d = case.X.shape[1]
    sign = np.where(case.is_positive, 1.0, -1.0)
    A = np.column_stack((case.X, -case.X, np.ones(len(case.X))))

    def height(v):
        margin = sign * (A @ v)
        pull = case.weight * sign / (1 + np.exp(np.clip(margin, -500, 500)))
        slope = -A.T @ pull
        slope[: 2 * d] += penalty
        return case.weight @ np.logaddexp(0.0, -margin) + penalty * v[: 2 * d].sum(), slope

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(height, np.zeros(2 * d + 1), jac=True, bounds=bounds, options=options).fun


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_scipy_finds_nothing_better(seed, share):
    case = make_case(seed)
    assert has_both_classes(case)
    penalty = share * penalty_max(*case.arguments)
    fit = fit_l1_logistic(*case.arguments, penalty)
    best = best_of_scipy(case, penalty)
    assert fit.objective <= best * (1 + 1e-6)
    assert best >= fit.objective - fit.gap - 1e-9 * best, "nothing is below the bound"


def make_table(n=150, d=12, seed=3):
    """Correlated columns and rare positives."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + 0.3 * rng.standard_normal((n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    is_positive = rng.random(n) < 1 / (1 + np.exp(1.5 - X[:, 0] + X[:, 5]))
    return Case(X, is_positive, np.where(is_positive, 3.0, 1.0))


@pytest.mark.parametrize("solver", ["liblinear", "saga"])
@pytest.mark.parametrize("share", [0.3, 0.03])
def test_scikit_learn_finds_the_same_optimum(solver, share):
    case = make_table()
    penalty = share * penalty_max(*case.arguments)
    fit = fit_l1_logistic(*case.arguments, penalty)
    model = LogisticRegression(C=1 / penalty, l1_ratio=1.0, solver=solver, tol=1e-9, max_iter=100_000, random_state=0)
    model.set_params(intercept_scaling=1e4)  # liblinear's penalty on the intercept all but goes
    model.fit(case.X, case.is_positive, sample_weight=case.weight)
    theirs = case.objective(penalty, model.coef_[0], model.intercept_[0])
    assert fit.objective == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(fit.weight, model.coef_[0], atol=0.02)


@given(SEEDS, SHARES, SEEDS)
def test_the_order_of_rows_and_columns_does_not_matter(seed, share, order):
    case = make_case(seed)
    penalty = usable(case, share)
    rng = np.random.default_rng(order)
    rows, columns = rng.permutation(len(case.X)), rng.permutation(case.X.shape[1])
    other = case.take(rows)
    fits = [
        fit_l1_logistic(*case.arguments, penalty),
        fit_l1_logistic(other.X[:, columns], *other.arguments[1:], penalty),
    ]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=2e-6)


@given(SEEDS, SHARES)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(seed, share):
    case = make_case(seed)
    whole = Case(case.X, case.is_positive, np.rint(np.minimum(case.weight, 3)))
    penalty = usable(whole, share)
    often = np.repeat(np.arange(len(case.X)), whole.weight.astype(int))
    fits = [
        fit_l1_logistic(*whole.arguments, penalty),
        fit_l1_logistic(case.X[often], case.is_positive[often], None, penalty),
    ]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=2e-6)
    present = whole.take(np.flatnonzero(whole.weight))
    assert_same(fits[0], fit_l1_logistic(*present.arguments, penalty))


def assert_same(one, other):
    """Equal to the last bit."""
    assert np.array_equal(one.weight, other.weight)
    assert (one.intercept, one.objective, one.gap) == (other.intercept, other.objective, other.gap)
    assert one.n_iter == other.n_iter


@given(SEEDS, SHARES, SEEDS, st.sampled_from([0.1, 3.0, 1e3]))
@example(0, 0.02, 0, 1e3)
def test_every_start_ends_at_the_same_optimum(seed, share, other, size):
    case = make_case(seed)
    penalty = usable(case, share)
    rng = np.random.default_rng(other)
    start = size * rng.standard_normal(case.X.shape[1]), size * rng.standard_normal()
    cold = fit_l1_logistic(*case.arguments, penalty)
    warm = fit_l1_logistic(*case.arguments, penalty, start=start)
    assert warm.is_converged
    assert cold.objective == pytest.approx(warm.objective, rel=2e-6)


def test_a_start_at_the_optimum_needs_no_step_and_one_nearby_few():
    case = make_table()
    penalty = 0.05 * penalty_max(*case.arguments)
    fit = fit_l1_logistic(*case.arguments, penalty)
    assert fit.n_iter > 3
    assert fit_l1_logistic(*case.arguments, penalty, start=fit).n_iter == 0
    near = fit_l1_logistic(case.X, case.is_positive, 1.05 * case.weight, penalty, start=(fit.weight, fit.intercept))
    assert 0 < near.n_iter < fit.n_iter


def test_the_same_input_gives_the_same_bits_in_any_layout():
    case = make_table()
    frozen = case.X.copy(order="F")
    frozen.flags.writeable = False
    wide = np.repeat(case.X, 2, axis=1)[:, ::2]
    fit = fit_l1_logistic(*case.arguments, 2.0)
    for X in (case.X, np.asfortranarray(case.X), frozen, wide):
        assert_same(fit, fit_l1_logistic(X, case.is_positive, case.weight, 2.0))
    single = case.X.astype(np.float32)
    widened = fit_l1_logistic(single.astype(np.float64), case.is_positive, case.weight, 2.0)
    for X in (single, np.asfortranarray(single)):
        assert_same(widened, fit_l1_logistic(X, case.is_positive, case.weight, 2.0))


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_those_of_a_smaller_table(order):
    case = make_table()
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(150, 90, replace=False))
    part = case.take(rows)
    X = case.X.copy(order=order)
    small = fit_l1_logistic(part.X, part.is_positive, part.weight, 2.0)
    fit = fit_l1_logistic(X, part.is_positive, part.weight, 2.0, rows=rows)
    assert np.array_equal(fit.weight, small.weight)
    assert (fit.intercept, fit.objective) == (small.intercept, small.objective)
    assert fit_l1_logistic(X, part.is_positive, part.weight, 2.0, rows=rows, start=fit).n_iter == 0
    gone = part.weight * (np.arange(90) % 3 > 0)
    there = np.flatnonzero(gone)
    without = fit_l1_logistic(X, part.is_positive[there], gone[there], 2.0, rows=rows[there])
    assert_same(without, fit_l1_logistic(X, part.is_positive, gone, 2.0, rows=rows))


@given(SEEDS)
def test_from_the_largest_penalty_on_there_are_no_weights(seed):
    case = make_case(seed)
    largest = usable(case, 1.0)
    positive, total = case.weight[case.is_positive].sum(), case.weight.sum()
    fit = fit_l1_logistic(*case.arguments, largest * (1 + 1e-9))
    assert not fit.weight.any()
    assert fit.intercept == pytest.approx(math.log(positive / (total - positive)), rel=1e-9, abs=1e-9)
    below = fit_l1_logistic(*case.arguments, 0.9 * largest, tolerance=1e-10)
    assert below.weight.any()


@pytest.mark.parametrize(("is_positive", "sign"), [(True, 1), (False, -1)])
def test_one_class_gets_no_weights_and_an_intercept_with_a_bound(is_positive, sign):
    X = np.random.default_rng(0).standard_normal((10, 3))
    fit = fit_l1_logistic(X, np.full(10, is_positive), None, 1.0, start=(np.ones(3), 0.0))
    assert fit.weight.tolist() == [0.0] * 3
    assert fit.intercept == sign * ONE_CLASS_INTERCEPT
    assert fit.is_converged
    assert 0.0 < fit.gap == fit.objective < 1e-10
    assert penalty_max(X, np.full(10, is_positive), None) == 0.0


def test_no_rows_or_no_columns_are_no_error():
    X = np.ones((4, 2))
    is_positive = np.array([True, False, True, True])
    nothing = fit_l1_logistic(X, is_positive, np.zeros(4), 1.0)
    assert (nothing.weight.tolist(), nothing.intercept, nothing.objective) == ([0.0, 0.0], 0.0, 0.0)
    fit = fit_l1_logistic(X[:, :0], is_positive, None, 1.0)
    assert fit.intercept == pytest.approx(math.log(3))
    assert penalty_max(X[:, :0], is_positive, None) == 0.0
    none = np.array([], dtype=np.int64)
    assert fit_l1_logistic(X, is_positive[:0], None, 1.0, rows=none).intercept == 0.0


def test_classes_that_can_be_parted_have_finite_weights():
    X = np.linspace(-1, 1, 20)[:, None]
    fit = fit_l1_logistic(X, X[:, 0] > 0, None, 1e-4)
    assert fit.is_converged
    assert 10 < fit.weight[0] < 1e5
    assert abs(fit.intercept) < 1.0


def test_constant_columns_have_no_weight_from_any_start():
    case = make_table()
    X = np.column_stack((np.full(150, 7.7), case.X, np.zeros(150)))
    start = np.full(X.shape[1], 2.0), 0.0
    fit = fit_l1_logistic(X, case.is_positive, case.weight, 2.0, start=start)
    plain = fit_l1_logistic(*case.arguments, 2.0)
    assert fit.weight[0] == fit.weight[-1] == 0.0
    assert fit.objective == pytest.approx(plain.objective, rel=2e-6)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**30])
def test_only_the_ratio_of_weights_and_penalty_matters(scale):
    case = make_table()
    fit = fit_l1_logistic(*case.arguments, 2.0)
    scaled = fit_l1_logistic(case.X, case.is_positive, scale * case.weight, scale * 2.0)
    assert np.array_equal(fit.weight, scaled.weight)
    assert scaled.objective == scale * fit.objective


def test_a_mean_far_from_zero_costs_no_digits():
    case = make_table()
    fit = fit_l1_logistic(*case.arguments, 2.0, tolerance=1e-9)
    far = fit_l1_logistic(case.X + 2.0**20, case.is_positive, case.weight, 2.0, tolerance=1e-9)
    assert far.is_converged
    np.testing.assert_allclose(far.weight, fit.weight, atol=1e-4)


def test_very_many_columns_are_fitted_in_groups():
    """More columns than rows, and more that want a weight than may join at once: 150 equal ones among them."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 400))
    X[:, :150] = X[:, :1]
    case = Case(X, X[:, 0] + rng.standard_normal(30) > 0, np.ones(30))
    for share in (0.5, 0.05):
        penalty = share * penalty_max(*case.arguments)
        fit = fit_l1_logistic(*case.arguments, penalty, tolerance=1e-8)
        assert fit.is_converged
        check_optimal(case, penalty, fit)


def test_a_fit_that_runs_out_of_steps_says_so():
    case = make_table()
    fit = fit_l1_logistic(*case.arguments, 0.5, max_iter=1)
    assert fit.n_iter == 1
    assert not fit.is_converged
    assert fit.gap > 1e-6 * fit.objective


@pytest.mark.parametrize("penalty", [0.0, -1.0, np.nan, np.inf])
def test_the_penalty_must_be_above_zero(penalty):
    case = make_table()
    with pytest.raises(ValueError, match=r"penalty must be a finite number above 0, got .*\. Hint: without one"):
        fit_l1_logistic(*case.arguments, penalty)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_must_be_numbers_from_zero_on(bad):
    case = make_table()
    weight = case.weight.copy()
    weight[3] = bad
    with pytest.raises(ValueError, match="weight must hold finite numbers of at least 0, but goes from"):
        fit_l1_logistic(case.X, case.is_positive, weight, 1.0)


def test_lengths_must_agree():
    case = make_table()
    with pytest.raises(ValueError, match=r"weight must have one entry for each of the 150 rows .* has shape \(149,\)"):
        fit_l1_logistic(case.X, case.is_positive, case.weight[1:], 1.0)
    with pytest.raises(ValueError, match=r"is_positive must have one entry for each of the 2 rows .* shape \(150,\)"):
        fit_l1_logistic(*case.arguments, 1.0, rows=np.array([0, 1]))


@pytest.mark.parametrize("start", [(np.zeros(3), 0.0), (np.full(12, np.nan), 0.0), (np.zeros(12), np.inf)])
def test_a_start_must_fit_the_columns(start):
    case = make_table()
    with pytest.raises(ValueError, match="start must hold 12 finite weights and a finite intercept"):
        fit_l1_logistic(*case.arguments, 1.0, start=start)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("is_warm", [False, True])
def test_entries_that_are_no_numbers_are_an_error(bad, is_warm):
    case = make_table()
    X = case.X.copy()
    X[7, 2] = bad
    start = LinearFit(np.full(12, 0.1), 0.0, 0.0, 0, True, 0.0) if is_warm else None
    with pytest.raises(ValueError, match="X must hold finite numbers that can be added up"):
        fit_l1_logistic(X, case.is_positive, case.weight, 0.1, start=start)
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        penalty_max(X, case.is_positive, case.weight)


def test_next_to_no_weight_leaves_no_weights():
    X, is_positive = np.arange(6.0).reshape(-1, 1), np.arange(6) > 2
    fit = fit_l1_logistic(X, is_positive, np.full(6, 1e-310), 1.0)
    assert fit.weight.tolist() == [0.0]
    assert fit.is_converged
    assert fit.intercept == pytest.approx(0.0, abs=1e-6)


def make_problem(seed, n=20, d=4):
    """Feature-major columns, targets of both kinds, weights, a penalty."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    target = (X[0] + rng.standard_normal(n) > 0).astype(float)
    target[:2] = 0.0, 1.0
    return X, target, rng.random(n) + 0.1, float(rng.choice([3.0, 0.5, 0.01]))


@given(SEEDS)
def test_solve_ends_at_the_optimum(seed):
    X, target, weight, penalty = make_problem(seed)
    value = np.random.default_rng(seed).standard_normal(len(X))
    end = solve(X, target, weight, Goal(penalty, 1e-9, 100), value, 0.0, Threads())
    assert end.n_iter < 60
    assert -1e-9 <= end.gap / end.objective <= 1e-9
    z = value @ X + end.intercept
    loss = weight @ (np.logaddexp(0.0, z) - target * z)
    assert end.objective == pytest.approx(loss + penalty * np.abs(value).sum(), rel=1e-9)
    pull = X @ (weight * (target - 1 / (1 + np.exp(-z))))
    held = value != 0
    slack = 1e-3 * penalty + 1e-6
    assert np.all(np.abs(pull[held] - penalty * np.sign(value[held])) <= slack)
    assert np.all(np.abs(pull[~held]) <= penalty + slack)


def test_solve_says_where_it_had_to_stop():
    X, target, weight, _ = make_problem(6)
    end = solve(X, target, weight, Goal(0.01, 1e-9, 2), np.zeros(len(X)), 0.0, Threads())
    assert end.n_iter == 2
    assert end.gap > 1e-9 * end.objective


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_fit_is_the_same_for_any_threads(monkeypatch, n_threads):
    monkeypatch.setattr(logistic, "PART_ROWS", 64)
    X, target, weight, _ = make_problem(1, n=700, d=12)
    alone, shared = np.zeros(12), np.zeros(12)
    goal = Goal(2.0, 1e-9, 100)
    end = solve(X, target, weight, goal, alone, 0.0, Threads())
    with Threads(n_threads) as threads:
        assert solve(X, target, weight, goal, shared, 0.0, threads) == end
    assert np.array_equal(alone, shared)
    assert np.count_nonzero(alone) > 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_ends_a_fit_as_an_interrupt(n_threads):
    """It waits for the kernel at work to end, and may break into the making of what that returns."""
    X, target, weight, _ = make_problem(4, n=20_000, d=60)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with Threads(n_threads) as threads:
            for delay in np.linspace(0.001, 0.05, 12):
                with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                    signal.setitimer(signal.ITIMER_REAL, float(delay))
                    while True:
                        solve(X, target, weight, Goal(0.1, 1e-9, 100), np.zeros(60), 0.0, threads)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@given(st.integers(1, 200_000))
def test_parts_cover_the_rows_and_are_about_equal(n):
    bounds = part_bounds(n)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, n)
    assert len(sizes) <= GRAM_PARTS
    assert sizes.min() > 0
    assert sizes.max() <= max(1.6 * sizes[0], logistic.PART_ROWS)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_parts_of_the_rows_add_up_to_the_whole(monkeypatch, n_threads):
    X, target, weight, _ = make_problem(2, n=700, d=5)
    rows = Rows(target, weight, np.zeros(700), target - 0.5, 0.25 * weight)
    state = logistic.State(0.0, Sums(0.0, 0.0, 0.0, rows.curvature.sum(), 0.0), 1.0, 1.0, 1.0, 0.0, 0, False, False)
    columns = np.array([0, 2, 3])
    whole = fit_model(X, rows, columns, state, Threads())
    monkeypatch.setattr(logistic, "PART_ROWS", 64)
    with Threads(n_threads) as threads:
        parted = fit_model(X, rows, columns, state, threads)
    assert len(part_bounds(700)) > 5
    np.testing.assert_allclose(parted.gram, whole.gram, rtol=1e-10)
    np.testing.assert_allclose(parted.pull, whole.pull, rtol=1e-10)


def test_models_are_damped_and_very_many_columns_need_no_gram_matrix():
    X, target, weight, _ = make_problem(3, n=12, d=GRAM_COLUMNS + 1)
    rows = Rows(target, weight, np.zeros(12), target - 0.5, 0.25 * weight)
    total = rows.curvature.sum()
    state = logistic.State(0.0, Sums(0.0, 0.0, 0.0, total, 0.0), 1.0, 1.0, 1.0, 0.0, 0, False, False)
    many, few = np.arange(GRAM_COLUMNS + 1), np.arange(3)
    assert fit_model(X, rows, many, state, Threads()).gram.size == 0
    plain = fit_model(X, rows, few, state, Threads())
    assert plain.total == total
    damped = fit_model(X, rows, few, state._replace(damping=1.0), Threads())  # the bound has the same curvature at 0
    assert damped.total == pytest.approx(2 * total)
    np.testing.assert_allclose(damped.gram, 2 * plain.gram)
