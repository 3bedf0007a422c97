import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ranker_cases import fewer
from tables import tables
from toprank import CostTree, MetaAP, RankingTree, load
from toprank.datasets import make_audit

NUMBERS = ("ties", "spread", "neighbours", "constant", "missing")


def numeric_case(table):
    """Table, labels and weights, where there is something to learn."""
    y, weight = table.is_positive.astype(int), table.sample_weight
    present = np.ones(len(y), bool) if weight is None else weight > 0
    assume(0 < y[present].sum() < present.sum())
    return table.X, y, weight


def never_turns(values, direction):
    """Whether values go the way that a direction allows."""
    return (np.diff(values) * direction >= 0).all()


def check_directions(model, X, directions, *answers):
    """Assert that each answer goes the right way along each constrained column, all else as in some row."""
    grid = np.unique(X[~np.isnan(X)])
    grid = np.unique(np.concatenate((grid, grid + 1e-9, grid - 0.5, [-1e6, 1e6])))
    for row in X[:8]:
        for feature in np.flatnonzero(directions):
            moved = np.tile(row, (len(grid), 1))
            moved[:, feature] = grid
            for answer in answers:
                values = np.asarray(answer(model, moved), float)
                assert never_turns(values, directions[feature]), (feature, grid, values)


def score(model, X):
    return model.decision_function(X)


def rate(model, X):
    return model.predict_proba(X)[:, 1]


def label(model, X):
    return model.predict(X)


@pytest.mark.filterwarnings("ignore:Column.* empty in all")
@fewer(2)
@given(
    tables(kinds=NUMBERS),
    st.data(),
    st.sampled_from(["gini", "entropy", "ap", "auc"]),
    st.sampled_from(["hist", "exact"]),
    st.sampled_from([None, "hierarchical", "m-estimate"]),
)
def test_raising_a_column_never_moves_the_score_of_a_ranking_tree_the_wrong_way(
    table, data, criterion, splitter, smoothing
):
    X, y, weight = numeric_case(table)
    directions = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=X.shape[1], max_size=X.shape[1])))
    max_leaf_nodes = data.draw(st.sampled_from([None, 6]))
    model = RankingTree(criterion=criterion, splitter=splitter, smoothing=smoothing, min_samples_leaf=1,
                        max_leaf_nodes=max_leaf_nodes, monotonic_cst=directions, cv=0)  # fmt: skip
    check_directions(model.fit(X, y, weight), X, directions, score, rate)


@pytest.mark.filterwarnings("ignore:Column.* empty in all")
@fewer(4)
@given(tables(kinds=NUMBERS), st.data())
def test_raising_a_column_never_moves_score_or_label_of_a_cost_tree_the_wrong_way(table, data):
    X, y, weight = numeric_case(table)
    directions = np.array(data.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=X.shape[1], max_size=X.shape[1])))
    model = CostTree(ccp_alpha=0.01, leaf_score="constant", monotonic_cst=directions, fp_cost=0.7, cv=0)
    check_directions(model.fit(X, y, weight), X, directions, score, rate, label)


@pytest.fixture(scope="module")
def waves():
    """A rate that rises along the first column with a dip in it, and depends on the second."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 2))
    rate = 0.1 + 0.5 * X[:, 0] - 0.3 * (np.abs(X[:, 0] - 0.6) < 0.1) + 0.2 * (X[:, 1] > 0.5)
    return X, (rng.random(3000) < rate).astype(int)


def test_without_the_constraint_the_dip_is_learned(waves):
    X, y = waves
    line = np.column_stack((np.linspace(0, 1, 200), np.full(200, 0.2)))
    assert not never_turns(RankingTree(cv=0).fit(X, y).decision_function(line), 1)
    model = RankingTree(monotonic_cst=[1, 0], cv=0).fit(X, y)
    assert never_turns(model.decision_function(line), 1)
    assert model.n_leaves_ > 8
    for stage in model.staged_decision_function(line):
        assert never_turns(stage, 1)


def test_stages_are_the_trees_of_lower_depth(waves):
    X, y = waves
    stages = list(RankingTree(max_depth=4, monotonic_cst=[1, 0], cv=0).fit(X, y).staged_decision_function(X))
    for depth, scores in enumerate(stages, 1):
        alone = RankingTree(max_depth=depth, monotonic_cst=[1, 0], cv=0).fit(X, y)
        assert np.array_equal(scores, alone.decision_function(X))


def test_a_column_that_only_goes_the_wrong_way_is_not_used(waves):
    X, y = waves
    tree = RankingTree(monotonic_cst=[0, -1], max_depth=1, cv=0).fit(X[:, [0, 1]], y)
    assert set(tree.tree_.feature[~tree.tree_.is_leaf]) == {0}
    assert RankingTree(monotonic_cst=[-1], max_depth=1, cv=0).fit(X[:, 1:], y).n_leaves_ <= 2


def test_names_and_positions_say_the_same_and_zeros_say_nothing(waves, tmp_path):
    X, y = waves
    frame = pd.DataFrame(X, columns=["size", "age"])
    by_name = RankingTree(monotonic_cst={"size": 1}, cv=0).fit(frame, y)
    by_position = RankingTree(monotonic_cst=np.array([1, 0]), cv=0).fit(frame, y)
    assert by_name.tree_ == by_position.tree_
    assert RankingTree(monotonic_cst=[0, 0], cv=0).fit(frame, y).tree_ == RankingTree(cv=0).fit(frame, y).tree_
    by_name.save(tmp_path / "m")
    assert load(tmp_path / "m").monotonic_cst == {"size": 1}


@pytest.mark.parametrize(
    ("given_cst", "found"),
    [([1], "1 values"), ([2, 0], "2"), ([True, 0], "True"), ({"height": 1}, "height"), (["up", 0], "up")],
)
def test_constraints_that_make_no_sense_are_refused(waves, given_cst, found):
    X, y = waves
    with pytest.raises(ValueError, match=found):
        RankingTree(monotonic_cst=given_cst, cv=0).fit(pd.DataFrame(X, columns=["size", "age"]), y)


def test_a_category_has_no_direction():
    data = make_audit(2000, random_state=0)
    name = next(c for c in data.X.columns if data.X[c].dtype.kind not in "fiu")
    with pytest.raises(ValueError, match=name):
        RankingTree(monotonic_cst={name: 1}, cv=0).fit(data.X, data.y)


@pytest.mark.parametrize(
    "model",
    [
        RankingTree(leaf_score="margin", monotonic_cst=[1, 0], cv=0),
        RankingTree(leaf_score="votes", monotonic_cst=[1, 0], cv=0),
        CostTree(leaf_score="margin", monotonic_cst=[1, 0], cv=0),
    ],
    ids=str,
)
def test_scores_that_change_inside_leaves_refuse_constraints(waves, model):
    with pytest.raises(ValueError, match="leaf_score"):
        model.fit(*waves)


def test_meta_trees_have_no_such_parameter():
    with pytest.raises(TypeError, match="monotonic_cst"):
        MetaAP(monotonic_cst=[1], cv=0)
