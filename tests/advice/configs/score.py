"""Scores advice about launch configurations on kernels that were timed on real GPUs.

python tests/advice/configs/score.py            # scores the recordings, no GPU needed
python tests/advice/configs/score.py --read DIR # takes a run of tests/lab/inside/advice.py in
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import tbsched as tb
from lab.inside.kernels.catalogue import KERNELS, Kind, Real
from tbsched.advice.evenness import forced_even
from tbsched.advice.launch_configs import LaunchConfig, LaunchConfigs
from tbsched.advice.reasons.case import Case
from tbsched.advice.reasons.estimate import estimate
from tbsched.advice.reasons.rules import RULES
from tbsched.program.sequence import Launch
from tbsched.sm.code import Code, measured, read_code

HERE = Path(__file__).parent
GPUS = ("h100", "h200")
NEAR = 1.05  # times the best
REALS = {real.name: real for real in KERNELS}


@dataclass(frozen=True)
class Timed:
    """A kernel, its configurations, and the microseconds of each."""

    real: Real
    rows: tuple[LaunchConfig, ...]
    microseconds: tuple[float, ...]
    suggested: int

    @property
    def best(self) -> float:
        return min(self.microseconds)

    def slower(self, chosen: Iterable[int]) -> float | None:
        """How many times the best a choice takes: the median of several; None: there is none."""
        found = [self.microseconds[k] / self.best for k in chosen]
        return statistics.median(found) if found else None


def items_of(real: Real) -> int:
    """What the threads loop over, as a user would say it; 0: a thread per item."""
    if real.kind is Kind.LOOP:
        return real.n
    if real.kind is Kind.ITEMS or real.in_triton:
        return 0
    return real.n * (1024 if "tile" in real.function else real.m)


@functools.cache
def timed(gpu: str) -> tuple[Timed, ...]:
    """The kernels of a recording, with reasons and estimates of all configurations."""
    spec, tables = tb.device(gpu), measured(gpu)
    content = lzma.decompress((HERE / f"{gpu}.jsonl.xz").read_bytes()).decode()
    codes = json.loads(lzma.decompress((HERE / "codes.json.xz").read_bytes()))
    found = []
    for line in content.splitlines()[1:]:
        data = json.loads(line)
        if "failed" in data:
            continue
        real = REALS[data["kernel"]]
        rows = []
        for config in data["configs"]:
            threads = config["threads"]
            static = data["attributes"].get(str(threads)) or data["attributes"]["0"]
            launch = Launch(
                config["blocks"], threads, max(config["registers"], 16),
                config["dynamic"] + static["shared"], local_memory=static["local"],
            )  # fmt: skip
            evenness = forced_even(spec, launch)
            assert evenness.blocks_per_sm == config["resident"], (data["kernel"], threads)
            stored = codes.get(f"{real.function}/{threads}") or codes[f"{real.function}/0"]
            case = Case(spec, launch, evenness, Code(**stored), tables, items_of(real))
            reasons = tuple(rule(case) for rule in RULES)
            rows.append(LaunchConfig(launch, evenness, (), reasons, estimate(case)))
        times = tuple(statistics.median(config["us"]) for config in data["configs"])
        suggested = data["suggested"].get("0") or 128  # Triton's own default
        found.append(Timed(real, tuple(rows), times, suggested))
    return tuple(found)


def advised(each: Timed) -> list[int]:
    """What launch_configs advises."""
    configs = LaunchConfigs("", tb.Kernel(1, 32), each.rows)
    return [each.rows.index(configs.advised)] if configs.advised else []


def nearest(each: Timed, threads: int) -> list[int]:
    """The block size next to one; where any grid works, the one that fills the GPU once."""

    def far(k: int) -> tuple[float, float]:
        launch, evenness = each.rows[k].launch, each.rows[k].evenness
        assert evenness is not None
        fill = launch.blocks / (evenness.blocks_per_sm * evenness.sms)
        return abs(np.log2(launch.threads / threads)), abs(np.log2(fill)) * (
            each.real.kind is Kind.LOOP
        )

    return [min(range(len(each.rows)), key=far)]


def holding(each: Timed, rule: str, holds: bool = True) -> list[int]:
    """The configurations that a rule is for, or against."""
    return [
        k
        for k, row in enumerate(each.rows)
        if any(reason.rule == rule and reason.holds is holds for reason in row.reasons)
    ]


def without_skew(each: Timed) -> list[int]:
    """S_lc but for its last condition."""
    rules = ("one wave", "whole waves", "certain spread", "balance")
    return sorted(set.intersection(*(set(holding(each, rule)) for rule in rules)))


CHOICES: dict[str, Callable[[Timed], list[int]]] = {
    "advised": advised,
    "always 256 threads": lambda each: nearest(each, 256),
    "the driver's suggestion": lambda each: nearest(each, each.suggested),
    "any": lambda each: list(range(len(each.rows))),
    "S_lc, the thesis's filter": lambda each: holding(each, "S_lc"),
    "S_lc without T_b": without_skew,
}


def scored(kernels: list[Timed], choose: Callable[[Timed], list[int]]) -> dict[str, Any]:
    """How a choice does: of all kernels, how often it says something, and how good that is."""
    found = [slow for each in kernels if (slow := each.slower(choose(each))) is not None]
    return {
        "kernels": len(found),
        "median": statistics.median(found) if found else None,
        "mean": statistics.mean(found) if found else None,
        "near": sum(slow <= NEAR for slow in found) / len(kernels),
        "worst": max(found, default=None),
    }


def rule_scores(kernels: list[Timed]) -> Iterator[dict[str, Any]]:
    """Returns, for each rule, in how many of the pairs of configurations that it tells apart the
    one that it is for is faster, and whether the best configuration is one that it is for."""
    for rule in RULES:
        rights, bests = [], []
        for each in kernels:
            good, bad = holding(each, rule.name), holding(each, rule.name, holds=False)
            if not good or not bad:
                continue
            times = np.array(each.microseconds)
            wins = (times[good][:, None] < times[bad][None, :]).mean()
            rights.append(float(wins))
            bests.append(int(times.argmin()) in good)
        yield {
            "rule": rule.name,
            "kernels": len(rights),
            "right": statistics.mean(rights) if rights else None,
            "best": statistics.mean(bests) if bests else None,
        }


def tables(gpu: str, held_out: bool) -> str:
    """What is printed of a GPU."""
    kernels = [each for each in timed(gpu) if each.real.held_out is held_out]
    lines = [f"{gpu}, {len(kernels)} kernels, {'only scored' if held_out else 'looked at'}"]
    for name, choose in CHOICES.items():
        row = scored(kernels, choose)
        numbers = "  ".join(
            f"{key} {'-' if value is None else f'{value:.3f}' if key != 'kernels' else value}"
            for key, value in row.items()
        )
        lines.append(f"  {name:28} {numbers}")
    for row in rule_scores(kernels):
        right = "-" if row["right"] is None else f"{row['right']:.2f}"
        best = "-" if row["best"] is None else f"{row['best']:.2f}"
        lines.append(f"  {row['rule']:28} {row['kernels']:3} kernels  right {right}  best {best}")
    return "\n".join(lines)


def read(folder: Path, gpu: str) -> None:
    """Takes a run in: the timings, and what nvdisasm and the walk make of each kernel."""
    (HERE / f"{gpu}.jsonl.xz").write_bytes(lzma.compress((folder / "timings.jsonl").read_bytes()))
    cubins = sorted((folder / "cubins").glob("*.cubin"))
    known = {real.function for real in KERNELS}

    def codes(path: Path) -> dict[str, Any]:
        stem, _, threads = path.stem.partition(".")
        content = path.read_bytes()
        names = [name for name in known if name == stem or f".text.{name}\0".encode() in content]
        return {
            f"{name}/{threads or 0}": asdict(read_code((content, name), measured(gpu), 4))
            for name in names
        }

    with ThreadPoolExecutor(2) as pool:
        every = {key: row for found in pool.map(codes, cubins) for key, row in found.items()}
    text = json.dumps(every, separators=(",", ":"))
    (HERE / "codes.json.xz").write_bytes(lzma.compress(text.encode()))


def main() -> int:
    """Prints the scores, or takes a run in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", choices=GPUS, nargs="*", default=list(GPUS))
    parser.add_argument("--read", type=Path, metavar="DIR", help="what advice.py wrote")
    parser.add_argument("--looked-at", action="store_true", help="the other kernels")
    arguments = parser.parse_args()
    for gpu in arguments.gpu:
        if arguments.read:
            read(arguments.read, gpu)
        print(tables(gpu, not arguments.looked_at))
    return 0


if __name__ == "__main__":
    sys.exit(main())
