"""Copies of both directions that share one copy engine, and the order in which they do best."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import tbsched as tb
from helpers import examples
from importers.written import PROCESS, nsys, row_of_call, row_of_kernel
from profiled import profiled
from tbsched.advice.change import Change
from tbsched.advice.explain.changes.copies import earliest_places, reordered
from tbsched.hardware.described import device_of_facts
from tbsched.strategies import programs

MS, US = 1e-3, 1e-6
WORDS = "all copies to the GPU issued before those from it"
ONE = replace(tb.device("h200"), copy_engine_count=1, copy_channels=1)


def kernel(stream: int | str, ms: float = 1.0) -> tb.Launch:
    return tb.Launch(16, 256, 32, stream=stream, duration=ms * MS, name="k")


def copy(stream: int | str, kind: Any, ms: float = 1.0, **rest: Any) -> tb.Copy:
    return tb.Copy(1 << 20, kind, duration=ms * MS, stream=stream, **rest)


def step(stream: int, ms: float = 1.0) -> list[Any]:
    return [copy(stream, "h2d"), kernel(stream, ms), copy(stream, "d2h")]


def proposed(*events: Any, spec: tb.DeviceSpec = ONE, host: float = US) -> list[Change]:
    found = tb.explain(profiled(tb.Sequence(events), spec, host), spec)
    return [change for change in found.changes if WORDS in change.what]


def test_copies_to_the_gpu_come_before_those_from_it() -> None:
    (change,) = proposed(*step(0), *step(1), *step(2))
    assert [getattr(x, "kind", "kernel") for x in change.sequence] == [
        "h2d", "h2d", "h2d", "kernel", "d2h", "kernel", "d2h", "kernel", "d2h",
    ]  # fmt: skip
    # Before, the engine stood still in each step while the kernel ran.
    assert change.saves == pytest.approx(3 * MS, rel=0.05)
    assert change.condition.startswith("if the buffers of all steps fit")


def test_what_copies_take_after_the_last_kernel_is_not_saved() -> None:
    (change,) = proposed(*step(0, 0.2), *step(1, 0.2), *step(2, 0.2))
    assert change.saves == pytest.approx(0.6 * MS, rel=0.1)


def test_with_an_engine_for_each_direction_there_is_nothing_to_gain() -> None:
    assert not proposed(*step(0), *step(1), *step(2), spec=tb.device("h200"))


def order(*events: Any) -> dict[int, int]:
    return earliest_places(tuple(events))


def test_a_copy_stays_behind_what_its_stream_and_its_thread_wait_for() -> None:
    up, back = copy(1, "h2d"), copy(0, "d2h")
    assert order(back, up, copy(1, "h2d")) == {1: -1, 2: -1}
    for own in (kernel(1), copy(1, "d2h"), tb.RecordEvent(0, 1), tb.WaitEvent(0, 1)):
        assert order(own, back, up) == {2: 0}
    for wait in (tb.Synchronize(), copy(0, "d2h", blocking=True), kernel("legacy")):
        assert order(wait, back, up) == {2: 0}
    for other in (tb.Synchronize(host=1), tb.RecordEvent(0, 0), kernel(0), tb.Memset(8, stream=0)):
        assert order(other, back, up) == {2: -1}


def test_copies_that_keep_their_thread_stay() -> None:
    for stays in ({"pinned": False}, {"blocking": True}):
        assert not order(copy(0, "d2h"), copy(1, "h2d", **stays))
    assert not order(copy(0, "d2h"), copy("legacy", "h2d"))


@settings(max_examples=examples(100), deadline=None)
@given(programs("h200"))
def test_streams_and_all_that_is_no_copy_to_the_gpu_stay_in_order(sequence: tb.Sequence) -> None:
    behind = earliest_places(sequence.events)
    order = reordered(len(sequence), behind)
    assert sorted(order) == [*range(len(sequence))]
    stays = [place for place in order if place not in behind]
    assert stays == sorted(stays)
    for stream in {getattr(event, "stream", None) for event in sequence} - {None}:
        own = [place for place in order if getattr(sequence[place], "stream", None) == stream]
        assert own == sorted(own)


def exported(engines: int | None, steps: int = 4) -> dict[str, list[dict[str, Any]]]:
    """Streams with two copies to the GPU, a kernel and a copy back; one thing at a time, in ms."""
    streams = range(13, 13 + steps)
    kinds = [(stream, kind) for stream in streams for kind in (1, 1, 0, 2)]
    kernels, copies, calls = [], [], []
    for number, (stream, kind) in enumerate(kinds):
        start, end = 1_000_000 * (number + 1) + 1_000, 1_000_000 * (number + 2)
        calls.append(row_of_call(number, 5_000 * number, 5_000 * number + 4_000, 2 if kind else 1))
        if kind:
            copies.append({
                "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": stream,
                "correlationId": number, "globalPid": PROCESS << 24, "bytes": 10**7,
                "copyKind": kind,
            })  # fmt: skip
        else:
            plain = {"localMemoryPerThread": 0, "clusterX": 1, "dynamicSharedMemory": 0}
            kernels.append(row_of_kernel(number, start, end, stream, **plain))
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "StringIds": [
            {"id": 1, "value": "cudaLaunchKernel_v7000"}, {"id": 7, "value": "add(int)"},
            {"id": 2, "value": "cudaMemcpyAsync_v3020"}, {"id": 8, "value": "add"},
        ],
        "TARGET_INFO_GPU": [{
            "id": 0, "name": "NVIDIA GeForce RTX 4060 Ti", "smCount": 34, "computeMajor": 8,
            "computeMinor": 9, "threadsPerWarp": 32, "asyncEngines": engines,
        }],
    }  # fmt: skip


def load(tmp_path: Path, engines: int | None) -> tb.Program:
    return tb.load_program(nsys(tmp_path / f"{engines}.sqlite", exported(engines)))


def test_a_profile_of_one_copy_engine_is_predicted_as_it_ran(tmp_path: Path) -> None:
    found = tb.explain(load(tmp_path, 1))
    assert found.prediction is not None
    assert found.prediction.makespan == pytest.approx(found.makespan, rel=0.01)
    (change,) = (change for change in found.changes if WORDS in change.what)
    assert change.saves == pytest.approx(4 * MS, rel=0.05)
    two = tb.explain(load(tmp_path, 2))
    assert two.prediction is not None
    assert two.prediction.makespan < 0.8 * two.makespan


@pytest.mark.parametrize(
    ("engines", "count", "kind"),
    [(1, 1, "vendor"), (2, 2, "vendor"), (5, 2, "vendor"), (None, 2, "assumed")],
)
def test_a_profile_says_how_many_copy_engines_there_are(
    tmp_path: Path, engines: int | None, count: int, kind: str
) -> None:
    gpu = load(tmp_path, engines).gpu
    assert gpu is not None
    spec = device_of_facts(gpu)
    assert spec is not None
    assert (spec.copy_engine_count, spec.copy_channels == 1) == (count, count == 1)
    origin = spec.provenance["scheduler.copy_engine_count"]
    assert origin.kind == kind
    assert (origin.source == "the profile says it") == (engines is not None)
    assert spec.provenance["scheduler.copy_channels"].kind == "assumed"
    none = device_of_facts(replace(gpu, copy_engines=0))
    assert none is not None
    assert none.copy_engine_count == 1  # it copies all the same
