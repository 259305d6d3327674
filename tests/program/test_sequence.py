"""Launches, releases and sequences: values that check themselves and survive JSON."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from tbsched.program.duration import Drawn
from tbsched.program.sequence import (
    LEGACY_STREAM,
    MAX_BLOCKS,
    Event,
    Launch,
    RecordEvent,
    Release,
    Sequence,
    WaitEvent,
)

FULL = Launch(
    blocks=12,
    threads=96,
    registers=40,
    shared_memory=1024,
    local_memory=64,
    carveout=50,
    cluster=4,
    stream=3,
    priority=-2,
    name="k",
)
SEQUENCE = Sequence([Launch(66, 512, 32), FULL, Release(0), Launch(1, 1, 1)])
TIMED = Sequence(
    [
        Launch(1, 32, 16, stream=1, duration=0.5),
        RecordEvent(3, 1),
        WaitEvent(3, LEGACY_STREAM),
        Launch(2, 32, 16, stream=LEGACY_STREAM, duration=(0.0, 1e9)),
        Launch(5, 32, 16, duration=Drawn("lognormal", 1e-3, spread=1e-4, seed=7)),
    ]
)

LIMITS = {
    "blocks": (1, MAX_BLOCKS),
    "threads": (1, 1024),
    "registers": (1, 255),
    "shared_memory": (0, 2**24),
    "local_memory": (0, 512 * 1024),
    "carveout": (0, 100),
    "cluster": (1, 16),
    "stream": (0, 2**31 - 1),
    "priority": (-(2**15), 2**15),
    "duration": (0, 1e9),
}


def launch(**changes: Any) -> Launch:
    return Launch(**{"blocks": 720720, "threads": 32, "registers": 16, **changes})


@pytest.mark.parametrize(("field", "limits"), LIMITS.items())
def test_value_at_its_limit_passes_and_one_beyond_is_refused(
    field: str, limits: tuple[int, int]
) -> None:
    low, high = limits
    for value in (low, high):
        assert getattr(launch(**{field: value}), field) == value
    for value in (low - 1, int(high) + 1, 2**70, -(2**70)):
        with pytest.raises(ValueError, match=rf"Launch\.{field}: {value} is outside {low}\.\."):
            launch(**{field: value})


@pytest.mark.parametrize("field", LIMITS)
@pytest.mark.parametrize("value", [True, "1", [], b"1", 1j])
def test_value_that_is_not_a_number_is_refused_by_type(field: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"Launch\.{field}: .* got "):
        launch(**{field: value})


@pytest.mark.parametrize("field", sorted(set(LIMITS) - {"duration"}))
def test_fraction_is_refused_but_for_seconds(field: str) -> None:
    with pytest.raises(TypeError, match=rf"Launch\.{field}: an integer is needed, got 1\.5"):
        launch(**{field: 1.5})
    assert launch(duration=1.5).duration == 1.5


@pytest.mark.parametrize("field", sorted(set(LIMITS) - {"carveout", "stream", "duration"}))
def test_none_is_no_number_but_where_it_means_something(field: str) -> None:
    with pytest.raises(TypeError, match=field):
        launch(**{field: None})
    assert launch(carveout=None, stream=None, duration=None).carveout is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5])
def test_duration_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        launch(duration=value)


def test_name_is_text() -> None:
    assert launch(name="grid").name == "grid"
    with pytest.raises(TypeError, match=r"Launch\.name: a string or None is needed, got 1"):
        launch(name=1)


def test_numpy_integers_become_plain_ones() -> None:
    assert launch(threads=np.int64(64)) == launch(threads=64)
    assert type(launch(threads=np.int16(64)).threads) is int
    assert Release(np.int32(3)) == Release(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(2)])
def test_list_of_durations_is_refused_with_what_is_needed(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Launch\.duration: seconds, a tuple of them or a Drawn"):
        launch(blocks=2, duration=value)
    assert launch(blocks=2, duration=tuple(value)).duration == tuple(value)


def test_clusters_divide_the_blocks() -> None:
    assert launch(blocks=8, cluster=4).cluster == 4
    with pytest.raises(ValueError, match=r"Launch\.cluster: 4 does not divide Launch\.blocks: 9"):
        launch(blocks=9, cluster=4)


@pytest.mark.parametrize("value", [-1, 2**40])
def test_release_of_no_launch_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=rf"Release\.launch: {value} is outside"):
        Release(value)


@pytest.mark.parametrize("events", ["text", b"bytes", {}, 1, None])
def test_sequence_needs_a_list(events: object) -> None:
    with pytest.raises(TypeError, match=r"Sequence\.events: a list"):
        Sequence(events)  # type: ignore[arg-type]


def test_wrong_event_is_named_by_its_position() -> None:
    with pytest.raises(TypeError, match=r"Sequence\.events\[1\]: .* got 'x'"):
        Sequence([Launch(1, 1, 1), "x"])  # type: ignore[list-item]


def test_sequence_compares_and_hashes_by_its_events() -> None:
    same = Sequence(list(SEQUENCE))
    assert same == SEQUENCE
    assert hash(SEQUENCE) == hash(same)
    assert Sequence(SEQUENCE.events[:2]) != SEQUENCE
    assert [*SEQUENCE] != SEQUENCE
    assert len({SEQUENCE, same}) == 1


def test_sequence_behaves_as_a_tuple() -> None:
    assert len(SEQUENCE) == 4
    assert SEQUENCE[2] == Release(0)
    assert SEQUENCE[:2] == Sequence([Launch(66, 512, 32), FULL])
    assert SEQUENCE.launches == (Launch(66, 512, 32), FULL, Launch(1, 1, 1))
    with pytest.raises(AttributeError):
        SEQUENCE.events = ()  # type: ignore[misc]


def test_slice_that_leaves_a_release_without_its_launch_is_refused() -> None:
    with pytest.raises(ValueError, match="only 0 launches come before it"):
        SEQUENCE[2:]


@pytest.mark.parametrize("sequence", [SEQUENCE, TIMED], ids=["held", "timed"])
def test_sequence_can_be_read_back_from_json_repr_and_pickle(sequence: Sequence) -> None:
    assert Sequence.from_json(sequence.to_json()) == sequence
    assert eval(repr(sequence)) == sequence
    assert pickle.loads(pickle.dumps(sequence)) == sequence


def test_json_spells_out_the_usual_fields_and_leaves_out_other_defaults() -> None:
    (event,) = json.loads(Sequence([Launch(1, 2, 3)]).to_json())
    assert event == {
        "launch": {
            "blocks": 1,
            "threads": 2,
            "registers": 3,
            "shared_memory": 0,
            "carveout": None,
            "cluster": 1,
        }
    }


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ('{"launch":{"blocks":1,"threads":2,"registers":3,"carvout":9}}', "'carvout' is unknown.*"
         "did you mean 'carveout'"),
        ('{"launch":{"blocks":1,"threads":2,"registers":3},"at":0}', "got 'launch', 'at'"),
        ('{"relaese":0}', "got 'relaese'; did you mean 'release'"),
        ('{"wait_event":{"event":0,"stream":1,"streams":2}}', "wait_event: 'streams' is unknown"),
    ],
)  # fmt: skip
def test_json_keys_that_nobody_knows_are_refused(events: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Sequence.from_json(f"[{events}]")


def test_a_byte_order_mark_is_no_part_of_json() -> None:
    for text in ("\ufeff[]", "[]".encode("utf-8-sig"), "[]".encode("utf-16")):
        assert Sequence.from_json(text) == Sequence()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 10**6, "not JSON"),
        ("{}", "events: a list is needed"),
        ("[1]", r"events\[0\]"),
        ("[{}]", r"events\[0\]"),
        ('[{"launch":{},"release":0}]', r"events\[0\]"),
        ('[{"launch":1}]', r"events\[0\]\.launch: an object"),
        ('[{"launch":{"blocks":1,"threads":1}}]', r"events\[0\]\.launch: registers is missing"),
        ('[{"launch":{"blocks":0,"threads":1,"registers":1}}]', r"blocks: 0 is outside"),
        ('[{"launch":{"blocks":"1","threads":1,"registers":1}}]', r"blocks: an integer"),
        ('[{"release":0}]', "only 0 launches"),
        ('[{"release":null}]', r"Release\.launch"),
        ('[{"record_event":1}]', r"events\[0\]\.record_event: an object"),
        ('[{"wait_event":{"event":0}}]', r"events\[0\]: WaitEvent\.stream: None, which"),
        (
            '[{"launch":{"blocks":1,"threads":1,"registers":1,"duration":{"mean":1}}}]',
            r"events\[0\]\.launch\.duration: distribution is missing",
        ),
    ],
)
def test_json_that_is_no_sequence_is_refused_with_the_field(text: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Sequence.from_json(text)


def test_json_must_be_text() -> None:
    with pytest.raises(TypeError, match="text is needed, got 1"):
        Sequence.from_json(1)  # type: ignore[arg-type]


def test_repr_shows_what_is_not_the_default() -> None:
    assert repr(Launch(1, 2, 3)) == "Launch(blocks=1, threads=2, registers=3)"
    assert repr(Launch(1, 2, 3, priority=-1)).endswith("registers=3, priority=-1)")
    assert repr(Sequence()) == "Sequence([])"


@pytest.mark.parametrize("item", [RecordEvent(0, 0), WaitEvent(0, 0), TIMED[0]])
def test_sequence_with_a_duration_or_a_cuda_event_is_timed(item: Event) -> None:
    assert not SEQUENCE.timed
    assert not Sequence().timed
    assert Sequence([item]).timed


@pytest.mark.parametrize("timed", [RecordEvent(0, 0), WaitEvent(0, 0), TIMED[0]])
@pytest.mark.parametrize("held", [Launch(1, 1, 1), Release(0)])
def test_launches_that_end_by_themselves_and_such_that_are_held_do_not_mix(
    timed: Event, held: Event
) -> None:
    with pytest.raises(ValueError, match=r"Sequence\.events\[1\]: .*durations"):
        Sequence([timed, held])
    with pytest.raises(ValueError, match=r"Sequence\.events\[0\]: .*durations"):
        Sequence([held, timed])


def test_legacy_stream_needs_durations() -> None:
    legacy = Launch(1, 32, 16, stream="legacy", duration=1.0)
    assert Sequence([legacy]).launches[0].stream == LEGACY_STREAM
    with pytest.raises(ValueError, match=r"Sequence\.events\[0\]: Launch\.stream: 'legacy' needs"):
        Sequence([Launch(1, 32, 16, stream="legacy")])


@pytest.mark.parametrize("kind", [RecordEvent, WaitEvent])
@pytest.mark.parametrize("field", ["event", "stream"])
def test_cuda_event_at_its_limit_passes_and_one_beyond_is_refused(
    kind: type[RecordEvent | WaitEvent], field: str
) -> None:
    given: dict[str, Any] = {"event": 1, "stream": 1}
    for value in (0, 2**31 - 1):
        assert getattr(kind(**{**given, field: value}), field) == value
    for value in (-1, 2**31):
        with pytest.raises(ValueError, match=rf"{kind.__name__}\.{field}: {value} is outside"):
            kind(**{**given, field: value})
