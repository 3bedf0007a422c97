"""ExtraTrees: the scale on which thresholds are drawn, conditions, values of leaves, and what it ranks well."""

import numpy as np
import pytest

from ranker_cases import make_cases
from toprank import ExtraTrees, InputError
from toprank.metrics import average_precision
from toprank.rankers.ensemble import extra_trees
from toprank.rankers.ensemble.extra_trees import PRIOR_CASES, RankScale, draw_cases
from toprank.tree.additive import AdditiveTrees
from toprank.tree.columns import Column

X, Y = make_cases(300)


def leaf_of(trees, root, row):
    """The leaf of one tree that a row reaches, by its conditions, one by one."""
    node = int(root)
    while not trees.is_leaf[node]:
        value = row[trees.feature[node]]
        if np.isnan(value):
            goes_left = bool(trees.missing_left[node])
        elif trees.category_at[node] >= 0:
            bits = np.unpackbits(trees.category_bits[trees.category_at[node]].view(np.uint8), bitorder="little")
            goes_left = bool(bits[int(value)])
        else:
            goes_left = value <= trees.threshold[node]
        node = int(trees.left[node] if goes_left else trees.right[node])
    return node


def test_a_score_is_the_mean_of_the_log_odds_of_the_leaves():
    model = ExtraTrees(n_estimators=6, cv=0, random_state=0).fit(X, Y)
    matrix, trees = model._encode(X), model.trees_
    base = Y.mean()
    expected = np.zeros(len(Y))
    for root in trees.root:
        leaf = np.array([leaf_of(trees, root, row) for row in matrix])
        for own in np.unique(leaf):
            inside = leaf == own
            rate = (Y[inside].sum() + PRIOR_CASES * base) / (inside.sum() + PRIOR_CASES)
            expected[inside] += np.log(rate / (1 - rate)) / len(trees)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_rows_reach_the_leaves_that_they_reached_during_growth(seed):
    """The conditions on values part the rows as scikit-learn's thresholds parted their ranks."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack((rng.normal(size=500), rng.integers(0, 4, 500), rng.integers(0, 9, 500).astype(float)))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    y = (np.nan_to_num(rows[:, 0]) + (rows[:, 2] == 3) + rng.normal(size=500) > 1.5).astype(int)
    columns = [Column("a"), Column("b"), Column("c", categories=tuple("abcdefghi"))]
    scale = RankScale.from_rows(rows, np.ones(500), columns)
    places = scale.draw_places(rng)
    ranks = places.ranks_of(scale.ranks(rows))
    assert np.isfinite(ranks).all()
    tree = extra_trees.ExtraTreeClassifier(max_depth=6, random_state=seed).fit(ranks, y).tree_
    parts = scale.conditions(tree, places)
    trees = extra_trees.AdditiveTrees.from_parts([parts], 3)
    np.testing.assert_array_equal([leaf_of(trees, 0, row) for row in rows], tree.apply(ranks))


def test_missing_values_are_told_from_the_others_on_either_side():
    rows = np.full((400, 1), 3.0)
    rows[::2] = np.nan
    y = ((np.arange(400) % 2 == 0) & (np.arange(400) % 3 > 0)).astype(int)
    model = ExtraTrees(n_estimators=20, keep_columns="all", cv=0).fit(rows, y)
    trees = model.trees_
    assert set(trees.threshold[~trees.is_leaf].tolist()) == {-np.inf, np.inf}
    missing, known, other = model.decision_function([[np.nan], [3.0], [-8.0]])
    assert missing > known == other


def test_the_scale_of_a_column_does_not_matter():
    rows = np.random.default_rng(1).lognormal(size=(300, 3))
    y = (rows[:, 0] * rows[:, 1] > 2.5).astype(int)
    scores = [
        ExtraTrees(n_estimators=10, cv=0).fit(given, y).decision_function(given) for given in (rows, 64.0 * rows - 8.0)
    ]
    np.testing.assert_allclose(*scores, rtol=1e-6)


def test_drawn_negatives_stand_for_the_others(monkeypatch):
    monkeypatch.setattr(extra_trees, "MOST_CASES", 40)
    monkeypatch.setattr(extra_trees, "MOST_PER_POSITIVE", 3)
    is_positive = np.arange(100) % 10 == 0
    ranks, weight = np.arange(100.0)[:, None], np.full(100, 2.0)
    part, labels, weights = draw_cases(ranks, is_positive, weight, np.random.default_rng(0))
    assert labels.sum() == 10
    assert (~labels).sum() == 30
    assert weights[labels].sum() == pytest.approx(20)
    assert weights[~labels].sum() == pytest.approx(180)
    assert np.all(np.diff(part[:, 0]) > 0)
    again, *_ = draw_cases(ranks, is_positive, weight, np.random.default_rng(1))
    assert not np.array_equal(part, again)


def test_the_model_does_not_depend_on_the_number_of_threads():
    models = [ExtraTrees(n_estimators=8, cv=3, n_jobs=n, random_state=3).fit(X, Y) for n in (1, 2)]
    assert np.array_equal(*(model.decision_function(X) for model in models))
    assert models[0].cutoff_ == models[1].cutoff_


def test_few_positives_and_columns_of_noise():
    """Where a handful of positives differ a little in many columns, chance fits of single columns average out."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(2000, 20))
    y = np.zeros(2000, int)
    y[:40] = 1
    rows[:40, :6] += 0.9
    train = np.arange(2000) % 2 == 0
    model = ExtraTrees(cv=0, random_state=0).fit(rows[train], y[train])
    assert average_precision(y[~train], model.decision_function(rows[~train])) > 0.3


