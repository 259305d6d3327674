"""All that is known of a program that hangs, and what follows from it together."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched import storage
from tbsched.counting import counted, listed
from tbsched.hangs.calls import UNNAMED, HostCall, kind_of
from tbsched.hangs.code import KernelCode, constants_read, kernel_code
from tbsched.hangs.constants import Constants, Range, constants_of, constants_of_any
from tbsched.hangs.debugger_text import bare_name
from tbsched.hangs.disassembler import disassembler, instructions_of
from tbsched.hangs.hang import NeverStarts, OnGpu
from tbsched.hangs.memory import HostMemory
from tbsched.hangs.replay import Replay, Stranded, replay_operations
from tbsched.hangs.snapshot import ResidentKernel, Snapshot
from tbsched.hangs.threads import (
    COMPUTES,
    SPINS,
    UNKNOWN,
    WAITS,
    ThreadState,
    kernel_activity,
    thread_states,
)
from tbsched.hangs.unfinished import LAUNCH, Key, Operation, Unfinished, name_of
from tbsched.hardware.spec import DeviceSpec

QUIET = 1.0  # seconds without news, from which on a hang is told
_MAX_READINGS = 16  # of a kernel with different arguments; it takes up to a second each


@dataclass(frozen=True, slots=True)
class Observations:
    """All that was observed of a program.

    Attributes:
        capture: what it issued; None: it was not captured.
        snapshot: what the debugger saw; None: there was none.
        before, after: snapshots before and after it, for what went on between them.
        memory: the host's memory; None: unknown.
        spec: the GPU, as the process uses it; None: unknown.
        unseen: sentences about what could not be seen.
        seconds: for the search of fixes.
    """

    capture: Unfinished | None
    snapshot: Snapshot | None
    before: Snapshot | None
    after: Snapshot | None
    memory: HostMemory | None
    spec: DeviceSpec | None
    unseen: tuple[str, ...] = ()
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Observations, and what the kernels' code, the samples and the model conclude from them.

    Attributes:
        seen: what is known.
        operations: what has been issued, or is being issued, and has not ended.
        issued: those of them whose calls have returned, or that are on the GPU, without those that
            have ended unseen.
        ended_unseen: the launches that have ended unseen, or will end.
        codes: what kernels may wait for, by their launch.
        states: what sampled threads do, by the number of their grid.
        calls: that threads of the host are in.
        kernel_of_launch: kernels that the debugger sees, by the index of the launch in
            ``operations``.
        on_gpu: these launches.
        replay: what the model says of ``issued``; None: the GPU or the operations are not known.
        never_start: number of blocks that never start, by the model, by index in ``issued``.
        unseen: sentences about what could not be seen.
    """

    seen: Observations
    operations: tuple[Operation, ...]
    issued: tuple[Operation, ...]
    ended_unseen: frozenset[Key]
    codes: dict[Key, KernelCode]
    states: dict[int, tuple[ThreadState, ...]]
    calls: tuple[HostCall, ...]
    kernel_of_launch: dict[int, ResidentKernel]
    on_gpu: frozenset[Key]
    replay: Replay | None
    never_start: dict[int, int]
    unseen: tuple[str, ...]

    @property
    def capture(self) -> Unfinished | None:
        """The capture of what the program issued; None: none."""
        return self.seen.capture

    @property
    def snapshot(self) -> Snapshot | None:
        """What the debugger saw; None: there was none."""
        return self.seen.snapshot

    @property
    def kernels_seen(self) -> tuple[ResidentKernel, ...]:
        """The kernels that the debugger sees on the GPU; none without a debugger."""
        return () if self.snapshot is None else tuple(self.snapshot.kernels)

    def code_of(self, operation: Operation) -> KernelCode | None:
        """Returns what the kernel of a launch may wait for; None: its code is unknown."""
        return self.codes.get(operation.key)

    def has_waves(self, launch: Operation) -> bool:
        """Returns whether a grid has more blocks than an empty GPU has room for; True: unknown."""
        return self.seen.spec is None or _has_waves(launch, self.seen.spec)

    def running(self, *kinds: str) -> list[Operation]:
        """Returns issued operations of some kinds, without those that never start."""
        indices = (k for k in range(len(self.issued)) if k not in self.never_start)
        return [operation for k in indices if (operation := self.issued[k]).what in kinds]

    def running_in_part(self) -> list[Operation]:
        """Returns issued launches of which some blocks run, and others never start."""
        launches = self.replay.launches if self.replay is not None else ()
        return [
            self.issued[place]
            for place, missing in self.never_start.items()
            if (launch := launches[place]) is not None and missing < launch.blocks
        ]

    def does(self, kernel: ResidentKernel) -> str:
        """Returns what a kernel's threads do: ``spins``, ``computes``, ``waits``, ``unknown``."""
        return kernel_activity(self.states.get(kernel.grid_id, ()))

    @functools.cached_property
    def resident(self) -> tuple[OnGpu, ...]:
        """The kernels that are on the GPU, by the debugger, or else by the model."""
        if self.snapshot is not None:
            return tuple([self._row_of_seen_kernel(kernel) for kernel in self.snapshot.kernels])
        return tuple(self._rows_of_modelled_kernels())

    def resident_names(self) -> list[str]:
        """Returns the names of the kernels that are on the GPU."""
        return list(dict.fromkeys(row.name for row in self.resident))

    def never_starting(self, first: Stranded | None = None) -> tuple[NeverStarts, ...]:
        """Returns a row for each launch with blocks that never start, ``first`` before others."""
        if self.replay is None:
            return ()
        order = sorted(self.replay.stranded, key=lambda each: each is not first)
        return tuple(map(self._never_starts, order))

    def contradictions(self) -> Iterator[str]:
        """Yields sentences where debugger and model count different blocks that never start."""
        for stranded in self.replay.stranded if self.replay is not None else ():
            operation = self.issued[stranded.operation]
            kernel = self._seen_as(operation)
            if kernel is not None and kernel.blocks and kernel.missing != stranded.blocks:
                yield (
                    f"By the debugger {counted(kernel.missing, 'block')} of {name_of(operation)} "
                    f"never started; the model says {stranded.blocks:,}."
                )

    def _never_starts(self, stranded: Stranded) -> NeverStarts:
        """Returns the row of a launch with blocks that never start."""
        operation = self.issued[stranded.operation]
        behind = None if stranded.behind is None else name_of(self.issued[stranded.behind])
        kernel = self._seen_as(operation)
        missing = kernel.missing if kernel is not None and kernel.blocks else stranded.blocks
        launch = self.replay.launches[stranded.operation] if self.replay is not None else None
        if launch is not None and missing == stranded.blocks:
            missing += operation.blocks - launch.blocks
        return NeverStarts(
            name_of(operation), missing, operation.blocks, stranded.cause, behind, stranded.limits
        )

    def _seen_as(self, operation: Operation) -> ResidentKernel | None:
        """Returns the kernel that the debugger sees of an operation; None: it sees none."""
        matches = (k for k in self.kernel_of_launch if self.operations[k].key == operation.key)
        return next(map(self.kernel_of_launch.__getitem__, matches), None)

    def _row_of_seen_kernel(self, kernel: ResidentKernel) -> OnGpu:
        """Returns the row of a kernel that the debugger sees, with its blocks per SM."""
        counts: dict[int, int] = {}
        for block_range in kernel.blocks:
            if block_range.sm is not None:
                counts[block_range.sm] = counts.get(block_range.sm, 0) + block_range.count
        sms = tuple(sorted(counts.items())) or tuple([(sm, 0) for sm in kernel.sms])
        line = next((place.line for place in kernel.pc_threads if place.line), "")
        return OnGpu(
            kernel.name, kernel.running, kernel.started, kernel.size, sms, self.does(kernel),
            len(kernel.pc_threads), line, "debugger",
        )  # fmt: skip

    def _rows_of_modelled_kernels(self) -> Iterator[OnGpu]:
        """Yields the rows of kernels that are resident by the model."""
        if self.replay is None or self.replay.trace is None:
            return
        launches = [
            (place, launch)
            for place, launch in enumerate(self.replay.launches)
            if launch is not None
        ]
        for number, (place, launch) in enumerate(launches):
            running = launch.blocks - self.never_start.get(place, 0)
            if running <= 0:
                continue
            placement = self.replay.trace[number]
            assert placement.start_ns is not None
            smid = np.sort(placement.smid[np.argsort(placement.start_ns, kind="stable")][:running])
            sms = np.unique(smid[smid >= 0], return_counts=True)
            yield OnGpu(
                launch.name or "", running, running, self.issued[place].blocks,
                tuple(zip(*(sm.tolist() for sm in sms), strict=True)),
                self._does_by_code(self.issued[place]), 0, "", "model",
            )  # fmt: skip

    def _does_by_code(self, operation: Operation) -> str:
        """Returns what a kernel does by its machine code: spins, waits, computes, or unknown."""
        code = self.code_of(operation)
        if code is None or not code.is_whole:
            return UNKNOWN
        if code.polls or code.has_endless_loop:
            return SPINS
        return WAITS if code.must_wait else COMPUTES


