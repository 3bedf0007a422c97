"""Wraps text into lines without splitting what belongs together."""

from __future__ import annotations

import re
import textwrap

GLUE = "\0"
"""A space at which lines do not wrap."""

BOUND = re.compile(r"(?<=[<>=]) (?=[\d-])| (?=%)")
"""Spaces after a comparison sign or before %."""


def wrapped(text: str, width: int, indent: str = "", further: str | None = None) -> list[str]:
    """Return the lines of a text, never wrapped before %, after a comparison sign or at `GLUE`.

    A width below 20 counts as 20. `further` is the indent of all lines but the first; without it, `indent`.

    Examples
    --------
    >>> wrapped("age > 3 and the share <= 30 %", 20)
    ['age > 3 and the', 'share <= 30 %']
    """
    lines = textwrap.wrap(
        BOUND.sub(GLUE, text),
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_on_hyphens=False,
    )
    return [line.replace(GLUE, " ") for line in lines]
