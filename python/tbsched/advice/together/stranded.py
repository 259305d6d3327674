"""Blocks that a witness leaves waiting, and the reason for each class of SMs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.advice.together.above import late_blocks
from tbsched.advice.together.limits import NO_CLUSTER, Limit, limits_of
from tbsched.advice.together.problem import Stranding
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Release, Sequence
from tbsched.traces.trace import OF_SMS


def left_waiting(
    spec: DeviceSpec, policy: str, stranding: Stranding
) -> tuple[int, tuple[Limit, ...]]:
    """Returns how many blocks never start, and what refuses one more on each class of SMs.

    The classes are empty if the cause is not the room of an SM.
    """
    if stranding.host is not None:
        return stranding.waiting, ()
    sequence, place = stranding.sequence, stranding.order.index(stranding.stranded)
    if sequence.timed:
        trace = predict(sequence, spec, policy, stranding.state, issue_times=stranding.issue_times)
        return late_blocks(trace, place), ()
    launch = sequence.launches[place]
    # A prediction has each SM's limit only for a launch without room, so one more is added.
    more = replace(launch, blocks=launch.cluster, stream=None, cooperative=False)
    trace = predict(Sequence([*sequence, more]), spec, policy, stranding.state)
    gone = {event.launch for event in sequence if isinstance(event, Release)}
    own, others = np.zeros(spec.sms, np.int32), np.zeros(spec.sms, np.int32)
    waiting = 0
    for number, placement in enumerate(trace.placements[:-1]):
        smid = placement.smid if placement.final_smid is None else placement.final_smid
        taken = np.bincount(smid[smid >= 0], minlength=spec.sms).astype(np.int32)
        if number == place:
            own, waiting = taken, int(np.count_nonzero(smid < 0))
        elif number not in gone:
            others += taken
    if stranding.cause not in OF_SMS or trace.capacities is None:
        return waiting, ()
    room = trace.capacities()[-1]
    pairs = zip(room.blocks, room.limiters, strict=True)
    causes = [(NO_CLUSTER,) if blocks else every for blocks, every in pairs]
    return waiting, limits_of(causes, own, others)
