from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_metrics import ranked_cases, tied_table
from toprank.metrics import RocBand, RocCurve, roc_band, roc_curve
from toprank.metrics._validation import check_rows
from toprank.metrics.roc_bands import _drawn_curves

GRID = np.linspace(0, 1, 21)
KINDS = {"simultaneous": {}, "pointwise": {"simultaneous": False}, "dkw": {"method": "dkw"}}


def normal_cases(generator, n_positive, n_negative, shift):
    y = np.arange(n_positive + n_negative) < n_positive
    return y, generator.normal(size=len(y)) + shift * y


def normal_curve(shift):
    """The curve of two normal distributions, on a grid so fine that its pieces do not matter."""
    normal = NormalDist()
    alpha = np.linspace(0, 1, 2001)
    beta = [0.0, *(normal.cdf(shift + normal.inv_cdf(a)) for a in alpha[1:-1]), 1.0]
    return RocCurve(alpha, beta)


def coverage(true, draw, n=300, **options):
    """Share of bands that hold the whole of the true curve."""
    return np.mean(
        [roc_band(*draw(), n_resamples=100, random_state=seed, **options).contains(true) for seed in range(n)]
    )


# --- coverage -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n_positive", "n_negative", "shift"), [(100, 300, 1.0), (30, 200, 2.0)])
def test_the_bootstrap_band_holds_the_whole_curve(n_positive, n_negative, shift):
    generator = np.random.default_rng(0)
    true = normal_curve(shift)
    found = coverage(true, lambda: normal_cases(generator, n_positive, n_negative, shift), grid=GRID)
    assert 0.91 <= found <= 0.99


@pytest.mark.slow
def test_far_to_the_left_the_bootstrap_band_holds_too():
    """Rates at which none or one of the negatives is above the threshold."""
    generator = np.random.default_rng(1)
    grid = [0, 1e-4, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1]
    assert coverage(normal_curve(1.0), lambda: normal_cases(generator, 100, 300, 1.0), grid=grid) >= 0.93


def test_the_pointwise_band_holds_each_point():
    generator = np.random.default_rng(2)
    true = normal_curve(1.0)(GRID)
    inside = np.zeros(len(GRID))
    for seed in range(200):
        y, score = normal_cases(generator, 100, 200, 1.0)
        band = roc_band(y, score, simultaneous=False, grid=GRID, n_resamples=100, random_state=seed)
        inside += (band.low <= true) & (true <= band.high)
    assert (inside / 200).min() >= 0.89
    assert 0.93 <= (inside / 200).mean() <= 0.99


@pytest.mark.parametrize(("n_positive", "n_negative"), [(100, 300), (5, 20)])
def test_the_band_without_assumptions_holds_the_whole_curve(n_positive, n_negative):
    generator = np.random.default_rng(3)
    found = coverage(
        normal_curve(1.0), lambda: normal_cases(generator, n_positive, n_negative, 1.0), grid=GRID, method="dkw"
    )
    assert found >= 0.95


@pytest.mark.parametrize("method", ["dkw", "bootstrap"])
def test_bands_hold_the_curve_of_tied_scores(method):
    """Scores of five values, as those of a small tree: the true curve is a broken line."""
    generator = np.random.default_rng(4)
    positive, negative = [0.4, 0.25, 0.2, 0.1, 0.05], [0.05, 0.1, 0.15, 0.3, 0.4]
    true = RocCurve.of_cells(positive, negative)

    def draw():
        parts = [generator.choice(5, 80, p=positive), generator.choice(5, 200, p=negative)]
        return np.arange(280) < 80, -np.concatenate(parts)

    assert coverage(true, draw, grid=GRID, method=method) >= 0.91


# --- shapes and laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(case=ranked_cases(max_size=15, n_scores=5), n_points=st.integers(2, 12))
def test_a_band_lies_around_the_curve_and_never_falls(kind, case, n_points):
    band = roc_band(*case, grid=n_points, n_resamples=20, random_state=0, **KINDS[kind])
    np.testing.assert_array_equal(band.alpha, np.linspace(0, 1, n_points))
    np.testing.assert_array_equal(band.value, roc_curve(*case)(band.alpha))
    assert (band.low >= 0).all()
    assert (band.low <= band.value).all()
    assert (band.value <= band.high).all()
    assert (band.high <= 1).all()
    assert (np.diff([band.low, band.high]) >= 0).all()
    assert band.is_simultaneous == (kind != "pointwise")
    assert band.contains(roc_curve(*case))


