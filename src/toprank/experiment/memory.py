"""A memory limit for a trial: it fails with MemoryError instead of bringing the machine down."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

GIGABYTE = 10**9
SHARE_OF_MACHINE = 0.9
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files that hold the memory limit of a container."""


def machine_memory() -> int | None:
    """Bytes of memory of this machine or container; None if unknown."""
    found = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # the word "max" = no limit
            found.append(int(Path(file).read_text(encoding="ascii")))
    return min(found, default=None)


def cap_in_bytes(limit: float | str | None) -> int | None:
    """Limit in bytes for `trial_memory` of a protocol; None = no limit."""
    if limit is None:
        return None
    if isinstance(limit, str):  # "auto"
        memory = machine_memory()
        return None if memory is None else int(SHARE_OF_MACHINE * memory)
    return int(limit * GIGABYTE)


@contextlib.contextmanager
def memory_cap(limit: float | str | None) -> Iterator[None]:
    """Limit the memory of this process inside the block; no effect if the system has no such limit.

    On Linux, RLIMIT_DATA counts all private memory that can be written to, wherever it was allocated.
    """
    cap = cap_in_bytes(limit)
    if resource is None or cap is None:
        yield
        return
    before, highest = resource.getrlimit(resource.RLIMIT_DATA)
    if highest != resource.RLIM_INFINITY:
        cap = min(cap, highest)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, highest))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, highest))


def out_of_memory(limit: float | str | None) -> str:
    """Reason for a trial that ran out of memory."""
    cap = cap_in_bytes(limit)
    return "out of memory" if cap is None else f"out of memory (trial_memory: {cap / GIGABYTE:.3g} GB)"
