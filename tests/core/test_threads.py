import contextlib
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank._core.threads import Threads, cut_evenly, cut_into_chunks, resolve_n_jobs, share_out


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (3, 3), (-1, 4), (-2, 3), (-4, 1), (-9, 1)])
def test_n_jobs_in_scikit_learns_sense(monkeypatch, n_jobs, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert resolve_n_jobs(n_jobs) == expected


def test_no_jobs_is_an_error():
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        resolve_n_jobs(0)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_order(n_threads):
    with Threads(n_threads) as threads:
        assert list(threads.map(lambda a, b: a - b, [5, 6, 7], [1, 2, 3])) == [4, 4, 4]
        assert list(threads.map(abs, range(-20, 0))) == list(range(20, 0, -1))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_calls", [0, 1, 2, 50])
def test_short_calls_give_their_results_in_order(n_threads, n_calls):
    with Threads(n_threads) as threads:
        assert threads.run(lambda a, b: a - b, range(n_calls), [7] * n_calls) == [i - 7 for i in range(n_calls)]


def test_the_calling_thread_takes_its_part_of_short_calls():
    meet = threading.Barrier(2, timeout=10)

    def who(_):
        meet.wait()
        return threading.current_thread()

    with Threads(2) as threads:
        callers = threads.run(who, range(2))
    assert threading.current_thread() in callers
    assert len(set(callers)) == 2


@pytest.mark.parametrize("culprit", ["caller", "helper"])
def test_an_error_in_a_short_call_stops_the_rest_and_reaches_the_caller(culprit):
    caller, meet, calls = threading.current_thread(), threading.Barrier(2, timeout=10), []

    def fail(i):
        calls.append(i)
        if i < 2:
            meet.wait()
        else:
            time.sleep(0.001)
        if (threading.current_thread() is caller) == (culprit == "caller"):
            raise ZeroDivisionError
        return i

    with Threads(2) as threads, pytest.raises(ZeroDivisionError):
        threads.run(fail, range(200))
    assert {0, 1} <= set(calls)
    assert len(calls) < 200


@pytest.mark.parametrize("n_threads", [2, 3])
def test_an_error_in_a_call_that_a_helper_shares_out_reaches_the_caller(n_threads):
    caller, meet = threading.current_thread(), threading.Barrier(2, timeout=10)

    def call(_):
        meet.wait()
        return None if threading.current_thread() is caller else threads.run(lambda x: 1 // x, [1, 0, 1])

    with Threads(n_threads) as threads:
        with pytest.raises(ZeroDivisionError):
            threads.run(call, range(2))
        assert threads.run(abs, [-1, -2]) == [1, 2]


def test_who_is_interrupted_while_others_work_leaves_nobody_behind(monkeypatch):
    """The caller is interrupted as it waits for the helper, which waits in turn for what it has shared out."""
    caller, meet, before = threading.current_thread(), threading.Barrier(2, timeout=10), threading.active_count()
    threads, release = Threads(3), threading.Event()
    wait = threads._wait

    def interrupted(bed):
        if threading.current_thread() is caller:
            release.set()
            raise KeyboardInterrupt
        return wait(bed)

    def call(_):
        meet.wait()
        return None if threading.current_thread() is caller else threads.run(patient, range(2))

    def patient(_):
        return threading.current_thread() is caller or release.wait(10)

    monkeypatch.setattr(threads, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt), threads:
        threads.run(call, range(2))
    for _ in range(500):  # helpers end with the calls they make
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt lost in a destructor
def test_a_pool_works_after_interrupts_at_any_moment():
    """Ctrl-C between any two instructions leaves no lock held: with `Condition`, one in a thousand did."""
    delays = np.random.default_rng(0).uniform(2e-4, 1e-3, 500)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with Threads(2) as threads:
            for delay in delays.tolist():
                with contextlib.suppress(KeyboardInterrupt, RuntimeError):  # Python's Thread.start is not safe
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    for _ in range(2_000):  # Python loses an interrupt in a destructor
                        threads.run(abs, range(8))
            assert threads.run(abs, range(-4, 0)) == [4, 3, 2, 1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("way", ["run", "map"])
def test_who_is_interrupted_in_a_call_waits_for_nobody(way):
    caller, meet, release = threading.current_thread(), threading.Barrier(2, timeout=10), threading.Event()

    def call(_):
        meet.wait()
        if threading.current_thread() is caller:
            raise KeyboardInterrupt
        release.wait(10)

    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), Threads(2) as threads:
        list(getattr(threads, way)(call, range(2)))
    assert time.perf_counter() - begin < 5
    release.set()


def test_a_call_may_share_out_work_and_never_do_more_threads_work_than_there_are():
    lock, busy, most = threading.Lock(), 0, 0

    def leaf(i):
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.001)
        with lock:
            busy -= 1
        return i

    with Threads(2) as threads:
        found = threads.run(lambda i: sum(threads.run(leaf, range(i, i + 4))), range(6))
    assert found == [4 * i + 6 for i in range(6)]
    assert most == 2


def test_who_waits_for_a_call_takes_part_in_what_it_shares_out():
    """The caller has done its call; the other one shares out two that need two threads."""
    meet, caller = threading.Barrier(2, timeout=10), threading.current_thread()

    def who(_):
        meet.wait()
        return threading.current_thread()

    def call(_):
        meet.wait()
        return None if threading.current_thread() is caller else threads.run(who, range(2))

    with Threads(2) as threads:
        inner = next(found for found in threads.run(call, range(2)) if found)
    assert caller in inner
    assert len(set(inner)) == 2


def test_what_is_left_of_long_calls_is_not_begun_once_the_pool_is_left():
    begun = []
    with Threads(2) as threads:
        next(threads.map(lambda i: (begun.append(i), time.sleep(0.01)), range(100)))
    assert len(begun) < 20


def test_two_threads_run_side_by_side():
    meet = threading.Barrier(2, timeout=10)
    with Threads(2) as threads:
        assert sorted(threads.map(lambda _: meet.wait(), range(2))) == [0, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_errors_reach_the_caller(n_threads):
    with Threads(n_threads) as threads, pytest.raises(ZeroDivisionError):
        list(threads.map(lambda x: 1 // x, [1, 0]))


def test_the_pool_is_gone_afterwards():
    before = threading.active_count()
    with Threads(3) as threads:
        list(threads.map(abs, range(4)))
        threads.run(abs, range(4))
        assert threading.active_count() > before + 1
    assert threading.active_count() == before
    assert list(threads.map(abs, [-1])) == [1]


@given(st.integers(0, 100), st.integers(1, 5), st.integers(1, 40))
def test_even_slices_cover_everything_and_are_large_enough(n, n_threads, least):
    slices = cut_evenly(n, n_threads, least)
    assert [i for part in slices for i in range(part.start, part.stop)] == list(range(n))
    assert len(slices) <= n_threads
    assert all(part.stop - part.start >= min(least, n) for part in slices[:-1])


@given(st.lists(st.integers(0, 20), min_size=0, max_size=6), st.integers(1, 8))
def test_chunks_cover_every_segment_in_order(lengths, chunk):
    start = np.cumsum([3, *lengths])[:-1].astype(np.int64)
    stop = start + np.array(lengths, np.int64)
    chunks = cut_into_chunks(start, stop, chunk)
    assert chunks.dtype == np.int64
    assert chunks.shape[1] == 3
    rows = [(segment, row) for segment, first, last in chunks for row in range(first, last)]
    assert rows == [(s, row) for s in range(len(start)) for row in range(start[s], stop[s])]
    length = chunks[:, 2] - chunks[:, 1]
    assert ((length > 0) & (length <= chunk)).all()


@given(st.lists(st.integers(1, 20), min_size=0, max_size=12), st.integers(1, 5))
def test_shares_are_contiguous_and_about_equal(work, n_threads):
    shares = share_out(np.array(work), n_threads)
    assert [i for share in shares for i in range(share.start, share.stop)] == list(range(len(work)))
    assert len(shares) <= n_threads
    for share in shares:
        assert share.stop > share.start
        assert sum(work[share]) <= sum(work) / n_threads + max(work)
