"""Drawings: everything inside the figure, nothing over anything else, no trace left in matplotlib."""

import gc
import itertools
import sys
import weakref

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from plot_cases import (
    LINE_MAKERS,
    MAKERS,
    critical_difference,
    depth,
    gains,
    imbalance,
    leaderboard,
    names,
    precision_at_k,
)
from plot_checks import PIXEL, assert_apart, assert_inside, settings, texts_of
from toprank.plots import GainsDisplay, ImbalanceDisplay, LeaderboardDisplay, method_styles, plot_panels

CASES = [(2, False, False), (6, False, True), (15, True, True)]  # names beside lines, missing figures, a long legend


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize(("n", "long", "missing"), CASES)
def test_all_is_inside_and_nothing_overlaps(make, n, long, missing):
    figure = make(n, long, missing).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))
    title, ax = figure._suptitle, figure.axes[0]
    assert title.get_window_extent().y0 >= ax.get_window_extent().y1, "the title lies over the axes"
    if ax.get_legend() is not None:
        assert title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1 - PIXEL


def test_more_methods_than_colours_fit():
    figure = precision_at_k(25).plot().figure_
    assert_inside(figure)
    assert_apart(texts_of(figure))


def test_the_checks_find_what_is_wrong():
    figure = Figure(layout="constrained")
    ax = figure.add_subplot()
    ax.text(0.5, 0.5, "one", gid="label: one")
    ax.text(0.5, 0.5, "two", gid="label: two")
    with pytest.raises(AssertionError, match="overlaps"):
        assert_apart(texts_of(figure))
    figure.text(0.9, 0.5, "far beyond the edge of the figure")
    with pytest.raises(AssertionError):
        assert_inside(figure)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_every_method_is_named(make):
    figure = make(6).plot().figure_
    found = {text.get_text() for text in figure.findobj(Text)}
    for name in names(6):
        assert any(text == name or text.startswith(f"{name}  ") for text in found), name


@pytest.mark.parametrize("make", LINE_MAKERS, ids=lambda make: make.__name__)
def test_methods_keep_their_style_in_all_plots(make):
    styles = method_styles(["other", *reversed(names(6))])
    ax = make(6).plot(styles=styles).ax_
    drawn = {line.get_gid(): line for line in ax.get_lines() if (line.get_gid() or "").startswith("method: ")}
    for name in names(6):
        line, style = drawn[f"method: {name}"], styles[name]
        assert to_hex(line.get_color()).upper() == style.colour.upper()
        assert line.get_marker() in (style.marker, "None")


def test_lines_hold_the_figures_in_percent():
    display = imbalance(3, missing=True)
    line = next(line for line in display.plot().ax_.get_lines() if line.get_gid() == "method: MetaAP")
    np.testing.assert_allclose(line.get_ydata(), 100 * display.average_precision["MetaAP"])
    assert np.isnan(line.get_ydata()[2])


def test_a_method_without_figures_is_named_below():
    ax = imbalance(3, missing=True).plot().ax_
    assert ax.get_xlabel().endswith("No figures: Entropy")
    assert "label: Entropy" not in {text.get_gid() for text in texts_of(ax.figure)}


def test_all_missing_still_gives_a_plot():
    display = ImbalanceDisplay([10, 20], {"a": [np.nan, np.nan]}).plot()
    assert display.ax_.get_xlabel().endswith("No figures: a")
    assert LeaderboardDisplay(["a"], [np.nan]).plot().ax_.texts[0].get_text() == "no result"
    assert GainsDisplay([0, 1], {"a": [np.nan, np.nan]}, 0.5).plot().ax_.get_xlabel().endswith("No figures: a")
    assert_inside(display.figure_)


# --- names beside lines -------------------------------------------------------------------------------------


def named_by(display, **options):
    """How the lines are named: "direct", "legend" or "none"."""
    ax = display.plot(**options).ax_
    beside = [text for text in texts_of(ax.figure) if text.get_gid().startswith("label:")]
    assert not (beside and ax.get_legend())
    return "direct" if beside else "legend" if ax.get_legend() else "none"


def test_names_stand_beside_the_lines_where_they_fit():
    assert named_by(precision_at_k(6)) == "direct"
    assert named_by(precision_at_k(15)) == "legend"  # too many ends in one place
    assert named_by(precision_at_k(15), labels="direct") == "direct"
    assert named_by(precision_at_k(2), labels="legend") == "legend"
    assert named_by(precision_at_k(2), labels="none") == "none"
    assert named_by(gains(3)) == "legend"  # all curves end in one point
    assert named_by(gains(3), up_to=0.3) == "direct"


