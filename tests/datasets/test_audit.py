"""`make_audit`: determinism, rates, calibration, missing values, drift, frames, parameters."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.datasets import make_audit
from toprank.datasets.audit import LEVELS, POCKETS, pocket_depths
from toprank.datasets.frames import is_missing

VECTORS = ("y", "amount", "year", "probability", "case_id")
NEVER_MISSING = ("sector", "legal_form", "turnover", "cash_share", "late_filings")
INFORMATIVE = ("payroll_share", "card_terminals", "vat_gap", "charges_ratio")


def same_columns(a, b):
    both_missing = {name: is_missing(a[name]) & is_missing(b[name]) for name in a}
    return list(a) == list(b) and all((both_missing[name] | (a[name] == b[name])).all() for name in a)


@pytest.fixture(scope="module")
def large():
    """Enough cases for sharp statistics; every test reads it, none changes it."""
    return make_audit(150_000, random_state=7)


@settings(deadline=None, max_examples=15)
@given(
    n_cases=st.integers(1, 400),
    positive_rate=st.floats(0.001, 0.5),
    drift=st.floats(0.0, 1.0),
    missing_rate=st.floats(0.0, 0.5),
    mimicry=st.floats(0.0, 0.9),
    seed=st.integers(0, 2**32 - 1),
)
def test_same_arguments_same_data_and_lawful(n_cases, positive_rate, drift, missing_rate, mimicry, seed):
    arguments = {
        "positive_rate": positive_rate,
        "drift": drift,
        "missing_rate": missing_rate,
        "mimicry": mimicry,
        "random_state": seed,
    }
    a, b = make_audit(n_cases, **arguments), make_audit(n_cases, **arguments)
    assert same_columns(a.columns, b.columns)
    assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in VECTORS)
    assert ((a.probability >= 0.0) & (a.probability <= 1.0)).all()
    assert set(np.unique(a.y)) <= {0, 1}
    assert (a.amount >= 100.0).all()
    assert all(values.shape == (n_cases,) for values in a.columns.values())


def test_another_seed_gives_other_data():
    a, b = make_audit(500, random_state=0), make_audit(500, random_state=1)
    assert not np.array_equal(a.amount, b.amount)


def test_a_generator_and_none_are_accepted():
    a, b = (make_audit(200, random_state=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(a.probability, b.probability)
    assert len(make_audit(50, random_state=None)) == 50


def test_the_same_seed_elsewhere_is_independent_of_the_data(large):
    """A split or a score drawn with the seed of the data must not replay the draws that made it."""
    draw = np.random.default_rng(7).random(len(large))
    assert abs(np.corrcoef(draw, large.probability)[0, 1]) < 4.0 / np.sqrt(len(large))
    construction = large.columns["sector"] == "construction"
    assert draw[construction].mean() == pytest.approx(0.5, abs=0.02)


def test_first_values_are_pinned():
    """A change of the simulation changes every published figure: it must be on purpose."""
    data = make_audit(1_000, random_state=0)
    assert data.columns["sector"][:3].tolist() == ["import-export", "retail", "transport"]
    assert data.columns["turnover"][:3].tolist() == [329000.0, 488400.0, 1569700.0]
    assert data.probability[:3] == pytest.approx([0.0029018, 0.0055032, 0.0028902], rel=1e-4)
    assert int(data.y.sum()) == 21


@pytest.mark.parametrize("positive_rate", [0.002, 0.02, 0.2, 0.5])
def test_positive_rate_is_met(positive_rate):
    data = make_audit(20_000, positive_rate=positive_rate, random_state=1)
    assert data.probability.mean() == pytest.approx(positive_rate, rel=1e-4)
    noise = np.sqrt((data.probability * (1.0 - data.probability)).sum())
    assert abs(data.y.sum() - data.probability.sum()) < 4.0 * noise


def test_probability_is_calibrated_in_bins(large):
    """Overall and inside each year, the positives of a bin are as many as the probabilities say."""
    for rows in (slice(None), large.year == 2022, large.year == 2024):
        probability, y = large.probability[rows], large.y[rows]
        bins = np.digitize(probability, np.quantile(probability, [0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995]))
        found, expected = np.bincount(bins, y), np.bincount(bins, probability)
        noise = np.sqrt(np.bincount(bins, probability * (1.0 - probability)))
        assert (np.abs(found - expected) < 4.5 * noise).all()


def test_probability_depends_on_the_observed_row_alone(large):
    """Rows that agree in everything observed that enters the probability agree in the probability.

    Computed again from the observed columns: outside all pockets it is the background, which four columns
    determine.
    """
    deep_outside = pocket_depths(large.columns).max(axis=0) < -1.9
    gap = np.where(np.isnan(large.columns["vat_gap"]), 0.05, large.columns["vat_gap"])
    log_risk = (
        0.25 * np.minimum(large.columns["late_filings"], 4.0)
        + 5.0 * gap
        - 0.02 * np.minimum(large.columns["age_years"], 30.0)
        + 0.4 * (large.columns["filing"] == "paper")
    )
    ratio = large.probability[deep_outside] / np.exp(log_risk[deep_outside])
    assert deep_outside.sum() > 1_000
    assert np.ptp(ratio) / ratio.mean() < 0.05


def test_amount_says_nothing_about_the_label_once_the_row_is_known(large):
    """Residuals y - probability are uncorrelated with log amount: as a feature it would change nothing."""
    residual = (large.y - large.probability) / np.sqrt(large.probability * (1.0 - large.probability))
    log_amount = np.log(large.amount)
    correlation = np.corrcoef(residual, log_amount)[0, 1]
    assert abs(correlation) < 4.0 / np.sqrt(len(large))


def test_amount_is_heavy_tailed_and_goes_with_turnover_and_fraud(large):
    assert np.corrcoef(np.log(large.amount), np.log(large.columns["turnover"]))[0, 1] > 0.5
    assert large.amount.mean() > 2.0 * np.median(large.amount)
    assert large.amount[large.y == 1].mean() > 1.5 * large.amount[large.y == 0].mean()


def test_missing_values_are_where_they_should_be(large):
    share = {name: is_missing(values).mean() for name, values in large.columns.items()}
    assert all(share[name] == 0.0 for name in NEVER_MISSING)
    assert sum(value > 0.0 for value in share.values()) == 10
    assert share["region"] == pytest.approx(0.05, abs=0.005)
    assert all(0.02 < share[name] < 0.10 for name in INFORMATIVE)
    none = make_audit(2_000, missing_rate=0.0)
    assert not any(is_missing(values).any() for values in none.columns.values())


def test_some_gaps_are_informative(large):
    in_pocket = POCKETS[0].depth(large.columns | {"payroll_share": np.zeros(len(large))}) > 0.0
    hidden = is_missing(large.columns["payroll_share"])
    assert large.probability[in_pocket & hidden].mean() > 2.0 * large.probability[hidden].mean()
    late = large.columns["late_filings"] >= 2
    gap = is_missing(large.columns["vat_gap"])
    assert gap[late].mean() > 2.0 * gap[~late].mean()


def test_categories_are_the_declared_ones(large):
    assert large.categorical_features == list(LEVELS)
    for name, levels in LEVELS.items():
        values = large.columns[name]
        assert set(values[~is_missing(values)]) == set(levels)
    numeric = [values.dtype for name, values in large.columns.items() if name not in LEVELS]
    assert set(numeric) == {np.dtype(np.float64)}


def pocket_hit_rates(data):
    inside = pocket_depths(data.columns) > 0.0
    return {
        pocket.name: [data.y[rows & (data.year == year)].mean() for year in (2022, 2024)]
        for pocket, rows in zip(POCKETS, inside, strict=True)
    }


def test_drift_changes_the_pockets_between_years():
    rates = pocket_hit_rates(make_audit(150_000, drift=0.8, random_state=2))
    for pocket in POCKETS:
        first, last = rates[pocket.name]
        assert {"fades": last < 0.6 * first, "grows": last > 1.4 * first, "stays": True}[pocket.trend]


def test_without_drift_the_pockets_stay():
    rates = pocket_hit_rates(make_audit(150_000, drift=0.0, random_state=2))
    assert all(0.75 < last / first < 1.33 for first, last in rates.values())


def test_prices_rise_with_drift():
    still, moving = make_audit(60_000, drift=0.0), make_audit(60_000, drift=1.0)

    def rise(data):
        return [np.median(data.columns["turnover"][data.year == year]) for year in (2022, 2024)]

    assert rise(still)[1] / rise(still)[0] == pytest.approx(1.0, abs=0.05)
    assert rise(moving)[1] / rise(moving)[0] == pytest.approx(1.08**2, abs=0.05)


def test_split_learns_from_the_past_only():
    data = make_audit(3_000, years=(2019, 2020, 2021, 2022))
    train, test = data.split(2021)
    assert set(train.year) == {2019, 2020}
    assert set(test.year) == {2021}
    assert len(data.split()[1]) == int((data.year == 2022).sum())
    assert np.array_equal(test.columns["turnover"], data.columns["turnover"][data.year == 2021])
    with pytest.raises(ValueError, match=r"must be one of \[2020, 2021, 2022\].*Got 2019 instead"):
        data.split(2019)
    with pytest.raises(ValueError, match="at least two years"):
        make_audit(10, years=(2020,)).split()


def test_repr_is_one_short_line():
    text = repr(make_audit(1_000))
    assert re.fullmatch(r"<AuditData: 1,000 cases, 22 features, \d+ positive, years 2022, 2023, 2024>", text)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_hold_the_columns(backend):
    pytest.importorskip(backend)
    data = make_audit(300, missing_rate=0.2, as_frame=backend)
    frame = data.frame()
    assert type(frame).__module__.split(".")[0] == backend
    names = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert names == ["case_id", "year", *data.columns, "amount", "label"]
    features = data.X
    assert list(features.column_names if backend == "pyarrow" else features.columns) == list(data.columns)
    for name, values in data.columns.items():
        found = frame[name].to_pylist() if backend == "pyarrow" else frame[name].to_list()
        gaps = [value is None or value != value for value in found]
        assert gaps == is_missing(values).tolist()
        assert [value for value, gap in zip(found, gaps, strict=True) if not gap] == values[
            ~is_missing(values)
        ].tolist()


def test_an_unknown_or_absent_frame_package_gets_a_sentence(monkeypatch):
    data = make_audit(10)
    with pytest.raises(ValueError, match=r"The 'backend' parameter of AuditData.frame must be .* Got 'dask' instead"):
        data.frame("dask")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs the package 'polars', which is not installed. Hint: pip install"):
        data.frame("polars")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"n_cases": 0},
            "The 'n_cases' parameter of make_audit must be an int in the range [1, inf). Got 0 instead.",
        ),
        ({"n_cases": 10.0}, "Got 10.0 instead."),
        ({"positive_rate": 0.0}, "must be a float in the range (0.0, 0.5]. Got 0.0 instead."),
        ({"positive_rate": float("nan")}, "Got nan instead."),
        ({"drift": 1.5}, "The 'drift' parameter of make_audit must be a float in the range [0.0, 1.0]."),
        ({"missing_rate": -0.1}, "'missing_rate'"),
        ({"mimicry": "much"}, "Got 'much' instead."),
        ({"years": ()}, "a non-empty sequence of ascending ints. Got () instead."),
        ({"years": (2023, 2022)}, "'years'"),
        ({"years": 2023}, "'years'"),
        ({"random_state": -1}, "'random_state'"),
        ({"random_state": "seed"}, "'random_state'"),
        ({"as_frame": "excel"}, "'as_frame'"),
    ],
)
def test_bad_parameters_get_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_audit(**arguments)


@pytest.mark.slow
def test_a_million_cases():
    data = make_audit(1_000_000)
    assert len(data) == 1_000_000
    assert data.probability.mean() == pytest.approx(0.02, rel=1e-4)
    assert data.y.mean() == pytest.approx(0.02, abs=6e-4)
