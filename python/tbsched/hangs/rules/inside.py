"""All that can start is on the GPU, and does not end."""

from __future__ import annotations

from collections.abc import Iterator

from tbsched.hangs.evidence import Evidence, listed
from tbsched.hangs.fixes import called
from tbsched.hangs.hang import INSIDE
from tbsched.hangs.rules.finding import Finding
from tbsched.hangs.threads import UNKNOWN
from tbsched.hangs.unfinished import LAUNCH

_COLLECTIVES = ("nccl", "nvshmem", "msccl")
OTHER_RANKS = (
    "What the other ranks do: collectives wait for them. `tbsched hang run*.jsonl` joins the "
    "captures of all ranks."
)


def is_collective(name: str) -> bool:
    """Returns whether a kernel of this name waits for other ranks."""
    return any(word in name.lower() for word in _COLLECTIVES)


def inside_kernels(evidence: Evidence) -> Finding:
    """All that can start is on the GPU: what is left when no other rule has an answer."""
    names, rows = evidence.resident_names(), evidence.rows()
    reason = f"all blocks of {listed(names)} are on the GPU, and they do not end"
    if not names:
        reason = "nothing that can never start was found"
    if rows:
        behind = dict.fromkeys(row.name for row in rows)
        comes = "comes" if len(behind) == 1 else "come"
        them = "it" if len(names) == 1 else "them"
        reason += f"; {listed(behind)} {comes} after {them} by the program's own order"
    places = "; ".join(
        f"{row.name}: {row.running:,} blocks, threads at {row.counters} instructions, it {row.does}"
        + (f" at {row.line}" if row.line else "")
        for row in evidence.resident
        if row.counters
    )
    return Finding(
        kind=INSIDE,
        reason=reason,
        stranded=rows,
        proof=(f"{places}.",) if places else (),
        unseen=tuple(_unseen(evidence)),
    )


def _unseen(evidence: Evidence) -> Iterator[str]:
    capture = evidence.capture
    if evidence.replay is None and capture is None:
        yield (
            "Launches that wait in a stream or in a hardware queue: without a capture they are "
            "not seen, so a queue or the legacy stream may be the cause. Run the program under "
            "`tbsched capture`."
        )
    if evidence.look is not None:
        return
    if evidence.resident and all(is_collective(row.name) for row in evidence.resident):
        yield OTHER_RANKS
        return
    if any(row.does == UNKNOWN for row in evidence.resident):
        yield (
            "Whether the kernels spin, and on whose memory: without a debugger nobody "
            "knows. `tbsched hang --pid PID` looks at a process that still runs."
        )
    if capture is not None and not capture.notes_flushes:
        yield from _first_uses(evidence)


def _first_uses(evidence: Evidence) -> Iterator[str]:
    """Yields launches of kernels that may not have been loaded when others were on the GPU."""
    launches = [each for each in evidence.issued if each.what == LAUNCH]
    for own in launches[1:]:
        if own.is_first:
            yield (
                f"Whether {called(own)} was loaded before its first launch: if not, it waits "
                f"for {called(launches[0])}, as loading waits for all work on the GPU."
            )
