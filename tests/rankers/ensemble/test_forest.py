import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from ranker_cases import make_cases
from toprank import MetaAP, MetaAPForest
from toprank._core.threads import Threads
from toprank.metrics import average_precision, proportion_interval
from toprank.rankers.ensemble import forest
from toprank.rankers.ensemble.forest import MeanOfVotes, MedianOfVotes, median_of_present, median_votes
from toprank.tree.structure import Tree

SMALL = MetaAPForest(n_estimators=4, max_depth=2, leaf_depth=2, leaf_score="margin", max_features=None, random_state=0)


def fit(n=300, weight=None, **parameters):
    X, y = make_cases(n)
    return clone(SMALL).set_params(**parameters).fit(X, y, weight), X, y


def test_the_score_is_the_mean_of_the_trees():
    forest, X, _ = fit()
    matrix = forest._encode(X)
    mean = sum(tree.decision_function(matrix) for tree in forest.trees_) / 4
    assert np.array_equal(forest.decision_function(X), mean)
    assert np.array_equal(forest.apply(X), np.column_stack([tree.apply(matrix) for tree in forest.trees_]))


def test_the_same_seed_gives_the_same_forest():
    one, *_ = fit(random_state=3)
    same, *_ = fit(random_state=3)
    other, *_ = fit(random_state=4)
    assert one.to_plain() == same.to_plain()
    assert one.to_plain() != other.to_plain()
    assert np.array_equal(one.oob_decision_function_, same.oob_decision_function_, equal_nan=True)
    from_state, *_ = fit(random_state=np.random.RandomState(3))
    assert from_state.to_plain() == one.to_plain()


def test_more_trees_keep_the_first_ones():
    four, *_ = fit(n_estimators=4)
    six, *_ = fit(n_estimators=6)
    assert six.trees_[:4] == four.trees_


def test_out_of_bag_scores_are_of_the_trees_that_did_not_see_the_row():
    forest, X, y = fit(60, n_estimators=3)
    rng = np.random.RandomState(0)
    seen = [
        np.bincount(np.random.default_rng(int(seed)).integers(0, 60, 60), minlength=60) > 0
        for seed in rng.randint(np.iinfo(np.int32).max, size=3)
    ]
    scores = [tree.decision_function(forest._encode(X)) for tree in forest.trees_]
    for i in range(60):
        votes = [score[i] for score, drawn in zip(scores, seen, strict=True) if not drawn[i]]
        assert np.isnan(forest.oob_decision_function_[i]) == (not votes)
        assert not votes or forest.oob_decision_function_[i] == pytest.approx(np.mean(votes))
    judged = ~np.isnan(forest.oob_decision_function_)
    assert 0 < judged.sum() < 60
    assert forest.oob_score_ == pytest.approx(average_precision(y[judged], forest.oob_decision_function_[judged]))


def test_without_bootstrap_all_trees_are_equal_and_nothing_is_out_of_bag():
    forest, X, _ = fit(bootstrap=False)
    assert forest.trees_[1:] == forest.trees_[:1] * 3
    assert np.isnan(forest.oob_decision_function_).all()
    assert np.isnan(forest.oob_score_)
    assert "out-of-bag" not in forest.summary()
    rate = forest.predict_proba(X)[:, 1]
    assert rate.max() > 2 * forest.base_rate_ > 2 * rate.min()
    drawn, *_ = fit(bootstrap=False, max_features=1)
    assert drawn.trees_[0] != drawn.trees_[1]


@pytest.mark.parametrize(
    ("max_features", "expected"), [(None, 3), ("sqrt", 1), ("log2", 1), (2, 2), (9, 3), (0.7, 2), (1.0, 3), (0.01, 1)]
)
def test_max_features_draws_that_many_columns_for_each_node(max_features, expected):
    forest = MetaAPForest(max_features=max_features)
    sampler = forest._feature_sampler(3, np.random.default_rng(0))
    allowed = np.ones((50, 3)) if sampler is None else sampler.draw(np.zeros(50, int))
    assert np.all(allowed.sum(axis=1) == expected)
    assert allowed.any(axis=0).all()
    grown, X, y = fit(max_features=max_features)
    assert grown.score(X, y) > y.mean()