def gather_evidence(seen: Observations) -> Evidence:
    """Returns the evidence: observations, and what follows from them together. Raises ValueError:
    operations of several GPUs have not ended."""
    operations = _operations(seen.capture)
    unseen: list[str] = [*seen.unseen]
    codes = _codes(seen.capture, operations, unseen)
    triggers = {key for key, code in codes.items() if code.triggers}
    operations = tuple([replace(each, triggers=each.key in triggers) for each in operations])
    matched = _match_kernels(operations, seen.snapshot.kernels) if seen.snapshot is not None else {}
    on_gpu = frozenset([operations[index].key for index in matched])
    issued = tuple([each for each in operations if each.has_returned or each.key in on_gpu])
    ended_unseen: frozenset[Key] = frozenset()
    replay = None
    if operations and seen.capture is not None:
        if seen.spec is None:
            unseen.append("The GPU is not known: which blocks find room was not predicted.")
        else:
            try:
                if seen.snapshot is None:
                    ended_unseen = _ended_unseen(issued, codes, seen.capture, seen.spec, unseen)
                    issued = tuple([each for each in issued if each.key not in ended_unseen])
                indices = [k for k, each in enumerate(issued) if each.key in on_gpu]
                resident = None if seen.snapshot is None else frozenset(indices)
                replay = replay_operations(issued, seen.capture.streams, seen.spec, resident)
                unseen += replay.assumed
            except ValueError as error:
                unseen.append(f"The model of {seen.spec.title} refuses a launch: {error}")
    return Evidence(
        seen=seen, operations=operations, issued=issued, ended_unseen=ended_unseen, codes=codes,
        states=_states(seen), calls=tuple(_calls(seen)), kernel_of_launch=matched, on_gpu=on_gpu,
        replay=replay,
        never_start={each.operation: each.blocks for each in replay.stranded} if replay else {},
        unseen=tuple(unseen),
    )  # fmt: skip


