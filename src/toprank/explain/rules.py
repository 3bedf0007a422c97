"""The table of leaves: one rule in words for each, with what it caught in training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from toprank.explain.contributions import node_log_odds, ranked_conditions
from toprank.explain.paths import PathCounts, ways_up
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.tree.wording import SHORT, Detail, percent_text

PATHS_SHOWN = 3
"""Ways into a leaf that are written out in short; the rest is counted."""

WAYS_TRIED = 200
"""Paths looked at for a leaf that no counted row reached, in search of one without contradiction."""


def leaf_table(tree: Tree, rates: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Figures of each leaf position, best first; leaf nodes that share a position are taken together.

    Parameters
    ----------
    tree : Tree
    rates : float array of shape (n_leaves, 3), optional
        Hit rate of new cases in each leaf, and both ends of its interval.

    Returns
    -------
    dict of arrays of shape (n_leaves,)
        leaf (1 = top); where rates are given, hit_rate, hit_rate_low and hit_rate_high; lift (that rate, or else the
        training rate, over the share of positives in training); n, positives and training_rate: what the leaf had in
        training; score (upper end of the leaf's range).
    """
    ends = np.flatnonzero(tree.is_leaf)
    position = tree.leaf[ends]
    n_leaves = tree.n_leaves
    positives = np.bincount(position, tree.positive[ends], n_leaves)
    n = positives + np.bincount(position, tree.negative[ends], n_leaves)
    training_rate = np.divide(positives, n, out=np.full(n_leaves, np.nan), where=n > 0)
    expected = {} if rates is None else dict(zip(("hit_rate", "hit_rate_low", "hit_rate_high"), rates.T, strict=True))
    base = tree.positive[0] / max(tree.positive[0] + tree.negative[0], np.finfo(float).tiny)
    first = np.unique(position, return_index=True)[1]
    return {
        "leaf": np.arange(1, n_leaves + 1),
        **expected,
        "lift": expected.get("hit_rate", training_rate) / base if base > 0 else np.full(n_leaves, np.nan),
        "n": n,
        "positives": positives,
        "training_rate": training_rate,
        "score": tree.score[ends][first],
    }


def leaf_rules(
    tree: Tree,
    columns: Sequence[Column],
    paths: PathCounts,
    rates: np.ndarray | None = None,
    detail: Detail = SHORT,
) -> dict[str, Any]:
    """One row per leaf position, best first: the rule in words and how many of its cases are hits.

    Parameters
    ----------
    tree : Tree
    columns : sequence of Column, one a feature of the tree
    paths : PathCounts
        The commonest ways into each leaf, of `count_paths`. A leaf none of its rows reached is described by a
        path read off the tree.
    rates : float array of shape (n_leaves, 3), optional
        Hit rates of new cases, as in `leaf_table`.
    detail : Detail
        In exact words nothing is left out of the conditions, and all ways that `paths` knows are written out, in short
        three of them.

    Returns
    -------
    dict of columns of n_leaves entries
        leaf, rule (list of str), then the other columns of `leaf_table`.
    """
    figures = leaf_table(tree, rates)
    log_odds = node_log_odds(tree)
    rules = [_rule(tree, columns, paths, leaf, log_odds, detail) for leaf in range(tree.n_leaves)]
    return {"leaf": figures.pop("leaf"), "rule": rules} | figures


def _rule(
    tree: Tree, columns: Sequence[Column], paths: PathCounts, leaf: int, log_odds: np.ndarray, detail: Detail
) -> str:
    """Say the ways into one leaf in words; ways that read the same are one."""
    ways: dict[tuple[str, ...], tuple[float, int]] = {}
    for nodes, share in paths.into(leaf):
        conditions = ranked_conditions(tree, columns, nodes, log_odds, detail)
        way = tuple(condition.text(detail=detail) for condition, _ in conditions)
        covered, n_paths = ways.get(way, (0.0, 0))
        ways[way] = covered + share, n_paths + 1
    if not ways:
        return join_conditions(_possible_way(tree, columns, leaf, log_odds, detail))
    best = sorted(ways.items(), key=lambda item: -item[1][0])[: None if detail.is_exact else PATHS_SHOWN]
    n_others = int(paths.n_paths[leaf]) - sum(n_paths for _, (_, n_paths) in best)
    texts = [join_conditions(way) for way, _ in best]
    several = len(texts) > 1 or n_others > 0
    rule = " or ".join(
        f"({text})" if several and len(way) > 1 else text for text, (way, _) in zip(texts, best, strict=True)
    )
    if n_others <= 0:
        return rule
    shown = percent_text(np.floor(1000 * sum(share for _, (share, _) in best) + 1e-9) / 1000)
    return f"{rule} or {n_others:,} other way{'s' if n_others > 1 else ''} (those shown cover {shown})"


def join_conditions(way: Sequence[str]) -> str:
    """Conditions joined by "and", those that hold an "or" or an "and" of their own in brackets.

    Examples
    --------
    >>> join_conditions(["age <= 3 or missing", "sector is retail"]), join_conditions([])
    ('(age <= 3 or missing) and sector is retail', 'all cases')
    """
    if len(way) < 2:
        return way[0] if way else "all cases"
    return " and ".join(f"({text})" if " or " in text or " and not " in text else text for text in way)


def _possible_way(tree: Tree, columns: Sequence[Column], leaf: int, log_odds: np.ndarray, detail: Detail) -> list[str]:
    """Conditions of the first path into a leaf that some row can take, or of the first at all."""
    paths = islice(ways_up(tree, leaf), WAYS_TRIED)
    found = [ranked_conditions(tree, columns, path, log_odds, detail) for path in paths]
    possible = (way for way in found if all(condition.is_possible for condition, _ in way))
    return [condition.text(detail=detail) for condition, _ in next(possible, found[0])]
