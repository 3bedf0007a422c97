"""Cases that belong together, on the command line: --group, identifiers that repeat, and the notes about them."""

import json

import numpy as np
import polars as pl
import pytest

from cli_files import run

QUICK = (
    "--model",
    "sgbap",
    "--set",
    "n_estimators=20",
    "--set",
    "blend=0.8",
    "--set",
    "max_depth=6",
    "--cv",
    3,
    "--json",
)


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A file of persons with four visits each, whose outcome comes back."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(200), 4)
    own, is_bad = rng.normal(size=(200, 3)).round(3), rng.random(200) < 0.1
    frame = pl.DataFrame(own[person], schema=["a", "b", "c"]).with_columns(
        pl.Series("person_id", person + 7000),
        pl.Series("visit", np.arange(len(person))),
        pl.Series("amount", rng.normal(size=len(person)).round(2)),  # equal rows would share a fold anyway
        pl.Series("fraud", (rng.random(len(person)) < np.where(is_bad, 0.9, 0.01)[person]).astype(int)),
    )
    path = tmp_path_factory.mktemp("groups") / "visits.csv"
    frame.write_csv(path)
    return path


def precision_of(done):
    assert done.code == 0, done.err
    return json.loads(done.out)["judged"]["average_precision"]


def notes_of(done):
    return " ".join(json.loads(done.out)["notes"])


def test_groups_lower_what_fit_expects_of_new_cases(visits, tmp_path):
    out = ("-o", tmp_path / "m.toprank")
    alone = run("fit", visits, "--label", "fraud", "--drop", "person_id,visit", *QUICK, *out)
    together = run("fit", visits, "--label", "fraud", "--group", "person_id", "--drop", "visit", *QUICK, *out)
    assert precision_of(alone) > 2 * precision_of(together)
    info = json.loads(together.out)["info"]
    assert "person_id" not in [column["name"] for column in info["columns"]]


def test_an_identifier_that_repeats_is_the_group(visits, tmp_path):
    chosen = [
        run("fit", visits, "--label", "fraud", *given, *QUICK, "-o", tmp_path / "m.toprank")
        for given in (("--id", "person_id", "--drop", "visit"), ("--group", "person_id", "--drop", "visit"))
    ]
    assert precision_of(chosen[0]) == precision_of(chosen[1])
    assert "'person_id' repeats (200 values in 800 rows)" in notes_of(chosen[0])
    assert "repeats" not in notes_of(chosen[1])


def test_one_identifier_per_row_is_no_group(visits, tmp_path):
    done = run("fit", visits, "--label", "fraud", "--id", "visit,person_id", *QUICK, "-o", tmp_path / "m.toprank")
    assert "repeats" not in notes_of(done)
    assert precision_of(done) > 0.3


@pytest.mark.parametrize("name", ["person_id", "guid"])
def test_a_feature_that_looks_like_an_identifier_that_repeats_gets_a_note(visits, tmp_path, name):
    named = tmp_path / "visits.csv"
    pl.read_csv(visits).rename({"person_id": name}).write_csv(named)
    done = run("fit", named, "--label", "fraud", "--drop", "visit", *QUICK, "-o", tmp_path / "m.toprank")
    assert f"{name!r} looks like an identifier that repeats (200 values in 800 rows)" in notes_of(done)
    assert f"--group {name}" in notes_of(done)


def test_curve_and_compare_keep_groups_together(visits, tmp_path):
    given = ("--label", "fraud", "--group", "person_id", "--drop", "visit", "--json")
    done = run("compare", visits, *given, "--methods", "tree,cart", "--folds", 3, "--jobs", 1, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert max(entry["average_precision"] for entry in found["leaderboard"]) < 0.3
    assert "--group person_id" in found["next"]
    quick = ("--set", "depths=[3]", "--set", "alphas=[0.1]", "--set", "cost_factor=16", "--set", "cv=2")
    done = run("curve", visits, *given, *quick)
    assert done.code == 0, done.err


def test_distill_keeps_groups_together(visits, tmp_path):
    given = ("--label", "fraud", "--group", "person_id", "--drop", "visit", "--json")
    alone = ("--label", "fraud", "--drop", "visit,person_id", "--json")
    models = ("--teacher", "metaap-forest", "--set-teacher", "n_estimators=6", "--student", "tree", "--cv", 3)
    found = [run("distill", visits, *options, *models, "-o", tmp_path / "m.toprank") for options in (given, alone)]
    assert all(done.code == 0 for done in found), found
    teacher = [json.loads(done.out)["teacher_ap"] for done in found]
    assert teacher[0] < teacher[1] / 1.5  # it knows the persons again


def test_an_identifier_with_few_values_is_no_group(visits, tmp_path):
    frame = pl.read_csv(visits).with_columns(region=pl.col("visit") % 3)
    frame.write_csv(tmp_path / "regions.csv")
    given = ("--label", "fraud", "--id", "region", "--drop", "visit,person_id")
    done = run("fit", tmp_path / "regions.csv", *given, *QUICK, "-o", tmp_path / "m.toprank")
    assert "repeats" not in notes_of(done)


def test_one_group_column(visits, tmp_path):
    done = run("fit", visits, "--label", "fraud", "--group", "person_id,visit", "-o", tmp_path / "m.toprank")
    assert done.code == 2
    assert "--group takes one column, got 2" in done.err


def test_the_label_is_no_group(visits, tmp_path):
    done = run("fit", visits, "--label", "fraud", "--group", "fraud", "-o", tmp_path / "m.toprank")
    assert done.code == 2
    assert "--group names 'fraud', which is the label column" in done.err


def test_a_group_that_is_not_there(visits, tmp_path):
    done = run("fit", visits, "--label", "fraud", "--group", "person", "-o", tmp_path / "m.toprank")
    assert done.code == 2
    assert "person_id" in done.err
