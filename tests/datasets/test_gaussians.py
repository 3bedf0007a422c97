"""Two gaussians: closed forms, Bayes' rule on the densities, and laws of the likelihood ratio that share no code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logit, ndtr, ndtri
from scipy.stats import chi2, multivariate_normal, ncx2, norm

from toprank.datasets import (
    GaussianPopulation,
    QuadraticGaussianPopulation,
    make_gaussians,
    make_quadratic_gaussians,
    optimal_auc,
    optimal_roc,
)
from toprank.datasets.gaussians import ACCURACY, TAIL, QuadraticForm


def bayes(population, X, covariances):
    """P(Y = 1 | x) from the two densities."""
    negative, positive = (
        multivariate_normal(mean, covariance).pdf(X)
        for mean, covariance in zip((population.negative_mean, population.positive_mean), covariances, strict=True)
    )
    p = population.positive_rate
    return p * positive / (p * positive + (1.0 - p) * negative)


@settings(max_examples=25)
@given(
    distance=st.floats(0.05, 6.0),
    positive_rate=st.floats(0.001, 0.999),
    n_features=st.integers(1, 8),
    separator=st.sampled_from(["axis", "arbitrary"]),
    seed=st.integers(0, 10**6),
)
def test_curve_and_area_in_closed_form(distance, positive_rate, n_features, separator, seed):
    data = make_gaussians(
        5,
        distance=distance,
        positive_rate=positive_rate,
        n_features=n_features,
        separator=separator,
        direction_seed=seed,
        random_state=0,
    )
    assert data.population.distance == pytest.approx(distance)
    assert optimal_auc(data) == pytest.approx(ndtr(distance / np.sqrt(2.0)))
    curve = optimal_roc(data)
    alpha = np.linspace(0.0, 1.0, 5_001)[1:-1]
    expected = ndtr(distance + ndtri(alpha))
    assert (np.abs(curve(alpha) - expected) < 3e-5).all()
    assert curve.is_concave()


def test_both_separators_have_the_same_optimum_in_the_range_of_the_paper():
    axis, arbitrary = (make_gaussians(separator=name, random_state=0) for name in ("axis", "arbitrary"))
    assert axis.X.shape == arbitrary.X.shape == (1000, 5)
    assert axis.population.positive_rate == 0.5
    assert optimal_auc(axis) == pytest.approx(optimal_auc(arbitrary), abs=1e-12)
    assert 0.85 < optimal_auc(axis) < 0.9
    assert optimal_roc(axis).distance(optimal_roc(arbitrary), norm="sup") < 1e-9


def test_axis_separates_by_the_first_feature_alone():
    population = make_gaussians(1, random_state=0).population
    assert np.count_nonzero(population.direction) == 1
    assert population.direction[0] > 0.0
    assert np.array_equal(population.covariance, np.eye(5))


@pytest.mark.parametrize("seed", range(10))
def test_arbitrary_favours_no_feature(seed):
    population = make_gaussians(1, separator="arbitrary", direction_seed=seed, random_state=0).population
    difference = population.positive_mean - population.negative_mean
    assert np.diag(population.covariance) == pytest.approx(1.0)
    assert np.abs(difference) == pytest.approx(np.abs(difference[0]))
    assert ndtr(np.abs(difference[0]) / np.sqrt(2.0)) < optimal_auc(population) - 0.08
    cosines = np.abs(population.direction) / np.linalg.norm(population.direction)
    assert cosines.max() < 0.9
    assert np.abs(population.covariance - np.eye(5)).max() > 0.15


def test_the_direction_does_not_change_with_the_rows():
    a, b, c = (
        make_gaussians(5, separator="arbitrary", direction_seed=direction, random_state=rows).population
        for direction, rows in ((1, 0), (1, 5), (2, 0))
    )
    assert np.array_equal(a.direction, b.direction)
    assert not np.allclose(a.direction, c.direction)


@pytest.mark.parametrize("separator", ["axis", "arbitrary"])
def test_linear_probability_is_bayes_rule(separator):
    data = make_gaussians(500, separator=separator, positive_rate=0.1, random_state=2)
    covariance = data.population.covariance
    assert data.probability == pytest.approx(bayes(data.population, data.X, (covariance, covariance)), rel=1e-9)


def test_quadratic_probability_is_bayes_rule():
    data = make_quadratic_gaussians(500, positive_rate=0.1, random_state=2)
    covariances = (data.population.negative_covariance, data.population.positive_covariance)
    assert data.probability == pytest.approx(bayes(data.population, data.X, covariances), rel=1e-9)


def test_samples_have_the_means_and_covariances_of_their_classes():
    linear = make_gaussians(200_000, separator="arbitrary", random_state=1)
    quadratic = make_quadratic_gaussians(200_000, random_state=1)
    for data, covariances in (
        (linear, (linear.population.covariance,) * 2),
        (quadratic, (quadratic.population.negative_covariance, quadratic.population.positive_covariance)),
    ):
        means = (data.population.negative_mean, data.population.positive_mean)
        for label in (0, 1):
            rows = data.X[data.y == label]
            assert rows.mean(axis=0) == pytest.approx(means[label], abs=0.03)
            assert np.cov(rows.T) == pytest.approx(covariances[label], abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_features", "scale", "distance"), [(1, 3.0, 0.7), (2, 4.0, 1.0), (5, 0.3, 1.0), (8, 2.0, 2.0)]
)
def test_quadratic_curve_of_scaled_identities_is_that_of_noncentral_chi_squares(n_features, scale, distance):
    """With covariances I and c I the log ratio is a multiple of the squared distance from one point."""
    mean = np.r_[distance, np.zeros(n_features - 1)]
    population = QuadraticGaussianPopulation(
        np.zeros(n_features), mean, np.eye(n_features), scale * np.eye(n_features), positive_rate=0.3
    )
    # |x|^2 - |x - mean|^2 / c is (1 - 1 / c) |x - centre|^2 plus a number: rows far from the centre first if c > 1.
    centre = -mean[0] / (scale - 1.0)
    squares = np.geomspace(1e-5, 2e3, 3_001)
    negative = ncx2(n_features, centre**2)
    positive = ncx2(n_features, (distance - centre) ** 2 / scale, scale=scale)
    side = "sf" if scale > 1.0 else "cdf"
    alpha, beta = getattr(negative, side)(squares), getattr(positive, side)(squares)
    seen = alpha > 1e-300  # the curve is steep: an alpha that is lost to underflow would count
    assert np.abs(population.optimal_roc()(alpha[seen]) - beta[seen]).max() < 3e-5
    alpha, beta = np.sort(np.r_[0.0, alpha, 1.0]), np.sort(np.r_[0.0, beta, 1.0])
    assert population.optimal_auc() == pytest.approx(np.trapezoid(beta, alpha), abs=2e-5)


def rate_above(log_ratio, value, mean, covariance):
    """P(log ratio > value) for one gaussian in the plane: a sum over the first feature of chances in the second.

    Given the first feature, the log ratio is a parabola in the second, known from three points.
    """
    x, step = np.linspace(-16.0, 16.0, 10_001, retstep=True)
    low, middle, high = (log_ratio(np.c_[x, np.full_like(x, y)]) for y in (-1.0, 0.0, 1.0))
    a, b, c = (high + low) / 2.0 - middle, (high - low) / 2.0, middle - value
    root = np.sqrt(np.maximum(b**2 - 4.0 * a * c, 0.0))
    centre = mean[1] + covariance[0, 1] / covariance[0, 0] * (x - mean[0])
    deviation = np.sqrt(covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0])
    ends = [ndtr(((-b + sign * root) / (2.0 * a) - centre) / deviation) for sign in (-1.0, 1.0)]
    between = np.abs(ends[1] - ends[0])
    weight = norm(mean[0], np.sqrt(covariance[0, 0])).pdf(x) * step
    return weight @ np.where(a > 0.0, 1.0 - between, between)


@pytest.mark.parametrize("seed", [0, 1])
def test_quadratic_rates_agree_with_a_quadrature_in_the_plane(seed):
    layout = make_gaussians(1, n_features=2, separator="arbitrary", direction_seed=seed, random_state=0).population
    other = make_quadratic_gaussians(1, n_features=2, spread=4.0, direction_seed=seed, random_state=0).population
    covariances = (layout.covariance, other.positive_covariance)
    population = QuadraticGaussianPopulation([0.5, 0.0], other.positive_mean, *covariances, positive_rate=0.2)
    threshold = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 0.8])
    alpha, beta = population.rates_above(threshold)
    means = (population.negative_mean, population.positive_mean)
    negative, positive = (multivariate_normal(*law) for law in zip(means, covariances, strict=True))
    values = logit(threshold) - logit(0.2)
    for rate, mean, covariance in zip((alpha, beta), means, covariances, strict=True):
        expected = [
            rate_above(lambda X: positive.logpdf(X) - negative.logpdf(X), value, mean, covariance) for value in values
        ]
        assert rate == pytest.approx(expected, abs=2e-5)


def test_equal_covariances_are_the_linear_case():
    mean, covariance = [1.0, -0.5], [[2.0, 0.3], [0.3, 1.0]]
    linear = GaussianPopulation([0.0, 0.0], mean, covariance, 0.2)
    quadratic = QuadraticGaussianPopulation([0.0, 0.0], mean, covariance, covariance, 0.2)
    assert quadratic.optimal_auc() == pytest.approx(linear.optimal_auc(), abs=1e-9)
    threshold = np.linspace(0.01, 0.99, 50)
    assert np.array(quadratic.rates_above(threshold)) == pytest.approx(
        np.array(linear.rates_above(threshold)), abs=1e-9
    )
    X = linear.sample(50, 0).X
    assert quadratic.probability(X) == pytest.approx(linear.probability(X))


@pytest.mark.parametrize("spread", [1.0 + 1e-6, 1.01, 30.0, 100.0])
def test_any_spread_has_a_curve(spread):
    population = make_quadratic_gaussians(1, spread=spread, random_state=0).population
    curve = population.optimal_roc()
    assert curve.is_concave()
    assert curve.area == pytest.approx(population.optimal_auc(), abs=5e-5)


def test_without_a_distance_only_the_spread_is_left():
    """Without a distance of the means no feature has a mean that differs: linear scores are blind."""
    data = make_quadratic_gaussians(50_000, distance=0.0, random_state=0)
    gaps = data.X[data.y == 1].mean(axis=0) - data.X[data.y == 0].mean(axis=0)
    assert np.abs(gaps).max() < 0.06
    assert optimal_auc(data) > 0.75


def test_first_values_are_pinned():
    """A change of the simulation changes every published figure: it must be on purpose."""
    data = make_gaussians(separator="arbitrary", random_state=0)
    assert data.X[0] == pytest.approx([-0.579421439, -1.00051667, 0.17511504, 1.7195109, -0.288805153], rel=1e-6)
    assert int(data.y.sum()) == 514


@pytest.mark.parametrize(
    ("make", "arguments", "sentence"),
    [
        (make_gaussians, {"n_samples": 0}, "The 'n_samples' parameter of make_gaussians must be"),
        (make_gaussians, {"n_features": 0}, "The 'n_features' parameter of make_gaussians must be an int in the range"),
        (make_gaussians, {"positive_rate": 1.0}, "must be a float in the range (0, 1). Got 1.0 instead."),
        (make_gaussians, {"separator": "oblique"}, "must be one of 'axis', 'arbitrary'. Got 'oblique' instead."),
        (make_gaussians, {"distance": 0.0}, "The 'distance' parameter of make_gaussians must be a float in the range"),
        (make_gaussians, {"direction_seed": -1}, "'direction_seed'"),
        (make_gaussians, {"n_noise_features": -1}, "'n_noise_features'"),
        (make_gaussians, {"random_state": -3}, "The 'random_state' parameter of make_gaussians must be"),
        (make_quadratic_gaussians, {"spread": 1.0}, "in the range (1, 100]. Got 1.0 instead."),
        (make_quadratic_gaussians, {"distance": float("nan")}, "in the range [0, 30]. Got nan instead."),
    ],
)
def test_bad_parameters_get_a_sentence(make, arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make(**arguments)


@pytest.mark.parametrize(
    ("means", "covariance", "sentence"),
    [
        (([0.0, 0.0], [1.0]), np.eye(2), r"'positive_mean' .*Got an array of shape \(1,\) instead. Hint:"),
        (([], []), np.eye(2), r"'negative_mean' .*Got an array of shape \(0,\)"),
        (([0.0, np.nan], [1.0, 1.0]), np.eye(2), "'negative_mean' .* finite"),
        (([0.0, 0.0], [1.0, 1.0]), np.eye(3), r"'covariance' .*Got an array of shape \(3, 3\) instead. Hint: np.eye"),
        (([0.0, 0.0], [1.0, 1.0]), [[1.0, 0.5], [0.0, 1.0]], "symmetric positive definite.*a matrix that is not"),
        (([0.0, 0.0], [1.0, 1.0]), [[1.0, 1.0], [1.0, 1.0]], "symmetric positive definite"),
        (([1.0, 0.0], [1.0, 0.0]), np.eye(2), "two classes that differ.* Hint: move positive_mean"),
    ],
)
def test_bad_gaussians_get_a_sentence(means, covariance, sentence):
    with pytest.raises(ValueError, match=sentence):
        GaussianPopulation(*means, covariance)


# --- `QuadraticForm`: against closed forms, a quadrature that shares nothing with it, and Imhof's integral --


def values_of(form, n=2001):
    low, high = form.range
    return np.linspace(low - 1.0, high + 1.0, n)


def one_variable(square, linear, values):
    """P(square z^2 + 2 linear z > value), from the roots of the parabola."""
    inside = linear**2 + square * values
    root = np.sqrt(np.maximum(inside, 0.0))
    between = np.where(inside > 0.0, np.abs(ndtr((root - linear) / square) - ndtr((-root - linear) / square)), 0.0)
    return 1.0 - between if square > 0.0 else between


def two_variables(form, values):
    """P(form > value) by conditioning on the first variable: a sum over a hundred thousand of its values."""
    z, step = np.linspace(-8.0, 8.0, 100_001, retstep=True)
    first = form.constant + form.square[0] * z**2 + 2.0 * form.linear[0] * z
    weight = norm.pdf(z) * step
    return np.array([weight @ one_variable(form.square[1], form.linear[1], value - first) for value in values])


def imhof(form, value):
    """P(form > value) by Imhof's real integral, with an adaptive quadrature."""
    a, b = form.square, form.linear

    def integrand(t):
        scale = 1.0 + 4.0 * t**2 * a**2
        phase = (0.5 * np.arctan(2.0 * a * t) - 4.0 * t**3 * b**2 * a / scale).sum() + t * (form.constant - value)
        return np.sin(phase) * np.prod(scale**-0.25) * np.exp(-(2.0 * t**2 * b**2 / scale).sum()) / t

    return 0.5 + quad(integrand, 0.0, 60.0, limit=2000, epsabs=1e-10)[0] / np.pi


