"""Rows down the tree: leaves and paths."""

import numpy as np

from toprank._core.dtypes import CATEGORY, LEAF, NUMERIC
from toprank._core.jit import kernel


@kernel
def goes_left(block, i, node, kind, feature, threshold, missing_left, category_at, category_bits, oblique_at,
              oblique_feature, oblique_weight):  # fmt: skip
    """Tell whether row i of block satisfies a node's condition; `value <= threshold` goes left, everywhere.

    A missing value, or a category the tree does not know, takes the node's missing direction; so does a row with
    a missing value in an oblique condition.
    """
    if kind[node] == NUMERIC:
        value = block[i, feature[node]]
        return (value <= threshold[node]) | (np.isnan(value) & (missing_left[node] != 0))
    if kind[node] == CATEGORY:
        value = block[i, feature[node]]
        if not 0 <= value < 256:
            return missing_left[node] != 0
        code = int(value)
        return (category_bits[category_at[node], code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == 1
    projection = 0.0
    for k in range(oblique_at[node], oblique_at[node + 1]):
        projection += oblique_weight[k] * block[i, oblique_feature[k]]
    if np.isnan(projection):
        return missing_left[node] != 0
    return projection <= threshold[node]


@kernel
def find_leaves(block, kind, feature, threshold, left, right, missing_left, category_at, category_bits, oblique_at,
                oblique_feature, oblique_weight, out):  # fmt: skip
    """Write the leaf that each row reaches.

    Pre:  block float64 (n, n_features), C order; out int32 (n,).
    Cost: one condition a level.
    """
    for i in range(block.shape[0]):
        node = 0
        while kind[node] != LEAF:
            if goes_left(block, i, node, kind, feature, threshold, missing_left, category_at, category_bits,
                         oblique_at, oblique_feature, oblique_weight):  # fmt: skip
                node = left[node]
            else:
                node = right[node]
        out[i] = node


@kernel
def find_paths(block, kind, feature, threshold, left, right, missing_left, category_at, category_bits, oblique_at,
               oblique_feature, oblique_weight, length, out):  # fmt: skip
    """Write each row's nodes from the root to its leaf, and how many they are.

    Pre:  out int32 (n, longest path); length int32 (n,).
    """
    for i in range(block.shape[0]):
        node = 0
        n = 0
        while kind[node] != LEAF:
            out[i, n] = node
            n += 1
            if goes_left(block, i, node, kind, feature, threshold, missing_left, category_at, category_bits,
                         oblique_at, oblique_feature, oblique_weight):  # fmt: skip
                node = left[node]
            else:
                node = right[node]
        out[i, n] = node
        length[i] = n + 1


@kernel
def find_margins(block, kind, feature, threshold, left, right, missing_left, category_at, category_bits, oblique_at,
                 oblique_feature, oblique_weight, scale, leaf, margin):  # fmt: skip
    """Write the leaf that each row reaches and its distance to the nearest threshold on the way.

    Pre:  scale float64 (n_features,): a distance in feature f is divided by scale[f]. Conditions on categories and
          missing values have no distance.
    Post: leaf int32 (n,), margin float64 (n,), 0 where no threshold was met.
    """
    for i in range(block.shape[0]):
        node = 0
        nearest = np.inf
        while kind[node] != LEAF:
            if kind[node] == NUMERIC:
                distance = abs(block[i, feature[node]] - threshold[node]) / scale[feature[node]]
                if distance < nearest:  # False for a missing value
                    nearest = distance
            if goes_left(block, i, node, kind, feature, threshold, missing_left, category_at, category_bits,
                         oblique_at, oblique_feature, oblique_weight):  # fmt: skip
                node = left[node]
            else:
                node = right[node]
        leaf[i] = node
        margin[i] = nearest if nearest < np.inf else 0.0


@kernel
def confusion_scores(block, kind, feature, threshold, left, right, missing_left, category_at, category_bits,
                     oblique_at, oblique_feature, oblique_weight, rate, confusion, out):  # fmt: skip
    """Write each row's mean leaf rate, a leaf weighing confusion ** (conditions the row breaks on the way to it).

    Pre:  every node has one parent (a tree, not a meta-tree).
    Cost: all nodes a row.
    """
    n_nodes = kind.shape[0]
    votes = np.empty(n_nodes)
    weight = np.empty(n_nodes)
    for i in range(block.shape[0]):
        for node in range(n_nodes - 1, -1, -1):
            if kind[node] == LEAF:
                votes[node] = rate[node]
                weight[node] = 1.0
                continue
            kept = left[node]
            broken = right[node]
            if not goes_left(block, i, node, kind, feature, threshold, missing_left, category_at, category_bits,
                             oblique_at, oblique_feature, oblique_weight):  # fmt: skip
                kept, broken = broken, kept
            votes[node] = votes[kept] + confusion * votes[broken]
            weight[node] = weight[kept] + confusion * weight[broken]
        out[i] = votes[0] / weight[0]


@kernel
def scorecard_points(block, center, weight, missing, points_at, points, out):
    """Write the points of each row: a fixed order of additions, so a row scores the same in any batch.

    Pre:  points_at int32 (n_features + 1,): feature f is a category where points_at[f] < points_at[f + 1].
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
                total += weight[f] * (value - center[f])
        out[i] = total
