import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from tables import blocks, check_same_tree, limits, meta_tree, plain_tree, tables, trees
from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank._core.threads import Threads
from toprank.tree import bin_mapper
from toprank.tree.scoring import TIES, LeafScorecard, Margin, Votes, squash
from toprank.tree.structure import DTYPES, Tree

SCORINGS = {
    "constant": TIES,
    "margin": Margin(np.array([1.0, 0.5, 3.0])),
    "votes": Votes(0.3),
    "linear": LeafScorecard(
        center=np.array([0.5, 0.0, 0.1]),
        weight=np.array([2.0, 0.0, -0.7]),
        missing=np.array([0.25, -1.0, 3.0]),
        points_at=np.array([0, 0, 3, 3]),
        category_points=np.array([0.1, -0.2, 0.3]),
    ),
}
PER_NODE = [name for name in DTYPES if name != "category_bits" and not name.startswith("oblique")]


@pytest.fixture
def tree():
    """Columns 0 and 1 numbers, 2 a category. Nodes: 0 number, 1 category, 2 oblique, then leaves 3, 4 and 5.

    Node 1's right side and node 2's left side are the same leaf.
    """
    nan = np.nan
    return Tree(
        kind=np.array([1, 2, 3, 0, 0, 0]),
        feature=np.array([0, 2, -1, -1, -1, -1]),
        threshold=np.array([0.5, nan, 1.0, nan, nan, nan]),
        left=np.array([1, 3, 4, -1, -1, -1]),
        right=np.array([2, 4, 5, -1, -1, -1]),
        missing_left=np.array([0, 1, 0, 0, 0, 0]),
        positive=np.array([6.0, 5, 1, 4, 2, 0]),
        negative=np.array([20.0, 8, 12, 1, 9, 10]),
        leaf=np.array([-1, -1, -1, 0, 1, 2]),
        score=np.array([nan, nan, nan, 1.0, 2 / 3, 1 / 3]),
        rate=np.array([nan, nan, nan, 0.8, 0.2, 0.0]),
        category_at=np.array([-1, 0, -1, -1, -1, -1]),
        gain=np.array([3.0, 2, 1, 0, 0, 0]),
        n_features=3,
        category_bits=np.array([[0b101, 1, 0, 1 << 63]], np.uint64),
        oblique_at=np.array([0, 0, 0, 2, 2, 2, 2]),
        oblique_feature=np.array([0, 1]),
        oblique_weight=np.array([1.0, -2.0]),
    ).check()


def test_rows_of_a_written_out_tree(tree):
    nan = np.nan
    X = np.array([[0.5, 0, 0], [0, 0, 1], [0, 0, nan], [0, 0, 64], [0, 0, 255], [0, 0, 999],
                  [1, 0, 0], [9, 0, 0], [9, nan, 0], [nan, 0, 0]])  # fmt: skip
    # Category 1 is outside the set; unknown and missing ones go left; [1, 0] is on the oblique threshold.
    # A missing value in a weighted sum takes the missing direction, right; so does column 0 at the root.
    assert tree.apply(X).tolist() == [3, 4, 3, 3, 3, 3, 4, 5, 5, 5]
    assert tree.categories_left(1).tolist() == [0, 2, 64, 255]
    assert (tree.depth, tree.n_leaves, len(tree)) == (2, 3, 6)
    assert tree.decision_function(X[:1]).tolist() == [1.0]


@given(trees(), blocks())
def test_leaves_and_paths_are_those_of_the_reference(tree, X):
    tree.check()
    expected = [reference.path(tree, row) for row in X]
    assert tree.apply(X).tolist() == [path[-1] for path in expected]
    nodes, length = tree.paths(X)
    assert [row[:n] for row, n in zip(nodes.tolist(), length, strict=True)] == expected
    assert (nodes[np.arange(nodes.shape[1]) >= length[:, None]] == -1).all()


@given(trees())
def test_depth_is_the_longest_path(tree):
    def longest(node):
        return 0 if tree.is_leaf[node] else 1 + max(longest(tree.left[node]), longest(tree.right[node]))

    assert tree.depth == longest(0)


