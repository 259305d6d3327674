"""How many blocks of a launch fit beside others."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace

import numpy as np

from tbsched import _core
from tbsched.errors import on_one_line
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.limiters import limiters_of
from tbsched.prediction.model import known_state, prepared
from tbsched.prediction.predict import check_blocks
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import Launch, Sequence


@dataclass(frozen=True, slots=True, eq=False)
class FreeRoom:
    """How many blocks of a launch a GPU takes beside resident launches.

    Attributes:
        smid: int32 (blocks,), the SM of each block that fits, in block order.
        per_sm: int32 (sms,), how many blocks of the launch each SM takes.
        beside_per_sm: int32 (sms,), how many blocks of the resident launches each SM has.
        causes: for each SM all limiters that refuse one block more, first the one that stands for
            all; ``none`` where a block would fit, but no whole cluster.
    """

    smid: Int32Array
    per_sm: Int32Array
    beside_per_sm: Int32Array
    causes: tuple[tuple[str, ...], ...]


def free_room(
    spec: DeviceSpec, policy: str, state: InitialState, beside: Several[Launch], launch: Launch,
) -> FreeRoom:  # fmt: skip
    """Returns how many blocks of a launch fit, regardless of how many it has.

    Args:
        spec, policy, state: the GPU.
        beside: the resident launches, in the order of arrival; their streams do not matter.
        launch: without a duration, as the others.

    Raises:
        ValueError: a launch that could never run, or one of ``beside`` that is not resident whole.
    """
    spec.check(Sequence([*beside, launch]))
    model, _, _ = prepared(spec, policy)
    check_blocks(Sequence(beside))
    first = known_state(spec, policy, state)
    resident = [replace(other, stream=None) for other in beside]
    asked = replace(launch, stream=None, cooperative=False)
    others = _placed(model, resident, first)
    for index, (smid, limiter) in enumerate(others):
        if pending := int(np.count_nonzero(smid < 0)):
            name = beside[index].name
            whose = f"blocks of {on_one_line(name)}" if name else "blocks"
            raise ValueError(
                f"beside[{index}]: {pending} of {len(smid)} {whose} find no room ({limiter})"
            )
    per_sm, first_refusals, refusals = _core.capacity(
        model, _core.Sequence([*resident, asked]), first
    )
    smid = np.empty(0, np.int32)
    if blocks := int(per_sm.sum()):
        smid = _placed(model, [*resident, replace(asked, blocks=blocks)], first)[-1][0]
    beside_smid = np.concatenate([np.empty(0, np.int32), *(sms for sms, _ in others)])
    beside_per_sm = np.bincount(beside_smid, minlength=spec.sms).astype(np.int32)
    causes = limiters_of(first_refusals, refusals)
    return FreeRoom(smid, per_sm, beside_per_sm, causes)


def _placed(
    model: _core.Model, launches: Several[Launch], state: _core.InitialState
) -> list[tuple[Int32Array, str | None]]:
    """Returns for each launch the SMs of its blocks, and the limiter of those that do not fit."""
    rows = _core.predict(model, _core.Sequence(launches), state, False) if launches else []
    return [(smid, limiter) for _, smid, limiter, _ in rows]
