"""Displays of ROC curves and of dependence: their data, and drawings in which everything fits."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from plot_cases import names
from plot_checks import assert_apart, assert_inside, legend_of, lines_of, texts_of
from reference_metrics import tied_table
from toprank.explain import partial_dependence
from toprank.metrics import RocCurve, roc_auc, roc_band, roc_curve
from toprank.plots import DependenceDisplay, RocDisplay, RocLevelsDisplay, method_styles, save_figure
from toprank.plots.roc import MOST_KNOTS, drawn_knots
from toprank.tree.columns import Column

Y, SCORE, _ = tied_table()
OPTIMAL: Any = RocCurve([0, 0.02, 0.1, 1], [0, 0.6, 0.95, 1])
LEVELS: Any = [RocCurve([0, 0.3, 1], [0, 0.7, 1]), RocCurve([0, 0.1, 0.3, 1], [0, 0.5, 0.7, 1]), OPTIMAL]
NUMBERS: Any = [0, 1]


def scores(n, long=False):
    generator = np.random.default_rng(0)
    return {name: SCORE * i + generator.normal(size=len(Y)) for i, name in enumerate(names(n, long), 1)}


# --- curves by method ---------------------------------------------------------------------------------------


def test_curves_of_scores_are_those_of_the_metric():
    display = RocDisplay.from_scores(Y, {"a": SCORE, "b": -SCORE}, band="bootstrap", random_state=3)
    assert display.curves["a"] == roc_curve(Y, SCORE)
    assert display.bands["b"].to_dict() == roc_band(Y, -SCORE, random_state=3).to_dict()
    assert RocDisplay.from_scores(Y, {"a": SCORE}).bands == {}
    assert RocDisplay.from_scores(Y, {"a": SCORE}, band="dkw", level=0.9).bands["a"].level == 0.9
    assert RocDisplay.from_scores(Y, {"a": SCORE}, pos_label=0).curves["a"].area == pytest.approx(1 - roc_auc(Y, SCORE))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_frame_has_a_row_for_each_point(backend):
    band = roc_band(Y, SCORE, method="dkw", grid=5)
    frame = RocDisplay.from_curves({"a": LEVELS[0], "b": LEVELS[1]}, optimal=OPTIMAL, bands={"b": band}).frame(backend)
    columns = frame.column_names if backend == "pyarrow" else frame.columns
    rows = {name: np.asarray(frame[name]).tolist() for name in columns}
    assert list(rows) == ["method", "kind", "alpha", "beta", "low", "high"]
    assert list(zip(rows["method"], rows["kind"], strict=True)) == (
        [("a", "curve")] * 3 + [("b", "curve")] * 4 + [("b", "band")] * 5 + [("optimal", "optimal")] * 4
    )
    np.testing.assert_array_equal(rows["beta"][:7], [0, 0.7, 1, 0, 0.5, 0.7, 1])
    np.testing.assert_array_equal(rows["high"][7:12], band.high)
    assert np.isnan(np.array(rows["low"][:7] + rows["low"][12:], dtype=float)).all()


@pytest.mark.parametrize(
    ("n", "long", "band"), [(1, False, "dkw"), (4, False, "bootstrap"), (6, True, None), (15, True, None)]
)
@pytest.mark.parametrize("optimal", [None, OPTIMAL])
def test_all_is_inside_and_the_curves_are_square(n, long, band, optimal):
    display = RocDisplay.from_scores(Y, scores(n, long), band=band, optimal=optimal).plot()
    assert_inside(display.figure_)
    box = display.ax_.get_window_extent()
    assert box.width == pytest.approx(box.height, rel=1e-3)
    assert box.width > 0.4 * display.figure_.bbox.height
    title = display.figure_._suptitle.get_window_extent()
    assert title.y0 >= box.y1
    assert len(legend_of(display.ax_)) == n + (optimal is not None)


def test_the_legend_names_areas_the_largest_first():
    display = RocDisplay.from_curves({"low": LEVELS[0], "high": LEVELS[1]}, optimal=OPTIMAL).plot()
    areas = [f"AUC {curve.area:.3f}" for curve in (OPTIMAL, LEVELS[1], LEVELS[0])]
    assert legend_of(display.ax_) == [f"{areas[0]}  optimal", f"{areas[1]}  high", f"{areas[2]}  low"]
    assert display.plot(labels="none").ax_.get_legend() is None


def test_a_small_legend_stands_below_the_diagonal_and_a_large_one_beside():
    for n, long, is_inside in ((3, False, True), (15, False, False), (6, True, False)):
        display = RocDisplay.from_scores(Y, scores(n, long)).plot()
        display.figure_.draw_without_rendering()
        legend, axes = display.ax_.get_legend().get_window_extent(), display.ax_.get_window_extent()
        assert (legend.x1 <= axes.x1 + 1) == is_inside
        assert (legend.x0 >= axes.x1) == (not is_inside)


def test_lines_hold_the_curve_in_percent_and_bands_are_told():
    styles = method_styles(["other", "a"])
    band = roc_band(Y, SCORE, simultaneous=False, random_state=0)
    ax = RocDisplay.from_curves({"a": LEVELS[1]}, optimal=OPTIMAL, bands={"a": band}).plot(styles=styles).ax_
    lines = lines_of(ax)
    np.testing.assert_allclose(lines["method: a"].get_ydata(), 100 * LEVELS[1].beta)
    np.testing.assert_allclose(lines["optimal"].get_xdata(), 100 * OPTIMAL.alpha)
    np.testing.assert_array_equal(lines["random"].get_xdata(), lines["random"].get_ydata())
    assert to_hex(lines["method: a"].get_color()).upper() == styles["a"].colour
    assert ax.get_xlabel().endswith("Shaded: 95 % band of each point by itself")
    assert len(ax.collections) == 1
    mixed = {"a": band, "b": roc_band(Y, SCORE, method="dkw")}
    assert "different kinds" in RocDisplay({"a": LEVELS[0], "b": LEVELS[1]}, bands=mixed).plot().ax_.get_xlabel()


def test_drawn_knots_lose_nothing_that_is_seen():
    curve = roc_curve([0, 0, 1, 1, 0, 1, 0, 0], range(8))
    alpha, beta = drawn_knots(curve)
    assert len(alpha) < len(curve.alpha)
    assert RocCurve(alpha, beta).distance(curve, "sup") == pytest.approx(0, abs=1e-12)
    generator = np.random.default_rng(0)
    y = generator.random(50_000) < 0.3
    long = roc_curve(y, generator.random(50_000) + 0.3 * y)
    alpha, beta = drawn_knots(long)
    assert MOST_KNOTS / 2 < len(alpha) <= MOST_KNOTS
    assert RocCurve(alpha, beta).distance(long, "sup") < 0.01


def test_axes_of_the_caller_are_taken_and_no_title_is_left_out():
    ax = Figure().add_subplot()
    display = RocDisplay.from_curves({"a": LEVELS[0]}, title="Mine").plot(ax)
    assert display.ax_ is ax
    assert ax.get_title(loc="left") == "Mine"
    assert RocDisplay.from_curves({"a": LEVELS[0]}, title="").plot().figure_._suptitle is None


# --- curves by depth ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("optimal", [None, OPTIMAL])
def test_levels_show_curves_and_areas_in_the_same_colours(n, optimal):
    display = RocLevelsDisplay.from_curves(LEVELS[:n], optimal=optimal).plot()
    assert_inside(display.figure_)
    left, right = display.ax_
    lines = lines_of(left)
    dots = right.collections[0]
    np.testing.assert_allclose(dots.get_offsets(), np.column_stack((np.arange(1, n + 1), display.areas)))
    for place, curve in enumerate(LEVELS[:n]):
        line = lines[f"method: depth {place + 1}"]
        np.testing.assert_allclose(line.get_ydata(), 100 * curve.beta)
        assert to_hex(line.get_color()) == to_hex(dots.get_facecolors()[place])
    assert ("optimal" in lines_of(right)) == (optimal is not None)
    if optimal is not None:
        assert set(lines_of(right)["optimal"].get_ydata()) == {optimal.area}
        assert [text.get_text() for text in texts_of(display.figure_, ("label:",))] == [f"optimal {optimal.area:.3f}"]


def test_levels_have_depths_and_a_frame():
    display = RocLevelsDisplay.from_curves(LEVELS, optimal=OPTIMAL, depths=[0, 2, 5])
    assert display.methods == ["depth 0", "depth 2", "depth 5"]
    columns = display.columns()
    assert columns["method"][-1] == "optimal"
    np.testing.assert_array_equal(columns["depth"][:7], [0] * 3 + [2] * 4)
    assert np.isnan(columns["depth"][-1])
    assert len(display.frame()) == 3 + 4 + 4 + 4
    assert repr(display).startswith("<RocLevelsDisplay of 3 depths, AUC 0.700 to")
    axes = Figure(layout="constrained").subplots(1, 2)
    assert display.plot(axes).ax_ == tuple(axes)
    assert " ".join(axes[0].get_title(loc="left").split()) == "ROC curve, level by level"


@pytest.mark.parametrize("display", [RocDisplay({"a": OPTIMAL}), RocLevelsDisplay(LEVELS)], ids=["methods", "levels"])
def test_a_display_is_saved_undrawn(display, tmp_path):
    assert save_figure(display, tmp_path / "roc.png").stat().st_size > 5000
    assert display._repr_png_() is not None


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: RocDisplay({}), "'curves' of RocDisplay must be a dictionary with a RocCurve .* an empty one"),
        (lambda: RocDisplay(NUMBERS), "'curves' of RocDisplay must be a dictionary .* Got list"),
        (lambda: RocDisplay({"a": NUMBERS}), r"'curves\['a'\]' of RocDisplay must be a RocCurve. Got list"),
        (lambda: RocDisplay({"a": OPTIMAL}, bands={"a": OPTIMAL}), r"'bands\['a'\]' .* must be a RocBand"),
        (
            lambda: RocDisplay({"a": OPTIMAL}, bands={"b": roc_band(Y, SCORE, method="dkw")}),
            "'bands' of RocDisplay names 'b', which is not one of the curves. Hint: they are a",
        ),
        (lambda: RocDisplay({"a": OPTIMAL}, optimal=NUMBERS), "'optimal' of RocDisplay must be a RocCurve. Got list"),
        (lambda: RocDisplay.from_scores(Y, SCORE), "'scores' of RocDisplay.from_scores must be a dictionary"),
        (lambda: RocDisplay.from_scores(Y, {"a": SCORE}, band="normal"), "'method' parameter of roc_band"),
        (lambda: RocDisplay({"a": OPTIMAL}).plot(labels="beside"), "'labels' parameter of RocDisplay.plot"),
        (lambda: RocLevelsDisplay([]), "'curves' of RocLevelsDisplay must be a list of RocCurve"),
        (lambda: RocLevelsDisplay(NUMBERS), "'curves' of RocLevelsDisplay must be a list"),
        (lambda: RocLevelsDisplay(LEVELS, depths=[1, 2]), "'depths' of RocLevelsDisplay must have 3 values"),
        (lambda: RocLevelsDisplay(LEVELS, depths=[3, 2, 1]), "'depths' of RocLevelsDisplay must rise"),
        (lambda: RocLevelsDisplay(LEVELS).plot(Figure().add_subplot()), "must be a pair of axes.* Got 1"),
        (lambda: DependenceDisplay(NUMBERS), "'dependence' of DependenceDisplay must be a Dependence. Got list .*Hint"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(build, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        build()


# --- dependence ---------------------------------------------------------------------------------------------

COLUMNS = [
    Column("turnover"),
    Column("age"),
    Column("sector", ("retail", "catering", "a sector with $k_1$ and a name longer than a plot writes out")),
    Column("size", ("small", "large")),
]


def dependence(features):
    generator = np.random.default_rng(0)
    rows = generator.lognormal(size=(200, 4))
    rows[:, 2], rows[:, 3] = generator.integers(0, 3, 200), generator.integers(0, 2, 200)
    rows[:10, 2] = np.nan
    return partial_dependence(lambda X: X[:, 0] * X[:, 1] + np.nan_to_num(X[:, 2]), rows, COLUMNS, features)


@pytest.mark.parametrize("features", ["turnover", "sector", ["turnover", "age"], ["sector", "age"], ["size", "sector"]])
def test_dependence_is_drawn_inside(features):
    display = DependenceDisplay(dependence(features)).plot()
    assert_inside(display.figure_)
    assert_apart(texts_of(display.figure_, ("share:", "cell", "level:")))
    assert_apart_turned(display.ax_.get_xticklabels())
    assert len(display.frame()) == display.dependence.mean.size
    assert "Mean score by" in display.figure_.get_suptitle()


def test_a_number_is_a_line_and_a_category_bars():
    line = DependenceDisplay(dependence("age")).plot()
    np.testing.assert_array_equal(lines_of(line.ax_)["mean"].get_ydata(), line.dependence.mean)
    bars = DependenceDisplay(dependence("sector")).plot()
    ends = [bar.get_x() + bar.get_width() for bar in bars.ax_.patches]
    np.testing.assert_allclose(ends, np.sort(bars.dependence.mean))
    ticks = [label.get_text() for label in bars.ax_.get_yticklabels()]
    assert ticks[-1].startswith('"a sector with $k_1')  # the highest code has the highest score
    assert "missing" in ticks
    shares = {text.get_gid(): text.get_text() for text in texts_of(bars.figure_, ("share:",))}
    assert shares[f"share: {ticks.index('missing')}"] == "5 %"


def test_two_columns_are_a_map_with_lines_or_figures():
    numbers = DependenceDisplay(dependence(["turnover", "age"])).plot()
    mesh = next(shape for shape in numbers.ax_.collections if shape.get_gid() == "map")
    np.testing.assert_array_equal(np.ravel(mesh.get_array()), numbers.dependence.mean.T.ravel())
    assert len(numbers.ax_.collections) == 2
    cells = DependenceDisplay(dependence(["size", "sector"])).plot()
    written = [text.get_text() for text in cells.ax_.findobj(Text) if text.get_gid() == "cell"]
    assert written == [f"{value:.3g}" for value in cells.dependence.mean.ravel()]
    assert [label.get_text() for label in cells.ax_.get_xticklabels()] == ["small", "large"]
    assert repr(cells) == "<DependenceDisplay of 2 columns: size, sector>"


def test_lines_of_a_map_say_their_level_once_and_apart():
    generator = np.random.default_rng(0)
    rows = generator.uniform(0, 9, (300, 2))
    waves = partial_dependence(lambda X: np.sin(X[:, 0]) + np.cos(X[:, 1]), rows, COLUMNS[:2], [0, 1])
    cliff = partial_dependence(lambda X: 1.0 * (X[:, 0] > 4) + 1e-6 * X[:, 1], rows, COLUMNS[:2], [0, 1])
    for result, most in ((waves, 20), (cliff, 2)):  # at a cliff all lines run side by side
        display = DependenceDisplay(result).plot()
        written = texts_of(display.figure_, ("level:",))
        assert len({text.get_gid() for text in written}) == len(written) <= most
        assert_apart(written)
        frame = display.ax_.get_window_extent()
        for text in written:
            box = Text.get_window_extent(text)
            assert frame.x0 <= box.x0 < box.x1 <= frame.x1
            assert frame.y0 <= box.y0 < box.y1 <= frame.y1
    assert len(texts_of(DependenceDisplay(waves).plot().figure_, ("level:",))) >= 3


def assert_apart_turned(labels):
    """Lines of text do not touch: seen along the text, the next one begins a line's height further."""
    middles = [label.get_transform().transform(label.get_position()) for label in labels if label.get_text()]
    for label, gap in zip(labels, np.diff(np.array(middles)[:, 0]), strict=False):
        angle = np.radians(label.get_rotation())
        height = label.get_fontsize() / 72 * label.figure.dpi
        if angle == 0:
            assert Text.get_window_extent(label).width <= gap
        else:
            assert gap * np.sin(angle) >= height


