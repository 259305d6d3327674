"""Launches that wait, many at once, in several streams and priorities, against a plain account."""

from __future__ import annotations

import dataclasses

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract import line_reference
from contract.random_devices.specs import specs
from contract.sequences import most_registers, most_threads, some_sms
from helpers import examples, gpu
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import launch_orders, predict
from tbsched.program.sequence import Event, Launch, Release, Sequence
from tbsched.traces.placement import Placement

RESOURCES = ("topology", "limits", "allocation")
RULES = {
    "leftover": {"by_priority": True, "head_of_line": True},
    "fifo": {"by_priority": False, "head_of_line": True},
    "pass_by": {"by_priority": True, "head_of_line": False},
    "one_line": {"by_priority": True, "head_of_line": True, "on_own_sms": False},
}

small_launches = st.builds(
    Launch,
    st.sampled_from([1, 1, 2, 5, 40]),
    st.sampled_from([32, 96, 256, 512, 1024]),
    st.sampled_from([16, 32, 64]),
    st.sampled_from([0, 0, 0, 8 * 1024, 40 * 1024]),
    st.sampled_from([0, 0, 0, 0, 2048]),
    stream=st.sampled_from([None, None, 0, 1, 2]),
    priority=st.sampled_from([0, 0, 0, -1, -2]),
)


def fitting(launch: Launch, spec: DeviceSpec) -> Launch:
    """The launch, cut down to what the device can run."""
    threads = min(launch.threads, most_threads(spec))
    return dataclasses.replace(
        launch,
        threads=threads,
        registers=min(launch.registers, most_registers(spec, threads)),
        shared_memory=min(launch.shared_memory, spec.shared_memory_per_block),
    )


@st.composite
def crowds(draw: st.DrawFn, spec: DeviceSpec) -> Sequence:
    """A launch that fills the GPU, many behind it, and then releases among more launches."""
    first = Launch(2 * spec.sms, 1024, 16, stream=draw(st.sampled_from([None, 0])))
    events: list[Event] = [first, *draw(st.lists(small_launches, max_size=25))]
    held = list(range(len(events)))
    for later in draw(st.lists(st.none() | small_launches, max_size=30)):
        if later is not None:
            held.append(len(held) + sum(isinstance(event, Release) for event in events))
            events.append(later)
        elif held:
            events.append(Release(held.pop(draw(st.integers(0, min(3, len(held) - 1))))))
    where = st.sampled_from(draw(st.sampled_from([[None], [None, *some_sms(spec.sms)]])))
    return Sequence(
        dataclasses.replace(fitting(e, spec), partition=draw(where)) if isinstance(e, Launch) else e
        for e in events
    )


def is_cause(plain: str | None, placement: Placement) -> bool:
    """Whether the plain account agrees: it does not say what room there is too little of."""
    limiter = placement.limiter
    found = limiter if limiter in {None, "queue", "stream"} else "room"
    return found == plain or (plain == "queue or room" and found in {"queue", "room"})


def test_every_order_of_launches_has_its_rules_here() -> None:
    assert {row.name for row in launch_orders()} == set(RULES)


@settings(
    max_examples=examples(400),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    data=st.data(),
    spec=st.just(gpu(2)) | specs("rtx3090", RESOURCES, most_sms=3),
    order=st.sampled_from(sorted(RULES)),
)
def test_launches_that_wait_are_placed_as_if_all_were_looked_at_every_time(
    data: st.DataObject, spec: DeviceSpec, order: str
) -> None:
    sequence = data.draw(crowds(spec))
    trace = predict(sequence, dataclasses.replace(spec, launch_order=order), "ampere")
    plain = line_reference.run(sequence, spec, **RULES[order])
    for placement, (smid, cause, final_smid) in zip(trace, plain, strict=True):
        assert placement.smid.tolist() == smid
        assert is_cause(cause, placement), (cause, placement)
        assert placement.final_smid is not None
        assert placement.final_smid.tolist() == final_smid
