"""Learning curves of boosters: data, drawing, refusals."""

import numpy as np
import pytest

from plot_checks import assert_apart, assert_inside, texts_of
from ranker_cases import make_cases
from toprank import SGBAP, InputError, MetaAP
from toprank.plots import LearningCurveDisplay
from toprank.rankers.boosting.boosted_ranker import best_round


@pytest.fixture(scope="module")
def model():
    return SGBAP(n_estimators=8, init=None, cv=2, random_state=0).fit(*make_cases(300))


def test_it_shows_the_curve_of_a_booster(model):
    display = LearningCurveDisplay.from_estimator(model)
    assert display.chosen == best_round(model.learning_curve_["average_precision"])
    assert display.methods == ["average precision", "precision at k = positives"]
    np.testing.assert_array_equal(display.values["average precision"], model.learning_curve_["average_precision"])
    again = LearningCurveDisplay.from_frame(display.frame(), chosen=display.chosen)
    for name in display.methods:
        np.testing.assert_array_equal(again.values[name], display.values[name])


def test_it_says_which_k():
    model = SGBAP(n_estimators=2, init=None, cv=2, random_state=0, budget=20).fit(*make_cases(300))
    assert LearningCurveDisplay.from_estimator(model).methods[1] == "precision at k = budget"


def test_all_is_inside_and_nothing_overlaps(model):
    figure = LearningCurveDisplay.from_estimator(model).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))
    assert "Held-out cases are ranked best after" in figure.get_suptitle()


def test_one_round_is_one_round():
    title = LearningCurveDisplay([1, 2], {"AP": [0.3, 0.2]}, chosen=1).plot().figure_.get_suptitle()
    assert title == "Held-out cases are ranked best after 1 round"


def test_a_model_without_a_curve_is_refused():
    X, y = make_cases(200)
    for other, why in ((MetaAP(cv=0), r"\."), (SGBAP(n_estimators=2, cv=0), r": it was fitted with cv=0\.")):
        with pytest.raises(InputError, match=f"no learning curve{why} Hint"):
            LearningCurveDisplay.from_estimator(other.fit(X, y))
