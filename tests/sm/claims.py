"""What OWL's authors claim, and what the simulator says, over a sweep of what they do not say.

    python tests/sm/claims.py [NAME...]

It takes ten minutes of processor time, and writes the tables of docs/explanation/owl.md, or those
that are named. Nothing is tuned: what the paper leaves open is changed one thing at a time, and,
for groups and for prefetching, in all ways together.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.progress import track

import tbsched as tb
from tbsched.sm.results import Simulation
from tbsched.storage import replacing

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "owl.md"
SCHEDULERS = (
    "round_robin", "two_level", "cta_aware", "locality", "bank_parallel", "owl", "perfect_l2",
)  # fmt: skip
Runs = dict[str, dict[str, Simulation]]  # by application and scheduler


@dataclass(frozen=True)
class Variant:
    """One thing that the paper leaves open, decided in another way."""

    name: str
    config: dict[str, int] = field(default_factory=dict)
    knobs: dict[str, int] = field(default_factory=dict)


VARIANTS = (
    Variant("as shipped"),
    Variant("prefetching by the first scheme, L2 asked", {"prefetch_stop": 1,
                                                          "prefetch_absent": 1}),
    Variant("L1 takes all lines at once", {"l1_line_cycles": 0}),
    Variant("L1 writes through", {"l1_write_back": 0}),
    Variant("controllers in two rows, slow routers", {"controllers_at_edges": 1,
                                                      "router_cycles": 3}),
    Variant("rows spread over controllers", {"channel_interleave": 256}),
    Variant("hashed banks", {"hash_banks": 1}),
    Variant("a wider memory bus", {"bus_bytes": 16}),
    Variant("blocks of 6 warps", {}, {"warps_per_block": 6, "blocks_per_core": 5, "blocks": 140}),
    Variant("reused lines come back sooner", {}, {"reuse_bytes": 6144}),
)  # fmt: skip
DEGREES = (0, 8, 16, 24, 32)  # lines that are prefetched
# What the paper leaves open of groups, and of prefetching.
GROUPS = {"strict_groups": (0, 1), "refill_to_back": (1, 0), "own_blocks": (0, 1),
          "replay_all": (0, 1)}  # fmt: skip
PREFETCHING = {"channel_interleave": (2048, 256), "prefetch_absent": (0, 1), "bus_bytes": (8, 16),
               "prefetch_stop": (0, 1, 2)}  # fmt: skip


def all_ways(values: dict[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """Every combination."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def runs(variant: Variant, schedulers: Iterable[str] = SCHEDULERS) -> Runs:
    """Every application with each scheduler; of variants every second one, half its blocks."""
    gpu = tb.sm.config("owl-table1").changed(**variant.config)
    whole = variant is VARIANTS[0]
    found: Runs = {}
    for name in tb.sm.presets()[:: 1 if whole else 2]:
        knobs: dict[str, int] = {} if whole else {"blocks": 224, **variant.knobs}
        if name == "WP" and not whole:  # its blocks have 6 warps, of which a core has room for one
            knobs = {"blocks": 28}
        rows = tb.sm.simulate_many(tb.sm.preset(name, **knobs), schedulers, gpu, threads=2)
        found[name] = {row.scheduler: row for row in rows}
    return found


Figure = Callable[[Simulation], float]


def over(a: str, b: str, figure: Figure, apps: str | None = None) -> Callable[[Runs], float]:
    """By how many percent a figure of one scheduler is above that of another, on average."""

    def measured(found: Runs) -> float:
        rows = [found[app] for app in (apps.split() if apps else found)]
        pairs = [(figure(row[a]), figure(row[b])) for row in rows]
        return 100 * statistics.fmean(x / y - 1 for x, y in pairs if y > 0)

    return measured


def by_mean(a: str, b: str, mean: Callable[[list[float]], float]) -> Callable[[Runs], float]:
    """By how many percent the IPC of one scheduler is above that of another, by another mean."""
    return lambda found: 100 * (mean([row[a].ipc / row[b].ipc for row in found.values()]) - 1)


def blocked(a: str, b: str, apps: str | None = None) -> Callable[[Runs], float]:
    """The same for MemoryBlockCycles, which the paper divides by the cycles of round robin."""

    def measured(found: Runs) -> float:
        def cycles(row: dict[str, Simulation], name: str) -> float:
            base = row["round_robin"]
            whole = base.counts["cycles"] * base.config["cores"]
            return row[name].counts["memory_block_cycles"] / whole

        rows = [found[app] for app in (apps.split() if apps else found)]
        return 100 * statistics.fmean(cycles(row, a) - cycles(row, b) for row in rows)

    return measured