@pytest.mark.parametrize(("square", "linear", "n"), [(0.7, 0.3, 4), (2.0, 0.0, 3), (-0.4, 0.9, 5), (-1.0, 0.0, 7)])
def test_equal_coefficients_give_a_noncentral_chi_square(square, linear, n):
    form = QuadraticForm(np.full(n, square), np.full(n, linear), 1.5)
    values = values_of(form)
    scaled = (values - 1.5 + n * linear**2 / square) / square
    law = ncx2(n, n * (linear / square) ** 2) if linear else chi2(n)
    expected = law.sf(scaled) if square > 0.0 else law.cdf(scaled)
    assert form.survival(values) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("square", "linear"),
    [
        ([0.8, 0.3], [0.0, 0.0]),
        ([0.8, -0.3], [0.2, 0.5]),
        ([-1.2, -0.1], [0.0, 0.4]),
        ([0.5, 0.5], [1.0, -0.2]),
    ],
)
def test_two_variables_agree_with_a_quadrature(square, linear):
    """Two variables are the worst case: the characteristic function falls as slowly as 1 / t."""
    form = QuadraticForm(np.array(square), np.array(linear), -0.3)
    values = values_of(form, 25)
    assert np.abs(form.survival(values) - two_variables(form, values)).max() < ACCURACY


