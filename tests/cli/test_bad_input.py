"""Every kind of bad input: exit code 2, one sentence on one line, no traceback, no file left behind."""

import importlib.abc
import os
import sys
import zipfile

import polars as pl
import pytest

from cli_files import HEADER, case_lines, fit_cases, run, save_classifier, write_cases

OUT = "out"  # stands for the output of the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    fit_cases(folder)
    return folder


def refused(*args: object) -> str:
    """Return the one line that a command ends with."""
    done = run(*args)
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.count("\n") == 1, done.err
    assert "Traceback" not in done.err
    assert done.err.rstrip()[-1] in ".?", done.err
    return done.err.rstrip()


def fit_refused(history, tmp_path, *more: object, label: str = "fraud") -> str:
    before = set(os.listdir(tmp_path))
    said = refused("fit", history, "--label", label, "-o", tmp_path / "m.toprank", *more)
    assert set(os.listdir(tmp_path)) == before
    return said


# --- files --------------------------------------------------------------------------------------------------


CONTENTS = {
    "empty": (b"", "hist.csv is empty, expected column names and rows. Hint: was it fully written?"),
    "blank": (b"\n\n  \n", "hist.csv is empty, expected column names and rows. Hint: was it fully written?"),
    "no rows": (b"a,fraud\n", "hist.csv has 2 columns but no rows. Hint: did a filter drop them all?"),
    "short": (
        b"a,b,fraud\n1,2,0\n1,2\n",
        "Line 3 of hist.csv has 2 fields, expected 3 as in the header. Hint: was the line cut off?",
    ),
    "long": (
        b'a,b,fraud\n1,"x\ny",0\n1,2,3,4\n',
        "Line 4 of hist.csv has 4 fields, expected 3 as in the header. Hint: put a cell that holds a ',' in quotes.",
    ),
    "blank line": (
        b"a,fraud\n1,0\n\n2,1\n",
        "Line 3 of hist.csv has 0 fields, expected 2 as in the header. Hint: was the line cut off?",
    ),
    "latin1": (
        "a,fraud\nx,0\ncafé,1\n".encode("latin1"),
        "hist.csv is not encoded as UTF-8: byte 0xE9 at position 15 (line 3). Hint: give its encoding, for "
        "example --encoding cp1252 (Windows) or --encoding latin-1.",
    ),
    "utf16 without a mark": (
        "a,fraud\n1,0\n".encode("utf-16-le"),
        "Line 1 of hist.csv holds a NUL character, expected text. Hint: is it a CSV file? For UTF-16 use "
        "--encoding utf-16.",
    ),
    "cut utf16": (
        "a,fraud\n1,0\n".encode("utf-16")[:-1],
        "hist.csv is not encoded as UTF-16: byte 0x0A at position 24 (line 2). Hint: give its encoding, for "
        "example --encoding cp1252 (Windows) or --encoding latin-1.",
    ),
    "lone carriage return": (
        b"a,fraud\n1,0\n2\r3,1\n",
        "Line 3 of hist.csv has 1 field, expected 2 as in the header. Hint: was the line cut off?",
    ),
    "twice": (
        b"a,fraud,a\n1,0,2\n",
        "Column 'a' appears twice in hist.csv (columns 1 and 3). Hint: rename one of them.",
    ),
    "no name": (
        b",a,fraud\n0,1,0\n",
        "Column 1 of hist.csv has no name, expected one in the first line. Hint: pandas writes such a column for its "
        "index; use to_csv(..., index=False).",
    ),
    "no second name": (
        b"a,,fraud\n0,1,0\n",
        "Column 2 of hist.csv has no name, expected one in the first line. Hint: name it, or delete the column.",
    ),
    "short line after the separator": (
        b"sep=;\na;fraud\n1;0\n2\n",
        "Line 4 of hist.csv has 1 field, expected 2 as in the header. Hint: was the line cut off?",
    ),
    "only a separator": (b"sep=,\n", "hist.csv is empty, expected column names and rows. Hint: was it fully written?"),
    "open quote": (
        b'a,fraud\n1,0\n"2,1\n3,0\n',
        "Line 3 of hist.csv opens a quote that is never closed. Hint: was the file cut off? A cell that holds a quote "
        "must be in quotes, with the quote doubled.",
    ),
    "long open quote": (
        b'a,fraud\n1,0\n"2,1\n' + b"3,0\n" * 40_000,
        "Line 3 of hist.csv holds a cell of more than 131,072 characters. Hint: is there a quote that is never closed?",
    ),
    "text behind a quote": (
        b'a,fraud\n1,0\n"2"x,1\n3,0\n',
        "Line 3 of hist.csv holds text after the closing quote of a cell, expected ',' or the end of the line. Hint: "
        "a cell that holds a quote must be in quotes, with the quote doubled.",
    ),
    "empty first line": (
        b"\na,fraud\n1,0\n",
        "The first line of hist.csv is empty, expected column names. Hint: delete it.",
    ),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_content_of_a_csv_file(tmp_path, kind):
    content, expected = CONTENTS[kind]
    (tmp_path / "hist.csv").write_bytes(content)
    assert fit_refused(tmp_path / "hist.csv", tmp_path) == expected
    assert refused("describe", tmp_path / "hist.csv") == expected


def test_paths_that_are_no_table(folder, tmp_path):
    assert fit_refused(tmp_path / "none.csv", tmp_path) == f"There is no file {tmp_path}/none.csv."
    said = refused("describe", folder / "histroy.csv")
    assert said == f"There is no file {folder}/histroy.csv. Hint: did you mean 'history.csv'?"
    assert "no folder" in refused("describe", tmp_path / "no" / "x.csv")
    assert "is a folder, expected a file" in fit_refused(tmp_path, tmp_path)
    (tmp_path / "a.xlsx").write_bytes(b"x")
    assert fit_refused(tmp_path / "a.xlsx", tmp_path).startswith("a.xlsx is a spreadsheet, which is not supported; ")
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "x")
    assert refused("describe", tmp_path / "a.xlsx").startswith("a.xlsx is a spreadsheet, which is not supported; ")
    (tmp_path / "a.json").write_bytes(b"x")
    assert "has an ending that is not supported, expected one of .csv, .csv.gz, .tsv, .tsv.gz, .txt" in fit_refused(
        tmp_path / "a.json", tmp_path
    )
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and then nothing")
    assert "a.parquet cannot be read as Parquet: " in fit_refused(tmp_path / "a.parquet", tmp_path)
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip")
    assert "a.csv.gz cannot be decompressed: " in fit_refused(tmp_path / "a.csv.gz", tmp_path)


