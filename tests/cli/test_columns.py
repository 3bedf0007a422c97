"""Roles of columns on the command line: notes, `describe`, and scoring that reads the same text again."""

import json
import re

import polars as pl
import pytest

import toprank
from cli_files import QUICK_FLAGS, run, write_cases

HEADER = "case_id,opened,amount,remark,version,sector,fraud"


def lines(n=200):
    """Rows with a date, an amount and a remark; fraud where the amount is large and the date late."""
    out = []
    for i in range(n):
        day, month, year = i % 28 + 1, i * 5 % 12 + 1, 2019 + i % 5
        amount = i * 37 % 200 * 10 + 0.5
        remark = f"the letter of case {i} was answered late"
        fraud = int((year >= 2022 and amount > 1000) or i % 97 == 5)
        sector = ("retail", "transport")[i % 2]
        out.append(f'C{i:04d},{day:02d}.{month:02d}.{year},"{amount:,.2f} EUR",{remark},v1,{sector},{fraud}')
    return out


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    history = write_cases(folder / "history.csv", HEADER, lines())
    small = ("--model", "metaap", "--set", "min_samples_leaf=5", "--cv", 0)
    done = run("fit", history, "--label", "fraud", *small, "-o", folder / "m.toprank")
    assert done.code == 0, done.err
    return folder, done


def test_fit_notes_what_is_left_out_and_what_is_read(fitted):
    _, done = fitted
    assert "3 columns are left out: 'case_id' (identifier); 'remark' (free text); 'version' (constant)" in done.err
    assert "--set keep_columns=NAME" in done.err
    assert "'opened' (date, day first), 'amount' (number written as text (EUR): '0.50 EUR' = 0.5)" in done.err


def test_describe_shows_the_beginning_of_free_text(fitted):
    told = run("describe", fitted[0] / "history.csv").out
    assert re.search(r"\n  remark .* free text: the letter .*\.\.\.\n  version ", told)


def test_describe_says_what_was_done_to_each_column(fitted):
    folder, _ = fitted
    done = run("describe", folder / "m.toprank", "--all")
    rows = {line.split("  ")[1]: line for line in done.out.splitlines() if line.startswith("  ")}
    assert "date, day first" in rows["opened"]
    assert "number written as text (EUR)" in rows["amount"]
    assert rows["remark"].split()[1:] == ["left", "out", "free", "text"]
    info = json.loads(run("describe", folder / "m.toprank", "--json").out)["info"]
    assert info["left_out"] == {"case_id": "identifier", "remark": "free text", "version": "constant"}


def test_describe_of_a_table_says_what_fit_makes_of_each_column(fitted):
    """It called dates, amounts and identifiers categories."""
    folder, _ = fitted
    result = json.loads(run("describe", folder / "history.csv", "--label", "fraud", "--json").out)
    columns = {column["name"]: column for column in result["columns"]}
    info = json.loads(run("describe", folder / "m.toprank", "--json").out)["info"]
    assert {name: each["note"] for name, each in columns.items() if each["kind"] == "left out"} == info["left_out"]
    kinds = {column["name"]: column["kind"] for column in info["columns"] if column["name"] in columns}
    assert kinds | {"fraud": "label"} == {name: columns[name]["kind"] for name in [*kinds, "fraud"]}
    assert columns["opened"]["values"] == "2019-01-01 to 2023-12-28"
    assert columns["opened"]["note"] == "date, day first; with its month and weekday"
    assert columns["amount"]["values"] == "0.5 to 1990, median 995.5"
    out = " ".join(run("describe", folder / "history.csv", "--label", "fraud").out.split())
    assert "amount number - 200 0.5 to 1990, median 995.5; number written as text (EUR)" in out
    assert "case_id left out - 200 identifier: C0000, C0001" in out
    assert "version left out - 1 constant: always v1" in out


def test_a_note_on_one_stray_cell_has_a_verb_for_one(tmp_path):
    history = write_cases(
        tmp_path / "h.csv", "a,fraud", [f"{'3?' if i == 5 else i % 7},{i % 6 == 0}" for i in range(80)]
    )
    done = run("fit", history, "--label", "fraud", "--model", "tree", "--cv", 0, "-o", tmp_path / "m.toprank")
    assert done.err.startswith(
        "Note: Column 'a' of h.csv is read as categories because 1 of 80 cells holds no number, such as '3?' in row 6"
    )


