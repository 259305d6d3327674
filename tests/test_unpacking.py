"""Packed files cost what their size allows, whatever they say of themselves."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tbsched as tb
from tbsched import unpacking
from tbsched.importers.readers import read_sequences
from tbsched.importers.reading import packed
from tbsched.sm.characterization import load_runs


def huge_dictionary() -> bytes:
    """A few bytes packed by xz that ask for a dictionary of 4 GiB."""
    found = bytearray(lzma.compress(b"{}\n"))
    size = (found[12] + 1) * 4  # of the header of the block
    assert found[14] == 0x21  # LZMA2
    found[16] = 40
    struct.pack_into("<I", found, 12 + size - 4, zlib.crc32(found[12 : 12 + size - 4]))
    return bytes(found)


READERS: list[tuple[Callable[[Path], object], str]] = [
    (tb.load_traces, "a.jsonl.xz"),
    (lambda path: tb.load_program(path, fit=False), "a.json.xz"),
    (read_sequences, "a.jsonl.xz"),
    (load_runs, "a.jsonl.xz"),
]


@pytest.mark.parametrize(("read", "name"), READERS)
def test_dictionary_beyond_the_limit_is_not_allocated(
    tmp_path: Path, read: Callable[[Path], object], name: str
) -> None:
    (tmp_path / name).write_bytes(huge_dictionary())
    words = f"{name}.*: unpacking takes more than {unpacking.MAX_DICTIONARY} bytes of memory"
    with pytest.raises(ValueError, match=words):
        read(tmp_path / name)


ENDINGS = ("", ".gz", ".xz")


def packed_by(ending: str, parts: list[bytes]) -> bytes:
    pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(ending, bytes)
    return b"".join(map(pack, parts))


@given(st.sampled_from(ENDINGS), st.lists(st.binary(max_size=99), min_size=1, max_size=4))
def test_what_was_packed_is_read(ending: str, parts: list[bytes]) -> None:
    file = io.BytesIO(packed_by(ending, parts))
    assert unpacking.unpacked(file, ending).read() == b"".join(parts)


def test_blanks_between_streams_are_gone_over_and_other_bytes_are_not() -> None:
    one = lzma.compress(b"one")
    assert unpacking.unpacked(io.BytesIO(one + bytes(8) + one), ".xz").read() == b"oneone"
    for wrong in (one[:-1], one + b"two", one[:20] + b"?" + one[21:]):
        with pytest.raises(unpacking.DAMAGED):
            unpacking.unpacked(io.BytesIO(wrong), ".xz").read()


def test_profile_that_unpacks_to_much_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a.json.gz"
    place.write_bytes(gzip.compress(b'{"traceEvents":[' + b" " * 5_000_000 + b"]}"))
    with pytest.raises(ValueError, match=r"a\.json\.gz: no kernels"):
        tb.load_program(place)
    monkeypatch.setattr(packed, "MAX_UNPACKED", 2**20)
    with pytest.raises(ValueError, match=r"a\.json\.gz: \d+ bytes unpack to more than 1048576"):
        tb.load_program(place)


def test_profile_that_says_the_same_again_and_again_is_refused_early(tmp_path: Path) -> None:
    place = tmp_path / "a.json.gz"
    event = b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"stream":7}},'
    place.write_bytes(gzip.compress(b'{"traceEvents":[' + event * 2**20, 1))
    taken: list[int] = []
    with pytest.raises(ValueError, match=r"a\.json\.gz: \d+ bytes unpack to more than 16777216"):
        taken.extend(map(len, packed.pieces_of(place)))
    assert 0 < sum(taken) <= 2**24


def workload(path: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Writes a workload of which some entries are others."""
    tb.sm.save_workload(tb.sm.preset("SCP", blocks=8), path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def array(values: object) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(values), allow_pickle=False)
    return file.getvalue()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda held: held.update({"compute.npy": array(np.zeros(2**26, np.int8))}), "unpack to"),
        (
            lambda held: held.update(
                {"compute.npy": array([1, 2]).replace(b"(2,), }         ", b"(9000000000,), }")}
            ),
            r"compute: an array of \(9000000000,\) in \d+ bytes",
        ),
        (lambda held: held.pop("rows.npy"), "rows is missing"),
        (lambda held: held.update({"rows.npy": b"\x93NUMPY\x03\x00" + bytes(99)}), "version 1.0"),
        (lambda held: held.update({"rows.npy": b"PK"}), "no workload"),
    ],
)
def test_workload_takes_no_more_than_its_file_allows(
    tmp_path: Path, change: Callable[[dict[str, bytes]], object], words: str
) -> None:
    path = tmp_path / "a.npz"
    workload(path, lambda held: None)
    tb.sm.load_workload(path)
    workload(path, change)
    with pytest.raises(ValueError, match=rf"a\.npz: no workload: .*{words}|{words}"):
        tb.sm.load_workload(path)


