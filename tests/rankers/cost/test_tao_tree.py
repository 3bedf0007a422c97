"""TAOTree: the estimator around alternating optimisation."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from ranker_cases import cases, fewer, make_cases
from toprank import MetaAP, RankingTree, load
from toprank._core.dtypes import CATEGORY, NUMERIC, OBLIQUE
from toprank.data.shared_table import SharedTable
from toprank.metrics import roc_auc
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.growth import PUBLISHED_CATEGORIES
from toprank.tree.tao.splits import FIT_ROWS

SMALL = {"max_depth": 2, "alpha": 0.1, "min_samples_leaf": 1}
KINDS = {
    "oblique": {},
    "axis": {"split": "axis"},
    "exact": {"split": "axis", "splitter": "exact"},
    "random": {"init": "random", "n_init": 2},
}


def diagonal(n=600, seed=0, noise=0.3):
    """Positives above a diagonal line: one weighted sum, or many conditions on one column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 1.0] + [0.0, 50.0, 0.0]
    return X, (X[:, 0] + 0.1 * (X[:, 1] - 50) + noise * rng.normal(size=n) > 1.2).astype(int)


def cost_of(model, X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    called = model.predict(X)
    return (
        model.fp_cost_ * weight[(called == 1) & (y == 0)].sum() + model.fn_cost * weight[(called == 0) & (y == 1)].sum()
    )


# --- the objective -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@fewer(6)
@given(case=cases())
def test_the_objective_falls_and_is_what_mistakes_and_weights_cost(kind, case):
    model = TAOTree(**(SMALL | KINDS[kind])).fit(case.pandas(), case.y, case.weight)
    path = model.objective_path_
    assert np.all(np.diff(path) <= 0)
    assert path[-1] == model.objective_
    weight = np.ones(len(case)) if case.weight is None else case.weight
    called = model.predict(case.pandas())
    assert model.n_fp_ == pytest.approx(weight[(called == 1) & (case.y == 0)].sum(), abs=1e-6)
    assert model.n_fn_ == pytest.approx(weight[(called == 0) & (case.y == 1)].sum(), abs=1e-6)
    if kind in ("axis", "exact"):  # a condition on one column has a norm of 1
        expected = cost_of(model, case.pandas(), case.y, weight) + model.alpha * model.n_conditions_
        assert model.objective_ == pytest.approx(expected, rel=1e-6, abs=1e-9)
    else:
        assert model.objective_ >= cost_of(model, case.pandas(), case.y, weight) * (1 - 1e-6)


def test_a_weighted_sum_beats_conditions_on_one_column_on_a_diagonal():
    X, y = diagonal()
    X_new, y_new = diagonal(seed=1)
    oblique, axis = (TAOTree(split=split, max_depth=2, cv=0).fit(X, y) for split in ("oblique", "axis"))
    assert set(oblique.tree_.kind) <= {0, NUMERIC, OBLIQUE}
    assert OBLIQUE in oblique.tree_.kind
    assert OBLIQUE not in axis.tree_.kind
    assert cost_of(oblique, X_new, y_new) < 0.9 * cost_of(axis, X_new, y_new)
    assert oblique.n_leaves_ <= axis.n_leaves_
    stump = TAOTree(max_depth=1, cv=0).fit(X, y)
    feature = stump.tree_.oblique_feature.tolist()
    assert set(feature[:2]) == {0, 1}
    weight = dict(zip(feature, stump.tree_.oblique_weight, strict=True))
    assert weight[1] / weight[0] == pytest.approx(0.1, rel=0.3)  # in original units
    assert f"x x{feature[0]} + " in stump.to_text()


def test_optimising_lowers_what_the_greedy_tree_costs():
    X, y = make_cases(600)
    greedy = TAOTree(max_depth=3, max_iter=0, alpha=0.5, **PUBLISHED_CATEGORIES).fit(X, y)
    model = TAOTree(max_depth=3, alpha=0.5, **PUBLISHED_CATEGORIES).fit(X, y)
    assert greedy.n_iter_ == 0
    assert model.objective_path_[0] == greedy.objective_path_[0]
    assert model.objective_ < greedy.objective_
    assert {*model.tree_.kind} >= {0, CATEGORY}


def test_costs_move_the_errors_from_one_kind_to_the_other():
    X, y = diagonal(noise=1.0)
    models = [TAOTree(fp_cost=cost, max_depth=2, cv=0).fit(X, y) for cost in (0.02, 0.3, 5.0)]
    assert [m.n_fp_ for m in models] == sorted((m.n_fp_ for m in models), reverse=True)
    assert [m.n_fn_ for m in models] == sorted(m.n_fn_ for m in models)
    assert models[0].n_fp_ > models[2].n_fp_
    assert models[0].n_fn_ < models[2].n_fn_
    scaled = TAOTree(fp_cost=0.6, fn_cost=2.0, alpha=2.0, max_depth=2, cv=0).fit(X, y)
    assert scaled.objective_ == pytest.approx(2 * models[1].objective_, rel=1e-3)


def test_balanced_costs_give_both_classes_the_same_total():
    X, y = diagonal()
    model = TAOTree(fn_cost=3.0, cv=0).fit(X, y)
    assert model.fp_cost_ * (y == 0).sum() == pytest.approx(3.0 * y.sum())


def test_a_larger_penalty_gives_fewer_weights():
    X, y = diagonal(noise=1.0)
    X = np.column_stack((X, np.random.default_rng(1).normal(size=(len(X), 8))))
    sizes = []
    for alpha in (0.1, 3.0, 1e4):
        tree = TAOTree(alpha=alpha, cv=0).fit(X, y).tree_
        sizes.append((tree.kind == NUMERIC).sum() + len(tree.oblique_weight))
    assert sizes[0] > sizes[1] > sizes[2] == 0


# --- starts ------------------------------------------------------------------------------------------------------


def test_more_starts_never_end_higher():
    X, y = make_cases(400)
    ends = [TAOTree(init="random", n_init=n, max_depth=3, random_state=3, cv=0).fit(X, y).objective_ for n in (1, 4)]
    assert ends[1] <= ends[0]
    with_greedy = TAOTree(n_init=3, max_depth=3, cv=0).fit(X, y).objective_
    assert with_greedy <= TAOTree(max_depth=3, cv=0).fit(X, y).objective_


@pytest.mark.parametrize("how", [{"init": "random"}, {"n_init": 2}])
def test_random_starts_are_not_too_deep(how):
    X, y = diagonal(60)
    words = r"'max_depth' parameter of TAOTree must be at most 12 for random starts, .* Got 13 instead.* Hint"
    with pytest.raises(ValueError, match=words):
        TAOTree(max_depth=13, **how).fit(X, y)
    assert TAOTree(max_depth=13, cv=0).fit(X, y).n_leaves_ > 1


def test_random_starts_depend_on_the_seed_alone():
    X, y = make_cases(300)
    one, two, other = (TAOTree(init="random", random_state=seed, cv=0).fit(X, y) for seed in (0, 0, 5))
    assert one.tree_ == two.tree_
    assert np.array_equal(one.objective_path_, two.objective_path_)
    assert one.tree_ != other.tree_
    assert TAOTree(init="random", cv=0).fit(X, y).tree_ == one.tree_


def test_a_fitted_tree_goes_on_where_it_ended():
    X, y = diagonal(noise=1.0)
    first = TAOTree(max_depth=3, cv=0).fit(X, y)
    again = TAOTree(init=first, cv=0).fit(X, y)
    assert again.objective_ <= first.objective_
    assert TAOTree(init=first, max_iter=0, cv=0).fit(X, y).tree_ == first.tree_
    assert len(again.objective_path_) <= 4
    nearby = TAOTree(init=first, fp_cost=1.2 * first.fp_cost_, cv=0).fit(X, y)
    assert (
        nearby.objective_path_[0]
        < TAOTree(max_depth=3, fp_cost=1.2 * first.fp_cost_, cv=0).fit(X, y).objective_path_[0]
    )
    assert np.all(np.diff(nearby.objective_path_) <= 0)


def test_branches_that_one_objective_does_not_need_come_back_at_another():
    X, y = diagonal(noise=1.0)
    first = TAOTree(max_depth=3, alpha=1e4, cv=0).fit(X, y)
    assert first.n_leaves_ == 1
    assert TAOTree(init=first, cv=0).fit(X, y).n_leaves_ > 2


@pytest.mark.parametrize("of", ["model", "tree"])
def test_a_greedy_tree_or_its_tree_is_a_start(of):
    X, y = make_cases(400)
    greedy = RankingTree(max_depth=3, cv=0).fit(X, y)
    model = TAOTree(init=greedy if of == "model" else greedy.tree_, cv=0).fit(X, y)
    assert model.tree_.depth <= 3
    assert np.all(np.diff(model.objective_path_) <= 0)


def test_clones_keep_the_tree_they_start_from():
    X, y = diagonal()
    first = TAOTree(max_depth=2, cv=0).fit(X, y)
    model = TAOTree(init=first, alpha=0.5, cv=0)
    copy = clone(model)
    assert copy.init is first
    assert copy.alpha == 0.5
    assert copy.fit(X, y).tree_ == model.fit(X, y).tree_
    assert cross_val_score(model, X, y, cv=3).min() > 0.5
    with pytest.raises(NotFittedError):
        clone(first).predict(X)


def test_starts_that_do_not_fit_are_refused():
    X, y = diagonal()
    with pytest.raises(NotFittedError, match="init of a TAOTree must be fitted, but this TAOTree is not"):
        TAOTree(init=TAOTree(cv=0), cv=0).fit(X, y)
    with pytest.raises(ValueError, match="must have the 3 columns of X and their categories"):
        TAOTree(init=TAOTree(cv=0).fit(X[:, :2], y), cv=0).fit(X, y)
    with pytest.raises(ValueError, match="a tree over the 3 columns of X, got one over 2"):
        TAOTree(init=TAOTree(cv=0).fit(X[:, :2], y).tree_, cv=0).fit(X, y)
    with pytest.raises(ValueError, match="one parent per node"):
        TAOTree(
            init=MetaAP(criterion="ap", ccp_alpha=0.0, max_depth=3, leaf_depth=3, min_samples_leaf=1, cv=0).fit(X, y),
            cv=0,
        ).fit(X, y)
    with pytest.raises(ValueError, match="must have the 3 columns"):
        TAOTree(init=LogisticRegression().fit(X, y), cv=0).fit(X, y)


def test_fits_at_several_costs_share_the_preparation_of_a_table():
    X, y = make_cases(300)
    table = SharedTable(X)
    shared = [TAOTree(fp_cost=cost, cv=0).fit(table, y) for cost in (0.1, 0.3)]
    alone = [TAOTree(fp_cost=cost, cv=0).fit(X, y) for cost in (0.1, 0.3)]
    assert [a.tree_ == b.tree_ for a, b in zip(shared, alone, strict=True)] == [True, True]


# --- tables ------------------------------------------------------------------------------------------------------


def test_cases_that_lack_a_value_of_a_sum_go_where_they_cost_less():
    X, y = diagonal(900)
    X[::5, 0] = np.nan
    for positive in (0, 1):
        labels = np.where(np.isnan(X[:, 0]), positive, y)
        model = TAOTree(max_depth=1, alpha=0.5, cv=0).fit(X, labels)
        assert model.tree_.kind[0] == OBLIQUE
        assert np.all(model.predict(X)[np.isnan(X[:, 0])] == positive)


def test_values_that_are_missing_here_and_there_cost_little():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20))
    y = (X.sum(axis=1) + rng.normal(size=3000) > 6).astype(int)
    gappy = np.where(rng.random(X.shape) < 0.05, np.nan, X)  # two rows of three lack a value
    whole, model = (TAOTree(max_depth=1, alpha=1, cv=0).fit(table, y) for table in (X, gappy))
    assert model.objective_ < 1.5 * whole.objective_
    assert roc_auc(y, model.decision_function(gappy)) > roc_auc(y, whole.decision_function(X)) - 0.03
    assert np.isfinite(model.tree_.oblique_fill).all()
    assert "missing" not in model.to_text()
    filled = np.where(np.isnan(gappy), np.nanmean(gappy, axis=0), gappy)
    np.testing.assert_allclose(model.decision_function(filled), model.decision_function(gappy), rtol=1e-6)


