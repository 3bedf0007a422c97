"""Trees of XGBoost as `AdditiveTrees`: read from its JSON, with the same scores to the last bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from toprank._core.dtypes import CATEGORY, LEAF, NODE, NUMERIC
from toprank.errors import InputError
from toprank.tree.additive import MAX_NODES, AdditiveTrees


def trees_from_json(raw: bytes, n_features: int) -> AdditiveTrees:
    """The trees of a booster that XGBoost wrote as JSON; checked. XGBoost itself is not needed.

    XGBoost rounds values to single precision and sends those below a threshold left. The threshold here is the largest
    number in double precision that does the same, for `value <= threshold`. Its categories go right if they are in the
    set of a node; here the others are listed, which go left.

    Raises InputError, KeyError, TypeError or another error of a damaged file if the text is not such a booster.
    """
    model = json.loads(raw.decode("utf-8"))["learner"]
    if float(model["learner_model_param"]["base_score"].strip("[]")) != 0.0:
        raise InputError("The booster has a base score, expected 0.")
    trees = model["gradient_booster"]["model"]["trees"]
    if not isinstance(trees, list) or not trees:
        raise InputError("The booster has no trees.")
    parts = [_tree_arrays(tree) for tree in trees]
    n_nodes = sum(len(part["kind"]) for part in parts)
    if n_nodes > MAX_NODES:
        raise InputError(f"The booster has {n_nodes:,} nodes, more than {MAX_NODES:,}.")
    return AdditiveTrees.from_parts(parts, n_features)


def _tree_arrays(tree: dict[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of one tree, nodes numbered from 0."""
    n = len(tree["left_children"])
    left, right = (_integers(tree[name], n) for name in ("left_children", "right_children"))
    number = np.array(tree["split_conditions"], np.float32)
    gain, cover = np.array(tree["loss_changes"], np.float64), np.array(tree["sum_hessian"], np.float64)
    of_category = _integers(tree["split_type"], n) == 1
    is_leaf = left == -1
    kind = np.where(is_leaf, LEAF, np.where(of_category, CATEGORY, NUMERIC))
    bits, category_at = _category_sets(tree, n)
    order = _parents_first(left, right)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    return {
        "kind": kind[order],
        "feature": np.where(is_leaf, 0, _integers(tree["split_indices"], n))[order],
        "threshold": np.where(kind == NUMERIC, largest_below(number), 0.0)[order],
        "left": np.where(is_leaf, -1, place[left])[order],
        "right": np.where(is_leaf, -1, place[right])[order],
        "missing_left": _integers(tree["default_left"], n)[order],
        "category_at": np.where(kind == CATEGORY, category_at, -1)[order],
        "category_bits": bits,
        "value": np.where(is_leaf, number, 0.0)[order],
        "cover": np.maximum(cover, 1e-300)[order],
        "gain": np.where(is_leaf, 0.0, gain)[order],
    }


def largest_below(threshold: np.ndarray) -> np.ndarray:
    """The largest float64 that rounds to a float32 below each threshold: float64 of the same shape.

    Examples
    --------
    >>> at = largest_below(np.array([1.5], np.float32))
    >>> np.float32(at) < np.float32(1.5), np.float32(np.nextafter(at, 2)) < np.float32(1.5)
    (array([ True]), array([False]))
    """
    threshold = np.asarray(threshold, np.float32)
    below = np.nextafter(threshold, np.float32(-np.inf))
    with np.errstate(invalid="ignore", over="ignore"):
        middle = (below.astype(np.float64) + threshold.astype(np.float64)) / 2
        rounds_down = middle.astype(np.float32) < threshold  # halfway goes to the even one of the two
    return np.where(rounds_down, middle, np.nextafter(middle, -np.inf))


def _integers(values: Any, n: int) -> np.ndarray:
    """A list of n whole numbers as an array; raise InputError if it is something else."""
    array = np.array(values)
    if array.shape != (n,) or array.dtype.kind not in "iub":
        raise InputError("The booster has a tree whose arrays have different lengths or types.")
    if n and (array.min() < -1 or array.max() > MAX_NODES):
        raise InputError("The booster has a tree with positions out of range.")
    return array.astype(np.int64)


def _parents_first(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Nodes of a tree, level by level; raise InputError if they are not one tree."""
    n = len(left)
    order, level = [], [0]
    while level:
        order += level
        if len(order) > n:
            raise InputError("The booster has a tree that leads back to itself.")
        level = [child for node in level if left[node] >= 0 for child in (int(left[node]), int(right[node]))]
        if level and not (min(level) > 0 and max(level) < n):
            raise InputError("The booster has a tree with positions out of range.")
    if sorted(order) != list(range(n)):
        raise InputError("The booster has a tree with nodes that cannot be reached.")
    return np.array(order, np.int64)


def _category_sets(tree: dict[str, Any], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sets of the categories that go left, uint64 (n_sets, 4), and the set of each node, -1 without one."""
    at = np.full(n, -1, NODE)
    nodes, sizes = tree["categories_nodes"], tree["categories_sizes"]
    bits = np.zeros((len(nodes), 256), np.uint8)
    categories, start = np.array(tree["categories"], np.int64), 0
    for i, (node, size) in enumerate(zip(nodes, sizes, strict=True)):
        right = categories[start : start + size]
        if not 0 <= node < n or len(right) != size or np.any((right < 0) | (right > 255)):
            raise InputError("The booster has a set of categories that is out of range.")
        bits[i] = 1
        bits[i, right] = 0
        at[node] = i
        start += size
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint64).reshape(-1, 4)
    return packed, at
