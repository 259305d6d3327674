"""The campaign that scores a device, in parts whose results are stored as they finish."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any

from tbsched.calibration.asking.elimination import explains
from tbsched.calibration.asking.journal import Journal
from tbsched.calibration.asking.lab import Inconclusive, Lab, Runs
from tbsched.calibration.doubt.last_look import LEFT_OUT
from tbsched.campaigns.campaign import fuzz
from tbsched.campaigns.oracles import OracleLike, open_oracle
from tbsched.campaigns.results import Report, Unstable
from tbsched.campaigns.space.coverage import Coverage
from tbsched.campaigns.tally import NUMBERS, Tally
from tbsched.errors import on_one_line
from tbsched.hardware.device_fields import FIELDS
from tbsched.hardware.spec import DeviceSpec
from tbsched.launcher.observe import Gpu
from tbsched.program.checks import integer, seconds
from tbsched.program.sequence import events_from_data, events_to_data
from tbsched.progress import bar
from tbsched.traces.annotations import MAX_NS, Origin

LEVEL = "exact"
# Sequences per part; a kill loses the results of one part.
_PART = 2048
_PART_OF_MANY = 65_536  # with an executor, which may have many GPUs


@dataclass(frozen=True, slots=True)
class Campaign:
    """Comparison of a device with an oracle, within limits of time and sequences.

    Attributes:
        oracle: the oracle; with an executor, its picklable description.
        seconds: time limit.
        sequences: most sequences.
        seed: seed of the draws.
        executor: runs the parts; None: this process does.
        progress: shows a bar.
    """

    oracle: OracleLike
    seconds: float
    sequences: int
    seed: int
    executor: Executor | None
    progress: bool

    def run(self, spec: DeviceSpec, journal: Journal) -> Report | None:
        """Compares every block until one is wrong; None if nothing could be compared in time.

        Results that the journal holds of the same device and seed are included.

        Raises:
            ValueError: the oracle refuses what the device allows.
        """
        key = _key(spec)
        tally, coverage, begin = Tally(), Coverage(), 0
        for part in journal.parts:
            if (part.get("device"), part.get("seed")) == (key, self.seed):
                counted, covered, took, end = _read(part)
                tally.add(counted)
                coverage.add(covered)
                tally.started -= took
                begin = tally.examples if end is None else end
        start, ended = time.monotonic(), "examples"
        with bar("comparing", max(int(1000 * self.seconds), 1)) as advance:
            while tally.examples < self.sequences:
                remaining_seconds = self.seconds - (time.monotonic() - start)
                if remaining_seconds <= 0:
                    ended = "seconds"
                    break
                if self.progress:
                    advance(int(1000 * (self.seconds - remaining_seconds)))
                size = self._size(self.sequences - tally.examples)
                report = self._part(spec, begin, size, remaining_seconds)
                # A part that ended early may have skipped any of its draws: none is drawn again.
                begin += size
                ended = report.ended
                _add(report, tally, coverage)
                if report.counterexamples:  # not stored: a resumed campaign has to find it again
                    break
                journal.keep_part(
                    {"device": key, "seed": self.seed, "end": begin, **_written(report)}
                )
                if ended != "examples":
                    break
        if not tally.examples:
            return None
        origin = Origin(spec.name, spec.policy, LEVEL, self.seed, shrunk=False)
        return tally.report(origin, coverage, ended)

    def _size(self, remaining_sequences: int) -> int:
        return min(remaining_sequences, _PART if self.executor is None else _PART_OF_MANY)

    def _part(self, spec: DeviceSpec, begin: int, size: int, seconds: float) -> Report:
        """Runs a part of a campaign, and returns its report."""
        return fuzz(
            self.oracle,
            spec,
            level=LEVEL,
            limits=spec,
            max_seconds=seconds,
            max_examples=size,
            max_counterexamples=1,
            seed=self.seed,
            begin=begin,
            without=LEFT_OUT,
            executor=self.executor,
            progress=False,
        )


def elsewhere(oracle: OracleLike) -> OracleLike:
    """Returns the oracle as another process must open it: ``"gpu"`` for an open GPU."""
    return "gpu" if isinstance(oracle, Gpu) else oracle


def disagreeing(oracle: OracleLike, spec: DeviceSpec, campaign: Report) -> list[Runs]:
    """Returns runs of the counterexamples that agree with each other and contradict the device.

    More than two runs must agree: a campaign's two can show the same noise.
    """
    if not campaign.counterexamples:
        return []
    contradicting: list[Runs] = []
    with open_oracle(oracle) as opened:
        lab = Lab(opened, math.inf, lambda _: None)
        lab.disagreed = 1  # so that more runs must agree
        for example in campaign.counterexamples:
            with contextlib.suppress(Inconclusive):
                runs = lab.runs([example.sequence])
                contradicting += [] if explains(spec, runs) else runs
    return contradicting


def _key(spec: DeviceSpec) -> str:
    """Returns a hash that is equal for devices that predict the same.

    Fields with default values are left out, so a new field does not change the keys of old files.
    """
    usual = {x.name: x.default for part in (spec, spec.mechanisms) for x in fields(part)}
    every = {field.path: field for field in FIELDS if field.section}
    values = {
        path: field.of(spec) for path, field in every.items() if field.of(spec) != usual[field.name]
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _written(report: Report) -> dict[str, Any]:
    """Returns the result of a finished part as JSON data."""
    return {
        **{name: getattr(report, name) for name in NUMBERS},
        "unstable": [[events_to_data(case.sequence), case.reason] for case in report.unstable],
        "ways": dict(report.coverage.ways),
        "refused": dict(report.coverage.refused),
        "decided": report.coverage.decided,
        "seconds": report.seconds,
    }


def check_parts(journal: Journal) -> None:
    """Refuses a journal whose results of a campaign cannot be read.

    Raises:
        ValueError: naming the file, and what is wrong.
    """
    for part in journal.parts:
        try:
            _read(part)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"evidence: {journal.name}: what a part of a campaign counted is damaged "
                f"({on_one_line(str(error))}); give another file"
            ) from None


def _read(part: Mapping[str, Any]) -> tuple[Tally, Coverage, float, int | None]:
    """Returns what a part counted, how long it took, and the number of the first draw after it."""
    numbers: dict[str, Any] = {name: _count(part, name) for name in NUMBERS}
    unstable = [Unstable(events_from_data(data), str(reason)) for data, reason in part["unstable"]]
    ways, refused, decided = (
        {name: _count(counts, name) for name in counts}
        for counts in (part["ways"], part["refused"], part["decided"])
    )
    return (
        Tally(**numbers, unstable=unstable),
        Coverage(Counter(ways), Counter(refused), decided),
        seconds("compared", "seconds", part["seconds"]),
        _count(part, "end") if "end" in part else None,
    )


def _count(counts: Mapping[str, Any], name: str) -> int:
    """Returns one of the counts, and refuses what is no count."""
    return integer("compared", name, counts[name], 0, MAX_NS)


def _add(report: Report, tally: Tally, coverage: Coverage) -> None:
    """Adds a campaign's report to the tally and the coverage."""
    counts = {name: getattr(report, name) for name in NUMBERS}
    tally.add(Tally(**counts, unstable=list(report.unstable)))
    tally.counterexamples.update(
        (counterexample.sequence, counterexample) for counterexample in report.counterexamples
    )
    tally.lost += report.lost
    coverage.add(report.coverage)
