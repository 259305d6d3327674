"""The GPU waits for the host, or a call waits for the GPU though nobody expects it to."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, WAITS, HostCall, is_copy
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import HOST, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.rules.host_memory import unless_host_runs
from tbsched.hangs.unfinished import LAUNCH, Operation
from tbsched.hangs.writes import TRANSFERS, addresses_of, is_awaited, writes_to

_SLOW = "Whether that function of the host is only slow."
_OF_HOST = {
    "wait_value": "waits for a value in memory that nobody has written",
    "host_function": "waits for a function of the host to return",
}


def stream_waits(evidence: Evidence) -> Finding:
    """Finds a stream that waits for a value in memory or for a function of the host."""
    if evidence.replay is None or not evidence.replay.waits_for_host:
        return NOTHING
    operation = evidence.issued[evidence.replay.waits_for_host[0]]
    if operation.what == "wait_value" and _is_written_by_other_work(operation, evidence):
        return NOTHING
    same = [each for each in evidence.issued if each.stream_key == operation.stream_key]
    functions = [each for each in same if each.what == operation.what == "host_function"]
    if len(functions) > 1:
        return Finding(
            kind=NOT_KNOWN,
            may_be=(HOST, NOT_HANGING),
            reason=f"stream {operation.stream} has {len(functions)} functions of the host to run, "
            "one after the other: whether one never returns, or each only takes long, is not seen",
            stranded=evidence.never_starting(),
            unseen=(
                "Which of these functions have returned: CUPTI has no record of them, and gives "
                "those of the kernels between them when all have ended.",
            ),
        )
    finding = Finding(
        kind=HOST,
        reason=f"stream {operation.stream} {_OF_HOST[operation.what]} ({operation.function})",
        stranded=evidence.never_starting(),
        proof=(f"Call {operation.call}, {operation.function}, has not ended, and is reached.",),
        unseen=(_SLOW,) if operation.what == "host_function" else (),
    )
    return unless_host_runs(finding, evidence)


def _is_written_by_other_work(wait: Operation, evidence: Evidence) -> bool:
    """Returns whether a copy, a memset or a kernel is to write the value that a stream awaits."""
    return wait.address is not None and any(
        (each.what in TRANSFERS - {"write_value"} and writes_to(each, wait.address))
        or (
            (code := evidence.code_of(each)) is not None
            and wait.address in addresses_of(each, code.written)
        )
        for each in evidence.operations
        if not each.is_behind(wait)
    )


def allocation_waits(evidence: Evidence) -> Finding:
    """Finds a call that frees or allocates, and so waits for all work on the GPU."""
    call = next((each for each in evidence.calls if each.kind == ALLOCATES), None)
    if call is None or not evidence.resident_names():
        return NOTHING
    names = listed(evidence.resident_names())
    return Finding(
        kind=HOST,
        reason=f"the host is in {call.function}, which waits for {names}; what {names} waits "
        "for may be issued only afterwards",
        stranded=evidence.never_starting(),
        proof=(f"{call.function} has not returned: it {call.words}.",),
    )


def copy_waits(evidence: Evidence) -> Finding:
    """Finds a blocking copy that waits for kernels that wait for memory nobody writes."""
    copy = next((call for call in evidence.calls if is_copy(call.function)), None)
    if copy is None or evidence.snapshot is not None or evidence.replay is None:
        return NOTHING
    brings = _brings_what_is_awaited(copy, evidence)
    if not brings and not _all_poll_without_writing(evidence):
        return NOTHING
    names = listed(evidence.resident_names())
    return Finding(
        kind=HOST,
        reason=f"the host is in {copy.function}, which waits for {names}; the code of "
        f"{names} waits for memory that it never writes, as {'does' if brings else 'may'} this "
        "copy",
        stranded=evidence.never_starting(),
    )


def _brings_what_is_awaited(copy: HostCall, evidence: Evidence) -> bool:
    """Returns whether a call copies to memory that a kernel on the GPU polls and never writes."""
    operation = next((each for each in evidence.operations if each.call == copy.call), None)
    return operation is not None and any(
        is_awaited(operation, launch, code, evidence.operations)
        for launch in evidence.running(LAUNCH)
        if (code := evidence.code_of(launch)) is not None
    )


def gpu_is_empty(evidence: Evidence) -> Finding:
    """Finds that no kernel is on the GPU, by the debugger, and what the host waits for."""
    if evidence.snapshot is None or evidence.snapshot.kernels:
        return NOTHING
    runs = next((thread for thread in evidence.snapshot.threads if thread.host_function), None)
    if runs is not None:
        return Finding(
            kind=HOST,
            reason=f"no kernel is on the GPU: a stream waits for the host function "
            f"{runs.host_function} to return, which thread {runs.system_thread} runs",
            stranded=evidence.never_starting(),
            unseen=(_SLOW,),
        )
    call = next((each for each in evidence.calls if each.kind in (WAITS, ALLOCATES)), None)
    if call is None:
        reason = "no kernel is on the GPU, and no thread waits for it"
        return Finding(kind=NOT_HANGING, reason=reason)
    return Finding(
        kind=HOST,
        reason=f"no kernel is on the GPU, and the host is in {call.function}: a stream waits "
        "for something else (a value in memory, a function of the host, another process)",
        stranded=evidence.never_starting(),
        unseen=("Whether copies go on: cuda-gdb shows kernels alone.",),
    )


def _all_poll_without_writing(evidence: Evidence) -> bool:
    """Returns whether every kernel on the GPU waits for memory that none of them writes."""
    codes = [evidence.code_of(launch) for launch in evidence.running(LAUNCH)]
    return (
        evidence.replay is not None
        and bool(codes)
        and all(
            code is not None and code.polls and not code.written and not code.writes_anywhere
            for code in codes
        )
    )
