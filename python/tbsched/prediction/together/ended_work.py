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
    staying: Several[Launch], ending: Several[Launch], spec: DeviceSpec, policy: str,
    before: Several[Iterable[int]] | None = None, beside: Several[Iterable[int]] | None = None,
) -> bool:  # fmt: skip
    """Returns whether the last launch that stays is sure to be resident; False: it is not known.

    Args:
        staying: launches that do not end, in the order in which they arrive.
        ending: launches that may be resident before them or beside them, and end.
        spec, policy: the GPU.
        before: for each staying launch the indices of the ending ones that may be on the GPU before
            its last block is resident. None: all may, and the launches that stay may arrive in any
            order.
        beside: for each staying launch those of ``before`` that may still be resident when it
            arrives; None: all of them. First launches without any have known SMs, if nothing came
            between them.
    """
    launches = [*staying, *ending]
    if len({launch.local_memory for launch in launches}) > 1:
        return False
    first_ending = len(staying)
    beside = before if beside is None else beside

    def launch_indices(ending_indices: Several[Iterable[int]] | None) -> list[list[int]]:
        """Returns rows of indices among all launches, given those among the ending ones."""
        if ending_indices is None:
            return [list(range(len(launches)))] * first_ending
        return [[first_ending + k for k in row] for row in ending_indices]

    core_model, _, _ = prepared(spec, policy)
    sequence = _core.Sequence(launches)
    return all(
        _core.finds_room_after(
            core_model, sequence, first_ending, launch_indices(before),
            launch_indices(beside), blocks_per_sm,
        )
        for blocks_per_sm in _known_blocks_per_sm(staying, before, beside, spec, policy)
    )  # fmt: skip


def _known_blocks_per_sm(
    staying: Several[Launch], before: Several[Iterable[int]] | None,
    beside: Several[Iterable[int]] | None, spec: DeviceSpec, policy: str,
) -> list[list[list[int]]]:  # fmt: skip
    """Returns how many blocks of the first staying launches each SM may have, if that is known:
    tables (SMs, launches), one for each outcome.

    They are known of launches that arrive at an idle GPU one after the other: all other launches
    have ended before the first of them, and none arrives between them, as it would move the turns
    of the scheduler even if it has ended. There is a table for each outcome of the latent states. A
    single empty table: nothing is known.
    """
    at_idle_gpu: list[bool] = []
    if before is not None and beside is not None:
        ended = set(before[0])
        at_idle_gpu = [
            not list(resident) and ended.issuperset(earlier)
            for resident, earlier in zip(beside[:-1], before[:-1], strict=True)
        ]
    known = at_idle_gpu.index(False) if False in at_idle_gpu else len(at_idle_gpu)
    if not known:
        return [[]]
    sequence = Sequence([held(launch) for launch in staying[:known]])
    tables = {}
    for state in spec.initial_states(policy):
        trace = predict(sequence, spec, policy, state)
        if any((placement.smid < 0).any() for placement in trace):
            return [[]]
        counts = [np.bincount(placement.smid, minlength=spec.sms) for placement in trace]
        table = np.stack(counts, axis=1)
        tables[table.tobytes()] = table.tolist()
    return list(tables.values())


def always_fit(
    staying: Several[Launch], ending: Several[Launch], spec: DeviceSpec, policy: str
) -> bool:
    """Returns whether launches that stay are sure to be resident, in any order of arrival.

    Args:
        staying, ending, spec, policy: as for :func:`finds_room`.
    """
    return all(
        finds_room([*staying[:k], *staying[k + 1 :], last], ending, spec, policy)
        for k, last in enumerate(staying)
    )
