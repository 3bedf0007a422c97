"""Values to bins: where to cut a column, and the mapping of rows."""

import numpy as np

from toprank._core.jit import kernel

GUIDE_CELLS = 1024
"""Cells of the guide table of one column. The search for a bin starts inside a cell, where few edges are left."""


@kernel
def greedy_cuts(mass, max_bins, cut_after):
    """Cut sorted distinct values into at most max_bins runs of about equal mass.

    A run closes when it holds its share of the mass still to come; a value heavier than that share gets a run of its
    own, so ties do not eat the resolution of the rest.

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
    """Return the guide cell of a value: non-decreasing in the value, so cells order values and edges alike."""
    position = (value - low) * inverse_width
    if not position > 0.0:  # also NaN: an infinite distance in a column without a scale
        return 0
    if position >= GUIDE_CELLS - 1:
        return GUIDE_CELLS - 1
    return int(position)


@kernel
def fill_guide(edges, low, inverse_width, guide):
    """Write for each cell the number of edges in lower cells.

    Pre:  edges ascending, shape (n_edges,); guide uint8 of shape (GUIDE_CELLS + 1,).
    Post: the edges whose cell is c are edges[guide[c]:guide[c + 1]].
    """
    guide[:] = 0
    for i in range(edges.shape[0]):
        guide[guide_cell(edges[i], low, inverse_width) + 1] += 1
    for c in range(GUIDE_CELLS):
        guide[c + 1] += guide[c]


@kernel
def map_to_bins(block, n_bins, is_categorical, edges, low, inverse_width, guide, out):
    """Write the bin code of every value; return the number of infinite values met.

    A numeric value's bin is the number of edges below it, so `value <= edges[b]` exactly when `bin <= b`.
    A category's bin is its code. Missing values and unknown codes get bin n_bins[feature].

    Pre:  block float64 (n, n_features), C order; edges (n_features, 254); guide (n_features, GUIDE_CELLS + 1).
    Post: out uint8 (n, n_features).
    Cost: a few comparisons a value: the guide leaves less than one edge to search in the common case.
    """
    n_infinite = 0
    n_features = block.shape[1]
    for i in range(block.shape[0]):
        for f in range(n_features):
            value = block[i, f]
            if np.isnan(value):
                out[i, f] = n_bins[f]
            elif is_categorical[f]:
                out[i, f] = int(value) if 0 <= value < n_bins[f] else n_bins[f]
            else:
                if np.isinf(value):
                    n_infinite += 1
                cell = guide_cell(value, low[f], inverse_width[f])
                first = np.int64(guide[f, cell])
                last = np.int64(guide[f, cell + 1])
                while first < last:
                    middle = (first + last) >> 1
                    if edges[f, middle] < value:
                        first = middle + 1
                    else:
                        last = middle
                out[i, f] = first
    return n_infinite