@pytest.mark.parametrize(("model", "n"), [("red-flags", 60), ("tree", 30), ("scorecard", 60), ("rankboost", 60)])
def test_a_table_where_no_column_varies_gets_a_note(tmp_path, model, n):
    history = write_cases(tmp_path / "h.csv", "a,b,fraud", [f"1,x,{int(i % 6 == 0)}" for i in range(n)])
    done = run("fit", history, "--label", "fraud", "--model", model, "-o", tmp_path / "m.toprank")
    assert done.code == 0, done.err
    assert done.err.startswith("Note: No column varies ('a', 'b'), so every case gets the same score")
    listed = run("topk", tmp_path / "m.toprank", history, "--k", 5).out
    assert "fewer" not in " ".join(f"{done.out} {listed}".split())
    assert len(set(toprank.load(tmp_path / "m.toprank").decision_function(pl.read_csv(history)))) == 1
    history = write_cases(tmp_path / "h.csv", "a,b,fraud", [f"{i % 2},x,{int(i % 6 == 0)}" for i in range(n)])
    assert "varies" not in run("fit", history, "--label", "fraud", "--model", model, "-o", tmp_path / "m.toprank").err


def test_describe_of_a_table_that_fit_would_refuse(tmp_path):
    identified = write_cases(tmp_path / "ids.csv", "case_id,fraud", [f"C{i:04d},{i % 2}" for i in range(60)])
    done = run("describe", identified, "--label", "fraud")
    assert (done.code, done.err) == (0, "")
    assert "identifier: C0000" in done.out
    pl.DataFrame({"x": [[1], [2]], "y": [1.0, float("inf")]}).write_parquet(tmp_path / "lists.parquet")
    columns = json.loads(run("describe", tmp_path / "lists.parquet", "--json").out)["columns"]
    assert [column["kind"] for column in columns] == ["other", "number"]
    assert run("describe", write_cases(tmp_path / "one.csv", "fraud", ["0", "1"]), "--label", "fraud").code == 0


def test_topk_reads_the_text_again_without_the_columns_left_out(fitted):
    folder, _ = fitted
    table = pl.read_csv(folder / "history.csv")
    table.drop("fraud").write_csv(folder / "whole.csv")
    table.drop("fraud", "remark", "case_id").write_csv(folder / "narrow.csv")
    found = [
        json.loads(run("topk", folder / "m.toprank", folder / name, "--k", 5, "--json").out)["alerts"]
        for name in ("whole.csv", "narrow.csv")
    ]
    assert found[0] == found[1]
    assert any("opened = 202" in alert["reason_1"] + alert["reason_2"] for alert in found[0])


def test_dates_after_those_of_training_get_a_note(fitted):
    folder, _ = fitted
    new = write_cases(folder / "later.csv", HEADER, [re.sub(r"\.20(\d\d),", r".21\1,", line) for line in lines()])
    for command in (("topk",), ("evaluate", "--label", "fraud")):
        done = run(command[0], folder / "m.toprank", new, *command[1:])
        assert " ".join(done.err.split()).count("All 200 dates of column 'opened' of later.csv are later than 202") == 1
        assert "--drop opened" in done.err
        assert "dates of column" not in run(command[0], folder / "m.toprank", folder / "history.csv", *command[1:]).err


def test_cells_that_cannot_be_read_get_a_note(fitted):
    folder, _ = fitted
    new = write_cases(folder / "odd.csv", HEADER, [line.replace("EUR", "USD") for line in lines(3)])
    done = run("topk", folder / "m.toprank", new, "--k", 1)
    assert done.code == 0
    assert "Column 'amount' is read as numbers, but 3 cells are not written as 1,234.56 EUR, such" in done.err


def test_all_missing_columns_are_named_at_once(fitted):
    folder, _ = fitted
    pl.DataFrame({"Opened": ["01.02.2024"], "sector": ["retail"]}).write_csv(folder / "few.csv")
    done = run("topk", folder / "m.toprank", folder / "few.csv", "--k", 1)
    assert done.code == 2
    assert "2 columns were used to train this model but are missing from few.csv (2 columns read)" in done.err
    assert "'opened', 'amount'. Hint: did you mean 'Opened' for 'opened'?" in " ".join(done.err.split())


def test_keep_columns(fitted, tmp_path):
    folder, _ = fitted
    common = ("fit", folder / "history.csv", "--label", "fraud", *QUICK_FLAGS, "--json", "-o", tmp_path / "m.toprank")
    for given, left_out in (("version,case_id", {"remark"}), ("all", set())):
        done = run(*common, "--set", f"keep_columns={given}")
        assert set(json.loads(done.out)["info"]["left_out"]) == left_out
    done = run(*common, "--set", "keep_columns=vrsion")
    assert done.code == 2
    assert "keep_columns names 'vrsion'" in done.err
    assert "did you mean 'version'?" in done.err


