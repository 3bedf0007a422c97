"""All depths from one fit: bit for bit what separate fits give."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ranker_cases import cases, fewer, make_cases
from toprank import MetaAP, RankingTree, load
from toprank._core.dtypes import AP
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.growth import GrowthSettings, grow_meta
from toprank.rankers.meta.ordering import ORDER_STRENGTH, finish_meta
from toprank.tree.columns import Column
from toprank.tree.scoring import TIES

PLAIN: dict[str, Any] = {"criterion": "ap", "ccp_alpha": 0.0, "cv": 0}
SMOOTHINGS = ["hierarchical", "m-estimate", None]


def check_stages(model, X, y, weight, X_new):
    """Assert that every stage of a model is what a fit with that depth gives."""
    model.fit(X, y, sample_weight=weight)
    stages = list(model.staged_decision_function(X_new))
    assert np.array_equal(stages[-1], model.decision_function(X_new))
    for depth, score in enumerate(stages, start=1):
        again = clone(model).set_params(max_depth=depth).fit(X, y, sample_weight=weight)
        assert np.array_equal(score, again.decision_function(X_new)), depth
    return stages


@pytest.mark.parametrize("leaf_score", ["constant", "margin", "linear"])
@given(case=cases(), data=st.data())
@fewer(5)
def test_every_meta_depth_is_what_a_fit_with_that_depth_gives(leaf_score, case, data):
    model = MetaAP(
        leaf_score=leaf_score,
        max_depth=data.draw(st.sampled_from([4, None])),
        leaf_depth=data.draw(st.integers(1, 3)),
        leaf_order=data.draw(st.sampled_from(["rate", "meta"])),
        smoothing=data.draw(st.sampled_from(SMOOTHINGS)),
        splitter=data.draw(st.sampled_from(["hist", "exact"])),
        max_leaf_nodes=data.draw(st.sampled_from([None, 3])),
        min_samples_leaf=1,
        ccp_alpha=0.0,
        cv=0,
    )
    X = case.pandas()
    check_stages(model, X, case.y, case.weight, X)


def test_a_tree_of_one_leaf_without_a_majority_comes_back_from_a_file(tmp_path):
    X, y = np.ones((4, 1)), [1, 0, 0, 0]
    tree = RankingTree(leaf_score="margin", keep_columns="all", cv=0).fit(X, y)
    assert tree.n_leaves_ == 1
    tree.save(tmp_path / "tree.toprank")
    assert np.array_equal(load(tmp_path / "tree.toprank").decision_function(X), tree.decision_function(X))


@pytest.mark.parametrize("leaf_score", ["constant", "margin", "votes"])
@given(case=cases(), data=st.data())
@fewer(5)
def test_every_depth_of_a_tree_is_what_a_fit_with_that_depth_gives(leaf_score, case, data):
    model = RankingTree(
        leaf_score=leaf_score,
        criterion=data.draw(st.sampled_from(["gini", "entropy", "ap", "auc"])),
        max_depth=data.draw(st.sampled_from([5, None])),
        smoothing=data.draw(st.sampled_from(SMOOTHINGS)),
        splitter=data.draw(st.sampled_from(["hist", "exact"])),
        min_samples_leaf=1,
        cv=0,
    )
    X = case.pandas()
    check_stages(model, X, case.y, case.weight, X)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        MetaAP(max_depth=6, leaf_depth=2, min_samples_leaf=5, **PLAIN),
        MetaAP(max_depth=6, leaf_depth=2, min_samples_leaf=5, leaf_score="constant", leaf_order="meta", **PLAIN),
        MetaAP(max_depth=6, leaf_depth=2, min_samples_leaf=5, leaf_score="linear", smoothing=None, **PLAIN),
        RankingTree(max_depth=8, cv=0),
        RankingTree(max_depth=8, leaf_score="margin", criterion="ap", cv=0),
        RankingTree(max_depth=8, leaf_score="votes", smoothing="hierarchical", cv=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.leaf_score}",
)
def test_stages_of_new_rows(model, weighed):
    X, y = make_cases(700)
    weight = np.random.default_rng(1).random(500) * 3 if weighed else None
    stages = check_stages(clone(model), X[:500], y[:500], weight, X[500:])
    assert len(stages) == model.max_depth
    assert len({score.tobytes() for score in stages}) > 3, "stages differ"


@pytest.mark.parametrize("leaf_order", ["rate", "meta"])
def test_leaves_stand_from_left_to_right_or_by_rates_shrunk_towards_those_above(leaf_order):
    X, y = make_cases()
    matrix = X[["size", "age"]].to_numpy()
    data = BinnedCases(matrix, y == 1, None, [Column("size"), Column("age")])
    how = GrowthSettings.from_estimator(MetaAP(min_samples_leaf=5), AP, 2, max_depth=5, leaf_order=leaf_order)
    meta, unit = grow_meta(how, data, None, Threads())
    tree, entry = finish_meta(how, meta, unit, data.is_categorical, TIES)
    own, rate = meta.positive / meta.total, {0: meta.positive[0] / meta.total[0]}
    for node in np.flatnonzero(~meta.is_leaf).tolist():
        for child in (int(meta.left[node]), int(meta.right[node])):
            rate[child] = rate[node] + (own[child] - own[node]) / (1 + ORDER_STRENGTH / meta.total[node])
    leaves = meta.leaves()
    by_rate = sorted(leaves, key=lambda leaf: -rate[leaf])
    assert by_rate != leaves
    expected = leaves if leaf_order == "meta" else by_rate
    assert tree.leaf[entry[expected]].tolist() == list(range(len(leaves)))


def test_without_a_depth_of_their_own_inner_trees_keep_the_fitted_one():
    X, y = make_cases()
    model = MetaAP(max_depth=3, leaf_depth=None, **PLAIN).fit(X, y)
    for depth, score in enumerate(model.staged_decision_function(X), start=1):
        again = MetaAP(max_depth=depth, leaf_depth=3, **PLAIN).fit(X, y)
        assert np.array_equal(score, again.decision_function(X))


def test_where_nothing_grows_all_stages_are_one():
    X, y = np.ones((30, 2)), np.arange(30) % 3 == 0
    for ranker in (MetaAP(**PLAIN), RankingTree(cv=0)):
        shallow, deep = (clone(ranker).set_params(max_depth=depth).fit(X, y) for depth in (3, None))
        assert [len(list(model.staged_decision_function(X))) for model in (shallow, deep)] == [3, 1]
        assert len(np.unique(list(shallow.staged_decision_function(X)))) == 1


@pytest.mark.parametrize(
    "ranker", [MetaAP(max_depth=3, **PLAIN), RankingTree(cv=0), RankingTree(leaf_score="votes", cv=0)]
)
def test_stages_survive_pickling_and_later_parameters_and_two_threads(ranker):
    X, y = make_cases()
    model = clone(ranker).fit(X, y)
    expected = list(model.staged_decision_function(X))
    back = pickle.loads(pickle.dumps(model)).set_params(max_depth=1, smoothing=None, n_jobs=2)
    for one, other in zip(expected, back.staged_decision_function(X), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("alpha", [0.001, "cv"])
def test_a_pruned_model_has_no_stages(alpha):
    X, y = make_cases()
    model = MetaAP(ccp_alpha=alpha, cv=2).fit(X, y)
    for same in (model, model.set_params(ccp_alpha=0.0)):
        with pytest.raises(ValueError, match=r"not pruned, but this one was, at ccp_alpha .* Hint: fit with"):
            same.staged_decision_function(X)


def test_a_part_of_a_model_has_no_stages():
    X, y = make_cases()
    part = MetaAP(max_depth=3, **PLAIN).fit(X, y).subtree([1, 2])
    with pytest.raises(ValueError, match=r"whole meta-tree, but this one is a result of subtree\. Hint: call it on"):
        part.staged_decision_function(X)


def test_a_model_whose_folds_choose_not_to_prune_has_stages():
    X, y = make_cases()
    model = MetaAP(max_depth=1, leaf_depth=1, ccp_alpha="cv", cv=2, random_state=2).fit(X, y)
    assert model.ccp_alpha_ == 0
    plain = clone(model).set_params(ccp_alpha=0.0).fit(X, y)
    for one, other in zip(model.staged_decision_function(X), plain.staged_decision_function(X), strict=True):
        assert np.array_equal(one, other)


def test_a_tree_grown_best_first_has_no_stages():
    X, y = make_cases()
    model = RankingTree(max_leaf_nodes=8, cv=0).fit(X, y)
    for same in (model, model.set_params(max_leaf_nodes=None)):
        with pytest.raises(ValueError, match=r"grown best first, with max_leaf_nodes: .* Hint: limit max_depth"):
            same.staged_decision_function(X)


@pytest.mark.parametrize("ranker", [MetaAP(**PLAIN), RankingTree(cv=0)])
def test_a_model_from_a_file_has_its_stages(ranker, tmp_path):
    X, y = make_cases()
    model = clone(ranker).fit(X, y)
    model.save(tmp_path / "model.toprank")
    stages = list(load(tmp_path / "model.toprank").staged_decision_function(X))
    assert len(stages) > 1
    for stage, loaded in zip(model.staged_decision_function(X), stages, strict=True):
        assert np.array_equal(stage, loaded)
    with pytest.raises(NotFittedError):
        clone(ranker).staged_decision_function(X)


def test_stages_complain_of_a_missing_column_at_once():
    X, y = make_cases()
    model = MetaAP(**PLAIN).fit(X, y)
    with pytest.raises(ValueError, match="'age' was used to train this model but is missing"):
        model.staged_decision_function(X.drop(columns="age"))
