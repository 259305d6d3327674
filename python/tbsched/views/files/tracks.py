"""Results as tracks of a Perfetto file. This imports perfetto, which is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np

from tbsched.advice.explain.explanation import Explanation
from tbsched.prediction.processes import Processes
from tbsched.program.arrays import Int64Array
from tbsched.program.events.streams import LEGACY_STREAM
from tbsched.program.program import Program
from tbsched.sm.results import Simulation
from tbsched.traces.trace import Trace
from tbsched.views.explanations import cause_word, gap_words
from tbsched.views.files.account_tracks import write_account, write_activity
from tbsched.views.files.slices import NO_TIMES, Blocks, held_slices, resident, timed_slices
from tbsched.views.files.writer import TrackWriter, count, instant
from tbsched.views.layout.graphs import words_of
from tbsched.views.layout.lanes import lanes_of, legacy_numbers, legacy_words, streams_of
from tbsched.views.layout.names import call_names, labels_of
from tbsched.views.processes import processes_short
from tbsched.views.simulations import Stays, blocks_on_cores, open_rows, simulation_short, warps_of
from tbsched.views.traces import trace_head
from tbsched.views.words import (
    limiter_words,
    stream_words,
    transfer_kinds,
    transfer_name,
    transfer_words,
)

_MAX_STREAMS = 1000
_MAX_WAITS = 64  # of one row at one time
_TOGETHER = (
    "Blocks of one launch that come to an SM together, and leave it together, are one slice: "
    "'gemm x8'."
)
_CALLS = (
    "From when a call is made until it returns. Between two calls the host does something else."
)
_FEW_WAITS = f"Of one row at most {_MAX_WAITS} waits are shown at a time."
_ZERO_NS = 0  # of the clock that all have in common
_GAPS = {"idle": "gaps: the GPU is idle", "copies": "gaps: only copies ran",
         "stream": "gaps: a stream is idle",
         "order": "gaps: behind a kernel that leaves SMs idle"}  # fmt: skip
_SHOWN = 10_000  # gaps
_AWAKE = "A slice: the warp can issue. Else it waits for memory, for room, or at a barrier."
_OPEN = "A slice: the row is open."


def write_traces(traces: Mapping[str, Trace], file: BinaryIO, zero_ns: int | None = None) -> None:
    """Writes traces (see :func:`tbsched.show.to_perfetto`), each as a process.

    Args:
        traces: by the titles of their processes.
        file: where to.
        zero_ns: where time begins for all; None: for each with the first thing that is known.
    """
    writer = TrackWriter(file)
    for title, trace in traces.items():
        TraceTracks(trace, writer, zero_ns).add(title)
    writer.end()


class TraceTracks:
    """The tracks of a prediction or an observation.

    Args:
        trace: what they show.
        out: the file that they are in.
        zero_ns: where time begins; None: with the first thing that is known.
        legacy: what the legacy stream is called; empty: as in the sequence.
    """

    def __init__(
        self, trace: Trace, writer: TrackWriter, zero_ns: int | None = None, legacy: str = ""
    ) -> None:
        self._trace, self._out = trace, writer
        self._legacy = legacy or stream_words(LEGACY_STREAM)
        timed = trace.sequence.timed
        self.slices = timed_slices(trace, zero_ns) if timed else held_slices(trace)
        self._first_flow = writer.flows(len(trace))
        launches = trace.sequence.launches
        self._labels = list(map(labels_of(launches), range(len(launches))))
        self._asks_for = self._out.words.numbers(
            map(words_of(trace.sequence), range(len(launches)))
        )
        self._kernel = self._out.words.numbers(self._labels)
        transfers = enumerate(trace.sequence.transfers)
        self._transfer = self._out.words.numbers(transfer_name(*transfer) for transfer in transfers)

    def add(self, title: str) -> None:
        """Adds all tracks of a trace, as a process with this title."""
        about = "" if self._trace.sequence.timed else NO_TIMES
        gpu = self._out.track(None, title, about)
        self._host(self._out.track(gpu, "host"))
        self._calls(gpu)
        self._streams(gpu)
        self._sms(self._out.track(gpu, "SMs", _TOGETHER))
        self._residents(gpu, self._out.track(gpu, "resident blocks of each SM"))

    def _host(self, track: int) -> None:
        """Adds an instant for each launch, where its flow begins, and for each release."""
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
        """Writes the calls to a GPU, in a row per host thread, as far as they are known."""
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
        """Writes launches, copies and waits for launches, in a row per stream."""
        titles, row = streams_of(self._trace.sequence, _MAX_STREAMS, self._legacy)
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
        """Adds the waits of launches, in a few lanes per stream."""
        waits, info = self.slices.waits, self._trace.device
        lane, _ = lanes_of(row[waits.launch], waits.begin_ns, waits.end_ns)
        waits = waits.chosen(lane < _MAX_WAITS)
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
        """Returns arguments for slices of waits, by name: the launch and kernel, or the copy or
        memset, that each waited behind; empty: nothing. All rows of ``behind`` are of one of these
        kinds."""
        if not len(behind) or behind[0] == -1:
            return {}
        if behind[0] >= 0:
            return {"behind_launch": behind, "behind_kernel": self._kernel[behind]}
        return {"behind_node": self._transfer[-2 - behind]}

    def _sms(self, group: int) -> None:
        """Writes blocks, in a row per SM; the flow of a launch ends at its first block."""
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
        """Returns the id of each row's text: the label of its launch, and its number of blocks."""
        labels, label_index = np.unique(np.array(self._labels, np.str_), return_inverse=True)
        max_count = int(blocks.count.max(initial=0)) + 1
        kinds, kind = np.unique(
            label_index[blocks.launch] * max_count + blocks.count, return_inverse=True
        )
        pairs = (divmod(block_kind, max_count) for block_kind in kinds.tolist())
        texts = (labels[k] + (f" x{count}" if count > 1 else "") for k, count in pairs)
        return self._out.names.numbers(map(str, texts))[kind]

    def _residents(self, gpu: int, group: int) -> None:
        """Adds counters of how many blocks are on each SM, and on all of them together."""
        blocks = self.slices.blocks
        sm_tracks = [
            self._out.track(group, f"SM {sm}", rank=sm, counts="blocks")
            for sm in range(self._trace.device.sms)
        ]
        every = [self._out.track(gpu, "resident blocks", counts="blocks")]
        for tracks, row in ((sm_tracks, blocks.sm), (every, np.zeros_like(blocks.sm))):
            row, time_ns, counts = resident(row, blocks)
            self._out.add(count, time_ns=time_ns, track=np.array(tracks)[row], value=counts)