def test_many_variables_agree_with_imhof():
    form = QuadraticForm(np.array([0.9, 0.4, 0.0, -0.2, -0.6]), np.array([0.1, -0.5, 0.3, 0.0, 0.7]), 0.25)
    values = np.linspace(-6.0, 8.0, 15)
    assert form.survival(values) == pytest.approx([imhof(form, value) for value in values], abs=1e-7)


@settings(max_examples=60)
@given(square=st.floats(-3.0, 3.0), linear=st.floats(-3.0, 3.0), constant=st.floats(-2.0, 2.0))
def test_one_variable_is_exact(square, linear, constant):
    if abs(square) < 1e-3:
        square = 0.0
        linear = linear if abs(linear) > 1e-3 else 1.0
    form = QuadraticForm(np.array([square]), np.array([linear]), constant)
    values = np.linspace(-20.0, 20.0, 101)
    if square == 0.0:
        expected = norm.sf((values - constant) / (2.0 * abs(linear)))
    else:
        expected = one_variable(square, linear, values - constant)
    assert form.survival(values) == pytest.approx(expected, abs=1e-9)


def test_variables_that_do_not_count_are_left_out():
    form = QuadraticForm(np.array([0.5, 1e-12, 0.0]), np.array([0.2, 0.0, 1e-11]), 0.0)
    assert (form.square.tolist(), form.linear.tolist()) == ([0.5], [0.2])