@pytest.mark.parametrize("kind", SCORINGS)
@given(data=st.data(), X=blocks())
def test_scores_are_those_of_the_reference(kind, data, X):
    tree = data.draw(trees(kinds=(NUMERIC, CATEGORY), shared=False) if kind == "votes" else trees())
    tree = replace(tree, scoring=SCORINGS[kind])
    assert tree.decision_function(X) == pytest.approx([reference.score(tree, row) for row in X], rel=1e-12)


@pytest.mark.parametrize("kind", ["constant", "margin", "linear"])
@given(tree=trees(), X=blocks())
def test_scores_stay_inside_the_range_of_their_leaf(kind, tree, X):
    tree = replace(tree, scoring=SCORINGS[kind])
    leaf, score = tree.apply(X), tree.decision_function(X)
    assert (score <= tree.score[leaf]).all()
    assert (score > tree.score[leaf] - 1 / tree.n_leaves).all()
    ahead = tree.leaf[leaf][:, None] < tree.leaf[leaf]
    assert (score[:, None] > score)[ahead].all(), "leaf order first"


@pytest.mark.parametrize("kind", SCORINGS)
@given(data=st.data(), X=blocks(), random=st.randoms())
def test_a_row_scores_the_same_in_any_company(kind, data, X, random):
    tree = data.draw(trees(shared=kind != "votes"))
    tree = replace(tree, scoring=SCORINGS[kind])
    score = tree.decision_function(X)
    order = random.sample(range(len(X)), len(X))
    assert tree.decision_function(X[order]).tolist() == score[order].tolist()
    assert [tree.decision_function(row[None])[0] for row in X] == score.tolist()
    assert tree.decision_function(np.asfortranarray(X)).tolist() == score.tolist()


