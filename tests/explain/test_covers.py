"""Short rules of leaves: they select what they say, their figures are true, and files keep them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import toprank
from grown_trees import AUDIT_COLUMNS, audit_rows, audit_tree, grown_cases, make_tree, node, shared_tree
from ranker_cases import TREES, fewer, make_cases, variant
from toprank import MetaAP, RankingTree
from toprank.datasets import make_audit
from toprank.explain import MAX_CONDITIONS, MAX_LEAVES, Covers, LeafRows, count_paths, leaf_rules, rule_table
from toprank.explain.covers import MAX_WAYS


def covers_of(tree, columns, X, weight=None):
    rows = LeafRows.draw(tree, X, tree.apply(X), weight)
    return Covers.find(tree, columns, rows, count_paths(tree, X, weight))


def table_of(*args, **options):
    return rule_table(leaf_rules(*args, **options))


def check_figures(tree, columns, X, covers):
    """Assert that coverage and precision are those of the rows, whatever the number of conditions."""
    position = tree.leaf[tree.apply(X)]
    for leaf in range(len(covers)):
        for n in range(1, MAX_CONDITIONS + 1):
            cover = covers.of(tree, columns, leaf, n)
            assert 1 <= len(cover.ways) <= MAX_WAYS
            assert all(len(way) <= n for way in cover.ways)
            if covers.is_rest(tree, leaf):
                assert (cover.coverage, cover.precision) == (1, 1)
                continue
            selected, is_own = np.any([way.holds(X) for way in cover.ways], axis=0), position == leaf
            if is_own.any():
                assert cover.coverage == pytest.approx(selected[is_own].mean())
            if selected.any():
                assert cover.precision == pytest.approx(is_own[selected].mean())


@fewer(2)
@given(grown_cases())
def test_the_figures_of_covers_are_true_of_the_training_rows(case):
    check_figures(case.tree, case.columns, case.X, covers_of(case.tree, case.columns, case.X))


@pytest.mark.parametrize("kind", TREES)
def test_every_tree_has_covers(kind):
    X, y = make_cases(400)
    model = variant(kind).fit(X, y)
    matrix = model._encode(X)
    covers = model._short_rules()
    assert len(covers) == min(model.tree_.n_leaves, MAX_LEAVES)
    check_figures(model.tree_, model.columns_, matrix, covers)
    rules = model.rules(max_rules=2, max_conditions=1)
    assert len(rules) == min(2, model.tree_.n_leaves)
    assert rules["coverage"].tolist() == covers.coverage[: len(rules), 0].tolist()


def test_a_plain_tree_has_its_paths_without_needless_conditions():
    X = np.column_stack((np.repeat([0.0, 1.0], 50), np.tile([0.0, 1.0], 50), np.zeros(100), np.zeros(100)))
    X[:50, 1] = 0.0  # left of the root no row has a 1
    tree = make_tree(
        [
            node(kind=1, feature=0, threshold=0.5, left=1, right=2, positive=30, negative=70),
            node(leaf=1, positive=5, negative=45),
            node(kind=1, feature=1, threshold=0.5, left=3, right=4, positive=25, negative=25),
            node(leaf=2, positive=0, negative=25),
            node(leaf=0, positive=25, negative=0),
        ]
    )
    rules = table_of(tree, AUDIT_COLUMNS, count_paths(tree, X), covers=covers_of(tree, AUDIT_COLUMNS, X))
    columns = [column.name for column in AUDIT_COLUMNS]
    assert columns[1] == "sector"
    assert rules["precision"].tolist() == rules["coverage"].tolist() == [1.0, 1.0, 1.0]
    assert rules["rule"][1] == f"{columns[0]} <= 0.5"
    best = covers_of(tree, AUDIT_COLUMNS, X).of(tree, AUDIT_COLUMNS, 0)
    assert [condition.feature for condition in best.ways[0].conditions] == [1]  # only rows right of the root have a 1


def test_the_last_leaf_of_many_ways_has_all_other_cases():
    tree, X = shared_tree(), audit_rows()
    rules = table_of(tree, AUDIT_COLUMNS, count_paths(tree, X), covers=covers_of(tree, AUDIT_COLUMNS, X))
    assert rules["rule"][-1] == "all other cases"
    assert (rules["coverage"][-1], rules["precision"][-1]) == (1.0, 1.0)


def test_a_leaf_that_no_row_reaches_has_its_path():
    tree = shared_tree()
    X = audit_rows()
    X = X[tree.leaf[tree.apply(X)] != 0]
    rules = table_of(tree, AUDIT_COLUMNS, count_paths(tree, X), covers=covers_of(tree, AUDIT_COLUMNS, X))
    assert rules["rule"][0] == table_of(tree, AUDIT_COLUMNS, count_paths(tree, X))["rule"][0] != "all cases"


def test_one_leaf_has_all_cases():
    tree = make_tree([node(leaf=0, positive=1, negative=3)])
    covers = covers_of(tree, AUDIT_COLUMNS, audit_rows())
    assert table_of(tree, AUDIT_COLUMNS, count_paths(tree, audit_rows()), covers=covers)["rule"] == ["all cases"]


def test_large_tables_are_described_on_a_sample_that_weighs_as_much():
    generator = np.random.default_rng(0)
    X = np.column_stack((generator.random(200_000), generator.integers(0, 6, 200_000), *generator.random((2, 200_000))))
    tree = audit_tree()
    reached = tree.apply(X)
    rows = LeafRows.draw(tree, X, reached, None, most=5000)
    assert 4000 < len(rows.X) <= 5000
    weight = np.bincount(rows.leaf, rows.weight, tree.n_leaves)
    assert np.allclose(weight, np.bincount(tree.leaf[reached], minlength=tree.n_leaves))
    size = np.bincount(tree.leaf[reached], minlength=tree.n_leaves)
    assert (rows.leaf == size.argmin()).sum() == min(size.min(), 1000)  # small leaves are there as a whole
    sampled, whole = (
        Covers.find(tree, AUDIT_COLUMNS, LeafRows.draw(tree, X, reached, None, most), count_paths(tree, X))
        for most in (20_000, 200_000)
    )
    assert np.allclose(sampled.precision, whole.precision, atol=0.1, equal_nan=True)


def test_rows_of_no_weight_do_not_count():
    tree, X, weight = shared_tree(), audit_rows(), np.ones(500)
    weight[100:] = 0
    some, few = covers_of(tree, AUDIT_COLUMNS, X, weight), covers_of(tree, AUDIT_COLUMNS, X[:100])
    np.testing.assert_equal(some.to_arrays(), few.to_arrays())


# --- models -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    data = make_audit(6000, random_state=1)
    settings = {"criterion": "ap", "leaf_score": "margin", "ccp_alpha": 0.0, "min_samples_leaf": 20}
    return MetaAP(max_depth=3, leaf_depth=3, cv=2, **settings).fit(data.X, data.y)


def test_rules_are_short(model):
    rules = model.rules()
    conditions = [way.count(" and ") + 1 for rule in rules["rule"] for way in rule.split(") or (")]
    assert max(conditions) <= MAX_CONDITIONS + 2  # "a is none of b, c and d" has an "and" of its own
    exact = model.rules(exact=True)
    assert max(map(len, exact["rule"])) > 3 * max(map(len, rules["rule"]))


def test_the_text_fits_one_screen_and_the_tree_stays_available(model):
    lines = model.to_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("1. "))
    stop = next(i for i, line in enumerate(lines) if line.startswith("and ") and line.endswith(" shows all"))
    assert stop - start <= 20
    assert max(map(len, lines)) <= 100
    assert model.to_text(max_rules=2).count("; in training ") == 2
    assert len(model.to_text(max_conditions=1)) < len(model.to_text(max_rules=20))
    assert "yes: " in model.to_text(tree=True)
    assert "score" in model.to_text(exact=True)


@pytest.mark.parametrize(
    ("method", "limits"),
    [("rules", {"max_rules": 0}), ("rules", {"max_conditions": True}), ("to_text", {"max_rules": 1.5})],
)
def test_limits_are_checked(model, method, limits):
    with pytest.raises(ValueError, match=rf"'{next(iter(limits))}' parameter of MetaAP.{method} must be an int"):
        getattr(model, method)(**limits)


def test_longer_paths_are_shown_where_they_are_allowed():
    X, y = make_cases(600)
    model = RankingTree(max_depth=9, min_samples_leaf=2, cv=0).fit(X, y)
    short, long = (model.rules(max_rules=None, max_conditions=n) for n in (2, None))
    cut = short["precision"][:MAX_LEAVES] < 1
    assert cut.any()
    assert (long["precision"][:MAX_LEAVES][cut] >= short["precision"][:MAX_LEAVES][cut]).all()


def test_fit_keeps_no_training_rows_once_rules_are_known_nor_in_copies():
    X, y = make_cases(300)
    model = MetaAP(max_depth=2, leaf_depth=2, cv=0).fit(X, y)
    assert model._leaf_rows is not None
    copied = pickle.loads(pickle.dumps(model))
    assert copied._leaf_rows is None
    np.testing.assert_equal(copied._covers.to_arrays(), model._short_rules().to_arrays())
    assert model._leaf_rows is None
    assert model.fit(X, y)._covers is None  # rules of the new tree, not of the old one


def test_files_keep_covers_and_without_them_rules_are_paths(tmp_path, model):
    model.save(tmp_path / "model.toprank")
    loaded = toprank.load(tmp_path / "model.toprank")
    np.testing.assert_equal(loaded._covers.to_arrays(), model._short_rules().to_arrays())
    assert loaded.to_text() == model.to_text()
    np.testing.assert_equal(Covers.from_arrays({}, model.tree_).to_arrays(), Covers.none().to_arrays())
    arrays = {name: array for name, array in model._to_arrays().items() if not name.startswith("covers_")}
    bare = replace_arrays(loaded, arrays)
    assert len(bare.rules()) == len(model.rules())
    assert "belongs to it" in model.to_text()
    assert "belongs to it" not in bare.to_text()


def replace_arrays(model, arrays):
    model._from_arrays(arrays)
    return model


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": np.zeros(3, np.float64)}, "lack an array 'step' of int32"),
        ({"coverage": np.zeros(4)}, "lack an array 'coverage' of float64"),
        ({"offset": np.zeros(2, np.int32)}, "not consistent in length"),
        ({"coverage": np.zeros((2, 3)), "precision": np.zeros((2, 3))}, "not figures of leaves of this tree"),
        ({"leaf": np.zeros(0, np.int32)}, "not consistent in length"),
    ],
)
def test_damaged_covers_are_refused(change, message):
    tree = shared_tree()
    arrays = covers_of(tree, AUDIT_COLUMNS, audit_rows()).to_arrays()
    with pytest.raises(ValueError, match=message):
        Covers.from_arrays(arrays | change, tree)


def test_steps_that_are_no_conditions_and_shares_beyond_one_are_refused():
    tree = shared_tree()
    covers = covers_of(tree, AUDIT_COLUMNS, audit_rows())
    leaf = int(np.flatnonzero(tree.is_leaf)[0])
    for step in (2 * leaf, 2 * len(tree), -1):
        with pytest.raises(ValueError, match="not conditions of this tree"):
            replace(covers, step=np.full_like(covers.step, step)).check(tree)
    with pytest.raises(ValueError, match="not shares from 0 to 1"):
        replace(covers, precision=covers.precision + 1).check(tree)
    with pytest.raises(ValueError, match="not ways into each described leaf"):
        replace(covers, leaf=covers.leaf[::-1].copy()).check(tree)
