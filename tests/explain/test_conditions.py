from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from grown_trees import (
    AUDIT_COLUMNS,
    audit_tree,
    columns_for,
    grown_cases,
    make_tree,
    node,
    oblique_tree,
    shared_tree,
    with_whole_codes,
)
from tables import blocks, trees
from toprank.explain import Condition, path_conditions
from toprank.explain.conditions import side_condition
from toprank.explain.contributions import distinct_paths


def texts(tree, nodes):
    return [condition.text() for condition in path_conditions(tree, AUDIT_COLUMNS, nodes)]


@given(grown_cases())
def test_every_row_satisfies_the_merged_conditions_of_its_path(case):
    paths, which = distinct_paths(case.tree.paths(case.X)[0])
    for i, path in enumerate(paths):
        conditions = path_conditions(case.tree, case.columns, path)
        features = [condition.feature for condition in conditions]
        assert len(set(features)) == len(features)
        meets = np.ones(len(case.X), bool)
        for condition in conditions:
            meets &= condition.holds(case.X)
        # The conditions of a path hold for its rows and for no others.
        assert np.array_equal(meets, which == i)
        for condition in conditions:
            assert condition.is_possible
            assert condition.text()
            for value in condition.values(case.X[which == i][:3]):
                assert condition.text(value).startswith(condition.column.name)


def test_conditions_on_one_feature_are_merged():
    tree = shared_tree()
    assert texts(tree, [0, 2, 3, 4, 6]) == [
        "0.31 < vat_gap <= 0.54321",
        "age_years > 2.5 or missing",
        "turnover <= 1,234,567.5",
    ]
    merged = path_conditions(tree, AUDIT_COLUMNS, [0, 2, 3, 4, 6, -1, -1])
    assert merged[0].steps == (0, 3)
    assert (merged[0].low, merged[0].high, merged[0].missing) == (0.31, 0.54321, False)


def test_missing_is_required_where_nothing_else_is_left():
    assert texts(shared_tree(), [0, 1, 4, 5]) == [
        "vat_gap is missing",
        "sector is neither retail nor catering",
    ]
    assert texts(audit_tree(), [0, 1, 4, 8])[-1] == "age_years is missing"


def test_weighted_sums_are_merged_apart():
    X = np.array([[6.0, 0, 0, 1.0], [np.nan, 0, 0, 1.0], [2.5, 0, 0, 1.0]])
    first, *rest = path_conditions(oblique_tree(), AUDIT_COLUMNS, [0, 2, 3])
    assert rest == []
    assert first.text() == "1.2 < 0.8 x vat_gap - 0.3 x age_years <= 3.4 or missing"
    assert first.feature == -1
    assert first.holds(X).tolist() == [False, True, True]
    assert first.text(first.values(X)[2]) == "0.8 x vat_gap - 0.3 x age_years = 1.7 (> 1.2 and <= 3.4)"


def test_a_node_with_one_child_says_nothing():
    tree = make_tree(
        [
            node(kind=1, feature=0, threshold=1.0, left=1, right=1, positive=1, negative=3),
            node(leaf=0, positive=1, negative=3),
        ]
    )
    assert path_conditions(tree, AUDIT_COLUMNS, [0, 1]) == []


def test_open_and_impossible_conditions_are_known():
    sector = AUDIT_COLUMNS[1]
    assert Condition(0, AUDIT_COLUMNS[0]).is_open
    assert Condition(1, sector, codes=tuple(range(6))).is_open
    assert not Condition(1, sector, codes=tuple(range(6)), missing=False).is_open
    assert not Condition(1, sector, codes=(), missing=False).is_possible
    assert not Condition(0, AUDIT_COLUMNS[0], 5.0, 5.0, missing=False).is_possible


def test_nodes_that_are_no_path_are_refused():
    with pytest.raises(ValueError, match="node 5 is not a child of node 0, whose children are 1 and 2"):
        path_conditions(audit_tree(), AUDIT_COLUMNS, [0, 5])


@given(trees(), blocks())
def test_what_a_path_says_holds_for_the_rows_that_take_it(tree, X):
    columns = columns_for(tree)
    X = with_whole_codes(columns, X)
    for row, path in zip(X, tree.paths(X)[0], strict=True):
        for condition in path_conditions(tree, columns, path):  # sums with fills and with categories among them
            assert condition.holds(row[None]).all()


def test_a_missing_value_in_a_sum_counts_as_it_does_in_the_tree():
    tree = replace(oblique_tree(), oblique_fill=np.array([0.5, np.nan, 0.5, np.nan]))
    X = np.array([[np.nan, 0, 0, 1.0], [2.0, 0, 0, np.nan]])
    values = side_condition(tree, AUDIT_COLUMNS, 0, left=True).values(X)
    assert values[0] == 0.8 * 0.5 - 0.3 * 1.0
    assert np.isnan(values[1])
