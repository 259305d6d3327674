"""Blocks that never start: no room on any SM, a hardware queue, or the legacy default stream."""

from __future__ import annotations

from tbsched.counting import counted, listed
from tbsched.hangs.evidence import Evidence
from tbsched.hangs.fixes import fixes_for
from tbsched.hangs.hang import LEGACY, QUEUE, ROOM, NeverStarts
from tbsched.hangs.replay import OWN_ORDER, Stranded
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.rules.gpu_memory import progress_of
from tbsched.hangs.unfinished import LAUNCH, name_of

_KIND_OF = {"hardware_queue": QUEUE, "legacy_stream": LEGACY}


def never_starts(evidence: Evidence) -> Finding:
    """Finds a launch that can never start, by the model."""
    replay, capture, spec = evidence.replay, evidence.capture, evidence.seen.spec
    if replay is None or spec is None or capture is None:
        return NOTHING
    first = next(
        (
            each
            for each in replay.stranded
            if each.cause not in OWN_ORDER and not _waits_for_no_later_block(each, evidence)
        ),
        None,
    )
    if first is None:
        return NOTHING
    kind = _KIND_OF.get(first.cause, ROOM)
    own = evidence.issued[first.operation]
    if kind == ROOM and own in evidence.running_in_part():
        progress = progress_of([own], evidence)
        if progress is not None:
            return progress
    rows = evidence.never_starting(first)
    name, missing = rows[0].name, rows[0].missing
    why = _why(kind, listed(_causes(first)), rows[0].behind)
    fixes, not_tried = fixes_for(
        first, evidence.issued, capture.streams, spec, replay, evidence.seen.seconds
    )
    chained = (
        f"Whether blocks of {name} wait only for blocks before them, as those of a chained scan "
        "do: each then ends in its turn, and the program is slow."
    )
    condition, unread_code = "", ""
    if unread := _unread(evidence):
        condition = f"; unless {listed(unread)} {'is' if len(unread) == 1 else 'are'} only slow"
        unread_code = f"The code of {listed(unread)}: whether it waits for others, or computes."
    return Finding(
        kind=kind,
        reason=f"{missing:,} of {counted(rows[0].blocks, 'block')} of {name} never start: {why}"
        f"{condition}",
        stranded=rows,
        fixes=fixes,
        proof=(
            f"The model of {spec.title}: with what is on the GPU staying there, "
            f"{counted(missing, 'block')} of {name} never {'starts' if missing == 1 else 'start'} "
            f"({first.cause}).",
        ),
        unseen=(
            *((chained,) if 0 < missing < rows[0].blocks else ()),
            *((not_tried,) if not_tried else ()),
            *((unread_code,) if unread_code else ()),
        ),
    )


def _unread(evidence: Evidence) -> list[str]:
    """Returns the names of the kernels that stay on the GPU, if nothing shows that they wait: the
    code of none is known, nothing else stays, and no debugger was there."""
    if evidence.snapshot is not None:
        return []
    stay = evidence.running(*{each.what for each in evidence.issued}) + evidence.running_in_part()
    if any(each.what != LAUNCH or evidence.code_of(each) is not None for each in stay):
        return []
    return list(dict.fromkeys(map(name_of, stay)))


def _waits_for_no_later_block(stranded: Stranded, evidence: Evidence) -> bool:
    """Returns whether blocks of a launch run, and wait only for what blocks before them write."""
    launch = evidence.issued[stranded.operation]
    code = evidence.code_of(launch)
    return (
        code is not None
        and code.waits_for_earlier_blocks
        and not code.waits_without_poll
        and launch in evidence.running_in_part()
    )


def _causes(stranded: Stranded) -> list[str]:
    """Returns what a launch waits for: its cause, and then what else refuses it on all SMs."""
    every = [limit.causes for limit in stranded.limits]
    others = [each for each in (every or [()])[0] if all(each in causes for causes in every)]
    return list(dict.fromkeys([stranded.cause, *others]))


def _why(kind: str, causes: str, behind: str | None) -> str:
    """Returns why a launch never starts, in words."""
    if kind == ROOM:
        return f"no SM has room for one more ({causes})"
    if kind == QUEUE:
        return f"{behind or 'other work'} is before it in its hardware queue, and waits itself"
    if behind is None:
        return "it waits at the legacy default stream for work that waits itself"
    return f"work in the legacy default stream and {behind} wait for each other"


def not_started(evidence: Evidence) -> Finding:
    """Finds a kernel on the GPU with blocks that have not started, by the debugger."""
    kernel = next((k for k in evidence.kernels_seen if k.missing > 0 and k.blocks), None)
    if kernel is None:
        return NOTHING
    return Finding(
        kind=ROOM,
        reason=f"{kernel.missing:,} of {counted(kernel.size, 'block')} of {kernel.name} have not "
        f"started, and the {kernel.running:,} that run do not end",
        stranded=(NeverStarts(kernel.name, kernel.missing, kernel.size, "unknown", None),),
        unseen=(
            "Which resource of the SMs binds: without a capture the kernel's registers and "
            "shared memory are not known."
            if evidence.capture is None
            else f"The capture has no launch of {kernel.name} that has not ended.",
        ),
    )
