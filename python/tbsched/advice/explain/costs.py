"""How much of the GPU gaps leave unused, beside the kernels that ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tbsched.advice.explain.explanation import Gap
from tbsched.advice.explain.facts import Facts
from tbsched.program.arrays import Float64Array

# Causes by which a launch waited in line, though it may have had room beside the blocks that ran.
_IN_LINE = frozenset({"queue", "turn", "priority", "hardware_queue"})


def shared_costs(facts: Facts, gaps: Sequence[Gap]) -> list[float]:
    """Returns the seconds of the whole GPU that each gap cost, shared by gaps at the same time.

    At any time that is the room that the kernels that ran had left, and gaps at the same time share
    it. So beside a full GPU a gap costs nothing, and all gaps together cost no more than the time
    that passed. A kernel of which no more blocks fit fills the GPU. For a launch that only waited
    in line it takes as much as its warps take. While no kernel ran a gap costs nothing: that time
    has a gap of its own.
    """
    if not gaps:
        return []
    launches = range(len(facts.start_ns))
    by_blocks = np.array([1 - facts.idle_share(launch) for launch in launches])
    by_warps = np.array([facts.warp_share(launch) for launch in launches])
    waits_in_line = [bool(gap.causes) and gap.causes[0].cause in _IN_LINE for gap in gaps]
    costs = np.where(
        waits_in_line,
        _unused_seconds(facts, gaps, by_warps),
        _unused_seconds(facts, gaps, by_blocks),
    )
    return [float(cost) for cost in costs]


def filled_share(facts: Facts) -> float:
    """Returns the share of the GPU, 0 to 1, that blocks filled while kernels ran. A kernel of which
    no more blocks fit fills it."""
    used = np.array([1 - facts.idle_share(launch) for launch in range(len(facts.start_ns))])
    times = np.concatenate([facts.start_ns, facts.end_ns])
    order = np.argsort(times, kind="stable")
    running = np.concatenate([np.ones(len(used)), -np.ones(len(used))])[order].cumsum()
    share = np.clip(np.concatenate([used, -used])[order].cumsum(), 0.0, 1.0)
    length = np.diff(times[order])
    is_busy = running[:-1] > 0
    ran = float(length[is_busy].sum())
    return float((share[:-1] * length)[is_busy].sum()) / ran if ran else 0.0


def _unused_seconds(facts: Facts, gaps: Sequence[Gap], used: Float64Array) -> Float64Array:
    """Returns each gap's part of the GPU seconds that kernels left unused, float64 (gaps,)."""
    count = len(facts.start_ns)
    begin = np.array([gap.begin for gap in gaps]) * 1e9
    end = np.array([gap.end for gap in gaps]) * 1e9
    times = np.concatenate([facts.start_ns, facts.end_ns, begin, end]).astype(np.float64)
    order = np.argsort(times, kind="stable")
    nothing, one = np.zeros(len(gaps)), np.ones(len(gaps))
    running = np.concatenate([np.ones(count), -np.ones(count), nothing, nothing])[order].cumsum()
    room = 1 - np.concatenate([used, -used, nothing, nothing])[order].cumsum()
    sharing = np.concatenate([np.zeros(2 * count), one, -one])[order].cumsum()
    is_shared = (running > 0) & (sharing > 0)
    rate = np.where(is_shared, np.clip(room, 0.0, 1.0) / np.maximum(sharing, 1), 0.0)
    sorted_ns = times[order]
    unused = np.append(0.0, (rate[:-1] * np.diff(sorted_ns)).cumsum())
    first, last = np.searchsorted(sorted_ns, begin), np.searchsorted(sorted_ns, end)
    seconds: Float64Array = (unused[last] - unused[first]) / 1e9
    return seconds
