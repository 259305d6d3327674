"""Hangs of programs over two GPUs that are known in public: predicted, hung and fixed on GPUs.

    public.py --out DIR [--runs 20] [--device h200]

Each program is made of launches as of the kernels that hung: of a low-latency all-to-all, of
all-reduces over 24 channels, of a GEMM that works with a collective tile by tile. All are predicted
first, also the fixes that ``tb.coresident`` finds. Then each program and each fix runs so many
times. Writes ``several_public.json``. Exit status 1 if a hang or an end is not as predicted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.script import parse
from lab.several.runs import CONNECTIONS, INTERVAL, device_of, observed, predicted

KB = 1024
GPUS = 2


class Case(NamedTuple):
    """A program that hangs, what is the matter, and changes after which it ends."""

    name: str
    program: tb.Sequence
    fixes: dict[str, tb.Sequence]


def all_to_all(gpu: int, stream: int = 1, blocks: int = 132) -> tb.Launch:
    """One block of 1,024 threads on every SM, as a low-latency all-to-all of experts has."""
    return tb.Launch(
        blocks, 1024, 64, stream=stream, gpu=gpu, host=gpu, non_blocking=True, duration=5e-5,
        meets="all-to-all", name="all-to-all",
    )  # fmt: skip


def all_reduce(gpu: int, name: str, stream: int, *, blocking: bool = False) -> tb.Launch:
    """An all-reduce over 24 channels, as NCCL launches it on two H200s."""
    return tb.Launch(
        24, 544, 96, 103_808, cluster=4, stream=stream, gpu=gpu, host=gpu,
        non_blocking=not blocking, duration=5e-5, meets=name, name=name,
    )  # fmt: skip


def gemm(gpu: int, blocks: int = 132) -> tb.Launch:
    """A persistent GEMM whose tiles wait for those of the other GPU."""
    return tb.Launch(
        blocks, 384, 168, 200 * KB, stream=2, gpu=gpu, host=gpu, non_blocking=True, duration=2e-4,
        meets="gemm", name="gemm",
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """The programs."""
    turned = [all_to_all(0), all_reduce(0, "sum", 0), all_reduce(1, "sum", 0), all_to_all(1)]
    yield Case(
        "a low-latency all-to-all and an all-reduce in other orders",
        tb.Sequence(turned),
        {
            "one order": tb.Sequence([*turned[:2], turned[3], turned[2]]),
            "108 blocks for the all-to-all": tb.Sequence(
                [all_to_all(one.gpu, blocks=108) if one.meets == "all-to-all" else one
                 for one in turned]
            ),
        },
    )  # fmt: skip
    filled = [
        all_reduce(0, "first", 0), gemm(0), all_reduce(0, "second", 1),
        gemm(1), all_reduce(1, "second", 1), all_reduce(1, "first", 0),
    ]  # fmt: skip
    yield Case(
        "two communicators, and a GEMM that fills the GPU",
        tb.Sequence(filled),
        {
            "84 blocks for the GEMM": tb.Sequence(
                [gemm(one.gpu, 84) if one.meets == "gemm" else one for one in filled]
            ),
            "one order": tb.Sequence([*filled[:3], filled[5], filled[3], filled[4]]),
        },
    )
    call = tb.HostCall("first use of a kernel", 1e-3, waits="device")
    small = tb.Launch(8, 128, 32, stream=2, non_blocking=True, duration=1e-5, name="new")
    ranks = [all_reduce(1, "second", 0), all_reduce(1, "first", 0)]
    loaded = [all_reduce(0, "first", 0), call, small, all_reduce(0, "second", 1), *ranks]
    yield Case(
        "a first use of a kernel during a collective waits for the GPU",
        tb.Sequence(loaded),
        {"loaded before": tb.Sequence([call, loaded[0], small, loaded[3], *ranks])},
    )
    copy = tb.Launch(8, 512, 32, stream=1, duration=1e-5, meets="proxy", name="copy of the proxy")
    waits = tb.Launch(
        8, 512, 32, stream=tb.LEGACY_STREAM, duration=1e-5, meets="proxy", name="waits"
    )
    other = tb.Launch(
        8, 512, 32, stream=0, gpu=1, host=1, non_blocking=True, duration=1e-5, meets="proxy",
        name="peer",
    )  # fmt: skip
    free = tb.Launch(
        8, 512, 32, stream=1, non_blocking=True, duration=1e-5, meets="proxy", name=copy.name
    )
    yield Case(
        "a kernel in the legacy stream waits for a copy of its proxy",
        tb.Sequence([waits, copy, other]),
        {"a non-blocking stream for the copy": tb.Sequence([waits, free, other])},
    )


def main() -> int:
    """Predicts all, writes that, then runs all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each program")
    parser.add_argument("--device", default="h200", help="whose model predicts")
    arguments = parse(parser)
    devices = [device_of(arguments.device)] * GPUS
    rows = []
    programs = []
    for case in cases():
        found = tb.coresident(case.program, devices, connections=CONNECTIONS)
        said = {"safe": found.safe, "argument": found.argument}
        own = {f"coresident: {fix.text}": fix.sequence for fix in found.fixes}
        for name, program in {"as it is": case.program, **case.fixes, **own}.items():
            trace = tb.predict(program, devices, launch_interval=INTERVAL, connections=CONNECTIONS)
            row = {"case": case.name, "what": name, "said": said, "predicted": predicted(trace)}
            rows.append(row)
            programs.append(program)
    path = arguments.out / "several_public.json"
    path.write_text(json.dumps(rows, indent=1), "utf-8")
    wrong = 0
    for row, program in zip(rows, programs, strict=True):
        runs = [observed(program, GPUS) for _ in range(arguments.runs)]
        wanted = row["predicted"]
        row["hung"] = sum(bool(run.get("hang")) for run in runs)
        row["as predicted"] = sum(
            all(run.get(key) == wanted[key] for key in ("hang", "begun")) for run in runs
        )
        row["otherwise"] = [run for run in runs if run.get("hang") != wanted["hang"]]
        wrong += len(row["otherwise"])
        print(
            f"{row['case']}; {row['what']}: predicted {'hang' if wanted['hang'] else 'end'}, "
            f"{row['hung']} of {len(runs)} hung, {row['as predicted']} with all blocks as predicted"
        )
    path.write_text(json.dumps(rows, indent=1), "utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
