from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiment_cases import make_frame, make_plan, write_tables
from toprank.experiment.plan import PlanTable, Protocol
from toprank.experiment.registry import find_method
from toprank.experiment.search import Tuner, make_encoder
from toprank.experiment.trial import TableCases, load_cases, make_split, run_trial

LEAK_METHODS = ["metaap", "gini-rate", "logistic-l2", "plain-extra-trees", "smote+logistic-l1", "plain-knn"]
SMALL = {"plain-extra-trees": {"n_estimators": 20}}


def trial_of(method, names=("one",), **others):
    method = {"method": method, "parameters": SMALL[method]} if isinstance(method, str) and method in SMALL else method
    return make_plan(names, "1", {"it": method}, **others).trials()[0]


def outcome_of(folder, method, **others):
    outcome = run_trial(trial_of(method, **others), folder)
    assert outcome["status"] == "done", outcome.get("error")
    return outcome


def skip_where_absent(name):
    missing = find_method(name).missing_packages
    if missing:
        pytest.skip(f"needs {missing}")


def test_a_trial_measures_the_test_part(tmp_path):
    write_tables(tmp_path, ("one",))
    outcome = outcome_of(tmp_path, {"method": "gini", "search": {"max_depth": [2, 3]}, "profile": {"max_depth": "1-3"}})
    assert outcome["setting"] in ({"max_depth": 2}, {"max_depth": 3})
    assert outcome["n_train"] + outcome["n_test"] == outcome["n"] == 160
    assert 0 < outcome["measures"]["average_precision"] <= 1
    assert {"roc_auc", "p_at_1", "p_at_100", "average_precision_train"} <= set(outcome["measures"])
    by_depth = {point["value"]: point["average_precision"] for point in outcome["profile"]}
    assert by_depth[outcome["setting"]["max_depth"]] == outcome["measures"]["average_precision"]
    assert outcome["size_unit"] == "conditions"


def test_two_runs_give_the_same_figures(tmp_path):
    write_tables(tmp_path, ("one",))
    small_forest = {"method": "random-forest", "parameters": {"n_estimators": 10}, "search": {}}
    for method in ("metaap", small_forest, "smote+logistic-l1"):
        a, b = (outcome_of(tmp_path, method) for _ in range(2))
        assert {k: v for k, v in a.items() if "seconds" not in k} == {k: v for k, v in b.items() if "seconds" not in k}


# --- nothing leaks ----------------------------------------------------------------------------------------------


