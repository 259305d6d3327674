"""Jobs of periodic tasks in a Gantt chart: a colour and a row per task, releases and deadlines."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.axes import Axes

from tbsched.advice.periodic import Periodic
from tbsched.program.checks import instance
from tbsched.program.events.launch import Launch
from tbsched.program.sequence import Sequence, with_launches
from tbsched.traces.trace import Trace
from tbsched.views.layout.lanes import Spans
from tbsched.views.pictures.canvas import ink
from tbsched.views.words import stream_words

MARKS = "short lines are releases, tall ones deadlines; a tall one in red was missed"
_MISSED = "#c8322b"
_RELEASE = 0.22  # of the height of a row


class Jobs:
    """The jobs of a task set in one prediction of it.

    Args:
        trace: the prediction, with the issue times of the task set.
        tasks: the task set.

    Raises:
        TypeError, ValueError: no task set, or one of another sequence.
    """

    def __init__(self, trace: Trace, tasks: Periodic) -> None:
        instance("gantt", "tasks", tasks, Periodic)
        if trace.sequence != tasks.sequence:
            raise ValueError("gantt: tasks: another sequence than that of the trace")
        self._tasks, self._responses = tasks, tasks.responses(trace)

    def launches(self) -> tuple[Launch, ...]:
        """Returns the launches, called as their tasks are: the kernels of one have one colour."""
        launches = list(self._tasks.sequence.launches)
        for job in self._tasks.jobs:
            for launch in job.launches:
                launches[launch] = replace(launches[launch], name=job.task)
        return tuple(launches)

    def labelled(self) -> Sequence:
        """Returns the launches without the names of their tasks, which the rows have."""
        launches = list(self._tasks.sequence.launches)
        for job in self._tasks.jobs:
            for launch in job.launches:
                name = (launches[launch].name or "").removeprefix(f"{job.task} ")
                launches[launch] = replace(launches[launch], name=name)
        return with_launches(self._tasks.sequence, launches)

    def from_start(self, spans: Spans) -> Spans:
        """Returns the spans on an axis from the program's start to the last deadline or end."""
        titles = {stream_words(stream): task.name for stream, task in enumerate(self._tasks.tasks)}
        last = max(job.deadline for job in self._tasks.jobs)
        return replace(
            spans,
            titles=tuple(titles.get(title, title) for title in spans.titles),
            zero_ns=0,
            length_ns=max(round(1e9 * last), spans.zero_ns + spans.length_ns),
        )

    def mark(self, ax: Axes, spans: Spans, scale: float) -> None:
        """Draws a line at each release and each deadline in the row of the task."""
        rows = {title: row for row, title in enumerate(spans.titles)}
        for response in self._responses.jobs:
            job = response.job
            if (row := rows.get(job.task)) is None:
                continue
            bottom, colour = row + 0.5, _MISSED if response.missed else ink()
            at = 1e9 * job.release / scale
            ax.vlines(at, bottom - _RELEASE, bottom, colors=ink(), linewidths=1)
            at = 1e9 * job.deadline / scale
            ax.vlines(at, bottom - 1, bottom, colors=colour, linewidths=1, clip_on=False)