def _operations(capture: Unfinished | None) -> tuple[Operation, ...]:
    """Returns the operations that have not ended. Raises ValueError: they are of several GPUs."""
    if capture is None:
        return ()
    gpus = [operation.gpu for operation in capture.operations]
    if len(set(gpus)) > 1 and not capture.is_whole:
        counts = ", ".join(f"{gpus.count(gpu)} on GPU {gpu}" for gpu in sorted(set(gpus), key=str))
        raise ValueError(
            f"{storage.shown(capture.path)}: operations of one process on several GPUs "
            f"have not ended ({counts}), and what these wait for on each other is not looked "
            "into; run one process for each GPU, or look into each with a debugger"
        )
    return capture.operations


def _match_kernels(
    operations: tuple[Operation, ...], kernels: Iterable[ResidentKernel]
) -> dict[int, ResidentKernel]:
    """Returns the kernels that the debugger sees, by the index of their launch.

    Both are in the order of their launches. A kernel is the first launch left with its name, grid
    and block on its GPU; so is one whose name only one of the two knows.
    """
    matched: dict[int, ResidentKernel] = {}
    for kernel in kernels:
        same = (k for k, op in enumerate(operations) if _is_same_kernel(op, kernel))
        if (index := next((k for k in same if k not in matched), None)) is not None:
            matched[index] = kernel
    return matched


