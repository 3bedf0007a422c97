"""Damaged model files never crash the process: each is refused with a sentence, or loads and can be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MAX_MB = 500


def fuzz(n, seed, folder, **environment):
    """What the fuzzer found, in a child process; a crash names the file that it was at."""
    done = subprocess.run(
        [sys.executable, "-m", "files.fuzz_models", str(n), str(seed), str(folder)],
        cwd=TESTS,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    current = folder / "current.json"
    at = current.read_text() if current.exists() else "the start"
    assert done.returncode == 0, f"exit {done.returncode} at {at}\n{done.stderr[-2000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["failures"], "\n".join(map(str, found["failures"][:20]))
    assert found["peak_mb"] < MAX_MB
    assert found["refused"] + found["loaded"] == n
    assert min(found["refused"], found["loaded"]) > n / 20  # neither all nor nothing gets through
    return found


def test_damaged_files_are_refused_or_harmless(tmp_path):
    fuzz(30, 0, tmp_path)  # the slow test below, which CI runs too, damages more of them


@pytest.mark.slow
def test_damaged_files_with_every_index_checked(tmp_path):
    cache = tmp_path / "cache"  # of its own: the key of Numba's cache does not know of bounds checks
    n = int(os.environ.get("TOPRANK_FUZZ_FILES", "10000"))
    fuzz(n, 1, tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(cache))