def test_categories_are_conditions_of_their_own():
    rng = np.random.default_rng(0)
    place = rng.choice(list("abcdef"), 500)
    X = pd.DataFrame({"place": place, "size": rng.normal(size=500), "age": rng.normal(size=500)})
    y = (np.isin(place, ["a", "d"]) & (X["size"] + X["age"] > 0)).astype(int)
    model = TAOTree(max_depth=2, alpha=0.1, cv=0).fit(X, y)
    assert {*model.tree_.kind} == {0, CATEGORY, OBLIQUE}
    assert model.n_fp_ + model.n_fn_ <= 10
    assert "place is a or d" in model.to_text()
    assert not np.isin(model.tree_.oblique_feature, [0]).any()


def additive(n, seed=0):
    """Six columns of categories whose effects add up: their frame, and labels of which a sixth is positive."""
    rng = np.random.default_rng(1)
    effect = rng.normal(size=(6, 8))
    rng = np.random.default_rng(seed)
    codes = rng.choice(8, (n, 6), p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    total = effect[np.arange(6), codes].sum(axis=1) + 0.2 * rng.normal(size=n)
    frame = pd.DataFrame({f"c{j}": np.array(list("abcdefgh"))[codes[:, j]] for j in range(6)})
    return frame, (total > 1.8).astype(int)


def test_sums_weigh_categories_as_if_they_were_one_hot():
    X, y = additive(2000)
    X_new, y_new = additive(2000, seed=5)
    model = TAOTree(max_depth=1, cv=0).fit(X, y)
    assert (model.tree_.oblique_code >= 0).all()
    by_hand = TAOTree(max_depth=1, cv=0).fit(pd.get_dummies(X).astype(float), y)
    scores = [model.decision_function(X_new), by_hand.decision_function(pd.get_dummies(X_new).astype(float))]
    assert min(roc_auc(y_new, score) for score in scores) > 0.98
    assert abs(roc_auc(y_new, scores[0]) - roc_auc(y_new, scores[1])) < 0.01  # by hand, weights cost less
    single = TAOTree(max_depth=1, split="axis", cv=0).fit(X, y)
    assert roc_auc(y_new, single.decision_function(X_new)) < 0.8


@pytest.mark.filterwarnings("ignore:Column.* empty in all")
def test_a_sum_with_categories_scores_missing_and_unknown_ones_and_rows_alone(tmp_path):
    X, y = additive(800)
    X["size"] = y + np.random.default_rng(2).normal(size=800)
    X.loc[::11, "c0"] = None
    model = TAOTree(max_depth=1, cv=0).fit(X, y)
    assert -1 in model.tree_.oblique_code
    assert model.tree_.oblique_code.max() >= 0
    odd = X[:40].copy()
    odd.loc[::2, "c1"] = None
    with pytest.warns(UserWarning, match="c2"):
        unknown = model.decision_function(odd.assign(c2="new"))
    score = model.decision_function(odd)
    assert np.array_equal(unknown, model.decision_function(odd.assign(c2=None)))
    assert np.array_equal([model.decision_function(odd[i : i + 1])[0] for i in range(40)], score)
    tree = model.tree_
    code = {column.name: {name: i for i, name in enumerate(column.categories or ())} for column in model.columns_}
    terms = list(zip(tree.oblique_feature, tree.oblique_code, tree.oblique_weight, tree.oblique_fill, strict=True))
    for i, leaf in enumerate(model.apply(odd)):
        total = 0.0
        for f, c, weight, fill in terms:
            value = odd.iloc[i, f]
            if c >= 0:
                total += weight * (code[odd.columns[f]].get(value, -1) == c)
            else:
                total += weight * (fill if np.isnan(value) else value)
        assert leaf == (tree.left[0] if total <= tree.threshold[0] else tree.right[0])
    model.save(tmp_path / "model.toprank")
    again = load(tmp_path / "model.toprank")
    assert again.tree_ == tree
    assert np.array_equal(again.decision_function(odd), score)


def test_names_of_categories_and_the_order_of_rows_do_not_matter_in_sums():
    X, y = additive(600)
    model = TAOTree(max_depth=2, alpha=0.3, cv=0).fit(X, y)
    assert (model.tree_.oblique_code >= 0).any()
    renamed = X.replace(dict(zip("abcdefgh", "hbgafdec", strict=True)))
    other = TAOTree(max_depth=2, alpha=0.3, cv=0).fit(renamed, y)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-9)
    assert np.array_equal(other.predict(renamed), model.predict(X))
    order = np.random.default_rng(0).permutation(600)
    shuffled = TAOTree(max_depth=2, alpha=0.3, cv=0).fit(X.iloc[order], y[order])
    assert shuffled.tree_ == model.tree_


