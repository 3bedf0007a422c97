"""`toprank distill`: teach a readable model what a better one has learned, and save it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from toprank.cli.columns import note_constants, note_lone_column, note_readings
from toprank.cli.csv_text import CsvFormat
from toprank.cli.fit import compiling, make_estimator, read_history, read_later
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
    find_model,
    note_large_budget,
    parse_budget,
    repeat_ids,
)
from toprank.cli.reading import check_readable
from toprank.cli.show import Facts, grid, percent
from toprank.cli.terminal import Terminal
from toprank.cli.writing import check_output
from toprank.errors import InputError
from toprank.rankers.progress import reported_to
from toprank.words.counts import count, plural

if TYPE_CHECKING:
    from toprank.workflow import Distillation


def distill(
    terminal: Terminal,
    history: History,
    label: Label,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file of the student to write.")],
    teacher: Annotated[
        str, typer.Option(metavar="NAME", help="Model to learn from, such as metaap-forest, sgbap or stacked.")
    ] = "metaap-forest",
    student: Annotated[
        str, typer.Option(metavar="NAME", help="Readable model, such as red-flags, tree, treerank or scorecard.")
    ] = "red-flags",
    id_columns: Ids = None,
    group: Group = None,
    drop: Drop = None,
    budget: Budget = None,
    positive: Positive = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set any parameter of the student; may be repeated."),
    ] = None,
    teacher_settings: Annotated[
        list[str] | None,
        typer.Option("--set-teacher", metavar="NAME=VALUE", help="Set any parameter of the teacher; may be repeated."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Later cases to report on (default: a quarter of the past cases)."),
    ] = None,
    cv: Annotated[
        int, typer.Option(metavar="FOLDS", help="Folds in which the teacher scores cases that it has not seen.")
    ] = 5,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Teach a readable model what a better one has learned, and save it.

    Without --test, a quarter of the cases is held out for the report, and the student learns from the rest.

    \b
    toprank distill history.csv --label fraud --teacher metaap-forest --student red-flags -o student.toprank
    toprank distill history.csv --label fraud --student tree --set max_depth=4 --test later.csv -o student.toprank
    """
    inputs = [history, *([] if test is None else [test])]
    for path in inputs:
        check_readable(path)
    check_output(out, inputs=inputs)
    share = parse_budget(budget)
    for option, name in (("--teacher", teacher), ("--student", student)):
        find_model(option, name)
    if cv < 3:
        raise InputError(f"--cv must be at least 3 folds, got {cv}. Hint: the teacher scores cases outside its fold.")
    left_out = {"--id": id_columns, "--drop": drop, "--group": None if group is None else [group]}
    csv_format = CsvFormat.from_options(sep, encoding)
    features, values, pos_label, groups = read_history(
        history, label, positive, left_out, terminal, csv_format, settings
    )
    later = read_later(test, label, features, values, pos_label, terminal, csv_format)
    note_large_budget(share, len(values), "--budget", history.name, terminal)
    with terminal.working("Loading the estimators"):
        common = {"pos_label": pos_label} | ({} if share is None else {"budget": share})
        models = [
            make_estimator(name, given, dict(common), features.columns)
            for name, given in ((teacher, teacher_settings), (student, settings))
        ]
    names = [type(model).__name__ for model in models]
    first = compiling()
    what = f"{names[0]} teaches {names[1]}, {plural(features.height, 'case')}{first}"
    with terminal.working(what) as update, reported_to(lambda text: update(f"Teaching: {text}{first}")):
        from toprank.workflow import distill as distill_models

        given: dict[str, Any] = {} if later is None else {"X_test": later[0], "y_test": later[1]}
        if models[1].n_jobs is None:
            given["n_jobs"] = -1  # the same model, sooner
        shown = int(terminal.shows_progress)
        found = distill_models(models[0], models[1], features, values, groups=groups, cv=cv, verbose=shown, **given)
    found.student.save(out)
    note_constants(found.student, features, terminal)
    note_readings(found.student, features, terminal)
    note_lone_column(found.student, features, values == pos_label, terminal)
    terminal.finish({"model": str(out), "seconds": round(terminal.seconds, 3)} | found.to_dict())
    if not terminal.quiet:
        _print(found, (history.name, None if test is None else test.name), out, repeat_ids(id_columns), terminal)


def _print(found: Distillation, names: tuple[str, str | None], out: Path, ids: str, terminal: Terminal) -> None:
    history, test = names
    teacher, student = type(found.teacher).__name__, type(found.student).__name__
    where = f"held out of {history}" if test is None else f"of {test}"
    share = percent(found.n_test_positives / found.n_test)
    terminal.show(f"{student} taught by {teacher}")
    terminal.show(Facts([
        ("size", found.size),
        ("trained on", f"{plural(found.student.n_cases_, 'case')} of {history}"),
        ("judged on", f"{plural(found.n_test, 'case')} {where}, {count(found.n_test_positives)} positive ({share})"),
        ("fidelity", f"{percent(found.fidelity)} of the teacher's first {count(found.k)} of these "
                     f"{count(found.n_test)} are among the student's"),
    ]))  # fmt: skip
    terminal.heading("Average precision")
    rows = [
        [f"{teacher}, the teacher", f"{found.teacher_ap:.3f}"],
        [f"{student}, taught", f"{found.student_ap:.3f}"],
        [f"{student}, as `toprank fit` makes it", f"{found.plain_ap:.3f}"],
    ]
    terminal.show(grid([("model", "left"), ("AP", "right")], rows))
    terminal.show(Padding(Text(f"The taught model is {found.gain_text}."), (0, 0, 0, 2)))
    if found.gain.high < 0:
        terminal.hint("  Here `toprank fit` makes the better model.")
    file, budget = shlex.quote(str(out)), found.student.budget
    cases = f" --k {budget}" if isinstance(budget, int) else ""
    terminal.hint(
        f"\nWrote {out} in {terminal.seconds:.1f} s. Next:\n"
        f"  toprank describe {file}\n"
        f"  toprank topk {file} NEW_CASES.csv{cases}{ids} -o alerts.csv"
    )
