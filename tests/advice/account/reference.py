"""The account of a profile, literally: one nanosecond after the other, from plain records.

Of each nanosecond of each GPU it asks what ran. If nothing did, it looks for the work that came
next and for who was late with it: the host until the launch call returned, then the GPU. Nothing
here knows the package, but for the numbers of kinds. Far slower, and plain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tbsched.program.activity import (
    ANNOTATION,
    CALL,
    COLLECTIVE,
    COPY,
    FUNCTION,
    GRAPH,
    KERNEL,
    MEMSET,
    MIGRATION,
    OPERATOR,
    STEP,
)

WAITS = frozenset(
    {
        "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
        "cudaThreadSynchronize",
        "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize",
    }
)  # fmt: skip
LOADS = frozenset(
    {
        "cuModuleLoadData", "cuModuleGetFunction", "cuLibraryLoadData", "cudaLibraryGetKernel",
        "cuKernelGetFunction", "cudaFuncGetAttributes", "cuLinkComplete",
    }
)  # fmt: skip
LAUNCHES = frozenset(
    {
        "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
        "cudaLaunchCooperativeKernel", "cuLaunchCooperativeKernel", "cudaLaunch",
    }
)  # fmt: skip
EVENT_WAITS = frozenset({"cudaStreamWaitEvent", "cuStreamWaitEvent"})
VALUE_WAITS = frozenset({"cuStreamWaitValue32", "cuStreamWaitValue64"})
_LAYERS = (
    ("kernel", (KERNEL, GRAPH)), ("collective", (COLLECTIVE,)), ("copy", (COPY, MEMSET)),
    ("migration", (MIGRATION,)),
)  # fmt: skip
Cause: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Work:
    """Something that ran on a GPU; ``correlation``: of the call that launched it, or -1."""

    gpu: int
    kind: int
    name: str
    stream: int
    start: int
    end: int
    correlation: int = -1
    node: int = 0


@dataclass(frozen=True)
class Host:
    """Something that a host thread did; ``number``: of those that were recorded before it."""

    number: int
    kind: int
    name: str
    process: int
    thread: int
    begin: int
    end: int
    correlation: int = -1
    loads: bool = False

    @property
    def of(self) -> tuple[int, int]:
        """The thread, which other processes may number so, too."""
        return self.process, self.thread

    @property
    def place(self) -> tuple[int, int, bool, int]:
        """What is in something else comes after it; nothing is in a call that lasts as long."""
        return self.begin, -self.end, self.kind == CALL, self.number

    def is_call(self, names: frozenset[str]) -> bool:
        """Whether it is a call of one of these functions."""
        return self.kind == CALL and self.name in names


@dataclass(frozen=True)
class Rules:
    """Times in ns: what is long, and what clocks may differ by.

    ``disagree``: of the work, from which on the clocks are wrong. ``asked``: threads, the one that
    launched and those of its process with the most calls.
    """

    on_its_way: int
    next: int
    ahead: int
    loading: int
    disagree: float
    asked: int


@dataclass(frozen=True)
class Gap:
    """A time in which nothing ran, and the work that ended it."""

    begin: int
    end: int
    next: Work | None


def _is_of_engine(row: Host) -> bool:
    """Whether it is what PyTorch's engine of the backward pass calls functions from."""
    return row.kind == OPERATOR and row.name.startswith("autograd::engine::")


