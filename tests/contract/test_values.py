"""Every value of the public interface: copied, sent to another process, and read-only."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from helpers import ROOT, launch
from tbsched import errors
from tbsched.campaigns.results import Unstable
from tbsched.comparison.verify import verify

HELD = tb.Sequence([launch(300, 8), launch(2000, 16), tb.Release(0), launch(1, name="é")])
TIMED = tb.Sequence(
    [
        launch(4, stream=0, duration=1e-3),
        tb.RecordEvent(1, stream=0),
        tb.WaitEvent(1, stream=2),
        tb.Synchronize(event=1, host=3),
        launch(4, stream=2, priority=-1, duration=tb.Drawn("lognormal", 1e-3, 1e-4, 7)),
        launch(2, stream="legacy", duration=(1e-3, 2e-3)),
    ]
)
HOST_WORK = tb.Sequence(
    [
        tb.HostCall("cudaFree", 1e-4, waits="device"),
        tb.HostFunction(1e-5, stream=0, name="log"),
        tb.WriteValue("ready", stream=0),
        tb.WaitValue("ready", stream=2),
        launch(4, stream=2, duration=1e-3),
    ]
)
EVERY_WAY = launch(
    8, stream=1, duration=1e-3, partition=tb.Partition((0, 1), split=tb.SmSplit(2), group=0),
    cooperative=True, non_blocking=True, programmatic=True, trigger=1e-6, memory_wait=2e-6,
    completion_event=3, first_use=True, delay=1e-6, host=1,
)  # fmt: skip
COPIES = (tb.Copy(1 << 20, "h2d", duration=1e-5), tb.Memset(64))
GRAPH = tb.Graph([launch(4, duration=1e-3), launch(8, duration=1e-3), *COPIES], edges=[(0, 1)])
NESTED = tb.Graph([GRAPH, tb.Conditional(GRAPH, times=2)], edges=[(0, 1)])
MEMORY = (tb.MemAlloc("a", 64), tb.MemFree("a"))
MARKED = tb.Graph([MEMORY[0], GRAPH, tb.RecordEvent(0), MEMORY[1]], edges=[(0, 1), (1, 3)])
NOT_VALUES = {tb.Steered, tb.capture}  # they hold a GPU
SPECIAL = {tb.CudaError: ("cuLaunchKernelEx", "CUDA_ERROR_INVALID_VALUE", "what it says")}


def all_errors() -> Iterator[Exception]:
    """One of each kind of the package's own."""
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.TbschedError):
            yield kind(*SPECIAL.get(kind, ("it said so",)))


def public_values() -> list[Any]:
    """At least one value of every class that a public function takes or returns."""
    held, timed = tb.predict(HELD, "h200"), tb.predict(TIMED, "h200", launch_interval=1e-6)
    slots = tb.predict(HELD, "h200", warp_slots=True)
    assert held.capacities is not None
    diff = tb.compare(tb.predict(HELD, "h200", "first_fit"), held)
    report = tb.fuzz("rtx3090", "rtx3090", "first_fit", seed=1, max_examples=50, progress=False)
    configs = tb.launch_configs("h200", tb.Kernel(10_000, 32))
    best, changes = tb.best_order(TIMED.launches[:2], "h200"), tb.what_if(TIMED, "h200")
    camera = tb.Task("camera", [launch(2, duration=1e-4)], period=1e-3)
    periodic = tb.periodic([camera])
    responses = periodic.responses(
        tb.predict(periodic.sequence, "h200", issue_times=periodic.issue_times)
    )
    room = tb.capacity(launch(4), "h200", beside=[launch(8, 32)])
    choices = tb.capacities(launch(4), "h200", threads=[64])
    together = tb.coresident([launch(132, 32), launch(140, 32)], "h200")
    program = tb.load_program(ROOT / "tests/profiles/h100/gemms.json.gz", "h100")
    explained = tb.explain(program, "h100")
    hangs = tb.hang(ROOT / "tests" / "hangs" / "recorded" / "room.jsonl")
    meeting = [
        launch(2, stream=0, duration=1e-3, gpu=k, host=k, meets=name)
        for k, names in enumerate(["ab", "ba"])
        for name in names
    ]
    ranks = tb.coresident(tb.Sequence(meeting), ["h200", "h200"])
    assert ranks.hang is not None
    hash(HELD), hash(TIMED)  # a sequence keeps it
    return [
        *HELD, *TIMED, *HOST_WORK, HELD, TIMED,
        HELD.launches[0], tb.Drawn("uniform", 1e-3), tb.device("h200"),
        tb.compare_devices("h200", "h200-no-warp-skip"),
        tb.InitialState(first_gpc=3), tb.policies()[0], tb.launch_orders()[0],
        *(held, timed, slots), *(held.device, held[0], timed[0], slots[0], held.capacities()[0]),
        tb.predict_processes([tb.Sequence(TIMED.launches[:2])], "h200", mps=True),
        tb.Meeting(held, ((0,),), (True,)), held.residents(), tb.outcomes(HELD, "h200", races=2)[0],
        tb.split_sms("h200", 64)[0][0], tb.SmSplit(8, max_cluster=True),
        tb.split_counts("a100", 8), EVERY_WAY, GRAPH, *COPIES, NESTED, NESTED.parts[1],
        *MEMORY, MARKED,
        GRAPH.launch(2, non_blocking=True), tb.Sequence([GRAPH.launch(), EVERY_WAY]),
        diff, diff.first_divergence, diff.launches[0], tb.compare_times(timed, timed),
        verify([held], "h200"), configs, configs.rows[0], tb.Kernel(100, 16),
        tb.forced_even("h200", launch(4)), best, changes, changes.given,
        tb.makespan_bounds(TIMED, "h200", predictions=2),
        camera, periodic, periodic.jobs[0], responses, responses.jobs[0],
        room, room.limits[0], choices, choices.choices[0], together, together.fixes[0],
        program, explained, explained.account[0], explained.gaps[0], explained.gaps[0].causes[0],
        ranks, ranks.fixes[0], ranks.hang, ranks.hang.stranded[0], ranks.hang.cycle[0],
        hangs, *hangs.resident[:1], *hangs.stranded[:1], *hangs.fixes[:1], *hangs.calls[:1],
        tb.Root(0, "host", "decode", 0.012, 0.011), tb.Rank(1, "rank1.json.gz", (1,), 0.0, 3e-6),
        tb.Exposed(0, "all_reduce of 4,096 bytes", "needs", "sgd_step", 2e-5),
        report, report.counterexamples[0], Unstable(HELD, "it said so"), *all_errors(),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def values() -> list[Any]:
    return public_values()


def parts(value: Any) -> dict[str, Any]:
    """What a value is made of, by name; nothing for plain ones."""
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, tuple | list):
        return {str(number): item for number, item in enumerate(value)}
    if isinstance(value, Exception):
        return {"args": value.args, "text": str(value), **vars(value)}
    if not dataclasses.is_dataclass(value):
        return {}
    found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tb.Trace):
        found["capacities"] = value.capacities and value.capacities()
        found["replay"] = value.replay and value.replay(0)
        rows = 0 if value.waits is None else len(value.waits)
        found["wait_limiters"] = value.wait_limiters and [*map(value.wait_limiters, range(rows))]
        found["timeline"] = value.timeline if value.sequence.timed else None
    if isinstance(value, tb.Diff):
        found["first_divergence"] = value.first_divergence
    return found


