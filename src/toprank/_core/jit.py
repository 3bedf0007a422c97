"""The decorator of all kernels, and the cache of compiled code.

Kernels are serial, cached on disk and release the GIL. Parallel code is a thin layer on top (`toprank._core.threads`):
plain threads, each running a serial kernel on its own chunk of rows. Nothing here depends on Numba's threading layers,
and the compiled code is the same for any number of threads.

The cache is next to the source, or in the user's cache folder if that is not writable, or disabled. It only saves time,
so a broken cache never stops a program: a damaged entry is dropped and compiled again.

Ctrl-C waits until Numba is imported and a kernel is loaded or compiled: Numba does not recover from half of that.

Set the environment variable ``NUMBA_DISABLE_JIT=1`` to run every kernel as plain Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from toprank._core.interrupts import interrupts_held_back
from toprank.errors import InputError

with interrupts_held_back():  # Numba that is half imported cannot be imported again in this process
    import numba
    from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST = hashlib.sha256().digest_size

NO_CACHE = (
    "No folder for compiled code is writable, so every program compiles its kernels again, which takes up to a "
    "minute. Hint: set the environment variable NUMBA_CACHE_DIR to a writable folder."
)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a free function on first use, cache the result on disk, release the GIL while it runs."""
    compiled: Any = numba.njit(nogil=True)(function)
    if hasattr(compiled, "enable_caching"):  # not with the compiler disabled
        cache = _cache_of(function)
        if cache is not None:
            compiled._cache = cache
        compiled._compile_for_args = _uninterrupted(compiled._compile_for_args)
    return compiled


def _uninterrupted(compile_for_args: Callable[..., Any]) -> Callable[..., Any]:
    """What Numba calls the first time that a kernel gets arguments of some types, without interrupts halfway."""

    @wraps(compile_for_args)
    def compile_whole(*args: Any, **given: Any) -> Any:
        with interrupts_held_back():
            return compile_for_args(*args, **given)

    return compile_whole


def _cache_of(function: Callable[..., Any]) -> _SafeCache | None:
    """The cache of a function; None, with a warning the first time, if no folder is writable."""
    try:
        return _SafeCache(function)
    except (RuntimeError, OSError):  # Numba found no folder
        _note_no_cache()
        return None


def _note_no_cache() -> None:
    global _is_noted  # noqa: PLW0603
    if not _is_noted:
        _is_noted = True
        warnings.warn(NO_CACHE, RuntimeWarning, stacklevel=2)


_is_noted = False


class _CheckedFiles(IndexDataCacheFile):
    """Cache files of one function: an index, and compiled code that ends with its checksum.

    Machine code with a flipped bit would run and crash the process.
    """

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
            raise InputError(f"The checksum of {path} does not match.")
        return super()._load_data(name)  # bytes after a pickle are ignored

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + hashlib.sha256(content).digest()

    def drop(self) -> None:
        """Remove the index, so that its entries are compiled again and overwritten."""
        with contextlib.suppress(OSError):
            os.unlink(self._index_path)


class _SafeCache(FunctionCache):
    """Numba's cache of a function; any error counts as "not cached"."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        locator = self._impl.locator
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for a signature; None if there is none or it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            self._cache_file.drop()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code if possible: a full disk is no reason to stop."""
        with contextlib.suppress(OSError):
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:
                self._cache_file.drop()
                super().save_overload(sig, data)
