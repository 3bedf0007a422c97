from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from grown_trees import AUDIT_COLUMNS, audit_tree, grown_cases, make_tree, node, oblique_tree
from toprank.explain import explain_rows, reasons
from toprank.explain.contributions import node_log_odds
from toprank.metrics import HitRates
from toprank.tree.columns import Usual
from toprank.tree.scoring import LeafScorecard
from toprank.words.numbers import percent_text

X = np.array([[0.42, 2, 5000, 3], [np.nan, 0, 100, np.nan], [0.1, 5, 3000, np.nan]])
SCORECARD = LeafScorecard(
    center=np.array([0.2, 0, 1000, 5]),
    weight=np.array([2.0, 0, -0.001, -0.5]),
    missing=np.array([0.1, 0.3, 0.2, 0.7]),
    points_at=np.array([0, 0, 6, 6, 6]),
    category_points=np.array([0.5, 0, 0, 0, 0, 0]),
)


USUAL = (
    Usual(0.1, 0.02, 0.3, 0.01, 0.05), Usual(0.0, 0.0, 0.0, 0.4, 0.0), Usual(3000.0, 200.0, 9000.0, 0.01, 0.0),
    Usual(5.0, 5.0, 5.0, 0.6, 0.2),
)  # fmt: skip
KNOWN_COLUMNS = [replace(column, usual=usual) for column, usual in zip(AUDIT_COLUMNS, USUAL, strict=True)]


def texts(found):
    return [[reason.text for reason in row] for row in found]


def test_reasons_are_what_speaks_for_a_row_strongest_first():
    found = reasons(audit_tree(), AUDIT_COLUMNS, X, 3)
    assert texts(found) == [
        ["sector = construction", "vat_gap = 0.42 (> 0.31)"],
        [],
        ["age_years is missing", "turnover = 3000 (> 1200)"],
    ]
    log_odds = node_log_odds(audit_tree())
    by_hand = [log_odds[5] - log_odds[2], log_odds[2] - log_odds[0]]
    assert [reason.strength for reason in found[0]] == pytest.approx(np.exp(by_hand))
    assert [(reason.feature, reason.value, reason.low, reason.high) for reason in found[0]] == [
        ("sector", "construction", -np.inf, np.inf),
        ("vat_gap", 0.42, 0.31, np.inf),
    ]
    assert texts(reasons(audit_tree(), AUDIT_COLUMNS, X, 1))[0] == ["sector = construction"]
    assert reasons(audit_tree(), AUDIT_COLUMNS, X[:0], 2) == []
    assert reasons(audit_tree(), AUDIT_COLUMNS, X, 0) == [[], [], []]


def test_values_stand_beside_what_is_usual():
    assert texts(reasons(audit_tree(), KNOWN_COLUMNS, X, 3)) == [
        ["sector = construction (most often retail)", "vat_gap = 0.42 (usually at most 0.3)"],
        [],
        ["age_years is missing (as in 20 % of cases)", "turnover = 3000 (> 1200, median 3000)"],
    ]


def test_points_and_conditions_of_a_column_are_one_reason():
    tree = replace(audit_tree(), scoring=SCORECARD).check()
    found = reasons(tree, AUDIT_COLUMNS, X, 4)
    assert texts(found) == [
        ["sector = construction", "vat_gap = 0.42 (> 0.31)", "age_years = 3"],
        ["age_years is missing", "sector = retail"],
        ["age_years is missing"],
    ]
    log_odds = node_log_odds(tree)
    gap = log_odds[2] - log_odds[0] + 2.0 * (0.42 - 0.2)
    assert found[0][1].strength == pytest.approx(np.exp(gap))


