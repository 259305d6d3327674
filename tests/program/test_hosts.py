"""Host threads and what they wait for, as a user writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tbsched as tb

KERNEL = tb.Launch(4, 64, 32, duration=1e-3)
GRAPH = tb.Graph([KERNEL])
EVERY_HOST = tb.Sequence(
    [
        tb.Launch(4, 64, 32, stream=0, duration=1e-3, first_use=True, host=1),
        tb.RecordEvent(0, 0, host=2),
        tb.WaitEvent(0, 1, host=3),
        GRAPH.launch(1, host=4),
        tb.Synchronize(host=5),
        tb.Synchronize(stream="legacy"),
        tb.Synchronize(event=0),
    ]
)


def test_what_is_written_can_be_read_back() -> None:
    names = {name: getattr(tb, name) for name in tb.__all__}
    assert eval(EVERY_HOST.to_source(), names) == EVERY_HOST  # our own output
    assert tb.Sequence.from_json(EVERY_HOST.to_json()) == EVERY_HOST


def test_the_first_host_goes_without_saying() -> None:
    plain = tb.Sequence([KERNEL, tb.RecordEvent(0, 0), GRAPH.launch(0), tb.Synchronize()])
    assert "host" not in plain.to_json() + plain.to_source()


@pytest.mark.parametrize(
    "event",
    [tb.Synchronize(), tb.RecordEvent(0, 0, host=1), tb.Launch(1, 32, 16, duration=1, host=1)],
)
def test_host_threads_need_version_2_of_the_format(event: Any, tmp_path: Path) -> None:
    sequence = tb.Sequence([KERNEL, event])
    tb.save_traces(tmp_path / "a.jsonl", [tb.predict(sequence, "h200")])
    assert (tmp_path / "a.jsonl").read_text().startswith('{"tbsched_trace":2')
    assert tb.load_traces(tmp_path / "a.jsonl")[0].sequence == sequence


def test_text_and_table_say_who_calls_and_what_for() -> None:
    text = str(EVERY_HOST)
    for words in ("first use, by host 1", "in stream 0, by host 2", "all work, by host 5"):
        assert words in text
    assert "stream legacy" in text
    assert "event 0" in text
    frame = EVERY_HOST.to_pandas()
    assert frame["host"].tolist() == [1, 2, 3, 4, 5, 0, 0]
    assert frame["event"].tolist()[-1] == "synchronize"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stream": 0, "event": 0}, r"event: 0, but Synchronize.stream is 0"),
        ({"event": -1}, r"event: -1 is outside"),
        ({"stream": -2}, r"stream: -2 is outside"),
        ({"host": 1 << 10}, r"host: 1024 is outside 0\.\.1023"),
    ],
)
def test_what_nobody_can_wait_for_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"Synchronize\.{message}"):
        tb.Synchronize(**wrong)


def test_held_sequences_have_no_host_that_waits() -> None:
    with pytest.raises(ValueError, match=r"Launch\.duration: None in a sequence with durations"):
        tb.Sequence([tb.Launch(1, 32, 16), tb.Synchronize()])
    with pytest.raises(ValueError, match=r"Launch\.host: 1 needs a Launch\.duration"):
        tb.Launch(1, 32, 16, host=1)
