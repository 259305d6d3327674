"""What sits on each SM at a moment, and the map of SMs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tbsched as tb
from helpers import gpu, launch, released
from tbsched.traces.placement import DeviceInfo
from tbsched.views.layout.sms import fullest, rooms_of, standing, usage_at, usage_of
from tbsched.views.layout.topology import topology_of


def rows(trace: tb.Trace, at: float | None = None) -> list[tuple[int, int, int]]:
    """(SM, launch, blocks)"""
    found = standing(trace, at)
    columns = (found.sm, found.launch, found.blocks)
    return list(zip(*(column.tolist() for column in columns), strict=True))


# An SM has 16 slots; launch 1 waits for half of its room until launch 0 leaves.
HELD = tb.Sequence([launch(24), launch(16), *released(0), launch(1)])


def test_held_blocks_stay_until_their_release() -> None:
    trace = tb.predict(HELD, gpu(sms=2))
    assert rows(trace, 0) == []
    assert rows(trace, 1) == [(0, 0, 12), (1, 0, 12)]
    assert rows(trace, 2) == [(0, 0, 12), (0, 1, 4), (1, 0, 12), (1, 1, 4)]
    assert rows(trace) == [(0, 1, 8), (0, 2, 1), (1, 1, 8)]
    assert standing(trace).blocks_per_sm.tolist() == [9, 8]
    assert standing(trace).on(0) == slice(0, 2)


def test_waiting_blocks_are_counted() -> None:
    trace = tb.predict(HELD, gpu(sms=2))
    assert standing(trace, 2).waiting.tolist() == [[1, 8]]
    assert standing(trace, 3).waiting.tolist() == standing(trace).waiting.tolist() == []
    assert standing(trace).when == "after the last event"
    assert standing(trace, 1).when == "after 1 of 4 events"


def test_what_nobody_recorded_is_said() -> None:
    trace = tb.predict(HELD, gpu(sms=2))
    seen = tb.Trace(HELD, trace.device, trace.placements)
    for at in (0, 1, 2, None):
        assert rows(seen, at) == rows(trace, at)
        assert standing(seen, at).note == ""
    assert rows(trace, 3) == [(0, 1, 8), (1, 1, 8)]
    assert rows(seen, 3) == [(0, 1, 4), (1, 1, 4)]
    assert standing(seen, 3).note.startswith("Blocks that waited and came later are missing")
    early = tb.Trace(HELD, trace.device, tuple(
        dataclasses.replace(placement, final_smid=None) for placement in trace
    ))  # fmt: skip
    assert standing(early).note == standing(seen, 3).note


def test_sm_is_bound_by_what_it_has_least_of() -> None:
    usage = usage_at(tb.predict(tb.Sequence([launch(3, 8, 128)]), gpu(sms=2)))
    assert usage is not None
    assert fullest(usage, 0) == (
        "bound most by registers of its fullest processing block: 16,384 of 16,384 (100 %)"
    )
    assert fullest(usage_of(tb.predict(HELD, gpu(sms=2)).residents(0)), 1) == ""


def test_timed_blocks_sit_there_while_they_run() -> None:
    seq = tb.Sequence([launch(2, duration=1e-3), launch(30, duration=2e-3)])
    trace = tb.predict(seq, gpu(sms=2))
    first = standing(trace)
    assert rows(trace) == rows(trace, 5e-4) == [(0, 0, 1), (0, 1, 15), (1, 0, 1), (1, 1, 15)]
    assert first.when == "at the start, when most blocks are resident"
    assert first.until_ns.tolist() == [10**6, 2 * 10**6] * 2  # type: ignore[union-attr]
    assert rows(trace, 1e-3) == [(0, 1, 15), (1, 1, 15)]
    assert standing(trace, 1e-3).when == "1 ms after the first block's start"
    assert rows(trace, 9.0) == []


def test_launches_wait_at_a_time() -> None:
    seq = tb.Sequence([launch(40, duration=1e-3), launch(4, duration=1e-3)])
    trace = tb.predict(seq, gpu(sms=2))
    assert standing(trace, 5e-4).waiting.tolist() == [[0, 8], [1, 4]]


@pytest.mark.parametrize("at", [5, -1])
def test_no_such_event(at: int) -> None:
    with pytest.raises(ValueError, match=r"standing.at: -?\d is outside 0..4"):
        standing(tb.predict(HELD, gpu(sms=2)), at)


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("1", TypeError), (True, TypeError), (1e99, ValueError), (np.nan, ValueError),
        (-1, ValueError),
    ],
)  # fmt: skip
def test_no_time(at: object, kind: type[Exception]) -> None:
    timed = tb.predict(tb.Sequence([launch(duration=1.0)]), gpu())
    with pytest.raises(kind, match=r"^standing\.at: "):
        standing(timed, at)  # type: ignore[arg-type]


def test_room_says_why_blocks_are_there() -> None:
    rooms = rooms_of(tb.predict(tb.Sequence([launch(1), launch(1)]), gpu(sms=3)))
    assert rooms is not None
    assert rooms.why(0, 0) == "room for 16 blocks when it came, the most, as 2 other SMs had"
    assert rooms.why(1, 0) == "room for 15 blocks when it came, 2 SMs had more"
    assert rooms.bound_by(1, 0) == "slots"


def test_nobody_asks_for_the_rooms_of_very_many_launches() -> None:
    assert rooms_of(tb.predict(tb.Sequence([launch()] * 5000), gpu(sms=64))) is None


def test_map_has_every_sm_once() -> None:
    for name in (*tb.devices(), gpu(sms=35)):
        spec = tb.device(name)
        found = topology_of(spec)
        sms = [sm for row in found.rows for tpc in row.tpcs for sm in tpc]
        assert sorted(sms) == list(range(spec.sms))
        assert sorted(found.rank) == list(range(spec.sms))


def test_map_of_what_ran() -> None:
    spec = tb.device("h200")
    predicted = tb.predict(tb.Sequence([launch()]), "h200").device
    assert topology_of(predicted) == topology_of(spec)
    observed = topology_of(DeviceInfo("NVIDIA H200", 132))
    assert observed.rows == topology_of(spec).rows
    assert observed.source == "The map is that of h200; other boards may have another."
    assert topology_of(spec).place_of(5).startswith("SM 5, TPC 2, GPC ")
    unknown = topology_of(DeviceInfo("NVIDIA H200", 114))
    assert unknown.source == "The map of TPCs and GPCs is not known."
    assert [row.title for row in unknown.rows[:2]] == ["SM 0", "SM 16"]
    assert (unknown.place_of(3), unknown.preference_of(3)) == ("SM 3", "")
    assert topology_of(gpu(sms=2)).preference_of(1) == "place 2 of 2 in the order of preference"
