import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grown_trees import AUDIT_COLUMNS, audit_tree, grown_cases, make_tree, node, oblique_tree, shared_tree
from toprank.export import to_text
from toprank.tree.columns import Column
from toprank.tree.wording import question_text

GOLDEN = Path(__file__).parent / "golden"


@given(grown_cases())
def test_every_leaf_and_every_condition_is_printed(case):
    text = to_text(case.tree, case.columns)
    flat = " ".join(text.replace("|", " ").split())
    leaves = re.findall(r"leaf ([\d,]+): ", text)
    assert sorted(map(int, leaves)) == list(range(1, case.tree.n_leaves + 1))
    for i in np.flatnonzero(~case.tree.is_leaf):
        assert f"{question_text(case.tree, case.columns, i)}?" in flat
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
    expected = (GOLDEN / f"tree_{name}.txt").read_text(encoding="utf-8")
    assert to_text(tree, AUDIT_COLUMNS, title=f"Tree: {name}") + "\n" == expected


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
