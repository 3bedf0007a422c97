"""Displays: what `.frame()` holds, and what they refuse."""

from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from experiment_results import make_profiles, make_results
from toprank.experiment import summary
from toprank.metrics import precision_at_k, recall_at_k
from toprank.plots import (
    CriticalDifferenceDisplay,
    DepthDisplay,
    GainsDisplay,
    ImbalanceDisplay,
    LeaderboardDisplay,
    PrecisionAtKDisplay,
)

Y: Any = np.array([1, 0, 1, 1, 0, 0, 0, 0, 0, 0])
GOOD: Any = np.array([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 0])
TIED = np.array([2.0, 2, 2, 2, 1, 1, 1, 0, 0, 0])


# --- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_precision_frames_go_round(backend):
    first = PrecisionAtKDisplay([10, 50], {"a": [0.5, np.nan], "b": [0.25, 1.0]}, {"a": [0.4, 0.3]}, {"a": [0.6, 0.7]})
    again = PrecisionAtKDisplay.from_frame(first.frame(backend)).frame(backend)
    assert again.equals(first.frame(backend))
    assert list(again.columns) == ["method", "percent", "precision", "low", "high"]


def test_gains_imbalance_and_depth_frames_go_round():
    gains = GainsDisplay([0, 0.5, 1], {"a": [0, 0.8, 1], "b": [0, 0.6, 1]}, 0.5)
    assert GainsDisplay.from_frame(gains.frame()).frame().equals(gains.frame())
    levels = ImbalanceDisplay([10, 20], {"a": [0.1, 0.2], "b": [0.3, 0.4]}, [2, 5])
    assert ImbalanceDisplay.from_frame(levels.frame()).frame().equals(levels.frame())
    depth = DepthDisplay([1, 3], {"a": [0.1, 0.2], "b": [0.3, 0.4]}, squared=["b"])
    assert DepthDisplay.from_frame(depth.frame(), squared=["b"]).frame().equals(depth.frame())


def test_missing_rows_become_missing_figures():
    rows = {"method": ["a", "a", "b"], "percent": [50, 10, 50], "precision": [0.5, 0.9, None]}
    display = PrecisionAtKDisplay.from_frame(rows)
    np.testing.assert_array_equal(display.percent, [10, 50])
    np.testing.assert_array_equal(display.precision["a"], [0.9, 0.5])
    np.testing.assert_array_equal(display.precision["b"], [np.nan, np.nan])