def test_workload_with_a_huge_dictionary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    workload(path, lambda held: None)
    content = bytearray(path.read_bytes())
    name, extra = struct.unpack_from("<HH", content, 26)
    struct.pack_into("<I", content, 30 + name + extra + 5, 2**32 - 1)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npz: no workload: name\.npy: unpacking takes 42949"):
        tb.sm.load_workload(path)


HEADER = b'{"tbsched_characterization":2,"device":{"name":"G","sms":4}}\n'
SAME = {"start": 1, "end": 2, "smid": 0, "slot": 0, "result": 5}
PACKED = "eJwDAAAAAAE="  # of nothing
RUN = ["fp32.fma", "write-read", 1, 1, 2, "one SM", 1, 0, 6, True, 1, SAME, PACKED]


def runs(path: Path, rest: bytes, pack: Callable[[bytes], bytes] = bytes) -> Path:
    path.write_bytes(pack(HEADER + rest))
    return path


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (10, 10**9, "run.recorded: 1000000000 is outside"),
        (10, -1, "run.recorded"),
        (6, 10**9, "run.warps"),
        (8, "6", "run.instructions: an integer"),
        (9, 1, "run.as_predicted"),
        (0, None, "opcode"),
        (1, [], r"mode: \[\] is none of write-read"),
        (11, {**SAME, "start": 2**64}, "same.start"),
        (11, {"start": 1}, "columns: 0 bytes"),
        (11, {"begin": 1}, "begin"),
        (11, None, "same: an object"),
        (12, 3, "columns: text"),
        (12, "!", "base64"),
        (12, "AAAA", "columns"),
    ],
)
def test_line_of_a_run_is_checked(tmp_path: Path, place: int, value: object, words: str) -> None:
    path = tmp_path / "a.jsonl"
    assert len(load_runs(runs(path, json.dumps(RUN).encode()))[1]) == 1
    row = [*RUN[:place], value, *RUN[place + 1 :]]
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 2: .*{words}"):
        load_runs(runs(path, json.dumps(row).encode()))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b'{"tbsched_characterization":2}', "device is missing"),
        (b'{"tbsched_characterization":2,"device":3}', "device: an object is needed"),
        (b'{"tbsched_characterization":1,"device":{}}', "another version of tbsched"),
        (b'{"tbsched_characterization":2,"device":{}}', "device has no 'name'"),
    ],
)
def test_header_of_runs_is_checked(tmp_path: Path, header: bytes, words: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(header + b"\n")
    with pytest.raises(ValueError, match=rf"a\.jsonl.*{words}"):
        tb.sm.load_characterization(tmp_path / "a.jsonl")


def test_runs_take_no_more_than_their_file_allows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for rest, words in [
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "a list of 13 values"),
        (b"3", "a list of 13 values"),
    ]:
        with pytest.raises(ValueError, match=rf"a\.jsonl, line 2: .*{words}"):
            load_runs(runs(path, rest))
    many = json.dumps([*RUN[:10], 100_000, *RUN[11:]]).encode() + b"\n"
    with pytest.raises(ValueError, match=r"line 12: 1100000 warps in .* are more than are read"):
        load_runs(runs(path, many * 20))
    blanks = runs(
        tmp_path / "b.jsonl.xz",
        b" " * unpacking.MAX_BYTES,
        lambda data: lzma.compress(data, preset=0),
    )
    with pytest.raises(ValueError, match="unpack to more than"):
        load_runs(blanks)