def test_one_positive_is_enough_to_fit(tmp_path):
    rows = [line[:-1] + "0" for line in lines()]
    rows[7] = rows[7][:-1] + "1"
    history = write_cases(tmp_path / "h.csv", HEADER, rows)
    done = run("fit", history, "--label", "fraud", "-o", tmp_path / "m.toprank")
    assert done.code == 0, done.err
    assert "200 cases, 1 positive" in done.out
    assert run("topk", tmp_path / "m.toprank", history, "--k", 3).code == 0


def test_codes_with_leading_zeros_are_categories_as_in_python(tmp_path):
    codes = [f"{i % 40 * 997 + 1067:05d}" for i in range(400)]
    labels = [int(i % 40 in (3, 11, 17) and i % 5 > 0) for i in range(400)]
    frame = pl.DataFrame({"code": codes, "x": [i * 37 % 101 for i in range(400)], "y": labels})
    frame.write_csv(tmp_path / "h.csv")
    described = json.loads(run("describe", tmp_path / "h.csv", "--label", "y", "--json").out)
    assert [column["kind"] for column in described["columns"]] == ["category", "number", "label"]
    file = tmp_path / "m.toprank"
    fitting = ("fit", tmp_path / "h.csv", "--label", "y", "--model", "tree", "--cv", 0, "-o", file)
    assert run(*fitting).code == 0
    model = toprank.load(file)
    assert [column.kind for column in model.columns_] == ["category", "number"]
    expected = model.decision_function(frame.drop("y")).tolist()
    same = toprank.RankingTree(cv=0).fit(frame.drop("y"), labels).decision_function(frame.drop("y")).tolist()
    assert same == expected
    # no value has a leading zero by chance
    part = frame.with_columns(score=pl.Series(expected)).filter(~pl.col("code").str.starts_with("0"))
    part.drop("score").write_csv(tmp_path / "new.csv")
    alerts = json.loads(run("topk", file, tmp_path / "new.csv", "--k", 5, "--json").out)["alerts"]
    assert [alert["score"] for alert in alerts] == part["score"].sort(descending=True).head(5).to_list()
    for new in (part, part.to_pandas()):
        assert model.decision_function(new[["code", "x"]]).tolist() == part["score"].to_list()
        with pytest.raises(TypeError, match="'code' held categories that are strings in training, but holds numbers"):
            model.decision_function(part.with_columns(code=pl.col("code").cast(pl.Int64)).select("code", "x"))


def test_codes_with_leading_zeros_in_a_new_file_of_numbers(tmp_path):
    """The training file had none by chance, and the model takes them as numbers."""
    plain = pl.DataFrame({"n": [1000 + i % 60 * 7 for i in range(200)], "y": [int(i % 9 == 0) for i in range(200)]})
    plain.write_csv(tmp_path / "h.csv")
    file = tmp_path / "m.toprank"
    assert run("fit", tmp_path / "h.csv", "--label", "y", "--model", "tree", "--cv", 0, "-o", file).code == 0
    plain.with_columns(pl.col("n").cast(pl.String).str.zfill(6)).write_csv(tmp_path / "new.csv")
    old, new = (json.loads(run("topk", file, tmp_path / name, "--k", 5, "--json").out) for name in ("h.csv", "new.csv"))
    assert old["alerts"] == new["alerts"]
    drifted = run("drift", tmp_path / "h.csv", tmp_path / "new.csv", "--test", "rank-sum", "--ignore", "y", "--json")
    assert drifted.code in (0, 1), drifted.err


def test_a_few_words_leave_the_counts_of_a_csv_file_numbers(tmp_path):
    cells = ["n/a" if i % 40 == 7 else str(i * 37 % 5) for i in range(200)]
    table = pl.DataFrame({"n": cells, "x": range(200), "y": [int(cell == "3") for cell in cells]})
    table.write_csv(tmp_path / "h.csv")
    table.write_parquet(tmp_path / "h.parquet")  # text is text there
    file, chosen = tmp_path / "m.toprank", ("--set", "categorical_features=n")
    for name, given, kind in (("h.csv", (), "number"), ("h.csv", chosen, "category"), ("h.parquet", (), "category")):
        done = run("fit", tmp_path / name, "--label", "y", "--model", "tree", "--cv", 0, *given, "-o", file)
        assert done.code == 0, done.err
        assert toprank.load(file).columns_[0].kind == kind
        assert ("'n' is read as numbers, but 5 cells hold none, such as 'n/a'" in done.err) == (kind == "number")
        assert run("topk", file, tmp_path / name).code == 0
        if not given:
            described = json.loads(run("describe", tmp_path / name, "--label", "y", "--json").out)
            assert described["columns"][0]["kind"] == kind