def test_arrays_of_a_display_are_its_own():
    values = np.array([0.1, 0.2])
    display = ImbalanceDisplay([10, 20], {"a": values})
    values[0] = 0.9
    assert display.average_precision["a"][0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        display.average_precision["a"][0] = 0.9


# --- from scores --------------------------------------------------------------------------------------------


def test_precision_from_scores_is_the_measure_at_each_k():
    display = PrecisionAtKDisplay.from_scores(Y, {"good": GOOD, "tied": TIED})
    np.testing.assert_allclose(display.percent, [100 / 3, 200 / 3, 100])
    for name, score in (("good", GOOD), ("tied", TIED)):
        np.testing.assert_allclose(display.precision[name], [precision_at_k(Y, score, k) for k in (1, 2, 3)])


def test_precision_from_scores_in_percent_of_the_cases():
    display = PrecisionAtKDisplay.from_scores(Y, {"good": GOOD}, of="cases", up_to=0.4)
    np.testing.assert_allclose(display.percent, [10, 20, 30, 40])
    np.testing.assert_allclose(display.precision["good"], [1, 1 / 2, 2 / 3, 3 / 4])


def test_long_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(0)
    y, score = rng.random(20_000) < 0.3, rng.random(20_000)
    display = PrecisionAtKDisplay.from_scores(y, {"random": score})
    assert 350 < len(display.percent) <= 400
    assert display.percent[0] == pytest.approx(100 / y.sum())
    assert display.precision["random"][-1] == pytest.approx(precision_at_k(y, score, int(y.sum())))


@given(st.integers(1, 60), st.integers(0, 1000))
def test_gains_at_the_budget_are_the_recall_there(budget, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) < 5
    score = rng.integers(0, 8, 60)
    display = GainsDisplay.from_scores(y, {"any": score}, budget=budget)
    assert display.budget == budget / 60
    assert display.at_budget()["any"] == pytest.approx(recall_at_k(y, score, budget))
    assert display.found["any"][0] == 0
    assert display.found["any"][-1] == pytest.approx(1)


def test_a_budget_that_is_a_share_is_rounded_up():
    assert GainsDisplay.from_scores(Y, {"good": GOOD}, budget=0.25).budget == 0.3
    assert GainsDisplay.from_scores(Y, {"good": GOOD}, budget=0.3).budget == 0.3


# --- from the summaries of an experiment --------------------------------------------------------------------


def test_summaries_of_an_experiment_fit():
    results = make_results()
    curves = summary.precision_curves(results)
    display = PrecisionAtKDisplay.from_frame(curves)
    assert display.methods == list(dict.fromkeys(curves["method"]))
    gini = curves.filter(polars.col("method") == "Gini").sort("percent")
    np.testing.assert_array_equal(display.precision["Gini"], gini["mean"])

    levels = ImbalanceDisplay.from_frame(summary.by_imbalance(results))
    assert levels.level.tolist() == [10, 20, 30, 40, 50]
    assert levels.n_data_sets.tolist() == [2, 3, 4, 5, 6]

    board = LeaderboardDisplay.from_frame(summary.leaderboard(results))
    assert board.columns()["method"] == summary.leaderboard(results)["method"].to_list()

    ranks = summary.compare_ranks(results)
    assert CriticalDifferenceDisplay(ranks.mean_ranks, ranks.critical_difference).methods == list(ranks.mean_ranks)

    depth = DepthDisplay.from_frame(summary.by_value(make_profiles()))
    assert set(depth.methods) == {"MetaAP", "Gini", "Entropy"}


def test_one_column_for_each_k_is_understood():
    frame = polars.DataFrame({"method": ["a", "b"], "p_at_10": [0.9, 0.8], "p_at_5": [1.0, None], "size": [1, 2]})
    display = PrecisionAtKDisplay.from_frame(frame)
    assert display.percent.tolist() == [5, 10]
    np.testing.assert_array_equal(display.precision["a"], [1.0, 0.9])
    np.testing.assert_array_equal(display.precision["b"], [np.nan, 0.8])


def test_squared_depths_are_put_beside_the_depth_they_equal():
    rows = {
        "method": ["meta"] * 2 + ["plain"] * 4,
        "depth": [2, 3, 4, 5, 9, 16],
        "mean": [0.5, 0.6, 0.3, 0.35, 0.4, 0.45],
    }
    display = DepthDisplay.from_frame(rows, squared=["plain"])
    assert display.depth.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(display.average_precision["plain"], [0.3, 0.4, 0.45])  # not that of depth 5
    assert display.columns()["depth"].tolist() == [2, 3, 4, 4, 9, 16]
    assert display.columns()["p"].tolist() == [2, 3, 4] * 2


# --- critical difference and leaderboard --------------------------------------------------------------------


@given(st.lists(st.floats(1, 10), min_size=2, max_size=9), st.floats(0.1, 8))
@example([1.0, 2.0, 3.0], 1.0)
def test_cliques_are_the_largest_groups_that_the_difference_spans(ranks, difference):
    by_name = {f"m{i}": rank for i, rank in enumerate(ranks)}
    found = CriticalDifferenceDisplay(by_name, difference).cliques

    def spans(group):
        return max(by_name[name] for name in group) - min(by_name[name] for name in group) < difference

    assert all(len(group) > 1 and spans(group) for group in found)
    for a in by_name:
        for b in by_name:
            if a < b:
                assert spans([a, b]) == any(a in group and b in group for group in found)
    sets = [set(group) for group in found]
    assert not any(one < other for one in sets for other in sets)


def test_cliques_can_be_given():
    display = CriticalDifferenceDisplay({"a": 3.0, "b": 1.0, "c": 2.0}, cliques=[["a", "b"], ["c"]])
    assert display.cliques == (("b", "a"),)
    columns = display.columns()
    assert (columns["method"], columns["cliques"]) == (["b", "c", "a"], ["1", "", "1"])


def test_the_leaderboard_is_best_first_and_missing_last():
    display = LeaderboardDisplay(
        ["a", "b", "c", "d"], [0.5, None, 0.7, 0.5], size=[1, 2, 3, 4], note=[None, "failed", "", "x"]
    )
    columns = display.columns()
    assert columns["method"] == ["c", "a", "d", "b"]
    assert columns["size"].tolist() == [3, 1, 4, 2]
    assert columns["note"] == ["", "", "x", "failed"]
    assert list(columns) == ["rank", "method", "mean", "size", "note"]


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: PrecisionAtKDisplay([1, 2], {}), "'precision' of .* must be a dictionary .* an empty one"),
        (lambda: PrecisionAtKDisplay([1, 2], {"a": [1]}), r"'precision\['a'\]' .* must have 2 values, .* Got 1"),
        (lambda: PrecisionAtKDisplay([2, 1], {"a": [1, 1]}), "'percent' of PrecisionAtKDisplay must rise"),
        (lambda: PrecisionAtKDisplay([1], {"a": ["x"]}), "must be a list of numbers"),
        (lambda: PrecisionAtKDisplay([1], {"a": [np.inf]}), "none infinite"),
        (lambda: PrecisionAtKDisplay([1], {"a": [1]}, low={"a": [1]}), "needs both ends of the bands"),
        (lambda: PrecisionAtKDisplay([1], {"a": [1]}, of="rows"), "'positives' or 'cases'. Got 'rows'"),
        (lambda: PrecisionAtKDisplay.from_scores(Y, GOOD), "'scores' of .*from_scores must be a dictionary .* ndarray"),
        (lambda: PrecisionAtKDisplay.from_scores(Y, {"a": GOOD}, up_to=5), "'up_to' .* share in the range .* Got 5"),
        (lambda: PrecisionAtKDisplay.from_frame([1]), "needs a data frame or a dictionary of columns. Got list"),
        (lambda: PrecisionAtKDisplay.from_frame({"Method": []}), "needs a column 'method'.* did you mean 'Method'"),
        (
            lambda: PrecisionAtKDisplay.from_frame({"method": ["a", "a"], "percent": [1, 1], "mean": [0, 1]}),
            "one row for each method and percent, but 'a' at 1 has several. Hint: take the mean",
        ),
        (lambda: GainsDisplay([0, 5], {"a": [0, 1]}), r"shares in \[0, 1\]. Hint: 5 % is 0.05"),
        (lambda: GainsDisplay.from_scores(Y, {"a": GOOD}, budget=11), "at most the number of cases, 10, .* Got 11"),
        (lambda: GainsDisplay.from_scores(Y, {"a": GOOD}, budget=True), "'budget' .* must be a share"),
        (lambda: GainsDisplay([0, 1], {"a": [0, 1]}).at_budget(), "has no budget"),
        (lambda: DepthDisplay([1.5], {"a": [1]}), "whole numbers of at least 1"),
        (lambda: DepthDisplay([1], {"a": [1]}, squared=["b"]), "'squared' of DepthDisplay names 'b'.* they are a"),
        (lambda: DepthDisplay([1], {"a": [1]}, squared="a"), r"list of names. Hint: squared=\['a'\]"),
        (lambda: CriticalDifferenceDisplay({"a": 1}), "at least two methods"),
        (lambda: CriticalDifferenceDisplay({"a": 1, "b": np.nan}), "needs the mean rank of 'b'. Hint: leave out"),
        (lambda: CriticalDifferenceDisplay({"a": 1, "b": 2}, -1), "must be a number above 0. Got -1"),
        (lambda: CriticalDifferenceDisplay({"a": 1, "b": 2}, cliques=[["a", "c"]]), "groups of the methods .* Got 'c'"),
        (lambda: CriticalDifferenceDisplay.from_frame({"method": ["a", "a"], "mean_rank": [1, 2]}), "one row per"),
        (lambda: LeaderboardDisplay(["a", "a"], [1, 1]), "each once"),
        (lambda: LeaderboardDisplay(["a"], [1], low=[1]), "needs both ends of the intervals"),
        (lambda: LeaderboardDisplay(["a"], [1], note=["x", "y"]), "'note' .* must have 1 values, one per method"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_a_sentence(build, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        build()
