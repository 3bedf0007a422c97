"""The decorator of kernels. Run with NUMBA_DISABLE_JIT=1 (`make test-nojit`), the tests see kernels as plain Python."""

import os

from toprank._core.jit import kernel

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "1"


@kernel
def add(a, b):
    """Return a + b."""
    return a + b


def test_a_kernel_keeps_its_name_and_releases_the_gil():
    assert add(1, 2) == 3
    assert add.__doc__ == "Return a + b."
    if COMPILED:
        assert add.targetoptions["nogil"]
