import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._core.logistic import GRAM_COLUMNS, Goal, Rows, Sums
from toprank._core.threads import Threads
from toprank.tree.tao import newton
from toprank.tree.tao.newton import GRAM_PARTS, fit_model, part_bounds, solve

SEEDS = st.integers(0, 2**32 - 1)


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
    monkeypatch.setattr(newton, "PART_ROWS", 64)
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
    assert sizes.max() <= max(1.6 * sizes[0], newton.PART_ROWS)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_parts_of_the_rows_add_up_to_the_whole(monkeypatch, n_threads):
    X, target, weight, _ = make_problem(2, n=700, d=5)
    rows = Rows(target, weight, np.zeros(700), target - 0.5, 0.25 * weight)
    state = newton.State(0.0, Sums(0.0, 0.0, 0.0, rows.curvature.sum(), 0.0), 1.0, 1.0, 1.0, 0.0, 0, False, False)
    columns = np.array([0, 2, 3])
    whole = fit_model(X, rows, columns, state, Threads())
    monkeypatch.setattr(newton, "PART_ROWS", 64)
    with Threads(n_threads) as threads:
        parted = fit_model(X, rows, columns, state, threads)
    assert len(part_bounds(700)) > 5
    np.testing.assert_allclose(parted.gram, whole.gram, rtol=1e-10)
    np.testing.assert_allclose(parted.pull, whole.pull, rtol=1e-10)


def test_models_are_damped_and_very_many_columns_need_no_gram_matrix():
    X, target, weight, _ = make_problem(3, n=12, d=GRAM_COLUMNS + 1)
    rows = Rows(target, weight, np.zeros(12), target - 0.5, 0.25 * weight)
    total = rows.curvature.sum()
    state = newton.State(0.0, Sums(0.0, 0.0, 0.0, total, 0.0), 1.0, 1.0, 1.0, 0.0, 0, False, False)
    many, few = np.arange(GRAM_COLUMNS + 1), np.arange(3)
    assert fit_model(X, rows, many, state, Threads()).gram.size == 0
    plain = fit_model(X, rows, few, state, Threads())
    assert plain.total == total
    damped = fit_model(X, rows, few, state._replace(damping=1.0), Threads())  # the bound has the same curvature at 0
    assert damped.total == pytest.approx(2 * total)
    np.testing.assert_allclose(damped.gram, 2 * plain.gram)
