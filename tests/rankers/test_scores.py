"""Scores and rates against their definitions."""

import re
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import reference
from ranker_cases import RANKERS, cases, fewer, make_cases, variant
from toprank import MetaAP, RankingTree, TreeRank, load
from toprank.rankers.leaf_rates import finish_tree, smoothed_rates
from toprank.rankers.leaf_scores import LINEAR_CELLS, LINEAR_ROWS, _choose_rows, _merge_equal_rows
from toprank.tree.bin_mapper import center_and_spread, distinct_values

PLAIN: dict[str, Any] = {"criterion": "ap", "ccp_alpha": 0.0, "min_samples_leaf": 5, "cv": 0}


def encoded(model, case):
    return model._encode(case.pandas())


@pytest.mark.parametrize("kind", ["rate", "geometric", "confusion", "constant", "margin", "paper"])
@fewer(4)
@given(case=cases(kinds=("ties", "spread", "neighbours", "constant", "missing", "category")))
def test_scores_follow_their_definition(kind, case):
    model = clone(RANKERS[kind]).fit(case.pandas(), case.y, case.weight)
    expected = [reference.score(model.tree_, row.tolist()) for row in encoded(model, case)]
    assert model.decision_function(case.pandas()) == pytest.approx(expected, rel=1e-12)


@fewer(4)
@given(case=cases(), confusion=st.sampled_from([0.0, 0.3, 1.0]))
def test_the_confusion_score_is_a_vote_of_all_leaves(case, confusion):
    model = RankingTree(leaf_score="votes", vote_decay=confusion, max_depth=3, min_samples_leaf=1, cv=0)
    model.fit(case.pandas(), case.y, case.weight)
    rows = encoded(model, case)
    expected = [reference.confusion_score(model.tree_, row.tolist(), confusion) for row in rows]
    score = model.decision_function(case.pandas())
    assert score == pytest.approx(expected)
    if confusion == 0.0:
        assert score == pytest.approx(model.tree_.rate[model.apply(case.pandas())])
    if confusion == 1.0:
        assert np.ptp(score) < 1e-12


def test_the_geometric_score_puts_rows_of_rich_leaves_first_the_deeper_the_better():
    X = np.linspace(-1, 1, 100).reshape(-1, 1)
    y = (X[:, 0] > 0.5).astype(int)
    model = RankingTree(leaf_score="margin", max_depth=1, cv=0).fit(X, y)
    score = model.decision_function(X)
    assert np.all(np.diff(score) > 0)  # signed distance to the one threshold
    assert score[y == 1].min() > score[y == 0].max()


def test_raw_distances_are_in_units_of_the_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1.0, 1000.0]
    y = (X[:, 0] + X[:, 1] / 1000 > 0.8).astype(int)
    raw, scaled = (
        RankingTree(leaf_score="margin", distance=unit, max_depth=3, cv=0).fit(X, y) for unit in ("raw", "scaled")
    )
    assert raw.tree_.scoring.scale.tolist() == [1.0, 1.0]
    assert scaled.tree_.scoring.scale[1] > 500
    assert not np.array_equal(np.argsort(raw.decision_function(X)), np.argsort(scaled.decision_function(X)))


def test_the_geometric_score_turns_at_a_majority_of_positives():
    X = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    y = np.concatenate((np.zeros(20), np.arange(20) < 8, np.arange(20) < 16)).astype(int)  # 0, 40 and 80 % positive
    model = RankingTree(leaf_score="margin", max_depth=2, min_samples_leaf=1, cv=0).fit(X, y)
    assert model.tree_.score[model.apply([[2.0]])] > model.tree_.score[model.apply([[1.0]])]
    assert model.tree_.score[model.apply([[1.0]])] == model.tree_.score[model.apply([[0.0]])]


# The linear score


