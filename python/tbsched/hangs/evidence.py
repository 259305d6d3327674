"""All that is known of a program that hangs, and what follows from it together."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tbsched import storage
from tbsched.counting import counted, listed
from tbsched.hangs.calls import UNNAMED, HostCall, kind_of
from tbsched.hangs.code import KernelCode, kernel_code
from tbsched.hangs.debugger_text import bare_name
from tbsched.hangs.disassembler import disassembler, instructions_of
from tbsched.hangs.hang import NeverStarts, OnGpu
from tbsched.hangs.look import Look, Resident
from tbsched.hangs.memory import HostMemory
from tbsched.hangs.replay import Replay, Stranded, replayed
from tbsched.hangs.threads import (
    COMPUTES,
    SPINS,
    UNKNOWN,
    WAITS,
    ThreadState,
    kernel_does,
    states_of,
)
from tbsched.hangs.unfinished import LAUNCH, Key, Operation, Unfinished, called
from tbsched.hardware.spec import DeviceSpec

QUIET = 1.0  # seconds without news, from which on a hang is told


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is known of a program.

    Attributes:
        capture: what it issued; None: it was not captured.
        look: of the debugger; None: there was none.
        before, after: looks before and after it, for what went on between them.
        memory: the host's memory; None: unknown.
        spec: the GPU, as the process uses it; None: unknown.
        unseen: sentences about what could not be seen.
        seconds: for the search of fixes.
    """

    capture: Unfinished | None
    look: Look | None
    before: Look | None
    after: Look | None
    memory: HostMemory | None
    spec: DeviceSpec | None
    unseen: tuple[str, ...] = ()
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known, and what the kernels' code, the samples and the model say of it.

    Attributes:
        seen: what is known.
        operations: what has been issued, or is being issued, and has not ended.
        issued: those of them whose calls have returned, or that are on the GPU, without those that
            have ended unseen.
        gone: the launches that have ended unseen, or will end.
        codes: what kernels may wait for, by the number of their code.
        states: what sampled threads do, by the number of their grid.
        calls: that threads of the host are in.
        matched: kernels that the debugger sees, by the place of their launch in ``operations``.
        on_gpu: these launches.
        replay: what the model says of ``issued``; None: the GPU or the operations are not known.
        never_start: launches of which blocks never start, by the model: their places in ``issued``,
            and how many blocks.
        unseen: sentences about what could not be seen.
    """

    seen: Seen
    operations: tuple[Operation, ...]
    issued: tuple[Operation, ...]
    gone: frozenset[Key]
    codes: dict[int, KernelCode]
    states: dict[int, tuple[ThreadState, ...]]
    calls: tuple[HostCall, ...]
    matched: dict[int, Resident]
    on_gpu: frozenset[Key]
    replay: Replay | None
    never_start: dict[int, int]
    unseen: tuple[str, ...]

    @property
    def capture(self) -> Unfinished | None:
        """What the program issued."""
        return self.seen.capture

    @property
    def look(self) -> Look | None:
        """What the debugger saw."""
        return self.seen.look

    @property
    def seen_kernels(self) -> tuple[Resident, ...]:
        """The kernels that the debugger sees on the GPU."""
        return () if self.look is None else tuple(self.look.kernels)

    def code_of(self, operation: Operation) -> KernelCode | None:
        """Returns what the kernel of a launch may wait for; None: unknown."""
        return None if operation.code is None else self.codes.get(operation.code)

    def by_model(self, *kinds: str) -> list[Operation]:
        """Returns operations of some kinds that are issued, without launches that never start."""
        places = (k for k in range(len(self.issued)) if k not in self.never_start)
        return [own for k in places if (own := self.issued[k]).what in kinds]

    def does(self, kernel: Resident) -> str:
        """Returns what the threads of a kernel do, by the debugger's samples."""
        return kernel_does(self.states.get(kernel.grid_id, ()))

    @functools.cached_property
    def resident(self) -> tuple[OnGpu, ...]:
        """The kernels that are on the GPU, by the debugger, or else by the model."""
        if self.look is not None:
            return tuple([self._row_of(kernel) for kernel in self.look.kernels])
        return tuple(self._resident_by_model())

    def resident_names(self) -> list[str]:
        """Returns the names of the kernels that are on the GPU."""
        return list(dict.fromkeys(row.name for row in self.resident))

    def rows(self, first: Stranded | None = None) -> tuple[NeverStarts, ...]:
        """Returns the launches that never start; ``first``, if given, before the others."""
        if self.replay is None:
            return ()
        order = sorted(self.replay.stranded, key=lambda each: each is not first)
        return tuple(map(self._never_starts, order))

    def contradictions(self) -> Iterator[str]:
        """Yields where the debugger sees another number of blocks that never start."""
        for stranded in self.replay.stranded if self.replay is not None else ():
            own = self.issued[stranded.operation]
            seen = self._seen_as(own)
            if seen is not None and seen.blocks and seen.missing != stranded.blocks:
                yield (
                    f"By the debugger {counted(seen.missing, 'block')} of {called(own)} never "
                    f"started; the model says {stranded.blocks:,}."
                )

    def _never_starts(self, stranded: Stranded) -> NeverStarts:
        """Returns the row of a launch whose blocks never start."""
        own = self.issued[stranded.operation]
        behind = None if stranded.behind is None else called(self.issued[stranded.behind])
        seen = self._seen_as(own)
        missing = seen.missing if seen is not None and seen.blocks else stranded.blocks
        taken = self.replay.launches[stranded.operation] if self.replay is not None else None
        if taken is not None and missing == stranded.blocks:
            missing += own.blocks - taken.blocks
        return NeverStarts(
            called(own), missing, own.blocks, stranded.cause, behind, stranded.limits
        )

    def _seen_as(self, operation: Operation) -> Resident | None:
        own = (k for k in self.matched if self.operations[k].key == operation.key)
        return next(map(self.matched.__getitem__, own), None)

    def _row_of(self, kernel: Resident) -> OnGpu:
        """Returns the row of a kernel that the debugger sees."""
        counts: dict[int, int] = {}
        for each in kernel.blocks:
            if each.sm is not None:
                counts[each.sm] = counts.get(each.sm, 0) + each.count
        sms = tuple(sorted(counts.items())) or tuple([(sm, 0) for sm in kernel.sms])
        line = next((place.line for place in kernel.places if place.line), "")
        return OnGpu(
            kernel.name, kernel.running, kernel.started, kernel.size, sms, self.does(kernel),
            len(kernel.places), line, "debugger",
        )  # fmt: skip

    def _resident_by_model(self) -> Iterator[OnGpu]:
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
                tuple(zip(*(each.tolist() for each in sms), strict=True)),
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