def test_names_beside_lines_are_in_the_order_of_the_ends():
    display = precision_at_k(6)
    figure = display.plot().figure_
    heights = {text.get_gid()[7:]: Text.get_window_extent(text).y0 for text in texts_of(figure, ("label:",))}
    ends = {name: values[-1] for name, values in display.precision.items()}
    assert sorted(heights, key=heights.get) == sorted(ends, key=ends.get)


def test_axes_of_the_caller_without_a_layout_get_a_legend_inside():
    figure = Figure()
    ax = figure.add_subplot()
    display = precision_at_k(3)
    assert named_by(display, ax=ax) == "legend"
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert figure._suptitle is None
    assert ax.get_title(loc="left") == "Share of positives among the k highest scores"
    with_layout = Figure(layout="constrained").add_subplot()
    assert named_by(precision_at_k(3), ax=with_layout) == "direct"


def test_an_unknown_way_to_name_is_refused():
    with pytest.raises(
        ValueError, match=r"'labels' parameter of DepthDisplay.plot must be one of 'auto', .* Got 'beside'"
    ):
        depth(2).plot(labels="beside")


# --- what the plots say -------------------------------------------------------------------------------------


def test_the_title_of_gains_tells_the_best_within_the_budget():
    display = GainsDisplay([0, 0.1, 1], {"a": [0, 0.4, 1], "b": [0, 0.613, 1]}, 0.1, 5000)
    figure = display.plot().figure_
    assert (
        " ".join(figure.get_suptitle().split()) == "Checking 10 % of the cases finds up to 61.3 % of the positives (b)"
    )
    assert [text.get_text() for text in texts_of(figure, ("budget",))] == ["budget: 500 cases, 10 %"]
    diagonal = next(line for line in display.ax_.get_lines() if line.get_gid() == "random")
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())


def test_gains_are_cut_where_the_drawing_ends():
    display = GainsDisplay([0, 0.4, 1], {"a": [0, 0.8, 1]}).plot(up_to=0.5)
    line = next(line for line in display.ax_.get_lines() if line.get_gid() == "method: a")
    assert line.get_xdata()[-1] == 50
    assert line.get_ydata()[-1] == pytest.approx(100 * (0.8 + 0.2 / 6))


def test_depth_has_a_line_of_numbers_for_each_kind():
    ticks = [label.get_text() for label in depth(3).plot().ax_.get_xticklabels()]
    assert ticks[:3] == ["1\n1", "4\n2", "9\n3"]
    only = depth(3)
    object.__setattr__(only, "squared", ())
    assert [label.get_text() for label in only.plot().ax_.get_xticklabels()][:3] == ["1", "2", "3"]


def test_the_diagram_shows_ranks_bars_and_the_difference():
    display = critical_difference(6)
    ax = display.plot().ax_
    bars = [line for line in ax.get_lines() if line.get_gid() == "clique"]
    assert len(bars) == len(display.cliques) > 0
    for bar, clique in zip(bars, display.cliques, strict=True):
        low, high = bar.get_xdata()
        assert {name for name, rank in display.mean_rank.items() if low <= rank <= high} == set(clique)
    wide = next(line for line in ax.get_lines() if line.get_gid() == "critical difference")
    assert np.ptp(wide.get_xdata()) == pytest.approx(display.critical_difference)
    labels = {text.get_text() for text in texts_of(ax.figure, ("label:",))}
    assert labels == {f"{name}  {rank:.2f}" for name, rank in display.mean_rank.items()}


def test_bars_that_share_a_rank_are_on_different_levels():
    display = critical_difference(15)
    bars = [line for line in display.plot().ax_.get_lines() if line.get_gid() == "clique"]
    for one, other in itertools.combinations(bars, 2):
        (a, b), (c, d) = one.get_xdata(), other.get_xdata()
        assert b < c or d < a or one.get_ydata()[0] != other.get_ydata()[0]


def test_the_leaderboard_marks_what_a_person_can_read():
    display = leaderboard(6, missing=True)
    ax = display.plot().ax_
    marks = {
        line.get_gid()[8:]: line.get_marker() for line in ax.get_lines() if (line.get_gid() or "").startswith("method")
    }
    readable = {name for name, reads in zip(display.method, display.is_readable, strict=True) if reads}
    assert {name for name, mark in marks.items() if mark == "D"} == readable - {"Gini"}
    assert {label.get_text() for label in ax.get_yticklabels() if label.get_fontweight() == "bold"} == readable
    assert "Gini" not in marks  # it has no result
    shown = {text.get_gid(): text.get_text() for text in texts_of(ax.figure)}
    assert (shown["mean (%): 1"], shown["size: 1"], shown["time: 1"]) == ("77.0", "14 leaves", "0.03 s")
    assert shown["note: 1"] == "within noise of the best"
    assert shown["note: 6"] == "stopped after 10 min"
    assert "A random order has 6 %" in ax.get_xlabel()


