from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_metrics import ranked_cases, repeat_rows, weighted_cases
from toprank.metrics import OperatingPoints, RocCurve, roc_curve

POSITIVES, NEGATIVES = 5.0, 8.0
errors = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=12)
some_errors = errors.filter(len)
ratios = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 100.0])


def points_of(drawn):
    false_positives, false_negatives = zip(*drawn, strict=True) if drawn else ((), ())
    return OperatingPoints(None, false_positives, false_negatives, POSITIVES, NEGATIVES)


def beats(one, other):
    return one != other and one[0] <= other[0] and one[1] <= other[1]


# --- what a frame says about its points ---------------------------------------------------------------------


@given(errors)
@example([(1, 1), (1, 1)])
@example([(2, 1), (2, 0)])
def test_a_point_is_dominated_where_another_is_at_least_as_good_in_both_and_better_in_one(drawn):
    expected = [any(beats(one, other) for one in drawn) for other in drawn]
    assert points_of(drawn).is_dominated.tolist() == expected


@given(errors, errors)
def test_a_set_dominates_another_where_each_point_of_it_has_its_match(mine, theirs):
    expected = all(any(a[0] <= b[0] and a[1] <= b[1] for a in mine) for b in theirs)
    assert points_of(mine).dominates(points_of(theirs)) == expected


@given(some_errors, ratios)
@example([(2, 0), (0, 2), (1, 1), (0, 2)], 1.0)
def test_the_cheapest_of_equals_has_the_fewest_false_positives_and_comes_first(drawn, ratio):
    points = points_of(drawn)
    costs = [missed + ratio * called for called, missed in drawn]
    assert points.cost(ratio).tolist() == costs
    expected = min(range(len(drawn)), key=lambda i: (costs[i], drawn[i][0], i))
    assert points.cheapest(ratio) == expected


@given(errors)
def test_the_hull_is_above_every_point_and_the_curve_and_touches_what_is_cheapest(drawn):
    points = points_of([*drawn, (0, 5), (8, 0)])
    curve, hull = points.curve(), points.hull()
    assert hull.is_concave()
    assert points.hull_area == hull.area
    assert (hull(points.false_positive_rate) >= points.true_positive_rate - 1e-12).all()
    assert (hull(curve.alpha) >= curve.beta - 1e-12).all()
    knots = set(zip(points.false_positive_rate.tolist(), points.true_positive_rate.tolist(), strict=True))
    assert knots.issuperset(zip(hull.alpha.tolist(), hull.beta.tolist(), strict=True))
    for ratio in (0.3, 1.1, 2.7):
        best = points.cheapest(ratio)
        assert hull(points.false_positive_rate[best]) == pytest.approx(points.true_positive_rate[best], abs=1e-12)


@given(errors)
def test_dominated_points_change_neither_the_curve_nor_the_hull(drawn):
    points = points_of(drawn)
    kept = points.select(~points.is_dominated)
    assert kept.curve() == points.curve()
    assert kept.hull() == points.hull()
    assert kept.dominates(points)
    assert not kept.is_dominated.any()


def test_without_points_the_curve_is_chance():
    empty = points_of([])
    assert len(empty) == 0
    assert empty.curve() == RocCurve([0, 1], [0, 1])
    assert empty.hull_area == 0.5
    assert points_of([(1, 1)]).dominates(empty)
    assert not empty.dominates(points_of([(1, 1)]))
    with pytest.raises(ValueError, match="cheapest needs at least one point"):
        empty.cheapest(1.0)


