"""Rows routed down a tree under optimisation, and the best cut of a column given what each row saves."""

import numpy as np

from toprank._core.dtypes import LEAF, NUMERIC, OBLIQUE
from toprank._core.jit import kernel
from toprank._core.traverse import category_side, number_side, weighted_sum


@kernel
def four_sums(block, rows, k, start, stop, feature, code, weight, fill):
    """Return the weighted sums of rows[k:k + 4], bit for bit those of `weighted_sum`.

    Each addition waits for the previous one of its sum; with four sums the waits overlap.
    """
    i0, i1, i2, i3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
    s0 = s1 = s2 = s3 = 0.0
    for t in range(start, stop):
        f = np.uint64(feature[t])
        w, instead, c = weight[t], fill[t], code[t]
        x0, x1, x2, x3 = block[i0, f], block[i1, f], block[i2, f], block[i3, f]
        if c < 0:
            s0 += w * (x0 if x0 == x0 else instead)
            s1 += w * (x1 if x1 == x1 else instead)
            s2 += w * (x2 if x2 == x2 else instead)
            s3 += w * (x3 if x3 == x3 else instead)
        else:
            s0 += w if x0 == c else 0.0
            s1 += w if x1 == c else 0.0
            s2 += w if x2 == c else 0.0
            s3 += w if x3 == c else 0.0
    return s0, s1, s2, s3


@kernel
def write_sums(block, rows, start, stop, feature, code, weight, fill, out):
    """Write the weighted sum of the terms from start to stop for each of the rows, adding in the order of trees.

    Pre: block float64 (n, n_features), C order; rows int64 (m,); feature and code int32, weight and fill float64
         (k,); out float64 (m,).
    """
    n = rows.shape[0]
    whole = n - n % 4
    for k in range(0, whole, 4):
        out[k], out[k + 1], out[k + 2], out[k + 3] = four_sums(block, rows, k, start, stop, feature, code, weight, fill)
    for k in range(whole, n):
        out[k] = weighted_sum(block, rows[k], start, stop, feature, code, weight, fill)


@kernel
def sides_at(
    block,
    rows,
    node,
    nodes,
    category_bits,
    oblique_at,
    oblique_feature,
    oblique_code,
    oblique_weight,
    oblique_fill,
    out,
):
    """Write 1 for each of the rows that goes left at a node, else 0; the same comparison as in `walk`.

    Pre: block float64 (n, n_features), C order; rows int64 (m,); nodes CONDITION; out bool (m,).
    """
    condition = nodes[node]
    missing_left = condition["missing_left"]
    if condition["kind"] == OBLIQUE:
        value = np.empty(rows.shape[0])
        start, stop = oblique_at[node], oblique_at[node + 1]
        write_sums(block, rows, start, stop, oblique_feature, oblique_code, oblique_weight, oblique_fill, value)
        for k in range(rows.shape[0]):
            out[k] = number_side(value[k], condition["threshold"], missing_left) == 1
    elif condition["kind"] == NUMERIC:
        for k in range(rows.shape[0]):
            out[k] = number_side(block[rows[k], condition["feature"]], condition["threshold"], missing_left) == 1
    else:
        for k in range(rows.shape[0]):
            value_here = block[rows[k], condition["feature"]]
            out[k] = category_side(value_here, category_bits, condition["category_at"], missing_left) == 1


@kernel
def labels_below(
    block,
    rows,
    start,
    nodes,
    category_bits,
    oblique_at,
    oblique_feature,
    oblique_code,
    oblique_weight,
    oblique_fill,
    label,
    out,
):
    """Write the label that each of the rows gets when it enters the tree at node `start`.

    Works node by node, so that the rows of a node are processed together.

    Pre:  as in `sides_at`; label int64 (n_nodes,), used at leaves; out int64 (m,).
    Cost: one condition per level.
    """
    n = rows.shape[0]
    place = np.arange(n)  # positions in out, grouped by node
    is_left = np.empty(n, np.bool_)
    to_do = np.empty((nodes.shape[0], 3), np.int64)  # node, start and stop of its places
    to_do[0, 0], to_do[0, 1], to_do[0, 2] = start, 0, n
    count = 1
    while count > 0:
        count -= 1
        node, first, end = to_do[count, 0], to_do[count, 1], to_do[count, 2]
        own = place[first:end].copy()
        if nodes[node]["kind"] == LEAF:
            for k in own:
                out[k] = label[node]
        elif first < end:
            side = is_left[first:end]
            sides_at(
                block,
                rows[own],
                node,
                nodes,
                category_bits,
                oblique_at,
                oblique_feature,
                oblique_code,
                oblique_weight,
                oblique_fill,
                side,
            )
            middle = first + np.sum(side)
            at_left, at_right = first, middle
            for k in range(own.shape[0]):
                if side[k]:
                    place[at_left] = own[k]
                    at_left += 1
                else:
                    place[at_right] = own[k]
                    at_right += 1
            to_do[count, 0], to_do[count, 1], to_do[count, 2] = nodes[node]["left"], first, middle
            to_do[count + 1, 0], to_do[count + 1, 1], to_do[count + 1, 2] = nodes[node]["right"], middle, end
            count += 2


@kernel
def best_code_cut(code, saving, n_codes, sums, counts):
    """Find the cut of ordered codes that saves most if each side is sent to one child.

    saving[k] is what row k saves in the left child over the right one. Missing values, code n_codes, go to the better
    child for them, whatever the cut; they may also be separated from all values.

    Pre:  code int32 (m,), saving int64 (m,); sums, counts int64 (n_codes + 1,) are scratch.
    Post: (saved, cut, low_left): codes 0..cut go to the left child if low_left, else to the right one; cut = -1:
          nothing splits the rows. Ties go to the first cut, then to low_left.
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
            if n_low == n_known:  # separates the values from the missing ones, or nothing
                if counts[n_codes] == 0 or (missing > 0) == (direction == 0):
                    continue
            if cut < 0 or saved > best:
                best = saved
                cut = c
                low_left = direction == 0
    return best + max(missing, 0), cut, low_left