def test_the_leaderboard_explains_its_markers_outside_the_dots():
    own = leaderboard(6).plot().figure_
    assert [text.get_text() for text in own.legends[0].get_texts()] == [
        "a person can read the model",
        "a person cannot",
    ]
    given = leaderboard(6).plot(Figure(layout="constrained").add_subplot()).ax_
    assert given.get_legend() is None
    assert "Diamond: a person can read the model" in " ".join(given.get_xlabel().split())
    all_alike = LeaderboardDisplay(["a", "b"], [0.3, 0.2], is_readable=[True, True]).plot()
    assert all_alike.figure_.legends == []


def test_a_random_order_close_by_is_drawn():
    near = LeaderboardDisplay(["a", "b"], [0.3, 0.2], chance=0.15).plot()
    assert "Dotted line" in near.ax_.get_xlabel()
    assert [line for line in near.ax_.get_lines() if line.get_gid() == "chance"]
    far = LeaderboardDisplay(["a", "b"], [0.9, 0.88], chance=0.1).plot()
    assert not [line for line in far.ax_.get_lines() if line.get_gid() == "chance"]


# --- panels -------------------------------------------------------------------------------------------------


def test_panels_share_one_legend_and_one_style_for_each_method():
    figure = plot_panels([precision_at_k(6), precision_at_k(15), precision_at_k(2)], title="Three levels of imbalance")
    assert_inside(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names(15)
    assert [ax.get_legend() for ax in figure.axes] == [None] * 3
    colours = [{line.get_color() for line in ax.get_lines() if line.get_gid() == "method: Gini"} for ax in figure.axes]
    assert colours[0] == colours[1] == colours[2]
    assert [bool(ax.get_ylabel()) for ax in figure.axes] == [True, False, False]


@pytest.mark.parametrize("make", LINE_MAKERS, ids=lambda make: make.__name__)
def test_panels_have_room_for_long_names_and_titles(make):
    figure = plot_panels([make(6, True), make(15, True, True)])
    assert_inside(figure)
    titles = [ax._left_title.get_window_extent() for ax in figure.axes]
    assert titles[0].x1 <= titles[1].x0
    legend = figure.legends[0].get_window_extent()
    assert all(ax.xaxis.label.get_window_extent().y0 >= legend.y1 for ax in figure.axes)


def test_panels_need_displays():
    with pytest.raises(TypeError, match=r"needs a list of displays of lines. Got an empty one"):
        plot_panels([])
    with pytest.raises(TypeError, match=r"displays of lines. Got LeaderboardDisplay instead"):
        plot_panels([precision_at_k(2), leaderboard(2)])


# --- no trace -----------------------------------------------------------------------------------------------


def test_settings_of_the_caller_neither_change_nor_matter():
    plain = precision_at_k(3).plot()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9, "text.color": "red"}):
        before = settings()
        styled = precision_at_k(3).plot()
        assert settings() == before
    assert styled.ax_.get_facecolor() == plain.ax_.get_facecolor()
    FigureCanvasAgg(plain.figure_).draw()
    FigureCanvasAgg(styled.figure_).draw()
    assert np.array_equal(plain.figure_.canvas.buffer_rgba(), styled.figure_.canvas.buffer_rgba())


def test_settings_come_back_after_an_error():
    before = settings()
    with pytest.raises(AttributeError):
        precision_at_k(3).plot(ax="not axes")
    assert settings() == before


def test_no_figure_stays_and_pyplot_is_left_alone():
    had_pyplot = "matplotlib.pyplot" in sys.modules
    display = leaderboard(3).plot()
    figure = weakref.ref(display.figure_)
    if had_pyplot:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []
    else:
        assert "matplotlib.pyplot" not in sys.modules
    del display
    gc.collect()
    assert figure() is None


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_missing_matplotlib_is_said_in_a_sentence(make, monkeypatch):
    display = make(3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    sentence = (
        r"\.plot needs the package 'matplotlib', which is not installed. Hint: pip install \"toprank\[plots\]\"\.$"
    )
    with pytest.raises(ImportError, match=type(display).__name__ + sentence):
        display.plot()
    assert len(display.frame()) >= 3  # the data need no matplotlib
