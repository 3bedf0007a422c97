"""Trees by alternating optimisation along a path of costs beside CART, from one run.

    python benchmarks/speed/tao.py [--shrink 1] [--write]

Path: 14 costs of a false positive, lambda_0 = N+ / N- times 1.5 ** j with j from -6 to 7, on simulated quadrant images
(appendix E of the paper on cost-optimal curves). One base tree of depth 3 from a random start, then two paths, up and
down, each tree started from its neighbour (figure 7) with one pass, as `CostOptimalCurve` does. CART is scikit-learn's,
grown to the end by the Gini index with the costs as sample weights, as in the paper. Cold: the same 14 problems, each
from a random or a greedy start of its own, with passes until nothing changes. The preparation of the table is part of
each time but those of the cold starts. Processor time of one thread; where threads are compared, time on the clock: the
base tree shares out its nodes, then the two paths run side by side. Objectives are sums over the path. Large table: one
oblique tree of depth 4 with `TAOTree`. `--shrink` divides the numbers of rows, `--write` stores the tables in `tao.md`.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from toprank import CostOptimalCurve, TAOTree
from toprank._core.dtypes import GINI
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.datasets import make_quadrants
from toprank.rankers.cost.tao_tree import distinct_rows
from toprank.rankers.growth import category_search
from toprank.tree.columns import Column
from toprank.tree.flatten import flatten_tree
from toprank.tree.grower import Limits, grow
from toprank.tree.tao.alternating_tree import AlternatingTree, random_tree, tree_of
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.problem import CostProblem, integer_costs
from toprank.tree.weights import FIXED_POINT_BITS, RowWeights, integer_weights

HERE = Path(__file__).parent
DEPTH, ALPHA, N_ITER = 3, 1.0, 20
PATH_ITER: int = CostOptimalCurve().path_max_iter
STEPS_UP, STEPS_DOWN = range(1, 8), range(-1, -7, -1)


@dataclass
class Run:
    """Seconds of a path, by the processor and on the clock, passes made, and the sum of the objectives."""

    seconds: float = 0.0
    clock: float = 0.0
    passes: int = 0
    objective: float = 0.0


class CostPath:
    """The problems of one table, and the trees that solve them."""

    def __init__(self, X: np.ndarray, y: np.ndarray, threads: Threads):
        self.threads = threads
        columns = [Column(f"x{j}") for j in range(X.shape[1])]
        self.data = BinnedCases(X, y == 1, None, columns, threads=threads)
        self.rows = distinct_rows(self.data, category_search(TAOTree()))
        self.base_cost = y.sum() / (len(y) - y.sum())

    def problem(self, step: int) -> CostProblem:
        """The problem of one cost of the path."""
        return CostProblem.from_costs(self.rows, self._costs(step), ALPHA, is_oblique=True, threads=self.threads)

    def _costs(self, step: int) -> np.ndarray:
        return np.array([[0.0, self.base_cost * 1.5**step], [1.0, 0.0]])

    def random_start(self, step: int) -> AlternatingTree:
        """A random tree, the same for every cost."""
        return random_tree(self.problem(step), DEPTH, np.random.default_rng(0))

    def greedy_start(self, step: int) -> AlternatingTree:
        """A greedy tree by the Gini index, cases weighted by their costs."""
        is_positive = self.data.is_positive
        weights, costs = integer_weights(is_positive, None), self._costs(step)
        total, whole, unit = integer_costs(weights.total, costs, FIXED_POINT_BITS)
        total = total * np.where(is_positive, whole[1, 0], whole[0, 1])
        splitter = self.data.splitter(RowWeights(np.where(is_positive, total, 0), total, unit), self.threads)
        grown = grow(splitter, splitter.root(), Limits(GINI, DEPTH))
        return tree_of(flatten_tree(grown, unit, self.data.is_categorical), self.problem(step))

    def solve(self, step: int, start: AlternatingTree, run: Run, n_iter: int) -> AlternatingTree:
        """Improve a tree until nothing changes, or for so many passes."""
        alternation = Alternation(self.problem(step), start)
        run.passes += alternation.run(n_iter)
        run.objective += alternation.objective_path[-1]
        return alternation.tree


def follow_path(X: np.ndarray, y: np.ndarray, threads: Threads) -> tuple[Run, CostPath]:
    """The base tree and the two paths of trees started from their neighbours."""
    begin = time.process_time(), time.perf_counter()
    path = CostPath(X, y, threads)
    runs = [Run(), Run(), Run()]
    base = path.solve(0, path.random_start(0), runs[0], N_ITER)

    def one_way(steps: range, run: Run) -> None:
        tree = base
        for step in steps:
            tree = path.solve(step, tree.copy(), run, PATH_ITER)

    threads.run(one_way, (STEPS_UP, STEPS_DOWN), runs[1:])
    seconds, clock = time.process_time() - begin[0], time.perf_counter() - begin[1]
    return Run(seconds, clock, sum(run.passes for run in runs), sum(run.objective for run in runs)), path


def solve_cold(path: CostPath, start: Callable[[int], AlternatingTree]) -> Run:
    """The same problems, each from a start of its own."""
    run, begin = Run(), time.process_time()
    for step in (*STEPS_DOWN, 0, *STEPS_UP):
        path.solve(step, start(step), run, N_ITER)
    run.seconds = time.process_time() - begin
    return run


def fit_cart(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of 14 greedy trees of scikit-learn."""
    base_cost, begin = y.sum() / (len(y) - y.sum()), time.process_time()
    for step in (*STEPS_DOWN, 0, *STEPS_UP):
        weight = np.where(y == 1, 1.0, base_cost * 1.5**step)
        DecisionTreeClassifier(random_state=0).fit(X, y, sample_weight=weight)
    return time.process_time() - begin


