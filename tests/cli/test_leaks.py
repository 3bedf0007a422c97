"""The note on a column that gives the outcome away: when it appears, and when not."""

import json

import numpy as np
import polars as pl
import pytest

from cli_files import run
from toprank.datasets import make_audit
from toprank.workflow.leaks import area_alone

N = 2000
FIT = ("fit", "--cv", 0)
CURVE = (
    "curve",
    "--set",
    "depths=[2]",
    "--set",
    "alphas=[1]",
    "--set",
    "cv=0",
    "--set",
    "cost_factor=9",
    "--jobs",
    1,
)
MODELS = [
    (*FIT, "--model", "metaap", "--set", "max_depth=2"),
    (*FIT, "--model", "metaap", "--set", "leaf_score=linear", "--set", "min_samples_leaf=1500"),  # only a scorecard
    (*FIT, "--model", "metaap-forest", "--set", "n_estimators=3"),
    CURVE,
]


def audits():
    """Simulated audits with their outcomes."""
    data = make_audit(N, positive_rate=0.05, random_state=0, as_frame="polars")
    return data.X.with_columns(pl.Series("fraud", data.y)), data.y == 1


def columns_that_tell():
    """Columns that are known only with the outcome, by what they are."""
    rng, is_positive = np.random.default_rng(0), audits()[1]
    amount = rng.lognormal(5, 2, N)
    return {
        "copy": is_positive.astype(int),
        "words": np.where(is_positive, "guilty", "not guilty"),
        "one in a hundred wrong": (is_positive ^ (rng.random(N) < 0.01)).astype(int),
        "noise": is_positive + 0.01 * rng.normal(size=N),
        "above zero": np.where(is_positive, amount, 0.0),
        "filled in": np.where(is_positive, amount, np.nan),
    }


@pytest.mark.parametrize("kind", list(columns_that_tell()))
def test_a_column_that_tells_the_outcome_is_named(tmp_path, kind):
    table, _ = audits()
    column = pl.Series("found later", columns_that_tell()[kind], nan_to_null=True)
    table.with_columns(column).write_csv(tmp_path / "history.csv")
    for command, *options in MODELS if kind == "copy" else MODELS[:1]:
        common = (command, tmp_path / "history.csv", "--label", "fraud", *options, "-o", tmp_path / "m.toprank")
        done = run(*common)
        assert done.code == 0, done.err
        note = "Note: Column 'found later' may give the outcome away: on its own it ranks held-out cases with an area "
        assert done.err.startswith(note)
        assert done.err.endswith("leave it out with --drop 'found later'.\n")
        assert "give the outcome away" not in done.out
    if kind != "copy":
        return
    assert "give the outcome away" not in run(*common, "--drop", "found later").err
    assert run(*common, "--quiet").err == ""
    as_data = run(*common, "--json")
    assert as_data.err == ""
    assert len(json.loads(as_data.out)["notes"]) == 1


@pytest.mark.parametrize("command", MODELS, ids=["tree", "scorecard", "forest", "curve"])
def test_columns_that_are_only_of_use_get_no_note(tmp_path, command):
    audits()[0].write_csv(tmp_path / "history.csv")
    done = run(command[0], tmp_path / "history.csv", "--label", "fraud", *command[1:], "-o", tmp_path / "m.toprank")
    assert (done.code, done.err) == (0, "")


def test_what_one_column_tells_is_judged_on_cases_held_out():
    is_positive = np.arange(400) % 10 == 0
    assert area_alone(pl.DataFrame({"name": [f"n{i}" for i in range(400)]}), is_positive) == 0.5
    assert area_alone(pl.DataFrame({"label": is_positive.astype(int)}), is_positive) == 1
    assert np.isnan(area_alone(pl.DataFrame({"label": is_positive[:90].astype(int)}), is_positive[:90]))
