"""Which launches are of one kernel."""

from __future__ import annotations

from collections.abc import Hashable

from tbsched.program.events.launch import Launch


def kernel_of(launch: Launch) -> Hashable:
    """What launches of one kernel have in common; None: nobody knows which kernel it is."""
    if launch.name is None:
        return None
    return launch.name, launch.blocks, launch.threads, launch.registers, launch.shared_memory
