import sys
import time

import numpy as np
import polars as pl
import pytest

import toprank
from experiment_cases import make_frame
from toprank.experiment import registry
from toprank.experiment.comparing import (
    CORE,
    METHODS,
    SEARCHES,
    _write_parquet,
    check_share,
    choose_protocol,
    compare,
    comparison_plan,
    run_within,
)
from toprank.experiment.leaderboard import BOOTSTRAPS, BoardEntry, Leaderboard
from toprank.experiment.measures import RESAMPLED, figures_of, resampled_columns
from toprank.experiment.registry import Method, find_method, register
from toprank.experiment.store import Store
from toprank.metrics import Interval, average_precision

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
                "size": (sizes or {}).get(method, 5.0), "size_unit": "conditions", "seconds_fit": 2.0,
                "seconds_tune": 4.0, "seconds_score": 1.0, "setting": settings[i] if settings else "{}",
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def board_of(figures, unseen=(), **options):
    return Leaderboard.from_results(results_of(figures, **options), SHARE, [*figures, *unseen])


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
    assert board.recommended.name == "metaap"
    assert board.recommendation().startswith("Take MetaAP with 14 conditions: it is readable, and level with the best")
    assert "interval -" in board.recommendation()


def test_a_readable_model_that_is_best_is_the_one_to_take():
    board = board_of({"metaap": [0.7, 0.72, 0.71], "xgboost": [0.6, 0.61, 0.63]}, sizes={"metaap": 1.0})
    assert board.recommendation() == "Take MetaAP with 1 condition: it is the best of these, and readable."


def test_the_smallest_of_the_readable_models_that_are_level_is_the_one_to_take():
    figures = {
        "metaap": [0.60, 0.62, 0.58],
        "tree": [0.59, 0.61, 0.60],
        "treerank": [0.50, 0.64, 0.52],
        "logistic-l1": [0.60, 0.59, 0.60],
        "xgboost": [0.62, 0.60, 0.60],
        "cost-tree": [0.30, 0.31, 0.30],
    }
    sizes = {"metaap": 40.0, "tree": 9.0, "treerank": 3.0, "logistic-l1": 5.0, "cost-tree": 1.0}
    board = board_of(figures, sizes=sizes)
    # treerank is level by its wide interval, and yet too far behind; cost-tree is lower; a logistic regression is
    # smaller, but no command fits it.
    assert board.verdict(next(e for e in board.entries if e.name == "treerank")) == "level"
    assert [entry.name for entry in board.level_readable] == ["logistic-l1", "tree", "metaap"]
    assert board.recommended.name == "tree"
    text = board.recommendation()
    assert text.startswith("Take Ranking tree with 9 conditions: it is the smallest readable model level with the best")
    assert "Logistic L1 with 5 conditions is smaller and level, too" in text


def test_a_model_that_needs_no_options_is_preferred_to_a_smaller_one_that_does():
    figures = {"scorecard-tree": [0.60, 0.62, 0.58], "treerank-pruned": [0.59, 0.61, 0.60], "xgboost": [0.62, 0.6, 0.6]}
    sizes = {"scorecard-tree": 30.0, "treerank-pruned": 9.0}
    board = board_of(figures, sizes=sizes)
    assert [entry.name for entry in board.level_readable] == ["treerank-pruned", "scorecard-tree"]
    assert [len(entry.options) for entry in board.level_readable] == [5, 0]
    assert board.recommended.name == "scorecard-tree"
    text = board.recommendation()
    assert text.startswith("Take Scorecard tree with 30 conditions: it is readable, and level with the best")
    assert "TreeRank pruned with 9 conditions is smaller and level, too, but fitted only with several options." in text
    alone = board_of({name: values for name, values in figures.items() if name != "scorecard-tree"}, sizes=sizes)
    assert alone.recommended.name == "treerank-pruned"


def test_scorecards_are_compared_and_sized_by_what_is_read():
    assert {"scorecard", "scorecard-tree"} <= set(CORE)
    table = make_frame()
    for name in ("scorecard", "scorecard-tree"):
        method = find_method(name)
        fitted = method.make(cv=0).fit(table.drop(columns="label"), table["label"])
        size, unit = method.size(fitted)
        assert unit.endswith("bins")
        assert size >= sum(len(set(shape.points.tolist())) for shape in fitted.card_.shapes) > 0
        n_conditions = (fitted.card_tree_.feature >= 0).sum() if name == "scorecard-tree" else 0
        assert ("conditions" in unit) == (n_conditions > 0)


def test_a_level_model_far_behind_is_taken_where_no_other_is_level():
    board = board_of({"metaap": [0.40, 0.70, 0.50], "xgboost": [0.6, 0.55, 0.65]})
    assert board.recommended.name == "metaap"


