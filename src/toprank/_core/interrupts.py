"""Ctrl-C during work that must not stop halfway: it is held back, and raised once the work is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends, and then pass it on.

    It does nothing outside the main thread, which is the only one that interrupts reach, or if a program ignores Ctrl-C
    or leaves it to the system.
    """
    is_main = threading.current_thread() is threading.main_thread()
    given = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(given):
        yield
        return
    held: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, given)
        if held:
            given(*held[0])
