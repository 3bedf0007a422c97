"""Small words of the command line: singulars, ties, hit rates, scorecards, dates, budgets larger than the table."""

import io
import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import toprank
from cli_files import HEADER, QUICK_FLAGS, case_lines, fit_cases, run, save_classifier, write_cases
from toprank import RankingTree
from toprank.cli.app import is_bad_input
from toprank.cli.show import alerts_table, factor, percent_short, strengths_text
from toprank.cli.terminal import Terminal
from toprank.cli.topk import Ties
from toprank.metrics import HitRates
from toprank.words.counts import plural

ONE_OF_SEVERAL = re.compile(
    r"(?<![\d,.])1 (?:cases|rows|columns|leaves|conditions|trees|positives|negatives|rules|points|fields)\b"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wording")
    fit_cases(folder, "--set", "leaf_score=constant")
    return folder


def caught(action):
    """The error that a call ends with."""
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("no error")


# --- singulars ----------------------------------------------------------------------------------------------------


def test_one_of_everything_is_in_the_singular(tmp_path):
    table = write_cases(tmp_path / "one.csv", "x,fraud", [f"{i % 7},{int(i % 7 == 6)}" for i in range(70)])
    model = tmp_path / "one.toprank"
    common = ("--label", "fraud", "--budget", 1, "--cv", 0, "-o", model)
    for kind in ("metaap", "metaap-forest", "tree"):
        more = ("--set", "n_estimators=1") if kind == "metaap-forest" else ()
        done = run("fit", table, *common, "--model", kind, "--set", "max_depth=1", *more)
        assert done.code == 0, done.err
        assert re.search(r"  budget +1 case: score >= ", done.out)
        texts = [done.out, run("describe", model).out, run("topk", model, table).out]
        texts.append(run("evaluate", model, table, "--label", "fraud").out)
        assert not [text for text in texts if ONE_OF_SEVERAL.search(text)]
    done = run("fit", table, *common, "--model", "tree", "--set", "min_samples_leaf=60")
    assert "1 leaf, 0 conditions, depth 0" in done.out
    assert "The only rule\n1. training rate 14.3 %, lift 1x; in training 10 of 70 positive\n" in done.out


def test_sentences_about_one_thing_are_in_the_singular(tmp_path):
    fit = ("--label", "fraud", "-o", tmp_path / "m.toprank")
    sentences = {
        "x\n": "has 1 column but no rows",
        "x\n1\n": "is missing from t.csv (1 column read)",
        "x,fraud\n1,0\n": "but the only row holds 0.",
        "x,fraud\n1,0\n2,1\n3,\n": "but 1 of 3 is missing, the first in row 3 (counted from 1).",
        "x,fraud\n1\n": "Line 2 of t.csv has 1 field, expected 2",
    }
    for content, expected in sentences.items():
        (tmp_path / "t.csv").write_text(content)
        assert expected in run("fit", tmp_path / "t.csv", *fit).err


# --- ties ---------------------------------------------------------------------------------------------------------


def test_found_cases_are_whole_numbers_and_ties_are_explained(folder):
    done = run("evaluate", folder / "model.toprank", folder / "history.csv", "--label", "fraud", "--k", 28)
    table = done.out.partition("Checking the first k cases")[2]
    assert not re.search(r" \d+\.\d  ", table)
    assert "about 22" in table
    assert "About: cases with equal scores have no order; these figures are the mean over all orders." in table
    as_data = json.loads(
        run("evaluate", folder / "model.toprank", folder / "history.csv", "--label", "fraud", "--json").out
    )
    assert as_data["gains"]["cumulative_positives"][-1] == pytest.approx(22 + 3 * 8 / 278)


def test_nothing_is_said_of_ties_where_there_are_none(folder, tmp_path):
    done = run("evaluate", fit_cases(tmp_path), folder / "history.csv", "--label", "fraud", "--k", 5)
    assert "About:" not in done.out
    assert "about " not in done.out


# --- hit rates and scorecards ---------------------------------------------------------------------------------------


def test_hit_rates_of_training_are_no_promise(folder, tmp_path):
    common = ("topk", folder / "model.toprank", folder / "history.csv", "--k", 6)
    done = run(*common, "-o", tmp_path / "alerts.csv")
    said = " ".join(done.out.split())
    assert re.match(
        r"The 6 of 300 .*; the training rate of such cases is (?:> )?[\d.]+ %; expect fewer hits\. .*Wrote ", said
    )
    listed = run(*common).out
    assert re.search(r"^  rank +row +training rate +lift +reasons$", listed, re.MULTILINE)
    assert re.search(
        r"\n  The training rate of such cases is (?:> )?[\d.]+ %; expect fewer hits\.$", listed, re.MULTILINE
    )
    assert "expect" not in run(*common, "--quiet").out


@pytest.mark.parametrize(
    ("listed", "cases", "n_alerts", "text"),
    [
        (3, 3, 6, ""),
        (6, 22, 6, "These are the first of 22 cases with the same score, in the order of the file."),
        (3, 1200, 6, "The last 3 are the first of 1,200 cases with the same score, in the order of the file."),
        (1, 2, 6, "The last one is the first of 2 cases with the same score, in the order of the file."),
        (1, 2, 1, "This is the first of 2 cases with the same score, in the order of the file."),
    ],
)
def test_ties_that_the_list_splits(listed, cases, n_alerts, text):
    assert Ties(listed, cases).in_words(n_alerts) == text


def test_topk_says_how_it_splits_ties(tmp_path):
    table = pl.DataFrame({"a": [3] * 5 + [2] * 10 + [1] * 50, "y": [1] * 5 + [1, 0] * 5 + [0] * 50})
    table.write_csv(tmp_path / "t.csv")
    model = RankingTree(max_leaf_nodes=3, min_samples_leaf=1, cv=0).fit(table.select("a"), table["y"])
    model.save(tmp_path / "m.toprank")
    for k, ties in ((5, {"listed": 5, "cases": 5}), (8, {"listed": 3, "cases": 10}), (40, {"listed": 25, "cases": 50})):
        done = json.loads(run("topk", tmp_path / "m.toprank", tmp_path / "t.csv", "--k", k, "--json").out)
        assert done["ties_at_end"] == ties
        assert [alert["row"] for alert in done["alerts"]] == list(range(k))
        for out in ((), ("-o", tmp_path / "alerts.csv")):
            said = run("topk", tmp_path / "m.toprank", tmp_path / "t.csv", "--k", k, *out).out
            assert Ties(**ties).in_words(k) in " ".join(said.split())


@pytest.mark.parametrize(
    ("more", "source"),
    [
        (("metaap-forest", "--set", "n_estimators=3"), "out of bag"),
        (("metaap-forest", "--set", "n_estimators=3", "--set", "bootstrap=False"), None),
        (("treerank-boost", "--set", "n_estimators=3"), "by 3-fold cross-validation"),
        (("treerank-boost", "--set", "n_estimators=3", "--cv", 0), None),
        (
            ("cost-curve", "--cv", 2, "--set", "alphas=none", "--set", "depths=none", "--set", "cost_factor=9"),
            "by cross-validation",
        ),
        (("tree",), "by 5-fold cross-validation"),
        (("cost-tree", "--cv", 0), None),
    ],
)
def test_hits_to_expect_among_alerts(folder, tmp_path, more, source):
    model, table = tmp_path / "m.toprank", folder / "history.csv"
    done = run("fit", table, "--label", "fraud", "--id", "case_id", "-o", model, "--model", *more)
    assert done.code == 0, done.err
    said = " ".join(run("topk", model, table, "--k", 6, "-o", tmp_path / "alerts.csv").out.split())
    assert said.startswith("The 6 of 300 cases most worth checking; ")
    listed = " ".join(run("topk", model, table, "--k", 6).out.split())
    if source is None:
        assert re.search(r"; the training rate of such cases is (?:> )?[\d.]+ %; expect fewer hits\. ", said)
        assert " training rate lift " in listed
        return
    told = re.search(r"; expect (\d) hits? among them \((\d) to (\d)\), estimated ([^.]*)\. .*Wrote ", said)
    hits, low, high = map(int, told.groups()[:3])
    assert 0 <= low <= hits <= high <= 6
    assert told[4] == source
    assert " hit rate lift " in listed
    assert f"{said.partition('; e')[2].partition(' Wrote')[0]}" in listed


def test_a_scorecard_alone_is_told_as_the_model_that_it_is(folder, tmp_path):
    model, table = tmp_path / "m.toprank", folder / "history.csv"
    settings = ("--model", "metaap", "--set", "leaf_score=linear", "--set", "min_samples_leaf=200", "--cv", 0)
    done = run("fit", table, "--label", "fraud", "--id", "case_id", *settings, "-o", model)
    assert done.code == 0, done.err
    assert "  size           1 leaf, 0 conditions, depth 0\n" in done.out
    fitted = toprank.load(model)
    first = fitted.scorecard()["column"][0]
    told = f"  main columns   of the scorecard, as there are no conditions: {first} "
    assert told in done.out
    card = done.out.partition("\n\nInside a leaf, cases with more points come first\n")[2].partition("\n\n")[0]
    assert fitted.to_text().endswith(f"\n{card}")
    assert "scorecard of " in done.out
    said = run("describe", model).out
    assert told in said
    assert f"come first\n{card}\n" in said
    said = run("describe", model, "--all").out
    shares = re.findall(r"^  (\w+) +(?:number|category) +([\d.]+) %", said, re.MULTILINE)
    assert "share of scorecard" in said
    assert max(shares, key=lambda share: float(share[1]))[0] == first
    assert sum(float(share) for _, share in shares) == pytest.approx(100, abs=0.5)
    said = " ".join(run("topk", model, table, "--k", 6, "-o", tmp_path / "alerts.csv").out.split())
    rate = float(re.search(r"; the training rate of such cases is ([\d.]+) %; expect fewer hits\. ", said)[1])
    assert rate > 50  # the rate follows the score: the leaf, which is the whole table, has 8.33 %


def test_main_columns_are_those_of_conditions_where_there_are_some(tmp_path):
    said = run("describe", fit_cases(tmp_path, "--set", "leaf_score=linear"), "--all").out
    assert "share of gain" in said
    assert "of the scorecard, as" not in said


# --- models that rank nothing -------------------------------------------------------------------------------------


def test_describe_tells_classes_and_rules_of_a_model_that_ranks_nothing(tmp_path, monkeypatch):
    path = save_classifier(tmp_path, costs=[[0.0, 4.0, 4.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]])
    path = path.rename(tmp_path / "my classes.toprank")
    model, said = toprank.load(path), run("describe", path).out
    assert said.startswith("TAOClassifier\n  size        4 leaves, 3 conditions, depth 3\n  trained on  300 cases, ")
    assert "  classes     'fraud': 25, 'large': 138, 'small': 137\n" in said
    assert "costs=[[0.0, 4.0, 4.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]], " in " ".join(said.split())
    everything = run("describe", path, "--all").out
    assert re.search(r"^  amount  number$", everything, re.MULTILINE)  # no share of a gain
    assert (
        "All 4 rules, from left to right in the tree, with figures on the training cases\n1. class 'small', 137 of 137"
        in said
    )
    assert "ranking" not in said
    assert max(map(len, said.splitlines())) <= 100
    told = json.loads(run("describe", path, "--json").out)
    assert [{name: rule[name] for name in rule if name != "ways"} for rule in told["rules"]] == model.rules().to_dicts()
    assert told["info"]["figures"]["class_counts"] == [25.0, 138.0, 137.0]
    assert run("describe", path, "--exact").out == f"{model.to_text(exact=True)}\n"
    monkeypatch.setattr("toprank.cli.describe.CLASS_RULES_SHOWN", 3)
    said = run("describe", path).out
    assert "The first 3 of 4 rules, from left to right in the tree, with " in said
    assert "\n4. class" not in said
    assert " ".join(said.split()).endswith(f"`toprank describe '{path}' --exact` prints the whole tree.")


# --- budgets larger than the table --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "n_different"),
    [(" 10:30", 300), ("", 280), ("T10:30:00.5Z", 280), (" at noon", 0)],
)
def test_dates_as_text_get_one_note(tmp_path, hours, n_different):
    days = [f"20{i % (n_different or 280) // 28 + 10}-03-{i % (n_different or 280) % 28 + 1:02d}" for i in range(300)]
    lines = [f"{day}{hours}{line[5:]}" for day, line in zip(days, case_lines(), strict=True)]
    history = write_cases(tmp_path / "history.csv", "day of entry" + HEADER.removeprefix("case_id"), lines)
    common = ("--label", "fraud", "-o", tmp_path / "m.toprank")
    done = run("fit", history, *common, "--model", "tree", "--cv", 0)
    assert done.code == 0, done.err
    if n_different:
        assert done.err == (
            "Note: Read from text: 'day of entry' (date, year first); --set categorical_features=NAME keeps a column "
            "as categories.\n"
        )
    else:
        assert "'day of entry' (identifier)" in done.err