def test_more_conditions_than_a_path_may_have_are_refused():
    with pytest.raises(ValueError, match="'max_depth' parameter of ExtraTrees"):
        ExtraTrees(max_depth=31).fit(X, Y)


def test_parameters_bound_the_trees():
    model = ExtraTrees(n_estimators=5, max_depth=4, cv=0, random_state=0).fit(X, Y)
    assert model.trees_.depth == 4
    weight = model.trees_.node_weights(model._encode(X), np.ones(len(Y)))
    assert weight[model.trees_.is_leaf].min() >= 5
    large = ExtraTrees(n_estimators=5, min_samples_leaf=200, cv=0).fit(X, Y)
    assert large.trees_.is_leaf.all()
    one = ExtraTrees(n_estimators=5, max_features=1, cv=0, random_state=0).fit(X, Y)
    every = ExtraTrees(n_estimators=5, cv=0, random_state=0).fit(X, Y)
    first = [np.bincount(model.trees_.feature[model.trees_.root], minlength=3) for model in (one, every)]
    assert not np.array_equal(*first)


def test_equal_weights_are_no_weights():
    plain, light = (ExtraTrees(n_estimators=5, cv=0).fit(X, Y, sample_weight=w) for w in (None, np.full(len(Y), 1e-3)))
    np.testing.assert_allclose(plain.decision_function(X), light.decision_function(X), rtol=1e-5)


@pytest.mark.parametrize("weight", [None, "fractions"])
def test_the_order_of_the_rows_does_not_matter(weight, monkeypatch):
    monkeypatch.setattr(extra_trees, "MOST_PER_POSITIVE", 2)
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(400, 4)), rng.random(400) < 0.1
    weights = None if weight is None else rng.random(400) + 0.1
    order = rng.permutation(400)
    model = ExtraTrees(n_estimators=5, cv=0).fit(rows, y, weights)
    other = ExtraTrees(n_estimators=5, cv=0).fit(rows[order], y[order], None if weights is None else weights[order])
    np.testing.assert_allclose(model.decision_function(rows), other.decision_function(rows), rtol=1e-5)


def test_missing_values_are_as_far_away_as_they_are_many():
    rows = np.arange(100.0)[:, None]
    rows[:80] = np.nan
    scale = RankScale.from_rows(rows, np.ones(100), [Column("a")])
    assert scale.gap.tolist() == [80.0]  # 20 ranks of known values, and four times as many cases without one


def test_categories_without_cases_stand_with_missing_values():
    rows = np.array([0.0, 2.0, 0.0, 2.0, 2.0])[:, None]
    column = Column("a", categories=("north", "east", "south", "west"))
    places = RankScale.from_rows(rows, np.ones(5), [column]).draw_places(np.random.default_rng(0))
    order = places.orders[0]
    assert order[1] == order[3] == places.missing[0]
    assert len({order[0], order[1], order[2]}) == 3


@pytest.mark.parametrize(
    ("name", "change"),
    [("value", lambda array: array + np.float32(3e38)), ("gain", lambda array: array + 1e308),
     ("cover", lambda array: array + 1e308), ("category_bits", lambda array: np.zeros((99_999, 4), np.uint64)),
     ("kind", lambda array: np.where(array == 1, np.uint8(3), array))],
)  # fmt: skip
def test_damaged_trees_are_refused(name, change):
    model = ExtraTrees(n_estimators=3, cv=0).fit(X, Y)
    arrays = model.trees_.to_arrays()
    with pytest.raises(InputError):
        AdditiveTrees.from_arrays(arrays | {name: change(arrays[name])}, model.columns_)


def test_conditions_are_of_the_kinds_of_their_columns():
    arrays = ExtraTrees(n_estimators=3, cv=0).fit(X, Y).trees_.to_arrays()
    numbers = [Column(name) for name in X.columns]
    with pytest.raises(InputError, match="kinds of their columns"):
        AdditiveTrees.from_arrays(arrays, numbers)