def write_processes(processes: Processes, file: BinaryIO) -> None:
    """Writes a Perfetto trace of processes: who has the GPU when, and what each of them does."""
    writer = TrackWriter(file)
    if len(processes.turns):
        group = writer.track(None, f"turns of {processes_short(processes)}")
        process = processes.turns["process"].astype(np.int64)
        times = (processes.turns["begin_ns"], processes.turns["end_ns"])
        titles = [f"process {process_index}" for process_index in range(len(processes.traces))]
        track = writer.in_rows(group, titles, process, *times)
        names = writer.names.numbers(titles[process_index] for process_index in process.tolist())
        writer.slice(*times, track, name=names)
    for process_index, trace in enumerate(processes.traces):
        TraceTracks(trace, writer, _ZERO_NS).add(f"process {process_index}: {trace_head(trace)}")
    writer.end()


def write_program(program: Program, file: BinaryIO) -> None:
    """Writes a Perfetto trace of what a profile measured."""
    if not len(program.sequence) and program.activity is not None:
        write_activity(program.activity, file)
        return
    writer = TrackWriter(file)
    calls = program.measured["call_ns"]
    times = (program.measured["start_ns"], program.transfers["start_ns"], calls[calls >= 0])
    first = min((int(time.min()) for time in times if len(time)), default=0)
    _measured(program, writer, -first)
    writer.end()


def write_explanation(explanation: Explanation, file: BinaryIO) -> None:
    """Writes a Perfetto trace of an explanation: the prediction, and what the profile measured as a
    process of its own."""
    if explanation.prediction is None and explanation.program.ranks:
        write_account(explanation, file)
        return
    if explanation.prediction is None:
        write_program(explanation.program, file)
        return
    writer = TrackWriter(file)
    tracks = TraceTracks(explanation.prediction, writer, legacy=legacy_words(explanation.program))
    tracks.add(trace_head(explanation.prediction))
    rows = explanation.program.measured
    # Both begin with their first kernel.
    later = int(tracks.slices.runs.begin_ns.min()) - int(rows["start_ns"].min())
    process = _measured(explanation.program, writer, later)
    for kind, title in _GAPS.items():
        gaps = [gap for gap in explanation.gaps[:_SHOWN] if gap.kind == kind]
        if not gaps:
            continue
        begin = np.array([round(gap.begin * 1e9) for gap in gaps]) + later
        end = np.maximum(np.array([round(gap.end * 1e9) for gap in gaps]) + later, begin + 1)
        begin, end = np.maximum(begin, 0), np.maximum(end, 1)
        track = writer.in_rows(process, [title], np.zeros(len(gaps), np.int64), begin, end)
        words = [cause_word(gap.causes[0].cause) if gap.causes else kind for gap in gaps]
        writer.slice(
            begin, end, track, name=writer.names.numbers(words),
            why=writer.words.numbers(gap_words(explanation, gap) for gap in gaps),
            launch=np.array([gap.launch for gap in gaps]),
        )  # fmt: skip
    writer.end()


