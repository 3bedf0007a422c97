"""Folds by what the rows are, and the hit rates that rankers learn from them."""

import math

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank import MetaAP, MetaAPForest, RankingTree, TreeRank, load
from toprank.data.binned_cases import BinnedCases
from toprank.data.cases import sample_cases
from toprank.datasets import make_audit
from toprank.rankers import unseen
from toprank.rankers.unseen import held_out_folds
from toprank.tree.columns import Column


def table(n=600, seed=0, share=0.2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)).round(2), rng.random(n) < share


def data_of(X, is_positive, weight=None):
    return BinnedCases(X, is_positive, weight, [Column(f"x{i}") for i in range(X.shape[1])])


def noise(n=1200, n_columns=8, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_columns)), (rng.random(n) < share).astype(int)


def test_folds_part_the_rows_with_both_classes_in_proportion():
    X, is_positive = table()
    folds = held_out_folds(data_of(X, is_positive), 5, None)
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert len(folds) == 5
    assert sorted(held_out) == list(range(600))
    for fold in folds:
        assert not np.intersect1d(fold.inside, fold.held_out).size
        assert is_positive[fold.held_out].mean() == pytest.approx(is_positive.mean(), abs=0.02)


def test_the_fold_of_a_row_depends_on_the_row_alone():
    X, is_positive = table()
    order = np.random.default_rng(1).permutation(len(X))
    one = held_out_folds(data_of(X, is_positive), 5, None)
    other = held_out_folds(data_of(X[order], is_positive[order]), 5, None)
    for a, b in zip(one, other, strict=True):
        assert sorted(a.held_out) == sorted(order[b.held_out])


def test_equal_rows_of_a_class_are_never_on_both_sides():
    X, is_positive = table(40)
    X, is_positive = np.repeat(X, 5, axis=0), np.repeat(is_positive, 5)
    for fold in held_out_folds(data_of(X, is_positive), 4, None):
        for of_class in (True, False):
            inside, outside = (
                {tuple(row) for row in X[rows[is_positive[rows] == of_class]]} for rows in (fold.inside, fold.held_out)
            )
            assert not inside & outside


def test_very_common_rows_are_spread_over_all_folds():
    X, is_positive = table(1000)
    common = np.flatnonzero(~is_positive)[:300]
    X[common] = X[common[0]]
    folds = held_out_folds(data_of(X, is_positive), 5, None)
    assert [np.isin(common, fold.held_out).sum() for fold in folds] == [60] * 5
    sizes = [(~is_positive[fold.held_out]).sum() for fold in folds]  # the others are spread as evenly as ever
    assert max(sizes) - min(sizes) <= 2
    weighted = held_out_folds(
        data_of(X, is_positive, np.where(np.isin(np.arange(1000), common[:150]), 2.0, 1.0)), 5, None
    )
    assert max(abs(fold.weight[fold.held_out].sum() - 230) for fold in weighted) <= 3


def test_very_common_rows_have_their_own_rate():
    """The folds that held all of them out at once said nothing about them: four times their rate was claimed."""
    rng = np.random.default_rng(0)
    X, is_positive = rng.normal(size=(3000, 3)), np.arange(3000) < 90
    X[is_positive, 0] += 1.5
    X[90:1000], X[:3] = 2.0, 2.0  # equal rows, three of which are positive
    rate = MetaAP().fit(X, is_positive).predict_proba(np.full((1, 3), 2.0))[0, 1]
    assert rate == pytest.approx(3 / 913, abs=0.003)


def test_in_folds_weight_two_is_the_row_twice():
    X, is_positive = table(200)
    weight = np.random.default_rng(1).integers(0, 4, 200)
    source = np.repeat(np.arange(200), weight)
    one = held_out_folds(data_of(X, is_positive, weight.astype(float)), 5, None)
    other = held_out_folds(data_of(X[source], is_positive[source]), 5, None)
    for a, b in zip(one, other, strict=True):
        assert sorted(a.held_out) == sorted(set(source[b.held_out]))
        assert weight[a.held_out][is_positive[a.held_out]].sum() == is_positive[source[b.held_out]].sum()


def test_another_seed_gives_other_folds():
    data = data_of(*table())
    assert not np.array_equal(held_out_folds(data, 5, 0)[0].held_out, held_out_folds(data, 5, 1)[0].held_out)


@pytest.mark.parametrize("n_positives", [0, 1])
def test_there_are_no_folds_with_less_than_two_cases_of_a_class(n_positives):
    X, _ = table(50)
    assert held_out_folds(data_of(X, np.arange(50) < n_positives), 5, None) == []


def test_rows_without_weight_are_in_no_fold():
    X, is_positive = table()
    weight = (np.arange(600) % 3 > 0).astype(float)
    for fold in held_out_folds(data_of(X, is_positive, weight), 5, None):
        assert weight[fold.inside].all()
        assert weight[fold.held_out].all()
        assert fold.inside_weight[fold.held_out].sum() == 0


def test_a_sample_keeps_the_positives_and_the_weight_of_the_negatives():
    is_positive = np.arange(10_000) % 50 == 0
    rows, weight = sample_cases(is_positive, None, 1000)
    assert len(rows) == 1000
    assert is_positive[rows].sum() == 200
    assert weight[is_positive].sum() == 200
    assert weight[~is_positive].sum() == pytest.approx(9800)
    assert not weight[np.setdiff1d(np.arange(10_000), rows)].any()


