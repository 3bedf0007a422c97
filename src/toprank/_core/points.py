"""Points of values (bins of numbers, straight lines between their ends, categories), and of rules that hold."""

import numpy as np

from toprank._core.jit import kernel


@kernel
def bin_of(x, edges, start, stop):
    """Return the bin of a number, 0 to stop - start: the count of edges[start:stop] that are below it."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel
def points_of(x, is_categorical, edges, edge_at, edge_end, points, ends, point_at, point_end, missing):
    """Return the points of one value; NaN and unknown category codes have the points of a missing value.

    Pre:  edges[edge_at:edge_end] ascending; points[point_at:point_end] and ends likewise, one more than the edges or
          one per category; the first and the last bin of a number have equal points and ends.
    """
    if np.isnan(x):
        return missing
    if is_categorical:
        if x < 0.0 or x >= point_end - point_at:
            return missing
        return points[point_at + np.int64(x)]
    which = bin_of(x, edges, edge_at, edge_end)
    first, last = points[point_at + which], ends[point_at + which]
    if first == last:
        return first
    low, high = edges[edge_at + which - 1], edges[edge_at + which]
    if high - low < np.inf:
        return first + (last - first) * ((x - low) / (high - low))
    return first + (last - first) * ((0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low))


@kernel
def add_points(block, feature, is_categorical, edge_at, edges, point_at, points, ends, missing, out):
    """Add the points of each row's values to `out`, in the order of the shapes.

    Pre:  block float64 (n, n_features), C order; feature int32 (n_shapes,), below n_features; is_categorical uint8
          (n_shapes,); edge_at, point_at int32 (n_shapes + 1,); edges, points, ends, missing float64.
    Post: out float64 (n,), added to.
    Cost: n * n_shapes binary searches.
    """
    for i in range(block.shape[0]):
        total = out[i]
        for s in range(feature.shape[0]):
            total += points_of(
                block[i, feature[s]], is_categorical[s], edges, edge_at[s], edge_at[s + 1], points, ends,
                point_at[s], point_at[s + 1], missing[s],
            )  # fmt: skip
        out[i] = total


@kernel
def write_points(block, feature, is_categorical, edge_at, edges, point_at, points, ends, missing, out):
    """Write the points of each value to the column of its feature; the other columns stay.

    Pre:  as in `add_points`.
    Post: out float64 (n, n_features), C order.
    """
    for i in range(block.shape[0]):
        for s in range(feature.shape[0]):
            out[i, feature[s]] = points_of(
                block[i, feature[s]], is_categorical[s], edges, edge_at[s], edge_at[s + 1], points, ends,
                point_at[s], point_at[s + 1], missing[s],
            )  # fmt: skip


@kernel
def meets(x, is_categorical, low, high, missing, bits):
    """Return whether a value meets a condition: low < x <= high, one of the categories, or missing where that counts.

    Pre:  bits uint64 (4,): the categories; codes outside 0 to 255 count as missing.
    """
    if np.isnan(x):
        return missing
    if is_categorical:
        if x < 0.0 or x >= 256.0:
            return missing
        code = np.int64(x)
        return (bits[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != 0
    return low < x and x <= high


@kernel
def rule_holds(row, first, stop, feature, is_categorical, low, high, missing, bits):
    """Return whether a row meets the conditions from first to stop."""
    for c in range(first, stop):
        if not meets(row[feature[c]], is_categorical[c], low[c], high[c], missing[c], bits[c]):
            return False
    return True


@kernel
def write_holds(block, condition_at, feature, is_categorical, low, high, missing, bits, out):
    """Write which rules hold for each row.

    Pre:  block float64 (n, n_features), C order; condition_at int64 (n_rules + 1,); the other arrays have one entry per
          condition.
    Post: out bool (n, n_rules).
    """
    for i in range(block.shape[0]):
        for r in range(condition_at.shape[0] - 1):
            first, stop = condition_at[r], condition_at[r + 1]
            out[i, r] = rule_holds(block[i], first, stop, feature, is_categorical, low, high, missing, bits)


@kernel
def add_rule_points(block, condition_at, feature, is_categorical, low, high, missing, bits, points, out):
    """Add the points of the rules that hold for each row to `out`, in the order of the rules.

    Pre:  as in `write_holds`; points float64 (n_rules,); out float64 (n,).
    """
    for i in range(block.shape[0]):
        for r in range(condition_at.shape[0] - 1):
            first, stop = condition_at[r], condition_at[r + 1]
            if rule_holds(block[i], first, stop, feature, is_categorical, low, high, missing, bits):
                out[i] += points[r]