def gathered(seen: Seen) -> Evidence:
    """Returns what follows from all that is known together.

    Raises:
        ValueError: operations of several GPUs have not ended.
    """
    operations = _operations(seen.capture)
    unseen: list[str] = [*seen.unseen]
    codes = _codes(seen.capture, operations, unseen)
    triggers = {number for number, code in codes.items() if code.triggers}
    operations = tuple([replace(each, triggers=each.code in triggers) for each in operations])
    matched = _matched(operations, seen.look.kernels) if seen.look is not None else {}
    on_gpu = frozenset([operations[place].key for place in matched])
    issued = tuple([each for each in operations if each.is_called or each.key in on_gpu])
    gone: frozenset[Key] = frozenset()
    replay = None
    if operations and seen.capture is not None:
        if seen.spec is None:
            unseen.append("The GPU is not known: which blocks find room was not predicted.")
        else:
            try:
                if seen.look is None:
                    gone = _gone(issued, codes, seen.capture, seen.spec, unseen)
                    issued = tuple([each for each in issued if each.key not in gone])
                places = [k for k, each in enumerate(issued) if each.key in on_gpu]
                resident = None if seen.look is None else frozenset(places)
                replay = replayed(issued, seen.capture.streams, seen.spec, resident)
                unseen += replay.assumed
            except ValueError as error:
                unseen.append(f"The model of {seen.spec.title} refuses a launch: {error}")
    return Evidence(
        seen=seen,
        operations=operations,
        issued=issued,
        gone=gone,
        codes=codes,
        states=_states(seen),
        calls=tuple(_calls(seen)),
        matched=matched,
        on_gpu=on_gpu,
        replay=replay,
        never_start={each.operation: each.blocks for each in replay.stranded} if replay else {},
        unseen=tuple(unseen),
    )


