"""Hit rates by score: honest on data whose rates are known, monotone, kept in files."""

import numpy as np
import pytest

from toprank.errors import InputError
from toprank.metrics import HitRates, average_precision
from toprank.metrics.hit_rates import (
    KNOTS,
    LARGEST_SPREAD,
    LEAST_SPREAD,
    OF_TRAINING,
    fit_hit_rates,
    on_final_scale,
    random_average_precision,
    random_order_limit,
)

NAN = float("nan")


def drawn(n, seed, rate_of=lambda s: s**3):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return score, rng.random(n) < rate_of(score)


def fitted(score, is_positive, weight=None, fold=None, knots=None):
    weight = np.ones(len(score)) if weight is None else weight
    knots = np.unique(score) if knots is None else knots
    return fit_hit_rates(score, is_positive, weight, fold, knots, "out of bag")


@pytest.mark.parametrize("rate_of", [lambda s: s**3, lambda s: 0.02 + 0.5 * (s > 0.97), lambda s: 0.1 + 0 * s])
def test_rates_are_those_of_the_population(rate_of):
    score, is_positive = drawn(40_000, 0, rate_of)
    rates = fitted(score, is_positive)
    for low, high in ((0.99, 1.0), (0.95, 1.0), (0.5, 0.6), (0.0, 0.2)):
        new = np.linspace(low, high, 2001)[1:-1]
        assert rates.at(new).mean() == pytest.approx(rate_of(new).mean(), abs=0.05)


def test_rates_never_fall_and_stay_between_0_and_1():
    for seed in range(20):
        score, is_positive = drawn(60, seed)
        rate = fitted(score, is_positive).at(np.linspace(-1, 2, 500))
        assert np.all(np.diff(rate) >= 0)
        assert rate.min() >= 0
        assert rate.max() <= 1


def test_a_lucky_top_is_not_believed():
    score = np.arange(1000.0)
    is_positive = (score >= 997) | (score % 100 == 0)
    assert fitted(score, is_positive).at(np.array([999.0]))[0] < 0.5


def test_weight_two_is_the_case_twice():
    score, is_positive = drawn(300, 3)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    rates = fitted(score, is_positive, weight.astype(float))
    copies = fitted(np.repeat(score, weight), np.repeat(is_positive, weight))
    assert np.allclose(rates.rate, copies.rate)
    assert np.allclose(rates.above, copies.above)


def test_tied_cases_share_a_rate():
    score = np.repeat([0.2, 0.6, 1.0], [600, 300, 100])
    is_positive = np.concatenate([np.arange(n) < hits for n, hits in ((600, 6), (300, 30), (100, 50))])
    rate = fitted(score, is_positive).at(np.array([0.2, 0.6, 1.0]))
    assert rate == pytest.approx([0.01, 0.1, 0.5], abs=0.05)


def test_intervals_hold_what_new_cases_hit():
    covered = []
    for seed in range(60):
        score, is_positive = drawn(2000, seed)
        new, hits = drawn(1000, 1000 + seed)
        rates = fitted(score, is_positive)
        for share in (0.02, 0.1):
            top = np.argsort(-new)[: int(share * len(new))]
            _, low, high = rates.of_group(new[top])
            covered.append(low <= hits[top].mean() <= high)
    assert np.mean(covered) >= 0.9


def test_intervals_are_wider_for_fewer_cases_and_hold_their_rate():
    rates = fitted(*drawn(2000, 0))
    few, many = rates.interval(0.3, 20, 20), rates.interval(0.3, 2000, 2000)
    assert few[0] < many[0] < 0.3 < many[1] < few[1]
    assert rates.interval(0.0, 10, 10)[0] == 0.0
    assert rates.interval(1.0, 10, 10)[1] == 1.0


def test_models_of_folds_that_differ_widen_the_interval():
    score, is_positive = drawn(5000, 0, lambda s: 0.2 + 0.3 * (s > 0.9))
    fold = np.arange(5000) % 5
    alike = fitted(score, is_positive, fold=fold)
    upside_down = np.where(fold == 0, 1 - score, score)
    differ = fitted(upside_down, is_positive, fold=fold)
    assert LEAST_SPREAD <= alike.spread < differ.spread <= LARGEST_SPREAD


def test_average_precision_is_the_mean_over_folds():
    from sklearn.metrics import average_precision_score

    score, is_positive = drawn(500, 1)
    fold = np.arange(500) % 4
    expected = [average_precision_score(is_positive[fold == f], score[fold == f]) for f in range(4)]
    rates = fitted(score, is_positive, fold=fold)
    assert rates.average_precision == pytest.approx(np.mean(expected))
    assert rates.deviation == pytest.approx(np.std(expected, ddof=1))
    assert np.isnan(fitted(score, is_positive).deviation)


def test_few_knots_stand_for_many_scores():
    score, is_positive = drawn(30_000, 2)
    rates = fitted(score, is_positive)
    assert len(rates.score) <= KNOTS
    assert rates.score[-1] == score.max()


def test_a_score_that_many_cases_share_keeps_its_rate():
    score, is_positive = drawn(20_000, 4, lambda s: 0.001 + 0.6 * (s > 0.9))
    tie = (score > 0.6) & (score <= 0.9)  # a third of the cases, beside rates that are a hundred times as high
    score[tie] = np.nextafter(0.9, 0.0)
    weight = np.ones(len(score))
    rates = fit_hit_rates(score, is_positive, weight, None, score, "out of bag", knot_weight=weight)
    assert len(rates.score) <= 2 * KNOTS < len(np.unique(score))
    assert rates.at(score[tie])[0] < 0.02
    assert rates.at(score).sum() == pytest.approx(is_positive.sum(), rel=0.05)


