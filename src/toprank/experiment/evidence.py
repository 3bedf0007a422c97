"""The tables and plots of an experiment, written to a folder.

Tables of measures are the same to the last byte however often a run was stopped; times are in a file of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toprank.errors import InputError
from toprank.experiment import summary
from toprank.experiment.panel import NothingToCompareError
from toprank.experiment.plan import Plan
from toprank.experiment.store import Store
from toprank.experiment.tables import ShownTable, make_table, spread, to_markdown, write_table

if TYPE_CHECKING:
    import polars

LEVELS = (10, 30, 50)
"""Upper limits on the % of positives: the panels of figures 5 and 6 of the MetaAP paper."""

SHARES = (1, 5, 10, 20, 30, 50, 70, 100)
"""Shares of the positives, in %, that the table of precision at k shows."""

MEANS = "Mean and standard deviation over data sets of the mean over splits; size is the median."
LEVELS_NOTE = (
    "Data sets with at most so many % positives; p of Wilcoxon's test of the reference against the best other method."
)

FORMATS = ("md", "tex", "html", "txt", "csv", "parquet")


def write_evidence(
    store: Store, folder: str | Path, *, published: str | Path | None = None, formats: Sequence[str] = ("md",)
) -> list[Path]:
    """Write all tables and, if matplotlib is installed, plots of an experiment; return the files.

    Parameters
    ----------
    store : Store
    folder : where `results.md`, `times.md`, `tables/` and `plots/` go
    published : CSV file of published runs or None
    formats : formats of the single tables
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"The format {unknown[0]!r} is unknown. Hint: use {', '.join(FORMATS)}.")
    folder = Path(folder)
    results, plan = store.results(), store.plan
    others = None if published is None else read_published(published)
    tables = dict(_tables(results, others, plan))
    plots = dict(_plots(_main(results, plan), store.profiles()))
    written: list[Path] = []
    for name in ("tables", "plots"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tables" / "unfinished.md").unlink(missing_ok=True)  # left by an earlier call
    for name, table in tables.items():
        for ending in formats:
            written.append(folder / "tables" / f"{name}.{ending}")
            write_table(table, written[-1])
    drawn = _save(plots, folder / "plots", [use.label for use in plan.methods])
    written += drawn
    page = [f"# {plan.name}", "", state_of(store, results)["in_words"] + ".", ""]
    for table in tables.values():
        page += [to_markdown(table), ""]
    page += [f"![{path.stem.replace('_', ' ')}](plots/{path.name})\n" for path in drawn]
    written += [_write(folder / "results.md", "\n".join(page))]
    timed = _possible(lambda: make_table(summary.times(results), "Seconds of one trial"))
    if timed is not None:
        written += [_write(folder / "times.md", to_markdown(timed))]
    return written


def main_tables(results: polars.DataFrame, published: polars.DataFrame | None, plan: Plan) -> list[ShownTable]:
    """The tables to look at first."""
    wanted = ("leaderboard", "published", "against", "unfinished")
    return [table for name, table in _tables(results, published, plan) if name in wanted]


def state_of(store: Store, results: polars.DataFrame) -> dict[str, Any]:
    """Number of trials in total, still waiting, and by status."""
    n_trials, counts = len(store.plan.trials()), Counter(results["status"].to_list())
    waiting = n_trials - sum(counts.values())
    parts = [f"{counts['done']:,} of {n_trials:,} trials done"]
    parts += [f"{counts[name]:,} {word}" for name, word in (("failed", "failed"), ("timeout", "took too long"),
                                                            ("skipped", "skipped")) if counts[name]]  # fmt: skip
    parts += [f"{waiting:,} still to run"] if waiting else []
    return {"n_trials": n_trials, "n_waiting": waiting, "statuses": dict(counts), "in_words": ", ".join(parts)}


def read_published(path: str | Path) -> polars.DataFrame:
    """Published runs: a CSV file with dataset, seed, method, ap_test and p_at_<k>pct in %, as shares."""
    import polars as pl

    try:
        frame = pl.read_csv(path)
        measures = [pl.col("ap_test").alias("average_precision") / 100]
        measures += [
            (pl.col(name) / 100).alias(name.removesuffix("pct")) for name in frame.columns if name[:5] == "p_at_"
        ]
        split = pl.format("seed {}", pl.col("seed")).alias("split")
        return frame.select("dataset", split, "method", *measures)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{Path(path).name} cannot be read as published runs: {reason}. Hint: it needs the columns dataset, seed, "
            "method, ap_test."
        ) from None


