"""`toprank curve`: the points, the choice, what it writes, what other commands make of it, and what it refuses."""

import json
import sys

import numpy as np
import polars as pl
import pytest

from cli_files import case_lines, run, write_cases
from toprank import CostOptimalCurve, RankingTree, TAOTree, load
from toprank.cli.choice import POINTS_SHOWN, changes_list, changes_summary, points_shown
from toprank.cli.columns import check_outcomes
from toprank.cli.terminal import Terminal
from toprank.errors import InputError
from toprank.explain import Condition, Rule, Way
from toprank.metrics import OperatingPoints
from toprank.rankers.curve.changes import LeafRuleChange, leaf_rule_changes, positive_rules
from toprank.tree.columns import Column
from toprank.workflow import curve_table

COLUMNS = ("--label", "fraud", "--id", "case_id")
SMALL = ("--set", "depths=[2]", "--set", "alphas=[1]", "--set", "cv=2", "--split", "axis", "--jobs", 1)
FAST = ("--set", "depths=[1]", "--set", "alphas=[1]", "--set", "cv=0", "--set", "cost_factor=9", "--split", "axis")


def lines_with_noise():
    """Rows of the small table, every seventh with the other outcome, so that the trees of the costs differ."""
    return [line[:-1] + str(1 - int(line[-1])) if i % 7 == 0 else line for i, line in enumerate(case_lines())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curve")
    write_cases(folder / "history.csv", lines=lines_with_noise())
    done = run("curve", folder / "history.csv", *COLUMNS, *SMALL, "-o", folder / "curve.toprank")
    assert (done.code, done.err) == (0, "")
    (folder / "printed.txt").write_text(done.out, encoding="utf-8")
    table = pl.read_csv(folder / "history.csv")
    table.drop("age").write_csv(folder / "short.csv")
    table.with_columns(age=pl.lit("old")).write_csv(folder / "words.csv")
    table.with_columns(fraud=0).write_csv(folder / "one.csv")
    table.with_columns(fraud=2 - pl.col("fraud")).write_csv(folder / "strange.csv")
    RankingTree(max_depth=1, cv=0).fit(table.select("age"), table["fraud"]).save(folder / "model.toprank")
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """The same curve by the library."""
    table = pl.read_csv(folder / "history.csv").drop("case_id")
    model = CostOptimalCurve(TAOTree(split="axis"), depths=[2], alphas=[1], cv=2, random_state=0, pos_label=1)
    return model.fit(table.drop("fraud"), table["fraud"].to_numpy())


def test_without_a_target_the_points_the_base_tree_and_how_to_choose(folder, fitted):
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    lines = printed.splitlines()
    assert lines[0] == "Cost-optimal curve of history.csv"
    size = f"{len(fitted.path_)}, {sum(point.is_between for point in fitted.path_)} of them between two costs"
    assert lines[1] == f"  trees         {size}, of depth 2 at most; weights cost 1 (alpha)"
    assert "  trained on    300 cases, " in printed
    assert f"  area          {fitted.held_out_points_.hull_area:.3f} under the hull" in printed
    assert "  point     cost  leaves  alerts  found  false alarms  hit rate  share found" in lines
    assert sum(line.endswith("base tree") for line in lines) == 1
    words = " ".join(printed.split())
    assert "out of fold: 300 cases, 60 positive, each judged by trees that did not see it" in words
    assert "Alerts = found + false alarms." in words
    assert f"Rules of the base tree (point {fitted.base_point_}, which weights both classes equally)" in printed
    assert "Chosen" not in printed
    assert "Choose a tree with one of --k 200, --max-fpr 5%" in printed
    assert printed.replace("\n", "").endswith(f"toprank curve {folder / 'curve.toprank'} --k 200")
    assert max(len(line) for line in lines if "curve.toprank" not in line) <= 100


def test_the_file_holds_what_the_library_learns(folder, fitted):
    saved = load(folder / "curve.toprank")
    assert saved.points_.to_dict() == fitted.points_.to_dict()
    assert saved.held_out_points_.to_dict() == fitted.held_out_points_.to_dict()
    assert saved.selected_ is None
    assert (saved.random_state, saved.verbose, saved.base.split) == (0, 0, "axis")


@pytest.mark.parametrize(
    ("options", "target", "why"),
    [
        (("--k", "20"), {"k": 20}, "as ranked by the curve"),
        (("--k", "5%"), {"k": 0.05}, "as ranked by the curve"),
        (("--k", "40"), {"k": 40}, "finds the most positives"),
        (("--max-fpr", "5%"), {"max_fpr": 0.05}, "at most this many false alarms"),
        (("--min-recall", "0.5"), {"min_recall": 0.5}, "that find this many"),
        (("--cost-ratio", "0.5", "--max-leaves", 3), {"cost_ratio": 0.5, "max_leaves": 3}, "cost least in total"),
        (("--max-leaves", 2), {"max_leaves": 2}, "this small"),
    ],
)
def test_a_saved_curve_chooses_as_the_library_does(folder, fitted, options, target, why):
    expected = fitted.select(**target)
    done = run("curve", folder / "curve.toprank", *options)
    assert (done.code, done.err) == (0, "")
    assert f"\nChosen: {expected.target}\n  tree          point {expected.position}, " in done.out
    reason = "cut           the top" if expected.cut else f"because       {'its' if 'cost_ratio' in target else 'it'}"
    assert f"  {reason} " in done.out
    assert why in " ".join(done.out.split())
    assert "Keep the choice with -o" in done.out
    held_out, at = fitted.held_out_points_, expected.position
    in_table = held_out.false_positives[at] + held_out.positives - held_out.false_negatives[at]
    said = f"\n  in the table  {in_table:,.0f} alerts, those of the trees of the folds"
    assert (said in done.out) == (round(in_table) != round(expected.alerts.value))
    marks = [line for line in done.out.splitlines() if line.endswith("  chosen")]
    assert [int(line.split()[0]) for line in marks] == [expected.position]
    if target not in ({"k": 20}, {"cost_ratio": 0.5, "max_leaves": 3}):
        return  # the same dictionary is printed, whatever the target
    found = json.loads(run("curve", folder / "curve.toprank", *options, "--json").out)
    assert (found["chosen"]["point"], found["chosen"]["target"]) == (expected.position, expected.target)
    assert found["chosen"]["recall"]["value"] == expected.recall.value
    assert [rule["rule"] for rule in found["rules"]] == [rule.text() for rule in positive_rules(expected.tree)]


def test_the_rules_are_those_that_call_cases_positive(fitted):
    table = pl.DataFrame([line.split(",") for line in lines_with_noise()], orient="row",
                         schema=["case_id", "sector", "amount", "age", "staff", "fraud"])  # fmt: skip
    X = table.select("sector", *(pl.col(name).cast(pl.Float64, strict=False) for name in ("amount", "age", "staff")))
    for point in fitted.path_:
        rules = positive_rules(point.tree)
        is_called = point.tree.predict(X) == 1
        assert sum(rule.n for rule in rules) == is_called.sum()
        hits = table.filter(pl.Series(is_called))["fraud"].cast(int).sum()
        assert sum(rule.positives for rule in rules) == hits


def test_rows_of_the_table_agree_with_the_selection(fitted):
    rows = [row.to_dict() for row in curve_table(fitted).rows]
    for ratio in (0.1, 0.5, 2.0):
        chosen = fitted.select(cost_ratio=ratio)
        row = rows[chosen.position]
        assert row["recall"] == pytest.approx(chosen.recall.value)
        assert row["false_positive_rate"] == pytest.approx(chosen.false_positive_rate.value)
        assert row["alerts"] == pytest.approx(chosen.alerts.value)
        for counts in (row, row["training"]):
            assert counts["alerts"] == counts["found"] + counts["false_alarms"]
        assert row["training"]["alerts"] == fitted.points_.alerts[chosen.position]
        assert row["leaves"] == chosen.tree.n_leaves_
        assert row["is_dominated"] == fitted.points_.is_dominated[chosen.position]
        assert row["held_out_is_dominated"] == fitted.held_out_points_.is_dominated[chosen.position]
        if row["precision"] is not None:
            assert row["precision"] == pytest.approx(chosen.precision.value)


def test_long_paths_lose_beaten_and_repeated_points_first():
    alarms, missed = np.arange(30)[::-1], np.arange(30)
    points = OperatingPoints(np.arange(1, 31), alarms, missed, positives=40, negatives=40)
    shown = points_shown(points, {7: "base tree", 13: "chosen"})
    assert len(shown) == POINTS_SHOWN
    assert {0, 7, 13, 29} <= set(shown)
    assert shown == sorted(shown)
    alarms[1:20], missed[1:20] = 29, 5  # one that point 0 beats, nineteen times
    beaten = OperatingPoints(np.arange(1, 31), alarms, missed, positives=40, negatives=40)
    assert points_shown(beaten, {7: "base tree"}) == [0, 7, *range(20, 30)]
    alarms[:20], missed[:20] = 29, 0
    repeated = OperatingPoints(np.arange(1, 31), alarms, missed, positives=40, negatives=40)
    assert points_shown(repeated, {7: "base tree"}) == [7, *range(20, 30)]
    assert points_shown(OperatingPoints([1] * 15, [1] * 15, [1] * 15, 2, 2), {}) == list(range(15))


def test_changes_between_two_budgets(folder, fitted):
    few, many = fitted.select(k=52), fitted.select(k=128)
    changes = leaf_rule_changes(few.tree, many.tree)
    assert [change.to_dict()["rule"] for change in changes] == fitted.diff(few, many)["rule"].to_list()
    done = run("curve", folder / "curve.toprank", "--k", 128, "--from-k", 52)
    assert (done.code, done.err) == (0, "")
    title = f"What changes from the tree for {few.target} (point {few.position}), with figures on the training cases"
    words = " ".join(done.out.split())  # the title is longer than a line
    assert f"{title} {changes_summary(changes)} {changes[0].kind}: " in words
    assert f"  {changes_summary(changes)}\n\n{changes[0].kind}: " in done.out
    assert sum(line.endswith("compared with") for line in done.out.splitlines()) == 1
    assert [change.kind for change in changes] == ["dropped", "added", "changed"]
    found = json.loads(run("curve", folder / "curve.toprank", "--k", 128, "--from-k", 52, "--json").out)
    assert [change["rule"] for change in found["changes"]] == [change.rule.text() for change in changes]
    assert found["compared_with"]["point"] == few.position
    done = run("curve", folder / "curve.toprank", "--k", 128, "--from-k", 128)
    assert f"(point {many.position})\n  Nothing: it is the chosen tree.\n" in done.out


def test_changes_in_words(capsys):
    def above(name, low):
        return Condition("abcd".index(name), Column(name), low=float(low), missing=False)

    def rule(n, positives, *ways):
        figures = {"coverage": 1.0, "precision": 1.0, "lift": 1.0, "training_rate": positives / n, "score": 1.0}
        return Rule(leaf=1, ways=tuple(map(Way, ways)), n=n, positives=positives, **figures)

    is_x = Condition(2, Column("c", ("x", "y")), codes=(0,), missing=False)
    two_ways = (above("b", 1), is_x), (above("b", 2), above("d", 3))
    changes = [
        LeafRuleChange(rule(4.0, 2.0, (above("a", 1),)), None),
        LeafRuleChange(None, rule(5.0, 4.0, *two_ways)),
        LeafRuleChange(rule(4.0, 2.0, (above("a", 2),)), rule(5.0, 4.0, (above("a", 3),))),
    ]
    assert changes[1].rule.text() == "(b > 1 and c is x) or (b > 2 and d > 3)"
    Terminal().show(changes_list(changes))
    assert capsys.readouterr().out.splitlines() == [
        "dropped: 2 of 4 cases positive, 50.0 %",
        "     a > 1",
        "",
        "added: 4 of 5 cases positive, 80.0 %",
        "     b > 1 and c is x",
        "     or b > 2 and d > 3",
        "",
        "changed: 4 of 5 cases positive, 80.0 %; previously 2 of 4 cases positive, 50.0 %",
        "     was a > 2",
        "     now a > 3",
    ]
    assert changes_summary([*changes, changes[0]]) == "Rules for positives: 2 dropped, 1 added, 1 changed."
    assert changes_summary([]) == "Neither tree flags any case."


def test_the_choice_is_kept_and_other_commands_know_it(folder, tmp_path):
    out = tmp_path / "chosen.toprank"
    done = run("curve", folder / "curve.toprank", "--min-recall", "50%", "-o", out)
    assert (done.code, done.err) == (0, "")
    saved = load(out)
    following = f"toprank topk {out} NEW_CASES.csv --chosen -o alerts.csv --k 2% instead of --chosen takes any number"
    assert f"s. Next: {following} of cases from the ranking of the curve." in " ".join(done.out.split())

    again = run("curve", out)
    assert f"Chosen: {saved.selected_.target}" in again.out
    assert "because" not in again.out
    assert f" Next: {following}" in " ".join(again.out.split())
    assert "Keep the choice" not in again.out
    other = run("curve", out, "--k", 40)  # not in the file: to be written first
    assert f" Keep the choice with -o {out}, then: {following}" in " ".join(other.out.split())

    told = run("describe", out)
    assert (told.code, told.err) == (0, "")
    size = f"{saved.n_leaves_} leaves, {saved.n_leaves_ - 1} condition"
    assert f"{len(saved.path_)} trees; the chosen one has {size}" in told.out
    assert "base=TAOTree(split='axis')," in told.out
    assert f"Chosen: {saved.selected_.target}\n  tree          point {saved.selected_.position}, " in told.out
    assert "trees; the base one has" in run("describe", folder / "curve.toprank").out
    assert json.loads(run("describe", out, "--json").out)["chosen"]["point"] == saved.selected_.position

    judged = run("evaluate", out, folder / "history.csv", "--label", "fraud", "--json")
    table = pl.read_csv(folder / "history.csv")
    called, is_positive = saved.predict(table.drop("case_id", "fraud")) == 1, table["fraud"].to_numpy() == 1
    chosen = json.loads(judged.out)["chosen"]
    assert (chosen["alerts"], chosen["found"]) == (called.sum(), (called & is_positive).sum())
    assert chosen["recall"]["value"] == pytest.approx(called[is_positive].mean())
    assert chosen["false_positive_rate"]["value"] == pytest.approx(called[~is_positive].mean())
    printed = run("evaluate", out, folder / "history.csv", "--label", "fraud").out
    assert f"The chosen tree ({saved.selected_.target})\n  alerts        {called.sum()} of 300 cases; " in printed
    assert "chosen" not in json.loads(
        run("evaluate", folder / "curve.toprank", folder / "history.csv", "--label", "fraud", "--json").out
    )
    top = run("topk", out, folder / "history.csv", "--k", 5, "--id", "case_id")
    assert (top.code, top.err) == (0, "")


def test_choosing_again_sets_the_budget(folder, tmp_path):
    out = tmp_path / "again.toprank"
    for k, n_listed in ((20, 20), (12, 12), ("5%", 15)):
        assert run("curve", out if out.exists() else folder / "curve.toprank", "--k", k, "-o", out).code == 0
        top = json.loads(run("topk", out, folder / "history.csv", "--json").out)
        assert top["k"] == n_listed
    assert run("curve", out, "--max-fpr", "5%", "-o", out).code == 0  # says nothing about the budget
    assert load(out).budget == 0.05


def test_a_target_at_once_with_a_picture(folder, tmp_path):
    out, picture = tmp_path / "curve.toprank", tmp_path / "curve.svg"
    done = run("curve", folder / "history.csv", *COLUMNS, *FAST, "--k", 150, "-o", out, "--plot", picture)
    assert (done.code, done.err) == (0, "")
    assert "on the training data, which is optimistic: 300 cases" in " ".join(done.out.split())
    assert " --chosen --id case_id -o alerts.csv" in " ".join(done.out.split())
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    saved = load(out)
    assert (saved.selected_.target, saved.budget) == ("at most 150 alerts among 300 cases", 150)
    quiet = run("curve", folder / "history.csv", *COLUMNS, *FAST, "-o", out, "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_other_cases_to_judge_by(folder, tmp_path):
    later = pl.read_csv(folder / "history.csv").sample(120, seed=1)
    later.with_columns(pl.when(pl.col("fraud") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("fraud")
    ).select("fraud", *later.columns[:-1]).write_csv(tmp_path / "later.csv")  # fmt: skip
    done = run("curve", folder / "history.csv", *COLUMNS, *FAST, "--validation", tmp_path / "later.csv", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["judged_by"] == "validation data"
    table = pl.read_csv(folder / "history.csv").drop("case_id")
    base = TAOTree(split="axis", cv=0)
    model = CostOptimalCurve(base, depths=[1], alphas=[1], cv=0, cost_factor=9, random_state=0)
    model.fit(table.drop("fraud"), table["fraud"].to_numpy())
    points = model.points(later.drop("case_id", "fraud"), later["fraud"].to_numpy())
    assert [row["recall"] for row in found["points"]] == pytest.approx(points.true_positive_rate)
    assert [row["false_positive_rate"] for row in found["points"]] == pytest.approx(points.false_positive_rate)


def test_dominated_points_are_told_by_the_same_names_as_in_the_library(folder, fitted):
    found = json.loads(run("curve", folder / "curve.toprank", "--json").out)["points"]
    for name in ("is_dominated", "held_out_is_dominated"):
        assert [row[name] for row in found] == [getattr(point, name) for point in fitted.path_]
    done = run("curve", folder / "history.csv", *COLUMNS, *FAST, "--json")
    assert {row["held_out_is_dominated"] for row in json.loads(done.out)["points"]} == {None}


def test_one_depth_and_one_alpha_need_no_brackets(folder):
    how = ("--set", "depths=1", "--set", "alphas=3", "--set", "cv=0", "--set", "cost_factor=9", "--split", "axis")
    done = run("curve", folder / "history.csv", *COLUMNS, *how)
    assert (done.code, done.err) == (0, "")
    assert "of depth 1 at most; weights cost 3 (alpha)" in done.out


def test_a_target_that_no_tree_fulfils_does_not_cost_the_work(folder, tmp_path):
    out = tmp_path / "my curve.toprank"
    done = run("curve", folder / "history.csv", *COLUMNS, *SMALL, "--max-fpr", "0.01%", "-o", out)
    assert (done.code, done.out) == (2, "")
    told = done.err.replace("\n", "")
    sentence, _, hint = told.partition(" Hint: ")
    assert "(at most 0.01 % of the negatives flagged): the lowest share" in sentence
    assert hint == f"relax the target; `toprank curve '{out}'` lists the trees and chooses without refitting."
    assert load(out).selected_ is None
    assert f"`toprank curve '{out}'` lists all trees" in " ".join(run("describe", out).out.split())
    done = run("curve", folder / "curve.toprank", "--max-fpr", "0.01%", "-o", tmp_path / "none.toprank")
    assert done.err.replace("\n", "") == f"{sentence} Hint: relax the target; leave it out to list the trees."
    assert not (tmp_path / "none.toprank").exists()


def test_a_picture_over_alerts(folder, tmp_path):
    path = tmp_path / "curve.svg"
    for options, title in (
        (["--plot-x", "alerts"], "Alerts among 300 cases"),
        (["--k", "40"], "Alerts among 300 cases"),
        ([], "False positive rate"),
        (["--k", "40", "--plot-x", "false-alarms"], "False positive rate"),
    ):
        assert run("curve", folder / "curve.toprank", *options, "--plot", path).code == 0
        assert title in path.read_text(encoding="utf-8")
    done = run("curve", folder / "curve.toprank", "--plot-x", "alert", "--plot", path)
    assert (done.code, "did you mean 'alerts'" in done.err) == (2, True)
    done = run("curve", folder / "curve.toprank", "--plot-x", "alerts")
    assert (done.code, "--plot FILE" in done.err) == (2, True)


def test_trees_that_call_everything_or_nothing_positive(folder, tmp_path):
    out = tmp_path / "curve.toprank"
    done = run("curve", folder / "history.csv", *COLUMNS, *FAST, "--min-recall", "100%", "-o", out)
    assert "1. training rate 20 %, lift 1x; in training 60 of 300 positive\n     all cases\n" in done.out
    done = run("curve", out, "--cost-ratio", 1000, "-o", out)  # a curve may be replaced by itself
    assert "  alerts        0 (0 to 4) among as many cases as in training\n" in done.out
    assert "  None: this tree flags no case.\n" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.endswith("  chosen"))
    assert row[3:7] == ["0", "0", "0", "-"]  # alerts, found, false alarms, hit rate
    judged = run("evaluate", out, folder / "history.csv", "--label", "fraud").out
    assert "  alerts        0 of 300 cases\n  found         0 positives, 0.00 % (0.00 % to 6.02 %) of them" in judged


def test_a_copy_of_a_saved_curve_is_written_without_a_target(folder, tmp_path):
    out = tmp_path / "copy.toprank"
    done = run("curve", folder / "curve.toprank", "-o", out, "--json")
    assert (done.code, json.loads(done.out)["model"]) == (0, str(out))
    assert load(out).points_.to_dict() == load(folder / "curve.toprank").points_.to_dict()


def test_figures_of_rules_are_said_to_be_of_the_training_cases(folder):
    for command in (("curve", folder / "curve.toprank", "--k", 40), ("curve", folder / "curve.toprank"),
                    ("describe", folder / "curve.toprank")):  # fmt: skip
        _, _, heading = run(*command).out.partition("\nRules of the ")
        assert "for positives, with figures on the training cases 1." in " ".join(heading.split())


def test_figures_of_the_training_data_are_said_to_be_optimistic(folder):
    done = run("curve", folder / "history.csv", *COLUMNS, *FAST, "--k", 150)
    words = " ".join(done.out.split())
    assert "no better than chance; on the training data, which is optimistic" in words
    assert "judged by the training data, which is optimistic: use `toprank evaluate`" in words
    kept_apart = " ".join(run("curve", folder / "curve.toprank", "--k", 40).out.split())
    assert "judged by cross-validation; in brackets" in kept_apart
    assert "optimistic" not in kept_apart


@pytest.mark.parametrize(
    ("found", "trained", "is_fine"),
    [
        (["no", "yes"], (0, 1), True),
        (["No", "Yes"], ("no", "yes"), True),
        ([0, 1], (-1, 1), True),
        (["1", "0"], (0, 1), True),
        ([True, False], ("False", "True"), True),
        (["no", "yes"], (1, 0), False),  # zeros are looked for: what yes means is not clear
        (["fraud", "open"], ("fine", "fraud"), False),
        (["Fine", "fraud"], ("fine", "fraud"), False),
        (["no", "fraud"], ("fine", "fraud"), False),
    ],
)
def test_outcomes_must_be_those_of_the_training(found, trained, is_fine):
    if is_fine:
        check_outcomes(found, trained, "fraud", "later.csv")
        return
    with pytest.raises(InputError, match=r"'fraud' of later.csv holds '.*', but the outcomes in training were .* Hint"):
        check_outcomes(found, trained, "fraud", "later.csv")


BAD = [
    (["history.csv"], "Fitting a curve on history.csv needs the outcome column. Hint: name it with --label"),
    (["histroy.csv", "--label", "fraud"], "There is no file histroy.csv. Hint: did you mean 'history.csv'"),
    (["history.csv", "--label", "fruad"], "The label column 'fruad' is missing .* did you mean 'fraud'"),
    (["curve.toprank", "--k", "5", "--max-fpr", "0.1"], "--k and --max-fpr ask for different trees; expected one"),
    (["curve.toprank", "--k", "0"], "--k must be a number of cases such as 500 or a share .* got '0'"),
    (["curve.toprank", "--max-fpr", "5"], "--max-fpr must be a share from 0 to 1 such as 0.05 or 5%, got '5'"),
    (["curve.toprank", "--min-recall", "most"], "--min-recall must be a share from 0 to 1 .* got 'most'"),
    (["curve.toprank", "--cost-ratio", "-1"], "--cost-ratio must be a number of at least 0, got -1"),
    (["curve.toprank", "--max-leaves", "0"], "Invalid value for '--max-leaves'"),
    (["curve.toprank", "--from-k", "5"], "--from-k compares two trees .* Hint: choose the other with --k"),
    (["curve.toprank", "--k", "5", "--from-k", "x"], "--from-k must be a number of cases"),
    (["curve.toprank", "--label", "fraud"], "--label needs past cases, but curve.toprank holds a fitted curve"),
    (["curve.toprank", "--set", "cv=3"], "--set needs past cases"),
    (["curve.toprank", "--plot", "curve.gif"], "curve.gif has an ending that is not supported, .* .png, .svg, .pdf"),
    (["curve.png", "--label", "fraud"], "curve.png has an ending .* expected one of .csv, .* .parquet, .toprank"),
    (["missing.toprank"], "There is no model file missing.toprank"),
    (["model.toprank"], "model.toprank holds a model of class RankingTree, expected CostOptimalCurve"),
    (["history.csv", "--label", "fraud", "-o", "history.csv"], "history.csv is also an input"),
    (["history.csv", "--label", "fraud", "--split", "axes"], "--split must be oblique or axis, .* mean 'axis'"),
    (["history.csv", "--label", "fraud", "--set", "alphas=few"], "alphas of a .* must be numbers .* got 'few'. Hint"),
    (["history.csv", "--label", "fraud", "--set", "alpha=3"], "no parameter 'alpha' .*Hint: did you mean 'alphas'"),
    (["history.csv", "--label", "fraud", "--jobs", "1", "--set", "n_jobs=2"], "--set n_jobs duplicates --jobs"),
    (["history.csv", "--label", "fraud", "--set", "categorical_features=x"], "categorical_features names 'x'"),
    (["history.csv", "--label", "fraud", "--validation", "short.csv"], "Column 'age' was used to train .* short.csv"),
    (["history.csv", "--label", "fraud", "--validation", "words.csv"], "'age' held numbers in training but holds text"),
    (["history.csv", "--label", "fraud", "--validation", "one.csv"], "all 300 rows hold 0"),
    (
        ["history.csv", "--label", "fraud", "--validation", "strange.csv"],
        "'fraud' of strange.csv holds 2, but the outcomes in training were 0 and 1. Hint",
    ),
]


@pytest.mark.parametrize(("args", "message"), BAD)
def test_what_cannot_be_done_gets_a_sentence(folder, monkeypatch, args, message):
    monkeypatch.chdir(folder)
    (folder / "curve.png").write_bytes(b"no table")
    done = run("curve", *args)
    assert (done.code, done.out) == (2, "")
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(done.err)
    assert len(done.err.splitlines()) == 1


def test_a_missing_matplotlib_is_said_before_the_work_begins(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("curve", folder / "history.csv", *COLUMNS, "--plot", folder / "curve.png")
    assert (done.code, done.out) == (2, "")
    assert "toprank curve --plot needs the package 'matplotlib'" in done.err
    assert 'Hint: pip install "toprank[plots]".' in done.err
