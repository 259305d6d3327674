"""A profile beside its prediction in a Perfetto trace. This imports perfetto, which is optional."""

from __future__ import annotations

import functools
from typing import BinaryIO

import numpy as np

from tbsched.advice.explain.explanation import Explanation
from tbsched.show.files.pftrace import TraceWriter, write_trace
from tbsched.show.layout.names import label
from tbsched.show.text.explanations import cause_word, gap_words

_GAPS = {"idle": "gaps: the GPU is idle", "stream": "gaps: a stream is idle",
         "order": "gaps: behind a kernel that leaves SMs idle"}  # fmt: skip
_SHOWN = 10_000  # gaps


def write_explanation(found: Explanation, file: BinaryIO) -> None:
    """Writes the prediction, and the profile as a process of its own."""
    write_trace(found.prediction, file, functools.partial(_add, found))


def _add(found: Explanation, writer: TraceWriter) -> None:
    rows = found.program.measured
    process = writer.track(None, f"measured: {found.program.format or 'a profile'}")
    # Both begin with their first kernel.
    later = int(writer.slices.runs.begin_ns.min(initial=0)) - int(rows["start_ns"].min())
    _kernels(found, writer, process, later)
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


def _kernels(found: Explanation, writer: TraceWriter, process: int, later: int) -> None:
    """In rows by stream, as the profile numbers them."""
    rows = found.program.measured
    streams, row = np.unique(rows["stream"], return_inverse=True)
    begin = rows["start_ns"] + later
    end = np.maximum(rows["end_ns"] + later, begin + 1)
    group = writer.track(process, "streams")
    titles = [f"stream {stream}" for stream in streams.tolist()]
    track = writer.in_rows(group, titles, row.astype(np.int64), begin, end)
    names = writer.names.numbers(map(label, found.program.sequence.launches))
    writer.slice(begin, end, track, name=names, launch=np.arange(len(rows)))
