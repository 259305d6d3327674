"""Parts of profiles: by time and by stream, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tbsched as tb
from importers.written import call, kernel, kineto, nsys, row_of_call, row_of_kernel
from tbsched import views

# Each kernel: its start and end in ns, its stream, context and GPU. They have the names k0, k1, …
Kernels = list[tuple[int, int, int, int, int]]


def of_kineto(place: Path, kernels: Kernels) -> Path:
    events = []
    for number, (start, end, stream, context, gpu) in enumerate(kernels):
        named = {"name": f"k{number}", "context": context, "device": gpu}
        ran = kernel(number + 1, start / 1e3, (end - start) / 1e3, stream, **named)
        events += [call(number + 1, start / 1e3 - 8, 5), ran]
    return kineto(place, *events)


def of_nsys(place: Path, kernels: Kernels) -> Path:
    names = {1: "cudaLaunchKernel_v7000"} | {10 + k: f"k{k}" for k in range(len(kernels))}
    return nsys(place, {
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            row_of_kernel(number + 1, start, end, stream, contextId=context, deviceId=gpu,
                          demangledName=10 + number, shortName=10 + number)
            for number, (start, end, stream, context, gpu) in enumerate(kernels)
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            row_of_call(number + 1, start - 8000, start - 3000)
            for number, (start, *_) in enumerate(kernels)
        ],
        "StringIds": [{"id": number, "value": value} for number, value in names.items()],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "smCount": 132}],
    })  # fmt: skip


def of_capture(place: Path, kernels: Kernels) -> Path:
    gpus = {context: gpu for _, _, _, context, gpu in kernels}
    shape = {"grid": [132, 1, 1], "block": [256, 1, 1], "registers": 32,
             "static_shared_memory": 0, "dynamic_shared_memory": 0, "local_memory": 0,
             "cooperative": False}  # fmt: skip
    lines: list[dict[str, object]] = [
        {"tbsched_capture": 1, "started_ns": 5, "process": 7, "cupti": 130001, "connections": 32},
        *({"device": gpu, "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0",
           "sms": 132} for gpu in sorted({*gpus.values()})),
        *({"context": n, "device": gpu, "null_stream": 7} for n, gpu in gpus.items()),
        {"function": 0, "name": "cudaLaunchKernel_v7000"},
        *({"kernel": n, "name": f"k{n}", **shape} for n in range(len(kernels))),
    ]  # fmt: skip
    for n, (start, end, stream, context, _) in enumerate(kernels):
        lines.append({"call": n + 1, "of": 0, "thread": 0, "at": [start - 8000, start - 3000]})
        lines.append({"ran": n, "call": n + 1, "at": [start, end], "context": context,
                      "stream": stream, "channel": 1, "configured": 32768})  # fmt: skip
    lines.append({"end": 10**9, "launches": len(kernels), "unfinished": 0})
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


FORMATS = pytest.mark.parametrize("written", [of_kineto, of_nsys, of_capture])
Written = Callable[[Path, Kernels], Path]


@FORMATS
@pytest.mark.parametrize("predicted", [True, False])
def test_times_of_a_part_count_from_the_first_work_of_the_profile(
    tmp_path: Path, written: Written, predicted: bool
) -> None:
    starts = 100_000, 500_000, 1_000_000, 1_200_000
    place = written(tmp_path / "profile", [(at, at + 100_000, 7, 1, 0) for at in starts])

    def gaps_at(**part: float) -> list[float]:
        program = tb.load_program(place, fit=False, **part)  # type: ignore[arg-type]
        found = tb.explain(program, predicted=predicted, threshold=0.0)
        told = views.data(found)
        since = {gap["begin"] - told["begin"] for gap in told["gaps"]}
        assert since == {*views.columns(found)["at"]}
        return sorted(since)

    assert gaps_at() == pytest.approx([100e-6, 500e-6, 1000e-6])
    assert gaps_at(start=300e-6) == pytest.approx([500e-6, 1000e-6])


@FORMATS
def test_streams_of_two_contexts_are_two(tmp_path: Path, written: Written) -> None:
    kernels = [(100_000, 300_000, 13, 1, 0), (150_000, 400_000, 13, 2, 0),
               (420_000, 500_000, 14, 1, 0)]  # fmt: skip
    place = written(tmp_path / "profile", kernels)
    program = tb.load_program(place, fit=False)
    assert [launch.stream for launch in program.sequence.launches] == [13, 100_013, 14]
    assert not any(launch.programmatic for launch in program.sequence.launches)
    (said,) = [words for words in program.assumed if "several contexts" in words]
    assert "13 of context 2 is 100013." in said


@FORMATS
@pytest.mark.parametrize("other_gpu", [0, 1])
def test_a_stream_is_selected_by_its_number_in_the_file(
    tmp_path: Path, written: Written, other_gpu: int
) -> None:
    streams = [(7, 1), (7, 2), (13, 1), (13, 2), (14, 1), (14, 2)]
    place = written(tmp_path / "profile", [
        (100_000 * number, 100_000 * number + 50_000, stream, context,
         other_gpu if context == 2 else 0)
        for number, (stream, context) in enumerate(streams, 1)
    ])  # fmt: skip
    for first, stream in ((0, 7), (2, 13), (4, 14)):
        activity = tb.load_program(place, fit=False, streams=[stream]).activity
        assert activity is not None
        assert [activity.names[name] for name in activity.work["name"]] == [
            f"k{first}", f"k{first + 1}",
        ]  # fmt: skip
        given = activity.work["stream"].tolist()
        assert given == [stream, stream if other_gpu else 100_000 + stream]
    program = tb.load_program(place, fit=False)
    assert any("several contexts" in words for words in program.assumed) == (not other_gpu)


@FORMATS
def test_a_part_begins_and_ends_at_the_nanosecond(tmp_path: Path, written: Written) -> None:
    at = 3_915_395  # in seconds, times 1e9, a float above it
    assert at / 1e9 * 1e9 > at
    late = 4_000_001
    kernels = [(1_000_000 + x, 1_000_500 + x, 7, 1, 0) for x in (0, at, late)]
    place = written(tmp_path / "profile", kernels)

    def names(**part: float) -> list[str]:
        return list(tb.load_program(place, fit=False, **part).measured["name"])  # type: ignore[arg-type]

    assert names(start=at / 1e9) == ["k1", "k2"]
    assert names(end=at / 1e9) == ["k0"]
