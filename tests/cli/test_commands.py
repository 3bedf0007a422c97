"""Every command on good input: what it writes, what it prints, and --json."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import toprank
from cli_files import N_CASES, QUICK_FLAGS, case_lines, fit_cases, run, write_cases
from toprank import MLFP, CostTree, RankingTree
from toprank.cli.fit import make_estimator
from toprank.register import BY_COMMAND, DEFAULT_COMMAND


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_cases(folder / "history.csv")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return fit_cases(folder)


@pytest.fixture(scope="module")
def flags(folder):
    """The default model with rates of new cases, and what `fit` printed."""
    path, quick = folder / "flags.toprank", ("--cv", 2, "--set", "teacher=none", "--budget", 40)
    done = run("fit", folder / "history.csv", "--label", "fraud", "--id", "case_id", *quick, "-o", path)
    assert done.code == 0, done.err
    return path, done


def parsed(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


# --- fit ----------------------------------------------------------------------------------------------------


def test_fit_prints_the_tree_and_writes_it(folder, tmp_path):
    out = tmp_path / "model.toprank"
    done = run("fit", folder / "history.csv", "--label", "fraud", "--id", "case_id", "--model", "metaap", "-o", out)
    assert done.code == 0, done.err
    assert done.out.startswith("MetaAP\n  size ")
    assert "300 cases, " in done.out
    assert "5-fold cross-validation" in done.out
    assert re.search(
        r"\n1\. hit rate [\d.]+ % \([\d.]+ % to [\d.]+ %\), lift [\d.]+x; in training \d+ of \d+ positive\n", done.out
    )
    assert re.search(r"; expect \d+ hits in \d+ new cases \(\d+ to \d+\)", " ".join(done.out.split()))
    fitted = toprank.load(out)
    assert [column.name for column in fitted.columns_] == ["sector", "amount", "age", "staff"]
    assert max(len(line) for line in done.out.splitlines()) <= 100


def test_fit_prints_the_page_of_the_default_model(folder, flags):
    path, done = flags
    assert done.out.startswith("RedFlags\n  size ")
    assert done.out.count("  size ") == 1
    said = " ".join(done.out.split())
    assert re.search(r" budget 40 cases: score >= -?\d+[;,]", said)
    assert re.search(r"; expect \d+ hits in (as many|40) new cases \(\d+ to \d+\)", said)
    assert "on new cases, estimated by 2-fold cross-validation" in said
    fitted = toprank.load(path)
    assert f"\n\nThe model\n{fitted.to_text()}\n\n" in done.out
    assert f"topk {path} NEW_CASES.csv --k 40 --id case_id -o alerts.csv" in said
    assert f"evaluate {path} CHECKED_CASES.csv --label fraud" in said
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert (fitted.verbose, fitted.n_jobs) == (0, None)  # as given, whatever the command used to be fast


def test_the_page_as_json_is_the_whole_model(folder, flags):
    path, _ = flags
    result, fitted = parsed(run("describe", path, "--json")), toprank.load(path)
    assert result["page"] == fitted.to_text()
    assert [rule["points"] for rule in result["rules"]] == [flag.points for flag in fitted.flags_]
    names = {row["column"] for row in result["scorecard"]}
    most = {name: max(row["points"] for row in result["scorecard"] if row["column"] == name) for name in names}
    best = result["base"] + sum(most.values()) + sum(max(rule["points"], 0) for rule in result["rules"])
    scores = fitted.decision_function(pl.read_csv(folder / "history.csv"))
    assert result["base"] < scores.max() <= best


def test_describe_prints_as_many_red_flags_as_asked_for(flags):
    path, _ = flags
    fitted = toprank.load(path)
    assert len(fitted.flags_) > 1
    done = run("describe", path, "--max-rules", 1)
    assert f"The model, with the first 1 of {len(fitted.flags_)} rules\n" in done.out
    assert "\n 1  " in done.out
    assert "\n 2  " not in done.out
    assert f"The model\n{fitted.to_text()}\n" in run("describe", path).out
    assert run("describe", path, "--exact").out == f"{fitted.to_text(exact=True)}\n"


@pytest.mark.parametrize(
    ("name", "expected", "settings"),
    [
        ("metaap", "MetaAP", ["max_depth=2"]),
        ("metaap-forest", "MetaAPForest", ["n_estimators=3", "max_features=sqrt"]),
        ("cost-curve", "CostOptimalCurve", ["depths=[2]", "alphas=[1.0]", "cv=0", "cost_factor=9.0"]),
        ("tao", "TAOTree", ["max_depth=2", "split=axis"]),
        ("cost-tree", "CostTree", ["ccp_alpha=1.0"]),
        ("tree", "RankingTree", ["criterion=entropy", "max_leaf_nodes=none"]),
        ("gamma-knn", "GammaKNN", ["n_neighbors=5", "scoring=g_mean"]),
        ("mlfp", "MLFP", ["mu=0.1", "form=full"]),
        ("local-gamma-knn", "LocalGammaKNN", ["n_clusters=2", "version=1"]),
        ("knn", "KNN", ["rule=krnn"]),
        ("scorecard", "Scorecard", ["points=10", "max_features=2"]),
        ("scorecard-tree", "ScorecardTree", ["max_depth=1"]),
    ],
)
def test_fit_knows_the_models_and_their_parameters(folder, tmp_path, name, expected, settings):
    sets = [part for setting in settings for part in ("--set", setting)]
    out = tmp_path / "m.toprank"
    result = parsed(
        run(
            "fit",
            folder / "history.csv",
            "--label",
            "fraud",
            "--drop",
            "case_id,staff",
            "--model",
            name,
            *sets,
            "--budget",
            "0.1",
            "-o",
            out,
            "--json",
        )
    )
    assert result["info"]["class"] == expected
    assert result["info"]["parameters"]["budget"] == 0.1
    assert [column["name"] for column in result["info"]["columns"]] == ["sector", "amount", "age"]
    for setting in settings:
        key, value = setting.split("=")
        assert str(result["info"]["parameters"][key]).lower() == value
    assert 0 < result["judged"]["average_precision"] <= 1


@pytest.mark.parametrize(("budget", "option"), [((), ""), (("30",), " --k 30"), (("2%",), "")])
def test_fit_says_what_to_do_next_with_the_budget(folder, tmp_path, budget, option):
    asked = [word for value in budget for word in ("--budget", value)]
    out = tmp_path / "m.toprank"
    done = run("fit", folder / "history.csv", "--label", "fraud", "--cv", 0, "--model", "tree", *asked, "-o", out)
    said = " ".join(done.out.split())
    assert f"topk {out} NEW_CASES.csv{option} -o alerts.csv" in said
    origin = (
        "No --budget was given, so `topk` lists as large a share of new cases as were positive in training: 25 cases"
    )
    assert (origin in said) == (not budget)


def test_fit_says_what_to_do_next_with_the_ids(folder, tmp_path):
    out = tmp_path / "my model.toprank"
    how = ("--label", "fraud", "--cv", 0, "--model", "tree", "-o", out, "--id", "case_id", "--id", "age, staff")
    said = " ".join(run("fit", folder / "history.csv", *how).out.split())
    asked = "--id case_id --id 'age, staff' -o alerts.csv"
    assert f"topk '{out}' NEW_CASES.csv {asked}" in said
    assert f"evaluate '{out}' CHECKED_CASES.csv --label fraud" in said
    assert f"`toprank describe '{out}' --all`" in " ".join(run("describe", out).out.split())


def test_topk_says_where_row_counts_from():
    assert "from 0" in run("topk", "--help").out


def test_fit_says_how_the_quality_was_found(folder, tmp_path):
    common = ("fit", folder / "history.csv", "--label", "fraud", "--id", "case_id", "-o", tmp_path / "m.toprank")
    said = " ".join(run(*common, *QUICK_FLAGS).out.split())
    assert "on the training data itself, which is optimistic" in said
    assert "training rate" in said
    assert "hit rate" not in said
    said = " ".join(run(*common, "--model", "metaap", "--cv", 3).out.split())
    assert "on new cases, estimated by 3-fold cross-validation (standard deviation 0." in said
    assert "training rate" not in said
    forest = ("--model", "metaap-forest", "--set", "n_estimators=3")
    assert "on new cases, estimated out of bag; a random order has 0.083" in " ".join(run(*common, *forest).out.split())


def test_fit_takes_names_of_models_for_parameters_that_are_models(folder, tmp_path):
    common = ("fit", folder / "history.csv", "--label", "fraud", "--id", "case_id", "--cv", 0)
    given = {
        "red-flags": ("teacher", "tree", RankingTree),
        "gamma-knn": ("metric", "mlfp", MLFP),
        "stacked": ("rankers", "tree, cost-tree", [RankingTree, CostTree]),
    }
    for model, (parameter, names, expected) in given.items():
        path = tmp_path / f"{model}.toprank"
        done = run(*common, "--model", model, "--set", f"{parameter}={names}", "-o", path)
        assert done.code == 0, done.err
        found = getattr(toprank.load(path), parameter)
        assert [type(each) for each in found] == expected if parameter == "rankers" else isinstance(found, expected)
    done = run(*common, "--model", "sgbap", "--set", "init=metap", "-o", tmp_path / "m.toprank")
    assert done.code == 2
    assert "init of --set must be the name of a model, as for --model, got 'metap'. Hint: did you mean" in done.err


def test_fit_takes_words_as_outcomes(tmp_path):
    lines = [re.sub(r",(\d)$", lambda m: ",fraud" if m[1] == "1" else ",fine", line) for line in case_lines()]
    history = write_cases(tmp_path / "h.csv", lines=lines)
    common = ("fit", history, "--label", "fraud", "--id", "case_id", *QUICK_FLAGS, "-o", tmp_path / "m.toprank")
    result = parsed(run(*common, "--positive", "fraud", "--json"))
    assert result["info"]["classes"]["values"][result["info"]["positive_index"]] == "fraud"
    result = parsed(run("evaluate", tmp_path / "m.toprank", history, "--label", "fraud", "--json"))
    assert result["n_positives"] == sum(line.endswith(",fraud") for line in lines)


def test_fit_notes_what_looks_like_a_mistake(tmp_path):
    lines = case_lines()
    lines[6] = lines[6].replace(",220,", ",n/a,")
    history = write_cases(tmp_path / "h.csv", lines=lines)
    done = run("fit", history, "--label", "fraud", *QUICK_FLAGS, "--positive", "0", "-o", tmp_path / "m.toprank")
    assert done.code == 0, done.err
    assert "'case_id' (identifier). Hint: --set keep_columns=NAME" in done.err
    assert done.err.count("'case_id'") == 1
    assert "Column 'amount' is read as numbers, but 1 cell holds none, such as 'n/a'" in done.err
    assert "Read from text: 'amount' (number written as text)" in done.err
    assert "if the other outcome is the rare one" in done.err
    assert "254" not in done.out


def test_the_same_file_gives_the_same_model(folder, tmp_path):
    command = (
        "fit",
        folder / "history.csv",
        "--label",
        "fraud",
        "--id",
        "case_id",
        "--model",
        "metaap-forest",
        "--set",
        "n_estimators=3",
        "--json",
        "-o",
        tmp_path / "m.toprank",
    )
    first, second = parsed(run(*command)), parsed(run(*command))
    assert first["judged"] == second["judged"]
    assert first["info"]["importances"] == second["info"]["importances"]


# --- topk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_topk_writes_alerts(folder, model, tmp_path, ending):
    new, out = tmp_path / f"new.{ending}", tmp_path / f"alerts.{ending}"
    frame = pl.read_csv(folder / "history.csv")
    if ending == "parquet":
        frame.write_parquet(new)
    elif ending == "csv":
        frame.write_csv(new)
    else:
        new.write_bytes(gzip.compress((folder / "history.csv").read_bytes()))
    done = run("topk", model, new, "--k", 12, "--reasons", 2, "--id", "case_id", "--keep", "fraud", "-o", out)
    assert done.code == 0, done.err
    alerts = pl.read_parquet(out) if ending == "parquet" else pl.read_csv(out)
    assert alerts.columns == [
        "case_id",
        "rank",
        "row",
        "score",
        "training_rate",
        "lift",
        "leaf",
        "reason_1",
        "strength_1",
        "reason_2",
        "strength_2",
        "fraud",
    ]
    assert alerts["rank"].to_list() == list(range(1, 13))
    assert alerts["case_id"].to_list() == [f"C{row:04d}" for row in alerts["row"]]
    assert alerts["fraud"].mean() == 1
    expected = toprank.load(model).top_k(frame.select("sector", "amount", "age", "staff"), 12, reasons=2)
    assert alerts["score"].to_list() == pytest.approx(expected["score"].to_list(), abs=1e-12)
    assert done.out.startswith("The 12 of 300 cases most worth checking; the training rate ")


def test_topk_prints_the_first_without_an_output(folder, model):
    done = run("topk", model, folder / "history.csv", "--id", "case_id")
    assert done.code == 0, done.err
    assert "The 40 of 300 cases most worth checking, the first 20:" in done.out  # 40: the model's budget
    assert max(len(line) for line in done.out.splitlines()) <= 100
    result = parsed(run("topk", model, folder / "history.csv", "--k", 3, "--reasons", 0, "--json"))
    assert [alert["rank"] for alert in result["alerts"]] == [1, 2, 3]
    assert "reason_1" not in result["alerts"][0]


@pytest.mark.parametrize("share", ["100%", "100.0 %", "50%"])
def test_a_share_may_be_all_cases(folder, model, share):
    n = 300 * int(float(share[:-1])) // 100
    assert parsed(run("topk", model, folder / "history.csv", "--k", share, "--json"))["k"] == n
    judged = parsed(run("evaluate", model, folder / "history.csv", "--label", "fraud", "--k", share, "--json"))
    assert judged["at_k"][0]["k"] == n


def test_topk_keeps_all_that_the_model_does_not_use(folder, model):
    result = parsed(run("topk", model, folder / "history.csv", "--k", 1, "--keep", "all", "--json"))
    assert list(result["alerts"][0])[-2:] == ["case_id", "fraud"]


def test_topk_notes_categories_that_training_never_saw(model, tmp_path):
    lines = [line.replace("transport", "mining") for line in case_lines()]
    new = write_cases(tmp_path / "new.csv", lines=lines)
    done = run("topk", model, new, "--k", 2)
    assert done.code == 0
    assert "Note: Column 'sector' holds 1 category in 100 rows" in done.err
    assert parsed(run("topk", model, new, "--k", 2, "--json"))["notes"]
    assert run("topk", model, new, "--k", 2, "--quiet").err == ""


def test_text_that_looks_like_numbers_stays_text(tmp_path):
    codes = {"retail": "007", "construction": "12", "transport": "A1"}
    lines = [re.sub("|".join(codes), lambda m: codes[m[0]], line) for line in case_lines()]
    history = write_cases(tmp_path / "h.csv", lines=lines)
    model = tmp_path / "m.toprank"
    assert run("fit", history, "--label", "fraud", "--id", "case_id", *QUICK_FLAGS, "-o", model).code == 0
    new = write_cases(tmp_path / "new.csv", lines=[line for line in lines if ",A1," not in line])
    done = run("topk", model, new, "--k", 5, "--json")
    assert parsed(done)["notes"] == []
    assert "sector = 12" in done.out


# --- evaluate -----------------------------------------------------------------------------------------------


def test_evaluate_measures_the_ranking(folder, model):
    history = folder / "history.csv"
    result = parsed(
        run("evaluate", model, history, "--label", "fraud", "--k", 10, "--k", 20, "--amount", "amount", "--json")
    )
    frame = pl.read_csv(history)
    score = toprank.load(model).decision_function(frame.select("sector", "amount", "age", "staff"))
    y = frame["fraud"].to_numpy()
    assert result["average_precision"]["value"] == pytest.approx(toprank.metrics.average_precision(y, score))
    assert result["average_precision"]["low"] <= result["average_precision"]["value"]
    assert [at["k"] for at in result["at_k"]] == [10, 20]
    shares = parsed(
        run("evaluate", model, history, "--label", "fraud", "--k", "3.4%", "--k", "0.02", "-k", 6, "--json")
    )
    assert [at["k"] for at in shares["at_k"]] == [11, 6]  # rounded up, as in the table of gains; once each
    for at in result["at_k"]:
        assert at["precision_worst"] <= at["precision"] <= at["precision_best"]
    assert result["gains"]["depth"] == [3, 6, 15, 30]
    assert result["gains"]["cumulative_amount"] == sorted(result["gains"]["cumulative_amount"])
    done = run("evaluate", model, history, "--label", "fraud", "--amount", "amount")
    assert all(word in done.out for word in ("AP ", "AUC ", "40 cases", "ties", "amount found", "Down the ranking"))
    assert max(len(line) for line in done.out.splitlines()) <= 100


# --- describe -----------------------------------------------------------------------------------------------


def test_describe_model_as_json(model):
    result = parsed(run("describe", model, "--json"))
    assert result["kind"] == "model"
    assert result["info"]["class"] == "MetaAP"
    assert result["rules"][0]["positives"] > 0
    fitted = toprank.load(model)
    assert [rule["rule"] for rule in result["rules"]] == fitted.rules()["rule"].to_list()[:5]
    assert [rule["ways"] for rule in result["rules"]] == [rule.to_dict()["ways"] for rule in fitted.rule_list()][:5]


def test_describe_shows_the_average_precision_that_fit_printed(folder, tmp_path):
    path, said = tmp_path / "m.toprank", []
    fitted = ("fit", folder / "history.csv", "--label", "fraud", "--model", "sgbap", "--cv", 2, "-o", path)
    for done in (run(*fitted, "--set", "n_estimators=5"), run("describe", path)):
        assert done.code == 0, done.err
        said.append(" ".join(done.out.split()))
    judged = re.search(r" AP (.* a random order has \S+)", said[0])[1]
    assert "on new cases, estimated by 2-fold cross-validation" in judged
    assert f" AP {judged} " in said[1]
    assert re.search(r" rounds \d+, chosen by folds blend the logistic loss alone trees ", said[1])
    model = toprank.load(path)
    for name in ("rules", "to_text"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"SGBAP has no '{name}'.* Hint: explain and top_k"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="no attribute 'ruless'"):
        model.ruless  # noqa: B018


def test_describe_forest(folder, tmp_path):
    forest = fit_cases(tmp_path, "--model", "metaap-forest", "--set", "n_estimators=3")
    done = run("describe", forest)
    assert done.code == 0, done.err
    assert "3 trees" in done.out


def test_describe_model_does_not_load_scikit_learn(model):
    code = (
        "import sys; from toprank.cli import main; code = main(['describe', sys.argv[1]]);"
        "heavy = {'sklearn', 'pandas', 'polars'} & set(sys.modules); sys.exit(str(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code, model], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "rules" in done.stdout


def test_describe_table_as_json(folder):
    result = parsed(run("describe", folder / "history.csv", "--label", "fraud", "--json"))
    assert (result["n_rows"], result["n_columns"]) == (N_CASES, 6)
    kinds = {column["name"]: column["kind"] for column in result["columns"]}
    assert kinds["sector"] == "category"
    assert (kinds["fraud"], kinds["case_id"]) == ("label", "left out")
    age = next(column for column in result["columns"] if column["name"] == "age")
    assert age["missing"] == pytest.approx(18 / 300)
    assert result["label"]["n_positives"] > 0


# --- demo, warmup and the rest ------------------------------------------------------------------------------


@pytest.fixture
def quick_demo(monkeypatch):
    """Fit the model of the demo without its teacher, and in two folds."""
    monkeypatch.setattr(
        "toprank.cli.demo.make_estimator",
        lambda name, given, *rest: make_estimator(
            name, [*given, "teacher=none", "cv=2"] if name == DEFAULT_COMMAND else given, *rest
        ),
    )


def test_demo_and_the_commands_it_suggests(tmp_path, monkeypatch, quick_demo):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["toprank"])  # else the commands begin with whatever runs the tests
    done = run("demo", "--cases", 4000, "--out", "a folder")
    assert done.code == 0, done.err
    written = {path.name for path in (tmp_path / "a folder").iterdir()}
    assert written == {"alerts.csv", "model.toprank", "page.txt", "history.csv", "new.csv"}
    text, commands = done.out.split("Try next\n")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert all(word in text for word in ("most worth checking", "average precision", "best possible", "10 %"))
    alerts = pl.read_csv(tmp_path / "a folder" / "alerts.csv")
    assert alerts.columns[:2] == ["case_id", "rank"]
    assert alerts.height == 20  # 2 % of the 1,000 cases of the last year
    model = toprank.load(tmp_path / "a folder" / "model.toprank")
    assert type(model).__name__ == BY_COMMAND[DEFAULT_COMMAND].name
    assert (tmp_path / "a folder" / "page.txt").read_text(encoding="utf-8") == f"{model.to_text()}\n"
    flags = " ".join(text.partition("The red flags of the model\n")[2].split())
    assert all(flag.conditions[0].text() in flags for flag in model.flags_)
    suggested = [shlex.split(line) for line in commands.strip().splitlines()]
    assert [command[1] for command in suggested] == ["describe", "topk", "evaluate", "fit"]
    assert suggested[-1][-4:-2] == ["--model", "metaap"]
    for command in suggested:
        assert run(*command[1:]).code == 0


def test_demo_as_json(tmp_path, quick_demo):
    result = parsed(run("demo", "--cases", 4000, "--seed", 3, "--out", tmp_path / "demo", "--json"))
    interval = result["average_precision"]
    assert interval["low"] <= interval["value"] <= interval["high"]
    assert 0 < result["optimal_average_precision"] < 1
    assert len(result["alerts"]) == 5
    assert len(result["rules"]) == result["info"]["figures"]["n_rules"]


@pytest.mark.slow
def test_warmup_says_how_long_it_took():
    result = parsed(run("warmup", "--json"))
    assert result["seconds"] > 0
    assert len(result["steps"]) > 10
    compiled = {step["name"].partition(",")[0].partition(" (")[0] for step in result["steps"]}
    assert {"MetaAP", "TreeRank", "TreeRankBoost", "TAOTree", "CostOptimalCurve"} <= compiled


AFTER_WARMUP = """
import os, sys
from pathlib import Path
from cli_files import run
from toprank.register import BY_COMMAND

