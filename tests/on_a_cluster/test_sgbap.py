"""`toprank.distributed.SGBAP`: the model of one machine, whatever the partitions; failures end, and end clearly."""

import os
import signal
import threading
import time
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toprank
from cluster_cases import local_client, mixed_table
from toprank.data import cases
from toprank.data.column_roles import learn_columns
from toprank.data.table import read_table
from toprank.datasets import load as load_data
from toprank.distributed import SGBAP, sgbap, training
from toprank.distributed.partitions import PartitionedTable, blocks_of, computed
from toprank.distributed.training import WorkerLostError, cut_values
from toprank.errors import InputError, InputTypeError
from toprank.rankers.boosting import boosted_ranker
from toprank.rankers.boosting.rounds import Rounds, Rows
from toprank.tree import columns

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("TOPRANK_DATA", ROOT.parent / "shared" / "data"))
REAL = ["pima", "german", "cleveland4", "coil2000", "mammography"]


@pytest.fixture(scope="module")
def client():
    with local_client() as client:
        yield client


@pytest.fixture(autouse=True)
def ignore_left_out_columns():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* left out")
        yield


def in_parts(X, sizes):
    """A Dask frame with partitions of given sizes."""
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(X)
    parts = [X.iloc[start:stop] for start, stop in pairwise(ends)]
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=X.iloc[:0])


def assert_same(found, expected, X):
    """Equal models; scores to 1e-6 is what is promised, equal trees what is true."""
    assert found.n_rounds_ == expected.n_rounds_
    assert np.abs(found.decision_function(X) - expected.decision_function(X)).max() < 1e-6
    assert found._json == expected._json
    assert found.columns_ == expected.columns_
    assert found.left_out_ == expected.left_out_
    assert found.data_hash_ == expected.data_hash_
    assert found.cutoff_ == expected.cutoff_
    assert np.array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert np.array_equal(found.trees_.cover, expected.trees_.cover)


# --- the model of one machine -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_workers_grow_the_model_of_one_machine_with_empty_and_one_class_partitions(client, tmp_path):
    X, y, weight = mixed_table(1500)
    order = np.argsort(y, kind="stable")
    X, y, weight = X.iloc[order].reset_index(drop=True), y[order], weight[order]
    settings = {"n_estimators": 60, "cv": 2, "random_state": 3}
    parts = in_parts(X, [0, 400, 300, 0, 700, 100, 0])  # the positives are all in the last 75 rows
    model = SGBAP(**settings).fit(parts, y, weight)
    expected = toprank.SGBAP(**settings).fit(X, y, weight)
    assert_same(model, expected, X)
    assert np.array_equal(model.decision_function(parts).compute(), expected.decision_function(X))
    assert np.array_equal(model.predict_proba(parts).compute(), expected.predict_proba(X))
    assert np.array_equal(model.predict(parts).compute(), expected.predict(X))
    assert model.score(parts, y) == expected.score(X, y)
    model.save(tmp_path / "model.toprank")
    loaded = toprank.load(tmp_path / "model.toprank")
    assert type(loaded) is type(model.to_local()) is toprank.SGBAP
    assert loaded.top_k(X, 5).equals(expected.top_k(X, 5))


@pytest.mark.slow
def test_arrays_of_dask_in_any_chunks(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) + rng.normal(size=900) > 2, "yes", "no")
    array = da.from_array(X, chunks=(250, 3))
    model = SGBAP(n_estimators=20, cv=0, max_bin=64).fit(array, da.from_array(y, chunks=400), client=client)
    expected = toprank.SGBAP(n_estimators=20, cv=0, max_bin=64).fit(X, y)
    assert_same(model, expected, X)
    lazy = model.decision_function(array)
    assert lazy.chunks == ((250, 250, 250, 150),)
    assert np.array_equal(lazy.compute(), expected.decision_function(X))


def test_most_rows_stay_on_the_workers(client, monkeypatch):
    for module in (cases, boosted_ranker, columns, sgbap):
        for limit in ("FINGERPRINT_ROWS", "COVER_ROWS", "USUAL_ROWS"):
            if hasattr(module, limit):
                monkeypatch.setattr(module, limit, 20)
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (X[:, 0] > 1).astype(int)
    settings = {"n_estimators": 3, "cv": 0}
    model = SGBAP(**settings).fit(da.from_array(X, chunks=(90, 2)), y)
    assert_same(model, toprank.SGBAP(**settings).fit(X, y), X)


