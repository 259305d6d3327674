"""What every SM holds at one moment, as text."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from tbsched.program.arrays import Int64Array
from tbsched.show.layout.names import cut
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, seconds_words, size_words
from tbsched.traces.residents import Residents

_KINDS_SHOWN = 20
_SMS_SHOWN = 4


def residents_short(held: Residents) -> str:
    """How many blocks are where, and when."""
    blocks, busy = int(held.used_slots.sum()), int(np.count_nonzero(held.used_slots))
    when = f"after {held.at} events" if isinstance(held.at, int) else f"at {seconds_words(held.at)}"
    return f"{counted(blocks, 'block')} on {busy} of {held.device.sms} SMs {when}"


def residents_text(held: Residents) -> str:
    """A row for each kind of SM: those that hold the same."""
    table, more = kinds_table(held)
    return "\n".join(filter(None, [residents_short(held), render(table), more]))


def kinds_table(held: Residents) -> tuple[Table, str]:
    """A row for each kind of SM, the most frequent first; and how many are left out, in words."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for sm, words in enumerate(_words_of_each_sm(held)):
        kinds.setdefault(words, []).append(sm)
    most_first = sorted(kinds.items(), key=lambda item: -len(item[1]))
    rows = [(str(len(sms)), _few(sms), *words) for words, sms in most_first[:_KINDS_SHOWN]]
    headings = ("SMs", "which", "launches x blocks", "slots", "warps", "registers", "shared memory")
    left = len(kinds) - len(rows)
    more = f"and {counted(left, 'kind')} of SM more" if left else ""
    return table_of(headings, rows, left=(1, 2)), more


def _words_of_each_sm(held: Residents) -> list[tuple[str, ...]]:
    limits, configured = held.limits, held.configured.tolist()
    memory = held.used_shared_memory.tolist()
    return [
        (
            there or "nothing",
            f"{slots} of {limits.block_slots}",
            f"{warps} of {limits.warp_slots}",
            f"{registers} of {limits.registers}",
            f"{size_words(used)} of {size_words(of) if of else 'any'}",
        )
        for there, slots, warps, registers, used, of in zip(
            _launches_of_each_sm(held),
            held.used_slots.tolist(),
            _per_processing_block(held.used_warps),
            _per_processing_block(held.used_registers),
            memory,
            configured,
            strict=True,
        )
    ]


def _per_processing_block(amounts: Int64Array) -> list[str]:
    """One number where all processing blocks of the SM have as much."""
    return [
        str(each[0]) if len(set(each)) == 1 else "+".join(map(str, each))
        for each in amounts.tolist()
    ]


def _launches_of_each_sm(held: Residents) -> list[str]:
    found: list[dict[int, int]] = [{} for _ in range(held.device.sms)]
    columns = (held.rows[name].tolist() for name in ("launch", "sm", "blocks"))
    for launch, sm, blocks in zip(*columns, strict=True):
        found[sm][launch] = found[sm].get(launch, 0) + blocks
    names = [f"{k} {cut(name)}" if name else str(k) for k, name in enumerate(held.names)]
    return [", ".join(f"{names[k]} x {blocks}" for k, blocks in sm.items()) for sm in found]


def _few(sms: list[int]) -> str:
    return ", ".join(map(str, sms[:_SMS_SHOWN])) + (", ..." if len(sms) > _SMS_SHOWN else "")
