import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from toprank import MetaAP, RankingTree
from toprank.datasets import make_audit
from toprank.experiment.column_scorers import make_entity_scorer, make_money_scorer
from toprank.experiment.prequential import PrequentialSplit
from toprank.metrics import distinct_entity_precision_at_k, gain_at_k, per_period

FEATURES = ["a", "b"]


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(400, 2)), columns=FEATURES)
    y = (X["a"] + generator.normal(size=400) > 1.5).to_numpy().astype(int)
    extra = {"card": generator.integers(0, 60, 400).astype(str), "euro": generator.integers(1, 90, 400) * 1.0}
    return X.assign(**extra, day=np.arange(400) // 40), y


def test_scorers_are_the_measures(table):
    X, y = table
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[FEATURES], y)
    score = model.predict_proba(X[FEATURES])[:, 1]
    for ties in ("expected", "worst"):
        assert make_entity_scorer(20, "card", ties=ties)(model, X, y) == pytest.approx(
            distinct_entity_precision_at_k(y, score, X["card"], 20, ties=ties)
        )
        assert make_money_scorer(0.1, "euro", of="cases", ties=ties)(model, X, y) == pytest.approx(
            gain_at_k(y, score, X["euro"], 0.1, of="cases", ties=ties)
        )
    assert make_money_scorer(5, "euro", period="day")(model, X, y) == pytest.approx(
        per_period(gain_at_k, y, score, X["day"], amount=X["euro"], k=5)
    )
    assert make_entity_scorer(5, "card", period="day")(model, X, y) == pytest.approx(
        per_period(distinct_entity_precision_at_k, y, score, X["day"], entities=X["card"], k=5)
    )


def test_the_estimator_is_given_what_it_was_trained_on(table):
    X, y = table
    scorer = make_money_scorer(10, "euro")
    without, whole = LogisticRegression().fit(X[["b", "a"]], y), LogisticRegression().fit(X[["a", "b", "euro"]], y)
    assert scorer(without, X, y) == gain_at_k(y, without.decision_function(X[["b", "a"]]), X["euro"], 10)
    assert scorer(whole, X, y) == gain_at_k(y, whole.decision_function(X[["a", "b", "euro"]]), X["euro"], 10)
    polars = LogisticRegression().fit(pl.from_pandas(X[["b", "a"]]), y)
    assert scorer(polars, pl.from_pandas(X), y) == scorer(without, X, y)


def test_a_fold_with_fewer_cases_or_without_positives_has_a_score(table):
    X, y = table
    model = LogisticRegression().fit(X[FEATURES], y)
    few = [*np.flatnonzero(y == 1)[:2], *np.flatnonzero(y == 0)[:2]]
    assert make_money_scorer(1000, "euro")(model, X.iloc[few], y[few]) == X["euro"].iloc[few[:2]].sum()
    negatives = np.flatnonzero(y == 0)
    assert make_entity_scorer(10, "card")(model, X.iloc[negatives], y[negatives]) == 0.0


def test_the_positive_label_can_be_named(table):
    X, y = table
    names = np.where(y == 1, "fraud", "ok")
    model = LogisticRegression().fit(X[FEATURES], names)
    value = make_entity_scorer(10, "card", pos_label="fraud")(model, X, names)
    assert value == distinct_entity_precision_at_k(y, -model.decision_function(X[FEATURES]), X["card"], 10)
    assert value > make_entity_scorer(10, "card", pos_label="fraud")(model.fit(-X[FEATURES], names), X, names)


@pytest.mark.parametrize("fit", [
    lambda model, X, y: model.fit(X, y),
    lambda model, X, y: make_pipeline(StandardScaler(), model).fit(X, y),
    lambda model, X, y: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), model)).fit(X, y),
    lambda model, X, y: GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=2).fit(X, y),
], ids=["alone", "pipeline", "two pipelines", "search"])  # fmt: skip
@pytest.mark.parametrize("sought", ["bad", "good"])
def test_a_ranker_is_measured_by_what_it_looks_for(table, fit, sought):
    X, y = table
    names = np.where(y == 1, "bad", "good")
    model = fit(MetaAP(max_depth=2, pos_label=sought, cv=0), X[FEATURES], names)
    score, other = model.decision_function(X[FEATURES]), "good" if sought == "bad" else "bad"
    for pos_label in (None, sought):
        assert make_money_scorer(20, "euro", pos_label=pos_label)(model, X, names) == pytest.approx(
            gain_at_k(names == sought, score, X["euro"], 20)
        )
        assert make_entity_scorer(20, "card", pos_label=pos_label)(model, X, names) == pytest.approx(
            distinct_entity_precision_at_k(names == sought, score, X["card"], 20)
        )
    assert make_money_scorer(20, "euro", pos_label=other)(model, X, names) == pytest.approx(
        gain_at_k(names == other, -score, X["euro"], 20)
    )


