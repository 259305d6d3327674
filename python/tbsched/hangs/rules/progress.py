"""Something goes on: the program is not hanging, or not yet."""

from __future__ import annotations

import itertools

from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.hang import NOT_HANGING
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.snapshot import Snapshot
from tbsched.hangs.threads import COMPUTES


def goes_on(evidence: Evidence) -> Finding:
    """Finds that something has ended, or that a kernel computes: the program does not hang."""
    capture, observed = evidence.capture, evidence.seen
    if capture is not None and capture.is_whole:
        return _not_hanging("the program has ended by itself")
    snapshots = [each for each in (observed.before, observed.snapshot, observed.after) if each]
    for earlier, later in itertools.pairwise(snapshots):
        progress = _progress_between(earlier, later)
        if progress is not None:
            return _not_hanging(progress)
    for kernel in evidence.kernels_seen:
        if evidence.does(kernel) == COMPUTES:
            return _not_hanging(
                f"{kernel.name} computes: its registers have changed between two looks, and "
                "its loop does not look at memory that others write"
            )
    if observed.snapshot is not None or capture is None:
        return NOTHING
    if not capture.operations and not capture.open_calls and not capture.failed:
        return _not_hanging("all that was issued has ended")
    if capture.quiet < QUIET:
        return _not_hanging(
            f"something ended or was issued {capture.quiet:.1f} s before the end of the file; "
            f"a hang is told from {QUIET:g} s on"
        )
    sentence = (
        f"Nothing ended and nothing was issued in the last {capture.quiet:.1f} s of the file."
    )
    return Finding(proof=(sentence,))


def _not_hanging(reason: str) -> Finding:
    """Returns the finding that the program does not hang, with a reason."""
    return Finding(kind=NOT_HANGING, reason=reason)


def _progress_between(earlier_snapshot: Snapshot, later_snapshot: Snapshot) -> str | None:
    """Returns what went on between two snapshots, in words; None: nothing that they show."""
    earlier = {kernel.grid_id: kernel for kernel in earlier_snapshot.kernels}
    later = {kernel.grid_id: kernel for kernel in later_snapshot.kernels}
    for number in sorted(earlier.keys() - later.keys()):
        return f"{earlier[number].name} (grid {number}) has ended between two looks"
    for number in sorted(later.keys() - earlier.keys()):
        return f"{later[number].name} (grid {number}) has started between two looks"
    for number, kernel in earlier.items():
        running = [
            {(block.first, block.last) for block in k.blocks} for k in (kernel, later[number])
        ]
        if running[0] != running[1]:
            return (
                f"blocks of {kernel.name} have ended between two looks: {kernel.started:,} of "
                f"{kernel.size:,} had started, then {later[number].started:,}"
            )
    return None