def measure_path(n: int) -> list[str]:
    """One line a way to 14 trees."""
    data = make_quadrants(n, random_state=0)
    X, y = data.X, data.y
    lines = [
        "| 14 trees | time | beside CART | beside the warm path | passes | objectives |",
        "|---|---|---|---|---|---|",
    ]

    def report(name: str, run: Run, seconds: float, of_cart: bool = False, of_warm: bool = False) -> None:
        ratios = [
            f"{run.seconds / cart:.2f}" if of_cart else "",
            f"{run.seconds / warm.seconds:.1f}" if of_warm else "",
        ]
        figures = [str(run.passes), f"{run.objective:,.0f}"] if run.passes else ["", ""]
        lines.append(f"| {name} | {seconds:.1f} s | {' | '.join(ratios + figures)} |")
        print(lines[-1], flush=True)

    runs = []
    for n_threads in (1, 2):  # first, while the machine is as quiet as when it began
        with Threads(n_threads) as threads:
            run, path = follow_path(X, y, threads)
        runs.append(run)
        report(f"warm path, threads: {n_threads}, on the clock", run, run.clock)
    warm, cart = runs[0], fit_cart(X, y)
    report("CART, fully grown", Run(cart), cart)
    report("warm path", warm, warm.seconds, of_cart=True)
    for name, start in (("a random start", path.random_start), ("a greedy start", path.greedy_start)):
        cold = solve_cold(path, start)
        report(f"cold, each from {name}", cold, cold.seconds, of_cart=True, of_warm=True)
    return lines


def measure_large(n: int) -> list[str]:
    """One line: a tree on many rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30))
    score = X[:, :10].sum(axis=1) * 0.5 + np.abs(X[:, 10]) - np.abs(X[:, 11])
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(4.0 - score))).astype(np.int8)
    begin = time.process_time()
    model: Any = TAOTree(max_depth=4, n_jobs=1).fit(X, y)
    seconds = time.process_time() - begin
    lines = ["| table | tree | time | passes | leaves | objective |", "|---|---|---|---|---|---|"]
    lines.append(f"| {n:,} x 30 | oblique, depth 4 | {seconds:.0f} s | {model.n_iter_} | {model.n_leaves_} "
                 f"| {model.objective_:,.0f} |")  # fmt: skip
    print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shrink", type=int, default=1, help="divide the numbers of rows by this")
    parser.add_argument("--write", action="store_true", help="store the tables in tao.md")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    small = make_quadrants(500, size=8, random_state=0)
    follow_path(small.X, small.y, Threads())  # compile
    sizes = [n // arguments.shrink for n in (32_000, 1_000_000)]
    print(f"{sizes[0]:,} x 784, depth {DEPTH}, alpha {ALPHA}")
    tables = [measure_path(sizes[0]), measure_large(sizes[1])]
    if arguments.write:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        shrink = f" --shrink {arguments.shrink}" if arguments.shrink > 1 else ""
        command = f"`python benchmarks/speed/tao.py{shrink} --write`"
        busy = f"{load:.1f} processes at work when it began"
        head = f"# TAO trees\n\n{date.today()}, {machine}, {busy}; {command}\n"
        note = " ".join(__doc__.split("\n\n")[2].split("`--shrink`")[0].split())
        title = f"{sizes[0]:,} x 784, depth {DEPTH}, alpha {ALPHA}:"
        body = "\n\n".join("\n".join(lines) for lines in tables)
        (HERE / "tao.md").write_text(f"{head}\n{note}\n\n{title}\n\n{body}\n")


if __name__ == "__main__":
    main()