@pytest.mark.parametrize(
    ("max_samples", "expected"), [(None, 300), (50, 50), (5000, 300), (0.1, 30), (np.float32(0.1), 30)]
)
def test_max_samples_draws_that_many_rows(max_samples, expected):
    forest, *_ = fit(max_samples=max_samples)
    assert [tree.positive[0] + tree.negative[0] for tree in forest.trees_] == [expected] * 4


def test_weights_multiply_what_is_drawn_and_zero_is_never_drawn():
    weight = np.where(np.arange(300) < 100, 0.0, 2.0)
    forest, X, _ = fit(weight=weight)
    assert [tree.positive[0] + tree.negative[0] for tree in forest.trees_] == [400.0] * 4
    assert forest.n_cases_ == 400.0
    assert not np.isnan(forest.oob_decision_function_[:100]).any()
    assert np.array_equal(forest.oob_decision_function_[:100], forest.decision_function(X)[:100])


def test_a_bootstrap_that_missed_a_class_is_drawn_again():
    X = np.arange(100.0).reshape(-1, 1)
    forest = MetaAPForest(n_estimators=30, max_samples=20, random_state=0).fit(X, np.arange(100) == 99)
    found = [tree.positive[0] > 0 for tree in forest.trees_]
    assert np.mean(found) > 0.9  # 18 % of the draws hold the one positive: 20 tries


def test_two_rows_are_enough():
    forest = MetaAPForest(n_estimators=3, random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(forest.decision_function([[0.0], [1.0]])).all()
    assert forest.predict_proba([[0.0]]).sum() == 1.0


def test_progress_goes_to_standard_error(capsys):
    fit(verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "MetaAPForest [" in shown.err
    assert "4/4" in shown.err
    fit()
    assert capsys.readouterr().err == ""


def test_trees_share_a_scorecard_and_out_of_bag_rows_have_one_that_has_not_seen_them():
    X, y = make_cases(400)
    forest = clone(SMALL).set_params(n_estimators=20, leaf_score="additive", bootstrap=True).fit(X, y)
    matrix, card = forest._encode(X), forest.trees_[0].scoring
    assert all(tree.scoring == card for tree in forest.trees_)
    assert card.kind == "linear"
    mean = sum(tree.decision_function(matrix) for tree in forest.trees_) / 20
    assert np.allclose(forest.decision_function(X), mean, rtol=0, atol=1e-15)
    noise = np.random.default_rng(0).normal(size=(300, 40))
    hits = np.random.default_rng(1).random(300) < 0.3
    honest = clone(SMALL).set_params(n_estimators=30, leaf_score="additive", max_depth=1).fit(noise, hits)
    assert honest.oob_score_ < 0.45  # a scorecard of all rows would rank them far better than by chance


def test_rules_name_their_tree_and_are_sorted_by_what_is_sure():
    forest, *_ = fit()
    rules = forest.rules()
    assert len(rules) == forest.n_leaves_
    assert {*rules["tree"]} == {1, 2, 3, 4}
    low, _ = proportion_interval(rules["positives"], rules["n"])
    assert np.all(np.diff(low) <= 1e-12)
    assert rules.groupby("tree")["n"].sum().tolist() == [300.0] * 4


def test_files_keep_their_names():
    """Another name is another format of files."""
    forest, *_ = fit(50)
    names = {name for name in forest._to_arrays() if not name.startswith(("tree", "paths", "hit_rates_"))}
    assert names == {"n_trees", "oob_score", "oob_decision_function"}
    assert {*forest._figures()} == {"n_leaves", "n_trees", "n_conditions", "oob_average_precision"}
    assert "max_meta_features" not in forest.get_params()


def test_decision_path_joins_the_trees():
    forest, X, _ = fit(50)
    paths, offset = forest.decision_path(X)
    assert paths.shape == (50, sum(map(len, forest.trees_)))
    assert offset.tolist() == np.append(0, np.cumsum([len(tree) for tree in forest.trees_])).tolist()
    for i, leaf in enumerate(forest.apply(X).T):
        assert np.all(paths[:, [offset[i]]].toarray() == 1)
        assert np.all(paths.toarray()[np.arange(50), offset[i] + leaf] == 1)


def test_the_published_forest_averages_published_trees():
    X, y = make_cases(200)
    alone = MetaAPForest.paper(2, n_estimators=1, bootstrap=False, random_state=0).fit(X, y)
    assert alone.trees_[0] == MetaAP.paper(2).fit(X, y).tree_
    forest = MetaAPForest.paper(3)
    shared = MetaAP.paper(3).get_params().keys() & forest.get_params().keys()
    assert {name: getattr(forest, name) for name in shared} == {name: getattr(MetaAP.paper(3), name) for name in shared}
    assert (forest.n_estimators, forest.bootstrap, forest.max_samples, forest.max_features) == (100, True, None, None)
    assert MetaAPForest.paper(3, n_estimators=7, splitter="hist").get_params() | {"n_estimators": 100} == (
        forest.get_params() | {"splitter": "hist"}
    )


def votes_on(matrix):
    """How trees vote on rows of a matrix: a tree is a number here, which adds itself to the row."""

    def vote(tree, rows, threads):
        return matrix[rows, 0] * (1 + tree % 3) + tree

    return vote


def count_all(ballot, unseen):
    for tree, rows in enumerate(unseen):
        ballot.count(tree, rows, ballot.cast(tree, rows))
    return ballot.result(Threads())


@pytest.mark.parametrize(("kind", "combine"), [(MeanOfVotes, np.mean), (MedianOfVotes, np.median)])
@given(seen=arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 30))))
def test_each_row_is_judged_by_the_trees_that_did_not_see_it(kind, combine, seen):
    matrix = np.random.default_rng(0).normal(size=(seen.shape[1], 2))
    vote = votes_on(matrix)
    score, n_votes = count_all(kind(vote, len(matrix)), [np.flatnonzero(~row) for row in seen])
    assert np.array_equal(n_votes, (~seen).sum(axis=0))
    for i in range(len(matrix)):
        said = [vote(tree, [i], None)[0] for tree in range(len(seen)) if not seen[tree, i]]
        assert np.isnan(score[i]) if not said else score[i] == pytest.approx(combine(said))


