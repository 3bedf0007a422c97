"""The two-sample test as a whole: level, power, where it points, and what does not change it."""

import dataclasses
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact
from sklearn.linear_model import LogisticRegression

import toprank
from toprank import MetaAP, MetaAPForest, RankingTree, TreeRank, two_sample_test
from toprank.drift import TwoSampleResult
from toprank.drift.homogeneity import fisher_p_values, union_bound
from toprank.drift.result import drift_cells, p_text, share_ratios, share_z
from toprank.drift.samples import balanced_weights, draw_held_out, held_out_size
from toprank.drift.two_sample import is_decisive, rows_needed
from toprank.metrics.comparison import holm

ROOT = Path(__file__).resolve().parents[2]


def gaussian(seed, n=200, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


def correlated(seed, n=200, d=3):
    X = gaussian(seed, n, d)
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    return X


def companies(seed, n, web_shops=0.0):
    """A table with a category, missing values and ties; a share of the rows has a category of its own."""
    rng = np.random.default_rng(seed)
    sector = np.where(rng.random(n) < web_shops, "web shop", rng.choice(["retail", "catering"], n))
    return pd.DataFrame({
        "sector": np.where(rng.random(n) < 0.05, None, sector),
        "staff": rng.poisson(3, n),
        "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    })  # fmt: skip


# --- level and power ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sample", "n_tests"), [
    pytest.param(lambda seed: companies(seed, 150), 40, id="ties, categories, missing, 40"),
    pytest.param(lambda seed: gaussian(seed, n=25, d=2), 40, id="exact, 40"),
    pytest.param(gaussian, 200, id="numbers", marks=pytest.mark.slow),
    pytest.param(lambda seed: companies(seed, 150), 200, id="ties, categories, missing", marks=pytest.mark.slow),
    pytest.param(lambda seed: gaussian(seed, n=25, d=2), 200, id="exact", marks=pytest.mark.slow),
])  # fmt: skip
def test_level(sample, n_tests):
    results = [
        two_sample_test(sample(2 * i), sample(2 * i + 1), random_state=i, n_permutations=199) for i in range(n_tests)
    ]
    three_errors = 3 / np.sqrt(n_tests)
    assert np.mean([result.is_different for result in results]) <= 0.05 + three_errors * np.sqrt(0.05 * 0.95)
    for name in ("p_value", "score_p_value"):
        p_value = np.array([getattr(result, name) for result in results])
        assert abs(np.mean(p_value <= 0.5) - 0.5) < three_errors * 0.5  # neither bold nor timid


def test_power_where_every_column_alone_stays_the_same():
    found = [two_sample_test(gaussian(2 * i), correlated(2 * i + 1)).is_different for i in range(20)]
    assert np.mean(found) > 0.7


def test_samples_of_very_different_sizes():
    assert two_sample_test(gaussian(0, n=5000), gaussian(1, n=150) + 0.6).is_different
    assert two_sample_test(gaussian(0, n=150), gaussian(1, n=5000) + 0.6).is_different
    assert not two_sample_test(gaussian(0, n=5000), gaussian(1, n=100)).is_different


def test_no_level_is_lost_with_the_smallest_samples():
    result = two_sample_test(np.zeros((4, 1)), np.ones((4, 1)))
    assert result.method == "exact"
    assert not result.is_different
    result = two_sample_test(np.zeros((40, 1)), np.ones((40, 1)))
    assert (result.statistic, result.is_different) == (1.0, True)


# --- rows in both tables ------------------------------------------------------------------------------------


def test_a_table_does_not_differ_from_itself():
    for i in range(20):
        X = gaussian(i) if i % 2 else companies(i, 200)
        result = two_sample_test(X, X[::-1], random_state=i)
        assert (result.is_same_table, result.n_shared, result.p_value) == (True, 200, 1.0)
    assert str(result) == "Both tables hold the same 200 rows: there is no difference"


@pytest.mark.parametrize(("n_more", "n_shared"), [(300, 200), pytest.param(100, 50, marks=pytest.mark.slow)])
def test_level_where_rows_are_in_both_tables(n_more, n_shared):
    p_value = []
    for i in range(40):
        rows = gaussian(i, n=200 + n_more)
        result = two_sample_test(rows[:200], rows[200 - n_shared :], random_state=i, n_permutations=199)
        assert result.n_shared == n_shared
        assert not result.is_same_table
        p_value.append(result.p_value)
    assert np.mean(np.array(p_value) <= 0.05) <= 0.15  # 0.05 plus three standard errors
    assert 0.25 < np.median(p_value) < 0.7  # a mirror image has an AUC below 1/2, and p-values near 1


def test_what_is_new_is_found_beside_rows_in_both_tables():
    reference = gaussian(0, n=600)
    result = two_sample_test(reference, np.vstack((reference, gaussian(1, n=300) + 0.8)))
    assert result.is_different
    assert (result.n_rows_reference, result.n_rows_new, result.n_shared) == (600, 900, 600)
    assert str(result).splitlines()[2] == "600 rows are in both tables, 100 % of the smaller one"
    assert result.to_dict()["n_shared"] == 600
    reference[0, 0] = np.nan
    one = two_sample_test(reference, np.vstack((gaussian(2, n=99), reference[:1])))
    assert one.n_shared == 1
    assert str(one).splitlines()[2] == "1 row is in both tables, 1 % of the smaller one"


def test_rows_of_few_values_are_no_shared_rows():
    reference, new = (companies(seed, 400)[["sector", "staff"]] for seed in (0, 1))
    assert two_sample_test(reference, new).n_shared == 0


# --- where --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda frame: pl.DataFrame(frame).to_arrow()],
                         ids=["pandas", "polars", "pyarrow"])  # fmt: skip
