"""The display of a card."""

import numpy as np
import pandas as pd
import pytest

from ranker_cases import make_cases
from toprank import RankingTree, Scorecard
from toprank.plots import CardDisplay


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
    for ax, feature in zip(figure.axes, display.order, strict=True):
        shape = model.card_.shape_of(feature)
        drawn = [line for line in ax.get_lines() if line.get_gid() == "points"]
        if shape.is_categorical:
            assert sorted(patch.get_width() for patch in ax.patches) == pytest.approx(sorted(shape.points))
        else:
            assert drawn[0].get_ydata() == pytest.approx(np.column_stack((shape.points, shape.ends)).ravel())


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
