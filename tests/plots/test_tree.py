"""The picture of a tree: what it takes from a model, its data, and drawings in which everything fits."""

import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from plot_checks import PIXEL, assert_apart, assert_inside, settings, texts_of
from toprank import CostOptimalCurve, CostTree, MetaAP, MetaAPForest, RankingTree, TAOTree, TreeRank
from toprank.datasets import make_audit
from toprank.explain import side_condition
from toprank.plots import TreeDisplay, save_figure
from toprank.plots.style import RESOLUTION
from toprank.plots.tree import MAIN_CONDITIONS
from toprank.plots.tree_drawing import (
    Box,
    ShownNodes,
    branch_labels,
    broken,
    condition_lines,
    lay_out,
    missing_side,
    pack,
)
from toprank.tree.columns import Column

OURS = ("title:", "text:", "branch:", "number:", "origin:", "note", "heading")
NUMBERS: Any = [0, 1]
MODELS: dict[str, Any] = {
    "tree": RankingTree(max_depth=3, cv=0),
    "deep tree": RankingTree(max_depth=5, min_samples_leaf=20, cv=0),
    "meta-tree": MetaAP(max_depth=3, leaf_depth=3, cv=0),
    "default meta-tree": MetaAP(cv=0),
    "TreeRank": TreeRank(max_depth=2, leaf_depth=3, cv=0),
    "oblique tree": TAOTree(max_depth=2, cv=0),
    "cost tree": CostTree(ccp_alpha=2.0, cv=0),
    "stump": RankingTree(max_depth=1, cv=0),
    "root alone": CostTree(ccp_alpha=1000.0, cv=0),
}


@pytest.fixture(scope="module")
def data():
    return make_audit(3000, random_state=0)


