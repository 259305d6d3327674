"""Whether launches are sure to be resident together."""

from __future__ import annotations

from typing import Any

from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.given import called
from tbsched.advice.together.ranks.coresident import RankCoresidency
from tbsched.hardware.initial_state import InitialState
from tbsched.prediction.together.search import FOREVER
from tbsched.program.events.kinds import event_to_data
from tbsched.views.assumed import assumed_lines
from tbsched.views.capacity import board_lines, limits_map, limits_table
from tbsched.views.cards import card, legend_html, note_html, table_html
from tbsched.views.layout.colours import colours_of
from tbsched.views.layout.names import cut
from tbsched.views.plain import columns_of, fields
from tbsched.views.sequences import rows_of, rows_table
from tbsched.views.tables import Lines, Table, table_of
from tbsched.views.words import seconds_words

_VERDICTS = {True: "safe", False: "NOT safe", None: "not known"}
_NAME = 40


def coresidency_short(found: Coresidency) -> str:
    """Whether the launches are sure to be resident together, and why."""
    return shortened(verdict(found))


def verdict(found: Coresidency | RankCoresidency) -> str:
    """The answer and its reason."""
    return f"{_VERDICTS[found.safe]}: {found.argument}"


def shortened(words: str) -> str:
    """Returns the words, cut to a line or two."""
    return words if len(words) < 200 else cut(words, 190)


def coresidency_text(found: Coresidency) -> Lines:
    """Returns lines: the answer, its reason, what strands a block, and the fixes."""
    lines: Lines = [verdict(found)]
    if found.witness is not None:
        lines += ["", witness_words(found), rows_table([*rows_of(found.witness)])]
        if found.limits:
            lines += ["", f"{limits_words(found)}:", limits_table(found.limits, found.device)]
    if not found.safe:
        lines += ["", fixes_words(found), *([fixes_table(found)] if found.fixes else [])]
    notes = coresidency_notes(found)
    return [*lines, "", *notes] if notes else lines


def coresidency_notes(found: Coresidency) -> list[str]:
    """What the answer rests on that another board, or a measurement, may show otherwise."""
    notes = board_lines(found.launches, found.device)
    return notes + assumed_lines(found.assumed_rules, found.device)


def witness_words(found: Coresidency) -> str:
    """Returns what strands a block, above its events."""
    words = f"This strands {stranded_words(found)}"
    if found.state != InitialState():
        words += f", from {found.state}"
    assert found.witness is not None
    if any(launch.duration == FOREVER for launch in found.witness.launches):
        words += f" ({seconds_words(FOREVER)} stands for kernels that stay)"
    return f"{words}:"


def stranded_words(found: Coresidency) -> str:
    """The launch that is not resident whole, or what else never happens."""
    assert found.stranded is not None
    return called(found.launches, found.stranded, found.others)


def limits_words(found: Coresidency) -> str:
    """What comes above the classes of SMs."""
    return f"Why SMs refuse one more block of {stranded_words(found)}"


def fixes_words(found: Coresidency | RankCoresidency) -> str:
    """What comes above the fixes."""
    if found.fixes:
        return "Each of these alone makes it safe:"
    return "No change is known that makes it safe."


def fixes_table(found: Coresidency | RankCoresidency) -> Table:
    """A row per fix."""
    rows = ((fix.kind, fix.text) for fix in found.fixes)
    return table_of(("kind", "what to change"), rows, left=(0, 1))


def coresidency_html(found: Coresidency) -> str:
    """Returns HTML: the answer, its reason, what strands a block, and the fixes."""
    parts = [legend_html(found.launches)]
    if found.witness is not None:
        rows = [*rows_of(found.witness)]
        colours = colours_of(found.witness.launches)
        marks = ["transparent" if row.launch is None else colours[row.launch] for row in rows]
        parts.append(table_html(rows_table(rows), witness_words(found), marks=marks))
        if found.limits:
            table = limits_table(found.limits, found.device)
            own = (
                colours_of(found.launches)[found.stranded or 0],
                cut(stranded_words(found), _NAME),
            )
            others = "blocks of the other launches"
            parts += limits_map(found.device, found.limits, own, others)
            parts.append(table_html(table, limits_words(found)))
    if found.fixes:
        parts.append(table_html(fixes_table(found), fixes_words(found)))
    elif not found.safe:
        parts.append(note_html(fixes_words(found)))
    return card(coresidency_short(found), *parts, *map(note_html, coresidency_notes(found)))


def coresidency_columns(found: Coresidency) -> dict[str, Any]:
    """A row per fix."""
    after = [str(list(map(list, fix.after))) for fix in found.fixes]
    return {**columns_of(found.fixes, "kind text"), "after": after}


def coresidency_data(found: Coresidency) -> dict[str, Any]:
    """Returns JSON data: the answer, its reason, what strands a block, and the fixes."""
    answer = "device launches groups after safe argument proof full_sms witness issue_times order"
    reason = "host state stranded waiting cause behind limits assumed_rules"
    fixes = [fields(fix, "kind text launches after sequence") for fix in found.fixes]
    others = [event_to_data(one) for one in found.others]
    whole = {**fields(found, f"{answer} {reason}"), "others": others, "fixes": fixes}
    return {**whole, "plays": found.plays}
