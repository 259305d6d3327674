"""What a user gets of time: the table of blocks, why launches waited, and how it prints."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tbsched as tb
from helpers import gpu, launch
from tbsched.traces.placement import DeviceInfo
from tbsched.traces.timeline import BLOCK, Running

TWO_QUEUES = gpu(hardware_queues=2)
PROGRAM = tb.Sequence(
    [
        launch(16, stream=0, duration=1e-3),
        launch(16, stream=0, duration=1e-3),
        launch(1, stream=1, duration=1e-4, name="side"),
        launch(1, stream=2, duration=1e-4),
    ]
)


@pytest.fixture(scope="module")
def trace() -> tb.Trace:
    return tb.predict(PROGRAM, TWO_QUEUES)


def test_timeline_has_a_row_for_each_block(trace: tb.Trace) -> None:
    rows = trace.timeline
    assert rows.dtype.names == ("launch", "block", "sm", "start_ns", "end_ns")
    assert len(rows) == 34
    assert rows[16].tolist() == (1, 0, 0, 1_000_000, 2_000_000)
    assert trace[1].hardware_queue == 0


def test_makespan_is_in_seconds(trace: tb.Trace) -> None:
    assert trace.makespan == pytest.approx(2.1e-3)
    assert tb.predict(tb.Sequence([tb.RecordEvent(0, 0)]), TWO_QUEUES).makespan == 0


def test_launches_that_meet_only_at_an_instant_are_not_concurrent(trace: tb.Trace) -> None:
    assert not trace.concurrent(0, 1)
    assert trace.concurrent(1, 2)
    assert trace.concurrent(1, 3)


def test_explanation_adds_up_what_a_launch_waited_for(trace: tb.Trace) -> None:
    assert trace.waits is not None
    assert trace.waits.dtype.names == ("launch", "begin_ns", "end_ns", "cause", "behind")
    text = trace.explain(3)
    assert text.startswith("Launch 3 waited 2 ms: 1 ms behind launch 1 in hardware queue 0 (false")
    assert "900 us for thread block slots, beside launch 1 (" in text
    assert "100 us held up behind launch 1, which waits for room itself" in text
    assert text.endswith("Its blocks ran from 2 ms to 2.1 ms.")
    assert trace.explain(0) == "Launch 0 did not wait. Its blocks ran from 0 ns to 1 ms."


@pytest.mark.parametrize(
    ("waiting", "later", "cause"),
    [
        # A cooperative launch has the most urgent priority, whatever its own is.
        ({"priority": -5}, {"cooperative": True}, "queue"),
        ({"cooperative": True}, {"priority": -5}, "queue"),
        ({"cooperative": True}, {"cooperative": True, "priority": -3}, "queue"),
        ({"cooperative": True}, {"priority": -4}, "priority"),
        ({"priority": -5}, {"priority": -9}, "queue"),
        ({"priority": -5}, {"priority": -4}, "priority"),
        ({"priority": -1}, {}, "priority"),
        ({}, {}, "queue"),
    ],
)  # fmt: skip
def test_a_launch_is_behind_a_more_urgent_one_as_the_scheduler_orders_them(
    waiting: dict[str, Any], later: dict[str, Any], cause: str
) -> None:
    first = tb.Launch(264, 1024, 32, stream=0, duration=1e-4, priority=-5)
    alike = {"blocks": 264, "threads": 1024, "registers": 32, "duration": 1e-4}
    sequence = tb.Sequence(
        [first, tb.Launch(**alike, stream=1, **waiting), tb.Launch(**alike, stream=2, **later)]
    )
    waits = tb.predict(sequence, "h200").waits
    assert waits is not None
    behind_each_other = (waits["launch"] > 0) & (waits["behind"] > 0) & (waits["cause"] != "turn")
    assert {*waits["cause"][behind_each_other]} == {cause}
    fifo = tb.predict(sequence, "h200-no-priority").waits
    assert fifo is not None
    assert "queue" in fifo["cause"]
    assert "priority" not in fifo["cause"]


def test_nothing_is_told_to_be_more_urgent_than_the_most_urgent(trace: tb.Trace) -> None:
    no_priority = "which waits for room itself (issued before it, it would have come first)"
    either = "(issued before it, or with a more urgent priority, it would have come first)"
    for device, most in (("h200", -5), ("xavier", -1)):
        for later in ({"priority": most}, {"priority": -9}, {"priority": most + 1}):
            kernel = tb.Launch(264, 1024, 32, stream=0, duration=1e-4, **later)
            waiting = [dataclasses.replace(kernel, stream=stream) for stream in range(3)]
            text = tb.predict(tb.Sequence(waiting), device).explain(2)
            assert (no_priority if later["priority"] <= most else either) in text
    waiting = [dataclasses.replace(own, priority=-5) for own in waiting]
    cooperative = tb.Launch(132, 1024, 32, stream=3, duration=1e-5, cooperative=True)
    assert no_priority in tb.predict(tb.Sequence([*waiting, cooperative]), "h200").explain(3)


def test_priorities_do_not_count_behind_what_waits_for_local_memory() -> None:
    events = [
        tb.Launch(264, 1024, 32, stream=0, duration=1e-4),
        tb.Launch(4, 64, 32, stream=1, duration=1e-4, local_memory=16384, name="grows"),
        tb.Launch(13, 64, 32, stream=2, duration=1e-5),
    ]
    text = tb.predict(tb.Sequence(events), "h200").explain(2)
    assert "held up behind launch 1 (grows), which waits for an idle GPU to set up more" in text
    assert "priorities do not count here" in text


def test_every_launch_is_explained_with_one_look_at_the_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels = [tb.Launch(8, 64, 32, stream=k % 4, duration=1e-5) for k in range(50)]
    found = tb.predict(tb.Sequence([*kernels, tb.Synchronize(), *kernels]), "h200", host=1e-6)
    asked = []
    times = tb.Trace.call_times.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        tb.Trace, "call_times", property(lambda own: asked.append(own) or times(own))
    )
    texts = [found.explain(launch) for launch in range(100)]
    assert len(asked) == 1
    assert "Before the call, its host thread was in synchronize (event 50)" in texts[70]
    assert "Before the call" not in texts[20]


def test_every_cause_has_words_for_what_would_have_let_the_launch_run() -> None:
    from tbsched import _core
    from tbsched.views.waits import CAUSE_WORDS
    from tbsched.views.words import LIMITER_WORDS

    told_apart = {
        "whole",
        "completion",
        "again",
        "itself",
        "relay",
        "first",
        "growing",
        "deciding",
    }  # of causes of another name
    assert set(CAUSE_WORDS) == (set(_core.CAUSES) - {"none"}) | told_apart
    assert set(LIMITER_WORDS) == set(_core.CAUSES)


def test_explanation_names_who_had_what_was_missing() -> None:
    first = [launch(4, duration=1e-3) for _ in range(5)]
    many = tb.predict(tb.Sequence([*first, launch(1, duration=1e-3)]), gpu()).explain(4)
    assert "beside launch 0, launch 1, launch 2 and 1 launch more (" in many
    own = tb.predict(tb.Sequence([launch(17, duration=1e-3)]), gpu()).explain(0)
    assert "beside its own blocks (" in own


def test_explanation_of_many_causes_is_cut() -> None:
    events = [launch(16, duration=1e-3, priority=-k) for k in range(8)]
    text = tb.predict(tb.Sequence(events), gpu()).explain(0)
    assert text.startswith("Launch 0 waited 7 ms: ")
    assert "; the rest for 3 causes more." in text


def test_timed_trace_prints_a_table_and_the_waits(trace: tb.Trace) -> None:
    lines = str(trace).splitlines()
    assert lines[0].endswith(", 1 SMs, policy ampere")
    assert lines.pop(1).startswith("Assumed on rtx3090: ")
    headings = "launch name blocks x threads start end waited mostly for"
    assert " ".join(lines[1].split()) == headings
    assert lines[3].split()[-7:] == ["1", "ms", "2.1", "ms", "1.1", "ms", "stream"]
    assert "makespan 2.1 ms" in lines
    assert sum(line.startswith("Launch ") for line in lines) == 3


def test_long_program_is_cut_when_printed() -> None:
    program = tb.Sequence([launch(duration=1e-3)] * 60)
    assert "and 10 launches more" in str(tb.predict(program, gpu()))


def test_times_survive_a_trace_file(trace: tb.Trace, tmp_path: Path) -> None:
    tb.save_traces(tmp_path / "t.jsonl.xz", [trace])
    (again,) = tb.load_traces(tmp_path / "t.jsonl.xz")
    assert (again.timeline == trace.timeline).all()
    assert again.makespan == trace.makespan
    assert again.sequence == PROGRAM
    with pytest.raises(
        ValueError, match=r"nobody recorded what the launches .* predict\(\) says it"
    ):
        again.explain(0)
    assert "makespan 2.1 ms" in str(again)


def test_times_of_issue_are_those_of_a_recording(trace: tb.Trace, tmp_path: Path) -> None:
    assert trace.issue_times is None
    issued = dataclasses.replace(trace, extra={"issued_ns": [0, 1500, 3000, 1_234_567]})
    tb.save_traces(tmp_path / "t.jsonl", [issued])
    (again,) = tb.load_traces(tmp_path / "t.jsonl")
    assert again.issue_times == (0.0, 1.5e-6, 3e-6, 1.234567e-3)
    prediction = tb.predict(PROGRAM, TWO_QUEUES, issue_times=again.issue_times)
    assert prediction.waits is not None
    mine = prediction.waits[prediction.waits["launch"] == 3]
    assert mine["begin_ns"][0] == 1_234_567


def test_trace_without_times_has_no_timeline() -> None:
    held = tb.predict(tb.Sequence([launch()]), gpu())
    for ask in (lambda: held.timeline, lambda: held.makespan, lambda: held.concurrent(0, 0)):
        with pytest.raises(ValueError, match=r"launch 0 ran; for .* give launches durations"):
            ask()
    with pytest.raises(ValueError, match="waited for; give launches durations"):
        held.explain(0)


def test_block_that_never_ran_is_in_the_timeline_and_not_in_the_makespan() -> None:
    row = np.array([0, -1], np.int32)
    times = np.array([5, 0], np.int64)
    placement = tb.Placement(row, row, start_ns=times, end_ns=times + 10)
    held = tb.Trace(tb.Sequence([launch(2)]), DeviceInfo("x", 1), (placement,))
    assert held.timeline["sm"].tolist() == [0, -1]
    assert held.makespan == pytest.approx(10e-9)


def test_launch_that_is_not_there_cannot_be_explained(trace: tb.Trace) -> None:
    for number in (4, -5):
        with pytest.raises(ValueError, match=rf"explain\.launch: {number} is outside -4\.\.3"):
            trace.explain(number)


def test_negative_number_of_a_launch_counts_from_the_end(trace: tb.Trace) -> None:
    assert [trace.explain(k - 4) for k in range(4)] == [trace.explain(k) for k in range(4)]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=12
    ),
    st.integers(0, 12),
    st.integers(1, 6),
)
def test_what_ran_in_a_while_is_what_has_a_block_in_it(
    blocks: list[tuple[int, int, int]], begin: int, length: int
) -> None:
    rows = np.zeros(len(blocks), BLOCK)
    for row, (number, start, duration) in zip(rows, sorted(blocks), strict=True):
        row["launch"], row["start_ns"], row["end_ns"] = number, start, start + duration
    end = begin + length
    there = {k for k, start, duration in blocks if start < end and start + duration > begin}
    assert Running(rows).during(begin, end) == sorted(there)


def test_nothing_ran_in_an_empty_timeline() -> None:
    assert Running(np.zeros(0, BLOCK)).during(0, 1) == []


KERNEL = tb.Launch(1, 32, 16, stream=0, duration=1e-3)
LATER = dataclasses.replace(KERNEL, stream=1)
BIG = dataclasses.replace(LATER, local_memory=4096, name="big")
GRAPH = tb.Graph([dataclasses.replace(KERNEL, stream=None), tb.Copy(64, "h2d")])
LEGACY_COPY = tb.Copy(1 << 20, "h2d", stream=tb.LEGACY_STREAM, blocking=True, host=1)


@pytest.mark.parametrize(
    ("events", "host", "words"),
    [
        ([KERNEL, tb.Synchronize(stream=0), LATER], None, "thread was in synchronize stream 0"),
        ([KERNEL, tb.Synchronize(stream=0), LATER], 0.0, "stream 0 (event 1) until 1.018 ms."),
        (
            [
                tb.Graph([dataclasses.replace(KERNEL, stream=None), tb.Copy(64, "h2d")]).launch(0),
                tb.Copy(64, "d2h", stream=0, pinned=False),
                LATER,
            ],
            None,
            "thread was in copy 1 (event 1).",
        ),
        ([KERNEL, LEGACY_COPY, LATER], None, "Its call was held up by copy 0 (event 1) of host"),
        ([KERNEL, LEGACY_COPY, LATER], 0.0, "1.046 ms, was held up by copy 0 (event 1) of host"),
        (
            [KERNEL, dataclasses.replace(LATER, local_memory=4096)],
            0.0,
            "Its call, until 2.636 ms, waited for launch 0 to set up more local memory.",
        ),
        (
            [
                KERNEL,
                dataclasses.replace(LATER, local_memory=4096, name="big"),
                dataclasses.replace(LATER, stream=2),
            ],
            0.0,
            "thread was in launch big (event 1), which, until 2.636 ms, waited for launch 0",
        ),
    ],
)
def test_explanation_says_what_held_up_the_call(
    events: list[tb.Event], host: float | None, words: str
) -> None:
    trace = tb.predict(tb.Sequence(events), "h200", host=host)
    text = trace.explain(len(trace) - 1)
    assert words in text
    assert "did not wait on the GPU" in text


@pytest.mark.parametrize(
    "events",
    [
        [KERNEL, LATER],
        [KERNEL, LATER, tb.Synchronize()],
        [KERNEL, tb.Synchronize(host=1), LATER],
    ],
)
@pytest.mark.parametrize("host", [None, 0.0])
def test_calls_that_nothing_held_up_are_not_mentioned(
    events: list[tb.Event], host: float | None
) -> None:
    text = tb.predict(tb.Sequence(events), "h200", host=host).explain(1)
    assert "Its call" not in text
    assert "host thread" not in text


def test_copies_that_take_no_time_are_said_to_be_unknown() -> None:
    copy = tb.Copy(1 << 26, "h2d", stream=0)
    words = "no time was measured on this device for copy 0: it takes 0 ns"
    assert words in str(tb.predict(tb.Sequence([copy, KERNEL]), "a100"))
    assert words in tb.predict(tb.Sequence([copy, KERNEL]), "a100")._repr_html_()
    for device, own in (("h200", copy), ("a100", dataclasses.replace(copy, duration=1e-3))):
        assert "no time" not in str(tb.predict(tb.Sequence([own, KERNEL]), device))
