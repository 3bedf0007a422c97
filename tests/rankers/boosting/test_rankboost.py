"""RankBoost against a double loop over pairs, its bound, and what it says of categories and missing values."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from ranker_cases import make_cases
from toprank import RankBoost
from toprank.datasets import make_audit
from toprank.metrics import roc_auc


def candidates(X, missing):
    """All weak rankings of a table of numbers, in the order of columns and cuts: (column, threshold, h of missing)."""
    for f in range(X.shape[1]):
        values = np.unique(X[~np.isnan(X[:, f]), f])
        cuts = [(a + b) / 2 for a, b in pairwise(values)]
        for cut in [*cuts, *([np.inf] if missing == "side" and len(values) else [])]:
            for default in (0.0, 1.0) if missing == "side" else (0.5,):
                yield f, cut, default


def plain_rankboost(X, is_positive, weight, n_rounds, missing="abstain"):
    """Scores, losses and r of each round; a weight for every pair, a loop over all pairs."""
    positives, negatives = np.flatnonzero(is_positive), np.flatnonzero(~is_positive)
    D = np.outer(weight[positives], weight[negatives])
    D /= D.sum()
    start, score, losses, rs = D.copy(), np.zeros(len(X)), [], []
    for _ in range(n_rounds):
        best = (0.0, None)
        for f, cut, default in candidates(X, missing):
            h = np.where(np.isnan(X[:, f]), default, X[:, f] > cut)
            r = sum(D[a, b] * (h[i] - h[j]) for a, i in enumerate(positives) for b, j in enumerate(negatives))
            if abs(r) > abs(best[0]) + 1e-12:
                best = (r, h)
        r, h = best
        alpha = math.log((1 + r) / (1 - r)) / 2
        score += alpha * (h - 0.5)
        D *= np.exp(alpha * (h[negatives][None, :] - h[positives][:, None]))
        D /= D.sum()
        losses.append(np.sum(start * np.exp(score[negatives][None, :] - score[positives][:, None])))
        rs.append(r)
    return score, np.array(losses), np.array(rs)


def make_table(seed=0, n=24):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 2)), 1)
    is_positive = X[:, 0] + rng.normal(size=n) > 0.8
    X[rng.random(X.shape) < 0.15] = np.nan
    is_positive[:2] = [True, False]
    return X, is_positive


@pytest.mark.parametrize("missing", ["abstain", "side"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_equals_a_double_loop_over_pairs(missing, weighted, seed):
    X, is_positive = make_table(seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    model = RankBoost(n_estimators=6, missing=missing, cv=0).fit(X, is_positive, weight if weighted else None)
    score, losses, r = plain_rankboost(X, is_positive, weight, 6, missing)
    np.testing.assert_allclose(model.decision_function(X), score, atol=1e-5)
    np.testing.assert_allclose(model.pair_loss_, losses, rtol=1e-5)
    ratio = model.pair_loss_ / np.append(1.0, model.pair_loss_[:-1])
    assert np.all(ratio <= np.sqrt(1 - r**2) + 1e-6), "each round multiplies the loss by at most sqrt(1 - r^2)"


def test_the_bound_falls_every_round_and_stays_above_one_minus_auc():
    data = make_audit(1500, random_state=3)
    model = RankBoost(n_estimators=60, cv=0).fit(data.X, data.y)
    assert len(model.pair_loss_) == model.n_rounds_ == 60
    assert np.all(np.diff(np.append(1.0, model.pair_loss_)) < 0)
    for stage, score in enumerate(model.staged_decision_function(data.X)):
        assert 1 - roc_auc(data.y, score) <= model.pair_loss_[stage] + 1e-9
    score = model.decision_function(data.X)
    y = np.asarray(data.y).astype(bool)
    direct = np.exp(score[~y]).mean() * np.exp(-score[y]).mean()
    assert model.pair_loss_[-1] == pytest.approx(direct, rel=1e-6)


def test_a_smaller_learning_rate_takes_smaller_steps():
    X, is_positive = make_table()
    whole, half = (RankBoost(n_estimators=1, learning_rate=rate, cv=0).fit(X, is_positive) for rate in (1.0, 0.5))
    np.testing.assert_allclose(half.decision_function(X), whole.decision_function(X) / 2, rtol=1e-6)


def test_one_category_is_set_against_the_others():
    X = pd.DataFrame({"place": ["a"] * 10 + ["b"] * 10 + ["c"] * 10})
    y = np.array([1] * 8 + [0] * 2 + [0] * 20)
    model = RankBoost(n_estimators=1, cv=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores[0] == -scores[10] == -scores[20] > 0
    with pytest.warns(UserWarning, match="place"):
        unseen = model.decision_function(pd.DataFrame({"place": ["z"]}))
    assert unseen.tolist() == [0.0], "an unknown category is as good as missing"


@pytest.mark.parametrize(("missing", "sign"), [("abstain", 0), ("side", 1)])
def test_missing_values_abstain_or_take_the_better_side(missing, sign):
    """Missing values are all positive; the column has a threshold too."""
    X = np.array([np.nan] * 6 + [1.0] * 10 + [2.0] * 4)[:, None]
    y = np.array([1] * 6 + [0] * 10 + [1] * 4)
    model = RankBoost(n_estimators=1, missing=missing, cv=0).fit(X, y)
    low, high, none = model.decision_function(np.array([[1.0], [2.0], [np.nan]]))
    assert low < 0 < high
    assert none == sign * high


def test_a_column_that_was_complete_in_training_may_be_missing_later():
    X, y = make_cases(200)
    model = RankBoost(n_estimators=5, cv=0).fit(X[["size"]], y)
    assert model.decision_function(pd.DataFrame({"size": [np.nan]})).tolist() == [0.0]


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_rounds_that_find_nothing_add_nothing(value):
    X, y = np.full((20, 1), value), np.arange(20) % 4 == 0
    model = RankBoost(n_estimators=3, cv=0, keep_columns="all").fit(X, y)
    assert model.decision_function(X).tolist() == [0.0] * 20
    np.testing.assert_allclose(model.pair_loss_, [1.0, 1.0, 1.0], rtol=1e-12)
    assert model.n_rounds_ == 3


def test_a_perfect_column_has_a_finite_weight():
    X, y = np.arange(20.0)[:, None], np.arange(20) >= 15
    model = RankBoost(n_estimators=5, cv=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) == 1.0


def test_row_order_and_copies_change_nothing():
    X, y = make_cases(300)
    weight = np.random.default_rng(0).integers(0, 4, 300)
    model = RankBoost(n_estimators=20, cv=3, random_state=0).fit(X, y, weight)
    twice = np.random.default_rng(1).permutation(np.repeat(np.arange(300), weight))
    other = RankBoost(n_estimators=20, cv=3, random_state=0).fit(X.iloc[twice], y[twice])
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), rtol=1e-5, atol=1e-6)
    assert other.n_rounds_ == model.n_rounds_
