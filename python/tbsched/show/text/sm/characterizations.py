"""Measured instructions, as text."""

from __future__ import annotations

from rich.table import Table

from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted
from tbsched.sm.characterization import Characterization, Figures, Measured, Mode, Skew

_NONE = "–"
HEADINGS = (
    "opcode", "results a clock", "spread, %", "on all SMs", "scheduling wait", "dependence wait",
    "least stall", "warps, d = 1", "fewest warps", "overhead", "start skew", "end skew",
    "uneven end skew",
)  # fmt: skip


def characterization_short(found: Characterization) -> str:
    """The GPU, and how much was measured."""
    what = counted(len(found.figures), "opcode")
    return f"{found.device['name']}, {what}, {counted(found.runs, 'run')}"


def characterization_text(found: Characterization) -> str:
    """A row per opcode, and what was not measured."""
    return "\n".join([characterization_short(found), render(figures_table(found)), *notes(found)])


def figures_table(found: Characterization) -> Table:
    """A row per opcode that was measured."""
    return table_of(HEADINGS, [_row(each) for each in found.figures if each.runs])


def notes(found: Characterization) -> list[str]:
    """What is missing, and what went wrong."""
    lines = [f"{each.opcode}: {each.reason}" for each in found.figures if each.reason]
    for each in found.figures:
        wrong = {
            "did not record every warp": each.failed,
            "had a block where the predictor did not say": each.misplaced,
            "had warps that were spread less evenly than possible": each.unbalanced,
        }
        lines += [
            f"{each.opcode}: of {counted(each.runs, 'run')}, {count:,} {what}"
            for what, count in wrong.items()
            if count
        ]
        if each.throughput is not None and not each.confirmed:
            lines.append(f"{each.opcode}: one loop alone reaches the best throughput")
    return lines


def _row(found: Figures) -> tuple[str, ...]:
    fewest = found.least_warps or {}
    return (
        found.opcode,
        _number(found.throughput),
        _NONE if found.throughput is None else f"{100 * found.throughput.spread:.2f}",
        _number(found.all_sms),
        _number(found.scheduling_wait),
        _number(found.dependence_wait),
        _whole(found.least_stall),
        _whole(fewest.get((Mode.WRITE_READ, 1))),
        _whole(min(fewest.values(), default=None)),
        _whole(found.overhead),
        _whole(None if found.even is None else found.even.starting),
        _ending(found.even),
        _ending(found.uneven),
    )


def _number(found: Measured | None) -> str:
    return _NONE if found is None else f"{found.value:.2f}"


def _whole(found: int | None) -> str:
    return _NONE if found is None else f"{found:,}"


def _ending(found: Skew | None) -> str:
    return _whole(None if found is None else found.ending)
