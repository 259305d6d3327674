"""Whatever is in a file: load_program reads it, or says in one line what is wrong with it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from importers.test_kineto import PROFILES
from importers.written import call, entry, kernel, kineto, log, move, nsys, rows, sync


def refused(place: Path) -> str:
    """What is said of a file that is refused."""
    said = refusal(place)
    assert said is not None
    assert "\n" not in said
    assert len(said) < 1000
    return said


def refusal(place: Path) -> str | None:
    """What is said of a file; None if it is read."""
    try:
        program = tb.load_program(place, fit=False)
    except ValueError as error:
        return str(error)
    assert len(str(program)) < 20_000
    assert len(program.host) == len(program.sequence)
    assert len(program.measured) == len(program.sequence.launches)
    return None


def whole(tmp_path: Path, name: str = "trace.json") -> Path:
    return kineto(tmp_path / name, call(1, 1, 1), kernel(1, 3, 5))


def test_event_that_cannot_be_is_named_where_a_part_is_selected(tmp_path: Path) -> None:
    place = kineto(tmp_path / "trace.json", call(1, 1, 1), kernel(1, "now", 5))  # type: ignore[arg-type]
    words = r"trace\.json: traceEvents\[1\]: ts: microseconds are needed, got 'now'$"
    with pytest.raises(ValueError, match=words):
        tb.load_program(place, start=0.0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty; was it written and copied to its end?; known are: "),
        (b"\x00\xff\x7fELF" * 99, "of no known format"),
        (b"[1, 2, 3]", "of no known format"),
        (b'{"a": 1}', "of no known format"),
        (b'{"traceEvents": []}', "no kernels that ran on a GPU; was the profiler told to record"),
        (b'{"traceEvents": 3}', "no kernels"),
        (b'{"traceEvents": [3, null, "x", {}]}', "no kernels"),
        (b'{"traceEvents": [' + b"[" * 100_000, "not whole JSON"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel"}]}', "traceEvents[0]: kernel: args are"),
        (b'{"traceEvents": [}', "not whole JSON, near byte 17"),
        (b'{"scenario_name": 3}', 'a log with a list "times" is needed'),
        (b'{"scenario_name": "s", "times": ' + b"[" * 100_000, "not whole JSON"),
        (b"SQLite format 3\0", "cannot be read as an SQLite database"),
        (b"SQLite format 3\0" + bytes(5000), "cannot be read as an SQLite database"),
        (b'{"tbsched_trace":1}\n', "line 1"),
        (b"\x1f\x8b" + bytes(50), "of no known format"),
    ],
)  # fmt: skip
def test_what_is_no_profile_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    place = tmp_path / "trace.json"
    place.write_bytes(content)
    said = refused(place)
    assert words in said
    assert "trace.json" in said


def test_profile_is_no_trace_file() -> None:
    words = "a trace file begins with a header, .* tbsched explain read profiles"
    with pytest.raises(ValueError, match=f"transformer.json.gz, line 2: .*; {words}"):
        tb.load_traces(PROFILES / "transformer.json.gz")


def test_missing_key_of_a_trace_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tbsched_trace":1,"device":{"name":"G"}}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1: 'sms' is missing"):
        tb.load_traces(tmp_path / "a.jsonl")


def test_cut_and_damaged_packing_is_refused(tmp_path: Path) -> None:
    packed = (PROFILES / "transformer.json.gz").read_bytes()
    place = tmp_path / "cut.json.gz"
    place.write_bytes(packed[: len(packed) // 2])
    assert "cut.json.gz: damaged near byte" in refused(place)
    place.write_bytes(packed[:3000] + bytes(9) + packed[3009:])
    refused(place)
    text = gzip.decompress(packed)
    place.write_bytes(gzip.compress(text[: len(text) // 2]))
    assert "was the file written and copied to its end?" in refused(place)


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_what_comes_after_a_profile_is_refused(
    tmp_path: Path, packing: Callable[[bytes], bytes], is_list: bool
) -> None:
    place = whole(tmp_path)
    text = place.read_bytes()
    if is_list:
        text = json.dumps(json.loads(text)["traceEvents"]).encode()
    place.write_bytes(packing(text + b" \r\n\n"))
    assert refusal(place) is None
    for more in (text, b"\n" + text, b"}", b"]", b",", b"garbage", bytes(3), b" " * 2**21 + b"x"):
        place.write_bytes(packing(text + more))
        said = refused(place)
        assert "comes after its end; are two files joined in this one?" in said
        assert said.startswith(f"{place}: not whole JSON, near byte ")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "a folder, of which no file is known; name the file itself" in refused(tmp_path)
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert "cannot be read" in refused(loop)
    os.mkfifo(tmp_path / "fifo.json")
    assert "is a FIFO, not a regular file" in refused(tmp_path / "fifo.json")
    with pytest.raises(FileNotFoundError):
        tb.load_program(tmp_path / "none.json")
    with pytest.raises(TypeError, match="path: a string or a path is needed"):
        tb.load_program(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("use", [tb.load_program, tb.hang])
def test_a_pipe_is_refused_with_what_to_do(tmp_path: Path, use: Callable[[Path], object]) -> None:
    reading, writing = os.pipe()
    os.write(writing, whole(tmp_path).read_bytes())
    os.close(writing)
    with pytest.raises(ValueError, match=r"is a pipe, not a regular file; write .* to a file"):
        use(Path(f"/dev/fd/{reading}"))
    os.close(reading)


@pytest.mark.parametrize(
    ("changes", "args", "words"),
    [
        ({"ts": -(10**18)}, {}, "ts: -1000000000000000000 is outside -46"),
        ({"dur": -1}, {}, "dur: -1 is outside 0"),
        ({"ts": 1e300}, {}, "ts: Decimal('1E+300') is outside"),
        ({"ts": "now"}, {}, "ts: microseconds are needed, got 'now'"),
        ({"ts": True}, {}, "ts: microseconds are needed"),
        ({"dur": None}, {}, "dur: microseconds are needed"),
        ({"name": 3}, {}, "kernel: a name is needed, got 3"),
        ({"args": []}, {}, "kernel: args are missing"),
        ({}, {"grid": [1, 2]}, "args.grid: three numbers from 1 are needed"),
        ({}, {"grid": [2**31, 1, 1]}, "Launch.blocks: 2147483648 is outside"),
        ({}, {"grid": [10**18] * 3}, "Launch.blocks"),
        ({}, {"grid": [132, 10**400, 1]}, "traceEvents[1]: args.grid: [132, 100"),
        ({}, {"block": [1025, 1, 1]}, "Launch.threads: 1025 is outside 1..1024"),
        ({}, {"block": [0, 1, 1]}, "args.block"),
        ({}, {"stream": "7"}, "args.stream: a number from 0 is needed, got '7'"),
        ({}, {"stream": -1}, "args.stream"),
        ({}, {"correlation": None}, "args.correlation"),
        ({}, {"registers per thread": 3.5}, "args.registers per thread"),
        ({}, {"registers per thread": 256}, "Launch.registers: 256"),
        ({}, {"shared memory": 2**40}, "Launch.shared_memory"),
        ({}, {"priority": -(2**40)}, "Launch.priority"),
        ({}, {"channel": 2**40}, "channel: numbers up to 2147483647 are needed"),
    ],
)
def test_event_that_cannot_be_is_named(
    tmp_path: Path, changes: dict[str, object], args: dict[str, object], words: str
) -> None:
    event = {**kernel(1, 3, 5, **args), **changes}
    said = refused(kineto(tmp_path / "trace.json", call(1, 1, 1), event))
    assert words in said
    assert "trace.json" in said


def test_hostile_words_are_shown_and_harm_nothing(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>[red]\x1b[2J\u202e" + "x" * 100_000
    program = tb.load_program(
        kineto(tmp_path / "t.json", call(1, 1, 1), kernel(1, 3, 5, name=name))
    )
    assert program.sequence.launches[0].name == name
    assert "<script>" not in program._repr_html_()
    assert "\x1b" not in str(program)
    assert len(str(program)) < 3000


def test_more_threads_than_a_program_can_have_are_refused(tmp_path: Path) -> None:
    events = [x for n in range(1030) for x in (call(n, n, 1, tid=n), kernel(n, 9000 + 9 * n, 5))]
    assert "host: 1024 is outside 0..1023" in refused(kineto(tmp_path / "t.json", *events))


def small(tmp_path: Path, kind: str) -> Path:
    if kind == "kineto":
        waits = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 3}
        return kineto(
            tmp_path / "a.json", call(1, 1, 1), kernel(1, 3, 5), call(2, 5, 1, "cudaMemsetAsync"),
            move(2, 9, 1, 13), call(3, 7, 1, "cudaEventRecord"),
            call(4, 9, 1, "cudaStreamWaitEvent"), sync(4, "Stream Wait Event", 13, **waits),
            call(5, 11, 1, "cudaGraphLaunch"), kernel(5, 14, 1, 13), kernel(5, 16, 1, 13),
        )  # fmt: skip
    if kind == "packed":
        return whole(tmp_path, "a.json.gz")
    if kind == "nsys":
        return nsys(tmp_path / "a.sqlite", rows())
    if kind == "examiner":
        return log(tmp_path / "a.json", entry(1.0, 1.5, 1.25))
    tb.save_traces(tmp_path / "a.jsonl", [tb.predict(
        tb.Sequence([tb.Launch(2, 64, 32, duration=1e-3)]), "xavier", host=0.0)])  # fmt: skip
    return tmp_path / "a.jsonl"


KINDS = ("kineto", "packed", "nsys", "examiner", "trace")
BYTES = st.one_of(st.integers(0, 255), st.sampled_from(b'{}[]",:-0129eE.\\ntu\n'))


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    tmp_path = tmp_path_factory.mktemp(kind)
    place = small(tmp_path, kind)
    content = place.read_bytes()
    tb.load_program(place)
    # Most bytes of a database are empty.
    used = [place for place, byte in enumerate(content) if byte]

    @settings(max_examples=examples(150))
    @given(st.lists(st.tuples(st.sampled_from(used), BYTES), min_size=1, max_size=6), st.booleans())
    def read(changes: list[tuple[int, int]], cut: bool) -> None:
        changed = bytearray(content)
        for position, byte in changes:
            changed[position] = byte
        place.write_bytes(changed[: changes[0][0]] if cut else changed)
        load_or_refuse(place)

    read()


KEYS = st.text(max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("kind", ["kineto", "examiner"])
def test_any_value_in_any_place_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    place = small(tmp_path_factory.mktemp(kind), kind)
    text = place.read_text("utf-8")
    count = sum(1 for _ in places(json.loads(text)))

    @settings(max_examples=examples(200))
    @given(st.integers(0, count - 1), JSON)
    def read(number: int, value: object) -> None:
        document = json.loads(text)
        set_at = [*places(document)][number]
        set_at(value)
        place.write_text(json.dumps(document), "utf-8", "surrogatepass")
        load_or_refuse(place)

    read()


def places(document: object) -> list[Callable[[object], None]]:
    """A function for each value within a document, which puts another there."""
    found: list[Callable[[object], None]] = []
    keys = document.keys() if isinstance(document, dict) else ()
    if isinstance(document, list):
        keys = range(len(document))  # type: ignore[assignment]
    for key in keys:
        found.append(lambda value, key=key: document.__setitem__(key, value))  # type: ignore[misc, attr-defined]
        found += places(document[key])  # type: ignore[index]
    return found


def load_or_refuse(place: Path) -> None:
    said = refusal(place) or ""
    assert "\n" not in said
    assert len(said) < 1000
