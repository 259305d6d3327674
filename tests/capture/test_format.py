"""Capture files that are damaged, of a later version, or of any other content."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tbsched as tb
from helpers import ROOT
from tbsched.importers import capture
from tbsched.importers.reading.selection import EVERYTHING

LINES = [
    {"tbsched_capture": 1, "started_ns": 5, "process": 7, "cupti": 130001, "connections": 32},
    {"device": 0, "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "sms": 132},
    {"context": 1, "device": 0, "null_stream": 7},
    {"context": 2, "device": 0, "null_stream": 7, "green": True, "parent": 1, "sms": 16},
    {"stream": 13, "context": 1, "kind": "non_blocking", "priority": -1},
    {"function": 0, "name": "cudaLaunchKernel_v7000"},
    {"function": 1, "name": "cudaGraphLaunch_v10000"},
    {"kernel": 0, "name": "add", "grid": [66, 1, 1], "block": [64, 2, 1], "registers": 32,
     "static_shared_memory": 0, "dynamic_shared_memory": 512, "local_memory": 8,
     "cluster": [2, 1, 1], "carveout": 50, "cooperative": False},
    {"call": 1, "of": 0, "thread": 0, "at": [0, 500]},
    {"ran": 0, "call": 1, "at": [2000, 3000], "context": 1, "stream": 13, "channel": 1,
     "configured": 32768},
    {"call": 2, "of": 1, "thread": 0, "at": [1000, 1500]},
    {"graph_launch": 2, "executable": 3, "context": 1, "stream": 13},
    {"node": 11, "clone_of": 1},
    {"edge": [12, 11]},
    {"ran": 0, "call": 2, "at": [4000, 5000], "context": 1, "stream": 13, "node": 11, "graph": 3},
    {"ran": 0, "call": 2, "at": [6000, 7000], "context": 1, "stream": 13, "node": 12, "graph": 3},
    {"copy": "h2d", "bytes": 64, "from": "pinned", "to": "device", "async": True, "call": 9,
     "at": [10, 20], "context": 1, "stream": 13},
    {"memset": 64, "to": "device", "async": True, "call": 10, "at": [10, 20], "context": 2,
     "stream": 7},
    {"attributes": 1, "programmatic": True, "priority": -2},
    {"loading": "function", "call": 1, "at": [0, 400]},
    {"overhead": "resource", "at": [100, 300]},
    {"event": 5, "call": 3, "context": 1, "stream": 13},
    {"wait": "stream_wait_event", "call": 4, "at": [0, 1], "context": 1, "stream": 13, "event": 5},
    {"lost": 2},
    {"end": 9000, "launches": 3, "unfinished": 1},
]  # fmt: skip
TEXT = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in LINES).encode()


def load(place: Path, content: bytes) -> tb.Program:
    place.write_bytes(content)
    return tb.load_program(place, fit=False)


def test_everything_is_read(tmp_path: Path) -> None:
    program = load(tmp_path / "run.jsonl", TEXT)
    assert len(program.sequence.launches) == 3
    assert program.format == capture.NAME
    assert program.connections == 32
    first = program.sequence.launches[0]
    assert (first.programmatic, first.priority, first.first_use) == (True, -2, True)
    (graph,) = [event for event in program.sequence if isinstance(event, tb.GraphLaunch)]
    assert tuple(graph.graph.edges) == ((0, 1),)


def test_file_that_the_page_shows_loads(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "capture-format.md").read_text("utf-8")
    (example,) = re.findall(r"(?ms)^```json\n(.*?)^```$", page)
    program = load(tmp_path / "run.jsonl", example.encode())
    assert program.measured["start_ns"].tolist() == [104_658, 130_926]
    keys = set(re.findall(r"`(\w+)`", page))
    assert {key for line in LINES for key in line} <= keys


def test_packed_file_is_read(tmp_path: Path) -> None:
    assert len(load(tmp_path / "run.jsonl.gz", gzip.compress(TEXT)).sequence.launches) == 3


def test_last_line_may_be_cut_anywhere(tmp_path: Path) -> None:
    kept = TEXT[: -len(TEXT.splitlines()[-1]) - 1]
    for cut in (1, 9, 20):
        program = load(tmp_path / "run.jsonl", kept + TEXT.splitlines()[-1][:cut])
        assert len(program.sequence.launches) == 3
        assert any(sentence.startswith("The end:") for sentence in program.assumed)


def test_waits_that_become_edges_of_graphs_are_none_of_the_program(tmp_path: Path) -> None:
    calls = [
        {"function": 2, "name": "cudaStreamWaitEvent_v3020"},
        {"function": 3, "name": "cudaStreamBeginCapture_v10000"},
        {"function": 4, "name": "cudaStreamEndCapture_v10000"},
        {"call": 4, "of": 2, "thread": 0, "at": [7000, 7100]},
        {"call": 20, "of": 3, "thread": 0, "at": [7500, 7600]},
        {"call": 21, "of": 2, "thread": 0, "at": [8000, 8100]},
        {"wait": "stream_wait_event", "call": 21, "at": [8000, 8100], "context": 1, "stream": 13,
         "event": 5},
        {"call": 22, "of": 4, "thread": 0, "at": [8500, 8600]},
    ]  # fmt: skip
    program = load(tmp_path / "run.jsonl", TEXT + b"\n".join(json.dumps(x).encode() for x in calls))
    assert len([event for event in program.sequence if isinstance(event, tb.WaitEvent)]) == 1


def test_a_wait_for_another_gpu_is_none_of_the_predicted_one(tmp_path: Path) -> None:
    for gpu, waits in ((0, 1), (1, 0)):
        more = [
            {"function": 2, "name": "cudaDeviceSynchronize_v3020"},
            {"call": 20, "of": 2, "thread": 0, "at": [7000, 8000]},
            {"wait": "context", "call": 20, "at": [7100, 7900], "context": 3},
            {"context": 3, "device": gpu, "null_stream": 7},
        ]  # fmt: skip
        content = TEXT + b"\n".join(json.dumps(x).encode() for x in more)
        program = load(tmp_path / "run.jsonl", content)
        assert sum(isinstance(event, tb.Synchronize) for event in program.sequence) == waits


def test_bodies_of_conditional_nodes_belong_to_the_last_launch_of_their_graph(
    tmp_path: Path,
) -> None:
    """CUPTI has no call for them: as in a recording of an H200, but for other numbers."""

    def body(at: int) -> dict[str, object]:
        return {"ran": 0, "call": 0, "at": [at, at + 500], "context": 1, "stream": 14, "node": 15,
                "graph": 3}  # fmt: skip

    again = [
        {"call": 30, "of": 1, "thread": 0, "at": [5500, 6500]},
        {"graph_launch": 30, "executable": 3, "context": 1, "stream": 13},
        {"ran": 0, "call": 30, "at": [24_000, 25_000], "context": 1, "stream": 13, "node": 11,
         "graph": 3},
    ]  # fmt: skip
    more = [body(12_000), body(16_000), body(20_000), *again, body(29_000)]
    program = load(tmp_path / "run.jsonl", TEXT + b"\n".join(json.dumps(x).encode() for x in more))
    graphs = [event.graph for event in program.sequence if isinstance(event, tb.GraphLaunch)]
    assert [len(graph.nodes) for graph in graphs] == [5, 2]
    assert {*graphs[0].edges} == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert graphs[1].edges == ((0, 1),)
    (sentence,) = [each for each in program.assumed if "conditional" in each]
    assert "of 2 launches: assumed the last one of that graph" in sentence


@pytest.mark.parametrize(("nodes", "said"), [(5, "3 nodes"), (3, "1 nodes"), (0, "1 nodes")])
def test_nodes_without_records_are_said(tmp_path: Path, nodes: int, said: str) -> None:
    """The nodes 0 and 2 of the graph ran; an older capture does not list them."""
    first = 3 << 32
    text = TEXT.replace(b'"node":11,"g', f'"node":{first},"g'.encode())
    text = text.replace(b'"node":12,"g', f'"node":{first + 2},"g'.encode())
    for number in range(nodes):
        text += b'{"node":%d,"clone_of":%d}\n' % (first + number, number)
    found = [each for each in load(tmp_path / "run.jsonl", text).assumed if "no records" in each]
    assert [each.partition(" of graphs")[0] for each in found] == [f"What {said}"]


def test_nodes_that_all_have_records_are_not_said(tmp_path: Path) -> None:
    assert not any("no records" in each for each in load(tmp_path / "run.jsonl", TEXT).assumed)


def test_lines_of_kinds_that_come_later_are_passed_over(tmp_path: Path) -> None:
    assert load(tmp_path / "run.jsonl", TEXT + b'{"new":1}\n').sequence.launches


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('{"tbsched_capture":1', '{"tbsched_capture":2', "line 1: a capture of version 2"),
        ('"lost":2', '"lost":-2', "line 24: lost: a number from 0 is needed, got -2"),
        ('"ran":0,"call":1,', '"ran":3,"call":1,', "line 10: ran: 3 has no line of its own before"),
        ('"at":[2000,3000]', '"at":[3000,2000]', "line 10: at: two times in ns"),
        ('"kernel":0', '"kernel":1', "line 8: kernel: 0 comes next, got 1"),
        ('"grid":[66,1,1]', '"grid":[66,0,1]', r"line 8: grid: three numbers from 1"),
        ('"grid":[66,1,1]', f'"grid":[66,1,1{"0" * 400}]', r"line 8: grid: three numbers from 1"),
        ('"9.0","sms":132', '"9.0","sms":65537', "line 2: sms: a number from 0 to 65536 is needed"),
        ('{"lost":2}', '{"lost":2', "line 24: not JSON"),
        ('{"lost":2}', "[1]", "line 24: an object is needed"),
        ('"edge":[12,11]', '"edge":[12]', "line 14: edge: two nodes are needed"),
        ('"of":1', '"of":"a"', "line 11: of: a number from 0 is needed, got 'a'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    assert TEXT.count(old.encode()) == 1
    with pytest.raises(ValueError, match=f"run.jsonl: {why}"):
        load(tmp_path / "run.jsonl", TEXT.replace(old.encode(), new.encode()))


@given(st.data())
def test_no_damage_is_more_than_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    damaged = bytearray(TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        length = data.draw(st.integers(0, 6))
        damaged[at : at + length] = data.draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"-1", b"1e9", b"null", b'"', b"[]"]))
        )
    place.write_bytes(damaged)
    with contextlib.suppress(ValueError):
        capture.read(place, EVERYTHING)


@given(st.data())
def test_no_wrong_value_is_more_than_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = tmp_path_factory.getbasetemp() / "wrong.jsonl"
    lines = [dict(line) for line in LINES]
    line = data.draw(st.sampled_from(lines))
    key = data.draw(st.sampled_from(sorted(line)))
    line[key] = data.draw(st.sampled_from([None, True, -1, 2**63, 10**400, 1.5, "x", [], {}, [0]]))
    place.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with contextlib.suppress(ValueError):
        tb.load_program(place, fit=False)
