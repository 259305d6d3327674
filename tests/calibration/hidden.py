"""GPUs that nobody has described: drawn devices, which a model plays behind a wall."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

import tbsched as tb
from tbsched.calibration import Calibration
from tbsched.calibration.finding import TOLD
from tbsched.calibration.probes.streams.latencies import SLACK_NS, SLACK_SHARE
from tbsched.campaigns.oracles import ModelGpu
from tbsched.hardware.device_fields import FIELDS, Mechanisms
from tbsched.traces.annotations import called

KB = 1024
TICK = 32  # nanoseconds, in which a GPU's clock may count
SIZES = (
    (32, 64), (0, 8, 16, 32, 64, 96), (8, 16, 32, 64, 100), (0, 8, 16, 32, 64, 100, 132, 164),
    (8, 16, 32, 64, 100, 132, 164, 196, 228), (16, 48), (24, 40, 80, 128), (64,),
)  # fmt: skip
WHOLE_SMS = {"first_fit", "round_robin", "most_room"}


class Hidden(ModelGpu):
    """Shows where blocks go, and the title; nothing else of the device.

    Every run begins in some latent state. A run may be noisy: a block comes too late to be seen,
    two blocks are where the other one should be, or the run disagrees with itself.

    Args:
        spec: the device.
        noise: of so many runs, of each kind.
        seed: of the states and the noise.
        tick: nanoseconds, by which a time stamp may be wrong.
        refuses: priorities that the device does not have; else it clamps them, as CUDA does.
    """

    def __init__(
        self,
        spec: tb.DeviceSpec,
        noise: float = 0.0,
        seed: int = 0,
        tick: int = TICK,
        *,
        refuses: bool = True,
    ) -> None:
        super().__init__(spec)
        self.noise, self.tick, self.refuses = noise, tick, refuses
        self.states = spec.initial_states()
        self.rng = np.random.default_rng(seed)

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        if self.refuses and any(
            launch.priority <= -self.spec.priority_levels for launch in seq.launches
        ):
            raise ValueError("priority: this GPU has no such level")
        if seq.timed:
            return self._timed(seq)
        state = self.states[int(self.rng.integers(len(self.states)))]
        seen = tb.predict(seq, self.spec, None, state)
        smids = [placement.smid.copy() for placement in seen.placements]
        launch = smids[int(self.rng.integers(len(smids)))]
        late, swapped, unstable = self.rng.random(3) < self.noise
        placed = np.flatnonzero(launch >= 0)
        if late and len(placed):
            launch[placed[-1]] = -1
        if swapped and len(placed) > 1:
            one, other = self.rng.choice(placed, 2, replace=False)
            launch[[one, other]] = launch[[other, one]]
        if unstable:
            raise tb.UnstableMeasurement("another run differed")
        placements = [tb.Placement(smid) for smid in smids]
        return tb.Trace(seq, replace(seen.device, details={}), placements)

    def _timed(self, seq: tb.Sequence) -> tb.Trace:
        """With times that count from the first start, as a GPU's clock shows them."""
        seen = tb.predict(seq, self.spec, host=0.0)
        if self.rng.random() < self.noise:
            raise tb.UnstableMeasurement("another process came")
        first = min(int(p.start_ns.min()) for p in seen if p.start_ns is not None)
        placements = []
        for p in seen:
            assert p.start_ns is not None
            assert p.end_ns is not None
            late = 5000 * (self.rng.random() < self.noise)
            shift = self.rng.integers(-self.tick, self.tick + 1, (2, len(p.smid))) - first + late
            placements.append(
                tb.Placement(p.smid, start_ns=p.start_ns + shift[0], end_ns=p.end_ns + shift[1])
            )
        calls = [[round(1e9 * t) for t in call] for call in seen.call_times or ()]
        info = replace(seen.device, details={})
        return tb.Trace(seq, info, placements, extra=called(calls))


