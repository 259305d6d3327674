"""Something goes on: the program is not hanging, or not yet."""

from __future__ import annotations

import itertools

from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.hang import NOT_HANGING
from tbsched.hangs.look import Look
from tbsched.hangs.rules.finding import NOTHING, Finding
from tbsched.hangs.threads import COMPUTES


def goes_on(evidence: Evidence) -> Finding:
    """Finds that something has ended, or some kernel computes."""
    capture, seen = evidence.capture, evidence.seen
    if capture is not None and capture.is_whole:
        return _not_hanging("the program has ended by itself")
    looks = [each for each in (seen.before, seen.look, seen.after) if each]
    for earlier, later in itertools.pairwise(looks):
        words = _progress_between(earlier, later)
        if words is not None:
            return _not_hanging(words)
    for kernel in evidence.seen_kernels:
        if evidence.does(kernel) == COMPUTES:
            return _not_hanging(
                f"{kernel.name} computes: its registers have changed between two looks, and "
                "its loop does not look at memory that others write"
            )
    if seen.look is not None or capture is None:
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
    return Finding(kind=NOT_HANGING, reason=reason)


def _progress_between(before: Look, now: Look) -> str | None:
    """Returns what went on between two looks, in words; None: nothing that they show."""
    first = {kernel.grid_id: kernel for kernel in before.kernels}
    last = {kernel.grid_id: kernel for kernel in now.kernels}
    for number in sorted(first.keys() - last.keys()):
        return f"{first[number].name} (grid {number}) has ended between two looks"
    for number in sorted(last.keys() - first.keys()):
        return f"{last[number].name} (grid {number}) has started between two looks"
    for number, kernel in first.items():
        running = [{(each.first, each.last) for each in k.blocks} for k in (kernel, last[number])]
        if running[0] != running[1]:
            return (
                f"blocks of {kernel.name} have ended between two looks: {kernel.started:,} of "
                f"{kernel.size:,} had started, then {last[number].started:,}"
            )
    return None
