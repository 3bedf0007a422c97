import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

import toprank.metrics
from toprank.metrics import average_precision_scorer, lift_at_k, make_at_k_scorer, precision_at_k, recall_at_k


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
