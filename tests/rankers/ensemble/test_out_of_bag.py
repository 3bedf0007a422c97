import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank._core.threads import Threads
from toprank.rankers.ensemble import out_of_bag
from toprank.rankers.ensemble.out_of_bag import MeanOfVotes, MedianOfVotes, median_of_present, median_votes


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
    before, out_of_bag.BLOCK_VOTES = out_of_bag.BLOCK_VOTES, 16 * n_trees
    try:
        with Threads(2) as threads:
            assert np.array_equal(median_votes(vote, trees, n_rows, threads), whole)
    finally:
        out_of_bag.BLOCK_VOTES = before
    assert [median_votes(votes_on(matrix[[i]]), trees, 1, Threads())[0] for i in range(n_rows)] == whole.tolist()
    assert whole == pytest.approx(np.median([vote(tree, slice(None), None) for tree in trees], axis=0))


def test_out_of_bag_medians_are_the_same_in_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    matrix, unseen = rng.normal(size=(101, 1)), [np.flatnonzero(rng.random(101) < 0.4) for _ in range(5)]
    whole = count_all(MedianOfVotes(votes_on(matrix), len(matrix)), unseen)
    monkeypatch.setattr(out_of_bag, "BLOCK_VOTES", 5 * 24)
    parts = count_all(MedianOfVotes(votes_on(matrix), len(matrix)), unseen)
    assert np.array_equal(parts[0], whole[0], equal_nan=True)
    assert np.array_equal(parts[1], whole[1])


values = st.sampled_from([0.0, 0.25, 1.0, np.nan])


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=values))
def test_median_of_present(votes):
    expected = [np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else np.nan for column in votes.T]
    assert np.array_equal(median_of_present(votes), expected, equal_nan=True)
