import os
import subprocess
import sys
from pathlib import Path

import pytest

from toprank._core.jit import kernel

HERE = Path(__file__).parents[1]
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"


@pytest.mark.skipif(not COMPILED, reason="the kernels run as plain Python already")
def test_kernels_agree_with_the_references_without_the_compiler():
    """The kernel and tree tests once more, every kernel as plain Python: bounds are checked there."""
    files = sorted(HERE.glob("test_core_*.py")) + sorted(HERE.glob("test_tree_*.py"))
    options = ["-W", "ignore::RuntimeWarning"]  # plain Python says where floats overflow, kernels do not
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=quick",
    ]
    done = subprocess.run(
        [*command, *options, *map(str, files)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout


@kernel
def add(a, b):
    """Return a + b."""
    return a + b


def test_a_kernel_keeps_its_name_and_releases_the_gil():
    assert add(1, 2) == 3
    assert add.__doc__ == "Return a + b."
    if COMPILED:
        assert add.targetoptions["nogil"]
