"""Tree alternating optimisation (TAO): improves the nodes of a tree of fixed shape in turn, with the others fixed.

The objective is eq. (3) of the paper: the cost of the leaves' labels plus alpha times the L1 norm of the weights of all
conditions. It separates over nodes none of which is below another, so a level is improved at once, from the leaves up
to the root; the change of a node depends only on its own rows and on the subtrees below it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from toprank._core.dtypes import CATEGORY
from toprank.tree.tao.alternating_tree import AlternatingTree
from toprank.tree.tao.logistic import LinearFit
from toprank.tree.tao.problem import CostProblem
from toprank.tree.tao.splits import (
    NEWTON_STEPS,
    Candidate,
    ReducedProblem,
    Split,
    best_axis,
    fitted_sum,
    numeric_candidate,
)

STEPS_FROM_A_NEIGHBOUR = 2
"""Newton steps per visit of a node with a warm start from a tree at another cost: its direction is nearly right, the
next visit, or the next cost, continues from there, and the threshold along it is exact."""

NEGLIGIBLE = 1e-10
"""Relative change of the objective that counts as none: rounding of the norms must not make the objective increase."""


def cheapest_label(problem: CostProblem, rows: np.ndarray, label: int) -> int:
    """Label of a leaf with the lowest cost for its rows (theorem 4.2); ties go to the last, the positive one of two.

    A leaf without rows keeps its label.
    """
    if len(rows) == 0:
        return label
    total = problem.cost[rows].sum(axis=0)
    return int(np.flatnonzero(total == total.min())[-1])


def idle_label(problem: CostProblem, rows: np.ndarray, taken: int) -> int:
    """Label of a branch without rows: the cheapest one for its parent's rows other than its sibling's.

    It costs nothing, and shows the parent what a condition between the two labels would save.
    """
    total = problem.cost[rows].sum(axis=0)
    others = np.delete(np.arange(problem.n_classes), taken)
    return int(others[np.argmin(total[others])])


def best_candidate(
    problem: CostProblem,
    reduced: ReducedProblem,
    current: Split,
    start: LinearFit | None,
    max_steps: int = NEWTON_STEPS,
) -> tuple[Candidate, LinearFit | None]:
    """The condition that lowers a node's part of the objective most, and the warm start of the next fit.

    Candidates: all rows to one child; the current condition with its best threshold; the best condition on one column;
    and the direction of a weighted L1 logistic regression with its best threshold. Ties go to the first.
    """
    saved, split = reduced.one_way
    found: list[Candidate | None] = [Candidate(split, saved)]
    if current.kind != CATEGORY and current.norm > 0:
        found.append(numeric_candidate(problem, reduced, current))
    found.append(best_axis(problem, reduced))
    if problem.is_oblique:
        fitted = fitted_sum(problem, reduced, start, max_steps)
        if fitted is not None:
            split_along, start = fitted
            if split_along is not None:
                found.append(numeric_candidate(problem, reduced, split_along))

    def worth(candidate: Candidate) -> float:
        return candidate.judged * problem.unit - problem.alpha * candidate.split.norm

    return max((candidate for candidate in found if candidate is not None), key=worth), start


@dataclass(frozen=True)
class NodeSearch:
    """Result of the search at one inner node; candidate = None if nothing is better than the current condition."""

    key: bytes
    candidate: Candidate | None = None
    fit: LinearFit | None = None
    saved: int = 0


class Alternation:
    """Passes over a tree; the tree is changed in place.

    Attributes
    ----------
    tree : AlternatingTree
    objective_path : list of float
        The objective before the first and after every accepted change. It never increases.
    """

    def __init__(self, problem: CostProblem, tree: AlternatingTree):
        self.problem, self.tree = problem, tree
        self._seen: list[bytes] = [b""] * len(tree)  # the last problem that each node solved
        self._max_steps = [NEWTON_STEPS if fit is None else STEPS_FROM_A_NEIGHBOUR for fit in tree.fits]
        self._reached: list[np.ndarray] | None = tree.reduced_sets(problem)
        self._cost = 0
        for node, rows in enumerate(self._reached):
            if tree.left[node] < 0:
                tree.label[node] = cheapest_label(problem, rows, int(tree.label[node]))
                self._cost += int(problem.cost[rows, tree.label[node]].sum())
        self.objective_path = [self._objective()]

    def _objective(self) -> float:
        return self._cost * self.problem.unit + self.problem.alpha * self.tree.norm

    def run(self, n_iter: int) -> int:
        """Pass over the tree until nothing changes, at most n_iter times; return the number of passes."""
        for iteration in range(1, n_iter + 1):
            if not self.improve():
                return iteration
        return n_iter

    def improve(self) -> bool:
        """One pass, from the deepest level to the root; return whether anything changed.

        The rows that reach a node depend on the nodes above it, which come later, so they are computed once.
        """
        reached = self._reached or self.tree.reduced_sets(self.problem)
        changed = False
        for level in range(int(self.tree.depth.max()), -1, -1):
            changed |= self.improve_nodes(np.flatnonzero(self.tree.depth == level).tolist(), reached)
        return changed

    def improve_nodes(self, nodes: list[int], reached: list[np.ndarray]) -> bool:
        """Improve nodes none of which is below another, each independently; return whether anything changed."""
        before = len(self.objective_path)
        self._reached = None  # outdated
        for node in nodes:
            if self.tree.left[node] < 0:
                self._relabel(node, reached[node])
        inner = [node for node in nodes if self.tree.left[node] >= 0]
        for node in inner:
            self._wake(node, reached)
        _ = self.tree.arrays, self.problem.is_oblique and self.problem.rows.standard  # computed once, before threads
        longest_first = sorted(inner, key=lambda node: -len(reached[node]))
        found = self.problem.threads.run(lambda node: self._look(node, reached[node]), longest_first)
        for node, result in sorted(zip(longest_first, found, strict=True), key=lambda each: each[0]):
            self._seen[node] = result.key
            self.tree.fits[node] = result.fit
            if result.candidate is not None:
                self.tree.replace(node, result.candidate)
                self._cost -= result.saved
                self.objective_path.append(self._objective())
        return len(self.objective_path) > before

    def _relabel(self, node: int, rows: np.ndarray) -> None:
        old = int(self.tree.label[node])
        new = cheapest_label(self.problem, rows, old)
        if new != old:
            self.tree.label[node] = new
            self._cost -= int((self.problem.cost[rows, old] - self.problem.cost[rows, new]).sum())
            self.objective_path.append(self._objective())

    def _wake(self, node: int, reached: list[np.ndarray]) -> None:
        """If all leaves below a node have one label, give a branch without rows another one."""
        tree = self.tree
        idle = [child for child in (int(tree.left[node]), int(tree.right[node])) if len(reached[child]) == 0]
        labels = np.unique(tree.label[tree.leaves_below(node)])
        if len(idle) == 1 and len(labels) == 1:
            tree.label[tree.leaves_below(idle[0])] = idle_label(self.problem, reached[node], int(labels[0]))

    def _look(self, node: int, rows: np.ndarray) -> NodeSearch:
        """The best condition of a node, if it is better than the current one."""
        problem, tree = self.problem, self.tree
        reduced, current = tree.reduced_problem(problem, node, rows), tree.splits[node]
        assert current is not None
        key = _key(reduced)
        if key == self._seen[node]:  # already solved, with the same result
            return NodeSearch(key, fit=tree.fits[node])
        saved_now = int(reduced.saving[tree.goes_left(problem, node, reduced.rows)].sum())
        candidate, fit = best_candidate(problem, reduced, current, tree.fits[node], self._max_steps[node])
        saved = candidate.saved - saved_now
        gain = saved * problem.unit - problem.alpha * (candidate.split.norm - current.norm)
        if not gain > NEGLIGIBLE * self.objective_path[-1]:
            return NodeSearch(key, fit=fit)
        if candidate.swaps:  # the same problem with swapped children
            key = _key(ReducedProblem(reduced.rows, -reduced.saving))
        return NodeSearch(key, candidate, fit, saved)


def _key(reduced: ReducedProblem) -> bytes:
    digest = hashlib.blake2b(reduced.rows.tobytes(), digest_size=16)
    digest.update(reduced.saving.tobytes())
    return digest.digest()
