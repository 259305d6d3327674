"""Python's events become the core's by one converter, which refuses what it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from tbsched import _core
from tbsched.program.partition import Partition
from tbsched.program.sequence import Graph, Launch, RecordEvent, Release, WaitEvent


@pytest.mark.parametrize("event", ["Launch", None, 5, object(), Launch])
def test_what_is_no_event_is_named(event: Any) -> None:
    message = "HostCall WriteValue WaitValue is needed, got "
    with pytest.raises(TypeError, match=message):
        _core.Sequence([Launch(1, 32, 16), event])


def test_what_only_looks_like_an_event_is_none() -> None:
    class Copy:
        event = 0
        stream = 0

    with pytest.raises(TypeError, match=r"is needed, got <.*Copy"):
        _core.Sequence([Copy()])  # type: ignore[list-item]


def test_something_that_is_no_list_of_events_is_refused() -> None:
    with pytest.raises(TypeError):
        _core.Sequence(5)  # type: ignore[arg-type]


def test_every_kind_of_event_is_taken_from_any_iterable() -> None:
    node = Launch(2, 32, 16, duration=1e-6, partition=Partition((0, 1)), cooperative=True)
    events = (
        Graph([node, node], edges=[(0, 1)]).launch("legacy"),
        Launch(2, 32, 16, duration=1e-6, stream="legacy"),
        RecordEvent(0, "legacy"),
        WaitEvent(0, 3),
        Launch(2, 32, 16, duration=(1e-6, 2e-6), stream=3),
    )
    assert isinstance(_core.Sequence(event for event in events), _core.Sequence)
    assert isinstance(_core.Sequence([Launch(1, 32, 16), Release(0)]), _core.Sequence)