@pytest.fixture(scope="module")
def models(data):
    return {name: model.fit(data.X, data.y) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def curve(data):
    return CostOptimalCurve(depths=[2], alphas=[3], cv=0).fit(data.X, data.y)


def written(figure, start):
    """Texts of ours by the rest of their name."""
    return {text.get_gid().removeprefix(start).strip(): text.get_text() for text in texts_of(figure, (start,))}


def boxes_of(figure):
    return [box for box in figure.findobj(FancyBboxPatch) if (box.get_gid() or "").startswith("box:")]


def fill_of(figure, name):
    return to_hex(next(box for box in boxes_of(figure) if box.get_gid() == f"box: {name}").get_facecolor())


def assert_boxes_hold_their_texts(figure):
    """Boxes lie apart, each with its own texts whole inside, and what stands between them touches none."""
    extents = [box.get_window_extent() for box in boxes_of(figure)]
    for a, b in itertools.combinations(extents, 2):
        assert a.x1 <= b.x0 + PIXEL or b.x1 <= a.x0 + PIXEL or a.y1 <= b.y0 + PIXEL or b.y1 <= a.y0 + PIXEL
    for text in texts_of(figure, OURS):
        box = Text.get_window_extent(text)
        meets = [e for e in extents if e.x0 < box.x1 and box.x0 < e.x1 and e.y0 < box.y1 and box.y0 < e.y1]
        is_inside = text.get_gid().startswith(("title:", "text:"))
        assert len(meets) == is_inside, text.get_text()
        for e in meets:
            fits = (
                e.x0 <= box.x0 + PIXEL and box.x1 <= e.x1 + PIXEL and e.y0 <= box.y0 + PIXEL and box.y1 <= e.y1 + PIXEL
            )
            assert fits, f"{text.get_text()!r} leaves its box"


def assert_well_drawn(figure):
    assert_inside(figure)
    texts = texts_of(figure, OURS)
    for i, text in enumerate(texts):
        text.set_gid(f"{text.get_gid()} #{i}")  # a leaf that several branches lead to has several texts
    assert_apart(texts)
    assert_boxes_hold_their_texts(figure)


# --- drawings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_all_is_inside_and_nothing_overlaps(name, models):
    display = TreeDisplay.from_estimator(models[name]).plot()
    assert_well_drawn(display.figure_)
    title = display.figure_._suptitle.get_window_extent()
    note = texts_of(display.figure_, ("note",))[0].get_window_extent()
    assert title.y0 >= note.y1, "the title lies over the tree"
    assert title.x0 == pytest.approx(note.x0, abs=3)


@pytest.mark.parametrize("max_depth", [1, 4])
def test_upper_parts_are_drawn_as_well(max_depth, models):
    for name in ("deep tree", "default meta-tree"):
        display = TreeDisplay.from_estimator(models[name], max_depth=max_depth).plot()
        assert_well_drawn(display.figure_)
        assert any(text.startswith("…") for text in written(display.figure_, "title:").values())
        level = f"the first {max_depth} level{'s' if max_depth > 1 else ''}"
        assert level in " ".join(display.figure_.get_suptitle().split())


def test_long_names_and_many_categories_fit(data):
    generator = np.random.default_rng(0)
    long = "a_name_without_any_end_" * 5
    frame = pandas.DataFrame(
        {
            long: generator.normal(size=600),
            "$x_1$ & some words\nin two lines that go on and on": generator.normal(size=600),
            "kind": pandas.Categorical(generator.choice([f"category {'long ' * i}" for i in range(12)], 600)),
        }
    )
    label = (frame[long] + generator.normal(size=600) > 1.2).astype(int)
    for model in (RankingTree(max_depth=3, cv=0), TAOTree(max_depth=2, cv=0), MetaAP(max_depth=2, leaf_depth=3, cv=0)):
        display = TreeDisplay.from_estimator(model.fit(frame, label), title="A long title, " * 12).plot()
        assert_well_drawn(display.figure_)
        assert display.figure_.get_figwidth() < 25


def test_axes_of_the_caller_get_smaller_texts_and_their_own_title(models):
    # At the resolution that boxes are measured at: before 3.11, matplotlib rounds the height of lines to whole pixels.
    figure = Figure((11, 5), dpi=RESOLUTION, layout="constrained")
    one, other = figure.subplots(1, 2)
    display = TreeDisplay.from_estimator(models["tree"], ax=one)
    assert display.ax_ is one
    assert display.figure_ is figure
    TreeDisplay.from_estimator(models["oblique tree"], title="mine").plot(other)
    assert_inside(figure)
    assert_boxes_hold_their_texts(figure)
    assert [ax.get_title(loc="left") for ax in (one, other)] == ["RankingTree: 7 leaves, 6 conditions", "mine"]
    sizes = [next(text for text in texts_of(ax, ("note",))).get_fontsize() for ax in (one, other)]
    assert sizes[0] < sizes[1] <= 10.5
    with pytest.raises(ValueError, match=r"'ax' .* room for a tree of .* inches. Got axes of .* Hint: use larger"):
        TreeDisplay.from_estimator(models["default meta-tree"], ax=Figure((4, 3)).add_subplot())


def test_leaves_are_darker_the_more_positives_they_have(models):
    model = models["tree"]
    figure = TreeDisplay.from_estimator(model).plot().figure_
    ends = np.flatnonzero(model.tree_.is_leaf)
    share = model.tree_.positive[ends] / (model.tree_.positive + model.tree_.negative)[ends]
    red = [int(fill_of(figure, f"leaf {node}")[1:3], 16) for node in ends]
    assert all(red[i] > red[j] for i, j in itertools.permutations(range(len(ends)), 2) if share[i] < share[j])
    assert fill_of(figure, f"leaf {ends[share.argmax()]}") == "#0072b2"


def test_the_tree_says_what_to_text_says(models):
    model = models["tree"]
    figure, tree = TreeDisplay.from_estimator(model).plot().figure_, model.tree_
    texts, titles = written(figure, "text:"), written(figure, "title:")
    for node in range(len(tree)):
        words = " ".join(texts[str(node)].split())
        if tree.is_leaf[node]:
            figures = words.replace(" positive ", " positive (") + ")"
            assert f"{titles[str(node)]}: {figures}" in model.to_text(tree=True)
        else:
            assert words == f"{side_condition(tree, model.columns_, node).text()}?"
    branches = written(figure, "branch:")
    assert len(branches) == len(tree) - 1
    assert {label.split(",")[0] for label in branches.values()} == {"yes", "no"}


def test_a_node_of_several_parents_is_drawn_once(models):
    model = models["default meta-tree"]
    shown = ShownNodes(model.tree_, None)
    figure = TreeDisplay.from_estimator(model, max_depth=20).plot().figure_
    kinds = [box.get_gid().split()[1] for box in boxes_of(figure)]
    assert kinds.count("condition") == model.n_conditions_
    assert kinds.count("leaf") == model.n_leaves_
    assert kinds.count("jump") == sum(shown.n_parents[node] for node in shown.walk.number)
    assert kinds.count("chip") == shown.n_parents[model.tree_.is_leaf].sum()
    assert set(written(figure, "number:")) == {f"[{i}]" for i in range(1, len(shown.walk.number))}
    listed = [box.get_gid() for box in boxes_of(figure) if box.get_gid().startswith("box: leaf")]
    assert [model.tree_.leaf[int(gid.split()[-1])] for gid in listed] == list(range(model.n_leaves_))
    assert texts_of(figure, ("heading",))[0].get_text() == "The leaves, best first"


def test_the_numbers_are_those_of_the_text_tree(models):
    model = models["default meta-tree"]
    origins = written(TreeDisplay.from_estimator(model, max_depth=20).plot().figure_, "origin:")
    text = model.to_text(tree=True)
    assert origins
    for number, origin in origins.items():
        assert f"{number} {' '.join(origin.split())}" in text


# --- what is said -------------------------------------------------------------------------------------------


def test_weighted_sums_have_a_line_for_each_term(models):
    tree, columns = models["oblique tree"].tree_, models["oblique tree"].columns_
    node = next(n for n in range(len(tree)) if tree.oblique_at[n + 1] - tree.oblique_at[n] > 3)
    n_terms = int(tree.oblique_at[node + 1] - tree.oblique_at[node])
    lines = condition_lines(tree, columns, node, 2)
    assert len(lines) == 4
    assert lines[2] == f"+ {n_terms - 2} smaller"
    assert lines[3].startswith("<= ")
    assert len(condition_lines(tree, columns, node, 100)) == n_terms + 1
    plain = (
        side_condition(tree, columns, node)
        .text()
        .replace(" smaller terms", " smaller")
        .replace(" smaller term", " smaller")
    )
    assert " ".join(condition_lines(tree, columns, node, 3)).removeprefix("- ") == f"{plain.removeprefix('-')}?"


def test_branches_say_where_missing_values_go(models):
    model = models["stump"]
    tree, seen = model.tree_, [replace(column, has_missing=True) for column in model.columns_]
    never = [replace(column, has_missing=False) for column in model.columns_]
    left, right = (replace(tree, missing_left=np.full(len(tree), side)) for side in (1, 0))
    assert (missing_side(left, seen, 0), missing_side(right, seen, 0), missing_side(left, never, 0)) == (
        "yes",
        "no",
        "",
    )
    assert branch_labels(left, seen, 0) == branch_labels(right, never, 0) == ("yes", "no")
    assert branch_labels(right, seen, 0) == ("yes", "no, or\nmissing")
    assert "missing" in condition_lines(left, seen, 0, 3)[0]
    assert "missing" not in condition_lines(right, seen, 0, 3)[0]
    drawn = TreeDisplay(right, seen).plot().figure_
    assert written(drawn, "branch:") == {"0 yes": "yes", "0 no": "no, or\nmissing"}


def test_a_note_tells_if_weighted_sums_take_the_mean_of_missing_values(models):
    model = models["oblique tree"]
    tree, n_terms = model.tree_, len(model.tree_.oblique_weight)
    seen = [replace(column, has_missing=True) for column in model.columns_]
    never = [replace(column, has_missing=False) for column in model.columns_]
    node = int(np.flatnonzero(np.diff(tree.oblique_at))[0])
    for fill, columns, side, says in ((0.5, seen, "", True), (0.5, never, "", False), (np.nan, seen, "no", False)):
        filled = replace(tree, oblique_fill=np.full(n_terms, fill), missing_left=np.zeros(len(tree)))
        assert missing_side(filled, columns, node) == side
        note = texts_of(TreeDisplay(filled, columns).plot().figure_, ("note",))[0].get_text()
        assert ("missing values count as" in note) == says


def test_lines_break_between_words_and_names_stay_whole():
    assert broken("vat_refund_share <= 0.5015?", 26) == ["vat_refund_share", "<= 0.5015?"]
    assert broken("age <= 3?", 26) == ["age <= 3?"]
    assert broken("sector is hospitality or import-export?", 26)[-1].endswith("import-export?")
    assert max(map(len, broken("x" * 200, 26))) == 44


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_frame_has_a_row_for_each_node(backend, models):
    model = models["tree"]
    frame = TreeDisplay.from_estimator(model).frame(backend)
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names[:7] == ["node", "kind", "condition", "yes", "no", "missing", "leaf"]
    assert len(frame) == len(model.tree_)
    columns = TreeDisplay.from_estimator(model).columns()
    np.testing.assert_array_equal(columns["cases"], model.tree_.positive + model.tree_.negative)
    assert columns["lift"][0] == pytest.approx(1.0)
    assert sorted(columns["leaf"]) == [0] * 6 + list(range(1, 8))
    cut = TreeDisplay.from_estimator(model, max_depth=1).columns()
    assert cut["kind"] == ["condition", "more", "more"]
    assert cut["yes"].tolist()[1:] == [-1, -1]


def test_the_curve_shows_its_selected_tree_else_the_base(curve):
    base = TreeDisplay.from_estimator(curve)
    assert base.tree is curve.path_[curve.base_point_].tree.tree_
    assert base.methods[0].startswith("CostOptimalCurve, tree at a cost ratio of ")
    selected = curve.select(max_fpr=0.05)
    assert TreeDisplay.from_estimator(curve.with_choice(selected)).tree is selected.point.tree.tree_


# --- files and traces ---------------------------------------------------------------------------------------


def test_the_same_tree_gives_the_same_bytes(models, tmp_path):
    displays = [TreeDisplay.from_estimator(models["TreeRank"]) for _ in range(2)]
    one, other = (save_figure(each, tmp_path / f"{i}.svg").read_bytes() for i, each in enumerate(displays))
    assert one == other


def test_settings_of_the_caller_stay_as_they_are(models):
    before = settings()
    display = TreeDisplay.from_estimator(models["stump"])
    assert display.figure_ is None
    assert display.plot()._repr_png_().startswith(b"\x89PNG")
    assert settings() == before
    assert repr(display) == "<TreeDisplay of RankingTree: 2 leaves, 1 condition>"
    assert TreeDisplay.from_estimator(models["stump"], title="").plot().figure_._suptitle is None


def test_a_missing_matplotlib_is_said_in_a_sentence(models, monkeypatch):
    display = TreeDisplay.from_estimator(models["tree"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    sentence = (
        r"TreeDisplay.plot needs the package 'matplotlib', which is not installed. "
        r"Hint: pip install \"toprank\[plots\]\"\.$"
    )
    with pytest.raises(ImportError, match=sentence):
        display.plot()
    assert len(display.frame()) == len(models["tree"].tree_)  # the data need no matplotlib


# --- what is refused ----------------------------------------------------------------------------------------


def test_models_that_are_not_one_tree_are_refused(data):
    forest = MetaAPForest(n_estimators=2, random_state=0).fit(data.X[:500], data.y[:500])
    with pytest.raises(
        TypeError, match=r"draws rankers that are one tree, but MetaAPForest has many. Hint: TreeDisplay\("
    ):
        TreeDisplay.from_estimator(forest)
    assert 1 < len(boxes_of(TreeDisplay(forest.trees_[0], forest.columns_, max_depth=2).plot().figure_)) <= 7
    for other in (RankingTree(cv=0), CostOptimalCurve(), MetaAPForest(), NUMBERS):
        with pytest.raises(TypeError, match=r"needs a fitted ranker that is one tree. Got \w+ instead. Hint: call fit"):
            TreeDisplay.from_estimator(other)


def test_of_large_trees_the_main_conditions_are_drawn(data):
    model = RankingTree(max_depth=10, min_samples_leaf=1, cv=0).fit(data.X, data.y)
    model = model if model.n_conditions_ > 80 else CostTree(ccp_alpha=0, cv=0).fit(data.X, data.y)
    assert model.n_conditions_ > 80
    for options in ({}, {"max_depth": 30}):
        display = TreeDisplay.from_estimator(model, **options)
        kinds = display.columns()["kind"]
        assert kinds.count("condition") == MAIN_CONDITIONS
        assert "the main ones drawn" in repr(display)
        assert_well_drawn(display.plot().figure_)
        folded = [text for text in written(display.figure_, "text:").values() if "more condition" in text]
        assert len(folded) == kinds.count("more")


def test_the_main_conditions_are_those_that_most_positives_reach(models):
    tree = models["default meta-tree"].tree_
    shown = ShownNodes(tree, None, 5)
    opened = np.flatnonzero(shown.is_open)
    assert shown.n_conditions == 5
    assert shown.is_open[0]
    assert all(shown.n_parents[node] > 0 for node in opened[1:])
    heavier = max(tree.left[0], tree.right[0], key=lambda node: (not tree.is_leaf[node], tree.positive[node]))
    assert shown.is_open[heavier]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_depth": 0}, "'max_depth' parameter of TreeDisplay must be an int of 1 or more. Got 0 instead"),
        ({"max_depth": True}, "'max_depth' .* Got True"),
        ({"terms": 1.5}, "'terms' parameter of TreeDisplay .* Got 1.5"),
        ({"schema": [Column("a")]}, "'schema' of TreeDisplay must have a Column for each of the 22 features .* Got 1"),
        ({"tree": NUMBERS}, "'tree' of TreeDisplay must be a Tree. Got list instead. Hint: from_estimator"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(options, sentence, models):
    with pytest.raises((ValueError, TypeError), match=sentence):
        TreeDisplay(**({"tree": models["tree"].tree_, "schema": models["tree"].columns_} | options))


# --- places -------------------------------------------------------------------------------------------------


def random_tree(generator, depth):
    box = Box(*generator.uniform(0.3, 2.5, 2), label_size=(0.3, generator.uniform(0.1, 0.4)))
    if depth and generator.random() < 0.8:
        box.children = [random_tree(generator, depth - 1) for _ in range(2)]
    return box


@pytest.mark.parametrize("seed", range(20))
def test_boxes_of_any_tree_lie_apart_and_parents_over_the_middle(seed):
    root = random_tree(np.random.default_rng(seed), 5)
    width, height = lay_out(root)
    boxes = list(root.walk())
    for a, b in itertools.combinations(boxes, 2):
        beside = abs(a.x - b.x) >= (a.width + b.width) / 2
        assert beside or a.y + a.height < b.y or b.y + b.height < a.y
    for box in boxes:
        assert box.x - box.width / 2 >= -1e-9
        assert box.x + box.width / 2 <= width + 1e-9
        assert box.y + box.height <= height + 1e-9
        if box.children:
            assert box.x == pytest.approx(sum(child.x for child in box.children) / 2)
            assert all(box.y + box.height < box.bar < child.y - child.label_size[1] for child in box.children)


@pytest.mark.parametrize("seed", range(10))
def test_sheets_do_not_overlap(seed):
    generator = np.random.default_rng(seed)
    sizes = [tuple(size) for size in generator.uniform(1, 9, (generator.integers(1, 25), 2))]
    places, width, height = pack(sizes)
    assert places[0] == (0, 0)
    sheets = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    assert max(sheet[2] for sheet in sheets) <= width + 1e-9
    assert max(sheet[3] for sheet in sheets) <= height + 1e-9
    for a, b in itertools.combinations(sheets, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
