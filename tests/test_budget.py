import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranker_cases import RANKERS, make_cases
from toprank import MetaAP, RankingTree, load
from toprank.budget import Cutoff, budget_text, cases_of_budget, find_cutoff, hits_of_first
from toprank.metrics import HitRates


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(None, 30.0), (1, 1.0), (np.int64(50), 50.0), (5000, 1000.0), (0.02, 20.0), (np.float32(0.5), 500.0)],
)
def test_a_budget_is_a_number_of_cases(budget, expected):
    assert cases_of_budget(budget, 1000.0, 30.0) == expected


@pytest.mark.parametrize("budget", [0, -3, 0.0, 1.0, 1.5, -0.1, float("nan"), float("inf")])
def test_a_budget_out_of_range_is_refused_with_a_hint(budget):
    with pytest.raises(ValueError, match=r"budget.*got.*Hint:"):
        cases_of_budget(budget, 1000.0, 30.0)


@pytest.mark.parametrize("budget", [True, np.True_, "10", [10]])
def test_a_budget_of_another_type_is_refused(budget):
    with pytest.raises(TypeError, match=r"budget must be an int .* float .* or None, got"):
        cases_of_budget(budget, 1000.0, 30.0)


rows = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.booleans(), st.integers(1, 4)), min_size=1, max_size=15
)


@given(rows=rows, share=st.floats(0.01, 1.0))
def test_no_other_threshold_comes_nearer_to_the_budget(rows, share):
    score, positive, weight = (np.array(values) for values in zip(*rows, strict=True))
    total = float(weight.sum())
    cutoff = find_cutoff(share * total, total, score, positive, weight)
    above = score >= cutoff.threshold
    assert cutoff.threshold in score
    nearest = min(abs(weight[score >= other].sum() - share * total) for other in score)
    assert abs(weight[above].sum() - share * total) == pytest.approx(nearest)
    assert cutoff.training_rate == pytest.approx((weight * positive)[above].sum() / weight[above].sum())
    assert cutoff.n_tied == pytest.approx(weight[score == cutoff.threshold].sum())
    assert not cutoff.is_for_new_cases
    assert cutoff.k == share * total


@given(rows=rows, share=st.floats(0.01, 1.0), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_move_the_cutoff(rows, share, seed):
    arrays = [np.array(values) for values in zip(*rows, strict=True)]
    shuffled = [values[np.random.default_rng(seed).permutation(len(rows))] for values in arrays]
    total = float(arrays[2].sum())
    assert find_cutoff(share * total, total, *arrays) == find_cutoff(share * total, total, *shuffled)


def test_a_sample_of_the_rows_stands_for_all():
    score = np.arange(100.0)
    cutoff = find_cutoff(50, 1000, score, score >= 98, np.ones(100))
    assert cutoff == Cutoff(50.0, 50.0, 95.0, 0.4, n_tied=10.0)


@pytest.mark.parametrize("kind", ["margin", "linear", "forest", "geometric", "confusion"])
@pytest.mark.parametrize("budget", [7, 60, 0.05, 0.4, None])
def test_predict_lets_about_the_budget_through_on_training_rows(kind, budget):
    X, y = make_cases(400)
    ranker = RANKERS[kind]
    model = type(ranker)(**(ranker.get_params() | {"budget": budget, "splitter": "exact"})).fit(X, y)
    score = model.decision_function(X)
    alerts = int(model.predict(X).sum())
    wanted = {int: budget, float: 400 * (budget or 0), type(None): y.sum()}[type(budget)]
    assert model.cutoff_.k == pytest.approx(wanted)
    assert alerts == (score >= model.cutoff_.threshold).sum()
    largest_tie = np.unique(score, return_counts=True)[1].max()
    assert abs(alerts - wanted) <= largest_tie / 2


def test_tied_rows_are_alerts_together():
    X, y = make_cases(300)
    model = MetaAP(max_depth=2, leaf_depth=2, leaf_score="constant", budget=5, cv=0).fit(X, y)
    leaf, alert = model.apply(X), model.predict(X)
    assert alert.any()
    for node in np.unique(leaf):
        assert len(np.unique(alert[leaf == node])) == 1


def test_a_budget_beyond_all_cases_lets_all_through():
    X, y = make_cases(100)
    assert MetaAP(budget=1000, min_samples_leaf=5, cv=0).fit(X, y).predict(X).all()


@pytest.mark.parametrize("n_above", [0, 10])
def test_expected_hits_are_those_of_the_budget_where_more_cases_tie(n_above):
    """A constant score announced as many hits as all cases have."""
    score, is_positive = np.r_[np.ones(n_above), np.zeros(1000 - n_above)], np.arange(1000) % 20 == 0
    share = np.array([1.0, n_above / 1000])
    rates = HitRates([0.0, 1.0], [0.05, 0.5], [1000.0, n_above], 1.0, "out of bag", 0.1, math.nan, share)
    cutoff = replace(find_cutoff(600, 1000, score, is_positive, None), hit_rate=0.0545, hit_rate_low=0.04,
                     hit_rate_high=0.07)  # fmt: skip
    expected = 600 * np.array(rates.of_group(score[:600]))  # what a list of 600 cases says
    assert cutoff.n_above == 1000
    assert hits_of_first(cutoff, rates, 1000) == pytest.approx(expected)
    assert f"expect {expected[0]:.0f} hits in 600 new cases" in budget_text(cutoff, rates, n_cases=1000)
    assert "expect 54 hits in 1,000 new cases" in budget_text(replace(cutoff, k=1000.0), rates, n_cases=1000)  # no more


def test_a_budget_counts_weight():
    X, y = make_cases(300)
    weight = np.where(np.arange(300) % 3 == 0, 4.0, 0.5)
    model = MetaAP(max_depth=2, min_samples_leaf=5, budget=40, leaf_score="linear", cv=0).fit(X, y, weight)
    assert abs(weight[model.predict(X) == 1].sum() - 40) <= 4.0


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.0001, 0.9),
    st.sampled_from([3, 50, 10**6]),
    st.sampled_from([10, 500, 10**4]),
)
def test_sorting_only_the_top_changes_nothing(seed, share, n_scores, sample_rows):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, n_scores, 3000) / n_scores
    positive = rng.random(3000) < score
    wanted = share * 3000
    whole = find_cutoff(wanted, 3000, score, positive, np.ones(3000))
    with patch("toprank.budget.SAMPLE_ROWS", sample_rows):
        assert find_cutoff(wanted, 3000, score, positive, None) == whole


@pytest.mark.parametrize("later", [7, 0.05, None])
def test_a_budget_set_after_the_fit_waits_for_the_next_one(later, tmp_path):
    """The list followed a new count, but not a new share, and `predict` neither."""
    X, y = make_cases(300)
    model = RankingTree(cv=0, budget=30, max_depth=6, leaf_score="margin").fit(X, y)
    line = model.summary()
    model.set_params(budget=later)
    model.save(tmp_path / "model.toprank")
    for each in (model, load(tmp_path / "model.toprank")):
        assert len(each.top_k(X)) == 30
        assert abs(each.predict(X).sum() - 30) <= 5  # ties
        assert each.summary() == line
    assert len(model.fit(X, y).top_k(X)) != 30
