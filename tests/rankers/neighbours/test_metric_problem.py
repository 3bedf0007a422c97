"""Problem (3.1): objective, gradient, constraint and solver, against plain loops and numerical differentiation."""

import numpy as np
import pytest
import scipy.optimize

from toprank._core.threads import Threads
from toprank.rankers.neighbours.metric_problem import (
    DiagonalForm,
    FullForm,
    LowRankForm,
    MetricProblem,
    risk_of_all,
    solve,
)
from toprank.rankers.neighbours.triplets import choose_triplets, distinct_cases

ONE = Threads(1)
FORMS = ("diagonal", "full", "low_rank")


def make_points(n=60, n_positive=12, d=4, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    is_positive = np.arange(n) < n_positive
    points[is_positive, 0] += 1.0
    return points, is_positive, np.ones(n)


def make_problem(form, *, kind="nearest", mu=0.01, c=0.3, per_case=False, threads=ONE, cases=None, **others):
    cases = distinct_cases(*(make_points() if cases is None else cases))
    settings = {"n_neighbors": 3, "n_sampled": 5, "seed": 0} | others
    triplets = choose_triplets(*cases, threads, kind=kind, per_case=per_case, **settings)
    made = {
        "diagonal": lambda: DiagonalForm(cases[0], threads),
        "full": lambda: FullForm(cases[0], threads),
        "low_rank": lambda: LowRankForm(cases[0], threads, 2, cases[2]),
    }[form]()
    return MetricProblem(triplets, made, 1.0 - c, mu)


def matrix_of(problem, variable):
    components = problem.form.components(variable)
    return components.T @ components


def feasible(problem, seed):
    """A feasible variable that is not the start."""
    rng = np.random.default_rng(seed)
    start = problem.form.start()
    return problem.form.project(start + 0.5 * rng.normal(size=start.shape))


def plain_objective(points, is_positive, weight, matrix, mu, c, total):
    """(3.1) word by word, over all (i, j, k)."""
    alpha, loss = weight[is_positive].sum() / weight.sum(), 0.0

    def euclid(i, j):
        return np.sum((points[i] - points[j]) ** 2)

    def learned(i, j):
        return (points[i] - points[j]) @ matrix @ (points[i] - points[j])

    positives, negatives = np.flatnonzero(is_positive), np.flatnonzero(~is_positive)
    for i in positives:
        for j in positives:
            for k in negatives:
                times = weight[i] * weight[j] * weight[k]
                loss += times * (1 - alpha) * max(0.0, 1 - c + learned(i, j) - euclid(i, k))
    for i in negatives:
        for j in negatives:
            for k in positives:
                loss += weight[i] * weight[j] * weight[k] * alpha * max(0.0, 1 - c + euclid(i, j) - learned(i, k))
    return loss / total + mu * np.sum((matrix - np.eye(len(matrix))) ** 2)


@pytest.mark.parametrize("form", FORMS)
def test_all_triplets_are_the_sum_of_the_thesis(form):
    rng = np.random.default_rng(3)
    points, is_positive, _ = make_points(18, 5, 3)
    cases = distinct_cases(points, is_positive, rng.integers(1, 4, 18).astype(float))
    for per_case in (True, False):
        problem = make_problem(form, kind="all", mu=0.1, c=0.3, per_case=per_case, cases=cases)
        variable = feasible(problem, 1)
        m, m_plus = cases[2].sum(), cases[2][cases[1]].sum()
        total = m**3 if per_case else m_plus * (m - m_plus) * m
        expected = plain_objective(*cases, matrix_of(problem, variable), 0.1, 0.3, total)
        assert problem.value(variable) == pytest.approx(expected, rel=1e-10)
    risk = risk_of_all(*cases, problem.form.components(variable), 0.7)
    assert risk == pytest.approx(plain_objective(*cases, matrix_of(problem, variable), 0.0, 0.3, m**3), rel=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["nearest", "all", "sampled"])
def test_the_gradient_is_the_numerical_one(form, kind):
    problem = make_problem(form, kind=kind, mu=0.05)
    variable, width = feasible(problem, 2), 0.5
    _, gradient = problem.value_and_gradient(variable, width)
    step, numerical = 1e-6, np.zeros_like(variable)
    for at in np.ndindex(variable.shape):
        high, low = variable.copy(), variable.copy()
        high[at] += step
        low[at] -= step
        numerical[at] = (problem.value(high, width) - problem.value(low, width)) / (2 * step)
    if form == "full":  # only symmetric moves are possible
        numerical = (numerical + numerical.T) / 2
    assert gradient == pytest.approx(numerical, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mu", [0.0, 1e-4, 1e-2, 1.0])
def test_every_iterate_is_feasible_and_the_objective_never_rises(form, mu):
    problem, seen = make_problem(form, mu=mu), []
    solution = solve(problem, 1e-4, 200, lambda x, value: seen.append((x.copy(), value)))
    assert len(seen) == len(solution.objective) == solution.n_iter + 1
    for variable, _ in seen:
        values = np.linalg.eigvalsh(matrix_of(problem, variable))
        assert values.min() >= -1e-10
        assert values.max() <= 1 + 1e-10
    assert np.all(np.diff(solution.objective) <= 0)
    assert problem.value(solution.variable) == pytest.approx(solution.objective[-1], rel=1e-12)
    assert solution.objective[-1] < solution.objective[0]


@pytest.mark.parametrize("mu", [0.0, 1e-3, 1e-1])
def test_the_gap_is_proved(mu):
    """No other solver finds less than the lower bound."""
    problem = make_problem("diagonal", mu=mu, c=0.2)
    solution = solve(problem, 1e-4, 5000)
    assert solution.has_converged
    assert solution.gap <= 1e-4 * solution.objective[0]
    other = scipy.optimize.minimize(
        problem.value_and_gradient, solution.variable, args=(1e-6,), jac=True, bounds=[(0, 1)] * 4, method="L-BFGS-B",
        options={"ftol": 1e-14, "maxiter": 2000},
    )  # fmt: skip
    assert solution.objective[-1] - solution.gap <= problem.value(other.x)
    assert problem.value(other.x) >= problem.value(other.x, 1e-6)


def test_a_full_matrix_is_at_least_as_good_as_a_diagonal_one():
    values = {form: solve(make_problem(form, mu=1e-3), 1e-4, 2000).objective[-1] for form in ("diagonal", "full")}
    assert values["full"] <= values["diagonal"] + 1e-4


def test_a_large_penalty_keeps_the_identity():
    problem = make_problem("full", mu=1e6)
    assert matrix_of(problem, solve(problem, 1e-6, 100).variable) == pytest.approx(np.eye(4), abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_no_result_depends_on_the_number_of_threads(form):
    cases = make_points(1500, 100, 5)
    found = []
    for n_threads in (1, 3):
        with Threads(n_threads) as threads:
            problem = make_problem(form, threads=threads, cases=cases)
            found.append(solve(problem, 1e-3, 50).variable)
    assert np.array_equal(*found)


def test_nearest_triplets_of_copies_and_weights():
    points = np.array([[0.0], [1.0], [3.0], [4.0], [9.0]])
    is_positive = np.array([True, True, False, False, False])
    weight = np.array([2.0, 1.0, 1.0, 1.0, 3.0])
    weighted = choose_triplets(*distinct_cases(points, is_positive, weight), ONE, kind="nearest", n_neighbors=2,
                               n_sampled=1, seed=0, per_case=False)  # fmt: skip
    copies = np.repeat(np.arange(5), weight.astype(int))
    repeated = distinct_cases(points[copies], is_positive[copies], None)
    assert repeated[2].tolist() == distinct_cases(points, is_positive, weight)[2].tolist()
    # Anchors are sorted by class, then by value: 3, 4, 9 are negative, 0, 1 positive. The positive at 0 has weight 2:
    # its partners are one copy of itself and the positive at 1. The rivals of the anchor at 9 are two copies of itself.
    first = slice(*weighted.rival_start[2:4])
    assert weighted.rival[first].tolist() == [0.0]
    assert weighted.partner[slice(*weighted.partner_start[3:5])].tolist() == [3, 4]
    assert weighted.partner_weight[slice(*weighted.partner_start[3:5])].tolist() == [1.0, 1.0]
    assert weighted.n_triplets == 8 * 2 * 2


def test_one_positive_has_no_partner_and_k_is_what_there_is():
    points, _, weight = make_points(20, 1)
    is_positive = np.arange(20) == 4
    triplets = choose_triplets(*distinct_cases(points, is_positive, weight), ONE, kind="nearest", n_neighbors=50,
                               n_sampled=1, seed=0, per_case=False)  # fmt: skip
    assert np.diff(triplets.partner_start).tolist() == [1] * 19 + [0]
    assert np.diff(triplets.rival_start).tolist() == [18] * 19 + [19]


def test_triplets_without_a_loss_leave_the_identity():
    points = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 1.0], [100.0, 2.0]])
    problem = make_problem("diagonal", cases=(points, np.array([True, False, False, False]), np.ones(4)))
    solution = solve(problem, 1e-3, 10)
    assert solution.variable.tolist() == [1.0, 1.0]
    assert (solution.gap, solution.has_converged) == (0.0, True)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_rounding_ends_the_search_at_once_and_the_gap_stays_honest(form):
    """A coordinate of 1e100 in one loss hides all others: no step changes the objective."""
    points = np.array([[-0.5, 1.0], [-0.4, 0.0], [1e100, 1.0], [-0.6, 0.0]])
    problem = make_problem(form, cases=(points, np.arange(4) == 3, np.array([1.0, 1, 1, 3])), mu=0.1, n_neighbors=1)
    solution = solve(problem, 0.01, 500)
    assert solution.n_iter < 10
    assert (solution.has_converged, solution.is_stuck) == (False, True)
    assert solution.gap > 0.01 * solution.objective[0]
    assert np.linalg.eigvalsh(matrix_of(problem, solution.variable)) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", [1e4, 1e30, 1e100])
def test_any_unit_converges(form, unit):
    points, is_positive, weight = make_points()
    solution = solve(make_problem(form, cases=(np.clip(points * unit, -1e100, 1e100), is_positive, weight)), 0.01, 500)
    assert solution.has_converged
    assert solution.objective[-1] < 0.8 * solution.objective[0]
