"""Writing files: whole or not at all. Every file that toprank writes goes through `write_atomically`."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path

NAME_KEPT = 40
"""Characters of a file's name kept in its temporary name: file systems allow 255 bytes."""

SPECIAL = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def special_kind(mode: int) -> str:
    """The kind of a special path: "a device", "a FIFO", "a socket"; "" for files, folders and missing paths."""
    return next((words for is_kind, words in SPECIAL if is_kind(mode)), "")


def check_target(path: Path) -> None:
    """Raise OSError, with a message, if a file clearly cannot be written; only checks, changes nothing.

    Examples
    --------
    >>> from pathlib import Path
    >>> check_target(Path("no/such/model.toprank"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: Cannot write no/such/model.toprank: no/such does not exist. Hint: create the folder first.
    """
    if path.is_dir():
        raise IsADirectoryError(f"Cannot write {path}: it is a folder, expected a file. Hint: name a file inside it.")
    if not path.parent.exists():
        raise FileNotFoundError(f"Cannot write {path}: {path.parent} does not exist. Hint: create the folder first.")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"Cannot write {path}: {path.parent} is not a folder. Hint: name a folder.")
    special = special_kind(path.stat().st_mode) if path.exists() else ""
    if special:
        raise OSError(f"Cannot write {path}: it is {special}, expected a file. Hint: name a file.")
    target = _target(path)
    if target.is_symlink():
        raise OSError(f"Cannot write {path}: it is a link to itself. Hint: remove the link.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Cannot write {path}: it is a link to {target}, and there is no folder {target.parent}. "
            "Hint: create the folder, or remove the link."
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(
            f"Cannot write {path}: no permission to write in {target.parent}. Hint: choose another folder."
        )


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that no half-written file is ever seen.

    A replaced file keeps its mode; symbolic links are followed and kept. The content is on disk when the function
    returns. Raises OSError if the file cannot be written; then nothing has changed. Folders, devices, FIFOs and sockets
    are refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "note.txt")
    ...     write_atomically(path, b"whole")
    ...     path.read_bytes()
    b'whole'
    """
    path = Path(path)
    try:
        check_target(path)
        _replace(_target(path), content)
    except OSError as error:
        if error.strerror is None:  # the message of `check_target`
            raise
        raise type(error)(
            f"Cannot write {path}: {error.strerror}. "
            f"Hint: check the permissions of {path.parent} and the space left on it."
        ) from error


def _target(path: Path) -> Path:
    """The file that a path leads to, through links."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _replace(target: Path, content: bytes) -> None:
    temporary = target.with_name(f".{target.name[:NAME_KEPT]}.{uuid.uuid4().hex}.part")
    # The replacement of a private file is private from its first byte.
    mode = stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else None
    try:
        private = None if mode is None else lambda name, flags: os.open(name, flags, 0o600)
        with open(temporary, "xb", opener=private) as file:
            file.write(content)
            if mode is not None:
                os.chmod(temporary, mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the new name of a file to disk; not all systems can open folders, and not all disks sync them."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
