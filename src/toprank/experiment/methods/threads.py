"""`limited_threads`: limit the threads of libraries without a thread parameter."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits


def limited_threads(n_jobs: int | None) -> Any:
    """Context in which OpenMP and linear algebra use at most n_jobs threads; None and -1: no limit."""
    return threadpool_limits(n_jobs if n_jobs is not None and n_jobs > 0 else None)