def numeric_rows(n=400):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4)) * [1.0, 50.0, 0.01, 1.0] + [0.0, 100.0, 3.0, -1.0]
    y = (rng.random(n) < 1 / (1 + np.exp(3 - X[:, 0] - (X[:, 1] - 100) / 40))).astype(int)
    return X, y


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_linear_score_is_scikit_learns_decision_function_up_to_a_constant(C):
    X, y = numeric_rows()
    model = MetaAP(leaf_score="linear", logistic_C=C, **PLAIN).fit(X, y)
    scoring = model.tree_.scoring
    points = np.array([reference.scorecard(row.tolist(), scoring) for row in X])
    standard = StandardScaler().fit_transform(X)
    regression = LogisticRegression(
        C=C, l1_ratio=1.0, solver="liblinear", intercept_scaling=1e4, tol=1e-8, max_iter=5000, random_state=0
    )  # liblinear's penalty on the intercept all but goes
    decision = regression.fit(standard, y).decision_function(standard)
    assert np.ptp(decision - points) < 0.01 * np.ptp(decision)
    assert (scoring.weight == 0).sum() == (regression.coef_ == 0).sum()


def test_a_smaller_C_uses_fewer_columns():
    X, y = numeric_rows()
    used = [
        (MetaAP(leaf_score="linear", logistic_C=C, **PLAIN).fit(X, y).tree_.scoring.weight != 0).sum()
        for C in (1e-3, 0.03, 10)
    ]
    assert used[0] == 0
    assert used == sorted(used)
    assert used[-1] >= 3


def test_inside_a_leaf_the_points_decide():
    X, y = numeric_rows()
    model = MetaAP(max_depth=1, leaf_depth=1, leaf_score="linear", **PLAIN).fit(X, y)
    points = np.array([reference.scorecard(row.tolist(), model.tree_.scoring) for row in X])
    score, leaf = model.decision_function(X), model.apply(X)
    for node in np.unique(leaf):
        own = leaf == node
        assert np.array_equal(np.argsort(points[own], kind="stable"), np.argsort(score[own], kind="stable"))
    assert len(np.unique(leaf)) == 2


def test_missing_values_and_categories_have_points_of_their_own():
    X, y = make_cases(600)
    scoring = MetaAP(leaf_score="linear", logistic_C=10.0, **PLAIN).fit(X, y).tree_.scoring
    assert scoring.points_at.tolist() == [0, 0, 0, 5]
    centre, east, north, south, west = scoring.category_points
    assert min(centre, east) > max(north, south, west)
    assert scoring.missing[0] == 0.0  # size is never missing
    assert scoring.missing[1] != 0.0


@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308])
def test_points_beyond_all_floats_still_give_a_score_inside_the_leaf(value):
    X, y = numeric_rows()
    model = MetaAP(leaf_score="linear", **PLAIN).fit(X, y)
    far = np.full((1, 4), value)
    position = model.tree_.leaf[model.apply(far)][0]
    score = model.decision_function(far)[0]
    n_leaves = model.tree_.n_leaves
    assert 1 - (position + 1) / n_leaves < score < 1 - position / n_leaves


def test_many_rows_are_thinned_out_negatives_first():
    rng = np.random.default_rng(0)
    is_positive = rng.random(2 * LINEAR_ROWS) < 0.02
    rows, weight = _choose_rows(is_positive, None, 30)
    assert len(rows) == len(set(rows.tolist())) == LINEAR_ROWS
    assert is_positive[rows].sum() == is_positive.sum()
    assert weight.sum() == pytest.approx(LINEAR_ROWS)
    assert weight[is_positive[rows]].sum() / weight.sum() == pytest.approx(is_positive.mean())
    rows, weight = _choose_rows(np.arange(10) < 3, np.arange(10.0), 30)
    assert rows.tolist() == list(range(1, 10))
    assert weight.tolist() == list(range(1, 10))


