"""What OWL's authors claim, and what the simulator says, over a sweep of what they do not say.

    python tests/sm/claims.py [NAME...]

It takes 20 minutes of processor time, and writes the tables of docs/explanation/owl.md, or those
that are named. Nothing is tuned: what the paper leaves open is changed one thing at a time, and,
for groups and for prefetching, in all ways together.
"""

from __future__ import annotations

import statistics
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
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
TABLES_OF_PAPER = Path(__file__).parent / "owl" / "tables.toml"
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
THRESHOLDS = (-1, 8, 16, 24, 32)  # waiting requests that are few; -1: fewer than their mean
SIZES = (4, 8, 16)  # warps of a group at least
# What the paper leaves open of groups, and of prefetching.
GROUPS = {"strict_groups": (0, 1), "refill_to_back": (1, 0), "own_blocks": (0, 1),
          "replay_all": (0, 1)}  # fmt: skip
PREFETCHING = {"channel_interleave": (2048, 256), "prefetch_absent": (0, 1), "bus_bytes": (8, 16),
               "prefetch_stop": (0, 1, 2)}  # fmt: skip


def all_ways(values: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """Every combination."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


@cache
def kernels(**knobs: int) -> tuple[tb.sm.Workload, ...]:
    """Every application, all with the same change of their knobs."""
    # The blocks of WP have 6 warps, and a core has room for one of them.
    single = {"blocks": 28 * -(-knobs["blocks"] // 224)} if "blocks" in knobs else {}
    return tuple(
        tb.sm.preset(name, **(single if name == "WP" else knobs)) for name in tb.sm.presets()
    )


def runs(variant: Variant, schedulers: Iterable[str] = SCHEDULERS, *, every: int = 1) -> Runs:
    """Applications with each scheduler; with variants, a block for each place of a core.

    Args:
        variant: of the GPU and of the applications.
        schedulers: names.
        every: 2 is every second application, in the order of the paper.
    """
    gpu = tb.sm.config("owl-table1").changed(**variant.config)
    knobs: dict[str, int] = {} if variant is VARIANTS[0] else {"blocks": 224, **variant.knobs}
    found: Runs = {}
    for row in tb.sm.simulate_many(kernels(**knobs)[::every], schedulers, gpu):
        found.setdefault(row.workload, {})[row.scheduler] = row
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
        some = {app: found[app] for app in (apps.split() if apps else found)}
        return share_blocked(a, some) - share_blocked(b, some)

    return measured


def share_blocked(name: str, found: Runs) -> float:
    """MemoryBlockCycles in % of all cycles of round robin, the mean over applications."""

    def share(row: dict[str, Simulation]) -> float:
        base = row["round_robin"]
        whole = base.counts["cycles"] * base.config["cores"]
        return row[name].counts["memory_block_cycles"] / whole

    return 100 * statistics.fmean(map(share, found.values()))


def points(a: str, b: str, figure: Figure) -> Callable[[Runs], float]:
    """How many points a share of one scheduler is above that of another, on average."""

    def measured(found: Runs) -> float:
        return 100 * statistics.fmean(figure(row[a]) - figure(row[b]) for row in found.values())

    return measured


def worst(a: str, b: str) -> Callable[[Runs], float]:
    """Returns the change in percent of the application that loses most."""
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


def saved_points(app: str) -> Callable[[Runs], float]:
    """L1 misses of locality less those of cta_aware, in percent of those of round robin."""
    to_locality, to_cta = (over(name, RR, L1, app) for name in (LOC, CTA))
    return lambda found: to_locality(found) - to_cta(found)


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
    ("`owl`: the same, geometric mean", 17, by_mean("owl", CTA, statistics.geometric_mean)),
    ("`owl`: the same, harmonic mean", 14, by_mean("owl", CTA, statistics.harmonic_mean)),
    ("`owl`: IPC over `two_level`", 19, over("owl", "two_level", ipc)),
    ("`cta_aware`: IPC over `two_level`", 0, over(CTA, "two_level", ipc)),
    ("`locality`: IPC over `cta_aware`", 11, over(LOC, CTA, ipc)),
    ("`bank_parallel`: IPC over `locality`", 6, over(BLP, LOC, ipc)),
    ("`bank_parallel`: the same, geometric mean", 4, by_mean(BLP, LOC, statistics.geometric_mean)),
    ("`bank_parallel`: the same, harmonic mean", 4, by_mean(BLP, LOC, statistics.harmonic_mean)),
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
    ("IIX: its L1 misses, in points of round robin's", -69, saved_points("IIX")),
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
    """One thing at a time, with every second application."""
    names = ("two_level", "cta_aware", "locality", "bank_parallel", "owl", "perfect_l2")
    heads = " | ".join(f"`{name}`" for name in names)
    lines = [f"| variant | {heads} | CINV, % |", "| --- |" + " ---: |" * (len(names) + 1)]
    for variant in track(VARIANTS):
        each = runs(replace(variant), every=2)
        gains = " | ".join(f"{over(name, RR, ipc)(each):+.1f}" for name in names)
        inactive = 100 * statistics.fmean(row[RR].inactive for row in each.values())
        lines.append(f"| {variant.name} | {gains} | {inactive:.0f} |")
    return "\n".join(lines)


WORDS = {
    "strict_groups": ("to the next group", "stay empty"),
    "refill_to_back": ("keep their turn", "come last"),
    "own_blocks": ("as cores have room", "dealt out"),
    "replay_all": ("the oldest", "all"),
}


def groups_table() -> str:
    """Every combination of what the paper leaves open of groups."""
    names = (CTA, LOC, BLP)
    heads = ("empty slots", "refilled groups", "blocks", "for an MSHR")
    lines = [
        "| " + " | ".join([*heads, *(f"`{name}`" for name in names)]) + " |",
        "|" + " --- |" * len(heads) + " ---: |" * len(names),
    ]
    blocks = {"blocks": 448}  # two for each place of a core, to refill groups
    bases: dict[tuple[int, int], Runs] = {}  # round robin has no groups
    for way in track(all_ways(GROUPS)):
        key = (way["own_blocks"], way["replay_all"])
        if key not in bases:
            bases[key] = runs(Variant("", way, blocks), (RR,))
        found = runs(Variant("", way, blocks), names)
        both = {app: bases[key][app] | found[app] for app in found}
        cells = [WORDS[name][value] for name, value in way.items()]
        cells += [f"{over(name, RR, ipc)(both):+.1f}" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sizes_table() -> str:
    """Figures 9 and 10, in every combination that counts where no group is refilled."""
    names = (CTA, LOC, BLP)
    sizes = " / ".join(map(str, SIZES))
    heads = [*(f"`{name}`: {sizes}" for name in names), f"`{BLP}`, 8 banks"]
    lines = [
        "| empty slots | for an MSHR | " + " | ".join(heads) + " |",
        "| --- | --- |" + " ---: |" * len(heads),
    ]
    ways = all_ways({name: GROUPS[name] for name in ("replay_all", "strict_groups")})
    bases: dict[tuple[int, int], Runs] = {}
    for way in track(ways):
        gained: dict[str, list[str]] = {name: [] for name in names}
        for size, banks in (*((size, 4) for size in SIZES), (8, 8)):
            key = (way["replay_all"], banks)
            if key not in bases:
                bases[key] = runs(Variant("", {**way, "banks": banks}), (RR,))
            some = names if banks == 4 else (BLP,)
            found = runs(Variant("", {**way, "group_warps": size, "banks": banks}), some)
            for name in some:
                gain = over(name, RR, ipc)({app: bases[key][app] | found[app] for app in found})
                gained[name].append(f"{gain:+.1f}")
        cells = [WORDS[name][way[name]] for name in ("strict_groups", "replay_all")]
        cells += [" / ".join(gained[name][: len(SIZES)]) for name in names]
        lines.append("| " + " | ".join([*cells, gained[BLP][-1]]) + " |")
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
        waits = [f"{share_blocked(name, {app: row}):.0f}" for name in (RR, *names[:4])]
        lines.append("| " + " | ".join([app, *gains, *waits]) + " |")
    means = [f"{over(name, RR, ipc)(shipped()):+.0f}" for name in names]
    means += [f"{share_blocked(name, shipped()):.0f}" for name in (RR, *names[:4])]
    lines.append("| " + " | ".join(["mean", *means]) + " |")
    return "\n".join(lines)


def empty_slots(run: Simulation) -> tuple[float, float, float, float, float]:
    """Returns the issue slots that issue nothing, and what they go to, in % of all slots.

    All; all warps wait for data; a warp issued, and found no MSHR; the core has no warps; and the
    others: L1 is busy, or all warps that do not wait are in the pipeline.
    """
    slots = run.counts["cycles"] * run.config["cores"] / run.config["issue_cycles"]
    parts = (run.memory_blocked, run.counts["replays"] / slots, run.without_warps)
    blocked, replays, without = (100 * share for share in parts)
    inactive = 100 * run.inactive
    return inactive, blocked, replays, without, inactive - blocked - replays - without


def slots_table() -> str:
    """Figure 3: what the slots go to that stay empty with round robin."""
    printed = tomllib.loads(TABLES_OF_PAPER.read_text("utf-8"))["type_1"]
    rows: dict[str, tuple[float, ...]] = {
        app: (printed[app]["cinv"], *empty_slots(shipped()[app][RR])) for app in shipped()
    }
    rows["mean"] = tuple(map(statistics.fmean, zip(*rows.values(), strict=True)))
    lines = [
        "| preset | CINV, % | blocked | no MSHR | no warps | L1 or pipeline |\n| --- |"
        + " ---: |" * 5
    ]
    for app, (paper, ours, *parts) in rows.items():
        cells = [f"{paper:.0f} / {ours:.0f}", *(f"{part:.0f}" for part in parts)]
        lines.append("| " + " | ".join([app, *cells]) + " |")
    return "\n".join(lines)


def locality_table() -> str:
    """Table 3, with the paper's values, and Figure 6: each application."""
    printed = tomllib.loads(TABLES_OF_PAPER.read_text("utf-8"))["type_1"]
    lines = [
        "| preset | L1 misses saved by `cta_aware`, % | by `locality`, % | banks with requests, "
        "`bank_parallel` over `locality`, % | row hits, % | banks with requests, round robin |\n"
        "| --- |" + " ---: |" * 5
    ]
    columns: list[list[float]] = []
    for app in shipped():
        row = printed[app]
        saved = [-over(name, RR, L1, app)(shipped()) for name in (CTA, LOC)]
        moved = [over(BLP, LOC, figure, app)(shipped()) for figure in (BANKS, ROWS)]
        busy = BANKS(shipped()[app][RR])
        columns.append([row[CTA], saved[0], row[LOC], saved[1], *moved, busy])
    columns.append([statistics.fmean(column) for column in zip(*columns, strict=True)])
    for app, values in zip([*shipped(), "mean"], columns, strict=True):
        saved_cells = [f"{values[at]:.0f} / {values[at + 1]:.0f}" for at in (0, 2)]
        moved_cells = [*(f"{value:+.0f}" for value in values[4:6]), f"{values[6]:.0f}"]
        lines.append("| " + " | ".join([app, *saved_cells, *moved_cells]) + " |")
    return "\n".join(lines)


Degrees = dict[tuple[int, int, int], list[float]]


@cache
def degree_gains(way: tuple[tuple[str, int], ...], thresholds: tuple[int, ...]) -> Degrees:
    """Figure 11: by how many percent owl is faster than bank_parallel, of each application.

    Args:
        way: what the paper leaves open of prefetching.
        thresholds: how many waiting requests are few; it decides nothing where the fewest and the
            most lines are the same, which are run with the first one only.

    Returns:
        By the fewest and the most lines that are prefetched, and the threshold.
    """
    gpu = tb.sm.config("owl-table1").changed(**dict(way))
    asked = [
        (lower, higher, few)
        for lower in DEGREES
        for higher in DEGREES
        for few in thresholds
        if lower < higher or (lower == higher and few == thresholds[0])
    ]
    configs = [
        gpu.changed(prefetch_lower=lower, prefetch_higher=higher, prefetch_threshold=few)
        for lower, higher, few in asked
    ]
    some = kernels(blocks=224)
    base = [row.ipc for row in tb.sm.simulate_many(some, BLP, gpu)]
    rows = iter(tb.sm.simulate_many(some, "owl", configs))
    gains: Degrees = {key: [] for key in asked}
    for was in base:  # rows are by application, then by config
        for key in asked:
            gains[key].append(100 * (next(rows).ipc / was - 1))
    return gains


def best_of_each(gains: Degrees) -> list[float]:
    """Returns the greatest gain of each application."""
    return [max(row) for row in zip(*gains.values(), strict=True)]


def degrees_table() -> str:
    """Figure 11 as shipped."""
    gains = degree_gains((), THRESHOLDS)
    lines = [
        "| fewest | most: "
        + " | ".join(map(str, DEGREES))
        + " |\n| ---: |"
        + " ---: |" * len(DEGREES)
    ]
    for lower in DEGREES:
        cells = [
            f"{statistics.fmean(gains[lower, higher, -1]):+.1f}" if lower <= higher else ""
            for higher in DEGREES
        ]
        lines.append("| " + " | ".join([str(lower), *cells]) + " |")
    usual = {key: each for key, each in gains.items() if key[2] < 0}
    for words, some in (("the mean", usual), ("any threshold", gains)):
        best = statistics.fmean(best_of_each(some))
        lines.append(f"| best of each application, {words} | {best:+.1f} | | | | |")
    return "\n".join(lines)


def best_degrees_table() -> str:
    """Figure 11 where the paper leaves open whether L2 is asked, and how wide the bus is."""
    lines = [
        "| L2 asked | bus, bytes | 8 or 16 | best for all | its gain | best of each | over 8 or 16 "
        "|\n| --- | ---: | ---: | --- | ---: | ---: | ---: |"
    ]
    open_ways = {name: PREFETCHING[name] for name in ("prefetch_absent", "bus_bytes")}
    for way in track(all_ways(open_ways)):
        gains = degree_gains(tuple(way.items()), THRESHOLDS[:1])
        mean = {key: statistics.fmean(each) for key, each in gains.items()}
        lower, higher, _ = best = max(mean, key=lambda key: mean[key])
        each = best_of_each(gains)
        usual = gains[8, 16, -1]
        more = [100 * ((100 + x) / (100 + y) - 1) for x, y in zip(each, usual, strict=True)]
        shares = (mean[8, 16, -1], mean[best], statistics.fmean(each), statistics.fmean(more))
        eight, its, of_each, gained = (f"{share:+.1f}" for share in shares)
        cells = ["yes" if way["prefetch_absent"] else "no", str(way["bus_bytes"])]
        cells += [eight, f"{lower} or {higher}", its, of_each, gained]
        lines.append("| " + " | ".join(cells) + " |")
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
    "slots": slots_table,
    "figures": figure_table,
    "locality": locality_table,
    "claims": claims_table,
    "variants": variants_table,
    "groups": groups_table,
    "sizes": sizes_table,
    "prefetching": prefetching_table,
    "degrees": degrees_table,
    "best degrees": best_degrees_table,
}


def main(names: list[str]) -> None:
    """Runs and writes."""
    for name in names or TABLES:
        write_tables(PAGE, {name: TABLES[name]()})


if __name__ == "__main__":
    main(sys.argv[1:])
