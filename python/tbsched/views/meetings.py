"""Whether groups of launches have met."""

from __future__ import annotations

from typing import Any

from tbsched.counting import counted
from tbsched.launcher.meet import Meeting
from tbsched.views.cards import (
    card,
    text_html,
)
from tbsched.views.plain import fields
from tbsched.views.traces import trace_data, trace_head


def meeting_short(found: Meeting) -> str:
    """How many groups have met, and on what."""
    groups = counted(len(found.groups), "group", "groups")
    return f"{sum(found.met)} of {groups} met on {trace_head(found.trace)}"


def meeting_text(found: Meeting) -> str:
    """Returns whether each group has met; if not, which blocks never came."""
    lines = []
    for number, (group, met) in enumerate(zip(found.groups, found.met, strict=True)):
        launches = f"{'launch' if len(group) == 1 else 'launches'} {', '.join(map(str, group))}"
        missing = [
            f"; of launch {launch} {found.missing[launch]} of {len(found.trace[launch].smid)} "
            "blocks never came"
            for launch in group
            if launch in found.missing
        ]
        words = "has met" if met else "hangs"
        lines.append(f"group {number} {words}: {launches}{''.join(missing)}")
    return "\n".join(lines)


def meeting_html(found: Meeting) -> str:
    """Whether each group has met; if not, which blocks never came."""
    return card(meeting_short(found), text_html(meeting_text(found).splitlines()))


def meeting_data(found: Meeting) -> dict[str, Any]:
    """Whether each group has met, how many blocks never came, and where the others went."""
    missing = {str(launch): blocks for launch, blocks in found.missing.items()}
    return {**fields(found, "groups met"), "missing": missing, "trace": trace_data(found.trace)}
