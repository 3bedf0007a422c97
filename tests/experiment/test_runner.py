import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from experiment_cases import make_plan, write_tables
from toprank.experiment import registry
from toprank.experiment.registry import Method, register
from toprank.experiment.runner import run
from toprank.experiment.store import Store
from toprank.experiment.trial import machine_memory, memory_cap


@pytest.fixture
def folder(tmp_path):
    return write_tables(tmp_path)


def finish(plan, folder, path=":memory:", **options):
    with Store(path) as store:
        store.keep_plan(plan, folder)
        for _ in run(store, **options):
            pass
        return store.results()


def figures(results):
    return results.drop([name for name in results.columns if name.startswith("seconds")])


def test_every_backend_gives_the_same_figures(folder, tmp_path):
    plan = make_plan(seeds="1")
    one = finish(plan, folder, backend="threads", n_workers=1)
    assert one["status"].to_list() == ["done"] * 6
    assert figures(one).equals(figures(finish(plan, folder, backend="threads", n_workers=3)))
    assert figures(one).equals(figures(finish(plan, folder, tmp_path / "store.sqlite", n_workers=2)))


def test_dask_gives_the_same_figures(folder):
    distributed = pytest.importorskip("distributed")
    plan = make_plan(seeds="1")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        there = finish(plan, folder, backend="dask", client=client)
    assert figures(there).equals(figures(finish(plan, folder, backend="threads", n_workers=1)))


def test_a_run_goes_on_where_it_stopped(folder, tmp_path):
    plan = make_plan(seeds="1")
    with Store(tmp_path / "store.sqlite") as store:
        store.keep_plan(plan, folder)
        for progress in run(store, backend="threads", n_workers=1):
            if progress.n_run == 2:
                break
    with Store(tmp_path / "store.sqlite") as store:
        assert len(store.missing()) == 4
        last = [(p.n_run, p.n_done, p.n_trials) for p in run(store, backend="threads", n_workers=1)][-1]
        assert last == (4, 6, 6)
        assert figures(store.results()).equals(figures(finish(plan, folder, backend="threads", n_workers=1)))


