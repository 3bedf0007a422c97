"""Moves of one threshold of a tree: what they lead to, against all thresholds tried one by one."""

import numpy as np
from hypothesis import assume, given

from ranker_cases import fewer
from tao_cases import blobs, label_of, make_problem, tao_cases
from toprank._core.dtypes import CATEGORY, NUMERIC
from toprank.tree.tao.alternating_tree import AlternatingTree
from toprank.tree.tao.alternation import Alternation
from toprank.tree.tao.moves import Mistakes, Moves, with_threshold
from toprank.tree.tao.splits import Split

EQUAL = [[0.0, 1.0], [1.0, 0.0]]


def mistakes_of(tree, problem):
    """False positives and false negatives, one row after the other."""
    wrong = [0, 0]
    for x, label, weight in zip(problem.rows.X, problem.rows.label, problem.rows.weight, strict=True):
        if label_of(tree, x) != label:
            wrong[label] += int(weight)
    return Mistakes(*wrong)


def all_moves(tree, problem):
    """Mistakes of the tree with any threshold that splits the care points, one after the other."""
    found, reached = [], tree.reduced_sets(problem)
    for node, split in enumerate(tree.splits):
        if split is not None and split.kind != CATEGORY:
            rows = tree.reduced_problem(problem, node, reached[node]).rows
            if split.columns is None:
                values = problem.rows.X[rows, split.feature]
            else:
                values = problem.rows.sums(rows, split.columns, split.codes, split.weights, split.fill)
            distinct = np.unique(values[~np.isnan(values)])
            found += [mistakes_of(with_threshold(tree, node, value), problem) for value in distinct[:-1]]
    return found


def stump(threshold, labels):
    """A tree of one condition on the first column."""
    split = Split(NUMERIC, 1.0, 0, threshold)
    tree = AlternatingTree(np.array([1, -1, -1]), np.array([2, -1, -1]), [split, None, None])
    tree.label[1:] = labels
    return tree


def test_a_stump_by_hand():
    X, label = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]), np.array([0, 1, 0, 1, 1])
    problem = make_problem(X, label, EQUAL)
    moves = Moves.from_tree(stump(3.5, [0, 1]), problem)
    assert moves.now == Mistakes(0, 1)
    # Thresholds 4.5, 3.5, 2.5 and 1.5: (0, 2), (0, 1), (1, 1) and (1, 0); the first and the third are dominated.
    assert list(zip(moves.false_positives.tolist(), moves.false_negatives.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert [moves[i] for i in range(len(moves))] == [(0, 3.5, Mistakes(0, 1)), (0, 1.5, Mistakes(1, 0))]
    assert mistakes_of(with_threshold(stump(3.5, [0, 1]), 0, 1.5), problem) == Mistakes(1, 0)


def test_rows_that_lack_the_number_stay_where_they_go():
    X, label = np.array([[1.0], [2.0], [np.nan], [np.nan]]), np.array([0, 1, 1, 0])
    problem = make_problem(X, label, EQUAL, weight=np.array([1.0, 1.0, 5.0, 3.0]))
    moves = Moves.from_tree(stump(0.0, [0, 1]), problem)  # they go right
    assert moves.now == Mistakes(4, 0)
    assert (len(moves), moves[0]) == (1, (0, 1.5, Mistakes(3, 0)))


def test_a_tree_without_thresholds_has_no_moves():
    X, label = blobs(20)
    leaf = AlternatingTree(np.array([-1]), np.array([-1]), [None])
    moves = Moves.from_tree(leaf, make_problem(X, label, EQUAL))
    assert len(moves) == 0
    assert moves.now == Mistakes(0, 10)


@fewer(2)
@given(tao_cases())
def test_moves_are_those_that_no_other_one_dominates(case):
    """Against all thresholds, with ties, missing values, categories and weights; the tree itself stays as it was."""
    problem, tree = case.problem, case.tree
    assume(problem.n_classes == 2)
    Alternation(problem, tree).run(2)
    before = mistakes_of(tree, problem)
    moves, tried = Moves.from_tree(tree, problem), all_moves(tree, problem)
    assert moves.now == before == mistakes_of(tree, problem)
    assert (np.diff(moves.false_positives) > 0).all()
    assert (np.diff(moves.false_negatives) < 0).all()
    best = {each for each in tried if not any(other != each and other[0] <= each[0] and other[1] <= each[1]
                                              for other in tried)}  # fmt: skip
    assert {move.mistakes for move in (moves[i] for i in range(len(moves)))} == best
    for i in range(len(moves)):
        assert mistakes_of(with_threshold(tree, moves[i].node, moves[i].threshold), problem) == moves[i].mistakes
