import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_files import golden
from grown_trees import AUDIT_COLUMNS, audit_tree, grown_cases, make_tree, node, oblique_tree, shared_tree
from toprank.explain import side_condition
from toprank.export import checked_spread, scorecard_lines, scorecard_summary, scorecard_table, to_text
from toprank.tree.columns import Column
from toprank.tree.scoring import TIES, LeafScorecard


@given(grown_cases())
def test_every_leaf_and_every_condition_is_printed(case):
    text = to_text(case.tree, case.columns)
    flat = " ".join(text.replace("|", " ").split())
    leaves = re.findall(r"leaf ([\d,]+): ", text)
    assert sorted(map(int, leaves)) == list(range(1, case.tree.n_leaves + 1))
    for i in np.flatnonzero(~case.tree.is_leaf):
        assert f"{side_condition(case.tree, case.columns, i).text()}?" in flat
    assert max(map(len, text.splitlines())) <= 100


@given(grown_cases())
def test_references_point_to_blocks_below(case):
    text = to_text(case.tree, case.columns)
    blocks = {match[1]: match.start() for match in re.finditer(r"^\[(\d+)\] ", text, re.MULTILINE)}
    references = [(match[1], match.start()) for match in re.finditer(r"-> \[(\d+)\]", text)]
    assert {number for number, _ in references} == set(blocks)
    assert all(place < blocks[number] for number, place in references)
    assert [int(number) for number in blocks] == list(range(1, len(blocks) + 1))


@given(grown_cases(), st.integers(1, 4))
def test_the_best_leaves_alone(case, max_leaves):
    text = to_text(case.tree, case.columns, max_leaves=max_leaves)
    n_shown = min(max_leaves, case.tree.n_leaves)
    assert sorted(map(int, re.findall(r"^(?!.*below).*leaf (\d+): ", text, re.MULTILINE))) == list(
        range(1, n_shown + 1)
    )
    assert len(text) <= len(to_text(case.tree, case.columns)) + 500
    assert (f"all below leaf {n_shown}: " in text) == (n_shown < case.tree.n_leaves)


@pytest.mark.parametrize(
    ("name", "tree"), [("plain", audit_tree()), ("shared", shared_tree()), ("oblique", oblique_tree())]
)
def test_golden_text(name, tree):
    text = to_text(tree, AUDIT_COLUMNS, title=f"Tree: {name}") + "\n"
    assert text == golden(f"tree_{name}.txt", text)


def test_figures_of_shared_nodes_stand_once():
    lines = to_text(shared_tree(), AUDIT_COLUMNS, max_leaves=2).splitlines()
    assert lines[-1] == "all below leaf 2: 10 of 1,670 positive (0.6 %, lift 0.3)"
    tree = make_tree(
        [
            node(kind=1, feature=0, threshold=1, left=1, right=2, positive=3, negative=7),
            node(kind=1, feature=2, threshold=1, left=3, right=4, positive=2, negative=4),
            node(kind=1, feature=3, threshold=1, left=3, right=4, positive=1, negative=3),
            node(leaf=0, positive=2, negative=1),
            node(leaf=1, positive=1, negative=6),
        ]
    )
    assert to_text(tree, AUDIT_COLUMNS, max_leaves=1).splitlines()[2:] == [
        "vat_gap <= 1?",
        "|   yes: turnover <= 1?",
        "|   |   yes: -> leaf 1",
        "|   |   no:  -> below leaf 1",
        "|   no:  age_years <= 1?",
        "|   |   yes: -> leaf 1",
        "|   |   no:  -> below leaf 1",
        "",
        "leaf 1: 2 of 3 positive (66.7 %, lift 2.22)",
        "all below leaf 1: 1 of 7 positive (14.3 %, lift 0.48)",
    ]


def test_a_tree_of_one_leaf():
    tree = make_tree([node(leaf=0, positive=1, negative=3)])
    assert to_text(tree, AUDIT_COLUMNS).splitlines() == [
        "4 training cases, 1 positive (25 %); 1 leaf; leaf 1 ranks highest",
        "",
        "leaf 1: 1 of 4 positive (25 %, lift 1)",
    ]


def test_deep_trees_and_long_names_keep_to_the_width():
    depth = 40
    nodes = []
    for level in range(depth):
        left, right = 2 * level + 1, 2 * level + 2
        nodes.append(node(kind=1, feature=0, threshold=level, left=left, right=right, positive=2, negative=98))
        nodes.append(node(leaf=depth - level, positive=0, negative=1))
    nodes.append(node(leaf=0, positive=1, negative=1))
    text = to_text(make_tree(nodes, 1), [Column("a rather long name " * 8)], title="A title " * 30)
    assert max(map(len, text.splitlines())) <= 100
    assert "[3] from one branch: 2 of 100 positive" in text
    assert sorted(map(int, re.findall(r"leaf (\d+): ", text))) == list(range(1, depth + 2))


