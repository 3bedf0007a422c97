"""A seed from a `random_state`: None means 0, so that a fit can be repeated."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """Return a seed drawn from a random state, for generators of its own; the same for an int or None each time.

    Examples
    --------
    >>> seed_of(None) == seed_of(0) != seed_of(1)
    True
    """
    return int(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))
