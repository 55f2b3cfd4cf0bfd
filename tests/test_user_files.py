"""Files that users name are read within bounds, whatever they are."""

import io
import os
import socket
import threading
from pathlib import Path

import pytest

from arena_topo.files import read_bytes, read_stream


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    """Up to the last byte that is allowed."""
    (tmp_path / "a").write_bytes(b"x" * 2048)

    assert b"x" * 2048 == read_bytes(tmp_path / "a", 2048)


def test_a_larger_one_is_refused(tmp_path: Path) -> None:
    """With the limit; a file that is nothing but a hole has no more memory than that."""
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="it has more than 2 KiB"):
        read_bytes(tmp_path / "a", 2048)


def test_devices_are_bounded() -> None:
    """One has no end, and one nothing in it."""
    assert b"" == read_bytes("/dev/null")
    with pytest.raises(OSError, match="it has more than 4 MiB"):
        read_bytes("/dev/zero", 4 * 2**20)


def test_a_pipe_that_nobody_writes_to_is_left(tmp_path: Path) -> None:
    """It is not waited for without end."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"nothing more was written to it within 0\.01 seconds"):
        read_bytes(tmp_path / "pipe", wait=0.01)


def test_what_is_written_to_a_pipe_is_read(tmp_path: Path) -> None:
    """As of a command that a shell puts in the place of a file."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"x" * 200_000,))
    writer.start()

    assert b"x" * 200_000 == read_bytes(tmp_path / "pipe")
    writer.join()


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    """By the operating system."""
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="No such device or address"):
            read_bytes(tmp_path / "socket")


def test_what_is_piped_in_is_bounded() -> None:
    """As a file is."""
    assert b"abc" == read_stream(io.BytesIO(b"abc"), 3)
    with pytest.raises(OSError, match="it has more than"):
        read_stream(io.BytesIO(b"abcd"), 3)
