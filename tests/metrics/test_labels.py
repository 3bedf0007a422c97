import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from toprank import RankingTree
from toprank.experiment import make_money_scorer
from toprank.metrics import BeforeAfter, average_precision, average_precision_scorer, f_beta
from toprank.metrics.labels import PAIRS, usual_positive
from toprank.rankers.validation import check_classes


@pytest.mark.parametrize(
    ("outcomes", "positive"),
    [
        (["Ja", "Nein"], "Ja"),
        (["NO", "Yes"], "Yes"),
        (["positive", "negative"], "positive"),
        (["non-default", "Default"], "Default"),
        (["not_churned", "churned"], "churned"),
        (["fine", "fraud"], None),
        (["ja", "yes"], None),
        (["no", "no fraud"], None),
        (["Ja"], None),
    ],
)
def test_positive_outcomes_of_usual_pairs(outcomes, positive):
    assert usual_positive(outcomes) == usual_positive(outcomes[::-1]) == positive


def test_no_pair_contradicts_another():
    assert not set(PAIRS) & {(positive, negative) for negative, positive in PAIRS}


def test_a_model_looks_for_the_positive_outcome_of_a_usual_pair():
    X = np.arange(200.0).reshape(-1, 1)
    y = np.where(X[:, 0] < 10, "Ja", "Nein")
    model = RankingTree(cv=0).fit(X, y)
    assert (model.classes_[model.positive_index_], model.n_positives_) == ("Ja", 10)
    with pytest.warns(UserWarning, match="'Ja' is taken as the positive label, but 95 % of the cases have it"):
        RankingTree(cv=0).fit(X, np.where(X[:, 0] < 10, "Nein", "Ja"))
    for labels in (np.array([False, True], object), np.array([-1, 1])):
        assert check_classes(labels, None, "fit")[1] == 1
    assert RankingTree(cv=0, pos_label="Nein").fit(X, y).n_positives_ == 190


def test_metrics_and_scorers_look_for_the_label_that_models_look_for():
    X = np.arange(200.0).reshape(-1, 1)
    is_positive = (X[:, 0] < 10) | (X[:, 0] == 50)
    y = np.where(is_positive, "Ja", "Nein")
    model = RankingTree(cv=0).fit(X, y)
    score = model.decision_function(X)
    assert average_precision(y, score) == model.score(X, y) == average_precision(is_positive, score)
    assert f_beta(y, model.predict(X)) == f_beta(y, model.predict(X), pos_label="Ja")
    assert BeforeAfter.from_scores(y, score, score, k=5).before == model.score(X, y)
    frame = pd.DataFrame({"x": X[:, 0]})
    named, plain = (LogisticRegression().fit(frame, labels) for labels in (y, is_positive))
    for scorer in (average_precision_scorer, make_money_scorer(5, amount="x")):
        assert scorer(named, frame, y) == scorer(plain, frame, is_positive)