def _is_same_kernel(operation: Operation, kernel: ResidentKernel) -> bool:
    """Returns whether an operation is the launch of a kernel that the debugger sees."""
    if operation.what != LAUNCH or operation.gpu != kernel.gpu:
        return False
    if (operation.grid, operation.block) != (kernel.grid, kernel.block):
        return False
    return operation.name is None or bare_name(operation.name) == kernel.name


def _codes(
    capture: Unfinished | None, operations: tuple[Operation, ...], unseen: list[str]
) -> dict[Key, KernelCode]:
    """Returns what the launched kernels may wait for; those without code in the file are left out.

    Launches of a kernel may differ in what they compute: their sizes and arguments say how often
    loops run.
    """
    if capture is None or not capture.codes:
        return {}
    if disassembler() is None:
        unseen.append(
            "Whether the kernels wait for others, or are only slow: nvdisasm, which reads "
            "their code, is not found. It comes with CUDA and with Triton; TBSCHED_NVDISASM "
            "may name it."
        )
        return {}
    capability = next((gpu[2] for gpu in capture.gpus.values()), "")
    known: dict[tuple[int, frozenset[tuple[int, Range]]], KernelCode] = {}
    readings: Counter[int] = Counter()
    codes: dict[Key, KernelCode] = {}
    for operation in operations:
        number = operation.code
        if operation.what != LAUNCH or number is None or number not in capture.codes:
            continue
        code = capture.codes[number]
        instructions = instructions_of(code.code, capability)
        if not instructions:
            continue
        constants: Constants = constants_of_any(code.parameters_at)
        if readings[number] < _MAX_READINGS:
            read = constants_read(instructions)
            own = constants_of(operation, code.parameters_at)
            constants = {place: value for place, value in own.items() if place in read}
        key = number, frozenset(constants.items())
        if key not in known:
            readings[number] += 1
            known[key] = kernel_code(instructions, code.parameters_at, constants)
        codes[operation.key] = known[key]
    return codes


def _states(seen: Observations) -> dict[int, tuple[ThreadState, ...]]:
    """Returns what sampled threads do, by CUDA's number of their grid."""
    samples = seen.snapshot.samples if seen.snapshot is not None else ()
    later = seen.after.samples if seen.after is not None else ()
    states = thread_states(later, samples) if later else thread_states(samples)
    grids = {state.sample.grid_id for state in states}
    return {grid: tuple([s for s in states if s.sample.grid_id == grid]) for grid in grids}


def _calls(seen: Observations) -> Iterator[HostCall]:
    """Yields the calls that host threads are in, by the debugger, or else by the capture."""
    in_capture = seen.capture.open_calls if seen.capture is not None else ()
    captured = {each.system_thread: each for each in in_capture}
    in_look = set()
    for thread in seen.snapshot.threads if seen.snapshot is not None else ():
        name = thread.cuda_call
        if name is None:
            if thread.is_in_driver and thread.system_thread not in captured:
                yield HostCall(UNNAMED, None, thread.system_thread)
            continue
        in_look.add(thread.system_thread)
        at = thread.functions.index(name)
        own = captured.get(thread.system_thread)
        yield HostCall(
            name, kind_of(name), thread.system_thread, own.call if own else None,
            tuple([frame for frame in thread.functions[at + 1 :] if "libcudart" not in frame]),
        )  # fmt: skip
    for system, call in captured.items():
        if system not in in_look:
            yield HostCall(call.function, kind_of(call.function), system, call.call)