def _operations(capture: Unfinished | None) -> tuple[Operation, ...]:
    """Returns the operations that have not ended.

    Raises:
        ValueError: they are of several GPUs.
    """
    if capture is None:
        return ()
    gpus = [each.gpu for each in capture.operations]
    if len(set(gpus)) > 1 and not capture.is_whole:
        counts = ", ".join(f"{gpus.count(gpu)} on GPU {gpu}" for gpu in sorted(set(gpus), key=str))
        raise ValueError(
            f"{storage.shown(capture.path)}: operations of one process on several GPUs "
            f"have not ended ({counts}), and what these wait for on each other is not looked "
            "into; run one process for each GPU, or look into each with a debugger"
        )
    return capture.operations


def _matched(operations: tuple[Operation, ...], kernels: Iterable[Resident]) -> dict[int, Resident]:
    """Returns the kernels that are on the GPU, by the places of the launches that they are.

    Both are in the order of their launches. A kernel is the first launch left with its name, grid
    and block on its GPU; so is one whose name only one of the two knows.
    """
    found: dict[int, Resident] = {}
    for kernel in kernels:
        own = (k for k, each in enumerate(operations) if k not in found and _is_it(each, kernel))
        if (place := next(own, None)) is not None:
            found[place] = kernel
    return found


def _is_it(operation: Operation, kernel: Resident) -> bool:
    """Returns whether an operation is the kernel that the debugger sees."""
    if operation.what != LAUNCH or operation.gpu != kernel.gpu:
        return False
    if (operation.grid, operation.block) != (kernel.grid, kernel.block):
        return False
    return operation.name is None or bare_name(operation.name) == kernel.name


def _codes(
    capture: Unfinished | None, operations: tuple[Operation, ...], unseen: list[str]
) -> dict[int, KernelCode]:
    """Returns what the kernels of launches may wait for, by the number of their code."""
    if capture is None or not capture.codes:
        return {}
    if disassembler() is None:
        unseen.append(
            "Whether the kernels wait for others, or are only slow: nvdisasm, which reads "
            "their code, is not found. It comes with CUDA and with Triton; TBSCHED_NVDISASM "
            "may name it."
        )
        return {}
    capability = next((each[2] for each in capture.gpus.values()), "")
    found = {}
    for number in {each.code for each in operations if each.code in capture.codes}:
        assert number is not None
        code = capture.codes[number]
        instructions = instructions_of(code.code, capability)
        if instructions:
            found[number] = kernel_code(instructions, code.parameters_at)
    return found


def _states(seen: Seen) -> dict[int, tuple[ThreadState, ...]]:
    """Returns what sampled threads do, by the number of their grid."""
    samples = seen.look.samples if seen.look is not None else ()
    later = seen.after.samples if seen.after is not None else ()
    states = states_of(later, samples) if later else states_of(samples)
    grids = {state.sample.grid_id for state in states}
    return {grid: tuple([each for each in states if each.sample.grid_id == grid]) for grid in grids}


def _calls(seen: Seen) -> Iterator[HostCall]:
    """Yields the calls that threads of the host are in, as the debugger or the capture has them."""
    in_capture = seen.capture.open_calls if seen.capture is not None else ()
    captured = {each.system_thread: each for each in in_capture}
    in_look = set()
    for thread in seen.look.threads if seen.look is not None else ():
        name = thread.cuda_call
        if name is None:
            if thread.is_in_driver and thread.system not in captured:
                yield HostCall(UNNAMED, None, thread.system)
            continue
        in_look.add(thread.system)
        at = thread.functions.index(name)
        own = captured.get(thread.system)
        yield HostCall(
            name, kind_of(name), thread.system, own.call if own else None,
            tuple([each for each in thread.functions[at + 1 :] if "libcudart" not in each]),
        )  # fmt: skip
    for system, call in captured.items():
        if system not in in_look:
            yield HostCall(call.function, kind_of(call.function), system, call.call)


