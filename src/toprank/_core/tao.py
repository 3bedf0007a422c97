"""Rows down a tree that is still being improved, and the best cut of a column for what each row saves."""

import numpy as np

from toprank._core.dtypes import LEAF, NUMERIC, OBLIQUE
from toprank._core.jit import kernel
from toprank._core.traverse import category_side, child_of, number_side, weighted_sum


@kernel
def side_of(block, i, node, nodes, category_bits, oblique_at, oblique_feature, oblique_weight):
    """Return 1 where row i goes left at an inner node; exactly the comparison of `walk`."""
    condition = nodes[node]
    if condition["kind"] == OBLIQUE:
        value = weighted_sum(block, i, oblique_at[node], oblique_at[node + 1], oblique_feature, oblique_weight)
        return number_side(value, condition["threshold"], condition["missing_left"])
    value = block[i, condition["feature"]]
    if condition["kind"] == NUMERIC:
        return number_side(value, condition["threshold"], condition["missing_left"])
    return category_side(value, category_bits, condition["category_at"], condition["missing_left"])


@kernel
def sides_at(block, rows, node, nodes, category_bits, oblique_at, oblique_feature, oblique_weight, out):
    """Write 1 for each of the rows that goes left at a node, 0 for the others.

    Pre: block float64 (n, n_features), C order; rows int64 (m,); nodes CONDITION; out bool (m,).
    """
    for k in range(rows.shape[0]):
        out[k] = side_of(block, rows[k], node, nodes, category_bits, oblique_at, oblique_feature, oblique_weight) == 1


@kernel
def labels_below(block, rows, start, nodes, category_bits, oblique_at, oblique_feature, oblique_weight, label, out):
    """Write the label that each of the rows gets when it enters the tree at node `start`.

    Pre:  as in `sides_at`; label int64 (n_nodes,), that of each leaf; out int64 (m,).
    Cost: one condition a level.
    """
    for k in range(rows.shape[0]):
        node = np.int64(start)
        while nodes[node]["kind"] != LEAF:
            side = side_of(block, rows[k], node, nodes, category_bits, oblique_at, oblique_feature, oblique_weight)
            node = child_of(nodes[node], side)
        out[k] = label[node]


@kernel
def sums_at(block, rows, feature, weight, out):
    """Write a weighted sum of the features of each of the rows, added up in the order in which trees do.

    Pre: block float64 (n, n_features), C order; rows int64 (m,); feature int32, weight float64; out float64 (m,).
    """
    for k in range(rows.shape[0]):
        out[k] = weighted_sum(block, rows[k], 0, feature.shape[0], feature, weight)


@kernel
def best_code_cut(code, saving, n_codes, sums, counts):
    """Find the cut of ordered codes whose two sides, each sent to one child, save most.

    saving[k] is what row k saves on the left child over the right one. Missing values, code n_codes, go to the child
    that is better for them, whatever the cut; they may also be parted from all values.

    Pre:  code int32 (m,), saving int64 (m,); sums, counts int64 (n_codes + 1,) are scratch.
    Post: (saved, cut, low_left): codes 0..cut go to the left child where low_left, else to the right one; cut = -1:
          nothing parts the rows. Of equal cuts the first, of equal directions low_left.
    Cost: m additions, n_codes comparisons.
    """
    sums[:] = 0
    counts[:] = 0
    for k in range(code.shape[0]):
        sums[code[k]] += saving[k]
        counts[code[k]] += 1
    n_known = code.shape[0] - counts[n_codes]
    total = np.int64(0)
    for c in range(n_codes):
        total += sums[c]
    missing = sums[n_codes]
    best = np.int64(0)
    cut = -1
    low_left = True
    low = np.int64(0)
    n_low = 0
    for c in range(n_codes):
        if counts[c] == 0:
            continue
        low += sums[c]
        n_low += counts[c]
        for direction in range(2):
            saved = low if direction == 0 else total - low
            if n_low == n_known:  # parts the values from the missing ones, or nothing
                if counts[n_codes] == 0 or (missing > 0) == (direction == 0):
                    continue
            if cut < 0 or saved > best:
                best = saved
                cut = c
                low_left = direction == 0
    return best + max(missing, 0), cut, low_left