def test_the_ends_without_assumptions_are_those_of_the_formula():
    y, score, _ = tied_table(n=600, n_levels=40)
    band = roc_band(y, score, method="dkw", level=0.9, grid=[0.1, 0.5])
    eps_positive, eps_negative = (
        np.sqrt(np.log(2 / (1 - np.sqrt(0.9))) / (2 * n)) for n in (y.sum(), len(y) - y.sum())
    )
    curve = roc_curve(y, score)
    for place, alpha in enumerate(band.alpha):
        assert band.high[place] == pytest.approx(min(curve(alpha + eps_negative) + eps_positive, 1))
        assert band.low[place] == pytest.approx(max(curve(max(alpha - eps_negative, 0)) - eps_positive, 0))


def test_at_a_vertical_piece_the_outer_ends_are_taken():
    """Two hundred of either class; half of the positives, all tied, stand between the two halves of the negatives."""
    y = np.repeat([0, 1, 0, 1], 100)
    score = np.repeat([4, 3, 2, 1], 100)
    eps = np.sqrt(np.log(2 / (1 - np.sqrt(0.95))) / 400)
    band = roc_band(y, score, method="dkw", grid=np.clip([0.5 - eps, 0.5 + eps], 0, 1))
    assert band.high[0] == pytest.approx(0.5 + eps)
    assert band.low[1] == pytest.approx(0)


def test_drawn_curves_are_curves_of_rows_drawn_again():
    y, score, _ = tied_table(n=60, n_levels=8)
    rows = check_rows(y, score, caller="test")
    drawn = _drawn_curves(rows, GRID, 5, np.random.default_rng(7))
    generator = np.random.default_rng(7)
    strata = [np.flatnonzero(y == 0), np.flatnonzero(y == 1)]
    for heights in drawn:
        again = np.concatenate([cases[generator.integers(0, len(cases), len(cases))] for cases in strata])
        np.testing.assert_allclose(heights, roc_curve(y[again], score[again])(GRID), atol=1e-12)


def test_bands_repeat_with_a_seed_and_widen_with_the_level():
    y, score, _ = tied_table()
    for options in ({}, {"simultaneous": False}):
        first = roc_band(y, score, random_state=0, n_resamples=100, **options)
        again = roc_band(y, score, random_state=0, n_resamples=100, **options)
        assert first.to_dict() == again.to_dict()
        other = roc_band(y, score, random_state=1, n_resamples=100, **options)
        assert first.to_dict() != other.to_dict()
        narrow = roc_band(y, score, random_state=0, n_resamples=100, level=0.5, **options)
        assert (first.low <= narrow.low).all()
        assert (narrow.high <= first.high).all()
    pointwise = roc_band(y, score, random_state=0, simultaneous=False)
    whole = roc_band(y, score, random_state=0)
    assert (whole.high - whole.low).mean() > (pointwise.high - pointwise.low).mean()


def test_a_band_holds_its_arrays_as_plain_values():
    band = RocBand([0, 1], [0.5, 1], [0, 0.9], [0.7, 1], 0.95, "dkw", True)
    assert band.to_dict() == {
        "alpha": [0, 1], "value": [0.5, 1], "low": [0, 0.9], "high": [0.7, 1],
        "level": 0.95, "method": "dkw", "is_simultaneous": True,
    }  # fmt: skip
    with pytest.raises(ValueError, match="read-only"):
        band.low[0] = 1
    assert not band.contains(RocCurve([0, 0, 1], [0, 0.8, 1]))
    assert repr(band) == "<RocBand at 2 points, dkw, 95 % for the whole curve>"
    pointwise = RocBand([0, 1], [0.5, 1], [0, 0.9], [0.7, 1], 0.999, "bootstrap", False)
    assert repr(pointwise) == "<RocBand at 2 points, bootstrap, 99.9 % for each point>"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "normal"}, "'method' parameter of roc_band must be one of 'bootstrap', 'dkw'"),
        ({"level": 1}, "'level' parameter of roc_band"),
        ({"n_resamples": 1}, r"'n_resamples' parameter of roc_band .* \[2, inf\)"),
        ({"grid": 1}, r"'grid' parameter of roc_band .* \[2, inf\)"),
        ({"grid": [0.5, 0.1]}, "'grid' parameter of roc_band must be a number of points, or increasing false"),
        ({"grid": [0.5, 1.1]}, "Hint: 5 % is 0.05"),
        ({"grid": []}, "increasing false positive rates"),
        ({"method": "dkw", "simultaneous": False}, "must be True with method='dkw'.*Hint: method='bootstrap'"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        roc_band([0, 1], [0, 1], **options)
