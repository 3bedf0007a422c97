"""`limited_threads`: the number of threads for libraries that cannot be told otherwise."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits


def limited_threads(n_jobs: int | None) -> Any:
    """Context in which OpenMP and linear algebra use at most n_jobs threads; None and -1: as many as they like."""
    return threadpool_limits(n_jobs if n_jobs is not None and n_jobs > 0 else None)
