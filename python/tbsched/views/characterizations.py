"""Measured instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from tbsched.counting import counted
from tbsched.sm.characterization import Characterization, Figures, Measured, Mode, Skew
from tbsched.sm.characterization.figures import Point
from tbsched.views.cards import bars_html, card, folded_html, text_html
from tbsched.views.plain import columns_of, fields, plain
from tbsched.views.tables import Lines, Table, table_of

_NONE = "–"
HEADINGS = (
    "opcode", "results a clock", "spread, %", "on all SMs", "scheduling wait", "dependence wait",
    "least stall", "warps, d = 1", "fewest warps", "overhead", "start skew", "end skew",
    "uneven end skew",
)  # fmt: skip


def characterization_short(characterization: Characterization) -> str:
    """The GPU, and how much was measured."""
    what = counted(len(characterization.figures), "opcode")
    return f"{characterization.device['name']}, {what}, {counted(characterization.runs, 'run')}"


def characterization_text(characterization: Characterization) -> Lines:
    """A row per opcode, and what was not measured."""
    return [
        characterization_short(characterization),
        figures_table(characterization),
        *notes(characterization),
    ]


def figures_table(characterization: Characterization) -> Table:
    """A row per opcode that was measured."""
    return table_of(HEADINGS, [_row(each) for each in characterization.figures if each.runs])


def notes(characterization: Characterization) -> list[str]:
    """Returns what is missing, and what went wrong."""
    lines = [f"{each.opcode}: {each.reason}" for each in characterization.figures if each.reason]
    for each in characterization.figures:
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


def _row(figures: Figures) -> tuple[str, ...]:
    """Returns the table row of one opcode."""
    fewest = figures.least_warps or {}
    return (
        figures.opcode,
        _number(figures.throughput),
        _NONE if figures.throughput is None else f"{100 * figures.throughput.spread:.2f}",
        _number(figures.all_sms),
        _number(figures.scheduling_wait),
        _number(figures.dependence_wait),
        _whole(figures.least_stall),
        _whole(fewest.get((Mode.WRITE_READ, 1))),
        _whole(min(fewest.values(), default=None)),
        _whole(figures.overhead),
        _whole(None if figures.even is None else figures.even.starting),
        _ending(figures.even),
        _ending(figures.uneven),
    )


def _number(measured: Measured | None) -> str:
    return _NONE if measured is None else f"{measured.value:.2f}"


def _whole(found: int | None) -> str:
    return _NONE if found is None else f"{found:,}"


def _ending(skew: Skew | None) -> str:
    return _whole(None if skew is None else skew.ending)


def characterization_html(characterization: Characterization) -> str:
    """Returns HTML: a row per opcode, what was not measured, and bars of two figures."""
    lines = notes(characterization)
    throughput = [(each.opcode, each.throughput) for each in characterization.figures]
    waits = [(each.opcode, each.dependence_wait) for each in characterization.figures]
    return card(
        characterization_short(characterization),
        figures_table(characterization),
        *([text_html(lines)] if lines else []),
        *_bars("Results a clock, of one SM", throughput),
        *_bars("Clocks until a result can be read", waits),
    )


def _bars(heading: str, rows: list[tuple[str, Measured | None]]) -> list[Markup]:
    """Returns a bar for each opcode that was measured; nothing if none was."""
    known = [(opcode, each.value) for opcode, each in rows if each is not None]
    if not any(value > 0 for _, value in known):
        return []
    bars = bars_html((opcode, value, f"{value:.1f}") for opcode, value in known)
    return [folded_html(heading, bars, is_open=True)]


def characterization_columns(characterization: Characterization) -> dict[str, Any]:
    """Returns columns with a row per opcode. What was not measured is None."""
    rows = characterization.figures
    measured = ("throughput", "all_sms", "scheduling_wait", "dependence_wait")
    return {
        **columns_of(rows, "opcode"),
        **{name: [_part(getattr(row, name), "value") for row in rows] for name in measured},
        "spread": [_part(row.throughput, "spread") for row in rows],
        **columns_of(rows, "least_stall overhead best_even best_uneven"),
        "least_warps": [min((row.least_warps or {}).values(), default=None) for row in rows],
        **{
            f"{part}_{skew}_skew": [_part(getattr(row, skew), part) for row in rows]
            for skew in ("even", "uneven")
            for part in ("starting", "ending")
        },
        **columns_of(rows, "runs failed misplaced reason"),
    }


def _part(measured: Measured | Skew | None, name: str) -> float | None:
    """A part of what was measured; None of what was not."""
    found: float | None = getattr(measured, name, None)
    return found


def characterization_data(characterization: Characterization) -> dict[str, Any]:
    """Returns JSON data: the GPU, and the figures of each opcode."""
    figures = [
        {
            **plain(each),
            "least_warps": [
                {"mode": mode, "distance": distance, "warps": warps}
                for (mode, distance), warps in (each.least_warps or {}).items()
            ],
            "ends": _ends(each.ends or {}),
        }
        for each in characterization.figures
    ]
    return {**fields(characterization, "device"), "figures": figures}


def _ends(ends: Mapping[Point, int]) -> list[dict[str, Any]]:
    """Returns a row per loop, with the clocks of 1, 2 and more warps; None: not measured."""
    found: dict[tuple[str, int], dict[int, int]] = {}
    for point, clocks in ends.items():
        found.setdefault((point.mode, point.distance), {})[point.warps] = clocks
    return [
        {
            "mode": mode,
            "distance": distance,
            "clocks": [row.get(warps) for warps in range(1, max(row) + 1)],
        }
        for (mode, distance), row in found.items()
    ]
