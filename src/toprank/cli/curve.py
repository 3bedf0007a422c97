"""`toprank curve`: a tree for every trade-off of false alarms and missed positives, and the choice of one."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

from toprank.cli.choice import changes_list, changes_summary, path_table, show_tree, table_title
from toprank.cli.columns import note_lone_column
from toprank.cli.csv_text import CsvFormat
from toprank.cli.fit import check_settings, fit_with_progress, read_history, read_later
from toprank.cli.options import (
    Drop,
    Encoding,
    Group,
    Ids,
    Positive,
    Separator,
    note_large_budget,
    parse_budget,
    parse_settings,
    parse_share,
    repeat_ids,
)
from toprank.cli.reading import TABLE_SUFFIXES, check_readable
from toprank.cli.show import Facts, main_columns, percent
from toprank.cli.terminal import Terminal
from toprank.cli.writing import check_output
from toprank.errors import InputError
from toprank.files.model_file import describe_model, load
from toprank.register import entry_of
from toprank.words.counts import count, plural
from toprank.words.nearest import did_you_mean
from toprank.workflow.curves import choice_dict, curve_table

if TYPE_CHECKING:
    from toprank.rankers.curve.cost_curve import CostOptimalCurve
    from toprank.rankers.curve.selection import Selection

SPLITS = ("oblique", "axis")
PLOT_AXES = {"alerts": "alerts", "false-alarms": "false_positive_rate"}
PLOT_SUFFIXES = (".png", ".svg", ".pdf")
ALERTS_SHOWN = 5
"""A plot over alerts shows this many times the alerts of the choice."""

OF_THE_CURVE = ("max_depth", "alpha", "fp_cost", "fn_cost")
"""Parameters of the trees that the curve sets itself."""

WHY = {
    "k": "it finds the most positives among trees with at most this many alerts, whole or cut there",
    "max_fpr": "it finds the most positives among trees with at most this many false alarms",
    "min_recall": "it has the fewest false alarms among trees that find this many",
    "cost_ratio": "its false alarms and missed positives cost least in total",
    "max_leaves": "it costs least among trees this small, with both classes weighted equally",
}
"""Why a point was chosen, per option."""


PlotAxis = Annotated[
    str | None,
    typer.Option("--plot-x", metavar="NAME", help="X axis of the plot: alerts (default with --k) or false-alarms."),
]


Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads (default: one per processor).")
]


FromK = Annotated[
    str | None,
    typer.Option(metavar="CASES", help="Show how the rules differ from those of the tree for this many alerts."),
]
MaxLeaves = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Most leaves of the tree; alone, or with one of the options above."),
]
Split = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="oblique: weighted sums (default); axis: one column per condition."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set any parameter of the curve or its trees; may be repeated."),
]


def curve(
    terminal: Terminal,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Past cases: CSV, TSV or Parquet; or a saved curve.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the outcome.")] = None,
    id_columns: Ids = None,
    group: Group = None,
    drop: Drop = None,
    positive: Positive = None,
    k: Annotated[
        str | None, typer.Option("--k", "-k", metavar="CASES", help="At most this many alerts: 200, or a share: 2%.")
    ] = None,
    max_fpr: Annotated[
        str | None, typer.Option(metavar="SHARE", help="At most this share of the negatives flagged: 5%.")
    ] = None,
    min_recall: Annotated[
        str | None, typer.Option(metavar="SHARE", help="At least this share of the positives found: 80%.")
    ] = None,
    cost_ratio: Annotated[
        float | None, typer.Option(metavar="COST", help="Cost of a false alarm, where a missed positive costs 1.")
    ] = None,
    max_leaves: MaxLeaves = None,
    from_k: FromK = None,
    validation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Other past cases, such as later ones, to judge the trees on.")
    ] = None,
    split: Split = None,
    settings: Settings = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot of the curve: PNG, SVG or PDF.")] = None,
    plot_x: PlotAxis = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Model file to write, including the choice.")
    ] = None,
    jobs: Jobs = None,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Train a tree for every trade-off of false alarms and missed positives, and choose one.

    \b
    toprank curve history.csv --label fraud -o curve.toprank
    toprank curve curve.toprank --k 200
    toprank curve history.csv --label fraud --k 200 --from-k 100 --plot curve.png
    """
    target = read_target({"k": k, "max_fpr": max_fpr, "min_recall": min_recall, "cost_ratio": cost_ratio})
    before = None if from_k is None else parse_budget(from_k, "--from-k")
    if before is not None and not (target or max_leaves):
        raise InputError(
            "--from-k compares two trees of the curve, but only one is given. Hint: choose the other with --k."
        )
    axis = _plot_axis(plot_x, plot, target)
    is_model = file.name.lower().endswith(".toprank")
    _check_files(file, validation, plot, out, is_model)
    if is_model:
        options = {"--label": label, "--id": id_columns, "--group": group, "--drop": drop, "--positive": positive,
                   "--jobs": jobs, "--validation": validation, "--split": split, "--set": settings, "--sep": sep,
                   "--encoding": encoding}  # fmt: skip
        model = load_curve(file, options, terminal)
    else:
        how = {"split": split, "n_jobs": jobs, "budget": target.get("k")}
        columns = {"--id": id_columns, "--drop": drop, "--group": None if group is None else [group]}
        csv_format = CsvFormat.from_options(sep, encoding)
        model = fit_curve(file, label, positive, columns, validation, settings, how, terminal, csv_format)
        if out is not None:
            model.save(out)  # saved first: if no tree meets the target, the work is not lost
    for asked, option in ((target.get("k"), "--k"), (before, "--from-k")):
        note_large_budget(asked, model.n_cases_, option, "the training data", terminal)
    start, chosen = choose_trees(model, target, max_leaves, before, None if is_model else out)
    model = model.with_choice(chosen)
    if is_model and "k" in target:
        model = model.with_budget(target["k"])
    if out is not None and (is_model or chosen is not None):
        model.save(out)
    if plot is not None:
        draw_curve(model, plot, axis, chosen, terminal)
    target_name = next(iter(target), "" if max_leaves is None else "max_leaves")
    report_curve(model, file, start, chosen, target_name, (out, plot), repeat_ids(id_columns), terminal)


