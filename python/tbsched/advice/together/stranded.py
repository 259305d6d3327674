"""What a witness leaves waiting, and what each class of SMs says to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tbsched.advice.together.above import late_blocks
from tbsched.advice.together.limits import NO_CLUSTER, Limit, limits_of
from tbsched.advice.together.problem import Stranding
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Release, Sequence

_OF_SMS = ("slots", "warps", "registers", "shared_memory", "configuration")


def left_waiting(
    spec: DeviceSpec, policy: str, stranding: Stranding
) -> tuple[int, tuple[Limit, ...]]:
    """How many blocks of the launch never start, and what refuses one more on each class of SMs.

    There are no classes where no SM is to blame.
    """
    sequence, place = stranding.sequence, stranding.order.index(stranding.stranded)
    if sequence.timed:
        trace = predict(sequence, spec, policy, stranding.state, issue_times=stranding.issue_times)
        return late_blocks(trace, place), ()
    launch = sequence.launches[place]
    # What each SM says to a launch is known of one that finds no room: so one more comes.
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
    if stranding.cause not in _OF_SMS or trace.capacities is None:
        return waiting, ()
    room = trace.capacities()[-1]
    causes = [NO_CLUSTER if n else why for n, why in zip(room.blocks, room.limiter, strict=True)]
    return waiting, limits_of(causes, own, others)
