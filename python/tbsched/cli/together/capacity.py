"""``tbsched capacity``."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from tbsched import views
from tbsched.advice.together.budget import budget as largest_grid
from tbsched.advice.together.capacities import Capacities, capacities
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.capacity import capacity as room_for
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.options import (
    CARVEOUT,
    OTHER_CHOICE,
    THREADS,
    AsJson,
    FromTime,
    Match,
    OnlyStream,
    OwnDeviceName,
    Part,
    PolicyName,
    SequenceFile,
    ToTime,
)
from tbsched.cli.together.given import sequences_and_device
from tbsched.counting import counted
from tbsched.hardware.spec import DeviceSpec
from tbsched.program.checks import integer
from tbsched.program.sequence import Sequence
from tbsched.views.capacity import named


def capacity(
    sequences: SequenceFile,
    launch: Annotated[
        int,
        typer.Option(
            "--launch",
            help="Count blocks of this launch of the sequence; the others are resident, in their "
            "order. -1 is the last one.",
        ),
    ] = -1,
    threads: Annotated[
        list[int] | None, typer.Option("--threads", "-t", help=f"{THREADS} {OTHER_CHOICE}")
    ] = None,
    carveouts: Annotated[
        list[int] | None,
        typer.Option("--carveout", help=f"{CARVEOUT} {OTHER_CHOICE}"),
    ] = None,
    clusters: Annotated[
        list[int] | None,
        typer.Option("--cluster", help=f"Blocks per cluster. {OTHER_CHOICE}"),
    ] = None,
    budget: Annotated[
        bool,
        typer.Option(
            "--budget",
            help="Also the largest grid that is proved to be resident, the others being background "
            "kernels: their blocks come and go. Exit status 1 if that is not known.",
        ),
    ] = False,
    device: OwnDeviceName = None,
    policy: PolicyName = None,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    as_json: AsJson = False,
) -> int:
    """Say how many blocks of a kernel fit beside others, and what binds each class of SMs.

    Blocks of the last launch of a sequence are counted. The others are resident already: they
    arrived in their order, and stay.

    Example: how many workers fit beside 16 schedulers? The file two.json has

    \b
      [{"launch":{"blocks":16,"threads":128,"registers":64}},
       {"launch":{"blocks":128,"threads":256,"registers":64,
                  "shared_memory":204800}}]

      tbsched capacity two.json

      tbsched capacity two.json --carveout 0 --carveout 100 --budget
    """
    programs, spec = sequences_and_device(sequences, device, Part(start, end, stream, match))
    choices = _Choices(threads or None, carveouts or None, clusters or None)
    answers = [_answers(sequence, launch, choices, budget, (spec, policy)) for sequence in programs]
    known = not budget or all(row.grid is not None for row in answers)
    status = AGREEMENT if known else DISAGREEMENT
    if as_json:
        show_json({"sequences": [_data(row) for row in answers]})
        return status
    for row in answers:
        show(row.room)
        if row.table is not None:
            show("")
            show(row.table)
        if budget:
            show("")
            show(_grid_words(row))
        show("")
    return status


def _grid_words(row: _Answers) -> str:
    """Returns a sentence: the largest grid that is sure to be resident."""
    name = named(row.room.launch)
    if row.grid is None:
        return (
            f"in every order of arrival: not known whether any block of {name} is sure to be "
            "resident, while blocks of the others come and go. If they wait for each other, ask "
            "tbsched coresident"
        )
    return (
        f"in every order of arrival {counted(row.grid, 'block')} of {name} are sure to be resident"
    )


class _Choices(NamedTuple):
    threads: list[int] | None
    carveouts: list[int] | None
    clusters: list[int] | None


class _Answers(NamedTuple):
    room: Capacity
    table: Capacities | None
    grid: int | None


def _answers(
    sequence: Sequence,
    index: int,
    choices: _Choices,
    wants_budget: bool,
    spec_and_policy: tuple[DeviceSpec, str | None],
) -> _Answers:
    """Returns how many blocks of a launch fit beside the others, for each question asked."""
    launches = sequence.launches
    index = integer("capacity", "launch", index, -len(launches), len(launches) - 1)
    index %= len(launches)
    launch, beside = launches[index], launches[:index] + launches[index + 1 :]
    spec, policy = spec_and_policy
    table = None
    if any(choices):
        table = capacities(
            launch, spec, threads=choices.threads, carveouts=choices.carveouts,
            clusters=choices.clusters, beside=beside, policy=policy,
        )  # fmt: skip
    grid = largest_grid(launch, spec, beside=beside, policy=policy) if wants_budget else None
    return _Answers(room_for(launch, spec, beside=beside, policy=policy), table, grid)


def _data(row: _Answers) -> dict[str, object]:
    choices = None if row.table is None else views.data(row.table)["choices"]
    return {"capacity": views.data(row.room), "choices": choices, "budget": row.grid}
