"""CostTree: pruning against all prunings, labels against theorem 4.2, penalties against fits of their own."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from ranker_cases import cases, fewer, make_cases
from toprank import CostTree, TAOTree, load
from toprank.data.binned_cases import BinnedCases
from toprank.rankers.unseen import held_out_folds
from toprank.tree.columns import Column

KINDS = {"hist": {}, "exact": {"splitter": "exact"}, "costly": {"fp_cost": 0.25, "fn_cost": 2.0}}


def noisy(n=400, seed=0):
    """A step in one of three columns, every fourth label at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 0.25, rng.random(n) < 0.3, X[:, 0] > 0.8).astype(int)


def cost_of(model, X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    called = model.predict(X)
    return (
        model.fp_cost_ * weight[(called == 1) & (y == 0)].sum() + model.fn_cost * weight[(called == 0) & (y == 1)].sum()
    )


# --- pruning -----------------------------------------------------------------------------------------------------


def prunings(tree, node=0):
    """Leaves of every tree that turning nodes into leaves can give."""
    yield [node]
    if not tree.is_leaf[node]:
        for left, right in product(prunings(tree, tree.left[node]), prunings(tree, tree.right[node])):
            yield left + right


def costs_of_prunings(full):
    """Cost and size of every pruning of a full tree, each leaf labelled with what costs least."""
    as_leaf = np.minimum(full.fp_cost_ * full.tree_.negative, full.fn_cost * full.tree_.positive)
    return np.array([(as_leaf[leaves].sum(), len(leaves)) for leaves in prunings(full.tree_)])


@pytest.mark.parametrize("kind", KINDS)
@fewer(4)
@given(case=cases(max_rows=10, weights=("none", "whole", "quarters")), alpha=st.integers(1, 24).map(lambda n: n / 16))
def test_the_pruned_tree_is_the_best_of_all_prunings_and_of_the_best_the_smallest(kind, case, alpha):
    X = case.pandas()
    full, model = (CostTree(ccp_alpha=a, **KINDS[kind]).fit(X, case.y, case.weight) for a in (0.0, alpha))
    everything = costs_of_prunings(full)
    value = everything[:, 0] + alpha * everything[:, 1]
    assert model.objective_ == pytest.approx(value.min(), rel=1e-6, abs=1e-9)
    best = everything[value <= value.min() * (1 + 1e-6) + 1e-9]
    assert model.n_leaves_ in best[:, 1]
    if kind == "costly":  # in the others the cost of a false positive is rounded, which may part what ties
        assert model.n_leaves_ == best[:, 1].min()
    weight = np.ones(len(case)) if case.weight is None else case.weight
    assert model.objective_ - alpha * model.n_leaves_ == pytest.approx(cost_of(model, X, case.y, weight), abs=1e-6)
    called = model.predict(X)
    assert model.n_fp_ == pytest.approx(weight[(called == 1) & (case.y == 0)].sum(), abs=1e-6)
    assert model.n_fn_ == pytest.approx(weight[(called == 0) & (case.y == 1)].sum(), abs=1e-6)


def test_a_larger_penalty_gives_a_part_of_the_tree():
    X, y = noisy()
    models = [CostTree(ccp_alpha=alpha, cv=0).fit(X, y) for alpha in (0.0, 0.1, 0.5, 1.0, 5.0, 1e4)]
    sizes = [model.n_leaves_ for model in models]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) >= 4
    assert sizes[-1] == 1
    for larger, smaller in pairwise(model.apply(X) for model in models):
        assert len({*zip(larger, smaller, strict=True)}) == len({*larger})  # each leaf lies in one


def test_a_full_tree_makes_no_mistakes_and_penalty_0_prunes_nothing():
    X, y = noisy()
    model = CostTree(ccp_alpha=0, fp_cost=0.01, splitter="exact", cv=0).fit(X, y)
    assert (model.n_fp_, model.n_fn_, model.objective_) == (0, 0, 0)
    assert np.array_equal(model.predict(X), y)
    same_labels = CostTree(ccp_alpha=1e-9, fp_cost=0.01, splitter="exact", cv=0).fit(X, y)
    assert np.array_equal(same_labels.predict(X), y)
    assert same_labels.n_leaves_ <= model.n_leaves_
    assert CostTree(ccp_alpha=0, max_depth=3, cv=0).fit(X, y).tree_.depth == 3


def test_leaves_have_the_label_that_costs_less():
    X, y = make_cases(400)
    model = CostTree(ccp_alpha=0.2, fp_cost=0.3, fn_cost=0.9, cv=0).fit(X, y)
    tree, leaves = model.tree_, np.flatnonzero(model.tree_.is_leaf)
    called = dict(zip(model.apply(X), model.predict(X), strict=True))
    for leaf in leaves:  # theorem 4.2, lambda = 1 / 3
        assert called[leaf] == (3 * tree.positive[leaf] >= tree.negative[leaf])
    assert {*called.values()} == {0, 1}


def test_a_stump_is_that_of_scikit_learn_with_costs_as_weights():
    X, y = noisy()
    for ratio in (0.1, 0.5, 3.0):
        model = CostTree(max_depth=1, ccp_alpha=0, fp_cost=ratio, splitter="midpoint", cv=0).fit(X, y)
        theirs = DecisionTreeClassifier(max_depth=1).fit(X, y, sample_weight=np.where(y == 1, 1.0, ratio))
        assert model.tree_.feature[0] == theirs.tree_.feature[0]
        assert model.tree_.threshold[0] == pytest.approx(theirs.tree_.threshold[0])
        assert np.array_equal(model.predict(X), theirs.predict(X))


