"""Periodic tasks: the launches that they release, and how long each job takes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tbsched.advice.bounds import MakespanBounds
from tbsched.errors import shown
from tbsched.program.checks import instance, instances, integer, seconds
from tbsched.program.sequence import Launch, Sequence
from tbsched.shown import Shown
from tbsched.traces.trace import Trace

MAX_LAUNCHES = 2**20


@dataclass(frozen=True, slots=True)
class Task:
    """Kernels that a program launches again and again, at a fixed rate.

    Attributes:
        name: of the task, unlike those of other tasks.
        kernels: launches with durations, one after the other; without a stream and a priority,
            which are those of the task.
        period: seconds from one release to the next, from 1e-9 on.
        offset: seconds until the first release.
        deadline: seconds from a release until its kernels must have ended; None: the period.
        priority: of its stream; as in CUDA, a lower number is more urgent, and one outside the
            device's ``priority_levels`` means the nearest in it.

    Raises:
        TypeError, ValueError: a field out of its range; no kernels, or one without a duration or
            with a stream or a priority of its own; names the field, the value and the limit.

    Example:
        >>> track = tb.Launch(16, 256, 32, duration=1e-3)
        >>> tb.Task("track", [track, track], period=10e-3, priority=-1).deadline
        0.01
    """

    name: str
    kernels: tuple[Launch, ...]
    period: float
    offset: float = 0.0
    deadline: float | None = None
    priority: int = 0

    def __init__(
        self, name: str, kernels: Iterable[Launch], period: float, offset: float = 0.0,
        deadline: float | None = None, priority: int = 0,
    ) -> None:  # fmt: skip
        put = object.__setattr__
        put(self, "name", instance("Task", "name", name, str))
        put(self, "kernels", _kernels(kernels))
        put(self, "period", _positive("period", period))
        put(self, "offset", seconds("Task", "offset", offset))
        put(self, "deadline", self.period if deadline is None else _positive("deadline", deadline))
        put(self, "priority", integer("Task", "priority", priority, -(2**31), 2**31 - 1))


def _kernels(values: Iterable[Launch]) -> tuple[Launch, ...]:
    """Returns the kernels of a task, checked."""
    kernels = instances("Task", "kernels", values, Launch)
    if not kernels:
        raise ValueError("Task.kernels: none; a task has one or more")
    for number, kernel in enumerate(kernels):
        owner = f"Task.kernels[{number}]"
        if kernel.duration is None:
            raise ValueError(f"{owner}.duration: None; how long its blocks run is needed")
        if kernel.stream is not None:
            raise ValueError(f"{owner}.stream: {kernel.stream!r}; a task has a stream of its own")
        if kernel.priority != 0:
            raise ValueError(f"{owner}.priority: {kernel.priority}; the task has the priority")
    return kernels


def _positive(field: str, value: float) -> float:
    """Returns a number of seconds, checked to be at least 1 ns."""
    checked = seconds("Task", field, value)
    if round(checked * 1e9) < 1:
        raise ValueError(f"Task.{field}: {shown(value)} is less than 1e-9 seconds")
    return checked


@dataclass(frozen=True, slots=True)
class Job:
    """One release of a task.

    Attributes:
        task: its name.
        number: of the release, from 0.
        release: seconds from the start of the program.
        deadline: seconds from the start of the program.
        launches: the numbers of its launches in the sequence.

    Example:
        >>> task = tb.Task("t", [tb.Launch(1, 32, 16, duration=1e-4)], period=1e-3, offset=5e-4)
        >>> tb.periodic([task]).jobs[0].deadline
        0.0015
    """

    task: str
    number: int
    release: float
    deadline: float
    launches: range


@dataclass(frozen=True, slots=True)
class Response:
    """How long one job took.

    Attributes:
        job: the release.
        end: seconds from the start of the program until the last block of its kernels left.

    Example:
        >>> task = tb.Task("t", [tb.Launch(1, 32, 16, duration=1e-3)], period=2e-3)
        >>> released = tb.periodic([task])
        >>> trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
        >>> released.responses(trace).jobs[0].response
        0.001
    """

    job: Job
    end: float

    @property
    def response(self) -> float:
        """Seconds from its release to its end."""
        return _ns(self.end - self.job.release) / 1e9

    @property
    def missed(self) -> bool:
        """Whether it ended after its deadline."""
        return _ns(self.end) > _ns(self.job.deadline)


@dataclass(frozen=True, slots=True, repr=False)
class Responses(Shown):
    """How long each job of a task set took, in one trace.

    Attributes:
        tasks: the task set.
        jobs: one per release, by time.

    Example:
        >>> task = tb.Task("t", [tb.Launch(1, 32, 16, duration=1e-3)], period=2e-3)
        >>> released = tb.periodic([task])
        >>> trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
        >>> print(released.responses(trace))
        task  jobs  least  mean  worst  deadline  missed
        t        1   1 ms  1 ms   1 ms      2 ms       0
    """

    tasks: tuple[Task, ...]
    jobs: tuple[Response, ...]

    @property
    def worst(self) -> dict[str, Response]:
        """Returns the job of each task that took longest, by the task's name."""
        longest: dict[str, Response] = {}
        for job in self.jobs:
            longest_so_far = longest.setdefault(job.job.task, job)
            if job.response > longest_so_far.response:
                longest[job.job.task] = job
        return {task.name: longest[task.name] for task in self.tasks if task.name in longest}

    @property
    def missed(self) -> tuple[Response, ...]:
        """The jobs that ended after their deadlines, by time of release."""
        return tuple(job for job in self.jobs if job.missed)


