import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from golden_files import golden
from grown_trees import AUDIT_COLUMNS, audit_rows, audit_tree, grown_cases, make_tree, node, oblique_tree, shared_tree
from toprank.explain import Condition, PathCounts, Rule, Way, count_paths, leaf_rules, rule_table, side_condition
from toprank.explain.paths import PATHS_KEPT, ways_up
from toprank.tree.columns import Column


def table_of(*args, exact=False, **options):
    return rule_table(leaf_rules(*args, exact=exact, **options), exact=exact)


@given(grown_cases())
def test_shares_of_paths_add_up_inside_each_leaf(case):
    counts = count_paths(case.tree, case.X, case.weight)
    counts.check(case.tree)
    nodes, length = case.tree.paths(case.X)
    mass = Counter()
    for row in range(len(case.X)):
        mass[tuple(nodes[row, : length[row]].tolist())] += case.weight[row]
    for leaf in range(case.tree.n_leaves):
        ways = {path: m for path, m in mass.items() if case.tree.leaf[path[-1]] == leaf}
        found = list(counts.into(leaf))
        assert counts.n_paths[leaf] == len(ways)
        assert len(found) == min(len(ways), PATHS_KEPT)
        shares = [share for _, share in found]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1 + 1e-9
        if 0 < len(ways) <= PATHS_KEPT:
            assert sum(shares) == pytest.approx(1.0)
        for path, share in found:
            assert share == pytest.approx(ways[tuple(path.tolist())] / sum(ways.values()))


@given(grown_cases())
def test_every_leaf_has_a_rule_and_all_cases_are_in_the_table(case):
    rules = table_of(case.tree, case.columns, count_paths(case.tree, case.X, case.weight))
    n_leaves = case.tree.n_leaves
    assert {len(column) for column in rules.values()} == {n_leaves}
    assert rules["leaf"].tolist() == list(range(1, n_leaves + 1))
    assert all(rules["rule"])
    assert rules["n"].sum() == pytest.approx(case.weight.sum())
    assert rules["positives"].sum() == pytest.approx(case.tree.positive[0])
    assert rules["training_rate"] == pytest.approx(rules["positives"] / rules["n"])
    assert rules["lift"] == pytest.approx(rules["training_rate"] * case.weight.sum() / case.tree.positive[0])
    assert "hit_rate" not in rules  # that is for new cases
    assert (np.diff(rules["score"]) < 0).all()


@given(grown_cases())
def test_a_leaf_without_counted_rows_still_has_a_rule(case):
    seen = table_of(case.tree, case.columns, count_paths(case.tree, case.X, case.weight))
    unseen = table_of(case.tree, case.columns, count_paths(case.tree, case.X[:0]))
    for leaf, (rule, guess) in enumerate(zip(seen["rule"], unseen["rule"], strict=True)):
        n_ways = len(list(ways_up(case.tree, leaf)))
        assert guess
        assert " at all" not in guess  # some row can take the path
        assert n_ways > 1 or rule == guess


@given(grown_cases())
def test_paths_survive_a_file(case):
    counts = count_paths(case.tree, case.X, case.weight)
    np.testing.assert_equal(PathCounts.from_arrays(counts.to_arrays(), case.tree).to_arrays(), counts.to_arrays())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": np.zeros(3, np.float32)}, "lack an array 'share' of float64"),
        ({"share": np.zeros(3)}, "not consistent in length"),
        ({"nodes": np.zeros(0, np.int32)}, "not consistent in length"),
        ({"n_paths": np.zeros(1, np.int32)}, "not ways into known leaves"),
    ],
)
def test_damaged_paths_are_refused(change, message):
    arrays = count_paths(shared_tree(), audit_rows()).to_arrays()
    with pytest.raises(ValueError, match=message):
        PathCounts.from_arrays(arrays | change, shared_tree())