def split_of(frame, seed=1):
    return make_split(
        Protocol(inner_splits=3), TableCases(frame.drop(columns="label"), frame.label.to_numpy()), seed, 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", LEAK_METHODS)
def test_a_feature_that_is_the_label_on_test_rows_only_does_not_help(tmp_path, method):
    skip_where_absent(method)
    frame = make_frame(300)[["x0", "x1", "label"]]
    frame.to_csv(tmp_path / "one.csv", index=False)
    # Constant on training rows: whoever has not seen the test part cannot know what the columns are good for.
    planted = frame.assign(leak=0.0, text="a")[["x0", "x1", "leak", "text", "label"]]
    test = split_of(frame).test
    planted.loc[test, "leak"] = frame.label[test].astype(float)
    planted.loc[test, "text"] = np.where(frame.label[test] == 1, "b", "a")
    planted.to_csv(tmp_path / "two.csv", index=False)
    without, peeking = (outcome_of(tmp_path, method, names=(name,))["measures"] for name in ("one", "two"))
    assert without["average_precision"] < 0.8, "there is something to gain"
    assert abs(peeking["average_precision"] - without["average_precision"]) < 0.1


@pytest.mark.parametrize("method", LEAK_METHODS)
def test_test_rows_change_nothing_that_is_learned(tmp_path, method):
    skip_where_absent(method)
    frame = make_frame(200)
    frame.to_csv(tmp_path / "one.csv", index=False)
    test = split_of(frame).test
    spoilt = frame.copy()
    spoilt.loc[test, ["x0", "x1"]] = 1e6
    spoilt.loc[test, "x2"] = np.nan
    spoilt.loc[test, "place"] = "elsewhere"
    spoilt.to_csv(tmp_path / "two.csv", index=False)
    a, b = outcome_of(tmp_path, method), outcome_of(tmp_path, method, names=("two",))
    for what in ("setting", "tuning_score", "size"):
        assert a[what] == b[what], what
    assert a["measures"]["average_precision_train"] == b["measures"]["average_precision_train"]
    assert a["measures"]["average_precision"] != b["measures"]["average_precision"]


# --- errors -----------------------------------------------------------------------------------------------------


def test_an_error_is_an_outcome(tmp_path):
    write_tables(tmp_path, ("one",))
    failed = run_trial(trial_of({"method": "gini", "parameters": {"max_depth": -3}}), tmp_path)
    assert failed["status"] == "failed"
    assert "max_depth" in failed["error"]
    absent = run_trial(trial_of("gini", names=("nowhere",)), tmp_path)
    assert absent["status"] == "failed"
    assert "nowhere" in absent["error"]


def test_a_missing_package_is_a_reason_to_skip(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.experiment.registry.find_spec", lambda name: None)
    assert run_trial(trial_of("xgboost"), tmp_path) == {"status": "skipped", "error": "needs the package xgboost"}


# --- parts ------------------------------------------------------------------------------------------------------


def test_published_splits_are_those_of_the_global_state():
    frame = make_frame(200)
    cases = TableCases(frame.drop(columns="label"), frame.label.to_numpy())
    split = make_split(Protocol(kind="published"), cases, 4, 0)
    np.random.seed(4)  # noqa: NPY002 - what the published code does
    train, test = train_test_split(np.arange(200), shuffle=True, stratify=cases.y, test_size=0.3)
    folds = list(StratifiedKFold(n_splits=5, shuffle=True).split(train.reshape(-1, 1), cases.y[train]))
    assert np.array_equal(split.train, train)
    assert np.array_equal(split.test, test)
    for ours, theirs in zip(split.folds, folds, strict=True):
        assert np.array_equal(ours[1], theirs[1])


@pytest.mark.parametrize("kind", ["holdout", "published", "kfold"])
def test_splits_part_the_rows(kind):
    frame = make_frame(120)
    cases = TableCases(frame.drop(columns="label"), frame.label.to_numpy())
    protocol = Protocol(kind=kind, n_splits=4, inner_splits=3)
    tests = []
    for fold in range(1, 5):
        split = make_split(protocol, cases, 7, fold)
        assert sorted([*split.train, *split.test]) == list(range(120))
        held_out = np.concatenate([held for _, held in split.folds])
        assert sorted(held_out) == list(range(len(split.train)))
        assert all(not set(inside) & set(held) for inside, held in split.folds)
        tests.append(split.test)
    if kind == "kfold":
        assert sorted(np.concatenate(tests)) == list(range(120))


def test_too_few_positives_for_folds():
    y = np.zeros(20, int)
    y[:2] = 1
    with pytest.raises(ValueError, match="training part has 1 positives"):
        make_split(Protocol(test_size=0.5), TableCases(pd.DataFrame({"x": range(20)}), y), 1, 0)


def test_encoders_read_training_rows_only():
    train = pd.DataFrame({"a": [1.0, np.nan, 5.0], "b": [1.0, 2.0, 3.0], "c": ["x", "y", None]})
    new = pd.DataFrame({"a": [np.nan], "b": [np.nan], "c": ["never seen"]})
    encoder = make_encoder("numbers").fit(train)
    assert encoder.transform(train).tolist() == [
        [1.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        [3.0, 2.0, 1.0, 0.0, 0.0, 1.0],
        [5.0, 3.0, 0.0, 1.0, 0.0, 0.0],
    ]
    assert encoder.transform(new).tolist() == [[3.0, 2.0, 1.0, 0.0, 0.0, 0.0]]
    scaled = make_encoder("scaled").fit(train).transform(train)
    assert np.allclose(scaled[:, :2].mean(axis=0), 0)
    assert make_encoder("frame").fit(train).transform(new) is new


def test_tables_of_a_plan(tmp_path):
    write_tables(tmp_path, ("one",))
    frame = make_frame().rename(columns={"label": "fraud"}).assign(id=range(160))
    frame["fraud"] = np.where(frame.fraud == 1, "yes", "no")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    by_name = load_cases(PlanTable("one", {"name": "one"}), tmp_path)
    source = {"path": str(tmp_path / "mine.csv"), "label": "fraud", "positive": "yes", "drop": ["id"]}
    by_path = load_cases(PlanTable("mine", source))
    assert list(by_path.X.columns) == list(by_name.X.columns)
    assert by_path.y.tolist() == by_name.y.tolist()
    with pytest.raises(ValueError, match="'nothing' is to be dropped"):
        load_cases(PlanTable("mine", source | {"drop": "nothing"}))


def test_windows_of_dates_and_of_numbers(tmp_path):
    frame = make_frame(200, text=False)
    days = pd.date_range("2024-01-01", periods=200)
    frame.assign(day=days.strftime("%Y-%m-%d")).to_csv(tmp_path / "one.csv", index=False)
    frame.assign(day=range(200)).to_csv(tmp_path / "two.csv", index=False)
    window = {"kind": "prequential", "time": "day", "n_splits": 2, "gap": 5, "test": 40}
    by_number = outcome_of(tmp_path, "gini-rate", names=("two",), protocol=window)
    by_date = outcome_of(tmp_path, "gini-rate", protocol=window | {"gap": "5d", "test": "40d"})
    assert by_date["measures"] == by_number["measures"]
    assert by_number["n_test"] == 40
    missing = run_trial(trial_of("gini-rate", names=("two",), protocol=window | {"time": "date"}), tmp_path)
    assert "names the column 'date', the table has x0" in missing["error"]


def test_a_profile_that_fails_leaves_the_figures_alone(tmp_path):
    write_tables(tmp_path, ("one",))
    outcome = outcome_of(tmp_path, {"method": "cart", "search": {}, "profile": {"max_depth": [2, -1]}})
    assert outcome["profile"] == []
    assert outcome["measures"]["average_precision"] > 0


def grouped(n_groups=60):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), 3)
    X = pd.DataFrame({"x": rng.normal(size=len(groups)), "person": groups})
    return X, (rng.random(n_groups) < 0.3).astype(np.int64)[groups]


@pytest.mark.parametrize("protocol", [Protocol(kind="holdout"), Protocol(kind="kfold", n_splits=4)])
def test_groups_are_never_on_both_sides_of_a_split(protocol):
    X, y = grouped()
    split = make_split(protocol, TableCases(X[["x"]], y, X["person"].to_numpy()), 1, 1)
    person = X["person"].to_numpy()
    assert not np.intersect1d(person[split.train], person[split.test]).size
    assert len(split.test) / len(y) == pytest.approx(0.3 if protocol.kind == "holdout" else 0.25, abs=0.02)
    for inside, held_out in split.folds:
        own = person[split.train]
        assert not np.intersect1d(own[inside], own[held_out]).size


def test_too_few_groups_get_a_sentence():
    X, y = grouped(3)
    with pytest.raises(ValueError, match=r"The table has 3 groups .* expected at least 4"):
        make_split(Protocol(kind="kfold", n_splits=4), TableCases(X[["x"]], y, X["person"].to_numpy()), 1, 1)


def test_estimators_that_take_groups_get_them():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(150), 4)
    is_bad = rng.random(150) < 0.15
    y = (rng.random(600) < np.where(is_bad, 0.9, 0.02)[person]).astype(int)
    X = pd.DataFrame(rng.normal(size=(150, 3)).round(3)[person], columns=list("abc")).assign(noise=rng.normal(size=600))
    tuner = Tuner(trial_of({"method": "metaap-forest", "parameters": {"n_estimators": 10}}).use, Protocol())
    rates = [each.fit({}, X, y).rates_ for each in (tuner, replace(tuner, groups=person))]
    assert rates[1].average_precision < rates[0].average_precision  # out of bag


def test_a_protocol_without_groups_refuses_them():
    X, y = grouped()
    with pytest.raises(ValueError, match="split_by keeps rows together"):
        make_split(Protocol(kind="published"), TableCases(X[["x"]], y, X["person"].to_numpy()), 1, 1)


def test_a_plan_names_the_column_to_split_by(tmp_path):
    X, y = grouped()
    X.assign(label=y).to_csv(tmp_path / "visits.csv", index=False)
    cases = load_cases(PlanTable("visits", {"name": "visits", "split_by": "person"}), tmp_path)
    assert list(cases.X.columns) == ["x"]
    assert cases.groups.tolist() == X["person"].tolist()
    with pytest.raises(ValueError, match="'people' is to be split by"):
        load_cases(PlanTable("visits", {"name": "visits", "split_by": "people"}), tmp_path)
