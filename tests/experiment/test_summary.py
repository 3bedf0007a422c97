"""Summaries against plain loops over the rows, and the laws that hold for all of them."""

import math
import statistics
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats

from experiment_results import DATA_SETS, make_profiles, make_published, make_results
from toprank.experiment import summary
from toprank.experiment.summary import signed_ranks

METHODS = ("MetaAP", "Gini", "Entropy", "XGBoost")
AP = "average_precision"
GONE = {("yeast", "seed 2", "Gini"): "failed", ("wine", "seed 3", "XGBoost"): "timeout"}
COMMON = {
    name: [f"seed {i}" for i in range(1, 5) if (name, i) not in {("yeast", 2), ("wine", 3)}] for name in DATA_SETS
}
"""Splits that all methods finished where GONE is missing."""


@pytest.fixture(scope="module")
def results():
    return make_results(unfinished=GONE)


def figure(results, dataset, split, method, measure=AP):
    row = results.filter(pl.col("dataset") == dataset, pl.col("split") == split, pl.col("method") == method)
    return row[measure].item()


def figures(results, dataset, method, measure=AP, splits=None):
    return [figure(results, dataset, split, method, measure) for split in splits or COMMON[dataset]]


def means(results, method, measure=AP, datasets=DATA_SETS):
    return [statistics.mean(figures(results, name, method, measure)) for name in datasets]


def by_key(frame, *keys):
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


# --- one figure a method ----------------------------------------------------------------------------------------


def test_leaderboard(results):
    board = summary.leaderboard(results)
    assert board["method"].to_list() == ["XGBoost", "MetaAP", "Entropy", "Gini"]
    table = np.array([means(results, method) for method in METHODS]).T
    places = stats.rankdata(-table, axis=1).mean(axis=0)
    for method, place in zip(METHODS, places, strict=True):
        row = by_key(board, "method")[method,]
        expected = means(results, method)
        assert (row["n_data_sets"], row["n_splits"]) == (6, 22)
        assert row["mean"] == pytest.approx(statistics.mean(expected))
        assert row["std"] == pytest.approx(statistics.stdev(expected))
        assert row["mean_rank"] == pytest.approx(place)
        assert row["wins"] == sum(max(line) == figure for line, figure in zip(table, expected, strict=True))
    sizes = [size for name in DATA_SETS for size in figures(results, name, "MetaAP", "size")]
    assert by_key(board, "method")["MetaAP",]["size"] == statistics.median(sizes)
    assert board["size_unit"].to_list() == [None, "leaves", "leaves", "leaves"]
    assert board["size"].to_list()[0] is None
    assert board["is_readable"].to_list() == [False, True, True, True]


def test_leaderboard_of_another_measure_and_of_some_methods(results):
    board = summary.leaderboard(results.filter(pl.col("method").is_in(["Gini", "MetaAP"])), "p_at_10")
    assert board["method"].to_list() == ["MetaAP", "Gini"]
    assert board["n_splits"].to_list() == [23, 23]  # the split without XGBoost is back
    splits = {name: [f"seed {i}" for i in range(1, 5) if (name, i) != ("yeast", 2)] for name in DATA_SETS}
    expected = [statistics.mean(figures(results, name, "MetaAP", "p_at_10", splits[name])) for name in DATA_SETS]
    assert board["mean"][0] == pytest.approx(statistics.mean(expected))


def test_ties_share_wins_and_ranks():
    results = make_results(methods=("MetaAP", "Gini"))
    results = results.with_columns(pl.lit(0.3).alias(AP))
    board = summary.leaderboard(results)
    assert board["method"].to_list() == ["Gini", "MetaAP"]
    assert (board["wins"].to_list(), board["mean_rank"].to_list()) == ([6, 6], [1.5, 1.5])
    assert summary.by_data_set(results)["is_best"].all()


def test_figures_that_differ_by_rounding_are_ties():
    results = make_results(methods=("MetaAP", "Gini"), n_splits=3)
    order = pl.when(pl.col("method") == "Gini").then(pl.lit("321")).otherwise(pl.lit("123"))
    values = order.str.slice(pl.col("split").str.slice(-1).cast(pl.Int64) - 1, 1).cast(pl.Float64) / 10
    results = results.with_columns(values.alias(AP))
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    board = summary.against(results, "Gini")
    assert board.select("wins", "ties", "losses", "p_value").row(0) == (0, 6, 0, 1.0)


