"""``tbsched coresident``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

import typer

from tbsched import views
from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.coresident import coresident as asked_together
from tbsched.cli.console import AGREEMENT, DISAGREEMENT, show, show_json
from tbsched.cli.options import (
    AsJson,
    Connections,
    FromTime,
    Match,
    OnlyStream,
    OptionalSeconds,
    OwnDeviceName,
    Part,
    PolicyName,
    SequenceFile,
    ToTime,
)
from tbsched.cli.together.given import sequences_and_device
from tbsched.cli.together.on_gpu import Ran, check_on_gpu, ran_data, ran_words
from tbsched.prediction.together.search import PLAYS


def coresident(
    sequences: SequenceFile,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Which launches must be resident together, such as 0,1;2 for two groups; all by "
            "default. Copies, values and calls have the numbers behind those of the launches."
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            help="Pairs of launches, such as 0,1;0,2: the program issues the second of each when "
            "all blocks of the first have started, or, if it is no launch, when it is over."
        ),
    ] = None,
    fixes: Annotated[
        bool, typer.Option(help="Look for changes that make it safe, unless it is.")
    ] = True,
    device: OwnDeviceName = None,
    policy: PolicyName = None,
    connections: Connections = None,
    plays: Annotated[
        int,
        typer.Option("--plays", help="Stop after this number of predictions.", metavar="COUNT"),
    ] = PLAYS,
    seconds: OptionalSeconds = None,
    on_gpu: Annotated[
        bool,
        typer.Option(
            "--on-gpu",
            help="Run what strands a block, and each fix, on the GPU with real barriers. Each run "
            "has a time limit.",
        ),
    ] = False,
    start: FromTime = None,
    end: ToTime = None,
    stream: OnlyStream = None,
    match: Match = None,
    as_json: AsJson = False,
) -> int:
    """Say whether kernels that wait for each other are resident together in every order.

    If they are not, the answer has the fewest events that strand a block, and what to change. The
    exit status is 0 if they are safe, and 1 if they are not, or if nobody knows.

    Example: 128 workers and 16 schedulers wait for each other. The file two.json has

    \b
      [{"launch":{"blocks":16,"threads":128,"registers":64}},
       {"launch":{"blocks":128,"threads":256,"registers":64,
                  "shared_memory":204800}}]

      tbsched coresident two.json

      tbsched coresident two.json --groups "0;1" --on-gpu
    """
    programs, spec = sequences_and_device(sequences, device, Part(start, end, stream, match))
    answers = []
    begin, remaining_seconds = time.monotonic(), seconds
    for sequence in programs:
        answers.append(
            asked_together(
                sequence, spec, groups=_number_lists("--groups", groups), fixes=fixes,
                policy=policy, after=[(a, b) for a, b in _pairs(after)], connections=connections,
                plays=plays, seconds=remaining_seconds,
            )
        )  # fmt: skip
        if seconds is not None:  # of all sequences together
            remaining_seconds = max(seconds - (time.monotonic() - begin), 0.0)
    queues = spec.hardware_queues if connections is None else connections
    meant = replace(spec, hardware_queues=queues)
    ran = [check_on_gpu(answer, meant) if on_gpu else None for answer in answers]
    if as_json:
        pairs = zip(answers, ran, strict=True)
        show_json({"sequences": [_data(answer, runs) for answer, runs in pairs]})
    else:
        for answer, runs in zip(answers, ran, strict=True):
            show(answer)
            show("" if runs is None else f"\n{ran_words(runs)}\n")
    wrong = any(run.agrees is False for runs in ran for run in runs or ())
    safe = all(answer.safe for answer in answers)
    return AGREEMENT if safe and not wrong else DISAGREEMENT


def _data(answer: Coresidency, runs: list[Ran] | None) -> dict[str, object]:
    return {**views.data(answer), "gpu": None if runs is None else ran_data(runs)}


def _number_lists(option: str, text: str | None) -> list[list[int]] | None:
    """Returns ``0,1;2`` as lists of numbers."""
    if text is None:
        return None
    try:
        return [[int(item) for item in part.split(",")] for part in text.split(";")]
    except ValueError:
        raise ValueError(f"{option}: numbers such as 0,1;2 are needed, got {text!r}") from None


def _pairs(text: str | None) -> list[list[int]]:
    """Returns the pairs of numbers in the value of ``--after``, such as ``0,1;0,2``."""
    pairs = _number_lists("--after", text) or []
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--after: pairs such as 0,1;0,2 are needed, got {text!r}")
    return pairs
