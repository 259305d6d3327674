"""Programs out of the files that profilers write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tbsched import storage
from tbsched.errors import on_one_line
from tbsched.hardware.catalogue import device as find_device
from tbsched.hardware.catalogue import devices
from tbsched.hardware.described import device_of_facts, known_device
from tbsched.hardware.spec import DeviceSpec
from tbsched.importers import capture, examiner, foreign, kineto, nsys, ranks, recorded
from tbsched.importers.assembly.assemble import assembled
from tbsched.importers.reading.joined import MAX_PREDICTED
from tbsched.importers.reading.packed import head_of
from tbsched.importers.reading.selection import Selection
from tbsched.importers.records import Kernel, Recording
from tbsched.prediction.fitting.durations import with_durations
from tbsched.prediction.fitting.effort import BRIEF
from tbsched.prediction.program_device import device_of
from tbsched.program.activity import Activity
from tbsched.program.checks import flag
from tbsched.program.program import MEASURED, TRANSFERS, Program
from tbsched.program.sequence import Sequence as Events

_MAX_FITTED_LAUNCHES = 20_000
_PART = (
    "What is not selected: it is not in the account, so a GPU that ran something else counts as "
    "idle."
)
_TOO_LONG = (
    "{count:,} kernels are more than the {most:,} that are predicted: the account is of all of "
    "them; select a part with start and end (--from, --to) for what a change would save."
)
_NO_KERNELS = (
    "The file has no kernels one by one, only copies, memsets or whole graphs: the account is of "
    "them, and nothing is predicted."
)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a profiler writes.

    Attributes:
        name: what it is called.
        takes: whether a file is of this format, by its first bytes, unpacked.
        read: what it tells.
        folders: whether the files of one program can be a folder.
    """

    name: str
    takes: Callable[[bytes], bool]
    read: Callable[[Path, Selection], Recording | Program]
    folders: bool = False


FORMATS = (
    Format(kineto.NAME, kineto.takes, kineto.read),
    Format(nsys.NAME, nsys.takes, nsys.read),
    Format(examiner.NAME, examiner.takes, examiner.read, folders=True),
    Format(capture.NAME, capture.takes, capture.read),
    Format(recorded.NAME, recorded.takes, recorded.read),
)


def is_profile(path: Path) -> bool:
    """Returns whether a file or folder is a profile, by its content."""
    known = _known_format(path)
    if known is None:
        return foreign.advice(path.name, head_of(path)) is not None
    return known.read is not recorded.read


