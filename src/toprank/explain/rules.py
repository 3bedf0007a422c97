"""`Rule`: a leaf as data: its ways, which are lists of conditions, its hit rate and its training figures.

Texts, tables and JSON are made from rules; nothing is read back from a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

import numpy as np

from toprank.errors import InputError
from toprank.explain.conditions import Way, path_conditions
from toprank.explain.contributions import node_log_odds, ranked_conditions
from toprank.explain.covers import MAX_CONDITIONS, Covers
from toprank.explain.paths import PathCounts, ways_up
from toprank.tree.columns import Column
from toprank.tree.structure import Tree
from toprank.words.counts import plural
from toprank.words.numbers import percent_text
from toprank.words.plain import plain
from toprank.words.wording import EXACT, SHORT, Detail

PATHS_SHOWN = 3
"""Most ways into a leaf that a short text lists; the rest is counted."""

WAYS_TRIED = 200
"""Most paths to search for one without contradiction, for a leaf that no counted row reached."""

NODES_TRIED = 5_000
"""Most nodes on these paths: nodes with several parents can give very many paths."""

NOT_IN_TABLE = {"in_table": False}
"""Marks fields of a rule that its table leaves out."""


@dataclass(frozen=True, kw_only=True)
class LeafRule:
    """A leaf as data: the ways into it; subclasses add its figures.

    Leaves count from 1: by place in the ranking of a ranker, from left to right in a classifier. A row is selected
    where all conditions of one way hold.
    """

    leaf: int
    ways: tuple[Way, ...]

    def way_texts(self, detail: Detail = SHORT) -> list[str]:
        """Return each way in words."""
        return [way.text(detail) for way in self.ways]

    def text(self, detail: Detail = SHORT) -> str:
        """Return all ways in one line, joined by "or"."""
        return " or ".join(self.way_texts(detail))

    def __str__(self) -> str:
        return f"leaf {self.leaf}: {self.text()}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: the figures, `rule` in words, and `ways` as lists of conditions.

        Non-finite numbers become None; unknown figures are left out.
        """
        out: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "ways":
                out["rule"] = self.text()
                out["ways"] = [[condition.to_dict() for condition in way.conditions] for way in self.ways]
            elif value is not None:
                out[each.metadata.get("name", each.name)] = plain(value)
        return out


@dataclass(frozen=True, kw_only=True)
class Rule(LeafRule):
    """A leaf of a ranker as data: the ways into it, its hit rate, and its training figures.

    Attributes
    ----------
    leaf : int
        Place in the ranking, 1 = top.
    ways : tuple of Way
        A row is selected where all conditions of one way hold.
    n_other_ways : int
        Further ways into the leaf that are not listed.
    is_short : bool
        True if the ways were found on training cases; False if they are paths of the tree.
    is_rest : bool
        True if the rule means "all other cases"; it then has one way without conditions.
    coverage : float
        Share of the leaf's training cases that `ways` select.
    precision : float
        Share of the training cases selected by `ways` that belong to the leaf.
    hit_rate, hit_rate_low, hit_rate_high : float or None
        Hit rate to expect of new cases and its interval; None if unknown.
    lift : float
        That rate, or else the training rate, over the share of positives in training.
    n, positives, training_rate : float
        Training figures of the leaf.
    score : float
        Upper end of the leaf's range of scores.
    tree : int or None
        In an ensemble: the tree, 1 = the first.
    """

    n_other_ways: int = field(default=0, metadata=NOT_IN_TABLE)
    is_short: bool = field(default=False, metadata=NOT_IN_TABLE)
    is_rest: bool = field(default=False, metadata=NOT_IN_TABLE)
    coverage: float
    precision: float
    hit_rate: float | None = None
    hit_rate_low: float | None = None
    hit_rate_high: float | None = None
    lift: float
    n: float
    positives: float
    training_rate: float
    score: float
    tree: int | None = None

    def way_texts(self, detail: Detail = SHORT) -> list[str]:
        """Return each way in words, and a count of those that are not listed."""
        if self.is_rest:
            return ["all other cases"]
        texts = super().way_texts(detail)
        if self.n_other_ways:
            shown = percent_text(np.floor(1000 * self.coverage + 1e-9) / 1000)
            texts.append(f"{plural(self.n_other_ways, 'other way')} (those shown cover {shown})")
        return texts

    def text(self, detail: Detail = SHORT) -> str:
        """Return all ways in one line, joined by "or", in brackets if there are several."""
        texts = self.way_texts(detail)
        for i, way in enumerate(self.ways if len(texts) > 1 else ()):
            texts[i] = f"({texts[i]})" if self.is_short or len(way) > 1 else texts[i]
        return " or ".join(texts)


@dataclass(frozen=True, kw_only=True)
class ClassRule(LeafRule):
    """A leaf of a classifier as data; it has one way.

    Attributes
    ----------
    label : str, number or bool
        The class of the leaf; `class` in tables and JSON.
    n, of_class : float
        Training cases of the leaf, and those of its class among them.
    share, share_low, share_high : float
        of_class / n, and its interval.
    coverage : float
        of_class over all training cases of the class.
    """

    label: Any = field(metadata={"name": "class"})
    n: float
    of_class: float
    share: float
    share_low: float
    share_high: float
    coverage: float


def rule_table(rules: Sequence[LeafRule], *, exact: bool = False) -> dict[str, Any]:
    """Return the columns of a table of rules: tree (ensembles only), leaf, rule (in words), then the known figures."""
    out: dict[str, Any] = {} if getattr(rules[0], "tree", None) is None else {"tree": []}
    for each in fields(rules[0]):
        values = [getattr(rule, each.name) for rule in rules]
        if each.name == "ways":
            out["rule"] = [rule.text(EXACT if exact else SHORT) for rule in rules]
        elif each.name == "label":
            out["class"] = values
        elif values[0] is not None and each.metadata.get("in_table", True):
            out[each.name] = np.array(values)
    return out


