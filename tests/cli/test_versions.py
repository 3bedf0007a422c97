"""`toprank diff` and `toprank distill`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import toprank
from cli_files import case_lines, fit_cases, run, save_classifier, write_cases
from toprank.cli.app import app
from toprank.metrics import Interval
from toprank.workflow import distill as workflow_distill


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    fit_cases(folder, "--set", "leaf_score=constant")
    how = ("--label", "fraud", "--drop", "case_id,staff", "--cv", 0, "--model", "tree", "--budget", 25)
    assert run("fit", folder / "history.csv", *how, "-o", folder / "new.toprank").code == 0
    write_cases(folder / "checked.csv", lines=case_lines()[50:])
    return folder


def diff(folder, *more):
    return run("diff", folder / "model.toprank", folder / "new.toprank", folder / "checked.csv", *more)


def test_diff_says_what_is_better_who_moves_and_what_changed(folder):
    done = diff(folder, "--label", "fraud", "--id", "case_id", "-k", 40)
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert said.startswith(
        "model.toprank (before) and new.toprank (after) on checked.csv cases 250, 20 positive (8.00 %)"
    )
    assert re.search(r" AP 0\.\d{3} before, \d\.\d{3} after: [+-]\d\.\d{3} \(\S+ to \S+ with 95 % confidence\)", said)
    assert re.search(r" hits \d+ before, \d+ after in the first 40 list \d+ of the first 40 are new: \d+ hits? ", said)
    assert " model RankingTree instead of MetaAP " in said
    assert " columns dropped staff " in said
    assert re.search(
        r"Cases that entered or left the first 40.* case_id rank before rank after outcome .*entered C", said
    )
    assert max(map(len, done.out.splitlines())) <= 100


def test_diff_writes_the_moved_cases_and_needs_no_outcomes(folder, tmp_path):
    out = tmp_path / "moved.csv"
    done = diff(folder, "--id", "case_id", "-o", out, "--json")
    result = json.loads(done.out)
    assert result["k"] == 25
    moved = pl.read_csv(out)
    assert moved.columns == ["case_id", "change", "row", "rank_before", "rank_after"]
    assert moved.to_dicts() == result["moved"]
    assert moved.height == 2 * result["n_new"] > 0
    ids = pl.read_csv(folder / "checked.csv")["case_id"]
    assert moved["case_id"].to_list() == ids.gather(moved["row"]).to_list()


def test_diff_of_one_model_with_itself(folder):
    done = run("diff", folder / "model.toprank", folder / "model.toprank", folder / "checked.csv", "-k", 1)
    assert "the first case is the same before and after" in done.out
    assert done.out.endswith("What changed in the model\n  Nothing changed in the model.\n")


def test_diff_refuses_what_it_cannot_compare(folder, tmp_path):
    table, one = folder / "checked.csv", folder / "model.toprank"
    lacking = tmp_path / "lacking.csv"
    pl.read_csv(table).drop("staff").write_csv(lacking)
    done = run("diff", one, folder / "new.toprank", lacking)
    assert (done.code, done.err.startswith("Column 'staff' was used to train this model")) == (2, True)
    assert "does not rank" in run("diff", one, save_classifier(tmp_path), table).err
    assert "is also an input" in run("diff", one, one, table, "-o", table).err
    assert "--k must be from 1 to the number of rows of checked.csv (250), got 999" in diff(folder, "-k", 999).err


def test_diff_of_models_that_find_columns_by_position(folder, tmp_path):
    data = pl.read_csv(folder / "history.csv")
    names = ["amount", "staff"]
    paths = [tmp_path / "a.toprank", tmp_path / "b.toprank"]
    for path, depth in zip(paths, (1, 2), strict=True):
        toprank.RankingTree(max_depth=depth, cv=0).fit(data[names].to_numpy(), data["fraud"].to_numpy()).save(path)
    table = tmp_path / "t.csv"
    data[names].rename({"amount": "x0", "staff": "x1"}).write_csv(table)
    assert "max_depth=2 instead of 1" in run("diff", *paths, table).out
    both = data[[*names, "sector", "age"]].with_columns(x0="amount", x1="staff")
    both.write_csv(table)
    assert "by position" in run("diff", folder / "new.toprank", paths[0], table).err


# --- distill ------------------------------------------------------------------------------------------------------

TAUGHT = ("--label", "fraud", "--id", "case_id", "--teacher", "cost-tree", "--student", "tree", "--cv", 3)


def test_distill_reports_and_writes_the_student(folder, tmp_path):
    out = tmp_path / "s.toprank"
    done = run("distill", folder / "history.csv", *TAUGHT, "--set", "max_depth=2", "--budget", 20, "-o", out)
    assert (done.code, done.err) == (0, "")
    said = " ".join(done.out.split())
    assert said.startswith("RankingTree taught by CostTree size ")
    assert "trained on 225 cases of history.csv judged on 75 cases held out of history.csv, " in said
    assert re.search(r"fidelity \d[\d.]* % of the teacher's first 20 of these \d+ are among the student's", said)
    assert re.search(
        r"CostTree, the teacher \d\.\d{3} RankingTree, taught \d\.\d{3} RankingTree, as `toprank fit` makes it \d", said
    )
    assert re.search(r"The taught model is .* without a teacher \(95 % interval of the gain [+-]", said)
    figures = done.out.partition("Average precision\n")[2].partition("\n\n")[0]
    assert all(line.startswith("  ") for line in figures.splitlines())
    assert f"toprank topk {out} NEW_CASES.csv --k 20 --id case_id -o alerts.csv" in said
    student = toprank.load(out)
    assert (student.max_depth, student.budget, student.rates_.source) == (2, 20, "3-fold cross-validation")


def test_distill_advises_against_a_teacher_only_if_it_is_clearly_worse(folder, tmp_path, monkeypatch):
    found, gains = [], [Interval(-0.05, -0.1, high, 0.95) for high in (-0.01, 0.01)]

    def worse(*args, **given):
        found.append(found[0] if found else workflow_distill(*args, **given))
        return replace(found[0], gain=gains[len(found) - 1])

    monkeypatch.setattr("toprank.workflow.distill", worse)
    for is_advised in (True, False):
        done = run("distill", folder / "history.csv", *TAUGHT, "-o", tmp_path / "s.toprank")
        assert ("`toprank fit` makes the better model" in done.out) is is_advised
        assert ("may be chance" in done.out) is not is_advised


def test_distill_reports_on_later_cases(folder, tmp_path):
    more = ("--test", folder / "checked.csv", "--set-teacher", "max_depth=1", "--json", "-o", tmp_path / "s.toprank")
    result = json.loads(run("distill", folder / "history.csv", *TAUGHT, *more).out)
    assert (result["teacher"], result["student"], result["n_test"]) == ("CostTree", "RankingTree", 250)
    assert 0 <= result["fidelity"] <= 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--teacher", "metaap-forrest"), "got 'metaap-forrest'. Hint: did you mean 'metaap-forest'?"),
        (("--student", "redflags"), "--student must be one of metaap, "),
        (("--cv", 2), "--cv must be at least 3 folds, got 2."),
        (("--student", "tree", "--set", "max_deep=1"), "RankingTree has no parameter 'max_deep'"),
        (("--set-teacher", "n_tree=1"), "MetaAPForest has no parameter 'n_tree'"),
    ],
)
def test_distill_says_what_is_wrong(folder, tmp_path, args, expected):
    done = run("distill", folder / "history.csv", "--label", "fraud", *args, "-o", tmp_path / "s.toprank")
    assert done.code == 2
    assert expected in done.err
    assert not list(tmp_path.iterdir())


def test_every_command_has_its_line_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"| `toprank {command.callback.__name__}` |" in page
