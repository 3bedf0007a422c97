"""The display of cost-optimal curves: what it takes from a model, its data, and drawings in which everything fits."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plot_cases import names
from plot_checks import assert_apart, assert_inside, legend_of, lines_of, texts_of
from toprank import CostOptimalCurve, CostOptimalForest, RankingTree, TAOTree
from toprank.metrics import OperatingPoints, RocCurve, roc_curve
from toprank.plots import CostOptimalCurveDisplay, method_styles, save_figure
from toprank.plots.cost_curve import roc_of_leaves

TREES = OperatingPoints([0.1, 0.2, 0.5, 2.0], [40, 42, 10, 0], [0, 5, 10, 30], positives=40, negatives=100)
OTHERS = OperatingPoints(None, [50, 20], [2, 15], positives=40, negatives=100)
SCORE = RocCurve([0, 0.2, 0.6, 1], [0, 0.5, 0.9, 1])
NUMBERS: Any = [0, 1]


def cloud(seed, n=12):
    """Points around a curve, some of them dominated."""
    generator = np.random.default_rng(seed)
    false_positives = np.sort(generator.integers(0, 600, n))
    missed = 100 * np.exp(-false_positives / 150) * generator.uniform(0.8, 1, n)
    return OperatingPoints(np.geomspace(0.01, 3, n)[::-1], false_positives, missed, positives=100, negatives=1000)


@pytest.fixture(scope="module")
def cases():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 3))
    y = np.where(X[:, 0] + X[:, 1] + 1.2 * generator.normal(size=600) > 2, "fraud", "fine")
    return X[:400], y[:400], X[400:], y[400:]


@pytest.fixture(scope="module")
def curve(cases):
    return CostOptimalCurve(depths=[1], alphas=[1], cv=3, cost_factor=2.0, pos_label="fraud").fit(*cases[:2])


# --- what is taken from a model -----------------------------------------------------------------------------


def with_costs(curve, points):
    """The points, those of trees between two costs without one."""
    is_between = [point.is_between for point in curve.path_]
    return replace(points, cost_ratio=np.where(is_between, np.nan, points.cost_ratio))


def test_a_fitted_curve_shows_its_points_out_of_fold_points_and_base_tree(curve, cases):
    X, y, X_test, y_test = cases
    base = curve.path_[curve.base_point_].tree
    alone = CostOptimalCurveDisplay.from_curve(curve)
    assert list(alone.points) == ["cost-optimal curve", "cost-optimal curve, out of fold"]
    assert any(point.is_between for point in curve.path_)
    assert alone.points["cost-optimal curve"] == with_costs(curve, curve.points_)
    assert alone.points["cost-optimal curve, out of fold"] == with_costs(curve, curve.held_out_points_)
    assert (alone.test_points, alone.test_curves, alone.selected) == ({}, {}, {})
    leaves = base.tree_

    def rates(rows):
        """Share of positives among the training cases in the leaf of each row."""
        node = base.apply(rows)
        return leaves.positive[node] / (leaves.positive[node] + leaves.negative[node])

    seen = alone.curves["ROC of the base tree"]
    assert seen.distance(roc_curve(y, rates(X), pos_label="fraud"), "sup") == pytest.approx(0, abs=1e-12)
    weight = np.arange(len(y_test)) % 3
    both = CostOptimalCurveDisplay.from_curve(curve, X_test, y_test, weight)
    assert both.test_points["cost-optimal curve"] == with_costs(curve, curve.points(X_test, y_test, weight))
    expected = roc_curve(y_test, rates(X_test), sample_weight=weight, pos_label="fraud")
    assert both.test_curves["ROC of the base tree"] == expected


def test_the_roc_of_a_base_tree_has_a_knot_a_leaf(curve):
    tree = curve.path_[curve.base_point_].tree
    found = roc_of_leaves(tree.tree_)
    assert len(found.alpha) == tree.n_leaves_ + 1
    at_base = 1 - tree.n_fn_ / curve.points_.positives
    assert found(tree.n_fp_ / curve.points_.negatives) == pytest.approx(at_base)  # touches the curve there


def test_other_models_are_judged_by_the_test_cases(curve, cases):
    X, y, X_test, y_test = cases
    linear = LogisticRegression().fit(X, y)
    turned = LogisticRegression().fit(X, np.where(y == "fraud", "a", "b"))
    forest = type(
        "OnlyRates", (), {"classes_": linear.classes_, "predict_proba": lambda self, X: linear.predict_proba(X)}
    )()
    others = {"linear": linear, "rates": forest, "again": curve, "trees": TREES, "score": SCORE}
    display = CostOptimalCurveDisplay.from_curve(curve, X_test, y_test, others=others)
    expected = roc_curve(y_test, linear.decision_function(X_test), pos_label="fraud")
    assert display.test_curves["linear"] == expected
    assert display.test_curves["rates"].area == pytest.approx(expected.area)
    assert display.test_points["again"] == curve.points(X_test, y_test)
    assert (display.test_points["trees"], display.test_curves["score"]) == (TREES, SCORE)
    assert set(display.points) == {"cost-optimal curve", "cost-optimal curve, out of fold"}
    assert CostOptimalCurveDisplay.from_curve(curve, others={"trees": TREES}).points["trees"] == TREES
    # The classes of scikit-learn are in order: where the positive one is the first, its score is turned around.
    first = CostOptimalCurve(depths=[1], alphas=[1], cv=0, pos_label="a").fit(X, np.where(y == "fraud", "a", "b"))
    test = np.where(y_test == "fraud", "a", "b")
    shown = CostOptimalCurveDisplay.from_curve(first, X_test, test, others={"linear": turned}).test_curves["linear"]
    assert shown.area == pytest.approx(expected.area)


@pytest.mark.parametrize("is_between", [False, True])
def test_what_was_selected_is_ringed_in_every_set(curve, cases, is_between):
    *_, X_test, y_test = cases
    rates = curve.held_out_points_.false_positive_rate
    chosen = (curve.select(max_fpr=rate) for rate in rates[(rates > 0) & (rates < 1)])
    chosen = next(each for each in chosen if each.point.is_between == is_between)
    position = chosen.position
    display = CostOptimalCurveDisplay.from_curve(curve.with_choice(chosen), X_test, y_test).plot()
    for ax, points in zip(display.ax_, (curve.points_, curve.points(X_test, y_test)), strict=True):
        (x,), (y,) = lines_of(ax)["selected: cost-optimal curve"].get_data()
        assert (x, y) == (100 * points.false_positive_rate[position], 100 * points.true_positive_rate[position])
        share = f"{100 * points.true_positive_rate[position]:.3g} % found"
        source = "training" if ax is display.ax_[0] else "test"
        assert any(text.startswith(f"selected, {source}: {share}") for text in legend_of(ax))
        ratio = f"{points.cost_ratio[position]:.2g}"
        assert (ratio in [text.get_text() for text in texts_of(ax, ("label: ratio",))]) == (not is_between)
    assert "selected: cost-optimal curve, out of fold" in lines_of(display.ax_[0])
    assert any(text.startswith("selected, out of fold: ") for text in legend_of(display.ax_[0]))
    assert any(text.endswith("  cost-optimal curve") for text in legend_of(display.ax_[0]))  # the title says the rest


def test_one_panel_alone_says_what_is_of_the_training_cases(curve):
    texts = legend_of(CostOptimalCurveDisplay.from_curve(curve, others={"trees": TREES}).plot().ax_)
    assert [text.split("  ")[1] for text in texts if "  " in text] == [
        "cost-optimal curve, training", "cost-optimal curve, out of fold", "trees", "ROC of the base tree, training",
    ]  # fmt: skip


def test_names_of_others_are_theirs(curve):
    by_hand = "cost-optimal curve by hand"
    chosen = curve.with_choice(curve.select(max_fpr=0.2))
    display = CostOptimalCurveDisplay.from_curve(chosen, others={by_hand: OTHERS})
    assert set(display.selected) == {"cost-optimal curve", "cost-optimal curve, out of fold"}
    assert by_hand in display.points
    for name in ("cost-optimal curve", "cost-optimal curve, out of fold", "ROC of the base tree"):
        with pytest.raises(ValueError, match=f"'others' of .* has a model named '{name}', .* Hint: give it another"):
            CostOptimalCurveDisplay.from_curve(curve, others={name: OTHERS})


def test_the_cost_of_the_chosen_point_is_written_even_where_it_is_dominated():
    for position, ratio in enumerate(("0.1", "0.2", "0.5", "2")):
        ax = CostOptimalCurveDisplay.from_points({"a": TREES}, selected={"a": position}).plot().ax_
        assert ratio in [text.get_text() for text in texts_of(ax, ("label: ratio",))]


def places_of(line):
    """Where the points of a line are on its axes, in the units of the axes."""
    return line.axes.transData.inverted().transform(line.get_transform().transform(np.column_stack(line.get_data())))


@pytest.mark.parametrize("xlim", [None, (0, 60)])
def test_found_by_number_of_alerts(xlim):
    display = CostOptimalCurveDisplay.from_points({"a": TREES}, {"score": SCORE}, selected={"a": 2})
    ax = display.plot(x="alerts", xlim=xlim).ax_
    lines = lines_of(ax)
    kept = np.argsort(TREES.false_positives[~TREES.is_dominated])
    expected = np.column_stack([TREES.alerts, 100 * TREES.true_positive_rate])[~TREES.is_dominated][kept]
    assert np.allclose(places_of(lines["method: a"]), expected)
    assert np.allclose(places_of(lines["selected: a"]), [[40, 75]])
    assert np.allclose(places_of(lines["random"]), [[0, 0], [140, 100]])
    knots = 100 * SCORE.alpha + 40 * SCORE.beta
    assert np.allclose(places_of(lines["method: score"]), np.column_stack([knots, 100 * SCORE.beta]))
    assert ax.get_xlabel().startswith("Alerts among 140 cases")
    assert ax.get_ylabel() == "Positives found (%)"
    assert "selected: 40 alerts, 75 % found" in legend_of(ax)
    assert ax.get_xlim()[1] == pytest.approx(1.01 * (140 if xlim is None else 60))
    assert ax.get_ylim()[1] >= max(y for x, y in expected if x <= ax.get_xlim()[1])
    assert ax.get_position().width > 0.5  # a legend does not squeeze the axes


def test_the_first_alerts_of_a_tree_are_ringed_where_they_end(curve):
    selection = next(each for k in range(2, 80) if (each := curve.select(k=k)).cut is not None)
    display = CostOptimalCurveDisplay.from_curve(curve.with_choice(selection)).plot(x="alerts")
    name = "cost-optimal curve, out of fold"
    assert list(display.selected) == [name]
    ring = places_of(lines_of(display.ax_)[f"selected: {name}"])
    assert np.allclose(ring, [[selection.alerts.value, 100 * selection.recall.value]])


def test_a_forest_has_no_base_tree_and_is_judged_by_its_votes(cases):
    X, y, X_test, y_test = cases
    forest = CostOptimalForest(TAOTree(max_depth=1), n_estimators=3, cost_factor=4.0, pos_label="fraud", random_state=0)
    forest.fit(X[:200], y[:200])
    display = CostOptimalCurveDisplay.from_curve(forest, X_test, y_test)
    assert display.methods == ["cost-optimal curve", "cost-optimal curve, out-of-bag votes"]
    assert display.test_points["cost-optimal curve"] == forest.points(X_test, y_test)
    forest.fit(X[:200], y[:200], X_val=X_test, y_val=y_test)
    assert "cost-optimal curve, validation data" in CostOptimalCurveDisplay.from_curve(forest).points


def test_a_pipeline_that_ends_in_a_ranker_is_not_drawn_upside_down(curve, cases):
    X, y, X_test, y_test = cases
    turned, test = (np.where(labels == "fraud", "a", "b") for labels in (y, y_test))
    first = CostOptimalCurve(depths=[1], alphas=[1], cv=0, cost_factor=9.0, pos_label="a").fit(X, turned)
    ranker = RankingTree(max_depth=2, pos_label="a", cv=0)
    others = {"alone": ranker.fit(X, turned), "in a pipeline": make_pipeline(StandardScaler(), ranker).fit(X, turned)}
    shown = CostOptimalCurveDisplay.from_curve(first, X_test, test, others=others).test_curves
    assert shown["in a pipeline"].area == pytest.approx(shown["alone"].area, abs=0.05)
    assert shown["alone"].area > 0.6


# --- data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_frame_has_a_row_for_each_point_and_knot(backend):
    display = CostOptimalCurveDisplay.from_points(
        {"trees": TREES}, {"score": SCORE}, test_points={"trees": OTHERS}, selected={"trees": 1}
    )
    frame = display.frame(backend)
    columns = frame.column_names if backend == "pyarrow" else frame.columns
    rows = {name: np.asarray(frame[name]).tolist() for name in columns}
    kinds = list(zip(rows["sample"], rows["method"], rows["kind"], strict=True))
    train, test = "training cases", "test cases"
    n_hull, n_test = len(TREES.hull().alpha), len(OTHERS.hull().alpha)
    assert kinds == (
        [(train, "trees", "point")] * 4 + [(train, "trees", "hull")] * n_hull + [(train, "score", "curve")] * 4
        + [(test, "trees", "point")] * 2 + [(test, "trees", "hull")] * n_test
    )  # fmt: skip
    assert rows["cost_ratio"][:4] == [0.1, 0.2, 0.5, 2.0]
    assert rows["is_dominated"][:4] == [False, True, False, False]
    assert np.flatnonzero(rows["is_selected"]).tolist() == [1, 4 + n_hull + 4 + 1]
    np.testing.assert_allclose(rows["alpha"][:4], TREES.false_positive_rate)
    np.testing.assert_allclose(rows["beta"][4 + n_hull : 8 + n_hull], SCORE.beta)
    assert np.isnan(np.array(rows["cost_ratio"][4:], float)).all()


# --- drawing ------------------------------------------------------------------------------------------------


def test_lines_join_what_is_not_dominated_and_hulls_reach_the_corners():
    styles = method_styles(["other", "trees", "score"])
    ax = CostOptimalCurveDisplay.from_points({"trees": TREES}, {"score": SCORE}).plot(styles=styles).ax_
    lines = lines_of(ax)
    np.testing.assert_allclose(lines["method: trees"].get_xdata(), [0, 10, 40])
    np.testing.assert_allclose(lines["method: trees"].get_ydata(), [25, 75, 100])
    np.testing.assert_allclose(lines["dominated: trees"].get_data(), [[42], [87.5]])
    np.testing.assert_allclose(lines["hull: trees"].get_xdata(), 100 * TREES.hull().alpha)
    np.testing.assert_allclose(lines["method: score"].get_ydata(), 100 * SCORE.beta)
    for name in ("trees", "score"):
        assert to_hex(lines[f"method: {name}"].get_color()).upper() == styles[name].colour
    assert legend_of(ax)[:2] == [f"hull {TREES.hull_area:.3f}  trees", f"AUC {SCORE.area:.3f}  score"]


def test_the_legend_says_what_hollow_points_and_dashed_lines_are():
    ax = CostOptimalCurveDisplay.from_points({"trees": TREES, "others": OTHERS}).plot().ax_
    assert legend_of(ax)[2:] == ["hollow: dominated by another point", "hull of the points"]  # once for all methods
    hollow, dashed = ax.get_legend().get_lines()[2:]
    drawn = lines_of(ax)
    assert hollow.get_markerfacecolor() == drawn["dominated: trees"].get_markerfacecolor() == "white"
    assert dashed._unscaled_dash_pattern == drawn["hull: trees"]._unscaled_dash_pattern
    ax = CostOptimalCurveDisplay.from_points({"others": OTHERS}).plot().ax_
    assert legend_of(ax)[1:] == ["hull of the points"]  # there is no hollow point


@pytest.mark.parametrize(
    ("n", "long", "has_test", "xlim"),
    [
        (1, False, False, None),
        (3, False, False, (0, 0.2)),
        (6, True, True, None),
    ],
)
def test_all_is_inside_and_nothing_overlaps(n, long, has_test, xlim):
    points = {name: cloud(i) for i, name in enumerate(names(n, long))}
    selected = dict.fromkeys(list(points)[:1], 5)
    test = points if has_test else None
    curves = {"a score": SCORE}
    display = CostOptimalCurveDisplay(points, curves, test, curves if has_test else None, selected).plot(xlim=xlim)
    assert_inside(display.figure_)
    for ax in display.ax_ if has_test else [display.ax_]:
        box, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
        assert len(legend_of(ax)) == n + 4
        assert box.height > 0.3 * display.figure_.bbox.height
        assert legend.x0 >= box.x0 - 0.15 * box.width
        assert legend.y1 <= box.y0 or (legend.x1 <= box.x1 + 1 and xlim is None)
        ratios = texts_of(ax, ("label: ratio",))
        assert 2 <= len(ratios) <= 7 or n == 6
        assert_apart(ratios)
        for text in ratios:
            extent = Text.get_window_extent(text)  # without the thread to its point
            assert extent.y0 >= legend.y1 or extent.x1 <= legend.x0 or extent.y1 <= legend.y0
            assert all(not line_crosses(line, extent) for line in ax.get_lines())


def line_crosses(line, box):
    """Whether a line that is drawn goes through the middle half of a box."""
    if line.get_linestyle() == "None" or not len(line.get_xdata()):
        return False
    corners = line.get_transform().transform(np.column_stack(line.get_data()))
    steps = np.linspace(0, 1, 400)[:, None]
    places = np.vstack([a + steps * (b - a) for a, b in pairwise(corners)] or [corners])
    middle, size = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2, np.array([box.width, box.height])
    return bool((np.abs(places - middle) < size / 4).all(axis=1).any())


def test_cost_ratios_are_written_where_they_are_known_and_wanted():
    display = CostOptimalCurveDisplay.from_points({"trees": TREES})
    ax = display.plot().ax_
    written = {text.get_text() for text in texts_of(ax, ("label: ratio",))}
    assert written <= {"0.1", "0.5", "2"}
    assert written
    assert ax.get_xlabel().endswith("Small figures: cost of a false alarm in misses")
    for other in (display.plot(labels="legend"), CostOptimalCurveDisplay.from_points({"a": OTHERS}).plot()):
        assert not texts_of(other.ax_, ("label: ratio",))
        assert other.ax_.get_xlabel() == "False positive rate (%)"
    bare = display.plot(labels="none")
    assert bare.ax_.get_legend() is None


def test_axes_of_the_caller_are_taken():
    ax = Figure(layout="constrained").add_subplot()
    display = CostOptimalCurveDisplay.from_points({"a": TREES}, title="Mine").plot(ax, xlim=(0, 0.5))
    assert display.ax_ is ax
    assert ax.get_title(loc="left") == "Mine"
    assert ax.get_xlim() == (-0.5, 50.5)
    pair = Figure(layout="constrained").subplots(1, 2)
    both = CostOptimalCurveDisplay.from_points({"a": TREES}, test_points={"a": OTHERS}).plot(pair)
    assert both.ax_ == tuple(pair)
    assert [each.get_title(loc="left") for each in pair] == ["training cases", "test cases"]
    assert CostOptimalCurveDisplay.from_points({"a": TREES}, title="").plot().figure_._suptitle is None


def test_a_display_is_saved_undrawn(tmp_path):
    display = CostOptimalCurveDisplay.from_points({"a": TREES}, test_curves={"b": SCORE})
    assert save_figure(display, tmp_path / "curve.png").stat().st_size > 5000
    assert display.methods == ["a", "b"]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: CostOptimalCurveDisplay({}), "'points' of CostOptimalCurveDisplay .* Got an empty one .*Hint"),
        (lambda: CostOptimalCurveDisplay(NUMBERS), "'points' of CostOptimalCurveDisplay must be .* Got list"),
        (lambda: CostOptimalCurveDisplay({"a": SCORE}), r"'points\['a'\]' .* must be OperatingPoints. Got RocCurve"),  # type: ignore
        (lambda: CostOptimalCurveDisplay({"a": TREES}, {"b": TREES}), r"'curves\['b'\]' .* must be RocCurve"),  # type: ignore
        (lambda: CostOptimalCurveDisplay({"a": TREES}, {"a": SCORE}), "both points and a ROC curve named 'a'"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}, selected=NUMBERS), "'selected' .* must be a dictionary"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}, selected={"b": 0}), "names 'b', .* Hint: they are a"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}, selected={"a": 4}), "position from 0 to 3. Got 4"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}).plot(labels="beside"), "'labels' parameter of"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}).plot(xlim=(0.2, 0.1)), r"'xlim' .* Got \(0.2, 0.1\)"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}).plot(xlim=0.1), "'xlim' .* two rates from 0 to 1"),  # type: ignore
        (lambda: CostOptimalCurveDisplay({"a": TREES}).plot(x="alert"), "'x' .* Got 'alert'"),
        (lambda: CostOptimalCurveDisplay({"a": TREES}).plot(x="alerts", xlim=(9, 5)), "'xlim' .* numbers of alerts"),
        (
            lambda: CostOptimalCurveDisplay({"a": TREES}, test_points={"a": OTHERS}).plot(Figure().add_subplot()),
            "a pair of axes, for training and test cases. Got 1",
        ),
        (lambda: CostOptimalCurveDisplay.from_curve(CostOptimalCurve()), "needs a fitted CostOptimalCurve"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(build, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        build()


def test_models_need_test_cases(curve, cases):
    with pytest.raises(ValueError, match="got X but no y"):
        CostOptimalCurveDisplay.from_curve(curve, cases[0])
    with pytest.raises(ValueError, match=r"'others\['b'\]' .* is a model, which needs test cases"):
        CostOptimalCurveDisplay.from_curve(curve, others={"b": curve})
    with pytest.raises(TypeError, match=r"'others\['b'\]' .* Got list"):
        CostOptimalCurveDisplay.from_curve(curve, others={"b": NUMBERS})