def test_a_row_given_twice_is_a_row_of_weight_two():
    X, y = diagonal(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), weight)
    for kind in KINDS.values():
        one = TAOTree(**(SMALL | kind)).fit(X, y, weight)
        two = TAOTree(**(SMALL | kind)).fit(X[rows], y[rows])
        assert one.tree_ == two.tree_
        assert one.objective_ == two.objective_


def test_results_do_not_depend_on_threads():
    X, y = make_cases(500)
    one, two = (TAOTree(n_jobs=n, n_init=2, cv=0).fit(X, y) for n in (1, 2))
    assert one.tree_ == two.tree_
    assert np.array_equal(one.objective_path_, two.objective_path_)
    assert np.array_equal(one.predict(X), two.predict(X))


def test_labels_of_any_kind_come_back():
    X, y = diagonal()
    plain = TAOTree(max_depth=2, cv=0).fit(X, y)
    named = TAOTree(max_depth=2, pos_label="bad", cv=0).fit(X, np.where(y == 1, "bad", "good"))
    assert np.array_equal(named.predict(X) == "bad", plain.predict(X) == 1)


def test_the_score_orders_leaves_and_cases_inside_a_leaf():
    X, y = diagonal(noise=1.0)
    model = TAOTree(max_depth=1, alpha=0.5, cv=0).fit(X, y)
    tied = TAOTree(max_depth=1, alpha=0.5, leaf_score="constant", cv=0).fit(X, y)
    assert len(np.unique(tied.decision_function(X))) == 2
    assert len(np.unique(model.decision_function(X))) > 500
    assert model.score(X, y) > tied.score(X, y) + 0.1
    called = model.predict(X) == 1
    assert model.decision_function(X)[called].min() > model.decision_function(X)[~called].max()


