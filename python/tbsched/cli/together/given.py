"""The launches that the verbs ask about."""

from __future__ import annotations

from pathlib import Path

from tbsched.cli.console import note
from tbsched.cli.files import profiled, sequences_of
from tbsched.cli.options import DEFAULT_DEVICE, Part
from tbsched.counting import counted
from tbsched.hangs.find import unfinished_launches
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers.captured_files import is_capture
from tbsched.prediction.program_device import own_device
from tbsched.program.sequence import Sequence


def sequences_and_device(
    path: Path, device: str | None, part: Part
) -> tuple[list[Sequence], DeviceSpec]:
    """Returns the sequences of a file, each with launches, and the device that is meant.

    Of a capture in which no launch has ended, those that were issued.

    Raises:
        FileNotFoundError, TypeError, ValueError: as for the other verbs; there are no launches.
    """
    program = profiled(path, part)
    spec = None
    if program is None:
        sequences = [sequence for sequence in sequences_of(path) if sequence.launches]
    else:
        sequences = [program.sequence] if program.sequence.launches else []
        spec = own_device(program)
        if not sequences and is_capture(path):
            issued, own_spec = unfinished_launches(path, device)
            if issued is not None and own_spec is not None:
                count = counted(len(issued.launches), "launch", "launches")
                note(
                    f"{path}: no launch has ended; taken are {count} that were issued and have "
                    f"not. `tbsched hang {path}` says why"
                )
                return [issued], own_spec
    if not sequences:
        raise ValueError(f"{path}: holds no launches")
    if device is not None or spec is None:
        spec = find_device(device or DEFAULT_DEVICE)
    return sequences, spec
