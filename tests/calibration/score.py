"""Scores calibrations of hidden devices: values told, told wrong, and told of those that can be.

cd tests && python -m calibration.score --first 1 --count 100 --most-sms 256 --noise 0.01

A value can be told apart on a device if no other device is known that differs in it and agrees with
the device on all sequences of a pool: the first of a campaign's draws, and directed ones of the
probes. Other devices are the witnesses of the calibration, and near values of the field alone.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

import tbsched as tb
from calibration.hidden import SLACK_NS, Hidden, drawn, effective, same, wrong
from tbsched.calibration import Calibration
from tbsched.calibration.asking.evidence import Evidence
from tbsched.calibration.doubt.last_look import LEFT_OUT
from tbsched.calibration.doubt.other_values import other_values
from tbsched.calibration.draft import with_values
from tbsched.calibration.finding import TOLD
from tbsched.campaigns.space.draws import Draws
from tbsched.campaigns.space.options import SequenceOptions
from tbsched.hardware.device_fields import FIELDS

BY_PATH = {item.path: item for item in FIELDS}
POOL = 400  # of a campaign's draws


@dataclass
class Score:
    """Over some hidden devices."""

    devices: int = 0
    told: int = 0
    values: int = 0
    certified: int = 0
    told_of_pooled: int = 0
    without_witness: int = 0
    failed: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        missed = self.missed.total()
        share = 100 * self.told_of_pooled / max(self.told_of_pooled + missed, 1)
        return (
            f"{self.devices} devices, {self.told} of {self.values} values told, "
            f"{len(self.wrong)} told wrong, {self.without_witness} untold without a witness, "
            f"{self.certified} certified, {len(self.failed)} failed: {self.failed}\n"
            f"where a pool was drawn: {self.told_of_pooled} told, {missed} more can be told apart, "
            f"{share:.1f} %\n"
            f"missed: {dict(self.missed.most_common())}\nwrong: {self.wrong}"
        )


class Logged(Hidden):
    """Notes what it was asked."""

    def __init__(self, spec: tb.DeviceSpec, noise: float, seed: int) -> None:
        super().__init__(spec, noise, seed)
        self.asked: dict[tb.Sequence, None] = {}

    def observe(self, seq: tb.Sequence, /) -> tb.Trace:
        seen = super().observe(seq)
        self.asked[seq] = None
        return seen


class Timed:
    """When the launches of the probes' timed sequences start on the true device."""

    def __init__(self, spec: tb.DeviceSpec, sequences: list[tb.Sequence]) -> None:
        self._shown = [(sequence, starts(spec, sequence)) for sequence in sequences]

    def explained_by(self, other: tb.DeviceSpec) -> bool:
        """Whether each starts at nearly the same time on another one."""
        return all(_alike(other, sequence, shown) for sequence, shown in self._shown)


def _alike(other: tb.DeviceSpec, sequence: tb.Sequence, shown: np.ndarray) -> bool:
    try:
        found = starts(other, sequence)
    except ValueError:  # it refuses what the true device took
        return False
    return bool(np.abs(found - shown).max() <= SLACK_NS)


def starts(spec: tb.DeviceSpec, sequence: tb.Sequence) -> np.ndarray:
    """Returns each launch's start, in nanoseconds from the one before."""
    found = np.array([p.start_ns.min() for p in tb.predict(sequence, spec, host=0.0)])  # type: ignore[union-attr]
    return np.diff(found)


def pool(spec: tb.DeviceSpec, asked: list[tb.Sequence], seed: int) -> Evidence:
    """What the true device shows of the probes' sequences and of a campaign's draws."""
    timed = Timed(spec, [sequence for sequence in asked if sequence.timed])
    asked = [sequence for sequence in asked if not sequence.timed]
    everything = SequenceOptions.everything(spec).without(LEFT_OUT)
    drawn_ones = [draw.sequence for draw in islice(Draws(spec, everything, seed), POOL)]
    sequences = [sequence for sequence in asked if blocks(sequence) < 20_000] + drawn_ones
    taken = [sequence for sequence in sequences if takes(spec, sequence)]
    return Evidence([(tb.predict(s, spec),) for s in taken], quantities=[timed])


