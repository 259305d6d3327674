"""The policy, by elimination among the rows of the table, and the latent states that occur."""

from __future__ import annotations

from collections.abc import Sequence as ListOf
from dataclasses import replace

import numpy as np

from tbsched.calibration.asking import whole_gpu
from tbsched.calibration.asking.choices import Choices, read, with_bases
from tbsched.calibration.asking.elimination import Left, eliminate
from tbsched.calibration.asking.lab import Lab, small
from tbsched.calibration.draft import draft, with_values
from tbsched.calibration.finding import TOLD, Finding, Found, assumed, told
from tbsched.calibration.probes.preference import whole_sm
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import matching_state, policies
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.traces.trace import Trace

_PATH = "scheduler.policy"
_SAME = {"algorithm1": "ampere"}  # its slow reference, with the same answers
_EXACT = 48


def ask(lab: Lab, found: Found) -> list[Finding]:
    """First how many blocks each SM gets, then which ones."""
    (order,) = lab.run([Sequence([whole_sm(found, lab.sms)])])
    spec = draft(found)
    launches = launches_of(spec)
    rows = [row.name for row in policies() if row.name not in _SAME]
    choices: Choices = {"policy": tuple(reversed(rows))}  # the strongest first
    devices = [
        with_values(device, gpcs=in_turn(device.gpcs, device.sms_per_tpc, order))
        for device in with_bases(found, spec, choices)
    ]

    def drawn(rng: np.random.Generator) -> Sequence:
        return whole_gpu.draw(rng, launches, lab.sms)

    left = eliminate(lab, devices, drawn, whole_gpu.VIEW, seed=1, patience=2)
    rng = np.random.default_rng(2)
    traces = lab.run([_fitting(drawn(rng), left.devices) for _ in range(_EXACT)])
    exact = [device for device in left.devices if _explains(device, traces)]
    left.asked += _EXACT
    findings = read_exact(found, left, exact, choices)
    (finding,) = (finding for finding in findings if finding.path == _PATH)
    maps = {device.gpcs for device in exact}
    if finding.value == "hopper" and len(maps) == 1:
        because = "in the order of their turns"
        is_told = finding.kind == TOLD and not found.unknown(["gpcs"])
        findings.append((told if is_told else assumed)("topology.gpcs", maps.pop(), because))
    states = [
        matching_state(trace, device, None, list(device.initial_states()))
        for device in exact[:1]
        for trace in traces
    ]
    found.notes["states"] = {state for state in states if state is not None}
    return findings


def launches_of(spec: DeviceSpec) -> list[Launch]:
    """Of several sizes, without shared memory: whether its gaps are understood does not matter."""
    warps = [w for w in (1, 2, 3, 4, 6, 8, 11, 16, 32) if 32 * w <= spec.threads_per_block]
    return [small(w) for w in warps] + [small(w, 64) for w in warps[:6]]


def in_turn(
    gpcs: tuple[tuple[int, ...], ...], size: int, order: Trace
) -> tuple[tuple[int, ...], ...]:
    """The GPCs in the order in which they took the blocks of one launch, from that of TPC 0 on."""
    gpc_of = {tpc: number for number, row in enumerate(gpcs) for tpc in row}
    seen = list(dict.fromkeys(gpc_of.get(sm // size, -1) for sm in order[0].smid.tolist()))
    turns = [number for number in seen if number >= 0]
    if sorted(turns) != list(range(len(gpcs))):
        return gpcs
    first = turns.index(0) if turns else 0
    return tuple(gpcs[number] for number in turns[first:] + turns[:first])


def _fitting(sequence: Sequence, devices: ListOf[DeviceSpec]) -> Sequence:
    """The sequence up to the first launch that waits on one of the devices."""
    shown = whole_gpu.VIEW.predict(devices, [sequence])
    shortest = min([len(sequence.launches), *(len(of_device[0]) for of_device in shown)])
    seen = 0
    for position, event in enumerate(sequence.events):
        seen += not isinstance(event, Release)
        if seen == shortest:
            return sequence[: position + 1]
    return sequence


def _explains(device: DeviceSpec, traces: ListOf[Trace]) -> bool:
    states = list(device.initial_states())
    return all(matching_state(trace, device, None, states) is not None for trace in traces)


def read_exact(
    found: Found, left: Left, exact: list[DeviceSpec], choices: Choices
) -> list[Finding]:
    """From the rows that have the right number of blocks on each SM, and from those of them that
    have the right ones."""
    if left.devices and not exact:
        names = list(dict.fromkeys(device.policy for device in left.devices))
        because = "the numbers of blocks on each SM fit; which blocks they are fits no row"
        return [assumed(_PATH, names[0], because, tuple(names[1:]))]
    return read(found, replace(left, devices=exact), choices)
