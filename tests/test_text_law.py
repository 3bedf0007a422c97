"""The law of texts: whoever answers the questions of an exact text ends where the model does.

`text_reader` reads the text without knowing the package. Rows come from training and from elsewhere: values on a
threshold and beside it, values that are missing where training lacked none, categories that training did not know.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from grown_trees import columns_for, make_tree, node, with_whole_codes
from ranker_cases import fewer, make_cases
from tables import HUGE, NEIGHBOURS, NEIGHBOURS32, blocks, sample_weights, trees
from text_reader import TextTree, Words
from toprank import CostTree, MetaAP, RankingTree, TAOClassifier, TAOTree, TreeRank
from toprank._core.dtypes import NUMERIC
from toprank.export import to_text
from toprank.tree.columns import Column
from toprank.tree.scoring import LeafScorecard, squash
from toprank.words.wording import EXACT, category_text

NAMES = [
    "plain", "two words", "Plain", "a, b", 'q"uote', "it's", "x: y", "(z)", "[1]", "yes or no", "this and that",
    "a nor b", "really?", " lead", "trail ", "two  spaces", "line\nbreak", "tab\t", "", "missing", "not a", "neither a",
    "none of a", "or", "is", "x", "any", "no", "a x b", "a <= 3", "a - b", "+b", "-b", "1", "1.0", "-1", "1_000",
    "0x10", "True", "nan", "inf", "Infinity", "١٢", "é", "e\u0301", "日本", "\u2028", "\x85", "\xa0", "\\", "\\n",
    "leaf 1: x", "-> [1]", "|   yes: ", "3 more", "is missing", "a = b", "a;b", "😀", "a above b", "z" * 60,
]  # fmt: skip
UNKNOWN = "never seen, or missing"

SMALL: dict[str, Any] = {"max_depth": 2, "leaf_depth": 2, "min_samples_leaf": 1, "cv": 0}
META: dict[str, Any] = {"criterion": "ap", "ccp_alpha": 0.0} | SMALL
MODELS = {
    "rate": RankingTree(max_depth=3, min_samples_leaf=1, cv=0),
    "constant": MetaAP(leaf_score="constant", **META),
    "linear": MetaAP(leaf_score="linear", **META),
    "treerank": TreeRank(leaf_score="constant", **SMALL),
    "oblique": TreeRank(leaf_ranker="oblique", logistic_C=1e3, leaf_score="constant", **SMALL),
    "tao": TAOTree(max_depth=2, min_samples_leaf=1, alpha=0.01, leaf_score="constant", cv=0),
    "cost": CostTree(max_depth=3, leaf_score="constant", cv=0),
    "margin": MetaAP(leaf_score="margin", **META),
    "votes": RankingTree(leaf_score="votes", max_depth=3, min_samples_leaf=1, cv=0),
}
SUMS = ["oblique", "tao"]


# --- tables -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Columns of numbers, strings or booleans (None = missing), labels and weights."""

    columns: dict[str, list]
    y: np.ndarray
    weight: np.ndarray | None
    narrow: bool = False

    def frame(self, columns=None):
        """The table, or other rows of it, as a data frame."""
        return pd.DataFrame({name: self._series(values) for name, values in (columns or self.columns).items()})

    def texts(self):
        """Names of the columns that hold strings."""
        return [name for name, values in self.columns.items() if any(isinstance(value, str) for value in values)]

    @staticmethod
    def is_number(values):
        return all(
            value is None or (isinstance(value, float | int) and not isinstance(value, bool)) for value in values
        )

    def _series(self, values):
        if not self.is_number(values):
            return pd.Series(values, dtype="object")
        return pd.Series(values, dtype="float32" if self.narrow else "float64")


NUMBERS = {
    "neighbours": st.sampled_from(NEIGHBOURS),
    "huge": st.sampled_from(HUGE),
    "tiny": st.sampled_from([1e-300, 2e-300, -1e-300, 0.0, 5e-324]),
    "whole": st.integers(-3, 3).map(float),
    "large whole": st.integers(2**53 - 3, 2**53 + 3).map(float),
    "any": st.floats(-1e6, 1e6),
}
NARROW = {"neighbours32": st.sampled_from(NEIGHBOURS32), "any": st.floats(-1e6, 1e6, width=32)}


KINDS = ["numbers", "names", "names", "booleans"]
MOSTLY_NUMBERS = ["numbers", "numbers", "numbers", "names"]


@st.composite
def tables(draw, kinds=KINDS, min_columns=1):
    n = draw(st.integers(6, 20))
    narrow = draw(st.sampled_from([False, False, False, True]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=min_columns, max_size=4, unique=True))
    columns = {}
    for name in names:
        kind = "numbers" if narrow else draw(st.sampled_from(kinds))
        if kind == "numbers":
            pool = NARROW if narrow else NUMBERS
            cell = pool[draw(st.sampled_from(sorted(pool)))]
        elif kind == "names":
            cell = st.sampled_from(draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=8, unique=True)))
        else:
            cell = st.booleans()
        if draw(st.booleans()):
            cell = st.one_of(cell, cell, cell, st.none())
        columns[name] = draw(st.lists(cell, min_size=n, max_size=n))
    y = np.array(draw(st.lists(st.sampled_from([0, 0, 1]), min_size=n, max_size=n)))
    weight = draw(sample_weights(n))
    total = np.ones(n) if weight is None else weight
    assume(total[y == 1].any() and total[y == 0].any())
    return Table(columns, y, weight, narrow)