def test_rates_alerts_and_the_way_through_a_dict():
    points = OperatingPoints([2.0, np.nan], [2, 8], [4, 0], POSITIVES, NEGATIVES)
    assert points.false_positive_rate.tolist() == [0.25, 1.0]
    assert points.true_positive_rate.tolist() == pytest.approx([0.2, 1.0])
    assert points.alerts.tolist() == [3.0, 13.0]
    assert OperatingPoints(**points.to_dict()) == points
    assert points.select([1, 0]).select(1) == points.select([True, False])
    assert len(points.select([])) == 0
    assert points != points.select([0])
    assert points != 3
    assert repr(points) == "<OperatingPoints: 2 classifiers of 5 positives and 8 negatives>"
    with pytest.raises(ValueError, match="read-only"):
        points.false_positives[0] = 1


# --- points of labels and of scores -------------------------------------------------------------------------


@given(weighted_cases(weights=st.sampled_from([0, 0.5, 1, 2.25])))
def test_thresholds_of_a_score_are_its_roc_curve(case):
    y, score, weight = case
    points = OperatingPoints.from_scores(y, score, sample_weight=weight)
    curve = roc_curve(y, score, sample_weight=weight)
    np.testing.assert_allclose(points.false_positive_rate, curve.alpha, atol=1e-12)
    np.testing.assert_allclose(points.true_positive_rate, curve.beta, atol=1e-12)
    assert points.hull().distance(curve.hull(), "sup") <= 1e-12
    assert np.isnan(points.cost_ratio).all()


@given(weighted_cases(weights=st.sampled_from([0, 0.5, 1, 2.25])))
def test_thresholds_by_hand_are_thresholds_of_the_score(case):
    y, score, weight = (np.array(column) for column in case)
    levels = [99, *sorted(set(score[weight > 0].tolist()), reverse=True)]
    points = OperatingPoints.from_labels(y, [score >= level for level in levels], sample_weight=weight)
    of_scores = OperatingPoints.from_scores(y, score, sample_weight=weight)
    np.testing.assert_allclose(points.false_positives, of_scores.false_positives, atol=1e-12)
    np.testing.assert_allclose(points.false_negatives, of_scores.false_negatives, atol=1e-12)
    assert points.dominates(of_scores)
    assert of_scores.dominates(points)


@given(weighted_cases(), st.lists(st.integers(0, 4095), min_size=1, max_size=3))
def test_mistakes_are_counted_one_by_one_and_weight_two_is_the_row_twice(case, patterns):
    y, _, weight = case
    labels = [[pattern >> i & 1 for i in range(len(y))] for pattern in patterns]
    points = OperatingPoints.from_labels(y, labels, sample_weight=weight)
    for k, called in enumerate(labels):
        rows = list(zip(y, called, weight, strict=True))
        assert points.false_positives[k] == sum(w for truth, call, w in rows if call > truth)
        assert points.false_negatives[k] == sum(w for truth, call, w in rows if call < truth)
    y_rows, *label_rows = repeat_rows(weight, y, *labels)
    assert OperatingPoints.from_labels(y_rows, label_rows) == points


@given(ranked_cases(max_size=8), st.integers(0, 255))
def test_labels_may_be_words_numbers_or_booleans(case, pattern):
    y = np.array(case[0])
    called = np.array([pattern >> i & 1 for i in range(len(y))])
    expected = OperatingPoints.from_labels(y, called)
    names = np.array(["fair", "fraud"])
    assert OperatingPoints.from_labels(names[y], names[called]) == expected
    assert OperatingPoints.from_labels(names[y], called == 1) == expected
    assert OperatingPoints.from_labels(y, called == 1) == expected
    assert OperatingPoints.from_labels(y == 1, called == 1) == expected
    # The other class as the positive one: labels are compared with it, booleans say what is called positive.
    swapped = OperatingPoints.from_labels(1 - y, 1 - called, pos_label=0)
    assert swapped == expected
    assert OperatingPoints.from_labels(1 - y, called == 1, pos_label=0) == expected
    assert OperatingPoints.from_labels(y == 0, called == 0, pos_label=False) == expected