def points(a: str, b: str, figure: Figure) -> Callable[[Runs], float]:
    """How many points a share of one scheduler is above that of another, on average."""

    def measured(found: Runs) -> float:
        return 100 * statistics.fmean(figure(row[a]) - figure(row[b]) for row in found.values())

    return measured


def worst(a: str, b: str) -> Callable[[Runs], float]:
    """Of all applications, the one that loses most."""
    return lambda found: 100 * min(row[a].ipc / row[b].ipc - 1 for row in found.values())


def ipc(row: Simulation) -> float:
    return row.ipc


RR, CTA, LOC, BLP = "round_robin", "cta_aware", "locality", "bank_parallel"
L1, L2, BANKS, ROWS, LATENCY, QUEUE = (
    lambda row: row.l1_miss_rate,
    lambda row: row.l2_hit_rate,
    lambda row: row.bank_parallelism,
    lambda row: row.row_hit_rate,
    lambda row: row.latency,
    lambda row: row.queueing,
)
# Words, the paper's percent, and what we measure.
CLAIMS: tuple[tuple[str, float, Callable[[Runs], float]], ...] = (
    ("`cta_aware`: IPC over round robin", 14, over(CTA, RR, ipc)),
    ("`cta_aware`: the same, geometric mean", 11, by_mean(CTA, RR, statistics.geometric_mean)),
    ("`cta_aware`: the same, harmonic mean", 9, by_mean(CTA, RR, statistics.harmonic_mean)),
    ("`locality`: IPC over round robin", 25, over(LOC, RR, ipc)),
    ("`locality`: the same, geometric mean", 21, by_mean(LOC, RR, statistics.geometric_mean)),
    ("`locality`: the same, harmonic mean", 17, by_mean(LOC, RR, statistics.harmonic_mean)),
    ("`bank_parallel`: IPC over round robin", 31, over(BLP, RR, ipc)),
    ("`owl`: IPC over round robin", 33, over("owl", RR, ipc)),
    ("`owl`: the same, geometric mean", 28, by_mean("owl", RR, statistics.geometric_mean)),
    ("`owl`: the same, harmonic mean", 23, by_mean("owl", RR, statistics.harmonic_mean)),
    ("`owl`: IPC over `cta_aware`", 19, over("owl", CTA, ipc)),
    ("`locality`: IPC over `cta_aware`", 11, over(LOC, CTA, ipc)),
    ("`bank_parallel`: IPC over `locality`", 6, over(BLP, LOC, ipc)),
    ("`owl`: IPC over `bank_parallel`", 2, over("owl", BLP, ipc)),
    ("`owl`: L2 hit rate over `bank_parallel`, in points", 12, points("owl", BLP, L2)),
    ("`owl`: the application that loses most over `bank_parallel`", 0, worst("owl", BLP)),
    ("`owl`: IPC over `perfect_l2`", -11, over("owl", "perfect_l2", ipc)),
    ("`perfect_l2`: IPC over `bank_parallel`", 13, over("perfect_l2", BLP, ipc)),
    ("`cta_aware`: time blocked, to round robin", -9, blocked(CTA, RR)),
    ("`locality`: time blocked, to `cta_aware`", -6, blocked(LOC, CTA)),
    ("`bank_parallel`: time blocked, to `locality`", -3, blocked(BLP, LOC)),
    ("`cta_aware`: L1 misses", -8, over(CTA, RR, L1)),
    ("`locality`: L1 misses", -18, over(LOC, RR, L1)),
    ("`bank_parallel`: banks with requests, over `locality`", 11, over(BLP, LOC, BANKS)),
    ("`bank_parallel`: row hits, over `locality`", -14, over(BLP, LOC, ROWS)),
    ("`bank_parallel`: latency, over `locality`", -22, over(BLP, LOC, LATENCY)),
    ("`bank_parallel`: queueing, over `locality`", -12, over(BLP, LOC, QUEUE)),
    ("PVC: `cta_aware` over round robin", 150, over(CTA, RR, ipc, "PVC")),
    ("IIX: `cta_aware` over round robin", 22, over(CTA, RR, ipc, "IIX")),
    ("IIX: `locality` over `cta_aware`", 81, over(LOC, CTA, ipc, "IIX")),
    ("IIX: its L1 misses", -69, over(LOC, CTA, L1, "IIX")),
    ("SCP: `cta_aware` over round robin", 19, over(CTA, RR, ipc, "SCP")),
    ("JPEG: `cta_aware` over round robin", 6, over(CTA, RR, ipc, "JPEG")),
    ("SD2, WP and SPMV: `cta_aware` over round robin", 0, over(CTA, RR, ipc, "SD2 WP SPMV")),
    ("SC: `locality` over `cta_aware`", -4, over(LOC, CTA, ipc, "SC")),
    ("SC: its banks with requests", -26, over(LOC, CTA, BANKS, "SC")),
    ("SC: its row hits", 7, over(LOC, CTA, ROWS, "SC")),
    ("SC: its time blocked", 3, blocked(LOC, CTA, "SC")),
    ("MUM: `locality` over `cta_aware`", -3, over(LOC, CTA, ipc, "MUM")),
    ("MUM: its banks with requests", -10, over(LOC, CTA, BANKS, "MUM")),
    ("MUM: its row hits", 1, over(LOC, CTA, ROWS, "MUM")),
    ("SD2: `locality` over `cta_aware`", 7, over(LOC, CTA, ipc, "SD2")),
    ("SD2: its banks with requests", -21, over(LOC, CTA, BANKS, "SD2")),
    ("SD2: its row hits", 14, over(LOC, CTA, ROWS, "SD2")),
    ("SD2: `bank_parallel` over `locality`", -10, over(BLP, LOC, ipc, "SD2")),
    ("SD2: banks with requests then", 48, over(BLP, LOC, BANKS, "SD2")),
    ("SD2: row hits then", -46, over(BLP, LOC, ROWS, "SD2")),
    ("JPEG: `bank_parallel` over `locality`", 10, over(BLP, LOC, ipc, "JPEG")),
    ("JPEG: its banks with requests", 46, over(BLP, LOC, BANKS, "JPEG")),
    ("JPEG: its row hits", -62, over(BLP, LOC, ROWS, "JPEG")),
    ("JPEG: `owl` over `bank_parallel`", 15, over("owl", BLP, ipc, "JPEG")),
    ("FWT, SPMV and SD2: `owl` over `bank_parallel`", 5, over("owl", BLP, ipc, "FWT SPMV SD2")),
    ("SAD, PVC and WP: `owl` over `bank_parallel`", 0, over("owl", BLP, ipc, "SAD PVC WP")),
)
NONE = 1.0  # percent that count as no difference


