"""All that can start is on the GPU, and does not end."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.counting import counted, listed
from tbsched.hangs.calls import UNNAMED
from tbsched.hangs.constants import MAX_BLOCKS
from tbsched.hangs.control_flow import BY_MEMORY
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import (
    HOST,
    INSIDE,
    LEGACY,
    LOADING,
    NOT_HANGING,
    NOT_KNOWN,
    QUEUE,
    RANKS,
    ROOM,
)
from tbsched.hangs.rules.finding import Finding
from tbsched.hangs.rules.gpu_memory import blocks_on_gpu, with_gpu_memory
from tbsched.hangs.rules.host_memory import unless_host_runs
from tbsched.hangs.rules.long_work import unless_work_is_long
from tbsched.hangs.threads import SPINS, UNKNOWN
from tbsched.hangs.unfinished import GRAPH, LAUNCH, name_of

_COLLECTIVES = ("nccl", "nvshmem", "msccl")
OTHER_RANKS = (
    "What the other ranks do: collectives wait for them. `tbsched hang run*.jsonl` joins the "
    "captures of all ranks."
)


def is_collective(name: str) -> bool:
    """Returns whether a kernel's name is that of a collective, which waits for other ranks."""
    return any(word in name.lower() for word in _COLLECTIVES)


def inside_kernels(evidence: Evidence) -> Finding:
    """Finds that all that can start is resident and does not end: the answer if no rule has one."""
    finding = _finding_by_code(evidence)
    if not _are_collectives(evidence):
        finding = unless_work_is_long(with_gpu_memory(finding, evidence), evidence)
    is_for_others = finding.kind == INSIDE and _polls_what_others_write(evidence)
    return unless_host_runs(finding, evidence) if is_for_others else finding


def _finding_by_code(evidence: Evidence) -> Finding:
    """Returns the finding without what memory of the GPU says, and what the host does."""
    names, rows = evidence.resident_names(), evidence.never_starting()
    if evidence.capture is None and not _only_waits_in_blocks(evidence):
        return _finding_without_capture(evidence)
    if _are_unknown_graphs(evidence):
        return Finding(
            kind=NOT_KNOWN,
            may_be=(INSIDE, ROOM, NOT_HANGING),
            reason=f"{listed(names)} {'is' if len(names) == 1 else 'are'} on the GPU; whether its "
            "kernels wait, find no room, or are slow, is not seen: a capture has the kernels of a "
            "graph only if it was instantiated after the capture began",
            stranded=rows,
            unseen=(
                "The kernels of graphs. `tbsched hang --pid PID` of the program without a "
                "capture sees those that run.",
            ),
        )
    if _memory_decides_barriers(evidence):
        return Finding(
            kind=NOT_KNOWN,
            may_be=(INSIDE, NOT_HANGING),
            reason=f"{listed(names)} waits at barriers of its cooperative grid; whether all blocks "
            "come to them, and it is only slow, depends on memory",
            stranded=rows,
            unseen=(
                "What is in that memory. `tbsched hang --pid PID` of the program without a capture "
                "sees whether its threads leave the barrier.",
            ),
        )
    if not _are_collectives(evidence) and not _surely_waits_for_ever(evidence):
        does = "do not end" if len(names) > 1 else "does not end"
        reason = f"{listed(names)} {does}: whether for ever, or only for long, is not seen"
        if not names:
            reason = "nothing that can never start was found"
        return Finding(
            kind=NOT_KNOWN, may_be=(INSIDE, NOT_HANGING),
            reason=reason + _what_comes_after(evidence, names), stranded=rows,
            unseen=(
                "Whether the kernels get on: their code is not known, or may also compute for "
                "long. `tbsched hang --pid PID` of the program without a capture sees that.",
                *_open_questions(evidence),
            ),
        )  # fmt: skip
    reason = f"{blocks_on_gpu(evidence)} are on the GPU, and they do not end"
    return Finding(
        kind=INSIDE, reason=reason + _what_comes_after(evidence, names), stranded=rows,
        proof=tuple(_thread_sentences(evidence)), unseen=tuple(_open_questions(evidence)),
    )  # fmt: skip


def _polls_what_others_write(evidence: Evidence) -> bool:
    """Returns whether a kernel polls memory that it never writes: work to come may."""
    codes = map(evidence.code_of, evidence.running(LAUNCH))
    return any(
        not poll.is_local and not code.writes_anywhere and not code.written & {*poll.arguments}
        for code in codes
        if code is not None
        for poll in code.polls
    )


def _what_comes_after(evidence: Evidence, names: list[str]) -> str:
    """Returns the end of a sentence: what the program ordered after the kernels on the GPU."""
    behind = dict.fromkeys(row.name for row in evidence.never_starting())
    if not behind:
        return ""
    comes, them = "comes" if len(behind) == 1 else "come", "it" if len(names) == 1 else "them"
    return f"; {listed(behind)} {comes} after {them} by the program's own order"