def test_a_new_category_is_found_and_named(make):
    reference, new = companies(0, 800), companies(1, 400, web_shops=0.12)
    result = two_sample_test(make(reference), make(new))
    assert result.is_different
    assert result.cells[0].rule == "sector is web shop"
    assert result.cells[0].direction == "new has more"
    assert (result.cells[0].n_reference, result.cells[0].ratio) == (0, np.inf)
    assert {cell.direction for cell in result.cells} == {"new has more", "new has fewer"}
    assert result.p_value == two_sample_test(reference, new).p_value  # the same rows, the same tree


def test_a_pocket_too_small_for_the_order_of_all_rows_is_found_in_its_cell():
    result = two_sample_test(companies(0, 800), companies(1, 400, web_shops=0.12))
    assert result.score_p_value > 0.05
    assert result.is_different
    assert result.p_value == pytest.approx(10 * result.cells[0].p_adjusted)


def test_scores_and_cells_together_have_the_p_value_of_their_draws():
    X, Y = gaussian(0), gaussian(1) + 0.15
    result = two_sample_test(X, Y, n_cells=100)
    bound = union_bound(result.score_p_value, min(cell.p_adjusted for cell in result.cells))
    assert result.score_p_value < result.p_value < bound
    few = two_sample_test(X, Y, n_permutations=19)
    assert few.p_value * 20 == pytest.approx(round(few.p_value * 20))
    assert few.score_p_value == result.score_p_value


def test_without_cells_the_p_value_is_that_of_the_scores():
    result = two_sample_test(gaussian(0), correlated(1), ranker=MetaAPForest(n_estimators=5))
    assert result.p_value == result.score_p_value


def test_values_that_go_missing_are_found():
    reference, new = companies(0, 600), companies(1, 600)
    new.loc[::4, "amount"] = np.nan
    result = two_sample_test(reference, new)
    assert result.is_different
    assert "or missing" in result.cells[0].rule
    assert result.cells[0].direction == "new has more"


def test_cells_count_the_held_out_rows_alone():
    X, Y = gaussian(0, n=500), correlated(1, n=300)
    result = two_sample_test(X, Y, n_cells=100, test_size=0.4, ranker=RankingTree(max_depth=3))
    assert (result.n_reference, result.n_new) == (200, 120)
    assert sum(cell.n_reference for cell in result.cells) == 200
    assert sum(cell.n_new for cell in result.cells) == 120
    assert len(result.cells) == result.ranker.n_leaves_
    # Rows of the same seed are held out again; the tree sends them to the leaves that the cells say.
    is_new = np.arange(800) >= 500
    held_out = draw_held_out(is_new, 0.4, np.random.default_rng(0).spawn(2)[0])
    leaf = result.ranker.tree_.leaf[result.ranker.apply(np.vstack((X, Y)))] + 1
    for cell in result.cells:
        assert cell.n_new == np.sum((leaf == cell.leaf) & is_new & held_out)
        assert cell.n_reference == np.sum((leaf == cell.leaf) & ~is_new & held_out)
    assert result.ranker.n_cases_ == pytest.approx(2 * 180)
    assert result.cells == tuple(drift_cells(result.ranker, leaf[held_out] - 1, is_new[held_out], level=0.05))


