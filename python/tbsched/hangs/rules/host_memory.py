"""Kernels wait for memory of the host to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tbsched.counting import listed
from tbsched.hangs.code import KernelCode
from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.hang import HOST, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.threads import SPINS, polled_addresses
from tbsched.hangs.unfinished import LAUNCH, Operation, name_of


def samples_poll_host_memory(evidence: Evidence) -> Finding:
    """Finds that all spinning threads, by the debugger's samples, poll memory of the host."""
    memory = evidence.seen.memory
    if memory is None or evidence.snapshot is None:
        return NOTHING
    spinning = [state for states in evidence.states.values() for state in states]
    in_host, elsewhere = polled_addresses(spinning, memory)
    if not in_host or elsewhere:
        return NOTHING
    names = listed(k.name for k in evidence.kernels_seen if evidence.does(k) == SPINS)
    return Finding(
        kind=HOST,
        reason=_reason(names, evidence),
        proof=(
            f"The address that {names} polls, {listed(map(hex, sorted(in_host)))}, is "
            "memory of the host, by /proc/PID/maps.",
        ),
    )


def code_polls_host_memory_only(evidence: Evidence) -> Finding:
    """Finds a kernel whose code waits for host memory alone, which only the host writes."""
    launch = _first_waiting_launch(
        evidence, lambda launch, code: _polls_host_memory(launch, code, all)
    )
    if launch is not None and _all_polled_memory_changes(launch, evidence):
        name = name_of(launch)
        return Finding(
            kind=NOT_HANGING,
            reason=f"{name} waits for memory of the host, which the host goes on to write",
            proof=(
                f"Memory of the host that {name} polls and does not write has changed between two "
                "looks, a second apart.",
            ),
        )
    return _host_finding(launch, evidence)


def code_polls_host_memory_too(evidence: Evidence) -> Finding:
    """Finds a kernel whose code waits for host memory among others, if no earlier rule answers."""
    launch = _first_waiting_launch(evidence, lambda own, code: _polls_host_memory(own, code, any))
    return _host_finding(launch, evidence)


def code_polls_host_memory_that_it_writes(evidence: Evidence) -> Finding:
    """Finds a kernel that waits for an answer in host memory to which it also writes."""

    def waits(op: Operation, code: KernelCode) -> bool:
        """Returns whether a launch polls host memory that it also writes."""
        polls = {offset for poll in code.polls if not poll.is_local for offset in poll.arguments}
        return bool(polls & code.written & (op.host_arguments or frozenset()))

    launch = _first_waiting_launch(evidence, waits)
    if launch is None:
        return NOTHING
    question = (
        f"Whether threads of {name_of(launch)} wait for each other there: it writes to it, too."
    )
    finding = _host_finding(launch, evidence)
    return replace(finding, unseen=(*finding.unseen, question))


def unless_host_runs(finding: Finding, evidence: Evidence) -> Finding:
    """Returns a finding, or ``not_known`` if a host thread outside CUDA runs and may only be slow.

    A thread that runs is in the driver if that answers nobody, and no call of CUDA is open.

    Args:
        finding: that something waits which the host may end.
    """
    assert finding.kind is not None
    capture = evidence.capture
    running = capture.host_goes_on if capture is not None else {}
    threads = [thread for thread, seen in running.items() if capture and capture.is_late(seen)]
    if capture is None or not threads or evidence.snapshot is not None:
        return finding
    is_one = len(threads) == 1
    numbers = f"{'thread' if is_one else 'threads'} {listed(map(str, threads[:3]))}"
    if not evidence.calls and capture.waits_for_driver >= QUIET:
        sentence = (
            f"The driver has given CUPTI no records for {capture.waits_for_driver:.1f} s, and no "
            f"call is known that has not returned: {numbers} {'waits' if is_one else 'wait'} in "
            "the driver for work on the GPU."
        )
        return replace(finding, proof=(*finding.proof, sentence))
    return replace(
        finding, kind=NOT_KNOWN,
        may_be=tuple(dict.fromkeys((*(finding.may_be or (finding.kind,)), NOT_HANGING))),
        reason=f"{finding.reason}; {numbers} of the host {'goes' if is_one else 'go'} on, and may "
        "only be slow",
        unseen=(
            *finding.unseen,
            f"What {numbers} {'does' if is_one else 'do'}: computes or sleeps for a time, and "
            "calls nothing of CUDA.",
        ),
    )  # fmt: skip


