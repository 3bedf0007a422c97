import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment_cases import make_plan, write_tables
from toprank.experiment.plan import Plan, Protocol, parse_seeds, parse_values
from toprank.experiment.store import Store
from toprank.experiment.trial import check_plan

SMALL = {"name": "small", "data": ["one"], "methods": {"Gini": "gini"}}


@given(st.integers(-5, 50), st.integers(0, 50), st.integers(1, 9))
def test_spans_stand_for_their_values(low, length, step):
    expected = list(range(low, low + length + 1, step))
    assert parse_values(f"{low}-{low + length} by {step}", "search") == expected
    assert parse_values([7.5, f"{low}-{low + length}"], "search") == [7.5, *range(low, low + length + 1)]


@pytest.mark.parametrize("given", ["5-2", [], {"low": 1}, {"low": 1, "high": 2, "top": 3}])
def test_values_that_make_no_sense(given):
    with pytest.raises(ValueError, match="search of Gini"):
        parse_values(given, "search of Gini")


@pytest.mark.parametrize("given", ["a", [-1], [1.5], [True], {"low": 1, "high": 3}])
def test_seeds_are_whole_numbers(given):
    with pytest.raises(ValueError, match="seeds of the plan must be ints"):
        parse_seeds(given, "the plan")


def test_a_plan_survives_a_round_trip():
    plan = make_plan(reference="MetaAP", protocol={"kind": "kfold", "n_splits": 3, "time_limit": 5})
    again = Plan.from_dict(plan.to_dict())
    assert again == plan
    assert [trial.id for trial in again.trials()] == [trial.id for trial in plan.trials()]


def test_ids_name_what_decides_the_figures_and_nothing_else():
    ids = {trial.id for trial in make_plan().trials()}
    assert len(ids) == 2 * 2 * 3
    same = make_plan(seeds="1-3", protocol={"time_limit": 9.0})
    assert ids < {trial.id for trial in same.trials()}, "further seeds and a time limit leave finished trials alone"
    renamed = make_plan(methods={"Other name": {"method": "gini", "search": {"max_depth": "2-4"}}})
    assert {trial.id for trial in renamed.trials()} < ids
    for others in ({"protocol": {"inner_splits": 4}}, {"measures": ["roc_auc"]}, {"names": ("one", "three")}):
        other = make_plan(methods={"Gini": {"method": "gini", "search": {"max_depth": "2-4"}}}, **others)
        assert any(trial.id not in ids for trial in other.trials())


def ids_of(methods, **others):
    return [trial.id for trial in make_plan(methods={"it": methods}, **others).trials()]


def test_ids_hold_what_is_read_and_its_order():
    grid = {"method": "gini", "search": {"max_depth": [2, 3], "min_samples_leaf": [1, 5]}}
    turned = {"method": "gini", "search": {"min_samples_leaf": [1, 5], "max_depth": [2, 3]}}
    assert ids_of(grid) != ids_of(turned), "of equal settings the first wins"
    assert ids_of(grid) == ids_of(grid | {"n_candidates": 7}), "a grid has no number of candidates"
    assert ids_of(grid | {"tuner": "optuna"}) != ids_of(grid | {"tuner": "optuna", "n_candidates": 7})
    assert ids_of(grid, protocol={"kind": "kfold"}) == ids_of(grid, protocol={"kind": "kfold", "test_size": 0.5})


def test_a_file_keeps_its_ids_wherever_it_is_looked_at_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = make_plan(names=[{"path": "one.csv"}])
    with Store(":memory:") as store:
        store.keep_plan(relative)
        assert store.plan.tables[0].source["path"] == str(tmp_path / "one.csv")
        assert [trial.id for trial in store.plan.trials()] == [trial.id for trial in relative.trials()]


def test_trials_go_split_by_split():
    trials = make_plan().trials()
    assert [trial.split for trial in trials] == ["seed 1"] * 6 + ["seed 2"] * 6
    assert [trial.split for trial in make_plan(protocol={"kind": "kfold", "n_splits": 2}).trials()][:7] == [
        *["seed 1 fold 1"] * 6,
        "seed 1 fold 2",
    ]


