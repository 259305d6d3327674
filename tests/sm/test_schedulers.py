"""Warp schedulers against literal ones, written in Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from helpers import examples
from sm.issue_order.model import Last, unbroken_round_robin
from sm.machines import small, workload, workloads
from tbsched.sm.running import Scheduler, simulate
from tbsched.sm.workloads import ALSO, LOAD, NONE, STORE, Workload

# So much that no access has to be tried again.
ROOM = {"l1_mshrs": 4096, "store_entries": 1024}
GPU = small()  # whose groups have two warps or more


def bits(warps: int) -> list[int]:
    return [warp for warp in range(64) if warps >> warp & 1]


def turn(among: list[int], last: int) -> int:
    """The next one behind the last one."""
    return min(among, key=lambda warp: (warp - last - 1) % 64)


class RoundRobin:
    def __init__(self, core: int, places: int, warps: int) -> None:
        self.core, self.places, self.warps = core, places, warps
        self.last = 63

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        self.last = turn(bits(ready), self.last)
        return self.last


class GreedyThenOldest(RoundRobin):
    def __init__(self, core: int, places: int, warps: int) -> None:
        super().__init__(core, places, warps)
        self.started: list[int] = []

    def block_started(self, place: int) -> None:
        self.started = [other for other in self.started if other != place] + [place]

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        if self.last not in bits(ready):
            age = self.started.index
            self.last = min(bits(ready), key=lambda w: (age(w // self.warps), w))
        return self.last


class Grouped(RoundRobin):
    """Blocks in groups, as Algorithm 1 forms them."""

    def __init__(self, core: int, places: int, warps: int) -> None:
        super().__init__(core, places, warps)
        blocks = 1
        while blocks * warps < GPU["group_warps"] and blocks < places:
            blocks += 1
        groups = places // blocks
        self.groups = [
            [w for w in range(places * warps) if min(w // warps // blocks, groups - 1) == group]
            for group in range(groups)
        ]
        self.lasts = [63] * groups

    def from_group(self, group: int, ready: int) -> int:
        among = [warp for warp in self.groups[group] if ready >> warp & 1]
        if not among:
            return -1
        self.lasts[group] = turn(among, self.lasts[group])
        return self.lasts[group]


class CtaAware(Grouped):
    current = 0

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        count = len(self.groups)
        active = bits(resident & ~waiting)
        for _ in range(count):
            if set(active) & set(self.groups[self.current]):
                break
            self.current = (self.current + 1) % count
        order = [(self.current + step) % count for step in range(count)]
        return next(w for w in (self.from_group(group, ready) for group in order) if w >= 0)


class Locality(Grouped):
    apart = False

    def __init__(self, core: int, places: int, warps: int) -> None:
        super().__init__(core, places, warps)
        count = len(self.groups)
        shift = core if self.apart else 0
        self.order = sorted(range(count), key=lambda group: (group - shift) % count)
        self.seen: set[int] = set()
        self.new: set[int] = set()

    def block_started(self, place: int) -> None:
        if place not in self.seen:
            self.seen.add(place)
            return
        self.new.add(place)
        for group, warps in enumerate(self.groups):
            places = {warp // self.warps for warp in warps} & self.seen
            if place in places and places <= self.new:
                self.new -= places
                self.order.remove(group)
                self.order.append(group)

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        return next(w for w in (self.from_group(group, ready) for group in self.order) if w >= 0)


class BankParallel(Locality):
    apart = True


class Unbroken(RoundRobin):
    """The model of the recordings, for each of the warps that share an issuer."""

    width, slot = 1, 4

    def __init__(self, core: int, places: int, warps: int) -> None:
        super().__init__(core, places, warps)
        self.lasts, self.at = [-1] * self.width, [-100] * self.width
        self.cycle, self.asked = -1, 0

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        if cycle != self.cycle:
            self.cycle, self.asked = cycle, 0
        while self.asked < self.width:
            issuer, self.asked = self.asked, self.asked + 1
            among = [warp for warp in bits(ready) if warp % self.width == issuer]
            if among:
                last = Last(self.lasts[issuer], cycle - self.at[issuer] == self.slot)
                self.lasts[issuer], self.at[issuer] = unbroken_round_robin(among, last), cycle
                return self.lasts[issuer]
        return -1


class Cycling(RoundRobin):
    """Sections 9.4.1 and 9.4.2 of the thesis, where no warp waits for another: see ROOM."""

    width = 1

    def __init__(self, core: int, places: int, warps: int) -> None:
        super().__init__(core, places, warps)
        self.pointed: dict[int, int | None] = dict.fromkeys(range(self.width))
        self.order = list(range(self.width))
        self.left: list[int] = []  # schedulers that have not had their turn in this cycle
        self.issued: set[int] = set()
        self.cycle = -1

    def assign(self, scheduler: int, resident: int) -> None:
        self.pointed[scheduler] = None
        free = [warp for warp in bits(resident) if warp not in self.pointed.values()]
        if free:
            self.last = turn(free, self.last)
            self.pointed[scheduler] = self.last

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        if cycle != self.cycle:
            failed = [each for each in self.order if each not in self.issued]
            self.order = failed + [each for each in self.order if each in self.issued]
            self.cycle, self.left, self.issued = cycle, list(self.order), set()
            for scheduler in self.order:
                if self.pointed[scheduler] not in bits(resident):
                    self.assign(scheduler, resident)
        while self.left:
            scheduler = self.left.pop(0)
            warp = self.pointed[scheduler]
            if warp is not None and ready >> warp & 1:
                self.issued.add(scheduler)
                self.assign(scheduler, resident)
                return warp
        return -1


LITERAL: dict[str, Callable[[int, int, int], Scheduler]] = {
    "round_robin": RoundRobin,
    "greedy_oldest": GreedyThenOldest,
    "unbroken_round_robin": Unbroken,
    "cycling": Cycling,
    "cta_aware": CtaAware,
    "locality": Locality,
    "bank_parallel": BankParallel,
}


@pytest.mark.parametrize("name", LITERAL)
@settings(max_examples=examples(30), deadline=None)
@given(kernel=workloads())
def test_scheduler_is_the_literal_one(name: str, kernel: Workload) -> None:
    gpu = GPU.changed(**ROOM) if LITERAL[name] is Cycling else GPU
    fast, slow = simulate(kernel, name, gpu), simulate(kernel, LITERAL[name], gpu)
    assert dict(fast.counts) == dict(slow.counts)
    assert slow.scheduler == LITERAL[name].__name__  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("literal", [Unbroken, Cycling])
@settings(max_examples=examples(30), deadline=None)
@given(kernel=workloads())
def test_each_issuer_is_the_literal_one(
    literal: type[Unbroken] | type[Cycling], width: int, kernel: Workload
) -> None:
    """A warp can issue in the slot after the one in which it issued."""
    gpu = small(issue_width=width, issue_cycles=1, pipeline_stages=1, hit_stages=1)
    if literal is Cycling:
        gpu = gpu.changed(**ROOM)
    name = "cycling" if literal is Cycling else "unbroken_round_robin"
    wide = type(literal.__name__, (literal,), {"width": width, "slot": 1})
    assert dict(simulate(kernel, name, gpu).counts) == dict(simulate(kernel, wide, gpu).counts)


def test_cycling_does_not_wait_for_a_warp_that_waits_for_others() -> None:
    """Few MSHRs: one is free for a warp that waits for its turn, and the warp in turn has none.

    Found by Hypothesis, and shrunk to twenty rows: no warp would issue any more.
    """
    kernel = Workload(
        "x", 2, 64, [0, 3, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20],
        [0, 0, 0, 2, *[0] * 16],
        [0, 0, 0, 0, ALSO, ALSO, 0, 0, 0, STORE, 0, 0, 0, STORE, ALSO, ALSO, 0, 0, 0, STORE],
        [*[0] * 13, 256, 768, 64, 0, 0, 0, 64],
    )  # fmt: skip
    gpu = small(issue_width=1, issue_cycles=1, pipeline_stages=1, hit_stages=1)
    counts = [simulate(kernel, name, gpu).counts for name in ("cycling", "round_robin")]
    assert counts[0]["instructions"] == counts[1]["instructions"] == kernel.instructions


def test_cycling_waits_for_the_warp_whose_turn_it_is_and_round_robin_does_not() -> None:
    """One warp loads, eight compute: with two issuers one goes on, with one nobody does."""
    kernel = workload([[(0, LOAD, 0), (20, NONE, 0)]] + [[(20, NONE, 0)]] * 7)

    def cycles(name: str, width: int) -> int:
        gpu = small(cores=1, issue_width=width, warps_per_core=8, blocks_per_core=8)
        return simulate(kernel, name, gpu).counts["cycles"]

    loaded = simulate(workload([[(0, LOAD, 0)]]), "cycling", small(cores=1)).counts["cycles"]
    assert cycles("cycling", 1) > loaded + 4 * 8 * 19
    assert cycles("cycling", 1) > cycles("round_robin", 1)
    assert cycles("cycling", 2) < cycles("cycling", 1)


@pytest.mark.parametrize("width", [1, 2, 4])
@settings(max_examples=examples(30), deadline=None)
@given(kernel=workloads(recorded=True))
def test_warps_at_a_barrier_do_not_hold_up_the_circle(width: int, kernel: Workload) -> None:
    gpu = small(issue_width=width, line_bytes=128, line_sectors=4, bus_bytes=4)
    found = simulate(kernel, "cycling", gpu)
    assert (
        found.counts["instructions"] == simulate(kernel, "round_robin", gpu).counts["instructions"]
    )


def test_two_level_does_not_know_blocks() -> None:
    # With blocks of three warps, its groups of two warps are not groups of blocks.
    rows = [[(3, LOAD, 4 * warp), (2, NONE, 0), (1, LOAD, warp)] for warp in range(12)]
    kernel = workload(rows, 3)
    found = {name: simulate(kernel, name, GPU) for name in ("two_level", "cta_aware")}
    assert found["two_level"].end.tolist() != found["cta_aware"].end.tolist()


def test_fair_gives_every_group_its_turn() -> None:
    gpu = small(cores=1, warps_per_core=4, group_warps=1, fair_cycles=100, blocks_per_core=4)
    kernel = workload([[(1000, NONE, 0)]] * 4)
    spread = {}
    for name in ("locality", "fair"):
        ends = simulate(kernel, name, gpu.changed(pipeline_stages=1)).end
        spread[name] = int(ends.max() - ends.min())
    assert spread["fair"] < spread["locality"] / 4


class Wrong(RoundRobin):
    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        return waiting.bit_length() + 8


class Idle(RoundRobin):
    """Leaves slots empty now and then."""

    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        chosen = super().pick(ready, waiting, resident, cycle)
        return -1 if cycle % 8 else chosen


class Never(RoundRobin):
    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        return -1


class Failing(RoundRobin):
    def pick(self, ready: int, waiting: int, resident: int, cycle: int) -> int:
        raise ZeroDivisionError("mine")


def test_scheduler_cannot_issue_a_warp_that_is_not_ready() -> None:
    with pytest.raises(ValueError, match=r"picked warp 8 of core 0, which is not ready"):
        simulate(workload([[(1, LOAD, 0)]]), Wrong, GPU)


def test_scheduler_that_never_picks_a_warp_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scheduler\.pick: no warp was picked 1000000 times in a"):
        simulate(workload([[(1, LOAD, 0)]]), Never, GPU)


def test_object_that_cannot_pick_is_no_scheduler() -> None:
    with pytest.raises(TypeError, match=r"simulate\.scheduler: an object with pick is needed"):
        simulate(workload([[(1, LOAD, 0)]]), lambda *_: None, GPU)  # type: ignore[arg-type,return-value]


def test_scheduler_that_picks_no_number_is_told_so() -> None:
    class Forgetful(RoundRobin):
        def pick(self, *_: int) -> int:
            return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"scheduler\.pick: the number of a warp .* got None"):
        simulate(workload([[(1, LOAD, 0)]]), Forgetful, GPU)


def test_scheduler_may_leave_a_slot_empty_and_its_errors_arrive() -> None:
    kernel = workload([[(9, NONE, 0)]] * 4)
    assert simulate(kernel, Idle, GPU).ipc < simulate(kernel, RoundRobin, GPU).ipc
    with pytest.raises(ZeroDivisionError, match="mine"):
        simulate(kernel, Failing, GPU)
    with pytest.raises(ValueError, match="scheduler: 'owwl' is unknown; there are round_robin, "):
        simulate(kernel, "owwl", GPU)
    with pytest.raises(TypeError, match=r"simulate\.scheduler: a name or a class is needed, got 3"):
        simulate(kernel, 3, GPU)  # type: ignore[arg-type]
