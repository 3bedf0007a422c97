"""Ctrl-C is held back where it would leave things half done."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from toprank._core.interrupts import first_interrupt_dropped, interrupts_held_back


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_is_raised_when_the_work_is_done():
    done, handler = [], signal.getsignal(signal.SIGINT)

    def work():
        with interrupts_held_back():
            press_ctrl_c()
            press_ctrl_c()
            done.append("work")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["work"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_error_passes_and_the_handler_is_restored():
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), interrupts_held_back():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_blocks_may_be_nested():
    done = []

    def work():
        with interrupts_held_back():
            with interrupts_held_back():
                press_ctrl_c()
            done.append("outer work")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["outer work"]


def test_the_first_interrupt_is_dropped_and_the_second_one_is_not():
    handler = signal.getsignal(signal.SIGINT)
    with first_interrupt_dropped() as dropped:
        assert not dropped
        press_ctrl_c()
        assert dropped
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_program_that_ignores_interrupts_still_does():
    given = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held_back(), first_interrupt_dropped() as dropped:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            press_ctrl_c()
        assert not dropped
    finally:
        signal.signal(signal.SIGINT, given)


def test_other_threads_change_no_handler():
    handler, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with interrupts_held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handler]


PROGRAM = """
import os, signal, sys
import numpy as np

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
X = np.random.default_rng(0).normal(size=(200, 2))
y = (X[:, 0] > 1).astype(int)
for attempt in range(2):
    try:
        from toprank import RankingTree
        model = RankingTree(cv=0, max_depth=2).fit(X, y)
        print("fitted")
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") == "1", reason="nothing is compiled")
@pytest.mark.parametrize("module", ["numba.core.types.misc", "numba.core.datamodel.models", "numba.cpython.unicode"])
def test_a_fit_after_an_interrupt_in_numba_works(module):
    """Numba was left half imported, or with half a kernel: every later fit of the process failed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["interrupted", "fitted"], done.stderr
