from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import example, given
from hypothesis import strategies as st

from reference_metrics import ranked_cases, repeat_rows, tied_table, weighted_cases
from toprank.metrics import RocBand, RocCurve, roc_auc, roc_band, roc_curve
from toprank.metrics.checks import check_rows
from toprank.metrics.roc import _drawn_curves

NUMBERS: Any = [0, 1]
CHANCE = RocCurve([0, 1], [0, 1])
PERFECT = RocCurve([0, 0, 1], [0, 1, 1])
STEPS = RocCurve([0, 0, 0.25, 0.25, 0.5, 1], [0, 0.5, 0.5, 0.75, 1, 1])

cells = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12).filter(
    lambda drawn: all(map(sum, zip(*drawn, strict=True)))
)
curves = cells.map(lambda drawn: RocCurve.from_cells(*zip(*drawn, strict=True)))


def fine_heights(curve, n=20_000):
    """Heights in the middle of n narrow strips."""
    return curve((np.arange(n) + 0.5) / n)


def upper_hull(curve):
    """Knots that no chord of two others passes above: a look at every pair."""
    points = sorted(set(zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True)))
    kept = []
    for x, y in points:
        chords = [
            y0 + (y1 - y0) * (x - x0) / (x1 - x0)
            for x0, y0 in points
            for x1, y1 in points
            if x0 <= x <= x1 and x0 < x1 and (x, y) not in ((x0, y0), (x1, y1))
        ]
        above = max([*chords, *(other for at, other in points if at == x and other > y)], default=-1.0)
        if above < y - 1e-9 or (x, y) in ((0.0, 0.0), (1.0, 1.0)):
            kept.append((x, y))
    return kept


# --- curves of scores and cells -----------------------------------------------------------------------------


@given(weighted_cases(weights=st.sampled_from([0, 0.1, 0.5, 1, 2.25])))
def test_the_curve_is_that_of_scikit_learn_and_its_area_the_auc(case):
    y, score, weight = (np.array(column) for column in case)
    curve = roc_curve(y, score, sample_weight=weight)
    kept = weight > 0
    alpha, beta, _ = sklearn.metrics.roc_curve(
        y[kept], score[kept], sample_weight=weight[kept], drop_intermediate=False
    )
    np.testing.assert_allclose(curve.alpha, alpha, atol=1e-12)
    np.testing.assert_allclose(curve.beta, beta, atol=1e-12)
    assert curve.area == pytest.approx(roc_auc(y, score, sample_weight=weight), abs=1e-12)


def test_a_larger_table_agrees_too():
    y, score, weight = tied_table(n=3000, n_levels=200)
    for sample_weight in (None, weight):
        curve = roc_curve(y, score, sample_weight=sample_weight)
        alpha, beta, _ = sklearn.metrics.roc_curve(y, score, sample_weight=sample_weight, drop_intermediate=False)
        np.testing.assert_allclose([curve.alpha, curve.beta], [alpha, beta], atol=1e-12)
        assert curve.area == pytest.approx(roc_auc(y, score, sample_weight=sample_weight), abs=1e-12)


@given(weighted_cases())
def test_weight_two_is_the_row_twice(case):
    y, score, weight = case
    y_rows, score_rows = repeat_rows(weight, y, score)
    assert roc_curve(y, score, sample_weight=weight) == roc_curve(y_rows, score_rows)


@given(ranked_cases(max_size=15, n_scores=5), st.randoms(use_true_random=False))
def test_row_order_and_a_rising_change_of_scale_change_nothing(case, random):
    y, score = case
    rows = list(range(len(y)))
    random.shuffle(rows)
    assert roc_curve(np.take(y, rows), np.exp(np.take(score, rows))) == roc_curve(y, score)


@given(ranked_cases(max_size=15, n_scores=5))
def test_cells_of_equal_score_make_the_curve_of_the_score(case):
    y, score = np.array(case[0]), np.array(case[1])
    levels = [9, *sorted(set(score), reverse=True), -1]  # two of them without a case
    curve = RocCurve.from_cells(
        [(y[score == v] == 1).sum() for v in levels], [(y[score == v] == 0).sum() for v in levels]
    )
    assert curve == roc_curve(y, score)


@given(cells)
def test_the_area_is_the_sum_of_the_paper_with_its_last_term(drawn):
    curve = RocCurve.from_cells(*zip(*drawn, strict=True))
    alpha, beta = curve.to_dict().values()
    inner = sum((alpha[k + 1] - alpha[k - 1]) * beta[k] for k in range(1, len(alpha) - 1)) / 2
    assert curve.area == pytest.approx(inner + (1 - alpha[-2]) / 2, abs=1e-12)


def test_one_cell_is_chance():
    assert RocCurve.from_cells([3], [7]) == CHANCE
    assert CHANCE.area == 0.5


# --- heights ------------------------------------------------------------------------------------------------


def test_vertical_pieces_count_at_their_upper_end():
    np.testing.assert_array_equal(STEPS([0, 0.1, 0.25, 0.375, 0.5, 1]), [0.5, 0.5, 0.75, 0.875, 1, 1])
    assert PERFECT(0.0) == 1
    assert STEPS(0.25).shape == ()
    assert STEPS(np.zeros((2, 3))).shape == (2, 3)


