"""Whether launches are sure to be resident together."""

from __future__ import annotations

from typing import Any

from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.given import name_of
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


def coresidency_short(coresidency: Coresidency) -> str:
    """Whether the launches are sure to be resident together, and why."""
    return shortened(verdict(coresidency))


def verdict(coresidency: Coresidency | RankCoresidency) -> str:
    """The answer and its reason."""
    return f"{_VERDICTS[coresidency.safe]}: {coresidency.argument}"


def shortened(words: str) -> str:
    """Returns the words, cut to a line or two."""
    return words if len(words) < 200 else cut(words, 190)


def coresidency_text(coresidency: Coresidency) -> Lines:
    """Returns lines: the answer, its reason, what strands a block, and the fixes."""
    lines: Lines = [verdict(coresidency)]
    if coresidency.witness is not None:
        lines += ["", witness_words(coresidency), rows_table([*rows_of(coresidency.witness)])]
        if coresidency.limits:
            lines += [
                "",
                f"{limits_words(coresidency)}:",
                limits_table(coresidency.limits, coresidency.device),
            ]
    if not coresidency.safe:
        lines += [
            "",
            fixes_words(coresidency),
            *([fixes_table(coresidency)] if coresidency.fixes else []),
        ]
    notes = coresidency_notes(coresidency)
    return [*lines, "", *notes] if notes else lines


def coresidency_notes(coresidency: Coresidency) -> list[str]:
    """What the answer rests on that another board, or a measurement, may show otherwise."""
    notes = board_lines(coresidency.launches, coresidency.device)
    return notes + assumed_lines(coresidency.assumed_rules, coresidency.device)


def witness_words(coresidency: Coresidency) -> str:
    """Returns what strands a block, above its events."""
    words = f"This strands {stranded_words(coresidency)}"
    if coresidency.state != InitialState():
        words += f", from {coresidency.state}"
    assert coresidency.witness is not None
    if any(launch.duration == FOREVER for launch in coresidency.witness.launches):
        words += f" ({seconds_words(FOREVER)} stands for kernels that stay)"
    return f"{words}:"


def stranded_words(coresidency: Coresidency) -> str:
    """The launch that is not resident whole, or what else never happens."""
    assert coresidency.stranded is not None
    return name_of(coresidency.launches, coresidency.stranded, coresidency.others)


def limits_words(coresidency: Coresidency) -> str:
    """What comes above the classes of SMs."""
    return f"Why SMs refuse one more block of {stranded_words(coresidency)}"


def fixes_words(coresidency: Coresidency | RankCoresidency) -> str:
    """Returns the line above the fixes."""
    if coresidency.fixes:
        return "Each of these alone makes it safe:"
    return "No change is known that makes it safe."


def fixes_table(coresidency: Coresidency | RankCoresidency) -> Table:
    """A row per fix."""
    rows = ((fix.kind, fix.text) for fix in coresidency.fixes)
    return table_of(("kind", "what to change"), rows, left=(0, 1))


def coresidency_html(coresidency: Coresidency) -> str:
    """Returns HTML: the answer, its reason, what strands a block, and the fixes."""
    parts = [legend_html(coresidency.launches)]
    if coresidency.witness is not None:
        rows = [*rows_of(coresidency.witness)]
        colours = colours_of(coresidency.witness.launches)
        marks = ["transparent" if row.launch is None else colours[row.launch] for row in rows]
        parts.append(table_html(rows_table(rows), witness_words(coresidency), marks=marks))
        if coresidency.limits:
            table = limits_table(coresidency.limits, coresidency.device)
            stranded_style = (
                colours_of(coresidency.launches)[coresidency.stranded or 0],
                cut(stranded_words(coresidency), _NAME),
            )
            others_style = "blocks of the other launches"
            parts += limits_map(
                coresidency.device, coresidency.limits, stranded_style, others_style
            )
            parts.append(table_html(table, limits_words(coresidency)))
    if coresidency.fixes:
        parts.append(table_html(fixes_table(coresidency), fixes_words(coresidency)))
    elif not coresidency.safe:
        parts.append(note_html(fixes_words(coresidency)))
    return card(
        coresidency_short(coresidency), *parts, *map(note_html, coresidency_notes(coresidency))
    )


def coresidency_columns(coresidency: Coresidency) -> dict[str, Any]:
    """A row per fix."""
    after = [str(list(map(list, fix.after))) for fix in coresidency.fixes]
    return {**columns_of(coresidency.fixes, "kind text"), "after": after}


def coresidency_data(coresidency: Coresidency) -> dict[str, Any]:
    """Returns JSON data: the answer, its reason, what strands a block, and the fixes."""
    answer = "device launches groups after safe argument proof full_sms witness issue_times order"
    reason = "host state stranded waiting cause behind limits assumed_rules"
    fixes = [fields(fix, "kind text launches after sequence") for fix in coresidency.fixes]
    others = [event_to_data(other) for other in coresidency.others]
    answer_data = {**fields(coresidency, f"{answer} {reason}"), "others": others, "fixes": fixes}
    return {**answer_data, "plays": coresidency.plays}
