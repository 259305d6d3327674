"""Which SMs are together: the map of a board whose rules are known, from launches there."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched.calibration.asking.lab import Lab, NotTold, small
from tbsched.calibration.finding import TOLD
from tbsched.calibration.probes import preference
from tbsched.calibration.probes.topology import joined, together
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state
from tbsched.program.sequence import Event, Launch, Sequence
from tbsched.traces.oracle import Oracle
from tbsched.traces.trace import Trace

SECONDS = 10.0
_WAVES = 3
_BESIDE = (0, 1, 5)  # single blocks that are there before the clusters
_AT_ONCE, _IDLE = 16, 8  # sequences; and so many times in turn that they show nothing new: the end


@dataclass(frozen=True, slots=True)
class BoardMap:
    """What was seen of a board.

    Attributes:
        values: by the names of a device's fields.
        sources: the launches that show each of them, in words.
        wrong: how many of the sequences went otherwise than the rules and this map predict.
        sequences: how many there were.
    """

    values: dict[str, Any]
    sources: dict[str, str]
    wrong: int
    sequences: int


def measured(oracle: Oracle, base: DeviceSpec) -> BoardMap:
    """Launches what shows the map, and checks that the rules predict all of it.

    Args:
        oracle: the GPU, or a model that plays it.
        base: its rules and sizes; of its map, the number of SMs and how many a TPC has.

    Raises:
        NotTold: the launches do not show a map, or the time was over.
        ValueError: what they show makes no device, or the oracle refuses one of them.
    """
    lab = Lab(oracle, SECONDS, lambda _: None)
    lab.sms = base.sms
    traces = lab.run([Sequence([_whole_sms(base, blocks)]) for blocks in range(1, base.sms + 1)])
    order = preference.read([frozenset(trace[0].smid.tolist()) for trace in traces])
    if order.kind != TOLD:
        raise NotTold(order.because)
    values: dict[str, Any] = {"sm_preference": order.value}
    sources = {"sm_preference": order.because}
    if base.max_cluster > 1:
        sizes = _sizes(lab, base)
        values["max_cluster"] = max(sizes, default=1)
        sources["max_cluster"] = "the largest that was not refused"
        clustered = _clusters(lab, replace(base, **values), sizes) if sizes else []
        traces += clustered
        values["gpcs"] = _gpcs(clustered, base)
        sources["gpcs"] = f"clusters of 3 to {values['max_cluster']} kept to these SMs"
    return BoardMap(values, sources, _wrong(replace(base, **values), traces), len(traces))


def _whole_sms(base: DeviceSpec, blocks: int) -> Launch:
    """Blocks of which an SM holds one, for want of registers."""
    threads = min(base.threads_per_block, 32 * base.warps_per_sm)
    registers = base.registers_per_sm // (2 * threads) + 8
    return small(threads // 32, min(registers, base.registers_per_thread), blocks=blocks)


def _sizes(lab: Lab, base: DeviceSpec) -> list[int]:
    """Of clusters that this board takes."""
    every = range(2, base.max_cluster + 1)
    return [size for size in every if lab.accepts(small(blocks=size, cluster=size))]


def _clusters(lab: Lab, base: DeviceSpec, sizes: ListOf[int]) -> list[Trace]:
    """Clusters of all sizes; and others on a GPU that is partly full, until these show no more.

    They do if they show nothing new, and the rules predict them with the map that is known by then.
    """
    one, whole = small(), _whole_sms(base, 1)
    traces = lab.run([_beside(n, one, size, one, base) for n in _BESIDE for size in sizes])
    rng = np.random.default_rng(0)
    known, idle = _gpcs(traces, base), 0
    while idle < _IDLE and (not idle or _wrong(replace(base, gpcs=known), traces)):
        drawn = [
            _beside(
                int(rng.integers(base.sms)),
                whole,
                int(rng.choice(sizes)),
                one if rng.random() < 0.5 else whole,
                base,
            )
            for _ in range(_AT_ONCE)
        ]
        traces += lab.run(drawn)
        before, known = known, _gpcs(traces, base)
        idle = idle + 1 if known == before else 0
    return traces


def _wrong(spec: DeviceSpec, traces: Iterable[Trace]) -> int:
    """How many of the sequences went otherwise than the device predicts."""
    return sum(not _agrees(spec, trace) for trace in traces)


def _agrees(spec: DeviceSpec, trace: Trace) -> bool:
    """From one of its latent states: nobody knows in which one the board was."""
    try:
        return matching_state(trace, spec, None, list(spec.initial_states())) is not None
    except ValueError:
        return False  # a cluster that the device takes nowhere


def _beside(blocks: int, first: Launch, size: int, then: Launch, base: DeviceSpec) -> Sequence:
    """More clusters than there is room for, beside so many blocks of another launch."""
    clusters = replace(then, blocks=_WAVES * base.sms // size * size, cluster=size)
    events: list[Event] = [replace(first, blocks=blocks)] if blocks else []
    return Sequence([*events, clusters])


def _gpcs(traces: ListOf[Trace], base: DeviceSpec) -> tuple[tuple[int, ...], ...]:
    """The TPCs of each GPC: those whose SMs one cluster of 3 or more had, also through others.

    The GPC of the first TPC comes first, which is a convention.
    """
    tpcs = [
        {sm // base.sms_per_tpc for sm in cluster}
        for trace in traces
        for cluster in together(trace)
        if len(cluster) > base.sms_per_tpc
    ]
    return tuple(sorted(tuple(sorted(group)) for group in joined(tpcs)))