def test_rows_held_out_teach_nothing():
    """Other values in the held-out rows leave the tree as it is."""
    X, Y = gaussian(0), correlated(1)
    first = two_sample_test(X, Y)
    is_new = np.arange(400) >= 200
    held_out = draw_held_out(is_new, 0.5, np.random.default_rng(0).spawn(2)[0])
    both = np.where(held_out[:, None], 0.5 * np.vstack((X, Y)), np.vstack((X, Y)))
    second = two_sample_test(both[~is_new], both[is_new])
    assert first.ranker.to_text() == second.ranker.to_text()
    assert first.statistic != second.statistic


def test_labels_of_rows_held_out_teach_nothing():
    """Held-out rows that change places, between the samples too, leave the tree as it is: draws rest on this."""
    both = np.vstack((gaussian(0), correlated(1)))
    is_new = np.arange(400) >= 200
    held_out = np.flatnonzero(draw_held_out(is_new, 0.5, np.random.default_rng(0).spawn(2)[0]))
    first = two_sample_test(both[~is_new], both[is_new])
    order = np.arange(400)
    order[held_out] = np.random.default_rng(1).permutation(held_out)
    second = two_sample_test(both[order][~is_new], both[order][is_new])
    np.testing.assert_array_equal(first.ranker.decision_function(both), second.ranker.decision_function(both))
    assert second.p_value > 0.05 > first.p_value


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=8))
def test_figures_of_cells(counts):
    reference, new = np.array(counts).T
    reference, new = reference + (np.arange(len(counts)) == 0), new + (np.arange(len(counts)) == 1)
    n, m = reference.sum(), new.sum()
    p_value = fisher_p_values(reference, new)
    z = share_z(reference, new)
    ratio, low, high = share_ratios(reference, new, 0.05)
    for i, (a, b) in enumerate(zip(reference, new, strict=True)):
        assert p_value[i] == pytest.approx(fisher_exact([[a, n - a], [b, m - b]]).pvalue)
        assert np.sign(np.round(z[i], 9)) == np.sign(b * n - a * m)
        if a + b:
            assert low[i] <= ratio[i] <= high[i]
            assert ratio[i] == pytest.approx((b / m) / (a / n) if a else np.inf)
        else:
            assert np.isnan(ratio[i])
            assert low[i] < high[i]
    adjusted = holm(p_value)
    assert (adjusted >= p_value - 1e-15).all()
    assert (adjusted <= np.minimum(1, len(p_value) * p_value) + 1e-12).all()
    assert adjusted.min() == pytest.approx(min(1, len(p_value) * p_value.min()))
    assert (np.diff(adjusted[np.argsort(p_value, kind="stable")]) >= 0).all()


