"""Traces of torch.profiler become programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT
from importers.written import call, kernel, kineto, move, sync
from tbsched.importers import kineto as reader

PROFILES = ROOT / "tests" / "profiles" / "h100"
H200 = ROOT / "tests" / "profiles" / "h200"


def read(tmp_path: Path, *events: object, **options: object) -> tb.Program:
    return tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False, **options)  # type: ignore[arg-type]


def assumed(program: tb.Program, words: str) -> bool:
    return any(words in sentence for sentence in program.assumed)


def test_kernel_has_what_the_trace_says(tmp_path: Path) -> None:
    args = {"grid": [3, 2, 5], "block": [8, 4, 2], "registers per thread": 48, "priority": -2}
    program = read(tmp_path, call(1, 10, 5), kernel(1, 20, 7.5, 13, name="gemm<a>(b)", **args))
    (event,) = program.sequence
    assert isinstance(event, tb.Launch)
    assert (event.blocks, event.threads, event.registers) == (30, 64, 48)
    assert (event.shared_memory, event.priority, event.name) == (1024, -2, "gemm<a>(b)")
    assert event.stream == 13
    assert program.streams == ("13",)
    assert event.duration == 7.5e-6
    row = program.measured[0]
    assert row[["stream", "start_ns", "end_ns"]].item() == (13, 10_000, 17_500)
    assert row[["call_ns", "return_ns"]].item() == (0, 5_000)
    assert program.device == "NVIDIA H100 80GB HBM3"


def test_what_the_trace_does_not_say_is_said_to_be_assumed(tmp_path: Path) -> None:
    one = kernel(1, 20, 5)
    two = kernel(2, 40, 5)
    del two["args"]["registers per thread"]
    program = read(tmp_path, call(1, 10, 5), one, call(2, 30, 5), two)
    assert [launch.registers for launch in program.sequence.launches] == [32, 32]
    assert assumed(program, "Of 1 of 2 kernels: assumed 32 registers per thread.")
    assert assumed(program, "Of every kernel: assumed no local memory, no clusters, a carveout")
    assert assumed(program, "lazy loading")
    assert program.sources["registers"] == "args.registers per thread"
    assert "priority" not in program.sources


def test_order_is_that_of_calls_and_gaps_are_between_them(tmp_path: Path) -> None:
    events = [kernel(2, 60, 5, 13), call(2, 40, 15, tid=9), kernel(1, 20, 5, 7), call(1, 10, 15)]
    program = read(tmp_path, *events, call(3, 100, 50, "cudaDeviceSynchronize"))
    assert [type(event) for event in program.sequence] == [tb.Launch, tb.Launch, tb.Synchronize]
    assert [event.host for event in program.sequence] == [0, 1, 0]  # type: ignore[union-attr]
    # Calls return when they did, and take what a thread's first calls take on an H100.
    h100 = tb.device("h100")
    first_ns = h100.first_call_ns + h100.first_kind_call_ns + h100.new_stream_call_ns
    takes = (h100.launch_call_ns + first_ns) / 1e9
    assert program.host == pytest.approx((15e-6 - takes, 45e-6 - takes, 75e-6))


def test_default_stream_is_the_legacy_one(tmp_path: Path) -> None:
    program = read(tmp_path, call(1, 1, 1), kernel(1, 3, 5, 7), call(2, 4, 1), kernel(2, 9, 1, 20))
    first, second = program.sequence.launches
    assert (first.stream, second.stream) == (tb.LEGACY_STREAM, 20)
    assert second.non_blocking
    assert assumed(program, "stream 7")


def test_blocks_run_as_long_as_the_kernel_divided_by_its_waves(tmp_path: Path) -> None:
    args = {"grid": [132 * 2 * 3, 1, 1], "block": [1024, 1, 1]}  # two blocks are on an SM
    place = kineto(tmp_path / "t.json", call(1, 1, 1), kernel(1, 3, 30, **args))
    assert tb.load_program(place, fit=False).sequence.launches[0].duration == pytest.approx(10e-6)
    unknown = kineto(
        tmp_path / "u.json", call(1, 1, 1), kernel(1, 3, 30, **args), deviceProperties=[]
    )
    program = tb.load_program(unknown, fit=False)
    assert program.sequence.launches[0].duration == pytest.approx(30e-6)
    assert assumed(program, "no device here is a GPU that nobody named")
    assert tb.load_program(unknown, "h200", fit=False).sequence.launches[
        0
    ].duration == pytest.approx(10e-6)


@pytest.mark.parametrize(
    ("name", "sms", "known"),
    [
        ("NVIDIA H100 80GB HBM3", 132, True), ("NVIDIA H100 PCIe", 114, False),
        ("Tesla V100-SXM2-16GB", 80, True), ("NVIDIA GeForce RTX 3090", 82, True),
        ("", 132, False),
    ],
)  # fmt: skip
def test_device_is_known_by_its_name_and_size(
    tmp_path: Path, name: str, sms: int, known: bool
) -> None:
    device = {"id": 0, "name": name, "numSms": sms}
    place = kineto(tmp_path / "t.json", call(1, 1, 1), kernel(1, 3, 3), deviceProperties=[device])
    guessed, fitted = tb.load_program(place, fit=False), tb.load_program(place)
    assert assumed(guessed, "waves that the kernel has alone on") == known
    assert assumed(fitted, "The time of each block: found with the model") == known
    assert assumed(fitted, "waves that the kernel") is False


def test_number_of_sms_that_no_device_has_is_ignored(tmp_path: Path) -> None:
    def gpu(name: str, sms: int) -> tb.Program:
        device = {"id": 0, "name": name, "numSms": sms, "computeMajor": 9, "computeMinor": 0}
        events = call(1, 1, 1), kernel(1, 3, 3)
        place = kineto(tmp_path / "t.json", *events, deviceProperties=[device])
        return tb.load_program(place, fit=False)

    for sms in (65_537, 132_000_000):
        known, unknown = gpu("NVIDIA H100 80GB HBM3", sms), gpu("NVIDIA Unheard-of", sms)
        assert (known.sms, unknown.sms) == (None, None)
        assert assumed(known, "alone on a NVIDIA H100 80GB HBM3.")
        assert assumed(unknown, "as no device here is NVIDIA Unheard-of; name one")


def test_name_with_another_number_of_sms_is_said_with_it(tmp_path: Path) -> None:
    device = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 114}
    events = call(1, 1, 1), kernel(1, 3, 3)
    place = kineto(tmp_path / "t.json", *events, deviceProperties=[device])
    program = tb.load_program(place, fit=False)
    assert assumed(program, "as no device here is NVIDIA H100 80GB HBM3 with 114 SMs; name one")


def test_gpus_of_other_vendors_are_refused_by_name(tmp_path: Path) -> None:
    for name, warp in (("AMD Instinct MI250", 64), ("", 64)):
        device = {"id": 0, "name": name, "numSms": 104, "warpSize": warp}
        events = call(1, 1, 1), kernel(1, 3, 3)
        place = kineto(tmp_path / "t.json", *events, deviceProperties=[device])
        with pytest.raises(ValueError, match=r"of a GPU of (AMD|another vendor)"):
            tb.load_program(place)
    device = {"id": 0, "name": "AMD \x1b[31m", "numSms": 104, "warpSize": 64}
    place = kineto(tmp_path / "t.json", *events, deviceProperties=[device])
    with pytest.raises(ValueError, match="AMD \ufffd"):
        tb.load_program(place)
    place = kineto(tmp_path / "t.json", call(1, 1, 1, "hip\x1b[31m"), kernel(1, 3, 3))
    with pytest.raises(ValueError, match=r"hip\ufffd.* is a call of HIP"):
        tb.load_program(place)
    place = kineto(tmp_path / "t.json", call(1, 1, 1, "hipLaunchKernel"), kernel(1, 3, 3))
    with pytest.raises(ValueError, match="hipLaunchKernel is a call of HIP"):
        tb.load_program(place)


def test_a_gpu_that_is_no_device_here_is_described_by_its_properties(tmp_path: Path) -> None:
    device = {
        "id": 0, "name": "NVIDIA GeForce RTX 4090", "computeMajor": 8, "computeMinor": 9,
        "numSms": 128, "maxThreadsPerMultiprocessor": 1536, "warpSize": 32,
        "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 101376,
    }  # fmt: skip
    events = call(1, 1, 1), kernel(1, 3, 3)
    program = tb.load_program(kineto(tmp_path / "t.json", *events, deviceProperties=[device]))
    found = tb.explain(program)
    assert found.prediction is not None
    assert found.prediction.device.name == "NVIDIA GeForce RTX 4090"
    assert found.prediction.device.sms == 128
    assert assumed(program, "No device here is NVIDIA GeForce RTX 4090: it is described")
    with pytest.raises(ValueError, match="device: tx2, but the profile was recorded on NVIDIA Ge"):
        tb.explain(program, "tx2")
    device["name"] = "NVIDIA \x1b]0;title\x07"
    program = tb.load_program(kineto(tmp_path / "t.json", *events, deviceProperties=[device]))
    with pytest.raises(ValueError, match=r"recorded on NVIDIA \ufffd.0;title\ufffd;"):
        tb.explain(program, "tx2")


def test_a_kernel_without_a_grid_is_kept(tmp_path: Path) -> None:
    shapeless = kernel(2, 13, 3)
    del shapeless["args"]["grid"]
    program = read(tmp_path, call(1, 1, 1), kernel(1, 3, 3), call(2, 11, 1), shapeless)
    assert [launch.threads for launch in program.sequence.launches][1] == 128
    assert assumed(program, "The grid and the blocks of 1 kernels")


def test_events_that_stand_twice_count_once(tmp_path: Path) -> None:
    events = [call(1, 1, 1), kernel(1, 3, 3), call(2, 11, 1), kernel(2, 13, 3)]
    program = read(tmp_path, *events, *events)
    assert len(program.sequence.launches) == 2
    assert program.activity is not None
    assert program.activity.duplicates == 2
    assert "2 records stand in the file more than once" in str(tb.explain(program))


def test_a_list_of_events_is_read_though_it_is_not_closed(tmp_path: Path) -> None:
    events = [call(1, 1, 1), kernel(1, 3, 3)]
    place = tmp_path / "t.json"
    for text in (json.dumps(events), json.dumps(events)[:-1] + ",\n"):
        place.write_text(text, "utf-8")
        assert len(tb.load_program(place, "h100").sequence.launches) == 1


def test_copies_and_memsets(tmp_path: Path) -> None:
    events = [
        call(1, 1, 1, "cudaMemcpyAsync"), move(1, 5, 2, name="Memcpy HtoD (Pinned -> Device)"),
        call(2, 3, 9, "cudaMemcpy"), move(2, 8, 2, name="Memcpy DtoH (Device -> Pageable)"),
        call(3, 13, 1, "cudaMemsetAsync"), move(3, 15, 1), call(4, 15, 1), kernel(4, 17, 1),
        call(5, 16, 1, "cudaMemcpyAsync"), move(5, 19, 2, name="Memcpy HtoH (Pinned -> Pinned)"),
    ]  # fmt: skip
    program = read(tmp_path, *events)
    first, second, third = program.sequence.transfers
    assert (first.kind, first.pinned, first.blocking) == ("h2d", True, False)  # type: ignore[union-attr]
    assert (second.kind, second.pinned, second.blocking) == ("d2h", False, True)  # type: ignore[union-attr]
    assert third == tb.Memset(4096, 1e-6, stream=tb.LEGACY_STREAM)
    assert program.transfers.tolist() == [(4000, 6000, 0), (7000, 9000, 1), (14000, 15000, 2)]
    assert assumed(program, "1 copies are not to or from the GPU: left out")


def test_event_that_a_stream_waits_for(tmp_path: Path) -> None:
    waits = {"wait_on_stream": 13, "wait_on_cuda_event_record_corr_id": 2}
    program = read(
        tmp_path, call(1, 1, 1), kernel(1, 3, 5, 13), call(2, 3, 1, "cudaEventRecord"),
        call(3, 5, 1, "cudaStreamWaitEvent"), sync(3, "Stream Wait Event", 20, **waits),
        call(4, 7, 1), kernel(4, 9, 5, 20),
    )  # fmt: skip
    assert program.sequence[1:3].events == (tb.RecordEvent(0, 13), tb.WaitEvent(0, 20))


def test_wait_for_an_unknown_event_is_found_by_times(tmp_path: Path) -> None:
    def waiting(start: float) -> tb.Program:
        return read(
            tmp_path, call(1, 1, 1), kernel(1, 3, 50, 13), call(2, 3, 1, "cudaStreamWaitEvent"),
            call(4, 7, 1), kernel(4, start, 5, 20),
        )  # fmt: skip

    waited = waiting(55)
    assert waited.sequence[1:3].events == (tb.RecordEvent(1, 13), tb.WaitEvent(1, 20)) or (
        waited.sequence[1:3].events == (tb.RecordEvent(0, 13), tb.WaitEvent(0, 20))
    )
    assert assumed(waited, "tbsched capture does")
    for start in (10, 90):  # it ran beside, or long after
        free = waiting(start)
        assert len(free.sequence) == 2
        assert assumed(free, "assumed nothing, as the times show no work")


def test_join_in_the_default_stream_waits_for_each_branch(tmp_path: Path) -> None:
    program = read(
        tmp_path, call(1, 1, 1), kernel(1, 3, 50, 13), call(2, 3, 1), kernel(2, 5, 50, 20),
        call(3, 5, 1, "cudaStreamWaitEvent"), call(4, 7, 1, "cudaStreamWaitEvent"),
        call(5, 9, 1), kernel(5, 60, 5, 7),
    )  # fmt: skip
    waited = [event for event in program.sequence if isinstance(event, tb.RecordEvent)]
    assert {event.stream for event in waited} == {13, 20}


def test_synchronisation_with_an_unknown_stream_is_found_by_times(tmp_path: Path) -> None:
    events = [
        call(1, 1, 1), kernel(1, 3, 50, 13), call(2, 3, 1), kernel(2, 5, 90, 20),
        call(3, 5, 49, "cudaStreamSynchronize"), call(4, 60, 1, "cudaStreamSynchronize"),
    ]  # fmt: skip
    program = read(tmp_path, *events)
    assert [event for event in program.sequence if isinstance(event, tb.Synchronize)] == [
        tb.Synchronize(stream=13)
    ]
    assert assumed(program, "1 synchronisations: assumed the stream whose work ended last")
    known = read(tmp_path, *events, sync(3, "Stream Sync", 20))
    assert tb.Synchronize(stream=20) in known.sequence


def graph_launch(number: int, at: float, fork: float = 1) -> list[object]:
    """Launches a graph: b forks from a, and runs beside c; d joins them."""
    return [
        call(number, at, 2, "cudaGraphLaunch"), kernel(number, at + 5, 4, 7, name="a"),
        kernel(number, at + 9 + fork, 9, 30, name="b"), kernel(number, at + 9.2, 40, 7, name="c"),
        kernel(number, at + 49.1, 3, 7, name="d"),
    ]  # fmt: skip


def test_graph_has_the_edges_that_times_show(tmp_path: Path) -> None:
    program = read(tmp_path, *graph_launch(1, 10), *graph_launch(2, 90))
    first, second = program.sequence
    assert isinstance(first, tb.GraphLaunch)
    assert [node.name for node in first.graph.nodes] == ["a", "c", "b", "d"]  # type: ignore[union-attr]
    assert first.graph == second.graph  # type: ignore[union-attr]
    assert set(first.graph.edges) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert assumed(program, "2 launches of graphs")


def test_nodes_of_graphs_without_records_are_said(tmp_path: Path) -> None:
    """CUPTI numbers the nodes of graph 2 from 2 times 2^32; one lies before the last that ran."""
    events = graph_launch(1, 10)
    for number, event in zip((0, 1, 2, 4), events[1:], strict=True):
        event["args"] |= {"graph id": 2, "graph node id": (2 << 32) + number}  # type: ignore[index]
    said = "What 1 nodes of graphs do that leave no records, such as"
    assert assumed(read(tmp_path, *events), said)
    chosen = tb.load_program(kineto(tmp_path / "b.json", *events), match="[ad]", fit=False)
    assert assumed(chosen, said)
    assert not assumed(read(tmp_path, *graph_launch(1, 10)), "leave no records")


def test_edge_between_streams_is_one_of_all_launches(tmp_path: Path) -> None:
    program = read(tmp_path, *graph_launch(1, 10), *graph_launch(2, 90, fork=20))
    for event in program.sequence:
        # Every branch joins; only its fork is not seen.
        assert set(event.graph.edges) == {(0, 1), (1, 3), (2, 3)}  # type: ignore[union-attr]


def test_overlap_in_a_stream_is_a_programmatic_launch(tmp_path: Path) -> None:
    program = read(tmp_path, call(1, 1, 1), kernel(1, 3, 9), call(2, 3, 1), kernel(2, 9, 9))
    assert [launch.programmatic for launch in program.sequence.launches] == [False, True]
    assert assumed(program, "1 kernels started before the kernel before them")
    events = [call(1, 1, 1), kernel(1, 3, 9), call(2, 3, 1), kernel(2, 9, 9)]
    place = kineto(tmp_path / "older.json", *events)
    older = tb.load_program(place, "a100", fit=False)
    assert not any(launch.programmatic for launch in older.sequence.launches)


def test_launch_without_a_call_is_called_when_it_started(tmp_path: Path) -> None:
    program = read(tmp_path, call(1, 1, 1), kernel(1, 3, 9), kernel(8, 30, 9, 20))
    assert program.measured["call_ns"].tolist() == [0, -1]
    assert program.sequence.launches[1].host == 1
    assert assumed(program, "When the host launched 1 kernels")


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("nvjet_sm90_hsh_128x64_64x8_1x2_h_bz_NNT", 2), ("nvjet_sm90_hsh_48x64_64x15_4x2_h_b", 8),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_cga1x1x1_kernel0_0", 1),
        ("void cutlass3x_sm90_tensorop_s64_f16_128x128x64_2x1x1_0_tnn_align8", 2), ("gemm_1x2_", 1),
    ],
)  # fmt: skip
def test_names_of_libraries_tell_clusters(tmp_path: Path, name: str, cluster: int) -> None:
    args = {"grid": [64, 1, 1], "registers per thread": 32}
    program = read(tmp_path, call(1, 1, 1), kernel(1, 3, 9, name=name, **args))
    assert program.sequence.launches[0].cluster == cluster


def test_only_the_gpu_with_most_kernels_is_read(tmp_path: Path) -> None:
    one = [call(1, 1, 1), kernel(1, 3, 9), call(2, 5, 1), kernel(2, 14, 9)]
    program = read(tmp_path, *one, call(3, 9, 1), kernel(3, 20, 9, 7, device=1))
    assert len(program.sequence) == 2
    assert assumed(program, "1 kernel ran on 1 other GPU:")


@pytest.mark.parametrize("name", ["cudaFree", "cudaDeviceSynchronize"])
def test_a_thread_waits_for_the_gpu_that_it_works_for(tmp_path: Path, name: str) -> None:
    # The trace does not say for which GPU either call waits.
    events = [
        call(1, 0, 5), kernel(1, 8, 100), call(2, 6, 5), kernel(2, 110, 100),
        call(3, 0, 5, tid=2), kernel(3, 8, 100, device=1), call(4, 20, 195, name, tid=2),
    ]  # fmt: skip
    found = read(tmp_path, *events)
    assert not any(isinstance(x, tb.Synchronize | tb.HostCall) for x in found.sequence)
    assert not assumed(found, "For which GPU")
    # The same thread works for both.
    events[4]["tid"] = 1
    events[6] |= {"tid": 1, "ts": 30}
    found = read(tmp_path, *events[:2], *events[4:], *events[2:4])
    assert assumed(found, "For which GPU 1 calls wait")


def test_numbers_of_gpus_may_be_any(tmp_path: Path) -> None:
    # The second one is 0 in 32 bits.
    numbers = 0, 2**32, 2**62
    events = [kernel(k + 1, 100 * k, 50, device=number) for k, number in enumerate(numbers)]
    program = read(tmp_path, *events)
    assert program.activity is not None
    assert program.activity.work["gpu"].tolist() == [*numbers]
    found = tb.explain(program, predicted=False)
    assert sorted({row.gpu for row in found.account}) == [*numbers]


def test_parts_can_be_selected(tmp_path: Path) -> None:
    events: list[object] = []
    for number in range(6):
        stream, name = (13, 20)[number % 2], f"k{number}"
        events += [
            call(number, 100 + 10 * number, 1),
            kernel(number, 105 + 10 * number, 5, stream, name=name),
        ]

    def names(**options: object) -> list[str]:
        return read(tmp_path, *events, **options).measured["name"].tolist()

    assert names(start=20e-6, end=40e-6) == ["k2", "k3"]
    assert names(streams=[20]) == ["k1", "k3", "k5"]
    assert names(match="k[01]$") == ["k0", "k1"]
    with pytest.raises(ValueError, match=r"no kernel is in the part that is selected; select more"):
        names(match="none")
    for wrong in ({"start": -1.0}, {"start": 2.0, "end": 1.0}, {"match": "("}, {"streams": [-1]}):
        with pytest.raises(ValueError, match=f"load_program.{list(wrong)[-1]}"):
            names(**wrong)
    for wrong in ({"streams": "13"}, {"match": 3}, {"start": "0"}):
        with pytest.raises(TypeError, match=f"load_program.{next(iter(wrong))}"):
            names(**wrong)


@pytest.mark.parametrize("place", sorted(PROFILES.glob("*.gz")), ids=lambda place: place.name[:-8])
def test_recorded_program_is_predicted_as_it_was_measured(place: Path) -> None:
    """PyTorch on an H100, bound by the host: how long each kernel ran is given."""
    program = tb.load_program(place, fit=False)
    trace = tb.predict(program.sequence, "h100", host=program.host)
    rows = program.measured
    makespan = (rows["end_ns"].max() - rows["start_ns"].min()) / 1e9
    # The first launch of a graph takes 9 us longer, once.
    assert trace.makespan == pytest.approx(makespan, rel=0.2 if "graph" in place.name else 0.01)
    starts = np.array([placement.start_ns.min() for placement in trace])  # type: ignore[union-attr]
    assert abs(np.diff(starts) - np.diff(rows["start_ns"])).max() < 14_000


def test_edges_of_a_recorded_graph_are_those_that_were_captured() -> None:
    program = tb.load_program(PROFILES / "graph.json.gz")
    for event in program.sequence[:2]:
        assert set(event.graph.edges) == {(0, 3), (1, 2), (2, 3)}  # type: ignore[union-attr]


def test_branches_of_a_recorded_graph_are_those_that_were_captured() -> None:
    """The edges as CUPTI told them to ``tbsched capture``, less those that others imply."""
    told = {
        (0, 1), (1, 2), (2, 3), (2, 4), (3, 6), (6, 8), (8, 10), (10, 12), (12, 13), (4, 5), (5, 7),
        (7, 9), (9, 11), (11, 13),
    }  # fmt: skip
    program = tb.load_program(H200 / "graph_branches.json.gz", fit=False)
    graphs = {event.graph for event in program.sequence if isinstance(event, tb.GraphLaunch)}
    assert [set(graph.edges) for graph in graphs] == [told]


def test_recorded_streams_wait_for_the_default_stream_or_not() -> None:
    """The same program with streams of both kinds; nothing in the files tells them apart."""
    for name, waits in (("legacy_stream", True), ("no_legacy_stream", False)):
        program = tb.load_program(H200 / f"{name}.json.gz")
        others = [x for x in program.sequence.launches if x.stream != tb.LEGACY_STREAM]
        assert {launch.non_blocking for launch in others} == {not waits}
        trace = tb.predict(program.sequence, "h200", host=program.host)
        rows = program.measured
        makespan = (rows["end_ns"].max() - rows["start_ns"].min()) / 1e9
        assert trace.makespan == pytest.approx(makespan, rel=0.01)


def test_recorded_events_are_those_that_streams_wait_for() -> None:
    program = tb.load_program(H200 / "copies_pipeline.json.gz")
    waits = [event for event in program.sequence if isinstance(event, tb.WaitEvent)]
    assert len(waits) == 44
    assert not assumed(program, "make a stream wait")


def test_durations_are_fitted_unless_that_is_not_wanted() -> None:
    place = PROFILES / "graph.json.gz"
    found, raw = tb.load_program(place), tb.load_program(place, fit=False)
    assert len(found.fitted) == len(found.measured)
    assert raw.fitted == ()
    assert found.sequence != raw.sequence
    with pytest.raises(TypeError, match=r"load_program.fit: True or False"):
        tb.load_program(place, fit=1)  # type: ignore[arg-type]


def test_program_that_its_device_cannot_run_is_not_fitted(tmp_path: Path) -> None:
    large = kernel(1, 3, 5, **{"shared memory": 230_000})
    place = kineto(tmp_path / "t.json", call(1, 1, 1), large)
    program = tb.load_program(place, "xavier")
    assert assumed(program, "Durations are not fitted: ")


def test_program_shows_itself() -> None:
    program = tb.load_program(PROFILES / "transformer.json.gz")
    text = str(program)
    assert text.startswith(
        "27 launches of 9 kernels, 2 copies and memsets, 1.749 ms on NVIDIA H100"
    )
    assert "What the profile does not say:" in text
    assert "legacy" in text
    assert "What the profile does not say" in program._repr_html_()


def test_calls_that_block_say_nothing_of_the_profiler(tmp_path: Path) -> None:
    # Of 20 calls 19 take as long as without a profiler, and one waits for 50 ms.
    events = [
        each for n in range(19) for each in (call(n + 1, 20 * n, 3), kernel(n + 1, 20 * n + 9, 8))
    ]
    events += [call(20, 400, 50_000), kernel(20, 50_410, 8)]
    program = tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False)
    longer = [sentence for sentence in program.assumed if "without a profiler" in sentence]
    assert not longer or longer[0].startswith("Calls took 0.")
    assert any("predicted as if none did" in sentence for sentence in program.assumed)


def freed(tmp_path: Path, ends: float, name: str = "cudaFree") -> tb.Program:
    """Kernels of 100 us until ``ends``; a call of 150 us is made while the first one runs."""
    events = [
        call(1, 0, 5), kernel(1, 8, ends - 8), call(2, 28, 150, name), call(3, 200, 5),
        kernel(3, 208, 100),
    ]  # fmt: skip
    return tb.load_program(kineto(tmp_path / "trace.json", *events), fit=False)


def test_cuda_free_waits_for_the_kernels_before_it(tmp_path: Path) -> None:
    program = freed(tmp_path, 108)
    (found,) = [event for event in program.sequence if isinstance(event, tb.HostCall)]
    assert found == tb.HostCall("cudaFree", 70 * 1e-6, waits="device")  # from 108 to 178
    # With a kernel that is 80 us shorter the host goes on sooner.
    launches = [launch for launch in program.sequence if isinstance(launch, tb.Launch)]
    short = [
        replace(event, duration=20e-6) if event is launches[0] else event
        for event in program.sequence
    ]
    before = tb.predict(program.sequence, "h100", host=program.host).makespan
    after = tb.predict(tb.Sequence(short), "h100", host=program.host).makespan
    assert before - after == pytest.approx(80e-6, abs=3e-6)


def test_a_call_that_returned_while_a_kernel_ran_did_not_wait(tmp_path: Path) -> None:
    assert not any(isinstance(event, tb.HostCall) for event in freed(tmp_path, 190).sequence)
    program = freed(tmp_path, 108, "cudaMalloc")
    assert not any(isinstance(event, tb.HostCall) for event in program.sequence)


# A part of the time.


def called_at(tmp_path: Path, ms: float) -> tb.Program:
    """The last 100 ms of 3 s; what is called 2 s before that, or at another time."""
    events = [call(1, 0, 5), kernel(1, 10, 20), call(2, 1e3 * ms, 5), kernel(2, 2_950_000, 20)]
    events += [call(0, 100 * n, 5) | {"cat": "cpu_op", "name": "log"} for n in range(40_000)]
    return tb.load_program(kineto(tmp_path / "trace.json", *events), start=2.9, fit=False)


@pytest.mark.parametrize("ms", [900.0, 2949.0])
def test_a_part_has_the_calls_of_its_work_however_early(tmp_path: Path, ms: float) -> None:
    program = called_at(tmp_path, ms)
    assert program.activity is not None
    assert (program.activity.work["call"] >= 0).all()
    assert program.measured["name"].tolist() == ["k"]


def test_a_part_has_what_hosts_did_about_then_alone(tmp_path: Path) -> None:
    program = called_at(tmp_path, 2949.0)
    assert program.activity is not None
    assert 0 < len(program.activity.host) < 40_000 * 0.75


def test_the_first_work_is_found_in_the_text_of_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = PROFILES / "transformer.json.gz"
    found = tb.load_program(recorded, start=5e-4, fit=False)
    assert reader._first_written_ns(recorded) is not None
    monkeypatch.setattr(reader, "_first_written_ns", lambda place: None)
    assert tb.load_program(recorded, start=5e-4, fit=False).sequence == found.sequence
    other = kineto(tmp_path / "other.json", call(1, 0, 5), kernel(1, 10, 20))
    monkeypatch.undo()
    assert reader._first_written_ns(other) is None  # its fields are in another order