def test_points_count_against_those_of_the_usual_value():
    tree = replace(audit_tree(), scoring=SCORECARD).check()
    first = {reason.feature: reason.strength for reason in reasons(tree, KNOWN_COLUMNS, X, 4)[0]}
    log_odds = node_log_odds(tree)
    assert first["age_years"] == pytest.approx(np.exp(-0.5 * (3 - 5)))
    assert first["vat_gap"] == pytest.approx(np.exp(log_odds[2] - log_odds[0] + 2.0 * (0.42 - 0.1)))
    assert first["sector"] == pytest.approx(np.exp(log_odds[5] - log_odds[2] - 0.4 * 0.5))  # 40 % have 0.5 points


def test_strengths_are_shrunk_to_what_new_cases_bear_out():
    first, none = reasons(audit_tree(), AUDIT_COLUMNS, X[[0, 0]], 3, gain=np.array([0.8, -np.inf]))
    assert np.prod([reason.strength for reason in first]) == pytest.approx(np.exp(0.8))
    whole = reasons(audit_tree(), AUDIT_COLUMNS, X[:1], 3)[0]
    assert [reason.text for reason in first] == [reason.text for reason in whole]
    assert [reason.strength for reason in none] == pytest.approx([reason.strength**0.1 for reason in whole])
    assert reasons(audit_tree(), AUDIT_COLUMNS, X[:1], 3, gain=np.array([np.inf]))[0] == whole


def test_strengths_have_an_end():
    card = replace(SCORECARD, weight=np.array([2.0, 0, -0.001, -1e308]))
    found = reasons(replace(audit_tree(), scoring=card), AUDIT_COLUMNS, np.array([[0.1, 0, 100, -1e308]]), 1)
    assert found[0][0].strength == pytest.approx(1000.0)


def test_categories_without_a_code_of_their_own_are_named():
    shared = replace(AUDIT_COLUMNS[1], shared=("fishing", "forestry"))
    columns = [AUDIT_COLUMNS[0], shared, *AUDIT_COLUMNS[2:]]
    rows = np.array([[0.5, 5, 1, 1], [0.5, np.nan, 1, 1], [0.5, np.nan, 1, 1], [0.5, 1, 1, 1]])
    tree = audit_tree()
    card = replace(SCORECARD, category_points=np.array([0.5, 0, 0, 0, 0, 9.0]), missing=np.array([0, 8.0, 0, 0]))
    tree = replace(tree, scoring=card).check()
    given = {"sector": ["forestry", "mining", None, "catering"]}
    asked = []

    def originals(name):
        asked.append(name)
        return given[name]

    first = [row[0] for row in reasons(tree, columns, rows, 1, originals=originals)]
    assert [reason.text for reason in first[:3]] == [
        "sector = forestry (one of 3 rare values)",
        "sector = mining (never seen in training)",
        "sector is missing",
    ]
    assert [reason.value for reason in first[:3]] == ["forestry", "mining", None]
    assert asked == ["sector"]
    told = explain_rows(tree, columns, rows, originals=originals)
    assert [step.text for row in told[:3] for step in row.steps if step.feature == "sector"] == [
        "sector = forestry (one of 3 rare values)",
        "sector = mining (never seen in training)",
        "sector is missing",
    ]
    assert [row.inside[0].value for row in told[:3]] == ["forestry", "mining", None]
    assert reasons(tree, columns, rows, 1)[0][0].text == "sector is one of 3 rare values"


def test_points_of_features_add_up_to_the_points_of_the_row():
    points = SCORECARD.points(X)
    np.testing.assert_allclose(points[1], [0.1, 0.5, 0.9, 0.7])
    tree = replace(make_tree([node(leaf=0, positive=1, negative=3)]), scoring=SCORECARD)
    total = points.sum(axis=1)
    expected = 1 - (1 - (0.5 + 0.499 * total / (1 + np.abs(total))))
    np.testing.assert_allclose(tree.decision_function(X), expected)


