"""Fits on one `SharedTable`: bit for bit what separate fits give."""

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from ranker_cases import CLASSES, RANKERS, cases, fewer, make_cases, variant
from tables import check_same_tree
from toprank import MetaAP, RankingTree
from toprank.data.binned_cases import BinnedCases
from toprank.data.shared_table import TABLES_KEPT, SharedTable
from toprank.rankers import binned, growth, leaf_scores, reading
from toprank.rankers.cost.tao_classifier import TAOClassifier
from toprank.rankers.reading import as_read_by

PLAIN: dict[str, Any] = {"criterion": "ap", "ccp_alpha": 0.0, "cv": 0}


def count_calls(monkeypatch, module, name):
    """Let calls of a function through, and count them."""
    calls, original = [], getattr(module, name)

    def counted(*arguments, **named):
        calls.append(arguments)
        return original(*arguments, **named)

    monkeypatch.setattr(module, name, counted)
    return calls


def check_same_model(one, other, X):
    """Assert that two models are equal in all that a fit leaves behind."""
    assert {*vars(one)} == {*vars(other)}
    assert one.columns_ == other.columns_
    assert one.cutoff_ == other.cutoff_
    assert one.data_hash_ == other.data_hash_
    assert one.summary() == other.summary()
    assert one.classes_.tolist() == other.classes_.tolist()
    assert (
        getattr(one, "feature_names_in_", np.empty(0)).tolist()
        == getattr(other, "feature_names_in_", np.empty(0)).tolist()
    )
    for ours, theirs in zip(*([m.tree_] if hasattr(m, "tree_") else m.trees_ for m in (one, other)), strict=True):
        check_same_tree(ours, theirs)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(("splitter", "weighed"), [("hist", False), ("exact", True)])
def test_models_that_share_data_are_those_that_do_not(weighed, splitter, monkeypatch):
    X, y = make_cases(300)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float) if weighed else None
    models = [variant(kind, splitter=splitter, budget=30) for kind in (CLASSES if weighed else RANKERS)]
    alone = [clone(model).fit(X, y, sample_weight=weight) for model in models]
    built = count_calls(monkeypatch, binned, "BinnedCases")
    read = count_calls(monkeypatch, reading, "read_table")
    table = SharedTable(X)
    together = [model.fit(table, y, sample_weight=weight) for model in models]
    assert len(built) == 1
    assert len(read) == 1
    scores = [model.decision_function(table) for model in together]
    assert len(read) == 2, "the rows to score are read once more, and once"
    for one, other, score in zip(alone, together, scores, strict=True):
        check_same_model(one, other, X)
        assert np.array_equal(one.decision_function(X), score)


@given(case=cases(), data=st.data())
@fewer(6)
def test_all_settings_from_shared_data_are_those_of_separate_fits(case, data):
    """Leaf depths grown side by side or one after the other, meta-depths read off stages."""
    settings = {
        "splitter": data.draw(st.sampled_from(["hist", "exact"])),
        "min_samples_leaf": data.draw(st.integers(1, 3)),
        "leaf_score": data.draw(st.sampled_from(["constant", "margin", "linear"])),
        "max_leaf_nodes": data.draw(st.sampled_from([None, 3])),
        **PLAIN,
    }
    X, depths = case.pandas(), data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    table, weight = SharedTable(X, leaf_depths=[*depths, None]), case.weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "STACK_CELLS", data.draw(st.sampled_from([0, growth.STACK_CELLS])))
        models = [MetaAP(max_depth=3, leaf_depth=d, **settings).fit(table, case.y, weight) for d in (1, 2, 3, None)]
        stages = [list(model.staged_decision_function(table)) for model in models]
    for leaf_depth, model, scores in zip((1, 2, 3, None), models, stages, strict=True):
        check_same_model(MetaAP(max_depth=3, leaf_depth=leaf_depth, **settings).fit(X, case.y, case.weight), model, X)
        for depth, score in enumerate(scores, start=1):
            again = MetaAP(max_depth=depth, leaf_depth=leaf_depth or 3, **settings).fit(X, case.y, case.weight)
            assert np.array_equal(score, again.decision_function(X))