def test_a_method_may_have_fewer_seeds():
    plan = make_plan(methods={"Gini": "gini", "Entropy": {"method": "entropy", "seeds": "2"}})
    assert [(t.use.label, t.seed) for t in plan.trials() if t.table.name == "one"] == [
        ("Gini", 1),
        ("Gini", 2),
        ("Entropy", 2),
    ]


def test_quick_overrides_and_drops(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text(
        "name: p\ndata: [one]\nprotocol: {seeds: 1-9}\nmethods:\n  Gini: gini\n  Entropy: entropy\n"
        "quick:\n  protocol: {seeds: 1-2}\n  methods: {Entropy: null, Gini: {method: gini, search: {max_depth: [2]}}}\n"
    )
    assert len(Plan.from_yaml(file).trials()) == 18
    quick = Plan.from_yaml(file, quick=True)
    assert [use.label for use in quick.methods] == ["Gini"]
    assert quick.protocol.seeds == (1, 2)


def test_groups_come_from_the_index(tmp_path):
    write_tables(tmp_path, ("one", "two", "three"))
    (tmp_path / "index.csv").write_text("name,group\none,a\ntwo,b\nthree,a\n")
    plan = Plan.from_dict(SMALL | {"data": [{"group": "a"}]}, folder=tmp_path)
    assert [table.name for table in plan.tables] == ["one", "three"]
    with pytest.raises(ValueError, match=r"group 'c', found the groups \['a', 'b'\]"):
        Plan.from_dict(SMALL | {"data": [{"group": "c"}]}, folder=tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methds": {}}, "entry 'methds' that is unknown. Hint: did you mean 'methods'"),
        ({"data": []}, "must have 'data'"),
        ({"data": 5}, "must be a list of tables"),
        ({"data": [{"label": "y"}]}, "one of name, path, openml, group"),
        ({"data": ["one", {"path": "folder/one.csv"}]}, "names 'one' twice"),
        ({"methods": ["gini"]}, "must be a mapping"),
        ({"methods": {"Gini": "ginni"}}, "no method 'ginni'. Hint: did you mean 'gini"),
        ({"methods": {"Gini": {"method": "gini", "tuner": "random"}}}, "'tuner' of Method 'Gini'"),
        ({"methods": {"Gini": {"method": "gini", "judge": "mood"}}}, "'judge' of Method 'Gini'"),
        ({"methods": {"G": {"method": "gini", "profile": {"a": [1], "b": [2]}}}}, "'profile' must name one parameter"),
        (
            {"methods": {"G": {"method": "gini", "search": {"max_depth": {"low": 1, "high": 5}}}}},
            "use the tuner optuna",
        ),
        (
            {"methods": {"G": {"method": "gini", "search": [1, 2]}}},
            "'search' of Method 'G' of the plan must be a mapping",
        ),
        ({"methods": {"G": {"method": "gini", "parameters": 5}}}, "'parameters' of Method 'G' of the plan must be a"),
        ({"methods": {"G": {"method": "gini", "profile": {"max_depth": [None]}}}}, "'profile' must list numbers"),
        ({"methods": {"G": {"method": "gini", "n_candidates": 0}}}, "'n_candidates' must be an int of at least 1"),
        (
            {"methods": {"G": {"method": "metaap-forest", "judge": "out-of-bag", "tuner": "halving"}}},
            "needs the tuner",
        ),
        ({"measures": 5}, "'measures' of the plan must be a list"),
        ({"protocol": {"kind": "loo"}}, "'kind' must be one of"),
        ({"protocol": {"test_size": 3}}, "'test_size' must be a share. Found 3"),
        ({"protocol": {"inner_splits": 1}}, "'inner_splits' must be an int of at least 2"),
        ({"protocol": {"time_limit": -1}}, "'time_limit' must be seconds"),
        ({"protocol": {"trial_minutes": 0}}, "'trial_minutes' must be minutes"),
        ({"protocol": {"trial_memory": "much"}}, "'trial_memory' must be gigabytes"),
        ({"protocol": {"seeds": "1-2000000000"}}, "2,000,000,000 values, expected at most"),
        ({"protocol": {"kind": "kfold", "n_splits": 2_000_000_000}}, "trials .*, expected at most 1,000,000"),
        ({"protocol": {"kind": "prequential"}}, "'time' \\(a column\\)"),
        ({"protocol": {"scoring": "acuracy"}}, "unknown measure 'acuracy'"),
        ({"measures": ["roc_auk"]}, "did you mean 'roc_auc'"),
        ({"measures": ["average_precision_resampled:0"]}, "unknown measure 'average_precision_resampled:0'"),
        ({"measures": ["average_precision_resampled:-3"]}, "unknown measure 'average_precision_resampled:-3'"),
        ({"reference": "MetaAP"}, "'reference' of the plan must be one of"),
        ({"name": "../elsewhere"}, "'name' of the plan must be letters"),
    ],
)
def test_mistakes_get_a_sentence(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        Plan.from_dict(SMALL | changes)


def test_without_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    sentence = r"Reading plan.yaml needs the package 'yaml'.*pip install \"toprank\[experiment\]\""
    with pytest.raises(ImportError, match=sentence):
        Plan.from_yaml(tmp_path / "plan.yaml")


def test_a_file_that_is_no_yaml(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("name: [")
    with pytest.raises(ValueError, match=r"plan\.yaml cannot be read as YAML"):
        Plan.from_yaml(file)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: p\nname: q\n", "in line 1: 'name' is given twice"),
        ("methods: {A: gini, A: cart}\n", "'A' is given twice"),
        ("data:\n\t- one\n", "Hint: use spaces, not tabs"),
    ],
)
def test_yaml_that_would_lose_something(tmp_path, text, sentence):
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        Plan.from_yaml(file)


