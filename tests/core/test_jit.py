"""The decorator of kernels. Run with NUMBA_DISABLE_JIT=1 (`make test-nojit`), the tests see kernels as plain Python."""

import importlib.util
import os
import subprocess
import sys

import numba
import pytest

from toprank._core import jit
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


# --- the cache ----------------------------------------------------------------------------------------------

PROGRAM = """
import warnings
warnings.simplefilter("always")
from {package}.kernels import add
print(add(1.0, 2.0), len(add.stats.cache_hits), len(add.stats.cache_misses))
"""

KERNELS = """
from toprank._core.jit import kernel

@kernel
def add(a, b):
    return a + b

@kernel
def subtract(a, b):
    return a - b
"""


def run_kernel(folder, *, home=None, package="fast", **environment):
    """What a program with kernels in `folder` prints, and its notes: result, cache hits and misses of a kernel."""
    environment = {"HOME": str(home or folder), "XDG_CACHE_HOME": str(home or folder / "cache")} | environment
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(package=package)],
        env=kept | {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result, hits, misses = done.stdout.split()
    assert float(result) == 3.0
    return int(hits), int(misses), done.stderr


@pytest.fixture
def package(tmp_path):
    """A folder with a package of kernels."""
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "__init__.py").write_text("")
    (tmp_path / "fast" / "kernels.py").write_text(KERNELS)
    return tmp_path


needs_compiler = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


def forbid_writing(package):
    """Leave no place for a cache beside the source; the owner of all files could write into a read-only folder."""
    (package / "fast" / "__pycache__").write_text("a file where a folder should be")


@needs_compiler
def test_a_read_only_installation_caches_in_the_folder_of_the_user(package):
    forbid_writing(package)
    assert run_kernel(package) == (0, 1, "")
    assert run_kernel(package) == (1, 0, "")
    assert list((package / "cache").rglob("kernels.add-*.nbc"))


@needs_compiler
def test_without_any_place_kernels_are_compiled_anew_with_one_note(package):
    forbid_writing(package)
    hits, _, notes = run_kernel(package, home="/dev/null/nowhere")
    assert hits == 0
    assert notes.count("NUMBA_CACHE_DIR") == 1


def use_again(package):
    """Cache hits and misses of a kernel that is imported anew, in this process."""
    spec = importlib.util.spec_from_file_location("kernels", package / "fast" / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.add(1.0, 2.0) == 3.0
    return len(module.add.stats.cache_hits), len(module.add.stats.cache_misses)


@needs_compiler
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "flipped"])
def test_a_damaged_entry_is_dropped_and_compiled_again(package, monkeypatch, ending, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert use_again(package) == (0, 1)
    assert use_again(package) == (1, 0)
    (path,) = (package / "fast" / "__pycache__").glob(f"kernels.add-*.{ending}")
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes({
        "empty": b"",
        "cut": content[:middle],
        "noise": b"\x80\x05noise" * 100,
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }[damage])  # fmt: skip
    assert sum(use_again(package)) == 1
    assert use_again(package) == (1, 0)


@needs_compiler
def test_a_full_disk_is_no_reason_to_stop(package, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jit._CheckedFiles, "_save_data", fail)
    assert use_again(package) == (0, 1)