def test_paths_of_another_tree_are_refused():
    counts = count_paths(shared_tree(), audit_rows())
    for other in (audit_tree(), make_tree([node(leaf=0, positive=1, negative=3)])):
        with pytest.raises(ValueError, match="not paths of this tree"):
            counts.check(other)
    shifted = counts.to_arrays() | {"nodes": counts.nodes + np.int32(1)}
    with pytest.raises(ValueError, match="not paths of this tree"):
        PathCounts.from_arrays(shifted, shared_tree())


def test_small_leaves_are_followed_in_large_tables():
    X = np.tile([[0.1, 0, 2e6, 1.0]], (5000, 1))
    X[7] = [0.9, 0, 2e6, 1.0]
    counts = count_paths(shared_tree(), X, max_rows=60)
    assert counts.leaf.tolist() == [0, 2]
    again = count_paths(shared_tree(), X, np.ones(5000), max_rows=60)
    np.testing.assert_equal(again.to_arrays(), counts.to_arrays())


def test_rows_of_no_weight_do_not_count():
    X, weight = audit_rows(), np.ones(500)
    weight[100:] = 0
    some, few = count_paths(shared_tree(), X, weight), count_paths(shared_tree(), X[:100])
    np.testing.assert_equal(some.to_arrays(), few.to_arrays())


def test_all_cases():
    tree = make_tree([node(leaf=0, positive=1, negative=3)])
    assert table_of(tree, AUDIT_COLUMNS, count_paths(tree, audit_rows()))["rule"] == ["all cases"]


def test_exact_rules_tell_all_digits_all_names_and_all_known_ways():
    tree = shared_tree()
    paths = count_paths(tree, audit_rows())
    short, exact = (table_of(tree, AUDIT_COLUMNS, paths, exact=exact) for exact in (False, True))
    assert list(short) == list(exact)
    assert [rule.count(" other way") for rule in short["rule"]] == [1, 1, 0]
    assert [rule.count(" other way") for rule in exact["rule"]] == [0, 0, 0]
    assert exact["rule"][2] == (
        "((vat_gap > 0.31 and not missing) and (turnover > 1234567.5 or missing) and (age_years > 2.5 or missing)) or "
        "((sector is none of construction, transport, health and farming, or is missing) and "
        "(turnover > 1234567.5 or missing) and (vat_gap <= 0.31 or missing))"
    )


def test_rates_of_new_cases_come_first_and_the_lift_follows_them():
    rates = np.array([[0.2, 0.1, 0.3], [0.1, 0.05, 0.2], [0.01, 0.005, 0.02]])
    tree = shared_tree()
    rules = table_of(tree, AUDIT_COLUMNS, count_paths(tree, audit_rows()), rates)
    assert (
        np.column_stack([rules[name] for name in ("hit_rate", "hit_rate_low", "hit_rate_high")]).tolist()
        == rates.tolist()
    )
    base = tree.positive[0] / (tree.positive[0] + tree.negative[0])
    assert rules["lift"] == pytest.approx(rates[:, 0] / base)
    assert rules["training_rate"] == pytest.approx(rules["positives"] / rules["n"])


@pytest.mark.parametrize(("name", "tree"), [("plain", audit_tree()), ("shared", shared_tree())])
def test_golden_rules(name, tree):
    rules = table_of(tree, AUDIT_COLUMNS, count_paths(tree, audit_rows()))
    table = [
        {
            key: value if isinstance(value, str) else round(float(value), 6)
            for key, value in zip(rules, row, strict=True)
        }
        for row in zip(*rules.values(), strict=True)
    ]
    text = json.dumps(table, indent=2) + "\n"
    assert text == golden(f"rules_{name}.json", text)


# --- rules as data ----------------------------------------------------------------------------------------------


