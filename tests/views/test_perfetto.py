"""Files for Perfetto say what they should, read with the classes of its own package."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT, gpu, launch
from profiled import profiled
from tbsched.views.layout.names import label

SCHEMA = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


@dataclass
class Slice:
    """What is on a track from one packet to another, by its names."""

    track: int
    name: str
    begin: int
    end: int
    arguments: dict[str, Any]
    flows: list[int]
    ended_flows: list[int]


@dataclass
class File:
    """What Perfetto sees in a file: tracks by number, slices, instants and counters."""

    paths: dict[int, str] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    about: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)

    def under(self, group: str) -> list[Slice]:
        return [each for each in self.slices if f"/{group}/" in self.paths[each.track]]


def packets_of(content: bytes) -> Iterator[Any]:
    for packet in SCHEMA.Trace.FromString(content).packet:
        if packet.compressed_packets:
            yield from packets_of(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


def read(path: Path) -> File:
    """The file, with packets of one time in their order, as Perfetto sorts them."""
    packets = list(packets_of(path.read_bytes()))
    found, names, words, arguments = File(), {}, {}, {}
    for packet in packets:
        data = packet.interned_data
        names |= {row.iid: row.name for row in data.event_names}
        words |= {row.iid: row.str.decode() for row in data.debug_annotation_string_values}
        arguments |= {row.iid: row.name for row in data.debug_annotation_names}
        track = packet.track_descriptor
        if track.uuid:
            assert track.uuid not in found.paths
            parent = found.paths[track.parent_uuid] if track.parent_uuid else ""
            found.paths[track.uuid] = f"{parent}/{track.name or track.process.process_name}"
            found.ranks[found.paths[track.uuid]] = track.sibling_order_rank
            found.about[track.name or "gpu"] = track.description
    opened: dict[int, list[Slice]] = defaultdict(list)
    flowing: set[int] = set()
    kinds = SCHEMA.TrackEvent
    for packet in sorted(packets, key=lambda packet: packet.timestamp):
        if not packet.HasField("track_event"):
            continue
        event, time = packet.track_event, packet.timestamp
        values = {
            arguments[row.name_iid]: words[row.string_value_iid] if row.string_value_iid
            else row.uint_value
            for row in event.debug_annotations
        }  # fmt: skip
        ends = list(event.flow_ids), list(event.terminating_flow_ids)
        name = names.get(event.name_iid, "")
        seen = Slice(event.track_uuid, name, time, time, values, *ends)
        flowing.update(seen.flows)
        assert flowing.issuperset(seen.ended_flows), "a flow ends before it begins"
        if event.type == kinds.TYPE_SLICE_BEGIN:
            assert not opened[event.track_uuid], "slices of a track overlap"
            opened[event.track_uuid].append(seen)
        elif event.type == kinds.TYPE_SLICE_END:
            begun = opened[event.track_uuid].pop()
            assert begun.begin < time
            begun.end = time
            found.slices.append(begun)
        elif event.type == kinds.TYPE_INSTANT:
            found.instants.append(seen)
        else:
            assert event.type == kinds.TYPE_COUNTER
            found.counters[found.paths[event.track_uuid]].append((time, event.counter_value))
    assert not any(opened.values())
    return found


PROGRAM = tb.Sequence(
    [
        launch(40, 8, 32, stream=0, duration=1e-5, name="gemm"),
        launch(7, 4, 32, stream=0, duration=2e-6),
        launch(300, 4, 32, stream=1, duration=tb.Drawn("uniform", 1e-5, 5e-6, 1), name="norm"),
        launch(9, 8, 32, duration=0.0, name="nothing"),
    ]
)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[tb.Trace, File]:
    trace = tb.predict(PROGRAM, gpu(6), launch_interval=1e-6)
    path = tmp_path_factory.mktemp("perfetto") / "timed.pftrace"
    tb.show.to_perfetto(trace, path)
    return trace, read(path)


def names_of(trace: tb.Trace) -> list[str]:
    return [label(launch) for launch in trace.sequence.launches]


def test_sms_are_in_their_order(timed: tuple[tb.Trace, File]) -> None:
    _, file = timed
    ranks = {path: rank for path, rank in file.ranks.items() if "SMs/SM " in path}
    assert [path.rpartition(" ")[2] for path in sorted(ranks, key=ranks.__getitem__)] == list(
        "012345"
    )


def test_every_block_is_in_a_slice_of_its_sm(timed: tuple[tb.Trace, File]) -> None:
    trace, file = timed
    rows = trace.timeline
    expected = defaultdict(set)
    for number, block, sm, start, end in rows.tolist():
        expected[f"SM {sm}", number, start, max(end, start + 1)].add(block)
    names = names_of(trace)
    assert names == ["gemm", "7 x 128, 32 regs, stream 0, 2 us", "norm", "nothing"]
    found = file.under("SMs")
    assert len(found) == len(expected) < len(rows)
    for each in found:
        sm = file.paths[each.track].rpartition("/")[2]
        own = each.arguments
        blocks = expected[sm, own["launch"], each.begin, each.end]
        assert (own["first_block"], own["last_block"]) == (min(blocks), max(blocks))
        count = len(blocks)
        assert own["blocks"] == count
        assert each.name == names[own["launch"]] + (f" x{count}" if count > 1 else "")
        assert own["waited_for"] == (trace[own["launch"]].limiter or "nothing")


def test_flow_leads_from_each_launch_to_its_first_block(timed: tuple[tb.Trace, File]) -> None:
    trace, file = timed
    begun = {each.flows[0]: each for each in file.instants}
    ended = {each.ended_flows[0]: each for each in file.slices if each.ended_flows}
    assert len(begun) == len(ended) == len(trace) == len(file.instants)
    assert begun.keys() == ended.keys()
    for flow, instant in begun.items():
        block = ended[flow].arguments
        number = instant.arguments["launch"]
        assert instant.name.startswith("launch ")
        assert instant.begin == 1000 * number
        assert (block["launch"], block["first_block"]) == (number, 0)


def test_counters_are_the_blocks_that_are_resident(timed: tuple[tb.Trace, File]) -> None:
    trace, file = timed
    rows = trace.timeline
    start, end = rows["start_ns"], np.maximum(rows["end_ns"], rows["start_ns"] + 1)
    seen = 0
    for path, values in file.counters.items():
        sm = path.rpartition("SM ")[2]
        own = rows["sm"] == int(sm) if sm.isdigit() else np.ones(len(rows), np.bool_)
        times = [time for time, _ in values]
        assert times == sorted(set(times))
        for time, value in values:
            assert value == np.count_nonzero(own & (start <= time) & (end > time))
        seen += int(sm.isdigit())
        assert values[-1][1] == 0
    assert (seen, len(file.counters)) == (6, 7)


def test_streams_show_runs_and_the_causes_of_waits(timed: tuple[tb.Trace, File]) -> None:
    trace, file = timed
    runs = {each.arguments["launch"]: each for each in file.under("streams")}
    for number, placement in enumerate(trace):
        assert placement.start_ns is not None
        assert runs[number].begin == placement.start_ns.min()
        assert file.paths[runs[number].track].endswith(["/stream 0", "/stream 1", "/own streams"][
            {0: 0, 1: 0, 2: 1, 3: 2}[number]
        ])  # fmt: skip
    waits = file.under("streams: waits")
    assert waits
    assert all(
        wait.arguments["kernel"] == names_of(trace)[wait.arguments["launch"]] for wait in waits
    )
    assert trace.waits is not None
    known = {(int(w["launch"]), str(w["cause"]), int(w["end_ns"])) for w in trace.waits}
    for wait in waits:
        own = wait.arguments
        assert (own["launch"], wait.name.removeprefix("waits: "), wait.end) in known
        assert own["launch"] != 1 or wait.begin >= runs[0].end
    assert any("behind_launch" in wait.arguments for wait in waits)


def test_ways_to_launch_are_shown_in_their_streams(tmp_path: Path) -> None:
    kernel = launch(4, duration=1e-5)
    graph = tb.Graph([kernel, kernel], edges=[(0, 1)])
    program = tb.Sequence(
        [
            launch(4, stream=0, duration=1e-4, trigger=5e-5),
            launch(4, stream=0, duration=1e-5, programmatic=True),
            graph.launch(1),
            graph.launch(1),
        ]
    )
    tb.show.to_perfetto(tb.predict(program, "h200"), tmp_path / "ways.pftrace")
    file = read(tmp_path / "ways.pftrace")
    runs = {each.arguments["launch"]: each for each in file.under("streams")}
    rows = [file.paths[runs[number].track].rpartition("/")[2] for number in range(6)]
    assert rows == ["stream 0"] * 2 + ["stream 1"] * 4
    assert "node of graph 1, after 4" in runs[5].arguments["asks_for"]
    waits = {(w.arguments["launch"], w.name): w for w in file.under("streams: waits")}
    assert waits[1, "waits: trigger"].begin < runs[0].end
    assert waits[3, "waits: node"].end == runs[3].begin
    assert waits[4, "waits: stream"].begin >= runs[3].end


def test_waits_name_the_copies_that_were_waited_for(tmp_path: Path) -> None:
    kernel = launch(4, duration=1e-5)
    nodes = [kernel, tb.Memset(8), tb.Copy(1 << 20, "d2h"), kernel]
    trace = tb.predict(tb.Sequence([tb.Graph(nodes, [(0, 1), (1, 2), (2, 3)]).launch()]), "h200")
    tb.show.to_perfetto(trace, tmp_path / "copies.pftrace")
    (wait,) = read(tmp_path / "copies.pftrace").under("streams: waits")
    assert wait.arguments["behind_node"] == "copy 1"
    assert "behind_launch" not in wait.arguments
    assert "<td>copy 1</td>" in trace._repr_html_()


HELD = tb.Sequence(
    [launch(20, 8, name="[a]"), launch(30, 8), launch(9, 8), tb.Release(0), tb.Release(1)]
)


def test_host_threads_show_their_calls(tmp_path: Path) -> None:
    spec = gpu(launch_call_ns=3000, event_call_ns=1000)
    events = [
        launch(1, duration=1e-4, stream=0, name="a"),
        tb.RecordEvent(0, 0),
        tb.Synchronize(),
        launch(1, duration=1e-4, stream=1, name="b", host=7),
        tb.Memset(64, stream=1, host=7),
        tb.Synchronize(stream=1, host=7),
    ]
    trace = tb.predict(tb.Sequence(events), spec, host=2e-6)
    tb.show.to_perfetto(trace, tmp_path / "hosts.pftrace")
    file = read(tmp_path / "hosts.pftrace")
    calls = {}
    for each in file.under("host threads"):
        thread = file.paths[each.track].rpartition("/")[2]
        calls.setdefault(thread, []).append((each.name, each.begin, each.end))
    # All times count from the first call, 2 us after the program began.
    assert calls == {
        "host thread 0": [
            ("launch a", 0, 3000), ("record event 0", 5000, 6000), ("synchronize", 8000, 100_000),
        ],
        "host thread 7": [
            ("launch b", 0, 3000), ("memset 0", 5000, 8000),
            ("synchronize stream 1", 10_000, 100_000),
        ],
    }  # fmt: skip
    assert trace.call_ns is not None
    assert trace.call_ns[0].tolist() == [2000, 5000]
    assert tb.predict(tb.Sequence(events), spec).call_ns is None


def test_few_of_many_waits_are_shown_at_once(tmp_path: Path) -> None:
    program = tb.Sequence([launch(duration=1e-6, warps=32)] * 200)
    tb.show.to_perfetto(tb.predict(program, gpu(2)), tmp_path / "many.pftrace")
    waits = read(tmp_path / "many.pftrace").under("streams: waits")
    assert len({each.track for each in waits}) == 64


def test_held_sequence_is_shown_by_its_events(tmp_path: Path) -> None:
    trace = tb.predict(HELD, gpu(6))
    tb.show.to_perfetto(trace, tmp_path / "held.pftrace")
    file = read(tmp_path / "held.pftrace")
    assert "no times: event n of the sequence is at second n" in file.about["gpu"]
    assert sum((p.smid < 0).sum() for p in trace) > 0
    assert sum((p.final_smid < 0).sum() for p in trace) == 0
    seen = 0
    for event in range(len(HELD)):
        rows = trace.residents(event + 1).rows
        second = (event + 0.5) * 1e9
        held: dict[tuple[int, int], int] = defaultdict(int)
        for number, sm, count in rows[["launch", "sm", "blocks"]].tolist():
            held[number, sm] += count
        for each in file.under("SMs"):
            if each.begin <= second < each.end:
                sm = int(file.paths[each.track].rpartition(" ")[2])
                held[each.arguments["launch"], sm] -= each.arguments["blocks"]
                seen += 1
        assert not any(held.values())
    assert seen
    waits = {each.arguments["launch"]: each for each in file.under("streams: waits")}
    assert {number: (each.begin, each.end) for number, each in waits.items()} == {
        1: (1 * 10**9, 3 * 10**9), 2: (2 * 10**9, 4 * 10**9),
    }  # fmt: skip
    assert [each.name for each in file.instants] == [
        "launch [a]", "launch 30 x 256, 16 regs", "launch 9 x 256, 16 regs",
        "release [a]", "release 30 x 256, 16 regs",
    ]  # fmt: skip


def test_of_an_observation_only_blocks_that_came_at_once_are_shown(tmp_path: Path) -> None:
    trace = tb.predict(HELD, gpu(6))
    bare = tuple(tb.Placement(p.smid, p.final_smid, p.limiter) for p in trace)
    path = tmp_path / "observed.pftrace"
    tb.show.to_perfetto(tb.Trace(HELD, trace.device, bare), path)
    file = read(path)
    shown = sum(each.arguments["blocks"] for each in file.under("SMs"))
    assert shown == sum(placement.placed for placement in trace)
    assert all(each.end - each.begin == 10**9 for each in file.under("streams: waits"))


def test_profile_is_shown_as_it_was_measured(tmp_path: Path) -> None:
    copy = tb.Copy(1 << 20, "h2d", duration=1e-4, stream=1)
    events = [launch(8, 8, 32, stream=1, duration=1e-4, name=name) for name in ("gemm", "relu")]
    program = profiled(tb.Sequence([copy, *events]), "h200")
    tb.show.to_perfetto(program, tmp_path / "out.pftrace")
    found = read(tmp_path / "out.pftrace")
    rows = program.measured
    begin = min(int(rows["call_ns"].min()), int(program.transfers["start_ns"].min()))
    for group, of in (("streams", "start_ns"), ("launch calls", "call_ns")):
        shown = sorted(found.under(group), key=lambda each: each.begin)
        assert [each.name for each in shown] == ["gemm", "relu"]
        assert [each.begin for each in shown] == (rows[of] - begin).tolist()
    (moved,) = (each for each in found.slices if each.name.startswith("copy"))
    assert moved.end - moved.begin == 100_000
    assert all(path.startswith("/measured: ") for path in found.paths.values())


def test_explanation_has_the_profile_its_prediction_and_the_gaps(tmp_path: Path) -> None:
    program = tb.load_program(ROOT / "tests/real/recordings/h200/cupy_connections-a.json.gz")
    explained = tb.explain(program, "h200")
    tb.show.to_perfetto(explained, tmp_path / "why.pftrace")
    found = read(tmp_path / "why.pftrace")
    assert {path.split("/")[1].partition(":")[0] for path in found.paths.values()} == {
        "NVIDIA H200, 132 SMs, policy hopper", "measured",
    }  # fmt: skip
    runs = defaultdict(list)
    for each in found.under("streams"):
        runs[found.paths[each.track].startswith("/measured")].append(each.begin)
    assert len(runs[True]) == len(runs[False]) == len(program.measured)
    assert min(runs[True]) == min(runs[False])
    gaps = [each for each in found.slices if "/gaps: " in found.paths[each.track]]
    assert len(gaps) == len(explained.gaps) > 0
    assert all(each.name and each.arguments["why"] for each in gaps)


def test_processes_are_on_one_clock(tmp_path: Path) -> None:
    program = tb.Sequence([tb.Launch(132, 1024, 32, duration=3e-3, name="gemm")])
    found = tb.predict_processes([program, program], "h200")
    tb.show.to_perfetto(found, tmp_path / "processes.pftrace")
    file = read(tmp_path / "processes.pftrace")
    turns = [each for each in file.slices if file.paths[each.track].startswith("/turns of 2 ")]
    shown = sorted((each.begin, each.end, each.name) for each in turns)
    assert shown == [
        (begin, end, f"process {process}") for process, begin, end in found.turns.tolist()
    ]
    for number, trace in enumerate(found.traces):
        runs = [
            each for each in file.under("streams")
            if file.paths[each.track].startswith(f"/process {number}: ")
        ]  # fmt: skip
        assert [(each.begin, each.end) for each in runs] == [
            (trace[0].start_ns.min(), trace[0].end_ns.max())
        ]
    flows = [flow for each in file.instants for flow in each.flows]
    assert len(set(flows)) == len(flows) == 2


def test_both_traces_of_a_comparison_are_shown(tmp_path: Path) -> None:
    a, b = (tb.predict(PROGRAM, gpu(6), policy) for policy in (None, "round_robin"))
    tb.show.to_perfetto(tb.compare(a, b), tmp_path / "both.pftrace")
    file = read(tmp_path / "both.pftrace")
    assert {path[:4] for path in file.paths.values()} == {"/a: ", "/b: "}
    assert len(file.under("streams")) == len(a) + len(b)


@pytest.mark.parametrize("kept", [False, True])
def test_simulated_kernel_is_shown_as_far_as_it_was_kept(tmp_path: Path, kept: bool) -> None:
    kernel = tb.sm.preset("SCP", blocks=8)
    found = tb.sm.simulate(kernel, "round_robin", commands=kept, warps=kept)
    tb.show.to_perfetto(found, tmp_path / "simulated.pftrace")
    file = read(tmp_path / "simulated.pftrace")
    assert sorted(each.name for each in file.under("cores")) == [f"block {n}" for n in range(8)]
    if not kept:
        assert len(file.slices) == 8
        return
    assert found.warps is not None
    for core in set(found.core.tolist()):
        own = np.count_nonzero(found.warps["core"] == core)
        assert len(file.under(f"warps of core {core}")) == own
    assert found.commands is not None
    opened = np.count_nonzero(found.commands["kind"] == 0)
    banks = [each for each in file.slices if "/DRAM banks of " in file.paths[each.track]]
    assert len(banks) == opened
    assert all(each.name.startswith("row ") for each in banks)


def test_call_that_loads_a_kernel_is_marked(tmp_path: Path) -> None:
    first = launch(1, duration=1e-5, stream=0, name="gemm", first_use=True)
    again = launch(1, duration=1e-5, stream=0, name="gemm")
    trace = tb.predict(tb.Sequence([first, again]), "h200", host=1e-6)
    tb.show.to_perfetto(trace, tmp_path / "first.pftrace")
    loads, other = read(tmp_path / "first.pftrace").under("host threads")
    assert (loads.name, other.name) == ("launch gemm, first use", "launch gemm")
    assert loads.end - loads.begin > 2 * (other.end - other.begin)


def test_names_of_host_functions_are_made_printable(tmp_path: Path) -> None:
    kernel = launch(2, 2, stream=0, duration=1e-5)
    function = tb.HostFunction(1e-6, stream=0, name="log\ud800\x1b[2J" + "a" * 1000)
    trace = tb.predict(tb.Sequence([kernel, function, kernel]), "h200")
    tb.show.to_perfetto(trace, tmp_path / "timeline.pftrace")
    words = [str(each.arguments) for each in read(tmp_path / "timeline.pftrace").slices]
    (transfer,) = {each for each in words if "log" in each}
    assert "\\x1b" not in transfer
    assert len(transfer) < 300


def test_nothing_that_ran_is_a_file_too(tmp_path: Path) -> None:
    tb.show.to_perfetto(tb.predict(tb.Sequence([]), gpu()), tmp_path / "empty.pftrace")
    assert not read(tmp_path / "empty.pftrace").slices


def test_what_is_no_trace_or_has_no_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pftrace"
    with pytest.raises(TypeError, match="to_perfetto"):
        tb.show.to_perfetto(PROGRAM, path)  # type: ignore[arg-type]
    trace = tb.predict(PROGRAM, gpu(6))
    bare = [tb.Placement(p.smid) for p in trace]
    with pytest.raises(ValueError, match="nobody recorded when the blocks of launch 0 ran"):
        tb.show.to_perfetto(tb.Trace(PROGRAM, trace.device, tuple(bare)), path)
    assert not path.exists()


def test_legacy_stream_has_the_number_of_the_profile_wherever_it_is_shown(tmp_path: Path) -> None:
    program = tb.load_program(next((ROOT / "tests/profiles/kinds").glob("04*")), fit=False)
    found = tb.explain(program)
    for value in (program, found):
        assert ">legacy stream 7<" in tb.show.to_html(value).replace("\n", "")
        assert ">stream legacy<" not in tb.show.to_html(value)
        tb.show.to_perfetto(value, tmp_path / "out.pftrace")
        rows = [path.rpartition("/")[2] for path in read(tmp_path / "out.pftrace").paths.values()]
        streams = [row for row in rows if "stream " in row]
        assert set(streams) == {"legacy stream 7"}


def test_a_file_is_not_named_as_another_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x.JSON: a trace for Perfetto ends with .pftrace"):
        tb.show.to_perfetto(tb.predict(PROGRAM, gpu(2)), tmp_path / "x.JSON")
    assert not (tmp_path / "x.JSON").exists()