# --- what is asked for --------------------------------------------------------------------------------------


def read_target(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the target under its name in `select`, its value checked; empty if there is none."""
    options = {name: f"--{name.replace('_', '-')}" for name in given}
    asked = {name: value for name, value in given.items() if value is not None}
    if len(asked) > 1:
        both = " and ".join(options[name] for name in asked)
        raise InputError(
            f"{both} ask for different trees; expected one of them. Hint: only --max-leaves can be combined."
        )
    if "k" in asked:
        return {"k": parse_budget(asked["k"], "--k")}
    if "cost_ratio" in asked and not 0 <= asked["cost_ratio"] < np.inf:
        raise InputError(
            f"--cost-ratio must be a number of at least 0, got {asked['cost_ratio']:g}. Hint: 0.1 means that a false "
            "alarm costs a tenth of a missed positive."
        )
    return {name: parse_share(value, options[name]) if isinstance(value, str) else value
            for name, value in asked.items()}  # fmt: skip


def choose_trees(
    model: CostOptimalCurve, target: Mapping[str, Any], max_leaves: int | None, before: Any, saved: Path | None
) -> tuple[Selection | None, Selection | None]:
    """Return the choice for `before` alerts, and the one for the target, else the one saved in the model."""
    if not target and max_leaves is None:
        return None, model.selected_
    again = (
        f"`toprank curve {shlex.quote(str(saved))}` lists the trees and chooses without refitting."
        if saved is not None
        else "leave it out to list the trees."
    )
    try:
        chosen = model.select(**target, max_leaves=max_leaves)
    except ValueError as error:
        raise InputError(f"{_without_hint(error)} Hint: relax the target; {again}") from error
    if before is None:
        return None, chosen
    try:
        start = model.select(k=before, max_leaves=max_leaves)
    except ValueError as error:
        raise InputError(f"--from-k: {_without_hint(error)} Hint: raise --from-k, or leave it out.") from error
    return start, chosen


def _without_hint(error: ValueError) -> str:
    return str(error).partition(" Hint:")[0]


def _check_files(file: Path, validation: Path | None, plot: Path | None, out: Path | None, is_model: bool) -> None:
    """Raise if a file cannot be read or written, before any work is done."""
    if not is_model:
        check_readable(file, (*TABLE_SUFFIXES, ".toprank"))
    if validation is not None:
        check_readable(validation)
    inputs = [path for path in (file, validation) if path is not None]
    if out is not None:
        # A saved curve may overwrite itself: only the choice differs.
        check_output(out, inputs=inputs[1:] if is_model else inputs)
    if plot is not None:
        from toprank.plots.style import import_matplotlib

        check_output(plot, PLOT_SUFFIXES, inputs=[*inputs, *([out] if out is not None else [])])
        import_matplotlib("toprank curve --plot")


def _plot_axis(name: str | None, plot: Path | None, target: Mapping[str, Any]) -> str:
    """Return the x axis under the name that the display uses."""
    if name is None:
        return "alerts" if "k" in target else "false_positive_rate"
    if plot is None:
        raise InputError("--plot-x needs a plot. Hint: add --plot FILE.")
    if name not in PLOT_AXES:
        raise InputError(f"--plot-x must be {' or '.join(PLOT_AXES)}, got {name!r}.{did_you_mean(name, PLOT_AXES)}")
    return PLOT_AXES[name]


# --- a saved curve ------------------------------------------------------------------------------------------


def load_curve(path: Path, options: Mapping[str, Any], terminal: Terminal) -> CostOptimalCurve:
    """Return the curve of a model file; options that need a fit are refused."""
    for option, value in options.items():
        if value:
            raise InputError(
                f"{option} needs past cases, but {path.name} holds a fitted curve. "
                "Hint: give the file of past cases to fit a new one."
            )
    with terminal.working(f"Loading {path.name}"):
        model = load(path)
    if entry_of(model).kind != "curve":
        raise InputError(
            f"{path.name} holds a model of class {type(model).__name__}, expected CostOptimalCurve. "
            "Hint: use a file that `toprank curve` wrote."
        )
    return model


# --- a new curve --------------------------------------------------------------------------------------------


def fit_curve(
    file: Path, label: str | None, positive: str | None, left_out: dict[str, list[str] | None],
    validation: Path | None, settings: Sequence[str] | None, how: dict[str, Any], terminal: Terminal,
    csv_format: CsvFormat | None = None,
) -> CostOptimalCurve:  # fmt: skip
    """Return the curve fitted on a file, judged on the test file if there is one."""
    if label is None:
        raise InputError(f"Fitting a curve on {file.name} needs the outcome column. Hint: name it with --label COLUMN.")
    features, values, pos_label, groups = read_history(file, label, positive, left_out, terminal, csv_format, settings)
    with terminal.working("Loading the estimators"):
        model = make_curve(settings, how | {"pos_label": pos_label}, features.columns)
    later = read_later(validation, label, features, values, pos_label, terminal, csv_format)
    given = {} if later is None else {"X_val": later[0], "y_val": later[1]}
    fit_with_progress(model, features, values, terminal, groups=groups, **given)
    note_lone_column(model, features, values == pos_label, terminal)
    return model


def make_curve(settings: Sequence[str] | None, how: Mapping[str, Any], columns: Sequence[str]) -> CostOptimalCurve:
    """Return the curve with all parameters and a fixed seed: the same file gives the same curve."""
    from toprank import CostOptimalCurve, TAOTree

    own = [name for name in inspect.signature(CostOptimalCurve).parameters if name != "base"]
    of_trees = [name for name in inspect.signature(TAOTree).parameters if name not in (*own, *OF_THE_CURVE)]
    chosen = parse_settings(settings, [*own, *of_trees], "CostOptimalCurve")
    options = {"split": "--split", "n_jobs": "--jobs", "budget": "--k", "pos_label": "--positive"}
    given = {name: value for name, value in how.items() if value is not None}
    for name in sorted(chosen.keys() & given.keys()):
        raise InputError(f"--set {name} duplicates {options[name]}. Hint: use {options[name]} alone.")
    check_settings(chosen, columns)
    for name in ("depths", "alphas"):
        if name in chosen and not isinstance(chosen[name], list | tuple | None):
            chosen[name] = [chosen[name]]  # one value to try
    parameters = {"random_state": 0, "n_jobs": -1} | chosen | given
    split = parameters.get("split", SPLITS[0])
    if split not in SPLITS:
        raise InputError(f"--split must be {' or '.join(SPLITS)}, got {split!r}.{did_you_mean(str(split), SPLITS)}")
    of_base = {name: value for name, value in parameters.items() if name in of_trees}
    base = TAOTree(**of_base) if of_base else None
    return CostOptimalCurve(base, **{name: value for name, value in parameters.items() if name in own})


# --- what comes out -----------------------------------------------------------------------------------------


def draw_curve(model: CostOptimalCurve, path: Path, axis: str, chosen: Selection | None, terminal: Terminal) -> None:
    """Write the plot of the curve, over alerts (zoomed to the choice) or over the share of false alarms."""
    from toprank.plots import CostOptimalCurveDisplay, save_figure

    limits = None
    if axis == "alerts" and chosen is not None:
        limits = (0.0, float(min(model.n_cases_, max(ALERTS_SHOWN * chosen.alerts.value, ALERTS_SHOWN))))
    with terminal.working(f"Drawing {path.name}"):
        save_figure(CostOptimalCurveDisplay.from_curve(model).plot(x=axis, xlim=limits), path)


def report_curve(
    model: CostOptimalCurve, file: Path, start: Selection | None, chosen: Selection | None, target_name: str,
    written: tuple[Path | None, Path | None], ids: str, terminal: Terminal,
) -> None:  # fmt: skip
    """Print the curve, the choice, its rules and the rule diff; or all of it as JSON."""
    from toprank.rankers.curve.changes import leaf_rule_changes, positive_rules

    out, plot = written
    point = model.base_point_ if chosen is None else chosen.position
    rules = positive_rules(model.path_[point].tree)
    changes = []
    if start is not None and chosen is not None:
        changes = leaf_rule_changes(start.tree, chosen.tree)
    table = curve_table(model)
    terminal.finish({
        "model": None if out is None else str(out),
        "plot": None if plot is None else str(plot),
        "seconds": round(terminal.seconds, 3),
        "judged_by": table.judged_by,
        "hull_area": table.hull_area,
        "base_point": table.base_point,
        "points": [row.to_dict() for row in table.rows],
        "chosen": choice_dict(chosen),
        "compared_with": choice_dict(start),
        "rules": [rule.to_dict() for rule in rules],
        "changes": [change.to_dict() for change in changes],
        "info": describe_model(model),
    })  # fmt: skip
    if terminal.quiet and out is not None:
        return
    _print_curve(model, file, start, chosen, terminal)
    show_tree(model, chosen, rules, terminal, WHY.get(target_name, ""))
    if start is not None and chosen is not None:
        title = f"What changes from the tree for {start.target} (point {start.position})"
        if start.position == chosen.position:
            terminal.heading(title)
            terminal.show("  Nothing: it is the chosen tree.")
        else:
            terminal.heading(f"{title}, with figures on the training cases")
            terminal.show(f"  {changes_summary(changes)}", "", changes_list(changes))
    if not terminal.quiet:
        _print_next(file, chosen, bool(target_name), (out, plot), ids, terminal)


def _print_curve(
    model: CostOptimalCurve, file: Path, start: Selection | None, chosen: Selection | None, terminal: Terminal
) -> None:
    n_categorical = sum(column.is_categorical for column in model.columns_)
    n_between = sum(point.is_between for point in model.path_)
    trees = f"{len(model.path_)}, {n_between} of them between two costs" if n_between else count(len(model.path_))
    rate = model.n_positives_ / model.n_cases_
    caveat = "" if model.held_out_points_ is not None else "; on the training data, which is optimistic"
    terminal.show(Text(f"Cost-optimal curve of {file.name}", style="bold"), Facts([
        ("trees", f"{trees}, of depth {model.max_depth_} at most; weights cost {model.alpha_:g} (alpha)"),
        ("trained on", f"{plural(model.n_cases_, 'case')}, {count(model.n_positives_)} positive ({percent(rate)})"),
        ("columns", f"{len(model.columns_):,}, {n_categorical:,} of them categorical"),
        ("main columns", main_columns(describe_model(model)) or "none: no column separates the cases"),
        ("area", f"{model.judged_points_.hull_area:.3f} under the hull of the curve; 0.5 = no better than chance"
                 f"{caveat}"),
    ]))  # fmt: skip
    marked = {model.base_point_: "base tree"}
    for selection, word in ((start, "compared with"), (chosen, "chosen")):
        if selection is not None:
            at = selection.position
            marked[at] = ", ".join([*([marked[at]] if at in marked else []), word])
    terminal.heading(table_title(model))
    terminal.show(path_table(model, marked))


def _print_next(
    file: Path, chosen: Selection | None, is_new: bool, written: tuple[Path | None, Path | None], ids: str,
    terminal: Terminal,
) -> None:  # fmt: skip
    """Print what was written and the next command, with the option `ids`; `is_new`: this call chose a tree.

    A new choice is in the file only if the file was written.
    """
    out, names = written[0], [str(path) for path in written if path is not None]
    lines = [f"Wrote {' and '.join(names)} in {terminal.seconds:.1f} s."] if names else []
    kept = out if out is not None else file if file.name.lower().endswith(".toprank") else None
    saved = None if kept is None else shlex.quote(str(kept))
    if chosen is None:
        ways = "--k 200, --max-fpr 5%, --min-recall 80%, --cost-ratio 0.1, --max-leaves 4"
        lines.append(f"Choose a tree with one of {ways}.")
        lines.append("Keep the curve with -o curve.toprank." if saved is None else f"  toprank curve {saved} --k 200")
    elif saved is None:
        lines.append("Keep the choice with -o curve.toprank.")
    else:
        lines.append(f"Keep the choice with -o {saved}, then:" if out is None and is_new else "Next:")
        lines.append(f"  toprank topk {saved} NEW_CASES.csv --chosen{ids} -o alerts.csv")
        lines.append("--k 2% instead of --chosen takes any number of cases from the ranking of the curve.")
    terminal.hint("\n" + "\n".join(lines))
