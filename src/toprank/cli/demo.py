"""`toprank demo`: a simulated audit campaign, from past cases to alerts with reasons; needs no input."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.padding import Padding
from rich.text import Text

from toprank.cli.fit import fit_with_progress, make_estimator
from toprank.cli.show import (
    Facts,
    alerts_table,
    flags_page_part,
    gains_grid,
    interval_text,
    model_card,
    page_facts,
    page_text,
    strengths_text,
)
from toprank.cli.terminal import Terminal
from toprank.cli.topk import join_columns
from toprank.cli.writing import write_table
from toprank.errors import InputError
from toprank.files.atomic import write_atomically
from toprank.files.model_file import describe_model
from toprank.register import DEFAULT_COMMAND
from toprank.words.numbers import three_decimals

if TYPE_CHECKING:
    import polars

    from toprank.metrics import HitRates

YEARS = (2021, 2022, 2023, 2024)
YEAR = YEARS[-1]  # held out
BUDGET = 0.02
ALERTS_SHOWN = 5
MIN_CASES = 2_000
PAGE = "page.txt"
LEFT_OUT = ("case_id", "year", "amount", "fraud")


class Campaign(NamedTuple):
    """The simulated cases: the earlier years, the last year, and the best possible average precision on it."""

    history: polars.DataFrame
    new: polars.DataFrame
    optimal_average_precision: float


def demo(
    terminal: Terminal,
    cases: Annotated[int, typer.Option(metavar="N", help="Simulated cases, over four years.")] = 40_000,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the files.")] = Path(
        "toprank-demo"
    ),
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed; each one gives another campaign.")] = 0,
) -> None:
    r"""Simulate an audit campaign, train on the earlier years, rank the last one, and show the alerts.

    \b
    toprank demo
    toprank demo --cases 200000 --seed 7 --out campaign
    """
    from toprank.workflow.judging import gains, precision_interval

    _check(cases, out, seed)
    with terminal.working("Simulating an audit campaign"):
        campaign = simulate(cases, seed)
    history, new = campaign.history, campaign.new
    model = make_estimator(DEFAULT_COMMAND, (), {"budget": BUDGET}, history.columns)
    fit_with_progress(model, history.drop(LEFT_OUT), history["fraud"].to_numpy(), terminal)
    info = describe_model(model)
    k = model._budget_in(new.height)
    with terminal.working(f"Ranking the {new.height:,} cases of {YEAR}"):
        score = model.decision_function(new.drop(LEFT_OUT))
        top = model.top_k(new.drop(LEFT_OUT), k, reasons=3)
        alerts = join_columns(top, new, ["case_id"], ["amount", "fraud"], "the campaign")
    is_positive = new["fraud"].to_numpy() == 1
    with terminal.working("Evaluating the ranking"):
        interval = precision_interval(is_positive, score)
        table = gains(is_positive, score, new["amount"].to_numpy()).to_dict()
    files = write_files(out, model, alerts, campaign)
    terminal.finish({
        "folder": str(out), "files": files, "seconds": round(terminal.seconds, 3), "info": info,
        "year": YEAR, "k": k, "average_precision": asdict(interval),
        "optimal_average_precision": campaign.optimal_average_precision,
        "gains": table, "alerts": alerts.head(ALERTS_SHOWN).to_dicts(),
    } | page_facts(model))  # fmt: skip
    if not (terminal.quiet or terminal.as_json):
        _print_campaign(campaign, info, alerts, model.rates_, terminal)
        _print_judgement(campaign, interval, table, terminal)
        _print_flags(model, terminal)
        _print_next_steps(out, files, terminal)


def _check(cases: int, out: Path, seed: int) -> None:
    if cases < MIN_CASES:
        raise InputError(
            f"--cases must be at least {MIN_CASES:,}, got {cases:,}. Hint: learning rare outcomes takes many cases."
        )
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}. Hint: each seed gives another campaign.")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out must name a folder, but {out} is a file. Hint: choose another name.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"Cannot create the folder {out}: {error.strerror}. Hint: choose another with --out."
        ) from error


def simulate(cases: int, seed: int) -> Campaign:
    """Return an audit campaign with its last year held out."""
    from toprank.datasets import make_audit, optimal_average_precision

    data = make_audit(cases, years=YEARS, drift=0.3, random_state=seed, as_frame="polars")
    past, last = data.split()
    history, new = (part.frame().rename({"label": "fraud"}) for part in (past, last))
    return Campaign(history, new, optimal_average_precision(last.probability))


def write_files(out: Path, model: Any, alerts: polars.DataFrame, campaign: Campaign) -> dict[str, str]:
    """Write all files to the folder and return a description of each."""
    write_table(alerts, out / "alerts.csv")
    model.save(out / "model.toprank")
    write_atomically(out / PAGE, f"{page_text(model, is_whole=True)[1]}\n".encode())
    write_table(campaign.history, out / "history.csv")
    write_table(campaign.new, out / "new.csv")
    return {
        "alerts.csv": f"the {alerts.height:,} cases to check, best first, with reasons",
        "model.toprank": "the model",
        PAGE: "the model on a page, to read: red flags, then points for single columns",
        "history.csv": f"the {campaign.history.height:,} cases the model was trained on",
        "new.csv": f"the {campaign.new.height:,} cases of {YEAR}, with their outcomes",
    }


def _print_campaign(
    campaign: Campaign, info: dict[str, Any], alerts: polars.DataFrame, rates: HitRates, terminal: Terminal
) -> None:
    terminal.show(
        f"A simulated audit campaign: toprank learns from {campaign.history.height:,} audits of {YEARS[0]} "
        f"to {YEARS[-2]}, few of which found fraud, and says which {alerts.height:,} of the {campaign.new.height:,} "
        f"companies of {YEAR} to check, and why.\n"
    )
    terminal.show(model_card(info, rates=rates))
    terminal.heading(f"The {ALERTS_SHOWN} companies of {YEAR} most worth checking")
    shown = alerts.head(ALERTS_SHOWN).to_dicts()
    terminal.show(alerts_table(shown, ["case_id"], amount="amount", outcome="fraud"))
    terminal.hint(f"  {strengths_text(shown, rates)}")


def _print_judgement(campaign: Campaign, interval: Any, table: dict[str, Any], terminal: Terminal) -> None:
    base = float(campaign.new["fraud"].mean())  # type: ignore[arg-type]
    terminal.heading(f"What the ranking would have found in {YEAR}, which was held out")
    terminal.show(gains_grid(table, campaign.new.height))
    terminal.hint("  Precision: share of frauds among the checked cases. Recall: share of all frauds found.")
    terminal.show("", Facts([
        ("average precision", interval_text(interval)),
        ("best possible", f"{campaign.optimal_average_precision:.3f}, known because the campaign is simulated"),
        ("in random order", three_decimals(base)),
    ]))  # fmt: skip


def _print_flags(model: Any, terminal: Terminal) -> None:
    title, text = flags_page_part(model)
    terminal.heading(title)
    terminal.show(text)
    if not len(model.flags_):
        return
    note = (
        f"The points of all flags that hold add up; {model.card_.scale_text()}. Cases and hits: in training. Hit rate: "
        f"expected for new cases. Smaller points for single columns are on the whole page, {PAGE}."
    )
    terminal.show(Padding(Text(note, style="dim"), (0, 0, 0, 2)))


def _print_next_steps(out: Path, files: dict[str, str], terminal: Terminal) -> None:
    terminal.heading(f"Written to {out}{'' if str(out).endswith('/') else '/'} in {terminal.seconds:.1f} s")
    terminal.show(Facts(files.items()))
    terminal.heading("Try next")
    model, new, history, tree = (
        shlex.quote(str(out / name)) for name in ("model.toprank", "new.csv", "history.csv", "tree.toprank")
    )
    started = "python -m toprank" if sys.argv[0].endswith("__main__.py") else shlex.quote(sys.argv[0])
    program = "toprank" if shutil.which("toprank") else started
    for command in (
        f"describe {model}",
        f"topk {model} {new} --k 20 --id case_id",
        f"evaluate {model} {new} --label fraud --amount amount",
        f"fit {history} --label fraud --id case_id --drop year,amount --model metaap -o {tree}",
    ):
        terminal.out.print(f"  {program} {command}", soft_wrap=True)