def test_a_budget_larger_than_the_table_gets_a_note(folder, tmp_path):
    common = ("--label", "fraud", "--id", "case_id")
    done = run("fit", folder / "history.csv", *common, *QUICK_FLAGS, "--budget", 5000, "-o", tmp_path / "m.toprank")
    assert done.code == 0
    assert done.err == "Note: --budget is 5,000 cases, but history.csv has 300: using all of them.\n"
    short = write_cases(tmp_path / "short.csv", lines=case_lines()[:9])
    done = run("topk", folder / "model.toprank", short)
    assert done.err == "Note: the budget of the model is 40 cases, but short.csv has 9: using all of them.\n"
    assert done.out.startswith("The 9 of 9 cases most worth checking")
    done = run("evaluate", folder / "model.toprank", short, "--label", "fraud", "--json")
    assert json.loads(done.out)["notes"] == [
        "the budget of the model is 40 cases, but short.csv has 9: using all of them."
    ]
    assert run("topk", folder / "model.toprank", folder / "history.csv").err == ""


# --- columns and settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--id", "--drop"])
@pytest.mark.parametrize("command", ["fit", "curve", "compare"])
def test_the_label_is_no_column_to_leave_out(folder, tmp_path, command, option):
    out = tmp_path / ("out" if command == "compare" else "m.toprank")
    done = run(command, folder / "history.csv", "--label", "fraud", option, "case_id,fraud", "-o", out)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"{option} names 'fraud', which is the label column of history.csv; expected another column. Hint: the label "
        f"is never used as a feature; remove it from {option}, or correct --label.\n"
    )
    assert not out.exists()


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("categorical_features=3.5", "categorical_features of --set must be column names, got 3.5. Hint: "),
        ("cv=[1,2]", "cv of --set must be a number of folds, got [1, 2]. Hint: "),
    ],
)
def test_settings_that_no_estimator_takes(folder, tmp_path, setting, expected):
    done = run("fit", folder / "history.csv", "--label", "fraud", "--set", setting, "-o", tmp_path / "m.toprank")
    assert (done.code, done.err[: len(expected)]) == (2, expected)


