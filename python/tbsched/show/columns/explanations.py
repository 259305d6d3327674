"""Why a program of a profile took so long, as a table: a row per cause of a gap."""

from __future__ import annotations

from typing import Any

from tbsched.advice.explain.explanation import Explanation


def explanation_columns(found: Explanation) -> dict[str, Any]:
    """A row per cause of each gap, the most costly gap first."""
    launches = found.program.sequence.launches
    rows = [(number, gap, cause) for number, gap in enumerate(found.gaps) for cause in gap.causes]
    return {
        "gap": [number for number, _, _ in rows],
        "kind": [gap.kind for _, gap, _ in rows],
        "gpu": [gap.gpu for _, gap, _ in rows],
        "launch": [gap.launch for _, gap, _ in rows],
        "name": [launches[gap.launch].name if gap.launch >= 0 else gap.name for _, gap, _ in rows],
        "begin": [gap.begin for _, gap, _ in rows],
        "end": [gap.end for _, gap, _ in rows],
        "cost": [gap.cost for _, gap, _ in rows],
        "cause": [cause.cause for _, _, cause in rows],
        "seconds": [cause.seconds for _, _, cause in rows],
        "behind": [cause.behind for _, _, cause in rows],
        "by": [cause.by for _, _, cause in rows],
    }
