"""Arguments and options that several verbs take."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from tbsched.hardware.catalogue import ATTACHED, ablations, devices
from tbsched.hardware.documented import compute_capabilities
from tbsched.prediction.predict import policies


def complete_device(incomplete: str) -> Iterator[str]:
    """Yields the device names that a shell offers, with ablations of a whole name."""
    bases = (*devices(), ATTACHED)
    matching = [name for name in bases if incomplete.startswith(name)]
    every = (*bases, *(f"{name}-{ablation}" for name in matching for ablation in ablations()))
    yield from (name for name in every if name.startswith(incomplete))


def complete_oracle(incomplete: str) -> Iterator[str]:
    """What can be an oracle: the GPU, or a device to play it."""
    yield from (name for name in ("gpu", *devices()) if name.startswith(incomplete))


def complete_policy(incomplete: str) -> Iterator[tuple[str, str]]:
    """The policies that a shell offers, with what they do."""
    yield from ((row.name, row.summary) for row in policies() if row.name.startswith(incomplete))


def complete_capability(incomplete: str) -> Iterator[str]:
    """The compute capabilities that a shell offers."""
    yield from (name for name in compute_capabilities() if name.startswith(incomplete))


DEFAULT_DEVICE = "h200"  # where one is needed and none is named


class Part(NamedTuple):
    """Which part of a profile is meant, as ``load_program`` takes it."""

    start: float | None = None
    end: float | None = None
    streams: list[int] | None = None
    match: str | None = None


# An option of several verbs has one name, one type and one meaning: the first sentence of its help.
# What follows may differ from verb to verb.
DEVICE = (
    "A device, a device with an ablation (h200-no-warp-skip), gpu for the one here, or the path of "
    "a .toml."
)
POLICY = "A policy; the device's own by default."
OUTPUT = "Write the result to this path."
ORACLE = "What the prediction is compared with: gpu, or a device that plays one."
THREADS = "Threads per block."
CARVEOUT = "Shared-memory carveout, in per cent."
OTHER_CHOICE = "Also answer for this value. May be repeated."


def device_option(more: str = "") -> Any:
    """Returns the option ``--device`` with a verb's own help."""
    return typer.Option(
        "--device", "-d", help=f"{DEVICE} {more}".rstrip(), metavar="DEVICE",
        autocompletion=complete_device,
    )  # fmt: skip


def policy_option(more: str = "") -> Any:
    """Returns the option ``--policy`` with a verb's own help."""
    return typer.Option(
        "--policy", "-p", help=f"{POLICY} {more}".rstrip(), metavar="POLICY",
        autocompletion=complete_policy,
    )  # fmt: skip


def output_option(content: str) -> Any:
    """``--output``, and what a verb writes there."""
    return typer.Option("--output", "-o", help=f"{OUTPUT} {content}")


def oracle_option(more: str = "") -> Any:
    """Returns the option ``--oracle`` with a verb's own help."""
    return typer.Option(
        "--oracle", help=f"{ORACLE} {more}".rstrip(), metavar="ORACLE",
        autocompletion=complete_oracle,
    )  # fmt: skip


