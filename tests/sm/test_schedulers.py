"""Warp schedulers against literal ones, written in Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from helpers import examples
from sm.machines import small, workload, workloads
from tbsched.sm.running import Scheduler, simulate
from tbsched.sm.workloads import LOAD, NONE, Workload

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


LITERAL: dict[str, Callable[[int, int, int], Scheduler]] = {
    "round_robin": RoundRobin,
    "greedy_oldest": GreedyThenOldest,
    "cta_aware": CtaAware,
    "locality": Locality,
    "bank_parallel": BankParallel,
}


@pytest.mark.parametrize("name", LITERAL)
@settings(max_examples=examples(30), deadline=None)
@given(kernel=workloads())
def test_scheduler_is_the_literal_one(name: str, kernel: Workload) -> None:
    fast, slow = simulate(kernel, name, GPU), simulate(kernel, LITERAL[name], GPU)
    assert dict(fast.counts) == dict(slow.counts)
    assert slow.scheduler == LITERAL[name].__name__  # type: ignore[attr-defined]


def test_two_level_does_not_know_blocks() -> None:
    # Of blocks of three warps its groups of two warps are other ones than groups of blocks.
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
    with pytest.raises(ValueError, match="scheduler: owwl is unknown; there are round_robin, "):
        simulate(kernel, "owwl", GPU)
    with pytest.raises(TypeError, match=r"simulate\.scheduler: a name or a class is needed, got 3"):
        simulate(kernel, 3, GPU)  # type: ignore[arg-type]
