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
    np.testing.assert_array_equal(again.inside, display.inside)
    np.testing.assert_array_equal(again.hit_rate, display.hit_rate)


def test_all_is_inside_and_nothing_overlaps(model):
    figure = RedFlagsDisplay.from_estimator(model).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))


def test_corrections_are_below_their_flag_and_lower_to_the_left():
    rules = [
        "a > 1; b is x, y or z",
        "-0.002 < some_rather_long_name_of_a_margin <= 0.055; c > 3; d is missing",
        "e <= 2",
    ]
    display = RedFlagsDisplay(rules, [12, -7, 1], [0.2, np.nan, 0.5], [10, 20, 5], inside=[0, 1, 0], note="A case.")
    figure = display.plot().figure_
    ax = display.ax_
    assert [bar.get_width() for bar in ax.patches] == [12, -7, 1]
    assert len({bar.get_height() for bar in ax.patches}) == 1
    assert figure.get_suptitle() == "2 red flags, 1 correction"
    assert figure.get_supxlabel() == "A case."
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["raises the score", "lowers the score"]
    texts = {text.get_gid(): text for text in texts_of(figure)}
    assert "Where 1 holds" in texts["label: inside 2"].get_text()
    lines = texts["label: rule 2"].get_text().split("\n")
    assert lines[0] == "-0.002 < some_rather_long_name_of_a_margin <= 0.055;", "lines end between conditions"
    figure.draw_without_rendering()
    starts = [texts[f"label: rule {number}"].get_window_extent().x0 for number in (1, 2, 3)]
    assert starts[0] == pytest.approx(starts[2])
    assert starts[1] > starts[0] + 10
    assert_inside(figure)
    assert_apart(texts.values())


def test_only_rules_can_be_corrected():
    with pytest.raises(InputError, match="inside"):
        RedFlagsDisplay(["a", "b"], [1, 2], [0.5, 0.5], [3, 4], inside=[0, 7])


def test_a_model_without_rules_is_refused():
    data = make_audit(2_000, random_state=0)
    with pytest.raises(InputError, match="no rules with points"):
        RedFlagsDisplay.from_estimator(MetaAP(cv=0).fit(data.X, data.y))
    with pytest.raises(InputError, match="at least one rule"):
        RedFlagsDisplay([], [], [], [])
