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
    opcodes = counted(len(characterization.figures), "opcode")
    return f"{characterization.device['name']}, {opcodes}, {counted(characterization.runs, 'run')}"


def characterization_text(characterization: Characterization) -> Lines:
    """Returns a table with a row per opcode, and what was not measured."""
    return [
        characterization_short(characterization),
        figures_table(characterization),
        *notes(characterization),
    ]


def figures_table(characterization: Characterization) -> Table:
    """A row per opcode that was measured."""
    return table_of(HEADINGS, [_row(figure) for figure in characterization.figures if figure.runs])


def notes(characterization: Characterization) -> list[str]:
    """Returns what is missing, and what went wrong."""
    lines = [
        f"{figure.opcode}: {figure.reason}" for figure in characterization.figures if figure.reason
    ]
    for figure in characterization.figures:
        wrong = {
            "did not record every warp": figure.failed,
            "had a block where the predictor did not say": figure.misplaced,
            "had warps that were spread less evenly than possible": figure.unbalanced,
        }
        lines += [
            f"{figure.opcode}: of {counted(figure.runs, 'run')}, {count:,} {problem}"
            for problem, count in wrong.items()
            if count
        ]
        if figure.throughput is not None and not figure.confirmed:
            lines.append(f"{figure.opcode}: one loop alone reaches the best throughput")
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


def _whole(value: int | None) -> str:
    return _NONE if value is None else f"{value:,}"


def _ending(skew: Skew | None) -> str:
    return _whole(None if skew is None else skew.ending)


def characterization_html(characterization: Characterization) -> str:
    """Returns HTML: a row per opcode, what was not measured, and bars of two figures."""
    lines = notes(characterization)
    throughput = [(figure.opcode, figure.throughput) for figure in characterization.figures]
    waits = [(figure.opcode, figure.dependence_wait) for figure in characterization.figures]
    return card(
        characterization_short(characterization),
        figures_table(characterization),
        *([text_html(lines)] if lines else []),
        *_bars("Results a clock, of one SM", throughput),
        *_bars("Clocks until a result can be read", waits),
    )


def _bars(heading: str, rows: list[tuple[str, Measured | None]]) -> list[Markup]:
    """Returns a bar for each opcode that was measured; nothing if none was."""
    known = [(opcode, row.value) for opcode, row in rows if row is not None]
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
    part: float | None = getattr(measured, name, None)
    return part


def characterization_data(characterization: Characterization) -> dict[str, Any]:
    """Returns JSON data: the GPU, and the figures of each opcode."""
    figures = [
        {
            **plain(figure),
            "least_warps": [
                {"mode": mode, "distance": distance, "warps": warps}
                for (mode, distance), warps in (figure.least_warps or {}).items()
            ],
            "ends": _ends(figure.ends or {}),
        }
        for figure in characterization.figures
    ]
    return {**fields(characterization, "device"), "figures": figures}


def _ends(ends: Mapping[Point, int]) -> list[dict[str, Any]]:
    """Returns a row per loop, with the clocks of 1, 2 and more warps; None: not measured."""
    clocks_by_loop: dict[tuple[str, int], dict[int, int]] = {}
    for point, clocks in ends.items():
        clocks_by_loop.setdefault((point.mode, point.distance), {})[point.warps] = clocks
    return [
        {
            "mode": mode,
            "distance": distance,
            "clocks": [row.get(warps) for warps in range(1, max(row) + 1)],
        }
        for (mode, distance), row in clocks_by_loop.items()
    ]
