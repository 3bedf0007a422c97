"""`CostOptimalCurve`: the path of figure 7, what is held out, the choice of a point, changes between points, files."""

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import TimeSeriesSplit

from ranker_cases import make_cases
from toprank import CostOptimalCurve, TAOTree, load
from toprank._core.threads import Threads
from toprank.datasets import make_audit
from toprank.errors import InputError
from toprank.metrics import OperatingPoints, average_precision
from toprank.rankers.curve.changes import changes_table, leaf_rule_changes
from toprank.rankers.curve.cost_curve import CurveFolds
from toprank.rankers.curve.path import PathFitter, order_of
from toprank.rankers.curve.selection import Selection

ONE: dict[str, Any] = {"depths": None, "alphas": None}
SMALL = CostOptimalCurve(TAOTree(max_depth=2), cv=3, cost_factor=2.0, **ONE)


@pytest.fixture(scope="module")
def table():
    return make_cases(500)


@pytest.fixture(scope="module")
def fitted(table):
    return clone(SMALL).fit(*table)


@pytest.fixture
def curve(fitted):
    return fitted


def test_the_path_goes_from_no_missed_positive_to_no_false_positive(curve, table):
    y = table[1]
    ratios = np.array([point.cost_ratio for point in curve.path_ if not point.is_between])
    assert np.allclose(ratios[1:] / ratios[:-1], 2.0)
    assert curve.path_[curve.base_point_].cost_ratio == y.sum() / (y == 0).sum()
    assert not curve.path_[curve.base_point_].is_between
    assert curve.path_[0].false_negatives == 0 < curve.path_[curve.base_point_].false_negatives
    assert curve.path_[-1].false_positives == 0 < curve.path_[curve.base_point_].false_positives
    assert all(point.tree.fp_cost_ == point.cost_ratio for point in curve.path_)


@pytest.mark.parametrize("n_iter", [1, 20])
def test_every_tree_starts_from_the_one_before(table, n_iter):
    """Each costs no more, at its own price, than the one it was improved from."""
    before = TAOTree(max_depth=2, cv=0).fit(*table)
    trees = PathFitter(lambda tree: tree.fit(*table), n_iter).follow(before, [0.4, 0.8, 1.6], lambda tree: False)
    assert [tree.fp_cost_ for tree in trees] == [0.4, 0.8, 1.6]
    assert (max(tree.n_iter_ for tree in trees) > 1) == (n_iter > 1)
    for tree in trees:
        again = clone(tree).set_params(init=before, max_iter=n_iter).fit(*table)
        assert again.objective_ == tree.objective_ <= again.objective_path_[0]
        assert (tree.init, tree.max_iter) == ("cart", 20)  # those of the base
        before = tree


def test_a_path_that_went_astray_is_mended(table):
    """A tree that is dearer at its own price than another of the path is found anew from that one; others stay."""

    def fit(tree):
        return tree.fit(*table)

    ratios = [0.05, 0.2, 0.4, 1.6]
    good = [fit(TAOTree(max_depth=3, fp_cost=ratio, cv=0)) for ratio in ratios]
    poor = fit(TAOTree(max_depth=1, fp_cost=0.2, alpha=300.0, cv=0))  # one leaf
    mended = PathFitter(fit, 1).settle([good[0], poor, good[2], good[3]], ratios)
    assert [tree is before for tree, before in zip(mended, good, strict=True)] == [True, False, True, True]
    at_that_price = good[2].objective_ - 0.2 * good[2].n_fp_
    assert mended[1].fp_cost_ == 0.2
    assert mended[1].objective_ <= at_that_price < poor.objective_


class Made:
    """A tree of which only the mistakes count."""

    n_cases_, n_positives_ = 200, 100

    def __init__(self, n_fp, n_fn):
        self.n_fp_, self.n_fn_ = n_fp, n_fn