def takes(spec: tb.DeviceSpec, sequence: tb.Sequence) -> bool:
    """Whether the device does not refuse it: no GPC may hold so large a cluster."""
    try:
        tb.predict(sequence, spec)
    except ValueError:
        return False
    return True


def blocks(sequence: tb.Sequence) -> int:
    return sum(launch.blocks for launch in sequence.launches)


def can_be_told(calibration: Calibration, path: str, spec: tb.DeviceSpec, seen: Evidence) -> bool:
    """Whether the pool tells all known devices with another value from the true one."""
    item = BY_PATH[path]
    changes = [{item.name: value} for value in islice(other_values(spec, path), 12)]
    changes += [{item.name: value} for value in calibration.finding(path).rivals[:12]]
    changes += slow_hosts(spec)
    # Other TPCs are in other GPCs, or in none that is known.
    changes += [{"gpcs": calibration.spec.gpcs, **change} for change in changes]
    for witness in calibration.witnesses:
        names = [BY_PATH[each].name for each, _ in witness.changes]
        for device in (witness.device, calibration.spec):
            changes.append({name: _of(device, name) for name in names})
            # All that the two are unsure of.
            if witness.path == path:
                changes.append({each.name: each.of(device) for each in FIELDS if each.section})
    truth = effective(spec, path)
    for change in changes:
        try:
            other = with_values(spec, **change)
        except ValueError:
            continue
        if same(path, effective(other, path), truth):
            continue
        if seen.times_explained_by(other) and seen.explained_by(other):
            return False
    return True


def slow_hosts(spec: tb.DeviceSpec) -> list[dict[str, object]]:
    """A part of the completion latency is the host's, or the other way round."""
    return [
        {
            "completion_latency_ns": spec.completion_latency_ns - part,
            "host_write_ns": spec.host_write_ns + part,
            "host_watch_ns": spec.host_watch_ns + part,
            "launch_latency_ns": spec.launch_latency_ns + part,
        }
        for part in (spec.completion_latency_ns // 2, -spec.host_write_ns)
        if part
    ]


def _of(device: tb.DeviceSpec, name: str) -> object:
    return next(item for item in FIELDS if item.name == name).of(device)


def score_one(score: Score, seed: int, asked: argparse.Namespace) -> None:
    spec = drawn(seed, asked.most_sms)
    noise = asked.noise * (seed % 3) / 2
    gpu = Logged(spec, noise, seed)
    found = tb.calibrate(gpu, 3600.0, sequences=100, seed=seed, progress=False)
    score.devices += 1
    score.values += len(found.report)
    score.told += len(found.told)
    score.wrong += [f"{seed} {line}" for line in wrong(found, spec)]
    score.certified += found.certificate.holds
    witnessed = {witness.path for witness in found.witnesses}
    untold = [finding for finding in found.report if finding.kind != TOLD]
    score.without_witness += sum(finding.path not in witnessed for finding in untold)
    if seed % asked.pool_every:
        return
    score.told_of_pooled += len(found.told)
    seen = pool(spec, list(gpu.asked), seed)
    for finding in untold:
        if can_be_told(found, finding.path, spec, seen):
            score.missed[finding.path] += 1
            because = finding.because.partition("\n")[0]
            print("  missed", seed, finding.path, finding.value, because, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--first", type=int, default=1, help="the first device")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--most-sms", type=int, default=40)
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        help="rate of each kind; a third of the devices has none, a third half",
    )
    parser.add_argument(
        "--pool-every",
        type=int,
        default=1,
        help="so many devices: of one, what can be told apart is counted",
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="stops after so long")
    asked = parser.parse_args()
    score, start = Score(), time.monotonic()
    for seed in range(asked.first, asked.first + asked.count):
        if time.monotonic() - start > asked.seconds:
            break
        try:
            score_one(score, seed, asked)
        except Exception:
            score.failed.append(seed)
            traceback.print_exc(limit=-2)
        if score.devices % 25 == 0:
            print(f"{time.monotonic() - start:.0f} s: {score}", flush=True)
    print(score)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
