"""The display of a card."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from plot_checks import assert_apart, assert_inside, texts_of
from ranker_cases import make_cases
from toprank import InputError, MetaAP, RankingTree, RedFlags, Scorecard
from toprank.datasets import make_audit
from toprank.plots import CardDisplay, RedFlagsDisplay
from toprank.rankers.points.card import Card, Shape
from toprank.tree.columns import Column


def test_a_card_is_drawn_with_one_panel_per_column():
    X, y = make_cases(600)
    X["amount"] = 10.0 ** X["size"]
    model = Scorecard(cv=0, points=20).fit(X, y)
    display = CardDisplay.from_estimator(model)
    frame = display.frame("pandas")
    assert isinstance(frame, pd.DataFrame)
    assert frame.equals(model.scorecard())
    figure = display.plot().figure_
    assert [ax.get_title(loc="left") for ax in figure.axes] == display.methods
    assert "20 points double the odds" in figure.get_suptitle()
    assert f"starts at {model.card_.base:.0f}" in figure.get_supxlabel()
    assert_inside(figure)
    scales = {ax.get_xlim() if ax.patches else ax.get_ylim() for ax in figure.axes}
    assert len(scales) == 1, "all panels have the same scale"
    for ax, feature in zip(figure.axes, display.order, strict=True):
        shape = model.card_.shape_of(feature)
        drawn = [line for line in ax.get_lines() if line.get_gid() == "points"]
        if shape.is_categorical:
            points = [*shape.points, *([shape.missing] if shape.missing else [])]
            assert sorted(patch.get_width() for patch in ax.patches) == pytest.approx(sorted(points))
        else:
            assert drawn[0].get_ydata() == pytest.approx(np.column_stack((shape.points, shape.ends)).ravel())


def test_labels_of_an_axis_do_not_overlap():
    column = Column("share of turnover in cash, all years and all branches")
    card = Card((Shape(0, np.array([0.001, 0.0012, 0.9]), np.array([1.0, 2.0, 3.0, -4.0])),), base=-7)
    figure = CardDisplay(card, [column]).plot().figure_
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels() if label.get_visible()]
    assert len(boxes) >= 2
    assert all(a.x1 <= b.x0 or b.x1 <= a.x0 for a, b in combinations(boxes, 2))
    assert_inside(figure)


def test_the_card_of_red_flags_is_drawn():
    X, y = make_cases(400)
    model = RedFlags(teacher=None, cv=0, max_rules=0, max_features=2).fit(X, y)
    assert repr(CardDisplay.from_estimator(model)).startswith(f"<CardDisplay of {len(model.card_.features)} columns: ")
    assert CardDisplay.from_estimator(model).methods == [model.columns_[f].name for f in model.card_.features]


def test_one_column_on_given_axes():
    from matplotlib.figure import Figure

    X, y = make_cases(300)
    ax = Figure().add_subplot()
    display = CardDisplay.from_estimator(Scorecard(cv=0).fit(X, y))
    assert display.plot(ax).ax_ is ax
    assert ax.get_title(loc="left") == display.methods[0]


def test_a_model_without_a_card_is_refused():
    X, y = make_cases(300)
    with pytest.raises(TypeError, match="RankingTree"):
        CardDisplay.from_estimator(RankingTree(cv=0).fit(X, y))
    with pytest.raises(TypeError, match="int"):
        CardDisplay(3, [])


# --- Rules as bars: data, drawing, refusals -----------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    data = make_audit(3_000, random_state=0)
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
    assert repr(display) == f"<RedFlagsDisplay of 3 rules: {', '.join(rules)}>"
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
