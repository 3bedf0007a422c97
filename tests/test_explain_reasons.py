from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from grown_trees import AUDIT_COLUMNS, audit_tree, grown_cases, make_tree, node, oblique_tree
from toprank.explain import explain_rows, reasons
from toprank.explain.contributions import node_log_odds
from toprank.explain.reasons import feature_points
from toprank.tree.scoring import Scoring

X = np.array([[0.42, 2, 5000, 3], [np.nan, 0, 100, np.nan], [0.1, 5, 3000, np.nan]])
SCORECARD = Scoring(
    kind="linear",
    center=np.array([0.2, 0, 1000, 5]),
    weight=np.array([2.0, 0, -0.001, -0.5]),
    missing=np.array([0.1, 0.3, 0.2, 0.7]),
    points_at=np.array([0, 0, 6, 6, 6]),
    points=np.array([0.5, 0, 0, 0, 0, 0]),
)


def test_reasons_name_the_most_important_conditions_first():
    assert reasons(audit_tree(), AUDIT_COLUMNS, X, 3) == [
        ["sector = construction", "vat_gap = 0.42 (> 0.31)", ""],
        ["turnover = 100 (<= 1200.5)", "vat_gap is missing", ""],
        ["age_years is missing", "turnover = 3000 (> 1200.5)", "vat_gap = 0.1 (<= 0.31)"],
    ]
    assert reasons(audit_tree(), AUDIT_COLUMNS, X, 1)[0] == ["sector = construction"]
    assert reasons(audit_tree(), AUDIT_COLUMNS, X[:0], 2) == []
    assert reasons(audit_tree(), AUDIT_COLUMNS, X, 0) == [[], [], []]


def test_a_scorecard_fills_up_the_reasons():
    tree = replace(audit_tree(), scoring=SCORECARD).check()
    assert reasons(tree, AUDIT_COLUMNS, X, 4) == [
        ["sector = construction", "vat_gap = 0.42 (> 0.31)",
         "age_years = 3 (adds to the score inside the group)", ""],
        ["turnover = 100 (<= 1200.5)", "vat_gap is missing",
         "age_years is missing (adds to the score inside the group)",
         "sector = retail (adds to the score inside the group)"],
        ["age_years is missing", "turnover = 3000 (> 1200.5)", "vat_gap = 0.1 (<= 0.31)", ""],
    ]  # fmt: skip


def test_points_of_features_add_up_to_the_points_of_the_row():
    points = feature_points(SCORECARD, X)
    np.testing.assert_allclose(points[1], [0.1, 0.5, 0.9, 0.7])
    tree = replace(make_tree([node(leaf=0, positive=1, negative=3)]), scoring=SCORECARD)
    total = points.sum(axis=1)
    expected = 1 - (1 - (0.5 + 0.499 * total / (1 + np.abs(total))))
    np.testing.assert_allclose(tree.decision_function(X), expected)


@given(grown_cases())
def test_rows_get_as_many_reasons_as_asked_for_and_the_same_ones_alone(case):
    together = reasons(case.tree, case.columns, case.X, 3)
    assert [len(row) for row in together] == [3] * len(case.X)
    for row in range(0, len(case.X), 7):
        assert reasons(case.tree, case.columns, case.X[[row]], 3) == [together[row]]


@given(grown_cases())
def test_explanations_agree_with_the_tree(case):
    explained = explain_rows(case.tree, case.columns, case.X)
    leaf = case.tree.apply(case.X)
    log_odds = node_log_odds(case.tree)
    for row, explanation in enumerate(explained):
        assert explanation.leaf == case.tree.leaf[leaf[row]] + 1
        total = sum(step.contribution for step in explanation.steps)
        assert log_odds[0] + total == pytest.approx(log_odds[leaf[row]])
        assert [step.text for step in explanation.steps][:3] == [
            text for text in reasons(case.tree, case.columns, case.X[[row]], 3)[0] if text
        ]
        assert explanation.hit_rate_low <= explanation.hit_rate <= explanation.hit_rate_high
        assert max(map(len, str(explanation).splitlines())) <= 100


def test_an_explanation_reads_well_and_is_plain_data():
    first, second = explain_rows(replace(audit_tree(), scoring=SCORECARD), AUDIT_COLUMNS, X)[:2]
    assert str(first).splitlines() == [
        "leaf 1 of 5, score 0.828234",
        "25 of 100 training cases in this leaf were positive: 25 % (interval 17.5 % to 34.3 %), 12.5 times",
        "the rate of all cases.",
        "conditions met, and what each adds to the log-odds of a positive:",
        "   +1.64  sector = construction",
        "   +1.14  vat_gap = 0.42 (> 0.31)",
        "what orders the cases inside the leaf, in points:",
        "   +1.00  age_years = 3",
        "   +0.44  vat_gap = 0.42",
        "   -4.00  turnover = 5000",
    ]
    plain = second.to_dict()
    assert plain["leaf"] == 4
    assert plain["steps"][0]["value"] == 100.0
    assert plain["steps"][1]["value"] is None
    assert plain["inside"][-2]["value"] == "retail"


def test_a_tree_of_one_leaf_has_no_reasons():
    tree = make_tree([node(leaf=0, positive=0, negative=0)])
    assert reasons(tree, AUDIT_COLUMNS, X, 2) == [["", ""]] * 3
    assert "none: all cases share this leaf" in str(explain_rows(tree, AUDIT_COLUMNS, X)[0])
    assert explain_rows(tree, AUDIT_COLUMNS, X)[0].to_dict()["hit_rate"] is None
    assert explain_rows(tree, AUDIT_COLUMNS, X[:0]) == []


def test_weighted_sums_are_reasons():
    assert reasons(oblique_tree(), AUDIT_COLUMNS, np.array([[9.0, 0, 0, 1.0]]), 2) == [
        ["0.8 x vat_gap - 0.3 x age_years = 6.9 (> 3.4)", ""]
    ]