# --- the last line of a short text --------------------------------------------------------------------------


def last_line(tree, columns, **how):
    return to_text(tree, columns, **how).splitlines()[-1]


def test_nothing_is_said_where_nothing_was_shortened():
    tree = make_tree(
        [
            node(kind=1, feature=0, threshold=0.5, left=1, right=2, positive=3, negative=3),
            node(leaf=1, positive=1, negative=2),
            node(leaf=0, positive=2, negative=1),
        ]
    )
    assert "Shortened" not in to_text(tree, AUDIT_COLUMNS)
    known = [Column("gap", has_missing=False), *AUDIT_COLUMNS[1:]]
    assert last_line(tree, known) == "Shortened: missing values; use to_text(exact=True) for the full text."
    fine = replace(tree, threshold=np.array([1 / 3, np.nan, np.nan]))
    assert last_line(fine, AUDIT_COLUMNS) == "Shortened: 1 number; use to_text(exact=True) for the full text."
    assert "Shortened" not in to_text(fine, AUDIT_COLUMNS, exact=True)


@pytest.mark.parametrize(
    ("fill", "weight", "said"), [(np.nan, 0.8, ""), (0.0, 0.8, "1 sum"), (np.nan, 0.81234, "1 sum")]
)
def test_sums_are_short_where_weights_are_rounded_or_missing_values_count(fill, weight, said):
    tree = make_tree(
        [
            node(kind=3, threshold=0.5, left=1, right=2, positive=3, negative=3),
            node(leaf=1, positive=1, negative=2),
            node(leaf=0, positive=2, negative=1),
        ],
        oblique_at=[0, 2, 2, 2], oblique_feature=[0, 2], oblique_weight=[weight, -1.0], oblique_fill=[fill, np.nan],
    )  # fmt: skip
    shortened = f"Shortened: {said}; use to_text(exact=True) for the full text."
    assert (last_line(tree, AUDIT_COLUMNS) == shortened) == bool(said)


@pytest.mark.parametrize(
    ("names", "codes", "said"),
    [
        ("abcdefgh", range(4), ""),
        ("abcdefghij", range(5), "1 list"),
        (["a", "b", "c" * 41], [2], "1 list"),
        (["a", "b", "c" * 41], [0], ""),
        (["a\nb", "c"], [0], "1 list"),
        (["a, b", " c"], [0], ""),  # in quotes, but as they are
    ],
)
def test_lists_are_short_where_names_are_left_out_or_changed(names, codes, said):
    tree = make_tree(
        [
            node(kind=2, feature=0, category_at=0, left=1, right=2, positive=3, negative=3),
            node(leaf=1, positive=1, negative=2),
            node(leaf=0, positive=2, negative=1),
        ],
        n_features=1,
        bits=[list(codes)],
    )
    shortened = f"Shortened: {said}; use to_text(exact=True) for the full text."
    assert (last_line(tree, [Column("town", tuple(names))]) == shortened) == bool(said)


@given(grown_cases())
def test_an_exact_text_has_one_line_a_node(case):
    text = to_text(case.tree, case.columns, exact=True)
    asked = [line for line in text.splitlines() if line.endswith("?")]
    assert len(asked) == (~case.tree.is_leaf).sum()
    assert len(re.findall(r"leaf \d+: score ", text)) == case.tree.n_leaves


# --- the scorecard inside leaves ----------------------------------------------------------------------------

CARD = LeafScorecard(
    center=np.array([0.31, 0, 1_234_567.8, 0]),
    weight=np.array([0.8, 0, -1.234e-5, 0]),
    missing=np.array([0, -0.25, 0.5, -0.1]),
    points_at=np.array([0, 0, 6, 6, 6]),
    category_points=np.array([0.4, 0, -1.5, 0, 0.2, 0]),
)


def test_golden_scorecard():
    tree = replace(shared_tree(), scoring=CARD).check()
    text = to_text(tree, AUDIT_COLUMNS, title="Tree: scorecard", spread=np.array([0.1, 0.5, 0.3, 0.02])) + "\n"
    assert text == golden("tree_scorecard.txt", text)


