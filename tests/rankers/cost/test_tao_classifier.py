import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranker_cases import fewer
from tables import tables
from tao_cases import blobs
from toprank import load
from toprank.errors import InputError
from toprank.export import to_text
from toprank.rankers.cost.tao_classifier import TAOClassifier, category_places
from toprank.rankers.cost.tao_tree import TAOTree
from toprank.rankers.ensemble.meta_ap_forest import MetaAPForest


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
        model = TAOClassifier(max_depth=3, costs="balanced", alpha=0.3, n_init=3).fit(X_train, y_train)
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
    assert np.array_equal(model.predict(X), ranker.predict(X))


@pytest.mark.parametrize(
    ("costs", "complaint"),
    [
        (
            {"a": 1.0, "b": 2.0, "c": 3.0},
            "or missing, got a dict. Hint: the classes are ordered as in classes_, here [0, 1, 2].",
        ),
        ({1.0, 2.0, 3.0}, "got a set. Hint"),
        ([[0.0, 1.0, 1.0], [1.0, 0.0], [1.0, 1.0, 0.0]], "got rows of different lengths. Hint"),
        (["1", "2", "3"], "got values that are not numbers. Hint"),
        ([None, 1.0, 2.0], "got values that are not numbers. Hint"),
        ([1.0, 2.0], "costs must be 3 numbers, one per class, or a matrix of shape (3, 3)"),
        ([1.0, 2.0], "got an array of shape (2,). Hint"),
        (np.ones((2, 3)), "got an array of shape (2, 3). Hint"),
        ([1.0, -1.0, 1.0], "none of them negative or missing, got -1. Hint"),
        ([1.0, np.nan, 1.0], "got nan. Hint"),
        ([1.0, np.inf, 1.0], "got inf. Hint"),
        ([0.0, 0.0, 0.0], "costs must hold a number above 0, but all of them are 0. Hint"),
        (np.zeros((3, 3)), "costs must hold a number above 0"),
        (np.ones((3, 3)), "costs must be 0 on the diagonal (correct predictions), got [1.0, 1.0, 1.0]. Hint"),
        ("cheap", "The 'costs' parameter of TAOClassifier must be"),
        (3.0, "The 'costs' parameter of TAOClassifier must be"),
    ],
    ids=str,
)
def test_costs_that_do_not_fit_are_refused(costs, complaint):
    X, y = blobs(30, n_classes=3)
    model = TAOClassifier(costs=costs)
    with pytest.raises(ValueError, match=re.escape(complaint)):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_labels_and_weights_that_do_not_fit_are_refused():
    X, y = blobs(30, n_classes=3)
    for bad, complaint in (
        (y + 0.5, "TAOClassifier.fit needs classes, but y holds numbers with fractions"),
        ((y + 0.5).astype(object), "TAOClassifier.fit needs classes, but y holds numbers with fractions"),
        (np.where(y == 1, np.inf, y), "contains infinity"),
        (np.where(y == 1, np.nan, y), "10 of 30 labels are missing"),
        (y[:-1], "needs one label per row"),
        (None, "requires y to be passed"),
    ):
        with pytest.raises(ValueError, match=complaint):
            TAOClassifier().fit(X, bad)
    for weight, complaint in (
        (np.zeros(30), r"TAOClassifier\.fit needs rows with a weight above zero"),
        (np.full(30, 1e308), r"adds up to inf"),
        (np.full(30, -1.0), r"must not be negative"),
        (np.ones(29), r"TAOClassifier\.fit needs one weight per row"),
    ):
        with pytest.raises(InputError, match=complaint):
            TAOClassifier().fit(X, y, weight)


def test_a_class_without_weight_is_none():
    X, y = blobs(60, n_classes=3)
    model = TAOClassifier(costs="balanced").fit(X, y, np.where(y == 2, 0.0, 0.3))
    assert model.classes_.tolist() == [0, 1]
    with_speck = TAOClassifier(costs="balanced").fit(X, y, np.where(y == 2, 1e-300, 0.3))
    assert with_speck.classes_.tolist() == [0, 1]


