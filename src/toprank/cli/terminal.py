"""`Terminal`: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Span, Text

from toprank.errors import InputError
from toprank.words.plain import plain
from toprank.words.visible import UNSAFE, visible

WIDTH = 100
"""Width if the output is not a terminal and COLUMNS is not set."""

FALSE_ALARM = "sklearn/utils/parallel.py"
"""Where scikit-learn warns by mistake if two threads fit models: one reads filters that the other has just reset."""


class SafeConsole(Console):
    """A console that escapes control characters in names, cells and files; only its own take effect."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what is printed, escaped before widths are measured, so that tables stay aligned."""
        for segment in super().render(_with_escapes(renderable), options):
            is_ours = segment.control is not None
            yield segment if is_ours else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError again: `run` handles it, while rich exits with code 1."""
        raise  # noqa: PLE0704


def _with_escapes(part: RenderableType) -> RenderableType:
    """Return text, or a table, with control characters escaped."""
    if isinstance(part, str):
        return visible(part)
    if isinstance(part, Text):
        return _text_with_escapes(part) if UNSAFE.search(part.plain) else part
    elif isinstance(part, Group):
        return Group(*map(_with_escapes, part.renderables))
    elif isinstance(part, Padding):
        part.renderable = _with_escapes(part.renderable)
    elif isinstance(part, Table):
        for column in part.columns:
            column.header = _with_escapes(column.header)
            column._cells = [_with_escapes(cell) for cell in column._cells]
    return part


def _text_with_escapes(text: Text) -> Text:
    """Return an escaped text that keeps its styles in place."""
    parts = [visible(character) for character in text.plain]
    places = list(accumulate(map(len, parts), initial=0))
    out = text.copy()
    out.plain = "".join(parts)
    last = len(parts)
    out.spans = [Span(places[min(s.start, last)], places[min(s.end, last)], s.style) for s in text.spans]
    return out


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text literally: square brackets in user data are not markup."""
    console = SafeConsole(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


class Terminal:
    """The output of a command: with `as_json` only the result of `finish`, with `quiet` no progress, notes or hints."""

    keep_hint = " Hint: --set keep_columns=NAME keeps a column."
    """What a note on columns left out ends with; empty for a command without --set."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.out, self.err = make_console(), make_console(stderr=True)
        self.notes: list[str] = []
        self.noted_columns: set[str] = set()
        self.unread: list[str] = []
        self._unread_at = 0
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self.started

    @property
    def shows_progress(self) -> bool:
        """True if progress should be shown: on a terminal, without --json and --quiet."""
        return not (self.as_json or self.quiet) and self.err.is_terminal

    def show(self, *parts: RenderableType) -> None:
        """Print parts of the result in order; strings wrap at words."""
        if self.as_json:
            return
        with self.out.capture() as captured:
            for part in parts:
                self.out.print(Text(part) if isinstance(part, str) else part)
        text = captured.get()
        if not self.out.is_terminal:  # rich pads lines with spaces, which are useless in a file
            text = "\n".join(line.rstrip() for line in text.split("\n"))
        self.out.file.write(text)

    def write(self, text: str) -> None:
        """Print lines without wrapping."""
        self.out.file.write(f"{visible(text)}\n")

    def heading(self, text: str) -> None:
        """Print a blank line and a title."""
        self.show(Text.assemble("\n", (text, "bold")))

    def hint(self, text: str) -> None:
        """Print a hint on what to do next; lines that wrap keep the indent of the first."""
        if not self.quiet:
            start = text.lstrip(" ")
            self.show(Padding(Text(start, style="dim"), (0, 0, 0, len(text) - len(start))))

    def note(self, text: str, column: str | None = None) -> None:
        """Keep a note for the user until `finish` prints it; a command that fails prints only its error.

        `column`: the note suggests to leave this column out, so a warning about its many categories is dropped.
        """
        line = " ".join(text.split())
        if line not in self.notes:
            self.notes.append(line)
        if column is not None:
            self.noted_columns.add(column)

    @contextmanager
    def working(self, what: str, *, is_scoring: bool = False) -> Iterator[Callable[[str], None]]:
        """Show a status line with the time spent while the block runs; warnings in it become notes.

        With `is_scoring`, the block scores a whole file, and a warning that the file is written in another format than
        in training is an error. Yields a function that changes the text of the line.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = partial(self._note_warning, is_scoring)
            if not self.shows_progress:
                yield lambda text: None
                return
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            with Progress(*columns, console=self.err, transient=True) as progress:
                task = progress.add_task(what)
                yield lambda text: progress.update(task, description=text)

    def _note_warning(
        self,
        is_scoring: bool,
        message: Warning | str,
        category: type[Warning],
        filename: str = "",
        *_: Any,
        **__: Any,
    ) -> None:
        refusal = getattr(message, "refusal", None)
        if is_scoring and refusal is not None:
            raise InputError(refusal)
        left_out = getattr(message, "columns", ())
        is_known = getattr(message, "column", None) in self.noted_columns
        is_known |= filename.replace("\\", "/").endswith(FALSE_ALARM)
        is_known |= bool(left_out) and self.noted_columns.issuperset(left_out)
        if issubclass(category, UserWarning) and not is_known:  # others are about code, not user data
            text = str(message)
            cells = getattr(message, "cells", "")
            if cells and cells not in self.unread:
                self.unread.append(cells)
                if len(self.unread) > 1:  # one note on all of these columns replaces that on the first
                    self.notes[self._unread_at] = (
                        f"Cells that hold no number or date count as missing: {', '.join(self.unread)}. Hint: fix such "
                        "cells, or leave them empty."
                    )
                    return
                self._unread_at = len(self.notes)
            if left_out:  # reworded for the command line
                text = f"{text.partition(' Hint:')[0].replace(' of X ', ' ', 1)}{self.keep_hint}"
                self.noted_columns.update(left_out)
            self.note(text)

    def finish(self, result: dict[str, Any]) -> None:
        """Print the notes on standard error; with --json print notes and result as one JSON object instead.

        JSON escapes control characters in its own way, so that a reader gets them back.
        """
        if not (self.quiet or self.as_json):
            for line in self.notes:
                self.err.print(Text.assemble(("Note: ", "yellow"), line), soft_wrap=True)
        if self.as_json:
            text = json.dumps(plain(result | {"notes": self.notes}), indent=2, ensure_ascii=False)
            self.out.file.write(UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text) + "\n")
