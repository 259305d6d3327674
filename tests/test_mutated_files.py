"""Files of every kind with bytes and words changed: each reader reads them, or names the file."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

import tbsched as tb
from helpers import ROOT, gpu, launch
from importers.written import nsys, rows
from test_unpacking import HEADER, RUN

MUTATIONS = 40  # of each kind; ten thousand were tried by hand
WORDS = (
    b"1e999", b"-1", b"9" * 30, b"NaN", b"null", b"[]", b"{}", b'""', b"\0", b"\xff", b"[" * 5000,
    b"9" * 5000, b"'", b"\n", b"=", b"inf", b"2000-01-01", b"\x1b[2J",
)  # fmt: skip
TRACE = tb.predict(
    tb.Sequence([launch(4, name="a", duration=1e-3), tb.Copy(64, "h2d", stream=1)]), gpu()
)


def program(path: Path) -> str:
    return str(tb.load_program(path, fit=False))


def traces(path: Path) -> list[str]:
    return [str(trace) for trace in tb.load_traces(path)]


def shipped(package: str, name: str) -> bytes:
    return (resources.files(package) / name).read_bytes()


def saved(path: Path, save: Callable[[Path], object]) -> bytes:
    save(path)
    return path.read_bytes()


def profile() -> bytes:
    place = ROOT / "tests" / "profiles" / "kinds" / "13_rank0.json.gz"
    return gzip.decompress(place.read_bytes())


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[Path], bytes]]] = {
    "a.jsonl": (traces, lambda path: saved(path, lambda p: tb.save_traces(p, [TRACE]))),
    "b.jsonl.xz": (traces, lambda path: saved(path, lambda p: tb.save_traces(p, [TRACE]))),
    "c.json": (program, lambda path: profile()),
    "d.json.gz": (program, lambda path: gzip.compress(profile())),
    "e.sqlite": (program, lambda path: nsys(path, rows()).read_bytes()),
    "f.toml": (tb.device, lambda path: shipped("tbsched.hardware.devices", "h200.toml")),
    "g.toml": (tb.sm.config, lambda path: shipped("tbsched.sm", "configs/owl-table1.toml")),
    "h.jsonl": (
        lambda path: tb.sm.load_characterization(path, "h200"),
        lambda path: HEADER + json.dumps(RUN).encode(),
    ),
    "i.npz": (
        tb.sm.load_workload,
        lambda path: saved(path, lambda p: tb.sm.save_workload(tb.sm.preset("SCP", blocks=1), p)),
    ),
    "j.json": (
        tb.sm.load_profiles,
        lambda path: saved(
            path, lambda p: tb.sm.save_profiles([tb.sm.KernelProfile("add", {"dram": 2e-5})], p)
        ),
    ),
}


def mutated(draw: random.Random, content: bytes) -> bytes:
    """Some bytes or words are others, or the end is missing."""
    what = draw.randrange(4)
    if what == 0:
        return content[: draw.randrange(len(content))]
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if what == 1:
            found[draw.randrange(len(found))] = draw.randrange(256)
        elif words := [match.span() for match in re.finditer(rb"[\w.+-]+", found)]:
            begin, end = draw.choice(words)
            found[begin:end] = draw.choice(WORDS)
    return bytes(found)


def in_words(draw: random.Random, name: str, content: bytes) -> bytes:
    """The same of what a packed file has in it."""
    pack, unpack = {
        ".gz": (gzip.compress, gzip.decompress),
        ".xz": (lzma.compress, lzma.decompress),
    }.get(Path(name).suffix, (bytes, bytes))
    return bytes(pack(mutated(draw, unpack(content))))


@pytest.mark.parametrize("name", KINDS)
def test_mutated_file_is_read_or_refused_by_name(tmp_path: Path, name: str) -> None:
    read, made = KINDS[name]
    place = tmp_path / name
    content = made(place)
    place.write_bytes(content)
    read(place)
    draw = random.Random(name)
    for number in range(MUTATIONS):
        change = in_words(draw, name, content) if number % 2 else mutated(draw, content)
        place.write_bytes(change)
        assert said_of(read, place) in ("", name), change[:200]


def said_of(read: Callable[[Path], object], place: Path) -> str:
    """The file that a short refusal names; empty: it is read."""
    try:
        read(place)
    except ValueError as error:
        return place.name if place.name in str(error) and len(str(error)) < 2000 else str(error)
    return ""