def _has_waves(launch: Operation, spec: DeviceSpec) -> bool:
    """Returns whether a grid has more blocks than an empty GPU has room for."""
    return bool(replay_operations((launch,), {}, spec, None).stranded)


def _has_ended_despite_waves(launch: Operation, code: KernelCode | None, spec: DeviceSpec) -> bool:
    """Returns whether a grid with waves has ended before: no block waits for a later wave."""
    is_endless = code is not None and code.has_endless_loop
    return launch.grid_ended_before and not is_endless and _has_waves(launch, spec)


def _waits_behind(launch: Operation, code: KernelCode | None, stays: list[Operation]) -> bool:
    """Returns whether a programmatic launch waits, once started, for an earlier one that stays."""
    waits = launch.programmatic and code is not None and code.waits_for_previous
    return waits and any(launch.is_behind(each) for each in stays)


def _ended_unseen(
    issued: tuple[Operation, ...], codes: dict[Key, KernelCode], capture: Unfinished,
    spec: DeviceSpec, unseen: list[str],
) -> frozenset[Key]:  # fmt: skip
    """Returns the launches that have ended, or will: their code waits for nobody. A kernel without
    code is one if such kernels ended before, and others are left that stay."""

    def named(indices: list[int]) -> str:
        """Returns the names of some launches as a list in words."""
        return listed(dict.fromkeys(name_of(issued[place]) for place in indices))

    kernels = [place for place, each in enumerate(issued) if each.what == LAUNCH]
    code_of = {place: codes.get(issued[place].key) for place in kernels}
    ends = [
        place
        for place, code in code_of.items()
        if code is not None
        and (
            not code.may_wait
            or (code.waits_in_block_only and issued[place].block_ended_before)
            or (code.waits_at_barriers_only and issued[place].cooperative)
            or code.waits_for_lock_only
        )
    ]
    if any(code is not None and code.loops for code in map(code_of.get, ends)):
        # Something takes time that ends.
        waves = [p for p, code in code_of.items() if code is None and _has_waves(issued[p], spec)]
        if waves:
            unseen.append(
                f"Whether {named(waves)} waits: the capture does not have its code. Its grid has "
                "more blocks than have room at once, so it is assumed that none waits for later "
                "ones."
            )
        ends += waves
    stays = [issued[place] for place in kernels if place not in ends]
    ends = [p for p in ends if not _waits_behind(issued[p], code_of[p], stays)]
    again = [
        p
        for p in kernels
        if p not in ends and _has_ended_despite_waves(issued[p], code_of[p], spec)
    ]
    if again:
        unseen.append(
            f"Whether {named(again)} waits for something else than its own later blocks: a grid of "
            "as many blocks, more than have room at once, has ended before."
        )
    ends += again
    usual = [
        p
        for p, code in code_of.items()
        if code is None and issued[p].ended_before and p not in ends
    ]
    if len(ends) + len(usual) == len(kernels):
        usual = []
    if not ends and not usual:
        return frozenset()
    stay = frozenset(kernels) - {*ends, *usual}
    replay = replay_operations(issued, capture.streams, spec, stay)
    stranded = {each.operation for each in replay.stranded}
    rows = [(replay.launches[each.operation], each.blocks) for each in replay.stranded]
    whole = all(launch is not None and launch.blocks == blocks for launch, blocks in rows)
    if not ends and whole and stay <= stranded and not replay.waits_for_host:
        return frozenset()
    ended = [place for place in (*ends, *usual) if place not in stranded]
    assumed = [name_of(issued[place]) for place in ended if place in usual]
    if assumed:
        names = listed(dict.fromkeys(assumed[:3]))
        unseen.append(
            f"Whether the last launches of {names} have ended: such kernels have ended before, "
            "so it is assumed that they have."
        )
    return frozenset([issued[place].key for place in ended])
