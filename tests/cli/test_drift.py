"""`toprank drift`: exit status, what it prints and writes, what it notes and what it refuses."""

import json

import numpy as np
import polars as pl
import pytest

from cli_files import run
from toprank import two_sample_test
from toprank.cli.drift import _figures


def companies(seed, n, first_id=0, *, drifted=False):
    """Companies in three sectors; where drifted, young ones in construction and a sector of its own."""
    rng = np.random.default_rng(seed)
    sector, age = rng.choice(["retail", "construction", "transport"], n), rng.integers(0, 30, n)
    if drifted:
        age = np.where((sector == "construction") & (rng.random(n) < 0.6), rng.integers(0, 3, n), age)
        sector = np.where(rng.random(n) < 0.08, "web shop", sector)
    return pl.DataFrame({
        "case_id": [f"C{first_id + i:05d}" for i in range(n)],
        "sector": sector,
        "age": age,
        "staff": [None if i % 13 == 0 else int(value) for i, value in enumerate(rng.poisson(8, n))],
        "fraud": (rng.random(n) < 0.1).astype(int),
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    companies(0, 1200).write_csv(folder / "reference.csv")
    companies(1, 800, 5000, drifted=True).write_csv(folder / "new.csv")
    companies(2, 800, 9000).write_csv(folder / "same.csv")
    companies(1, 800, 5000, drifted=True).write_parquet(folder / "new.parquet")
    return folder


IGNORED = ("--ignore", "case_id,fraud")


def test_drift_is_told_in_words_and_by_the_exit_status(folder):
    done = run("drift", folder / "reference.csv", folder / "new.csv", *IGNORED)
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[0] == "Drift: new.csv differs from reference.csv (p < 0.0001, level 0.05)."
    assert lines[1] == "  rows           1,200 in reference.csv, 800 in new.csv"
    assert lines[2] == "  tested on      600 and 400 of them; the model was trained on the others"
    assert lines[3] == "  columns        3, 1 of them categorical"
    assert lines[4].startswith("  AUC            0.6")
    assert lines[5] == "  rank-sum test  p < 0.0001 for the order of all rows"
    assert lines[6].startswith("  main columns   ")
    assert "Where new.csv differs most, on the test rows" in lines
    assert "\n1. more: " in done.out
    assert " fewer: " in done.out
    assert "web shop" in done.out
    assert max(map(len, lines)) <= 100


def test_no_drift(folder):
    done = run("drift", folder / "reference.csv", folder / "same.csv", *IGNORED)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("No drift found: same.csv cannot be told from reference.csv (p = ")
    assert "A drift too small to show in 1,000 rows is still possible." in done.out
    assert "more:" not in done.out
    assert "hide" not in run("drift", folder / "reference.csv", folder / "same.csv", *IGNORED, "-q").out


def test_json_is_what_the_library_says(folder):
    done = run("drift", folder / "reference.csv", folder / "new.parquet", *IGNORED, "--json", "--cells", 2, "--seed", 3)
    assert (done.code, done.err) == (1, "")
    found = json.loads(done.out)
    columns = ["sector", "age", "staff"]
    tables = [pl.read_csv(folder / name).select(columns) for name in ("reference.csv", "new.csv")]
    expected = two_sample_test(*tables, random_state=3, n_cells=2).to_dict()
    assert {name: found[name] for name in expected} == expected
    assert found["columns"] == columns
    assert (found["n_rows_reference"], found["n_rows_new"]) == (1200, 800)
    assert found["notes"] == []


def numbers(seed, n):
    return pl.DataFrame(np.random.default_rng(seed).normal(size=(n, 3)), schema=["a", "b", "c"])


def test_rows_in_both_files_are_counted(tmp_path):
    rows = numbers(0, 1688)
    for name, frame in (("a.csv", rows[:1000]), ("b.csv", rows[688:]), ("again.csv", rows[:1000][::-1])):
        frame.write_csv(tmp_path / name)
    done = run("drift", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[2] == "  shared         312 rows (31 % of b.csv) are in both files"
    assert json.loads(run("drift", tmp_path / "a.csv", tmp_path / "b.csv", "--json").out)["n_shared"] == 312
    done = run("drift", tmp_path / "a.csv", tmp_path / "again.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "No drift: again.csv holds the same rows as a.csv.",
        "  rows     1,000 in a.csv, 1,000 in again.csv",
        "  columns  3, 0 of them categorical",
    ]


def test_where_nothing_can_be_found_it_says_so(tmp_path):
    numbers(0, 1000).write_csv(tmp_path / "a.csv")
    numbers(1, 5).write_csv(tmp_path / "tiny.csv")
    numbers(1, 500).with_columns(a=1, b=2, c=pl.lit("x")).write_csv(tmp_path / "constant.csv")
    done = run("drift", tmp_path / "a.csv", tmp_path / "tiny.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "There are too few rows to say anything: the smaller table has 5, and at least 9 in each are needed.",
        "  rows     1,000 in a.csv, 5 in tiny.csv",
        "  columns  3, 0 of them categorical",
    ]
    assert json.loads(run("drift", tmp_path / "a.csv", tmp_path / "tiny.csv", "--json").out)["obstacle"]
    done = run("drift", tmp_path / "constant.csv", tmp_path / "constant.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("There is nothing to compare: every column has a single value in both tables.\n")


@pytest.mark.parametrize("name", ["cells.csv", "cells.parquet"])
def test_cells_are_written(folder, tmp_path, name):
    out = tmp_path / name
    done = run("drift", folder / "reference.csv", folder / "new.csv", *IGNORED, "--cells", 1, "-o", out)
    assert done.code == 1
    assert "2. " not in done.out
    assert f"Wrote {out}" in done.out.replace("\n", "")
    cells = pl.read_csv(out) if name.endswith("csv") else pl.read_parquet(out)
    assert cells.columns == ["leaf", "n_reference", "n_new", "rule", "direction", "share_reference", "share_new",
                             "ratio", "ratio_low", "ratio_high", "p_value", "p_adjusted"]  # fmt: skip
    assert (cells["n_reference"].sum(), cells["n_new"].sum()) == (600, 400)
    assert cells["p_adjusted"][0] == cells["p_adjusted"].min()


@pytest.mark.parametrize("options", [("--ranker", "tree"), ("--test", "permutation"), ("--columns", "sector,age"),
                                     ("--level", 0.001)])  # fmt: skip
def test_options(folder, options):
    assert run("drift", folder / "reference.csv", folder / "new.csv", *IGNORED, *options).code == 1
    assert run("drift", folder / "reference.csv", folder / "same.csv", *IGNORED, *options).code == 0


def test_a_forest_tells_whether_but_not_where(folder, tmp_path):
    out = tmp_path / "cells.csv"
    done = run("drift", folder / "reference.csv", folder / "new.csv", *IGNORED, "--ranker", "metaap-forest", "-o", out)
    assert done.code == 1
    assert "differs most" not in done.out
    assert "Note: MetaAPForest is not a single tree and shows no places: cells.csv has no rows." in done.err
    assert pl.read_csv(out).height == 0


def test_columns_that_differ_in_any_two_files_are_noted(folder, tmp_path):
    for name, month in (("reference.csv", "2024-01"), ("same.csv", "2024-02")):
        pl.read_csv(folder / name).with_columns(month=pl.lit(month), row=pl.int_range(pl.len()) + int(month[-1]) * 9999
        ).write_csv(tmp_path / name)  # fmt: skip
    done = run("drift", tmp_path / "reference.csv", tmp_path / "same.csv", "--ignore", "case_id")
    assert done.code == 1
    assert "Column 'row' has a different value in every row, and none of same.csv occurs in reference.csv" in done.err
    assert "leave it out with --ignore case_id,row." in done.err
    assert "No value of column 'month' in same.csv occurs in reference.csv; if it is a date or a batch" in done.err
    done = run(
        "drift", tmp_path / "reference.csv", tmp_path / "same.csv", "--ignore", "case_id", "--ignore", "row,month"
    )
    assert (done.code, done.err) == (0, "")


def test_codes_stay_text_where_one_file_holds_only_numbers(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.choice(["12", "7", "A1"], 400)
    pl.DataFrame({"a code": codes}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"a code": codes[codes != "A1"]}).write_csv(tmp_path / "b.csv")
    done = run("drift", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (done.code, done.err) == (1, "")
    assert "a code is A1" in done.out
    done = run("drift", tmp_path / "b.csv", tmp_path / "a.csv")
    assert done.code == 2
    assert "Column 'a code' holds numbers in b.csv but text in a.csv: 'A1' in row " in done.err
    assert done.err.endswith("with --categories 'a code'.\n")
    assert run("drift", tmp_path / "b.csv", tmp_path / "a.csv", "--categories", "a code").code == 1


@pytest.mark.parametrize("swapped", [False, True])
def test_a_few_words_among_numbers_count_as_missing(tmp_path, swapped):
    rng = np.random.default_rng(0)
    numbers = [str(value) for value in rng.normal(size=400).round(1)]
    pl.DataFrame({"a": numbers}).write_csv(tmp_path / "plain.csv")
    pl.DataFrame({"a": ["n/a" if i % 25 == 0 else value for i, value in enumerate(numbers)]}).write_csv(
        tmp_path / "words.csv"
    )
    files = [tmp_path / "plain.csv", tmp_path / "words.csv"]
    done = run("drift", *(files[::-1] if swapped else files))
    assert done.code == 0, done.err
    assert done.err.startswith("Note: Column 'a' is read as numbers, but 16 cells hold none, such as 'n/a'")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("most", "cell", "note"), [(4, "n/a", "1 cell holds none, such as 'n/a'"), (60, "05", "")])
def test_one_odd_cell_in_a_column_of_numbers_does_not_stop_the_comparison(tmp_path, swapped, most, cell, note):
    numbers = [str(value) for value in np.random.default_rng(0).integers(0, most, 400)]
    pl.DataFrame({"a": numbers}).write_csv(tmp_path / "plain.csv")
    pl.DataFrame({"a": [*numbers[:-1], cell]}).write_csv(tmp_path / "odd.csv")
    files = [tmp_path / "plain.csv", tmp_path / "odd.csv"]
    done = run("drift", *(files[::-1] if swapped else files))
    assert (done.code, bool(done.err)) == (0, bool(note)), done.err
    assert note in done.err


def test_a_rare_code_with_a_letter_stays_a_category_where_the_other_file_has_none(tmp_path):
    codes = np.random.default_rng(0).choice(["12", "7", "A1"], 800, p=[0.5, 0.42, 0.08])
    pl.DataFrame({"code": codes}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"code": codes[codes != "A1"]}).write_csv(tmp_path / "b.csv")
    done = run("drift", tmp_path / "a.csv", tmp_path / "b.csv")
    assert (done.code, done.err) == (1, "")
    assert "code is A1" in done.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["reference.csv", "nwe.csv"], "There is no file .*Hint: did you mean 'new.csv'"),
        (["reference.csv", "new.csv", "--ignore", "fruad"], "--ignore names the column 'fruad'.*you mean 'fraud'"),
        (["reference.csv", "new.csv", "--columns", "x"], "--columns names the column 'x'"),
        (["reference.csv", "new.csv", "--columns", "age", "--ignore", "age"], "No column of .* is left to compare"),
        (["reference.csv", "new.csv", "--level", "5"], "--level must be between 0 and 1, got 5"),
        (["reference.csv", "new.csv", "--test", "ks"], "--test must be rank-sum or permutation, got 'ks'"),
        (["reference.csv", "new.csv", "--ranker", "trea"], "--ranker must be one of .*did you mean 'tree'"),
        (["reference.csv", "new.csv", "--categories", "agee"], "--categories names the column 'agee'"),
        (["reference.csv", "new.csv", "-o", "new.csv"], "is also an input"),
        (["reference.csv", "renamed.csv"], "Column 'age' is in reference.csv but missing from renamed.csv .5 columns"
         " read., and column 'Age' is in renamed.csv .* Hint: rename 'Age' to 'age' if they mean the same, or leave "
         "them out with --ignore age,Age[.]"),
        (["reference.csv", "more.csv"], "'extra' is in more.csv but missing from reference.csv .* --ignore extra"),
        (["reference.csv", "other.csv", "--ignore", "case_id"], "Columns 'age', 'fraud' are in reference.csv but "
         "missing from other.csv .* and column 'one, two' is in other.csv but missing from reference.csv .* "
         "Hint: leave them out with --ignore case_id,age,fraud --ignore 'one, two'[.]"),
        (["reference.csv", "numbers.parquet", "--columns", "a,age"], "Hint: check that both files hold the same"),
        (["times.parquet", "times.parquet"], "Column 'day' of times.parquet holds values of type Time"),
        (["dates.parquet", "times.parquet"], "Column 'day' of times.parquet holds values of type Time"),
        (["flags.parquet", "ones.parquet"], "Column 'an a' holds true and false in flags.parquet but numbers in "
         "ones.parquet. Hint: compare categories with --categories 'an a', or"),
        (["infinite.parquet", "infinite.parquet"], "Column 'a' of infinite.parquet holds an infinite number"),
        (["three.csv", "reference.csv", "--columns", "age"], "three.csv has 3 rows, expected at least 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_gets_a_sentence_and_exit_status_2(folder, monkeypatch, args, message):
    monkeypatch.chdir(folder)
    reference = pl.read_csv("reference.csv")
    reference.rename({"age": "Age"}).write_csv("renamed.csv")
    reference.with_columns(extra=1).write_csv("more.csv")
    reference.drop("age", "fraud").with_columns(pl.lit(1).alias("one, two")).write_csv("other.csv")
    reference.head(3).write_csv("three.csv")
    pl.DataFrame({"day": [1, 2, 3, 4]}).cast(pl.Date).write_parquet("dates.parquet")
    pl.DataFrame({"day": [1, 2, 3, 4]}).cast(pl.Time).write_parquet("times.parquet")
    pl.DataFrame({"an a": [True] * 4}).write_parquet("flags.parquet")
    pl.DataFrame({"an a": [1] * 4}).write_parquet("ones.parquet")
    pl.DataFrame({"a": [1] * 4}).write_parquet("numbers.parquet")
    pl.DataFrame({"a": [1.0, np.inf] * 4}).write_parquet("infinite.parquet")
    done = run("drift", *args)
    assert (done.code, done.out) == (2, "")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(done.err)
    assert len(done.err.splitlines()) == 1


def test_an_empty_column_fits_to_any_kind(tmp_path):
    rng = np.random.default_rng(0)
    pl.DataFrame({"a": rng.normal(size=200), "b": [""] * 200}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"a": rng.normal(size=200), "b": ["x"] * 200}).write_csv(tmp_path / "b.csv")
    done = run("drift", tmp_path / "a.csv", tmp_path / "b.csv")
    assert done.code == 1
    assert "b is missing" in done.out
    assert "0.00 % of the new rows" in done.out
    assert "0.00 % of the reference: at least " in done.out


def test_a_place_without_new_rows_has_no_ratio_of_zero():
    x = np.arange(2000) % 100 / 100
    found = two_sample_test(x[:, None], x[x < 0.5][:, None], random_state=0)
    empty = [cell for cell in found.cells if cell.share_new == 0]
    assert empty
    assert all(": none are left, p" in _figures(cell) and "0.00x" not in _figures(cell) for cell in empty)
