"""The checker refuses what cannot be: predictions of a device that has more or waits for less."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from contract.random_devices import replay
from contract.random_devices.specs import changed
from helpers import KB, gpu
from tbsched.hardware.catalogue import device
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.sequence import Event, Launch, RecordEvent, Sequence, WaitEvent

SMALL = gpu(2, gpcs=((0,),))
SLOW = dataclasses.replace(
    SMALL, exit_latency_ns=450, completion_latency_ns=1_450, launch_latency_ns=7_000
)
FULL = Launch(32, 32, 16, duration=1e-6)
FIRST, SECOND = Launch(1, 32, 16, stream=0), Launch(1, 32, 16, stream=1)


def timed(*launches: Launch) -> list[Launch]:
    return [dataclasses.replace(launch, duration=1e-6) for launch in launches]


@pytest.mark.parametrize(
    ("spec", "more", "events"),
    [
        (SMALL, {"blocks_per_sm": 17}, [Launch(34, 32, 16)]),
        (SMALL, {"warps_per_sm": 64}, [Launch(4, 1024, 16)]),
        (SMALL, {"registers_per_sm": 2**17}, [Launch(6, 512, 64)]),
        (SMALL, {"shared_memory_reserve": 0}, [Launch(20, 32, 16, 10 * KB)]),
        (SMALL, {"shared_memory_unit": 1}, [Launch(20, 32, 16, 10_353)]),
        (SMALL, {"processing_blocks": 1}, [Launch(18, 96, 88)]),
        (
            SMALL,
            {"warp_skip": False},
            [Launch(2, 32, 104), Launch(2, 128, 104), Launch(24, 32, 104)],
        ),
        (
            SMALL,
            {"shared_memory_configuration": False},
            [Launch(2, 1024, 16, 4 * KB), Launch(2, 32, 16, 40 * KB)],
        ),
        (
            SMALL,
            {"local_memory_configuration": False},
            [Launch(1, 32, 16), Launch(1, 32, 16, local_memory=2 * KB)],
        ),
        (device("h200"), {"cluster_blocks_per_sm": 9}, [Launch(9 * 132, 32, 16, cluster=2)]),
        (device("h200"), {"gpcs": (tuple(range(66)),)}, [Launch(16, 32, 16, cluster=16)]),
        (SLOW, {"exit_latency_ns": 0}, [FULL, FULL]),
        (SLOW, {"completion_latency_ns": 0}, timed(FIRST, FIRST)),
        (SLOW, {"launch_latency_ns": 0}, timed(FIRST)),
        (dataclasses.replace(SLOW, resident_grids=1), {"resident_grids": 2}, timed(FIRST, SECOND)),
        (
            SLOW,
            {"exit_latency_ns": 0},
            [*timed(FIRST), RecordEvent(0, 0), WaitEvent(0, 1), *timed(SECOND)],
        ),
    ],
)  # fmt: skip
def test_prediction_of_a_device_that_has_more_is_refused(
    monkeypatch: pytest.MonkeyPatch, spec: DeviceSpec, more: dict[str, Any], events: list[Event]
) -> None:
    policy = spec.policy
    larger = changed(spec, more)
    program = Sequence(events)

    def check() -> None:
        state = spec.initial_states()[0]
        if program.timed:
            replay.check_timed(program, spec, policy, state, 0)
        else:
            replay.check_held(program, spec, policy, state)

    check()
    monkeypatch.setattr(
        replay, "predict", lambda seq, _, *rest, **options: predict(seq, larger, *rest, **options)
    )
    with pytest.raises(AssertionError):
        check()
