"""`Terminal`: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Span, Text

from toprank.words.plain import plain
from toprank.words.visible import UNSAFE, visible

WIDTH = 100
"""Columns where the output is no terminal and COLUMNS is not set."""


class SafeConsole(Console):
    """A console that prints control characters of names, cells and files as escapes, and obeys its own only."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what is printed; escapes are put in before anything is measured, so that tables stay straight."""
        for segment in super().render(_with_escapes(renderable), options):
            is_ours = segment.control is not None
            yield segment if is_ours else Segment(visible(segment.text), segment.style)


def _with_escapes(part: RenderableType) -> RenderableType:
    """Return text, also in tables, with its control characters written as escapes."""
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
    """Return a text with escapes, each style where it was."""
    parts = [visible(character) for character in text.plain]
    places = list(accumulate(map(len, parts), initial=0))
    out = text.copy()
    out.plain = "".join(parts)
    last = len(parts)
    out.spans = [Span(places[min(s.start, last)], places[min(s.end, last)], s.style) for s in text.spans]
    return out


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text as it is: square brackets in a user's data are no markup."""
    console = SafeConsole(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


class Terminal:
    """What a command prints with.

    Parameters
    ----------
    as_json : bool
        Print nothing on standard output but the result of `finish`.
    quiet : bool
        Neither progress nor notes nor hints.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.out, self.err = make_console(), make_console(stderr=True)
        self.notes: list[str] = []
        self.noted_columns: set[str] = set()
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the command began."""
        return time.monotonic() - self.started

    @property
    def shows_progress(self) -> bool:
        """True where somebody watches: a terminal, and neither --json nor --quiet."""
        return not (self.as_json or self.quiet) and self.err.is_terminal

    def show(self, *parts: RenderableType) -> None:
        """Print parts of the result, each after the other; strings are wrapped at words."""
        if self.as_json:
            return
        with self.out.capture() as captured:
            for part in parts:
                self.out.print(Text(part) if isinstance(part, str) else part)
        text = captured.get()
        if not self.out.is_terminal:  # rich pads lines with spaces, which a file need not keep
            text = "\n".join(line.rstrip() for line in text.split("\n"))
        self.out.file.write(text)

    def write(self, text: str) -> None:
        """Print lines that are not to be wrapped."""
        self.out.file.write(f"{visible(text)}\n")

    def heading(self, text: str) -> None:
        """Print a blank line and a title."""
        self.show(Text.assemble("\n", (text, "bold")))

    def hint(self, text: str) -> None:
        """Print what to do next."""
        if not self.quiet:
            self.show(Text(text, style="dim"))

    def note(self, text: str, column: str | None = None) -> None:
        """Remember what the user should know; `finish` says it. A command that fails says its one sentence only.

        `column`: the note says to leave this column out, so that it need not be said again that it has many categories.
        """
        line = " ".join(text.split())
        if line not in self.notes:
            self.notes.append(line)
        if column is not None:
            self.noted_columns.add(column)

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show a status line with the time spent while the block runs; warnings in it become notes.

        Yields a function that changes the text of the line.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = self._note_warning
            if not self.shows_progress:
                yield lambda text: None
                return
            with self._progress(what) as update:
                yield update

    @contextmanager
    def _progress(self, what: str) -> Iterator[Callable[[str], None]]:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as progress:
            task = progress.add_task(what)
            yield lambda text: progress.update(task, description=text)

    def _note_warning(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        left_out = getattr(message, "columns", ())
        is_told = getattr(message, "column", None) in self.noted_columns
        is_told |= bool(left_out) and self.noted_columns.issuperset(left_out)
        if issubclass(category, UserWarning) and not is_told:  # others are about code, not about the user's data
            text = str(message)
            if left_out:  # in the words of the command line
                text = f"{text.partition(' Hint:')[0]} Hint: --set keep_columns=NAME keeps a column."
                self.noted_columns.update(left_out)
            self.note(text)

    def finish(self, result: dict[str, Any]) -> None:
        """Say the notes on standard error; with --json print them and the result as one JSON object instead.

        In JSON the characters that `visible` escapes are escaped as JSON does, so that whoever reads it gets them back.
        """
        if not (self.quiet or self.as_json):
            for line in self.notes:
                self.err.print(Text.assemble(("Note: ", "yellow"), line), soft_wrap=True)
        if self.as_json:
            text = json.dumps(plain(result | {"notes": self.notes}), indent=2, ensure_ascii=False)
            self.out.file.write(UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text) + "\n")
