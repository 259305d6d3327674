"""Kernels wait for memory of the host to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tbsched.counting import listed
from tbsched.hangs.code import KernelCode
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import HOST, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.threads import SPINS, polled
from tbsched.hangs.unfinished import LAUNCH, Operation, called


def samples_poll_host_memory(evidence: Evidence) -> Finding:
    """Finds that all threads that spin look at memory of the host."""
    memory = evidence.seen.memory
    if memory is None or evidence.look is None:
        return NOTHING
    spinning = [each for states in evidence.states.values() for each in states]
    host, other = polled(spinning, memory)
    if not host or other:
        return NOTHING
    names = listed(k.name for k in evidence.seen_kernels if evidence.does(k) == SPINS)
    return Finding(
        kind=HOST,
        reason=_reason(names, evidence),
        proof=(
            f"The address that {names} polls, {listed(map(hex, sorted(host)))}, is "
            "memory of the host, by /proc/PID/maps.",
        ),
    )


def code_polls_host_memory_only(evidence: Evidence) -> Finding:
    """Finds that a kernel's code waits for host memory alone, which only the host writes."""
    own = _waiting(evidence, lambda own, code: _polls(own, code, all))
    if own is not None and _only_read_and_changed(own, evidence):
        name = called(own)
        return Finding(
            kind=NOT_HANGING,
            reason=f"{name} waits for memory of the host, which the host goes on to write",
            proof=(
                f"Memory of the host that {name} polls and does not write has changed between two "
                "looks, a second apart.",
            ),
        )
    return _finding(own, evidence)


def code_polls_host_memory_too(evidence: Evidence) -> Finding:
    """A kernel's code waits for memory of the host, too; tried when nothing else is found."""
    return _finding(_waiting(evidence, lambda own, code: _polls(own, code, any)), evidence)


def code_polls_host_memory_that_it_writes(evidence: Evidence) -> Finding:
    """Finds that a kernel waits for an answer in host memory, to which it also writes."""

    def waits(own: Operation, code: KernelCode) -> bool:
        polls = {at for each in code.polls if not each.is_local for at in each.arguments}
        return bool(polls & code.written & (own.host_arguments or frozenset()))

    own = _waiting(evidence, waits)
    if own is None:
        return NOTHING
    unseen = f"Whether threads of {called(own)} wait for each other there: it writes to it, too."
    found = _finding(own, evidence)
    return replace(found, unseen=(*found.unseen, unseen))


def unless_host_goes_on(found: Finding, evidence: Evidence) -> Finding:
    """Returns that it may only be slow if a thread of the host, of which CUDA knows nothing, runs.

    Args:
        found: that something waits which the host may end.
    """
    assert found.kind is not None
    capture = evidence.capture
    goes_on = capture.host_goes_on if capture is not None else {}
    threads = [thread for thread, at in goes_on.items() if capture and capture.is_late(at)]
    if not threads or evidence.look is not None:
        return found
    one = len(threads) == 1
    numbers = f"{'thread' if one else 'threads'} {listed(map(str, threads[:3]))}"
    return replace(
        found,
        kind=NOT_KNOWN,
        may_be=tuple(dict.fromkeys((*(found.may_be or (found.kind,)), NOT_HANGING))),
        reason=f"{found.reason}; {numbers} of the host {'goes' if one else 'go'} on, and may only "
        "be slow",
        unseen=(
            *found.unseen,
            f"What {numbers} {'does' if one else 'do'}: computes or sleeps for a time, and calls "
            "nothing of CUDA.",
        ),
    )


def _polls(own: Operation, code: KernelCode, which: Callable[[Iterable[bool]], bool]) -> bool:
    """Returns whether all or any of the polling loops look at memory of the host alone."""
    if own.host_arguments is None or own.managed_arguments is None:
        return False
    only_read = (own.host_arguments | own.managed_arguments) - code.written
    polls = [each for each in code.polls if not each.is_local]
    return bool(polls) and which(bool(only_read & {*each.arguments}) for each in polls)


def _waiting(
    evidence: Evidence, waits: Callable[[Operation, KernelCode], bool]
) -> Operation | None:
    """Returns the first launch on the GPU whose code waits, and for which no other work writes."""
    if evidence.look is not None or evidence.replay is None:
        return None
    for own in evidence.by_model(LAUNCH):
        code = evidence.code_of(own)
        if (
            code is not None
            and waits(own, code)
            and not any(
                _may_write_host_memory(each, evidence)
                for each in evidence.operations
                if each.key != own.key and not each.is_behind(own)
            )
        ):
            return own
    return None


def _finding(own: Operation | None, evidence: Evidence) -> Finding:
    """Returns the finding that an operation waits for the host; NOTHING without one."""
    if own is None:
        return NOTHING
    name = called(own)
    found = Finding(
        kind=HOST,
        reason=_reason(name, evidence),
        stranded=evidence.rows(),
        proof=(
            f"The code of {name} polls an address of its arguments that is memory of the host, "
            "and no other work that has not ended writes to such memory.",
        ),
        unseen=(
            "Whether a thread of the host that calls nothing of CUDA answers it, and is slow.",
        ),
    )
    code = evidence.code_of(own)
    assert code is not None
    polled = {place for poll in code.polls for place in poll.arguments}
    of_others = (own.host_arguments or frozenset()) - (code.written - polled)
    if not _changed(own, of_others, evidence):
        return unless_host_goes_on(found, evidence)
    return replace(
        found,
        kind=NOT_KNOWN,
        may_be=(HOST, NOT_HANGING),
        reason=f"{found.reason}; memory there goes on changing",
        unseen=(f"Whether the host answers {name}, or that kernel itself writes there.",),
    )


def _only_read_and_changed(own: Operation, evidence: Evidence) -> bool:
    """Returns whether something has changed lately where each loop polls that a kernel has."""
    code = evidence.code_of(own)
    if code is None or code.writes_anywhere:
        return False
    only_read = (own.host_arguments or frozenset()) - code.written
    polls = [each for each in code.polls if not each.is_local]
    return all(_changed(own, only_read & {*each.arguments}, evidence) for each in polls)


def _changed(own: Operation, places: frozenset[int], evidence: Evidence) -> bool:
    """Returns whether memory has changed lately to which a launch has addresses."""
    capture = evidence.capture
    if capture is None or own.arguments is None:
        return False
    times = (capture.memory_changed.get(own.arguments.get(place, 0)) for place in places)
    return any(at is not None and capture.is_late(at) for at in times)


def _reason(names: str, evidence: Evidence) -> str:
    """Returns a sentence: who waits for memory of the host, and where the host is."""
    call = min(evidence.calls, key=lambda each: each.kind is None, default=None)
    reason = f"{names} waits for memory of the host to change"
    if call is not None:
        reason += f", and the host is in {call.function}, which {call.words}"
    return reason


def _may_write_host_memory(operation: Operation, evidence: Evidence) -> bool:
    """Returns whether an operation may write to memory of the host."""
    if operation.what in ("record", "wait", "wait_value"):
        return False
    if operation.what != LAUNCH:  # a graph, copy, memset, value or host function
        return True
    code = evidence.code_of(operation)
    if code is None or operation.host_arguments is None or operation.managed_arguments is None:
        return True
    of_host = operation.host_arguments | operation.managed_arguments
    return code.writes_anywhere or bool(of_host & code.written)
