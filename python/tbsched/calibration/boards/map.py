"""Measures the map of a board (which SMs form TPCs and GPCs) whose rules are known."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tbsched.calibration.asking.lab import Inconclusive, Lab, small
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
_BLOCKS_BEFORE = (0, 1, 5)  # single blocks that are resident before the clusters
_AT_ONCE, _IDLE = 16, 8  # sequences per round; rounds without news that end the measurement


@dataclass(frozen=True, slots=True)
class BoardMap:
    """The measured map of a board.

    Attributes:
        values: by the names of a device's fields.
        sources: the launches that show each value, in words.
        wrong: number of sequences that the rules with this map predict wrong.
        sequences: number of sequences.
    """

    values: dict[str, Any]
    sources: dict[str, str]
    wrong: int
    sequences: int


def measured(oracle: Oracle, base: DeviceSpec) -> BoardMap:
    """Measures the map, and counts the launches that the rules with this map predict wrong.

    Args:
        oracle: the GPU, or a model that plays it.
        base: its rules and sizes; only two values of its map are used: SMs, and SMs per TPC.

    Raises:
        Inconclusive: the launches do not show a map, or the time was over.
        ValueError: the values make no valid device, or the oracle refuses a launch.
    """
    lab = Lab(oracle, SECONDS, lambda _: None)
    lab.sms = base.sms
    traces = lab.run([Sequence([_whole_sms(base, blocks)]) for blocks in range(1, base.sms + 1)])
    order = preference.read([frozenset(trace[0].smid.tolist()) for trace in traces])
    if order.kind != TOLD:
        raise Inconclusive(order.because)
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
    """Returns a launch of which an SM holds one block, for want of registers."""
    threads = min(base.threads_per_block, 32 * base.warps_per_sm)
    registers = base.registers_per_sm // (2 * threads) + 8
    return small(threads // 32, min(registers, base.registers_per_thread), blocks=blocks)


def _sizes(lab: Lab, base: DeviceSpec) -> list[int]:
    """Returns the cluster sizes that this board accepts."""
    every = range(2, base.max_cluster + 1)
    return [size for size in every if lab.accepts(small(blocks=size, cluster=size))]


def _clusters(lab: Lab, base: DeviceSpec, sizes: ListOf[int]) -> list[Trace]:
    """Returns traces of clusters of all sizes on an idle GPU, then on a partly full one, until
    these tell nothing new.

    The end is a number of rounds that change no GPC, with the rules predicting all runs.
    """
    single, whole_sm = small(), _whole_sms(base, 1)
    traces = lab.run(
        [
            _clusters_after_blocks(n, single, size, single, base)
            for n in _BLOCKS_BEFORE
            for size in sizes
        ]
    )
    rng = np.random.default_rng(0)
    known, idle = _gpcs(traces, base), 0
    while idle < _IDLE and (not idle or _wrong(replace(base, gpcs=known), traces)):
        drawn = [
            _clusters_after_blocks(
                int(rng.integers(base.sms)),
                whole_sm,
                int(rng.choice(sizes)),
                single if rng.random() < 0.5 else whole_sm,
                base,
            )
            for _ in range(_AT_ONCE)
        ]
        traces += lab.run(drawn)
        before, known = known, _gpcs(traces, base)
        idle = idle + 1 if known == before else 0
    return traces


def _wrong(spec: DeviceSpec, traces: Iterable[Trace]) -> int:
    """Returns the number of runs that the device predicts wrong."""
    return sum(not _agrees(spec, trace) for trace in traces)


def _agrees(spec: DeviceSpec, trace: Trace) -> bool:
    """Returns whether the device explains the run, from whichever latent state."""
    try:
        return matching_state(trace, spec, None, list(spec.initial_states())) is not None
    except ValueError:
        return False  # the device has no place for a cluster


def _clusters_after_blocks(
    blocks: int, first: Launch, size: int, then: Launch, base: DeviceSpec
) -> Sequence:
    """Returns a sequence of single blocks, then more clusters than there is room for."""
    clusters = replace(then, blocks=_WAVES * base.sms // size * size, cluster=size)
    events: list[Event] = [replace(first, blocks=blocks)] if blocks else []
    return Sequence([*events, clusters])


def _gpcs(traces: ListOf[Trace], base: DeviceSpec) -> tuple[tuple[int, ...], ...]:
    """Returns the TPCs of each GPC: those linked, also through others, by clusters that span TPCs.

    The GPC of the first TPC comes first, which is a convention.
    """
    tpcs = [
        {sm // base.sms_per_tpc for sm in cluster}
        for trace in traces
        for cluster in together(trace)
        if len(cluster) > base.sms_per_tpc
    ]
    return tuple(sorted(tuple(sorted(group)) for group in joined(tpcs)))
