import numpy as np
import pytest

from toprank.papers import linear_cells
from toprank.papers.linear_cells import GAP, Cells, LinearProblem, search_directions


def a_problem(n=30, n_columns=3, margin=1e-3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 6, (n, n_columns)).astype(float)  # with equal rows
    return LinearProblem.from_rows(X, generator.choice([-2.0, -0.7, 1.0, 3.0], n), margin)


def random_cells(n_cells, n_columns, generator):
    """Boxes on the faces of the cube."""
    ends = np.sort(generator.uniform(-1, 1, (2, n_cells, n_columns)), axis=0)
    face, rows = generator.integers(0, n_columns, n_cells), np.arange(n_cells)
    ends[:, rows, face] = generator.choice([-1.0, 1.0], n_cells)
    return ends


def cost_of(problem, weight, threshold):
    """Cost of a classifier and whether it gets each point wrong; a point within the margin is wrong."""
    side = problem.points @ weight - threshold
    is_wrong = np.where(problem.cost > 0, side < problem.margin, side > -problem.margin)
    return problem.floor + np.abs(problem.cost[is_wrong]).sum(), is_wrong


def test_no_classifier_of_a_cell_escapes_its_bound_or_what_is_said_about_it():
    generator, problem, n_cheap = np.random.default_rng(1), a_problem(), 0
    low, high = random_cells(60, 3, generator)
    high = np.where(generator.random((60, 1)) < 0.5, low + (high - low) / 20, high)  # narrow ones say more
    everything = Cells.below(np.inf, problem, low, high)
    cutoff = float(np.quantile(everything.bound, 0.8)) + 0.01
    kept = Cells.below(cutoff, problem, low, high)
    assert len(everything) == 60
    assert 0 < len(kept) < 60
    assert kept.bound.tolist() == everything.bound[everything.bound < cutoff].tolist()
    for i in range(len(everything)):
        for share in generator.random((30, 3)):
            weight = low[i] + share * (high[i] - low[i])
            cost, _ = cost_of(problem, weight, generator.uniform(-1.5, 1.5))
            assert cost >= everything.bound[i] - 1e-9
    for i in range(len(kept)):
        for share in generator.random((30, 3)):
            weight = kept.low[i] + share * (kept.high[i] - kept.low[i])
            threshold = generator.uniform(-1.5, 1.5)
            cost, is_wrong = cost_of(problem, weight, threshold)
            if cost < cutoff:
                n_cheap += 1
                assert kept.first[i] <= threshold <= kept.last[i]
                assert is_wrong[kept.is_wrong[i]].all()
                assert not is_wrong[~kept.is_wrong[i] & ~kept.is_open[i]].any()
    assert n_cheap > 20


def test_halves_cover_the_cell_and_share_its_widest_edge():
    low, high = np.array([[-1.0, 0.0, 1.0], [0, 0, -1.0]]), np.array([[1.0, 0.5, 1.0], [0.1, 1.0, -1.0]])
    cells = Cells.below(np.inf, a_problem(), low, high)
    half_low, half_high = cells.halves(np.array([True, True]))
    np.testing.assert_array_equal(half_low, [[-1, 0, 1], [0, 0, -1], [0, 0, 1], [0, 0.5, -1]])
    np.testing.assert_array_equal(half_high, [[0, 0.5, 1], [0.1, 0.5, -1], [1, 0.5, 1], [0.1, 1, -1]])
    assert len(cells.halves(np.array([False, True]))[0]) == 2


def test_cut_costs_are_those_of_calling_the_points_one_by_one():
    problem = a_problem(12, 2)
    keys = np.array([np.round(problem.points @ [1.0, -0.3], 1), problem.points[:, 0]])
    ordered, costs = problem.cut_costs(keys, GAP)
    for row, key in enumerate(keys):
        assert ordered[row].tolist() == sorted(key.tolist())
        for cut in range(len(key) + 1):
            if 0 < cut < len(key) and ordered[row, cut] == ordered[row, cut - 1]:
                assert costs[row, cut] == np.inf
                continue
            threshold = -np.inf if cut == 0 else ordered[row, cut - 1]
            called = key > threshold
            wrong = np.where(problem.cost > 0, ~called, called)
            assert costs[row, cut] == pytest.approx(problem.floor + np.abs(problem.cost[wrong]).sum())


@pytest.mark.parametrize("seed", range(3))
def test_bisecting_and_the_solver_share_the_work_as_one_likes(seed, monkeypatch):
    problem = a_problem(25, 2, 1e-4, seed)
    results = []
    for few_cases, max_cells in [(16, 4096), (4, 4096), (1000, 4096), (0, 4)]:
        monkeypatch.setattr(linear_cells, "FEW_CASES", few_cases)
        monkeypatch.setattr(linear_cells, "MAX_CELLS", max_cells)
        results.append(search_directions(problem, [], 60.0)[2])
    assert results == pytest.approx([results[0]] * 4)


def test_a_good_start_is_kept():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(40, 6))
    truth = np.array([1.0, -2.0, 0.5, 0.3, 3.0, -0.7])
    problem = LinearProblem.from_rows(X, np.where(X @ truth > 0.2, 1.0, -1.0), 1e-5)
    direction, threshold, lower_bound = search_directions(problem, [truth], 0.0)
    assert lower_bound == 0
    np.testing.assert_array_equal(X @ direction > threshold, X @ truth > 0.2)