@pytest.mark.parametrize(
    ("mistakes", "at", "kept"),
    [
        ([(9, 0), (9, 0), (8, 0), (4, 2), (3, 3), (0, 6), (2, 5), (0, 7)], 3, slice(2, 6)),
        ([(9, 0), (4, 2), (0, 7)], 1, slice(0, 3)),
        ([(9, 1), (4, 2), (1, 7)], 1, slice(0, 3)),  # no end was reached
        ([(9, 0), (9, 0), (8, 0), (0, 3)], 0, slice(0, 4)),  # the base stays, though the next ones miss nothing either
        ([(9, 0), (8, 0), (0, 3), (0, 3), (0, 4)], 3, slice(1, 4)),
        ([(0, 0)], 0, slice(0, 1)),
    ],
)
def test_the_path_ends_with_the_first_trees_that_have_reached_an_end(monkeypatch, mistakes, at, kept):
    """However the trees settled: one without false positives at the top, one without missed positives at the bottom."""
    settled = [Made(*each) for each in mistakes]
    base, n_ways = Made(5, 5), iter((len(mistakes) - at - 1, at))
    monkeypatch.setattr(PathFitter, "follow", lambda *_: [None] * next(n_ways))
    monkeypatch.setattr(PathFitter, "settle", lambda *_: settled)
    ratios, trees, base_point = PathFitter(TAOTree.fit, 1).both_ways(base, 0.5, 2.0, Threads())
    assert trees == settled[kept]
    assert trees[base_point] is settled[at]
    assert ratios[base_point] == 0.5
    assert np.allclose(ratios, 0.5 * 2.0 ** (np.arange(len(mistakes))[kept] - at))


@pytest.fixture(scope="module")
def long_path():
    """A path that had more than one tree at both ends before it was trimmed; and its outcomes."""
    data = make_audit(1000, random_state=3)
    return CostOptimalCurve(depths=[2], alphas=[1], cv=3).fit(data.X, data.y), data.y


def test_a_path_that_settled_has_one_tree_at_each_end(long_path):
    """Out of fold the same costs are gone over."""
    curve, y = long_path
    at_costs = np.array([not point.is_between for point in curve.path_])
    n_costs = at_costs.sum()
    assert (curve.points_.false_positives[at_costs] == 0).tolist() == [False] * (n_costs - 1) + [True]
    assert (curve.points_.false_negatives[at_costs] == 0).tolist() == [True] + [False] * (n_costs - 1)
    assert curve.path_[curve.base_point_].cost_ratio == pytest.approx(y.sum() / (y == 0).sum())
    assert np.array_equal(curve.held_out_points_.cost_ratio, [point.cost_ratio for point in curve.path_])
    assert [point.tree.fp_cost_ for point in curve.path_] == [point.cost_ratio for point in curve.path_]


def test_points_are_dominated_on_the_training_data_or_on_held_out_data(long_path):
    curve, _ = long_path
    seen, held_out = curve.points_.is_dominated, curve.held_out_points_.is_dominated
    assert not np.array_equal(seen, held_out)  # else this says nothing
    assert [point.is_dominated for point in curve.path_] == seen.tolist()
    assert [point.held_out_is_dominated for point in curve.path_] == held_out.tolist()


def test_mistakes_are_those_of_the_trees(curve, table):
    X, y = table
    points = curve.points(X, y)
    for i, point in enumerate(curve.path_):
        called = point.tree.predict(X)
        assert (called[y == 0] == 1).sum() == point.false_positives == points.false_positives[i]
        assert (called[y == 1] == 0).sum() == point.false_negatives == points.false_negatives[i]
    assert np.array_equal(curve.points_.is_dominated, [point.is_dominated for point in curve.path_])


def test_no_tree_of_a_path_holds_those_before_it(curve):
    assert all(point.tree.init == "cart" for point in curve.path_)


def test_cases_are_ordered_by_the_costs_at_which_they_are_positive(curve, table):
    X, _ = table
    trees = [point.tree for point in curve.path_ if not point.is_between]
    assert [tree.tree_ for tree in trees] == curve.trees_
    votes = np.array([tree.predict(X) for tree in trees]).sum(axis=0)
    order = np.argsort(-curve.decision_function(X), kind="stable")
    assert (np.diff(votes[order]) <= 0).all()
    inside = np.mean([tree.decision_function(X) for tree in trees], axis=0)
    for count in np.unique(votes):
        group = order[votes[order] == count]
        assert (np.diff(inside[group]) <= 1e-9).all()


def test_a_full_score_inside_does_not_reach_the_next_cost():
    votes = np.array([[True, False, True], [False, False, True]])
    score = order_of(votes, np.array([1.0, 1.0, 1e-300]))
    assert score[1] < score[0] < score[2] <= 1


# --- what is held out ---------------------------------------------------------------------------------------------


