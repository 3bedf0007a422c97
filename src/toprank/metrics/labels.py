"""Labels: which of two is the positive one, for models and metrics alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

PAIRS = (
    ("0", "1"), ("-1", "1"), ("-", "+"), ("false", "true"), ("f", "t"), ("no", "yes"), ("n", "y"),
    ("negative", "positive"), ("neg", "pos"), ("nein", "ja"), ("n", "j"), ("falsch", "wahr"), ("negativ", "positiv"),
    ("non", "oui"), ("faux", "vrai"), ("négatif", "positif"), ("no", "si"), ("no", "sí"), ("no", "sì"), ("não", "sim"),
    ("nao", "sim"), ("nee", "ja"), ("nej", "ja"), ("nie", "tak"),
)  # fmt: skip
"""Usual outcomes in small letters, the negative one first."""
NEGATED = re.compile(r"(?:not?|non|keine?)[ _-]+(?P<positive>.+)")


def usual_positive(outcomes: Sequence[str]) -> str | None:
    """Return the positive one of two outcomes, None if it is not clear.

    Examples
    --------
    >>> usual_positive(["Nein", "Ja"]), usual_positive(["fraud", "no fraud"]), usual_positive(["a", "b"])
    ('Ja', 'fraud', None)
    """
    for negative, positive in (outcomes, outcomes[::-1]) if len(outcomes) == 2 else ():
        low = negative.strip().lower(), positive.strip().lower()
        negated = NEGATED.fullmatch(low[0])
        if low in PAIRS or (negated and negated["positive"] == low[1]):
            return positive
    return None


def default_positive(low: Any, high: Any) -> Any:
    """Return the positive one of two labels in ascending order: that of a usual pair, else the larger.

    Examples
    --------
    >>> default_positive("Ja", "Nein"), default_positive("bad", "good"), default_positive(0, 1)
    ('Ja', 'good', 1)
    """
    return low if usual_positive([str(low), str(high)]) == str(low) else high
