import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank._core import votes
from toprank._core.votes import pair_votes

weights = st.sampled_from([0.25, 0.5, 0.75, 1.0, 3.0])  # sums often cancel: ties


def obvious(places, other, count, weight):
    """One pair at a time."""
    out = []
    for case in places:
        total = 0
        for against, number in zip(other.T, count, strict=True):
            vote = sum(w * np.sign(int(b) - int(a)) for w, a, b in zip(weight, case, against, strict=True))
            total += int(number) * int(np.sign(vote))
        out.append(total)
    return out


@st.composite
def elections(draw):
    n_trees = draw(st.integers(1, 5))
    places = draw(arrays(np.int16, (draw(st.integers(1, 5)), n_trees), elements=st.integers(0, 3)))
    other = draw(arrays(np.int16, (n_trees, draw(st.integers(1, 8))), elements=st.integers(0, 3)))
    count = draw(arrays(np.int64, other.shape[1], elements=st.integers(0, 2**40)))
    return places, other, count, draw(arrays(float, n_trees, elements=weights))


def counted(places, other, count, weight):
    out = np.empty(len(places), np.int64)
    pair_votes(places, other, count, weight, out)
    return out.tolist()


@given(elections())
def test_pair_votes(election):
    assert counted(*election) == obvious(*election)


def test_more_others_than_a_block():
    rng = np.random.default_rng(0)
    n_others = 2 * votes.BLOCK + 37
    places, other = rng.integers(0, 4, (2, 6)).astype(np.int16), rng.integers(0, 4, (6, n_others)).astype(np.int16)
    count, weight = rng.integers(1, 9, n_others), rng.integers(1, 4, 6) / 4
    assert counted(places, other, count, weight) == obvious(places, other, count, weight)


@given(elections())
def test_the_vote_is_antisymmetric(election):
    places, _, _, weight = election
    for a in places:
        for b in places:
            one, other = (
                counted(x[None], np.ascontiguousarray(y[:, None]), np.ones(1, np.int64), weight)
                for x, y in ((a, b), (b, a))
            )
            assert one[0] == -other[0]


@pytest.mark.parametrize("size", [1, 7])
def test_trees_of_any_depth_keep_their_places(size):
    places = np.full((1, 1), 2**14 - 1, np.int16)
    other = np.full((1, size), 2**14 - 2, np.int16)
    assert counted(places, other, np.full(size, 3), np.ones(1)) == [-3 * size]