def test_small_leaves_count_cases_of_the_cheaper_kind():
    X, y = noisy()
    model = CostTree(min_samples_leaf=20, ccp_alpha=0, fp_cost=0.5, cv=0).fit(X, y)
    leaf = model.tree_.is_leaf
    cost = 0.5 * model.tree_.negative[leaf] + model.tree_.positive[leaf]
    assert cost.min() >= 10
    assert (model.tree_.negative + model.tree_.positive)[leaf].min() < 20  # positives count twice


# --- the penalty by folds ----------------------------------------------------------------------------------------


def test_the_cross_validated_cost_is_that_of_trees_fitted_without_the_fold():
    rng = np.random.default_rng(0)
    X, y = noisy(150)
    weight = rng.integers(1, 4, 150).astype(float)
    how = {"fp_cost": 0.4, "splitter": "exact"}
    model = CostTree(cv=3, **how).fit(X, y, weight)
    tried, found = model.ccp_path_["ccp_alpha"], model.ccp_path_["cost"]
    cost = np.where(y == 1, 1.0, 0.4) * weight
    expected = np.zeros(len(tried))
    columns = [Column(f"x{f}") for f in range(X.shape[1])]
    folds = held_out_folds(BinnedCases(X, y == 1, weight, columns), 3, None)
    assert len(folds) == 3
    for held_out in (fold.held_out for fold in folds):
        inside = weight.copy()
        inside[held_out] = 0.0
        share = cost[inside > 0].sum() / cost.sum()
        for j, alpha in enumerate(tried):
            one = CostTree(ccp_alpha=alpha * share, cv=0, **how).fit(X, y, inside)
            expected[j] += cost_of(one, X[held_out], y[held_out], weight[held_out])
    assert found == pytest.approx(expected / cost.sum(), rel=1e-6)
    assert model.ccp_alpha_ == tried[found <= found.min() + 1e-12].max()
    assert len(tried) > 10
    assert model.tree_ == CostTree(ccp_alpha=model.ccp_alpha_, cv=0, **how).fit(X, y, weight).tree_


def test_pruning_by_folds_costs_less_on_new_cases():
    X, y = noisy()
    X_new, y_new = noisy(2000, seed=1)
    full, pruned = (CostTree(ccp_alpha=alpha, cv=0).fit(X, y) for alpha in (0, "cv"))
    assert pruned.n_leaves_ < full.n_leaves_ / 5
    assert cost_of(pruned, X_new, y_new) < 0.8 * cost_of(full, X_new, y_new)
    assert CostTree(random_state=0, cv=0).fit(X, y).tree_ == pruned.tree_


def test_too_few_cases_for_folds_prune_nothing():
    X, y = noisy(30)
    y[:] = np.arange(30) == 7
    model = CostTree(cv=0).fit(X, y)
    assert model.ccp_alpha_ == 0
    assert np.isnan(model.ccp_path_["cost"]).all()
    assert model.n_fp_ + model.n_fn_ == 0


# --- tables and files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_given_twice_is_a_row_of_weight_two(kind):
    X, y = noisy(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    one = CostTree(ccp_alpha=0.3, **KINDS[kind]).fit(X, y, weight)
    two = CostTree(ccp_alpha=0.3, **KINDS[kind]).fit(X[rows], y[rows])
    assert one.tree_ == two.tree_
    assert one.objective_ == two.objective_


def test_results_do_not_depend_on_threads():
    X, y = make_cases(500)
    one, two = (CostTree(n_jobs=n, cv=0).fit(X, y) for n in (1, 2))
    assert one.tree_ == two.tree_
    assert np.array_equal(one.ccp_path_["cost"], two.ccp_path_["cost"])


def test_balanced_costs_are_those_of_a_tao_tree_and_it_is_a_start_for_one():
    X, y = make_cases(400)
    model = CostTree(cv=0).fit(X, y)
    better = TAOTree(init=model, split="axis", alpha=model.ccp_alpha_, cv=0).fit(X, y)
    assert better.fp_cost_ == model.fp_cost_
    # A condition of a TAO tree costs alpha, as a leaf does here: the root's is the only leaf too many.
    assert better.objective_path_[0] == pytest.approx(model.objective_ - model.ccp_alpha_)
    assert better.objective_ <= better.objective_path_[0]


def test_the_summary_says_what_predict_does():
    X, y = make_cases(400)
    model = CostTree(max_depth=3, cv=0).fit(X, y)
    called = model.predict(X) == 1
    assert f"flags {called.sum()} training cases at lowest cost, {(called & (y == 1)).sum()} of them" in model.summary()
    assert "budget 30 cases" in model.set_params(budget=30).fit(X, y).summary()


def test_a_file_keeps_labels_penalty_and_counts(tmp_path):
    X, y = make_cases(400)
    model = CostTree(fp_cost=0.3, cv=0).fit(X, y)
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    for name in ("objective_", "n_fp_", "n_fn_", "fp_cost_", "ccp_alpha_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert all(np.array_equal(loaded.ccp_path_[name], model.ccp_path_[name]) for name in ("ccp_alpha", "cost"))
    assert f"ccp_alpha {model.ccp_alpha_:.3g}" in loaded.summary()


@pytest.mark.parametrize("wrong", [{"ccp_alpha": -1.0}, {"ccp_alpha": "best"}, {"fp_cost": 0.0}, {"max_depth": 0}])
def test_wrong_parameters_are_named(wrong):
    X, y = noisy(50)
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of CostTree must be"):
        CostTree(**wrong).fit(X, y)
