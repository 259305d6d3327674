"""The order in which equal SMs are chosen: launches of 1, 2, 3, ... blocks, a whole SM each."""

from __future__ import annotations

from collections.abc import Sequence as ListOf

from tbsched.calibration.asking.lab import LEAST_REGISTERS, Lab, small
from tbsched.calibration.finding import Finding, KnownValues, assumed, determined
from tbsched.program.sequence import Launch, Sequence

_PATH = "topology.sm_preference"


def ask(lab: Lab, known: KnownValues) -> list[Finding]:
    """Measures which SM a device takes first, second, ..., by launches of 1, 2, 3, ... blocks, each
    on an idle GPU. Returns a finding."""
    launches = [whole_sm(known, blocks) for blocks in range(1, lab.sms + 1)]
    traces = lab.run([Sequence([launch]) for launch in launches])
    return [read([frozenset(trace[0].smid.tolist()) for trace in traces])]


def whole_sm(known: KnownValues, blocks: int = 1) -> Launch:
    """Returns a launch of which an SM holds one block, by shared memory, warps or registers."""
    fits_two = known.notes.get("shared", {}).get(2, known["shared_memory_per_block"])
    if fits_two < known["shared_memory_per_block"]:
        return small(shared_memory=fits_two + 1, blocks=blocks)
    max_warps = min(32, known["threads_per_block"] // 32)
    for registers in range(LEAST_REGISTERS, known["registers_per_thread"] + 1, 8):
        if all(files.holds(registers) // max_warps == 1 for files in known.notes["files"]):
            return small(max_warps, registers, blocks=blocks)
    return small(max_warps, blocks=blocks)


def read(taken_sms: ListOf[frozenset[int]]) -> Finding:
    """Returns the finding from the SMs of launches of 1, 2, 3, ... blocks."""
    order: list[int] = []
    for sms in taken_sms:
        more = sms - set(order)
        if len(sms) != len(order) + 1 or len(more) != 1:
            all_sms = tuple(range(len(taken_sms)))
            return assumed(
                _PATH, all_sms, f"{len(sms)} blocks were not on one SM more than one fewer"
            )
        order += more
    return determined(
        _PATH, tuple(order), f"launches of 1 to {len(taken_sms)} blocks, each of a whole SM"
    )
