"""The store under bad conditions: two plans, locks, full disks, damaged files, files of the first format."""

import json
import random
import shutil
import sqlite3
import threading
import time
import warnings

import pytest

from experiment_cases import make_plan, write_tables
from toprank.experiment.runner import run
from toprank.experiment.store import FORMAT, Store, StoreError

METHODS = {"Gini": {"method": "gini", "search": {"max_depth": [2]}}}
OUTCOME = {"status": "failed", "error": "none of its business"}


@pytest.fixture
def folder(tmp_path):
    return write_tables(tmp_path)


def small_plan(**others):
    return make_plan(("one",), "1-4", METHODS, **others)


def file_of(folder, path, plan=None):
    """A store whose trials are all done, in a file."""
    with Store(path) as store:
        store.keep_plan(plan or small_plan(), folder)
        for _ in run(store, backend="threads", n_workers=1):
            pass
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished file; tests work on copies."""
    folder = write_tables(tmp_path_factory.mktemp("done"))
    return file_of(folder, folder / "trials.sqlite")


def figures(results):
    return results.drop([name for name in results.columns if name.startswith("seconds")])


# --- two plans ----------------------------------------------------------------------------------------------------


def test_a_second_plan_is_refused_by_name(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with Store(path) as store:
        with pytest.raises(ValueError, match=r"'small'.*'other'"):
            store.keep_plan(small_plan(name="other"))
        assert store.plan.name == "small"
        store.keep_plan(make_plan(("one",), "1-9", METHODS), done.parent)  # the same plan, extended
        assert len(store.missing()) == 5


# --- locks and full disks -----------------------------------------------------------------------------------------


def locker(path):
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_a_locked_file_is_waited_for(tmp_path):
    path = tmp_path / "trials.sqlite"
    with Store(path) as store:
        plan = small_plan()
        store.keep_plan(plan)
        other = locker(path)
        release = threading.Timer(1.5, other.rollback)
        started = time.monotonic()
        release.start()
        store.keep(plan.trials()[0], OUTCOME)
        assert time.monotonic() - started > 1
        release.join()
        other.close()
        assert len(store.missing()) == 3


def test_a_file_that_stays_locked_gets_a_sentence_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "trials.sqlite"
    with Store(path, patience=0.1) as store:
        plan = small_plan()
        store.keep_plan(plan)
        store.keep(plan.trials()[0], OUTCOME)
        other = locker(path)
        with pytest.raises(StoreError, match="locked by another program"):
            store.keep(plan.trials()[1], OUTCOME)
        other.close()
        assert len(store.missing()) == 3
        store.keep(plan.trials()[1], OUTCOME)
        assert len(store.missing()) == 2


def test_a_full_disk_gets_a_sentence_and_keeps_what_it_has(tmp_path):
    with Store(tmp_path / "trials.sqlite", patience=0.1) as store:
        plan = small_plan()
        store.keep_plan(plan)
        store.keep(plan.trials()[0], OUTCOME)
        store._connection.execute("PRAGMA max_page_count = 1")  # SQLite makes it the present size
        with pytest.raises(StoreError, match="The disk is full"):
            store.keep(plan.trials()[1], OUTCOME | {"error": "x" * 50_000})
        assert set(store.outcomes()) == {plan.trials()[0].id}
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.keep(plan.trials()[1], OUTCOME | {"error": "x" * 50_000})
        assert len(store.missing()) == 2


# --- damage -------------------------------------------------------------------------------------------------------


def damage(path, trial, old, new):
    """Change an outcome behind the store's back."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE trials SET outcome = replace(outcome, ?, ?) WHERE id = ?", (old, new, trial.id))
    connection.close()


