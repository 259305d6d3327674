"""What one SM holds: thread block slots, warps, registers and shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tbsched.counting import counted
from tbsched.program.arrays import StructuredArray
from tbsched.program.checks import instance, integer
from tbsched.traces.residents import Residents
from tbsched.traces.trace import Trace
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.names import cut, label
from tbsched.views.layout.sms import standing
from tbsched.views.layout.topology import topology_of
from tbsched.views.pictures.canvas import (
    EMPTY,
    axes_for,
    bare,
    entitle,
    inches_of,
    ink_on,
    key,
    moment,
    who,
    write_in,
)
from tbsched.views.words import limiter_words, size_words

_TALL = 0.72  # of a row, what its bar takes
_BETWEEN = 0.9  # rows, between the parts
_PRINT, _LETTER = 7, 0.62  # points, and the width of a letter in them
_LETTERS = 28  # of a name in the legend
_WAITING_NAMED = 2
_NEXT = "▸"
_HATCHED = "hatched: what the runtime keeps in every block; hatched lightly: left to the L1 cache"


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a launch has of a bar: from where to where, in shares of the bar."""

    launch: int
    begin: float
    end: float
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class _Bar:
    """One bar: its name, what is in it, of how many cells it is, and how full it is, in words."""

    name: str
    pieces: list[_Piece]
    cells: int
    used: str


@dataclass(frozen=True, slots=True)
class _Part:
    """Bars below each other, under a title; all are usable up to ``limit``, a share."""

    title: str
    bars: list[_Bar]
    limit: float = 1.0


