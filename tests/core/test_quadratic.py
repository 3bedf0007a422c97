import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toprank._core.quadratic import (
    add_columns,
    centred_gram,
    correlate,
    descend_on_columns,
    descend_on_gram,
    dot,
    factor_in_place,
    gram_sums,
    leap_on_gram,
    shrink,
    sweep_gram,
)

SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["plain", "whole", "twins", "constant", "far"])


def make_columns(seed, n, d, kind="plain"):
    """Feature-major columns: Gaussian, with ties, pairwise nearly or exactly equal, one constant, or far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, n))
    if kind == "whole":
        X = np.rint(X)
    if kind == "twins":
        X[1::2] = X[: 2 * (d // 2) : 2] + rng.choice([0.0, 1e-7]) * X[1::2]
    if kind == "constant":
        X[-1] = 2.5
    if kind == "far":
        X += 1e4
    return X, rng.random(n) + 0.01, rng


def centred(X, curvature):
    """Columns without their means, weighted by the curvature: what is left when the intercept is eliminated."""
    return X - (X @ curvature / curvature.sum())[:, None]


def gram_of(X, columns, curvature):
    """Gram matrix of some columns with the intercept eliminated, and their weighted sums."""
    sums, k = gram_sums(X, columns, curvature, 0, X.shape[1]), len(columns)
    return centred_gram(sums, k, curvature.sum()), sums[k, :k]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 37])
def test_dot_is_the_sum_of_products(n):
    a, b = np.random.default_rng(n).standard_normal((2, n))
    assert dot(a, 0.0, b) == pytest.approx(a @ b, abs=1e-14)
    assert dot(a, 0.5, b) == pytest.approx((a - 0.5) @ b, abs=1e-14)


@pytest.mark.parametrize("n", [1, 100, 2048, 2049, 5000])
def test_correlations_and_sums_of_columns_are_products_with_the_matrix(n):
    X, residual, rng = make_columns(n, n, 4)
    columns, factor = np.array([0, 2, 3]), np.array([0.3, 0.0, -1.2])
    out = np.full(4, 7.0)
    correlate(X, columns, residual, out)
    np.testing.assert_allclose(out[columns], (X - X[:, :1])[columns] @ residual, rtol=1e-12, atol=1e-12)
    assert out[1] == 7.0, "a column that is not asked for stays"
    z = rng.standard_normal(n)
    expected = z + factor @ X[columns]
    add_columns(X, columns, factor, z)
    np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-12)


def test_a_constant_column_has_no_correlation_at_all():
    X = np.vstack([np.full(100, 0.1), np.arange(100.0)])
    out = np.empty(2)
    correlate(X, np.arange(2), np.random.default_rng(0).standard_normal(100), out)
    assert out[0] == 0.0 != out[1]


@given(SEEDS, st.integers(1, 150), st.integers(0, 7), KINDS)
@example(0, 64, 1, "plain")
@example(0, 65, 2, "plain")
def test_gram_matrices_are_weighted_products(seed, n, d, kind):
    X, curvature, _ = make_columns(seed, n, d + 2, kind)
    columns = np.arange(1, d + 1)
    half = n // 2
    sums = gram_sums(X, columns, curvature, 0, half) + gram_sums(X, columns, curvature, half, n)
    chosen = (X - X[:, :1])[columns]
    expected = np.tril((chosen * curvature) @ chosen.T)
    np.testing.assert_allclose(np.tril(sums[:d, :d]), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums[d, :d], chosen @ curvature, rtol=1e-12, atol=1e-12)
    gram = centred_gram(sums, d, curvature.sum())
    assert np.array_equal(gram, gram.T)
    middle = centred(chosen, curvature)
    np.testing.assert_allclose(gram, (middle * curvature) @ middle.T, rtol=1e-9, atol=1e-9)


def test_a_constant_column_has_no_curvature_at_all():
    X, curvature, _ = make_columns(3, 50, 2)
    X[0] = 0.1
    assert gram_of(X, np.arange(2), curvature)[0][0, 0] == 0.0


@given(*[st.floats(-3, 3)] * 2, st.floats(0.1, 5), st.floats(0, 2))
def test_shrink_finds_the_lowest_point(value, slope, curvature, penalty):
    def height(v):
        return slope * (v - value) + curvature / 2 * (v - value) ** 2 + penalty * np.abs(v)

    best = shrink(value, slope, curvature, penalty)
    assert height(best) <= height(np.linspace(-50, 50, 2001)).min() + 1e-12


@pytest.mark.parametrize("k", [0, 1, 2, 9, 20])
def test_the_factor_is_choleskys(k):
    A = np.random.default_rng(k).standard_normal((k, k + 3))
    matrix = A @ A.T
    factor = matrix.copy()
    factor_in_place(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-9)


def model_of(seed, kind, n=40, d=6):
    """A quadratic model with a penalty: Gram matrix, slope at the start, start, penalty."""
    X, curvature, rng = make_columns(seed, n, d, kind)
    gram, _ = gram_of(X, np.arange(d), curvature)
    slope = centred(X, curvature) @ (curvature * rng.standard_normal(n))
    start = np.where(rng.random(d) < 0.5, rng.standard_normal(d), 0.0)
    return gram, slope, start, float(np.abs(slope).max() * rng.choice([0.5, 0.05, 0.001]) + 1e-6)


def height_of(gram, slope, start, penalty, value):
    change = value - start
    return slope @ change + change @ gram @ change / 2 + penalty * np.abs(value).sum()


def check_optimal(slope, value, penalty, slack):
    """No slope of a weight is off the penalty, and none without a weight is above it."""
    held = value != 0
    assert np.all(np.abs(slope[held] + penalty * np.sign(value[held])) <= slack)
    assert np.all(np.abs(slope[~held]) <= penalty + slack)


@given(SEEDS, KINDS)
def test_descent_ends_where_no_weight_wants_to_move(seed, kind):
    gram, slope, start, penalty = model_of(seed, kind)
    start[np.diag(gram) == 0.0] = 0.0
    value, now = start.copy(), slope.copy()
    descend_on_gram(gram, now, value, penalty, 1e-9 * penalty)
    np.testing.assert_allclose(now, slope + gram @ (value - start), atol=1e-8 * (1 + np.abs(slope).max()))
    check_optimal(slope + gram @ (value - start), value, penalty, 1e-4 * penalty)
    best = height_of(gram, slope, start, penalty, value)
    for other in (start, np.zeros_like(start), value + 1e-3 * (start - value), value * 0.999, value * 1.001):
        assert best <= height_of(gram, slope, start, penalty, other) + 1e-9 * abs(best)


@given(SEEDS, KINDS)
def test_neither_a_sweep_nor_a_leap_ever_climbs(seed, kind):
    gram, slope, start, penalty = model_of(seed, kind)
    value, now = start.copy(), slope.copy()
    sweep_gram(gram, now, value, penalty, True)
    heights = [height_of(gram, slope, start, penalty, v) for v in (start, value)]
    for _ in range(4):
        signs = np.sign(value)
        leap_on_gram(gram, now, value, penalty)
        assert np.all((np.sign(value) == signs) | (value == 0)), "a leap stops where a weight becomes 0"
        heights.append(height_of(gram, slope, start, penalty, value))
        np.testing.assert_allclose(now, slope + gram @ (value - start), rtol=1e-6, atol=1e-6)
    assert np.all(np.diff(heights) <= 1e-9 * np.abs(heights).max())


def test_leaps_settle_what_sweeps_crawl_to():
    """Two columns that differ in the third digit: a thousand sweeps are not enough, a leap or two are."""
    X, curvature, _ = make_columns(5, 200, 2)
    X[1] = X[0] + 1e-3 * X[1]
    gram, _ = gram_of(X, np.arange(2), curvature)
    slope = gram @ np.array([-40.0, 39.0])
    value, now = np.zeros(2), slope.copy()
    for _ in range(1000):
        worst = sweep_gram(gram, now, value, 1e-9, True)
    assert worst > 1e-7
    value, now = np.zeros(2), slope.copy()
    assert descend_on_gram(gram, now, value, 1e-9, 1e-7) < 50


@given(SEEDS, KINDS)
def test_sweeps_over_columns_agree_with_the_gram_matrix(seed, kind):
    n, d = 30, 5
    X, curvature, rng = make_columns(seed, n, d, kind)
    columns, residual = np.array([0, 1, 3, 4]), curvature * rng.standard_normal(n)
    balance, total = residual.sum(), curvature.sum()
    gram, pull = gram_of(X, columns, curvature)
    slope = -(X - X[:, :1])[columns] @ residual
    start = np.where(np.diag(gram) > 0, np.where(rng.random(4) < 0.5, rng.standard_normal(4), 0.0), 0.0)
    eliminated = slope + pull * (balance / total)
    on_gram, on_columns = start.copy(), start.copy()
    descend_on_gram(gram, eliminated.copy(), on_gram, 0.3, 1e-10)
    found = descend_on_columns(X, columns, curvature, total, balance, slope, on_columns, 0.3, 1e-10)
    np.testing.assert_allclose(found, pull, rtol=1e-9, atol=1e-9)
    heights = [height_of(gram, eliminated, start, 0.3, value) for value in (on_gram, on_columns)]
    assert heights[0] == pytest.approx(heights[1], rel=1e-5, abs=1e-5)
