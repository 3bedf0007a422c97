import numpy as np
import pytest
from hypothesis import given
from sklearn.base import clone

from ranker_cases import cases, fewer, make_cases
from toprank import TreeRankForest, load
from toprank.metrics import average_precision, roc_auc
from toprank.rankers.ensemble.ensemble import negatives_above
from toprank.rankers.ensemble.treerank_forest import share_not_above

SMALL = TreeRankForest(n_estimators=4, max_depth=3, leaf_depth=2, leaf_score="margin", random_state=0)


def fit(n=300, weight=None, **parameters):
    X, y = make_cases(n)
    return clone(SMALL).set_params(**parameters).fit(X, y, weight), X, y


def remark_8(tree, matrix):
    """The sum over the cells, as printed: (alpha_{j+1} - alpha_j) 1{x in R_j}, R_j the cells up to j."""
    leaves = np.flatnonzero(tree.is_leaf)
    negative = np.array([tree.negative[leaves[tree.leaf[leaves] == j]].sum() for j in range(tree.n_leaves)])
    alpha = np.append(0.0, np.cumsum(negative)) / negative.sum()
    place = tree.leaf[tree.apply(matrix)]
    return sum((alpha[j + 1] - alpha[j]) * (place <= j) for j in range(tree.n_leaves))


@pytest.mark.parametrize("leaf_order", ["rate", "meta", "training"])
def test_the_published_forest_averages_remark_8(leaf_order):
    forest, X, _ = fit(leaf_score="constant", leaf_order=leaf_order)
    matrix = forest._encode(X)
    expected = np.mean([remark_8(tree, matrix) for tree in forest.trees_], axis=0)
    assert forest.decision_function(X) == pytest.approx(expected, abs=1e-12)
    assert len(np.unique(expected)) > 8


@fewer(3)
@given(case=cases(weights=("none", "whole", "quarters")))
def test_constant_cells_score_one_minus_alpha_to_the_last_bit(case):
    model = clone(SMALL).set_params(leaf_score="constant").fit(case.pandas(), case.y, case.weight)
    matrix = model._encode(case.pandas())
    for tree in model.trees_:
        alpha = negatives_above(tree)
        assert (alpha[0], alpha[-1]) == (0.0, 1.0)
        assert np.all(np.diff(alpha) >= 0)
        assert np.array_equal(
            share_not_above(tree, tree.decision_function(matrix)), 1 - alpha[tree.leaf[tree.apply(matrix)]]
        )


@fewer(3)
@given(case=cases())
def test_margins_keep_the_order_of_the_tree_and_stay_in_their_cell(case):
    model = clone(SMALL).fit(case.pandas(), case.y, case.weight)
    matrix = model._encode(case.pandas())
    for tree in model.trees_:
        alpha, place = negatives_above(tree), tree.leaf[tree.apply(matrix)]
        score = share_not_above(tree, tree.decision_function(matrix))
        assert np.all((score <= 1 - alpha[place]) & (score >= 1 - alpha[place + 1]))
        assert np.all(np.diff(score[np.argsort(tree.decision_function(matrix), kind="stable")]) >= 0)


def test_a_tree_ranks_as_its_cells_do_but_for_cells_without_negatives():
    """Such a cell moves no alpha, so it ties with the one below it: remark 8 counts negatives alone."""
    forest, X, y = fit(n_estimators=1, bootstrap=False, leaf_score="constant", min_samples_leaf=15)
    (tree,) = forest.trees_
    score, place = forest.decision_function(X), tree.leaf[tree.apply(forest._encode(X))]
    assert tree.negative[tree.is_leaf].all()
    assert roc_auc(y, score) == roc_auc(y, -place)
    negative = score[y == 0]
    expected = np.mean(place[y == 0] >= place[:, None], axis=1)
    assert score == pytest.approx(expected)  # the share of the negatives that do not rank above the row
    assert len(np.unique(negative)) == tree.n_leaves > 3

    deep = {"max_depth": 6, "leaf_depth": 3, "min_samples_leaf": 1, "max_features": None}
    forest, X, _ = fit(n_estimators=1, bootstrap=False, leaf_score="constant", **deep)
    (tree,) = forest.trees_
    empty = np.flatnonzero(tree.is_leaf & (tree.negative == 0))
    assert len(empty)
    assert len(np.unique(forest.decision_function(X))) == tree.n_leaves - len(empty)


@pytest.mark.parametrize("n_estimators", [1, 4, 5])
@pytest.mark.parametrize("leaf_score", ["constant", "margin"])
def test_the_median_rank(n_estimators, leaf_score, monkeypatch):
    monkeypatch.setattr("toprank.rankers.ensemble.forest.BLOCK_VOTES", 32 * n_estimators)
    forest, X, y = fit(n_estimators=n_estimators, leaf_score=leaf_score, aggregation="median-rank", n_jobs=2)
    matrix = forest._encode(X)
    votes = [share_not_above(tree, tree.decision_function(matrix)) for tree in forest.trees_]
    assert forest.decision_function(X) == pytest.approx(np.median(votes, axis=0), abs=1e-15)
    mean, *_ = fit(n_estimators=n_estimators, leaf_score=leaf_score)
    assert mean.trees_ == forest.trees_
    judged = ~np.isnan(forest.oob_decision_function_)
    assert np.array_equal(judged, ~np.isnan(mean.oob_decision_function_))
    assert forest.oob_score_ == pytest.approx(roc_auc(y[judged], forest.oob_decision_function_[judged]))