def _measured(program: Program, writer: TrackWriter, later: int) -> int:
    """Adds a process with what a profile measured: launch calls, kernels and transfers. Returns the
    id of its track."""
    process = writer.track(None, f"measured: {program.format or 'a profile'}")
    _calls(program, writer, process, later)
    _kernels(program, writer, process, later)
    _transfers(program, writer, process, later)
    return process


def _calls(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    """Writes the calls that a profile has, in a row per host thread."""
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
    names = writer.names.numbers(map(labels_of(program.sequence.launches), launch))
    writer.slice(begin, end, track, name=names, launch=np.array(launch))


def _kernels(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    """Writes the kernels that a profile has, in a row per stream, as it numbers them."""
    rows = program.measured
    streams, row = np.unique(rows["stream"], return_inverse=True)
    begin = rows["start_ns"] + later
    end = np.maximum(rows["end_ns"] + later, begin + 1)
    group = writer.track(process, "streams")
    legacy = legacy_numbers(program)
    titles = [
        f"{f'{LEGACY_STREAM} ' * (stream in legacy)}stream {stream}" for stream in streams.tolist()
    ]
    track = writer.in_rows(group, titles, row.astype(np.int64), begin, end)
    names = writer.names.numbers(map(labels_of(program.sequence.launches), range(len(rows))))
    writer.slice(begin, end, track, name=names, launch=np.arange(len(rows)))


def _transfers(program: Program, writer: TrackWriter, process: int, later: int) -> None:
    """Adds copies and memsets of a profile."""
    rows = program.transfers
    if not len(rows):
        return
    begin = np.maximum(rows["start_ns"] + later, 0)
    end = np.maximum(rows["end_ns"] + later, begin + 1)
    row = np.zeros(len(rows), np.int64)
    transfers = program.sequence.transfers
    track = writer.in_rows(process, [transfer_kinds(transfers)], row, begin, end)
    writer.slice(
        begin, end, track,
        name=writer.names.numbers(transfer_name(k, one) for k, one in enumerate(transfers)),
        asks_for=writer.words.numbers(map(transfer_words, transfers)),
    )  # fmt: skip


def write_simulation(simulation: Simulation, file: BinaryIO) -> None:
    """Writes a Perfetto trace of a simulated kernel: blocks by core, and as far as they were kept,
    warps by core and open DRAM rows."""
    writer = TrackWriter(file)
    gpu = writer.track(None, simulation_short(simulation))
    _add(writer, writer.track(gpu, "cores"), "core", "block", blocks_on_cores(simulation))
    for core in range(int(simulation.config["cores"])):
        if len((stays := warps_of(simulation, core)).what):
            _add(writer, writer.track(gpu, f"warps of core {core}", _AWAKE), "warp", "warp", stays)
    for index in range(int(simulation.config["controllers"])):
        if len((stays := open_rows(simulation, index)).what):
            title = f"DRAM banks of controller {index}"
            _add(writer, writer.track(gpu, title, _OPEN), "bank", "row", stays)
    writer.end()


def _add(writer: TrackWriter, group: int, row: str, slice_names: str, stays: Stays) -> None:
    """Adds a track for each place (a core, warp slot or DRAM bank), with a slice for each stay
    there.

    Args:
        writer: of the file.
        group: the track above these.
        row: a track is titled so, and with the number of its place.
        slice_names: a slice is named so, and with the number of what was there.
        stays: what was at which place from when until when; each is shown with 1 ns at least.
    """
    titles = [f"{row} {name_index}" for name_index in range(int(stays.place.max(initial=0)) + 1)]
    end_ns = np.maximum(stays.end_ns, stays.begin_ns + 1)
    track = writer.in_rows(group, titles, stays.place, stays.begin_ns, end_ns)
    names = writer.names.numbers(
        f"{slice_names} {name_index}" for name_index in stays.what.tolist()
    )
    writer.slice(stays.begin_ns, end_ns, track, name=names)
