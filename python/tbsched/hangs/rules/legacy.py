"""Work that could end a kernel's wait, and that the legacy default stream holds behind it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tbsched.counting import listed
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.fixes import non_blocking_fixes
from tbsched.hangs.hang import HOST, LEGACY, NOT_KNOWN
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.rules.host_memory import unless_host_runs
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Key, Operation, name_of
from tbsched.hangs.writes import TRANSFERS, addresses_of, global_polls, transfer_writes

_FROM_GPU = re.compile("DtoH")
_WRITES_GPU = frozenset({"copy", "memset", "write_value"})
_WRITES_HOST = frozenset({"host_function", "write_value"})
_NONE: frozenset[Key] = frozenset()


def write_waits_at_the_legacy_stream(evidence: Evidence) -> Finding:
    """Finds that a copy, a memset or the like waits for a kernel that waits for such work."""
    spec, capture = evidence.seen.spec, evidence.capture
    if evidence.snapshot is not None or spec is None or capture is None:
        return NOTHING
    kernels = {each.key: each for each in evidence.running(LAUNCH)}
    for own, keys in _held_up(evidence, kernels.keys()):
        holds = [kernels[key] for key in keys]
        if not _may_end_waits(own, holds, evidence) or _is_written_elsewhere(holds, evidence):
            continue
        names = listed(dict.fromkeys(map(name_of, holds)))
        waits = f"waits at the legacy default stream for {names}"
        if own.has_returned:
            waits = f"{name_of(own)} {waits}"
        else:
            waits = f"the host is in {own.function}, which {waits}"
        is_sure = own.what != "host_function"  # the host also writes to its memory elsewhere
        writes = _writes_polled_memory(own, holds, evidence)
        issued = evidence.issued if own in evidence.issued else (*evidence.issued, own)
        found = Finding(
            kind=LEGACY if is_sure else NOT_KNOWN,
            may_be=() if is_sure else (LEGACY, HOST),
            reason=f"{waits}; the code of {names} waits for memory that it never writes, as "
            f"{'does' if writes else 'may'} this {own.what.replace('_', ' ')}",
            stranded=evidence.never_starting(),
            fixes=non_blocking_fixes(issued, capture.streams, spec),
            proof=(
                f"Call {own.call}, {own.function}, has not ended: it comes after {names}, and one "
                "of the two is in the legacy default stream or waits for work there.",
            ),
            unseen=()
            if writes
            else (
                f"Whether {name_of(own)} writes what {names} waits for: the addresses of the two "
                "are not both known.",
            ),
        )
        return unless_host_runs(found, evidence)
    return NOTHING


@dataclass(frozen=True, slots=True)
class _Behind:
    """The kernels that something waits for.

    Attributes:
        by_order: by the program's own order: streams and events.
        at_all: also by the legacy default stream.
    """

    by_order: frozenset[Key] = _NONE
    at_all: frozenset[Key] = _NONE

    def __or__(self, other: _Behind) -> _Behind:
        return _Behind(self.by_order | other.by_order, self.at_all | other.at_all)


def _held_up(
    evidence: Evidence, kernels: Iterable[Key]
) -> Iterator[tuple[Operation, frozenset[Key]]]:
    """Yields what waits for some of the kernels at the legacy default stream alone, and for which.

    What is behind them by the program's own order is left out.
    """
    staying = frozenset(kernels)
    streams = evidence.capture.streams if evidence.capture is not None else {}
    of_stream: defaultdict[tuple[int, int], _Behind] = defaultdict(_Behind)
    of_kind: defaultdict[tuple[int, str], frozenset[Key]] = defaultdict(frozenset)
    of_event: defaultdict[int | None, _Behind] = defaultdict(_Behind)
    for own in evidence.operations:
        key = own.stream_key
        kind = streams[key].kind if key in streams else "unknown"
        held = of_kind[own.context, _WAITS_FOR[kind]] if kind in _WAITS_FOR else _NONE
        behind = of_stream[key] | _Behind(_NONE, held)
        if own.what == "wait":
            behind |= of_event[own.event]
        if own.what == "record":
            of_event[own.event] = behind
        if behind.at_all and not behind.by_order:
            yield own, behind.at_all
        if own.key in staying:
            behind |= _Behind(frozenset([own.key]), frozenset([own.key]))
        of_stream[key] = behind
        of_kind[own.context, kind] |= behind.at_all


_WAITS_FOR = {"null": "default", "default": "null"}  # work in one for work in the other


def _may_end_waits(own: Operation, holds: list[Operation], evidence: Evidence) -> bool:
    """Returns whether kernels wait for memory that they never write, and an operation may write.

    A copy to the host is what the host waits for, to go on.
    """
    if own.what == "copy" and _FROM_GPU.search(own.function):
        return False
    for each in holds:
        places = _polled(each, evidence)
        if places is None:
            return False
        of_host = (each.host_arguments or frozenset()) | (each.managed_arguments or frozenset())
        if own.what not in (_WRITES_HOST if places & of_host else _WRITES_GPU):
            return False
    return _writes_polled_memory(own, holds, evidence) is not False


def _writes_polled_memory(
    own: Operation, holds: list[Operation], evidence: Evidence
) -> bool | None:
    """Returns whether an operation writes to what one of the kernels polls; None: unknown."""
    if own.what not in TRANSFERS:
        return None
    found = [
        transfer_writes(own, each, poll, evidence.operations)
        for each in holds
        if (code := evidence.code_of(each)) is not None
        for poll in global_polls(code)
    ]
    return True if True in found else None if None in found else False


def _polled(own: Operation, evidence: Evidence) -> frozenset[int] | None:
    """Returns the arguments whose memory a kernel polls and never writes; None: not only such."""
    code = evidence.code_of(own)
    if code is None or code.writes_anywhere:
        return None
    polls = [poll for poll in code.polls if not poll.is_local]
    places = frozenset(place for poll in polls for place in poll.arguments)
    return None if not polls or code.written & places else places


def _is_written_elsewhere(holds: list[Operation], evidence: Evidence) -> bool:
    """Returns whether other work on the GPU may write what kernels wait for."""
    polled = {
        address for each in holds for address in addresses_of(each, _polled(each, evidence) or ())
    }
    runs = {each.key for each in evidence.running(LAUNCH, GRAPH)}
    for own in evidence.operations:
        if own in holds or any(own.is_behind(each) for each in holds):
            continue
        code = evidence.code_of(own)
        if code is None:
            if own.key in runs:
                return True
        elif own.key in runs or (own.key in evidence.ended_unseen and code.loops):
            may_write = code.writes_anywhere or addresses_of(own, code.written) & polled
            if may_write:
                return True
    return False
