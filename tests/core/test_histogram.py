from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import reference
from toprank._core.histogram import packed_histograms, wide_histograms


@st.composite
def nodes_in_chunks(draw):
    """Binned rows in random order, cut into nodes, each cut into chunks."""
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_bins = rng.integers(1, 6, d)
    binned = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins]).astype(np.uint8)
    total = rng.choice([0, 1, 2, 5, 2**20], n).astype(np.int64)
    positive = np.where(rng.random(n) < 0.4, total, 0)
    rows = rng.permutation(n).astype(np.int32)
    bounds = np.unique(np.append([0, n], rng.integers(0, n + 1, draw(st.integers(0, 4)))))
    chunks = []
    for node, (start, stop) in enumerate(pairwise(bounds)):
        inside = np.unique(np.append([start, stop], rng.integers(start, stop + 1, 2)))
        chunks += [(node, a, b) for a, b in pairwise(inside)]
    return binned, n_bins, positive, total, rows, np.array(chunks, np.int64)


def both_channels(binned, n_bins, positive, total, rows, chunks, kind, runs):
    """Histograms of all nodes, the chunks shared out in runs as threads would."""
    sizes = n_bins + 1
    offsets = (np.cumsum(sizes) - sizes).astype(np.uintp)
    out = np.zeros((chunks[-1, 0] + 1, sizes.sum(), 2), np.int64)
    for part in np.array_split(chunks, runs):
        if len(part) == 0:
            continue
        first, shared = part[0, 0], np.zeros((sizes.sum(), 2), np.int64)
        before = out[first].copy()
        if kind == "packed":
            scratch = np.full(sizes.sum(), -7, np.int64)
            packed_histograms(binned, rows, part, offsets, positive << 32 | total, scratch, first, shared, out)
        else:
            wide_histograms(binned, rows, part, offsets, positive, total, first, shared, out)
        assert np.array_equal(out[first], before), "another thread may be writing there"
        out[first] += shared
    return out


@given(nodes_in_chunks(), st.sampled_from(["packed", "wide"]), st.integers(1, 3))
def test_histograms_are_those_of_the_reference(data, kind, runs):
    binned, n_bins, positive, total, rows, chunks = data
    found = both_channels(*data, kind, runs)
    for node in range(len(found)):
        own = [row for c, start, stop in chunks if c == node for row in rows[start:stop]]
        expected = reference.histogram(binned, own, positive, total, n_bins)
        assert found[node].tolist() == [cell for feature in expected for cell in feature]


@given(nodes_in_chunks())
def test_packed_and_wide_sums_are_equal(data):
    assert np.array_equal(both_channels(*data, "packed", 1), both_channels(*data, "wide", 2))


def test_a_packed_bin_holds_the_largest_total():
    """Below 2**31 in all, neither half of a packed sum runs into the other."""
    half = np.full(2, 2**30 - 1, np.int64)
    binned, n_bins = np.zeros((2, 1), np.uint8), np.array([1])
    rows, chunks = np.arange(2, dtype=np.int32), np.array([[0, 0, 2]])
    assert both_channels(binned, n_bins, half, half, rows, chunks, "packed", 1)[0, 0].tolist() == [2**31 - 2] * 2
