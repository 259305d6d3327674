"""What the model says that every SM holds at one moment."""

from __future__ import annotations

from typing import Any

import numpy as np

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.calls import Calls
from tbsched.prediction.model import prepared
from tbsched.prediction.neighbours.slowing import Neighbours
from tbsched.prediction.own_policy import Choices
from tbsched.program.arrays import StructuredArray, structured
from tbsched.program.sequence import Sequence
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.residents import PIECE, Residents, SmLimits, resident_type


def residents_at(
    spec: DeviceSpec, policy: str | Choices, state: InitialState, seq: Sequence,
    calls: Calls | None, at: int, neighbours: Neighbours | None = None,
) -> Residents:  # fmt: skip
    """Returns what every SM holds after ``at`` events, or, given calls, at ``at`` nanoseconds."""
    model, info, core_states = prepared(spec, policy)
    events, first = _core.Sequence(seq.events), core_states[state]
    snapshot = (
        _core.snapshot_after(model, events, first, at)
        if calls is None
        else _core.snapshot_at(model, events, first, *calls, at, neighbours)
    )
    return residents_of(spec, model, info, seq, snapshot, at if calls is None else at / 1e9)


def residents_of(
    spec: DeviceSpec, model: _core.Model, info: DeviceInfo, seq: Sequence, snapshot: Any,
    when: float,
) -> Residents:  # fmt: skip
    """Returns the core's snapshot of all SMs as residents."""
    blocks, pieces, *per_sm_and_launch = snapshot
    count = model.processing_blocks()
    limits = SmLimits(
        spec.blocks_per_sm, spec.warps_per_sm // count, count, spec.registers_per_sm // count,
        spec.shared_memory_configurations[-1], spec.shared_memory_reserve,
    )  # fmt: skip
    rows = _sorted_rows(resident_type(count), blocks, ("launch", "sm"))
    held = _sorted_rows(PIECE, pieces, ("sm", "begin"))
    names = tuple([launch.name for launch in seq.launches])
    return Residents(info, when, names, limits, rows, held, *per_sm_and_launch)


def _sorted_rows(
    kind: np.dtype[np.void], columns: tuple[Any, ...], by: tuple[str, str]
) -> StructuredArray:
    """Returns columns as a structured array, sorted by two of its fields."""
    rows = structured(columns, kind)
    return rows[np.lexsort([rows[name] for name in reversed(by)])]