def test_cost_ratios_stay_with_their_points():
    points = OperatingPoints.from_labels([0, 1], [[0, 0], [1, 1]], cost_ratio=[2.0, 0.5])
    assert points.cost_ratio.tolist() == [2.0, 0.5]
    assert points.select([1]).cost_ratio.tolist() == [0.5]


def test_sums_in_another_order_do_not_hide_that_points_are_equal():
    weight = np.random.default_rng(0).random(200)
    y, score = np.arange(200) % 2, np.arange(200) // 2 % 10
    of_scores = OperatingPoints.from_scores(y, score, sample_weight=weight)
    reverse = OperatingPoints.from_scores(y[::-1], score[::-1], sample_weight=weight[::-1])
    assert of_scores.dominates(reverse)
    assert reverse.dominates(of_scores)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"positives": 0}, "'positives' of OperatingPoints .* Got 0 instead"),
        ({"negatives": np.inf}, "'negatives' of OperatingPoints"),
        ({"false_positives": [9.0]}, r"'false_positives' .* between 0 and 8, .* Got \[9.0\] .* not rates"),
        ({"false_negatives": [-1.0]}, "'false_negatives'"),
        ({"false_negatives": [np.nan]}, "'false_negatives'"),
        ({"false_positives": [[1.0]]}, "'false_positives'"),
        ({"cost_ratio": [-1.0]}, "'cost_ratio' .* NaN for an unknown one"),
        ({"cost_ratio": [np.inf]}, "'cost_ratio'"),
        ({"cost_ratio": [1.0, 2.0]}, "every point. Got 2, 1 and 1 values"),
    ],
)
def test_impossible_points_are_refused(fields, expected):
    fine = {
        "cost_ratio": [1.0],
        "false_positives": [1.0],
        "false_negatives": [1.0],
        "positives": 5.0,
        "negatives": 8.0,
    }
    assert len(OperatingPoints(**fine)) == 1
    with pytest.raises(ValueError, match=expected):
        OperatingPoints(**{**fine, **fields})


@pytest.mark.parametrize("ratio", [-1.0, np.nan, np.inf, "1", None])
def test_impossible_cost_ratios_are_refused(ratio):
    with pytest.raises(ValueError, match=r"'cost_ratio' parameter of OperatingPoints.cost .*Hint"):
        points_of([(1, 1)]).cost(ratio)


@pytest.mark.parametrize(
    ("y", "labels", "options", "expected"),
    [
        ([0, 1], [[0, 1, 1]], {}, "one column for each of the 2 cases. Got an array of shape"),
        ([0, 1], [[[0, 1]]], {}, r"shape \(1, 1, 2\)"),
        ([0, 1], [[0, 2]], {}, "values of y, 0 or 1, or booleans. Got 2 among them"),
        (["a", "b"], [[0, 1]], {}, "Got 0 among them"),
        ([0, 0], [[0, 1]], {}, "needs both classes"),
        ([0, 1], [[0, 1]], {"pos_label": 3}, "pos_label"),
        ([0, 1], [[0, 1]], {"sample_weight": [1, 0]}, "every positive row has sample_weight 0"),
        ([[0, 1]], [[0, 1]], {}, "one dimension"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, labels, options, expected):
    with pytest.raises(ValueError, match=expected):
        OperatingPoints.from_labels(y, labels, **options)


def test_points_of_other_cases_are_not_compared():
    mine, theirs = points_of([(1, 1)]), OperatingPoints(None, [1], [1], 5, 9)
    with pytest.raises(ValueError, match="5 positives and 8 negatives, the other 5 and 9"):
        mine.dominates(theirs)
    with pytest.raises(TypeError, match="Got RocCurve instead"):
        mine.dominates(mine.curve())


def test_every_pair_of_small_frames_agrees_on_who_dominates():
    plane = list(product((0, 1), (0, 1)))
    for one, other in product(plane, plane):
        both = points_of([one, other])
        expected = [beats(other, one), beats(one, other)]
        assert both.is_dominated.tolist() == expected
