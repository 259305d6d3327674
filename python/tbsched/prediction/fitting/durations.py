"""Durations of blocks from the times of whole kernels."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.fitting.as_measured import AsMeasured, BlockTimes, timed_launches
from tbsched.prediction.fitting.coarse import blocks_at_once, coarser
from tbsched.prediction.fitting.effort import QUICK, THOROUGH, Effort
from tbsched.prediction.fitting.fit import Fit
from tbsched.prediction.fitting.host import fitted_host
from tbsched.prediction.fitting.overhead import overhead_ns
from tbsched.prediction.fitting.replay import Replay
from tbsched.prediction.program_device import device_of
from tbsched.program.arrays import Float64Array
from tbsched.program.checks import instance
from tbsched.program.events.graph import Graph, GraphLaunch
from tbsched.program.program import BLOCK_TIMES, Program
from tbsched.program.sequence import Sequence, Stream, with_launches

_MEMORY = "What kernels write"  # begins the sentence of ``Program.assumed`` about it


def fit_durations(
    program: Program, device: str | os.PathLike[str] | DeviceSpec, *, thorough: bool = True
) -> Program:
    """Finds how long blocks run, from the times of whole kernels that a profile has.

    A profile says when each kernel started and ended. This inverts the model: it looks for one
    duration for all blocks of a launch, with which the predicted kernel ends when the measured one
    did. The launches are issued when they were measured to start. So waves, tails and neighbours
    on the same SMs count, waits before the start do not, and no error travels.

    Three more things are taken from the profile:

    - A launch that waited for room started when blocks of another one left. If that one ended
      later, its blocks did not all run equally long: they get durations (:class:`Drawn`) of which
      the shortest end then.
    - Kernels of a profile last longer or shorter than their blocks, by a constant that the profiler
      and the GPU decide. Kernels that follow each other in a stream show it: the model knows the
      time from the last block of one to the first block of the next.
    - ``host`` is corrected so that launches are predicted to be issued when they were: under a
      profiler calls take longer than without.

    A launch that mostly waits for blocks of others says little about its own. It does not simply
    get the duration of other launches of its kernel: beside other kernels the same blocks run
    longer, as they share memory and caches.

    At last the whole program is predicted many times, with its streams, events and host. Durations
    change with what is wrong there: the times of kernels, which of them run together, and the
    makespan. Launches of one kernel may begin with one duration there. A launch that started later
    than it could have, or behind one that waited for the same kernel, gets a ``delay``. The
    prediction nearest to the profile counts.

    Kernels are taken to write to the memory of the GPU alone: ``host_watch_ns`` of the device is 0.

    Launches of very many blocks get fewer and longer ones, if the program has more than 2**23
    blocks.

    Args:
        program: a profile, as :func:`tbsched.load_program` reads it. The durations of its launches
            are not looked at.
        device: what it ran on: a name, the path of a ``.toml`` file, or a spec.
        thorough: whether the whole program is predicted up to 550 times, which takes seconds; else
            it is a few times.

    Returns:
        The program with ``sequence``, ``host``, ``kernel_overhead`` and ``fitted``. ``fitted`` is,
        for each launch, the share of the kernel's time in which its own blocks ran, on the SM that
        it left last. It is less where no duration gives the measured time. What was done to the
        program is added to ``assumed``.

    Raises:
        TypeError, ValueError: no program; a launch that cannot run on the device.

    Example:
        >>> program = tb.load_program("trace.json.gz")  # doctest: +SKIP
        >>> tb.fit_durations(program, "h200").sequence.launches[0].duration  # doctest: +SKIP
        1.2e-05
    """
    instance("fit_durations", "program", program, Program)
    spec = device_of(program, device)
    return with_durations(program, spec, THOROUGH if thorough else QUICK)


def with_durations(program: Program, spec: DeviceSpec, effort: Effort) -> Program:
    """Returns the program with durations, as :func:`fit_durations` finds them. Raises ValueError: a
    launch that cannot run on the device."""
    spec.check(program.sequence)
    if not program.sequence.launches:
        return program
    sequence, fewer = coarser(program.sequence, spec, effort.program)
    rows = program.measured
    order = np.argsort(rows["start_ns"], kind="stable")
    launches = [sequence.launches[k] for k in order.tolist()]
    start_ns, end_ns = rows["start_ns"][order], rows["end_ns"][order]
    length_ns = (end_ns - start_ns).astype(np.float64)
    waves = np.array([-(-x.blocks // blocks_at_once(spec, x)) for x in launches], np.float64)
    ran = AsMeasured.of(launches, start_ns, end_ns, spec)
    fit = Fit(ran, length_ns / waves, waves, effort.window)

    def timed(times: BlockTimes) -> Program:
        """Returns the program with some block times."""
        return _timed(program, sequence, times, spec)

    fit.improve(length_ns)
    over_ns = overhead_ns(timed(fit.block_times(order)), spec)
    blocks_ns = np.maximum(length_ns - over_ns, 0.0)
    fit.duration_ns = np.maximum(fit.duration_ns - over_ns / waves, 0.0)
    if effort is not QUICK and (fit.spread() or over_ns):
        fit.improve_again(blocks_ns)
    times = fit.block_times(order)
    host, moved_ns = fitted_host(timed(times), spec)
    by_number = np.argsort(order)
    replay = Replay.of(
        program, lambda tried: replace(timed(tried), host=host), blocks_ns[by_number],
        waves[by_number], spec,
    )  # fmt: skip
    fitted = timed(replay.improved_times(times, effort))
    determined = np.empty_like(fit.determined)
    determined[order] = fit.determined
    known = (BLOCK_TIMES, _MEMORY)
    others = [line for line in program.assumed if not line.startswith(known)]
    assumed = (*others, *_assumptions(fewer, over_ns, moved_ns))
    return replace(
        fitted, host=host, fitted=tuple(determined.tolist()), assumed=assumed,
        kernel_overhead=over_ns / 1e9,
    )  # fmt: skip


def _timed(program: Program, sequence: Sequence, times: BlockTimes, spec: DeviceSpec) -> Program:
    """Returns the program with block times that are equal for all launches of a graph's node."""
    ran_ns = _without_dependency_waits(sequence, program, times.duration_ns, spec)
    node_times = times._replace(
        duration_ns=alike_in_graphs(program.sequence, ran_ns),
        spread_ns=alike_in_graphs(program.sequence, times.spread_ns),
    )
    return replace(
        program, sequence=with_launches(sequence, timed_launches(sequence.launches, node_times))
    )


