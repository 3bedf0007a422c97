import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, get_scorer, make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import toprank.metrics
from ranker_cases import CLASSES, make_cases, variant
from toprank import MetaAP
from toprank.datasets import make_audit
from toprank.metrics import average_precision_scorer, lift_at_k, make_at_k_scorer, precision_at_k, recall_at_k

SMALL: dict[str, Any] = {"max_depth": 2, "leaf_depth": 2, "ccp_alpha": 0.0, "cv": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(200, weights=[0.85], random_state=0)


@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_average_precision_scorer_is_that_of_scikit_learn(table, model):
    """The first has a decision_function, the second only predict_proba."""
    X, y = table
    ours = cross_val_score(model, X, y, scoring=average_precision_scorer, cv=3)
    assert ours == pytest.approx(cross_val_score(model, X, y, scoring=get_scorer("average_precision"), cv=3))
    assert ours.min() > 0.3


def test_at_k_scorers_are_the_measures(table):
    X, y = table
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:100], y[:100])
    score = model.predict_proba(X[100:])[:, 1]
    for name, metric in {"precision": precision_at_k, "recall": recall_at_k, "lift": lift_at_k}.items():
        scorer = make_at_k_scorer(name, k=0.5, ties="worst")
        assert scorer(model, X[100:], y[100:]) == pytest.approx(metric(y[100:], score, 0.5, ties="worst"))
    assert make_at_k_scorer(k=7)(model, X[100:], y[100:]) == pytest.approx(precision_at_k(y[100:], score, 7))


@pytest.mark.parametrize("scorer", [average_precision_scorer, make_at_k_scorer("recall", k=0.1, of="cases")])
def test_searches_use_pickled_scorers(table, scorer):
    X, y = table
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, 3]},
        scoring=pickle.loads(pickle.dumps(scorer)),
        cv=3,
        error_score="raise",
    ).fit(X, y)
    means = search.cv_results_["mean_test_score"]
    assert np.isfinite(means).all()
    assert search.best_index_ == np.argmax(means)


def test_labels_can_be_strings_and_the_positive_one_chosen(table):
    X, y = table
    names = np.where(y == 1, "fraud", "ok")  # 'fraud' < 'ok': the positive label is not the larger one
    model = LogisticRegression().fit(X, names)
    chosen = make_at_k_scorer("precision", k=10, pos_label="fraud")(model, X, names)
    assert chosen == pytest.approx(precision_at_k(y, -model.decision_function(X), 10))
    assert make_at_k_scorer("precision", k=10)(model, X, names) == pytest.approx(
        precision_at_k(1 - y, model.decision_function(X), 10)
    )


def test_weights_reach_the_scorer(table):
    X, y = table
    model = LogisticRegression().fit(X, y)
    weight = np.arange(len(y)) % 3 + 1
    assert average_precision_scorer(model, X, y, sample_weight=weight) == pytest.approx(
        toprank.metrics.average_precision(y, model.decision_function(X), sample_weight=weight)
    )


@pytest.fixture(scope="module")
def named():
    """A table whose positive label is the smaller one."""
    X, y = make_classification(300, weights=[0.85], random_state=0)
    return X, np.where(y == 1, "bad", "good")