def test_held_out_mistakes_are_made_on_rows_that_trees_have_not_seen(table):
    """A column that names each row helps on training data only."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": rng.normal(size=300)})
    y = (rng.random(300) < 0.2).astype(int)
    curve = CostOptimalCurve(TAOTree(max_depth=4, alpha=0.0, min_samples_leaf=1), cv=3, **ONE).fit(X, y)
    assert curve.held_out_by_ == "cross-validation"
    assert curve.points_.hull_area > 0.6
    assert curve.held_out_points_.hull_area < 0.6
    assert curve.held_out_points_.positives + curve.held_out_points_.negatives == 300


def test_validation_data_take_the_place_of_folds(table):
    X, y = table
    later, outcome = make_cases(300, seed=5)
    curve = clone(SMALL).fit(X, y, X_val=later, y_val=outcome)
    assert curve.held_out_by_ == "validation data"
    ours, theirs = curve.held_out_points_, curve.points(later, outcome)
    assert np.array_equal(ours.false_positives, theirs.false_positives)
    assert np.array_equal(ours.false_negatives, theirs.false_negatives)
    assert "_validation" not in vars(curve)
    with pytest.raises(ValueError, match=r"fit got X_val but no y_val\. Hint"):
        clone(SMALL).fit(X, y, X_val=later)


def test_without_folds_the_training_data_are_all_there_is(table):
    curve = clone(SMALL).set_params(cv=0).fit(*table)
    assert (curve.held_out_by_, curve.held_out_points_) == ("training data", None)
    assert curve.path_[0].held_out_false_positives is curve.path_[0].held_out_is_dominated is None
    assert not any(name.startswith("held_out") for name in curve.frame().columns)
    assert curve.select(max_fpr=0.1).judged_by == "training data"


def test_depth_and_alpha_are_those_that_cost_least_out_of_fold(table, tmp_path):
    curve = CostOptimalCurve(depths=[2, 1], alphas=[1, 30], cv=3, cost_factor=4.0).fit(*table)
    grid = pd.DataFrame(curve.grid_)
    assert grid[["max_depth", "alpha"]].to_numpy().tolist() == [[1, 30], [1, 1], [2, 30], [2, 1]]
    best = grid.loc[grid["cost"].idxmin()]
    assert (curve.max_depth_, curve.alpha_) == (best["max_depth"], best["alpha"])
    assert all(p.tree.max_depth == curve.max_depth_ and p.tree.alpha == curve.alpha_ for p in curve.path_)
    curve.save(tmp_path / "curve.toprank")
    assert repr(load(tmp_path / "curve.toprank").grid_["max_depth"]) == repr(curve.grid_["max_depth"])


def test_depth_and_alpha_are_chosen_by_5_folds_without_figures_of_new_cases(table):
    """cv=0 was refused, and None, which is 5 folds elsewhere, turned folds off."""
    free = CostOptimalCurve(depths=[2, 1], alphas=[1, 30], cv=0, cost_factor=4.0)
    curve, with_figures = free.fit(*table), clone(free).set_params(cv=None).fit(*table)
    assert (curve.held_out_by_, with_figures.held_out_by_) == ("training data", "cross-validation")
    assert curve.grid_ == with_figures.grid_
    assert [point.tree.tree_ for point in curve.path_] == [point.tree.tree_ for point in with_figures.path_]


def test_depth_and_alpha_cannot_be_chosen_with_too_few_cases(table):
    X, y = table
    with pytest.raises(ValueError, match=r"needs folds to choose among 4 pairs .* too few cases of a class .* Hint"):
        CostOptimalCurve(depths=[2, 1], alphas=[1, 30]).fit(X, np.arange(len(y)) == 7)


def test_the_base_is_left_as_it_was(table):
    base = TAOTree(max_depth=2, cv=0)
    CostOptimalCurve(base, cv=0, cost_factor=4.0, random_state=3, **ONE).fit(*table)
    assert base.get_params() == TAOTree(max_depth=2, cv=0).get_params()
    assert not hasattr(base, "tree_")


def test_an_axis_path_has_plain_thresholds(table):
    X, y = table
    curve = CostOptimalCurve(TAOTree(split="axis", max_depth=3), cv=0, **ONE).fit(X[["size", "age"]], y)
    assert all(" x " not in rule for i in range(len(curve.path_)) for rule in curve.rules(i)["rule"])
    oblique = CostOptimalCurve(TAOTree(max_depth=3), cv=0, **ONE).fit(X[["size", "age"]], y)
    assert any(" x " in rule for i in range(len(oblique.path_)) for rule in oblique.rules(i)["rule"])


def test_a_tree_of_one_leaf_calls_held_out_cases_what_it_calls_all(table):
    curve = clone(SMALL).set_params(base=TAOTree(max_depth=2, alpha=10.0, cv=0)).fit(*table)
    constant = [i for i, point in enumerate(curve.path_) if point.tree.n_leaves_ == 1]
    assert constant
    for i in constant:
        assert curve.held_out_points_.alerts[i] == curve.points_.alerts[i]


def test_folds_learn_from_the_rows_that_the_splitter_says(table):
    X, y = table
    seen = []

    class Watched(TAOTree):
        def _fit_model(self, data, threads):
            seen.append(len(data.X))
            super()._fit_model(data, threads)

    CostOptimalCurve(Watched(max_depth=1), cv=TimeSeriesSplit(3), cost_factor=8.0, **ONE).fit(X, y)
    assert set(seen) == {500, 125, 250, 375}


def test_rows_without_weight_are_no_rows(table):
    X, y = table
    weight = np.where(np.arange(500) % 7 == 0, 0.0, 1.0)
    free = clone(SMALL).set_params(cv=0)
    one = clone(free).fit(X, y, weight)
    other = clone(free).fit(X[weight > 0].reset_index(drop=True), y[weight > 0])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_very_light_case_does_not_make_the_path_endless(table):
    X, y = table
    X = pd.concat([X[["size"]], pd.DataFrame({"size": [99.0]})], ignore_index=True)
    weight = np.append(np.full(500, 0.7), 1e-11)
    curve = CostOptimalCurve(TAOTree(max_depth=1, alpha=0.0), cv=0, **ONE).fit(X, np.append(y, 0), weight)
    assert len(curve.path_) < 60


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"depths": []}, r"depths of a CostOptimalCurve is empty.*Hint"),
        ({"depths": [2.5]}, r"depths of a CostOptimalCurve must be ints from 1 to 20, got 2\.5\. Hint"),
        ({"depths": [2, 30]}, r"depths of a CostOptimalCurve must be ints from 1 to 20, got 30\. Hint"),
        ({"alphas": [-1]}, r"alphas of a CostOptimalCurve must be numbers of 0 or more, got -1\. Hint"),
        ({"base": TAOTree(pos_label=0, cv=0)}, r"The base of a CostOptimalCurve sets pos_label.*Hint"),
    ],
)
def test_what_cannot_be_tried_is_refused(table, how, message):
    with pytest.raises(ValueError, match=message):
        clone(SMALL).set_params(**how).fit(*table)


@pytest.mark.parametrize(("y_val", "message"), [([2, 1] * 10, "found the label 2 in y"), ([0] * 20, "both classes")])
def test_bad_validation_data_are_found_first_and_leave_nothing_behind(table, y_val, message):
    X, y = table
    curve = clone(SMALL)
    with pytest.raises(ValueError, match=message):
        curve.fit(X, y, X_val=X.head(20), y_val=np.array(y_val))
    with pytest.raises(NotFittedError):
        curve.predict(X)


def test_points_know_the_labels_of_training(curve, table):
    X, y = table
    with pytest.raises(ValueError, match=r"points found the label 5 in y"):
        curve.points(X, np.where(y, 5, 0))


# --- choosing -----------------------------------------------------------------------------------------------------


def brute(curve, is_fine, worth):
    """Position of the best point that is fine; of equals the smallest tree, then fewest false positives."""
    points = curve.held_out_points_
    rows = [(-worth(points, i), curve.path_[i].tree.n_leaves_, points.false_positives[i], i)
            for i in range(len(points)) if is_fine(points, i)]  # fmt: skip
    return min(rows)[-1]


def fpr(points, i):
    return points.false_positives[i] / points.negatives


def recall(points, i):
    return 1 - points.false_negatives[i] / points.positives


def alerts(points, i):
    return points.false_positives[i] + points.positives - points.false_negatives[i]


@pytest.mark.parametrize(
    ("target", "is_fine", "worth"),
    [
        ({"max_fpr": 0.1}, lambda p, i: fpr(p, i) <= 0.1, recall),
        ({"min_recall": 0.5}, lambda p, i: recall(p, i) >= 0.5, lambda p, i: -fpr(p, i)),
        ({"cost_ratio": 0.3}, lambda p, i: True, lambda p, i: -(p.false_negatives[i] + 0.3 * p.false_positives[i])),
    ],
)
def test_the_choice_is_the_best_of_those_that_fulfil_the_target(curve, target, is_fine, worth):
    selection = curve.select(**target)
    own = curve.points_
    assert selection.position == brute(
        curve, lambda p, i: is_fine(p, i) and (own.alerts[i] > 0 or "cost_ratio" in target), worth
    )
    assert curve.selected_ is None
    assert selection.point is curve.path_[selection.position]
    assert selection.cut is None
    points, i = curve.held_out_points_, selection.position
    assert selection.recall.value == pytest.approx(recall(points, i))
    assert selection.false_positive_rate.value == pytest.approx(fpr(points, i))
    assert selection.alerts.value == pytest.approx(alerts(points, i))
    check_sound(selection, points)


def check_sound(selection, points):
    """All figures are of one population: alerts are hits and false alarms of the same cases."""
    hits, alarms = selection.recall.value * points.positives, selection.false_positive_rate.value * points.negatives
    assert selection.alerts.value == pytest.approx(hits + alarms)
    assert selection.precision.value == pytest.approx(hits / (hits + alarms))
    for figure in ("false_positive_rate", "recall", "precision", "alerts", "cost"):
        interval = getattr(selection, figure)
        assert interval.low <= interval.value <= interval.high


# --- budgets ------------------------------------------------------------------------------------------------------


def first_hits(called, score, y, k):
    """Positives among the first k alerts; no scores tie."""
    rows = np.flatnonzero(called)
    rows = rows[np.argsort(-score[rows], kind="stable")][:k]
    return int(y[rows].sum())


@pytest.mark.parametrize("k", [5, 25, 60, 100])
def test_a_budget_takes_a_whole_tree_or_the_first_alerts_of_a_larger_one(table, out_of_fold, k):
    """Against all trees, one at a time, out of fold."""
    X, y = table
    model, called, score = out_of_fold
    hits = [first_hits(row, score, y, k) for row in called]
    is_whole = (model.points_.alerts <= k) & (model.points_.alerts > 0)
    best_whole = max((hits[i] for i in np.flatnonzero(is_whole)), default=-1)
    best_cut = max((hits[i] for i in np.flatnonzero(model.points_.alerts > k)), default=-1)
    selection = model.select(k=k)
    assert (selection.cut is not None) == (best_cut > best_whole)
    found = selection.recall.value * y.sum()
    if selection.cut is None:
        assert found == pytest.approx(best_whole)
        assert model.points_.alerts[selection.position] <= k
    else:
        assert found >= 0.98 * best_cut
        assert found > best_whole
        assert selection.cut.hits == pytest.approx(found)
        assert selection.cut.whole_hits == pytest.approx(best_whole) or best_whole < 0
    assert selection.alerts.value <= k
    check_sound(selection, model.held_out_points_)
    assert 0 < (model.with_choice(selection).predict(X) == 1).sum() <= k
    assert 0 < (model.at(k=k).predict(X) == 1).sum() <= k
    assert str(model.select(k=k / len(y))) == str(selection)


@pytest.fixture(scope="module")
def out_of_fold(table):
    """A curve; what curves of the other folds call each row; its score: by the folds of SMALL, one after the other."""
    kept = {}
    fit, model, (X, y) = CurveFolds.votes, clone(SMALL), table

    def votes(self, *args, **kwargs):
        found = fit(self, *args, **kwargs)
        kept["rows"], kept["found"] = self.rows, found
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CurveFolds, "votes", votes)
        model.fit(X, y)
    votes, mean, between = kept["found"]
    is_between = np.array([point.is_between for point in model.path_])
    called, score = np.empty((len(is_between), len(y)), bool), np.empty(len(y))
    whole = np.empty_like(called)
    whole[~is_between], whole[is_between] = votes, between
    called[:, kept["rows"]], score[kept["rows"]] = whole, order_of(votes, mean)
    for i, point in enumerate(model.path_):
        if point.tree.n_leaves_ == 1:
            called[i] = point.tree._label[0] == 1
    return model, called, score


def test_predict_keeps_to_the_first_alerts(curve, table):
    X, _ = table
    selection = next(s for k in range(2, 60) if (s := curve.select(k=k)).cut is not None)
    is_called = selection.tree.predict(X) == 1
    is_first = curve.decision_function(X) >= selection.cut.threshold
    assert np.array_equal(curve.with_choice(selection).predict(X) == 1, is_called & is_first)
    assert is_called.sum() > (is_called & is_first).sum()
    assert "as ranked by the curve" in str(selection)


def test_a_model_file_without_the_top_of_the_ranking_takes_whole_trees(curve):
    bare = copy(curve)
    bare._judged_top = bare._seen_top = None
    for k in (25, 60):
        selection = bare.select(k=k)
        assert selection.cut is None
        assert bare.points_.alerts[selection.position] <= k


def test_scores_out_of_fold_are_those_of_curves_that_had_not_seen_the_rows(table, out_of_fold):
    X, y = table
    model, _, score = out_of_fold
    assert np.array_equal(model.oof_decision_function_, score)
    assert np.bincount(model.oof_fold_).sum() == len(y)
    assert len(np.unique(model.oof_fold_)) == 3
    assert average_precision(y, score) > 1.5 * y.mean()
    assert not np.array_equal(score, model.decision_function(X))
    weight = np.ones(len(y))
    weight[:10] = 0
    light = clone(SMALL).fit(X, y, weight)
    assert np.isnan(light.oof_decision_function_[:10]).all()
    assert (light.oof_fold_[:10] == -1).all()
    assert np.isfinite(light.oof_decision_function_[10:]).all()
    without = clone(SMALL).set_params(cv=0).fit(X, y)
    assert (without.oof_decision_function_, without.oof_fold_) == (None, None)


def test_size_goes_with_any_target(curve):
    sizes = [point.tree.n_leaves_ for point in curve.path_]
    assert len(set(sizes)) > 1
    least = min(size for size, alerts in zip(sizes, curve.points_.alerts, strict=True) if alerts)
    for target in ({}, {"max_fpr": 0.5}, {"cost_ratio": 0.1}):
        assert curve.select(max_leaves=least, **target).tree.n_leaves_ == least
    assert str(curve.select(max_leaves=least)).startswith(f"at most {least} lea")


def test_predict_rules_and_text_follow_the_choice(curve, table):
    X, _ = table
    selection = curve.select(cost_ratio=0.5)
    assert selection.position != curve.base_point_
    chosen = curve.with_choice(selection)
    assert np.array_equal(chosen.predict(X), selection.tree.predict(X))
    assert chosen.rules().equals(selection.tree.rules())
    at_cost = f"tree at a cost ratio of {selection.point.cost_ratio:.3g}"
    assert str(selection.point.moved or at_cost) in chosen.to_text()
    assert chosen.n_leaves_ == selection.tree.n_leaves_
    assert "the selected one" in chosen.summary()
    assert chosen.with_choice(None).selected_ is None


def test_no_choice_changes_what_the_curve_itself_predicts(curve, table):
    X, y = table
    base = curve.path_[curve.base_point_].tree
    assert np.array_equal(curve.predict(X), base.predict(X))
    before, params = curve.predict(X), [point.tree.get_params() for point in curve.path_]
    for target in ({"cost_ratio": 0.5}, {"k": 7}, {"max_fpr": 0.05}):
        curve.at(**target)
        curve.with_choice(curve.select(**target))
        assert np.array_equal(curve.predict(X), before)
    assert curve.selected_ is None
    assert params == [point.tree.get_params() for point in curve.path_]
    budgeted = clone(curve).set_params(budget=9).fit(X, y)
    assert np.array_equal(budgeted.predict(X) == 1, budgeted.decision_function(X) >= budgeted.cutoff_.threshold)
    chosen = budgeted.with_choice(budgeted.select(cost_ratio=0.5))
    assert np.array_equal(chosen.predict(X), chosen.selected_.tree.predict(X))


@pytest.mark.parametrize("budget", [9, 0.1])
@pytest.mark.parametrize("cv", [0, 3])
def test_another_budget_is_that_of_a_fit_with_it(curve, table, budget, cv, tmp_path):
    X, y = table
    model = clone(curve).set_params(budget=20, cv=cv).fit(X, y)
    other, expected = model.with_budget(budget), clone(model).set_params(budget=budget).fit(X, y)
    assert (model.budget, model.budget_, model.cutoff_.k) == (20, 20, 20)
    assert len(other.top_k(X)) == len(expected.top_k(X))
    assert other.cutoff_.to_dict() == pytest.approx(expected.cutoff_.to_dict(), nan_ok=True)
    assert np.array_equal(other.predict(X), expected.predict(X))
    other.save(tmp_path / "m")
    assert load(tmp_path / "m").cutoff_ == other.cutoff_


def test_a_choice_of_another_curve_is_refused(curve, table):
    other = clone(SMALL).fit(*table)
    for choice in (other.select(cost_ratio=0.5), 3):
        with pytest.raises(InputError, match="with_choice"):
            curve.with_choice(choice)


@pytest.mark.parametrize(
    "target", [{"max_fpr": 0.1}, {"cost_ratio": 0.3, "max_leaves": 3}, {"min_recall": 0.6}], ids=str
)
def test_the_ranker_of_a_point_is_its_tree(curve, table, target, tmp_path):
    X, y = table
    selection, tree = curve.select(**target), curve.at(**target)
    assert isinstance(tree, TAOTree)
    assert tree is not selection.tree
    assert np.array_equal(tree.predict(X), selection.tree.predict(X))
    assert tree.rules().equals(curve.rules(selection))
    assert len(tree.top_k(X, 5)) == 5
    assert tree.score(X, y) == selection.tree.score(X, y)
    curve.save(tmp_path / "curve.toprank")
    tree.save(tmp_path / "tree.toprank")
    for same in (load(tmp_path / "tree.toprank"), load(tmp_path / "curve.toprank").at(**target)):
        assert np.array_equal(same.predict(X), tree.predict(X))
        assert np.array_equal(same.decision_function(X), tree.decision_function(X))
        assert same.top_k(X, 9).equals(tree.top_k(X, 9))


@pytest.mark.parametrize("as_share", [False, True])
def test_the_ranker_of_a_budget_keeps_to_the_budget(curve, table, as_share, tmp_path):
    X, _ = table
    n_cut = 0
    for k in range(3, 60, 4):
        asked = k / len(X) if as_share else np.int64(k)
        tree, cut = curve.at(k=asked), curve.select(k=asked).cut
        assert 0 < (tree.predict(X) == 1).sum() <= k
        assert (tree.budget is None) == (cut is None)
        if cut is not None:
            n_cut += 1
            assert np.array_equal(tree.predict(X) == 1, tree.decision_function(X) >= tree.cutoff_.threshold)
            assert tree.cutoff_.n_above == (tree.predict(X) == 1).sum()
            assert 0 < tree.cutoff_.training_rate <= 1
            tree.save(tmp_path / "tree.toprank")
            assert np.array_equal(load(tmp_path / "tree.toprank").predict(X), tree.predict(X))
    assert n_cut > 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({}, "needs one of max_fpr, k, cost_ratio, min_recall; max_leaves can be combined .* None was given"),
        ({"max_fpr": 0.1, "k": 5}, "Got max_fpr, k"),
        ({"max_fpr": 1.5}, r"needs a number from 0 to 1 as max_fpr, got 1\.5"),
        ({"min_recall": True}, "needs a number from 0 to 1 as min_recall, got True"),
        ({"cost_ratio": -1}, "needs a number of 0 or more as cost_ratio, got -1"),
        ({"max_leaves": 0}, r"needs an int of 1 or more as max_leaves, got 0\. Hint"),
        ({"max_leaves": 2.5}, r"needs an int of 1 or more as max_leaves, got 2\.5\. Hint"),
        (
            {"k": 0},
            r"select must be an int \(number of alerts\) or a share between 0 and 1, got 0",
        ),
    ],
)
def test_targets_that_make_no_sense_are_refused(curve, target, message):
    with pytest.raises(ValueError, match=message):
        curve.select(**target)
    assert curve.selected_ is None


def test_docs_say_what_weights_are_to_intervals_and_where_sums_win():
    page = (Path(__file__).parents[3] / "docs/choosing-errors.md").read_text(encoding="utf-8")
    assert "Intervals treat weights as counts" in Selection.__doc__
    assert "**Weights are counts of cases** to the intervals" in page
    assert "(results/cost_curve/quality.md)" in page.partition("## Oblique or axis-aligned?")[2].partition("\n## ")[0]


def test_a_target_that_no_tree_fulfils_says_how_near_the_curve_comes(table):
    X = (table[0][["size"]] > 1).astype(float)  # two values: the alerts tie
    easy = CostOptimalCurve(TAOTree(max_depth=1), cv=0, **ONE).fit(X, X["size"] > 0)
    n = int(X["size"].sum())
    fewest = rf"at most 1 alert among 500 cases\): the fewest alerts, where there are any, are {n}\. Hint"
    with pytest.raises(ValueError, match=fewest):
        easy.select(k=1)
    with pytest.raises(ValueError, match=r"at most 1 leaf\): the smallest tree of the curve has 2\. Hint"):
        easy.select(max_leaves=1)


# --- changes ------------------------------------------------------------------------------------------------------


def test_a_point_does_not_differ_from_itself(curve):
    changes = curve.diff(curve.base_point_, curve.base_point_)
    assert set(changes["change"]) == {"kept"}
    assert (changes["rule"] == changes["rule_before"]).all()


def test_changes_cover_the_rules_of_both_points(curve):
    last = len(curve.path_) - 1
    changes = curve.diff(0, last)
    before, after = (point.tree for point in (curve.path_[0], curve.path_[last]))
    gone = changes[changes["change"] != "added"]
    assert gone["n_before"].sum() == pytest.approx(500 - before.tree_.positive[0] - before.tree_.negative[0] +
                                                  (before.n_fp_ + before.tree_.positive[0] - before.n_fn_))  # fmt: skip
    kept = changes[changes["change"] != "dropped"]
    assert kept["n_after"].sum() == pytest.approx(after.n_fp_ + after.tree_.positive[0] - after.n_fn_)
    assert curve.diff(-1, curve.select(cost_ratio=0.1))["change"].isin(["dropped", "added", "changed", "kept"]).all()


def test_a_rule_with_other_numbers_changes(table):
    X, y = table
    one, other = (TAOTree(split="axis", max_depth=1, fp_cost=cost, cv=0).fit(X[["size"]], y) for cost in (0.25, 0.6))
    changes = changes_table(leaf_rule_changes(one, other))
    assert changes["change"] == ["changed"]
    assert changes["rule"] != changes["rule_before"]
    assert changes["n_after"][0] < changes["n_before"][0]


def test_points_are_called_by_their_number(curve, table):
    assert curve.rules(0).equals(curve.path_[0].tree.rules())
    last = len(curve.path_) - 1
    for wrong in (last + 1, "first", 1.0, True, clone(SMALL).fit(*table).select(cost_ratio=0.5)):
        with pytest.raises(ValueError, match=rf"has points 0 to {last}, got .*Hint"):
            curve.rules(wrong)


def test_the_table_of_the_path(curve):
    frame = curve.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["point"]) == list(range(len(curve.path_)))
    assert np.array_equal(frame["held_out_recall"], curve.held_out_points_.true_positive_rate)
    assert np.array_equal(frame["is_dominated"], curve.points_.is_dominated)
    assert np.array_equal(frame["held_out_is_dominated"], curve.held_out_points_.is_dominated)


# --- files and threads --------------------------------------------------------------------------------------------


def test_points_and_choice_come_back_from_a_file(curve, table, tmp_path):
    X, _ = table
    selection = curve.select(max_fpr=0.1)
    curve = curve.with_choice(selection)
    curve.save(tmp_path / "curve.toprank")
    back = load(tmp_path / "curve.toprank")
    assert str(back.selected_) == str(selection)
    assert np.array_equal(back.predict(X), curve.predict(X))
    assert back.frame().equals(curve.frame())
    assert back.diff(0, 3).equals(curve.diff(0, 3))
    assert isinstance(back.held_out_points_, OperatingPoints)
    for k in (3, 10, 40):
        one, other = (each.with_choice(each.select(k=k)) for each in (back, curve))
        assert str(one.selected_) == str(other.selected_)
        assert np.array_equal(one.predict(X), other.predict(X))
    assert (back.oof_decision_function_, back.oof_fold_) == (None, None)
    assert all(
        np.array_equal(a.tree.predict(X), b.tree.predict(X)) for a, b in zip(back.path_, curve.path_, strict=True)
    )


def test_threads_do_not_change_the_curve(table):
    X, y = table
    grid = CostOptimalCurve(depths=[1, 2], alphas=[1], cv=3, cost_factor=3.0)
    one, two = (clone(grid).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.grid_ == two.grid_
    assert one.trees_ == two.trees_
    assert np.array_equal(one.held_out_points_.false_positives, two.held_out_points_.false_positives)
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
