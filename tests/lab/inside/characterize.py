"""Measures the instructions of the GPU here: throughput, waits, warps needed and skew.

python tests/lab/inside/characterize.py --out report --seconds 300

Writes ``runs.jsonl`` (every run; gone on with if it is there), ``runs.jsonl.xz``, the tables as
``characterization.txt`` and ``.json``, and prints them. ``--model`` puts a literal SM in the place
of the GPU, to rehearse; ``--loops`` compiles and proves every loop, and needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import tbsched as tb
from lab.script import parse
from sm.characterization.model_sm import Class, ModelSm
from tbsched import views
from tbsched.sm.characterization import Compiled, Mode, Wanted

# What the literal SM is told; the names are opcodes'.
MODEL = {
    "fp32.fma": Class(4, 1),
    "fp64.fma": Class(8, 2),
    "special.ex2": Class(18, 8, waits=True),
    "mma.f16": Class(33, 8),
}


def main() -> int:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="for how long")
    parser.add_argument("--opcodes", nargs="*", help="names; all by default")
    parser.add_argument("--model", action="store_true", help="a literal SM plays the GPU")
    parser.add_argument("--loops", metavar="SM", help="only prove the loops, for such as sm_90")
    arguments = parse(parser)
    if arguments.loops:
        return prove(arguments.opcodes or list(tb.sm.OPCODES), arguments.loops)
    opcodes = arguments.opcodes or (list(MODEL) if arguments.model else None)
    start = time.monotonic()
    found = tb.sm.characterize(
        ModelSm(MODEL) if arguments.model else 0,
        opcodes,
        arguments.seconds,
        raw=arguments.out / "runs.jsonl",
        warps=(1, 2, 4, 8, 16, 32, 33, 64) if arguments.model else None,
        progress=False,
    )
    content = (arguments.out / "runs.jsonl").read_bytes()
    (arguments.out / "runs.jsonl.xz").write_bytes(lzma.compress(content))
    (arguments.out / "characterization.txt").write_text(f"{found}\n", "utf-8")
    (arguments.out / "characterization.json").write_text(json.dumps(views.data(found)), "utf-8")
    print(found)
    print(f"{time.monotonic() - start:.0f} s, {len(content):,} bytes of runs")
    return 1 if any(each.failed for each in found.figures) else 0


def prove(opcodes: list[str], architecture: str) -> int:
    """Compiles and proves all loops of all opcodes."""
    rows = [tb.sm.OPCODES[name] for name in opcodes]
    workshop = Compiled(rows, architecture)
    for row in rows:
        reason = workshop.reason(row)
        if reason:
            print(reason)
            continue
        wanted = [Wanted(row.name, mode, d) for mode in Mode for d in workshop.distances(row, mode)]
        made = workshop.loops(row, wanted)
        print(f"{row.name}: {len(made)} loops of {row.sass} are as wanted")
    return 1 if any(workshop.reason(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