@pytest.mark.parametrize(("kind", "low"), [*((kind, "bad") for kind in CLASSES), ("rate", 0), ("forest", 0)])
def test_every_ranker_is_scored_by_its_own_label(kind, low):
    """The positive label is classes_[0], which decision_function points to."""
    X, is_positive = make_cases(300)
    y = np.where(is_positive == 1, *(("bad", "good") if low == "bad" else (0, 1)))
    model = variant(kind, pos_label=low).fit(X, y)
    score = model.decision_function(X)
    assert model.positive_index_ == 0
    weight = np.arange(len(y)) % 3 + 1
    assert average_precision_scorer(model, X, y) == model.score(X, y)
    assert average_precision_scorer(model, X, y, sample_weight=weight) == model.score(X, y, sample_weight=weight)
    for pos_label in (None, low):
        scorer = make_at_k_scorer("precision", 20, pos_label=pos_label)
        assert scorer(model, X, y) == precision_at_k(is_positive, score, 20)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: make_pipeline(FunctionTransformer(), make_pipeline(StandardScaler(), model)),
        lambda model: GridSearchCV(model, {"max_depth": [1, 2]}, cv=2),
        lambda model: GridSearchCV(make_pipeline(StandardScaler(), model), {"metaap__max_depth": [1, 2]}, cv=2),
        lambda model: make_pipeline(StandardScaler(), GridSearchCV(model, {"max_depth": [1, 2]}, cv=2)),
        lambda model: FixedThresholdClassifier(model, threshold=0.5, pos_label="bad"),
    ],
    ids=["pipeline", "nested-pipeline", "search", "search-of-pipeline", "pipeline-of-search", "threshold"],
)
def test_a_ranker_is_found_inside(named, wrap):
    X, y = named
    model = wrap(MetaAP(pos_label="bad", **SMALL)).fit(X, y)
    expected = average_precision_score(y == "bad", model.decision_function(X))
    assert average_precision_scorer(model, X, y) == pytest.approx(expected)
    assert expected > 0.5


def test_searches_and_cross_validation_use_the_label_of_the_ranker(named):
    X, y = named
    model = make_pipeline(StandardScaler(), MetaAP(pos_label="bad", **SMALL))
    own = cross_val_score(model, X, y, cv=3)
    # Scorers of scikit-learn share one call of decision_function, which one of them may have turned round; not ours.
    scoring = {"ap": average_precision_scorer, "hits": make_at_k_scorer("precision", 5)}
    turned = make_scorer(average_precision_score, pos_label="bad", response_method="decision_function")
    result = cross_validate(
        model, X, y, cv=3, scoring={"turned": turned, "twice": turned, **scoring}, error_score="raise"
    )
    assert result["test_ap"] == pytest.approx(own)
    assert result["test_turned"].max() < own.min()
    assert cross_val_score(model, X, y, cv=3, scoring="roc_auc").max() < 0.5  # as docs/scores.md says
    assert result["test_hits"] == pytest.approx(cross_val_score(model, X, y, cv=3, scoring=scoring["hits"]))
    grid = {"metaap__max_depth": [1, 2], "metaap__leaf_depth": [1, 2]}
    ours = clone(GridSearchCV(model, grid, cv=3, scoring=average_precision_scorer, error_score="raise")).fit(X, y)
    default = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert ours.cv_results_["mean_test_score"] == pytest.approx(default.cv_results_["mean_test_score"])
    assert ours.score(X, y) == pytest.approx(default.score(X, y))
    refit = GridSearchCV(model, grid, cv=3, scoring=scoring, refit="ap").fit(X, y)
    assert refit.best_params_ == default.best_params_
    assert pickle.loads(pickle.dumps(refit)).score(X, y) == refit.score(X, y)


@pytest.mark.parametrize("model", [MetaAP(pos_label="bad", **SMALL), LogisticRegression()])
@pytest.mark.parametrize("several", [False, True])
def test_weights_are_routed(named, model, several):
    X, y = named
    weight = np.arange(len(y)) % 3 + 1
    with sklearn.config_context(enable_metadata_routing=True):
        asks = make_at_k_scorer("recall", 0.1, of="cases").set_score_request(sample_weight=True)
        ignores = make_at_k_scorer("recall", 0.1, of="cases").set_score_request(sample_weight=False)
        model = clone(model).set_fit_request(sample_weight=False)
        values = []
        for scorer in (asks, pickle.loads(pickle.dumps(asks))):
            scoring = {"one": scorer, "two": ignores} if several else scorer
            result = cross_validate(model, X, y, cv=3, scoring=scoring, params={"sample_weight": weight})
            values.append(result["test_one" if several else "test_score"])
    plain = cross_val_score(model, X, y, cv=3, scoring=make_at_k_scorer("recall", 0.1, of="cases"))
    assert values[0] == pytest.approx(values[1])
    assert np.abs(values[0] - plain).max() > 1e-6
    if several:
        assert result["test_two"] == pytest.approx(plain)


