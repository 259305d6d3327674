"""How long the jobs of periodic tasks took."""

from __future__ import annotations

from typing import Any

from tbsched.advice.periodic import Responses
from tbsched.counting import counted
from tbsched.views.cards import card, table_html
from tbsched.views.tables import Lines, table_of
from tbsched.views.words import seconds_words

_HEADS = ("task", "jobs", "least", "mean", "worst", "deadline", "missed")


def responses_short(responses: Responses) -> str:
    """Returns how many jobs there were, and how many were late, in words."""
    tasks, jobs = counted(len(responses.tasks), "task"), counted(len(responses.jobs), "job")
    late = counted(len(responses.missed), "deadline") if responses.missed else "no deadline"
    return f"{tasks}, {jobs}, {late} missed"


def responses_text(responses: Responses) -> Lines:
    """A row per task."""
    return [table_of(_HEADS, _rows(responses))]


def responses_html(responses: Responses) -> str:
    """A row per task."""
    return card(responses_short(responses), table_html(table_of(_HEADS, _rows(responses))))


def responses_columns(responses: Responses) -> dict[str, Any]:
    """Returns columns with a row per job."""
    jobs = responses.jobs
    return {
        "task": [job.job.task for job in jobs],
        "job": [job.job.number for job in jobs],
        "release": [job.job.release for job in jobs],
        "end": [job.end for job in jobs],
        "response": [job.response for job in jobs],
        "deadline": [job.job.deadline for job in jobs],
        "missed": [job.missed for job in jobs],
    }


def responses_data(responses: Responses) -> dict[str, Any]:
    """Returns JSON data: a row per task and per job."""
    worst = responses.worst
    columns = responses_columns(responses)
    return {
        "tasks": [
            {
                "name": task.name,
                "period": task.period,
                "deadline": task.deadline,
                "worst": worst[task.name].response if task.name in worst else None,
            }
            for task in responses.tasks
        ],
        "jobs": [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ],
    }


def _rows(responses: Responses) -> list[tuple[str, ...]]:
    """Returns the table row of each task."""
    rows = []
    for task in responses.tasks:
        task_jobs = [job for job in responses.jobs if job.job.task == task.name]
        times = [job.response for job in task_jobs] or [0.0]
        spans = (min(times), sum(times) / len(times), max(times), task.deadline or task.period)
        missed = sum(job.missed for job in task_jobs)
        words = map(seconds_words, spans) if task_jobs else ("", "", "", seconds_words(spans[-1]))
        rows.append((task.name, f"{len(task_jobs):,}", *words, f"{missed:,}"))
    return rows