def resources(
    prediction: Trace, sm: int, *, at: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draws what an SM holds at a moment, in a colour per kernel.

    There are four parts: thread block slots; warp slots of each processing block, by ``%warpid``;
    registers of each processing block; shared memory by address with its gaps, up to what the SM is
    configured to. What the runtime keeps for itself in every block is hatched.

    Example:
        >>> import tbsched as tb
        >>> seq = tb.Sequence([tb.Launch(82, 32, 255, name="1"), tb.Launch(82, 128, 255, name="2")])
        >>> ax = tb.show.resources(tb.predict(seq, "rtx3090"), sm=0)

    Args:
        prediction: what :func:`tbsched.predict` returned. An observation does not say what an SM
            holds.
        sm: the SM.
        at: the moment. In a held sequence it is after so many events, or after all of them for
            None. In a timed one it is a time in seconds, or for None when most blocks are resident.
        ax: the axes to draw into; None makes a figure.

    Returns:
        The axes. A notebook shows them; ``ax.figure.savefig("out.png")`` writes the figure.

    Raises:
        ImportError: matplotlib is missing (``pip install matplotlib``).
        TypeError, ValueError: no prediction, no such SM, or no such moment.
    """
    instance("resources", "prediction", prediction, Trace)
    sm_index = integer("resources", "sm", sm, 0, prediction.device.sms - 1)
    at = moment("resources", prediction, at)
    residents = prediction.residents(at)
    parts = [
        _slots(residents, sm_index),
        _warps(residents, sm_index),
        _registers(residents, sm_index),
        _shared_memory(residents, sm_index),
    ]
    rows = sum(len(part.bars) for part in parts) + _BETWEEN * len(parts) + 0.5
    ax = axes_for("resources", ax, 10, 1.0 + 0.27 * rows)
    ax.set_xlim(0, 1)
    ax.set_ylim(rows, -0.1)
    ax.set_xticks([])
    ax.set_yticks([])
    bare(ax)
    position = topology_of(prediction.device).place_of(sm_index)
    entitle(ax, f"{who(prediction)}: {position}", *_notes(prediction, at))
    colours = colours_of(prediction.sequence.launches)
    placed = list(_placed(parts))
    for part, bar, row in placed:
        _draw(ax, part, bar, row, colours)
    ax.text(0, rows - 0.5, _HATCHED, size="x-small", va="top")
    _key(ax, prediction, residents.of(sm_index), colours)
    # Only now is it known how wide the bars are.
    room = inches_of(ax, laid_out=True)[0] * 72 / (_PRINT * _LETTER)
    for _, bar, row in placed:
        _name(ax, bar, row, colours, prediction, room)
    return ax


def _placed(parts: list[_Part]) -> Iterator[tuple[_Part, _Bar, float]]:
    """Yields each bar of each part, and the row that it is in."""
    row = 0.0
    for part in parts:
        row += _BETWEEN
        for bar in part.bars:
            yield part, bar, row
            row += 1


def _key(ax: Axes, trace: Trace, sm_rows: StructuredArray, colours: Sequence[str]) -> None:
    """Draws the launches that the SM has blocks of."""
    blocks = np.bincount(sm_rows["launch"], sm_rows["blocks"]).astype(int)
    rows = []
    for k in np.flatnonzero(blocks).tolist():
        name = label(trace.sequence.launches[k], _LETTERS)
        rows.append((colours[k], f"{k}: {name}, {counted(int(blocks[k]), 'block')}"))
    key(ax, rows, below=True)


def _slots(residents: Residents, sm: int) -> _Part:
    """Returns the bar of an SM's block slots, a piece for each block."""
    total = residents.limits.block_slots
    shares = [(int(row["launch"]), 1) for row in residents.of(sm) for _ in range(row["blocks"])]
    used = f"{residents.used_slots[sm]} of {total}"
    return _Part("Thread block slots", [_Bar("", _pieces_side_by_side(shares, total), total, used)])


def _warps(residents: Residents, sm: int) -> _Part:
    """Returns each warp where its number says; processing blocks take them in turn."""
    count, total = residents.limits.processing_blocks, residents.limits.warp_slots
    pieces: list[list[_Piece]] = [[] for _ in range(count)]
    for row in residents.of(sm):
        mask = int(row["warp_slots"])
        for slot in range(count * total):
            if mask >> slot & 1:
                position = slot // count
                piece = _Piece(int(row["launch"]), position / total, (position + 1) / total)
                pieces[slot % count].append(piece)
    used = residents.used_warps[sm].tolist()
    bars = [
        _Bar(_turn(k, count, int(residents.turn[sm])), pieces[k], total, f"{used[k]} of {total}")
        for k in range(count)
    ]
    in_turn = count > 1 and residents.turn[sm] >= 0
    return _Part(
        f"Warp slots ({_NEXT}: where the next warp goes)" if in_turn else "Warp slots", bars
    )


def _registers(residents: Residents, sm: int) -> _Part:
    """Returns the bars of the registers of each processing block."""
    count, total = residents.limits.processing_blocks, residents.limits.registers
    per_block, used = residents.registers_per_warp.tolist(), residents.used_registers[sm].tolist()
    bars = []
    for k in range(count):
        shares: dict[int, int] = {}
        for launch, warps in residents.of(sm)[["launch", "warps"]].tolist():
            shares[launch] = shares.get(launch, 0) + warps[k] * per_block[launch]
        words = f"{used[k]:,} of {total:,}"
        bars.append(
            _Bar(
                _processing_block(k, count),
                _pieces_side_by_side(list(shares.items()), total),
                1,
                words,
            )
        )
    return _Part("Registers", bars)


def _shared_memory(residents: Residents, sm: int) -> _Part:
    """Returns the blocks in shared memory, by address; pooled memory has them by launch."""
    total, configured = residents.limits.shared_memory, int(residents.configured[sm])
    sm_pieces = residents.pieces[residents.pieces["sm"] == sm]
    blocks = residents.shared_memory.tolist()
    areas = [tuple(map(int, row)) for row in sm_pieces[["launch", "begin", "end"]]]
    if not areas:
        sizes = [
            (int(r["launch"]), int(r["blocks"]) * blocks[r["launch"]]) for r in residents.of(sm)
        ]
        ends = np.cumsum([0, *(size for _, size in sizes)]).tolist()
        areas = [(k, end - size, end) for (k, size), end in zip(sizes, ends[1:], strict=True)]
    pieces = []
    for launch, begin, end in areas:
        for first in range(begin, end, max(blocks[launch], 1)):
            reserved_end = min(first + residents.limits.shared_memory_reserve, end)
            last = min(first + blocks[launch], end)
            pieces.append(_Piece(launch, first / total, reserved_end / total, hatched=True))
            pieces.append(_Piece(launch, reserved_end / total, last / total))
    used = (
        f"{size_words(int(residents.used_shared_memory[sm]))} of {size_words(configured or total)}"
    )
    title = "Shared memory by address" if len(sm_pieces) else "Shared memory"
    if configured:
        title += f", configured to {size_words(configured)} of {size_words(total)}"
        title += _gaps([area[1:] for area in areas], configured)
    else:
        title += ": idle, so the next block decides how much there is"
    return _Part(title, [_Bar("", pieces, 1, used)], (configured or total) / total)


def _gaps(areas: list[tuple[int, ...]], configured: int) -> str:
    """Returns what is free in more than one piece, in words."""
    ends = [0, *(end for _, end in areas)]
    begins = [*(begin for begin, _ in areas), configured]
    free = [begin - end for end, begin in zip(ends, begins, strict=True) if begin > end]
    if len(free) < 2:
        return ""
    return (
        f"; {size_words(sum(free))} free in {len(free)} pieces, the largest {size_words(max(free))}"
    )


def _pieces_side_by_side(shares: list[tuple[int, int]], total: int) -> list[_Piece]:
    """Returns pieces of a bar, side by side: one for each launch and its amount."""
    pieces: list[_Piece] = []
    begin = 0
    for launch, amount in shares:
        if amount:
            pieces.append(_Piece(launch, begin / total, (begin + amount) / total))
        begin += amount
    return pieces


def _processing_block(number: int, count: int) -> str:
    return f"processing block {number}" if count > 1 else ""


def _turn(number: int, count: int, turn: int) -> str:
    words = _processing_block(number, count)
    return f"{_NEXT} {words}" if words and number == turn else words


def _draw(ax: Axes, part: _Part, bar: _Bar, row: float, colours: Sequence[str]) -> None:
    """Draws one bar, with the names of launches where they fit."""

    def box(begin: float, end: float, **style: Any) -> None:
        ax.add_patch(Rectangle((begin, row), end - begin, _TALL, linewidth=0, **style))

    if bar is part.bars[0]:
        ax.text(0, row - 0.15, part.title, size="small", va="bottom", weight="bold")
    box(0, part.limit, facecolor=EMPTY)
    if part.limit < 1:
        box(part.limit, 1, fill=False, hatch="///", edgecolor=EMPTY)
    for piece in bar.pieces:
        colour = colours[piece.launch]
        hatch = {"hatch": "////////", "edgecolor": ink_on(colour)} if piece.hatched else {}
        box(piece.begin, piece.end, facecolor=colour, **hatch)
    for cell in range(1, bar.cells):
        ax.plot([cell / bar.cells] * 2, [row, row + _TALL], color=ax.get_facecolor(), linewidth=1.5)
    for x, side, words in ((-0.012, "right", bar.name), (1.012, "left", bar.used)):
        ax.text(x, row + _TALL / 2, words, size="small", ha=side, va="center_baseline")


def _name(
    ax: Axes, bar: _Bar, row: float, colours: Sequence[str], trace: Trace, room: float
) -> None:
    """Writes names into the pieces of a bar that is as long as so many letters."""
    for piece in bar.pieces:
        name = _fitting(trace, piece.launch, int((piece.end - piece.begin) * room) - 1)
        if name and not piece.hatched:
            box = (piece.begin, piece.end, row, row + _TALL)
            write_in(ax, box, name, _PRINT, colours[piece.launch])


def _fitting(trace: Trace, launch: int, letters: int) -> str:
    """Returns the launch's name, if so many letters show enough of it, else its number."""
    name = label(trace.sequence.launches[launch])
    if len(name) > letters:
        name = label(trace.sequence.launches[launch], letters) if letters >= 12 else str(launch)
    return name if len(name) <= letters else ""


def _notes(trace: Trace, at: float | None) -> list[str]:
    """Returns when, and what waits for what at that moment."""
    residents = standing(trace, at)
    notes = [residents.when]
    for launch, blocks in residents.waiting.tolist()[:_WAITING_NAMED]:
        why = limiter_words(trace[launch].limiter or "", trace.device)
        name = cut(trace.sequence.launches[launch].name or f"launch {launch}", 24)
        notes.append(f"{counted(blocks, 'block')} of {name} wait{'s' * (blocks == 1)}: {why}")
    return notes
