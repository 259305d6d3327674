"""The device of a program, as the program's process had set it."""

from __future__ import annotations

import os
from dataclasses import replace

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.program import Program


def device_of(program: Program, device: str | os.PathLike[str] | DeviceSpec) -> DeviceSpec:
    """The device, with as many hardware queues as the profile says that the process had.

    Kernels of a program write to the memory of the GPU, and not to the host's, as those of
    ``tb.observe`` do.
    """
    spec = replace(find_device(device), host_watch_ns=0)
    if program.connections is None:
        return spec
    return replace(spec, hardware_queues=program.connections)
