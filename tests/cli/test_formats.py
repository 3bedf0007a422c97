"""--sep and --encoding: every command that reads a table takes them."""

import json
import shlex

import pytest

from cli_files import HEADER, QUICK_FLAGS, case_lines, run

FORMAT = ("--sep", ":", "--encoding", "cp1252")
LABEL = ("--label", "fraud", "--id", "case_id")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    text = "\n".join([HEADER, *case_lines(), ""]).replace("retail", "détail").replace(",", ":")
    (folder / "h.txt").write_bytes(text.encode("cp1252"))
    (folder / "new.txt").write_bytes(text.replace("transport", "détail").encode("cp1252"))
    done = run("fit", folder / "h.txt", *FORMAT, *LABEL, *QUICK_FLAGS, "-o", folder / "m.toprank")
    assert done.code == 0, done.err
    return folder


def found(*args: object, code: int = 0) -> dict:
    done = run(*args, "--json")
    assert done.code == code, done.err
    return json.loads(done.out)


def test_describe_topk_and_evaluate(folder):
    columns = found("describe", folder / "h.txt", *FORMAT)["columns"]
    assert [each["name"] for each in columns] == HEADER.split(",")
    assert "détail" in columns[1]["values"]
    alerts = found("topk", folder / "m.toprank", folder / "h.txt", *FORMAT, "--k", 300, "--keep", "sector")["alerts"]
    assert {alert["sector"] for alert in alerts} == {"détail", "construction", "transport"}
    assert found("evaluate", folder / "m.toprank", folder / "h.txt", *FORMAT, "--label", "fraud")["n_cases"] == 300


def test_drift(folder):
    result = found("drift", folder / "h.txt", folder / "new.txt", *FORMAT, "--ignore", "case_id,fraud", code=1)
    assert result["columns"] == ["sector", "amount", "age", "staff"]


def test_curve(folder):
    fast = ("--set", "depths=[2]", "--set", "n_init=1", "--split", "axis", "--validation", folder / "new.txt")
    assert found("curve", folder / "h.txt", *FORMAT, *LABEL, *fast, "-o", folder / "c.toprank")
    done = run("curve", folder / "c.toprank", "--sep", ";")
    assert done.code == 2
    assert "--sep" in done.err


def test_compare_repeats_them_in_the_next_command(folder, tmp_path):
    pytest.importorskip("pandas")
    methods = ("--methods", "metaap", "--folds", 2, "-o", tmp_path / "out")
    result = found("compare", folder / "h.txt", *FORMAT, *LABEL, *methods)
    assert shlex.join(FORMAT) in result["next"]


def test_formats_are_checked_before_the_work(folder, tmp_path):
    for options, value in ((("--sep", "ab"), "'ab'"), (("--encoding", "latin-99"), "'latin-99'")):
        done = run("fit", folder / "h.txt", *LABEL, *options, "-o", tmp_path / "m.toprank")
        assert done.code == 2
        assert f"got {value}" in done.err
