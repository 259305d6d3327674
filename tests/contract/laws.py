"""What holds for every row of the policy table on every device, whatever the sequence.

A law takes the history of a sequence and asserts.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np

from contract.sequences import History
from tbsched.comparison.verify import verify
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict, predict_as_recorded
from tbsched.program.sequence import Launch, Sequence

ROOM = {"slots", "warps", "registers", "shared_memory", "configuration", "local_memory"}


def block_is_placed_once_and_stays(past: History) -> None:
    for event in range(len(past.sequence)):
        for row in past.final(event):
            assert ((row >= -1) & (row < past.spec.sms)).all()
            # The hardware hands out block indices in order: those that wait are the last ones.
            assert (np.diff((row >= 0).astype(int)) <= 0).all()
        if event:
            for before, after in zip(past.final(event - 1), past.final(event), strict=False):
                np.testing.assert_array_equal(before[before >= 0], after[before >= 0])


def smid_is_the_state_before_the_next_event(past: History) -> None:
    for number, event in enumerate(past.launched_by()):
        smid = past.traces[-1][number].smid
        np.testing.assert_array_equal(smid, past.final(event)[number])


def no_sm_ever_holds_more_than_it_has(past: History) -> None:
    spec = past.spec
    largest = spec.shared_memory_configurations[-1]
    for event in range(len(past.sequence)):
        slots, warps, registers, shared = (Counter[int]() for _ in range(4))
        for launch, sms in past.resident(event):
            count = -(-launch.threads // 32)
            unit, reserve = spec.shared_memory_unit, spec.shared_memory_reserve
            each = -(-launch.registers * 32 // spec.register_unit) * spec.register_unit
            for sm, blocks in sms.items():
                slots[sm] += blocks
                warps[sm] += blocks * count
                registers[sm] += blocks * count * each
                shared[sm] += blocks * (-(-launch.shared_memory // unit) * unit + reserve)
        for used, limit in (
            (slots, spec.blocks_per_sm),
            (warps, spec.warps_per_sm),
            (registers, spec.registers_per_sm),
            (shared, largest),
        ):
            assert max(used.values(), default=0) <= limit


def no_block_is_outside_of_its_partition(past: History) -> None:
    for launch, sms in past.resident(len(past.sequence) - 1):
        assert launch.partition is None or sms.keys() <= {*launch.partition.sms}


def nothing_passes_a_launch_that_waits_for_room(past: History) -> None:
    """Ahead is what is more urgent, or as urgent and earlier, and in line.

    What waits for its stream is not in line. An event can place the last blocks of a released
    launch, which so lets in the next one of its stream: that one comes behind them, however urgent
    it is. What waits holds up its own SMs alone. The first launch that needs more local memory
    waits for an idle GPU, and holds up all that came later, however urgent, on all SMs.
    """
    for event in range(len(past.sequence)):
        for number in range(len(past.final(event))):
            fresh = set(past.fresh(number, event))
            if not fresh:
                continue
            assert not past.is_behind_growth(number, event)
            for ahead in past.ahead(number, event):
                assert not fresh & own_sms(past.sequence.launches[ahead], past.spec)


def launch_waits_for_its_stream_or_behind_another_or_for_room(past: History) -> None:
    launches = past.sequence.launches
    for number, event in enumerate(past.launched_by()):
        limiter = past.traces[-1][number].limiter
        ahead = [launches[k] for k in past.ahead(number, event)]
        holds_all = any(len(own_sms(launch, past.spec)) == past.spec.sms for launch in ahead)
        if not past.waits(number, event):
            assert limiter is None
        elif number not in past.in_line(event):
            assert limiter == "stream"
        elif holds_all or past.is_behind_growth(number, event):
            assert limiter == "queue"
        else:
            assert limiter in (ROOM | {"queue"} if ahead else ROOM)


def own_sms(launch: Launch, spec: DeviceSpec) -> set[int]:
    """Those of its partition; of clusters that only a GPC takes, those in a GPC."""
    sms = set(range(spec.sms) if launch.partition is None else launch.partition.sms)
    if launch.cluster <= spec.sms_per_tpc:
        return sms
    tpcs = {tpc for gpc in spec.gpcs for tpc in gpc}
    return {sm for sm in sms if sm // spec.sms_per_tpc in tpcs}


def launch_stops_only_where_not_one_block_more_fits(past: History) -> None:
    events = past.sequence.events
    for number, position in enumerate(past.launched_by()):
        item = past.sequence.launches[number]
        placement = past.traces[-1][number]
        if not 0 < placement.placed < item.blocks:
            continue
        placed = dataclasses.replace(item, blocks=placement.placed)
        one_more = dataclasses.replace(item, blocks=item.cluster, stream=None)
        again = predict(
            Sequence([*events[:position], placed, one_more]), past.spec, past.policy
        )  # fmt: skip
        assert again[number].limiter is None
        np.testing.assert_array_equal(again[number].smid, placement.smid[: placement.placed])
        assert again[number + 1].placed == 0


def same_sequence_has_the_same_answer(past: History) -> None:
    for state in past.spec.initial_states(past.policy)[-2:]:
        one, two = (predict(past.sequence, past.spec, past.policy, state) for _ in range(2))
        assert one.capacities is not None
        one.capacities()  # asking changes nothing
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.smid, b.smid)
            np.testing.assert_array_equal(a.final_smid, b.final_smid)
            assert a.limiter == b.limiter


def prediction_is_one_of_its_own_outcomes(past: History) -> None:
    trace = past.traces[-1]
    played = predict_as_recorded(trace, past.spec, past.policy)
    for found, own in zip(played, trace, strict=True):
        np.testing.assert_array_equal(found.smid, own.smid)
        np.testing.assert_array_equal(found.final_smid, own.final_smid)
    assert verify([trace], past.spec, past.policy).exact == len(trace)


LAWS = (
    block_is_placed_once_and_stays,
    smid_is_the_state_before_the_next_event,
    no_sm_ever_holds_more_than_it_has,
    no_block_is_outside_of_its_partition,
    nothing_passes_a_launch_that_waits_for_room,
    launch_waits_for_its_stream_or_behind_another_or_for_room,
    launch_stops_only_where_not_one_block_more_fits,
    same_sequence_has_the_same_answer,
    prediction_is_one_of_its_own_outcomes,
)
