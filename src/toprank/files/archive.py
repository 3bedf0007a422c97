"""The zip archive of a model file: both members are read as bytes and arrays, after checking limits.

Nothing here knows what a model is. An untrusted file may declare anything, so every size is checked before memory is
allocated, arrays have a few plain types, and headers are matched with a pattern instead of being evaluated.
"""

from __future__ import annotations

import io
import math
import re
import stat
import zipfile
import zlib
from pathlib import Path

import numpy as np

from toprank.errors import InputError
from toprank.files.atomic import special_kind

HEAD, ARRAYS = "model.json", "arrays.npz"

MAX_FILE = 2**31
"""Maximum bytes of a model file."""

MAX_HEAD = 2**25
"""Maximum bytes of `model.json`."""

MAX_RATIO = 200
"""Maximum bytes of arrays per byte of the file; models have 3 to 20, a zip bomb has 1,000."""

ALWAYS_ALLOWED = 2**24
"""Bytes of arrays always allowed, however small the file."""

MAX_DIMENSIONS = 3
MAX_EMPTY = 2**16
"""Maximum length of a dimension of an empty array, where another dimension is 0."""

MAX_TEXT = 1000
"""Maximum number of characters of a text in an array."""

MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<|][biufU])(\d{1,6})', 'fortran_order': (False|True), "
    rb"'shape': \((|\d{1,10},|\d{1,10}(?:, \d{1,10})+)\), \} *\n"
)
TYPES = frozenset(("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"))
"""Types of arrays, besides text."""

MAX_CODE_POINT = 0x10FFFF

UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    KeyError,
)
"""What the readers of zip files, JSON and arrays raise for a bad file."""


class NotAModelError(InputError):
    """A zip file that is not a model."""


class RefusedError(InputError):
    """A file that breaks a limit; the message says which."""


def check_is_file(path: Path) -> None:
    """Raise RefusedError if a path is a folder, a device, a FIFO or a socket, or too large to be a model."""
    found = path.stat()
    special = special_kind(found.st_mode)
    if special:
        raise RefusedError(f"{path} is {special}, expected a model file. Hint: copy its content into a file first.")
    if stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"{path} is a folder, expected a model file. Hint: name the .toprank file inside it.")
    if found.st_size > MAX_FILE:
        raise RefusedError(
            f"{path} has {found.st_size:,} bytes, but a model file has {MAX_FILE:,} at most. "
            "Hint: use a file that `save` wrote."
        )


def read_members(path: Path) -> tuple[bytes, bytes]:
    """The raw bytes of `model.json` and `arrays.npz` of a file.

    Raises NotAModelError if the zip file holds something else, and one of UNREADABLE if it is not a zip file.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if min((member.header_offset for member in members), default=0) > 0:  # the directory of an inner archive
            raise zipfile.BadZipFile("its directory is missing")
        if sorted(member.filename for member in members) != [ARRAYS, HEAD]:
            raise NotAModelError
        for member in members:
            most = MAX_HEAD if member.filename == HEAD else MAX_FILE
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
                raise InputError(f"its part {member.filename} is compressed")
            if member.file_size > most:
                raise InputError(f"its part {member.filename} has {member.file_size:,} bytes, more than {most:,}")
        return archive.read(HEAD), archive.read(ARRAYS)


def write_members(head: bytes, arrays: bytes) -> bytes:
    """The content of a model file."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEAD, head)
        archive.writestr(ARRAYS, arrays)
    return whole.getvalue()


def pack_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays in the format of `unpack_arrays`: compressed, unless they compress so well that they look like a bomb."""
    for save in (np.savez_compressed, np.savez):
        buffer = io.BytesIO()
        save(buffer, **arrays)  # type: ignore[arg-type]
        raw = buffer.getvalue()
        if sum(array.nbytes for array in arrays.values()) <= _most_bytes(len(raw)) // 2:
            break
    return raw


def _most_bytes(n_packed: int) -> int:
    return max(ALWAYS_ALLOWED, MAX_RATIO * n_packed)


def unpack_arrays(raw: bytes) -> dict[str, np.ndarray]:
    """Arrays by name; raise one of UNREADABLE where they are damaged or break a limit.

    Examples
    --------
    >>> unpack_arrays(pack_arrays({"label": np.array([0, 1], np.int8)}))
    {'label': array([0, 1], dtype=int8)}
    >>> unpack_arrays(pack_arrays({"label": np.array([0, 1j])}))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: array 'label' has an unknown type
    """
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) != len(names):
            raise InputError("two arrays have the same name")
        for member in members:
            if not member.filename.endswith(".npy"):
                raise InputError(f"{member.filename!r} is not an array")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(f"array {member.filename!r} is compressed in an unknown way")
        total, most = sum(member.file_size for member in members), _most_bytes(len(raw))
        if total > most:
            raise InputError(f"they would take {total:,} bytes, but {most:,} is the most for a file of this size")
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array; its header must match the number of bytes."""
    name, content = member.filename.removesuffix(".npy"), archive.read(member)
    start = len(MAGIC) + 2
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    found = HEADER.fullmatch(content[start:end]) if content.startswith(MAGIC) else None
    if found is None:
        raise InputError(f"array {name!r} has an unknown type")
    code, size, is_fortran, lengths = (part.decode() for part in found.groups())
    shape = tuple(int(length) for length in lengths.split(",") if length.strip())
    is_text = code == "<U"
    if not is_text and code + size not in TYPES:
        raise InputError(f"array {name!r} has an unknown type")
    if is_text and (shape or int(size) > MAX_TEXT):
        raise InputError(f"array {name!r} is not text of at most {MAX_TEXT:,} characters")
    if len(shape) > MAX_DIMENSIONS or (0 in shape and max(shape) > MAX_EMPTY):
        raise InputError(f"array {name!r} has the shape {shape}, which no model has")
    n_bytes = math.prod(shape) * int(size) * (4 if is_text else 1)
    if n_bytes != len(content) - end:
        raise InputError(f"array {name!r} has {len(content) - end:,} bytes, but its header says {n_bytes:,}")
    if code == "|b" and np.frombuffer(content, np.uint8, offset=end).max(initial=0) > 1:
        raise InputError(f"array {name!r} holds bytes that are not booleans")
    if is_text:
        points = np.frombuffer(content, "<u4", offset=end)
        if points.max(initial=0) > MAX_CODE_POINT or np.any((points >= 0xD800) & (points <= 0xDFFF)):
            raise InputError(f"array {name!r} holds invalid text")
    flat = np.frombuffer(content, code + size, offset=end).copy()  # kernels are compiled for arrays that own memory
    return flat.reshape(shape, order="F" if is_fortran == "True" else "C")