def test_blocks_and_threads_change_nothing(tree, monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    tree = replace(tree, scoring=SCORINGS["linear"])
    leaves, scores, paths = tree.apply(X), tree.decision_function(X), tree.paths(X)
    monkeypatch.setattr(bin_mapper, "BLOCK_CELLS", 300)
    with Threads(2) as threads:
        assert np.array_equal(tree.apply(X, threads), leaves)
        assert np.array_equal(tree.decision_function(X, threads), scores)
    assert np.array_equal(tree.paths(X)[0], paths[0])


def test_no_rows_give_no_scores(tree):
    assert tree.apply(np.zeros((0, 3))).shape == tree.decision_function(np.zeros((0, 3))).shape == (0,)


def test_squash_rises_inside_the_open_unit_interval():
    values = np.array([-1e300, -1e6, -2, -1e-9, 0, 1e-9, 3, 1e6, 1e300])
    found = squash(values)
    assert ((found > 0) & (found < 1)).all()
    assert (np.diff(found) > 0).all()
    assert found[4] == 0.5


def with_some_scoring(tree):
    children = np.concatenate((tree.left, tree.right))[np.tile(~tree.is_leaf, 2)]
    is_plain = len(np.unique(children)) == len(children)
    kinds = [kind for kind in sorted(SCORINGS) if is_plain or kind != "votes"]
    return st.sampled_from(kinds).map(lambda kind: replace(tree, scoring=SCORINGS[kind]))


@given(trees().flatmap(with_some_scoring))
def test_dictionaries_and_arrays_give_an_equal_tree_back(tree):
    data = tree.to_dict()
    assert Tree.from_dict(data) == tree
    assert Tree.from_dict(json.loads(json.dumps(data, allow_nan=False))) == tree
    assert Tree.from_arrays(tree.to_arrays()) == tree


@given(tables(), limits(), st.sampled_from([plain_tree, meta_tree]))
def test_grown_trees_are_valid_and_come_back_equal(table, rule, grow):
    tree = grow(table, rule).check()
    check_same_tree(Tree.from_dict(json.loads(json.dumps(tree.to_dict(), allow_nan=False))), tree)
    check_same_tree(Tree.from_arrays(tree.to_arrays()), tree)


def test_arrays_survive_a_file_without_pickles(tree, tmp_path):
    np.savez(tmp_path / "tree.npz", **replace(tree, scoring=SCORINGS["linear"]).to_arrays())
    with np.load(tmp_path / "tree.npz", allow_pickle=False) as arrays:
        assert Tree.from_arrays(dict(arrays)) == replace(tree, scoring=SCORINGS["linear"])


@pytest.mark.parametrize("name", DTYPES)
def test_trees_differ_where_an_array_differs(tree, name):
    array = getattr(tree, name).copy()
    array.flat[-1] = 1 if array.flat[-1] != 1 else 2
    assert replace(tree, **{name: array}) != tree
    assert replace(tree, **{name: getattr(tree, name).copy()}) == tree


def test_trees_differ_where_width_or_scoring_differs(tree):
    assert replace(tree, n_features=4) != tree
    assert replace(tree, scoring=SCORINGS["margin"]) != tree
    assert tree != "a tree"


@pytest.mark.parametrize("name", DTYPES)
def test_a_tree_is_frozen(tree, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(tree, name).flat[0] = 0
    with pytest.raises(FrozenInstanceError):
        tree.kind = tree.kind
    assert getattr(tree, name).dtype == DTYPES[name]


def changed(name, index, value):
    """A change of one entry of one array."""

    def change(tree):
        array = getattr(tree, name).copy()
        array[index] = value
        return {name: array}

    return change


BROKEN = {
    "no nodes": (lambda t: {name: getattr(t, name)[:0] for name in PER_NODE}, "at least one node"),
    **{f"short {name}": (lambda t, name=name: {name: getattr(t, name)[:-1]}, "one length")
       for name in PER_NODE if name != "kind"},
    "long kind": (lambda t: {"kind": np.append(t.kind, 0)}, "one length"),
    "flat arrays": (lambda t: {"left": t.left[:, None]}, "one length"),
    "unknown kind": (changed("kind", 0, 4), "known kinds"),
    "child before its parent": (changed("left", 2, 1), "after their parents"),
    "child that is its own parent": (changed("left", 1, 1), "after their parents"),
    "no child": (changed("right", 1, -1), "after their parents"),
    "child beyond the end": (changed("right", 2, 6), "after their parents"),
    "leaf turned into a condition": (changed("kind", 5, 1), "after their parents"),
    "node out of reach": (changed("right", 2, 4), "reaches every node"),
    "feature beyond the end": (changed("feature", 0, 3), "columns that exist"),
    "category column beyond the end": (changed("feature", 1, 3), "columns that exist"),
    "no feature": (changed("feature", 0, -1), "columns that exist"),
    "no threshold": (changed("threshold", 0, np.nan), "a threshold"),
    "no oblique threshold": (changed("threshold", 2, np.nan), "a threshold"),
    "narrow category set": (lambda t: {"category_bits": t.category_bits[:, :3]}, "256 bits"),
    "flat category set": (lambda t: {"category_bits": t.category_bits[0]}, "256 bits"),
    "no category set": (changed("category_at", 1, -1), "set for every category"),
    "category set beyond the end": (changed("category_at", 1, 1), "set for every category"),
    "short oblique index": (lambda t: {"oblique_at": t.oblique_at[:-1]}, "consistent oblique"),
    "falling oblique index": (changed("oblique_at", 4, 1), "consistent oblique"),
    "oblique index that starts late": (changed("oblique_at", 0, -1), "consistent oblique"),
    "oblique weights left over": (lambda t: {"oblique_weight": np.ones(3)}, "consistent oblique"),
    "oblique features left over": (lambda t: {"oblique_feature": np.zeros(3)}, "consistent oblique"),
    "oblique feature beyond the end": (changed("oblique_feature", 0, 3), "weighs columns"),
    "negative oblique feature": (changed("oblique_feature", 0, -1), "weighs columns"),
    "oblique codes left over": (lambda t: {"oblique_code": np.full(3, -1)}, "consistent oblique"),
    "oblique code below the first": (changed("oblique_code", 0, -2), "by their codes"),
    "oblique code beyond the end": (changed("oblique_code", 1, 256), "by their codes"),
    "number weighed as a category": (changed("oblique_code", 0, 1), "not as both"),
    "category weighed as a number": (changed("oblique_feature", 1, 2), "not as both"),
    "fill of a category": (lambda t: {"oblique_code": np.array([-1, 3]), "oblique_fill": np.ones(2)}, "no fill"),
    "oblique weight that is no number": (changed("oblique_weight", 0, np.nan), "finite oblique"),
    "missing values neither left nor right": (changed("missing_left", 0, 2), "left or right"),
    "place of an inner node": (changed("leaf", 0, 1), "only to leaves"),
    "gap in the leaf order": (changed("leaf", 5, 3), "numbers its leaves"),
    "leaf far away": (changed("leaf", 5, 2**31 - 1), "numbers its leaves"),
    "leaf without a position": (changed("leaf", 3, -1), "numbers its leaves"),
    "negative weight": (changed("negative", 2, -1.0), "non-negative"),
    "negative positive weight": (changed("positive", 5, -1.0), "non-negative"),
    "weight that is no number": (changed("positive", 1, np.nan), "finite weights"),
    "infinite weight": (changed("positive", 0, np.inf), "finite weights"),
    "score that is no number": (changed("score", 3, np.nan), "finite scores"),
    "infinite score": (changed("score", 3, np.inf), "finite scores"),
    "rate that is no number": (changed("rate", 4, np.nan), "rates from 0 to 1"),
    "rate above 1": (changed("rate", 3, 1.5), "rates from 0 to 1"),
    "rising rates": (changed("rate", 5, 1.0), "non-increasing rates"),
    "no room inside leaves": (lambda t: {"score": t.score / 2, "scoring": SCORINGS["margin"]}, "room inside"),
    "votes over shared nodes": (lambda t: {"scoring": SCORINGS["votes"]}, "if all leaves vote"),
    "rising scores": (changed("score", 5, 0.9), "decreasing scores"),
    "equal scores of different leaves": (changed("score", 5, 2 / 3), "decreasing scores"),
    "too few columns": (lambda t: {"n_features": 2}, "columns that exist"),
    "scoring of another width": (lambda t: {"scoring": Margin(np.ones(2))}, "as wide as"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_tree_is_refused_with_a_sentence(tree, name):
    change, sentence = BROKEN[name]
    broken = replace(tree, **change(tree))
    with pytest.raises(ValueError, match=sentence):
        broken.check()
    with pytest.raises(ValueError, match=r"^Not a valid tree: .*damaged\.$"):
        Tree.from_arrays(broken.to_arrays())


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_another_type_are_refused(tree, name):
    arrays = tree.to_arrays()
    with pytest.raises(ValueError, match=f"lacks an array '{name}'"):
        Tree.from_arrays({n: a for n, a in arrays.items() if n != name})
    with pytest.raises(ValueError, match=f"lacks an array '{name}'"):
        Tree.from_arrays(arrays | {name: arrays[name].astype(np.float32)})


def test_categories_in_sums_are_stored_and_count_as_0_or_1(tree):
    """Node 2 asks for 1 x first number - 2 x (category 3 of column 2) <= 1."""
    change = {"oblique_feature": [0, 2], "oblique_code": [-1, 3], "oblique_fill": [np.nan, 0.0]}
    mixed = replace(tree, **change).check()
    assert mixed != tree
    assert Tree.from_dict(mixed.to_dict()) == mixed == Tree.from_arrays(mixed.to_arrays())
    X = np.array([[2.0, 0, 3], [2.0, 0, 2], [2.0, 0, np.nan], [2.0, 0, 999], [1.0, 0, 0], [3.5, 0, 3]])
    assert mixed.apply(X).tolist() == [4, 5, 5, 5, 4, 5]
    assert [mixed.apply(row[None])[0] for row in X] == mixed.apply(X).tolist()


def test_leaves_may_share_a_position():
    tree = Tree(**{name: np.array(values) for name, values in {
        "kind": [1, 0, 0], "feature": [0, -1, -1], "threshold": [0.0, np.nan, np.nan], "left": [1, -1, -1],
        "right": [2, -1, -1], "missing_left": [0, 0, 0], "positive": [2, 1, 1], "negative": [2, 1, 1],
        "leaf": [-1, 0, 0], "score": [np.nan, 1.0, 1.0], "rate": [np.nan, 0.5, 0.5],
        "category_at": [-1, -1, -1], "gain": [0.0, 0.0, 0.0]}.items()}, n_features=1)  # fmt: skip
    assert tree.check().n_leaves == 1


def test_the_representation_is_one_line_of_sizes(tree):
    assert repr(tree) == "Tree(6 nodes, 3 leaves, 3 features)"
    only = {name: getattr(tree, name)[5:] for name in PER_NODE} | {"leaf": np.array([0]), "n_features": 1}
    assert repr(Tree(**only)) == "Tree(1 node, 1 leaf, 1 feature)"
