"""Whether launches fit beside each other, as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from tbsched.advice.together.capacities import Capacities, Choice
from tbsched.advice.together.capacity import Capacity
from tbsched.advice.together.coresident import Coresidency
from tbsched.advice.together.given import called
from tbsched.advice.together.limits import NO_CLUSTER, Limit
from tbsched.hardware.initial_state import InitialState
from tbsched.program.events.launch import Launch
from tbsched.show.layout.names import cut
from tbsched.show.text.sequences import rows_of, rows_table
from tbsched.show.text.tables import render, table_of
from tbsched.show.words import counted, launch_words, limiter_words, sms_words
from tbsched.traces.placement import DeviceInfo

_LIMITS_SHOWN = 12
_CHOICES_SHOWN = 50
_NAMES_SHOWN = 4
_NAME = 36
_WHICH = 30  # characters that name SMs
_VERDICTS = {True: "safe", False: "NOT safe", None: "not known"}


def capacity_short(found: Capacity) -> str:
    """How many blocks fit."""
    launch, blocks = found.launch, counted(found.blocks, "block")
    words = f"{blocks} of {named(launch)} fit"
    if launch.cluster > 1:
        words += f", {counted(found.clusters, 'cluster')} of {launch.cluster}"
    if found.beside:
        words += f", beside {launches_words(found.beside)}"
    idle = counted(len(found.idle_sms), "SM") if found.idle_sms else "no SM"
    return f"{words}; {idle} of {found.device.sms} idle"


def capacity_text(found: Capacity) -> str:
    """How many blocks fit, and what binds each class of SMs."""
    table, more = limits_table(found.limits, found.device)
    return "\n".join(filter(None, [capacity_short(found), render(table), more]))


def limits_table(limits: tuple[Limit, ...], device: DeviceInfo) -> tuple[Table, str]:
    """A row per class of SMs; and how many are left out, in words."""
    rows = [
        (str(len(row.sms)), str(row.beside), str(row.blocks), cause_words(row.cause, device),
         _which(row.sms))
        for row in limits[:_LIMITS_SHOWN]
    ]  # fmt: skip
    headings = ("SMs", "of others", "blocks", "what refuses one more", "which")
    left = len(limits) - len(rows)
    more = f"and {counted(left, 'class', 'classes')} of SMs more" if left else ""
    return table_of(headings, rows, left=(3, 4)), more


def _which(sms: tuple[int, ...]) -> str:
    words = sms_words(sms)
    first = words[:_WHICH].rpartition(", ")[0]
    return words if len(words) <= _WHICH else f"{first}, ..."


def cause_words(cause: str, device: DeviceInfo) -> str:
    """What refuses one block more on an SM."""
    return "no whole cluster fits" if cause == NO_CLUSTER else limiter_words(cause, device)


def named(launch: Launch) -> str:
    """A launch by its name, or by what it asks for."""
    return cut(launch.name, _NAME) if launch.name else launch_words(launch)


def launches_words(launches: tuple[Launch, ...]) -> str:
    """Launches by name, or by what they ask for."""
    left = len(launches) - _NAMES_SHOWN
    words = "; ".join(map(named, launches[:_NAMES_SHOWN]))
    return f"{words}; and {left} more" if left > 0 else words


def capacities_short(found: Capacities) -> str:
    """How many choices there are, and the most blocks."""
    most = max((row.blocks for row in found), default=0)
    return f"{counted(len(found), 'choice')}; at most {counted(most, 'block')} fit"


def capacities_text(found: Capacities) -> str:
    """A row per choice."""
    table, more = capacities_table(found)
    return "\n".join(filter(None, [capacities_short(found), render(table), more]))


def capacities_table(found: Capacities) -> tuple[Table, str]:
    """A row per choice; and how many are left out, in words."""
    rows = [_choice(row, found.device) for row in found.choices[:_CHOICES_SHOWN]]
    headings = (
        "threads", "carveout", "cluster", "blocks", "clusters", "threads in all", "idle SMs",
        "what refuses one more on most SMs",
    )  # fmt: skip
    left = len(found) - len(rows)
    more = f"and {counted(left, 'choice')} more" if left else ""
    return table_of(headings, rows, left=(7,)), more


def _choice(row: Choice, device: DeviceInfo) -> tuple[str, ...]:
    launch = row.launch
    return (
        str(launch.threads),
        "-" if launch.carveout is None else str(launch.carveout),
        *(str(n) for n in (launch.cluster, row.blocks, row.clusters, row.threads, row.idle_sms)),
        row.refused or cause_words(row.limiter, device),
    )


def coresidency_short(found: Coresidency) -> str:
    """Whether the launches are sure to be resident together, and why."""
    words = f"{_VERDICTS[found.safe]}: {found.argument}"
    return words if len(words) < 200 else cut(words, 190)


def coresidency_text(found: Coresidency) -> str:
    """The answer with its reason; unless it is yes, what strands a block, and what to change."""
    lines = [f"{_VERDICTS[found.safe]}: {found.argument}"]
    if found.witness is not None:
        table, more = limits_table(found.limits, found.device)
        lines += ["", witness_words(found), render(rows_table([*rows_of(found.witness)]))]
        if found.limits:
            lines += ["", f"{limits_words(found)}:"]
            lines += [render(table), *([more] if more else [])]
    if not found.safe:
        lines += ["", fixes_words(found)]
        if found.fixes:
            lines.append(render(fixes_table(found)))
    return "\n".join(lines)


def witness_words(found: Coresidency) -> str:
    """What strands a block, above its events."""
    words = f"This strands {stranded_words(found)}"
    return f"{words}:" if found.state == InitialState() else f"{words}, from {found.state}:"


def stranded_words(found: Coresidency) -> str:
    """The launch that is not resident whole."""
    assert found.stranded is not None
    return called(found.launches, found.stranded)


def limits_words(found: Coresidency) -> str:
    """What comes above the classes of SMs."""
    return f"What the SMs say to one block more of {stranded_words(found)}"


def fixes_words(found: Coresidency) -> str:
    """What comes above the fixes."""
    if found.fixes:
        return "Each of these alone makes it safe:"
    return "No change is known that makes it safe."


def fixes_table(found: Coresidency) -> Table:
    """A row per fix."""
    rows: Iterable[tuple[str, str]] = ((fix.kind, fix.text) for fix in found.fixes)
    return table_of(("kind", "what to change"), rows, left=(0, 1))