def test_the_difference_with_an_independent_copy_is_symmetric():
    form = QuadraticForm(np.array([0.9, -0.4, 0.3]), np.array([0.1, 0.5, 0.0]), 3.0)
    difference = form.minus(form)
    values = np.linspace(0.0, 10.0, 21)
    assert float(difference.survival(0.0)) == pytest.approx(0.5, abs=1e-9)
    assert difference.survival(values) == pytest.approx(1.0 - difference.survival(-values), abs=1e-9)


def test_the_discounted_survival_is_an_expectation():
    """For a sum of four squares E(exp(-form); form > v) is again a chi-square tail, with relative error far out too."""
    form = QuadraticForm(np.full(4, 0.7), np.zeros(4), 0.0)
    values = np.linspace(0.0, 25.0, 51)
    shrink = 1.0 + 2.0 * 0.7  # exp(-0.7 z^2) times the normal density is a normal density of variance 1 / shrink
    expected = shrink**-2.0 * chi2(4).sf(values * shrink / 0.7)
    assert form.discounted_survival(values) == pytest.approx(expected, rel=1e-5)
    assert form.discounted_survival(1e6) == 0.0


def test_infinite_values_and_shapes():
    form = QuadraticForm(np.array([0.9, -0.4]), np.array([0.1, 0.5]), 0.0)
    assert form.survival([[-np.inf, np.inf]]).tolist() == [[1.0, 0.0]]
    assert form.survival(0.0).shape == ()


