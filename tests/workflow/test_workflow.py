"""The workflow in Python: what its functions return, and that the command line prints the same."""

import json

import numpy as np
import pytest

import toprank
from cli_files import fit_cases, run
from toprank import CostOptimalCurve, RankingTree, workflow
from toprank.datasets import make_audit
from toprank.errors import InputError
from toprank.experiment.leaderboard import BoardEntry, Leaderboard
from toprank.metrics import Interval, average_precision, gains_table, precision_at_k

FRAMES = ("pandas", "polars", "pyarrow")


@pytest.fixture(scope="module")
def audits():
    past, new = make_audit(1200, positive_rate=0.1, random_state=0).split()
    return past, new


@pytest.fixture(scope="module")
def tree(audits):
    return RankingTree(max_depth=3, budget=40, cv=0).fit(audits[0].X, audits[0].y)


@pytest.fixture(scope="module")
def curve(audits):
    return CostOptimalCurve(depths=[2], alphas=[1.0], cv=0, random_state=0).fit(audits[0].X, audits[0].y)


def plain(value):
    """What JSON makes of a value; it raises for anything that is not plain."""
    return json.loads(json.dumps(value))


# --- judging ------------------------------------------------------------------------------------------------------


def test_a_judgement_holds_what_the_metrics_say(audits, tree):
    new = audits[1]
    judgement = workflow.judge(tree, new.X, new.y, k=[10, 30], amount=np.arange(len(new.y)))
    score = tree.decision_function(new.X)
    assert judgement.average_precision.value == average_precision(new.y, score)
    assert [at.k for at in judgement.at_k] == [10, 30]
    assert judgement.at_k[1].precision == precision_at_k(new.y, score, 30)
    at = judgement.at_k[0]
    assert at.precision_worst <= at.precision <= at.precision_best
    depths = [4, 8, 20, 40]  # 1, 2, 5, 10 % of 400 cases
    expected = gains_table(new.y, score, depths=depths, amount=np.arange(len(new.y)))
    assert judgement.gains.to_dict() == {name: column.tolist() for name, column in expected.items()}
    assert plain(judgement.to_dict()) == judgement.to_dict()
    assert workflow.judge(tree, new.X, new.y).at_k[0].k == 40
    assert workflow.judge(tree, new.X, new.y, k=7).at_k[0].k == 7


def test_outcomes_are_read_in_the_labels_of_the_model(audits, tree):
    past, new = audits
    words = RankingTree(max_depth=3, cv=0, pos_label="caught").fit(past.X, np.where(past.y == 1, "caught", "none"))
    judgement = workflow.judge(words, new.X, np.where(new.y == 1, "caught", "none"), k=5)
    assert judgement.n_positives == new.y.sum()
    assert judgement.to_dict()["at_k"] == workflow.judge(tree, new.X, new.y, k=5).to_dict()["at_k"]
    with pytest.raises(InputError, match=r"judge found the label 0 in y, .* trained with 'caught' and 'none'"):
        workflow.judge(words, new.X, new.y)


def test_outcomes_that_cannot_be_judged_are_sentences(audits, tree):
    X, y = audits[1].X, audits[1].y
    with pytest.raises(InputError, match=r"judge needs both classes in y, but all 400 labels equal 0"):
        workflow.judge(tree, X, 0 * y)
    with pytest.raises(InputError, match=r"judge needs one label per row.*\[400, 399\]"):
        workflow.judge(tree, X, y[1:])
    with pytest.raises(InputError, match=r"judge needs a label for every row"):
        workflow.judge(tree, X, np.where(y == 1, np.nan, 0.0))


def test_a_chosen_tree_is_judged_by_what_it_calls(audits, curve):
    new = audits[1]
    assert workflow.judge(curve, new.X, new.y, k=5).chosen is None
    chosen = workflow.judge(curve.with_choice(curve.select(k=30)), new.X, new.y, k=5).chosen
    assert chosen.found <= chosen.alerts
    assert chosen.recall.value == chosen.found / new.y.sum()
    assert chosen.precision.low <= chosen.precision.value <= chosen.precision.high


def test_a_share_of_nothing_is_none():
    nothing = Interval(np.nan, 0.0, 1.0, 0.95)
    some = Interval(0.5, 0.1, 0.9, 0.95)
    out = workflow.FlaggedCases("k = 3", 0, 0, 0, nothing, some, some).to_dict()
    assert out["precision"] == {"value": None, "low": 0.0, "high": 1.0}
    assert out["recall"]["value"] == 0.5


def test_the_command_line_prints_the_judgement(tmp_path):
    model = fit_cases(tmp_path)
    printed = json.loads(run("evaluate", model, tmp_path / "history.csv", "--label", "fraud", "--k", 9, "--json").out)
    assert printed["is_training_data"]
    assert "was trained on the cases of history.csv" in printed.pop("notes")[0]
    import polars as pl

    table = pl.read_csv(tmp_path / "history.csv")
    ranker = toprank.load(model)
    labels = table["fraud"].cast(pl.String).to_numpy() if ranker.classes_.dtype.kind in "UO" else table["fraud"]
    assert printed == plain(workflow.judge(ranker, table.drop("fraud", "case_id"), labels, k=9).to_dict())