@pytest.mark.parametrize(("aggregation", "combine"), [("mean", np.mean), ("median-rank", np.median)])
def test_out_of_bag_scores_are_of_the_trees_that_did_not_see_the_row(aggregation, combine):
    forest, X, y = fit(60, n_estimators=3, aggregation=aggregation)
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=3)
    seen = [np.isin(np.arange(60), np.random.default_rng(int(seed)).integers(0, 60, 60)) for seed in seeds]
    votes = [share_not_above(tree, tree.decision_function(forest._encode(X))) for tree in forest.trees_]
    for i, score in enumerate(forest.oob_decision_function_):
        said = [vote[i] for vote, drawn in zip(votes, seen, strict=True) if not drawn[i]]
        assert np.isnan(score) if not said else score == pytest.approx(combine(said))
    judged = ~np.isnan(forest.oob_decision_function_)
    assert 0 < judged.sum() < 60
    assert forest.oob_score_ == pytest.approx(roc_auc(y[judged], forest.oob_decision_function_[judged]))
    expected = average_precision(y[judged], forest.oob_decision_function_[judged])
    assert forest.oob_average_precision_ == pytest.approx(expected)


def test_without_bootstrap_nothing_is_out_of_bag():
    forest, *_ = fit(bootstrap=False, aggregation="median-rank")
    assert forest.trees_[1:] == forest.trees_[:1] * 3
    assert np.isnan([forest.oob_score_, forest.oob_average_precision_, *forest.oob_decision_function_]).all()
    assert "out-of-bag" not in forest.summary()


def wide(n=800, n_columns=12):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns))
    return X, (X[:, :6].sum(axis=1) + rng.normal(size=n) > 3).astype(int)


def columns_of_inner_trees(forest):
    """Columns that the conditions between the root and the first meta-children ask for: the first inner tree."""
    return [np.unique(tree.feature[~tree.is_leaf]) for tree in forest.trees_]


def test_an_inner_tree_is_confined_to_the_columns_of_its_meta_node():
    X, y = wide()
    one = clone(SMALL).set_params(max_depth=1, leaf_depth=4, n_estimators=10)
    confined = one.set_params(max_meta_features=2).fit(X, y)
    columns = columns_of_inner_trees(confined)
    assert max(map(len, columns)) == 2
    assert len({*np.concatenate(columns)}) > 6
    drawn_from = clone(one).set_params(max_meta_features=3, max_features=1).fit(X, y)
    columns = columns_of_inner_trees(drawn_from)
    assert max(map(len, columns)) == 3
    free = clone(one).set_params(max_meta_features=None).fit(X, y)
    assert max(map(len, columns_of_inner_trees(free))) > 3


@pytest.mark.parametrize("max_leaf_nodes", [None, 4])
def test_drawn_columns_do_not_depend_on_threads(max_leaf_nodes):
    X, y = wide(400)
    how = {"max_meta_features": 0.5, "max_features": "sqrt", "max_leaf_nodes": max_leaf_nodes}
    one, two = (clone(SMALL).set_params(n_jobs=n, **how).fit(X, y) for n in (1, 2))
    assert one.to_plain() == two.to_plain()
    assert np.array_equal(one.oob_decision_function_, two.oob_decision_function_, equal_nan=True)
    other = clone(SMALL).set_params(**how | {"max_meta_features": None}).fit(X, y)
    assert other.to_plain() != one.to_plain()


def test_a_forest_ranks_better_than_its_trees():
    X, y = wide(3000)
    forest = TreeRankForest(n_estimators=30, max_meta_features="sqrt", random_state=0).fit(X[:1500], y[:1500])
    new = X[1500:]
    alone = [roc_auc(y[1500:], tree.decision_function(new)) for tree in forest.trees_]
    for aggregation in ("mean", "median-rank"):
        assert roc_auc(y[1500:], forest.set_params(aggregation=aggregation).decision_function(new)) > max(alone)


def test_figures_and_files_hold_both_measures(tmp_path):
    forest, X, _ = fit()
    assert f"out-of-bag AUC {forest.oob_score_:.3f}, average precision" in forest.summary()
    figures = forest._figures()
    assert (figures["oob_roc_auc"], figures["oob_average_precision"]) == (
        forest.oob_score_,
        forest.oob_average_precision_,
    )
    forest.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.oob_average_precision_ == forest.oob_average_precision_
    assert np.array_equal(back.decision_function(X), forest.decision_function(X))


def test_a_bootstrap_without_negatives_votes_for_all_rows_alike():
    X = np.arange(60.0).reshape(-1, 1)
    forest = TreeRankForest(n_estimators=30, max_samples=2, leaf_score="constant", random_state=0)
    forest.fit(X, np.arange(60) < 59)
    lost = [tree for tree in forest.trees_ if tree.negative[0] == 0]
    assert lost
    assert all(np.array_equal(share_not_above(tree, tree.decision_function(X)), np.ones(60)) for tree in lost)
    assert np.isfinite(forest.decision_function(X)).all()


def test_the_penalty_of_a_scorecard_in_leaves_is_a_parameter():
    X, y = make_cases(400)
    settings = {"leaf_score": "additive", "n_estimators": 2, "random_state": 0}
    weak, strong = (TreeRankForest(logistic_C=C, **settings).fit(X, y).trees_[0].scoring for C in (1.0, 0.01))
    assert strong.n_coefficients < weak.n_coefficients
