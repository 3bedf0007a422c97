"""A progress line on standard error, for long fits with verbose=1."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

SECONDS_BETWEEN = 5.0
"""Between two lines where standard error is a file and not a terminal."""


def progress(
    items: Iterable[Item], total: int, label: str, enabled: bool, note: Callable[[], str] = str
) -> Iterator[Item]:
    """Yield the items; with `enabled`, show a line that counts them and estimates the time left.

    `note` returns what else the line says, such as a measure so far. A loop that ends early closes its line.
    """
    done, shown = 0, -SECONDS_BETWEEN
    start = time.monotonic()
    try:
        for done, item in enumerate(items, 1):
            yield item
            if enabled and (sys.stderr.isatty() or time.monotonic() - shown >= SECONDS_BETWEEN or done == total):
                shown = time.monotonic()
                spent = time.monotonic() - start
                bar = "#" * (30 * done // total)
                left = spent / done * (total - done)
                line = f"{label} [{bar:<30}] {done}/{total}  {spent:.0f} s, {left:.0f} s left{note()}"
                sys.stderr.write(f"\r{line} ")
                sys.stderr.flush()
    finally:
        if enabled and done:
            sys.stderr.write("\n")