@dataclass(frozen=True, slots=True, repr=False)
class Periodic:
    """What a task set releases.

    Attributes:
        tasks: the task set; the launches of ``tasks[k]`` are in stream k.
        sequence: the launches of all jobs, by time of release. The name of a launch has its task
            and the number of its job.
        issue_times: when each of them is issued: the release of its job.
        jobs: the releases, by time; those of the same time are in the order of the tasks.
        hyperperiod: seconds after which the releases repeat.

    Example:
        >>> kernel = tb.Launch(8, 256, 32, duration=1e-3)
        >>> tasks = [tb.Task("a", [kernel], period=4e-3), tb.Task("b", [kernel], period=6e-3)]
        >>> released = tb.periodic(tasks)
        >>> released.hyperperiod, [launch.name for launch in released.sequence.launches]
        (0.012, ['a 0', 'b 0', 'a 1', 'b 1', 'a 2'])
        >>> released.issue_times
        (0.0, 0.0, 0.004, 0.006, 0.008)
    """

    tasks: tuple[Task, ...]
    sequence: Sequence
    issue_times: tuple[float, ...]
    jobs: tuple[Job, ...]
    hyperperiod: float

    def __repr__(self) -> str:
        return f"<Periodic: {len(self.tasks)} tasks, {len(self.jobs)} jobs>"

    def responses(self, trace: Trace) -> Responses:
        """Returns how long each job took.

        Args:
            trace: a prediction of ``sequence`` with :attr:`issue_times`.

        Raises:
            TypeError, ValueError: no trace of this sequence, or no prediction: the clock of a
                recording does not begin when the program does; a prediction without the issue
                times.

        Example:
            >>> task = tb.Task("t", [tb.Launch(1, 32, 16, duration=1e-3)], period=2e-3)
            >>> released = tb.periodic([task])
            >>> trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
            >>> released.responses(trace).worst["t"].response
            0.001
        """
        instance("responses", "trace", trace, Trace)
        if trace.sequence != self.sequence:
            raise ValueError("responses: trace: another sequence than that of the task set")
        lasts = trace.response_times(self.issue_times).tolist()
        return Responses(
            self.tasks,
            tuple(
                Response(job, (_ns(job.release) + max(_ns(lasts[k]) for k in job.launches)) / 1e9)
                for job in self.jobs
            ),
        )

    def response_bounds(self, bounds: MakespanBounds) -> dict[str, float]:
        """Returns the response time in seconds that no job of a task exceeds, by task.

        Args:
            bounds: :func:`tbsched.makespan_bounds` of ``sequence`` with :attr:`issue_times`.

        Raises:
            TypeError, ValueError: no bounds, or of a program with another number of launches.

        Example:
            >>> task = tb.Task("t", [tb.Launch(1, 32, 16, duration=1e-3)], period=2e-3)
            >>> released = tb.periodic([task])
            >>> found = tb.makespan_bounds(
            ...     released.sequence, "xavier", (0.5e-3, 1e-3), issue_times=released.issue_times
            ... )
            >>> released.response_bounds(found)
            {'t': 0.001}
        """
        instance("response_bounds", "bounds", bounds, MakespanBounds)
        if len(bounds.ends) != len(self.sequence.launches):
            raise ValueError("response_bounds: bounds: another sequence than that of the task set")
        latest_ns = _ns(bounds.begins[1])
        found: dict[str, float] = {}
        for job in self.jobs:
            ends_ns = latest_ns + max(_ns(bounds.ends[k][1]) for k in job.launches)
            response = (ends_ns - _ns(job.release)) / 1e9
            found[job.task] = max(found.get(job.task, 0.0), response)
        return found


