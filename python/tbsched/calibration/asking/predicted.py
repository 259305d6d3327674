"""Predictions of many sequences in one call of the core."""

from __future__ import annotations

from collections.abc import Sequence as ListOf

import numpy as np

from tbsched.campaigns.oracles import THREADS
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.tables import predict_until_refused
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import LAUNCH, RELEASE, EventTable
from tbsched.program.sequence import Launch, Sequence


def until_refused(spec: DeviceSpec, events: EventTable, state: int = 0) -> list[list[Int32Array]]:
    """Returns, for each sequence, the SMs of each launch up to the first not placed whole.

    Args:
        spec: the device.
        events: the sequences.
        state: index of the initial latent state.

    Raises:
        ValueError: the device refuses a launch.
    """
    start = spec.initial_states()[state]
    table, smids, _ = predict_until_refused(events, spec, spec.policy, start, THREADS)
    is_launch = table.cells[:, 0] == LAUNCH
    ends = np.cumsum(np.where(is_launch, table.cells[:, 1], 0)).tolist()
    rows = is_launch.tolist()
    by_sequence = []
    for begin, end, smid in zip(table.bounds[:-1], table.bounds[1:], smids, strict=True):
        before = ends[begin - 1] if begin else 0
        last = 0
        launches = []
        for row in range(begin, end):
            if rows[row]:
                launches.append(smid[last : ends[row] - before])
                last = ends[row] - before
        by_sequence.append(launches)
    return by_sequence


def table_of(sequences: ListOf[Sequence]) -> EventTable:
    """Returns the event table of held sequences without partitions."""
    rows = [_row(event) for sequence in sequences for event in sequence.events]
    bounds = np.cumsum([0, *(len(sequence) for sequence in sequences)])
    return EventTable(np.array(rows, np.int32).reshape(len(rows), -1), bounds)


def _row(event: object) -> tuple[int, ...]:
    """Returns an event as a row of a table."""
    if isinstance(event, Launch):
        return (
            LAUNCH,
            event.blocks,
            event.threads,
            event.registers,
            event.shared_memory,
            event.local_memory,
            -1 if event.carveout is None else event.carveout,
            event.cluster,
            event.priority,
            -1,
            int(event.cooperative),
        )
    return (RELEASE, event.launch, *(0,) * 9)  # type: ignore[attr-defined]
