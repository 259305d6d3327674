"""The presets beside the paper's tables of its workloads, and how their knobs are found.

    python tests/sm/owl/presets.py         writes the table of docs/explanation/owl.md
    python tests/sm/owl/presets.py --fit   finds the knobs: python/tbsched/sm/presets.toml

Nothing here runs a scheduler but round robin, which is the paper's baseline.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.progress import track

import tbsched as tb
from helpers import ROOT
from sm.claims import PAGE, write_tables
from tbsched.sm.parameters import Config
from tbsched.storage import replacing

GPU = tb.sm.config("owl-table1")
BOUNDLESS = {"l1_bytes": 1 << 21, "l1_ways": 64}  # more than the blocks of a core ever read
TABLES = tomllib.loads((Path(__file__).parent / "tables.toml").read_text("utf-8"))
TYPE_1: dict[str, dict[str, float]] = TABLES["type_1"]
PRESETS = ROOT / "python" / "tbsched" / "sm" / "presets.toml"
HEAD = """\
# The 19 memory-intensive applications of OWL (ASPLOS 2013): knobs with which they are like its
# tables of them. Written by tests/sm/owl/presets.py --fit, which says by which rule.
"""
ROUNDS = 6
NEAR = 3.0  # points, or percent, that are near enough


@dataclass(frozen=True)
class Like:
    """What the paper's tables say of a workload: with round robin, but the last two."""

    pmem: float
    cinv: float  # %
    reuse: float  # % of the L1 misses that would hit if L1 had no limit
    blocks_per_row: float
    consecutive: float  # %


def printed(name: str) -> Like:
    """As the paper has it. What its locality scheduler saves must be there to be saved."""
    row = TYPE_1[name]
    return Like(
        row["pmem"], row["cinv"], row["locality"], row["blocks_per_row"], row["consecutive"]
    )


def rows_shared(kernel: tb.sm.Workload, gpu: Config = GPU) -> tuple[float, float]:
    """As Table 4 has it, the mean over the rows of the DRAM.

    Returns:
        How many blocks access a row, and of these, in %, those whose number is that of another one
        plus or minus one.
    """
    block, line = kernel.lines_of_blocks(gpu["line_bytes"])
    address = line * gpu["line_bytes"]
    number, within = np.divmod(address, gpu["channel_interleave"])
    turn, controller = np.divmod(number, gpu["controllers"])
    row = (turn * gpu["channel_interleave"] + within) // gpu["row_bytes"]
    number, of_row = np.divmod(
        np.unique((row * gpu["controllers"] + controller) * kernel.blocks + block), kernel.blocks
    )
    next_to = (np.diff(number) == 0) & (np.diff(of_row) == 1)
    beside = np.append(next_to, False) | np.insert(next_to, 0, False)
    _, which, blocks = np.unique(number, return_inverse=True, return_counts=True)
    shares = np.bincount(which, beside) / blocks
    return float(blocks.mean()), 100 * float(shares.mean())


def measured(kernel: tb.sm.Workload, *, reuses: bool = True) -> Like:
    """A workload on the simulated GPU."""
    base, perfect = (tb.sm.simulate(kernel, name, GPU) for name in ("round_robin", "perfect_l1"))
    saved = 0.0
    if reuses:
        boundless = tb.sm.simulate(kernel, "round_robin", GPU.changed(**BOUNDLESS))
        saved = 1 - boundless.counts["l1_misses"] / base.counts["l1_misses"]
    return Like(perfect.ipc / base.ipc, 100 * base.inactive, 100 * saved, *rows_shared(kernel))


def lines_of(like: Like) -> int:
    """Lines of a load.

    With a perfect L1, so many slots issue: PMEM * (1 - CINV). The others stay empty because L1
    takes a cycle for each line: more than four take a second slot, and more than eight a third.
    """
    issuing = like.pmem * (1 - like.cinv / 100)
    return 2 if issuing >= 0.9 else 5 if issuing >= 0.5 else 9


