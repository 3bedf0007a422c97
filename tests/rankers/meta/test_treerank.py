"""TreeRank: the formulas of its paper, its splitting rules, pruning, shaking, and the parts of its meta-tree."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ranker_cases import Case, cases, fewer, make_cases
from toprank import MetaAP, StackedRanker, TreeRank, load
from toprank.errors import InputError
from toprank.metrics import roc_auc
from toprank.rankers.meta.leaf_rankers import weighted_sums

SMALL = {"max_depth": 3, "leaf_depth": 2, "min_samples_leaf": 1, "cv": 0}
RULES = ["tree", "stump", "oblique"]
ORDERS = ["meta", "rate", "training", "growth", "held-out"]
# Cells are cut by the rule and put in order afterwards, except while growing by "growth": those two meet in every pair.
EACH_RULE_AND_ORDER = [("tree", order) for order in ORDERS] + [
    (rule, order) for rule in ("stump", "oblique") for order in ("rate", "growth")
]
ONE_POSITIVE = Case({"number0": [1.0, 2.0, 2.0, None]}, np.array([0, 1, 0, 0]), None)


def fit(case, **parameters):
    return TreeRank(**(SMALL | parameters)).fit(case.pandas(), case.y, case.weight)


def trained_auc(model, case, scale="step"):
    return roc_auc(case.y, model.cell_scores(case.pandas(), scale), sample_weight=case.weight)


# --- the ROC curve of the cells ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "order"), EACH_RULE_AND_ORDER)
@fewer(6)
@given(case=cases())
@example(case=ONE_POSITIVE)
def test_the_training_auc_is_the_area_of_the_knots_and_the_auc_of_the_scores(rule, order, case):
    model = fit(case, leaf_ranker=rule, leaf_order=order)
    alpha, beta = model.roc_.alpha, model.roc_.beta
    assert alpha[0] == beta[0] == 0
    assert alpha[-1] == beta[-1] == 1
    assert np.all(np.diff(alpha) >= 0)
    assert np.all(np.diff(beta) >= 0)
    # Step 3 of the algorithm; its first form leaves out the end term (1 - alpha_{N-1}) / 2 of the last knot.
    area = 0.5 * np.sum((alpha[2:] - alpha[:-2]) * beta[1:-1]) + 0.5 * (1 - alpha[-2])
    assert model.auc_ == pytest.approx(area)
    assert model.auc_ == pytest.approx(trained_auc(model, case))
    assert model.auc_ == pytest.approx(model.roc_.area)


@pytest.mark.parametrize("rule", RULES)
@fewer(4)
@given(case=cases())
def test_the_area_is_one_half_and_what_every_cut_adds(rule, case):
    """The second form of step 3, over all levels: 1/2 + sum of Lambda / 2."""
    model = fit(case, leaf_ranker=rule, leaf_order="meta")
    nodes = model.nodes_
    assert model.auc_ == pytest.approx(0.5 + nodes["auc_gain"].sum())
    assert (nodes["auc_gain"][~nodes["is_leaf"]] > 0).all()  # remark 10: no cut that adds nothing


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("order", ["training", "growth"])
@fewer(6)
@given(case=cases())
def test_shaken_trees_have_a_concave_curve(rule, order, case):
    """Remark 4."""
    assert fit(case, leaf_ranker=rule, leaf_order=order).roc_.is_concave()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=8), st.integers(1, 4))
def test_the_curve_is_concave_where_the_candidate_sets_are_stable_under_unions(cells, depth):
    """Proposition 21: the subsets of the categories of one column are such a class, and stumps search all of them."""
    positive, negative = np.array(cells).T
    assume(positive.sum() and negative.sum())
    names = np.repeat([f"c{i}" for i in range(len(cells))] * 2, np.concatenate((positive, negative)))
    y = np.repeat([1, 0], [positive.sum(), negative.sum()])
    model = TreeRank(max_depth=depth, leaf_ranker="stump", leaf_order="meta", min_samples_leaf=1, cv=0)
    model.fit(pd.DataFrame({"place": names}), y)
    assert model.roc_.is_concave()


def test_the_curve_is_not_always_concave_where_they_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    assert not TreeRank(max_depth=3, leaf_ranker="stump", leaf_order="meta", cv=0).fit(X, y).roc_.is_concave()


@fewer(2)
@given(case=cases())
def test_the_three_scales_of_a_score(case):
    model = fit(case, leaf_order="training")
    frame = case.pandas()
    step, level, rate = (model.cell_scores(frame, scale) for scale in ("step", "level", "rate"))
    order = np.argsort(step)
    assert np.all(np.diff(level[order]) >= 0)
    assert np.all(np.diff(rate[order]) >= -1e-12)
    weight = np.ones(len(case)) if case.weight is None else case.weight
    for value in np.unique(step):
        negatives_before = weight[(step > value) & (case.y == 0)].sum() / weight[case.y == 0].sum()
        inside = step == value
        assert level[inside] == pytest.approx(1 - negatives_before)
        if weight[inside].any():
            assert rate[inside] == pytest.approx(np.average(case.y[inside], weights=weight[inside]))


def test_an_unknown_scale_is_refused():
    X, y = make_cases(200)
    with pytest.raises(ValueError, match="scale must be 'level', 'rate' or 'step', got 'odds'"):
        TreeRank(cv=0).fit(X, y).cell_scores(X, "odds")


# --- growing -----------------------------------------------------------------------------------------------------


def best_stump(x, y):
    """Largest beta - alpha of any half-line, by enumeration, and the most cases that one reaches it with."""
    sets = [x <= t for t in x] + [x > t for t in x]
    value = [(s[y == 1].mean() - s[y == 0].mean()).round(12) for s in sets]
    return max(value), max(s.sum() for s, v in zip(sets, value, strict=True) if v == max(value))


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=14))
def test_a_stump_is_the_best_half_line_and_of_equals_the_larger(rows):
    """The optimisation step of section IV-A, and remark 10."""
    x, y = np.array([v for v, _ in rows], float), np.array([int(b) for _, b in rows])
    assume(0 < y.sum() < len(y))
    model = TreeRank(max_depth=1, leaf_ranker="stump", min_samples_leaf=1, cv=0).fit(x[:, None], y)
    value, size = best_stump(x, y)
    assert model.auc_ == pytest.approx(0.5 + max(value, 0) / 2)
    if value > 0:
        assert model.nodes_["n"][1] == size


@pytest.mark.parametrize(("rule", "order"), [("stump", "rate"), ("stump", "growth"), ("oblique", "rate")])
@pytest.mark.parametrize("columns", [[0, 1], [1, 0]])
def test_of_equal_cuts_of_two_columns_the_larger_is_taken(rule, order, columns):
    X, y = np.zeros((100, 2)), np.repeat([1, 0], 50)
    X[:20, 0] = X[:80, 1] = 1  # both part off 0.4 more of one class than of the other
    model = TreeRank(max_depth=1, leaf_ranker=rule, leaf_order=order, min_samples_leaf=1, cv=0).fit(X[:, columns], y)
    assert list(model.nodes_["n"]) == [100, 80, 20]


@pytest.mark.parametrize(
    ("rule", "order"), [("oblique", "rate"), ("tree", "growth"), ("stump", "growth"), (LogisticRegression(), "rate")]
)
def test_a_tree_without_a_greatest_depth_ends_by_itself(rule, order):
    X, y = diagonal()
    model = TreeRank(max_depth=None, leaf_ranker=rule, leaf_order=order, min_samples_leaf=40, cv=0).fit(X, y)
    assert model.n_leaves_ > 2


def test_a_cell_is_left_whole_where_no_cut_adds_area():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = TreeRank(min_samples_leaf=1, cv=0).fit(X, [0, 1, 0, 1])
    assert model.n_leaves_ == 1
    assert model.auc_ == 0.5


@pytest.mark.parametrize("rule", [*RULES, LogisticRegression()], ids=str)
@pytest.mark.parametrize("order", ["rate", "growth"])
def test_cuts_that_add_too_little_are_left_out(rule, order):
    X, y = diagonal()
    model = TreeRank(leaf_ranker=rule, leaf_order=order, min_gain=0.05, cv=0)
    assert 1 < model.fit(X, y).n_leaves_ < TreeRank(leaf_ranker=rule, leaf_order=order, cv=0).fit(X, y).n_leaves_
    assert model.set_params(min_gain=0.99).fit(X, y).n_leaves_ == 1


@pytest.mark.parametrize(("n", "depth"), [(20, 2), (1000, 3), (20000, 4)])
def test_the_depth_of_theorem_23(n, depth):
    y = np.arange(n) % 2
    model = TreeRank(max_depth="auto", cv=0).fit(np.random.default_rng(0).normal(size=(n, 1)), y)
    assert model.max_depth_ == depth == int(np.ceil(np.sqrt(np.log(n))))


@fewer(4)
@given(case=cases())
def test_a_weighted_sum_is_worth_at_least_the_best_condition(case):
    one = {"max_depth": 1, "leaf_order": "meta"}
    assert fit(case, leaf_ranker="oblique", **one).auc_ >= fit(case, leaf_ranker="stump", **one).auc_ - 1e-12


def diagonal(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=n) > 0.8).astype(int)


def test_weighted_sums_follow_an_oblique_boundary_and_are_read_in_words():
    X, y = diagonal()
    model = TreeRank(leaf_ranker="oblique", max_depth=2, cv=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    stump = TreeRank(leaf_ranker="stump", max_depth=2, cv=0).fit(X, y)
    assert model.auc_ > stump.auc_ + 0.05
    assert " x a - " in model.to_text()
    tree = model.tree_
    own = slice(tree.oblique_at[0], tree.oblique_at[1])
    value = weighted_sums(X, tree.oblique_feature[own], tree.oblique_weight[own], tree.oblique_fill[own])
    assert value.std() == pytest.approx(1.0)  # so that margins are in standard deviations
    better = model.node_classifier(0).predict(pd.DataFrame(X, columns=list("abcd")))
    low = value <= tree.threshold[0]
    assert np.array_equal(better, low if y[low].mean() > y.mean() else ~low)


def test_the_terms_of_a_sum_come_by_what_they_move_whatever_their_units():
    X, y = diagonal()
    X = X * [1e-3, 1.0, 1e6, 1.0]
    tree = TreeRank(leaf_ranker="oblique", max_depth=1, cv=0).fit(X, y).tree_
    feature, weight = tree.oblique_feature, tree.oblique_weight
    assert set(feature[:2]) == {0, 1}
    assert feature[2] == 2
    assert (np.diff(np.abs(weight) * X.std(axis=0)[feature]) <= 0).all()


def test_rows_that_lack_a_value_of_a_sum_go_where_that_adds_most():
    X, y = diagonal()
    gone = np.random.default_rng(1).random(len(X)) < 0.3
    X[gone & (y == 1), 0] = np.nan
    model = TreeRank(leaf_ranker="oblique", max_depth=1, leaf_order="meta", cv=0).fit(X, y)
    assert model.node_classifier(0).predict(np.array([[np.nan, 0.0, 0.0, 0.0]]))[0]


def test_values_that_are_missing_here_and_there_cost_a_sum_little():
    X, y = diagonal()
    rng = np.random.default_rng(2)
    gappy = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    whole, model = (TreeRank(leaf_ranker="oblique", max_depth=1, cv=0).fit(table, y) for table in (X, gappy))
    assert np.isfinite(model.tree_.oblique_fill).all()
    assert roc_auc(y, model.decision_function(gappy)) > roc_auc(y, whole.decision_function(X)) - 0.03
    assert "missing" not in model.to_text()


@pytest.mark.parametrize("rule", ["tree", "stump"])
@fewer(4)
@given(case=cases())
def test_growing_with_intercalation_never_ranks_worse_than_one_cut(rule, case):
    one = fit(case, leaf_ranker=rule, leaf_order="meta", max_depth=1)
    grown = [fit(case, leaf_ranker=rule, leaf_order="growth", max_depth=depth).auc_ for depth in (1, 2, 3)]
    assert grown[0] == pytest.approx(one.auc_)
    assert grown[0] - 1e-12 <= grown[1] <= grown[2] + 1e-12


def test_growing_with_intercalation_mends_what_a_bad_first_cut_spoils():
    """Section V-B: a pocket of positives on the wrong side of the first cut."""
    x = np.r_[np.zeros(50), np.ones(50), np.full(10, 2.0)]
    z = np.r_[np.zeros(100), np.ones(10)]
    y = np.r_[np.repeat([1, 0], [35, 15]), np.repeat([1, 0], [10, 40]), np.ones(10)].astype(int)
    X = np.c_[np.where(x == 2, 1.0, x), z]
    fixed, moved = (TreeRank(max_depth=2, leaf_ranker="stump", leaf_order=order, min_samples_leaf=1, cv=0).fit(X, y)
                    for order in ("meta", "growth"))  # fmt: skip
    assert moved.auc_ > fixed.auc_


# --- order of the cells ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["meta", "rate"])
@fewer(4)
@given(case=cases())
def test_the_order_by_training_rate_has_the_largest_area(order, case):
    assert fit(case, leaf_order="training").auc_ >= fit(case, leaf_order=order).auc_ - 1e-12


def test_rows_set_aside_order_the_cells_and_do_not_grow_them():
    X, y = make_cases(600)
    model = TreeRank(leaf_order="held-out", random_state=3, cv=0).fit(X, y)
    aside = np.isin(np.arange(len(y)), model._set_aside(y == 1, np.ones(len(y))))
    for label in (0, 1):
        assert aside[y == label].sum() == round(0.3 * (y == label).sum())
    turned = np.where(aside, 1 - y, y)  # the cells stay, their order does not
    other = TreeRank(leaf_order="held-out", random_state=3, cv=0)
    other._set_aside = lambda is_positive, weight: np.flatnonzero(aside)
    other.fit(X, turned)
    assert np.array_equal(other.tree_.threshold, model.tree_.threshold, equal_nan=True)
    assert np.array_equal(other.tree_.feature, model.tree_.feature)
    assert not np.array_equal(other.tree_.leaf, model.tree_.leaf)


def test_a_model_with_rows_set_aside_counts_them_all():
    X, y = make_cases(600)
    model = TreeRank(leaf_order="held-out", random_state=3, cv=0).fit(X, y)
    rules = model.rules()
    assert rules["n"].sum() == 600
    assert rules["positives"].sum() == y.sum()
    tree, inner = model.tree_, np.flatnonzero(~model.tree_.is_leaf)
    assert tree.positive[0] == y.sum()
    assert len(inner) > 3
    nodes = np.asarray(model.decision_path(X).sum(axis=0)).ravel()
    assert np.array_equal(tree.positive + tree.negative, nodes)


# --- pruning -----------------------------------------------------------------------------------------------------


@fewer(4)
@given(case=cases(), penalty=st.floats(1e-4, 0.2))
def test_merging_neighbours_is_at_least_as_good_as_merging_siblings(case, penalty):
    """Section V-A: both maximise AUC - lambda * cells, over more and over fewer merges."""
    siblings, cells = (fit(case, leaf_order="meta", pruning=kind, ccp_alpha=penalty) for kind in ("siblings", "cells"))
    assert cells.auc_ - penalty * cells.n_places_ >= siblings.auc_ - penalty * siblings.n_places_ - 1e-12
    assert siblings.full_tree_.n_leaves == cells.full_tree_.n_leaves == fit(case, leaf_order="meta").n_places_
    assert cells.auc_ == pytest.approx(trained_auc(cells, case))


@pytest.mark.parametrize("pruning", ["siblings", "cells"])
@pytest.mark.parametrize("order", ["rate", "held-out", "growth"])
def test_the_penalty_is_chosen_by_auc_on_held_out_folds(pruning, order, tmp_path):
    X, y = make_cases(500)
    settings = {"max_depth": 4, "min_samples_leaf": 1, "leaf_order": order, "pruning": pruning, "cv": 3}
    model = TreeRank(ccp_alpha="cv", **settings).fit(X, y)
    path = model.ccp_path_
    assert model.ccp_alpha_ == path["ccp_alpha"][path["roc_auc"] >= path["roc_auc"].max() - 1e-12].max()
    assert len(path["ccp_alpha"]) > 3
    assert (model.ccp_alpha_ > 0) == (model.n_places_ < model.full_tree_.n_leaves)
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert loaded.full_tree_ == model.full_tree_
    assert loaded.auc_ == model.auc_
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def test_the_auc_is_the_area_of_the_cells_by_hand():
    X, y = make_cases(300)
    rules = TreeRank(max_depth=3, cv=0).fit(X, y).rules()
    positive, total = rules["positives"].to_numpy(), rules["n"].to_numpy()
    below = np.append(np.cumsum((total - positive)[::-1])[::-1][1:], 0)  # negatives of the cells behind each
    pairs = (positive * (below + (total - positive) / 2)).sum()
    area = pairs / (positive.sum() * (total - positive).sum())
    assert TreeRank(max_depth=3, cv=0).fit(X, y).auc_ == pytest.approx(area)


# --- stages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "order"), [pair for pair in EACH_RULE_AND_ORDER if pair[1] != "held-out"])
def test_lower_depths_are_read_off_one_fit(rule, order):
    X, y = make_cases(400)
    model = TreeRank(max_depth=3, leaf_ranker=rule, leaf_order=order, cv=0)
    stages = list(clone(model).fit(X, y).staged_decision_function(X))
    for depth in (1, 2, 3):
        shallow = clone(model).set_params(max_depth=depth).fit(X, y)
        assert np.array_equal(stages[depth - 1], shallow.decision_function(X))


def test_stages_need_an_order_that_growing_gives():
    X, y = make_cases(400)
    with pytest.raises(ValueError, match=r"leaf_order='held-out'.*Hint"):
        TreeRank(leaf_order="held-out", cv=0).fit(X, y).staged_decision_function(X)
    with pytest.raises(ValueError, match=r"at ccp_alpha 0\.1"):
        TreeRank(ccp_alpha=0.1, cv=0).fit(X, y).staged_decision_function(X)


# --- any classifier ----------------------------------------------------------------------------------------------

CLASSIFIERS = [
    LogisticRegression(),
    DecisionTreeClassifier(max_depth=2, random_state=0),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


@pytest.mark.parametrize(
    ("classifier", "order"),
    [(CLASSIFIERS[0], "meta"), (CLASSIFIERS[0], "growth"), (CLASSIFIERS[1], "training"), (CLASSIFIERS[2], "held-out")],
    ids=["logistic-meta", "logistic-growth", "tree-training", "pipeline-held-out"],
)
def test_any_classifier_that_takes_weights_parts_cells(classifier, order):
    X, y = diagonal()
    model = TreeRank(leaf_ranker=classifier, max_depth=3, leaf_order=order, cv=0).fit(X, y)
    assert 2 <= model.n_leaves_ <= 8
    score = model.decision_function(X)
    assert roc_auc(y, score) > 0.85
    assert score[:1] == model.decision_function(X[:1])
    assert len(model.top_k(X, 5, reasons=0)) == 5
    assert model.predict_proba(X).shape == (600, 2)
    assert "TreeRank: " in model.summary()
    assert model.n_places_ == len(np.unique(score))
    assert model.node_classifier(0).predict(X).sum() == model.nodes_["n"][1]
    assert np.array_equal(score, clone(model).fit(X, y).decision_function(X))


def test_classifiers_without_a_seed_get_one():
    X, y = diagonal()
    rule = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1, max_depth=2))
    scores = [TreeRank(leaf_ranker=rule, random_state=seed, cv=0).fit(X, y).decision_function(X) for seed in (0, 0, 1)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize(
    "read", [lambda m, X: m.rules(), lambda m, X: m.explain(X), lambda m, X: m.to_text(), lambda m, X: m.to_plain(),
             lambda m, X: m.save("never.toprank"), lambda m, X: m.decision_path(X)],
    ids=["rules", "explain", "to_text", "to_plain", "save", "decision_path"],
)  # fmt: skip
def test_what_needs_a_tree_is_refused_with_a_sentence(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = diagonal(200)
    model = TreeRank(leaf_ranker=LogisticRegression(), max_depth=2, cv=0).fit(X, y)
    with pytest.raises(InputError, match="split by classifiers"):
        read(model, X)
    assert not list(tmp_path.iterdir())
    assert not hasattr(model.tree_, "kind")


def test_names_and_the_picture_in_a_notebook_need_no_tree():
    """A property without a value raised InputError, which `hasattr` and so scikit-learn do not expect."""
    X, y = diagonal(200)
    model = TreeRank(leaf_ranker=LogisticRegression(), max_depth=2, cv=0).fit(X, y)
    assert "decision_function" in dir(model)
    assert "TreeRank" in model._repr_html_()


def test_alerts_of_cells_split_by_classifiers_have_no_reasons():
    X, y = diagonal(200)
    model = TreeRank(leaf_ranker=LogisticRegression(), max_depth=2, cv=0)
    for each in (model, StackedRanker([model], cv=0)):  # whose reasons are those of its members
        alerts = each.fit(X, y).top_k(X, 3)
        assert len(alerts) == 3
        assert set(alerts["reason_1"]) == {""}


def test_a_classifier_that_takes_no_weights_is_refused():
    X, y = diagonal(100)
    with pytest.raises(ValueError, match=r"a classifier whose fit takes sample_weight, got KNeighborsClassifier.*Hint"):
        TreeRank(leaf_ranker=KNeighborsClassifier(), cv=0).fit(X, y)
    assert (
        TreeRank(leaf_ranker=make_pipeline(StandardScaler(), DecisionTreeClassifier()), cv=0).fit(X, y).n_leaves_ >= 2
    )
    with pytest.raises(ValueError, match="leaf_ranker"):
        TreeRank(leaf_ranker="forest", cv=0).fit(X, y)
    with pytest.raises(ValueError, match="a classifier whose fit takes sample_weight, got Ridge"):
        TreeRank(leaf_ranker=Ridge(), cv=0).fit(X, y)


# --- parts of the meta-tree --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES, LogisticRegression()], ids=str)
def test_sub_trees_and_node_classifiers(rule):
    X, y = diagonal()
    model = TreeRank(leaf_ranker=rule, max_depth=3, leaf_order="meta", min_samples_leaf=5, cv=0).fit(X, y)
    root, nodes = model.node_classifier(0), model.nodes_
    better = root.predict(X)
    assert root.alpha == pytest.approx(better[y == 0].mean())
    assert root.beta == pytest.approx(better[y == 1].mean())
    part = model.subtree([1, 2])
    assert part.n_leaves_ == 2
    assert np.array_equal(part.cell_scores(X, "step") == 2, better)
    whole = model.subtree([])
    assert whole.auc_ == model.auc_
    mixed = model.subtree([1])
    assert mixed.n_leaves_ == 1 + sum(leaf and _below(nodes, node, 2) for node, leaf in enumerate(nodes["is_leaf"]))
    assert model.n_leaves_ == nodes["is_leaf"].sum()
    with pytest.raises(ValueError, match=r"TreeRank.subtree needs meta-nodes from 0 to .*Hint"):
        model.subtree([999])
    leaf = int(np.flatnonzero(nodes["is_leaf"])[0])
    with pytest.raises(ValueError, match=rf"but {leaf} is a cell of the ranking"):
        model.node_classifier(leaf)
    n_conditions = 0 if rule not in RULES else (~root.rule.is_leaf).sum()
    by = {0: "LogisticRegression", 1: "1 condition"}.get(n_conditions, f"{n_conditions} conditions")
    assert repr(root) == f"<NodeClassifier of node 0, {by}, alpha {root.alpha:.4g}, beta {root.beta:.4g}>"


def _below(nodes, node, top):
    while node > 0 and node != top:
        node = int(nodes["parent"][node])
    return node == top


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pruning", ["siblings", "cells"])
def test_the_whole_is_a_sub_tree_of_itself(order, pruning):
    X, y = make_cases(400)
    model = TreeRank(max_depth=4, leaf_order=order, pruning=pruning, ccp_alpha=0.002, min_samples_leaf=5, cv=0).fit(
        X, y
    )
    whole = model.subtree([])
    assert model.n_leaves_ > 3
    assert np.array_equal(whole.decision_function(X), model.decision_function(X))
    assert whole.importances_ == pytest.approx(model.importances_)
    assert whole.auc_ == pytest.approx(model.auc_)
    part = model.subtree([1])
    alerts = part.predict(X).sum()
    assert alerts == (part.decision_function(X) >= part.cutoff_.threshold).sum() == pytest.approx(part.cutoff_.n_above)
    assert part.n_leaves_ <= model.n_leaves_
    nodes = model.nodes_
    kept = [node for node in range(len(nodes)) if nodes["is_leaf"][node] and not _below(nodes, node, 1)]
    assert part.n_leaves_ <= len(kept) + 1


def test_sub_trees_say_their_rules():
    X, y = make_cases(600)
    model = TreeRank(max_depth=3, cv=0).fit(X, y)
    part = model.subtree([1, 2])
    assert len(part.rules()) == 2
    assert part.to_text().count("leaf 1") >= 1
    assert "leaf 1 is the better half" in model.node_classifier(0).to_text()


@pytest.mark.parametrize("model", [TreeRank(), TreeRank(leaf_order="held-out", random_state=0), TreeRank(
    pruning="cells", ccp_alpha=0.001), TreeRank(leaf_ranker="oblique"), MetaAP(ccp_alpha=0.0)], ids=str)  # fmt: skip
def test_files_hold_the_meta_tree(model, tmp_path):
    X, y = make_cases(300)
    model = clone(model).set_params(cv=0).fit(X, y)
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert loaded.nodes_.equals(model.nodes_)
    assert loaded.subtree([1]).tree_ == model.subtree([1]).tree_
    assert loaded.subtree([]).tree_ == model.tree_
    one, other = (each.node_classifier(0) for each in (loaded, model))
    assert one.rule == other.rule
    assert one.to_text() == other.to_text()
    assert np.array_equal(one.predict(X), other.predict(X))


# --- the criterion of inner trees --------------------------------------------------------------------------------


def test_error_and_area_choose_the_same_first_condition_and_others_below_it():
    """Both weigh the classes of the cell at the root of an inner tree; below it only the error does."""
    X, y = make_cases(400)
    stumps, trees = (
        [clone(model).set_params(criterion=criterion).fit(X, y).tree_ for criterion in ("auc", "error")]
        for model in (
            TreeRank(leaf_ranker="stump", cv=0),
            TreeRank(max_depth=1, leaf_depth=3, min_samples_leaf=1, cv=0),
        )
    )
    assert stumps[0] == stumps[1]
    assert trees[0].feature[0] == trees[1].feature[0]
    assert trees[0] != trees[1]


@pytest.mark.parametrize("criterion", ["auc", "error"])
def test_a_condition_of_an_inner_tree_gains_the_area_that_it_adds(criterion):
    X, y = make_cases(400)
    tree = TreeRank(max_depth=1, leaf_depth=4, min_samples_leaf=1, criterion=criterion, cv=0).fit(X, y).tree_
    inner = np.flatnonzero(~tree.is_leaf)
    # Merged cells hold more than what the condition sends there.
    own = [(node, child) for node in inner for child in (tree.left[node], tree.right[node]) if child in inner]
    assert len(own) > 2
    for node, child in own:
        found = tree.positive[child] * tree.negative[node] - tree.negative[child] * tree.positive[node]
        assert tree.gain[node] == pytest.approx(abs(found) / (2 * tree.positive[0] * tree.negative[0]))


def test_the_published_settings_split_by_error():
    """As the authors of MetaAP compared with it: weighted error, one depth, single cases, no order inside cells."""
    model = TreeRank.paper(3)
    assert (model.criterion, model.max_depth, model.leaf_depth, model.min_samples_leaf) == ("error", 3, None, 1)
    assert (model.leaf_order, model.leaf_score, model.splitter, model.smoothing) == (
        "meta",
        "constant",
        "midpoint",
        None,
    )


# --- importances -------------------------------------------------------------------------------------------------


def test_importances_are_sums_of_squared_area_gains():
    X, y = make_cases(600)
    model = TreeRank(leaf_ranker="stump", max_depth=3, leaf_order="meta", cv=0).fit(X, y)
    nodes = model.nodes_
    assert model.importances_.sum() == pytest.approx((nodes["auc_gain"] ** 2).sum())
    assert (model.importances_ > 0).sum() == (model.feature_importances_ > 0).sum()
    moved = TreeRank(leaf_ranker="stump", max_depth=1, leaf_order="growth", cv=0).fit(X, y)
    first = TreeRank(leaf_ranker="stump", max_depth=1, cv=0).fit(X, y)
    assert moved.importances_ == pytest.approx(first.importances_)


def test_a_weighted_sum_shares_its_importance():
    X, y = diagonal()
    one = TreeRank(leaf_ranker="oblique", max_depth=1, cv=0).fit(X, y)
    assert one.importances_.sum() == pytest.approx((one.auc_ - 0.5) ** 2)
    assert one.importances_[:3].min() > 0
    assert TreeRank(leaf_ranker=LogisticRegression(), max_depth=1, cv=0).fit(X, y).importances_.sum() == 0
