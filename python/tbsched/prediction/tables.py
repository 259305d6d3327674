"""Predictions of many held sequences at once, for campaigns."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

import numpy as np

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import prepared
from tbsched.program.arrays import Int32Array
from tbsched.program.event_table import FIELDS, LAUNCH, EventTable
from tbsched.program.events.launch import Launch


def predict_until_refused(
    table: EventTable, spec: DeviceSpec, policy: str, state: InitialState, threads: int
) -> tuple[EventTable, list[Int32Array], list[str | None]]:
    """Returns predictions of sequences up to and with the first launch that is not placed whole.

    Args:
        table: what :func:`tbsched.predict` takes.
        spec, policy, state: the predictor.
        threads: that work on it.

    Returns:
        The shortened sequences; of each the SMs of all blocks, launch after launch, -1: not
        placed; and what refused those, as :attr:`Placement.limiter`.

    Raises:
        ValueError: the policy does not place such launches.
    """
    model, _, states = prepared(spec, policy)
    found = _core.predict_until_refused(
        model, table.cells, table.bounds, table.partitions, states[state], threads
    )
    events = np.array([count for _, count, _ in found], np.int64)
    limiters = [limiter for _, _, limiter in found]
    return table.first_events(events), [smid for smid, _, _ in found], limiters


def allowed_at_once(table: EventTable, spec: DeviceSpec) -> list[int]:
    """Returns, for each launch, how many blocks it may have at most if it is cooperative. Raises
    ValueError: the device refuses a launch."""
    model = prepared(spec, spec.policy)[0]
    return _core.allowed_at_once(model, table.cells, table.bounds, table.partitions)


def cooperative_limit(launch: Launch, spec: DeviceSpec) -> int:
    """Returns the most blocks that a cooperative launch of this kind may have. Raises ValueError:
    the device refuses the launch."""
    numbers = {
        **{field: int(getattr(launch, field)) for field in FIELDS if field not in _CODED},
        "carveout": -1 if launch.carveout is None else launch.carveout,
        "partition": -1 if launch.partition is None else 0,
    }
    cells = np.array([[LAUNCH, *(numbers[field] for field in FIELDS)]], np.int32)
    partitions = () if launch.partition is None else (launch.partition,)
    return allowed_at_once(EventTable(cells, np.array([0, 1]), partitions), spec)[0]


_CODED = ("carveout", "partition")


def matching_states(
    table: EventTable, smids: SequenceOf[Int32Array], spec: DeviceSpec, policy: str,
    states: SequenceOf[InitialState], threads: int,
) -> list[InitialState | None]:  # fmt: skip
    """Returns, for each sequence, the first of the latent states that puts each block on the SM
    where it was seen; None: none does."""
    model, _, core_states = prepared(spec, policy)
    indices = _core.matching_states(
        model, table.cells, table.bounds, table.partitions,
        [core_states[state] for state in states], smids, threads,
    )  # fmt: skip
    return [None if index < 0 else states[index] for index in indices]
