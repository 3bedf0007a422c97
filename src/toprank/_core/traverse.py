"""Rows routed down trees: leaves, paths, margins, stages, votes; points of scorecards; sums over many trees."""

import numpy as np

from toprank._core.dtypes import LEAF, NUMERIC, OBLIQUE
from toprank._core.jit import kernel

BLOCK = 64
"""Rows that pass through one tree after the other: they and the tree stay in the L1 cache."""


@kernel
def number_side(value, threshold, missing_left):
    """Return 1 if the value goes left: `value <= threshold`; a missing value goes by missing_left."""
    return np.int64(value <= threshold) | (np.int64(np.isnan(value)) & np.int64(missing_left))


@kernel
def category_side(value, category_bits, at, missing_left):
    """Return 1 if the category's bit is set; a missing or unknown category goes by missing_left."""
    side = np.int64(missing_left)
    if 0 <= value < 256:
        code = np.uint64(value)
        side = np.int64((category_bits[at, code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1))
    return side


@kernel
def weighted_sum(block, i, start, stop, oblique_feature, oblique_code, oblique_weight, oblique_fill):
    """Return a weighted sum over row i; a missing number is replaced by its fill, which may be NaN.

    A category term (code >= 0) counts if the row has it. The index is unsigned, to avoid a test of its sign.
    """
    total = 0.0
    for k in range(start, stop):
        value = block[i, np.uint64(oblique_feature[k])]
        if oblique_code[k] < 0:
            total += oblique_weight[k] * (value if value == value else oblique_fill[k])
        elif value == oblique_code[k]:
            total += oblique_weight[k]
    return total


@kernel
def child_of(condition, is_left):
    """Return the child on the given side; by arithmetic, because a branch would be unpredictable."""
    right = np.int64(condition["right"])
    return right + is_left * (np.int64(condition["left"]) - right)


@kernel
def walk(
    block,
    nodes,
    category_bits,
    oblique_at,
    oblique_feature,
    oblique_code,
    oblique_weight,
    oblique_fill,
    scale,
    leaf,
    margin,
    length,
    path,
):
    """Write the leaf that each row reaches and, on request, its margin and its path.

    The steps are inlined: passing all arrays to a function would cost more than its work.

    Pre:  block float64 (n, n_features), C order; nodes CONDITION (n_nodes,).
    Post: leaf int32 (n,).
          margin float64 (n,), unless scale is empty: distance to the nearest threshold on the path, in units of
          scale[feature], or in its own units for a weighted sum; categories and missing values have none; 0 if no
          threshold was met.
          path int32 (n, longest path) and length int32 (n,), unless path is empty: nodes from the root to the leaf.
    Cost: one condition per level.
    """
    wants_margin = scale.shape[0] > 0
    wants_path = path.shape[0] > 0
    for i in range(block.shape[0]):
        node = np.int64(0)
        nearest = np.inf
        n = 0
        while nodes[node]["kind"] != LEAF:
            if wants_path:
                path[i, n] = node
                n += 1
            condition = nodes[node]
            if condition["kind"] == OBLIQUE:
                start, stop = oblique_at[node], oblique_at[node + 1]
                value = weighted_sum(block, i, start, stop, oblique_feature, oblique_code, oblique_weight, oblique_fill)
                side = number_side(value, condition["threshold"], condition["missing_left"])
                if wants_margin:
                    distance = abs(value - condition["threshold"])
                    nearest = distance if distance < nearest else nearest
            else:
                value = block[i, condition["feature"]]
                if condition["kind"] == NUMERIC:
                    side = number_side(value, condition["threshold"], condition["missing_left"])
                    if wants_margin:
                        distance = abs(value - condition["threshold"]) / scale[condition["feature"]]
                        nearest = distance if distance < nearest else nearest  # false for NaN
                else:
                    side = category_side(value, category_bits, condition["category_at"], condition["missing_left"])
            node = child_of(condition, side)
        leaf[i] = node
        if wants_margin:
            margin[i] = nearest if nearest < np.inf else 0.0
        if wants_path:
            path[i, n] = node
            length[i] = n + 1


@kernel
def walk_stages(
    block,
    nodes,
    category_bits,
    oblique_at,
    oblique_feature,
    oblique_code,
    oblique_weight,
    oblique_fill,
    scale,
    part_at,
    reached,
    margin,
):
    """Write the part of the tree that each row is in after 1, 2, ... stages and, on request, its margin so far.

    Pre:  part_at int32 (n_nodes,): the part that begins at a node, or -1; one begins at the root and at each leaf. A
          stage ends where the row enters another part.
    Post: reached int32 (n, n_stages): a row in a leaf stays there.
          margin float64 (n, n_stages), unless scale is empty: as in `walk`, over the conditions met so far.
    Cost: one condition per level, down to the last stage.
    """
    wants_margin = scale.shape[0] > 0
    n_stages = reached.shape[1]
    for i in range(block.shape[0]):
        node = np.int64(0)
        part = part_at[0]
        nearest = np.inf
        stage = 0
        while stage < n_stages and nodes[node]["kind"] != LEAF:
            condition = nodes[node]
            if condition["kind"] == OBLIQUE:
                start, stop = oblique_at[node], oblique_at[node + 1]
                value = weighted_sum(block, i, start, stop, oblique_feature, oblique_code, oblique_weight, oblique_fill)
                side = number_side(value, condition["threshold"], condition["missing_left"])
                if wants_margin:
                    distance = abs(value - condition["threshold"])
                    nearest = distance if distance < nearest else nearest
            else:
                value = block[i, condition["feature"]]
                if condition["kind"] == NUMERIC:
                    side = number_side(value, condition["threshold"], condition["missing_left"])
                    if wants_margin:
                        distance = abs(value - condition["threshold"]) / scale[condition["feature"]]
                        nearest = distance if distance < nearest else nearest  # false for NaN
                else:
                    side = category_side(value, category_bits, condition["category_at"], condition["missing_left"])
            node = child_of(condition, side)
            if part_at[node] >= 0:
                part = part_at[node]
                reached[i, stage] = part
                if wants_margin:
                    margin[i, stage] = nearest if nearest < np.inf else 0.0
                stage += 1
        for rest in range(stage, n_stages):
            reached[i, rest] = part
            if wants_margin:
                margin[i, rest] = nearest if nearest < np.inf else 0.0


@kernel
def confusion_scores(
    block,
    nodes,
    category_bits,
    oblique_at,
    oblique_feature,
    oblique_code,
    oblique_weight,
    oblique_fill,
    rate,
    confusion,
    out,
):
    """Write each row's mean leaf rate; a leaf has weight confusion ** (conditions violated on the way to it).

    Pre:  every node has one parent (a tree, not a meta-tree).
    Cost: all nodes per row.
    """
    n_nodes = nodes.shape[0]
    votes = np.empty(n_nodes)
    weight = np.empty(n_nodes)
    for i in range(block.shape[0]):
        for node in range(n_nodes - 1, -1, -1):
            condition = nodes[node]
            if condition["kind"] == LEAF:
                votes[node] = rate[node]
                weight[node] = 1.0
                continue
            if condition["kind"] == OBLIQUE:
                start, stop = oblique_at[node], oblique_at[node + 1]
                value = weighted_sum(block, i, start, stop, oblique_feature, oblique_code, oblique_weight, oblique_fill)
                side = number_side(value, condition["threshold"], condition["missing_left"])
            elif condition["kind"] == NUMERIC:
                side = number_side(block[i, condition["feature"]], condition["threshold"], condition["missing_left"])
            else:
                value = block[i, condition["feature"]]
                side = category_side(value, category_bits, condition["category_at"], condition["missing_left"])
            kept = child_of(condition, side)
            broken = child_of(condition, 1 - side)
            votes[node] = votes[kept] + confusion * votes[broken]
            weight[node] = weight[kept] + confusion * weight[broken]
        out[i] = votes[0] / weight[0]


@kernel
def scorecard_points(block, center, weight, missing, points_at, points, step_at, step_above, step_points, out):
    """Write the points of each row, adding in a fixed order, so that a row scores the same in any batch.

    Pre:  points_at int32 (n_features + 1,): feature f is a category if points_at[f] < points_at[f + 1]; step_at
          int32 (n_features + 1,): the steps of feature f, a number.
    """
    for i in range(block.shape[0]):
        total = 0.0
        for f in range(block.shape[1]):
            value = block[i, f]
            n_categories = points_at[f + 1] - points_at[f]
            if n_categories > 0:
                if 0 <= value < n_categories:
                    total += points[points_at[f] + int(value)]
                else:
                    total += missing[f]
            elif np.isnan(value):
                total += missing[f]
            else:
                worth = weight[f] * (value - center[f])
                for j in range(step_at[f], step_at[f + 1]):
                    if value > step_above[j]:
                        worth += step_points[j]
                total += worth
        out[i] = total


# --- sums over many trees -----------------------------------------------------------------------------------------


@kernel
def next_node(condition, x, category_bits):
    """Return the child that a value leads to."""
    if condition["kind"] == NUMERIC:
        side = number_side(x, condition["threshold"], condition["missing_left"])
    else:
        side = category_side(x, category_bits, condition["category_at"], condition["missing_left"])
    return child_of(condition, side)


@kernel
def sum_trees(block, nodes, category_bits, root, value, out):
    """Add up the value of each row's leaf over the trees, in single precision and in the order of the trees.

    Pre:  block float64 (n, n_features), C order; nodes CONDITION (n_nodes,); root int32 (n_trees,); value float32
          (n_nodes,).
    Post: out float32 (n,), added to.
    """
    for start in range(0, block.shape[0], BLOCK):
        stop = min(start + BLOCK, block.shape[0])
        for tree in range(root.shape[0]):
            for i in range(start, stop):
                node = np.int64(root[tree])
                while nodes[node]["kind"] != LEAF:
                    condition = nodes[node]
                    x = block[i, condition["feature"]]
                    node = next_node(condition, x, category_bits)
                out[i] += value[node]


@kernel
def add_covers(block, weight, nodes, category_bits, root, cover):
    """Add the weight of each row to the nodes that it passes.

    Pre:  as in `sum_trees`; weight float64 (n,).
    Post: cover float64 (n_nodes,), added to.
    """
    for tree in range(root.shape[0]):
        for i in range(block.shape[0]):
            node = np.int64(root[tree])
            cover[node] += weight[i]
            while nodes[node]["kind"] != LEAF:
                condition = nodes[node]
                x = block[i, condition["feature"]]
                node = next_node(condition, x, category_bits)
                cover[node] += weight[i]


@kernel
def shapley_values(block, nodes, category_bits, leaf, path_at, path, value, cover, at, share_at, out):
    """Share the score of each row among its features: Shapley values of the trees, by the path of every leaf.

    A feature that is left out of a coalition sends a row down both sides, in proportion to their cover. A leaf then
    contributes its value times a product over the features of its path: 0 or 1 for those of the coalition (does the
    row's value lead there?), and the share of the cover for the others. Let every feature join the coalition at a
    random time between 0 and 1. If feature k joins at time x, the mean product of the others is a polynomial in x, as
    each of them has joined with probability x; the Shapley value takes its integral, which quadrature gives exactly.

    Pre:  leaf int32 (n_leaves,): nodes; path[path_at[i]:path_at[i + 1]] the nodes from a root to leaf i, both
          included; cover float64 (n_nodes,), that of children adds up to more than 0; at, share_at float64
          (m + 1, m): row i holds Gauss-Legendre points on [0, 1], and their weights, that are exact for degree
          2 i - 1; m at least half of the features on the longest path.
    Post: out float64 (n, n_features), added to.
    Cost: n * n_leaves * d^2, where d is the number of features on a path.
    """
    most = 2 * at.shape[1]
    feature = np.empty(most, np.int64)
    kept = np.empty(most)
    leads = np.empty(most)
    factor = np.empty(most)
    before = np.empty(most)
    mean = np.empty(most)
    for which in range(leaf.shape[0]):
        for i in range(block.shape[0]):
            n = 0
            for step in range(path_at[which], path_at[which + 1] - 1):
                node, child = path[step], path[step + 1]
                condition = nodes[node]
                x = block[i, condition["feature"]]
                is_taken = next_node(condition, x, category_bits) == child
                share = cover[child] / (cover[condition["left"]] + cover[condition["right"]])
                k = 0
                while k < n and feature[k] != condition["feature"]:
                    k += 1
                if k == n:
                    feature[n] = condition["feature"]
                    kept[n] = 1.0
                    leads[n] = 1.0
                    mean[n] = 0.0
                    n += 1
                kept[k] *= share
                leads[k] *= is_taken
            n_points = (n + 1) // 2
            for point in range(n_points):  # products of the others: of those before, times those after
                product = 1.0
                for k in range(n):
                    factor[k] = kept[k] + (leads[k] - kept[k]) * at[n_points, point]
                    before[k] = product
                    product *= factor[k]
                product = share_at[n_points, point]
                for k in range(n - 1, -1, -1):
                    mean[k] += before[k] * product
                    product *= factor[k]
            for k in range(n):
                out[i, feature[k]] += value[leaf[which]] * (leads[k] - kept[k]) * mean[k]
