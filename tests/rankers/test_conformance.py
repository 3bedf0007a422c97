"""scikit-learn's own checks on every estimator, and our counterpart of the two that do not fit a ranker."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ranker_cases import BOOSTERS, CLASSES, EVERY, OTHERS, RANKERS, make_cases
from sklearn_checks import OF_EVERY_CLASS, sklearn_checks
from toprank import (
    SGBAP,
    CostOptimalCurve,
    CostOptimalForest,
    CostTree,
    LambdaMART,
    LogisticBoost,
    MAPBoost,
    MetaAP,
    MetaAPForest,
    PairwiseBoost,
    RankBoost,
    RankingTree,
    RedFlags,
    Scorecard,
    ScorecardTree,
    StackedRanker,
    TAOClassifier,
    TAOTree,
    TreeRank,
    TreeRankBoost,
    TreeRankForest,
)
from toprank.rankers.boosting.booster import Booster

LINE_AT_ZERO = (
    "asserts that predict says positive where decision_function > 0, and where predict_proba is above one half; a "
    "ranker's score lives in (0, 1] and predict draws its line at the cutoff of the budget, by default at as many "
    "cases as there are positives, or takes the label that costs "
    "least. test_predict_is_the_score_above_the_cutoff and the tests after it check the rest"
)
FOR_COSTS = ["cost", "tao", "cost-curve", "cost-forest"]
SIGNED = {
    "boost": (-1.001, 1),
    **dict.fromkeys(["additive-boost", *BOOSTERS, *OTHERS], (-np.inf, np.inf)),
}  # scores around 0
DRAWS_ROWS = "bootstraps draw rows, so a row given twice is drawn otherwise than a row of weight 2"

ANY_ORDER = (
    "wants an error where columns come in another order, or where there are more than in training; here columns of a "
    "data frame are matched by name, as test_columns_are_matched_by_name checks"
)


def expected_failures(estimator):
    """Checks that cannot hold, and why."""
    reasons = {"check_dataframe_column_names_consistency": ANY_ORDER}
    if isinstance(estimator, TAOClassifier):
        return reasons
    reasons |= dict.fromkeys(("check_classifiers_train", "check_classifiers_classes"), LINE_AT_ZERO)
    if isinstance(estimator, CostOptimalForest | MetaAPForest | TreeRankForest | Booster):
        reasons["check_sample_weight_equivalence_on_dense_data"] = DRAWS_ROWS
    return reasons


# The checks are about parameters, labels, shapes and copies, of which a family of rankers has one code. How variants
# score is under the laws of test_laws.py. Folds are those of `Ranker.fit` in all, so one estimator has them.
FAMILIES = [
    RankingTree(cv=2),
    MetaAP(cv=0),
    MetaAPForest(n_estimators=2),
    CostOptimalCurve(depths=None, alphas=None, cv=0, cost_factor=16.0),
    TAOTree(cv=0),
    TAOClassifier(),
    TreeRankBoost(n_estimators=2, cv=0),
    SGBAP(n_estimators=3, cv=0, init=RankBoost(n_estimators=2, cv=0)),
    RankBoost(n_estimators=3, cv=0),
    RedFlags(teacher=None, max_rules=2, max_features=2, cv=0),
    StackedRanker([RankingTree(cv=0), RankBoost(n_estimators=3, cv=0)], cv=2),
    ScorecardTree(max_features=2, cv=0),
]
"""One of each family, for all checks."""

RELATIVES = [
    CostTree(cv=0),
    CostOptimalForest(n_estimators=2, cost_factor=50.0),
    TreeRank(cv=0),
    TreeRankForest(n_estimators=2),
    LogisticBoost(n_estimators=3, cv=0),
    PairwiseBoost(n_estimators=3, cv=0),
    MAPBoost(n_estimators=3, cv=0),
    LambdaMART(n_estimators=3, cv=0),
    Scorecard(max_features=2, cv=0),
]
"""Other classes of these families, which add parameters and their own part of `fit`: the checks of those alone."""


@pytest.mark.filterwarnings("ignore:No tree found a split")  # tables of a few rows
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *sklearn_checks(FAMILIES, expected_failures, still_fail=(RankingTree, MetaAPForest)),
        *sklearn_checks(RELATIVES, expected_failures, only=OF_EVERY_CLASS),
    ],
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    return rng.normal(size=(120, 3)) + 2.5 * y[:, None], y


@pytest.fixture(scope="module")
def plain(blobs):
    """Models of the blobs by kind, which no test changes."""
    return {kind: clone(RANKERS[kind]).fit(*blobs) for kind in CLASSES}


@pytest.mark.parametrize(
    ("kind", "budget"), [*((kind, None) for kind in EVERY), *((kind, 40) for kind in CLASSES)], ids=str
)
def test_predict_is_the_score_above_the_cutoff(kind, budget):
    X, y = make_cases(300)
    model = clone(EVERY[kind]).set_params(budget=budget).fit(X, y)
    score = model.decision_function(X)
    assert score.shape == (300,)
    assert score.dtype == np.float64
    low, high = SIGNED.get(kind, (0, 1))
    assert np.all((score > low) & (score <= high))
    if budget is None and kind in FOR_COSTS:
        assert np.array_equal(model.predict(X) == 1, _least_cost_labels(model, X))
    else:
        assert np.array_equal(model.predict(X) == 1, score >= model.cutoff_.threshold)


def _least_cost_labels(model, X):
    """What the leaves of a tree, or of the trees at a curve's base cost, call each row."""
    X, point = model._encode(X), model if hasattr(model, "tree_") else model.path_[model.base_point_].tree
    trees = [(point.tree_, point._label)] if hasattr(point, "tree_") else zip(point.trees, point.labels, strict=True)
    return np.mean([label[tree.apply(X)] == 1 for tree, label in trees], axis=0) >= 0.5


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_names_of_a_transformer_reach_the_rules(output):
    X, y = make_cases(300)
    steps = [("scaled", StandardScaler(), ["size", "age"]),
             ("kind", OneHotEncoder(sparse_output=False), ["place"])]  # fmt: skip
    features = ColumnTransformer(steps).set_output(transform=output)
    model = make_pipeline(features, MetaAP(max_depth=2, leaf_depth=2, cv=0)).fit(X, y)
    names = features.get_feature_names_out().tolist()
    assert model[-1].feature_names_in_.tolist() == names
    assert any(name in rule for rule in model[-1].rules()["rule"] for name in names)
    assert np.array_equal(model.decision_function(X), model[-1].decision_function(model[:-1].transform(X)))