FromTime = Annotated[
    float | None,
    typer.Option(
        "--from",
        help="Of a profile: only what starts at this time or later, in seconds from the first "
        "work.",
        metavar="SECONDS",
    ),
]
ToTime = Annotated[
    float | None,
    typer.Option(
        "--to",
        help="Of a profile: only what starts before this time, in seconds from the first work.",
        metavar="SECONDS",
    ),
]
OnlyStream = Annotated[
    list[int] | None,
    typer.Option(
        "--stream", help="Of a profile: only this stream, by its number in it. May be repeated."
    ),
]
Match = Annotated[
    str | None,
    typer.Option(
        "--match",
        help="Of a profile: only kernels in whose names this regular expression is found.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
_SEQUENCE_FILE = typer.Argument(
    help="A trace file (.jsonl, .xz, .gz), a profile (torch.profiler, Nsight Systems' .sqlite) "
    "or JSON with a list of events such as "
    '[{"launch":{"blocks":132,"threads":256,"registers":32}},{"release":0}]; - reads such '
    "JSON, and nothing else, from standard input.",
    metavar="SEQUENCES",
)
SequenceFile = Annotated[Path, _SEQUENCE_FILE]
OptionalSequenceFile = Annotated[Path | None, _SEQUENCE_FILE]
TraceFile = Annotated[
    Path, typer.Argument(help="A trace file, or a folder of them.", metavar="TRACES")
]
DeviceName = Annotated[str, device_option()]
PredictingDevice = Annotated[
    str, device_option("It predicts; on a GPU, sequences are drawn within its limits.")
]
OwnDeviceName = Annotated[
    str | None,
    device_option(f"By default the GPU that a profile names, else {DEFAULT_DEVICE}."),
]
PolicyName = Annotated[str | None, policy_option()]
_GPU = typer.Option("--gpu", "-g", help="Which GPU, as CUDA counts them.", metavar="INDEX")
GpuIndex = Annotated[int, _GPU]
OptionalGpuIndex = Annotated[int | None, _GPU]
TracesOutput = Annotated[Path | None, output_option("A trace file (.jsonl, .xz, .gz).")]
_SECONDS = typer.Option("--seconds", help="Time limit in seconds.", metavar="SECONDS")
Seconds = Annotated[float, _SECONDS]
OptionalSeconds = Annotated[float | None, _SECONDS]
SequencesOption = Annotated[
    int, typer.Option("--sequences", help="How many sequences at most.", metavar="COUNT")
]
_SEED = typer.Option("--seed", help="Seed: the same one draws the same sequences.")
Seed = Annotated[int, _SEED]
OptionalSeed = Annotated[int | None, _SEED]
Evidence = Annotated[
    Path | None,
    typer.Option(
        "--evidence",
        help="Append what is found to this file (.jsonl), and resume from what it holds.",
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "--connections",
        help="CUDA_DEVICE_MAX_CONNECTIONS of the process. By default what a profile says, else the "
        "device's hardware queues.",
        metavar="COUNT",
    ),
]
SharedMemory = Annotated[
    int, typer.Option("--shared-memory", "-s", help="Shared memory per block, in bytes.")
]
KernelName = Annotated[
    str | None, typer.Option("--kernel", "-k", help="Its name, if the cubin has several.")
]


class Level(StrEnum):
    """How closely blocks are compared."""

    occupancy = "occupancy"
    exact = "exact"


LevelOption = Annotated[
    Level, typer.Option("--level", "-l", help="Blocks per SM, or the SM of each block.")
]


class Drawn(StrEnum):
    """What a campaign can leave out."""

    carveouts = "carveouts"
    local_memory = "local_memory"
    clusters = "clusters"
    priorities = "priorities"
    partitions = "partitions"
    cooperative = "cooperative"


UntilFull = Annotated[
    bool,
    typer.Option(
        "--until-full",
        help="Draw launches until the next does not fit, and release none, as in the ICCD 2023 "
        "paper.",
    ),
]
WithoutOption = Annotated[
    list[Drawn] | None,
    typer.Option(
        "--without",
        help="Do not draw these. May be repeated. A driver without green contexts needs --without "
        "partitions.",
    ),
]


GpusOption = Annotated[
    str | None,
    typer.Option(
        "--gpus",
        help="Run on these GPUs of this host, a process for each: all, or numbers such as 0,1.",
        metavar="all|0,1",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Run in this number of processes, 1 to 1024; not on a GPU, which takes --gpus.",
        metavar="COUNT",
    ),
]
BeginOption = Annotated[
    int,
    typer.Option(
        "--begin",
        help="The number of the first sequence of the seed: a campaign of 1,000 from 1,000 on "
        "follows one of 1,000 from 0 on.",
        metavar="NUMBER",
    ),
]


class Draw(StrEnum):
    """Drawer of a campaign's sequences."""

    auto = "auto"
    native = "native"
    hypothesis = "hypothesis"


DrawOption = Annotated[
    Draw,
    typer.Option(
        "--draw",
        help="native: NumPy draws, while the GPU runs what was drawn before. hypothesis: one by "
        "one, slower, with variations of earlier draws. auto: native for a GPU and a model, else "
        "hypothesis. Both draw from the same set of sequences, and Hypothesis shrinks what either "
        "finds.",
    ),
]