def test_wide_tables_give_fewer_rows_of_the_same_weight():
    is_positive = np.random.default_rng(0).random(LINEAR_ROWS) < 0.02
    rows, weight = _choose_rows(is_positive, None, 5_000)
    assert len(rows) == LINEAR_CELLS // 5_000
    assert is_positive[rows].sum() == is_positive.sum()
    assert weight.sum() == pytest.approx(LINEAR_ROWS)


@given(
    rows=st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, -0.0, 1.0, np.nan]), st.integers(1, 3)), min_size=1, max_size=9
    )
)
def test_equal_rows_are_merged_in_an_order_of_their_own(rows):
    label, value, weight = (np.array(column) for column in zip(*rows, strict=True))
    X, merged_label, merged_weight = _merge_equal_rows(value.reshape(-1, 1), label, weight.astype(float))
    expected = {}
    for row in rows:
        key = (row[0], "missing" if np.isnan(row[1]) else row[1] + 0.0)
        expected[key] = expected.get(key, 0) + row[2]
    keys = [(bool(a), "missing" if np.isnan(b) else float(b)) for a, b in zip(merged_label, X[:, 0], strict=True)]
    assert dict(zip(keys, merged_weight, strict=True)) == expected
    back = _merge_equal_rows(value[::-1].reshape(-1, 1), label[::-1], weight[::-1].astype(float))
    assert np.array_equal(back[0], X, equal_nan=True)
    assert np.array_equal(back[2], merged_weight)


# Column scales


@given(
    values=st.lists(st.sampled_from([0.1, 0.7, 1e9, -3.3, np.nan]), min_size=1, max_size=12),
    data=st.data(),
)
def test_center_and_spread_are_exact_in_any_order(values, data):
    column = np.array(values)
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(values), max_size=len(values))))
    center, spread = center_and_spread(*distinct_values(column, weight))
    order = np.array(data.draw(st.permutations(range(len(values)))))
    assert center_and_spread(*distinct_values(column[order], weight[order])) == (center, spread)
    assert center_and_spread(*distinct_values(np.repeat(column, weight), None)) == (center, spread)
    known = ~np.isnan(column)
    if known.any():
        mean = np.average(column[known], weights=weight[known])
        deviation = np.sqrt(np.average((column[known] - mean) ** 2, weights=weight[known]))
        assert (center, spread) == (pytest.approx(mean), pytest.approx(deviation, abs=1e-6))
    else:
        assert (center, spread) == (0.0, 0.0)


def test_scales_of_huge_and_constant_columns():
    assert center_and_spread(*distinct_values(np.array([-1.7e308, 1.7e308]), None)) == (0.0, 1.7e308)
    assert center_and_spread(*distinct_values(np.full(7, 0.1), None))[1] == 0.0
    X = np.column_stack((np.full(40, 0.1), np.arange(40.0), np.full(40, np.nan)))
    scale = MetaAP(leaf_score="margin", keep_columns="all", **PLAIN).fit(X, np.arange(40) % 4 == 0).tree_.scoring.scale
    assert scale == pytest.approx([1.0, np.std(np.arange(40)), 1.0])


# Leaf rates


def test_smoothed_rates_from_their_formulas():
    positive, total = np.array([10.0, 8.0, 2.0, 5.0, 3.0]), np.array([100.0, 20.0, 80.0, 5.0, 15.0])
    parent = np.array([-1, 0, 0, 1, 1])
    raw = positive / total
    assert np.array_equal(smoothed_rates(positive, total, parent, None, 10.0), raw)
    m_estimate = smoothed_rates(positive, total, parent, "m-estimate", 10.0)
    assert m_estimate == pytest.approx([(p + 10 * 0.1) / (n + 10) for p, n in zip(positive, total, strict=True)])
    one = 0.1 + (0.4 - 0.1) / (1 + 10 / 100)
    hierarchical = smoothed_rates(positive, total, parent, "hierarchical", 10.0)
    assert hierarchical[[0, 1]] == pytest.approx([0.1, one])
    assert hierarchical[3] == pytest.approx(one + (1.0 - 0.4) / (1 + 10 / 20))


