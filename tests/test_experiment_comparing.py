import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from experiment_cases import make_frame
from toprank.experiment import registry
from toprank.experiment.comparing import METHODS, Leaderboard, check_share, compare, comparison_plan, run_within
from toprank.experiment.registry import Method, find_method, register
from toprank.experiment.store import Store

SHARE = 0.1
COLUMN = f"precision_at:{SHARE}"


def results_of(figures, n_positives=200, sizes=None, statuses=None, settings=()):
    """Trials of methods by name: average precision on each split."""
    rows = []
    for method, values in figures.items():
        for i, value in enumerate(values):
            status = (statuses or {}).get((method, i), "done")
            rows.append({
                "dataset": "table", "n": 1000, "n_positives": n_positives, "n_train": 800, "n_test": 200,
                "split": f"fold {i}", "method": method, "status": status,
                "error": None if status == "done" else "it broke",
                "average_precision": value if status == "done" else None, COLUMN: value,
                "size": (sizes or {}).get(method, 5.0), "size_unit": "leaves", "seconds_fit": 2.0,
                "seconds_tune": 4.0, "seconds_score": 1.0, "setting": settings[i] if settings else "{}",
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def board_of(figures, unseen=(), **options):
    return Leaderboard.of(results_of(figures, **options), SHARE, [*figures, *unseen])


def test_entries_come_best_first_with_intervals():
    board = board_of({"metaap": [0.5, 0.52, 0.51], "xgboost": [0.6, 0.61, 0.63]})
    assert [entry.name for entry in board.entries] == ["xgboost", "metaap"]
    for entry in board.entries:
        assert entry.average_precision.low < entry.average_precision.value < entry.average_precision.high
    assert board.best.gap.value == 0
    assert board.best.p_value == 1
    assert board.entries[1].gap.value == pytest.approx(np.mean([0.1, 0.09, 0.12]))


def test_a_readable_model_within_noise_of_the_best_is_the_one_to_take():
    board = board_of({"metaap": [0.50, 0.60, 0.58], "xgboost": [0.6, 0.55, 0.6]}, sizes={"metaap": 14.0})
    assert board.advice().startswith(
        "MetaAP with 14 leaves is within noise of the best (XGBoost), and readable: take it."
    )
    assert "The gap is -" in board.advice()


def test_a_readable_model_that_is_best_is_the_one_to_take():
    board = board_of({"metaap": [0.7, 0.72, 0.71], "xgboost": [0.6, 0.61, 0.63]}, sizes={"metaap": 1.0})
    assert board.advice() == "MetaAP with 1 leaf is the best of these, and readable: take it."


def test_what_readability_costs():
    values = np.array([0.50, 0.51, 0.50, 0.52])
    advice = board_of({"metaap": values, "xgboost": values + np.array([0.20, 0.21, 0.2, 0.2])}).advice()
    assert advice.startswith("XGBoost is better than the best readable model, MetaAP with 5 leaves, by 20.2 points")
    assert "finds about 71, the readable one 51" in advice


def test_the_method_that_the_advice_is_for():
    low, high = [0.50, 0.51, 0.50, 0.52], [0.70, 0.72, 0.70, 0.72]
    advised = {
        "metaap": [{"metaap": high, "xgboost": low}, {"metaap": high, "xgboost": high[::-1]}, {"metaap": [0.5]}],
        "xgboost": [{"metaap": low, "xgboost": high}, {"knn": low, "xgboost": high}],
    }
    for name, boards in advised.items():
        assert [board_of(figures).advised.name for figures in boards] == [name] * len(boards)
    assert board_of({"metaap": [0.5, 0.5], "xgboost": [0.6, 0.6]}).advised is None


def test_the_setting_of_an_entry_is_that_of_most_splits():
    settings = ['{"max_depth": 2}', '{"max_depth": 4}', '{"max_depth": 4}']
    assert board_of({"tree": [0.5, 0.6, 0.5]}, settings=settings).best.setting == {"max_depth": 4}


def test_few_positives_are_said():
    assert (
        "With 20 positives in all" in board_of({"metaap": [0.5, 0.6], "xgboost": [0.6, 0.5]}, n_positives=20).advice()
    )


def test_without_a_readable_model():
    assert "no readable model was compared" in board_of({"xgboost": [0.5, 0.6], "random-forest": [0.6, 0.6]}).advice()


def test_methods_that_did_not_finish_are_listed_with_the_reason():
    figures = {"metaap": [0.5, 0.6, 0.5], "xgboost": [0.6, 0.5, 0.5], "knn": [0.4, 0.4, 0.4]}
    board = board_of(figures, statuses={("knn", 1): "failed"})
    assert [entry.name for entry in board.entries] == ["metaap", "xgboost"]
    assert board.left_out == {find_method("knn").title: "it broke"}
    late = board_of({"metaap": [0.5, 0.6], "xgboost": [0.6, 0.5], "knn": [0.4]}, unseen=["ebm"])
    assert late.left_out == {
        find_method("knn").title: "too slow for the time given: one split took 7 s",
        find_method("ebm").title: "no split was finished in time",
    }


def test_slow_methods_give_way_when_time_is_short(tmp_path, monkeypatch):
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    for name, seconds in (("quick", 0.01), ("slow", 0.5)):
        register(Method(name, name, "tree", lambda seconds=seconds, **_: Waiter(seconds), reads="numbers"))
    make_frame(120).to_csv(tmp_path / "table.csv", index=False)
    plan = comparison_plan(tmp_path / "table.csv", "label", ["quick", "slow"], SHARE, 4, 1, 0, None)
    with Store(":memory:") as store:
        store.keep_plan(plan)
        for _ in run_within(store, 1.6 / 60, 1):
            pass
        board = Leaderboard.of(store.results(), SHARE, ["slow", "quick"])
    assert [entry.name for entry in board.entries] == ["quick"]
    assert board.n_splits == 4
    assert "too slow" in board.left_out["slow"]


class Waiter:
    def __init__(self, seconds):
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        return self

    def predict(self, X):
        return X[:, 0]


def test_nothing_to_compare():
    with pytest.raises(ValueError, match="No method could be compared: it broke"):
        board_of({"metaap": [0.5]}, statuses={("metaap", 0): "failed"})


@pytest.mark.parametrize("n_splits", [1, 2])
def test_too_few_splits_tell_nothing(n_splits):
    board = board_of({"metaap": [0.3] * n_splits, "xgboost": [0.9] * n_splits})
    assert not board.can_tell
    assert not board.entries[1].is_level
    assert "XGBoost is ahead of the best readable model, MetaAP with 5 leaves, by 60.0 points" in board.advice()
    assert "take it" not in board.advice()


def test_a_split_that_one_method_alone_reached_does_not_make_it_the_best():
    board = board_of({"metaap": [0.3, 0.3, 0.3, 0.3], "xgboost": [0.6, 0.6, 0.6], "knn": [0.5, 0.5, 0.5]})
    assert board.n_splits == 3
    assert [entry.name for entry in board.entries] == ["xgboost", "knn", "metaap"]


def test_methods_are_paired_by_split_not_by_place():
    values = [0.2, 0.4, 0.6, 0.8]
    rows = results_of({"metaap": values, "xgboost": values, "knn": values})
    kept = rows.filter(~((pl.col("method") == "metaap") & (pl.col("split") == "fold 0")))
    kept = kept.filter(~((pl.col("method") == "xgboost") & (pl.col("split") == "fold 3")))
    board = Leaderboard.of(kept.reverse(), SHARE, ["metaap", "xgboost", "knn"])
    assert all(entry.gap.value == 0 for entry in board.entries)


def test_budgets_become_shares():
    assert check_share(None, 1000, 20) == 0.02
    assert check_share(50, 1000, 20) == 0.05
    assert check_share(0.1, 1000, 20) == 0.1


def test_all_methods_compared_by_default_are_known():
    assert all(find_method(name) for name in METHODS)


def test_compare_is_a_function_of_the_package_in_a_fresh_process():
    code = "import toprank.experiment as e; assert callable(e.compare) and callable(e.compare) and callable(e.run)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_learned_and_too_good_are_said():
    figures = {"metaap": [0.20, 0.25, 0.10], "xgboost": [0.10, 0.3, 0.12], "cart": [0.1, 0.2, 0.2]}
    assert "None of them is clearly better than a random order" in board_of(figures).advice()
    assert "3 of the 3 methods cannot be told apart" in board_of(figures).advice()
    assert "look for a column that gives the outcome away" in board_of({"metaap": [1.0, 1.0, 0.999]}).advice()


@pytest.mark.parametrize(
    ("y", "sentence"),
    [([0, 1], "inconsistent numbers"), ([0] * 6, "both classes"), ([0, 1, 2] * 2, "found 3 label values")],
)
def test_outcomes_that_make_no_sense(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        compare(np.zeros((6, 2)), y, methods="cart")


def test_compare_on_a_frame():
    frame = make_frame(160)
    X, y = frame.drop(columns="label"), frame.label
    board = compare(X, y, methods=["metaap", "gini-rate"], n_splits=3, n_workers=1)
    assert board.n_splits == 3
    assert board.frame().height == 2
    assert "readable" in board.advice()
    words = np.where(y == 1, "yes", "no")
    as_array = compare(X[["x0", "x1"]].to_numpy(), words, methods="gini-rate", n_splits=2, n_workers=1)
    assert as_array.best.name == "gini-rate"


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"compare needs the package 'pandas'.*pip install \"toprank\[experiment\]\""):
        compare(pl.DataFrame({"x": [1, 2]}), [0, 1])
