"""Cost-complexity pruning of meta-trees on average precision.

Training AP with constant leaves is a sum over leaves: leaf i adds (p_i / P) * (cumulated positives / cumulated cases).
What a subtree adds depends only on what stands to its left, and merging other subtrees does not change that. So
weakest-link pruning (Breiman et al., 1984) is exact for the AP of the meta-tree's own order of leaves, and its sequence
is nested. Where leaves are sorted by rate afterwards, the sequence is the same and its AP a close guide.
"""

from __future__ import annotations

import numpy as np

from toprank.tree.meta import MetaTree


def collapse_penalties(meta: MetaTree) -> np.ndarray:
    """Penalty per leaf at which each meta-node becomes a leaf: infinity at leaves, non-decreasing towards the root.

    The pruned tree for a penalty alpha turns every meta-node with a value <= alpha into a leaf; it maximises
    AP - alpha * (number of leaves) over all prunings.
    """
    n = len(meta.left)
    whole = _contribution_as_leaf(meta)
    penalty = np.full(n, np.inf)
    collapsed = meta.is_leaf.copy()
    while not collapsed[0]:
        value, leaves = _subtree_sums(meta, whole, collapsed)
        open_nodes = np.flatnonzero(~collapsed & _is_open(meta, collapsed))
        link = (value[open_nodes] - whole[open_nodes]) / (leaves[open_nodes] - 1)
        weakest = open_nodes[link <= link.min()]
        floor = penalty[np.isfinite(penalty)].max(initial=-np.inf)
        penalty[weakest] = max(float(link.min()), floor)
        collapsed[weakest] = True
    for node in range(n):  # what stands below a collapsed node goes with it
        if not meta.is_leaf[node]:
            for child in (meta.left[node], meta.right[node]):
                if not meta.is_leaf[child]:
                    penalty[child] = min(penalty[child], penalty[node])
    return penalty


def prune(meta: MetaTree, penalty: np.ndarray, alpha: float) -> MetaTree:
    """The meta-tree with every node of penalty <= alpha turned into a leaf; with alpha = 0 the meta-tree as it is."""
    if alpha <= 0:
        return meta
    return meta.collapsed(np.flatnonzero(penalty <= alpha))


def _is_open(meta: MetaTree, collapsed: np.ndarray) -> np.ndarray:
    """Nodes that no collapsed node hides."""
    is_open = np.ones(len(meta.left), bool)
    for node in range(len(meta.left)):
        if not meta.is_leaf[node] and (collapsed[node] or not is_open[node]):
            is_open[meta.left[node]] = is_open[meta.right[node]] = False
    return is_open


def _contribution_as_leaf(meta: MetaTree) -> np.ndarray:
    """What each meta-node would add to AP as a leaf."""
    before_positive, before_total = np.zeros(len(meta.left)), np.zeros(len(meta.left))
    for node in range(len(meta.left)):  # parents first
        if not meta.is_leaf[node]:
            left, right = meta.left[node], meta.right[node]
            before_positive[left], before_total[left] = before_positive[node], before_total[node]
            before_positive[right] = before_positive[node] + meta.positive[left]
            before_total[right] = before_total[node] + meta.total[left]
    precision = (before_positive + meta.positive) / (before_total + meta.total)
    return meta.positive / meta.positive[0] * precision


def _subtree_sums(meta: MetaTree, whole: np.ndarray, collapsed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AP contribution and number of leaves of each subtree, collapsed nodes counting as leaves."""
    value, leaves = whole.copy(), np.ones(len(whole))
    for node in range(len(whole) - 1, -1, -1):  # children first
        if not collapsed[node]:
            left, right = meta.left[node], meta.right[node]
            value[node] = value[left] + value[right]
            leaves[node] = leaves[left] + leaves[right]
    return value, leaves
