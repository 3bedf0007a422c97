"""`toprank fit`: train a model on a file of past cases and save it."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from toprank.cli.columns import (
    check_outcomes,
    choose_positive,
    find_groups,
    label_values,
    note_constants,
    note_lone_column,
    note_readings,
    outcomes,
    select_columns,
    training_features,
)
from toprank.cli.csv_text import CsvFormat
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
    parse_settings,
    repeat_ids,
    split_names,
)
from toprank.cli.reading import TableFile, check_readable
from toprank.cli.show import (
    chance_facts,
    inside_facts,
    judged_on,
    model_card,
    page_facts,
    page_text,
    rules_list,
    rules_shown,
    rules_title,
    scorecard_excerpt,
    why_no_rates,
)
from toprank.cli.terminal import WIDTH, Terminal
from toprank.cli.writing import check_output
from toprank.errors import InputError
from toprank.files.model_file import describe_model
from toprank.rankers.progress import reported_to
from toprank.register import BY_COMMAND, DEFAULT_COMMAND, entry_of
from toprank.tree.columns import Column
from toprank.words.counts import count, plural
from toprank.words.nearest import did_you_mean
from toprank.words.numbers import three_decimals

if TYPE_CHECKING:
    import polars

    from toprank.explain import Rule

TAKE_A_MODEL = ("init", "teacher", "base", "metric")
"""Parameters that take a model, which --set knows by its name for --model; `rankers` takes several."""

WORDS_BESIDE_MODELS = ("auto", "euclidean", "manhattan")
"""What these parameters take besides."""


def fit(
    terminal: Terminal,
    history: History,
    label: Label,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")],
    id_columns: Ids = None,
    group: Group = None,
    drop: Drop = None,
    model: Annotated[str, typer.Option(metavar="NAME", help=f"{', '.join(BY_COMMAND)}.")] = DEFAULT_COMMAND,
    budget: Budget = None,
    positive: Positive = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set any parameter of the estimator; may be repeated."),
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            metavar="FOLDS", help="Folds to estimate hit rates of new cases; 0 = training rates only (default 5)."
        ),
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
) -> None:
    r"""Train a model on a file of past cases and save it.

    \b
    toprank fit history.csv --label fraud --budget 500 -o model.toprank
    toprank fit history.parquet --label outcome --positive guilty --id case,name -o model.toprank
    toprank fit visits.csv --label fraud --group person -o model.toprank
    toprank fit history.csv.gz --label fraud --model metaap-forest --set n_estimators=50 -o f.toprank
    """
    check_readable(history)
    check_output(out, inputs=[history])
    parameters = {"budget": parse_budget(budget)} if budget is not None else {}
    find_model("--model", model)
    if cv is not None and (cv < 0 or cv == 1):
        raise InputError(f"--cv must be 0 or at least 2 folds, got {cv}. Hint: --cv 0 skips cross-validation.")
    left_out = {"--id": id_columns, "--drop": drop, "--group": None if group is None else [group]}
    csv_format = CsvFormat.from_options(sep, encoding)
    features, values, pos_label, groups = read_history(
        history, label, positive, left_out, terminal, csv_format, settings
    )
    note_large_budget(parameters.get("budget"), len(values), "--budget", history.name, terminal)
    parameters |= {"pos_label": pos_label} | ({} if cv is None else {"cv": cv})
    with terminal.working("Loading the estimators"):
        estimator = make_estimator(model, settings, parameters, features.columns)
    fit_with_progress(estimator, features, values, terminal, groups=groups)
    estimator.save(out)
    note_lone_column(estimator, features, values == pos_label, terminal)
    report(estimator, out, quality_of(estimator), (label, repeat_ids(id_columns)), terminal)


def read_history(
    path: Path, label: str, positive: str | None, left_out: dict[str, list[str] | None], terminal: Terminal,
    csv_format: CsvFormat | None = None, settings: Sequence[str] | None = None,
) -> tuple[polars.DataFrame, np.ndarray, Any, np.ndarray | None]:  # fmt: skip
    """Return the feature columns, the outcomes, the positive outcome, and who the cases belong to, if that repeats.

    Columns that `settings`, name=value texts, declare to be categories are not read as numbers with a few words.
    """
    with terminal.working(f"Reading {path.name}"):
        frame = TableFile(path, csv_format).frame()
    values = label_values(frame, label, path.name)
    pos_label = choose_positive(outcomes(values, label, path.name), positive, label, path.name)
    unused: dict[str, list[str]] = {}
    for option, given in left_out.items():
        names = split_names(given, frame.columns, option, path.name)
        if label in names:
            raise InputError(
                f"{option} names {label!r}, which is the label column of {path.name}; expected another column. "
                f"Hint: the label is never used as a feature; remove it from {option}, or correct --label."
            )
        if option == "--group" and len(names) > 1:
            raise InputError(f"--group takes one column, got {len(names)}. Hint: join them into one column first.")
        unused[option] = names
    declared = [text for text in settings or () if text.partition("=")[0].strip() == "categorical_features"]
    categories = parse_settings(declared, ["categorical_features"], "").get("categorical_features")
    if not isinstance(categories, list | tuple):
        categories = []  # `check_settings` says what is wrong
    features = training_features(frame, [label, *chain(*unused.values())], path.name, terminal, categories)
    groups = find_groups(frame, unused.get("--group", []), unused.get("--id", []), features.columns, terminal)
    share = float((values == pos_label).mean())
    if share > 0.5:
        terminal.note(
            f"{100 * share:.0f} % of the cases are positive (outcome {pos_label!r}); "
            "if the other outcome is the rare one, choose it with --positive."
        )
    return features, values, pos_label, groups


def read_later(
    path: Path | None, label: str, features: polars.DataFrame, values: np.ndarray, pos_label: Any, terminal: Terminal,
    csv_format: CsvFormat | None = None,
) -> tuple[polars.DataFrame, np.ndarray] | None:  # fmt: skip
    """Return the columns of another file that `features` has, of the same kinds, and its outcomes as in `values`.

    None if there is no other file.
    """
    import polars as pl

    if path is None:
        return None
    other = next(value for value in np.unique(values).tolist() if value != pos_label)
    texts = [column.name for column in features if not (column.dtype.is_numeric() or column.dtype == pl.Boolean)]
    with terminal.working(f"Reading {path.name}"):
        frame = TableFile(path, csv_format).frame(texts)
    labels = label_values(frame, label, path.name)
    found = outcomes(labels, label, path.name)
    check_outcomes(found, (other, pos_label), label, path.name)
    wanted = choose_positive(found, None, label, path.name, trained=pos_label)
    columns = [Column(c.name, None if c.dtype.is_numeric() else ("text",) if c.name in texts else (False, True))
               for c in features]  # fmt: skip
    with terminal.working(f"Reading {path.name}"):
        return select_columns(frame, columns, path.name), np.where(labels == wanted, pos_label, other)


def make_estimator(
    name: str, settings: Sequence[str] | None, parameters: dict[str, Any], columns: Sequence[str]
) -> Any:
    """Return the named estimator with its parameters and a fixed seed: the same file gives the same model."""
    estimator = BY_COMMAND[name].load()
    known = list(inspect.signature(estimator).parameters)
    chosen = parse_settings(settings, known, BY_COMMAND[name].name)
    if "random_state" in known:
        chosen.setdefault("random_state", 0)
    twice = sorted(chosen.keys() & parameters.keys())
    if twice:
        option = {"budget": "--budget", "pos_label": "--positive", "cv": "--cv"}[twice[0]]
        raise InputError(f"--set {twice[0]} duplicates {option}. Hint: use {option} alone.")
    if "cv" not in known and parameters.pop("cv", 0):
        raise InputError(
            f"--cv does not apply to {BY_COMMAND[name].name}, which estimates hit rates out of bag. "
            "Hint: leave --cv out."
        )
    check_settings(chosen, columns)
    return estimator(**(with_models(chosen) | parameters))


def with_models(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with models in place of their names, where a parameter takes models: --set init=metaap-forest."""

    def model_of(parameter: str, name: Any) -> Any:
        if not isinstance(name, str):
            return name
        if name in WORDS_BESIDE_MODELS:
            return name
        if name not in BY_COMMAND:
            hint = did_you_mean(name, BY_COMMAND) or " Hint: `toprank fit --help` lists them; 'none' means without."
            raise InputError(f"{parameter} of --set must be the name of a model, as for --model, got {name!r}.{hint}")
        estimator = BY_COMMAND[name].load()
        takes_seed = "random_state" in inspect.signature(estimator).parameters
        return estimator(random_state=0) if takes_seed else estimator()

    made = {name: model_of(name, settings[name]) for name in TAKE_A_MODEL if name in settings}
    names = settings.get("rankers")
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if isinstance(names, list | tuple):
        made["rankers"] = [model_of("rankers", name) for name in names]
    return settings | made