@given(n_rows=st.integers(1, 40), n_trees=st.integers(1, 9))
def test_a_row_has_the_same_median_alone_as_in_blocks_and_with_threads(n_rows, n_trees):
    matrix = np.random.default_rng(1).normal(size=(n_rows, 1))
    vote, trees = votes_on(matrix), list(range(n_trees))
    whole = median_votes(vote, trees, n_rows, Threads())
    before, forest.BLOCK_VOTES = forest.BLOCK_VOTES, 16 * n_trees
    try:
        with Threads(2) as threads:
            assert np.array_equal(median_votes(vote, trees, n_rows, threads), whole)
    finally:
        forest.BLOCK_VOTES = before
    assert [median_votes(votes_on(matrix[[i]]), trees, 1, Threads())[0] for i in range(n_rows)] == whole.tolist()
    assert whole == pytest.approx(np.median([vote(tree, slice(None), None) for tree in trees], axis=0))


def test_out_of_bag_medians_are_the_same_in_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    matrix, unseen = rng.normal(size=(101, 1)), [np.flatnonzero(rng.random(101) < 0.4) for _ in range(5)]
    whole = count_all(MedianOfVotes(votes_on(matrix), len(matrix)), unseen)
    monkeypatch.setattr("toprank.rankers.ensemble.forest.BLOCK_VOTES", 5 * 24)
    parts = count_all(MedianOfVotes(votes_on(matrix), len(matrix)), unseen)
    assert np.array_equal(parts[0], whole[0], equal_nan=True)
    assert np.array_equal(parts[1], whole[1])


values = st.sampled_from([0.0, 0.25, 1.0, np.nan])


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=values))
def test_median_of_present(votes):
    expected = [np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else np.nan for column in votes.T]
    assert np.array_equal(median_of_present(votes), expected, equal_nan=True)


def test_apply_and_explain_run_on_the_threads_of_n_jobs(monkeypatch):
    X, y = make_cases(100)
    forest, used = MetaAPForest(n_estimators=2, max_depth=1, n_jobs=2).fit(X, y), []
    for name in ("apply", "decision_function"):
        own = getattr(Tree, name)
        monkeypatch.setattr(
            Tree, name, lambda self, X, threads, own=own: used.append(threads.n_threads) or own(self, X)
        )
    forest.apply(X)
    forest.explain(X[:3])
    assert used == [2] * 4
