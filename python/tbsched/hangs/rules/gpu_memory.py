"""What memory of the GPU says of kernels that do not end: it stands still, or goes on changing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tbsched.counting import listed
from tbsched.hangs.constants import MAX_BLOCKS
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.hang import INSIDE, NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import Finding
from tbsched.hangs.unfinished import GRAPH, LAUNCH, Operation, ReadMemory, name_of
from tbsched.hangs.writes import addresses_of, global_polls, is_address

_MIN_SECONDS = 1.0  # between the first read and the last one: any loop that is short ends
_MIN_READS = 4


def with_gpu_memory(finding: Finding, evidence: Evidence) -> Finding:
    """Returns a finding on kernels that are on the GPU, with what their memory says.

    Args:
        finding: ``inside_kernel`` or ``not_known``.
    """
    reads = _late_reads(evidence)
    if not reads:
        return _with_question(finding, evidence)
    seconds = reads[0].last - reads[0].first
    progress = progress_of(_on_gpu(evidence), evidence)
    if progress is not None:
        return replace(progress, stranded=finding.stranded)
    if finding.kind != NOT_KNOWN:
        return finding
    names = listed(evidence.resident_names())
    total = sum(each.bytes for each in reads)
    if any(each.changed for each in reads):
        sentence = (
            f"Whether it gets on: memory to which arguments of {names} point changes, but returns "
            "to earlier values, as a lock does, or changed only once, or while threads poll."
        )
        return replace(finding, unseen=(*finding.unseen, sentence))
    sentence = (
        f"None of the {total:,} bytes to which arguments of {names} point, and that were read "
        f"{reads[0].reads} times, has changed for {seconds:.1f} s."
    )
    if INSIDE not in finding.may_be or not _would_change_it(reads, evidence):
        return replace(finding, proof=(*finding.proof, sentence))
    return Finding(
        kind=INSIDE,
        reason=f"{blocks_on_gpu(evidence)} are on the GPU, and they do not end; the memory to "
        "which their arguments point does not change",
        stranded=finding.stranded,
        proof=(
            *finding.proof,
            sentence,
            f"The code of {names}: each loop polls, never ends, is soon over, or counts there.",
        ),
    )


def blocks_on_gpu(evidence: Evidence) -> str:
    """Returns the subject of a sentence: which blocks of the kernels on the GPU are there."""
    which = "as many blocks as have room" if evidence.running_in_part() else "all blocks"
    return f"{which} of {listed(evidence.resident_names())}"


def progress_of(launches: list[Operation], evidence: Evidence) -> Finding | None:
    """Returns the finding that memory to which some launches point goes on changing; or None."""
    reads = _late_reads(evidence)
    goes_on = _launch_with_progress(reads, launches, evidence)
    if goes_on is None:
        return None
    name, seconds = name_of(goes_on), reads[0].last - reads[0].first
    return Finding(
        kind=NOT_HANGING,
        reason=f"memory of the GPU to which an argument of {name} points goes on changing",
        stranded=evidence.never_starting(),
        proof=(
            f"In {reads[0].reads} reads of that memory within {seconds:.1f} s, words only grew "
            "or shrank, or had a new value each time.",
        ),
    )


def _with_question(finding: Finding, evidence: Evidence) -> Finding:
    """Returns a finding that says, if that could have decided it, that memory was not read."""
    capture = evidence.capture
    is_open = finding.kind == NOT_KNOWN and evidence.snapshot is None
    if not is_open or capture is None or not capture.reads_gpu_memory:
        return finding
    sentence = (
        "Whether memory of the GPU changes to which arguments point: it was not read, or not long "
        "enough. A copy or call that waits may hold that up, or no argument points to such memory."
    )
    return replace(finding, unseen=(*finding.unseen, sentence))


def stands_still(evidence: Evidence) -> bool:
    """Returns whether memory of the GPU was read, and none of it changed."""
    reads = _late_reads(evidence)
    return bool(reads) and not any(each.changed for each in reads)


def _late_reads(evidence: Evidence) -> list[ReadMemory]:
    """Returns what was read in the later half of the quiet time, if it was often enough."""
    capture = evidence.capture
    if capture is None or evidence.snapshot is not None:
        return []
    return [
        each
        for each in capture.gpu_memory
        if capture.is_late(each.last)
        and each.reads >= _MIN_READS
        and each.last - each.first >= _MIN_SECONDS
    ]


def _launch_with_progress(
    reads: list[ReadMemory], wanted: list[Operation], evidence: Evidence
) -> Operation | None:
    """Returns one of some launches to whose memory, and to no other's, something goes on to write;
    None: there is none.

    What threads write between two polls of a loop that waits is no progress, nor are other values
    of what they poll: a lock may have the number of whoever tries to take it.
    """
    launches = _on_gpu(evidence)
    for read in reads:
        for word in (*read.counted_at, *read.renewed_at):
            owners = [*_owners(word, launches)]
            if (
                owners
                and all(launch in wanted for launch, _ in owners)
                and not any(_writes_while_polling(*each, evidence) for each in owners)
                and (word in read.counted_at or not any(_polls(*each, evidence) for each in owners))
            ):
                return owners[0][0]
    return None


def _on_gpu(evidence: Evidence) -> list[Operation]:
    """Returns the launches of which blocks may be on the GPU."""
    return [*evidence.running(LAUNCH, GRAPH), *evidence.running_in_part()]


def _owners(word: int, launches: list[Operation]) -> Iterator[tuple[Operation, int]]:
    """Yields the launches, each with the place of an argument, whose address is the last one that
    is not behind a word."""
    pairs = [
        (launch, place, value)
        for launch in launches
        for place, value in (launch.arguments or {}).items()
        if is_address(value) and value <= word
    ]
    nearest = max((value for _, _, value in pairs), default=None)
    yield from ((launch, place) for launch, place, value in pairs if value == nearest)


def _writes_while_polling(launch: Operation, place: int, evidence: Evidence) -> bool:
    """Returns whether threads of a launch write to the memory of an argument while they wait."""
    code = evidence.code_of(launch)
    return code is not None and place in code.written_while_polling


def _polls(launch: Operation, place: int, evidence: Evidence) -> bool:
    """Returns whether a launch polls the memory of an argument, or its code is unknown."""
    code = evidence.code_of(launch)
    return code is None or any(place in poll.arguments for poll in code.polls)


def _would_change_it(reads: list[ReadMemory], evidence: Evidence) -> bool:
    """Returns whether the memory that was read would have changed if a kernel on the GPU got on.

    Then each of its threads polls, or soon will, and what it polls is in that memory.
    """
    launches = [*evidence.running(LAUNCH), *evidence.running_in_part()]
    ended = [evidence.code_of(op) for op in evidence.operations if op.key in evidence.ended_unseen]
    return (
        bool(launches)
        and not evidence.running(GRAPH)
        and all(_waits_in(reads, launch, evidence) for launch in launches)
        and not any(code is not None and code.loops and code.writes_anywhere for code in ended)
    )


def _waits_in(reads: list[ReadMemory], launch: Operation, evidence: Evidence) -> bool:
    """Returns whether a launch waits for memory that was read, or that is of its blocks, and would
    leave traces in memory that was read if it computed for long."""
    code = evidence.code_of(launch)
    if code is None or not code.is_whole or code.may_compute_long or launch.blocks > MAX_BLOCKS:
        return False
    polls = global_polls(code)
    places = {place for poll in polls for place in poll.arguments} | code.traced
    return (
        bool(code.polls)
        and all(poll.arguments and not poll.is_indirect for poll in polls)
        and all(
            any(read.begin <= address < read.begin + read.bytes for read in reads)
            for address in addresses_of(launch, places)
        )
    )
