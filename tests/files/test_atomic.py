"""Files are written whole or not at all, with the mode they had, and never into a device."""

import os
import stat

import pytest

from toprank.cli.writing import check_output
from toprank.errors import InputError
from toprank.files import atomic
from toprank.files.atomic import check_target, write_atomically

needs_posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and FIFOs are those of POSIX")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@needs_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "out.csv"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


@needs_posix
def test_a_new_file_has_the_mode_that_open_gives(tmp_path):
    write_atomically(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "b")


@needs_posix
def test_what_replaces_a_private_file_is_never_readable_by_others(tmp_path, monkeypatch):
    path, seen = tmp_path / "secret", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    replace = os.replace

    def look(source, target):
        seen.append(mode_of(source))
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", look)
    write_atomically(path, b"new")
    assert seen == [0o600]


@needs_posix
def test_links_stay_and_what_they_point_to_is_replaced(tmp_path):
    real, link = tmp_path / "real" / "model", tmp_path / "link"
    real.parent.mkdir()
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    real.unlink()
    write_atomically(link, b"again")  # a link to a file that is yet to come
    assert real.read_bytes() == b"again"
    assert [path.name for path in real.parent.iterdir()] == ["model"]


@needs_posix
def test_links_to_nowhere_and_to_themselves_are_refused(tmp_path):
    lost, loop = tmp_path / "lost", tmp_path / "loop"
    lost.symlink_to(tmp_path / "no" / "folder")
    loop.symlink_to(loop)
    with pytest.raises(FileNotFoundError, match="it is a link to"):
        write_atomically(lost, b"x")
    with pytest.raises(OSError, match="Cannot write"):
        write_atomically(loop, b"x")
    assert {path.name for path in tmp_path.iterdir()} == {"lost", "loop"}


@needs_posix
def test_devices_and_fifos_are_refused(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, what in ((fifo, "a FIFO"), (type(fifo)("/dev/null"), "a device")):
        with pytest.raises(OSError, match=what):
            write_atomically(path, b"x")
        with pytest.raises(InputError, match=what):
            check_output(path)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_file_and_folder_are_synced(tmp_path, monkeypatch):
    synced = []

    def note(handle):
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))

    monkeypatch.setattr(atomic.os, "fsync", note)
    write_atomically(tmp_path / "a", b"x")
    assert synced == ([False, True] if os.name == "posix" else [False])


def test_a_name_as_long_as_file_systems_take(tmp_path):
    path = tmp_path / ("ä" * 120)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"


def test_looking_changes_nothing(tmp_path):
    check_target(tmp_path / "new")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        check_target(tmp_path / "file" / "new")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_target(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
