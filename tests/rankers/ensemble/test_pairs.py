import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from toprank._core.threads import Threads
from toprank.rankers.ensemble import pairs
from toprank.rankers.ensemble.pairs import (
    LARGEST_STEP,
    PLACE,
    PairRule,
    PairWeights,
    best_step,
    discordant_pairs,
    distinct_places,
)

places_of = {n: arrays(PLACE, st.tuples(st.integers(1, 9), st.just(n)), elements=st.integers(0, 3)) for n in (1, 2, 4)}
elections = st.sampled_from([1, 2, 4]).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=st.sampled_from([0.25, 0.5, 0.75, 2.0])),
        places_of[n],
        places_of[n],
        st.integers(1, 9),
    )
)


def definition(weight, negatives, count, places):
    """The mean over the negatives of the sign of the vote, as the paper has it, ties counting 0."""
    vote = np.sign(negatives[None, :, :].astype(int) - places[:, None, :]) @ weight
    return np.sign(vote) @ count / count.sum()


@given(elections)
def test_scores_are_the_mean_over_all_negatives(election):
    weight, negatives, places, most = election
    count = np.random.default_rng(0).integers(1, most + 1, len(negatives))
    rule = PairRule.from_places(weight, negatives, count)
    assert rule.count.sum() == count.sum()
    score = rule.scores(places, Threads())
    assert score == pytest.approx(definition(weight, negatives, count, places), abs=1e-15)
    assert [rule.scores(places[[i]], Threads())[0] for i in range(len(places))] == score.tolist()
    first = rule.first(1)
    assert first.places.shape[1] == 1
    assert np.array_equal(
        first.scores(places[:, :1], Threads()),
        PairRule.from_places(weight[:1], negatives[:, :1], count).scores(places[:, :1], Threads()),
    )


def test_blocks_and_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    negatives, places = (rng.integers(0, 4, (n, 5)).astype(PLACE) for n in (300, 200))
    rule = PairRule.from_places(rng.integers(1, 9, 5) / 8, negatives, np.ones(300, np.int64))
    whole = rule.scores(places, Threads())
    monkeypatch.setattr(pairs, "CHUNK_ROWS", 37)
    with Threads(3) as threads:
        assert np.array_equal(rule.scores(places, threads), whole)


@given(places_of[2] | places_of[4])
def test_distinct_rows(places):
    distinct, which = distinct_places(places)
    assert np.array_equal(distinct[which], places)
    assert len(distinct) == len({tuple(row) for row in places.tolist()})


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit together"):
        PairRule(np.ones(2), np.zeros((3, 1), PLACE), np.ones(3, np.int64))


masses = st.integers(0, 5)


values = st.floats(-1, 1, allow_subnormal=False)


def at_places(*elements):
    """Arrays of numbers of these kinds at a few places of a tree."""
    return st.integers(1, 5).flatmap(lambda n: st.tuples(*[arrays(float, n, elements=each) for each in elements]))


@st.composite
def weighted_cases(draw):
    """Labels, weights and scores of a few cases, both classes with weight."""
    n = draw(st.integers(2, 12))
    is_positive = np.array([True, False, *draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))])
    weight = draw(st.none() | arrays(float, n, elements=st.sampled_from([0.0, 0.25, 1.0, 3.0])))
    given_weight = np.ones(n) if weight is None else weight
    assume(given_weight[is_positive].any() and given_weight[~is_positive].any())
    return is_positive, weight, draw(arrays(float, n, elements=st.floats(-3, 3)))


def criterion(is_positive, weight, score):
    """J by its definition, one pair at a time."""
    weight = np.ones(len(score)) if weight is None else weight
    total = part = 0.0
    for i in np.flatnonzero(is_positive):
        for j in np.flatnonzero(~is_positive):
            total += weight[i] * weight[j]
            part += weight[i] * weight[j] * np.exp(-(score[i] - score[j]))
    return part / total


@given(weighted_cases())
def test_the_criterion_is_the_mean_over_pairs(case):
    is_positive, weight, score = case
    start = PairWeights(is_positive, weight)
    assert start.criterion == pytest.approx(1.0)
    moved = start.moved(score / 2).moved(score / 2)
    assert moved.criterion == pytest.approx(criterion(is_positive, weight, score))
    assert moved.omega[is_positive].sum() == pytest.approx(1.0)
    assert moved.omega[~is_positive].sum() == pytest.approx(1.0)


