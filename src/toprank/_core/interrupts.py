"""Ctrl-C during work that must not stop halfway: it is held back, and raised once the work is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends, and then pass it on.

    It does nothing outside the main thread, which is the only one that interrupts reach, or if a program ignores Ctrl-C
    or leaves it to the system.
    """
    given = _given_handler()
    if given is None:
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


@contextmanager
def first_interrupt_dropped() -> Iterator[list[int]]:
    """Drop the first Ctrl-C of the block, and add its number to the list that the block gets; pass the others on.

    It does nothing where `interrupts_held_back` does nothing.
    """
    dropped: list[int] = []
    given = _given_handler()
    if given is None:
        yield dropped
        return

    def drop(number: int, frame: Any) -> None:
        if dropped:
            given(number, frame)
        dropped.append(number)

    signal.signal(signal.SIGINT, drop)
    try:
        yield dropped
    finally:
        signal.signal(signal.SIGINT, given)


def _given_handler() -> Callable[[int, Any], Any] | None:
    """The function that Ctrl-C calls; None if there is none, or this is not the thread that interrupts reach."""
    is_main = threading.current_thread() is threading.main_thread()
    given = signal.getsignal(signal.SIGINT) if is_main else None
    return given if callable(given) else None
