"""More questions that people asked in public: what hosts, graphs and devices do beside launching.

The questions and their answers were collected first, in our own words; docs/explanation/
public-questions.md has where from, and the numbers. A GPU that tbsched has no file of is described.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT

KB = 1024
MB = 1024 * KB


def kernel(
    us: float = 1000.0, stream: int | str | None = 0, *, blocks: int = 1, **more: object
) -> tb.Launch:
    """A small kernel."""
    return tb.Launch(blocks, 64, 32, stream=stream, duration=us * 1e-6, **more)  # type: ignore[arg-type]


def predicted(*events: object, device: str | tb.DeviceSpec = "h200", **more: object) -> tb.Trace:
    """The calls follow each other without a gap."""
    return tb.predict(tb.Sequence(events), device, host=0.0, **more)  # type: ignore[arg-type]


def on_two(*events: object) -> tb.Trace:
    return tb.predict(tb.Sequence(events), ["h200", "h200"], host=0.0)  # type: ignore[arg-type]


def issued(trace: tb.Trace) -> list[float]:
    """When each launch call was made, in milliseconds."""
    assert trace.issue_times is not None
    return [1e3 * time for time in trace.issue_times]


def moved(trace: tb.Trace) -> list[list[float]]:
    """When each copy and memset ran, in milliseconds."""
    assert trace.transfer_ns is not None
    return (trace.transfer_ns / 1e6).tolist()  # type: ignore[no-any-return]


def starts(trace: tb.Trace) -> list[float]:
    """When the first block of each launch started, in milliseconds."""
    return [float(placement.start_ns.min()) / 1e6 for placement in trace]  # type: ignore[union-attr]


def ends(trace: tb.Trace) -> list[float]:
    """When the last block of each launch ended, in milliseconds."""
    return [float(placement.end_ns.max()) / 1e6 for placement in trace]  # type: ignore[union-attr]


def at_once(trace: tb.Trace, ms: float) -> int:
    """How many kernels run at a time."""
    return sum(
        bool((placement.start_ns <= ms * 1e6).any() and (placement.end_ns > ms * 1e6).any())  # type: ignore[operator]
        for placement in trace
    )


def says(page: str, *words: str) -> None:
    """The page has all of these in one paragraph or row."""
    text = (ROOT / "docs" / page).read_text()
    assert any(all(each in part for each in words) for part in text.split("\n\n"))


@pytest.mark.parametrize(("pinned", "least", "most"), [(False, 500.0, 501.0), (True, 0.0, 0.1)])
def test_q54_copy_of_four_bytes_to_the_host(pinned: bool, least: float, most: float) -> None:
    copy = tb.Copy(4, "d2h", stream=0, pinned=pinned)
    assert least <= issued(predicted(kernel(5e5), copy, kernel(1, 5)))[1] <= most


@pytest.mark.parametrize("timing", [True, False])
def test_q55_an_event_behind_each_host_function(timing: bool) -> None:
    """The 57th record waits. That launches of other threads wait then, too, is not in the model."""
    of_one = [tb.HostFunction(1e-3, stream=0), tb.RecordEvent(0, 0, timing=timing)]
    times = predicted(*57 * of_one).call_times
    assert times is not None
    waits = [returned - called > 5e-4 for called, returned in times]
    assert [number for number, late in enumerate(waits[1::2], 1) if late] == (
        [57] if timing else []
    )


@pytest.mark.parametrize(("blocks", "waves"), [(132, 2), (116, 1)])
def test_q56_persistent_gemm_beside_a_communication_kernel_of_16_sms(
    blocks: int, waves: int
) -> None:
    communication = tb.Launch(16, 640, 96, stream=1, duration=1e-2)
    gemm = tb.Launch(blocks, 384, 168, 200 * KB, stream=0, duration=1e-3)
    assert round(ends(predicted(communication, gemm, device="h100"))[1]) == waves


def loading(awaited: bool) -> tb.Trace:
    """One thread loads a module behind a kernel, and another one calls for a copy meanwhile."""
    busy = kernel(1e4, meets="flag" if awaited else None)
    load = tb.HostCall("cuLibraryLoadData", 2e-5, waits="device", holds="throughout")
    copy = tb.Copy(4, "h2d", stream=1, non_blocking=True, host=1)
    last = kernel(1, 1, non_blocking=True, host=1, meets="flag" if awaited else None)
    return predicted(busy, load, tb.HostCall("later", 1e-3, host=1), copy, last)


def test_q57_copy_call_of_another_thread_while_a_module_is_loaded() -> None:
    calls = loading(awaited=False).call_times
    assert calls is not None
    assert calls[3][0] == pytest.approx(1e-3)
    assert calls[3][1] > 1e-2
    assert loading(awaited=True).hang is not None


def test_q58_cuda_free_beside_a_persistent_kernel() -> None:
    def hangs(call: tb.HostCall) -> bool:
        persistent, stop = kernel(meets="stop"), kernel(stream=1, meets="stop")
        return predicted(persistent, call, stop).hang is not None

    assert hangs(tb.HostCall("cudaFree", 1e-5, waits="device"))
    assert not hangs(tb.HostCall("cudaFreeAsync", 1e-6))


def collective(gpu: int, name: str = "a", **more: object) -> tb.Launch:
    stream = "ab".index(name)
    return tb.Launch(
        8, 640, 96, stream=stream, gpu=gpu, meets=name, duration=1e-4, name=name, **more
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("holds", [False, "throughout"])
def test_q59_cuda_free_between_the_launches_of_a_collective(holds: bool) -> None:
    first, second = collective(0), collective(1)
    pause = tb.HostCall("launch on the next GPU", 1e-4)
    late = tb.HostCall("later", 5e-5, host=1)
    free = tb.HostCall("cudaFree", 1e-5, waits="device", holds=holds, host=1)
    assert (on_two(first, pause, second, late, free).hang is not None) is bool(holds)


def test_q60_cuda_free_of_memory_from_cuda_malloc_async() -> None:
    says("explanation/hosts.md", "`cudaFree` of memory from", "waits for nothing")


def test_q61_calls_that_wait_for_a_kernel() -> None:
    says("explanation/hosts.md", "`cudaMalloc`, 1 MB", "| no | yes |", "`cudaFree`, 1 MB")


def test_q62_copy_within_the_memory_of_the_gpu() -> None:
    says("explanation/copies.md", "`cudaMemcpy` within the GPU's memory", "| no |")
    copy = tb.Copy(MB, "d2d", stream="legacy")
    assert issued(predicted(kernel(), copy, kernel(1, 1)))[1] < 0.1


def test_q63_streams_of_six_blocks_on_82_sms() -> None:
    def most(streams: int, connections: int) -> int:
        kernels = [
            tb.Launch(6, 1024, 32, stream=stream, duration=1e-3)
            for stream in range(streams)
            for _ in range(4)
        ]
        return at_once(predicted(*kernels, device="rtx3090", connections=connections), 1.5)

    assert tb.device("rtx3090").hardware_queues == 8
    assert (most(13, 8), most(40, 8), most(13, 32)) == (8, 8, 13)


def test_q64_one_connection_keeps_the_order_of_launches() -> None:
    communication = tb.Launch(16, 640, 96, stream=1, duration=1e-3)
    gemm = tb.Launch(132, 384, 168, 200 * KB, stream=0, duration=1e-3)
    trace = predicted(communication, gemm, device="h100", connections=1)
    first, second = starts(trace)
    assert first < second
    assert trace.concurrent(0, 1)


def test_q65_hardware_queues_of_a_t4() -> None:
    t4 = tb.describe(compute_capability="7.5", sms=40)
    assert (t4.hardware_queues, t4.resident_grids) == (8, 128)
    assert "CUDA takes 1 to 32" in (tb.predict.__doc__ or "")


def test_q66_streams_of_a_pool_of_32() -> None:
    trace = predicted(*[kernel(1000, number % 32) for number in range(33)], connections=32)
    assert not trace.concurrent(0, 32)
    assert at_once(trace, 0.5) == 32


def test_q67_three_copies_to_the_gpu_at_once() -> None:
    copies = [tb.Copy(64 * MB, "h2d", stream=stream) for stream in range(3)]
    ran = moved(predicted(*copies, kernel(1, 5), device="h100"))
    assert ran[0][1] <= ran[1][0] <= ran[1][1] <= ran[2][0]


@pytest.mark.parametrize(("engines", "together"), [(1, False), (2, True)])
def test_q68_copies_in_both_directions(engines: int, together: bool) -> None:
    device = replace(tb.device("h200"), copy_engine_count=engines, copy_channels=1)
    copies = [tb.Copy(16 * MB, "h2d", stream=0), tb.Copy(16 * MB, "d2h", stream=1)]
    ran = moved(predicted(*copies, kernel(1, 5), device=device))
    assert (ran[1][0] < ran[0][1]) is together


def test_q69_small_copies_of_pageable_memory() -> None:
    def call(kind: str, **more: object) -> tuple[float, float]:
        copy = tb.Copy(64 * KB, kind, stream="legacy", pinned=False, **more)  # type: ignore[arg-type]
        trace = predicted(kernel(), copy, kernel(1, 1))
        return issued(trace)[1], moved(trace)[0][1]

    says("explanation/copies.md", "`cudaMemcpy` from pageable memory, at most 64 KB")
    returned, arrived = call("h2d")
    assert returned < 0.1 < 1.0 < arrived
    returned, arrived = call("d2h", blocking=True)
    assert returned >= arrived


@pytest.mark.parametrize("non_blocking", [True, False])
def test_q70_cuda_memcpy_beside_a_non_blocking_stream(non_blocking: bool) -> None:
    copy = tb.Copy(MB, "h2d", stream="legacy", blocking=True)
    ran = moved(predicted(kernel(non_blocking=non_blocking), copy))
    assert (ran[0][0] < 1.0) is non_blocking


def test_q71_memset_before_a_kernel_of_a_non_blocking_stream() -> None:
    trace = predicted(
        kernel(1000, "legacy"), tb.Memset(MB, stream="legacy"), kernel(1, non_blocking=True)
    )
    assert issued(trace)[1] < 0.1
    assert starts(trace)[1] < moved(trace)[0][0]


@pytest.mark.parametrize("non_blocking", [True, False])
def test_q72_synchronisation_of_the_default_stream(non_blocking: bool) -> None:
    def waits(synchronize: tb.Synchronize) -> bool:
        last = kernel(1, 1, non_blocking=True)
        return issued(predicted(kernel(non_blocking=non_blocking), synchronize, last))[1] > 1.0

    assert waits(tb.Synchronize(stream="legacy")) is not non_blocking
    assert waits(tb.Synchronize())


@pytest.mark.parametrize("blocking", [True, False])
def test_q73_collectives_in_two_orders_with_blocking_launches(blocking: bool) -> None:
    events: list[object] = []
    for rank, order in enumerate(("ab", "ba")):
        for name in order:
            events.append(collective(rank, name, host=rank))
            if blocking:
                events.append(tb.Synchronize(stream="ab".index(name), host=rank, gpu=rank))
    assert (on_two(*events).hang is not None) is blocking


@pytest.mark.parametrize("blocking", [True, False])
def test_q74_one_thread_launches_a_collective_on_two_gpus(blocking: bool) -> None:
    wait = [tb.Synchronize(stream=0)] if blocking else []
    assert (on_two(collective(0), *wait, collective(1)).hang is not None) is blocking


@pytest.mark.parametrize(("gpu", "returns"), [(0, 1), (1, 5)])
def test_q75_synchronisation_waits_for_its_own_gpu(gpu: int, returns: int) -> None:
    kernels = [kernel(1000), kernel(5000, gpu=1, host=1)]
    pause = tb.HostCall("both run", 1e-4)
    trace = on_two(*kernels, pause, tb.Synchronize(gpu=gpu), kernel(1, 1))
    assert round(issued(trace)[2]) == returns


@pytest.mark.parametrize(
    ("sms", "experts_of_a_block", "threads", "fits"),
    [(132, 2, 640, False), (132, 3, 960, True), (78, 3, 960, False)],
)
def test_q76_cooperative_grids_of_288_experts(
    sms: int, experts_of_a_block: int, threads: int, fits: bool
) -> None:
    gpu = tb.describe(compute_capability="9.0", sms=sms)
    grid = tb.Launch(288 // experts_of_a_block, threads, 64, 120 * KB, cooperative=True)
    if fits:
        assert tb.predict(tb.Sequence([grid]), gpu)[0].placed == 96
    else:
        with pytest.raises(ValueError, match=f"holds {sms}; got"):
            tb.predict(tb.Sequence([grid]), gpu)


def test_q77_sms_of_instances_of_mig() -> None:
    says("how-to/describe-a-gpu.md", "1g.5gb", "| 14 | 28 | 42 | 56 | 98 |")
    instance = tb.describe(compute_capability="8.0", sms=14)
    assert tb.capacity(tb.Launch(100, 640, 96), instance).blocks == 14


def test_q78_capture_that_ends_before_a_stream_is_joined() -> None:
    says("explanation/graphs.md", "not joined | refuses it (904)")


def test_q79_partitions_of_8_16_and_24_sms() -> None:
    groups = [tb.split_counts("h100", sms, groups=1).sms for sms in (8, 16, 24)]
    assert (groups, 132 - sum(groups)) == ([8, 16, 24], 84)


def test_q80_cuda_free_host_between_the_launches_of_a_collective() -> None:
    says("explanation/hosts.md", "| `cudaFreeHost`, 1 MB", "| yes | yes, throughout |")
    free = tb.HostCall("cudaFreeHost", 2e-4, waits="device", holds=True)
    assert on_two(collective(0), free, collective(1)).hang is not None


@pytest.mark.parametrize(("stream", "begins"), [("legacy", 2.0), (5, 0.0)])
def test_q81_peer_copy_waits_for_both_gpus_in_the_legacy_stream(
    stream: int | str, begins: float
) -> None:
    copy = tb.Copy(MB, "p2p", stream=stream, peer=1)  # type: ignore[arg-type]
    trace = on_two(kernel(1000), kernel(2000, gpu=1), copy, kernel(1, 3), kernel(1, 3, gpu=1))
    [[begin, end]] = moved(trace)
    assert begins <= begin < begins + 0.1
    assert issued(trace)[2] < 0.1
    waits = [start > max(end, 2) for start in starts(trace)[2:]]
    assert waits == [stream == "legacy"] * 2


@pytest.mark.parametrize("device", ["h100", "h200"])
def test_q82_seventeen_clusters_of_eight(device: str) -> None:
    [placed] = tb.predict(tb.Sequence([tb.Launch(136, 128, 32, cluster=8)]), device)
    sms, blocks = np.unique(placed.smid, return_counts=True)
    assert (len(sms), blocks.max()) == (120, 2)


def test_q83_blocks_of_a_second_kernel_start_after_all_of_the_first() -> None:
    trace = predicted(tb.Launch(300, 1024, 32, stream=0, duration=1e-3), kernel(100, 1, blocks=4))
    last = trace[0].start_ns
    assert last is not None
    assert starts(trace)[1] >= last.max() / 1e6


def test_q84_priorities_of_an_a100() -> None:
    assert tb.device("a100").priority_levels == 6

    def first(one: int, other: int) -> int:
        """Which of two large kernels starts first as a third one leaves."""
        kernels = [
            tb.Launch(216, 1024, 32, stream=stream, priority=priority, duration=1e-3)
            for stream, priority in enumerate((0, one, other))
        ]
        found = starts(tb.predict(tb.Sequence(kernels), "a100", issue_times=[0.0, 1e-4, 2e-4]))
        return 1 if found[1] < found[2] else 2

    assert (first(-4, -5), first(-5, -10), first(-10, -5)) == (2, 1, 1)


def test_q85_graphs_that_a_graph_may_launch() -> None:
    says("explanation/graphs.md", "fire and forget 120 graphs")


def test_q86_children_of_2100_threads() -> None:
    says("explanation/graphs.md", "2,048 launches", "kernel never runs")


def test_q87_one_executable_graph_in_two_streams() -> None:
    def together(*us: float) -> bool:
        graphs = [tb.Graph([kernel(each, None)]).launch(k) for k, each in enumerate(us)]
        return predicted(*graphs).concurrent(0, 1)

    assert not together(1000, 1000)
    assert together(1000, 1000.001)


@pytest.mark.parametrize(("trigger", "together"), [(None, False), (0.0, True)])
def test_q88_dependent_launch_without_a_trigger(trigger: float | None, together: bool) -> None:
    trace = predicted(kernel(trigger=trigger), kernel(programmatic=True))
    assert (starts(trace)[1] < ends(trace)[0]) is together


def test_q89_event_query_during_a_capture() -> None:
    says("explanation/graphs.md", "`cudaEventQuery` of another event", "*relaxed* allows them")


@pytest.mark.parametrize(("threads", "fits"), [(512, False), (256, True)])
def test_q90_156_registers_on_a_b300(threads: int, fits: bool) -> None:
    b300 = tb.describe(compute_capability="10.3", sms=152)
    kernel_ = tb.Launch(1, threads, 156)
    if fits:
        assert tb.capacity(kernel_, b300).per_sm.max() == 1
    else:
        with pytest.raises(ValueError, match="registers: 156 per thread with 512 threads"):
            tb.capacity(kernel_, b300)


@pytest.mark.parametrize(("registers", "blocks"), [(69, 7), (48, 10), (40, 12)])
def test_q91_blocks_of_128_threads_on_an_h200(registers: int, blocks: int) -> None:
    assert tb.capacity(tb.Launch(1, 128, registers), "h200").per_sm.max() == blocks


def test_q92_two_processes_with_and_without_mps() -> None:
    small = tb.Sequence([kernel(5000, blocks=8)])
    full = tb.Sequence([tb.Launch(264, 1024, 32, duration=5e-3)])
    assert tb.predict_processes([small, small], "h200").makespan > 1e-2
    assert tb.predict_processes([small, small], "h200", mps=True).makespan < 6e-3
    assert tb.predict_processes([full, small], "h200", mps=True).makespan > 1e-2


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (tb.HostFunction(1e-6), "CUDA allows none in the body"),
        ({"bytes": 4, "kind": "d2h", "pinned": False}, "pinned"),
    ],
)
def test_q93_nodes_of_a_conditional_body(node: object, message: str) -> None:
    given = tb.Copy(**node) if isinstance(node, dict) else node
    with pytest.raises(ValueError, match=message):
        tb.Conditional(tb.Graph([tb.Launch(1, 64, 32, duration=1e-5), given]))  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("capability", "sms", "percentage", "seen"), [("7.5", 40, 10, 4), ("9.0", 132, 25, 32)]
)
def test_q30_sms_of_a_client_of_mps(capability: str, sms: int, percentage: int, seen: int) -> None:
    gpu = tb.describe(compute_capability=capability, sms=sms)
    assert tb.mps_sms(gpu, percentage) == seen
