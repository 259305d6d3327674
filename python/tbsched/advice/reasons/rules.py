"""Rules for launch configurations, each of which measurements on one GPU can refute for that GPU.

Most are from a thesis on GF100 GPUs (Section numbers are its own), restated for as many processing
blocks as the GPU has: two schedulers there, four on Hopper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tbsched.advice.reasons.case import WARP, Case
from tbsched.counting import counted
from tbsched.sm.characterization.figures import Figures, Point
from tbsched.sm.characterization.loops import Mode
from tbsched.sm.code.summary import MEMORY_LATENCY

_MAX_DISTANCE = 16  # the largest distance that is measured
SKEW = 300  # clocks, as in the thesis
_LINE = 128  # bytes
_BYTES_A_CLOCK = 14.5  # DRAM bandwidth per SM: 3.35 TB/s, 132 SMs, 1.755 GHz


@dataclass(frozen=True, slots=True)
class Reason:
    """What a rule says of a configuration.

    Attributes:
        rule: its name.
        holds: whether it speaks for the configuration; None: it does not say.
        words: why.
    """

    rule: str
    holds: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        name: what users call it.
        source: where it is from.
        judge: says whether it speaks for a configuration, and why.
    """

    name: str
    source: str
    judge: Callable[[Case], tuple[bool | None, str]]

    def __call__(self, case: Case) -> Reason:
        return Reason(self.name, *self.judge(case))


def _dependences(case: Case) -> tuple[bool | None, str]:
    """Returns whether there are enough warps to hide the latency between dependent instructions,
    and why, in words."""
    each = case.code.warps_alone
    needed = math.ceil(each) * case.spec.processing_blocks
    words = (
        f"between two instructions that need each other a warp waits so long that "
        f"{counted(needed, 'warp keeps', 'warps keep')} the {case.code.busiest} unit busy; "
        f"{case.warps} are on an SM"
    )
    return case.warps >= needed, words


def _balance(case: Case) -> tuple[bool | None, str]:
    """Returns whether each processing block has the same number of warps, and why, in words."""
    blocks = case.spec.processing_blocks
    left = case.warps % blocks
    return left == 0, f"{counted(case.warps, 'warp')} on {blocks} processing blocks" + (
        "" if left == 0 else f": {counted(left, 'has', 'have')} one more"
    )


def _one_wave(case: Case) -> tuple[bool | None, str]:
    """Returns whether all blocks run in one wave, condition (1), and why, in words."""
    return case.waves <= 1, f"{case.waves:.3g} waves"


def _whole_waves(case: Case) -> tuple[bool | None, str]:
    """Returns whether the number of blocks is a multiple of the number of SMs, condition (2), and
    why, in words."""
    left = case.launch.blocks % case.spec.sms
    return left == 0, f"{counted(case.launch.blocks, 'block')} on {case.spec.sms} SMs" + (
        "" if left == 0 else f": {counted(left, 'SM has', 'SMs have')} one more"
    )


def _forced(case: Case) -> tuple[bool | None, str]:
    """Returns whether blocks spread evenly whatever the scheduler does, condition (4) generalised,
    and why, in words."""
    return case.evenness.forced, case.evenness.reason


def _skew(case: Case) -> tuple[bool | None, str]:
    """Returns whether warps end at nearly the same time, by measurements of their instructions
    (None: there are none), and why, in words."""
    worst, where = -1, ""
    for opcode, distance in case.code.distances.items():
        found = _measured_skew(_figures_of(case, opcode), distance, case.warps)
        if found is not None and found > worst:
            worst, where = found, f"{opcode} at distance {distance}"
    if worst < 0:
        return None, "nothing in the code was measured"
    return worst <= SKEW, (
        f"{case.warps} warps of {where} end up to {worst:,} clocks apart, measured"
    )


def _filter(case: Case) -> tuple[bool | None, str]:
    """Returns whether all six conditions of S_lc hold, and why, in words. (3) follows from what the
    GPU can hold."""
    parts = (_one_wave, _whole_waves, _forced, _balance, _skew)
    against = [words for holds, words in (part(case) for part in parts) if holds is False]
    return not against, "; ".join(against) or "all six conditions hold"


