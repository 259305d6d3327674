"""A prediction or an observation in a Perfetto trace. This imports perfetto, which is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np

from tbsched.program.arrays import Int64Array
from tbsched.show.files.held import NO_TIMES, held_slices
from tbsched.show.files.slices import Blocks, resident, timed_slices
from tbsched.show.files.tracks import TrackWriter, count, instant
from tbsched.show.layout.graphs import words_of
from tbsched.show.layout.lanes import lanes_of, streams_of
from tbsched.show.layout.names import call_names, label
from tbsched.show.words import limiter_words, transfer_name, transfer_words
from tbsched.traces.trace import Trace

_MOST_STREAMS = 1000
_MOST_WAITS = 64  # of one row at one time
_TOGETHER = (
    "Blocks of one launch that come to an SM together, and leave it together, are one slice: "
    "'gemm x8'."
)
_CALLS = (
    "From when a call is made until it returns. Between two calls the host does something else."
)
_FEW_WAITS = f"Of one row at most {_MOST_WAITS} waits are shown at a time."


def write_traces(traces: Mapping[str, Trace], file: BinaryIO, zero_ns: int | None = None) -> None:
    """Writes traces (see :func:`tbsched.show.to_perfetto`), each as a process.

    Args:
        traces: by the titles of their processes.
        file: where to.
        zero_ns: where time begins for all; None: for each with the first thing that is known.
    """
    out = TrackWriter(file)
    for title, trace in traces.items():
        TraceTracks(trace, out, zero_ns).add(title)
    out.end()


class TraceTracks:
    """The tracks of a prediction or an observation.

    Args:
        trace: what they show.
        out: the file that they are in.
        zero_ns: where time begins; None: with the first thing that is known.
    """

    """The tracks of a prediction or an observation."""

    def __init__(self, trace: Trace, out: TrackWriter, zero_ns: int | None = None) -> None:
        self._trace, self._out = trace, out
        timed = trace.sequence.timed
        self.slices = timed_slices(trace, zero_ns) if timed else held_slices(trace)
        self._first_flow = out.flows(len(trace))
        launches = trace.sequence.launches
        self._labels = [label(launch) for launch in launches]
        self._asks_for = self._out.words.numbers(
            map(words_of(trace.sequence), range(len(launches)))
        )
        self._kernel = self._out.words.numbers(self._labels)
        transfers = enumerate(trace.sequence.transfers)
        self._transfer = self._out.words.numbers(transfer_name(*each) for each in transfers)

    def add(self, title: str) -> None:
        """All of them, as a process of that title."""
        about = "" if self._trace.sequence.timed else NO_TIMES
        gpu = self._out.track(None, title, about)
        self._host(self._out.track(gpu, "host"))
        self._calls(gpu)
        self._streams(gpu)
        self._sms(self._out.track(gpu, "SMs", _TOGETHER))
        self._residents(gpu, self._out.track(gpu, "resident blocks of each SM"))

    def _host(self, track: int) -> None:
        """An instant for each launch, where its flow begins, and for each release."""
        for verb, time_ns, flows in (
            ("launch", self.slices.issue_ns, True),
            ("release", self.slices.release_ns, False),
        ):
            launch = np.flatnonzero(time_ns >= 0)
            name = self._out.names.numbers(f"{verb} {self._labels[k]}" for k in launch)
            flow = {"flow": self._first_flow + launch} if flows else {}
            self._out.add(
                instant, time_ns=time_ns[launch], track=np.full(len(launch), track), name=name,
                launch=launch, asks_for=self._asks_for[launch], **flow,
            )  # fmt: skip

    def _calls(self, gpu: int) -> None:
        """In rows by thread its calls, as far as they are known."""
        calls, events = self.slices.calls, self._trace.sequence.events
        if not len(calls.launch):
            return
        hosts, row = np.unique([getattr(e, "host", 0) for e in events], return_inverse=True)
        titles = [f"host thread {host}" for host in hosts.tolist()]
        group = self._out.track(gpu, "host threads", _CALLS)
        self._out.slice(
            calls.begin_ns, calls.end_ns,
            self._out.in_rows(group, titles, row, calls.begin_ns, calls.end_ns),
            name=self._out.names.numbers(call_names(self._trace.sequence)),
        )  # fmt: skip

    def _streams(self, gpu: int) -> None:
        """In rows by stream when launches ran and bytes moved, and what launches waited for."""
        titles, row = streams_of(self._trace.sequence, _MOST_STREAMS)
        runs, copies = self.slices.runs, self.slices.transfers
        running = self._out.track(gpu, "streams")
        rows = row[np.append(runs.launch, len(self._trace) + copies.launch)]
        begin_ns = np.append(runs.begin_ns, copies.begin_ns)
        end_ns = np.append(runs.end_ns, copies.end_ns)
        track = self._out.in_rows(running, titles, rows, begin_ns, end_ns)
        self._out.slice(
            runs.begin_ns, runs.end_ns, track[: len(runs.launch)],
            name=self._out.names.numbers(self._labels[k] for k in runs.launch),
            launch=runs.launch, asks_for=self._asks_for[runs.launch],
        )  # fmt: skip
        transfers = self._trace.sequence.transfers
        self._out.slice(
            copies.begin_ns, copies.end_ns, track[len(runs.launch) :],
            name=self._out.names.numbers(transfer_name(k, transfers[k]) for k in copies.launch),
            asks_for=self._out.words.numbers(transfer_words(transfers[k]) for k in copies.launch),
        )  # fmt: skip
        self._waits(self._out.track(gpu, "streams: waits", _FEW_WAITS), titles, row)

    def _waits(self, group: int, titles: Sequence[str], row: Int64Array) -> None:
        waits, info = self.slices.waits, self._trace.device
        lane, _ = lanes_of(row[waits.launch], waits.begin_ns, waits.end_ns)
        waits = waits.chosen(lane < _MOST_WAITS)
        causes, cause = np.unique(waits.cause, return_inverse=True)
        name = self._out.names.numbers(f"waits: {word}" for word in causes.tolist())[cause]
        why = self._out.words.numbers(limiter_words(x, info) for x in causes.tolist())[cause]
        track = self._out.in_rows(group, titles, row[waits.launch], waits.begin_ns, waits.end_ns)
        for rows in (waits.behind >= 0, waits.behind == -1, waits.behind < -1):
            launch = waits.launch[rows]
            self._out.slice(
                waits.begin_ns[rows], waits.end_ns[rows], track[rows],
                name=name[rows], why=why[rows], launch=launch, kernel=self._kernel[launch],
                asks_for=self._asks_for[launch], **self._behind(waits.behind[rows]),
            )  # fmt: skip

    def _behind(self, behind: Int64Array) -> dict[str, Int64Array]:
        """What was waited for: in all rows launches, or copies and memsets, or neither."""
        if not len(behind) or behind[0] == -1:
            return {}
        if behind[0] >= 0:
            return {"behind_launch": behind, "behind_kernel": self._kernel[behind]}
        return {"behind_node": self._transfer[-2 - behind]}

    def _sms(self, group: int) -> None:
        """In rows by SM its blocks; the flow of a launch ends at its first block."""
        blocks = self.slices.blocks
        titles = [f"SM {sm}" for sm in range(self._trace.device.sms)]
        track = self._out.in_rows(group, titles, blocks.sm, blocks.begin_ns, blocks.end_ns)
        limiters = [placement.limiter or "nothing" for placement in self._trace]
        waited_for = self._out.words.numbers(limiters)
        starts_flow = np.zeros(len(track), np.bool_)
        order = np.lexsort((blocks.first, blocks.begin_ns, blocks.launch))
        starts_flow[order[np.unique(blocks.launch[order], return_index=True)[1]]] = True
        name = self._block_names(blocks)
        for flows in (True, False):
            rows = starts_flow == flows
            launch = blocks.launch[rows]
            self._out.slice(
                blocks.begin_ns[rows], blocks.end_ns[rows], track[rows], name=name[rows],
                launch=launch, first_block=blocks.first[rows], last_block=blocks.last[rows],
                blocks=blocks.count[rows], waited_for=waited_for[launch],
                **({"flow_end": self._first_flow + launch} if flows else {}),
            )  # fmt: skip

    def _block_names(self, blocks: Blocks) -> Int64Array:
        labels, label_of = np.unique(np.array(self._labels, np.str_), return_inverse=True)
        most = int(blocks.count.max(initial=0)) + 1
        kinds, kind = np.unique(label_of[blocks.launch] * most + blocks.count, return_inverse=True)
        pairs = (divmod(each, most) for each in kinds.tolist())
        texts = (labels[k] + (f" x{count}" if count > 1 else "") for k, count in pairs)
        return self._out.names.numbers(map(str, texts))[kind]

    def _residents(self, gpu: int, group: int) -> None:
        """How many blocks are on each SM, and on all of them."""
        blocks = self.slices.blocks
        each = [
            self._out.track(group, f"SM {sm}", rank=sm, counts="blocks")
            for sm in range(self._trace.device.sms)
        ]
        every = [self._out.track(gpu, "resident blocks", counts="blocks")]
        for tracks, row in ((each, blocks.sm), (every, np.zeros_like(blocks.sm))):
            row, time_ns, number = resident(row, blocks)
            self._out.add(count, time_ns=time_ns, track=np.array(tracks)[row], value=number)
