"""`Store`: finished trials in one SQLite file; each is on disk before the next is begun."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from toprank.experiment.data import content_of
from toprank.experiment.plan import Plan, Trial, measure_columns
from toprank.experiment.trial import Outcome

if TYPE_CHECKING:
    import polars

FORMAT = "toprank experiment 1"
FINAL = ("done", "failed", "timeout")
"""Outcomes that a further run does not repeat by itself; a skipped trial is tried again, its package may be there."""


class Store:
    """The outcomes of a plan's trials, and the plan.

    Parameters
    ----------
    path : path of the file
        Created where there is none.

    Examples
    --------
    >>> from toprank.experiment import Plan, Store
    >>> plan = Plan.from_dict({"name": "small", "data": ["sick"], "methods": {"Gini": "gini"}})
    >>> with Store(":memory:") as store:
    ...     store.keep_plan(plan)
    ...     len(store.missing())
    5
    """

    def __init__(self, path: str | Path):
        self.path = path
        try:
            self._connection = sqlite3.connect(str(path), isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) STRICT")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS trials (id TEXT PRIMARY KEY, status TEXT, outcome TEXT) STRICT"
            )
            self._connection.execute("INSERT OR IGNORE INTO facts VALUES ('format', ?)", (FORMAT,))
            found = self._fact("format")
        except sqlite3.Error as error:
            raise ValueError(
                f"{path} cannot be used as an experiment's file: {error}. Hint: name another file."
            ) from None
        if found != FORMAT:
            raise ValueError(
                f"{path} has the format {found!r}, expected {FORMAT!r}. Hint: use the version that wrote it."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _fact(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _keep_fact(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    # --- the plan -----------------------------------------------------------------------------------------------

    def keep_plan(self, plan: Plan, folder: str | Path | None = None) -> None:
        """Remember the plan and where its tables are, so that the file alone is enough to go on."""
        content = plan.to_dict()
        for table in content["data"]:
            if "path" in table:
                table["path"] = str(Path(table["path"]).absolute())
        self._keep_fact("plan", json.dumps(content))
        self._keep_fact("folder", "" if folder is None else str(Path(folder).absolute()))
        self._compare_content(plan, folder)
        present, before = _versions(), self._fact("versions")
        if before is not None and before != present:
            warnings.warn(
                f"Some trials in {self.path} were run with {before}, now it is {present}: figures may differ for "
                "reasons that have nothing to do with the methods. Hint: begin in a new folder.",
                stacklevel=2,
            )
        self._keep_fact("versions", present)

    def _compare_content(self, plan: Plan, folder: str | Path | None) -> None:
        """Warn of tables whose file is not what it was when trials were run."""
        for table in plan.tables:
            content = content_of(table, folder)
            before = self._fact(f"content of {table.name}")
            if content is None:
                continue
            if before is not None and before != content:
                warnings.warn(
                    f"The content of table {table.name!r} has changed since trials in {self.path} were run, which keep "
                    "the old figures. Hint: begin in a new folder.",
                    stacklevel=3,
                )
            else:
                self._keep_fact(f"content of {table.name}", content)

    @property
    def plan(self) -> Plan:
        """The plan that was kept last."""
        text = self._fact("plan")
        if text is None:
            raise ValueError(f"{self.path} holds no plan. Hint: begin with `toprank benchmark plan.yaml`.")
        return Plan.from_dict(json.loads(text), owner=f"the plan in {self.path}")

    @property
    def folder(self) -> str | None:
        """Where tables are looked up by name."""
        return self._fact("folder") or None

    # --- trials -------------------------------------------------------------------------------------------------

    def keep(self, trial: Trial, outcome: Outcome) -> None:
        """Write an outcome; it is on disk when this returns."""
        self._connection.execute(
            "INSERT OR REPLACE INTO trials VALUES (?, ?, ?)", (trial.id, outcome["status"], json.dumps(outcome))
        )

    def outcomes(self) -> dict[str, Outcome]:
        """Outcome of every trial in the file, by id."""
        return {row[0]: json.loads(row[1]) for row in self._connection.execute("SELECT id, outcome FROM trials")}

    def missing(self, *, retry: bool = False) -> list[Trial]:
        """Trials of the plan that are still to be run; with `retry` also those that failed or took too long."""
        final = FINAL[:1] if retry else FINAL
        done = {row[0] for row in self._connection.execute("SELECT id, status FROM trials") if row[1] in final}
        return [trial for trial in self.plan.trials() if trial.id not in done]

    # --- figures ------------------------------------------------------------------------------------------------

    def results(self) -> polars.DataFrame:
        """One row a trial of the plan that has an outcome; see docs/experiments.md for the columns."""
        import polars as pl

        plan, outcomes = self.plan, self.outcomes()
        columns = [*measure_columns(plan.measures), "average_precision_train"]
        schema = _schema(columns)
        rows = [_row(trial, outcomes[trial.id], columns) for trial in _in_order(plan) if trial.id in outcomes]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def profiles(self) -> polars.DataFrame:
        """One row a trial and value of the parameter that it was followed along."""
        import polars as pl

        plan, outcomes = self.plan, self.outcomes()
        schema = {"dataset": pl.String, "positive_rate": pl.Float64, "split": pl.String, "method": pl.String,
                  "parameter": pl.String, "value": pl.Float64, "average_precision": pl.Float64}  # fmt: skip
        rows = [
            (trial.table.name, outcome["n_positives"] / outcome["n"], trial.split, trial.use.label, point["parameter"],
             float(point["value"]), point["average_precision"])
            for trial in _in_order(plan)
            if (outcome := outcomes.get(trial.id, {})).get("status") == "done"
            for point in outcome["profile"]
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")


def _versions() -> str:
    """Versions of what decides figures."""
    names = ("toprank", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "imbalanced-learn")
    found = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)


def _in_order(plan: Plan) -> list[Trial]:
    """Trials by table, method and split, as the plan orders them."""
    tables = {table.name: i for i, table in enumerate(plan.tables)}
    methods = {use.label: i for i, use in enumerate(plan.methods)}
    return sorted(plan.trials(), key=lambda trial: (tables[trial.table.name], methods[trial.use.label]))


def _schema(columns: list[str]) -> dict[str, Any]:
    import polars as pl

    text = ("trial", "dataset", "split", "method", "status", "error", "setting", "size_unit")
    whole = ("n", "n_positives", "n_train", "n_test", "n_settings")
    names = ("trial", "dataset", "n", "n_positives", "positive_rate", "n_train", "n_test", "split", "method", "status",
             "error", "setting", "tuning_score", *columns, "size", "size_unit", "is_readable", "seconds_tune",
             "seconds_fit", "seconds_score", "n_settings")  # fmt: skip
    types: dict[str, Any] = dict.fromkeys(names, pl.Float64)
    types |= dict.fromkeys(text, pl.String) | dict.fromkeys(whole, pl.Int64) | {"is_readable": pl.Boolean}
    return {name: types[name] for name in names}


def _row(trial: Trial, outcome: Outcome, columns: list[str]) -> tuple[Any, ...]:
    measures, n = outcome.get("measures", {}), outcome.get("n")
    setting = json.dumps(outcome["setting"], sort_keys=True) if "setting" in outcome else None
    return (
        trial.id, trial.table.name, n, outcome.get("n_positives"), outcome["n_positives"] / n if n else None,
        outcome.get("n_train"), outcome.get("n_test"), trial.split, trial.use.label, outcome["status"],
        outcome.get("error"), setting, outcome.get("tuning_score"), *(measures.get(c) for c in columns),
        outcome.get("size"), outcome.get("size_unit"), outcome.get("is_readable"), outcome.get("seconds_tune"),
        outcome.get("seconds_fit"), outcome.get("seconds_score"), outcome.get("n_settings"),
    )  # fmt: skip