def test_searches_hand_weights_on_without_routing(named):
    """`_accept_sample_weight` is what scikit-learn asks then."""
    X, y = named
    weight = np.arange(len(y)) % 3 + 1
    model = MetaAP(pos_label="bad", **SMALL)
    folds = list(StratifiedKFold(3).split(X, y))
    expected = [
        clone(model).fit(X[train], y[train], weight[train]).score(X[test], y[test], weight[test])
        for train, test in folds
    ]
    scoring = {"ap": average_precision_scorer, "hits": make_at_k_scorer("precision", 5)}
    for chosen, name in ((average_precision_scorer, "score"), (scoring, "ap")):
        search = GridSearchCV(model, {}, cv=folds, scoring=chosen, refit="ap").fit(X, y, sample_weight=weight)
        assert search.cv_results_[f"mean_test_{name}"] == pytest.approx(np.mean(expected))
        assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_the_label_of_a_scorer_must_be_that_of_the_ranker(named):
    X, y = named
    model = make_pipeline(StandardScaler(), MetaAP(pos_label="bad", **SMALL)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"scorer of lift_at_k must have the pos_label of the MetaAP .* Got 'good' inst"
    ):
        make_at_k_scorer("lift", 10, pos_label="good")(model, X, y)
    with pytest.raises(ValueError, match=r"'pos_label' parameter of average_precision must be one of the labels in y"):
        average_precision_scorer(model, X, y == "bad")


def test_scorers_say_what_they_are():
    assert repr(average_precision_scorer) == (
        "make_scorer(average_precision, response_method=('decision_function', 'predict_proba'))"
    )
    assert repr(make_at_k_scorer("lift", 5)).endswith("k=5, of=positives, ties=expected)")


def test_the_example_of_the_page_runs():
    page = (Path(__file__).resolve().parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
    section = page.partition("## Scorers\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    data = make_audit(1500, random_state=0)
    names = {"X": data.X, "y": data.y}
    exec(compile(block, "docs/metrics.md", "exec"), names)
    assert all(np.isfinite(names["result"][f"test_{name}"]).all() for name in ("ap", "hits", "money"))


def test_unknown_choices_are_refused():
    with pytest.raises(
        ValueError, match=r"'metric' parameter of make_at_k_scorer must be one of .* Got 'gain' instead"
    ):
        make_at_k_scorer("gain")
    with pytest.raises(ValueError, match=r"'ties' parameter of make_at_k_scorer must be one of"):
        make_at_k_scorer(ties="grouped")
    with pytest.raises(ValueError, match=r"'of' parameter of make_at_k_scorer must be one of"):
        make_at_k_scorer(of="rows")


def test_every_public_name_is_there():
    assert set(toprank.metrics.__all__) <= set(dir(toprank.metrics))
    for name in toprank.metrics.__all__:
        assert callable(getattr(toprank.metrics, name))
    with pytest.raises(AttributeError, match="has no attribute 'mean_reciprocal_rank'"):
        toprank.metrics.mean_reciprocal_rank  # noqa: B018


def test_the_measures_load_neither_scikit_learn_nor_scipy_stats():
    """Only what the measures add counts, whatever the package itself has loaded before."""
    program = (
        "import sys, toprank; before = set(sys.modules)\n"
        "from toprank.metrics import average_precision, bootstrap_interval, proportion_interval\n"
        "bootstrap_interval(average_precision, [0, 1, 1], [1, 2, 0], n_resamples=2)\n"
        "proportion_interval(1, 2)\n"
        "print([m for m in ('sklearn', 'scipy.stats', 'pandas') if m in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
