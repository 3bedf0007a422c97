"""`toprank compare`: which model to use for a table."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from toprank.cli.csv_text import CsvFormat
from toprank.cli.experiment import Jobs, check_packages, show_progress
from toprank.cli.fit import read_history, read_later
from toprank.cli.options import (
    Budget,
    Drop,
    Encoding,
    Group,
    History,
    Ids,
    Label,
    Positive,
    Separator,
    note_large_budget,
    parse_budget,
    parse_value,
)
from toprank.cli.reading import check_readable
from toprank.cli.show import Facts, grid, percent
from toprank.cli.terminal import Terminal
from toprank.cli.writing import write_table
from toprank.errors import InputError
from toprank.register import BY_COMMAND, BY_NAME
from toprank.words.counts import count, plural

if TYPE_CHECKING:
    import polars

    from toprank.experiment.leaderboard import BoardEntry, Leaderboard

MINUTES = 2.5
MORE_TIME = 4
"""How many times the minutes are suggested if methods got no time."""

SHORT_UNITS = {"conditions and coefficients": "cond. + coef.", "conditions and bins": "cond. + bins"}
"""Units of sizes in the leaderboard, so that a line holds a method."""

Methods = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Methods, separated by commas; 'all' for all of them.")
]
TestFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Judge on the cases of this file, such as later ones, instead of folds."),
]
Folds = Annotated[
    int | None,
    typer.Option(metavar="N", min=2, help="Folds of the cross-validation (default: 5; large tables: one holdout)."),
]


def compare(
    terminal: Terminal,
    table: History,
    label: Label,
    id_columns: Ids = None,
    group: Group = None,
    drop: Drop = None,
    positive: Positive = None,
    budget: Budget = None,
    methods: Methods = None,
    test: TestFile = None,
    folds: Folds = None,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Repeats of the cross-validation.")] = 1,
    minutes: Annotated[
        float, typer.Option(metavar="N", min=0.01, help="Approximate time limit; slower methods are left out.")
    ] = MINUTES,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write (default: FILE-compare).")
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Compare rankers and baselines on a file of past cases, and recommend one.

    \b
    toprank compare history.csv --label fraud
    toprank compare history.csv --label fraud --test later.csv
    toprank compare history.csv --label fraud --budget 500 --methods metaap,xgboost --minutes 10
    """
    from toprank.workflow import recommend

    check_readable(table)
    if test is not None:
        check_readable(test)
        if folds is not None or repeats > 1:
            raise InputError("--test replaces the folds; expected no --folds or --repeats. Hint: leave them out.")
    check_packages("toprank compare", "pandas")
    share = parse_budget(budget)
    folder = out or Path(f"{table.name.split('.')[0]}-compare")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"The output {folder} is a file, expected a folder. Hint: choose another --out.")
    if not folder.parent.is_dir():
        raise InputError(f"Cannot write {folder}: {folder.parent} does not exist. Hint: create the folder first.")
    left_out = {"--id": id_columns, "--drop": drop, "--group": None if group is None else [group]}
    csv_format = CsvFormat.from_options(sep, encoding)
    features, values, pos_label, groups = read_history(table, label, positive, left_out, terminal, csv_format)
    later = read_later(test, label, features, values, pos_label, terminal, csv_format)
    judged = None if later is None else (later[0], later[1] == pos_label)
    note_large_budget(share, len(values if later is None else later[1]), "--budget", (test or table).name, terminal)
    with terminal.working("Preparing"):
        names = _chosen(methods)
    how = {"methods": names, "budget": share, "n_splits": folds, "n_repeats": repeats, "minutes": minutes,
           "groups": groups}  # fmt: skip
    board = _run(features, values == pos_label, judged, how | {"n_workers": jobs}, terminal)
    written = _write(board, folder, table.name, terminal)
    options = {"--label": [label], "--id": id_columns, "--group": group and [group], "--drop": drop,
               "--positive": positive and [positive], "--sep": sep and [sep],
               "--encoding": encoding and [encoding]}  # fmt: skip
    advice = recommend(board)
    fitted, command = next_command(advice.candidates, table, options, budget)
    facts = {name: getattr(board, name) for name in (
        "n_cases", "n_positives", "n_splits", "judged_by", "share", "left_out")}  # fmt: skip
    terminal.finish(facts | {
        "leaderboard": board.frame().to_dicts(), "not_tried": not_tried(methods),
        "recommended": None if advice.entry is None else advice.entry.name, "recommendation": advice.text,
        "next": command, "files": written,
    })  # fmt: skip
    _print(board, table.name, None if test is None else test.name, minutes, not_tried(methods), written, terminal)
    if fitted is not None and not (terminal.quiet or terminal.as_json):
        _print_command(f"Next{_instead(fitted, board)}", command, terminal)
        if not fitted.is_readable:
            readable, command = next_command((e for e in board.entries if e.is_readable), table, options, budget)
            if readable is not None:
                _print_command(f"Or, as a readable model, {readable.title}", command, terminal)


