"""A progress line on standard error, for long fits with verbose=1."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, label: str, enabled: bool) -> Iterator[Item]:
    """Yield the items; with `enabled`, show a line that counts them and estimates the time left."""
    start = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        if enabled:
            spent = time.monotonic() - start
            bar = "#" * (30 * done // total)
            left = spent / done * (total - done)
            end = "\n" if done == total else ""
            sys.stderr.write(f"\r{label} [{bar:<30}] {done}/{total}  {spent:.0f} s, {left:.0f} s left {end}")
            sys.stderr.flush()
