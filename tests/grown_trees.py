"""Trees for tests of what reads them: grown from small random tables, or written down by hand."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tables import falling
from toprank._core.dtypes import AP, CATEGORY, GINI
from toprank._core.threads import Threads
from toprank.tree.columns import Column
from toprank.tree.flatten import flatten_meta_tree, flatten_tree
from toprank.tree.grower import Limits, grow
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION
from toprank.tree.splitters import ExactSplitter, Presorted
from toprank.tree.structure import Tree
from toprank.tree.weights import integer_weights


@dataclass(frozen=True)
class Case:
    """A tree with the table it was grown from."""

    tree: Tree
    columns: tuple[Column, ...]
    X: np.ndarray
    weight: np.ndarray


def with_scores(tree: Tree) -> Tree:
    """The tree with scores that fall along the leaf order and smoothed rates."""
    total = tree.positive + tree.negative
    n_leaves = tree.n_leaves
    score = np.where(tree.leaf >= 0, (n_leaves - tree.leaf) / n_leaves, np.nan)
    rate = np.where(tree.leaf >= 0, (tree.positive + 0.1) / (total + 1), np.nan)
    return replace(tree, score=score, rate=falling(rate, tree.leaf)).check()


def grow_tree(X, is_positive, weight, n_categories, *, meta: bool, depth: int) -> Tree:
    """A meta-tree (shared children) or a plain one, with leaves in the order of their rates."""
    weights = integer_weights(is_positive, weight)
    splitter = ExactSplitter(Presorted(X, n_categories), weights, Threads())
    is_categorical = n_categories > 0
    if meta:
        grown = grow_meta_tree(splitter, AVERAGE_PRECISION, depth, Limits(AP, max_depth=depth))
        return with_scores(flatten_meta_tree(grown, weights.unit, is_categorical)[0])
    tree = flatten_tree(grow(splitter, splitter.root(), Limits(GINI, max_depth=depth)), weights.unit, is_categorical)
    ends = np.flatnonzero(tree.is_leaf)
    leaf = np.full(len(tree), -1)
    rate = tree.positive[ends] / (tree.positive + tree.negative)[ends]
    # Leaves of equal rate share a position.
    leaf[ends] = np.unique(-rate, return_inverse=True)[1].reshape(-1)
    return with_scores(replace(tree, leaf=leaf))


@st.composite
def grown_cases(draw) -> Case:
    """Small tables with ties, missing values, categories and weights, and a tree grown from each."""
    n = draw(st.integers(4, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_categories = np.array(draw(st.lists(st.sampled_from([0, 0, 2, 3, 9]), min_size=1, max_size=4)))
    X = np.empty((n, len(n_categories)))
    for f, n_codes in enumerate(n_categories):
        if n_codes:
            X[:, f] = generator.integers(0, n_codes, n)
        else:
            X[:, f] = generator.choice([generator.integers(0, 6, n), generator.normal(size=n) * 1e4])
        X[generator.random(n) < draw(st.sampled_from([0.0, 0.3])), f] = np.nan
    is_positive = generator.random(n) < 0.3
    is_positive[:2] = [True, False]
    weight = generator.choice([0.25, 1.0, 2.5], n) if draw(st.booleans()) else np.ones(n)
    tree = grow_tree(X, is_positive, weight, n_categories, meta=draw(st.booleans()), depth=draw(st.integers(1, 4)))
    columns = tuple(
        Column(f"c{f}", tuple(f"v{i}" for i in range(n_codes))) if n_codes else Column(f"x{f}")
        for f, n_codes in enumerate(n_categories)
    )
    return Case(tree, columns, X, weight)


AUDIT_COLUMNS = (
    Column("vat_gap"),
    Column("sector", ("retail", "catering", "construction", "transport", "health", "farming")),
    Column("turnover"),
    Column("age_years"),
)


def category_bits(codes: list[int]) -> np.ndarray:
    """Bit set of the codes that go left: uint64 (4,)."""
    answers = np.zeros(256, np.uint8)
    answers[codes] = 1
    return np.packbits(answers, bitorder="little").view(np.uint64)


def node(**values: float) -> dict[str, float]:
    """One node of `make_tree`: what it says, by name."""
    return values


def make_tree(nodes: list[dict], n_features: int = 4, bits: list[list[int]] | None = None, **arrays) -> Tree:
    """A tree written down node by node; what a node does not say has its usual value."""
    usual = {
        "kind": 0, "feature": -1, "threshold": np.nan, "left": -1, "right": -1, "missing_left": 0, "leaf": -1,
        "category_at": -1, "gain": 0.0, "score": np.nan, "rate": np.nan,
    }  # fmt: skip
    names = [*usual, "positive", "negative"]
    table: dict[str, Any] = {name: np.array([(usual | node)[name] for node in nodes]) for name in names}
    sets = np.array([category_bits(codes) for codes in bits or []], np.uint64).reshape(-1, 4)
    return with_scores(Tree(**table, n_features=n_features, category_bits=sets, **arrays))


def audit_tree() -> Tree:
    """A plain tree: numbers, categories, missing values in either direction."""
    return make_tree(
        [
            node(kind=1, feature=0, threshold=0.31, left=1, right=2, missing_left=1, gain=6,
                 positive=40, negative=1960),
            node(kind=1, feature=2, threshold=1200.5, left=3, right=4, missing_left=1, gain=3,
                 positive=10, negative=1490),
            node(kind=2, feature=1, category_at=0, left=5, right=6, positive=30, negative=470, gain=1),
            node(leaf=3, positive=2, negative=898),
            node(kind=1, feature=3, threshold=np.inf, left=7, right=8, positive=8, negative=592),
            node(leaf=0, positive=25, negative=75),
            node(leaf=2, positive=5, negative=395),
            node(leaf=4, positive=1, negative=551),
            node(leaf=1, positive=7, negative=41),
        ],
        bits=[[1, 2]],
    )  # fmt: skip


def shared_tree() -> Tree:
    """A meta-tree: node 4 has three parents, leaf 3 has two."""
    return make_tree(
        [
            node(kind=1, feature=0, threshold=0.31, left=1, right=2, missing_left=1, gain=6,
                 positive=40, negative=1960),
            node(kind=2, feature=1, category_at=0, left=4, right=3, positive=10, negative=1490, gain=3),
            node(kind=1, feature=3, threshold=2.5, left=4, right=3, positive=30, negative=470, gain=1),
            node(kind=1, feature=2, threshold=1_234_567.5, left=4, right=7, positive=12, negative=1700),
            node(kind=1, feature=0, threshold=0.54321, left=6, right=5, positive=30, negative=300),
            node(leaf=0, positive=25, negative=75),
            node(leaf=1, positive=5, negative=225),
            node(leaf=2, positive=10, negative=1660),
        ],
        bits=[[2, 3, 4, 5]],
    )  # fmt: skip


def oblique_tree() -> Tree:
    """One weighted sum, asked for twice on the way to the top."""
    return make_tree(
        [
            node(kind=3, threshold=1.2, left=1, right=2, positive=20, negative=80, gain=4),
            node(leaf=2, positive=1, negative=59),
            node(kind=3, threshold=3.4, left=3, right=4, missing_left=1, positive=19, negative=21, gain=2),
            node(leaf=1, positive=4, negative=11),
            node(leaf=0, positive=15, negative=10),
        ],
        oblique_at=[0, 2, 2, 4, 4, 4], oblique_feature=[0, 3, 0, 3], oblique_weight=[0.8, -0.3, 0.8, -0.3],
    )  # fmt: skip


def columns_for(tree: Tree, n_codes: int = 256) -> list[Column]:
    """Columns of a tree of `tables.trees`: a name for every code of the features that it takes for categories."""
    named = {*tree.feature[tree.kind == CATEGORY].tolist(), *tree.oblique_feature[tree.oblique_code >= 0].tolist()}
    names = tuple(f"name {code}" for code in range(n_codes))
    return [Column(f"c{f}", names if f in named else None, has_missing=False) for f in range(tree.n_features)]


def with_whole_codes(columns: list[Column], X: np.ndarray) -> np.ndarray:
    """Rows of `tables.blocks` with missing values in the place of what is no code of a category."""
    is_number = np.array([column.categories is None for column in columns])
    return np.where(is_number | (X % 1 == 0), X, np.nan)


def audit_rows(n: int = 500) -> np.ndarray:
    """Rows for the trees with AUDIT_COLUMNS, a tenth of the cells missing."""
    generator = np.random.default_rng(3)
    X = np.column_stack(
        (
            generator.random(n),
            generator.integers(0, 6, n),
            generator.random(n) * 3e6,
            generator.integers(0, 9, n),
        )
    )
    X[generator.random(X.shape) < 0.1] = np.nan
    return X
