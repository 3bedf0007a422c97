"""The price of reading: data, drawing, what the title says."""

import numpy as np
import pytest

from plot_checks import assert_apart, assert_inside, texts_of
from toprank import InputError
from toprank.plots import LeaderboardDisplay, PriceOfReadingDisplay

BOARD = {
    "method": ["LightGBM", "RedFlags", "MetaAP", "CART", "Forest"],
    "mean": [0.42, 0.41, 0.405, 0.30, 0.35],
    "low": [0.40, 0.38, 0.37, 0.27, 0.33],
    "high": [0.44, 0.44, 0.43, 0.33, 0.37],
    "is_readable": [False, True, True, True, False],
    "size": [900, 55, 20, 31, 4000],
}


def test_it_takes_a_leaderboard_and_gives_it_back():
    display = PriceOfReadingDisplay.from_frame(BOARD)
    assert display.methods == ["RedFlags", "MetaAP", "CART"]
    assert (display.black_box, display.black_box_mean) == ("LightGBM", 0.42)
    again = PriceOfReadingDisplay.from_frame(display.frame("pandas"))
    np.testing.assert_array_equal(again.mean, display.mean)
    assert again.black_box == "LightGBM"


def test_a_black_box_without_an_interval():
    display = PriceOfReadingDisplay.from_frame(BOARD | {"low": [None, *BOARD["low"][1:]]})
    assert np.isnan(display.black_box_low)
    assert display.black_box_high == 0.44
    display.plot()


def test_all_is_inside_and_nothing_overlaps():
    figure = PriceOfReadingDisplay.from_frame(BOARD).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))
    assert figure.get_suptitle() == "Reading costs 0.010 of average precision: RedFlags against LightGBM"


def test_names_stand_beside_their_dots():
    """Names were moved down by all names above them, also by those far to the left or right."""
    n = 8
    mean = np.linspace(0.42, 0.41, n)
    size = [10.0 * 8 ** (i % 4) for i in range(n)]
    names = [f"model {i}" for i in range(n)]
    display = PriceOfReadingDisplay(names, size, mean, mean - 0.1, mean + 0.1).plot()
    assert_apart(texts_of(display.figure_))
    placed = {text.get_text(): text.get_position()[1] for text in display.ax_.texts}
    for name, value in zip(names[:4], mean, strict=False):
        assert placed[name] == pytest.approx(value)
    low, high = display.ax_.get_ylim()
    for name, value in zip(names[4:], mean[4:], strict=True):
        assert abs(placed[name] - value) < 0.05 * (high - low)


@pytest.mark.parametrize(
    ("readable", "words"), [([False, True, True, True, True], "LightGBM"), ([True] * 5, "ranks best of the models")]
)
def test_titles_say_what_is_compared(readable, words):
    title = PriceOfReadingDisplay.from_frame(BOARD | {"is_readable": readable}).plot().figure_.get_suptitle()
    assert words in title


def test_reading_may_cost_nothing():
    display = PriceOfReadingDisplay(["RedFlags"], [40], [0.5], [0.45], [0.55], "Forest", 0.45, 0.4, 0.5)
    assert display.plot().figure_.get_suptitle().startswith("Reading costs nothing: RedFlags")

    # A price of .0001 was "0.000".
    display = PriceOfReadingDisplay(["RedFlags"], [40], [0.4499], [0.4], [0.5], "Forest", 0.45, 0.4, 0.5)
    assert display._title().startswith("Reading costs less than 0.001 of")


def test_a_size_of_one_is_in_the_singular():
    board = LeaderboardDisplay.from_frame(BOARD | {"size": [900, 1, 1, 2.5, 4], "size_unit": ["leaves"] * 5})
    assert board._texts(range(5))["size"] == ["size", "900 leaves", "1 leaf", "1 leaf", "2.5 leaves", "4 leaves"]


@pytest.mark.parametrize(
    ("change", "word"),
    [({"mean": [0.7]}, "mean 0.7"), ({"size": [None]}, "size nan"), ({"mean": [np.nan]}, "mean nan"),
     ({"black_box": "Forest"}, "Forest has"),
     ({"black_box": "Forest", "black_box_mean": 0.3, "black_box_low": 0.4}, "low 0.4")],
)  # fmt: skip
def test_figures_that_cannot_be_drawn_are_refused(change, word):
    """matplotlib refused them in its own words, or the title was "Reading costs nan"."""
    given = {"method": ["RedFlags"], "size": [40], "mean": [0.5], "low": [0.45], "high": [np.nan]}
    assert PriceOfReadingDisplay(**given).methods == ["RedFlags"]
    with pytest.raises(InputError, match=word):
        PriceOfReadingDisplay(**given | {"high": [0.6]} | change)


def test_without_a_readable_model_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="at least one readable"):
        PriceOfReadingDisplay.from_frame(BOARD | {"is_readable": [False] * 5})
