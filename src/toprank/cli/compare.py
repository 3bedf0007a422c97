"""`toprank compare`: which model to take for one table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.errors import InputError
from toprank.cli.experiment import Jobs, check_packages, show_progress
from toprank.cli.options import (
    AsJson,
    Debug,
    Encoding,
    Ids,
    Label,
    Positive,
    Quiet,
    Separator,
    note_large_budget,
    parse_budget,
    parse_value,
)
from toprank.cli.terminal import Terminal
from toprank.tree.counts import count, plural

if TYPE_CHECKING:
    import polars

    from toprank.experiment.comparing import Entry, Leaderboard

MINUTES = 2.5


def compare(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="Past cases: CSV, TSV or Parquet.")],
    label: Label,
    id_columns: Ids = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out: a,b; may be repeated.")
    ] = None,
    positive: Positive = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="CASES", help="Cases that can be checked: 500, 2% (default: as many as positives)."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods with commas between them; 'all' for every one.")
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Folds of the cross-validation.")] = 5,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="How often the folds are drawn.")] = 1,
    minutes: Annotated[
        float, typer.Option(metavar="N", min=0.01, help="Time it may take, about; slow methods are left out.")
    ] = MINUTES,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write (default: FILE-compare).")
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    r"""Compare rankers and baselines on a file of past cases, and say which to take.

    \b
    toprank compare history.csv --label fraud
    toprank compare history.csv --label fraud --budget 500 --methods metaap,xgboost --minutes 10
    """
    terminal = Terminal(as_json=as_json, quiet=quiet)
    from toprank.cli.csv_text import CsvFormat
    from toprank.cli.fit import read_history
    from toprank.cli.reading import check_readable

    check_readable(table)
    check_packages("toprank compare", "pandas")
    share = parse_budget(budget)
    folder = out or Path(f"{table.name.split('.')[0]}-compare")
    _check_folder(folder)
    left_out, csv_format = {"--id": id_columns, "--drop": drop}, CsvFormat.from_options(sep, encoding)
    features, values, pos_label = read_history(table, label, positive, left_out, terminal, csv_format)
    note_large_budget(share, len(values), "--budget", table.name, terminal)
    with terminal.working("Preparing"):
        names = _chosen(methods)
    board = _run(features, values == pos_label, names, share, folds, repeats, minutes, jobs, terminal)
    written = _write(board, folder, table.name, terminal)
    facts = {name: getattr(board, name) for name in ("n_cases", "n_positives", "n_splits", "share", "left_out")}
    options = {"--label": [label], "--id": id_columns, "--drop": drop, "--positive": positive and [positive],
               "--sep": sep and [sep], "--encoding": encoding and [encoding]}  # fmt: skip
    fitted, command = next_command(board, table, options, budget)
    board_facts = {"leaderboard": board.frame().to_dicts(), "advice": board.advice(), "next": command, "files": written}
    terminal.finish(facts | board_facts)
    _print(board, table.name, written, terminal)
    if fitted is not None and not (quiet or as_json):
        _print_next(board, fitted, command, terminal)


def _check_folder(folder: Path) -> None:
    """Raise InputError where the folder could not be written to, before the work begins."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"The output {folder} is a file, expected a folder. Hint: choose another --out.")
    if not folder.parent.is_dir():
        raise InputError(f"Cannot write {folder}: {folder.parent} does not exist. Hint: create the folder first.")


def _chosen(methods: str | None) -> list[str] | None:
    """Names of the methods to compare; every name is checked before the work begins."""
    from toprank.experiment.registry import find_method, list_methods

    if methods is None:
        return None
    if methods.strip() == "all":
        return [method.name for method in list_methods()]
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise InputError("--methods needs names such as metaap,xgboost. Hint: leave it out for the usual ones.")
    return [find_method(name).name for name in names]


def _run(
    features: polars.DataFrame, is_positive: Any, names: list[str] | None, budget: int | float | None, folds: int,
    repeats: int, minutes: float, jobs: int | None, terminal: Terminal,
) -> Leaderboard:  # fmt: skip
    """Run the comparison and show its progress."""
    from toprank.experiment import compare as compare_methods

    n_positives = int(is_positive.sum())
    fewest = min(n_positives, features.height - n_positives)
    if fewest < 2 * folds:
        raise InputError(
            f"The table has {plural(fewest, 'case')} of the rarer outcome, expected at least {2 * folds} for {folds} "
            "folds. Hint: use fewer --folds, or collect more cases."
        )
    with show_progress(terminal) as update:
        return compare_methods(features, is_positive, methods=names, budget=budget, n_splits=folds, n_repeats=repeats,
                               minutes=minutes, n_workers=jobs, on_progress=update)  # fmt: skip


