"""Out-of-bag votes, counted in memory that does not grow with the number of trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from toprank._core.threads import Threads
from toprank.tree.structure import Tree

BLOCK_VOTES = 2**20
"""Votes in memory at a time if all votes on a row are needed at once."""

Rows = slice | np.ndarray
Vote = Callable[[Tree, Rows, Threads], np.ndarray]
"""Votes of one tree on some rows of a table."""


class OutOfBagVotes(Protocol):
    """Out-of-bag votes: `cast` runs in parallel, `count` one tree at a time and in order, `result` at the end."""

    def cast(self, tree: Tree, unseen: np.ndarray) -> np.ndarray:
        """Return what to count of a tree, given the positions of its out-of-bag rows."""
        ...

    def count(self, tree: Tree, unseen: np.ndarray, cast: np.ndarray) -> None:
        """Count what a tree cast."""
        ...

    def result(self, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return the score of each row, NaN without votes, and its number of votes."""
        ...


class MeanOfVotes:
    """The mean of the votes on a row: one sum and one count per row."""

    def __init__(self, vote: Vote, n_rows: int):
        self.vote = vote
        self.total, self.n_votes = np.zeros(n_rows), np.zeros(n_rows, np.int64)

    def cast(self, tree: Tree, unseen: np.ndarray) -> np.ndarray:
        """Return the votes of one tree on its out-of-bag rows."""
        return self.vote(tree, unseen, Threads())

    def count(self, tree: Tree, unseen: np.ndarray, cast: np.ndarray) -> None:
        """Add the votes to the sums."""
        self.total[unseen] += cast
        self.n_votes[unseen] += 1

    def result(self, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of each row's votes, NaN without any, and their number."""
        with np.errstate(invalid="ignore"):
            return self.total / self.n_votes, self.n_votes


class MedianOfVotes:
    """The median of the votes on a row: one bit per tree and row for who may vote; votes are computed in blocks."""

    def __init__(self, vote: Vote, n_rows: int):
        self.vote, self.n_rows = vote, n_rows
        self.trees: list[Tree] = []
        self.may_vote: list[np.ndarray] = []

    def cast(self, tree: Tree, unseen: np.ndarray) -> np.ndarray:
        """Return which rows the tree may vote on, one bit per row."""
        may_vote = np.zeros(self.n_rows, bool)
        may_vote[unseen] = True
        return np.packbits(may_vote)

    def count(self, tree: Tree, unseen: np.ndarray, cast: np.ndarray) -> None:
        """Keep the tree and which rows it may vote on."""
        self.trees.append(tree)
        self.may_vote.append(cast)

    def result(self, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """Return the median of each row's votes, NaN without any, and their number."""
        n_votes = np.zeros(self.n_rows, np.int64)

        def silence(votes: np.ndarray, rows: slice) -> None:
            for voice, packed in zip(votes, self.may_vote, strict=True):
                may_vote = np.unpackbits(packed[rows.start // 8 :], count=rows.stop - rows.start)
                voice[may_vote == 0] = np.nan
                n_votes[rows] += may_vote

        return median_votes(self.vote, self.trees, self.n_rows, threads, silence), n_votes


def median_votes(
    vote: Vote,
    trees: list[Tree],
    n_rows: int,
    threads: Threads,
    silence: Callable[[np.ndarray, slice], None] | None = None,
) -> np.ndarray:
    """Return the median over the trees of their votes on each row, float64 (n,), computed in blocks.

    `silence` may set votes to NaN to leave them out; it gets the votes of a block, (n_trees, n_rows), and its rows,
    which begin at a multiple of eight.
    """
    size = max(8, BLOCK_VOTES // len(trees) // 8 * 8)
    out = np.empty(n_rows)

    def decide(rows: slice) -> None:
        votes = np.array([vote(tree, rows, Threads()) for tree in trees])
        if silence is not None:
            silence(votes, rows)
        out[rows] = median_of_present(votes)

    threads.run(decide, [slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size)])
    return out


def median_of_present(votes: np.ndarray) -> np.ndarray:
    """Return the median of each column ignoring NaN, float64 (n,); NaN if there is nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rankers.ensemble.out_of_bag import median_of_present
    >>> median_of_present(np.array([[1.0, np.nan], [4.0, 3.0], [2.0, np.nan]]))
    array([2., 3.])
    """
    ordered = np.sort(votes, axis=0)  # NaN comes last
    count, column = np.sum(~np.isnan(votes), axis=0), np.arange(votes.shape[1])
    low, high = ordered[np.maximum(count - 1, 0) // 2, column], ordered[count // 2, column]
    return low + (high - low) / 2
