"""Several GPUs of one program as tracks of a Perfetto file. This imports perfetto."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tbsched.advice.explain.explanation import Explanation
from tbsched.program.activity import Activity
from tbsched.program.arrays import Int64Array
from tbsched.program.collectives import gpu_word
from tbsched.views.explanations import cause_word
from tbsched.views.files.writer import TrackWriter

_FLOWS_OF_COLLECTIVES = (
    "A flow leads from the kernel of a collective that waited longest to the one that started last."
)


def write_account(explanation: Explanation, file: BinaryIO) -> None:
    """Writes a Perfetto trace of an explanation: for each GPU what ran on its streams and where its
    time went, with arrows that lead to the GPU it waited for.

    Args:
        explanation: of a program.
        file: open for binary writing.
    """
    writer = TrackWriter(file)
    account, activity = explanation.accounted, explanation.accounted.activity
    flows = _flows(explanation, writer)
    words = [cause_word(cause) for cause, _ in account.labels]
    by = [text for _, text in account.labels]
    for index, gpu in enumerate(account.gpus):
        process = writer.track(None, gpu_word(gpu, activity.ranks), _FLOWS_OF_COLLECTIVES)
        parts = account.parts.select(account.parts.first == index)
        begin, end = parts.begin - account.begin_ns, parts.end - account.begin_ns
        row = np.zeros(len(begin), np.int64)
        track = writer.in_rows(process, ["where the time went"], row, begin, end)
        writer.slice(
            begin, end, track,
            name=writer.names.numbers(words[k] for k in parts.second.tolist()),
            why=writer.words.numbers(by[k] for k in parts.second.tolist()),
        )  # fmt: skip
        _streams(activity, gpu, writer, process, flows)
    writer.end()


def write_activity(activity: Activity, file: BinaryIO) -> None:
    """Writes a Perfetto trace of what ran on each GPU, a track for each stream."""
    writer = TrackWriter(file)
    none = np.full(len(activity.work), -1, np.int64)
    for gpu in np.unique(activity.work["gpu"]).tolist():
        process = writer.track(None, gpu_word(gpu, activity.ranks))
        _streams(activity, gpu, writer, process, (none, none))
    writer.end()


def _streams(
    activity: Activity, gpu: int, writer: TrackWriter, process: int,
    flows: tuple[Int64Array, Int64Array],
) -> None:  # fmt: skip
    """Writes what ran on a GPU, in a row per stream; ``flows`` begin and end at each work."""
    work, first_ns = activity.work, activity.first_ns
    rows = np.flatnonzero(work["gpu"] == gpu)
    streams, row = np.unique(work["stream"][rows], return_inverse=True)
    begin = (work["start_ns"][rows] - first_ns).astype(np.int64)
    end = np.maximum(work["end_ns"][rows] - first_ns, begin + 1).astype(np.int64)
    titles = [f"stream {stream}" for stream in streams.tolist()]
    group = writer.track(process, "streams")
    track = writer.in_rows(group, titles, row.ravel().astype(np.int64), begin, end)
    name = writer.names.numbers(activity.names[k] for k in work["name"][rows].tolist())
    begins, ends = (flow[rows] for flow in flows)
    for is_chosen, flow_fields in (
        (begins >= 0, {"flow": begins}),
        (ends >= 0, {"flow_end": ends}),
        ((begins < 0) & (ends < 0), {}),
    ):
        chosen = {key: value[is_chosen] for key, value in flow_fields.items()}
        writer.slice(
            begin[is_chosen], end[is_chosen], track[is_chosen], name=name[is_chosen], **chosen
        )


def _flows(explanation: Explanation, writer: TrackWriter) -> tuple[Int64Array, Int64Array]:
    """Returns, for each row of work, the id of the flow that begins there and of the flow that ends
    there, int64 (work,) each; -1: none."""
    work, matches = explanation.accounted.activity.work, explanation.accounted.collectives
    begins, ends = np.full((2, len(work)), -1, np.int64)
    if matches is None:
        return begins, ends
    collectives = np.unique(matches.collectives.of[matches.peer >= 0])
    first, edges = writer.flows(len(collectives)), matches.collectives.edges
    for index, collective in enumerate(collectives.tolist()):
        rows = np.arange(*edges[collective : collective + 2])
        longest, late = rows[np.argmin(matches.begin[rows])], rows[np.argmax(matches.begin[rows])]
        begins[matches.collectives.row[longest]] = first + index
        ends[matches.collectives.row[late]] = first + index
    return begins, ends
