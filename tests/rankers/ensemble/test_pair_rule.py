import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank._core.threads import Threads
from toprank.rankers.ensemble import pair_rule
from toprank.rankers.ensemble.pair_rule import PLACE, PairRule, distinct_places

places_of = {n: arrays(PLACE, st.tuples(st.integers(1, 9), st.just(n)), elements=st.integers(0, 3)) for n in (1, 2, 4)}
elections = st.sampled_from([1, 2, 4]).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=st.sampled_from([0.25, 0.5, 0.75, 2.0])),
        places_of[n],
        places_of[n],
        st.integers(1, 9),
    )
)


def definition(weight, negatives, count, places):
    """The mean over the negatives of the sign of the vote, as the paper has it, ties counting 0."""
    vote = np.sign(negatives[None, :, :].astype(int) - places[:, None, :]) @ weight
    return np.sign(vote) @ count / count.sum()


@given(elections)
def test_scores_are_the_mean_over_all_negatives(election):
    weight, negatives, places, most = election
    count = np.random.default_rng(0).integers(1, most + 1, len(negatives))
    rule = PairRule.from_places(weight, negatives, count)
    assert rule.count.sum() == count.sum()
    score = rule.scores(places, Threads())
    assert score == pytest.approx(definition(weight, negatives, count, places), abs=1e-15)
    assert [rule.scores(places[[i]], Threads())[0] for i in range(len(places))] == score.tolist()
    first = rule.first(1)
    assert first.places.shape[1] == 1
    assert np.array_equal(
        first.scores(places[:, :1], Threads()),
        PairRule.from_places(weight[:1], negatives[:, :1], count).scores(places[:, :1], Threads()),
    )


def test_blocks_and_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    negatives, places = (rng.integers(0, 4, (n, 5)).astype(PLACE) for n in (300, 200))
    rule = PairRule.from_places(rng.integers(1, 9, 5) / 8, negatives, np.ones(300, np.int64))
    whole = rule.scores(places, Threads())
    monkeypatch.setattr(pair_rule, "CHUNK_ROWS", 37)
    with Threads(3) as threads:
        assert np.array_equal(rule.scores(places, threads), whole)


@given(places_of[2] | places_of[4])
def test_distinct_rows(places):
    distinct, which = distinct_places(places)
    assert np.array_equal(distinct[which], places)
    assert len(distinct) == len({tuple(row) for row in places.tolist()})


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit together"):
        PairRule(np.ones(2), np.zeros((3, 1), PLACE), np.ones(3, np.int64))
