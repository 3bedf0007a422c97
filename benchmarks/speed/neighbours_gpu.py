"""How long the search of `algorithm="gpu"` takes on a GPU, and whether its candidates hold the nearest points.

    python benchmarks/speed/neighbours_gpu.py

It needs CuPy and a GPU, and neither Numba nor scikit-learn: what it measures is `Screen`, which leaves about k
candidates per query. Their distances are computed as in all searches, which takes microseconds per query. The points
are those of `neighbours.py`; 300 queries are compared with all distances in double precision.
"""

from __future__ import annotations

import time

import numpy as np

from toprank.rankers.neighbours.gpu import QUERIES, Screen, check_gpu, cupy_or_why

SIZES = ((20_000, 100_000, 30, 3), (20_000, 20_000, 300, 3), (20_000, 200_000, 30, 50), (1_000_000, 1_000_000, 30, 3))
CHECKED = 300


def make_points(n: int, d: int, seed: int) -> np.ndarray:
    """Return a mixture of Gaussians, most of their spread in a third of the directions."""
    rng, population = np.random.default_rng(seed), np.random.default_rng(12345)
    centres, mixing = 2 * population.normal(size=(20, d)), population.normal(size=(d // 3, d))
    spread = rng.normal(size=(n, d // 3)) @ mixing / 3 + 0.3 * rng.normal(size=(n, d))
    return spread + centres[rng.integers(0, 20, n)]


def measure(n: int, m: int, d: int, k: int) -> str:
    """Return one line of the table."""
    points, queries = make_points(m, d, 0), make_points(n, d, 1)
    unit = 2.0 ** -int(np.frexp(np.sqrt((points**2).sum(axis=1).max()))[1])
    scaled, asked = points * unit, queries * unit
    square = (asked**2).sum(axis=1)
    floor = 4 * d * float(np.finfo(np.float32).tiny) * (1 + np.sqrt(square))
    screen = Screen(np.ascontiguousarray(scaled.T, np.float32), (scaled**2).sum(axis=1), cupy_or_why()[0])
    single, left_out, room = asked.astype(np.float32), np.full(n, -1), 4 * k + 60
    screen.candidates(single[:QUERIES], square[:QUERIES], floor[:QUERIES], left_out[:QUERIES], k, room)
    start, found = time.perf_counter(), []
    for at in range(0, n, QUERIES):
        part = slice(at, at + QUERIES)
        found.append(screen.candidates(single[part], square[part], floor[part], left_out[part], k, room))
    seconds = time.perf_counter() - start
    position, count = (np.concatenate(each) for each in zip(*found, strict=True))
    n_held = 0
    for i in np.linspace(0, n - 1, CHECKED).astype(np.int64):
        nearest = np.argsort(((points - queries[i]) ** 2).sum(axis=1), kind="stable")[:k]
        n_held += set(nearest.tolist()) <= set(position[i, : count[i]].tolist())
    return f"| {n:,} | {m:,} | {d} | {k} | {seconds:.2f} | {count.mean():.2f} | {n_held} of {CHECKED} |"


def main() -> None:
    """Print a table."""
    check_gpu("euclidean")
    print("| queries | points | columns | k | seconds | candidates per query | hold the k nearest |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for sizes in SIZES:
        print(measure(*sizes), flush=True)


if __name__ == "__main__":
    main()