@pytest.mark.parametrize("kind", ["rate", "margin"])
@pytest.mark.parametrize("smoothing", ["hierarchical", "m-estimate"])
def test_more_smoothing_brings_rates_together(kind, smoothing):
    X, y = make_cases(600)
    spread = []
    for strength in (0.0, 10.0, 100.0, 1e9):
        model = variant(kind, smoothing=smoothing, smoothing_strength=strength).fit(X, y)
        spread.append(np.ptp(model.tree_.rate[model.tree_.is_leaf]))
    assert spread == sorted(spread, reverse=True)
    assert spread[-1] < 1e-6 < spread[1] < spread[0]


def test_without_smoothing_a_leaf_has_its_own_rate():
    X, y = make_cases(600)
    model = RankingTree(max_depth=2, smoothing=None, cv=0).fit(X, y)
    leaf = model.apply(X)
    for node in np.unique(leaf):
        assert model.tree_.rate[node] == pytest.approx(y[leaf == node].mean())


def test_finished_trees_have_rates_that_fall_even_where_the_order_says_otherwise():
    tree = RankingTree(max_depth=2, smoothing=None, cv=0).fit(*make_cases(600)).tree_
    rate = np.array([tree.rate[tree.leaf == position][0] for position in range(tree.n_leaves)])
    turned = finish_tree(tree, tree.leaf, rate[::-1], tree.scoring)
    leaves = np.flatnonzero(tree.is_leaf)
    falling = turned.rate[leaves[np.argsort(turned.leaf[leaves], kind="stable")]]
    assert np.all(np.diff(falling) <= 0)
    assert np.ptp(falling) < 1e-12  # rising rates are pooled


def test_leaves_are_ranked_by_rate_or_as_the_meta_tree_has_them():
    X, y = make_cases(600)
    meta = MetaAP(leaf_order="meta", smoothing=None, leaf_score="constant", **PLAIN).fit(X, y)
    by_rate = MetaAP(leaf_order="rate", smoothing=None, leaf_score="constant", **PLAIN).fit(X, y)
    assert meta.n_leaves_ == by_rate.n_leaves_
    leaf_of = {model: model.tree_.leaf[model.apply(X)] for model in (meta, by_rate)}
    pairs = {*zip(leaf_of[meta].tolist(), leaf_of[by_rate].tolist(), strict=True)}
    assert len(pairs) == meta.n_leaves_  # the same leaves in another order
    assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs)


# Published settings


def test_the_paper_has_one_depth_exact_splits_and_no_smoothing():
    model = MetaAP.paper(3)
    expected = {"max_depth": 3, "leaf_depth": None, "leaf_order": "meta", "leaf_score": "margin", "min_samples_leaf": 1,
                "min_samples_split": 2, "min_gain": -np.inf, "smoothing": None, "splitter": "midpoint",
                "ccp_alpha": 0.0, "max_leaf_nodes": None, "stop_at_ap_loss": False}  # fmt: skip
    assert {name: value for name, value in model.get_params().items() if name in expected} == expected
    assert MetaAP.paper(3, leaf_score="constant", budget=5).get_params() == model.get_params() | {
        "leaf_score": "constant",
        "budget": 5,
    }
    X, y = make_cases(300)
    fitted = model.fit(X, y)
    twin = MetaAP.paper(3, leaf_depth=3).fit(X, y)
    assert fitted.tree_ == twin.tree_
    assert 4 < fitted.n_leaves_ <= 8


def test_the_stopping_rule_of_the_published_code_is_one_of_ap():
    X, y = make_cases(300)
    assert MetaAP.paper(3).fit(X, y).tree_ != MetaAP.paper(3, stop_at_ap_loss=True).fit(X, y).tree_
    with pytest.raises(
        ValueError, match=r"stop_at_ap_loss=True needs .*criterion='ap', but criterion is 'gini'.*Hint:"
    ):
        MetaAP(criterion="gini", stop_at_ap_loss=True, cv=0).fit(X, y)