def verdict(paper: float, value: float) -> str:
    """Whether the sign is right, and the size, by a factor of two."""
    if abs(paper) < NONE:
        return "yes" if abs(value) < NONE else "no"
    if abs(value) < NONE or value * paper < 0:
        return "no"
    return "yes" if 0.5 <= value / paper <= 2 else "the sign"


def claims_table() -> str:
    lines = ["| claim | paper, % | ours, % | right |\n| --- | ---: | ---: | --- |"]
    for words, paper, measured in CLAIMS:
        value = measured(shipped())
        lines.append(f"| {words} | {paper:+.0f} | {value:+.1f} | {verdict(paper, value)} |")
    return "\n".join(lines)


def variants_table() -> str:
    """One thing at a time."""
    names = ("two_level", "cta_aware", "locality", "bank_parallel", "owl", "perfect_l2")
    heads = " | ".join(f"`{name}`" for name in names)
    lines = [f"| variant | {heads} | CINV, % |", "| --- |" + " ---: |" * (len(names) + 1)]
    for variant in track(VARIANTS):
        each = runs(replace(variant))
        gains = " | ".join(f"{over(name, RR, ipc)(each):+.1f}" for name in names)
        inactive = 100 * statistics.fmean(row[RR].inactive for row in each.values())
        lines.append(f"| {variant.name} | {gains} | {inactive:.0f} |")
    return "\n".join(lines)