def test_leaf_depths_grow_side_by_side_once_and_only_on_small_tables(monkeypatch):
    X, y = make_cases()
    stacks = count_calls(monkeypatch, growth, "grow_meta_trees")
    singles = count_calls(monkeypatch, growth, "grow_meta_tree")

    def fit_all(named, **settings):
        stacks.clear()
        singles.clear()
        table = SharedTable(X, named)
        for depth in (1, 2, 3):
            MetaAP(leaf_depth=depth, **PLAIN, **settings).fit(table, y)
        return len(stacks), len(singles)

    assert fit_all(()) == (0, 3)
    assert fit_all([2]) == (0, 3), "one depth is no stack"
    assert fit_all([1, 2, 3, 3, None]) == (1, 0)
    assert fit_all([1, 3]) == (1, 1)
    monkeypatch.setattr(growth, "STACK_CELLS", 3 * X.size - 1)
    assert fit_all([1, 2, 3]) == (0, 3)


def test_stacks_of_different_settings_are_told_apart():
    X, y = make_cases()
    settings = [
        {"min_samples_leaf": 5},
        {"min_samples_leaf": 30},
        {"max_depth": 2},
        {"min_gain": 0.05},
        {"stop_at_ap_loss": True},
        {"smoothing": None, "leaf_order": "meta"},
    ]
    table = SharedTable(X, [2, 3])
    models = [MetaAP(leaf_depth=depth, **PLAIN, **each).fit(table, y) for each in settings for depth in (2, 3)]
    expected = [MetaAP(leaf_depth=depth, **PLAIN, **each).fit(X, y) for each in settings for depth in (2, 3)]
    for one, other in zip(expected, models, strict=True):
        check_same_model(one, other, X)


def test_the_linear_score_is_fitted_once_for_each_penalty(monkeypatch):
    X, y = make_cases()
    fitted = count_calls(monkeypatch, leaf_scores, "fit_linear_scoring")
    table = SharedTable(X)
    for C in (1.0, 0.1, 1.0, 0.1):
        MetaAP(leaf_score="linear", logistic_C=C, **PLAIN).fit(table, y)
    assert len(fitted) == 2
    MetaAP(leaf_score="linear", **PLAIN).fit(X, y)
    assert len(fitted) == 3


def test_only_the_same_objects_and_settings_are_shared(monkeypatch):
    X, y = make_cases()
    X, weight = np.round(X[["size", "age"]].to_numpy()), np.ones(len(y))
    built = count_calls(monkeypatch, binned, "BinnedCases")

    def n_built(*fits):
        built.clear()
        table = SharedTable(X)
        for settings, arguments in fits:
            RankingTree(**settings).fit(table, *arguments)
        return len(built)

    assert n_built(({}, (y,)), ({"max_depth": 3, "criterion": "ap", "n_jobs": 2}, (y,))) == 1
    for other in ((y.copy(),), (y, weight)):
        assert n_built(({}, (y,)), ({}, other)) == 2
    for settings in ({"splitter": "exact"}, {"max_bins": 9}, {"categorical_features": [1]}, {"pos_label": 0}):
        assert n_built(({}, (y,)), (settings, (y,))) == 2
    mask = {"categorical_features": [False, True]}
    assert n_built((mask, (y,)), ({"categorical_features": [0, 1]}, (y,)), (dict(mask), (y,))) == 2


def test_the_last_two_preparations_are_kept(monkeypatch):
    X, y = make_cases(300)
    built = count_calls(monkeypatch, binned, "BinnedCases")
    table, labels = SharedTable(X), [y.copy() for _ in range(3)]
    for each in (0, 1, 2, 1, 2):
        RankingTree().fit(table, labels[each])
    assert len(built) == 3
    assert len(table.training.entries) == TABLES_KEPT == 2
    RankingTree().fit(table, labels[1]).decision_function(X)  # the one used longest ago goes first
    RankingTree().fit(table, labels[0])
    RankingTree().fit(table, labels[1])
    assert len(built) == 4


def test_plain_tables_and_other_shared_ones_share_nothing(monkeypatch):
    X, y = make_cases()
    built = count_calls(monkeypatch, binned, "BinnedCases")
    for table in (SharedTable(X), SharedTable(X), X, X):
        RankingTree().fit(table, y)
    assert len(built) == 4