def load_program(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    device: str | os.PathLike[str] | DeviceSpec | None = None,
    *,
    start: float | None = None,
    end: float | None = None,
    streams: Iterable[int] | None = None,
    match: str | None = None,
    fit: bool = True,
) -> Program:
    """Reads the profile of a real program: what it launched, when it called, and when kernels ran.

    The file itself shows what wrote it: torch.profiler (``.json``, ``.json.gz``), Nsight Systems
    (an export to ``.sqlite``), cuda_scheduling_examiner (a log, or a folder of logs), or tbsched (a
    capture, or a trace file with times). What the file does not say is assumed, and ``assumed`` of
    the result says so.

    Several profiles are those of the ranks of one program: processes that meet in collectives.
    They are joined by their collectives, in order per process group, which also bring their clocks
    together. Such a program has ``ranks`` and an ``activity`` of all GPUs; it is accounted for, and
    nothing of it is predicted, so its ``sequence`` is empty.

    Args:
        path: of the file, or of a folder of logs. Or several profiles, one per rank: a list of
            files, or a folder of them.
        device: a name, the path of a ``.toml`` file, or a spec: where the program ran. None: the
            one that the profile names, if it is known.
        start, end: only kernels, copies and memsets that start in this time, in seconds from the
            first one.
        streams: only these streams, as the profile numbers them: those of all contexts and GPUs
            that have such a number.
        match: only kernels in whose names this regular expression is found.
        fit: whether durations of blocks are found, as with :func:`tbsched.fit_durations`, but with
            fewer predictions: it takes up to some ten seconds where hundreds of kernels overlap.
            Otherwise, and on a GPU that is
            no device here, or of more than 20,000 launches, a block runs for the time of its
            kernel, divided by the kernel's waves. :func:`tbsched.explain` needs no fit: it makes a
            quicker one of its own.

    Raises:
        FileNotFoundError: no such file.
        TypeError: an argument of a wrong type.
        ValueError: a file of no known format, damaged or incomplete; no kernels in it, or none that
            is wanted; an argument out of its range. Of several: a rank twice, numbers of ranks that
            contradict each other, or collectives that cannot be of one run. The message names the
            file and the place.

    Example:
        >>> kernel = tb.Launch(264, 1024, 64, duration=1e-3, name="gemm")
        >>> tb.save_traces("played.jsonl", [tb.predict(tb.Sequence([kernel]), "h200", host=0.0)])
        >>> program = tb.load_program("played.jsonl")
        >>> program.measured["name"].tolist()
        ['gemm']
        >>> tb.predict(program.sequence, "h200", host=program.host).makespan > 1e-3
        True
    """
    selection = Selection.of(start, end, streams, match)
    flag("load_program", "fit", fit)
    spec = None if device is None else find_device(device)
    paths, sentences = _profile_paths(path)
    if len(paths) > 1:
        return _program_of_ranks(paths, sentences, selection, spec)
    (profile,) = paths
    recording = _format_of(profile).read(profile, selection)
    if isinstance(recording, Program):
        return recording
    recording.missing[:0] = sentences
    recording.missing.extend(_alone(recording))
    has_kernels = recording.kernels > 0 or any(
        isinstance(record, Kernel) for record in recording.records
    )
    has_work = recording.activity is not None and len(recording.activity.work) > 0
    if selection:
        if not has_kernels and not has_work:
            raise ValueError(
                f"{storage.shown(profile)}: no kernel is in the part that is selected; select more "
                "(start, end, streams, match), or read all of it"
            )
        recording = replace(recording, records=selection.of_calls(recording.records))
        recording.missing.insert(0, _PART)
    _check_vendor(profile, recording)
    if spec is None:
        spec = known_device(recording.device, recording.sms)
        if spec is None and recording.gpu is not None:
            spec = device_of_facts(recording.gpu)
    if recording.activity is not None and recording.kernels > MAX_PREDICTED:
        why = _TOO_LONG.format(count=recording.kernels, most=MAX_PREDICTED)
        return _accounted(recording, recording.activity, why)
    if recording.activity is not None and has_work and not has_kernels:
        return _accounted(recording, recording.activity, _NO_KERNELS)
    if spec is not None and device is None and spec.name not in devices():
        recording.missing.append(_described(spec, recording.device))
    try:
        program = assembled(recording, spec)
    except (ValueError, TypeError) as error:
        hint = "; only a part is selected" if selection else ""
        raise ValueError(f"{storage.shown(profile)}: {error}{hint}") from None
    return program if spec is None or not fit else fitted(program, spec)


def _profile_paths(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Path], list[str]]:
    """Returns the files to read, and sentences about files that are not read.

    Raises:
        FileNotFoundError: no such file.
        TypeError, ValueError: no path, an empty list, or a folder without profiles.
    """
    if isinstance(path, list | tuple):
        if not path:
            raise ValueError("load_program.path: at least one file is needed, got an empty list")
        return [storage.as_path(item) for item in path], []
    only_path = storage.as_path(path)
    if not storage.is_folder(only_path) or _known_format(only_path) is not None:
        return [only_path], []
    profiles, other_files = ranks.profiles_in(only_path, is_profile)
    return (profiles, ranks.left_out(other_files)) if profiles else ([only_path], [])


def _program_of_ranks(
    paths: Sequence[Path], sentences: list[str], selection: Selection, spec: DeviceSpec | None
) -> Program:
    """Returns the program of several files, one per rank. Raises ValueError: a part is selected, a
    file is no profile of a rank, or they do not fit."""
    if selection:
        raise ValueError(
            "load_program: of several ranks no part can be selected (start, end, streams, match); "
            "record fewer steps, or select a part of one rank"
        )
    if spec is not None:
        raise ValueError(
            "load_program.device: nothing of several ranks is predicted, so no device is needed; "
            "leave it out, or read one rank alone"
        )
    sources = []
    for path in paths:
        recording = _format_of(path).read(path, selection)
        if isinstance(recording, Program):
            raise ValueError(
                f"{storage.shown(path)}: a {recording.format} is no profile of a rank; "
                "name it alone"
            )
        _check_vendor(path, recording)
        if recording.activity is None or not len(recording.activity.work):
            raise ValueError(f"{storage.shown(path)}: nothing in it ran on a GPU")
        sources.append(ranks.Source(path.name, replace(recording, records=[])))
    return ranks.joined(sources, sentences)