def test_what_readability_costs():
    values = np.array([0.50, 0.51, 0.50, 0.52])
    board = board_of({"metaap": values, "xgboost": values + np.array([0.20, 0.21, 0.2, 0.2])})
    text = board.recommendation()
    assert text.startswith("XGBoost is better than the best readable model, MetaAP with 5 conditions, by 20.2 points")
    assert "finds about 71, the readable one 51" in text
    assert board.recommended.name == "xgboost"


def test_the_method_that_is_recommended():
    low, high = [0.50, 0.51, 0.50, 0.52], [0.70, 0.72, 0.70, 0.72]
    recommended = {
        "metaap": [{"metaap": high, "xgboost": low}, {"metaap": high, "xgboost": high[::-1]}, {"metaap": [0.5]}],
        "xgboost": [{"metaap": low, "xgboost": high}, {"knn": low, "xgboost": high}],
    }
    for name, boards in recommended.items():
        assert [board_of(figures).recommended.name for figures in boards] == [name] * len(boards)
    assert board_of({"metaap": [0.5, 0.5], "xgboost": [0.6, 0.6]}).recommended is None


def test_the_setting_of_an_entry_is_that_of_most_splits():
    settings = ['{"max_depth": 2}', '{"max_depth": 4}', '{"max_depth": 4}']
    assert board_of({"tree": [0.5, 0.6, 0.5]}, settings=settings).best.setting == {"max_depth": 4}


def test_few_positives_are_said():
    board = board_of({"metaap": [0.5, 0.6], "xgboost": [0.6, 0.5]}, n_positives=20)
    assert "With 20 positives in all" in board.recommendation()


def test_without_a_readable_model():
    board = board_of({"xgboost": [0.5, 0.6], "random-forest": [0.6, 0.6]})
    assert "no readable model was compared" in board.recommendation()


def test_methods_that_did_not_finish_are_listed_with_the_reason():
    figures = {"metaap": [0.5, 0.6, 0.5], "xgboost": [0.6, 0.5, 0.5], "knn": [0.4, 0.4, 0.4]}
    board = board_of(figures, statuses={("knn", 1): "failed"})
    assert [entry.name for entry in board.entries] == ["metaap", "xgboost"]
    assert board.left_out == {find_method("knn").title: "it broke"}
    late = board_of({"metaap": [0.5, 0.6], "xgboost": [0.6, 0.5], "knn": [0.4]}, unseen=["tao"])
    assert late.left_out == {
        find_method("knn").title: "not enough time: one split took 7 s",
        find_method("tao").title: "not enough time",
    }


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name in ("interpret", "xgboost") else object())
    board = board_of({"metaap": [0.5, 0.6, 0.5]}, unseen=["ebm", "xgboost"])
    assert board.left_out == {
        "EBM": 'needs the package interpret: pip install "toprank[baselines]"',
        "XGBoost": 'needs the package xgboost: pip install "toprank[boosting]"',
    }


def test_slow_methods_give_way_when_time_is_short(tmp_path, monkeypatch):
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    for name, seconds in (("quick", 0.01), ("slow", 0.5)):
        register(Method(name, name, "tree", lambda seconds=seconds, **_: Waiter(seconds), reads="numbers"))
    make_frame(120).to_csv(tmp_path / "table.csv", index=False)
    protocol, _ = choose_protocol(120, 30, 4, 1, 0)
    plan = comparison_plan(tmp_path / "table.csv", "label", ["quick", "slow"], SHARE, protocol, None)
    with Store(":memory:") as store:
        store.keep_plan(plan)
        started = time.monotonic()
        for progress in run_within(store, 1.6 / 60, 1):
            if progress.n_run:
                assert progress.seconds_left <= max(started + 1.7 - time.monotonic(), 0.0)
        board = Leaderboard.from_results(store.results(), SHARE, ["slow", "quick"])
    assert [entry.name for entry in board.entries] == ["quick"]
    assert board.n_splits == 4
    assert "not enough time: one split took" in board.left_out["slow"]


def test_wanted_methods_go_before_quick_ones(tmp_path, monkeypatch):
    """A slow method of the core gets its splits, and quick ones beside it what is left."""
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    monkeypatch.setattr("toprank.experiment.comparing.CORE", ("wanted",))
    times = (("others", 0.15), ("quick", 0.001), ("wanted", 0.25))
    for name, seconds in times:
        register(Method(name, name, "tree", lambda seconds=seconds, **_: Waiter(seconds), reads="numbers"))
    make_frame(120).to_csv(tmp_path / "table.csv", index=False)
    protocol, _ = choose_protocol(120, 30, 3, 1, 0)
    names = [name for name, _ in times]
    plan = comparison_plan(tmp_path / "table.csv", "label", names, SHARE, protocol, None)
    with Store(":memory:") as store:
        store.keep_plan(plan)
        for _ in run_within(store, 1.3 / 60, 1):
            pass
        done = store.results()
    assert done.filter(pl.col("method") == "wanted").height == 3
    assert done["method"][0] in names
    assert done.filter(pl.col("method") == "others").height < 3


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
    text = board.recommendation()
    assert "XGBoost is ahead of the best readable model, MetaAP with 5 conditions, by 60.0 points" in text
    assert "Take" not in board.recommendation()