def fewer_blocks(launches: int) -> str:
    """Returns the sentence that says how many launches have fewer blocks than in the profile."""
    return (
        f"Blocks: {launches} launches of very many blocks have fewer and longer ones, so that the "
        "program can be predicted."
    )


def _assumptions(fewer: int, over_ns: float, moved_ns: float) -> list[str]:
    """Returns sentences for ``Program.assumed``.

    Args:
        fewer: how many launches have fewer blocks than in the profile.
        over_ns: by how much kernels of the profile last longer than their blocks.
        moved_ns: by how much gaps between calls of the host grew, at the median.
    """
    sentences = []
    if fewer:
        sentences.append(fewer_blocks(fewer))
    if over_ns:
        longer = "longer" if over_ns > 0 else "shorter"
        sentences.append(
            f"The time of a kernel: {abs(over_ns) / 1e3:.2f} us {longer} than from the first block "
            "to the last, as kernels that follow each other in a stream show."
        )
    moved_us = round(moved_ns / 1e3, 1)
    if moved_us:
        more, longer = ("more", "longer") if moved_us > 0 else ("less", "less long")
        sentences.append(
            f"The host: {abs(moved_us)} us {more} between calls, at the median, as calls of the "
            f"profile take {longer}."
        )
    sentences.append(
        f"{_MEMORY}: to the memory of the GPU alone (host_watch_ns of the device is 0)."
    )
    return [*sentences, f"{BLOCK_TIMES}: found with the model, from the times of whole kernels."]


def _without_dependency_waits(
    sequence: Sequence, program: Program, duration_ns: Float64Array, spec: DeviceSpec
) -> Float64Array:
    """Returns durations of blocks in ns, without the time for which they waited in
    griddepcontrol.wait. A prediction adds these waits to the durations of programmatic launches."""
    ran_ns = duration_ns.copy()
    left_ns: dict[Stream, int] = {}  # when all earlier blocks of the stream had left their SMs
    rows = program.measured
    times = zip(rows["start_ns"].tolist(), rows["end_ns"].tolist(), strict=True)
    for index, (launch, (start, end)) in enumerate(zip(sequence.launches, times, strict=True)):
        if launch.stream is None:
            continue
        left = left_ns.get(launch.stream, start)
        if launch.programmatic and launch.memory_wait is not None:
            reached_ns = round(launch.memory_wait * 1e9)  # the wait, after the start of a block
            waited = max(left - start - reached_ns, 0)
            ran_ns[index] = max(ran_ns[index] - waited, min(reached_ns, ran_ns[index]))
        left_ns[launch.stream] = max(left, end + spec.exit_latency_ns)
    return ran_ns


def alike_in_graphs(sequence: Sequence, duration_ns: Float64Array) -> Float64Array:
    """Returns durations; for a graph's node the median over all launches of the graph."""
    first_launches: dict[Graph, list[int]] = {}
    launch = 0
    for event in sequence:
        if isinstance(event, GraphLaunch):
            first_launches.setdefault(event.graph, []).append(launch)
        launch += len(event.launches)
    by_node_ns = duration_ns.copy()
    for graph, firsts in first_launches.items():
        rows = np.add.outer(np.array(firsts), np.arange(len(graph.launches)))
        by_node_ns[rows] = np.median(duration_ns[rows], axis=0)
    return by_node_ns
