"""Whether a prediction can be: capacity and order, counted again from nothing but the trace.

Knows nothing of how SMs are chosen. Every block takes its part of the SM that it was put on, and
gives it back when it leaves; nothing may ever fall below zero.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Launch

# Policies that know of whole SMs only.
WHOLE_SMS = ("round_robin", "first_fit", "most_room")


def as_seen(spec: DeviceSpec, policy: str) -> DeviceSpec:
    """The device without what the policy does not know."""
    if policy not in WHOLE_SMS:
        return spec
    fewer = dataclasses.replace(
        spec.mechanisms, shared_memory_configuration=False, local_memory_configuration=False
    )
    return dataclasses.replace(spec, processing_blocks=1, mechanisms=fewer)


def rounded(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass
class Sm:
    """What an SM has left."""

    slots: int
    cluster_slots: int
    shared_memory: int  # of the largest configuration
    warps: list[int]  # of each processing block
    registers: list[int]
    turn: int = 0


@dataclass
class Unit:
    """SMs that have one configuration of shared memory between them."""

    resident: int = 0
    configured: int = 0


@dataclass(eq=False)
class Resident:
    """A block, and what it takes."""

    sm: int
    launch: Launch
    warps: int
    registers: int  # of each warp
    shared_memory: int
    parts: list[int] = field(default_factory=list)  # the processing block of each warp


@dataclass
class Gpu:
    """All SMs.

    While ``in_order``, blocks are placed in the order of the scheduler. What depends on that order
    is checked then: processing blocks, configurations and local memory.
    """

    spec: DeviceSpec
    in_order: bool = True

    def __post_init__(self) -> None:
        spec, parts = self.spec, self.spec.processing_blocks
        self.largest = spec.shared_memory_configurations[-1]
        self.sms = [
            Sm(
                spec.blocks_per_sm,
                spec.cluster_blocks_per_sm,
                self.largest,
                [spec.warps_per_sm // parts] * parts,
                [spec.registers_per_sm // parts] * parts,
            )
            for _ in range(spec.sms)
        ]
        shared = spec.sms_per_tpc if spec.mechanisms.configuration_per_tpc else 1
        units = [Unit() for _ in range(-(-spec.sms // shared))]
        self.unit_of_sm = [units[sm // shared] for sm in range(spec.sms)]
        self.local_memory = spec.local_memory_initial
        self.resident = 0

    def block(self, launch: Launch, sm: int) -> Resident:
        spec = self.spec
        return Resident(
            sm,
            launch,
            -(-launch.threads // 32),
            rounded(32 * launch.registers, spec.register_unit),
            rounded(launch.shared_memory, spec.shared_memory_unit) + spec.shared_memory_reserve,
        )

    def place(self, launch: Launch, number: int) -> Resident | None:
        """The block on that SM; None, and nothing has changed, if there is no room."""
        sm, block = self.sms[number], self.block(launch, number)
        if launch.partition is not None and number not in launch.partition.sms:
            return None
        if sm.slots < 1 or (launch.cluster > 1 and sm.cluster_slots < 1):
            return None
        if sm.shared_memory < block.shared_memory or not self.configuration_holds(block):
            return None
        if not self.local_memory_holds(launch):
            return None
        block.parts = self.parts(sm, block)
        if len(block.parts) < block.warps:
            return None
        self.take(block, 1)
        unit = self.unit_of_sm[number]
        if unit.resident == 1:
            unit.configured = self.configuration(block)
        self.local_memory = max(
            self.local_memory, rounded(launch.local_memory, self.spec.local_memory_unit)
        )
        skips = self.spec.mechanisms.warp_skip and block.warps % len(sm.warps) == 0
        sm.turn = (sm.turn + block.warps + skips) % len(sm.warps)
        return block

    def leave(self, block: Resident) -> None:
        self.take(block, -1)

    def take(self, block: Resident, sign: int) -> None:
        sm = self.sms[block.sm]
        sm.slots -= sign
        sm.cluster_slots -= sign * (block.launch.cluster > 1)
        sm.shared_memory -= sign * block.shared_memory
        for part in block.parts:
            sm.warps[part] -= sign
            sm.registers[part] -= sign * block.registers
        self.unit_of_sm[block.sm].resident += sign
        self.resident += sign

    def parts(self, sm: Sm, block: Resident) -> list[int]:
        """The processing block of each warp, as far as there is room."""
        count, found = len(sm.warps), []
        left = [min(w, r // block.registers) for w, r in zip(sm.warps, sm.registers, strict=True)]
        if not self.in_order:  # which ones the warps took is unknown, so that the sum counts
            fit = min(sum(sm.warps), sum(sm.registers) // block.registers)
            return [0] * min(block.warps, fit)
        for warp in range(block.warps):
            if self.spec.mechanisms.strict_round_robin:
                part = (sm.turn + warp) % count
            else:
                part = left.index(max(left))
            if left[part] < 1:
                break
            left[part] -= 1
            found.append(part)
        return found

    def configuration(self, block: Resident) -> int:
        """What the block sets an idle SM to, as the paper has it; else the largest one.

        Carveouts and headroom are the subject of other tests.
        """
        switches = self.spec.mechanisms
        if (
            not switches.shared_memory_configuration
            or switches.configuration_headroom
            or block.launch.carveout is not None
        ):
            return self.largest
        needed = self.blocks_on_an_idle_sm(block) * block.shared_memory
        return next(size for size in self.spec.shared_memory_configurations if size >= needed)

    def blocks_on_an_idle_sm(self, block: Resident) -> int:
        spec, parts = self.spec, self.spec.processing_blocks
        warps = min(spec.warps_per_sm // parts, spec.registers_per_sm // parts // block.registers)
        most = min(spec.blocks_per_sm, parts * warps // block.warps)
        return min(most, self.largest // block.shared_memory) if block.shared_memory else most

    def configuration_holds(self, block: Resident) -> bool:
        unit = self.unit_of_sm[block.sm]
        if not self.in_order or unit.resident == 0:
            return True
        used = self.largest - self.sms[block.sm].shared_memory
        return used + block.shared_memory <= unit.configured

    def local_memory_holds(self, launch: Launch) -> bool:
        acts = self.spec.mechanisms.local_memory_configuration and self.in_order
        return not acts or self.resident == 0 or launch.local_memory <= self.local_memory


def may_share_sms(launch: Launch, spec: DeviceSpec) -> bool:
    """Whether clusters may be balanced: some configuration holds one block of the launch."""
    unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
    block = rounded(launch.shared_memory, unit) + reserve
    sizes = spec.shared_memory_configurations
    return spec.mechanisms.clusters_balance and any(block <= size < 2 * block for size in sizes)


def check_clusters(launch: Launch, sms: list[int], spec: DeviceSpec) -> None:
    """Blocks of a cluster are on different SMs of one GPC, or of one TPC of none.

    Those of a balanced cluster may share SMs (H8.8).
    """
    gpcs = spec.gpc_of_tpc
    for first in range(0, len(sms), launch.cluster):
        own = sms[first : first + launch.cluster]
        apart = len(set(own)) == launch.cluster
        assert apart or may_share_sms(launch, spec), f"a cluster of {launch.cluster} on SMs {own}"
        tpcs = {sm // spec.sms_per_tpc for sm in own}
        assert len(tpcs) == 1 or len({gpcs[tpc] for tpc in tpcs}) == 1, f"SMs {own}: several GPCs"
        assert len(tpcs) == 1 or gpcs[min(tpcs)] >= 0, f"SMs {own}: several TPCs of no GPC"
