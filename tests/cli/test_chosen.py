"""`toprank topk --chosen`: what the chosen tree of a curve calls positive, with its reasons, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest

from cli_files import case_lines, fit_cases, run, write_cases
from toprank import MetaAP, load
from toprank.rankers.curve.changes import positive_rules

FAST = (
    "--set",
    "depths=[2]",
    "--set",
    "alphas=[1]",
    "--set",
    "cv=2",
    "--set",
    "cost_factor=2.5",
    "--set",
    "max_point_gap=none",
    "--split",
    "axis",
    "--jobs",
    1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table in which every seventh row has the other outcome, so that the trees of the costs differ."""
    folder = tmp_path_factory.mktemp("chosen")
    fit_cases(folder)
    lines = [line[:-1] + str(1 - int(line[-1])) if i % 7 == 0 else line for i, line in enumerate(case_lines())]
    history = write_cases(folder / "history.csv", lines=lines)
    done = run("curve", history, "--label", "fraud", "--id", "case_id", *FAST, "-o", folder / "curve.toprank")
    assert (done.code, done.err) == (0, "")
    return folder


@pytest.fixture(scope="module")
def chosen(folder):
    """A file of the curve with a choice, and the model in it."""
    path = folder / "chosen.toprank"
    assert run("curve", folder / "curve.toprank", "--max-fpr", "30%", "-o", path).code == 0
    return path, load(path)


@pytest.mark.filterwarnings("ignore:Column 'sector' holds 1 category:UserWarning")
def test_topk_lists_what_the_chosen_tree_calls_positive(folder, chosen, tmp_path):
    path, model = chosen
    table, out = pl.read_csv(folder / "history.csv").sample(250, seed=1), tmp_path / "alerts.csv"
    table.with_columns(sector=pl.col("sector").str.replace("transport", "mining")).write_csv(tmp_path / "new.csv")
    table = pl.read_csv(tmp_path / "new.csv")
    X = table.drop("case_id", "fraud")
    is_called = model.predict(X) == 1
    whole = model.top_k(X, len(X), reasons=2).filter(pl.col("row").is_in(np.flatnonzero(is_called)))
    tree = model.selected_.tree.top_k(X, len(X), reasons=2)
    assert 20 < is_called.sum() < 250

    common = ("topk", path, tmp_path / "new.csv", "--chosen", "--reasons", 2, "--id", "case_id")
    done = run(*common, "--keep", "fraud", "-o", out)
    assert done.code == 0
    assert done.err.startswith("Note: Column 'sector' holds 1 category in ")
    assert done.err.count("\n") == 1
    said = f"The {is_called.sum()} of 250 cases that the chosen tree flags"
    assert done.out.startswith(f"{said}; ")
    alerts = pl.read_csv(out)
    named = [name.replace("training_rate", "hit_rate") for name in tree.columns]  # the curve has rates for new cases
    assert alerts.columns == ["case_id", *named, "fraud"]
    assert alerts["rank"].to_list() == list(range(1, is_called.sum() + 1))
    for name in ("row", "score", "hit_rate", "lift"):
        assert alerts[name].to_list() == pytest.approx(whole[name].to_list())
    assert alerts["case_id"].to_list() == table["case_id"].gather(whole["row"]).to_list()
    names = ("leaf", "reason_1", "strength_1", "reason_2", "strength_2")
    why = dict(zip(tree["row"], tree[names].rows(), strict=True))
    found = alerts[names].with_columns(pl.col("reason_1", "reason_2").fill_null(""))
    assert found.rows() == [why[row] for row in alerts["row"]]
    assert set(alerts["leaf"]) <= {rule.leaf for rule in positive_rules(model.selected_.tree)}
    assert len(json.loads(run(*common, "--json").out)["alerts"]) == is_called.sum()
    assert f"{said}, the first 20:" in run(*common).out


def test_topk_keeps_to_the_first_alerts_of_a_chosen_tree(folder, tmp_path):
    path = tmp_path / "cut.toprank"
    assert run("curve", folder / "curve.toprank", "--k", 20, "-o", path).code == 0
    model = load(path)
    assert model.selected_.cut is not None
    X = pl.read_csv(folder / "history.csv").drop("case_id", "fraud")
    is_called = model.predict(X) == 1
    done = run("topk", path, folder / "history.csv", "--chosen", "--json")
    alerts = json.loads(done.out)["alerts"]
    assert sorted(alert["row"] for alert in alerts) == np.flatnonzero(is_called).tolist()
    assert 0 < len(alerts) <= 20 < (model.selected_.tree.predict(X) == 1).sum()
    assert min(alert["score"] for alert in alerts) >= model.selected_.cut.threshold
    printed = run("topk", path, folder / "history.csv", "--chosen").out
    assert f"The {len(alerts)} of 300 cases that the chosen tree flags, cut at the budget" in printed


def test_a_chosen_tree_that_calls_nothing_positive_lists_nothing(folder, chosen, tmp_path):
    (path, _), model, out = chosen, tmp_path / "none.toprank", tmp_path / "alerts.csv"
    assert run("curve", path, "--cost-ratio", 1000, "-o", model).code == 0
    common = ("topk", model, folder / "history.csv", "--chosen")
    assert run(*common).out == "The chosen tree flags none of 300 cases.\n"
    assert run(*common, "-o", out).out.startswith("The chosen tree flags none of 300 cases.\nWrote ")
    assert out.read_text(encoding="utf-8").startswith("rank,row,score,hit_rate,lift,leaf,reason_1,")
    assert json.loads(run(*common, "--json").out)["alerts"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["chosen.toprank", "--k", "5"],
            "--k and --chosen ask for different lists; expected one of them. Hint: --chosen lists all cases that "
            "the chosen tree flags, --k the first k of the ranking.",
        ),
        (
            ["model.toprank"],
            "--chosen needs a curve with a chosen tree, but model.toprank holds a model of class MetaAP, expected "
            "CostOptimalCurve. Hint: use a file written by `toprank curve`, or --k.",
        ),
        (
            ["curve.toprank"],
            "--chosen needs a curve with a chosen tree, but no tree of curve.toprank has been chosen. Hint: choose one "
            "with `toprank curve curve.toprank --k 200 -o curve.toprank`.",
        ),
    ],
)
def test_lists_that_cannot_be_made_get_a_sentence(folder, chosen, monkeypatch, args, message):
    monkeypatch.chdir(folder)
    model, *more = args
    done = run("topk", model, "history.csv", "--chosen", *more, "-o", "refused.csv")
    assert (done.code, done.out, done.err) == (2, "", f"{message}\n")
    assert not (folder / "refused.csv").exists()


def test_a_share_of_the_cases(folder):
    common = ("topk", folder / "model.toprank", folder / "history.csv", "--json")
    for text, k in (("2%", 6), ("0.1", 30), ("0.01%", 1)):
        assert json.loads(run(*common, "--k", text).out)["k"] == k
    done = run(*common, "--k", "few")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("--k must be a number of cases such as 500 or a share such as 0.02 or 2%, got 'few'.")


def test_a_model_that_was_learned_from_an_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = MetaAP(cv=0).fit(X, X[:, 0] > 1)
    model.save(tmp_path / "model.toprank")
    pl.DataFrame(X, schema=["x0", "x1"]).write_csv(tmp_path / "new.csv")
    done = run("topk", tmp_path / "model.toprank", tmp_path / "new.csv", "--k", 3, "--json")
    assert done.code == 0, done.err
    assert [alert["row"] for alert in json.loads(done.out)["alerts"]] == list(model.top_k(X, 3)["row"])
