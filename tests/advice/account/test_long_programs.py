"""Programs of very many calls: what their account takes."""

from __future__ import annotations

import tracemalloc

import pytest

from tbsched.advice.account.host_time import HostTime
from tbsched.importers.reading import joined
from tbsched.importers.reading.joined import Joined, Waited
from tbsched.importers.reading.stream_numbers import FileStream
from tbsched.importers.records import Kernel
from tbsched.program.activity import OPERATOR, ActivityBuilder

CALLS = 20_000
MOST = 240  # bytes for each row of the host


def test_the_time_of_a_thread_takes_some_words_a_call() -> None:
    builder = ActivityBuilder()
    for number in range(CALLS):
        begin = 10 * number
        builder.add_host(OPERATOR, "aten::add", 1, 1, begin, begin + 8)
        builder.add_call("cudaLaunchKernel", 1, 1, begin + 2, begin + 5, number + 1)
    activity, _ = builder.built()
    tracemalloc.start()
    try:
        times = HostTime.of(activity)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(times.lines[0].begin) > CALLS
    assert peak < MOST * 2 * CALLS


def test_nothing_is_kept_of_what_is_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "MAX_PREDICTED", 1)
    found = Joined()
    for number in range(4):
        found.add_wait(number, Waited(FileStream(1, 7), number), 0)
        found.add_recorded(number, number, 7, None)
        found.add_work(number, Kernel, ("device",), (0,))
        assert len(found.waited) == len(found.recorded) == len(found.gpus) == (number == 0)
