"""The device of a program, as the program's process had set it."""

from __future__ import annotations

import os
from dataclasses import replace

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.program import Program


def device_of(program: Program, device: str | os.PathLike[str] | DeviceSpec) -> DeviceSpec:
    """The device, with as many hardware queues as the profile says that the process had."""
    spec = find_device(device)
    if program.connections in (None, spec.hardware_queues):
        return spec
    return replace(spec, hardware_queues=program.connections)