def groups_table() -> str:
    """Every combination of what the paper leaves open of groups."""
    names = (CTA, LOC, BLP)
    lines = [
        "| empty slots | refilled groups | blocks | for an MSHR | "
        + " | ".join(f"`{name}`" for name in names)
        + " |\n"
        + "| --- | --- | --- | --- |"
        + " ---: |" * len(names)
    ]
    words = {
        "strict_groups": ("to the next group", "stay empty"),
        "refill_to_back": ("keep their turn", "come last"),
        "own_blocks": ("as cores have room", "dealt out"),
        "replay_all": ("the oldest", "all"),
    }
    for way in track(all_ways(GROUPS)):
        found = runs(Variant("", way, {"blocks": 448}), (RR, *names))  # two waves, to refill
        cells = [words[key][value] for key, value in way.items()]
        cells += [f"{over(name, RR, ipc)(found):+.1f}" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def prefetching_table() -> str:
    """Every combination of what the paper leaves open of prefetching: owl over bank_parallel."""
    stops = PREFETCHING["prefetch_stop"]
    lines = [
        "| rows | L2 asked | bus, bytes | after 8 or 16 lines | row of the bank | row of the "
        "controller |\n| --- | --- | ---: | ---: | ---: | ---: |"
    ]
    others = {key: values for key, values in PREFETCHING.items() if key != "prefetch_stop"}
    for way in track(all_ways(others)):
        base = runs(Variant("", way), (BLP,))
        cells = [
            "whole" if way["channel_interleave"] == 2048 else "spread",
            "yes" if way["prefetch_absent"] else "no",
            str(way["bus_bytes"]),
        ]
        for stop in stops:
            found = runs(Variant("", {**way, "prefetch_stop": stop}), ("owl",))
            gains = [100 * (found[app]["owl"].ipc / base[app][BLP].ipc - 1) for app in found]
            wins = sum(gain >= NONE for gain in gains)
            losses = sum(gain <= -NONE for gain in gains)
            cells.append(f"{statistics.fmean(gains):+.1f} ({wins}, {losses})")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure_table() -> str:
    """Figures 7 and 8: each application with each scheduler."""
    names = (CTA, LOC, BLP, "owl", "perfect_l2")
    lines = [
        "| preset | "
        + " | ".join(f"`{name}`" for name in names)
        + " | "
        + " | ".join(f"`{name}`, blocked" for name in (RR, *names[:4]))
        + " |\n| --- |"
        + " ---: |" * (2 * len(names))
    ]
    for app, row in shipped().items():
        base = row[RR]
        gains = [f"{100 * (row[name].ipc / base.ipc - 1):+.0f}" for name in names]
        whole = base.counts["cycles"] * base.config["cores"]
        waits = [
            f"{100 * row[name].counts['memory_block_cycles'] / whole:.0f}"
            for name in (RR, *names[:4])
        ]
        lines.append("| " + " | ".join([app, *gains, *waits]) + " |")
    return "\n".join(lines)


def sensitivity_table() -> str:
    """Figures 9 and 10."""
    rows = [
        *((scheduler, "group_warps", value, {}) for scheduler in (CTA, LOC, BLP)
          for value in (4, 8, 16)),
        *((BLP, "banks", value, {}) for value in (4, 8)),
    ]  # fmt: skip
    lines = [
        "| scheduler | parameter | value | IPC over round robin, % |\n| --- | --- | ---: | ---: |"
    ]
    for scheduler, name, value, more in track(rows):
        found = runs(Variant("", {name: value, **more}), (RR, scheduler))
        gained = over(scheduler, RR, ipc)(found)
        lines.append(f"| `{scheduler}` | `{name}` | {value} | {gained:+.1f} |")
    return "\n".join(lines)


def degrees_table() -> str:
    """Figure 11: owl over bank_parallel by the fewest and the most lines that are prefetched."""
    base = runs(Variant(""), (BLP,))
    best = dict.fromkeys(base, -100.0)
    lines = [
        "| fewest | most: "
        + " | ".join(map(str, DEGREES))
        + " |\n| ---: |"
        + " ---: |" * len(DEGREES)
    ]
    for lower in track(DEGREES):
        cells = [str(lower)]
        for higher in DEGREES:
            if higher < lower:
                cells.append("")
                continue
            found = runs(
                Variant("", {"prefetch_lower": lower, "prefetch_higher": higher}), ("owl",)
            )
            gains = {app: 100 * (found[app]["owl"].ipc / base[app][BLP].ipc - 1) for app in found}
            best = {app: max(best[app], gain) for app, gain in gains.items()}
            cells.append(f"{statistics.fmean(gains.values()):+.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(f"| best of each application | {statistics.fmean(best.values()):+.1f} | | | | |")
    return "\n".join(lines)


def write_tables(page: Path, tables: dict[str, str]) -> None:
    """Prints tables, and writes each between its two marks on a page."""
    text = page.read_text("utf-8")
    for name, table in tables.items():
        print(table, end="\n\n")
        begin, end = f"<!-- {name}:begin -->\n", f"\n<!-- {name}:end -->"
        text = text.split(begin)[0] + begin + table + end + text.split(end)[1]
    with replacing(page) as out:
        out.write(text.encode())


@cache
def shipped() -> Runs:
    """As shipped."""
    return runs(VARIANTS[0])


TABLES: dict[str, Callable[[], str]] = {
    "figures": figure_table,
    "claims": claims_table,
    "variants": variants_table,
    "groups": groups_table,
    "prefetching": prefetching_table,
    "sensitivity": sensitivity_table,
    "degrees": degrees_table,
}


def main(names: list[str]) -> None:
    """Runs and writes."""
    for name in names or TABLES:
        write_tables(PAGE, {name: TABLES[name]()})


if __name__ == "__main__":
    main(sys.argv[1:])
