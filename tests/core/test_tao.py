import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tables import trees
from toprank._core.tao import best_code_cut, labels_below, sides_at, write_sums

VALUES = [-2.0, -1.0, 0.0, 0.5, 1.0, 3.0, np.nan]


def matrix(rng, n=20):
    return rng.choice(VALUES, (n, 3))


@given(trees(shared=False), st.integers(0, 2**32 - 1))
def test_rows_go_where_the_finished_tree_sends_them(tree, seed):
    X = matrix(np.random.default_rng(seed))
    rows = np.arange(0, len(X), 2)
    out = np.empty(len(rows), np.int64)
    labels_below(X, rows, 0, *tree.conditions, np.arange(len(tree)), out)
    assert np.array_equal(out, tree.apply(X[rows]))
    for node in np.flatnonzero(~tree.is_leaf):
        is_left = np.empty(len(rows), np.bool_)
        sides_at(X, rows, node, *tree.conditions, is_left)
        labels_below(X, rows, node, *tree.conditions, np.arange(len(tree)), out)
        for child, side in ((tree.left[node], is_left), (tree.right[node], ~is_left)):
            below = np.empty(int(side.sum()), np.int64)
            labels_below(X, rows[side], child, *tree.conditions, np.arange(len(tree)), below)
            assert np.array_equal(out[side], below)


@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.booleans())
def test_sums_are_added_up_term_by_term(seed, n_rows, has_categories):
    """However many rows there are: four of them are added up side by side, the last ones alone."""
    rng = np.random.default_rng(seed)
    X, rows = matrix(rng), rng.integers(0, 20, n_rows)
    feature, weight, fill = np.array([2, 0, 1, 1], np.int32), rng.normal(size=4), np.array([np.nan, 7.0, 0.0, 0.0])
    code = np.array([-1, -1, 3, 0], np.int32)
    n = 4 if has_categories else 2
    out = np.empty(n_rows)
    write_sums(X, rows, 0, n, feature, code, weight, fill, out)
    expected = [(0.0 + weight[0] * X[i, 2]) + weight[1] * (7.0 if np.isnan(X[i, 0]) else X[i, 0]) for i in rows]
    if has_categories:  # 1 where a row has the category; a missing one is none of them
        expected = [(s + weight[2] * (X[i, 1] == 3)) + weight[3] * (X[i, 1] == 0)
                    for s, i in zip(expected, rows, strict=True)]  # fmt: skip
    assert np.array_equal(out, expected, equal_nan=True)


def every_cut(code, saving, n_codes):
    """(saved, cut, low_left) of each way to part ordered codes, missing values on the better side."""
    known, missing = code < n_codes, int(saving[code == n_codes].sum())
    for cut in np.unique(code[known]):
        for low_left in (True, False):
            goes_left = (code <= cut) == low_left
            for missing_left in (False, True):
                goes_left = np.where(known, goes_left, missing_left)
                if goes_left.any() and not goes_left.all() and (missing > 0) == missing_left:
                    yield int(saving[goes_left].sum()), int(cut), low_left


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-4, 4)), min_size=1, max_size=12))
@example([(0, 1), (0, 2)])
@example([(4, 3), (1, -1)])
@example([(4, 0), (1, -1)])
def test_the_best_cut_of_codes_is_the_best_of_all(pairs):
    code, saving = (
        np.array(column, dtype) for column, dtype in zip(zip(*pairs, strict=True), ("i4", "i8"), strict=True)
    )
    scratch = np.full((2, 5), 99)
    saved, cut, low_left = best_code_cut(code, saving, 4, scratch[0], scratch[1])
    expected = list(every_cut(code, saving, 4))
    assert (cut >= 0) == bool(expected)
    if expected:
        assert saved == max(value for value, *_ in expected)
        assert (saved, cut, low_left) in expected