NASTY = Table(
    {
        "a x b": [1.7e308, -1.6e308, None, 1.5e308, -1.0, 2.0, 1.7e308, -1.7e308],
        "": ["", "missing", "or", None, "not a", "a, b", "x", "x"],
        "c": [1.0, np.nextafter(1.0, 2.0), 1.0, 0.0, 5e-324, -0.0, -5e-324, 1.0],
        "is": [True, False, None, True, True, False, False, True],
    },
    np.array([1, 0, 1, 0, 0, 1, 0, 1]),
    None,
)
HUGE_SUM = Table(
    {"a": [1.7e308, 1.6e308, None, 1e308, -1.7e308, 0.0], "b": [1.7e308, -1.6e308, 1.7e308, None, -1.7e308, 1e308]},
    np.array([1, 0, 1, 0, 0, 1]),
    None,
)


def rows_to_score(table, model):
    """Columns of training rows, and of rows beside them: on thresholds and beside, missing, of unknown categories."""
    rows = list(zip(*table.columns.values(), strict=True))
    new = [tuple([None] * len(table.columns))]
    tree, dtype = model.tree_, np.float32 if table.narrow else np.float64
    for position, values in enumerate(table.columns.values()):
        others = [None]
        if table.is_number(values):
            for threshold in tree.threshold[(tree.kind == NUMERIC) & (tree.feature == position)]:
                at = dtype(threshold)
                near = [at, np.nextafter(at, dtype(np.inf)), np.nextafter(at, dtype(-np.inf))]
                others += [float(value) for value in near if np.isfinite(value)]
        elif isinstance(next(value for value in values if value is not None), str):
            others.append(UNKNOWN)
        for i, other in enumerate(others):
            row = list(rows[i % len(rows)])
            row[position] = other
            new.append(tuple(row))
    return dict(zip(table.columns, zip(*rows, *new, strict=True), strict=True))


def read_and_score(model, table):
    """Return the text of a fitted model, rows as the reader takes them, and the same rows as the model takes them."""
    columns = rows_to_score(table, model)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return TextTree(model.to_text(exact=True)), rows, table.frame({name: list(v) for name, v in columns.items()})


def fit(model, table, y=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few cases, light weights: not what is asked here
        model.set_params(categorical_features=table.texts())  # "1" and "1.0" are names here, not numbers
        return model.fit(table.frame(), table.y if y is None else y, table.weight)


# --- laws ---------------------------------------------------------------------------------------------------


unseen = pytest.mark.filterwarnings("ignore:Column .* holds .* in .* that training never saw")


@unseen
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in SUMS])
@fewer(3)
@given(table=tables())
@example(table=NASTY)
def test_the_text_finds_the_leaf_and_the_score(kind, table):
    check_text(kind, table)


@unseen
@pytest.mark.parametrize("kind", SUMS)
@fewer(2)
@given(table=tables(MOSTLY_NUMBERS, min_columns=3))
@example(table=NASTY)
@example(table=HUGE_SUM)
def test_the_text_of_sums_finds_the_leaf_and_the_score(kind, table):
    check_text(kind, table)


def check_text(kind, table):
    """Assert that leaves and scores read off the text are those of the model."""
    model = fit(MODELS[kind], table)
    text, rows, frame = read_and_score(model, table)
    found = [text.leaf(row) for row in rows]
    assert [leaf.number for leaf in found] == (model.tree_.leaf[model.apply(frame)] + 1).tolist()
    score = model.decision_function(frame)
    told = np.array([leaf.score for leaf in found])
    assert {leaf.is_range for leaf in found} == {kind in ("linear", "margin")}
    if kind == "linear":
        points = np.array([text.points(row) for row in rows])
        with np.errstate(over="ignore"):
            told = told - (1.0 - squash(points)) / model.tree_.n_leaves
        order = np.lexsort((-np.nan_to_num(points), [leaf.number for leaf in found]))
        assert (np.diff(score[order]) <= 0).all()
    if kind == "votes":
        told = [text.vote(row) for row in rows]
    if kind != "margin":
        assert np.array_equal(told, score)


@unseen
@fewer(3)
@given(table=tables(), labels=st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True), data=st.data())
@example(table=NASTY, labels=["a, b", "", "1"], data=None)
def test_the_text_finds_the_class(table, labels, data):
    n = len(table.y)
    codes = np.arange(n) % 3 if data is None else data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    y = np.array(labels, dtype=object)[codes]
    weight = np.ones(n) if table.weight is None else table.weight
    assume(len(set(y[weight > 0])) > 1 and set(y[weight > 0]) == set(y))
    model = fit(TAOClassifier(max_depth=2, alpha=0.01), table, y)
    text, rows, frame = read_and_score(model, table)
    number = np.cumsum(model.tree_.is_leaf)[model.apply(frame)]
    assert [text.leaf(row).number for row in rows] == number.tolist()
    assert [text.leaf(row).label for row in rows] == model.predict(frame).tolist()