def test_a_damaged_outcome_is_named_and_run_again(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with Store(path) as store:
        before, trial = store.results(), store.plan.trials()[2]
    damage(path, trial, '"average_precision": 0', '"average_precision": 1')
    with Store(path) as store:
        with pytest.warns(UserWarning, match="damaged outcomes, which are left out: one, Gini, seed 3"):
            assert store.results()["split"].to_list() == ["seed 1", "seed 2", "seed 4"]
        assert [each.id for each in store.missing()] == [trial.id]
        for _ in run(store, backend="threads", n_workers=1):
            pass
    with Store(path) as store:
        assert figures(store.results()).equals(figures(before))


def test_a_status_is_under_the_checksum(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE trials SET status = 'failed'")
    connection.close()
    with Store(path) as store, pytest.warns(UserWarning, match="damaged"):
        assert len(store.missing()) == 4


def test_a_damaged_plan_is_refused_and_may_be_given_again(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET value = replace(value, 'Gini', 'Gina') WHERE name = 'plan'")
    connection.close()
    with Store(path) as store:
        with pytest.raises(StoreError, match="'plan'"):
            store.results()
        store.keep_plan(small_plan(), done.parent)
        assert store.missing() == []


def test_flipped_bits_never_change_a_figure_in_silence(done, tmp_path):
    content, path, rng = done.read_bytes(), tmp_path / "trials.sqlite", random.Random(5)
    with Store(done, read_only=True) as store:
        rows = store.results().rows()
    n_noticed = 0
    for _ in range(300):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with Store(path, read_only=True, patience=0.0) as store:
                    found = store.results().rows()
            except (ValueError, StoreError):
                n_noticed += 1
                continue
        n_noticed += bool(caught)
        assert set(found) <= set(rows)
    assert n_noticed > 50, "many of the bits belong to an entry"


# --- other files --------------------------------------------------------------------------------------------------


def write_first_format(path, done):
    """The file as the first format had it: no checksums."""
    with sqlite3.connect(done) as source:
        facts = source.execute("SELECT name, value FROM facts WHERE name <> 'format'").fetchall()
        trials = source.execute("SELECT id, status, outcome FROM trials").fetchall()
    source.close()
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) STRICT")
        old.execute("CREATE TABLE trials (id TEXT PRIMARY KEY, status TEXT, outcome TEXT) STRICT")
        old.executemany("INSERT INTO facts VALUES (?, ?)", [("format", "toprank experiment 1"), *facts])
        old.executemany("INSERT INTO trials VALUES (?, ?, ?)", trials)
    old.close()
    return path


def test_files_of_the_first_format_get_checksums(done, tmp_path):
    path = write_first_format(tmp_path / "trials.sqlite", done)
    with pytest.raises(ValueError, match="experiment resume"):
        Store(path, read_only=True)
    with Store(done, read_only=True) as store:
        before = store.results()
    for _ in range(2):  # the second time nothing is left to do
        with Store(path) as store:
            assert store.results().equals(before)
            assert store.missing() == []
    damage(path, small_plan().trials()[0], "0", "1")
    with Store(path) as store, pytest.warns(UserWarning, match="seed 1"):
        store.results()


def test_files_of_later_formats_are_refused(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET value = 'toprank experiment 9' WHERE name = 'format'")
    connection.close()
    with pytest.raises(ValueError, match=f"'toprank experiment 9', expected '{FORMAT}'"):
        Store(path)


# --- reading only -------------------------------------------------------------------------------------------------


def test_a_store_opened_read_only_changes_nothing(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials & more?.sqlite")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with Store(path, read_only=True) as store:
        assert store.results().height == 4
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
        with pytest.raises(ValueError, match="readonly"):
            store.keep(small_plan().trials()[0], OUTCOME)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_store_may_be_read_while_a_run_writes_it(done, tmp_path):
    path = shutil.copy(done, tmp_path / "trials.sqlite")
    with Store(path) as writer:
        trial = writer.plan.trials()[0]
        writer.keep(trial, OUTCOME)
        with Store(path, read_only=True) as reader:
            assert reader.outcomes()[trial.id] == OUTCOME
            writer.keep(trial, OUTCOME | {"error": "another"})
            assert reader.outcomes()[trial.id]["error"] == "another"


def test_reading_only_needs_a_file(tmp_path):
    with pytest.raises(ValueError, match="cannot be used"):
        Store(tmp_path / "nothing.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ValueError, match="cannot be used"):
        Store(tmp_path / "empty.sqlite", read_only=True)


def test_outcomes_come_back_as_they_were(tmp_path):
    outcome = {"status": "done", "name": "Größe \U0001f4a9", "value": 0.1 + 0.2, "nothing": None}
    with Store(tmp_path / "s.sqlite") as store:
        store.keep_plan(small_plan())
        store.keep(small_plan().trials()[0], outcome)
        assert json.dumps(*store.outcomes().values()) == json.dumps(outcome)