@pytest.mark.filterwarnings("ignore:Column 'day'")
def test_dates_in_another_format_may_fill_a_partition(client):
    rng = np.random.default_rng(0)
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2020" for i in range(280)] + ["12/31/2020", "03/04/2020"] * 10
    X = pd.DataFrame({"day": days, "x": rng.normal(size=300)})
    y = (X["x"] > 1).astype(int)
    settings = {"n_estimators": 3, "cv": 0}
    model = SGBAP(**settings).fit(in_parts(X, [140, 140, 20]), y)
    assert_same(model, toprank.SGBAP(**settings).fit(X, y), X)


def test_arrays_of_dask_may_hold_dates(client):
    days = np.arange("2020-01-01", "2020-04-10", dtype="datetime64[D]").astype(object)
    X = np.column_stack([days, np.random.default_rng(0).normal(size=100)]).astype(object)
    parts, _ = computed(client, blocks_of(da.from_array(X, chunks=(40, 1))))
    table, _ = PartitionedTable.from_parts(parts, [40, 40, 20])
    expected = learn_columns(read_table(X))
    assert learn_columns(table) == expected
    assert [column.name for column in expected.columns] == ["x0", "x0 (weekday)", "x1"]


@pytest.mark.parametrize("max_bin", [2, 16, 256])
def test_a_few_values_of_a_column_have_the_bins_of_all(max_bin):
    rng = np.random.default_rng(1)
    n = 5000
    X = np.column_stack([
        rng.normal(size=n), rng.integers(0, 257, n), rng.exponential(size=n), rng.integers(0, 9, n), np.full(n, np.nan),
        np.full(n, 7.0), 1e30 * rng.normal(size=n),
    ]).astype(np.float32)  # fmt: skip
    X[rng.random(n) < 0.3, 2] = np.nan
    types = ["q", "q", "q", "c", "q", "q", "q"]
    values = cut_values([X[:800], X[800:800], X[800:]], types, max_bin)
    assert max(map(len, values)) <= max(max_bin + 1, 9)
    reference = np.full((max(map(len, values)), len(types)), np.nan, np.float32)
    for f, each in enumerate(values):
        reference[:, f] = np.resize(each, len(reference)) if len(each) else np.nan
    tables = [Rows(rows, np.zeros(0, bool), np.zeros(0), types).to_xgboost({"max_bin": max_bin, "nthread": 1})
              for rows in (X, reference)]  # fmt: skip
    for whole, few in zip(*(table.get_quantile_cut() for table in tables), strict=True):
        assert np.array_equal(whole, few)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cv": 3, "n_estimators": 120, "early_stopping_rounds": 20},
        {"surrogate": "sigmoid"},
        {"surrogate": "sigmoid", "blend": 1.0, "warm_up": 0},
        {"blend": 1.0, "warm_up": 0, "line_search": True},
        {"max_bin": 16, "subsample": 1.0, "colsample_bytree": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_more_settings_and_processes(settings, weighted):
    X, y, weight = mixed_table(12_000, seed=5)
    settings = {"n_estimators": 60, "cv": 0, "random_state": 0} | settings
    weight = weight if weighted else None
    with local_client(processes=True):
        model = SGBAP(**settings).fit(dd.from_pandas(X, npartitions=7), y, weight)
    expected = toprank.SGBAP(**settings).fit(X, y, weight)
    if settings.get("surrogate") == "sigmoid":  # masses on a grid are summed in the order of the rows
        assert np.abs(model.decision_function(X) - expected.decision_function(X)).max() < 1e-6
    else:
        assert_same(model, expected, X)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("n_workers", [2, 3])
def test_real_tables(name, n_workers):
    if not (DATA / f"{name}.csv.gz").exists():
        pytest.skip(f"{name} is not in {DATA}")
    data = load_data(name, folder=DATA)
    X, y = data.X, np.asarray(data.y)
    settings = {"n_estimators": 150, "cv": 3, "random_state": 1}
    with local_client(n_workers):
        sizes = [0, len(X) // 3, 5, len(X) - len(X) // 3 - 5]
        model = SGBAP(**settings).fit(in_parts(X, sizes), y)
    assert_same(model, toprank.SGBAP(**settings).fit(X, y), X)


@pytest.mark.slow
def test_more_rows_than_folds_and_samples_take(client):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(130_000, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=len(X)) > 3.5).astype(int)
    settings = {"n_estimators": 15, "cv": 2, "warm_up": 5}
    model = SGBAP(**settings).fit(da.from_array(X, chunks=(30_000, 3)), y)
    assert_same(model, toprank.SGBAP(**settings).fit(X, y), X)
    with pytest.raises(InputError, match="130,000"):
        SGBAP(cv=[(np.arange(9), np.arange(9, 20))]).fit(da.from_array(X, chunks=(30_000, 3)), y)


# --- bad input --------------------------------------------------------------------------------------------------


def test_input_that_one_machine_refuses_is_refused(client):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    for bad, label, words in [
        (X, np.zeros(60), "both classes"),
        (X, y[:50], "60, 50"),
        (np.where(np.arange(60)[:, None] == 50, np.inf, X), y, "infinite"),
        (np.zeros((0, 2)), np.zeros(0), "0 sample"),
    ]:
        model = SGBAP(n_estimators=2, cv=0)
        with pytest.raises(InputError, match=words):
            model.fit(da.from_array(bad, chunks=(20, 2)), label)
        assert not hasattr(model, "classes_")


@pytest.mark.slow
def test_what_needs_a_table_in_memory_says_so(client):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    array = da.from_array(X, chunks=(20, 2))
    model = SGBAP(n_estimators=2, cv=0).fit(array, y)
    assert len(model.top_k(X, 3)) == 3
    with pytest.raises(InputTypeError, match="compute"):
        model.top_k(array, 3)


# --- failures ---------------------------------------------------------------------------------------------------


class BreaksDown(Rounds):
    """Fails in the third round on the worker that does not have the first row."""

    def step(self):
        super().step()
        if self.n_rounds == 3 and self.all_rows._numbers[0] > 0:
            raise InputError("These rows are bad.")


def left_behind():
    return [*training.DONE, *training.STOPPED, *training.TRACKERS]


@pytest.fixture
def large():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    return da.from_array(X, chunks=(5000, 5)), (X[:, 0] + rng.normal(size=len(X)) > 3).astype(int)


@pytest.mark.slow
def test_an_error_on_one_worker_ends_the_fit_on_all(client, large, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(training, "Rounds", BreaksDown)
        with pytest.raises(InputError, match="rows are bad"):
            SGBAP(n_estimators=1000, cv=0).fit(*large)
    assert SGBAP(n_estimators=2, cv=0).fit(*large).n_rounds_ == 2
    assert left_behind() == []


@pytest.mark.slow
@pytest.mark.parametrize("on_interrupt", ["raise", "keep"])
def test_an_interrupt_ends_the_fit_on_all_workers(client, large, on_interrupt):
    model = SGBAP(n_estimators=100_000, cv=0, on_interrupt=on_interrupt)
    threading.Timer(4, partial(os.kill, os.getpid(), signal.SIGINT)).start()
    if on_interrupt == "raise":
        with pytest.raises(KeyboardInterrupt):
            model.fit(*large)
        assert not hasattr(model, "classes_")
    else:
        with pytest.warns(UserWarning, match="interrupted"):
            model.fit(*large)
        assert 0 < model.n_rounds_ < 100_000
    assert not any(client.processing().values())
    assert left_behind() == []


@pytest.mark.slow
def test_two_fits_at_once_take_turns(client, large):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(SGBAP(n_estimators=20, cv=0).fit(*large, client=client)._json))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 2
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("after", [0, 5], ids=["before the first round", "after some rounds"])
def test_a_killed_worker_ends_the_fit_with_an_error(large, which, after):
    with local_client(processes=True) as client:
        process = client.run(os.getpid)
        address = sorted(process)[which]

        def kill(fit):
            while max(client.run(training.rounds_done, fit.name).values()) < after:
                time.sleep(0.05)
            os.kill(process[address], signal.SIGKILL)

        start = training.Fit._start
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training.Fit, "_start", lambda fit, task: start(fit, task) or killer(kill, fit))
            with pytest.raises(WorkerLostError, match=address):
                SGBAP(n_estimators=100_000, cv=0).fit(*large)
        client.wait_for_workers(2, timeout=60)
        assert SGBAP(n_estimators=2, cv=0).fit(*large).n_rounds_ == 2  # the other worker is free again


def killer(kill, fit):
    threading.Thread(target=kill, args=(fit,), daemon=True).start()