# --- tables -------------------------------------------------------------------------------------------------------


def _tables(
    results: polars.DataFrame, published: polars.DataFrame | None, plan: Plan
) -> Iterator[tuple[str, ShownTable]]:
    """Name and content of each table that the results are enough for."""
    main, reference = _main(results, plan), plan.reference

    def leaderboard(measure: str) -> ShownTable:
        title = f"Mean {measure.replace('_', ' ')} over the data sets"
        return make_table(summary.leaderboard(main, measure), title, MEANS)

    def by_imbalance(frame: polars.DataFrame, title: str) -> ShownTable:
        return spread(summary.by_imbalance(frame, _known(reference, frame)), title=title, note=LEVELS_NOTE)

    makers: dict[str, Callable[[], ShownTable]] = {
        "leaderboard": partial(leaderboard, "average_precision"),
        "by_imbalance": partial(by_imbalance, main, "Mean average precision by share of positives"),
        "precision_at_k": lambda: _precision_table(main, "Mean precision at k"),
        "by_data_set": lambda: spread(summary.by_data_set(main), title="Average precision by data set"),
    }  # fmt: skip
    for measure in [name for name in plan.measures if name in results.columns and name != "average_precision"]:
        makers[f"leaderboard_{measure.replace(':', '_')}"] = partial(leaderboard, measure)
    if main.height < results.height:
        title = "All methods, on the splits that all of them have"
        makers["leaderboard_all"] = lambda: make_table(summary.leaderboard(results), title, MEANS)
        makers["by_imbalance_all"] = partial(by_imbalance, results, f"{title}, by share of positives")
    if _known(reference, results) is not None:
        makers["against"] = lambda: make_table(
            summary.against(results, str(reference)), f"{reference} against the others",
            "Wilcoxon's signed-rank test over data sets, on the splits that both have; Holm's adjustment.")  # fmt: skip
    if published is not None:
        makers |= _published_tables(main, results, published)
    makers["unfinished"] = lambda: make_table(_unfinished(results, plan), "Not finished")
    for name, make in makers.items():
        table = _possible(make)
        if table is not None and table.frame.height:
            yield name, table


def _published_tables(
    main: polars.DataFrame, results: polars.DataFrame, published: polars.DataFrame
) -> dict[str, Callable[[], ShownTable]]:
    """Ours beside published figures, and those by level of imbalance on the same splits."""
    done = main.filter(main["status"] == "done")  # only these have a share of positives
    same = published.join(done.select("dataset", "split", "positive_rate").unique(), on=["dataset", "split"])
    return {
        "published": lambda: make_table(
            summary.beside_published(results, published), "Beside the published figures",
            "Over the splits that both have; sets below: data sets more than two standard errors, and 0.005 points, "
            "below."),
        "published_by_data_set": lambda: spread(
            summary.beside_published_by_data_set(results, published), ("ours", "published"),
            title="Beside the published figures, by data set",
            note="* = more than two standard errors of the paired difference, and 0.005 points, below."),
        "published_by_imbalance": lambda: spread(
            summary.by_imbalance(same), title="Published average precision by share of positives, the same splits"),
        "published_precision_at_k": lambda: _precision_table(same, "Published precision at k, the same splits"),
    }  # fmt: skip


def _main(results: polars.DataFrame, plan: Plan) -> polars.DataFrame:
    """Results of the methods that run on all splits of the plan; of all methods if none does."""
    seeds = set(plan.protocol.seeds)
    main = [use.label for use in plan.methods if use.seeds is None or seeds <= set(use.seeds)]
    return results.filter(results["method"].is_in(main)) if main else results


def _known(reference: str | None, results: polars.DataFrame) -> str | None:
    """The reference, if it has figures and there is another method to compare it with; else None."""
    done = results.filter(results["status"] == "done")["method"].unique().to_list()
    return reference if reference in done and len(done) > 1 else None