@pytest.mark.parametrize(
    ("kind", "labels"),
    [*((kind, ("one", "two")) for kind in CLASSES), *(("rate", each) for each in ((False, True), (-1, 1), (7.0, 9.0)))],
    ids=str,
)  # labels become 0 and 1 before a model grows
def test_labels_of_any_kind_come_back(kind, labels, blobs, plain):
    X, y = blobs
    named = np.array(labels)[y]
    model = clone(RANKERS[kind]).fit(X, named)
    assert model.classes_.tolist() == list(labels)
    assert np.array_equal(model.decision_function(X), plain[kind].decision_function(X))
    assert model.predict(X).dtype == named.dtype
    assert np.mean(model.predict(X) == named) > 0.83
    assert model.predict_proba(X).shape == (120, 2)
    assert model.score(X, named) == plain[kind].score(X, y) > 0.9


@pytest.mark.parametrize("kind", CLASSES)
def test_pos_label_turns_the_ranking_round(kind, blobs, plain):
    X, y = blobs
    model = clone(RANKERS[kind]).set_params(pos_label="no").fit(X, np.where(y, "no", "yes"))
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(model.decision_function(X), plain[kind].decision_function(X))
    assert np.array_equal(model.predict_proba(X)[:, 0], plain[kind].predict_proba(X)[:, 1])
    assert np.array_equal(model.predict(X) == "no", plain[kind].predict(X) == 1)


METHODS = ("decision_function", "predict", "predict_proba", "apply", "decision_path", "explain", "score", "top_k")
WORDS = ("rules", "to_text", "to_plain", "summary", "feature_importances_", "n_leaves_")


@pytest.mark.parametrize("kind", CLASSES)
def test_nothing_works_before_fit(kind, blobs, tmp_path):
    X, y = blobs
    model = clone(RANKERS[kind])
    for method in METHODS:
        arguments = {"score": (X, y), "top_k": (X, 3)}.get(method, (X,))
        with pytest.raises(NotFittedError):
            getattr(model, method)(*arguments)
    for what in WORDS:
        with pytest.raises(NotFittedError):
            getattr(model, what)()
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.toprank")
    assert not list(tmp_path.iterdir())


def test_searches_pipelines_and_folds_accept_a_ranker(blobs):
    X, y = blobs
    assert cross_val_score(MetaAP(max_depth=2, min_samples_leaf=5, cv=0), X, y, cv=3).min() > 0.8
    search = GridSearchCV(RankingTree(cv=0), {"max_depth": [1, 3]}, cv=3).fit(X, y)
    assert search.best_params_["max_depth"] in (1, 3)
    assert make_pipeline(StandardScaler(), MetaAPForest(n_estimators=3, random_state=0)).fit(X, y).score(X, y) > 0.9