@pytest.mark.parametrize(("square", "linear"), [(0.5, 0.0), (0.5, 2.0), (0.001, 1.0)])
def test_the_range_leaves_hardly_anything_outside_and_is_not_wide(square, linear):
    low, high = QuadraticForm(np.full(3, square), np.full(3, linear), 0.0).range
    law, shift = ncx2(3, max(3 * (linear / square) ** 2, 1e-12)), 3 * linear**2 / square
    assert law.sf((high + shift) / square) <= TAIL
    assert law.cdf((low + shift) / square) <= TAIL
    assert law.sf((high + shift) / square) > 1e-4 * TAIL


@pytest.mark.parametrize("end", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("linear", [0.0, 0.2])
def test_the_truncation_bound_is_a_bound(end, linear):
    square = np.array([0.9, 0.4, 0.05])
    form = QuadraticForm(square, np.full(3, linear), 0.0)

    def size(u):  # t = end * exp(u)
        scale = 1.0 + 4.0 * (end * np.exp(u)) ** 2 * square**2
        return np.prod(scale**-0.25) * np.exp(-2.0 * (end * np.exp(u) * linear) ** 2 * (1.0 / scale).sum())

    left_out = quad(size, 0.0, 40.0, limit=500)[0] / np.pi
    assert left_out <= form._truncation_bound(end) * (1.0 + 1e-9)


def test_a_law_that_is_out_of_reach_gets_a_sentence():
    form = QuadraticForm(np.array([1.0, 1e-6]), np.zeros(2), 0.0)
    with pytest.raises(ValueError, match=r"cannot be computed to 2e-05: 2,097,152 terms .* Hint: let the covariances"):
        form.survival(1.0)
