"""Two-channel histograms: positive and total weight per (node, feature, bin)."""

from toprank._core.jit import kernel


@kernel
def packed_histograms(binned, rows, chunks, offsets, packed, scratch, first_node, shared, out):
    """Add up both channels of each chunk's node, packed into one int64 a bin.

    The first node of a run of chunks may be shared with another thread: its sums go to `shared`, the others to `out`.

    Pre:  chunks int64 (m, 3): node, start, stop into rows; ordered by node. packed int64 (n_rows,) holds
          positive weight * 2**32 + total weight. scratch int64 (total_bins,). first_node = chunks[0, 0].
          shared and out[node] are zeroed, (total_bins, 2).
    Cost: rows * n_features additions.
    """
    n_features = binned.shape[1]
    c = 0
    while c < chunks.shape[0]:
        node = chunks[c, 0]
        scratch[:] = 0
        while c < chunks.shape[0] and chunks[c, 0] == node:
            for i in range(chunks[c, 1], chunks[c, 2]):
                row = rows[i]
                weight = packed[row]
                for f in range(n_features):
                    scratch[offsets[f] + binned[row, f]] += weight
            c += 1
        target = shared if node == first_node else out[node]
        for b in range(scratch.shape[0]):
            target[b, 0] += scratch[b] >> 32
            target[b, 1] += scratch[b] & 0xFFFFFFFF


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