def _check_vendor(path: Path, recording: Recording) -> None:
    """Checks that a recording is of an NVIDIA GPU."""
    if recording.gpu is not None and recording.gpu.other_vendor is not None:
        raise ValueError(
            f"{storage.shown(path)}: of a GPU of {recording.gpu.other_vendor} "
            f"({on_one_line(str(recording.gpu.name))}); tbsched knows those of NVIDIA"
        )


def _alone(recording: Recording) -> list[str]:
    """Returns a sentence that other ranks are missing, in a list; [] if none is."""
    if recording.world is None or recording.world < 2 or recording.rank is None:
        return []
    return [
        f"Of {recording.world} ranks this is rank {recording.rank} alone: collectives are "
        "transfers and "
        "waits of unknown length. Name the profiles of all ranks to tell them apart."
    ]


def _described(spec: DeviceSpec, name: str | None) -> str:
    """Returns the sentence that a GPU is described, with how many values are assumed."""
    kinds = [origin.kind for origin in spec.provenance.values()]
    return (
        f"No device here is {name or spec.title}: it is described by the profile and by what "
        f"NVIDIA documents; {kinds.count('assumed')} of {len(kinds)} values are assumed to be "
        "those of the nearest shipped device."
    )


def _accounted(recording: Recording, activity: Activity, why: str) -> Program:
    """Returns a program for an account only, with the sentence that says why."""
    first_ns = activity.first_ns
    return Program(
        Events(()), (), np.zeros(0, MEASURED), np.zeros(0, TRANSFERS), device=recording.device,
        sms=recording.sms, format=recording.format, gpu=recording.gpu,
        activity=activity.later(-first_ns), calls=np.zeros(0, np.int64),
        assumed=(why, *recording.missing),
        first_ns=None if recording.first_ns is None else recording.first_ns - first_ns,
    )  # fmt: skip


def fitted(program: Program, spec: DeviceSpec) -> Program:
    """Returns the program with fitted durations, or with a note of why they are not fitted."""
    launches = len(program.sequence.launches)
    why = f"{launches} launches take long" if launches > _MAX_FITTED_LAUNCHES else None
    if all(isinstance(launch.duration, tuple) for launch in program.sequence.launches):
        return program
    try:
        if why is None:
            return with_durations(program, device_of(program, spec), BRIEF)
    except ValueError as error:
        why = str(error)
    note = f"Durations are not fitted: {why}."
    return replace(program, assumed=(*program.assumed, note))


def _format_of(path: Path) -> Format:
    """Returns the format of a file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it cannot be read, or is of none.
    """
    known_format = _known_format(path)
    if known_format is None:
        is_folder = storage.is_folder(path)
        is_empty = not is_folder and path.stat().st_size == 0
        head = b"" if is_empty else head_of(path)
        advice = None if is_empty else foreign.advice(path.name, head)
        advice = advice or foreign.advice_where_a_program_is_needed(head)
        if advice is not None:
            raise ValueError(f"{storage.shown(path)}: {advice}")
        names = ", ".join(known.name for known in FORMATS if known.folders or path.is_file())
        problem = "of no known format"
        if is_folder:
            problem = "a folder, of which no file is known; name the file itself"
        elif is_empty:
            problem = "empty; was it written and copied to its end?"
        raise ValueError(f"{storage.shown(path)}: {problem}; known are: {names}")
    return known_format


def _known_format(path: Path) -> Format | None:
    """Returns the format of a file; None: none fits."""
    head, is_folder = head_of(path), storage.is_folder(path)
    fitting = (known for known in FORMATS if known.folders or not is_folder)
    return next((known for known in fitting if known.takes(head)), None)
