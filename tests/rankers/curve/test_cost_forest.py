"""`CostOptimalForest`: members' paths side by side, votes, out-of-bag mistakes, the choice of a point, files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from ranker_cases import fewer, make_cases
from toprank import CostOptimalForest, TAOTree, load
from toprank._core.threads import Threads
from toprank.data.binned_cases import BinnedCases
from toprank.files.model_file import ModelFileError
from toprank.metrics import OperatingPoints, average_precision
from toprank.rankers.curve.cost_forest import Member, Tally, _side_by_side
from toprank.rankers.ensemble.forest import draw_bootstrap

SMALL = CostOptimalForest(TAOTree(max_depth=2), n_estimators=4, cost_factor=4.0, random_state=0)


def fit(n=120, weight=None, **parameters):
    X, y = make_cases(n)
    return clone(SMALL).set_params(**parameters).fit(X, y, weight), X, y


@pytest.fixture(scope="module")
def fitted():
    return fit()


def member_calls(forest, member, X):
    """What the trees of a member call each row, one cost after the other."""
    matrix = forest._encode(X)
    return np.array([forest._labels[i][forest.trees_[i].apply(matrix)] == 1 for i in forest._tree_at[member]])


def drawn_by(forest, data, n_members):
    """Bootstraps of the members, drawn again."""
    seeds = np.random.RandomState(forest.random_state).randint(np.iinfo(np.int32).max, size=n_members)
    return [draw_bootstrap(data, forest.max_samples, np.random.default_rng(int(seed))) for seed in seeds]


def training_data(forest, X, y, weight=None):
    return BinnedCases(forest._encode(X), y == 1, weight, forest.columns_)


# --- members and votes ------------------------------------------------------------------------------------------------


def test_a_member_is_the_path_of_a_tree_on_its_bootstrap(fitted):
    forest, X, y = fitted
    for member, weight in enumerate(drawn_by(forest, training_data(forest, X, y), 4)):
        tree = TAOTree(max_depth=2, fp_cost=forest.path_[forest.base_point_].cost_ratio, cv=0)
        base = tree.fit(X, y, weight)
        calls = member_calls(forest, member, X)
        assert np.array_equal(base.predict(X) == 1, calls[forest.base_point_])
        in_bag = weight > 0
        assert not calls[-1][in_bag & (y == 0)].any()  # no false positive where they are dearest
        assert calls[0][in_bag & (y == 1)].all()  # and no positive missed where they are cheapest


def test_costs_are_those_of_the_paper_and_the_longest_path_counts(fitted):
    forest, _, y = fitted
    ratios = np.array([point.cost_ratio for point in forest.path_])
    assert ratios[forest.base_point_] == y.sum() / (y == 0).sum()
    assert np.allclose(ratios[1:] / ratios[:-1], 4.0)
    assert np.array_equal(np.unique(forest._tree_at), np.arange(len(forest.trees_)))
    for end, neighbour in ((0, 1), (-1, -2)):
        assert (forest._tree_at[:, end] != forest._tree_at[:, neighbour]).any()


def test_at_a_cost_half_of_the_members_decide(fitted):
    forest, X, y = fitted
    n_calls = sum(member_calls(forest, member, X).astype(int) for member in range(4))
    assert (n_calls == 2).any()  # a tie is positive
    expected = OperatingPoints.from_labels(y, n_calls >= 2)
    assert np.array_equal(forest.points_.false_positives, expected.false_positives)
    assert np.array_equal(forest.points(X, y).false_negatives, expected.false_negatives)
    for position, point in enumerate(forest.path_):
        assert np.array_equal(point.tree.is_flagged(forest._encode(X), Threads()), n_calls[position] >= 2)
        assert point.tree.n_leaves_ == sum(int(tree.is_leaf.sum()) for tree in point.tree.trees)


def test_the_score_is_the_votes_then_the_mean_score(fitted):
    forest, X, _ = fitted
    matrix, n_points = forest._encode(X), len(forest.path_)
    votes = sum(member_calls(forest, member, X).sum(axis=0) for member in range(4))
    mean = np.mean([forest.trees_[i].decision_function(matrix) for i in forest._tree_at.ravel()], axis=0)
    score = forest.decision_function(X)
    assert np.allclose(score, (votes + mean) / (4 * n_points + 1))
    order = np.argsort(score)
    assert np.all(np.diff(votes[order]) >= 0)
    assert forest._tree_weights().sum() == 4 * n_points


@fewer(3)
@given(
    calls=arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))),
    present=arrays(bool, (4, 5)),
    seed=st.integers(0, 9),
)
def test_tallies_count_those_who_vote(calls, present, seed):
    n_members, n_points, n_rows = calls.shape
    present, score = present[:n_members, :n_rows], np.random.default_rng(seed).random((n_members, n_rows))
    tally = Tally(n_points, n_rows, n_members)
    for called, own, may_vote in zip(calls, score, present, strict=True):
        tally.add(called[:, may_vote], own[may_vote], may_vote)
    called, found = tally.result()
    for row in range(n_rows):
        voters = np.flatnonzero(present[:, row])
        if not len(voters):
            assert np.isnan(found[row])
            continue
        assert np.array_equal(called[:, row], calls[voters, :, row].mean(axis=0) >= 0.5)
        n_votes = n_members * n_points
        inside = calls[voters, :, row].mean() * n_votes + score[voters, row].mean()
        assert found[row] == pytest.approx(inside / (n_votes + 1))


@fewer(3)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4))
def test_members_stand_side_by_side(shapes):
    members = [Member([None] * n, [], [], min(at, n - 1), np.zeros(0)) for n, at in shapes]
    tree_at, base_point = _side_by_side(members)
    first = 0
    for places, member in zip(tree_at, members, strict=True):
        assert places[base_point] == first + member.base_at
        for position, place in enumerate(places):
            step = member.base_at + position - base_point
            assert place == first + min(max(step, 0), len(member.trees) - 1)
        first += len(member.trees)
    assert np.array_equal(np.unique(tree_at), np.arange(first))  # no longer than needed, and no shorter


# --- rows not seen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_votes_are_of_the_members_that_did_not_draw_the_case(weighted):
    weight = np.where(np.arange(120) % 5 == 0, 0.0, 1.0 + np.arange(120) % 3) if weighted else None
    forest, X, y = fit(weight=weight)
    drawn = drawn_by(forest, training_data(forest, X, y, weight), 4)
    own = np.ones(120) if weight is None else weight
    calls = [member_calls(forest, member, X) for member in range(4)]
    fp, fn, rows = np.zeros(len(forest.path_)), np.zeros(len(forest.path_)), []
    for i in range(120):
        voters = [calls[member][:, i] for member in range(4) if drawn[member][i] == 0]
        assert np.isnan(forest.oob_decision_function_[i]) == (not voters)
        if voters and own[i] > 0:
            rows.append(i)
            called = np.mean(voters, axis=0) >= 0.5
            fp += own[i] * (called & (y[i] == 0))
            fn += own[i] * (~called & (y[i] == 1))
    assert 0 < len(rows) < np.count_nonzero(own)
    assert np.allclose(forest.held_out_points_.false_positives, fp)
    assert np.allclose(forest.held_out_points_.false_negatives, fn)
    assert forest.held_out_by_ == "out-of-bag votes"
    expected = average_precision(y[rows], forest.oob_decision_function_[rows], sample_weight=own[rows])
    assert forest.oob_score_ == pytest.approx(expected)
    assert f"out-of-bag average precision {expected:.3f}" in forest.summary()


def test_validation_data_take_the_place_of_the_votes():
    later, outcome = make_cases(50, seed=1)
    X, y = make_cases(100)
    forest = clone(SMALL).set_params(n_estimators=2).fit(X, y, X_val=later, y_val=outcome)
    assert forest.held_out_by_ == "validation data"
    assert np.array_equal(forest.held_out_points_.false_positives, forest.points(later, outcome).false_positives)
    assert np.isfinite(forest.oob_score_)
    with pytest.raises(ValueError, match=r"CostOptimalForest.fit got X_val but no y_val\. Hint"):
        clone(SMALL).fit(X, y, X_val=later)
    assert "_validation" not in vars(forest)


def test_a_few_rows_are_enough():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    tiny = clone(SMALL).set_params(base__alpha=0.1, base__min_samples_leaf=1, n_estimators=2)
    forest = tiny.fit(X, y)
    assert forest.held_out_by_ == "training data"  # every bootstrap of both classes holds both rows
    assert forest.held_out_points_ is None
    assert np.isnan(forest.oob_score_)
    assert "out-of-bag" not in forest.summary()
    assert np.all(np.diff(forest.decision_function(X)) > 0)
    assert forest.at(cost_ratio=1.0).predict(X).tolist() == [0, 1]
    one_case = clone(tiny).set_params(max_samples=1).fit(np.arange(9.0).reshape(-1, 1), np.arange(9) > 5)
    assert np.isfinite(one_case.decision_function(X)).all()


# --- drawing ----------------------------------------------------------------------------------------------------------


def test_the_seed_decides_and_more_members_keep_the_first_ones(fitted):
    forest, *_ = fitted
    other, *_ = fit(random_state=1, n_estimators=2)
    two, *_ = fit(n_estimators=2, random_state=np.random.RandomState(0))
    assert two.trees_ == forest.trees_[: len(two.trees_)]
    assert other.trees_ != two.trees_


def test_the_same_forest_comes_again_with_any_number_of_threads(fitted):
    forest, X, _ = fitted
    two, *_ = fit(n_jobs=2)
    assert two.trees_ == forest.trees_
    assert np.array_equal(two.oob_decision_function_, forest.oob_decision_function_, equal_nan=True)
    assert np.array_equal(two.decision_function(X), forest.decision_function(X))


def test_columns_and_rows_are_drawn_for_each_member():
    forest, *_ = fit(max_features=1, max_samples=80)
    used = []
    for places in forest._tree_at:
        trees = [forest.trees_[i] for i in np.unique(places)]
        used.append({int(f) for tree in trees for f in tree.feature[~tree.is_leaf]})
        assert {float(tree.positive[0] + tree.negative[0]) for tree in trees} == {80.0}
    assert all(len(columns) <= 1 for columns in used)
    assert len(set().union(*used)) > 1


def test_progress_goes_to_standard_error(capsys):
    fit(60, n_estimators=2, verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "CostOptimalForest [" in shown.err
    assert "2/2" in shown.err


# --- choosing, reading, files -----------------------------------------------------------------------------------------


def test_a_choice_is_made_by_the_votes_and_predict_follows_it(fitted):
    forest, X, y = fitted
    before = forest.predict(X)
    chosen = forest.select(max_fpr=0.1)
    held_out = forest.held_out_points_
    fine = np.flatnonzero(held_out.false_positive_rate <= 0.1)
    assert held_out.true_positive_rate[chosen.position] == held_out.true_positive_rate[fine].max()
    assert chosen.judged_by == "out-of-bag votes"
    assert "by out-of-bag votes" in str(chosen)
    called = forest.at(max_fpr=0.1).predict(X) == 1
    assert np.count_nonzero(called & (y == 0)) == forest.points_.false_positives[chosen.position]
    assert np.count_nonzero(~called & (y == 1)) == forest.points_.false_negatives[chosen.position]
    assert not np.array_equal(called, before == 1)
    assert np.array_equal(forest.predict(X), before)
    fewest = min(point.tree.n_leaves_ for point in forest.path_)
    assert forest.select(cost_ratio=0.1, max_leaves=fewest).tree.n_leaves_ == fewest
    words = rf"No bag of trees of the forest .*: the smallest bag of trees of the forest has {fewest}\. Hint"
    with pytest.raises(ValueError, match=words):
        forest.select(max_leaves=fewest - 1)


def test_the_path_is_a_table(fitted):
    forest, *_ = fitted
    table = forest.frame()
    assert len(table) == len(forest.path_)
    assert table["leaves"].tolist() == [point.tree.n_leaves_ for point in forest.path_]
    assert np.array_equal(table["held_out_recall"], forest.held_out_points_.true_positive_rate)


def test_explanations_are_of_all_trees(fitted):
    forest, X, _ = fitted
    (explanation,) = forest.explain(X.iloc[[3]])
    votes = f"which orders cases by how many votes of {len(forest.trees_)} trees flag them, ties by the mean score"
    assert f", {votes}; " in str(explanation)
    assert {*forest.rules()["tree"]} == {*range(1, len(forest.trees_) + 1)}
    assert f"4 members at {len(forest.path_)} costs, {forest.n_leaves_} leaves in all" in forest.summary()


def test_files_bring_back_everything(fitted, tmp_path):
    forest, X, _ = fitted
    forest = forest.at(k=30)
    forest.save(tmp_path / "forest.toprank")
    back = load(tmp_path / "forest.toprank")
    assert np.array_equal(back.decision_function(X), forest.decision_function(X))
    assert np.array_equal(back.predict(X), forest.predict(X))
    assert str(back.selected_) == str(forest.selected_)
    assert back.frame().equals(forest.frame())
    assert (back.oob_score_, back.base_point_, back.held_out_by_) == (
        forest.oob_score_, forest.base_point_, forest.held_out_by_
    )  # fmt: skip
    assert np.array_equal(back.oob_decision_function_, forest.oob_decision_function_, equal_nan=True)
    assert back.select(min_recall=0.5).position == forest.select(min_recall=0.5).position


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("labels", lambda a: a[:-1], "trees and their labels do not fit"),
        ("labels", lambda a: np.full_like(a, 2), "leaves lack labels"),
        ("tree_at", lambda a: a + 1, "members and trees do not fit"),
        ("tree_at", lambda a: a[:, 1:], "do not fit together"),
        ("base_point", lambda a: np.array(99), "base point is not one of its points"),
        ("points_false_positives", lambda a: a[1:], "needs a cost ratio"),
    ],
)
def test_damaged_files_are_refused(fitted, tmp_path, monkeypatch, name, change, reason):
    forest, *_ = fitted
    arrays = forest._to_arrays()
    monkeypatch.setattr(forest, "_to_arrays", lambda: arrays | {name: change(arrays[name])})
    forest.save(tmp_path / "forest.toprank")
    with pytest.raises(ModelFileError, match=rf"damaged toprank model: .*{reason}"):
        load(tmp_path / "forest.toprank")


def test_only_trees_are_kept(fitted):
    forest, *_ = fitted
    assert not any(isinstance(value, TAOTree) for value in vars(forest).values() if value is not forest.base)
    assert all(type(tree).__name__ == "Tree" for point in forest.path_ for tree in point.tree.trees)


@pytest.mark.parametrize(
    "wrong",
    [{"cost_factor": 1.0}, {"n_estimators": 0}, {"max_samples": 0.0}, {"max_features": "all"}, {"base": "tree"}],
)
def test_parameters_are_checked(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"The '{name}' parameter of CostOptimalForest must be"):
        fit(20, **wrong)
