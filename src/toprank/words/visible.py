"""`visible`: makes foreign text safe to print, draw or write to a file, whatever characters it holds."""

from __future__ import annotations

import re

# Control characters of both sets; characters that are invisible or change the direction of text; lone surrogates, which
# no encoding can write. Line ends are up to the caller.
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str, *, one_line: bool = False) -> str:
    r"""Return a text with its control and invisible characters written as escapes, such as \x1b and \u202e.

    A terminal obeys escape characters: a column name could clear the screen, or hide the line above. Characters that
    change the writing direction make a name look like another.

    With `one_line`, line ends are escaped too.

    Examples
    --------
    >>> print(visible("red\x1b[31m, right to left\u202e"))
    red\x1b[31m, right to left\u202e
    >>> print(visible("two\nlines", one_line=True))
    two\nlines
    """
    text = UNSAFE.sub(lambda match: escaped(match[0]), text)
    return text.replace("\n", r"\n") if one_line else text


def escaped(character: str) -> str:
    r"""Return the escape of a character: \t, \x1b, and from 0x7f on as in JSON, \u202e."""
    code = ord(character)
    if code < 0x7F:
        return character.encode("unicode_escape").decode()
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(value: object) -> str:
    r"""Return a cell as written, in quotes if it is text; only characters that are not safe to print are escaped.

    Examples
    --------
    >>> print(quoted("north"), quoted("it's"), quoted("a\u200bb"), quoted(2.5))
    'north' "it's" 'a\u200bb' 2.5
    """
    if not isinstance(value, str):
        return repr(value)
    mark = '"' if "'" in value else "'"
    return f"{mark}{visible(value, one_line=True)}{mark}"