def test_a_split_that_one_method_alone_reached_does_not_make_it_the_best():
    board = board_of({"metaap": [0.3, 0.3, 0.3, 0.3], "xgboost": [0.6, 0.6, 0.6], "knn": [0.5, 0.5, 0.5]})
    assert board.n_splits == 3
    assert [entry.name for entry in board.entries] == ["xgboost", "knn", "metaap"]


def test_methods_are_paired_by_split_not_by_place():
    values = [0.2, 0.4, 0.6, 0.8]
    rows = results_of({"metaap": values, "xgboost": values, "knn": values})
    kept = rows.filter(~((pl.col("method") == "metaap") & (pl.col("split") == "fold 0")))
    kept = kept.filter(~((pl.col("method") == "xgboost") & (pl.col("split") == "fold 3")))
    board = Leaderboard.from_results(kept.reverse(), SHARE, ["metaap", "xgboost", "knn"])
    assert all(entry.gap.value == 0 for entry in board.entries)


def test_budgets_become_shares():
    assert check_share(None, 1000, 20) == 0.02
    assert check_share(50, 1000, 20) == 0.05
    assert check_share(0.1, 1000, 20) == 0.1


def test_all_methods_compared_by_default_are_known():
    assert all(find_method(name) for name in METHODS)
    assert set(CORE) < set(METHODS)
    assert set(SEARCHES) <= set(METHODS)
    assert len(set(METHODS)) == len(METHODS)


@pytest.mark.parametrize(
    ("name", "model"),
    [("metaap", "MetaAP"), ("metaap-forest", "MetaAPForest"), ("treerank", "TreeRank"),
     ("treerank-forest", "TreeRankForest"), ("cost-curve", "CostOptimalCurve"), ("cost-tree", "CostTree")],
)  # fmt: skip
def test_one_name_is_one_model(name, model):
    """What a comparison calls metaap is MetaAP() and `fit --model metaap`."""
    made = find_method(name).make().get_params(deep=False)
    usual = getattr(toprank, model)().get_params(deep=False)
    differs = {parameter for parameter, value in usual.items() if made[parameter] != value}
    without_rates = {"cv"} if made.get("cv") == 0 else set()  # the ranking is the same
    assert differs <= {"n_jobs", "random_state"} | without_rates
    if name != "treerank":
        assert not find_method(name).space


def test_large_tables_need_no_folds():
    protocol, words = choose_protocol(45_000, 5_000, None, 1, 7)
    assert protocol == {"kind": "holdout", "test_size": 0.3, "seeds": [7]}
    assert words == "a random test part of 30 % of the cases"
    for (n_rows, n_positives, n_splits, n_repeats), n_folds in (
        ((45_000, 5_000, 5, 1), 5),
        ((45_000, 400, None, 1), 3),
        ((45_000, 5_000, None, 2), 3),
        ((9_000, 4_000, None, 1), 5),
    ):
        protocol, words = choose_protocol(n_rows, n_positives, n_splits, n_repeats, 7)
        assert (protocol["kind"], protocol["n_splits"]) == ("kfold", n_folds)
        assert len(protocol["seeds"]) == n_repeats
        assert words.startswith(f"{n_folds}-fold cross-validation")


# --- one test part ------------------------------------------------------------------------------------------------


def resampled_board(gap, spread, **sizes):
    """Two methods on one test part: MetaAP behind XGBoost by a gap, with bootstraps that spread."""
    rng = np.random.default_rng(0)
    rows = results_of({"metaap": [0.6 - gap], "xgboost": [0.6]}, sizes=sizes).drop("average_precision")
    values = 0.6 + 0.1 * rng.normal(size=BOOTSTRAPS)  # what both share does not count
    drawn = [values - gap + spread * rng.normal(size=BOOTSTRAPS), values]
    names = resampled_columns(BOOTSTRAPS)
    columns = [pl.Series(name, [float(row[i]) for row in drawn]) for i, name in enumerate(names)]
    rows = rows.with_columns(pl.Series("average_precision", [0.6 - gap, 0.6]), *columns)
    return Leaderboard.from_results(rows, SHARE, ["metaap", "xgboost"], "a test part", 40)


