import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import reference
from toprank._core.dtypes import SPLIT
from toprank._core.partition import (
    count_rows,
    join_chunks,
    mark_left,
    mark_rows,
    split_by_mark,
    split_chunks,
    spread_rows,
)


@st.composite
def segments(draw, max_segments=3):
    """A permutation of rows, disjoint ascending segments of it (gaps allowed), and a random generator."""
    n = draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bounds = np.sort(rng.choice(n + 1, min(2 * draw(st.integers(1, max_segments)), (n + 1) // 2 * 2), replace=False))
    return rng.permutation(n).astype(np.int32), bounds[::2].copy(), bounds[1::2].copy(), rng


@given(segments(), st.integers(1, 7), st.booleans())
def test_chunks_are_split_and_joined_into_a_stable_partition(data, chunk, by_row):
    rows, start, stop, rng = data
    n_nodes = len(start)
    binned = rng.integers(0, 5, (len(rows), 2)).astype(np.uint8)
    feature, goes_left = (
        rng.integers(0, 2, n_nodes).astype(np.int32),
        rng.integers(0, 2, (n_nodes, 256)).astype(np.uint8),
    )
    chunks = np.array(
        [(s, a, min(a + chunk, stop[s])) for s in range(n_nodes) for a in range(start[s], stop[s], chunk)]
    )
    before, n_left = rows.copy(), np.zeros(len(chunks), np.int64)
    left_rows, right_rows = np.full_like(rows, -1), np.full_like(rows, -1)
    codes, *steps = (binned.ravel(), 2, 1) if by_row else (binned.T.ravel(), 1, len(rows))
    split_chunks(codes, *steps, rows, left_rows, right_rows, chunks, feature, goes_left, n_left)
    assert np.array_equal(rows, before), "the first step only reads the rows"

    expected = before.tolist()
    for s in range(n_nodes):
        own = before[start[s] : stop[s]].tolist()
        expected[start[s] : stop[s]] = reference.stable_partition(
            own, lambda row, s=s: goes_left[s, binned[row, feature[s]]]
        )
    left_at, right_at = np.zeros(len(chunks), np.int64), np.zeros(len(chunks), np.int64)
    for s in range(n_nodes):
        own = np.flatnonzero(chunks[:, 0] == s)
        left, right = start[s], start[s] + n_left[own].sum()
        for c in own:
            left_at[c], right_at[c] = left, right
            left += n_left[c]
            right += chunks[c, 2] - chunks[c, 1] - n_left[c]
    join_chunks(left_rows, right_rows, rows, chunks, n_left, left_at, right_at)
    assert rows.tolist() == expected


@given(segments())
def test_marks_are_written_to_the_rows_of_their_segment_only(data):
    rows, start, stop, rng = data
    value = rng.integers(1, 5, len(start)).astype(np.uint8)
    out = np.zeros(len(rows), np.uint8)
    mark_rows(rows, start, stop, value, out)
    expected = [0] * len(rows)
    for s in range(len(start)):
        for row in rows[start[s] : stop[s]]:
            expected[row] = value[s]
    assert out.tolist() == expected


@given(segments())
def test_rows_are_parted_by_their_mark(data):
    rows, start, stop, rng = data
    mark = rng.integers(0, 2, len(rows)).astype(np.uint8)
    before, n_left = rows.copy(), np.zeros(len(start), np.int64)
    split_by_mark(rows, np.empty_like(rows), start, stop, mark, n_left)
    expected = before.tolist()
    for s in range(len(start)):
        own = expected[start[s] : stop[s]]
        expected[start[s] : stop[s]] = reference.stable_partition(own, lambda row: mark[row])
        assert n_left[s] == mark[own].sum()
    assert rows.tolist() == expected


@given(segments())
def test_marks_follow_the_condition(data):
    """Numbers by their code, missing values by the direction, categories by their set; others stay."""
    rows, start, stop, rng = data
    n_codes, is_categorical = np.array([4, 3], np.int32), np.array([0, 1], np.uint8)
    codes = np.array([rng.integers(0, count + 1, len(rows)) for count in n_codes], np.int32)
    split = np.zeros(len(start), SPLIT)
    split["feature"], split["last_left"] = rng.integers(0, 2, len(start)), rng.integers(0, 4, len(start))
    split["missing_left"] = rng.integers(0, 2, len(start))
    goes_left = rng.integers(0, 2, (len(start), 256)).astype(np.uint8)
    out = np.full(len(rows), 9, np.uint8)
    mark_left(codes, rows, start, stop, split, n_codes, is_categorical, goes_left, out)
    expected = [9] * len(rows)
    for s in range(len(start)):
        for row in rows[start[s] : stop[s]]:
            f = split["feature"][s]
            code = codes[f, row]
            if f == 1:
                expected[row] = goes_left[s, code]
            else:
                expected[row] = split["missing_left"][s] if code == 4 else int(code <= split["last_left"][s])
    assert out.tolist() == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 12))
def test_rows_of_a_node_are_spread_evenly(leaves, quota):
    leaf, rows = np.array(leaves, np.int32), np.arange(0, len(leaves), 1 + len(leaves) % 2)
    size = count_rows(leaf, rows, 4)
    assert size.tolist() == np.bincount(leaf[rows], minlength=4).tolist()
    out = np.full(int(np.minimum(size, quota).sum()), -1)
    spread_rows(leaf, rows, size, quota, np.zeros(4, np.int64), out)
    assert np.all(np.diff(out) > 0)
    for node in range(4):
        places = np.flatnonzero(np.isin(rows[leaf[rows] == node], out))  # which of the node's rows were kept
        kept = min(quota, size[node])
        assert len(places) == kept
        if kept:
            steps = np.diff(np.append(-1, places))
            assert steps.max() <= -(-size[node] // kept), "no gap is longer than it has to be"
