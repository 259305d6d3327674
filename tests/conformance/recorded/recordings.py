"""Recordings as rows of numbers, which the core predicts all at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from helpers import TRACES, recorded
from tbsched.hardware.catalogue import device
from tbsched.prediction.tables import matching_states, predict_until_refused
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import FIELDS, LAUNCH, RELEASE, EventTable
from tbsched.program.partition import Partition
from tbsched.program.sequence import Launch, Sequence
from tbsched.traces.files import load_traces
from tbsched.traces.trace import Trace

HOLDOUT = TRACES.with_name("h200-holdout")
NOT_REACHED = -2  # in the place of an SM


@dataclass(frozen=True)
class Recording:
    """Traces of held sequences: their events, and of each the SMs, launch after launch."""

    ids: list[str]
    table: EventTable
    smids: list[Int32Array]

    @classmethod
    def of(cls, traces: Iterable[Trace]) -> Recording:
        every = list(traces)
        return cls(
            [trace.id for trace in every],
            table_of([trace.sequence for trace in every]),
            [np.concatenate([placement.smid for placement in trace]) for trace in every],
        )

    def unexplained(self, spec: str = "h200") -> list[str]:
        """The traces not all of whose blocks are where one of the latent states puts them."""
        model = device(spec)
        states = model.initial_states()
        found = matching_states(self.table, self.smids, model, model.policy, states, 1)
        return [name for name, state in zip(self.ids, found, strict=True) if state is None]

    def predicted(self, spec: str = "h200", policy: str | None = None) -> list[Int32Array]:
        """The SMs as predicted, of each trace up to the first launch that is not placed whole."""
        model = device(spec)
        policy = model.policy if policy is None else policy
        state = model.initial_states(policy)[0]
        return predict_until_refused(self.table, model, policy, state, 1)[1]

    def score(self, spec: str = "h200", policy: str | None = None) -> Score:
        """What agrees; the recorded sequences end where a launch was not placed whole."""
        predicted = np.full_like(self._seen, NOT_REACHED)
        begin = 0
        for found, seen in zip(self.predicted(spec, policy), self.smids, strict=True):
            predicted[begin : begin + len(found)] = found
            begin += len(seen)
        blocks = self.table.launch_blocks
        first_blocks = np.cumsum(blocks) - blocks
        return Score(
            len(blocks),
            int((self._per_launch(predicted) == self._seen_per_launch).all(axis=1).sum()),
            int(np.logical_and.reduceat(predicted == self._seen, first_blocks).sum()),
        )

    @functools.cached_property
    def _seen(self) -> Int32Array:
        return np.concatenate(self.smids)

    @functools.cached_property
    def _seen_per_launch(self) -> npt.NDArray[np.int32]:
        return self._per_launch(self._seen)

    def _per_launch(self, smid: Int32Array) -> npt.NDArray[np.int32]:
        """How many blocks of each launch are on each SM, or on none."""
        width = 2 + 132
        blocks = self.table.launch_blocks
        launch = np.repeat(np.arange(len(blocks)), blocks)
        rows = np.bincount(launch * width + smid + 2, minlength=len(blocks) * width)
        return rows.reshape(-1, width).astype(np.int32)


@dataclass(frozen=True)
class Score:
    """Launches in all, and those whose occupancy, or every block, is as recorded."""

    launches: int = 0
    occupancy: int = 0
    exact: int = 0


@functools.cache
def looked_at(name: str) -> Recording:
    """A recording that the rules were made from."""
    return Recording.of(recorded(name))


def scored_only(path: Path) -> Recording:
    return Recording.of(load_traces(path))


def table_of(sequences: list[Sequence]) -> EventTable:
    """Launches and releases as rows."""
    every = (launch.partition for sequence in sequences for launch in sequence.launches)
    partitions = {each: number for number, each in enumerate(dict.fromkeys(filter(None, every)))}
    rows = [
        [LAUNCH, *(_cell(getattr(event, field), partitions) for field in FIELDS)]
        if isinstance(event, Launch)
        else [RELEASE, event.launch, *([0] * (len(FIELDS) - 1))]
        for sequence in sequences
        for event in sequence
    ]
    bounds = list(itertools.accumulate(map(len, sequences), initial=0))
    return EventTable(np.array(rows, np.int32), np.array(bounds, np.int64), tuple(partitions))


def _cell(value: int | Partition | None, partitions: dict[Partition, int]) -> int:
    if isinstance(value, Partition):
        return partitions[value]
    return -1 if value is None else value
