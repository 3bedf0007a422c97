"""What all populations promise: rows, probabilities and curves of one and the same law."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.datasets import (
    BoxPopulation,
    CheckerboardPopulation,
    Population,
    SimulatedData,
    make_boxes,
    make_checkerboard,
    make_gaussians,
    make_quadratic_gaussians,
)
from toprank.datasets.populations import CURVE_TOLERANCE, check_number

MAKERS: dict[str, Callable[..., SimulatedData]] = {
    "axis": make_gaussians,
    "arbitrary": partial(make_gaussians, separator="arbitrary", positive_rate=0.2),
    "quadratic": partial(make_quadratic_gaussians, positive_rate=0.3),
    "checkerboard": partial(make_checkerboard, n_fields=4, n_features=3),
    "boxes": make_boxes,
}
SMOOTH = ("axis", "arbitrary", "quadratic")


@pytest.fixture(scope="module")
def populations() -> dict[str, Population]:
    return {name: make(n_samples=1, random_state=0).population for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_same_seed_same_rows(name):
    a, b, c = (MAKERS[name](n_samples=50, random_state=seed, n_noise_features=2) for seed in (3, 3, 4))
    assert np.array_equal(a.X, b.X)
    assert np.array_equal(a.y, b.y)
    assert np.array_equal(a.probability, b.probability)
    assert not np.array_equal(a.X, c.X)
    x, y = (MAKERS[name](n_samples=50, random_state=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(x.X, y.X)
    assert len(MAKERS[name](n_samples=50)) == 50


@pytest.mark.parametrize("name", MAKERS)
def test_types_shapes_and_repr(name):
    data = MAKERS[name](n_samples=80, random_state=0, n_noise_features=2)
    assert (data.X.dtype, data.y.dtype, data.probability.dtype) == (np.float64, np.int8, np.float64)
    assert data.X.shape == (80, data.population.n_features)
    assert data.X.flags.c_contiguous
    assert data.population.n_features == data.population.n_signal_features + 2
    assert np.array_equal(data.probability, data.population.probability(data.X))
    pattern = rf"<SimulatedData: 80 rows, \d features, \d+ positive, from {type(data.population).__name__}>"
    assert re.fullmatch(pattern, repr(data))
    assert "Population(" in repr(data.population)


def test_the_seed_elsewhere_is_independent_of_the_rows():
    data = make_checkerboard(20_000, random_state=7)
    draw = np.random.default_rng(7).random((20_000, 2))
    assert abs(np.corrcoef(draw[:, 0], data.X[:, 0])[0, 1]) < 4.0 / np.sqrt(20_000)


def test_take_picks_rows():
    data = make_gaussians(20, random_state=0)
    few = data.take(data.y == 1)
    assert few.y.all()
    assert np.array_equal(few.X, data.X[data.y == 1])
    assert few.population is data.population


@pytest.mark.parametrize("name", MAKERS)
def test_noise_features_say_nothing(name):
    data = MAKERS[name](n_samples=2_000, random_state=0, n_noise_features=3)
    other = data.X.copy()
    other[:, -3:] = other[::-1, -3:]
    assert np.array_equal(data.population.probability(other), data.probability)
    correlations = np.corrcoef(np.c_[data.X, data.y, data.probability].T)[-5:-2]
    np.fill_diagonal(correlations[:, -5:-2], 0.0)
    assert np.abs(correlations).max() < 5.0 / np.sqrt(2_000)


@pytest.mark.parametrize("name", MAKERS)
def test_many_rows_have_the_rates_and_the_curve_of_their_population(name, populations):
    """Both coordinates of the empirical curve of eta stay within the Dvoretzky-Kiefer-Wolfowitz band of the true ones.

    Each fails once in a million seeds. The curve at the empirical alpha is then off by the band times its slope.
    """
    population = populations[name]
    data = population.sample(200_000, 11)
    threshold = np.r_[0.0, np.quantile(data.probability, np.linspace(0.0, 1.0, 400)), 1.0]
    rates = dict(zip((0, 1), population.rates_above(threshold), strict=True))
    for label, rate in rates.items():
        ordered = np.sort(data.probability[data.y == label])
        found = 1.0 - np.searchsorted(ordered, threshold, side="right") / ordered.size
        assert np.abs(found - rate).max() < np.sqrt(np.log(2e6) / (2.0 * ordered.size))
    on_curve = population.optimal_roc()(rates[0])
    assert np.abs(on_curve - rates[1])[rates[0] > 0.0].max() < 1e-4
    assert data.y.mean() == pytest.approx(population.positive_rate, abs=5.0 * 0.5 / np.sqrt(200_000))


@pytest.mark.parametrize("name", MAKERS)
def test_probability_is_calibrated(name, populations):
    data = populations[name].sample(200_000, 3)
    assert data.probability.mean() == pytest.approx(data.population.positive_rate, abs=0.005)
    bins = np.digitize(data.probability, [0.005, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
    found, expected = np.bincount(bins, data.y), np.bincount(bins, data.probability)
    noise = np.sqrt(np.bincount(bins, data.probability * (1.0 - data.probability)))
    assert (np.abs(found - expected) <= 4.5 * noise).all()


@pytest.mark.parametrize("name", MAKERS)
def test_curves_are_concave_and_their_area_is_the_auc(name, populations):
    curve = populations[name].optimal_roc()
    assert curve.is_concave()
    exact = populations[name].optimal_auc()
    assert exact - CURVE_TOLERANCE <= curve.area <= exact + 1e-6


@pytest.mark.parametrize("name", MAKERS)
def test_rates_at_the_ends(name, populations):
    alpha, beta = populations[name].rates_above([0.0, 1.0])
    assert (alpha.tolist(), beta.tolist()) == ([1.0, 0.0], [1.0, 0.0])
    alpha, beta = populations[name].rates_above(0.3)
    assert alpha.shape == beta.shape == ()


@pytest.mark.parametrize("name", SMOOTH)
def test_the_slope_is_the_likelihood_ratio(name, populations):
    """Proposition 8: the slope of ROC* at alpha is (1 - p) / p * Q / (1 - Q), with Q the threshold at alpha.

    By the mean value theorem a chord between two thresholds has a slope between those at its ends.
    """
    population = populations[name]
    p = population.positive_rate
    threshold = np.linspace(0.98, 0.02, 97)
    alpha, beta = population.rates_above(threshold)
    chord = np.diff(beta) / np.diff(alpha)
    slope = (1.0 - p) / p * threshold / (1.0 - threshold)
    assert (chord < slope[:-1]).all()
    assert (chord > slope[1:]).all()


@pytest.mark.parametrize("name", ["checkerboard", "boxes"])
def test_every_piece_has_the_slope_of_its_rate(name, populations):
    population = populations[name]
    p, rate = population.positive_rate, np.unique(population.cell_rate)[::-1]
    curve = population.optimal_roc()
    slope = np.diff(curve.beta) / np.diff(curve.alpha)
    assert slope == pytest.approx((1.0 - p) / p * rate / (1.0 - rate))
    alpha, beta = population.rates_above(rate - 1e-9)
    assert (alpha.tolist(), beta.tolist()) == (curve.alpha[1:].tolist(), curve.beta[1:].tolist())
    assert population.rates_above(rate)[0].tolist() == curve.alpha[:-1].tolist()


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_intervals_are_checked_at_their_ends(value):
    def accepts(interval):
        try:
            return check_number(value, "x", interval, caller="test") == value
        except ValueError:
            return False

    assert accepts("(0, 1)") == (0.0 < value < 1.0)
    assert accepts("[0, 1]") == (0.0 <= value <= 1.0)
    assert accepts("(1, inf)") == (1.0 < value < np.inf)


@pytest.mark.parametrize("value", [0.0, 1.0, True, "0.5", None])
def test_numbers_that_are_none_get_a_sentence(value):
    with pytest.raises(ValueError, match=re.escape(f"a float in the range (0, 1). Got {value!r} instead.")):
        check_number(value, "x", "(0, 1)", caller="test")


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.zeros((3, 5)), r"needs rows of 2 features, including noise. Got an array of shape \(3, 5\) instead. Hint:"),
        (np.zeros(2), r"Got an array of shape \(2,\)"),
        ([[0.1, np.nan]], "needs finite numbers, but 1 cell of X is not. Hint:"),
        ([[0.1, 0.2], [0.5, 1.5]], r"1 of 2 rows is outside \(the first in row 1\). Hint:"),
    ],
)
def test_bad_rows_get_a_sentence(X, sentence):
    with pytest.raises(ValueError, match=f"CheckerboardPopulation.probability .*{sentence}"):
        CheckerboardPopulation().probability(X)


def test_bad_thresholds_counts_and_seeds_get_a_sentence():
    population = BoxPopulation([[0.0]], [[0.5]], [0.4], 0.1)
    for threshold in (1.5, [0.1, np.nan]):
        with pytest.raises(ValueError, match=r"'threshold' parameter of BoxPopulation.rates_above .* Hint:"):
            population.rates_above(threshold)
    with pytest.raises(ValueError, match=r"'n_samples' parameter of BoxPopulation.sample .* Got 0 instead"):
        population.sample(0)
    for seed in (-1, "seed", 1.5):
        with pytest.raises(ValueError, match=r"'random_state' parameter of BoxPopulation.sample must be an int"):
            population.sample(5, seed)