def _least_warps(case: Case) -> tuple[bool | None, str]:
    """Returns whether there are as many warps as the instructions of the code need at their
    distances, minW2 for results (None: none was measured), and why, in words."""
    needed, where = 0, ""
    for opcode, distance in case.code.distances.items():
        figures = _figures_of(case, opcode)
        if figures is None or not figures.least_warps:
            continue
        known = [
            (d, warps)
            for (mode, d), warps in figures.least_warps.items()
            if mode is Mode.WRITE_READ and d <= distance
        ]
        if not known:
            continue
        _, warps = max(known)
        if warps > needed:
            needed, where = warps, f"{opcode} at distance {distance}"
    if not needed:
        return None, "nothing in the code was measured"
    words = f"{where} needs {counted(needed, 'warp')}, and {case.warps} are on an SM"
    return case.warps >= needed, words


def _transfers(case: Case) -> tuple[bool | None, str]:
    """Returns whether warps hide the time of transfers, by 12.2.8 (None: the code does not say),
    and why, in words.

    It is 400 + T <= D * W / 2 for each first use, and T <= md * W / 2 between transfers.

    T is the time of as many transfers as warps, each of as many whole lines as any of them needs.
    The thesis knows all addresses; here the threads of a warp touch consecutive bytes of whole
    lines, which is the least that an access can need.
    """
    code = case.code
    if not code.uses:
        return None, "the code reads no memory"
    widest = code.widest or code.bytes / max(code.memory, 1)  # at least the mean
    lines = math.ceil(WARP * widest / _LINE)
    sent = math.ceil(case.warps * lines * _LINE / _BYTES_A_CLOCK)
    share = case.warps // case.spec.processing_blocks
    first, least = min(code.uses), min(code.transfers, default=math.inf)
    if MEMORY_LATENCY + sent > first * share:
        return False, (
            f"{first} instructions until memory is needed, of {counted(share, 'warp')} each, hide "
            f"{first * share} of {MEMORY_LATENCY + sent:.0f} clocks"
        )
    if sent > least * share:
        return False, (
            f"{least} instructions between two transfers, of {counted(share, 'warp')} each, hide "
            f"{least * share} of {sent} clocks"
        )
    if not code.widest:
        return None, "the code does not say how many bytes it moves at a time"
    return True, (
        f"{first} instructions until memory is needed, of {counted(share, 'warp')} each, hide "
        f"{MEMORY_LATENCY + sent:.0f} clocks, and each of {counted(case.warps, 'warp')} moves "
        f"{counted(lines, 'line')} of {_LINE} bytes between two transfers"
    )


def _figures_of(case: Case, opcode: str) -> Figures | None:
    """Returns the measured figures of an opcode; None: it was not measured."""
    return next((figure for figure in case.tables.figures if figure.opcode == opcode), None)


def _measured_skew(figures: Figures | None, distance: int, warps: int) -> int | None:
    """Returns by how many clocks warps of an opcode ended apart, as measured at this distance or
    the next smaller one; None: nobody measured it."""
    if figures is None or not figures.ends:
        return None
    nearer = range(min(distance, _MAX_DISTANCE), 0, -1)
    found = (figures.ends.get(Point(Mode.WRITE_READ, each, warps)) for each in nearer)
    return next((clocks for clocks in found if clocks is not None), None)


RULES = (
    Rule("warps for dependences", "this package", _dependences),
    Rule("balance", "S_lc (5), 8.3", _balance),
    Rule("one wave", "S_lc (1), 8.3", _one_wave),
    Rule("whole waves", "S_lc (2), 8.3", _whole_waves),
    Rule("certain spread", "S_lc (4), 8.3", _forced),
    Rule("T_b", "S_lc (6), 8.3", _skew),
    Rule("S_lc", "8.3", _filter),
    Rule("least warps", "A_1, 12.3", _least_warps),
    Rule("transfers", "A_1, 12.2.8", _transfers),
)
