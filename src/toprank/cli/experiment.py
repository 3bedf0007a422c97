"""`toprank benchmark` and `toprank experiment`: run a plan, resume it, inspect it, write its tables and plots."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli.show import grid
from toprank.cli.terminal import Terminal
from toprank.errors import InputError
from toprank.words.counts import plural

if TYPE_CHECKING:
    from toprank.experiment.runner import Progress
    from toprank.experiment.store import Store

STORE = "trials.sqlite"
SECONDS_BETWEEN_LINES = 60.0
"""Without a terminal, a line of progress is written this often."""

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="Trials to run in parallel (default: one per processor)."),
]
Published = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Published runs to show beside ours: CSV with dataset, seed, method, ap_test in %."
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Rerun trials that failed or timed out.")]
TrialMinutes = Annotated[
    float | None,
    typer.Option("--trial-minutes", metavar="N", min=0.001, help="Time limit per trial, in minutes (default: 240)."),
]
TrialMemory = Annotated[
    float | None,
    typer.Option(
        "--trial-memory", metavar="GB", min=0.1, help="Memory limit per trial (default: 90% of the machine's)."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder written by `toprank benchmark`.")]


def benchmark(
    terminal: Terminal,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan in YAML.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with the tables that the plan names (or TOPRANK_DATA)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write (default: toprank-runs/NAME).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run the plan's short version.")] = False,
    published: Published = None,
    jobs: Jobs = None,
    retry: Retry = False,
    trial_minutes: TrialMinutes = None,
    trial_memory: TrialMemory = None,
) -> None:
    r"""Run the experiments of a plan and write their tables and plots; resumes a stopped run.

    \b
    toprank benchmark plan.yaml --data folder
    toprank benchmark plan.yaml --data folder --quick --jobs 2
    """
    if not plan.is_file():
        raise InputError(f"There is no file {plan}. Hint: a plan is a YAML file, see docs/experiments.md.")
    check_packages("toprank benchmark", "yaml", "pandas")
    from toprank.experiment import Plan
    from toprank.experiment.trial import check_plan

    with terminal.working(f"Reading {plan.name}"):
        content = Plan.from_yaml(plan, folder=data, quick=quick)
        content = content.with_limits(trial_minutes=trial_minutes, trial_memory=trial_memory)
        check_plan(content, data)
    folder = out or Path("toprank-runs", content.name + ("-quick" if quick else ""))
    with _store(folder, create=True) as store:
        with terminal.working("Checking the tables"):
            store.keep_plan(content, data)
        _work_off(store, folder, jobs, retry, terminal)
        _finish(store, folder, published, terminal)


def resume(
    terminal: Terminal,
    folder: Folder,
    published: Published = None,
    jobs: Jobs = None,
    retry: Retry = False,
    trial_minutes: TrialMinutes = None,
    trial_memory: TrialMemory = None,
) -> None:
    """Resume a stopped experiment."""
    with _store(folder) as store:
        check_packages("toprank experiment resume", "pandas")
        if trial_minutes is not None or trial_memory is not None:
            limited = store.plan.with_limits(trial_minutes=trial_minutes, trial_memory=trial_memory)
            store.keep_plan(limited, store.folder)
        _work_off(store, folder, jobs, retry, terminal)
        _finish(store, folder, published, terminal)


def show(terminal: Terminal, folder: Folder, published: Published = None) -> None:
    """Show the progress of an experiment and its results so far."""
    with _store(folder, read_only=True) as store:
        _show(store, published, terminal, [])


def export(
    terminal: Terminal,
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write (default: the same folder).")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="Table formats: md,tex,html,txt,csv,parquet.")
    ] = "md",
    published: Published = None,
) -> None:
    """Write the tables and plots of an experiment."""
    with _store(folder, read_only=True) as store:
        _finish(store, out or folder, published, terminal, tuple(part.strip() for part in formats.split(",")))


def methods(terminal: Terminal) -> None:
    """List the methods that plans and `toprank compare` know by name."""
    from toprank.experiment import list_methods

    known = list_methods()
    facts = [
        {"name": m.name, "title": m.title, "family": m.family, "readable": m.is_readable, "needs": m.missing_packages,
         "summary": m.summary}
        for m in known
    ]  # fmt: skip
    terminal.finish({"methods": facts})
    rows = [[m.name, m.family, "yes" if m.is_readable else "", m.summary
             + (f" (needs {', '.join(m.missing_packages)})" if m.missing_packages else "")] for m in known]  # fmt: skip
    terminal.show(grid([("name", "left"), ("family", "left"), ("readable", "left"), ("", "left")], rows))
    terminal.hint("Any of them can follow a sampler, as in smote+xgboost.")


# --- parts --------------------------------------------------------------------------------------------------------


def check_packages(command: str, *packages: str) -> None:
    """Raise ImportError, naming the extra to install, if a package that a command needs is missing."""
    from toprank.datasets.frames import import_optional

    for package in packages:
        import_optional(package, needed_for=command, hint='pip install "toprank[experiment]"')


def _store(folder: Path, *, create: bool = False, read_only: bool = False) -> Store:
    """Return the store of finished trials in a folder."""
    from toprank.experiment import Store

    if create:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {folder}: {error.strerror}. Hint: choose another --out.") from None
    elif not (folder / STORE).is_file():
        raise InputError(f"There is no experiment in {folder} (no {STORE}). Hint: give the folder of --out.")
    return Store(folder / STORE, read_only=read_only)


def _work_off(store: Store, folder: Path, jobs: int | None, retry: bool, terminal: Terminal) -> None:
    """Run what is missing, with a bar; an interrupt says how to go on."""
    from toprank.experiment import run

    with terminal.working("Checking which trials are done"):
        missing = store.missing(retry=retry)
    progress: Progress | None = None
    try:
        with show_progress(terminal) as update:
            for progress in run(store, n_workers=jobs, retry=retry) if missing else ():
                update(progress)
    except KeyboardInterrupt:
        total = len(store.plan.trials())
        done = progress.n_done if progress else total - len(missing)
        again = f"toprank experiment resume {shlex.quote(str(folder))}"
        said = f"Stopped with {done:,} of {plural(total, 'trial')} done. `{again}` resumes."
        terminal.err.print(said, soft_wrap=True)
        raise


@contextmanager
def show_progress(terminal: Terminal) -> Iterator[Any]:
    """Return a function that shows progress: a bar on a terminal, else an occasional line."""
    if not terminal.shows_progress:
        last = [time.monotonic()]

        def line(progress: Progress) -> None:
            if terminal.quiet or terminal.as_json or time.monotonic() - last[0] < SECONDS_BETWEEN_LINES:
                return
            last[0] = time.monotonic()
            at = f"{progress.n_done:,} of {plural(progress.n_trials, 'trial')}"
            terminal.err.print(f"{at}, {_time_left(progress)}" if progress.n_run else at)

        yield line
        return
    from rich import progress as rich_progress

    columns = (
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=terminal.err, transient=True) as bar:
        task = bar.add_task("starting")

        def update(progress: Progress) -> None:
            left = _time_left(progress) if progress.n_run else "starting"
            at = f"{progress.trial.table.name}, {progress.trial.use.label}" if progress.trial else ""
            text = f"{progress.n_done:,} of {plural(progress.n_trials, 'trial')}, {left}  {at}"
            bar.update(task, description=text, completed=progress.n_done, total=progress.n_trials)

        yield update


def _time_left(progress: Progress) -> str:
    """Return the estimated time left in words, in whole minutes, rounded down."""
    minutes = int(progress.seconds_left // 60)
    return f"about {minutes:,} min left" if minutes else "less than a minute left"


def _finish(
    store: Store, folder: Path, published: Path | None, terminal: Terminal, formats: tuple[str, ...] = ("md",)
) -> None:
    """Write tables and plots, and show the main table."""
    from toprank.experiment.evidence import write_evidence

    with terminal.working("Writing tables and plots"):
        written = write_evidence(store, folder, published=published, formats=formats)
    _show(store, published, terminal, written)


def _show(store: Store, published: Path | None, terminal: Terminal, written: list[Path]) -> None:
    """Print the progress of the experiment, the leaderboard and where the files are."""
    from toprank.experiment.evidence import main_tables, read_published, state_of
    from toprank.experiment.tables import to_text

    results = store.results()
    state = state_of(store, results)
    tables = main_tables(results, None if published is None else read_published(published), store.plan)
    terminal.finish(state | {"tables": {table.title: table.frame.to_dicts() for table in tables}, "files": written})
    terminal.show(f"{store.plan.name}: {state['in_words']}")
    for table in tables:
        terminal.show("", to_text(table).rstrip())
    if state["statuses"].keys() & {"failed", "timeout"}:
        terminal.hint("--retry reruns trials that failed or timed out.")
    if written:
        folders = sorted({str(path.parent) for path in written})
        terminal.hint(f"{plural(len(written), 'file')} written to {', '.join(folders)}")