def periodic(tasks: Iterable[Task], until: float | None = None) -> Periodic:
    """Returns what a set of periodic tasks releases, as a sequence that can be predicted.

    Each task has a stream with its priority. At each release the host issues its kernels, one after
    the other. A job that is released before the one before it has ended waits behind it.

    Args:
        tasks: with different names.
        until: seconds; releases before then count. None: the largest offset, and one hyperperiod
            more. Periods count in whole nanoseconds.

    Raises:
        TypeError, ValueError: no tasks, or two of one name; more than 2**20 launches: the message
            says how long the hyperperiod is.

    Example:
        >>> kernel = tb.Launch(8, 1024, 32, duration=4e-3)
        >>> released = tb.periodic([
        ...     tb.Task("camera", [kernel, kernel], period=20e-3),
        ...     tb.Task("brake", [kernel], period=10e-3, deadline=6e-3, offset=1e-3, priority=-1),
        ... ])
        >>> trace = tb.predict(released.sequence, "xavier", issue_times=released.issue_times)
        >>> print(released.responses(trace))
        task    jobs  least  mean  worst  deadline  missed
        camera     2   8 ms  8 ms   8 ms     20 ms       0
        brake      2   4 ms  4 ms   4 ms      6 ms       0
    """
    tasks = instances("periodic", "tasks", tasks, Task)
    if not tasks:
        raise ValueError("periodic.tasks: none; one or more are needed")
    for number, task in enumerate(tasks):
        if task.name in {earlier.name for earlier in tasks[:number]}:
            raise ValueError(f"periodic.tasks[{number}].name: {shown(task.name)} is another's")
    hyper_ns = math.lcm(*(_ns(task.period) for task in tasks))
    until_ns = (
        max(_ns(task.offset) for task in tasks) + hyper_ns
        if until is None
        else _ns(seconds("periodic", "until", until))
    )
    _check_number(tasks, until_ns, hyper_ns)
    releases = sorted(
        (release_ns, stream, number)
        for stream, task in enumerate(tasks)
        for number, release_ns in enumerate(range(_ns(task.offset), until_ns, _ns(task.period)))
    )
    launches: list[Launch] = []
    issue_times: list[float] = []
    jobs = []
    for release_ns, stream, number in releases:
        task = tasks[stream]
        deadline_ns = release_ns + _ns(task.deadline or task.period)
        own = range(len(launches), len(launches) + len(task.kernels))
        jobs.append(Job(task.name, number, release_ns / 1e9, deadline_ns / 1e9, own))
        for kernel in task.kernels:
            name = " ".join(filter(None, (task.name, str(number), kernel.name)))
            launches.append(replace(kernel, stream=stream, priority=task.priority, name=name))
            issue_times.append(release_ns / 1e9)
    return Periodic(tasks, Sequence(launches), tuple(issue_times), tuple(jobs), hyper_ns / 1e9)


def _ns(time: float) -> int:
    """Returns seconds as whole nanoseconds."""
    return round(time * 1e9)


def _check_number(tasks: tuple[Task, ...], until_ns: int, hyper_ns: int) -> None:
    """Checks that a task set releases at least one and at most ``MAX_LAUNCHES`` launches."""
    launches = sum(
        len(task.kernels) * len(range(_ns(task.offset), until_ns, _ns(task.period)))
        for task in tasks
    )
    if launches == 0:
        raise ValueError(f"periodic.until: no task is released before {until_ns / 1e9:g} s")
    if launches > MAX_LAUNCHES:
        raise ValueError(
            f"periodic: {launches:,} launches in {until_ns / 1e9:g} s are more than "
            f"{MAX_LAUNCHES:,}; the hyperperiod is {hyper_ns / 1e9:g} s: give until, or periods "
            "with a smaller common multiple"
        )
