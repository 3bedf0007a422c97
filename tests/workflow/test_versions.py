"""Two versions of a model: figures are those of both, moved cases are the right ones, and the words are true."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from toprank import InputError, RankingTree, RedFlags, Scorecard, ScorecardTree, compare_versions
from toprank.datasets import make_audit
from toprank.explain.conditions import Condition
from toprank.rankers.points.card import Card, Shape
from toprank.rankers.points.card_tree import CardTree
from toprank.rankers.points.changes import ColumnPoints, points_changes, rule_changes
from toprank.rankers.points.flags import Flag, Flags
from toprank.tree.columns import Column
from toprank.workflow.versions import ModelChanges


@pytest.fixture(scope="module")
def data():
    return make_audit(2400, random_state=0).split()


@pytest.fixture(scope="module")
def flags(data):
    past, _ = data
    settings = {"teacher": None, "cv": 0, "max_rules": 3, "max_conditions": 2, "max_features": 3}
    return RedFlags(**settings, budget=40).fit(past.X, past.y)


@pytest.fixture(scope="module")
def trees(data):
    past, _ = data
    kept = past.X.drop(columns="sector")
    return RankingTree(max_depth=3, cv=0).fit(past.X, past.y), RankingTree(max_depth=5, cv=0, budget=30).fit(
        kept, past.y
    )


@pytest.fixture(scope="module")
def compared(trees, data):
    return compare_versions(*trees, data[1].X, data[1].y)


def test_figures_and_moved_cases_are_those_of_both_models(compared, trees, data):
    new = data[1]
    scores = [model.decision_function(new.X) for model in trees]
    first = [set(np.argsort(-score, kind="stable")[:30].tolist()) for score in scores]
    assert (compared.k, compared.n_cases, compared.n_positives) == (30, len(new.y), new.y.sum())
    assert compared.n_same == len(first[0] & first[1]) < 30
    figures = compared.figures
    assert figures.before == pytest.approx(average_precision_score(new.y, scores[0]))
    assert figures.after == pytest.approx(average_precision_score(new.y, scores[1]))
    assert figures.difference[1] <= figures.difference[0] <= figures.difference[2]
    assert [figures.hits_before, figures.hits_after] == [new.y[list(rows)].sum() for rows in first]
    assert figures.hits_after - figures.hits_before == compared.hits_entered - compared.hits_left
    moved = compared.moved
    assert type(moved) is type(new.X)
    assert set(moved["row"][moved["change"] == "entered"]) == first[1] - first[0]
    assert set(moved["row"][moved["change"] == "left"]) == first[0] - first[1]
    order = [np.argsort(-score, kind="stable").tolist() for score in scores]
    assert moved["rank_before"].tolist() == [order[0].index(row) + 1 for row in moved["row"]]
    assert moved["rank_after"].tolist() == [order[1].index(row) + 1 for row in moved["row"]]
    assert moved["is_positive"].tolist() == (new.y[moved["row"]] == 1).tolist()


def test_settings_and_columns_of_trees_are_compared(compared):
    changes = compared.changes
    assert changes.settings == {"max_depth": (3, 5), "budget": (None, 30)}
    assert (changes.columns_dropped, changes.columns_added) == (("sector",), ())
    assert changes.rules is changes.points is None
    text = str(compared)
    assert "  settings         budget=30 instead of None\n                   max_depth=5 instead of 3\n" in text
    assert "  columns dropped  sector" in text
    assert compared.moved_text in text
    told = json.loads(json.dumps(compared.to_dict()))
    assert told["changes"]["settings"]["max_depth"] == {"before": 3, "after": 5}
    assert len(told["moved"]["row"]) == 2 * told["n_new"]
    assert told["difference"]["value"] == compared.figures.difference[0]


def test_without_outcomes_only_ranks_are_compared(trees, data):
    found = compare_versions(*trees, data[1].X, k=0.05)
    assert found.k == 40
    assert found.figures is found.n_positives is found.hits_entered is None
    assert "is_positive" not in found.moved
    assert "average precision" not in str(found)
    assert "average_precision" not in found.to_dict()


def test_a_model_beside_itself_has_not_changed(flags, data):
    found = compare_versions(flags, flags, data[1].X, data[1].y)
    assert (found.n_new, found.verdict_text, found.changes.lines()) == (0, "no difference", [])
    assert "the first 40 cases are the same before and after\nnothing changed in the model" in str(found)
    assert replace(found, has_same_scores=False).unchanged_text != found.unchanged_text


def test_changes_by_hand_are_told_as_they_were_made(flags, data):
    new = data[1]
    first, second = flags.flags_[0], flags.flags_[1]
    edited = flags.without_rule(1, new.X, new.y).model
    place = 1 + next(i for i, flag in enumerate(edited.flags_) if flag.conditions == second.conditions)
    edited = edited.with_points(place, second.points + 4, new.X, new.y).model
    edited = edited.with_rule({"age_years": ("<=", 2)}, new.X, new.y, points=5).model
    changed = [rule for rule in compare_versions(flags, edited, new.X).changes.rules if rule.kind != "kept"]
    assert [rule.kind for rule in changed if rule.before != first] == ["added", "changed"]
    told = {rule.kind: rule.text for rule in changed}
    assert told["dropped"].endswith(first.text())
    assert told["added"] == "+5: age_years <= 2"
    assert told["changed"] == f"+{second.points + 4:.0f} instead of +{second.points:.0f}: {second.text()}"


def test_points_of_scorecards_are_compared_on_one_scale(data):
    past, new = data
    old = Scorecard(cv=0, alpha=30.0, max_features=4).fit(past.X, past.y)
    twice = Scorecard(cv=0, alpha=30.0, max_features=4, points=40).fit(past.X, past.y)
    changes = compare_versions(old, twice, new.X).changes
    assert changes.has_other_scale
    assert max((each.size for each in changes.points), default=0) < 2  # rounding
    tree = ScorecardTree(cv=0, alpha=30.0, max_depth=1).fit(past.X, past.y)
    found = compare_versions(old, tree, new.X)
    assert found.changes.classes == ("Scorecard", "ScorecardTree")
    assert not found.changes.has_other_scale
    largest = found.changes.points[0]
    assert largest.size == max(each.size for each in found.changes.points) > 0
    assert ("points", largest.text) in found.changes.lines()


# --- matching -----------------------------------------------------------------------------------------------------


def test_rules_are_matched_by_columns_and_cases():
    age, sector = Column("age", has_missing=False), Column("sector", ("bar", "bank", "shop"), has_missing=False)
    cases = np.column_stack((np.arange(100.0) % 20, np.arange(100.0) % 3))

    def young(at, most):
        return Condition(at, age, high=most, missing=False)

    bar = Condition(1, sector, missing=False, codes=(0,))
    twice = Flag((bar,), 2.0)
    old = Flags((Flag((young(0, 5.0), bar), 9.0), Flag((young(0, 10.0),), 4.0), twice, twice), 2)
    moved = replace(bar, feature=0)  # the later table has its columns in another order
    new = Flags((Flag((moved, young(1, 6.0)), 8.0), Flag((young(1, 2.0),), 4.0), Flag((moved,), 2.0)), 2)
    found = rule_changes(old, new, old.holds(cases), new.holds(cases[:, ::-1]))
    assert [(each.kind, each.text) for each in found] == [
        ("dropped", "+4: age <= 10"),
        ("dropped", "+2: sector is bar"),
        ("added", "+4: age <= 2"),
        ("changed", "+8 instead of +9: sector is bar; age <= 6; was: age <= 5"),
        ("kept", "+2: sector is bar"),
    ]
    assert found[3].to_dict()["rule_before"] == "age <= 5; sector is bar"


def test_points_that_all_cases_gain_are_no_change():
    columns = [Column("a"), Column("b"), Column("c"), Column("d")]
    matrix = np.array([[0.0, 1.0, 2.0, 3.0]] * 3 + [[9.0, 9.0, 9.0, 9.0]])
    old = np.array([[0.0, 0.0, 5.0, 0.0]] * 3 + [[8.0, 0.0, 0.0, 0.0]])
    new = np.array([[2.0, 0.0, 0.0, 0.0]] * 3 + [[10.0, 6.0, 0.0, 0.0]])
    found = points_changes(
        ColumnPoints(columns, matrix, old, frozenset("ac")), ColumnPoints(columns[:3], matrix, new, frozenset("ab"))
    )
    assert [(each.column, each.kind, each.size) for each in found] == [("b", "added", 1.5), ("c", "dropped", 1.25)]
    assert found[0].text == "b: has points now; +6 where b = 9"
    assert found[1].text == "c: no points any more; was +5 where c = 2"


@pytest.mark.parametrize("is_correction", [False, True])
def test_a_column_whose_points_no_case_has_is_not_dropped(data, is_correction):
    """Points that both versions have, but for values that none of the cases have."""
    past, new = data
    model = ScorecardTree(cv=0, alpha=30.0, max_depth=0, max_features=1).fit(past.X, past.y)
    place = model.feature_names_in_.tolist().index("age_years")
    versions = []
    for points in ([0, 5, 7], [0, 0, 7]):
        cards = [Card((Shape(place, [1, 2], points),), 0.0, 20.0), Card((), 0.0, 20.0)]
        correction, card = cards if is_correction else cards[::-1]
        versions.append(copy(model))
        versions[-1].card_ = card
        versions[-1].card_tree_ = replace(CardTree.from_card(card), corrections=(correction,))
    X = new.X.assign(age_years=np.arange(len(new.X)) % 2 + 0.5)
    (change,) = compare_versions(*versions, X).changes.points
    assert (change.column, change.kind) == ("age_years", "changed")
    assert change.text.startswith("age_years = 1.5: 0 instead of +5")


def test_long_lists_of_points_are_cut():
    columns = [Column(f"c{i}") for i in range(10)]
    matrix, old = np.arange(20.0).reshape(2, 10), np.zeros((2, 10))
    new = old + np.arange(1.0, 11.0) * [[0], [1]]
    every = frozenset(column.name for column in columns)
    before, after = ColumnPoints(columns, matrix, old, frozenset()), ColumnPoints(columns, matrix, new, every)
    points = tuple(points_changes(before, after))
    lines = ModelChanges(("A", "A"), ("", ""), ((1, 1), (1, 1)), {}, points=points).lines()
    assert lines[0] == ("points", "c9: has points now; +10 where c9 = 19")
    assert lines[-1] == ("", "smaller changes in 2 other columns")
    assert len(lines) == 9


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_table_without_the_columns_of_both_is_refused(trees, data):
    with pytest.raises(InputError, match=r"`before` \(RankingTree\) cannot read it: Column 'sector'"):
        compare_versions(*trees, data[1].X.drop(columns="sector"))
    with pytest.raises(InputError, match="needs a fitted ranker of this library as `after`"):
        compare_versions(trees[0], "model", data[1].X)
    with pytest.raises(InputError, match="3"):
        compare_versions(*trees, data[1].X, data[1].y * 3)


def test_models_that_look_for_different_outcomes_are_refused(trees, data):
    past, new = data
    other = RankingTree(max_depth=1, cv=0, pos_label=0).fit(past.X, past.y)
    with pytest.raises(InputError, match="`before` looks for 1 and `after` for 0"):
        compare_versions(trees[0], other, new.X, new.y)


def test_training_cases_get_a_warning(trees, data):
    past, _ = data
    with pytest.warns(UserWarning, match="`before` and `after` were trained on these very cases"):
        compare_versions(*trees, past.X, past.y)