RUN = """
import sys
from toprank.experiment.runner import run
from toprank.experiment.store import Store

with Store(sys.argv[1]) as store:
    for progress in run(store, backend="threads", n_workers=1):
        print(progress.n_run, flush=True)
"""


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_figures(folder, tmp_path):
    plan, path = make_plan(), tmp_path / "store.sqlite"
    with Store(path) as store:
        store.keep_plan(plan, folder)
    process = subprocess.Popen([sys.executable, "-c", RUN, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any(int(line) == 2 for line in process.stdout)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with Store(path) as store:
        assert 0 < len(store.missing()) <= 10
        for _ in run(store, backend="threads", n_workers=1):
            pass
        assert store.missing() == []
        assert figures(store.results()).equals(figures(finish(plan, folder, backend="threads", n_workers=1)))


def test_failures_are_kept_and_the_rest_goes_on(folder, tmp_path):
    methods = {"Gini": {"method": "gini", "parameters": {"max_depth": -1}, "search": {}}, "Entropy": "entropy"}
    results = finish(make_plan(methods=methods), folder, tmp_path / "s.sqlite", backend="threads", n_workers=1)
    assert results.filter(method="Gini")["status"].to_list() == ["failed"] * 4
    assert "max_depth" in results.filter(method="Gini")["error"][0]
    assert results.filter(method="Entropy")["status"].to_list() == ["done"] * 4
    with Store(tmp_path / "s.sqlite") as store:
        assert store.missing() == []
        assert len(store.missing(retry=True)) == 4


# --- time limits and deaths: processes import this module by name, so the methods below exist there too ---------------


class Sleeper:
    def fit(self, X, y):
        time.sleep(60)
        return self


class Glutton:
    def fit(self, X, y):
        self.memory = np.ones(10**9)
        return self


class Victim:
    def fit(self, X, y):
        os._exit(7)


def register_odd_methods(monkeypatch):
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    for name, kind in (("sleeper", Sleeper), ("victim", Victim), ("glutton", Glutton)):
        register(Method(name, name, "tree", lambda kind=kind, **setting: kind(), reads="numbers"))


def test_long_fits_and_dead_processes_do_not_stop_the_rest(folder, tmp_path, monkeypatch):
    register_odd_methods(monkeypatch)
    monkeypatch.setattr("toprank.experiment.runner._work", work_with_odd_methods)
    methods = {"Sleeper": "sleeper", "Victim": "victim", "Gini": {"method": "gini", "search": {"max_depth": [2]}}}
    plan = make_plan(("one",), "1-2", methods, protocol={"time_limit": 4.0})
    results = finish(plan, folder, tmp_path / "s.sqlite", n_workers=2)
    assert results.filter(method="Sleeper")["status"].to_list() == ["timeout"] * 2
    assert results.filter(method="Sleeper")["error"][0] == "a fit took more than 4 s"
    assert results.filter(method="Victim")["error"].to_list() == ["the process died (exit code 7)"] * 2
    assert results.filter(method="Gini")["status"].to_list() == ["done"] * 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux caps the memory of a process")
def test_trials_have_limits_of_time_and_memory(folder, tmp_path, monkeypatch):
    register_odd_methods(monkeypatch)
    monkeypatch.setattr("toprank.experiment.runner._work", work_with_odd_methods)
    methods = {"Glutton": "glutton", "Sleeper": "sleeper", "Gini": {"method": "gini", "search": {"max_depth": [2]}}}
    plan = make_plan(("one",), "1", methods).with_limits(trial_minutes=0.1, trial_memory=2.0)
    results = finish(plan, folder, tmp_path / "s.sqlite", n_workers=1)
    assert dict(zip(results["method"], results["status"], strict=True)) == {
        "Glutton": "failed", "Sleeper": "timeout", "Gini": "done"}  # fmt: skip
    assert results["error"].to_list() == [
        "out of memory (trial_memory: 2 GB)", "the trial took more than 0.1 min", None]  # fmt: skip


def test_a_cap_on_memory_ends_with_the_trial():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with memory_cap("auto"):
        assert 0 < resource.getrlimit(resource.RLIMIT_DATA)[0] < machine_memory()
    with memory_cap(50.0):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 50 * 10**9
    with pytest.raises(MemoryError), memory_cap(1.0):
        np.ones(10**9)
    with memory_cap(None):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def work_with_odd_methods(connection, folder):
    from toprank.experiment.runner import _work

    with pytest.MonkeyPatch.context() as patch:
        register_odd_methods(patch)
        _work(connection, folder)


def test_a_run_may_be_given_an_end(folder, tmp_path, monkeypatch):
    register_odd_methods(monkeypatch)
    monkeypatch.setattr("toprank.experiment.runner._work", work_with_odd_methods)
    plan = make_plan(("one",), "1-3", {"Quick": {"method": "gini", "search": {"max_depth": [2]}}, "Sleeper": "sleeper"})
    started = time.monotonic()
    with Store(tmp_path / "s.sqlite") as store:
        store.keep_plan(plan, folder)
        for _ in run(store, n_workers=2, seconds=4.0):
            pass
        assert {trial.use.label for trial in plan.trials() if trial.id in store.outcomes()} <= {"Quick"}
    assert time.monotonic() - started < 30, "a sleeper sleeps 60 s"


def test_threads_keep_a_trial_as_soon_as_it_is_finished(folder, monkeypatch):
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    release = threading.Event()

    class Waiting:
        def fit(self, X, y):
            release.wait(20)
            return self

        def predict(self, X):
            return X[:, 0]

    register(Method("waiting", "Waiting", "tree", lambda **setting: Waiting(), reads="numbers"))
    plan = make_plan(("one",), "1", {"Waiting": "waiting", "Quick": {"method": "gini", "search": {"max_depth": [2]}}})
    with Store(":memory:") as store:
        store.keep_plan(plan, folder)
        order = []
        for progress in run(store, backend="threads", n_workers=2):
            if progress.trial is not None:
                order.append(progress.trial.use.label)
                release.set()
    assert order == ["Quick", "Waiting"]


@pytest.mark.parametrize("limit", ["time_limit", "trial_minutes"])
def test_threads_look_at_the_clock_between_fits(folder, monkeypatch, limit):
    registry.list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))

    class Slow:
        def fit(self, X, y):
            time.sleep(0.05)
            return self

        def predict(self, X):
            return X[:, 0]

    register(Method("slow", "Slow", "tree", lambda **setting: Slow(), space={"a": [1, 2]}, reads="numbers"))
    plan = make_plan(("one",), "1", {"Slow": "slow"}, protocol={limit: 0.01 if limit == "time_limit" else 0.0001})
    results = finish(plan, folder, backend="threads", n_workers=1)
    assert results["status"].to_list() == ["timeout"]
    assert results["error"][0].startswith("a fit" if limit == "time_limit" else "the trial")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "cloud"}, "backend must be one of"),
        ({"backend": "dask"}, "needs a client"),
        ({"n_workers": 0}, r"\[1, inf\)"),
    ],
)
def test_options_that_make_no_sense(folder, options, sentence):
    with Store(":memory:") as store:
        store.keep_plan(make_plan(), folder)
        with pytest.raises(ValueError, match=sentence):
            next(run(store, **options))


def test_files_that_are_no_store(tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"not a database, but long enough to be looked at" * 30)
    with pytest.raises(ValueError, match="cannot be used as an experiment's file"):
        Store(other)
    with Store(":memory:") as store, pytest.raises(ValueError, match="holds no plan"):
        store.missing()


def test_profiles_follow_a_parameter(folder):
    with Store(":memory:") as store:
        store.keep_plan(make_plan(seeds="1"), folder)
        for _ in run(store, backend="threads", n_workers=1):
            pass
        profiles = store.profiles()
    assert profiles["value"].to_list() == [1.0, 2.0, 3.0] * 2
    assert profiles["method"].unique().to_list() == ["MetaAP"]