def differences(a: Any, b: Any, where: str = "") -> Iterator[str]:
    """Where two values are not alike."""
    if type(a) is not type(b):
        yield f"{where}: {type(a)} and {type(b)}"
    elif isinstance(a, np.ndarray):
        if a.dtype != b.dtype or not np.array_equal(a, b):
            yield f"{where}: {a} and {b}"
    elif not (some := parts(a)):
        if a != b:
            yield f"{where}: {a!r} and {b!r}"
    else:
        others = parts(b)
        if some.keys() != others.keys():
            yield f"{where}: {some.keys()} and {others.keys()}"
        for name in some.keys() & others.keys():
            yield from differences(some[name], others[name], f"{where}.{name}")


def arrays(value: Any, where: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """All arrays in a value."""
    if isinstance(value, np.ndarray):
        yield where, value
    for name, part in parts(value).items():
        yield from arrays(part, f"{where}.{name}")


def writable(values: list[Any]) -> list[str]:
    found = [item for value in values for item in arrays(value, type(value).__name__)]
    assert len(found) > 100
    return [where for where, array in found if array.flags.writeable]


def test_there_is_a_value_of_every_public_class(values: list[Any]) -> None:
    public = {value for name in dir(tb) if inspect.isclass(value := getattr(tb, name))}
    assert public - NOT_VALUES <= {type(value) for value in values}


# What another process does with values: looks them up among equal ones, and sends them back.
ELSEWHERE = """
import pickle, sys
import tbsched as tb
values = pickle.load(sys.stdin.buffer)
for value in values:
    if isinstance(value, tb.Sequence):
        assert value in {tb.Sequence(list(value))}, f"not found: {value}"
    if isinstance(value, tb.DeviceSpec):
        assert value in {tb.device(value.name)}
    if isinstance(value, tb.Trace):
        str(value)
pickle.dump(values, sys.stdout.buffer)
"""


def test_values_come_back_from_another_process_as_they_were(values: list[Any]) -> None:
    search = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env={**os.environ, "PYTHONPATH": search, "PYTHONHASHSEED": "12345"},
        input=pickle.dumps(values),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    back = pickle.loads(done.stdout)
    assert list(differences(values, back)) == []
    assert writable(back) == []
    for value, other in zip(values, back, strict=True):
        assert str(value) == str(other)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_alike(values: list[Any], copied: Any) -> None:
    copies = [copied(value) for value in values]
    assert list(differences(values, copies)) == []
    assert writable(copies) == []


def test_arrays_of_results_are_read_only(values: list[Any]) -> None:
    assert writable(values) == []


def test_arrays_of_the_core_stay_read_only() -> None:
    placement = tb.predict(HELD, "h200")[0]
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        placement.smid.flags.writeable = True


def test_array_that_a_placement_is_made_of_stays_the_callers() -> None:
    smid = np.zeros(4, np.int32)
    placement = tb.Placement(smid)
    smid[0] = 1
    assert not placement.smid.flags.writeable
    counts = placement.occupancy(2)
    counts += placement.occupancy(2)
    assert counts.tolist() == [6, 2]