def test_wilcoxon_ranks_differences_that_differ_by_rounding_alike():
    assert 0.3 - 0.1 < 0.2
    assert signed_ranks(np.array([0.3, 0.0, 0.8]), np.array([0.1, 0.2, 0.7])).statistic == 2.5  # ranks 2.5, 2.5, 1


def test_one_data_set_and_one_split_have_no_deviation():
    results = make_results(n_data_sets=1, n_splits=1)
    assert summary.leaderboard(results)["std"].to_list() == [None] * 4
    assert summary.by_data_set(results)["std"].to_list() == [None] * 4


def test_sizes_in_different_units_are_not_mixed():
    results = make_results(methods=("MetaAP", "Gini"))
    other = pl.when(pl.col("dataset") == "wine").then(pl.lit("rules")).otherwise("size_unit")
    board = summary.leaderboard(results.with_columns(size_unit=other))
    assert board["size"].to_list() == board["size_unit"].to_list() == [None, None]


def test_compare_ranks(results):
    found = summary.compare_ranks(results)
    assert tuple(found.mean_ranks) == ("XGBoost", "MetaAP", "Entropy", "Gini")
    table = np.array([means(results, method) for method in found.mean_ranks]).T
    assert list(found.mean_ranks.values()) == pytest.approx(stats.rankdata(-table, axis=1).mean(axis=0))
    assert found.n_data_sets == 6
    assert found.test.chi_square == pytest.approx(stats.friedmanchisquare(*table.T).statistic)
    assert found.critical_difference == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 6)), abs=1e-3)


def test_times_are_means_over_shared_splits_and_stand_alone(results):
    rows = by_key(summary.times(results), "method")
    seconds = {
        method: {name: [s for d in DATA_SETS for s in figures(results, d, method, name)] for name in summary.SECONDS}
        for method in METHODS
    }
    for method in METHODS:
        for name in summary.SECONDS:
            assert rows[method,][name] == pytest.approx(statistics.mean(seconds[method][name]))
        assert rows[method,]["seconds_total"] == pytest.approx(sum(map(sum, seconds[method].values())))
        assert rows[method,]["n_splits"] == 22
    totals = [row["seconds_total"] for row in rows.values()]
    assert totals == sorted(totals)


@pytest.mark.parametrize("make", ["leaderboard", "by_data_set", "by_imbalance", "precision_curves"])
def test_times_change_no_other_summary(results, make):
    slower = results.with_columns(pl.col(summary.SECONDS) * 3 + 1)
    assert_frame_equal(getattr(summary, make)(slower), getattr(summary, make)(results), check_exact=True)


# --- a figure for each data set, level or value -----------------------------------------------------------------


def test_by_data_set(results):
    frame = summary.by_data_set(results)
    assert frame["dataset"].unique(maintain_order=True).to_list() == list(DATA_SETS)  # by share of positives
    assert frame["method"].to_list() == ["XGBoost", "MetaAP", "Entropy", "Gini"] * 6
    for (dataset, method), row in by_key(frame, "dataset", "method").items():
        expected = figures(results, dataset, method)
        assert row["positive_rate"] == DATA_SETS[dataset]
        assert row["n_splits"] == len(expected)
        assert row["mean"] == pytest.approx(statistics.mean(expected))
        assert row["std"] == pytest.approx(statistics.stdev(expected))
        best = max(statistics.mean(figures(results, dataset, other)) for other in METHODS)
        assert row["is_best"] == (row["mean"] == pytest.approx(best))