def _unfinished(results: polars.DataFrame, plan: Plan) -> polars.DataFrame:
    """Trials of the plan without figures, counted by method, status and reason."""
    import polars as pl

    found = {row["trial"]: (row["status"], row["error"] or "") for row in results.iter_rows(named=True)}
    counts: Counter = Counter()
    for trial in plan.trials():
        status, reason = found.get(trial.id, ("missing", "not run yet"))
        if status != "done":
            counts[trial.use.label, status, reason] += 1
    rows = [(*key, n) for key, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    schema = {"method": pl.String, "status": pl.String, "reason": pl.String, "n_trials": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _precision_table(results: polars.DataFrame, title: str) -> ShownTable:
    """Precision at a few k, for each level of imbalance."""
    import polars as pl

    parts = []
    for level in LEVELS:
        frame = _possible(partial(summary.precision_curves, results, level))
        if frame is not None:
            kept = frame.filter(pl.col("percent").is_in(SHARES))
            parts.append(kept.select(pl.lit(float(level)).alias("level"), "n_data_sets", "percent", "method", "mean"))
    if not parts:
        raise NothingToCompareError("no level of imbalance has a data set")
    return spread(pl.concat(parts), title=title, note="k as a share of the test part's positives.")


def _possible(make: Callable[[], Any]) -> Any:
    """The result of `make`, or None if there are not enough results yet."""
    try:
        return make()
    except NothingToCompareError:
        return None


# --- plots --------------------------------------------------------------------------------------------------------


def _plots(results: polars.DataFrame, profiles: polars.DataFrame) -> Iterator[tuple[str, Any]]:
    """Name and display of each plot that the results allow; drawn later."""
    from toprank.plots import CriticalDifferenceDisplay, ImbalanceDisplay, PrecisionAtKDisplay

    def ranks() -> Any:
        found = summary.compare_ranks(results)
        one_group = None if found.test.p_value < summary.LEVEL else [list(found.mean_ranks)]
        return CriticalDifferenceDisplay(
            found.mean_ranks, found.critical_difference, one_group,
            title=f"Mean rank over {found.n_data_sets} data sets; Friedman's test: p "
                  + (f"= {found.test.p_value:.3f}" if found.test.p_value >= 0.001 else "< 0.001"))  # fmt: skip

    def precision(level: int) -> Any:  # figures 4 and 6
        title = f"Precision at k, data sets with at most {level} % positives"
        return PrecisionAtKDisplay.from_frame(summary.precision_curves(results, level), title=title)

    makers: dict[str, Callable[[], Any]] = {
        "by_imbalance": lambda: ImbalanceDisplay.from_frame(summary.by_imbalance(results)),
        "critical_difference": ranks,
    }
    for level in LEVELS:
        makers[f"precision_at_k_{level}"] = partial(precision, level)
        if profiles.height:
            makers[f"by_depth_{level}"] = partial(_depths, profiles, level)
    for name, make in makers.items():
        display = _possible(make)
        if display is not None:
            yield name, display


def _depths(profiles: polars.DataFrame, level: int) -> Any:
    """Figure 5: a method whose values are all squares is drawn at p, the square root of its depth."""
    import polars as pl

    from toprank.plots import DepthDisplay

    frame = summary.by_value(profiles, level)
    squared = []
    for method in frame["method"].unique(maintain_order=True):
        values = frame.filter(pl.col("method") == method)["value"].to_list()
        if values != [1.0] and all(math.isqrt(int(v)) ** 2 == v for v in values):
            squared.append(method)
    title = f"Average precision by depth, data sets with at most {level} % positives"
    return DepthDisplay.from_frame(frame, squared=squared, title=title)


def _save(plots: dict[str, Any], folder: Path, methods: Sequence[str]) -> list[Path]:
    """Draw and write the plots, with one colour per method everywhere; nothing if matplotlib is not installed."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return []
    from toprank.plots import method_styles, save_figure

    styles = method_styles(methods)
    return [save_figure(display.plot(styles=styles), folder / f"{name}.png") for name, display in plots.items()]


def _write(path: Path, text: str) -> Path:
    from toprank.files.atomic import write_atomically

    write_atomically(path, text.encode())
    return path