def test_nothing_stays_alive_after_the_table(monkeypatch):
    X, y = make_cases()
    X, data = X.copy(), []
    monkeypatch.setattr(binned, "BinnedCases", lambda *a, **k: data.append(BinnedCases(*a, **k)) or data[-1])
    table = SharedTable(X, [1, 2])
    model = MetaAP(leaf_depth=2, **PLAIN).fit(table, y)
    model.decision_function(table)
    kept = [weakref.ref(X), weakref.ref(data.pop())]
    del X, table
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
    assert model.n_leaves_ > 1


def test_a_copy_in_another_process_starts_empty():
    X, y = make_cases()
    table = SharedTable(X, [2, 1, None])
    model = RankingTree().fit(table, y)
    model.decision_function(table)
    copied = pickle.loads(pickle.dumps(table))
    assert (copied.training.entries, copied.encoded.entries, copied.leaf_depths) == ([], [], (1, 2))
    assert np.array_equal(model.decision_function(copied), model.decision_function(X))


def test_estimators_of_others_get_the_plain_table():
    X, y = make_cases()
    table = SharedTable(X)
    assert as_read_by(LogisticRegression(), table) is X
    assert as_read_by(LogisticRegression(), X) is X
    assert as_read_by(MetaAP(), table) is table
    assert np.array_equal(
        TAOClassifier(max_depth=1).fit(table, y).predict(table), TAOClassifier(max_depth=1).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("splitter", ["hist", "exact"])
def test_fits_leave_shared_data_as_they_are(splitter, monkeypatch):
    X, y = make_cases(300)
    data = []
    monkeypatch.setattr(binned, "BinnedCases", lambda *a, **k: data.append(BinnedCases(*a, **k)) or data[-1])

    def contents():
        parts = vars(data[0]).copy()
        parts.pop("_known")
        return pickle.dumps(parts)

    table = SharedTable(X, [2, 3])
    RankingTree(splitter=splitter).fit(table, y)
    before = contents()
    for kind in RANKERS if splitter == "hist" else CLASSES:
        variant(kind, splitter=splitter).fit(table, y)
    for leaf_depth in (3, 2):
        MetaAP(leaf_depth=leaf_depth, splitter=splitter).fit(table, y)
    assert contents() == before
    assert len(data) == 1


def test_models_do_not_share_what_can_be_changed():
    X, y = make_cases()
    table = SharedTable(X)
    for _ in range(3):
        model = MetaAP().fit(table, y)
        assert model.classes_.tolist() == [0, 1]
        assert model.feature_names_in_.tolist() == ["size", "age", "place"]
        assert len(model.columns_) == 3
        model.classes_[:] = 7
        model.feature_names_in_[:] = "x"
        model.columns_.clear()


def test_rows_to_score_are_read_once_for_models_of_one_table(monkeypatch):
    X, y = make_cases()
    new = X.assign(place="nowhere")
    encoded = count_calls(monkeypatch, reading, "encode")
    known, table = SharedTable(X), SharedTable(new)
    one, other = RankingTree().fit(known, y), RankingTree(max_depth=2).fit(known, y)
    stranger = RankingTree().fit(X[["size", "place"]].copy(), y)
    encoded.clear()
    with pytest.warns(UserWarning, match="training never saw") as told:
        scores = [model.decision_function(table) for model in (one, other, one)]
    assert (len(encoded), len(told)) == (1, 1)
    with pytest.warns(UserWarning, match="training never saw"):
        expected = stranger.decision_function(new[["size", "place"]])
    with pytest.warns(UserWarning, match="training never saw"):  # a matrix of its own, without the other column
        assert np.array_equal(stranger.decision_function(table), expected)
    with pytest.warns(UserWarning, match="training never saw"):
        assert np.array_equal(scores[1], other.decision_function(new))


def test_a_shared_fit_still_minds_its_own_parameters():
    X, y = make_cases()
    light = np.full(len(y), 0.05)
    table = SharedTable(X)
    few = RankingTree(budget=10).fit(table, y)
    many = RankingTree(budget=90).fit(table, y)
    assert (few.cutoff_.k, many.cutoff_.k) == (10, 90)
    RankingTree(min_samples_leaf=2).fit(table, y, light)
    with pytest.warns(UserWarning, match="too few for min_samples_leaf=20") as told:
        MetaAP(min_samples_leaf=20, **PLAIN).fit(table, y, light)
    assert told[0].filename == __file__, "the warning names the line of the fit"