def test_one_class_is_one_leaf():
    model = TAOClassifier().fit(np.arange(4.0).reshape(-1, 1), ["a"] * 4)
    assert model.n_leaves_ == 1
    assert model.predict([[9.0]]).tolist() == ["a"]


def test_row_order_weights_and_threads_change_nothing():
    X, y = blobs(150, n_classes=3)
    weight = np.random.default_rng(0).integers(1, 3, 150)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(150), weight))
    one = TAOClassifier(max_depth=3, n_init=2).fit(X, y, weight)
    two = TAOClassifier(max_depth=3, n_init=2, n_jobs=2).fit(X[order], y[order])
    assert one.tree_ == two.tree_
    assert np.array_equal(one.label_, two.label_)


# --- the tree, its words, and plain values ----------------------------------------------------------------------


def colours(n=300, seed=0):
    """A frame of a category, a flag and two numbers, all with missing values, and three classes that they tell."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue", "grey"], n)
    X = pd.DataFrame(
        {"colour": colour, "is_new": rng.random(n) < 0.5, "v": rng.normal(size=n), "w": rng.normal(size=n)}
    )
    y = np.where(colour == "red", "stop", np.where((X["v"] + X["w"] > 0) & (colour != "grey"), "go", "wait"))
    X["colour"] = X["colour"].mask(rng.random(n) < 0.1)
    X.loc[::9, "v"] = np.nan
    return X, y


def at_random(draw, table):
    """A table with two to four classes, its categories as strings."""
    n_classes = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = pd.DataFrame(table.X, columns=[f"c{i}" for i in range(table.X.shape[1])])
    for i in np.flatnonzero(table.n_categories):
        X[f"c{i}"] = [None if np.isnan(v) else "abcde"[int(v)] for v in table.X[:, i]]
    return X, rng.integers(0, n_classes, len(X))


@fewer(2)
@given(st.data(), tables(max_rows=24, max_columns=3))
def test_the_tree_is_valid_and_its_text_holds_every_class(data, table):
    X, y = at_random(data.draw, table)
    parameters = {
        "init": data.draw(st.sampled_from(["cart", "random"])),
        "split": data.draw(st.sampled_from(["oblique", "axis"])),
        "splitter": data.draw(st.sampled_from(["hist", "exact"])),
        "costs": data.draw(st.sampled_from([None, "balanced"])),
    }
    model = TAOClassifier(max_depth=2, alpha=0.1, min_samples_leaf=1, **parameters).fit(X, y, table.sample_weight)
    tree = model.tree_.check()
    leaves = np.flatnonzero(tree.is_leaf)
    assert tree.leaf[leaves].tolist() == list(range(len(leaves)))
    assert np.all(np.diff(model.objective_path_) <= 0)
    assert to_text(tree, model.columns_)
    text, rules = model.to_text(), model.rules()
    for label in model.classes_:
        assert f"class {label}: " in text
    for leaf, label in enumerate(model.label_[leaves], 1):
        assert f"leaf {leaf}: class {model.classes_[label]}, " in text
    assert max(map(len, text.splitlines())) <= 100
    assert rules["n"].sum() == pytest.approx(model.class_counts_[0].sum())
    inner = np.flatnonzero(~tree.is_leaf)
    parts = model.class_counts_[tree.left[inner]] + model.class_counts_[tree.right[inner]]
    assert model.class_counts_[inner] == pytest.approx(parts)
    path = model.decision_path(X)
    assert np.array_equal(path.toarray().cumsum(axis=1).argmax(axis=1), model.apply(X))
    again = TAOClassifier.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again.tree_ == tree
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert (again.to_text(), again.objective_) == (text, model.objective_)


def test_categories_and_missing_values_are_read_as_they_are():
    X, y = colours()
    model = TAOClassifier(max_depth=3, costs="balanced", alpha=0.5).fit(X, y)
    assert model.score(X, y) > 0.85
    assert {column.name: column.categories for column in model.columns_} == {
        "colour": ("blue", "green", "grey", "red"), "is_new": (False, True), "v": None, "w": None,
    }  # fmt: skip
    text = model.to_text()
    assert "colour is " in text
    assert "x v + " in text
    rules = model.rules()
    assert isinstance(rules, pd.DataFrame)
    assert set(rules["class"]) == {"stop", "go", "wait"}
    assert rules["rule"].str.contains("colour").any()
    assert (rules["of_class"] / rules["n"]).tolist() == pytest.approx(rules["share"].tolist())
    assert rules["coverage"].max() <= 1
    assert rules.loc[rules["class"] == "stop", "of_class"].sum() <= (y == "stop").sum()
    # Each rule describes its leaf: of the words "colour is red" follow the rows with that colour.
    reds = model.predict(X[X["colour"] == "red"])
    assert set(reds) == {"stop"}
    in_polars = TAOClassifier(max_depth=3, costs="balanced", alpha=0.5).fit(pl.from_pandas(X), y)
    assert in_polars.tree_ == model.tree_
    assert isinstance(in_polars.rules(), pl.DataFrame)


def test_a_greedy_start_parts_categories():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 6, 300)
    X = pd.DataFrame({"kind": np.array(list("abcdef"))[code], "noise": rng.normal(size=300)})
    y = np.array([0, 1, 2, 0, 1, 2])[code]
    model = TAOClassifier(max_depth=2, max_iter=0, split="axis").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.n_leaves_ == 3
    assert sorted(model.rules()["rule"]) == ["kind is a or d", "kind is b or e", "kind is c or f"]


def test_places_of_categories_follow_the_share_of_one_of_two_classes():
    rng = np.random.default_rng(0)
    codes, label, weight = rng.integers(0, 254, 4000).astype(np.uint8), rng.integers(0, 2, 4000), rng.random(4000)
    place = category_places(codes, label, weight, 254, 2)
    share = np.bincount(codes, weight * (label == 0), 254) / np.bincount(codes, weight, 254)
    assert np.all(np.diff(share[np.argsort(place)]) >= -1e-9)


def test_columns_are_matched_by_name_and_refused_where_they_are_others():
    X, y = colours(100)
    model = TAOClassifier(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=r"Column 'colour' was used .* Hint: did you mean 'color'?"):
        model.predict(X.rename(columns={"colour": "color"}))
    shuffled = X.assign(more=1)[["v", "more", "w", "colour", "is_new"]]
    assert np.array_equal(model.predict_proba(shuffled), model.predict_proba(X))
    with pytest.raises(TypeError, match="Column 'v' was a number in training"):
        model.apply(X.assign(v=True))
    with pytest.raises(ValueError, match="Column 'w' of X holds infinite values"):
        model.decision_path(X.assign(w=np.inf))
    with pytest.raises(ValueError, match="Column 'w' of X holds infinite values"):
        TAOClassifier().fit(X.assign(w=np.inf), y)
    with pytest.warns(UserWarning, match="1 category in 100 rows that training never saw"):
        model.predict(X.assign(colour="pink"))


def test_codes_may_be_declared_categories():
    X, y = blobs(90, n_classes=3)
    X[:, 2] = y[::-1]
    model = TAOClassifier(categorical_features=[2], max_depth=2).fit(X, y)
    assert model.columns_[2].categories == (0.0, 1.0, 2.0)
    assert TAOClassifier.from_dict(model.to_dict()).get_params() == model.get_params()


def test_many_classes_are_counted_where_they_are_not_listed():
    y = np.arange(9)
    model = TAOClassifier(max_depth=1, min_samples_leaf=1).fit(np.zeros((9, 1)), y)
    words = " ".join(model.to_text().split())
    assert "class 0: 1, class 1: 1, class 2: 1, 5 more classes: 5 Shortened: classes; " in words
    assert model.to_text(exact=True).endswith("class 5: 1, class 6: 1, class 7: 1")
    assert model.rules()["rule"].tolist() == ["all cases"]


def test_damaged_values_are_refused():
    X, y = blobs(60, n_classes=3)
    good = TAOClassifier(max_depth=2).fit(X, y).to_dict()
    for name, value, complaint in (
        ("label", [7] * len(good["label"]), "labels and classes do not fit"),
        ("class_counts", [[1.0]], "counts and classes do not fit"),
        ("costs", [[0.0]], "costs and classes do not fit"),
        ("columns", good["columns"][:1], "tree and columns do not fit"),
        ("tree", {}, "KeyError"),
        ("parameters", {"max_depth": 0}, "max_depth"),
    ):
        with pytest.raises(ValueError, match=f"Not a valid TAOClassifier: .*{complaint}"):
            TAOClassifier.from_dict(good | {name: value})
    with pytest.raises(ValueError, match="Not a valid TAOClassifier: KeyError"):
        TAOClassifier.from_dict({})


# --- files ------------------------------------------------------------------------------------------------------


def check_file(model, path, *others):
    """Save and load a model; whatever is asked of it, also about other tables, is answered to the last bit."""
    model.save(path)
    back = load(path)
    assert (type(back), {*vars(back)}) == (TAOClassifier, {*vars(model)})
    assert back.to_dict() == model.to_dict()
    assert [type(label) for label in back.classes_.tolist()] == [type(label) for label in model.classes_.tolist()]
    for name in ("tree_", "columns_", "objective_", "n_iter_", "n_leaves_", "n_conditions_", "data_hash_"):
        assert getattr(back, name) == getattr(model, name)
    for name in ("classes_", "label_", "class_counts_", "costs_", "objective_path_"):
        assert getattr(back, name).dtype == getattr(model, name).dtype
        assert np.array_equal(getattr(back, name), getattr(model, name))
    for exact in (False, True):
        assert back.to_text(exact=exact) == model.to_text(exact=exact)
        assert back.rules(exact=exact).equals(model.rules(exact=exact))
    for X in others:
        for method in ("predict", "predict_proba", "apply"):
            assert np.array_equal(getattr(back, method)(X), getattr(model, method)(X))
    return back


@pytest.mark.filterwarnings("ignore:.*that training never saw")
@pytest.mark.parametrize(
    ("form", "costs"),
    [
        *((form, "balanced") for form in ("text", "objects", "numbers", "floats", "truth", "one")),
        ("text", None),
        ("numbers", [1.0, 5.0, 0.2]),
        ("objects", np.ones((3, 3)) - np.eye(3)),
    ],
    ids=str,
)
def test_a_file_gives_everything_back(tmp_path, form, costs):
    X, y = colours()
    code = np.unique(y, return_inverse=True)[1]
    labels = {"text": y, "objects": y.astype(object), "numbers": code * 3 - 4, "floats": code + 0.0,
              "truth": code > 0, "one": np.full(len(y), "all")}  # fmt: skip
    weight = np.random.default_rng(7).integers(0, 4, len(y)) / 3
    model = TAOClassifier(max_depth=3, costs=costs, alpha=0.5).fit(X, labels[form], weight)
    later = colours(seed=1)[0]
    later["colour"] = later["colour"].replace("grey", "pink")
    back = check_file(model, tmp_path / "m.toprank", X, later)
    again = TAOClassifier(**back.get_params()).fit(X, labels[form], weight)
    assert again.tree_ == model.tree_


@fewer(3)
@given(st.data(), tables(max_rows=24, max_columns=3))
def test_a_file_gives_any_tree_back(tmp_path_factory, data, table):
    X, y = at_random(data.draw, table)
    how = {
        "init": data.draw(st.sampled_from(["cart", "random"])),
        "split": data.draw(st.sampled_from(["oblique", "axis"])),
    }
    model = TAOClassifier(max_depth=2, alpha=0.1, min_samples_leaf=1, **how).fit(X, y, table.sample_weight)
    check_file(model, tmp_path_factory.getbasetemp() / "any.toprank", X)


def test_what_a_file_leaves_out_and_when_there_is_none(tmp_path):
    X, y = colours(100)
    path = tmp_path / "m.toprank"
    with pytest.raises(NotFittedError):
        TAOClassifier().save(path)
    assert not path.exists()
    first = TAOClassifier(max_depth=2).fit(X, y)
    TAOClassifier(init=first, random_state=np.random.RandomState(0)).fit(X, y).save(path)
    back = load(path)
    assert (back.init, back.random_state) == (None, None)
    assert TAOClassifier(init=back, max_iter=3).fit(X, y).objective_ <= first.objective_


# --- starting from a fitted tree --------------------------------------------------------------------------------


@given(st.data(), tables(max_rows=24, max_columns=3, weights=("none", "whole", "quarters")))
def test_a_start_never_ends_dearer_than_it_began(data, table):
    X, y = at_random(data.draw, table)
    n_iter = data.draw(st.integers(0, 3))
    split = data.draw(st.sampled_from(["oblique", "axis"]))
    shared = {"max_depth": 2, "alpha": data.draw(st.sampled_from([0.0, 0.1, 0.5])), "split": split}
    first = TAOClassifier(init="random", max_iter=n_iter, **shared).fit(X, y, table.sample_weight)
    for init in (first, first.tree_, TAOClassifier.from_dict(first.to_dict())):
        second = TAOClassifier(init=init, max_iter=data.draw(st.integers(0, 3)), **shared).fit(
            X, y, table.sample_weight
        )
        assert np.all(np.diff(second.objective_path_) <= 0)
        # Sums of a finished tree are scaled anew, and with them what they cost.
        if init is first or split == "axis":
            assert second.objective_ <= first.objective_ * (1 + 1e-12)


def test_a_start_may_know_other_costs_other_cases_and_more_classes():
    X, y = colours(200)
    first = TAOClassifier(max_depth=3, init="random").fit(X, y)
    later, z = colours(200, seed=1)
    for costs in (None, "balanced", [1.0, 5.0, 0.5]):
        assert TAOClassifier(costs=costs, init=first).fit(later, z).tree_.check()
    two = TAOClassifier(init=first).fit(later[z != "go"], z[z != "go"])
    assert two.classes_.tolist() == ["stop", "wait"]
    ranker = TAOTree(max_depth=2).fit(X, y == "stop")
    assert TAOClassifier(init=ranker).fit(X, y).tree_.check()


def test_clones_keep_the_start_and_none_is_the_greedy_one():
    X, y = colours(100)
    first = TAOClassifier(max_depth=2).fit(X, y)
    copied = clone(TAOClassifier(init=first, costs=[1.0, 2.0, 3.0]))
    assert copied.init is first
    assert not hasattr(copied, "tree_")
    assert TAOClassifier(max_depth=2, init=None).fit(X, y).tree_ == first.tree_
    again = pickle.loads(pickle.dumps(first))
    assert TAOClassifier(init=again).fit(X, y).tree_ == TAOClassifier(init=first).fit(X, y).tree_


def test_starts_that_do_not_fit_are_refused():
    X, y = colours(100)
    first = TAOClassifier(max_depth=1).fit(X, y)
    for other in (
        X.assign(colour=X["colour"].str.upper()),
        X[["is_new", "colour", "v", "w"]],
        X.rename(columns={"v": "u"}),
    ):
        with pytest.raises(
            ValueError, match="must have the 4 columns of X and their categories, but this TAOClassifier"
        ):
            TAOClassifier(init=first).fit(other, y)
    with pytest.raises(ValueError, match="must be a tree over the 2 columns of X, got one over 4"):
        TAOClassifier(init=first.tree_).fit(X[["v", "w"]], y)
    with pytest.raises(NotFittedError, match="The init of a TAOClassifier must be fitted"):
        TAOClassifier(init=TAOClassifier()).fit(X, y)
    numbers = X[["w"]]
    for model in (DecisionTreeClassifier().fit(numbers, y), MetaAPForest(n_estimators=2).fit(numbers, y == "stop")):
        if hasattr(model, "apply"):
            with pytest.raises(
                ValueError, match=f"must be a model of one tree, but this {type(model).__name__} is not"
            ):
                TAOClassifier(init=model).fit(numbers, y)
    with pytest.raises(ValueError, match="The 'init' parameter of TAOClassifier must be"):
        TAOClassifier(init=X).fit(X, y)
    with pytest.raises(ValueError, match="must be at most 12 for random starts"):
        TAOClassifier(init="random", max_depth=13).fit(numbers, y)