def test_a_column_may_be_named_by_its_position(folder, tmp_path):
    model = fit_cases(tmp_path, "--set", "categorical_features=3")
    columns = json.loads(run("describe", model, "--json").out)["info"]["columns"]
    assert {column["name"]: column["kind"] for column in columns}["staff"] == "category"
    assert HEADER.split(",")[1:5] == [column["name"] for column in columns]


# --- whose mistake it is ------------------------------------------------------------------------------------------


def test_errors_that_the_library_raises_are_about_the_input():
    from toprank import MetaAP
    from toprank.metrics import average_precision

    assert is_bad_input(caught(lambda: MetaAP(max_depth=0).fit([[1.0], [2.0]], [0, 1])))  # scikit-learn's check
    assert is_bad_input(caught(lambda: MetaAP(budget=True).fit([[1.0], [2.0]], [0, 1])))  # a TypeError
    assert is_bad_input(caught(lambda: average_precision([0, 0], [1.0, 2.0])))
    assert is_bad_input(FileNotFoundError())


def test_errors_that_nobody_raised_are_mistakes_of_ours(folder, monkeypatch):
    nothing: Any = None
    no_number: Any = "a"
    assert isinstance(caught(lambda: plural(nothing, "case")), TypeError)
    assert not is_bad_input(caught(lambda: plural(nothing, "case")))
    assert isinstance(caught(lambda: plural(no_number, "case")), ValueError)
    assert not is_bad_input(caught(lambda: plural(no_number, "case")))
    assert not is_bad_input(caught(lambda: np.zeros(2) + np.zeros(3)))
    assert not is_bad_input(caught(lambda: {}["a"]))
    monkeypatch.setattr("toprank.rankers.base.alerts_of_budget", lambda *given: nothing + 1)
    done = run("topk", folder / "model.toprank", folder / "history.csv")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Internal error in toprank (TypeError: unsupported operand type(s)")
    done = run("topk", folder / "model.toprank", folder / "history.csv", "--debug")
    assert done.code == 1
    assert done.err.startswith("Traceback")


def test_shares_of_a_ranking_in_few_digits():
    assert [percent_short(n, of) for n, of in ((155, 15_420), (309, 15_420), (100, 1_000), (125, 1_000), (1, 3))] == [
        "1 %", "2 %", "10 %", "12.5 %", "30 %",
    ]  # fmt: skip


def test_strengths_in_few_digits():
    assert [factor(s) for s in (1.006, 1.09, 1.1, 2.14, 9.94, 9.96, 49.4, 50.0, 1000.0)] == [
        "x1.01", "x1.09", "x1.1", "x2.1", "x9.9", "x10", "x49", "x50+", "x50+",
    ]  # fmt: skip


ONE = np.array([0.0]), np.array([0.1]), np.array([10.0])
NEW = HitRates(*ONE, 2.0, "out of bag", 0.3, float("nan"))
TRAINING = HitRates(*ONE, 2.0, "training", 0.3, float("nan"))


@pytest.mark.parametrize(
    ("strengths", "rates", "expected"),
    [
        ([181.0, 2.14], NEW, "x2.1 before a reason: it makes the odds of a hit 2.1 times as high, "
         "scaled to fit the hit rate."),
        ([181.0, None], NEW, "x50+ before a reason: it makes the odds of a hit 50 or more times as high, "
         "scaled to fit the hit rate."),
        ([3.0, 2.0], TRAINING, "x3.0 before a reason: it makes the odds of a hit 3.0 times as high, as in training."),
        ([None, None], NEW, ""),
    ],
)  # fmt: skip
def test_the_sentence_on_strengths_has_one_of_the_list(strengths, rates, expected):
    alert = {
        "strength_of_lock": "high",
        "rank": 1,
        "reason_1": "a = 1",
        "strength_1": strengths[0],
        "reason_2": "",
        "strength_2": strengths[1],
    }
    assert strengths_text([alert], rates) == expected


@pytest.mark.parametrize(("name", "shown"), [("hit_rate", "> 99 %"), ("training_rate", "100.0 %")])
def test_no_hit_rate_is_certain_but_a_training_rate_may_be(name, shown):
    console = Console(width=60, file=io.StringIO())
    console.print(alerts_table([{"rank": 1, name: 1.0, "lift": 8.0}], []))
    said = console.file.getvalue()
    assert shown in said
    assert ("100" in said) == (name == "training_rate")


def test_a_hint_that_wraps_keeps_its_indent(capsys):
    terminal = Terminal()
    terminal.out.width = 30
    terminal.hint("  a hint that takes more than one line of thirty")
    assert capsys.readouterr().out == "  a hint that takes more than\n  one line of thirty\n"


def test_a_shortened_page_names_the_command_that_prints_all_of_it(tmp_path):
    rng = np.random.default_rng(0)
    towns = [f"town {i:02}" for i in rng.integers(0, 40, 3000)]
    rows = [f"{town},{int(rng.random() < (0.3 if int(town[5:]) < 20 else 0.02))}" for town in towns]
    table, model = write_cases(tmp_path / "towns.csv", "town,fraud", rows), tmp_path / "m.toprank"
    common = ("fit", table, "--label", "fraud", *QUICK_FLAGS, "-o", model)
    done = run(*common)
    assert done.code == 0, done.err
    for text in (done.out, json.loads(run("describe", model, "--json").out)["page"]):
        said = " ".join(text.split())
        assert f"Shortened: `toprank describe {model} --exact` has every column and category" in said
        assert "to_text" not in text
    assert "Shortened" not in run("describe", model, "--exact").out