def _chosen(methods: str | None) -> list[str] | None:
    """Return the names of the methods to compare; all are checked before any work is done."""
    from toprank.experiment.registry import find_method, list_methods

    if methods is None:
        return None
    if methods.strip() == "all":
        return [method.name for method in list_methods()]
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise InputError("--methods needs names such as metaap,xgboost. Hint: leave it out for the default methods.")
    return [find_method(name).name for name in names]


def _run(
    features: polars.DataFrame,
    is_positive: np.ndarray,
    judged: tuple[polars.DataFrame, np.ndarray] | None,
    how: Mapping[str, Any],
    terminal: Terminal,
) -> Leaderboard:
    """Run the comparison and show its progress."""
    from toprank.experiment import compare as compare_methods

    n_positives = int(is_positive.sum())
    fewest, folds = min(n_positives, features.height - n_positives), how["n_splits"] or 5
    least = 2 if judged is not None else 2 * folds
    if fewest < least:
        inside = "" if judged is not None else f" for {folds} folds"
        raise InputError(
            f"The table has {plural(fewest, 'case')} of the rarer outcome, expected at least {least}{inside}. "
            "Hint: use fewer --folds, or collect more cases."
        )
    given: dict[str, Any] = {} if judged is None else {"X_test": judged[0], "y_test": judged[1]}
    with show_progress(terminal) as update:
        return compare_methods(features, is_positive, **given, **how, on_progress=update)


def _write(board: Leaderboard, folder: Path, table: str, terminal: Terminal) -> list[Path]:
    """Write the table and, if matplotlib is installed, the plot."""
    folder.mkdir(exist_ok=True)
    written = [folder / "leaderboard.csv"]
    write_table(board.frame(), written[0])
    try:
        from toprank.experiment.comparing import draw, draw_price

        with terminal.working("Drawing"):
            written.append(draw(board, folder / "leaderboard.png", table))
            price = draw_price(board, folder / "price_of_reading.png")
        written += [] if price is None else [price]
    except ImportError as error:
        terminal.note(f"No plot was drawn: {error}")
    return written


# --- the next command ---------------------------------------------------------------------------------------


def next_command(
    entries: Iterable[BoardEntry], table: Path, options: Mapping[str, Sequence[str] | None], budget: str | None
) -> tuple[BoardEntry | None, str | None]:
    """Return the first of these methods that the command line can fit, and the command, with the same options."""
    for entry in entries:
        command = fit_command(entry, table, options, budget)
        if command is not None:
            return entry, command
    return None, None


def fit_command(
    entry: BoardEntry, table: Path, options: Mapping[str, Sequence[str] | None], budget: str | None
) -> str | None:
    """Return the command that fits a method with the setting chosen on most splits; None if there is none."""
    from toprank.experiment.registry import find_method

    method = find_method(entry.name)
    known = BY_NAME.get(type(method.make(**entry.setting)).__name__)
    model = None if known is None else known.command
    if model is None or method.reads != "frame":
        return None
    settings: list[str] = []
    for name, value in entry.options.items():
        if parse_value(str(value)) != value:  # an object, which cannot be given on a command line
            return None
        settings += ["--set", f"{name}={value}"]
    parts = ["toprank", "curve" if model == "cost-curve" else "fit", str(table)]
    for option, values in options.items():
        parts += [part for value in values or () for part in (option, value)]
    if model == "cost-curve":
        parts += ([] if budget is None else ["--k", budget]) + settings + ["-o", "curve.toprank"]
    else:
        parts += ["--model", model, *([] if budget is None else ["--budget", budget]), *settings]
        parts += ["-o", "model.toprank"]
    return shlex.join(parts)


def _instead(fitted: BoardEntry, board: Leaderboard) -> str:
    """Return why the next command fits another model than the recommended one, and how good that is; else nothing."""
    recommended = board.recommended
    if recommended is None or fitted is recommended:
        return ""
    behind = f"{100 * fitted.gap.value:z.1f} points behind the best"
    compared = {"best": "the best", "level": "level with the best"}.get(board.verdict(fitted), behind)
    return f", with {fitted.title}: it is {compared}, and no command fits {recommended.title}"


