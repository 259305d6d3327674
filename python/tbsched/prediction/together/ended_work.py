"""Launches that find room however other work has left the SMs: the question to the core."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Several

import numpy as np

from tbsched import _core
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import prepared
from tbsched.prediction.predict import predict
from tbsched.prediction.recorded import held
from tbsched.program.sequence import Launch, Sequence


def finds_room(
    staying: Several[Launch],
    ending: Several[Launch],
    spec: DeviceSpec,
    policy: str,
    before: Several[Iterable[int]] | None = None,
    beside: Several[Iterable[int]] | None = None,
) -> bool:
    """Returns whether the last launch that stays is sure to be resident; False: it is not known.

    Args:
        staying: launches that do not end, in the order in which they arrive.
        ending: launches that may be there before or meanwhile, and end.
        spec, policy: the GPU.
        before: of each staying launch the numbers of the ending ones that may be on the GPU before
            its last block is resident. None: all may, and the launches that stay may arrive in any
            order.
        beside: those of them that have not ended for sure when it arrives; None: all of them. It is
            known where the first ones are that have none beside them, and nothing between them.
    """
    everything = [*staying, *ending]
    if len({one.local_memory for one in everything}) > 1:
        return False
    first = len(staying)
    beside = before if beside is None else beside

    def rows(given: Several[Iterable[int]] | None) -> list[list[int]]:
        if given is None:
            return [list(range(len(everything)))] * first
        return [[first + k for k in row] for row in given]

    core_model, _, _ = prepared(spec, policy)
    sequence = _core.Sequence(everything)
    return all(
        _core.finds_room_after(
            core_model, sequence, first, rows(before),
            rows(beside), on_sm,
        )
        for on_sm in _known_places(staying, before, beside, spec, policy)
    )  # fmt: skip


def _known_places(
    staying: Several[Launch],
    before: Several[Iterable[int]] | None,
    beside: Several[Iterable[int]] | None,
    spec: DeviceSpec,
    policy: str,
) -> list[list[list[int]]]:
    """Returns how many blocks each SM may have of the first launches that found the GPU idle.

    All else had ended before the first of them arrived, and nothing came between them: what came
    there would have moved the turns of the scheduler, though it has ended. Each table has a row of
    numbers for each SM; an empty one: it is not known.
    """
    alone: list[bool] = []
    if before is not None and beside is not None:
        earlier = set(before[0])
        alone = [
            not list(here) and earlier.issuperset(there)
            for here, there in zip(beside[:-1], before[:-1], strict=True)
        ]
    first = alone.index(False) if False in alone else len(alone)
    if not first:
        return [[]]
    stay = Sequence([held(one) for one in staying[:first]])
    found = {}
    for state in spec.initial_states(policy):
        trace = predict(stay, spec, policy, state)
        if any((placed.smid < 0).any() for placed in trace):
            return [[]]
        counts = [np.bincount(placed.smid, minlength=spec.sms) for placed in trace]
        table = np.stack(counts, axis=1)
        found[table.tobytes()] = table.tolist()
    return list(found.values())


def always_fit(
    staying: Several[Launch], ending: Several[Launch], spec: DeviceSpec, policy: str
) -> bool:
    """Returns whether launches that stay are sure to be resident, in any order of arrival.

    Args:
        staying, ending, spec, policy: as for :func:`finds_room`.
    """
    return all(
        finds_room([*staying[:k], *staying[k + 1 :], one], ending, spec, policy)
        for k, one in enumerate(staying)
    )
