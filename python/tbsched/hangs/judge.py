"""From what a capture, a debugger and the model say to the kind of the hang."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tbsched import storage
from tbsched.hangs.calls import ALLOCATES, LAUNCHES, LOADS, WAITS, HostCall, kind_of
from tbsched.hangs.code import KernelCode, kernel_code
from tbsched.hangs.disassembler import disassembler, instructions_of
from tbsched.hangs.fixes import called, fixes_of, loading_fix
from tbsched.hangs.hang import (
    HOST,
    INSIDE,
    LEGACY,
    LOADING,
    NOT_HANGING,
    QUEUE,
    ROOM,
    HangFix,
    HangReport,
    NeverStarts,
    OnGpu,
)
from tbsched.hangs.joined import resident_operations
from tbsched.hangs.look import Look, Resident
from tbsched.hangs.memory import HostMemory
from tbsched.hangs.progress import progress_between
from tbsched.hangs.replay import OWN_ORDER, Replay, Stranded, replayed
from tbsched.hangs.threads import (
    COMPUTES,
    SPINS,
    UNKNOWN,
    ThreadState,
    kernel_does,
    polled,
    states_of,
)
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, Unfinished
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.model import policy_of, prepared
from tbsched.traces.placement import DeviceInfo

_QUIET = 1.0  # seconds
_MOST_WAITING = 1000  # launches after which the driver lets launch calls wait
_MAY_STAY = frozenset({LAUNCH, GRAPH, "wait_value", "host_function"})
_COPIES = re.compile(r"cuMem(cpy|set)(?!\w*Async)")
_KIND_OF = {"hardware_queue": QUEUE, "legacy_stream": LEGACY}


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


def judged(seen: Seen) -> HangReport:
    """Returns why the program hangs, or that it does not."""
    return _Judge(seen).answer()


class _Judge:
    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.capture = seen.capture
        self.look = seen.look
        self.proof: list[str] = []
        self.unseen: list[str] = list(seen.unseen)
        self.operations = self._operations()
        self.codes = self._codes()
        self.gone: frozenset[int] = frozenset()
        self.states = self._states()
        self.calls = tuple(self._calls())
        self.matched = resident_operations(self.operations, self.look.kernels) if self.look else {}
        self.replay = self._replay()

    def _operations(self) -> tuple[Operation, ...]:
        """The operations that have not ended.

        Raises:
            ValueError: they are of several GPUs.
        """
        if self.capture is None:
            return ()
        every = self.capture.operations
        gpus = [each.gpu for each in every]
        if len(set(gpus)) > 1 and not self.capture.is_whole:
            counts = ", ".join(
                f"{gpus.count(gpu)} on GPU {gpu}" for gpu in sorted(set(gpus), key=str)
            )
            raise ValueError(
                f"{storage.shown(self.capture.path)}: operations of one process on several GPUs "
                f"have not ended ({counts}), and what these wait for on each other is not looked "
                "into; run one process for each GPU, or look into each with a debugger"
            )
        return every

    def _codes(self) -> dict[int, KernelCode]:
        """What the kernels of launches may wait for, by the number of their code."""
        capture = self.capture
        if capture is None or not capture.codes:
            return {}
        if disassembler() is None:
            self.unseen.append(
                "Whether the kernels wait for others, or are only slow: nvdisasm, which reads "
                "their code, is not found. It comes with CUDA and with Triton; TBSCHED_NVDISASM "
                "may name it."
            )
            return {}
        capability = next((each[2] for each in capture.gpus.values()), "")
        found = {}
        for number in {each.code for each in self.operations if each.code in capture.codes}:
            assert number is not None
            code = capture.codes[number]
            instructions = instructions_of(code.code, capability)
            if instructions:
                found[number] = kernel_code(instructions, code.parameters_at)
        return found

    def _code_of(self, operation: Operation) -> KernelCode | None:
        return None if operation.code is None else self.codes.get(operation.code)

    def _states(self) -> dict[int, tuple[ThreadState, ...]]:
        """What sampled threads do, by the grid."""
        samples = self.look.samples if self.look is not None else ()
        later = self.seen.after.samples if self.seen.after is not None else ()
        states = states_of(later, samples) if later else states_of(samples)
        grids = {state.sample.grid_id for state in states}
        return {
            grid: tuple([each for each in states if each.sample.grid_id == grid]) for grid in grids
        }

    def _calls(self) -> Iterator[HostCall]:
        """The calls that threads of the host are in, as the debugger or the capture has them."""
        told = (
            {each.system_thread: each for each in self.capture.open_calls} if self.capture else {}
        )
        seen = set()
        for thread in self.look.threads if self.look else ():
            name = thread.cuda_call
            if name is None:
                continue
            seen.add(thread.system)
            at = thread.functions.index(name)
            own = told.get(thread.system)
            yield HostCall(
                name, kind_of(name), thread.system, own.call if own else None,
                tuple([each for each in thread.functions[at + 1 :] if "libcudart" not in each]),
            )  # fmt: skip
        for system, call in told.items():
            if system not in seen:
                yield HostCall(call.function, kind_of(call.function), system, call.call)

    def _replay(self) -> Replay | None:
        """What the model says, if the GPU and the operations are known."""
        spec = self.seen.spec
        if not self.operations or self.capture is None:
            return None
        if spec is None:
            self.unseen.append("The GPU is not known: which blocks find room was not predicted.")
            return None
        issued = self._issued()
        resident = None
        if self.look is not None:
            places = {each.call: place for place, each in enumerate(issued)}
            resident = frozenset(
                places[self.operations[place].call]
                for place in self.matched
                if self.operations[place].call in places
            )
        try:
            if resident is None:
                self.gone = self._gone(issued, spec)
                issued = self._issued()
            found = replayed(issued, self.capture.streams, spec, resident)
        except ValueError as error:
            self.unseen.append(f"The model of {spec.title} refuses a launch: {error}")
            return None
        self.unseen += found.assumed
        return found

    def _gone(self, issued: tuple[Operation, ...], spec: DeviceSpec) -> frozenset[int]:
        """Calls of launches that have ended, or end: nothing in their code waits for others.

        Of kernels without code: if such kernels ended before, and others are left that stay.
        """
        assert self.capture is not None
        kernels = [place for place, each in enumerate(issued) if each.what == LAUNCH]
        known = {place: self._code_of(issued[place]) for place in kernels}
        ends = [
            p
            for p, code in known.items()
            if code is not None
            and (not code.may_wait or (code.waits_inside and issued[p].is_usual))
        ]
        usual = [p for p, code in known.items() if code is None and issued[p].is_usual]
        if len(ends) + len(usual) == len(kernels):
            usual = []
        if not ends and not usual:
            return frozenset()
        stay = frozenset(kernels) - {*ends, *usual}
        found = replayed(issued, self.capture.streams, spec, stay)
        late = {each.operation for each in found.stranded}
        whole = all(_blocks(issued[each.operation]) == each.blocks for each in found.stranded)
        if not ends and whole and stay <= late and not found.waits_for_host:
            return frozenset()
        gone = [place for place in (*ends, *usual) if place not in late]
        assumed = [called(issued[place]) for place in gone if place in usual]
        if assumed:
            names = _listed(dict.fromkeys(assumed[:3]))
            self.unseen.append(
                f"Whether the last launches of {names} have ended: such kernels have ended before, "
                "so it is assumed that they have."
            )
        return frozenset([issued[place].call for place in gone])

    def _issued(self) -> tuple[Operation, ...]:
        """The operations whose calls have returned, or are known to be on the GPU."""
        on_gpu = {self.operations[place].call for place in self.matched}
        left = [each for each in self.operations if each.call not in self.gone]
        return tuple([each for each in left if each.is_called or each.call in on_gpu])

    def answer(self) -> HangReport:
        steps = (
            self._progress, self._host_memory, self._loading, self._slow, self._slow_writers,
            self._host_arguments, self._stranded, self._partial, self._unexplained,
            self._host_arguments_too, self._host,
        )  # fmt: skip
        for step in steps:
            found = step()
            if found is not None:
                return found
        return self._inside()

    # Steps, each with an answer or None.

    def _progress(self) -> HangReport | None:
        """Something has ended, or some kernel computes."""
        capture = self.capture
        if capture is not None and capture.is_whole:
            return self._made(NOT_HANGING, "the program has ended by itself")
        looks = [each for each in (self.seen.before, self.look, self.seen.after) if each]
        for earlier, later in itertools.pairwise(looks):
            words = progress_between(earlier, later)
            if words is not None:
                return self._made(NOT_HANGING, words)
        for kernel in self.look.kernels if self.look else ():
            if self._does(kernel) == COMPUTES:
                return self._made(
                    NOT_HANGING,
                    f"{kernel.name} computes: its registers have changed between two looks, and "
                    "its loop does not look at memory that others write",
                )
        if self.look is not None or capture is None:
            return None
        if not capture.operations and not capture.open_calls:
            return self._made(NOT_HANGING, "all that was issued has ended")
        if capture.quiet < _QUIET:
            return self._made(
                NOT_HANGING,
                f"something ended or was issued {capture.quiet:.1f} s before the end of the file; "
                f"a hang is told from {_QUIET:g} s on",
            )
        self.proof.append(
            f"Nothing ended and nothing was issued in the last {capture.quiet:.1f} s of the file."
        )
        return None

    def _host_memory(self) -> HangReport | None:
        """All kernels that spin look at memory of the host."""
        memory = self.seen.memory
        if memory is None or self.look is None:
            return None
        spinning = [each for states in self.states.values() for each in states]
        host, other = polled(spinning, memory)
        if not host or other:
            return None
        names = [k.name for k in self.look.kernels if self._does(k) == SPINS]
        call = next((each for each in self.calls if each.kind is not None), None)
        self.proof.append(
            f"The address that {_listed(names)} polls, {_listed(map(hex, sorted(host)))}, is "
            "memory of the host, by /proc/PID/maps."
        )
        reason = f"{_listed(names)} waits for memory of the host to change"
        if call is not None:
            reason += f", and the host is in {call.function}, which {call.words}"
        return self._made(HOST, reason)

    def _loading(self) -> HangReport | None:
        """A thread loads code while a kernel is on the GPU."""
        waiting = self._waiting_kernels()
        if not waiting:
            return None
        for call in self.calls:
            own = next((each for each in self.operations if each.call == call.call), None)
            if call.kind == LAUNCHES and not self._is_first_use(call, own):
                continue
            if call.kind not in (LOADS, LAUNCHES):
                continue
            what = called(own) if own is not None else "a kernel or module"
            self.proof.append(f"{call.function} has not returned: it {_WORDS_OF_LOADING}.")
            fixes: tuple[HangFix, ...] = ()
            if own is not None and self.seen.spec is not None and self.capture is not None:
                fixes = loading_fix(own, self.operations, self.capture.streams, self.seen.spec)
            stranded: tuple[NeverStarts, ...] = ()
            if own is not None and own.what == LAUNCH:
                blocks = _blocks(own)
                stranded = (NeverStarts(called(own), blocks, blocks, "loading", waiting[0]),)
            return self._made(
                LOADING,
                f"{what} is loaded in {call.function}, which waits for {_listed(waiting)}",
                stranded,
                fixes,
            )
        return self._loads_late(waiting)

    def _loads_late(self, waiting: list[str]) -> HangReport | None:
        """The driver loads a kernel after its launch has returned: it gives no other answer."""
        capture = self.capture
        if capture is None or self.look is not None or capture.waits_for_driver < _QUIET:
            return None
        if any(call.kind == ALLOCATES for call in self.calls):
            return None
        launches = [each for each in self.operations if each.what == LAUNCH]
        waits = next((k for k, each in enumerate(launches) if called(each) in waiting), None)
        later = [] if waits is None else launches[waits + 1 :]
        own = next((each for each in later if each.is_first), None)
        if own is None:
            return None
        self.proof.append(
            f"The driver has given CUPTI no records for {capture.waits_for_driver:.1f} s: it does "
            "not while it loads code behind a kernel."
        )
        fixes: tuple[HangFix, ...] = ()
        if self.seen.spec is not None:
            fixes = loading_fix(own, self.operations, capture.streams, self.seen.spec)
        blocks = _blocks(own)
        return self._made(
            LOADING,
            f"{called(own)} was launched for the first time behind {_listed(waiting)}, and the "
            "driver loads it: loading waits for all work on the GPU",
            (NeverStarts(called(own), blocks, blocks, "loading", waiting[0]),),
            fixes,
        )

    def _is_first_use(self, call: HostCall, own: Operation | None) -> bool:
        """Returns whether a launch call that has not returned loads its kernel."""
        if own is not None:
            return own.is_first and len(self.operations) < _MOST_WAITING
        if self.capture is not None:
            return False
        self.unseen.append(
            f"Whether {call.function} loads a kernel, or waits because too many launches wait: "
            "without a capture nobody knows; assumed that it loads one."
        )
        return True

    def _slow(self) -> HangReport | None:
        """No kernel that has not ended has code that could wait for others."""
        capture, replay = self.capture, self.replay
        if capture is None or self.look is not None or not self.codes or not self.gone:
            return None
        left = [each for each in self._issued() if each.what in _MAY_STAY]
        if left or (replay is not None and replay.waits_for_host):
            return None
        if any(call.kind in (LOADS, ALLOCATES) for call in self.calls):
            return None
        names = dict.fromkeys(called(each) for each in self.operations if each.call in self.gone)
        self.proof.append(
            f"The code of {_listed(list(names)[:3])}: no loop of it waits for memory that others "
            "write, and no barrier holds it without a loop."
        )
        self.unseen.append(
            "Whether a loop of such a kernel ends: each turn changes something, so it is taken to "
            "be slow."
        )
        return self._made(
            NOT_HANGING,
            f"{_listed(list(names)[:3])} {'is' if len(names) == 1 else 'are'} slow: nothing in "
            "the code waits for anything else",
        )

    def _slow_writers(self) -> HangReport | None:
        """All that is on the GPU and waits, waits for memory that a kernel writes which ends."""
        if self.look is not None or self.replay is None or not self.gone:
            return None
        ends = [each for each in self.operations if each.call in self.gone]
        late = {each.operation for each in self.replay.stranded}
        pairs = []
        for place, own in enumerate(self._issued()):
            if own.what not in _MAY_STAY or place in late:
                continue
            code = self._code_of(own)
            if code is None or not code.polls or code.has_endless_loop or not code.is_whole:
                return None
            writer = None
            for poll in code.polls:
                values = {(own.arguments or {}).get(at, 0) for at in poll.arguments}
                at_poll = {value for value in values if _is_address(value)}
                writer = next((each for each in ends if self._written_by(each) & at_poll), None)
                if writer is None:
                    return None
            assert writer is not None
            pairs.append((called(own), called(writer)))
        if not pairs:
            return None
        waits, writes = pairs[0]
        self.proof.append(
            f"The code of {waits} polls an address of its arguments that {writes} writes to, "
            f"and {writes} waits for nothing."
        )
        self.unseen.append(
            f"Whether {writes} has ended: its record may come late. If it has, it hangs inside "
            f"{waits}."
        )
        return self._made(
            NOT_HANGING, f"{waits} waits for what {writes} writes, which is slow", self._rows(None)
        )

    def _written_by(self, operation: Operation) -> set[int]:
        """The addresses of a kernel with loops that it may write to."""
        code = self._code_of(operation)
        if code is None or not code.loops or operation.arguments is None:
            return set()
        values = (operation.arguments.get(place, 0) for place in code.written)
        return {value for value in values if _is_address(value)}

    def _host_arguments(self) -> HangReport | None:
        """Kernels on the GPU wait for memory of the host alone, which no other kernel writes."""
        return self._polls_host(all)

    def _host_arguments_too(self) -> HangReport | None:
        """They wait for other memory, too, and for that nothing was found."""
        return self._polls_host(any)

    def _polls_host(self, which: Callable[[Iterable[bool]], bool]) -> HangReport | None:
        if self.look is not None or self.replay is None:
            return None
        late = {each.operation for each in self.replay.stranded}
        issued = self._issued()
        for place, own in enumerate(issued):
            code = self._code_of(own)
            if own.what != LAUNCH or place in late or code is None:
                continue
            if own.host_arguments is None or own.managed_arguments is None:
                continue
            only_read = (own.host_arguments | own.managed_arguments) - code.written
            polls = [each for each in code.polls if not each.is_local]
            if not polls or not which(bool(only_read & {*each.arguments}) for each in polls):
                continue
            others = (each for each in self.operations if each is not own)
            if any(map(self._may_write_host, others)):
                continue
            call = next((each for each in self.calls if each.kind is not None), None)
            name = called(own)
            self.proof.append(
                f"The code of {name} polls an address of its arguments that is memory of the host, "
                "and nothing that has not ended writes to such memory."
            )
            reason = f"{name} waits for memory of the host to change"
            if call is not None:
                reason += f", and the host is in {call.function}, which {call.words}"
            return self._made(HOST, reason, self._rows(None))
        return None

    def _may_write_host(self, operation: Operation) -> bool:
        """Returns whether a launch may write to memory of the host."""
        if operation.what in ("record", "wait", "wait_value"):
            return False
        if operation.what != LAUNCH:  # a graph, copy, memset, value or host function
            return True
        code = self._code_of(operation)
        if code is None or operation.host_arguments is None or operation.managed_arguments is None:
            return True
        of_host = operation.host_arguments | operation.managed_arguments
        return code.writes_anywhere or bool(of_host & code.written)

    def _stranded(self) -> HangReport | None:
        """A launch can never start, for something that the program did not ask for."""
        if self.replay is None or self.seen.spec is None or self.capture is None:
            return None
        issued = self._issued()
        first = next((x for x in self.replay.stranded if x.cause not in OWN_ORDER), None)
        if first is None:
            return None
        kind = _KIND_OF.get(first.cause, ROOM)
        rows = self._rows(first)
        name, missing = rows[0].name, rows[0].missing
        reason = f"{missing:,} of {rows[0].blocks:,} blocks of {name} never start: "
        behind = rows[0].behind
        if kind == ROOM:
            reason += f"no SM has room for one more ({first.cause})"
        elif kind == QUEUE:
            reason += f"{behind} is before it in its hardware queue, and waits itself"
        else:
            reason += f"work in the legacy default stream and {behind} wait for each other"
        self.proof.append(
            f"The model of {self.seen.spec.title}: with what is on the GPU staying there, "
            f"{missing:,} blocks of {name} never start ({first.cause})."
        )
        fixes = fixes_of(
            first, issued, self.capture.streams, self.seen.spec, self.replay, self.seen.seconds
        )
        return self._made(kind, reason, rows, fixes)

    def _partial(self) -> HangReport | None:
        """The debugger sees a kernel of which blocks have not started."""
        for kernel in self.look.kernels if self.look else ():
            if kernel.missing <= 0 or not kernel.blocks:
                continue
            self.unseen.append(
                "Which resource of the SMs binds: without a capture the kernel's registers and "
                "shared memory are not known."
                if self.capture is None
                else f"The capture has no launch of {kernel.name} that has not ended."
            )
            row = NeverStarts(kernel.name, kernel.missing, kernel.size, "unknown", None)
            reason = (
                f"{kernel.missing:,} of {kernel.size:,} blocks of {kernel.name} have not started, "
                f"and the {kernel.running:,} that run do not end"
            )
            return self._made(ROOM, reason, (row,))
        return None

    def _unexplained(self) -> HangReport | None:
        """A launch could start, by the model, and is not on the GPU: its kernel is loaded."""
        if self.look is None or self.replay is None or self.capture is None:
            return None
        issued = self._issued()
        late = {each.operation for each in self.replay.stranded}
        on_gpu = {self.operations[place].call for place in self.matched}
        waiting = self._waiting_kernels()
        for place, own in enumerate(issued):
            if own.what != LAUNCH or place in late or own.call in on_gpu or not own.is_first:
                continue
            if not waiting or not any(each.call in on_gpu for each in issued[:place]):
                continue
            self.proof.append(
                f"{called(own)} was launched for the first time and is not on the GPU, although it "
                "waits for nothing and there is room for it, by the model."
            )
            assert self.seen.spec is not None
            fixes = loading_fix(own, issued, self.capture.streams, self.seen.spec)
            blocks = _blocks(own)
            row = NeverStarts(called(own), blocks, blocks, "loading", waiting[0])
            return self._made(
                LOADING,
                f"{called(own)} was launched while {_listed(waiting)} was on the GPU, and was not "
                "loaded before: loading waits for all work on the GPU",
                (row,),
                fixes,
            )
        return None

    def _host(self) -> HangReport | None:
        """The GPU waits for the host, or a call waits for the GPU that nobody expects to wait."""
        if self.replay is not None and self.replay.waits_for_host:
            own = self._issued()[self.replay.waits_for_host[0]]
            what = {
                "wait_value": "waits for a value in memory that nobody has written",
                "host_function": "waits for a function of the host to return",
            }[own.what]
            self.proof.append(f"Call {own.call}, {own.function}, has not ended, and is reached.")
            return self._made(
                HOST, f"stream {own.stream} {what} ({own.function})", self._rows(None)
            )
        for call in self.calls:
            if call.kind == ALLOCATES and self._waiting_kernels():
                names = _listed(self._waiting_kernels())
                self.proof.append(f"{call.function} has not returned: it {call.words}.")
                return self._made(
                    HOST,
                    f"the host is in {call.function}, which waits for {names}; what {names} waits "
                    "for may be issued only afterwards",
                    self._rows(None),
                )
        copies = [each for each in self.calls if _COPIES.match(each.function)]
        if copies and self.look is None and self._only_reads():
            names = _listed(self._waiting_kernels())
            return self._made(
                HOST,
                f"the host is in {copies[0].function}, which waits for {names}; the code of "
                f"{names} waits for memory that it never writes, as may this copy",
                self._rows(None),
            )
        if self.look is not None and not self.look.kernels:
            waits = [each for each in self.calls if each.kind in (WAITS, ALLOCATES)]
            if not waits:
                return self._made(
                    NOT_HANGING, "no kernel is on the GPU, and no thread waits for it"
                )
            return self._made(
                HOST,
                f"no kernel is on the GPU, and the host is in {waits[0].function}: a stream waits "
                "for something else (a value in memory, a function of the host, another process)",
                self._rows(None),
            )
        return None

    def _only_reads(self) -> bool:
        """Returns whether every kernel on the GPU waits for memory that none of them writes."""
        if self.replay is None:
            return False
        late = {each.operation for each in self.replay.stranded}
        on_gpu = [
            self._code_of(own)
            for place, own in enumerate(self._issued())
            if own.what == LAUNCH and place not in late
        ]
        return bool(on_gpu) and all(
            code is not None and code.polls and not code.written and not code.writes_anywhere
            for code in on_gpu
        )

    def _inside(self) -> HangReport:
        """All that can start is on the GPU."""
        names = self._waiting_kernels()
        rows = self._rows(None)
        if self.replay is None and self.capture is None:
            self.unseen.append(
                "Launches that wait in a stream or in a hardware queue: without a capture they are "
                "not seen, so a queue or the legacy stream may be the cause. Run the program under "
                "`tbsched capture`."
            )
        if self.look is None:
            if any(row.does == UNKNOWN for row in self._resident()):
                self.unseen.append(
                    "Whether the kernels spin, and on whose memory: without a debugger nobody "
                    "knows. `tbsched hang --pid PID` looks at a process that still runs."
                )
            if self.capture is not None and not self.capture.notes_flushes:
                self.unseen += self._first_uses()
        reason = f"all blocks of {_listed(names)} are on the GPU, and they do not end"
        if not names:
            reason = "nothing that can never start was found"
        if rows:
            behind = dict.fromkeys(row.name for row in rows)
            comes = "comes" if len(behind) == 1 else "come"
            them = "it" if len(names) == 1 else "them"
            reason += f"; {_listed(behind)} {comes} after {them} by the program's own order"
        counters = [row for row in self._resident() if row.counters]
        if counters:
            self.proof.append(
                "; ".join(
                    f"{row.name}: {row.running:,} blocks, threads at {row.counters} instructions, "
                    f"it {row.does}" + (f" at {row.line}" if row.line else "")
                    for row in counters
                )
                + "."
            )
        return self._made(INSIDE, reason, rows)

    def _first_uses(self) -> Iterator[str]:
        """Launches of kernels that may not have been loaded when others were on the GPU already."""
        before: list[str] = []
        for own in self._issued():
            if own.what != LAUNCH:
                continue
            if own.is_first and before:
                yield (
                    f"Whether {called(own)} was loaded before its first launch: if not, it waits "
                    f"for {before[0]}, as loading waits for all work on the GPU."
                )
            before.append(called(own))

    # What the answers are made of.

    def _does(self, kernel: Resident) -> str:
        return kernel_does(self.states.get(kernel.grid_id, ()))

    def _waiting_kernels(self) -> list[str]:
        """Names of the kernels that are on the GPU."""
        return list(dict.fromkeys(row.name for row in self._resident()))

    def _rows(self, first: Stranded | None) -> tuple[NeverStarts, ...]:
        """The launches that never start, the one that decides first."""
        if self.replay is None:
            return ()
        issued = self._issued()
        order = sorted(self.replay.stranded, key=lambda each: each is not first)
        return tuple([self._row(each, issued) for each in order])

    def _row(self, stranded: Stranded, issued: tuple[Operation, ...]) -> NeverStarts:
        own = issued[stranded.operation]
        behind = None if stranded.behind is None else called(issued[stranded.behind])
        missing, seen = stranded.blocks, self._seen_as(own)
        if seen is not None and seen.blocks:
            if seen.missing != missing:
                self.proof.append(
                    f"The debugger sees {seen.missing:,} blocks of {called(own)} that have not "
                    f"started; the model says {missing:,}."
                )
            missing = seen.missing
        return NeverStarts(
            called(own), missing, _blocks(own), stranded.cause, behind, stranded.limits
        )

    def _seen_as(self, operation: Operation) -> Resident | None:
        for place, kernel in self.matched.items():
            if self.operations[place].call == operation.call:
                return kernel
        return None

    def _resident(self) -> tuple[OnGpu, ...]:
        if self.look is not None:
            return tuple([self._row_of(kernel) for kernel in self.look.kernels])
        if self.replay is None or self.replay.trace is None:
            return ()
        rows = []
        issued = self._issued()
        late = {each.operation: each.blocks for each in self.replay.stranded}
        launches = [place for place, each in enumerate(self.replay.launches) if each is not None]
        for number, place in enumerate(launches):
            launch = self.replay.launches[place]
            assert launch is not None
            running = launch.blocks - late.get(place, 0)
            if running <= 0:
                continue
            placement = self.replay.trace[number]
            assert placement.start_ns is not None
            smid = np.sort(placement.smid[np.argsort(placement.start_ns, kind="stable")][:running])
            sms = np.unique(smid[smid >= 0], return_counts=True)
            rows.append(
                OnGpu(
                    launch.name or "", running, running, launch.blocks,
                    tuple(zip(*(each.tolist() for each in sms), strict=True)),
                    self._does_by_code(issued[place]), 0, "",
                    "model",
                )
            )  # fmt: skip
        return tuple(rows)

    def _does_by_code(self, operation: Operation) -> str:
        code = self._code_of(operation)
        if code is None or not code.is_whole:
            return UNKNOWN
        if code.polls or code.has_endless_loop:
            return SPINS
        return WAITS if code.must_wait else COMPUTES

    def _row_of(self, kernel: Resident) -> OnGpu:
        counts: dict[int, int] = {}
        for each in kernel.blocks:
            if each.sm is not None:
                counts[each.sm] = counts.get(each.sm, 0) + each.count
        sms = tuple(sorted(counts.items())) or tuple([(sm, 0) for sm in kernel.sms])
        line = next((place.line for place in kernel.places if place.line), "")
        return OnGpu(
            kernel.name, kernel.running, kernel.started, kernel.size, sms, self._does(kernel),
            len(kernel.places), line, "debugger",
        )  # fmt: skip

    def _made(
        self,
        kind: str,
        reason: str,
        stranded: tuple[NeverStarts, ...] = (),
        fixes: tuple[HangFix, ...] = (),
    ) -> HangReport:
        spec = self.seen.spec
        capture = self.capture
        return HangReport(
            kind=kind,
            reason=reason,
            resident=self._resident(),
            stranded=stranded,
            calls=self.calls,
            fixes=fixes,
            proof=tuple(dict.fromkeys(self.proof)),
            unseen=tuple(dict.fromkeys(self.unseen)),
            device=None if spec is None else _info(spec),
            process=None if capture is None else capture.process,
        )


_WORDS_OF_LOADING = "loads code, and that waits for all work on the GPU"


def _info(spec: DeviceSpec) -> DeviceInfo:
    return prepared(spec, policy_of(spec, None))[1]


def _is_address(value: int) -> bool:
    return value >= 1 << 32


def _blocks(operation: Operation) -> int:
    x, y, z = operation.grid
    return x * y * z


def _listed(words: Iterable[str]) -> str:
    found = list(words)
    if len(found) < 2:
        return found[0] if found else "nothing"
    return f"{', '.join(found[:-1])} and {found[-1]}"