def test_gaps_on_one_test_part_are_told_from_noise_by_bootstraps_that_are_paired():
    board = resampled_board(0.04, 0.01)
    assert board.can_tell
    assert (board.n_cases, board.n_positives) == (200, 40)
    gap = board.entries[1].gap
    assert gap.value == pytest.approx(0.04)
    assert (gap.high - gap.low) / 2 == pytest.approx(1.96 * 0.01, rel=0.2)
    assert board.verdict(board.entries[1]) == "lower"
    assert board.recommended.name == "xgboost"
    level = resampled_board(0.01, 0.01)
    assert level.verdict(level.entries[1]) == "level"
    assert level.recommended.name == "metaap"
    equal = resampled_board(0.0, 0.0)
    assert equal.entries[1].p_value == 1.0


def test_bootstraps_keep_both_classes_and_are_the_same_for_all_scores():
    rng = np.random.default_rng(0)
    y = (np.arange(60) < 8).astype(int)
    score = rng.normal(size=60) + y
    names = [f"{RESAMPLED}30"]
    first, again = figures_of(names, y, score), figures_of(names, y, score)
    assert first == again
    assert list(first) == list(resampled_columns(30))
    values = np.array(list(first.values()))
    assert values.mean() == pytest.approx(average_precision(y, score), abs=0.1)
    assert values.std() > 0.01
    assert set(figures_of(names, y, y.astype(float)).values()) == {1.0}


def test_compare_on_given_test_cases():
    frame, later = make_frame(160), make_frame(90)
    X, X_test = frame.drop(columns="label"), later.drop(columns="label")
    given = {"X_test": X_test[X.columns[::-1]], "y_test": later.label}
    board = compare(X, frame.label, **given, methods=["metaap", "gini-rate"], n_workers=1)
    assert (board.n_cases, board.n_positives, board.n_splits) == (90, int(later.label.sum()), 1)
    assert board.judged_by == "the test cases given"
    assert board.can_tell
    model = find_method("metaap").make().fit(X, frame.label)
    expected = average_precision(later.label, model.decision_function(X_test))
    metaap = next(entry for entry in board.entries if entry.name == "metaap")
    assert metaap.average_precision.value == pytest.approx(expected)
    arrays = compare(X[["x0", "x1"]].to_numpy(), frame.label, X_test=X_test[["x0", "x1"]].to_numpy(),
                     y_test=later.label, methods="gini-rate", n_workers=1)  # fmt: skip
    assert arrays.n_cases == 90


def test_nothing_learned_and_too_good_are_said():
    figures = {"metaap": [0.20, 0.25, 0.10], "xgboost": [0.10, 0.3, 0.12], "cart": [0.1, 0.2, 0.2]}
    assert "None of them is clearly better than a random order" in board_of(figures).recommendation()
    assert "The 3 methods cannot be told apart" in board_of(figures).recommendation()
    assert "look for a column that gives the outcome away" in board_of({"metaap": [1.0, 1.0, 0.999]}).recommendation()


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
    assert "readable" in board.recommendation()
    words = np.where(y == 1, "yes", "no")
    as_array = compare(X[["x0", "x1"]].to_numpy(), words, methods="gini-rate", n_splits=2, n_workers=1)
    assert as_array.best.name == "gini-rate"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_features_named_like_the_outcome_and_the_groups_are_kept(library, tmp_path):
    frame = pl.DataFrame({"label": [0.5, 1.5], "label_": ["a", "b"], "group": [3, 4]})
    X = {"polars": frame, "pandas": frame.to_pandas(), "pyarrow": frame.to_arrow()}[library]
    names = _write_parquet(X, np.array([0, 1]), np.array([7, 8]), tmp_path / "table.parquet")
    written = pl.read_parquet(tmp_path / "table.parquet")
    assert names == ("label__", "group_")
    assert written.select(frame.columns).equals(frame)
    assert written.select(names).rows() == [(0, 7), (1, 8)]


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"compare needs the package 'pandas'.*pip install \"toprank\[experiment\]\""):
        compare(pl.DataFrame({"x": [1, 2]}), [0, 1])


def test_the_price_of_reading_names_models_that_no_smaller_one_beats():
    def entry(name, value, size, is_readable):
        around = Interval(value, value - 0.02, value + 0.02, 0.95)
        return BoardEntry(name, name, around, 0.5, around, 1.0, size, "conditions", is_readable, True, 1.0, {})

    entries = [entry("Box", 0.50, 900, False), entry("Flags", 0.49, 40, True), entry("Big", 0.48, 60, True),
               entry("Stump", 0.30, 1, True)]  # fmt: skip
    board = Leaderboard(entries, {}, 1000, 50, 5, 0.05)
    assert board.price_of_reading() == [
        "Flags (40 conditions) costs 0.010 of average precision against Box, the best black box tried.",
        "Stump (1 condition) costs 0.200 of average precision against Box.",
    ]
    assert Leaderboard(entries[1:], {}, 1000, 50, 5, 0.05).price_of_reading() == []
