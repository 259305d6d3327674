"""What OWL's authors claim, and what the simulator says, over a sweep of what they do not say.

    python tests/sm/claims.py

It takes minutes, and writes the tables of docs/explanation/owl.md. Nothing is tuned: each variant
changes one thing that the paper leaves open.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.progress import track

import tbsched as tb
from tbsched.sm.results import Simulation
from tbsched.storage import replacing

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "owl.md"
SCHEDULERS = (
    "round_robin", "cta_aware", "locality", "bank_parallel", "owl", "perfect_l2",
)  # fmt: skip
SIZES = {"blocks": 280, "loads": 56}  # of each workload, so that all of them take minutes
Runs = dict[str, dict[str, Simulation]]  # by application and scheduler


@dataclass(frozen=True)
class Variant:
    """One thing that the paper leaves open, decided in another way."""

    name: str
    config: dict[str, int] = field(default_factory=dict)
    knobs: dict[str, int] = field(default_factory=dict)


VARIANTS = (
    Variant("as shipped"),
    Variant("no other group in an empty slot", {"strict_groups": 1}),
    Variant("refilled groups keep their priority", {"refill_to_back": 0}),
    Variant("blocks dealt out beforehand", {"own_blocks": 1}),
    Variant("L1 writes through", {"l1_write_back": 0}),
    Variant("controllers in two rows, slow routers", {"controllers_at_edges": 1,
                                                      "router_cycles": 3}),
    Variant("rows not spread over controllers", {"channel_interleave": 2048}),
    Variant("hashed banks", {"hash_banks": 1}),
    Variant("a wider memory bus", {"bus_bytes": 16}),
    Variant("L2 asked before a prefetch", {"prefetch_absent": 1}),
    Variant("both: L2 asked, rows whole", {"prefetch_absent": 1, "channel_interleave": 2048}),
    Variant("blocks of 8 warps", {}, {"warps_per_block": 8, "blocks_per_core": 4, "blocks": 140}),
    Variant("a line per load", {}, {"lines": 1}),
    Variant("half of the bytes reused", {}, {"reuse_bytes": 3072}),
)  # fmt: skip


def runs(variant: Variant, schedulers: Iterable[str] = SCHEDULERS) -> Runs:
    """Every application with every scheduler."""
    gpu = tb.sm.config("owl-table1").changed(**variant.config)
    found: Runs = {}
    for name in tb.sm.presets():
        knobs = {**SIZES, **variant.knobs}
        if name == "WP":  # its blocks have 6 warps, of which a core has room for one
            knobs = {**knobs, "warps_per_block": 6, "blocks_per_core": 1, "blocks": 70}
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


def blocked(a: str, b: str) -> Callable[[Runs], float]:
    """The same for MemoryBlockCycles, which the paper divides by the cycles of round robin."""

    def measured(found: Runs) -> float:
        def cycles(row: dict[str, Simulation], name: str) -> float:
            base = row["round_robin"]
            whole = base.counts["cycles"] * base.config["cores"]
            return row[name].counts["memory_block_cycles"] / whole

        return 100 * statistics.fmean(cycles(row, a) - cycles(row, b) for row in found.values())

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
    ("`locality`: IPC over round robin", 25, over(LOC, RR, ipc)),
    ("`bank_parallel`: IPC over round robin", 31, over(BLP, RR, ipc)),
    ("`owl`: IPC over round robin", 33, over("owl", RR, ipc)),
    ("`owl`: IPC over `cta_aware`", 19, over("owl", CTA, ipc)),
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
    ("SCP: `cta_aware` over round robin", 19, over(CTA, RR, ipc, "SCP")),
    ("SC: `locality` over `cta_aware`", -4, over(LOC, CTA, ipc, "SC")),
    ("SC: its banks with requests", -26, over(LOC, CTA, BANKS, "SC")),
    ("MUM: `locality` over `cta_aware`", -3, over(LOC, CTA, ipc, "MUM")),
    ("SD2: `locality` over `cta_aware`", 7, over(LOC, CTA, ipc, "SD2")),
    ("SD2: `bank_parallel` over `locality`", -10, over(BLP, LOC, ipc, "SD2")),
    ("SD2: its banks with requests", 48, over(BLP, LOC, BANKS, "SD2")),
    ("SD2: its row hits", -46, over(BLP, LOC, ROWS, "SD2")),
    ("JPEG: `bank_parallel` over `locality`", 10, over(BLP, LOC, ipc, "JPEG")),
    ("JPEG: `owl` over `bank_parallel`", 15, over("owl", BLP, ipc, "JPEG")),
)
NONE = 1.0  # percent that count as no difference


def verdict(paper: float, values: list[float]) -> str:
    """In how many variants the sign is right, and in how many the size, by a factor of two."""
    if abs(paper) < NONE:
        return f"{sum(abs(value) < NONE for value in values)}, -"
    same = [value / paper for value in values if abs(value) >= NONE]
    sign = sum(ratio > 0 for ratio in same)
    return f"{sign}, {sum(0.5 <= ratio <= 2 for ratio in same)}"


def claims_table(found: list[Runs]) -> str:
    lines = [
        f"| claim | paper, % | as shipped, % | least to greatest, % | sign, size: right in, of "
        f"{len(found)} |\n| --- | ---: | ---: | ---: | ---: |"
    ]
    for words, paper, measured in CLAIMS:
        values = [measured(each) for each in found]
        span = f"{min(values):.0f} to {max(values):.0f}"
        lines.append(
            f"| {words} | {paper:+.0f} | {values[0]:+.1f} | {span} | {verdict(paper, values)} |"
        )
    return "\n".join(lines)


def variants_table(found: list[Runs]) -> str:
    names = ("cta_aware", "locality", "bank_parallel", "owl", "perfect_l2")
    heads = " | ".join(f"`{name}`" for name in names)
    lines = [f"| variant | {heads} | CINV, % |", "| --- |" + " ---: |" * (len(names) + 1)]
    for variant, each in zip(VARIANTS, found, strict=True):
        gains = " | ".join(f"{over(name, RR, ipc)(each):+.1f}" for name in names)
        inactive = 100 * statistics.fmean(row[RR].inactive for row in each.values())
        lines.append(f"| {variant.name} | {gains} | {inactive:.0f} |")
    return "\n".join(lines)


def sensitivity_table() -> str:
    """Figures 9, 10 and 11."""
    gain = {
        (name, value): over(scheduler, RR, ipc)(
            runs(Variant("", {name: value, **more}), (RR, scheduler))
        )
        for scheduler, name, values, more in (
            (BLP, "group_warps", (4, 8, 16), {}),
            (BLP, "banks", (4, 8), {}),
            ("owl", "prefetch_lower", (0, 8, 16, 32), {"prefetch_higher": 32}),
        )
        for value in values
    }
    lines = ["| parameter | value | IPC over round robin, % |", "| --- | ---: | ---: |"]
    lines += [f"| `{name}` | {value} | {gained:+.1f} |" for (name, value), gained in gain.items()]
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


def main() -> None:
    """Runs and writes."""
    found = [runs(variant) for variant in track(VARIANTS)]
    tables = {
        "claims": claims_table(found),
        "variants": variants_table(found),
        "sensitivity": sensitivity_table(),
    }
    write_tables(PAGE, tables)


if __name__ == "__main__":
    main()
