"""Scores predictions of pairs of real kernels, from recordings, without a GPU.

python tests/sm/neighbours/score.py RECORDING.jsonl.xz NCU.csv.xz --device h200

For every pair: the makespan that was measured, and those predicted with and without interference.
Durations of blocks and profiles are those of each kernel alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import tbsched as tb

CARVEOUT = 100  # of all kernels that were recorded
THREADS = 256
ORDER_GAP = 1e-6  # seconds between the two launches, at the gate
PROFILED = {"half": "one", "one": "one", "two": "one", "four": "whole", "whole": "whole"}


@dataclass(frozen=True)
class Score:
    """A pair's names and sizes, and its seconds."""

    pair: tuple[str, str]
    measured: float
    without: float
    predicted: float

    @property
    def errors(self) -> tuple[float, float]:
        """Errors as shares of the makespan: without interference, and with it."""
        return abs(self.without / self.measured - 1), abs(self.predicted / self.measured - 1)


class Recording:
    """Recorded pairs of kernels, and what Nsight Compute measured of each kernel alone.

    Args:
        rows: of the recording.
        profiles: of kernels, each of the launches of one block per SM and of all.
        device: the name of the GPU that was recorded.
    """

    def __init__(
        self, rows: list[dict[str, Any]], profiles: Iterable[tb.sm.KernelProfile], device: str
    ) -> None:
        self.device = device
        self.lone = {(row["name"], row["size"]): row for row in rows if row["kind"] == "lone"}
        self.pairs = [row for row in rows if row["kind"] == "pair"]
        self._profiles = {(each.name, each.blocks): each for each in profiles}

    def score(self, row: dict[str, Any]) -> Score:
        """Returns the score of one pair, in the order in which most of its runs began."""
        runs = np.array(row["runs"])
        second_first = runs[:, 1, 0] < runs[:, 0, 0]
        swapped = bool(np.median(second_first) > 0.5)
        measured = float(np.median(runs[second_first == swapped, :, 3].max(axis=1))) * 1e-9
        of = row["of"][::-1] if swapped else row["of"]
        launches = [self._launch(name, size, number) for number, (name, size, _) in enumerate(of)]
        seq = tb.Sequence(launches)
        profiles = {
            launch.name: self._profile(name, size, launch.blocks)
            for launch, (name, size, _) in zip(launches, of, strict=True)
        }
        times = [0.0, ORDER_GAP]
        without = tb.predict(seq, self.device, issue_times=times)
        found = tb.predict(
            seq, self.device, issue_times=times, interference="measured", profiles=profiles
        )
        names = f"{of[0][0]} {of[0][1]}", f"{of[1][0]} {of[1][1]}"
        return Score(names, measured, without.makespan, found.makespan)

    def _launch(self, name: str, size: str, stream: int) -> tb.Launch:
        row = self.lone[name, size]
        return tb.Launch(
            row["grid"], THREADS, row["registers"], shared_memory=row["shared_memory"],
            carveout=CARVEOUT, stream=stream, duration=tuple(1e-9 * ns for ns in row["blocks"]),
            name=f"{name} {size} {stream}",
        )  # fmt: skip

    def _profile(self, name: str, size: str, blocks: int) -> tb.sm.KernelProfile:
        grid = self.lone[name, PROFILED[size]]["grid"]
        return self._profiles[name, grid].scaled(blocks)


def load_rows(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a recording."""
    return [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]


@cache
def load_profiles(path: Path, device: str) -> tuple[tb.sm.KernelProfile, ...]:
    """Returns the profiles of a packed report of ncu, made on that GPU."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "ncu.csv"
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        return tb.sm.load_ncu(plain, device)


def shown(scores: list[Score]) -> Iterator[str]:
    """The figures of many pairs."""
    errors = np.array([each.errors for each in scores])
    for name, own in zip(("without", "with"), errors.T, strict=True):
        low, middle, high = np.quantile(own, [0.25, 0.5, 0.9])
        yield (
            f"{name:8} median {middle:6.1%}  mean {own.mean():6.1%}  quarter {low:6.1%}  "
            f"nine tenths {high:6.1%}"
        )
    closer = float(np.mean(errors[:, 1] < errors[:, 0]))
    yield f"pairs {len(scores)}; closer with than without: {closer:.0%}"


def main() -> int:
    """Prints figures, and the pairs that are worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path)
    parser.add_argument("ncu", type=Path)
    parser.add_argument("--device", choices=("h100", "h200"), required=True)
    parser.add_argument("--first", type=int, default=0, help="the first pair")
    parser.add_argument("--last", type=int, help="the pair behind the last")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th pair")
    parser.add_argument("--worst", type=int, default=0, help="how many to list")
    given = parser.parse_args()
    profiles = load_profiles(given.ncu, given.device)
    recording = Recording(load_rows(given.recording), profiles, given.device)
    pairs = recording.pairs[given.first : given.last : given.every]
    scores = [recording.score(row) for row in pairs]
    print("\n".join(shown(scores)))
    busy = [each for each in scores if each.errors[0] > 0.1]
    print("of those that are more than 10 % off without:")
    print("\n".join(shown(busy)))
    for each in sorted(scores, key=lambda score: -score.errors[1])[: given.worst]:
        us = [f"{1e6 * value:7.0f}" for value in (each.measured, each.without, each.predicted)]
        print(*us, " | ".join(each.pair))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