def _has_waves(launch: Operation, spec: DeviceSpec) -> bool:
    """Returns whether a grid has more blocks than have room at once on an empty GPU."""
    return bool(replayed((launch,), {}, spec, None).stranded)


def _ended_in_waves(launch: Operation, code: KernelCode | None, spec: DeviceSpec) -> bool:
    """Returns whether such a grid has ended before though its first blocks had no later ones."""
    is_endless = code is not None and code.has_endless_loop
    return launch.is_same and not is_endless and _has_waves(launch, spec)


def _waits_behind(launch: Operation, code: KernelCode | None, stays: list[Operation]) -> bool:
    """Returns whether a programmatic launch has started, and waits for one before it that stays."""
    waits = launch.programmatic and code is not None and code.waits_for_previous
    return waits and any(launch.is_behind(each) for each in stays)


def _gone(
    issued: tuple[Operation, ...],
    codes: dict[int, KernelCode],
    capture: Unfinished,
    spec: DeviceSpec,
    unseen: list[str],
) -> frozenset[Key]:
    """Returns the launches that have ended, or end: their code waits for nobody.

    A kernel without code is one if such kernels ended before, and others are left that stay.
    """

    def named(places: list[int]) -> str:
        return listed(dict.fromkeys(called(issued[place]) for place in places))

    kernels = [place for place, each in enumerate(issued) if each.what == LAUNCH]
    numbers = {place: issued[place].code for place in kernels}
    known = {p: None if number is None else codes.get(number) for p, number in numbers.items()}
    ends = [
        place
        for place, code in known.items()
        if code is not None
        and (
            not code.may_wait
            or (code.waits_inside and issued[place].is_usual)
            or (code.is_in_step and issued[place].cooperative)
            or code.takes_turns
        )
    ]
    if any(code is not None and code.loops for code in map(known.get, ends)):
        # Something takes time that ends.
        waves = [p for p, code in known.items() if code is None and _has_waves(issued[p], spec)]
        if waves:
            unseen.append(
                f"Whether {named(waves)} waits: the capture does not have its code. Its grid has "
                "more blocks than have room at once, so it is assumed that none waits for later "
                "ones."
            )
        ends += waves
    stays = [issued[place] for place in kernels if place not in ends]
    ends = [p for p in ends if not _waits_behind(issued[p], known[p], stays)]
    again = [p for p in kernels if p not in ends and _ended_in_waves(issued[p], known[p], spec)]
    if again:
        unseen.append(
            f"Whether {named(again)} waits for something else than its own later blocks: a grid of "
            "as many blocks, more than have room at once, has ended before."
        )
    ends += again
    usual = [
        p for p, code in known.items() if code is None and issued[p].is_usual and p not in ends
    ]
    if len(ends) + len(usual) == len(kernels):
        usual = []
    if not ends and not usual:
        return frozenset()
    stay = frozenset(kernels) - {*ends, *usual}
    found = replayed(issued, capture.streams, spec, stay)
    late = {each.operation for each in found.stranded}
    rows = [(found.launches[each.operation], each.blocks) for each in found.stranded]
    whole = all(launch is not None and launch.blocks == blocks for launch, blocks in rows)
    if not ends and whole and stay <= late and not found.waits_for_host:
        return frozenset()
    gone = [place for place in (*ends, *usual) if place not in late]
    assumed = [called(issued[place]) for place in gone if place in usual]
    if assumed:
        names = listed(dict.fromkeys(assumed[:3]))
        unseen.append(
            f"Whether the last launches of {names} have ended: such kernels have ended before, "
            "so it is assumed that they have."
        )
    return frozenset([issued[place].key for place in gone])