# --- files -------------------------------------------------------------------------------------------------------


def test_a_file_keeps_labels_objective_and_counts(tmp_path):
    X, y = make_cases(400)
    first = TAOTree(max_depth=3, cv=0).fit(X, y)
    model = TAOTree(init=first, fp_cost=0.3, cv=0).fit(X, y)
    model.save(tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    for name in ("objective_", "n_fp_", "n_fn_", "fp_cost_", "n_iter_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert np.array_equal(loaded.objective_path_, model.objective_path_)
    assert loaded.init is None
    again = TAOTree(init=loaded, fp_cost=0.3, max_iter=0, cv=0).fit(X, y)
    assert np.array_equal(again.predict(X), model.predict(X))


def test_docs_say_how_many_care_points_a_direction_is_fitted_on():
    page = Path(__file__).parents[3] / "docs/choosing-errors.md"
    for text in (TAOTree.__doc__, page.read_text(encoding="utf-8")):
        assert f"at most {FIT_ROWS:,} " in " ".join(text.split())


def test_a_file_without_labels_is_refused():
    X, y = diagonal(200)
    model = TAOTree(max_depth=1, cv=0).fit(X, y)
    arrays = model._to_arrays()
    with pytest.raises(ValueError, match="leaves lack labels"):
        model._from_arrays(arrays | {"label": arrays["label"][:1]})