@dataclass
class Reference:
    """The account of records, in the order in which they were recorded."""

    recorded: list[Work]
    host: list[Host]
    rules: Rules
    work: list[Work] = field(init=False)
    _shown: dict[tuple[int, int], list[Host]] = field(init=False, default_factory=dict)
    _calls: dict[int, Host] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.work = [*dict.fromkeys(self.recorded)]  # what was recorded twice counts once
        for thread in {row.of for row in self.host}:
            self._shown[thread] = self._shown_of(thread)
        for row in self.host:
            before = self._calls.get(row.correlation)
            if row.kind == CALL and (before is None or row.begin < before.begin):
                self._calls[row.correlation] = row
        self.begin = min(work.start for work in self.work)
        self.end = max(work.end for work in self.work)
        self.gpus = sorted({work.gpu for work in self.work})

    def cause(self, gpu: int, ns: int) -> Cause:
        """The cause of a nanosecond, and what it is by."""
        found = self.ran(gpu, ns)
        return self.of_idle(gpu, ns) if found is None else found

    def ran(self, gpu: int, ns: int) -> Cause | None:
        """The most important thing that ran; of several the first, and of these the shortest."""
        there = [work for work in self.on(gpu) if work.start <= ns < work.end]
        for cause, kinds in _LAYERS:
            alike = [work for work in there if work.kind in kinds]
            if alike:
                return cause, min(alike, key=lambda work: (work.start, work.end)).name
        return None

    def on(self, gpu: int) -> list[Work]:
        """The work of a GPU."""
        return [work for work in self.work if work.gpu == gpu]

    def of_idle(self, gpu: int, ns: int) -> Cause:
        """Why nothing ran."""
        gap = self.gap(gpu, ns)
        if gap.next is None:
            return "no_work", "nothing more ran"
        call = self.launched(gap.next)
        differ = self.clocks_differ(gpu)
        if call is None and gap.next.kind == MIGRATION and not differ:
            around = self.around(gap, gap.next)
            if around is not None:
                return self.of_host(gap, gap.next, around, ns, launched=False)
        is_late = call is not None and not differ and call.end > gap.begin
        if is_late and call is not None and ns < call.end:
            return self.of_host(gap, gap.next, call, ns)
        return self.of_gpu(gap, gap.next, call, is_late=is_late, clocks_differ=differ)

    def gap(self, gpu: int, ns: int) -> Gap:
        """The idle time of a GPU around a nanosecond."""
        begin = end = ns
        while begin > self.begin and self.ran(gpu, begin - 1) is None:
            begin -= 1
        while end < self.end and self.ran(gpu, end) is None:
            end += 1
        ended = [work for work in self.on(gpu) if work.start == end]
        return Gap(begin, end, ended[0] if ended else None)

    def launched(self, work: Work) -> Host | None:
        """The call that launched work: of nested ones with its number the outermost."""
        return self._calls.get(work.correlation) if work.correlation >= 0 else None

    def around(self, gap: Gap, migration: Work) -> Host | None:
        """The next launch, if it was called later; the last one if none comes; None: nobody."""
        calls = {id(work): self.launched(work) for work in self.on(migration.gpu)}
        known = [work for work in self.on(migration.gpu) if calls[id(work)] is not None]
        later = [work for work in known if work.start >= migration.start]
        if later:
            call = calls[id(min(later, key=lambda work: work.start))]
            return call if call is not None and call.end > gap.begin else None
        last = max((work.start for work in known), default=0)
        alike = [work for work in known if work.start == last]
        return calls[id(alike[-1])] if alike else None

    def clocks_differ(self, gpu: int) -> bool:
        """Whether more work than by chance ran before it was launched."""
        calls = [(work, self.launched(work)) for work in self.on(gpu)]
        known = [(work, call) for work, call in calls if call is not None]
        early = [work for work, call in known if call.begin > work.start + self.rules.ahead]
        return len(early) > self.rules.disagree * len(known)

    # What the host did.

    def of_host(
        self, gap: Gap, next_: Work, call: Host, ns: int, *, launched: bool = True
    ) -> Cause:
        """What the thread did that was late, or another one of its process.

        ``launched``: whether the call launched the work; else it is one of the same thread.
        """
        did = self.did(call.of, ns)
        if self.loaded(next_, call if launched else None, did):
            return "first_use", next_.name if did is None else f"{next_.name} ({did.name})"
        what = f"nothing recorded before {next_.name}"
        if did is not None:
            is_own = launched and did is call and self.maker(did) is None
            what = f"{self.told(did)}{f' of {next_.name}' if is_own else ''}{self.scope(did)}"
        waited = self.waited(gap, call, call.begin if launched else gap.end)
        if waited is not None and ns >= waited.end:
            what = f"{what}, after {self.told(waited)}"
        if did is not None and did.is_call(WAITS):
            others = [gpu for gpu in self.gpus if gpu != next_.gpu]
            if any(self.ran(gpu, ns) for gpu in others):
                return "synchronize", f"{what}, for another GPU"
        return "host", what

    def told(self, row: Host) -> str:
        """Its name, and of a call what made it."""
        maker = self.maker(row)
        return row.name if maker is None else f"{row.name} in {maker.name}"

    def maker(self, row: Host) -> Host | None:
        """What made a call, or called a function built into Python; no annotation does."""
        is_built_in = row.kind == FUNCTION and row.name.startswith("<built-in ")
        outer = self.made_in(row) if row.kind == CALL or is_built_in else None
        return None if outer is None or outer.kind == ANNOTATION else outer

    def made_in(self, row: Host) -> Host | None:
        """The innermost thing that a thread was in when it began something that is shown."""
        shown = self.shown(row.of)
        outer = [one for one in shown if one.place < row.place and row.begin < one.end]
        return outer[-1] if row in shown and outer else None

    def scope(self, row: Host) -> str:
        """The innermost annotation around it, in words."""
        outer = self.made_in(row)
        while outer is not None and outer.kind != ANNOTATION:
            outer = self.made_in(outer)
        return "" if outer is None else f", within {outer.name}"

    def did(self, thread: tuple[int, int], ns: int) -> Host | None:
        """The innermost thing that a thread was in, or the next one of its process that told it."""
        own = self.innermost(thread, ns)
        # In these a thread may wait for that of the backward pass.
        waits = own is not None and "run_backward" in own.name
        if own is not None and own.kind != ANNOTATION and not waits:
            return own
        for asked in self.others(thread)[: self.rules.asked - 1]:
            row = self.innermost(asked, ns)
            # That another thread sleeps, or is in an annotation, says nothing of this one.
            if row is None or row.kind not in (CALL, OPERATOR):
                continue
            if own is None or any(one.name.startswith("autograd::") for one in self.of(asked)):
                return row
        return own

    def innermost(self, thread: tuple[int, int], ns: int) -> Host | None:
        """The innermost thing that a thread was in."""
        return next((row for row in self.shown(thread)[::-1] if row.begin <= ns < row.end), None)

    def of(self, thread: tuple[int, int]) -> list[Host]:
        """All that a thread did."""
        return [row for row in self.host if row.of == thread]

    def others(self, thread: tuple[int, int]) -> list[tuple[int, int]]:
        """The other threads of its process, those with the most calls first."""
        alike = dict.fromkeys(row.of for row in self.host if row.process == thread[0])
        calls = {of: sum(row.of == of and row.kind == CALL for row in self.host) for of in alike}
        told = {row.of for row in self.host if row.kind != STEP}
        kept = [of for of in alike if of != thread and of in told]
        return sorted(kept, key=lambda of: -calls[of])

    def shown(self, thread: tuple[int, int]) -> list[Host]:
        """What a thread did, outer things first: nothing in calls, no operator directly in one."""
        return self._shown[thread]

    def _shown_of(self, thread: tuple[int, int]) -> list[Host]:
        rows = sorted(
            (row for row in self.host if row.of == thread and row.kind != STEP),
            key=lambda row: row.place,
        )
        return [row for place, row in enumerate(rows) if self._is_shown(row, rows[:place])]

    def _is_shown(self, row: Host, before: list[Host]) -> bool:
        around = [other for other in before if other.end >= row.end]
        if any(other.kind == CALL for other in around):
            return False
        kinds = [FUNCTION if _is_of_engine(other) else other.kind for other in around]
        makers = [kind for kind in kinds if kind in (OPERATOR, FUNCTION)]
        return row.kind != OPERATOR or _is_of_engine(row) or makers[-1:] != [OPERATOR]

    def waited(self, gap: Gap, call: Host, until: int) -> Host | None:
        """The last call of its thread that waited, if it returned in the gap, by then."""
        waits = [
            row
            for row in self.host
            if row.of == call.of
            and gap.begin < row.end <= until
            and (row.is_call(WAITS) or self.blocked(row))
        ]
        return max(waits, key=lambda row: (row.end, -row.begin, -row.number), default=None)

    def blocked(self, row: Host) -> bool:
        """Whether it launched copies, and returned only after they had ended."""
        copies = [work for work in self.work if work.kind == COPY and self.launched(work) is row]
        return bool(copies) and all(work.end <= row.end for work in copies)

    def loaded(self, next_: Work, call: Host | None, did: Host | None) -> bool:
        """Whether the host loaded a kernel."""
        if did is not None and did.is_call(LOADS):
            return True
        if call is None:
            return False
        if self.says_loaded(call) and (did is None or did is call):
            return True
        first = min(work.start for work in self.work if work.name == next_.name)
        is_long = call.end - call.begin > self.rules.loading
        return did is call and call.is_call(LAUNCHES) and next_.start == first and is_long

    def says_loaded(self, call: Host) -> bool:
        """Whether a record with its number says that it loaded a kernel."""
        return any(row.loads and row.correlation == call.correlation for row in self.host)

    # What the GPU did.

    def of_gpu(
        self, gap: Gap, next_: Work, call: Host | None, *, is_late: bool, clocks_differ: bool
    ) -> Cause:
        """What launched work waited for."""
        before = self.before(next_.gpu, gap.begin)
        same = before is not None and before.stream == next_.stream
        if clocks_differ:
            return "unrecorded", next_.name
        if call is None and not (same and gap.end - gap.begin <= self.rules.next):
            return "unrecorded", next_.name
        launched = call.end if is_late and call is not None else gap.begin
        awaits_value = call is not None and self.waits(call, VALUE_WAITS)
        if gap.end - launched > self.rules.on_its_way:
            return "value" if awaits_value else "unexplained", next_.name
        if is_late:
            return "host", f"{next_.name} on its way to the GPU"
        if before is not None and call is not None and self.launched(before) is call:
            return "node", next_.name
        if same:
            return "stream", next_.name
        if awaits_value:
            return "value", next_.name
        if call is not None and self.waits(call, EVENT_WAITS):
            return "event", next_.name
        return "unexplained", next_.name

    def before(self, gpu: int, ns: int) -> Work | None:
        """The work that ended last before a time; of several the one that started last."""
        ended = [work for work in self.on(gpu) if work.end <= ns]
        return max(
            ended, key=lambda work: (work.end, work.start, self.work.index(work)), default=None
        )

    def waits(self, call: Host, names: frozenset[str]) -> bool:
        """Whether its thread made a stream wait since it launched something before."""
        calls = {id(one): one for work in self.work if (one := self.launched(work)) is not None}
        begins = [one.begin for one in calls.values() if one.of == call.of]
        since = max((begin for begin in begins if begin < call.begin), default=-(10**9))
        return any(
            row.of == call.of and row.is_call(names) and since <= row.begin < call.begin
            for row in self.host
        )
