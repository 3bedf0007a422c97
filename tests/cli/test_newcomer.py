"""What a newcomer trips over: files that are not quite right, models that learned nothing, pipes."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import toprank
from cli_files import HEADER, case_lines, fit_cases, run, write_cases
from toprank import MetaAPForest, RankingTree, StackedRanker
from toprank.register import ENTRIES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def model(folder):
    return fit_cases(folder)


def cells_replaced(path, column, value_of):
    """Write the small table with other cells in one column."""
    at = HEADER.split(",").index(column)
    rows = [line.split(",") for line in case_lines()]
    for i, row in enumerate(rows):
        row[at] = value_of(i, row[at])
    return write_cases(path, lines=[",".join(row) for row in rows])


# --- files to score -----------------------------------------------------------------------------------------


def test_a_stray_word_among_numbers_counts_as_missing(model, folder, tmp_path):
    new = cells_replaced(tmp_path / "new.csv", "amount", lambda i, cell: "unknown" if i == 10 else cell)
    empty = cells_replaced(tmp_path / "empty.csv", "amount", lambda i, cell: "" if i == 10 else cell)
    found, expected = (run("topk", model, file, "--k", 300, "--json") for file in (new, empty))
    assert found.code == 0, found.err
    assert json.loads(found.out)["alerts"] == json.loads(expected.out)["alerts"]
    assert json.loads(found.out)["notes"] == [
        "Column 'amount' is read as numbers, but 1 cell holds none, such as 'unknown'; it counts as missing. "
        "Hint: fix such cells, or leave them empty."
    ]


def test_words_in_every_tenth_cell_are_allowed_and_more_are_not(model, tmp_path):
    few = cells_replaced(tmp_path / "few.csv", "staff", lambda i, cell: "?" if i % 10 == 0 else cell)
    assert run("evaluate", model, few, "--label", "fraud").code == 0
    many = cells_replaced(tmp_path / "many.csv", "staff", lambda i, cell: f"? {i}" if i % 5 == 0 else cell)
    done = run("evaluate", model, many, "--label", "fraud")
    assert done.code == 2
    assert "held numbers in training but holds text in many.csv: '? 0' in row 1 (counted from 1)." in done.err


def test_one_case_with_a_word_is_scored_as_in_its_file(model, tmp_path):
    few = cells_replaced(tmp_path / "few.csv", "staff", lambda i, cell: "?" if i == 3 else cell)
    lines = few.read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([lines[0], lines[4]]) + "\n")
    scores = [json.loads(run("topk", model, file, "--k", k, "--json").out)["alerts"]
              for file, k in ((few, len(lines) - 1), (tmp_path / "one.csv", 1))]  # fmt: skip
    assert scores[1][0]["score"] == next(alert["score"] for alert in scores[0] if alert["row"] == 3)


def test_words_among_the_numbers_of_several_columns_are_one_note(model, tmp_path):
    both = pl.DataFrame(orient="row", schema=HEADER.split(","), data=[line.split(",") for line in case_lines()])
    both[3, "staff"], both[0, "amount"], both[1, "amount"] = "?", "n/a", "n/a"
    both.write_csv(tmp_path / "both.csv")
    done = run("topk", model, tmp_path / "both.csv", "--k", 3)
    assert done.err.startswith("Note: Cells that hold no number or date count as missing: ")
    assert ("'amount' (2, such as 'n/a')" in done.err, "'staff' (1, such as '?')" in done.err) == (True, True)
    assert done.err.count("Note: ") == 1


def test_a_decimal_comma_is_shown_as_it_is_read_and_a_changed_mark_is_noted(tmp_path):
    rng = np.random.default_rng(0)
    share = rng.beta(2, 5, 400)
    label = (share > 0.5).astype(int)

    def write(name, texts):
        pl.DataFrame({"share": texts, "size": rng.normal(size=400), "y": label}).write_csv(tmp_path / name)
        return tmp_path / name

    history = write("h.csv", ["0,229", *(f"{each:.3f}".replace(".", ",") for each in share[1:])])
    done = run("fit", history, "--label", "y", "--model", "tree", "--cv", 0, "-o", tmp_path / "m.toprank")
    assert "'share' (number written as text, decimal comma: '0,229' = 0.229)" in done.err
    points = write("points.csv", [f"{each:.3f}" for each in share])
    refused = run("topk", tmp_path / "m.toprank", points, "--k", 40)
    assert refused.code == 2
    assert "Column 'share' held numbers written as 1.234,56 in training, but" in refused.err
    assert "the whole column can be read as 1,234.56" in refused.err
    words = write("words.csv", [f"{each:.3f} high" for each in share])
    refused = run("topk", tmp_path / "m.toprank", words)
    assert refused.code == 2
    assert "Column 'share' held numbers written as 1.234,56 in training, but 400 of 400 cells" in refused.err
    percent = write("percent.csv", [f"{100 * each:.1f}".replace(".", ",") for each in share])
    assert "Column 'share' has other values than in training" in run("topk", tmp_path / "m.toprank", percent).err


def test_columns_that_lost_their_values_are_noted(model, tmp_path):
    def lost(*names):
        frame = pl.read_csv(tmp_path.joinpath(write_cases(tmp_path / "h.csv")))
        frame.with_columns(pl.lit(None).alias(name) for name in names).write_csv(tmp_path / "new.csv")
        return run("topk", model, tmp_path / "new.csv", "--k", 3).err

    told = "in all 300 rows, but had values in training. Hint: "
    assert f"Note: Column 'amount' is empty {told}" in lost("amount")
    assert f"Note: Columns 'sector' and 'amount' are empty {told}" in lost("amount", "sector")
    assert lost() == ""


def test_amounts_may_be_written_as_text(model, folder, tmp_path):
    plain = run("evaluate", model, folder / "history.csv", "--label", "fraud", "--amount", "amount", "--json")
    for form in ("${:,.2f}", "{:,.0f} EUR"):
        frame = pl.read_csv(folder / "history.csv")
        texts = [form.format(amount) for amount in frame["amount"].to_list()]
        frame.with_columns(worth=pl.Series(texts)).write_csv(tmp_path / "new.csv")
        done = run("evaluate", model, tmp_path / "new.csv", "--label", "fraud", "--amount", "worth", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["gains"] == json.loads(plain.out)["gains"]
    frame.with_columns(worth=pl.Series(["much", *texts[1:]])).write_csv(tmp_path / "new.csv")
    done = run("evaluate", model, tmp_path / "new.csv", "--label", "fraud", "--amount", "worth")
    assert (done.code, "found 'much' in row 1 (counted from 1)" in done.err) == (2, True)


# --- which cases a model flags ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("TAOTree", "flags {} training cases at lowest cost, "),
        ("CostTree", "flags {} training cases at lowest cost, "),
        ("KNN", "vote flags cases with a score of at least 0.5; predict follows it"),
        ("CostOptimalCurve", "flags the cases that are positive at its base point"),
        ("RankingTree", "budget 25 cases"),
    ],
)
def test_the_card_says_which_cases_predict_flags(tmp_path, name, flags):
    table = pl.read_csv(write_cases(tmp_path / "history.csv"))
    features, label = table.drop("case_id", "fraud"), table["fraud"].to_numpy()
    for budget in (None, 20):
        quick = {"depths": None, "alphas": None, "cv": 0} if name == "CostOptimalCurve" else {"cv": 0}
        fitted = getattr(toprank, name)(budget=budget, **quick).fit(features, label)
        fitted.save(tmp_path / "m.toprank")
        said = " ".join(run("describe", tmp_path / "m.toprank").out.split())
        expected = flags.format(fitted.predict(features).sum()) if budget is None else "budget 20 cases"
        follows_budget = budget is not None or name == "RankingTree"
        assert expected in said
        assert (" budget " in said) == follows_budget == ("budget" in fitted.summary())


# --- models that learned little -----------------------------------------------------------------------------


def test_a_constant_score_has_no_interval(tmp_path):
    """Its average precision is the same in every bootstrap sample; 0.0575 was 0.057 and 0.058 in one line."""
    pl.DataFrame({"a": [1, 2] * 200, "y": [1] * 23 + [0] * 377}).write_csv(tmp_path / "t.csv")
    model = ("--model", "tree", "--set", "min_gain=9", "-o", tmp_path / "m.toprank")
    fitted = run("fit", tmp_path / "t.csv", "--label", "y", *model)
    assert fitted.code == 0, fitted.err
    said = run("evaluate", tmp_path / "m.toprank", tmp_path / "t.csv", "--label", "y").out
    assert "AP     0.058, as all cases have the same score; a random order has 0.058\n" in said


def test_a_model_that_learned_nothing_is_called_so(tmp_path):
    rng = np.random.default_rng(0)
    n = 600
    frame = pl.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    label = (rng.random(n) < 0.08).astype(int)
    frame.with_columns(noise=label, clear=(frame["a"] > 1.2).cast(int)).write_csv(tmp_path / "h.csv")
    for outcome, other, is_near in (("noise", "clear", True), ("clear", "noise", False)):
        how = ("--label", outcome, "--drop", other, "--model", "tree", "-o", tmp_path / "m.toprank")
        said = " ".join(run("fit", tmp_path / "h.csv", *how).out.split())
        assert ("This is hardly better than a random order" in said) == is_near
        done = json.loads(run("fit", tmp_path / "h.csv", *how, "--json").out)
        assert done["judged"]["is_near_chance"] is is_near
        said = run("evaluate", tmp_path / "m.toprank", tmp_path / "h.csv", "--label", "noise").out
        if outcome == "clear":
            assert "This is hardly better than a random order" in said
        noted = run("topk", tmp_path / "m.toprank", tmp_path / "h.csv", "--k", 5).err
        assert ("hardly better than a random order" in noted) == is_near
        done = json.loads(run("evaluate", tmp_path / "m.toprank", tmp_path / "h.csv", "--label", "noise", "--json").out)
        assert done["is_near_chance"] == ("hardly better" in said)
    said = run("evaluate", tmp_path / "m.toprank", tmp_path / "h.csv", "--label", "clear").out
    assert "hardly better" not in said


def test_few_positives_are_called_too_few_to_tell(tmp_path):
    rng = np.random.default_rng(0)
    label = np.arange(300) < 10
    pl.DataFrame({"a": rng.normal(size=300), "y": label.astype(int)}).write_csv(tmp_path / "h.csv")
    how = ("--label", "y", "--model", "tree", "-o", tmp_path / "m.toprank")
    said = " ".join(run("fit", tmp_path / "h.csv", *how).out.split())
    limit = json.loads(run("fit", tmp_path / "h.csv", *how, "--json").out)["judged"]["random_order_limit"]
    assert f"5 % of random orders have more than {limit:.3f}: too few to tell if this model helps." in said
    assert "hardly better" not in said


def test_a_tree_of_one_leaf_is_called_a_scorecard(tmp_path):
    alone = "so this model is a scorecard without a tree."
    pruned = fit_cases(tmp_path, "--set", "leaf_score=linear", "--set", "min_samples_leaf=200")
    fitted = toprank.load(pruned)
    assert fitted.n_leaves_ == 1
    said = run("describe", pruned).out
    assert f"No split helped on held-out cases, {alone}" in said
    assert "The only rule" not in said
    assert alone in fitted.summary()
    split = fit_cases(tmp_path, "--set", "leaf_score=linear")
    assert toprank.load(split).n_leaves_ > 1
    assert alone not in run("describe", split).out


# --- the command line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [("--help",), ("describe", "{}"), ("describe", "{}", "--json")])
def test_a_closed_pipe_ends_the_command_quietly(model, args):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "toprank", *(arg.format(model) for arg in args)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_single_positive_has_no_hit_rate_and_one_training_rate(tmp_path):
    """`fit` called its training rate 100 %, `topk` 11.1 %, and neither said why there was no hit rate."""
    history = write_cases(tmp_path / "h.csv", "x,fraud", [f"{i * 37 % 60 / 4},{int(i == 7)}" for i in range(60)])
    fitted = ("fit", history, "--label", "fraud", "--model", "tree", "--set", "min_samples_leaf=1", "-o",
              tmp_path / "m.toprank")  # fmt: skip
    why = "1 positive is too few to estimate hit rates of new cases"
    said = " ".join(run(*fitted).out.split())
    assert f"which is optimistic; {why} (use" in said
    assert "in training 1 of 1 positive: expect fewer hits" in said
    listed = " ".join(run("topk", tmp_path / "m.toprank", history, "--k", 1).out.split())
    rate = re.search(r"The training rate of such cases is (.* %); expect fewer hits: (.*)\.", listed)
    assert rate[2] == why
    assert f" 1 7 {rate[1]} " in listed
    assert "too few" not in run(*fitted, "--cv", 0).out
    write_cases(history, "x,fraud", [f"{i * 37 % 60 / 4},{int(i == 7)}" for i in range(4000)])
    assert re.search(r"a random\s+order has 0\.0003\n", run(*fitted).out)


def test_describe_shows_codes_as_written(tmp_path):
    lines = [line.replace("C", "00", 1) for line in case_lines()]
    done = run("describe", write_cases(tmp_path / "h.csv", lines=lines), "--json")
    column = json.loads(done.out)["columns"][0]
    assert (column["name"], column["kind"]) == ("case_id", "left out")
    assert column["values"].startswith("000000, 000001, ")
    assert json.loads(done.out)["notes"][0].startswith("'case_id' is written with leading zeros; if it identifies")


# --- explain ------------------------------------------------------------------------------------------------


def test_explain_prints_what_python_returns(model, folder):
    history = folder / "history.csv"
    table = pl.read_csv(history)
    expected = toprank.load(model).explain(table[[7]])[0]
    done = run("explain", model, history, "--row", 7)
    assert (done.code, done.out) == (0, f"Row 7 of history.csv (counted from 0)\n{expected}\n")
    done = run("explain", model, history, "--id", "case_id=C0007", "--json")
    found = json.loads(done.out)
    assert (found["row"], found["text"]) == (7, str(expected))
    assert found["explanation"] == expected.to_dict()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "got neither --row nor --id; expected one of them."),
        (("--row", 1, "--id", "case_id=C0001"), "got both --row and --id; expected one of them."),
        (("--row", 300), "--row must be from 0 to 299, as history.csv has 300 rows, got 300."),
        (("--id", "C0001"), "--id must be COLUMN=VALUE, got 'C0001'."),
        (("--id", "caseid=C0001"), "has no such column (6 columns read). Hint: did you mean 'case_id'?"),
        (("--id", "case_id=C00071"), "No row of history.csv has 'C00071' in column 'case_id'. Hint: did you mean "),
        (
            ("--id", "sector=retail"),
            "100 rows of history.csv have 'retail' in column 'sector', the first",
        ),
    ],
)
def test_explain_needs_one_case(model, folder, args, expected):
    done = run("explain", model, folder / "history.csv", *args)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err


QUICK = {"cv": 0, "n_estimators": 3, "random_state": 0, "teacher": None}


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.ranks], ids=lambda entry: entry.name)
def test_explain_knows_every_ranker(folder, model, tmp_path, entry):
    table = pl.read_csv(folder / "history.csv")
    kind = entry.load()
    known = kind().get_params(deep=False)
    quick = QUICK | ({"cv": 2} if entry.kind == "curve" else {})
    if kind is StackedRanker:  # its members have parameters of their own
        quick = quick | {"rankers": [RankingTree(cv=0), MetaAPForest(n_estimators=3, random_state=0)]}
    ranker = kind(**{name: value for name, value in quick.items() if name in known})
    ranker.fit(table.drop("case_id", "fraud"), table["fraud"].to_numpy())
    ranker.save(tmp_path / "m.toprank")
    done = run("explain", tmp_path / "m.toprank", folder / "history.csv", "--row", 4)
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) > 2
    as_data = json.loads(run("explain", tmp_path / "m.toprank", folder / "history.csv", "--row", 4, "--json").out)
    how = as_data["explanation"].get("how", "")
    assert "{}" not in how
    assert how in as_data["text"]
