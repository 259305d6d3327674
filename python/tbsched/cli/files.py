"""Files that verbs read and write; outputs are refused before the work, and named after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tbsched import storage
from tbsched.cli.console import note
from tbsched.cli.options import DEFAULT_DEVICE, Part
from tbsched.hardware.catalogue import device as find_device
from tbsched.importers.programs import fitted, is_profile, load_program
from tbsched.importers.readers import read_sequences
from tbsched.prediction.predict import predict
from tbsched.prediction.program_device import device_of, own_device
from tbsched.program.program import Program
from tbsched.program.sequence import Sequence
from tbsched.traces.files import load_traces, save_traces
from tbsched.traces.trace import Trace
from tbsched.views.terminal import visible


def read_traces(path: Path) -> list[Trace]:
    """Returns the traces of a file or of a folder, at least one.

    Raises:
        FileNotFoundError, ValueError: as :func:`tbsched.load_traces`; there are none.
    """
    traces = load_traces(path)
    if not traces:
        raise ValueError(f"{path}: holds no traces")
    return traces


def sequences_of(path: Path) -> list[Sequence]:
    """Returns the sequences of a file of any known format; ``-`` is standard input, with JSON of
    events.

    Raises:
        FileNotFoundError, TypeError, ValueError: as :func:`read_sequences`.
    """
    if str(path) != "-":
        return read_sequences(path)
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    text = storage.limited(sys.stdin.buffer, "standard input")
    try:
        return [Sequence.from_json(text)]
    except (TypeError, ValueError):
        if text.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
            raise
        raise ValueError(
            "standard input: JSON with a list of events is needed; write a trace or a profile to a "
            "file, and name that in place of -"
        ) from None


def profiled(path: Path, part: Part) -> Program | None:
    """Returns the program of a profile, or a part of it; None if the file is no profile.

    Raises:
        FileNotFoundError, ValueError: as :func:`tbsched.load_program`; a part of
            something else is meant.
    """
    if str(path) != "-" and is_profile(path):
        return load_program(path, **part._asdict(), fit=False)
    if part_options := [name for name, value in part._asdict().items() if value is not None]:
        option = {"start": "from", "end": "to", "streams": "stream"}.get(
            part_options[0], part_options[0]
        )
        raise ValueError(f"--{option}: {path} is no profile of which a part can be taken")
    return None


def predict_program(
    program: Program, device: str | None, policy: str | None, connections: int | None = None
) -> Trace:
    """Predicts a program of a profile, its durations fitted to the GPU that it ran on.

    Raises:
        TypeError, ValueError: as :func:`tbsched.predict`.
    """
    recorded_on = own_device(program)
    spec = (
        recorded_on
        if device is None and recorded_on is not None
        else find_device(device or DEFAULT_DEVICE)
    )
    fitted_program = fitted(program, recorded_on or spec)
    return predict(
        fitted_program.sequence,
        device_of(fitted_program, spec),
        policy,
        host=fitted_program.host,
        connections=connections,
    )


def check_output(output: Path, *inputs: Path) -> bool:
    """Refuses a file that could not be written, or that the verb reads.

    Files that options name are compared for every verb, in :mod:`tbsched.cli.given`. This is for
    those that no option names: in a folder, and among the words of another program.

    Args:
        output: the file.
        inputs: what the verb reads.

    Returns:
        Whether a regular file is there, which will be replaced.

    Raises:
        FileNotFoundError, ValueError: naming the file.
    """
    for input_path in inputs:
        if storage.is_same_file(input_path, output):
            raise ValueError(f"--output: {output} is what is read; write another file")
    return storage.check_writable(output)


def check_device_output(output: Path) -> str:
    """Refuses a device file that could not be written, or that no ``--device`` would find.

    Returns:
        The name of the device.

    Raises:
        FileNotFoundError, ValueError: naming the file.
    """
    is_there = storage.check_writable(output)
    is_file = is_there or not output.exists()
    if is_file and not output.name.endswith(".toml"):
        raise ValueError(f"--output: {output}: a device file's name ends in .toml")
    return output.name.removesuffix(".toml")


def check_writable(*outputs: Path | None) -> None:
    """Refuses outputs that could not be written; None: this one is not asked for.

    Raises:
        FileNotFoundError, ValueError: naming the file.
    """
    for output in outputs:
        if output is not None:
            storage.check_writable(output)


def write(output: Path | None, writer: Callable[[Path], object], content: str) -> None:
    """Writes a file, if one is asked for, and says on standard error what it has."""
    if output is not None:
        is_there = storage.check_writable(output)
        writer(output)
        note_written(output, is_there, content)


def write_traces(output: Path | None, traces: list[Trace]) -> None:
    """Writes the traces, if a file is asked for, and says so."""
    words = f"{len(traces)} trace{'s' if len(traces) != 1 else ''}"
    write(output, lambda path: save_traces(path, traces), words)


def note_written(output: Path, was_there: bool, content: str) -> None:
    """Says what was written, and whether something was there."""
    place = visible(str(output))
    note(f"wrote {place}: {content}{', in place of what was there' if was_there else ''}")
