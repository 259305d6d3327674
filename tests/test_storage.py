"""Paths that users name: nothing that is there is harmed, and nothing hangs."""

from __future__ import annotations

import os
import resource
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tbsched as tb
from tbsched import storage
from tbsched.traces.growing_file import TraceFile

ONE = tb.predict(tb.Sequence([tb.Launch(1, 32, 16)]), "rtx3090")


def write(path: Path, content: bytes = b"new") -> None:
    with storage.replacing(path) as out:
        out.write(content)


@pytest.fixture
def watchdog() -> Iterator[None]:
    """What would wait for ever is killed instead."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def fifo(tmp_path: Path, watchdog: None) -> Path:
    os.mkfifo(tmp_path / "x.toml")
    return tmp_path / "x.toml"


def test_symbolic_link_stays_and_leads_to_what_was_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_symbolic_link_that_leads_nowhere_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link")
    assert (tmp_path / "target").read_bytes() == b"new"


def test_device_is_written_to_and_stays() -> None:
    tb.save_traces("/dev/null", [ONE])
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        tb.save_traces("/dev/full", [ONE])


def test_fifo_is_written_to_and_stays(fifo: Path) -> None:
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    write(fifo)
    reader.join()
    assert got == [b"new"]
    assert fifo.is_fifo()


def test_own_output_is_written_to(capfd: pytest.CaptureFixture[str]) -> None:
    print("before", flush=True)
    tb.save_traces("/dev/stdout", [ONE])
    print("after", flush=True)
    before, header, record, after = capfd.readouterr().out.splitlines()
    assert (before, after) == ("before", "after")
    assert "tbsched_trace" in header
    assert "smid" in record


@pytest.mark.parametrize(
    "use", [write, tb.load_traces, TraceFile, lambda path: tb.save_traces(path, [])]
)
@pytest.mark.parametrize("name", ["x" * 10_000, "a\0b", "loop", "file/x"])
def test_what_no_file_can_be_called_is_bad_input(
    tmp_path: Path, use: Callable[[Path], object], name: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are the system's
        use(tmp_path / name)
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("use", [write, TraceFile, lambda path: tb.save_traces(path, [ONE])])
def test_folder_is_not_written(tmp_path: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        use(tmp_path)
    with pytest.raises(FileNotFoundError):
        use(tmp_path / "none" / "x")
    assert list(tmp_path.iterdir()) == []


def test_what_is_being_written_replaces_nothing_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail() -> None:
        with storage.replacing(path) as out:
            out.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("use", [tb.device, tb.load_traces, TraceFile, storage.content])
def test_fifo_is_not_waited_for(fifo: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(ValueError, match="is a FIFO"):
        use(fifo)


def test_pipe_that_was_handed_over_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"content")
    os.close(writing)
    assert storage.content(Path(f"/dev/fd/{reading}")) == b"content"
    os.close(reading)


def test_whole_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert storage.content(path, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        storage.content(path, 4)


def test_full_disk_leaves_no_torn_line_to_append_to(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with TraceFile(path) as file:
        file.append(ONE)
        before = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        try:
            with pytest.raises(OSError, match=r"x\.jsonl"):
                file.append(ONE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        file.append(ONE)
    assert len(tb.load_traces(path)) == 2


@pytest.mark.parametrize("content", [b"notes", b"my\nnotes", b'{"other":1}\n{"torn'])
def test_file_of_something_else_is_not_appended_to(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.jsonl"):
        TraceFile(path)
    assert path.read_bytes() == content