def _surely_waits_for_ever(evidence: Evidence) -> bool:
    """Returns whether the debugger saw no progress, or nothing that is left could take long.

    Then each thread waits, and none is left that could end the wait: no kernel on the GPU computes
    in a loop, and none that may not have ended writes to addresses that it loads.
    """
    if evidence.snapshot is not None:
        return True
    running = [
        evidence.code_of(each) if each.what == LAUNCH else None
        for each in (*evidence.running(LAUNCH, GRAPH), *evidence.running_in_part())
    ]
    ended = [evidence.code_of(op) for op in evidence.operations if op.key in evidence.ended_unseen]
    return (
        bool(running)
        and all(launch.blocks <= MAX_BLOCKS for launch in evidence.running(LAUNCH))
        and all(code is not None and code.is_whole and code.only_waits for code in running)
        and not any(code is not None and code.loops and code.writes_anywhere for code in ended)
    )


def _are_collectives(evidence: Evidence) -> bool:
    """Returns whether all kernels on the GPU are collectives."""
    return bool(evidence.resident) and all(is_collective(row.name) for row in evidence.resident)


def _are_unknown_graphs(evidence: Evidence) -> bool:
    """Returns whether all that is on the GPU are graphs with unknown kernels."""
    launches = [*evidence.running(LAUNCH), *evidence.running_in_part()]
    return evidence.snapshot is None and bool(evidence.resident) and not launches


def _memory_decides_barriers(evidence: Evidence) -> bool:
    """Returns whether memory decides which blocks arrive at all barriers of the running grids."""
    if evidence.snapshot is not None:
        return False
    launches = evidence.running(LAUNCH)
    codes = [evidence.code_of(launch) for launch in launches if launch.cooperative]
    return 0 < len(codes) == len(launches) and all(
        code is not None and code.grid_barrier == BY_MEMORY for code in codes
    )


def _only_waits_in_blocks(evidence: Evidence) -> bool:
    """Returns whether all sampled threads wait for threads of their own block."""
    states = [each for state in evidence.states.values() for each in state]
    return bool(states) and all(state.is_local for state in states)


def _finding_without_capture(evidence: Evidence) -> Finding:
    """Returns the finding without a capture: launches that wait elsewhere are not seen."""
    names = evidence.resident_names()
    looks = "wait" if len(names) > 1 else "waits"
    does = f"{looks} for memory of the GPU to change"
    if not any(evidence.does(kernel) == SPINS for kernel in evidence.kernels_seen):
        does = "do not end" if len(names) > 1 else "does not end"
    may_be = [INSIDE, ROOM, QUEUE, LEGACY, LOADING, HOST]
    if all(map(is_collective, names)):
        may_be.append(RANKS)
    if evidence.seen.before is None:  # a core dump
        may_be.append(NOT_HANGING)
    return Finding(
        kind=NOT_KNOWN,
        may_be=tuple(may_be),
        reason=f"{listed(names)} {does}; whether for its own blocks, for a launch that waits "
        "elsewhere, or for the host, is not seen without a capture",
        proof=(*_thread_sentences(evidence), *_host_sentences(evidence)),
        unseen=(
            "Launches that wait for room, in a hardware queue, at the legacy default stream, or "
            "to be loaded: cuda-gdb shows only kernels that run.",
        ),
    )


def _host_sentences(evidence: Evidence) -> Iterator[str]:
    """Yields a sentence about where the host is, if the debugger saw its threads."""
    if evidence.calls:
        functions = listed(dict.fromkeys(call.function for call in evidence.calls))
        may_load = ": it may load a kernel" if UNNAMED in functions else ""
        yield f"The host is in {functions}{may_load}."
    elif evidence.snapshot is not None and evidence.snapshot.threads:
        yield "No thread of the host is in a call of CUDA."


def _thread_sentences(evidence: Evidence) -> Iterator[str]:
    """Yields a sentence about where the kernels' threads are, if the debugger saw them."""
    places = "; ".join(
        f"{row.name}: {counted(row.running, 'block')}, threads at "
        f"{counted(row.counters, 'instruction')}, it {row.does}"
        + (f" at {row.line}" if row.line else "")
        for row in evidence.resident
        if row.counters
    )
    if places:
        yield f"{places}."


def _open_questions(evidence: Evidence) -> Iterator[str]:
    """Yields sentences about what was not looked at."""
    capture = evidence.capture
    if evidence.snapshot is not None:
        return
    if _are_collectives(evidence):
        yield OTHER_RANKS
        return
    if any(row.does == UNKNOWN for row in evidence.resident):
        yield (
            "Whether the kernels spin, and on whose memory: without a debugger nobody "
            "knows. `tbsched hang --pid PID` looks at a process that still runs."
        )
    if capture is not None and not capture.notes_flushes:
        yield from _possible_loads(evidence)


def _possible_loads(evidence: Evidence) -> Iterator[str]:
    """Yields sentences about launches that may have to wait for their kernel to be loaded."""
    launches = [each for each in evidence.issued if each.what == LAUNCH]
    for launch in launches[1:]:
        if launch.is_first:
            yield (
                f"Whether {name_of(launch)} was loaded before its first launch: if not, it waits "
                f"for {name_of(launches[0])}, as loading waits for all work on the GPU."
            )
