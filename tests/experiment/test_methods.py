"""Every method by name: it fits, ranks, repeats itself, tells its size, and sweeps say what refits say."""

import subprocess
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from toprank import InputError, MetaAPForest, RankBoost, RankingTree
from toprank.experiment.registry import Method, find_method, list_methods
from toprank.experiment.search import scores_of
from toprank.metrics import average_precision
from toprank.register import BY_COMMAND

METHODS = {method.name: method for method in list_methods()}
SWEPT = [name for name, method in METHODS.items() if method.sweep]

# The strongest penalty leaves no coefficient on 80 rows; 2 bags take a quarter of the time of 8; 80 trees of the grid
# of a curve are not fitted; 10 trees are a forest; two rankers are a stack; and folds for rates change no score.
FIRST: dict[str, dict[str, Any]] = {
    "logistic-l1": {"C": 1.0},
    "ebm": {"outer_bags": 2},
    "cost-curve": {"depths": [1], "alphas": [0.3], "cv": 0},
    **{name: {"n_estimators": 10} for name, method in METHODS.items() if method.family == "forest"},
    **{name: {"n_estimators": 10} for name in ("metaap-forest", "metaap-forest-paper", "treerank-forest")},
    **{name: {"n_estimators": 10} for name in ("treerank-boost", "rus-boost", "balanced-bagging")},
    **{name: {"n_estimators": 3} for name in ("easy-ensemble", "balance-cascade")},
    "stacked": {"rankers": [RankingTree(max_depth=2, cv=0), RankBoost(n_estimators=5, cv=0)], "cv": 0},
    **{name: {"cv": 0} for name in ("scorecard", "scorecard-tree")},
    "red-flags": {"teacher": None, "cv": 0},
}