@pytest.mark.parametrize("splitter", ["hist", "exact"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "ap", "auc"])
def test_every_criterion_finds_what_is_there(splitter, criterion):
    X, y = make_cases(600)
    model = RankingTree(criterion=criterion, splitter=splitter, max_leaf_nodes=8, min_gain=1e-4, cv=0).fit(X, y)
    assert 3 <= model.n_leaves_ <= 8
    assert model.score(X, y) > 2 * y.mean()


def test_a_rich_leaf_found_late_overtakes_poor_ones_only_when_leaves_are_ordered_by_rate():
    """Two separate pockets: the meta-tree's own order leaves the second behind what was cut off with the first."""
    rng = np.random.default_rng(0)
    X = rng.random((6000, 3))
    rate = np.where(X[:, 0] > 0.95, 0.7, np.where(X[:, 1] > 0.95, 0.5, 0.004))
    y = rng.random(6000) < rate
    settings = PLAIN | {"max_depth": 4, "leaf_depth": 2, "leaf_score": "margin", "min_samples_leaf": 20}
    published, ours = (MetaAP(leaf_order=order, **settings).fit(X, y) for order in ("meta", "rate"))
    assert not np.array_equal(published.tree_.leaf, ours.tree_.leaf)
    raw = ours.rules()["training_rate"].to_numpy()
    assert raw[0] > 0.4
    assert ours.score(X, y) > published.score(X, y)


def test_the_cutoff_holds_the_budget_on_a_large_table():
    rng = np.random.default_rng(0)
    X = rng.random((120_000, 2))
    y = rng.random(120_000) < np.where(X[:, 0] > 0.99, 0.5, 0.001)
    settings = PLAIN | {"max_depth": 2, "leaf_depth": 2, "leaf_score": "margin", "budget": 40}
    model = MetaAP(**settings).fit(X, y)
    assert model.predict(X).sum() == model.cutoff_.n_above == 40
    half = np.where(np.arange(120_000) % 2, 1.0, 0.0)
    weighted = MetaAP(**settings).fit(X, y, half)
    assert weighted.predict(X[half > 0]).sum() == pytest.approx(40, abs=3)


# The scorecard as it is shown


def points_by_hand(text, row):
    """Points of a row, added up from what the text of a model says."""
    block = text.partition("Inside a leaf, cases with more points come first:\n")[2].partition("\n\n")[0]
    total = 0.0
    for line in re.sub(r"\n {6}", " ", block).splitlines():
        number = re.match(r"  (\S+) per (\S+) of (\w+) above ([^\s;]+)", line)
        name = number[3] if number else line.split()[0]
        value = row[name]
        if value is None or value != value:
            missing = re.search(r"missing: (\S+)", line)
            total += float(missing[1]) if missing else 0.0
        elif number:
            unit, center = (float(part.replace(",", "")) for part in (number[2].replace("unit", "1"), number[4]))
            total += float(number[1]) / unit * (value - center)
        else:
            own = re.search(rf"[ ,]{value} ([+-][\d.]+)", line)
            total += float(own[1]) if own else 0.0
    return total


