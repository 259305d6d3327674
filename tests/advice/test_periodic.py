"""What periodic tasks release, and how long their jobs take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tbsched as tb
from helpers import examples
from tbsched.advice.periodic import Periodic, Responses

MS = 1_000_000


def kernel(ms: int = 1, blocks: int = 1, threads: int = 32) -> tb.Launch:
    return tb.Launch(blocks, threads, 16, duration=ms / 1e3)


def responses(released: Periodic) -> Responses:
    """On a GPU on which nothing but blocks takes time."""
    trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
    return released.responses(trace)


tasks = st.lists(
    st.builds(
        lambda period, offset, deadline, times: (period, offset, deadline, tuple(times)),
        st.integers(1, 12),
        st.integers(0, 15),
        st.integers(1, 20),
        st.lists(st.integers(1, 6), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(200), deadline=None)
@given(tasks, st.none() | st.integers(16, 60))
def test_jobs_and_responses_are_those_of_a_clock_that_ticks(
    given_tasks: list[tuple[int, int, int, tuple[int, ...]]], until: int | None
) -> None:
    """All kernels have room, so a job waits for those before it in its task alone."""
    hyperperiod = next(
        time for time in range(1, 10**6) if all(time % task[0] == 0 for task in given_tasks)
    )
    end_of_clock = max(task[1] for task in given_tasks) + hyperperiod if until is None else until
    expected = []
    free_at = [0] * len(given_tasks)  # when the last job so far of each task ends
    released = [0] * len(given_tasks)
    for now in range(end_of_clock):
        for number, (period, offset, deadline, times) in enumerate(given_tasks):
            if now >= offset and (now - offset) % period == 0:
                free_at[number] = max(free_at[number], now) + sum(times)
                late = free_at[number] > now + deadline
                expected.append(
                    (f"t{number}", released[number], now * MS, free_at[number] * MS, late)
                )
                released[number] += 1
    made = tb.periodic(
        [
            tb.Task(f"t{number}", map(kernel, times), period / 1e3, offset / 1e3, deadline / 1e3)
            for number, (period, offset, deadline, times) in enumerate(given_tasks)
        ],
        None if until is None else until / 1e3,
    )
    assert round(made.hyperperiod * 1e9) == hyperperiod * MS
    found = responses(made)
    assert expected == [
        (one.job.task, one.job.number, round(one.job.release * 1e9), round(one.end * 1e9),
         one.missed)
        for one in found.jobs
    ]  # fmt: skip
    assert [one.job for one in found.missed] == [one.job for one in found.jobs if one.missed]
    for task, worst in found.worst.items():
        own = [end - release for name, _, release, end, _ in expected if name == task]
        assert round(worst.response * 1e9) == max(own)


def test_launches_have_stream_priority_and_name_of_their_task() -> None:
    own = tb.Launch(1, 32, 16, duration=1e-3, name="sift")
    made = tb.periodic(
        [tb.Task("a", [own, kernel()], 4e-3), tb.Task("b", [kernel()], 4e-3, 1e-3, priority=-2)]
    )
    assert [(x.name, x.stream, x.priority) for x in made.sequence.launches] == [
        ("a 0 sift", 0, 0), ("a 0", 0, 0), ("b 0", 1, -2), ("a 1 sift", 0, 0), ("a 1", 0, 0),
    ]  # fmt: skip
    assert made.issue_times == (0.0, 0.0, 1e-3, 4e-3, 4e-3)
    assert [list(job.launches) for job in made.jobs] == [[0, 1], [2], [3, 4]]
    assert [job.deadline for job in made.jobs] == [4e-3, 5e-3, 8e-3]
    assert repr(made) == "<Periodic: 2 tasks, 3 jobs>"


def test_urgent_task_waits_only_for_blocks_that_run() -> None:
    """A background task of many waves, and a task with a more urgent stream."""
    background = kernel(2, blocks=64, threads=1024)  # four waves of 16 blocks
    urgent = kernel(1, blocks=16, threads=1024)

    def worst(priority: int) -> float:
        made = tb.periodic(
            [
                tb.Task("background", [background], 20e-3),
                tb.Task("urgent", [urgent], 20e-3, 1e-3, 4e-3, priority),
            ],
            until=20e-3,
        )
        return responses(made).worst["urgent"].response

    assert worst(0) == pytest.approx(8e-3)
    assert worst(-1) == pytest.approx(2e-3)


def test_responses_show_themselves() -> None:
    made = tb.periodic([tb.Task("a", [kernel(3)], 4e-3), tb.Task("b", [kernel(3)], 2e-3)])
    found = responses(made)
    assert str(found).splitlines() == [
        "task  jobs  least    mean  worst  deadline  missed",
        "a        1   3 ms    3 ms   3 ms      4 ms       0",
        "b        2   3 ms  3.5 ms   4 ms      2 ms       2",
    ]
    assert repr(found) == "<Responses: 2 tasks, 3 jobs, 2 deadlines missed>"
    assert found.to_pandas()["missed"].tolist() == [False, True, True]
    later = tb.periodic([tb.Task("a", [kernel()], 1e-3), tb.Task("b", [kernel()], 1e-3, 1)], 1e-3)
    assert str(responses(later)).splitlines()[2].split() == ["b", "0", "1", "ms", "0"]


def test_deadline_of_a_job_counts_from_the_start_and_that_of_a_task_from_a_release() -> None:
    made: tb.Periodic = tb.periodic([tb.Task("a", [kernel()], 4e-3, 1e-3, 2e-3)], until=9e-3)
    found: tb.Responses = responses(made)
    assert found.to_pandas()["deadline"].tolist() == [3e-3, 7e-3]
    assert str(found).splitlines()[1].split()[-3:] == ["2", "ms", "0"]


def test_response_times_of_launches() -> None:
    seq = tb.Sequence([tb.Launch(1, 32, 16, stream=0, duration=1e-3)] * 2)
    times = (0.0, 0.5e-3)
    trace = tb.predict(seq, "xavier", issue_times=times)
    assert trace.response_times(times).tolist() == [1e-3, 1.5e-3]
    assert not trace.response_times(times).flags.writeable
    hosted = tb.predict(seq, "h200", host=0.0)
    called = np.array(hosted.issue_times)
    ends = [placement.end_ns.max() / 1e9 for placement in hosted if placement.end_ns is not None]
    assert hosted.response_times() == pytest.approx(ends - called)
    with pytest.raises(ValueError, match=r"issue_times: None; the trace does not have them"):
        trace.response_times()
    with pytest.raises(ValueError, match="issue_times: 1 for 2 launches"):
        trace.response_times([0.0])
    held = tb.predict(tb.Sequence([tb.Launch(1, 32, 16)]), "xavier")
    with pytest.raises(ValueError, match="a prediction of a timed sequence is needed"):
        held.response_times([0.0])


@pytest.mark.parametrize("load", [1, 6])  # idle between jobs, and more than the GPU has
def test_prediction_without_the_issue_times_has_no_response_times(load: int) -> None:
    made = tb.periodic([tb.Task("a", [kernel(load)], 5e-3), tb.Task("b", [kernel(load)], 2e-3)])
    assert all(one.response > 0 for one in responses(made).jobs)
    forgotten = tb.predict(made.sequence, "xavier")
    with pytest.raises(ValueError, match=r"issue_times\[2\]: 0.002 s is after .* at 0 s"):
        made.responses(forgotten)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tb.Task("a", [], 1e-3), "Task.kernels: none"),
        (lambda: tb.Task("a", [tb.Launch(1, 32, 16)], 1), r"kernels\[0\].duration: None"),
        (lambda: tb.Task("a", [tb.Launch(1, 32, 16, stream=3, duration=1)], 1),
         r"kernels\[0\].stream: 3; a task has a stream of its own"),
        (lambda: tb.Task("a", [tb.Launch(1, 32, 16, priority=1, duration=1)], 1),
         r"kernels\[0\].priority: 1; the task has the priority"),
        (lambda: tb.Task("a", [kernel()], 0.0), "Task.period: 0.0 is less than 1e-9 seconds"),
        (lambda: tb.Task("a", [kernel()], 1, -1.0), "Task.offset: -1.0 is outside"),
        (lambda: tb.Task("a", [kernel()], 1, deadline=0), "Task.deadline: 0 is less than"),
        (lambda: tb.periodic([]), "periodic.tasks: none"),
        (lambda: tb.periodic([tb.Task("a", [kernel()], 1)] * 2), r"tasks\[1\].name: 'a' is anoth"),
        (lambda: tb.periodic([tb.Task("a", [kernel()], 1, 1)], until=0.5), "no task is released"),
        (lambda: tb.periodic([tb.Task("a", [kernel()], 1 / 30), tb.Task("b", [kernel()], 1e-2)]),
         "launches in .* s are more than 1,048,576; the hyperperiod is"),
        (lambda: responses(tb.periodic([tb.Task("a", [kernel()], 1)])).tasks and
         tb.periodic([tb.Task("a", [kernel()], 1)]).responses(
             tb.predict(tb.Sequence([kernel()]), "xavier")), "another sequence than that"),
    ],
)  # fmt: skip
def test_what_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tb.Task("a", [tb.Copy(64, "h2d")], 1),  # type: ignore[list-item]
        lambda: tb.Task(1, [kernel()], 1),  # type: ignore[arg-type]
        lambda: tb.periodic([kernel()]),  # type: ignore[list-item]
    ],
)
def test_wrong_types(make: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="is needed, got"):
        make()


@pytest.mark.parametrize("device", ["h200", "xavier"])
def test_no_response_is_longer_than_its_bound(device: str) -> None:
    """All tasks start late, and the GPU takes some us for a call."""
    tasks = [
        tb.Task("long", [tb.Launch(264, 512, 32, duration=2e-3)], period=8e-3, offset=2e-3),
        tb.Task(
            "urgent", [tb.Launch(4, 128, 32, duration=1e-4)], period=2e-3, offset=3e-3, priority=-1
        ),
    ]
    released = tb.periodic(tasks)
    shares, longest = (0.5, 1.0), [launch.duration for launch in released.sequence.launches]
    limits = tb.makespan_bounds(
        released.sequence, device, [(shares[0] * each, each) for each in longest],
        issue_times=released.issue_times, predictions=8,
    )  # fmt: skip
    bound = released.response_bounds(limits)
    draw = np.random.default_rng(1)
    for _ in range(40):
        drawn = [draw.uniform(*shares) * each for each in longest]
        program = tb.Sequence(
            replace(launch, duration=each)
            for launch, each in zip(released.sequence.launches, drawn, strict=True)
        )
        trace = tb.predict(program, device, issue_times=released.issue_times)
        times = trace.response_times(released.issue_times)
        for job in released.jobs:
            assert times[job.launches[-1]] <= bound[job.task]
    assert bound["urgent"] < 2.5e-3


def test_response_bounds_are_of_the_task_set() -> None:
    kernel = tb.Launch(1, 32, 16, duration=1e-3)
    released = tb.periodic([tb.Task("t", [kernel], period=2e-3)])
    program = tb.Sequence([kernel, kernel])
    with pytest.raises(ValueError, match="bounds: another sequence than that of the task set"):
        released.response_bounds(tb.makespan_bounds(program, "xavier"))
    with pytest.raises(TypeError, match="bounds: a MakespanBounds is needed"):
        released.response_bounds(3)  # type: ignore[arg-type]
