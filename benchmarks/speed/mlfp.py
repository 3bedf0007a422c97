"""How long MLFP takes on a table of the size of the tax data: 20,000 x 300, 3 % positives.

    python benchmarks/speed/mlfp.py [--rows 20000] [--columns 300] [--jobs 2] [--cv 5]

Prints the seconds of `fit`, by the clock and of the processor, once for each form of the matrix. With cv=0 a fit learns
one metric, with cv=5 six of them. Compiling is not counted.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from toprank import MLFP


def make_table(n_rows: int, n_columns: int, rate: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    """Rare positives that are shifted in a tenth of the columns; the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = (rng.random(n_rows) < rate).astype(int)
    X[y == 1, : max(1, n_columns // 10)] += 0.7
    return X, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cv", type=int, default=5)
    parser.add_argument("--forms", nargs="+", default=["diagonal", "full", "low_rank"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_table(options.rows, options.columns)
    for form in options.forms:
        model = MLFP(form=form, cv=options.cv, n_jobs=options.jobs)
        model.fit(*make_table(600, options.columns))  # compiles
        clock, processor = time.perf_counter(), time.process_time()
        model.fit(X, y)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        print(f"{form}, cv={options.cv}, {options.jobs} jobs: {clock:.1f} s by the clock, {processor:.1f} s of the "
              f"processor, {model.n_iter_} iterations", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