def selects(condition, columns, X):
    """Rows that the plain values of a condition select, read as a stranger would read them."""
    by_name = {column.name: i for i, column in enumerate(columns)}

    def cell(name, row):
        value, column = row[by_name[name]], columns[by_name[name]]
        if column.categories is None:
            return None if np.isnan(value) else value
        return column.categories[int(value)] if 0 <= value < len(column.categories) else None

    def term(each, row):
        value = cell(each["column"], row)
        if each["category"] is not None:
            return each["weight"] * (value in each["category"])
        return each["weight"] * (value if value is not None else np.nan if each["fill"] is None else each["fill"])

    out = []
    for row in X:
        value = cell(condition["column"], row) if "terms" not in condition else 0.0
        for each in condition.get("terms", ()):
            value += term(each, row)
        if value is None or value != value:
            out.append(condition["missing"])
        elif condition["categories"] is not None:
            out.append(value in condition["categories"])
        else:
            low, high = condition["low"], condition["high"]
            out.append(
                not condition["only_missing"] and (low is None or value > low) and (high is None or value <= high)
            )
    return np.array(out, bool)


@given(grown_cases())
def test_ways_select_the_rows_of_their_leaf(case):
    place = case.tree.leaf[case.tree.apply(case.X)]
    paths = count_paths(case.tree, case.X, case.weight)
    for rule in leaf_rules(case.tree, case.columns, paths, exact=True):
        selected = np.any([way.holds(case.X) for way in rule.ways], axis=0)
        is_own = place == rule.leaf - 1
        assert not (selected & ~is_own).any()
        if paths.n_paths[rule.leaf - 1] and not rule.n_other_ways:
            assert np.array_equal(selected, is_own)


@given(grown_cases())
def test_plain_values_of_a_rule_select_what_the_rule_selects(case):
    for rule in leaf_rules(case.tree, case.columns, count_paths(case.tree, case.X, case.weight)):
        data = json.loads(json.dumps(rule.to_dict(), allow_nan=False))
        assert (data["leaf"], data["rule"], data["n"]) == (rule.leaf, rule.text(), rule.n)
        for way, conditions in zip(rule.ways, data["ways"], strict=True):
            for condition, values in zip(way.conditions, conditions, strict=True):
                assert values["text"] == condition.text()
                assert np.array_equal(selects(values, case.columns, case.X), condition.holds(case.X))


def test_plain_values_of_weighted_sums_and_dates():
    tree = oblique_tree()
    X = audit_rows(60)
    X[:, 0] *= 9  # both sides of the sum
    condition = side_condition(tree, AUDIT_COLUMNS, 0)
    assert (condition.is_sum, condition.to_dict()["column"]) == (True, None)
    assert np.array_equal(selects(condition.to_dict(), AUDIT_COLUMNS, X), condition.holds(X))
    assert 0 < condition.holds(X).sum() < 60
    day = Condition(0, Column("founded", form="date"), high=365.0)
    assert (day.to_dict()["low"], day.to_dict()["high"]) == (None, "1971-01-01")


def test_the_text_of_a_rule():
    young, rich = (
        Condition(0, Column("age"), high=3.0, missing=False),
        Condition(1, Column("turnover"), low=5.0, missing=False),
    )
    figures = {"leaf": 1, "precision": 1.0, "lift": 2.0, "n": 9.0, "positives": 3.0, "training_rate": 1 / 3}
    figures |= {"score": 1.0, "coverage": 0.9006}
    both, one = Way((young, rich)), Way((rich,))
    assert Rule(ways=(one,), **figures).text() == "turnover > 5"
    assert Rule(ways=(both, one), **figures).text() == "(age <= 3 and turnover > 5) or turnover > 5"
    assert Rule(ways=(both, one), is_short=True, **figures).text() == "(age <= 3 and turnover > 5) or (turnover > 5)"
    several = Rule(ways=(both,), n_other_ways=1200, **figures)
    assert several.way_texts() == ["age <= 3 and turnover > 5", "1,200 other ways (those shown cover 90 %)"]
    assert several.text() == "(age <= 3 and turnover > 5) or 1,200 other ways (those shown cover 90 %)"
    assert Rule(ways=(Way(),), is_rest=True, **figures).text() == "all other cases"
    assert Rule(ways=(Way(),), **figures).text() == "all cases"
    unknown = Rule(ways=(Way(),), **(figures | {"coverage": float("nan")})).to_dict()
    assert (unknown["coverage"], "hit_rate" in unknown, unknown["ways"]) == (None, False, [[]])