def _write(board: Leaderboard, folder: Path, table: str, terminal: Terminal) -> list[Path]:
    """Write the table and, where matplotlib is installed, the plot."""
    from toprank.cli.writing import write_table

    folder.mkdir(exist_ok=True)
    written = [folder / "leaderboard.csv"]
    write_table(board.frame(), written[0])
    try:
        from toprank.experiment.comparing import draw

        with terminal.working("Drawing"):
            written.append(draw(board, folder / "leaderboard.png", table))
    except ImportError as error:
        terminal.note(f"No plot was drawn: {error}")
    return written


# --- the next command ---------------------------------------------------------------------------------------


def next_command(
    board: Leaderboard, table: Path, options: Mapping[str, Sequence[str] | None], budget: str | None
) -> tuple[Entry | None, str | None]:
    """Return the method to go on with, and the command that fits it on the same table with the same options.

    It is the advised one; where the command line does not fit that, the best readable one that it fits, else the best.
    Nothing where there is no advice.
    """
    if board.advised is None:
        return None, None
    others = sorted(board.entries, key=lambda entry: not entry.is_readable)  # each part stays best first
    for entry in (board.advised, *others):
        found = fit_options(entry)
        if found is None:
            continue
        model, settings = found
        parts = ["toprank", "curve" if model == "cost-curve" else "fit", str(table)]
        for option, values in options.items():
            parts += [part for value in values or () for part in (option, value)]
        if model == "cost-curve":
            parts += ([] if budget is None else ["--k", budget]) + settings + ["-o", "curve.toprank"]
        else:
            parts += ["--model", model, *([] if budget is None else ["--budget", budget]), *settings]
            parts += ["-o", "model.toprank"]
        return entry, shlex.join(parts)
    return None, None


def fit_options(entry: Entry) -> tuple[str, list[str]] | None:
    """Return the model of `toprank fit` and the --set options that make a method with its setting; None without one."""
    from toprank.cli.fit import ESTIMATORS, make_estimator
    from toprank.experiment.registry import find_method

    method = find_method(entry.name)
    estimator = method.make(**entry.setting)
    names = {title: name for name, title in ESTIMATORS.items()}
    model = names.get(type(estimator).__name__)
    if model is None or method.reads != "frame":
        return None
    usual = make_estimator(model, None, {}, ()).get_params(deep=False)
    settings: list[str] = []
    for name, value in estimator.get_params(deep=False).items():
        if name == "n_jobs" or value == usual[name]:
            continue
        if parse_value(str(value)) != value:  # an object, which no command line can say
            return None
        settings += ["--set", f"{name}={value}"]
    return model, settings


# --- what is printed ----------------------------------------------------------------------------------------


def _print(board: Leaderboard, table: str, written: list[Path], terminal: Terminal) -> None:
    from toprank.cli.show import facts, grid, percent

    k = count(max(1, round(board.share * board.n_cases)))
    terminal.show(f"{table}: {plural(board.n_cases, 'case')}, {count(board.n_positives)} positive "
                  f"({percent(board.n_positives / board.n_cases)}), {plural(board.n_splits, 'split')}")  # fmt: skip
    rows = []
    for place, entry in enumerate(board.entries, 1):
        ap = entry.average_precision
        level = "best" if place == 1 else f"{-100 * entry.gap.value:.1f} {board.verdict(entry)}"
        half = f" ±{(ap.high - ap.low) / 2:.3f}" if board.can_tell else ""
        figures = [f"{ap.value:.3f}{half}", percent(entry.precision), level]
        readable, size = (
            "yes" if entry.is_readable else "",
            entry.size_in_words.replace(" and coefficients", " + coef."),
        )
        rows.append([f"{place:>2}  {entry.title}", *figures, size, readable, _seconds(entry.seconds)])
    columns = [("method", "left"), ("AP", "right"), ("hits", "right"), ("gap, points", "right"), ("size", "right"),
               ("readable", "left"), ("fit", "right")]  # fmt: skip
    terminal.heading("Leaderboard")
    terminal.show(grid(columns, rows))
    terminal.show(f"  hits: share of positives among the first {percent(board.share)} of the cases, {k} of all;")
    terminal.show("  level: the gap to the best may be noise. ± is half the 95 % interval.")
    terminal.heading("Advice")
    terminal.show(board.advice())
    if board.left_out:
        terminal.heading("Not compared")
        terminal.show(facts(board.left_out.items()))
        if any("time" in reason for reason in board.left_out.values()):
            terminal.hint("--minutes gives slow methods the time they need.")
    terminal.hint("Written: " + ", ".join(str(path) for path in written))


def _print_next(board: Leaderboard, entry: Entry, command: str | None, terminal: Terminal) -> None:
    """Print the command that fits a method, on one line however long it is, so that it can be copied."""
    advised = board.advised
    because = "" if advised is None or entry is advised else f", with {entry.title}, as no command fits {advised.title}"
    terminal.hint(f"\nNext{because}:")
    terminal.out.print(f"  {command}", style="dim", soft_wrap=True)


def _seconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
