"""The one walk over trees: every node is opened once, in the order yes before no, and references lead to blocks."""

import numpy as np
from hypothesis import given

from grown_trees import audit_tree, grown_cases, make_tree, node, shared_tree
from toprank.explain import TreeWalk
from toprank.explain.walk import passed_up


def visits_of(walk):
    return [visit for head in walk.number for visit in walk.block(head)]


def reached(tree, start):
    """Nodes below a node, itself among them, by plain recursion."""
    if tree.is_leaf[start]:
        return {start}
    return {start} | reached(tree, int(tree.left[start])) | reached(tree, int(tree.right[start]))


@given(grown_cases())
def test_each_condition_is_opened_once_and_its_branches_follow(case):
    tree = case.tree
    for max_level in (None, 1):
        walk = TreeWalk(tree, max_level=max_level)
        visits = visits_of(walk)
        assert sorted(visit.node for visit in visits if visit.is_open) == np.flatnonzero(~tree.is_leaf).tolist()
        assert {visit.block for visit in visits} - {None} == set(walk.number.values()) - {0}
        for head in walk.number:
            path = []
            for visit in walk.block(head):
                path[visit.level :] = [visit]
                if visit.level == 0:
                    assert (visit.node, visit.answer) == (head, None)
                    continue
                parent = path[visit.level - 1]
                assert parent.is_open
                assert visit.node == (tree.left if visit.answer else tree.right)[parent.node]
        if max_level is not None:  # nodes below the last level are named there, and opened in a block of their own
            assert max(visit.level for visit in visits if visit.is_open) <= max_level


def test_the_order_of_a_plain_tree():
    visits = list(TreeWalk(audit_tree()).block())
    assert [visit.answer for visit in visits if visit.level == 1] == [True, False]
    assert [visit.node for visit in visits][:2] == [0, int(audit_tree().left[0])]
    assert TreeWalk(audit_tree()).number == {0: 0}


def test_a_node_with_several_parents_has_a_block():
    tree = shared_tree()
    walk = TreeWalk(tree)
    shared = [n for n in range(len(tree)) if walk.n_parents[n] > 1 and not tree.is_leaf[n]]
    assert shared
    assert list(walk.number) == [0, *shared]
    closed = TreeWalk(tree, np.arange(len(tree)) == 0)
    assert [visit.node for visit in visits_of(closed)] == [0, int(tree.left[0]), int(tree.right[0])]
    assert not any(visit.is_open for visit in visits_of(closed)[1:])


def test_a_tree_without_conditions_is_one_leaf():
    walk = TreeWalk(make_tree([node(leaf=0, positive=1, negative=3)]))
    (visit,) = walk.block()
    assert (visit.node, visit.level, visit.answer, visit.is_open, visit.block) == (0, 0, None, False, None)


@given(grown_cases())
def test_what_lies_below_and_above(case):
    tree = case.tree
    walk, marks = TreeWalk(tree), tree.leaf == 0
    leads = passed_up(tree, marks)
    for start in range(len(tree)):
        below = reached(tree, start)
        assert set(np.flatnonzero(walk.below(start)).tolist()) == below
        assert leads[start] == marks[list(below)].any()
