"""Which launches are of one kernel."""

from __future__ import annotations

from collections.abc import Hashable

from tbsched.program.events.launch import Launch


def kernel_of(launch: Launch) -> Hashable:
    """Returns a key of a launch's kernel; None: the kernel is unknown."""
    if launch.name is None:
        return None
    return launch.name, launch.blocks, launch.threads, launch.registers, launch.shared_memory
