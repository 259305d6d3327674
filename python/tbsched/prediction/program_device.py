"""A device as a process sets it, such as that of a program."""

from __future__ import annotations

import os
from dataclasses import replace

from tbsched.errors import on_one_line
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices
from tbsched.hardware.described import device_of_facts, known_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import integer
from tbsched.program.program import Program

MAX_CONNECTIONS = 32  # that CUDA takes


def with_connections(owner: str, spec: DeviceSpec, connections: int | None) -> DeviceSpec:
    """Returns the device with as many hardware queues as ``CUDA_DEVICE_MAX_CONNECTIONS`` says.

    Args:
        owner: the function that was called.
        spec: the device.
        connections: the environment variable; None: the device's own number.

    Raises:
        TypeError, ValueError: naming ``owner.connections``.
    """
    if connections is None:
        return spec
    queues = integer(owner, "connections", connections, 1, MAX_CONNECTIONS)
    return replace(spec, hardware_queues=queues)


def own_device(program: Program) -> DeviceSpec | None:
    """Returns the device that a program ran on, by its profile; None: that says too little."""
    if program.gpu is not None:
        return device_of_facts(program.gpu)
    return known_device(program.device, program.sms)


def device_of(
    program: Program, device: str | os.PathLike[str] | DeviceSpec | None = None
) -> DeviceSpec:
    """Returns a program's device, with the hardware queues that the profile says the process had.

    Kernels of a program write to the memory of the GPU, and not to the host's, as those of
    ``tb.observe`` do.

    Args:
        program: of a profile.
        device: a name, the path of a ``.toml`` file, or a spec; None: the profile's own.

    Raises:
        ValueError: no device, and the profile says too little of its own.
    """
    recorded = own_device(program)
    if device is None:
        if recorded is None:
            name = on_one_line(program.device or "")
            gpu = "no GPU" if program.device is None else f"{name}, of which it says little"
            raise ValueError(
                f"device: the profile names {gpu}; name a device, or describe one with `tbsched "
                "describe`"
            )
        chosen = recorded
    else:
        chosen = find_device(device)
    spec = replace(chosen, host_watch_ns=0)
    connections = program.connections
    if connections is not None:
        connections = min(connections, MAX_CONNECTIONS)
    return with_connections("program", spec, connections)


def check_ran_on(program: Program, device: object) -> None:
    """Checks that the profile does not contradict a shipped device. Raises ValueError: it does."""
    own = own_device(program)
    name = device.name if isinstance(device, DeviceSpec) else device
    if own is None or not isinstance(name, str) or name not in devices() or name == own.name:
        return
    ran_on = on_one_line(program.device or own.title)
    raise ValueError(
        f"device: {name}, but the profile was recorded on {ran_on}; leave it out, or give a .toml "
        "file of yours. With blocks as long as they were, another GPU runs it as p = "
        f"load_program(path); predict(p.sequence, {name!r}, host=p.host) says"
    )
