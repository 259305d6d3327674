"""The GPU waits for the host, or a call waits for the GPU though nobody expects it to."""

from __future__ import annotations

from tbsched.counting import listed
from tbsched.hangs.calls import ALLOCATES, WAITS, is_copy
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import HOST, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.rules.host_memory import unless_host_goes_on
from tbsched.hangs.unfinished import LAUNCH

_SLOW = "Whether that function of the host is only slow."
_OF_HOST = {
    "wait_value": "waits for a value in memory that nobody has written",
    "host_function": "waits for a function of the host to return",
}


def stream_waits(evidence: Evidence) -> Finding:
    """Finds that a stream waits for a value in memory, or for a function of the host."""
    if evidence.replay is None or not evidence.replay.waits_for_host:
        return NOTHING
    own = evidence.issued[evidence.replay.waits_for_host[0]]
    same = [each for each in evidence.issued if each.stream_key == own.stream_key]
    functions = [each for each in same if each.what == own.what == "host_function"]
    if len(functions) > 1:
        return Finding(
            kind=NOT_KNOWN,
            may_be=(HOST, NOT_HANGING),
            reason=f"stream {own.stream} has {len(functions)} functions of the host to run, one "
            "after the other: whether one never returns, or each only takes long, is not seen",
            stranded=evidence.rows(),
            unseen=(
                "Which of these functions have returned: CUPTI has no record of them, and gives "
                "those of the kernels between them when all have ended.",
            ),
        )
    found = Finding(
        kind=HOST,
        reason=f"stream {own.stream} {_OF_HOST[own.what]} ({own.function})",
        stranded=evidence.rows(),
        proof=(f"Call {own.call}, {own.function}, has not ended, and is reached.",),
        unseen=(_SLOW,) if own.what == "host_function" else (),
    )
    return unless_host_goes_on(found, evidence)


def allocation_waits(evidence: Evidence) -> Finding:
    """Finds that a call that frees or allocates waits for all work on the GPU."""
    call = next((each for each in evidence.calls if each.kind == ALLOCATES), None)
    if call is None or not evidence.resident_names():
        return NOTHING
    names = listed(evidence.resident_names())
    return Finding(
        kind=HOST,
        reason=f"the host is in {call.function}, which waits for {names}; what {names} waits "
        "for may be issued only afterwards",
        stranded=evidence.rows(),
        proof=(f"{call.function} has not returned: it {call.words}.",),
    )


def copy_waits(evidence: Evidence) -> Finding:
    """Finds that a blocking copy waits for kernels that wait for memory nobody writes."""
    copy = next((each for each in evidence.calls if is_copy(each.function)), None)
    if copy is None or evidence.look is not None or not _only_read(evidence):
        return NOTHING
    names = listed(evidence.resident_names())
    return Finding(
        kind=HOST,
        reason=f"the host is in {copy.function}, which waits for {names}; the code of "
        f"{names} waits for memory that it never writes, as may this copy",
        stranded=evidence.rows(),
    )


def gpu_is_empty(evidence: Evidence) -> Finding:
    """Finds that the debugger sees no kernel on the GPU."""
    if evidence.look is None or evidence.look.kernels:
        return NOTHING
    runs = next((each for each in evidence.look.threads if each.host_function), None)
    if runs is not None:
        return Finding(
            kind=HOST,
            reason=f"no kernel is on the GPU: a stream waits for the host function "
            f"{runs.host_function} to return, which thread {runs.system} runs",
            stranded=evidence.rows(),
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
        stranded=evidence.rows(),
        unseen=("Whether copies go on: cuda-gdb shows kernels alone.",),
    )


def _only_read(evidence: Evidence) -> bool:
    """Returns whether every kernel on the GPU waits for memory that none of them writes."""
    on_gpu = [evidence.code_of(own) for own in evidence.by_model(LAUNCH)]
    return (
        evidence.replay is not None
        and bool(on_gpu)
        and all(
            code is not None and code.polls and not code.written and not code.writes_anywhere
            for code in on_gpu
        )
    )
