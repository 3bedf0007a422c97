"""Exact optima against slow enumeration, and the theorems of the paper's appendix B on them."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from toprank.metrics import OperatingPoints
from toprank.papers.exact_costs import exact_linear, exact_linear_curve, exact_stumps

RATIOS = [Fraction(n, 8) for n in (0, 1, 4, 7, 8, 12, 21, 200)]
few = settings(max_examples=20)


def cases(n_columns=2, max_size=9, n_values=4):
    """Rows of small whole numbers, labels of both classes and weights: ties are the rule."""
    row = st.tuples(*[st.integers(0, n_values - 1)] * n_columns, st.integers(0, 1), st.integers(1, 3))
    rows = st.lists(row, min_size=2, max_size=max_size).map(np.array)
    both_classes = rows.filter(lambda table: 0 < table[:, -2].sum() < len(table))
    return both_classes.map(lambda table: (table[:, :-2].astype(float), table[:, -2], table[:, -1]))


def mistakes(y, called, weight):
    """(False positives, false negatives) in whole numbers."""
    return int(weight[called & (y == 0)].sum()), int(weight[~called & (y == 1)].sum())


def all_stumps(X, y, weight):
    """Mistakes of every stump, one at a time."""
    found = {mistakes(y, np.full(len(y), call), weight) for call in (False, True)}
    for column in X.T:
        for threshold in set(column.tolist()):
            found |= {mistakes(y, column > threshold, weight), mistakes(y, column <= threshold, weight)}
    return sorted(found)


def thresholds_below(x, y, weight=None):
    """Mistakes of the classifiers of figure 5, "positive where x <= theta": the thresholds of the score -x."""
    points = OperatingPoints.from_scores(y, -np.asarray(x, float), sample_weight=weight)
    return sorted({(int(a), int(b)) for a, b in zip(points.false_positives, points.false_negatives, strict=True)})


def family(case):
    """The two families that the theorems are tried on."""
    X, y, weight = case
    return [thresholds_below(X[:, 0], y, weight), all_stumps(X, y, weight)]


def least(pairs, ratio):
    """C(lambda), eq. (8)."""
    return min(missed + ratio * called for called, missed in pairs)


def penalty_solutions(pairs, ratio):
    """Solutions of eq. (7)."""
    return {(called, missed) for called, missed in pairs if missed + ratio * called == least(pairs, ratio)}


def constrained_solutions(pairs, most):
    """Solutions of eq. (6)."""
    allowed = [pair for pair in pairs if pair[0] <= most]
    fewest = min(missed for _, missed in allowed)
    return {pair for pair in allowed if pair[1] == fewest}


def crossings(pairs):
    """All cost ratios at which two pairs cost the same, ascending."""
    steps = {Fraction(b[1] - a[1], a[0] - b[0]) for a, b in product(pairs, pairs) if a[0] > b[0] and b[1] > a[1]}
    return sorted(steps)


def all_penalty_solutions(pairs):
    """Solutions of eq. (7) for all ratios >= 0: at 0, at every crossing, and between and beyond the crossings."""
    at = crossings(pairs)
    inside = [(a + b) / 2 for a, b in pairwise([Fraction(0), *at, (at[-1] if at else 1) + Fraction(1)])]
    return set().union(*(penalty_solutions(pairs, ratio) for ratio in [Fraction(0), *at, *inside]))


def all_constrained_solutions(pairs):
    """Solutions of eq. (6) for all p."""
    return set().union(*(constrained_solutions(pairs, most) for most, _ in pairs if most >= min(pairs)[0]))


def non_dominated(pairs):
    return {b for b in pairs if not any(a != b and a[0] <= b[0] and a[1] <= b[1] for a in pairs)}


# --- stumps against enumeration -----------------------------------------------------------------------------


@few
@given(cases())
def test_stumps_are_the_best_for_every_cost_and_every_constraint(case):
    X, y, weight = case
    curve, pairs = exact_stumps(X, y, sample_weight=weight), all_stumps(X, y, weight)
    for ratio in [*RATIOS, *crossings(pairs)]:
        assert curve.minimum(float(ratio)) == pytest.approx(float(least(pairs, ratio)), abs=1e-12)
    for most in range(int(curve.points.negatives) + 1):
        assert curve.constrained(most) == min(missed for called, missed in pairs if called <= most)
    points = zip(curve.frontier.false_positives, curve.frontier.false_negatives, strict=True)
    assert set(points) == non_dominated(pairs)


@few
@given(cases())
def test_the_breakpoints_are_where_the_slope_of_the_least_cost_changes(case):
    X, y, weight = case
    curve, pairs = exact_stumps(X, y, sample_weight=weight), all_stumps(X, y, weight)
    at = crossings(pairs)
    ends = [Fraction(0), *at, (at[-1] if at else 0) + 2]
    slopes = [(least(pairs, b) - least(pairs, a)) / (b - a) for a, b in pairwise(ends)]
    changes = [float(ratio) for ratio, (a, b) in zip(at, pairwise(slopes), strict=True) if a != b]
    assert curve.breakpoints.tolist() == changes
    assert curve.points.false_positives.tolist() == [s for s, after in pairwise([*slopes, None]) if s != after]
    assert curve.points.cost_ratio.tolist() == [0.0, *changes]


@few
@given(cases())
def test_the_stumps_make_the_mistakes_that_are_claimed(case):
    X, y, weight = case
    curve = exact_stumps(X, y, sample_weight=weight)
    for i, stump in enumerate(curve.stumps):
        found = mistakes(y, stump.is_positive(X), weight)
        assert found == (curve.points.false_positives[i], curve.points.false_negatives[i])
    for ratio in RATIOS:
        called = curve.predict(X, float(ratio)) == 1
        false_positives, false_negatives = mistakes(y, called, weight)
        assert false_negatives + ratio * false_positives == least(all_stumps(X, y, weight), ratio)


@few
@given(cases(), st.randoms(use_true_random=False))
def test_weight_two_is_the_row_twice_in_any_order(case, random):
    X, y, weight = case
    rows = np.repeat(np.arange(len(y)), weight).tolist()
    random.shuffle(rows)
    weighted, repeated = exact_stumps(X, y, sample_weight=weight), exact_stumps(X[rows], y[rows])
    assert weighted.points == repeated.points
    assert weighted.frontier == repeated.frontier
    assert weighted.stumps == repeated.stumps
    halves = exact_stumps(X, y, sample_weight=weight / 4)
    assert halves.breakpoints.tolist() == weighted.breakpoints.tolist()
    assert (4 * halves.points.false_positives).tolist() == weighted.points.false_positives.tolist()


def test_labels_may_be_words_and_the_other_one_positive():
    X, y = [[1.0], [2.0], [3.0]], ["good", "bad", "bad"]
    curve = exact_stumps(X, y, pos_label="bad", sample_weight=[1, 1, 0])
    assert curve.predict([[1.2], [1.8], [9.0]], 1.0).tolist() == ["good", "bad", "bad"]
    assert (curve.points.positives, curve.points.negatives) == (1.0, 1.0)
    assert curve.stumps[curve.points.cheapest(1.0)].threshold == 1.5
    assert len(curve.breakpoints) == 0


def test_without_a_useful_column_the_constant_classifiers_are_left():
    curve = exact_stumps([[7.0], [7.0], [7.0]], [0, 1, 1])
    assert curve.points.false_positives.tolist() == [1.0, 0.0]
    assert [stump.threshold for stump in curve.stumps] == [-np.inf, np.inf]
    assert curve.predict([[3.0]], 1.9).tolist() == [1]
    assert curve.predict([[3.0]], 2.1).tolist() == [0]


def test_impossible_requests_are_refused():
    curve = exact_stumps([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="max_false_positives must be at least 0"):
        curve.constrained(-1)
    with pytest.raises(ValueError, match=r"ExactCurve.minimum must be a float in the range"):
        curve.minimum([1.0, -1.0])
    with pytest.raises(ValueError, match="exact_stumps needs both classes"):
        exact_stumps([[1.0], [2.0]], [0, 0])


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([["a"], ["b"]], r"needs columns of numbers, but column 'x0' holds 'a'. Hint: encode"),
        (np.array([[1.0, None], [2.0, "b"]], object), r"column 'x1' holds 'b'. Hint: encode"),
        (pd.DataFrame({"age": [1, 2], "town": ["Oslo", None]}), r"column 'town' holds 'Oslo'. Hint: encode"),
        ([[np.nan], [2.0]], r"of 2 values of column 'x0' 1 is missing \(NaN\). Hint: fill"),
        (np.array([[None], [None]], object), r"column 'x0' 2 are missing \(NaN\). Hint: fill"),
        (pl.DataFrame({"age": [1, None]}), r"column 'age' 1 is missing \(NaN\). Hint: fill"),
        ([[1.0, np.inf], [2.0, 1.0]], r"column 'x1' 1 is infinite. Hint: replace"),
        ([1.0, 2.0], "Expected 2D array"),
    ],
)
def test_columns_without_numbers_are_refused_in_a_sentence(X, expected):
    for refuses in (exact_stumps, lambda X, y: exact_linear(X, y, fp_cost=1.0)):
        with pytest.raises(ValueError, match=expected):
            refuses(X, [0, 1])


def test_booleans_and_numbers_of_any_frame_are_numbers():
    for X in (pd.DataFrame({"a": [True, False]}), pl.DataFrame({"a": [2, 1]}), np.array([[2], [1]], object)):
        assert exact_stumps(X, [1, 0]).minimum(1.0) == 0


# --- appendix B ---------------------------------------------------------------------------------------------


@few
@given(cases())
def test_b1_dearer_false_positives_are_fewer_and_cost_more(case):
    for pairs in family(case):
        for low, high in pairwise(RATIOS):
            before, after = penalty_solutions(pairs, low), penalty_solutions(pairs, high)
            # Of every pair of solutions, not only of the ones an algorithm happens to find.
            assert max(called for called, _ in after) <= min(called for called, _ in before)
            assert min(missed for _, missed in after) >= max(missed for _, missed in before)
            assert least(pairs, low) <= least(pairs, high)


@few
@given(cases())
def test_b2_the_least_cost_is_continuous_piecewise_linear_and_rises_until_there_are_no_false_positives(case):
    X, y, weight = case
    curve = exact_stumps(X, y, sample_weight=weight)
    points, breakpoints = curve.points, curve.breakpoints
    assert (np.diff(breakpoints) > 0).all()
    for i, ratio in enumerate(breakpoints):  # continuous: both neighbours cost the same
        both = points.cost(ratio)[i : i + 2]
        assert both[0] == pytest.approx(both[1], rel=1e-12)
        assert curve.minimum(ratio) == pytest.approx(both[0], rel=1e-12)
    ends = [0.0, *breakpoints, (breakpoints[-1] if len(breakpoints) else 1.0) + 3.0]
    for i, (start, stop) in enumerate(pairwise(ends)):
        inside = curve.minimum(np.linspace(start, stop, 5))
        slope = points.false_positives[i]
        np.testing.assert_allclose(np.diff(inside), slope * (stop - start) / 4, atol=1e-9)
        assert (slope > 0) or (i == len(points) - 1)  # constant in the last piece only
    assert points.false_positives[-1] == 0  # the classifier that calls nothing positive is in the family


@few
@given(cases())
def test_b3_every_penalty_solution_solves_the_constrained_problem_at_its_false_positives(case):
    for pairs in family(case):
        for ratio in [*RATIOS[1:], *crossings(pairs)]:
            for solution in penalty_solutions(pairs, ratio):
                assert solution in constrained_solutions(pairs, solution[0])


@few
@given(cases(n_columns=1, max_size=10, n_values=10))
@example((np.arange(5.0)[:, None], np.array([0, 1, 0, 1, 1]), np.ones(5, int)))
def test_b3_the_converse_holds_on_the_hull_and_nowhere_else(case):
    """A solution of the constrained problem solves the penalty problem where it lies on the lower convex hull."""
    for pairs in family(case):
        on_hull = all_penalty_solutions(pairs)
        efficient = non_dominated(pairs)
        assert efficient <= all_constrained_solutions(pairs)
        for called, missed in efficient:
            chords = [
                b[1] + Fraction((a[1] - b[1]) * (b[0] - called), b[0] - a[0])
                for a, b in product(efficient, efficient)
                if a[0] < called < b[0]
            ]
            assert ((called, missed) in on_hull) == all(missed <= height for height in chords)
        is_convex = efficient <= on_hull
        # Dominated solutions of either form aside (see below), the two sets are equal exactly where all is convex.
        assert (all_constrained_solutions(pairs) & efficient == on_hull & efficient) == is_convex


def test_b3_smallest_counterexample_among_classifiers_that_none_dominates():
    """Labels - + - + + in the order of x, positive where x <= theta: p = 1 asks for (1, 2), no lambda gives it.

    (pi, nu) are (0, 3), (1, 2) and (2, 0) where none dominates. The middle one lies above the line between the others,
    1.5 at pi = 1: it costs 2 + lambda, the others 3 and 2 lambda, and min(3, 2 lambda) < 2 + lambda for every lambda.
    The proof assumes that some lambda has a solution with pi = p: pi(theta*(lambda)) jumps from 2 to 0 at lambda = 3/2.
    """
    pairs = thresholds_below(np.arange(5), [0, 1, 0, 1, 1])
    assert non_dominated(pairs) == {(0, 3), (1, 2), (2, 0)}
    assert constrained_solutions(pairs, 1) == {(1, 2)}
    assert (1, 2) not in all_penalty_solutions(pairs)
    assert penalty_solutions(pairs, Fraction(3, 2)) == {(0, 3), (2, 0)}
    # No smaller data set has one, with or without equal x.
    for n in range(2, 5):
        for x, y in product(product(range(n), repeat=n), product((0, 1), repeat=n)):
            if 0 < sum(y) < n and list(x) == sorted(x):
                smaller = thresholds_below(x, y)
                assert non_dominated(smaller) <= all_penalty_solutions(smaller)


def test_b3_smallest_counterexample_of_all_is_a_dominated_solution():
    """Labels - - +: at p = 1 both (0, 1) and (1, 1) have the fewest false negatives; the second solves no (7)."""
    pairs = thresholds_below(np.arange(3), [0, 0, 1])
    assert constrained_solutions(pairs, 1) == {(0, 1), (1, 1)}
    assert all_constrained_solutions(pairs) - all_penalty_solutions(pairs) == {(1, 1)}
    for labels in ([0, 1], [1, 0]):
        for x in ([0, 1], [0, 0]):
            smaller = thresholds_below(x, labels)
            assert all_constrained_solutions(smaller) <= all_penalty_solutions(smaller)


def test_the_situation_of_figure_5_where_both_tables_agree():
    """Labels + + + - + + - + - - in the order of x, positive where x <= theta."""
    y = [1, 1, 1, 0, 1, 1, 0, 1, 0, 0]
    pairs = thresholds_below(np.arange(10), y)
    by_constraint = [constrained_solutions(pairs, most) for most in range(3)]
    by_penalty = [penalty_solutions(pairs, ratio) for ratio in (3, Fraction(3, 2), Fraction(1, 2))]
    assert by_constraint == by_penalty == [{(0, 3)}, {(1, 1)}, {(2, 0)}]
    # In full, with the free false positives of lambda = 0, which are those of an idle constraint.
    assert all_constrained_solutions(pairs) == all_penalty_solutions(pairs) == {(0, 3), (1, 1), (2, 0), (3, 0), (4, 0)}
    # The same from the code: the other side of a threshold is nowhere better here.
    curve = exact_stumps(np.arange(10.0)[:, None], y)
    assert curve.breakpoints.tolist() == [1.0, 2.0]
    assert curve.minimum([0.0, 0.5, 1.0, 1.5, 2.0, 9.0]).tolist() == [0.0, 1.0, 2.0, 2.5, 3.0, 3.0]
    assert [curve.constrained(most) for most in range(5)] == [3.0, 1.0, 0.0, 0.0, 0.0]
    assert curve.stumps[1].threshold == 5.5
    assert not any(stump.positive_above for stump in curve.stumps)


@few
@given(cases())
def test_the_cost_optimal_curve_dominates_every_roc_curve_of_the_family(case):
    X, y, weight = case
    curve = exact_stumps(X, y, sample_weight=weight)
    for score in (*X.T, *-X.T):
        roc = OperatingPoints.from_scores(y, score, sample_weight=weight)
        assert curve.frontier.dominates(roc)
        assert curve.points.hull_area >= roc.hull_area - 1e-12
        assert (curve.points.hull()(roc.false_positive_rate) >= roc.true_positive_rate - 1e-12).all()
    assert curve.points.hull().distance(curve.frontier.hull(), "sup") <= 1e-12


# --- linear classifiers -------------------------------------------------------------------------------------


def all_lines(X, y, weight):
    """Mistakes of all lines in the plane: every order of the points along a direction, every cut of it.

    The order changes where two points are level, so one direction between each two such angles shows all.
    """
    gaps = {(float(a[0] - b[0]), float(a[1] - b[1])) for a, b in product(X, X) if tuple(a) != tuple(b)}
    angles = np.unique(np.round([np.arctan2(-dx, dy) for dx, dy in gaps], 9)) if gaps else np.array([0.0])
    found = set()
    for angle in (angles + np.append(angles[1:], angles[0] + 2 * np.pi)) / 2:
        position = np.round(X @ [np.cos(angle), np.sin(angle)], 9)
        for threshold in [-np.inf, *np.unique(position)]:
            found.add(mistakes(y, position > threshold, weight))
    return sorted(found)


@few
@given(cases(max_size=12, n_values=7), st.sampled_from(RATIOS))
def test_the_best_line_is_that_of_enumeration(case, ratio):
    X, y, weight = case
    best = exact_linear(X, y, float(ratio), sample_weight=weight)
    assert best.is_optimal
    assert best.cost == best.lower_bound == pytest.approx(float(least(all_lines(X, y, weight), ratio)), abs=1e-9)
    assert mistakes(y, best.decision_function(X) > 0, weight) == (best.false_positives, best.false_negatives)


def two_clouds(n=20, n_columns=2, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return generator.normal(size=(n, n_columns)) + y[:, None] * 0.8, y


def test_the_curve_of_lines_in_a_cloud_is_that_of_enumeration():
    X, y = two_clouds(20)
    ratios = [0.1, 0.4, 0.9, 1.0, 1.7, 5.0]
    points, pairs = exact_linear_curve(X, y, ratios), all_lines(X, y, np.ones(20, int))
    assert points.cost_ratio.tolist() == ratios
    for i, ratio in enumerate(ratios):
        assert points.cost(ratio)[i] == pytest.approx(least(pairs, ratio), abs=1e-9)
        assert points.cost(ratio).min() == points.cost(ratio)[i]
    assert (np.diff(points.false_positives) <= 0).all()
    assert (np.diff(points.false_negatives) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_best_plane_is_that_of_all_ways_to_part_the_cases(seed):
    """In three columns: the cheapest of the 2^n ways to call the cases that a linear program can realise."""
    X, y = two_clouds(8, 3, seed)
    y = y[np.random.default_rng(seed).permutation(8)]  # so that something is wrong in each of them

    def is_linear(called):
        side = np.where(called, -1.0, 1.0)[:, None]
        rows = side * np.column_stack((X, np.ones(len(X))))
        return linprog(np.zeros(4), A_ub=rows, b_ub=-np.ones(len(X)), bounds=(None, None)).status == 0

    def cost(called):
        false_positives, false_negatives = mistakes(y, np.array(called), np.ones(8, int))
        return false_negatives + 0.7 * false_positives

    ways = sorted(product((False, True), repeat=8), key=cost)
    best = exact_linear(X, y, 0.7)
    assert best.is_optimal
    assert best.cost == pytest.approx(cost(next(way for way in ways if is_linear(np.array(way)))), abs=1e-9)


@few
@given(cases(n_columns=1, max_size=10, n_values=6), st.sampled_from(RATIOS[1:]))
def test_in_one_column_lines_are_stumps(case, ratio):
    X, y, weight = case
    best = exact_linear(X, y, float(ratio), sample_weight=weight)
    assert best.is_optimal
    assert best.cost == pytest.approx(exact_stumps(X, y, sample_weight=weight).minimum(float(ratio)), abs=1e-9)


def test_units_and_constant_columns_change_nothing():
    X, y = two_clouds(30)
    plain = exact_linear(X, y, 1.3)
    scaled = np.column_stack((1e5 * X[:, 0] + 3e6, np.full(30, 4.0), 1e-4 * X[:, 1]))
    best = exact_linear(scaled, y, 1.3)
    assert (best.cost, best.is_optimal) == (plain.cost, True)
    assert best.weight[1] == 0
    assert mistakes(y, best.decision_function(scaled) > 0, np.ones(30, int)) == (
        best.false_positives,
        best.false_negatives,
    )
    dear = exact_linear(X, y, 2.6, 2.0)
    assert dear.cost == pytest.approx(2 * plain.cost)


def test_equal_rows_of_both_classes_cost_what_the_rarer_one_weighs():
    best = exact_linear(np.ones((5, 2)), [0, 0, 0, 1, 1], 1.0)
    assert (best.false_positives, best.false_negatives, best.is_optimal) == (0.0, 2.0, True)
    undecided = exact_linear(np.ones((4, 1)), [0, 0, 1, 1], 1.0)
    assert (undecided.cost, undecided.is_optimal) == (2.0, True)


def test_without_time_the_answer_is_honest():
    X, y = two_clouds(60, 3)
    hasty, patient = exact_linear(X, y, 1.0, time_limit=0.0), exact_linear(X, y, 1.0)
    assert not hasty.is_optimal
    assert patient.is_optimal
    assert hasty.lower_bound <= patient.cost < hasty.cost
    with pytest.warns(UserWarning, match="could not prove the optimum at 2 of 2 cost ratios within 0 s"):
        exact_linear_curve(X, y, [1.0, 1.2], time_limit=0.0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"fp_cost": -1.0}, "'fp_cost' parameter of exact_linear must be a float"),
        ({"fp_cost": 1.0, "fn_cost": np.inf}, "'fn_cost' parameter of exact_linear"),
        ({"fp_cost": 1.0, "margin": 0.0}, r"'margin' parameter must be a float in the range \[2e-06, 1\). Got 0.0"),
    ],
)
def test_impossible_costs_and_margins_are_refused(options, expected):
    with pytest.raises(ValueError, match=expected):
        exact_linear([[1.0], [2.0]], [0, 1], **options)
