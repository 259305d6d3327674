"""How long a block runs, at first guess, of which a profile has only the time of the kernel."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices
from tbsched.hardware.spec import DeviceSpec
from tbsched.prediction.predict import predict
from tbsched.program.program import Program
from tbsched.program.sequence import Launch, Sequence, with_launches

_KERNELS = "The time of each block: assumed that of its whole kernel"


def known_device(name: str | None, sms: int | None) -> DeviceSpec | None:
    """The shipped device of a GPU's name, such as "NVIDIA H100 80GB HBM3", if there is one.

    Args:
        name: as the profile has it; None: it has none.
        sms: how many SMs it has, which a device of the same name may have fewer of; None: unknown.
    """
    words = re.findall(r"[a-z0-9]+", (name or "").lower())
    pairs = [first + second for first, second in itertools.pairwise(words)]
    for known in devices():
        if known in words or known in pairs:
            spec = find_device(known)
            return spec if sms in (None, spec.sms) else None
    return None


def by_waves(program: Program, spec: DeviceSpec | None) -> Program:
    """The program with blocks that run for the time of their kernel, divided by its waves.

    Waves are those of the kernel alone on the device. Blocks whose times the profile has keep them.

    Args:
        program: of a profile, blocks running as long as their kernels.
        spec: the device; None: nobody knows it, so kernels are taken to have one wave.
    """
    if all(isinstance(launch.duration, tuple) for launch in program.sequence.launches):
        return program
    if spec is None:
        gpu = "a GPU that nobody named" if program.device is None else program.device
        note = f"{_KERNELS}, as no device here is {gpu}; name one with device."
        return replace(program, assumed=(*program.assumed, note))
    rooms: dict[Launch, int] = {}
    launches = [_shortened(launch, spec, rooms) for launch in program.sequence.launches]
    note = f"{_KERNELS}, divided by the waves that the kernel has alone on {spec.name}."
    return replace(
        program,
        sequence=with_launches(program.sequence, launches),
        assumed=(*program.assumed, note),
    )


def _shortened(launch: Launch, spec: DeviceSpec, rooms: dict[Launch, int]) -> Launch:
    if not isinstance(launch.duration, float):
        return launch
    # Of a grid that does not fit all that matters is what a block takes.
    most = spec.sms * spec.blocks_per_sm
    shape = Launch(
        min(launch.blocks, most - most % launch.cluster), launch.threads, launch.registers,
        launch.shared_memory, launch.local_memory, launch.carveout, launch.cluster,
    )  # fmt: skip
    room = rooms.get(shape)
    if room is None:
        room = rooms[shape] = predict(Sequence([shape]), spec)[0].placed
    waves = -(-launch.blocks // max(room, 1))
    return launch if waves == 1 else replace(launch, duration=launch.duration / waves)
