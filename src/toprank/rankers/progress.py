"""What a long fit is doing, for verbose=1: a line on standard error, or whatever `reported_to` names instead."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")

SECONDS_BETWEEN = 5.0
"""Between two lines where standard error is a file and not a terminal."""

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def reported_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Send progress to a function, as text, in place of standard error: for callers with their own status line."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def stage(text: str, enabled: bool) -> None:
    """With `enabled`, say what comes next: a step of a fit that cannot be counted."""
    listener = _listener.get()
    if enabled and listener is not None:
        listener(text)
    elif enabled:
        sys.stderr.write(f"{text}\n")


def progress(
    items: Iterable[Item], total: int, label: str, enabled: bool, note: Callable[[], str] = str
) -> Iterator[Item]:
    """Yield the items; with `enabled`, show a line that counts them and estimates the time left.

    `note` returns what else the line says, such as a measure so far. A loop that ends early closes its line.
    """
    done, shown = 0, -SECONDS_BETWEEN
    start, listener = time.monotonic(), _listener.get()
    if enabled and listener is not None:
        listener(f"{label}, 0 of {total} done")
    try:
        for done, item in enumerate(items, 1):
            yield item
            spent = time.monotonic() - start
            left = spent / done * (total - done)
            if enabled and listener is not None:
                listener(f"{label}, {done} of {total} done, {left:.0f} s left{note()}")
            elif enabled and (sys.stderr.isatty() or time.monotonic() - shown >= SECONDS_BETWEEN or done == total):
                shown = time.monotonic()
                bar = "#" * (30 * done // total)
                line = f"{label} [{bar:<30}] {done}/{total}  {spent:.0f} s, {left:.0f} s left{note()}"
                sys.stderr.write(f"\r{line} ")
                sys.stderr.flush()
    finally:
        if enabled and done and listener is None:
            sys.stderr.write("\n")
