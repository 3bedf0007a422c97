"""Rows to children: stable partitions of the row order, segment by segment.

One node's rows are a contiguous, ascending part of the row order. A split sends each row left or right:

    rows    [a b c d e f g h]       left = b c f h
    chunks  [a b c d|e f g h]
    step 1  [b c . .|f h . .]       each chunk on its own, left rows to one buffer (split_chunks)
            [a d . .|e g . .]       and right rows to another
    step 2  [b c f h|a d e g]       left rows first, then right rows (join_chunks)
"""

import numpy as np

from toprank._core.jit import kernel


@kernel
def split_chunks(codes, row_step, column_step, rows, left_rows, right_rows, chunks, feature, goes_left, n_left):
    """Split each chunk of rows, keeping the order within both sides.

    Every row is written to both buffers and one of two positions advances: a branch would be unpredictable.

    Pre:  the bin of a row in column f is codes[row * row_step + f * column_step], codes uint8;
          chunks int64 (m, 3): node, start, stop; goes_left uint8 (n_nodes, 256), one answer (0 or 1) per bin;
          feature int32 (n_nodes,).
    Post: the chunk's left rows are in left_rows from start on, n_left[c] of them, its right rows in right_rows.
    Cost: one lookup per row.
    """
    for c in range(chunks.shape[0]):
        node = chunks[c, 0]
        start = chunks[c, 1]
        answers = goes_left[node]
        column = np.uintp(feature[node] * column_step)
        step = np.uintp(row_step)
        left = start
        right = start
        for i in range(start, chunks[c, 2]):
            row = rows[i]
            is_left = np.int64(answers[codes[np.uintp(row) * step + column]])
            left_rows[left] = row
            right_rows[right] = row
            left += is_left
            right += 1 - is_left
        n_left[c] = left - start


@kernel
def join_chunks(left_rows, right_rows, rows, chunks, n_left, left_at, right_at):
    """Copy each chunk's left rows to left_at[c] and its right rows to right_at[c]."""
    for c in range(chunks.shape[0]):
        start = chunks[c, 1]
        n_right = chunks[c, 2] - start - n_left[c]
        to, source = rows[left_at[c] : left_at[c] + n_left[c]], left_rows[start : start + n_left[c]]
        for k in range(n_left[c]):
            to[k] = source[k]
        to, source = rows[right_at[c] : right_at[c] + n_right], right_rows[start : start + n_right]
        for k in range(n_right):
            to[k] = source[k]


@kernel
def mark_rows(rows, start, stop, value, out):
    """Write value[s] to out[row] for the rows of each segment rows[start[s]:stop[s]]."""
    for s in range(start.shape[0]):
        for i in range(start[s], stop[s]):
            out[rows[i]] = value[s]


@kernel
def mark_left(codes, rows, start, stop, split, n_codes, is_categorical, goes_left, out):
    """Write 1 to out[row] if the row goes left at its segment's condition, else 0 (exact mode).

    Pre:  codes int32 (n_features, n_rows), missing = n_codes[feature]; split is one SPLIT record per segment;
          goes_left uint8 (n_segments, 256) for categories.
    """
    for s in range(start.shape[0]):
        f = split[s]["feature"]
        for i in range(start[s], stop[s]):
            row = rows[i]
            code = codes[f, row]
            if is_categorical[f]:
                out[row] = goes_left[s, code]
            elif code == n_codes[f]:
                out[row] = split[s]["missing_left"]
            else:
                out[row] = code <= split[s]["last_left"]


@kernel
def split_by_mark(rows, buffer, start, stop, mark, n_left):
    """Stably partition each segment of rows by mark[row], ones first.

    Post: rows is partitioned in place; n_left[s] rows of segment s have mark 1. buffer is scratch.
    """
    for s in range(start.shape[0]):
        left = start[s]
        spill = 0
        for i in range(start[s], stop[s]):
            row = rows[i]
            is_left = np.int64(mark[row])
            rows[left] = row  # left <= i: already read
            buffer[spill] = row
            left += is_left
            spill += 1 - is_left
        n_left[s] = left - start[s]
        for k in range(spill):
            rows[left + k] = buffer[k]


@kernel
def count_rows(leaf, rows, n_nodes):
    """Return how many of the rows are in each node, int64 (n_nodes,)."""
    size = np.zeros(n_nodes, np.int64)
    for i in range(rows.shape[0]):
        size[leaf[rows[i]]] += 1
    return size


@kernel
def spread_rows(leaf, rows, size, quota, seen, out):
    """Write at most `quota` rows of each node to out, evenly spaced among the node's rows, in the order of rows.

    Pre:  size from count_rows; seen is zeroed, same shape; out has room for sum(min(size, quota)) rows.
    """
    n = 0
    for i in range(rows.shape[0]):
        node = leaf[rows[i]]
        kept = min(quota, size[node])
        # Of `size` rows, keep those at which (place * kept) // size advances: exactly `kept` of them.
        if (seen[node] + 1) * kept // size[node] > seen[node] * kept // size[node]:
            out[n] = rows[i]
            n += 1
        seen[node] += 1
