"""Several processes on one GPU in a Perfetto trace. This imports perfetto, which is optional."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from tbsched.prediction.processes import Processes
from tbsched.show.files.pftrace import TraceTracks
from tbsched.show.files.tracks import TrackWriter
from tbsched.show.text.traces import processes_short, trace_head

_ZERO_NS = 0  # of the clock that all have in common


def write_processes(found: Processes, file: BinaryIO) -> None:
    """Writes who has the GPU when, and what each process does."""
    out = TrackWriter(file)
    if len(found.turns):
        group = out.track(None, f"turns of {processes_short(found)}")
        process = found.turns["process"].astype(np.int64)
        times = (found.turns["begin_ns"], found.turns["end_ns"])
        titles = [f"process {number}" for number in range(len(found.traces))]
        track = out.in_rows(group, titles, process, *times)
        names = out.names.numbers(titles[number] for number in process.tolist())
        out.slice(*times, track, name=names)
    for number, trace in enumerate(found.traces):
        TraceTracks(trace, out, _ZERO_NS).add(f"process {number}: {trace_head(trace)}")
    out.end()