def test_by_imbalance(results):
    frame = summary.by_imbalance(results, reference="MetaAP", levels=(1, 8, 15, 40, 50))
    rows = by_key(frame, "level", "method")
    below = {8: ["abalone", "yeast"], 15: ["abalone", "yeast", "wine"], 40: list(DATA_SETS)[:5], 50: list(DATA_SETS)}
    assert sorted({level for level, _ in rows}) == list(below)  # no data set has at most 1 %
    for level, names in below.items():
        overall = {method: statistics.mean(means(results, method, datasets=names)) for method in METHODS}
        rival = max((method for method in METHODS if method != "MetaAP"), key=overall.get)
        pair = [np.array(means(results, method, datasets=names)) for method in ("MetaAP", rival)]
        for method in METHODS:
            row = rows[level, method]
            assert row["n_data_sets"] == len(names)
            assert row["mean"] == pytest.approx(overall[method])
            assert row["is_best"] == (method == max(overall, key=overall.get))
            assert row["rival"] == rival
            assert row["difference"] == pytest.approx((pair[0] - pair[1]).mean())
            assert row["p_value"] == pytest.approx(stats.wilcoxon(pair[0] - pair[1]).pvalue)
    assert summary.by_imbalance(results).columns == ["level", "n_data_sets", "method", "mean", "is_best"]


def test_the_rival_of_the_best_is_the_second(results):
    frame = summary.by_imbalance(results, reference="XGBoost", levels=(50,))
    assert set(frame["rival"]) == {"MetaAP"}
    expected = np.mean(means(results, "XGBoost")) - np.mean(means(results, "MetaAP"))
    assert frame["difference"][0] == pytest.approx(expected)


def test_a_level_includes_the_data_set_that_is_just_at_it():
    results = make_results(n_data_sets=2).with_columns(positive_rate=pl.lit(0.07))
    assert summary.by_imbalance(results, levels=(7,))["n_data_sets"][0] == 2
    assert 0.07 * 100 > 7


def test_precision_curves(results):
    frame = summary.precision_curves(results, level=30)
    assert frame["percent"].to_list() == [1, *range(5, 101, 5)] * 4
    assert frame["n_data_sets"].unique().to_list() == [4]
    names = ["abalone", "yeast", "wine", "glass"]
    for (percent, method), row in by_key(frame, "percent", "method").items():
        assert row["mean"] == pytest.approx(statistics.mean(means(results, method, f"p_at_{percent}", names)))


def test_by_value():
    profiles = make_profiles()
    frame = summary.by_value(profiles, level=10)
    assert frame["method"].unique(maintain_order=True).to_list() == ["MetaAP", "Entropy", "Gini"]
    assert frame["value"].to_list() == [2, 3, 4, 6, 8] * 3
    for (value, method), row in by_key(frame, "value", "method").items():
        own = profiles.filter(pl.col("method") == method, pl.col("value") == value)
        expected = [own.filter(pl.col("dataset") == name)[AP].mean() for name in ("abalone", "yeast")]
        assert row["mean"] == pytest.approx(statistics.mean(expected))
        assert (row["parameter"], row["n_data_sets"]) == ("max_depth", 2)


def test_methods_may_be_followed_along_different_values():
    profiles = make_profiles().filter((pl.col("method") != "Gini") | (pl.col("value") > 3))
    frame = summary.by_value(profiles)
    assert frame.filter(pl.col("method") == "Gini")["value"].to_list() == [4, 6, 8]
    assert frame.filter(pl.col("method") == "MetaAP")["value"].to_list() == [2, 3, 4, 6, 8]
    assert frame["n_data_sets"].unique().to_list() == [6]
    gap = (pl.col("method") == "Gini") & (pl.col("value") == 6) & (pl.col("dataset") == "wine")
    assert summary.by_value(profiles.filter(~gap))["n_data_sets"].unique().to_list() == [5]


# --- a reference against others, ours beside published ----------------------------------------------------------


def test_against(results):
    frame = summary.against(results, "MetaAP")
    rows = by_key(frame, "method")
    assert frame["difference"].to_list() == sorted(frame["difference"].to_list())
    assert {method: rows[method,]["n_splits"] for (method,) in rows} == {"Gini": 23, "Entropy": 24, "XGBoost": 23}
    raw = {}
    for method in ("Gini", "Entropy", "XGBoost"):
        gone = {(d, s) for d, s, m in GONE if m == method}
        splits = {d: [f"seed {i}" for i in range(1, 5) if (d, f"seed {i}") not in gone] for d in DATA_SETS}
        own, other = (
            np.array([np.mean(figures(results, d, m, splits=splits[d])) for d in DATA_SETS]) for m in ("MetaAP", method)
        )
        row = rows[method,]
        assert row["difference"] == pytest.approx((own - other).mean())
        assert (row["wins"], row["ties"], row["losses"]) == ((own > other).sum(), 0, (own < other).sum())
        raw[method] = stats.wilcoxon(own - other).pvalue
        assert row["p_value"] == pytest.approx(raw[method])
    assert max(row["p_holm"] for row in rows.values()) == pytest.approx(min(1, 3 * min(raw.values())))