def _polls_host_memory(
    launch: Operation, code: KernelCode, quantifier: Callable[[Iterable[bool]], bool]
) -> bool:
    """Returns whether all or any polling loops of a launch read host memory it never writes."""
    if launch.host_arguments is None or launch.managed_arguments is None:
        return False
    only_read = (launch.host_arguments | launch.managed_arguments) - code.written
    polls = [poll for poll in code.polls if not poll.is_local]
    return bool(polls) and quantifier(bool(only_read & {*poll.arguments}) for poll in polls)


def _first_waiting_launch(
    evidence: Evidence, waits: Callable[[Operation, KernelCode], bool]
) -> Operation | None:
    """Returns the first running launch that waits and for which no other work writes; or None."""
    if evidence.snapshot is not None or evidence.replay is None:
        return None
    for launch in evidence.running(LAUNCH):
        code = evidence.code_of(launch)
        if (
            code is not None
            and waits(launch, code)
            and not any(
                _may_write_host_memory(operation, evidence)
                for operation in evidence.operations
                if operation.key != launch.key and not operation.is_behind(launch)
            )
        ):
            return launch
    return None


def _host_finding(launch: Operation | None, evidence: Evidence) -> Finding:
    """Returns the finding that a launch waits for the host; ``NOTHING`` if there is no launch."""
    if launch is None:
        return NOTHING
    name = name_of(launch)
    finding = Finding(
        kind=HOST,
        reason=_reason(name, evidence),
        stranded=evidence.never_starting(),
        proof=(
            f"The code of {name} polls an address of its arguments that is memory of the host, "
            "and no other work that has not ended writes to such memory.",
        ),
        unseen=(
            "Whether a thread of the host that calls nothing of CUDA answers it, and is slow.",
        ),
    )
    code = evidence.code_of(launch)
    assert code is not None
    polled = {offset for poll in code.polls for offset in poll.arguments}
    of_others = (launch.host_arguments or frozenset()) - (code.written - polled)
    if not _has_changed_lately(launch, of_others, evidence):
        return unless_host_runs(finding, evidence)
    return replace(
        finding, kind=NOT_KNOWN, may_be=(HOST, NOT_HANGING),
        reason=f"{finding.reason}; memory there goes on changing",
        unseen=(f"Whether the host answers {name}, or that kernel itself writes there.",),
    )  # fmt: skip


def _all_polled_memory_changes(launch: Operation, evidence: Evidence) -> bool:
    """Returns whether host memory that each polling loop reads has changed lately."""
    code = evidence.code_of(launch)
    if code is None or code.writes_anywhere:
        return False
    only_read = (launch.host_arguments or frozenset()) - code.written
    polls = [poll for poll in code.polls if not poll.is_local]
    return all(
        _has_changed_lately(launch, only_read & {*poll.arguments}, evidence) for poll in polls
    )


def _has_changed_lately(launch: Operation, offsets: frozenset[int], evidence: Evidence) -> bool:
    """Returns whether memory that some arguments of a launch point to has changed lately."""
    capture = evidence.capture
    if capture is None or launch.arguments is None:
        return False
    times = (capture.memory_changed.get(launch.arguments.get(offset, 0)) for offset in offsets)
    return any(changed is not None and capture.is_late(changed) for changed in times)


def _reason(names: str, evidence: Evidence) -> str:
    """Returns a sentence: which kernels wait for host memory, and where the host is."""
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