@pytest.mark.parametrize("ranker", [MetaAP, TreeRank])
def test_points_added_up_from_the_text_order_the_rows_inside_a_leaf(ranker):
    X, y = make_cases(600)
    X = X.assign(size=1000 * X["size"])
    model = ranker(max_depth=2, leaf_score="linear", logistic_C=10.0).fit(X, y)
    text = model.to_text(tree=True)
    assert " per " in text
    by_hand = np.array([points_by_hand(text, row) for row in X.to_dict("records")])
    exact = np.array([reference.scorecard(row.tolist(), model.tree_.scoring) for row in model._encode(X)])
    assert np.ptp(by_hand - exact) < 0.02 * np.ptp(exact)  # three digits
    place, score = model.tree_.leaf[model.apply(X)], model.decision_function(X)
    for leaf in range(model.tree_.n_leaves):
        own = np.flatnonzero(place == leaf)
        apart = by_hand[own][:, None] > by_hand[own] + 0.02 * np.ptp(exact)
        assert np.all((score[own][:, None] > score[own])[apart])
        assert apart.any()


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
def test_the_scorecard_is_a_frame_of_what_has_points(form):
    X, y = make_cases(600)
    frame = {"pandas": lambda: X, "polars": lambda: pl.from_pandas(X), "pyarrow": lambda: pa.Table.from_pandas(X)}[
        form
    ]()
    model = MetaAP(leaf_score="linear", logistic_C=10.0, **PLAIN).fit(frame, y)
    card = model.scorecard()
    assert isinstance(card, type(frame))
    table = pl.DataFrame(card) if form == "pandas" else pl.DataFrame(pl.from_arrow(card)) if form == "pyarrow" else card
    assert table.columns == ["column", "category", "counts", "points", "center"]
    scoring = model.tree_.scoring
    size = table.filter((pl.col("column") == "size") & (pl.col("counts") == "per unit"))
    assert size["points"].to_list() == [scoring.weight[0]]
    assert size["center"].to_list() == [scoring.center[0]]
    places = table.filter(pl.col("counts") == "category")
    assert set(zip(places["category"], places["points"], strict=True)) == {
        pair for pair in zip(model.columns_[2].categories, scoring.category_points, strict=True) if pair[1]
    }
    assert table.filter(pl.col("counts") == "missing")["points"].to_list() == [scoring.missing[1]]
    listed = ", ".join(dict.fromkeys(table["column"]))
    assert f"inside leaves: scorecard of 3 columns: {listed}" in model.summary()


def test_the_column_that_moves_rows_most_comes_first_in_any_unit():
    X, y = numeric_rows()
    model = MetaAP(leaf_score="linear", **PLAIN).fit(X, y)
    points = model.tree_.scoring.weight * X.std(axis=0)
    assert model._points_spread == pytest.approx(np.abs(points))
    order = [f"x{f}" for f in np.argsort(-np.abs(points)) if points[f]]
    assert list(model.scorecard()["column"]) == order
    twice = MetaAP(leaf_score="linear", **PLAIN).fit(X, y, np.full(len(X), 2.0))
    assert twice._points_spread == pytest.approx(np.abs(twice.tree_.scoring.weight) * X.std(axis=0))


def test_a_scorecard_comes_back_from_a_file(tmp_path):
    X, y = make_cases(300)
    model = MetaAP(leaf_score="linear", **PLAIN).fit(X, y)
    model.save(tmp_path / "model.toprank")
    assert load(tmp_path / "model.toprank").scorecard().equals(model.scorecard())


@pytest.mark.parametrize("model", [MetaAP(leaf_score="margin", **PLAIN), RankingTree(cv=0)])
def test_a_ranker_without_a_scorecard_says_so(model):
    X, y = make_cases(200)
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=rf"{type(model).__name__}\.scorecard needs .*Hint: .*leaf_score='linear'"):
        model.scorecard()
    assert "inside leaves: scorecard" not in model.summary()


def test_a_tree_whose_leaves_share_places_says_so():
    X, y = make_cases(400)
    model = RankingTree(leaf_score="margin", max_depth=3, min_samples_leaf=1, cv=0).fit(X, y)
    assert model.tree_.n_leaves == 2 < model.n_leaves_
    assert f"{model.n_leaves_} leaves, " in model.summary()
    assert "; the leaves share 2 places in the ranking\n" in model.summary()
    assert len(model.rules()) == 2
    assert "share" not in RankingTree(max_depth=3, cv=0).fit(X, y).summary()
