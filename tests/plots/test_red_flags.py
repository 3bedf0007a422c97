"""Rules as bars: data, drawing, refusals."""

import numpy as np
import pytest

from plot_checks import assert_apart, assert_inside, texts_of
from toprank import InputError, MetaAP, RedFlags
from toprank.datasets import make_audit
from toprank.plots import RedFlagsDisplay


@pytest.fixture(scope="module")
def model():
    data = make_audit(6_000, random_state=0)
    return RedFlags(teacher=None, cv=2, random_state=0).fit(data.X, data.y)


def test_it_shows_the_rules_of_a_model(model):
    display = RedFlagsDisplay.from_estimator(model)
    assert display.points.tolist() == [flag.points for flag in model.flags_]
    again = RedFlagsDisplay.from_frame(display.frame())
    assert again.rules == display.rules
    np.testing.assert_array_equal(again.hit_rate, display.hit_rate)


def test_all_is_inside_and_nothing_overlaps(model):
    figure = RedFlagsDisplay.from_estimator(model).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))


def test_rules_that_lower_the_score_go_to_the_left():
    display = RedFlagsDisplay(["a > 1", "b <= 2"], [12, -7], [0.2, np.nan], [10, 20]).plot()
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == [12, -7]


def test_a_model_without_rules_is_refused():
    data = make_audit(2_000, random_state=0)
    with pytest.raises(InputError, match="no rules with points"):
        RedFlagsDisplay.from_estimator(MetaAP(cv=0).fit(data.X, data.y))
    with pytest.raises(InputError, match="at least one rule"):
        RedFlagsDisplay([], [], [], [])