# --- the same result again ----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_result_for_any_number_of_threads():
    X, Y = gaussian(0), correlated(1)
    first, second = (two_sample_test(X, Y, random_state=5, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert first.to_dict() == second.to_dict()
    assert first.to_dict() != two_sample_test(X, Y, random_state=6).to_dict()
    forest = MetaAPForest(n_estimators=5)
    drawn = [two_sample_test(X, Y, ranker=forest, test="permutation", random_state=1).to_dict() for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert not hasattr(forest, "classes_")  # a copy was fitted
    assert forest.random_state is None


@pytest.mark.parametrize(
    "ranker",
    [
        MetaAP(max_depth=2, leaf_depth=2, ccp_alpha=0.0, cv=0, pos_label="yes", budget=0.1),
        RankingTree(max_depth=3, cv=0),
        MetaAPForest(n_estimators=5),
        TreeRank(max_depth=2, leaf_ranker="oblique", cv=0),
        TreeRank(max_depth=2, leaf_ranker=LogisticRegression(), cv=0),
    ],
    ids=["MetaAP", "RankingTree", "MetaAPForest", "oblique", "classifiers"],
)
def test_any_ranker_will_do(ranker):
    result = two_sample_test(gaussian(0, n=400), gaussian(1, n=400) + 0.7, ranker=ranker)
    assert result.is_different
    assert type(result.ranker) is type(ranker)
    is_one_tree = not isinstance(ranker, MetaAPForest) and not (
        isinstance(ranker, TreeRank) and not isinstance(ranker.leaf_ranker, str)
    )
    assert bool(result.cells) == is_one_tree
    assert ("where they differ" in str(result)) == is_one_tree


@given(st.integers(4, 60), st.integers(4, 60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_rows_are_held_out_and_weighed_alike(n, m, test_size, seed):
    is_new = np.arange(n + m) >= n
    held_out = draw_held_out(is_new, test_size, np.random.default_rng(seed))
    for rows, size in ((~is_new, n), (is_new, m)):
        assert 1 <= held_out[rows].sum() <= size - 1
        assert abs(held_out[rows].sum() - test_size * size) <= 1
    weight = balanced_weights(is_new, held_out)
    assert not weight[held_out].any()
    assert weight[is_new].sum() == pytest.approx(weight[~is_new].sum())
    assert weight.max() == 1


# --- what is printed ----------------------------------------------------------------------------------------


def test_words_for_a_difference_and_for_none():
    different = two_sample_test(companies(0, 800), companies(1, 400, web_shops=0.12))
    lines = str(different).splitlines()
    assert lines[0] == "The samples differ: p < 0.0001 at level 0.05, tested on 400 reference and 200 new rows"
    assert re.fullmatch(r"AUC 0\.\d{3} \(0\.\d{3} to 0\.\d{3}\), 0\.5 = cannot be told apart; "
                        r"rank-sum test of the scores: p = 0\.\d+", lines[1])  # fmt: skip
    assert re.fullmatch(r"  1\. new has more: [\d.]+ % of the new rows, 0 % of the reference: at least [\d.]+ times, "
                        r"p < 0\.0001", lines[3])  # fmt: skip
    assert lines[4] == "       sector is web shop"
    same = two_sample_test(companies(0, 400), companies(2, 400))
    assert str(same).startswith("No difference was found: p = ")
    assert same.clear_cells == ()
    assert len(str(same).splitlines()) == 2
    assert len(same.cells) == 5  # there to be looked at


def test_names_of_categories_are_not_broken_at_hyphens(monkeypatch):
    different = two_sample_test(companies(0, 800), companies(1, 400, web_shops=0.12))
    monkeypatch.setattr(
        type(different.cells[0]), "rule", f"sector is one of {', '.join(['import-export-of-goods'] * 9)}"
    )
    lines = str(different).splitlines()
    assert len(lines) > 5
    assert not any(line.endswith("-") for line in lines)


def test_a_result_is_plain_data():
    result = two_sample_test(companies(0, 800), companies(1, 400, web_shops=0.12), n_cells=2)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["is_different"] is True
    assert [cell["rule"] for cell in data["cells"]] == [cell.rule for cell in result.cells]
    assert data["cells"][0]["ratio"] is None  # infinite: the reference has none
    assert result.auc_interval.value == pytest.approx(result.statistic)
    assert result.auc_interval.low < result.statistic < result.auc_interval.high
    assert result.auc_interval.level == 0.95
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.p_value = 0
    assert isinstance(result, TwoSampleResult)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda frame: pl.DataFrame(frame).to_arrow()],
                         ids=["pandas", "polars", "pyarrow"])  # fmt: skip
def test_cells_as_a_frame_of_the_callers_library(make):
    reference = make(companies(0, 800))
    result = two_sample_test(reference, make(companies(1, 400, web_shops=0.12)))
    frame = result.cells_frame()
    assert type(frame) is type(reference)
    columns = pl.DataFrame(frame).to_dict(as_series=False)
    assert columns == {name: [cell.to_dict()[name] for cell in result.cells] for name in columns}
    assert {*columns, "ways"} == set(result.cells[0].to_dict())
    empty = two_sample_test(reference, reference, n_cells=0).cells_frame()
    assert (type(empty), len(empty), pl.DataFrame(empty).schema) == (type(reference), 0, pl.DataFrame(frame).schema)


def test_p_values_in_words():
    texts = [p_text(p) for p in (0.5, 0.0312, 0.00061, 0.00001)]
    assert texts == [
        "p = 0.500",
        "p = 0.031",
        "p = 0.0006",
        "p < 0.0001",
    ]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"test": "t"}, ValueError, "'test' parameter of two_sample_test must be one of 'rank-sum', 'permutation'"),
        ({"level": 5}, ValueError, "'level' parameter of two_sample_test must be a float in the range .*Hint: 0.05 is"),
        (
            {"test_size": 1.0},
            ValueError,
            "'test_size' parameter of two_sample_test must be .*Hint: it is the share of held-out rows",
        ),
        ({"n_permutations": 0}, ValueError, "'n_permutations' parameter"),
        ({"n_cells": -1}, ValueError, "'n_cells' parameter"),
        ({"random_state": None}, TypeError, "'random_state' parameter"),
        ({"ranker": LogisticRegression()}, TypeError, "must be a toprank ranker or None. Got LogisticRegression"),
        ({"ranker": MetaAP}, TypeError, "must be a toprank ranker or None"),
    ],
)
def test_bad_parameters_get_a_sentence(keywords, error, message):
    with pytest.raises(error, match=message):
        two_sample_test(gaussian(0), gaussian(1), **keywords)


