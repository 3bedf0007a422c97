"""`QuadraticForm`: against closed forms, a quadrature that shares nothing with it, and Imhof's integral."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import chi2, ncx2, norm

from toprank.datasets.quadratic_form import ACCURACY, TAIL, QuadraticForm


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
    law = ncx2(n, n * (linear / square) ** 2) if linear else ncx2(n, 1e-12)
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
