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


def meeting_short(meeting: Meeting) -> str:
    """How many groups have met, and on what."""
    groups = counted(len(meeting.groups), "group", "groups")
    return f"{sum(meeting.met)} of {groups} met on {trace_head(meeting.trace)}"


def meeting_text(meeting: Meeting) -> str:
    """Returns whether each group has met; if not, which blocks never came."""
    lines = []
    for index, (group, met) in enumerate(zip(meeting.groups, meeting.met, strict=True)):
        launches = f"{'launch' if len(group) == 1 else 'launches'} {', '.join(map(str, group))}"
        missing = [
            f"; of launch {launch} {meeting.missing[launch]} of {len(meeting.trace[launch].smid)} "
            "blocks never came"
            for launch in group
            if launch in meeting.missing
        ]
        words = "has met" if met else "hangs"
        lines.append(f"group {index} {words}: {launches}{''.join(missing)}")
    return "\n".join(lines)


def meeting_html(meeting: Meeting) -> str:
    """Whether each group has met; if not, which blocks never came."""
    return card(meeting_short(meeting), text_html(meeting_text(meeting).splitlines()))


def meeting_data(meeting: Meeting) -> dict[str, Any]:
    """Whether each group has met, how many blocks never came, and where the others went."""
    missing = {str(launch): blocks for launch, blocks in meeting.missing.items()}
    return {**fields(meeting, "groups met"), "missing": missing, "trace": trace_data(meeting.trace)}