# --- what is printed ----------------------------------------------------------------------------------------


def _print(
    board: Leaderboard, table: str, test: str | None, minutes: float, others: list[str], written: list[Path],
    terminal: Terminal,
) -> None:  # fmt: skip
    k = count(max(1, round(board.share * board.n_cases)))
    rate = percent(board.n_positives / board.n_cases)
    judged = board.judged_by if test is None else f"the cases of {test}"
    of = table if test is None else f"{table}, judged on {test}"
    terminal.show(f"{of}: {plural(board.n_cases, 'case')}, {count(board.n_positives)} positive ({rate})")
    terminal.show(f"  {plural(len(board.entries), 'method')} compared by {judged}")
    _print_left_out(board.left_out, minutes, others, terminal)
    rows = []
    for place, entry in enumerate(board.entries, 1):
        ap = entry.average_precision
        level = "best" if place == 1 else f"{-100 * entry.gap.value:z.1f} {board.verdict(entry)}"
        half = f" ±{(ap.high - ap.low) / 2:.3f}" if board.can_tell else ""
        figures = [f"{ap.value:.3f}{half}", percent(entry.precision), level]
        size = entry.size_in_words
        for unit, short in SHORT_UNITS.items():
            size = size.replace(unit, short)
        readable = "yes" if entry.is_readable else ""
        mark = "*" if entry is board.recommended else " "
        seconds = f"{1000 * entry.seconds:.0f} ms" if entry.seconds < 1 else f"{entry.seconds:.1f} s"
        rows.append([f"{place:>2}{mark} {entry.title}", *figures, size, readable, seconds])
    columns = [("method", "left"), ("AP", "right"), ("hits", "right"), ("gap, points", "right"), ("size", "right"),
               ("readable", "left"), ("fit", "right")]  # fmt: skip
    terminal.heading("Leaderboard")
    terminal.show(grid(columns, rows))
    terminal.show(f"  hits: share of positives among the first {percent(board.share)} of the cases, {k} of all;")
    terminal.show("  level: the gap to the best may be noise. ± is half the 95 % interval. *: recommended.")
    terminal.heading("Recommendation")
    terminal.show(board.recommendation())
    price = board.price_of_reading()
    if price:
        terminal.heading("The price of reading")
        terminal.show(*price)
    terminal.hint("\nWritten: " + ", ".join(str(path) for path in written))


def not_tried(methods: str | None) -> list[str]:
    """Return the models of this library that no default method fits, by their names as methods; none with --methods."""
    from toprank.experiment.comparing import METHODS
    from toprank.experiment.leaderboard import OWN
    from toprank.experiment.registry import find_method

    if methods is not None:
        return []
    tried = {type(method.make()).__name__ for method in map(find_method, METHODS) if method.family == OWN}
    return [name for name, entry in BY_COMMAND.items() if entry.name not in tried]


def _print_left_out(left_out: Mapping[str, str], minutes: float, others: list[str], terminal: Terminal) -> None:
    """Print which methods are missing from the leaderboard: no time left, not installed, failed or not tried."""
    from toprank.experiment.leaderboard import NO_TIME, NOT_INSTALLED

    late = [title for title, reason in left_out.items() if reason.startswith(NO_TIME)]
    lacking: dict[str, list[str]] = {}
    for title, reason in left_out.items():
        if reason.startswith(NOT_INSTALLED):
            lacking.setdefault(reason.partition(": ")[2], []).append(title)
    more = f"--minutes {minutes:g} was not enough; more fit in with --minutes {MORE_TIME * minutes:g}"
    lines = [("no time left", f"{', '.join(late)}: {more}")] if late else []
    lines += [("not installed", f"{', '.join(titles)}: {install}") for install, titles in lacking.items()]
    known = {*late, *(title for titles in lacking.values() for title in titles)}
    lines += [("failed", f"{title}: {reason}") for title, reason in left_out.items() if title not in known]
    if others:
        lines.append(("not tried", f"{', '.join(others)}: compare them with --methods {','.join(others)}"))
    if lines:
        terminal.heading("Left out")
        terminal.show(Facts(lines))


def _print_command(title: str, command: str | None, terminal: Terminal) -> None:
    """Print a command, unwrapped so that it can be copied."""
    terminal.hint(f"\n{title}:")
    terminal.out.print(f"  {command}", style="dim", soft_wrap=True)
