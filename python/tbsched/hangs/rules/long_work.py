"""Kernels that have so much to compute, by counts that are known, that they take long anyway."""

from __future__ import annotations

from tbsched.hangs.evidence import QUIET, Evidence
from tbsched.hangs.hang import NOT_HANGING, NOT_KNOWN
from tbsched.hangs.rules.finding import Finding
from tbsched.hangs.rules.gpu_memory import stands_still
from tbsched.hangs.unfinished import LAUNCH, name_of

_INSTRUCTIONS_PER_SECOND = 1e9  # of a thread, at most: one in two cycles, as most need the last


def unless_work_is_long(finding: Finding, evidence: Evidence) -> Finding:
    """Returns a finding, or that the program is slow if a kernel cannot have computed all it has to
    since it was launched. If memory of the GPU stands still, only what stores nothing there counts.

    Args:
        finding: ``inside_kernel`` or ``not_known``.
    """
    if finding.kind != NOT_KNOWN or NOT_HANGING not in finding.may_be:
        return finding
    capture, is_quiet = evidence.capture, stands_still(evidence)
    for launch in evidence.running(LAUNCH):
        code = evidence.code_of(launch)
        if code is None or capture is None:
            continue
        count = code.instructions_without_store if is_quiet else code.instructions_at_least
        seconds = capture.last_seen - launch.issued
        if count >= _INSTRUCTIONS_PER_SECOND * max(seconds, QUIET):
            name = name_of(launch)
            return Finding(
                kind=NOT_HANGING,
                reason=f"{name} is slow: a thread of it has {count:,} instructions to execute, "
                f"which {seconds:.1f} s are too short for",
                stranded=finding.stranded,
                proof=finding.proof,
                unseen=(f"Whether threads of {name} wait for ever after a small part of that.",),
            )
    return finding
