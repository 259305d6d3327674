"""Pages, tables, JSON and traces of programs whose names would do harm: no reader obeys them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tbsched as tb

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066"
HOSTILE = f"=HYPERLINK(\"x\")</script></style><script>alert('1')</script>{ESCAPES}\nsafe"
EVENTS = [
    {
        "ph": "X", "cat": category, "name": f"{HOSTILE} {number}", "pid": f"{HOSTILE}", "tid": 7,
        "ts": 10 * number + ts, "dur": 5,
        "args": {
            "device": 0, "stream": 7, "correlation": number, "grid": [200, 1, 1],
            "block": [1024, 1, 1], "registers per thread": 32, "shared memory": 0,
        },
    }
    for number in range(1, 4)
    for category, ts in (("cpu_op", 0), ("cuda_runtime", 1), ("kernel", 6))
]  # fmt: skip
PROFILE = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": EVENTS}
SEQUENCE = [
    {"launch": {"blocks": 200, "threads": 1024, "registers": 32, "name": f"{HOSTILE} {number}"}}
    for number in range(2)
]


class Scripts(HTMLParser):
    """Counts elements that a page has of its own, and collects what is in scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tbsched", *arguments],
        capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert not obeyed(done.stdout + done.stderr)
    return done.stdout


def obeyed(text: str) -> set[str]:
    return {c for c in text.replace("\n", "") if not c.isprintable()}


def check_page(path: Path) -> None:
    page = path.read_text("utf-8")
    assert not obeyed(page)
    assert not any("alert(" in script for script in Scripts(page).scripts)


def check_table(path: Path) -> None:
    with open(path, encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert any("HYPERLINK" in cell for cell in cells)
    assert not any(cell.startswith("=") for cell in cells)


def check_trace(path: Path) -> None:
    schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

    def texts(content: bytes) -> Iterator[str]:
        for packet in schema.Trace.FromString(content).packet:
            if packet.compressed_packets:
                yield from texts(zlib.decompress(packet.compressed_packets))
            else:
                yield str(packet)  # control characters as octal escapes of UTF-8

    text = "".join(texts(path.read_bytes()))
    assert "HYPERLINK" in text
    for escape in (r"\033", r"\007", r"\302\233", r"\342\200\256", r"\342\201\246"):
        assert escape not in text


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("profile.json").write_text(json.dumps(PROFILE))
    Path("sequence.json").write_text(json.dumps(SEQUENCE))


def test_explain() -> None:
    given = ("explain", "profile.json", "--account")
    run(*given, "--html", "page.html", "--perfetto", "trace.pftrace")
    check_page(Path("page.html"))
    check_trace(Path("trace.pftrace"))
    assert "HYPERLINK" in json.dumps(json.loads(run(*given, "--json")))


def test_coresident() -> None:
    assert json.loads(run("coresident", "sequence.json", "-d", "h200", "--json"))
    found = tb.coresident([tb.Launch(**event["launch"]) for event in SEQUENCE], "h200")
    assert found.safe is False
    tb.show.to_html(found, "page.html")
    check_page(Path("page.html"))


def test_predict() -> None:
    run("predict", "sequence.json", "-d", "h200")
    assert json.loads(run("predict", "sequence.json", "-d", "h200", "--json"))
    run("predict", "sequence.json", "-d", "h200", "-o", "run.jsonl")
    run("show", "run.jsonl", "-o", "page.html")
    run("show", "run.jsonl", "-o", "table.csv")
    check_page(Path("page.html"))
    program = tb.Sequence([tb.Launch(**event["launch"], duration=1e-5) for event in SEQUENCE])
    trace = tb.predict(program, "h200")
    tb.show.to_perfetto(trace, "trace.pftrace")
    check_trace(Path("trace.pftrace"))
    tb.show.to_csv(program, "names.csv")
    check_table(Path("names.csv"))