@cache
def easy_table() -> tuple[np.ndarray, np.ndarray]:
    """120 rows, 6 columns, 20 positives: those with the largest sum of the first two columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = np.zeros(120, int)
    y[np.argsort(-(X[:, 0] + X[:, 1]))[:20]] = 1
    return X, y


def as_read(method: Method, X: np.ndarray):
    """Rows as the method reads them; the columns are at mean 0 and deviation 1 as they are."""
    return pd.DataFrame(X, columns=list("abcdef")) if method.reads == "frame" else X


def installed(name: str) -> Method:
    """The method, or a skip with the packages that are missing."""
    method = find_method(name)
    if method.missing_packages:
        pytest.skip(f"{name} needs {', '.join(method.missing_packages)}")
    return method


def first_setting(method: Method) -> dict:
    first = {parameter: values[0] for parameter, values in method.space.items()}
    if method.sweep is not None and method.sweep.parameter == "n_estimators" and method.family == "toprank":
        first["n_estimators"] = 30  # instead of folds of its own
    return first | FIRST.get(method.name, {})


def fit_first(method: Method) -> Any:
    X, y = easy_table()
    return method.make(random_state=3, **first_setting(method)).fit(as_read(method, X[:80]), y[:80])


@cache
def fitted(name: str) -> Any:
    """The method fitted to the first 80 rows; tests read it and leave it as it is."""
    return fit_first(METHODS[name])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_fits_ranks_repeats_itself_and_tells_its_size(name, capfd):
    method = installed(name)
    X, y = easy_table()
    rows = as_read(method, X[:80])
    model = fit_first(method)
    score = scores_of(model, rows)
    assert score.shape == (80,)
    assert np.isfinite(score).all()
    assert average_precision(y[:80], score) > 2 * y[:80].mean()  # a constant has y.mean()
    assert np.array_equal(score, scores_of(fitted(name), rows))
    number, unit = method.size(model)
    assert number > 0
    units = ("conditions", "conditions and coefficients", "coefficients", "curves", "conditions and bins", "bins")
    assert unit in (units if method.is_readable else (*units, "leaves", "rankers", "rows"))
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize("name", METHODS)
def test_rows_that_were_not_seen_are_ranked_one_by_one(name):
    method = installed(name)
    X, y = easy_table()
    model, new = fitted(name), as_read(method, X[80:])
    together = scores_of(model, new)
    assert average_precision(y[80:], together) > y[80:].mean()
    alone = [scores_of(model, new[i : i + 1])[0] for i in range(3)]
    assert np.allclose(together[:3], alone, rtol=1e-12, atol=1e-12)  # sums over trees or neighbours may round otherwise


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_described(name):
    method = METHODS[name]
    assert name == name.lower()
    assert method.family in ("toprank", "tree", "forest", "linear", "boosting", "balanced", "neighbours", "additive")
    assert method.summary.endswith(".")
    assert len(method.summary) < 110
    n_fits = np.prod([len(v) for p, v in method.space.items() if not method.sweep or p != method.sweep.parameter])
    assert n_fits <= 12
    assert (method.reads == "frame") == (method.family == "toprank")


@pytest.mark.parametrize("command", BY_COMMAND)
def test_a_name_of_the_command_line_is_the_same_model_as_a_method(command):
    method = find_method(command)
    if method.missing_packages:
        pytest.skip(f"needs {method.missing_packages}")
    made, own = method.make(), BY_COMMAND[command].load()()
    of_trials = {"cv": 0, "n_jobs": 1, "random_state": 0}  # how a trial is run, not what is fitted
    given = {key: value for key, value in made.get_params(deep=False).items() if key not in of_trials}
    assert repr(given) == repr({key: value for key, value in own.get_params(deep=False).items() if key in given})


def test_own_methods_come_first_and_names_differ():
    families = [method.family for method in list_methods()]
    n_own = families.count("toprank")
    assert families[:n_own] == ["toprank"] * n_own
    assert len({method.title for method in list_methods()}) == len(METHODS)


def test_an_estimator_can_be_cloned():
    for method in METHODS.values():
        if not method.missing_packages:
            made = method.make(random_state=1, **first_setting(method))
            assert repr(clone(made)) == repr(made)


# The others have none: one tree, one optimisation, or rounds that build on one another.
THREADED = [name for name, method in METHODS.items()
            if method.family not in ("tree", "linear") and name not in ("rus-boost", "balance-cascade")]  # fmt: skip


@pytest.mark.parametrize("name", THREADED)
def test_threads_are_passed_on(name):
    method = installed(name)
    parameters = method.make(n_jobs=2).get_params(deep=True)
    threads = [v for p, v in parameters.items() if p.rpartition("__")[2] in ("n_jobs", "thread_count", "n_threads")]
    assert 2 in threads
    assert set(threads) <= {2, None}


# --- sweeps -------------------------------------------------------------------------------------------------

# Forests choose at random between conditions of equal gain, and a tree that stops earlier draws otherwise.
TIES = {"entropy-forest": 2, "gini-forest": 2, "entropy-forest-paper": 2}


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_says_what_refits_say(name):
    method = installed(name)
    X, y = easy_table()
    known, new, parameter = as_read(method, X[:90]), as_read(method, X[90:]), method.sweep.parameter
    few = {"max_depth": (3, 1, 2), "n_neighbors": (9, 1, 200), "depth": (2, 3)}.get(parameter, (10, 3, 15))
    few = tuple(v for v in few if v <= TIES.get(name, v))
    others = {p: v for p, v in first_setting(method).items() if p != parameter}
    largest = method.make(**others, **{parameter: max(few)}).fit(known, y[:90])
    swept = method.sweep.scores(largest, new, few)
    assert swept.shape == (len(few), 30)
    for value, score in zip(few, swept, strict=True):
        refit = scores_of(method.make(**others, **{parameter: value}).fit(known, y[:90]), new)
        assert np.allclose(score, refit, rtol=1e-12, atol=1e-12), f"{parameter}={value}"
    assert not np.array_equal(swept[0], swept[1])


@pytest.mark.parametrize("name", ["gini", "entropy-rate", "tree", "metaap-margin", "entropy-forest"])
def test_values_beyond_the_last_depth_take_the_last(name):
    method = METHODS[name]
    X, y = easy_table()
    rows = as_read(method, X)
    model = method.make(max_depth=4).fit(rows, y)
    scores = method.sweep.scores(model, rows, [4, None, 50])
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    assert np.allclose(scores[0], scores_of(model, rows), rtol=1e-12)


def test_an_unlimited_tree_is_the_largest_of_a_sweep():
    method = METHODS["gini-rate"]
    X, y = easy_table()
    model = method.make(max_depth=None).fit(X, y)
    swept = method.sweep.scores(model, X, [2, None])
    assert np.array_equal(swept[0], method.make(max_depth=2).fit(X, y).decision_function(X))
    assert np.array_equal(swept[1], model.decision_function(X))


def test_inner_trees_as_deep_as_the_meta_tree_are_not_swept():
    method = METHODS["metaap-margin"]
    X, y = easy_table()
    model = method.make(max_depth=2, leaf_depth=None).fit(X, y)
    with pytest.raises(ValueError, match=r"leaf_depth is a number.*Hint: use the method metaap-paper"):
        method.sweep.scores(model, X, [1, 2])


# --- names --------------------------------------------------------------------------------------------------


def test_unknown_names_give_a_hint():
    with pytest.raises(ValueError, match=r"There is no method 'metap'. Hint: did you mean 'metaap'"):
        find_method("metap")
    with pytest.raises(ValueError, match=r"There is no method 'zzz'. Hint: known are metaap, "):
        find_method("zzz")


def test_a_missing_package_is_told():
    method = METHODS["cart"]
    absent = Method("x", "X", "tree", method.make, packages=("sklearn", "no_such_package"))
    assert absent.missing_packages == ["no_such_package"]
    wanted = {"xgboost": "xgboost", "lightgbm-ranker": "lightgbm", "catboost": "catboost", "ebm": "interpret",
              "lmnn": "metric_learn", "rus-boost": "imblearn"}  # fmt: skip
    for name, package in wanted.items():
        assert METHODS[name].packages == (package,)


# --- details ------------------------------------------------------------------------------------------------


def test_the_published_methods_are_those_of_the_paper():
    tree = METHODS["gini"].make(max_depth=5)
    assert (tree.leaf_score, tree.min_samples_leaf, tree.min_gain, tree.smoothing) == ("margin", 1, -np.inf, None)
    assert tree.splitter == "midpoint"
    assert METHODS["gini"].space["max_depth"] == (2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    published = METHODS["cart-distance"].make(criterion="entropy", max_depth=5, random_state=1)
    assert (published.criterion, published.min_samples_leaf, published.random_state) == ("entropy", 1, 1)
    meta = METHODS["metaap-paper"].make(depth=3)
    assert (meta.max_depth, meta.leaf_depth, meta.leaf_order, meta.min_samples_leaf) == (3, None, "meta", 1)
    assert not meta.stop_at_ap_loss
    forest = METHODS["metaap-forest-paper"].make(depth=3, random_state=7)
    assert (forest.n_estimators, forest.max_depth, forest.leaf_depth, forest.random_state) == (100, 3, None, 7)
    bagged = METHODS["entropy-forest"].make(max_depth=3)
    assert (bagged.n_estimators, bagged.criterion, bagged.max_features, bagged.bootstrap) == (
        100,
        "entropy",
        None,
        True,
    )


def test_trees_for_costs_are_those_of_their_names():
    assert [METHODS[name].make().split for name in ("tao", "tao-axis")] == ["oblique", "axis"]
    assert METHODS["tao"].make(split="axis").split == "axis"  # a plan may say otherwise
    assert not METHODS["cost-curve"].space  # depth and penalty are chosen inside, as is pruning
    assert not METHODS["cost-tree"].space
    X, y = easy_table()
    curve = METHODS["cost-curve"].make(depths=[2], alphas=[0.1], cv=0).fit(X, y)
    assert METHODS["cost-curve"].size(curve) == (sum(point.tree.n_leaves_ for point in curve.path_), "leaves")
    assert not METHODS["cost-curve"].is_readable  # all trees make the ranking
    ranker = METHODS["tao"].make(max_depth=2, alpha=0.1).fit(X, y)
    tree = ranker.tree_
    n_terms = [max(1, tree.oblique_at[node + 1] - tree.oblique_at[node]) for node in np.flatnonzero(~tree.is_leaf)]
    assert METHODS["tao"].size(ranker) == (sum(n_terms), "conditions")  # a sum counts once per term
    assert sum(n_terms) > len(n_terms)


def test_coefficients_of_a_scorecard_are_counted():
    X, y = easy_table()
    model = METHODS["metaap"].make(leaf_score="linear", max_depth=1, leaf_depth=1, ccp_alpha=0.0).fit(X, y)
    card = model.tree_.scoring
    n_coefficients = np.count_nonzero(card.weight) + np.count_nonzero(card.category_points)
    assert n_coefficients > 0
    assert model.n_conditions_ > 0
    size, unit = METHODS["metaap"].size(model)
    assert (size, unit) == (model.n_conditions_ + n_coefficients, "conditions and coefficients")
    pruned = METHODS["metaap"].make(leaf_score="linear", ccp_alpha=10.0).fit(X, y)
    assert METHODS["metaap"].size(pruned) == (np.count_nonzero(pruned.tree_.scoring.weight), "coefficients")
    middle = (np.abs(X[:, 0]) < 0.4).astype(int)  # points for a range of values
    steps = METHODS["metaap"].make(ccp_alpha=10.0).fit(X, middle)
    assert len(steps.tree_.scoring.step_points) > 0
    n_points = np.count_nonzero(steps.tree_.scoring.weight) + len(steps.tree_.scoring.step_points)
    assert METHODS["metaap"].size(steps) == (n_points, "coefficients")
    linear = METHODS["logistic-l2"].make().fit(X, y)
    assert METHODS["logistic-l2"].size(linear) == (6, "coefficients")
    tree = METHODS["cart"].make(max_depth=2).fit(X, y)
    assert METHODS["cart"].size(tree) == (tree.get_n_leaves() - 1, "conditions")


def test_costs_move_a_tree():
    X, y = easy_table()
    noisy = np.where(np.random.default_rng(1).random(120) < 0.1, 1 - y, y)
    cheap, dear = (METHODS["cart-cost"].make(positive_weight=w, max_depth=2).fit(X, noisy) for w in (1.0, 30.0))
    assert dear.predict(X).sum() > cheap.predict(X).sum()


def walk(estimator, row, depth):
    """Rate and distance to the nearest threshold of one row at a depth of one tree, step by step."""
    tree, node, nearest = estimator.tree_, 0, np.inf
    for _ in range(depth):
        if tree.children_left[node] < 0:
            break
        value = row[tree.feature[node]]
        nearest = min(nearest, abs(value - tree.threshold[node]))
        is_left = np.float32(value) <= tree.threshold[node]
        node = tree.children_left[node] if is_left else tree.children_right[node]
    return tree.value[node, 0, 1], nearest


def test_forests_are_read_at_each_depth_as_by_hand():
    X, y = easy_table()
    for name in ("entropy-forest", "entropy-forest-paper"):
        method = METHODS[name]
        forest = method.make(n_estimators=5, max_depth=6, random_state=0).fit(X, y)
        swept = method.sweep.scores(forest, X[:30], [1, 3, 6])
        for depth, score in zip((1, 3, 6), swept, strict=True):
            found = np.array([[walk(tree, row, depth) for tree in forest.estimators_] for row in X])
            expected, nearest = found[:, :, 0], found[:, :, 1]
            if name == "entropy-forest-paper":
                signed = np.sign(expected - 0.5) * nearest
                expected = signed / np.ptp(signed, axis=0)  # over the training cases
            assert np.allclose(score, expected.mean(axis=1)[:30], rtol=1e-12)


def test_a_forest_of_bare_roots_scores_all_rows_alike():
    X, y = easy_table()
    for name in ("entropy-forest", "entropy-forest-paper"):
        method = METHODS[name]
        forest = method.make(n_estimators=3, min_samples_leaf=60, max_depth=4).fit(X, y)
        assert len(np.unique(method.sweep.scores(forest, X, [2, 4])[1])) <= 2**3
        stub = method.make(n_estimators=3, min_samples_leaf=100, max_depth=4).fit(X, y)
        swept = method.sweep.scores(stub, X, [1, None])
        assert np.isfinite(swept).all()
        assert len(np.unique(swept)) == 1


def test_splines_bend_columns_of_many_values_only():
    X, y = easy_table()
    X = np.column_stack((X[:, :2], X[:, 2] > 0, np.ones(120), np.where(X[:, 3] > 1, X[:, 3], 0.0))).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = METHODS["logistic-splines"].make(C=1.0).fit(X, y)
    assert model[0].transformers_[0][2] == [0, 1]
    assert np.isfinite(model.decision_function(X + 100)).all()  # far outside: straight on


def test_a_bent_effect_needs_splines():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.abs(X[:, 0]) > 1.5).astype(int)
    bent, straight = (
        average_precision(y, METHODS[name].make(C=10.0).fit(X, y).decision_function(X))
        for name in ("logistic-splines", "logistic-l2")
    )
    assert bent > 0.95
    assert straight < 0.6


def test_a_sparse_model_counts_what_is_not_zero():
    X, y = easy_table()
    sizes = [METHODS["logistic-l1"].size(METHODS["logistic-l1"].make(C=c).fit(X, y))[0] for c in (0.03, 0.3, 10.0)]
    assert sizes[0] < sizes[1] <= sizes[2] <= 6


def test_a_fresh_process_lists_methods_without_their_packages_and_finds_the_functions_of_the_package():
    packages = sorted({package for method in list_methods() for package in method.packages})
    assert "xgboost" in packages
    code = (
        "import sys; from toprank.experiment.registry import list_methods; list_methods(); "
        f"print([p for p in {packages!r} if p in sys.modules]); import toprank.experiment as e; "
        "assert callable(e.compare) and callable(e.compare) and callable(e.run)"  # also after a first look
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_plans_name_what_boosting_starts_from():
    made = {name: find_method("sgbap").make(init=name).init for name in ("none", "ridge", "metaap-forest")}
    assert (made["none"], type(made["metaap-forest"])) == (None, MetaAPForest)
    X = np.column_stack((np.arange(40.0), np.where(np.arange(40) % 3, 1.0, np.nan)))
    assert made["ridge"].fit(X, np.arange(40) > 30).decision_function(X).argmax() == 39
    with pytest.raises(InputError, match="ridge"):
        find_method("sgbap").make(init="rigde")
