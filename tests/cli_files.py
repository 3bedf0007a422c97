"""Small files for the tests of the command line, and a way to run it that keeps what it prints."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from toprank import TAOClassifier
from toprank.cli import main

N_CASES = 300
SECTORS = ("retail", "construction", "transport")
HEADER = "case_id,sector,amount,age,staff,fraud"


@dataclass(frozen=True)
class Finished:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def run(*args: object) -> Finished:
    """Run a command as in a terminal of 100 columns without colours."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
    ):
        code = main([str(arg) for arg in args])
    return Finished(code, out.getvalue(), err.getvalue())


def case_lines() -> list[str]:
    """Rows of the small table: fraud in construction with a large amount, some cells empty, nothing random."""
    lines = []
    for i in range(N_CASES):
        sector, amount = SECTORS[i % 3], (i * 37 % 200) * 10
        age = "" if i % 17 == 0 else str(i * 7 % 20)
        fraud = int((sector == "construction" and amount > 1500) or i % 97 == 5)
        lines.append(f"C{i:04d},{sector},{amount},{age},{i % 11},{fraud}")
    return lines


def write_cases(path: Path, header: str = HEADER, lines: list[str] | None = None) -> Path:
    """Write a CSV file of the small table."""
    path.write_text("\n".join([header, *(case_lines() if lines is None else lines), ""]), encoding="utf-8")
    return path


def fit_cases(folder: Path, *more: object) -> Path:
    """Fit a small tree on the small table and return its file."""
    history, model = write_cases(folder / "history.csv"), folder / "model.toprank"
    settings = ("--model", "metaap", "--set", "max_depth=2", "--set", "leaf_depth=2", "--budget", 40, "--cv", 0)
    done = run("fit", history, "--label", "fraud", "--id", "case_id", *settings, "-o", model, *more)
    assert done.code == 0, done.err
    return model


QUICK_FLAGS = ("--cv", 0, "--set", "teacher=none")
"""The default model without what takes time: hit rates of new cases and the teacher."""


def save_classifier(folder: Path, **parameters: object) -> Path:
    """Fit a model that tells small cases from large ones and fraud in the small table, and return its file."""
    table, path = pl.read_csv(write_cases(folder / "history.csv")), folder / "classes.toprank"
    kind = [
        "fraud" if fraud else "large" if amount > 900 else "small"
        for amount, fraud in table["amount", "fraud"].iter_rows()
    ]
    how: dict[str, Any] = {"max_depth": 3, "split": "axis"} | parameters
    TAOClassifier(**how).fit(table["sector", "amount", "age"], kind).save(path)
    return path
