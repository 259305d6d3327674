"""A profile in a Perfetto trace, alone or beside its prediction. This imports perfetto."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tbsched.advice.explain.explanation import Explanation
from tbsched.program.program import Program
from tbsched.show.files.pftrace import TraceTracks
from tbsched.show.files.tracks import TrackWriter
from tbsched.show.layout.names import label
from tbsched.show.text.explanations import cause_word, gap_words
from tbsched.show.text.traces import trace_head
from tbsched.show.words import transfer_name, transfer_words

_GAPS = {"idle": "gaps: the GPU is idle", "copies": "gaps: only copies ran",
         "stream": "gaps: a stream is idle",
         "order": "gaps: behind a kernel that leaves SMs idle"}  # fmt: skip
_SHOWN = 10_000  # gaps


def write_program(program: Program, file: BinaryIO) -> None:
    """Writes the profile."""
    writer = TrackWriter(file)
    calls = program.measured["call_ns"]
    times = (program.measured["start_ns"], program.transfers["start_ns"], calls[calls >= 0])
    first = min((int(each.min()) for each in times if len(each)), default=0)
    _measured(program, writer, -first)
    writer.end()


def write_explanation(found: Explanation, file: BinaryIO) -> None:
    """Writes the prediction, and the profile as a process of its own."""
    if found.prediction is None:
        write_program(found.program, file)
        return
    writer = TrackWriter(file)
    tracks = TraceTracks(found.prediction, writer)
    tracks.add(trace_head(found.prediction))
    rows = found.program.measured
    # Both begin with their first kernel.
    later = int(tracks.slices.runs.begin_ns.min()) - int(rows["start_ns"].min())
    process = _measured(found.program, writer, later)
    for kind, title in _GAPS.items():
        gaps = [gap for gap in found.gaps[:_SHOWN] if gap.kind == kind]
        if not gaps:
            continue
        begin = np.array([round(gap.begin * 1e9) for gap in gaps]) + later
        end = np.maximum(np.array([round(gap.end * 1e9) for gap in gaps]) + later, begin + 1)
        begin, end = np.maximum(begin, 0), np.maximum(end, 1)
        track = writer.in_rows(process, [title], np.zeros(len(gaps), np.int64), begin, end)
        words = [cause_word(gap.causes[0].cause) if gap.causes else kind for gap in gaps]
        writer.slice(
            begin, end, track, name=writer.names.numbers(words),
            why=writer.words.numbers(gap_words(found, gap) for gap in gaps),
            launch=np.array([gap.launch for gap in gaps]),
        )  # fmt: skip
    writer.end()


def _measured(program: Program, writer: TrackWriter, later: int) -> int:
    """A process with launch calls, kernels and transfers; its track."""
    process = writer.track(None, f"measured: {program.format or 'a profile'}")
    _calls(program, writer, process, later)
    _kernels(program, writer, process, later)
    _transfers(program, writer, process, later)
    return process


def _calls(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    """In rows by host thread."""
    launch, host, number = [], [], 0
    for event in program.sequence:
        if event.launches and program.measured["call_ns"][number] >= 0:
            launch.append(number)
            host.append(int(getattr(event, "host", 0)))
        number += len(event.launches)
    if not launch:
        return
    rows = program.measured[launch]
    begin = np.maximum(rows["call_ns"] + later, 0)
    end = np.maximum(rows["return_ns"] + later, begin + 1)
    threads, row = np.unique(np.array(host), return_inverse=True)
    titles = [f"thread {thread}" for thread in threads.tolist()]
    group = writer.track(process, "launch calls")
    track = writer.in_rows(group, titles, row.astype(np.int64), begin, end)
    names = writer.names.numbers(label(program.sequence.launches[k]) for k in launch)
    writer.slice(begin, end, track, name=names, launch=np.array(launch))


def _kernels(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    """In rows by stream, as the profile numbers them."""
    rows = program.measured
    streams, row = np.unique(rows["stream"], return_inverse=True)
    begin = rows["start_ns"] + later
    end = np.maximum(rows["end_ns"] + later, begin + 1)
    group = writer.track(process, "streams")
    titles = [f"stream {stream}" for stream in streams.tolist()]
    track = writer.in_rows(group, titles, row.astype(np.int64), begin, end)
    names = writer.names.numbers(map(label, program.sequence.launches))
    writer.slice(begin, end, track, name=names, launch=np.arange(len(rows)))


def _transfers(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    rows = program.transfers
    if not len(rows):
        return
    begin = np.maximum(rows["start_ns"] + later, 0)
    end = np.maximum(rows["end_ns"] + later, begin + 1)
    row = np.zeros(len(rows), np.int64)
    track = writer.in_rows(process, ["copies and memsets"], row, begin, end)
    transfers = program.sequence.transfers
    writer.slice(
        begin, end, track,
        name=writer.names.numbers(transfer_name(k, each) for k, each in enumerate(transfers)),
        asks_for=writer.words.numbers(map(transfer_words, transfers)),
    )  # fmt: skip