def test_arrays_give_equal_rates_back_and_damage_is_refused():
    rates = fitted(*drawn(500, 0))
    arrays = rates.to_arrays()
    again = HitRates.from_arrays(arrays)
    assert np.array_equal(again.rate, rates.rate)
    assert (again.source, again.spread) == (rates.source, rates.spread)
    for name, value in (("rate", rates.rate[::-1]), ("score", rates.score[:-1]), ("spread", np.array(0.5)),
                        ("above", -rates.above)):  # fmt: skip
        with pytest.raises(ValueError, match="hit rates"):
            HitRates.from_arrays(arrays | {name: value})


def test_scores_of_another_model_are_put_on_the_scale_of_the_final_one():
    seen, final = np.linspace(0, 1, 101), np.linspace(0, 10, 1001)
    weight = np.ones(101)
    moved = on_final_scale(np.array([0.1, 0.5, 0.9]), seen, weight, final, np.ones(1001))
    assert moved == pytest.approx([1.0, 5.0, 9.0], abs=0.05)
    tied = on_final_scale(np.array([1.0]), np.repeat([0.5, 1.0], [90, 10]), np.ones(100), final, np.ones(1001))
    assert tied[0] == pytest.approx(9.5, abs=0.05)  # the middle of the tie


def test_rates_of_training_say_so():
    rates = HitRates([0.0, 1.0], [0.1, 0.5], [10.0, 5.0], 1.0, "training", 0.3, NAN)
    assert not rates.is_for_new_cases


def test_shares_of_cases_are_kept_in_files_and_checked():
    rates = HitRates([0.0, 1.0, 2.0], [0.1, 0.2, 0.5], [10.0, 5.0, 5.0], 2.0, "out of bag", 0.3, NAN, [1.0, 0.25, 0.25])
    assert rates.scores_of_cases.tolist() == [0.0, 2.0]
    arrays = rates.to_arrays()
    assert HitRates.from_arrays(arrays).share.tolist() == [1.0, 0.25, 0.25]
    without = {name: array for name, array in arrays.items() if name != "share"}
    assert HitRates.from_arrays(without).share.tolist() == [1.0, 0.5, 0.5]  # of a file written before
    for wrong in ([1.0, 0.5], [0.5, 0.6, 0.1], [1.0, 0.5, -0.1], [2.0, 1.0, 0.5], [1.0, NAN, 0.0]):
        with pytest.raises(InputError, match="share of cases"):
            HitRates.from_arrays(arrays | {"share": np.array(wrong)})


def test_the_average_precision_of_a_random_order_is_exact():
    for n, n_positives in ((10, 1), (60, 5), (400, 21)):
        tied = average_precision(np.arange(n) < n_positives, np.zeros(n), ties="expected")
        assert random_average_precision(n, n_positives) == pytest.approx(tied, abs=1e-3)


@pytest.mark.parametrize(("source", "deviation"), [("5-fold cross-validation", 0.02), ("out of bag", NAN)])
def test_average_precision_near_chance(source, deviation):
    def rates(found):
        return HitRates([0.0, 1.0], [0.1, 0.5], [2000.0, 0.0], 1.0, source, found, deviation)

    assert rates(0.06).is_near_chance(0.05, 100)
    assert not rates(0.08).is_near_chance(0.05, 100)
    assert not rates(0.08).has_few_positives(0.05, 100)
    assert rates(0.08).has_few_positives(0.05, 5)


@pytest.mark.parametrize(("n", "n_positives", "n_folds"), [(40, 20, 1), (400, 21, 1), (300, 31, 5), (50, 1, 1)])
def test_a_random_order_exceeds_the_limit_in_one_of_twenty_draws(n, n_positives, n_folds):
    rng = np.random.default_rng(1)
    limit = random_order_limit(n, n_positives, n_folds)
    fold = np.arange(n) % n_folds
    is_positive = np.zeros(n, bool)
    is_positive[:n_positives] = True
    found = []
    for _ in range(1_000):
        score = rng.permutation(n)
        folds = [average_precision(is_positive[fold == f], score[fold == f]) for f in range(n_folds)]
        found.append(np.mean(folds))
    assert 0.03 <= np.mean(np.array(found) > limit) <= 0.07


@pytest.mark.parametrize(
    ("found", "n", "n_positives", "is_near"),
    [(0.053, 2_000, 36, True), (0.053, 10_000, 180, False), (0.112, 4_177, 26, False)],
)
def test_models_that_help_are_not_called_near_chance(found, n, n_positives, is_near):
    """An average precision of 0.112 where a random order has 0.006 was called hardly better than that."""
    rates = HitRates([0.0, 1.0], [0.0, 0.5], [n, 0.0], 2.0, "5-fold cross-validation", found, 0.01, n_folds=5)
    assert rates.is_near_chance(n_positives / n, n_positives) == is_near


def test_the_number_of_folds_is_kept_in_files():
    fold = np.arange(300) % 3
    rng = np.random.default_rng(0)
    score, is_positive = rng.normal(size=300), rng.random(300) < 0.3
    rates = fit_hit_rates(score, is_positive, np.ones(300), fold, score, "3-fold cross-validation")
    arrays = rates.to_arrays()
    assert HitRates.from_arrays(arrays).n_folds == rates.n_folds == 3
    del arrays["n_folds"]
    assert HitRates.from_arrays(arrays).n_folds == 5  # files that do not say


def test_rates_of_training_cases_are_never_called_near_chance():
    rates = HitRates([0.0, 1.0], [0.1, 0.5], [2000.0, 0.0], 1.0, OF_TRAINING, 0.06, NAN)
    assert not rates.is_near_chance(0.05, 100)
