"""`Store`: finished trials in one SQLite file; each is on disk before the next one starts.

Every entry has a checksum, so a damaged one is detected and its trial rerun instead of changing a table.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from toprank.errors import InputError
from toprank.experiment.measures import find_measure
from toprank.experiment.plan import Plan, Trial
from toprank.experiment.trial import Outcome, content_of

if TYPE_CHECKING:
    import polars

Result = TypeVar("Result")

FORMAT = "toprank experiment 2"
WITHOUT_CHECKSUMS = "toprank experiment 1"
FINAL = ("done", "failed", "timeout")
"""Outcomes that a further run does not repeat; a skipped trial is tried again, because its package may be there now."""

PATIENCE = 60.0
SECONDS_BETWEEN_TRIES = 0.5

LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
PASSING = (*LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
"""SQLite's codes for problems that may be temporary."""

NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN)

SCHEMA = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT, checksum TEXT) STRICT, WITHOUT ROWID",
    "CREATE TABLE trials (id TEXT PRIMARY KEY, status TEXT, outcome TEXT, checksum TEXT) STRICT, WITHOUT ROWID",
)


class StoreError(OSError):
    """The file of an experiment cannot be read or written now; its content is kept."""


class Store:
    """The outcomes of a plan's trials, and the plan.

    Parameters
    ----------
    path : path of the file
        Created if it does not exist, unless `read_only`.
    read_only : bool
        Change nothing, neither the file nor its folder.
    patience : float
        Seconds to keep trying while the file is locked or the disk is full, before `StoreError` is raised.

    Examples
    --------
    >>> from toprank.experiment import Plan, Store
    >>> plan = Plan.from_dict({"name": "small", "data": ["sick"], "methods": {"Gini": "gini"}})
    >>> with Store(":memory:") as store:
    ...     store.keep_plan(plan)
    ...     len(store.missing())
    5
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, patience: float = PATIENCE):
        self.path = path
        self.patience = patience
        self._warned: set[str] = set()
        try:
            self._connection = self._connect(read_only)
        except sqlite3.Error as error:
            self._refuse(error)
        try:
            if not read_only:
                self._patiently(lambda: self._connection.execute("PRAGMA journal_mode = WAL").fetchall(), opening=True)
                self._connection.execute("PRAGMA synchronous = FULL")
                self._patiently(self._prepare, opening=True, writes=True)
            self._check_format(read_only)
        except BaseException:
            self._connection.close()
            raise

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        where, is_uri = str(self.path), False
        if read_only:
            # A file that no run has open has no write-ahead log. "immutable" then reads it without creating the
            # log's helper files, so also from a folder that cannot be written to.
            is_idle = not Path(f"{self.path}-wal").exists()
            where, is_uri = f"{Path(self.path).absolute().as_uri()}?mode=ro{'&immutable=1' if is_idle else ''}", True
        connection = sqlite3.connect(where, timeout=min(1.0, self.patience), isolation_level=None, uri=is_uri)
        # Damaged bytes become other characters, which the checksum detects.
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        return connection

    def _prepare(self) -> None:
        """Create the tables of a new file; give the entries of a file of the first format their checksums."""
        if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in SCHEMA:
                self._connection.execute(statement)
            self._put("facts", "format", FORMAT)
        elif self._format() == WITHOUT_CHECKSUMS:
            facts = self._connection.execute("SELECT name, value FROM facts WHERE name <> 'format'").fetchall()
            trials = self._connection.execute("SELECT id, status, outcome FROM trials").fetchall()
            for name, statement in zip(("facts", "trials"), SCHEMA, strict=True):
                self._connection.execute(f"DROP TABLE {name}")
                self._connection.execute(statement)
            for row in (("format", FORMAT), *facts):
                self._put("facts", *row)
            for row in trials:
                self._put("trials", *row)

    def _format(self) -> str | None:
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
        return None if row is None else row[0]

    def _check_format(self, read_only: bool) -> None:
        found = self._patiently(self._format, opening=True)
        if found == FORMAT:
            return
        hint = "use the version that wrote it"
        if read_only and found == WITHOUT_CHECKSUMS:
            hint = "`toprank experiment resume FOLDER` brings it up to date"
        raise InputError(f"{self.path} has the format {found!r}, expected {FORMAT!r}. Hint: {hint}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # --- the file -----------------------------------------------------------------------------------------------

    def _patiently(self, work: Callable[[], Result], *, writes: bool = False, opening: bool = False) -> Result:
        """Do some work on the file, in one transaction if it writes; retry while a problem may be temporary."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                with self._connection:  # commits, or rolls back if there was an error
                    if writes:
                        self._connection.execute("BEGIN IMMEDIATE")
                    return work()
            except sqlite3.Error as error:
                if _code(error) not in PASSING or time.monotonic() > deadline:
                    self._refuse(error, opening)
                time.sleep(min(SECONDS_BETWEEN_TRIES, self.patience))

    def _refuse(self, error: sqlite3.Error, opening: bool = True) -> NoReturn:
        """Turn an error of SQLite into one that a user can understand."""
        code, again = _code(error), "run the same command again: finished trials are kept"
        if code is None:  # a bug of ours, such as a closed connection
            raise error
        if code in LOCKED:
            raise StoreError(
                f"{self.path} was locked by another program for more than {self.patience:g} s. "
                f"Hint: end that program, then {again}."
            ) from error
        if code == sqlite3.SQLITE_FULL:
            raise StoreError(
                f"The disk is full: {self.path} could not be written. Hint: free some space, then {again}."
            ) from error
        if code == sqlite3.SQLITE_IOERR:
            raise StoreError(
                f"{self.path} cannot be read or written: {error}. Hint: check the disk, then {again}."
            ) from error
        if opening or code in NOT_WRITABLE:
            raise InputError(
                f"{self.path} cannot be used as an experiment's file: {error}. Hint: name another file."
            ) from error
        raise StoreError(
            f"{self.path} is damaged: {error}. Hint: restore a copy of it, or run the plan in a new folder."
        ) from error

    def _put(self, table: str, *row: str) -> None:
        places = ", ".join("?" for _ in (*row, "checksum"))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*row, _checksum(*row)))

    def _fact(self, name: str) -> str | None:
        """A fact, or None; StoreError if it is damaged."""
        value, is_whole = self._patiently(lambda: self._look_up(name))
        if not is_whole:
            raise StoreError(
                f"{self.path} is damaged: the checksum of its entry {name!r} does not match. Hint: run `toprank "
                "benchmark` with the plan and this folder again; finished trials are kept."
            )
        return value

    def _look_up(self, name: str) -> tuple[str | None, bool]:
        """A fact, or None, and whether its checksum matches."""
        row = self._connection.execute("SELECT value, checksum FROM facts WHERE name = ?", (name,)).fetchone()
        return (None, True) if row is None else (row[0], row[1] == _checksum(name, row[0]))

    def _fact_if_whole(self, name: str) -> str | None:
        value, is_whole = self._patiently(lambda: self._look_up(name))
        return value if is_whole else None

    def _keep_fact(self, name: str, value: str) -> None:
        self._patiently(lambda: self._put("facts", name, value), writes=True)

    # --- the plan -----------------------------------------------------------------------------------------------

    def keep_plan(self, plan: Plan, folder: str | Path | None = None) -> None:
        """Store the plan and the location of its tables, so that the file alone is enough to resume.

        The plan may be a changed version of the one in the file, but not a plan of another name: two plans in one
        folder would overwrite each other's tables.
        """
        content = plan.to_dict()
        for table in content["data"]:
            if "path" in table:
                table["path"] = str(Path(table["path"]).absolute())
        where = "" if folder is None else str(Path(folder).absolute())

        def put() -> None:
            text, is_whole = self._look_up("plan")
            name = json.loads(text)["name"] if text is not None and is_whole else None
            if name is not None and name != plan.name:
                raise InputError(
                    f"{self.path} belongs to the plan {name!r}, found a plan named {plan.name!r}. "
                    "Hint: choose another folder with --out."
                )
            self._put("facts", "plan", json.dumps(content))
            self._put("facts", "folder", where)

        self._patiently(put, writes=True)
        self._compare_content(plan, folder)
        versions = []  # of the packages that determine figures
        for name in ("toprank", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "imbalanced-learn"):
            with contextlib.suppress(metadata.PackageNotFoundError):
                versions.append(f"{name} {metadata.version(name)}")
        present, before = ", ".join(versions), self._fact_if_whole("versions")
        if before is not None and before != present:
            warnings.warn(
                f"Some trials in {self.path} were run with {before}, but this is {present}: figures may differ for "
                "reasons that have nothing to do with the methods. Hint: start in a new folder.",
                stacklevel=2,
            )
        self._keep_fact("versions", present)

    def _compare_content(self, plan: Plan, folder: str | Path | None) -> None:
        """Warn about tables whose file has changed since trials were run."""
        for table in plan.tables:
            content = content_of(table, folder)
            before = self._fact_if_whole(f"content of {table.name}")
            if content is None:
                continue
            if before is not None and before != content:
                warnings.warn(
                    f"The content of table {table.name!r} has changed since trials in {self.path} were run, which keep "
                    "the old figures. Hint: start in a new folder.",
                    stacklevel=3,
                )
            else:
                self._keep_fact(f"content of {table.name}", content)

    @property
    def plan(self) -> Plan:
        """The plan stored last."""
        text = self._fact("plan")
        if text is None:
            raise InputError(f"{self.path} holds no plan. Hint: start with `toprank benchmark plan.yaml`.")
        return Plan.from_dict(json.loads(text), owner=f"the plan in {self.path}")

    @property
    def folder(self) -> str | None:
        """Where to find tables by name."""
        return self._fact("folder") or None

    # --- trials -------------------------------------------------------------------------------------------------

    def keep(self, trial: Trial, outcome: Outcome) -> None:
        """Write an outcome; it is on disk when this returns."""
        text = json.dumps(outcome)
        self._patiently(lambda: self._put("trials", trial.id, outcome["status"], text), writes=True)

    def outcomes(self) -> dict[str, Outcome]:
        """Outcome of every trial in the file, by id; damaged ones are left out, with a warning that names them."""
        whole, damaged = self._read()
        self._warn_of(damaged)
        return whole

    def missing(self, *, retry: bool = False) -> list[Trial]:
        """Trials of the plan still to run; with `retry` also those that failed or took too long.

        Includes trials whose outcome is damaged.
        """
        final = FINAL[:1] if retry else FINAL
        done = {trial_id for trial_id, outcome in self.outcomes().items() if outcome["status"] in final}
        return [trial for trial in self.plan.trials() if trial.id not in done]

    def drop_damaged(self) -> None:
        """Delete the outcomes whose checksum does not match, so that their trials count as not run."""
        _, damaged = self._read()
        self._warn_of(damaged)

        def delete() -> None:
            self._connection.executemany("DELETE FROM trials WHERE id = ?", [(trial_id,) for trial_id in damaged])

        if damaged:
            self._patiently(delete, writes=True)

    def _read(self) -> tuple[dict[str, Outcome], list[str]]:
        """Outcomes by id, and the ids of those whose checksum does not match."""
        rows = self._patiently(
            lambda: self._connection.execute("SELECT id, status, outcome, checksum FROM trials").fetchall()
        )
        whole = {row[0]: json.loads(row[2]) for row in rows if row[3] == _checksum(*row[:3])}
        return whole, [row[0] for row in rows if row[3] != _checksum(*row[:3])]

    def _warn_of(self, damaged: list[str]) -> None:
        """Name damaged outcomes, each once."""
        new = [trial_id for trial_id in damaged if trial_id not in self._warned]
        if not new:
            return
        self._warned.update(new)
        names = {t.id: f"{t.table.name}, {t.use.label}, {t.split}" for t in self.plan.trials()}
        listed = "; ".join(names.get(trial_id, f"trial {trial_id!r}") for trial_id in new)
        warnings.warn(
            f"{self.path} holds damaged outcomes, which are left out: {listed}. Hint: `toprank experiment resume` runs "
            "these trials again.",
            stacklevel=4,
        )

    # --- figures ------------------------------------------------------------------------------------------------

    def results(self) -> polars.DataFrame:
        """One row per trial of the plan that has an outcome; see docs/experiments.md for the columns."""
        import polars as pl

        plan, outcomes = self.plan, self.outcomes()
        columns = [column for name in plan.measures for column in find_measure(name).columns]
        columns.append("average_precision_train")
        schema = _schema(columns)
        rows = [_row(trial, outcomes[trial.id], schema) for trial in _in_order(plan) if trial.id in outcomes]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def profiles(self) -> polars.DataFrame:
        """One row per trial and value of the profiled parameter."""
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


def _code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code; None if the error is not SQLite's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _checksum(*texts: str) -> str:
    """Checksum of an entry of the file; the lengths keep the parts apart."""
    joined = "".join(f"{len(str(text))}:{text}" for text in texts)
    return hashlib.sha256(joined.encode("utf-8", "replace")).hexdigest()[:16]


def _in_order(plan: Plan) -> list[Trial]:
    """Trials by table, method and split, in the order of the plan."""
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


def _row(trial: Trial, outcome: Outcome, names: Iterable[str]) -> tuple[Any, ...]:
    n = outcome.get("n")
    found = outcome | outcome.get("measures", {}) | {
        "trial": trial.id, "dataset": trial.table.name, "split": trial.split, "method": trial.use.label,
        "positive_rate": outcome["n_positives"] / n if n else None,
        "setting": json.dumps(outcome["setting"], sort_keys=True) if "setting" in outcome else None,
    }  # fmt: skip
    return tuple(found.get(name) for name in names)
