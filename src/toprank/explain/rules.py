"""The table of leaves: one rule in words for each, with its hit rate and what it caught in training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.explain.conditions import Condition, merge_path
from toprank.explain.contributions import node_log_odds, ranked_conditions
from toprank.explain.covers import MAX_CONDITIONS, Cover, Covers
from toprank.explain.paths import PathCounts, ways_up
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.numbers import percent_text
from toprank.words.wording import SHORT, Detail

PATHS_SHOWN = 3
"""Ways into a leaf that are written out in short; the rest is counted."""

WAYS_TRIED = 200
"""Paths looked at for a leaf that no counted row reached, in search of one without contradiction."""

NODES_TRIED = 5_000
"""Nodes on these paths, after which the search ends: nodes may have several parents, and paths are then many."""


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
    covers: Covers | None = None,
    max_rules: int | None = None,
    max_conditions: int | None = MAX_CONDITIONS,
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
        In exact words nothing is left out of the conditions, and all ways that `paths` knows are written out.
    covers : Covers or None
        Short rules of the best leaves, which short words take; without, they take three ways of `paths`.
    max_rules : int or None
        Rows from the top; None for all.
    max_conditions : int or None
        Conditions of one way in short words; None, or more than 4, for paths as they are where there is one only.

    Returns
    -------
    dict of columns of n_leaves entries, or max_rules
        leaf, rule (list of str), coverage (share of the leaf's training cases that the rule as it is written selects)
        and precision (share of what it selects that belongs to the leaf), then the other columns of `leaf_table`.
    """
    figures = leaf_table(tree, rates)
    log_odds = node_log_odds(tree)
    n_rules = tree.n_leaves if max_rules is None else min(max_rules, tree.n_leaves)
    covers = None if detail.is_exact else covers
    rules: list[tuple[str, float, float]] = []
    for leaf in range(n_rules):
        cover = None if covers is None else short_rule(tree, columns, covers, paths, leaf, max_conditions)
        if cover is None:
            rules.append(_rule(tree, columns, paths, leaf, log_odds, detail))
        else:
            rules.append((cover_text(cover, is_last=leaf == tree.n_leaves - 1 > 0), cover.coverage, cover.precision))
    words = {
        "rule": [rule for rule, _, _ in rules],
        "coverage": np.array([coverage for _, coverage, _ in rules]),
        "precision": np.array([precision for _, _, precision in rules]),
    }
    return {"leaf": figures.pop("leaf")[:n_rules]} | words | {name: of[:n_rules] for name, of in figures.items()}


def short_rule(
    tree: Tree, columns: Sequence[Column], covers: Covers, paths: PathCounts, leaf: int, max_conditions: int | None
) -> Cover | None:
    """The cover of a leaf; None where it says nothing, or where more conditions are allowed and its path is better."""
    cover = covers.of(tree, columns, leaf, MAX_CONDITIONS if max_conditions is None else max_conditions)
    if cover is not None and cover.ways == ((),) and tree.n_leaves > 1 and not covers.is_rest(tree, leaf):
        return None  # no training row reached the leaf, or no condition tells its rows apart
    longer = max_conditions is None or max_conditions > MAX_CONDITIONS
    if cover is None or cover.is_exact or not longer or int(paths.n_paths[leaf]) != 1:
        return cover
    nodes, _ = next(paths.into(leaf))
    n_conditions = sum(not condition.is_open for condition in merge_path(tree, columns, nodes))
    return None if max_conditions is None or n_conditions <= max_conditions else cover


def cover_text(cover: Cover, *, is_last: bool = False) -> str:
    """Words for a cover; one without conditions is of the last leaf all cases that no better leaf has."""
    ways = [[condition.text() for condition in way] for way in cover.ways]
    if ways == [[]]:
        return "all other cases" if is_last else "all cases"
    texts = [join_conditions(way) for way in ways]
    return texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)


def _rule(
    tree: Tree, columns: Sequence[Column], paths: PathCounts, leaf: int, log_odds: np.ndarray, detail: Detail
) -> tuple[str, float, float]:
    """Say the ways into one leaf in words, with coverage and precision; ways that read the same are one."""
    ways: dict[tuple[str, ...], tuple[float, int]] = {}
    for nodes, share in paths.into(leaf):
        conditions = ranked_conditions(tree, columns, nodes, log_odds, detail)
        way = tuple(condition.text(detail=detail) for condition, _ in conditions)
        covered, n_paths = ways.get(way, (0.0, 0))
        ways[way] = covered + share, n_paths + 1
    if not ways:
        is_only = len(list(islice(ways_up(tree, leaf), 2))) == 1
        return join_conditions(_possible_way(tree, columns, leaf, log_odds, detail)), 1.0 if is_only else np.nan, 1.0
    best = sorted(ways.items(), key=lambda item: -item[1][0])[: None if detail.is_exact else PATHS_SHOWN]
    n_others = int(paths.n_paths[leaf]) - sum(n_paths for _, (_, n_paths) in best)
    texts = [join_conditions(way) for way, _ in best]
    several = len(texts) > 1 or n_others > 0
    rule = " or ".join(
        f"({text})" if several and len(way) > 1 else text for text, (way, _) in zip(texts, best, strict=True)
    )
    if n_others <= 0:
        return rule, 1.0, 1.0
    covered = sum(share for _, (share, _) in best)
    shown = percent_text(np.floor(1000 * covered + 1e-9) / 1000)
    words = f"{rule} or {n_others:,} other way{'s' if n_others > 1 else ''} (those shown cover {shown})"
    return words, covered, 1.0


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
    first: list[tuple[Condition, float]] = []
    n_nodes = 0
    for path in islice(ways_up(tree, leaf), WAYS_TRIED):
        way = ranked_conditions(tree, columns, path, log_odds, detail)
        first = first or way
        n_nodes += len(path)
        if all(condition.is_possible for condition, _ in way):
            first = way
            break
        if n_nodes > NODES_TRIED:
            break
    return [condition.text(detail=detail) for condition, _ in first]


def checked_leaf_rates(values: np.ndarray | None, tree: Tree) -> np.ndarray | None:
    """Hit rates of leaves from a file; raise ValueError where they are not those of the tree."""
    if values is None:
        return None
    is_whole = values.shape == (tree.n_leaves, 3) and values.dtype == np.float64
    if not is_whole or not np.all((values >= 0) & (values <= 1)):
        raise InputError("The model's leaves and their hit rates do not fit together.")
    return values