@given(curves)
def test_heights_never_fall_and_meet_the_knots(curve):
    heights = fine_heights(curve, 500)
    assert (np.diff(heights) >= 0).all()
    for alpha in curve.alpha:
        assert curve(alpha) == curve.beta[curve.alpha == alpha].max()
    assert heights.mean() == pytest.approx(curve.area, abs=1 / 500)


# --- concave or not -----------------------------------------------------------------------------------------


@given(curves)
def test_concave_means_slopes_that_do_not_rise(curve):
    run, rise = np.diff(curve.alpha), np.diff(curve.beta)
    slopes = [b / a if a > 0 else np.inf for a, b in zip(run, rise, strict=True)]
    assert curve.is_concave() == all(later <= earlier + 1e-9 for earlier, later in pairwise(slopes) if earlier < np.inf)


@given(curves)
@example(STEPS)
@example(RocCurve([0, 0.5, 0.5, 0.5, 1], [0, 0, 0, 1, 1]))
def test_the_hull_is_the_least_concave_curve_above(curve):
    hull = curve.hull()
    assert hull.is_concave()
    assert (hull(curve.alpha) >= curve(curve.alpha) - 1e-12).all()
    assert hull.distance(RocCurve(*zip(*upper_hull(curve), strict=True)), "sup") <= 1e-12
    knots = set(zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True))
    assert knots.issuperset(zip(hull.alpha.tolist(), hull.beta.tolist(), strict=True))
    assert hull.hull().distance(hull, "sup") <= 1e-12
    assert (hull.distance(curve, "sup") <= 1e-9) == curve.is_concave()


def test_repeated_knots_do_not_matter():
    twice = RocCurve(np.repeat(STEPS.alpha, 2), np.repeat(STEPS.beta, 2))
    assert twice.area == STEPS.area
    assert twice.distance(STEPS, "sup") == 0
    assert twice.hull() == STEPS.hull()
    assert RocCurve([0, 0, 0.2, 0.2, 1], [0, 0, 0.6, 0.6, 1]).is_concave()
    assert not STEPS.is_concave()


# --- distances ----------------------------------------------------------------------------------------------


@given(curves, curves)
@example(PERFECT, STEPS)
def test_distances_are_those_of_fine_strips(one, other):
    gap = np.abs(fine_heights(one) - fine_heights(other))
    assert one.distance(other) == pytest.approx(gap.mean(), abs=2e-3)
    assert one.distance(other, "sup") == pytest.approx(gap.max(), abs=2e-3)
    for norm in ("l1", "sup"):
        assert one.distance(other, norm) == pytest.approx(other.distance(one, norm), abs=1e-15)
        assert one.distance(one, norm) == 0


@given(curves)
def test_the_distance_to_a_curve_above_is_the_difference_of_the_areas(curve):
    assert curve.distance(curve.hull()) == pytest.approx(curve.hull().area - curve.area, abs=1e-12)
    assert curve.distance(PERFECT) == pytest.approx(1 - curve.area, abs=1e-12)


# --- what it holds and refuses ------------------------------------------------------------------------------


def test_a_curve_is_its_own_and_goes_round():
    alpha = np.array([0, 0.5, 1])
    curve = RocCurve(alpha, [0, 0.75, 1])
    alpha[1] = 0.9
    assert curve.alpha[1] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        curve.beta[1] = 0
    assert RocCurve(**curve.to_dict()) == curve
    assert curve != CHANCE
    assert curve != "curve"
    assert repr(curve) == "<RocCurve of 3 knots, area 0.625>"


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: RocCurve([0, 0.5], [0, 1]), r"'alpha' of RocCurve must be non-decreasing rates from 0 to 1.*Hint"),
        (lambda: RocCurve([0, 1], [0.1, 1]), "'beta' of RocCurve must be non-decreasing"),
        (lambda: RocCurve([0, 0.6, 0.5, 1], [0, 0, 0, 1]), "non-decreasing"),
        (lambda: RocCurve([0, np.nan, 1], [0, 0, 1]), "non-decreasing"),
        (lambda: RocCurve([[0, 1]], [0, 1]), "'alpha' of RocCurve"),
        (lambda: RocCurve([0, 1], [0, 0.5, 1]), "as many values of alpha as of beta.* Got 2 and 3"),
        (lambda: RocCurve.from_cells([1, -1], [1, 1]), "'positive' of RocCurve.from_cells .* non-negative"),
        (lambda: RocCurve.from_cells([1, 1], [0, 0]), "'negative' .* not all 0.*Hint: the curve needs cases of both"),
        (lambda: RocCurve.from_cells([1, 1], [1]), "Got 2 positive and 1 negative"),
        (lambda: CHANCE(1.5), r"defined for alpha in \[0, 1\]. Got 1.5"),
        (lambda: CHANCE([0.5, np.nan]), r"defined for alpha in \[0, 1\]"),
        (lambda: CHANCE.distance(PERFECT, "l2"), "'norm' parameter of RocCurve.distance must be one of 'l1', 'sup'"),
        (lambda: CHANCE.distance(NUMBERS), "needs another RocCurve. Got list"),
        (lambda: roc_curve([0, 0], [1, 2]), "roc_curve needs both classes in y_true"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(build, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        build()


# --- bands --------------------------------------------------------------------------------------------------


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
    true = RocCurve.from_cells(positive, negative)

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
def test_what_does_not_fit_a_band_is_refused_with_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        roc_band([0, 1], [0, 1], **options)
