import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from tao_cases import blobs
from toprank.rankers.tao_classifier import TAOClassifier
from toprank.rankers.tao_tree import TAOTree


@parametrize_with_checks([TAOClassifier(), TAOClassifier(init="random", costs="balanced", split="axis")])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def cost_of(model, X, y):
    label = np.searchsorted(model.classes_, y)
    called = np.searchsorted(model.classes_, model.predict(X))
    return model.costs_[label, called].sum()


@pytest.mark.parametrize("init", ["cart", "random"])
@pytest.mark.parametrize("split", ["oblique", "axis"])
@pytest.mark.parametrize(
    "costs", [None, "balanced", [1.0, 5.0, 0.2], [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]]], ids=str
)
def test_the_objective_falls_to_what_the_labels_cost(init, split, costs):
    X, y = blobs(90, n_classes=3)
    X[::11, 1] = np.nan
    model = TAOClassifier(init=init, split=split, costs=costs, max_depth=3, alpha=0.2).fit(X, y)
    assert np.all(np.diff(model.objective_path_) <= 0)
    assert model.objective_ == model.objective_path_[-1]
    n_conditions = model.n_leaves_ - 1
    if split == "axis":
        assert model.objective_ == pytest.approx(cost_of(model, X, y) + 0.2 * n_conditions)
    else:
        assert model.objective_ > cost_of(model, X, y)
    share = model.predict_proba(X)
    assert share.shape == (90, 3)
    assert share.sum(axis=1) == pytest.approx(1)
    # Theorem 4.2 in every leaf: the label costs least for the shares of the leaf.
    expected = share @ model.costs_
    own = expected[np.arange(90), np.searchsorted(model.classes_, model.predict(X))]
    assert own == pytest.approx(expected.min(axis=1))


@pytest.mark.parametrize("load_data", [load_iris, load_wine])
def test_a_smaller_tree_makes_fewer_costly_mistakes_than_a_greedy_one(load_data):
    X, y = load_data(return_X_y=True)
    ours, theirs, sizes = 0.0, 0.0, []
    for seed in range(5):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        model = TAOClassifier(max_depth=3, costs="balanced", alpha=0.3, n_restarts=3).fit(X_train, y_train)
        greedy = DecisionTreeClassifier(max_depth=4, class_weight="balanced", random_state=0).fit(X_train, y_train)
        ours += cost_of(model, X_test, y_test)
        theirs += model.costs_[y_test, greedy.predict(X_test)].sum()
        sizes.append(model.n_leaves_ / greedy.get_n_leaves())
    assert ours <= theirs
    assert np.mean(sizes) < 0.9


def test_two_classes_are_a_tao_tree():
    X, y = blobs(200)
    ranker = TAOTree(init="random", fp_cost=0.3, max_depth=3).fit(X, y)
    model = TAOClassifier(init="random", costs=[0.3, 1.0], max_depth=3).fit(X, y)
    assert model.objective_ == pytest.approx(ranker.objective_)
    assert np.array_equal(model.predict(X), ranker.cost_predict(X))


def test_costs_that_do_not_fit_are_refused():
    X, y = blobs(30, n_classes=3)
    for costs in ([1.0, 2.0], np.ones((2, 3)), [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="costs must be 3 numbers, one a class"):
            TAOClassifier(costs=costs).fit(X, y)
    with pytest.raises(ValueError, match="costs must be 0 on the diagonal"):
        TAOClassifier(costs=np.ones((3, 3))).fit(X, y)


def test_one_class_is_one_leaf():
    model = TAOClassifier().fit(np.arange(4.0).reshape(-1, 1), ["a"] * 4)
    assert model.n_leaves_ == 1
    assert model.predict([[9.0]]).tolist() == ["a"]


def test_row_order_weights_and_threads_change_nothing():
    X, y = blobs(150, n_classes=3)
    weight = np.random.default_rng(0).integers(1, 3, 150)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(150), weight))
    one = TAOClassifier(max_depth=3, n_restarts=2).fit(X, y, weight)
    two = TAOClassifier(max_depth=3, n_restarts=2, n_jobs=2).fit(X[order], y[order])
    assert one.tree_ == two.tree_
    assert np.array_equal(one.label_, two.label_)
