"""A part of a campaign as a value, and what comes back from whoever runs it.

The numbers of its sequences say what a unit draws: not who runs it, nor when.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tbsched.campaigns.keeping import Corpus, Unresolved
from tbsched.campaigns.loop import Outputs, assembled
from tbsched.campaigns.options import CampaignOptions
from tbsched.campaigns.oracles import ModelGpu, open_oracle
from tbsched.campaigns.space.coverage import Coverage
from tbsched.campaigns.space.draws import AT_ONCE
from tbsched.campaigns.tally import Tally
from tbsched.campaigns.terminal.progress import Progress
from tbsched.errors import CudaError, NoGpuError
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import close_opened, opened
from tbsched.traces.oracle import Oracle
from tbsched.traces.trace import Trace

# Least number of units of a campaign; none is larger than a process runs in some seconds.
UNITS = 64
LARGEST_OF_TABLES, LARGEST = 16_384, 1024
# A GPU that fails at once must not take the units from those that work.
REST = 1.0  # seconds
GPU_ERRORS = (CudaError, NoGpuError)


@dataclass(frozen=True, slots=True)
class Unit:
    """Sequences of a campaign that one process draws, observes, compares and shrinks.

    Attributes:
        options: a campaign of these sequences alone, without files.
        records: whether its observations are wanted.
        until: when the campaign's time is over, in seconds since 1970; None: never.
        again: what the corpus holds, of the first unit.
        tries: how often it has failed.
    """

    options: CampaignOptions
    records: bool
    until: float | None
    again: tuple[Unresolved, ...] = ()
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """What a unit found.

    Attributes:
        corpus, recorded: what is appended to the files of the campaign.
        error: what ended it, after all of this.
    """

    tally: Tally
    coverage: Coverage
    corpus: list[Trace]
    recorded: list[Trace]
    ended: str
    error: Exception | None = None


def units(
    options: CampaignOptions, unresolved: tuple[Unresolved, ...], until: float | None
) -> Iterator[Unit]:
    """Yields all units of a campaign, in order."""
    size = _size(options)
    end = options.begin + options.max_examples
    for begin in range(options.begin, end, size):
        part = replace(
            options,
            begin=begin,
            max_examples=min(size, end - begin),
            max_seconds=None,
            corpus=None,
            record=None,
            executor=None,
            progress=False,
        )
        yield Unit(
            part, options.record is not None, until, unresolved if begin == options.begin else ()
        )


def run_unit(unit: Unit) -> Done:
    """Runs a unit in this process, and returns its result. A GPU stays open for the next unit.

    Raises:
        whatever opening the oracle raises.
        ValueError, TypeError: what is asked cannot be done.
    """
    options = unit.options
    if unit.until is not None:
        options = replace(options, max_seconds=max(0.0, unit.until - time.time()))
    corpus: list[Trace] = []
    recorded: list[Trace] = []
    outputs = Outputs(Corpus(corpus, unit.again), recorded if unit.records else None, Progress())

    error: Exception | None = None
    try:
        with _opened(options) as oracle:
            campaign = assembled(options, oracle, lambda: outputs)
            try:
                ended = campaign.run()
            except Exception as failure:
                ended, error = "error", failure
    except GPU_ERRORS:
        _rest()
        raise
    if isinstance(error, GPU_ERRORS):
        _rest()
    trials = campaign.trials
    return Done(trials.tally, trials.coverage.found, corpus, recorded, ended, error)


@contextlib.contextmanager
def _opened(options: CampaignOptions) -> Iterator[Oracle]:
    """Yields the oracle of a unit, which other units of this process may use, too."""
    if options.oracle == "gpu":
        yield opened(0)
        return
    with open_oracle(options.oracle) as oracle:
        yield oracle


def _rest() -> None:
    close_opened(0)  # the next unit opens it anew
    time.sleep(REST)


def _size(options: CampaignOptions) -> int:
    """Returns how many sequences a unit has; the number of workers does not matter."""
    models = isinstance(options.oracle, str | os.PathLike | DeviceSpec | tuple | ModelGpu)
    draws_alone = (
        options.strategy is not None or options.target_fullness or options.draw == "hypothesis"
    )
    tables = models and not draws_alone and options.record is None and not options.past_refusal
    wanted = math.ceil(options.max_examples / (UNITS * AT_ONCE)) * AT_ONCE
    return min(wanted, LARGEST_OF_TABLES if tables else LARGEST)
