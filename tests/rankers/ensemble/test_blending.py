import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from toprank.errors import InputError
from toprank.metrics import average_precision
from toprank.rankers.ensemble.blending import PULL, Blend
from toprank.rankers.log_odds import LogOddsMap, fit_log_odds_map, fit_logistic, with_gentle_ends


def held_out(n=2000, seed=0, n_rankers=2, noise=(0.5, 2.0)):
    """Scores of rankers that see the true log-odds with more or less noise, and outcomes."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-2.5, 1.5, n)
    scores = np.column_stack([logit + noise[i % len(noise)] * rng.normal(size=n) for i in range(n_rankers)])
    return scores, rng.random(n) < expit(logit), np.ones(n)


@given(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=30))
def test_a_map_keeps_the_order_of_any_scores_and_stays_finite(scores):
    found = LogOddsMap(np.array([-1.0, 0.0, 0.5, 2.0]), np.array([-4.0, -3.0, -1.0, 2.0]))
    ordered = np.sort(np.array(scores))
    value = found.at(ordered)
    assert np.isfinite(value).all()
    assert np.all(np.diff(value) >= -1e-12)
    assert np.array_equal(value, [found.at(ordered[i : i + 1])[0] for i in range(len(ordered))])


def test_a_map_has_its_knots_and_goes_on_beyond_them():
    found = LogOddsMap(np.array([0.0, 1.0, 3.0]), np.array([-2.0, 0.0, 1.0]))
    assert found.at(np.array([0.0, 1.0, 3.0, 0.5, 2.0])).tolist() == [-2.0, 0.0, 1.0, -1.0, 0.5]
    assert found.at(np.array([-1.0, 4.0])) == pytest.approx([-2.0 - np.log1p(2.0), 1.0 + np.log1p(0.5)])
    assert LogOddsMap(np.array([1.0]), np.array([-3.0])).at(np.array([1.0, 2.0])) == pytest.approx([-3, -3 + np.log(2)])


def test_knots_as_far_apart_or_as_close_as_floats_are():
    """A score of 1e308 was NaN between such knots, and 0.1 beyond two close ones added 25 log-odds."""
    wide = LogOddsMap(np.array([-1e308, 1e308]), np.array([-1.0, 1.0]))
    assert wide.at(np.array([-1e308, 0.0, 1e308, 1.7e308])) == pytest.approx([-1, 0, 1, 1 + np.log1p(0.7)])
    score = np.array([0.0, 1e-12, 0.5, 1.0 - 1e-12, 1.0])
    close = with_gentle_ends(LogOddsMap(score, np.array([-4.0, -3.0, -2.0, 0.0, 0.5])))
    tenth = 0.5 - (-2 + 0.8 * 2)  # between 0.9 and 1
    assert close.at(np.array([1.05, 1.1, 1.2])) == pytest.approx(
        0.5 + np.array([tenth / 2, tenth, tenth + np.log1p(tenth)])
    )
    assert close.at(np.array([-0.1])) == pytest.approx([-4 - (1 + 0.2)])
    assert close.at(score).tolist() == [-4.0, -3.0, -2.0, 0.0, 0.5]
    even = LogOddsMap(np.arange(5.0), np.arange(5.0))
    assert len(with_gentle_ends(even).check().score) == 5
    tiny = LogOddsMap(np.array([0.0, 5e-324]), np.array([0.0, 1.0]))
    assert np.isfinite(tiny.at(np.array([-1.0, 0.0, 5e-324, 1.0]))).all()


def test_a_map_learns_the_log_odds_and_never_ties():
    scores, is_positive, weight = held_out(20_000)
    found = fit_log_odds_map(np.exp(scores[:, 0]), is_positive, weight)
    assert np.all(np.diff(found.score) > 0)
    assert np.all(np.diff(found.log_odds) > 0)
    rng = np.random.default_rng(1)
    new, truth, _ = held_out(200_000, seed=2)
    value = found.at(np.exp(new[:, 0]))
    for low, high in ((-4, -3), (-3, -2), (-1, 0), (0.5, 1.5)):
        some = (value > low) & (value < high)
        assert truth[some].mean() == pytest.approx(expit(value[some]).mean(), rel=0.15)
    pure = rng.normal(size=500)
    assert len(np.unique(fit_log_odds_map(pure, rng.random(500) < 0.2, np.ones(500)).at(pure))) == 500


def test_the_order_of_rows_and_copies_change_nothing():
    scores, is_positive, weight = held_out(400)
    scores = scores.round(1)
    weight = np.random.default_rng(0).integers(1, 4, 400).astype(float)
    first = Blend.fit(scores, is_positive, weight)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(400), weight.astype(int)))
    other = Blend.fit(scores[order], is_positive[order], np.ones(len(order)))
    assert np.array_equal(first.weights, other.weights)
    assert first.intercept == other.intercept
    assert all(np.array_equal(a.log_odds, b.log_odds) for a, b in zip(first.maps, other.maps, strict=True))


def test_weights_are_those_of_the_penalised_likelihood():
    scores, is_positive, weight = held_out(3000)
    blend = Blend.fit(scores, is_positive, weight)
    features = np.column_stack([each.at(score) for each, score in zip(blend.maps, scores.T, strict=True)])

    def loss(weights, intercept):
        t = features @ weights + intercept
        return np.sum(np.logaddexp(0, t) - is_positive * t) + PULL / 2 * np.sum((weights - 0.5) ** 2)

    least = loss(blend.weights, blend.intercept)
    for step in np.random.default_rng(0).normal(0, 0.05, (200, 3)):
        moved = np.maximum(blend.weights + step[:2], 0.0)
        assert loss(moved, blend.intercept + step[2]) >= least - 1e-6 * abs(least)


def test_the_better_ranker_weighs_more_and_a_blend_beats_both():
    scores, is_positive, weight = held_out(6000, noise=(0.7, 1.2))
    blend = Blend.fit(scores, is_positive, weight)
    assert blend.weights[0] > blend.weights[1] > 0
    new, truth, _ = held_out(40_000, seed=5, noise=(0.7, 1.2))
    assert average_precision(truth, blend.score(new.T)) > max(average_precision(truth, s) for s in new.T)


def test_a_ranker_that_harms_gets_no_weight_and_is_not_asked():
    scores, is_positive, weight = held_out(20_000)
    features = np.column_stack((scores[:, 0], -scores[:, 0])) / 4  # the second one ranks the other way round
    slopes, _ = fit_logistic(features, is_positive.astype(float), weight, np.zeros(2), 0.1, np.full(2, 0.5))
    assert slopes[1] == 0.0 < slopes[0]
    blend = Blend([LogOddsMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]))] * 2, np.array([2.0, 0.0]), -1.0)
    assert blend.score([np.array([0.5]), np.array([np.nan])]).tolist() == [0.0]
    assert len(blend.in_use().maps) == 1


@pytest.mark.parametrize(
    ("score", "log_odds", "word"),
    [([0.0, 1.0], [0.0], "every score"), ([1.0, 0.0], [0.0, 1.0], "increase"), ([0.0, 1.0], [1.0, 1.0], "increase"),
     ([0.0, np.nan], [0.0, 1.0], "every score"), ([], [], "every score")],
)  # fmt: skip
def test_a_damaged_map_is_refused(score, log_odds, word):
    with pytest.raises(InputError, match=word):
        LogOddsMap(np.array(score, np.float64), np.array(log_odds, np.float64)).check()
