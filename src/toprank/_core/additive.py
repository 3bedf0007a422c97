"""Sums over many trees: scores, weights of nodes, and the exact share of each feature in a score."""

import numpy as np

from toprank._core.dtypes import LEAF, NUMERIC
from toprank._core.jit import kernel
from toprank._core.traverse import category_side, child_of, number_side

BLOCK = 64
"""Rows that pass through one tree after the other: they and the tree stay in the L1 cache."""


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
def shapley_values(block, nodes, category_bits, leaf, path_at, path, value, cover, most, out):
    """Share the score of each row among its features: Shapley values of the trees, by the path of every leaf.

    A feature that is left out of a coalition sends a row down both sides, in proportion to their cover. A leaf then
    contributes its value times the product, over the features of its path, of 0 or 1 for those of the coalition (does
    the row's value lead there?) and of the share of the cover for the others; the Shapley value of such a product is a
    sum over the sizes of coalitions.

    Pre:  leaf int32 (n_leaves,): nodes; path[path_at[i]:path_at[i + 1]] the nodes from a root to leaf i, both
          included; cover float64 (n_nodes,), that of children adds up to more than 0; most int: features on the
          longest path.
    Post: out float64 (n, n_features), added to.
    Cost: n * n_leaves * d^3, where d is the number of features on a path.
    """
    feature = np.empty(most, np.int64)
    kept = np.empty(most)
    leads = np.empty(most)
    ways = np.empty(most + 1)
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
                    n += 1
                kept[k] *= share
                leads[k] *= is_taken
            for k in range(n):
                out[i, feature[k]] += value[leaf[which]] * (leads[k] - kept[k]) * _coalitions(leads, kept, k, n, ways)


@kernel
def _coalitions(leads, kept, k, n, ways):
    """Mean over the orders of n features of the product of those before and after feature k."""
    ways[0] = 1.0
    degree = 0
    for j in range(n):  # ways[s]: sum over the coalitions of s other features
        if j != k:
            ways[degree + 1] = 0.0
            for s in range(degree, -1, -1):
                ways[s + 1] += ways[s] * leads[j]
                ways[s] *= kept[j]
            degree += 1
    total = 0.0
    weight = 1.0 / n  # s! (n - 1 - s)! / n!
    for s in range(n):
        total += ways[s] * weight
        weight *= (s + 1.0) / (n - 1.0 - s) if s < n - 1 else 0.0
    return total