# --- what rankers make of them ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranker",
    [RankingTree(max_depth=8, min_samples_leaf=1), TreeRank(), MetaAP(max_depth=3, leaf_depth=3),
     MetaAP(ccp_alpha=0.0, criterion="ap", leaf_score="margin"), MetaAPForest(n_estimators=20, random_state=0)],
    ids=["tree", "treerank", "metaap", "metaap-ap", "forest"],
)  # fmt: skip
def test_rates_of_noise_are_the_rate_of_all_cases(ranker):
    X, y = noise()
    model = ranker.fit(X, y)
    top = model.top_k(X, 100, reasons=0)
    assert np.mean(top["hit_rate"]) == pytest.approx(0.2, abs=0.08)
    assert model.cutoff_.hit_rate_low < 0.2 < model.cutoff_.hit_rate_high


def test_the_rules_of_noise_promise_no_more_than_noise():
    X, y = noise()
    rules = RankingTree(max_depth=8, min_samples_leaf=1).fit(X, y).rules()
    assert rules["training_rate"].iloc[0] > 0.9
    assert rules["hit_rate"].iloc[0] < 0.4


def test_claims_hold_on_new_cases():
    past, new = (make_audit(8_000, random_state=seed, positive_rate=0.05) for seed in (0, 1))
    model = MetaAP(max_depth=3, leaf_depth=3).fit(past.X, past.y)
    score, hits = model.decision_function(new.X), np.asarray(new.y)
    for share in (0.01, 0.05):
        top = np.argsort(-score, kind="stable")[: int(share * len(score))]
        rate, low, high = model.rates_.of_group(score[top])
        assert rate == pytest.approx(hits[top].mean(), abs=0.12)
        assert low <= hits[top].mean() <= high


def test_with_cv_0_there_are_training_rates_and_they_are_called_that(tmp_path):
    X, y = noise(400)
    model = RankingTree(cv=0).fit(X, y)
    assert not model.rates_.is_for_new_cases
    assert math.isnan(model.cutoff_.hit_rate)
    assert "training_rate" in model.top_k(X, 5).columns
    assert "hit_rate" not in model.rules().columns
    assert "; in training " in model.summary()
    model.save(tmp_path / "m.toprank")
    assert load(tmp_path / "m.toprank").summary() == model.summary()


def test_too_few_positives_for_folds_give_training_rates():
    X, y = noise(100)
    y[:] = 0
    y[0] = 1
    assert not RankingTree(min_samples_leaf=1).fit(X, y).rates_.is_for_new_cases


def test_the_same_rates_for_any_order_of_rows_and_number_of_threads():
    X, y = noise(800)
    order = np.random.default_rng(0).permutation(800)
    one = MetaAP(max_depth=2, leaf_depth=2, n_jobs=1).fit(X, y)
    other = MetaAP(max_depth=2, leaf_depth=2, n_jobs=2).fit(X[order], y[order])
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_file_keeps_the_rates_of_scores_and_leaves(tmp_path):
    X, y = noise(500)
    model = TreeRank(max_depth=2).fit(X, y)
    model.save(tmp_path / "m.toprank")
    again = load(tmp_path / "m.toprank")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.rules().equals(model.rules())
    assert again.cutoff_ == model.cutoff_


def test_every_ranker_has_rates_for_new_cases():
    data = make_audit(600, random_state=0, positive_rate=0.1)
    for name in ("CostTree", "TAOTree", "TreeRankForest", "CostOptimalForest", "TreeRankBoost"):
        few = {"n_estimators": 3} if "Forest" in name or "Boost" in name else {"cv": 2}
        few |= {"cost_factor": 9.0} if name == "CostOptimalForest" else {}
        model = getattr(toprank, name)(**few).fit(data.X, data.y)
        assert model.rates_.is_for_new_cases, name
        assert 0 <= model.cutoff_.hit_rate_low <= model.cutoff_.hit_rate <= model.cutoff_.hit_rate_high <= 1


def test_splits_that_can_be_read_only_once_are_refused():
    X, y = noise(100)
    splits = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    with pytest.raises(ValueError, match=r"cv.*RankingTree.*generator"):
        RankingTree(cv=(each for each in splits)).fit(X, y)
    assert RankingTree(cv=splits).fit(X, y).rates_.source == "2-fold cross-validation"


def test_a_category_of_rows_without_weight_changes_no_fold():
    X = pd.DataFrame({"place": ["a", *"bcdbcdbcdbcdbcdbcd"], "size": np.arange(19) % 5})
    y, weight = np.arange(19) % 2, np.ones(19)
    weight[0] = 0.0
    one = RankingTree(cv=3, min_samples_leaf=1).fit(X, y, sample_weight=weight)
    other = RankingTree(cv=3, min_samples_leaf=1).fit(X[1:], y[1:])
    assert np.array_equal(one.rates_.rate, other.rates_.rate)
    assert one.cutoff_ == other.cutoff_


def test_intervals_count_the_cases_that_were_drawn(monkeypatch):
    data = make_audit(4000, random_state=0)
    whole = RankingTree(max_depth=2, cv=3).fit(data.X, data.y)
    monkeypatch.setattr(unseen, "FOLD_ROWS", 1000)
    monkeypatch.setattr(unseen.held_out_folds, "__defaults__", (1000,))
    drawn = RankingTree(max_depth=2, cv=3).fit(data.X, data.y)
    assert (whole.rates_.n_cases, drawn.rates_.n_cases) == (4000, 1000)
    widths = [np.diff(model.rates_.interval(0.3, model.rates_.n_cases, 1000))[0] for model in (whole, drawn)]
    assert widths[1] > widths[0]
