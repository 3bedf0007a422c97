"""Small awkward tables and trees for the laws, and the way from a table to a tree."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from toprank._core.dtypes import CATEGORY, CRITERIA, LEAF, NUMERIC, OBLIQUE
from toprank._core.threads import Threads
from toprank.tree.bin_mapper import BinMapper
from toprank.tree.flatten import flatten_meta_tree, flatten_tree
from toprank.tree.grower import Limits, grow
from toprank.tree.meta.meta_tree import grow_meta_tree
from toprank.tree.meta.objectives import AVERAGE_PRECISION
from toprank.tree.splitters import ExactSplitter, HistogramSplitter, Presorted
from toprank.tree.structure import DTYPES, Tree
from toprank.tree.weights import integer_weights

NEIGHBOURS = [1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0), 0.0, -0.0, 5e-324, -5e-324]
NEIGHBOURS32 = [float(v) for v in (np.float32(1), np.nextafter(np.float32(1), np.float32(2)), np.float32(0.1))]
HUGE = [-1.7e308, -1.6e308, -1.0, 2.0, 1.5e308, 1.7e308]


@dataclass(frozen=True)
class Table:
    """A table of numbers and category codes (NaN = missing), its labels and its weights (None = 1 each)."""

    X: np.ndarray
    n_categories: np.ndarray
    is_positive: np.ndarray
    sample_weight: np.ndarray | None

    @property
    def is_categorical(self):
        return (self.n_categories > 0).astype(np.uint8)

    @property
    def weights(self):
        return integer_weights(self.is_positive, self.sample_weight)

    @property
    def for_reference(self):
        """The same table as `reference` takes it."""
        weights = self.weights
        return list(self.X.T), list(self.is_categorical), weights.positive, weights.total

    @property
    def rows(self):
        """Rows with weight."""
        return np.flatnonzero(self.weights.total).tolist()

    def take(self, index):
        weight = None if self.sample_weight is None else self.sample_weight[index]
        return replace(self, X=self.X[index], is_positive=self.is_positive[index], sample_weight=weight)


def numbers(values):
    return st.sampled_from(values)


COLUMNS = {
    "ties": numbers([-1.0, 0.0, 1.0, 2.0]),
    "spread": st.integers(-50, 50).map(lambda v: v / 8),
    "neighbours": numbers(NEIGHBOURS),
    "neighbours32": numbers(NEIGHBOURS32),
    "huge": numbers(HUGE),
    "constant": st.just(3.0),
    "missing": st.just(np.nan),
    "category": st.integers(0, 4).map(float),
}


def columns(n, kinds):
    """A column of n cells and its number of categories; about half of the columns have missing cells."""

    @st.composite
    def column(draw):
        kind = draw(st.sampled_from(kinds))
        cell = COLUMNS[kind]
        if draw(st.booleans()):
            cell = st.one_of(cell, cell, cell, st.just(np.nan))
        return draw(st.lists(cell, min_size=n, max_size=n)), 5 if kind == "category" else 0

    return column()


def labels(n):
    """Labels with few or one positive, or any; sometimes of one class."""
    one = st.integers(0, n - 1).map(lambda i: [j == i for j in range(n)])
    rare = st.lists(st.sampled_from([True, False, False, False]), min_size=n, max_size=n)
    return st.one_of(one, rare, st.lists(st.booleans(), min_size=n, max_size=n))


def sample_weights(n, kinds=("none", "whole", "quarters", "any")):
    """Weights whose sum is positive: none, whole numbers with zeros, quarters, any fractions."""
    cells = {
        "whole": st.integers(0, 3).map(float),
        "quarters": st.integers(0, 9).map(lambda v: v / 4),
        "any": st.floats(1e-3, 1e3),
    }

    def weights_of(kind):
        if kind == "none":
            return st.none()
        return st.lists(cells[kind], min_size=n, max_size=n).filter(any).map(np.array)

    return st.sampled_from(list(kinds)).flatmap(weights_of)


@st.composite
def tables(draw, max_rows=30, max_columns=4, kinds=tuple(COLUMNS), weights=("none", "whole", "quarters", "any")):
    """A table with ties, missing values, constant, all-missing and categorical columns."""
    n = draw(st.integers(2, max_rows))
    drawn = draw(st.lists(columns(n, kinds), min_size=1, max_size=max_columns))
    X = np.array([cells for cells, _ in drawn]).T.copy()
    n_categories = np.array([count for _, count in drawn], np.int32)
    return Table(X, n_categories, np.array(draw(labels(n))), draw(sample_weights(n, weights)))


criteria = st.sampled_from(sorted(CRITERIA))


@st.composite
def limits(draw):
    """Some limits of growing; min_leaf up to 3 units."""
    criterion = draw(criteria)
    return Limits(
        CRITERIA[criterion],
        max_depth=draw(st.integers(1, 5)),
        min_leaf=draw(st.integers(1, 3)),
        min_split=draw(st.integers(2, 6)),
        min_gain=draw(st.sampled_from([-np.inf, 0.0, 0.5])),
        stop_at_ap_loss=criterion == "ap" and draw(st.booleans()),
    )


def make_splitter(table, mode="histogram", threads=None, max_bins=255, sample_rows=200_000):
    """A splitter over the table: "histogram" or "exact"."""
    threads = threads or Threads()
    if mode == "exact":
        return ExactSplitter(Presorted(table.X, table.n_categories), table.weights, threads)
    mapper = BinMapper(max_bins, sample_rows).fit(table.X, table.n_categories, table.sample_weight, threads)
    return HistogramSplitter(mapper.transform(table.X, threads), mapper, table.weights, threads)


def row_order(splitter):
    """Rows in the order that the splitter has them in."""
    return np.atleast_2d(splitter.rows)[0]


def rows_of(splitter, segment, node):
    """Rows of one node of a batch, ascending."""
    return sorted(row_order(splitter)[segment.start[node] : segment.stop[node]].tolist())


def falling(rate, leaf):
    """Rates of leaves, lowered where they would rise along the leaf order."""
    ends = np.flatnonzero(leaf >= 0)
    order = ends[np.argsort(leaf[ends], kind="stable")]
    out = rate.copy()
    out[order] = np.minimum.accumulate(rate[order])
    return out


def ranked(tree):
    """The tree with leaf positions by rate, scores and rates, so that it is complete."""
    leaves = np.flatnonzero(tree.is_leaf)
    rate = tree.positive[leaves] / (tree.positive[leaves] + tree.negative[leaves])
    position = np.full(len(tree), -1)
    if tree.leaf[leaves].min() < 0:
        position[leaves[np.argsort(-rate, kind="stable")]] = np.arange(len(leaves))
    else:
        position = tree.leaf
    score, rates = np.full(len(tree), np.nan), np.full(len(tree), np.nan)
    score[leaves] = 1 - position[leaves] / len(leaves)
    rates[leaves] = rate
    return replace(tree, leaf=position, score=score, rate=falling(rates, position))


def plain_tree(table, limits, **how):
    """One greedy tree over the table, complete."""
    splitter = make_splitter(table, **how)
    return ranked(flatten_tree(grow(splitter, splitter.root(), limits), table.weights.unit, table.is_categorical))


def meta_tree(table, limits, depth=3, objective=AVERAGE_PRECISION, **how):
    """One meta-tree over the table, complete."""
    meta = grow_meta_tree(make_splitter(table, **how), objective, depth, limits)
    return ranked(flatten_meta_tree(meta, table.weights.unit, table.is_categorical)[0])


def check_same_tree(one, other, ignore=()):
    """Assert that two trees are equal; say which arrays differ and show both."""
    for name in DTYPES:
        if name not in ignore:
            a, b = getattr(one, name), getattr(other, name)
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{name} differs:\n{a}\n{b}"
    assert ignore or one == other


@st.composite
def trees(draw, n_features=3, kinds=(NUMERIC, CATEGORY, OBLIQUE), shared=True):
    """A tree of any shape: shared children, every kind of condition, awkward thresholds."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_inner = draw(st.integers(0, 7))
    n_leaves = draw(st.integers(2, n_inner + 1)) if shared and n_inner else n_inner + 1
    n = n_inner + n_leaves
    edges = np.full((n_inner, 2), -1)
    for child in range(1, n):  # every node gets one parent; what is left over may point to any later node
        parent, side = rng.permutation(np.argwhere(edges[:child] < 0))[0]
        edges[parent, side] = child
    for parent, side in np.argwhere(edges < 0):
        edges[parent, side] = rng.integers(parent + 1, n)
    kind = np.append(rng.choice(kinds, n_inner), np.full(n_leaves, LEAF)) if n_inner else np.full(n_leaves, LEAF)
    is_oblique, is_category = kind == OBLIQUE, kind == CATEGORY
    size = np.where(is_oblique, rng.integers(1, n_features + 1, n), 0)
    # Columns of numbers and of categories, one of each at least; terms of sums are of both.
    numbers, categories = np.split(rng.permutation(n_features), [rng.integers(1, n_features)])
    feature = np.where(is_category, rng.choice(categories, n), rng.choice(numbers, n))
    weighed = rng.integers(0, n_features, size.sum())
    is_named = np.isin(weighed, categories)
    threshold = np.where((kind == LEAF) | is_category, np.nan, rng.choice([-1.0, 0.0, 0.5, 1.0, np.inf], n))
    position = np.full(n, -1)
    position[n_inner:] = rng.permutation(n_leaves)
    leaf_rate = np.sort(rng.random(n_leaves))[::-1]
    return Tree(
        kind=kind,
        feature=np.where((kind == LEAF) | is_oblique, -1, feature),
        threshold=threshold,
        left=np.append(edges[:, 0], np.full(n_leaves, -1)),
        right=np.append(edges[:, 1], np.full(n_leaves, -1)),
        missing_left=rng.integers(0, 2, n),
        positive=rng.integers(0, 9, n),
        negative=rng.integers(1, 9, n),
        leaf=position,
        score=np.where(position < 0, np.nan, 1 - position / n_leaves),
        rate=np.where(position < 0, np.nan, leaf_rate[position]),
        category_at=np.where(is_category, np.cumsum(is_category) - 1, -1),
        gain=rng.random(n),
        n_features=n_features,
        category_bits=rng.integers(0, 2**64, (is_category.sum(), 4), np.uint64),
        oblique_at=np.append(0, np.cumsum(size)),
        oblique_feature=weighed,
        oblique_code=np.where(is_named, rng.choice([0, 1, 64, 255], size.sum()), -1),
        oblique_weight=rng.choice([-1.0, 0.5, 2.0], size.sum()),
        oblique_fill=np.where(is_named, 0.0, rng.choice([np.nan, 0.0, 0.5], size.sum())),
    )


def blocks(n_features=3):
    """Rows that meet the thresholds of `trees`: on them, beside them, missing, unknown categories."""
    cell = st.sampled_from(
        [-1.0, np.nextafter(-1.0, 0), 0.0, 0.5, 1.0, np.nextafter(1.0, 2), 64.0, 255.0, 300.0, np.nan]
    )
    row = st.lists(cell, min_size=n_features, max_size=n_features)
    return st.lists(row, min_size=1, max_size=8).map(np.array)
