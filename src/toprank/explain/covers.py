"""`Covers`: short rules for the best leaves, found on training rows, with how well they fit.

A leaf of a meta-tree can be reached in hundreds of ways, none of which says much. A cover is a short rule that selects
nearly the same rows: one or two ways of at most four conditions, all taken from the tree. A condition that no row
of its cell fails is left out. Two figures say how well a cover fits: its coverage is the share of the leaf's rows
that it selects, its precision the share of the selected rows that belong to the leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank._core.dtypes import CATEGORY, NODE, OBLIQUE
from toprank.errors import InputError, check_invariants
from toprank.explain.conditions import Condition, Way, merged, side_condition
from toprank.explain.contributions import node_log_odds
from toprank.explain.paths import PathCounts, rows_of_each_leaf
from toprank.explain.walk import passed_up
from toprank.tree.columns import Column
from toprank.tree.scoring import rises
from toprank.tree.structure import Tree

MAX_LEAVES = 20
"""Leaves to describe, from the top; nobody reads more rules."""

MAX_CONDITIONS = 4
"""Most conditions per way."""

MAX_WAYS = 2
BEAM = 4
MAX_STEPS = 6
"""Most steps of a way: two on one column make a range, which is one condition."""

LEAST_GAIN = 0.01
"""Gain in fit (F1) that a further condition needs to be worth reading."""

LEAST_SHARE, ENOUGH = 0.15, 0.9
"""Share of a leaf that a further way must cover; share that is enough."""

SEARCH_ROWS, FIGURE_ROWS = 3_000, 20_000
"""Rows on which covers are searched, and on which their figures are counted; from larger tables all rows of small
leaves and a sample of the large ones, with weights."""

DTYPES = {"leaf": NODE, "offset": NODE, "step": NODE, "coverage": np.float64, "precision": np.float64}


@dataclass(frozen=True)
class Cover:
    """A short rule for one leaf: a row is selected if all conditions of one way hold."""

    ways: tuple[Way, ...]
    coverage: float  # share of the leaf's training rows that it selects
    precision: float  # share of the selected training rows that belong to the leaf; NaN if none is selected

    @property
    def is_exact(self) -> bool:
        """True if the rule selects exactly the training rows of the leaf."""
        return self.coverage >= 1 and self.precision >= 1


@dataclass(frozen=True, eq=False)
class Covers:
    """Covers of the best leaves, as sides of the tree's own conditions."""

    leaf: np.ndarray  # int32 (m,): leaf position of each way, ascending
    offset: np.ndarray  # int32 (m + 1,): way i owns step[offset[i]:offset[i + 1]], the most important first
    step: np.ndarray  # int32: 2 * node for the left side of a node's condition, 2 * node + 1 for the right side
    coverage: np.ndarray  # float64 (n_described, 4): of each cover, cut to 1, 2, 3 and 4 conditions per way
    precision: np.ndarray

    def __len__(self) -> int:
        """Number of described leaves."""
        return len(self.coverage)

    def of(
        self, tree: Tree, columns: Sequence[Column], leaf: int, max_conditions: int = MAX_CONDITIONS
    ) -> Cover | None:
        """Return the cover of a leaf position, each way cut to this many conditions; None if it is not described."""
        if leaf >= len(self):
            return None
        n = min(max_conditions, MAX_CONDITIONS)
        ways = dict.fromkeys(
            Way(tuple(merge_steps(tree, columns, self.step[self.offset[i] : self.offset[i + 1]])[:n]))
            for i in np.flatnonzero(self.leaf == leaf)
        )
        figures = (float(array[leaf, n - 1]) for array in (self.coverage, self.precision))
        return Cover(tuple(ways), *figures) if ways else None

    @classmethod
    def none(cls) -> Covers:
        """Return no covers: rules then come from the paths."""
        nothing = np.zeros(0, NODE)
        return cls(nothing, np.zeros(1, NODE), nothing, *(np.zeros((0, MAX_CONDITIONS)) for _ in range(2)))

    @classmethod
    def find(cls, tree: Tree, columns: Sequence[Column], rows: LeafRows, paths: PathCounts) -> Covers:
        """Find covers of the best leaves on training rows, or a sample; `paths` are the most common ways into them."""
        search = _Search(tree, columns, rows, paths)
        n_leaves = min(tree.n_leaves, MAX_LEAVES)
        found = [search.ways(position) for position in range(n_leaves)]
        sizes = [len(way) for ways in found for way in ways]
        out = cls(
            np.repeat(np.arange(n_leaves), [len(ways) for ways in found]).astype(NODE),
            np.append(0, np.cumsum(sizes)).astype(NODE),
            np.array([step for ways in found for way in ways for step in way], NODE),
            *np.full((2, n_leaves, MAX_CONDITIONS), np.nan),
        )
        out._count(tree, columns, rows)
        return out

    def _count(self, tree: Tree, columns: Sequence[Column], rows: LeafRows) -> None:
        """Fill in coverage and precision of each cover, cut to each number of conditions."""
        for leaf in range(len(self)):
            if self.is_rest(tree, leaf):
                self.coverage[leaf], self.precision[leaf] = 1.0, 1.0
                continue
            is_own, last = rows.leaf == leaf, None
            own = float(rows.weight[is_own].sum())
            for n in range(1, MAX_CONDITIONS + 1):
                cover = self.of(tree, columns, leaf, n)
                assert cover is not None
                if cover.ways != last:
                    last, selected = cover.ways, rows.selected(cover)
                    hit, total = (float(rows.weight[mask].sum()) for mask in (selected & is_own, selected))
                    figures = (hit / own if own > 0 else np.nan, hit / total if total > 0 else np.nan)
                self.coverage[leaf, n - 1], self.precision[leaf, n - 1] = figures

    def is_rest(self, tree: Tree, leaf: int) -> bool:
        """Return True if a leaf is the last of several and described as "all other cases"."""
        own = np.flatnonzero(self.leaf == leaf)
        return leaf == tree.n_leaves - 1 > 0 and len(own) == 1 and self.offset[own[0]] == self.offset[own[0] + 1]

    # --- files --------------------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return arrays by name, for a file; `from_arrays` restores the object."""
        return {name: getattr(self, name) for name in DTYPES}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], tree: Tree) -> Covers:
        """Restore covers from arrays made by `to_arrays`, checked against the tree; none without arrays."""
        if not arrays:
            return cls.none()
        for name, dtype in DTYPES.items():
            n_dimensions = 2 if name in ("coverage", "precision") else 1
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != n_dimensions:
                raise InputError(f"Not valid covers: they lack an array {name!r} of {np.dtype(dtype)}.")
        covers = cls(**{name: arrays[name] for name in DTYPES})
        covers.check(tree)
        return covers

    def check(self, tree: Tree) -> None:
        """Raise ValueError at the first broken invariant."""
        m, n = len(self.leaf), len(self.coverage)
        node = self.step // 2
        with np.errstate(invalid="ignore"):
            shares = all(
                bool(np.all(np.isnan(array) | ((array >= 0) & (array <= 1 + 1e-9))))
                for array in (self.coverage, self.precision)
            )
        invariants = [
            (
                len(self.offset) == m + 1 and self.offset[0] == 0 and self.offset[-1] == len(self.step)
                and rises(self.offset), "consistent in length",
            ),
            (
                self.coverage.shape == self.precision.shape == (n, MAX_CONDITIONS)
                and n <= min(tree.n_leaves, MAX_LEAVES),
                "figures of leaves of this tree",
            ),
            (shares, "shares from 0 to 1"),
            (bool(np.array_equal(np.unique(self.leaf), np.arange(n)) and rises(self.leaf)),
             "ways into each described leaf"),
            (bool(np.all(self.leaf[MAX_WAYS:] > self.leaf[:-MAX_WAYS])), f"at most {MAX_WAYS} ways into a leaf"),
            (bool(np.all((self.step >= 0) & (node < len(tree)))) and not tree.is_leaf[node].any(),
             "conditions of this tree"),
        ]  # fmt: skip
        check_invariants(invariants, "Not valid covers: they are not {}. Hint: the data may be damaged.")


