"""Several GPUs of one program as tracks of a Perfetto file. This imports perfetto."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tbsched.advice.explain.explanation import Explanation
from tbsched.program.activity import COLLECTIVE
from tbsched.program.arrays import Int64Array
from tbsched.views.explanations import cause_word
from tbsched.views.files.writer import TrackWriter
from tbsched.views.ranks import who

_MET = (
    "A flow leads from the kernel of a collective that waited longest to the one that started last."
)


def write_account(found: Explanation, file: BinaryIO) -> None:
    """Writes what ran on each GPU, where its time went, and who waited for whom."""
    writer = TrackWriter(file)
    account, work = found.accounted, found.accounted.activity.work
    flow, flow_end = _flows(found, writer)
    for place, gpu in enumerate(account.gpus):
        process = writer.track(None, who(found, gpu), _MET)
        parts = account.parts.some(account.parts.first == place)
        track = writer.in_rows(
            process, ["where the time went"], np.zeros(len(parts.begin), np.int64),
            _later(found, parts.begin), _later(found, parts.end),
        )  # fmt: skip
        words = [cause_word(cause) for cause, _ in account.labels]
        by = [text for _, text in account.labels]
        writer.slice(
            _later(found, parts.begin), _later(found, parts.end), track,
            name=writer.names.numbers(words[k] for k in parts.second.tolist()),
            why=writer.words.numbers(by[k] for k in parts.second.tolist()),
        )  # fmt: skip
        rows = np.flatnonzero(work["gpu"] == gpu)
        streams, row = np.unique(work["stream"][rows], return_inverse=True)
        begin = _later(found, work["start_ns"][rows])
        end = np.maximum(_later(found, work["end_ns"][rows]), begin + 1)
        group = writer.track(process, "streams")
        titles = [f"stream {stream}" for stream in streams.tolist()]
        track = writer.in_rows(group, titles, row.ravel().astype(np.int64), begin, end)
        names = [account.activity.names[k] for k in work["name"][rows].tolist()]
        named = writer.names.numbers(names)
        for own, flows in (
            ((flow[rows] >= 0), "flow"),
            ((flow_end[rows] >= 0), "flow_end"),
            ((flow[rows] < 0) & (flow_end[rows] < 0), ""),
        ):
            numbers = (flow if flows == "flow" else flow_end)[rows[own]]
            given = {flows: numbers} if flows else {}
            writer.slice(begin[own], end[own], track[own], name=named[own], **given)
    writer.end()


def _later(found: Explanation, ns: Int64Array) -> Int64Array:
    """Times since the first work of all GPUs."""
    return (ns - found.accounted.begin_ns).astype(np.int64)


def _flows(found: Explanation, writer: TrackWriter) -> tuple[Int64Array, Int64Array]:
    """Of each row of work the flow that begins there, and that ends there; -1: none."""
    work, met = found.accounted.activity.work, found.accounted.met
    begins, ends = np.full((2, len(work)), -1, np.int64)
    if met is None:
        return begins, ends
    assert (work["kind"][met.found.row] == COLLECTIVE).all()
    numbers = np.unique(met.found.of[met.peer >= 0])
    first, edges = writer.flows(len(numbers)), met.found.edges
    for place, number in enumerate(numbers.tolist()):
        own = np.arange(*edges[number : number + 2])
        longest, late = own[np.argmin(met.begin[own])], own[np.argmax(met.begin[own])]
        begins[met.found.row[longest]] = first + place
        ends[met.found.row[late]] = first + place
    return begins, ends