# --- leaks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*FRAMES, "array"])
def test_a_column_that_gives_the_outcome_away_is_found_in_any_table(kind):
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.2).astype(int)
    X = {"noise": rng.normal(size=400), "later": y + 0.01 * rng.normal(size=400)}
    table = np.column_stack(list(X.values())) if kind == "array" else make_frame(kind, X)
    model = RankingTree(max_depth=2, cv=0).fit(table, y)
    column = workflow.check_main_column(model, table, y)
    assert column.gives_outcome_away
    assert column.area > 0.99
    assert "later" in column.name or kind == "array"
    assert plain(column.to_dict())["gives_outcome_away"]


def test_columns_may_be_numbered():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.2).astype(int)
    table = pandas.DataFrame({7: rng.normal(size=200), 3: y})
    column = workflow.check_main_column(RankingTree(max_depth=1, cv=0).fit(table, y), table, y)
    assert column.name == "3"
    assert column.gives_outcome_away


def make_frame(kind, columns):
    library = pytest.importorskip(kind)
    return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)


def test_an_honest_column_does_not_give_the_outcome_away(audits, tree):
    column = workflow.check_main_column(tree, audits[0].X, audits[0].y)
    assert column.name == tree.columns_[int(np.argmax(tree.feature_importances_))].input_name
    assert not column.gives_outcome_away
    assert column.area < 0.98
    assert not workflow.LoneColumn("few cases", np.nan).gives_outcome_away


def test_a_model_without_columns_has_no_main_one():
    y = np.repeat([0, 1], 20)
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = RankingTree(max_depth=1, min_samples_leaf=30, cv=0).fit(X, y)
    assert workflow.check_main_column(model, X, y) is None


# --- curves -------------------------------------------------------------------------------------------------------


def test_the_table_of_a_curve(curve):
    table = workflow.curve_table(curve)
    assert [row.point for row in table.rows] == list(range(len(curve.path_)))
    assert table.n_cases == curve.n_cases_
    for row, point in zip(table.rows, curve.path_, strict=True):
        assert row.cost_ratio == point.cost_ratio
        assert row.counts == row.training, "there are no held-out cases"
        assert row.counts.alerts == pytest.approx(row.counts.found + row.counts.false_alarms)
    assert table.chosen is None
    assert len(plain(table.to_dict())["points"]) == len(curve.path_)
    chosen = curve.with_choice(curve.select(k=30))
    assert workflow.curve_table(chosen).chosen["point"] == chosen.selected_.position


# --- recommendations ----------------------------------------------------------------------------------------------


def entry(name, ap, p_value, size, *, readable=True):
    gap = 0.9 - ap
    intervals = [Interval(value, value - 0.1, value + 0.1, 0.95) for value in (ap, gap)]
    return BoardEntry(name, name.title(), intervals[0], 0.5, intervals[1], p_value, size, "leaves", readable, readable,
                      1.0, {"max_depth": 2})  # fmt: skip


def test_a_recommendation_and_what_comes_after_it():
    entries = [
        entry("lightgbm", 0.9, 1.0, 900.0, readable=False),
        entry("gini", 0.89, 0.5, 20.0),
        entry("tree", 0.88, 0.4, 5.0),
        entry("entropy", 0.5, 0.001, 3.0),
    ]
    board = Leaderboard(entries, {}, 1000, 100, 5, 0.1)
    advice = workflow.recommend(board)
    assert [each.name for each in advice.candidates] == ["tree", "gini", "lightgbm", "entropy"]
    assert advice.text == board.recommendation()
    assert plain(advice.to_dict())["recommended"] == "tree"
    estimator = advice.make_estimator()
    assert isinstance(estimator, RankingTree)
    assert estimator.max_depth == 2


@pytest.mark.parametrize(("p_value", "then"), [(0.5, "sgbap"), (0.001, "forest")])
def test_after_a_black_box_comes_the_best_model_that_is_level(p_value, then):
    """A readable model came next, however much worse."""
    entries = [
        entry("lightgbm", 0.9, 1.0, 900.0, readable=False),
        entry("forest", 0.88, 0.001, 900.0, readable=False),
        entry("sgbap", 0.87, p_value, 900.0, readable=False),
        entry("tree", 0.3, 0.001, 5.0),
    ]
    advice = workflow.recommend(Leaderboard(entries, {}, 1000, 100, 5, 0.1))
    assert [each.name for each in advice.candidates][:2] == ["lightgbm", then]
    assert advice.candidates[-1].name == "tree"


def test_nothing_is_recommended_where_too_few_splits_cannot_tell():
    nan = float("nan")
    board = Leaderboard([entry("lightgbm", 0.9, nan, 900.0, readable=False), entry("tree", 0.8, nan, 5.0)],
                        {}, 1000, 100, 2, 0.1)  # fmt: skip
    advice = workflow.recommend(board)
    assert advice.to_dict()["recommended"] is None
    assert advice.candidates == ()
    with pytest.raises(ValueError, match="No method is recommended"):
        advice.make_estimator()


def test_names_load_on_first_use():
    assert set(dir(workflow)) == set(workflow.__all__)
    assert all(hasattr(workflow, name) for name in workflow.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        workflow.nonsense  # noqa: B018