def test_a_rival_without_a_shared_split_is_left_out():
    gone = {(name, "seed 1", "Gini"): "failed" for name in DATA_SETS}
    gone |= {(name, "seed 2", "MetaAP"): "failed" for name in DATA_SETS}
    results = make_results(methods=("MetaAP", "Gini", "Entropy"), n_splits=2, unfinished=gone)
    assert summary.against(results, "MetaAP")["method"].to_list() == ["Entropy"]
    with pytest.raises(ValueError, match=r"no split that was finished by all of .*Gini.*`toprank experiment show`"):
        summary.leaderboard(results)
    pair = results.filter(pl.col("method") != "Entropy")
    with pytest.raises(ValueError, match="No other method finished a split that 'MetaAP' finished"):
        summary.against(pair, "MetaAP")


def test_beside_published(results):
    published = make_published()
    shift = pl.when((pl.col("dataset") == "wine") & (pl.col("method") == "Gini")).then(pl.col(AP) + 0.3)
    published = published.with_columns(shift.otherwise(AP).alias(AP))
    rows = by_key(summary.beside_published_by_data_set(results, published), "dataset", "method")
    assert len(rows) == 18  # XGBoost was not published
    below = dict.fromkeys(("MetaAP", "Gini", "Entropy"), 0)
    for (dataset, method), row in rows.items():
        splits = [f"seed {i}" for i in range(1, 5) if (dataset, f"seed {i}", method) not in GONE]
        ours, theirs = (np.array(figures(f, dataset, method, splits=splits)) for f in (results, published))
        error = (ours - theirs).std(ddof=1) / math.sqrt(len(splits))
        assert row["n_splits"] == len(splits)
        assert (row["ours"], row["published"]) == pytest.approx((ours.mean(), theirs.mean()))
        assert row["difference"] == pytest.approx((ours - theirs).mean())
        assert row["standard_error"] == pytest.approx(error)
        assert row["is_below"] == ((ours - theirs).mean() < -2 * error)
        below[method] += row["is_below"]
    assert rows["wine", "Gini"]["is_below"]
    for (method,), row in by_key(summary.beside_published(results, published), "method").items():
        own = [row for (_, name), row in rows.items() if name == method]
        assert row["n_splits"] == sum(each["n_splits"] for each in own)
        for name in ("ours", "published", "difference"):
            assert row[name] == pytest.approx(statistics.mean(each[name] for each in own))
        assert (row["n_data_sets"], row["n_below"]) == (6, below[method])


@pytest.mark.parametrize(("lost", "is_below"), [(4e-5, False), (6e-5, True)])
def test_what_rounding_took_is_not_below(results, lost, is_below):
    published = results.select("dataset", "split", "method", pl.col(AP) + lost)
    assert summary.beside_published_by_data_set(results, published)["is_below"].to_list() == [is_below] * 24


def _seeds():
    return [f"seed {i}" for i in range(1, 5)]


def test_one_published_split_gives_no_star():
    results = make_results(n_splits=1)
    published = make_published(n_splits=1).with_columns(pl.lit(1.0).alias(AP))
    frame = summary.beside_published_by_data_set(results, published)
    assert frame["standard_error"].null_count() == frame.height
    assert not frame["is_below"].any()


# --- what is left out -------------------------------------------------------------------------------------------


def test_a_method_that_finished_nothing_does_not_empty_the_comparison():
    gone = {(name, split, "Gini"): "skipped" for name in DATA_SETS for split in _seeds()}
    results = make_results(unfinished=gone)
    assert sorted(summary.leaderboard(results)["method"]) == ["Entropy", "MetaAP", "XGBoost"]
    assert summary.leaderboard(results)["n_splits"].to_list() == [24] * 3