def check_settings(settings: dict[str, Any], columns: Sequence[str]) -> None:
    """Raise InputError if --set gives a `cv` that is not a number, or names columns that do not exist.

    The estimators also accept splitters and masks, which cannot be given on a command line.
    """
    folds = settings.get("cv")
    if not isinstance(folds, int | None):
        raise InputError(f"cv of --set must be a number of folds, got {folds!r}. Hint: for example --set cv=5.")
    for parameter in ("categorical_features", "keep_columns"):
        names = settings.get(parameter)
        if parameter == "keep_columns" and names == "all":
            continue
        if not isinstance(names, list | tuple | None):
            raise InputError(
                f"{parameter} of --set must be column names, got {names!r}. "
                f"Hint: separate them by commas, as in --set {parameter}=sector,region."
            )
        for column in names or ():
            if isinstance(column, str) and column not in columns:
                raise InputError(
                    f"{parameter} names {column!r}, but there is no such column to learn from "
                    f"({plural(len(columns), 'column')}).{did_you_mean(column, columns)}"
                )


def fit_with_progress(
    estimator: Any, features: polars.DataFrame, values: np.ndarray, terminal: Terminal, **more: Any
) -> None:
    """Fit while a status line shows what is being done; `more` is passed to `fit`."""
    name, first = type(estimator).__name__, compiling()
    what = f"Fitting {name} on {plural(features.height, 'case')}{first}"
    with terminal.working(what) as update, ExitStack() as stack:
        stack.callback(estimator.set_params, **{each: getattr(estimator, each) for each in ("verbose", "n_jobs")
                                                if hasattr(estimator, each)})  # fmt: skip
        if getattr(estimator, "n_jobs", 1) is None:
            estimator.set_params(n_jobs=-1)  # the same model, sooner
        if hasattr(estimator, "verbose") and terminal.shows_progress:
            estimator.set_params(verbose=1)
            stack.enter_context(reported_to(lambda text: update(f"{name}: {text.removeprefix(f'{name}, ')}{first}")))
        estimator.fit(features, values, **more)
    note_constants(estimator, features, terminal)
    note_readings(estimator, features, terminal)