def fixed(name: str, like: Like) -> dict[str, int]:
    """The knobs that do not depend on a simulation."""
    lines = lines_of(like)
    knobs = {"lines": lines, "blocks_per_row": round(like.blocks_per_row),
             "consecutive": round(like.consecutive)}  # fmt: skip
    # As many loads as it takes that the share can be reused; and few, to be fast.
    warps, loads = 4, 40 if lines == 2 else 16
    if name == "WP":  # a core has room for 6 warps of it
        warps, loads = 6, 40
        knobs |= {"warps_per_block": 6, "blocks_per_core": 1, "blocks": 56}
    before = 12288 / (64 * lines * warps)
    return knobs | {"loads": max(loads, int(np.ceil(before / (1 - like.reuse / 100))))}


def fitted(name: str) -> dict[str, int]:
    """The knobs with which a preset is most like its rows of the tables.

    It begins with those that it has, and ends when all figures are near enough. Each round changes
    a knob by what is missing of its figure: ``near`` or, where a load has two lines, ``compute``
    for PMEM; ``compute`` for CINV; ``reuse`` for what L1 could save.
    """
    like = printed(name)
    knobs = fixed(name, like)
    slots = -(-knobs["lines"] // 4)  # for which a load keeps L1 busy
    coalesced = knobs["lines"] == 2
    now = tomllib.loads(PRESETS.read_text("utf-8"))[name]
    compute = now["compute"] + now["more_compute"] / 100
    far = 100 / (100 + now["near"])
    reuse = float(now["reuse"])
    best: tuple[float, dict[str, int]] = (np.inf, {})
    for _ in range(ROUNDS):
        hundredths = max(0, round(100 * compute))
        tried = {
            **knobs, "near": max(0, round(100 / far - 100)), "compute": hundredths // 100,
            "more_compute": hundredths % 100, "reuse": min(99, max(0, round(reuse))),
        }  # fmt: skip
        found = measured(tb.sm.preset(name, **tried), reuses=like.reuse > 1)
        off = {
            "pmem": 100 * (found.pmem / like.pmem - 1), "cinv": found.cinv - like.cinv,
            "reuse": found.reuse - like.reuse,
        }  # fmt: skip
        wrong = sum(map(abs, off.values()))
        best = min(best, (wrong, tried), key=lambda pair: pair[0])
        print(name, {key: round(value, 1) for key, value in off.items()}, tried)
        free = [off["pmem"], off["reuse"], *(() if coalesced else (off["cinv"],))]
        if all(abs(value) < NEAR for value in free):
            break
        if coalesced:
            compute = max(0.0, (compute + 1) * found.pmem / like.pmem - 1)
        else:
            far = min(1.0, max(0.002, far * like.pmem / found.pmem))
            issuing = found.pmem * (1 - found.cinv / 100)
            compute += 0.8 * slots * (like.pmem * (1 - like.cinv / 100) - issuing)
        if like.reuse > 1:
            reuse -= 0.8 * off["reuse"]
    return best[1]


def preset_table() -> str:
    """The paper's figure and ours, of each preset and on average."""
    lines = [
        "| preset | PMEM | CINV, % | reuse, % | blocks per row | consecutive, % |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    ]
    both = [(printed(name), measured(tb.sm.preset(name))) for name in track(tb.sm.presets())]
    for name, pair in zip(tb.sm.presets(), both, strict=True):
        lines.append(row_of(name, *pair))
    means = [Like(*np.mean([vars_of(pair[side]) for pair in both], 0)) for side in (0, 1)]
    return "\n".join([*lines, row_of("mean", *means)])


def vars_of(like: Like) -> tuple[float, ...]:
    return like.pmem, like.cinv, like.reuse, like.blocks_per_row, like.consecutive


def row_of(name: str, paper: Like, ours: Like) -> str:
    digits = (2, 0, 0, 0, 0)
    cells: Any = zip(vars_of(paper), vars_of(ours), digits, strict=True)
    return f"| {name} | " + " | ".join(f"{a:.{n}f} / {b:.{n}f}" for a, b, n in cells) + " |"


def main(arguments: list[str]) -> None:
    """Finds the knobs if asked, and writes the table."""
    if "--fit" in arguments:
        text = HEAD
        for name in TYPE_1:
            knobs = fitted(name)
            text += f"\n[{name}]\n" + "".join(f"{key} = {knobs[key]}\n" for key in knobs)
        with replacing(PRESETS) as out:
            out.write(text.encode())
        return
    write_tables(PAGE, {"presets": preset_table()})


if __name__ == "__main__":
    main(sys.argv[1:])
