"""All commands together, and what happens when one fails."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer
from rich.text import Text

from toprank.cli import INTERRUPTED, PIPE_CLOSED
from toprank.cli.compare import compare
from toprank.cli.curve import curve
from toprank.cli.demo import demo
from toprank.cli.describe import describe
from toprank.cli.diff import diff
from toprank.cli.distill import distill
from toprank.cli.drift import drift
from toprank.cli.evaluate import evaluate
from toprank.cli.experiment import benchmark, export, methods, resume, show
from toprank.cli.explain import explain
from toprank.cli.fit import fit
from toprank.cli.terminal import Terminal, make_console
from toprank.cli.topk import topk
from toprank.cli.warmup import warmup
from toprank.errors import InputError
from toprank.words.visible import visible

OF_THE_WORLD = (OSError, ImportError, MemoryError)
"""Errors from files, missing packages and lack of memory."""

CHECKS_OF_SKLEARN = "sklearn.utils"
"""The package in which scikit-learn checks parameters and tables; it raises errors of several classes."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress, notes or hints.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

app = typer.Typer(
    name="toprank",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _help(text: str | None) -> str:
    r"""Return a docstring the way typer wants it: `\b`, which keeps lines from being joined, is one character."""
    return inspect.cleandoc(text or "").replace(r"\b", "\b")


def with_terminal(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options --json, --quiet and --debug, which arrive as its first argument, a Terminal."""

    def run_command(*, as_json: AsJson = False, quiet: Quiet = False, debug: Debug = False, **given: Any) -> None:
        command(Terminal(as_json=as_json, quiet=quiet), **given)

    own, shared = (list(inspect.signature(each, eval_str=True).parameters.values()) for each in (command, run_command))
    options = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own[1:], *shared[:-1])]
    run_command.__name__ = command.__name__
    run_command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run_command.__annotations__ = {each.name: each.annotation for each in options}
    return run_command


for command in (demo, fit, topk, explain, evaluate, describe, diff, curve, distill, drift, compare, benchmark, warmup):
    app.command(help=_help(command.__doc__))(with_terminal(command))

experiment = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Inspect and resume experiments.")
for part in (show, resume, export, methods):
    experiment.command(help=_help(part.__doc__))(with_terminal(part))
app.add_typer(experiment, name="experiment")


def _print_version(value: bool) -> None:
    if value:
        from toprank import __version__

        print(f"toprank {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    r"""Rank rare cases with models a person can read: which cases to check first, and why.

    \b
    toprank demo
    toprank fit history.csv --label fraud --id case_id --budget 500 -o model.toprank
    toprank topk model.toprank new.parquet --k 500 --id case_id -o alerts.csv
    toprank evaluate model.toprank checked.csv --label fraud --k 500
    toprank compare history.csv --label fraud
    """


app.callback(help=_help(_root.__doc__))(_root)


@cache
def _commands() -> Any:
    """All commands with their options, which take typer longer to put together than most commands to run."""
    return typer.main.get_command(app)


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; errors show a traceback only with --debug."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _commands().main(args, prog_name="toprank", standalone_mode=False)
        sys.stdout.flush()
        return _fail("Interrupted.", code) if code == INTERRUPTED else code if isinstance(code, int) else 0
    except BrokenPipeError:
        return _end_quietly()
    except SystemExit as stop:  # what typer makes of a closed pipe
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        return _end_quietly()
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Interrupted.", INTERRUPTED)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own errors, for a command line it cannot parse
            return _fail(*_explain_usage(error))
        if "--debug" in args:
            sys.stderr.write(visible(traceback.format_exc()))
        if is_bad_input(error):
            return _fail(sentence_of(error), 2)
        return _fail(
            f"Internal error in toprank ({type(error).__name__}: {sentence_of(error)}). "
            "Hint: please report it, with the output of the same command with --debug.",
            1,
        )


def _end_quietly() -> int:
    """Return the exit code for a reader that closed the pipe, as `head` does; nothing more is written to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Print a warning that no command turned into a note; escape it, as it may quote user data."""
    sys.stderr.write(f"{category.__name__}: {visible(str(message))}\n")


def _explain_usage(error: Exception) -> tuple[str, int]:
    """Return the message for a command line that cannot be parsed, and the exit code."""
    message = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        return message, 2
    path = context.command_path if context is not None else "toprank"
    text = " ".join(message.split())
    what = "commands" if text.startswith("No such command") else "options"
    hint = "" if "Did you mean" in text else f" Hint: `{path} --help` lists the {what}."
    return f"{text.rstrip('.')}.{hint}" if not text.endswith("?") else text, 2


def _fail(sentence: str, code: int) -> int:
    """Print a message on standard error and return the exit code."""
    if sentence:
        make_console(stderr=True).print(Text(sentence, style="red"), soft_wrap=True)
    return code


def is_bad_input(error: BaseException) -> bool:
    """Return True if an error is about user input; all others are bugs in toprank.

    The library refuses input with `InputError`. A plain ValueError or TypeError comes from Python or numpy, for example
    when our own code adds arrays of different lengths.
    """
    if isinstance(error, (InputError, *OF_THE_WORLD)):
        return True
    if not isinstance(error, ValueError | TypeError):
        return False
    # A check of scikit-learn, judged by the class of the error and by where it was raised.
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    origin = frames[-1].f_globals.get("__name__", "") if frames else ""
    return any(f"{module}.".startswith(f"{CHECKS_OF_SKLEARN}.") for module in (type(error).__module__, origin))


def sentence_of(error: BaseException) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        place = f" {str(error.filename)!r}" if error.filename else ""
        return f"The file{place} cannot be read or written: {error.strerror}."
    if isinstance(error, MemoryError):
        return "Out of memory. Hint: use fewer rows or columns, or Parquet."
    return " ".join(str(error).split()) or type(error).__name__