def compiling() -> str:
    """Return a remark if this first run has to compile the kernels, else nothing."""
    import toprank._core

    home = os.environ.get("NUMBA_CACHE_DIR") or str(Path(toprank._core.__file__).parent / "__pycache__")
    is_cached = next(Path(home).rglob("*.nbi"), None) is not None
    return "" if is_cached else " (first run: compiling too)"


def quality_of(model: Any) -> dict[str, Any]:
    """Return the average precision to expect on new cases, how it was estimated, and if chance explains it."""
    rates = model.rates_
    how, why = judged_on(rates), why_no_rates(model)
    if not rates.is_for_new_cases:
        how += f"{f'; {why}' if why else ''} (use `toprank evaluate` on held-out cases)"
    return {
        "average_precision": rates.average_precision,
        "how": how,
        "is_near_chance": rates.is_near_chance(model.base_rate_, model.n_positives_),
        "has_few_positives": rates.has_few_positives(model.base_rate_, model.n_positives_),
        "random_order_limit": rates.random_order_limit(model.base_rate_, model.n_positives_),
    }


def report(model: Any, out: Path, judged: dict[str, Any], given: tuple[str, str], terminal: Terminal) -> None:
    """Print the fitted model and the suggested next commands, with the label and the options --id as given."""
    from toprank.export import CARD_TITLE, no_split_text, scorecard_summary

    info = describe_model(model)
    rules: list[Rule] = model.rule_list() if hasattr(model, "tree_") else []  # a forest has too many to read
    width = min(terminal.out.width, WIDTH)
    shown = rules_shown(rules, width, None)
    terminal.finish({
        "model": str(out), "seconds": round(terminal.seconds, 3), "judged": judged,
        "rules": [rule.to_dict() for rule in shown], "info": info,
    } | page_facts(model, out))  # fmt: skip
    if terminal.quiet:
        return
    base = model.n_positives_ / model.n_cases_
    quality = (
        f"{three_decimals(judged['average_precision'])} {judged['how']}; a random order has {three_decimals(base)}"
    )
    card = (model.tree_.scoring, model.columns_, model._points_spread) if hasattr(model, "tree_") else None
    inside = scorecard_summary(*card) if card else ""
    alone = no_split_text(model.tree_.n_leaves, inside, getattr(model, "ccp_alpha", None)) if card else ""
    more = [*inside_facts(inside, alone), ("AP", quality), *chance_facts(judged)]
    terminal.show(model_card(info, more, card_shares=model._card_shares, rates=model.rates_))
    if rules and not alone:
        terminal.heading(rules_title(len(shown), model.tree_.n_leaves))
        terminal.show(rules_list(shown, width))
    if entry_of(model).has_page:
        title, text = page_text(model, out)
        terminal.heading(title)
        terminal.show(text)
    if card and inside:
        terminal.heading(CARD_TITLE)
        terminal.show(*scorecard_excerpt(card, width))
    label, ids = given
    origin = ""
    if model.budget is None:
        k = plural(round(model.cutoff_.k), "case")
        origin = (
            " No --budget was given, so `topk` lists as large a share of new cases as were positive in training: "
            f"{k} of {count(model.n_cases_)}."
        )
    terminal.hint(f"\nWrote {out} in {terminal.seconds:.1f} s.{origin} Next:")
    cases = f" --k {model.budget}" if isinstance(model.budget, int) else ""  # `topk` reads a share from the model
    file = shlex.quote(str(out))
    terminal.hint(f"  toprank topk {file} NEW_CASES.csv{cases}{ids} -o alerts.csv")
    terminal.hint(f"  toprank evaluate {file} CHECKED_CASES.csv --label {shlex.quote(label)}")
