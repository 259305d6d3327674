"""Sequences that load SMs unevenly, compared by the number of blocks that each SM gets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence as ListOf
from dataclasses import replace

import numpy as np

from tbsched.calibration.asking.elimination import Answers, Shown, View
from tbsched.calibration.asking.lab import Lab
from tbsched.calibration.asking.predicted import table_of, until_refused
from tbsched.campaigns.oracles import THREADS
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict_many
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.trace import Trace


def draw(
    rng: np.random.Generator, launches: ListOf[Launch], sms: int, max_blocks: int = 9
) -> Sequence:
    """Returns a random sequence: some of these launches, with few blocks or several per SM, and
    releases."""
    drawn: list[Event] = []
    resident: list[int] = []
    count = 0
    for _ in range(int(rng.integers(2, max_blocks))):
        if resident and rng.random() < 0.3:
            drawn.append(Release(resident.pop(int(rng.integers(len(resident))))))
            continue
        launch = launches[int(rng.integers(len(launches)))]
        few = int(rng.integers(1, 8)), int(rng.integers(1, sms + 1)), sms * int(rng.integers(1, 4))
        blocks = max(few[int(rng.integers(3))] // launch.cluster, 1) * launch.cluster
        drawn.append(replace_blocks(launch, blocks))
        resident.append(count)
        count += 1
    return Sequence(drawn if count else [launches[0]])


def replace_blocks(launch: Launch, blocks: int) -> Launch:
    """Returns the launch with another number of blocks."""
    return replace(launch, blocks=blocks)


def _shown(trace: Trace) -> tuple[Shown, ...]:
    """Returns the blocks of each launch on each SM, up to the first launch that waits."""
    shown_launches: list[Shown] = []
    for placement in trace.placements:
        shown_launches.append(placement.occupancy(trace.device.sms).astype(np.int64).tobytes())
        if placement.placed < len(placement.smid):
            break
    return tuple(shown_launches)


def _predict(devices: ListOf[DeviceSpec], sequences: ListOf[Sequence], state: int) -> list[Answers]:
    events = table_of(sequences)
    return [_blocks(until_refused(spec, events, state), spec.sms) for spec in devices]


def _blocks(placed: ListOf[ListOf[Int32Array]], sms: int) -> Answers:
    """Returns the blocks on each SM, for each launch of each sequence."""
    smids = [smid for launches in placed for smid in launches]
    sm = np.concatenate(smids) if smids else np.empty(0, np.int32)
    launch = np.repeat(np.arange(len(smids)), [len(smid) for smid in smids])
    is_placed = sm >= 0
    counts = np.bincount(launch[is_placed] * sms + sm[is_placed], minlength=len(smids) * sms)
    shown = iter([row.tobytes() for row in counts.reshape(-1, sms)])
    return [tuple(itertools.islice(shown, len(launches))) for launches in placed]


def _observe(lab: Lab, sequences: ListOf[Sequence]) -> list[tuple[Shown, ...]]:
    return [_shown(trace) for trace in lab.run(sequences)]


VIEW = View(_predict, _observe)


def _all_shown(trace: Trace) -> tuple[Shown, ...]:
    return tuple(_occupancy(trace, index) for index in range(len(trace)))


def _occupancy(trace: Trace, launch: int) -> bytes:
    return trace[launch].occupancy(trace.device.sms).astype(np.int64).tobytes()


def _predict_waits(
    devices: ListOf[DeviceSpec], sequences: ListOf[Sequence], state: int
) -> list[Answers]:
    """Returns what each device predicts of each sequence, from one latent state."""
    return [
        [
            _all_shown(trace)
            for trace in predict_many(
                sequences, spec, initial_state=spec.initial_states()[state], threads=THREADS
            )
        ]
        for spec in devices
    ]


# For sequences without releases: launches behind a waiting one are compared as well.
VIEW_OF_WAITS = View(
    _predict_waits,
    lambda lab, sequences: [_all_shown(trace) for trace in lab.run(sequences)],
)
