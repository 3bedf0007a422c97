"""`toprank benchmark`, `experiment` and `compare`: what they print and write, and that a killed run goes on."""

import json
import multiprocessing
import random
import re
import shlex
import signal
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import toprank
from cli_files import run, write_cases
from experiment_cases import write_tables
from toprank.cli import main
from toprank.cli.compare import _instead, _print, _print_left_out, next_command, not_tried
from toprank.cli.terminal import Terminal
from toprank.experiment.leaderboard import Leaderboard
from toprank.experiment.registry import find_method
from toprank.experiment.store import Store
from toprank.workflow import recommend

PLAN = """
name: small
data: [one, two]
protocol: {seeds: 1-3, inner_splits: 3}
reference: MetaAP
methods:
  MetaAP: {method: metaap-paper, search: {depth: 2-5}, profile: {depth: 1-3}}
  Gini: {method: gini, search: {max_depth: 2-6}}
  Forest: {method: metaap-forest, parameters: {n_estimators: 20}, search: {max_depth: [2, 3]}}
  Logistic: {method: logistic-l2, search: {C: [0.1, 1.0]}}
quick:
  protocol: {seeds: 1}
  methods: {Forest: null}
"""


@pytest.fixture
def plan(tmp_path):
    write_tables(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the plots of a comparison, which test_compare_prints_a_leaderboard_and_a_recommendation looks at."""
    monkeypatch.setattr("toprank.experiment.comparing.draw", lambda board, path, table: path)
    monkeypatch.setattr("toprank.experiment.comparing.draw_price", lambda board, path: None)


def measured(folder: Path) -> dict[str, bytes]:
    """Content of everything that must not depend on how a run went."""
    files = [folder / "results.md", *(folder / "tables").iterdir(), *(folder / "plots").iterdir()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.slow  # test_a_run_that_was_killed_goes_on_to_the_same_figures kills once, below the command line
def test_a_run_killed_five_times_ends_with_the_same_bytes(plan, tmp_path):
    plan.write_text(re.sub(r"  Forest: .*\n|, profile: {depth: 1-3}", "", PLAN.split("quick:")[0]))
    command = ["benchmark", str(plan), "--data", str(tmp_path), "--quiet"]
    killed = [*command, "-o", str(tmp_path / "killed"), "--jobs", "1"]
    assert run(*command, "-o", tmp_path / "whole", "--jobs", 2).code == 0
    store = tmp_path / "killed" / "trials.sqlite"
    # Forked from the server of the run above, where everything is imported already.
    processes = multiprocessing.get_context("forkserver")
    rng, finished, exits = random.Random(7), [0], []
    for _ in range(5):
        process = processes.Process(target=main, args=(killed,))
        process.start()
        while process.is_alive() and n_stored(store) == finished[-1]:
            time.sleep(0.02)
        time.sleep(rng.random() * 0.1)
        process.kill()
        process.join()
        exits.append(process.exitcode)
        finished.append(n_stored(store))
    # A fast machine may be through before the last kills.
    assert exits[:2] == [-signal.SIGKILL] * 2
    assert 0 < finished[1] < finished[2] < 18, "it was killed on the way"
    assert run(*killed).code == 0
    assert n_stored(store) == 18
    assert measured(tmp_path / "killed") == measured(tmp_path / "whole")


def n_stored(store: Path) -> int:
    """Trials in the file, as another process sees it."""
    import sqlite3

    if not store.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM trials").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_benchmark_show_and_export(plan, tmp_path, monkeypatch):
    out = tmp_path / "out"
    done = run("benchmark", plan, "--data", tmp_path, "--quick", "-o", out, "--jobs", 1)
    assert done.code == 0, done.err
    assert "small: 6 of 6 trials done" in done.out
    assert "MetaAP against the others" in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert (out / "times.md").exists()
    assert (out / "plots" / "by_imbalance.png").read_bytes()[:4] == b"\x89PNG"
    again = run("benchmark", plan, "--data", tmp_path, "--quick", "-o", out)
    assert again.out == done.out
    shown = json.loads(run("experiment", "show", out, "--json").out)
    assert shown["statuses"] == {"done": 6}
    assert shown["tables"]["Mean average precision over the data sets"][0]["n_data_sets"] == 2
    monkeypatch.setattr("toprank.experiment.evidence._save", lambda plots, folder, methods: [])  # drawn above
    exported = run("experiment", "export", out, "-o", tmp_path / "tables", "--format", "tex,csv")
    assert exported.code == 0, exported.err
    assert pl.read_csv(tmp_path / "tables" / "tables" / "leaderboard.csv").height == 3
    assert "\\toprule" in (tmp_path / "tables" / "tables" / "leaderboard.tex").read_text()
    resumed = run("experiment", "resume", out, "--quiet")
    assert resumed.code == 0


def test_a_second_plan_in_the_same_folder_is_refused(plan, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other.yaml"
    plan.write_text(re.sub(r"  (MetaAP|Forest|Logistic): .*\n|reference.*\n|.*Forest: null.*\n", "", PLAN))
    other.write_text(plan.read_text().replace("name: small", "name: other"))
    assert run("benchmark", plan, "--data", tmp_path, "--quick", "-o", out, "--jobs", 1).code == 0
    before = measured(out)
    done = run("benchmark", other, "--data", tmp_path, "--quick", "-o", out, "--jobs", 1)
    assert (done.code, done.out) == (2, "")
    assert "'small'" in done.err
    assert "'other'" in done.err
    assert measured(out) == before
    shown = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    assert run("experiment", "show", out).code == 0
    assert {file: file.stat().st_mtime_ns for file in out.iterdir()} == shown, "showing writes nothing"


def test_a_disk_that_fills_up_in_a_run_gets_a_sentence_and_the_run_goes_on_later(plan, tmp_path, monkeypatch):
    out = tmp_path / "out"

    class Full(Store):
        def __init__(self, path, **options):
            super().__init__(path, patience=0.1, **options)

        def keep(self, trial, outcome):
            if len(self.outcomes()) == 2:
                self._connection.execute("PRAGMA max_page_count = 1")
                outcome = outcome | {"padding": "x" * 100_000}
            super().keep(trial, outcome)

    plan.write_text(re.sub(r"  (MetaAP|Forest|Logistic): .*\n|reference.*\n", "", PLAN.split("quick:")[0]))
    with monkeypatch.context() as patch:
        patch.setattr("toprank.experiment.store.Store", Full)
        done = run("benchmark", plan, "--data", tmp_path, "-o", out, "--jobs", 1, "--trial-minutes", 5)
    assert (done.code, done.out) == (2, "")
    assert "The disk is full" in done.err
    with Store(out / "trials.sqlite", read_only=True) as store:
        assert len(store.outcomes()) == 2
        assert store.plan.protocol.trial_minutes == 5
    resumed = run("experiment", "resume", out, "--jobs", 1, "--trial-memory", 20)
    assert resumed.code == 0, resumed.err
    assert "6 of 6 trials done" in resumed.out
    with Store(out / "trials.sqlite", read_only=True) as store:
        assert store.plan.protocol.trial_memory == 20


def test_published_runs_stand_beside_ours(plan, tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.experiment.evidence._save", lambda plots, folder, methods: [])  # drawn above
    out, published = tmp_path / "out", tmp_path / "published.csv"
    published.write_text("dataset,seed,method,ap_test\none,1,Gini,50.0\ntwo,1,Gini,60.0\n")
    done = run("benchmark", plan, "--data", tmp_path, "--quick", "-o", out, "--published", published, "--jobs", 1)
    assert done.code == 0, done.err
    assert "Beside the published figures" in done.out
    assert "55.00" in done.out


def test_interrupts_say_how_to_go_on(plan, tmp_path, monkeypatch):
    def interrupted(store, **options):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("toprank.experiment.runner.run", interrupted)
    done = run("benchmark", plan, "--data", tmp_path, "-o", tmp_path / "my run")
    assert done.code == 130
    assert "0 of 24 trials done" in done.err
    assert f"`toprank experiment resume '{tmp_path / 'my run'}'` resumes" in done.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["benchmark", "nowhere.yaml"], "There is no file nowhere.yaml"),
        (["experiment", "show", "nowhere"], "There is no experiment in nowhere"),
        (["experiment", "export", "nowhere"], "There is no experiment in nowhere"),
    ],
)
def test_mistakes_get_one_sentence(arguments, sentence):
    done = run(*arguments)
    assert done.code == 2
    assert sentence in done.err
    assert not done.out


def test_a_bad_plan_leaves_nothing_behind(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("name: p\ndata: [one]\nmethods: {Gini: ginni}\n")
    done = run("benchmark", plan, "--data", tmp_path, "-o", tmp_path / "out")
    assert done.code == 2
    assert "did you mean 'gini" in done.err
    assert not (tmp_path / "out").exists()


def test_methods_are_listed():
    done = run("experiment", "methods")
    assert done.code == 0
    assert "metaap-forest" in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert "gini" in {method["name"] for method in json.loads(run("experiment", "methods", "--json").out)["methods"]}


# --- compare ------------------------------------------------------------------------------------------------------


def test_compare_prints_a_leaderboard_and_a_recommendation(tmp_path):
    history = write_cases(tmp_path / "history.csv")
    names = "metaap-paper,gini-rate,logistic-l2"
    command = (
        "compare",
        history,
        "--label",
        "fraud",
        "--id",
        "case_id",
        "--methods",
        names,
        "--folds",
        3,
        "-o",
        tmp_path / "out",
    )
    done = run(*command)
    assert done.code == 0, done.err
    assert done.out.startswith("history.csv: 300 cases")
    assert "3 methods compared by 3-fold cross-validation" in done.out
    assert "Leaderboard" in done.out
    assert "\nRecommendation\nTake " in done.out
    *text, heading, command_line = done.out.splitlines()
    assert max(map(len, text)) <= 100
    assert heading == "Next:"
    board = pl.read_csv(tmp_path / "out" / "leaderboard.csv")
    assert board["average_precision"].is_sorted(descending=True)
    assert (tmp_path / "out" / "leaderboard.png").read_bytes()[:4] == b"\x89PNG"
    result = json.loads(run(*command, "--json", "--budget", "5%", "--jobs", 1).out)
    assert [entry["method"] for entry in result["leaderboard"]] == board["method"].to_list()
    assert command_line.startswith(f"  toprank fit {history} --label fraud --id case_id --model ")
    assert result["next"].replace("--budget 5% ", "") == command_line.strip()
    assert result["recommended"] in [entry["name"] for entry in result["leaderboard"]]
    assert result["judged_by"] == "3-fold cross-validation"


def test_compare_judges_by_a_test_file(tmp_path, undrawn):
    history, later = write_cases(tmp_path / "history.csv"), tmp_path / "later.csv"
    table = pl.read_csv(history)
    table.sample(120, seed=1).select(*reversed(table.columns)).write_csv(later)
    common = ("compare", history, "--label", "fraud", "--id", "case_id", "--methods", "tree,cart", "-o")
    common = (*common, tmp_path / "out")
    done = run(*common, "--test", later, "--jobs", 1)
    assert done.code == 0, done.err
    assert done.out.startswith("history.csv, judged on later.csv: 120 cases")
    assert "2 methods compared by the cases of later.csv" in done.out
    result = json.loads(run(*common, "--test", later, "--jobs", 1, "--json").out)
    assert (result["n_cases"], result["n_splits"]) == (120, 1)
    refused = run(*common, "--test", later, "--folds", 3)
    assert (refused.code, refused.out) == (2, "")
    assert "--test replaces the folds" in refused.err
    table.filter(pl.col("fraud") == 0).write_csv(later)
    assert run(*common, "--test", later, "--jobs", 1).code == 2
    table.drop("amount").write_csv(later)
    refused = run(*common, "--test", later, "--jobs", 1)
    assert (refused.code, "'amount'" in refused.err) == (2, True)


def test_models_that_are_not_tried_are_listed(capsys):
    others = not_tried(None)
    assert others == ["gamma-knn", "local-gamma-knn", "knn", "mlfp", "stacked"]
    assert all(find_method(name) for name in others)
    assert not_tried("all") == []
    _print_left_out({}, 2.5, others, Terminal())
    said = " ".join(capsys.readouterr().out.split())
    assert said == f"Left out not tried {', '.join(others)}: compare them with --methods {','.join(others)}"


def test_methods_without_time_are_listed_with_what_would_give_them_some(capsys):
    _print_left_out({"XGBoost": "not enough time", "CART": "not enough time: one split took 7 s"}, 2.5, [], Terminal())
    said = " ".join(capsys.readouterr().out.split())
    assert said == "Left out no time left XGBoost, CART: --minutes 2.5 was not enough; more fit in with --minutes 10"


@pytest.mark.parametrize(("behind", "words"), [
    ((0.1, -0.1, 0.0002), "SGBAP: it is level with the best"), ((0.02, 0.02, 0.02), "SGBAP: it is 2.0 points behind"),
])  # fmt: skip
def test_the_next_command_says_how_good_its_model_is(behind, words):
    box, own = (0.9, 0.9, 0.9), tuple(0.9 - each for each in behind)
    board = board_of(("lightgbm", box, {}), ("sgbap", own, {}), ("tree", (0.3, 0.3, 0.3), {}))
    entry, command = next_command(recommend(board).candidates, Path("past.csv"), {"--label": ["fraud"]}, None)
    assert command == "toprank fit past.csv --label fraud --model sgbap -o model.toprank"
    assert _instead(entry, board).startswith(f", with {words}")
    assert _instead(entry, board).endswith("no command fits LightGBM")
    assert _instead(board.recommended, board) == ""


def test_no_figure_is_a_negative_zero(capsys):
    board = board_of(("lightgbm", (0.9, 0.9, 0.9), {}), ("tree", (0.9, 0.9, 0.8999), {}))
    _print(board, "past.csv", None, 2.5, [], [], Terminal())
    said = capsys.readouterr().out
    assert " 0.0 level" in said
    assert "costs nothing against LightGBM" in said
    assert "-0.0" not in said


def test_what_was_left_out_is_said_first(tmp_path, monkeypatch, undrawn):
    history = write_cases(tmp_path / "history.csv")
    monkeypatch.setattr("toprank.experiment.registry.find_spec", lambda name: None if name == "interpret" else object())
    done = run("compare", history, "--label", "fraud", "--id", "case_id", "--folds", 3, "-o", tmp_path / "out",
               "--methods", "tree,ebm", "--jobs", 1)  # fmt: skip
    assert done.code == 0, done.err
    left_out, _, board = done.out.partition("\nLeaderboard\n")
    assert 'Left out\n  not installed  EBM: pip install "toprank[baselines]"' in left_out
    assert "EBM" not in board


def board_of(*entries):
    """Leaderboard of three splits with methods by name, average precision (of each split) and setting, best first."""
    rows = [
        {"status": "done", "n": 300, "n_positives": 60, "n_train": 200, "n_test": 100, "split": str(i), "method": name,
         "error": None, "average_precision": value + i / 1000, "precision_at:0.1": value, "size": 5.0,
         "size_unit": "leaves", "seconds_fit": 1.0, "setting": json.dumps(setting)}
        for name, values, setting in entries for i, value in enumerate(np.broadcast_to(values, 3).tolist())
    ]  # fmt: skip
    return Leaderboard.from_results(pl.DataFrame(rows), 0.1, [name for name, _, _ in entries])


def candidates(*entries):
    return recommend(board_of(*entries)).candidates


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("metaap", {"max_depth": 1, "leaf_depth": 3}),
        ("metaap-paper", {"depth": 2}),
        ("treerank-pruned", {"leaf_depth": 2}),
        ("tree", {"max_depth": 2}),
        ("gini-rate", {"max_depth": 2}),
        ("cost-curve", {"depths": [1], "alphas": [1.0]}),
    ],
)
def test_the_next_command_fits_the_advised_model(tmp_path, monkeypatch, name, setting):
    monkeypatch.chdir(tmp_path)
    table = write_cases(Path("past cases.csv"))
    columns = {"--label": ["fraud"], "--id": ["case_id"], "--drop": ["age", "staff"], "--positive": None}
    entry, command = next_command(candidates((name, 0.9, setting), ("cart", 0.5, {})), table, columns, "10%")
    assert entry is not None
    assert entry.name == name
    assert command.startswith(f"toprank {'curve' if name == 'cost-curve' else 'fit'} 'past cases.csv' --label fraud ")
    done = run(*shlex.split(command)[1:])
    assert done.code == 0, done.err
    fitted = toprank.load("curve.toprank" if name == "cost-curve" else "model.toprank")
    own = ("n_jobs", "budget", "pos_label", "random_state", "cv")
    expected = find_method(name).make(**setting)
    assert fitted.cv == setting.get("cv", type(expected)().cv)  # a comparison has no use for rates, their reader has
    assert type(fitted) is type(expected)
    assert [parameter for parameter, value in expected.get_params(deep=False).items()
            if parameter not in own and value != getattr(fitted, parameter)] == []  # fmt: skip
    assert [column.name for column in fitted.columns_] == ["sector", "amount"]
    assert fitted.budget == 0.1


def test_the_next_command_where_the_command_line_does_not_fit_the_advised_model():
    columns = {"--label": ["fraud"]}
    advised = candidates(("cart", 0.9, {}), ("metaap-forest", 0.8, {}), ("ap-tree", 0.7, {}))
    entry, command = next_command(advised, Path("past.csv"), columns, None)
    assert entry.name == "ap-tree"
    assert command == "toprank fit past.csv --label fraud --model tree --set criterion=ap -o model.toprank"
    assert next_command(candidates(("cart", 0.9, {}), ("plain-knn", 0.8, {})), Path("past.csv"), columns, None) == (
        None,
        None,
    )


def test_the_next_command_says_why_it_is_about_another_model(tmp_path, undrawn):
    history = write_cases(tmp_path / "history.csv")
    common = ("compare", history, "--label", "fraud", "--id", "case_id", "--folds", 2, "-o", tmp_path / "out")
    done = run(*common, "--methods", "cart,cost-tree", "--jobs", 1)
    assert done.code == 0, done.err
    assert done.out.startswith("history.csv: 300 cases")
    first = pl.read_csv(tmp_path / "out" / "leaderboard.csv")["name"][0]
    line = done.out.splitlines()[-2]
    if first == "cart":
        assert re.fullmatch(r"Next, with CART with costs: it is .* the best, and no command fits CART:", line)
    else:
        assert line == "Next:"
    assert "Next" not in run(*common, "--methods", "cart,plain-knn", "--jobs", 1).out
    assert "Next" not in run(*common, "--methods", "cost-tree", "--jobs", 1, "--quiet").out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--methods", "metap"], "did you mean 'metaap"),
        (["--methods", ","], "--methods needs names"),
        (["--folds", "60"], "cases of the rarer outcome"),
        (["--label", "frod"], "'frod'"),
        (["-o", "nowhere/out"], "does not exist"),
    ],
)
def test_compare_with_options_that_make_no_sense(tmp_path, options, sentence):
    history = write_cases(tmp_path / "history.csv")
    label = [] if "--label" in options else ["--label", "fraud"]
    out = [] if "-o" in options else ["-o", tmp_path / "out"]
    done = run("compare", history, *label, *out, *options)
    assert done.code == 2
    assert sentence in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("command", "package"), [
    ("compare", "pandas"), ("benchmark", "pandas"), ("benchmark", "yaml"), ("experiment resume", "pandas"),
])  # fmt: skip
def test_a_missing_package_is_said_with_the_extra_that_has_it(plan, tmp_path, monkeypatch, command, package):
    (tmp_path / "trials.sqlite").touch()
    arguments = {
        "compare": [write_cases(tmp_path / "cases.csv"), "--label", "fraud"],
        "benchmark": [plan, "--data", tmp_path, "-o", tmp_path / "out"],
        "experiment resume": [tmp_path],
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails
    done = run(*command.split(), *arguments[command])
    assert (done.code, done.out) == (2, "")
    needs = f"toprank {command} needs the package '{package}', which is not installed."
    assert done.err == f'{needs} Hint: pip install "toprank[experiment]".\n'
    assert not (tmp_path / "out").exists()
