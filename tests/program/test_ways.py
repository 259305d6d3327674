"""The fields of a launch that few launches set."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import tbsched as tb
from tbsched.program.partition import Partition, SmSplit
from tbsched.program.sequence import Launch, Sequence

PARTITION = Partition((0, 3), split=SmSplit(2), group=0)
HELD = {"partition": PARTITION, "cooperative": True}
TIMED = {
    "non_blocking": True,
    "programmatic": True,
    "trigger": 1e-6,
    "memory_wait": 2e-6,
    "completion_event": 3,
    "first_use": True,
    "delay": 3e-6,
    "host": 2,
    "gpu": 1,
}
MEETS = {"meets": "x", "in_block_order": True}  # not with a trigger or a memory wait
PLAIN = Launch(4, 32, 16, duration=1e-5)
EVERY = replace(PLAIN, **HELD, **TIMED)
MEETING = replace(PLAIN, **MEETS)


def test_fields_are_the_arguments_in_their_order() -> None:
    parameters = inspect.signature(Launch).parameters
    assert [field.name for field in fields(Launch)] == list(parameters)
    only_named = [name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert only_named == [*HELD, *TIMED, *MEETS]


@pytest.mark.parametrize("field", [*HELD, *TIMED])
def test_launches_that_differ_in_a_field_are_not_equal(field: str) -> None:
    default = inspect.signature(Launch).parameters[field].default
    assert replace(EVERY, **{field: default}) != EVERY
    assert replace(EVERY) == EVERY
    assert hash(replace(EVERY)) == hash(EVERY)


def test_launches_that_meet_others_are_not_equal() -> None:
    assert replace(MEETING, meets="y") != MEETING
    assert replace(MEETING, in_block_order=False) != MEETING
    assert replace(MEETING) == MEETING
    assert hash(replace(MEETING)) == hash(MEETING)


@pytest.mark.parametrize("field", TIMED)
def test_what_only_timed_launches_have_needs_a_duration(field: str) -> None:
    with pytest.raises(
        ValueError, match=rf"Launch\.{field}: .* needs a Launch\.duration, got None"
    ):
        Launch(4, 32, 16, **{field: TIMED[field]})  # type: ignore[arg-type]


def test_blocks_that_stay_until_released_do_not_meet() -> None:
    with pytest.raises(ValueError, match=r"Launch\.meets: x needs a Launch\.duration, got None"):
        Launch(4, 32, 16, meets="x")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"in_block_order": True}, r"Launch\.in_block_order: True, but Launch\.meets is None"),
        ({"meets": ""}, r"Launch\.meets: '' is empty"),
        ({"meets": 3}, r"Launch\.meets: text or None is needed, got 3"),
        ({"meets": "x", "trigger": 1e-6}, r"Launch\.trigger: 1e-06, but Launch\.meets is 'x'"),
        (
            {"meets": "x", "memory_wait": 0.0},
            r"Launch\.memory_wait: 0\.0, but Launch\.meets is 'x'",
        ),
        ({"gpu": 1024}, r"Launch\.gpu: 1024 is outside 0\.\.1023"),
        ({"gpu": True}, r"Launch\.gpu: an integer is needed, got True"),
    ],
)
def test_what_cannot_meet_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        replace(PLAIN, **fields)


def test_partition_and_cooperation_are_of_held_launches_too() -> None:
    held = Launch(4, 32, 16, **HELD)  # type: ignore[arg-type]
    assert not Sequence([held]).timed
    assert (held.partition, held.cooperative) == (PARTITION, True)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("partition", Partition(()), r"Partition\(sms=\(\)\) has no SMs for any block"),
        ("partition", (0, 1), r"a Partition is needed, got \(0, 1\)"),
        ("cooperative", 1, "True or False is needed, got 1"),
        ("non_blocking", None, "True or False is needed, got None"),
        ("programmatic", "yes", "True or False is needed, got 'yes'"),
        ("trigger", -1e-6, r"-1e-06 is outside 0\.\.1e9 seconds"),
        ("memory_wait", 2e9, r"2000000000\.0 is outside 0\.\.1e9 seconds"),
        ("memory_wait", float("nan"), r"nan is outside 0\.\.1e9 seconds"),
        ("trigger", True, "seconds are needed, got True"),
        ("completion_event", -1, r"-1 is outside 0\.\.2147483647"),
        ("completion_event", 1.5, r"an integer is needed, got 1\.5"),
        ("first_use", 1, "True or False is needed, got 1"),
        ("host", 1024, r"1024 is outside 0\.\.1023"),
        ("host", -1, r"-1 is outside 0\.\.1023"),
        ("host", False, "an integer is needed, got False"),
        ("host", np.array([1, 2]), "an integer is needed, got array"),
    ],
)
def test_value_that_a_field_cannot_have_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"Launch\.{field}: {message}"):
        replace(PLAIN, **{field: value})


def test_times_may_be_whole_seconds_and_after_the_end() -> None:
    launch = replace(PLAIN, trigger=1, memory_wait=2)
    assert (launch.trigger, launch.memory_wait) == (1.0, 2.0)
    assert type(launch.trigger) is float


def test_legacy_stream_is_not_a_non_blocking_one() -> None:
    with pytest.raises(ValueError, match=r"Launch\.non_blocking: True, but Launch\.stream is 'leg"):
        replace(PLAIN, stream="legacy", non_blocking=True)


def test_launches_of_a_stream_agree_whether_it_blocks() -> None:
    a, b = (replace(PLAIN, stream=5, non_blocking=kind) for kind in (True, False))
    message = r"events\[2\]: Launch\.non_blocking: False in stream 5, of which an earlier .* True"
    with pytest.raises(ValueError, match=message):
        Sequence([a, a, b])
    apart = [a, replace(b, stream=6), replace(a, stream=None), replace(b, stream=None)]
    assert len(Sequence(apart)) == 4


def test_every_field_is_printed_written_and_taken_by_the_core() -> None:
    seq = Sequence([PLAIN, EVERY, MEETING])
    names = {"Sequence": Sequence, "Launch": Launch, "Partition": Partition, "SmSplit": SmSplit}
    assert eval(seq.to_source(), names) == seq  # our own output
    assert Sequence.from_json(seq.to_json()) == seq
    assert [name for name in (*HELD, *TIMED, *MEETS) if f'"{name}":' not in seq.to_json()] == []
    assert not any(f'"{name}":' in Sequence([PLAIN]).to_json() for name in (*HELD, *TIMED))


def test_table_of_a_sequence_has_a_row_per_node() -> None:
    graph = tb.Graph([PLAIN, replace(PLAIN, blocks=7)])
    frame = Sequence([EVERY, graph.launch(3), tb.RecordEvent(1, 3)]).to_pandas()
    assert frame["event"].tolist() == ["launch", "graph", "graph", "record_event"]
    assert frame["launch"].tolist()[:3] == [0, 1, 2]
    assert frame["blocks"].tolist()[:3] == [4, 4, 7]
    assert frame["stream"].tolist()[1:] == ["3", "3", "3"]


def test_text_of_a_sequence_shows_graphs_and_what_they_launch() -> None:
    graph = tb.Graph([PLAIN, PLAIN])
    text = str(Sequence([graph.launch(3), EVERY, tb.RecordEvent(1, 3)]))
    assert "3 launches, 12 blocks, 1 other event" in text
    assert "graph        0        2 launches, 8 blocks, in stream 3" in text
    assert "launch       2" in text
