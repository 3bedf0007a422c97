"""Rows to children: stable partitions of the row order, segment by segment.

One node's rows are a contiguous, ascending part of the row order. A split sends each row left or right:

    rows    [a b c d e f g h]       left = b c f h
    chunks  [a b c d|e f g h]
    step 1  [b c a d|f h e g]       each chunk apart, left rows first (split_chunks)
    step 2  [b c f h|a d e g]       chunks' parts side by side (join_chunks)
"""

from toprank._core.jit import kernel


@kernel
def split_chunks(binned, rows, buffer, chunks, feature, goes_left, n_left):
    """Order each chunk of rows left part first, keeping the order inside both parts.

    Pre:  chunks int64 (m, 3): node, start, stop; goes_left uint8 (n_nodes, 256), one answer a bin;
          feature int32 (n_nodes,).
    Post: buffer[start:stop] holds the chunk's rows; n_left[c] of them go left.
    Cost: one lookup a row.
    """
    for c in range(chunks.shape[0]):
        node = chunks[c, 0]
        start = chunks[c, 1]
        stop = chunks[c, 2]
        f = feature[node]
        left = start
        for i in range(start, stop):
            if goes_left[node, binned[rows[i], f]]:
                left += 1
        n_left[c] = left - start
        right = left
        left = start
        for i in range(start, stop):
            row = rows[i]
            if goes_left[node, binned[row, f]]:
                buffer[left] = row
                left += 1
            else:
                buffer[right] = row
                right += 1


@kernel
def join_chunks(buffer, rows, chunks, n_left, left_at, right_at):
    """Copy each chunk's left part to left_at[c] and its right part to right_at[c]."""
    for c in range(chunks.shape[0]):
        start = chunks[c, 1]
        middle = start + n_left[c]
        stop = chunks[c, 2]
        rows[left_at[c] : left_at[c] + n_left[c]] = buffer[start:middle]
        rows[right_at[c] : right_at[c] + stop - middle] = buffer[middle:stop]


@kernel
def mark_rows(rows, start, stop, value, out):
    """Write value[s] to out[row] for the rows of each segment rows[start[s]:stop[s]]."""
    for s in range(start.shape[0]):
        for i in range(start[s], stop[s]):
            out[rows[i]] = value[s]


@kernel
def mark_left(codes, rows, start, stop, split, n_codes, is_categorical, goes_left, out):
    """Write 1 to out[row] where the row goes left of its segment's condition, else 0 (exact mode).

    Pre:  codes int32 (n_features, n_rows), missing = n_codes[feature]; split is a SPLIT record a segment;
          goes_left uint8 (n_segments, 256) answers for categories.
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
            if mark[row]:
                rows[left] = row
                left += 1
            else:
                buffer[spill] = row
                spill += 1
        n_left[s] = left - start[s]
        rows[left : left + spill] = buffer[:spill]