def merge_steps(tree: Tree, columns: Sequence[Column], steps: Sequence[int] | np.ndarray) -> list[Condition]:
    """Return the conditions of a way's steps, one per feature, in order of first occurrence, without open ones."""
    sides = (side_condition(tree, columns, step // 2, step % 2 == 0) for step in map(int, steps))
    return [condition for condition in merged(sides) if not condition.is_open]


class ColumnTable:
    """Some columns of a matrix, indexed like it: `table[:, feature]`, `table[rows]`, `len(table)`."""

    def __init__(self, columns: dict[int, np.ndarray], n_rows: int):
        self.columns, self.n_rows = columns, n_rows

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self.columns[key[1]]
        return ColumnTable({feature: column[key] for feature, column in self.columns.items()}, len(key))


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Training rows, or a sample: the columns that the tree uses, leaf nodes, leaf positions and weights."""

    X: Any  # a ColumnTable
    node: np.ndarray
    leaf: np.ndarray
    weight: np.ndarray  # float64 (n,); in a sample, each leaf has the total weight of all its rows

    @classmethod
    def draw(
        cls, tree: Tree, X: np.ndarray, node: np.ndarray, weight: np.ndarray | None, most: int = FIGURE_ROWS
    ) -> LeafRows:
        """Sample about `most` rows with weight: all of those in small leaves, evenly spread over the large ones."""
        rows, mass = _sample(tree, node, weight, most)
        asked = tree.feature[~tree.is_leaf & (tree.kind != OBLIQUE)]
        features = np.unique(np.concatenate((asked, tree.oblique_feature)))
        values = np.array((X if len(rows) == len(X) else X[rows])[:, features].T, np.float64, order="C")
        table = ColumnTable(dict(zip(features.tolist(), values, strict=True)), len(rows))
        return cls(table, node[rows], tree.leaf[node[rows]], mass)

    def thinned(self, tree: Tree, most: int) -> LeafRows:
        """Return about this many of the rows."""
        if len(self.X) <= most:
            return self
        rows, mass = _sample(tree, self.node, self.weight, most)
        return LeafRows(self.X[rows], self.node[rows], self.leaf[rows], mass)

    def selected(self, cover: Cover) -> np.ndarray:
        """Return the rows that a cover selects; each condition tests only rows that met the ones before."""
        out = np.zeros(len(self.X), bool)
        for way in cover.ways:
            inside = np.arange(len(self.X))
            for condition in way.conditions:
                inside = inside[condition.holds(self._part(condition, inside))]
            out[inside] = True
        return out

    def _part(self, condition: Condition, rows: np.ndarray) -> Any:
        """Return the columns that a condition tests, for some rows."""
        features = {term.feature for term in condition.terms} or {condition.feature}
        return ColumnTable({feature: self.X[:, feature][rows] for feature in features}, len(rows))


def _sample(tree: Tree, node: np.ndarray, weight: np.ndarray | None, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of about `most` rows with weight, and weights that keep the total weight of each leaf."""
    rows = np.arange(len(node)) if weight is None else np.flatnonzero(np.asarray(weight) > 0)
    mass = np.ones(len(node)) if weight is None else np.asarray(weight, np.float64)
    if len(rows) <= most:
        return rows, mass[rows]
    size = np.bincount(node[rows], minlength=len(tree))
    kept = rows_of_each_leaf(node.astype(NODE, copy=False), rows, _quota(size[size > 0], most))
    whole, part = (np.bincount(node[each], mass[each], len(tree)) for each in (rows, kept))
    factor = np.divide(whole, part, out=np.zeros(len(tree)), where=part > 0)
    return kept, mass[kept] * factor[node[kept]]


def _quota(size: np.ndarray, most: int) -> int:
    """Return the largest quota per leaf, at least 1, with at most `most` rows in all leaves together."""
    low, high = 1, int(size.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(size, middle).sum() <= most else (low, middle - 1)
    return low


class _Search:
    """The search for short ways into leaves on one sample of rows.

    Each distinct side of a condition is a row of `inside`, a matrix of 0 and 1 with one column per training row, so
    that one matrix product tries all sides on all ways under consideration.
    """

    def __init__(self, tree: Tree, columns: Sequence[Column], rows: LeafRows, paths: PathCounts):
        self.tree, self.columns, self.paths = tree, columns, paths
        self.all_rows, self.rows = rows, rows.thinned(tree, SEARCH_ROWS)
        self.log_odds = node_log_odds(tree)
        self.n_leaves = n_leaves = min(tree.n_leaves, MAX_LEAVES)
        own, shown = np.zeros((len(tree), self.n_leaves), bool), np.flatnonzero(tree.is_leaf & (tree.leaf < n_leaves))
        own[shown, tree.leaf[shown]] = True
        self.leads_to = passed_up(tree, own)  # which leaf positions can be reached from each node
        self.twin: dict[int, int] = {}
        self.sides: dict[int, np.ndarray] = {}
        self._test_sides()

    def _test_sides(self) -> None:
        """Find the rows on each side of each condition; equal conditions are merged."""
        tree, first = self.tree, dict[tuple[object, ...], int]()
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            key: tuple[object, ...] = (int(tree.feature[node]), bool(tree.missing_left[node]))
            if tree.kind[node] == OBLIQUE:
                key = (node,)
            elif tree.kind[node] == CATEGORY:
                key += (tuple(tree.categories_left(node).tolist()),)
            else:
                key += (float(tree.threshold[node]),)
            self.twin[node] = first.setdefault(key, node)
            if self.twin[node] == node:
                left = side_condition(tree, self.columns, node).holds(self.rows.X)
                self.sides[2 * node], self.sides[2 * node + 1] = left, ~left

    def ways(self, leaf: int) -> list[list[int]]:
        """Return short ways into a leaf position, best first: the path itself if it is the only one and is short."""
        weight, is_own = self.rows.weight, self.rows.leaf == leaf
        own = float(weight[is_own].sum())
        only = self._only_path(leaf)
        if only is not None and self._n_conditions(only) <= MAX_CONDITIONS:
            return [self._without_needless(only, self.all_rows.leaf == leaf, self.all_rows)]
        if leaf == self.tree.n_leaves - 1 or own <= 0 or not self.sides:
            return [[]]  # the last leaf has all other cases
        steps, inside = self._candidates(leaf)
        found: list[list[int]] = []
        covered, best = np.zeros(len(weight), bool), 0.0
        while len(found) < MAX_WAYS:
            way = self._way(steps, inside, weight * (is_own & ~covered), weight * ~(is_own | covered))
            if only is not None and not found:
                way = max(way, self._shortened(only, is_own), key=lambda each: self._fit(each, is_own))
            selected = covered | self._mask(way)
            gained = float(weight[is_own & selected & ~covered].sum())
            fit = _f1(float(weight[is_own & selected].sum()), float(weight[selected].sum()), own)
            if found and (gained < LEAST_SHARE * own or fit < best + LEAST_GAIN):
                break
            found.append(self._without_needless(way, is_own | covered, self.rows))
            covered, best = selected, fit
            if float(weight[is_own & covered].sum()) >= ENOUGH * own:
                break
        return found

    def _only_path(self, leaf: int) -> list[int] | None:
        """Return the steps of the only path into a leaf, those that raise the log-odds most first; or nothing."""
        if int(self.paths.n_paths[leaf]) != 1:
            return None
        nodes, _ = next(self.paths.into(leaf))
        path = nodes.tolist()
        asked = [i for i in range(len(path) - 1) if self.tree.left[path[i]] != self.tree.right[path[i]]]
        change = np.diff(self.log_odds[path])
        order = sorted(asked, key=lambda i: -change[i])
        return [2 * self.twin[path[i]] + int(self.tree.left[path[i]] != path[i + 1]) for i in order]

    def _candidates(self, leaf: int) -> tuple[list[int], np.ndarray]:
        """Return the sides that lead to a leaf, and the rows on them as a matrix."""
        tree, steps = self.tree, []
        for node in np.flatnonzero(~tree.is_leaf & self.leads_to[:, leaf]).tolist():
            for side, child in enumerate((tree.left[node], tree.right[node])):
                if self.leads_to[child, leaf]:
                    steps.append(2 * self.twin[node] + side)
        steps = list(dict.fromkeys(steps))
        return steps, np.array([self.sides[step] for step in steps], np.float32)

    def _way(self, steps: list[int], inside: np.ndarray, wanted: np.ndarray, unwanted: np.ndarray) -> list[int]:
        """Return the best way of at most four conditions, found by beam search.

        `wanted` is the weight of rows to select, `unwanted` that of rows to leave out.
        """
        total = float(wanted.sum())
        group = np.array([self._group(step) for step in steps])
        states: list[tuple[list[int], np.ndarray]] = [([], np.ones(len(wanted), bool))]
        best: list[int] = []
        best_fit = 0.0
        for _ in range(MAX_STEPS):
            tried: list[tuple[float, tuple[float, float], int, int]] = []
            for at, (taken, mask) in enumerate(states):
                rows = np.flatnonzero(mask)
                both = np.stack((wanted[rows], unwanted[rows]), axis=1).astype(np.float32)
                hit, miss = (inside[:, rows] @ both).astype(np.float64).T
                fit = 2 * hit / np.maximum(hit + miss + total, np.finfo(float).tiny)
                fit = np.round(fit, 5)  # rounded, so that every machine chooses the same conditions
                used = set(group[taken].tolist())
                allowed = np.ones(len(steps), bool) if len(used) < MAX_CONDITIONS else np.isin(group, list(used))
                allowed[taken] = False
                allowed &= hit + miss < (1 - 1e-6) * float(both.sum())  # a condition that excludes nothing is useless
                for i in np.argsort(-np.where(allowed, fit, -1.0), kind="stable")[:BEAM].tolist():
                    if allowed[i]:
                        tried.append((float(fit[i]), (round(float(hit[i]), 3), round(float(miss[i]), 3)), at, i))
            kept: dict[tuple[float, float], tuple[float, int, int]] = {}
            for fit_of, effect, at, i in sorted(tried, key=lambda each: -each[0]):
                kept.setdefault(effect, (fit_of, at, i))
            chosen = list(kept.values())[:BEAM]
            if not chosen:
                break
            states = [([*states[at][0], i], states[at][1] & (inside[i] > 0)) for _, at, i in chosen]
            if chosen[0][0] > best_fit + LEAST_GAIN * (len(states[0][0]) - len(best)):
                best, best_fit = states[0][0], chosen[0][0]
        return [steps[i] for i in best]

    def _group(self, step: int) -> int:
        """Return what a side tests: its feature, or its own weighted sum."""
        node = step // 2
        return int(-1 - node if self.tree.kind[node] == OBLIQUE else self.tree.feature[node])

    def _n_conditions(self, way: Sequence[int]) -> int:
        return len({self._group(step) for step in way})

    def _mask(self, way: Sequence[int]) -> np.ndarray:
        out = np.ones(len(self.rows.weight), bool)
        for step in way:
            out &= self.sides[step]
        return out

    def _fit(self, way: Sequence[int], is_own: np.ndarray) -> float:
        weight, mask = self.rows.weight, self._mask(way)
        return _f1(float(weight[mask & is_own].sum()), float(weight[mask].sum()), float(weight[is_own].sum()))

    def _without(self, way: Sequence[int]) -> Iterator[list[int]]:
        """Yield the way without each of its conditions, the last one first."""
        for group in dict.fromkeys(self._group(step) for step in reversed(way)):
            yield [step for step in way if self._group(step) != group]

    def _without_needless(self, way: list[int], is_own: np.ndarray, rows: LeafRows) -> list[int]:
        """Return the way without conditions, or sides of ranges, that exclude no outside row that meets the rest."""
        sides = {
            step: side_condition(self.tree, self.columns, step // 2, step % 2 == 0).holds(rows.X)
            if rows is not self.rows
            else self.sides[step]
            for step in way
        }

        def wrong(steps: list[int]) -> float:
            outside = ~is_own
            for step in steps:
                outside = outside & sides[step]
            return float(rows.weight[outside].sum())

        most = wrong(way) * (1 + 1e-9)
        for step in reversed(way):
            shorter = [each for each in way if each != step]
            if wrong(shorter) <= most:
                way = shorter
        return way

    def _shortened(self, way: list[int], is_own: np.ndarray) -> list[int]:
        """Return the way with the least useful conditions dropped one by one until it is short enough."""
        while self._n_conditions(way) > MAX_CONDITIONS:
            way = max(self._without(way), key=lambda each: self._fit(each, is_own))
        return way


def _f1(hit: float, selected: float, own: float) -> float:
    """Return the harmonic mean of coverage and precision (F1)."""
    return 2 * hit / (selected + own) if hit > 0 else 0.0