def one_of(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def drawn(seed: int, most_sms: int = 40) -> tb.DeviceSpec:
    """A device like none that is shipped."""
    rng = np.random.default_rng(seed)
    sms_per_tpc = one_of(rng, 1, 2, 2, 2, 2)
    # As many small ones as large ones.
    tpcs = max(int(2 ** rng.uniform(1, np.log2(most_sms)) / sms_per_tpc), 1)
    sms = tpcs * sms_per_tpc
    gpcs = _gpcs(rng, tpcs)
    sizes = tuple(KB * size for size in one_of(rng, *SIZES))
    reserve, unit = one_of(rng, 0, 1024, 1024, 2048), one_of(rng, 128, 128, 256, 512)
    processing_blocks = one_of(rng, 1, 2, 4, 4, 4)
    policy = one_of(rng, "first_fit", "round_robin", "most_room", "ampere", "ampere", "hopper",
                    "hopper", "hopper")  # fmt: skip
    if not gpcs:
        policy = "ampere"
    max_cluster = one_of(rng, 8, 16) if policy == "hopper" and gpcs else 1
    if policy in WHOLE_SMS:
        processing_blocks = 1
    base = tb.device("h200")
    flags = {
        item.name: bool(rng.random() < 0.6) for item in fields(Mechanisms) if item.type == "bool"
    }
    mechanisms = replace(
        base.mechanisms,
        **flags,
        registers=one_of(rng, "pooled", "pooled", "contiguous", "circular"),
        shared_memory=one_of(rng, "pooled", "contiguous", "circular"),
    )
    if policy in WHOLE_SMS:
        # What they have no notion of.
        mechanisms = replace(
            mechanisms,
            registers="pooled",
            shared_memory="pooled",
            shared_memory_configuration=False,
            local_memory_configuration=False,
        )
    if not mechanisms.shared_memory_configuration:
        sizes = sizes[-1:]  # an SM that nothing configures has one size
    return replace(
        base,
        name="hidden",
        title="A GPU that nobody has described",
        compute_capability="unknown",
        sms=sms,
        sms_per_tpc=sms_per_tpc,
        gpcs=gpcs,
        sm_preference=_preference(rng, sms),
        coscheduled_sms=0,
        processing_blocks=processing_blocks,
        blocks_per_sm=one_of(rng, 8, 16, 16, 24, 32),
        cluster_blocks_per_sm=one_of(rng, 4, 8, 32),
        warps_per_sm=one_of(rng, 32, 48, 64, 64),
        registers_per_sm=one_of(rng, 32, 64, 64, 128) * KB,
        register_unit=one_of(rng, 64, 128, 256, 256, 512),
        shared_memory_unit=unit,
        shared_memory_reserve=reserve,
        shared_memory_per_block=min(sizes[-1] - reserve, one_of(rng, 48, 96, 256) * KB),
        shared_memory_configurations=sizes,
        max_cluster=max_cluster,
        local_memory_initial=one_of(rng, 512, 1024, 2048),
        local_memory_unit=one_of(rng, 16, 32, 64),
        mechanisms=mechanisms,
        policy=policy,
        launch_order=one_of(rng, "leftover", "leftover", "fifo", "pass_by", "one_line"),
        priority_levels=one_of(rng, 1, 2, 3, 6),
        hardware_queues=one_of(rng, 1, 2, 8, 32),
        resident_grids=one_of(rng, 16, 32, 128),
        front_ends=one_of(rng, 1, 2),
        launch_latency_ns=int(rng.integers(2000, 9000)),
        completion_latency_ns=int(rng.integers(300, 3000)),
        exit_latency_ns=int(rng.integers(0, 800)),
        event_latency_ns=int(rng.integers(0, 400)),
        host_write_ns=one_of(rng, 0, 0, 400, 1000),
        synchronize_ns=int(rng.integers(500, 4000)),
    )


def _gpcs(rng: np.random.Generator, tpcs: int) -> tuple[tuple[int, ...], ...]:
    """TPCs dealt to GPCs of odd sizes in turn, the last few to none."""
    inside = max(tpcs - int(rng.integers(0, 4)), 0)
    count = int(rng.integers(1, 9))
    rows: list[list[int]] = [[] for _ in range(count)]
    closed: set[int] = set()
    for tpc in range(inside):
        row = next(n for n in range(tpc, tpc + count) if n % count not in closed) % count
        rows[row].append(tpc)
        if len(closed) < count - 1 and rng.random() < 0.1:
            closed.add(row)
    least = 1 if rng.random() < 0.1 else 2  # those of one TPC are rare
    return tuple(tuple(row) for row in rows if len(row) >= least)


def _preference(rng: np.random.Generator, sms: int) -> tuple[int, ...]:
    if rng.random() < 0.2:
        return tuple(map(int, rng.permutation(sms)))
    return (*range(0, sms, 2), *range(1, sms, 2))


def effective(spec: tb.DeviceSpec, path: str) -> Any:
    """What the value of a hidden device amounts to under its policy."""
    field = next(field for field in FIELDS if field.path == path)
    value = field.of(spec)
    if path == "limits.registers_per_sm":
        # Registers that are no whole unit of a processing block are never given out.
        each = spec.registers_per_sm // spec.processing_blocks
        return each // spec.register_unit * spec.register_unit * spec.processing_blocks
    if path == "allocation.shared_memory_configurations":
        # No block that there is can set less than its reserve.
        least = max(spec.shared_memory_reserve, int(spec.mechanisms.configuration_headroom))
        return tuple(size for size in value if size >= least)
    if path == "topology.gpcs":
        # The GPC of the first TPC comes first, which is a convention.
        first = next((n for n, row in enumerate(value) if 0 in row), 0)
        return (*value[first:], *value[:first])
    return value


def wrong(calibration: Calibration, spec: tb.DeviceSpec) -> list[str]:
    """Values that the calibration is sure of, and that are others."""
    return [
        f"{finding.path}: {finding.value} for {effective(spec, finding.path)}"
        for finding in calibration.report
        if finding.kind == TOLD
        and not same(finding.path, finding.value, effective(spec, finding.path))
    ]


def same(path: str, found: Any, truth: Any) -> bool:
    """Whether a value is the true one; a latency, to 0.1 us or a tenth."""
    if path.endswith("_ns"):
        return bool(abs(found - truth) <= max(SLACK_NS, SLACK_SHARE * truth))
    return bool(found == truth)
