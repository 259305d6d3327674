"""Questions that people asked in public, each as a call, and the answer as an assertion.

The questions and their answers were collected first, in our own words; docs/explanation/
public-questions.md has where from. A GPU that tbsched has no file of is described.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tbsched as tb

KB = 1024
B200 = tb.describe(compute_capability="10.0", sms=148)


def one_per_sm(blocks: int, name: str, stream: int = 0) -> tb.Launch:
    """A persistent kernel of which an SM of Hopper holds one block."""
    return tb.Launch(blocks, 256, 128, 200 * KB, stream=stream, duration=1e-3, name=name)


def on_sm(launch: tb.Launch, device: str | tb.DeviceSpec) -> int:
    """How many blocks of a kernel an SM holds."""
    return int(tb.capacity(launch, device).per_sm.max())


def test_q01_grid_barrier_of_128_blocks_on_a_p100() -> None:
    p100 = tb.describe(compute_capability="6.0", sms=56)
    assert tb.coresident([tb.Launch(128, 1024, 32)], p100, fixes=False).safe is False
    assert tb.coresident([tb.Launch(56, 1024, 32)], p100, fixes=False).safe is True
    assert tb.capacity(tb.Launch(128, 1024, 32), p100).blocks == 112


def test_q02_kernel_sized_for_132_sms_on_an_h20_of_78() -> None:
    h20 = tb.describe(compute_capability="9.0", sms=78)
    found = tb.coresident([one_per_sm(132, "moe")], h20, fixes=False)
    assert (found.safe, found.waiting) == (False, 132 - 78)
    assert tb.coresident([one_per_sm(78, "moe")], h20, fixes=False).safe is True


def test_q03_schedulers_that_come_before_the_workers_of_a_megakernel() -> None:
    workers = tb.Launch(128, 256, 128, 213 * KB, name="workers")
    schedulers = tb.Launch(80, 32, 64, name="schedulers")
    found = tb.coresident([workers, schedulers], B200, fixes=False)
    assert (found.safe, 128 - found.waiting) == (False, 68)
    packed = tb.Launch(20, 128, 64, name="schedulers")
    assert tb.coresident([workers, packed], B200, fixes=False).safe is True


def test_q04_more_than_128_workers_of_a_megakernel() -> None:
    workers = tb.Launch(144, 256, 128, 213 * KB, name="workers")
    schedulers = tb.Launch(16, 32, 64, name="schedulers")
    found = tb.coresident([workers, schedulers], B200)
    assert (found.safe, found.waiting) == (False, 12)
    # The workaround: the schedulers wait until all workers have started.
    assert "order" in {fix.kind for fix in found.fixes}


def test_q05_clusters_of_eight_use_120_sms_of_an_h100() -> None:
    gemm = tb.Launch(128, 384, 168, 200 * KB, cluster=8)
    assert tb.capacity(gemm, "h100").blocks == 120


def test_q06_single_blocks_use_all_132_sms_of_an_h100() -> None:
    assert tb.capacity(tb.Launch(132, 384, 168, 200 * KB), "h100").blocks == 132


def test_q07_gemm_and_nccl_reach_91_percent_of_the_sms() -> None:
    gemm = tb.Launch(132, 384, 168, 200 * KB, cluster=4)
    assert round(100 * tb.capacity(gemm, "h200").blocks / 132) == 91


def test_q08_blocks_of_nccl_on_an_sm_of_an_a100() -> None:
    nccl = tb.Launch(1, 640, 96)
    assert on_sm(nccl, "a100") == 1
    assert "registers" in tb.capacity(nccl, "a100").limits[0].causes


def test_q09_1024_threads_of_96_registers() -> None:
    assert on_sm(tb.Launch(1, 640, 96), "v100") == 1
    with pytest.raises(ValueError, match="registers"):
        tb.capacity(tb.Launch(1, 1024, 96), "v100")


def test_q10_small_kernel_waits_for_a_gemm_that_fills_all_sms() -> None:
    gemm = one_per_sm(132, "gemm")
    small = tb.Launch(1, 640, 96, stream=1, duration=1e-4, name="send")
    trace = tb.predict(tb.Sequence([gemm, small]), "h100")
    assert not trace.concurrent(0, 1)
    less = tb.predict(tb.Sequence([replace(gemm, blocks=131), small]), "h100")
    assert less.concurrent(0, 1)


@pytest.mark.parametrize(("gemm", "communication"), [(112, 20), (36, 96)])
def test_q11_q12_sms_divided_between_gemm_and_communication(gemm: int, communication: int) -> None:
    launches = [one_per_sm(gemm, "gemm"), one_per_sm(communication, "dispatch", 1)]
    assert tb.coresident(launches, "h100").safe is True
    trace = tb.predict(tb.Sequence(launches), "h100")
    assert not set(trace[0].smid.tolist()) & set(trace[1].smid.tolist())


@pytest.mark.parametrize(
    ("capability", "least", "multiple"), [("9.0", 8, 8), ("8.0", 4, 2), ("7.0", 2, 2)]
)
def test_q13_sizes_of_partitions(capability: str, least: int, multiple: int) -> None:
    spec = tb.describe(compute_capability=capability, sms=80)
    assert tb.split_counts(spec, 1).sms == tb.split_counts(spec, 1).minimum == least
    assert tb.split_counts(spec, least + 1).sms == least + multiple


def test_q14_22_of_142_sms() -> None:
    l40s = tb.describe(compute_capability="8.9", sms=142)
    counts = tb.split_counts(l40s, 22, groups=1)
    assert (counts.sms, counts.least_rest) == (22, 120)


def test_q15_kernel_of_the_legacy_stream_between_two_others() -> None:
    def kernel(stream: int | str) -> tb.Launch:
        return tb.Launch(1, 32, 16, stream=stream, duration=1e-4)  # type: ignore[arg-type]

    trace = tb.predict(tb.Sequence([kernel(1), kernel("legacy"), kernel(1)]), "h200")
    assert not any(trace.concurrent(a, b) for a, b in ((0, 1), (1, 2), (0, 2)))


def eight_streams(between: list[tb.HostCall], dummy: int | str | None) -> tb.Trace:
    """Eight streams of a long kernel each, and a call or a small kernel behind each launch."""
    events: list[object] = []
    for stream in range(8):
        events.append(tb.Launch(1, 64, 32, stream=stream, duration=1e-3))
        if dummy is not None:
            events.append(tb.Launch(1, 32, 16, stream=dummy, duration=1e-6))  # type: ignore[arg-type]
        events += between
    return tb.predict(tb.Sequence(events), "h200", host=0.0)  # type: ignore[arg-type]


def waves(trace: tb.Trace) -> int:
    """How many of the eight kernels run one after the other, in milliseconds."""
    return round(1e3 * trace.makespan)


def test_q16_kernels_of_the_default_stream_serialise_eight_streams() -> None:
    assert waves(eight_streams([], "legacy")) == 8
    assert waves(eight_streams([], 8)) == 1


def test_q17_cuda_malloc_between_launches() -> None:
    assert waves(eight_streams([tb.HostCall("cudaMalloc", 3e-6)], None)) == 1


def test_q18_cuda_free_between_launches() -> None:
    assert waves(eight_streams([tb.HostCall("cudaFree", 3e-6, waits="device")], None)) == 8


def test_q19_kernel_that_spins_until_a_kernel_that_is_not_loaded() -> None:
    spins = tb.Launch(1, 1, 16, stream=0, duration=1e-3, name="k1")
    sets = tb.Launch(1, 1, 16, stream=1, duration=1e-3, name="k2", first_use=True)
    found = tb.coresident([spins, sets], "h200")
    assert (found.safe, found.cause) == (False, "first_use")
    assert any("CUDA_MODULE_LOADING=EAGER" in fix.text for fix in found.fixes)


def two_priorities(waves: int) -> tb.Trace:
    low = tb.Launch(132 * waves, 1024, 64, stream=0, duration=1e-3)
    high = tb.Launch(1, 1024, 64, stream=1, priority=-5, duration=1e-3)
    return tb.predict(tb.Sequence([low, high]), "h200", issue_times=[0.0, 1e-4])


def test_q20_high_priority_does_not_preempt() -> None:
    assert two_priorities(1)[1].start_ns.min() >= 1e6  # type: ignore[union-attr]


def test_q21_high_priority_comes_before_pending_blocks() -> None:
    trace = two_priorities(3)
    assert trace[1].start_ns.min() < 1.1e6  # type: ignore[union-attr]
    assert trace[0].end_ns.max() > 3e6  # type: ignore[union-attr]


def test_q22_grids_at_a_time() -> None:
    kernels = [tb.Launch(1, 32, 16, stream=k, duration=1.0) for k in range(129)]
    trace = tb.predict(tb.Sequence(kernels), "h200", connections=32)
    starts = np.array([placement.start_ns[0] for placement in trace])  # type: ignore[index]
    assert (starts < 1e9).sum() <= 128
    few = tb.predict(tb.Sequence(kernels[:8]), "h200")
    assert all(few.concurrent(0, k) for k in range(1, 8))


def test_q23_launches_that_wait_in_a_stream() -> None:
    def called(streams: int) -> list[float]:
        kernels = [tb.Launch(1, 32, 16, stream=k % streams, duration=1e-2) for k in range(1200)]
        times = tb.predict(tb.Sequence(kernels), "h200", host=0.0).issue_times
        assert times is not None
        return list(np.diff(times))

    one = next(k for k, gap in enumerate(called(1)) if gap > 1e-3)
    assert 1000 <= one <= 1100
    assert max(called(3)) < 1e-3  # each stream takes as many


def test_q24_host_functions_of_two_streams() -> None:
    functions = [tb.HostFunction(1e-3, stream=k) for k in range(2)]
    kernel = tb.Launch(1, 32, 16, stream=3, duration=1e-6)
    times = tb.predict(tb.Sequence([*functions, kernel]), "h200").transfer_ns
    assert times is not None
    assert times[1, 0] >= times[0, 0] + 1e6


def test_q25_values_that_streams_wait_for_may_hang() -> None:
    work = tb.Launch(1, 64, 16, stream=1, duration=1e-5)
    program = tb.Sequence([tb.WaitValue("flag", stream=0), work, tb.WriteValue("flag", stream=1)])
    assert tb.predict(program, "h200", connections=1).hang is not None
    assert tb.predict(program, "h200").hang is None


def test_q26_wait_for_an_event_that_nobody_has_recorded() -> None:
    first = tb.Launch(1, 32, 16, stream=0, duration=1e-3)
    second = tb.Launch(1, 32, 16, stream=1, duration=1e-3)
    events = [first, tb.WaitEvent(0, stream=1), second, tb.RecordEvent(0, stream=0)]
    assert tb.predict(tb.Sequence(events), "h200").concurrent(0, 1)


def collectives(*orders: str) -> tb.RankCoresidency:
    """Two large collectives in two streams, in an order for each rank."""
    events = [
        tb.Launch(
            100, 640, 96, stream="ab".index(name), gpu=rank, host=rank, meets=name, duration=1e-4
        )
        for rank, order in enumerate(orders)
        for name in order
    ]  # fmt: skip
    return tb.coresident(tb.Sequence(events), ["h100", "h100"])


def test_q27_two_communicators_in_different_orders() -> None:
    found = collectives("ab", "ba")
    assert found.safe is False
    assert "order" in {fix.kind for fix in found.fixes}
    assert collectives("ab", "ab").safe is True


def test_q28_decoupled_look_back_by_block_number() -> None:
    scan = tb.Launch(10_000, 256, 32, duration=1e-5, meets="scan", in_block_order=True)
    assert tb.predict(tb.Sequence([scan]), "h100").hang is None


def test_q29_largest_cooperative_grid() -> None:
    kernel = tb.Launch(1, 64, 16, cooperative=True)
    most = on_sm(tb.Launch(1, 64, 16), "h100") * 132
    assert most == 32 * 132
    tb.predict(tb.Sequence([replace(kernel, blocks=most)]), "h100")
    with pytest.raises(ValueError, match=f"{most}"):
        tb.predict(tb.Sequence([replace(kernel, blocks=most + 1)]), "h100")


def test_q32_occupancy_of_768_threads_of_36_registers() -> None:
    mx150 = tb.describe(compute_capability="6.1", sms=3)
    assert on_sm(tb.Launch(1, 768, 36), mx150) * 768 / 2048 == 0.75


def test_q33_warps_are_allocated_in_fours() -> None:
    assert on_sm(tb.Launch(1, 224, 92), "a100") == 2


@pytest.mark.parametrize(
    ("threads", "registers", "blocks", "occupancy"),
    [(128, 30, 16, 1.0), (32, 29, 32, 0.5), (256, 34, 6, 0.75), (64, 32, 32, 1.0)],
    ids=["q34", "q35", "q36", "q37"],
)
def test_q34_to_q37_occupancy(threads: int, registers: int, blocks: int, occupancy: float) -> None:
    found = on_sm(tb.Launch(1, threads, registers), "a100")
    assert found == blocks
    assert found * threads / 2048 == occupancy


@pytest.mark.parametrize(("device", "memory"), [("a100", 164), ("rtx3090", 100), ("h100", 228)])
def test_q38_shared_memory_of_an_sm(device: str, memory: int) -> None:
    # A block takes 1 KB more.
    assert on_sm(tb.Launch(1, 32, 16, 19 * KB), device) == min(memory // 20, 16)
    assert tb.device(device).shared_memory_configurations[-1] == memory * KB


def test_q39_tiles_of_a_matrix_product_on_108_sms() -> None:
    def waves(tiles: int) -> int:
        tile = tb.Launch(tiles, 256, 200, 160 * KB, duration=1e-3)
        return round(1e3 * tb.predict(tb.Sequence([tile]), "a100").makespan)

    assert (waves(98), waves(108), waves(109)) == (1, 1, 2)


def test_q40_blocks_are_started_one_by_one_not_in_waves() -> None:
    durations = [1e-3] * 131 + [1e-4] + [1e-3]
    kernel = tb.Launch(133, 1024, 64, duration=tuple(durations))
    start = tb.predict(tb.Sequence([kernel]), "h200")[0].start_ns
    assert start is not None
    assert start[132] < 2e5


def programmatic(shared: int) -> tb.Trace:
    first = tb.Launch(132, 384, 64, shared, stream=0, duration=1e-3, trigger=1e-5)
    second = replace(first, programmatic=True, trigger=None)
    return tb.predict(tb.Sequence([first, second]), "h100")


def test_q41_gemm_that_is_launched_early_finds_no_shared_memory() -> None:
    assert not programmatic(200 * KB).concurrent(0, 1)
    assert programmatic(20 * KB).concurrent(0, 1)


def test_q42_kernels_that_fill_the_gpu_do_not_overlap_and_copies_do() -> None:
    events: list[tb.Copy | tb.Launch] = []
    for stream in range(4):
        events.append(tb.Copy(1 << 24, "h2d", stream=stream))
        events.append(tb.Launch(264, 1024, 32, stream=stream, duration=5e-4))
        events.append(tb.Copy(1 << 24, "d2h", stream=stream))
    trace = tb.predict(tb.Sequence(events), "h200")
    assert not any(trace.concurrent(a, a + 1) for a in range(3))
    copies, kernel = trace.transfer_ns, trace[0]
    assert copies is not None
    assert kernel.start_ns is not None
    assert kernel.end_ns is not None
    second = copies[2]  # to the GPU, of the second stream
    assert second[0] < kernel.end_ns.max()
    assert second[1] > kernel.start_ns.min()


def test_q43_copy_from_pageable_memory_is_not_asynchronous() -> None:
    def returned(pinned: bool) -> float:
        copy = tb.Copy(1 << 24, "h2d", stream=0, pinned=pinned)
        kernel = tb.Launch(1, 32, 16, stream=1, duration=1e-6)
        times = tb.predict(tb.Sequence([copy, kernel]), "h200", host=0.0).issue_times
        assert times is not None
        return times[0]

    assert returned(pinned=True) < 1e-4 < returned(pinned=False)


def test_q44_gemm_of_128_blocks_beside_one_block_of_nccl_on_142_sms() -> None:
    gpu = tb.describe(compute_capability="8.9", sms=142)
    gemm = tb.Launch(128, 256, 128, 90 * KB, stream=0, duration=1e-3)
    nccl = tb.Launch(1, 640, 96, stream=1, duration=1e-3)
    trace = tb.predict(tb.Sequence([gemm, nccl]), gpu)
    assert not set(trace[0].smid.tolist()) & set(trace[1].smid.tolist())
    assert trace.concurrent(0, 1)


def test_q45_streams_that_share_the_eight_channels() -> None:
    assert tb.device("h200").hardware_queues == 8
    depth_first = [
        tb.Launch(1, 32, 16, stream=k, duration=1e-3) for k in range(12) for _ in range(2)
    ]
    few = tb.predict(tb.Sequence(depth_first), "h200")
    many = tb.predict(tb.Sequence(depth_first), "h200", connections=32)
    assert few.makespan > many.makespan


def test_q46_nodes_of_a_graph_in_one_stream_run_at_the_same_time() -> None:
    kernel = tb.Launch(8, 128, 32, duration=1e-3)
    graph = tb.Graph([kernel, kernel, kernel], edges=[(0, 2)])
    trace = tb.predict(tb.Sequence([graph.launch(stream=0)]), "h200")
    assert trace.concurrent(0, 1)
    assert not trace.concurrent(0, 2)


def test_q47_call_that_waits_for_the_device_between_collectives() -> None:
    def hangs(*between: str) -> bool:
        events: list[tb.Launch | tb.HostCall] = []
        for gpu, order in enumerate(("ab", "ba")):
            for name in order:
                events.append(
                    tb.Launch(
                        8, 640, 96, stream="ab".index(name), gpu=gpu, host=gpu, meets=name,
                        duration=1e-4,
                    )
                )  # fmt: skip
                calls = [tb.HostCall(k, 1e-5, waits="device", gpu=gpu, host=gpu) for k in between]
                events += calls
        return tb.predict(tb.Sequence(events), ["h100", "h100"]).hang is not None

    assert hangs("cudaFree")
    assert not hangs()


def test_q48_cluster_of_three() -> None:
    assert tb.capacity(tb.Launch(30, 256, 32, cluster=3), "h100").blocks >= 30


def test_q49_cluster_of_sixteen_on_an_h100() -> None:
    assert tb.capacity(tb.Launch(16, 256, 32, cluster=16), "h100").blocks >= 16
    assert "NonPortableClusterSizeAllowed" in (tb.Launch.__doc__ or "")


def test_q50_depth_first_launches_through_one_queue() -> None:
    kernels = [tb.Launch(1, 1, 16, stream=k, duration=1e-3) for k in range(4) for _ in range(4)]
    one = tb.predict(tb.Sequence(kernels), "h200", connections=1).makespan
    many = tb.predict(tb.Sequence(kernels), "h200", connections=32).makespan
    assert round(1e3 * many) == 4
    assert round(1e3 * one) == 13