@given(weighted_cases())
def test_weights_of_pairs_are_products_of_weights_of_cases(case):
    is_positive, weight, score = case
    moved = PairWeights(is_positive, weight).moved(score)
    given_weight = np.ones(len(score)) if weight is None else weight
    positive, negative = np.flatnonzero(is_positive), np.flatnonzero(~is_positive)
    exponential = np.exp(score[negative] - score[positive][:, None])
    pairs = np.outer(given_weight[positive], given_weight[negative]) * exponential
    assert np.outer(moved.omega[positive], moved.omega[negative]) == pytest.approx(pairs / pairs.sum())
    grown = moved.for_growing()
    for side in (positive, negative):
        assert grown[side].sum() == pytest.approx(given_weight[side].sum())


def test_the_first_tree_sees_the_weights_as_given():
    weight = np.array([1.0, 3.0, 1.0, 7.0, 0.0])
    assert PairWeights(np.array([True, True, False, False, True]), weight).for_growing() is weight


@given(weighted_cases())
def test_below_the_smallest_pair_no_pair_is_in_the_wrong_order(case):
    is_positive, weight, score = case
    moved = PairWeights(is_positive, weight).moved(4 * score)
    present = np.ones(len(score), bool) if weight is None else weight > 0
    if moved.criterion < moved.smallest_pair:
        assert score[is_positive & present].min() > score[~is_positive & present].max()
    single = PairWeights(np.array([True, False]), None)
    assert single.moved(np.array([0.1, 0.0])).criterion < single.smallest_pair


def test_large_scores_do_not_overflow():
    moved = PairWeights(np.array([True, True, False, False]), None).moved(np.array([2000.0, 0.0, -2000.0, 0.0]))
    assert moved.criterion == pytest.approx(0.25)  # one pair of four is level, the others are far apart
    assert moved.omega.tolist() == [0.0, 1.0, 0.0, 1.0]


# The step


def log_z(step, value, positive, negative):
    return np.log((positive * np.exp(-step * value)).sum()) + np.log((negative * np.exp(step * value)).sum())


@given(at_places(values, masses, masses))
@example((np.array([0.5, 0.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0])))  # falls without end
@example((np.array([0.5, -0.5]), np.array([1.0, 1.0]), np.array([1.0, 1.0])))  # flat at 0
@example((np.array([1.0, 1e-9, 0.0]), np.array([5.0, 1.0, 0.0]), np.array([0.0, 1.0, 5.0])))
def test_the_step_is_where_scipy_finds_the_minimum(places):
    value, positive, negative = places
    assume(positive.any() and negative.any())
    step = best_step(value, positive, negative)
    assert 0.0 <= step <= LARGEST_STEP
    found = minimize_scalar(log_z, bounds=(0.0, LARGEST_STEP), args=places, method="bounded", options={"xatol": 1e-10})
    assert log_z(step, *places) <= min(found.fun, log_z(0.0, *places)) + 1e-12


def test_newton_finds_the_root_of_the_slope():
    rng = np.random.default_rng(0)
    for _ in range(200):
        value, positive, negative = np.sort(rng.uniform(-1, 1, 4))[::-1], rng.random(4), rng.random(4)
        positive[0] += 1.0
        negative[-1] += 1.0
        step = best_step(value, positive, negative)
        assert 0.0 < step < LARGEST_STEP
        slope = (log_z(step + 1e-5, value, positive, negative) - log_z(step - 1e-5, value, positive, negative)) / 2e-5
        assert slope == pytest.approx(0.0, abs=1e-8)


@given(beta=st.floats(0.02, 0.98), alpha=st.floats(0.02, 0.98))
def test_two_places_have_the_closed_form_of_rankboost(beta, alpha):
    """With values 1 - alpha and -alpha, whose difference is 1: W+ = beta (1 - alpha), W- = alpha (1 - beta)."""
    step = best_step(np.array([1 - alpha, -alpha]), np.array([beta, 1 - beta]), np.array([alpha, 1 - alpha]))
    expected = max(0.0, 0.5 * np.log(beta * (1 - alpha) / (alpha * (1 - beta))))
    assert step == pytest.approx(expected, abs=1e-9)


# Errors


@given(at_places(masses, masses))
def test_discordant_pairs(places):
    positive, negative = places
    n = range(len(positive))
    strict = sum(positive[k] * negative[j] for k in n for j in n if j < k)
    tied = sum(positive[k] * negative[k] for k in n)
    assert discordant_pairs(positive, negative) == pytest.approx((strict, tied))