@pytest.mark.parametrize("kind", ["linear", "oblique", "tao", "constant"])
def test_the_text_of_a_larger_table_finds_every_leaf(kind):
    X, y = make_cases(500)
    table = Table({name: [None if v != v else v for v in X[name].tolist()] for name in X}, y, None)
    model = fit(MODELS[kind].set_params(max_depth=3), table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text, rows, frame = read_and_score(model, table)
        leaf = model.tree_.leaf[model.apply(frame)] + 1
    assert len(text.leaves) > 3
    assert [text.leaf(row).number for row in rows] == leaf.tolist()


def test_codes_that_rare_categories_share_are_told_name_by_name():
    names = [f"town {i}" for i in range(300)]
    column = Column("town", tuple(names[:254]), tuple(names[254:]))
    asked = Words(f"{category_text(column, [3, 253], False, detail=EXACT)}?").question()
    assert [name for name in names if asked({"town": name})] == ["town 3", *names[253:]]
    asked = Words(f"{category_text(column, [3, 253], True, detail=EXACT)}?").question()
    assert [name for name in [*names, None, UNKNOWN] if asked({"town": name})] == [
        "town 3", *names[253:], None, UNKNOWN
    ]  # fmt: skip


def test_numbers_as_categories_are_numbers():
    column = Column("code", (1, 2.5, -3, 10**20))
    asked = Words(f"{category_text(column, [0, 1, 3], False, detail=EXACT)}?").question()
    assert [asked({"code": value}) for value in (1, 1.0, True, 2.5, -3, 10**20, None)] == [True] * 4 + [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_back(name):
    assert Words(EXACT.name(name)).name() == name
    assert Words(EXACT.label(name)).label() == name
    assert len(EXACT.label(name).splitlines()) == 1


# --- trees of any shape ---------------------------------------------------------------------------------------


def as_rows(columns, X):
    """Rows of a matrix by name; what is no code of a category is missing."""
    rows = []
    for values in X.tolist():
        row = {}
        for column, value in zip(columns, values, strict=True):
            if column.categories is None:
                row[column.name] = None if np.isnan(value) else value
            else:
                row[column.name] = column.categories[int(value)] if value in range(len(column.categories)) else None
        rows.append(row)
    return rows


@given(trees(), blocks())
def test_the_text_of_a_tree_of_any_shape_finds_the_leaf(tree, X):
    columns = columns_for(tree)
    X = with_whole_codes(columns, X)
    text = TextTree(to_text(tree, columns, exact=True))
    found = [text.leaf(row) for row in as_rows(columns, X)]
    assert [leaf.number for leaf in found] == (tree.leaf[tree.apply(X)] + 1).tolist()
    assert [leaf.score for leaf in found] == tree.decision_function(X).tolist()


@pytest.mark.parametrize("missing_left", [0, 1])
def test_sums_that_overflow_both_ways_go_where_the_text_says(missing_left):
    tree = make_tree(
        [
            node(kind=3, threshold=0.0, left=1, right=2, missing_left=missing_left, positive=3, negative=3),
            node(leaf=1, positive=1, negative=2),
            node(leaf=0, positive=2, negative=1),
        ],
        2, oblique_at=[0, 2, 2, 2], oblique_feature=[0, 1], oblique_weight=[2.0, -2.0], oblique_fill=[0.5, 0.25],
    )  # fmt: skip
    columns = [Column("a"), Column("b")]
    X = np.array([[1.7e308, 1.7e308], [1.7e308, -1.7e308], [-1.7e308, 1.0], [np.nan, 1.0], [1.0, np.nan]])
    with np.errstate(over="ignore", invalid="ignore"):
        text = TextTree(to_text(tree, columns, exact=True))
        assert [text.leaf(row).number for row in as_rows(columns, X)] == (tree.leaf[tree.apply(X)] + 1).tolist()


def test_points_are_added_up_in_the_order_of_the_lines():
    card = LeafScorecard(
        center=[0] * 3, weight=[1e16, 1, -1e16], missing=[0, 3, 0], points_at=[0] * 4, category_points=[]
    )
    tree = replace(make_tree([node(leaf=0, positive=1, negative=1)], 3), scoring=card).check()
    columns = [Column(name) for name in "abc"]
    text = TextTree(to_text(tree, columns, spread=np.array([1.0, 2.0, 3.0]), exact=True))
    X = np.array([[1.0, 1.0, 1.0], [1.0, np.nan, 1.0], [0.0, 0.1, 0.0]])
    points = np.array([text.points(row) for row in as_rows(columns, X)])
    assert points.tolist() == [0.0, 4.0, 0.1]  # 1e16 + 1 is 1e16, 1e16 + 3 is 1e16 + 4
    assert np.array_equal(1.0 - (1.0 - squash(points)), tree.decision_function(X))