def leaf_table(tree: Tree, rates: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the figures of each leaf position, best first; leaf nodes that share a position are combined.

    Columns are leaf (1 = top); with rates (n_leaves, 3), hit_rate, hit_rate_low and hit_rate_high of new cases; lift
    (that rate, or else the training rate, over the share of positives in training); n, positives and training_rate,
    from training; score (upper end of the leaf's range).
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
    *,
    covers: Covers | None = None,
    exact: bool = False,
    max_rules: int | None = None,
    max_conditions: int | None = MAX_CONDITIONS,
) -> list[Rule]:
    """Return one rule per leaf position, best first.

    Rules are the covers of the best leaves, if given, else the three main ways of `paths`; a leaf that no counted row
    reached is described by a path from the tree. `rates` are as in `leaf_table`. `exact` uses all ways in `paths`, and
    no covers. `max_conditions` limits the conditions per way of a short rule; with None, or more than 4, a leaf with a
    single path shows that path.
    """
    figures, log_odds = leaf_table(tree, rates), node_log_odds(tree)
    rules = []
    for leaf in range(tree.n_leaves if max_rules is None else min(max_rules, tree.n_leaves)):
        ways = None
        if covers is not None and not exact:
            ways = _short_ways(tree, columns, covers, paths, leaf, max_conditions)
        ways = ways or _ways(tree, columns, paths, leaf, log_odds, EXACT if exact else SHORT)
        ways |= {name: float(values[leaf]) for name, values in figures.items() if name != "leaf"}
        rules.append(Rule(leaf=leaf + 1, **ways))
    return rules


def _short_ways(
    tree: Tree, columns: Sequence[Column], covers: Covers, paths: PathCounts, leaf: int, max_conditions: int | None
) -> dict[str, Any] | None:
    """Return the cover of a leaf; None if it says nothing, or if more conditions are allowed and its path is better."""
    cover = covers.of(tree, columns, leaf, MAX_CONDITIONS if max_conditions is None else max_conditions)
    if cover is None:
        return None
    is_all, is_last = cover.ways == (Way(),), leaf == tree.n_leaves - 1 > 0
    if is_all and tree.n_leaves > 1 and not covers.is_rest(tree, leaf):
        return None  # no training row reached the leaf, or no condition separates its rows
    longer = max_conditions is None or max_conditions > MAX_CONDITIONS
    if longer and not cover.is_exact and int(paths.n_paths[leaf]) == 1:
        nodes, _ = next(paths.into(leaf))
        n_conditions = sum(not condition.is_open for condition in path_conditions(tree, columns, nodes))
        if max_conditions is None or n_conditions <= max_conditions:
            return None
    return {
        "ways": cover.ways,
        "is_short": True,
        "is_rest": is_all and is_last,
        "coverage": cover.coverage,
        "precision": cover.precision,
    }


def _ways(
    tree: Tree, columns: Sequence[Column], paths: PathCounts, leaf: int, log_odds: np.ndarray, detail: Detail
) -> dict[str, Any]:
    """Return the paths into a leaf; paths that read the same are one way."""
    ways: dict[tuple[str, ...], tuple[Way, float, int]] = {}
    for nodes, share in paths.into(leaf):
        way = ranked_way(tree, columns, nodes, log_odds)
        key = tuple(way.texts(detail))
        way, covered, n_paths = ways.get(key, (way, 0.0, 0))
        ways[key] = way, covered + share, n_paths + 1
    if not ways:
        is_only = len(list(islice(ways_up(tree, leaf), 2))) == 1
        return {"ways": (_possible_way(tree, columns, leaf, log_odds),), "precision": 1.0,
                "coverage": 1.0 if is_only else np.nan}  # fmt: skip
    best = sorted(ways.values(), key=lambda way: -way[1])[: None if detail.is_exact else PATHS_SHOWN]
    n_others = max(int(paths.n_paths[leaf]) - sum(n_paths for _, _, n_paths in best), 0)
    return {
        "ways": tuple(way for way, _, _ in best),
        "n_other_ways": n_others,
        "coverage": sum(share for _, share, _ in best) if n_others else 1.0,
        "precision": 1.0,
    }


def ranked_way(tree: Tree, columns: Sequence[Column], nodes: Sequence[int] | np.ndarray, log_odds: np.ndarray) -> Way:
    """Return the conditions of a path, those that raise the log-odds most first."""
    return Way(tuple(condition for condition, _ in ranked_conditions(tree, columns, nodes, log_odds)))


def _possible_way(tree: Tree, columns: Sequence[Column], leaf: int, log_odds: np.ndarray) -> Way:
    """Return the first path into a leaf that some row can take, else the first path."""
    first, n_nodes = None, 0
    for path in islice(ways_up(tree, leaf), WAYS_TRIED):
        way = ranked_way(tree, columns, path, log_odds)
        if all(condition.is_possible for condition in way.conditions):
            return way
        first, n_nodes = first or way, n_nodes + len(path)
        if n_nodes > NODES_TRIED:
            break
    assert first is not None  # every leaf can be reached
    return first


def checked_leaf_rates(values: np.ndarray | None, tree: Tree) -> np.ndarray | None:
    """Return hit rates of leaves from a file; raise ValueError if they do not fit the tree."""
    if values is None:
        return None
    is_whole = values.shape == (tree.n_leaves, 3) and values.dtype == np.float64
    if not is_whole or not np.all((values >= 0) & (values <= 1)):
        raise InputError("The model's leaves and their hit rates do not fit together.")
    return values
