"""How many blocks of a launch fit beside others."""

from __future__ import annotations

from collections.abc import Sequence as Several

import numpy as np

from tbsched import _core
from tbsched.hardware.initial_state import InitialState
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import known_state, prepared
from tbsched.program.arrays import Int32Array
from tbsched.program.sequence import Launch, Sequence


def free_room(
    spec: DeviceSpec,
    policy: str,
    state: InitialState,
    beside: Several[Launch],
    launch: Launch,
) -> tuple[Int32Array, Int32Array, tuple[str, ...]]:
    """The SM of each block that fits, of all blocks beside, and per SM what refuses one more.

    Args:
        spec, policy, state: the GPU.
        beside: they arrive in this order, and stay.
        launch: its blocks are only the most to place.

    Raises:
        ValueError: a launch that could never run, or one of ``beside`` that is not resident whole.
    """
    spec.check(Sequence([*beside, launch]))
    model, _, _ = prepared(spec, policy)
    first = known_state(spec, policy, state)
    resident = [np.empty(0, np.int32)]
    if beside:
        rows = _core.predict(model, _core.Sequence(beside), first, False)
        for number, (_, smid, limiter, _) in enumerate(rows):
            if waiting := int(np.count_nonzero(smid < 0)):
                raise ValueError(
                    f"beside[{number}]: {waiting} of {len(smid)} blocks find no room ({limiter})"
                )
            resident.append(smid)
    smid, refusals = _core.capacity(model, _core.Sequence([*beside, launch]), first)
    return smid, np.concatenate(resident), tuple([_core.CAUSES[code] for code in refusals.tolist()])