@given(grown_cases())
def test_reasons_are_true_of_their_rows_and_the_same_ones_alone(case):
    together = reasons(case.tree, case.columns, case.X, 3)
    names = [column.name for column in case.columns]
    for row, found in enumerate(together):
        assert len(found) <= 3
        strengths = [reason.strength for reason in found]
        assert strengths == sorted(strengths, reverse=True)
        assert all(strength > 1 for strength in strengths)
        for reason in found:
            value = case.X[row, names.index(reason.feature)]
            assert np.isnan(value) or reason.low < value <= reason.high
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
        same = case.tree.leaf == case.tree.leaf[leaf[row]]
        assert explanation.positives == pytest.approx(case.tree.positive[same].sum())
        assert explanation.rate == pytest.approx(explanation.positives / explanation.n)
        assert explanation.score == case.tree.score[leaf[row]]
        assert not explanation.is_for_new_cases
        assert max(map(len, str(explanation).splitlines())) <= 100


def test_an_explanation_reads_well_and_is_plain_data():
    first, second = explain_rows(replace(audit_tree(), scoring=SCORECARD), AUDIT_COLUMNS, X)[:2]
    assert str(first).splitlines() == [
        "leaf 1 of 5, score 0.828234",
        "training rate 25 %, 12.5 times that of all cases; in training 25 of 100 cases of this leaf were",
        "positive.",
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


def test_the_rate_of_an_explanation_follows_the_score():
    rates = HitRates([0.0, 1.0], [0.0, 0.4], [1000.0, 0.0], 2.0, "out of bag", 0.1, np.nan)
    tree = replace(audit_tree(), scoring=SCORECARD)
    for explanation, score in zip(explain_rows(tree, AUDIT_COLUMNS, X, rates), tree.decision_function(X), strict=True):
        assert explanation.score == score
        assert explanation.rate == pytest.approx(0.4 * score)
        assert explanation.lift == pytest.approx(explanation.rate / 0.02)
        assert explanation.is_for_new_cases
        assert "expected hit rate" in str(explanation)
        assert "training rate" not in str(explanation)


def test_a_leaf_that_no_training_case_reached_still_has_its_rate():
    rates = HitRates([0.0, 1.0], [0.0, 0.4], [1000.0, 0.0], 2.0, "out of bag", 0.1, np.nan)
    tree = make_tree([node(kind=1, feature=0, threshold=0.5, left=1, right=2, positive=1, negative=3),
                      node(leaf=1, positive=1, negative=3), node(leaf=0, positive=0, negative=0)])  # fmt: skip
    rows = np.array([[0.9, 0.0, 0.0, 0.0]])
    (explanation,) = explain_rows(tree, AUDIT_COLUMNS, rows, rates)
    assert explanation.n == 0
    assert f"expected hit rate {percent_text(explanation.rate)}" in str(explanation)
    assert "no training case reached this leaf" in str(explanation)
    (unknown,) = explain_rows(tree, AUDIT_COLUMNS, rows)
    assert "rate" not in str(unknown).splitlines()[1]


def test_a_tree_of_one_leaf_has_no_reasons():
    tree = make_tree([node(leaf=0, positive=0, negative=0)])
    assert reasons(tree, AUDIT_COLUMNS, X, 2) == [[], [], []]
    assert "none: all cases share this leaf" in str(explain_rows(tree, AUDIT_COLUMNS, X)[0])
    assert explain_rows(tree, AUDIT_COLUMNS, X)[0].to_dict()["rate"] is None
    assert explain_rows(tree, AUDIT_COLUMNS, X[:0]) == []


def test_of_a_weighted_sum_the_terms_that_carry_the_row_are_reasons():
    rows = np.array([[9.0, 0, 0, 1.0], [9.0, 0, 0, 7.0]])
    found = reasons(oblique_tree(), KNOWN_COLUMNS, rows, 3)
    assert texts(found) == [
        ["vat_gap = 9 (usually at most 0.3)", "age_years = 1 (usually 5)"],
        ["vat_gap = 9 (usually at most 0.3)"],
    ]
    log_odds = node_log_odds(oblique_tree())
    assert np.prod([reason.strength for reason in found[0]]) == pytest.approx(np.exp(log_odds[4] - log_odds[0]))
