"""Laws of predictions, on random sequences for every device and ablation."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import examples
from tbsched.campaigns import SequenceOptions
from tbsched.campaigns.oracles import prefix
from tbsched.comparison.compare import compare
from tbsched.hardware.catalogue import ablations, device, devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import policies, predict, predict_many
from tbsched.program.sequence import Launch, Release, Sequence
from tbsched.strategies import launches, sequences
from tbsched.traces.files import load_traces, save_traces
from tbsched.traces.trace import Trace

REPEATABLE = settings(deadline=None, derandomize=True)
EVERYTHING = SequenceOptions(carveouts=(100, None, 0, 50), local_memory=(0, 4096), min_registers=1)
NAMES = [
    *devices(),
    *(f"{name}-{ablation}" for name in devices() for ablation in ablations()),
]


@functools.cache
def small(name: str) -> DeviceSpec:
    """The device with fewer SMs, for the reference that tries every SM for every block."""
    spec = device(name)
    sms = min(spec.sms, 4 * spec.sms_per_tpc)
    return dataclasses.replace(
        spec,
        sms=sms,
        sm_preference=tuple(sm for sm in spec.sm_preference if sm < sms),
        gpcs=(),
    )


def same(a: Trace, b: Trace) -> bool:
    return all(
        np.array_equal(p.smid, q.smid)
        and np.array_equal(p.final_smid, q.final_smid)  # type: ignore[arg-type]
        and p.limiter == q.limiter
        for p, q in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_level_by_level_equals_algorithm_1_to_the_letter(name: str) -> None:
    spec = small(name)

    @settings(REPEATABLE, max_examples=examples(40))
    @given(sequences(spec, EVERYTHING))
    def holds(sequence: Sequence) -> None:
        assert same(predict(sequence, spec, "ampere"), predict(sequence, spec, "algorithm1"))

    holds()


@settings(REPEATABLE, max_examples=100)
@given(sequences("h200", EVERYTHING))
def test_hopper_has_the_occupancy_of_ampere(sequence: Sequence) -> None:
    hopper, ampere = (predict(sequence, "h200", policy) for policy in ("hopper", "ampere"))
    assert compare(hopper, ampere).occupancy


@pytest.mark.parametrize("policy", [row.name for row in policies() if row.name != "algorithm1"])
def test_the_same_question_has_the_same_answer(policy: str) -> None:
    @settings(REPEATABLE, max_examples=examples(40))
    @given(sequences("h200", EVERYTHING))
    def holds(sequence: Sequence) -> None:
        assert same(predict(sequence, "h200", policy), predict(sequence, "h200", policy))

    holds()


@pytest.mark.parametrize("policy", [row.name for row in policies() if row.name != "algorithm1"])
def test_later_events_do_not_change_earlier_placements(policy: str) -> None:
    @settings(REPEATABLE, max_examples=examples(40))
    @given(sequences("h200", EVERYTHING), st.integers(1, 10))
    def holds(sequence: Sequence, launches: int) -> None:
        cut = prefix(sequence, launches)
        whole, part = predict(sequence, "h200", policy), predict(cut, "h200", policy)
        for p, q in zip(whole.placements[: len(part)], part, strict=True):
            assert np.array_equal(p.smid, q.smid)

    holds()


@pytest.mark.parametrize("name", devices())
def test_a_gpu_is_as_new_once_everything_is_released(name: str) -> None:
    @settings(REPEATABLE, max_examples=examples(40))
    @given(sequences(name, EVERYTHING), launches(name, EVERYTHING))
    def holds(sequence: Sequence, launch: Launch) -> None:
        released = {event.launch for event in sequence if isinstance(event, Release)}
        rest = [Release(k) for k in range(len(sequence.launches)) if k not in released]
        after = predict(Sequence([*sequence, *rest, launch]), name)[-1]
        new = predict(Sequence([launch]), name)[0]
        sms = device(name).sms
        assert np.array_equal(after.occupancy(sms), new.occupancy(sms))

    holds()


@settings(REPEATABLE, max_examples=100)
@given(sequences("h200", dataclasses.replace(EVERYTHING, clusters=(1, 2), priorities=(0, 1))))
def test_a_sequence_survives_json_and_its_own_repr(sequence: Sequence) -> None:
    assert Sequence.from_json(sequence.to_json()) == sequence
    names = {"Sequence": Sequence, "Launch": Launch, "Release": Release}
    assert eval(repr(sequence), names) == sequence


def test_traces_survive_their_file(tmp_path: Path) -> None:
    @settings(REPEATABLE, max_examples=30)
    @given(st.lists(sequences("rtx3090", EVERYTHING), max_size=3))
    def holds(drawn: list[Sequence]) -> None:
        traces = [predict(sequence, "rtx3090") for sequence in drawn]
        if not traces:
            return
        save_traces(tmp_path / "traces.jsonl.gz", traces)
        loaded = load_traces(tmp_path / "traces.jsonl.gz")
        assert [trace.sequence for trace in loaded] == drawn
        assert all(same(a, b) for a, b in zip(traces, loaded, strict=True))

    holds()


def test_connections_are_the_hardware_queues_of_the_process() -> None:
    """With one queue, an independent kernel waits behind one that waits for its stream."""
    kernel = Launch(1, 32, 16, stream=0, duration=1e-3)
    seq = Sequence([kernel, kernel, dataclasses.replace(kernel, stream=1)])
    for connections in (1, 8):
        given = predict(seq, "h200", connections=connections)
        set_up = dataclasses.replace(device("h200"), hardware_queues=connections)
        assert given.waits.tolist() == predict(seq, set_up).waits.tolist()
        assert given.concurrent(0, 2) == (connections == 8)
        (of_many,) = predict_many([seq], "h200", connections=connections)
        assert of_many.makespan == given.makespan
    for connections in (0, 33):  # CUDA makes no more queues
        with pytest.raises(
            ValueError, match=rf"predict\.connections: {connections} is outside 1\.\.32"
        ):
            predict(seq, "h200", connections=connections)