def test_it_is_exported():
    assert "two_sample_test" in dir(toprank)


def test_the_examples_of_the_page_run():
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/drift.md").read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    names = {"reference": companies(0, 800), "new": companies(1, 400, web_shops=0.12)}
    for block in blocks:
        exec(compile(block, "docs/drift.md", "exec"), names)
    assert names["result"].is_different


# --- too few rows, and columns of one value -----------------------------------------------------------------


TOO_FEW = "There are too few rows to say anything: the smaller table has {}, and at least {} in each are needed."


def pairs(seed, n):
    return gaussian(seed, n, d=2)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0.001, 0.5))
def test_the_clearest_outcome_is_one_of_all_choices(n, m, level):
    assert is_decisive(n, m, level) == (math.comb(n + m, n) * level >= 1 - 1e-9)


@given(st.integers(1, 30), st.floats(0.05, 0.95), st.floats(1e-6, 0.5))
def test_rows_needed_are_the_first_number_that_is_enough(min_leaf, test_size, level):
    def is_enough(n):
        n_tested = held_out_size(n, test_size)
        return n - n_tested >= min_leaf and math.comb(2 * n_tested, n_tested) * level >= 1 - 1e-9

    needed = rows_needed(min_leaf, test_size, level)
    assert needed == next(n for n in range(4, 10_000) if is_enough(n))


def test_rows_needed_of_a_tiny_share_take_no_time():
    assert rows_needed(5, 1e-9, 0.05) > 10**9


@pytest.mark.parametrize("sizes", [(1000, 5), (5, 1000), (5, 8)])
def test_too_few_rows_are_told_without_a_warning(sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = two_sample_test(pairs(0, sizes[0]), pairs(1, sizes[1]) + 100)
    assert result.obstacle == str(result) == TOO_FEW.format(5, 9)
    assert (result.is_different, result.p_value) == (False, 1.0)


def test_with_the_rows_that_are_needed_a_difference_is_found():
    assert two_sample_test(pairs(0, 8), pairs(1, 8) + 100).obstacle == TOO_FEW.format(8, 9)
    result = two_sample_test(pairs(0, 9), pairs(1, 9) + 100)
    assert result.obstacle is None
    assert result.is_different


def test_the_level_asks_for_rows_too():
    result = two_sample_test(pairs(0, 12), pairs(1, 12) + 100, level=1e-4)
    assert result.obstacle == TOO_FEW.format(12, 15)
    assert not result.is_different
    assert two_sample_test(pairs(0, 15), pairs(1, 15) + 100, level=1e-4).obstacle is None


def test_the_ranker_asks_for_rows_too():
    X, Y = pairs(0, 60), pairs(1, 30)
    assert two_sample_test(X, Y, ranker=RankingTree(min_samples_leaf=20)).obstacle == TOO_FEW.format(30, 40)
    assert two_sample_test(X, Y, ranker=RankingTree(min_samples_leaf=5)).obstacle is None
    assert two_sample_test(X, Y[:6], ranker=MetaAPForest(n_estimators=5)).obstacle is None  # its trees have conditions


@pytest.mark.parametrize("size", [50, 80])
def test_columns_of_one_value_are_told(size):
    tables = [pd.DataFrame({"a": [1.0] * n, "b": ["x"] * n, "c": [np.nan] * n}) for n in (50, size)]
    result = two_sample_test(*tables)
    assert str(result) == "There is nothing to compare: every column has a single value in both tables."
    assert result.to_dict()["obstacle"] == result.obstacle
    tables[1]["b"] = "y"  # one value in either, but not in both
    assert two_sample_test(*tables).is_different


def test_identifiers_are_left_out_with_a_warning():
    tables = [pd.DataFrame({"x": np.arange(n) % 7, "case_id": [f"{start}{i}" for i in range(n)]})
              for n, start in ((60, "old"), (70, "new"))]  # fmt: skip
    with pytest.warns(UserWarning, match=r"leaves out 1 column: 'case_id' \(identifier\). Hint: ranker=TreeRank\("):
        result = two_sample_test(*tables)
    assert not result.is_different
    kept = two_sample_test(*tables, ranker=TreeRank(keep_columns=["case_id"], cv=0))
    assert kept.ranker.left_out_ == {}