def compiled():
    return {path.name for path in Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbc")}

assert run("warmup", "--quiet").code == 0
history, out = sys.argv[1:]
before = compiled()
assert before
for name in BY_COMMAND:
    done = run("fit", history, "--label", "fraud", "--id", "case_id", "--model", name, "--cv", 0, "-o", out)
    assert done.code == 0, done.err
    assert compiled() == before, (name, sorted(compiled() - before))
"""


@pytest.mark.slow
def test_nothing_is_compiled_after_warmup(folder, tmp_path):
    modules = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": modules}
    command = [sys.executable, "-c", AFTER_WARMUP, str(folder / "history.csv"), str(tmp_path / "model.toprank")]
    done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version_and_help():
    assert run("--version").out == f"toprank {toprank.__version__}\n"
    assert f"[default: {DEFAULT_COMMAND}]" in run("fit", "--help").out
    shown = run("--help").out
    assert all(name in shown for name in ("demo", "fit", "topk", "evaluate", "describe", "warmup"))
    for name in ("demo", "fit", "topk", "evaluate", "describe"):
        examples = run(name, "--help").out
        assert f" toprank {name} " in examples
        assert r"\b" not in examples


def test_quiet_says_nothing_where_a_file_is_written(folder, model, tmp_path):
    history = folder / "history.csv"
    done = run("fit", history, "--label", "fraud", *QUICK_FLAGS, "-o", tmp_path / "m.toprank", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = run("topk", model, history, "--k", 3, "-o", tmp_path / "a.csv", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_python_m_toprank():
    command = [sys.executable, "-m", "toprank"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"toprank {toprank.__version__}\n")
    done = subprocess.run([*command, "describe", "no.csv"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "There is no file no.csv.\n"


# --- describe: the scorecard inside leaves ------------------------------------------------------------------


def test_describe_shows_the_scorecard_inside_leaves(tmp_path):
    path = fit_cases(tmp_path, "--set", "leaf_score=linear")
    done = run("describe", path)
    assert done.code == 0, done.err
    fitted = toprank.load(path)
    block = fitted.to_text().partition("Inside a leaf, cases with more points come first:\n")[2].partition("\n\n")[0]
    assert f"\n\nInside a leaf, cases with more points come first\n{block}\n\n" in done.out
    assert re.search(r"\n  inside leaves  scorecard of \d columns?: \w+", done.out)
    assert max(len(line) for line in done.out.splitlines()) <= 100
    card = parsed(run("describe", path, "--json"))["scorecard"]
    assert [row["points"] for row in card] == list(fitted.scorecard()["points"])
    assert {row["center"] is None for row in card if row["counts"] != "per unit"} <= {True}


def test_describe_is_as_short_as_is_asked_for(tmp_path):
    path = fit_cases(tmp_path)
    model = toprank.load(path)
    assert model.tree_.n_leaves == 2
    done = run("describe", path, "--max-rules", 1, "--max-conditions", 1)
    assert "The first 1 of 2 rules" in done.out
    assert "\n2. " not in done.out
    first = parsed(run("describe", path, "--max-rules", 1, "--max-conditions", 1, "--json"))["rules"]
    assert [rule["rule"] for rule in first] == model.rules(max_rules=1, max_conditions=1)["rule"].to_list()
    assert "share of gain" not in done.out
    everything = run("describe", path, "--all").out
    assert "share of gain" in everything
    assert f"data hash      {model.data_hash_}\n" in everything
    assert "smoothing_strength=" in everything
    assert "smoothing_strength=" not in done.out
    assert "max_depth=2; otherwise the defaults" in " ".join(done.out.split())
    assert run("describe", path, "--max-rules", 0).code == 2


def test_describe_says_nothing_of_a_scorecard_where_there_is_none(tmp_path):
    model = fit_cases(tmp_path, "--set", "leaf_score=constant")
    assert "inside" not in run("describe", model).out.lower()
    assert "scorecard" not in parsed(run("describe", model, "--json"))


# --- describe: the exact text -------------------------------------------------------------------------------


def test_describe_prints_the_exact_text(model, folder, tmp_path):
    fitted = toprank.load(model)
    done = run("describe", model, "--exact")
    assert (done.code, done.out, done.err) == (0, f"{fitted.to_text(exact=True)}\n", "")
    assert parsed(run("describe", model, "--exact", "--json"))["text"] == fitted.to_text(exact=True)
    done = run("describe", folder / "history.csv", "--exact")
    assert (done.code, done.out) == (2, "")
    assert "--exact prints the tree of a model file, but history.csv is a table. Hint: " in done.err


def test_describe_prints_all_trees_of_a_forest_exactly(folder, tmp_path):
    path = fit_cases(tmp_path, "--model", "metaap-forest", "--set", "n_estimators=2")
    out = run("describe", path, "--exact").out
    forest = toprank.load(path)
    assert out.startswith(forest.summary())
    for tree in (1, 2):
        below = forest.to_text(tree, exact=True).partition(f"tree {tree} of 2:\n")[2]
        assert below
        assert f"tree {tree} of 2:\n{below}\n" in out


def test_evaluate_prints_expected_hits_beside_found_ones(folder, tmp_path):
    path = tmp_path / "m.toprank"
    common = ("--label", "fraud", "--id", "case_id", "--model", "metaap", "--cv", 3)
    assert run("fit", folder / "history.csv", *common, "-o", path).code == 0
    new = write_cases(tmp_path / "new.csv", lines=case_lines()[50:])
    done = run("evaluate", path, new, "--label", "fraud", "--k", 20)
    assert done.err == ""
    assert re.search(r"checked +expected +found", done.out)
    assert "Expected: the hits that the model predicts for these cases" in done.out
    at = parsed(run("evaluate", path, new, "--label", "fraud", "--k", 20, "--json"))["at_k"][0]
    model, table = toprank.load(path), pl.read_csv(new)
    score = np.sort(model.decision_function(table.drop("case_id", "fraud")))[-20:]
    assert at["claimed"] == pytest.approx(model.rates_.of_group(score)[0])


def test_the_json_of_a_scorecard_tree_has_its_corrections(folder, tmp_path):
    path = tmp_path / "m.toprank"
    common = ("--label", "fraud", "--id", "case_id", "--model", "scorecard-tree", "--cv", 0)
    found = parsed(run("fit", folder / "history.csv", *common, "-o", path, "--json"))
    assert found["tree"] == toprank.load(path).to_plain()["tree"]


@pytest.mark.parametrize("given", [None, "ACTIVE"])
def test_openmp_threads_sleep_while_they_wait_unless_the_user_decides(given):
    code = "import os; from toprank.cli import main; main(['--version']); print(os.environ['OMP_WAIT_POLICY'])"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {} if given is None else {"OMP_WAIT_POLICY": given}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == (given or "PASSIVE")