def test_golden_exact_text():
    tree = replace(shared_tree(), scoring=CARD).check()
    spread = np.array([0.1, 0.5, 0.3, 0.02])
    text = to_text(tree, AUDIT_COLUMNS, title="Tree: exact", spread=spread, exact=True) + "\n"
    assert text == golden("tree_exact.txt", text)


def test_columns_of_a_scorecard_come_as_the_model_has_them_where_nothing_else_is_known():
    assert scorecard_lines(CARD, AUDIT_COLUMNS) == [
        "  +0.8 per unit of vat_gap above 0.31",
        "  sector = retail +0.4, health +0.2, construction -1.5; missing: -0.25",
        "  -0.123 per 10,000 of turnover above 1,234,568; missing: +0.5",
        "  age_years missing: -0.1",
    ]
    table = scorecard_table(CARD, AUDIT_COLUMNS)
    assert table["column"] == ["vat_gap", *["sector"] * 4, "turnover", "turnover", "age_years"]
    assert table["category"] == [None, "retail", "health", "construction", None, None, None, None]
    assert table["points"] == [0.8, 0.4, 0.2, -1.5, -0.25, -1.234e-5, 0.5, -0.1]
    assert [x for x in table["center"] if x == x] == [0.31, 1_234_567.8]  # NaN elsewhere
    assert scorecard_summary(CARD, AUDIT_COLUMNS) == "scorecard of 4 columns: vat_gap, sector, turnover, age_years"


def test_rare_categories_share_their_points():
    column = Column("town", ("a", "b"), shared=("c", "d"))
    card = LeafScorecard(center=[0], weight=[0], missing=[0], points_at=[0, 2], category_points=[0.1, 0.2])
    assert scorecard_lines(card, [column]) == ["  town = b and 2 rare others +0.2, a +0.1"]
    assert scorecard_table(card, [column])["category"] == ["b", "c", "d", "a"]


def test_names_in_a_scorecard_that_could_be_several_are_in_quotes():
    column = Column("town", ("a", "b, small"), shared=("c ",))
    card = LeafScorecard(center=[0], weight=[0], missing=[0], points_at=[0, 2], category_points=[0.1, 0.2])
    assert scorecard_lines(card, [column]) == ['  town = "b, small" and 1 rare other +0.2, a +0.1']
    assert scorecard_table(card, [column])["category"] == ["b, small", "c", "a"]


def test_of_many_categories_those_with_most_points_are_told():
    n = 300
    column = Column("a rather long name " * 8, tuple(f"a town of some name {i}" for i in range(n)))
    points = np.linspace(-1, 1, n)
    card = LeafScorecard(center=[0], weight=[0], missing=[0], points_at=[0, n], category_points=points)
    lines = scorecard_lines(card, [column])
    text = " ".join(" ".join(lines).split())
    told = [float(number) for number in re.findall(r"name \d+ ([+-][\d.]+)", text)]
    assert len(told) == 12
    assert told == sorted(told, reverse=True)
    assert min(map(abs, told)) > 0.95
    assert text.endswith(" and 288 more")
    assert max(map(len, lines)) <= 100


def test_without_points_there_is_no_scorecard_to_show():
    empty = replace(CARD, weight=np.zeros(4), missing=np.zeros(4), category_points=np.zeros(6))
    for scoring in (empty, TIES):
        tree = replace(shared_tree(), scoring=scoring)
        assert to_text(tree, AUDIT_COLUMNS) == to_text(shared_tree(), AUDIT_COLUMNS)
        assert scorecard_table(scoring, AUDIT_COLUMNS)["points"] == []
    assert scorecard_summary(empty, AUDIT_COLUMNS) == "scorecard without points: cases of a leaf tie"
    assert scorecard_summary(TIES, AUDIT_COLUMNS) == ""


@pytest.mark.parametrize("weight", [5e-324, -1e-300, 1e-4, 0.001, 1.0, 1e20])
def test_a_weight_of_any_size_is_a_number_to_read(weight):
    card = LeafScorecard(center=[0], weight=[weight], missing=[0], points_at=[0, 0], category_points=[])
    (line,) = scorecard_lines(card, [Column("x")])
    assert line.startswith("  -" if weight < 0 else "  +")
    assert line.endswith(" of x above 0")


@pytest.mark.parametrize("spread", [[1.0], [1.0, -1.0], [1.0, np.nan], ["x", "x"]])
def test_a_spread_that_cannot_be_one_is_refused(spread):
    with pytest.raises(ValueError, match=r"spread|convert"):
        checked_spread(np.array(spread), 2)
    assert checked_spread(None, 2) is None
