"""Texts broken into lines, with what belongs together kept on one line."""

from __future__ import annotations

import re
import textwrap

GLUE = "\0"
"""Stands for a space at which a line is not broken."""

BOUND = re.compile(r"(?<=[<>=]) (?=[\d-])| (?=%)")
"""Spaces behind a sign of comparison or before %."""


def wrapped(text: str, width: int, indent: str = "", further: str | None = None) -> list[str]:
    """Lines of a text, broken neither before % nor behind a sign of comparison nor at `GLUE`.

    Parameters
    ----------
    text : str
    width : int
        At least 20 is used.
    indent : str, default ""
    further : str, optional
        Indent of all lines but the first; without it, `indent`.

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
