"""Two-channel histograms: positive and total weight per (node, feature, bin)."""

import numpy as np

from toprank._core.jit import kernel

TOUCH_ROWS = 64
"""Rows whose bins are fetched before they are added up: the fetches overlap, the additions find them in the cache."""


@kernel
def touch_rows(binned, rows, start, stop, packed):
    """Read one byte of every cache line of some rows' bins, and their weights; the sum only keeps the reads alive."""
    seen = np.int64(0)
    last = np.uintp(binned.shape[1] - 1)
    for i in range(start, stop):
        row = np.uintp(rows[i])
        for f in range(0, binned.shape[1], 64):
            seen += binned[row, np.uintp(f)]
        seen += binned[row, last] + packed[row]
    return seen


@kernel
def packed_histograms(binned, rows, chunks, offsets, packed, scratch, first_node, shared, out):
    """Add up both channels of each chunk's node, packed into one int64 a bin.

    The first node of a run of chunks may be shared with another thread: its sums go to `shared`, the others to `out`.

    Pre:  chunks int64 (m, 3): node, start, stop into rows; ordered by node. packed int64 (n_rows,) holds
          positive weight * 2**32 + total weight. scratch int64 (total_bins,). first_node = chunks[0, 0].
          shared and out[node] are zeroed, (total_bins, 2). Indices are unsigned: no test for negative ones.
    Cost: rows * n_features additions, 0.5 to 1 ns each.
    """
    n_features = binned.shape[1]
    seen = np.int64(0)
    c = 0
    while c < chunks.shape[0]:
        node = chunks[c, 0]
        scratch[:] = 0
        while c < chunks.shape[0] and chunks[c, 0] == node:
            for start in range(chunks[c, 1], chunks[c, 2], TOUCH_ROWS):
                stop = min(start + TOUCH_ROWS, chunks[c, 2])
                seen += touch_rows(binned, rows, start, stop, packed)
                for i in range(start, stop):
                    row = np.uintp(rows[i])
                    weight = packed[row]
                    for f in range(n_features):
                        scratch[offsets[f] + np.uintp(binned[row, np.uintp(f)])] += weight
            c += 1
        target = shared if node == first_node else out[node]
        for b in range(scratch.shape[0]):
            target[b, 0] += scratch[b] >> 32
            target[b, 1] += scratch[b] & 0xFFFFFFFF
    return seen


@kernel
def wide_histograms(binned, rows, chunks, offsets, positive, total, first_node, shared, out):
    """Add up both channels in int64 each: for weights too large to share one.

    Pre:  as packed_histograms, with positive and total weight apart, int64 (n_rows,).
    Cost: 2 * rows * n_features additions.
    """
    n_features = binned.shape[1]
    for c in range(chunks.shape[0]):
        node = chunks[c, 0]
        target = shared if node == first_node else out[node]
        for i in range(chunks[c, 1], chunks[c, 2]):
            row = rows[i]
            for f in range(n_features):
                b = offsets[f] + binned[row, f]
                target[b, 0] += positive[row]
                target[b, 1] += total[row]