# --- labels and columns -------------------------------------------------------------------------------------


def relabelled(path, labels):
    """Write the small table with other labels, repeated as often as needed."""
    rows = [line.rpartition(",")[0] for line in case_lines()]
    lines = [f"{row},{labels[i % len(labels)]}" for i, row in enumerate(rows)]
    return write_cases(path, lines=lines)


LABELS = {
    "one value": (
        ["0"],
        "must have two values, but all 300 rows hold 0. Hint: check that the file has cases of both kinds.",
    ),
    "three": (["0", "1", "2"], "must have two values, found 3: 0, 1, 2. Hint: "),
    "spaces": (
        ["yes", "yes ", "No"],
        "must have two values, but 'yes' and 'yes ' differ only in spaces or capitals. Hint: write each outcome in ",
    ),
    "fractions": (
        ["0.5", "1.5", "2.5", "3", "4", "5"],
        "must have two values, found 6: 0.5, 1.5, 2.5, 3.0 and more. Hint: ",
    ),
    "missing": (
        ["0", "1", ""],
        "must have a value in every row, but 100 of 300 are missing, the first in row 3 (counted from 1). Hint: ",
    ),
    "infinite": (["0", "inf"], "holds 0.0 and inf, and it is not clear which one is positive. Hint: "),
    "beyond integers": (["0", "1e300"], "holds 0.0 and 1e+300, and it is not clear which one is positive. Hint: "),
    "words": (
        ["fine", "not ok"],
        "holds 'fine' and 'not ok', and it is not clear which one is positive. Hint: choose with --positive 'not ok'.",
    ),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels(tmp_path, kind):
    labels, expected = LABELS[kind]
    history = relabelled(tmp_path / "h.csv", labels)
    said = fit_refused(history, tmp_path)
    assert said.startswith("The label column 'fraud' of h.csv ")
    assert expected in said


def test_names_of_columns_get_the_nearest_match(folder, tmp_path):
    history = folder / "history.csv"
    assert fit_refused(history, tmp_path, label="Fruad") == (
        "The label column 'Fruad' is missing from history.csv (6 columns read). Hint: did you mean 'fraud'?"
    )
    assert fit_refused(history, tmp_path, "--id", "caseid") == (
        "--id names the column 'caseid', but history.csv has no such column (6 columns read). "
        "Hint: did you mean 'case_id'?"
    )
    assert "did you mean 'sector'?" in fit_refused(history, tmp_path, "--drop", "case_id,sectr")
    assert "did you mean 'staff'?" in fit_refused(history, tmp_path, "--set", "categorical_features=stafff")
    everything = HEADER.removesuffix(",fraud")
    assert "history.csv has no feature column left" in fit_refused(history, tmp_path, "--drop", everything)


def test_values_of_columns(tmp_path):
    lines = case_lines()
    lines[4] = lines[4].replace(",transport,", ",retail,").replace(lines[4].split(",")[2], "inf", 1)
    history = write_cases(tmp_path / "h.csv", lines=lines)
    assert fit_refused(history, tmp_path) == (
        "Column 'amount' of h.csv holds an infinite number, or one beyond 1.8e308, in row 5 (counted from 1), expected "
        "finite numbers. Hint: leave the cell empty to mark it missing."
    )
    frame = pl.DataFrame({"day": ["2024-01-01"] * 4, "x": [[1], [2], [3], [4]], "fraud": [0, 1, 0, 1]})
    frame.with_columns(pl.col("day").str.to_date()).write_parquet(tmp_path / "h.parquet")
    refused = fit_refused(tmp_path / "h.parquet", tmp_path)
    assert "Column 'x' of h.parquet holds values of type List(Int64), expected numbers, categories or dates" in refused
    assert "must hold yes or no, found dates" in fit_refused(tmp_path / "h.parquet", tmp_path, label="day")


# --- options ------------------------------------------------------------------------------------------------


OPTIONS = {
    "model": (
        ["--model", "metap"],
        "got 'metap'. Hint: did you mean 'metaap'?",
    ),
    "name": (["--set", "max_rule=3"], "Hint: did you mean 'max_rules'?"),
    "no value": (
        ["--set", "max_depth"],
        "--set needs name=value, got 'max_depth'. Hint: for example --set max_rules=10.",
    ),
    "range": (["--set", "max_conditions=0"], "The 'max_conditions' parameter of RedFlags must be "),
    "of another model": (["--set", "max_depth=3"], "RedFlags has no parameter 'max_depth' (its parameters: max_rules,"),
    "unlike any parameter": (["--set", "foo=1"], " Hint: use one of these, or another --model."),
    "budget": (
        ["--budget", "many"],
        "--budget must be a number of cases such as 500 or a share such as 0.02 or 2%, got 'many'.",
    ),
    "zero": (["--budget", "0"], "--budget must be "),
    "budget twice": (["--budget", "5", "--set", "budget=6"], "--set budget duplicates --budget."),
    "positive": (
        ["--positive", "yes"],
        "--positive is 'yes', but the label column 'fraud' of history.csv holds 0 and 1.",
    ),
    "cv": (["--cv", "1"], "--cv must be 0 or at least 2 folds, got 1."),
    "cv word": (["--cv", "x"], "Invalid value for '--cv'"),
    "unknown": (["--budgt", "5"], "No such option: --budgt"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_options_of_fit(folder, tmp_path, kind):
    args, expected = OPTIONS[kind]
    assert expected in fit_refused(folder / "history.csv", tmp_path, *args)


def test_commands_that_cannot_be_understood():
    assert refused("fti") == "No such command 'fti'. Did you mean 'fit'?"
    assert refused("fit", "x.csv") == "Missing option '--label'. Hint: `toprank fit --help` lists the options."
    assert refused("predict") == "No such command 'predict'. Hint: `toprank --help` lists the commands."
    assert "Missing argument 'MODEL'" in refused("topk")
    assert refused("demo", "--cases", 10).startswith("--cases must be at least 2,000, got 10.")
    assert refused("demo", "--seed", -1).startswith("--seed must be 0 or more, got -1.")


# --- scoring ------------------------------------------------------------------------------------------------


def test_columns_when_scoring(folder, tmp_path):
    model = folder / "model.toprank"
    new = write_cases(tmp_path / "new.csv", HEADER.replace("amount", "Amount_EUR"))
    assert refused("topk", model, new, "--k", 3) == (
        "Column 'amount' was used to train this model but is missing from new.csv (6 columns read). "
        "Hint: did you mean 'Amount_EUR'?"
    )
    lines = [
        ",".join([*line.split(",")[:2], f"about {i}", *line.split(",")[3:]]) for i, line in enumerate(case_lines())
    ]
    new = write_cases(tmp_path / "new.csv", lines=[*case_lines()[:10], *lines[10:]])
    assert refused("topk", model, new, "--k", 3) == (
        "Column 'amount' held numbers in training but holds text in new.csv: 'about 10' in row 11 (counted from 1). "
        "Hint: is it another column? Only a few words among numbers count as missing."
    )
    lines = [line if i % 9 else line.replace("about 0", "n/a") for i, line in enumerate(lines)]
    new = write_cases(tmp_path / "new.csv", lines=[line.replace("about ", "EUR ") for line in lines])
    assert "holds numbers written as 1,234.56 EUR in new.csv: 'EUR 1' in row 2" in refused("topk", model, new)
    frame = pl.read_csv(folder / "history.csv").with_columns(sector=pl.lit(3), age=pl.col("age") > 5)
    frame.write_parquet(tmp_path / "new.parquet")
    assert "Column 'sector' held text in training but holds values of type Int32" in refused(
        "topk", model, tmp_path / "new.parquet"
    )
    frame.with_columns(sector=pl.lit("retail")).write_parquet(tmp_path / "new.parquet")
    assert "Column 'age' held numbers in training but holds true or false" in refused(
        "topk", model, tmp_path / "new.parquet"
    )
    new = write_cases(tmp_path / "new.csv", "rank" + HEADER.removeprefix("case_id"))
    assert "Column 'rank' of new.csv has the same name as a column of the alerts." in refused(
        "topk", model, new, "--id", "rank"
    )


def test_k_and_reasons(folder):
    common = ("topk", folder / "model.toprank", folder / "history.csv")
    for k in (0, -3, 301):
        assert refused(*common, "--k", k) == (
            f"--k must be from 1 to the number of rows of history.csv (300), got {k}. "
            "Hint: k is how many cases you can check."
        )
    judged = ("evaluate", *common[1:], "--label", "fraud", "--k")
    assert "(300), got 301." in refused(*judged, 301)
    for k in ("1.5", "0%", "many", "nan"):
        assert f"--k must be a number of cases such as 500 or a share such as 0.02 or 2%, got {k!r}." in refused(
            *judged, k
        )
    assert "--reasons must be 0 or more, got -1." in refused(*common, "--reasons", -1)
    assert "got 3,000,000." in refused(*common, "--reasons", 3_000_000)
    assert "did you mean 'fraud'?" in refused(*common, "--keep", "frauds")


def test_evaluate(folder, tmp_path):
    common = ("evaluate", folder / "model.toprank")
    assert "The label column 'y' is missing" in refused(*common, folder / "history.csv", "--label", "y")
    one = relabelled(tmp_path / "one.csv", ["0"])
    assert "but all 300 rows hold 0" in refused(*common, one, "--label", "fraud")
    words = relabelled(tmp_path / "words.csv", ["a", "b"])
    assert "it is not clear which one is positive" in refused(*common, words, "--label", "fraud")
    assert run(*common, words, "--label", "fraud", "--positive", "a").code == 0
    amounts = ("--label", "fraud", "--amount")
    assert "must hold numbers, found text such as 'retail'." in refused(
        *common, folder / "history.csv", *amounts, "sector"
    )
    assert "found nothing in row 1 (counted from 1)" in refused(*common, folder / "history.csv", *amounts, "age")
    assert "did you mean 'amount'?" in refused(*common, folder / "history.csv", *amounts, "amont")


# --- model files --------------------------------------------------------------------------------------------


def test_model_files(folder, tmp_path):
    good = (folder / "model.toprank").read_bytes()
    bad = {"cut.toprank": good[: len(good) // 2], "empty.toprank": b"", "foreign.toprank": b"no model at all"}
    changed = bytearray(good)
    changed[good.index(b'"n_cases": 300') + 11] = ord("4")
    bad["changed.toprank"] = bytes(changed)
    for name, content in bad.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert str(path) in refused("describe", path)
        assert str(path) in refused("topk", path, folder / "history.csv")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    assert "not a toprank model" in refused("describe", tmp_path / "other.zip")
    assert refused("describe", tmp_path / "none.toprank") == (
        f"There is no model file {tmp_path / 'none.toprank'}. "
        "Hint: check the path; `toprank fit`, or `save` in Python, writes one."
    )
    assert "is a folder" in refused("topk", tmp_path, folder / "history.csv")


def test_a_model_that_ranks_nothing(folder, tmp_path):
    model, history = save_classifier(tmp_path), folder / "history.csv"
    expected = (
        "classes.toprank holds a model of class TAOClassifier, which predicts classes and does not rank, "
        "expected a ranker. Hint: use a file written by `toprank fit`, or call predict of this one in Python."
    )
    assert refused("topk", model, history) == expected
    assert refused("evaluate", model, history, "--label", "fraud") == expected
    assert "of class TAOClassifier, expected CostOptimalCurve. Hint: " in refused("curve", model)
    assert "classes.toprank has an ending that is not supported" in refused("compare", model, "--label", "fraud")
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    assert "cannot be read as a toprank model" in refused("describe", model)


# --- output files -------------------------------------------------------------------------------------------


def test_outputs(folder, tmp_path):
    history, model = folder / "history.csv", folder / "model.toprank"
    common = ("topk", model, history, "--k", 3, "-o")
    assert refused(*common, tmp_path / "a.ods") == (
        "The output a.ods has an ending that is not supported, expected one of .csv, .csv.gz, .tsv, .tsv.gz, .xlsx, "
        ".parquet. "
        "Hint: the ending selects the format."
    )
    said = refused(*common, tmp_path / "no" / "a.csv")
    assert said == f"Cannot write {tmp_path}/no/a.csv: {tmp_path}/no does not exist. Hint: create the folder first."
    (tmp_path / "a.csv").mkdir()
    assert "is a folder, expected a file" in refused(*common, tmp_path / "a.csv")
    assert "is also an input and would be overwritten" in refused(*common, history)
    (tmp_path / "file").write_text("x")
    assert "is not a folder" in refused("fit", history, "--label", "fraud", "-o", tmp_path / "file" / "m.toprank")
    assert "is also an input" in refused("fit", history, "--label", "fraud", "-o", history)
    assert "--out must name a folder" in refused("demo", "--out", tmp_path / "file")
    assert "Cannot create the folder" in refused("demo", "--out", tmp_path / "file" / "demo")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "file"]
    assert os.listdir(tmp_path / "a.csv") == []


def test_an_output_that_cannot_be_written_is_found_before_the_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    said = fit_refused(folder / "history.csv", tmp_path)
    assert "no permission to write" in said


def test_a_full_disk_leaves_no_file(folder, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device", str(args[1]))

    monkeypatch.setattr(os, "replace", full)
    args = ("topk", folder / "model.toprank", folder / "history.csv", "--k", 3, "-o", tmp_path / "a.csv")
    assert "a.csv: No space left on device. Hint: " in refused(*args)
    assert os.listdir(tmp_path) == []


# --- tracebacks ---------------------------------------------------------------------------------------------


def test_debug_shows_the_traceback(tmp_path):
    done = run("describe", tmp_path / "no.csv", "--debug")
    assert done.code == 2
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1] == f"There is no file {tmp_path}/no.csv."


def test_a_mistake_of_ours_is_a_sentence_too(folder, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("toprank.cli.describe.TableFile", broken)
    done = run("describe", folder / "history.csv")
    assert done.code == 1
    assert done.err.startswith("Internal error in toprank (ZeroDivisionError: division by zero).")
    assert done.err.count("\n") == 1


def test_interrupted(folder, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("toprank.cli.describe.TableFile", interrupted)
    done = run("describe", folder / "history.csv")
    assert (done.code, done.err) == (130, "Interrupted.\n")


def test_interrupted_while_the_command_line_is_imported(monkeypatch):
    class Interrupting(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname, path, target=None):
            if fullname == "toprank.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "toprank.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    done = run("--version")
    assert (done.code, done.out, done.err) == (130, "", "Interrupted.\n")


def test_evaluate_refuses_outcomes_that_training_did_not_have(tmp_path):
    model = fit_cases(tmp_path)
    table = pl.read_csv(tmp_path / "history.csv").with_columns(fraud=pl.col("fraud") + 1)
    table.write_csv(tmp_path / "shifted.csv")
    assert "holds 2" in refused("evaluate", model, tmp_path / "shifted.csv", "--label", "fraud")
