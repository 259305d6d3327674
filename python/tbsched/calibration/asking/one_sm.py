"""Sequences that put the same blocks on every SM, predicted by a device of one SM.

Thus the SM of a block does not matter, as long as equal SMs get equal numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence as ListOf
from dataclasses import replace

import numpy as np

from tbsched.calibration.asking.elimination import Answers, Shown, View
from tbsched.calibration.asking.lab import MOST_PER_SM, Inconclusive, Lab, even, small
from tbsched.calibration.asking.predicted import table_of, until_refused
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.trace import Trace


def one_sm(spec: DeviceSpec) -> DeviceSpec:
    """Returns a device with one SM like those of ``spec``."""
    return replace(
        spec, sms=1, sms_per_tpc=1, gpcs=(), sm_preference=(0,), coscheduled_sms=0, policy="ampere"
    )


def draw(rng: np.random.Generator, sizes: ListOf[tuple[int, int, int]]) -> Sequence:
    """Returns a random sequence of launches of these sizes (warps, registers, bytes), one or a few
    blocks each, and releases.

    Half of the sequences first fill the SMs with equal blocks and release some, which leaves gaps.
    """
    drawn: list[Event] = []
    resident: list[int] = []

    def launch(size: tuple[int, int, int], blocks: int) -> None:
        resident.append(sum(isinstance(event, Launch) for event in drawn))
        drawn.append(small(*size, blocks))

    if rng.random() < 0.5:
        piece = sizes[int(rng.integers(len(sizes)))]
        for _ in range(int(rng.integers(2, 17))):
            launch(piece, 1)
        leave = rng.random(len(resident)) < 0.5
        drawn += [Release(earlier) for earlier in resident if leave[earlier]]
        resident = [earlier for earlier in resident if not leave[earlier]]
    for _ in range(int(rng.integers(0, 8))):
        if resident and rng.random() < 0.4:
            drawn.append(Release(resident.pop(int(rng.integers(len(resident))))))
        else:
            launch(sizes[int(rng.integers(len(sizes)))], int(rng.integers(1, 4)))
    return Sequence([*drawn, small(*sizes[int(rng.integers(len(sizes)))], MOST_PER_SM + 1)])


def _predict(devices: ListOf[DeviceSpec], sequences: ListOf[Sequence], state: int) -> list[Answers]:
    """Returns the placed blocks of each launch, up to the first that is not placed whole."""
    events = table_of(sequences)
    return [
        [
            tuple(int(np.count_nonzero(smid >= 0)) for smid in launches)
            for launches in until_refused(spec, events, state)
        ]
        for spec in devices
    ]


def _observe(lab: Lab, sequences: ListOf[Sequence]) -> list[tuple[Shown, ...]]:
    traces = lab.run([_on_all(sequence, lab.sms) for sequence in sequences])
    return [_until_uneven(trace, lab.sms) for trace in traces]


def _until_uneven(trace: Trace, sms: int) -> tuple[Shown, ...]:
    """Returns for each launch how many blocks each SM has, up to the first launch that the SMs
    share unevenly.

    Unevenness occurs where a block does not change its SM's room, so the next one goes there, too.
    """
    blocks_per_sm: list[Shown] = []
    with contextlib.suppress(Inconclusive):
        for placement in trace.placements:
            blocks_per_sm.append(even(placement.occupancy(sms)))
    return tuple(blocks_per_sm)


def _on_all(sequence: Sequence, sms: int) -> Sequence:
    """Returns the sequence with each block once per SM of the GPU."""
    return Sequence(
        small(
            event.threads // 32,
            event.registers,
            event.shared_memory,
            event.blocks * sms,
            carveout=event.carveout,
        )
        if isinstance(event, Launch)
        else event
        for event in sequence.events
    )


VIEW = View(_predict, _observe)