def test_paths_are_relative_to_the_plan(tmp_path):
    (tmp_path / "plan.yaml").write_text("name: p\ndata: [{path: tables/one.csv}]\nmethods: {Gini: gini}\n")
    assert Plan.from_yaml(tmp_path / "plan.yaml").tables[0].source["path"] == str(tmp_path / "tables" / "one.csv")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"names": ("one", "three")}, "Table 'three': There is no data set 'three'"),
        ({"names": [{"path": "nowhere.csv"}]}, "Table 'nowhere': There is no file 'nowhere.csv'"),
        ({"names": [{"name": "one", "label": "fraud"}]}, "Table 'one': The label column 'fraud' is missing"),
        (
            {"methods": {"G": {"method": "gini", "parameters": {"depth": 3}}}},
            "Method 'G': Gini has no parameter 'depth'",
        ),
        ({"methods": {"G": {"method": "cart", "parameters": {"n_jobs": 2}}}}, "Method 'G': a plan cannot set 'n_jobs'"),
        ({"methods": {"G": {"method": "gini", "search": {"depth": [3]}}}}, "Hint: it is usually tuned by max_depth"),
    ],
)
def test_mistakes_that_would_fail_every_trial_are_found_first(tmp_path, changes, sentence):
    write_tables(tmp_path)
    check_plan(make_plan(), tmp_path)
    with pytest.raises(ValueError, match=sentence):
        check_plan(make_plan(**changes), tmp_path)


def test_tables_that_change_are_said(tmp_path):
    write_tables(tmp_path)
    with Store(":memory:") as store:
        store.keep_plan(make_plan(), tmp_path)
        store.keep_plan(make_plan(), tmp_path)
        (tmp_path / "one.csv").write_text("x,label\n1,0\n2,1\n")
        with pytest.warns(UserWarning, match="content of table 'one' has changed"):
            store.keep_plan(make_plan(), tmp_path)


def test_splits_of_a_protocol():
    assert Protocol(seeds=(3, 4)).splits() == [(3, 0), (4, 0)]
    assert Protocol(kind="kfold", seeds=(3,), n_splits=2).splits() == [(3, 1), (3, 2)]
    assert Protocol(kind="prequential", seeds=(3, 4), n_splits=2).splits() == [(3, 1), (3, 2)]