@pytest.mark.parametrize("classifier", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_a_classifier_is_measured_by_its_second_class_or_the_one_named(table, classifier):
    X, y = table
    names = np.where(y == 1, "bad", "good")
    model = classifier.fit(X[FEATURES], names)
    probability = dict(zip(model.classes_, model.predict_proba(X[FEATURES]).T, strict=True))
    for pos_label, positive in ((None, "good"), ("good", "good"), ("bad", "bad")):
        assert make_money_scorer(20, "euro", pos_label=pos_label)(model, X, names) == pytest.approx(
            gain_at_k(names == positive, probability[positive], X["euro"], 20)
        )


def test_a_detector_is_taken_at_its_word(table):
    X, y = table
    model = IsolationForest(n_estimators=5, random_state=0).fit(X[FEATURES])
    assert make_money_scorer(20, "euro", pos_label=0)(model, X, y) == pytest.approx(
        gain_at_k(y == 0, model.decision_function(X[FEATURES]), X["euro"], 20)
    )


def test_a_day_may_be_all_positive(table):
    X, y = table
    model = LogisticRegression().fit(X[FEATURES], y)
    outcome = np.where(X["day"] == 3, 1, y)
    score = model.decision_function(X[FEATURES])
    first = np.argsort(-score[120:160])[:5] + 120
    others = (X["day"] != 3).to_numpy()
    for scorer, metric, column, value in (
        (make_money_scorer(5, "euro", period="day"), gain_at_k, "euro", X["euro"].iloc[first].sum()),
        (make_entity_scorer(5, "card", period="day"), distinct_entity_precision_at_k, "card", 1.0),
    ):
        name = {"euro": "amount", "card": "entities"}[column]
        rest = {name: X.loc[others, column]}
        mean = per_period(metric, outcome[others], score[others], X.loc[others, "day"], k=5, **rest)
        assert scorer(model, X, outcome) == pytest.approx((9 * mean + value) / 10)
    assert make_money_scorer(5, "euro")(model, X.iloc[120:160], outcome[120:160]) == X["euro"].iloc[first].sum()


def test_searches_over_years_use_pickled_scorers():
    data = make_audit(2_400, years=range(2020, 2025), positive_rate=0.1, random_state=0)
    X = data.X.assign(year=data.year, amount=data.amount, owner=np.arange(2_400) % 700)
    drop = make_column_transformer(
        ("drop", ["year", "amount", "owner"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(drop, RankingTree(max_depth=3, cv=0))
    cv = PrequentialSplit("all", 0, 1, times="year", n_splits=2, drop_caught=True)
    scorers = {
        "money": pickle.loads(pickle.dumps(make_money_scorer(50, "amount"))),
        "entities": make_entity_scorer(50, "owner", period="year"),
    }
    result = cross_validate(
        model, X, data.y, groups=X["owner"], cv=cv, scoring=scorers, error_score="raise", return_estimator=True
    )
    for fold, (_, test) in enumerate(cv.split(X, data.y, X["owner"])):
        part = X.iloc[test]
        score = result["estimator"][fold].decision_function(part)
        assert result["test_money"][fold] == pytest.approx(gain_at_k(data.y[test], score, part["amount"], 50))
        assert result["test_entities"][fold] == pytest.approx(
            distinct_entity_precision_at_k(data.y[test], score, part["owner"], 50)
        )
    search = GridSearchCV(
        model, {"rankingtree__max_depth": [1, 2]}, cv=cv, scoring=scorers["money"], error_score="raise"
    ).fit(X, data.y, groups=X["owner"])
    means = search.cv_results_["mean_test_score"]
    assert search.best_index_ == np.argmax(means)
    assert means.min() > 0
    assert search.score(X, data.y) > 0


def test_bad_input_is_a_sentence(table):
    X, y = table
    model = LogisticRegression().fit(X[FEATURES], y)
    with pytest.raises(ValueError, match=r"The scorer of gain_at_k reads the column 'euros' of X, .* mean 'euro'\?"):
        make_money_scorer(3, "euros")(model, X, y)
    with pytest.raises(ValueError, match=r"reads the column 'month' of X, which is not among its 5 columns\. Hint"):
        make_entity_scorer(3, "card", period="month")(model, X, y)
    with pytest.raises(
        TypeError, match=r"reads the column 'card' of X, so X must be a data frame\. Got ndarray instead"
    ):
        make_entity_scorer(3, "card")(model, X.to_numpy(), y)
    with pytest.raises(TypeError, match=r"'entity' parameter of make_entity_scorer must be the name of a column of X"):
        make_entity_scorer(3, X["card"])
    with pytest.raises(TypeError, match=r"'period' parameter of make_money_scorer must be the name of a column"):
        make_money_scorer(3, "euro", period=7)
    with pytest.raises(TypeError, match=r"'amount' parameter of make_money_scorer must be the name of a column"):
        make_money_scorer(3, None)
    with pytest.raises(ValueError, match=r"gain_at_k needs a pos_label that is a class of the model, 0 or 1\. Got 'a'"):
        make_money_scorer(3, "euro", pos_label="a")(model, X, y)
    with pytest.raises(ValueError, match=r"needs a two-class model .* Got LinearRegression, classes \[\], instead"):
        make_money_scorer(3, "euro")(LinearRegression().fit(X[FEATURES], y), X, y)
    with pytest.raises(ValueError, match=r"Got DecisionTreeClassifier, classes \[0\], instead\. Hint: skip_one_class"):
        make_money_scorer(3, "euro")(DecisionTreeClassifier().fit(X[FEATURES], 0 * y), X, y)
    for k in (0, 1.5, -2, float("nan")):
        with pytest.raises(
            ValueError, match=r"'k' parameter of make_money_scorer must be an int in the range \[1, inf"
        ):
            make_money_scorer(k, "euro")
    with pytest.raises(TypeError, match=r"'k' parameter of make_entity_scorer must be an int in the range \[1, inf"):
        make_entity_scorer("5", "card")
    with pytest.raises(ValueError, match=r"'of' parameter of make_entity_scorer must be one of"):
        make_entity_scorer(5, "card", of="entities")
    with pytest.raises(ValueError, match=r"'ties' parameter of make_money_scorer must be one of"):
        make_money_scorer(5, "euro", ties="random")
