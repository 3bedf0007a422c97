"""Values to bins: choosing the cuts of a column and mapping rows to bins."""

import numpy as np

from toprank._core.jit import kernel

GUIDE_CELLS = 2048
"""Cells in the guide table of one column. The search for a bin starts inside a cell, where few edges are left."""


TILE_ROWS = 128
"""Rows mapped column by column while they stay in the L1 cache."""


@kernel
def greedy_cuts(mass, max_bins, cut_after):
    """Cut sorted distinct values into at most max_bins runs of about equal mass.

    A run closes when it holds its share of the remaining mass; a value heavier than that share gets a run of its own,
    so that ties do not eat the resolution of the rest.

    Pre:  mass > 0, shape (n_distinct,); cut_after is zeroed, same shape.
    Post: cut_after[i] = 1 where a run ends with value i (the last run's end is not marked).
    Cost: n_distinct steps.
    """
    remaining = mass.sum()
    bins_left = max_bins
    filled = 0.0
    n = mass.shape[0]
    for i in range(n - 1):
        filled += mass[i]
        share = remaining / bins_left
        if bins_left > 1 and (filled >= share or (mass[i + 1] >= share and bins_left > 2)):
            cut_after[i] = 1
            bins_left -= 1
            remaining -= filled
            filled = 0.0


@kernel
def guide_cell(value, low, inverse_width):
    """Return the guide cell of a value; it is non-decreasing in the value, so cells order values and edges alike."""
    position = (value - low) * inverse_width
    if not position > 0.0:  # also NaN, from an infinite distance in a constant column
        return 0
    if position >= GUIDE_CELLS - 1:
        return GUIDE_CELLS - 1
    return int(position)


@kernel
def fill_guide(edges, low, inverse_width, guide):
    """Write the number of edges in lower cells, for each cell.

    Pre:  edges ascending, shape (n_edges,); guide uint8 of shape (GUIDE_CELLS + 1,).
    Post: the edges whose cell is c are edges[guide[c]:guide[c + 1]].
    """
    guide[:] = 0
    for i in range(edges.shape[0]):
        guide[guide_cell(edges[i], low, inverse_width) + 1] += 1
    for c in range(GUIDE_CELLS):
        guide[c + 1] += guide[c]


@kernel
def map_to_bins(block, n_bins, is_categorical, edges, low, inverse_width, guide, has_missing, out, by_column):
    """Write the bin code of every value; return the number of infinite values.

    A numeric value's bin is the number of edges below it, so `value <= edges[b]` exactly when `bin <= b`.
    A category's bin is its code. Missing values and unknown codes get bin n_bins[feature].

    Pre:  block float64 (n, n_features), C order; edges (n_features, 255), padded with infinity;
          guide (n_features, GUIDE_CELLS + 1).
    Post: out uint8 (n, n_features); by_column uint8 (n_features, n), unless empty: the same codes;
          has_missing[f] = 1 where column f holds a NaN.
    Cost: about one comparison per value: a guide cell rarely holds more than one edge.
    """
    n_infinite = 0
    n = block.shape[0]
    wants_columns = by_column.shape[0] > 0
    for start in range(0, n, TILE_ROWS):  # a tile stays in the L1 cache while its columns are mapped
        stop = min(start + TILE_ROWS, n)
        for f in range(block.shape[1]):
            categorical = is_categorical[f] != 0
            origin = low[f]
            scale = inverse_width[f]
            for i in range(start, stop):
                value = block[i, f]
                code = np.int64(n_bins[f])
                if np.isnan(value):
                    has_missing[f] = 1
                elif categorical:
                    code = np.int64(value) if 0 <= value < n_bins[f] else code
                elif np.isinf(value):
                    n_infinite += 1
                else:
                    cell = guide_cell(value, origin, scale)
                    code = np.int64(guide[f, cell])
                    last = np.int64(guide[f, cell + 1])
                    while last - code > 1:
                        middle = (code + last) >> 1
                        if edges[f, middle] < value:
                            code = middle + 1
                        else:
                            last = middle
                    # An addition, not a branch, because the side of an edge is unpredictable. Where no edge is left in
                    # the cell, the next one is in a higher cell and not below the value.
                    code += edges[f, code] < value
                out[i, f] = code
                if wants_columns:
                    by_column[f, i] = code
    return n_infinite