def test_a_trial_without_the_figure_counts_as_not_finished(results):
    holes = results.with_columns(
        pl.when(pl.col("split") == "seed 1").then(float("nan")).otherwise("roc_auc").alias("roc_auc")
    )
    assert summary.leaderboard(holes, "roc_auc")["n_splits"].to_list() == [16] * 4
    assert summary.leaderboard(holes)["n_splits"].to_list() == [22] * 4


@pytest.mark.parametrize("status", ["failed", "timeout", "skipped"])
def test_figures_of_a_trial_that_is_not_done_do_not_count(status):
    results = make_results()
    is_first = pl.col("trial") == results["trial"][0]
    results = results.with_columns(status=pl.when(is_first).then(pl.lit(status)).otherwise("status"))
    assert summary.leaderboard(results)["n_splits"].to_list() == [23] * 4


# --- laws -------------------------------------------------------------------------------------------------------

PUBLISHED = make_published()
SUMMARIES = {
    "leaderboard": summary.leaderboard,
    "by_data_set": summary.by_data_set,
    "by_imbalance": partial(summary.by_imbalance, reference="MetaAP"),
    "precision_curves": summary.precision_curves,
    "against": partial(summary.against, reference="MetaAP"),
    "beside_published": partial(summary.beside_published, published=PUBLISHED),
    "beside_published_by_data_set": partial(summary.beside_published_by_data_set, published=PUBLISHED),
    "times": summary.times,
}
trials = st.tuples(st.sampled_from(list(DATA_SETS)[1:]), st.sampled_from(_seeds()), st.sampled_from(METHODS))
losses = st.dictionaries(trials, st.sampled_from(["failed", "timeout", "skipped"]), max_size=12)


@settings(max_examples=10)
@given(unfinished=losses, seed=st.integers(0, 99))
@pytest.mark.parametrize("name", SUMMARIES)
def test_the_order_of_rows_changes_nothing(name, unfinished, seed):
    results = make_results(unfinished=unfinished)
    shuffled = results.sample(fraction=1.0, shuffle=True, seed=seed)
    assert_frame_equal(SUMMARIES[name](shuffled), SUMMARIES[name](results), check_exact=True)


@given(seed=st.integers(0, 99))
@settings(max_examples=10)
def test_the_order_of_profiles_changes_nothing(seed):
    profiles = make_profiles()
    shuffled = profiles.sample(fraction=1.0, shuffle=True, seed=seed)
    assert_frame_equal(summary.by_value(shuffled), summary.by_value(profiles), check_exact=True)


@settings(max_examples=20)
@given(unfinished=losses)
def test_a_split_that_one_method_lacks_is_left_out_for_all(unfinished):
    results = make_results(unfinished=unfinished)
    n_left_out = len({(dataset, split) for dataset, split, _ in unfinished})
    assert summary.leaderboard(results)["n_splits"].to_list() == [24 - n_left_out] * 4


@settings(max_examples=20)
@given(unfinished=losses)
def test_failed_trials_count_like_absent_ones(unfinished):
    results = make_results(unfinished=unfinished)
    done = results.filter(pl.col("status") == "done")
    for make in (summary.leaderboard, summary.by_data_set, summary.times):
        assert_frame_equal(make(done), make(results), check_exact=True)


@given(row=st.integers(0, 95))
@settings(max_examples=10)
def test_a_trial_that_is_there_twice_is_refused(row):
    results = make_results()
    twice = pl.concat([results, results[row]])
    for make in (summary.leaderboard, summary.by_data_set, summary.times):
        with pytest.raises(ValueError, match=r"more than one trial of '.*' on '.*', 'seed .', expected one"):
            make(twice)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: summary.leaderboard(r.head(0)), "finished by all of any method"),
        (lambda r: summary.precision_curves(r, level=1), r"at most 1 % positives, the lowest share is 2.00 %"),
        (lambda r: summary.precision_curves(r.select(~pl.selectors.starts_with("p_at"))), "precision_at_positives"),
        (lambda r: summary.beside_published(r, make_published(methods=("TreeRank",))), "share no split"),
        (
            lambda r: summary.compare_ranks(r.filter(pl.col("method").is_in(["Gini", "MetaAP"]))),
            "Ranks need at least 2 data sets and 3 methods",
        ),
    ],
)
def test_bad_input(results, call, message):
    with pytest.raises(ValueError, match=message):
        call(results)
