"""What `topk` and `describe` print for a small fixed table, to the letter."""

import re

import pytest

from cli_files import fit_cases, run
from golden_files import golden


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    fit_cases(folder, "--set", "leaf_score=constant")
    return folder


def settled(text: str) -> str:
    """Replace what changes from run to run or from version to version."""
    return re.sub(r"(  written +).*", r"\1DATE by VERSION; data HASH", text)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("topk", ["topk", "model.toprank", "history.csv", "--k", "6", "--id", "case_id", "--keep", "amount"]),
        ("describe_model", ["describe", "model.toprank"]),
        ("describe_table", ["describe", "history.csv", "--label", "fraud"]),
        ("evaluate", ["evaluate", "model.toprank", "history.csv", "--label", "fraud", "--k", "20"]),
    ],
)
def test_printed(folder, monkeypatch, name, args):
    monkeypatch.chdir(folder)
    done = run(*args)
    assert done.code == 0
    assert ("was trained on the cases of history.csv" in done.err) if name == "evaluate" else not done.err
    check(settled(done.out), f"cli_{name}.txt")


def test_written_alerts(folder, tmp_path):
    out = tmp_path / "alerts.csv"
    done = run("topk", folder / "model.toprank", folder / "history.csv", "--k", 6, "--id", "case_id", "-o", out)
    assert done.code == 0
    check(out.read_text(encoding="utf-8"), "cli_alerts.csv")


def check(text: str, name: str) -> None:
    """Compare with a golden file."""
    assert text == golden(name, text)
