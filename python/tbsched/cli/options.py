"""Arguments and options that several verbs take."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from tbsched.hardware.catalogue import ATTACHED, ablations, devices
from tbsched.hardware.documented import compute_capabilities
from tbsched.prediction.predict import policies


def complete_device(incomplete: str) -> Iterator[str]:
    """The devices that a shell offers; of one that is named in full, its ablations too."""
    bases = (*devices(), ATTACHED)
    named = [name for name in bases if incomplete.startswith(name)]
    every = (*bases, *(f"{name}-{each}" for name in named for each in ablations()))
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


FromTime = Annotated[
    float | None,
    typer.Option("--from", help="Of a profile: what starts so many seconds after the first work."),
]
ToTime = Annotated[
    float | None, typer.Option("--to", help="Of a profile: what starts before so many seconds.")
]
OnlyStream = Annotated[
    list[int] | None,
    typer.Option(
        "--stream", help="Of a profile: this stream, by its number there; may be repeated."
    ),
]
Match = Annotated[
    str | None,
    typer.Option(help="Of a profile: kernels in whose names this regular expression is found."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
SequenceFile = Annotated[
    Path,
    typer.Argument(
        help="A trace file (.jsonl, .xz, .gz), a profile (torch.profiler, Nsight Systems' .sqlite) "
        "or JSON with a list of events such as "
        '[{"launch":{"blocks":132,"threads":256,"registers":32}},{"release":0}]; - reads it from '
        "standard input.",
        metavar="SEQUENCES",
    ),
]
OptionalSequenceFile = Annotated[
    Path | None, typer.Argument(help="As for predict.", metavar="SEQUENCES")
]
TraceFile = Annotated[
    Path, typer.Argument(help="A trace file, or a folder of them.", metavar="TRACES")
]
DeviceName = Annotated[
    str,
    typer.Option(
        "--device",
        "-d",
        help="A device, a device with an ablation (h200-no-warp-skip), gpu for the one here, or "
        "the path of a .toml.",
        autocompletion=complete_device,
    ),
]
OwnDeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        help="A device, a device with an ablation (h200-no-warp-skip), gpu for the one here, or "
        "the path of a .toml. By default where a profile was recorded, else h200.",
        autocompletion=complete_device,
    ),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        help="A policy; the device's own by default.",
        autocompletion=complete_policy,
    ),
]
GpuIndex = Annotated[int, typer.Option("--gpu", "-g", help="Which GPU, as CUDA counts them.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the traces to this file, too.")
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
        help="Draw launches until the next does not fit, and release none, as the ICCD 2023 paper.",
    ),
]
WithoutOption = Annotated[
    list[Drawn] | None,
    typer.Option(
        help="Do not draw these; may be given several times. A driver without green contexts needs "
        "--without partitions."
    ),
]


GpusOption = Annotated[
    str | None,
    typer.Option(
        help="Run on these GPUs of this host, a process for each: all, or numbers such as 0,1.",
        metavar="all|0,1",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Run in so many processes; not on a GPU, which takes --gpus."),
]
BeginOption = Annotated[
    int,
    typer.Option(
        help="The number of the first sequence of the seed: a campaign of 1,000 from 1,000 on "
        "follows one of 1,000 from 0 on."
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
        help="native: NumPy draws, while the GPU runs what was drawn before. hypothesis: one by "
        "one, slower, with variations of earlier draws. auto: native for a GPU and a model, else "
        "hypothesis. Both draw from the same set of sequences, and Hypothesis shrinks what either "
        "finds."
    ),
]
