"""Whether a program goes on between two looks."""

from __future__ import annotations

from tbsched.hangs.look import Extent, Look, Resident


def progress_between(before: Look, now: Look) -> str | None:
    """Returns what went on between two looks, in words; None: nothing that they show."""
    first = {kernel.grid_id: kernel for kernel in before.kernels}
    last = {kernel.grid_id: kernel for kernel in now.kernels}
    for number in sorted(first.keys() - last.keys()):
        return f"{first[number].name} (grid {number}) has ended between two looks"
    for number in sorted(last.keys() - first.keys()):
        return f"{last[number].name} (grid {number}) has started between two looks"
    for number, kernel in first.items():
        if _running(kernel) != _running(last[number]):
            return (
                f"blocks of {kernel.name} have ended between two looks: {kernel.started:,} of "
                f"{kernel.size:,} had started, then {last[number].started:,}"
            )
    return None


def _running(kernel: Resident) -> set[tuple[Extent, Extent]]:
    return {(each.first, each.last) for each in kernel.blocks}