@pytest.mark.parametrize(("n", "angle"), [(2, 0), (25, 30), (80, 90)])
def test_categories_along_a_map_are_turned_and_thinned(n, angle):
    columns = [Column("sector", tuple(f"number {i}" for i in range(n))), Column("age")]
    rows = np.column_stack((np.arange(200) % n, np.arange(200.0) % 17))
    display = DependenceDisplay(partial_dependence(lambda X: X[:, 0] + X[:, 1], rows, columns, [0, 1])).plot()
    assert_inside(display.figure_)
    labels = display.ax_.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {angle}
    assert_apart_turned(labels)
    narrow = Figure((3, 3), layout="constrained").add_subplot()
    DependenceDisplay(display.dependence).plot(narrow)
    assert_apart_turned(narrow.get_xticklabels())
    assert narrow.get_xticklabels()[0].get_text() == "number 0"


@pytest.mark.parametrize(
    ("features", "score"),
    [
        ("turnover", 0.43812),
        ("turnover", 0.0),
        ("sector", 0.43812),
        (["turnover", "age"], 0.0),
        (["size", "sector"], 0.4),
    ],
)
def test_a_score_that_does_not_change_says_so(features, score):
    rows = np.column_stack((np.arange(12.0), np.arange(12.0), np.arange(12) % 3, np.arange(12) % 2))
    flat = partial_dependence(lambda X: np.full(len(X), score), rows, COLUMNS, features)
    display = DependenceDisplay(flat).plot()
    assert_inside(display.figure_)
    (text,) = texts_of(display.figure_, ("no effect",))
    assert " ".join(text.get_text().split()) == "no effect: the same mean score for every value"
    if features in ("turnover", "sector"):
        axis = display.ax_.yaxis if features == "turnover" else display.ax_.xaxis
        assert [label.get_text() for label in axis.get_ticklabels()] == [f"{score:.3g}"]
    assert not texts_of(DependenceDisplay(dependence(features)).plot().figure_, ("no effect",))


def test_a_note_says_how_many_rows_miss_the_number():
    rows = np.column_stack((np.arange(50.0), np.arange(50.0), np.arange(50) % 3, np.arange(50) % 2))
    rows[:4, 1] = np.nan

    def label(features):
        result = partial_dependence(lambda X: X[:, 0], rows, COLUMNS, features)
        return " ".join(DependenceDisplay(result).plot().ax_.get_xlabel().split())

    assert label("age") == "age Not shown: age missing, 8 % of the rows"
    assert label(["sector", "age"]) == "sector Not shown: age missing, 8 % of the rows"
    assert label(["turnover", "age"]) == "turnover Not shown: turnover or age missing, 8 % of the rows"
    assert label("turnover") == "turnover"
    rows[5:10, 2] = np.nan
    assert label("sector") == "Mean score (dotted: mean)"  # missing categories have a bar
