"""Laws that hold for every workload, scheduler and config."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from sm.machines import CONTROLLER, LINE, OWL, Row, small, workload, workloads
from tbsched.sm.parameters import Config
from tbsched.sm.results import Simulation
from tbsched.sm.running import schedulers, simulate
from tbsched.sm.workloads import ALSO, BARRIER, LOAD, NONE, STORE, Workload, fitted

NAMES = [row.name for row in schedulers()]
CONFIGS = st.builds(
    small,
    crossbar=st.integers(0, 1),
    l1_write_back=st.integers(0, 1),
    replay_all=st.integers(0, 1),
    strict_groups=st.integers(0, 1),
    refill_to_back=st.integers(0, 1),
    own_blocks=st.integers(0, 1),
    prefetch_absent=st.integers(0, 1),
    prefetch_stop=st.integers(0, 2),
    issue_width=st.integers(1, 2),
    pipeline_stages=st.integers(1, 5),
    fair_cycles=st.sampled_from([7, 1000]),
    l1_replacement=st.integers(0, 2),
    l2_replacement=st.integers(0, 2),
    hash_sets=st.integers(0, 1),
    l1_store_allocates=st.integers(0, 1),
    l1_miss_allocates=st.integers(0, 1),
    l1_line_cycles=st.sampled_from([0, 0, 1, 5]),
    hit_stages=st.integers(1, 9),
)
SECTORS = st.sampled_from([(1, 1), (2, 1), (4, 1), (4, 2), (4, 4)])  # of a line; fetched together


@settings(max_examples=examples(100), deadline=None)
@given(
    st.booleans().flatmap(lambda x: workloads(recorded=x)), st.sampled_from(NAMES), CONFIGS, SECTORS
)
def test_nothing_is_lost_and_nothing_is_done_twice(
    kernel: Workload, name: str, gpu: Config, sectors: tuple[int, int]
) -> None:
    gpu = gpu.changed(line_sectors=sectors[0], l2_fetch_sectors=sectors[1])
    # It raises where a command breaks a constraint, or where anything is under way at the end.
    found = simulate(kernel, name, gpu, checked=True)
    check_counts(kernel, found)
    check_blocks(kernel, found)
    again = simulate(kernel, name, gpu, warps=True)
    assert dict(again.counts) == dict(found.counts)
    assert np.array_equal(again.end, found.end)
    check_warps(kernel, again)


def check_warps(kernel: Workload, found: Simulation) -> None:
    """A warp can issue from time to time while its block is there, and else waits."""
    assert found.warps is not None
    rows = np.sort(found.warps, order=["core", "warp", "begin", "end"])
    assert (rows["begin"] <= rows["end"]).all()
    own = (rows["core"][1:] == rows["core"][:-1]) & (rows["warp"][1:] == rows["warp"][:-1])
    slot = found.config["issue_cycles"]
    assert (rows["begin"][1:] + slot >= rows["end"][:-1])[own].all()
    for block in range(kernel.blocks):
        inside = (rows["core"] == found.core[block]) & (rows["begin"] >= found.start[block])
        assert (inside & (rows["end"] <= found.end[block] + slot)).sum() >= kernel.warps_per_block
    # It issues one instruction in a slot.
    slots = (rows["end"] - rows["begin"]) // slot + 2
    assert kernel.instructions <= slots.sum()


def check_counts(kernel: Workload, found: Simulation) -> None:
    counts = found.counts
    rows = fitted(kernel, found.config["line_bytes"], found.config["line_sectors"])
    first = np.maximum.accumulate(np.where(rows.access != 2, np.arange(len(rows.access)), 0))
    kinds = rows.access[first]
    assert counts["instructions"] == kernel.instructions
    whole, fetched = found.config["line_sectors"], found.config["l2_fetch_sectors"]
    sectors = np.full(len(kinds), whole)
    if kernel.sectors is not None:
        sectors = np.array([int(mask).bit_count() for mask in rows.sectors], int)
    assert counts["l1_loads"] == sectors[kinds == LOAD].sum()
    assert counts["l1_stores"] == sectors[kinds == STORE].sum()
    # A miss brings sectors, or comes while they are on their way; each is asked for once.
    assert counts["l1_misses"] - counts["l1_merges"] == counts["l2_reads"]
    assert counts["fills"] <= counts["l2_reads"] <= whole * counts["fills"]
    assert counts["l2_writes"] == counts["l1_writes"]
    asked = counts["l2_misses"] - counts["l2_merges"]
    assert counts["dram_reads"] <= asked <= fetched * counts["dram_reads"]
    assert counts["l1_store_hits"] <= counts["l1_stores"]
    assert counts["l2_write_hits"] <= counts["l2_writes"]
    assert counts["row_hits"] + counts["activates"] >= counts["dram_reads"] + counts["dram_writes"]
    assert counts["prefetch_fills"] <= counts["prefetches"]
    assert counts["bank_busy_cycles"] <= counts["bank_cycles"]
    idle = counts["memory_block_cycles"] + counts["no_warp_cycles"]
    assert idle <= counts["cycles"] * found.config["cores"]
    width, cycles = found.config["issue_width"], found.config["issue_cycles"]
    slots = (counts["cycles"] // cycles + 1) * width * found.config["cores"]
    assert counts["instructions"] + counts["replays"] <= slots


def check_blocks(kernel: Workload, found: Simulation) -> None:
    assert len(found.core) == kernel.blocks
    assert ((found.core >= 0) & (found.core < found.config["cores"])).all()
    assert (found.start >= 0).all()
    assert (found.end > found.start).all()
    # No core has more blocks at a time than places.
    places = min(found.config["warps_per_core"] // kernel.warps_per_block, 4)
    for core in range(found.config["cores"]):
        on_core = found.core == core
        for start in found.start[on_core]:
            resident = (found.start[on_core] <= start) & (found.end[on_core] > start)
            assert np.count_nonzero(resident) <= places


def test_shortest_miss_takes_120_cycles() -> None:
    def latency(core: int, address: int) -> float:
        one = workload([[(0, LOAD, address // LINE)]])
        return simulate(one, "round_robin", cores=[core]).latency

    found = [latency(core, CONTROLLER * slice_) for core in range(28) for slice_ in range(8)]
    assert (min(found), max(found)) == (120, 152)


def test_lone_miss_takes_what_its_parts_take() -> None:
    # A crossbar has two links: a flit there, two flits back. Nothing else is under way.
    gpu = OWL.changed(crossbar=1)
    found = simulate(workload([[(0, LOAD, 0)]]), "round_robin", gpu)
    network = 2 * (2 + 0) + 2 * (2 + 1)  # core cycles, two to a network cycle
    dram = 12 + 10 + 4  # of 800 MHz: t_rcd, t_cl and the burst
    assert found.latency == pytest.approx(network + dram * 1300 / 800 + 62, abs=3)


def test_compute_alone_fills_every_slot() -> None:
    busy = workload([[(100, NONE, 0)]] * 8)
    one = OWL.changed(cores=1)
    assert simulate(busy, "round_robin", one).counts["cycles"] == pytest.approx(3200, rel=0.01)
    # A warp alone waits for the pipeline: five slots of four cycles for each.
    alone = workload([[(100, NONE, 0)]])
    assert simulate(alone, "round_robin", one).counts["cycles"] == 100 * 20


def test_warps_of_a_block_meet_at_a_barrier() -> None:
    one = OWL.changed(cores=1)  # an instruction of a warp takes 20 cycles

    def cycles(*warps: list[Row]) -> int:
        return simulate(workload([*warps], len(warps)), "round_robin", one).counts["cycles"]

    slow, fast = (
        [(1000, NONE, 0), (0, BARRIER, 0), (10, NONE, 0)],
        [(0, BARRIER, 0), (500, NONE, 0)],
    )
    assert cycles(slow, fast) == pytest.approx((1001 + 500) * 20, abs=40)
    assert cycles(slow, fast[1:]) == pytest.approx(1011 * 20, abs=40)  # one that has ended
    assert cycles(slow, [*fast, *fast]) == pytest.approx((1001 + 1001) * 20, abs=40)
    # Another block does not wait.
    found = simulate(workload([slow, fast[:1]]), "round_robin", one)
    assert found.end[1] < 100


def test_lines_of_an_instruction_take_l1_one_after_the_other() -> None:
    gpu = OWL.changed(cores=1, l1_line_cycles=4)
    lines = [(0, LOAD, 0), *[(0, ALSO, line) for line in range(1, 16)]]
    warm = workload([lines * 11])
    # Sixteen slots of four cycles each, then five slots to the next instruction.
    alone = simulate(warm, "round_robin", gpu).counts["cycles"]
    plain = simulate(warm, "round_robin", gpu.changed(l1_line_cycles=0)).counts["cycles"]
    assert alone - plain == pytest.approx(10 * 16 * 4, abs=16)
    both = simulate(workload([lines * 11] * 2), "round_robin", gpu).counts["cycles"]
    assert both - alone == pytest.approx(0.76 * 10 * 16 * 4, rel=0.3)


def test_place_that_a_miss_takes_may_be_lost_again() -> None:
    # L1 has one line. Line 2 is asked for before line 0, but comes after it: L2 has line 0.
    tiny = OWL.changed(cores=1, l1_bytes=LINE, l1_ways=1)
    both = [(0, LOAD, 2), (0, ALSO, 0)]
    kernel = workload([[(0, LOAD, 0), (0, LOAD, 1), *both, (0, LOAD, 2)]])
    for miss_allocates, misses in ((0, 4), (1, 5)):
        gpu = tiny.changed(l1_miss_allocates=miss_allocates)
        assert simulate(kernel, "round_robin", gpu).counts["l1_misses"] == misses


def test_blocks_run_where_they_are_told_to() -> None:
    cores = [3, 1, 3, 0]
    found = simulate(workload([[(5, NONE, 0)]] * 4), "round_robin", cores=cores)
    assert found.core.tolist() == cores
    with pytest.raises(ValueError, match=r"cores_of: 28 is outside 0\.\.27"):
        simulate(workload([[(5, NONE, 0)]]), cores=[28])
    with pytest.raises(
        ValueError, match=r"cores_of: \d+ cores; one for each of \d+ blocks is needed"
    ):
        simulate(workload([[(5, NONE, 0)]]), cores=[1, 2])


def test_workload_without_blocks_takes_no_time() -> None:
    none = Workload("none", 1, 1, *([np.array([0])] + [np.array([], np.int64)] * 3))
    assert simulate(none).counts["cycles"] == 0
